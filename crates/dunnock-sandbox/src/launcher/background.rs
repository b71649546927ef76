//! Processes that continue when the command that started them has ended, and those that continue
//! when the program has ended.
//!
//! In a sandbox with a process namespace, the first process of the sandbox stays as long as anything
//! in it runs. Without one, what a command left running are children of the launcher.

use super::{LauncherProcess, Live, PATIENCE, wait_for};
use crate::tree;
use crate::wire::{Bound, KeepRequest, Program, Tell};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How often kept processes are checked when the program is gone.
const SUPERVISION: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// How long a person's request may take to arrive.
const REQUEST: Duration = Duration::from_millis(500);
/// How long a process may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How many programs of a command are listed.
const MOST_LISTED: usize = 50;

/// What a command left running that has no process namespace.
pub(super) struct LeftoverProcesses {
    live: Live,
    /// Our children that belong to it.
    roots: HashSet<Pid>,
}

/// A process that continues when the program ends.
pub(super) struct Supervision {
    kept: KeepRequest,
    /// Seconds since 1970.
    since: u64,
    /// Our ends of its streams.
    streams: Vec<OwnedFd>,
}

/// The socket on which a person's commands arrive.
pub(super) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A request about kept processes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ControlRequest {
    List,
    /// End the process with this id, and what it started.
    Stop(i32),
}

/// A process that continues when the program that started it has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptProcess {
    /// Its process id, by which it is stopped.
    pub pid: i32,
    /// What is known about it.
    pub kept: KeepRequest,
    /// When it was put in the background, in seconds since 1970.
    pub since: u64,
    /// Whether it runs in a sandbox.
    pub sandboxed: bool,
    /// What runs.
    pub programs: Vec<Program>,
}

impl LauncherProcess {
    /// Whether a child of ours is already accounted for.
    pub(super) fn is_known(&self, pid: Pid) -> bool {
        self.live.contains_key(&pid)
            || self.stubborn.contains(&pid)
            || self.leaving.contains(&pid)
            || self.remaining.iter().any(|left| left.roots.contains(&pid))
    }

    /// Our children that a command has left running and that may continue.
    pub(super) fn roots_left(&mut self, live: &Live) -> HashSet<Pid> {
        if !live.lasting || live.whole || live.ending || live.over.is_some() {
            return HashSet::new();
        }
        self.adopt(false);
        let began = Instant::now();
        loop {
            // Without another running command, a process without a mark is this one's.
            let (own, other, unsure) = self.strays(&live.mark, &HashSet::new());
            if own.is_empty() && unsure && began.elapsed() < super::MOMENT {
                std::thread::sleep(Duration::from_micros(200));
                continue;
            }
            self.doubtful |= other || unsure;
            return own.into_iter().collect();
        }
    }

    /// The command's own process has ended; the rest continues.
    pub(super) fn leave(
        &mut self,
        mut live: Live,
        roots: HashSet<Pid>,
        code: Option<i32>,
        signal: Option<i32>,
    ) {
        let id = live.id;
        // A wait status as the kernel writes it.
        live.exit_status = Some(code.map_or(signal.unwrap_or(0), |code| code << 8));
        self.remaining.push(LeftoverProcesses { live, roots });
        let _ = self.tell(&Tell::Continues { id, code, signal });
    }

    /// Finds out what is still there of what commands left running.
    pub(super) fn check_remaining(&mut self) {
        if self.remaining.is_empty() {
            return;
        }
        // With nothing else running, a process without a mark can only belong to this one.
        self.adopt(self.live.is_empty() && self.remaining.len() == 1);
        while let Some(at) = self.remaining.iter().position(|left| left.roots.is_empty()) {
            let left = self.remaining.remove(at);
            self.ended(&left.live, None, None, None);
        }
        self.close_control();
    }

    /// Processes whose parent has ended become our children. Finds those that commands left
    /// running: `only` says that there is one such command, and that it has all of them.
    fn adopt(&mut self, only: bool) {
        let Ok(children) = tree::children_of_one_thread(self.me) else { return };
        for left in &mut self.remaining {
            left.roots.retain(|pid| children.contains(pid));
        }
        let mut unsure = false;
        for pid in children {
            if self.is_known(pid) {
                continue;
            }
            let marks = |left: &LeftoverProcesses| tree::has_mark(pid, &left.live.mark);
            let owner = match only {
                true => Some(0),
                false => self.remaining.iter().position(|left| marks(left) == Some(true)),
            };
            match owner.and_then(|at| self.remaining.get_mut(at)) {
                Some(left) => drop(left.roots.insert(pid)),
                None => unsure |= self.remaining.iter().any(|left| marks(left).is_none()),
            }
        }
        self.doubtful |= unsure;
    }

