//! What happens to a damaged database: it is set aside whole, and what can be read of it goes into a new one.
//!
//! Invariant: nothing is deleted. Invariant: only facts whose chain holds are carried over, so a salvaged session is a true
//! beginning of the one that was.

use crate::open::{DAMAGED, NAME, Sqlite, connect, failed};
use crate::read::read_facts;
use dunnock_core::ports::{Batch, Listing, Log, LogError};
use dunnock_core::{State, Status, apply};
use dunnock_proto::{Decoded, Hash, Need, Record, SessionId, verify_chain};
use sqlx::{Connection, Row};
use std::path::{Path, PathBuf};

/// Facts are read one at a time, so that a bad one hides none before it.
const ONE: i64 = 1;

/// What was saved of a damaged database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// Why it had to be.
    pub why: String,
    /// Where the damaged one lies now.
    pub kept_in: PathBuf,
    /// Sessions carried over whole.
    pub whole: u64,
    /// Sessions of which only a beginning could be read.
    pub partly: u64,
}

pub(crate) async fn rebuild(dir: &Path, why: &str) -> Result<Salvaged, LogError> {
    let mut n = 1;
    let kept_in = loop {
        let place = dir.join(format!("damaged-{n}"));
        match fs_err::create_dir(&place) {
            Ok(()) => break place,
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => n += 1,
            Err(e) => return Err(failed(e)),
        }
    };
    for name in [NAME.to_owned(), format!("{NAME}-wal"), format!("{NAME}-shm")] {
        match fs_err::rename(dir.join(&name), kept_in.join(&name)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e)),
            Ok(()) | Err(_) => {}
        }
    }
    let mut salvaged = Salvaged { why: why.into(), kept_in: kept_in.clone(), whole: 0, partly: 0 };
    let fresh = dir.join("salvage");
    let _ = fs_err::remove_dir_all(&fresh);
    let opened = Box::pin(Sqlite::open(&fresh)).await?;
    if let Ok(mut old) = connect(&kept_in.join(NAME)).await {
        for (no, id, seq) in sessions(&mut old).await {
            let mut records: Vec<Record> = Vec::new();
            let mut chain = Hash::ZERO;
            let end = read_facts(&mut old, no, 0, seq, ONE, &mut |record| match verify_chain(
                records.len() as u64,
                chain,
                &record,
            ) {
                Ok(next) if parses(&record) => {
                    chain = next;
                    records.push(record);
                    true
                }
                Ok(_) | Err(_) => false,
            })
            .await;
            let all = end.is_ok() && records.len() as u64 == seq;
            if !records.is_empty() && carry(&opened.store, id, records).await.is_ok() {
                *(if all { &mut salvaged.whole } else { &mut salvaged.partly }) += 1;
            }
        }
        let _ = old.close().await;
    }
    opened.store.close().await;
    drop(opened);
    for name in [NAME.to_owned(), format!("{NAME}-wal"), format!("{NAME}-shm")] {
        match fs_err::rename(fresh.join(&name), dir.join(&name)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e)),
            Ok(()) | Err(_) => {}
        }
    }
    let _ = fs_err::remove_dir_all(&fresh);
    let _ = fs_err::remove_file(dir.join(DAMAGED));
    Ok(salvaged)
}

/// A body that is not JSON any more could not even be sent to a door.
fn parses(record: &Record) -> bool {
    matches!(record.decode(), Decoded::Known(_)) || record.envelope.need == Need::May
}

/// Every session that can still be listed, one at a time, so that one bad row hides no other.
async fn sessions(conn: &mut sqlx::SqliteConnection) -> Vec<(i64, SessionId, u64)> {
    let mut found = Vec::new();
    let mut after = 0i64;
    loop {
        let sql = "SELECT no, id, seq FROM sessions WHERE no > ?1 ORDER BY no LIMIT 1";
        let Ok(Some(row)) = sqlx::query(sql).bind(after).fetch_optional(&mut *conn).await else { return found };
        let Ok(no) = row.try_get::<i64, _>(0) else { return found };
        after = no;
        let id = row.try_get::<&str, _>(1).ok().and_then(|id| id.parse().ok());
        if let (Some(id), Ok(seq)) = (id, row.try_get::<i64, _>(2)) {
            found.push((no, id, seq.cast_unsigned().min(u64::from(u32::MAX))));
        }
    }
}

async fn carry(store: &Sqlite, session: SessionId, records: Vec<Record>) -> Result<(), LogError> {
    let mut s = State::default();
    for record in &records {
        match record.decode() {
            Decoded::Known(event) => apply(&mut s, &event),
            Decoded::Unknown(why) => s.skip(&record.envelope.kind, &why, record.envelope.need == Need::Must),
        }
    }
    let inputs = records.iter().filter_map(|r| match &r.envelope.cause {
        dunnock_proto::Cause::Input(id) => Some((id.clone(), r.envelope.seq)),
        dunnock_proto::Cause::Report | dunnock_proto::Cause::Driver => None,
    });
    let inputs: std::collections::BTreeMap<_, _> = inputs.collect();
    let listing = Listing {
        title: s.title.as_deref().unwrap_or_default().into(),
        workspace: s.workspace.as_deref().unwrap_or_default().into(),
        status: if s.busy() { Status::Stopped } else { s.status() },
        version: s.version,
    };
    let inputs = inputs.into_iter().collect();
    let batch = Batch { session, after: 0, records, inputs, blobs: Vec::new(), listing, charge: None };
    store.append(batch).await.map(drop)
}
