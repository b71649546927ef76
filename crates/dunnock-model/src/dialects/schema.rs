//! Schemas of our own tools with and without bounds, and in words.

pub use dunnock_proto::check_schema as check;
use serde_json::{Map, Value, json};

/// Maximum lengths of strings and arrays in a bounded schema.
pub(crate) const STRING: u64 = 20_000;
const ITEMS: u64 = 50;

/// The schema with a bound on every string and array, and no string longer than `longest`: small
/// models loop inside unbounded ones.
#[must_use]
pub fn bounded(schema: &Value, longest: u64) -> Value {
    let least =
        |bound: &Value, most: u64| json!(bound.as_u64().map_or(most, |bound| bound.min(most)));
    match schema {
        Value::Object(map) => {
            let mut map: Map<String, Value> =
                map.iter().map(|(k, v)| (k.clone(), bounded(v, longest))).collect();
            let free = !map.contains_key("enum") && !map.contains_key("const");
            let bound = match map.get("type").and_then(Value::as_str) {
                Some("string") if free => Some(("maxLength", longest)),
                Some("array") => Some(("maxItems", ITEMS)),
                _ => None,
            };
            if let Some((key, most)) = bound {
                let bound = least(map.get(key).unwrap_or(&Value::Null), most);
                map.insert(key.into(), bound);
            }
            Value::Object(map)
        }
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| bounded(item, longest)).collect())
        }
        other => other.clone(),
    }
}

/// The schema without its bounds.
#[must_use]
pub fn unbounded(schema: &Value) -> Value {
    const BOUNDS: &[&str] =
        &["minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"];
    match schema {
        Value::Object(map) => {
            let kept = map
                .iter()
                .filter(|(key, value)| !(BOUNDS.contains(&key.as_str()) && value.is_number()));
            Value::Object(kept.map(|(k, v)| (k.clone(), unbounded(v))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(unbounded).collect()),
        other => other.clone(),
    }
}

/// Describes the properties of an object, one per line: shorter than a schema, and easier for small
/// models.
#[must_use]
pub fn describe(schema: &Value) -> String {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let line = |(key, property): (&String, &Value)| {
        let optional = if required.contains(&key.as_str()) { "" } else { ", optional" };
        let about = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let about = if about.is_empty() { String::new() } else { format!(": {about}") };
        format!("- {key} ({}{optional}){about}", form(property))
    };
    let lines: Vec<String> = properties.into_iter().flatten().map(line).collect();
    if lines.is_empty() { "(no arguments)".into() } else { lines.join("\n") }
}

/// Describes the type of a value in a few words.
fn form(schema: &Value) -> String {
    if let Some(all) = schema.get("enum").and_then(Value::as_array) {
        return all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    }
    if let Some(any) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
    {
        return any.iter().map(form).collect::<Vec<_>>().join(" or ");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => {
            format!("list of {}", schema.get("items").map_or_else(|| "anything".into(), form))
        }
        Some("object") => {
            let keys = schema.get("properties").and_then(Value::as_object);
            let keys: Vec<String> =
                keys.into_iter().flatten().map(|(k, v)| format!("{k}: {}", form(v))).collect();
            format!("{{{}}}", keys.join(", "))
        }
        Some(one) => one.to_owned(),
        None => "anything".into(),
    }
}
