//! Sets up a model, for all interfaces: the providers to choose from, a check of a key, a try of a
//! model, and what is saved.
//!
//! Invariant: only the user's own settings decide where a typed key is sent; a project has no say.
//! Invariant: a key is saved only together with a model that has answered, or when the user asked
//! for nothing else.

use crate::compose;
use crate::config::settings::{Settings, Value};
use crate::config::{load, paths, saved_keys, user_file};
use anyhow::Context as _;
use dunnock_model::{KNOWN, KeySource, Known, ModelClient, Provider, TryError};
use secrecy::SecretString;
use std::path::PathBuf;
use std::time::Duration;

/// What to know before a key is asked for.
pub(crate) const NO_SIGN_IN: &str = "Dunnock works with API keys and with local servers. There is \
                                     no sign-in with a subscription (ChatGPT, Claude or others).";

/// How long a server on this machine may take to list its models.
const NEAR: Duration = Duration::from_millis(400);
/// How long another server may take.
const FAR: Duration = Duration::from_secs(20);
/// How long a model may take to answer.
const ANSWER: Duration = Duration::from_secs(60);
/// The same for a server on this machine, which may have to load the model first.
const LOADED: Duration = Duration::from_secs(240);

/// Where the key of a provider comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyState {
    /// It is in this environment variable.
    Variable(String),
    Saved,
    Missing,
    /// A server on this machine needs none.
    NotNeeded,
}

/// A provider to choose from.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) name: String,
    /// What it is, and the state of its key.
    pub(crate) about: String,
    /// The address, for display.
    pub(crate) address: String,
    pub(crate) key: KeyState,
}

/// A model that is being set up.
pub(crate) struct Login {
    settings: Settings,
}

/// Where things were saved.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) key: Option<PathBuf>,
    pub(crate) model: PathBuf,
}

