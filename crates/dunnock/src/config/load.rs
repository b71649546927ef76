//! Settings from all their sources.

use crate::config::settings::{Settings, Sources, Value};
use crate::config::{paths, servers, trust};
use std::path::{Path, PathBuf};

/// The user's settings file.
pub(crate) fn user_file() -> anyhow::Result<PathBuf> {
    match paths::var("DUNNOCK_CONFIG") {
        Some(path) => Ok(path),
        None => Ok(paths::config_dir()?.join("config.toml")),
    }
}

/// Settings for a workspace, from all sources.
pub(crate) fn settings(
    workspace: Option<&Path>,
    trusted: bool,
    flags: Vec<(&'static str, Value)>,
) -> anyhow::Result<Settings> {
    let user = user_file().ok();
    let trusted = trusted || workspace.is_some_and(trust::is_trusted);
    let project = workspace.map(|dir| (dir.join(".dunnock/config.toml"), trusted));
    let env = paths::own_vars();
    let mut settings = Settings::load(&Sources { user, project, env, flags })?;
    if let Some(folder) = workspace {
        servers::read_project(&mut settings, folder, trusted);
    }
    settings.use_saved_keys(&paths::text_var);
    Ok(settings)
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
