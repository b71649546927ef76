//! Bytes that events refer to by their hash.

use crate::{BoxFuture, StoreError};
use dunnock_proto::{Hash, SessionId};
use std::fmt;
use std::sync::Arc;

/// Bytes that an event refers to by their hash.
#[derive(Debug, Clone)]
pub struct Blob {
    /// Hash of the bytes.
    pub hash: Hash,
    /// The bytes; empty if they are in a file.
    pub bytes: Arc<[u8]>,
    /// The file that holds them, if they are too large for memory.
    pub file: Option<Arc<dyn BlobFile>>,
}

/// A file with the bytes of a blob. It is deleted when the last reference is dropped; to keep it,
/// give it another name.
pub trait BlobFile: fmt::Debug + Send + Sync {
    /// The path of the file.
    fn path(&self) -> &std::path::Path;
    /// Its size in bytes.
    fn len(&self) -> u64;
    /// Whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Blob {
    /// A blob with the hash of these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self { hash: Hash::of(&bytes), bytes, file: None }
    }
    /// A blob whose bytes are in a file.
    #[must_use]
    pub fn in_file(hash: Hash, file: Arc<dyn BlobFile>) -> Self {
        Self { hash, bytes: Arc::new([]), file: Some(file) }
    }
    /// Its size in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.file.as_ref().map_or(self.bytes.len() as u64, |file| file.len())
    }
    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Stores blobs that came before their events, and reads all of them. Blobs that come with their
/// events are part of a [`Batch`](crate::Batch).
pub trait Blobs: Send + Sync {
    /// Stores a blob that a command to this session is about to refer to.
    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        blob: &'a Blob,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
    /// A blob.
    fn blob(&self, hash: Hash) -> BoxFuture<'_, Result<Option<Arc<[u8]>>, StoreError>>;
    /// Whether a session's events refer to a blob.
    fn uses<'a>(
        &'a self,
        session: &'a SessionId,
        blob: Hash,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}
