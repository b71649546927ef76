//! Changes files, all or nothing.
//!
//! New contents are first written beside the files, where a full disk does no harm. Then each file
//! is atomically swapped with the new one, and the old one is compared with what the change was
//! based on: if another program was faster, everything is undone. A journal outside the workspace
//! records what is in progress, so that the next process can undo it after a crash.
//!
//! Invariant: after `commit` returns, or after [`mend`](super::mend) if it never did, either all
//! changes were made or none, and no update by another program was lost.

use super::journal::{FileOp, Journal, Ours, aside};
use super::place::{Kind, Place, Rights};
use super::workspace::{Contents, PathError, RepoPath, Root, part_name, place_error};
use dunnock_core::failpoint;
use dunnock_proto::Hash;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// A change to one file.
#[derive(Debug)]
pub struct FileChange {
    /// The file to change.
    pub path: RepoPath,
    /// Its content when the change was planned; `None` if it did not exist.
    pub before: Option<Contents>,
    /// Its new content; `None` to delete it.
    pub after: Option<Contents>,
}

/// A change in progress.
struct Move<'a> {
    change: &'a FileChange,
    place: Place,
    name: &'a OsStr,
    /// The temporary name beside it: of the new file at first, of the old one after the swap.
    part: String,
    /// The identity of the new file, and the file itself. While we hold it open, other processes
    /// that open it wait.
    new: Ours,
    file: Option<File>,
    op: FileOp,
    /// Whether the swap was tried: the file beside it may be the old one.
    turned: Cell<bool>,
    /// Whether processes that open the new file wait for us.
    held: Cell<bool>,
    /// The old file, once it was taken out of its place.
    old: Cell<Option<File>>,
}

impl Root {
    /// Makes all of these changes, or none of them. The journal is stored in `journals`, a folder
    /// outside the workspace.
    ///
    /// # Errors
    /// When a file is no longer what a change was based on, a path cannot be used, or the disk is
    /// full. Nothing was changed then, except after [`PathError::Stuck`].
    pub fn commit(&self, changes: &[FileChange], journals: &Path) -> Result<(), PathError> {
        for FileChange { path, .. } in changes {
            path.editable()?;
            if self.is_denied(&path.path) {
                let shown = path.shown();
                return Err(if self.is_machine() {
                    PathError::Closed(shown)
                } else {
                    PathError::Denied(shown)
                });
            }
        }
        let parts: Vec<String> = changes.iter().map(|_| part_name()).collect();
        let base = self.journal_base(changes)?;
        let named = changes.iter().zip(&parts).map(|(change, part)| {
            (below(&base, &change.path.path), part.clone(), Ours::default(), op_of(change))
        });
        let folders = self.missing_folders(changes);
        let folders: Vec<PathBuf> = folders.iter().map(|folder| below(&base, folder)).collect();
        let page = |error| PathError::Io("the journal of this edit".into(), error);
        let mut journal =
            Journal::begin(journals, &self.path().join(&base), named, &folders).map_err(page)?;
        let mut made: Vec<PathBuf> = Vec::new();
        let mut moves: Vec<Move<'_>> = Vec::new();
        let done = self
            .prepare(changes, parts, &mut made, &mut moves)
            .and_then(|()| self.carry_out(&moves, &made, &base, &mut journal));
        if matches!(done, Err(PathError::Stuck(..))) {
            return done; // the page stays: the next process tries again
        }
        if done.is_err() {
            for one in moves.iter().filter(|one| one.op != FileOp::Delete && !one.turned.get()) {
                one.place.remove(one.part.as_ref());
            }
            self.remove_folders(&made);
        }
        journal.close();
        done
    }

    /// The folder, relative to this one, by which a journal finds these files again. Outside the
    /// workspace, it is as deep as possible: it must be missing when its disk is.
    fn journal_base(&self, changes: &[FileChange]) -> Result<PathBuf, PathError> {
        let mut parents = changes.iter().map(|change| change.path.parent());
        let Some(first) = parents.next().filter(|_| self.is_machine()) else {
            return Ok(PathBuf::new());
        };
        let fits = |base: &&Path| {
            changes.iter().all(|change| change.path.parent().starts_with(base))
                && self.path().join(base).is_dir()
        };
        let base = first.ancestors().find(fits).unwrap_or(Path::new(""));
        match base.as_os_str().is_empty() && changes.len() > 1 {
            true => Err(PathError::Apart),
            false => Ok(base.to_path_buf()),
        }
    }

