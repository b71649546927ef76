//! Saves the files of a workspace, so that every change can be undone.
//!
//! `scan.rs` scans the files and saves what is new, `pack.rs` stores it, `diff.rs` compares two
//! states, `restore.rs` restores one, `collect.rs` enforces the size limit. A state is the hash of
//! the topmost folder (`object.rs`). The user's own git repository is neither used nor touched, and
//! git need not be installed.

mod collect;
mod diff;
mod export;
mod file_facts;
mod ignored;
mod listing;
mod object;
mod pack;
mod restore;
mod scan;
mod seen;
mod size_rule;

use crate::diff_view::{DiffView, Preview};
use crate::git_history;
use diff::{Changes, NodeChange, diff};
use dunnock_core::Window;
use dunnock_ports::{
    BoxFuture, Checkpoints, Files, FilesError, RestorePlan, Restored, SaveControl, WorkspaceCopy,
};
use dunnock_proto::{Checkpointed, Hash, Seq, SessionId, Tree};
use object::{NameOnly, Node, Reader};
use pack::{CheckpointRoot, Locked, Pack};
use restore::Plan;
use scan::{Scan, Scope};
use seen::Seen;
use size_rule::{CopyLimit, LARGE};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long to wait before another scan after there was too much to save.
const AGAIN: Duration = Duration::from_secs(600);
/// Prefix of the names of states.
const PREFIX: &str = "files:";

/// Limits on what is kept.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes, over all workspaces.
    pub bytes: u64,
    /// Maximum age of a state.
    pub age: Duration,
    /// Bytes that are copied at once: beyond that, the largest files are left out.
    pub copy: u64,
    /// Files that changed within this time are read again. A program that keeps a file mapped
    /// changes it without a new time until the system has written the first change to disk, which
    /// takes up to 35 seconds.
    pub settle: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: 2 << 30,
            age: Duration::from_secs(30 * 86_400),
            copy: 200 << 20,
            settle: Duration::from_secs(40),
        }
    }
}

/// Saves the files of workspaces in a folder of its own.
pub struct CheckpointStore {
    base: PathBuf,
    own: Vec<PathBuf>,
    bounds: Bounds,
    stores: Mutex<HashMap<PathBuf, Arc<Mutex<Store>>>>,
}

