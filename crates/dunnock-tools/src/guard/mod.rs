//! Restores files in a workspace that a command must not create or change.
//!
//! Where the kernel protects them (level A), only those that were missing or are links need this;
//! at lower levels all of them do. It runs outside the sandbox, in a folder that a command may be
//! changing at the same time. Invariant: every change goes by descriptor from the workspace's own
//! folder and follows no link, and nothing is deleted: what is removed is moved to a folder of
//! ours.

mod config;
mod names;
mod repositories;
mod versions;

pub(crate) use config::is_tame;

use crate::context::CallContext;
use crate::root::Root;
use crate::sandbox::GitUse;
use dunnock_proto::Hash;
use dunnock_sandbox::{GIT_ACTS_ON, Isolation, Layout, SandboxSpec, Survey};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Maximum bytes of protected files held in memory. Where only this guards them, anything beyond
/// that is not protected.
const MOST: u64 = 16 << 20;

/// Guards one workspace while a command runs.
pub(crate) struct Guard {
    root: Arc<Root>,
    layout: Arc<Layout>,
    /// The folder is the git folder of a work tree that is elsewhere.
    of_git_folder: bool,
    /// Where removed files and folders are moved.
    aside: PathBuf,
    /// Paths that did not exist before, relative to the workspace.
    missing: Vec<PathBuf>,
    /// Links and their original targets.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Original files and folders, where only this guards them.
    kept: Vec<(PathBuf, Files)>,
    /// What was found in the workspace before.
    before: Survey,
    /// Files of protected names that the kernel does not protect, with their contents.
    names: Vec<(PathBuf, Files)>,
    /// Those of which the contents could not be kept.
    not_kept: Vec<PathBuf>,
    /// The command replaces files of the work tree by other versions of them.
    checkout: bool,
    /// Where the versions are recorded that the user had when the session began.
    versions: PathBuf,
    /// Commits of other machines that were known before, if it has the network.
    fetched: Option<BTreeSet<String>>,
    /// Commands that git was to run when a stopped rebase or cherry-pick continues.
    to_run: BTreeSet<String>,
    /// When the command began.
    began: SystemTime,
    /// When repositories were last looked for, and how long that took.
    searched: Mutex<(Instant, Duration)>,
    /// What was reverted so far.
    said: Mutex<Vec<String>>,
}

/// How deep folders can be nested that a command made unreadable.
const MOST_HIDDEN: usize = 50;
/// How often repositories are looked for while a command runs. It takes at most a twentieth of the
/// time.
const SEARCH: Duration = Duration::from_secs(1);

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("missing", &self.missing).finish_non_exhaustive()
    }
}

/// Files below a path, with their modes. A link has its target and `LINK`; anything else has
/// nothing and `OTHER`.
type Files = BTreeMap<PathBuf, (Vec<u8>, u32)>;
const LINK: u32 = 0o120_000;
const OTHER: u32 = 0o10_000;

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

/// Adds rights to a folder, which may be open for its path only.
fn add_mode(dir: &File, rights: Mode) -> bool {
    use std::os::fd::AsRawFd as _;
    let Ok(about) = rustix::fs::fstat(dir) else { return false };
    let mode = Mode::from_raw_mode(about.st_mode) | rights;
    rustix::fs::chmod(format!("/proc/self/fd/{}", dir.as_raw_fd()), mode).is_ok()
}

fn kind(dir: &File, name: &OsString) -> Option<FileType> {
    let about = rustix::fs::statat(dir, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(about.st_mode))
}

impl Guard {
    /// Guards a work tree: usually it is the workspace.
    pub(crate) fn new(
        context: &CallContext,
        root: &Arc<Root>,
        spec: &SandboxSpec,
        layout: &Arc<Layout>,
        before: Survey,
        git: GitUse,
    ) -> Self {
        let mut guard = Self::empty(context, root, spec, layout, before);
        guard.checkout = git.checkout;
        guard.record_versions();
        guard.fetched = (spec.network && git.fetches).then(|| guard.fetched_commits());
        guard.note_all(spec);
        guard
    }