    /// Folders that will be created, parents first.
    fn missing_folders(&self, changes: &[FileChange]) -> Vec<PathBuf> {
        let mut missing: Vec<PathBuf> = Vec::new();
        for change in changes.iter().filter(|change| change.after.is_some()) {
            let above =
                change.path.parent().ancestors().filter(|folder| !folder.as_os_str().is_empty());
            missing.extend(
                above
                    .filter(|f| self.path().join(f).symlink_metadata().is_err())
                    .map(Path::to_path_buf),
            );
        }
        missing.sort();
        missing.dedup();
        missing
    }

    pub(super) fn remove_folders(&self, made: &[PathBuf]) {
        for folder in made.iter().rev() {
            let (Some(name), Some(parent)) = (folder.file_name(), folder.parent()) else {
                continue;
            };
            if let Ok(place) = Place::open(self, parent) {
                place.remove_folder(name);
            }
        }
    }

    /// Writes all new contents beside their targets.
    fn prepare<'a>(
        &self,
        changes: &'a [FileChange],
        parts: Vec<String>,
        made: &mut Vec<PathBuf>,
        moves: &mut Vec<Move<'a>>,
    ) -> Result<(), PathError> {
        for (change, part) in changes.iter().zip(parts) {
            let path = &change.path;
            let fail = |error| place_error(path, error);
            let Some(name) = path.path.file_name() else {
                return Err(PathError::NotAFile(path.shown()));
            };
            let place = match change.after {
                Some(_) => Place::make(self, path.parent(), made),
                None => Place::open(self, path.parent()),
            };
            let place = place.map_err(fail)?;
            match place.kind(name).map_err(fail)? {
                Kind::Nothing if change.before.is_some() => {
                    return Err(PathError::Changed(path.shown()));
                }
                Kind::File if change.before.is_none() => {
                    return Err(PathError::Exists(path.shown()));
                }
                Kind::Nothing | Kind::File => {}
                Kind::Link => return Err(PathError::Link(path.shown())),
                Kind::Other => return Err(PathError::NotAFile(path.shown())),
            }
            let mut one = Move {
                change,
                place,
                name,
                part,
                new: Ours::default(),
                file: None,
                op: op_of(change),
                turned: Cell::new(false),
                held: Cell::new(false),
                old: Cell::default(),
            };
            let Some(after) = &change.after else {
                moves.push(one);
                continue;
            };
            let rights = match (after.mode, &change.before) {
                (Some(mode), Some(_)) => Rights::Like(mode, name),
                (Some(mode), None) => Rights::New { runs: mode & 0o111 != 0 },
                (None, _) => Rights::New { runs: false },
            };
            match one.place.new_file(&one.part, &after.bytes, rights) {
                Ok((number, file)) => {
                    one.new = Ours { number, hash: Some(Hash::of(&after.bytes)) };
                    one.file = Some(file);
                }
                Err(error) => {
                    // A name that already existed is not ours to remove.
                    if error.kind() != io::ErrorKind::AlreadyExists {
                        one.place.remove(one.part.as_ref());
                    }
                    return Err(fail(error));
                }
            }
            moves.push(one);
            failpoint::hit("edit.written", "");
        }
        Ok(())
    }

    fn carry_out(
        &self,
        moves: &[Move<'_>],
        made: &[PathBuf],
        base: &Path,
        journal: &mut Journal,
    ) -> Result<(), PathError> {
        let of = |one: &Move<'_>| {
            let path = below(base, &one.change.path.path);
            (path, one.part.clone(), one.new.clone(), one.op)
        };
        let made: Vec<PathBuf> = made.iter().map(|folder| below(base, folder)).collect();
        // One file changes atomically; several must be recoverable even after a power failure.
        let many = moves.len() > 1;
        let page = |error| PathError::Io("the journal of this edit".into(), error);
        journal.open(moves.iter().map(of), &made, many).map_err(page)?;
        failpoint::hit("edit.journal", "");
        let mut done = Ok(());
        for one in moves {
            one.turned.set(true);
            done = op(one);
            failpoint::hit("edit.turned", "");
            if done.is_err() {
                break;
            }
        }
        if done.is_ok() && many {
            done = moves
                .iter()
                .try_for_each(|one| one.place.sync())
                .map_err(|e| PathError::Io("disk sync".into(), e));
        }
        // A program that found an old file by its name may open it only now.
        let done = done.and_then(|()| moves.iter().try_for_each(check_old));
        match done.and_then(|()| journal.done(many).map_err(page)) {
            Ok(()) => {
                failpoint::hit("edit.done", "");
                for one in moves.iter().filter(|one| one.op != FileOp::Create) {
                    one.place.remove(one.part.as_ref());
                    one.place.remove(aside(&one.part).as_ref());
                }
                Ok(())
            }
            Err(error) => {
                for one in moves.iter().filter(|one| one.turned.get()).rev() {
                    if !one.op.back(
                        &one.place,
                        one.name,
                        one.part.as_ref(),
                        &one.new,
                        one.file.as_ref(),
                        one.held.get(),
                    ) {
                        return Err(PathError::Stuck(one.change.path.shown(), one.part.clone()));
                    }
                }
                Err(error)
            }
        }
    }
}

