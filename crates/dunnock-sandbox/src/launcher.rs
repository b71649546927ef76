//! The launcher: a process with one thread and one socket, its standard input.
//!
//! It adopts what escapes from a command (subreaper). Once a command's own process has ended, its
//! remaining processes are children of the launcher, so the launcher's own child list shows whether
//! anything is left.

use crate::linux::{
    Fate, Isolation, Net, Plan, Ready, SandboxSpec, Spawned, abi, is_shortage, network, spawn,
};
use crate::tree;
use crate::wire::{Ask, Bound, Bounds, Probed, Tell, receive, send};
pub use background::{KeptProcess, kept_processes, stop_kept_process};
use background::{LeftoverProcesses, Supervision};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus as WaitStatus};
use std::rc::Rc;
use std::time::{Duration, Instant};

mod background;

/// Environment variable that marks the processes of one command, in case they escape while another
/// runs.
pub(crate) const MARK: &str = "DUNNOCK_CALL";
/// How long a process may show no environment during exec.
const MOMENT: Duration = Duration::from_millis(20);
/// How many sandbox plans are cached.
const PLANS: usize = 8;
/// Memory that the kernel uses for a file in memory, besides its contents.
const BYTES_PER_NAME: u64 = 1 << 10;
/// How often resource use is checked.
const TICK: Duration = Duration::from_millis(20);
/// Count at most this many processes.
const TOO_MANY: usize = 50_000;
/// How long a killed process may take to exit.
const PATIENCE: Duration = Duration::from_secs(1);

/// A running command.
struct Live {
    id: u64,
    exit: OwnedFd,
    /// Where the child reports that the command started, or how it ended in a sandbox with a first
    /// process.
    report: OwnedFd,
    files: PrivateFiles,
    /// Nothing can escape from it: it is a process namespace, and the kernel kills everything in
    /// it.
    whole: bool,
    /// `NAME=value` in the environment of everything it starts.
    mark: String,
    bounds: Bounds,
    /// Processes and threads on the machine when the launcher started.
    before: u64,
    /// The limit it was killed for.
    over: Option<Bound>,
    /// What the child has reported so far.
    fate: Option<Fate>,
    /// What it leaves running may continue.
    lasting: bool,
    /// It was asked to end: nothing of it continues.
    ending: bool,
    /// The wait status of the command, if only what it left running is still there.
    exit_status: Option<i32>,
    /// It continues when the program ends.
    supervised: Option<Supervision>,
}

/// A plan, and what it was made from.
struct CachedPlan {
    spec: SandboxSpec,
    /// The memory limit of the command.
    memory: u64,
    plan: Rc<Plan>,
}

/// Files in memory that belong to a sandbox: its `/tmp`, `/dev/shm`, home folder and the like.
enum PrivateFiles {
    /// Nothing was received yet.
    Awaited(OwnedFd),
    Known(OwnedFd),
    /// There are none.
    Absent,
}

impl PrivateFiles {
    /// The memory that they use, in bytes.
    fn used(&mut self) -> u64 {
        if let Self::Awaited(socket) = self
            && let Some(files) = received(socket)
        {
            *self = Self::Known(files);
        }
        let Self::Known(files) = self else { return 0 };
        let Ok(about) = rustix::fs::fstatfs(files) else { return 0 };
        let blocks = about.f_blocks.saturating_sub(about.f_bfree);
        let names = about.f_files.saturating_sub(about.f_ffree);
        let size = u64::try_from(about.f_bsize).unwrap_or(0);
        blocks.saturating_mul(size).saturating_add(names.saturating_mul(BYTES_PER_NAME))
    }
}

/// The descriptor that was sent over a socket.
fn received(socket: &OwnedFd) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut beside, flags).ok()?;
    beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    })
}

/// The launcher's own `oom_score_adj`. Commands inherit it when they are started; they cannot write
/// it themselves, because a process that others may not inspect does not own its files in `/proc`.
struct OomScore {
    file: Option<std::fs::File>,
    own: String,
}

