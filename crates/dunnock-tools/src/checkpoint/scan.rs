//! Scans every file of a workspace and saves what is new.
//!
//! First all folders are listed (`listing.rs`). A file is read only if its size, times, inode or
//! mode changed since the last scan, which is remembered in the *index* (in memory, and in a file
//! that may be lost). Folders are opened by descriptor, one inside the other, and no link is
//! followed, so that a link planted during the scan leads nowhere.

use super::Bounds;
use super::ignored::Ignored;
use super::listing::{DEEP, Folder, Lister, Listing, Name, stopped, too_much};
use super::object::{NameOnly, Node, Reader, broken, encode, encode_attributes};
use super::pack::{Pack, Put};
use super::size_rule::{CopyProgress, SizeRule};
use dunnock_ports::SaveControl;
use dunnock_proto::Hash;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Larger files are not saved.
pub(crate) const LARGE: u64 = 50 << 20;
/// File times come from a clock with ticks this long, in nanoseconds.
const TICK: i64 = 20_000_000;
/// How many files, and how many bytes of them, are read again because they changed a short time ago.
const UNSETTLED_FILES: usize = 200;
const UNSETTLED_BYTES: u64 = 8 << 20;

/// What shows that a file has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Known {
    pub(crate) size: u64,
    modified: i64,
    /// 0 if the file was read so soon after a change that a later one may not show.
    changed: i64,
    inode: u64,
    mode: u32,
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

/// A folder as of the last scan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) entries: Vec<SeenEntry>,
    pub(crate) hash: Option<Hash>,
}

#[derive(Debug, Clone)]
pub(crate) struct SeenEntry {
    pub(crate) name: Box<[u8]>,
    pub(crate) node: Node,
    pub(crate) known: Known,
    pub(crate) below: Option<Box<Seen>>,
}

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

/// Converts a number from the system: modes, devices and times have other types on other systems.
pub(crate) fn number<A: TryInto<B>, B: Default>(theirs: A) -> B {
    theirs.try_into().unwrap_or_default()
}

