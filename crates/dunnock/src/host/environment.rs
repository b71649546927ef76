//! What the apps show of the surroundings of a session: folder, branch, files, models, other
//! sessions, the clipboard.

use crate::compose::Composed;
use crate::config::{paths, servers, trust};
use crate::own_programs::OwnPrograms;
use crate::view::output;
use dunnock_engine::{load, past};
use dunnock_model::ModelClient;
use dunnock_ports::{RestorePlan as Way, Store};
use dunnock_proto::{CallId, SessionId, count};
use dunnock_tui::words::{first_line, short};
use dunnock_tui::{CallText, HostEvent, Own, SessionRow};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;

/// The largest file of a custom command, in bytes.
const OWN: u64 = 64 << 10;

/// A folder with `~` for the home folder.
pub(crate) fn folder(path: &Path) -> String {
    paths::short(path)
}

/// The git branch of a folder, read from the files of the repository without running a program.
pub(crate) fn branch(path: &Path) -> Option<String> {
    let git = path.ancestors().map(|dir| dir.join(".git")).find(|git| git.exists())?;
    let head = match git.is_dir() {
        true => git.join("HEAD"),
        false => {
            let text = std::fs::read_to_string(&git).ok()?;
            let to = text.trim().strip_prefix("gitdir: ")?.to_owned();
            git.parent()?.join(to).join("HEAD")
        }
    };
    let text = std::fs::read_to_string(head).ok()?;
    let text = text.trim();
    let name = text
        .strip_prefix("ref: refs/heads/")
        .map_or_else(|| text.get(..8).map(str::to_owned), |b| Some(b.to_owned()));
    name.map(|name| short(&output::one_line(&name), 40))
}

/// Notes on the folder's own instructions and settings, and whether they apply.
pub(crate) fn brought(workspace: &Path, trusted: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let advice: Vec<String> =
        dunnock_tools::instructions::find(workspace).into_iter().map(|(name, _)| name).collect();
    if !advice.is_empty() {
        notes.push(format!(
            "using instructions from {}. Dunnock runs nothing in it by itself.",
            advice.join(", ")
        ));
    }
    if trust::brings(workspace).is_some() && !trusted {
        notes.push(match servers::project_files(workspace).as_slice() {
            [] => {
                "this folder has its own settings, which do not apply yet. Read .dunnock first; to \
                       trust it: dunnock trust"
                    .to_owned()
            }
            files => format!(
                "this folder has its own settings or MCP servers, which do not apply yet. Read {} \
                     first; to trust it: dunnock trust",
                files.join(", ")
            ),
        });
    }
    notes
}

/// What a person should know if the workspace is only a folder of a git repository.
pub(crate) fn repository_note(top: &Path) -> String {
    format!(
        "this is a folder of the git repository {}. Commands can read the whole repository and write \
         only here; git commands that change the repository need approval.",
        output::one_line(&folder(top))
    )
}

/// What to do in the terminal app if no model is available.
pub(crate) fn without_model(client: &ModelClient) -> Vec<String> {
    let keyed: Vec<String> = client
        .providers()
        .iter()
        .filter(|provider| provider.key.is_some())
        .map(|provider| provider.name.clone())
        .collect();
    match keyed.is_empty() {
        true => vec![
            "choose a provider and a model: /login".into(),
            "or start a local server (Ollama, llama.cpp, LM Studio, vLLM), then: /login".into(),
        ],
        false => vec![format!("there is a key for {}; choose a model: /login", keyed.join(", "))],
    }
}

/// The user's custom commands: from their settings, and from the folder if it is trusted.
pub(crate) fn own_commands(workspace: &Path, trusted: bool) -> Vec<Own> {
    let mut folders: Vec<PathBuf> =
        paths::config_dir().into_iter().map(|dir| dir.join("commands")).collect();
    if trusted {
        folders.push(workspace.join(".dunnock/commands"));
    }
    let mut all: BTreeMap<String, Own> = BTreeMap::new();
    for path in folders
        .iter()
        .filter_map(|dir| std::fs::read_dir(dir).ok())
        .flatten()
        .flatten()
        .map(|e| e.path())
    {
        if path.extension().is_none_or(|ending| ending != "md")
            || path.metadata().map_or(true, |m| m.len() > OWN)
        {
            continue;
        }
        let (Some(name), Ok(text)) =
            (path.file_stem().and_then(|n| n.to_str()), std::fs::read_to_string(&path))
        else {
            continue;
        };
        let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if fits {
            let about = first_line(text.trim_start_matches('#'));
            all.insert(name.into(), Own { name: name.into(), about, text });
        }
    }
    all.into_values().collect()
}