impl OomScore {
    fn open() -> Self {
        let path = "/proc/self/oom_score_adj";
        let own = std::fs::read_to_string(path).unwrap_or_else(|_| "0".into());
        // At this point the launcher holds nothing that others may not read.
        let before = rustix::process::dumpable_behavior();
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable);
        let file = std::fs::OpenOptions::new().write(true).open(path).ok();
        if let Ok(before) = before {
            let _ = rustix::process::set_dumpable_behavior(before);
        }
        Self { file, own }
    }

    fn set(&self, score: &str) {
        if let Some(file) = &self.file {
            let _ = rustix::io::pwrite(file, score.as_bytes(), 0);
        }
    }
}

struct LauncherProcess {
    socket: std::io::Stdin,
    me: Pid,
    /// By the pid of the command's own process.
    live: HashMap<Pid, Live>,
    /// What commands without a sandbox of their own left running.
    remaining: Vec<LeftoverProcesses>,
    /// Where a person reaches the processes that continue when the program ends.
    control: Option<background::ControlSocket>,
    held: HashMap<u64, OwnedFd>,
    /// A process escaped while several commands ran, and it is unclear whose it is.
    doubtful: bool,
    /// Processes that could not be killed.
    stubborn: HashSet<Pid>,
    /// Nice value for commands.
    nice: i32,
    oom: OomScore,
    /// First processes of sandboxes whose end was already reported: nothing else is left in them.
    leaving: HashSet<Pid>,
    /// Makes this launcher's marks unique.
    name: String,
    /// Processes and threads on the machine when the launcher started.
    tasks: u64,
    measured: Instant,
    /// Landlock ABI version; 0 if the kernel has none.
    landlock: i64,
    plans: RefCell<Vec<CachedPlan>>,
    /// Networks shared by sandboxes, by name.
    nets: RefCell<HashMap<String, Rc<Net>>>,
}

/// Serves requests until the other end of standard input is closed; then kills everything.
#[must_use]
pub fn serve() -> ExitCode {
    close_the_rest();
    // Leave the terminal's session: Ctrl-C is for the program, not for the launcher.
    let _ = rustix::process::setsid();
    let me = rustix::process::getpid();
    if rustix::process::set_child_subreaper(Some(me)).is_err() {
        return ExitCode::FAILURE;
    }
    // Without the kernel's list of children, no cleanup can be guaranteed.
    if tree::children_of_one_thread(me).is_err() {
        return ExitCode::FAILURE;
    }
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut launcher = LauncherProcess {
        socket: std::io::stdin(),
        me,
        live: HashMap::new(),
        remaining: Vec::new(),
        control: None,
        held: HashMap::new(),
        doubtful: false,
        stubborn: HashSet::new(),
        leaving: HashSet::new(),
        nice: ahead_of_others(),
        oom: OomScore::open(),
        name: format!("{}-{}", me.as_raw_nonzero(), since.as_nanos()),
        tasks: tree::tasks(),
        measured: Instant::now(),
        landlock: abi(),
        plans: RefCell::default(),
        nets: RefCell::default(),
    };
    let mut buffer = Vec::new();
    while launcher.round(&mut buffer).is_some() {}
    launcher.end_everything();
    launcher.supervise();
    ExitCode::SUCCESS
}

/// Raises the launcher's priority if permitted, so that it gets a turn among thousands of processes
/// of a fork bomb. Returns the nice value from before, which commands get.
fn ahead_of_others() -> i32 {
    let before = rustix::process::getpriority_process(None).unwrap_or(0);
    let _ = rustix::process::setpriority_process(None, before - 10);
    before
}