fn nanos(seconds: i64, nanos: impl TryInto<i64>) -> i64 {
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
    pub(crate) bounds: Bounds,
    /// Whether files that were left out before are saved if they fit.
    pub(crate) saves_left: bool,
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
        let (rule, bytes) = SizeRule::of(&listing, before, scope);
        let progress = CopyProgress::new(bytes);
        let most = pack.size() + scope.most;
        let settled = began.saturating_sub(number(scope.bounds.settle.as_nanos()));
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

impl Seen {
    /// Identifies a file as it was in this scan.
    pub(crate) fn stamp(&self, path: &Path) -> Option<Stamp> {
        let mut parts = path.components();
        let first = parts.next()?.as_os_str().as_bytes();
        let entry = self
            .entries
            .get(self.entries.binary_search_by(|e| e.name.as_ref().cmp(first)).ok()?)?;
        match parts.as_path() {
            rest if rest.as_os_str().is_empty() => match entry.node {
                Node::File { .. } | Node::Link { .. } | Node::Left { why: NameOnly::Large, .. } => {
                    Some(entry.known.stamp())
                }
                Node::Folder { .. } | Node::Left { .. } => None,
            },
            rest => entry.below.as_ref()?.stamp(rest),
        }
    }

    /// The state of a checkpoint. An older index says what is known about files that did not change
    /// since.
    pub(crate) fn of_tree(
        pack: &mut Pack,
        top: &Hash,
        index: Option<&Self>,
        depth: usize,
    ) -> io::Result<Self> {
        if depth > DEEP + 1 {
            return Err(broken());
        }
        if let Some(index) = index.filter(|index| index.hash == Some(*top)) {
            return Ok(index.clone());
        }
        let old = index.map_or(&[][..], |index| &index.entries);
        let mut entries = Vec::new();
        for entry in super::object::decode(&pack.get(top)?)? {
            let (name, node): (Box<[u8]>, Node) = (entry.name.into(), entry.node);
            let old =
                old.binary_search_by(|old| old.name.cmp(&name)).ok().and_then(|at| old.get(at));
            let below = match &node {
                Node::Folder { hash, .. } => {
                    let old = old.and_then(|old| old.below.as_deref());
                    Some(Box::new(Self::of_tree(pack, hash, old, depth + 1)?))
                }
                Node::File { .. } | Node::Link { .. } | Node::Left { .. } => None,
            };
            let known = old.filter(|old| old.node == node).map(|old| old.known);
            entries.push(SeenEntry { name, node, known: known.unwrap_or_default(), below });
        }
        Ok(Self { entries, hash: Some(*top) })
    }

    /// The number of files.
    pub(crate) fn files(&self) -> usize {
        self.entries.iter().map(|e| e.below.as_ref().map_or(1, |b| b.files())).sum()
    }

    /// Called when contents may have been collected: files whose content is no longer stored are
    /// read again.
    pub(crate) fn trust(&mut self, pack: &Pack) {
        if self.hash.is_some_and(|hash| !pack.has(&hash)) {
            self.hash = None;
        }
        for entry in &mut self.entries {
            if let Node::File { hash, attributes, .. } = &entry.node
                && (!pack.has(hash) || attributes.is_some_and(|hash| !pack.has(&hash)))
            {
                entry.known = Known::default();
            }
            if let Some(below) = &mut entry.below {
                below.trust(pack);
            }
        }
    }

    /// Calls `each` for everything that exists but is not saved.
    pub(crate) fn left(&self, path: &mut PathBuf, each: &mut dyn FnMut(&Path, NameOnly, u64)) {
        for entry in &self.entries {
            path.push(OsStr::from_bytes(&entry.name));
            match (&entry.node, &entry.below) {
                (Node::Left { why, size, .. }, _) => each(path, *why, *size),
                (_, Some(below)) => below.left(path, each),
                (Node::File { .. } | Node::Folder { .. } | Node::Link { .. }, None) => {}
            }
            path.pop();
        }
    }

    /// Encodes the index for the file that outlives the process.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        let count = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&self.hash.unwrap_or(Hash::ZERO).0);
        let listed = encode(self.entries.iter().map(|e| (e.name.as_ref(), &e.node)));
        out.extend_from_slice(&u32::try_from(listed.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&listed);
        for entry in &self.entries {
            let k = entry.known;
            out.extend_from_slice(&k.size.to_le_bytes());
            out.extend_from_slice(&k.modified.to_le_bytes());
            out.extend_from_slice(&k.changed.to_le_bytes());
            out.extend_from_slice(&k.inode.to_le_bytes());
            out.extend_from_slice(&k.mode.to_le_bytes());
            if let Some(below) = &entry.below {
                below.save(out);
            }
        }
    }

    pub(crate) fn load(reader: &mut Reader<'_>, depth: usize) -> io::Result<Self> {
        if depth > DEEP + 1 {
            return Err(broken());
        }
        let count = reader.u32()?;
        let hash = reader.hash()?;
        let listed = super::object::decode(reader.text()?)?;
        if listed.len() != usize::try_from(count).unwrap_or(usize::MAX) {
            return Err(broken());
        }
        let mut entries = Vec::with_capacity(listed.len());
        for entry in listed {
            let known = Known {
                size: reader.u64()?,
                modified: reader.i64()?,
                changed: reader.i64()?,
                inode: reader.u64()?,
                mode: reader.u32()?,
            };
            let below = match entry.node {
                Node::Folder { .. } => Some(Box::new(Self::load(reader, depth + 1)?)),
                Node::File { .. } | Node::Link { .. } | Node::Left { .. } => None,
            };
            entries.push(SeenEntry { name: entry.name.into(), node: entry.node, known, below });
        }
        Ok(Self { entries, hash: Some(hash) })
    }
}