impl Login {
    pub(crate) fn new(flags: Vec<(&'static str, Value)>) -> anyhow::Result<Self> {
        Ok(Self { settings: load::settings(None, false, flags)? })
    }

    /// The same data folder as these settings, and otherwise only the user's own.
    pub(crate) fn beside(settings: &Settings) -> anyhow::Result<Self> {
        Self::new(load::given(settings.data_dir.value.clone(), Vec::new()))
    }

    /// Local servers that run, then all other providers that can be used.
    pub(crate) async fn choices(&self) -> anyhow::Result<Vec<Choice>> {
        let client = compose::client(&self.settings)?;
        let mut choices = Vec::new();
        for provider in client.providers().iter().filter(|provider| is_keyless(provider)) {
            if let Ok(models) = client.models(provider, NEAR).await {
                let count = dunnock_proto::count(models.len(), "model");
                let about = format!("{}, {count}", about(&provider.name));
                choices.push(choice(provider, about));
            }
        }
        for provider in client.providers().iter().filter(|provider| !is_keyless(provider)) {
            let about = match key_state(provider) {
                KeyState::Variable(env) => format!("{}, key in {env}", about(&provider.name)),
                KeyState::Saved => format!("{}, key saved", about(&provider.name)),
                KeyState::Missing | KeyState::NotNeeded => about(&provider.name),
            };
            choices.push(choice(provider, about));
        }
        Ok(choices)
    }

    /// A provider of this name, or why there is none.
    pub(crate) fn provider(&self, name: &str) -> Result<Provider, String> {
        let (usable, unusable) = self.settings.providers(&paths::text_var);
        if let Some((_, why)) = unusable.into_iter().find(|(known, _)| known == name) {
            return Err(why);
        }
        let names: Vec<String> = usable.iter().map(|provider| provider.name.clone()).collect();
        usable.into_iter().find(|provider| provider.name == name).ok_or_else(|| {
            format!(
                "there is no provider {name:?}; use one of {}, or add [providers.{name}] to the \
                 configuration",
                names.join(", ")
            )
        })
    }

    /// The provider with a key that was just typed.
    pub(crate) fn with_key(provider: Provider, key: &SecretString) -> Provider {
        Provider { key: Some(key.clone()), key_source: KeySource::Typed, ..provider }
    }

    fn client(&self, provider: &Provider) -> Result<ModelClient, TryError> {
        let providers = vec![provider.clone()];
        compose::client_of(&self.settings, providers, dunnock_tools::offers, |prompts| prompts)
            .map_err(|error| TryError::from(format!("{error:#}")))
    }

    /// The models that the provider lists. Most providers check the key for that, but not all.
    pub(crate) async fn models(&self, provider: &Provider) -> Result<Vec<String>, TryError> {
        let client = self.client(provider)?;
        let models = client.try_key(provider, FAR).await?;
        match models.is_empty() {
            true => Err(format!("{} lists no models", provider.name).into()),
            false => Ok(models),
        }
    }

    /// The same, with the one to suggest first.
    pub(crate) async fn models_to_choose(
        &self,
        provider: &Provider,
    ) -> Result<Vec<String>, TryError> {
        let mut models = self.models(provider).await?;
        if let Some(first) = suggested(&provider.name, &models) {
            models.sort_by_key(|model| *model != first);
        }
        Ok(models)
    }

    /// Sends one short request to a model.
    pub(crate) async fn try_model(&self, provider: &Provider, model: &str) -> Result<(), TryError> {
        let within = if provider.is_local() { LOADED } else { ANSWER };
        let full = format!("{}/{model}", provider.name);
        self.client(provider)?.try_model(&full, within).await
    }

    /// Saves the key, if it was typed, and makes this the model of new sessions.
    pub(crate) fn save(&self, provider: &Provider, model: &str) -> anyhow::Result<Saved> {
        let key = self.save_key(provider)?;
        let model = user_file::set_model(&format!("{}/{model}", provider.name));
        let saved = if key.is_some() {
            "the key is saved, but the model is not"
        } else {
            "the model is not saved"
        };
        Ok(Saved { key, model: model.context(saved)? })
    }

    /// Saves the key, if it was typed. Returns the file.
    pub(crate) fn save_key(&self, provider: &Provider) -> anyhow::Result<Option<PathBuf>> {
        match &provider.key {
            Some(key) if provider.key_source == KeySource::Typed => {
                saved_keys::save(provider, key)?;
                Ok(Some(saved_keys::folder()?.join("keys.toml")))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// The providers with saved keys.
    pub(crate) fn saved(&self) -> Vec<&str> {
        self.settings.saved_keys.providers()
    }
}

/// Whether it is a server on this machine that no key was configured for.
fn is_keyless(provider: &Provider) -> bool {
    provider.is_local() && provider.key_env.is_none() && provider.key.is_none()
}

pub(crate) fn key_state(provider: &Provider) -> KeyState {
    match (&provider.key, provider.key_source, &provider.key_env) {
        (Some(_), KeySource::Saved | KeySource::Typed, _) => KeyState::Saved,
        (Some(_), KeySource::Variable, Some(env)) => KeyState::Variable(env.clone()),
        _ if is_keyless(provider) => KeyState::NotNeeded,
        _ => KeyState::Missing,
    }
}

fn choice(provider: &Provider, about: String) -> Choice {
    Choice {
        name: provider.name.clone(),
        about,
        address: provider.address(),
        key: key_state(provider),
    }
}

fn about(name: &str) -> String {
    let known = KNOWN.iter().find(|known| known.name == name);
    known.map_or("from your configuration", |known| known.about).to_owned()
}

/// The model to suggest: the default of the provider, if it is in the list, or the only one.
pub(crate) fn suggested(provider: &str, models: &[String]) -> Option<String> {
    let known = KNOWN.iter().find(|known| known.name == provider);
    let default = known
        .and_then(|known| known.default_model)
        .and_then(|model| Known::filled(model, &paths::text_var))
        .filter(|model| models.contains(model));
    match (default, models) {
        (None, [only]) => Some(only.clone()),
        (default, _) => default,
    }
}

/// A warning if a key would be sent without encryption to another machine.
pub(crate) fn unencrypted(provider: &Provider) -> Option<String> {
    let open = !provider.is_local() && !provider.base_url.starts_with("https:");
    open.then(|| {
        format!("{} is not encrypted: others on the network could read the key", provider.address())
    })
}
