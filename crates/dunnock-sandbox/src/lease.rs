//! Whether somebody writes to a file right now.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// `F_SETSIG`, which the library does not name.
const SET_SIGNAL: libc::c_int = 10;

/// Whether any program has this file, which was opened to be read, open for writing. The kernel tells it by refusing a lease.
///
/// # Errors
/// When it does not tell: the file is another user's, or its file system has no leases.
#[expect(unsafe_code, reason = "there is no other way to ask for a lease")]
pub fn is_open_for_writing(file: &File) -> io::Result<bool> {
    // SAFETY: plain system calls on a descriptor that lives as long as `file`; none takes a pointer.
    unsafe {
        let fd = file.as_raw_fd();
        // Should somebody open it in this very moment we would be told by a signal; this one means nothing to anybody.
        if libc::fcntl(fd, SET_SIGNAL, libc::SIGURG) < 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) == 0 {
            libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK);
            return Ok(false);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::EAGAIN) { Ok(true) } else { Err(error) }
    }
}