/// The saved files of one workspace.
struct Store {
    dir: PathBuf,
    root: PathBuf,
    pack: Option<Pack>,
    seen: Option<Seen>,
    /// Files read since the index was last written.
    unsaved: usize,
    own: HashSet<PathBuf>,
    /// What was not saved at the last scan, so that it is reported once.
    reported: BTreeMap<PathBuf, NameOnly>,
    /// The last state for which changes that cannot be undone were reported.
    last: Option<Hash>,
    /// When there was too much to save: an immediate rescan would find the same.
    too_much: Option<Instant>,
    /// Whether this process has already enforced the size limit.
    bounded: bool,
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn tree(hash: Hash) -> Tree {
    Tree(format!("{PREFIX}{hash}"))
}

fn hash(tree: &Tree) -> io::Result<Hash> {
    let name = tree.0.strip_prefix(PREFIX).and_then(|hex| hex.parse().ok());
    name.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "this checkpoint has a format that this release does not know",
        )
    })
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl CheckpointStore {
    /// Saves files in `base`; `own` are Dunnock's own files and folders, by their real paths, which
    /// are left out.
    #[must_use]
    pub fn new(base: PathBuf, own: Vec<PathBuf>, bounds: Bounds) -> Self {
        Self { base, own, bounds, stores: Mutex::default() }
    }

    /// Bytes stored, over all workspaces.
    #[must_use]
    pub fn size(&self) -> u64 {
        let size = |dir: &Path, files: u64| files + git_history::size(dir);
        collect::stores(&self.base).iter().map(|(dir, files, _)| size(dir, *files)).sum()
    }

    /// Names what restoring git's history would bring back: what this session's calls lost after a
    /// step.
    pub fn lost_history<'a>(
        &'a self,
        workspace: &'a str,
        session: &'a SessionId,
        step: u32,
    ) -> BoxFuture<'a, Result<Vec<String>, FilesError>> {
        let session = session.clone();
        self.with(workspace, move |open| Ok(git_history::lost(open.dir, open.root, &session, step)))
    }

    fn store(&self, workspace: &str) -> io::Result<Arc<Mutex<Store>>> {
        let root = Path::new(workspace).canonicalize()?;
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.get(&root) {
            return Ok(store.clone());
        }
        let dir = git_history::store_folder(&self.base, &root);
        dunnock_private::create_folder(&dir)?;
        let own = self
            .own
            .iter()
            .filter_map(|path| Some(path.strip_prefix(&root).ok()?.to_path_buf()))
            .collect();
        let store = Store {
            dir,
            root: root.clone(),
            pack: None,
            seen: None,
            unsaved: 0,
            own,
            reported: BTreeMap::new(),
            last: None,
            too_much: None,
            bounded: false,
        };
        let store = Arc::new(Mutex::new(store));
        stores.insert(root, store.clone());
        Ok(store)
    }

    /// Runs `work` on a workspace's store, with exclusive access and off the driver's thread.
    fn with<'a, T: Send + 'static>(
        &'a self,
        workspace: &'a str,
        work: impl FnOnce(&mut Open<'_>) -> io::Result<T> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, FilesError>> {
        let (store, base, bounds) = (self.store(workspace), self.base.clone(), self.bounds);
        Box::pin(async move {
            let store = store.map_err(FilesError::failed)?;
            let done = tokio::task::spawn_blocking(move || {
                let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
                let mut open = store.open(bounds)?;
                let done = work(&mut open);
                let large = open.pack.size() > bounds.bytes / 8;
                drop(open);
                if large || !store.bounded || store.is_old(bounds) {
                    store.bounded = true;
                    collect::within(&base, bounds, &mut store);
                }
                done
            });
            let done = done.await.map_err(FilesError::failed)?;
            done.map_err(|e| FilesError::Failed(words(&e)))
        })
    }

    /// How two states differ.
    pub fn compare<'a>(
        &'a self,
        workspace: &'a str,
        before: Tree,
        after: Tree,
    ) -> BoxFuture<'a, Result<Vec<DiffView>, FilesError>> {
        self.with(workspace, move |open| {
            let changes = diff(open.pack, &hash(&before)?, &hash(&after)?)?;
            differs(open.pack, &changes, SHOWN_IN_ALL)
        })
    }

    /// Shows what a restore would do, without doing it. `back.from` is the last saved state.
    pub fn preview<'a>(
        &'a self,
        back: RestorePlan<'a>,
    ) -> BoxFuture<'a, Result<Preview, FilesError>> {
        let mut way = PendingRestore::of(back);
        self.with(back.workspace, move |open| {
            open.bounds.copy = u64::MAX;
            let now = open.look()?;
            way.theirs.push((way.from.clone(), tree(now)));
            let plan = open.plan(&now, &way)?;
            let names = |paths: &[PathBuf]| paths.iter().map(|p| shown(p)).collect();
            let changes = differs(open.pack, &plan.changes, 0)?;
            Ok(Preview {
                kept: names(&plan.kept),
                large: names(&plan.large),
                lost: names(&plan.lost),
                history: way.undone_after.map_or_else(Vec::new, |step| {
                    git_history::lost(open.dir, open.root, &way.session, step)
                }),
                changes,
            })
        })
    }
}

/// Describes an error for people.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full; make room".into()
        }
        io::ErrorKind::FileTooLarge => "there is too much in this folder to save; add its build \
                                        folders (such as target or node_modules) to .gitignore"
            .into(),
        _ => error.to_string(),
    }
}

/// A restore to be done off the driver's thread.
struct PendingRestore {
    session: SessionId,
    to: Tree,
    from: Tree,
    ours: Vec<Window>,
    theirs: Vec<Window>,
    force: bool,
    undone_after: Option<u32>,
}

