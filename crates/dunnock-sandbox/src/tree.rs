//! Process trees, read from `/proc`.

use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;

/// The children of all threads of a process.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    let tasks = PathBuf::from(format!("/proc/{}/task", pid.as_raw_nonzero()));
    for task in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(text.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)));
    }
    found
}

/// The children of a single-threaded process, in one read.
pub(crate) fn children_of_one_thread(pid: Pid) -> std::io::Result<Vec<Pid>> {
    let raw = pid.as_raw_nonzero();
    let text = std::fs::read_to_string(format!("/proc/{raw}/task/{raw}/children"))?;
    Ok(text.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect())
}

/// How many processes one pass looks at; a fork bomb takes several.
const MOST: usize = 20_000;

/// A process and all its descendants. Each is stopped before its children are listed: a stopped
/// process starts no other, and reaps none whose pid could then be reused.
pub(crate) fn whole(pid: Pid) -> Vec<Pid> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        let _ = kill_process(pid, Signal::STOP);
        if all.len() < MOST {
            all.extend(children(pid));
        }
        next += 1;
    }
    all
}

/// The process and its descendants, up to about `most`. Stops none of them.
pub(crate) fn below(pid: Pid, most: usize) -> Vec<Pid> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(pid) = all.get(next).copied().filter(|_| all.len() < most) {
        all.extend(children(pid));
        next += 1;
    }
    all
}

/// Memory of the machine in bytes: total and available.
pub(crate) fn memory() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    };
    Some((value("MemTotal:")?, value("MemAvailable:")?))
}

/// Memory of these processes in bytes. Shared memory counts once, with the process that has most of
/// it; pages of files that are on disk do not count.
pub(crate) fn used(all: &[Pid]) -> u64 {
    let (mut own, mut shared) = (0, 0);
    for pid in all {
        let text = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()))
            .unwrap_or_default();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
            number.map_or(0, |kb: u64| kb << 10)
        };
        own += value("RssAnon:");
        shared = shared.max(value("RssShmem:"));
    }
    own + shared
}

/// Processes and threads on the machine, as the kernel counts them.
pub(crate) fn tasks() -> u64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .nth(3)
        .and_then(|part| part.split_once('/')?.1.parse().ok())
        .unwrap_or(0)
}

pub(crate) fn kill(all: &[Pid]) {
    for pid in all {
        let _ = kill_process(*pid, Signal::KILL);
    }
}

/// Whether the process was started with this `NAME=value` in its environment. `None` if it has no
/// environment at all: by choice, or for a moment during exec.
pub(crate) fn has_mark(pid: Pid, mark: &str) -> Option<bool> {
    let bytes =
        std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    (!bytes.is_empty()).then(|| bytes.split(|b| *b == 0).any(|entry| entry == mark.as_bytes()))
}
