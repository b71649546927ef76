//! Starts the person's own programs: the browser, the editor, their shell, the clipboard's.
//!
//! Invariant: none of them gets a key, and none is found in the workspace or through a relative
//! entry of `PATH`, where a command of the model could have put a program of the same name.

use crate::config::paths;
use crate::config::settings::Settings;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A program that fails does so within this time; one that still runs has opened.
const OPENS_WITHIN: Duration = Duration::from_millis(500);

/// How the person's own programs are found and started.
#[derive(Debug, Clone)]
pub(crate) struct OwnPrograms {
    /// Variables that they do not get.
    secret: Vec<OsString>,
    /// The folders in which they are found.
    folders: Vec<PathBuf>,
}

impl OwnPrograms {
    /// For somebody who works in this folder.
    pub(crate) fn new(settings: &Settings, workspace: &Path) -> Self {
        Self::with(&settings.key_variables(), workspace)
    }

    /// Without the variables of these names.
    pub(crate) fn with(names: &[String], workspace: &Path) -> Self {
        let path = paths::var("PATH").unwrap_or_default();
        // Neither by its name nor by where it leads.
        let inside = [Some(workspace.to_path_buf()), workspace.canonicalize().ok()];
        let inside = inside.map(|folder| folder.filter(|folder| folder.is_absolute()));
        let is_inside = |folder: &Path| inside.iter().flatten().any(|top| folder.starts_with(top));
        let is_outside = |folder: &PathBuf| {
            let real = folder.canonicalize();
            folder.is_absolute() && !is_inside(folder) && real.is_ok_and(|real| !is_inside(&real))
        };
        Self {
            secret: paths::secret_variables(names),
            folders: std::env::split_paths(&path).filter(is_outside).collect(),
        }
    }

    /// A command that runs this program: an absolute path, or a name in `PATH`.
    ///
    /// # Errors
    /// If there is no such program.
    pub(crate) fn command(&self, program: &str) -> io::Result<Command> {
        let given = Path::new(program);
        let found = match given.components().count() {
            1 => self.folders.iter().find_map(|folder| executable(&folder.join(program))),
            _ => given.is_absolute().then(|| given.to_path_buf()),
        };
        let found = found.ok_or_else(|| {
            let what = "it is not in PATH; folders of the workspace do not count";
            io::Error::new(io::ErrorKind::NotFound, what)
        })?;
        let mut command = Command::new(found);
        if let Ok(path) = std::env::join_paths(&self.folders) {
            command.env("PATH", path);
        }
        for name in &self.secret {
            command.env_remove(name);
        }
        Ok(command)
    }

    /// Opens an address in the browser; false if that fails.
    pub(crate) fn browse(&self, address: &str) -> bool {
        let chosen = paths::text_var("BROWSER").unwrap_or_default();
        let chosen = chosen.split(':').map(|line| line.split_whitespace().collect::<Vec<_>>());
        chosen
            .chain(BROWSERS.iter().map(|words| words.to_vec()))
            .any(|words| self.opens(&words, address).unwrap_or(false))
    }

    fn opens(&self, words: &[&str], address: &str) -> io::Result<bool> {
        let Some((program, rest)) = words.split_first() else { return Ok(false) };
        let mut command = self.command(program)?;
        command.args(rest.iter().map(|word| word.replace("%s", address)));
        if !rest.iter().any(|word| word.contains("%s")) {
            command.arg(address);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0); // Ctrl-C is for us alone
        let mut child = command.spawn()?;
        let began = Instant::now();
        while began.elapsed() < OPENS_WITHIN {
            if let Some(status) = child.try_wait()? {
                return Ok(status.success());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::spawn(move || child.wait());
        Ok(true)
    }
}

/// Programs that open an address, with their arguments.
#[cfg(target_os = "macos")]
const BROWSERS: &[&[&str]] = &[&["/usr/bin/open"]];
#[cfg(windows)]
const BROWSERS: &[&[&str]] = &[&["rundll32", "url.dll,FileProtocolHandler"]];
#[cfg(not(any(windows, target_os = "macos")))]
const BROWSERS: &[&[&str]] = &[
    &["xdg-open"],
    &["wslview"],
    &["gio", "open"],
    &["kde-open"],
    &["x-www-browser"],
    &["sensible-browser"],
];

/// The file, if it can be executed.
fn executable(path: &Path) -> Option<PathBuf> {
    let path = if cfg!(windows) && path.extension().is_none() {
        path.with_extension("exe")
    } else {
        path.to_path_buf()
    };
    let about = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o111 == 0 {
        return None;
    }
    let _ = about;
    Some(path)
}
