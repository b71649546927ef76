//! The program's side: starts the launcher on first use, and again if it dies.

use crate::launcher::MARK;
use crate::linux::SandboxSpec;
use crate::tree;
use crate::wire::{Ask, Bound, Bounds, KeepRequest, Probed, Program, Tell, receive, send};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc as unbounded, oneshot};

/// A command to run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// The program's path and its arguments.
    pub words: Vec<String>,
    /// Working directory.
    pub folder: String,
    /// The complete environment: nothing is inherited.
    pub env: Vec<(String, String)>,
    /// Whether the descriptors are a terminal, which becomes the command's controlling terminal.
    pub terminal: bool,
    /// Resource limits.
    pub bounds: Bounds,
    /// What it leaves running may continue when its own process has ended.
    pub lasting: bool,
    /// The sandbox; `None` runs the command without one.
    pub spec: Option<SandboxSpec>,
}

/// How a command ended. By then every process it started is dead, except after `Continues`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It ran and ended.
    Exited {
        /// Its exit code, unless a signal ended it.
        code: Option<i32>,
        /// The signal that ended it, if any.
        signal: Option<i32>,
        /// Processes it left behind that could not be killed: owned by another user, or stuck in
        /// the kernel.
        left: u32,
        /// The limit it was killed for exceeding, if any.
        over: Option<Bound>,
    },
    /// Its own process ended, and what it left running continues. Another `Ended` follows when
    /// that is gone.
    Continues {
        /// Its exit code, unless a signal ended it.
        code: Option<i32>,
        /// The signal that ended it, if any.
        signal: Option<i32>,
    },
    /// It was never started.
    Refused(String),
    /// The launcher died, and the command's own process with it. The state of its children is
    /// unknown.
    Lost,
}

/// What a launcher is called where a person may read of it.
const NAME: &str = "dunnock's launcher";

/// Starts commands through a launcher process.
pub struct Launcher {
    program: PathBuf,
    args: Vec<String>,
    next: AtomicU64,
    line: Mutex<Option<Arc<RunningLauncher>>>,
    /// Locks that the launcher holds; a replacement launcher gets them too.
    held: Mutex<HashMap<u64, File>>,
    /// The program is shutting down: no new launcher is started.
    stopped: AtomicBool,
}

/// A listener in a network that commands share.
pub struct NetworkListener {
    listener: std::net::TcpListener,
    line: Weak<RunningLauncher>,
}

impl NetworkListener {
    /// The listener, which does not block.
    ///
    /// # Errors
    /// If there are too many descriptors.
    pub fn listener(&self) -> io::Result<std::net::TcpListener> {
        self.listener.try_clone()
    }

    /// Whether the network is still there: it goes with the launcher that created it.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.line.upgrade().is_some_and(|line| lock(&line.child).is_some())
    }
}

