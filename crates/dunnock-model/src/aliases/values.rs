//! Values as models write them, in the form that our tools take.

use super::normal;
use super::our_tools::ArgumentKind;
use serde_json::{Value, json};

/// A whole number, also as text.
pub(super) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let number = number.as_f64()?;
            let whole = number.fract() == 0.0 && (0.0..=1e15).contains(&number);
            // Whole and within the range of numbers that both types represent.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
            whole.then_some(number as u64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        Value::Array(one) => match one.as_slice() {
            [one] if !one.is_array() => number(one),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    }
}

pub(super) fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" => Some(true),
            "false" | "no" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The value in the form of an argument of this kind.
pub(super) fn coerced(kind: ArgumentKind, value: &Value) -> Option<Value> {
    match kind {
        ArgumentKind::Text => text(value).map(Value::from),
        ArgumentKind::Number => number(value).map(Value::from),
        ArgumentKind::Flag => flag(value).map(Value::from),
        ArgumentKind::Texts => match value {
            Value::Array(items) => {
                let texts: Option<Vec<Value>> =
                    items.iter().map(|item| text(item).map(Value::from)).collect();
                texts.map(Value::Array)
            }
            _ => text(value).map(|text| json!([text])),
        },
        ArgumentKind::Command => match value {
            Value::String(line) => match serde_json::from_str(line) {
                // A list of arguments, encoded as text.
                Ok(Value::Array(words)) if is_words(&words) => Some(Value::Array(words)),
                _ => Some(value.clone()),
            },
            Value::Array(words) if is_words(words) => match words.as_slice() {
                // A line as the only word. The path of a program may have spaces.
                [Value::String(line)]
                    if line.split_once(' ').is_some_and(|(first, _)| !first.contains('/')) =>
                {
                    Some(line.as_str().into())
                }
                _ => Some(value.clone()),
            },
            _ => None,
        },
        ArgumentKind::Object => match value {
            Value::Object(_) => Some(value.clone()),
            // An object, encoded as text.
            Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object),
            _ => None,
        },
        ArgumentKind::Steps => steps(value),
    }
}

fn is_words(words: &[Value]) -> bool {
    !words.is_empty() && words.iter().all(Value::is_string)
}

pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(one) => match one.as_slice() {
            [Value::String(text)] => Some(text.clone()),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    }
}

/// The steps of a plan, as several harnesses write them.
fn steps(value: &Value) -> Option<Value> {
    let items = match value {
        Value::Object(_) => vec![value.clone()],
        Value::String(text) => match list(value) {
            Some(items) => items,
            None => return checklist(text),
        },
        _ => list(value)?,
    };
    let mut steps = Vec::new();
    for item in &items {
        let (text, state) = match item {
            Value::String(text) => (text.clone(), "pending"),
            Value::Object(step) => {
                let field = |names: &[&str]| {
                    names.iter().find_map(|name| step.get(*name)).and_then(Value::as_str)
                };
                let text =
                    field(&["text", "step", "content", "title", "task", "name", "description"])?;
                let state = field(&["state", "status"]).unwrap_or("pending");
                let state = match normal(state).as_str() {
                    "pending" | "todo" | "notstarted" | "open" => "pending",
                    "active" | "inprogress" | "doing" | "current" => "active",
                    "done" | "completed" | "complete" | "finished" => "done",
                    // It is no longer part of the plan.
                    "cancelled" | "canceled" | "skipped" => continue,
                    _ => return None,
                };
                (text.to_owned(), state)
            }
            _ => return None,
        };
        steps.push(json!({ "text": text, "state": state }));
    }
    Some(Value::Array(steps))
}

/// The steps of a list such as `[x] done`, `[-] begun`, `- [ ] open`.
fn checklist(text: &str) -> Option<Value> {
    let step = |line: &str| {
        let line = line.trim().trim_start_matches(['-', '*']).trim_start();
        let (mark, text) = line.strip_prefix('[')?.split_once(']')?;
        let state = match mark {
            "" | " " => "pending",
            "-" | "~" | ">" => "active",
            "x" | "X" => "done",
            _ => return None,
        };
        Some(json!({ "text": text.trim(), "state": state }))
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let steps: Vec<Value> = lines.map(step).collect::<Option<_>>()?;
    (!steps.is_empty()).then_some(Value::Array(steps))
}

/// A list, also as text.
pub(super) fn list(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items.clone()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Array(items)) => Some(items),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Answers to choose from: texts, or objects with a text.
pub(super) fn choices(value: &Value) -> Option<Value> {
    let Some(items) = list(value) else { return coerced(ArgumentKind::Texts, value) };
    let one = |item: &Value| match item {
        Value::Object(map) => {
            let text = ["label", "text", "answer", "value"].iter().find_map(|name| map.get(*name));
            text.and_then(Value::as_str).map(Value::from)
        }
        other => text(other).map(Value::from),
    };
    items.iter().map(one).collect::<Option<Vec<Value>>>().map(Value::Array)
}

/// A value as messages show it.
pub(super) fn short(value: &Value) -> String {
    let text = value.to_string();
    let end = text.floor_char_boundary(60);
    if end < text.len() { format!("{}…", text.get(..end).unwrap_or_default()) } else { text }
}

pub(super) fn short_text(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.get(..text.floor_char_boundary(60)).unwrap_or_default().to_owned()
}
