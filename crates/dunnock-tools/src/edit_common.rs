//! What all editing tools have in common: the file must be what the model saw, the change is made
//! as a whole, and the result is reported: to the model as lines, to interfaces as a diff, and by
//! the check that the user set for this type of file.

use crate::edit::Text;
use crate::process::{self, Program};
use crate::root::{Contents, FileChange, RepoPath};
use crate::tool::{ToolContext, ToolOutput, ToolStatus};
#[cfg(target_os = "linux")]
use dunnock_core::policy::is_protected;
use dunnock_ports::Blob;
use dunnock_proto::{Hash, SeenFile};
use dunnock_sandbox::{GIT_ACTS_ON, REPOSITORY, is_repository};
use similar::TextDiff;
use std::fmt::Write as _;
use std::path::Path;

/// Maximum bytes saved of a diff.
const DIFF: usize = 256 << 10;

/// An edit that a tool has planned.
pub(crate) struct PlannedEdit {
    /// Sent to the model once the edit is made.
    pub(crate) message: String,
    pub(crate) changes: Vec<FileChange>,
}

/// Why an edit was refused.
pub(crate) struct Refusal {
    pub(crate) message: String,
    /// Files whose current content the message shows.
    seen_files: Vec<SeenFile>,
}

impl<E: ToString> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self { message: error.to_string(), seen_files: Vec::new() }
    }
}

/// Reads a file to edit, if it is still what the model saw.
pub(crate) fn open(context: &ToolContext, path: &str) -> Result<(RepoPath, Contents), Refusal> {
    let path = RepoPath::parse(&context.files, path)?;
    let contents = context.files.read(&path)?;
    fresh(context, &path, &contents, None)?;
    Ok((path, contents))
}

/// The same for an edit at one place: if the file has changed, the refusal shows the place as it is
/// now, and the file counts as seen.
pub(crate) fn open_at(
    context: &ToolContext,
    path: &str,
    old: &[&str],
) -> Result<(RepoPath, Contents, Text), Refusal> {
    let path = RepoPath::parse(&context.files, path)?;
    let contents = context.files.read(&path)?;
    let text =
        Text::decode(&contents.bytes).map_err(|error| format!("{} {error}", path.shown()))?;
    fresh(context, &path, &contents, Some((&text, old)))?;
    Ok((path, contents, text))
}

/// Refuses a file that has changed since the model saw it. A file it never saw is accepted: the old
/// text has to match anyway.
pub(crate) fn fresh(
    context: &ToolContext,
    path: &RepoPath,
    now: &Contents,
    place: Option<(&Text, &[&str])>,
) -> Result<(), Refusal> {
    let name = path.shown();
    let hash = Hash::of(&now.bytes);
    if context.seen.get(&name).is_none_or(|seen| *seen == hash) {
        return Ok(());
    }
    let message = format!("{name} has changed since you last read it; nothing was written");
    match place.map(|(text, old)| crate::edit::describe(text, old)) {
        Some(near) if near.starts_with("the closest") => Err(Refusal {
            message: format!("{message}. In its current content, {near}"),
            seen_files: vec![SeenFile { path: name, hash }],
        }),
        _ => Err(format!("{message}. View it again, then edit").into()),
    }
}

/// Makes an edit and reports the result.
pub(crate) async fn change<F>(context: ToolContext, think: F) -> ToolOutput
where
    F: FnOnce(&ToolContext) -> Result<PlannedEdit, Refusal> + Send + 'static,
{
    let inner = context.clone();
    let work = move || -> Result<(ToolOutput, Vec<String>), Refusal> {
        let PlannedEdit { message, changes } = think(&inner)?;
        refuse_repositories(&inner, &changes)?;
        inner.files.commit(&changes, &inner.limits.journals)?;
        let mut said = ToolOutput::from(Ok::<_, String>(message));
        if inner.files.is_machine() {
            said.text.push_str("\n(outside the workspace: an undo does not restore it)");
        }
        let diff = diff(&changes);
        for broken in changes.iter().filter_map(broken) {
            let _ = write!(said.text, "\nwarning: {broken}");
        }
        said.diff = (!diff.is_empty()).then(|| Blob::new(diff.into_bytes()));
        let left = |change: &FileChange| {
            Some((change.path.shown(), Hash::of(&change.after.as_ref()?.bytes)))
        };
        said.seen_files =
            changes.iter().filter_map(left).map(|(path, hash)| SeenFile { path, hash }).collect();
        Ok((said, changes.iter().filter(|c| c.after.is_some()).map(|c| c.path.shown()).collect()))
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok((said, paths))) => checked(context, said, &paths).await,
        Ok(Err(Refusal { message, seen_files })) => {
            ToolOutput { seen_files, ..Err::<String, _>(message).into() }
        }
        Err(error) => Err::<String, _>(format!("an error inside the agent: {error}")).into(),
    }
}

