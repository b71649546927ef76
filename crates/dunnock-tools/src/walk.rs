//! Walks the workspace as people see it: ignore files are honoured, `.git` and `.dunnock` are
//! skipped.
//!
//! Invariant: threads share the walk, and the results are sorted, so the same files always give the
//! same answer. Links are listed, never followed.

use crate::root::Root;
use ignore::types::Types;
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::path::Path;
use std::sync::Arc;

/// A walk that has not started yet.
pub(crate) struct Walk<'a> {
    root: &'a Path,
    builder: WalkBuilder,
}

impl<'a> Walk<'a> {
    /// Walks a folder below the root, at most `depth` levels deep.
    pub(crate) fn new(root: &'a Arc<Root>, folder: &Path, depth: Option<usize>) -> Self {
        let mut builder = WalkBuilder::new(folder);
        // Ignore files in parent folders apply only inside a repository: a `*` in the home folder
        // is about other things.
        let repository = folder.ancestors().any(|f| f.join(".git").exists());
        let all = root.clone();
        builder
            .parents(repository)
            .hidden(false)
            .follow_links(false)
            .require_git(false)
            .max_depth(depth)
            .filter_entry(move |e| {
                !matches!(e.file_name().to_str(), Some(".git" | ".dunnock"))
                    && !all.is_closed(e.path())
            });
        Self { root: root.shown_from(), builder }
    }

    /// Limits the walk to files of these types.
    pub(crate) fn only(mut self, types: Types) -> Self {
        self.builder.types(types);
        self
    }

    /// Passes every entry except the folder itself, with its key, to a visitor; each thread has its
    /// own. A visitor that returns `false` ends the walk.
    pub(crate) fn each<'s, V>(self, mut visitor: impl FnMut() -> V)
    where
        V: FnMut(Key, DirEntry) -> bool + Send + 's,
    {
        let root = self.root;
        self.builder.build_parallel().run(|| {
            let mut visit = visitor();
            Box::new(move |entry| match entry {
                Ok(entry) if entry.depth() > 0 => match visit(Key::of(root, entry.path()), entry) {
                    true => WalkState::Continue,
                    false => WalkState::Quit,
                },
                _ => WalkState::Continue,
            })
        });
    }
}

/// A path below the root that sorts in walk order: a folder's contents follow right after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(String);

impl Key {
    fn of(root: &Path, path: &Path) -> Self {
        let relative = path.strip_prefix(root).unwrap_or(path);
        let mut text = relative.to_string_lossy().into_owned();
        if cfg!(windows) {
            text = text.replace('\\', "/");
        }
        // Sorts before every character that a name can contain.
        Self(text.replace('/', "\0"))
    }

    /// The path, with `/` on every system.
    pub(crate) fn shown(&self) -> String {
        self.0.replace('\0', "/")
    }
}
