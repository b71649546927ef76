//! Dialects: how tool calls are written, independent of the wire: native, as marked text, or as a
//! JSON plan.
//!
//! A dialect has three parts: the instructions to the model (`prompts/`), the parser of its answers
//! (`AnswerParser`), and the rendering of the conversation so far (`answer` and `result` in its
//! file). The agent loop does not know which dialect is in use.
//!
//! Invariant: a call found in text has a known name and valid arguments, or it has a fault and
//! never runs.

mod forms;
pub(crate) mod plan;
pub mod schema;
pub mod text_calls;
mod think;

use crate::words::words;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// How calls are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// As the wire's own tool calls.
    #[default]
    Native,
    /// Between markers in the text of the answer.
    Text,
    /// The whole answer is one JSON object.
    Plan,
}

words!(Dialect { Native = "native", Text = "text", Plan = "plan", });

/// A tool that can be called in text.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Callable {
    /// The tool's name.
    pub name: String,
    /// The schema of its arguments.
    pub schema: Value,
}

/// A call that was found in text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCall {
    /// The tool.
    pub tool: String,
    /// The arguments, as the model wrote them.
    pub args: String,
    /// It was not written in the form that the prompt asks for.
    pub recovered: bool,
    /// Why it cannot run.
    pub fault: Option<String>,
}

/// What the parser found in the text of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// Text for the user.
    Text(String),
    /// The model's reasoning.
    Reasoning(String),
    /// A call.
    Call(FoundCall),
    /// Everything so far was reasoning.
    AllThought,
    /// The calls so far may have been part of reasoning.
    Doubt,
}

/// Parses the text of one answer.
#[derive(Debug)]
pub(crate) struct AnswerParser {
    think: think::Think,
    calls: Calls,
}

#[derive(Debug)]
enum Calls {
    Native,
    Text(text_calls::TextCallReader),
    Plan(plan::PlanReader),
}

impl AnswerParser {
    pub(crate) fn new(dialect: Dialect, tools: &Arc<[Callable]>) -> Self {
        let calls = match dialect {
            Dialect::Native => Calls::Native,
            Dialect::Text => Calls::Text(text_calls::TextCallReader::new(tools.clone())),
            Dialect::Plan => Calls::Plan(plan::PlanReader::new(tools.clone())),
        };
        Self { think: think::Think::default(), calls }
    }

    pub(crate) fn feed(&mut self, more: &str, out: &mut Vec<Parsed>) {
        let mut first = Vec::new();
        self.think.feed(more, &mut first);
        self.calls.hear(first, out);
    }

    /// An item of the answer is complete: what follows begins on a new line.
    pub(crate) fn end_item(&mut self, out: &mut Vec<Parsed>) {
        if self.is_native() {
            self.think.finish(out);
            self.think.end_line();
        }
    }

    pub(crate) fn is_native(&self) -> bool {
        matches!(self.calls, Calls::Native)
    }

    /// The answer broke off: releases held-back text as text.
    pub(crate) fn release(&mut self, out: &mut Vec<Parsed>) {
        let mut first = Vec::new();
        self.think.finish(&mut first);
        out.append(&mut first);
        match &mut self.calls {
            Calls::Native | Calls::Plan(_) => {}
            Calls::Text(reader) => out.push(Parsed::Text(reader.forget())),
        }
    }

    /// Ends the answer; `cut` means that it reached the output limit.
    pub(crate) fn finish(&mut self, cut: bool, out: &mut Vec<Parsed>) {
        let mut first = Vec::new();
        self.think.finish(&mut first);
        self.calls.hear(first, out);
        match &mut self.calls {
            Calls::Native => {}
            Calls::Text(reader) => reader.finish(cut, out),
            Calls::Plan(reader) => reader.finish(cut, out),
        }
    }
}

impl Calls {
    fn hear(&mut self, first: Vec<Parsed>, out: &mut Vec<Parsed>) {
        for heard in first {
            match (&mut *self, heard) {
                (Self::Text(reader), Parsed::Text(text)) => reader.feed(&text, out),
                (Self::Plan(reader), Parsed::Text(text)) => reader.feed(&text, out),
                (Self::Text(reader), Parsed::AllThought) => {
                    // The text that was held back was reasoning, too.
                    out.push(Parsed::Text(reader.forget()));
                    out.push(Parsed::AllThought);
                }
                (Self::Text(reader), Parsed::Doubt) => {
                    out.push(Parsed::Text(reader.forget()));
                    out.push(Parsed::Doubt);
                }
                (Self::Plan(reader), Parsed::AllThought) => {
                    reader.forget();
                    out.push(Parsed::AllThought);
                }
                (_, other) => out.push(other),
            }
        }
    }
}

/// How the faults begin that concern only the name or the form of the arguments.
const UNKNOWN: &str = "there is no tool";
const INVALID: &str = "the arguments are invalid";

/// Whether a fault concerns only the name or the form of the arguments.
pub(crate) fn is_misspelled(fault: &str) -> bool {
    fault.starts_with(UNKNOWN) || fault.starts_with(INVALID)
}

/// Checks a call's name and arguments, and records any fault.
pub(crate) fn checked(tools: &[Callable], name: &str, args: String, recovered: bool) -> FoundCall {
    let name = name.strip_prefix("functions.").unwrap_or(name);
    let fault = match tools.iter().find(|t| t.name == name) {
        None => {
            let known: Vec<&str> = tools.iter().map(|t| t.name.as_str()).collect();
            Some(format!("{UNKNOWN} {name:?}; use one of {}", known.join(", ")))
        }
        Some(tool) => match serde_json::from_str::<Value>(&args) {
            Ok(value) => {
                schema::check(&tool.schema, &value).err().map(|why| format!("{INVALID}: {why}"))
            }
            Err(error) => Some(format!("the arguments are not JSON: {error}")),
        },
    };
    FoundCall { tool: name.to_owned(), args, recovered, fault }
}

/// The JSON value at the beginning of a text, as written, and its length; `Ok(None)` if it is
/// incomplete.
pub(crate) fn json_prefix(text: &str) -> Result<Option<(&RawValue, usize)>, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(value)) => Ok(Some((value, values.byte_offset()))),
        Some(Err(error)) if error.is_eof() => Ok(None),
        Some(Err(error)) => Err(error.to_string()),
        None => Ok(None),
    }
}
