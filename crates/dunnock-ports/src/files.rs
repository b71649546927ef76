//! The files of a workspace: their state, and checkpoints of them.

use crate::{BoxFuture, DeltaSink, FilesError};
use dunnock_core::Window;
use dunnock_proto::{Checkpointed, Seq, SessionId, Tree};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Reads the state of a workspace's files.
pub trait Files: Send + Sync {
    /// An id for the current files: equal ids mean equal files. The result of a check applies to
    /// one such state.
    fn tree<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, Result<Tree, FilesError>>;
    /// The commit that the folder's repository is at, if the folder is a repository.
    fn commit(&self, workspace: &str) -> Option<String> {
        let _ = workspace;
        None
    }
    /// Whether the files still have this state.
    fn holds<'a>(&'a self, workspace: &'a str, tree: &'a Tree) -> BoxFuture<'a, bool>;
}

/// How to restore the files of a workspace.
#[derive(Debug, Clone, Copy)]
pub struct RestorePlan<'a> {
    /// The session that is rewound.
    pub session: &'a SessionId,
    /// The folder.
    pub workspace: &'a str,
    /// The state to restore.
    pub to: &'a Tree,
    /// The state saved right before.
    pub from: &'a Tree,
    /// Changes by this session's calls since then.
    pub ours: &'a [Window],
    /// Changes by others since then.
    pub theirs: &'a [Window],
    /// Also overwrite changes by others.
    pub force: bool,
    /// The last step that is not undone. What git's history lost after it is restored; `None` if
    /// nothing is.
    pub undone_after: Option<u32>,
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The files after the restore.
    pub tree: Tree,
    /// What was left alone or could not be restored, as text.
    pub note: Option<String>,
    /// Some of what this session changed was not restored.
    pub partial: bool,
}

/// A copy of a workspace's files.
pub trait WorkspaceCopy: Send + Sync {
    /// The path of the copy.
    fn path(&self) -> &str;
    /// What it lacks, as text.
    fn lacks(&self) -> Option<String>;
}

/// How saving files reports its progress, and how it is stopped.
#[derive(Clone)]
pub struct SaveControl {
    /// Gets progress as notices.
    pub say: DeltaSink,
    /// Stops it. The files are then not saved.
    pub halt: CancellationToken,
}

impl SaveControl {
    /// Says nothing and is not stopped.
    #[must_use]
    pub fn silent() -> Self {
        Self { say: Arc::new(|_| {}), halt: CancellationToken::new() }
    }
}

/// Saves and restores the files of a workspace.
pub trait Checkpoints: Send + Sync {
    /// Saves the current files. Mark 0 means an intermediate state that is not reported.
    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        workspace: &'a str,
        mark: Seq,
        saving: SaveControl,
    ) -> BoxFuture<'a, Checkpointed>;
    /// Restores what this session changed; doing it twice is harmless.
    fn restore<'a>(&'a self, back: RestorePlan<'a>) -> BoxFuture<'a, Result<Restored, FilesError>>;
    /// The files that differ between two states and were changed in one of these windows.
    fn changed<'a>(
        &'a self,
        workspace: &'a str,
        between: &'a Window,
        ours: &'a [Window],
    ) -> BoxFuture<'a, Result<Vec<String>, FilesError>> {
        let _ = (workspace, between, ours);
        Box::pin(async { Ok(Vec::new()) })
    }
    /// Copies the files of a state to a separate folder, which is deleted when the returned value
    /// is dropped.
    fn copy<'a>(
        &'a self,
        workspace: &'a str,
        tree: &'a Tree,
    ) -> BoxFuture<'a, Result<Box<dyn WorkspaceCopy>, FilesError>> {
        let _ = (workspace, tree);
        Box::pin(async { Err(FilesError::Unavailable) })
    }
    /// Frees what is only needed for speed: no session works in this folder for now.
    fn rest<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, ()> {
        let _ = workspace;
        Box::pin(async {})
    }
    /// Deletes what was saved for a session.
    fn forget<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), FilesError>>;
}