impl PendingRestore {
    fn of(back: RestorePlan<'_>) -> Self {
        let (ours, theirs) = (back.ours.to_vec(), back.theirs.to_vec());
        let (session, to, from) = (back.session.clone(), back.to.clone(), back.from.clone());
        let (force, undone_after) = (back.force, back.undone_after);
        Self { session, to, from, ours, theirs, force, undone_after }
    }
}

/// A workspace's store, with its lock held.
struct Open<'a> {
    root: &'a Path,
    own: &'a HashSet<PathBuf>,
    pack: &'a mut Pack,
    seen: &'a mut Option<Seen>,
    unsaved: &'a mut usize,
    reported: &'a mut BTreeMap<PathBuf, NameOnly>,
    last: &'a mut Option<Hash>,
    too_much: &'a mut Option<Instant>,
    dir: &'a Path,
    /// Maximum new bytes that one scan may save.
    most: u64,
    bounds: Bounds,
    _locked: Locked,
}

impl Store {
    /// Whether a state is older than the limit.
    fn is_old(&self, bounds: Bounds) -> bool {
        let young = now() - i64::try_from(bounds.age.as_millis()).unwrap_or(i64::MAX);
        let roots = self.pack.as_ref().map_or(&[][..], Pack::roots);
        roots.len() > 1 && roots.iter().any(|root| root.at < young)
    }

    fn open(&mut self, bounds: Bounds) -> io::Result<Open<'_>> {
        let locked = Pack::lock(&self.dir)?;
        // Which workspace it belongs to, for people.
        let about = self.dir.join("about");
        if !about.exists() {
            let name = self.root.as_os_str().as_encoded_bytes();
            let _ = pack::private_file(&about).and_then(|file| file.write_all_at(name, 0));
        }
        let replaced = match &mut self.pack {
            Some(pack) => pack.refresh(&locked)?,
            None => true,
        };
        if self.pack.is_none() {
            self.pack = Some(Pack::open(&self.dir, &locked)?);
        }
        let Some(pack) = &mut self.pack else { return Err(io::ErrorKind::NotFound.into()) };
        let unknown = self.seen.is_none();
        if unknown {
            self.seen = load_index(&self.dir);
            // The index is not written with every checkpoint, and may be lost.
            let newest = pack.roots().iter().max_by_key(|root| root.at);
            let newest = newest.and_then(|root| hash(&Tree(root.tree.clone())).ok());
            if let Some(newest) = newest.filter(|newest| pack.has(newest)) {
                let seen = Seen::of_tree(pack, &newest, self.seen.as_ref(), 0);
                self.seen = seen.ok().or(self.seen.take());
            }
        }
        if (replaced || unknown)
            && let Some(seen) = &mut self.seen
        {
            seen.trust(pack);
        }
        Ok(Open {
            root: &self.root,
            own: &self.own,
            pack,
            seen: &mut self.seen,
            unsaved: &mut self.unsaved,
            reported: &mut self.reported,
            last: &mut self.last,
            too_much: &mut self.too_much,
            dir: &self.dir,
            most: bounds.bytes / 4 * 3,
            bounds,
            _locked: locked,
        })
    }
}

