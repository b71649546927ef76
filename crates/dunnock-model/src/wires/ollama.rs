//! Ollama's native API, the only one with a settable context window.
//!
//! Invariant: every request has `num_ctx`. Without it the server uses 4,096 tokens and silently
//! drops the beginning of the conversation.

use super::{Body, Outgoing, WireReader, json};
use crate::answer::{Answer, Bad};
use crate::messages::{self, AssistantPart, ChatMessage, ContentPart};
use dunnock_proto::{Stop, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) fn body(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let preamble = outgoing.preamble;
    let mut body = Body::new(preamble.names().1);
    let mut options = serde_json::Map::new();
    if let Some(window) = preamble.window {
        options.insert("num_ctx".into(), window.into());
    }
    if let Some(most) = preamble.max_output {
        options.insert("num_predict".into(), most.into());
    }
    let mut more = preamble.body.clone();
    if let Some(Value::Object(theirs)) = more.remove("options") {
        options.extend(theirs);
    }
    // With these, a request that does not fit is an error instead of being truncated silently;
    // older servers ignore them.
    body.raw("stream", "true")
        .raw("truncate", "false")
        .raw("shift", "false")
        .field("options", &options);
    if let Some(tools) = outgoing.tools() {
        body.raw("tools", tools);
    }
    if let Some(schema) = outgoing.schema() {
        body.raw("format", schema);
    }
    body.more(outgoing.effort()).more(&more);
    let mut messages = vec![json(&OllamaOutMessage {
        role: "system",
        content: &preamble.system,
        ..OllamaOutMessage::default()
    })];
    for side in outgoing.sides {
        match side {
            ChatMessage::Person(bits) => person(bits, preamble.quirks.merge, &mut messages),
            ChatMessage::Model(said) => messages.push(answer(said, preamble.quirks.echo)),
        }
    }
    body.end_with("messages", &messages)
}

#[derive(Default, Serialize)]
struct OllamaOutMessage<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    thinking: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OllamaOutCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct OllamaOutCall<'a> {
    id: &'a str,
    function: OllamaOutFunction<'a>,
}

#[derive(Serialize)]
struct OllamaOutFunction<'a> {
    name: &'a str,
    arguments: &'a RawValue,
}

fn tool_result(id: &str, tool: &str, text: &str) -> String {
    json(&OllamaOutMessage {
        role: "tool",
        content: text,
        tool_name: Some(tool),
        tool_call_id: Some(id),
        ..OllamaOutMessage::default()
    })
}

fn person(bits: &[ContentPart<'_>], merge: bool, messages: &mut Vec<String>) {
    if merge {
        let messages::Merged { results, pictures, words } = messages::merged(bits);
        for messages::MergedResult { id, tool, text, .. } in &results {
            messages.push(tool_result(id, tool, text));
        }
        if !(words.is_empty() && pictures.is_empty()) {
            let images = pictures.iter().map(|picture| picture.base64.as_str()).collect();
            messages.push(json(&OllamaOutMessage {
                role: "user",
                content: &words,
                images,
                ..OllamaOutMessage::default()
            }));
        }
        return;
    }
    let mut images: Vec<&str> = Vec::new();
    for bit in bits {
        match bit {
            ContentPart::Result { id, tool, text, .. } => {
                messages.push(tool_result(id, tool, text));
            }
            ContentPart::Picture(picture) => images.push(&picture.base64),
            ContentPart::Text(text) => {
                let images = std::mem::take(&mut images);
                messages.push(json(&OllamaOutMessage {
                    role: "user",
                    content: text,
                    images,
                    ..OllamaOutMessage::default()
                }));
            }
        }
    }
}

fn answer(said: &[AssistantPart<'_>], echo: bool) -> String {
    let (mut text, mut thought, mut tool_calls) = (String::new(), String::new(), Vec::new());
    for one in said {
        match one {
            AssistantPart::Text(more) => text.push_str(more),
            AssistantPart::Reasoning { text, .. } if echo => thought.push_str(text),
            AssistantPart::Reasoning { .. } | AssistantPart::Item(_) => {}
            AssistantPart::Call { id, tool, args } => {
                if let Ok(arguments) = serde_json::from_str::<&RawValue>(args) {
                    tool_calls.push(OllamaOutCall {
                        id,
                        function: OllamaOutFunction { name: tool.as_ref(), arguments },
                    });
                }
            }
        }
    }
    json(&OllamaOutMessage {
        role: "assistant",
        content: &text,
        thinking: &thought,
        tool_calls,
        ..OllamaOutMessage::default()
    })
}

#[derive(Debug, Deserialize)]
struct OllamaLine {
    #[serde(default)]
    message: Option<OllamaMessage>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    #[serde(default)]
    eval_count: Option<u64>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OllamaMessage {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<OllamaCall>>,
}

#[derive(Debug, Deserialize)]
struct OllamaCall {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<OllamaFunction>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OllamaFunction {
    name: String,
    arguments: Option<Box<RawValue>>,
}

/// Reads Ollama's lines.
#[derive(Debug, Default)]
pub(crate) struct Ollama;

impl WireReader for Ollama {
    fn take(&mut self, data: &str, answer: &mut Answer) -> Result<(), Bad> {
        if data.trim().is_empty() {
            return Ok(());
        }
        let line: OllamaLine =
            serde_json::from_str(data).map_err(|e| Bad::Garbage(e.to_string()))?;
        if let Some(error) = line.error.filter(|e| !e.is_null()) {
            return Err(Bad::Server(crate::request_error::words(&json!({ "error": error }))));
        }
        if let Some(message) = line.message {
            answer.reasoning(&message.thinking.unwrap_or_default())?;
            answer.text(&message.content.unwrap_or_default())?;
            for call in message.tool_calls.unwrap_or_default() {
                let function = call.function.unwrap_or_default();
                let at = answer.open_call()?;
                if let Some(open) = answer.call(at) {
                    open.id = call.id.unwrap_or_default();
                    open.name = function.name;
                }
                let args = function.arguments.as_ref().map_or("{}", |a| a.get());
                // Some send the object as a JSON string.
                match serde_json::from_str::<String>(args) {
                    Ok(text) => answer.args(at, &text)?,
                    Err(_) => answer.args(at, args)?,
                }
            }
        }
        if line.done {
            answer.usage = Usage {
                input: line.prompt_eval_count.unwrap_or(0),
                output: line.eval_count.unwrap_or(0),
                ..Usage::default()
            };
            answer.stop = Some(match line.done_reason.as_deref() {
                Some("length") => Stop::Length,
                Some("stop") | None => Stop::End,
                Some(other) => Stop::Other(other.to_owned()),
            });
            answer.closed = true;
        }
        Ok(())
    }
}
