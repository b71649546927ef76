//! A third store, on plain files: it shows what a new store has to bring, and that the contract is
//! enough to write one against. One process, no index, no speed, and no protection against a crash
//! between two of its files.

use dunnock_ports::{
    Appended, Batch, Blob, Blobs, BoxFuture, Catalogue, DayTotal, EventLog, Ledger, Listed,
    SearchHit, Store, StoreError,
};
use dunnock_proto::{At, Body, Decoded, Event, Hash, InputId, Record, Seq, SessionId};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// A folder with a file for each session, each blob and each day.
struct FileStore {
    dir: PathBuf,
    /// Held while a session's file is read or written; counts the sessions made.
    turn: Mutex<u64>,
}

/// What a session's file holds.
#[derive(Default, Serialize, Deserialize)]
struct Saved {
    made: u64,
    records: Vec<Record>,
    inputs: Vec<(InputId, Seq)>,
    blobs: Vec<Hash>,
    title: String,
    workspace: String,
    status: String,
    version: Seq,
}

fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::Failed(error.to_string())
}

impl FileStore {
    fn new(dir: &Path) -> Self {
        for name in ["sessions", "blobs", "days"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        let store = Self { dir: dir.into(), turn: Mutex::new(0) };
        let newest = store.all().unwrap().first().map_or(0, |(_, saved)| saved.made);
        *store.turn() = newest;
        store
    }
    fn turn(&self) -> MutexGuard<'_, u64> {
        self.turn.lock().unwrap()
    }
    fn path(&self, kind: &str, name: impl std::fmt::Display) -> PathBuf {
        self.dir.join(kind).join(name.to_string())
    }
    /// Replaces a file as a whole.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let part = self.dir.join("part");
        std::fs::write(&part, bytes).map_err(failed)?;
        std::fs::rename(part, path).map_err(failed)
    }
    fn load(&self, session: &SessionId) -> Result<Option<Saved>, StoreError> {
        match std::fs::read(self.path("sessions", session)) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| StoreError::Damaged(error.to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
    fn save(&self, session: &SessionId, saved: &Saved) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(saved).map_err(failed)?;
        self.write(&self.path("sessions", session), &bytes)
    }
    fn all(&self) -> Result<Vec<(SessionId, Saved)>, StoreError> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(self.dir.join("sessions")).map_err(failed)?.flatten() {
            let id: SessionId = entry.file_name().to_string_lossy().parse().map_err(failed)?;
            if let Some(saved) = self.load(&id)? {
                all.push((id, saved));
            }
        }
        all.sort_by_key(|(_, saved)| std::cmp::Reverse(saved.made));
        Ok(all)
    }
    fn put_blob(&self, blob: &Blob) -> Result<(), StoreError> {
        let bytes = match &blob.file {
            Some(file) => std::fs::read(file.path()).map_err(failed)?,
            None => blob.bytes.to_vec(),
        };
        self.write(&self.path("blobs", blob.hash), &bytes)
    }
    fn total(&self, day: i64) -> Result<DayTotal, StoreError> {
        let Ok(text) = std::fs::read_to_string(self.path("days", day)) else {
            return Ok(DayTotal::default());
        };
        let (micros, version) = serde_json::from_str(&text).map_err(failed)?;
        Ok(DayTotal { micros, version })
    }
    fn try_append(&self, batch: Batch, turn: &mut u64) -> Result<Appended, StoreError> {
        let known = self.load(&batch.session)?;
        for (n, (id, seq)) in batch.inputs.iter().enumerate() {
            let stored = known.iter().flat_map(|saved| &saved.inputs);
            let twice = batch.inputs[..n].iter().any(|(other, _)| other == id);
            if let Some((_, first)) = stored.into_iter().find(|(other, _)| other == id) {
                return Ok(Appended::Repeated(id.clone(), *first));
            }
            if twice {
                return Ok(Appended::Repeated(id.clone(), *seq));
            }
        }
        let seen = known.as_ref().map_or(0, |saved| saved.records.len() as Seq);
        let total = batch.charge.map(|charge| self.total(charge.day)).transpose()?;
        let stale = batch.charge.zip(total).is_some_and(|(c, now)| c.version != now.version);
        if seen != batch.after || stale {
            return Ok(Appended::Conflict);
        }
        batch.blobs.iter().try_for_each(|blob| self.put_blob(blob))?;
        *turn += 1;
        let mut saved = known.unwrap_or(Saved { made: *turn, ..Saved::default() });
        saved.records.extend(batch.records);
        saved.inputs.extend(batch.inputs);
        saved.blobs.extend(batch.blobs.iter().map(|blob| blob.hash));
        let shown = batch.listing;
        (saved.title, saved.workspace) = (shown.title, shown.workspace);
        (saved.status, saved.version) = (shown.status.to_string(), shown.version);
        // The day first: a crash in between leaves a charge too many, never one too few. A real store
        // writes both at once.
        if let Some((charge, now)) = batch.charge.zip(total) {
            let row = ((now.micros + charge.micros).max(0), now.version + 1);
            let text = serde_json::to_vec(&row).map_err(failed)?;
            self.write(&self.path("days", charge.day), &text)?;
        }
        self.save(&batch.session, &saved)?;
        Ok(Appended::Done)
    }
}

