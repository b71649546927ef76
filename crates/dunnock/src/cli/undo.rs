//! `undo`, `rewind`, `diff`, `compact` and `fork`.

use crate::cli::args::Back;
use crate::cli::find;
use crate::compose;
use crate::config::{load, paths};
use crate::drive::Seen;
use crate::view::exit::usage;
use crate::view::{describe, output};
use anyhow::{Context as _, bail};
use dunnock_core::{FileHistory, UndoTarget};
use dunnock_engine::{Connection, RewindError, go_back, past};
use dunnock_ports::RestorePlan as Way;
use dunnock_ports::fold_events;
use dunnock_proto::{Command, Decoded, Event, Frame, RewindTo, Scope, Seq, SessionId, Tree};
use dunnock_tools::{CheckpointStore, DiffView, Preview};
use similar::TextDiff;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Rows that are printed before "... and more".
const NAMES: usize = 40;

/// A session and its history.
pub(crate) struct SessionHistory {
    open: compose::Composed,
    pub(crate) session: SessionId,
    pub(crate) seen: Seen,
    past: FileHistory,
}

impl SessionHistory {
    async fn find(data: Option<PathBuf>, id: Option<&str>) -> anyhow::Result<Self> {
        let settings = load::settings(
            paths::workspace(None).ok().as_deref(),
            false,
            load::given(data, Vec::new()),
        )?;
        let open = compose::open(&settings, None).await?;
        let session = find::session(&open, id, None).await?;
        Self::of(open, session).await
    }

    pub(crate) async fn of(open: compose::Composed, session: SessionId) -> anyhow::Result<Self> {
        let seen = Seen::read(&open.ports, &session).await?;
        let past = past(open.ports.store.as_ref(), &session).await?;
        Ok(Self { open, session, seen, past })
    }

    fn checkpoints(&self) -> anyhow::Result<&Arc<CheckpointStore>> {
        let none = "checkpoints are not supported on this system yet, so files cannot be restored";
        self.open.checkpoints.as_ref().context(none)
    }

    fn folder(&self) -> &str {
        self.seen.state.workspace.as_deref().unwrap_or_default()
    }

    fn short(&self) -> &str {
        output::id(&self.session)
    }

    /// The last event of a step.
    pub(crate) fn step(&self, step: u32) -> anyhow::Result<Seq> {
        self.past.step(step).ok_or_else(|| {
            let steps = self.past.steps();
            usage(match (steps.first(), steps.last()) {
                (Some(first), Some(last)) => {
                    format!(
                        "session {} has no step {step}; it has steps {first} to {last}",
                        self.short()
                    )
                }
                _ => format!("session {} has no steps yet", self.short()),
            })
        })
    }

    /// The files at an event.
    fn tree(&self, at: Seq, force: bool) -> anyhow::Result<Tree> {
        let none = || {
            format!(
                "session {} has no checkpoint at that point (checkpoints = \"off\"?)",
                self.short()
            )
        };
        self.past.tree_at(at, force).cloned().with_context(none)
    }
}

pub(crate) async fn undo(
    data: Option<PathBuf>,
    id: Option<String>,
    how: Back,
) -> anyhow::Result<ExitCode> {
    let at = SessionHistory::find(data, id.as_deref()).await?;
    let way = at.undoes(how.force)?;
    carry_out(at, way, how).await
}

/// A planned rewind: its target, the files at the target, its scope and a description.
struct WayBack {
    to: RewindTo,
    tree: Option<Tree>,
    scope: Scope,
    what: String,
}

impl SessionHistory {
    /// What an undo would rewind.
    fn undoes(&self, force: bool) -> anyhow::Result<WayBack> {
        Ok(match self.past.undo_target() {
            Some(UndoTarget::Run(before)) => {
                let before = before.max(1);
                let tree = Some(self.tree(before, force)?);
                WayBack {
                    to: RewindTo::Event(before),
                    tree,
                    scope: Scope::Both,
                    what: "undo the last task".into(),
                }
            }
            // The last undo left changes by others alone; --force undoes them too.
            Some(UndoTarget::Rewind(to, scope @ (Scope::Files | Scope::Both))) if force => {
                let tree = Some(self.tree(to, true)?);
                WayBack {
                    to: RewindTo::Event(to),
                    tree,
                    scope,
                    what: "undo what the last undo left".into(),
                }
            }
            Some(UndoTarget::Rewind(..)) => {
                let undo = self
                    .seen
                    .state
                    .undo
                    .clone()
                    .context("the last rewind can no longer be undone")?;
                let what = "undo the last undo or rewind".into();
                WayBack { to: RewindTo::Undo, tree: undo.tree.clone(), scope: undo.scope, what }
            }
            None => bail!("there is nothing to undo in session {}", self.short()),
        })
    }

