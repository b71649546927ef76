//! The sandbox as the settings describe it.

#[cfg(target_os = "linux")]
use crate::config::keys_table::Edits;
use crate::config::paths;
use crate::config::settings::Settings;
use crate::view::exit::usage;
use std::path::{Path, PathBuf};

/// The paths of this machine for the sandbox, with the user's settings applied.
#[cfg(target_os = "linux")]
pub(crate) fn layout(settings: &Settings, data: &Path) -> dunnock_sandbox::Layout {
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let data = real(data.to_path_buf());
    let own = [
        Some(data.clone()),
        paths::config_dir().ok().map(real),
        paths::state_dir().ok().map(real),
        Some(real(paths::runtime_dir(&data))),
    ];
    let own: Vec<PathBuf> = own.into_iter().flatten().collect();
    let granted = |given: &[PathBuf]| -> Vec<PathBuf> {
        given.iter().filter_map(|path| resolved(path).ok()).collect()
    };
    let writable = granted(&settings.sandbox_write.value);
    dunnock_sandbox::Layout {
        readable: granted(&settings.sandbox_read.value),
        writable: writable.into_iter().filter(|path| path.is_dir()).collect(),
        denied: {
            let denied = denied(settings).unwrap_or_else(|_| globset::GlobSet::empty());
            Box::new(move |path| denied.is_match(path))
        },
        writes: settings.edits.value == Edits::Any,
        ..dunnock_tools::layout(&data, &own)
    }
}

/// Checks the folders that every command may read or write: one that does not exist grants nothing,
/// and nobody would notice.
///
/// # Errors
/// Names the setting and what is wrong.
pub(crate) fn check_folders(settings: &Settings) -> anyhow::Result<()> {
    let all =
        [("sandbox_read", &settings.sandbox_read), ("sandbox_write", &settings.sandbox_write)];
    let all = all.into_iter().map(|(name, setting)| (name.to_owned(), setting.value.as_slice()));
    let servers = settings.servers.iter();
    let servers = servers.map(|one| (format!("mcp.{}.read", one.name), one.access.read.as_slice()));
    for (name, paths) in all.chain(servers) {
        for path in paths {
            resolved(path).map_err(|why| {
                usage(format!("{name}: {} {why}. Correct or remove it", path.display()))
            })?;
        }
    }
    Ok(())
}

/// The MCP servers, with the folders that they may read as they are on this machine.
#[cfg(target_os = "linux")]
pub(crate) fn servers(settings: &Settings) -> Vec<dunnock_mcp::ServerConfig> {
    let mut servers = settings.servers.clone();
    for server in &mut servers {
        server.access.read =
            server.access.read.iter().filter_map(|path| resolved(path).ok()).collect();
    }
    servers
}

/// A path of the settings, with the home folder for `~`.
fn resolved(path: &Path) -> Result<PathBuf, &'static str> {
    let home = || paths::text_var("HOME").map(PathBuf::from).ok_or("needs HOME to be set");
    let whole = match path.strip_prefix("~") {
        Ok(below) => home()?.join(below),
        Err(_) => path.to_path_buf(),
    };
    if !whole.is_absolute() {
        return Err("is not an absolute path");
    }
    whole.canonicalize().map_err(|_| "does not exist or cannot be read")
}

/// Files that no tool may access.
pub(crate) fn denied(settings: &Settings) -> anyhow::Result<globset::GlobSet> {
    let mut set = globset::GlobSetBuilder::new();
    for text in &settings.deny_paths.value {
        let glob =
            globset::Glob::new(text).map_err(|error| usage(format!("deny_paths: {error}")))?;
        set.add(glob);
    }
    Ok(set.build()?)
}
