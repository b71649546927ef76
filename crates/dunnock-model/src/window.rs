//! The context window of a model, as reported by its server or listed in the table.

use crate::provider::Provider;
use crate::wire::Wire;
use crate::wires;
use serde_json::Value;
use std::time::Duration;

/// The largest window we request where we choose the size (Ollama), unless the user configures
/// another: a larger one costs memory.
const SET: u64 = 32_768;

/// The window to assume when the server reports no context length, and the output limit of models
/// that are not in the table.
const UNTOLD: u64 = 8_192;

/// The sources, as of 2026-11-18: developers.openai.com/api/docs/models and
/// platform.claude.com/docs/en/models. The window of newer GPT models is larger; requests beyond
/// this one cost twice as much.
///
/// Model name prefix, context window (for servers that do not report it), and the longest output
/// that all matching models accept. Longer prefixes first.
const TABLE: &[(&str, u64, u64)] = &[
    ("gpt-6", 272_000, 32_000),
    ("gpt-5", 272_000, 32_000),
    ("gpt-4.1", 1_000_000, 32_000),
    ("gpt-4o", 128_000, 16_000),
    ("o3", 200_000, 32_000),
    ("o4", 200_000, 32_000),
    ("claude-opus-5", 1_000_000, 32_000),
    ("claude-sonnet-5", 1_000_000, 32_000),
    ("claude-haiku-5", 1_000_000, 32_000),
    ("claude-fable-5", 1_000_000, 32_000),
    ("claude-opus-4-7", 1_000_000, 32_000),
    ("claude-", 200_000, 32_000),
    ("gemini-", 1_000_000, 32_000),
    ("deepseek-", 128_000, 8_000),
    ("mistral-", 128_000, 8_000),
    ("codestral-", 128_000, 8_000),
    ("devstral-", 128_000, 8_000),
];

/// The window that the server reports, or the table's for well-known providers.
pub(crate) async fn of(
    client: &reqwest::Client,
    provider: &Provider,
    wire: Wire,
    model: &str,
) -> Option<u64> {
    if wire == Wire::Ollama {
        let ask = wires::request(client, provider, wire, reqwest::Method::POST, Some("/api/show"));
        let shown = json(ask.body(serde_json::json!({ "model": model }).to_string())).await;
        // Never left to the server: its default is small, and it truncates silently.
        return Some(shown.as_ref().and_then(trained).map_or(UNTOLD, |trained| trained.min(SET)));
    }
    if provider.is_known() {
        return listed(model).map(|(_, window, _)| *window);
    }
    let root = provider.root(Wire::Ollama);
    let get = |url: String| json(wires::authorised(client.get(url), provider, wire));
    let listed =
        json(wires::request(client, provider, wire, reqwest::Method::GET, Some("/models"))).await;
    if let Some(window) = listed.as_ref().and_then(|list| listed_window(list, model)) {
        return Some(window);
    }
    if let Some(window) = get(format!("{root}/props")).await.as_ref().and_then(props_window) {
        return Some(window);
    }
    let studio = get(format!("{root}/api/v0/models/{model}")).await?;
    number(&studio["loaded_context_length"]).or_else(|| number(&studio["max_context_length"]))
}

fn listed(model: &str) -> Option<&'static (&'static str, u64, u64)> {
    let bare = model.rsplit('/').next().unwrap_or(model);
    TABLE.iter().find(|(begin, _, _)| bare.starts_with(begin))
}

/// The output limit to request where one is required and none is configured.
pub(crate) fn longest(model: &str) -> u64 {
    listed(model).map_or(UNTOLD, |(_, _, longest)| *longest)
}

async fn json(request: reqwest::RequestBuilder) -> Option<Value> {
    let response = request.timeout(Duration::from_millis(1500)).send().await.ok()?;
    if response.status() != 200 {
        return None;
    }
    serde_json::from_slice(&crate::ask::some_of(response, Duration::from_millis(1500)).await).ok()
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().filter(|n| (256..=100_000_000).contains(n))
}

/// The key in `model_info` is prefixed with the architecture, such as `llama.context_length`.
fn trained(shown: &Value) -> Option<u64> {
    let info = shown["model_info"].as_object()?;
    info.iter().find_map(|(key, value)| number(value).filter(|_| key.ends_with(".context_length")))
}

fn listed_window(list: &Value, model: &str) -> Option<u64> {
    let one = list["data"].as_array()?.iter().find(|m| m["id"] == model)?;
    ["max_model_len", "context_length", "context_window"].iter().find_map(|key| number(&one[*key]))
}

fn props_window(props: &Value) -> Option<u64> {
    number(&props["default_generation_settings"]["n_ctx"]).or_else(|| number(&props["n_ctx"]))
}
