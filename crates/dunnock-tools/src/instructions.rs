//! AGENTS.md: what a repository's authors want agents to know. Text only: nothing in it is run.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Limit for all of them together, so that a repository cannot push the task out of a small model's
/// context window.
const MOST: usize = 32 << 10;

/// Every AGENTS.md from the repository's root down to the folder, the most specific last;
/// `CLAUDE.md` where a folder has none. Each comes with its source.
#[must_use]
pub fn find(folder: &Path) -> Vec<(String, String)> {
    let top = top(folder);
    let mut folders: Vec<&Path> = folder.ancestors().take_while(|f| f.starts_with(&top)).collect();
    folders.reverse();
    let mut found: Vec<(String, String)> = folders
        .iter()
        .filter_map(|f| ["AGENTS.md", "CLAUDE.md"].iter().find_map(|name| read(f, name, &top)))
        .collect();
    // The most specific files get the available space first.
    let mut left = MOST;
    for (_, text) in found.iter_mut().rev() {
        if text.len() > left {
            let cut = text.floor_char_boundary(left);
            let gone = text.len() - cut;
            text.truncate(cut);
            text.push_str(&format!("\n[{gone} bytes left out]"));
        }
        left = left.saturating_sub(text.len());
    }
    found.retain(|(_, text)| !text.trim().is_empty());
    found
}

/// The nearest ancestor that is the root of a repository, or the folder itself.
fn top(folder: &Path) -> PathBuf {
    let mine = folder.ancestors().take_while(|f| owner(f) == owner(folder));
    mine.into_iter().find(|f| f.join(".git").exists()).unwrap_or(folder).to_path_buf()
}

/// The owner of a folder. Folders of another user, and those above them, do not count
/// (`/tmp/.git`).
fn owner(folder: &Path) -> Option<u32> {
    #[cfg(unix)]
    return std::fs::metadata(folder).ok().map(|m| std::os::unix::fs::MetadataExt::uid(&m));
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

/// A regular file inside the repository: a link out of it could show the model any of the user's
/// files.
fn read(folder: &Path, name: &str, top: &Path) -> Option<(String, String)> {
    let path = folder.join(name);
    let metadata = std::fs::symlink_metadata(&path).ok()?;
    let real = if metadata.is_symlink() { path.canonicalize().ok()? } else { path.clone() };
    let inside = top
        .canonicalize()
        .is_ok_and(|top| real.canonicalize().is_ok_and(|real| real.starts_with(top)));
    if !inside || !real.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(&real).ok()?.take(4 * MOST as u64).read_to_end(&mut bytes).ok()?;
    let shown = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
    Some((shown, String::from_utf8_lossy(&bytes).trim().to_owned()))
}
