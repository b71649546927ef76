//! A whole store, and one that is made of parts.

use crate::{
    Appended, Batch, Blob, Blobs, BoxFuture, Catalogue, DayTotal, EventLog, Ledger, Listed,
    SearchHit, StoreError,
};
use dunnock_proto::{CallId, Finished, Hash, InputId, Record, Seq, SessionId};
use std::sync::Arc;

/// All four parts of a store.
pub trait Store: EventLog + Blobs + Catalogue + Ledger {}

impl<S: EventLog + Blobs + Catalogue + Ledger> Store for S {}

/// A store whose parts come from different places: events in a database, say, and blobs in an
/// object store.
///
/// The part that appends receives whole batches: it writes what belongs to the other parts too, or
/// makes sure that they are written before.
#[derive(Clone)]
pub struct StoreParts {
    /// The events.
    pub log: Arc<dyn EventLog>,
    /// The blobs.
    pub blobs: Arc<dyn Blobs>,
    /// The lists.
    pub catalogue: Arc<dyn Catalogue>,
    /// The money.
    pub ledger: Arc<dyn Ledger>,
}

impl EventLog for StoreParts {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.log.append(batch)
    }
    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: Seq,
        each: &'a mut (dyn FnMut(Record) -> bool + Send),
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.log.read(session, after, each)
    }
    fn answered<'a>(
        &'a self,
        session: &'a SessionId,
        input: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        self.log.answered(session, input)
    }
    fn tip<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<(Seq, Hash)>, StoreError>> {
        self.log.tip(session)
    }
    fn finished<'a>(
        &'a self,
        session: &'a SessionId,
        call: CallId,
    ) -> BoxFuture<'a, Result<Option<Finished>, StoreError>> {
        self.log.finished(session, call)
    }
    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.log.delete(session)
    }
    fn tidy(&self) -> BoxFuture<'_, ()> {
        self.log.tidy()
    }
    fn reopen(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.log.reopen()
    }
}

impl Blobs for StoreParts {
    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        blob: &'a Blob,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.blobs.keep(session, blob)
    }
    fn blob(&self, hash: Hash) -> BoxFuture<'_, Result<Option<Arc<[u8]>>, StoreError>> {
        self.blobs.blob(hash)
    }
    fn uses<'a>(
        &'a self,
        session: &'a SessionId,
        blob: Hash,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.blobs.uses(session, blob)
    }
}

impl Catalogue for StoreParts {
    fn list<'a>(
        &'a self,
        workspace: Option<&'a str>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        self.catalogue.list(workspace, limit)
    }
    fn listed<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Listed>, StoreError>> {
        self.catalogue.listed(session)
    }
    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        self.catalogue.find(prefix)
    }
    fn index<'a>(
        &'a self,
        session: Option<&'a SessionId>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.catalogue.index(session)
    }
    fn search<'a>(
        &'a self,
        words: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, StoreError>> {
        self.catalogue.search(words, limit)
    }
}

impl Ledger for StoreParts {
    fn day_total(&self, day: i64) -> BoxFuture<'_, Result<DayTotal, StoreError>> {
        self.ledger.day_total(day)
    }
}