    /// The last step that a rewind keeps. An undo of a rewind loses no history again.
    fn undone_after(&self, to: &RewindTo) -> Option<u32> {
        match to {
            RewindTo::Event(at) => Some(self.past.last_step(*at)),
            RewindTo::Undo => None,
        }
    }

    /// What restoring a snapshot of the files would change.
    async fn preview(
        &self,
        to: &Tree,
        force: bool,
        undone_after: Option<u32>,
    ) -> anyhow::Result<Option<Preview>> {
        let Some(from) = self.past.last() else { return Ok(None) };
        let (ours, theirs) = self.past.since(to);
        let (session, workspace) = (&self.session, self.folder());
        let (ours, theirs) = (ours.as_slice(), theirs.as_slice());
        let way = Way { session, workspace, to, from, ours, theirs, force, undone_after };
        let seen = self.checkpoints()?.preview(way).await;
        seen.map(Some).map_err(|why| anyhow::anyhow!("the changes cannot be previewed: {why}"))
    }
}

/// For the apps: the target and scope of an undo, and a description of what it would change.
pub(crate) async fn undo_way(
    at: &SessionHistory,
) -> anyhow::Result<(RewindTo, Scope, Vec<String>)> {
    let way = at.undoes(false)?;
    let mut summary = vec![format!("{} ({})", way.what, describe::scope(way.scope))];
    if let Some(tree) = &way.tree
        && let Some(preview) = at.preview(tree, false, at.undone_after(&way.to)).await?
    {
        summary.extend(rows(&preview));
    }
    Ok((way.to, way.scope, summary))
}

/// The number of latest steps for which the app previews the changes.
const LOOKED_AT: usize = 12;

/// For the apps: the steps that can be rewound to.
pub(crate) async fn points(at: &SessionHistory) -> Vec<dunnock_tui::RewindPoint> {
    let steps = at.past.steps();
    let titles = titles(at).await;
    let far = steps.len().saturating_sub(LOOKED_AT);
    let mut points = Vec::new();
    for (n, step) in steps.into_iter().enumerate() {
        let Some(seq) = at.past.step(step) else { continue };
        let tree = at.past.tree_at(seq.max(1), false).cloned();
        let preview = match (&tree, n >= far) {
            (Some(tree), true) => at.preview(tree, false, None).await.ok().flatten(),
            _ => None,
        };
        let title = titles.get(&step).cloned().unwrap_or_else(|| "before the first step".into());
        let files = preview
            .as_ref()
            .map(|p| p.changes.iter().filter(|c| !c.how.starts_with("folder")).count());
        let kept = preview.map(|p| p.kept).unwrap_or_default();
        points.push(dunnock_tui::RewindPoint { step, seq, title, files, kept });
    }
    points
}

/// A title for each step: its last call, or else the start of its text.
async fn titles(at: &SessionHistory) -> std::collections::BTreeMap<u32, String> {
    type Titles = std::collections::BTreeMap<u32, String>;
    let add = |titles: &mut Titles, _: &dunnock_proto::Envelope, event| {
        if let Event::Answered(e) = event {
            let last = dunnock_proto::Part::calls(&e.parts).last();
            let did = last.map(|part| {
                format!(
                    "after {} {}",
                    part.tool,
                    output::short(&output::one_line(&describe::gist(part)), 60)
                )
            });
            let said = || {
                format!(
                    "said: {}",
                    output::short(
                        &output::one_line(dunnock_proto::Part::words(&e.parts).trim()),
                        60
                    )
                )
            };
            titles.insert(e.step.0, did.unwrap_or_else(said));
        }
    };
    let log = at.open.ports.store.as_ref();
    fold_events(log, &at.session, Titles::new(), add).await.unwrap_or_default()
}

pub(crate) async fn rewind(
    data: Option<PathBuf>,
    id: Option<String>,
    step: u32,
    scope: Scope,
    how: Back,
) -> anyhow::Result<ExitCode> {
    let at = SessionHistory::find(data, id.as_deref()).await?;
    let fact = at.step(step)?.max(1);
    let tree = if scope == Scope::Conversation { None } else { Some(at.tree(fact, how.force)?) };
    let way =
        WayBack { to: RewindTo::Event(fact), tree, scope, what: format!("rewind to step {step}") };
    carry_out(at, way, how).await
}

