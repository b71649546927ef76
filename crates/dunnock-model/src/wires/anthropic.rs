//! Anthropic's Messages: signed thinking blocks and cache markers.
//!
//! Invariant: thinking blocks are sent back unchanged, with their signature, and only to the model
//! that produced them.

use super::{Body, Outgoing, WireReader, json};
use crate::answer::{Answer, Bad};
use crate::dialects::schema;
use crate::messages::{AssistantPart, ChatMessage, ContentPart};
use crate::preamble::RecordedPreamble;
use dunnock_ports::ToolSpec;
use dunnock_proto::{Stop, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Default output limit, which this wire requires; long enough for most files.
const MAX_OUTPUT: u64 = 8_192;

pub(crate) fn tool(
    offer: &ToolSpec,
    input_schema: Box<RawValue>,
) -> Result<Box<RawValue>, serde_json::Error> {
    #[derive(Serialize)]
    struct AnthropicTool<'a> {
        name: &'a str,
        description: &'a str,
        input_schema: Box<RawValue>,
    }
    serde_json::value::to_raw_value(&AnthropicTool {
        name: &offer.tool.name,
        description: &offer.description,
        input_schema,
    })
}

/// The output limit of a request: at most a quarter of the window, to leave room for the request
/// itself.
pub(crate) fn output_limit(preamble: &RecordedPreamble) -> u64 {
    let room = preamble.window.map_or(u64::MAX, |window| (window / 4).max(1));
    preamble.max_output.unwrap_or(MAX_OUTPUT).min(room)
}

