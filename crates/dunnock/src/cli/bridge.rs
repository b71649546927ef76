//! `bridge new`, `bridge resume`, `bridge copy`: sessions that the user copies and pastes into any
//! chat. Only the transport to the model differs; everything else is `run` and `resume`.

use crate::cli::args::Flags;
use crate::cli::{find, planner, run as running};
use crate::compose;
use crate::config::settings::{Settings, Value};
use crate::config::{load, paths};
use crate::drive::{self, Carrying, attended};
use crate::view::exit::usage;
use crate::view::{bridge_round, output};
use anyhow::{Context as _, bail};
use dunnock_engine::load;
use dunnock_model::{BRIDGE_MODEL, BRIDGE_OWNER, InboxState, brought, outbox_name, put_private};
use dunnock_proto::{Bridge, Config, SessionId};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options in addition to the flags of `run`.
#[derive(Debug, Default)]
pub(crate) struct BridgeOptions {
    pub(crate) once: bool,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) copy: bool,
}

impl BridgeOptions {
    fn carrying(&self) -> Carrying {
        if self.once {
            Carrying::Once { copy: self.copy }
        } else {
            Carrying::Waits { copy: self.copy }
        }
    }

    fn flags(&self, flags: &Flags) -> Vec<(&'static str, Value)> {
        let mut given = flags.settings();
        given.push(("model", Value::Text(BRIDGE_MODEL.into())));
        if let Some(dir) = &self.dir {
            given.push(("bridge-dir", Value::Text(dir.to_string_lossy().into_owned())));
        }
        given
    }
}

pub(crate) async fn new(
    data: Option<PathBuf>,
    task: Option<String>,
    asked: BridgeOptions,
    flags: Flags,
) -> anyhow::Result<ExitCode> {
    no_model(&flags)?;
    let workspace = paths::workspace(flags.cd.as_deref())?;
    let settings =
        load::settings(Some(&workspace), flags.trust, load::given(data, asked.flags(&flags)))?;
    planner::refuse(&settings, "a copy-and-paste session")?;
    let task = drive::task(task).await?;
    let mut open = compose::open(&settings, flags.output.as_deref()).await?;
    paths::keeps_its_own(&workspace, &settings)?;
    let folder = folder(&settings, &workspace)?;
    let attended = attended(flags.json);
    let mut config =
        compose::config(&settings, &open.client, &workspace, BRIDGE_MODEL.into(), attended)?;
    config.bridge = Some(bridge(&settings, &folder));
    if config.budget.tokens.is_some() || config.budget.micros.is_some() {
        return Err(usage(
            "Dunnock cannot count what a chat uses; give the bridge a time budget (--budget 10min)",
        ));
    }
    open.confine(&settings, config.sandbox)?;
    compose::keepable(&config, open.ports.level, open.ports.day_budget)?;
    held(&settings, &open, &workspace, &folder).await?;
    let started =
        running::start(open, &workspace, config, (task, Vec::new()), flags, asked.carrying());
    started.await
}

pub(crate) async fn resume(
    data: Option<PathBuf>,
    id: Option<String>,
    asked: BridgeOptions,
    flags: Flags,
) -> anyhow::Result<ExitCode> {
    no_model(&flags)?;
    let here = paths::workspace(flags.cd.as_deref())?;
    // The session's own settings apply; only flags override them.
    let settings = load::settings(Some(&here), flags.trust, load::given(data, flags.settings()))?;
    planner::refuse(&settings, "a copy-and-paste session")?;
    let open = compose::open(&settings, flags.output.as_deref()).await?;
    let session = find_session(&open, id.as_deref(), &here).await?;
    let state = load(open.ports.store.as_ref(), &session).await?.state;
    let Some(bridge) = state.config.bridge.clone().filter(|_| state.config.model == BRIDGE_MODEL)
    else {
        let id = output::id(&session);
        return Err(usage(format!(
            "session {id} does not use the bridge: its model is {}. Continue it: dunnock resume \
             {id}",
            state.config.model
        )));
    };
    let folder = PathBuf::from(&bridge.folder);
    if asked.dir.as_ref().is_some_and(|dir| std::path::absolute(dir).ok().as_ref() != Some(&folder))
    {
        return Err(usage(format!(
            "the files of this session stay in {}; leave out --dir",
            folder.display()
        )));
    }
    dunnock_private::create_folder(&folder)
        .with_context(|| format!("{} cannot be created", folder.display()))?;
    let workspace = PathBuf::from(state.workspace.as_deref().unwrap_or_default());
    let mut open = open;
    open.confine(&settings, state.config.sandbox)?;
    held(&settings, &open, &workspace, &folder).await?;
    claim(&folder, &session)?;
    // A request that could not be written must not end the session.
    let prompt = (state.status() == dunnock_core::Status::Failed).then(|| "Continue.".to_owned());
    if !flags.json {
        output::line(&format!("Session: {session}"));
        output::line(&format!(
            "Task: {}",
            state.title.as_deref().map(output::one_line).unwrap_or_default()
        ));
        if let Some(handed) =
            state.awaiting_reply().filter(|handed| brought(&session, handed) != InboxState::Comes)
        {
            output::line(&bridge_round::round(handed));
        }
    }
    running::go_on(open, &settings, session, prompt, flags, asked.carrying()).await
}

