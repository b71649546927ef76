//! What people are shown of changed files, and what of files is carried elsewhere.

use dunnock_proto::{Hash, Tree};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What becomes of a file's content on its way to another machine, by its path.
pub type ExportFilter = Arc<dyn Fn(&Path, Vec<u8>) -> Vec<u8> + Send + Sync>;

/// States of files, packed up.
#[derive(Debug, Clone, Default)]
pub struct PackedTrees {
    /// Every folder and every content that they are made of, by its hash.
    pub objects: BTreeMap<Hash, Vec<u8>>,
    /// Each state that was asked for and is there, and what it is called now.
    pub trees: Vec<(Tree, Tree)>,
    /// Contents that were changed on the way.
    pub changed: Vec<(Hash, Hash)>,
}

/// How a path differs between two states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffView {
    /// Below the root.
    pub path: String,
    /// `added`, `deleted`, `changed`, `mode`, or into what kind it turned.
    pub how: &'static str,
    /// What it held; `None` where it was no file, or one too large to show.
    pub before: Option<Vec<u8>>,
    /// What it holds.
    pub after: Option<Vec<u8>>,
}

/// What going back would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// What would change, from now to then.
    pub changes: Vec<DiffView>,
    /// What others changed, and would stay.
    pub kept: Vec<String>,
    /// What would stay, since it is not kept and could not be brought back again.
    pub large: Vec<String>,
    /// What cannot come back.
    pub lost: Vec<String>,
}
