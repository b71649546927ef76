//! Versions of protected files that the user had before: files of the workspace, and files in
//! commits that existed when the session began or that an approved command fetched. With them, git
//! can switch between branches.
//!
//! Commands can write to the repository. Invariant: a commit counts only if it was recorded before
//! the first command, and each object on the way from it to a file is checked against its name.

use super::{Files, Guard, OTHER};
use sha1::{Digest as _, Sha1};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// At most this many files of a repository are read for the names of commits, and this much of
/// each, from its end.
const MOST_FILES: usize = 20_000;
const MOST_BYTES: u64 = 4 << 20;
/// At most this many objects are read for one call.
const MOST_OBJECTS: usize = 150;
/// At most this many commits are searched for a version.
const MOST_COMMITS: usize = 30;

/// What is accepted as a version of a protected file.
pub(super) struct Versions<'a> {
    guard: &'a Guard,
    /// Files of protected names that the command could not change.
    before: Vec<(PathBuf, Files)>,
    /// Commits that the user had, those of the current branches first.
    commits: Vec<String>,
    /// Objects that were read, if their names are true.
    objects: BTreeMap<String, Option<Vec<u8>>>,
}

impl Guard {
    /// Records the commits that exist now, once for each session.
    pub(super) fn record_versions(&self) {
        if self.versions.exists() {
            return;
        }
        let text: String = commits(&self.git()).iter().map(|name| format!("{name}\n")).collect();
        if let Some(folder) = self.versions.parent()
            && dunnock_private::create_folder(folder).is_ok()
        {
            let _ = dunnock_private::replace(&self.versions, text.as_bytes());
        }
    }

    /// Commits that came from other machines.
    pub(super) fn fetched_commits(&self) -> BTreeSet<String> {
        commits_in(&self.git(), &["FETCH_HEAD", "refs/remotes"])
    }

    /// Records what an approved command fetched.
    pub(super) fn record_fetched(&self) {
        let Some(before) = &self.fetched else { return };
        let now = self.fetched_commits();
        let new: Vec<&str> = now.difference(before).map(String::as_str).collect();
        if !new.is_empty() {
            let known = std::fs::read_to_string(&self.versions).unwrap_or_default();
            let text = format!("{known}{}\n", new.join("\n"));
            let _ = dunnock_private::replace(&self.versions, text.as_bytes());
        }
    }

    fn git(&self) -> PathBuf {
        let git = self.root.path().join(".git");
        let git = dunnock_sandbox::target_of(&git).unwrap_or(git);
        let common = crate::git::text_of(&git.join("commondir"), 4096);
        common.and_then(|common| git.join(common.trim()).canonicalize().ok()).unwrap_or(git)
    }

    pub(super) fn versions_now(&self) -> Versions<'_> {
        let recorded = std::fs::read_to_string(&self.versions).unwrap_or_default();
        let recorded: BTreeSet<&str> = recorded.lines().collect();
        let head = crate::git::commit(self.root.path());
        let current = commits_in(&self.git(), &["HEAD", "ORIG_HEAD", "refs/heads", "packed-refs"]);
        let all =
            head.iter().cloned().chain(current).filter(|name| recorded.contains(name.as_str()));
        let mut commits: Vec<String> = Vec::new();
        for name in all {
            if commits.len() < MOST_COMMITS && !commits.contains(&name) {
                commits.push(name);
            }
        }
        // Those that the command could not change.
        let kept: BTreeSet<PathBuf> =
            self.names.iter().map(|(path, _)| self.root.path().join(path)).collect();
        let closed = self.before.named.difference(&kept);
        let before = self.keep_all(closed, &mut super::MOST.clone());
        let mut versions = Versions { guard: self, before, commits, objects: BTreeMap::new() };
        versions.add_ancestor(head);
        versions
    }

    /// The hash of a version of a file, with its path.
    fn version(&self, file: &Path, (bytes, mode): &(Vec<u8>, u32)) -> [u8; 32] {
        let kind = if *mode < OTHER { mode & 0o111 } else { *mode };
        let path = self.root.path().join(file);
        let path = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
        dunnock_proto::Hash::of_parts(&[path, &kind.to_le_bytes(), bytes]).0
    }

    /// Remembers the versions that are there before the command.
    pub(super) fn note_versions(&self) {
        let mut seen = self.layout.versions.lock().unwrap_or_else(PoisonError::into_inner);
        for (file, is) in self.names.iter().flat_map(|(_, files)| files) {
            seen.insert(self.version(file, is));
        }
    }
}

