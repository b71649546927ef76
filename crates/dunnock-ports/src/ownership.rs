//! Which process drives a session.

use crate::{BoxFuture, OwnershipError};
use dunnock_private::LockHolder;
use dunnock_proto::SessionId;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Counts the owners of a session where several machines share a store: a former owner has a lower
/// number than the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

/// What an owner says about itself, so that others can reach or name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerNote {
    /// The process.
    pub pid: u32,
    /// The socket it listens on.
    pub socket: PathBuf,
}

impl OwnerNote {
    /// The process that wrote the note, if nobody can say who holds the session now.
    #[must_use]
    pub fn holder(note: Option<&Self>) -> LockHolder {
        LockHolder::unknown(note.map(|note| note.pid))
    }
}

/// Decides which process drives a session.
pub trait Ownership: Send + Sync {
    /// Takes a session for this process; `None` if another process drives it.
    fn claim<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Box<dyn Owned>>, OwnershipError>>;
    /// Prevents every process from driving a session, without driving it, until the returned value
    /// is dropped: for a short write. `None` if a process drives it.
    fn hold<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Box<dyn Send + Sync>>, OwnershipError>>;
    /// The owner of a session, if one has described itself. It may have died since.
    fn owner<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Option<OwnerNote>>;
    /// The process that prevents others from driving a session, to name it to the person.
    fn holder<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, LockHolder> {
        Box::pin(async move { OwnerNote::holder(self.owner(session).await.as_ref()) })
    }
    /// Removes what is stored about the owner of a session that is deleted. The caller holds it.
    fn forget<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()>;
    /// Whether a process drives a session now.
    fn is_driven<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<bool, OwnershipError>> {
        Box::pin(async move { Ok(self.hold(session).await?.is_none()) })
    }
}

/// The right to drive a session, until it is dropped.
pub trait Owned: Send + Sync {
    /// The number of this owner; `None` where a lock decides and owners need no number.
    fn epoch(&self) -> Option<Epoch>;
    /// The socket on which this owner listens for other interfaces.
    fn socket(&self) -> &Path;
    /// The lock, if the right is one: a duplicate held elsewhere keeps the session owned.
    fn lock(&self) -> Option<&File>;
}
