//! A journal of edits in progress, stored outside the workspace: after a crash, the next process
//! undoes them or cleans up.

use super::place::Place;
use super::workspace::{Root, unheard_of};
use dunnock_proto::Hash;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Identifies the new file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ours {
    pub(super) number: u64,
    pub(super) hash: Option<Hash>,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileOp {
    Create,
    Update,
    Delete,
}

#[derive(Debug, Serialize, Deserialize)]
struct JournalEntry {
    path: Vec<u8>,
    part: String,
    new: Ours,
    op: FileOp,
}

#[derive(Debug, Serialize, Deserialize)]
struct Page {
    root: Vec<u8>,
    /// The inode of that folder: another disk may be mounted there later.
    number: u64,
    entries: Vec<JournalEntry>,
    folders: Vec<Vec<u8>>,
}

/// The journal page of one edit. It is locked as long as its writer lives.
pub(super) struct Journal {
    /// Without the extension, which tells the stage of the edit.
    path: PathBuf,
    root: PathBuf,
    locks: Vec<File>,
}

/// A file, the temporary name beside it, the identity of the new file, and the operation.
pub(super) type Moved = (PathBuf, String, Ours, FileOp);

/// How far an edit has got; determines the extension of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// New files are being written beside the old ones. After a crash, remove them.
    Parts,
    /// Files are being changed. After a crash, undo the changes.
    Open,
    /// All files have changed. After a crash, remove what is left over.
    Done,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Parts, Self::Open, Self::Done];

    fn ending(self) -> &'static str {
        match self {
            Self::Parts => "parts",
            Self::Open => "edit",
            Self::Done => "done",
        }
    }
}

#[cfg(unix)]
fn bytes(path: &Path) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec()
}
#[cfg(unix)]
fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes))
}
#[cfg(not(unix))]
fn bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().as_bytes().to_vec()
}
#[cfg(not(unix))]
fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

impl Journal {
    /// Starts an edit that will create these names beside the files, and these folders.
    pub(super) fn begin(
        folder: &Path,
        root: &Path,
        moves: impl Iterator<Item = Moved>,
        made: &[PathBuf],
    ) -> io::Result<Self> {
        let mut journal =
            Self { path: folder.join(unheard_of()), root: root.to_path_buf(), locks: Vec::new() };
        dunnock_private::create_folder(folder)?;
        journal.write(Stage::Parts, moves, made, false)?;
        Ok(journal)
    }

    /// Files change from here on. If `lasting`, the page survives a power failure.
    pub(super) fn open(
        &mut self,
        moves: impl Iterator<Item = Moved>,
        made: &[PathBuf],
        lasting: bool,
    ) -> io::Result<()> {
        self.write(Stage::Open, moves, made, lasting)
    }

    fn write(
        &mut self,
        stage: Stage,
        moves: impl Iterator<Item = Moved>,
        made: &[PathBuf],
        lasting: bool,
    ) -> io::Result<()> {
        let entries = moves
            .map(|(path, part, new, op)| JournalEntry { path: bytes(&path), part, new, op })
            .collect();
        let page = Page {
            root: bytes(&self.root),
            number: number(&self.root),
            entries,
            folders: made.iter().map(|folder| bytes(folder)).collect(),
        };
        let fresh = self.path.with_extension("new");
        let written = (|| {
            let mut file = dunnock_private::options().write(true).create_new(true).open(&fresh)?;
            file.lock()?;
            file.write_all(&serde_json::to_vec(&page)?)?;
            if lasting {
                file.sync_all()?;
            }
            // It becomes visible only when it is complete.
            std::fs::rename(&fresh, self.path.with_extension(stage.ending()))?;
            if lasting && cfg!(unix) {
                self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
            }
            Ok(file)
        })();
        match written {
            Ok(file) => {
                self.locks.push(file);
                Ok(())
            }
            Err(error) => {
                let _ = std::fs::remove_file(&fresh);
                Err(error)
            }
        }
    }

