//! `update_plan`: the list of steps that interfaces show.

use crate::tool::{Example, Tool, ToolContext, ToolOutput};
use dunnock_proto::{Class, Form, Piece, Recovery, Role, ToolView};
use schemars::JsonSchema;
use serde::Deserialize;

/// Sets the list of steps that the person sees. Give all steps each time; one is active at a time.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct UpdatePlan {
    /// All steps, in order.
    #[schemars(length(max = 30))]
    #[expect(dead_code, reason = "the session reads it")]
    steps: Vec<PlanStep>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the session reads it")]
struct PlanStep {
    /// What to do, in a few words.
    #[schemars(length(max = 200))]
    text: String,
    /// Its status.
    state: Progress,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Progress {
    Pending,
    Active,
    Done,
}

impl Tool for UpdatePlan {
    const NAME: &'static str = "update_plan";
    const CLASS: Class = Class::Read;
    const RECOVERY: Recovery = Recovery::Repeat;
    const ROLE: Role = Role::Plan;
    const VIEW: ToolView = ToolView::new(
        "update_plan",
        &[Piece::text(&["steps"]).form(Form::StepCount).or("0 steps")],
    );
    const EXAMPLES: &'static [Example] = &[];

    async fn run(self, _: ToolContext) -> ToolOutput {
        Err::<String, _>("the session itself handles this call").into()
    }
}
