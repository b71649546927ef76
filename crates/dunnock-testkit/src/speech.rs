//! What a scripted model says, as the bytes of each wire and in the words of each dialect.

use crate::model::Say;
use serde_json::{Value, json};

/// Whose bytes a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat Completions.
    Chat,
    /// Responses.
    Responses,
    /// Messages.
    Anthropic,
    /// Ollama's own.
    Ollama,
}

impl Wire {
    /// Every one.
    pub const ALL: &'static [Self] = &[Self::Chat, Self::Responses, Self::Anthropic, Self::Ollama];

    /// By the end of an address.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        let ends = [
            ("/chat/completions", Self::Chat),
            ("/responses", Self::Responses),
            ("/messages", Self::Anthropic),
            ("/api/chat", Self::Ollama),
        ];
        ends.iter().find(|(end, _)| path.ends_with(end)).map(|(_, wire)| *wire)
    }

    /// As it is configured.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        }
    }

    /// The type of a stream's body.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses | Self::Anthropic => "text/event-stream",
            Self::Ollama => "application/x-ndjson",
        }
    }

    /// How many answers a request holds already.
    #[must_use]
    pub fn answers(self, body: &Value) -> usize {
        if self == Self::Responses {
            let items = body["input"].as_array().map_or(&[][..], Vec::as_slice);
            let ours = |item: &Value| {
                item["role"] == "assistant"
                    || item["type"] == "function_call"
                    || item["type"] == "reasoning"
            };
            let mut answers = 0;
            let mut inside = false;
            for item in items {
                answers += usize::from(ours(item) && !inside);
                inside = ours(item);
            }
            return answers;
        }
        body["messages"]
            .as_array()
            .map_or(0, |all| all.iter().filter(|m| m["role"] == "assistant").count())
    }
}

/// How a server's model writes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Speech {
    /// As the wire has them.
    #[default]
    Native,
    /// As marked text.
    Text,
    /// As a JSON plan.
    Plan,
}

impl Speech {
    /// Every one.
    pub const ALL: &'static [Self] = &[Self::Native, Self::Text, Self::Plan];

    /// As it is configured.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Text => "text",
            Self::Plan => "plan",
        }
    }

    /// The same, in words of this dialect alone.
    #[must_use]
    pub fn put(self, say: &Say) -> Say {
        let mut put = say.clone();
        match self {
            Self::Native => return put,
            Self::Text => {
                for (tool, args) in &say.calls {
                    put.text.push_str(&format!(
                        "\n<tool_call>\n{{\"name\": \"{tool}\", \"arguments\": \
                         {args}}}\n</tool_call>\n"
                    ));
                }
            }
            Self::Plan => {
                let action = |(tool, args): &(String, String)| {
                    let mut action: serde_json::Map<String, Value> =
                        serde_json::from_str(args).unwrap_or_default();
                    action.insert("tool".into(), json!(tool));
                    Value::Object(action)
                };
                let actions: Vec<Value> = say.calls.iter().map(action).collect();
                put.text = format!(
                    "{{\"thought\": {}, \"plan\": [], \"actions\": {}}}",
                    json!(say.text),
                    json!(actions)
                );
            }
        }
        put.calls.clear();
        put
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ').filter(|w| !w.is_empty())
}

fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}

/// The pieces of an answer, as a server would send them.
#[must_use]
pub fn pieces(wire: Wire, say: &Say) -> Vec<String> {
    match wire {
        Wire::Chat => chat(say),
        Wire::Responses => responses(say),
        Wire::Anthropic => anthropic(say),
        Wire::Ollama => ollama(say),
    }
}

fn chat(say: &Say) -> Vec<String> {
    let event = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!(
            "data: {}\n\n",
            json!({"id": "script", "object": "chat.completion.chunk", "choices": [choice]})
        )
    };
    let mut pieces = Vec::new();
    for word in words(&say.reasoning) {
        pieces.push(event(json!({"reasoning_content": word}), Value::Null));
    }
    for word in words(&say.text) {
        pieces.push(event(json!({"content": word}), Value::Null));
    }
    for (index, (tool, args)) in say.calls.iter().enumerate() {
        let (head, tail) = halves(args);
        let first = json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": {"name": tool, "arguments": head}});
        pieces.push(event(json!({"tool_calls": [first]}), Value::Null));
        let second = json!({"index": index, "function": {"arguments": tail}});
        pieces.push(event(json!({"tool_calls": [second]}), Value::Null));
    }
    let finish = if say.calls.is_empty() { "stop" } else { "tool_calls" };
    pieces.push(event(json!({}), json!(finish)));
    let mut usage =
        json!({"prompt_tokens": say.usage.input, "completion_tokens": say.usage.output});
    if say.usage.cached > 0 {
        usage["prompt_tokens_details"] = json!({"cached_tokens": say.usage.cached});
    }
    if say.usage.reasoning > 0 {
        usage["completion_tokens_details"] = json!({"reasoning_tokens": say.usage.reasoning});
    }
    pieces.push(format!("data: {}\n\n", json!({"choices": [], "usage": usage})));
    pieces.push("data: [DONE]\n\n".into());
    pieces
}

