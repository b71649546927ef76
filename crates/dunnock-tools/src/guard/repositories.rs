//! Repositories that a command creates or prepares. They stay, but without anything that would run
//! when the user calls git.

use super::{Guard, ResolvedPath, config, kind};
use crate::root::RepoPath;
use dunnock_sandbox::{GIT_ACTS_ON, REPOSITORY, Survey, target_of, with_inner};
use rustix::fs::FileType;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What git does next in a stopped rebase or cherry-pick.
const SEQUENCES: &[&str] =
    &["rebase-merge/git-rebase-todo", "rebase-merge/git-rebase-todo.backup", "sequencer/todo"];
/// Files that name the merge strategy: git runs the program `git-merge-STRATEGY`.
const STRATEGIES: &[&str] = &["rebase-merge/strategy", "rebase-apply/strategy", "sequencer/opts"];
const KNOWN_STRATEGIES: &[&str] = &["ort", "recursive", "resolve", "octopus", "ours", "subtree"];
/// How many sample hooks a harmless repository can have, and how long each can be.
const MOST_SAMPLES: usize = 100;
const LONGEST: u64 = 64 << 10;
/// The change time of a file can be this much older than the time at which it was changed.
const TICK: Duration = Duration::from_millis(20);

impl Guard {
    /// Removes from new repositories what would run when the user calls git.
    pub(super) fn new_repositories(&self, after: &Survey) {
        for repository in after.repositories.difference(&self.before.repositories) {
            self.calm(repository, |_| true);
            // What a setting of the user's names in every repository.
            let named = self.layout.named_by_repository(repository);
            for path in named.difference(&self.before.named_by_git) {
                if let Some(path) = self.relative(path).filter(|path| path != Path::new("")) {
                    self.remove(&path);
                }
            }
        }
        for link in after.links.iter().filter(|link| self.layout.leads_to_kept_repository(link)) {
            if let Some(link) = self.relative(link) {
                self.remove(&link);
            }
        }
        for file in after.git_files.difference(&self.before.git_files) {
            self.check_git_file(file, &after.repositories);
        }
    }

    /// The same in folders that are not searched before a command, such as `node_modules`: there,
    /// whatever changed since it began.
    pub(super) fn passed_over(&self, after: &Survey) {
        let found = self.layout.survey_passed_over(self.root.path(), after);
        let new = |path: &Path| {
            let since = self.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            path.symlink_metadata().is_ok_and(|about| {
                let seconds = u64::try_from(about.ctime()).unwrap_or_default();
                let nanos = u32::try_from(about.ctime_nsec()).unwrap_or_default();
                Duration::new(seconds, nanos) + TICK >= since
            })
        };
        for repository in &found.repositories {
            if !self.before.repositories.contains(repository) {
                // It, or a folder above it, may have been moved here or completed.
                let above = repository.ancestors().take_while(|up| *up != self.root.path());
                let parts = REPOSITORY.iter().map(|name| repository.join(name));
                let moved = above.map(Path::to_path_buf).chain(parts).any(|path| new(&path));
                self.calm(repository, |path| moved || new(path));
            }
        }
        for file in found.git_files.iter().filter(|file| new(file)) {
            if !self.before.git_files.contains(file) {
                self.check_git_file(file, &found.repositories);
            }
        }
    }

    /// Removes what git acts on in a repository, if it is new and not harmless.
    fn calm(&self, repository: &Path, new: impl Fn(&Path) -> bool) {
        for name in GIT_ACTS_ON {
            let path = repository.join(name);
            let inner = std::fs::read_dir(&path).into_iter().flatten().flatten();
            let changed = new(&path) || inner.take(1_000).any(|entry| new(&entry.path()));
            let Some(relative) = self.relative(&path).filter(|_| changed) else { continue };
            match self.way(&relative) {
                ResolvedPath::To(dir, last) if kind(&dir, &last).is_some() => {
                    if !self.is_harmless(&relative, name) {
                        self.take_away(&dir, &last, &relative);
                    }
                }
                ResolvedPath::Blocked(dir, last, so_far) => self.take_away(&dir, &last, &so_far),
                ResolvedPath::To(..) | ResolvedPath::Missing => {}
            }
        }
    }

    /// A new file or link named `.git` may only lead to a submodule or a linked work tree of a
    /// repository of this workspace.
    fn check_git_file(&self, file: &Path, repositories: &BTreeSet<PathBuf>) {
        let Some(relative) = self.relative(file) else { return };
        let regular = file.symlink_metadata().is_ok_and(|about| about.is_file());
        let outer = self.layout.outer(self.root.path()).map(|outer| outer.common);
        // Another guard checks the repositories in the git folder of a work tree that is elsewhere.
        let outside = |target: &PathBuf| {
            outer.as_ref().is_some_and(|git| git != target && with_inner(git).contains(target))
        };
        let known = |target: &PathBuf| {
            let mut above = target.ancestors().skip(1);
            let inner = above.any(|up| up.ends_with(".git"));
            let found = repositories.contains(target) || self.before.repositories.contains(target);
            outside(target) || inner && found
        };
        if !(regular && target_of(file).is_some_and(|target| known(&target))) {
            self.remove(&relative);
        }
    }

