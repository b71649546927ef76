//! Runs a program to its end: streams what it puts out, stops it when told to or when its time is over.
//!
//! Invariant: when this returns, every process of the program's group was killed. (A process that left the group is not
//! found here; that takes the reaper of the box.)

use crate::hands::Shell;
use crate::kept::{Kept, trimmed};
use crate::tool::{End, Hand, Said};
use dunnock_proto::Delta;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::mpsc;

/// What is left of the output when the program is gone is waited for this long: somebody else may hold the pipe.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Between asking a program to end and ending it.
const GRACE: Duration = Duration::from_millis(50);

/// Variables that a child may see. No key and no token is among them.
const ENVIRONMENT: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "SHELL",
    "TMPDIR",
    "TEMP",
    "TMP",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_USER_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "RBENV_ROOT",
    "GEM_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "XDG_CACHE_HOME",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "COMSPEC",
    "PATHEXT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
];

/// What is set for every child: no colours, no pagers, no questions.
const SET: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("EDITOR", "true"),
    ("CI", "1"),
];

/// A program with its arguments and its folder.
pub(crate) struct Program {
    words: Vec<String>,
    folder: Option<PathBuf>,
}

impl Program {
    /// A command line for the shell.
    pub(crate) fn line(shell: Shell, line: &str) -> Self {
        let words = shell.words().iter().map(|w| (*w).to_owned()).chain([line.to_owned()]).collect();
        Self { words, folder: None }
    }
    /// A program run directly.
    pub(crate) fn words(words: Vec<String>) -> Self {
        Self { words, folder: None }
    }
    /// In a folder below the root.
    pub(crate) fn within(self, folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..self }
    }
}

/// One piece of output.
struct Chunk {
    stream: &'static str,
    bytes: Vec<u8>,
}

/// Why a program is no longer waited for.
enum Over {
    Exited(std::io::Result<std::process::ExitStatus>),
    TimedOut,
    Halted,
}

pub(crate) async fn run(hand: &Hand, program: Program, most: Duration) -> Said {
    let Some((name, args)) = program.words.split_first() else {
        return Err::<String, _>("the command is empty".to_owned()).into();
    };
    // Found here, so that the child is made by `posix_spawn`: with a name and an environment of its own it would be made
    // by copying this whole process.
    let mut command = Command::new(found(name));
    command.args(args).current_dir(program.folder.as_deref().unwrap_or(hand.root.path())).env_clear();
    let allowed = |name: &str| ENVIRONMENT.contains(&name) || name.starts_with("LC_");
    command.envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(allowed)));
    command.envs(SET.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Err::<String, _>(format!("{name} cannot be started: {error}")).into(),
    };
    let group = Group::of(&child);
    let (send, mut chunks) = mpsc::channel(16);
    if let Some(out) = child.stdout.take() {
        tokio::spawn(read("out", out, send.clone()));
    }
    if let Some(err) = child.stderr.take() {
        tokio::spawn(read("err", err, send.clone()));
    }
    drop(send);
    let mut output = Output { kept: Kept::default(), offset: 0, pending: Default::default(), hand };
    let deadline = tokio::time::sleep(most);
    tokio::pin!(deadline);
    let over = loop {
        tokio::select! {
            biased;
            () = hand.halt.wait() => break Over::Halted,
            () = &mut deadline => break Over::TimedOut,
            Some(chunk) = chunks.recv() => output.take(chunk),
            status = child.wait() => break Over::Exited(status),
        }
    };
    if !matches!(over, Over::Exited(_)) {
        group.end();
        let _ = tokio::time::timeout(GRACE, child.wait()).await;
    }
    group.kill();
    let _ = child.start_kill();
    group.gone().await;
    let last = async {
        while let Some(chunk) = chunks.recv().await {
            output.take(chunk);
        }
    };
    let patience = if matches!(over, Over::Exited(_)) { LAST_WORDS } else { GRACE };
    let _ = tokio::time::timeout(patience, last).await;
    if !matches!(over, Over::Exited(_)) {
        let _ = tokio::time::timeout(GRACE, child.wait()).await;
    }
    said(output.kept, over, most, hand)
}

/// Where a program is, by the path that it will see itself; the name, if it is nowhere or is a path already.
fn found(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let plain = !name.contains(std::path::is_separator) && cfg!(unix);
    let found = plain.then(|| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| is_program(file)));
    found.flatten().unwrap_or_else(|| PathBuf::from(name))
}

