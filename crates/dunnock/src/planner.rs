//! `--planner`: a preset of the one loop. The model only plans; the program acts, checks, remembers and decides when it is over.

use crate::exit::usage;
use crate::settings::Settings;
use dunnock_proto::Config;
use std::path::Path;

/// Iterations, unless somebody says otherwise.
const ITERATIONS: u32 = 5;
/// What was asked for, if it was.
pub(crate) fn wanted(settings: &Settings) -> bool {
    settings.text("planner") == Some("on")
}

/// Makes a planner of a session that is about to begin.
pub(crate) fn plan(settings: &Settings, config: &mut Config, workspace: &Path, task: &str) {
    if settings.origin("max_steps").as_deref() == Some("default") {
        config.max_steps = ITERATIONS;
    }
    config.planner = Some(dunnock_tools::planner(workspace, task, settings.list("planner_allow")));
}

/// A door that has no planner says so, instead of doing something else.
pub(crate) fn refuse(settings: &Settings, door: &str) -> anyhow::Result<()> {
    if wanted(settings) && settings.flagged("planner") {
        return Err(usage(format!("{door} is no planner. Give the task to one: dunnock run --planner \"...\"")));
    }
    Ok(())
}
