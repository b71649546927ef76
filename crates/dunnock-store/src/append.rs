//! Compare-and-append: events, inputs, blobs, the session list and the ledger in one transaction.

use crate::blobs::{AS_IT_IS, DEFLATED, SMALL, packed};
use crate::sqlite::{Sqlite, Waiting, Writer, classify, failed, lock};
use dunnock_core::failpoint;
use dunnock_ports::{Appended, Batch, Blob, Charge, StoreError};
use dunnock_proto::{Body, Need, Record, SessionId};
use sqlx::{AssertSqlSafe, Row, SqliteConnection};
use tokio::sync::oneshot;

/// Events per INSERT statement; longer batches take several.
const ROWS: usize = 16;

fn gone() -> StoreError {
    StoreError::Unsure("the writing task ended unexpectedly".into())
}

/// The result, if there is one yet. If the sender is gone, the outcome is unknown.
fn try_result(
    reply: &mut oneshot::Receiver<Result<Appended, StoreError>>,
) -> Option<Result<Appended, StoreError>> {
    match reply.try_recv() {
        Ok(end) => Some(end),
        Err(oneshot::error::TryRecvError::Closed) => Some(Err(gone())),
        Err(oneshot::error::TryRecvError::Empty) => None,
    }
}

/// At most this many batches share one transaction.
const TOGETHER: usize = 64;

impl Sqlite {
    /// Writes a batch. The task that gets the writer writes for all that wait: many sessions share
    /// one sync, and a single one does not wait.
    pub(crate) async fn write_batch(&self, batch: Batch) -> Result<Appended, StoreError> {
        for blob in &batch.blobs {
            self.keep_large(blob)?;
        }
        let (tell, mut reply) = oneshot::channel();
        lock(&self.waiting).push_back(Waiting { batch, tell });
        // Usually runs once: our batch is left out only if very many are ahead of it.
        loop {
            failpoint::hit("store.lock.before", "");
            let slot = tokio::select! {
                biased;
                // An earlier task has written our batch.
                end = &mut reply => return end.unwrap_or_else(|_| Err(gone())),
                slot = self.write.lock() => slot,
            };
            if let Some(end) = try_result(&mut reply) {
                return end;
            }
            let writer = self.writer_with(slot).await;
            failpoint::hit("store.lock.after", "");
            let share: Vec<Waiting> = {
                let mut waiting = lock(&self.waiting);
                waiting.retain(|one| !one.tell.is_closed()); // drop batches whose caller is gone
                let most = waiting.len().min(TOGETHER);
                waiting.drain(..most).collect()
            };
            match writer {
                Ok(writer) => self.write_share(writer, share).await,
                // All waiting callers get the same error.
                Err(error) => {
                    share.into_iter().for_each(|one| drop(one.tell.send(Err(error.clone()))))
                }
            }
            if let Some(end) = try_result(&mut reply) {
                return end;
            }
        }
    }

    async fn write_share(&self, mut writer: Writer<'_>, share: Vec<Waiting>) {
        // A session, and with it a blob's file, may have been deleted since. From here on, with the
        // lock held, none can be.
        let mut share: Vec<(Waiting, Result<Appended, StoreError>)> = share
            .into_iter()
            .map(|one| {
                let lost = |b: &&Blob| b.len() > SMALL && !self.blob_path(b.hash).exists();
                let kept =
                    one.batch.blobs.iter().filter(lost).try_for_each(|blob| self.keep_large(blob));
                (one, kept.map(|()| Appended::Done))
            })
            .collect();
        let size = |record: &Record| {
            if let Body::Text(text) = &record.body { text.len() as u64 } else { 0 }
        };
        let size = share.iter().flat_map(|(one, _)| &one.batch.records).map(size).sum();
        let mut fine: Vec<&mut (Waiting, Result<Appended, StoreError>)> =
            share.iter_mut().filter(|(_, end)| end.is_ok()).collect();
        let ends = match fine.as_slice() {
            [_, _, ..] => together(&mut writer, fine.iter().map(|(one, _)| &one.batch)).await,
            _ => None,
        };
        match ends {
            Some(ends) => {
                if ends.iter().any(|end| matches!(end, Err(StoreError::Full(_)))) {
                    writer.checkpoint_wal_now(&self.dir).await;
                }
                fine.iter_mut().zip(ends).for_each(|(one, end)| one.1 = end);
            }
            // A single batch; or something went wrong with the group, and each batch gets its own
            // result.
            None => {
                let mut full = None;
                for (one, end) in fine {
                    // If the disk was full for one batch, it is full for the next.
                    *end = match &full {
                        Some(full) => Err(StoreError::clone(full)),
                        None => self.alone(&mut writer, &one.batch).await,
                    };
                    full = full
                        .or_else(|| end.clone().err().filter(|e| matches!(e, StoreError::Full(_))));
                }
            }
        }
        if share.iter().any(|(_, end)| matches!(end, Err(StoreError::Unsure(_)))) {
            writer.abandon();
        }
        drop(writer);
        self.checkpoint_wal(size, share.len() as u64);
        for (one, end) in share {
            let _ = one.tell.send(end.map_err(|e| self.mark_damage(e))); // the caller may be gone
        }
    }