    /// Guards the git folder of a work tree that is elsewhere.
    ///
    /// # Errors
    /// If the folder cannot be opened.
    pub(crate) fn of_git_folder(
        context: &CallContext,
        folder: &Path,
        spec: &SandboxSpec,
        layout: &Arc<Layout>,
    ) -> std::io::Result<Self> {
        let root = Arc::new(Root::open(folder)?);
        let before = layout.survey_git_folder(root.path());
        let mut guard = Self::empty(context, &root, spec, layout, before);
        guard.of_git_folder = true;
        guard.note_all(spec);
        Ok(guard)
    }

    fn empty(
        context: &CallContext,
        root: &Arc<Root>,
        spec: &SandboxSpec,
        layout: &Arc<Layout>,
        before: Survey,
    ) -> Self {
        // A deleted session leaves no trace of its name.
        let name = Hash::of(context.session.to_string().as_bytes());
        Self {
            of_git_folder: false,
            aside: spec.tmp.with_file_name("put-back"),
            missing: Vec::new(),
            links: BTreeMap::new(),
            kept: Vec::new(),
            names: Vec::new(),
            not_kept: Vec::new(),
            checkout: false,
            fetched: None,
            versions: layout.own_folder(root.path()).join("versions").join(name.to_string()),
            to_run: BTreeSet::new(),
            began: SystemTime::now(),
            searched: Mutex::new((Instant::now(), Duration::ZERO)),
            before,
            said: Mutex::default(),
            layout: layout.clone(),
            root: root.clone(),
        }
    }

    /// Records everything that the command must not change.
    fn note_all(&mut self, spec: &SandboxSpec) {
        let guard = self;
        let (layout, checkout) = (guard.layout.clone(), guard.checkout);
        let work_tree = !checkout && !guard.of_git_folder;
        for names in layout.protected.iter().filter(|_| work_tree) {
            let path: PathBuf = names.iter().collect();
            guard.note(&path);
        }
        // The same for every repository, for files that say where one is, and for what the
        // configuration of git names.
        let repositories = guard.before.repositories.iter();
        let acts = repositories.flat_map(|dir| GIT_ACTS_ON.iter().map(|name| dir.join(name)));
        let named = guard.before.git_files.iter().chain(&guard.before.named_by_git).cloned();
        let all: Vec<PathBuf> =
            acts.chain(named).filter_map(|path| guard.relative(&path)).collect();
        all.iter().for_each(|path| guard.note(path));
        guard.to_run = guard.commands_to_run(&guard.before.repositories);
        let mut room = MOST;
        if spec.isolation != Isolation::A {
            let closed = spec.closed.iter().filter(|path| !guard.before.named.contains(*path));
            // Those at the top first, as below.
            let mut closed: Vec<&PathBuf> = closed.collect();
            closed.sort_by_key(|path| path.components().count());
            guard.kept = guard.keep_all(closed, &mut room);
        }
        let all = spec.isolation != Isolation::A || checkout;
        let names = if all { &guard.before.named } else { &guard.before.watched };
        // Those at the top first: whoever fills the room with others gains nothing.
        let mut names: Vec<&PathBuf> = names.iter().collect();
        names.sort_by_key(|path| path.components().count());
        guard.names = guard.keep_all(names.iter().copied(), &mut room);
        let kept: BTreeSet<PathBuf> =
            guard.names.iter().map(|(path, _)| guard.root.path().join(path)).collect();
        if spec.isolation == Isolation::A {
            let lost = names.into_iter().filter(|path| !kept.contains(*path));
            guard.not_kept = lost.cloned().collect();
        }
        guard.note_versions();
    }

    /// What is in the folder now.
    fn survey(&self) -> Survey {
        match self.of_git_folder {
            true => self.layout.survey_git_folder(self.root.path()),
            false => self.layout.survey(self.root.path()),
        }
    }

    /// Files and folders of protected names that could not be kept.
    pub(crate) fn not_kept(&self) -> &[PathBuf] {
        &self.not_kept
    }

    fn relative(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(self.root.path()).ok().map(Path::to_path_buf)
    }