impl EventLog for FileStore {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move { self.try_append(batch, &mut self.turn()) })
    }
    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: Seq,
        each: &'a mut (dyn FnMut(Record) -> bool + Send),
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let _turn = self.turn();
            let records = self.load(session)?.into_iter().flat_map(|saved| saved.records);
            let _ = records.skip(usize::try_from(after).unwrap_or(usize::MAX)).all(each);
            Ok(())
        })
    }
    fn answered<'a>(
        &'a self,
        session: &'a SessionId,
        input: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        Box::pin(async move {
            let _turn = self.turn();
            let inputs = self.load(session)?.into_iter().flat_map(|saved| saved.inputs);
            Ok(inputs.into_iter().find(|(id, _)| id == input).map(|(_, seq)| seq))
        })
    }
    fn tip<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<(Seq, Hash)>, StoreError>> {
        Box::pin(async move {
            let _turn = self.turn();
            let last = self.load(session)?.and_then(|mut saved| saved.records.pop());
            Ok(last.map(|record| (record.envelope.seq, record.chain())))
        })
    }
    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let _turn = self.turn();
            let Some(gone) = self.load(session)? else { return Ok(false) };
            let others: Vec<_> = self.all()?.into_iter().filter(|(id, _)| id != session).collect();
            for (id, saved) in &others {
                let first = saved.records.first().map(Record::decode);
                if matches!(first, Some(Decoded::Known(Event::Forked(f))) if f.from == *session) {
                    return Err(StoreError::Forked(id.clone()));
                }
            }
            std::fs::remove_file(self.path("sessions", session)).map_err(failed)?;
            for hash in gone.blobs {
                if !others.iter().any(|(_, saved)| saved.blobs.contains(&hash)) {
                    let _ = std::fs::remove_file(self.path("blobs", hash)); // named twice
                }
            }
            Ok(true)
        })
    }
    fn reopen(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
}

impl Blobs for FileStore {
    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        blob: &'a Blob,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let _turn = self.turn();
            let saved = self.load(session)?;
            let mut saved = saved.ok_or_else(|| StoreError::NoSession(session.clone()))?;
            self.put_blob(blob)?;
            saved.blobs.push(blob.hash);
            self.save(session, &saved)
        })
    }
    fn blob(&self, hash: Hash) -> BoxFuture<'_, Result<Option<Arc<[u8]>>, StoreError>> {
        Box::pin(async move { Ok(std::fs::read(self.path("blobs", hash)).ok().map(Into::into)) })
    }
    fn uses<'a>(
        &'a self,
        session: &'a SessionId,
        blob: Hash,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.load(session)?.is_some_and(|s| s.blobs.contains(&blob))) })
    }
}

impl Catalogue for FileStore {
    fn list<'a>(
        &'a self,
        workspace: Option<&'a str>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        Box::pin(async move {
            let _turn = self.turn();
            let at = |record: Option<&Record>| record.map_or(At(0), |record| record.envelope.at);
            let row = |(id, saved): (SessionId, Saved)| Listed {
                id,
                created: at(saved.records.first()),
                updated: at(saved.records.last()),
                seq: saved.records.len() as Seq,
                title: saved.title,
                workspace: saved.workspace,
                status: saved.status,
                version: saved.version,
            };
            let mut all = self.all()?;
            all.retain(|(_, saved)| workspace.is_none_or(|folder| saved.workspace == folder));
            Ok(all.into_iter().take(limit as usize).map(row).collect())
        })
    }
    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move {
            let _turn = self.turn();
            let ids = self.all()?.into_iter().map(|(id, _)| id);
            Ok(ids.filter(|id| id.as_str().starts_with(prefix)).take(2).collect())
        })
    }
    fn index<'a>(&'a self, _: Option<&'a SessionId>) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async { Ok(0) })
    }
    fn search<'a>(
        &'a self,
        words: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, StoreError>> {
        Box::pin(async move {
            let _turn = self.turn();
            let words: Vec<&str> = words.split_whitespace().collect();
            let mut found = Vec::new();
            for (session, saved) in self.all()? {
                for record in saved.records {
                    let Body::Text(text) = &record.body else { continue };
                    if !words.is_empty() && words.iter().all(|word| text.contains(word)) {
                        let (session, seq) = (session.clone(), record.envelope.seq);
                        found.push(SearchHit { session, seq, excerpt: text.to_string() });
                    }
                }
            }
            found.truncate(limit as usize);
            Ok(found)
        })
    }
}

impl Ledger for FileStore {
    fn day_total(&self, day: i64) -> BoxFuture<'_, Result<DayTotal, StoreError>> {
        Box::pin(async move { self.total(day) })
    }
}

async fn on_files() -> (tempfile::TempDir, Arc<dyn Store>) {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path());
    (dir, Arc::new(store))
}

dunnock_testkit::store_contract!(keeps_the_contract, on_files());
