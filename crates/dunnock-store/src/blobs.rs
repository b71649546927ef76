//! Blobs that events refer to: small ones in the database, large ones in files.
//!
//! Invariant: a large blob's file is complete and synced before the event that refers to it. A file
//! that no event refers to was left by a crash and may be deleted.

use crate::sqlite::{Sqlite, classify, failed};
use dunnock_core::failpoint;
use dunnock_ports::{Blob, StoreError};
use dunnock_proto::Hash;
use sqlx::Row;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Blobs up to this many bytes are stored in the transaction of their event.
pub(crate) const SMALL: u64 = 1 << 20;

/// Codec: stored without compression.
pub(crate) const AS_IT_IS: i64 = 0;
/// Codec: compressed with deflate.
pub(crate) const DEFLATED: i64 = 1;
/// Smaller blobs are not compressed.
const WORTH: usize = 512;

/// Compresses the bytes; returns them unchanged in `Err` if that does not help.
pub(crate) fn packed(bytes: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
    if bytes.len() < WORTH {
        return Err(bytes);
    }
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    let done = encoder.write_all(&bytes).and_then(|()| encoder.finish());
    match done {
        Ok(small) if small.len() < bytes.len() / 10 * 9 => Ok(small),
        Ok(_) | Err(_) => Err(bytes),
    }
}

/// Decodes stored bytes; `size` is their original length.
pub(crate) fn plain(codec: i64, size: i64, stored: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    match codec {
        AS_IT_IS => return Ok(stored),
        DEFLATED => {}
        _ => return Err(failed("a later release wrote this blob; use that release")),
    }
    let size = u64::try_from(size).unwrap_or(0).min(SMALL);
    let mut bytes = Vec::new();
    let mut reader = flate2::read::DeflateDecoder::new(stored.as_slice()).take(size);
    reader
        .read_to_end(&mut bytes)
        .map_err(|e| StoreError::Damaged(format!("a blob cannot be decompressed: {e}")))?;
    Ok(bytes)
}

static PARTS: AtomicU64 = AtomicU64::new(0);

/// A partly written file; removed on drop unless it was renamed to its final name.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // does not exist any more if it was renamed
    }
}

fn private_file(path: &Path) -> std::io::Result<fs_err::File> {
    let named = |error: std::io::Error| {
        std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    };
    let mut options = dunnock_private::options();
    let file = options.create(true).write(true).truncate(true).open(path).map_err(named)?;
    Ok(fs_err::File::from_parts(file, path))
}

/// Makes the entries of a folder durable.
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    fs_err::File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

impl Sqlite {
    pub(crate) fn blob_path(&self, hash: Hash) -> PathBuf {
        let name = hash.to_string();
        self.dir.join("blobs").join(&name[..2]).join(name)
    }

    /// Writes, syncs, renames, and syncs the folder; only then may an event refer to the blob.
    pub(crate) fn keep_large(&self, blob: &Blob) -> Result<(), StoreError> {
        if blob.len() <= SMALL {
            return Ok(());
        }
        let path = self.blob_path(blob.hash);
        failpoint::hit("store.file.before", "");
        let done = (|| {
            let folder = path
                .parent()
                .ok_or_else(|| std::io::Error::other("the path of a blob has no folder"))?;
            if path.exists() {
                return sync_folder(folder); // the process that wrote it may have died before this sync
            }
            if !folder.exists() {
                dunnock_private::create_folder(folder)?;
                sync_folder(&self.dir)?;
                sync_folder(&self.dir.join("blobs"))?;
            }
            // A unique name: another process may be writing the same bytes.
            let part = path.with_extension(format!(
                "{}-{}.part",
                std::process::id(),
                PARTS.fetch_add(1, Ordering::Relaxed)
            ));
            let part = Part(part);
            match &blob.file {
                // Hard-link the file if possible; it is already complete and private.
                Some(from) if std::fs::hard_link(from.path(), &part.0).is_ok() => {
                    fs_err::File::open(&part.0)?.sync_all()?;
                }
                Some(from) => {
                    let mut file = private_file(&part.0)?;
                    std::io::copy(&mut fs_err::File::open(from.path())?, &mut file)?;
                    file.sync_all()?;
                }
                None => {
                    let mut file = private_file(&part.0)?;
                    file.write_all(&blob.bytes)?;
                    file.sync_all()?;
                }
            }
            failpoint::hit("store.file.written", "");
            fs_err::rename(&part.0, &path)?;
            sync_folder(folder)
        })();
        failpoint::hit("store.file.after", "");
        done.map_err(|e| match e.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                StoreError::Full(e.to_string())
            }
            _ => failed(e),
        })
    }

    pub(crate) async fn read_blob(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        let mut slot = self.reader().await?;
        let Some(conn) = slot.as_mut() else { return Ok(None) };
        let sql = "SELECT codec, bytes, size FROM blobs WHERE hash = ?1";
        let row =
            sqlx::query(sql).bind(hash.0.to_vec()).fetch_optional(conn).await.map_err(classify)?;
        let Some(row) = row else { return Ok(None) };
        let codec: i64 = row.try_get(0).map_err(classify)?;
        let bytes: Arc<[u8]> = match row.try_get::<Option<Vec<u8>>, _>(1).map_err(classify)? {
            Some(bytes) => plain(codec, row.try_get(2).map_err(classify)?, bytes)?.into(),
            None => fs_err::read(self.blob_path(hash)).map_err(failed)?.into(),
        };
        if Hash::of(&bytes) != hash {
            return Err(StoreError::Damaged(format!("blob {hash} does not match its hash")));
        }
        Ok(Some(bytes))
    }
}
