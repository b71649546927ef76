//! Rules that hold in every session: what the person lets run unasked, and what they forbid.

use crate::App;
use crate::answer::{ApiError, Json, json};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use dunnock_proto::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules that hold in every session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rules {
    rules: Vec<RuleRow>,
}

/// One of them.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RuleRow {
    rule: Rule,
    /// The same in words.
    words: String,
    /// It lets something run; otherwise it forbids it.
    allow: bool,
}

/// A rule to make or to take back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetRule {
    rule: Rule,
    /// Which it is: one that lets something run, or one that forbids it. Only the former can be made here.
    allow: bool,
    /// Whether it holds from now on.
    active: bool,
}

fn all_rules(app: &App) -> Result<Response, ApiError> {
    let ruled = |(rule, words, allows)| RuleRow { rule, words, allow: allows };
    Ok(json(StatusCode::OK, &Rules { rules: app.host.rules()?.into_iter().map(ruled).collect() }))
}

/// The rules that hold in every session.
pub(crate) async fn rules(State(app): State<App>) -> Result<Response, ApiError> {
    all_rules(&app)
}

/// Makes a rule for every session, or takes one back.
pub(crate) async fn set_rule(State(app): State<App>, Json(set): Json<SetRule>) -> Result<Response, ApiError> {
    app.host.rule(&set.rule, set.allow, set.active)?;
    all_rules(&app)
}
