//! Trust in folders: a folder's own settings, commands and scripts apply only after the user has
//! trusted exactly that content.

use crate::config::{paths, rules, servers};
use anyhow::Context as _;
use dunnock_proto::Hash;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Files in `.dunnock` that affect behaviour.
const BROUGHT: &[&str] = &["config.toml", "commands", "hooks", "profiles", "prompts"];
/// The most bytes that are read, more than any project needs.
const MOST: u64 = 4 << 20;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Trusted {
    folder: Vec<Entry>,
}

#[derive(Debug, Clone, Deserialize)]
struct Entry {
    path: PathBuf,
    content: String,
}

impl Entry {
    /// Whether the folder still has the content that was trusted.
    fn is_current(&self) -> bool {
        brings(&self.path).is_some_and(|content| content.to_string() == self.content)
    }
}

fn file() -> anyhow::Result<PathBuf> {
    Ok(paths::config_dir()?.join("trust.toml"))
}

fn load() -> anyhow::Result<Trusted> {
    let path = file()?;
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            toml::from_str(&text).with_context(|| format!("{} cannot be parsed", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Trusted::default()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

fn save(trusted: &Trusted) -> anyhow::Result<()> {
    let path = file()?;
    let mut text = String::from(
        "# Folders whose own settings apply. \"dunnock trust --list\" lists them, --revoke \
         removes one.\n",
    );
    for entry in &trusted.folder {
        let folder = serde_json::to_string(&entry.path)?;
        text.push_str(&format!("\n[[folder]]\npath = {folder}\ncontent = \"{}\"\n", entry.content));
    }
    rules::write(&path, &text).with_context(|| format!("{} cannot be written", path.display()))
}

/// The hash of all of a folder's files that need trust; `None` if it has none.
pub(crate) fn brings(folder: &Path) -> Option<Hash> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut room = MOST;
    for name in BROUGHT {
        gather(&folder.join(".dunnock").join(name), name, &mut files, &mut room);
    }
    for name in servers::project_files(folder) {
        gather(&folder.join(name), &format!("../{name}"), &mut files, &mut room);
    }
    files.sort();
    let parts: Vec<&[u8]> =
        files.iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes.as_slice()]).collect();
    (!files.is_empty()).then(|| Hash::of_parts(&parts))
}

fn gather(path: &Path, name: &str, files: &mut Vec<(String, Vec<u8>)>, room: &mut u64) {
    let Ok(about) = path.symlink_metadata() else { return };
    if about.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            gather(
                &entry.path(),
                &format!("{name}/{}", entry.file_name().to_string_lossy()),
                files,
                room,
            );
        }
    } else if about.is_file() && about.len() <= *room {
        *room -= about.len();
        files.push((name.to_owned(), std::fs::read(path).unwrap_or_default()));
    } else {
        // A link, or too large: the content is not read, so its metadata is hashed instead.
        files.push((name.to_owned(), format!("{about:?}").into_bytes()));
    }
}

/// Whether the user trusts a folder with its current content.
pub(crate) fn is_trusted(folder: &Path) -> bool {
    let all = load().map(|trusted| trusted.folder).unwrap_or_default();
    all.iter().any(|entry| entry.path == folder && entry.is_current())
}

/// All trusted folders, each with whether it still has the content that was trusted.
pub(crate) fn list() -> anyhow::Result<Vec<(PathBuf, bool)>> {
    Ok(load()?.folder.into_iter().map(|entry| (entry.path.clone(), entry.is_current())).collect())
}

/// Trusts a folder with this content.
pub(crate) fn trust(folder: &Path, content: Hash) -> anyhow::Result<()> {
    let mut trusted = load()?;
    trusted.folder.retain(|entry| entry.path != folder);
    trusted.folder.push(Entry { path: folder.into(), content: content.to_string() });
    save(&trusted)
}

/// Revokes the trust in a folder. Returns whether it was trusted.
pub(crate) fn revoke(folder: &Path) -> anyhow::Result<bool> {
    let mut trusted = load()?;
    let before = trusted.folder.len();
    trusted.folder.retain(|entry| entry.path != folder);
    if trusted.folder.len() < before {
        save(&trusted)?;
    }
    Ok(trusted.folder.len() < before)
}
