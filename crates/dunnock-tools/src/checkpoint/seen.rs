//! What the last scan found, the *index*.

use super::file_facts::{Known, Stamp};
use super::object::{DEEP, NameOnly, Node, Reader, broken, decode, encode};
use super::pack::Pack;
use dunnock_proto::Hash;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A folder as of the last scan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) entries: Vec<SeenEntry>,
    pub(crate) hash: Option<Hash>,
}

#[derive(Debug, Clone)]
pub(crate) struct SeenEntry {
    pub(crate) name: Box<[u8]>,
    pub(crate) node: Node,
    pub(crate) known: Known,
    pub(crate) below: Option<Box<Seen>>,
}

impl Seen {
    /// Identifies a file as it was in this scan.
    pub(crate) fn stamp(&self, path: &Path) -> Option<Stamp> {
        let mut parts = path.components();
        let first = parts.next()?.as_os_str().as_bytes();
        let entry = self
            .entries
            .get(self.entries.binary_search_by(|e| e.name.as_ref().cmp(first)).ok()?)?;
        match parts.as_path() {
            rest if rest.as_os_str().is_empty() => match entry.node {
                Node::File { .. } | Node::Link { .. } | Node::Left { why: NameOnly::Large, .. } => {
                    Some(entry.known.stamp())
                }
                Node::Folder { .. } | Node::Left { .. } => None,
            },
            rest => entry.below.as_ref()?.stamp(rest),
        }
    }

    /// The state of a checkpoint. An older index says what is known about files that did not change
    /// since.
    pub(crate) fn of_tree(
        pack: &mut Pack,
        top: &Hash,
        index: Option<&Self>,
        depth: usize,
    ) -> io::Result<Self> {
        if depth > DEEP + 1 {
            return Err(broken());
        }
        if let Some(index) = index.filter(|index| index.hash == Some(*top)) {
            return Ok(index.clone());
        }
        let old = index.map_or(&[][..], |index| &index.entries);
        let mut entries = Vec::new();
        for entry in decode(&pack.get(top)?)? {
            let (name, node): (Box<[u8]>, Node) = (entry.name.into(), entry.node);
            let old =
                old.binary_search_by(|old| old.name.cmp(&name)).ok().and_then(|at| old.get(at));
            let below = match &node {
                Node::Folder { hash, .. } => {
                    let old = old.and_then(|old| old.below.as_deref());
                    Some(Box::new(Self::of_tree(pack, hash, old, depth + 1)?))
                }
                Node::File { .. } | Node::Link { .. } | Node::Left { .. } => None,
            };
            let known = old.filter(|old| old.node == node).map(|old| old.known);
            entries.push(SeenEntry { name, node, known: known.unwrap_or_default(), below });
        }
        Ok(Self { entries, hash: Some(*top) })
    }

    /// The number of files.
    pub(crate) fn files(&self) -> usize {
        self.entries.iter().map(|e| e.below.as_ref().map_or(1, |b| b.files())).sum()
    }

    /// Called when contents may have been collected: files whose content is no longer stored are
    /// read again.
    pub(crate) fn trust(&mut self, pack: &Pack) {
        if self.hash.is_some_and(|hash| !pack.has(&hash)) {
            self.hash = None;
        }
        for entry in &mut self.entries {
            if let Node::File { hash, attributes, .. } = &entry.node
                && (!pack.has(hash) || attributes.is_some_and(|hash| !pack.has(&hash)))
            {
                entry.known = Known::default();
            }
            if let Some(below) = &mut entry.below {
                below.trust(pack);
            }
        }
    }

    /// Calls `each` for everything that exists but is not saved.
    pub(crate) fn left(&self, path: &mut PathBuf, each: &mut dyn FnMut(&Path, NameOnly, u64)) {
        for entry in &self.entries {
            path.push(OsStr::from_bytes(&entry.name));
            match (&entry.node, &entry.below) {
                (Node::Left { why, size, .. }, _) => each(path, *why, *size),
                (_, Some(below)) => below.left(path, each),
                (Node::File { .. } | Node::Folder { .. } | Node::Link { .. }, None) => {}
            }
            path.pop();
        }
    }

    /// Encodes the index for the file that outlives the process.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        let count = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&self.hash.unwrap_or(Hash::ZERO).0);
        let listed = encode(self.entries.iter().map(|e| (e.name.as_ref(), &e.node)));
        out.extend_from_slice(&u32::try_from(listed.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&listed);
        for entry in &self.entries {
            let k = entry.known;
            out.extend_from_slice(&k.size.to_le_bytes());
            out.extend_from_slice(&k.modified.to_le_bytes());
            out.extend_from_slice(&k.changed.to_le_bytes());
            out.extend_from_slice(&k.inode.to_le_bytes());
            out.extend_from_slice(&k.mode.to_le_bytes());
            if let Some(below) = &entry.below {
                below.save(out);
            }
        }
    }

    pub(crate) fn load(reader: &mut Reader<'_>, depth: usize) -> io::Result<Self> {
        if depth > DEEP + 1 {
            return Err(broken());
        }
        let count = reader.u32()?;
        let hash = reader.hash()?;
        let listed = decode(reader.text()?)?;
        if listed.len() != usize::try_from(count).unwrap_or(usize::MAX) {
            return Err(broken());
        }
        let mut entries = Vec::with_capacity(listed.len());
        for entry in listed {
            let known = Known {
                size: reader.u64()?,
                modified: reader.i64()?,
                changed: reader.i64()?,
                inode: reader.u64()?,
                mode: reader.u32()?,
            };
            let below = match entry.node {
                Node::Folder { .. } => Some(Box::new(Self::load(reader, depth + 1)?)),
                Node::File { .. } | Node::Link { .. } | Node::Left { .. } => None,
            };
            entries.push(SeenEntry { name: entry.name.into(), node: entry.node, known, below });
        }
        Ok(Self { entries, hash: Some(hash) })
    }
}
