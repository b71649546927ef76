//! `--planner`: a preset of the agent loop. The model only plans; the program acts, checks,
//! remembers and decides when to stop.

use crate::config::settings::Settings;
use crate::view::exit::usage;
use dunnock_proto::Config;
use std::path::Path;

/// The default number of iterations.
const ITERATIONS: u32 = 5;

/// Configures a new session as a planner.
pub(crate) fn plan(settings: &Settings, config: &mut Config, workspace: &Path, task: &str) {
    if settings.max_steps.is_default() {
        config.max_steps = ITERATIONS;
    }
    let allow = settings.planner_allow.value.clone();
    config.planner = Some(dunnock_tools::planner(workspace, task, allow));
}

/// Refuses `--planner` where it is not supported, instead of ignoring it.
pub(crate) fn refuse(settings: &Settings, connection: &str) -> anyhow::Result<()> {
    if settings.planner.value && settings.planner.is_flag() {
        return Err(usage(format!(
            "--planner does not work with {connection}; use: dunnock run --planner \"...\""
        )));
    }
    Ok(())
}
