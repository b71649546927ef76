//! Opens the database: lock, migrations, and what to do if it is damaged.
//!
//! Invariant: a database from a newer release is not touched.

use crate::salvage::{self, Salvaged};
use crate::schema;
use crate::sqlite::{Gate, NAME, Sqlite, classify, code, connect, failed};
use dunnock_core::failpoint;
use dunnock_ports::StoreError;
use sqlx::SqliteConnection;
use std::path::Path;

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
    pub async fn open(dir: &Path) -> Result<Opened, StoreError> {
        dunnock_private::restrict_folder(dir)
            .map_err(|error| failed(format!("{}: {error}", dir.display())))?;
        let gate = Gate::new(dir)?;
        let held = gate.hold().await?;
        failpoint::hit("lock.after", "store");
        let in_use = dunnock_private::open_append(&dir.join("in-use.lock")).map_err(failed)?;
        let mut salvaged = None;
        let first = match salvage::unfinished(dir) {
            true => Err(StoreError::StoreDamaged("found during an earlier run".into())),
            false => Self::try_open(dir).await,
        };
        let (write, read) = match first {
            Ok(pair) => pair,
            Err(StoreError::Damaged(why) | StoreError::StoreDamaged(why)) => {
                // No other process may be writing to the file that is moved aside.
                in_use.try_lock().map_err(|_| {
                    let todo = "end the other dunnock processes, then start again: the database \
                                will be rebuilt";
                    StoreError::StoreDamaged(format!("{why}; {todo}"))
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
        drop(held);
        let store = Self::new(dir, (write, read), (gate, in_use));
        Ok(Opened { store, salvaged })
    }

    async fn try_open(dir: &Path) -> Result<(SqliteConnection, SqliteConnection), StoreError> {
        let path = dir.join(NAME);
        if was_emptied(dir) {
            let why = "the file is empty, but files of sessions are beside it";
            return Err(StoreError::StoreDamaged(why.into()));
        }
        dunnock_private::open_append(&path).map_err(failed)?;
        let mut write = connect(&path).await?;
        refuse_before_release(&path, &mut write).await?;
        schema::migrator().run_direct(None, &mut write, false).await.map_err(migration)?;
        // Query every column of every table once, so that schema damage shows here and not in the
        // middle of work.
        for probe in schema::PROBES {
            sqlx::query(*probe).fetch_optional(&mut write).await.map_err(misfit)?;
        }
        Ok((write, connect(&path).await?))
    }
}

/// Whether the database has no bytes although sessions have stored files. Without such files, a
/// first start was interrupted, and an empty file is in order.
fn was_emptied(dir: &Path) -> bool {
    let is_used = |name: &&str| {
        fs_err::read_dir(dir.join(name)).is_ok_and(|mut entries| entries.next().is_some())
    };
    fs_err::metadata(dir.join(NAME)).is_ok_and(|about| about.len() == 0)
        && ["checkpoints", "blobs"].iter().any(is_used)
}

/// Refuses a database from a development build before the first release: that is not damage. If the
/// query itself fails, that is.
async fn refuse_before_release(path: &Path, conn: &mut SqliteConnection) -> Result<(), StoreError> {
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
fn misfit(error: sqlx::Error) -> StoreError {
    match code(&error) {
        1 => StoreError::StoreDamaged(error.to_string()),
        _ => classify(error),
    }
}

fn migration(error: sqlx::migrate::MigrateError) -> StoreError {
    use sqlx::migrate::MigrateError as E;
    match error {
        E::VersionMissing(v) | E::VersionTooNew(v, _) => failed(format!(
            "a later release wrote this database (format {v}); use that release, or another \
             --data-dir"
        )),
        E::VersionMismatch(_) | E::Dirty(_) => StoreError::StoreDamaged(error.to_string()),
        E::Execute(e) | E::ExecuteMigration(e, _) => misfit(e),
        other => failed(other),
    }
}
