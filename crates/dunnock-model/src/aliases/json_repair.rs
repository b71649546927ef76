//! Repairs arguments that are almost a JSON object, where there is one way to read them.
//!
//! Invariant: nothing is invented. Brackets may be added at the end or dropped there, and what JSON
//! spells differently is respelled; a string or number that is cut off stays broken. The caller
//! decides what a call may do whose end was missing.

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Nested brackets, at most.
const DEPTH: usize = 100;

/// How arguments were repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Repair {
    /// Not at all.
    None,
    /// They were spelled in another way.
    Spelled,
    /// The last closing bracket was missing.
    Closed,
    /// The end of a list or of an inner object was missing, too.
    ClosedList,
}

/// Whether an argument is given twice.
pub(crate) fn has_twice(text: &str) -> bool {
    struct ArgumentNames(bool);
    impl<'de> Deserialize<'de> for ArgumentNames {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Reader;
            impl<'de> Visitor<'de> for Reader {
                type Value = ArgumentNames;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<ArgumentNames, A::Error> {
                    let (mut seen, mut twice) = (BTreeSet::new(), false);
                    while let Some(name) = map.next_key::<String>()? {
                        map.next_value::<IgnoredAny>()?;
                        twice |= !seen.insert(name);
                    }
                    Ok(ArgumentNames(twice))
                }
            }
            from.deserialize_map(Reader)
        }
    }
    serde_json::from_str::<ArgumentNames>(text).is_ok_and(|names| names.0)
}

/// Reads arguments as an object, and says how they had to be repaired.
pub(crate) fn read(text: &str) -> Option<(Map<String, Value>, Repair)> {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return match value {
            Value::Object(map) => Some((map, Repair::None)),
            // The object, encoded twice.
            Value::String(inner) if inner.trim_start().starts_with('{') => {
                match serde_json::from_str(&inner) {
                    Ok(Value::Object(map)) => Some((map, Repair::Spelled)),
                    _ => None,
                }
            }
            _ => None,
        };
    }
    let (respelled, repair) = respell(fenced(text.trim()))?;
    if has_twice(&respelled) {
        return None;
    }
    match serde_json::from_str(&respelled) {
        Ok(Value::Object(map)) => Some((map, repair)),
        _ => None,
    }
}

/// The text inside a code fence, if there is one.
pub(crate) fn fenced(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some(inner) = inner else { return text };
    inner.split_once('\n').map_or(inner, |(_, rest)| rest).trim()
}

/// Writes the text as JSON: control characters in strings escaped, Python's words and trailing
/// commas replaced, brackets closed. `None` if a string does not end, brackets do not match, or
/// something follows the object.
fn respell(text: &str) -> Option<(String, Repair)> {
    let mut out = String::with_capacity(text.len() + 8);
    let mut open: Vec<char> = Vec::new();
    let mut chars = text.char_indices().peekable();
    let mut ended = false;
    while let Some((at, c)) = chars.next() {
        if ended {
            // One closing bracket too many is a slip; anything else is something else.
            match c {
                '}' | ']' => continue,
                c if c.is_whitespace() => continue,
                _ => return None,
            }
        }
        match c {
            '"' | '\'' => {
                out.push('"');
                string(c, &mut chars, &mut out)?;
            }
            '{' | '[' => {
                open.push(if c == '{' { '}' } else { ']' });
                if open.len() > DEPTH {
                    return None;
                }
                out.push(c);
            }
            '}' | ']' => {
                if open.pop() != Some(c) {
                    return None;
                }
                drop_comma(&mut out);
                out.push(c);
                ended = open.is_empty();
            }
            c if c.is_ascii_alphabetic() => {
                let rest = text.get(at..).unwrap_or_default();
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let word = rest.get(..end).unwrap_or_default();
                out.push_str(match word {
                    "True" => "true",
                    "False" => "false",
                    "None" => "null",
                    // Exponents of numbers come here, too.
                    other => other,
                });
                for _ in 1..word.chars().count() {
                    chars.next();
                }
            }
            other => out.push(other),
        }
    }
    drop_comma(&mut out);
    // A value must have come after the last colon, and all of it: a number may be cut off.
    let last = out.trim_end().chars().next_back();
    if !open.is_empty() && !last.is_some_and(|c| matches!(c, '"' | '}' | ']' | 'e' | 'l')) {
        return None;
    }
    let repair = match open.len() {
        0 => Repair::Spelled,
        1 => Repair::Closed,
        _ => Repair::ClosedList,
    };
    while let Some(bracket) = open.pop() {
        out.push(bracket);
    }
    Some((out, repair))
}

/// Copies a string up to its closing quote.
fn string(
    quote: char,
    chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
    out: &mut String,
) -> Option<()> {
    while let Some((_, c)) = chars.next() {
        match c {
            c if c == quote => {
                out.push('"');
                return Some(());
            }
            // In Python's quotes.
            '"' => out.push_str("\\\""),
            '\\' => match chars.next()?.1 {
                '\'' if quote == '\'' => out.push('\''),
                c => out.extend(['\\', c]),
            },
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    None
}

/// Removes a comma before a closing bracket.
fn drop_comma(out: &mut String) {
    let kept = out.trim_end().strip_suffix(',').map(str::len);
    if let Some(kept) = kept {
        out.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn what_can_be_read_one_way_is_read() {
        for (text, meant) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":"1""#, r#"{"a":"1"}"#),
            (r#"{"a":[1,{"b":"2""#, r#"{"a":[1,{"b":"2"}]}"#),
            (r#"{"a":true"#, r#"{"a":true}"#),
            (r#"{'a':'it\'s "so"'}"#, r#"{"a":"it's \"so\""}"#),
            (r#"{"a":1}}"#, r#"{"a":1}"#),
            (r#"{"a":1,}"#, r#"{"a":1}"#),
            ("{\"a\":\"x\ny\"}", r#"{"a":"x\ny"}"#),
            (r#"{"a":True,"b":None,"c":1e3}"#, r#"{"a":true,"b":null,"c":1000.0}"#),
            (r#""{\"a\":1}""#, r#"{"a":1}"#),
            ("```json\n{\"a\":1}\n```", r#"{"a":1}"#),
            (r#"{"a":"True, \"}"}"#, r#"{"a":"True, \"}"}"#),
        ] {
            let map = read(text).map(|(map, _)| serde_json::Value::Object(map).to_string());
            assert_eq!(map.as_deref(), Some(meant), "{text}");
        }
    }

    #[test]
    fn what_is_cut_off_or_doubtful_stays_broken() {
        for text in [
            r#"{"a":"x"#,
            r#"{"a":"#,
            r#"{"a":1}{"a":2}"#,
            r#"{"a":"1","a":"2""#,
            r#"{"a":1} and then"#,
            r#"{"a":(1)}"#,
            r#"{"a":[1}"#,
            r#"{"a":1"#,
            r#"{"a":tru"#,
            r#"{'a':'x"#,
            "[1]",
            "",
            "a",
        ] {
            assert_eq!(read(text).map(|(map, _)| map), None, "{text}");
        }
        assert!(read(&"{\"a\":".repeat(200)).is_none());
    }
}
