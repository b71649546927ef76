//! Sandbox escapes: what `dunnock sandbox prove` tries, each in its own process, with and without
//! the sandbox.
//!
//! Success is not reported by the attack but observed from outside: a secret in its output, a
//! changed file, a listener that was reached ([`Shows`]). Each attack is harmless if it succeeds:
//! it only touches what was made for it.

use std::ffi::CString;
use std::io::{self, Error, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::PathBuf;

/// How success is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// It printed a secret.
    Secret,
    /// Something outside changed.
    Change,
    /// It reached a listener outside.
    Reach,
    /// The call itself acts on something outside, so its success is enough.
    Touch,
    /// The call succeeded and gained a kernel facility, but nothing outside yet.
    Gain,
}

/// The targets of the attacks, from environment variables.
pub(crate) struct Place {
    pub(crate) outside: PathBuf,
    pub(crate) work: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) port: u16,
    pub(crate) port6: u16,
    pub(crate) udp: u16,
    pub(crate) victim: i32,
    pub(crate) address: usize,
    pub(crate) key: i32,
    pub(crate) name: String,
}

/// One escape attempt.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) shows: Shows,
    pub(crate) run: fn(&Place) -> io::Result<()>,
}

impl Place {
    pub(crate) fn from_env() -> Option<Self> {
        let text = |name: &str| std::env::var(format!("PROBE_{name}")).ok();
        let number = |name: &str| text(name)?.parse::<i64>().ok();
        Some(Self {
            outside: text("OUTSIDE")?.into(),
            work: text("WORK")?.into(),
            home: text("HOME")?.into(),
            port: number("PORT")? as u16,
            port6: number("PORT6")? as u16,
            udp: number("UDP")? as u16,
            victim: number("VICTIM")? as i32,
            address: number("ADDRESS")? as usize,
            key: number("KEY")? as i32,
            name: text("NAME")?,
        })
    }
    fn secret(&self) -> PathBuf {
        self.outside.join("secret.txt")
    }
    fn victim_file(&self) -> PathBuf {
        self.outside.join("victim.txt")
    }
    fn proc(&self, name: &str) -> PathBuf {
        format!("/proc/{}/{name}", self.victim).into()
    }
}

fn c(path: &std::path::Path) -> CString {
    use std::os::unix::ffi::OsStrExt as _;
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

fn ok(done: i64) -> io::Result<i64> {
    if done < 0 { Err(Error::last_os_error()) } else { Ok(done) }
}

/// Prints a file.
fn show(path: PathBuf) -> io::Result<()> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(4096).read_to_end(&mut bytes)?;
    io::stdout().write_all(&bytes)
}

fn put(path: PathBuf) -> io::Result<()> {
    std::fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(b"taken over\n")
}

#[expect(unsafe_code, reason = "attacks are system calls")]
fn open(path: PathBuf, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: the path is NUL-terminated, and the descriptor is new.
    unsafe {
        Ok(OwnedFd::from_raw_fd(
            ok(libc::open(c(&path).as_ptr(), flags | libc::O_CLOEXEC).into())? as i32
        ))
    }
}

#[expect(unsafe_code, reason = "attacks are system calls")]
fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: only numbers are passed, and the descriptor is new.
    unsafe { Ok(OwnedFd::from_raw_fd(ok(libc::socket(family, kind, protocol).into())? as i32)) }
}

/// Reaches a port on the machine's loopback.
#[expect(unsafe_code, reason = "attacks are system calls")]
fn reach(kind: i32, protocol: i32, port: u16) -> io::Result<()> {
    let socket = socket(libc::AF_INET, kind, protocol)?;
    // SAFETY: the address is passed with its size, the byte with its length.
    unsafe {
        let mut to: libc::sockaddr_in = std::mem::zeroed();
        to.sin_family = libc::AF_INET as u16;
        to.sin_port = port.to_be();
        to.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let size = size_of::<libc::sockaddr_in>() as u32;
        ok(libc::connect(socket.as_raw_fd(), (&raw const to).cast(), size).into())?;
        ok(libc::send(socket.as_raw_fd(), c"x".as_ptr().cast(), 1, libc::MSG_NOSIGNAL) as i64)
            .map(drop)
    }
}

