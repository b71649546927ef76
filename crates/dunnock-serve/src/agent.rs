//! The stateless service: one prompt, at most one tool call, one answer; nothing is stored.
//!
//! It runs the same loop on a log in memory. The caller's history is condensed and put before the
//! prompt.

use crate::answer::{ApiError, BODY_TIME, LONGEST, json, whole};
use crate::app::App;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use dunnock_engine::{Connection, create};
use dunnock_proto::{Command, Decoded, EndReason, Event, Frame, Outcome, Part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Time limit for one answer.
const TIME: Duration = Duration::from_secs(600);
/// Limits for the history: the newest entries; characters of each prompt and result; total length.
const ENTRIES: usize = 20;
const ENTRY: usize = 240;
const ALL: usize = 4_000;

/// A request to the stateless service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRequest {
    /// The task.
    #[schemars(regex(pattern = r"\S"))]
    pub prompt: String,
    /// Accepted and ignored.
    #[serde(default)]
    pub tool_type: Option<Value>,
    /// Earlier requests and results: the service itself remembers nothing.
    #[serde(default)]
    pub context_history: Option<Vec<HistoryEntry>>,
}

/// An earlier request to the service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    /// When it was made, in any format.
    #[serde(default)]
    pub timestamp: Option<Value>,
    /// The prompt.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The result, in any form.
    #[serde(default)]
    pub result: Option<Value>,
}

/// The response, in every case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentAnswer {
    /// Whether it succeeded.
    pub success: bool,
    /// `Tool execution result` or `AgentService error`.
    pub message: String,
    /// The tool's output, or the model's text if it called no tool.
    pub data: Option<String>,
    /// The error, if it failed.
    pub error: Option<String>,
}

const RESULT: &str = "Tool execution result";
const ERROR: &str = "AgentService error";

impl AgentAnswer {
    fn said(text: String) -> Self {
        Self { success: true, message: RESULT.into(), data: Some(text), error: None }
    }
    fn tool_failed(text: &str) -> Self {
        Self {
            success: false,
            message: RESULT.into(),
            data: None,
            error: Some(format!("Error: {text}")),
        }
    }
    pub(crate) fn broke(why: impl Into<String>) -> Self {
        Self { success: false, message: ERROR.into(), data: None, error: Some(why.into()) }
    }
}

/// Answers one prompt.
pub(crate) async fn agent(State(app): State<App>, request: Request) -> Response {
    let bad = |status, why: String| json(status, &AgentAnswer::broke(why));
    let body = match whole(request.into_body(), LONGEST, BODY_TIME).await {
        Ok(body) => body,
        Err(no) => return refused(&no),
    };
    let asked: AgentRequest = match crate::strict::read(&body) {
        Ok(asked) => asked,
        Err(error) => {
            return bad(StatusCode::BAD_REQUEST, format!("invalid request body: {error}"));
        }
    };
    if asked.prompt.trim().is_empty() {
        return bad(StatusCode::BAD_REQUEST, "the prompt is empty; say what to do".into());
    }
    let Ok(_place) = app.calls.clone().acquire_owned().await else {
        return bad(StatusCode::OK, "the server is shutting down".into());
    };
    json(StatusCode::OK, &once(&app, &asked).await.unwrap_or_else(AgentAnswer::broke))
}

/// A response in the service's own form to a request that was refused early. Authentication errors
/// keep their status; a body that is too large, too slow or not JSON becomes 400.
pub(crate) fn refused(no: &ApiError) -> Response {
    let status = match no.0 {
        StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::REQUEST_TIMEOUT => StatusCode::BAD_REQUEST,
        other => other,
    };
    json(status, &AgentAnswer::broke(no.1.clone()))
}

async fn once(app: &App, asked: &AgentRequest) -> Result<AgentAnswer, String> {
    let once = app.host.once().await.map_err(|refusal| match refusal {
        crate::Refusal::NotFound(why) | crate::Refusal::Conflict(why) => why,
    })?;
    let session = create(&once.ports, &once.workspace, once.config.clone())
        .await
        .map_err(|e| e.to_string())?;
    let mut connection = Connection::open(once.ports.clone(), session.clone(), 0)
        .await
        .map_err(|e| e.to_string())?;
    let text = condensed(asked.context_history.as_deref().unwrap_or_default(), &asked.prompt);
    let answer = tokio::time::timeout(TIME, converse(&mut connection, text)).await;
    let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {} s", TIME.as_secs())));
    // Whatever the result, nothing of it keeps running.
    connection.close().await;
    drop(once.holds);
    answer
}

