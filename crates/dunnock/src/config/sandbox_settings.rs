//! The sandbox as the settings describe it.

#[cfg(target_os = "linux")]
use crate::config::paths;
use crate::config::settings::Settings;
use crate::view::exit::usage;
use dunnock_proto::Isolation;
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
    let listed = |key: &str| {
        settings.list(key).into_iter().map(|path| real(path.into())).collect::<Vec<_>>()
    };
    dunnock_sandbox::Layout {
        readable: listed("sandbox_read"),
        writable: listed("sandbox_write").into_iter().filter(|path| path.is_dir()).collect(),
        denied: {
            let denied = denied(settings).unwrap_or_else(|_| globset::GlobSet::empty());
            Box::new(move |path| denied.is_match(path))
        },
        writes: settings.text("edits") != Some("tools-only"),
        ..dunnock_tools::layout(&data, &own)
    }
}

/// The best level that the settings allow.
pub(crate) fn best(settings: &Settings) -> Isolation {
    match settings.text("sandbox_level") {
        Some("B") => Isolation::B,
        Some("C") => Isolation::C,
        _ => Isolation::A,
    }
}

/// Files that no tool may access.
pub(crate) fn denied(settings: &Settings) -> anyhow::Result<globset::GlobSet> {
    let mut set = globset::GlobSetBuilder::new();
    for text in settings.list("deny_paths") {
        let glob =
            globset::Glob::new(&text).map_err(|error| usage(format!("deny_paths: {error}")))?;
        set.add(glob);
    }
    Ok(set.build()?)
}
