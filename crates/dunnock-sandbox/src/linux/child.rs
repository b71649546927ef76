//! Creates a child process and runs it up to exec.
//!
//! Levels A and B: the child is the first process (init) of its own process namespace. It sets up
//! the sandbox, starts the command, reaps orphans, reports how the command ended, and exits; the
//! kernel then kills everything else in the namespace. If what the command leaves running may
//! continue, it exits only when nothing is left. Level C and no sandbox: the child becomes the
//! command.
//!
//! Invariant: from clone to exec the child allocates nothing, takes no lock and does not panic; it
//! only makes system calls on prepared data. A call that fails is reported, and the child exits.

use super::calls::{loopback, send_descriptor};
use super::network::Net;
use super::plan::{MountStep, Plan};
use super::{Isolation, landlock};
use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::rc::Rc;

/// Everything that is needed to start a program.
pub(crate) struct Ready {
    program: CString,
    words: Pointers,
    env: Pointers,
    folder: CString,
    fds: [OwnedFd; 3],
    terminal: bool,
    /// RLIMIT_NPROC for the command: the most processes this user may have.
    pub(crate) processes: Option<u64>,
    /// The nice value this program was started with; the launcher may have changed its own.
    pub(crate) nice: c_int,
    /// What the command leaves running may continue.
    pub(crate) lasting: bool,
    plan: Option<Rc<Plan>>,
    /// The network that it shares with other sandboxes.
    pub(crate) join: Option<Rc<Net>>,
}

/// Strings, and the null-terminated pointer array that execve needs.
struct Pointers {
    _texts: Vec<CString>,
    list: Vec<*const c_char>,
}

impl Pointers {
    fn new(texts: Vec<CString>) -> Self {
        let list = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Self { _texts: texts, list }
    }
}

impl Ready {
    pub(crate) fn new(
        words: &[String],
        env: Vec<(String, String)>,
        folder: &str,
        fds: [OwnedFd; 3],
        terminal: bool,
        plan: Option<Rc<Plan>>,
    ) -> io::Result<Self> {
        let program = CString::new(words.first().map_or("", String::as_str))?;
        let words = words.iter().map(|w| CString::new(w.as_str())).collect::<Result<_, _>>()?;
        let env = env
            .into_iter()
            .map(|(k, v)| CString::new(format!("{k}={v}")))
            .collect::<Result<_, _>>()?;
        let (words, env, folder) =
            (Pointers::new(words), Pointers::new(env), CString::new(folder)?);
        Ok(Self {
            program,
            words,
            env,
            folder,
            fds,
            terminal,
            processes: None,
            nice: 0,
            lasting: false,
            plan,
            join: None,
        })
    }
}

/// What a child reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The program was started; its wait status, if the child is not the program itself.
    Began(Option<i32>),
    /// The same, and only the sandbox's first process is left, which is about to exit.
    Over(i32),
    /// It ended, and what it left running continues.
    Continues(i32),
    /// It was not started; what failed, and the error number.
    Failed(String, i32),
}

/// An error with this text. Its kind says whether something is short at the moment.
pub(super) fn with_number(text: String, number: i32) -> io::Error {
    match is_shortage(number) {
        true => io::Error::new(io::ErrorKind::WouldBlock, text),
        false => io::Error::other(text),
    }
}

/// Whether an error says that something is short at the moment: processes, memory, descriptors. It
/// says nothing about what this machine can do.
pub(crate) fn is_shortage(number: i32) -> bool {
    matches!(number, libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE)
}

impl Fate {
    /// What the child has reported so far; `None` if nothing yet. A closed pipe means that the
    /// program was started.
    pub(crate) fn read(report: &OwnedFd) -> Option<Self> {
        let mut bytes = [0; 8];
        let have = match rustix::io::read(report, &mut bytes) {
            Ok(have) => have,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return None,
            Err(_) => 0,
        };
        let number = |at: usize| {
            bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, i32::from_ne_bytes)
        };
        Some(match (have, number(0)) {
            (0, _) => Self::Began(None),
            (8, 0) => Self::Began(Some(number(4))),
            (8, ALONE) => Self::Over(number(4)),
            (8, LEFT) => Self::Continues(number(4)),
            (8, what) => {
                let error = io::Error::from_raw_os_error(number(4));
                let what = usize::try_from(what)
                    .ok()
                    .and_then(|at| WHAT.get(at))
                    .copied()
                    .unwrap_or("unknown step");
                let text = if what == "execve" {
                    error.to_string()
                } else {
                    format!("the process or its sandbox could not be created: {what}: {error}")
                };
                Self::Failed(text, number(4))
            }
            _ => Self::Failed(
                "the process or its sandbox could not be created: its report is incomplete".into(),
                libc::EAGAIN,
            ),
        })
    }
}

