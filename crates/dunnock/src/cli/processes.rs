//! `dunnock processes`: processes that continue when their session has ended, because the person chose
//! `background = "keep"`.

use crate::cli::args::ProcessesCommand;
use crate::config::{load, paths};
use crate::view::output;
use anyhow::Context as _;
use dunnock_proto::SessionId;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A process, as it is listed.
struct ProcessRow {
    pid: i32,
    session: String,
    workspace: String,
    command: String,
    /// Seconds since 1970.
    since: u64,
    sandboxed: bool,
    /// Names and ports of its programs.
    programs: Vec<(String, Vec<u16>)>,
}

#[cfg(target_os = "linux")]
fn kept(data: &Path) -> io::Result<Vec<ProcessRow>> {
    let all = dunnock_sandbox::kept_processes(&paths::kept_processes(data))?.into_iter();
    let rows = all.map(|process| ProcessRow {
        pid: process.pid,
        session: process.kept.session,
        workspace: process.kept.workspace,
        command: process.kept.command,
        since: process.since,
        sandboxed: process.sandboxed,
        programs: process.programs.into_iter().map(|one| (one.name, one.ports)).collect(),
    });
    Ok(rows.collect())
}

#[cfg(target_os = "linux")]
fn stop(data: &Path, pid: i32) -> io::Result<bool> {
    dunnock_sandbox::stop_kept_process(&paths::kept_processes(data), pid)
}

#[cfg(not(target_os = "linux"))]
fn kept(_: &Path) -> io::Result<Vec<ProcessRow>> {
    Ok(Vec::new())
}

#[cfg(not(target_os = "linux"))]
fn stop(_: &Path, _: i32) -> io::Result<bool> {
    Ok(false)
}

/// Lists or stops them.
pub(crate) fn run(
    data: Option<PathBuf>,
    json: bool,
    what: Option<ProcessesCommand>,
) -> anyhow::Result<ExitCode> {
    let here = paths::workspace(None).ok();
    let settings = load::settings(here.as_deref(), false, load::given(data, Vec::new()))?;
    let data = paths::data_dir(&settings)?;
    let all = kept(&data).context("a process cannot be reached")?;
    match what {
        None => {
            all.iter().for_each(|process| output::line(&output::visible(&line(process, json))));
            if all.is_empty() && !json {
                output::note("no kept processes");
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(ProcessesCommand::Stop { pid, all: every }) => {
            let pids = if every { all.iter().map(|process| process.pid).collect() } else { pid };
            let mut code = ExitCode::SUCCESS;
            for pid in pids {
                let text = match stop(&data, pid) {
                    Ok(true) => format!("stopped {pid}"),
                    Ok(false) => {
                        format!("{pid} is not a kept process; see \"dunnock processes\"")
                    }
                    Err(error) => format!("{pid} could not be stopped: {error}"),
                };
                output::note(&text);
                if !text.starts_with("stopped") {
                    code = ExitCode::FAILURE;
                }
            }
            Ok(code)
        }
    }
}

/// Tells the person which processes an earlier run of the session left.
pub(crate) fn note_kept(data: &Path, session: &SessionId) {
    for process in
        kept(data).unwrap_or_default().iter().filter(|process| process.session == session.as_str())
    {
        output::note(&format!("still running: {}", line(process, false)));
    }
}

fn line(process: &ProcessRow, json: bool) -> String {
    let ProcessRow { pid, session, workspace, command, since, sandboxed, programs } = process;
    if json {
        let programs: Vec<serde_json::Value> = programs
            .iter()
            .map(|(name, ports)| serde_json::json!({ "name": name, "ports": ports }))
            .collect();
        return serde_json::json!({
            "pid": pid, "session": session, "workspace": workspace, "command": command,
            "since": since, "sandboxed": sandboxed, "programs": programs,
        })
        .to_string();
    }
    let mut ports: Vec<u16> = programs.iter().flat_map(|(_, ports)| ports.clone()).collect();
    ports.sort_unstable();
    ports.dedup();
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let ports = match ports.as_slice() {
        [] => String::new(),
        [port] => format!("  port {port}"),
        ports => format!("  ports {}", ports.join(", ")),
    };
    let names: Vec<&str> = programs.iter().map(|(name, _)| name.as_str()).collect();
    let first: String = command.lines().next().unwrap_or_default().chars().take(60).collect();
    let sandboxed = if *sandboxed { "  sandboxed" } else { "" };
    format!(
        "{pid:>8}  {}{ports}{sandboxed}  session {}  {workspace}  {first}",
        names.join(", "),
        session.get(..8).unwrap_or(session)
    )
}