/// Copies a part of the waiting request to the clipboard.
pub(crate) async fn copy(data: Option<PathBuf>, part: usize) -> anyhow::Result<ExitCode> {
    let here = paths::workspace(None)?;
    let settings = load::settings(Some(&here), false, load::given(data, Vec::new()))?;
    let open = compose::open(&settings, None).await?;
    let session = find_session(&open, None, &here).await?;
    let state = load(open.ports.store.as_ref(), &session).await?.state;
    let Some(handed) = state.awaiting_reply() else {
        bail!(
            "no copy-and-paste request is waiting in {}. Start: dunnock bridge new \"...\"",
            here.display()
        );
    };
    let parts = handed.parts as usize;
    if part == 0 || part > parts {
        return Err(usage(format!("there is no part {part}: the outbox has {parts}")));
    }
    let path = Path::new(&handed.outbox).with_file_name(outbox_name(handed.step, part - 1));
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    crate::clipboard::to_clipboard(&open.programs(&here), &text)
        .map_err(|why| anyhow::anyhow!("{why}. The file is {}", path.display()))?;
    output::note(&format!("copied part {part} of {parts} to the clipboard: {}", path.display()));
    Ok(ExitCode::SUCCESS)
}

fn no_model(flags: &Flags) -> anyhow::Result<()> {
    if !flags.image.is_empty() {
        return Err(usage(
            "the bridge does not support --image: attach images in the chat yourself",
        ));
    }
    if flags.model.is_some() {
        return Err(usage(
            "the bridge does not use --model: you choose the chat. With a model: dunnock run \
             --model P/M",
        ));
    }
    Ok(())
}

fn is_carried(config: &Config) -> bool {
    config.model == BRIDGE_MODEL && config.bridge.is_some()
}

/// The session with this ID, or else the newest copy-and-paste session in this folder.
async fn find_session(
    open: &compose::Composed,
    id: Option<&str>,
    workspace: &Path,
) -> anyhow::Result<SessionId> {
    let log = open.ports.store.as_ref();
    if let Some(id) = id {
        return find::by_prefix(log, id).await;
    }
    for row in log.list(Some(&workspace.to_string_lossy()), 100).await? {
        if load(log, &row.id).await.is_ok_and(|loaded| is_carried(&loaded.state.config)) {
            return Ok(row.id);
        }
    }
    bail!(
        "no copy-and-paste session in {} yet. Start one: dunnock bridge new \"...\"",
        workspace.display()
    )
}

fn bridge(settings: &Settings, folder: &Path) -> Bridge {
    Bridge {
        folder: folder.to_string_lossy().into_owned(),
        timeout: settings.bridge_timeout.value.as_secs(),
        output: settings.bridge_output.value,
        size: settings.bridge_size.value,
    }
}

