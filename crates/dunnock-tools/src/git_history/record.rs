//! The small files of a repository at one moment: refs, reflogs, stash, HEAD, index and settings.

use super::deadline::Deadline;
use super::files::{self, VersionStamp};
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How deep folders are read.
const DEEP: usize = 24;
/// Folders that are recorded elsewhere or not at all. Hooks can run programs: they are not history.
const PASSED_OVER: &[&str] = &["objects", "modules", "hooks", "lfs", "annex", "rr-cache", "svn"];
/// The reflog of the stash.
pub(super) const STASH_LOG: &str = "logs/refs/stash";
/// The stash.
pub(super) const STASH: &str = "refs/stash";

/// A copy of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileCopy {
    stamp: Option<VersionStamp>,
    pub(super) mode: u32,
    pub(super) bytes: Arc<[u8]>,
}

/// The small files of one repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Repo {
    pub(super) files: BTreeMap<PathBuf, FileCopy>,
    /// Git recognises it as a repository.
    pub(super) whole: bool,
}

/// What reading may cost.
pub(super) struct Budget {
    pub(super) deadline: Deadline,
    /// All files together.
    bytes: u64,
    /// One file.
    large: u64,
    files: usize,
    /// Something was left out.
    pub(super) exceeded: bool,
}

impl Budget {
    /// For a record before a call, which must not take long.
    pub(super) fn short(deadline: Deadline) -> Self {
        Self { deadline, bytes: 64 << 20, large: 16 << 20, files: 20_000, exceeded: false }
    }

    /// To compare with a record: what was recorded must be found again.
    pub(super) fn long() -> Self {
        let deadline = Deadline::new(Duration::from_secs(10));
        Self { deadline, bytes: 256 << 20, large: 64 << 20, files: 40_000, exceeded: false }
    }
}

/// The name of an object, if this is one.
pub(super) fn object_name(text: &[u8]) -> Option<&str> {
    let hex = text.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    (hex && matches!(text.len(), 40 | 64)).then(|| std::str::from_utf8(text).ok()).flatten()
}

/// Whether a name from a file can be a ref: it stays below `refs`.
fn is_ref(name: &Path) -> bool {
    let plain = |part: Component<'_>| match part {
        Component::Normal(name) => !name.as_bytes().iter().any(u8::is_ascii_control),
        _ => false,
    };
    name.starts_with("refs")
        && name.components().count() > 1
        && name.as_os_str().len() < 4096
        && name.components().all(plain)
        && name.extension().is_none_or(|end| end != "lock")
}

impl Repo {
    /// Reads a repository; what has not changed since `before` is not read again.
    pub(super) fn read(git: &OwnedFd, before: Option<&Self>, budget: &mut Budget) -> Self {
        let mut repo = Self::default();
        let now = files::now().saturating_mul(1_000_000);
        repo.folder(git, &mut PathBuf::new(), before, now, budget, 0);
        // However much was added: what was there before is looked up.
        let missing =
            before.filter(|_| budget.exceeded).into_iter().flat_map(|before| &before.files);
        for (path, known) in missing {
            let dir = files::enter(git, path.parent().unwrap_or(Path::new("")));
            if let (Ok(dir), Some(name), None) = (dir, path.file_name(), repo.files.get(path)) {
                repo.file(&dir, name, path, Some(known), now, budget);
            }
        }
        let is_folder =
            |name: &str| files::kind(git, OsStr::new(name)) == Some(FileType::Directory);
        repo.whole = repo.head().is_some() && is_folder("objects") && is_folder("refs");
        repo
    }

    fn folder(
        &mut self,
        dir: &OwnedFd,
        path: &mut PathBuf,
        before: Option<&Self>,
        now: i64,
        budget: &mut Budget,
        depth: usize,
    ) {
        let Ok(mut names) = files::names(dir) else { return };
        // The index comes last: it can be large, and git can build it again.
        names.sort_by_cached_key(|(name, _)| (depth == 0 && name == "index", name.clone()));
        for (name, kind) in names {
            let passed_over = depth == 0 && PASSED_OVER.iter().any(|known| name == *known);
            if passed_over || name.as_bytes().ends_with(b".lock") {
                continue;
            }
            if budget.files == 0 || budget.deadline.is_over() {
                budget.exceeded = true;
                return;
            }
            path.push(&name);
            match kind {
                FileType::Directory if depth < DEEP => {
                    if let Ok(inner) = files::enter(dir, Path::new(&name)) {
                        self.folder(&inner, path, before, now, budget, depth + 1);
                    }
                }
                FileType::RegularFile => {
                    budget.files -= 1;
                    let known = before.and_then(|before| before.files.get(path.as_path()));
                    self.file(dir, &name, path, known, now, budget);
                }
                _ => {}
            }
            path.pop();
        }
    }

    fn file(
        &mut self,
        dir: &OwnedFd,
        name: &OsStr,
        path: &Path,
        known: Option<&FileCopy>,
        now: i64,
        budget: &mut Budget,
    ) {
        let stamp = files::stat(dir, name).map(|stat| VersionStamp::of(&stat));
        if let Some(known) = known.filter(|known| known.stamp.is_some() && known.stamp == stamp) {
            budget.bytes = budget.bytes.saturating_sub(known.bytes.len() as u64);
            self.files.insert(path.to_path_buf(), known.clone());
            return;
        }
        match files::read(dir, name, budget.large.min(budget.bytes)) {
            Ok((bytes, stamp)) => {
                budget.bytes -= bytes.len() as u64;
                let copy =
                    FileCopy { stamp: stamp.settled(now), mode: stamp.mode, bytes: bytes.into() };
                self.files.insert(path.to_path_buf(), copy);
            }
            Err(error) => budget.exceeded |= error.kind() == io::ErrorKind::FileTooLarge,
        }
    }

