//! Which process holds the lock on a file.
//!
//! The kernel lists who *took* a lock. A process can pass a lock on and die: then the list names the
//! dead one. So a process that takes a lock to pass it on writes its name into the file, and adds
//! every process that gets it.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// A process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// The process; `None` if it is not known.
    pub pid: Option<u32>,
    /// Its name; empty if it could not be looked at.
    pub name: String,
    /// What it does.
    pub state: HolderState,
}

/// What a process that holds a lock does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderState {
    /// It runs.
    Running,
    /// It is stopped (Ctrl-Z, `kill -STOP`, a debugger).
    Stopped,
    /// It could not be looked at. It may have ended and left the lock to another process.
    Unknown,
}

impl LockHolder {
    /// A process that is said to hold a lock, but that could not be looked at.
    #[must_use]
    pub fn unknown(pid: Option<u32>) -> Self {
        Self { pid, name: String::new(), state: HolderState::Unknown }
    }

    /// Whether it is stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.state == HolderState::Stopped
    }

    /// What the person can do about it.
    #[must_use]
    pub fn advice(&self) -> String {
        match (self.state, self.pid) {
            (HolderState::Stopped, Some(pid)) => {
                format!("continue it (fg, or kill -CONT {pid}) or end it (kill -9 {pid})")
            }
            (HolderState::Running, Some(pid)) => format!("wait for it, or end it (kill {pid})"),
            (HolderState::Unknown, _) | (_, None) => "end it, and try again".into(),
        }
    }
}

/// "process 12 (dunnock)", "process 12 (dunnock, stopped)".
impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pid, self.state) {
            (Some(pid), HolderState::Running) => write!(f, "process {pid} ({})", self.name),
            (Some(pid), HolderState::Stopped) => {
                write!(f, "process {pid} ({}, stopped)", self.name)
            }
            (Some(pid), HolderState::Unknown) => {
                write!(f, "process {pid}, or a process that it started,")
            }
            (None, _) => f.write_str("another process"),
        }
    }
}

/// Writes into a locked file that this process holds the lock, and nobody else.
///
/// # Errors
/// If it cannot be written.
pub fn record_lock(lock: &File) -> io::Result<()> {
    lock.set_len(0)?;
    let name = status(std::process::id()).map_or_else(|| "dunnock".to_owned(), |s| s.name);
    add_holder(lock, std::process::id(), &name)
}

/// Adds a process that gets the lock, too.
///
/// # Errors
/// If it cannot be written.
pub fn add_holder(mut lock: &File, pid: u32, name: &str) -> io::Result<()> {
    let started = status(pid).map_or(0, |status| status.started);
    lock.write_all(format!("{pid} {started} {name}\n").as_bytes())
}

/// The process that holds the lock on a file, if one does and can be found.
#[must_use]
pub fn lock_holder(path: &Path) -> Option<LockHolder> {
    let recorded = recorded(path);
    let taker = taker(path);
    // A number that was used again is another process.
    let reused = |pid: u32, now: &Status| {
        recorded.iter().any(|(known, started, _)| *known == pid && *started != now.started)
    };
    let living = |pid: u32, name: Option<&str>| {
        let now = status(pid).filter(|now| !now.gone && !reused(pid, now))?;
        let state = if now.stopped { HolderState::Stopped } else { HolderState::Running };
        let name = name.map_or(now.name, str::to_owned);
        Some(LockHolder { pid: Some(pid), name, state })
    };
    taker.and_then(|pid| living(pid, None)).or_else(|| {
        // Without a list of the kernel's, nothing says that a recorded process still holds it.
        taker?;
        recorded.iter().find_map(|(pid, _, name)| living(*pid, Some(name)))
    })
}

/// What is written in a locked file: processes, when they started, and their names.
fn recorded(path: &Path) -> Vec<(u32, u64, String)> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (pid, started) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((pid, started, words.next()?.to_owned()))
    };
    text.lines().take(100).filter_map(line).collect()
}