    async fn alone(&self, writer: &mut Writer<'_>, batch: &Batch) -> Result<Appended, StoreError> {
        writer.connected(&self.dir).await?;
        let end = transact(writer, batch).await;
        match &end {
            Err(StoreError::Unsure(_)) => writer.abandon(),
            // Checkpointing the write-ahead log may free space.
            Err(StoreError::Full(_)) => writer.checkpoint_wal_now(&self.dir).await,
            _ => {}
        }
        end
    }

    pub(crate) async fn keep_blob(
        &self,
        session: &SessionId,
        blob: &Blob,
    ) -> Result<(), StoreError> {
        let mut writer = self.writer().await?;
        self.keep_large(blob)?;
        let conn = writer.conn()?;
        let row = sqlx::query("SELECT no FROM sessions WHERE id = ?1")
            .bind(session.as_str())
            .fetch_optional(&mut *conn);
        let row =
            row.await.map_err(classify)?.ok_or_else(|| StoreError::NoSession(session.clone()))?;
        keep_small(conn, row.try_get("no").map_err(classify)?, blob).await
    }
}

/// Each statement is a round trip to SQLite's thread, so the usual append makes two: one that
/// updates the session's row, and one that writes the events and commits.
async fn transact(writer: &mut Writer<'_>, batch: &Batch) -> Result<Appended, StoreError> {
    writer.begun();
    let conn = writer.conn()?;
    let end = write(conn, batch, "BEGIN IMMEDIATE", "COMMIT").await;
    let end = match end {
        // A failed commit may have taken effect. With any other error (disk full, damage) its
        // frames were not written, or never reached: nothing was committed.
        Err(Broke::AtTheEnd(StoreError::Failed(why))) => Err(StoreError::Unsure(why)),
        Err(Broke::AtTheEnd(known) | Broke::Before(known)) => Err(known),
        Ok(end) => Ok(end),
    };
    if end == Ok(Appended::Done) {
        writer.ended();
        failpoint::hit("store.commit.after", "");
        return end;
    }
    // A full disk or a failed write ends the transaction, so there may be nothing to roll back.
    // Only a failed commit is uncertain, and `write` has reported that.
    back(writer).await;
    end
}

/// Rolls back; if that fails, abandons the connection.
async fn back(writer: &mut Writer<'_>) {
    let rolled = match writer.conn() {
        Ok(conn) => sqlx::query("ROLLBACK").execute(conn).await.is_ok(),
        Err(_) => false,
    };
    writer.ended();
    if !rolled {
        writer.abandon();
    }
}

