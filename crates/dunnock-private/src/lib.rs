//! Folders and files that only their owner can read, and who holds the lock on one.
//!
//! Sessions, locks, journals and drafts are created here, so that no place forgets the mode. A test
//! (`xtask/src/tidy_code.rs`) fails if another file chooses one. The server's token is a temporary
//! file with mode 0600, and a socket gets its mode after it was made. On Windows, the permissions of
//! the parent folder apply.

mod holder;

pub use holder::{HolderState, LockHolder, add_holder, lock_holder, record_lock};

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Creates a folder, and its parents, for this user only. A folder that exists stays as it is.
///
/// # Errors
/// If it cannot be created.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates a folder for this user only. One that exists is restricted to this user.
///
/// # Errors
/// If it cannot be created, or belongs to another user.
pub fn restrict_folder(path: &Path) -> io::Result<()> {
    create_folder(path)?;
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// Options to open a file. If that creates it, only this user can read it.
#[must_use]
pub fn options() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there is no mode"))]
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a file to append to it, or to lock it; creates it if necessary. Windows locks only files
/// that are open for reading, too.
///
/// # Errors
/// If it cannot be opened.
pub fn open_append(path: &Path) -> io::Result<File> {
    options().read(true).create(true).append(true).open(path)
}

/// Replaces a file atomically: a reader sees the old text or the new one. The text is synced, the
/// new name is not.
///
/// # Errors
/// If it cannot be written. The old file is still there then.
pub fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    static PARTS: AtomicU32 = AtomicU32::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = PARTS.fetch_add(1, Ordering::Relaxed);
    let part = path.with_file_name(format!(".{name}.part{}-{part}", std::process::id()));
    let _ = std::fs::remove_file(&part); // an earlier process with this id may have died
    let written = options().write(true).create_new(true).open(&part).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    let done = written.and_then(|()| std::fs::rename(&part, path));
    if done.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    done
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        path.metadata().map_or(0, |about| about.permissions().mode() & 0o777)
    }

    #[test]
    fn what_is_created_is_private() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("a/b");
        create_folder(&folder).unwrap();
        assert_eq!((mode(&base.path().join("a")), mode(&folder)), (0o700, 0o700));
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        create_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o755);
        restrict_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        let file = folder.join("f");
        drop(open_append(&file).unwrap());
        assert_eq!(mode(&file), 0o600);
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("f.toml");
        replace(&file, b"one").unwrap();
        replace(&file, b"two").unwrap();
        assert_eq!((std::fs::read(&file).unwrap(), mode(&file)), (b"two".to_vec(), 0o600));
        assert!(replace(&base.path().join("none/f"), b"x").is_err());
        std::fs::create_dir(base.path().join("d")).unwrap();
        assert!(replace(&base.path().join("d"), b"x").is_err());
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 2);
    }
}