impl LauncherProcess {
    /// Waits for a request or the end of a process. `None` when the program is gone.
    fn round(&mut self, buffer: &mut Vec<u8>) -> Option<()> {
        let socket = self.socket.as_fd();
        let mut waits = vec![PollFd::new(&socket, PollFlags::IN)];
        waits.extend(self.live.values().map(|live| PollFd::new(&live.exit, PollFlags::IN)));
        let reports = self.live.values().filter(|live| live.whole && live.fate.is_none());
        waits.extend(reports.map(|live| PollFd::new(&live.report, PollFlags::IN)));
        // Escaped processes may exit on their own and must be reaped.
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        let woken = poll(
            &mut waits,
            (self.doubtful
                || !self.live.is_empty()
                || !self.remaining.is_empty()
                || !self.stubborn.is_empty()
                || !self.leaving.is_empty())
            .then_some(&tick),
        );
        if woken.is_err_and(|error| error != rustix::io::Errno::INTR) {
            return None;
        }
        let asked = waits.first().is_some_and(|first| !first.revents().is_empty());
        drop(waits);
        self.look();
        if asked {
            let (ask, fds) = receive::<Ask>(self.socket.as_fd(), buffer).ok()??;
            self.ask(ask, fds)?;
        }
        Some(())
    }

    /// Finds out what has ended, and what uses too much.
    fn look(&mut self) {
        self.hear();
        self.bury();
        self.check_remaining();
        if !(self.live.is_empty() && self.remaining.is_empty()) && self.measured.elapsed() > TICK {
            self.measured = Instant::now();
            self.measure();
        }
        self.answer_requests();
    }

    fn tell(&self, tell: &Tell) -> Option<()> {
        send(self.socket.as_fd(), tell, &[]).ok()
    }

    fn ask(&mut self, ask: Ask, fds: Vec<OwnedFd>) -> Option<()> {
        match ask {
            Ask::Start { id, words, folder, mut env, terminal, bounds, lasting, spec } => {
                let mark = format!("{}-{id}", self.name);
                env.push((MARK.into(), mark.clone()));
                let before = self.tasks;
                let whole = spec.as_ref().is_some_and(|spec| spec.isolation != Isolation::C);
                let most = match bounds.processes {
                    0 => 0,
                    some => before + some.saturating_mul(4),
                };
                let started = self.start(
                    &words,
                    &folder,
                    env,
                    fds,
                    terminal,
                    spec.as_ref(),
                    Bounds { processes: most, ..bounds },
                    lasting,
                );
                match started {
                    Ok((Spawned { pid, report, files }, exit)) => {
                        let mark = format!("{MARK}={mark}");
                        let files = files.map_or(PrivateFiles::Absent, PrivateFiles::Awaited);
                        let live = Live {
                            id,
                            exit,
                            report,
                            files,
                            whole,
                            mark,
                            bounds,
                            before,
                            over: None,
                            fate: None,
                            lasting,
                            ending: false,
                            exit_status: None,
                            supervised: None,
                        };
                        drop(self.live.insert(pid, live));
                    }
                    Err(error) => self.tell(&Tell::Refused { id, why: error.to_string() })?,
                }
            }
            Ask::Probe { spec } => {
                self.tell(&Tell::Probed(self.probe(spec)))?;
            }
            Ask::End { id } => self.ask_to_end(id),
            Ask::Kill { id } => self.kill_command(id),
            Ask::Background { id, kept } => self.put_in_background(id, kept, fds),
            Ask::List { id } => {
                let programs = self.programs(id);
                // A list that does not fit is no reason to end.
                let _ = self.tell(&Tell::Listed { id, programs });
            }
            Ask::Hold { id } => self.held.extend(fds.into_iter().map(|fd| (id, fd))),
            Ask::Listen { name } => {
                let listener = self.listen(&name);
                let created = listener.as_ref().map(|_| ()).map_err(ToString::to_string);
                let fds: Vec<_> = listener.iter().map(AsFd::as_fd).collect();
                send(self.socket.as_fd(), &Tell::Listens { name, created }, &fds).ok()?;
            }
            Ask::Leave { name } => {
                self.nets.borrow_mut().remove(&name);
                self.plans.borrow_mut().retain(|known| known.spec.shares.as_ref() != Some(&name));
            }
            Ask::Release { id } => {
                drop(self.held.remove(&id));
                self.tell(&Tell::Released { id })?;
            }
        }
        Some(())
    }

