//! What a repository lost between two moments.
//!
//! Ordinary work adds to history: a ref moves, and its reflog says where it was. That is no loss,
//! and neither is what git itself expires. A loss is a ref that is gone or moved without a trace,
//! an entry of a reflog or a stash that is gone before its time, or an object that is gone.

use super::files;
use super::objects;
use super::record::{Repo, STASH, STASH_LOG, entry_of, new_object};
use dunnock_proto::count;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Git expires entries of reflogs after 30 days at the earliest.
const EXPIRES: i64 = 30 * 86_400;
/// Refs that git deletes in ordinary work.
const PASSING: &[&str] = &["refs/bisect", "refs/rewritten", "refs/worktree", "refs/prefetch"];
/// Names in one report.
const NAMED: usize = 5;

/// A ref that is gone, or was moved without a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LostRef {
    pub(super) name: PathBuf,
    pub(super) was: String,
    /// Where it is now, if it was moved.
    pub(super) now: Option<String>,
}

/// What one repository lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Loss {
    /// The git folder.
    pub(super) dir: PathBuf,
    /// It is no repository any more.
    pub(super) destroyed: bool,
    pub(super) refs: Vec<LostRef>,
    /// Reflogs with lost entries, except the stash.
    pub(super) logs: Vec<PathBuf>,
    entries: usize,
    pub(super) stashes: usize,
    pub(super) objects: usize,
    /// Packs that were changed in place.
    pub(super) damaged: Vec<String>,
    /// Branches whose old commits git moved to `refs/original`.
    rewritten: usize,
}

impl Loss {
    /// Compares the small files of a repository.
    pub(super) fn between(dir: &Path, before: &Repo, now: &Repo, git: Option<&OwnedFd>) -> Self {
        let mut loss = Self { dir: dir.to_path_buf(), ..Self::default() };
        loss.destroyed = before.whole && !now.whole;
        let (old, new) = (before.refs(), now.refs());
        let added: BTreeSet<(&PathBuf, &String)> =
            new.iter().filter(|(name, _)| !old.contains_key(*name)).collect();
        loss.rewritten = added.iter().filter(|(name, _)| name.starts_with("refs/original")).count();
        let mut renamed = BTreeSet::new();
        for (name, was) in old.iter().filter(|(name, _)| name.as_path() != Path::new(STASH)) {
            let lost = |now| LostRef { name: name.clone(), was: was.clone(), now };
            match new.get(name) {
                Some(now) if now == was => {}
                None if PASSING.iter().any(|known| name.starts_with(known)) => {}
                None if added.iter().any(|(other, now)| *now == was && same_kind(name, other)) => {
                    renamed.insert(Path::new("logs").join(name));
                }
                None => loss.refs.push(lost(None)),
                Some(_) if name.starts_with("refs/remotes") => {}
                Some(moved) => {
                    let traced = now.log(Path::new("logs").join(name)).iter().any(|line| {
                        line.split(|b| *b == b' ').take(2).any(|object| object == was.as_bytes())
                    });
                    let follows = || git.is_some_and(|git| objects::is_ancestor(git, was, moved));
                    if !traced && !follows() {
                        loss.refs.push(lost(Some(moved.clone())));
                    }
                }
            }
        }
        let since = files::now() / 1000 - EXPIRES;
        for path in before.logs().filter(|path| !renamed.contains(*path)) {
            let there: BTreeSet<&[u8]> = now.log(path).into_iter().map(entry_of).collect();
            let gone = before.log(path).into_iter().filter(|line| !there.contains(entry_of(line)));
            if path.as_path() == Path::new(STASH_LOG) {
                loss.stashes += gone.count();
                continue;
            }
            let of_ref = path.strip_prefix("logs").unwrap_or(path);
            let deleted = loss.refs.iter().any(|lost| lost.name == of_ref && lost.now.is_none());
            let entries = gone.filter(|line| time_of(line).is_none_or(|at| at > since)).count();
            if entries > 0 {
                loss.logs.push(path.clone());
                // The reflog of a deleted branch goes with it.
                loss.entries += if deleted { 0 } else { entries };
            }
        }
        if before.bytes(STASH_LOG).is_none() && old.contains_key(Path::new(STASH)) {
            loss.stashes += usize::from(!new.contains_key(Path::new(STASH)));
        }
        loss
    }

    /// Whether undo has something to restore.
    pub(super) fn is_any(&self) -> bool {
        let Self { destroyed, refs, logs, stashes, objects, damaged, .. } = self;
        *destroyed
            || !(refs.is_empty() && logs.is_empty() && damaged.is_empty())
            || stashes + objects > 0
    }

    /// Whether nothing but stashes is lost, at most this many.
    pub(super) fn is_pop(&self, pops: usize) -> bool {
        let only = Self { dir: self.dir.clone(), stashes: self.stashes, ..Self::default() };
        *self == only && self.stashes <= pops
    }

