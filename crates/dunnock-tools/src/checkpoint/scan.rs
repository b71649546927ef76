//! Scans every file of a workspace and saves what is new.
//!
//! First all folders are listed (`listing.rs`). A file is read only if its size, times, inode or
//! mode changed since the last scan, which is remembered in the *index* (in memory, and in a file
//! that may be lost). Folders are opened by descriptor, one inside the other, and no link is
//! followed, so that a link planted during the scan leads nowhere.

use super::file_facts::{Known, nanos, number, open_folder, open_root, user_attributes};
use super::ignored::Ignored;
use super::listing::{Folder, Lister, Listing, Name, stopped, too_much};
use super::object::{NameOnly, Node, encode, encode_attributes};
use super::pack::{Pack, Put};
use super::seen::{Seen, SeenEntry};
use super::size_rule::{CopyLimit, CopyProgress, LARGE, SizeRule};
use dunnock_ports::SaveControl;
use dunnock_proto::Hash;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// File times come from a clock with ticks this long, in nanoseconds.
const TICK: i64 = 20_000_000;
/// How many files, and how many bytes of them, are read again because they changed a short time ago.
const UNSETTLED_FILES: usize = 200;
const UNSETTLED_BYTES: u64 = 8 << 20;

/// The result of a scan.
pub(crate) struct ScanResult {
    pub(crate) seen: Seen,
    /// Files that had to be read and were new.
    pub(crate) read: usize,
}

pub(crate) struct Scan<'a> {
    pack: &'a mut Pack,
    saving: &'a SaveControl,
    /// How large the store may become during this scan.
    most: u64,
    /// Which files are saved.
    rule: SizeRule,
    began: i64,
    listing: Listing,
    read: usize,
    /// Files that changed after this time may change again without a new time.
    settled: i64,
    /// How many of them there are, and their bytes.
    unsettled: (usize, u64),
    progress: CopyProgress,
}

/// A folder that is opened when a file in it has to be read.
struct LazyFolder<'a> {
    above: Option<(&'a LazyFolder<'a>, &'a OsStr)>,
    dir: OnceCell<OwnedFd>,
}

impl LazyFolder<'_> {
    fn open(&self) -> rustix::io::Result<BorrowedFd<'_>> {
        if self.dir.get().is_none()
            && let Some((above, name)) = self.above
        {
            let _ = self.dir.set(open_folder(above.open()?, name)?);
        }
        self.dir.get().map(AsFd::as_fd).ok_or(Errno::NOENT)
    }
}

/// Reads a file until it is stopped.
struct Stoppable<'a> {
    file: &'a File,
    saving: &'a SaveControl,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.saving.halt.is_cancelled() {
            true => Err(io::Error::other("stopped")),
            false => self.file.read(buffer),
        }
    }
}

/// The folder to scan, and what is left out.
pub(crate) struct Scope<'a> {
    pub(crate) root: &'a Path,
    /// Our own paths, relative to the root.
    pub(crate) own: &'a HashSet<PathBuf>,
    /// How many bytes the store may grow by.
    pub(crate) most: u64,
    /// Which new files are copied.
    pub(crate) limit: CopyLimit,
    /// Files that changed within this time are read again.
    pub(crate) settle: Duration,
}

