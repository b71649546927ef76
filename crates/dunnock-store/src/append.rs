//! Compare-and-append: facts, inputs, blobs, list and ledger in one transaction.

use crate::open::{Sqlite, Writer, classify, failed};
use crate::schema::key;
use dunnock_core::failpoint;
use dunnock_core::ports::{Appended, Batch, Blob, Charge, LogError};
use dunnock_proto::{Body, Need, Record};
use sqlx::{AssertSqlSafe, Row, SqliteConnection};

/// Facts in one statement; longer batches take several.
const ROWS: usize = 16;

impl Sqlite {
    pub(crate) async fn write_batch(&self, batch: Batch) -> Result<Appended, LogError> {
        for blob in &batch.blobs {
            self.keep_large(blob)?;
        }
        failpoint::hit("store.lock.before", "");
        let mut writer = self.writer().await?;
        failpoint::hit("store.lock.after", "");
        let end = transact(&mut writer, &batch).await;
        if matches!(end, Err(LogError::Unsure(_))) {
            writer.abandon();
        }
        drop(writer);
        self.fold_back();
        end.map_err(|e| self.mark_damage(e))
    }
}

async fn transact(writer: &mut Writer<'_>, batch: &Batch) -> Result<Appended, LogError> {
    let conn = writer.conn()?;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await.map_err(classify)?;
    let written = write(conn, batch).await;
    match written {
        Ok(Appended::Done) => {}
        end => {
            if sqlx::query("ROLLBACK").execute(&mut *conn).await.is_err() {
                writer.abandon();
            }
            return end;
        }
    }
    failpoint::hit("store.commit.before", "");
    match sqlx::query("COMMIT").execute(&mut *conn).await {
        Ok(_) => {
            failpoint::hit("store.commit.after", "");
            Ok(Appended::Done)
        }
        Err(error) => {
            let rolled_back = sqlx::query("ROLLBACK").execute(&mut *conn).await.is_ok();
            match classify(error) {
                // The frames before the commit's own could not be written: nothing was committed.
                full @ LogError::Full(_) if rolled_back => Err(full),
                other => Err(LogError::Unsure(other.to_string())),
            }
        }
    }
}

async fn write(conn: &mut SqliteConnection, batch: &Batch) -> Result<Appended, LogError> {
    let Some(last) = batch.records.last() else { return Ok(Appended::Done) };
    let (seq, at) = (last.envelope.seq as i64, last.envelope.at.0);
    let listing = &batch.listing;
    let sql = if batch.after == 0 {
        "INSERT INTO sessions (id, title, workspace, status, version, seq, chain, created, updated)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) ON CONFLICT (id) DO NOTHING RETURNING no"
    } else {
        "UPDATE sessions SET title = ?2, workspace = ?3, status = ?4, version = ?5, seq = ?6, chain = ?7, updated = ?8
         WHERE id = ?1 AND seq = ?9 RETURNING no"
    };
    let mut query = sqlx::query(sql)
        .bind(batch.session.as_str())
        .bind(&listing.title)
        .bind(&listing.workspace)
        .bind(listing.status.to_string())
        .bind(listing.version as i64)
        .bind(seq)
        .bind(last.chain().0.to_vec())
        .bind(at);
    if batch.after > 0 {
        query = query.bind(batch.after as i64);
    }
    let row = query.fetch_optional(&mut *conn).await.map_err(classify)?;
    let Some(row) = row else { return repeated_or_conflict(conn, batch).await };
    let no: i64 = row.try_get(0).map_err(classify)?;
    for (id, seq) in &batch.inputs {
        let sql = "INSERT INTO inputs (no, id, seq) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        let done = sqlx::query(sql).bind(no).bind(id.as_str()).bind(*seq as i64).execute(&mut *conn).await;
        if done.map_err(classify)?.rows_affected() == 0 {
            return repeated_or_conflict(conn, batch).await;
        }
    }
    failpoint::hit("store.facts.before", "");
    for records in batch.records.chunks(ROWS) {
        insert(conn, no, records).await?;
    }
    failpoint::hit("store.facts.after", "");
    for blob in &batch.blobs {
        keep_small(conn, no, blob).await?;
    }
    match batch.charge {
        Some(charge) => charge_day(conn, charge).await,
        None => Ok(Appended::Done),
    }
}

