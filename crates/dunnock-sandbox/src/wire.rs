//! Messages between the program and its launcher: one JSON document per packet, with descriptors
//! attached.

use crate::linux::{Isolation, SandboxSpec};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// The longest packet: a command line of 100,000 bytes plus its environment. Longer ones do not fit
/// into default socket buffers.
const MOST: usize = 200_000;

/// Resource limits for a command; 0 means unlimited.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Bounds {
    /// Concurrent processes.
    pub processes: u64,
    /// Bytes of memory, summed over all processes.
    pub memory: u64,
}

/// The limit that a command was killed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bound {
    /// Too many processes.
    Processes,
    /// Too much memory.
    Memory,
}

/// A request to the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Start a command. The last two attached descriptors are its stdout and stderr; one before
    /// them is its stdin.
    Start {
        id: u64,
        words: Vec<String>,
        folder: String,
        env: Vec<(String, String)>,
        /// The descriptors are a terminal.
        terminal: bool,
        bounds: Bounds,
        /// What it leaves running may continue when its own process has ended.
        lasting: bool,
        /// The sandbox; `None` runs the command without one.
        spec: Option<SandboxSpec>,
    },
    /// The command keeps running in the background. If it is kept when the program ends, the
    /// attached descriptors are our ends of its streams, which the launcher reads from then on.
    Background { id: u64, kept: Option<KeepRequest> },
    /// Say which programs of a command are running.
    List { id: u64 },
    /// Find out whether such a sandbox can be created, or else one at a lower level.
    Probe { spec: SandboxSpec },
    /// Send SIGTERM to its process group.
    End { id: u64 },
    /// Kill it and everything it started.
    Kill { id: u64 },
    /// Hold the attached descriptor until everything is dead.
    Hold { id: u64 },
    /// Close a held descriptor.
    Release { id: u64 },
    /// Create the shared network of this name anew, with a listener in it.
    Listen { name: String },
    /// Drop the shared network of this name.
    Leave { name: String },
}

/// The strongest sandbox that works on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// The strongest level; `None` if no level works.
    pub best: Option<Isolation>,
    /// Why each stronger level does not work.
    pub why: Vec<(Isolation, String)>,
}

/// What a person reads about a process that continues when the program ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepRequest {
    /// The folder where the launcher is found when the program is gone.
    pub folder: PathBuf,
    /// The session that started it.
    pub session: String,
    /// Where it was started.
    pub workspace: String,
    /// The command.
    pub command: String,
}

/// A running program of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its process id.
    pub pid: i32,
    /// Its name, as the kernel shows it.
    pub name: String,
    /// TCP ports on which it accepts connections.
    pub ports: Vec<u16>,
    /// When it was started, in ticks of the kernel: with the process id, this names one process.
    pub started: u64,
}

/// A message from the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Tell {
    /// The command could not be started.
    Refused { id: u64, why: String },
    /// The strongest sandbox that works, or why that could not be found out.
    Probed(Result<Probed, String>),
    /// The shared network of this name was created; the listener in it is attached. Otherwise, why
    /// it could not be created.
    Listens { name: String, created: Result<(), String> },
    /// The held descriptor is closed.
    Released { id: u64 },
    /// The running programs of a command.
    Listed { id: u64, programs: Vec<Program> },
    /// The command's own process ended, and what it left running continues.
    Continues { id: u64, code: Option<i32>, signal: Option<i32> },
    /// The command ended, and everything it started is dead.
    Ended { id: u64, code: Option<i32>, signal: Option<i32>, left: u32, over: Option<Bound> },
}

pub(crate) fn send<T: Serialize>(
    socket: impl AsFd,
    message: &T,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if text.len() > MOST {
        let why = format!(
            "the command with its environment is too long: {} bytes, at most {MOST}",
            text.len()
        );
        return Err(io::Error::other(why));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many file descriptors"));
    }
    loop {
        match sendmsg(&socket, &[IoSlice::new(&text)], &mut beside, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives the next packet; `None` when the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    buffer.resize(MOST, 0);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(buffer)], &mut beside, RecvFlags::CMSG_CLOEXEC)
        {
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