    /// Kills what uses more than allowed.
    pub(super) fn measure_remaining(&mut self, tasks: u64, memory: Option<(u64, u64)>) {
        let mut over = Vec::new();
        for (at, left) in self.remaining.iter().enumerate() {
            let (bounds, before) = (left.live.bounds, left.live.before);
            let many = bounds.processes > 0 && tasks > before + bounds.processes;
            let large = bounds.memory > 0
                && memory.is_some_and(|(all, free)| all.saturating_sub(free) > bounds.memory);
            if !(many || large) {
                continue;
            }
            let all: Vec<Pid> =
                left.roots.iter().flat_map(|pid| tree::below(*pid, super::TOO_MANY)).collect();
            if many && all.len() as u64 > bounds.processes {
                over.push((at, Bound::Processes));
            } else if large && tree::used(&all) > bounds.memory {
                over.push((at, Bound::Memory));
            }
        }
        for (at, bound) in over {
            if let Some(left) = self.remaining.get_mut(at) {
                left.live.over = Some(bound);
                kill_all(&left.roots);
            }
        }
    }

    /// Asks a command to end.
    pub(super) fn ask_to_end(&mut self, id: u64) {
        if let Some((pid, live)) = self.live.iter_mut().find(|(_, live)| live.id == id) {
            live.ending = true;
            let _ = rustix::process::kill_process_group(*pid, Signal::TERM);
            // Daemons have left the process group. The first process of a sandbox is ours.
            for below in tree::below(*pid, super::TOO_MANY).into_iter().filter(|one| one != pid) {
                let _ = rustix::process::kill_process(below, Signal::TERM);
            }
        } else if let Some(left) = self.remaining.iter_mut().find(|left| left.live.id == id) {
            left.live.ending = true;
            for pid in left.roots.iter().flat_map(|pid| tree::below(*pid, super::TOO_MANY)) {
                let _ = rustix::process::kill_process(pid, Signal::TERM);
            }
        }
    }

    /// Kills a command and everything it started.
    pub(super) fn kill_command(&mut self, id: u64) {
        if let Some((pid, live)) = self.live.iter_mut().find(|(_, live)| live.id == id) {
            live.ending = true;
            let pid = *pid;
            self.end(pid);
        } else if let Some(left) = self.remaining.iter_mut().find(|left| left.live.id == id) {
            left.live.ending = true;
            kill_all(&left.roots);
        }
    }

    /// A command keeps running, until it is stopped or the program ends; or longer, if it is kept.
    pub(super) fn put_in_background(
        &mut self,
        id: u64,
        kept: Option<KeepRequest>,
        streams: Vec<OwnedFd>,
    ) {
        let Some(kept) = kept else { return };
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let since = since.unwrap_or_default().as_secs();
        if self.control.is_none() {
            self.control = self.open_control(&kept.folder);
        }
        // What nobody could list and stop ends with the session.
        if self.control.is_some()
            && let Some(live) = self.command_mut(id)
        {
            live.supervised = Some(Supervision { kept, since, streams });
        }
    }

    fn command_mut(&mut self, id: u64) -> Option<&mut Live> {
        let live = self.live.values_mut();
        live.chain(self.remaining.iter_mut().map(|left| &mut left.live)).find(|live| live.id == id)
    }

    /// The running programs of a command.
    pub(super) fn programs(&self, id: u64) -> Vec<Program> {
        match self.live.iter().find(|(_, live)| live.id == id) {
            // The first process of a sandbox is ours.
            Some((pid, live)) => {
                tree::programs(tree::below(*pid, MOST_LISTED), live.whole.then_some(*pid))
            }
            None => {
                let left = self.remaining.iter().find(|left| left.live.id == id);
                let roots = left.map(|left| left.roots.iter()).into_iter().flatten();
                tree::programs(roots.flat_map(|pid| tree::below(*pid, MOST_LISTED)).collect(), None)
            }
        }
    }