/// The process that took the lock on a file, by the kernel's list. It may be dead.
#[cfg(target_os = "linux")]
fn taker(path: &Path) -> Option<u32> {
    use std::os::linux::fs::MetadataExt as _;
    let file = std::fs::metadata(path).ok()?;
    let (device, inode) = (file.st_dev(), file.st_ino());
    let major = (device >> 8) & 0xfff | (device >> 32) & !0xfff;
    let minor = device & 0xff | (device >> 12) & !0xff;
    let exact = format!("{major:02x}:{minor:02x}:{inode}");
    let list = std::fs::read_to_string("/proc/locks").ok()?;
    // `1: FLOCK  ADVISORY  WRITE 12 08:01:345 0 EOF`; waiting ones have an arrow.
    let locks: Vec<(&str, &str)> = list
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [_, "FLOCK", _, _, pid, place, ..] => Some((*pid, *place)),
                _ => None,
            }
        })
        .collect();
    // Some file systems report another device to programs than the kernel uses.
    let same_inode = |place: &str| place.rsplit(':').next() == Some(&inode.to_string());
    let found = locks.iter().find(|(_, place)| *place == exact);
    let found = found.or_else(|| locks.iter().find(|(_, place)| same_inode(place)))?;
    found.0.parse().ok().filter(|pid| *pid != 0)
}

#[cfg(not(target_os = "linux"))]
fn taker(_: &Path) -> Option<u32> {
    None
}

/// A process, as the kernel describes it.
struct Status {
    name: String,
    stopped: bool,
    gone: bool,
    /// When it started: with its number, this tells it from every other process.
    started: u64,
}

fn status(pid: u32) -> Option<Status> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.chars().filter(|c| !c.is_control()).collect();
    let mut words = tail.split_whitespace();
    let state = words.next()?;
    let started = words.nth(18)?.parse().ok()?;
    let (stopped, gone) = (matches!(state, "T" | "t"), matches!(state, "Z" | "X"));
    Some(Status { name, stopped, gone, started })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{HolderState, LockHolder, add_holder, lock_holder, record_lock};
    use std::process::{Command, Stdio};

    #[test]
    fn the_holder_of_a_lock_is_found_whoever_took_it() {
        let path = std::env::temp_dir().join(format!("dunnock-holder-{}", std::process::id()));
        let file = crate::open_append(&path).unwrap();
        assert_eq!(lock_holder(&path), None, "nobody holds it");
        file.lock().unwrap();
        record_lock(&file).unwrap();
        let me = lock_holder(&path).unwrap();
        assert_eq!((me.pid, me.state), (Some(std::process::id()), HolderState::Running));
        drop(file);
        assert_eq!(lock_holder(&path), None, "it was released");
        // A process takes the lock, passes it on and dies.
        let taker = Command::new("flock")
            .args(["--no-fork", "-x"])
            .arg(&path)
            .args(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let dead = taker.id();
        let said = taker.wait_with_output().unwrap();
        let heir: u32 = String::from_utf8(said.stdout).unwrap().trim().parse().unwrap();
        let record = crate::options().append(true).open(&path).unwrap();
        record.set_len(0).unwrap();
        let found_before = lock_holder(&path);
        add_holder(&record, heir, "the heir").unwrap();
        let signal = |word: &str| Command::new("kill").args([word, &heir.to_string()]).status();
        let found = lock_holder(&path);
        let stopped = signal("-STOP").ok().and_then(|_| {
            // A signal takes a moment.
            (0..1_000).find_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                lock_holder(&path).filter(LockHolder::is_stopped)
            })
        });
        signal("-KILL").unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found_before, None, "the dead process {dead} was named");
        let found = found.unwrap();
        assert_eq!((found.pid, found.name.as_str()), (Some(heir), "the heir"));
        let stopped = stopped.unwrap();
        assert_eq!(stopped.to_string(), format!("process {heir} (the heir, stopped)"));
        assert!(stopped.advice().contains(&format!("kill -CONT {heir}")));
    }
}