/// Report code: the command ended and no other process is left in the sandbox.
const ALONE: i32 = -1;
/// Report code: the command ended, and other processes in the sandbox continue.
const LEFT: i32 = -2;

/// What can fail, indexed by report code.
const WHAT: &[&str] = &[
    "",
    "execve",
    "uid_map",
    "loopback",
    "private mounts",
    "open_tree",
    "mount_setattr",
    "tmpfs",
    "mkdir",
    "create or remove a file",
    "move_mount",
    "overlay",
    "proc",
    "devpts",
    "chdir",
    "file descriptors",
    "setsid",
    "controlling terminal",
    "no_new_privs",
    "landlock",
    "landlock rule",
    "landlock restriction",
    "seccomp",
    "capabilities",
    "clone",
    "parent death signal",
    "limits",
    "setns",
    "listen",
];
const EXECVE: i32 = 1;
pub(super) const UID_MAP: i32 = 2;
pub(super) const LOOPBACK: i32 = 3;
const PRIVATE: i32 = 4;
const OPEN_TREE: i32 = 5;
const MOUNT_SETATTR: i32 = 6;
const TMPFS: i32 = 7;
const MKDIR: i32 = 8;
const FILE: i32 = 9;
const MOVE_MOUNT: i32 = 10;
const OVERLAY: i32 = 11;
const PROC: i32 = 12;
const DEVPTS: i32 = 13;
const CHDIR: i32 = 14;
const DESCRIPTORS: i32 = 15;
const SETSID: i32 = 16;
const TERMINAL: i32 = 17;
const NO_NEW_PRIVS: i32 = 18;
const LANDLOCK: i32 = 19;
const LANDLOCK_RULE: i32 = 20;
const RESTRICT: i32 = 21;
const SECCOMP: i32 = 22;
const CAPABILITIES: i32 = 23;
const CLONE: i32 = 24;
const PARENT: i32 = 25;
const SETNS: i32 = 27;
pub(super) const LISTENER: i32 = 28;

/// Everything the child uses: borrowed, on the launcher's stack.
struct Within<'a> {
    ready: &'a Ready,
    /// Write end of the report pipe, and its read end.
    report: RawFd,
    read: RawFd,
    /// Where to send a descriptor of the sandbox's own files.
    files: RawFd,
    /// stdin, stdout and stderr of the command; their numbers are above those they replace.
    fds: [RawFd; 3],
    /// For the mounts that [`MountStep::Take`] clones.
    slots: *mut RawFd,
    /// Stack for the command, if the child is not the command itself; above it one for the
    /// sandbox's first process, if `join` creates that.
    stack: *mut u8,
    /// Pid of the sandbox's first process, if `join` created it.
    joined: *mut libc::pid_t,
    launcher: libc::pid_t,
}

pub(super) const STACK: usize = 64 << 10;

/// A started program.
pub(crate) struct Spawned {
    pub(crate) pid: rustix::process::Pid,
    /// The pipe on which it reports.
    pub(crate) report: OwnedFd,
    /// The socket on which it sends a descriptor of the sandbox's own files, if it has any.
    pub(crate) files: Option<OwnedFd>,
}

