//! The OpenAPI document, generated from the route table and its types.

use crate::answer::{ApiError, ErrorBody};
use crate::routes_table::{Make, ROUTES, Route};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Any object.
#[derive(JsonSchema)]
pub(crate) struct Any {}

pub(crate) async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document()).into_response()
}

pub(crate) async fn nothing() -> ApiError {
    ApiError::missing("such page; GET /api/openapi.json lists the API")
}

pub(crate) async fn no_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed; see GET /api/openapi.json")
}

/// The document, as text.
#[must_use]
pub fn document() -> String {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.definitions_path = "/components/schemas".into();
        s.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.to_lowercase()] = operation(&mut generator, route);
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Dunnock",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions of a coding agent, over HTTP. Generated from the code by `cargo xtask generate`.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
            "schemas": generator.take_definitions(true),
        },
    });
    bound(&mut document);
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n" // our own value cannot fail
}

fn operation(generator: &mut SchemaGenerator, route: &Route) -> Value {
    let said = |generator: &mut SchemaGenerator, about: &str, make: Make| json!({ "description": about, "content": { "application/json": { "schema": make(generator) } } });
    let (status, good) = route.good;
    let success = match good {
        // Channel messages are not responses: their types are only added to the schemas.
        Some(make) if status == 101 => {
            make(generator);
            json!({ "description": "Switches to the WebSocket protocol." })
        }
        Some(make) => said(generator, "Done.", make),
        None if status == 101 => json!({ "description": "Switches to the WebSocket protocol." }),
        None => json!({
            "description": "The bytes.",
            "content": { "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } },
        }),
    };
    let mut responses = Map::from_iter([(status.to_string(), success)]);
    for (status, make) in route.bad {
        let about = match status {
            400 => "The request is invalid.",
            404 => "Not found.",
            409 => "It conflicts with the current state.",
            426 => "A WebSocket upgrade is required.",
            429 => "Too many wrong codes or passwords; wait.",
            _ => "The sessions cannot be used right now.",
        };
        responses.insert(status.to_string(), said(generator, about, *make));
    }
    // Responses of the guard. The stateless service has one form for all of them.
    let refused: Make = match route.path {
        "/api/agent" => |g| g.subschema_for::<crate::AgentAnswer>(),
        _ => |g| g.subschema_for::<ErrorBody>(),
    };
    let mut guards = vec![
        (401, "Not authenticated, or the credentials are wrong."),
        (
            403,
            "The Origin or the page's token is missing or wrong, or there were too many wrong \
             tokens.",
        ),
    ];
    if route.body.is_some() && route.path != "/api/agent" {
        guards.extend([
            (413, "The body is too large."),
            (415, "Not JSON."),
            (408, "The body took too long."),
        ]);
    }
    for (status, about) in guards {
        let response = said(generator, about, refused);
        responses.entry(status.to_string()).or_insert(response);
    }
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(named)
        .collect();
    if let Some(make) = route.query {
        parameters.extend(query(generator, make));
    }
    let mut operation = json!({ "summary": route.about, "responses": responses });
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(make) = route.body {
        operation["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": make(generator) } } });
    }
    if route.open {
        operation["security"] = json!([]);
    }
    operation
}

/// A path parameter.
fn named(name: &str) -> Value {
    let pattern = if name == "hash" { "^[0-9a-f]{64}$" } else { "^[a-z0-9]{8,40}$" };
    json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "pattern": pattern } })
}

/// The fields of a query, each as a parameter.
fn query(generator: &mut SchemaGenerator, make: Make) -> Vec<Value> {
    let name = make(generator)
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|r| r.rsplit('/').next())
        .map(str::to_owned);
    let whole = name.and_then(|name| generator.definitions_mut().remove(&name)).unwrap_or_default();
    let fields = whole.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let parameter = |(name, mut schema): (String, Value)| {
        let about = schema.as_object_mut().and_then(|s| s.remove("description"));
        // Optional parameters are omitted: a query string cannot express null.
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|t| t != "null");
            if let [one] = types.as_slice() {
                schema["type"] = one.clone();
            }
        }
        json!({ "name": name, "in": "query", "required": false, "description": about, "schema": schema })
    };
    fields.into_iter().map(parameter).collect()
}

/// Adds the maximum of each number format, for clients that do not know the formats.
fn bound(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let most = match map.get("format").and_then(Value::as_str) {
                Some("uint64" | "uint" | "int64") => Some(json!(9_007_199_254_740_991u64)),
                Some("uint32") => Some(json!(u32::MAX)),
                _ => None,
            };
            if let Some(most) = most {
                map.entry("maximum").or_insert(most);
            }
            map.values_mut().for_each(bound);
        }
        Value::Array(items) => items.iter_mut().for_each(bound),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