    /// Kills commands that exceed their limits. Checks the cheap numbers first: processes on the
    /// machine, and free memory.
    fn measure(&mut self) {
        let (now, memory) = (tree::tasks(), tree::memory());
        let mut over = Vec::new();
        let mut private: HashMap<Pid, u64> =
            self.live.iter_mut().map(|(pid, live)| (*pid, live.files.used())).collect();
        for (pid, live) in &self.live {
            let Bounds { processes, memory: bytes } = live.bounds;
            let many = processes > 0 && now > live.before + processes;
            let large =
                bytes > 0 && memory.is_some_and(|(total, free)| total.saturating_sub(free) > bytes);
            if !(many || large) || live.over.is_some() {
                continue;
            }
            // Processes that escaped are our children; if several commands run, the mark tells
            // whose they are. A fork bomb is not counted to the end: parts of it exit before they
            // can be looked at.
            let enough = if large {
                TOO_MANY
            } else {
                usize::try_from(processes).unwrap_or(TOO_MANY).saturating_add(1)
            };
            let mut all = tree::below(*pid, enough);
            for stray in tree::children_of_one_thread(self.me).unwrap_or_default() {
                if all.len() >= enough {
                    break;
                }
                if self.is_known(stray) {
                    continue;
                }
                if self.live.len() == 1 {
                    all.push(stray);
                } else if tree::has_mark(stray, &live.mark) == Some(true) {
                    all.extend(tree::below(stray, enough));
                }
            }
            if many && all.len() as u64 > processes {
                over.push((*pid, Bound::Processes));
            } else if large
                && tree::used(&all).saturating_add(private.remove(pid).unwrap_or(0)) > bytes
            {
                over.push((*pid, Bound::Memory));
            }
        }
        self.measure_remaining(now, memory);
        for (pid, bound) in over {
            if let Some(live) = self.live.get_mut(&pid) {
                live.over = Some(bound);
            }
            // The rest is killed when this process is reaped.
            self.end(pid);
        }
    }

    /// Kills a command and everything it started.
    fn end(&self, pid: Pid) {
        match self.live.get(&pid) {
            Some(live) if live.whole => drop(rustix::process::kill_process(pid, Signal::KILL)),
            _ => {
                // Freeze its process group at once, so that it cannot fork; then find the rest.
                let _ = rustix::process::kill_process_group(pid, Signal::STOP);
                tree::kill(&tree::whole(pid));
            }
        }
    }

