//! Saved rules, for one project or for all: what the user allows without asking, and what they deny.

use crate::answer::{ApiError, Json, json};
use crate::app::App;
use crate::host::{RuleRow, SetRule};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

/// The saved rules.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rules {
    rules: Vec<RuleRow>,
}

fn all_rules(app: &App) -> Result<Response, ApiError> {
    Ok(json(StatusCode::OK, &Rules { rules: app.host.rules()? }))
}

/// Lists the saved rules.
pub(crate) async fn rules(State(app): State<App>) -> Result<Response, ApiError> {
    all_rules(&app)
}

/// Adds or removes a saved rule.
pub(crate) async fn set_rule(
    State(app): State<App>,
    Json(set): Json<SetRule>,
) -> Result<Response, ApiError> {
    app.host.rule(&set)?;
    all_rules(&app)
}
