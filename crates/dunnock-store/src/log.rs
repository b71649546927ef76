//! Implements the log: reads events and lists here, writes in `append.rs`, deletes in `delete.rs`.

use crate::sqlite::{Sqlite, classify, failed};
use dunnock_ports::{
    Appended, Batch, Blob, Blobs, BoxFuture, Catalogue, DayTotal, EventLog, Ledger, Listed,
    SearchHit, StoreError,
};
use dunnock_proto::{At, Body, Envelope, Hash, InputId, Need, Record, Seq, SessionId};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};
use std::sync::Arc;
use std::task::Poll;

/// Events fetched at once, so that long logs are read in bounded memory.
pub(crate) const PAGE: i64 = 256;

impl EventLog for Sqlite {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(self.write_batch(batch))
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: Seq,
        each: &'a mut (dyn FnMut(Record) -> bool + Send),
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut slot = self.reader().await?;
            let conn = slot.as_mut().ok_or_else(|| failed("the connection is closed"))?;
            let Some((no, seq)) = number(conn, session).await.map_err(|e| self.mark_damage(e))?
            else {
                return Ok(());
            };
            let end = read_events(conn, no, after, seq, PAGE, each).await;
            end.map_err(|e| self.mark_damage(e))
        })
    }

    fn answered<'a>(
        &'a self,
        session: &'a SessionId,
        input: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        Box::pin(async move {
            let mut slot = self.reader().await?;
            let conn = slot.as_mut().ok_or_else(|| failed("the connection is closed"))?;
            let sql = "SELECT inputs.seq FROM inputs JOIN sessions USING (no) WHERE sessions.id = \
                       ?1 AND inputs.id = ?2";
            let row = sqlx::query(sql)
                .bind(session.as_str())
                .bind(input.as_str())
                .fetch_optional(conn)
                .await;
            row.map_err(classify)?
                .map(|r| r.try_get::<i64, _>(0).map(i64::cast_unsigned).map_err(classify))
                .transpose()
        })
    }

    fn tip<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<(Seq, Hash)>, StoreError>> {
        Box::pin(async move {
            let mut slot = self.reader().await?;
            let conn = slot.as_mut().ok_or_else(|| failed("the connection is closed"))?;
            let sql = "SELECT seq, chain FROM sessions WHERE id = ?1";
            let row = sqlx::query(sql)
                .bind(session.as_str())
                .fetch_optional(conn)
                .await
                .map_err(classify)?;
            let Some(row) = row else { return Ok(None) };
            let chain: &[u8] = row.try_get(1).map_err(classify)?;
            let seq: i64 = row.try_get(0).map_err(classify)?;
            Ok(Some((seq.cast_unsigned(), chain.try_into().map(Hash).map_err(damaged)?)))
        })
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.forget(session))
    }

    fn tidy(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shrink())
    }

    fn reopen(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            *self.write.lock().await = None;
            *self.read.lock().await = None;
            self.writer().await.map(drop)?;
            self.reader().await.map(drop)
        })
    }
}

impl Blobs for Sqlite {
    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        blob: &'a Blob,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.keep_blob(session, blob))
    }

    fn blob(&self, hash: Hash) -> BoxFuture<'_, Result<Option<Arc<[u8]>>, StoreError>> {
        Box::pin(self.read_blob(hash))
    }

    fn uses<'a>(
        &'a self,
        session: &'a SessionId,
        blob: Hash,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let mut slot = self.reader().await?;
            let conn = slot.as_mut().ok_or_else(|| failed("the connection is closed"))?;
            let sql = "SELECT 1 FROM blob_uses JOIN sessions USING (no) WHERE sessions.id = ?1 \
                       AND hash = ?2";
            let row = sqlx::query(sql)
                .bind(session.as_str())
                .bind(blob.0.to_vec())
                .fetch_optional(conn)
                .await;
            Ok(row.map_err(classify)?.is_some())
        })
    }
}

