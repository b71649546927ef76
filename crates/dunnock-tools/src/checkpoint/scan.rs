//! Scans every file of a workspace and saves what is new.
//!
//! A file is read only if its size, times, inode or mode changed since the last scan, which is
//! remembered in the *index* (in memory, and in a file that may be lost). Folders are opened by
//! descriptor, one inside the other, and no link is followed, so that a link planted during the
//! scan leads nowhere.

use super::ignored::Ignored;
use super::object::{NameOnly, Node, Reader, broken, encode, encode_attributes};
use super::pack::{Pack, Put};
use dunnock_proto::Hash;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use std::collections::{BTreeMap, HashSet};
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Larger files are not saved.
pub(crate) const LARGE: u64 = 50 << 20;
/// Maximum names in one workspace.
const MOST: usize = 1_000_000;
/// Maximum folder depth.
const DEEP: usize = 200;
/// File times come from a clock with ticks this long, in nanoseconds.
const TICK: i64 = 20_000_000;

/// What shows that a file has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Known {
    size: u64,
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
    fn stamp(self) -> Stamp {
        Stamp { size: self.size, modified: self.modified, inode: self.inode }
    }
}

/// A folder as of the last scan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    entries: Vec<SeenEntry>,
    pub(crate) hash: Option<Hash>,
}

#[derive(Debug, Clone)]
struct SeenEntry {
    name: Box<[u8]>,
    node: Node,
    known: Known,
    below: Option<Box<Seen>>,
}

/// The result of a scan.
pub(crate) struct ScanResult {
    pub(crate) seen: Seen,
    /// Files that had to be read.
    pub(crate) read: usize,
}

pub(crate) struct Scan<'a> {
    pack: &'a mut Pack,
    ignored: Ignored,
    /// Our own paths, relative to the root.
    own: &'a HashSet<PathBuf>,
    /// How large the store may become during this scan.
    most: u64,
    began: i64,
    device: u64,
    read: usize,
    names: usize,
    path: PathBuf,
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
fn is_named(name: &[u8], known: &[u8]) -> bool {
    if cfg!(target_os = "linux") { name == known } else { name.eq_ignore_ascii_case(known) }
}

