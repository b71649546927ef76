//! `run`, `resume`, `attach`: follow a session until it rests.

use crate::cli::args::Flags;
use crate::cli::{self, bridge, find, pictures, planner, processes};
use crate::compose;
use crate::config::settings::Settings;
use crate::config::{load, paths};
use crate::drive::{self, Carrying, CtrlC, Drive, Seen, View, attended};
use crate::own_programs::OwnPrograms;
use crate::signals::Signals;
use crate::view::exit::usage;
use crate::view::output;
use anyhow::bail;
use dunnock_core::{Phase, Status};
use dunnock_engine::{Connection, FirstPrompt, create_with_prompt, submit_offline};
use dunnock_proto::{
    At, Command, CommandRequest, Config, ConfigPatch, Deadline, InputId, SessionId,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) async fn run(
    data: Option<PathBuf>,
    task: Option<String>,
    flags: Flags,
) -> anyhow::Result<ExitCode> {
    let workspace = paths::workspace(flags.cd.as_deref())?;
    let mut settings =
        load::settings(Some(&workspace), flags.trust, load::given(data, flags.settings()))?;
    let task = drive::task(task).await?;
    if dunnock_tools::holds_a_key(&task) {
        output::note(
            "your task contains what looks like a key. It is sent to the model and saved with the \
             session. If you did not mean to share it, replace the key and delete the session: \
             dunnock sessions delete",
        );
    }
    let pictures = pictures::read(&flags.image)?;
    let mut open = compose::open(&settings, flags.output.as_deref()).await?;
    paths::keeps_its_own(&workspace, &settings)?;
    let model = compose::model(&mut settings, &open.client).await?;
    let attended = attended(flags.json) && !settings.unattended.value;
    let mut config = compose::config(&settings, &open.client, &workspace, model, attended)?;
    if let Some(deadline) = deadline(&flags, &open)? {
        config.deadline = Some(deadline);
        if settings.max_steps.is_default() {
            config.max_steps = u32::MAX; // the time is the limit
        }
    }
    note_effort(&settings, &open, &config);
    if settings.planner.value {
        planner::plan(&settings, &mut config, &workspace, &task);
    }
    open.confine(&settings, config.sandbox)?;
    compose::keepable(&config, open.ports.level, open.ports.day_budget)?;
    start(open, &workspace, config, (task, pictures), flags, Carrying::Leaves).await
}

/// What has to hold before a session continues: the new deadline, or none instead of one that has
/// passed, and that nobody answers.
fn until_or_unattended(
    until: Option<Deadline>,
    settings: &Settings,
    now: &Config,
    at: At,
) -> Option<ConfigPatch> {
    let passed = now.deadline.is_some_and(|deadline| deadline.until <= at);
    let set = ConfigPatch {
        deadline: (until.is_some() || passed).then_some(until),
        max_steps: match until {
            Some(_) => settings.max_steps.is_default().then_some(u32::MAX),
            None if passed => compose::steps_without_deadline(now),
            None => None,
        },
        unattended: settings.unattended.is_flag().then_some(settings.unattended.value),
        ..ConfigPatch::default()
    };
    (now.with(&set) != *now).then_some(set)
}

/// The deadline that the flags ask for.
fn deadline(flags: &Flags, open: &compose::Composed) -> anyhow::Result<Option<Deadline>> {
    let now = open.ports.clock.now();
    flags.deadline.as_deref().map(|text| cli::deadline::parse(text, now)).transpose()
}

/// Says so if the model does not have the effort that the user chose.
fn note_effort(settings: &Settings, open: &compose::Composed, config: &dunnock_proto::Config) {
    let chosen = settings.effort.value.zip(config.effort);
    let note =
        chosen.and_then(|(_, effort)| compose::effort_note(&open.client, &config.model, effort));
    if let Some(note) = note {
        output::note(&note);
    }
}

