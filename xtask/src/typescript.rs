//! The wire types as TypeScript, generated from the JSON schemas of `dunnock-proto`.

use dunnock_proto::{CommandRequest, Event, Frame, Greeting, Record, Up};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::fmt::Write as _;

const HEAD: &str = "\
// Made by `cargo xtask generate` from crates/dunnock-proto. Do not edit.

/** What a client of the live channel sends is `Up`; it receives `Greeting` first, and then \
                    `Frame`. */
";

/// Generates the whole file.
pub(crate) fn file() -> String {
    // As serialised, so that fields that are always present are not optional.
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    for make in [of::<CommandRequest>, of::<Up>, of::<Greeting>, of::<Frame>, of::<Record>] {
        make(&mut generator);
    }
    let facts = Event::schemas(&mut generator);
    let mut text = String::from(HEAD);
    let mut kinds =
        String::from("/** The body of an event, by its kind. */\nexport interface EventBodies {\n");
    for (kind, schema) in facts {
        let _ = writeln!(kinds, "  {kind}: {};", shape(schema.as_value(), 1));
    }
    for (name, schema) in generator.take_definitions(true) {
        let _ = write!(text, "\n{}{}", about(&schema, 0), declared(&name, &schema));
    }
    let _ = write!(text, "\n{kinds}}}\n");
    text.push_str(
        "\n/** An event whose kind this release knows. */\nexport type KnownEvent = { [K in keyof \
         EventBodies]: Record & { kind: K; body: EventBodies[K] } }[keyof EventBodies];\n",
    );
    text
}

const API_HEAD: &str = "\
// Made by `cargo xtask generate` from docs/reference/openapi.json. Do not edit.

import type * as proto from './proto.gen';
";

/// The types of requests and responses, from the server's OpenAPI document.
pub(crate) fn api() -> String {
    let text = std::fs::read_to_string(crate::tidy::root().join("docs/reference/openapi.json"))
        .unwrap_or_default();
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    let known = file();
    let is_known = |name: &str| {
        known.contains(&format!("export interface {name} "))
            || known.contains(&format!("export type {name} "))
    };
    let mut out = String::from(API_HEAD);
    let empty = Map::new();
    let schemas =
        document.pointer("/components/schemas").and_then(Value::as_object).unwrap_or(&empty);
    let (theirs, ours): (Vec<_>, Vec<_>) = schemas.iter().partition(|(name, _)| is_known(name));
    let body: String = ours
        .iter()
        .map(|(name, schema)| format!("\n{}{}", about(schema, 0), declared(name, schema)))
        .collect();
    let words: Vec<&str> = body.split(|c: char| !c.is_alphanumeric()).collect();
    for (name, _) in theirs.iter().filter(|(name, _)| words.contains(&name.as_str())) {
        let _ = writeln!(out, "type {name} = proto.{name};");
    }
    out + &body
}

fn of<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

fn about(schema: &Value, depth: usize) -> String {
    match schema.get("description").and_then(Value::as_str) {
        Some(words) => format!(
            "{}/** {} */\n",
            "  ".repeat(depth),
            words.replace('\n', " ").replace("*/", "* /")
        ),
        None => String::new(),
    }
}

fn declared(name: &str, schema: &Value) -> String {
    let object = schema.get("properties").is_some() && schema.get("oneOf").is_none();
    match object {
        true => format!("export interface {name} {}\n", shape(schema, 0)),
        false => format!("export type {name} = {};\n", shape(schema, 0)),
    }
}

fn union(all: &[Value], depth: usize) -> String {
    let mut each: Vec<String> = all.iter().map(|one| shape(one, depth)).collect();
    each.dedup();
    each.join(" | ")
}

/// A schema as a TypeScript type.
fn shape(schema: &Value, depth: usize) -> String {
    let Some(map) = schema.as_object() else { return "unknown".into() };
    let list = |key: &str| map.get(key).and_then(Value::as_array).map(Vec::as_slice);
    if let Some(name) = map.get("$ref").and_then(Value::as_str).and_then(|r| r.rsplit('/').next()) {
        return name.into();
    }
    if let Some(value) = map.get("const") {
        return value.to_string();
    }
    if let Some(values) = list("enum") {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(all) = list("oneOf").or_else(|| list("anyOf")) {
        return union(all, depth);
    }
    match map.get("type") {
        Some(Value::Array(types)) => {
            let each: Vec<String> =
                types.iter().map(|t| typed(t.as_str().unwrap_or_default(), map, depth)).collect();
            each.join(" | ")
        }
        Some(Value::String(name)) => typed(name, map, depth),
        _ => "unknown".into(),
    }
}

fn typed(name: &str, map: &Map<String, Value>, depth: usize) -> String {
    match name {
        "string" => "string".into(),
        "integer" | "number" => "number".into(),
        "boolean" => "boolean".into(),
        "null" => "null".into(),
        "array" => match map.get("prefixItems").and_then(Value::as_array) {
            Some(items) => format!(
                "[{}]",
                items.iter().map(|i| shape(i, depth)).collect::<Vec<_>>().join(", ")
            ),
            None => format!(
                "({})[]",
                map.get("items").map_or("unknown".into(), |items| shape(items, depth))
            ),
        },
        "object" => object(map, depth),
        _ => "unknown".into(),
    }
}

fn object(map: &Map<String, Value>, depth: usize) -> String {
    let Some(fields) = map.get("properties").and_then(Value::as_object) else {
        return match map.get("additionalProperties") {
            Some(values @ Value::Object(_)) => {
                format!("{{ [key: string]: {} }}", shape(values, depth))
            }
            _ => "{ [key: string]: never }".into(),
        };
    };
    let required = map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut text = String::from("{\n");
    for (name, schema) in fields {
        let mark = if required.iter().any(|r| r == name) { "" } else { "?" };
        let (words, blank, kind) =
            (about(schema, depth + 1), "  ".repeat(depth + 1), shape(schema, depth + 1));
        let _ = writeln!(text, "{words}{blank}{name}{mark}: {kind};");
    }
    let _ = write!(text, "{}}}", "  ".repeat(depth));
    text
}
