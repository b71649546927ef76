//! Saved rules, which apply to every session: what the user allows without asking, and what they
//! deny.

use crate::answer::{ApiError, Json, json};
use crate::app::App;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use dunnock_proto::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The saved rules, which apply to every session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rules {
    rules: Vec<RuleRow>,
}

/// A saved rule.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RuleRow {
    rule: Rule,
    /// A description.
    words: String,
    /// Whether it allows or denies.
    allow: bool,
}

/// A rule to add or remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetRule {
    rule: Rule,
    /// Whether the rule allows or denies. Only rules that allow can be added here.
    allow: bool,
    /// True adds the rule, false removes it.
    active: bool,
}

fn all_rules(app: &App) -> Result<Response, ApiError> {
    let ruled = |(rule, words, allows)| RuleRow { rule, words, allow: allows };
    Ok(json(StatusCode::OK, &Rules { rules: app.host.rules()?.into_iter().map(ruled).collect() }))
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
    app.host.rule(&set.rule, set.allow, set.active)?;
    all_rules(&app)
}
