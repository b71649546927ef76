//! Wires: the request and response formats of servers, one file each.
//!
//! A wire renders a conversation into a request body ([`Wire::body`]) and reads the response into
//! an [`Answer`] ([`Reader`]). Addresses, headers and framing are here; the quirks of a server are
//! in its provider's data.
//!
//! Invariant: each request begins with the bytes of the previous one, apart from cache markers.
//! Invariant: unknown fields and events are ignored or preserved, never an error.

mod anthropic;
mod chat;
mod ollama;
mod responses;

pub(crate) use anthropic::output_limit as anthropic_limit;

use crate::answer::{Answer, Bad};
use crate::messages::ChatMessage;
use crate::preamble::RecordedPreamble;
use crate::provider::{Auth, Provider};
use crate::wire::Wire;
use dunnock_ports::ToolSpec;
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// How a response is split into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON object per line.
    Lines,
}

/// A request to render.
pub(crate) struct Outgoing<'a> {
    pub(crate) preamble: &'a RecordedPreamble,
    pub(crate) sides: &'a [ChatMessage<'a>],
    /// The level of optional features to omit, because the model rejects them: 1 reasoning
    /// summaries, cache keys and usage in streams; 2 also encrypted reasoning and the schema.
    pub(crate) bare: u8,
    /// The server refused a part of an earlier answer, so that all answers are written anew.
    pub(crate) anew: bool,
    /// Whether the reasoning effort is sent; not if the server refused it.
    pub(crate) with_effort: bool,
    /// The session that it belongs to, if it is one of its steps.
    pub(crate) session: Option<&'a str>,
}

/// Which optional features to send, decided here for all wires.
impl Outgoing<'_> {
    /// The tools, unless the list is empty.
    fn tools(&self) -> Option<&str> {
        Some(self.preamble.tools.get()).filter(|tools| *tools != "[]")
    }
    /// The schema that constrains the answer.
    fn schema(&self) -> Option<&str> {
        self.preamble.schema.as_ref().filter(|_| self.bare < 2).map(|schema| schema.get())
    }
    /// The key by which the server finds its cache again.
    fn cache_key(&self) -> Option<&str> {
        self.session.filter(|_| self.preamble.cache_key && self.bare < 1)
    }
    /// The fields that ask for a reasoning effort.
    fn effort(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.preamble.effort.iter().filter(|_| self.with_effort)
    }
    /// Whether encrypted reasoning is requested and sent back.
    fn sealed(&self) -> bool {
        self.bare < 2
    }
    /// Whether the items of an answer can go back as they came. If one is left out, servers refuse
    /// the ids of the others.
    pub(crate) fn as_came(items: &[Arc<str>], bare: u8) -> bool {
        responses::all_wanted_back(items, bare < 2)
    }
    /// Whether reasoning summaries, cache keys and usage in streams are requested.
    fn extras(&self) -> bool {
        self.bare < 1
    }
}

/// Reads the response of a wire.
pub(crate) trait WireReader: Send + fmt::Debug {
    /// Processes one event.
    fn take(&mut self, data: &str, answer: &mut Answer) -> Result<(), Bad>;
    /// The stream is over.
    fn end(&mut self, _answer: &mut Answer) -> Result<(), Bad> {
        Ok(())
    }
}

impl Wire {
    /// All wires.
    pub const ALL: &'static [Self] = &[Self::Chat, Self::Responses, Self::Anthropic, Self::Ollama];

    /// The usual header for the key.
    #[must_use]
    pub fn auth(self) -> Auth {
        match self {
            Self::Anthropic => Auth::XApiKey,
            Self::Chat | Self::Responses | Self::Ollama => Auth::Bearer,
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Responses => "/responses",
            Self::Anthropic => "/messages",
            Self::Ollama => "/api/chat",
        }
    }

    pub(crate) fn framing(self) -> Framing {
        match self {
            Self::Chat | Self::Responses | Self::Anthropic => Framing::Events,
            Self::Ollama => Framing::Lines,
        }
    }

