//! Commands about the program itself: settings, completions, manual, help; and hints for mistyped
//! commands.

use crate::compose;
use crate::config::keys_table::Interface;
use crate::config::settings::Value;
use crate::config::{load, paths};
use crate::view::output;
use anyhow::Context as _;
use clap::Command;
use serde_json::json;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

/// The threads that the program needs at once before its first request: for the runtime, the
/// database, the launcher, and work that blocks.
const THREADS: u8 = 6;

/// Starts as many threads as the program needs. The runtime would panic if it could not, or wait
/// for ever for one.
pub(crate) fn enough_threads() -> anyhow::Result<()> {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock();
    let start = |_| {
        let gate = gate.clone();
        let wait = move || drop(gate.lock());
        std::thread::Builder::new().stack_size(64 << 10).spawn(wait)
    };
    let started: Result<Vec<_>, _> = (0..THREADS).map(start).collect();
    drop(closed);
    let threads = started.context(
        "threads cannot be started: there are too many processes. End some programs, or raise the \
         limit (ulimit -u)",
    )?;
    for thread in threads {
        let _ = thread.join(); // its place must be free again
    }
    Ok(())
}

/// Keeps the user's other programs from reading our memory and environment, which contain keys.
pub(crate) fn be_private() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// What was typed in place of a command.
pub(crate) enum Typed {
    /// A task: the arguments, with the command to run it inserted.
    Task(Vec<OsString>),
    /// An unknown command, with a hint.
    Mistake(String),
}

/// Handles arguments without a command. Opens the web or terminal app, with the task if there is
/// one; without a terminal, a task is run. A single unknown word gets a hint.
pub(crate) fn task_or_mistake(
    words: &[OsString],
    terminal: bool,
    web: impl Fn() -> bool,
) -> Option<Typed> {
    // `--data-dir` may precede the command.
    let at = match words.get(1).and_then(|word| word.to_str()) {
        Some("--data-dir") => 3,
        Some(word) if word.starts_with("--data-dir=") => 2,
        _ => 1,
    };
    let with = |command: &str| {
        let mut all = words.to_vec();
        all.insert(at.min(all.len()), command.into());
        Some(Typed::Task(all))
    };
    let Some(first) = words.get(at) else {
        return match (web(), terminal) {
            (true, _) => with("web"),
            (false, true) => with("open"),
            (false, false) => None,
        };
    };
    let first = first.to_str()?;
    let known = <crate::cli::args::Args as clap::CommandFactory>::command();
    if known.get_subcommands().any(|c| c.get_name() == first)
        || matches!(first, "-h" | "--help" | "-V" | "--version")
    {
        return None;
    }
    if first.starts_with('-') {
        return with(if terminal { "open" } else { "run" });
    }
    if first.contains(char::is_whitespace) {
        return with(if terminal { "open" } else { "run" });
    }
    let names: Vec<&str> = known.get_subcommands().map(clap::Command::get_name).collect();
    let near = names.iter().map(|n| (strsim::levenshtein(n, first), *n)).min();
    let hint = match near {
        Some((d, name)) if d <= 2 => format!("Did you mean \"dunnock {name}\"?"),
        _ => format!("To give a task: dunnock \"{first} the tests\""),
    };
    Some(Typed::Mistake(format!(
        "no command {first:?}. {hint} (dunnock --help shows the commands)"
    )))
}

/// Whether plain `dunnock` opens the web app. Unreadable settings are reported by the command that
/// runs next.
pub(crate) fn web_is_the_door() -> bool {
    let settings = load::settings(paths::workspace(None).ok().as_deref(), false, Vec::new());
    settings.is_ok_and(|settings| settings.interface.value == Interface::Web)
}

pub(crate) fn config(
    data: Option<PathBuf>,
    cd: Option<PathBuf>,
    trust: bool,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let workspace = paths::workspace(cd.as_deref())?;
    let mut settings = load::settings(Some(&workspace), trust, load::given(data, Vec::new()))?;
    if settings.model.value.is_none() {
        let _ = compose::model_by_key(&mut settings);
    }
    if settings.data_dir.value.is_none()
        && let Ok(dir) = paths::data_dir(&settings)
    {
        settings.data_dir.found(&dir.to_string_lossy(), "default");
    }
    for (key, value, origin, about) in settings.all() {
        match (json, value) {
            (true, value) => {
                let value = value.map(|v| match v {
                    Value::Text(text) => json!(text),
                    Value::List(all) => json!(all),
                });
                output::line(&json!({"key": key, "value": value, "origin": origin}).to_string());
            }
            (false, Some(value)) => output::line(&format!(
                "{key} = {}  # {origin}",
                output::one_line(&value.to_string())
            )),
            (false, None) => output::line(&format!("# {key}: {origin} ({about})")),
        }
    }
    if !json {
        let set = |env: &&str| paths::text_var(env).is_some_and(|v| !v.is_empty());
        let keys: Vec<&str> =
            dunnock_model::KNOWN.iter().filter_map(|k| k.key_env).filter(set).collect();
        if !keys.is_empty() {
            output::line(&format!("# API keys that are set: {}", keys.join(", ")));
        }
        let order = dunnock_model::KNOWN
            .iter()
            .filter(|k| k.default_model.is_some())
            .filter_map(|k| k.key_env);
        output::line(&format!(
            "# if no model is set, the first of these keys that is set decides: {}; otherwise \
             the model of a local server, if there is only one",
            order.collect::<Vec<_>>().join(", ")
        ));
    }
    settings.notes.iter().for_each(|note| output::note(note));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn completions(
    shell: clap_complete::Shell,
    mut command: Command,
) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "dunnock", &mut text);
    output::piece(&String::from_utf8_lossy(&text));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(dir: Option<PathBuf>, command: Command) -> anyhow::Result<ExitCode> {
    match dir {
        Some(dir) => {
            std::fs::create_dir_all(&dir)?;
            clap_mangen::generate_to(command, &dir)?;
            output::note(&format!(
                "wrote the pages to {}; read one with: man {}/dunnock.1",
                dir.display(),
                dir.display()
            ));
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(command).render(&mut text)?;
            output::piece(&String::from_utf8_lossy(&text));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Every help page: the command and its text.
pub(crate) fn help_pages(mut command: Command) -> Vec<(String, String)> {
    command.build();
    let mut pages = Vec::new();
    let mut open = vec![("dunnock".to_owned(), command)];
    while let Some((name, mut command)) = open.pop() {
        let below: Vec<Command> = command.get_subcommands().cloned().collect();
        open.extend(below.into_iter().rev().map(|c| (format!("{name} {}", c.get_name()), c)));
        pages.push((name, command.render_long_help().to_string()));
    }
    pages
}