impl Catalogue for Sqlite {
    fn list<'a>(
        &'a self,
        workspace: Option<&'a str>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        Box::pin(async move {
            let mut slot = self.reader().await?;
            let conn = slot.as_mut().ok_or_else(|| failed("the connection is closed"))?;
            let sql = "SELECT id, title, workspace, status, created, updated, version, seq FROM \
                       sessions
                       WHERE ?1 IS NULL OR workspace = ?1 ORDER BY created DESC, no DESC LIMIT ?2";
            let rows =
                sqlx::query(sql).bind(workspace).bind(i64::from(limit)).fetch_all(conn).await;
            let rows = rows.map_err(classify).map_err(|e| self.mark_damage(e))?;
            // One bad row does not hide the others; the next start moves the database aside and
            // reports what was lost.
            let good: Vec<Listed> = rows.iter().filter_map(|row| listed(row).ok()).collect();
            if good.len() < rows.len() {
                self.note_damage();
            }
            Ok(good)
        })
    }

    fn listed<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Listed>, StoreError>> {
        Box::pin(async move {
            let mut slot = self.reader().await?;
            let conn = slot.as_mut().ok_or_else(|| failed("the connection is closed"))?;
            let sql = "SELECT id, title, workspace, status, created, updated, version, seq FROM \
                       sessions WHERE id = ?1";
            let row = sqlx::query(sql).bind(session.as_str()).fetch_optional(conn).await;
            row.map_err(classify).map_err(|e| self.mark_damage(e))?.as_ref().map(listed).transpose()
        })
    }

    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move {
            let mut slot = self.reader().await?;
            let conn = slot.as_mut().ok_or_else(|| failed("the connection is closed"))?;
            let sql =
                "SELECT id FROM sessions WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id LIMIT 2";
            let rows = sqlx::query(sql).bind(prefix).fetch_all(conn).await.map_err(classify)?;
            rows.iter()
                .map(|r| r.try_get::<&str, _>(0).map_err(classify)?.parse().map_err(damaged))
                .collect()
        })
    }

    fn index<'a>(
        &'a self,
        session: Option<&'a SessionId>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.bring_index_up_to_date(session))
    }

    fn search<'a>(
        &'a self,
        words: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, StoreError>> {
        Box::pin(self.find_words(words, limit))
    }
}

impl Ledger for Sqlite {
    fn day_total(&self, day: i64) -> BoxFuture<'_, Result<DayTotal, StoreError>> {
        Box::pin(async move {
            let mut slot = self.reader().await?;
            let conn = slot.as_mut().ok_or_else(|| failed("the connection is closed"))?;
            let row = sqlx::query("SELECT micros, version FROM ledger WHERE day = ?1")
                .bind(day)
                .fetch_optional(conn);
            let Some(row) = row.await.map_err(classify)? else { return Ok(DayTotal::default()) };
            let version: i64 = row.try_get(1).map_err(classify)?;
            Ok(DayTotal {
                micros: row.try_get(0).map_err(classify)?,
                version: version.cast_unsigned(),
            })
        })
    }
}

/// The row number of a session and its number of events.
pub(crate) async fn number(
    conn: &mut SqliteConnection,
    id: &SessionId,
) -> Result<Option<(i64, Seq)>, StoreError> {
    let row = sqlx::query("SELECT no, seq FROM sessions WHERE id = ?1")
        .bind(id.as_str())
        .fetch_optional(conn)
        .await;
    let Some(row) = row.map_err(classify)? else { return Ok(None) };
    let seq: i64 = row.try_get(1).map_err(classify)?;
    Ok(Some((row.try_get(0).map_err(classify)?, seq.cast_unsigned())))
}

