//! `dunnock sessions`: list, show, verify.

use crate::args::Sessions;
use crate::say;
use anyhow::{Context as _, bail};
use dunnock_core::ports::{Listed, Log, LogError};
use dunnock_engine::check_chain;
use dunnock_proto::{Decoded, Event, Outcome, Part, Record, SessionId, Why};
use dunnock_store::Sqlite;
use serde_json::json;
use std::process::ExitCode;

pub(crate) async fn run(store: &Sqlite, which: Sessions) -> anyhow::Result<ExitCode> {
    match which {
        Sessions::List { here, json, most } => list(store, here, json, most).await,
        Sessions::Show { id, json } => show(store, &find(store, &id).await?, json).await,
        Sessions::Verify { id, json } => verify(store, id.as_deref(), json).await,
    }
}

/// The one session whose id begins so.
async fn find(store: &Sqlite, prefix: &str) -> anyhow::Result<SessionId> {
    match store.find(prefix).await?.as_slice() {
        [] => bail!("there is no session {prefix}. \"dunnock sessions list\" shows those there are"),
        [one] => Ok(one.clone()),
        _ => bail!("several sessions begin with {prefix}. Give more of the id; \"dunnock sessions list\" shows them"),
    }
}

async fn list(store: &Sqlite, here: bool, json: bool, most: u32) -> anyhow::Result<ExitCode> {
    let folder = match here {
        true => Some(std::env::current_dir().context("this folder cannot be read")?.to_string_lossy().into_owned()),
        false => None,
    };
    let rows = store.list(folder.as_deref(), most).await?;
    if json {
        rows.iter().for_each(|row| say::line(&row_json(row).to_string()));
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        say::note(match here {
            true => "no sessions in this folder yet. Without --here, those of all folders are listed",
            false => "no sessions yet",
        });
    }
    for row in rows {
        let title: String = say::one_line(&row.title).chars().take(60).collect();
        say::line(&format!(
            "{}  {:<8} {}  {title}  {}",
            row.id,
            say::one_line(&row.status),
            say::time(row.created),
            say::one_line(&row.workspace)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn row_json(row: &Listed) -> serde_json::Value {
    json!({
        "id": row.id.as_str(), "title": row.title, "workspace": row.workspace, "state": row.status,
        "created": say::time(row.created), "version": row.version,
    })
}

async fn show(store: &Sqlite, id: &SessionId, json: bool) -> anyhow::Result<ExitCode> {
    let mut lines = Vec::new();
    store
        .read(id, 0, &mut |record| {
            match json {
                true => lines.extend(serde_json::to_string(&record)),
                false => lines.extend(told(&record)),
            }
            true
        })
        .await?;
    lines.iter().for_each(|line| say::line(line));
    Ok(ExitCode::SUCCESS)
}

/// A fact in words; nothing for those that only matter to the machine.
fn told(record: &Record) -> Option<String> {
    let event = match record.decode() {
        Decoded::Known(event) => event,
        Decoded::Unknown(why) => return Some(say::visible(&format!("? {} ({why})", record.envelope.kind))),
    };
    let text = match event {
        Event::Created(e) => format!("session in {}, {}", e.workspace, say::time(record.envelope.at)),
        Event::Forked(e) => format!("branched off {} at fact {}", e.from, e.at),
        Event::Prompted(e) => format!("\n> {}", e.text),
        Event::Continued(_) => "\n> (go on)".into(),
        Event::Answered(e) => {
            let parts = e.parts.iter().filter_map(|part| match part {
                Part::Text { text } => Some(text.to_string()),
                Part::Call(call) => Some(format!("  call {} {}", call.tool, call.args)),
                Part::Reasoning { .. } => None,
            });
            parts.collect::<Vec<_>>().join("\n")
        }
        Event::TurnFailed(e) => format!("  the model did not answer: {}", e.error),
        Event::Asked(e) => format!("  {} waits: {}", e.question, e.text),
        Event::Replied(e) => format!("  {} answered: {:?}", e.question, e.answer),
        Event::Finished(e) => format!("  {} {}: {}", e.call, outcome(&e.outcome), e.shown),
        Event::Called(e) => format!("  check {} {}", e.tool, e.args),
        Event::InterruptAsked(_) => "  interrupted".into(),
        Event::Rewound(_) => "  went back".into(),
        Event::Compacted(e) => format!("  compacted: {} bytes, then {}", e.before, e.after),
        Event::Ended(e) => format!("ended: {}", why(&e.why)),
        Event::Titled(e) => format!("titled {}", e.title),
        Event::Noticed(e) => format!("  note: {}", e.text),
        _ => return None,
    };
    Some(say::visible(&text))
}

fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Declined { .. } => "declined",
        Outcome::Cut => "cut off",
        Outcome::NotRun => "not run",
        Outcome::Unknown => "outcome unknown",
    }
}

fn why(why: &Why) -> String {
    match why {
        Why::Done => "done".into(),
        Why::Stopped => "stopped".into(),
        Why::Failed { error } => format!("failed: {error}"),
        Why::Limit => "the limit of steps was reached".into(),
        Why::Budget => "the budget was used up".into(),
        Why::Unproven => "verification failed".into(),
    }
}

async fn verify(store: &Sqlite, id: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let ids = match id {
        Some(prefix) => vec![find(store, prefix).await?],
        None => store.list(None, u32::MAX).await?.into_iter().map(|row| row.id).collect(),
    };
    let mut code = ExitCode::SUCCESS;
    for id in ids {
        let (ok, text, detail) = match check_chain(store, &id).await {
            Ok((facts, head)) => (
                true,
                format!("{id}  whole  {facts} facts  head {head}"),
                json!({"facts": facts, "head": head.to_string()}),
            ),
            Err(error @ LogError::Damaged(_)) => {
                (false, format!("{id}  CHANGED  {error}"), json!({"error": error.to_string()}))
            }
            Err(error) => return Err(error.into()),
        };
        if !ok {
            code = ExitCode::FAILURE;
        }
        say::line(&if json { json!({"id": id.as_str(), "ok": ok, "detail": detail}).to_string() } else { text });
    }
    Ok(code)
}