/// Prints what will change, then changes it.
async fn carry_out(at: SessionHistory, way: WayBack, how: Back) -> anyhow::Result<ExitCode> {
    let WayBack { to, tree, scope, what } = way;
    let undone_after = at.undone_after(&to).filter(|_| tree.is_some());
    output::aside(&format!("session {} · {what} ({})", at.short(), describe::scope(scope)));
    if let Some(tree) = &tree
        && let Some(preview) = at.preview(tree, how.force, undone_after).await?
    {
        rows(&preview).iter().for_each(|row| output::aside(row));
    }
    if how.dry_run {
        output::aside("nothing was changed (--dry-run)");
        return Ok(ExitCode::SUCCESS);
    }
    let rewind = Command::Rewind { to, scope, force: how.force };
    let done = match go_back(&at.open.ports, &at.session, &at.seen.state, rewind).await {
        Ok(done) => done,
        Err(RewindError::AtWork) => {
            bail!("session {} is running. Wait for it to finish, or interrupt it first", at.short())
        }
        Err(why) => return Err(why.into()),
    };
    let id = at.short();
    if let Some(note) = &done.note {
        output::note(note);
        if !how.force && note.contains("since others changed them") {
            output::aside(&format!("  to overwrite those changes too: dunnock undo {id} --force"));
        }
    }
    // What is still on the list could not be restored, as the note says.
    let left = match undone_after {
        Some(step) => at.checkpoints()?.lost_history(at.folder(), &at.session, step).await,
        None => Ok(Vec::new()),
    };
    let left = left.map_err(|why| anyhow::anyhow!("{why}"))?;
    let (how, code) = match done.partial || !left.is_empty() {
        true => ("done in part", ExitCode::FAILURE),
        false => ("done", ExitCode::SUCCESS),
    };
    output::aside(&format!(
        "{how} · undo this: dunnock undo {id} · continue: dunnock resume {id} --prompt \"...\""
    ));
    Ok(code)
}

/// Describes what a rewind does to each file.
fn rows(preview: &Preview) -> Vec<String> {
    let word = |how: &'static str| match how {
        "added" | "folder added" => "restore",
        "deleted" | "folder deleted" => "delete",
        "mode" => "restore mode",
        "attributes" => "reset attributes",
        _ => "revert",
    };
    // Omit a folder that is added or deleted with its files; the files follow it in the list.
    let holds = |n: usize, folder: &DiffView| {
        let next = preview.changes.get(n + 1).map(|next| Path::new(&next.path));
        folder.how.starts_with("folder") && next.is_some_and(|next| next.starts_with(&folder.path))
    };
    let row =
        |what: &str, path: &str, why: &str| format!("  {what:<17} {}{why}", output::one_line(path));
    let changes = preview.changes.iter().enumerate().filter(|(n, change)| !holds(*n, change));
    let mut rows: Vec<String> = changes
        .map(|(_, change)| row(word(change.how), &change.path, ""))
        .chain(preview.kept.iter().map(|p| row("leave unchanged", p, " (changed by others)")))
        .chain(
            preview
                .large
                .iter()
                .map(|p| row("leave unchanged", p, " (not saved, so it could not be restored)")),
        )
        .chain(preview.lost.iter().map(|p| row("cannot restore", p, " (it was not saved)")))
        .chain(preview.history.iter().map(|lost| row("restore in git", lost, "")))
        .collect();
    if rows.is_empty() {
        rows.push("  no file changes".into());
    }
    let more = rows.len().saturating_sub(NAMES);
    rows.truncate(NAMES);
    if more > 0 {
        rows.push(format!("  ... and {more} more"));
    }
    rows
}

