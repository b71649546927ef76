//! The tools as the driver meets them: through the port, in real folders.

#![expect(clippy::unwrap_used, reason = "a test ends where it goes wrong")]

mod bench_edits;
#[cfg(target_os = "linux")]
mod box_speed;
mod edits;
mod examples;
mod find_speed;
mod found;
mod fuzz_corpus;
#[cfg(unix)]
mod history;
mod keep;
mod keep_kills;
mod keep_large;
mod long_running;
#[cfg(target_os = "linux")]
mod machine_files;
mod paths;
#[cfg(target_os = "linux")]
mod plantable;
mod processes;
mod same_state;
#[cfg(target_os = "linux")]
mod session_processes;
mod speed;
mod trees;
mod words;

use dunnock_core::{Call, Stage};
use dunnock_ports::{CancellationToken, DeltaSink, ToolCall, Tools as _};
use dunnock_proto::*;
use dunnock_tools::{Limits, Toolbox};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A call of a tool, or of the harness.
pub fn job(root: &Path, tool: &str, args: &str) -> ToolCall {
    let known = dunnock_tools::offers().into_iter().find(|o| o.tool.name == tool).map(|o| o.tool);
    let part = CallPart {
        id: "c".into(),
        tool: tool.into(),
        args: args.into(),
        sent: None,
        recovered: false,
        fault: None,
    };
    let class = known.as_ref().map_or(Class::Command, |t| t.class);
    let recovery = known.as_ref().map_or(Recovery::Repeat, |t| t.recovery);
    let id = CallId { step: Step(1), index: 0 };
    let call = Call {
        stage: Stage::Allowed,
        harness: tool == "verify",
        ..Call::new(id, Arc::new(part), class, recovery, known.as_ref().map(|t| t.role))
    };
    ToolCall {
        session: SessionId::from_random([7; 16]),
        workspace: root.to_string_lossy().into(),
        call,
        isolation: Isolation::D,
        open_hosts: Default::default(),
        closes_hosts: false,
        seen: Default::default(),
        hidden_folder: None,
        time_left: None,
    }
}

/// What comes of it.
pub async fn run(root: &Path, tool: &str, args: &str) -> Finished {
    let quiet: DeltaSink = Arc::new(|_| {});
    toolbox().run(job(root, tool, args), quiet, CancellationToken::default()).await.0
}

/// Hands with a launcher of their own.
pub fn toolbox() -> Toolbox {
    Toolbox::new(Limits::default(), &launcher(), &[])
}

/// The launcher: as built, or where somebody who cannot go there finds it.
pub fn launcher() -> PathBuf {
    let built = || env!("CARGO_BIN_EXE_dunnock-launcher").into();
    std::env::var_os("DUNNOCK_TEST_LAUNCHER").map_or_else(built, PathBuf::from)
}

/// Files that are there before.
pub fn put(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Runs these tests again as somebody who is not root; what they say.
pub fn as_ordinary_user(tests: &str) -> String {
    dunnock_testkit::ordinary::run(
        tests,
        &[("DUNNOCK_TEST_LAUNCHER", env!("CARGO_BIN_EXE_dunnock-launcher"))],
    )
}
