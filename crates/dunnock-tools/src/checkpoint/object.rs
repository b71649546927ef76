//! The saved form of a folder: a sorted list of names, each with its kind, its mode and its
//! content's hash.
//!
//! Invariant: equal folders have equal bytes, so the hash of the topmost folder names the state of
//! everything below it.

use dunnock_proto::Hash;
use std::io;

/// Maximum folder depth.
pub(crate) const DEEP: usize = 200;

/// Why only the name of something is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameOnly {
    /// A file above the size limit.
    Large,
    /// An ignored folder that programs can recreate.
    Build,
    /// Not readable.
    Unreadable,
    /// On another file system.
    Elsewhere,
    /// Folders nested too deeply.
    Deep,
    /// A pipe, a socket, a device.
    Special,
    /// Dunnock's own: its sessions, or what it writes to.
    Own,
    /// Git's own data. Only its existence is recorded.
    Git,
}

impl NameOnly {
    const ALL: [Self; 8] = [
        Self::Large,
        Self::Build,
        Self::Unreadable,
        Self::Elsewhere,
        Self::Deep,
        Self::Special,
        Self::Own,
        Self::Git,
    ];

    /// The reason, for people.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Large => "too large",
            Self::Build => "ignored build files",
            Self::Unreadable => "not readable",
            Self::Elsewhere => "on another file system",
            Self::Deep => "too deep",
            Self::Special => "not a regular file",
            Self::Own => "Dunnock's own files",
            Self::Git => "git's own state",
        }
    }
}

/// What a name refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    File {
        mode: u32,
        size: u64,
        hash: Hash,
        /// Its extended attributes, if it has any.
        attributes: Option<Hash>,
        /// It had other names (hard links). This is only reported: it does not make a difference.
        linked: bool,
    },
    Folder {
        mode: u32,
        hash: Hash,
        attributes: Option<Hash>,
    },
    Link {
        target: Vec<u8>,
    },
    /// Exists, but is not saved. Size and modification time show whether it changed.
    Left {
        why: NameOnly,
        size: u64,
        changed: i64,
    },
}

impl Node {
    /// Whether there is nothing to restore between the two.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File { mode, size, hash, attributes, .. },
                Self::File { mode: m, size: s, hash: h, attributes: a, .. },
            ) => (mode, size, hash, attributes) == (m, s, h, a),
            _ => self == other,
        }
    }
}

/// Whether there is nothing to restore between the two.
pub(crate) fn are_same(a: Option<&Node>, b: Option<&Node>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.is_same(b),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Encodes extended attributes, sorted by name.
pub(crate) fn encode_attributes(all: &std::collections::BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let mut out = b"attributes\n".to_vec();
    for (name, value) in all {
        put_bytes(&mut out, name);
        put_bytes(&mut out, value);
    }
    out
}

/// Decodes extended attributes.
pub(crate) fn decode_attributes(bytes: &[u8]) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut reader = Reader(bytes.strip_prefix(b"attributes\n").ok_or_else(broken)?);
    let mut all = Vec::new();
    while !reader.0.is_empty() {
        let name = reader.text()?.to_vec();
        // No other kind is ever saved, whatever the store says.
        if !name.starts_with(b"user.") || name.contains(&0) {
            return Err(broken());
        }
        all.push((name, reader.text()?.to_vec()));
    }
    Ok(all)
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) node: Node,
}

