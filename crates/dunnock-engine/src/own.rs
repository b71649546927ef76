//! Which process owns a session on this machine: an operating-system lock on a file, released by
//! the kernel when the process dies.
//!
//! Invariant: no clock and no heartbeat. A suspended process still owns its session; it is named to
//! the user, never overruled.

use dunnock_core::failpoint;
use dunnock_proto::{LINK_VERSION, SessionId};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What an owner writes next to its lock, so that others can reach or name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerNote {
    /// The process.
    pub pid: u32,
    /// The socket it listens on.
    pub socket: PathBuf,
    /// The protocol version it speaks.
    pub link: u32,
    /// Its release.
    pub app: String,
}

/// The right to drive a session, for as long as this value lives.
#[derive(Debug)]
pub struct Ownership {
    lock: File,
    note: PathBuf,
    socket: PathBuf,
}

impl Ownership {
    /// Takes the session if no process owns it.
    ///
    /// # Errors
    /// If the folders cannot be used.
    pub fn try_take(
        locks: &Path,
        runtime: &Path,
        session: &SessionId,
        app: &str,
    ) -> io::Result<Option<Self>> {
        private(runtime)?;
        failpoint::hit("own.lock.before", "");
        let Some(lock) = Self::hold(locks, session)? else { return Ok(None) };
        failpoint::hit("own.lock.after", "");
        let socket = runtime.join(format!("{}.sock", &session.as_str()[..8]));
        let _ = std::fs::remove_file(&socket); // a dead owner's socket
        let path = locks.join(format!("{session}.owner"));
        let note = OwnerNote {
            pid: std::process::id(),
            socket: socket.clone(),
            link: LINK_VERSION,
            app: app.into(),
        };
        let part = locks.join(format!("{session}.owner.part"));
        let mut file = private_file(&part)?;
        file.set_len(0)?; // a dead owner may have left content
        file.write_all(&serde_json::to_vec(&note)?)?;
        std::fs::rename(&part, &path)?;
        failpoint::hit("own.note.after", "");
        Ok(Some(Self { lock, note: path, socket }))
    }

    /// Whether a process drives the session now.
    ///
    /// # Errors
    /// If the lock folder cannot be used.
    pub fn is_driven(locks: &Path, session: &SessionId) -> io::Result<bool> {
        Ok(Self::hold(locks, session)?.is_none())
    }

    /// Prevents all processes from driving the session, without driving it: for a short write.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub(crate) fn hold(locks: &Path, session: &SessionId) -> io::Result<Option<File>> {
        private(locks)?;
        let lock = private_file(&locks.join(format!("{session}.lock")))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The lock itself: a duplicate held elsewhere keeps the session owned.
    #[must_use]
    pub fn lock(&self) -> &File {
        &self.lock
    }

    /// The socket this owner listens on.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The owner of the session, according to its note.
    #[must_use]
    pub fn note(locks: &Path, session: &SessionId) -> Option<OwnerNote> {
        serde_json::from_slice(&std::fs::read(locks.join(format!("{session}.owner"))).ok()?).ok()
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(&self.note);
    }
}

/// A file that only this user may read.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

pub(crate) fn private(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}