/// Starts a session and runs it.
pub(crate) async fn start(
    open: compose::Composed,
    workspace: &Path,
    config: dunnock_proto::Config,
    (task, pictures): (std::sync::Arc<str>, Vec<dunnock_ports::Blob>),
    flags: Flags,
    carrying: Carrying,
) -> anyhow::Result<ExitCode> {
    let bridge_folder = config.bridge.as_ref().map(|bridge| bridge.folder.clone());
    let first = FirstPrompt { text: task.clone(), images: pictures };
    let folder = workspace.to_string_lossy();
    let (session, upto) = create_with_prompt(&open.ports, &folder, config, first).await?;
    if let Some(folder) = bridge_folder {
        bridge::claim(Path::new(&folder), &session)?;
        if !flags.json {
            output::line(&format!("New session: {session}"));
            output::line(&format!("Task: {}", output::one_line(&task)));
        }
    }
    let mut view = View::new(&session, flags.json);
    let seen = Seen::read(&open.ports, &session).await?;
    view.begin(&seen.state, open.ports.level);
    // JSON lines include every event, even the first.
    let seen = Seen { state: dunnock_core::State::default(), tally: seen.tally };
    let signals = Signals::new()?;
    let connection = Connection::open(open.ports.clone(), session.clone(), 0).await?;
    let programs = open.programs(workspace);
    let (ports, output, ctrl_c) = (open.ports, flags.output, CtrlC::Stops);
    Drive { ports, programs, session, seen, view, signals, ctrl_c, carrying, output, upto }
        .go(connection)
        .await
}

fn accepted(answer: Result<u64, dunnock_engine::Refusal>) -> anyhow::Result<u64> {
    answer.map_err(|refusal| anyhow::anyhow!("{refusal}"))
}

pub(crate) async fn resume(
    data: Option<PathBuf>,
    id: Option<String>,
    prompt: Option<String>,
    flags: Flags,
) -> anyhow::Result<ExitCode> {
    let here = paths::workspace(flags.cd.as_deref()).ok();
    let settings =
        load::settings(here.as_deref(), flags.trust, load::given(data, flags.settings()))?;
    let open = compose::open(&settings, flags.output.as_deref()).await?;
    let session = find::session(&open, id.as_deref(), flags.cd.as_deref()).await?;
    go_on(open, &settings, session, prompt, flags, Carrying::Leaves).await
}

/// The person's own programs, beside this session.
fn programs(open: &compose::Composed, seen: &Seen) -> OwnPrograms {
    open.programs(Path::new(seen.state.workspace.as_deref().unwrap_or_default()))
}

