//! OpenAI's Chat Completions: most servers and gateways support it, each a little differently.
//!
//! Invariant: fields that servers require back (`reasoning_details`, `thinking_blocks`,
//! `extra_content`) are sent back to the model that produced them, complete or not at all; other
//! unknown fields are ignored.

use super::{Body, Outgoing, WireReader, json};
use crate::answer::{Answer, Bad};
use crate::messages::{self, AssistantPart, ChatMessage, ContentPart, Picture};
use crate::provider::Quirks;
use dunnock_ports::ToolSpec;
use dunnock_proto::{Stop, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Maximum bytes of fields to send back.
const KEEP: usize = 2 << 20;
/// Fields of a message that its server requires back.
const WANTED_BACK: &[&str] = &["reasoning_details", "thinking_blocks"];

/// A tool in the format of this wire and of Ollama's.
pub(crate) fn tool(
    offer: &ToolSpec,
    parameters: Box<RawValue>,
) -> Result<Box<RawValue>, serde_json::Error> {
    #[derive(Serialize)]
    struct Function<'a> {
        name: &'a str,
        description: &'a str,
        parameters: Box<RawValue>,
    }
    #[derive(Serialize)]
    struct ChatTool<'a> {
        r#type: &'static str,
        function: Function<'a>,
    }
    let function = Function { name: &offer.tool.name, description: &offer.description, parameters };
    serde_json::value::to_raw_value(&ChatTool { r#type: "function", function })
}

/// The request body. What stays the same between requests comes first.
pub(crate) fn body(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let preamble = outgoing.preamble;
    let mut body = Body::new(preamble.names().1);
    body.raw("stream", "true");
    if outgoing.extras() && !preamble.quirks.no_usage {
        body.raw("stream_options", r#"{"include_usage":true}"#);
    }
    if let Some(most) = preamble.max_output {
        body.field(
            if preamble.quirks.new_limit { "max_completion_tokens" } else { "max_tokens" },
            &most,
        );
    }
    if let Some(key) = outgoing.cache_key() {
        body.field("prompt_cache_key", &key);
    }
    if let Some(tools) = outgoing.tools() {
        body.raw("tools", tools);
    }
    if let Some(schema) = outgoing.schema() {
        // Not "strict", which supports neither bounds nor optional fields.
        let name = r#"{"type":"json_schema","json_schema":{"name":"plan","strict":false,"schema":"#;
        body.raw("response_format", &format!("{name}{}}}}}", schema));
    }
    body.more(outgoing.effort()).more(&preamble.body);
    let mut messages = vec![json(&ChatOutMessage::plain("system", &preamble.system))];
    for side in outgoing.sides {
        match side {
            ChatMessage::Person(bits) if preamble.quirks.merge => messages.push(merged(bits)),
            ChatMessage::Person(bits) => person(bits, &mut messages),
            ChatMessage::Model(said) => messages.push(answer(said, &preamble.quirks)),
        }
    }
    body.end_with("messages", &messages)
}

#[derive(Default, Serialize)]
struct ChatOutMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatOutCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Owned(String),
    Pieces(Vec<ChatContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Url },
}

#[derive(Serialize)]
struct Url {
    url: String,
}

#[derive(Serialize)]
struct ChatOutCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: ChatOutFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Value>,
}

#[derive(Serialize)]
struct ChatOutFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> ChatOutMessage<'a> {
    fn plain(role: &'static str, content: &'a str) -> Self {
        Self { role, content: Some(Content::Text(content)), ..Self::default() }
    }
}

pub(crate) fn data_url(picture: &Picture) -> String {
    format!("data:{};base64,{}", picture.media, picture.base64)
}

fn image(picture: &Picture) -> ChatContentPart<'static> {
    ChatContentPart::ImageUrl { image_url: Url { url: data_url(picture) } }
}