/// Starts a program.
#[expect(unsafe_code, reason = "clone has no safe wrapper")]
pub(crate) fn spawn(ready: &Ready) -> io::Result<Spawned> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    let sends = ready.plan.as_ref().is_some_and(|plan| plan.isolation == Isolation::A);
    let (files, sender) = sends
        .then(|| socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None))
        .transpose()?
        .unzip();
    let [input, out, err] = &ready.fds;
    let mut slots: Vec<RawFd> = vec![-1; ready.plan.as_ref().map_or(0, |plan| plan.slots)];
    let mut stacks = vec![0u128; 3 * STACK / 16];
    let mut joined: libc::pid_t = 0;
    let base = stacks.as_mut_ptr().cast::<u8>();
    let within = Within {
        ready,
        report: write.as_raw_fd(),
        read: read.as_raw_fd(),
        files: sender.as_ref().map_or(-1, |sender| sender.as_raw_fd()),
        fds: [input.as_raw_fd(), out.as_raw_fd(), err.as_raw_fd()],
        slots: slots.as_mut_ptr(),
        stack: base.wrapping_add(STACK),
        joined: &raw mut joined,
        launcher: rustix::process::getpid().as_raw_nonzero().get(),
    };
    let argument = std::ptr::from_ref(&within).cast_mut().cast::<c_void>();
    let isolation = ready.plan.as_deref().map(|plan| plan.isolation);
    let (first, flags): (extern "C" fn(*mut c_void) -> c_int, c_int) = match isolation {
        // Creates the sandbox's first process as a child of the launcher, and exits.
        Some(Isolation::A | Isolation::B) if ready.join.is_some() => {
            (join, libc::CLONE_VM | libc::CLONE_VFORK)
        }
        Some(isolation @ (Isolation::A | Isolation::B)) => {
            let mounts =
                if isolation == Isolation::A { libc::CLONE_NEWNS | libc::CLONE_NEWUTS } else { 0 };
            let net = if ready.plan.as_ref().is_some_and(|plan| plan.network) {
                0
            } else {
                libc::CLONE_NEWNET
            };
            (init, libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | mounts | net)
        }
        // The launcher is suspended, and shares its memory, until exec.
        Some(Isolation::C) | None => (command, libc::CLONE_VM | libc::CLONE_VFORK),
    };
    // SAFETY: the stack is ours, large enough and used by this child alone. Without CLONE_VM the
    // child has a copy of everything; with it, this thread is suspended until the child exits or
    // calls exec. The launcher has one thread, so no other thread holds a lock.
    #[cfg(test)]
    super::quiet::quiet(true);
    let pid = unsafe {
        libc::clone(first, base.wrapping_add(STACK).cast(), flags | libc::SIGCHLD, argument)
    };
    #[cfg(test)]
    super::quiet::quiet(false);
    if pid < 0 {
        let error = io::Error::last_os_error();
        return Err(match isolation {
            Some(_) => with_number(
                format!("the sandbox could not be created: clone: {error}"),
                error.raw_os_error().unwrap_or(0),
            ),
            None => error,
        });
    }
    drop(stacks);
    let mut pid = pid;
    if ready.join.is_some() && isolation.is_some_and(|isolation| isolation != Isolation::C) {
        let _ = rustix::process::waitpid(
            rustix::process::Pid::from_raw(pid),
            rustix::process::WaitOptions::empty(),
        );
        if joined <= 0 {
            drop(write);
            return Err(match Fate::read(&read) {
                Some(Fate::Failed(why, number)) => with_number(why, number),
                _ => with_number(
                    "the sandbox could not be created: its setup ended unexpectedly".into(),
                    libc::EAGAIN,
                ),
            });
        }
        pid = joined;
    }
    let pid =
        rustix::process::Pid::from_raw(pid).ok_or_else(|| io::Error::other("no such process"))?;
    Ok(Spawned { pid, report: read, files })
}

/// Reports what failed and exits the child.
#[expect(unsafe_code, reason = "plain system calls")]
pub(super) fn fail(report: RawFd, what: i32) -> ! {
    // SAFETY: reads this thread's errno, writes eight bytes of its own, and exits.
    unsafe {
        let numbers = [what, *libc::__errno_location()];
        libc::write(report, numbers.as_ptr().cast(), 8);
        libc::_exit(127)
    }
}

macro_rules! must {
    ($within:expr, $what:expr, $call:expr) => {
        if ($call) < 0 {
            fail($within.report, $what)
        }
    };
}

/// Enters an existing network and creates the sandbox's first process in it, as a child of the
/// launcher.
#[expect(unsafe_code, reason = "runs in a child that shares memory: only system calls")]
extern "C" fn join(argument: *mut c_void) -> c_int {
    // SAFETY: as in `command`: the launcher waits, and what it passed lives on its stack. `joined`
    // points to a variable meant to be written here.
    unsafe {
        let within = &*argument.cast::<Within<'_>>();
        let (Some(plan), Some(to)) = (&within.ready.plan, &within.ready.join) else {
            libc::_exit(127)
        };
        must!(within, SETNS, libc::setns(to.user.as_raw_fd(), libc::CLONE_NEWUSER));
        must!(within, SETNS, libc::setns(to.net.as_raw_fd(), libc::CLONE_NEWNET));
        let mounts =
            if plan.isolation == Isolation::A { libc::CLONE_NEWNS | libc::CLONE_NEWUTS } else { 0 };
        let flags =
            libc::CLONE_NEWPID | libc::CLONE_NEWIPC | mounts | libc::CLONE_PARENT | libc::SIGCHLD;
        let stack = within.stack.wrapping_add(2 * STACK);
        let pid = libc::clone(init, stack.cast(), flags, argument);
        must!(within, CLONE, pid);
        *within.joined = pid;
        libc::_exit(0)
    }
}

