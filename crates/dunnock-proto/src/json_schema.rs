//! Checks values against the subset of JSON Schema that tools use.
//!
//! What it does not know is not checked: a value that fits is never refused. A test compares it
//! with a complete implementation.

use serde_json::{Map, Value};
use std::cell::Cell;

/// How deep a schema is followed: servers write some of them, and references may form a circle.
const MOST_DEPTH: u8 = 60;
/// How many schemas are looked at: those of a server may refer to each other in many ways.
const MOST_STEPS: u32 = 200_000;

/// Validates a value.
///
/// # Errors
/// Where the value is invalid, and why.
pub fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let steps = Cell::new(MOST_STEPS);
    at(Place { root: schema, depth: 0, steps: &steps }, schema, value, "")
}

/// Where a check is: references are looked up in the whole schema, and end somewhere.
#[derive(Clone, Copy)]
struct Place<'a> {
    root: &'a Value,
    depth: u8,
    /// How many more schemas are looked at in the whole check.
    steps: &'a Cell<u32>,
}

impl<'a> Place<'a> {
    fn below(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// The schema that a reference names, if it is in the same document.
    fn referenced(self, name: &str) -> Option<&'a Value> {
        self.root.pointer(name.strip_prefix('#')?)
    }
}

fn at(place: Place<'_>, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let left = place.steps.get();
    if place.depth > MOST_DEPTH || left == 0 {
        return Ok(());
    }
    place.steps.set(left - 1);
    let place = place.below();
    let wrong = |why: String| Err(if path.is_empty() { why } else { format!("{path}: {why}") });
    let Some(schema) = schema.as_object() else { return Ok(()) };
    if let Some(name) = schema.get("$ref").and_then(Value::as_str)
        && let Some(schema) = place.referenced(name)
    {
        at(place, schema, value, path)?;
    }
    for schema in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        at(place, schema, value, path)?;
    }
    if let Some(any) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
    {
        let fits = any.iter().filter(|s| at(place, s, value, path).is_ok()).count();
        let one = schema.contains_key("oneOf");
        if fits == 0 || (one && fits > 1) {
            return match any.iter().map(|s| at(place, s, value, path)).next_back() {
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
                    at(place, each, item, &format!("{path}[{n}]"))?;
                }
            }
        }
        Value::Object(map) => return object(place, schema, map, path),
        Value::Null | Value::Bool(_) => {}
    }
    Ok(())
}

fn object(
    place: Place<'_>,
    schema: &Map<String, Value>,
    map: &Map<String, Value>,
    path: &str,
) -> Result<(), String> {
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
            Some(property) => at(place, property, value, &inside(key))?,
            None if schema.get("additionalProperties") == Some(&Value::Bool(false))
                && !schema.contains_key("patternProperties") =>
            {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A server's schema once took longer than anybody waits.
    #[test]
    fn schemas_that_refer_to_each_other_in_many_ways_end() {
        for kind in ["anyOf", "allOf", "oneOf"] {
            let again: Vec<Value> = (0..10).map(|_| json!({"$ref": "#/$defs/a"})).collect();
            let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {kind: again}}});
            let _ = check(&schema, &json!({}));
        }
        assert!(check(&json!({"$ref": "#"}), &json!(1)).is_ok());
        let open = json!({"additionalProperties": false, "patternProperties": {"^x": {}}});
        assert!(check(&open, &json!({"xa": 1})).is_ok());
    }
}
