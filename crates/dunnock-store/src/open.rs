//! Opening the database: its pragmas, its lock, its migrations, and what happens when it is damaged.
//!
//! Invariant: every connection is made by [`connect`], so that all have the same pragmas. Invariant: a database of a later
//! release is left alone.

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

/// The name of the database in its folder.
pub(crate) const NAME: &str = "dunnock.db";
/// Its presence says that damage was met while working: the next start salvages.
pub(crate) const DAMAGED: &str = "damaged";
/// When this much was appended, the write-ahead log is folded back, off the append path.
const WAL_BYTES: u64 = 4 << 20;
/// What an append writes beside its events: a few pages.
const APPEND_BYTES: u64 = 12 << 10;

/// A store in one SQLite database.
pub struct Sqlite {
    pub(crate) dir: PathBuf,
    pub(crate) write: Mutex<Option<SqliteConnection>>,
    pub(crate) read: Mutex<Option<SqliteConnection>>,
    gate: Arc<File>,
    /// Batches that wait for whoever writes next.
    pub(crate) waiting: std::sync::Mutex<VecDeque<Waiting>>,
    /// Locked together with every other process that uses the database; a salvage needs it alone.
    _in_use: File,
    folding: Arc<AtomicBool>,
    /// Bytes appended since the log was last folded back, roughly. Its file does not shrink, so its size says nothing.
    unfolded: AtomicU64,
}

/// A store, and what had to be done to get it.
pub struct Opened {
    /// The store.
    pub store: Sqlite,
    /// Set if the database was damaged and rebuilt.
    pub salvaged: Option<Salvaged>,
}

impl Sqlite {
    /// Opens the database in `dir`, making or migrating it as needed. A damaged one is set aside, and what can be read of
    /// it is kept.
    ///
    /// # Errors
    /// When the folder cannot be used, or a later release wrote the database.
    pub async fn open(dir: &Path) -> Result<Opened, LogError> {
        private_folder(dir)?;
        let gate = private_file(&dir.join("write.lock"))?;
        let gate = Arc::new(gate);
        let _held = hold(&gate).await?;
        failpoint::hit("lock.after", "store");
        let in_use = private_file(&dir.join("in-use.lock"))?;
        let mut salvaged = None;
        let first = match salvage::unfinished(dir) {
            true => Err(LogError::Damaged("met while working".into())),
            false => Self::try_open(dir).await,
        };
        let (write, read) = match first {
            Ok(pair) => pair,
            Err(LogError::Damaged(why)) => {
                // Nobody may be writing to the file that is set aside.
                in_use.try_lock().map_err(|_| {
                    let todo = "end the other dunnock processes, then start again: the database will be rebuilt";
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
        // Every column of every table, once: what cannot even be asked for is found here, not in the middle of work.
        for probe in schema::PROBES {
            sqlx::query(*probe).fetch_optional(&mut write).await.map_err(|e| misfit(classify(e)))?;
        }
        Ok((write, connect(&path).await?))
    }

    /// Takes the writer: first this process's, then the machine's. SQLite's own way of waiting starves writers.
    pub(crate) async fn writer(&self) -> Result<Writer<'_>, LogError> {
        self.writer_with(self.write.lock().await).await
    }

    /// The same, for whoever has this process's already. It must not be given up in the middle: a lock that is waited for would
    /// come to nobody, and be given back under somebody else.
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

    pub(crate) async fn reader(&self) -> Result<MutexGuard<'_, Option<SqliteConnection>>, LogError> {
        let mut slot = self.read.lock().await;
        if slot.is_none() {
            *slot = Some(connect(&self.dir.join(NAME)).await?);
        }
        Ok(slot)
    }

    /// Folds the write-ahead log back when it has grown, on a connection of its own.
    pub(crate) fn fold_back(&self, appended: u64, batches: u64) {
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

    /// Closes both connections, and so folds the write-ahead log back if no other process uses the database.
    pub async fn close(&self) {
        for slot in [&self.read, &self.write] {
            if let Some(conn) = slot.lock().await.take() {
                let _ = conn.close().await;
            }
        }
    }

    /// Leaves a note that the next start must salvage, if SQLite itself says that its file is damaged. A bad record of
    /// one session is that session's trouble, not the database's.
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

/// The right to write, for as long as it lives.
pub(crate) struct Writer<'a> {
    slot: MutexGuard<'a, Option<SqliteConnection>>,
    /// Something was begun on it and has not come to its end.
    begun: bool,
    _held: Held,
}

impl Drop for Writer<'_> {
    /// Whoever is dropped in the middle leaves a transaction open: nobody may go on in it.
    fn drop(&mut self) {
        if self.begun {
            *self.slot = None;
        }
    }
}

impl Writer<'_> {
    /// From here until [`Writer::ended`] the connection is in the middle of something.
    pub(crate) fn begun(&mut self) {
        self.begun = true;
    }
    pub(crate) fn ended(&mut self) {
        self.begun = false;
    }
    /// Makes a connection anew where it was given up.
    pub(crate) async fn connected(&mut self, dir: &Path) -> Result<(), LogError> {
        if self.slot.is_none() {
            *self.slot = Some(connect(&dir.join(NAME)).await?);
        }
        Ok(())
    }
    pub(crate) fn conn(&mut self) -> Result<&mut SqliteConnection, LogError> {
        self.slot.as_mut().ok_or_else(|| LogError::Failed("the connection is closed".into()))
    }
    /// Folds the write-ahead log back at once, as far as that goes.
    pub(crate) async fn fold_now(&mut self, dir: &Path) {
        if self.slot.is_none() {
            *self.slot = connect(&dir.join(NAME)).await.ok();
        }
        if let Some(conn) = self.slot.as_mut() {
            let _ = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(conn).await;
        }
    }
    /// Gives the connection up: after a failed sync it must not be used again.
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
            // Held from inside: if nobody waits for it any more, the lock is given back.
            let waiting = gate.clone();
            let locked = tokio::task::spawn_blocking(move || waiting.lock().map(|()| Held(waiting.clone()))).await;
            return locked.map_err(failed)?.map_err(failed);
        }
        Err(std::fs::TryLockError::Error(e)) => return Err(failed(e)),
    }
    Ok(Held(gate.clone()))
}

