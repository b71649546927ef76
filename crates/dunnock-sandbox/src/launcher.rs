//! The launcher: a process with one thread and one socket, its standard input.
//!
//! It adopts what escapes from a command (subreaper). When a command's own process has ended, all that is left of it hangs
//! below the launcher, so one look at the launcher's own children tells whether anything is left.

use crate::tree;
use crate::wire::{Ask, Tell, receive, send};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};
use std::collections::HashMap;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// What marks the children of one command, should they escape while another runs.
const MARK: &str = "DUNNOCK_CALL";
/// How long a process that was killed may take to go.
const PATIENCE: Duration = Duration::from_secs(5);

/// A command that runs.
struct Live {
    id: u64,
    exit: OwnedFd,
}

struct Launcher {
    socket: std::io::Stdin,
    me: Pid,
    /// By the process that was started.
    live: HashMap<Pid, Live>,
    held: HashMap<u64, OwnedFd>,
    /// Escaped from a command while another ran, and not known to be of either.
    doubtful: bool,
}

/// Serves until the other side of standard input is gone; then kills everything.
#[must_use]
pub fn serve() -> ExitCode {
    close_the_rest();
    // Not of the terminal's session: Ctrl-C is the program's to hear.
    let _ = rustix::process::setsid();
    let me = rustix::process::getpid();
    if rustix::process::set_child_subreaper(Some(me)).is_err() {
        return ExitCode::FAILURE;
    }
    let mut launcher =
        Launcher { socket: std::io::stdin(), me, live: HashMap::new(), held: HashMap::new(), doubtful: false };
    let mut buffer = Vec::new();
    while launcher.round(&mut buffer).is_some() {}
    launcher.end_everything();
    ExitCode::SUCCESS
}

impl Launcher {
    /// One round: waits for an order or an end. `None` when there is nobody left to serve.
    fn round(&mut self, buffer: &mut Vec<u8>) -> Option<()> {
        let socket = self.socket.as_fd();
        let mut waits = vec![PollFd::new(&socket, PollFlags::IN)];
        waits.extend(self.live.values().map(|live| PollFd::new(&live.exit, PollFlags::IN)));
        // Something that escaped may end on its own, and must be buried.
        let tick = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
        let woken = poll(&mut waits, (self.doubtful || !self.live.is_empty()).then_some(&tick));
        if woken.is_err_and(|error| error != rustix::io::Errno::INTR) {
            return None;
        }
        let asked = waits.first().is_some_and(|first| !first.revents().is_empty());
        drop(waits);
        self.bury();
        if asked {
            let (ask, fds) = receive::<Ask>(self.socket.as_fd(), buffer).ok()??;
            self.ask(ask, fds)?;
        }
        Some(())
    }

    fn tell(&self, tell: &Tell) -> Option<()> {
        send(self.socket.as_fd(), tell, &[]).ok()
    }

    fn ask(&mut self, ask: Ask, fds: Vec<OwnedFd>) -> Option<()> {
        match ask {
            Ask::Start { id, words, folder, env } => match start(id, &words, &folder, env, fds) {
                Ok((pid, exit)) => drop(self.live.insert(pid, Live { id, exit })),
                Err(error) => self.tell(&Tell::Refused { id, why: error.to_string() })?,
            },
            Ask::End { id } => {
                if let Some(pid) = self.pid(id) {
                    let _ = rustix::process::kill_process_group(pid, Signal::TERM);
                }
            }
            Ask::Kill { id } => {
                if let Some(pid) = self.pid(id) {
                    tree::kill(&tree::whole(pid));
                }
            }
            Ask::Hold { id } => self.held.extend(fds.into_iter().map(|fd| (id, fd))),
            Ask::Release { id } => {
                drop(self.held.remove(&id));
                self.tell(&Tell::Released { id })?;
            }
        }
        Some(())
    }

    fn pid(&self, id: u64) -> Option<Pid> {
        self.live.iter().find(|(_, live)| live.id == id).map(|(pid, _)| *pid)
    }