    /// The path of the list of models.
    pub(crate) fn models_path(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses | Self::Anthropic => "/models",
            Self::Ollama => "/api/tags",
        }
    }

    /// The tools in the format of this wire.
    pub(crate) fn tools(
        self,
        offers: &[ToolSpec],
        freeform: bool,
    ) -> Result<Box<RawValue>, String> {
        let tool = |offer: &ToolSpec| -> Result<Box<RawValue>, serde_json::Error> {
            let schema: Box<RawValue> = serde_json::from_str(&offer.schema)?;
            match self {
                Self::Chat | Self::Ollama => chat::tool(offer, schema),
                Self::Responses if freeform && offer.tool.name == "apply_patch" => {
                    responses::patch_tool(offer)
                }
                Self::Responses => responses::tool(offer, schema),
                Self::Anthropic => anthropic::tool(offer, schema),
            }
        };
        let all: Result<Vec<_>, _> = offers.iter().map(tool).collect();
        all.and_then(|all| serde_json::value::to_raw_value(&all)).map_err(|e| e.to_string())
    }

    pub(crate) fn body(self, outgoing: &Outgoing<'_>) -> Vec<u8> {
        match self {
            Self::Chat => chat::body(outgoing),
            Self::Responses => responses::body(outgoing),
            Self::Anthropic => anthropic::body(outgoing),
            Self::Ollama => ollama::body(outgoing),
        }
    }

    pub(crate) fn reader(self) -> Box<dyn WireReader> {
        match self {
            Self::Chat => Box::<chat::Chat>::default(),
            Self::Responses => Box::<responses::Responses>::default(),
            Self::Anthropic => Box::<anthropic::Anthropic>::default(),
            Self::Ollama => Box::<ollama::Ollama>::default(),
        }
    }
}

/// A request to a provider, with address, key and headers, but no body.
pub(crate) fn request(
    client: &reqwest::Client,
    provider: &Provider,
    wire: Wire,
    method: reqwest::Method,
    path: Option<&str>,
) -> reqwest::RequestBuilder {
    let url = format!("{}{}", provider.root(wire), path.unwrap_or_else(|| wire.path()));
    authorised(client.request(method, url), provider, wire)
}

/// Adds the key and the headers that a provider requires.
pub(crate) fn authorised(
    mut request: reqwest::RequestBuilder,
    provider: &Provider,
    wire: Wire,
) -> reqwest::RequestBuilder {
    if wire == Wire::Anthropic {
        request = request.header("anthropic-version", "2023-06-01");
    }
    if let Some(key) = &provider.key {
        let key = key.expose_secret();
        let mut value = reqwest::header::HeaderValue::from_str(key)
            .unwrap_or_else(|_| reqwest::header::HeaderValue::from_static("not-a-key"));
        value.set_sensitive(true);
        request = match provider.auth {
            Auth::Bearer => request.bearer_auth(key),
            Auth::ApiKey => request.header("api-key", value),
            Auth::XApiKey => request.header("x-api-key", value),
        };
    }
    request
}

/// A JSON object written field by field, so that the order of fields is fixed.
pub(crate) struct Body(Vec<(String, String)>);

impl Body {
    pub(crate) fn new(model: &str) -> Self {
        Self(vec![("model".into(), Value::from(model).to_string())])
    }
    /// Adds a field whose value is already JSON.
    pub(crate) fn raw(&mut self, key: &str, value: &str) -> &mut Self {
        self.0.push((key.into(), value.into()));
        self
    }
    pub(crate) fn field(&mut self, key: &str, value: &impl Serialize) -> &mut Self {
        self.raw(key, &json(value))
    }
    /// Adds fields of the preamble: objects are merged, other values replace ours.
    pub(crate) fn more<'v>(
        &mut self,
        more: impl IntoIterator<Item = (&'v String, &'v Value)>,
    ) -> &mut Self {
        for (key, value) in more {
            let Some((_, ours)) = self.0.iter_mut().find(|(known, _)| known == key) else {
                self.raw(key, &value.to_string());
                continue;
            };
            *ours = match (serde_json::from_str::<Value>(ours), value) {
                (Ok(Value::Object(mut both)), Value::Object(theirs)) => {
                    both.extend(theirs.clone());
                    Value::Object(both).to_string()
                }
                _ => value.to_string(),
            };
        }
        self
    }
    /// Ends the body with a list to which later requests only append.
    pub(crate) fn end_with(&mut self, key: &str, items: &[String]) -> Vec<u8> {
        let field = |(key, value): (String, String)| format!("{}:{value}", Value::from(key));
        let fields: Vec<String> = std::mem::take(&mut self.0).into_iter().map(field).collect();
        format!("{{{},\"{key}\":[{}]}}", fields.join(","), items.join(",")).into_bytes()
    }
}

/// Serialises a value whose serialisation cannot fail.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