/// A reasoning item as its maker wrote it: the blanks and the order of its fields are part of it.
#[must_use]
pub fn sealed(text: &str) -> String {
    let text = json!(text);
    format!(
        r#"{{"type":"reasoning","id":"rs_1",  "summary":[{{"text":{text},"type":"summary_text"}}],"encrypted_content":"gAAA\/b+{{}}" }}"#
    )
}

fn responses(say: &Say) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut sequence = 0;
    let mut event = |pieces: &mut Vec<String>, kind: &str, fields: &str| {
        pieces.push(format!(
            "event: {kind}\ndata: \
             {{\"type\":\"{kind}\",\"sequence_number\":{sequence}{}{fields}}}\n\n",
            if fields.is_empty() { "" } else { "," }
        ));
        sequence += 1;
    };
    event(
        &mut pieces,
        "response.created",
        r#""response":{"id":"resp_1","status":"in_progress","output":[]}"#,
    );
    let mut index = 0;
    if !say.reasoning.is_empty() {
        let item = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
        event(
            &mut pieces,
            "response.output_item.added",
            &format!("\"output_index\":{index},\"item\":{item}"),
        );
        event(
            &mut pieces,
            "response.reasoning_summary_part.added",
            &format!("\"output_index\":{index},\"summary_index\":0"),
        );
        for word in words(&say.reasoning) {
            let fields =
                format!("\"output_index\":{index},\"summary_index\":0,\"delta\":{}", json!(word));
            event(&mut pieces, "response.reasoning_summary_text.delta", &fields);
        }
        let fields = format!("\"output_index\":{index},\"item\":{}", sealed(&say.reasoning));
        event(&mut pieces, "response.output_item.done", &fields);
        index += 1;
    }
    if !say.text.is_empty() {
        let item = r#"{"type":"message","id":"msg_1","role":"assistant","content":[]}"#;
        event(
            &mut pieces,
            "response.output_item.added",
            &format!("\"output_index\":{index},\"item\":{item}"),
        );
        for word in words(&say.text) {
            let fields =
                format!("\"output_index\":{index},\"content_index\":0,\"delta\":{}", json!(word));
            event(&mut pieces, "response.output_text.delta", &fields);
        }
        let item = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": say.text}]});
        event(
            &mut pieces,
            "response.output_item.done",
            &format!("\"output_index\":{index},\"item\":{item}"),
        );
        index += 1;
    }
    for (n, (tool, args)) in say.calls.iter().enumerate() {
        let item = |args: &str| json!({"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("call_{n}"), "name": tool, "arguments": args});
        event(
            &mut pieces,
            "response.output_item.added",
            &format!("\"output_index\":{index},\"item\":{}", item("")),
        );
        let (head, tail) = halves(args);
        for half in [head, tail] {
            let fields = format!("\"output_index\":{index},\"delta\":{}", json!(half));
            event(&mut pieces, "response.function_call_arguments.delta", &fields);
        }
        event(
            &mut pieces,
            "response.output_item.done",
            &format!("\"output_index\":{index},\"item\":{}", item(args)),
        );
        index += 1;
    }
    let usage = json!({"input_tokens": say.usage.input, "output_tokens": say.usage.output});
    let response = json!({"id": "resp_1", "status": "completed", "output": [], "usage": usage});
    event(&mut pieces, "response.completed", &format!("\"response\":{response}"));
    pieces
}

fn anthropic(say: &Say) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut event = |kind: &str, mut fields: Value| {
        fields["type"] = json!(kind);
        pieces.push(format!("event: {kind}\ndata: {fields}\n\n"));
    };
    let apart = say.usage.cached + say.usage.written;
    let mut usage =
        json!({"input_tokens": say.usage.input.saturating_sub(apart), "output_tokens": 1});
    if apart > 0 {
        usage["cache_read_input_tokens"] = json!(say.usage.cached);
        usage["cache_creation_input_tokens"] = json!(say.usage.written);
    }
    event(
        "message_start",
        json!({"message": {"id": "msg_1", "role": "assistant", "content": [], "usage": usage}}),
    );
    event("ping", json!({}));
    let mut index = 0;
    if !say.reasoning.is_empty() {
        let block = json!({"type": "thinking", "thinking": "", "signature": ""});
        event("content_block_start", json!({"index": index, "content_block": block}));
        for word in words(&say.reasoning) {
            event(
                "content_block_delta",
                json!({"index": index, "delta": {"type": "thinking_delta", "thinking": word}}),
            );
        }
        for half in ["EqQB", "sig=="] {
            event(
                "content_block_delta",
                json!({"index": index, "delta": {"type": "signature_delta", "signature": half}}),
            );
        }
        event("content_block_stop", json!({"index": index}));
        index += 1;
    }
    if !say.text.is_empty() {
        event(
            "content_block_start",
            json!({"index": index, "content_block": {"type": "text", "text": ""}}),
        );
        for word in words(&say.text) {
            event(
                "content_block_delta",
                json!({"index": index, "delta": {"type": "text_delta", "text": word}}),
            );
        }
        event("content_block_stop", json!({"index": index}));
        index += 1;
    }
    for (n, (tool, args)) in say.calls.iter().enumerate() {
        let block =
            json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": tool, "input": {}});
        event("content_block_start", json!({"index": index, "content_block": block}));
        let (head, tail) = halves(args);
        for half in [head, tail] {
            event(
                "content_block_delta",
                json!({"index": index, "delta": {"type": "input_json_delta", "partial_json": half}}),
            );
        }
        event("content_block_stop", json!({"index": index}));
        index += 1;
    }
    let reason = if say.calls.is_empty() { "end_turn" } else { "tool_use" };
    event(
        "message_delta",
        json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": say.usage.output}}),
    );
    event("message_stop", json!({}));
    pieces
}

