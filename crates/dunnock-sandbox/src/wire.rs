//! What the program and its launcher say to each other: one JSON text a packet, descriptors beside it.

use crate::linux::{Isolation, SandboxSpec};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The longest packet: a command line of 100,000 bytes and its environment. Longer ones do not fit the buffers that systems
/// give a socket.
const MOST: usize = 200_000;

/// What a command may take; 0 is no bound.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Bounds {
    /// Processes at once.
    pub processes: u64,
    /// Bytes of memory that they hold together.
    pub memory: u64,
}

/// Which bound a command was ended for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bound {
    /// Processes.
    Processes,
    /// Memory.
    Memory,
}

/// To the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Start this; its output goes to the two descriptors that come along, its input comes from one before them.
    Start {
        id: u64,
        words: Vec<String>,
        folder: String,
        env: Vec<(String, String)>,
        /// They are a terminal.
        terminal: bool,
        bounds: Bounds,
        /// What holds it; nothing, if absent.
        cage: Option<SandboxSpec>,
    },
    /// Whether such a box can be made, and if not, one of the rungs below it.
    Probe { cage: SandboxSpec },
    /// Ask it to end, with all of its group.
    End { id: u64 },
    /// End it, and everything it started.
    Kill { id: u64 },
    /// Keep the descriptor that comes along until everything is dead.
    Hold { id: u64 },
    /// Let go of it.
    Release { id: u64 },
    /// Nobody needs the network of this name any more.
    Leave { name: String },
}

/// From the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Tell {
    /// It could not be started.
    Refused { id: u64, why: String },
    /// The best box that can be made, and what kept better ones from it.
    Probed { best: Option<Isolation>, why: Vec<(Isolation, String)> },
    /// The descriptor is closed.
    Released { id: u64 },
    /// It ended, and everything it started is dead.
    Ended { id: u64, code: Option<i32>, signal: Option<i32>, left: u32, over: Option<Bound> },
}

pub(crate) fn send<T: Serialize>(socket: impl AsFd, message: &T, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if text.len() > MOST {
        return Err(io::Error::other("the command is too long"));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many descriptors"));
    }
    loop {
        match sendmsg(&socket, &[IoSlice::new(&text)], &mut beside, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The next packet; `None` when the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    buffer.resize(MOST, 0);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(buffer)], &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Ok(got) => break got,
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    };
    if got.bytes == 0 {
        return Ok(None);
    }
    let mut fds = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            fds.extend(more);
        }
    }
    let text = buffer.get(..got.bytes).unwrap_or_default();
    Ok(Some((serde_json::from_slice(text)?, fds)))
}