    /// Whether a part of a repository runs nothing and reads nothing elsewhere.
    fn is_harmless(&self, path: &Path, name: &str) -> bool {
        let ResolvedPath::To(dir, last) = self.way(path) else { return false };
        let names = || {
            let entries = std::fs::read_dir(self.root.path().join(path)).into_iter().flatten();
            entries.flatten().map(|entry| entry.path())
        };
        let above = path.parent().and_then(Path::parent);
        let of_work_tree = above.is_some_and(|up| up.ends_with("worktrees") && self.has_git(up));
        match (kind(&dir, &last), name) {
            (Some(FileType::Directory), "hooks" | "remotes" | "branches")
                if std::fs::read_dir(self.root.path().join(path)).is_err() =>
            {
                false
            }
            (Some(FileType::Directory), "hooks") => {
                let sample = |hook: &Path| {
                    let small = hook.symlink_metadata().is_ok_and(|about| about.len() < LONGEST);
                    small && hook.extension().is_some_and(|end| end == "sample")
                };
                names().count() < MOST_SAMPLES && names().all(|hook| sample(&hook))
            }
            (Some(FileType::Directory), "remotes" | "branches") => names().next().is_none(),
            (Some(FileType::RegularFile), _) => {
                let text = self.text(path).unwrap_or_else(|| "?".into());
                match name {
                    "config" | "config.worktree" => {
                        config::is_tame(&text, self.is_of_submodule(path))
                    }
                    "commondir" => of_work_tree && text.trim() == "../..",
                    "gitdir" => of_work_tree,
                    "info/attributes" => text.trim().is_empty(),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    fn is_of_submodule(&self, config: &Path) -> bool {
        config.components().any(|part| part.as_os_str() == "modules") && self.has_git(config)
    }

    fn has_git(&self, path: &Path) -> bool {
        self.of_git_folder || path.components().any(|part| part.as_os_str() == ".git")
    }

    fn text(&self, path: &Path) -> Option<String> {
        let path = RepoPath::parse(&self.root, &path.to_string_lossy()).ok()?;
        let read = self.root.read(&path).ok()?;
        Some(String::from_utf8_lossy(&read.bytes).into_owned())
    }

    /// The lines of stopped rebases that run a command.
    pub(super) fn commands_to_run(&self, repositories: &BTreeSet<PathBuf>) -> BTreeSet<String> {
        let files = sequences(repositories).filter_map(|file| self.text(&self.relative(&file)?));
        files
            .flat_map(|text| {
                text.lines().filter(|line| runs(line)).map(str::to_owned).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Removes commands that a stopped rebase would run when the user continues it.
    pub(super) fn clean_sequences(&self, repositories: &BTreeSet<PathBuf>) {
        for file in sequences(repositories) {
            let Some(path) = self.relative(&file) else { continue };
            if !self.is_there(&path) {
                continue;
            }
            let Some(text) = self.text(&path) else {
                self.remove(&path);
                continue;
            };
            let planted = |line: &&str| runs(line) && !self.to_run.contains(*line);
            if !text.lines().any(|line| planted(&line)) {
                continue;
            }
            let kept: String = text
                .lines()
                .filter(|line| !planted(line))
                .map(|line| format!("{line}\n"))
                .collect();
            self.put_back(&path, kept.as_bytes(), 0o644);
        }
        let all = repositories.iter().flat_map(|dir| STRATEGIES.iter().map(|name| dir.join(name)));
        for path in all.filter_map(|file| self.relative(&file)) {
            if self.is_there(&path) && !self.text(&path).is_some_and(|text| known_strategy(&text)) {
                self.remove(&path);
            }
        }
    }
}

fn sequences(repositories: &BTreeSet<PathBuf>) -> impl Iterator<Item = PathBuf> {
    let existing = |file: &PathBuf| file.symlink_metadata().is_ok();
    repositories.iter().flat_map(|dir| SEQUENCES.iter().map(|name| dir.join(name))).filter(existing)
}

/// Whether a line of a rebase runs a command.
fn runs(line: &str) -> bool {
    let word = line.trim_start().split([' ', '\t']).next().unwrap_or_default();
    matches!(word, "x" | "exec")
}

/// Whether a file names only strategies that belong to git: one strategy, or options as git writes
/// them.
fn known_strategy(text: &str) -> bool {
    if KNOWN_STRATEGIES.contains(&text.trim()) {
        return true;
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next() == Some("[options]")
        && lines.all(|line| match line.split_once('=') {
            Some((key, value)) if key.trim().eq_ignore_ascii_case("strategy") => {
                KNOWN_STRATEGIES.contains(&value.trim())
            }
            Some((key, _)) => key.trim().bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'),
            None => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_of_a_rebase_are_removed() {
        for line in ["exec make", "x make", "  exec\tmake"] {
            assert!(runs(line), "{line}");
        }
        for line in ["pick 1a2b exec", "# exec make", "fixup 1a2b", "execute", "merge -C 1a x"] {
            assert!(!runs(line), "{line}");
        }
        assert!(known_strategy("ort\n"));
        assert!(known_strategy("[options]\n\tstrategy = ours\n\tsignoff = true\n"));
        assert!(!known_strategy("../x\n"));
        assert!(!known_strategy("e=/x"));
        assert!(!known_strategy("[options] strategy = e/x\n"));
        assert!(!known_strategy("[options]\n\tstrategy = evil\n"));
    }
}
