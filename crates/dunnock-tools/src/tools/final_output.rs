//! `final_output`: ends the task.

use crate::tool::{Example, Tool, ToolContext, ToolOutput};
use dunnock_proto::{Class, Piece, Recovery, Role, ToolView};
use schemars::JsonSchema;
use serde::Deserialize;

/// Finishes the task and gives the person the answer. The checks that the person asked for run
/// afterwards; if one fails, you see its result and continue.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FinalOutput {
    /// What the person reads: what was done, what was checked, what remains. Markdown.
    #[schemars(length(max = 100_000))]
    #[expect(dead_code, reason = "the session reads it")]
    answer: String,
}

impl Tool for FinalOutput {
    const NAME: &'static str = "final_output";
    const CLASS: Class = Class::Read;
    const RECOVERY: Recovery = Recovery::Repeat;
    const ROLE: Role = Role::Final;
    const VIEW: ToolView = ToolView::new("final_output", &[Piece::text(&["answer"])]);
    const EXAMPLES: &'static [Example] = &[];

    async fn run(self, _: ToolContext) -> ToolOutput {
        Err::<String, _>("the session itself handles this call").into()
    }
}
