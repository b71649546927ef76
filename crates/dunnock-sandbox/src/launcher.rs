//! The launcher: a process with one thread and one socket, its standard input.
//!
//! It adopts what escapes from a command (subreaper). When a command's own process has ended, all that is left of it hangs
//! below the launcher, so one look at the launcher's own children tells whether anything is left.

use crate::linux::{Fate, Isolation, Net, Plan, Ready, SandboxSpec, abi, network, spawn};
use crate::tree;
use crate::wire::{Ask, Bound, Bounds, Tell, receive, send};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus as WaitStatus};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What marks the children of one command, should they escape while another runs.
const MARK: &str = "DUNNOCK_CALL";
/// How long a process may be without an environment while it becomes another program.
const MOMENT: Duration = Duration::from_millis(20);
/// Boxes whose plans are kept.
const PLANS: usize = 8;
/// How often it is looked at what commands take.
const TICK: Duration = Duration::from_millis(20);
/// Processes that are counted at most.
const TOO_MANY: usize = 50_000;
/// How long a process that was killed may take to go.
const PATIENCE: Duration = Duration::from_secs(1);

/// A command that runs.
struct Live {
    id: u64,
    exit: OwnedFd,
    /// Where its beginning, or the end of what it is the first process of, is reported.
    report: OwnedFd,
    /// Nothing it starts can leave it: the kernel ends everything with it.
    whole: bool,
    /// In the environment of whatever it starts.
    mark: String,
    bounds: Bounds,
    /// Processes and threads on the machine when it began.
    before: u64,
    /// What it was ended for.
    over: Option<Bound>,
    /// What was reported of it so far.
    fate: Option<Fate>,
}

