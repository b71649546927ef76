//! What is in a workspace that the sandbox and the guard must know: secrets, sockets, repositories,
//! and names that other programs act on.

use crate::git_names::{REPOSITORY, is_repository};
use crate::layout::Layout;
use crate::outer::OuterRepository;
use crate::repositories::{self, Tracked};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

/// Folders with many files and no secrets of the user's.
pub(crate) const PASSED_OVER: &[&str] = &[
    "node_modules",
    "target",
    ".git",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    "vendor",
    ".gradle",
];
/// At most this many folders are searched for secrets, sockets and repositories.
const MOST_FOLDERS: usize = 20_000;
/// At most this many repositories are searched for submodules.
const MOST_REPOSITORIES: usize = 1_000;

/// What an index tracks, as of its last change.
#[derive(Debug, Clone)]
pub struct Index {
    changed: (i64, i64),
    tracked: Arc<Tracked>,
}

/// What was found in a folder, as of its last change.
#[derive(Debug, Clone, Default)]
pub struct Found {
    changed: (i64, i64),
    folders: Vec<PathBuf>,
    secret: Vec<PathBuf>,
    /// Sockets of programs outside, and paths that the user denies.
    sockets: Vec<PathBuf>,
    /// Folders that are searched only for repositories.
    passed_over: Vec<PathBuf>,
    /// The folder contains something protected.
    guarded: bool,
    /// The `.git` in it, whatever it is.
    git: Option<PathBuf>,
    /// git takes the folder itself for a repository.
    is_repository: bool,
    /// Entries of protected and watched names, or of the first component of such a name.
    named: Vec<PathBuf>,
    links: Vec<PathBuf>,
    /// It cannot be listed.
    unreadable: bool,
}

/// What was found in a whole workspace.
#[derive(Debug, Default)]
pub struct Survey {
    pub(crate) secret: Vec<PathBuf>,
    pub(crate) sockets: Vec<PathBuf>,
    pub(crate) guarded: Vec<PathBuf>,
    passed_over: Vec<PathBuf>,
    /// Folders of repositories in the workspace, with those of submodules and linked work trees in
    /// them.
    pub repositories: BTreeSet<PathBuf>,
    /// Files and links named `.git`.
    pub git_files: BTreeSet<PathBuf>,
    /// Files and folders of protected and watched names.
    pub named: BTreeSet<PathBuf>,
    /// Those of watched names.
    pub watched: BTreeSet<PathBuf>,
    /// What the configuration of git names in the workspace, whether or not it exists.
    pub named_by_git: BTreeSet<PathBuf>,
    /// Symbolic links.
    pub links: Vec<PathBuf>,
    /// Folders that cannot be listed.
    pub unreadable: BTreeSet<PathBuf>,
}

impl Layout {
    /// Finds secret files, sockets, repositories and protected names in a workspace. Reads only
    /// folders that changed.
    #[must_use]
    pub fn survey(&self, workspace: &Path) -> Survey {
        let mut all = Survey::default();
        self.walk(workspace, vec![workspace.to_path_buf()], |folder, found| {
            all.secret.extend(found.secret.iter().cloned());
            all.sockets.extend(found.sockets.iter().cloned());
            all.guarded.extend(found.guarded.then(|| folder.to_path_buf()));
            for path in &found.named {
                all.named.extend(named_at(path, &self.protected));
                all.watched.extend(named_at(path, &self.watched));
            }
            all.passed_over.extend(found.passed_over.iter().cloned());
            all.links.extend(found.links.iter().cloned());
            all.unreadable.extend(found.unreadable.then(|| folder.to_path_buf()));
            note_repositories(&mut all, folder, found);
            found.folders.clone()
        });
        // What a link leads to is what other programs follow.
        let links = all.watched.iter().filter(|path| path.is_symlink());
        let targets: Vec<PathBuf> = links
            .filter_map(|link| link.canonicalize().ok())
            .filter(|target| target.starts_with(workspace) && target != workspace)
            .collect();
        all.watched.extend(targets);
        all.named.extend(all.watched.iter().cloned());
        self.enter_gitlinks(workspace, &mut all);
        for repository in all.repositories.clone() {
            all.repositories.extend(repositories::with_inner(&repository));
        }
        all.repositories.retain(|path| path.starts_with(workspace));
        self.note_named(workspace, &mut all);
        all
    }

