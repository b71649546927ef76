//! OpenAI's Chat Completions: what goes out, byte for byte, and what comes back, piece by piece.
//!
//! Invariant: a message is rendered from itself alone, so that each request begins with the bytes of the one before.
//! Invariant: what a server sends and this file does not know is kept beside the answer, not dropped.

use crate::head::Recorded;
use dunnock_core::ports::Offer;
use dunnock_proto::{CallPart, Message, Part, Stop, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How much of what is not known is kept.
const KEEP_UNKNOWN: usize = 64 << 10;
/// Calls in one answer.
const MOST_CALLS: usize = 2_000;

/// The tools, as this wire has them.
pub(crate) fn tools(offers: &[Offer]) -> Result<Box<RawValue>, String> {
    #[derive(Serialize)]
    struct Function<'a> {
        name: &'a str,
        description: &'a str,
        parameters: Box<RawValue>,
    }
    #[derive(Serialize)]
    struct Tool<'a> {
        r#type: &'static str,
        function: Function<'a>,
    }
    let tool = |offer: &'_ Offer| -> Result<Box<RawValue>, serde_json::Error> {
        let parameters = serde_json::from_str(&offer.schema)?;
        let function = Function { name: &offer.tool.name, description: &offer.description, parameters };
        serde_json::value::to_raw_value(&Tool { r#type: "function", function })
    };
    let all: Result<Vec<_>, _> = offers.iter().map(tool).collect();
    all.and_then(|all| serde_json::value::to_raw_value(&all)).map_err(|e| e.to_string())
}

/// A request. Everything that stays the same comes first.
pub(crate) fn body(head: &Recorded, messages: &[Message]) -> Vec<u8> {
    let (_, model) = head.names();
    let mut out = Vec::with_capacity(head.system.len() + head.tools.get().len() + messages.len() * 512);
    out.extend_from_slice(br#"{"model":"#);
    out.extend_from_slice(json!(model).to_string().as_bytes());
    out.extend_from_slice(br#","stream":true,"stream_options":{"include_usage":true}"#);
    if head.tools.get() != "[]" {
        out.extend_from_slice(br#","tools":"#);
        out.extend_from_slice(head.tools.get().as_bytes());
    }
    out.extend_from_slice(br#","messages":["#);
    write(&mut out, &Out::plain("system", &head.system));
    for message in messages {
        out.push(b',');
        render(&mut out, message);
    }
    out.extend_from_slice(b"]}");
    out
}

#[derive(Serialize)]
struct Out<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OutCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct OutCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: OutFunction<'a>,
}

#[derive(Serialize)]
struct OutFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> Out<'a> {
    fn plain(role: &'static str, content: &'a str) -> Self {
        Self { role, content: Some(content), tool_calls: Vec::new(), tool_call_id: None }
    }
}

fn write(out: &mut Vec<u8>, message: &Out<'_>) {
    // Plain structs with text keys: there is nothing to fail.
    out.extend_from_slice(&serde_json::to_vec(message).unwrap_or_default());
}

fn render(out: &mut Vec<u8>, message: &Message) {
    match message {
        Message::User { text, .. } => write(out, &Out::plain("user", text)),
        Message::Notice { text } => {
            write(out, &Out::plain("user", &format!("[from the harness, not the person]\n{text}")))
        }
        Message::Result { id, text, .. } => {
            write(out, &Out { tool_call_id: Some(id), ..Out::plain("tool", text) });
        }
        Message::Assistant { parts, cut, .. } => {
            let mut said = Part::words(parts);
            if *cut {
                said.push_str("\n[cut off here]");
            }
            let tool_calls: Vec<OutCall<'_>> = Part::calls(parts).map(|call| out_call(call)).collect();
            // No message without content: a call needs none, an empty answer is an empty text.
            let content = (!said.is_empty() || tool_calls.is_empty()).then_some(said.as_str());
            write(out, &Out { role: "assistant", content, tool_calls, tool_call_id: None });
        }
    }
}

fn out_call(call: &CallPart) -> OutCall<'_> {
    // Servers parse these again; some end the request at arguments that are not JSON. The log keeps what was written.
    let arguments = if call.broken().is_some() { "{}" } else { &call.args };
    OutCall { id: &call.id, r#type: "function", function: OutFunction { name: &call.tool, arguments } }
}

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<WireUsage>,
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
    /// Words instead of an answer: they are one.
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<WireCall>>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct WireCall {
    #[serde(default)]
    index: Option<usize>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<WireFunction>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct WireFunction {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}

/// How a part of an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Come {
    Piece,
    Whole,
}

/// What a piece of a stream brought that can be shown at once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) reasoning: String,
}

#[derive(Debug, Default)]
struct OpenCall {
    index: Option<usize>,
    id: String,
    name: String,
    args: String,
}

/// An answer as it comes together.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    reasoning: String,
    calls: Vec<OpenCall>,
    stop: Option<Stop>,
    pub(crate) usage: Usage,
    unknown: Map<String, Value>,
    unknown_bytes: usize,
    /// The server said that this was all.
    pub(crate) closed: bool,
    /// Pieces of it could have been shown.
    pub(crate) begun: bool,
}

