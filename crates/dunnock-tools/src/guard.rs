//! Restores files in a workspace that a command must not create or change.
//!
//! Where the kernel protects them (level A), only those that were missing or are links need this;
//! at lower levels all of them do. It runs outside the sandbox, in a folder that a command may be
//! changing at the same time. Invariant: every step goes by descriptor from the workspace's own
//! folder and follows no link, and nothing is deleted: what is removed is moved to a folder of
//! ours.

use crate::root::{RepoPath, Root};
use dunnock_sandbox::{Isolation, Layout, SandboxSpec};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum bytes of protected files held in memory. Where only this guards them, anything beyond
/// that is not protected.
const MOST: u64 = 16 << 20;

/// Guards one workspace while a command runs.
pub(crate) struct Guard {
    root: Arc<Root>,
    layout: Arc<Layout>,
    /// Where removed files and folders are moved.
    aside: PathBuf,
    /// Paths that did not exist before, relative to the workspace.
    missing: Vec<PathBuf>,
    /// Links and their original targets.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Original files and folders, where only this guards them.
    kept: Vec<(PathBuf, Files)>,
    /// Folders in which something was protected.
    guarded: BTreeSet<PathBuf>,
    /// There was no repository: one may be created, but with nothing in it that runs
    /// automatically.
    no_git: bool,
    /// What was reverted so far.
    said: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("missing", &self.missing).finish_non_exhaustive()
    }
}

/// Files below a path, with their modes.
type Files = BTreeMap<PathBuf, (Vec<u8>, u32)>;

/// Where a path leads.
enum ResolvedPath {
    /// To a name in a folder.
    To(File, OsString),
    /// A folder on the way is missing.
    Missing,
    /// Something on the way is a link or a file.
    Blocked(File, OsString, PathBuf),
}

fn folder(dir: &File, name: &Path) -> rustix::io::Result<File> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat2(
        dir,
        name,
        flags,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )
    .map(File::from)
}

fn kind(dir: &File, name: &OsString) -> Option<FileType> {
    let about = rustix::fs::statat(dir, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(about.st_mode))
}

impl Guard {
    pub(crate) fn new(root: Arc<Root>, spec: &SandboxSpec, layout: &Arc<Layout>) -> Self {
        let mut guard = Self {
            aside: spec.tmp.with_file_name("put-back"),
            missing: Vec::new(),
            links: BTreeMap::new(),
            kept: Vec::new(),
            guarded: layout.guarded(root.path()).into_iter().collect(),
            no_git: root.path().join(".git").symlink_metadata().is_err(),
            said: Mutex::default(),
            layout: layout.clone(),
            root,
        };
        for names in
            layout.protected.iter().filter(|names| !names.iter().any(|name| name.starts_with('*')))
        {
            let path: PathBuf = names.iter().collect();
            guard.note(&path);
        }
        // The same for every repository inside: submodules and nested ones.
        let modules = spec.closed.iter().filter(|path| path.ends_with("config"));
        let modules = modules.filter_map(|config| config.parent().map(Path::to_path_buf));
        let nested = guard.guarded.iter().map(|folder| folder.join(".git"));
        let inner: BTreeSet<PathBuf> = modules.chain(nested.filter(|git| git.is_dir())).collect();
        let inner = inner.iter().filter_map(|dir| dir.strip_prefix(guard.root.path()).ok());
        let inner = inner.filter(|dir| dir.components().any(|c| c.as_os_str() == ".git"));
        let inner: Vec<PathBuf> = inner.map(Path::to_path_buf).collect();
        for dir in inner {
            ["hooks", "commondir", "config.worktree"]
                .iter()
                .for_each(|name| guard.note(&dir.join(name)));
        }
        if spec.isolation != Isolation::A {
            let mut room = MOST;
            let mine = |path: &&PathBuf| path.starts_with(guard.root.path());
            guard.kept = spec
                .closed
                .iter()
                .filter(mine)
                .filter_map(|path| {
                    let mut files = Files::new();
                    keep(guard.root.path(), path, &mut files, &mut room)?;
                    Some((path.strip_prefix(guard.root.path()).ok()?.to_path_buf(), files))
                })
                .collect();
        }
        guard
    }