    /// The same for the git folder of a work tree that is elsewhere: the repositories in it, and what
    /// their configuration names there.
    #[must_use]
    pub fn survey_git_folder(&self, folder: &Path) -> Survey {
        let mut all = Survey::default();
        all.repositories.extend(repositories::with_inner(folder));
        let inner = all
            .repositories
            .iter()
            .flat_map(|dir| [dir.clone(), dir.join("modules"), dir.join("worktrees")]);
        let unreadable = |dir: &PathBuf| {
            let listed = std::fs::read_dir(dir);
            listed.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        };
        all.unreadable = inner.filter(unreadable).collect();
        for repository in &all.repositories {
            all.named_by_git.extend(self.named_by_repository(repository));
        }
        all.named_by_git.retain(|path| path.starts_with(folder) && path != folder);
        all
    }

    /// What is hidden in a workspace, whatever the user allows.
    #[must_use]
    pub fn hidden_in(&self, workspace: &Path) -> Vec<PathBuf> {
        let mut hidden = self.survey(workspace).sockets;
        hidden.push(workspace.join(".dunnock"));
        hidden
    }

    /// Repositories in the folders that a survey passed over, because they hold many files that
    /// nobody wrote by hand, such as `node_modules`.
    #[must_use]
    pub fn survey_passed_over(&self, workspace: &Path, survey: &Survey) -> Survey {
        let mut all = Survey::default();
        self.walk(workspace, survey.passed_over.clone(), |folder, found| {
            all.unreadable.extend(found.unreadable.then(|| folder.to_path_buf()));
            note_repositories(&mut all, folder, found);
            found.folders.iter().chain(&found.passed_over).cloned().collect()
        });
        for repository in all.repositories.clone() {
            all.repositories.extend(repositories::with_inner(&repository));
        }
        all
    }

    /// Submodules are repositories in whatever folder they are.
    fn enter_gitlinks(&self, workspace: &Path, all: &mut Survey) {
        let mut waiting: Vec<PathBuf> = all.repositories.iter().cloned().collect();
        let mut seen = BTreeSet::new();
        while let Some(repository) = waiting.pop() {
            if !seen.insert(repository.clone()) || seen.len() > MOST_REPOSITORIES {
                continue;
            }
            let top = repositories::work_tree_of(&repository);
            for link in &self.tracked(&repository).links {
                let git = top.join(link).join(".git");
                let Ok(about) = git.symlink_metadata() else { continue };
                if !about.is_dir() {
                    all.git_files.insert(git.clone());
                }
                if let Some(inner) = repositories::at(&git).filter(|at| at.starts_with(workspace)) {
                    all.repositories.insert(inner.clone());
                    waiting.push(inner);
                }
            }
        }
    }

    /// What the index of a repository tracks, read again only if it changed.
    fn tracked(&self, repository: &Path) -> Arc<Tracked> {
        let Ok(about) = repository.join("index").symlink_metadata() else {
            return Arc::default();
        };
        let changed = (about.ctime(), about.ctime_nsec());
        let mut known = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(repository) {
            Some(index) if index.changed == changed => index.tracked.clone(),
            _ => {
                let tracked = Arc::new(repositories::tracked(repository, self.secret));
                let index = Index { changed: lasting(changed), tracked: tracked.clone() };
                known.insert(repository.to_path_buf(), index);
                tracked
            }
        }
    }

    /// The secret files that a repository tracked when this process first looked: an approved command
    /// can add others, and a yes to that is no yes to read them.
    #[must_use]
    pub fn tracked_secrets(&self, outer: &OuterRepository) -> Arc<BTreeSet<PathBuf>> {
        let mut known = self.tracked_secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let look = || {
            let tracked = self.tracked(&outer.git);
            Arc::new(tracked.secrets.iter().map(|file| outer.top.join(file)).collect())
        };
        known.entry(outer.git.clone()).or_insert_with(look).clone()
    }