/// Why a piece could not be taken in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// It is not what this wire sends.
    Garbage(String),
    /// The server says that it failed.
    Server(String),
}

impl Answer {
    /// Takes one event in: what can be shown of it.
    pub(crate) fn take(&mut self, data: &str) -> Result<Piece, Bad> {
        if data.trim() == "[DONE]" {
            self.closed = true;
            return Ok(Piece::default());
        }
        if data.trim().is_empty() {
            return Ok(Piece::default());
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|e| Bad::Garbage(e.to_string()))?;
        if let Some(error) = chunk.error.filter(|e| !e.is_null()) {
            return Err(Bad::Server(crate::trouble::words(&error)));
        }
        if let Some(usage) = chunk.usage {
            let details = |d: &Option<Details>, f: fn(&Details) -> Option<u64>| d.as_ref().and_then(f).unwrap_or(0);
            self.usage = Usage {
                input: usage.prompt_tokens.unwrap_or(0),
                cached: details(&usage.prompt_tokens_details, |d| d.cached_tokens),
                output: usage.completion_tokens.unwrap_or(0),
                reasoning: details(&usage.completion_tokens_details, |d| d.reasoning_tokens),
            };
        }
        let mut piece = Piece::default();
        // One answer was asked for: a second choice is none of ours.
        if let Some(choice) = chunk.choices.into_iter().next() {
            if let Some(delta) = choice.delta {
                self.add(delta, Come::Piece, &mut piece)?;
            }
            if let Some(message) = choice.message {
                self.add(message, Come::Whole, &mut piece)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|r| !r.is_empty()) {
                self.stop = Some(match reason.as_str() {
                    "stop" => Stop::End,
                    "tool_calls" | "function_call" => Stop::Calls,
                    "length" => Stop::Length,
                    "content_filter" => Stop::Filter,
                    _ => Stop::Other(reason),
                });
            }
        }
        Ok(piece)
    }

    fn add(&mut self, delta: WireDelta, come: Come, piece: &mut Piece) -> Result<(), Bad> {
        piece.text = delta.content.map(text_of).unwrap_or_default() + &delta.refusal.unwrap_or_default();
        piece.reasoning = match (delta.reasoning_content, delta.reasoning) {
            (Some(text), _) => text,
            (None, Some(Value::String(text))) => text,
            (None, Some(other)) => {
                self.keep("reasoning", other);
                String::new()
            }
            (None, None) => String::new(),
        };
        self.text.push_str(&piece.text);
        self.reasoning.push_str(&piece.reasoning);
        for call in delta.tool_calls.unwrap_or_default() {
            self.add_call(call, come)?;
        }
        self.begun |= !piece.text.is_empty() || !piece.reasoning.is_empty() || !self.calls.is_empty();
        for (key, value) in delta.other {
            if key != "role" && !value.is_null() {
                self.keep(&key, value);
            }
        }
        Ok(())
    }

    /// Servers repeat indexes, leave them out, and leave ids out: another id, or a name after whole arguments, begins a
    /// new call.
    fn add_call(&mut self, call: WireCall, come: Come) -> Result<(), Bad> {
        let (name, arguments) = call.function.map_or((None, None), |f| (f.name, f.arguments));
        let (name, id) = (name.unwrap_or_default(), call.id.unwrap_or_default());
        let same = |open: &OpenCall| {
            let other_id = !id.is_empty() && !open.id.is_empty() && open.id != id;
            let named = !id.is_empty() && open.id == id;
            let again = !named && !name.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(&open.args).is_ok();
            (call.index.is_none() || open.index == call.index) && !other_id && !again
        };
        let at = match call.index {
            _ if come == Come::Whole => None,
            Some(_) => self.calls.iter().rposition(same),
            None => self.calls.len().checked_sub(1).filter(|last| self.calls.get(*last).is_some_and(same)),
        };
        let at = match at {
            Some(at) => at,
            None if self.calls.len() >= MOST_CALLS => {
                return Err(Bad::Garbage(format!("more than {MOST_CALLS} calls in one answer")));
            }
            None => {
                self.calls.push(OpenCall { index: call.index, ..OpenCall::default() });
                self.calls.len() - 1
            }
        };
        if let Some(open) = self.calls.get_mut(at) {
            if open.id.is_empty() {
                open.id = id;
            }
            if open.name.is_empty() {
                open.name = name;
            }
            match arguments {
                Some(Value::String(more)) => open.args.push_str(&more),
                Some(Value::Null) | None => {}
                Some(whole) => open.args.push_str(&whole.to_string()),
            }
        }
        for (key, value) in call.other {
            if key != "type" && !value.is_null() {
                self.keep(&format!("tool_calls.{at}.{key}"), value);
            }
        }
        Ok(())
    }

