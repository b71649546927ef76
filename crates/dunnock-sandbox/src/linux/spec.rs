//! What a sandbox allows.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How a command is confined. `docs/concepts/sandbox.md` describes each level and what it leaves
/// open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Isolation {
    /// User, mount, process, network and IPC namespaces; Landlock; seccomp.
    A,
    /// The same without a mount namespace.
    B,
    /// Landlock and seccomp only.
    C,
}

/// What a sandboxed command may see and touch besides the system's folders, which it may read.
/// Paths are absolute and resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The isolation level.
    pub isolation: Isolation,
    /// The workspace.
    pub workspace: PathBuf,
    /// Whether the command may write to the workspace.
    pub writes: bool,
    /// Folders in the workspace that it may write even if `writes` is false.
    pub build: Vec<PathBuf>,
    /// Folders in the workspace that cannot be renamed or replaced, so that the protection of what
    /// lies below them cannot be bypassed.
    pub pinned: Vec<PathBuf>,
    /// Files and folders in the workspace that are read-only.
    pub closed: Vec<PathBuf>,
    /// Files and folders that appear empty.
    pub hidden: Vec<PathBuf>,
    /// Folders that appear empty and are writable; their contents are discarded with the sandbox.
    /// The home folder is one.
    pub private: Vec<PathBuf>,
    /// Files and folders outside the workspace that it may read: toolchains.
    pub readable: Vec<PathBuf>,
    /// Folders outside the workspace that it may write: caches.
    pub writable: Vec<PathBuf>,
    /// The git folder of the repository outside the workspace that it may write.
    pub repository: Vec<PathBuf>,
    /// Files of ours that a command may read, in folders that are otherwise hidden.
    pub own: Vec<PathBuf>,
    /// Folders that appear writable: changes go to an overlay.
    pub layered: Vec<Layer>,
    /// Folder for temporary files if it has no `/tmp` of its own.
    pub tmp: PathBuf,
    /// Allow access to the machine's network.
    pub network: bool,
    /// Sandboxes with the same name share one private network: one can reach what another serves.
    pub shares: Option<String>,
}

/// An overlay mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The real folder, and where the overlay is mounted.
    pub below: PathBuf,
    /// Changes made by calls with more access. Other calls see them but cannot change them.
    pub between: Option<PathBuf>,
    /// Where the changes are stored.
    pub above: PathBuf,
    /// The overlay's work folder, on the same file system as `above`.
    pub work: PathBuf,
}
