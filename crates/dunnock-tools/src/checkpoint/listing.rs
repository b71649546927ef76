//! Lists the folders of a workspace and what the system says about each name, with several threads.
//!
//! That is most of the work of a scan in which nothing changed. No file is opened here, and no link
//! is followed.

use super::file_facts::{Known, is_named, number, open_folder, passed_over, user_attributes};
use super::ignored::Ignored;
use super::object::{DEEP, NameOnly};
use dunnock_ports::CancellationToken;
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Maximum names in one workspace.
const MOST: usize = 1_000_000;
/// More folders than this are listed by several threads.
const FEW: usize = 64;
/// Maximum threads.
const THREADS: usize = 4;

/// One name in a folder.
pub(crate) struct Name {
    pub(crate) name: Box<[u8]>,
    pub(crate) known: Known,
    pub(crate) kind: FileType,
    device: u64,
    /// Why it is not saved and, if it is a folder, not listed.
    pub(crate) left: Option<NameOnly>,
    /// The folder of this name, if it was listed: an index of [`Listing`].
    pub(crate) folder: Option<usize>,
}

/// One folder.
#[derive(Default)]
pub(crate) struct Folder {
    /// In order.
    pub(crate) names: Vec<Name>,
    /// The extended attributes of the folder itself.
    pub(crate) attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    /// It is marked as a cache and git ignores it: programs can recreate it.
    pub(crate) is_cache: bool,
}

/// All folders of a workspace; the first is the workspace itself.
pub(crate) type Listing = Vec<io::Result<Folder>>;

/// Lists folders.
pub(crate) struct Lister<'a> {
    pub(crate) ignored: Ignored,
    /// Dunnock's own paths, relative to the workspace, which are not entered.
    pub(crate) own: &'a HashSet<PathBuf>,
    pub(crate) halt: &'a CancellationToken,
}

/// A folder that is to be listed.
struct Task {
    index: usize,
    above: Option<Arc<OwnedFd>>,
    name: Box<[u8]>,
    path: PathBuf,
    depth: usize,
}

#[derive(Default)]
struct Queue {
    tasks: Vec<Task>,
    /// How many are being listed right now.
    active: usize,
}

struct Work<'a> {
    root: Arc<OwnedFd>,
    device: u64,
    ignored: Mutex<Ignored>,
    own: &'a HashSet<PathBuf>,
    halt: &'a CancellationToken,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// The index of the next folder.
    next: AtomicUsize,
    names: AtomicUsize,
    too_many: AtomicBool,
}

pub(crate) fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "interrupted")
}

pub(crate) fn too_much() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "there is too much to save")
}

impl Lister<'_> {
    /// Lists a workspace.
    pub(crate) fn list(self, root: OwnedFd) -> io::Result<Listing> {
        let first =
            Task { index: 0, above: None, name: Box::default(), path: PathBuf::new(), depth: 0 };
        let work = Work {
            device: number(rustix::fs::fstat(&root)?.st_dev),
            root: Arc::new(root),
            ignored: Mutex::new(self.ignored),
            own: self.own,
            halt: self.halt,
            queue: Mutex::new(Queue { tasks: vec![first], active: 0 }),
            changed: Condvar::new(),
            next: AtomicUsize::new(1),
            names: AtomicUsize::new(0),
            too_many: AtomicBool::new(false),
        };
        let done = std::thread::scope(|scope| {
            // Few folders are not worth a thread.
            let mut done = work.run(true);
            if work.is_done() {
                return Ok(done);
            }
            let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
            // If the system refuses a thread, the others do its work.
            let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, || work.run(false));
            let others: Vec<_> = (1..threads).map(spawn).filter_map(Result::ok).collect();
            done.append(&mut work.run(false));
            for other in others {
                let failed = |_| io::Error::other("a thread that lists folders failed");
                done.append(&mut other.join().map_err(failed)?);
            }
            Ok::<_, io::Error>(done)
        })?;
        if self.halt.is_cancelled() {
            return Err(stopped());
        }
        if work.too_many.load(Ordering::Relaxed) {
            return Err(too_much());
        }
        let count = work.next.load(Ordering::Relaxed);
        let mut listing = Listing::with_capacity(count);
        listing.resize_with(count, || Err(io::ErrorKind::NotFound.into()));
        for (index, folder) in done {
            if let Some(place) = listing.get_mut(index) {
                *place = folder;
            }
        }
        Ok(listing)
    }
}

