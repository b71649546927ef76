//! `dunnock doctor`: checks the installation and suggests fixes.

use crate::cli::sandbox;
use crate::compose;
use crate::config::{load, paths, sandbox_settings};
use crate::view::output;
use dunnock_proto::Isolation;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Ok,
    Note,
    Bad,
}

struct Report {
    json: bool,
    bad: bool,
}

impl Report {
    fn say(&mut self, sign: Sign, what: &str, text: &str) {
        self.bad |= sign == Sign::Bad;
        let word = match sign {
            Sign::Ok => "ok",
            Sign::Note => "note",
            Sign::Bad => "BAD",
        };
        output::line(&match self.json {
            true => json!({"check": what, "sign": word.to_lowercase(), "text": text}).to_string(),
            false => format!("{word:<5} {what:<10} {}", output::visible(text)),
        });
    }
}

pub(crate) async fn run(data: Option<PathBuf>, json: bool) -> anyhow::Result<ExitCode> {
    let mut report = Report { json, bad: false };
    report.say(
        Sign::Ok,
        "release",
        &format!("dunnock {} on {} ({})", crate::APP, std::env::consts::OS, std::env::consts::ARCH),
    );
    let workspace = paths::workspace(None);
    match &workspace {
        Ok(dir) => report.say(Sign::Ok, "folder", &dir.display().to_string()),
        Err(error) => report.say(Sign::Note, "folder", &format!("{error:#}")),
    }
    let settings =
        match load::settings(workspace.as_deref().ok(), false, load::given(data, Vec::new())) {
            Ok(settings) => settings,
            Err(error) => {
                report.say(Sign::Bad, "settings", &format!("{error:#}"));
                return Ok(ExitCode::FAILURE);
            }
        };
    let folders = sandbox_settings::check_folders(&settings);
    if let Err(error) = &folders {
        report.say(Sign::Bad, "settings", &format!("{error:#}"));
    }
    match settings.notes.as_slice() {
        [] if folders.is_err() => {}
        [] => report.say(
            Sign::Ok,
            "settings",
            "no errors found; \"dunnock config\" shows all settings",
        ),
        notes => notes.iter().for_each(|note| report.say(Sign::Note, "settings", note)),
    }
    store(&mut report, &settings).await;
    confined(&mut report, &settings);
    model(&mut report, settings).await;
    program(&mut report, "shell", "bash", "commands run with sh instead");
    program(&mut report, "git", "git", "the git tools do not work without it");
    Ok(if report.bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn confined(report: &mut Report, settings: &crate::config::settings::Settings) {
    let Ok(data) = paths::data_dir(settings) else { return };
    let confined = compose::confined(settings, &data);
    if let Some(why) = &confined.failed {
        let text = format!("the sandbox could not be checked: {why}; try again");
        return report.say(Sign::Bad, "sandbox", &text);
    }
    let level = confined.level;
    let sign = if level == Isolation::A { Sign::Ok } else { Sign::Note };
    report.say(sign, "sandbox", &format!("level {level:?}: {}", sandbox::made_of(level)));
    if let Some(way) = sandbox::way_up(&confined) {
        way.lines().for_each(|line| report.say(Sign::Note, "sandbox", line));
        sandbox::open_at(level)
            .iter()
            .for_each(|line| report.say(Sign::Note, "sandbox", &format!("not blocked: {line}")));
    }
    #[cfg(unix)]
    if rustix::process::geteuid().is_root() && level != Isolation::D {
        report.say(
            Sign::Note,
            "sandbox",
            "you are root: sandboxed commands run as root, but without its privileges",
        );
    }
}

/// Folders with databases that were damaged.
fn damaged(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("damaged-"))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

async fn store(report: &mut Report, settings: &crate::config::settings::Settings) {
    let opened = match paths::data_dir(settings) {
        Ok(dir) => paths::open(&dir).await.map(|store| (dir, store)),
        Err(error) => Err(error),
    };
    let (dir, paths::OpenedStore { store, rebuilt }) = match opened {
        Ok(opened) => opened,
        Err(error) => return report.say(Sign::Bad, "sessions", &format!("{error:#}")),
    };
    if rebuilt {
        report.say(Sign::Bad, "sessions", "the session database was damaged; it was rebuilt");
    }
    for damaged in damaged(&dir) {
        let text = format!("a damaged session database is in {}", damaged.display());
        report.say(Sign::Note, "sessions", &text);
    }
    let size = size_of(&dir);
    match store.list(None, u32::MAX).await {
        Ok(rows) => report.say(
            Sign::Ok,
            "sessions",
            &format!(
                "{} in {} ({} MB)",
                rows.len(),
                dir.display(),
                output::number(size.div_ceil(1 << 20))
            ),
        ),
        Err(error) => report.say(Sign::Bad, "sessions", &error.to_string()),
    }
    if let Some(checkpoints) = compose::checkpoints(settings, &dir, None) {
        let most = settings.checkpoint_mb.value;
        let size = output::number(checkpoints.size().div_ceil(1 << 20));
        report.say(
            Sign::Ok,
            "undo",
            &format!("{size} MB of checkpoints, of at most {} MB", output::number(most)),
        );
    } else {
        report.say(
            Sign::Note,
            "undo",
            "checkpoints are not supported on this system yet, so changes cannot be undone",
        );
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        match std::fs::metadata(&dir).map(|m| m.permissions().mode() & 0o777) {
            Ok(0o700) => {}
            Ok(mode) => report.say(
                Sign::Bad,
                "sessions",
                &format!(
                    "{0} has mode {mode:o}; other users may read it. Run: chmod 700 {0}",
                    dir.display()
                ),
            ),
            Err(error) => report.say(Sign::Bad, "sessions", &error.to_string()),
        }
    }
}

fn size_of(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_of(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

async fn model(report: &mut Report, mut settings: crate::config::settings::Settings) {
    let client = match compose::client(&settings) {
        Ok(client) => client,
        Err(error) => return report.say(Sign::Bad, "model", &format!("{error:#}")),
    };
    let model = match compose::model(&mut settings, &client).await {
        Ok(model) => model,
        Err(error) => return report.say(Sign::Bad, "model", &format!("{error:#}")),
    };
    let (name, wanted) = model.split_once('/').unwrap_or((&model, ""));
    let Some(provider) = client.providers().into_iter().find(|p| p.name == name) else {
        return report.say(
            Sign::Bad,
            "model",
            &format!(
                "{model}: there is no provider {name:?}. Add [providers.{name}] to the \
                 configuration"
            ),
        );
    };
    match client.models(&provider, Duration::from_secs(5)).await {
        Ok(models) if models.iter().any(|m| m == wanted) => {
            report.say(Sign::Ok, "model", &format!("{model} is available"))
        }
        Ok(models) => report.say(
            Sign::Note,
            "model",
            &format!(
                "{name} answers, but does not list {wanted:?} among its {} models; \"dunnock \
                 models list\" shows them",
                models.len()
            ),
        ),
        Err(why) => report.say(Sign::Bad, "model", &why),
    }
}

fn program(report: &mut Report, what: &str, name: &str, without: &str) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    match found {
        Some(file) => report.say(Sign::Ok, what, &file.display().to_string()),
        None => report.say(Sign::Note, what, &format!("{name} was not found in PATH; {without}")),
    }
}
