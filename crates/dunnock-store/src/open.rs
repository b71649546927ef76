//! Opens the database: pragmas, lock, migrations, and what to do if it is damaged.
//!
//! Invariant: every connection is made by [`connect`], so that all have the same pragmas.
//! Invariant: a database from a newer release is not touched.

use crate::append::Waiting;
use crate::salvage::{self, Salvaged};
use crate::schema;
use dunnock_core::failpoint;
use dunnock_core::ports::LogError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};

/// File name of the database.
pub(crate) const NAME: &str = "dunnock.db";
/// Marker file: damage was found while working, and the next start salvages the database.
pub(crate) const DAMAGED: &str = "damaged";
/// After this many appended bytes the write-ahead log is checkpointed, off the append path.
const WAL_BYTES: u64 = 4 << 20;
/// Rough size of what an append writes besides its events: a few pages.
const APPEND_BYTES: u64 = 12 << 10;

/// A store in one SQLite database.
pub struct Sqlite {
    pub(crate) dir: PathBuf,
    pub(crate) write: Mutex<Option<SqliteConnection>>,
    pub(crate) read: Mutex<Option<SqliteConnection>>,
    gate: Arc<File>,
    /// Batches for the next writer.
    pub(crate) waiting: std::sync::Mutex<VecDeque<Waiting>>,
    /// Shared lock, held by every process that uses the database; a salvage needs it exclusively.
    _in_use: File,
    folding: Arc<AtomicBool>,
    /// Approximate bytes appended since the last checkpoint. The log file does not shrink, so its
    /// size says nothing.
    unfolded: AtomicU64,
}

/// An open store, and what had to be done to open it.
pub struct Opened {
    /// The store.
    pub store: Sqlite,
    /// Set if the database was damaged and rebuilt.
    pub salvaged: Option<Salvaged>,
}

impl Sqlite {
    /// Opens the database in `dir`, creating or migrating it as needed. A damaged one is moved
    /// aside, and whatever can be read from it is copied into a new one.
    ///
    /// # Errors
    /// If the folder cannot be used, or a newer release wrote the database.
    pub async fn open(dir: &Path) -> Result<Opened, LogError> {
        private_folder(dir)?;
        let gate = private_file(&dir.join("write.lock"))?;
        let gate = Arc::new(gate);
        let _held = hold(&gate).await?;
        failpoint::hit("lock.after", "store");
        let in_use = private_file(&dir.join("in-use.lock"))?;
        let mut salvaged = None;
        let first = match salvage::unfinished(dir) {
            true => Err(LogError::Damaged("found during an earlier run".into())),
            false => Self::try_open(dir).await,
        };
        let (write, read) = match first {
            Ok(pair) => pair,
            Err(LogError::Damaged(why)) => {
                // No other process may be writing to the file that is moved aside.
                in_use.try_lock().map_err(|_| {
                    let todo = "end the other dunnock processes, then start again: the database \
                                will be rebuilt";
                    LogError::Damaged(format!("{why}; {todo}"))
                })?;
                let path = dir.join(NAME);
                if let Ok(mut old) = connect(&path).await {
                    refuse_before_release(&path, &mut old).await?;
                }
                salvaged = Some(salvage::rebuild(dir, &why).await?);
                in_use.unlock().map_err(failed)?;
                Self::try_open(dir).await?
            }
            Err(other) => return Err(other),
        };
        in_use.lock_shared().map_err(failed)?;
        drop(_held);
        let (write, read) = (Mutex::new(Some(write)), Mutex::new(Some(read)));
        let store = Self {
            dir: dir.into(),
            write,
            read,
            gate,
            waiting: std::sync::Mutex::default(),
            _in_use: in_use,
            folding: Arc::default(),
            unfolded: AtomicU64::new(0),
        };
        Ok(Opened { store, salvaged })
    }

    async fn try_open(dir: &Path) -> Result<(SqliteConnection, SqliteConnection), LogError> {
        let path = dir.join(NAME);
        private_file(&path)?;
        let mut write = connect(&path).await?;
        refuse_before_release(&path, &mut write).await?;
        schema::migrator().run_direct(None, &mut write, false).await.map_err(migration)?;
        // Query every column of every table once, so that schema damage shows here and not in the
        // middle of work.
        for probe in schema::PROBES {
            sqlx::query(*probe)
                .fetch_optional(&mut write)
                .await
                .map_err(|e| misfit(classify(e)))?;
        }
        Ok((write, connect(&path).await?))
    }

