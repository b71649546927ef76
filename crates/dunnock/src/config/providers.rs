//! Providers: the settings of the built-in ones, and the provider that settings describe.

use crate::config::keys_table::{ProviderSettings, Settings};
use crate::config::saved_keys::SavedKeys;
use crate::config::setting::{Key, Origin, Setting, Value};
use dunnock_model::{KNOWN, KeySource, Known, Provider, Quirks};
use secrecy::SecretString;

impl ProviderSettings {
    /// The settings of a built-in provider.
    pub(crate) fn built_in(known: &Known) -> anyhow::Result<Self> {
        let mut settings = Self::unset()?;
        let text = |text: &str| Value::Text(text.into());
        settings.wire.set(text(&known.wire.to_string()), Origin::Default)?;
        settings.base_url.set(text(known.base_url), Origin::Default)?;
        if let Some(env) = known.key_env {
            settings.api_key_env.set(text(env), Origin::Default)?;
        }
        if known.auth != known.wire.auth() {
            settings.auth.set(text(&known.auth.to_string()), Origin::Default)?;
        }
        if let Some(most) = known.max_output {
            settings.max_output.set(text(&most.to_string()), Origin::Default)?;
        }
        let quirks = known.quirks;
        for (setting, differs, word) in [
            (&mut settings.merge, quirks.merge, "on"),
            (&mut settings.echo, quirks.echo, "on"),
            (&mut settings.sealed, quirks.sealed, "on"),
            (&mut settings.signed, quirks.signed, "on"),
            (&mut settings.new_limit, quirks.new_limit, "on"),
            (&mut settings.usage, quirks.no_usage, "off"),
        ] {
            if differs {
                setting.set(text(word), Origin::Default)?;
            }
        }
        Ok(settings)
    }

    /// The provider, with its key from `env` or a saved one, or why it cannot be used.
    fn provider(
        &self,
        name: &str,
        env: &dyn Fn(&str) -> Option<String>,
        saved: &SavedKeys,
    ) -> Result<Provider, String> {
        let known = KNOWN.iter().find(|known| known.name == name);
        let elsewhere = known
            .and_then(|known| known.elsewhere)
            .filter(|_| is_configured(&self.base_url) && !is_configured(&self.wire));
        let wire = elsewhere.unwrap_or(self.wire.value);
        let base_url = self.base_url.value.as_deref().ok_or_else(|| {
            format!("the provider {name} has no address. Set providers.{name}.base_url, for instance \"http://127.0.0.1:8080/v1\"")
        })?;
        let base_url = Known::filled(base_url, env).ok_or_else(|| {
            let variable = base_url.split(['{', '}']).nth(1).unwrap_or_default();
            format!("the provider {name} has no address. Set {variable}")
        })?;
        let key_env = self.api_key_env.value.clone();
        let key =
            key_env.as_deref().and_then(env).map(|k| k.trim().to_owned()).filter(|k| !k.is_empty());
        let key = key.map(SecretString::from);
        // A saved key belongs to an address, not only to a name.
        let saved_key = saved.key(name, &base_url).filter(|_| key.is_none());
        let body = self.body.value.clone();
        if let Some(body) = &body {
            serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(body)
                .map_err(|why| format!("providers.{name}.body is not a JSON object: {why}"))?;
        }
        let on = |setting: &Setting<Option<bool>>| {
            setting.value == Some(true) && (elsewhere.is_none() || is_configured(setting))
        };
        Ok(Provider {
            name: name.to_owned(),
            wire,
            base_url,
            key_env,
            key_source: match saved_key {
                Some(_) => KeySource::Saved,
                None => KeySource::Variable,
            },
            key: saved_key.cloned().or(key),
            auth: self.auth.value.unwrap_or_else(|| wire.auth()),
            dialect: self.dialect.value,
            window: self.window.value,
            max_output: self.max_output.value,
            body,
            quirks: Quirks {
                merge: on(&self.merge),
                echo: on(&self.echo),
                sealed: on(&self.sealed),
                no_usage: self.usage.value == Some(false),
                signed: on(&self.signed),
                new_limit: on(&self.new_limit),
            },
        })
    }
}

/// Whether the user has set it.
fn is_configured<T>(setting: &Setting<T>) -> bool {
    !matches!(setting.origin, Origin::Unset | Origin::Default)
}

impl Settings {
    /// The usable providers, with their keys from `env` or saved ones, and the unusable ones with the reason.
    pub(crate) fn providers(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> (Vec<Provider>, Vec<(String, String)>) {
        let mut names: Vec<&str> = KNOWN.iter().map(|k| k.name).collect();
        for (name, ..) in self.provider_rows() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let (mut usable, mut unusable) = (Vec::new(), Vec::new());
        for name in names {
            let Some(settings) = self.provider_settings.get(name) else { continue };
            match settings.provider(name, env, &self.saved_keys) {
                Ok(provider) => usable.push(provider),
                Err(why) => unusable.push((name.to_owned(), why)),
            }
        }
        (usable, unusable)
    }

    /// The names of the variables that hold keys: of configured providers, usable or not, and of
    /// all known ones.
    pub(crate) fn key_variables(&self) -> Vec<String> {
        let configured =
            self.provider_settings.values().filter_map(|p| p.api_key_env.value.clone());
        let known = KNOWN.iter().filter_map(|known| known.key_env.map(str::to_owned));
        let mut names: Vec<String> = configured.chain(known).collect();
        names.sort();
        names.dedup();
        names
    }

    /// What is set for providers: name, key, value and origin, sorted by `name.key`.
    pub(crate) fn provider_rows(&self) -> Vec<(&str, &'static Key, &Value, &Origin)> {
        let mut rows = Vec::new();
        for (name, provider) in &self.provider_settings {
            rows.extend(
                provider
                    .rows()
                    .filter_map(|(key, value, origin)| Some((name.as_str(), key, value?, origin))),
            );
        }
        rows.sort_by_key(|(name, key, ..)| format!("{name}.{}", key.name));
        rows
    }
}
