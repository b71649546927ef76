//! Starts child processes, confines them, and makes sure that none is left behind.
//!
//! The program does not spawn children itself. It starts a small *launcher* (its own executable,
//! see [`LAUNCH`]) and sends it requests over a socket. A small process forks quickly however large
//! the program has grown; it adopts what escapes from a command (as a subreaper); and it notices
//! the program's death by the closed socket, whatever the cause.
//!
//! Invariant: when a command's end is reported, everything it started is dead, even if it left the
//! process group; or the report says what still runs, if that was allowed.
//! Invariant: when the program is gone, the launcher kills everything and only then releases the
//! locks it holds.
//!
//! Invariant: a command that is to be confined starts in its sandbox, or not at all (`linux/`).
//! `layout` turns a workspace into a sandbox, `describe` says what it allows; `attack` and `prove`
//! try to break out of it.
//!
//! This is the only crate with `unsafe` code: what a child does between clone and exec, the
//! attacks, closing inherited descriptors, and file leases.

#[cfg(target_os = "linux")]
mod attack;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod describe;
mod git_names;
#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
mod lease;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod outer;
#[cfg(target_os = "linux")]
mod prove;
#[cfg(target_os = "linux")]
mod repositories;
pub mod seatbelt;
#[cfg(target_os = "linux")]
mod survey;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
pub use client::{Ended, Held, Launcher, Lister, NetworkListener, Run, Running};
pub use git_names::{GIT_ACTS_ON, REPOSITORY, is_repository};
#[cfg(target_os = "linux")]
pub use launcher::{KeptProcess, kept_processes, serve, stop_kept_process};
#[cfg(target_os = "linux")]
pub use layout::{Layout, Opened};
#[cfg(target_os = "linux")]
pub use lease::{is_awaited_by_writer, is_open_for_writing, keep_waiting};
#[cfg(target_os = "linux")]
pub use linux::{Isolation, Layer, SandboxSpec};
#[cfg(target_os = "linux")]
pub use outer::{GitVariables, OuterRepository};
#[cfg(target_os = "linux")]
pub use prove::{PROBE, ProbeOutcome, Trial, VICTIM, probe, prove, victim};
#[cfg(target_os = "linux")]
pub use repositories::{target_of, with_inner};
#[cfg(target_os = "linux")]
pub use survey::{Found, Index, Survey};
#[cfg(target_os = "linux")]
pub use wire::{Bound, Bounds, KeepRequest, Probed, Program};

/// The first argument that makes the program run as the launcher.
pub const LAUNCH: &str = "__launch";

/// Always fails: there is no launcher on other systems yet.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn serve() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
