//! Files that leave the store: a copy in a temporary folder, and states that are exported to
//! another machine.

use super::diff::{Changes, all};
use super::object::{NameOnly, Node, TreeEntry, decode, encode};
use super::pack::{CheckpointRoot, Pack};
use super::{CheckpointStore, Open, hash, now, restore, shown, tree};
use crate::diff_view::{ExportFilter, PackedTrees};
use dunnock_ports::{BoxFuture, FilesError, WorkspaceCopy};
use dunnock_proto::{Hash, SessionId, Tree};
use dunnock_sandbox::{REPOSITORY, is_repository};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Prefix of the names of temporary copies.
const COPY: &str = "dunnock-copy-";
/// An older copy was left behind by a process that was killed.
const OLD: Duration = Duration::from_secs(86_400);

/// A folder that is removed on drop.
pub(crate) struct TempFolder {
    path: String,
    lacks: Vec<String>,
}

impl TempFolder {
    pub(crate) fn new() -> io::Result<Self> {
        let base = std::env::temp_dir();
        sweep(&base);
        let mut make = std::fs::DirBuilder::new();
        make.mode(0o700);
        let path = (0..100).find_map(|n: u32| {
            let path = base.join(format!("{COPY}{}-{n}", std::process::id()));
            make.create(&path).ok().map(|()| path)
        });
        let path = path
            .ok_or_else(|| io::Error::other("no temporary folder for a copy could be created"))?;
        let path = path.canonicalize()?.to_string_lossy().into_owned();
        Ok(Self { path, lacks: Vec::new() })
    }
    pub(crate) fn folder(&self) -> &Path {
        Path::new(&self.path)
    }
    pub(crate) fn lacking(self, lacks: Vec<String>) -> Self {
        let mut this = self;
        this.lacks = lacks;
        this
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        remove(Path::new(&self.path));
    }
}

/// Removes a folder, even one that contains read-only folders.
fn remove(folder: &Path) {
    if std::fs::remove_dir_all(folder).is_ok() {
        return;
    }
    let mut open = vec![folder.to_path_buf()];
    while let Some(dir) = open.pop() {
        let _ = std::fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        open.extend(
            entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()),
        );
    }
    let _ = std::fs::remove_dir_all(folder);
}

impl WorkspaceCopy for TempFolder {
    fn path(&self) -> &str {
        &self.path
    }
    fn lacks(&self) -> Option<String> {
        let some: Vec<&str> = self.lacks.iter().take(5).map(String::as_str).collect();
        (!some.is_empty())
            .then(|| format!("run on a copy of the files without {}", some.join(", ")))
    }
}

/// Removes what killed processes left behind. (Only what is ours can be removed.)
fn sweep(base: &Path) {
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(COPY);
        let age = entry
            .metadata()
            .and_then(|m| m.modified())
            .ok()
            .and_then(|t| SystemTime::now().duration_since(t).ok());
        if ours && age.is_some_and(|age| age > OLD) {
            remove(&entry.path());
        }
    }
}

impl Open<'_> {
    /// Writes all files of a state into an empty folder; returns what is missing.
    pub(super) fn unfold(
        &mut self,
        top: &Hash,
        into: &Path,
        strange: bool,
    ) -> io::Result<Vec<String>> {
        let mut everything = all(self.pack, top)?;
        // An imported state must not say who else may write, or set a program to run as another
        // user.
        for change in everything.values_mut().filter(|_| strange) {
            if let Some(
                Node::File { mode, attributes, .. } | Node::Folder { mode, attributes, .. },
            ) = &mut change.after
            {
                *mode &= 0o755;
                *attributes = None;
            }
        }
        let failed = restore::restore(self.pack, into, &everything, |_| None, false)?.failed;
        if let Some((path, why)) = failed.first() {
            return Err(io::Error::other(format!("{}: {why}", shown(path))));
        }
        let left = everything.iter().filter_map(|(path, change)| match &change.after {
            Some(Node::Left { why: NameOnly::Own | NameOnly::Special, .. }) => None,
            Some(Node::Left { .. }) => Some(shown(path)),
            _ => None,
        });
        Ok(left.collect())
    }
}

