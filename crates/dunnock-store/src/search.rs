//! Full-text search: a projection with its own cursor, filled while the store is idle and never
//! inside an append.

use crate::log::{PAGE, damaged, read_events};
use crate::sqlite::{Sqlite, classify, failed};
use dunnock_ports::{SearchHit, StoreError};
use dunnock_proto::{Decoded, Event, Part, Record, SessionId};
use sqlx::Row;

/// Events indexed per transaction, so that writers wait only briefly.
const SHARE: u64 = 500;

impl Sqlite {
    pub(crate) async fn bring_index_up_to_date(
        &self,
        session: Option<&SessionId>,
    ) -> Result<u64, StoreError> {
        let behind: Vec<i64> = {
            let mut slot = self.reader().await?;
            let conn = slot.as_mut().ok_or_else(|| failed("the connection is closed"))?;
            let sql = "SELECT sessions.no FROM sessions LEFT JOIN indexed USING (no)
                       WHERE coalesce(indexed.seq, 0) < sessions.seq AND (?1 IS NULL OR \
                       sessions.id = ?1)";
            let rows = sqlx::query(sql)
                .bind(session.map(SessionId::as_str))
                .fetch_all(conn)
                .await
                .map_err(classify)?;
            rows.iter().map(|row| row.try_get(0).map_err(classify)).collect::<Result<_, _>>()?
        };
        let mut done = 0;
        for no in behind {
            done += self.index_one(no).await?;
        }
        Ok(done)
    }

    /// Lets writers in between transactions.
    async fn index_one(&self, no: i64) -> Result<u64, StoreError> {
        let mut done = 0;
        loop {
            let mut writer = self.writer().await?;
            let conn = writer.conn()?;
            let sql = "SELECT coalesce(indexed.seq, 0), sessions.seq FROM sessions LEFT JOIN \
                       indexed USING (no)
                       WHERE sessions.no = ?1";
            let row =
                sqlx::query(sql).bind(no).fetch_optional(&mut *conn).await.map_err(classify)?;
            let Some(row) = row else { return Ok(done) };
            let from = row.try_get::<i64, _>(0).map_err(classify)?.cast_unsigned();
            let to = row.try_get::<i64, _>(1).map_err(classify)?.cast_unsigned().min(from + SHARE);
            if from >= to {
                return Ok(done);
            }
            let mut words = Vec::new();
            read_events(conn, no, from, to, PAGE, &mut |record| {
                words.extend(text_of(&record).map(|text| (record.envelope.seq, text)));
                true
            })
            .await?;
            writer.begun();
            let conn = writer.conn()?;
            let filled = async {
                sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await?;
                for (seq, text) in words {
                    let sql = "INSERT INTO words (rowid, text) SELECT id, ?3 FROM events WHERE no \
                               = ?1 AND seq = ?2";
                    sqlx::query(sql)
                        .bind(no)
                        .bind(seq.cast_signed())
                        .bind(text)
                        .execute(&mut *conn)
                        .await?;
                }
                let sql = "INSERT INTO indexed (no, seq) VALUES (?1, ?2) ON CONFLICT (no) DO \
                           UPDATE SET seq = ?2";
                sqlx::query(sql).bind(no).bind(to.cast_signed()).execute(&mut *conn).await?;
                sqlx::query("COMMIT").execute(&mut *conn).await
            }
            .await;
            writer.ended();
            if let Err(error) = filled {
                writer.abandon();
                return Err(classify(error));
            }
            done += to - from;
        }
    }

    pub(crate) async fn find_words(
        &self,
        words: &str,
        limit: u32,
    ) -> Result<Vec<SearchHit>, StoreError> {
        // Quote each word, so that what the user types is never parsed as query syntax.
        let quoted: Vec<String> =
            words.split_whitespace().map(|w| format!("\"{}\"", w.replace('"', "\"\""))).collect();
        if quoted.is_empty() {
            return Ok(Vec::new());
        }
        let mut slot = self.reader().await?;
        let conn = slot.as_mut().ok_or_else(|| failed("the connection is closed"))?;
        let sql = "SELECT sessions.id, events.seq, snippet(words, 0, '', '', ' ... ', 12) FROM \
                   words
                   JOIN events ON events.id = words.rowid JOIN sessions ON sessions.no = events.no
                   WHERE words MATCH ?1 ORDER BY rank LIMIT ?2";
        let rows =
            sqlx::query(sql).bind(quoted.join(" ")).bind(i64::from(limit)).fetch_all(conn).await;
        let found = |row: &sqlx::sqlite::SqliteRow| {
            let seq: i64 = row.try_get(1).map_err(classify)?;
            let session = row.try_get::<&str, _>(0).map_err(classify)?.parse().map_err(damaged)?;
            Ok(SearchHit {
                session,
                seq: seq.cast_unsigned(),
                excerpt: row.try_get(2).map_err(classify)?,
            })
        };
        rows.map_err(classify)?.iter().map(found).collect()
    }
}

/// The searchable text of an event.
pub(crate) fn text_of(record: &Record) -> Option<String> {
    let Decoded::Known(event) = record.decode() else { return None };
    match event {
        Event::Prompted(e) => Some(e.text.to_string()),
        Event::Titled(e) => Some(e.title),
        Event::Finished(e) => Some(e.shown.to_string()),
        Event::Answered(e) => {
            let parts = e.parts.iter().map(|part| match part {
                Part::Text { text } => text.as_ref(),
                Part::Call(call) => call.args.as_ref(),
                Part::Reasoning { .. } => "",
            });
            Some(parts.collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}