impl Open<'_> {
    /// Saves the current files; the returned state survives a power failure.
    fn look(&mut self) -> io::Result<Hash> {
        let top = self.look_only(&SaveControl::silent(), false)?;
        self.sync()?;
        Ok(top)
    }

    fn sync(&mut self) -> io::Result<()> {
        let synced = self.pack.sync();
        if synced.is_err() {
            *self.seen = None; // it refers to what was not written
            self.pack.give_up()?;
        }
        synced
    }

    /// Like `look`, but not yet on disk.
    fn look_only(&mut self, saving: &SaveControl, saves_left: bool) -> io::Result<Hash> {
        let too_much = || io::Error::from(io::ErrorKind::FileTooLarge);
        if self.too_much.is_some_and(|when| when.elapsed() < AGAIN) {
            return Err(too_much());
        }
        let (root, own, most) = (self.root, self.own, self.most);
        let limit = CopyLimit { most: self.bounds.copy.min(most), saves_left };
        let scope = Scope { root, own, most, limit, settle: self.bounds.settle };
        let looked = match Scan::look(self.pack, &scope, self.seen.as_ref(), saving) {
            Ok(looked) => looked,
            Err(error) => {
                *self.too_much = (error.kind() == io::ErrorKind::FileTooLarge).then(Instant::now);
                // What was written so far is useless.
                self.pack.give_up()?;
                if let Some(seen) = self.seen.as_mut() {
                    seen.trust(self.pack);
                }
                return Err(error);
            }
        };
        let top = looked.seen.hash.ok_or_else(object::broken)?;
        *self.unsaved += looked.read;
        *self.seen = Some(looked.seen);
        Ok(top)
    }

    /// Saves the files for a session; the returned state survives a power failure.
    fn keep(
        &mut self,
        session: &SessionId,
        say: bool,
        saving: &SaveControl,
    ) -> io::Result<(Hash, Option<String>)> {
        // What was left out is saved only between sessions: it is no change of this one.
        let first = !self.pack.roots().iter().any(|root| root.session == *session);
        let top = self.look_only(saving, first)?;
        if let Err(error) = self.pack.root(CheckpointRoot {
            at: now(),
            session: session.clone(),
            tree: tree(top).0,
        }) {
            *self.seen = None;
            self.pack.give_up()?;
            return Err(error);
        }
        self.sync()?;
        let note = if say { self.note(session, top) } else { None };
        if let Some(seen) = self.seen.as_ref()
            && (*self.unsaved > 64.max(seen.files() / 50) || !self.dir.join("index").exists())
        {
            save_index(self.dir, seen);
            *self.unsaved = 0;
        }
        Ok((top, note))
    }

    /// What is not saved and was not reported before, and which of it has changed since.
    fn note(&mut self, session: &SessionId, top: Hash) -> Option<String> {
        let mut said = Vec::new();
        said.extend(git_history::unreported(self.dir, session));
        if std::mem::take(&mut self.pack.put_aside) {
            let aside = self.dir.join("objects.damaged");
            said.push(format!(
                "the earlier checkpoints are damaged and cannot be restored; they were moved to {}",
                aside.display()
            ));
        }
        if let Some(last) = self.last.replace(top).filter(|last| *last != top) {
            for (path, change) in diff(self.pack, &last, &top).unwrap_or_default() {
                let NodeChange { before: Some(Node::Left { why, .. }), after } = change else {
                    continue;
                };
                if why == NameOnly::Own {
                    continue;
                }
                let how = match after {
                    None => "was deleted",
                    Some(Node::Left { .. }) => "was changed",
                    Some(_) => "was replaced",
                };
                said.push(format!(
                    "{} {how} and cannot be restored ({})",
                    shown(&path),
                    why.words()
                ));
            }
        }
        let mut left = BTreeMap::new();
        let mut sizes = HashMap::new();
        if let Some(seen) = self.seen.as_ref() {
            seen.left(&mut PathBuf::new(), &mut |path, why, size| {
                left.insert(path.to_path_buf(), why);
                sizes.insert(path.to_path_buf(), size);
            });
        }
        // Build output is left out by design; anything else that is left out is reported once.
        let worth = |why: &NameOnly| {
            !matches!(why, NameOnly::Build | NameOnly::Special | NameOnly::Own | NameOnly::Git)
        };
        let new: Vec<(&PathBuf, &NameOnly)> = left
            .iter()
            .filter(|(path, why)| worth(why) && !self.reported.contains_key(*path))
            .collect();
        if !new.is_empty() {
            let some = new.iter().take(5).map(|(path, why)| match (why, sizes.get(*path)) {
                (NameOnly::Large, Some(size)) => format!("{} ({} MB)", shown(path), size >> 20),
                _ => format!("{} ({})", shown(path), why.words()),
            });
            let more = new.len().saturating_sub(5);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let some = some.collect::<Vec<_>>().join(", ");
            let by_rule = |(path, why): &(&PathBuf, &NameOnly)| {
                **why == NameOnly::Large && sizes.get(*path).is_some_and(|size| *size <= LARGE)
            };
            let rule = match new.iter().any(by_rule) {
                true => format!(
                    ". A checkpoint copies at most {} MB of new files and leaves out the largest; \
                     raise checkpoint_copy_mb to save them",
                    self.bounds.copy >> 20
                ),
                false => String::new(),
            };
            said.push(format!(
                "not saved, so changes to these cannot be undone: {some}{more}{rule}"
            ));
        }
        *self.reported = left;
        (!said.is_empty()).then(|| said.join("; "))
    }

    fn windows(&mut self, windows: &[Window]) -> io::Result<Changes> {
        let mut all = Changes::new();
        for (before, after) in windows {
            all.extend(diff(self.pack, &hash(before)?, &hash(after)?)?);
        }
        Ok(all)
    }

    fn plan(&mut self, from: &Hash, way: &PendingRestore) -> io::Result<Plan> {
        let all = diff(self.pack, from, &hash(&way.to)?)?;
        let (ours, theirs) = match way.force {
            true => (Changes::new(), Changes::new()),
            false => (self.windows(&way.ours)?, self.windows(&way.theirs)?),
        };
        Ok(restore::plan(all, &ours, &theirs, way.force))
    }

    fn restore(&mut self, way: &PendingRestore) -> io::Result<Restored> {
        self.bounds.copy = u64::MAX; // what is restored was saved, and stays so
        let from = hash(&way.from)?;
        let mut plan = self.plan(&from, way)?;
        // First make unreadable files readable again, to see whether anything else about them
        // changed.
        let mut start = from;
        if restore::unlock(self.root, &plan) {
            start = self.look()?;
            plan = self.plan(&start, way)?;
        }
        restore::sweep(self.root, &plan.changes);
        // Between then and now: what we restored before a kill, and what others did in the
        // meantime.
        let now = self.look()?;
        let late = diff(self.pack, &start, &now)?;
        plan.adjust(late, way.force);
        let mut notes = plan.notes();
        let seen = self.seen.as_ref();
        let restore::Missing { failed, unlinked } =
            restore::restore(self.pack, self.root, &plan.changes, |path| seen?.stamp(path), true)?;
        let partial = plan.partial || !failed.is_empty() || !unlinked.is_empty();
        if !unlinked.is_empty() {
            let some: Vec<String> = unlinked.iter().take(10).map(|path| shown(path)).collect();
            let more = unlinked.len().saturating_sub(10);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let what = "restored as files of their own, no longer as hard links";
            notes.push(format!("{what}: {}{more}", some.join(", ")));
        }
        if !failed.is_empty() {
            let some: Vec<String> =
                failed.iter().take(10).map(|(p, why)| format!("{}: {why}", shown(p))).collect();
            notes.push(format!("could not be restored: {}", some.join("; ")));
        }
        if let Some(step) = way.undone_after {
            let history = git_history::restore(self.dir, self.root, &way.session, step);
            if !history.restored.is_empty() {
                notes.push(format!("restored in git: {}", history.restored.join(", ")));
            }
            if !history.failed.is_empty() {
                notes.push(format!("git history not restored: {}", history.failed.join("; ")));
            }
        }
        // From here on files are changed, whatever else fails.
        let after = match self.keep(&way.session, false, &SaveControl::silent()) {
            Ok((after, _)) => tree(after),
            Err(error) => {
                notes.push(format!(
                    "the restored files could not be saved as a checkpoint: {}",
                    words(&error)
                ));
                way.to.clone()
            }
        };
        *self.last = hash(&after).ok();
        let note = (!notes.is_empty()).then(|| notes.join(". "));
        Ok(Restored { tree: after, note, partial })
    }

    /// Whether two states differ in anything that git does not ignore: only that can matter to a
    /// check.
    fn differs_visibly(&mut self, a: &Hash, b: &Hash) -> io::Result<bool> {
        let mut ignored = ignored::Ignored::new(self.root);
        let changes = diff(self.pack, a, b)?;
        Ok(changes.iter().any(|(path, change)| {
            let folder = |node: &Option<Node>| matches!(node, Some(Node::Folder { .. }));
            let made = |node: &Option<Node>| {
                matches!(
                    node,
                    Some(Node::Left {
                        why: NameOnly::Build | NameOnly::Special | NameOnly::Git,
                        ..
                    }) | None
                )
            };
            let own =
                |node: &Option<Node>| matches!(node, Some(Node::Left { why: NameOnly::Own, .. }));
            let no_source = (made(&change.before) && made(&change.after))
                || own(&change.before)
                || own(&change.after);
            !no_source
                && !in_cache(self.root, path)
                && !ignored.ignores(path, folder(&change.before) || folder(&change.after))
        }))
    }
}

