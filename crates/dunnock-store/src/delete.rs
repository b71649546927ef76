//! Deletes a session.
//!
//! Invariant: a session that is gone from the list is gone for good: its events, indexed words and
//! blobs are deleted in one transaction. The files of large blobs follow while the writer's lock is
//! still held; a crash in between leaves a file that no event refers to, never an event whose file
//! is missing.

use crate::sqlite::{Sqlite, classify};
use dunnock_core::failpoint;
use dunnock_ports::StoreError;
use dunnock_proto::{Decoded, Event, Hash, Record, SessionId};
use sqlx::{Row, SqliteConnection};

/// The session that this one was forked from, according to its first event.
pub(crate) fn branched_off(first: &Record) -> Option<SessionId> {
    match first.decode() {
        Decoded::Known(Event::Forked(forked)) => Some(forked.from),
        Decoded::Known(_) | Decoded::Unknown(_) => None,
    }
}

impl Sqlite {
    pub(crate) async fn forget(&self, session: &SessionId) -> Result<bool, StoreError> {
        let mut writer = self.writer().await?;
        let conn = writer.conn()?;
        // Overwrite deleted data, in the tables and in the full-text index.
        for sql in [
            "PRAGMA secure_delete = ON",
            "INSERT INTO words (words, rank) VALUES ('secure-delete', 1)",
        ] {
            sqlx::query(sql).execute(&mut *conn).await.map_err(classify)?;
        }
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await.map_err(classify)?;
        failpoint::hit("store.delete.before", "");
        let files = match remove(conn, session).await {
            Ok(Some(files)) => files,
            other => {
                if sqlx::query("ROLLBACK").execute(&mut *conn).await.is_err() {
                    writer.abandon();
                }
                return other.map(|_| false);
            }
        };
        if let Err(error) = sqlx::query("COMMIT").execute(&mut *conn).await {
            writer.abandon();
            return Err(match classify(error) {
                StoreError::Failed(why) => StoreError::Unsure(why),
                known => known,
            });
        }
        failpoint::hit("store.delete.after", "");
        // The write-ahead log holds old pages until it is checkpointed; a reader may delay that for
        // a while.
        for sql in ["PRAGMA secure_delete = OFF", "PRAGMA wal_checkpoint(TRUNCATE)"] {
            let _ = sqlx::query(sql).execute(&mut *conn).await;
        }
        for hash in files {
            let _ = std::fs::remove_file(self.blob_path(hash)); // already gone, or stays as an orphan
        }
        Ok(true)
    }
}

/// Deletes the rows. Returns the large blobs that no session uses any more; `None` if there is no
/// such session.
async fn remove(
    conn: &mut SqliteConnection,
    session: &SessionId,
) -> Result<Option<Vec<Hash>>, StoreError> {
    let row = sqlx::query("SELECT no FROM sessions WHERE id = ?1")
        .bind(session.as_str())
        .fetch_optional(&mut *conn)
        .await;
    let Some(row) = row.map_err(classify)? else { return Ok(None) };
    let no: i64 = row.try_get(0).map_err(classify)?;
    let sql = "SELECT sessions.id FROM events JOIN sessions USING (no)
               WHERE events.seq = 1 AND events.kind = 'forked' AND json_extract(events.body, \
               '$.from') = ?1 LIMIT 1";
    let branch = sqlx::query(sql)
        .bind(session.as_str())
        .fetch_optional(&mut *conn)
        .await
        .map_err(classify)?;
    if let Some(branch) = branch {
        let id: String = branch.try_get(0).map_err(classify)?;
        return Err(id.parse().map_or_else(
            |_| StoreError::Damaged(format!("{id} is not an id")),
            StoreError::Forked,
        ));
    }
    let only = "SELECT mine.hash FROM blob_uses AS mine
                WHERE mine.no = ?1 AND NOT EXISTS (SELECT 1 FROM blob_uses AS other WHERE \
                other.hash = mine.hash AND other.no <> ?1)";
    let sql = format!("SELECT hash FROM blobs WHERE bytes IS NULL AND hash IN ({only})");
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(no)
        .fetch_all(&mut *conn)
        .await
        .map_err(classify)?;
    let mut files = Vec::new();
    for row in rows {
        let hash: Vec<u8> = row.try_get(0).map_err(classify)?;
        files.extend(<[u8; 32]>::try_from(hash).map(Hash));
    }
    let blobs = format!("DELETE FROM blobs WHERE hash IN ({only})");
    sqlx::query(sqlx::AssertSqlSafe(blobs)).bind(no).execute(&mut *conn).await.map_err(classify)?;
    for sql in [
        "DELETE FROM blob_uses WHERE no = ?1",
        "DELETE FROM words WHERE rowid IN (SELECT id FROM events WHERE no = ?1)",
        "DELETE FROM indexed WHERE no = ?1",
        "DELETE FROM inputs WHERE no = ?1",
        "DELETE FROM events WHERE no = ?1",
        "DELETE FROM sessions WHERE no = ?1",
    ] {
        sqlx::query(sql).bind(no).execute(&mut *conn).await.map_err(classify)?;
    }
    Ok(Some(files))
}
