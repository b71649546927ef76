//! The files of a folder: for menus, and for what a copy-and-paste session may ask for.

use std::path::Path;

/// The most files that a menu searches.
const FILES: usize = 50_000;

/// The files of a folder that git does not ignore.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut walk = ignore::WalkBuilder::new(folder);
    walk.hidden(false)
        .filter_entry(|entry| !matches!(entry.file_name().to_str(), Some(".git" | ".dunnock")));
    let mut all: Vec<String> = walk
        .build()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(|entry| {
            entry.path().strip_prefix(folder).ok().and_then(|p| p.to_str().map(str::to_owned))
        })
        .take(FILES)
        .collect();
    all.sort_by_key(|path| (path.matches('/').count(), path.clone()));
    all
}
