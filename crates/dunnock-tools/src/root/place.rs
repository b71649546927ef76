//! A folder in which files are created, removed and swapped: held by descriptor on Linux, by name
//! elsewhere.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Nothing,
    File,
    Link,
    Other,
}

#[cfg(target_os = "linux")]
pub(super) use by_descriptor::Place;
#[cfg(not(target_os = "linux"))]
pub(super) use by_name::Place;

/// Opens a file, waiting up to two seconds while an edit of it is being committed.
#[cfg(unix)]
pub(crate) fn patient<T>(mut open: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    let began = std::time::Instant::now();
    loop {
        match open() {
            Err(rustix::io::Errno::AGAIN)
                if began.elapsed() < std::time::Duration::from_secs(2) =>
            {
                std::thread::sleep(std::time::Duration::from_micros(500));
            }
            opened => return opened,
        }
    }
}

/// The permissions of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rights<'a> {
    /// The system default, and whether it is executable.
    New { runs: bool },
    /// This mode.
    #[cfg(target_os = "linux")]
    Mode(u32),
    /// This mode, and the owner of an existing file.
    Like(u32, &'a OsStr),
}

impl Place {
    /// Creates a file with these bytes and syncs it to disk. Returns its inode and the open file.
    pub(super) fn new_file(
        &self,
        name: &str,
        bytes: &[u8],
        rights: Rights<'_>,
    ) -> io::Result<(u64, File)> {
        // A file that replaces a private one is private from its first byte.
        let mut file = self.fresh(
            name,
            match rights {
                Rights::New { runs } => 0o666 | if runs { 0o111 } else { 0 },
                #[cfg(target_os = "linux")]
                Rights::Mode(_) => 0o600,
                Rights::Like(..) => 0o600,
            },
        )?;
        file.write_all(bytes)?;
        if let Rights::Like(_, other) = rights {
            self.give(&file, other);
        }
        #[cfg(unix)]
        if let Some(mode) = match rights {
            Rights::New { .. } => None,
            #[cfg(target_os = "linux")]
            Rights::Mode(mode) => Some(mode),
            Rights::Like(mode, _) => Some(mode),
        } {
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        }
        file.sync_all()?;
        #[cfg(unix)]
        return Ok((std::os::unix::fs::MetadataExt::ino(&file.metadata()?), file));
        #[cfg(not(unix))]
        Ok((0, file))
    }
}

#[cfg(target_os = "linux")]
mod by_descriptor {
    use super::{File, Kind, OsStr, Path, PathBuf, io, patient};
    use crate::root::workspace::Root;
    use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
    use rustix::io::Errno;

    pub(in super::super) struct Place(File);

