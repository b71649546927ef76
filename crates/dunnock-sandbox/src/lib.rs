//! Starts children, confines them, and sees to it that none is left behind.
//!
//! The program does not make children itself. It starts a small *launcher* (itself, executed again: see [`LAUNCH`]) and asks it
//! over a socket: a small process makes children quickly however large the program has grown, it adopts what escapes from a
//! command (a subreaper), and it notices the program's death by the end of the socket, whoever killed it.
//!
//! Invariant: when a command's end is reported, everything it started is dead, whether it left its group or not.
//! Invariant: when the program is gone, the launcher kills everything and only then lets go of the locks it was given.
//!
//! Invariant: a command that shall be confined begins in its box, or not at all (`linux/`). From a workspace to a box: `layout`.
//! What is tried against it: `attack` and `prove`.
//!
//! This is the only crate with `unsafe` code: what a child does between clone and exec, the attacks, closing what whoever
//! started us left open, and asking for a lease on a file.

#[cfg(target_os = "linux")]
mod attack;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
mod lease;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod prove;
pub mod seatbelt;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
pub use client::{Ended, Held, Launcher, Probed, Run, Running};
#[cfg(target_os = "linux")]
pub use launcher::serve;
#[cfg(target_os = "linux")]
pub use layout::{Found, Layout, Opened};
#[cfg(target_os = "linux")]
pub use lease::{is_open_for_writing, keep_waiting};
#[cfg(target_os = "linux")]
pub use linux::{Isolation, Layer, SandboxSpec};
#[cfg(target_os = "linux")]
pub use prove::{PROBE, ProbeOutcome, Trial, VICTIM, probe, prove, victim};
#[cfg(target_os = "linux")]
pub use wire::{Bound, Bounds};

/// The first argument that makes the program a launcher.
pub const LAUNCH: &str = "__launch";

/// Other systems have no launcher yet.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn serve() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