impl CheckpointStore {
    /// Packs states for export, with each file passed through `change`. States that are no longer
    /// saved are left out.
    pub fn pack_up<'a>(
        &'a self,
        workspace: &'a str,
        trees: Vec<Tree>,
        change: ExportFilter,
    ) -> BoxFuture<'a, Result<PackedTrees, FilesError>> {
        self.with(workspace, move |open| {
            let mut packed = PackedTrees::default();
            let mut known = HashMap::new();
            for name in trees {
                let Ok(top) = hash(&name) else { continue };
                if !open.pack.has(&top) {
                    continue;
                }
                let mut bag = Bag {
                    pack: open.pack,
                    objects: &mut packed.objects,
                    changed: &mut packed.changed,
                    known: &mut known,
                    change: &change,
                };
                let new = bag.folder(&top, Path::new(""))?;
                packed.trees.push((name, tree(new)));
            }
            Ok(packed)
        })
    }

    /// Whether states that were packed elsewhere may be imported: each has at most this many bytes
    /// when its files are written.
    ///
    /// # Errors
    /// If a state is incomplete or too large.
    pub fn check_import(
        &self,
        objects: &[Vec<u8>],
        trees: &[Tree],
        most_bytes: u64,
    ) -> Result<(), FilesError> {
        check_extent(objects, trees, most_bytes).map_err(FilesError::failed)
    }

    /// Imports states that were packed elsewhere and passed [`Self::check_import`], for a session.
    pub fn unpack<'a>(
        &'a self,
        workspace: &'a str,
        session: SessionId,
        objects: Vec<Vec<u8>>,
        trees: Vec<Tree>,
    ) -> BoxFuture<'a, Result<(), FilesError>> {
        self.with(workspace, move |open| {
            for bytes in &objects {
                open.pack.put(bytes)?;
            }
            for name in trees {
                // The state must be complete: later it is trusted by its name. An imported state
                // must not contain anything that git or Dunnock would act on.
                let everything = all(open.pack, &hash(&name)?)?;
                let own = |part: &std::ffi::OsStr| {
                    part.eq_ignore_ascii_case(".git")
                        || part.to_string_lossy().to_ascii_lowercase().starts_with(".dunnock")
                };
                let bad = everything.iter().find(|(path, change)| {
                    !matches!(change.after, Some(Node::Left { .. }) | None) && path.iter().any(own)
                });
                let bad = bad.map(|(path, _)| shown(path)).or_else(|| repository_in(&everything));
                if let Some(path) = bad {
                    let why = format!("it contains {path}, which an import may not contain");
                    return Err(io::Error::other(why));
                }
                open.pack.root(CheckpointRoot {
                    at: now(),
                    session: session.clone(),
                    tree: name.0,
                })?;
            }
            open.sync()
        })
    }

    /// Writes the files of a state into an empty folder; returns what is missing.
    pub fn unfold<'a>(
        &'a self,
        workspace: &'a str,
        name: Tree,
        into: PathBuf,
        strange: bool,
    ) -> BoxFuture<'a, Result<Vec<String>, FilesError>> {
        self.with(workspace, move |open| open.unfold(&hash(&name)?, &into, strange))
    }
}

/// A folder of a state that git takes for a repository.
fn repository_in(everything: &Changes) -> Option<String> {
    let mut names: BTreeMap<&Path, Vec<&str>> = BTreeMap::new();
    let there = everything.iter().filter(|(_, change)| change.after.is_some());
    for path in there.flat_map(|(path, _)| path.ancestors()) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
        if let Some(known) = REPOSITORY.iter().find(|known| name.eq_ignore_ascii_case(known)) {
            names.entry(folder).or_default().push(known);
        }
    }
    let found = names.into_iter().find(|(_, names)| is_repository(|name| names.contains(&name)));
    found.map(|(folder, _)| format!("a git repository ({})", shown(folder)))
}

/// Maximum names in an imported state.
const MOST_NAMES: u64 = 2_000_000;
/// Maximum folder depth.
const DEEPEST: usize = 200;

/// How much a folder expands to.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    names: u64,
    bytes: u64,
    /// How deep its folders are nested.
    height: usize,
}

