//! The events of all sessions.

use crate::{Blob, BoxFuture, Charge, Listing, StoreError};
use dunnock_proto::{
    CallId, Decoded, Envelope, Event, Finished, Hash, InputId, Record, Seq, SessionId,
};

/// Events to be written atomically, right after those that the writer has seen.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The session.
    pub session: SessionId,
    /// The number of events the writer has seen; 0 creates a new session.
    pub after: Seq,
    /// The events, sealed.
    pub records: Vec<Record>,
    /// The commands that caused them, each with its last event.
    pub inputs: Vec<(InputId, Seq)>,
    /// Blobs that the events refer to.
    pub blobs: Vec<Blob>,
    /// What lists show from now on.
    pub listing: Listing,
    /// What this charges to the day's budget.
    pub charge: Option<Charge>,
}

/// How an append ended. A fourth outcome, uncertainty, is [`StoreError::Unsure`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// The events are durable.
    Done,
    /// Another process wrote first, or the ledger changed: nothing was written.
    Conflict,
    /// A command of the batch was executed before, with this last event: nothing was written.
    Repeated(InputId, Seq),
}

/// Stores events.
pub trait EventLog: Send + Sync {
    /// Writes a batch atomically.
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, StoreError>>;
    /// Passes the events after `after` to `each`, in order, until it returns false.
    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: Seq,
        each: &'a mut (dyn FnMut(Record) -> bool + Send),
    ) -> BoxFuture<'a, Result<(), StoreError>>;
    /// The last event of a command that was executed before.
    fn answered<'a>(
        &'a self,
        session: &'a SessionId,
        input: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>>;
    /// The number of events in a session and the chain up to the last one, as stored with them.
    fn tip<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<(Seq, Hash)>, StoreError>>;
    /// How a call ended, if it did.
    fn finished<'a>(
        &'a self,
        session: &'a SessionId,
        call: CallId,
    ) -> BoxFuture<'a, Result<Option<Finished>, StoreError>> {
        Box::pin(async move {
            let mut found = None;
            let each = &mut |record: Record| {
                if let Decoded::Known(Event::Finished(finished)) = record.decode()
                    && finished.call == call
                {
                    found = Some(finished);
                }
                true
            };
            self.read(session, 0, each).await?;
            Ok(found)
        })
    }
    /// Deletes a session: its events, its search index, and the blobs that no other session refers
    /// to. Fails if another session was forked from it. Returns whether the session existed.
    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>>;
    /// Frees what is only needed for speed, when no session is running: a file that grew next to
    /// the log.
    fn tidy(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    /// Starts over after [`StoreError::Unsure`]: the next read returns what is stored.
    fn reopen(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Folds all events of a session that this release knows, in order.
///
/// # Errors
/// If the log cannot be read.
pub async fn fold_events<F: Send>(
    log: &dyn EventLog,
    session: &SessionId,
    mut folded: F,
    mut add: impl FnMut(&mut F, &Envelope, Event) + Send,
) -> Result<F, StoreError> {
    let each = &mut |record: Record| {
        if let Decoded::Known(event) = record.decode() {
            add(&mut folded, &record.envelope, event);
        }
        true
    };
    log.read(session, 0, each).await?;
    Ok(folded)
}

/// The first event of a session, if it exists and this release knows the event.
///
/// # Errors
/// If the log cannot be read.
pub async fn first_event(
    log: &dyn EventLog,
    session: &SessionId,
) -> Result<Option<Event>, StoreError> {
    let mut first = None;
    let each = &mut |record: Record| {
        if let Decoded::Known(event) = record.decode() {
            first = Some(event);
        }
        false
    };
    log.read(session, 0, each).await?;
    Ok(first)
}