struct Launcher {
    socket: std::io::Stdin,
    me: Pid,
    /// By the process that was started.
    live: HashMap<Pid, Live>,
    held: HashMap<u64, OwnedFd>,
    /// Escaped from a command while another ran, and not known to be of either.
    doubtful: bool,
    /// Could not be killed.
    stubborn: HashSet<Pid>,
    /// How nice commands are.
    nice: i32,
    /// First processes of boxes whose end was told: nobody is left in them.
    leaving: HashSet<Pid>,
    /// Makes marks of this launcher unlike any other's.
    name: String,
    /// Processes and threads on the machine when we began.
    tasks: u64,
    measured: Instant,
    /// The version of Landlock; 0 for none.
    landlock: i64,
    plans: RefCell<Vec<(SandboxSpec, Rc<Plan>)>>,
    /// Networks that boxes share, by name.
    nets: RefCell<HashMap<String, Rc<Net>>>,
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
    // Without the kernel's list of children nothing could be promised.
    if tree::children_of_one_thread(me).is_err() {
        return ExitCode::FAILURE;
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut launcher = Launcher {
        socket: std::io::stdin(),
        me,
        live: HashMap::new(),
        held: HashMap::new(),
        doubtful: false,
        stubborn: HashSet::new(),
        leaving: HashSet::new(),
        nice: ahead_of_others(),
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
    ExitCode::SUCCESS
}

/// Whoever stops a bomb has to get a turn before thousands of others, where that may be asked for. How nice this was before,
/// which is what commands are.
fn ahead_of_others() -> i32 {
    let before = rustix::process::getpriority_process(None).unwrap_or(0);
    let _ = rustix::process::setpriority_process(None, before - 10);
    before
}

impl Launcher {
    /// One round: waits for an order or an end. `None` when there is nobody left to serve.
    fn round(&mut self, buffer: &mut Vec<u8>) -> Option<()> {
        let socket = self.socket.as_fd();
        let mut waits = vec![PollFd::new(&socket, PollFlags::IN)];
        waits.extend(self.live.values().map(|live| PollFd::new(&live.exit, PollFlags::IN)));
        let reports = self.live.values().filter(|live| live.whole && live.fate.is_none());
        waits.extend(reports.map(|live| PollFd::new(&live.report, PollFlags::IN)));
        // Something that escaped may end on its own, and must be buried.
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        let woken = poll(
            &mut waits,
            (self.doubtful || !self.live.is_empty() || !self.stubborn.is_empty() || !self.leaving.is_empty())
                .then_some(&tick),
        );
        if woken.is_err_and(|error| error != rustix::io::Errno::INTR) {
            return None;
        }
        let asked = waits.first().is_some_and(|first| !first.revents().is_empty());
        drop(waits);
        self.hear();
        self.bury();
        if !self.live.is_empty() && self.measured.elapsed() > TICK {
            self.measured = Instant::now();
            self.measure();
        }
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
            Ask::Start { id, words, folder, mut env, terminal, bounds, cage } => {
                let mark = format!("{}-{id}", self.name);
                env.push((MARK.into(), mark.clone()));
                let before = self.tasks;
                let whole = cage.as_ref().is_some_and(|cage| cage.rung != Isolation::C);
                let most = (bounds.processes > 0).then(|| before + bounds.processes.saturating_mul(4));
                match self.start(&words, &folder, env, fds, terminal, cage.as_ref(), most) {
                    Ok((pid, exit, report)) => {
                        let mark = format!("{MARK}={mark}");
                        let live = Live { id, exit, report, whole, mark, bounds, before, over: None, fate: None };
                        drop(self.live.insert(pid, live));
                    }
                    Err(error) => self.tell(&Tell::Refused { id, why: error.to_string() })?,
                }
            }
            Ask::Probe { cage } => {
                let (best, why) = self.probe(cage);
                self.tell(&Tell::Probed { best, why })?;
            }
            Ask::End { id } => {
                if let Some(pid) = self.pid(id) {
                    let _ = rustix::process::kill_process_group(pid, Signal::TERM);
                }
            }
            Ask::Kill { id } => {
                if let Some(pid) = self.pid(id) {
                    self.end(pid);
                }
            }
            Ask::Hold { id } => self.held.extend(fds.into_iter().map(|fd| (id, fd))),
            Ask::Leave { name } => {
                self.nets.borrow_mut().remove(&name);
                self.plans.borrow_mut().retain(|(cage, _)| cage.shares.as_ref() != Some(&name));
            }
            Ask::Release { id } => {
                drop(self.held.remove(&id));
                self.tell(&Tell::Released { id })?;
            }
        }
        Some(())
    }

    /// Ends commands that take more than they may. What costs nothing is looked at first: how many processes there are on the
    /// machine, and how much memory is free.
    fn measure(&mut self) {
        let (now, memory) = (tree::tasks(), tree::memory());
        let mut over = Vec::new();
        for (pid, live) in &self.live {
            let Bounds { processes, memory: bytes } = live.bounds;
            let many = processes > 0 && now > live.before + processes;
            let large = bytes > 0 && memory.is_some_and(|(total, free)| total.saturating_sub(free) > bytes);
            if !(many || large) || live.over.is_some() {
                continue;
            }
            // What escaped from it hangs below us; where several run it bears its mark. A bomb is not counted to its end, and
            // what is part of one is gone before it can be looked at.
            let enough =
                if large { TOO_MANY } else { usize::try_from(processes).unwrap_or(TOO_MANY).saturating_add(1) };
            let mut all = tree::below(*pid, enough);
            for stray in tree::children_of_one_thread(self.me).unwrap_or_default() {
                if all.len() >= enough {
                    break;
                }
                if self.live.contains_key(&stray) || self.stubborn.contains(&stray) || self.leaving.contains(&stray) {
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
            } else if large && all.iter().map(|pid| tree::resident(*pid)).sum::<u64>() > bytes {
                over.push((*pid, Bound::Memory));
            }
        }
        for (pid, bound) in over {
            if let Some(live) = self.live.get_mut(&pid) {
                live.over = Some(bound);
            }
            // What is left of it goes when this is buried.
            self.end(pid);
        }
    }

    /// Ends a command, and everything it started.
    fn end(&self, pid: Pid) {
        match self.live.get(&pid) {
            Some(live) if live.whole => drop(rustix::process::kill_process(pid, Signal::KILL)),
            _ => {
                // Its group stands still at once, whatever it makes just now: the rest is looked for at leisure.
                let _ = rustix::process::kill_process_group(pid, Signal::STOP);
                tree::kill(&tree::whole(pid));
            }
        }
    }

    fn pid(&self, id: u64) -> Option<Pid> {
        self.live.iter().find(|(_, live)| live.id == id).map(|(pid, _)| *pid)
    }

    /// Buries what is dead. A command whose own process is among it has ended, and takes everything with it.
    fn bury(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    self.stubborn.remove(&pid);
                    self.leaving.remove(&pid);
                    if let Some(live) = self.live.remove(&pid) {
                        self.ended(&live, pid, status.exit_status(), status.terminating_signal());
                    }
                }
                // Nobody is left, and nobody told us: the kernel buries for a process that was started so.
                Err(rustix::io::Errno::CHILD) => {
                    for (pid, live) in std::mem::take(&mut self.live) {
                        self.ended(&live, pid, None, None);
                    }
                    break;
                }
                Ok(None) | Err(_) => break,
            }
        }
        if self.live.is_empty() && self.doubtful {
            self.doubtful = false;
            self.sweep("");
        }
    }

    fn ended(&mut self, live: &Live, pid: Pid, code: Option<i32>, signal: Option<i32>) {
        let left = if live.whole {
            0
        } else {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            self.sweep(&live.mark)
        };
        let (id, over) = (live.id, live.over);
        let ended = |code, signal| Tell::Ended { id, code, signal, left, over };
        let fate = live.fate.clone().or_else(|| Fate::read(&live.report)).unwrap_or(Fate::Began(None));
        let _ = self.tell(&match fate {
            Fate::Failed(why) => Tell::Refused { id, why },
            Fate::Began(None) => ended(code, signal),
            Fate::Began(Some(raw)) | Fate::Over(raw) => {
                let status = WaitStatus::from_raw(raw);
                ended(status.code(), status.signal())
            }
        });
    }

    /// Hears what boxes report. One in which nobody is left has ended, although its first process has yet to go.
    fn hear(&mut self) {
        let mut over = Vec::new();
        for (pid, live) in self.live.iter_mut().filter(|(_, live)| live.whole && live.fate.is_none()) {
            // An end of the report without one is the end of the box: that is seen by its exit.
            live.fate = Fate::read(&live.report);
            if matches!(live.fate, Some(Fate::Over(_) | Fate::Failed(_))) {
                over.push(*pid);
            }
        }
        for pid in over {
            if let Some(live) = self.live.remove(&pid) {
                self.leaving.insert(pid);
                self.ended(&live, pid, None, None);
            }
        }
    }

    /// The best box that can be made here: each rung is tried for real.
    fn probe(&self, cage: SandboxSpec) -> (Option<Isolation>, Vec<(Isolation, String)>) {
        let mut why = Vec::new();
        for rung in [Isolation::A, Isolation::B, Isolation::C].into_iter().filter(|rung| *rung >= cage.rung) {
            let cage = SandboxSpec { rung, ..cage.clone() };
            let folder = cage.workspace.to_string_lossy().into_owned();
            let null = || {
                rustix::fs::open(
                    "/dev/null",
                    rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
                    rustix::fs::Mode::empty(),
                )
            };
            let tried = null().and_then(|out| Ok(vec![out, null()?])).map_err(std::io::Error::from);
            match tried.and_then(|fds| self.start(&[], &folder, Vec::new(), fds, false, Some(&cage), None)) {
                Ok((pid, _, report)) => {
                    let seen = rustix::process::waitpid(Some(pid), WaitOptions::empty());
                    let ended = seen.ok().flatten().and_then(|(_, status)| status.exit_status());
                    match Fate::read(&report) {
                        Some(Fate::Failed(error)) => why.push((rung, error)),
                        Some(Fate::Began(Some(0)) | Fate::Over(0)) => return (Some(rung), why),
                        Some(Fate::Began(None)) | None if ended == Some(0) && rung == Isolation::C => {
                            return (Some(rung), why);
                        }
                        other => why.push((rung, format!("it ended with {other:?}"))),
                    }
                }
                Err(error) => why.push((rung, error.to_string())),
            }
        }
        (None, why)
    }

    #[expect(clippy::too_many_arguments, reason = "what a command is made of")]
    fn start(
        &self,
        words: &[String],
        folder: &str,
        env: Vec<(String, String)>,
        mut fds: Vec<OwnedFd>,
        terminal: bool,
        cage: Option<&SandboxSpec>,
        processes: Option<u64>,
    ) -> std::io::Result<(Pid, OwnedFd, OwnedFd)> {
        if fds.len() == 2 {
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
            fds.insert(0, rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())?);
        }
        let fds = <[OwnedFd; 3]>::try_from(fds).map_err(|_| std::io::Error::other("no place for its output"))?;
        let plan = cage.map(|cage| self.plan(cage)).transpose()?;
        let mut ready = Ready::new(words, env, folder, fds, terminal, plan)?;
        ready.processes = processes;
        ready.nice = self.nice;
        ready.join = cage.map(|cage| self.net(cage)).transpose()?.flatten();
        let (pid, report) = spawn(&ready)?;
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(exit) => Ok((pid, exit, report)),
            Err(error) => {
                // What could not be watched must not run.
                tree::kill(&tree::whole(pid));
                wait_for(pid, PATIENCE);
                Err(error.into())
            }
        }
    }

    /// The network that a box shares with others of its name, made for the first of them.
    fn net(&self, cage: &SandboxSpec) -> std::io::Result<Option<Rc<Net>>> {
        let Some(name) = cage.shares.as_ref().filter(|_| cage.rung != Isolation::C && !cage.network) else {
            return Ok(None);
        };
        if let Some(net) = self.nets.borrow().get(name) {
            return Ok(Some(net.clone()));
        }
        let net = Rc::new(network()?);
        self.nets.borrow_mut().insert(name.clone(), net.clone());
        Ok(Some(net))
    }

    /// What has to be done for a box; the last ones are kept, since most commands want the same.
    fn plan(&self, cage: &SandboxSpec) -> std::io::Result<Rc<Plan>> {
        let least = match cage.rung {
            Isolation::A => 1,
            // Below that, files outside could be cut short.
            Isolation::B | Isolation::C => 3,
        };
        if self.landlock < least {
            let have = if self.landlock == 0 { "none".into() } else { format!("version {}", self.landlock) };
            return Err(std::io::Error::other(format!(
                "the box needs Landlock (version {least}); this kernel has {have}"
            )));
        }
        let mut plans = self.plans.borrow_mut();
        if let Some((_, plan)) = plans.iter().find(|(known, _)| known == cage) {
            return Ok(plan.clone());
        }
        let plan = Rc::new(Plan::new(cage, self.landlock)?);
        plans.truncate(PLANS - 1);
        plans.insert(0, (cage.clone(), plan.clone()));
        Ok(plan)
    }

    /// Kills what is left of a command; how many could not be killed (another user's, or stuck in the kernel). Those are
    /// remembered, so that they hold nothing up again.
    fn sweep(&mut self, mark: &str) -> u32 {
        let began = Instant::now();
        let mut left = 0;
        loop {
            let (own, other, unsure) = self.strays(mark, &HashSet::new());
            // One that is just becoming another program shows no mark: a moment later it does.
            if own.is_empty() && unsure && began.elapsed() < MOMENT {
                std::thread::sleep(Duration::from_micros(200));
                continue;
            }
            self.doubtful |= other || unsure;
            if own.is_empty() {
                return left;
            }
            // All of it stands still before any of it dies: what runs on makes more.
            let mut still: HashSet<Pid> = HashSet::new();
            let mut next = own;
            while !next.is_empty() && began.elapsed() < PATIENCE {
                still.extend(next.into_iter().flat_map(tree::whole));
                next = self.strays(mark, &still).0;
            }
            tree::kill(&still.iter().copied().collect::<Vec<_>>());
            for pid in still {
                // Those that are not our own children are whoever's made them, or ours a moment later.
                if !wait_for(pid, PATIENCE.saturating_sub(began.elapsed())) {
                    self.stubborn.insert(pid);
                    left += 1;
                }
            }
        }
    }

    /// Children of ours that no live command is: those that are surely of the one with this mark, whether there are others, and
    /// whether there are some of which that cannot be told. Those that are known already are left out.
    fn strays(&self, mark: &str, known: &HashSet<Pid>) -> (Vec<Pid>, bool, bool) {
        let old = |pid: &Pid| {
            self.live.contains_key(pid)
                || self.stubborn.contains(pid)
                || self.leaving.contains(pid)
                || known.contains(pid)
        };
        // While other commands run, only what bears this one's mark is surely its own.
        let alone = self.live.is_empty();
        let (mut own, mut other, mut unsure) = (Vec::new(), false, false);
        for pid in tree::children_of_one_thread(self.me).unwrap_or_default().into_iter().filter(|pid| !old(pid)) {
            match if alone { Some(true) } else { tree::has_mark(pid, mark) } {
                Some(true) => own.push(pid),
                Some(false) => other = true,
                None => unsure = true,
            }
        }
        (own, other, unsure)
    }

    /// The program is gone: nothing of it stays.
    fn end_everything(&mut self) {
        let began = Instant::now();
        for pid in self.live.keys() {
            let _ = rustix::process::kill_process_group(*pid, Signal::KILL);
        }
        while began.elapsed() < PATIENCE {
            let children = tree::children_of_one_thread(self.me).unwrap_or_default();
            if matches!(rustix::process::wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD)) {
                return; // nobody is left
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

/// Waits for a process that was killed; whether it is gone.
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