    fn enter(dir: &File, name: &Path) -> rustix::io::Result<File> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat2(dir, name, flags, Mode::empty(), resolve).map(File::from)
    }

    impl Place {
        /// Opens the folder, creating it if it is missing; created folders are added to `made`.
        pub(in super::super) fn make(
            root: &Root,
            path: &Path,
            made: &mut Vec<PathBuf>,
        ) -> io::Result<Self> {
            let mut dir = enter(root.dir(), Path::new("."))?;
            let mut so_far = PathBuf::new();
            for component in path.components() {
                let name = Path::new(component.as_os_str());
                so_far.push(name);
                dir = match enter(&dir, name) {
                    Ok(inner) => inner,
                    Err(Errno::NOENT) => {
                        match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                            Ok(()) => made.push(so_far.clone()),
                            Err(Errno::EXIST) => {}
                            Err(error) => return Err(error.into()),
                        }
                        enter(&dir, name)?
                    }
                    Err(Errno::LOOP) => return Err(io::ErrorKind::InvalidInput.into()),
                    Err(error) => return Err(error.into()),
                };
            }
            Ok(Self(dir))
        }
        /// Opens the folder, if it exists.
        pub(in super::super) fn open(root: &Root, path: &Path) -> io::Result<Self> {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            match enter(root.dir(), path) {
                Err(Errno::LOOP) => Err(io::ErrorKind::InvalidInput.into()),
                opened => Ok(Self(opened?)),
            }
        }
        pub(in super::super) fn kind(&self, name: &OsStr) -> io::Result<Kind> {
            match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => Ok(Kind::Nothing),
                Err(error) => Err(error.into()),
                Ok(stat) => Ok(match FileType::from_raw_mode(stat.st_mode) {
                    FileType::RegularFile => Kind::File,
                    FileType::Symlink => Kind::Link,
                    _ => Kind::Other,
                }),
            }
        }
        /// The inode that identifies a file.
        pub(in super::super) fn number(&self, name: &OsStr) -> Option<u64> {
            rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)
                .ok()
                .map(|stat| stat.st_ino)
        }
        pub(super) fn fresh(&self, name: &str, mode: u32) -> io::Result<File> {
            let flags =
                OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(mode))?.into())
        }
        pub(in super::super) fn read(&self, name: &OsStr) -> io::Result<File> {
            let flags = OFlags::RDONLY
                | OFlags::NOFOLLOW
                | OFlags::NONBLOCK
                | OFlags::NOCTTY
                | OFlags::CLOEXEC;
            Ok(patient(|| rustix::fs::openat(&self.0, name, flags, Mode::empty()))?.into())
        }
        /// Gives a new file the owner of another, as far as that is allowed.
        pub(super) fn give(&self, file: &File, like: &OsStr) {
            use std::os::unix::fs::MetadataExt as _;
            let there = rustix::fs::statat(&self.0, like, AtFlags::SYMLINK_NOFOLLOW);
            let (Ok(there), Ok(new)) = (there, file.metadata()) else { return };
            let owner =
                (there.st_uid != new.uid()).then(|| rustix::fs::Uid::from_raw(there.st_uid));
            let group =
                (there.st_gid != new.gid()).then(|| rustix::fs::Gid::from_raw(there.st_gid));
            if (owner.is_some() || group.is_some())
                && rustix::fs::fchown(file, owner, group).is_err()
            {
                let _ = rustix::fs::fchown(file, None, group);
            }
        }
        pub(in super::super) fn rename(
            &self,
            from: &OsStr,
            to: &OsStr,
            over: bool,
        ) -> io::Result<()> {
            if over {
                return Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?);
            }
            match rustix::fs::renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE) {
                // Some file systems do not support this; a hard link can only be created where
                // nothing exists.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    rustix::fs::linkat(&self.0, from, &self.0, to, AtFlags::empty())?;
                    self.remove(from);
                    Ok(())
                }
                done => Ok(done?),
            }
        }
        /// Swaps two files atomically. Fails with `Unsupported` where that is not possible.
        pub(in super::super) fn swap(&self, one: &OsStr, other: &OsStr) -> io::Result<()> {
            match rustix::fs::renameat_with(&self.0, one, &self.0, other, RenameFlags::EXCHANGE) {
                Err(Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
                done => Ok(done?),
            }
        }
        pub(in super::super) fn remove(&self, name: &OsStr) {
            let _ = rustix::fs::unlinkat(&self.0, name, AtFlags::empty());
        }
        pub(in super::super) fn remove_folder(&self, name: &OsStr) {
            let _ = rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR);
        }
        /// Waits until renames in this folder are on disk.
        pub(in super::super) fn sync(&self) -> io::Result<()> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            File::from(rustix::fs::openat(&self.0, ".", flags, Mode::empty())?).sync_all()
        }
        /// Whether another program has this file open for writing, as far as can be determined.
        pub(in super::super) fn is_written(file: &File) -> bool {
            dunnock_sandbox::is_open_for_writing(file).unwrap_or(false)
        }
        /// Makes any process that opens this new file wait until we have closed it. Returns whether
        /// that is possible.
        pub(in super::super) fn keep_waiting(file: &File) -> bool {
            dunnock_sandbox::keep_waiting(file).is_ok()
        }
        /// Whether it is certain that no other program has this file open for writing.
        pub(in super::super) fn is_unused(file: &File) -> bool {
            dunnock_sandbox::is_open_for_writing(file).is_ok_and(|written| !written)
        }
        /// Whether a process waits to write to this new file, which we make it wait for.
        pub(in super::super) fn is_awaited_by_writer(file: &File) -> bool {
            dunnock_sandbox::is_awaited_by_writer(file)
        }
    }
}