impl<'a> Scan<'a> {
    /// Scans everything below the root.
    pub(crate) fn look(
        pack: &'a mut Pack,
        scope: &Scope<'_>,
        before: Option<&Seen>,
        saving: &'a SaveControl,
    ) -> io::Result<ScanResult> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let dir = open_root(scope.root)?;
        let lister =
            Lister { ignored: Ignored::new(scope.root), own: scope.own, halt: &saving.halt };
        let listing = lister.list(dir.try_clone()?)?;
        let (rule, bytes) = SizeRule::of(&listing, before, scope.limit);
        let progress = CopyProgress::new(bytes);
        let most = pack.size() + scope.most;
        let settled = began.saturating_sub(number(scope.settle.as_nanos()));
        let (read, unsettled) = (0, (0, 0));
        let mut scan =
            Self { pack, saving, most, rule, began, listing, read, settled, unsettled, progress };
        let top = scan.take(0)?;
        let seen = scan.folder(&LazyFolder { above: None, dir: dir.into() }, top, before)?;
        Ok(ScanResult { seen, read: scan.read })
    }

    fn take(&mut self, index: usize) -> io::Result<Folder> {
        let gone = || Err(io::ErrorKind::NotFound.into());
        self.listing.get_mut(index).map_or_else(gone, |folder| std::mem::replace(folder, gone()))
    }

    fn folder(
        &mut self,
        at: &LazyFolder<'_>,
        folder: Folder,
        before: Option<&Seen>,
    ) -> io::Result<Seen> {
        self.check()?;
        if folder.is_cache {
            // The missing hash tells the folder above.
            return Ok(Seen::default());
        }
        let mut old = before.map_or(&[][..], |b| &b.entries).iter().peekable();
        let mut entries = Vec::with_capacity(folder.names.len());
        let mut same = before.is_some_and(|b| b.hash.is_some());
        for name in folder.names {
            while old.peek().is_some_and(|o| o.name < name.name) {
                old.next();
                same = false;
            }
            let was = old.next_if(|o| o.name == name.name);
            let Some(found) = self.entry(at, name, was)? else {
                same &= was.is_none();
                continue;
            };
            same &= was.is_some_and(|w| w.node == found.node);
            entries.push(found);
        }
        same &= old.next().is_none();
        let hash = match before.and_then(|b| b.hash).filter(|_| same) {
            Some(hash) => hash,
            None => self.pack.put(&encode(entries.iter().map(|e| (e.name.as_ref(), &e.node))))?,
        };
        self.check()?;
        Ok(Seen { entries, hash: Some(hash) })
    }

    /// Ends a scan that is stopped or would save too much.
    fn check(&self) -> io::Result<()> {
        if self.saving.halt.is_cancelled() {
            return Err(stopped());
        }
        if self.pack.size() > self.most { Err(too_much()) } else { Ok(()) }
    }

    /// Scans one name in a folder; `None` if it is gone by now.
    fn entry(
        &mut self,
        at: &LazyFolder<'_>,
        listed: Name,
        was: Option<&SeenEntry>,
    ) -> io::Result<Option<SeenEntry>> {
        let Name { name, mut known, kind, left, folder, .. } = listed;
        let only_named = |why| Node::Left { why, size: 0, changed: 0 };
        let large = Node::Left { why: NameOnly::Large, size: known.size, changed: known.modified };
        let mut below = None;
        let node = match (left, folder, kind) {
            (Some(why), ..) => {
                known = Known::default();
                Some(only_named(why))
            }
            (None, Some(index), _) => {
                let inner = LazyFolder {
                    above: Some((at, OsStr::from_bytes(&name))),
                    dir: OnceCell::new(),
                };
                let mode = known.mode & 0o7777;
                known = Known::default();
                match self.below(&inner, index, was.and_then(|was| was.below.as_deref()), mode)? {
                    Some((node, seen)) => {
                        below = seen;
                        Some(node)
                    }
                    None => None,
                }
            }
            (None, None, FileType::RegularFile) if self.rule.leaves_out(known, was) => Some(large),
            (None, None, _)
                if was.is_some_and(|was| was.known == known && !self.rule.saves(was)) =>
            {
                was.map(|was| was.node.clone())
            }
            (None, None, FileType::Symlink) => {
                let target = at.open().and_then(|dir| {
                    rustix::fs::readlinkat(dir, OsStr::from_bytes(&name), Vec::new())
                });
                if known.changed > self.began - TICK {
                    known.changed = 0;
                }
                match target {
                    Ok(target) => Some(Node::Link { target: target.into_bytes() }),
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL) => None,
                    Err(Errno::ACCESS | Errno::PERM) => {
                        known = Known::default();
                        Some(only_named(NameOnly::Unreadable))
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            (None, None, FileType::RegularFile) => {
                let node = self.file(at, &name, &mut known)?;
                self.read += usize::from(was.map(|was| &was.node) != node.as_ref());
                node
            }
            (None, None, _) => Some(only_named(NameOnly::Special)),
        };
        Ok(node.map(|node| SeenEntry { name, node, known, below }))
    }

    /// Scans a folder in a folder; `None` if it is gone by now.
    fn below(
        &mut self,
        at: &LazyFolder<'_>,
        index: usize,
        before: Option<&Seen>,
        mode: u32,
    ) -> io::Result<Option<(Node, Option<Box<Seen>>)>> {
        let left = |why| Ok(Some((Node::Left { why, size: 0, changed: 0 }, None)));
        let mut folder = match self.take(index) {
            Ok(folder) => folder,
            Err(error) => {
                return match Errno::from_io_error(&error) {
                    Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
                    // Also one that can be listed but not entered.
                    Some(Errno::ACCESS | Errno::PERM) => left(NameOnly::Unreadable),
                    _ => Err(error),
                };
            }
        };
        let attributes = std::mem::take(&mut folder.attributes);
        let seen = self.folder(at, folder, before)?;
        let Some(hash) = seen.hash else { return left(NameOnly::Build) };
        let attributes = self.attributes(&attributes)?;
        Ok(Some((Node::Folder { mode, hash, attributes }, Some(Box::new(seen)))))
    }

    /// Reads a file that is new or changed. `None` if it is gone, or no longer a file.
    fn file(
        &mut self,
        at: &LazyFolder<'_>,
        name: &[u8],
        known: &mut Known,
    ) -> io::Result<Option<Node>> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let (size, changed) = (known.size, known.modified);
        let left = |why: NameOnly| Ok(Some(Node::Left { why, size, changed }));
        let opened = crate::root::patient(|| {
            rustix::fs::openat(at.open()?, OsStr::from_bytes(name), flags, Mode::empty())
        });
        let file: File = match opened {
            Ok(file) => file.into(),
            Err(Errno::ACCESS | Errno::PERM) => {
                // It may be the folder, whose mode does not change the times of the file.
                *known = Known::default();
                return left(NameOnly::Unreadable);
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut reader = Stoppable { file: &file, saving: self.saving };
        let put = self.pack.put_from(&mut reader, size, LARGE)?;
        self.check()?;
        self.progress.add(size, self.saving);
        let (hash, size) = match put {
            Put::Kept(hash, size) => (hash, size),
            Put::TooMuch => {
                *known = Known::default();
                return left(NameOnly::Large);
            }
            Put::Unreadable => {
                *known = Known::default();
                return left(NameOnly::Unreadable);
            }
        };
        let attributes = self.attributes(&user_attributes(&file))?;
        let after = rustix::fs::fstat(&file)?;
        let linked = after.st_nlink > 1;
        let changed = nanos(after.st_ctime, after.st_ctime_nsec);
        // It changed while it was read, or so recently that the next change may have the same time:
        // read it again next time.
        if changed != known.changed
            || size != known.size
            || after.st_ino != known.inode
            || changed > self.began - TICK
            || self.is_unsettled(changed, size)
        {
            known.changed = 0;
        }
        let mode = known.mode & 0o7777;
        Ok(Some(Node::File { mode, size, hash, attributes, linked }))
    }

    /// Whether a file that changed at this time may change again without a new time.
    fn is_unsettled(&mut self, changed: i64, size: u64) -> bool {
        let (files, bytes) = self.unsettled;
        if changed <= self.settled || files >= UNSETTLED_FILES || bytes + size > UNSETTLED_BYTES {
            return false;
        }
        self.unsettled = (files + 1, bytes + size);
        true
    }

    /// Saves the extended attributes of a file or folder.
    fn attributes(&mut self, all: &BTreeMap<Vec<u8>, Vec<u8>>) -> io::Result<Option<Hash>> {
        if all.is_empty() { Ok(None) } else { self.pack.put(&encode_attributes(all)).map(Some) }
    }
}
