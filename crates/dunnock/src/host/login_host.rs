//! Answers the terminal app while it sets up a model.

use crate::config::saved_keys;
use crate::config::settings::Settings;
use crate::login::{self, KeyState, Login};
use dunnock_model::{Provider, TryError};
use dunnock_tui::{LoginEvent, LoginFault, LoginKey, LoginProvider, LoginRequest, TypedKey};

/// The answer to a request that saves nothing. It may take a while.
pub(crate) async fn answer(settings: Settings, request: LoginRequest) -> Option<LoginEvent> {
    match request {
        LoginRequest::Providers { attempt } => {
            let providers = providers(&settings).await.map_err(|error| format!("{error:#}"));
            Some(LoginEvent::Providers { attempt, providers })
        }
        LoginRequest::Models { attempt, provider, key } => {
            let models = models(&settings, &provider, key.as_ref()).await;
            Some(LoginEvent::Models { attempt, models: models.map_err(fault) })
        }
        LoginRequest::Try { attempt, provider, key, model } => {
            let result = try_model(&settings, &provider, key.as_ref(), &model).await;
            Some(LoginEvent::Tried { attempt, result: result.map_err(fault) })
        }
        LoginRequest::Save { .. } | LoginRequest::Stop => None,
    }
}

fn fault(error: TryError) -> LoginFault {
    LoginFault { words: error.words, needs_key: error.needs_key }
}

async fn providers(settings: &Settings) -> anyhow::Result<Vec<LoginProvider>> {
    let login = Login::beside(settings)?;
    let mut providers = Vec::new();
    for choice in login.choices().await? {
        let provider = login.provider(&choice.name).ok();
        providers.push(LoginProvider {
            warning: provider.as_ref().and_then(login::unencrypted),
            key: match choice.key {
                KeyState::Variable(env) => LoginKey::Variable(env),
                KeyState::Saved => LoginKey::Saved,
                KeyState::Missing => LoginKey::Missing,
                KeyState::NotNeeded => LoginKey::NotNeeded,
            },
            name: choice.name,
            about: choice.about,
            address: choice.address,
        });
    }
    Ok(providers)
}

/// The provider with the key, which is refused here if it cannot be one.
pub(crate) fn provider_with(
    login: &Login,
    name: &str,
    key: Option<&str>,
) -> Result<Provider, TryError> {
    let provider = login.provider(name)?;
    match key {
        Some(key) => match saved_keys::checked(key) {
            Ok(key) => Ok(Login::with_key(provider, &key)),
            Err(words) => Err(TryError { words, needs_key: true }),
        },
        None => Ok(provider),
    }
}

fn begin(settings: &Settings) -> Result<Login, TryError> {
    Login::beside(settings).map_err(|error| TryError::from(format!("{error:#}")))
}

async fn models(
    settings: &Settings,
    name: &str,
    key: Option<&TypedKey>,
) -> Result<Vec<String>, TryError> {
    let login = begin(settings)?;
    let provider = provider_with(&login, name, key.map(TypedKey::expose))?;
    login.models_to_choose(&provider).await
}

async fn try_model(
    settings: &Settings,
    name: &str,
    key: Option<&TypedKey>,
    model: &str,
) -> Result<(), TryError> {
    let login = begin(settings)?;
    let provider = provider_with(&login, name, key.map(TypedKey::expose))?;
    login.try_model(&provider, model).await
}

/// Saves the key, if one was typed, and the model.
pub(crate) fn save(
    settings: &Settings,
    name: &str,
    key: Option<&TypedKey>,
    model: &str,
) -> anyhow::Result<()> {
    let login = Login::beside(settings)?;
    let provider = provider_with(&login, name, key.map(TypedKey::expose))
        .map_err(|error| anyhow::anyhow!(error.words))?;
    login.save(&provider, model).map(drop)
}