    /// The contents of files and folders of the workspace, as far as there is room.
    fn keep_all<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a PathBuf>,
        room: &mut u64,
    ) -> Vec<(PathBuf, Files)> {
        let keep_one = |path: &PathBuf| {
            let relative = self.relative(path)?;
            let mut files = Files::new();
            self.keep(&relative, &mut files, room)?;
            Some((relative, files))
        };
        paths.into_iter().filter_map(keep_one).collect()
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
                // What is short says nothing about the path.
                Err(
                    rustix::io::Errno::NOENT
                    | rustix::io::Errno::MFILE
                    | rustix::io::Errno::NFILE
                    | rustix::io::Errno::NOMEM
                    | rustix::io::Errno::AGAIN
                    | rustix::io::Errno::INTR,
                ) => return ResolvedPath::Missing,
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
        let rename = || rustix::fs::renameat(dir, name.as_os_str(), rustix::fs::CWD, &to);
        let moved = dunnock_private::create_folder(&self.aside).is_ok()
            && match rename() {
                // The command may have made the folders read-only.
                Err(rustix::io::Errno::ACCESS) => {
                    add_mode(dir, Mode::RWXU);
                    let _ = folder(dir, Path::new(name)).map(|inner| add_mode(&inner, Mode::RWXU));
                    rename().is_ok()
                }
                done => done.is_ok(),
            };
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
        self.say(words);
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
                    if kind(&dir, &name).is_some() {
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
        let mut searched = self.searched.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, took) = *searched;
        if last.elapsed() > SEARCH.max(took * 20) {
            let began = Instant::now();
            let now = self.survey();
            self.new_repositories(&now);
            // git is in the middle of replacing them.
            if !self.checkout {
                self.check_names(&now);
            }
            *searched = (Instant::now(), began.elapsed());
        }
    }

    /// The person has allowed this file to have this content. What stands beside it was not allowed:
    /// the process may have put it there at the same moment.
    pub(crate) fn accept(&mut self, path: &Path, content: Hash) {
        if self.of_git_folder {
            return;
        }
        self.missing.retain(|known| !path.starts_with(known) && !known.starts_with(path));
        let named = self.survey().named;
        let named: Vec<PathBuf> = named.iter().filter_map(|known| self.relative(known)).collect();
        for known in named.into_iter().filter(|known| path.starts_with(known)) {
            let mut now = Files::new();
            let read = self.keep(&known, &mut now, &mut MOST.clone());
            let file = now.remove(path).filter(|(bytes, _)| Hash::of(bytes) == content);
            let (Some(()), Some(file)) = (read, file) else { continue };
            let mut entries = self.names.iter_mut().chain(&mut self.kept);
            match entries.find(|(old, _)| *old == known) {
                Some((_, files)) => drop(files.insert(path.to_path_buf(), file)),
                // What was there before, and is in no list, is protected by the kernel.
                None if self.before.named.insert(self.root.path().join(&known)) => {
                    self.names.push((known, Files::from([(path.to_path_buf(), file)])));
                }
                None => {}
            }
        }
    }

    /// Removes whatever is at this path.
    fn remove(&self, path: &Path) {
        match self.way(path) {
            ResolvedPath::To(dir, name) if kind(&dir, &name).is_some() => {
                self.take_away(&dir, &name, path);
            }
            ResolvedPath::Blocked(dir, name, so_far) => self.take_away(&dir, &name, &so_far),
            ResolvedPath::To(..) | ResolvedPath::Missing => {}
        }
    }

    fn say(&self, words: String) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if !said.contains(&words) {
            said.push(words);
        }
    }

    /// The command has ended: reverts everything, and describes what was reverted.
    pub(crate) fn over(&self) -> Vec<String> {
        self.look();
        for (path, files) in &self.kept {
            self.restore(path, files, false, |_, _| false);
        }
        self.record_fetched();
        let after = self.survey_all();
        self.new_repositories(&after);
        self.passed_over(&after);
        self.clean_sequences(&after.repositories);
        self.check_names(&after);
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Searches the workspace. A folder that the command made unreadable could hide a repository: it
    /// becomes readable again.
    fn survey_all(&self) -> Survey {
        let mut found = self.survey();
        for _ in 0..MOST_HIDDEN {
            let hidden = found.unreadable.difference(&self.before.unreadable);
            let shown =
                hidden.filter_map(|path| self.relative(path)).filter(|path| self.show(path));
            if shown.count() == 0 {
                break;
            }
            found = self.survey();
        }
        found
    }

    /// Makes a folder readable for its owner.
    fn show(&self, path: &Path) -> bool {
        let ResolvedPath::To(dir, name) = self.way(path) else { return false };
        let done = folder(&dir, Path::new(&name)).is_ok_and(|dir| add_mode(&dir, Mode::RWXU));
        if done {
            self.say(format!("{} (it could not be listed; now it can)", path.display()));
        }
        done
    }

    /// Restores the files at a path to what they were, except for versions that `accepts` allows
    /// and, with `deletes`, for files that are gone.
    fn restore(
        &self,
        path: &Path,
        files: &Files,
        deletes: bool,
        mut accepts: impl FnMut(&Path, &(Vec<u8>, u32)) -> bool,
    ) {
        let mut now = Files::new();
        if self.keep(path, &mut now, &mut MOST.clone()).is_none() {
            // Too large or unreadable now: all of it goes, and what was there comes back.
            self.remove(path);
            for (file, (bytes, mode)) in files {
                self.put_back(file, bytes, *mode);
            }
            return;
        }
        // First what is new: a folder may be in the place of a file.
        let new = now.iter().filter(|(file, _)| !files.contains_key(*file));
        for (file, _) in new.filter(|(file, is)| !accepts(file, is)) {
            self.remove(file);
        }
        for (file, was @ (bytes, mode)) in files {
            let stays = match now.get(file) {
                Some(is) => is == was || accepts(file, is),
                None => deletes && !self.is_there(file),
            };
            if !stays {
                self.put_back(file, bytes, *mode);
            }
        }
    }

    /// Restores one file; what is in its place is moved away.
    fn put_back(&self, file: &Path, bytes: &[u8], mode: u32) {
        let there = self.is_there(file);
        self.remove(file);
        let done = match (mode, self.way(file)) {
            (LINK, ResolvedPath::To(dir, name)) => {
                rustix::fs::symlinkat(bytes, &dir, name.as_os_str()).is_ok()
            }
            (LINK | OTHER, _) => false,
            (mode, _) => self.root.put_back(file, bytes, mode).is_ok(),
        };
        match (done, there) {
            (true, true) => {}
            (true, false) => self.say(file.display().to_string()),
            (false, _) => self.say(format!("{} (it could NOT be restored)", file.display())),
        }
    }

    /// Reads the files at a path of the workspace; `None` if they are too large to hold or cannot be
    /// read.
    fn keep(&self, path: &Path, files: &mut Files, room: &mut u64) -> Option<()> {
        match self.way(path) {
            ResolvedPath::To(dir, name) => keep(&dir, &name, path, files, room),
            ResolvedPath::Missing => Some(()),
            ResolvedPath::Blocked(..) => None,
        }
    }

    fn is_there(&self, path: &Path) -> bool {
        match self.way(path) {
            ResolvedPath::To(dir, name) => kind(&dir, &name).is_some(),
            ResolvedPath::Blocked(..) => true,
            ResolvedPath::Missing => false,
        }
    }
}