    fn open_control(&self, folder: &Path) -> Option<ControlSocket> {
        let path = folder.join(format!("{}.sock", self.name));
        let unready = format!("{}.new", self.name);
        // The path of a socket may have 107 bytes; that of a folder may be longer.
        std::env::set_current_dir(folder).ok()?;
        let listener = UnixListener::bind(&unready).ok();
        let _ = std::env::set_current_dir("/");
        let listener = listener?;
        let control = ControlSocket { listener, path };
        control.listener.set_nonblocking(true).ok()?;
        // Whoever finds it can connect: otherwise it would be taken for that of a dead launcher.
        std::fs::rename(folder.join(unready), &control.path).ok()?;
        Some(control)
    }

    fn close_control(&mut self) {
        if self.kept().next().is_none() {
            self.control = None;
        }
    }

    fn kept(&self) -> impl Iterator<Item = (Pid, &Live, &Supervision)> {
        let live = self.live.iter().map(|(pid, live)| (*pid, live));
        let left = self.remaining.iter();
        let left = left.filter_map(|left| {
            Some((*left.roots.iter().min_by_key(|pid| pid.as_raw_nonzero())?, &left.live))
        });
        live.chain(left).filter_map(|(pid, live)| Some((pid, live, live.supervised.as_ref()?)))
    }

    /// Our children that are kept when the program ends.
    pub(super) fn kept_among(&self, children: &[Pid]) -> HashSet<Pid> {
        let mut kept: HashSet<Pid> = HashSet::new();
        let mut has_roots = false;
        for (pid, live) in &self.live {
            if live.supervised.is_some() {
                has_roots |= !live.whole;
                kept.insert(*pid);
            }
        }
        for left in self.remaining.iter().filter(|left| left.live.supervised.is_some()) {
            has_roots = true;
            kept.extend(&left.roots);
        }
        // A process without a mark may belong to a kept one. Those of commands that are not kept
        // have their marks or are known.
        if has_roots {
            let others = self.remaining.iter().map(|left| &left.live).chain(self.live.values());
            let others: Vec<&Live> = others.filter(|live| live.supervised.is_none()).collect();
            kept.extend(children.iter().copied().filter(|pid| {
                !self.is_known(*pid)
                    && others.iter().all(|live| tree::has_mark(*pid, &live.mark) != Some(true))
            }));
        }
        kept
    }

    /// Stays until no kept process is left. The program is gone.
    pub(super) fn supervise(&mut self) {
        if self.kept().next().is_none() {
            return;
        }
        // What is not kept is dead. The program may wait for that.
        self.live.retain(|_, live| live.supervised.is_some());
        self.remaining.retain(|left| left.live.supervised.is_some());
        let _ = rustix::net::shutdown(self.socket.as_fd(), rustix::net::Shutdown::Both);
        // Locks say that a program uses something; none does.
        self.held.clear();
        self.nets.borrow_mut().clear();
        self.plans.borrow_mut().clear();
        while self.kept().next().is_some() {
            self.wait_for_streams();
            self.look();
        }
    }