    /// Marks all changes as made.
    pub(super) fn done(&self, lasting: bool) -> io::Result<()> {
        let page = |stage: Stage| self.path.with_extension(stage.ending());
        std::fs::rename(page(Stage::Open), page(Stage::Done))?;
        // The old files are removed only when it is certain that no undo will need them.
        let synced = match self.path.parent().filter(|_| lasting && cfg!(unix)) {
            Some(folder) => File::open(folder).and_then(|folder| folder.sync_all()),
            None => Ok(()),
        };
        if synced.is_err() {
            std::fs::rename(page(Stage::Done), page(Stage::Open))?;
        }
        synced
    }

    /// Removes the page: nothing is left to do.
    pub(super) fn close(self) {
        for stage in Stage::ALL {
            let _ = std::fs::remove_file(self.path.with_extension(stage.ending()));
        }
    }
}

/// Undoes edits that a dead process left half done, and removes what they left over. Edits in
/// progress are left alone. Returns how many were undone.
pub fn mend(journals: &Path) -> usize {
    let mut taken_back = 0;
    let entries = std::fs::read_dir(journals).into_iter().flatten().flatten();
    // An edit may have several pages; the one at the latest stage counts.
    let edits: BTreeSet<PathBuf> = entries.map(|entry| entry.path().with_extension("")).collect();
    for edit in edits {
        let pages: Vec<(PathBuf, Option<Stage>)> =
            std::iter::once((edit.with_extension("new"), None))
                .chain(Stage::ALL.map(|stage| (edit.with_extension(stage.ending()), Some(stage))))
                .filter(|(page, _)| page.is_file())
                .collect();
        let locks: Vec<File> = pages.iter().filter_map(|(page, _)| File::open(page).ok()).collect();
        if locks.iter().any(|lock| lock.try_lock().is_err()) {
            continue;
        }
        if let Some((page, Some(stage))) = pages.iter().max_by_key(|(_, stage)| *stage)
            && let Ok(text) = std::fs::read(page)
            && let Ok(read) = serde_json::from_slice::<Page>(&text)
        {
            // A disk that is missing now may be back next time.
            let Ok(root) = Root::open(&path(&read.root)) else { continue };
            if number(root.path()) != read.number || !tidy(&root, &read, *stage) {
                continue;
            }
            taken_back += usize::from(*stage == Stage::Open);
        }
        // From the earliest stage to the latest: if we die here, the remaining pages still say the
        // same.
        for (page, _) in &pages {
            let _ = std::fs::remove_file(page);
        }
    }
    taken_back
}

/// The temporary name of the old file, if two files cannot be swapped.
pub(super) fn aside(part: &str) -> String {
    format!("{part}.old")
}

/// Undoes or cleans up one edit. Returns whether nothing is left to do.
fn tidy(root: &Root, page: &Page, stage: Stage) -> bool {
    let mut all = true;
    for entry in page.entries.iter().rev() {
        let file = path(&entry.path);
        let (Some(name), Some(folder)) = (file.file_name(), file.parent()) else { continue };
        let Ok(place) = Place::open(root, folder) else { continue };
        match stage {
            Stage::Open => {
                all &= entry.op.back(&place, name, entry.part.as_ref(), &entry.new, None, false)
            }
            Stage::Parts | Stage::Done => {
                place.remove(entry.part.as_ref());
                place.remove(aside(&entry.part).as_ref());
            }
        }
    }
    if stage != Stage::Done {
        root.remove_folders(&page.folders.iter().map(|folder| path(folder)).collect::<Vec<_>>());
    }
    all
}

/// The inode that identifies a folder; 0 where there are none.
fn number(folder: &Path) -> u64 {
    #[cfg(unix)]
    return folder.metadata().map_or(0, |about| std::os::unix::fs::MetadataExt::ino(&about));
    #[cfg(not(unix))]
    {
        let _ = folder;
        0
    }
}
