//! What a session's model has read: an edit of a file that has changed since is refused.

use crate::root::RepoPath;
use dunnock_proto::{Hash, SessionId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files by session, as they were last shown or written.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<HashMap<(SessionId, String), Hash>>);

impl Seen {
    fn all(&self) -> MutexGuard<'_, HashMap<(SessionId, String), Hash>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model knows the file as it is.
    pub(crate) fn saw(&self, session: &SessionId, path: &RepoPath, bytes: &[u8]) {
        self.all().insert((session.clone(), path.shown()), Hash::of(bytes));
    }

    /// Refuses an edit of a file that is not any more what the model saw. What it never saw is not held against it.
    pub(crate) fn current(&self, session: &SessionId, path: &RepoPath, bytes: &[u8]) -> Result<(), String> {
        match self.all().get(&(session.clone(), path.shown())) {
            Some(hash) if *hash != Hash::of(bytes) => Err(format!(
                "{} has changed since you last read it; nothing was written. View it again, then edit",
                path.shown()
            )),
            _ => Ok(()),
        }
    }

    /// A session is over.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.all().retain(|(owner, _), _| owner != session);
    }
}
