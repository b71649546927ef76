//! Trust in folders: a folder's own settings, commands and scripts apply only after the user has
//! trusted exactly that content.

use crate::exit::usage;
use crate::{output, paths, rules};
use anyhow::Context as _;
use dunnock_proto::Hash;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

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
    let Some(content) = brings(folder) else { return false };
    let all = load().map(|trusted| trusted.folder).unwrap_or_default();
    all.iter().any(|entry| entry.path == folder && entry.content == content.to_string())
}

pub(crate) fn run(dir: Option<PathBuf>, list: bool, revoke: bool) -> anyhow::Result<ExitCode> {
    let mut trusted = load()?;
    if list {
        for entry in &trusted.folder {
            let now = brings(&entry.path).map(|hash| hash.to_string());
            let word = if now.as_deref() == Some(entry.content.as_str()) {
                "trusted"
            } else {
                "changed since"
            };
            output::line(&format!("{word:<13}  {}", entry.path.display()));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let folder = paths::workspace(dir.as_deref())?;
    if revoke {
        let before = trusted.folder.len();
        trusted.folder.retain(|entry| entry.path != folder);
        if trusted.folder.len() == before {
            return Err(usage(format!(
                "{} is not trusted. \"dunnock trust --list\" lists trusted folders",
                folder.display()
            )));
        }
        save(&trusted)?;
        output::aside(&format!("no longer trusted: {}", folder.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let Some(content) = brings(&folder) else {
        output::aside(&format!(
            "{} has no settings, commands or scripts of its own: there is nothing to trust",
            folder.display()
        ));
        return Ok(ExitCode::SUCCESS);
    };
    // Show the settings before they are trusted.
    let config = folder.join(".dunnock/config.toml");
    if let Ok(text) = std::fs::read_to_string(&config) {
        output::aside(&format!("{}:", config.display()));
        output::visible(&text).lines().for_each(|line| output::aside(&format!("  │ {line}")));
    }
    trusted.folder.retain(|entry| entry.path != folder);
    trusted.folder.push(Entry { path: folder.clone(), content: content.to_string() });
    save(&trusted)?;
    output::aside(&format!(
        "trusted with its current content: {}. After a change, trust it again. To revoke: dunnock \
         trust --revoke",
        folder.display()
    ));
    Ok(ExitCode::SUCCESS)
}
