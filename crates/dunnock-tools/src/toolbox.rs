//! Implements the tools port: runs a call and returns how it finished.

use crate::memory::MEMORY;
use crate::process::{self, Program};
use crate::processes::Processes;
use crate::root::Root;
use crate::secrets;
use crate::table;
use crate::tool::{ToolContext, ToolOutput, ToolStatus};
use dunnock_core::ports::{Blob, BoxFuture, CancellationToken, DeltaSink, Log, ToolCall, Tools};
use dunnock_core::{Call, failpoint};
use dunnock_proto::{Finished, Isolation, Loss, Outcome, SessionId, VerifyArgs};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    /// Default timeout of a command.
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
    /// Commands to run after an edit, by file extension; `{path}` is replaced with the file.
    pub checks: BTreeMap<String, String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            shell: Shell::Auto,
            output_lines: 200,
            output_bytes: 10 << 10,
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
}

/// Runs every tool in the table, and the harness's own checks.
pub struct Toolbox {
    limits: Arc<Limits>,
    log: Option<Arc<dyn Log>>,
    processes: Arc<Processes>,
    #[cfg(target_os = "linux")]
    launcher: Arc<dunnock_sandbox::Launcher>,
    #[cfg(target_os = "linux")]
    layout: Option<Arc<dunnock_sandbox::Layout>>,
}

impl Toolbox {
    /// A toolbox with these limits, whose launcher is this program with these arguments.
    #[must_use]
    pub fn new(limits: Limits, launcher: &Path, args: &[&str]) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = (launcher, args);
        Self {
            limits: Arc::new(limits),
            log: None,
            processes: Arc::default(),
            #[cfg(target_os = "linux")]
            launcher: Arc::new(dunnock_sandbox::Launcher::new(launcher.to_path_buf(), args)),
            #[cfg(target_os = "linux")]
            layout: None,
        }
    }

    /// Runs commands in a sandbox, where this machine supports one.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn boxed(self, layout: dunnock_sandbox::Layout) -> Self {
        Self { layout: Some(Arc::new(layout)), ..self }
    }

    /// Finds the strongest sandbox level for a workspace, `best` at most, and why stronger ones
    /// failed.
    #[must_use]
    pub fn probe(&self, workspace: &Path, best: Isolation) -> SandboxSupport {
        #[cfg(target_os = "linux")]
        return crate::sandbox::probe(&self.launcher, self.layout.as_deref(), workspace, best);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (workspace, best);
            let why = vec![(
                Isolation::C,
                format!("there is no sandbox on {} yet", std::env::consts::OS),
            )];
            SandboxSupport { level: Isolation::D, why }
        }
    }

    /// Looks up the outputs of earlier calls in this log.
    #[must_use]
    pub fn reading(self, log: Arc<dyn Log>) -> Self {
        Self { log: Some(log), ..self }
    }

    async fn work(&self, job: &ToolCall, live: DeltaSink, halt: CancellationToken) -> ToolOutput {
        let root = match Root::open(Path::new(job.workspace.as_ref())) {
            Ok(root) => Arc::new(root.keeping_out(self.limits.denied.clone())),
            Err(error) => {
                return Err::<String, _>(format!("the workspace cannot be opened: {error}")).into();
            }
        };
        let context = ToolContext {
            root,
            limits: self.limits.clone(),
            call: job.call.id,
            live,
            halt,
            session: job.session.clone(),
            log: self.log.clone(),
            processes: self.processes.clone(),
            seen: job.seen.clone(),
            level: job.isolation,
            access: job.call.access,
            hidden_folder: job.hidden_folder.as_ref().map(PathBuf::from),
            #[cfg(target_os = "linux")]
            launcher: self.launcher.clone(),
            #[cfg(target_os = "linux")]
            layout: self.layout.clone(),
        };
        let (tool, args) = (job.call.part.tool.as_str(), job.call.args());
        if job.call.harness {
            return match VerifyArgs::parse(args) {
                Ok(check) => {
                    let program = Program::line(self.limits.shell, &check.command);
                    process::run(&context, program, self.limits.verify).await
                }
                Err(error) => Err::<String, _>(error).into(),
            };
        }
        let said = table::run(tool, args, context).await;
        said.unwrap_or_else(|| Err::<String, _>(format!("there is no tool {tool}")).into())
    }
}

impl Tools for Toolbox {
    fn hold(&self, lock: &std::fs::File) -> Option<Box<dyn Send + Sync>> {
        // Before anything reads the files, undo edits that a dead process left half done.
        crate::root::mend(&self.limits.journals);
        #[cfg(target_os = "linux")]
        return self.launcher.hold(lock).ok().map(|held| Box::new(held) as Box<dyn Send + Sync>);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = lock;
            None
        }
    }

    fn preview<'a>(&'a self, workspace: &'a str, call: &'a Call) -> BoxFuture<'a, Vec<Loss>> {
        let (root, call) = (std::path::PathBuf::from(workspace), call.clone());
        Box::pin(async move {
            let look = tokio::task::spawn_blocking(move || crate::preview::of(&root, &call));
            look.await.unwrap_or_default()
        })
    }

    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.processes.close(session).await;
            #[cfg(target_os = "linux")]
            self.launcher.leave(&session.to_string());
        })
    }

    fn remember<'a>(
        &'a self,
        workspace: &'a str,
        name: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<(), String>> {
        let text = secrets::without(text.to_owned());
        Box::pin(async move {
            let path = Path::new(MEMORY).join(name);
            let root = Root::open(Path::new(workspace)).map_err(|error| error.to_string())?;
            // The agent's own notes do not belong in the repository.
            let ignore = Path::new(MEMORY).join(".gitignore");
            if !Path::new(workspace).join(&ignore).exists() {
                root.put_own(&ignore, b"*\n").map_err(|error| error.to_string())?;
            }
            root.put_own(&path, text.as_bytes()).map_err(|error| error.to_string())
        })
    }

    fn stop_all(&self) {
        #[cfg(target_os = "linux")]
        self.launcher.stop();
    }

    fn run(
        &self,
        job: ToolCall,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> BoxFuture<'_, (Finished, Vec<Blob>)> {
        Box::pin(async move {
            failpoint::hit("tool.before", "");
            let began = Instant::now();
            let said = self.work(&job, live, halt).await;
            failpoint::hit("tool.after", "");
            let hash = |blob: &Option<Blob>| blob.as_ref().map(|blob| blob.hash);
            let (full, streams, diff) = (hash(&said.full), hash(&said.streams), hash(&said.diff));
            let blobs: Vec<Blob> =
                said.full.into_iter().chain(said.streams).chain(said.diff).collect();
            let outcome = match said.end {
                ToolStatus::Done => Outcome::Done,
                ToolStatus::Failed => Outcome::Failed,
                ToolStatus::Cut => Outcome::Interrupted,
            };
            // A call approved to run outside the sandbox ran without one, whatever the session uses.
            let unsandboxed = job.call.access.unsandboxed;
            let isolation = if unsandboxed { Isolation::D } else { job.isolation };
            let finished = Finished {
                full,
                streams,
                exit: said.exit,
                seen_files: said.seen_files,
                diff,
                ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                isolation: Some(isolation),
                ..Finished::plain(job.call.id, outcome, &secrets::without(said.text))
            };
            (finished, blobs)
        })
    }
}