/// Reaches another program's socket by its name; an abstract name starts with a NUL.
#[expect(unsafe_code, reason = "attacks are system calls")]
fn reach_unix(kind: i32, name: &[u8]) -> io::Result<()> {
    let socket = socket(libc::AF_UNIX, kind, 0)?;
    // SAFETY: the name is cut to the available space; the address is passed with its size.
    unsafe {
        let mut to: libc::sockaddr_un = std::mem::zeroed();
        to.sun_family = libc::AF_UNIX as u16;
        for (space, byte) in to.sun_path.iter_mut().zip(name) {
            *space = *byte as libc::c_char;
        }
        ok(libc::connect(socket.as_raw_fd(), (&raw const to).cast(), (2 + name.len()) as u32)
            .into())?;
        ok(libc::send(socket.as_raw_fd(), c"x".as_ptr().cast(), 1, libc::MSG_NOSIGNAL) as i64)
            .map(drop)
    }
}

fn path_bytes(path: PathBuf) -> Vec<u8> {
    c(&path).into_bytes_with_nul()
}

macro_rules! call {
    ($($call:tt)*) => {{
        #[expect(unsafe_code, reason = "attacks are system calls")]
        // SAFETY: paths are NUL-terminated and live until the call returns; everything else is a
        // number or a local value.
        let done = unsafe { $($call)* };
        ok(done as i64)
    }};
}

/// Swaps a folder and a symlink while creating files below them; a win shows as a file outside.
fn race(p: &Place) -> io::Result<()> {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (name, link, folder) =
        (p.work.join("race"), p.work.join("race-link"), p.work.join("race-folder"));
    std::fs::create_dir_all(&folder)?;
    let _ = std::os::unix::fs::symlink(&p.outside, &link);
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let (seen, at) = (stop.clone(), name.clone());
    let swap = std::thread::spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            for from in [&link, &folder] {
                let _ = std::fs::rename(from, &at);
                let _ = std::fs::rename(&at, from);
            }
        }
    });
    for _ in 0..20_000 {
        let _ = std::fs::File::create(name.join("won"));
    }
    stop.store(true, Ordering::Relaxed);
    let _ = swap.join();
    Ok(())
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the 32-bit gate has no wrapper")]
fn int80() -> io::Result<()> {
    let done: i64;
    // SAFETY: socket(AF_INET, SOCK_STREAM, 0) through the 32-bit entry; rbx is saved by hand, since
    // the compiler reserves it.
    unsafe {
        std::arch::asm!("push rbx", "mov ebx, 2", "int 0x80", "pop rbx", inlateout("rax") 359i64 => done, in("rcx") 1i64, in("rdx") 0i64);
    }
    if (done as i32) < 0 { Err(Error::from_raw_os_error(-(done as i32))) } else { Ok(()) }
}
#[cfg(not(target_arch = "x86_64"))]
fn int80() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Types into a terminal of its own (TIOCSTI).
fn typing() -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = rustix::fs::open(ptsname(&ours, Vec::new())?, OFlags::RDWR, Mode::empty())?;
    let _ = rustix::process::setsid();
    let _ = rustix::process::ioctl_tiocsctty(&theirs);
    let done = call!(libc::ioctl(theirs.as_raw_fd(), 0x5412 as _, c"i".as_ptr())).map(drop);
    std::mem::forget(ours); // closing it would hang up on us
    done
}

#[expect(unsafe_code, reason = "attacks are system calls")]
fn shared_memory(p: &Place) -> io::Result<()> {
    // SAFETY: the segment is 64 bytes long, and that much is read.
    unsafe {
        let id = ok(libc::shmget(p.key, 64, 0).into())?;
        let at = libc::shmat(id as i32, std::ptr::null(), libc::SHM_RDONLY);
        if at as isize == -1 {
            return Err(Error::last_os_error());
        }
        io::stdout().write_all(std::slice::from_raw_parts(at.cast::<u8>(), 64))
    }
}