/// Writes several batches in one transaction; each is accepted or refused on its own. `None` if
/// anything went wrong before the commit: then nothing was written.
async fn together<'a>(
    writer: &mut Writer<'_>,
    batches: impl Iterator<Item = &'a Batch>,
) -> Option<Vec<Result<Appended, StoreError>>> {
    writer.begun();
    let ends = match each(writer.conn().ok()?, batches).await {
        Some(ends) => ends,
        None => {
            back(writer).await;
            return None;
        }
    };
    failpoint::hit("store.together.before", "");
    match sqlx::query("COMMIT").execute(writer.conn().ok()?).await {
        Ok(_) => {
            writer.ended();
            failpoint::hit("store.together.after", "");
            Some(ends.into_iter().map(Ok).collect())
        }
        // One batch's result may depend on what another wrote, so all are uncertain.
        Err(error) => {
            let error = match classify(error) {
                StoreError::Failed(why) => StoreError::Unsure(why),
                known => known,
            };
            back(writer).await;
            Some(ends.iter().map(|_| Err(error.clone())).collect())
        }
    }
}

/// Writes each batch in its own savepoint.
async fn each<'a>(
    conn: &mut SqliteConnection,
    batches: impl Iterator<Item = &'a Batch>,
) -> Option<Vec<Appended>> {
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await.ok()?;
    let mut ends = Vec::new();
    for batch in batches {
        let end = write(conn, batch, "SAVEPOINT one", "RELEASE one").await.ok()?;
        if end != Appended::Done {
            sqlx::query("ROLLBACK TO one; RELEASE one").execute(&mut *conn).await.ok()?;
        }
        ends.push(end);
    }
    Some(ends)
}

/// Where a write failed: only a failure at the end is uncertain.
enum Broke {
    Before(StoreError),
    AtTheEnd(StoreError),
}

impl From<StoreError> for Broke {
    fn from(error: StoreError) -> Self {
        Self::Before(error)
    }
}

async fn write(
    conn: &mut SqliteConnection,
    batch: &Batch,
    begin: &str,
    end: &str,
) -> Result<Appended, Broke> {
    let Some((last, more)) =
        batch.records.chunks(ROWS).collect::<Vec<_>>().split_last().map(|(l, m)| (*l, m.to_vec()))
    else {
        return Ok(Appended::Done);
    };
    let Some(no) = take_row(conn, batch, begin).await? else {
        return Ok(repeated_or_conflict(conn, batch).await?);
    };
    for (id, seq) in &batch.inputs {
        let sql = "INSERT INTO inputs (no, id, seq) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        let done =
            sqlx::query(sql).bind(no).bind(id.as_str()).bind(*seq as i64).execute(&mut *conn).await;
        if done.map_err(classify)?.rows_affected() == 0 {
            return Ok(repeated_or_conflict(conn, batch).await?);
        }
    }
    for blob in &batch.blobs {
        keep_small(conn, no, blob).await?;
    }
    if let Some(charge) = batch.charge
        && charge_day(conn, charge).await? == Appended::Conflict
    {
        return Ok(Appended::Conflict);
    }
    failpoint::hit("store.facts.before", "");
    for records in more {
        insert(conn, no, records, "").await.map_err(classify)?;
    }
    failpoint::hit("store.commit.before", "");
    match insert(conn, no, last, &format!("; {end}")).await {
        Ok(()) => Ok(Appended::Done),
        Err(error) => Err(Broke::AtTheEnd(classify(error))),
    }
}

/// Begins the transaction and updates the session's row, if its `seq` is still the one the writer
/// saw.
async fn take_row(
    conn: &mut SqliteConnection,
    batch: &Batch,
    begin: &str,
) -> Result<Option<i64>, StoreError> {
    let Some(last) = batch.records.last() else { return Ok(None) };
    let listing = &batch.listing;
    let sql = if batch.after == 0 {
        "INSERT INTO sessions (id, title, workspace, status, version, seq, chain, created, updated)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) ON CONFLICT (id) DO NOTHING RETURNING no"
    } else {
        "UPDATE sessions SET title = ?2, workspace = ?3, status = ?4, version = ?5, seq = ?6, \
         chain = ?7, updated = ?8
         WHERE id = ?1 AND seq = ?9 RETURNING no"
    };
    let row = sqlx::query(AssertSqlSafe(format!("{begin}; {sql}")))
        .bind(batch.session.as_str())
        .bind(&listing.title)
        .bind(&listing.workspace)
        .bind(listing.status.to_string())
        .bind(listing.version as i64)
        .bind(last.envelope.seq as i64)
        .bind(last.chain().0.to_vec())
        .bind(last.envelope.at.0)
        .bind(batch.after as i64)
        .fetch_optional(conn)
        .await
        .map_err(classify)?;
    row.map(|row| row.try_get(0).map_err(classify)).transpose()
}

