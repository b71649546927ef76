//! Private networks that several sandboxes share.
//!
//! Invariant: as in `child.rs`, the child that creates a network only makes system calls on prepared
//! data.

use super::calls::{listen_on_loopback, loopback, send_descriptor};
use super::child::{LISTENER, LOOPBACK, STACK, UID_MAP, fail, with_number, write_to};
use libc::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

/// A private network that several sandboxes share. The descriptors keep it alive, with the user
/// namespace that owns it.
pub(crate) struct Net {
    pub(super) user: OwnedFd,
    pub(super) net: OwnedFd,
}

/// Creates a network that sandboxes can share. With a socket, a listener on its loopback interface
/// is sent over it.
#[expect(unsafe_code, reason = "clone has no safe wrapper")]
pub(crate) fn network(listener: Option<&OwnedFd>) -> io::Result<Net> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let maps = [format!("{user} {user} 1").into_bytes(), format!("{group} {group} 1").into_bytes()];
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let launcher = rustix::process::getpid().as_raw_nonzero().get();
    let listener = listener.map_or(-1, |socket| socket.as_raw_fd());
    let holder = Holder { maps: &maps, ready: write.as_raw_fd(), listener, launcher };
    let mut stack = vec![0u128; STACK / 16];
    let top = stack.as_mut_ptr().cast::<u8>().wrapping_add(STACK);
    let argument = std::ptr::from_ref(&holder).cast_mut().cast::<c_void>();
    // SAFETY: the child has a copy of everything, including its own stack.
    let pid = unsafe {
        libc::clone(
            hold_network,
            top.cast(),
            libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::SIGCHLD,
            argument,
        )
    };
    let failed = |what: &str, error: io::Error| {
        let text = format!("the sandbox could not be created: {what}: {error}");
        with_number(text, error.raw_os_error().unwrap_or(0))
    };
    let pid = rustix::process::Pid::from_raw(pid.max(0))
        .ok_or_else(|| failed("clone", io::Error::last_os_error()))?;
    drop(write);
    let made = (|| {
        let mut word = [0; 8];
        let have = rustix::io::read(&read, &mut word)?;
        let number = i32::from_ne_bytes([word[4], word[5], word[6], word[7]]);
        if have != 8 {
            // It was killed: that says nothing about this machine.
            return Err(failed("network", io::Error::from_raw_os_error(libc::EAGAIN)));
        }
        if word[0] != 0 {
            return Err(failed("network", io::Error::from_raw_os_error(number)));
        }
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
        let open = |name: &str| {
            rustix::fs::open(
                format!("/proc/{}/ns/{name}", pid.as_raw_nonzero()),
                flags,
                rustix::fs::Mode::empty(),
            )
        };
        Ok(Net { user: open("user")?, net: open("net")? })
    })();
    // From now on the descriptors keep the namespaces alive.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
    made
}

struct Holder<'a> {
    maps: &'a [Vec<u8>; 2],
    ready: RawFd,
    /// Where to send a listener in the network, if one is wanted.
    listener: RawFd,
    launcher: i32,
}

/// Lives until the descriptors of its network namespace have been opened.
#[expect(unsafe_code, reason = "runs in a child: only system calls")]
extern "C" fn hold_network(argument: *mut c_void) -> c_int {
    // SAFETY: `network` passes a `Holder`, of which this process has a copy; plain system calls on
    // it.
    unsafe {
        let holder = &*argument.cast::<Holder<'_>>();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != holder.launcher {
            libc::_exit(127); // the launcher died before the call above took effect
        }
        // Whatever happens to this process, it holds no lock and no socket of the launcher.
        let mut from = 0;
        let ready = holder.ready;
        let other = if holder.listener < 0 { ready } else { holder.listener };
        for own in [ready.min(other), ready.max(other)].map(i32::cast_unsigned) {
            if own > from {
                libc::syscall(libc::SYS_close_range, from, own - 1, 0u32);
            }
            from = own + 1;
        }
        libc::syscall(libc::SYS_close_range, from, u32::MAX, 0u32);
        libc::prctl(libc::PR_SET_DUMPABLE, 1);
        write_to(c"/proc/self/setgroups", b"deny");
        if write_to(c"/proc/self/uid_map", &holder.maps[0]) < 0 {
            fail(holder.ready, UID_MAP);
        }
        if write_to(c"/proc/self/gid_map", &holder.maps[1]) < 0 {
            fail(holder.ready, UID_MAP);
        }
        if loopback() < 0 {
            fail(holder.ready, LOOPBACK);
        }
        if holder.listener >= 0 {
            let socket = listen_on_loopback();
            if socket < 0 || send_descriptor(holder.listener, socket) < 0 {
                fail(holder.ready, LISTENER);
            }
            libc::close(socket);
        }
        let numbers = [0, 0];
        libc::write(holder.ready, numbers.as_ptr().cast(), 8);
        loop {
            libc::pause();
        }
    }
}
