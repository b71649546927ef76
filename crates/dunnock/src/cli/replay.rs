//! `sessions replay`: runs a recorded session again without the model.

use crate::compose;
use crate::config::settings::Settings;
use crate::view::output;
use dunnock_engine::{Difference, ReplayPorts, load, replay};
use dunnock_ports::{Checkpoints as _, Model, WorkspaceCopy};
use dunnock_proto::{Isolation, Sandbox, SessionId, count};
use serde_json::json;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Folders that programs recreate, and that are not saved if git ignores them.
const MADE: &[&str] =
    &["target", "node_modules", "__pycache__", ".cache", "build", "dist", ".venv", ".pytest_cache"];

/// How a session is replayed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplayOptions {
    /// Run nothing: recompute only decisions and requests.
    pub(crate) log: bool,
    pub(crate) json: bool,
}

pub(crate) async fn run(
    open: &mut compose::Composed,
    settings: &Settings,
    session: &SessionId,
    how: ReplayOptions,
) -> anyhow::Result<ExitCode> {
    let copy = if how.log { Err("--log".to_owned()) } else { copy(open, settings, session).await };
    let again = copy.as_ref().ok().map(|copy| ReplayPorts {
        tools: open.ports.tools.as_ref(),
        model: open.client.as_ref() as &dyn Model,
        folder: copy.path(),
        level: open.ports.level,
    });
    let ran = again.is_some();
    let mut done = replay(open.ports.store.as_ref(), session, again).await?;
    open.ports.tools.close(session).await;
    if let Ok(copy) = &copy
        && done.differences.is_empty()
        && done.passed_over == 0
    {
        done.differences.extend(files(open, session, copy.path()).await?);
    }
    let same = done.differences.is_empty();
    if how.json {
        let describe = |d: &Difference| json!({"seq": d.seq, "what": d.what, "recorded": d.recorded, "now": d.now});
        output::line(
            &json!({
                "session": session.as_str(), "same": same, "ran": ran, "events": done.facts, "requests": done.requests,
                "calls": done.calls, "passed_over": done.passed_over, "first": done.differences.first().map(describe),
                "differences": done.differences.len(),
            })
            .to_string(),
        );
    } else {
        let not = match &copy {
            Ok(_) if done.passed_over > 0 => {
                format!(
                    ", {} skipped (they had access beyond the sandbox, or never finished), so \
                     files were not compared",
                    done.passed_over
                )
            }
            Ok(_) => String::new(),
            Err(why) => format!(" (nothing was run: {why})"),
        };
        output::aside(&format!(
            "{} recomputed, {} rebuilt, {} rerun{not}",
            count(done.facts, "event"),
            count(done.requests, "request"),
            count(done.calls, "call")
        ));
        match done.differences.split_first() {
            None => output::line("no differences"),
            Some((first, more)) => {
                output::line(&format!(
                    "first difference: {} (event {})",
                    output::one_line(&first.what),
                    first.seq
                ));
                output::line(&format!("  recorded: {}", output::one_line(&first.recorded)));
                output::line(&format!("  now:      {}", output::one_line(&first.now)));
                if !more.is_empty() {
                    output::line(&format!("  and {} more", more.len()));
                }
            }
        }
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Copies the files as they were before the first step to a separate folder, and probes the
/// sandbox.
async fn copy(
    open: &mut compose::Composed,
    settings: &Settings,
    session: &SessionId,
) -> Result<Box<dyn WorkspaceCopy>, String> {
    let state =
        load(open.ports.store.as_ref(), session).await.map_err(|error| error.to_string())?.state;
    let checkpoints =
        open.checkpoints.clone().ok_or("checkpoints are not supported on this system")?;
    let first = state.first.clone().ok_or("the session has no checkpoint of its files")?;
    open.confine(settings, Sandbox::Auto).map_err(|error| error.to_string())?;
    if open.ports.level == Isolation::D {
        return Err(
            "there is no sandbox here, and recorded commands are not rerun without one".into()
        );
    }
    let folder = state.workspace.as_deref().unwrap_or_default();
    if !Path::new(folder).is_dir() {
        return Err(format!("its folder {folder} does not exist"));
    }
    let copy = checkpoints.copy(folder, &first).await.map_err(|why| why.to_string())?;
    let own = Path::new(folder).join(".git");
    if own.is_dir() {
        take_along(&own, &Path::new(copy.path()).join(".git"))
            .map_err(|e| format!(".git cannot be copied: {e}"))?;
    }
    Ok(copy)
}

/// Copies git's own state, which is not saved with the files. Links are not followed.
fn take_along(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            take_along(&entry.path(), &target)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The first file that differs from how the session left it.
async fn files(
    open: &compose::Composed,
    session: &SessionId,
    folder: &str,
) -> anyhow::Result<Option<Difference>> {
    let state = load(open.ports.store.as_ref(), session).await?.state;
    let (Some(checkpoints), Some(last), Some(workspace)) =
        (&open.checkpoints, &state.tree, &state.workspace)
    else {
        return Ok(None);
    };
    let then = checkpoints.copy(workspace, last).await.map_err(|why| anyhow::anyhow!("{why}"))?;
    let differs = differs(Path::new(then.path()), Path::new(folder), Path::new(""))?;
    Ok(differs.map(|(path, recorded, now)| Difference {
        seq: state.seq,
        what: format!("the file {path}"),
        recorded,
        now,
    }))
}

/// The first path that differs between two folders, and how. Files that are not saved are ignored.
fn differs(then: &Path, now: &Path, below: &Path) -> io::Result<Option<(String, String, String)>> {
    let names = |root: &Path| -> io::Result<std::collections::BTreeSet<std::ffi::OsString>> {
        std::fs::read_dir(root.join(below))?.map(|entry| entry.map(|e| e.file_name())).collect()
    };
    let (old, new) = (names(then)?, names(now)?);
    for name in old.union(&new).filter(|name| *name != ".git" && *name != ".dunnock") {
        let path = below.join(name);
        let word = |there: bool| if there { "present" } else { "missing" }.to_owned();
        let kind = |root: &Path| std::fs::symlink_metadata(root.join(&path)).ok();
        let shown = path.to_string_lossy().into_owned();
        match (kind(then), kind(now)) {
            (Some(a), Some(b)) if a.is_dir() && b.is_dir() => {
                if let Some(found) = differs(then, now, &path)? {
                    return Ok(Some(found));
                }
            }
            (Some(a), Some(b)) if a.is_symlink() && b.is_symlink() => {
                let target = |root: &Path| {
                    std::fs::read_link(root.join(&path)).map(|t| t.to_string_lossy().into_owned())
                };
                let (a, b) = (target(then)?, target(now)?);
                if a != b {
                    return Ok(Some((shown, a, b)));
                }
            }
            (Some(a), Some(b)) if a.is_file() && b.is_file() => {
                #[cfg(unix)]
                {
                    use std::os::unix::fs::PermissionsExt as _;
                    let (a, b) = (a.permissions().mode() & 0o7777, b.permissions().mode() & 0o7777);
                    if a != b {
                        return Ok(Some((shown, format!("mode {a:o}"), format!("mode {b:o}"))));
                    }
                }
                let (a, b) = (std::fs::read(then.join(&path))?, std::fs::read(now.join(&path))?);
                if a != b {
                    let text = |bytes: &[u8]| output::short(&String::from_utf8_lossy(bytes), 200);
                    return Ok(Some((shown, text(&a), text(&b))));
                }
            }
            (Some(a), Some(b)) if a.file_type() == b.file_type() => {}
            // Folders that programs recreate are not saved.
            (None, Some(b)) if b.is_dir() && MADE.iter().any(|made| *name == **made) => {}
            (a, b) => return Ok(Some((shown, word(a.is_some()), word(b.is_some())))),
        }
    }
    Ok(None)
}