/// A running launcher.
struct RunningLauncher {
    pid: Option<rustix::process::Pid>,
    socket: OwnedFd,
    waiting: Mutex<HashMap<u64, unbounded::UnboundedSender<Ended>>>,
    listing: Mutex<HashMap<u64, oneshot::Sender<Vec<Program>>>>,
    /// What commands left running, as it was last listed: process ids, and when they were started.
    listed: Mutex<HashMap<i32, u64>>,
    releasing: Mutex<HashMap<u64, mpsc::Sender<()>>>,
    creating: Mutex<HashMap<String, mpsc::Sender<io::Result<OwnedFd>>>>,
    probing: Mutex<Option<mpsc::Sender<Result<Probed, String>>>>,
    child: Mutex<Option<Child>>,
    /// It stays when this program ends, because something that it started is kept.
    keeps: AtomicBool,
    /// We have ended it.
    stopping: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Launcher {
    /// A launcher that runs this program with these arguments. Nothing is started yet.
    #[must_use]
    pub fn new(program: PathBuf, args: &[&str]) -> Self {
        let args = args.iter().map(|a| (*a).to_owned()).collect();
        let (line, held, stopped) = (Mutex::new(None), Mutex::default(), AtomicBool::new(false));
        Self { program, args, next: AtomicU64::new(1), line, held, stopped }
    }

    fn running_launcher(&self) -> io::Result<Arc<RunningLauncher>> {
        let mut line = lock(&self.line);
        if let Some(line) = line.as_ref() {
            return Ok(line.clone());
        }
        if self.stopped.load(Ordering::Acquire) {
            return Err(io::Error::other("the program is shutting down"));
        }
        let failed =
            |error: io::Error| io::Error::other(format!("the launcher cannot be started: {error}"));
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        for size in [&ours, &theirs] {
            let _ = rustix::net::sockopt::set_socket_send_buffer_size(size, 2 << 20);
        }
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .env_clear();
        let child = command.spawn().map_err(failed)?;
        drop(command); // closes their end of the socket
        let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        for (id, file) in lock(&self.held).iter() {
            let _ = dunnock_private::add_holder(file, child.id(), NAME);
            send(&ours, &Ask::Hold { id: *id }, &[file.as_fd()]).map_err(failed)?;
        }
        let made = Arc::new(RunningLauncher {
            pid,
            socket: ours,
            waiting: Mutex::default(),
            listing: Mutex::default(),
            listed: Mutex::default(),
            releasing: Mutex::default(),
            creating: Mutex::default(),
            probing: Mutex::default(),
            child: Mutex::new(Some(child)),
            keeps: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        });
        let reader = made.clone();
        std::thread::Builder::new()
            .name("launcher".into())
            .stack_size(128 << 10)
            .spawn(move || reader.listen())?;
        *line = Some(made.clone());
        Ok(made)
    }

    /// Starts a command. The last two descriptors are its stdout and stderr; one before them is its
    /// stdin.
    ///
    /// # Errors
    /// If no launcher can be started, or the command is too long to send.
    pub fn start(self: &Arc<Self>, run: Run, fds: Vec<OwnedFd>) -> io::Result<Running> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let Run { words, folder, env, terminal, bounds, lasting, spec } = run;
        let ask = Ask::Start { id, words, folder, env, terminal, bounds, lasting, spec };
        let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
        self.with_launcher(|line| {
            let (tell, ended) = unbounded::unbounded_channel();
            lock(&line.waiting).insert(id, tell);
            match send(&line.socket, &ask, &fds) {
                Ok(()) => Ok(Running { id, line: line.clone(), ended, kept: false }),
                Err(error) => {
                    lock(&line.waiting).remove(&id);
                    Err(error)
                }
            }
        })
    }

