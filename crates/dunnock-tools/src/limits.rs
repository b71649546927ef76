//! What tools may use and return, and how well commands can be sandboxed.

use dunnock_proto::Isolation;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What runs a command line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shell {
    /// bash; PowerShell on Windows.
    #[default]
    Auto,
    /// bash.
    Bash,
    /// PowerShell 7.
    Pwsh,
    /// Windows PowerShell.
    Powershell,
}

impl Shell {
    /// The shell's program name, as given to the model.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Auto if cfg!(windows) => "powershell",
            Self::Auto
                if Path::new("/bin/bash").exists() || Path::new("/usr/bin/bash").exists() =>
            {
                "bash"
            }
            Self::Auto if cfg!(unix) => "sh",
            Self::Auto | Self::Bash => "bash",
            Self::Pwsh => "pwsh",
            Self::Powershell => "powershell",
        }
    }
    /// The program and arguments before the command line.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self.program() {
            "pwsh" => &["pwsh", "-NoProfile", "-NonInteractive", "-Command"],
            "powershell" => &["powershell", "-NoProfile", "-NonInteractive", "-Command"],
            "sh" => &["sh", "-c"],
            _ => &["bash", "-c"],
        }
    }
}

/// Limits on what tools may use and return.
#[derive(Debug, Clone)]
pub struct Limits {
    /// What runs a command line.
    pub shell: Shell,
    /// Maximum lines of a command's output shown to the model.
    pub output_lines: usize,
    /// Maximum bytes of it.
    pub output_bytes: usize,
    /// Maximum files and folders in one listing.
    pub listed: usize,
    /// Maximum matches returned by a search.
    pub matches: usize,
    /// Maximum bytes of them, including context lines.
    pub found_bytes: usize,
    /// How long a call waits for a command that has no timeout of its own; then the command
    /// continues in the background.
    pub command: Duration,
    /// Longest timeout a command may ask for.
    pub command_most: Duration,
    /// Timeout of a verification command.
    pub verify: Duration,
    /// Maximum processes of one command at once; 0 for no limit.
    pub processes: u64,
    /// Maximum memory of a command's processes together, in bytes; 0 for no limit.
    pub memory: u64,
    /// Files in the workspace that no tool may access.
    pub denied: globset::GlobSet,
    /// Folder for output too large to hold in memory.
    pub spool: PathBuf,
    /// Folder for the journals of edits in progress.
    pub journals: PathBuf,
    /// Folder of the checkpoints, where git's history is recorded before a command runs; `None` if
    /// a loss is only reported.
    pub history: Option<PathBuf>,
    /// Processes in the background continue when the session has ended.
    pub keeps_processes: bool,
    /// Where such processes are found.
    pub kept_folder: Option<PathBuf>,
    /// Variables that commands without a sandbox do not get: those that hold keys of providers.
    pub withheld_variables: Vec<OsString>,
    /// Commands to run after an edit, by file extension; `{path}` is replaced with the file.
    pub checks: BTreeMap<String, String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            shell: Shell::Auto,
            output_lines: 400,
            output_bytes: 16 << 10,
            listed: 1_000,
            matches: 200,
            found_bytes: 128 << 10,
            command: Duration::from_secs(120),
            command_most: Duration::from_secs(600),
            verify: Duration::from_secs(600),
            processes: 1_000,
            memory: most_memory(),
            denied: globset::GlobSet::empty(),
            spool: std::env::temp_dir().join("dunnock-output"),
            journals: std::env::temp_dir().join("dunnock-edits"),
            history: None,
            keeps_processes: false,
            kept_folder: None,
            withheld_variables: Vec::new(),
            checks: BTreeMap::new(),
        }
    }
}

/// Three quarters of the machine's memory: a command that used more would starve everything else.
fn most_memory() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let total: u64 = total.map_or(0, |kb: u64| kb << 10);
    total.min(group.unwrap_or(u64::MAX)) / 4 * 3
}

/// How well commands can be sandboxed here.
#[derive(Debug, Clone)]
pub struct SandboxSupport {
    /// The strongest level available.
    pub level: Isolation,
    /// Why each stronger level is unavailable.
    pub why: Vec<(Isolation, String)>,
    /// Why the level could not be found out. Then `level` says nothing, and no command may run.
    pub failed: Option<String>,
}

impl SandboxSupport {
    /// The level is not known.
    #[must_use]
    pub fn failed(why: String) -> Self {
        Self { level: Isolation::D, why: Vec::new(), failed: Some(why) }
    }
}