impl Versions<'_> {
    /// Whether the user had this version of a file with a protected name: in a commit, or in another
    /// folder that is not deeper. What lies deep in a project does not count at its top.
    pub(super) fn accepts(&mut self, named: &Path, file: &Path, is: &(Vec<u8>, u32)) -> bool {
        let (bytes, mode) = is;
        let kind = |mode: u32| if mode < OTHER { mode & 0o111 } else { mode };
        let below = |named: &Path, file: &Path| {
            file.strip_prefix(named.parent().unwrap_or(named)).map(Path::to_path_buf).ok()
        };
        let (end, depth) = (below(named, file), named.components().count());
        let same = |(path, files): &(PathBuf, Files)| {
            path.components().count() <= depth
                && files.iter().any(|(old, (was, of))| {
                    was == bytes && kind(*of) == kind(*mode) && below(path, old) == end
                })
        };
        if self.guard.names.iter().chain(&self.before).any(same) {
            return true;
        }
        let seen = self.guard.layout.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contains(&self.guard.version(file, is)) {
            return true;
        }
        drop(seen);
        if *mode >= OTHER {
            return false;
        }
        let blob = name_of("blob", bytes);
        let commits = self.commits.clone();
        commits.iter().any(|commit| self.blob(commit, file).is_some_and(|found| found == blob))
    }

    /// The current commit counts, too, if it is an ancestor of a commit that counts.
    fn add_ancestor(&mut self, head: Option<String>) {
        let Some(head) = head.filter(|head| !self.commits.contains(head)) else { return };
        let mut waiting: VecDeque<String> = self.commits.iter().cloned().collect();
        let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
        while let Some(commit) = waiting.pop_front() {
            if commit == head {
                self.commits.insert(0, head);
                return;
            }
            let Some(text) = self.object("commit", &commit) else { continue };
            let text = String::from_utf8_lossy(&text).into_owned();
            let header = text.lines().take_while(|line| !line.is_empty());
            for parent in header.filter_map(|line| line.strip_prefix("parent ")) {
                if seen.insert(parent.to_owned()) {
                    waiting.push_back(parent.to_owned());
                }
            }
        }
    }

    /// The name of a file's contents in a commit.
    fn blob(&mut self, commit: &str, file: &Path) -> Option<String> {
        let text = self.object("commit", commit)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut name = text.lines().next()?.strip_prefix("tree ")?.to_owned();
        for part in file.components() {
            let tree = self.object("tree", &name)?;
            name = entry(&tree, std::os::unix::ffi::OsStrExt::as_bytes(part.as_os_str()))?;
        }
        Some(name)
    }

    /// An object whose name is true. Each one starts git, so there are at most so many.
    fn object(&mut self, kind: &str, name: &str) -> Option<Vec<u8>> {
        if let Some(known) = self.objects.get(name) {
            return known.clone();
        }
        if self.objects.len() >= MOST_OBJECTS {
            return None;
        }
        let bytes = crate::git::object(self.guard.root.path(), kind, name);
        let bytes = bytes.filter(|bytes| name_of(kind, bytes) == name);
        self.objects.insert(name.to_owned(), bytes.clone());
        bytes
    }
}

/// The name that git gives to an object. Repositories with longer names have no known versions.
fn name_of(kind: &str, bytes: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("{kind} {}\0", bytes.len()));
    hasher.update(bytes);
    hex(&hasher.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The object of this name in a tree.
fn entry(mut tree: &[u8], wanted: &[u8]) -> Option<String> {
    loop {
        let space = tree.iter().position(|byte| *byte == b' ')?;
        let end = tree.iter().position(|byte| *byte == 0)?;
        let (name, rest) = (tree.get(space + 1..end)?, tree.get(end + 1..)?);
        let (object, rest) = rest.split_at_checked(20)?;
        if name == wanted {
            return Some(hex(object));
        }
        tree = rest;
    }
}

/// The names of all commits that a repository refers to.
fn commits(git: &Path) -> BTreeSet<String> {
    let all = ["HEAD", "ORIG_HEAD", "FETCH_HEAD", "packed-refs", "refs", "logs/HEAD", "worktrees"];
    commits_in(git, &all)
}

fn commits_in(git: &Path, names: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<PathBuf> = names.iter().map(|name| git.join(name)).collect();
    let mut files = 0;
    while let Some(path) = waiting.pop() {
        files += 1;
        let Ok(about) = path.symlink_metadata() else { continue };
        if files > MOST_FILES {
            break;
        }
        if about.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.take(MOST_FILES).map(|entry| entry.path()));
        } else if about.is_file() {
            let text = tail(&path, about.len()).unwrap_or_default();
            let words = text.split(|c: char| !c.is_ascii_hexdigit());
            found.extend(words.filter(|word| word.len() == 40).map(str::to_owned));
        }
    }
    found
}

/// The end of a regular file.
fn tail(path: &Path, length: u64) -> std::io::Result<String> {
    use std::io::{Read as _, Seek as _};
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let mut file = std::fs::File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(String::new());
    }
    file.seek(std::io::SeekFrom::Start(length.saturating_sub(MOST_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_the_names_that_git_gives_them() {
        assert_eq!(name_of("blob", b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
        let tree = [b"100644 a\0".as_slice(), &[0xab; 20], b"40000 b c\0", &[0xcd; 20]].concat();
        assert_eq!(entry(&tree, b"b c"), Some("cd".repeat(20)));
        assert_eq!(entry(&tree, b"b"), None);
    }
}