    /// Records the current state of a path.
    fn note(&mut self, path: &Path) {
        let mut so_far = PathBuf::new();
        for name in path.components() {
            so_far.push(name);
            let real = self.root.path().join(&so_far);
            match real.symlink_metadata() {
                Ok(about) if about.is_symlink() => {
                    if let Ok(to) = std::fs::read_link(&real) {
                        self.links.insert(so_far, to);
                    }
                    return;
                }
                // A file where usually a folder is, as in a linked worktree: nothing can exist
                // below it.
                Ok(about) if !about.is_dir() => return,
                Ok(_) => {}
                Err(_) => return self.missing.push(path.to_path_buf()),
            }
        }
    }

    fn way(&self, path: &Path) -> ResolvedPath {
        let Ok(mut dir) = folder(self.root.dir(), Path::new(".")) else {
            return ResolvedPath::Missing;
        };
        let mut so_far = PathBuf::new();
        let names: Vec<OsString> = path.components().map(|c| c.as_os_str().to_owned()).collect();
        let Some((last, above)) = names.split_last() else { return ResolvedPath::Missing };
        for name in above {
            so_far.push(name);
            dir = match folder(&dir, Path::new(name)) {
                Ok(inner) => inner,
                Err(rustix::io::Errno::NOENT) => return ResolvedPath::Missing,
                Err(_) => return ResolvedPath::Blocked(dir, name.clone(), so_far),
            };
        }
        ResolvedPath::To(dir, last.clone())
    }

    /// Moves something out of the workspace to where it can be found again: perhaps the user
    /// created it.
    fn take_away(&self, dir: &File, name: &OsString, path: &Path) {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        let shown = path.to_string_lossy().replace('/', "+");
        let to = self.aside.join(format!("{now}-{shown}"));
        let moved = dunnock_private::create_folder(&self.aside).is_ok()
            && rustix::fs::renameat(dir, name.as_os_str(), rustix::fs::CWD, &to).is_ok();
        // If that is on another disk, it stays here under a name that nothing acts on.
        let here = format!("{}.refused-{now}", name.to_string_lossy());
        let place = match moved {
            true => Some(to.display().to_string()),
            false => rustix::fs::renameat(dir, name.as_os_str(), dir, here.as_str())
                .is_ok()
                .then_some(here),
        };
        let words = match place {
            Some(place) => format!("{} (moved to {place})", path.display()),
            None => format!("{} (it could NOT be removed)", path.display()),
        };
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(words);
    }

    /// Removes what must not have been created and restores links. Cheap enough to repeat while a
    /// command runs.
    pub(crate) fn look(&self) {
        for path in &self.missing {
            match self.way(path) {
                ResolvedPath::Missing => {}
                ResolvedPath::Blocked(dir, name, so_far) => {
                    if !self.links.contains_key(&so_far) {
                        self.take_away(&dir, &name, &so_far);
                    }
                }
                ResolvedPath::To(dir, name) => {
                    let new_git = self.no_git && path.starts_with(".git");
                    if kind(&dir, &name).is_some() && !(new_git && self.tame(path)) {
                        self.take_away(&dir, &name, path);
                    }
                }
            }
        }
        for (path, to) in &self.links {
            let ResolvedPath::To(dir, name) = self.way(path) else { continue };
            let now = rustix::fs::readlinkat(&dir, name.as_os_str(), Vec::new()).ok();
            if now.as_ref().is_some_and(|now| {
                now.as_bytes() == std::os::unix::ffi::OsStrExt::as_bytes(to.as_os_str())
            }) {
                continue;
            }
            if kind(&dir, &name).is_some() {
                self.take_away(&dir, &name, path);
            }
            let _ = rustix::fs::symlinkat(to, &dir, name.as_os_str());
        }
    }

