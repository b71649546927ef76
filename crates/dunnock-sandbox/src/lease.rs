//! File leases: find out whether a file is open for writing, and make others wait before they open
//! it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// `F_SETSIG`, which libc does not define.
const SET_SIGNAL: libc::c_int = 10;

#[expect(unsafe_code, reason = "there is no other way to ask for a lease")]
fn lease(file: &File, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: plain system calls on a descriptor that lives as long as `file`; none takes a
    // pointer.
    unsafe {
        let fd = file.as_raw_fd();
        // The kernel sends a signal if someone opens the file meanwhile; SIGURG is ignored by
        // default.
        if libc::fcntl(fd, SET_SIGNAL, libc::SIGURG) < 0
            || libc::fcntl(fd, libc::F_SETLEASE, kind) < 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether any process has this file, which was opened for reading, open for writing: then the
/// kernel refuses a lease.
///
/// # Errors
/// If the kernel does not say: the file belongs to another user, or its file system has no leases.
pub fn is_open_for_writing(file: &File) -> io::Result<bool> {
    match lease(file, libc::F_RDLCK) {
        Ok(()) => lease(file, libc::F_UNLCK).map(|()| false),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Blocks anyone who opens this file until it is closed here. No one else may have it open.
///
/// # Errors
/// If another process has it open, or its file system has no leases.
pub fn keep_waiting(file: &File) -> io::Result<()> {
    lease(file, libc::F_WRLCK)
}

/// Whether a process waits to open for writing what we make it wait for.
#[expect(unsafe_code, reason = "there is no other way to ask about a lease")]
pub fn is_awaited_by_writer(file: &File) -> bool {
    // SAFETY: a plain system call on a descriptor that lives as long as `file`.
    let kind = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) };
    // The kernel says what the lease is to become: none at all, for a writer.
    kind == libc::F_UNLCK
}