/// A folder that is being listed. The other threads wait until it is done.
struct Active<'a>(&'a Work<'a>);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.lock().active -= 1;
        self.0.changed.notify_all();
    }
}

impl Work<'_> {
    /// Lists folders until none is left, or, if `begin`, until there are more than a few.
    fn run(&self, begin: bool) -> Vec<(usize, io::Result<Folder>)> {
        let mut done = Vec::new();
        while let Some(task) = self.take(begin) {
            let active = Active(self);
            let index = task.index;
            let (folder, mut below) = match self.list(task) {
                Ok((folder, below)) => (Ok(folder), below),
                Err(error) => (Err(error), Vec::new()),
            };
            done.push((index, folder));
            self.lock().tasks.append(&mut below);
            drop(active);
        }
        done
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_done(&self) -> bool {
        self.lock().tasks.is_empty()
    }

    fn take(&self, begin: bool) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            if self.halt.is_cancelled() || self.too_many.load(Ordering::Relaxed) {
                queue.tasks.clear();
            }
            if begin && self.next.load(Ordering::Relaxed) > FEW {
                return None;
            }
            if let Some(task) = queue.tasks.pop() {
                queue.active += 1;
                return Some(task);
            }
            if queue.active == 0 {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn list(&self, task: Task) -> io::Result<(Folder, Vec<Task>)> {
        let dir = match task.above {
            Some(above) => Arc::new(open_folder(&above, OsStr::from_bytes(&task.name))?),
            None => self.root.clone(),
        };
        let mut names = names(dir.as_fd())?;
        // Our own files are listed even before they exist, so that their creation is not a change.
        for own in self.own.iter().filter(|own| own.parent() == Some(&task.path)) {
            let Some(own) = own.file_name().map(OsStr::as_bytes) else { continue };
            if let Err(at) = names.binary_search_by(|name| name.name.as_ref().cmp(own))
                && !passed_over(own)
            {
                let name = Name {
                    name: own.into(),
                    known: Known::default(),
                    kind: FileType::Unknown,
                    device: self.device,
                    left: Some(NameOnly::Own),
                    folder: None,
                };
                names.insert(at, name);
            }
        }
        let count = names.len();
        if self.names.fetch_add(count, Ordering::Relaxed) + count > MOST {
            self.too_many.store(true, Ordering::Relaxed);
        }
        let marked = names.iter().any(|name| name.name.as_ref() == b"CACHEDIR.TAG");
        if marked && task.depth > 0 && self.ignores(&task.path) {
            return Ok((Folder { is_cache: true, ..Folder::default() }, Vec::new()));
        }
        let mut below = Vec::new();
        for name in &mut names {
            let is_folder = name.kind == FileType::Directory;
            if is_named(&name.name, b".git") {
                name.left = Some(NameOnly::Git);
            }
            if !is_folder && self.own.is_empty() {
                continue;
            }
            let path = task.path.join(OsStr::from_bytes(&name.name));
            name.left = match name.left {
                _ if self.own.contains(&path) => Some(NameOnly::Own),
                None if is_folder => self.left(name, &path, task.depth),
                left => left,
            };
            if is_folder && name.left.is_none() {
                let index = self.next.fetch_add(1, Ordering::Relaxed);
                name.folder = Some(index);
                let (above, name) = (Some(dir.clone()), name.name.clone());
                below.push(Task { index, above, name, path, depth: task.depth + 1 });
            }
        }
        Ok((Folder { names, attributes: user_attributes(&dir), is_cache: false }, below))
    }

    /// Why a folder is not entered.
    fn left(&self, name: &Name, path: &Path, depth: usize) -> Option<NameOnly> {
        if name.device != self.device {
            Some(NameOnly::Elsewhere)
        } else if depth >= DEEP {
            Some(NameOnly::Deep)
        } else if Ignored::build_like(&name.name) && self.ignores(path) {
            Some(NameOnly::Build)
        } else {
            None
        }
    }

    fn ignores(&self, path: &Path) -> bool {
        self.ignored.lock().unwrap_or_else(PoisonError::into_inner).is(path)
    }
}

fn names(dir: BorrowedFd<'_>) -> io::Result<Vec<Name>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") || passed_over(name.to_bytes()) {
            continue;
        }
        let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => continue, // gone by now
            Err(error) => return Err(error.into()),
        };
        names.push(Name {
            name: name.to_bytes().into(),
            known: Known::of(&stat),
            kind: FileType::from_raw_mode(stat.st_mode),
            device: number(stat.st_dev),
            left: None,
            folder: None,
        });
    }
    names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(names)
}
