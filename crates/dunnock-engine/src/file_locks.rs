//! Ownership on one machine: an operating-system lock on a file, released by the kernel when the
//! process dies.
//!
//! Invariant: no clock and no heartbeat. A suspended process still owns its session; it is named to
//! the user, never overruled.

use dunnock_core::failpoint;
use dunnock_ports::{BoxFuture, Epoch, Owned, OwnerNote, Ownership, OwnershipError};
use dunnock_private::{LockHolder, lock_holder, open_append, record_lock, restrict_folder};
use dunnock_proto::{LINK_VERSION, SessionId};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Decides by file locks which process of this user drives a session.
#[derive(Debug, Clone)]
pub struct FileLocks {
    locks: PathBuf,
    runtime: PathBuf,
    app: String,
}

/// An [`OwnerNote`] as it is stored next to the lock, with the protocol version and the release for
/// people who look.
#[derive(Serialize, Deserialize)]
struct StoredNote {
    pid: u32,
    socket: PathBuf,
    link: u32,
    app: String,
}

/// A locked file, and what stands beside it.
struct Locked {
    lock: File,
    note: PathBuf,
    socket: PathBuf,
}

impl FileLocks {
    /// Locks in `locks`, a folder that all processes of this user share, and sockets in `runtime`:
    /// a short path, private, removed at log-out. `app` is this release, as other processes see it.
    #[must_use]
    pub fn new(locks: PathBuf, runtime: PathBuf, app: &str) -> Self {
        Self { locks, runtime, app: app.into() }
    }

    fn path(&self, session: &SessionId, ending: &str) -> PathBuf {
        self.locks.join(format!("{session}.{ending}"))
    }

    fn try_claim(&self, session: &SessionId) -> io::Result<Option<Locked>> {
        restrict_folder(&self.runtime)?;
        failpoint::hit("own.lock.before", "");
        let Some(lock) = self.try_hold(session)? else { return Ok(None) };
        failpoint::hit("own.lock.after", "");
        let socket = self.runtime.join(format!("{}.sock", &session.as_str()[..8]));
        let _ = std::fs::remove_file(&socket); // a dead owner's socket
        let note = StoredNote {
            pid: std::process::id(),
            socket: socket.clone(),
            link: LINK_VERSION,
            app: self.app.clone(),
        };
        let part = self.path(session, "owner.part");
        let mut file = open_append(&part)?;
        file.set_len(0)?; // a dead owner may have left content
        file.write_all(&serde_json::to_vec(&note)?)?;
        let note = self.path(session, "owner");
        std::fs::rename(&part, &note)?;
        failpoint::hit("own.note.after", "");
        Ok(Some(Locked { lock, note, socket }))
    }

    fn try_hold(&self, session: &SessionId) -> io::Result<Option<File>> {
        restrict_folder(&self.locks)?;
        let lock = open_append(&self.path(session, "lock"))?;
        match lock.try_lock() {
            Ok(()) => {
                let _ = record_lock(&lock); // on a full disk, only the name is missing
                Ok(Some(lock))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Whether another process has the lock. Writes nothing, and never takes the lock that an owner
/// takes: a shared one is enough to see it.
fn is_locked(path: &Path) -> io::Result<bool> {
    let lock = match File::open(path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Ownership for FileLocks {
    fn claim<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Box<dyn Owned>>, OwnershipError>> {
        Box::pin(async move {
            let locked = self.try_claim(session).map_err(unusable)?;
            Ok(locked.map(|locked| Box::new(locked) as Box<dyn Owned>))
        })
    }

    fn hold<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Box<dyn Send + Sync>>, OwnershipError>> {
        Box::pin(async move {
            let lock = self.try_hold(session).map_err(unusable)?;
            Ok(lock.map(|lock| Box::new(lock) as Box<dyn Send + Sync>))
        })
    }

    fn owner<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Option<OwnerNote>> {
        Box::pin(async move {
            let bytes = std::fs::read(self.path(session, "owner")).ok()?;
            let StoredNote { pid, socket, .. } = serde_json::from_slice(&bytes).ok()?;
            Some(OwnerNote { pid, socket })
        })
    }

    fn holder<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, LockHolder> {
        Box::pin(async move {
            match lock_holder(&self.path(session, "lock")) {
                Some(holder) => holder,
                None => OwnerNote::holder(self.owner(session).await.as_ref()),
            }
        })
    }

    fn is_driven<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<bool, OwnershipError>> {
        Box::pin(async move { is_locked(&self.path(session, "lock")).map_err(unusable) })
    }

    fn forget<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for ending in ["lock", "owner", "owner.part"] {
                let _ = std::fs::remove_file(self.path(session, ending));
            }
        })
    }
}

impl Owned for Locked {
    fn epoch(&self) -> Option<Epoch> {
        None
    }
    fn socket(&self) -> &Path {
        &self.socket
    }
    fn lock(&self) -> Option<&File> {
        Some(&self.lock)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(&self.note);
    }
}

fn unusable(error: io::Error) -> OwnershipError {
    OwnershipError(format!("the folder for locks and sockets cannot be used: {error}"))
}