    /// Waits for a moment, and discards what kept processes write: nobody reads it any more.
    fn wait_for_streams(&mut self) {
        let streams: Vec<&OwnedFd> =
            self.kept().flat_map(|(_, _, supervised)| &supervised.streams).collect();
        let control = self.control.as_ref().map(|control| control.listener.as_fd());
        let mut waits: Vec<PollFd<'_>> =
            streams.iter().map(|fd| PollFd::new(*fd, PollFlags::IN)).collect();
        waits.extend(control.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        if poll(&mut waits, Some(&SUPERVISION)).is_err() {
            return;
        }
        let mut closed = Vec::new();
        for (fd, wait) in streams.iter().zip(&waits) {
            let mut buffer = [0; 16 << 10];
            if wait.revents().contains(PollFlags::IN) {
                let _ = rustix::io::read(*fd, &mut buffer);
            } else if !wait.revents().is_empty() {
                closed.push(std::os::fd::AsRawFd::as_raw_fd(*fd));
            }
        }
        if !closed.is_empty() {
            let all = self.live.values_mut();
            let all = all.chain(self.remaining.iter_mut().map(|left| &mut left.live));
            for supervised in all.filter_map(|live| live.supervised.as_mut()) {
                supervised
                    .streams
                    .retain(|fd| !closed.contains(&std::os::fd::AsRawFd::as_raw_fd(fd)));
            }
        }
    }

    /// Answers a person's request about kept processes.
    pub(super) fn answer_requests(&mut self) {
        self.close_control();
        let Some(Ok((stream, _))) = self.control.as_ref().map(|control| control.listener.accept())
        else {
            return;
        };
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_read_timeout(Some(REQUEST));
        let _ = stream.set_write_timeout(Some(REQUEST));
        let mut line = String::new();
        let _ = BufReader::new((&stream).take(1_000)).read_line(&mut line);
        match serde_json::from_str(&line) {
            Ok(ControlRequest::List) => self.answer_with_list(stream),
            Ok(ControlRequest::Stop(pid)) => {
                self.stop_kept(pid);
                self.answer_with_list(stream);
            }
            Err(_) => {}
        }
    }

    fn answer_with_list(&self, mut stream: UnixStream) {
        let all: Vec<KeptProcess> = self
            .kept()
            .map(|(pid, live, supervised)| KeptProcess {
                pid: pid.as_raw_nonzero().get(),
                kept: supervised.kept.clone(),
                since: supervised.since,
                sandboxed: live.whole,
                programs: self.programs(live.id),
            })
            .collect();
        let _ = serde_json::to_writer(&stream, &all);
        let _ = stream.write_all(b"\n");
    }

    /// Ends a kept process, by its process id.
    fn stop_kept(&mut self, pid: i32) {
        let is = |found: &Pid| found.as_raw_nonzero().get() == pid;
        let Some(id) = self.kept().find(|(pid, ..)| is(pid)).map(|(_, live, _)| live.id) else {
            return;
        };
        self.ask_to_end(id);
        let began = Instant::now();
        while began.elapsed() < GRACE + PATIENCE && self.command_mut(id).is_some() {
            if began.elapsed() > GRACE {
                self.kill_command(id);
            }
            std::thread::sleep(Duration::from_millis(5));
            self.hear();
            self.bury();
            self.check_remaining();
        }
    }
}

/// Kills processes and everything below them.
fn kill_all(roots: &HashSet<Pid>) {
    let all: Vec<Pid> = roots.iter().flat_map(|pid| tree::whole(*pid)).collect();
    tree::kill(&all);
    for pid in roots {
        wait_for(*pid, Duration::from_millis(50));
    }
}

/// The processes that continue although the programs that started them have ended. `folder` is
/// where their launchers are found.
///
/// # Errors
/// If one of them does not answer.
pub fn kept_processes(folder: &Path) -> io::Result<Vec<KeptProcess>> {
    let mut all = Vec::new();
    for name in sockets(folder) {
        all.extend(ask_at(folder, &name, &ControlRequest::List)?);
    }
    Ok(all)
}

/// Ends a kept process, by its process id, and everything it started. False if there is none.
///
/// # Errors
/// If its launcher does not answer, or could not end it.
pub fn stop_kept_process(folder: &Path, pid: i32) -> io::Result<bool> {
    let has = |all: Vec<KeptProcess>| all.iter().any(|process| process.pid == pid);
    for name in sockets(folder) {
        if has(ask_at(folder, &name, &ControlRequest::List)?) {
            return match has(ask_at(folder, &name, &ControlRequest::Stop(pid))?) {
                true => Err(io::Error::other("it does not end")),
                false => Ok(true),
            };
        }
    }
    Ok(false)
}

/// The sockets of launchers that keep something.
fn sockets(folder: &Path) -> Vec<std::ffi::OsString> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = names
        .map(|entry| entry.file_name())
        .filter(|name| name.to_str().is_some_and(|name| name.ends_with(".sock")))
        .collect();
    names.sort();
    names
}

fn ask_at(
    folder: &Path,
    name: &std::ffi::OsStr,
    request: &ControlRequest,
) -> io::Result<Vec<KeptProcess>> {
    let dir = std::fs::File::open(folder)?;
    // The path of a socket may have 107 bytes; this one is short.
    let fd = std::os::fd::AsRawFd::as_raw_fd(&dir);
    let short = PathBuf::from(format!("/proc/self/fd/{fd}")).join(name);
    let mut stream = match UnixStream::connect(short) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // Its launcher was killed, and the processes with it.
            let _ = std::fs::remove_file(folder.join(name));
            return Ok(Vec::new());
        }
        other => other?,
    };
    stream.set_read_timeout(Some(GRACE + PATIENCE + REQUEST))?;
    serde_json::to_writer(&stream, request)?;
    stream.write_all(b"\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
