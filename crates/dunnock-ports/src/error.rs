//! Why a port failed. An error has a variant for each thing that a caller may treat differently; no
//! caller looks into its text.

use dunnock_proto::SessionId;

/// Why a store operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The events may or may not be durable: reopen the log and read it to find out.
    #[error("it is unknown whether the last events were written: {0}")]
    Unsure(String),
    /// The disk is full: nothing was written.
    #[error("the disk is full; free some space and work continues automatically: {0}")]
    Full(String),
    /// A process that is stopped holds the store's lock: nothing was written.
    #[error("the session database is in use: {0}")]
    Busy(String),
    /// Nothing was written, or nothing could be read.
    #[error("session log error: {0}")]
    Failed(String),
    /// What is stored of a session is not what was written.
    #[error("the log is damaged: {0}")]
    Damaged(String),
    /// The store itself is damaged, not only one session.
    #[error("the log is damaged: {0}")]
    StoreDamaged(String),
    /// What was asked for is not possible; nothing was written.
    #[error("{0}")]
    Refused(String),
    /// There is no such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// The session cannot be deleted: this one was forked from it.
    #[error("session {0} was forked from it and needs its history; delete that one first")]
    Forked(SessionId),
}

/// Why a preamble could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RenderError(pub String);

/// Why there is no summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SummaryError(pub String);

/// Why files could not be saved, compared, copied or restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// There are no checkpoints here.
    #[error("checkpoints are not available here")]
    Unavailable,
    /// It failed, for the reason given.
    #[error("{0}")]
    Failed(String),
}

impl FilesError {
    /// It failed because of this error.
    #[must_use]
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Why the owner of a session could not be determined or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OwnershipError(pub String);
