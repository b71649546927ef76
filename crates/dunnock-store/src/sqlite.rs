//! The database: its connections, its writer's lock, and what its errors mean.
//!
//! Invariant: every connection is made by [`connect`], so that all have the same pragmas.

use dunnock_ports::{Appended, Batch, LockHolder, StoreError};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, MutexGuard, oneshot};

/// File name of the database.
pub(crate) const NAME: &str = "dunnock.db";
/// Marker file: damage was found while working, and the next start salvages the database.
pub(crate) const DAMAGED: &str = "damaged";
/// After this many appended bytes the write-ahead log is checkpointed, off the append path.
const WAL_BYTES: u64 = 4 << 20;
/// Rough size of what an append writes besides its events: a few pages.
const APPEND_BYTES: u64 = 12 << 10;

/// A batch waiting to be written, and the channel for its result.
pub(crate) struct Waiting {
    pub(crate) batch: Batch,
    pub(crate) tell: oneshot::Sender<Result<Appended, StoreError>>,
}

/// A store in one SQLite database.
pub struct Sqlite {
    pub(crate) dir: PathBuf,
    pub(crate) write: Mutex<Option<SqliteConnection>>,
    pub(crate) read: Mutex<Option<SqliteConnection>>,
    gate: Gate,
    /// Batches for the next writer.
    pub(crate) waiting: std::sync::Mutex<VecDeque<Waiting>>,
    /// Shared lock, held by every process that uses the database; a salvage needs it exclusively.
    _in_use: File,
    folding: Arc<AtomicBool>,
    /// Approximate bytes appended since the last checkpoint. The log file does not shrink, so its
    /// size says nothing.
    unfolded: AtomicU64,
}

impl Sqlite {
    /// A store on these connections (to write and to read) and these locks (of the writer, and of
    /// everybody who uses the database).
    pub(crate) fn new(
        dir: &Path,
        (write, read): (SqliteConnection, SqliteConnection),
        (gate, in_use): (Gate, File),
    ) -> Self {
        Self {
            dir: dir.into(),
            write: Mutex::new(Some(write)),
            read: Mutex::new(Some(read)),
            gate,
            waiting: std::sync::Mutex::default(),
            _in_use: in_use,
            folding: Arc::default(),
            unfolded: AtomicU64::new(0),
        }
    }

    /// Acquires the writer: first this process's lock, then the machine's. SQLite's own waiting
    /// starves writers.
    pub(crate) async fn writer(&self) -> Result<Writer<'_>, StoreError> {
        self.writer_with(self.write.lock().await).await
    }

    /// The same, with this process's lock already held.
    pub(crate) async fn writer_with<'a>(
        &'a self,
        mut slot: MutexGuard<'a, Option<SqliteConnection>>,
    ) -> Result<Writer<'a>, StoreError> {
        if slot.is_none() {
            *slot = Some(connect(&self.dir.join(NAME)).await?);
        }
        let held = self.gate.hold().await?;
        Ok(Writer { slot, begun: false, _held: held })
    }

    pub(crate) async fn reader(
        &self,
    ) -> Result<MutexGuard<'_, Option<SqliteConnection>>, StoreError> {
        let mut slot = self.read.lock().await;
        if slot.is_none() {
            *slot = Some(connect(&self.dir.join(NAME)).await?);
        }
        Ok(slot)
    }

    /// Checkpoints the write-ahead log on a separate connection once it has grown.
    pub(crate) fn checkpoint_wal(&self, appended: u64, batches: u64) {
        let unfolded = self.unfolded.fetch_add(appended + APPEND_BYTES * batches, Ordering::AcqRel);
        if unfolded < WAL_BYTES || self.folding.swap(true, Ordering::AcqRel) {
            return;
        }
        self.unfolded.store(0, Ordering::Release);
        let path = self.dir.join(NAME);
        let folding = self.folding.clone();
        tokio::spawn(async move {
            if let Ok(mut conn) = connect(&path).await {
                let _ = sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut conn).await;
                let _ = conn.close().await;
            }
            folding.store(false, Ordering::Release);
        });
    }

    /// Closes both connections. This checkpoints the write-ahead log if no other process uses the
    /// database.
    pub async fn close(&self) {
        for slot in [&self.read, &self.write] {
            if let Some(conn) = slot.lock().await.take() {
                let _ = conn.close().await;
            }
        }
    }

    /// If SQLite itself reports a damaged file, leaves a marker so that the next start salvages it.
    /// A bad record affects only its session, not the database.
    pub(crate) fn mark_damage(&self, error: StoreError) -> StoreError {
        if matches!(error, StoreError::StoreDamaged(_)) {
            self.note_damage();
        }
        error
    }

    pub(crate) fn note_damage(&self) {
        let _ = std::fs::write(self.dir.join(DAMAGED), b"");
    }
}

/// The right to write, while it lives.
pub(crate) struct Writer<'a> {
    slot: MutexGuard<'a, Option<SqliteConnection>>,
    /// Something was begun on the connection and has not finished.
    begun: bool,
    _held: Held,
}

