//! One setting: the kind of its values, its typed value, and where the value comes from.
//!
//! `settings!` declares a struct with one field per row of a table. `Kind` validates what the user
//! wrote; the type of the field then parses it.

use crate::config::money::{Money, budget, money, price};
use anyhow::{Context as _, anyhow};
use dunnock_model::{Auth, Dialect, Size, ToolSet, Wire};
use dunnock_proto::{Budget, Isolation, Price, Sandbox};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The values that a setting accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// `provider/model`.
    Model,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A number between these.
    Count(u64, u64),
    /// Strings; a single string is a list of one.
    List,
    /// `2usd`, `200ktok`, `10min`, several with commas.
    Budget,
    /// `20usd`.
    Money,
    /// Strings like `provider/model: 1 in, 0.1 cached, 4 out`.
    Prices,
    /// `auto`, `off`, `require`, `require=A`.
    Sandbox,
    /// The name of an environment variable.
    Variable,
}

/// When an untrusted folder may set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Untrusted {
    /// Only after it is trusted.
    No,
    /// Never, even if trusted: only the user's own settings may.
    Never,
    /// If the number becomes smaller.
    Lower,
    /// If the word comes earlier in its list, which is ordered strictest first.
    Earlier,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Option<&'static str>,
    pub(crate) untrusted: Untrusted,
    pub(crate) about: &'static str,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Unset,
    Default,
    File(PathBuf, usize),
    Env(String),
    Flag(&'static str),
    Found(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => f.write_str("not set"),
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

/// A setting: its value, and where it comes from.
#[derive(Debug, Clone)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
    /// The value as it was given, unless the setting is unset.
    pub(crate) given: Option<Value>,
}

impl<T: SettingType> Setting<T> {
    /// A setting without a given value. Its value is the default of its row, if there is one.
    pub(crate) fn unset(default: Option<&str>) -> anyhow::Result<Self> {
        let value = match default {
            Some(text) => T::parse(&Value::Text(text.into())).map_err(anyhow::Error::msg)?,
            None => T::unset().context("this setting needs a default")?,
        };
        Ok(Self { value, origin: Origin::Unset, given: None })
    }

    /// Sets a value that `check` has accepted.
    pub(crate) fn set(&mut self, given: Value, origin: Origin) -> anyhow::Result<()> {
        let value = T::parse(&given).map_err(|why| anyhow!("{origin}: {why}"))?;
        *self = Self { value, origin, given: Some(given) };
        Ok(())
    }
}

impl<T> Setting<T> {
    pub(crate) fn is_default(&self) -> bool {
        self.origin == Origin::Default
    }

    /// Whether the value was given on this command line.
    pub(crate) fn is_flag(&self) -> bool {
        matches!(self.origin, Origin::Flag(_))
    }
}

impl<T: From<String>> Setting<Option<T>> {
    /// Sets a value that was detected, not configured.
    pub(crate) fn found(&mut self, text: &str, why: &str) {
        *self = Self {
            value: Some(T::from(text.into())),
            origin: Origin::Found(why.into()),
            given: Some(Value::Text(text.into())),
        };
    }
}

/// A type that the value of a setting can have.
pub(crate) trait SettingType: Sized {
    fn parse(given: &Value) -> Result<Self, String>;

    /// The value of an unset setting without a default.
    fn unset() -> Option<Self> {
        None
    }
}

impl<T: FromText> SettingType for T {
    fn parse(given: &Value) -> Result<Self, String> {
        match given {
            Value::Text(text) => T::from_text(text),
            Value::List(_) => Err("expected one value, not a list".into()),
        }
    }
}

impl<T: FromText> SettingType for Option<T> {
    fn parse(given: &Value) -> Result<Self, String> {
        <T as SettingType>::parse(given).map(Some)
    }

    fn unset() -> Option<Self> {
        Some(None)
    }
}

impl<T: FromText> SettingType for Vec<T> {
    fn parse(given: &Value) -> Result<Self, String> {
        match given {
            Value::Text(one) => Ok(vec![T::from_text(one)?]),
            Value::List(all) => all.iter().map(|one| T::from_text(one)).collect(),
        }
    }

    fn unset() -> Option<Self> {
        Some(Self::new())
    }
}

/// A value that is written as one text.
pub(crate) trait FromText: Sized {
    fn from_text(text: &str) -> Result<Self, String>;
}

/// Implements `FromText` for types with `FromStr`.
macro_rules! from_str {
    ($($type:ty),+) => {
        $(impl FromText for $type {
            fn from_text(text: &str) -> Result<Self, String> {
                text.parse().map_err(|why| format!("{text:?}: {why}"))
            }
        })+
    };
}

from_str!(String, PathBuf, u32, u64, usize, Auth, Dialect, Size, ToolSet, Wire);

impl FromText for Duration {
    /// Parses a number of seconds.
    fn from_text(text: &str) -> Result<Self, String> {
        u64::from_text(text).map(Self::from_secs)
    }
}

impl FromText for Budget {
    fn from_text(text: &str) -> Result<Self, String> {
        budget(text)
    }
}

impl FromText for Money {
    fn from_text(text: &str) -> Result<Self, String> {
        money(text).map(|micros| Self { micros })
    }
}

impl FromText for (String, Price) {
    fn from_text(text: &str) -> Result<Self, String> {
        price(text)
    }
}

impl FromText for Sandbox {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            "require" | "require=C" => Ok(Self::Require(Isolation::C)),
            "require=A" => Ok(Self::Require(Isolation::A)),
            "require=B" => Ok(Self::Require(Isolation::B)),
            _ => Err(format!(
                "{text:?} is not one of auto, off, require, require=A, require=B, require=C"
            )),
        }
    }
}

