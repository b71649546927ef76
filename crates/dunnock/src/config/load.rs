//! Settings from all their sources.

use crate::config::settings::{Settings, Sources, Value};
use crate::config::{paths, trust};
use std::path::{Path, PathBuf};

/// Settings for a workspace, from all sources.
pub(crate) fn settings(
    workspace: Option<&Path>,
    trusted: bool,
    flags: Vec<(&'static str, Value)>,
) -> anyhow::Result<Settings> {
    let user = match paths::var("DUNNOCK_CONFIG") {
        Some(path) => Some(path),
        None => paths::config_dir().ok().map(|dir| dir.join("config.toml")),
    };
    let project =
        workspace.map(|dir| (dir.join(".dunnock/config.toml"), trusted || trust::is_trusted(dir)));
    let env = paths::own_vars();
    Settings::load(&Sources { user, project, env, flags })
}

/// Flags as settings, including the data folder.
pub(crate) fn given(
    data: Option<PathBuf>,
    mut more: Vec<(&'static str, Value)>,
) -> Vec<(&'static str, Value)> {
    if let Some(dir) = data {
        more.push(("data-dir", Value::Text(dir.to_string_lossy().into_owned())));
    }
    more
}
