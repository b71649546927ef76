//! OpenAI's Responses, with nothing stored on the server: our log is the only state.
//!
//! Invariant: a reasoning item is sent back byte for byte, and only to the model that produced it.

use super::{Body, Outgoing, WireReader, json};
use crate::answer::{Answer, Bad};
use crate::messages::{self, AssistantPart, ChatMessage, ContentPart};
use crate::wires::chat::data_url;
use dunnock_ports::ToolSpec;
use dunnock_proto::{Stop, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) fn tool(
    offer: &ToolSpec,
    parameters: Box<RawValue>,
) -> Result<Box<RawValue>, serde_json::Error> {
    #[derive(Serialize)]
    struct ResponsesTool<'a> {
        r#type: &'static str,
        name: &'a str,
        description: &'a str,
        strict: bool,
        parameters: Box<RawValue>,
    }
    let (name, description) = (offer.tool.name.as_str(), offer.description.as_str());
    serde_json::value::to_raw_value(&ResponsesTool {
        r#type: "function",
        name,
        description,
        strict: false,
        parameters,
    })
}

pub(crate) fn body(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let preamble = outgoing.preamble;
    let mut body = Body::new(preamble.names().1);
    body.raw("stream", "true").raw("store", "false");
    if preamble.quirks.sealed && outgoing.sealed() {
        body.raw("include", r#"["reasoning.encrypted_content"]"#);
    }
    if preamble.quirks.sealed && outgoing.extras() {
        body.raw("reasoning", r#"{"summary":"auto"}"#);
    }
    if let Some(most) = preamble.max_output {
        body.field("max_output_tokens", &most);
    }
    body.field("instructions", &preamble.system);
    if let Some(tools) = outgoing.tools() {
        body.raw("tools", tools);
    }
    if let Some(schema) = outgoing.schema() {
        let name = r#"{"format":{"type":"json_schema","name":"plan","strict":false,"schema":"#;
        body.raw("text", &format!("{name}{}}}}}", schema));
    }
    body.more(&preamble.body);
    let mut input = Vec::new();
    for side in outgoing.sides {
        match side {
            ChatMessage::Person(bits) if preamble.quirks.merge => merged(bits, &mut input),
            ChatMessage::Person(bits) => person(bits, &mut input),
            ChatMessage::Model(said) => {
                said.iter().for_each(|one| input.extend(answer(one, outgoing.sealed())))
            }
        }
    }
    body.end_with("input", &input)
}

#[derive(Serialize)]
struct Item<'a> {
    r#type: &'static str,
    role: &'static str,
    content: Vec<ResponsesContentPart<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesContentPart<'a> {
    InputText { text: &'a str },
    OutputText { text: &'a str },
    InputImage { image_url: String },
}

#[derive(Serialize)]
struct Output<'a> {
    r#type: &'static str,
    call_id: &'a str,
    output: &'a str,
}

fn message<'a>(role: &'static str, content: Vec<ResponsesContentPart<'a>>) -> String {
    json(&Item { r#type: "message", role, content })
}

fn output(id: &str, text: &str) -> String {
    json(&Output { r#type: "function_call_output", call_id: id, output: text })
}

fn person(bits: &[ContentPart<'_>], input: &mut Vec<String>) {
    let mut pieces: Vec<ResponsesContentPart<'_>> = Vec::new();
    for bit in bits {
        match bit {
            ContentPart::Result { id, text, .. } => input.push(output(id, text)),
            ContentPart::Picture(picture) => {
                pieces.push(ResponsesContentPart::InputImage { image_url: data_url(picture) })
            }
            ContentPart::Text(text) => {
                pieces.push(ResponsesContentPart::InputText { text });
                input.push(message("user", std::mem::take(&mut pieces)));
            }
        }
    }
}

fn merged(bits: &[ContentPart<'_>], input: &mut Vec<String>) {
    let messages::Merged { results, pictures, words } = messages::merged(bits);
    input.extend(results.iter().map(|(id, _, text)| output(id, text)));
    let mut pieces: Vec<ResponsesContentPart<'_>> = pictures
        .into_iter()
        .map(|picture| ResponsesContentPart::InputImage { image_url: data_url(picture) })
        .collect();
    if !words.is_empty() {
        pieces.push(ResponsesContentPart::InputText { text: &words });
    }
    if !pieces.is_empty() {
        input.push(message("user", pieces));
    }
}

fn answer(said: &AssistantPart<'_>, sealed: bool) -> Option<String> {
    match said {
        AssistantPart::Reasoning { opaque, .. } => {
            opaque.filter(|item| sealed && wanted_back(item)).map(str::to_owned)
        }
        AssistantPart::Text(text) => {
            Some(message("assistant", vec![ResponsesContentPart::OutputText { text }]))
        }
        AssistantPart::Call { id, tool, args } => {
            #[derive(Serialize)]
            struct Call<'a> {
                r#type: &'static str,
                call_id: &'a str,
                name: &'a str,
                arguments: &'a str,
            }
            Some(json(&Call {
                r#type: "function_call",
                call_id: id,
                name: tool.as_ref(),
                arguments: args,
            }))
        }
    }
}

/// Whether an item has content of its own. One without is only a reference to something on the
/// server, which stored nothing.
fn wanted_back(item: &str) -> bool {
    let Ok(item) = serde_json::from_str::<Value>(item) else { return false };
    item["encrypted_content"].is_string()
        || item["content"].as_array().is_some_and(|c| !c.is_empty())
}

/// Any event; which fields it has depends on its type.
#[derive(Debug, Deserialize)]
struct ResponsesEvent<'a> {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    sequence_number: Option<u64>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default)]
    delta: Option<Value>,
    #[serde(default, borrow)]
    item: Option<&'a RawValue>,
    #[serde(default, borrow)]
    response: Option<&'a RawValue>,
    #[serde(default)]
    arguments: Option<String>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    message: Option<Value>,
    #[serde(default)]
    object: Option<String>,
}

/// The fields of an output item that we use.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireItem {
    r#type: String,
    call_id: Option<String>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<Value>,
    content: Option<Vec<Value>>,
    summary: Option<Vec<Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireResponse<'a> {
    status: Option<String>,
    error: Option<Value>,
    incomplete_details: Option<Value>,
    usage: Option<ResponsesUsage>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponsesUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<ResponsesTokenDetails>,
    output_tokens_details: Option<ResponsesTokenDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponsesTokenDetails {
    cached_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Call(usize),
    Message,
    Reasoning,
    Other,
}

/// An item that has begun.
#[derive(Debug)]
struct OpenItem {
    index: u64,
    kind: Kind,
    /// Some of its text has arrived as deltas.
    streamed: bool,
    done: bool,
}

/// Reads Responses events.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    open: Vec<OpenItem>,
    last: Option<u64>,
}

impl WireReader for Responses {
    fn take(&mut self, data: &str, answer: &mut Answer) -> Result<(), Bad> {
        if data.trim().is_empty() || data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: ResponsesEvent<'_> =
            serde_json::from_str(data).map_err(|e| Bad::Garbage(e.to_string()))?;
        // Ignore repeated events.
        if let Some(n) = event.sequence_number {
            if self.last.is_some_and(|last| n <= last) {
                return Ok(());
            }
            self.last = Some(n);
        }
        if event.object.as_deref() == Some("response") && event.r#type.is_empty() {
            return self.whole(data, answer);
        }
        let delta = event.delta.as_ref().and_then(Value::as_str).unwrap_or_default();
        let index = event.output_index.unwrap_or(0);
        match event.r#type.as_str() {
            "response.output_item.added" => {
                if let Some(item) = event.item {
                    self.add(index, item, answer)?;
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.mark_streamed(index, Kind::Message);
                answer.text(delta)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.mark_streamed(index, Kind::Reasoning);
                answer.reasoning(delta)?;
            }
            "response.reasoning_summary_part.added"
                if self.open.iter().any(|o| o.index == index && o.streamed) =>
            {
                answer.reasoning("\n\n")?;
            }
            "response.function_call_arguments.delta" => {
                if let Some(at) = self.call_at(index) {
                    answer.args(at, delta)?;
                }
            }
            "response.function_call_arguments.done" => {
                if let (Some(at), Some(whole)) = (self.call_at(index), event.arguments) {
                    set(answer, at, &whole)?;
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.done(index, item, answer)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.done" | "response.failed" => {
                self.over(event.response.map_or("{}", RawValue::get), answer)?;
            }
            "error" => {
                let error = event
                    .error
                    .filter(|e| !e.is_null())
                    .unwrap_or(json!({"message": event.message}));
                return Err(Bad::Server(crate::request_error::words(&error)));
            }
            "" => match event.error.filter(|e| !e.is_null()) {
                Some(error) => return Err(Bad::Server(crate::request_error::words(&error))),
                None => return Err(Bad::Garbage("an event without a type".into())),
            },
            _ => {}
        }
        Ok(())
    }
}

fn set(answer: &mut Answer, at: usize, whole: &str) -> Result<(), Bad> {
    if let Some(call) = answer.call(at) {
        call.args.clear();
    }
    answer.args(at, whole)
}

impl Responses {
    fn call_at(&self, index: u64) -> Option<usize> {
        self.open.iter().find_map(|open| match open.kind {
            Kind::Call(at) if open.index == index && !open.done => Some(at),
            Kind::Call(_) | Kind::Message | Kind::Reasoning | Kind::Other => None,
        })
    }

    fn mark_streamed(&mut self, index: u64, kind: Kind) {
        match self.open.iter_mut().rev().find(|o| o.index == index && !o.done) {
            Some(open) => open.streamed = true,
            None => self.open.push(OpenItem { index, kind, streamed: true, done: false }),
        }
    }

    fn add(&mut self, index: u64, raw: &RawValue, answer: &mut Answer) -> Result<(), Bad> {
        let item: WireItem =
            serde_json::from_str(raw.get()).map_err(|e| Bad::Garbage(e.to_string()))?;
        if self.open.iter().any(|o| o.index == index && !o.done) {
            return Ok(());
        }
        let kind = match item.r#type.as_str() {
            "function_call" => {
                let at = answer.open_call()?;
                if let Some(call) = answer.call(at) {
                    call.id = item.call_id.or(item.id).unwrap_or_default();
                    call.name = item.name.unwrap_or_default();
                }
                Kind::Call(at)
            }
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            _ => Kind::Other,
        };
        self.open.push(OpenItem { index, kind, streamed: false, done: false });
        Ok(())
    }

    /// Completes an item: text that arrived as deltas stays; anything that did not is read from the
    /// item.
    fn done(&mut self, index: u64, raw: &RawValue, answer: &mut Answer) -> Result<(), Bad> {
        if self.open.iter().any(|o| o.index == index && o.done) {
            return Ok(());
        }
        if !self.open.iter().any(|o| o.index == index) {
            self.add(index, raw, answer)?;
        }
        let item: WireItem =
            serde_json::from_str(raw.get()).map_err(|e| Bad::Garbage(e.to_string()))?;
        let Some(open) = self.open.iter_mut().rev().find(|o| o.index == index) else {
            return Ok(());
        };
        open.done = true;
        let texts = |list: Option<Vec<Value>>| -> Vec<String> {
            let text =
                |v: &Value| v["text"].as_str().or_else(|| v["refusal"].as_str()).map(str::to_owned);
            list.iter().flatten().filter_map(text).collect()
        };
        match item.r#type.as_str() {
            "function_call" => {
                if let Kind::Call(at) = open.kind {
                    if let Some(call) = answer.call(at) {
                        if call.name.is_empty() {
                            call.name = item.name.unwrap_or_default();
                        }
                        if call.id.is_empty() {
                            call.id = item.call_id.or(item.id).unwrap_or_default();
                        }
                    }
                    match item.arguments {
                        Some(Value::String(whole)) => set(answer, at, &whole)?,
                        Some(Value::Object(whole)) => {
                            set(answer, at, &Value::Object(whole).to_string())?
                        }
                        _ => {}
                    }
                }
            }
            "message" if !open.streamed => {
                for text in texts(item.content) {
                    answer.text(&text)?;
                }
            }
            "reasoning" => {
                if !open.streamed {
                    let summary = texts(item.summary);
                    let said = if summary.is_empty() { texts(item.content) } else { summary };
                    answer.reasoning(&said.join("\n\n"))?;
                }
                answer.seal(|_| Some(raw.get().to_owned()))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A whole answer, from a server that does not stream.
    fn whole(&mut self, data: &str, answer: &mut Answer) -> Result<(), Bad> {
        self.over(data, answer)
    }

    fn over(&mut self, data: &str, answer: &mut Answer) -> Result<(), Bad> {
        let response: WireResponse<'_> =
            serde_json::from_str(data).map_err(|e| Bad::Garbage(e.to_string()))?;
        if let Some(error) = response.error.filter(|e| !e.is_null()) {
            return Err(Bad::Server(crate::request_error::words(&error)));
        }
        if response.status.as_deref() == Some("failed") {
            return Err(Bad::Server("the response failed, and the server gave no reason".into()));
        }
        // Items that had no events of their own.
        for (n, item) in response.output.unwrap_or_default().into_iter().enumerate() {
            self.done(n as u64, item, answer)?;
        }
        if let Some(usage) = response.usage {
            answer.usage = Usage {
                input: usage.input_tokens.unwrap_or(0),
                cached: usage.input_tokens_details.and_then(|d| d.cached_tokens).unwrap_or(0),
                output: usage.output_tokens.unwrap_or(0),
                reasoning: usage
                    .output_tokens_details
                    .and_then(|d| d.reasoning_tokens)
                    .unwrap_or(0),
                written: 0,
            };
        }
        let reason = response
            .incomplete_details
            .as_ref()
            .and_then(|d| d["reason"].as_str().map(str::to_owned));
        answer.stop = Some(match (response.status.as_deref(), reason.as_deref()) {
            (_, Some("max_output_tokens")) => Stop::Length,
            (_, Some("content_filter")) => Stop::Filter,
            (Some("incomplete"), other) => Stop::Other(other.unwrap_or("incomplete").to_owned()),
            _ => Stop::End,
        });
        answer.closed = true;
        Ok(())
    }
}