pub(crate) async fn diff(
    data: Option<PathBuf>,
    id: Option<String>,
    steps: Option<String>,
    names: bool,
) -> anyhow::Result<ExitCode> {
    // A range without an ID refers to the newest session.
    let (id, steps) = match (id, steps) {
        (Some(first), None) if first.contains("..") => (None, Some(first)),
        other => other,
    };
    let at = SessionHistory::find(data, id.as_deref()).await?;
    let (from, to, changes) = differences(&at, steps.as_deref()).await?;
    if changes.is_empty() {
        output::note(&format!("nothing changed between step {from} and step {to}"));
    }
    let colour = std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    for change in &changes {
        match names {
            true => output::line(&format!("{:<14} {}", change.how, output::one_line(&change.path))),
            false => output::piece(&text(change, colour)),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// For the terminal app: the diff as one text.
pub(crate) async fn diff_text(at: &SessionHistory, steps: Option<&str>) -> anyhow::Result<String> {
    let (from, to, changes) = differences(at, steps).await?;
    match changes.is_empty() {
        true => Ok(format!("nothing changed between step {from} and step {to}")),
        false => Ok(changes.iter().map(|change| text(change, false)).collect()),
    }
}

/// The differences in files between two steps.
pub(crate) async fn differences(
    at: &SessionHistory,
    steps: Option<&str>,
) -> anyhow::Result<(u32, u32, Vec<DiffView>)> {
    let all = at.past.steps();
    let (Some(first), Some(last)) = (all.first().copied(), all.last().copied()) else {
        bail!("session {} has not done anything yet", at.short());
    };
    let (from, to) = match steps {
        None => (first, last),
        Some(text) => range(text, first, last)?,
    };
    let end =
        |step| at.step(step).and_then(|fact| at.tree(fact.max(1), from != first || step != first));
    let (before, after) = (end(from)?, end(to)?);
    let changes = at
        .checkpoints()?
        .compare(at.folder(), before, after)
        .await
        .map_err(|why| anyhow::anyhow!("{why}"))?;
    Ok((from, to, changes))
}

fn range(text: &str, first: u32, last: u32) -> anyhow::Result<(u32, u32)> {
    let bad = || usage(format!("{text:?} is not a range of steps; give it as {first}..{last}"));
    let (from, to) = text.split_once("..").ok_or_else(bad)?;
    let number = |text: &str, or: u32| {
        if text.is_empty() { Ok(or) } else { text.parse().map_err(|_| bad()) }
    };
    Ok((number(from, first)?, number(to, last)?))
}

/// A change as a unified diff.
pub(crate) fn text(change: &DiffView, colour: bool) -> String {
    let path = output::one_line(&change.path);
    let plain = |bytes: &Option<Vec<u8>>| {
        bytes.as_deref().map(|b| std::str::from_utf8(b).map(str::to_owned).ok())
    };
    let (before, after) = match (plain(&change.before), plain(&change.after)) {
        (Some(None), _) | (_, Some(None)) => return format!("{}: {path} (binary)\n", change.how),
        (None, None) => return format!("{}: {path}\n", change.how),
        (before, after) => (before.flatten(), after.flatten()),
    };
    let (old, new) = (before.as_deref().unwrap_or_default(), after.as_deref().unwrap_or_default());
    if old == new {
        return format!("{}: {path}\n", change.how);
    }
    let name =
        |side: &str, there: bool| if there { format!("{side}/{path}") } else { "/dev/null".into() };
    let diff = TextDiff::from_lines(old, new);
    let text = diff
        .unified_diff()
        .header(&name("a", before.is_some()), &name("b", after.is_some()))
        .to_string();
    let text = output::visible(&text);
    if !colour {
        return text;
    }
    let paint = |line: &str| match line.as_bytes().first() {
        Some(b'+') => format!("\x1b[32m{line}\x1b[0m\n"),
        Some(b'-') => format!("\x1b[31m{line}\x1b[0m\n"),
        Some(b'@') => format!("\x1b[36m{line}\x1b[0m\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(paint).collect()
}

/// Compacts the conversation now.
pub(crate) async fn compact(data: Option<PathBuf>, id: Option<String>) -> anyhow::Result<ExitCode> {
    let given = load::given(data.clone(), Vec::new());
    let settings = load::settings(paths::workspace(None).ok().as_deref(), false, given)?;
    let mut at = SessionHistory::find(data, id.as_deref()).await?;
    // The system prompt is rendered anew, and says what the sandbox lets commands do.
    at.open.confine(&settings, at.seen.state.config.sandbox)?;
    let mut connection =
        Connection::open(at.open.ports.clone(), at.session.clone(), at.seen.state.seq).await?;
    let done = shorter(&mut connection).await;
    connection.close().await;
    let (before, after) = done?;
    output::aside(&format!(
        "session {} · conversation summarised, from {before} to {after} bytes",
        at.short()
    ));
    Ok(ExitCode::SUCCESS)
}

async fn shorter(connection: &mut Connection) -> anyhow::Result<(u64, u64)> {
    let asked =
        connection.send(Command::Compact).await?.map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
    loop {
        let Frame::Event(record) = connection.next().await? else { continue };
        match record.decode() {
            Decoded::Known(Event::Compacted(done)) if record.envelope.seq > asked => {
                return Ok((done.before, done.after));
            }
            Decoded::Known(Event::CompactionFailed(failed)) if record.envelope.seq > asked => {
                bail!("the conversation could not be compacted: {}", failed.error)
            }
            _ => {}
        }
    }
}

pub(crate) async fn fork(
    data: Option<PathBuf>,
    id: &str,
    step: Option<u32>,
) -> anyhow::Result<ExitCode> {
    let at = SessionHistory::find(data, Some(id)).await?;
    let fact = match step {
        Some(step) => at.step(step)?.max(1),
        None => at.seen.state.seq,
    };
    let new = dunnock_engine::fork(&at.open.ports, &at.session, fact).await?;
    let short = output::id(&new).to_owned();
    output::line(new.as_str());
    output::aside(&format!(
        "session {short} continues from {}{}; the files are not changed. Continue: dunnock resume \
         {short} --prompt \"...\"",
        at.short(),
        step.map_or_else(String::new, |step| format!(" at step {step}")),
    ));
    Ok(ExitCode::SUCCESS)
}