/// The first process of a sandbox.
#[expect(unsafe_code, reason = "runs in a child: only system calls")]
extern "C" fn init(argument: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes a `Within`, of which this process has a copy. All pointers in it were
    // made from live values and point into that copy. Each call below is a plain system call on
    // them.
    unsafe {
        let within = &*argument.cast::<Within<'_>>();
        let Some(plan) = &within.ready.plan else { libc::_exit(127) };
        // If the launcher dies, the kernel kills this process and thereby the whole sandbox.
        must!(within, PARENT, libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL));
        libc::close(within.read);
        let mut reader = libc::pollfd { fd: within.report, events: 0, revents: 0 };
        if libc::poll(&raw mut reader, 1, 0) > 0 {
            libc::_exit(127); // the launcher died before the call above took effect
        }
        must!(within, SETSID, libc::setsid());
        if within.ready.join.is_none() {
            // While a process is not dumpable, root owns its map files.
            libc::prctl(libc::PR_SET_DUMPABLE, 1);
            write_to(c"/proc/self/setgroups", b"deny");
            must!(within, UID_MAP, write_to(c"/proc/self/uid_map", &plan.uid_map));
            must!(within, UID_MAP, write_to(c"/proc/self/gid_map", &plan.gid_map));
            if !plan.network {
                must!(within, LOOPBACK, loopback());
            }
        }
        for step in &plan.steps {
            mount(within, step);
        }
        // Nothing in the sandbox may inspect or trace this process.
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        let (stack, argument) = (within.stack.wrapping_add(STACK), argument);
        // SAFETY: as in `spawn`: the child has its own stack, and this thread waits.
        let pid = libc::clone(
            command,
            stack.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            argument,
        );
        must!(within, CLONE, pid);
        // Close all but the report: readers of the output must see its end, and locks are for the
        // launcher to hold.
        let report = within.report as u32;
        must!(within, DESCRIPTORS, libc::syscall(libc::SYS_close_range, 0, report - 1, 0));
        must!(within, DESCRIPTORS, libc::syscall(libc::SYS_close_range, report + 1, u32::MAX, 0));
        let mut status = 0;
        loop {
            let gone = libc::waitpid(-1, &raw mut status, 0);
            if gone == pid || (gone < 0 && *libc::__errno_location() != libc::EINTR) {
                break;
            }
        }
        // If no process is left, report the end now: tearing down the namespaces takes longer than
        // most commands.
        let mut other = 0;
        let alone = libc::waitpid(-1, &raw mut other, libc::WNOHANG) < 0
            && *libc::__errno_location() == libc::ECHILD;
        let lasting = within.ready.lasting && !alone;
        let how = match (alone, lasting) {
            (true, _) => ALONE,
            (false, true) => LEFT,
            (false, false) => 0,
        };
        let numbers = [how, status];
        libc::write(within.report, numbers.as_ptr().cast(), 8);
        if lasting {
            // Orphans become children of this process, so no child means that nothing is left.
            while libc::waitpid(-1, &raw mut other, 0) >= 0
                || *libc::__errno_location() == libc::EINTR
            {}
        }
        libc::_exit(0)
    }
}

#[expect(unsafe_code, reason = "plain system calls")]
pub(super) fn write_to(path: &CStr, bytes: &[u8]) -> c_int {
    // SAFETY: the path is NUL-terminated, the bytes are passed with their length, and the
    // descriptor is closed once.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            return -1;
        }
        let done = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        libc::close(file);
        if done < 0 { -1 } else { 0 }
    }
}

/// `struct mount_attr` of the kernel.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user: u64,
}
const RDONLY: u64 = 1;
const NOSUID: u64 = 2;
const RECURSIVE: c_int = 0x8000;
const TREE_CLONE: c_int = 1;

