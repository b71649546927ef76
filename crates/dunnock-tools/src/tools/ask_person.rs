//! `ask_person`: answered by the user, through the session.

use crate::tool::{Example, Tool, ToolContext, ToolOutput};
use dunnock_proto::{Class, Piece, Recovery, Role, ToolView};
use schemars::JsonSchema;
use serde::Deserialize;

/// Asks the person a question and waits for the answer. Use it when the task is unclear in a way
/// that matters and the files do not answer it; the wait may be long.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct AskPerson {
    /// The question, with what the person needs to know to answer it.
    #[schemars(length(min = 1, max = 4000))]
    #[expect(dead_code, reason = "the session reads it")]
    question: String,
    /// Answers to choose from, if any.
    #[serde(default)]
    #[schemars(length(max = 10), inner(length(max = 200)))]
    #[expect(dead_code, reason = "the session reads it")]
    choices: Vec<String>,
}

impl Tool for AskPerson {
    const NAME: &'static str = "ask_person";
    const CLASS: Class = Class::Read;
    const RECOVERY: Recovery = Recovery::Repeat;
    const ROLE: Role = Role::AskPerson;
    const VIEW: ToolView = ToolView::new("ask_person", &[Piece::text(&["question"])]);
    const EXAMPLES: &'static [Example] = &[];

    async fn run(self, _: ToolContext) -> ToolOutput {
        Err::<String, _>("the session itself handles this call").into()
    }
}