/// The same by name, where there is nothing better.
#[cfg(not(target_os = "linux"))]
mod by_name {
    use super::{File, Kind, OsStr, Path, PathBuf, io};
    use crate::root::workspace::Root;

    pub(in super::super) struct Place(PathBuf);

    impl Place {
        pub(in super::super) fn make(
            root: &Root,
            path: &Path,
            made: &mut Vec<PathBuf>,
        ) -> io::Result<Self> {
            let mut dir = root.path().to_path_buf();
            let mut so_far = PathBuf::new();
            for component in path.components() {
                dir.push(component);
                so_far.push(component);
                match std::fs::symlink_metadata(&dir) {
                    Ok(found) if found.is_symlink() => {
                        return Err(io::ErrorKind::InvalidInput.into());
                    }
                    Ok(found) if found.is_dir() => {}
                    Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        std::fs::create_dir(&dir)?;
                        made.push(so_far.clone());
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(Self(dir))
        }
        pub(in super::super) fn open(root: &Root, path: &Path) -> io::Result<Self> {
            let mut dir = root.path().to_path_buf();
            for component in path.components() {
                dir.push(component);
                let found = std::fs::symlink_metadata(&dir)?;
                if found.is_symlink() {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                if !found.is_dir() {
                    return Err(io::ErrorKind::NotADirectory.into());
                }
            }
            Ok(Self(dir))
        }
        pub(in super::super) fn kind(&self, name: &OsStr) -> io::Result<Kind> {
            match std::fs::symlink_metadata(self.0.join(name)) {
                Ok(found) if found.is_symlink() => Ok(Kind::Link),
                Ok(found) if found.is_file() => Ok(Kind::File),
                Ok(_) => Ok(Kind::Other),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kind::Nothing),
                Err(error) => Err(error),
            }
        }
        pub(in super::super) fn number(&self, name: &OsStr) -> Option<u64> {
            let found = std::fs::symlink_metadata(self.0.join(name)).ok()?;
            #[cfg(unix)]
            return Some(std::os::unix::fs::MetadataExt::ino(&found));
            #[cfg(not(unix))]
            {
                let _ = found;
                Some(0)
            }
        }
        pub(super) fn fresh(&self, name: &str, mode: u32) -> io::Result<File> {
            let mut options = File::options();
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
            #[cfg(not(unix))]
            let _ = mode;
            options.read(true).write(true).create_new(true).open(self.0.join(name))
        }
        pub(super) fn give(&self, _: &File, _: &OsStr) {}
        pub(in super::super) fn read(&self, name: &OsStr) -> io::Result<File> {
            File::open(self.0.join(name))
        }
        pub(in super::super) fn rename(
            &self,
            from: &OsStr,
            to: &OsStr,
            over: bool,
        ) -> io::Result<()> {
            if !over && self.0.join(to).exists() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            std::fs::rename(self.0.join(from), self.0.join(to))
        }
        pub(in super::super) fn swap(&self, _: &OsStr, _: &OsStr) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
        pub(in super::super) fn remove(&self, name: &OsStr) {
            let _ = std::fs::remove_file(self.0.join(name));
        }
        pub(in super::super) fn remove_folder(&self, name: &OsStr) {
            let _ = std::fs::remove_dir(self.0.join(name));
        }
        pub(in super::super) fn sync(&self) -> io::Result<()> {
            Ok(())
        }
        pub(in super::super) fn is_written(_: &File) -> bool {
            false
        }
        pub(in super::super) fn keep_waiting(_: &File) -> bool {
            false
        }
        pub(in super::super) fn is_unused(_: &File) -> bool {
            false
        }
        pub(in super::super) fn is_awaited_by_writer(_: &File) -> bool {
            false
        }
    }
}