    /// Does something with the launcher. If it died since the last command, replaces it once.
    fn with_launcher<T>(
        &self,
        act: impl Fn(&Arc<RunningLauncher>) -> io::Result<T>,
    ) -> io::Result<T> {
        let line = self.running_launcher()?;
        match act(&line) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                ) =>
            {
                // Another thread may have replaced it already.
                let mut now = lock(&self.line);
                if now.as_ref().is_some_and(|now| Arc::ptr_eq(now, &line)) {
                    *now = None;
                }
                drop(now);
                act(&self.running_launcher()?)
            }
            done => done,
        }
    }

    /// Finds the strongest sandbox that works, at this level or below, by actually creating each.
    ///
    /// # Errors
    /// If that cannot be found out: the launcher cannot be started, dies or does not report, or
    /// something is short. It says nothing about this machine.
    pub fn probe(&self, spec: SandboxSpec) -> io::Result<Probed> {
        let line = self.running_launcher()?;
        let (tell, receiver) = mpsc::channel();
        *lock(&line.probing) = Some(tell);
        let died = "the process that starts commands ended while it checked the sandbox";
        let sent = send(&line.socket, &Ask::Probe { spec }, &[]).map_err(|_| died.to_owned());
        let probed = sent.and_then(|()| {
            receiver.recv_timeout(Duration::from_secs(10)).map_err(|error| match error {
                mpsc::RecvTimeoutError::Disconnected => died.to_owned(),
                mpsc::RecvTimeoutError::Timeout => {
                    if let Some(pid) = line.pid {
                        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                    }
                    "the check took more than 10 s".to_owned()
                }
            })
        });
        if probed.is_err() {
            // It is gone. The next one starts anew, unless another thread has started it.
            let mut now = lock(&self.line);
            if now.as_ref().is_some_and(|now| Arc::ptr_eq(now, &line)) {
                *now = None;
            }
        }
        probed.and_then(|probed| probed).map_err(io::Error::other)
    }

    /// Creates the shared network of this name anew, with a listener on its loopback interface:
    /// what is connected to there, in commands that share the network, arrives here.
    ///
    /// # Errors
    /// If the launcher cannot be started or dies, or no network can be created.
    pub fn listen(&self, name: &str) -> io::Result<NetworkListener> {
        let (line, receiver) = self.with_launcher(|line| {
            let (tell, receiver) = mpsc::channel();
            lock(&line.creating).insert(name.to_owned(), tell);
            send(&line.socket, &Ask::Listen { name: name.to_owned() }, &[])?;
            Ok((line.clone(), receiver))
        })?;
        let created = receiver.recv_timeout(Duration::from_secs(10));
        lock(&line.creating).remove(name);
        let silent = |_| io::Error::other("the process that starts commands does not answer");
        let listener = created.map_err(silent)??;
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        Ok(NetworkListener { listener, line: Arc::downgrade(&line) })
    }

    /// Drops the shared network of this name; no command needs it any more.
    pub fn leave(&self, name: &str) {
        if let Some(line) = lock(&self.line).as_ref() {
            let _ = send(&line.socket, &Ask::Leave { name: name.to_owned() }, &[]);
        }
    }

    /// Stops the launcher and every running command. Waits a short time for it to exit.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let Some(line) = lock(&self.line).take() else { return };
        line.stopping.store(true, Ordering::Release);
        let _ = rustix::net::shutdown(&line.socket, rustix::net::Shutdown::Write);
        let began = Instant::now();
        while line.child.try_lock().map_or(true, |child| child.is_some()) {
            if began.elapsed() > Duration::from_millis(120) {
                // It is stopped or stuck: kill it; the commands' own processes die with it.
                if let Some(pid) = line.pid.filter(|_| !line.keeps.load(Ordering::Acquire)) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Gives the launcher a lock to hold until every started process is dead, even if this process
    /// dies first.
    ///
    /// # Errors
    /// If no launcher can be started.
    pub fn hold(self: &Arc<Self>, file: &File) -> io::Result<Held> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let line = self.running_launcher()?;
        lock(&self.held).insert(id, file.try_clone()?);
        // If this process dies, others can see who has the lock.
        if let Some(pid) = line.pid {
            let _ =
                dunnock_private::add_holder(file, pid.as_raw_nonzero().get().cast_unsigned(), NAME);
        }
        // If this fails, the launcher is dead; its replacement gets the lock from `held`.
        let _ = send(&line.socket, &Ask::Hold { id }, &[file.as_fd()]);
        Ok(Held { id, launcher: self.clone() })
    }
}

impl Drop for Launcher {
    /// Ends the launcher. Dropping the socket is not enough: the reader thread keeps it open.
    fn drop(&mut self) {
        if let Some(line) = lock(&self.line).take() {
            line.stopping.store(true, Ordering::Release);
            let _ = rustix::net::shutdown(&line.socket, rustix::net::Shutdown::Write);
        }
    }
}

impl RunningLauncher {
    /// Forwards the launcher's messages until it is gone.
    fn listen(&self) {
        let mut buffer = Vec::new();
        while let Ok(Some((tell, mut fds))) = receive::<Tell>(&self.socket, &mut buffer) {
            let (id, ended) = match tell {
                Tell::Released { id } => {
                    lock(&self.releasing).remove(&id);
                    continue;
                }
                Tell::Probed(probed) => {
                    if let Some(asked) = lock(&self.probing).take() {
                        let _ = asked.send(probed);
                    }
                    continue;
                }
                Tell::Listens { name, created } => {
                    if let Some(asked) = lock(&self.creating).remove(&name) {
                        let missing = || io::Error::other("no listener came with the network");
                        let listener = created.map_err(io::Error::other);
                        let _ = asked.send(listener.and_then(|()| fds.pop().ok_or_else(missing)));
                    }
                    continue;
                }
                Tell::Listed { id, programs } => {
                    let all = programs.iter().map(|program| (program.pid, program.started));
                    lock(&self.listed).extend(all);
                    if let Some(asked) = lock(&self.listing).remove(&id) {
                        let _ = asked.send(programs);
                    }
                    continue;
                }
                Tell::Continues { id, code, signal } => {
                    if let Some(waiting) = lock(&self.waiting).get(&id) {
                        let _ = waiting.send(Ended::Continues { code, signal });
                    }
                    continue;
                }
                Tell::Refused { id, why } => (id, Ended::Refused(why)),
                Tell::Ended { id, code, signal, left, over } => {
                    (id, Ended::Exited { code, signal, left, over })
                }
            };
            if let Some(waiting) = lock(&self.waiting).remove(&id) {
                let _ = waiting.send(ended);
            }
        }
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        if let Some(child) = lock(&self.child).as_mut() {
            // One that keeps something closes the socket and stays, if we have ended it.
            let stays = self.keeps.load(Ordering::Acquire) && self.stopping.load(Ordering::Acquire);
            let ended = if stays { child.try_wait().ok().flatten() } else { child.wait().ok() };
            if ended.is_some_and(|status| status.signal().is_some()) {
                // Somebody killed it. What it would have ended shows its mark.
                tree::kill_marked(&format!("{MARK}={}-", child.id()));
                // What has cleared its environment was listed when its call ended.
                for (pid, started) in lock(&self.listed).drain() {
                    tree::kill_started(pid, started);
                }
            }
        }
        lock(&self.child).take(); // reaped: `stop` waits for this
        lock(&self.waiting).clear(); // pending commands end as `Lost`
        lock(&self.listing).clear();
        lock(&self.releasing).clear();
        lock(&self.creating).clear();
        lock(&self.probing).take();
    }
}

