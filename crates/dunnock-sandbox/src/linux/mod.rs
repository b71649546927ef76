//! The box: what a command may see and touch, held by the kernel.
//!
//! The program says what it wants ([`SandboxSpec`]); the launcher turns that into lists of system calls ([`plan`]) before it makes a
//! child, and the child only works them off ([`child`]): nothing is allocated there, and whatever fails ends it. Invariant: a
//! command begins only after every call of its list has succeeded.

mod child;
mod filter;
mod landlock;
mod plan;
#[cfg(test)]
mod quiet;

pub(crate) use child::{Fate, Net, Ready, network, spawn};
pub(crate) use landlock::abi;
pub(crate) use plan::Plan;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How a command is held. What each is made of, and what stays open in it, stands in `docs/sandbox.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Isolation {
    /// Namespaces for users, mounts, processes, network and IPC; Landlock; seccomp.
    A,
    /// The same without mounts of its own.
    B,
    /// Landlock and seccomp.
    C,
}

/// What a boxed command may see and touch beside the system's own folders, which it may read. Paths are absolute and
/// resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// How it is held.
    pub rung: Isolation,
    /// The workspace.
    pub workspace: PathBuf,
    /// Whether it may write there.
    pub writes: bool,
    /// Folders of the workspace that it may write all the same.
    pub build: Vec<PathBuf>,
    /// Names in the workspace that must stay where they are, so that nothing can take the place of what lies below.
    pub pinned: Vec<PathBuf>,
    /// Files and folders in the workspace that it may read only.
    pub closed: Vec<PathBuf>,
    /// Files and folders that it finds empty.
    pub hidden: Vec<PathBuf>,
    /// Folders that it finds empty, and may fill for itself: what is there is gone with it. The home folder is one.
    pub private: Vec<PathBuf>,
    /// Files and folders outside of the workspace that it may read: toolchains.
    pub readable: Vec<PathBuf>,
    /// Folders outside of the workspace that it may write: caches.
    pub writable: Vec<PathBuf>,
    /// Folders that it may read and seemingly change: changes lie in a folder beside.
    pub layered: Vec<Layer>,
    /// Where it may put temporary files if `/tmp` is not its own.
    pub tmp: PathBuf,
    /// It reaches the network of the machine.
    pub network: bool,
    /// Boxes with this name share one network of their own: what one serves, the next can reach.
    pub shares: Option<String>,
}

/// A folder below, with its changes above.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// What is there, and where it is seen.
    pub below: PathBuf,
    /// What was changed.
    pub above: PathBuf,
    /// A folder on the same file system, for the kernel.
    pub work: PathBuf,
}