    pub(super) fn bytes(&self, path: impl AsRef<Path>) -> Option<&[u8]> {
        self.files.get(path.as_ref()).map(|file| file.bytes.as_ref())
    }

    /// What HEAD says, if it is valid.
    fn head(&self) -> Option<&[u8]> {
        let head = self.bytes("HEAD")?.trim_ascii();
        (head.starts_with(b"ref: refs/") || object_name(head).is_some()).then_some(head)
    }

    /// Every ref with its object; symbolic refs are left out.
    pub(super) fn refs(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        for line in self.bytes("packed-refs").unwrap_or_default().split(|b| *b == b'\n') {
            let mut parts = line.splitn(2, |b| *b == b' ');
            if let (Some(object), Some(name)) = (parts.next().and_then(object_name), parts.next()) {
                let name = PathBuf::from(OsStr::from_bytes(name));
                if is_ref(&name) {
                    all.insert(name, object.to_owned());
                }
            }
        }
        for (name, file) in self.files.range(PathBuf::from("refs/")..PathBuf::from("refs0")) {
            if let Some(object) = object_name(file.bytes.trim_ascii()).filter(|_| is_ref(name)) {
                all.insert(name.clone(), object.to_owned());
            }
        }
        all
    }

    /// The lines of a reflog.
    pub(super) fn log(&self, path: impl AsRef<Path>) -> Vec<&[u8]> {
        let text = self.bytes(path).unwrap_or_default();
        text.split(|b| *b == b'\n').filter(|line| !line.is_empty()).collect()
    }

    /// The reflogs of the main work tree.
    pub(super) fn logs(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.range(PathBuf::from("logs/")..PathBuf::from("logs0")).map(|(path, _)| path)
    }

    /// Objects that refs, HEAD and the newest entries of reflogs name.
    pub(super) fn tips(&self) -> BTreeSet<String> {
        let mut tips: BTreeSet<String> = self.refs().into_values().collect();
        tips.extend(self.head().and_then(object_name).map(str::to_owned));
        for path in self.logs() {
            let newest = self.log(path).into_iter().rev().take(200);
            tips.extend(newest.filter_map(new_object).map(str::to_owned));
        }
        tips
    }
}

/// The object that a line of a reflog leads to.
pub(super) fn new_object(line: &[u8]) -> Option<&str> {
    let object = line.split(|b| *b == b' ').nth(1).and_then(object_name)?;
    object.bytes().any(|b| b != b'0').then_some(object)
}

/// A line of a reflog without the object that it comes from: git rewrites that one when it deletes
/// the line before.
pub(super) fn entry_of(line: &[u8]) -> &[u8] {
    line.iter().position(|b| *b == b' ').map_or(line, |at| line.get(at..).unwrap_or_default())
}

/// Writes records of several repositories, with a checksum.
pub(super) fn encode<'a>(repos: impl ExactSizeIterator<Item = (&'a PathBuf, &'a Repo)>) -> Vec<u8> {
    let mut out = Vec::new();
    let text = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.extend((bytes.len() as u64).to_le_bytes());
        out.extend(bytes);
    };
    out.extend((repos.len() as u64).to_le_bytes());
    for (dir, repo) in repos {
        text(&mut out, dir.as_os_str().as_bytes());
        out.push(u8::from(repo.whole));
        out.extend((repo.files.len() as u64).to_le_bytes());
        for (path, file) in &repo.files {
            text(&mut out, path.as_os_str().as_bytes());
            out.extend(file.mode.to_le_bytes());
            text(&mut out, &file.bytes);
        }
    }
    let check = blake3::hash(&out);
    out.extend(check.as_bytes());
    out
}

/// Reads what [`encode`] wrote; `None` if it is damaged.
pub(super) fn decode(bytes: &[u8]) -> Option<BTreeMap<PathBuf, Repo>> {
    let (body, check) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
    if blake3::hash(body).as_bytes() != check {
        return None;
    }
    let mut reader = Fields(body);
    let mut repos = BTreeMap::new();
    for _ in 0..reader.number()? {
        let dir = PathBuf::from(OsStr::from_bytes(reader.text()?));
        let whole = reader.take(1)? == [1];
        let mut repo = Repo { whole, ..Repo::default() };
        for _ in 0..reader.number()? {
            let path = PathBuf::from(OsStr::from_bytes(reader.text()?));
            let mode = u32::from_le_bytes(reader.take(4)?.try_into().ok()?);
            let bytes = reader.text()?.into();
            repo.files.insert(path, FileCopy { stamp: None, mode, bytes });
        }
        repos.insert(dir, repo);
    }
    Some(repos)
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (now, later) = self.0.split_at_checked(n)?;
        self.0 = later;
        Some(now)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let n = self.number()?;
        self.take(usize::try_from(n).ok()?)
    }
}
