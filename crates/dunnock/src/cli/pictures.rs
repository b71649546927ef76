//! `--image FILE`: images for a prompt.

use crate::view::exit::usage;
use dunnock_engine::Ports;
use dunnock_ports::Blob;
use dunnock_proto::{Hash, MOST_PICTURE_BYTES, SessionId};
use std::path::{Path, PathBuf};

const MOST: usize = 20;

/// Reads images, and refuses other files before anything starts.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Blob>> {
    if paths.len() > MOST {
        return Err(usage(format!("a prompt can have at most {MOST} images")));
    }
    paths
        .iter()
        .map(|path| one(path).map_err(|why| usage(format!("--image {}: {why}", path.display()))))
        .collect()
}

fn one(path: &Path) -> Result<Blob, String> {
    let size = std::fs::metadata(path).map_err(|e| e.to_string())?;
    if !size.is_file() {
        return Err("it is not a file".into());
    }
    if size.len() > MOST_PICTURE_BYTES {
        return Err(format!(
            "it is {} MB; servers accept at most {} MB",
            size.len() >> 20,
            MOST_PICTURE_BYTES >> 20
        ));
    }
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    match dunnock_proto::picture_kind(&bytes) {
        Some(_) => Ok(Blob::new(bytes)),
        None => Err("it is not a PNG, JPEG, GIF or WebP image".into()),
    }
}

/// Stores images with a session and returns their hashes for the prompt.
pub(crate) async fn keep(
    ports: &Ports,
    session: &SessionId,
    pictures: &[Blob],
) -> anyhow::Result<Vec<Hash>> {
    for picture in pictures {
        ports.store.keep(session, picture).await?;
    }
    Ok(pictures.iter().map(|picture| picture.hash).collect())
}