/// A path below a folder.
fn below(base: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(base).unwrap_or(path).to_path_buf()
}

fn op_of(change: &FileChange) -> FileOp {
    match (&change.before, &change.after) {
        (None, _) => FileOp::Create,
        (Some(_), Some(_)) => FileOp::Update,
        (Some(_), None) => FileOp::Delete,
    }
}

/// Puts the new file in place and checks what was there. If this fails, the caller undoes it.
fn op(one: &Move<'_>) -> Result<(), PathError> {
    let path = &one.change.path;
    let fail = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => PathError::Changed(path.shown()),
        _ => place_error(path, error),
    };
    let part: &OsStr = one.part.as_ref();
    // No other process may read what may yet be undone, and then build on it.
    one.held.set(one.file.as_ref().is_some_and(Place::keep_waiting));
    let Some(before) = &one.change.before else {
        return one.place.rename(part, one.name, false).map_err(fail);
    };
    match one.op {
        FileOp::Create => {}
        FileOp::Delete => one.place.rename(one.name, part, false).map_err(fail)?,
        FileOp::Update => match one.place.swap(part, one.name) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return over(one, before),
            swapped => swapped.map_err(fail)?,
        },
    }
    one.old.set(Some(one.place.read(part).map_err(fail)?));
    check_old(one)
}

/// Fails if another program has written to the old file, or is about to.
fn check_old(one: &Move<'_>) -> Result<(), PathError> {
    let path = &one.change.path;
    let (Some(mut file), Some(before)) = (one.old.take(), &one.change.before) else {
        return Ok(());
    };
    let fail = |error| place_error(path, error);
    file.rewind().map_err(fail)?;
    // First make sure that nobody writes to it any more, then compare it.
    if Place::is_written(&file) || !same(&file, before).map_err(fail)? {
        return Err(PathError::Changed(path.shown()));
    }
    one.old.set(Some(file));
    Ok(())
}

/// Where two files cannot be swapped: a copy of the old one stays beside the new one. Between the
/// check and the rename there is a moment in which another program's update can be lost.
fn over(one: &Move<'_>, before: &Contents) -> Result<(), PathError> {
    let path = &one.change.path;
    let fail = |error| place_error(path, error);
    let copy = aside(&one.part);
    let rights =
        before.mode.map_or(Rights::New { runs: false }, |mode| Rights::Like(mode, one.name));
    one.place.new_file(&copy, &before.bytes, rights).map_err(fail)?;
    let now = one.place.read(one.name).map_err(fail)?;
    if Place::is_written(&now) || !same(&now, before).map_err(fail)? {
        return Err(PathError::Changed(path.shown()));
    }
    one.place.rename(one.part.as_ref(), one.name, true).map_err(fail)
}

/// The mode of a file, on systems that have modes.
fn mode_of(file: &File) -> Option<u32> {
    #[cfg(unix)]
    return Some(
        std::os::unix::fs::PermissionsExt::mode(&file.metadata().ok()?.permissions()) & 0o7777,
    );
    #[cfg(not(unix))]
    return file.metadata().ok().and(None);
}

fn same(file: &File, before: &Contents) -> io::Result<bool> {
    let now = mode_of(file);
    if now.is_some() && before.mode.is_some() && now != before.mode {
        return Ok(false);
    }
    let mut bytes = Vec::with_capacity(before.bytes.len());
    file.take(before.bytes.len() as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes == before.bytes)
}

