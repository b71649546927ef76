//! Locations of files. Only this module reads the environment for settings and keys.

use crate::config::settings::Settings;
use crate::view::exit::usage;
use anyhow::Context as _;
use dunnock_ports::{Store, StoreError};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An environment variable that is set and not empty.
pub(crate) fn var(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// An environment variable as text.
pub(crate) fn text_var(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The variables that are settings of ours.
pub(crate) fn own_vars() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("DUNNOCK_"))
        .collect()
}

/// Variables whose values must not reach other programs: those of these names, the server's
/// password, and every other variable with the same value.
pub(crate) fn secret_variables(names: &[String]) -> Vec<OsString> {
    let named = names.iter().map(OsString::from).chain(["DUNNOCK_PASSWORD".into()]);
    let mut secret: Vec<OsString> = named.collect();
    let values: Vec<OsString> = secret
        .iter()
        .filter_map(std::env::var_os)
        .filter(|value| !value.to_string_lossy().trim().is_empty())
        .collect();
    let copies = std::env::vars_os().filter(|(_, value)| values.contains(value));
    secret.extend(copies.map(|(name, _)| name));
    secret
}

fn user_folder(xdg: &str, below_home: &str) -> anyhow::Result<PathBuf> {
    if let Some(dir) = var(xdg).filter(|d| d.is_absolute()) {
        return Ok(dir.join("dunnock"));
    }
    if cfg!(windows) {
        let dir =
            var("LOCALAPPDATA").context("LOCALAPPDATA is not set. Set it, or use --data-dir")?;
        return Ok(dir.join("dunnock"));
    }
    let home = var("HOME").context("HOME is not set. Set it, or use --data-dir")?;
    Ok(home.join(below_home).join("dunnock"))
}

/// The user's configuration folder: `$XDG_CONFIG_HOME/dunnock`.
pub(crate) fn config_dir() -> anyhow::Result<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config")
}

/// The terminal app's own state: `$XDG_STATE_HOME/dunnock`.
pub(crate) fn state_dir() -> anyhow::Result<PathBuf> {
    user_folder("XDG_STATE_HOME", ".local/state")
}

/// Where sessions are stored: as configured, or `$XDG_DATA_HOME/dunnock`.
pub(crate) fn data_dir(settings: &Settings) -> anyhow::Result<PathBuf> {
    match &settings.data_dir.value {
        Some(dir) => std::path::absolute(dir)
            .with_context(|| format!("{} is not a valid folder", dir.display())),
        None => user_folder("XDG_DATA_HOME", ".local/share"),
    }
}

/// The folder for sockets: the login session's runtime folder, or a private one whose path is short
/// enough for a socket.
pub(crate) fn runtime_dir(data: &Path) -> PathBuf {
    if let Some(dir) = var("XDG_RUNTIME_DIR").filter(|d| d.is_absolute() && d.is_dir()) {
        return dir.join("dunnock");
    }
    let beside = data.join("run");
    if beside.as_os_str().len() < 80 {
        return beside;
    }
    #[cfg(unix)]
    let user = rustix::process::getuid().as_raw().to_string();
    #[cfg(not(unix))]
    let user = "user";
    std::env::temp_dir().join(format!("dunnock-{user}"))
}

/// The folder to work in: the given or the current one, with links resolved.
pub(crate) fn workspace(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let dir = match given {
        Some(dir) => dir.to_path_buf(),
        None => std::env::current_dir()
            .context("the current folder cannot be read. Change to another one, or use --cd DIR")?,
    };
    let Ok(real) = dir.canonicalize() else {
        return Err(usage(format!(
            "{} does not exist or cannot be read. Give an existing folder with --cd DIR",
            dir.display()
        )));
    };
    if !real.is_dir() {
        return Err(usage(format!(
            "{} is not a folder. Give a folder with --cd DIR",
            dir.display()
        )));
    }
    if real.parent().is_none() {
        return Err(usage(format!(
            "{} is the root folder, which cannot be a workspace. Change to a project folder, or \
             use --cd DIR",
            dir.display()
        )));
    }
    Ok(real)
}

/// Refuses a workspace that contains our own settings or sessions, or is in the settings folder: a
/// tool could change what is allowed, or read saved keys.
pub(crate) fn keeps_its_own(workspace: &Path, settings: &Settings) -> anyhow::Result<()> {
    let config = config_dir().ok().map(|dir| dir.canonicalize().unwrap_or(dir));
    let data = data_dir(settings).ok().map(|dir| dir.canonicalize().unwrap_or(dir));
    let ours = workspace.join(".dunnock"); // a data folder there is intended, and tools cannot access it
    let inside = |dir: &PathBuf| dir.starts_with(workspace) && !dir.starts_with(&ours);
    if config.iter().any(|dir| workspace.starts_with(dir)) {
        return Err(usage(format!(
            "{} is in the folder of your Dunnock settings, so it cannot be a workspace. Change to \
             a project folder, or use --cd DIR",
            workspace.display()
        )));
    }
    if config.iter().chain(&data).any(inside) {
        return Err(usage(format!(
            "{} contains your Dunnock settings or sessions, so it cannot be a workspace. Change \
             to a project folder, or use --cd DIR",
            workspace.display()
        )));
    }
    Ok(())
}

/// Where launchers are found whose processes continue although their session has ended.
pub(crate) fn kept_processes(data: &Path) -> PathBuf {
    data.join("processes")
}

/// Files that this run writes itself: sessions, the answer, and the targets of standard output and
/// error.
pub(crate) fn own_files(data: &Path, output: Option<&Path>) -> Vec<PathBuf> {
    let mut files = vec![data.canonicalize().unwrap_or_else(|_| data.to_path_buf())];
    files.extend(output.and_then(|path| std::path::absolute(path).ok()));
    #[cfg(target_os = "linux")]
    for fd in ["/proc/self/fd/1", "/proc/self/fd/2"] {
        files.extend(std::fs::read_link(fd).ok().filter(|path| path.is_file()));
    }
    files
}

/// An open store.
pub(crate) struct OpenedStore {
    pub(crate) store: Arc<dyn Store>,
    /// The database was damaged and has just been rebuilt.
    pub(crate) rebuilt: bool,
}

/// Opens the store, and reports it if the store had to be rebuilt.
pub(crate) async fn open(dir: &Path) -> anyhow::Result<OpenedStore> {
    let opened = dunnock_compose::open_store(dir).await.map_err(|error| match error {
        StoreError::Full(_) => {
            anyhow::anyhow!(
                "sessions in {} cannot be opened: the disk is full. Free some space and try again",
                dir.display()
            )
        }
        other => anyhow::Error::from(other)
            .context(format!("sessions in {} cannot be opened", dir.display())),
    })?;
    if let Some(salvaged) = &opened.salvaged {
        crate::view::output::note(&format!(
            "the session database was damaged ({}) and was rebuilt: {} complete, {} \
             partial. The damaged database is in {}",
            salvaged.why,
            dunnock_proto::count(salvaged.whole, "session"),
            salvaged.partly,
            salvaged.kept_in.display()
        ));
    }
    Ok(OpenedStore { store: opened.store, rebuilt: opened.salvaged.is_some() })
}

/// A path with `~` for the home folder, for people.
pub(crate) fn short(path: &Path) -> String {
    let home = text_var("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    match home.and_then(|home| path.strip_prefix(home).map(Path::to_path_buf).ok()) {
        Some(below) if below.as_os_str().is_empty() => "~".into(),
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}