#[expect(unsafe_code, reason = "plain system calls")]
fn mount(within: &Within<'_>, step: &MountStep) {
    let none = std::ptr::null::<c_char>();
    let empty = c"".as_ptr();
    let plain = libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: every path is NUL-terminated and outlives the call; every slot is below the number of
    // slots that were allocated; the attributes are passed with their size.
    unsafe {
        let close = |fd: c_int, path: *const c_char, flags: c_int| {
            let attr = MountAttr { set: RDONLY | NOSUID, clear: 0, propagation: 0, user: 0 };
            let size = size_of::<MountAttr>();
            libc::syscall(
                libc::SYS_mount_setattr,
                fd,
                path,
                flags | RECURSIVE,
                &raw const attr,
                size,
            )
        };
        let tmpfs = |path: &CStr, flags: u64, data: &CStr| {
            libc::mount(
                c"tmpfs".as_ptr(),
                path.as_ptr(),
                c"tmpfs".as_ptr(),
                flags,
                data.as_ptr().cast(),
            )
        };
        let was_there = || *libc::__errno_location() == libc::EEXIST;
        match step {
            MountStep::Private => {
                let flags = libc::MS_REC | libc::MS_PRIVATE;
                must!(
                    within,
                    PRIVATE,
                    libc::mount(none, c"/".as_ptr(), none, flags, std::ptr::null())
                );
            }
            MountStep::Take { path, slot } => {
                let flags = TREE_CLONE | libc::O_CLOEXEC | RECURSIVE | libc::AT_SYMLINK_NOFOLLOW;
                let tree = libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags);
                must!(within, OPEN_TREE, tree);
                *within.slots.add(*slot) = tree as RawFd;
            }
            MountStep::ReadOnly => {
                must!(within, MOUNT_SETATTR, close(libc::AT_FDCWD, c"/".as_ptr(), 0))
            }
            MountStep::Close { slot } => {
                must!(
                    within,
                    MOUNT_SETATTR,
                    close(*within.slots.add(*slot), empty, libc::AT_EMPTY_PATH)
                );
            }
            MountStep::Memory { path, data } => {
                must!(within, TMPFS, tmpfs(path, plain, data));
                let files = libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
                must!(within, FILE, files);
                must!(within, DESCRIPTORS, send_descriptor(within.files, files));
                libc::close(files);
            }
            MountStep::Part { path, mode } => {
                must!(within, MKDIR, libc::mkdir(path.as_ptr(), *mode));
                // The mode of mkdir is reduced by the umask.
                must!(within, MKDIR, libc::chmod(path.as_ptr(), *mode));
            }
            MountStep::Empty { path, data } => must!(within, TMPFS, tmpfs(path, plain, data)),
            MountStep::Void { path } => {
                must!(within, TMPFS, tmpfs(path, plain | libc::MS_RDONLY, c"mode=0000,size=4k"))
            }
            MountStep::Folder { path } => {
                if libc::mkdir(path.as_ptr(), 0o755) < 0 && !was_there() {
                    fail(within.report, MKDIR);
                }
            }
            MountStep::File { path } => {
                let file =
                    libc::open(path.as_ptr(), libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC, 0);
                must!(within, FILE, file);
                libc::close(file);
            }
            MountStep::Remove { path } => must!(within, FILE, libc::unlink(path.as_ptr())),
            MountStep::Put { slot, path } => {
                let tree = *within.slots.add(*slot);
                let done = libc::syscall(
                    libc::SYS_move_mount,
                    tree,
                    empty,
                    libc::AT_FDCWD,
                    path.as_ptr(),
                    4, /* from: empty path */
                );
                must!(within, MOVE_MOUNT, done);
                libc::close(tree);
            }
            MountStep::Layer { path, data } => {
                let kind = c"overlay".as_ptr();
                must!(
                    within,
                    OVERLAY,
                    libc::mount(kind, path.as_ptr(), kind, plain, data.as_ptr().cast())
                );
            }
            MountStep::Proc => {
                let flags = plain | libc::MS_NOEXEC | libc::MS_RDONLY;
                let done = libc::mount(
                    c"proc".as_ptr(),
                    c"/proc".as_ptr(),
                    c"proc".as_ptr(),
                    flags,
                    std::ptr::null(),
                );
                must!(within, PROC, done);
            }
            MountStep::Terminals => {
                let data = c"newinstance,ptmxmode=0666,mode=0620".as_ptr().cast();
                let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
                let done = libc::mount(
                    c"devpts".as_ptr(),
                    c"/dev/pts".as_ptr(),
                    c"devpts".as_ptr(),
                    flags,
                    data,
                );
                must!(within, DEVPTS, done);
            }
        }
    }
}