    /// Buries what is dead. A command whose own process is among it has ended, and takes everything with it.
    fn bury(&mut self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if let Some(live) = self.live.remove(&pid) {
                let strays = self.sweep(live.id);
                let (code, signal) = (status.exit_status(), status.terminating_signal());
                let _ = self.tell(&Tell::Ended { id: live.id, code, signal, strays });
            }
        }
        if self.live.is_empty() && self.doubtful {
            self.doubtful = false;
            self.sweep(u64::MAX);
        }
    }

    /// Kills what is left of a command; how many that were.
    fn sweep(&mut self, id: u64) -> u32 {
        let began = Instant::now();
        let mut killed = 0;
        loop {
            let mine = tree::children_of_one_thread(self.me);
            let strays: Vec<Pid> = mine.into_iter().filter(|pid| !self.live.contains_key(pid)).collect();
            // While other commands run, only what bears this one's mark is surely its own.
            let mark = format!("{MARK}={id}");
            let (own, other): (Vec<Pid>, Vec<Pid>) =
                strays.into_iter().partition(|pid| self.live.is_empty() || tree::has_mark(*pid, &mark));
            self.doubtful |= !other.is_empty();
            if own.is_empty() || began.elapsed() > PATIENCE {
                return killed;
            }
            for pid in own {
                let all = tree::whole(pid);
                tree::kill(&all);
                if let Ok(Some((_, _))) = wait_for(pid) {
                    killed += u32::try_from(all.len()).unwrap_or(u32::MAX);
                }
            }
        }
    }

    /// The program is gone: nothing of it stays.
    fn end_everything(&mut self) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let children = tree::children_of_one_thread(self.me);
            if children.is_empty() {
                return;
            }
            for pid in children {
                tree::kill(&tree::whole(pid));
                let _ = wait_for(pid);
            }
        }
    }
}

/// Waits for a process that was killed, as long as that may take.
fn wait_for(pid: Pid) -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
    let began = Instant::now();
    loop {
        match rustix::process::waitpid(Some(pid), WaitOptions::NOHANG) {
            Ok(None) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_micros(200)),
            done => return done,
        }
    }
}

fn start(
    id: u64,
    words: &[String],
    folder: &str,
    env: Vec<(String, String)>,
    fds: Vec<OwnedFd>,
) -> std::io::Result<(Pid, OwnedFd)> {
    let (name, args) = words.split_first().ok_or_else(|| std::io::Error::other("the command is empty"))?;
    let [out, err] = <[OwnedFd; 2]>::try_from(fds).map_err(|_| std::io::Error::other("no place for its output"))?;
    let mut command = Command::new(name);
    command.args(args).current_dir(folder).env_clear().envs(env).env(MARK, id.to_string());
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    own_session(&mut command);
    let child = command.spawn()?;
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| std::io::Error::other("no such process"))?;
    // The child is waited for by its number, with all others.
    drop(child);
    let exit = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    Ok((pid, exit))
}

/// Closes what whoever started the program left open: no child shall see it.
#[expect(unsafe_code, reason = "at the very start of a process nobody owns these descriptors")]
fn close_the_rest() {
    let names = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let open: Vec<i32> = names.filter_map(|name| name.to_str()?.parse().ok()).filter(|fd| *fd > 2).collect();
    for fd in open {
        // The folder that was read is among them, and closed by now.
        if std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok() {
            // SAFETY: this process has just begun and made no descriptor that is still open; each is closed once.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
}

/// A session of its own: no terminal to write to or read from, and one group to end.
#[expect(unsafe_code, reason = "between fork and exec only system calls are made, and nothing is allocated")]
fn own_session(command: &mut Command) {
    let alone = || {
        rustix::process::setsid()?;
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        Ok(())
    };
    // SAFETY: `setsid` and `setrlimit` are plain system calls: they allocate nothing and take no lock.
    unsafe { command.pre_exec(alone) };
}
