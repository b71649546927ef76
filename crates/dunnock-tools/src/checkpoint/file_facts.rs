//! What the system says about files, and how folders are opened.

use rustix::fs::{Mode, OFlags, Stat};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// What shows that a file has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Known {
    pub(crate) size: u64,
    pub(crate) modified: i64,
    /// 0 if the file was read so soon after a change that a later one may not show.
    pub(crate) changed: i64,
    pub(crate) inode: u64,
    pub(crate) mode: u32,
}

/// What changes when a file is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    size: u64,
    modified: i64,
    inode: u64,
}

impl Stamp {
    pub(crate) fn of(stat: &Stat) -> Self {
        let modified = nanos(stat.st_mtime, stat.st_mtime_nsec);
        Self { size: number(stat.st_size), modified, inode: stat.st_ino }
    }
}

impl Known {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            size: number(stat.st_size),
            modified: nanos(stat.st_mtime, stat.st_mtime_nsec),
            changed: nanos(stat.st_ctime, stat.st_ctime_nsec),
            inode: stat.st_ino,
            mode: number(stat.st_mode),
        }
    }

    /// What identifies this content, also of a file that is read again because it changed a short
    /// time ago.
    pub(crate) fn stamp(self) -> Stamp {
        Stamp { size: self.size, modified: self.modified, inode: self.inode }
    }
}

/// Converts a number from the system: modes, devices and times have other types on other systems.
pub(crate) fn number<A: TryInto<B>, B: Default>(theirs: A) -> B {
    theirs.try_into().unwrap_or_default()
}

pub(crate) fn nanos(seconds: i64, nanos: impl TryInto<i64>) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(number(nanos))
}

pub(crate) fn open_folder(at: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

pub(crate) fn open_root(root: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(root, flags, Mode::empty())?)
}

/// Whether two names are equal, as this system compares names.
pub(crate) fn is_named(name: &[u8], known: &[u8]) -> bool {
    if cfg!(target_os = "linux") { name == known } else { name.eq_ignore_ascii_case(known) }
}

/// Whether a name is Dunnock's own and never even listed.
pub(crate) fn passed_over(name: &[u8]) -> bool {
    let fold = |known: &[u8]| is_named(name, known);
    fold(b".dunnock") || (name.starts_with(b".dunnock-") && name.ends_with(b".part"))
}

/// The extended attributes that belong to the user, `user.*`. What cannot be read does not exist.
#[cfg(target_os = "linux")]
pub(crate) fn user_attributes(file: impl AsFd) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let file = file.as_fd();
    let names = filled(|buffer| rustix::fs::flistxattr(file, buffer)).unwrap_or_default();
    let names = names.split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
    names
        .filter_map(|name| {
            let value = filled(|buffer| rustix::fs::fgetxattr(file, name, buffer))?;
            Some((name.to_vec(), value))
        })
        .collect()
}

/// What a call writes into a buffer that is large enough; the kernel's own limit is 64 KB.
#[cfg(target_os = "linux")]
fn filled(read: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> Option<Vec<u8>> {
    for size in [256, 64 << 10] {
        let mut buffer = vec![0; size];
        match read(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Some(buffer);
            }
            Err(rustix::io::Errno::RANGE) => {}
            Err(_) => return None,
        }
    }
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn user_attributes(_: impl AsFd) -> BTreeMap<Vec<u8>, Vec<u8>> {
    BTreeMap::new()
}