    /// The command has ended: reverts everything, and describes what was reverted.
    pub(crate) fn over(&self) -> Vec<String> {
        self.look();
        for (path, files) in &self.kept {
            let (mut now, mut room) = (Files::new(), MOST);
            let whole =
                keep(self.root.path(), &self.root.path().join(path), &mut now, &mut room).is_some();
            if whole && now == *files {
                continue;
            }
            for (file, (bytes, mode)) in
                files.iter().filter(|(file, was)| now.get(*file) != Some(*was))
            {
                if let ResolvedPath::Blocked(dir, name, so_far) = self.way(file) {
                    self.take_away(&dir, &name, &so_far);
                }
                if let ResolvedPath::To(dir, name) = self.way(file)
                    && kind(&dir, &name).is_some_and(|kind| kind != FileType::RegularFile)
                {
                    self.take_away(&dir, &name, file);
                }
                let done = self.root.put_back(file, bytes, *mode);
                let words = format!(
                    "{}{}",
                    file.display(),
                    if done.is_ok() { "" } else { " (it could NOT be restored)" }
                );
                self.said.lock().unwrap_or_else(PoisonError::into_inner).push(words);
            }
            for file in now.keys().filter(|file| !files.contains_key(*file)) {
                if let ResolvedPath::To(dir, name) = self.way(file) {
                    self.take_away(&dir, &name, file);
                }
            }
        }
        self.new_repositories();
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes sure that nothing in a newly created inner repository runs when the user uses git
    /// above it.
    fn new_repositories(&self) {
        let known = |folder: &PathBuf| !self.guarded.contains(folder) && folder != self.root.path();
        for folder in self.layout.guarded(self.root.path()).into_iter().filter(known) {
            let Ok(folder) = folder.strip_prefix(self.root.path()) else { continue };
            for name in [
                ".git/config",
                ".git/hooks",
                ".git/commondir",
                ".git/config.worktree",
                ".git/info/attributes",
            ] {
                let path = folder.join(name);
                match self.way(&path) {
                    ResolvedPath::To(dir, last)
                        if kind(&dir, &last).is_some() && !self.tame(&path) =>
                    {
                        self.take_away(&dir, &last, &path);
                    }
                    ResolvedPath::Blocked(dir, last, so_far) => {
                        self.take_away(&dir, &last, &so_far)
                    }
                    ResolvedPath::To(..) | ResolvedPath::Missing => {}
                }
            }
        }
    }

    /// Whether a part of a new repository runs nothing automatically.
    fn tame(&self, path: &Path) -> bool {
        let ResolvedPath::To(dir, name) = self.way(path) else { return false };
        match kind(&dir, &name) {
            Some(FileType::Directory) if path.ends_with(".git/hooks") => {
                let entries =
                    std::fs::read_dir(self.root.path().join(path)).into_iter().flatten().flatten();
                entries
                    .map(|e| e.path())
                    .all(|hook| hook.extension().is_some_and(|e| e == "sample"))
            }
            Some(FileType::RegularFile) if path.ends_with(".git/config") => {
                let read = RepoPath::parse(&self.root, &path.to_string_lossy())
                    .and_then(|path| self.root.read(&path));
                read.is_ok_and(|config| tame_config(&String::from_utf8_lossy(&config.bytes)))
            }
            _ => false,
        }
    }
}

/// Reads the files below a path; `None` if they are too large to hold.
fn keep(root: &Path, path: &Path, files: &mut Files, room: &mut u64) -> Option<()> {
    let Ok(about) = path.symlink_metadata() else { return Some(()) };
    if about.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            keep(root, &entry.path(), files, room)?;
        }
    } else if about.is_file() {
        *room = room.checked_sub(about.len())?;
        let bytes = std::fs::read(path).ok()?;
        files.insert(
            path.strip_prefix(root).ok()?.to_path_buf(),
            (bytes, about.permissions().mode() & 0o7777),
        );
    }
    Some(())
}

/// Settings that `git init` and `git clone` write, and that run nothing.
const TAME: &[&str] = &[
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "ignorecase",
    "precomposeunicode",
    "symlinks",
    "name",
    "email",
    "url",
    "fetch",
    "remote",
    "merge",
    "objectformat",
    "refstorage",
    "defaultbranch",
];

fn tame_config(text: &str) -> bool {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    text.len() < 10_000
        && lines.into_iter().all(|line| {
            let section =
                ["[core]", "[user]", "[remote \"", "[branch \"", "[extensions]", "[init]"];
            match line.split_once('=') {
                None => section.iter().any(|known| line.starts_with(known)) && line.ends_with(']'),
                Some((key, value)) => {
                    TAME.contains(&key.trim())
                        && !value.contains("ext::")
                        && !line.contains(']')
                        && !line.ends_with('\\')
                }
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_writes_itself_is_tame_and_what_runs_programs_is_not() {
        let plain = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = https://x/y\n\tfetch = +a:b\n";
        assert!(tame_config(plain));
        for evil in [
            "[core]\n\tfsmonitor = touch x\n",
            "[core]\n\tpager = x\n",
            "[alias]\n\tst = !x\n",
            "[include]\n\tpath = ../x\n",
            "[core] fsmonitor = x\n",
            "[remote \"o\"]\n\turl = ext::sh -c x\n",
            "[core]\n\tbare = false \\\n",
            "[core]\n\tworktree = ..\n",
        ] {
            assert!(!tame_config(evil), "{evil}");
        }
    }
}
