//! The tables and their migrations.
//!
//! Events of all sessions are stored in the order in which they were written, and found through a
//! small index. Clustering them by session instead makes every session but the newest write twice
//! as much: its inserts fall into the middle of the tree and split pages (measured: 39 KB for a
//! step against 20 KB).

use sqlx::migrate::{Migration, MigrationType, Migrator};
use std::borrow::Cow;

const FIRST: &str = "
CREATE TABLE sessions (
    no        INTEGER PRIMARY KEY,
    id        TEXT NOT NULL UNIQUE,
    title     TEXT NOT NULL,
    workspace TEXT NOT NULL,
    status    TEXT NOT NULL,
    created   INTEGER NOT NULL,
    updated   INTEGER NOT NULL,
    version   INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    chain     BLOB NOT NULL
);
CREATE INDEX sessions_by_age ON sessions (created DESC, no DESC);
CREATE TABLE events (
    id     INTEGER PRIMARY KEY,
    no     INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    cause  TEXT NOT NULL,
    kind   TEXT NOT NULL,
    v      INTEGER NOT NULL,
    must   INTEGER NOT NULL,
    prev   BLOB NOT NULL,
    body   TEXT,                 -- NULL once erased
    erased BLOB                  -- then the hash it had
);
CREATE UNIQUE INDEX events_of_session ON events (no, seq);
CREATE TABLE inputs (
    no  INTEGER NOT NULL,
    id  TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (no, id)
) WITHOUT ROWID;
CREATE TABLE blobs (
    hash  BLOB PRIMARY KEY,
    codec INTEGER NOT NULL,      -- 0: as it is; others are reserved (compression, encryption)
    size  INTEGER NOT NULL,
    bytes BLOB                   -- NULL: in a file of its own
);
CREATE TABLE blob_uses (
    no   INTEGER NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (no, hash)
) WITHOUT ROWID;
CREATE TABLE ledger (
    day     INTEGER PRIMARY KEY,
    micros  INTEGER NOT NULL,
    version INTEGER NOT NULL
);
CREATE TABLE indexed (            -- how far the full-text projection has come
    no  INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL
);
CREATE VIRTUAL TABLE words USING fts5 (text);  -- rowid: the event's id
";

/// Detects a database from a development build before the first release: it stored events in
/// another table.
pub(crate) const BEFORE_RELEASE: &str =
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'facts'";

/// Every migration so far, oldest first. A released migration never changes.
pub(crate) fn migrator() -> Migrator {
    let first = Migration::new(
        1,
        Cow::Borrowed("first"),
        MigrationType::Simple,
        sqlx::SqlStr::from_static(FIRST),
        false,
    );
    Migrator::with_migrations(vec![first])
}

/// One query per table, naming every column.
pub(crate) const PROBES: &[&str] = &[
    "SELECT count(*) FROM (SELECT no, id, title, workspace, status, created, updated, version, \
     seq, chain FROM sessions
     ORDER BY created DESC, no DESC LIMIT 1000)",
    "SELECT id, no, seq, at, cause, kind, v, must, prev, body, erased FROM events ORDER BY id \
     DESC LIMIT 1",
    "SELECT no, id, seq FROM inputs LIMIT 1",
    "SELECT hash, codec, size, bytes FROM blobs LIMIT 1",
    "SELECT no, hash FROM blob_uses LIMIT 1",
    "SELECT day, micros, version FROM ledger LIMIT 1",
    "SELECT no, seq FROM indexed LIMIT 1",
    "SELECT rowid, text FROM words LIMIT 1",
];
