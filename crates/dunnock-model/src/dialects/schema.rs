//! The subset of JSON Schema that our own tools use: validation, and schemas with bounds.
//!
//! Schemas come only from our own code, never from a server. A test compares this validator with a
//! complete implementation.

use serde_json::{Map, Value, json};

/// Maximum lengths of strings and arrays in a bounded schema.
pub(crate) const STRING: u64 = 20_000;
const ITEMS: u64 = 50;

/// Validates a value.
///
/// # Errors
/// Where the value is invalid, and why.
pub fn check(schema: &Value, value: &Value) -> Result<(), String> {
    at(schema, value, "")
}

fn at(schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let wrong = |why: String| Err(if path.is_empty() { why } else { format!("{path}: {why}") });
    let Some(schema) = schema.as_object() else { return Ok(()) };
    if let Some(any) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
    {
        let fits = any.iter().filter(|s| at(s, value, path).is_ok()).count();
        let one = schema.contains_key("oneOf");
        if fits == 0 || (one && fits > 1) {
            return match any.iter().map(|s| at(s, value, path)).next_back() {
                Some(Err(why)) if fits == 0 => Err(why),
                _ => wrong("it does not match exactly one of the allowed forms".into()),
            };
        }
    }
    if let Some(constant) = schema.get("const")
        && constant != value
    {
        return wrong(format!("expected {constant}"));
    }
    if let Some(all) = schema.get("enum").and_then(Value::as_array)
        && !all.contains(value)
    {
        return wrong(format!("expected one of {}", Value::Array(all.clone())));
    }
    if let Some(types) = schema.get("type") {
        let types: Vec<&str> = match types {
            Value::String(one) => vec![one],
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !types.iter().any(|t| is(t, value)) {
            return wrong(format!("expected {}, not {}", types.join(" or "), kind(value)));
        }
    }
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    match value {
        Value::String(text) => {
            let chars = text.chars().count() as f64;
            if number("minLength").is_some_and(|least| chars < least) {
                return wrong("it is too short".into());
            }
            if number("maxLength").is_some_and(|most| chars > most) {
                return wrong("it is too long".into());
            }
        }
        Value::Number(n) => {
            let n = n.as_f64().unwrap_or(f64::NAN);
            if number("minimum").is_some_and(|least| n < least)
                || number("maximum").is_some_and(|most| n > most)
            {
                return wrong(format!("{n} is out of bounds"));
            }
        }
        Value::Array(items) => {
            let many = items.len() as f64;
            if number("minItems").is_some_and(|least| many < least) {
                return wrong("there are too few items".into());
            }
            if number("maxItems").is_some_and(|most| many > most) {
                return wrong("there are too many items".into());
            }
            if let Some(each) = schema.get("items") {
                for (n, item) in items.iter().enumerate() {
                    at(each, item, &format!("{path}[{n}]"))?;
                }
            }
        }
        Value::Object(map) => return object(schema, map, path),
        Value::Null | Value::Bool(_) => {}
    }
    Ok(())
}

fn object(schema: &Map<String, Value>, map: &Map<String, Value>, path: &str) -> Result<(), String> {
    let inside = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    for key in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !map.contains_key(key) {
            return Err(format!("{} is missing", inside(key)));
        }
    }
    let known = schema.get("properties").and_then(Value::as_object);
    for (key, value) in map {
        match known.and_then(|k| k.get(key)) {
            Some(property) => at(property, value, &inside(key))?,
            None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                return Err(format!("there is no argument {}", inside(key)));
            }
            None => {}
        }
    }
    Ok(())
}

fn is(wanted: &str, value: &Value) -> bool {
    match wanted {
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "number" => value.is_number(),
        other => kind(value) == other,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

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
