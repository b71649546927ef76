//! Rules that hold in every session: what the person lets run unasked, and what they forbid.

use crate::App;
use crate::answer::{No, Read, json};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use dunnock_proto::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules that hold in every session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rules {
    rules: Vec<Ruled>,
}

/// One of them.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ruled {
    rule: Rule,
    /// The same in words.
    words: String,
    /// It lets something run; otherwise it forbids it.
    allows: bool,
}

/// A rule to make or to take back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetRule {
    rule: Rule,
    /// Which it is: one that lets something run, or one that forbids it. Only the former can be made here.
    allows: bool,
    /// Whether it holds from now on.
    holds: bool,
}

fn all_rules(app: &App) -> Result<Response, No> {
    let ruled = |(rule, words, allows)| Ruled { rule, words, allows };
    Ok(json(StatusCode::OK, &Rules { rules: app.host.rules()?.into_iter().map(ruled).collect() }))
}

/// The rules that hold in every session.
pub(crate) async fn rules(State(app): State<App>) -> Result<Response, No> {
    all_rules(&app)
}

/// Makes a rule for every session, or takes one back.
pub(crate) async fn set_rule(State(app): State<App>, Read(set): Read<SetRule>) -> Result<Response, No> {
    app.host.rule(&set.rule, set.allows, set.holds)?;
    all_rules(&app)
}