    /// What is lost, and how; without what cannot be restored.
    fn items(&self) -> Vec<(String, &'static str)> {
        let Self { destroyed, refs, entries, stashes, objects, .. } = self;
        let were =
            |n: usize, one: &'static str, more: &'static str| if n == 1 { one } else { more };
        let mut items = Vec::new();
        if *destroyed {
            items.push(("the repository".to_owned(), "was destroyed"));
        } else {
            for lost in refs.iter().take(NAMED) {
                let was = lost.was.get(..7).unwrap_or_default();
                let how = if lost.now.is_none() { "was deleted" } else { "was overwritten" };
                items.push((format!("{} (was {was})", named(&lost.name)), how));
            }
            if let Some(more @ 1..) = refs.len().checked_sub(NAMED) {
                let how = were(more, "was deleted or overwritten", "were deleted or overwritten");
                items.push((count(more, "more ref"), how));
            }
            let deleted = |n| were(n, "was deleted", "were deleted");
            if *stashes > 0 {
                items.push((
                    entry(*stashes, "stash"),
                    were(*stashes, "was dropped", "were dropped"),
                ));
            }
            if *entries > 0 {
                items.push((entry(*entries, "reflog"), deleted(*entries)));
            }
            if *objects > 0 {
                items.push((count(*objects, "object file"), deleted(*objects)));
            }
        }
        // Which repository, if it is not the one of the workspace.
        if self.dir != Path::new(".git") {
            let of = format!(" of {}", repository(&self.dir));
            items.iter_mut().for_each(|(item, _)| item.push_str(&of));
        }
        items
    }

    /// Names what can be restored.
    pub(super) fn restorable(&self) -> Vec<String> {
        self.items().into_iter().map(|(item, _)| item).collect()
    }

    /// Describes the loss.
    pub(super) fn words(&self) -> Vec<String> {
        let items = self.items().into_iter().map(|(item, how)| format!("{item} {how}"));
        let damaged = self.damaged.iter().take(NAMED);
        let damaged = damaged
            .map(|name| format!("{} was changed and cannot be restored", shown(Path::new(name))));
        let rewritten = (self.rewritten > 0 && !self.destroyed).then(|| {
            let refs = count(self.rewritten, "ref");
            let were = if self.rewritten == 1 { "was" } else { "were" };
            format!("{refs} {were} rewritten (the old commits are in refs/original)")
        });
        items.chain(damaged).chain(rewritten).collect()
    }
}

fn entry(n: usize, of: &str) -> String {
    if n == 1 { format!("1 {of} entry") } else { format!("{n} {of} entries") }
}

/// The name of a repository for people: the folder that contains its `.git`.
pub(super) fn repository(dir: &Path) -> String {
    match dir.file_name().is_some_and(|name| name == ".git") {
        true => shown(dir.parent().unwrap_or(dir)),
        false => shown(dir),
    }
}

/// Whether two refs are of the same kind: branches, tags, or branches of remotes.
fn same_kind(a: &Path, b: &Path) -> bool {
    a.components().nth(1) == b.components().nth(1)
}

/// When a line of a reflog was written, in seconds.
fn time_of(line: &[u8]) -> Option<i64> {
    let text = String::from_utf8_lossy(line);
    let before_message = text.split('\t').next()?;
    before_message.rsplit_once("> ")?.1.split(' ').next()?.parse().ok()
}

/// A path without characters that a terminal would act on.
pub(super) fn shown(path: &Path) -> String {
    path.to_string_lossy()
        .chars()
        .flat_map(|c| {
            let hidden = c.is_control() || dunnock_core::policy::is_invisible(c);
            if hidden { c.escape_unicode().collect::<Vec<char>>() } else { vec![c] }
        })
        .take(200)
        .collect()
}

/// A ref as people call it.
pub(super) fn named(name: &Path) -> String {
    let kinds = [("refs/heads", "branch"), ("refs/tags", "tag"), ("refs/remotes", "remote branch")];
    let known = kinds.iter().find_map(|(start, kind)| {
        Some(format!("{kind} \"{}\"", shown(name.strip_prefix(start).ok()?)))
    });
    known.unwrap_or_else(|| shown(name))
}

/// Reflog lines with the lost ones in their old places, and what was added since at the end.
pub(super) fn merged(before: &[&[u8]], now: &[&[u8]], chained: bool) -> Vec<u8> {
    let known: BTreeSet<&[u8]> = before.iter().map(|line| entry_of(line)).collect();
    let added = now.iter().filter(|line| !known.contains(entry_of(line)));
    let mut out = Vec::new();
    let mut last: Option<String> = None;
    for line in before.iter().chain(added) {
        match last.as_ref().filter(|_| chained) {
            // Each entry of the stash names the one before it.
            Some(last) => {
                out.extend(last.as_bytes());
                out.extend(entry_of(line));
            }
            None => out.extend(*line),
        }
        out.push(b'\n');
        last = new_object(line).map(str::to_owned);
    }
    out
}
