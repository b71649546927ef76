//! How calls are written, whatever wire carries them: as the wire's own, as marked text, or as a JSON plan.
//!
//! A dialect has three sides: what the model is told (`prompts/`), how its words are read ([`AnswerParser`]), and how the conversation
//! so far is written for it again (`answer` and `result` of its file). The loop never knows which one is spoken.
//!
//! Invariant: a call found in words has a known name and arguments that fit, or it carries its fault and never runs.

pub mod bridge;
mod forms;
mod marks;
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
    /// As the wire has them.
    #[default]
    Native,
    /// Marked, in the text of the answer.
    Text,
    /// The whole answer is one JSON object.
    Plan,
}

words!(Dialect { Native = "native", Text = "text", Plan = "plan", });

/// A tool that may be called in words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Callable {
    /// Its name.
    pub name: String,
    /// The schema of its arguments.
    pub schema: Value,
}

/// A call that was found in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCall {
    /// The tool.
    pub tool: String,
    /// The arguments as they were written.
    pub args: String,
    /// It was not asked for in this form.
    pub recovered: bool,
    /// Why it cannot run.
    pub fault: Option<String>,
}

/// What was heard in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// Words for the person.
    Text(String),
    /// Thoughts.
    Reasoning(String),
    /// A call.
    Call(FoundCall),
    /// Everything so far was thought.
    AllThought,
    /// What was called so far may have been thought.
    Doubt,
}

/// Reads the words of one answer.
#[derive(Debug)]
pub(crate) struct AnswerParser {
    think: think::Think,
    calls: Calls,
}

#[derive(Debug)]
enum Calls {
    Native,
    Text(text_calls::Reader),
    Plan(plan::Reader),
}

impl AnswerParser {
    pub(crate) fn new(dialect: Dialect, tools: &Arc<[Callable]>) -> Self {
        let calls = match dialect {
            Dialect::Native => Calls::Native,
            Dialect::Text => Calls::Text(text_calls::Reader::new(tools.clone())),
            Dialect::Plan => Calls::Plan(plan::Reader::new(tools.clone())),
        };
        Self { think: think::Think::default(), calls }
    }

    pub(crate) fn feed(&mut self, more: &str, out: &mut Vec<Parsed>) {
        let mut first = Vec::new();
        self.think.feed(more, &mut first);
        self.calls.hear(first, out);
    }

    /// The answer broke off: what was held back.
    pub(crate) fn release(&mut self, out: &mut Vec<Parsed>) {
        let mut first = Vec::new();
        self.think.finish(&mut first);
        out.append(&mut first);
        match &mut self.calls {
            Calls::Native | Calls::Plan(_) => {}
            Calls::Text(reader) => out.push(Parsed::Text(reader.forget())),
        }
    }

    /// Nothing more comes; `cut`: because the answer was too long.
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
                    // What was held back was thought, too.
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

/// A call by its name and arguments, checked.
pub(crate) fn checked(tools: &[Callable], name: &str, args: String, recovered: bool) -> FoundCall {
    let name = name.strip_prefix("functions.").unwrap_or(name);
    let fault = match tools.iter().find(|t| t.name == name) {
        None => {
            let known: Vec<&str> = tools.iter().map(|t| t.name.as_str()).collect();
            Some(format!("there is no tool {name:?}; there are {}", known.join(", ")))
        }
        Some(tool) => match serde_json::from_str::<Value>(&args) {
            Ok(value) => {
                schema::check(&tool.schema, &value).err().map(|why| format!("the arguments do not fit: {why}"))
            }
            Err(error) => Some(format!("the arguments are not JSON: {error}")),
        },
    };
    FoundCall { tool: name.to_owned(), args, recovered, fault }
}

/// A JSON value at the beginning of a text, as it is written, and how long it is; `None` in `Ok` when more must come.
pub(crate) fn json_prefix(text: &str) -> Result<Option<(&RawValue, usize)>, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(value)) => Ok(Some((value, values.byte_offset()))),
        Some(Err(error)) if error.is_eof() => Ok(None),
        Some(Err(error)) => Err(error.to_string()),
        None => Ok(None),
    }
}