impl Drop for Writer<'_> {
    /// A writer dropped half way leaves a transaction open, so its connection must not be used
    /// again.
    fn drop(&mut self) {
        if self.begun {
            *self.slot = None;
        }
    }
}

impl Writer<'_> {
    /// From here until [`Writer::ended`] the connection is in use.
    pub(crate) fn begun(&mut self) {
        self.begun = true;
    }
    pub(crate) fn ended(&mut self) {
        self.begun = false;
    }
    /// Reconnects if the connection was abandoned.
    pub(crate) async fn connected(&mut self, dir: &Path) -> Result<(), StoreError> {
        if self.slot.is_none() {
            *self.slot = Some(connect(&dir.join(NAME)).await?);
        }
        Ok(())
    }
    pub(crate) fn conn(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        self.slot.as_mut().ok_or_else(|| StoreError::Failed("the connection is closed".into()))
    }
    /// Checkpoints the write-ahead log now, as far as possible.
    pub(crate) async fn checkpoint_wal_now(&mut self, dir: &Path) {
        if self.slot.is_none() {
            *self.slot = connect(&dir.join(NAME)).await.ok();
        }
        if let Some(conn) = self.slot.as_mut() {
            let _ = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(conn).await;
        }
    }
    /// Abandons the connection: after a failed sync it must not be used again.
    pub(crate) fn abandon(&mut self) {
        *self.slot = None;
    }
}

pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The lock of the machine's writer.
pub(crate) struct Gate {
    path: PathBuf,
    file: Arc<File>,
}

/// The lock, while it lives.
pub(crate) struct Held(Arc<File>);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// How long a writer waits for a process that is stopped.
const STOPPED_FOR: Duration = Duration::from_millis(500);

impl Gate {
    pub(crate) fn new(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("write.lock");
        let file = Arc::new(dunnock_private::open_append(&path).map_err(failed)?);
        Ok(Self { path, file })
    }

    fn try_hold(&self) -> Result<Option<Held>, StoreError> {
        match self.file.try_lock() {
            Ok(()) => Ok(Some(Held(self.file.clone()))),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// The process that has the lock, if it is stopped: it may never release it.
    fn stopped(&self) -> Option<StoreError> {
        let holder = dunnock_private::lock_holder(&self.path).filter(LockHolder::is_stopped)?;
        Some(StoreError::Busy(format!("{holder} holds its lock; {}", holder.advice())))
    }

    pub(crate) async fn hold(&self) -> Result<Held, StoreError> {
        let began = Instant::now();
        loop {
            if let Some(held) = self.try_hold()? {
                return Ok(held);
            }
            match self.stopped() {
                Some(busy) if began.elapsed() >= STOPPED_FOR => return Err(busy),
                Some(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                None => break,
            }
        }
        // Another open file, and so another lock: if the caller is gone, it is released without
        // touching the lock of the next caller.
        let file = dunnock_private::open_append(&self.path).map_err(failed)?;
        let mut locking =
            tokio::task::spawn_blocking(move || file.lock().map(|()| Held(Arc::new(file))));
        loop {
            tokio::select! {
                locked = &mut locking => return locked.map_err(failed)?.map_err(failed),
                () = tokio::time::sleep(STOPPED_FOR) => {
                    if let Some(busy) = self.stopped() {
                        return Err(busy);
                    }
                }
            }
        }
    }
}

impl Sqlite {
    /// Checkpoints a write-ahead log that has grown and empties its file, unless someone is in the
    /// way.
    pub(crate) async fn shrink(&self) {
        let log = self.dir.join(format!("{NAME}-wal"));
        if std::fs::metadata(log).is_ok_and(|m| m.len() > GROWN)
            && let Ok(mut writer) = self.writer().await
            && let Ok(conn) = writer.conn()
        {
            let _ = sqlx::query(
                "PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = \
                 10000",
            )
            .execute(conn)
            .await;
        }
    }
}

/// A write-ahead log of this size is worth emptying.
const GROWN: u64 = 1 << 20;

/// Opens a connection; the only place that does.
pub(crate) async fn connect(path: &Path) -> Result<SqliteConnection, StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(10))
        .foreign_keys(true)
        .pragma("wal_autocheckpoint", "0")
        .pragma("fullfsync", "1")
        .pragma("mmap_size", "0")
        .disable_statement_logging();
    options.connect().await.map_err(classify)
}

pub(crate) fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::Failed(error.to_string())
}

/// SQLite's result code, extended where it has one; 0 for other errors.
pub(crate) fn code(error: &sqlx::Error) -> u32 {
    match error {
        sqlx::Error::Database(e) => e.code().and_then(|c| c.parse().ok()).unwrap_or(0),
        _ => 0,
    }
}

/// What an SQLite error means for the log. A failed commit is judged by its caller.
pub(crate) fn classify(error: sqlx::Error) -> StoreError {
    match code(&error) & 0xff {
        13 => StoreError::Full(error.to_string()),
        11 | 26 => StoreError::StoreDamaged(error.to_string()),
        _ if matches!(error, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {
            StoreError::Damaged(error.to_string())
        }
        _ => StoreError::Failed(error.to_string()),
    }
}