/// Whether a path is in a folder that is marked as a cache, or in `__pycache__`, which has no mark.
fn in_cache(root: &Path, path: &Path) -> bool {
    let is_cache = |part: &Path| {
        part.ends_with("__pycache__") || root.join(part).join("CACHEDIR.TAG").is_file()
    };
    path.ancestors().any(|part| !part.as_os_str().is_empty() && is_cache(part))
}

fn load_index(dir: &Path) -> Option<Seen> {
    let bytes = std::fs::read(dir.join("index")).ok()?;
    let (check, body) = bytes.split_at_checked(32)?;
    if Hash::of(body).0 != *check {
        return None;
    }
    Seen::load(&mut Reader(body), 0).ok()
}

/// The index may be lost: then files are read again.
fn save_index(dir: &Path, seen: &Seen) {
    let mut body = Vec::new();
    seen.save(&mut body);
    let mut bytes = Hash::of(&body).0.to_vec();
    bytes.append(&mut body);
    let part = dir.join("index.part");
    let written = pack::private_file(&part).and_then(|file| {
        file.set_len(0)?;
        file.write_all_at(&bytes, 0)?;
        std::fs::rename(&part, dir.join("index"))
    });
    if written.is_err() {
        let _ = std::fs::remove_file(part);
    }
}

