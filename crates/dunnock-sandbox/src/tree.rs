//! Processes below a process, as the kernel lists them.

use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;

/// The children of a process, all of its threads' together.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    let tasks = PathBuf::from(format!("/proc/{}/task", pid.as_raw_nonzero()));
    for task in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(text.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)));
    }
    found
}

/// The children of a process with one thread: one read.
pub(crate) fn children_of_one_thread(pid: Pid) -> std::io::Result<Vec<Pid>> {
    let raw = pid.as_raw_nonzero();
    let text = std::fs::read_to_string(format!("/proc/{raw}/task/{raw}/children"))?;
    Ok(text.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect())
}

/// The most that is looked at in one go: a bomb is killed in several.
const MOST: usize = 20_000;

/// A process and everything below it. Each is stopped before its children are listed: one that is stopped makes no other,
/// and buries none whose number could then be another's.
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

/// The process and everything below it, as far as they are at most so many. Nothing is stopped for that.
pub(crate) fn below(pid: Pid, most: usize) -> Vec<Pid> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(pid) = all.get(next).copied().filter(|_| all.len() < most) {
        all.extend(children(pid));
        next += 1;
    }
    all
}

/// Bytes of memory on the machine: all of it, and what is free or can be.
pub(crate) fn memory() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    };
    Some((value("MemTotal:")?, value("MemAvailable:")?))
}

/// Bytes of memory that a process holds for itself.
pub(crate) fn resident(pid: Pid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).unwrap_or_default();
    let mut pages = text.split_whitespace().skip(1).map(|n| n.parse::<u64>().unwrap_or(0));
    let (all, shared) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    all.saturating_sub(shared) * rustix::param::page_size() as u64
}

/// Processes and threads on the machine, as the kernel counts them.
pub(crate) fn tasks() -> u64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().nth(3).and_then(|part| part.split_once('/')?.1.parse().ok()).unwrap_or(0)
}

/// Kills all of them.
pub(crate) fn kill(all: &[Pid]) {
    for pid in all {
        let _ = kill_process(*pid, Signal::KILL);
    }
}

/// Whether a variable of that value stands in the environment that a process was started with. `None` if it has no environment
/// at all: by choice, or for the moment in which it becomes another program.
pub(crate) fn has_mark(pid: Pid, mark: &str) -> Option<bool> {
    let bytes = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    (!bytes.is_empty()).then(|| bytes.split(|b| *b == 0).any(|entry| entry == mark.as_bytes()))
}