impl Sqlite {
    /// Folds a write-ahead log that has grown back into the database and empties its file, unless somebody is in the way.
    pub(crate) async fn shrink(&self) {
        let log = self.dir.join(format!("{NAME}-wal"));
        if std::fs::metadata(log).is_ok_and(|m| m.len() > GROWN)
            && let Ok(mut writer) = self.writer().await
            && let Ok(conn) = writer.conn()
        {
            let _ =
                sqlx::query("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = 10000")
                    .execute(conn)
                    .await;
        }
    }
}

/// A write-ahead log of this size is worth emptying.
const GROWN: u64 = 1 << 20;

/// The one place where connections are made.
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

/// What an error of SQLite means for the log. A failed commit is judged where the commit is.
pub(crate) fn classify(error: sqlx::Error) -> LogError {
    let code = match &error {
        sqlx::Error::Database(e) => e.code().and_then(|c| c.parse::<u32>().ok()).unwrap_or(0) & 0xff,
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

/// Fails for a database of a development build from before the first release: it is nobody's damage. What cannot even be asked here is.
async fn refuse_before_release(path: &Path, conn: &mut SqliteConnection) -> Result<(), LogError> {
    match sqlx::query(schema::BEFORE_RELEASE).fetch_optional(conn).await {
        Ok(Some(_)) => Err(failed(format!(
            "a development build from before the first release wrote {}, and this release cannot read it. It is left as it is: move it \
             away, or use another --data-dir",
            path.display()
        ))),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// SQLite's plain "error" at the start: our own statements do not fit the schema that stands there.
fn misfit(error: LogError) -> LogError {
    match error {
        LogError::Failed(why) if why.contains("(code: 1)") => LogError::Damaged(why),
        other => other,
    }
}

fn migration(error: sqlx::migrate::MigrateError) -> LogError {
    use sqlx::migrate::MigrateError as E;
    match error {
        E::VersionMissing(v) | E::VersionTooNew(v, _) => {
            failed(format!("a later release wrote this database (format {v}); use that release, or another --data-dir"))
        }
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

/// A file that only this user may read. SQLite gives its own files the mode of the database.
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
