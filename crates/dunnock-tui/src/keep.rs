//! The app's own files in the state folder: the prompt history and unsent drafts.
//!
//! Invariant: every write replaces a file atomically, and only this user can read it.

use crate::history::MOST;
use dunnock_private::{create_folder, open_append, replace};
use std::path::PathBuf;

/// The folder of these files.
#[derive(Debug, Clone)]
pub struct Keep {
    folder: PathBuf,
}

impl Keep {
    /// Uses this folder, which is created at the first write.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn history_file(&self) -> PathBuf {
        self.folder.join("history.jsonl")
    }

    /// Earlier prompts, oldest first.
    #[must_use]
    pub fn history(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.history_file()).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Adds a prompt to the history. Several apps may do so at once: each takes a lock and reads
    /// the file again before it writes.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn remember(&self, text: &str) -> std::io::Result<()> {
        create_folder(&self.folder)?;
        let lock = open_append(&self.folder.join("history.lock"))?;
        lock.lock()?;
        let mut all = self.history();
        if all.last().is_none_or(|last| last != text) {
            all.push(text.to_owned());
        }
        let over = all.len().saturating_sub(MOST);
        let lines: Vec<String> =
            all.iter().skip(over).filter_map(|text| serde_json::to_string(text).ok()).collect();
        replace(&self.history_file(), format!("{}\n", lines.join("\n")).as_bytes())
    }

    fn draft_file(&self, name: &str) -> PathBuf {
        self.folder.join("drafts").join(format!("{name}.json"))
    }

    /// The draft of a session, or of a folder that has no session yet.
    #[must_use]
    pub fn draft(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.draft_file(name)).ok()
    }

    /// Saves a draft; `None` deletes it.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn set_draft(&self, name: &str, draft: Option<&str>) -> std::io::Result<()> {
        let file = self.draft_file(name);
        match draft {
            Some(text) => {
                create_folder(&self.folder.join("drafts"))?;
                replace(&file, text.as_bytes())
            }
            None => match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds T4: the file comes back and is private.
    #[test]
    fn history_and_drafts_come_back_and_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let keep = Keep::new(folder.path().join("state"));
        keep.remember("one\ntwo").unwrap();
        keep.remember("one\ntwo").unwrap();
        keep.remember("three").unwrap();
        assert_eq!(keep.history(), ["one\ntwo", "three"]);
        keep.set_draft("s", Some("half")).unwrap();
        assert_eq!(keep.draft("s").as_deref(), Some("half"));
        keep.set_draft("s", None).unwrap();
        keep.set_draft("s", None).unwrap();
        assert_eq!(keep.draft("s"), None);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = keep.history_file().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
