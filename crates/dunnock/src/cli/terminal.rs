//! The terminal app: `dunnock`, `dunnock "task"`, `dunnock attach` at a terminal.
//! Its requests are answered in `tui_host.rs`.

use crate::cli::args::Flags;
use crate::config::settings::Settings;
use crate::config::{load, paths};
use crate::host::tui_host::{StartWith, TuiHost};
use crate::own_programs::OwnPrograms;
use crate::view::output;
use dunnock_proto::Hash;
use dunnock_tui::{App, Environment, ExitState, Keep, Theme};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::sync::mpsc;

/// Whether there is a terminal for input and output.
pub(crate) fn possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Command-line options of the app.
pub(crate) struct TerminalOptions {
    pub(crate) first: StartWith,
    /// Plain lines, for screen readers.
    pub(crate) plain: bool,
    pub(crate) flags: Flags,
}

/// Opens the app, and returns when the user leaves it.
pub(crate) async fn open(
    data: Option<PathBuf>,
    asked: TerminalOptions,
) -> anyhow::Result<ExitCode> {
    if !possible() {
        return Err(crate::view::exit::usage(
            "the app needs a terminal, and there is none here. Without one, use: dunnock run \
             \"...\", or dunnock resume",
        ));
    }
    let workspace = paths::workspace(asked.flags.cd.as_deref())?;
    let settings = load::settings(
        Some(&workspace),
        asked.flags.trust,
        load::given(data, asked.flags.settings()),
    )?;
    paths::keeps_its_own(&workspace, &settings)?;
    let (asks, from_app) = mpsc::channel(64);
    let (tell, events) = mpsc::channel(1024);
    let (notes, heard) = mpsc::unbounded_channel();
    output::into(Some(notes));
    let programs = OwnPrograms::new(&settings, &workspace);
    let app = App {
        asks,
        events,
        keep: Keep::new(paths::state_dir()?),
        theme: theme(&settings),
        notify: settings.notify.value,
        seed: dunnock_engine::Clock::random(&dunnock_engine::SystemClock),
        folder: folder_name(&workspace),
        figures: paths::text_var("DUNNOCK_FIGURES").map(PathBuf::from),
        program: std::sync::Arc::new(move |name| programs.command(name)),
    };
    let plain = asked.plain || settings.screen_reader.value;
    let trusted = asked.flags.trust || crate::config::trust::is_trusted(&workspace);
    let host = TuiHost::new(settings, workspace, trusted, tell);
    // The app draws at once; the rest appears when it is ready.
    let host = tokio::spawn(host.run(asked.first, from_app, heard));
    let left = if plain { dunnock_tui::run_plain(app).await } else { dunnock_tui::run(app).await };
    // Running work is stopped first; a signal exits without waiting for that.
    let mut signals = crate::signals::Signals::new()?;
    let hosted = tokio::select! {
        hosted = host => hosted,
        () = signals.next() => std::process::exit(130),
    };
    output::into(None);
    hosted??;
    goodbye(&left?);
    Ok(ExitCode::SUCCESS)
}

/// Prints how to return to the session.
fn goodbye(left: &ExitState) {
    if let Some(session) = &left.session {
        let id = output::id(session);
        let how = if left.open { "unfinished" } else { "saved" };
        output::aside(&format!("session {id} · {how} · continue: dunnock open --resume {id}"));
    }
}

/// The name under which a folder's draft is saved while it has no session.
fn folder_name(workspace: &Path) -> String {
    let hash = Hash::of(workspace.as_os_str().as_encoded_bytes()).to_string();
    format!("new-{}", hash.get(..16).unwrap_or_default())
}

fn theme(settings: &Settings) -> Theme {
    let text = |name: &str| paths::text_var(name).unwrap_or_default();
    let env = Environment {
        no_color: !text("NO_COLOR").is_empty(),
        colorterm: text("COLORTERM"),
        colorfgbg: text("COLORFGBG"),
        term: text("TERM"),
    };
    Theme::chosen(&settings.theme.value, &env)
}