/// Larger contents are not shown.
const SHOWN: u64 = 1 << 20;
/// Limit for all shown contents together.
const SHOWN_IN_ALL: u64 = 32 << 20;

/// The differences, with contents of up to `left` bytes in total.
fn differs(pack: &mut Pack, changes: &Changes, mut left: u64) -> io::Result<Vec<DiffView>> {
    let mut all = Vec::with_capacity(changes.len());
    for (path, change) in changes {
        let mut content = |node: &Option<Node>| match node {
            Some(Node::File { hash, size, .. }) if *size <= SHOWN.min(left) => {
                left -= size;
                pack.get(hash).map(Some)
            }
            Some(Node::Link { target }) => Ok(Some(target.clone())),
            _ => Ok(None),
        };
        let own = |node: &Option<Node>| matches!(node, Some(Node::Left { why: NameOnly::Own, .. }));
        // New build output that git ignores: nobody asked for it. What was deleted is named, because
        // undo cannot restore it.
        let built =
            |node: &Option<Node>| matches!(node, Some(Node::Left { why: NameOnly::Build, .. }));
        let unasked = built(&change.after) && (change.before.is_none() || built(&change.before));
        if unasked || own(&change.before) || own(&change.after) {
            continue;
        }
        let how =
            match (&change.before, &change.after) {
                (_, Some(Node::Left { .. })) | (Some(Node::Left { .. }), _) => "not saved",
                (None, Some(Node::Folder { .. })) => "folder added",
                (Some(Node::Folder { .. }), None) => "folder deleted",
                (None, _) => "added",
                (_, None) => "deleted",
                (
                    Some(Node::File { hash: a, mode: m, .. }),
                    Some(Node::File { hash: b, mode: n, .. }),
                ) if a == b => {
                    if m == n {
                        "attributes"
                    } else {
                        "mode"
                    }
                }
                (Some(Node::Folder { mode: m, .. }), Some(Node::Folder { mode: n, .. })) => {
                    if m == n { "attributes" } else { "mode" }
                }
                (Some(Node::File { .. }), Some(Node::File { .. }))
                | (Some(Node::Link { .. }), Some(Node::Link { .. })) => "changed",
                (Some(_), Some(Node::File { .. })) => "now a file",
                (Some(_), Some(Node::Link { .. })) => "now a link",
                (Some(_), Some(Node::Folder { .. })) => "now a folder",
            };
        let (before, after) = (content(&change.before)?, content(&change.after)?);
        all.push(DiffView { path: shown(path), how, before, after });
    }
    Ok(all)
}