/// Reads what a name in a folder refers to, and everything below it; `None` if that is too large to
/// hold or cannot be read. Follows no link.
fn keep(dir: &File, name: &OsStr, path: &Path, files: &mut Files, room: &mut u64) -> Option<()> {
    use std::io::Read as _;
    let about = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => return Some(()),
        about => about.ok()?,
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match FileType::from_raw_mode(about.st_mode) {
        FileType::Directory => {
            let flags = flags | OFlags::DIRECTORY;
            let inner = File::from(rustix::fs::openat(dir, name, flags, Mode::empty()).ok()?);
            for entry in rustix::fs::Dir::read_from(&inner).ok()? {
                let entry = entry.ok()?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name != "." && name != ".." {
                    keep(&inner, name, &path.join(name), files, room)?;
                }
            }
        }
        FileType::RegularFile => {
            let file = File::from(rustix::fs::openat(dir, name, flags, Mode::empty()).ok()?);
            let about = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
            *room = room.checked_sub(about.len())?;
            let mut bytes = Vec::new();
            file.take(about.len()).read_to_end(&mut bytes).ok()?;
            let mode = about.permissions().mode() & 0o7777;
            files.insert(path.to_path_buf(), (bytes, mode));
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(dir, name, Vec::new()).ok()?;
            files.insert(path.to_path_buf(), (target.into_bytes(), LINK));
        }
        _ => drop(files.insert(path.to_path_buf(), (Vec::new(), OTHER))),
    }
    Some(())
}
