//! OpenAI's Responses, with nothing stored on the server: our log is the only state.
//!
//! Invariant: the items of an answer are sent back byte for byte and in their order, and only to the
//! model that produced them; all of them, or none.
//! Invariant: a complete item counts more than the pieces that it came in.

use super::{Body, Outgoing, WireReader, json};
use crate::answer::{Answer, Bad, CONTENT};
use crate::messages::{self, AssistantPart, ChatMessage, ContentPart};
use crate::tool_sets::PATCH_GRAMMAR;
use crate::wires::chat::data_url;
use dunnock_ports::ToolSpec;
use dunnock_proto::{Stop, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

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

/// `apply_patch` as plain text that follows a grammar.
pub(crate) fn patch_tool(offer: &ToolSpec) -> Result<Box<RawValue>, serde_json::Error> {
    #[derive(Serialize)]
    struct Format {
        r#type: &'static str,
        syntax: &'static str,
        definition: &'static str,
    }
    #[derive(Serialize)]
    struct CustomTool<'a> {
        r#type: &'static str,
        name: &'a str,
        description: &'a str,
        format: Format,
    }
    let format = Format { r#type: "grammar", syntax: "lark", definition: PATCH_GRAMMAR };
    let (name, description) = (offer.tool.name.as_str(), offer.description.as_str());
    serde_json::value::to_raw_value(&CustomTool { r#type: "custom", name, description, format })
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
    if let Some(key) = outgoing.cache_key() {
        body.field("prompt_cache_key", &key);
    }
    body.field("instructions", &preamble.system);
    if let Some(tools) = outgoing.tools() {
        body.raw("tools", tools);
    }
    if let Some(schema) = outgoing.schema() {
        let name = r#"{"format":{"type":"json_schema","name":"plan","strict":false,"schema":"#;
        body.raw("text", &format!("{name}{}}}}}", schema));
    }
    body.more(outgoing.effort()).more(&preamble.body);
    let mut input = Vec::new();
    for side in outgoing.sides {
        match side {
            ChatMessage::Person(bits) if preamble.quirks.merge => merged(bits, &mut input),
            ChatMessage::Person(bits) => person(bits, &mut input),
            ChatMessage::Model(said) => {
                let sealed = outgoing.sealed() && !outgoing.anew;
                said.iter().for_each(|one| input.extend(answer(one, sealed)))
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

fn output(id: &str, text: &str, freeform: bool) -> String {
    let r#type = if freeform { "custom_tool_call_output" } else { "function_call_output" };
    json(&Output { r#type, call_id: id, output: text })
}

fn person(bits: &[ContentPart<'_>], input: &mut Vec<String>) {
    let mut pieces: Vec<ResponsesContentPart<'_>> = Vec::new();
    for bit in bits {
        match bit {
            ContentPart::Result { id, text, freeform, .. } => {
                input.push(output(id, text, *freeform))
            }
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
    input.extend(results.iter().map(|result| output(result.id, &result.text, result.freeform)));
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
        AssistantPart::Item(item) => Some((*item).to_owned()),
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

/// Whether no reasoning of an answer must be left out. Without it, the ids of the other items would
/// be references to reasoning that the server does not have.
pub(super) fn all_wanted_back(items: &[Arc<str>], sealed: bool) -> bool {
    items.iter().all(|item| !is_reasoning(item) || sealed && wanted_back(item))
}

fn is_reasoning(item: &str) -> bool {
    serde_json::from_str::<WireItem>(item).is_ok_and(|item| item.r#type == "reasoning")
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
    input: Option<String>,
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
    /// The plain text of a call without JSON.
    input: Option<Value>,
    content: Option<Vec<Value>>,
    summary: Option<Vec<Value>>,
}

impl WireItem {
    fn is_freeform(&self) -> bool {
        self.r#type == "custom_tool_call"
    }
    fn is_call(&self) -> bool {
        self.r#type == "function_call" || self.is_freeform()
    }
    /// Its result could not name it.
    fn is_call_without_id(&self) -> bool {
        self.is_call() && self.call_id.as_deref().is_none_or(str::is_empty)
    }
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
    id: Option<String>,
    call_id: Option<String>,
    kind: Kind,
    /// The text that has arrived as deltas.
    streamed: String,
    /// The complete item, as the server sent it.
    done: Option<String>,
}

/// How many events a repeated one is compared with.
const REMEMBERED: usize = 4_096;

/// Finds events that a server sent twice, after a connection of its own broke. Their numbers alone
/// say nothing: some servers give every event the same one.
#[derive(Debug, Default)]
struct Repeats {
    seen: BTreeMap<u64, u64>,
    /// Different events had the same number.
    useless: bool,
}

impl Repeats {
    fn is_repeated(&mut self, number: Option<u64>, data: &str) -> bool {
        let Some(number) = number.filter(|_| !self.useless) else { return false };
        let mut hasher = DefaultHasher::new();
        data.hash(&mut hasher);
        let hash = hasher.finish();
        match self.seen.insert(number, hash) {
            Some(before) if before == hash => true,
            Some(_) => {
                (self.useless, self.seen) = (true, BTreeMap::new());
                false
            }
            None => {
                if self.seen.len() > REMEMBERED {
                    self.seen.pop_first();
                }
                false
            }
        }
    }
}

/// Reads Responses events.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    open: Vec<OpenItem>,
    repeats: Repeats,
    /// Bytes of complete items.
    kept: usize,
    /// The answer cannot go back as it came.
    altered: bool,
}

impl WireReader for Responses {
    fn take(&mut self, data: &str, answer: &mut Answer) -> Result<(), Bad> {
        if data.trim().is_empty() || data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: ResponsesEvent<'_> =
            serde_json::from_str(data).map_err(|e| Bad::Garbage(e.to_string()))?;
        if self.repeats.is_repeated(event.sequence_number, data) {
            return Ok(());
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
                let at = self.streams(index, Kind::Message, delta);
                answer.begin_item(at);
                answer.text(delta)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.streams(index, Kind::Reasoning, delta);
                answer.reasoning(delta)?;
            }
            "response.reasoning_summary_part.added"
                if self.open.iter().any(|o| o.index == index && !o.streamed.is_empty()) =>
            {
                self.streams(index, Kind::Reasoning, SUMMARY_GAP);
                answer.reasoning(SUMMARY_GAP)?;
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                if let Some(at) = self.call_at(index) {
                    answer.args(at, delta)?;
                }
            }
            "response.function_call_arguments.done" => {
                if let (Some(at), Some(whole)) = (self.call_at(index), event.arguments) {
                    set(answer, at, &whole)?;
                }
            }
            "response.custom_tool_call_input.done" => {
                if let (Some(at), Some(whole)) = (self.call_at(index), event.input) {
                    set(answer, at, &whole)?;
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.done(event.output_index, item, answer)?;
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

    fn end(&mut self, answer: &mut Answer) -> Result<(), Bad> {
        // Only a complete answer goes back as it came.
        self.open.sort_by_key(|open| open.index);
        let items: Option<Vec<String>> =
            std::mem::take(&mut self.open).into_iter().map(|open| open.done).collect();
        answer.keep_items(items.filter(|_| !self.altered).unwrap_or_default());
        Ok(())
    }
}

/// What separates the parts of a reasoning summary.
const SUMMARY_GAP: &str = "\n\n";

fn set(answer: &mut Answer, at: usize, whole: &str) -> Result<(), Bad> {
    if let Some(call) = answer.call(at) {
        call.args.clear();
    }
    answer.args(at, whole)
}

fn read_item(raw: &RawValue) -> Result<WireItem, Bad> {
    serde_json::from_str(raw.get()).map_err(|e| Bad::Garbage(e.to_string()))
}

impl Responses {
    /// The position of the newest item at an index.
    fn newest(&self, index: u64) -> Option<usize> {
        self.open.iter().rposition(|open| open.index == index)
    }

    fn call_at(&self, index: u64) -> Option<usize> {
        self.open.iter().find_map(|open| match open.kind {
            Kind::Call(at) if open.index == index && open.done.is_none() => Some(at),
            Kind::Call(_) | Kind::Message | Kind::Reasoning | Kind::Other => None,
        })
    }

    /// Adds a piece to the item at an index, and returns the item's position.
    fn streams(&mut self, index: u64, kind: Kind, piece: &str) -> usize {
        let open = |open: &OpenItem| open.index == index && open.done.is_none();
        let at = self.open.iter().rposition(open).unwrap_or_else(|| {
            self.begin(index, None, kind);
            self.open.len() - 1
        });
        if let Some(open) = self.open.get_mut(at) {
            open.streamed.push_str(piece);
        }
        at
    }

    fn begin(&mut self, index: u64, id: Option<String>, kind: Kind) {
        self.open.push(OpenItem {
            index,
            id,
            call_id: None,
            kind,
            streamed: String::new(),
            done: None,
        });
    }

    fn add(&mut self, index: u64, raw: &RawValue, answer: &mut Answer) -> Result<(), Bad> {
        let item = read_item(raw)?;
        if self.open.iter().any(|o| o.index == index && o.done.is_none()) {
            return Ok(());
        }
        let kind = match item.r#type.as_str() {
            "function_call" | "custom_tool_call" => {
                let at = answer.open_call()?;
                if let Some(call) = answer.call(at) {
                    call.freeform = item.is_freeform();
                    call.id = item.call_id.or_else(|| item.id.clone()).unwrap_or_default();
                    call.name = item.name.unwrap_or_default();
                }
                Kind::Call(at)
            }
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            _ => Kind::Other,
        };
        self.begin(index, item.id, kind);
        Ok(())
    }

    /// Completes an item.
    fn done(&mut self, place: Option<u64>, raw: &RawValue, answer: &mut Answer) -> Result<(), Bad> {
        let (item, index) = (read_item(raw)?, place.unwrap_or(0));
        let newest = self.newest(index).and_then(|at| self.open.get(at));
        if let Some(open) = newest
            && let Some(before) = &open.done
        {
            let repeated = match (&open.id, &item.id) {
                _ if before == raw.get() => true,
                (Some(known), Some(id)) => known == id,
                _ => place.is_some(),
            };
            if repeated {
                return Ok(());
            }
        }
        if newest.is_none_or(|open| open.done.is_some()) {
            self.add(index, raw, answer)?;
        }
        self.kept += raw.get().len();
        self.altered |= self.kept > CONTENT || item.is_call_without_id();
        let Some(at) = self.newest(index) else { return Ok(()) };
        let Some(open) = self.open.get_mut(at) else { return Ok(()) };
        open.id.clone_from(&item.id);
        open.call_id.clone_from(&item.call_id);
        open.done = Some(if self.altered { String::new() } else { raw.get().to_owned() });
        let streamed = std::mem::take(&mut open.streamed);
        let texts = |list: Option<Vec<Value>>| -> Vec<String> {
            let text =
                |v: &Value| v["text"].as_str().or_else(|| v["refusal"].as_str()).map(str::to_owned);
            list.iter().flatten().filter_map(text).collect()
        };
        match item.r#type.as_str() {
            "function_call" | "custom_tool_call" => {
                let Kind::Call(call_at) = open.kind else { return Ok(()) };
                let freeform = item.is_freeform();
                if let Some(call) = answer.call(call_at) {
                    call.complete = true;
                    let id = item.call_id.or(item.id).filter(|id| !id.is_empty());
                    call.id = id.unwrap_or_else(|| std::mem::take(&mut call.id));
                    let name = item.name.filter(|name| !name.is_empty());
                    call.name = name.unwrap_or_else(|| std::mem::take(&mut call.name));
                }
                match if freeform { item.input } else { item.arguments } {
                    Some(Value::String(whole)) => set(answer, call_at, &whole)?,
                    Some(Value::Object(whole)) => {
                        set(answer, call_at, &Value::Object(whole).to_string())?
                    }
                    _ => {}
                }
            }
            "message" => {
                let whole = texts(item.content).concat();
                answer.begin_item(at);
                match whole.strip_prefix(&streamed) {
                    Some(rest) => answer.text(rest)?,
                    None if whole.is_empty() => {}
                    None => answer.replace_text(at, &whole)?,
                }
            }
            "reasoning" => {
                let summary = texts(item.summary);
                let said = if summary.is_empty() { texts(item.content) } else { summary };
                let said = said.join(SUMMARY_GAP);
                answer.reasoning(said.strip_prefix(&streamed).unwrap_or_default())?;
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
        // Items that had no events of their own. A server may number neither items nor events.
        for (n, raw) in (0..).zip(response.output.unwrap_or_default()) {
            let WireItem { id, call_id, .. } = read_item(raw)?;
            let is_known = |open: &OpenItem| {
                open.done.as_ref().is_some_and(|done| {
                    open.index == n
                        || id.is_some() && open.id == id
                        || call_id.is_some() && open.call_id == call_id
                        || done == raw.get()
                })
            };
            if !self.open.iter().any(is_known) {
                self.done(Some(n), raw, answer)?;
            }
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