/// Refuses to make a folder a repository, to change what git acts on in one, and to write files
/// that the configuration of git names: git would run them for the user.
fn refuse_repositories(context: &ToolContext, changes: &[FileChange]) -> Result<(), Refusal> {
    let root = context.files.path();
    let new = || changes.iter().filter(|change| change.after.is_some());
    for FileChange { path, .. } in new() {
        let full = root.join(path.shown());
        for folder in full.ancestors().skip(1).take_while(|up| up.starts_with(root)) {
            let Ok(below) = full.strip_prefix(folder) else { continue };
            let acts = |name: &&str| below.starts_with(name);
            if !REPOSITORY.iter().chain(GIT_ACTS_ON).any(acts) {
                continue;
            }
            let planned =
                |name: &Path| new().any(|other| root.join(other.path.shown()).starts_with(name));
            let has = |name: &str| {
                let at = folder.join(name);
                at.symlink_metadata().is_ok() || planned(&at)
            };
            if is_repository(has) {
                return Err(format!(
                    "{} belongs to a git repository (a folder with HEAD, objects and refs); tools do \
                     not write there",
                    path.shown()
                )
                .into());
            }
        }
        #[cfg(target_os = "linux")]
        if let Some(layout) = &context.layout
            && !context.files.is_machine()
            && layout.is_named_by_git(root, &full)
            && !is_protected(&path.shown())
        {
            return Err(format!(
                "git runs or reads {} by its configuration; tools do not write there. Tell the \
                 person what to change",
                path.shown()
            )
            .into());
        }
    }
    Ok(())
}

/// Runs the checks that the user set for these types of files, each once.
async fn checked(context: ToolContext, mut said: ToolOutput, paths: &[String]) -> ToolOutput {
    let mut commands: Vec<String> = Vec::new();
    for path in paths {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        let Some(command) = context.limits.checks.get(ending) else { continue };
        let command = command.replace("{path}", &quoted(path));
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    for command in commands {
        let program = Program::line(context.limits.shell, &command);
        let ran = process::run(&context, program, context.limits.command).await;
        let word = if ran.end == ToolStatus::Done { "passed" } else { "failed" };
        let _ = write!(said.text, "\n\ncheck {command:?} {word}:\n{}", ran.text);
    }
    said
}

/// What a parser says about a file that parsed before.
fn broken(FileChange { path, before, after }: &FileChange) -> Option<String> {
    let text = |side: &Option<Contents>| Some(Text::decode(&side.as_ref()?.bytes).ok()?.raw());
    dunnock_syntax::broken_by_edit(&path.shown(), &text(before)?, &text(after)?)
}

/// Quotes a path as one shell word.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// The changes as a diff, as git would show it.
fn diff(changes: &[FileChange]) -> String {
    let mut out = String::new();
    for change in changes {
        let name = change.path.shown();
        let text = |side: &Option<Contents>| match side {
            Some(contents) => Text::decode(&contents.bytes).map(|text| text.raw()).ok(),
            None => Some(String::new()),
        };
        let side = |letter: &str, there: bool| {
            if there { format!("{letter}/{name}") } else { "/dev/null".to_owned() }
        };
        let (old, new) = (side("a", change.before.is_some()), side("b", change.after.is_some()));
        match (text(&change.before), text(&change.after)) {
            (Some(before), Some(after)) => {
                let diff = TextDiff::configure()
                    .timeout(std::time::Duration::from_millis(300))
                    .diff_lines(&before, &after);
                let _ = write!(out, "{}", diff.unified_diff().context_radius(3).header(&old, &new));
            }
            _ => {
                let _ = writeln!(out, "Binary files {old} and {new} differ");
            }
        }
        if out.len() > DIFF {
            out.truncate(out.floor_char_boundary(DIFF));
            out.push_str("\n[the rest is not shown]\n");
            break;
        }
    }
    out
}