/// A running command.
pub struct Running {
    id: u64,
    line: Arc<RunningLauncher>,
    ended: unbounded::UnboundedReceiver<Ended>,
    /// It continues when this program ends.
    kept: bool,
}

impl Running {
    /// Sends SIGTERM to its process group.
    pub fn end(&self) {
        let _ = send(&self.line.socket, &Ask::End { id: self.id }, &[]);
    }
    /// Kills it and everything it started.
    pub fn kill(&self) {
        let _ = send(&self.line.socket, &Ask::Kill { id: self.id }, &[]);
    }
    /// Waits until it has ended.
    pub async fn ended(&mut self) -> Ended {
        self.ended.recv().await.unwrap_or(Ended::Lost)
    }
    /// It keeps running in the background. If it is kept when this program ends, `streams` are our
    /// ends of its streams: the launcher reads what it writes from then on.
    pub fn background(&mut self, kept: Option<KeepRequest>, streams: &[OwnedFd]) {
        self.kept = kept.is_some();
        let streams: Vec<_> = streams.iter().map(|fd| fd.as_fd()).collect();
        self.line.keeps.fetch_or(kept.is_some(), Ordering::AcqRel);
        let _ = send(&self.line.socket, &Ask::Background { id: self.id, kept }, &streams);
    }
    /// Lists its running programs.
    #[must_use]
    pub fn lister(&self) -> Lister {
        Lister { id: self.id, line: self.line.clone() }
    }
    /// Lets go of it: it continues, and nobody waits for it.
    pub fn release(self) {
        lock(&self.line.waiting).remove(&self.id);
    }
}

/// Lists the running programs of a command.
pub struct Lister {
    id: u64,
    line: Arc<RunningLauncher>,
}

impl Lister {
    /// The running programs, as far as the launcher can tell.
    pub async fn programs(&self) -> Vec<Program> {
        let (tell, answer) = oneshot::channel();
        lock(&self.line.listing).insert(self.id, tell);
        let sent = send(&self.line.socket, &Ask::List { id: self.id }, &[]);
        let listed = tokio::time::timeout(Duration::from_secs(2), answer);
        let programs = if sent.is_ok() { listed.await.ok().and_then(Result::ok) } else { None };
        lock(&self.line.listing).remove(&self.id);
        programs.unwrap_or_default()
    }
}

impl Drop for Running {
    /// Kills a command that no one waits for any more, unless it is kept.
    fn drop(&mut self) {
        if lock(&self.line.waiting).remove(&self.id).is_some() && !self.kept {
            self.kill();
        }
    }
}

/// A lock held by the launcher.
pub struct Held {
    id: u64,
    launcher: Arc<Launcher>,
}

impl Drop for Held {
    /// Waits for the release, so that the next process finds the lock free.
    fn drop(&mut self) {
        lock(&self.launcher.held).remove(&self.id);
        let Some(line) = lock(&self.launcher.line).clone() else { return };
        let (done, released) = mpsc::channel();
        lock(&line.releasing).insert(self.id, done);
        if send(&line.socket, &Ask::Release { id: self.id }, &[]).is_ok() {
            let _ = released.recv_timeout(Duration::from_millis(500)); // returns early when the sender is dropped
        }
    }
}