/// The process that becomes the command.
#[expect(unsafe_code, reason = "runs in a child that shares memory: only system calls")]
extern "C" fn command(argument: *mut c_void) -> c_int {
    // SAFETY: the parent is suspended, and the `Within` it passed lives on its stack. Each call
    // below is a plain system call on prepared data; the only shared memory written is this
    // thread's own stack and errno.
    unsafe {
        let within = &*argument.cast::<Within<'_>>();
        let ready = within.ready;
        let boxed = ready.plan.as_ref();
        let own_tree = boxed.is_some_and(|plan| plan.isolation != Isolation::C);
        if !own_tree {
            must!(within, PARENT, libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL));
            if libc::getppid() != within.launcher {
                libc::_exit(127);
            }
            must!(within, SETSID, libc::setsid());
        }
        hold(ready.processes, ready.nice);
        if ready.terminal {
            // A controlling terminal needs a session leader; in a process namespace only the first
            // process is one so far.
            if own_tree {
                must!(within, SETSID, libc::setsid());
            }
            must!(within, TERMINAL, libc::ioctl(within.fds[0], libc::TIOCSCTTY as _, 0));
        }
        must!(within, CHDIR, libc::chdir(ready.folder.as_ptr()));
        for (to, from) in within.fds.iter().enumerate() {
            must!(within, DESCRIPTORS, libc::dup2(*from, to as c_int));
        }
        // Everything else closes on exec, including the report pipe: that is how the launcher knows
        // that the program was started.
        must!(
            within,
            DESCRIPTORS,
            libc::syscall(libc::SYS_close_range, 3, u32::MAX, 4 /* on exec */)
        );
        if let Some(plan) = boxed {
            must!(within, NO_NEW_PRIVS, libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
            restrict(within, plan);
            must!(within, CAPABILITIES, without_capabilities());
            let program = libc::sock_fprog {
                len: plan.filter.len() as u16,
                filter: plan.filter.as_ptr().cast_mut(),
            };
            must!(
                within,
                SECCOMP,
                libc::syscall(libc::SYS_seccomp, 1 /* filter */, 0, &raw const program)
            );
        }
        if ready.program.is_empty() {
            libc::_exit(0); // a probe: only asks whether the sandbox can be created
        }
        // Restore the default: Rust ignores SIGPIPE.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::execve(ready.program.as_ptr(), ready.words.list.as_ptr(), ready.env.list.as_ptr());
        fail(within.report, EXECVE)
    }
}

/// Limits the command's resources. If a limit cannot be set, the command runs without it.
#[expect(unsafe_code, reason = "plain system calls")]
fn hold(processes: Option<u64>, nice: c_int) {
    // SAFETY: limits are read into and written from local values.
    unsafe {
        let lower = |resource, to: u64| {
            let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            if libc::getrlimit(resource, &raw mut now) == 0 {
                let limit =
                    libc::rlimit { rlim_cur: now.rlim_cur.min(to), rlim_max: now.rlim_max.min(to) };
                libc::setrlimit(resource, &raw const limit);
            }
        };
        if let Some(processes) = processes {
            // A last resort, for ordinary users: it counts all threads of the user, so it is set
            // high.
            lower(libc::RLIMIT_NPROC, processes);
        }
        lower(libc::RLIMIT_CORE, 0);
        // Under load, the launcher and the user's own programs take precedence.
        libc::setpriority(libc::PRIO_PROCESS, 0, nice + 10);
    }
}

#[expect(unsafe_code, reason = "plain system calls")]
fn restrict(within: &Within<'_>, plan: &Plan) {
    // With a mount namespace, the rules must be made after the mounts.
    let rules = match &plan.ruleset {
        Some(rules) => rules.as_raw_fd(),
        None => match landlock::ruleset(&plan.attr, &plan.rules) {
            Ok(rules) => rules,
            Err(what) => fail(
                within.report,
                if what == landlock::Failed::Ruleset { LANDLOCK } else { LANDLOCK_RULE },
            ),
        },
    };
    // SAFETY: passes a descriptor and a number.
    must!(within, RESTRICT, unsafe {
        libc::syscall(libc::SYS_landlock_restrict_self, rules, 0u32)
    });
}

/// Drops every capability, including those that an executed file could grant.
#[expect(unsafe_code, reason = "plain system calls")]
fn without_capabilities() -> c_int {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    // SAFETY: the header and the sets have the layout of this version of the call.
    unsafe {
        for capability in 0..64 {
            // Stops at the first capability that the kernel does not know, or at once without the
            // right to drop any; then there is nothing to drop.
            if libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 {
                break;
            }
        }
        let (header, none) = (Header { version: 0x2008_0522, pid: 0 }, [0u32; 6]);
        libc::syscall(libc::SYS_capset, &raw const header, &raw const none) as c_int
    }
}