#[expect(unsafe_code, reason = "attacks are system calls")]
fn memory_of(p: &Place) -> io::Result<()> {
    let mut bytes = [0u8; 64];
    // SAFETY: 64 bytes are read into 64 bytes.
    unsafe {
        let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: 64 };
        let there = libc::iovec { iov_base: p.address as *mut _, iov_len: 64 };
        ok(libc::process_vm_readv(p.victim, &raw const here, 1, &raw const there, 1, 0) as i64)?;
    }
    io::stdout().write_all(&bytes)
}

fn file_memory_of(p: &Place) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    let mut bytes = [0u8; 64];
    let file = std::fs::OpenOptions::new().read(true).write(true).open(p.proc("mem"))?;
    file.read_exact_at(&mut bytes, p.address as u64)?;
    io::stdout().write_all(&bytes)
}

fn steal(p: &Place) -> io::Result<()> {
    let process = call!(libc::syscall(libc::SYS_pidfd_open, p.victim, 0))?;
    let stolen = call!(libc::syscall(libc::SYS_pidfd_getfd, process, 9, 0))?;
    let mut bytes = [0u8; 64];
    call!(libc::pread(stolen as i32, bytes.as_mut_ptr().cast(), 64, 0))?;
    io::stdout().write_all(&bytes)
}

fn by_handle(p: &Place) -> io::Result<()> {
    #[repr(C)]
    struct Handle {
        size: u32,
        kind: i32,
        bytes: [u8; 128],
    }
    let mut handle = Handle { size: 128, kind: 0, bytes: [0; 128] };
    let mut mount = 0i32;
    let path = c(&p.secret());
    call!(libc::syscall(
        libc::SYS_name_to_handle_at,
        libc::AT_FDCWD,
        path.as_ptr(),
        &raw mut handle,
        &raw mut mount,
        0
    ))?;
    let root = open(p.work.clone(), libc::O_RDONLY | libc::O_DIRECTORY)?;
    let file = call!(libc::syscall(
        libc::SYS_open_by_handle_at,
        root.as_raw_fd(),
        &raw mut handle,
        libc::O_RDONLY
    ))?;
    let mut bytes = [0u8; 64];
    call!(libc::pread(file as i32, bytes.as_mut_ptr().cast(), 64, 0))?;
    io::stdout().write_all(&bytes)
}

/// Creates a process in a new user namespace with clone3, which hides its flags behind a pointer.
#[expect(unsafe_code, reason = "attacks are system calls")]
fn hidden_flags() -> io::Result<()> {
    let mut args = [0u64; 11];
    args[0] = libc::CLONE_NEWUSER as u64;
    args[4] = libc::SIGCHLD as u64;
    // SAFETY: the child is a copy and exits at once.
    unsafe {
        let child = libc::syscall(libc::SYS_clone3, args.as_ptr(), 88);
        if child == 0 {
            libc::_exit(0);
        }
        ok(child).map(drop)
    }
}

fn limits_of(p: &Place) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: 1 << 40, rlim_max: 1 << 40 };
    call!(libc::prlimit(p.victim, libc::RLIMIT_FSIZE, &raw const limit, std::ptr::null_mut()))
        .map(drop)
}

fn disk() -> io::Result<()> {
    let known = ["/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/xvda", "/dev/mem"];
    let there = known
        .iter()
        .find(|path| std::path::Path::new(path).exists())
        .ok_or(io::ErrorKind::NotFound)?;
    open((*there).into(), libc::O_RDONLY).map(drop)
}

fn device(p: &Place) -> io::Result<()> {
    let path = p.work.join("a-disk");
    let made = call!(libc::mknod(c(&path).as_ptr(), libc::S_IFBLK | 0o600, libc::makedev(254, 0)));
    let opened = made.and_then(|_| open(path.clone(), libc::O_RDONLY).map(drop));
    let _ = std::fs::remove_file(path);
    opened
}

