//! Why a command was refused, and why a session could not be opened.

use dunnock_ports::{LockHolder, OwnershipError, StoreError};
use dunnock_proto::{QuestionId, Refused, Seq};

/// A refused command, with the current state of the session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// Why it was refused.
    pub reason: Refused,
    /// The current version.
    pub version: Seq,
    /// The questions that are open now.
    pub questions: Vec<QuestionId>,
}

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The owner cannot be determined.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
    /// The adapters for the session's folder cannot be made.
    #[error("{0}")]
    Ports(String),
    /// This process is ending.
    #[error("this server is shutting down")]
    ShuttingDown,
    /// The owner exists but does not respond.
    #[error("{holder} has this session open but does not respond; {}", holder.advice())]
    Silent {
        /// The process that holds the session.
        holder: LockHolder,
    },
    /// A process drives the session, but the request needs it to be idle.
    #[error("{holder} has this session open; {}", holder.advice())]
    InUse {
        /// The process that holds the session.
        holder: LockHolder,
    },
    /// The owner is another release.
    #[error(
        "process {pid} has this session open with {version}; use the same release, or end that \
         process"
    )]
    Mismatch {
        /// The owner.
        pid: u32,
        /// The version it reports.
        version: String,
    },
}
