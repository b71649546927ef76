//! A store in memory: for the stateless service, and as the reference model in the contract tests.

use crate::delete::branched_off;
use crate::search::text_of;
use dunnock_ports::{
    Appended, Batch, Blob, Blobs, BoxFuture, Catalogue, DayTotal, EventLog, Ledger, Listed,
    SearchHit, StoreError,
};
use dunnock_proto::{At, Hash, InputId, Record, Seq, SessionId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A store that keeps its logs in memory.
#[derive(Default)]
pub struct Memory(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    sessions: BTreeMap<SessionId, Session>,
    blobs: HashMap<Hash, Arc<[u8]>>,
    ledger: BTreeMap<i64, DayTotal>,
    made: u64,
}

struct Session {
    made: u64,
    created: At,
    records: Vec<Record>,
    inputs: HashMap<InputId, Seq>,
    blobs: Vec<Hash>,
    listing: dunnock_ports::Listing,
}

impl Memory {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn append(&mut self, batch: Batch) -> Appended {
        let Some(first) = batch.records.first() else { return Appended::Done };
        let created = first.envelope.at;
        let known = self.sessions.get(&batch.session);
        for (n, (id, seq)) in batch.inputs.iter().enumerate() {
            if batch.inputs[..n].iter().any(|(other, _)| other == id) {
                return Appended::Repeated(id.clone(), *seq); // the same command twice in a batch: nothing is written
            }
            if let Some(seq) = known.and_then(|s| s.inputs.get(id)) {
                return Appended::Repeated(id.clone(), *seq);
            }
        }
        let seen = known.map_or(0, |s| s.records.len() as Seq);
        if seen != batch.after {
            return Appended::Conflict;
        }
        if let Some(charge) = batch.charge {
            let row = self.ledger.entry(charge.day).or_default();
            if row.version != charge.version {
                return Appended::Conflict;
            }
            row.micros = (row.micros + charge.micros).max(0);
            row.version += 1;
        }
        let named: Vec<Hash> = batch.blobs.iter().map(|b| b.hash).collect();
        self.blobs.extend(batch.blobs.into_iter().map(|b| match &b.file {
            Some(file) => (b.hash, std::fs::read(file.path()).unwrap_or_default().into()),
            None => (b.hash, b.bytes),
        }));
        self.made += 1;
        let made = self.made;
        let session = self.sessions.entry(batch.session).or_insert_with(|| Session {
            made,
            created,
            records: Vec::new(),
            inputs: HashMap::new(),
            blobs: Vec::new(),
            listing: batch.listing.clone(),
        });
        session.blobs.extend(named);
        session.records.extend(batch.records);
        session.inputs.extend(batch.inputs);
        session.listing = batch.listing;
        Appended::Done
    }
}

impl EventLog for Memory {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move { Ok(self.inner().append(batch)) })
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: Seq,
        each: &'a mut (dyn FnMut(Record) -> bool + Send),
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let records: Vec<Record> = match self.inner().sessions.get(session) {
                Some(s) => s
                    .records
                    .iter()
                    .skip(usize::try_from(after).unwrap_or(usize::MAX))
                    .cloned()
                    .collect(),
                None => Vec::new(),
            };
            for record in records {
                if !each(record) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn answered<'a>(
        &'a self,
        session: &'a SessionId,
        input: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        Box::pin(async move {
            Ok(self.inner().sessions.get(session).and_then(|s| s.inputs.get(input)).copied())
        })
    }

    fn tip<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<(Seq, Hash)>, StoreError>> {
        Box::pin(async move {
            let inner = self.inner();
            let last = inner.sessions.get(session).and_then(|s| s.records.last());
            Ok(last.map(|r| (r.envelope.seq, r.chain())))
        })
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let mut inner = self.inner();
            let branched = |(id, s): (&SessionId, &Session)| {
                let from = s.records.first().and_then(branched_off);
                (from.as_ref() == Some(session)).then(|| id.clone())
            };
            if let Some(branch) = inner.sessions.iter().find_map(branched) {
                return Err(StoreError::Forked(branch));
            }
            let Some(gone) = inner.sessions.remove(session) else { return Ok(false) };
            for hash in gone.blobs {
                if !inner.sessions.values().any(|s| s.blobs.contains(&hash)) {
                    inner.blobs.remove(&hash);
                }
            }
            Ok(true)
        })
    }

    fn reopen(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { Ok(()) })
    }
}

impl Blobs for Memory {
    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        blob: &'a Blob,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut inner = self.inner();
            let known = inner
                .sessions
                .get_mut(session)
                .ok_or_else(|| StoreError::NoSession(session.clone()))?;
            known.blobs.push(blob.hash);
            inner.blobs.insert(blob.hash, blob.bytes.clone());
            Ok(())
        })
    }

    fn blob(&self, hash: Hash) -> BoxFuture<'_, Result<Option<Arc<[u8]>>, StoreError>> {
        Box::pin(async move { Ok(self.inner().blobs.get(&hash).cloned()) })
    }

    fn uses<'a>(
        &'a self,
        session: &'a SessionId,
        blob: Hash,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            Ok(self.inner().sessions.get(session).is_some_and(|s| s.blobs.contains(&blob)))
        })
    }
}

impl Catalogue for Memory {
    fn list<'a>(
        &'a self,
        workspace: Option<&'a str>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        Box::pin(async move {
            let inner = self.inner();
            let mut rows: Vec<_> = inner.sessions.iter().collect();
            rows.retain(|(_, s)| workspace.is_none_or(|w| s.listing.workspace == w));
            rows.sort_by_key(|(_, s)| std::cmp::Reverse((s.created, s.made)));
            let row = |(id, s): (&SessionId, &Session)| Listed {
                id: id.clone(),
                title: s.listing.title.clone(),
                workspace: s.listing.workspace.clone(),
                status: s.listing.status.to_string(),
                created: s.created,
                updated: s.records.last().map_or(s.created, |r| r.envelope.at),
                version: s.listing.version,
                seq: s.records.len() as Seq,
            };
            Ok(rows.into_iter().take(limit as usize).map(row).collect())
        })
    }

    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move {
            let inner = self.inner();
            Ok(inner
                .sessions
                .keys()
                .filter(|id| id.as_str().starts_with(prefix))
                .take(2)
                .cloned()
                .collect())
        })
    }

    fn index<'a>(&'a self, _: Option<&'a SessionId>) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move { Ok(0) })
    }

    fn search<'a>(
        &'a self,
        words: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, StoreError>> {
        Box::pin(async move {
            let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
            let inner = self.inner();
            let all =
                inner.sessions.iter().flat_map(|(id, s)| s.records.iter().map(move |r| (id, r)));
            let found = all.filter_map(|(id, record)| {
                let text = text_of(record)?;
                let lower = text.to_lowercase();
                let hit = !words.is_empty() && words.iter().all(|w| lower.contains(w.as_str()));
                hit.then(|| SearchHit {
                    session: id.clone(),
                    seq: record.envelope.seq,
                    excerpt: text,
                })
            });
            Ok(found.take(limit as usize).collect())
        })
    }
}

impl Ledger for Memory {
    fn day_total(&self, day: i64) -> BoxFuture<'_, Result<DayTotal, StoreError>> {
        Box::pin(async move { Ok(self.inner().ledger.get(&day).copied().unwrap_or_default()) })
    }
}