/// Every attack, in display order.
pub(crate) const ATTACKS: &[Attack] = {
    use Shows::{Change, Gain, Reach, Secret, Touch};
    const fn a(name: &'static str, shows: Shows, run: fn(&Place) -> io::Result<()>) -> Attack {
        Attack { name, shows, run }
    }
    &[
        a("read_secret", Secret, |p| show(p.secret())),
        a("write_outside", Change, |p| put(p.outside.join("new.txt"))),
        a("write_dotfile", Change, |p| put(p.home.join(".probe-profile"))),
        a("write_tmp", Change, |p| put(format!("/tmp/{}", p.name).into())),
        a("write_var_tmp", Change, |p| put(format!("/var/tmp/{}", p.name).into())),
        a("write_etc", Change, |p| put(format!("/etc/{}", p.name).into())),
        a("write_usr", Change, |p| put(format!("/usr/bin/{}", p.name).into())),
        a("write_shm", Change, |p| put(format!("/dev/shm/{}", p.name).into())),
        a("read_shadow", Touch, |_| show("/etc/shadow".into())),
        a("list_outside", Secret, |p| {
            std::fs::read_dir(&p.outside)?
                .flatten()
                .for_each(|e| drop(writeln!(io::stdout(), "{}", e.path().display())));
            Ok(())
        }),
        a("truncate_outside", Change, |p| {
            call!(libc::truncate(c(&p.victim_file()).as_ptr(), 0)).map(drop)
        }),
        a("unlink_outside", Change, |p| std::fs::remove_file(p.victim_file())),
        a("rename_out", Change, |p| {
            put(p.work.join("r.txt"))?;
            std::fs::rename(p.work.join("r.txt"), p.outside.join("r.txt"))
        }),
        a("rename_in", Change, |p| std::fs::rename(p.victim_file(), p.work.join("moved.txt"))),
        a("hardlink_in", Secret, |p| {
            std::fs::hard_link(p.secret(), p.work.join("hard"))?;
            show(p.work.join("hard"))
        }),
        a("symlink_read", Secret, |p| {
            let _ = std::os::unix::fs::symlink(p.secret(), p.work.join("soft"));
            show(p.work.join("soft"))
        }),
        a("symlink_write", Change, |p| {
            let _ =
                std::os::unix::fs::symlink(p.outside.join("through.txt"), p.work.join("soft-w"));
            put(p.work.join("soft-w"))
        }),
        a("symlink_dir_race", Change, race),
        a("proc_self_root", Secret, |p| {
            show(PathBuf::from(format!("/proc/self/root{}", p.secret().display())))
        }),
        a("proc_self_cwd", Secret, |_| show("/proc/self/cwd/../outside/secret.txt".into())),
        a("proc_1_root", Secret, |p| {
            show(PathBuf::from(format!("/proc/1/root{}", p.secret().display())))
        }),
        a("proc_victim_environ", Secret, |p| show(p.proc("environ"))),
        a("proc_victim_mem", Secret, file_memory_of),
        a("proc_victim_fd", Secret, |p| show(p.proc("fd/9"))),
        a("proc_victim_cwd", Secret, |p| show(p.proc("cwd/secret.txt"))),
        a("proc_victim_root", Secret, |p| show(p.proc(&format!("root{}", p.secret().display())))),
        a("proc_sys_write", Touch, |_| {
            open("/proc/sys/kernel/hostname".into(), libc::O_WRONLY).map(drop)
        }),
        a("proc_sysrq", Touch, |_| open("/proc/sysrq-trigger".into(), libc::O_WRONLY).map(drop)),
        a("sys_write", Touch, |_| {
            open("/sys/kernel/mm/transparent_hugepage/enabled".into(), libc::O_WRONLY).map(drop)
        }),
        a("inherited_fd", Secret, |_| {
            let mut bytes = [0u8; 64];
            call!(libc::pread(77, bytes.as_mut_ptr().cast(), 64, 0))?;
            io::stdout().write_all(&bytes)
        }),
        a("chmod_outside", Change, |p| {
            call!(libc::chmod(c(&p.victim_file()).as_ptr(), 0o777)).map(drop)
        }),
        a("chown_outside", Change, |p| {
            call!(libc::chown(c(&p.victim_file()).as_ptr(), libc::getuid(), libc::getgid()))?;
            call!(libc::chmod(c(&p.victim_file()).as_ptr(), 0o4755)).map(drop)
        }),
        a("utime_outside", Change, |p| {
            call!(libc::utimes(c(&p.victim_file()).as_ptr(), std::ptr::null())).map(drop)
        }),
        a("setxattr_outside", Change, |p| {
            let path = c(&p.victim_file());
            call!(libc::setxattr(path.as_ptr(), c"user.probe".as_ptr(), c"1".as_ptr().cast(), 1, 0))
                .map(drop)
        }),
        a("stat_secret", Gain, |p| std::fs::symlink_metadata(p.secret()).map(drop)),
        a("chdir_outside", Gain, |p| std::env::set_current_dir(&p.outside)),
        a("tcp_connect_lo", Reach, |p| reach(libc::SOCK_STREAM, 0, p.port)),
        a("tcp6_connect_lo", Reach, |p| {
            std::net::TcpStream::connect(("::1", p.port6))?.write_all(b"x")
        }),
        a("mptcp_connect_lo", Reach, |p| reach(libc::SOCK_STREAM, 262, p.port)),
        a("udp_send_lo", Reach, |p| reach(libc::SOCK_DGRAM, 0, p.udp)),
        a("raw_socket", Gain, |_| socket(libc::AF_INET, libc::SOCK_RAW, 1).map(drop)),
        a("packet_socket", Gain, |_| socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map(drop)),
        a("netlink_socket", Gain, |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, 0).map(drop)),
        a("vsock", Gain, |_| socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0).map(drop)),
        a("af_alg", Gain, |_| socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0).map(drop)),
        a("unix_path_connect", Reach, |p| {
            reach_unix(libc::SOCK_STREAM, &path_bytes(p.outside.join("s.sock")))
        }),
        a("unix_path_in_work", Reach, |p| {
            reach_unix(libc::SOCK_STREAM, &path_bytes(p.work.join("s.sock")))
        }),
        a("unix_datagram", Reach, |p| {
            reach_unix(libc::SOCK_DGRAM, &path_bytes(p.outside.join("d.sock")))
        }),
        a("unix_pair_datagram", Reach, |p| {
            let pair = rustix::net::socketpair(
                rustix::net::AddressFamily::UNIX,
                rustix::net::SocketType::DGRAM,
                rustix::net::SocketFlags::empty(),
                None,
            )?;
            let to = rustix::net::SocketAddrUnix::new(p.outside.join("d.sock"))?;
            rustix::net::sendto(&pair.0, b"x", rustix::net::SendFlags::empty(), &to)?;
            Ok(())
        }),
        a("unix_abstract", Reach, |p| {
            reach_unix(libc::SOCK_STREAM, format!("\0{}", p.name).as_bytes())
        }),
        a("x32_socket", Gain, |_| {
            call!(libc::syscall(0x4000_0000 + 41, libc::AF_INET, libc::SOCK_STREAM, 0)).map(drop)
        }),
        a("int80_socket", Gain, |_| int80()),
        a("ptrace_attach", Touch, |p| {
            call!(libc::ptrace(libc::PTRACE_SEIZE, p.victim, 0, 0)).map(drop)
        }),
        a("process_vm_readv", Secret, memory_of),
        a("pidfd_getfd", Secret, steal),
        a("kill_victim", Touch, |p| call!(libc::kill(p.victim, libc::SIGCONT)).map(drop)),
        a("pidfd_signal", Touch, |p| {
            let process = call!(libc::syscall(libc::SYS_pidfd_open, p.victim, 0))?;
            call!(libc::syscall(libc::SYS_pidfd_send_signal, process, libc::SIGCONT, 0, 0))
                .map(drop)
        }),
        a("setpriority_victim", Touch, |p| {
            call!(libc::setpriority(libc::PRIO_PROCESS as _, p.victim as u32, 19)).map(drop)
        }),
        a("prlimit_victim", Touch, limits_of),
        a("affinity_victim", Touch, |p| {
            let all = [0xffu8; 128];
            call!(libc::syscall(libc::SYS_sched_setaffinity, p.victim, 128, all.as_ptr())).map(drop)
        }),
        a("io_uring", Gain, |_| {
            let mut params = [0u8; 120];
            call!(libc::syscall(libc::SYS_io_uring_setup, 4, params.as_mut_ptr())).map(drop)
        }),
        a("unshare_userns", Gain, |_| {
            call!(libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)).map(drop)
        }),
        a("clone3_userns", Gain, |_| hidden_flags()),
        a("mount_tmpfs", Gain, |p| {
            let target = c(&p.work.join("mnt"));
            call!(libc::mount(
                c"none".as_ptr(),
                target.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                std::ptr::null()
            ))
            .map(drop)
        }),
        a("bind_mount", Gain, |p| {
            let (from, to) = (c(&p.outside), c(&p.work.join("mnt")));
            call!(libc::mount(
                from.as_ptr(),
                to.as_ptr(),
                std::ptr::null(),
                libc::MS_BIND,
                std::ptr::null()
            ))
            .map(drop)
        }),
        a("chroot", Gain, |p| call!(libc::chroot(c(&p.work).as_ptr())).map(drop)),
        a("open_by_handle", Secret, by_handle),
        a("mknod_dev", Touch, device),
        a("open_disk", Touch, |_| disk()),
        a("tiocsti", Gain, |_| typing()),
        a("shm_sysv", Secret, shared_memory),
        a("keyctl_session", Gain, |_| call!(libc::syscall(libc::SYS_keyctl, 0, -3, 0)).map(drop)),
        a("add_key", Gain, |_| {
            let (kind, name) = (c"user".as_ptr(), c"probe".as_ptr());
            call!(libc::syscall(libc::SYS_add_key, kind, name, name, 5, -2)).map(drop)
        }),
        a("bpf", Gain, |_| {
            let attr = [0u8; 128];
            match call!(libc::syscall(libc::SYS_bpf, 0, attr.as_ptr(), 128)) {
                // Any error but EPERM comes from the call itself, so it was not refused.
                Err(error) if error.raw_os_error() != Some(libc::EPERM) => Ok(()),
                other => other.map(drop),
            }
        }),
        a("perf_event", Gain, |_| {
            let mut attr = [0u8; 120];
            attr[4] = 120;
            attr[0] = 1; // PERF_TYPE_SOFTWARE: a software clock
            call!(libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), 0, -1, -1, 0)).map(drop)
        }),
        a("userfaultfd", Gain, |_| call!(libc::syscall(libc::SYS_userfaultfd, 1)).map(drop)),
        a("kernel_log", Gain, |_| call!(libc::syscall(libc::SYS_syslog, 10, 0, 0)).map(drop)),
        a("set_hostname", Touch, |_| {
            let mut name = [0u8; 65];
            call!(libc::gethostname(name.as_mut_ptr().cast(), 64))?;
            let length = name.iter().position(|b| *b == 0).unwrap_or(0);
            call!(libc::sethostname(name.as_ptr().cast(), length)).map(drop)
        }),
        a("setuid_nnp", Gain, |_| {
            let set = call!(libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0))?;
            if set == 1 { Err(Error::from_raw_os_error(libc::EPERM)) } else { Ok(()) }
        }),
        a("capabilities", Gain, |_| {
            let status = std::fs::read_to_string("/proc/self/status")?;
            let kept = status.lines().any(|l| {
                (l.starts_with("CapEff") || l.starts_with("CapPrm"))
                    && !l.ends_with("0000000000000000")
            });
            if kept { Ok(()) } else { Err(Error::from_raw_os_error(libc::EPERM)) }
        }),
    ]
};

/// Runs one attack: returns 0 if its calls succeeded, else its error.
pub(crate) fn run(name: &str) -> u8 {
    let Some(place) = Place::from_env() else { return 200 };
    let Some(attack) = ATTACKS.iter().find(|attack| attack.name == name) else { return 201 };
    match (attack.run)(&place) {
        Ok(()) => 0,
        Err(error) => error
            .raw_os_error()
            .and_then(|n| u8::try_from(n).ok())
            .filter(|n| *n > 0)
            .unwrap_or(202),
    }
}