/// The request body. The server caches tools before the system prompt, so one cache marker after
/// the system prompt covers both. The other two are at the end of this request and of the previous
/// one, so that what was cached then is found again.
pub(crate) fn body(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let preamble = outgoing.preamble;
    let mut body = Body::new(preamble.names().1);
    body.field("max_tokens", &output_limit(preamble)).raw("stream", "true");
    if let Some(tools) = outgoing.tools() {
        body.raw("tools", tools);
    }
    if let Some(schema) = outgoing.schema() {
        // This wire supports no bounds in schemas; we check them when the plan is read.
        let schema = schema::unbounded(&serde_json::from_str(schema).unwrap_or_default());
        body.raw(
            "output_config",
            &format!(r#"{{"format":{{"type":"json_schema","schema":{schema}}}}}"#),
        );
    }
    body.more(outgoing.effort()).more(&preamble.body);
    body.field(
        "system",
        &[json!({"type": "text", "text": preamble.system, "cache_control": {"type": "ephemeral"}})],
    );
    let persons =
        outgoing.sides.iter().filter(|side| matches!(side, ChatMessage::Person(_))).count();
    let mut messages = Vec::new();
    let mut seen = 0;
    for side in outgoing.sides {
        match side {
            ChatMessage::Person(bits) => {
                seen += 1;
                messages.push(person(bits, seen + 2 > persons));
            }
            ChatMessage::Model(said) => messages.extend(answer(said)),
        }
    }
    body.end_with("messages", &messages)
}

const MARK: &str = r#","cache_control":{"type":"ephemeral"}}"#;

/// Writes one user message, results first. Empty text is replaced, because this wire rejects it.
fn person(bits: &[ContentPart<'_>], mark: bool) -> String {
    let block = |bit: &ContentPart<'_>| match bit {
        ContentPart::Result { id, text, ok, .. } => {
            #[derive(Serialize)]
            struct ToolResultBlock<'a> {
                r#type: &'static str,
                tool_use_id: &'a str,
                content: &'a str,
                #[serde(skip_serializing_if = "std::ops::Not::not")]
                is_error: bool,
            }
            json(&ToolResultBlock {
                r#type: "tool_result",
                tool_use_id: id,
                content: text,
                is_error: !ok,
            })
        }
        ContentPart::Text(text) => {
            text_block(if text.trim().is_empty() { "(nothing)" } else { text })
        }
        ContentPart::Picture(picture) => {
            #[derive(Serialize)]
            struct Source<'a> {
                r#type: &'static str,
                media_type: &'a str,
                data: &'a str,
            }
            #[derive(Serialize)]
            struct ImageBlock<'a> {
                r#type: &'static str,
                source: Source<'a>,
            }
            let source =
                Source { r#type: "base64", media_type: picture.media, data: &picture.base64 };
            json(&ImageBlock { r#type: "image", source })
        }
    };
    let (results, others): (Vec<&ContentPart<'_>>, Vec<&ContentPart<'_>>) =
        bits.iter().partition(|bit| matches!(bit, ContentPart::Result { .. }));
    let mut blocks: Vec<String> = results.into_iter().chain(others).map(block).collect();
    if let Some(last) = blocks.last_mut().filter(|_| mark) {
        last.pop();
        last.push_str(MARK);
    }
    format!(r#"{{"role":"user","content":[{}]}}"#, blocks.join(","))
}

fn text_block(text: &str) -> String {
    #[derive(Serialize)]
    struct TextBlock<'a> {
        r#type: &'static str,
        text: &'a str,
    }
    json(&TextBlock { r#type: "text", text })
}

fn answer(said: &[AssistantPart<'_>]) -> Option<String> {
    let block = |one: &AssistantPart<'_>| match one {
        AssistantPart::Reasoning { opaque, .. } => opaque.map(str::to_owned),
        AssistantPart::Item(_) => None,
        AssistantPart::Text(text) if text.trim().is_empty() => None,
        AssistantPart::Text(text) => Some(text_block(text)),
        AssistantPart::Call { id, tool, args } => {
            let name = Value::from(tool.to_string());
            Some(format!(r#"{{"type":"tool_use","id":"{id}","name":{name},"input":{args}}}"#))
        }
    };
    let mut blocks: Vec<String> = said.iter().filter_map(block).collect();
    if blocks.is_empty() || said.iter().all(|one| matches!(one, AssistantPart::Reasoning { .. })) {
        blocks.push(text_block("(nothing)"));
    }
    Some(format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(",")))
}

#[derive(Debug, Deserialize)]
struct AnthropicEvent<'a> {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    message: Option<MessageStart>,
    #[serde(default)]
    content_block: Option<ContentBlock>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    usage: Option<AnthropicUsage>,
    #[serde(default)]
    error: Option<Value>,
    /// The content of a whole message, from a server that does not stream.
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    stop_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MessageStart {
    usage: Option<AnthropicUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContentBlock {
    r#type: String,
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    r#type: String,
    text: Option<String>,
    partial_json: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AnthropicUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Debug)]
enum OpenBlock {
    Text,
    Thinking { signature: String },
    Call(usize),
    Other,
}

/// Reads Messages responses.
#[derive(Debug, Default)]
pub(crate) struct Anthropic {
    open: Vec<(u64, OpenBlock)>,
}

impl WireReader for Anthropic {
    fn take(&mut self, data: &str, answer: &mut Answer) -> Result<(), Bad> {
        if data.trim().is_empty() || data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: AnthropicEvent<'_> =
            serde_json::from_str(data).map_err(|e| Bad::Garbage(e.to_string()))?;
        let index = event.index.unwrap_or(0);
        match event.r#type.as_str() {
            "message_start" => {
                if let Some(usage) = event.message.and_then(|m| m.usage) {
                    count(usage, &mut answer.usage);
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.begin(index, block, answer)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.more(index, delta, answer)?;
                }
            }
            "content_block_stop" => self.stop(index, answer)?,
            "message_delta" => {
                if let Some(usage) = event.usage {
                    count(usage, &mut answer.usage);
                }
                if let Some(reason) = event.delta.and_then(|d| d.stop_reason) {
                    answer.stop = Some(stop(reason));
                }
            }
            "message_stop" => {
                self.stop_all(answer)?;
                answer.closed = true;
            }
            "error" => {
                return Err(Bad::Server(crate::request_error::words(
                    &event.error.unwrap_or(Value::Null),
                )));
            }
            "message" => {
                let blocks = event.content.map_or("[]", RawValue::get);
                let blocks: Vec<ContentBlock> =
                    serde_json::from_str(blocks).map_err(|e| Bad::Garbage(e.to_string()))?;
                for (n, block) in blocks.into_iter().enumerate() {
                    self.begin(n as u64, block, answer)?;
                    self.stop(n as u64, answer)?;
                }
                if let Some(usage) = event.usage {
                    count(usage, &mut answer.usage);
                }
                answer.stop = Some(event.stop_reason.map_or(Stop::End, stop));
                answer.closed = true;
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
        self.stop_all(answer)
    }
}

fn stop(reason: String) -> Stop {
    match reason.as_str() {
        "end_turn" | "stop_sequence" => Stop::End,
        "tool_use" => Stop::Calls,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Filter,
        _ => Stop::Other(reason),
    }
}

/// Updates the usage. Counts arrive twice; later ones are totals. This wire counts cached tokens
/// separately, while our `input` includes them.
fn count(wire: AnthropicUsage, usage: &mut Usage) {
    let read = wire.cache_read_input_tokens.unwrap_or(usage.cached);
    let written = wire.cache_creation_input_tokens.unwrap_or(usage.written);
    if let Some(input) = wire.input_tokens.filter(|n| *n > 0 || usage.input == 0) {
        usage.input = input.saturating_add(read).saturating_add(written);
        (usage.cached, usage.written) = (read, written);
    }
    if let Some(output) = wire.output_tokens {
        usage.output = output;
    }
}

impl Anthropic {
    fn begin(&mut self, index: u64, block: ContentBlock, answer: &mut Answer) -> Result<(), Bad> {
        if self.open.iter().any(|(open, _)| *open == index) {
            return Ok(());
        }
        let open = match block.r#type.as_str() {
            "text" => {
                answer.text(&block.text.unwrap_or_default())?;
                OpenBlock::Text
            }
            "thinking" => {
                answer.reasoning(&block.thinking.unwrap_or_default())?;
                OpenBlock::Thinking { signature: block.signature.unwrap_or_default() }
            }
            "redacted_thinking" => {
                let data = block.data.unwrap_or_default();
                answer.seal(|_| Some(json(&json!({"type": "redacted_thinking", "data": data}))))?;
                OpenBlock::Other
            }
            "tool_use" => {
                let at = answer.open_call()?;
                if let Some(call) = answer.call(at) {
                    call.id = block.id.unwrap_or_default();
                    call.name = block.name.unwrap_or_default();
                }
                if let Some(input) =
                    block.input.filter(|i| i.as_object().is_some_and(|map| !map.is_empty()))
                {
                    answer.args(at, &input.to_string())?;
                }
                OpenBlock::Call(at)
            }
            _ => OpenBlock::Other,
        };
        self.open.push((index, open));
        Ok(())
    }

    fn more(&mut self, index: u64, delta: Delta, answer: &mut Answer) -> Result<(), Bad> {
        let open = self.open.iter_mut().find(|(open, _)| *open == index).map(|(_, open)| open);
        match (delta.r#type.as_str(), open) {
            ("text_delta", _) => answer.text(&delta.text.unwrap_or_default()),
            ("thinking_delta", _) => answer.reasoning(&delta.thinking.unwrap_or_default()),
            ("signature_delta", Some(OpenBlock::Thinking { signature })) => {
                signature.push_str(&delta.signature.unwrap_or_default());
                if signature.len() > 1 << 20 { Err(Bad::TooLong) } else { Ok(()) }
            }
            ("input_json_delta", Some(OpenBlock::Call(at))) => {
                answer.args(*at, &delta.partial_json.unwrap_or_default())
            }
            _ => Ok(()),
        }
    }

    fn stop(&mut self, index: u64, answer: &mut Answer) -> Result<(), Bad> {
        let Some(at) = self.open.iter().position(|(open, _)| *open == index) else { return Ok(()) };
        // The index stays in the list, so that a repeated start event is ignored.
        if let Some((_, open)) = self.open.get_mut(at)
            && let OpenBlock::Thinking { signature } = std::mem::replace(open, OpenBlock::Other)
        {
            answer.seal(|text| {
                let block = json!({"type": "thinking", "thinking": text, "signature": signature});
                (!signature.is_empty()).then(|| block.to_string())
            })?;
        }
        Ok(())
    }

    fn stop_all(&mut self, answer: &mut Answer) -> Result<(), Bad> {
        for index in self.open.iter().map(|(index, _)| *index).collect::<Vec<_>>() {
            self.stop(index, answer)?;
        }
        Ok(())
    }
}
