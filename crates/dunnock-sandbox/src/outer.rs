//! The repository that a workspace belongs to, if its git folder is outside of the workspace: the
//! workspace is a folder of the repository, a linked work tree, or a submodule.
//!
//! The workspace and what is above it may come from anywhere. Invariant: a `.git` file alone
//! selects no git folder; the git folder must name the work tree in turn. Both belong to this user,
//! as git itself requires, and the home folder is in no such repository.

use crate::git_names::is_repository;
use crate::layout::Layout;
use crate::repositories::{target_of, text, work_tree_by_config};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The folders of a git folder that git writes to for a commit.
const FOLDERS: &[&str] = &["objects", "refs", "logs", "worktrees"];
/// Everything that git reads there.
const FILES: &[&str] = &[
    "HEAD",
    "config",
    "config.worktree",
    "packed-refs",
    "shallow",
    "info",
    "hooks",
    "modules",
    "objects",
    "refs",
    "logs",
    "worktrees",
];

/// A repository with its git folder outside of the workspace. Paths are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OuterRepository {
    /// The work tree: the workspace or a folder above it.
    pub top: PathBuf,
    /// The git folder of this work tree.
    pub git: PathBuf,
    /// The git folder that all work trees of the repository share; for many it is `git`.
    pub common: PathBuf,
    /// The user names it in the environment (`GIT_DIR`), so commands need the variables, too.
    by_environment: bool,
}

impl OuterRepository {
    /// The variables that git needs to find the repository.
    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        // The folders between may be on one of the sandbox's own file systems.
        let mut env = vec![("GIT_DISCOVERY_ACROSS_FILESYSTEM".to_owned(), "1".to_owned())];
        if self.by_environment {
            env.push(("GIT_DIR".into(), text(&self.git)));
            env.push(("GIT_WORK_TREE".into(), text(&self.top)));
        }
        env
    }

    /// Whether work trees lie inside the git folder, as in `git clone --bare x p; cd p; git worktree
    /// add a`.
    fn contains_work_trees(&self) -> bool {
        let named =
            std::fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        let mut trees = named.filter_map(|tree| {
            let dot = text(&tree.path().join("gitdir"))?;
            tree.path().join(dot.trim()).canonicalize().ok()
        });
        self.top.starts_with(&self.common) || trees.any(|dot| dot.starts_with(&self.common))
    }

    fn parts(&self, names: &[&str]) -> Vec<PathBuf> {
        let all = names.iter().map(|name| self.common.join(name));
        all.filter(|path| path.exists()).collect()
    }

    /// What of the git folder commands can read.
    pub(crate) fn readable(&self) -> Vec<PathBuf> {
        match self.contains_work_trees() {
            true => self.parts(FILES),
            false => vec![self.common.clone()],
        }
    }

    /// What of the git folder commands in this work tree can write.
    pub(crate) fn writable(&self) -> Vec<PathBuf> {
        match self.contains_work_trees() {
            true => self.parts(FOLDERS),
            false => vec![self.common.clone()],
        }
    }
}

/// The variables of git that name a repository.
#[derive(Debug, Clone, Default)]
pub struct GitVariables {
    /// `GIT_DIR`, resolved.
    pub folder: Option<PathBuf>,
    /// `GIT_WORK_TREE`, resolved.
    pub work_tree: Option<PathBuf>,
    /// The current folder, which is the work tree if nothing else names one.
    pub current: Option<PathBuf>,
}

impl GitVariables {
    /// Those of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let var = |name: &str| Path::new(&std::env::var_os(name)?).canonicalize().ok();
        let current = std::env::current_dir().ok().and_then(|dir| dir.canonicalize().ok());
        Self { folder: var("GIT_DIR"), work_tree: var("GIT_WORK_TREE"), current }
    }
}

impl Layout {
    /// The repository that a workspace belongs to, if its git folder is outside of the workspace.
    #[must_use]
    pub fn outer(&self, workspace: &Path) -> Option<OuterRepository> {
        let found = self.named_by_environment(workspace).or_else(|| found_above(workspace))?;
        let of_home = self.home.as_ref().is_some_and(|home| home.starts_with(&found.top));
        let system = found.top.parent().is_none();
        let inside = found.common.starts_with(workspace) || found.git.starts_with(workspace);
        let parts = [&found.top, &found.git, &found.common];
        let safe = !of_home && !system && !inside && parts.into_iter().all(|path| is_ours(path));
        safe.then_some(found)
    }

    /// The same, if the workspace is only a part of the work tree.
    #[must_use]
    pub fn outer_around(&self, workspace: &Path) -> Option<OuterRepository> {
        self.outer(workspace).filter(|outer| outer.top != workspace)
    }

    fn named_by_environment(&self, workspace: &Path) -> Option<OuterRepository> {
        let git = self.git_variables.folder.clone()?;
        let configured = || work_tree_by_config(&git)?.canonicalize().ok();
        let current = || self.git_variables.current.clone().filter(|dir| dir == workspace);
        let named = self.git_variables.work_tree.clone();
        let top = named.or_else(configured).or_else(current)?;
        let repository = is_repository(|part| git.join(part).exists());
        let common = common_of(&git)?;
        (repository && workspace.starts_with(&top)).then_some(OuterRepository {
            top,
            git,
            common,
            by_environment: true,
        })
    }
}

/// Looks for `.git` as git does: in the workspace, then in the folders above it.
fn found_above(workspace: &Path) -> Option<OuterRepository> {
    let exists = |up: &&Path| up.join(".git").symlink_metadata().is_ok();
    let top = workspace.ancestors().find(exists)?;
    let dot = top.join(".git");
    let about = dot.symlink_metadata().ok()?;
    let git = match about.is_dir() {
        true => dot,
        false if about.is_file() => target_of(&dot).filter(|git| names_back(git, top))?,
        false => return None,
    };
    let repository = is_repository(|part| git.join(part).exists());
    let common = common_of(&git).filter(|_| repository)?;
    Some(OuterRepository { top: top.to_path_buf(), git, common, by_environment: false })
}

/// Whether a git folder says that this is its work tree: a linked work tree in `gitdir`, a
/// submodule in `core.worktree`.
fn names_back(git: &Path, top: &Path) -> bool {
    let real = |path: PathBuf| path.canonicalize().ok();
    let linked = text(&git.join("gitdir")).and_then(|dot| real(git.join(dot.trim())));
    let dot = real(top.join(".git"));
    match linked {
        Some(named) => Some(named) == dot,
        None => work_tree_by_config(git).and_then(real).is_some_and(|named| named == top),
    }
}

/// The folder that a git folder shares with other work trees. It must contain that git folder.
fn common_of(git: &Path) -> Option<PathBuf> {
    let named = git.join("commondir");
    if named.symlink_metadata().is_err() {
        return Some(git.to_path_buf());
    }
    let common = git.join(text(&named)?.trim()).canonicalize().ok()?;
    let inside = git.parent() == Some(&common.join("worktrees"));
    let repository = is_repository(|part| common.join(part).exists());
    (inside && repository).then_some(common)
}

fn is_ours(path: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    path.symlink_metadata().is_ok_and(|about| about.is_dir() && about.uid() == me)
}
