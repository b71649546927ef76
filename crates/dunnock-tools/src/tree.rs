//! A name for the files of a workspace, by a plain walk. (Checkpoints, when they come, know it without one.)
//!
//! Left out: what ignore files name, `.git`, `.dunnock`, folders that say of themselves that they are caches, and what the
//! program writes itself. The name says which of the last were left out, so that a later look leaves out the same.

use crate::walk;
use dunnock_core::ports::{Files, Wait};
use dunnock_proto::{Hash, Tree};
use std::path::{Path, PathBuf};

/// Files above this are known by size and time of change, not by content.
const LARGE: u64 = 50 << 20;

/// Walks and hashes.
#[derive(Debug, Default)]
pub struct PlainWalk {
    own: Vec<PathBuf>,
}

impl PlainWalk {
    /// Leaves these files and folders out, by their real paths.
    #[must_use]
    pub fn without(own: Vec<PathBuf>) -> Self {
        Self { own }
    }
}

impl Files for PlainWalk {
    fn tree<'a>(&'a self, workspace: &'a str) -> Wait<'a, Result<Tree, String>> {
        let root = Path::new(workspace).to_path_buf();
        let inside = self.own.iter().filter_map(|path| path.strip_prefix(&root).ok()?.to_str());
        let left: Vec<String> = inside.filter(|path| !path.is_empty()).map(str::to_owned).collect();
        Box::pin(async move {
            let walked = tokio::task::spawn_blocking(move || name(&root, &left)).await;
            walked.map_err(|e| e.to_string())
        })
    }

    fn holds<'a>(&'a self, workspace: &'a str, tree: &'a Tree) -> Wait<'a, bool> {
        let root = Path::new(workspace).to_path_buf();
        let left = tree.0.split_once(LEFT).map_or("[]", |(_, left)| left);
        let left: Vec<String> = serde_json::from_str(left).unwrap_or_default();
        Box::pin(async move {
            let walked = tokio::task::spawn_blocking(move || name(&root, &left)).await;
            walked.is_ok_and(|now| now == *tree)
        })
    }
}

/// Between the hash and what was left out.
const LEFT: &str = " without ";

/// What caches say of themselves, and the one kind that does not.
fn is_cache(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "__pycache__") || folder.join("CACHEDIR.TAG").is_file()
}

fn name(root: &Path, left: &[String]) -> Tree {
    let mut chain = Hash::ZERO;
    let mut caches: Vec<PathBuf> = Vec::new();
    for entry in walk::entries(root, None) {
        let path = entry.path();
        let relative = path.strip_prefix(root).unwrap_or(path);
        if caches.last().is_some_and(|cache| path.starts_with(cache)) || left.iter().any(|l| relative.starts_with(l)) {
            continue;
        }
        if entry.file_type().is_some_and(|t| t.is_dir()) && is_cache(path) {
            caches.push(path.to_path_buf());
            continue;
        }
        let Ok(metadata) = std::fs::symlink_metadata(path) else { continue };
        let (kind, content) = if metadata.is_symlink() {
            let target = std::fs::read_link(path).unwrap_or_default();
            ("link", Hash::of(target.as_os_str().as_encoded_bytes()))
        } else if metadata.is_file() && metadata.len() <= LARGE {
            ("file", std::fs::read(path).map_or(Hash::ZERO, |bytes| Hash::of(&bytes)))
        } else if metadata.is_file() {
            let changed = metadata.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
            ("large", Hash::of(format!("{} {:?}", metadata.len(), changed).as_bytes()))
        } else {
            continue; // folders are known by what is in them; sockets and pipes hold nothing
        };
        #[cfg(unix)]
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111;
        #[cfg(not(unix))]
        let mode = 0_u32;
        let parts: [&[u8]; 5] =
            [&chain.0, relative.as_os_str().as_encoded_bytes(), kind.as_bytes(), &mode.to_le_bytes(), &content.0];
        chain = Hash::of_parts(&parts);
    }
    let left = if left.is_empty() { String::new() } else { format!("{LEFT}{}", serde_json::json!(left)) };
    Tree(format!("walk:{chain}{left}"))
}