async fn insert(
    conn: &mut SqliteConnection,
    no: i64,
    records: &[Record],
    then: &str,
) -> Result<(), sqlx::Error> {
    let values = vec!["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"; records.len()].join(", ");
    let sql = format!(
        "INSERT INTO events (no, seq, at, cause, kind, v, must, prev, body, erased) VALUES \
         {values}{then}"
    );
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for record in records {
        let e = &record.envelope;
        let (body, erased) = match &record.body {
            Body::Text(text) => (Some(text.as_ref()), None),
            Body::Erased(hash) => (None, Some(hash.0.to_vec())),
        };
        query = query
            .bind(no)
            .bind(e.seq as i64)
            .bind(e.at.0)
            .bind(e.cause.to_string())
            .bind(&e.kind)
            .bind(i64::from(e.v))
            .bind(e.need == Need::Must)
            .bind(e.prev.0.to_vec())
            .bind(body)
            .bind(erased);
    }
    query.execute(&mut *conn).await.map(drop)
}

/// A command that was already answered gets its first answer; anything else is a conflict with
/// another writer.
async fn repeated_or_conflict(
    conn: &mut SqliteConnection,
    batch: &Batch,
) -> Result<Appended, StoreError> {
    for (id, _) in &batch.inputs {
        let sql = "SELECT inputs.seq FROM inputs JOIN sessions USING (no) WHERE sessions.id = ?1 \
                   AND inputs.id = ?2";
        let row = sqlx::query(sql)
            .bind(batch.session.as_str())
            .bind(id.as_str())
            .fetch_optional(&mut *conn)
            .await;
        if let Some(row) = row.map_err(classify)? {
            let seq: i64 = row.try_get(0).map_err(classify)?;
            return Ok(Appended::Repeated(id.clone(), seq.cast_unsigned()));
        }
    }
    Ok(Appended::Conflict)
}

async fn charge_day(conn: &mut SqliteConnection, charge: Charge) -> Result<Appended, StoreError> {
    let sql = if charge.version == 0 {
        "INSERT INTO ledger (day, micros, version) VALUES (?1, max(0, ?2), 1) ON CONFLICT (day) DO \
         NOTHING"
    } else {
        "UPDATE ledger SET micros = max(0, micros + ?2), version = version + 1 WHERE day = ?1 AND \
         version = ?3"
    };
    let mut query = sqlx::query(sql).bind(charge.day).bind(charge.micros);
    if charge.version > 0 {
        query = query.bind(charge.version.cast_signed());
    }
    let done = query.execute(conn).await.map_err(classify)?;
    Ok(if done.rows_affected() == 1 { Appended::Done } else { Appended::Conflict })
}

async fn keep_small(conn: &mut SqliteConnection, no: i64, blob: &Blob) -> Result<(), StoreError> {
    let bytes = match &blob.file {
        _ if blob.len() > SMALL => None,
        Some(file) => Some(fs_err::read(file.path()).map_err(failed)?),
        None => Some(blob.bytes.to_vec()),
    };
    let size = i64::try_from(blob.len()).map_err(failed)?;
    let (codec, bytes) = match bytes.map(packed) {
        None => (AS_IT_IS, None),
        Some(Ok(small)) => (DEFLATED, Some(small)),
        Some(Err(whole)) => (AS_IT_IS, Some(whole)),
    };
    let sql = "INSERT INTO blobs (hash, codec, size, bytes) VALUES (?1, ?4, ?2, ?3) ON CONFLICT \
               DO NOTHING";
    let hash = blob.hash.0.to_vec();
    sqlx::query(sql)
        .bind(&hash)
        .bind(size)
        .bind(bytes)
        .bind(codec)
        .execute(&mut *conn)
        .await
        .map_err(classify)?;
    failpoint::hit("store.blob.after", "");
    let sql = "INSERT INTO blob_uses (no, hash) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    sqlx::query(sql).bind(no).bind(&hash).execute(&mut *conn).await.map(drop).map_err(classify)
}
