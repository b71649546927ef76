//! Salvages a damaged database: moves it aside whole, and copies what can be read into a new one.
//!
//! Invariant: nothing is deleted. Invariant: only events with an intact hash chain are copied, so a
//! salvaged session is a true prefix of the original.

use crate::blobs::plain;
use crate::log::read_events;
use crate::sqlite::{DAMAGED, NAME, Sqlite, classify, connect, failed};
use dunnock_core::{State, Status, fold_record};
use dunnock_ports::{Batch, EventLog as _, Listing, StoreError};
use dunnock_proto::{Body, Decoded, Hash, Record, SessionId, verify_chain};
use sqlx::{Connection, Row};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Read events one at a time, so that a bad one hides none before it.
const ONE: i64 = 1;

/// What was salvaged from a damaged database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// Why it was needed.
    pub why: String,
    /// Where the damaged database is now.
    pub kept_in: PathBuf,
    /// Sessions copied completely.
    pub whole: u64,
    /// Sessions of which only a prefix, or not every blob, could be copied.
    pub partly: u64,
}

/// Whether damage was found while working, or a rebuild was interrupted. A rebuild that only failed
/// to remove its marker is finished.
pub(crate) fn unfinished(dir: &Path) -> bool {
    let Ok(note) = fs_err::read_to_string(dir.join(DAMAGED)) else { return false };
    let aside = dir.join(note.trim()).join(NAME);
    if !note.trim().is_empty() && aside.exists() && dir.join(NAME).exists() {
        let _ = fs_err::remove_file(dir.join(DAMAGED));
        return false;
    }
    true
}

/// Moves the damaged database aside and builds a new one from what can be read. The marker names
/// the destination before anything moves, and the new database appears by one rename: if
/// interrupted anywhere, the next start continues from there.
pub(crate) async fn rebuild(dir: &Path, why: &str) -> Result<Salvaged, StoreError> {
    let kept_in = set_aside(dir)?;
    let mut salvaged = Salvaged { why: why.into(), kept_in: kept_in.clone(), whole: 0, partly: 0 };
    let fresh = dir.join("salvage");
    let _ = fs_err::remove_dir_all(&fresh);
    let opened = Box::pin(Sqlite::open(&fresh)).await?;
    if let Ok(mut old) = connect(&kept_in.join(NAME)).await {
        let ids = sessions(&mut old).await;
        let mut kept = Vec::new();
        for (no, id, seq) in ids {
            let mut records: Vec<Record> = Vec::new();
            let mut chain = Hash::ZERO;
            let end = read_events(&mut old, no, 0, seq, ONE, &mut |record| match verify_chain(
                records.len() as u64,
                chain,
                &record,
            ) {
                Ok(next) if is_json(&record) => {
                    chain = next;
                    records.push(record);
                    true
                }
                Ok(_) | Err(_) => false,
            })
            .await;
            let all = end.is_ok() && records.len() as u64 == seq;
            let wanted = blobs_named(&records);
            if !records.is_empty() && carry(&opened.store, &id, records).await.is_ok() {
                kept.push((no, id, all, wanted));
            }
        }
        for (no, id, all, wanted) in kept {
            let lost = carry_blobs(&mut old, dir, &opened.store, no, &id, wanted).await?;
            *(if all && lost == 0 { &mut salvaged.whole } else { &mut salvaged.partly }) += 1;
        }
        carry_ledger(&mut old, &opened.store).await?;
        let _ = old.close().await;
    }
    opened.store.close().await;
    drop(opened);
    fs_err::rename(fresh.join(NAME), dir.join(NAME)).map_err(failed)?;
    let _ = fs_err::remove_dir_all(&fresh);
    let _ = fs_err::remove_file(dir.join(DAMAGED));
    Ok(salvaged)
}