/// Writes each part as its own message; images go with the text that follows them.
fn person(bits: &[ContentPart<'_>], messages: &mut Vec<String>) {
    let mut pieces: Vec<ChatContentPart<'_>> = Vec::new();
    for bit in bits {
        match bit {
            ContentPart::Result { id, text, .. } => {
                messages.push(json(&ChatOutMessage {
                    tool_call_id: Some(id),
                    ..ChatOutMessage::plain("tool", text)
                }));
            }
            ContentPart::Picture(picture) => pieces.push(image(picture)),
            ContentPart::Text(text) if pieces.is_empty() => {
                messages.push(json(&ChatOutMessage::plain("user", text)))
            }
            ContentPart::Text(text) => {
                pieces.push(ChatContentPart::Text { text });
                let content = Some(Content::Pieces(std::mem::take(&mut pieces)));
                messages.push(json(&ChatOutMessage {
                    role: "user",
                    content,
                    ..ChatOutMessage::default()
                }));
            }
        }
    }
}

/// Writes the results first, then everything else as one message.
fn merged(bits: &[ContentPart<'_>]) -> String {
    let messages::Merged { results, pictures, words } = messages::merged(bits);
    let mut messages: Vec<String> = results
        .iter()
        .map(|messages::MergedResult { id, text, .. }| {
            json(&ChatOutMessage { tool_call_id: Some(id), ..ChatOutMessage::plain("tool", text) })
        })
        .collect();
    if !pictures.is_empty() {
        let mut pieces: Vec<ChatContentPart<'_>> = pictures.into_iter().map(image).collect();
        pieces.push(ChatContentPart::Text { text: &words });
        messages.push(json(&ChatOutMessage {
            role: "user",
            content: Some(Content::Pieces(pieces)),
            ..ChatOutMessage::default()
        }));
    } else if !words.is_empty() || messages.is_empty() {
        messages.push(json(&ChatOutMessage::plain("user", &words)));
    }
    messages.join(",")
}

fn answer(said: &[AssistantPart<'_>], quirks: &Quirks) -> String {
    let (mut text, mut thought, mut tool_calls) = (String::new(), String::new(), Vec::new());
    let mut back: Map<String, Value> = Map::new();
    for one in said {
        match one {
            AssistantPart::Text(more) => text.push_str(more),
            AssistantPart::Item(_) => {}
            AssistantPart::Reasoning { text, opaque } => {
                thought.push_str(text);
                let kept = opaque.and_then(|o| serde_json::from_str::<Map<String, Value>>(o).ok());
                back.extend(kept.into_iter().flatten());
            }
            AssistantPart::Call { id, tool, args } => {
                let function = ChatOutFunction { name: tool.as_ref(), arguments: args };
                tool_calls.push(ChatOutCall {
                    id,
                    r#type: "function",
                    function,
                    extra_content: None,
                });
            }
        }
    }
    for (at, call) in tool_calls.iter_mut().enumerate() {
        call.extra_content = back.remove(&format!("tool_calls.{at}.extra_content"));
    }
    if let Some(first) =
        tool_calls.first_mut().filter(|call| quirks.signed && call.extra_content.is_none())
    {
        // A call from another model has no signature; this value skips the check.
        let skip = json!({"google": {"thought_signature": "skip_thought_signature_validator"}});
        first.extra_content = Some(skip);
    }
    let content = (!text.is_empty() || tool_calls.is_empty()).then_some(Content::Owned(text));
    // With calls the field is required even if it is empty.
    let reasoning_content =
        (quirks.echo && !(thought.is_empty() && tool_calls.is_empty())).then_some(thought);
    let more = WANTED_BACK.iter().filter_map(|key| back.remove_entry(*key)).collect();
    json(&ChatOutMessage {
        role: "assistant",
        content,
        reasoning_content,
        tool_calls,
        tool_call_id: None,
        more,
    })
}

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<ChatUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<WireDelta>,
    /// A whole answer, from a server that does not stream.
    #[serde(default)]
    message: Option<WireDelta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct WireDelta {
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Option<Value>,
    /// A refusal in place of content; treated as the answer's text.
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ChatCall>>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct ChatCall {
    #[serde(default)]
    index: Option<usize>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<ChatFunction>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct ChatFunction {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChatUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<ChatTokenDetails>,
    completion_tokens_details: Option<ChatTokenDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChatTokenDetails {
    cached_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}

/// Whether a delta is one piece of the answer or all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Come {
    Piece,
    Whole,
}

/// Maps a call in the stream to its index in the answer.
#[derive(Debug)]
struct Slot {
    index: Option<usize>,
    at: usize,
}

/// Reads Chat Completions responses.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    calls: Vec<Slot>,
    kept: Map<String, Value>,
    kept_bytes: usize,
    dropped: BTreeSet<String>,
}

impl WireReader for Chat {
    fn take(&mut self, data: &str, answer: &mut Answer) -> Result<(), Bad> {
        if data.trim() == "[DONE]" {
            answer.closed = true;
            return Ok(());
        }
        if data.trim().is_empty() {
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|e| Bad::Garbage(e.to_string()))?;
        if let Some(error) = chunk.error.filter(|e| !e.is_null()) {
            return Err(Bad::Server(crate::request_error::words(&error)));
        }
        if let Some(usage) = chunk.usage {
            let details = |d: &Option<ChatTokenDetails>,
                           f: fn(&ChatTokenDetails) -> Option<u64>| {
                d.as_ref().and_then(f).unwrap_or(0)
            };
            answer.usage = Usage {
                input: usage.prompt_tokens.unwrap_or(0),
                cached: details(&usage.prompt_tokens_details, |d| d.cached_tokens),
                output: usage.completion_tokens.unwrap_or(0),
                reasoning: details(&usage.completion_tokens_details, |d| d.reasoning_tokens),
                written: 0,
            };
        }
        // Only one choice was requested; ignore any others.
        if let Some(choice) = chunk.choices.unwrap_or_default().into_iter().next() {
            if let Some(delta) = choice.delta {
                self.add(delta, Come::Piece, answer)?;
            }
            if let Some(message) = choice.message {
                self.add(message, Come::Whole, answer)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|r| !r.is_empty()) {
                answer.stop = Some(match reason.as_str() {
                    "stop" => Stop::End,
                    "tool_calls" | "function_call" => Stop::Calls,
                    "length" => Stop::Length,
                    "content_filter" => Stop::Filter,
                    _ => Stop::Other(reason),
                });
            }
        }
        Ok(())
    }

    fn end(&mut self, answer: &mut Answer) -> Result<(), Bad> {
        let kept = std::mem::take(&mut self.kept);
        if kept.is_empty() { Ok(()) } else { answer.seal_first(Value::Object(kept).to_string()) }
    }
}

impl Chat {
    fn add(&mut self, delta: WireDelta, come: Come, answer: &mut Answer) -> Result<(), Bad> {
        match (delta.reasoning_content, delta.reasoning) {
            (Some(text), _) => answer.reasoning(&text)?,
            (None, Some(Value::String(text))) => answer.reasoning(&text)?,
            (None, Some(_) | None) => {}
        }
        answer.text(&delta.content.map(text_of).unwrap_or_default())?;
        answer.text(&delta.refusal.unwrap_or_default())?;
        for call in delta.tool_calls.unwrap_or_default() {
            self.add_call(call, come, answer)?;
        }
        for (key, value) in delta.other {
            if WANTED_BACK.contains(&key.as_str()) && !value.is_null() {
                self.keep(&key, value);
            }
        }
        Ok(())
    }

    /// Adds a piece of a call. Servers repeat or omit indexes and omit ids, so a different id, or a
    /// name after complete arguments, begins a new call.
    fn add_call(&mut self, call: ChatCall, come: Come, answer: &mut Answer) -> Result<(), Bad> {
        let (name, arguments) = call.function.map_or((None, None), |f| (f.name, f.arguments));
        let (name, id) = (name.unwrap_or_default(), call.id.unwrap_or_default());
        let mut same = |slot: &Slot| {
            let Some(open) = answer.call(slot.at) else { return false };
            let other_id = !id.is_empty() && !open.id.is_empty() && open.id != id;
            let named = !id.is_empty() && open.id == id;
            let again = !named
                && !name.is_empty()
                && serde_json::from_str::<serde::de::IgnoredAny>(&open.args).is_ok();
            (call.index.is_none() || slot.index == call.index) && !other_id && !again
        };
        let found = match call.index {
            _ if come == Come::Whole => None,
            Some(_) => self.calls.iter().rposition(&mut same),
            None => self
                .calls
                .len()
                .checked_sub(1)
                .filter(|last| self.calls.get(*last).is_some_and(same)),
        };
        let n = match found {
            Some(n) => n,
            None => {
                self.calls.push(Slot { index: call.index, at: answer.open_call()? });
                self.calls.len() - 1
            }
        };
        let Some(at) = self.calls.get(n).map(|slot| slot.at) else { return Ok(()) };
        if let Some(open) = answer.call(at) {
            if open.id.is_empty() {
                open.id = id;
            }
            if open.name.is_empty() {
                open.name = name;
            }
        }
        match arguments {
            Some(Value::String(more)) => answer.args(at, &more)?,
            Some(Value::Null) | None => {}
            Some(whole) => answer.args(at, &whole.to_string())?,
        }
        for (key, value) in call.other {
            if key == "extra_content" && !value.is_null() {
                self.keep(&format!("tool_calls.{n}.{key}"), value);
            }
        }
        Ok(())
    }

    /// Keeps a field to send back, complete or not at all: servers reject incomplete signatures.
    fn keep(&mut self, key: &str, value: Value) {
        self.kept_bytes += value.to_string().len();
        if self.kept_bytes > KEEP || self.dropped.contains(key) {
            self.dropped.insert(key.to_owned());
            self.kept.remove(key);
            return;
        }
        match (self.kept.get_mut(key), value) {
            (Some(Value::Array(known)), Value::Array(more)) => {
                more.into_iter().for_each(|item| merge(known, item))
            }
            (_, value) => drop(self.kept.insert(key.to_owned(), value)),
        }
    }
}

/// Merges the pieces of an item, which share an index: text is concatenated, other fields are
/// replaced.
fn merge(known: &mut Vec<Value>, item: Value) {
    let same = |old: &&mut Value| {
        !item["index"].is_null()
            && old["index"] == item["index"]
            && (old["type"] == item["type"] || item["type"].is_null())
    };
    let (Some(Value::Object(old)), Value::Object(new)) = (known.iter_mut().find(same), &item)
    else {
        return known.push(item);
    };
    for (key, value) in new.clone() {
        match (old.get_mut(&key), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more))
                if ["text", "summary", "data", "thinking"].contains(&key.as_str()) =>
            {
                text.push_str(&more);
            }
            (_, value) => drop(old.insert(key, value)),
        }
    }
}

/// The text of a content field, which is a string or a list of parts with text.
fn text_of(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(items) => items.iter().filter_map(|i| i["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