    /// Reaps dead processes. When a command's own process is one of them, everything else of it is
    /// killed.
    fn bury(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    self.stubborn.remove(&pid);
                    self.leaving.remove(&pid);
                    if let Some(live) = self.live.remove(&pid) {
                        let (code, signal) = (status.exit_status(), status.terminating_signal());
                        match self.roots_left(&live) {
                            roots if roots.is_empty() => self.ended(&live, Some(pid), code, signal),
                            roots => self.leave(live, roots, code, signal),
                        }
                    }
                }
                // No children left, and no exit status: the kernel reaps for a process started with
                // SIGCHLD ignored.
                Err(rustix::io::Errno::CHILD) => {
                    for (pid, live) in std::mem::take(&mut self.live) {
                        self.ended(&live, Some(pid), None, None);
                    }
                    break;
                }
                Ok(None) | Err(_) => break,
            }
        }
        if self.live.is_empty() && self.remaining.is_empty() && self.doubtful {
            self.doubtful = false;
            self.sweep("");
        }
    }

    fn ended(&mut self, live: &Live, pid: Option<Pid>, code: Option<i32>, signal: Option<i32>) {
        let left = if live.whole {
            0
        } else {
            if let Some(group) = pid {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            self.sweep(&live.mark)
        };
        let (id, over) = (live.id, live.over);
        let ended = |code, signal| Tell::Ended { id, code, signal, left, over };
        let fate = live
            .exit_status
            .map(Fate::Over)
            .or_else(|| live.fate.clone())
            .or_else(|| Fate::read(&live.report))
            .unwrap_or(Fate::Began(None));
        let _ = self.tell(&match fate {
            Fate::Failed(why, _) => Tell::Refused { id, why },
            Fate::Began(None) => ended(code, signal),
            Fate::Began(Some(raw)) | Fate::Over(raw) | Fate::Continues(raw) => {
                let status = WaitStatus::from_raw(raw);
                ended(status.code(), status.signal())
            }
        });
    }

    /// Reads the reports from sandboxes. A sandbox with no other process left has ended, even if
    /// its first process has yet to exit.
    fn hear(&mut self) {
        let (mut over, mut left) = (Vec::new(), Vec::new());
        for (pid, live) in
            self.live.iter_mut().filter(|(_, live)| live.whole && live.fate.is_none())
        {
            // If the report closes without a result, the sandbox itself died: its exit shows that.
            live.fate = Fate::read(&live.report);
            if let Some(Fate::Continues(raw)) = live.fate {
                (live.fate, live.exit_status) = (None, Some(raw));
                left.push((*pid, live.id, live.ending, WaitStatus::from_raw(raw)));
            }
            if matches!(live.fate, Some(Fate::Over(_) | Fate::Failed(..))) {
                over.push(*pid);
            }
        }
        for (pid, id, ending, status) in left {
            if ending {
                self.end(pid);
            } else {
                let (code, signal) = (status.code(), status.signal());
                let _ = self.tell(&Tell::Continues { id, code, signal });
            }
        }
        for pid in over {
            if let Some(live) = self.live.remove(&pid) {
                self.leaving.insert(pid);
                self.ended(&live, Some(pid), None, None);
            }
        }
    }

    /// Finds the strongest sandbox that works, by actually creating one at each level. An error if
    /// a level failed for a reason that may be gone in a moment.
    fn probe(&self, spec: SandboxSpec) -> Result<Probed, String> {
        let mut why = Vec::new();
        for isolation in [Isolation::A, Isolation::B, Isolation::C]
            .into_iter()
            .filter(|isolation| *isolation >= spec.isolation)
        {
            let spec = SandboxSpec { isolation, ..spec.clone() };
            let folder = spec.workspace.to_string_lossy().into_owned();
            let null = || {
                rustix::fs::open(
                    "/dev/null",
                    rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
                    rustix::fs::Mode::empty(),
                )
            };
            let tried = null().and_then(|out| Ok(vec![out, null()?])).map_err(std::io::Error::from);
            match tried.and_then(|fds| {
                let none = Bounds::default();
                self.start(&[], &folder, Vec::new(), fds, false, Some(&spec), none, false)
            }) {
                Ok((Spawned { pid, report, .. }, _)) => {
                    let seen = rustix::process::waitpid(Some(pid), WaitOptions::empty());
                    let ended = seen.ok().flatten().and_then(|(_, status)| status.exit_status());
                    match Fate::read(&report) {
                        Some(Fate::Failed(error, number)) if is_shortage(number) => {
                            return Err(error);
                        }
                        Some(Fate::Failed(error, _)) => why.push((isolation, error)),
                        Some(Fate::Began(Some(0)) | Fate::Over(0)) => {
                            return Ok(Probed { best: Some(isolation), why });
                        }
                        Some(Fate::Began(None)) | None
                            if ended == Some(0) && isolation == Isolation::C =>
                        {
                            return Ok(Probed { best: Some(isolation), why });
                        }
                        other => {
                            return Err(format!("the probe ended unexpectedly: {other:?}"));
                        }
                    }
                }
                Err(error)
                    if error.raw_os_error().is_some_and(is_shortage)
                        || matches!(
                            error.kind(),
                            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::OutOfMemory
                        ) =>
                {
                    return Err(error.to_string());
                }
                Err(error) => why.push((isolation, error.to_string())),
            }
        }
        Ok(Probed { best: None, why })
    }

    #[expect(clippy::too_many_arguments, reason = "what a command is made of")]
    fn start(
        &self,
        words: &[String],
        folder: &str,
        env: Vec<(String, String)>,
        mut fds: Vec<OwnedFd>,
        terminal: bool,
        spec: Option<&SandboxSpec>,
        bounds: Bounds,
        lasting: bool,
    ) -> std::io::Result<(Spawned, OwnedFd)> {
        if fds.len() == 2 {
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
            fds.insert(0, rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())?);
        }
        let fds = <[OwnedFd; 3]>::try_from(fds)
            .map_err(|_| std::io::Error::other("a command needs two or three file descriptors"))?;
        let plan = spec.map(|spec| self.plan(spec, bounds.memory)).transpose()?;
        let mut ready = Ready::new(words, env, folder, fds, terminal, plan)?;
        ready.processes = (bounds.processes > 0).then_some(bounds.processes);
        ready.nice = self.nice;
        ready.lasting = lasting;
        ready.join = spec.map(|spec| self.net(spec)).transpose()?.flatten();
        // The kernel kills commands first if memory runs out.
        self.oom.set("900");
        let spawned = spawn(&ready);
        self.oom.set(&self.oom.own);
        let spawned = spawned?;
        match rustix::process::pidfd_open(spawned.pid, PidfdFlags::empty()) {
            Ok(exit) => Ok((spawned, exit)),
            Err(error) => {
                // What cannot be watched must not run.
                tree::kill(&tree::whole(spawned.pid));
                wait_for(spawned.pid, PATIENCE);
                Err(error.into())
            }
        }
    }

    /// The network that sandboxes of the same name share; created for the first of them.
    fn net(&self, spec: &SandboxSpec) -> std::io::Result<Option<Rc<Net>>> {
        let Some(name) =
            spec.shares.as_ref().filter(|_| spec.isolation != Isolation::C && !spec.network)
        else {
            return Ok(None);
        };
        if let Some(net) = self.nets.borrow().get(name) {
            return Ok(Some(net.clone()));
        }
        let net = Rc::new(network(None)?);
        self.nets.borrow_mut().insert(name.clone(), net.clone());
        Ok(Some(net))
    }

    /// Creates the network of this name anew. Returns a listener in it, for the program: nothing
    /// listens there any more when the program is gone.
    fn listen(&self, name: &str) -> std::io::Result<OwnedFd> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        let net = Rc::new(network(Some(&theirs))?);
        let listener = received(&ours)
            .ok_or_else(|| std::io::Error::other("the listener of a network was not received"))?;
        self.nets.borrow_mut().insert(name.to_owned(), net);
        Ok(listener)
    }

    /// The plan for a sandbox. Recent ones are cached, since most commands use the same.
    fn plan(&self, spec: &SandboxSpec, memory: u64) -> std::io::Result<Rc<Plan>> {
        let least = match spec.isolation {
            Isolation::A => 1,
            // Older versions cannot stop a command from truncating files outside.
            Isolation::B | Isolation::C => 3,
        };
        if self.landlock < least {
            let have = if self.landlock == 0 {
                "none".into()
            } else {
                format!("version {}", self.landlock)
            };
            return Err(std::io::Error::other(format!(
                "the sandbox needs Landlock version {least} or later; this kernel has {have}"
            )));
        }
        let mut plans = self.plans.borrow_mut();
        let same = |known: &&CachedPlan| known.memory == memory && known.spec == *spec;
        if let Some(known) = plans.iter().find(same) {
            return Ok(known.plan.clone());
        }
        let plan = Rc::new(Plan::new(spec, self.landlock, memory)?);
        if !plan.lasts {
            return Ok(plan);
        }
        plans.truncate(PLANS - 1);
        plans.insert(0, CachedPlan { spec: spec.clone(), memory, plan: plan.clone() });
        Ok(plan)
    }

    /// Kills what is left of a command. Returns how many processes could not be killed (another
    /// user's, or stuck in the kernel); those are remembered and not waited for again.
    fn sweep(&mut self, mark: &str) -> u32 {
        let began = Instant::now();
        let mut left = 0;
        loop {
            let (own, other, unsure) = self.strays(mark, &HashSet::new());
            // A process in the middle of exec shows no mark; it will in a moment.
            if own.is_empty() && unsure && began.elapsed() < MOMENT {
                std::thread::sleep(Duration::from_micros(200));
                continue;
            }
            self.doubtful |= other || unsure;
            if own.is_empty() {
                return left;
            }
            // Freeze everything before killing anything: a running process could start more.
            let mut still: HashSet<Pid> = HashSet::new();
            let mut next = own;
            while !next.is_empty() && began.elapsed() < PATIENCE {
                still.extend(next.into_iter().flat_map(tree::whole));
                next = self.strays(mark, &still).0;
            }
            tree::kill(&still.iter().copied().collect::<Vec<_>>());
            for pid in still {
                // A process that is not our child belongs to its parent, or becomes our child in a
                // moment.
                if !wait_for(pid, PATIENCE.saturating_sub(began.elapsed())) {
                    self.stubborn.insert(pid);
                    left += 1;
                }
            }
        }
    }

    /// Our children that are not running commands: those that belong to the command with this mark,
    /// whether there are others, and whether some cannot be assigned. Skips `known` ones.
    fn strays(&self, mark: &str, known: &HashSet<Pid>) -> (Vec<Pid>, bool, bool) {
        let old = |pid: &Pid| self.is_known(*pid) || known.contains(pid);
        // While other commands run, only the mark proves that a process belongs to this one.
        let alone = self.live.is_empty();
        let (mut own, mut other, mut unsure) = (Vec::new(), false, false);
        for pid in tree::children_of_one_thread(self.me)
            .unwrap_or_default()
            .into_iter()
            .filter(|pid| !old(pid))
        {
            match if alone { Some(true) } else { tree::has_mark(pid, mark) } {
                Some(true) => own.push(pid),
                Some(false) => other = true,
                None => unsure = true,
            }
        }
        (own, other, unsure)
    }

    /// The program is gone: kill everything it started, except what is kept.
    fn end_everything(&mut self) {
        let began = Instant::now();
        for (pid, _) in self.live.iter().filter(|(_, live)| live.supervised.is_none()) {
            let _ = rustix::process::kill_process_group(*pid, Signal::KILL);
        }
        while began.elapsed() < PATIENCE {
            let mut children = tree::children_of_one_thread(self.me).unwrap_or_default();
            let kept = self.kept_among(&children);
            children.retain(|pid| !kept.contains(pid));
            if children.is_empty() && !kept.is_empty() {
                return;
            }
            // With something kept, its own process must be reaped where it is accounted for.
            if kept.is_empty()
                && matches!(
                    rustix::process::wait(WaitOptions::NOHANG),
                    Err(rustix::io::Errno::CHILD)
                )
            {
                return; // no child is left
            }
            for pid in &children {
                tree::kill(&tree::whole(*pid));
            }
            for pid in children {
                wait_for(pid, PATIENCE.saturating_sub(began.elapsed()));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Waits for a killed process; true if it is gone.
fn wait_for(pid: Pid, most: Duration) -> bool {
    let began = Instant::now();
    loop {
        match rustix::process::waitpid(Some(pid), WaitOptions::NOHANG) {
            Ok(None) if began.elapsed() < most => std::thread::sleep(Duration::from_micros(200)),
            Ok(None) => return false,
            Ok(Some(_)) | Err(_) => return true,
        }
    }
}

/// Closes descriptors inherited from the program's parent, so that no child sees them.
#[expect(unsafe_code, reason = "at the very start of a process nobody owns these descriptors")]
fn close_the_rest() {
    let names = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name());
    let open: Vec<i32> =
        names.filter_map(|name| name.to_str()?.parse().ok()).filter(|fd| *fd > 2).collect();
    for fd in open {
        // The list includes the descriptor of the directory itself, which is closed by now.
        if std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok() {
            // SAFETY: this process has just started and owns none of the descriptors that are still
            // open; each is closed once.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
}
