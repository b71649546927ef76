//! Reads and writes below a git folder, by descriptor. No link is followed, and only regular files
//! are opened.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};
use std::time::{SystemTime, UNIX_EPOCH};

/// Names of one folder that are read at most.
const MOST_NAMES: usize = 1_000_000;

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Converts a number from the system: modes and times have other types on other systems.
fn number<A: TryInto<B>, B: Default>(theirs: A) -> B {
    theirs.try_into().unwrap_or_default()
}

fn open_folder(at: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// Opens a folder that is not part of a repository.
pub(super) fn open_root(root: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(root, flags, Mode::empty())?)
}

/// Identifies a version of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VersionStamp {
    pub(super) size: u64,
    pub(super) modified: i64,
    pub(super) changed: i64,
    inode: u64,
    pub(super) mode: u32,
}

impl VersionStamp {
    pub(super) fn of(stat: &rustix::fs::Stat) -> Self {
        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000) + nanos;
        Self {
            size: number(stat.st_size),
            modified: nanos(number(stat.st_mtime), number(stat.st_mtime_nsec)),
            changed: nanos(number(stat.st_ctime), number(stat.st_ctime_nsec)),
            inode: number(stat.st_ino),
            mode: number::<_, u32>(stat.st_mode) & 0o7777,
        }
    }

    /// Within one tick of the clock a file could change again unnoticed: such a stamp equals none.
    pub(super) fn settled(self, now: i64) -> Option<Self> {
        (now.saturating_sub(self.changed) > 20_000_000).then_some(self)
    }
}

/// Opens a git folder: relative to the workspace, or anywhere if its path is absolute.
pub(super) fn open_git(workspace: &Path, dir: &Path) -> io::Result<OwnedFd> {
    match dir.strip_prefix("/") {
        Ok(rest) => enter(&open_root(Path::new("/"))?, rest),
        Err(_) => enter(&open_root(workspace)?, dir),
    }
}

/// Opens a folder below another one.
pub(super) fn enter(dir: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let mut at = dir.as_fd().try_clone_to_owned()?;
    for part in path.components() {
        let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        at = open_folder(&at, name)?;
    }
    Ok(at)
}

/// Opens the folder above a path, and creates it if necessary.
pub(super) fn enter_or_create(dir: impl AsFd, path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut at = dir.as_fd().try_clone_to_owned()?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        match rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => at = open_folder(&at, name)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok((at, name))
}

/// The names in a folder, with what they are.
pub(super) fn names(dir: impl AsFd) -> io::Result<Vec<(OsString, FileType)>> {
    let mut all = Vec::new();
    for entry in Dir::read_from(&dir)?.take(MOST_NAMES) {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => kind(&dir, &name).unwrap_or(FileType::Unknown),
            kind => kind,
        };
        all.push((name, kind));
    }
    Ok(all)
}

pub(super) fn stat(dir: impl AsFd, name: &OsStr) -> Option<rustix::fs::Stat> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()
}

pub(super) fn kind(dir: impl AsFd, name: &OsStr) -> Option<FileType> {
    stat(dir, name).map(|stat| FileType::from_raw_mode(stat.st_mode))
}

/// Opens a regular file; never waits for a pipe.
pub(super) fn open_file(dir: impl AsFd, name: &OsStr) -> io::Result<(File, rustix::fs::Stat)> {
    if kind(&dir, name) != Some(FileType::RegularFile) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(dir, name, flags, Mode::empty())?);
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((file, stat)),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Reads a file of at most `most` bytes.
pub(super) fn read(dir: impl AsFd, name: &OsStr, most: u64) -> io::Result<(Vec<u8>, VersionStamp)> {
    let (file, stat) = open_file(dir, name)?;
    let stamp = VersionStamp::of(&stat);
    let mut bytes = Vec::with_capacity(usize::try_from(stamp.size.min(most)).unwrap_or(0));
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok((bytes, stamp)),
    }
}

/// Writes a file under the name that git itself uses as its lock, and renames it into place.
pub(super) fn write(dir: impl AsFd, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (dir, name) = enter_or_create(dir, path)?;
    let mut lock = name.to_owned();
    lock.push(".lock");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(&dir, &lock, flags, Mode::from_raw_mode(0o600));
    let mut file: File = match made {
        Ok(file) => file.into(),
        Err(rustix::io::Errno::EXIST) => {
            return Err(io::Error::other("git has it locked"));
        }
        Err(error) => return Err(error.into()),
    };
    let done = (|| {
        file.write_all(bytes)?;
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        // An empty folder may be left where a branch with a longer name was.
        let _ = rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR);
        Ok(rustix::fs::renameat(&dir, &lock, &dir, name)?)
    })();
    if done.is_err() {
        let _ = rustix::fs::unlinkat(&dir, &lock, AtFlags::empty());
    }
    done
}
