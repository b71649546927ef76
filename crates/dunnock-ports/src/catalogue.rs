//! Lists of sessions, and searches in them.

use crate::{BoxFuture, StoreError};
use dunnock_core::Status;
use dunnock_proto::{At, Seq, SessionId};

/// What lists show about a session, stored with its events in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Its title.
    pub title: String,
    /// Its folder.
    pub workspace: String,
    /// Its status in one word.
    pub status: Status,
    /// The last event that a user caused.
    pub version: Seq,
}

/// A row of a list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The session.
    pub id: SessionId,
    /// Its title.
    pub title: String,
    /// Its folder.
    pub workspace: String,
    /// Its status in one word: the stored text, since another release may have more words.
    pub status: String,
    /// When it was created.
    pub created: At,
    /// When it last changed.
    pub updated: At,
    /// The last event that a user caused.
    pub version: Seq,
    /// The number of events so far.
    pub seq: Seq,
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The session.
    pub session: SessionId,
    /// The event.
    pub seq: Seq,
    /// The text around the match.
    pub excerpt: String,
}

/// Lists and finds sessions.
pub trait Catalogue: Send + Sync {
    /// Sessions, newest first, of one folder or of all.
    fn list<'a>(
        &'a self,
        workspace: Option<&'a str>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>>;
    /// A session as lists show it.
    fn listed<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Listed>, StoreError>> {
        Box::pin(async move {
            Ok(self.list(None, u32::MAX).await?.into_iter().find(|row| row.id == *session))
        })
    }
    /// The sessions whose id starts with `prefix`, at most two.
    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>>;
    /// Updates the full-text index from the log of one session, or of all.
    fn index<'a>(
        &'a self,
        session: Option<&'a SessionId>,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;
    /// Sessions and events that contain these words, best match first.
    fn search<'a>(
        &'a self,
        words: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, StoreError>>;
}
