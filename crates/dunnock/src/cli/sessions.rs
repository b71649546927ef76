//! `dunnock sessions`: list, show, search, verify. Export, import and deletion are in
//! `transfer.rs`.

use crate::cli::args::Sessions;
use crate::cli::{find, receipt, replay, transfer};
use crate::config::{load, paths};
use crate::view::describe::describe_event;
use crate::view::output;
use crate::{compose, drive};
use anyhow::bail;
use dunnock_engine::check_chain;
use dunnock_ports::{Listed, Store, StoreError};
use dunnock_proto::{CallId, SessionId, count};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) async fn run(data: Option<PathBuf>, which: Sessions) -> anyhow::Result<ExitCode> {
    let settings = load::settings(
        paths::workspace(None).ok().as_deref(),
        false,
        load::given(data, Vec::new()),
    )?;
    let mut open = compose::open(&settings, None).await?;
    let log = open.ports.store.clone();
    let log = log.as_ref();
    match which {
        Sessions::List { here, json, most } => list(&open, here, json, most).await,
        Sessions::Show { id, json } => {
            show(&open, &find::session(&open, id.as_deref(), None).await?, json).await
        }
        Sessions::Output { id, call, stream } => {
            output(log, &find::by_prefix(log, &id).await?, find::call_id(&call)?, stream.as_deref())
                .await
        }
        Sessions::Search { words, here, json, most } => {
            search(log, &words.join(" "), here, json, most).await
        }
        Sessions::Receipt { id, json } => {
            receipt::write(&open, &find::session(&open, id.as_deref(), None).await?, json).await
        }
        Sessions::Verify { id, json } => {
            let code = verify(log, id.as_deref(), json).await?;
            Ok(if open.rebuilt { ExitCode::FAILURE } else { code })
        }
        Sessions::Export { id, output, no_files, keep_secrets } => {
            let what = transfer::ExportOptions { files: !no_files, secrets: keep_secrets };
            transfer::export(&open, &find::by_prefix(log, &id).await?, output, what).await
        }
        Sessions::Replay { id, log, json } => {
            let session = find::session(&open, id.as_deref(), None).await?;
            replay::run(&mut open, &settings, &session, replay::ReplayOptions { log, json }).await
        }
        Sessions::Import { file, into, trust, max_mb } => {
            let how = transfer::ImportOptions { into, trust, most_bytes: max_mb << 20 };
            transfer::import(&open, file, how).await
        }
        Sessions::Delete { id } => {
            transfer::delete(&open.ports, &find::by_prefix(log, &id).await?).await
        }
    }
}

