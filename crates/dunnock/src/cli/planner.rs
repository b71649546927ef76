//! `--planner`: a preset of the agent loop. The model only plans; the program acts, checks,
//! remembers and decides when to stop.

use crate::config::settings::Settings;
use crate::view::exit::usage;
use dunnock_proto::Config;
use std::path::Path;

/// The default number of iterations.
const ITERATIONS: u32 = 5;
/// Whether the planner is enabled.
pub(crate) fn wanted(settings: &Settings) -> bool {
    settings.text("planner") == Some("on")
}

/// Configures a new session as a planner.
pub(crate) fn plan(settings: &Settings, config: &mut Config, workspace: &Path, task: &str) {
    if settings.origin("max_steps").as_deref() == Some("default") {
        config.max_steps = ITERATIONS;
    }
    config.planner = Some(dunnock_tools::planner(workspace, task, settings.list("planner_allow")));
}

/// Refuses `--planner` where it is not supported, instead of ignoring it.
pub(crate) fn refuse(settings: &Settings, connection: &str) -> anyhow::Result<()> {
    if wanted(settings) && settings.flagged("planner") {
        return Err(usage(format!(
            "--planner does not work with {connection}; use: dunnock run --planner \"...\""
        )));
    }
    Ok(())
}
