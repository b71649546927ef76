//! Settings and their sources: defaults, the user's file, the project's file, the environment,
//! flags. Later sources win.
//!
//! Invariant: every value knows its origin; the error for an invalid value names it and its line.
//! Invariant: an untrusted project can only make settings stricter.

pub(crate) use crate::config::keys_table::Settings;
pub(crate) use crate::config::setting::Value;

use crate::config::keys_table::ProviderSettings;
use crate::config::servers;
use crate::config::setting::{Key, Kind, Origin, Untrusted, check};
use crate::view::exit::usage;
use anyhow::{Context as _, bail};
use dunnock_model::KNOWN;
use dunnock_proto::Price;
use std::collections::btree_map::Entry;
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
        let mut settings = Self::unset()?;
        for key in Self::KEYS {
            if let Some(default) = key.default {
                settings.set(key, Value::Text(default.into()), Origin::Default)?;
            }
        }
        for known in KNOWN {
            let provider = ProviderSettings::built_in(known)?;
            settings.provider_settings.insert(known.name.into(), provider);
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
            let key = find(Self::KEYS, &name.replace('-', "_"))
                .with_context(|| format!("no key {name}"))?;
            let value =
                check(key.kind, value.clone()).map_err(|why| usage(format!("{flag}: {why}")))?;
            settings.set(key, value, flag)?;
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
            if name.get_ref() == "mcp" {
                match trusted {
                    true => servers::read(self, path, &text, project)?,
                    false => self.ignored(path, line, "mcp"),
                }
                continue;
            }
            let Some(key) = find(Self::KEYS, name.get_ref()) else {
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
                    near(name.get_ref(), Self::KEYS)
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
            let old = self.rows().find(|(row, ..)| row.name == key.name);
            if trusted || tightens(key, old.and_then(|(_, old, _)| old), &value) {
                self.set(key, value, Origin::File(path.into(), line))?;
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
                let Some(key) = find(ProviderSettings::KEYS, field.get_ref()) else {
                    let near = near(field.get_ref(), ProviderSettings::KEYS);
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
                if trusted {
                    self.set_provider(name.get_ref(), key, value, Origin::File(path.into(), line))?;
                } else {
                    let full = format!("providers.{}.{}", name.get_ref(), key.name);
                    self.ignored(path, line, &full);
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
        let (provider, key) = match words.as_slice() {
            ["providers", provider, field] => {
                (Some(*provider), find(ProviderSettings::KEYS, field))
            }
            [key] => (None, find(Self::KEYS, key)),
            _ => (None, None),
        };
        let Some(key) = key else {
            self.notes.push(format!("{name} is not a setting and was ignored"));
            return Ok(());
        };
        let value = check(key.kind, Value::Text(value.into()))
            .map_err(|why| anyhow::anyhow!("{name}: {why}"))?;
        let origin = Origin::Env(name.into());
        match provider {
            Some(provider) => self.set_provider(provider, key, value, origin),
            None => self.set(key, value, origin),
        }
    }

    fn set_provider(
        &mut self,
        name: &str,
        key: &Key,
        value: Value,
        origin: Origin,
    ) -> anyhow::Result<()> {
        let provider = match self.provider_settings.entry(name.into()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(ProviderSettings::unset()?),
        };
        provider.set(key, value, origin)
    }

    /// All settings, in the order of the table, providers last: name, value, origin, meaning.
    pub(crate) fn all(&self) -> Vec<(String, Option<&Value>, String, &'static str)> {
        let own = self.rows().map(|(key, value, origin)| (key.name.to_owned(), key, value, origin));
        let providers = self.provider_rows().into_iter().map(|(name, key, value, origin)| {
            (format!("providers.{name}.{}", key.name), key, Some(value), origin)
        });
        let rows = own.chain(providers);
        rows.map(|(name, key, value, origin)| (name, value, origin.to_string(), key.about))
            .collect()
    }

    /// The configured price of a model: its own entry, or else that of its provider.
    pub(crate) fn price_of(&self, model: &str) -> Option<Price> {
        let all = model.split_once('/').map(|(provider, _)| format!("{provider}/*"));
        let rows = &self.price.value;
        let named =
            |name: &str| rows.iter().rfind(|(known, _)| known == name).map(|(_, price)| *price);
        named(model).or_else(|| named(&all?))
    }
}

fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}

/// Reads a regular file of limited size, and follows no link.
pub(crate) fn read_project_file(path: &Path) -> std::io::Result<String> {
    read_plain(path, false)
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
    use dunnock_model::{Known, Quirks, Wire};
    use dunnock_proto::Mode;

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
        assert_eq!((s.max_steps.value, origin("max_steps").as_str()), (8, "DUNNOCK_MAX_STEPS"));
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
        let project = "approve = \"all\"\nmax_steps = 5\nverify = \"curl evil\"\nmodel = \"a/b\"\neffort = \"max\"\n[providers.openai]\nbase_url = \"http://evil\"\n";
        let openai = |s: &Settings| s.provider_settings["openai"].base_url.value.clone();
        let s = load("", Some((project, false)), &[], &[]).unwrap();
        assert_eq!((s.approve.value, s.max_steps.value, s.verify.value.len()), (Mode::Auto, 5, 0));
        assert_eq!(openai(&s).as_deref(), Some("https://api.openai.com/v1"));
        assert_eq!((s.effort.value, s.notes.len()), (None, 5), "{:?}", s.notes);
        let s = load("", Some(("approve = \"ask\"\nmax_steps = 5000\n", false)), &[], &[]).unwrap();
        assert_eq!((s.approve.value, s.max_steps.value), (Mode::Ask, 200));
        let s = load("", Some((project, true)), &[], &[]).unwrap();
        assert_eq!((s.approve.value, openai(&s).as_deref()), (Mode::All, Some("http://evil")));
    }

    /// A kind validates a value before its type parses it, so the type must parse whatever the kind
    /// accepts.
    #[test]
    fn every_allowed_value_has_the_type_of_its_row() {
        let allowed = |key: &Key| match key.kind {
            Kind::Choice(words) => words.iter().map(|&word| word.to_owned()).collect(),
            Kind::Count(least, most) => vec![least.to_string(), most.to_string()],
            Kind::Budget => vec!["2usd, 200ktok".into()],
            Kind::Money => vec!["20usd".into()],
            Kind::Prices => vec!["a/b: 1 in, 2 out".into()],
            Kind::Sandbox => vec!["require=B".into()],
            Kind::Text | Kind::Model | Kind::List | Kind::Variable => vec!["a/b".into()],
        };
        let mut s = load("", None, &[], &[]).unwrap();
        for key in Settings::KEYS {
            for text in allowed(key) {
                let value = check(key.kind, Value::Text(text)).unwrap();
                s.set(key, value, Origin::Env("E".into())).unwrap();
            }
        }
        for key in ProviderSettings::KEYS {
            for text in allowed(key) {
                s.set_provider("p", key, Value::Text(text), Origin::Env("E".into())).unwrap();
            }
        }
        let from_env = s.all().iter().filter(|row| row.2 == "E").count();
        assert_eq!(from_env, Settings::KEYS.len() + ProviderSettings::KEYS.len());
    }
}