async fn list(
    open: &compose::Composed,
    here: bool,
    json: bool,
    most: u32,
) -> anyhow::Result<ExitCode> {
    let folder = folder(here)?;
    let rows = open.ports.store.list(folder.as_deref(), most).await?;
    if rows.is_empty() && !json {
        output::note(match here {
            true => {
                "no sessions in this folder yet. Omit --here to list the sessions of all folders"
            }
            false => "no sessions yet",
        });
    }
    for row in rows {
        let status = open.ports.shown_status(&row.id, &row.status).await;
        if json {
            let mut line = row_json(&row);
            line["shown_status"] = json!(status);
            output::line(&line.to_string());
            continue;
        }
        let title: String =
            output::one_line(&dunnock_tools::redacted(&row.title)).chars().take(60).collect();
        output::line(&format!(
            "{}  {:<8} {}  {title}  {}",
            row.id,
            output::one_line(&status),
            output::time(row.created),
            output::one_line(&row.workspace)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the full output of a call: the stored output if it was too long to show, otherwise what
/// was shown.
async fn output(
    log: &dyn Store,
    id: &SessionId,
    call: CallId,
    stream: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let Some(finished) = log.finished(id, call).await? else {
        bail!("call {call} of session {} has not finished, or does not exist", output::id(id))
    };
    let gone = || anyhow::anyhow!("the output of call {call} is missing");
    let all = match finished.full {
        Some(hash) => log.blob(hash).await?.ok_or_else(gone)?,
        None => finished.shown.as_bytes().into(),
    };
    let Some(wanted) = stream else {
        output::bytes(&all);
        return Ok(ExitCode::SUCCESS);
    };
    let chunks: Vec<(String, usize)> = match finished.streams {
        Some(hash) => serde_json::from_slice(&log.blob(hash).await?.ok_or_else(gone)?)?,
        None => bail!("call {call} wrote to only one stream; omit --stream"),
    };
    let mut at = 0;
    for (stream, n) in &chunks {
        if stream == wanted {
            output::bytes(all.get(at..(at + n).min(all.len())).unwrap_or_default());
        }
        at += n;
    }
    Ok(ExitCode::SUCCESS)
}

/// The current folder if `here` is set.
fn folder(here: bool) -> anyhow::Result<Option<String>> {
    here.then(|| paths::workspace(None).map(|dir| dir.to_string_lossy().into_owned())).transpose()
}

fn row_json(row: &Listed) -> serde_json::Value {
    json!({
        "id": row.id.as_str(), "title": dunnock_tools::redacted(&row.title), "workspace": row.workspace, "state": row.status,
        "created": output::time(row.created), "version": row.version,
    })
}

async fn show(open: &compose::Composed, id: &SessionId, json: bool) -> anyhow::Result<ExitCode> {
    let mut lines = Vec::new();
    open.ports
        .store
        .read(id, 0, &mut |record| {
            match json {
                true => lines.extend(serde_json::to_string(&record)),
                false => lines.extend(describe_event(&record)),
            }
            true
        })
        .await?;
    lines.iter().for_each(|line| output::line(line));
    if !json {
        let seen = drive::Seen::read(&open.ports, id).await?;
        let fresh = seen.fresh(&open.ports).await;
        if fresh == crate::view::exit::Freshness::Stale {
            output::line("the proof is stale: files changed after they were checked");
        }
        output::line(&format!(
            "verdict: {} · {}",
            seen.tally.verdict(&seen.state, fresh),
            seen.tally.total.money()
        ));
        crate::view::plain::ways_on(&seen.state, output::id(id))
            .iter()
            .for_each(|line| output::line(line));
    }
    Ok(ExitCode::SUCCESS)
}

async fn search(
    store: &dyn Store,
    words: &str,
    here: bool,
    json: bool,
    most: u32,
) -> anyhow::Result<ExitCode> {
    store.index(None).await?;
    let only = folder(here)?;
    let rows: BTreeMap<SessionId, Listed> = store
        .list(only.as_deref(), u32::MAX)
        .await?
        .into_iter()
        .map(|row| (row.id.clone(), row))
        .collect();
    let found = store.search(words, if here { u32::MAX } else { most }).await?;
    let found: Vec<_> = found
        .into_iter()
        .filter_map(|f| Some((rows.get(&f.session)?, f)))
        .take(most as usize)
        .collect();
    for (row, place) in &found {
        match json {
            true => {
                let mut line = row_json(row);
                line["seq"] = json!(place.seq);
                line["excerpt"] = json!(place.excerpt);
                output::line(&line.to_string());
            }
            false => output::line(&format!(
                "{}  {}  {}",
                place.session,
                output::short(&output::one_line(&dunnock_tools::redacted(&row.title)), 40),
                output::one_line(&place.excerpt)
            )),
        }
    }
    if found.is_empty() && !json {
        output::note(&format!(
            "nothing was found for {words:?}. All words must occur in one message or output"
        ));
    }
    Ok(if found.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn verify(store: &dyn Store, id: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let ids = match id {
        Some(prefix) => vec![find::by_prefix(store, prefix).await?],
        None => store.list(None, u32::MAX).await?.into_iter().map(|row| row.id).collect(),
    };
    let mut code = ExitCode::SUCCESS;
    for id in ids {
        let (ok, text, detail) = match check_chain(store, &id).await {
            Ok((events, tip)) => (
                true,
                format!("{id}  intact  {}  tip {tip}", count(events, "event")),
                json!({"events": events, "tip": tip.to_string()}),
            ),
            Err(error @ (StoreError::Damaged(_) | StoreError::StoreDamaged(_))) => {
                (false, format!("{id}  CHANGED  {error}"), json!({"error": error.to_string()}))
            }
            Err(error) => return Err(error.into()),
        };
        if !ok {
            code = ExitCode::FAILURE;
        }
        output::line(&if json {
            json!({"id": id.as_str(), "ok": ok, "detail": detail}).to_string()
        } else {
            text
        });
    }
    Ok(code)
}