/// Passes on the events after `after`, up to `last`, the session's number of events.
///
/// A page of events is one row of text, concatenated inside SQLite: fetching a row per event costs
/// several times as much as reading it. The separators cannot occur in the data: JSON escapes
/// control characters.
pub(crate) async fn read_events(
    conn: &mut SqliteConnection,
    no: i64,
    after: Seq,
    last: Seq,
    page: i64,
    each: &mut (dyn FnMut(Record) -> bool + Send),
) -> Result<(), StoreError> {
    let mut at = after;
    let mut page_of = if at < last { Some(fetch(conn, no, at, last, page).await?) } else { None };
    while let Some(row) = page_of.take() {
        let Some(text) = row.try_get::<Option<&str>, _>(0).map_err(classify)? else {
            return Err(StoreError::Damaged(format!("{} of {last} events are missing", last - at)));
        };
        // Events have no gaps, so the next page is known: SQLite's thread fetches it while this one
        // is parsed.
        let upto = (at + page.cast_unsigned()).min(last);
        let mut next = (upto < last).then(|| Box::pin(fetch(&mut *conn, no, upto, last, page)));
        let mut ready = None;
        if let Some(next) = &mut next {
            std::future::poll_fn(|cx| {
                if let Poll::Ready(done) = next.as_mut().poll(cx) {
                    ready = Some(done);
                }
                Poll::Ready(())
            })
            .await;
        }
        for line in text.split('\x1e') {
            let record = record(line)
                .ok_or_else(|| damaged(format!("the event after {at} cannot be read")))?;
            at = record.envelope.seq;
            if !each(record) {
                return Ok(());
            }
        }
        if at != upto {
            return Err(StoreError::Damaged(format!("the event after {at} is missing")));
        }
        page_of = match (ready, next) {
            (Some(row), _) => Some(row?),
            (None, Some(next)) => Some(next.await?),
            (None, None) => None,
        };
    }
    Ok(())
}

async fn fetch(
    conn: &mut SqliteConnection,
    no: i64,
    after: Seq,
    last: Seq,
    page: i64,
) -> Result<SqliteRow, StoreError> {
    let sql = "SELECT group_concat(seq || x'1f' || at || x'1f' || cause || x'1f' || kind || x'1f' \
               || v || x'1f' ||
                   must || x'1f' || hex(prev) || x'1f' || coalesce(hex(erased), '') || x'1f' || \
               coalesce(body, ''), x'1e')
               FROM (SELECT * FROM events WHERE no = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq \
               LIMIT ?4)";
    sqlx::query(sql)
        .bind(no)
        .bind(after as i64)
        .bind(last as i64)
        .bind(page)
        .fetch_one(conn)
        .await
        .map_err(classify)
}

fn record(line: &str) -> Option<Record> {
    let mut fields = line.splitn(9, '\x1f');
    let seq = fields.next()?.parse().ok()?;
    let at = At(fields.next()?.parse().ok()?);
    let cause = fields.next()?.into();
    let kind = fields.next()?.to_owned();
    let v = fields.next()?.parse().ok()?;
    let need = if fields.next()? == "1" { Need::Must } else { Need::May };
    let prev = fields.next()?.parse().ok()?;
    let body = match fields.next()? {
        "" => Body::Text(fields.next()?.into()),
        erased => Body::Erased(erased.parse().ok()?),
    };
    let envelope = Envelope { seq, at, cause, kind, v, need, prev };
    Some(Record { envelope, body })
}

fn listed(row: &SqliteRow) -> Result<Listed, StoreError> {
    let number = |n: usize| row.try_get::<i64, _>(n).map_err(classify);
    let text = |n: usize| row.try_get::<String, _>(n).map_err(classify);
    Ok(Listed {
        id: text(0)?.parse().map_err(damaged)?,
        title: text(1)?,
        workspace: text(2)?,
        status: text(3)?,
        created: At(number(4)?),
        updated: At(number(5)?),
        version: number(6)?.cast_unsigned(),
        seq: number(7)?.cast_unsigned(),
    })
}

pub(crate) fn damaged(error: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged(error.to_string())
}