/// The folder for outboxes and inboxes: not writable by commands, and not behind a link.
fn folder(settings: &Settings, workspace: &Path) -> anyhow::Result<PathBuf> {
    let given = &settings.bridge_dir.value;
    let wanted = if given.starts_with(".dunnock") {
        workspace.join(given)
    } else {
        std::path::absolute(given)
            .with_context(|| format!("{} is not a valid folder", given.display()))?
    };
    let own = workspace.join(".dunnock");
    let inside = |path: &Path| path.starts_with(workspace) && !path.starts_with(&own);
    let refused = |path: &Path| {
        usage(format!(
            "{} is in the workspace, where commands can write, so a command could forge an inbox. \
             Use a folder below .dunnock, or one outside the workspace",
            path.display()
        ))
    };
    if inside(&wanted) {
        return Err(refused(&wanted));
    }
    dunnock_private::create_folder(&wanted)
        .with_context(|| format!("{} cannot be created", wanted.display()))?;
    let real =
        wanted.canonicalize().with_context(|| format!("{} cannot be read", wanted.display()))?;
    if wanted.starts_with(&own) && real != wanted {
        bail!(
            "{} leads to {} through a symbolic link. Remove the link, or use another folder: \
             --dir DIR",
            wanted.display(),
            real.display()
        );
    }
    if inside(&real) {
        return Err(refused(&real));
    }
    Ok(real)
}

/// Tests whether a command can write to the inbox folder, and refuses to start if it can.
async fn held(
    settings: &Settings,
    open: &compose::Composed,
    workspace: &Path,
    folder: &Path,
) -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    if open.ports.level != dunnock_proto::Isolation::D {
        let name = format!(".try-{}", std::process::id());
        let file = folder.join(&name);
        let words = vec![
            "/bin/sh".to_owned(),
            "-c".into(),
            "exec > \"$0\"".into(),
            file.display().to_string(),
        ];
        let data = paths::data_dir(settings)?;
        crate::cli::sandbox::quietly(settings, &data, workspace, words).await?;
        if file.exists() {
            let _ = std::fs::remove_file(&file);
            return Err(usage(format!(
                "commands can write to {}, so a command could forge an inbox. Use another folder: \
                 --dir DIR",
                folder.display()
            )));
        }
        return Ok(());
    }
    let _ = (settings, workspace, open);
    output::note(&format!(
        "commands are not sandboxed (level D): one that you allow could write to {}",
        folder.display()
    ));
    Ok(())
}

/// Assigns a folder to a session: moves another session's files into a folder with its ID, and
/// moves this session's files back. Idempotent, even after an interruption at any point.
pub(crate) fn claim(folder: &Path, session: &SessionId) -> anyhow::Result<()> {
    let whole = session.to_string();
    let owner =
        std::fs::read_to_string(folder.join(BRIDGE_OWNER)).unwrap_or_default().trim().to_owned();
    let ours = owner.len() == whole.len() && owner.chars().all(|c| c.is_ascii_alphanumeric());
    if !owner.is_empty() && !ours {
        bail!(
            "{} was not written by Dunnock. Use another folder: --dir DIR",
            folder.join(BRIDGE_OWNER).display()
        );
    }
    let failed = || format!("cannot prepare the bridge folder {}", folder.display());
    if owner != whole && (!owner.is_empty() || files(folder).next().is_some()) {
        let aside = folder.join(if owner.is_empty() { "earlier" } else { &owner });
        dunnock_private::create_folder(&aside).with_context(failed)?;
        for name in files(folder).collect::<Vec<_>>() {
            std::fs::rename(folder.join(&name), aside.join(&name)).with_context(failed)?;
        }
        if !owner.is_empty() {
            output::note(&format!(
                "the files of the previous copy-and-paste session are in {}",
                aside.display()
            ));
        }
    }
    if owner != whole {
        put_private(folder, BRIDGE_OWNER, &whole).with_context(failed)?;
    }
    // Outboxes and inboxes do not belong in the repository.
    if !folder.join(".gitignore").exists() {
        put_private(folder, ".gitignore", "*\n").with_context(failed)?;
    }
    let kept = folder.join(&whole);
    if kept.is_dir() {
        for name in files(&kept).collect::<Vec<_>>() {
            std::fs::rename(kept.join(&name), folder.join(&name)).with_context(failed)?;
        }
        let _ = std::fs::remove_dir(&kept);
    }
    Ok(())
}

/// The outbox and inbox files in a folder.
fn files(folder: &Path) -> impl Iterator<Item = std::ffi::OsString> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy();
        let name = name.trim_start_matches('.');
        let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        digits >= 3
            && ["-outbox", "-inbox", "-files"].iter().any(|kind| name[digits..].starts_with(kind))
    };
    names
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()))
        .map(|entry| entry.file_name())
        .filter(ours)
}
