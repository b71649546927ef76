//! The sandbox as the settings describe it.

#[cfg(target_os = "linux")]
use crate::config::keys_table::Edits;
#[cfg(target_os = "linux")]
use crate::config::paths;
use crate::config::settings::Settings;
use crate::view::exit::usage;
#[cfg(target_os = "linux")]
use std::path::PathBuf;

/// The paths of this machine for the sandbox, with the user's settings applied.
#[cfg(target_os = "linux")]
pub(crate) fn layout(settings: &Settings, data: &std::path::Path) -> dunnock_sandbox::Layout {
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let data = real(data.to_path_buf());
    let own = [
        Some(data.clone()),
        paths::config_dir().ok().map(real),
        Some(real(paths::runtime_dir(&data))),
    ];
    let own: Vec<PathBuf> = own.into_iter().flatten().collect();
    dunnock_sandbox::Layout {
        readable: settings.sandbox_read.value.iter().cloned().map(real).collect(),
        writable: settings
            .sandbox_write
            .value
            .iter()
            .cloned()
            .map(real)
            .filter(|path| path.is_dir())
            .collect(),
        denied: {
            let denied = denied(settings).unwrap_or_else(|_| globset::GlobSet::empty());
            Box::new(move |path| denied.is_match(path))
        },
        writes: settings.edits.value == Edits::Any,
        ..dunnock_tools::layout(&data, &own)
    }
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