/// Models that can be used now: of local servers, and of providers whose key is set.
pub(crate) async fn models(client: &ModelClient) -> Vec<String> {
    let mut all = Vec::new();
    for provider in client.providers() {
        let keyless = provider.key_env.is_some() && provider.key.is_none();
        let far = provider.base_url.starts_with("https:");
        if keyless && far {
            continue;
        }
        let within = if far { Duration::from_secs(5) } else { Duration::from_millis(500) };
        if let Ok(models) = client.models(&provider, within).await {
            all.extend(models.into_iter().map(|model| format!("{}/{model}", provider.name)));
        }
    }
    all
}

/// How long ago, in short form.
pub(crate) fn age(ms: i64) -> String {
    match ms / 1000 {
        s @ ..60 => format!("{} s ago", s.max(0)),
        s @ 60..3_600 => format!("{} min ago", s / 60),
        s @ 3_600..86_400 => format!("{} h ago", s / 3_600),
        s => format!("{} d ago", s / 86_400),
    }
}

/// Sessions of all folders, newest first, with those that contain the words at the top.
pub(crate) async fn sessions(
    open: &Composed,
    words: &str,
    most: u32,
) -> anyhow::Result<Vec<SessionRow>> {
    let log = open.ports.store.as_ref();
    let now = open.ports.clock.now().0;
    let mut holding: BTreeMap<SessionId, String> = BTreeMap::new();
    if !words.trim().is_empty() {
        let _ = log.index(None).await;
        for found in log.search(words, 50).await.unwrap_or_default() {
            holding.entry(found.session).or_insert_with(|| output::one_line(&found.excerpt));
        }
    }
    let mut rows = log.list(None, most).await?;
    for row in &mut rows {
        row.status = open.ports.shown_status(&row.id, &row.status).await;
    }
    let row = |row: dunnock_ports::Listed| SessionRow {
        excerpt: holding.get(&row.id).map(|text| short(text, 120)).unwrap_or_default(),
        title: short(&output::one_line(&dunnock_tools::redacted(&row.title)), 100),
        workspace: folder(Path::new(&row.workspace)),
        status: output::one_line(&row.status),
        age: age(now - row.updated.0),
        id: row.id,
    };
    let mut rows: Vec<SessionRow> = rows.into_iter().map(row).collect();
    rows.sort_by_key(|row| row.excerpt.is_empty());
    Ok(rows)
}

/// The list entry of a session.
pub(crate) async fn row(
    open: &Composed,
    session: &SessionId,
) -> anyhow::Result<dunnock_ports::Listed> {
    let row = open.ports.store.listed(session).await?;
    row.ok_or_else(|| anyhow::anyhow!("there is no session {session}"))
}

/// Describes the files that have changed since the last checkpoint.
pub(crate) async fn changed_since(open: &Composed, session: &SessionId) -> Option<String> {
    let checkpoints = open.checkpoints.as_ref()?;
    let folder = load(open.ports.store.as_ref(), session).await.ok()?.state.workspace?;
    let past = past(open.ports.store.as_ref(), session).await.ok()?;
    let last = past.last()?;
    let way = Way {
        session,
        workspace: &folder,
        to: last,
        from: last,
        ours: &[],
        theirs: &[],
        force: true,
        undone_after: None,
    };
    let look = checkpoints.preview(way).await;
    let changed: Vec<String> = look
        .ok()?
        .changes
        .into_iter()
        .filter(|c| !c.how.starts_with("folder"))
        .map(|c| output::one_line(&c.path))
        .collect();
    match changed.as_slice() {
        [] => None,
        [one] => Some(format!("{one} was changed")),
        [one, rest @ ..] => {
            Some(format!("{one} and {} were changed", count(rest.len(), "other file")))
        }
    }
}

