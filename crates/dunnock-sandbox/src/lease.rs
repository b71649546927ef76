//! Leases on files: whether somebody writes to one right now, and keeping others waiting who would open it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// `F_SETSIG`, which the library does not name.
const SET_SIGNAL: libc::c_int = 10;

#[expect(unsafe_code, reason = "there is no other way to ask for a lease")]
fn lease(file: &File, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: plain system calls on a descriptor that lives as long as `file`; none takes a pointer.
    unsafe {
        let fd = file.as_raw_fd();
        // Should somebody want to open it meanwhile we are told by a signal; this one means nothing to anybody.
        if libc::fcntl(fd, SET_SIGNAL, libc::SIGURG) < 0 || libc::fcntl(fd, libc::F_SETLEASE, kind) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether any program has this file, which was opened to be read, open for writing. The kernel tells it by refusing a lease.
///
/// # Errors
/// When it does not tell: the file is another user's, or its file system has no leases.
pub fn is_open_for_writing(file: &File) -> io::Result<bool> {
    match lease(file, libc::F_RDLCK) {
        Ok(()) => lease(file, libc::F_UNLCK).map(|()| false),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Keeps whoever opens this file waiting until it is closed here; nobody else may have it open.
///
/// # Errors
/// When somebody has, or its file system has no leases.
pub fn keep_waiting(file: &File) -> io::Result<()> {
    lease(file, libc::F_WRLCK)
}