async fn insert(conn: &mut SqliteConnection, no: i64, records: &[Record]) -> Result<(), LogError> {
    let values = vec!["(?, ?, ?, ?, ?, ?, ?, ?, ?)"; records.len()].join(", ");
    let sql = format!("INSERT INTO facts (key, at, cause, kind, v, must, prev, body, erased) VALUES {values}");
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for record in records {
        let e = &record.envelope;
        let (body, erased) = match &record.body {
            Body::Text(text) => (Some(text.to_string()), None),
            Body::Erased(hash) => (None, Some(hash.0.to_vec())),
        };
        query = query
            .bind(key(no, e.seq))
            .bind(e.at.0)
            .bind(e.cause.to_string())
            .bind(e.kind.clone())
            .bind(i64::from(e.v))
            .bind(e.need == Need::Must)
            .bind(e.prev.0.to_vec())
            .bind(body)
            .bind(erased);
    }
    query.execute(&mut *conn).await.map(drop).map_err(classify)
}

/// A command that was answered before gives its first answer; anything else is somebody else's write.
async fn repeated_or_conflict(conn: &mut SqliteConnection, batch: &Batch) -> Result<Appended, LogError> {
    for (id, _) in &batch.inputs {
        let sql = "SELECT inputs.seq FROM inputs JOIN sessions USING (no) WHERE sessions.id = ?1 AND inputs.id = ?2";
        let row = sqlx::query(sql).bind(batch.session.as_str()).bind(id.as_str()).fetch_optional(&mut *conn).await;
        if let Some(row) = row.map_err(classify)? {
            let seq: i64 = row.try_get(0).map_err(classify)?;
            return Ok(Appended::Repeated(id.clone(), seq.cast_unsigned()));
        }
    }
    Ok(Appended::Conflict)
}

async fn charge_day(conn: &mut SqliteConnection, charge: Charge) -> Result<Appended, LogError> {
    let sql = if charge.version == 0 {
        "INSERT INTO ledger (day, micros, version) VALUES (?1, max(0, ?2), 1) ON CONFLICT (day) DO NOTHING"
    } else {
        "UPDATE ledger SET micros = max(0, micros + ?2), version = version + 1 WHERE day = ?1 AND version = ?3"
    };
    let mut query = sqlx::query(sql).bind(charge.day).bind(charge.micros);
    if charge.version > 0 {
        query = query.bind(charge.version.cast_signed());
    }
    let done = query.execute(conn).await.map_err(classify)?;
    Ok(if done.rows_affected() == 1 { Appended::Done } else { Appended::Conflict })
}

async fn keep_small(conn: &mut SqliteConnection, no: i64, blob: &Blob) -> Result<(), LogError> {
    let bytes = (blob.bytes.len() <= crate::blobs::SMALL).then(|| blob.bytes.to_vec());
    let size = i64::try_from(blob.bytes.len()).map_err(failed)?;
    let sql = "INSERT INTO blobs (hash, codec, size, bytes) VALUES (?1, 0, ?2, ?3) ON CONFLICT DO NOTHING";
    let hash = blob.hash.0.to_vec();
    sqlx::query(sql).bind(&hash).bind(size).bind(bytes).execute(&mut *conn).await.map_err(classify)?;
    failpoint::hit("store.blob.after", "");
    let sql = "INSERT INTO blob_uses (no, hash) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    sqlx::query(sql).bind(no).bind(&hash).execute(&mut *conn).await.map(drop).map_err(classify)
}