    /// What is hidden of a work tree around the workspace: secrets that git does not track, sockets
    /// of programs, and our own notes.
    #[must_use]
    pub(crate) fn hidden_around(&self, workspace: &Path, outer: &OuterRepository) -> Vec<PathBuf> {
        let mut hidden = Vec::new();
        let mut secrets = Vec::new();
        self.walk(&outer.top, vec![outer.top.clone()], |folder, found| {
            hidden.extend(found.sockets.iter().cloned());
            secrets.extend(found.secret.iter().cloned());
            let own = folder.join(".dunnock");
            let inner = found.folders.iter().filter(|inner| **inner != own && *inner != workspace);
            let inner = inner.cloned().collect();
            hidden.extend(found.folders.contains(&own).then_some(own));
            inner
        });
        let tracked = self.tracked_secrets(outer);
        hidden.extend(secrets.into_iter().filter(|file| !tracked.contains(file)));
        hidden
    }

    /// Adds what the user's configuration of git and those of the repositories name.
    fn note_named(&self, workspace: &Path, all: &mut Survey) {
        for repository in &all.repositories {
            all.named_by_git.extend(self.named_by_repository(repository));
        }
        if let Some(outer) = self.outer(workspace) {
            for top in [workspace, &outer.top] {
                all.named_by_git.extend(self.named_by(&outer.git, top));
            }
        }
        all.named_by_git.retain(|path| path.starts_with(workspace) && path != workspace);
    }

    /// Whether a link leads to a repository among the files that commands keep outside of their
    /// workspace. Nobody checks those.
    #[must_use]
    pub fn leads_to_kept_repository(&self, link: &Path) -> bool {
        let Ok(target) = link.canonicalize() else { return false };
        let boxes = self.boxes.canonicalize().unwrap_or_else(|_| self.boxes.clone());
        let mut kept = target.ancestors().take_while(|up| up.starts_with(&boxes));
        kept.any(|up| {
            repositories::at(&up.join(".git")).is_some()
                || is_repository(|part| up.join(part).exists())
        })
    }

    /// What the user's configuration of git and that of a repository make git run or read there.
    #[must_use]
    pub fn named_by_repository(&self, repository: &Path) -> BTreeSet<PathBuf> {
        self.named_by(repository, &repositories::work_tree_of(repository))
    }

    /// What the configuration makes git run or read for a repository.
    fn named_by(&self, repository: &Path, top: &Path) -> BTreeSet<PathBuf> {
        let own = repositories::configs_of(repository);
        let configs = self.git_configs.iter().chain(&own);
        configs
            .flat_map(|config| repositories::named_by(config, top, self.home.as_deref()))
            .collect()
    }

    /// Whether the configuration of git makes it run or read this file of a workspace.
    #[must_use]
    pub fn is_named_by_git(&self, workspace: &Path, file: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let below = |named: &PathBuf| {
            named != workspace
                && named.starts_with(workspace)
                && (file.starts_with(named) || real(file).starts_with(real(named)))
        };
        let inside = file.ancestors().skip(1).take_while(|up| up.starts_with(workspace));
        let inside =
            inside.filter_map(|up| Some((repositories::at(&up.join(".git"))?, up.to_path_buf())));
        let outer = self.outer(workspace);
        let above = outer.iter().flat_map(|outer| {
            [workspace, &outer.top].map(|top| (outer.git.clone(), top.to_path_buf()))
        });
        let mut all = inside.chain(above);
        all.any(|(repository, top)| self.named_by(&repository, &top).iter().any(below))
    }