/// Moves the database aside, or finds where an earlier start has moved it.
fn set_aside(dir: &Path) -> Result<PathBuf, StoreError> {
    let note = fs_err::read_to_string(dir.join(DAMAGED)).unwrap_or_default();
    let mut place = dir.join(note.trim());
    if note.trim().is_empty() {
        let mut n = 1;
        place = loop {
            let place = dir.join(format!("damaged-{n}"));
            match fs_err::create_dir(&place) {
                Ok(()) => break place,
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => n += 1,
                Err(e) => return Err(failed(e)),
            }
        };
        fs_err::write(dir.join(DAMAGED), format!("damaged-{n}")).map_err(failed)?;
    }
    for name in [format!("{NAME}-wal"), format!("{NAME}-shm"), NAME.to_owned()] {
        if place.join(&name).exists() {
            continue;
        }
        match fs_err::rename(dir.join(&name), place.join(&name)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(place)
}

/// A body that is not JSON could not be sent to any interface. Events of a newer release are JSON,
/// and are copied.
fn is_json(record: &Record) -> bool {
    match &record.body {
        Body::Text(text) => serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok(),
        Body::Erased(_) => true,
    }
}

/// The blobs that events of this release refer to.
fn blobs_named(records: &[Record]) -> BTreeSet<Hash> {
    let mut named = BTreeSet::new();
    for record in records {
        if let Decoded::Known(event) = record.decode() {
            named.extend(event.blobs());
        }
    }
    named
}

/// Copies the blobs of a session whose content matches their hash. Returns how many are lost.
async fn carry_blobs(
    old: &mut sqlx::SqliteConnection,
    dir: &Path,
    store: &Sqlite,
    no: i64,
    id: &SessionId,
    mut wanted: BTreeSet<Hash>,
) -> Result<u64, StoreError> {
    let used =
        sqlx::query("SELECT hash FROM blob_uses WHERE no = ?1").bind(no).fetch_all(&mut *old).await;
    for row in used.unwrap_or_default() {
        wanted.extend(row.try_get::<&[u8], _>(0).ok().and_then(|b| b.try_into().ok()).map(Hash));
    }
    let mut lost = 0;
    for hash in wanted {
        let sql = "SELECT codec, size, bytes FROM blobs WHERE hash = ?1";
        let row =
            sqlx::query(sql).bind(hash.0.to_vec()).fetch_optional(&mut *old).await.ok().flatten();
        let bytes = row.as_ref().and_then(|r| r.try_get::<Option<Vec<u8>>, _>(2).ok()).flatten();
        let number = |n: usize| row.as_ref().and_then(|r| r.try_get::<i64, _>(n).ok()).unwrap_or(0);
        let bytes = bytes.and_then(|bytes| plain(number(0), number(1), bytes).ok());
        let name = hash.to_string();
        let file = dir.join("blobs").join(&name[..2]).join(&name);
        // A large blob is in its file, which did not move, whether its row can be read or not.
        let good = match &bytes {
            Some(bytes) => Hash::of(bytes) == hash,
            None => fs_err::read(&file).is_ok_and(|bytes| Hash::of(&bytes) == hash),
        };
        if !good {
            lost += 1;
            continue;
        }
        let size = match &bytes {
            Some(bytes) => bytes.len() as u64,
            None => fs_err::metadata(&file).map_err(failed)?.len(),
        };
        let mut writer = store.writer().await?;
        let conn = writer.conn()?;
        let sql = "INSERT INTO blobs (hash, codec, size, bytes) VALUES (?1, 0, ?2, ?3) ON \
                   CONFLICT DO NOTHING";
        let keep = sqlx::query(sql).bind(hash.0.to_vec()).bind(size.cast_signed()).bind(bytes);
        keep.execute(&mut *conn).await.map_err(classify)?;
        let sql = "INSERT INTO blob_uses (no, hash) SELECT no, ?2 FROM sessions WHERE id = ?1 ON \
                   CONFLICT DO NOTHING";
        sqlx::query(sql)
            .bind(id.as_str())
            .bind(hash.0.to_vec())
            .execute(conn)
            .await
            .map_err(classify)?;
    }
    Ok(lost)
}

async fn carry_ledger(old: &mut sqlx::SqliteConnection, store: &Sqlite) -> Result<(), StoreError> {
    let rows = sqlx::query("SELECT day, micros, version FROM ledger")
        .fetch_all(&mut *old)
        .await
        .unwrap_or_default();
    let mut writer = store.writer().await?;
    for row in rows {
        let number = |n: usize| row.try_get::<i64, _>(n).ok();
        if let (Some(day), Some(micros), Some(version)) = (number(0), number(1), number(2)) {
            let sql = "INSERT INTO ledger (day, micros, version) VALUES (?1, ?2, ?3) ON CONFLICT \
                       DO NOTHING";
            sqlx::query(sql)
                .bind(day)
                .bind(micros)
                .bind(version)
                .execute(writer.conn()?)
                .await
                .map_err(classify)?;
        }
    }
    Ok(())
}

/// Every session that can still be listed, one at a time, so that one bad row does not hide the
/// others.
async fn sessions(conn: &mut sqlx::SqliteConnection) -> Vec<(i64, SessionId, u64)> {
    let mut found = Vec::new();
    let mut after = 0i64;
    loop {
        let sql = "SELECT no, id, seq FROM sessions WHERE no > ?1 ORDER BY no LIMIT 1";
        let Ok(Some(row)) = sqlx::query(sql).bind(after).fetch_optional(&mut *conn).await else {
            return found;
        };
        // A damaged tree may return rows that were not asked for: only move forwards, or stop.
        let Some(no) = row.try_get::<i64, _>(0).ok().filter(|no| *no > after) else { return found };
        after = no;
        let id = row.try_get::<&str, _>(1).ok().and_then(|id| id.parse().ok());
        if let (Some(id), Ok(seq)) = (id, row.try_get::<i64, _>(2)) {
            found.push((no, id, seq.cast_unsigned().min(u64::from(u32::MAX))));
        }
    }
}

async fn carry(
    store: &Sqlite,
    session: &SessionId,
    records: Vec<Record>,
) -> Result<(), StoreError> {
    let mut s = State::default();
    for record in &records {
        fold_record(&mut s, record);
    }
    let inputs = records.iter().filter_map(|r| match &r.envelope.cause {
        dunnock_proto::Cause::Input(id) => Some((id.clone(), r.envelope.seq)),
        dunnock_proto::Cause::Report
        | dunnock_proto::Cause::Driver
        | dunnock_proto::Cause::Other(_) => None,
    });
    let inputs: std::collections::BTreeMap<_, _> = inputs.collect();
    let listing = Listing {
        title: s.title.as_deref().unwrap_or_default().into(),
        workspace: s.workspace.as_deref().unwrap_or_default().into(),
        status: if s.busy() { Status::Stopped } else { s.status() },
        version: s.version,
    };
    let inputs = inputs.into_iter().collect();
    let session = session.clone();
    let batch =
        Batch { session, after: 0, records, inputs, blobs: Vec::new(), listing, charge: None };
    store.append(batch).await.map(drop)
}