    fn keep(&mut self, key: &str, value: Value) {
        let bytes = value.to_string().len();
        if self.unknown_bytes + bytes > KEEP_UNKNOWN {
            return;
        }
        self.unknown_bytes += bytes;
        match (self.unknown.get_mut(key), value) {
            (Some(Value::String(known)), Value::String(more)) => known.push_str(&more),
            (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
            (_, value) => drop(self.unknown.insert(key.to_owned(), value)),
        }
    }

    /// Whether the answer may be believed although the stream is over: it said why it stopped.
    pub(crate) fn whole(&self) -> bool {
        self.closed || self.stop.is_some()
    }

    /// The parts, in order, and why it stopped.
    pub(crate) fn finish(self, turn: u32) -> (Vec<Part>, Stop) {
        let mut parts = Vec::new();
        let opaque = (!self.unknown.is_empty()).then(|| Arc::from(Value::Object(self.unknown).to_string()));
        if !self.reasoning.is_empty() || opaque.is_some() {
            parts.push(Part::Reasoning { text: self.reasoning.into(), opaque });
        }
        if !self.text.is_empty() {
            parts.push(Part::Text { text: self.text.into() });
        }
        let calls = self.calls.into_iter().filter(|c| !c.name.is_empty()).enumerate();
        parts.extend(calls.map(|(n, call)| {
            let id = if call.id.is_empty() { format!("call_{turn}_{n}") } else { call.id };
            let args = if call.args.trim().is_empty() { "{}".into() } else { call.args.into() };
            Part::Call(Arc::new(CallPart { id, tool: call.name, args, recovered: false }))
        }));
        let stop = self.stop.unwrap_or(Stop::End);
        (parts, stop)
    }
}

/// Text, or a list of pieces with text in them.
fn text_of(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(items) => items.iter().filter_map(|i| i["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &[&str]) -> (Vec<Part>, Stop) {
        let mut answer = Answer::default();
        for event in events {
            answer.take(event).unwrap();
        }
        answer.finish(3)
    }

    fn calls(parts: &[Part]) -> Vec<(String, String, String)> {
        let call = |p: &Part| match p {
            Part::Call(c) => Some((c.id.clone(), c.tool.clone(), c.args.to_string())),
            Part::Text { .. } | Part::Reasoning { .. } => None,
        };
        parts.iter().filter_map(call).collect()
    }

    fn three(id: &str, tool: &str, args: &str) -> (String, String, String) {
        (id.into(), tool.into(), args.into())
    }

    #[test]
    fn calls_come_together_from_pieces() {
        let (parts, stop) = read(&[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"p"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"y","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}}]},"finish_reason":"tool_calls"}]}"#,
        ]);
        assert_eq!(calls(&parts), [three("a", "x", "{\"p\":1}"), three("b", "y", "{}")]);
        assert_eq!(stop, Stop::Calls);
    }

    #[test]
    fn colliding_indexes_and_missing_ids_make_calls_of_their_own() {
        let (parts, _) = read(&[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"x","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"z","arguments":{"k":2}}}]}}]}"#,
        ]);
        assert_eq!(calls(&parts), [three("a", "x", "{}"), three("b", "x", "{}"), three("call_3_2", "z", "{\"k\":2}")]);
    }

    #[test]
    fn what_is_not_known_is_kept() {
        let (parts, _) = read(&[
            r#"{"choices":[{"delta":{"role":"assistant","content":"hi","thinking_blocks":[{"signature":"s"}]}}]}"#,
        ]);
        let Some(Part::Reasoning { opaque: Some(opaque), .. }) = parts.first() else { unreachable!("{parts:?}") };
        assert_eq!(opaque.as_ref(), r#"{"thinking_blocks":[{"signature":"s"}]}"#);
    }

    #[test]
    fn an_answer_that_does_not_stream_is_read_too() {
        let (parts, stop) = read(&[
            r#"{"choices":[{"message":{"role":"assistant","content":[{"type":"text","text":"hi"}]},"finish_reason":"stop"}]}"#,
        ]);
        assert_eq!((parts, stop), (vec![Part::Text { text: "hi".into() }], Stop::End));
    }

    #[test]
    fn an_error_inside_a_stream_is_the_servers() {
        let told = Answer::default().take(r#"{"error":{"message":"out of memory"}}"#);
        assert_eq!(told, Err(Bad::Server("out of memory".into())));
    }
}
