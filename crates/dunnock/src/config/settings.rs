//! Settings and their sources: defaults, the user's file, the project's file, the environment,
//! flags. Later sources win.
//!
//! Invariant: every value knows its origin; the error for an invalid value names it and its line.
//! Invariant: an untrusted project can only make settings stricter.

use crate::config::keys_table::{KEYS, Key, Kind, PROVIDER, Untrusted};
use crate::config::money::{budget, money, price};
use crate::view::exit::usage;
use anyhow::{Context as _, bail};
use dunnock_model::{KNOWN, Known, Provider, Quirks, Wire};
use dunnock_proto::{Budget, Isolation, Mode, Price, Sandbox};
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Variables with the prefix of settings that are not settings.
const NOT_SETTINGS: &[&str] = &[
    "DUNNOCK_CONFIG",
    "DUNNOCK_PASSWORD",
    "DUNNOCK_FAIL_AT",
    "DUNNOCK_FAIL_LIST",
    "DUNNOCK_BLESS",
];

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File(PathBuf, usize),
    Env(String),
    Flag(&'static str),
    Found(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Env(name) => f.write_str(name),
            Self::Flag(name) => write!(f, "--{name}"),
            Self::Found(why) => f.write_str(why),
        }
    }
}

/// A value as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    List(Vec<String>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) if text.parse::<u64>().is_ok() => f.write_str(text),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(all) => write!(f, "{all:?}"),
        }
    }
}

/// All settings.
#[derive(Debug, Default, Clone)]
pub(crate) struct Settings {
    values: BTreeMap<String, (Value, Origin)>,
    /// What was ignored, and why.
    pub(crate) notes: Vec<String>,
}

/// Where settings are read from. The environment is passed in so that tests can supply their own.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) user: Option<PathBuf>,
    /// The project's file, and whether its folder is trusted.
    pub(crate) project: Option<(PathBuf, bool)>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) flags: Vec<(&'static str, Value)>,
}

impl Settings {
    pub(crate) fn load(sources: &Sources) -> anyhow::Result<Self> {
        let mut settings = Self::default();
        for key in KEYS {
            if let Some(default) = key.default {
                settings
                    .values
                    .insert(key.name.into(), (Value::Text(default.into()), Origin::Default));
            }
        }
        for known in KNOWN {
            let name = |key: &str| format!("providers.{}.{key}", known.name);
            let mut set = |key: &str, value: &str| {
                settings.values.insert(name(key), (Value::Text(value.into()), Origin::Default));
            };
            set("wire", &known.wire.to_string());
            set("base_url", known.base_url);
            if let Some(env) = known.key_env {
                set("api_key_env", env);
            }
            if known.auth != known.wire.auth() {
                set("auth", &known.auth.to_string());
            }
            if let Some(most) = known.max_output {
                set("max_output", &most.to_string());
            }
            let quirks = known.quirks;
            for (key, on) in [
                ("merge", quirks.merge),
                ("echo", quirks.echo),
                ("sealed", quirks.sealed),
                ("signed", quirks.signed),
                ("new_limit", quirks.new_limit),
            ] {
                if on {
                    set(key, "on");
                }
            }
            if quirks.no_usage {
                set("usage", "off");
            }
        }
        if let Some(path) = &sources.user {
            settings.read_file(path, true, false)?;
        }
        if let Some((path, trusted)) = &sources.project {
            settings.read_file(path, *trusted, true)?;
        }
        for (name, value) in &sources.env {
            settings.read_env(name, value)?;
        }
        for (name, value) in &sources.flags {
            let flag = Origin::Flag(name);
            let key = KEYS
                .iter()
                .find(|k| k.name.replace('_', "-") == *name)
                .with_context(|| format!("no key {name}"))?;
            let value =
                check(key.kind, value.clone()).map_err(|why| usage(format!("{flag}: {why}")))?;
            settings.values.insert(key.name.into(), (value, flag));
        }
        Ok(settings)
    }

