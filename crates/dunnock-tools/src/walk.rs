//! Walks the workspace as people see it: ignore files are honoured, `.git` and `.dunnock` are not there.
//!
//! Invariant: sorted, so that the same files always give the same answer. Links are listed, never followed.

use ignore::{DirEntry, WalkBuilder};
use std::path::Path;

/// Every entry below a folder, in order, the folder itself left out.
pub(crate) fn entries(folder: &Path, depth: Option<usize>) -> impl Iterator<Item = DirEntry> {
    let mut builder = WalkBuilder::new(folder);
    // Ignore files above speak for this folder only inside one repository: a `*` in the home folder is about other things.
    let repository = folder.ancestors().any(|f| f.join(".git").exists());
    builder
        .parents(repository)
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        .max_depth(depth)
        .sort_by_file_name(std::cmp::Ord::cmp)
        .filter_entry(|e| !matches!(e.file_name().to_str(), Some(".git" | ".dunnock")));
    builder.build().filter_map(Result::ok).filter(|e| e.depth() > 0)
}

/// A path below the root, with `/` on every system.
pub(crate) fn shown(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path);
    relative.to_string_lossy().replace('\\', "/")
}