    /// Acquires the writer: first this process's lock, then the machine's. SQLite's own waiting
    /// starves writers.
    pub(crate) async fn writer(&self) -> Result<Writer<'_>, LogError> {
        self.writer_with(self.write.lock().await).await
    }

    /// The same, with this process's lock already held. Must not be cancelled half way: the file
    /// lock would be acquired for no one, and released while someone else holds it.
    pub(crate) async fn writer_with<'a>(
        &'a self,
        mut slot: MutexGuard<'a, Option<SqliteConnection>>,
    ) -> Result<Writer<'a>, LogError> {
        if slot.is_none() {
            *slot = Some(connect(&self.dir.join(NAME)).await?);
        }
        let held = hold(&self.gate).await?;
        Ok(Writer { slot, begun: false, _held: held })
    }

    pub(crate) async fn reader(
        &self,
    ) -> Result<MutexGuard<'_, Option<SqliteConnection>>, LogError> {
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
    pub(crate) fn mark_damage(&self, error: LogError) -> LogError {
        if matches!(&error, LogError::Damaged(why) if why.contains("(code: ")) {
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
    pub(crate) async fn connected(&mut self, dir: &Path) -> Result<(), LogError> {
        if self.slot.is_none() {
            *self.slot = Some(connect(&dir.join(NAME)).await?);
        }
        Ok(())
    }
    pub(crate) fn conn(&mut self) -> Result<&mut SqliteConnection, LogError> {
        self.slot.as_mut().ok_or_else(|| LogError::Failed("the connection is closed".into()))
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

struct Held(Arc<File>);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

async fn hold(gate: &Arc<File>) -> Result<Held, LogError> {
    match gate.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            // `Held` is made inside: if the caller is gone, the lock is released.
            let waiting = gate.clone();
            let locked =
                tokio::task::spawn_blocking(move || waiting.lock().map(|()| Held(waiting.clone())))
                    .await;
            return locked.map_err(failed)?.map_err(failed);
        }
        Err(std::fs::TryLockError::Error(e)) => return Err(failed(e)),
    }
    Ok(Held(gate.clone()))
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
pub(crate) async fn connect(path: &Path) -> Result<SqliteConnection, LogError> {
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

pub(crate) fn failed(error: impl std::fmt::Display) -> LogError {
    LogError::Failed(error.to_string())
}

/// What an SQLite error means for the log. A failed commit is judged by its caller.
pub(crate) fn classify(error: sqlx::Error) -> LogError {
    let code = match &error {
        sqlx::Error::Database(e) => {
            e.code().and_then(|c| c.parse::<u32>().ok()).unwrap_or(0) & 0xff
        }
        _ => 0,
    };
    match code {
        13 => LogError::Full(error.to_string()),
        11 | 26 => LogError::Damaged(error.to_string()),
        _ if matches!(error, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {
            LogError::Damaged(error.to_string())
        }
        _ => LogError::Failed(error.to_string()),
    }
}

/// Refuses a database from a development build before the first release: that is not damage. If the
/// query itself fails, that is.
async fn refuse_before_release(path: &Path, conn: &mut SqliteConnection) -> Result<(), LogError> {
    match sqlx::query(schema::BEFORE_RELEASE).fetch_optional(conn).await {
        Ok(Some(_)) => Err(failed(format!(
            "a development build from before the first release wrote {}, and this release cannot \
             read it. Nothing was changed: move it away, or use another --data-dir",
            path.display()
        ))),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// SQLite's generic error on opening: our statements do not match the existing schema.
fn misfit(error: LogError) -> LogError {
    match error {
        LogError::Failed(why) if why.contains("(code: 1)") => LogError::Damaged(why),
        other => other,
    }
}

fn migration(error: sqlx::migrate::MigrateError) -> LogError {
    use sqlx::migrate::MigrateError as E;
    match error {
        E::VersionMissing(v) | E::VersionTooNew(v, _) => failed(format!(
            "a later release wrote this database (format {v}); use that release, or another \
             --data-dir"
        )),
        E::VersionMismatch(_) | E::Dirty(_) => LogError::Damaged(error.to_string()),
        E::Execute(e) | E::ExecuteMigration(e, _) => misfit(classify(e)),
        other => failed(other),
    }
}

fn private_folder(dir: &Path) -> Result<(), LogError> {
    fs_err::create_dir_all(dir).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs_err::set_permissions(dir, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

/// A file that only this user may access. SQLite gives its own files the mode of the database.
fn private_file(path: &Path) -> Result<File, LogError> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path).map_err(failed)
}
