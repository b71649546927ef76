//! Process trees, read from `/proc`.

use crate::wire::Program;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashSet;
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

/// Kills all processes that were started with an environment entry that begins like this.
pub(crate) fn kill_marked(begin: &str) {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    for pid in pids {
        let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
        let environment = environment.unwrap_or_default();
        if environment.split(|b| *b == 0).any(|entry| entry.starts_with(begin.as_bytes())) {
            kill(&whole(pid));
        }
    }
}

/// When a process was started, in ticks of the kernel.
fn started(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name can have blanks and brackets.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// Kills a process and everything below it, if it is still the one that was started then.
pub(crate) fn kill_started(pid: i32, when: u64) {
    if started(pid) == Some(when)
        && let Some(pid) = Pid::from_raw(pid)
    {
        kill(&whole(pid));
    }
}

/// Whether the process was started with this `NAME=value` in its environment. `None` if it has no
/// environment at all: by choice, or for a moment during exec.
pub(crate) fn has_mark(pid: Pid, mark: &str) -> Option<bool> {
    let bytes =
        std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    (!bytes.is_empty()).then(|| bytes.split(|b| *b == 0).any(|entry| entry == mark.as_bytes()))
}

/// These processes with their names and the ports on which they accept connections, without `own`.
pub(crate) fn programs(all: Vec<Pid>, own: Option<Pid>) -> Vec<Program> {
    let mut found = Vec::new();
    for pid in all.into_iter().filter(|pid| Some(*pid) != own) {
        let raw = pid.as_raw_nonzero().get();
        let Ok(name) = std::fs::read_to_string(format!("/proc/{raw}/comm")) else { continue };
        let name = name.trim().to_owned();
        let Some(started) = started(raw) else { continue };
        found.push(Program { pid: raw, name, ports: ports(raw), started });
    }
    found
}

/// How many ports of a process are listed.
const MOST_PORTS: usize = 20;

/// The TCP ports on which a process accepts connections.
fn ports(pid: i32) -> Vec<u16> {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let sockets: HashSet<String> = links
        .filter_map(|entry| {
            let link = std::fs::read_link(entry.path()).ok()?;
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        })
        .collect();
    let mut ports = Vec::new();
    if sockets.is_empty() {
        return ports;
    }
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, local, _, "0A", ..] = words.as_slice() else { continue };
            let is_own = words.get(9).is_some_and(|inode| sockets.contains(*inode));
            let port = local.rsplit(':').next().and_then(|hex| u16::from_str_radix(hex, 16).ok());
            ports.extend(port.filter(|_| is_own));
        }
    }
    ports.sort_unstable();
    ports.dedup();
    ports.truncate(MOST_PORTS);
    ports
}
