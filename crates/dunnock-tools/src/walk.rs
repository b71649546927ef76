//! Walks the workspace as people see it: ignore files are honoured, `.git` and `.dunnock` are not there.
//!
//! Invariant: every thread walks its share, and what was found is sorted: the same files always give the same answer. Links are
//! listed, never followed.

use ignore::types::Types;
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::path::Path;

/// A walk that is about to begin.
pub(crate) struct Walk<'a> {
    root: &'a Path,
    builder: WalkBuilder,
}

impl<'a> Walk<'a> {
    /// Through a folder of the root, so many levels deep.
    pub(crate) fn new(root: &'a Path, folder: &Path, depth: Option<usize>) -> Self {
        let mut builder = WalkBuilder::new(folder);
        // Ignore files above speak for this folder only inside one repository: a `*` in the home folder is about other things.
        let repository = folder.ancestors().any(|f| f.join(".git").exists());
        builder
            .parents(repository)
            .hidden(false)
            .follow_links(false)
            .require_git(false)
            .max_depth(depth)
            .filter_entry(|e| !matches!(e.file_name().to_str(), Some(".git" | ".dunnock")));
        Self { root, builder }
    }

    /// Only files of a kind.
    pub(crate) fn only(mut self, types: Types) -> Self {
        self.builder.types(types);
        self
    }

    /// Shows every entry but the folder itself, with its key, to one of the visitors that are made, one a thread. A visitor that
    /// says `false` ends the walk.
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

/// A path below the root that sorts as a walk goes: what is in a folder comes right behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(String);

impl Key {
    fn of(root: &Path, path: &Path) -> Self {
        let relative = path.strip_prefix(root).unwrap_or(path);
        let mut text = relative.to_string_lossy().into_owned();
        if cfg!(windows) {
            text = text.replace('\\', "/");
        }
        // Before everything that a name can hold.
        Self(text.replace('/', "\0"))
    }

    /// The path, with `/` on every system.
    pub(crate) fn shown(&self) -> String {
        self.0.replace('\0', "/")
    }
}