/// Checks that no state is too large. A few objects that are named many times can expand to more
/// than any disk can hold.
fn check_extent(objects: &[Vec<u8>], trees: &[Tree], most_bytes: u64) -> io::Result<()> {
    let objects: HashMap<Hash, &[u8]> =
        objects.iter().map(|bytes| (Hash::of(bytes), bytes.as_slice())).collect();
    let mut known = HashMap::new();
    for name in trees {
        let extent = extent(&objects, &hash(name)?, 0, &mut known)?;
        if extent.bytes > most_bytes {
            return Err(io::Error::other(format!(
                "its files have {} MB, more than the limit of {} MB; to import them all the \
                 same, use --max-mb",
                extent.bytes.div_ceil(1 << 20),
                most_bytes >> 20
            )));
        }
    }
    Ok(())
}

fn extent(
    objects: &HashMap<Hash, &[u8]>,
    top: &Hash,
    depth: usize,
    known: &mut HashMap<Hash, Extent>,
) -> io::Result<Extent> {
    let bad = |why: &str| Err(io::Error::other(why.to_owned()));
    let whole = match known.get(top) {
        Some(known) => *known,
        None => {
            let Some(bytes) = objects.get(top) else { return bad("one of its folders is missing") };
            if depth > DEEPEST {
                return bad("its folders are nested too deep");
            }
            let mut whole = Extent::default();
            for entry in decode(bytes)? {
                whole.names += 1;
                match &entry.node {
                    Node::Folder { hash, .. } => {
                        let below = extent(objects, hash, depth + 1, known)?;
                        whole.names = whole.names.saturating_add(below.names);
                        whole.bytes = whole.bytes.saturating_add(below.bytes);
                        whole.height = whole.height.max(below.height + 1);
                    }
                    // What counts is the content, not the size that the folder gives.
                    Node::File { hash, .. } => match objects.get(hash) {
                        Some(content) => {
                            whole.bytes = whole.bytes.saturating_add(content.len() as u64);
                        }
                        None => return bad("one of its files is missing"),
                    },
                    Node::Link { .. } | Node::Left { .. } => {}
                }
            }
            known.insert(*top, whole);
            whole
        }
    };
    if whole.names > MOST_NAMES {
        return bad("it has too many files");
    }
    if depth + whole.height > DEEPEST {
        return bad("its folders are nested too deep");
    }
    Ok(whole)
}

/// Collects objects for export.
struct Bag<'a> {
    pack: &'a mut Pack,
    objects: &'a mut BTreeMap<Hash, Vec<u8>>,
    changed: &'a mut Vec<(Hash, Hash)>,
    /// The new hash of a folder or file at a path.
    known: &'a mut HashMap<(Hash, PathBuf), Hash>,
    change: &'a ExportFilter,
}

impl Bag<'_> {
    fn folder(&mut self, top: &Hash, path: &Path) -> io::Result<Hash> {
        if let Some(new) = self.known.get(&(*top, path.to_path_buf())) {
            return Ok(*new);
        }
        let mut entries: Vec<TreeEntry> = decode(&self.pack.get(top)?)?;
        for entry in &mut entries {
            let below =
                path.join(std::ffi::OsStr::new(std::str::from_utf8(&entry.name).unwrap_or("?")));
            match &mut entry.node {
                Node::Folder { hash, attributes, .. } => {
                    *hash = self.folder(hash, &below)?;
                    *attributes = None;
                }
                Node::File { hash, size, attributes, linked, .. } => {
                    // They say nothing elsewhere.
                    (*attributes, *linked) = (None, false);
                    let known = self.known.get(&(*hash, below.clone())).copied();
                    let new = match known {
                        Some(new) => new,
                        None => {
                            let content = (self.change)(&below, self.pack.get(hash)?);
                            let new = Hash::of(&content);
                            if new != *hash {
                                self.changed.push((*hash, new));
                            }
                            self.objects.insert(new, content);
                            new
                        }
                    };
                    self.known.insert((*hash, below), new);
                    *hash = new;
                    *size = self.objects.get(&new).map_or(*size, |content| content.len() as u64);
                }
                Node::Link { .. } | Node::Left { .. } => {}
            }
        }
        let bytes = encode(entries.iter().map(|entry| (entry.name.as_slice(), &entry.node)));
        let new = Hash::of(&bytes);
        self.objects.insert(new, bytes);
        self.known.insert((*top, path.to_path_buf()), new);
        Ok(new)
    }
}
