//! What differs between two states.

use super::object::{Node, TreeEntry, are_same, decode};
use super::pack::Pack;
use dunnock_proto::Hash;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A path that refers to something else than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeChange {
    pub(crate) before: Option<Node>,
    pub(crate) after: Option<Node>,
}

/// By path, parents before their contents.
pub(crate) type Changes = BTreeMap<PathBuf, NodeChange>;

/// Every path that differs. A folder is listed if it is new, gone or has a different mode or attributes, not for
/// changes inside it.
pub(crate) fn diff(pack: &mut Pack, before: &Hash, after: &Hash) -> io::Result<Changes> {
    let mut changes = Changes::new();
    folders(pack, Some(before), Some(after), Path::new(""), &mut changes)?;
    Ok(changes)
}

/// Everything in a state, as if nothing had existed before.
pub(crate) fn all(pack: &mut Pack, top: &Hash) -> io::Result<Changes> {
    let mut changes = Changes::new();
    folders(pack, None, Some(top), Path::new(""), &mut changes)?;
    Ok(changes)
}

fn entries(pack: &mut Pack, folder: Option<&Hash>) -> io::Result<Vec<TreeEntry>> {
    folder.map_or(Ok(Vec::new()), |hash| decode(&pack.get(hash)?))
}

fn folder(node: Option<&Node>) -> Option<&Hash> {
    match node {
        Some(Node::Folder { hash, .. }) => Some(hash),
        Some(Node::File { .. } | Node::Link { .. } | Node::Left { .. }) | None => None,
    }
}

fn folders(
    pack: &mut Pack,
    before: Option<&Hash>,
    after: Option<&Hash>,
    path: &Path,
    changes: &mut Changes,
) -> io::Result<()> {
    if before == after {
        return Ok(());
    }
    let mut names: BTreeMap<Vec<u8>, (Option<Node>, Option<Node>)> = BTreeMap::new();
    for entry in entries(pack, before)? {
        names.entry(entry.name).or_default().0 = Some(entry.node);
    }
    for entry in entries(pack, after)? {
        names.entry(entry.name).or_default().1 = Some(entry.node);
    }
    for (name, (before, after)) in names {
        if are_same(before.as_ref(), after.as_ref()) {
            continue;
        }
        let path = path.join(OsStr::from_bytes(&name));
        folders(pack, folder(before.as_ref()), folder(after.as_ref()), &path, changes)?;
        let inside_only = match (&before, &after) {
            (
                Some(Node::Folder { mode, attributes, .. }),
                Some(Node::Folder { mode: m, attributes: a, .. }),
            ) => mode == m && attributes == a,
            _ => false,
        };
        if !inside_only {
            changes.insert(path, NodeChange { before, after });
        }
    }
    Ok(())
}

/// Every content of a state that is not in `known`.
pub(crate) fn reach(
    pack: &mut Pack,
    top: Hash,
    known: &HashSet<Hash>,
) -> io::Result<HashSet<Hash>> {
    let mut open = vec![top];
    let mut new = HashSet::new();
    while let Some(folder) = open.pop() {
        if known.contains(&folder) || !new.insert(folder) {
            continue;
        }
        for entry in decode(&pack.get(&folder)?)? {
            if let Node::File { attributes: Some(hash), .. }
            | Node::Folder { attributes: Some(hash), .. } = entry.node
                && !known.contains(&hash)
            {
                new.insert(hash);
            }
            match entry.node {
                Node::Folder { hash, .. } => open.push(hash),
                Node::File { hash, .. } if !known.contains(&hash) => {
                    new.insert(hash);
                }
                Node::File { .. } | Node::Link { .. } | Node::Left { .. } => {}
            }
        }
    }
    Ok(new)
}