/// The whole output of a call that has ended, or what it changed.
pub(crate) async fn call_text(
    store: &dyn Store,
    session: &SessionId,
    call: CallId,
) -> anyhow::Result<CallText> {
    let gone = || anyhow::anyhow!("the output of call {call} is missing");
    let finished = store.finished(session, call).await?.ok_or_else(gone)?;
    let text = async |hash| {
        let bytes = store.blob(hash).await?.ok_or_else(gone)?;
        anyhow::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(match (finished.diff, finished.full) {
        (Some(diff), _) => CallText::Diff(text(diff).await?),
        (None, Some(full)) => CallText::Output(text(full).await?),
        (None, None) => CallText::Output(finished.shown.to_string()),
    })
}

/// A new file for an export, in a private folder, under a name that cannot be guessed or already
/// exist.
pub(crate) fn export_file(session: &SessionId) -> anyhow::Result<PathBuf> {
    let folder = paths::state_dir()?.join("exports");
    dunnock_private::create_folder(&folder)?;
    let name = format!("{}-", output::id(session));
    let file = tempfile::Builder::new()
        .prefix(&name)
        .suffix(".jsonl")
        .rand_bytes(8)
        .tempfile_in(&folder)?;
    let (_, path) = file.keep()?;
    Ok(path)
}

/// Programs that read an image from the clipboard, with their arguments.
const CLIPBOARDS: &[&[&str]] = &[
    &["wl-paste", "--no-newline", "--type", "image/png"],
    &["xclip", "-selection", "clipboard", "-t", "image/png", "-o"],
    &["pngpaste", "-"],
];

/// Saves the image in the clipboard to a private file.
pub(crate) async fn clipboard_picture(programs: OwnPrograms) -> Result<String, String> {
    let folder = paths::state_dir().map_err(|e| e.to_string())?.join("pictures");
    for words in CLIPBOARDS {
        let Some((program, rest)) = words.split_first() else { continue };
        let Ok(command) = programs.command(program) else { continue };
        let made = tokio::process::Command::from(command)
            .args(rest)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let Ok(Ok(made)) = tokio::time::timeout(Duration::from_secs(2), made).await else {
            continue;
        };
        if made.status.success() && dunnock_proto::picture_kind(&made.stdout).is_some() {
            dunnock_private::create_folder(&folder).map_err(|e| e.to_string())?;
            let mut file = tempfile::Builder::new()
                .suffix(".png")
                .tempfile_in(&folder)
                .map_err(|e| e.to_string())?;
            std::io::Write::write_all(&mut file, &made.stdout).map_err(|e| e.to_string())?;
            let (_, path) = file.keep().map_err(|e| e.to_string())?;
            return Ok(path.to_string_lossy().into_owned());
        }
    }
    Err("there is no image on the clipboard, or no program to read it (wl-paste, xclip, \
         pngpaste). You can drop an image file on the terminal instead"
        .into())
}

/// Runs the user's own command in the folder, with their shell. The model does not see it.
pub(crate) async fn shell(
    programs: OwnPrograms,
    command: String,
    folder: PathBuf,
    tell: mpsc::Sender<HostEvent>,
) {
    let place = folder.clone();
    let shell =
        paths::text_var("SHELL").filter(|s| !s.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    // Their shell may have any syntax, so /bin/sh merges the two streams.
    let failed =
        |error: std::io::Error| HostEvent::ShellEnded(format!("could not be started: {error}"));
    let mut child = match programs.command("/bin/sh") {
        Ok(command) => tokio::process::Command::from(command),
        Err(error) => return drop(tell.send(failed(error)).await),
    };
    child.args(["-c", "exec \"$0\" -c \"$1\" 2>&1", &shell, &command]).current_dir(folder);
    child.stdin(Stdio::null()).stdout(Stdio::piped());
    child.kill_on_drop(true);
    #[cfg(unix)]
    child.process_group(0);
    let mut child = match child.spawn() {
        Ok(child) => child,
        Err(error) => return drop(tell.send(failed(error)).await),
    };
    #[cfg(unix)]
    let _group = Group(child.id());
    if let Some(mut out) = child.stdout.take() {
        let mut bytes = vec![0; 16 << 10];
        while let Ok(n @ 1..) = out.read(&mut bytes).await {
            let text = String::from_utf8_lossy(bytes.get(..n).unwrap_or_default()).into_owned();
            let _ = tell.send(HostEvent::Shell(text)).await;
        }
    }
    let how = match child.wait().await {
        Ok(status) if status.success() => "done".to_owned(),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    let _ = tell.send(HostEvent::Branch(branch(&place))).await;
    let _ = tell.send(HostEvent::ShellEnded(how)).await;
}

/// Kills the processes of a command when dropped, so that none outlives the app.
#[cfg(unix)]
struct Group(Option<u32>);

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        let group =
            self.0.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