impl Checkpoints for CheckpointStore {
    fn rest<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Ok(root) = Path::new(workspace).canonicalize() else { return };
            let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
            // Only the map still refers to it, so nobody is using it. The next user reads it from
            // disk.
            if stores.get(&root).is_some_and(|store| Arc::strong_count(store) == 1) {
                stores.remove(&root);
            }
        })
    }

    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        workspace: &'a str,
        mark: Seq,
        saving: SaveControl,
    ) -> BoxFuture<'a, Checkpointed> {
        let (session, halt) = (session.clone(), saving.halt.clone());
        let kept = self.with(workspace, move |open| open.keep(&session, mark > 0, &saving));
        Box::pin(async move {
            match kept.await {
                Ok((top, note)) => Checkpointed { tree: Some(tree(top)), mark, note },
                Err(_) if halt.is_cancelled() => {
                    let note = "saving the files was stopped; the next prompt starts it again";
                    Checkpointed { tree: None, mark, note: Some(note.into()) }
                }
                Err(why) => {
                    let note = Some(format!(
                        "the files could not be saved, so changes from here on cannot be undone: \
                         {why}"
                    ));
                    Checkpointed { tree: None, mark, note }
                }
            }
        })
    }

    fn restore<'a>(&'a self, back: RestorePlan<'a>) -> BoxFuture<'a, Result<Restored, FilesError>> {
        let way = PendingRestore::of(back);
        self.with(back.workspace, move |open| open.restore(&way))
    }

    fn changed<'a>(
        &'a self,
        workspace: &'a str,
        between: &'a Window,
        ours: &'a [Window],
    ) -> BoxFuture<'a, Result<Vec<String>, FilesError>> {
        let ((before, after), ours) = (between.clone(), ours.to_vec());
        self.with(workspace, move |open| {
            let ours = open.windows(&ours)?;
            let all = diff(open.pack, &hash(&before)?, &hash(&after)?)?;
            let mine: Changes =
                all.into_iter().filter(|(path, _)| ours.contains_key(path)).collect();
            let changes = differs(open.pack, &mine, 0)?;
            Ok(changes
                .into_iter()
                .map(|change| format!("{} ({})", change.path, change.how))
                .collect())
        })
    }

    fn copy<'a>(
        &'a self,
        workspace: &'a str,
        tree: &'a Tree,
    ) -> BoxFuture<'a, Result<Box<dyn WorkspaceCopy>, FilesError>> {
        let tree = tree.clone();
        self.with(workspace, move |open| {
            let copy = export::TempFolder::new()?;
            let lacks = open.unfold(&hash(&tree)?, copy.folder(), false)?;
            Ok(Box::new(copy.lacking(lacks)) as Box<dyn WorkspaceCopy>)
        })
    }

    fn forget<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), FilesError>> {
        let (base, session) = (self.base.clone(), session.clone());
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.clear(); // they are reopened when needed
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || collect::forget(&base, &session));
            let done = done.await.map_err(FilesError::failed)?;
            done.map_err(FilesError::failed)
        })
    }
}

impl Files for CheckpointStore {
    fn commit(&self, workspace: &str) -> Option<String> {
        crate::git::commit(Path::new(workspace))
    }

    fn tree<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, Result<Tree, FilesError>> {
        self.with(workspace, |open| Ok(tree(open.look()?)))
    }

    fn holds<'a>(&'a self, workspace: &'a str, then: &'a Tree) -> BoxFuture<'a, bool> {
        let then = then.clone();
        let same = self.with(workspace, move |open| {
            let (then, now) = (hash(&then)?, open.look()?);
            Ok(then == now || !open.differs_visibly(&then, &now)?)
        });
        Box::pin(async move { same.await.unwrap_or(false) })
    }
}
