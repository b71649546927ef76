//! Removes the provider's key from its answers: a server that repeats the key must not get it
//! printed, stored, or into the arguments of a call.
//!
//! Invariant: without the key in it, an answer keeps every byte. While an answer arrives, only a
//! possible beginning of the key is held back.

use crate::provider::Provider;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

/// What stands in the place of the key.
const KEY: &str = "[key]";
/// A shorter key is a placeholder for a local server. It may be an ordinary word.
const SHORTEST: usize = 12;

/// Removes a key from text.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyFilter(Option<SecretString>);

impl KeyFilter {
    pub(crate) fn of(provider: &Provider) -> Self {
        let is_real = |key: &&SecretString| {
            let key = key.expose_secret();
            key.len() >= SHORTEST && key.bytes().any(|byte| byte.is_ascii_digit())
        };
        Self(provider.key.as_ref().filter(is_real).cloned())
    }

    /// Text that arrives in pieces. Returns what is certain; the rest stays in `held`.
    pub(crate) fn feed(&self, held: &mut String, more: &str) -> String {
        let Some(key) = &self.0 else { return more.to_owned() };
        held.push_str(more);
        let mut text = std::mem::take(held);
        if let Some(cleaned) = self.cleaned(&text) {
            text = cleaned;
        }
        *held = text.split_off(beginning(&text, key.expose_secret()));
        text
    }

    /// The text without the key, if the key is in it.
    fn cleaned(&self, text: &str) -> Option<String> {
        let key = self.0.as_ref()?.expose_secret();
        text.contains(key).then(|| text.replace(key, KEY))
    }

    pub(crate) fn text(&self, text: &mut String) {
        if let Some(cleaned) = self.cleaned(text) {
            *text = cleaned;
        }
    }

    /// The arguments of a call: JSON, in which the key may be written with escapes. Says whether
    /// the key was in them.
    pub(crate) fn arguments(&self, args: &mut String) -> bool {
        let cleaned = self.cleaned(args);
        let mut found = cleaned.is_some();
        *args = cleaned.unwrap_or_else(|| std::mem::take(args));
        if self.0.is_none() {
            return found;
        }
        if args.contains('\\')
            && let Ok(mut value) = serde_json::from_str::<Value>(args)
            && self.value(&mut value)
        {
            *args = value.to_string();
            found = true;
        }
        found
    }

    /// Whether a string in the value had the key.
    fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let cleaned = self.cleaned(text);
                let found = cleaned.is_some();
                *text = cleaned.unwrap_or_else(|| std::mem::take(text));
                found
            }
            // Every one of them, also after the first.
            Value::Array(all) => {
                all.iter_mut().filter_map(|one| self.value(one).then_some(())).count() > 0
            }
            Value::Object(all) => {
                let mut found = false;
                let entries = std::mem::take(all).into_iter().map(|(mut name, mut one)| {
                    found |= self.value(&mut one);
                    if let Some(cleaned) = self.cleaned(&name) {
                        (name, found) = (cleaned, true);
                    }
                    (name, one)
                });
                *all = entries.collect();
                found
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}

/// Where a beginning of the key starts at the end of a text; its length if there is none.
fn beginning(text: &str, key: &str) -> usize {
    let from = text.len().saturating_sub(key.len().saturating_sub(1));
    (from..text.len())
        .find(|at| text.get(*at..).is_some_and(|end| key.starts_with(end)))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-sk-5e1f0c77a9";

    fn filter() -> KeyFilter {
        KeyFilter(Some(SecretString::from(SECRET)))
    }

    /// However the text is cut into pieces, the key is removed and everything else stays.
    #[test]
    fn a_key_in_pieces_is_removed_and_nothing_else_changes() {
        let cases = [
            (format!("your key is {SECRET}."), "your key is [key].".to_owned()),
            (format!("{SECRET}{SECRET}s"), "[key][key]s".to_owned()),
            (format!("sk-{SECRET}"), "sk-[key]".to_owned()),
            ("sk-sk-5e1f0c77a and sk-".to_owned(), "sk-sk-5e1f0c77a and sk-".to_owned()),
            ("über s schön sk".to_owned(), "über s schön sk".to_owned()),
        ];
        for (text, expected) in cases {
            for size in 1..=text.len() {
                let (mut held, mut out) = (String::new(), String::new());
                let mut rest = text.as_str();
                while !rest.is_empty() {
                    let (piece, after) =
                        rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
                    out.push_str(&filter().feed(&mut held, piece));
                    assert!(!out.contains(SECRET));
                    assert!(held.is_empty() || SECRET.starts_with(&held), "{held}");
                    rest = after;
                }
                assert_eq!(out + &held, expected, "in pieces of {size}");
            }
        }
    }

    #[test]
    fn arguments_are_cleaned_with_and_without_escapes() {
        let mut args = format!(r#"{{"command":"echo {SECRET}"}}"#);
        filter().arguments(&mut args);
        assert_eq!(args, r#"{"command":"echo [key]"}"#);
        let mut args = r#"{"a":["x\n","sk\u002dsk-5e1f0c77a9"],"sk-sk\u002d5e1f0c77a9":1}"#.into();
        filter().arguments(&mut args);
        // Fields are sorted once the arguments had to be written anew.
        assert_eq!(args, r#"{"[key]":1,"a":["x\n","[key]"]}"#);
        for same in [r#"{ "b" : "\u0041",  "a":1.0 }"#, "no json \\"] {
            let mut args = same.to_owned();
            filter().arguments(&mut args);
            assert_eq!(args, same, "no byte changes");
        }
    }

    #[test]
    fn a_placeholder_is_no_key() {
        let provider = |key: &str| Provider {
            key: Some(SecretString::from(key)),
            ..Provider::plain("p", crate::Wire::Chat, "http://127.0.0.1:1/v1")
        };
        for placeholder in ["ollama", "sk-1234", "sk-no-key-required"] {
            assert!(KeyFilter::of(&provider(placeholder)).0.is_none(), "{placeholder}");
        }
        assert!(KeyFilter::of(&provider(SECRET)).0.is_some());
    }
}
