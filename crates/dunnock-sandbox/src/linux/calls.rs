//! System calls with arguments of their own, for a child between clone and exec.
//!
//! Invariant: nothing here allocates.

use libc::{c_char, c_int};
use std::os::fd::RawFd;

/// Sends a descriptor over a socket.
#[expect(unsafe_code, reason = "plain system calls")]
pub(super) fn send_descriptor(socket: RawFd, descriptor: RawFd) -> c_int {
    // SAFETY: the message points to local values that outlive the call, and the control buffer is
    // aligned and large enough for one descriptor.
    unsafe {
        let (mut byte, mut control) = (0u8, [0u64; 4]);
        let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() {
            return -1;
        }
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor);
        if libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) < 0 { -1 } else { 0 }
    }
}

/// A socket that accepts connections on a free port of the loopback interface.
#[expect(unsafe_code, reason = "plain system calls")]
pub(super) fn listen_on_loopback() -> RawFd {
    // SAFETY: the address is a local value, passed with its size.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return -1;
        }
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_addr.s_addr = u32::from_be_bytes([127, 0, 0, 1]).to_be();
        let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        if libc::bind(socket, (&raw const address).cast(), size) < 0
            || libc::listen(socket, 128) < 0
        {
            return -1;
        }
        socket
    }
}

/// Enables the loopback interface of the new network namespace.
#[expect(unsafe_code, reason = "plain system calls")]
pub(super) fn loopback() -> c_int {
    // SAFETY: the request is zeroed and large enough for what these two calls read and write.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return -1;
        }
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as c_char;
        request.ifr_name[1] = b'o' as c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let done = libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &raw const request);
        libc::close(socket);
        done
    }
}