fn ollama(say: &Say) -> Vec<String> {
    let line = |message: Value| {
        format!("{}\n", json!({"model": "scripted", "message": message, "done": false}))
    };
    let mut pieces = Vec::new();
    for word in words(&say.reasoning) {
        pieces.push(line(json!({"role": "assistant", "content": "", "thinking": word})));
    }
    for word in words(&say.text) {
        pieces.push(line(json!({"role": "assistant", "content": word})));
    }
    for (tool, args) in &say.calls {
        let name = json!(tool);
        let call = format!(r#"{{"function":{{"name":{name},"arguments":{args}}}}}"#);
        pieces.push(format!(
            "{{\"model\":\"scripted\",\"message\":{{\"role\":\"assistant\",\"content\":\"\",\"\
             tool_calls\":[{call}]}},\"done\":false}}\n"
        ));
    }
    let (input, output) = (say.usage.input, say.usage.output);
    let end = json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop",
        "prompt_eval_count": input, "eval_count": output});
    pieces.push(format!("{end}\n"));
    pieces
}

/// An answer that comes whole, as one JSON object.
#[must_use]
pub fn whole(wire: Wire, say: &Say) -> String {
    let calls = |form: &dyn Fn(usize, &str, &str) -> Value| -> Vec<Value> {
        say.calls.iter().enumerate().map(|(n, (tool, args))| form(n, tool, args)).collect()
    };
    let object = |args: &str| serde_json::from_str::<Value>(args).unwrap_or(Value::Null);
    match wire {
        Wire::Chat => {
            let calls = calls(
                &|_, tool, args| json!({"id": "c", "type": "function", "function": {"name": tool, "arguments": args}}),
            );
            let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
            let message = json!({"role": "assistant", "content": say.text, "tool_calls": calls});
            json!({"choices": [{"message": message, "finish_reason": finish}]}).to_string()
        }
        Wire::Responses => {
            let mut output = vec![
                json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": say.text}]}),
            ];
            output.extend(calls(&|n, tool, args| {
                json!({"type": "function_call", "call_id": format!("call_{n}"), "name": tool, "arguments": args})
            }));
            json!({"object": "response", "status": "completed", "output": output}).to_string()
        }
        Wire::Anthropic => {
            let mut content = vec![json!({"type": "text", "text": say.text})];
            content.extend(calls(&|n, tool, args| {
                json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": tool, "input": object(args)})
            }));
            json!({"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}).to_string()
        }
        Wire::Ollama => {
            let calls = calls(
                &|_, tool, args| json!({"function": {"name": tool, "arguments": object(args)}}),
            );
            json!({"message": {"role": "assistant", "content": say.text, "tool_calls": calls}, "done": true})
                .to_string()
        }
    }
}