fn is_program(file: &std::path::Path) -> bool {
    #[cfg(unix)]
    let runs = |m: &std::fs::Metadata| std::os::unix::fs::PermissionsExt::mode(&m.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = |_: &std::fs::Metadata| true;
    file.is_absolute() && std::fs::metadata(file).is_ok_and(|m| m.is_file() && runs(&m))
}

fn said(kept: Kept, over: Over, most: Duration, hand: &Hand) -> Said {
    let full = kept.text();
    let short = trimmed(&full, hand.limits.output_lines, hand.limits.output_bytes);
    let mut text = short.clone().unwrap_or_else(|| full.clone());
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let (end, exit, last) = match over {
        Over::Exited(Ok(status)) => match status.code() {
            Some(0) if text.is_empty() => (End::Done, Some(0), "(no output)".to_owned()),
            Some(0) => (End::Done, Some(0), String::new()),
            Some(code) => (End::Failed, Some(code), format!("[exit {code}]")),
            None => (End::Failed, None, format!("[ended by {}]", signal(status))),
        },
        Over::Exited(Err(error)) => (End::Failed, None, format!("[its end was not seen: {error}]")),
        Over::TimedOut => (End::Failed, None, format!("[stopped: it took longer than {} s]", most.as_secs())),
        Over::Halted => (End::Cut, None, "[stopped: the person interrupted]".to_owned()),
    };
    text.push_str(&last);
    let text = if last.is_empty() { text.trim_end_matches('\n').to_owned() } else { text };
    Said { end, text, full: short.map(|_| full.into_bytes()), exit }
}

#[cfg(unix)]
fn signal(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal().map_or_else(|| "an unknown cause".into(), |n| format!("signal {n}"))
}
#[cfg(not(unix))]
fn signal(_: std::process::ExitStatus) -> String {
    "an unknown cause".into()
}

async fn read(stream: &'static str, mut from: impl AsyncRead + Unpin, send: mpsc::Sender<Chunk>) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(n) = from.read(&mut buffer).await {
        let bytes = buffer.get(..n).unwrap_or_default().to_vec();
        if n == 0 || send.send(Chunk { stream, bytes }).await.is_err() {
            return;
        }
    }
}

/// What came so far, on its way to the log and to those who watch.
struct Output<'a> {
    kept: Kept,
    offset: u64,
    /// For each stream the beginning of a character whose end has not come yet.
    pending: [Vec<u8>; 2],
    hand: &'a Hand,
}

impl Output<'_> {
    fn take(&mut self, chunk: Chunk) {
        self.kept.push(&chunk.bytes);
        let [out, err] = &mut self.pending;
        let pending = if chunk.stream == "out" { out } else { err };
        let mut bytes = std::mem::take(pending);
        bytes.extend_from_slice(&chunk.bytes);
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            *pending = bytes.split_off(error.valid_up_to());
        }
        let text = String::from_utf8_lossy(&bytes);
        if !text.is_empty() {
            let (call, offset, stream) = (self.hand.call, self.offset, chunk.stream.into());
            self.offset += text.len() as u64;
            (self.hand.live)(Delta::Output { call, offset, stream, text: text.into() });
        }
    }
}

/// Every group that runs now, so that a program that must end at once can end them first.
#[cfg(unix)]
static GROUPS: std::sync::Mutex<Vec<rustix::process::Pid>> = std::sync::Mutex::new(Vec::new());

/// Kills everything that calls of this process started and that still runs in its group.
pub fn kill_all() {
    #[cfg(unix)]
    for group in groups().iter() {
        let _ = rustix::process::kill_process_group(*group, rustix::process::Signal::KILL);
    }
}

#[cfg(unix)]
fn groups() -> std::sync::MutexGuard<'static, Vec<rustix::process::Pid>> {
    GROUPS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The processes of one call.
struct Group(#[cfg(unix)] Option<rustix::process::Pid>);

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        groups().retain(|group| Some(*group) != self.0);
    }
}

impl Group {
    #[cfg(unix)]
    fn of(child: &tokio::process::Child) -> Self {
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        groups().extend(group);
        Self(group)
    }
    #[cfg(not(unix))]
    fn of(_: &tokio::process::Child) -> Self {
        Self()
    }
    #[cfg(unix)]
    fn tell(&self, signal: rustix::process::Signal) {
        if let Some(group) = self.0 {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
    /// Asks all of them to end.
    fn end(&self) {
        #[cfg(unix)]
        self.tell(rustix::process::Signal::TERM);
    }
    /// Waits until none is left: a killed process takes a moment to go. Bounded, because one that nobody buries stays.
    async fn gone(&self) {
        #[cfg(unix)]
        for _ in 0..50 {
            match self.0.map(rustix::process::test_kill_process_group) {
                Some(Ok(())) => tokio::time::sleep(Duration::from_millis(1)).await,
                Some(Err(_)) | None => return,
            }
        }
    }
    /// Ends all of them.
    fn kill(&self) {
        #[cfg(unix)]
        self.tell(rustix::process::Signal::KILL);
    }
}