/// The words of a choice.
pub(crate) trait Names {
    const NAMES: &'static [&'static str];
}

/// Implements `Names` and `FromText` for a choice from its table of words.
macro_rules! names {
    ($type:ty { $($word:literal = $value:expr),+ $(,)? }) => {
        impl Names for $type {
            const NAMES: &'static [&'static str] = &[$($word),+];
        }
        impl FromText for $type {
            fn from_text(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok($value),)+
                    _ => Err(format!("{text:?} is not one of {}", Self::NAMES.join(", "))),
                }
            }
        }
    };
}
pub(crate) use names;

/// Declares a struct of settings from its table: `name: type = kind, default, what an untrusted
/// project may do, meaning;`. The fields in braces are not settings.
macro_rules! settings {
    (
        $(#[$doc:meta])*
        $struct:ident { $($(#[$other_doc:meta])* $other:ident: $other_type:ty,)* }
        $($name:ident: $type:ty = $kind:expr, $default:expr, $untrusted:expr, $about:expr;)+
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub(crate) struct $struct {
            $(pub(crate) $name: Setting<$type>,)+
            $($(#[$other_doc])* pub(crate) $other: $other_type,)*
        }

        impl $struct {
            /// The table, in the order in which `dunnock config` shows it.
            pub(crate) const KEYS: &'static [Key] = &[$(Key {
                name: stringify!($name),
                kind: $kind,
                default: $default,
                untrusted: $untrusted,
                about: $about,
            }),+];

            /// No setting is set. It fails only if a default does not have the type of its row.
            pub(crate) fn unset() -> anyhow::Result<Self> {
                Ok(Self {
                    $($name: Setting::unset($default).context(stringify!($name))?,)+
                    $($other: <$other_type>::default(),)*
                })
            }

            /// Sets the value of a key, as `check` returned it.
            pub(crate) fn set(
                &mut self,
                key: &Key,
                given: Value,
                origin: Origin,
            ) -> anyhow::Result<()> {
                match key.name {
                    $(stringify!($name) => self.$name.set(given, origin),)+
                    unknown => anyhow::bail!("no key {unknown}"),
                }
            }

            /// Every key, with its value as it was given and its origin.
            pub(crate) fn rows(
                &self,
            ) -> impl Iterator<Item = (&'static Key, Option<&Value>, &Origin)> {
                let rows = [$((self.$name.given.as_ref(), &self.$name.origin)),+];
                Self::KEYS.iter().zip(rows).map(|(key, (given, origin))| (key, given, origin))
            }
        }
    };
}
pub(crate) use settings;

/// Validates a value and returns it in the form in which it is stored.
pub(crate) fn check(kind: Kind, value: Value) -> Result<Value, String> {
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
        Kind::Text if text.is_empty() => Err("it is empty".into()),
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
        Kind::Sandbox => Sandbox::from_text(&text).map(drop),
    }?;
    Ok(Value::Text(text))
}