    fn read_file(&mut self, path: &Path, trusted: bool, project: bool) -> anyhow::Result<()> {
        let text = match read_plain(path, trusted) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => bail!("{} cannot be read: {error}", path.display()),
        };
        let line_of = |at: usize| {
            text.get(..at).map_or(1, |before| {
                before.lines().count().max(1) + usize::from(before.ends_with('\n'))
            })
        };
        let table = DeTable::parse(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(span.start));
            anyhow::anyhow!("{}:{line}: {}", path.display(), error.message())
        })?;
        for (name, value) in table.get_ref() {
            let line = line_of(name.span().start);
            if name.get_ref() == "providers" {
                self.read_providers(path, value.get_ref(), &line_of, trusted)?;
                continue;
            }
            let Some(key) = KEYS.iter().find(|k| k.name == name.get_ref().as_ref()) else {
                if !trusted {
                    // A setting unknown to this release must not prevent work in an untrusted
                    // folder.
                    self.ignored(path, line, &format!("{:?}", name.get_ref()));
                    continue;
                }
                bail!(
                    "{}:{line}: there is no setting {:?}{}",
                    path.display(),
                    name.get_ref(),
                    near(name.get_ref(), KEYS)
                );
            };
            let value = plain(value.get_ref())
                .and_then(|v| check(key.kind, v))
                .map_err(|why| anyhow::anyhow!("{}:{line}: {}: {why}", path.display(), key.name))?;
            if project && key.untrusted == Untrusted::Never {
                let (path, name) = (path.display(), key.name);
                self.notes.push(format!(
                    "{path}:{line}: {name} is ignored: only your own configuration can set it"
                ));
                continue;
            }
            let old = self.values.get(key.name).map(|(v, _)| v.clone());
            if trusted || tightens(key, old.as_ref(), &value) {
                self.values.insert(key.name.into(), (value, Origin::File(path.into(), line)));
            } else {
                self.ignored(path, line, key.name);
            }
        }
        Ok(())
    }

    fn ignored(&mut self, path: &Path, line: usize, what: &str) {
        self.notes.push(format!(
            "{}:{line}: {what} is ignored, because this folder is not trusted and untrusted \
             settings can only be stricter. Read .dunnock first; to trust it: dunnock trust",
            path.display()
        ));
    }

    fn read_providers(
        &mut self,
        path: &Path,
        value: &DeValue<'_>,
        line_of: &dyn Fn(usize) -> usize,
        trusted: bool,
    ) -> anyhow::Result<()> {
        let Some(all) = value.as_table() else {
            bail!("{}: providers must be a table: [providers.NAME]", path.display())
        };
        for (name, provider) in all {
            let line = line_of(name.span().start);
            let Some(fields) = provider.get_ref().as_table() else {
                bail!(
                    "{}:{line}: a provider is a table: [providers.{}]",
                    path.display(),
                    name.get_ref()
                );
            };
            for (field, value) in fields {
                let line = line_of(field.span().start);
                let Some(key) = PROVIDER.iter().find(|k| k.name == field.get_ref().as_ref()) else {
                    let near = near(field.get_ref(), PROVIDER);
                    bail!(
                        "{}:{line}: a provider has no setting {:?}{near}",
                        path.display(),
                        field.get_ref()
                    );
                };
                let value =
                    plain(value.get_ref()).and_then(|v| check(key.kind, v)).map_err(|why| {
                        anyhow::anyhow!("{}:{line}: {}: {why}", path.display(), key.name)
                    })?;
                let full = format!("providers.{}.{}", name.get_ref(), key.name);
                match trusted {
                    true => {
                        drop(self.values.insert(full, (value, Origin::File(path.into(), line))))
                    }
                    false => self.ignored(path, line, &full),
                }
            }
        }
        Ok(())
    }

    fn read_env(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        let Some(rest) = name.strip_prefix("DUNNOCK_") else { return Ok(()) };
        if NOT_SETTINGS.contains(&name) || value.is_empty() {
            return Ok(());
        }
        let words: Vec<String> = rest.split("__").map(str::to_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (key, full) = match words.as_slice() {
            ["providers", name, field] => {
                (PROVIDER.iter().find(|k| k.name == *field), format!("providers.{name}.{field}"))
            }
            [key] => (KEYS.iter().find(|k| k.name == *key), (*key).to_owned()),
            _ => (None, String::new()),
        };
        let Some(key) = key else {
            self.notes.push(format!("{name} is not a setting and was ignored"));
            return Ok(());
        };
        let value = check(key.kind, Value::Text(value.into()))
            .map_err(|why| anyhow::anyhow!("{name}: {why}"))?;
        self.values.insert(full, (value, Origin::Env(name.into())));
        Ok(())
    }

    /// Sets a value that was detected, not configured.
    pub(crate) fn found(&mut self, key: &str, value: &str, why: &str) {
        self.values.insert(key.into(), (Value::Text(value.into()), Origin::Found(why.into())));
    }

    /// All settings, in the order of the table, providers last.
    pub(crate) fn all(&self) -> Vec<(String, Option<&Value>, String)> {
        let mut rows: Vec<(String, Option<&Value>, String)> = Vec::new();
        for key in KEYS {
            let set = self.values.get(key.name);
            let origin = set.map_or_else(|| "not set".to_owned(), |(_, o)| o.to_string());
            rows.push((key.name.into(), set.map(|(v, _)| v), origin));
        }
        let providers = self.values.iter().filter(|(k, _)| k.starts_with("providers."));
        rows.extend(providers.map(|(k, (v, o))| (k.clone(), Some(v), o.to_string())));
        rows
    }

    pub(crate) fn origin(&self, key: &str) -> Option<String> {
        self.values.get(key).map(|(_, origin)| origin.to_string())
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some((Value::Text(text), _)) => Some(text),
            Some((Value::List(_), _)) | None => None,
        }
    }

    /// Whether the value was given on this command line.
    pub(crate) fn flagged(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|(_, origin)| matches!(origin, Origin::Flag(_)))
    }

    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        self.text(key).and_then(|t| t.parse().ok())
    }

    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        match self.values.get(key) {
            Some((Value::List(all), _)) => all.clone(),
            Some((Value::Text(_), _)) | None => Vec::new(),
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        match self.text("approve") {
            Some("read") => Mode::Read,
            Some("ask") => Mode::Ask,
            Some("edits") => Mode::Edits,
            Some("all") => Mode::All,
            _ => Mode::Auto,
        }
    }

    pub(crate) fn sandbox(&self) -> Sandbox {
        self.text("sandbox").and_then(|t| sandbox(t).ok()).unwrap_or(Sandbox::Auto)
    }

    /// Daily budget of all sessions, in millionths of a US dollar.
    pub(crate) fn budget_day(&self) -> Option<u64> {
        self.text("budget_day").and_then(|t| money(t).ok())
    }

    /// The configured price of a model: its own entry, or else that of its provider.
    pub(crate) fn price(&self, model: &str) -> Option<Price> {
        let rows: Vec<(String, Price)> =
            self.list("price").iter().filter_map(|row| price(row).ok()).collect();
        let all = model.split_once('/').map(|(provider, _)| format!("{provider}/*"));
        let named =
            |name: &str| rows.iter().rfind(|(known, _)| known == name).map(|(_, price)| *price);
        named(model).or_else(|| named(&all?))
    }

    pub(crate) fn budget(&self) -> Budget {
        self.text("budget").and_then(|t| budget(t).ok()).unwrap_or_default()
    }

    /// The usable providers, with their keys from `env`, and the unusable ones with the reason.
    pub(crate) fn providers(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> (Vec<Provider>, Vec<(String, String)>) {
        let mut names: Vec<&str> = KNOWN.iter().map(|k| k.name).collect();
        let configured =
            self.values.keys().filter_map(|k| k.strip_prefix("providers.")?.rsplit_once('.'));
        for (name, _) in configured {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let (mut usable, mut unusable) = (Vec::new(), Vec::new());
        for name in names {
            match self.provider(name, env) {
                Ok(provider) => usable.push(provider),
                Err(why) => unusable.push((name.to_owned(), why)),
            }
        }
        (usable, unusable)
    }

    fn provider(
        &self,
        name: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Provider, String> {
        let field = |key: &str| self.text(&format!("providers.{name}.{key}")).map(str::to_owned);
        let wire: Wire = field("wire")
            .as_deref()
            .unwrap_or("chat")
            .parse()
            .map_err(|why| format!("providers.{name}.wire: {why}"))?;
        let given = |key: &str| {
            let set = self.values.get(&format!("providers.{name}.{key}"));
            set.is_some_and(|(_, origin)| *origin != Origin::Default)
        };
        let known = KNOWN.iter().find(|known| known.name == name);
        let elsewhere =
            known.and_then(|known| known.elsewhere).filter(|_| given("base_url") && !given("wire"));
        let wire = elsewhere.unwrap_or(wire);
        let base_url = field("base_url").ok_or_else(|| {
            format!("the provider {name} has no address. Set providers.{name}.base_url, for instance \"http://127.0.0.1:8080/v1\"")
        })?;
        let base_url = Known::filled(&base_url, env).ok_or_else(|| {
            let variable = base_url.split(['{', '}']).nth(1).unwrap_or_default();
            format!("the provider {name} has no address. Set {variable}")
        })?;
        let key_env = field("api_key_env");
        let key =
            key_env.as_deref().and_then(env).map(|k| k.trim().to_owned()).filter(|k| !k.is_empty());
        let count = |key: &str| field(key).and_then(|n| n.parse().ok());
        let on =
            |key: &str| field(key).as_deref() == Some("on") && (elsewhere.is_none() || given(key));
        let body = field("body");
        if let Some(body) = &body {
            serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(body)
                .map_err(|why| format!("providers.{name}.body is not a JSON object: {why}"))?;
        }
        Ok(Provider {
            name: name.to_owned(),
            wire,
            base_url,
            key_env,
            key: key.map(SecretString::from),
            auth: field("auth").and_then(|a| a.parse().ok()).unwrap_or_else(|| wire.auth()),
            dialect: field("dialect").and_then(|d| d.parse().ok()),
            window: count("window"),
            max_output: count("max_output"),
            body,
            quirks: Quirks {
                merge: on("merge"),
                echo: on("echo"),
                sealed: on("sealed"),
                no_usage: field("usage").as_deref() == Some("off"),
                signed: on("signed"),
                new_limit: on("new_limit"),
            },
        })
    }
}

/// Reads a regular file of limited size. In an untrusted repository, links, pipes and devices are
/// refused: they could be endless, or lead to any of the user's files.
fn read_plain(path: &Path, links: bool) -> std::io::Result<String> {
    use std::io::{Error, Read as _};
    const MOST: u64 = 1 << 20;
    let found = if links { std::fs::metadata(path)? } else { std::fs::symlink_metadata(path)? };
    if !found.is_file() {
        return Err(Error::other("it is not a plain file"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST { Err(Error::other("it is larger than 1 MB")) } else { Ok(text) }
}

/// A hint naming the most similar setting.
fn near(name: &str, keys: &[Key]) -> String {
    let closest = keys.iter().map(|k| (strsim::levenshtein(name, k.name), k.name)).min();
    match closest {
        Some((d, known)) if d <= 3 => format!("; did you mean {known}?"),
        _ => "; \"dunnock config\" lists all settings".to_owned(),
    }
}

fn plain(value: &DeValue<'_>) -> Result<Value, String> {
    match value {
        DeValue::String(text) => Ok(Value::Text(text.to_string())),
        DeValue::Integer(number) => Ok(Value::Text(number.as_str().replace('_', ""))),
        DeValue::Array(items) => {
            let text =
                |item: &toml::Spanned<DeValue<'_>>| item.get_ref().as_str().map(str::to_owned);
            let all: Option<Vec<String>> = items.iter().map(text).collect();
            all.map(Value::List).ok_or_else(|| "a list may contain only strings".into())
        }
        DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Table(_) => {
            Err(format!("a value of type {} is not allowed here", value.type_str()))
        }
    }
}

/// Validates a value and returns it in the form in which it is stored.
fn check(kind: Kind, value: Value) -> Result<Value, String> {
    let text = match (kind, value) {
        (Kind::List, Value::Text(one)) => return Ok(Value::List(vec![one])),
        (Kind::List, list @ Value::List(_)) => return Ok(list),
        (Kind::Prices, value) => {
            let all = match value {
                Value::Text(one) => vec![one],
                Value::List(all) => all,
            };
            all.iter().try_for_each(|row| price(row).map(drop))?;
            return Ok(Value::List(all));
        }
        (_, Value::List(_)) => return Err("expected one value, not a list".into()),
        (_, Value::Text(text)) => text,
    };
    match kind {
        Kind::Text | Kind::List if text.is_empty() => Err("it is empty".into()),
        Kind::Variable => {
            let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !text.starts_with(|c: char| c.is_ascii_digit());
            // The value may be the key itself, so the error does not repeat it.
            match plain {
                true => Ok(()),
                false => Err("it must be the name of an environment variable with the key, not \
                              the key itself"
                    .into()),
            }
        }
        Kind::Text | Kind::List | Kind::Prices => Ok(()),
        Kind::Model => match text.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(()),
            Some(_) | None => Err(format!(
                "{text:?} is not a model; write provider/model, as \"dunnock models list\" shows \
                 them"
            )),
        },
        Kind::Choice(words) if words.contains(&text.as_str()) => Ok(()),
        Kind::Choice(words) => Err(format!("{text:?} is not one of {}", words.join(", "))),
        Kind::Count(least, most) => match text.parse::<u64>() {
            Ok(n) if (least..=most).contains(&n) => Ok(()),
            Ok(_) | Err(_) => Err(format!("{text:?} is not a number from {least} to {most}")),
        },
        Kind::Budget => budget(&text).map(drop),
        Kind::Money => money(&text).map(drop),
        Kind::Sandbox => sandbox(&text).map(drop),
    }?;
    Ok(Value::Text(text))
}

fn sandbox(text: &str) -> Result<Sandbox, String> {
    match text {
        "auto" => Ok(Sandbox::Auto),
        "off" => Ok(Sandbox::Off),
        "require" | "require=C" => Ok(Sandbox::Require(Isolation::C)),
        "require=A" => Ok(Sandbox::Require(Isolation::A)),
        "require=B" => Ok(Sandbox::Require(Isolation::B)),
        _ => Err(format!(
            "{text:?} is not one of auto, off, require, require=A, require=B, require=C"
        )),
    }
}

fn tightens(key: &Key, old: Option<&Value>, new: &Value) -> bool {
    let number = |v: &Value| match v {
        Value::Text(text) => text.parse::<u64>().ok(),
        Value::List(_) => None,
    };
    let rank = |v: &Value| match (v, key.kind) {
        (Value::Text(text), Kind::Choice(words)) => words.iter().position(|word| word == text),
        _ => None,
    };
    match key.untrusted {
        Untrusted::No | Untrusted::Never => false,
        Untrusted::Lower => number(new).is_some_and(|n| old.and_then(number).is_none_or(|o| n < o)),
        Untrusted::Earlier => rank(new).is_some_and(|n| old.and_then(rank).is_some_and(|o| n < o)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(
        user: &str,
        project: Option<(&str, bool)>,
        env: &[(&str, &str)],
        flags: &[(&'static str, &str)],
    ) -> Result<Settings, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let sources = Sources {
            user: Some(file("user.toml", user)),
            project: project.map(|(text, trusted)| (file("project.toml", text), trusted)),
            env: env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            flags: flags.iter().map(|(k, v)| (*k, Value::Text((*v).to_owned()))).collect(),
        };
        let place = format!("{}/", dir.path().display());
        Settings::load(&sources).map_err(|e| format!("{e:#}").replace(&place, ""))
    }

    #[test]
    fn later_layers_win_and_each_value_knows_its_origin() {
        let s = load(
            "max_steps = 7\nmodel = \"a/b\"\n[providers.a]\nbase_url = \"http://x\"\n",
            None,
            &[
                ("DUNNOCK_MAX_STEPS", "8"),
                ("DUNNOCK_PROVIDERS__A__API_KEY_ENV", "K"),
                ("DUNNOCK_NONSENSE", "1"),
            ],
            &[("approve", "ask")],
        )
        .unwrap();
        let origin = |key: &str| s.all().into_iter().find(|(k, ..)| k == key).unwrap().2;
        assert_eq!(
            (s.count("max_steps"), origin("max_steps").as_str()),
            (Some(8), "DUNNOCK_MAX_STEPS")
        );
        assert!(origin("model").ends_with("user.toml:2"), "{}", origin("model"));
        assert!(origin("providers.a.base_url").ends_with("user.toml:4"));
        assert_eq!(
            (origin("approve").as_str(), origin("shell").as_str()),
            ("--approve", "default")
        );
        assert_eq!(s.notes, ["DUNNOCK_NONSENSE is not a setting and was ignored"]);
        let (providers, unusable) =
            s.providers(&|name| (name == "K").then(|| "secret\n".to_owned()));
        assert_eq!(
            unusable,
            [(
                "azure".to_owned(),
                "the provider azure has no address. Set AZURE_OPENAI_ENDPOINT".to_owned()
            )]
        );
        let a = providers.iter().find(|p| p.name == "a").unwrap();
        assert!(a.key.is_some() && !format!("{a:?}").contains("secret"));
    }

    /// Holds W8: each key is read from its variable.
    #[test]
    fn every_provider_of_the_table_comes_out_as_it_stands_there() {
        let s = load("", None, &[], &[]).unwrap();
        let env = |name: &str| {
            Some(if name == "AZURE_OPENAI_ENDPOINT" {
                "https://me.azure".into()
            } else {
                "k".into()
            })
        };
        let (providers, unusable) = s.providers(&env);
        assert!(unusable.is_empty());
        for known in KNOWN {
            let one = providers.iter().find(|p| p.name == known.name).unwrap();
            assert_eq!(
                (one.wire, one.auth, one.quirks),
                (known.wire, known.auth, known.quirks),
                "{}",
                known.name
            );
            assert_eq!(
                (one.max_output, one.key_env.as_deref()),
                (known.max_output, known.key_env),
                "{}",
                known.name
            );
            assert_eq!(one.base_url, Known::filled(known.base_url, &env).unwrap());
            assert_eq!(one.key.is_some(), known.key_env.is_some(), "{}", known.name);
        }
    }

    #[test]
    fn a_gateway_under_a_known_name_is_spoken_to_as_gateways_are() {
        let s =
            load("[providers.openai]\nbase_url = \"http://gateway/v1\"\n", None, &[], &[]).unwrap();
        let (providers, _) = s.providers(&|_| None);
        let one = providers.iter().find(|p| p.name == "openai").unwrap();
        assert_eq!((one.wire, one.quirks), (Wire::Chat, Quirks::default()));
        let s = load(
            "[providers.openai]\nbase_url = \"http://gateway/v1\"\nwire = \"responses\"\n",
            None,
            &[],
            &[],
        )
        .unwrap();
        let (providers, _) = s.providers(&|_| None);
        assert_eq!(providers.iter().find(|p| p.name == "openai").unwrap().wire, Wire::Responses);
    }

    /// Holds A2: wrong settings name their line and what is right.
    #[test]
    fn a_wrong_line_is_named() {
        let wrong = [
            (
                "\nmodle = \"a/b\"\n",
                "user.toml:2: there is no setting \"modle\"; did you mean model?",
            ),
            ("max_steps = 0\n", "user.toml:1: max_steps: \"0\" is not a number from 1 to 1000000"),
            (
                "approve = \"never\"",
                "user.toml:1: approve: \"never\" is not one of read, ask, edits, auto, all",
            ),
            (
                "model = \"gpt\"",
                "user.toml:1: model: \"gpt\" is not a model; write provider/model, as \"dunnock \
                 models list\" shows them",
            ),
            (
                "[providers.x]\nbaseurl = \"u\"",
                "user.toml:2: a provider has no setting \"baseurl\"; did you mean base_url?",
            ),
            ("verify = [1]", "user.toml:1: verify: a list may contain only strings"),
            (
                "budget = \"2eur\"",
                "user.toml:1: budget: \"2eur\" is not a budget; write 2usd, 200ktok or 10min",
            ),
            (
                "sandbox = \"on\"",
                "user.toml:1: sandbox: \"on\" is not one of auto, off, require, require=A, \
                 require=B, require=C",
            ),
        ];
        for (text, expect) in wrong {
            assert_eq!(load(text, None, &[], &[]).unwrap_err(), expect, "{text}");
        }
        let broken = load("model = \n", None, &[], &[]).unwrap_err();
        assert!(broken.starts_with("user.toml:1: "), "{broken}");
        assert_eq!(
            load("", None, &[("DUNNOCK_MAX_STEPS", "x")], &[]).unwrap_err(),
            "DUNNOCK_MAX_STEPS: \"x\" is not a number from 1 to 1000000"
        );
    }

    #[test]
    fn an_untrusted_project_only_tightens() {
        let project = "approve = \"all\"\nmax_steps = 5\nverify = \"curl evil\"\nmodel = \"a/b\"\n[providers.openai]\nbase_url = \"http://evil\"\n";
        let s = load("", Some((project, false)), &[], &[]).unwrap();
        assert_eq!(
            (s.mode(), s.count("max_steps"), s.list("verify").len()),
            (Mode::Auto, Some(5), 0)
        );
        assert_eq!(s.text("providers.openai.base_url"), Some("https://api.openai.com/v1"));
        assert_eq!(s.notes.len(), 4, "{:?}", s.notes);
        let s = load("", Some(("approve = \"ask\"\nmax_steps = 5000\n", false)), &[], &[]).unwrap();
        assert_eq!((s.mode(), s.count("max_steps")), (Mode::Ask, Some(200)));
        let s = load("", Some((project, true)), &[], &[]).unwrap();
        assert_eq!(
            (s.mode(), s.text("providers.openai.base_url")),
            (Mode::All, Some("http://evil"))
        );
    }
}