/// Runs until the tool call has ended, or the task ends without one.
async fn converse(connection: &mut Connection, text: String) -> Result<AgentAnswer, String> {
    let sent = connection
        .send(Command::Prompt { text: text.into(), images: Vec::new() })
        .await
        .map_err(|e| e.to_string())?;
    sent.map_err(|refusal| refusal.to_string())?;
    let (mut words, mut ended) = (String::new(), None);
    loop {
        let Frame::Event(record) = connection.next().await.map_err(|e| e.to_string())? else {
            continue;
        };
        let Decoded::Known(event) = record.decode() else { continue };
        match event {
            Event::Answered(answered) => words = Part::words(&answered.parts),
            Event::Finished(finished) => {
                ended = Some(match finished.outcome {
                    Outcome::Done => AgentAnswer::said(finished.shown.to_string()),
                    _ => AgentAnswer::tool_failed(&finished.shown),
                });
            }
            // There is no one who could answer.
            Event::Asked(asked) => {
                let view = asked.kind.view();
                let why = view.reasons.first().cloned().unwrap_or(view.heading);
                return Ok(AgentAnswer::tool_failed(&format!(
                    "this needs a person's answer, and the stateless service cannot ask anyone: \
                     {why}"
                )));
            }
            Event::Ended(end) => {
                return match (ended, &end.reason) {
                    (Some(answer), _) => Ok(answer),
                    (None, EndReason::Failed { error }) => Err(error.to_string()),
                    (None, EndReason::Done) => Ok(AgentAnswer::said(words)),
                    (None, EndReason::Budget) => {
                        Err("the budget does not cover the next request".into())
                    }
                    (None, why) => Err(format!("the request ended without an answer: {why:?}")),
                };
            }
            _ => {}
        }
    }
}

/// The first characters of a text, on one line.
fn short(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}

/// A bounded summary of the history, preferring the newest entries, followed by the prompt.
fn condensed(history: &[HistoryEntry], prompt: &str) -> String {
    let plain = |value: &Option<Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let mut lines: Vec<String> = Vec::new();
    let mut left = ALL;
    for past in history.iter().rev().take(ENTRIES) {
        let when = short(&plain(&past.timestamp), 40);
        let asked = short(past.prompt.as_deref().unwrap_or_default(), ENTRY);
        let line =
            format!("- [{when}] asked: {asked} | result: {}", short(&plain(&past.result), ENTRY));
        let Some(rest) = left.checked_sub(line.len()) else { break };
        left = rest;
        lines.push(line);
    }
    if lines.is_empty() {
        return prompt.to_owned();
    }
    let dropped = history.len() - lines.len();
    lines.reverse();
    if dropped > 0 {
        lines.insert(0, format!("- (earlier requests omitted: {dropped})"));
    }
    format!(
        "Earlier requests in this conversation, shortened:\n{}\n\nCurrent request:\n{prompt}",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(n: usize, long: usize) -> HistoryEntry {
        let text = format!("{n} {}", "x".repeat(long));
        HistoryEntry {
            timestamp: Some(n.into()),
            prompt: Some(text.clone()),
            result: Some(text.into()),
        }
    }

    /// Holds S1: the bound of the summary.
    #[test]
    fn a_history_is_bounded_and_keeps_the_newest() {
        assert_eq!(condensed(&[], "do"), "do");
        let history: Vec<HistoryEntry> = (0..500).map(|n| past(n, 10_000)).collect();
        let text = condensed(&history, "do");
        assert!(text.len() < ALL + 200, "{}", text.len());
        assert!(text.contains("- [499] asked: 499 x"), "{text}");
        assert!(text.contains("earlier requests omitted: ") && !text.contains("- [0]"));
        assert!(text.ends_with("Current request:\ndo"));
    }

    /// Holds S1: what the summary says.
    #[test]
    fn a_history_is_told_in_order_and_any_form_of_result_will_do() {
        let odd = HistoryEntry {
            timestamp: None,
            prompt: None,
            result: Some(serde_json::json!({"a": [1]})),
        };
        let text = condensed(&[past(1, 0), odd, past(2, 0)], "do");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "- [1] asked: 1 | result: 1");
        assert_eq!(lines[2], "- [] asked:  | result: {\"a\":[1]}");
        assert_eq!(lines[3], "- [2] asked: 2 | result: 2");
    }
}
