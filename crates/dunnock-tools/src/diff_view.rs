//! Views of changed files for people, and file states packed for export.

use dunnock_proto::{Hash, Tree};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Transforms a file's content, given its path, before it is exported to another machine.
pub type ExportFilter = Arc<dyn Fn(&Path, Vec<u8>) -> Vec<u8> + Send + Sync>;

/// File states packed for export.
#[derive(Debug, Clone, Default)]
pub struct PackedTrees {
    /// Every folder and file content in these states, by hash.
    pub objects: BTreeMap<Hash, Vec<u8>>,
    /// Each requested state that exists, and its new name.
    pub trees: Vec<(Tree, Tree)>,
    /// Contents that the filter changed: old and new hash.
    pub changed: Vec<(Hash, Hash)>,
}

/// How a path differs between two states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffView {
    /// Relative to the root.
    pub path: String,
    /// `added`, `deleted`, `changed`, `mode`, `not saved`, or the kind it became (`now a link`).
    pub how: &'static str,
    /// Content before; `None` if it was not a file, or one too large to show.
    pub before: Option<Vec<u8>>,
    /// Content after, likewise.
    pub after: Option<Vec<u8>>,
}

/// What a restore would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// Changes from the current state to the earlier one.
    pub changes: Vec<DiffView>,
    /// Paths that would stay because others changed them.
    pub kept: Vec<String>,
    /// Paths that would stay because they are not saved and could not be restored again.
    pub large: Vec<String>,
    /// Paths that cannot be restored.
    pub lost: Vec<String>,
    /// What would be restored in git.
    pub history: Vec<String>,
}