/// Whether a name is Dunnock's own and never even listed.
pub(crate) fn passed_over(name: &[u8]) -> bool {
    let fold = |known: &[u8]| is_named(name, known);
    fold(b".dunnock") || (name.starts_with(b".dunnock-") && name.ends_with(b".part"))
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        pack: &'a mut Pack,
        root: &Path,
        own: &'a HashSet<PathBuf>,
        most: u64,
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let ignored = Ignored::new(root);
        let most = pack.size() + most;
        Self { pack, ignored, own, most, began, device: 0, read: 0, names: 0, path: PathBuf::new() }
    }

    /// Scans everything below `root`.
    pub(crate) fn look(mut self, root: &Path, before: Option<&Seen>) -> io::Result<ScanResult> {
        let dir = open_root(root)?;
        self.device = number(rustix::fs::fstat(&dir)?.st_dev);
        let seen = self.folder(dir.as_fd(), before, 0)?;
        Ok(ScanResult { seen, read: self.read })
    }

    fn folder(
        &mut self,
        dir: BorrowedFd<'_>,
        before: Option<&Seen>,
        depth: usize,
    ) -> io::Result<Seen> {
        let mut names: Vec<CString> = Vec::new();
        for entry in Dir::read_from(dir)? {
            let name = entry?.file_name().to_owned();
            if !matches!(name.as_bytes(), b"." | b"..") && !passed_over(name.as_bytes()) {
                names.push(name);
            }
        }
        // Our own files are listed even before they exist, so that their creation is not a change.
        for own in self.own.iter().filter(|own| own.parent() == Some(&self.path)) {
            let name = own.file_name().and_then(|name| CString::new(name.as_bytes()).ok());
            names
                .extend(name.filter(|name| !passed_over(name.as_bytes()) && !names.contains(name)));
        }
        names.sort_unstable();
        self.names += names.len();
        self.check_size()?;
        if names.iter().any(|n| n.as_bytes() == b"CACHEDIR.TAG")
            && depth > 0
            && self.ignored.is(&self.path)
        {
            // The missing hash tells the folder above.
            return Ok(Seen::default());
        }
        let mut old = before.map_or(&[][..], |b| &b.entries).iter().peekable();
        let mut entries = Vec::with_capacity(names.len());
        let mut same = before.is_some_and(|b| b.hash.is_some());
        for name in names {
            while old.peek().is_some_and(|o| o.name.as_ref() < name.as_bytes()) {
                old.next();
                same = false;
            }
            let was = old.next_if(|o| o.name.as_ref() == name.as_bytes());
            self.path.push(OsStr::from_bytes(name.as_bytes()));
            let known = match name.as_bytes() {
                _ if self.own.contains(&self.path) => Some(NameOnly::Own),
                name if is_named(name, b".git") => Some(NameOnly::Git),
                _ => None,
            };
            let found = if let Some(why) = known {
                let node = Node::Left { why, size: 0, changed: 0 };
                Ok(Some(SeenEntry {
                    name: name.as_bytes().into(),
                    node,
                    known: Known::default(),
                    below: None,
                }))
            } else {
                self.entry(dir, &name, was, depth)
            };
            self.path.pop();
            let Some(found) = found? else {
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
        self.check_size()?;
        Ok(Seen { entries, hash: Some(hash) })
    }

    /// Ends a scan that would save too much.
    fn check_size(&self) -> io::Result<()> {
        match self.pack.size() > self.most || self.names > MOST {
            true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "there is too much to save")),
            false => Ok(()),
        }
    }

    /// Scans one name in a folder; `None` if it is gone by now.
    fn entry(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CString,
        was: Option<&SeenEntry>,
        depth: usize,
    ) -> io::Result<Option<SeenEntry>> {
        let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let known = Known {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: nanos(stat.st_mtime, stat.st_mtime_nsec),
            changed: nanos(stat.st_ctime, stat.st_ctime_nsec),
            inode: stat.st_ino,
            mode: number(stat.st_mode),
        };
        let made = |node: Node, known: Known, below: Option<Box<Seen>>| {
            Ok(Some(SeenEntry { name: name.as_bytes().into(), node, known, below }))
        };
        let left = |why: NameOnly| Node::Left { why, size: known.size, changed: known.modified };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if let Some(was) = was.filter(|w| w.known == known && kind != FileType::Directory) {
            return made(was.node.clone(), known, None);
        }
        match kind {
            FileType::Directory => self.below(dir, name, was, &stat, depth),
            FileType::Symlink => {
                let target = match rustix::fs::readlinkat(dir, name, Vec::new()) {
                    Ok(target) => target.into_bytes(),
                    Err(_) => return Ok(None),
                };
                let changed = if known.changed > self.began - TICK { 0 } else { known.changed };
                made(Node::Link { target }, Known { changed, ..known }, None)
            }
            FileType::RegularFile if known.size > LARGE => made(left(NameOnly::Large), known, None),
            FileType::RegularFile => match self.file(dir, name, known)? {
                Some((node, known)) => made(node, known, None),
                None => Ok(None),
            },
            _ => made(Node::Left { why: NameOnly::Special, size: 0, changed: 0 }, known, None),
        }
    }

    fn below(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CString,
        was: Option<&SeenEntry>,
        stat: &Stat,
        depth: usize,
    ) -> io::Result<Option<SeenEntry>> {
        let text = OsStr::from_bytes(name.as_bytes());
        let made = |node, below| {
            Ok(Some(SeenEntry {
                name: name.as_bytes().into(),
                node,
                known: Known::default(),
                below,
            }))
        };
        let left = |why| Node::Left { why, size: 0, changed: 0 };
        if number::<_, u64>(stat.st_dev) != self.device {
            return made(left(NameOnly::Elsewhere), None);
        }
        if depth >= DEEP {
            return made(left(NameOnly::Deep), None);
        }
        if self.ignored.build_like(text) && self.ignored.is(&self.path) {
            return made(left(NameOnly::Build), None);
        }
        let inner = match open_folder(dir, text) {
            Ok(inner) => inner,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => {
                return Ok(None);
            }
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => {
                return made(left(NameOnly::Unreadable), None);
            }
            Err(error) => return Err(error.into()),
        };
        let seen = match self.folder(inner.as_fd(), was.and_then(|w| w.below.as_deref()), depth + 1)
        {
            // A folder that can be listed but not entered.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return made(left(NameOnly::Unreadable), None);
            }
            seen => seen?,
        };
        match seen.hash {
            Some(hash) => {
                let attributes = self.attributes(&inner)?;
                let mode = number::<_, u32>(stat.st_mode) & 0o7777;
                made(Node::Folder { mode, hash, attributes }, Some(Box::new(seen)))
            }
            None => made(left(NameOnly::Build), None),
        }
    }

    /// Reads a file that is new or changed. `None` if it is gone, or no longer a file.
    fn file(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CString,
        mut known: Known,
    ) -> io::Result<Option<(Node, Known)>> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let left = |why: NameOnly| Node::Left { why, size: known.size, changed: known.modified };
        let file: File =
            match crate::root::patient(|| rustix::fs::openat(dir, name, flags, Mode::empty())) {
                Ok(file) => file.into(),
                Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => {
                    return Ok(Some((left(NameOnly::Unreadable), known)));
                }
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        self.read += 1;
        let put = self.pack.put_from(&mut &file, known.size, LARGE)?;
        self.check_size()?;
        let (hash, size) = match put {
            Put::Kept(hash, size) => (hash, size),
            Put::TooMuch => return Ok(Some((left(NameOnly::Large), Known::default()))),
            Put::Unreadable => return Ok(Some((left(NameOnly::Unreadable), Known::default()))),
        };
        let attributes = self.attributes(&file)?;
        let after = rustix::fs::fstat(&file)?;
        let linked = after.st_nlink > 1;
        let changed = nanos(after.st_ctime, after.st_ctime_nsec);
        // It changed while it was read, or so recently that the next change may have the same time:
        // read it again next time.
        if changed != known.changed || size != known.size || changed > self.began - TICK {
            known.changed = 0;
        }
        let mode = known.mode & 0o7777;
        Ok(Some((Node::File { mode, size, hash, attributes, linked }, known)))
    }

    /// Saves the extended attributes of a file or folder that belong to its user.
    fn attributes(&mut self, file: impl AsFd) -> io::Result<Option<Hash>> {
        let all = user_attributes(file);
        if all.is_empty() { Ok(None) } else { self.pack.put(&encode_attributes(&all)).map(Some) }
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
                Node::File { .. } | Node::Link { .. } => Some(entry.known.stamp()),
                Node::Folder { .. } | Node::Left { .. } => None,
            },
            rest => entry.below.as_ref()?.stamp(rest),
        }
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