/// Encodes a folder; the entries must be sorted by name.
pub(crate) fn encode<'a>(entries: impl Iterator<Item = (&'a [u8], &'a Node)>) -> Vec<u8> {
    let mut out = vec![1]; // the format
    for (name, node) in entries {
        let kind = match node {
            Node::File { attributes: None, linked: false, .. } => b'f',
            Node::File { .. } => b'F',
            Node::Folder { attributes: None, .. } => b'd',
            Node::Folder { .. } => b'D',
            Node::Link { .. } => b'l',
            Node::Left { .. } => b'x',
        };
        out.push(kind);
        put_bytes(&mut out, name);
        match node {
            Node::File { mode, size, hash, attributes, linked } => {
                out.extend_from_slice(&mode.to_le_bytes());
                out.extend_from_slice(&size.to_le_bytes());
                out.extend_from_slice(&hash.0);
                if kind == b'F' {
                    out.push(u8::from(*linked));
                    out.extend_from_slice(&attributes.unwrap_or(Hash::ZERO).0);
                }
            }
            Node::Folder { mode, hash, attributes } => {
                out.extend_from_slice(&mode.to_le_bytes());
                out.extend_from_slice(&hash.0);
                out.extend(attributes.iter().flat_map(|hash| hash.0));
            }
            Node::Link { target } => put_bytes(&mut out, target),
            Node::Left { why, size, changed } => {
                out.push(
                    NameOnly::ALL
                        .iter()
                        .position(|w| w == why)
                        .and_then(|n| u8::try_from(n).ok())
                        .unwrap_or(0),
                );
                out.extend_from_slice(&size.to_le_bytes());
                out.extend_from_slice(&changed.to_le_bytes());
            }
        }
    }
    out
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Reads encoded bytes, and never past their end.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self, n: usize) -> io::Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n).ok_or_else(broken)?;
        self.0 = rest;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.bytes(N)?.try_into().map_err(|_| broken())
    }
    pub(crate) fn u8(&mut self) -> io::Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }
    pub(crate) fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    pub(crate) fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    pub(crate) fn i64(&mut self) -> io::Result<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }
    pub(crate) fn hash(&mut self) -> io::Result<Hash> {
        Ok(Hash(self.array()?))
    }
    pub(crate) fn text(&mut self) -> io::Result<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).map_err(|_| broken())?)
    }
}

pub(crate) fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the saved state of a folder cannot be read")
}

/// Decodes the entries of a folder.
pub(crate) fn decode(bytes: &[u8]) -> io::Result<Vec<TreeEntry>> {
    let mut reader = Reader(bytes);
    if reader.u8()? != 1 {
        return Err(broken());
    }
    let mut entries = Vec::new();
    while !reader.0.is_empty() {
        let kind = reader.u8()?;
        let name = reader.text()?.to_vec();
        // Only names in this folder are ever restored, whatever the store says.
        if name.is_empty() || name.contains(&b'/') || name == b"." || name == b".." {
            return Err(broken());
        }
        let node = match kind {
            b'f' | b'F' => {
                let (mode, size, hash) = (reader.u32()?, reader.u64()?, reader.hash()?);
                let (linked, attributes) = match kind {
                    b'F' => (reader.u8()? != 0, Some(reader.hash()?)),
                    _ => (false, None),
                };
                let attributes = attributes.filter(|hash| *hash != Hash::ZERO);
                Node::File { mode, size, hash, attributes, linked }
            }
            b'd' | b'D' => {
                let (mode, hash) = (reader.u32()?, reader.hash()?);
                let attributes = (kind == b'D').then(|| reader.hash()).transpose()?;
                Node::Folder { mode, hash, attributes }
            }
            b'l' => Node::Link { target: reader.text()?.to_vec() },
            b'x' => {
                let why =
                    NameOnly::ALL.get(usize::from(reader.u8()?)).copied().ok_or_else(broken)?;
                Node::Left { why, size: reader.u64()?, changed: reader.i64()? }
            }
            _ => return Err(broken()),
        };
        entries.push(TreeEntry { name, node });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_survives_its_bytes() {
        let entries = [
            TreeEntry {
                name: b"a".to_vec(),
                node: Node::File {
                    mode: 0o4755,
                    size: 7,
                    hash: Hash::of(b"x"),
                    attributes: Some(Hash::of(b"a")),
                    linked: true,
                },
            },
            TreeEntry {
                name: vec![0xff, 0x0a],
                node: Node::Folder { mode: 0o1777, hash: Hash::of(b"y"), attributes: None },
            },
            TreeEntry { name: b"l".to_vec(), node: Node::Link { target: b"../nowhere".to_vec() } },
            TreeEntry {
                name: b"x".to_vec(),
                node: Node::Left { why: NameOnly::Special, size: 1, changed: -5 },
            },
        ];
        let bytes = encode(entries.iter().map(|e| (e.name.as_slice(), &e.node)));
        assert_eq!(decode(&bytes).unwrap(), entries);
        for cut in 0..bytes.len() {
            let _ = decode(&bytes[..cut]); // no panic
        }
        let bad = encode([(&b"../up"[..], &entries[0].node)].into_iter());
        assert!(decode(&bad).is_err(), "a name is a name, not a path");
    }
}
