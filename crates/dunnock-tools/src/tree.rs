//! A name for the files of a workspace, by a plain walk. (Checkpoints, when they come, know it without one.)
//!
//! Left out: what ignore files name, `.git`, `.dunnock`, and folders that builds and tests leave behind.

use crate::walk;
use dunnock_core::ports::{Files, Wait};
use dunnock_proto::{Hash, Tree};
use std::path::Path;

/// Folders that are results, not sources.
const RESULTS: &[&str] = &[
    "target",
    "node_modules",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    ".gradle",
    ".next",
    ".turbo",
    ".cache",
    "htmlcov",
];
/// Files above this are known by size and time of change, not by content.
const LARGE: u64 = 50 << 20;

/// Walks and hashes.
#[derive(Debug, Default)]
pub struct PlainWalk;

impl Files for PlainWalk {
    fn tree<'a>(&'a self, workspace: &'a str) -> Wait<'a, Result<Tree, String>> {
        let root = Path::new(workspace).to_path_buf();
        Box::pin(async move {
            let walked = tokio::task::spawn_blocking(move || name(&root)).await;
            walked.map_err(|e| e.to_string())
        })
    }
}

fn name(root: &Path) -> Tree {
    let mut chain = Hash::ZERO;
    for entry in walk::entries(root, None) {
        let path = entry.path();
        let relative = path.strip_prefix(root).unwrap_or(path);
        if relative.components().any(|c| RESULTS.iter().any(|r| c.as_os_str() == *r)) {
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
    Tree(format!("walk:{chain}"))
}