/// Continues a session, for `resume` and `approve --go`.
pub(crate) async fn go_on(
    mut open: compose::Composed,
    settings: &Settings,
    session: SessionId,
    prompt: Option<String>,
    flags: Flags,
    carrying: Carrying,
) -> anyhow::Result<ExitCode> {
    let until = deadline(&flags, &open)?;
    let pictures = pictures::read(&flags.image)?;
    if prompt.is_none() && !pictures.is_empty() {
        return Err(usage("--image needs a prompt: --prompt \"...\""));
    }
    let seen = Seen::read(&open.ports, &session).await?;
    let id = output::id(&session).to_owned();
    if flags.planner && seen.state.config.planner.is_none() {
        return Err(usage(format!(
            "session {id} was not started with --planner; start a new one: dunnock run --planner \
             \"...\""
        )));
    }
    if let Some(unknown) = &seen.state.read_only {
        bail!(
            "session {id} was written by a later release ({}), which recorded {:?}. Use that \
             release to continue it",
            unknown.app,
            unknown.kind
        );
    }
    let (status, from) = (seen.state.status(), seen.state.seq);
    // The session as it will be, with this call's flags.
    let mut begins = seen.state.clone();
    let rests = seen.state.phase == Phase::Rest && seen.state.questions.is_empty();
    let over = rests && matches!(status, Status::Done | Status::Failed);
    let again =
        rests && matches!(status, Status::Stopped | Status::Limit) && seen.state.last.is_some();
    if rests && seen.state.last.is_none() && prompt.is_none() {
        return Err(usage(format!(
            "session {id} has no task yet. Give it one: dunnock resume {id} --prompt \"...\""
        )));
    }
    if !over || prompt.is_some() {
        let folder = seen.state.workspace.clone().unwrap_or_default();
        if !Path::new(folder.as_ref()).is_dir() {
            bail!("the folder of this session, {folder}, no longer exists. Restore it to continue");
        }
        let now = &seen.state.config;
        let patch = compose::patch(settings, &open.client, Path::new(folder.as_ref()), now, None)?;
        let config = patch.map_or_else(|| now.as_ref().clone(), |patch| now.with(&patch));
        open.confine(settings, config.sandbox)?;
        compose::keepable(&config, open.ports.level, open.ports.day_budget)?;
        open.client.knows(&config.model).map_err(usage)?;
        if settings.effort.is_flag() {
            note_effort(settings, &open, &config);
        }
        begins.config = config.into();
        if let Some(lower) = open.lowered(&begins)
            && !open.ports.ownership.is_driven(&session).await?
        {
            if !attended(flags.json) {
                bail!("{lower}");
            }
            output::note(&format!("{lower}. Until then, every command needs approval"));
        }
    }
    processes::note_kept(&paths::data_dir(settings)?, &session);
    let mut view = View::new(&session, flags.json);
    let ended = over && prompt.is_none();
    let then = seen.state.owner.map_or(open.ports.level, |current| current.level);
    view.begin(&begins, if ended { then } else { open.ports.level });
    let now = seen.state.config.clone();
    let folder = seen.state.workspace.clone().unwrap_or_default();
    let signals = Signals::new()?;
    let (ports, ctrl_c, output, upto) = (open.ports.clone(), CtrlC::Stops, flags.output, 0);
    let mut drive = Drive {
        ports,
        programs: programs(&open, &seen),
        session: session.clone(),
        seen,
        view,
        signals,
        ctrl_c,
        carrying,
        output,
        upto,
    };
    if over && prompt.is_none() {
        return drive.show_end().await;
    }
    let images = pictures::keep(&open.ports, &session, &pictures).await?;
    // Before anything goes on with the old ones: a deadline that has passed, or nobody to ask.
    let first = until_or_unattended(until, settings, &now, open.ports.clock.now());
    if let Some(set) = &first {
        let (id, command) = (
            InputId::from_random(open.ports.clock.random()),
            Command::Configure { set: set.clone() },
        );
        let request = CommandRequest { id, expect: None, command };
        let _ = submit_offline(&open.ports, &session, request).await?; // refused if it changes nothing
    }
    let mut connection = Connection::open(open.ports.clone(), session, from).await?;
    // Whether a user can answer depends on the process that drives the session, not on one that
    // watches.
    let here = connection.handle().is_some();
    let here = here.then(|| attended(flags.json) && !settings.unattended.value);
    let mut set = compose::patch(settings, &open.client, Path::new(folder.as_ref()), &now, here)?;
    if let Some(set) = &mut set {
        set.deadline = None;
        set.max_steps = set.max_steps.filter(|_| settings.max_steps.is_flag());
        if first.as_ref().is_some_and(|first| first.unattended.is_some()) {
            set.unattended = None;
        }
    }
    if let Some(set) = set.filter(|set| *set != ConfigPatch::default()) {
        drive.upto = accepted(connection.send(Command::Configure { set }).await?)?;
    }
    if let Some(text) = prompt {
        drive.upto =
            accepted(connection.send(Command::Prompt { text: text.into(), images }).await?)?;
    } else if again {
        drive.upto = accepted(connection.send(Command::Run).await?)?;
    }
    drive.go(connection).await
}

pub(crate) async fn attach(
    data: Option<PathBuf>,
    id: Option<String>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let settings = load::settings(
        paths::workspace(None).ok().as_deref(),
        false,
        load::given(data, Vec::new()),
    )?;
    let open = compose::open(&settings, None).await?;
    let session = find::session(&open, id.as_deref(), None).await?;
    let seen = Seen::read(&open.ports, &session).await?;
    let signals = Signals::new()?;
    let Some(connection) =
        Connection::join(open.ports.clone(), session.clone(), seen.state.seq).await?
    else {
        let id = output::id(&session);
        bail!(
            "no process is running session {id} (state: {}). Continue it: dunnock resume {id}",
            seen.state.status()
        );
    };
    let mut view = View::new(&session, json);
    let level = seen.state.owner.map_or(open.ports.level, |current| current.level);
    view.begin(&seen.state, level);
    let programs = programs(&open, &seen);
    let (ports, ctrl_c, carrying) = (open.ports, CtrlC::Leaves, Carrying::Waits { copy: false });
    Drive { ports, programs, session, seen, view, signals, ctrl_c, carrying, output: None, upto: 0 }
        .go(connection)
        .await
}