    /// Visits folders, breadth first; the visitor returns those to visit next.
    fn walk(
        &self,
        workspace: &Path,
        from: Vec<PathBuf>,
        mut visit: impl FnMut(&Path, &Found) -> Vec<PathBuf>,
    ) {
        let mut known = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(workspace.to_path_buf()).or_default();
        let mut waiting = std::collections::VecDeque::from(from);
        let mut looked = 0;
        while let Some(folder) = waiting.pop_front() {
            looked += 1;
            // The change time cannot be set back, unlike the modification time.
            let Ok(changed) = folder.symlink_metadata().map(|m| (m.ctime(), m.ctime_nsec())) else {
                continue;
            };
            if looked > MOST_FOLDERS {
                break;
            }
            let fresh = known.get(&folder).is_some_and(|found| found.changed == changed);
            if !fresh {
                known.insert(folder.clone(), self.read(workspace, &folder, changed));
            }
            if let Some(found) = known.get(&folder) {
                waiting.extend(visit(&folder, found));
            }
        }
    }

    fn read(&self, workspace: &Path, folder: &Path, changed: (i64, i64)) -> Found {
        use std::os::unix::fs::FileTypeExt as _;
        let mut found = Found::default();
        let mut names = BTreeSet::new();
        let entries = std::fs::read_dir(folder);
        found.unreadable =
            entries.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        for entry in entries.into_iter().flatten().flatten() {
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            let name = name.to_string_lossy();
            let lower = name.to_ascii_lowercase();
            let first = |names: &Vec<String>| names.first().is_some_and(|of| is_named(&lower, of));
            let path = entry.path();
            let protected = self.protected.iter().any(first);
            found.guarded |= protected;
            if protected || self.watched.iter().any(first) {
                found.named.push(path.clone());
            }
            if name == ".git" {
                found.git = Some(path.clone());
            } else if kind.is_symlink() {
                found.links.push(path.clone());
            }
            if let Some(part) = REPOSITORY.iter().find(|part| **part == name) {
                names.insert(*part);
            }
            if path.strip_prefix(workspace).is_ok_and(|path| (self.denied)(path)) {
                found.sockets.push(path); // hidden whatever the user allowed
            } else if kind.is_dir() && name == ".git" {
                // Its own rules apply in there.
            } else if kind.is_dir() && PASSED_OVER.contains(&name.as_ref()) {
                found.passed_over.push(path);
            } else if kind.is_dir() {
                found.folders.push(path);
            } else if kind.is_socket() {
                found.sockets.push(path);
            } else if kind.is_file() && (self.secret)(&name) {
                found.secret.push(path);
            } else if kind.is_symlink() && (self.secret)(&name) {
                // The target of the link is the secret.
                found.secret.extend(
                    path.canonicalize()
                        .ok()
                        .filter(|real| real.starts_with(workspace) && real.is_file()),
                );
            }
        }
        found.is_repository = is_repository(|part| names.contains(part));
        found.changed = lasting(changed);
        found
    }
}

/// The files and folders of these names that begin with this entry.
fn named_at(entry: &Path, table: &[Vec<String>]) -> Vec<PathBuf> {
    let name = entry.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let rest = table.iter().filter_map(|names| {
        names.split_first().filter(|(first, _)| is_named(&name, first)).map(|(_, rest)| rest)
    });
    let path = |rest: &[String]| rest.iter().fold(entry.to_path_buf(), |at, name| at.join(name));
    rest.map(path).filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// Notes the repositories in a folder.
fn note_repositories(all: &mut Survey, folder: &Path, found: &Found) {
    if found.is_repository {
        all.repositories.insert(folder.to_path_buf());
    }
    let Some(git) = &found.git else { return };
    all.repositories.extend(repositories::at(git));
    if !git.symlink_metadata().is_ok_and(|about| about.is_dir()) {
        all.git_files.insert(git.clone());
    }
}

/// Whether a name in lower case is the one in a table, which may begin with `*`.
fn is_named(name: &str, known: &str) -> bool {
    match known.strip_prefix('*') {
        Some(end) => name.ends_with(end),
        None => name == known,
    }
}

/// The change time that a cached result is valid for. Within one clock tick the folder could change
/// again unnoticed: then it is valid for none.
fn lasting(changed: (i64, i64)) -> (i64, i64) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let then =
        Duration::new(u64::try_from(changed.0).unwrap_or(0), u32::try_from(changed.1).unwrap_or(0));
    if now.saturating_sub(then) < Duration::from_millis(50) { (0, 0) } else { changed }
}