impl Ours {
    /// Whether a name refers to our new file, unchanged since we wrote it. If we have it open, it
    /// is read through that handle: opening it by name would make us wait, too.
    fn is(&self, place: &Place, name: &OsStr, file: Option<&File>) -> bool {
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            match file {
                Some(mut file) => file.rewind().and_then(|()| file.read_to_end(&mut bytes))?,
                None => place.read(name)?.read_to_end(&mut bytes)?,
            };
            Ok(bytes)
        };
        let same = |hash: Hash| read().is_ok_and(|bytes| Hash::of(&bytes) == hash);
        place.number(name) == Some(self.number) && self.hash.is_none_or(same)
    }
}

/// How many times an undo leaves the new file in place for a process that is waiting to write to it.
const MOST_TURNS: usize = 3;

/// Puts the old file, which is now called `part`, back in the place of our new one. Returns whether
/// it could.
fn swap_back(
    place: &Place,
    name: &OsStr,
    part: &OsStr,
    new: &Ours,
    file: Option<&File>,
    held: bool,
) -> bool {
    for turn in 0..=MOST_TURNS {
        if place.swap(part, name).is_err() {
            return false;
        }
        // In between, another program may have put something newer there: swap that back.
        let newer = place.number(part).is_some_and(|number| number != new.number);
        if newer {
            let _ = place.swap(part, name);
        }
        // A process that waits to open our file, which is about to lose its name, must see the
        // restored content instead.
        let Some(ours) = file else { break };
        let Ok(before) = restore_content(place, name, ours) else { break };
        if newer || turn == MOST_TURNS || !held || !Place::is_awaited_by_writer(ours) {
            break;
        }
        // What it writes to our file must not be lost with it: our file, which has the content of
        // the old one now, keeps the name, unless others use the old one.
        let unused = |old: File| Ok(Place::is_unused(&old) && same(&old, &before)?);
        if !place.read(name).and_then(unused).unwrap_or(false)
            || place.swap(part, name).is_err()
            || place.read(part).and_then(unused).unwrap_or(false)
        {
            break;
        }
    }
    true
}

/// Gives our new file the content of the file at `name`.
fn restore_content(place: &Place, name: &OsStr, mut ours: &File) -> io::Result<Contents> {
    let mut old = place.read(name)?;
    let mut bytes = Vec::new();
    old.read_to_end(&mut bytes)?;
    ours.set_len(0)?;
    ours.rewind()?;
    ours.write_all(&bytes)?;
    // It may become the only copy.
    ours.sync_all()?;
    Ok(Contents { bytes, mode: mode_of(ours) })
}

impl FileOp {
    /// Undoes the operation as far as it happened; what others put there in the meantime stays.
    /// Returns whether nothing is left to do.
    pub(super) fn back(
        self,
        place: &Place,
        name: &OsStr,
        part: &OsStr,
        new: &Ours,
        file: Option<&File>,
        held: bool,
    ) -> bool {
        match self {
            Self::Create => {
                for either in [name, part] {
                    if !new.is(place, either, file) {
                        continue;
                    }
                    // A process that is waiting to write to it gets an empty file.
                    match file.filter(|ours| held && Place::is_awaited_by_writer(ours)) {
                        Some(ours) if ours.set_len(0).is_ok() => {}
                        Some(_) | None => place.remove(either),
                    }
                }
                true
            }
            Self::Delete => {
                if place.number(part).is_none() {
                    return true;
                }
                match place.rename(part, name, false) {
                    Ok(()) => true,
                    // Something new has taken its place. On any other error this is the only copy,
                    // so it stays.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        place.remove(part);
                        true
                    }
                    Err(_) => false,
                }
            }
            Self::Update => {
                let copy = aside(&part.to_string_lossy());
                if place.number(copy.as_ref()).is_some() {
                    if new.is(place, name, file) && place.rename(copy.as_ref(), name, true).is_err()
                    {
                        return false;
                    }
                    place.remove(copy.as_ref());
                } else if place.number(part).is_some()
                    && new.is(place, name, file)
                    && !swap_back(place, name, part, new, file, held)
                {
                    return false;
                }
                place.remove(part);
                true
            }
        }
    }
}
