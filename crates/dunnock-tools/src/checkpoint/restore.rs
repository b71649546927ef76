//! Restores files: removals first, then folders, then files, then the modes of folders.
//!
//! Invariant: repeating it after a kill ends in the same state. Each file is a new one, renamed
//! into place.
//! Invariant: nothing is written through a link; folders are opened one inside the other.

use super::diff::{Changes, NodeChange};
use super::file_facts::{Stamp, number, open_root, user_attributes};
use super::object::{NameOnly, Node, are_same, decode_attributes};
use super::pack::Pack;
use dunnock_core::failpoint;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What could not be restored, and why.
pub(crate) type Failed = Vec<(PathBuf, String)>;

/// What a restore did not bring back.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    pub(crate) failed: Failed,
    /// Files that had other names (hard links) and are files of their own now.
    pub(crate) unlinked: Vec<PathBuf>,
}

pub(crate) struct Restore<'a> {
    pack: &'a mut Pack,
    root: OwnedFd,
    failed: Failed,
    /// Folders that had to be made writable, with their original mode.
    relaxed: BTreeMap<PathBuf, u32>,
    parts: u32,
    stamps: BTreeMap<PathBuf, Stamp>,
}

/// Changes each path to the `after` state of its change. `stamp` identifies a file as it was
/// scanned: one that was saved since is left alone.
pub(crate) fn restore(
    pack: &mut Pack,
    root: &Path,
    changes: &Changes,
    stamp: impl Fn(&Path) -> Option<Stamp>,
    lasting: bool,
) -> io::Result<Missing> {
    let root = open_root(root)?;
    let stamps = changes.keys().filter_map(|path| Some((path.clone(), stamp(path)?))).collect();
    let mut work =
        Restore { pack, root, failed: Vec::new(), relaxed: BTreeMap::new(), parts: 0, stamps };
    let is_folder = |node: &Option<Node>| matches!(node, Some(Node::Folder { .. }));
    // Removals, the deepest first. A file that replaces a file is not removed first.
    for (path, change) in changes.iter().rev() {
        let swapped = is_folder(&change.before) != is_folder(&change.after);
        if change.before.is_some() && (change.after.is_none() || swapped) {
            let done = work.remove(path, is_folder(&change.before));
            work.note(path, done);
        }
    }
    failpoint::hit("restore.removed", "");
    for (path, change) in changes {
        if is_folder(&change.after) && !is_folder(&change.before) {
            let done = work.folder(path);
            work.note(path, done);
        }
    }
    failpoint::hit("restore.folders", "");
    let mut unlinked = Vec::new();
    for (path, change) in changes {
        let done = match &change.after {
            Some(Node::File { mode, hash, attributes, linked, .. }) => {
                if *linked {
                    unlinked.push(path.clone());
                }
                let about = FileAbout { mode: *mode, attributes: attributes.as_ref() };
                work.file(path, hash, about, change.before.is_none())
            }
            Some(Node::Link { target }) => work.link(path, target, change.before.is_none()),
            Some(Node::Folder { .. } | Node::Left { .. }) | None => continue,
        };
        work.note(path, done);
    }
    failpoint::hit("restore.files", "");
    for (path, change) in changes {
        if let Some(Node::Folder { attributes, .. }) = &change.after {
            let before = match &change.before {
                Some(Node::Folder { attributes, .. }) => *attributes,
                _ => None,
            };
            if before != *attributes {
                let done = work.folder_attributes(path, attributes.as_ref());
                work.note(path, done);
            }
        }
    }
    let mut modes = std::mem::take(&mut work.relaxed);
    for (path, change) in changes {
        if let Some(Node::Folder { mode, .. }) = change.after {
            modes.insert(path.clone(), mode);
        }
    }
    for (path, mode) in modes.iter().rev() {
        match work.mode(path, *mode) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {} // it was removed
            done => work.note(path, done),
        }
    }
    failpoint::hit("restore.modes", "");
    // One sync for all of them.
    #[cfg(target_os = "linux")]
    if lasting {
        let done = rustix::fs::syncfs(&work.root).map_err(io::Error::from);
        work.note(Path::new("."), done);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = lasting;
    Ok(Missing { failed: work.failed, unlinked })
}

/// What a file has besides its content.
struct FileAbout<'a> {
    mode: u32,
    attributes: Option<&'a dunnock_proto::Hash>,
}

impl Restore<'_> {
    fn note(&mut self, path: &Path, done: io::Result<()>) {
        if let Err(error) = done {
            self.failed.push((path.to_path_buf(), error.to_string()));
        }
    }

    fn enter(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        let flags = flags | OFlags::PATH;
        let mut dir = self.root.as_fd().try_clone_to_owned()?;
        for part in path.components() {
            dir = rustix::fs::openat(&dir, part.as_os_str(), flags, Mode::empty())?;
        }
        Ok(dir)
    }

    /// Opens the folder above a path, made writable, and returns the name in it.
    fn place<'p>(&mut self, path: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let above = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let dir = self.enter(above)?;
        let mode = number::<_, u32>(rustix::fs::fstat(&dir)?.st_mode) & 0o7777;
        if mode & 0o300 != 0o300 && !rustix::process::geteuid().is_root() {
            set_mode(&dir, mode | 0o700)?;
            self.relaxed.entry(above.to_path_buf()).or_insert(mode);
        }
        Ok((dir, name))
    }

    /// A last check, so that a file saved just now is not overwritten.
    fn unchanged(&self, dir: &OwnedFd, path: &Path) -> io::Result<()> {
        let (Some(then), Some(name)) = (self.stamps.get(path), path.file_name()) else {
            return Ok(());
        };
        match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) if Stamp::of(&now) != *then => {
                Err(io::Error::other("another program changed it just now"))
            }
            _ => Ok(()),
        }
    }

    fn remove(&mut self, path: &Path, folder: bool) -> io::Result<()> {
        let (dir, name) = match self.place(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        // On a second run, the path may already be of the other kind.
        let is_folder = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::Directory,
            Err(rustix::io::Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if is_folder != folder {
            return Ok(());
        }
        self.unchanged(&dir, path)?;
        let flags = if folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        failpoint::hit("restore.remove", "");
        match rustix::fs::unlinkat(&dir, name, flags) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(rustix::io::Errno::NOTEMPTY) => {
                Err(io::Error::other("it contains files that do not belong to this session"))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn folder(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.place(path)?;
        failpoint::hit("restore.folder", "");
        match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o700)) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::EXIST) => self.enter(path).map(drop),
            Err(error) => Err(error.into()),
        }
    }

    fn part(&mut self) -> String {
        self.parts += 1;
        format!(".dunnock-{}-back{}.part", std::process::id(), self.parts)
    }

    fn file(
        &mut self,
        path: &Path,
        hash: &dunnock_proto::Hash,
        about: FileAbout<'_>,
        new: bool,
    ) -> io::Result<()> {
        let (dir, name) = self.place(path)?;
        let part = self.part();
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let done = (|| {
            let mut file: File =
                rustix::fs::openat(&dir, &part, flags, Mode::from_raw_mode(0o600))?.into();
            self.pack.copy(hash, &mut file)?;
            // A read-only file takes no attributes.
            for (name, value) in self.attributes(about.attributes)? {
                set_attribute(&file, &name, &value)?;
            }
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(about.mode))?;
            failpoint::hit("restore.file", "");
            self.unchanged(&dir, path)?;
            place(&dir, &part, name, new)
        })();
        if done.is_err() {
            let _ = rustix::fs::unlinkat(&dir, &part, AtFlags::empty());
        }
        done
    }

    fn link(&mut self, path: &Path, target: &[u8], new: bool) -> io::Result<()> {
        let (dir, name) = self.place(path)?;
        let part = self.part();
        rustix::fs::symlinkat(OsStr::from_bytes(target), &dir, &part)?;
        failpoint::hit("restore.link", "");
        let done = self.unchanged(&dir, path).and_then(|()| place(&dir, &part, name, new));
        if done.is_err() {
            let _ = rustix::fs::unlinkat(&dir, &part, AtFlags::empty());
        }
        done
    }

    /// Saved extended attributes.
    fn attributes(
        &mut self,
        saved: Option<&dunnock_proto::Hash>,
    ) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        match saved {
            Some(hash) => decode_attributes(&self.pack.get(hash)?),
            None => Ok(Vec::new()),
        }
    }

    /// Gives a folder exactly these extended attributes.
    fn folder_attributes(
        &mut self,
        path: &Path,
        saved: Option<&dunnock_proto::Hash>,
    ) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (dir, name) = self.place(path)?;
        let folder = rustix::fs::openat(&dir, name, flags, Mode::empty())?;
        let wanted = self.attributes(saved)?;
        for name in user_attributes(&folder).keys() {
            if !wanted.iter().any(|(known, _)| known == name) {
                remove_attribute(&folder, name)?;
            }
        }
        wanted.iter().try_for_each(|(name, value)| set_attribute(&folder, name, value))
    }

    fn mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        set_mode(&self.enter(path)?, mode)
    }
}

#[cfg(target_os = "linux")]
fn set_attribute(file: impl std::os::fd::AsFd, name: &[u8], value: &[u8]) -> io::Result<()> {
    rustix::fs::fsetxattr(file, name, value, rustix::fs::XattrFlags::empty()).map_err(|error| {
        let name = String::from_utf8_lossy(name).into_owned();
        io::Error::other(format!("its extended attribute {name}: {error}"))
    })
}

#[cfg(target_os = "linux")]
fn remove_attribute(file: impl std::os::fd::AsFd, name: &[u8]) -> io::Result<()> {
    Ok(rustix::fs::fremovexattr(file, name)?)
}

#[cfg(not(target_os = "linux"))]
fn set_attribute(_: impl std::os::fd::AsFd, _: &[u8], _: &[u8]) -> io::Result<()> {
    Err(io::Error::other("extended attributes are not supported on this system yet"))
}

#[cfg(not(target_os = "linux"))]
fn remove_attribute(_: impl std::os::fd::AsFd, _: &[u8]) -> io::Result<()> {
    Ok(())
}

/// Renames into place. A new path must not exist yet: another program may have just created it.
fn place(dir: &OwnedFd, part: &str, name: &OsStr, new: bool) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if new {
        match rustix::fs::renameat_with(dir, part, dir, name, rustix::fs::RenameFlags::NOREPLACE) {
            // Some file systems do not support this.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            Err(rustix::io::Errno::EXIST) => {
                return Err(io::Error::other("something else was created there in the meantime"));
            }
            done => return Ok(done?),
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = new;
    Ok(rustix::fs::renameat(dir, part, dir, name)?)
}

/// Through the descriptor, so that whatever was put in its place in the meantime is not touched.
fn set_mode(dir: &OwnedFd, mode: u32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::chmod(
        format!("/proc/self/fd/{}", dir.as_raw_fd()),
        Mode::from_raw_mode(number(mode)),
    )?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::fchmod(dir, Mode::from_raw_mode(number(mode)))?;
    Ok(())
}

/// Removes unfinished files that a killed restore left behind.
pub(crate) fn sweep(root: &Path, changes: &Changes) {
    let Ok(root) = open_root(root) else { return };
    let folders: std::collections::BTreeSet<&Path> =
        changes.keys().filter_map(|p| p.parent()).collect();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for folder in folders {
        let mut dir = root.as_fd().try_clone_to_owned().ok();
        for part in folder.components() {
            dir = dir
                .and_then(|d| rustix::fs::openat(&d, part.as_os_str(), flags, Mode::empty()).ok());
        }
        let Some(dir) = dir else { continue };
        for entry in rustix::fs::Dir::read_from(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_bytes();
            if name.starts_with(b".dunnock-")
                && name.ends_with(b".part")
                && name.windows(5).any(|w| w == b"-back")
            {
                let _ = rustix::fs::unlinkat(&dir, entry.file_name(), AtFlags::empty());
            }
        }
    }
}

/// What to do to get from one state to another, and what to leave alone.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) changes: Changes,
    /// Changed by others.
    pub(crate) kept: Vec<PathBuf>,
    /// Exists now and is not saved: if it were removed, it could not be restored.
    pub(crate) large: Vec<PathBuf>,
    /// Build folders that git ignores and that did not exist then: they stay, without a note.
    built: Vec<PathBuf>,
    /// Was not saved then, so it cannot be restored.
    pub(crate) lost: Vec<PathBuf>,
    /// Removed without being saved, because what it replaced is restored.
    pub(crate) dropped: Vec<PathBuf>,
    /// Readable then but not now, with the mode it had.
    locked: Vec<(PathBuf, u32)>,
    /// Some of what this session changed stays as it is or does not come back.
    pub(crate) partial: bool,
}

/// Splits the differences between now and then into what this session changed and what others did.
pub(crate) fn plan(all: Changes, ours: &Changes, theirs: &Changes, force: bool) -> Plan {
    let mut plan = Plan::default();
    // The contents of a folder that is not scanned are unknown, so nothing is written there.
    let closed: Vec<PathBuf> = all
        .iter()
        .filter(|(_, change)| matches!(change.before, Some(Node::Left { .. })))
        .map(|(path, _)| path.clone())
        .collect();
    for (path, change) in all {
        let meant = force || (ours.contains_key(&path) && !theirs.contains_key(&path));
        let own = |node: &Option<Node>| matches!(node, Some(Node::Left { why: NameOnly::Own, .. }));
        let inside = closed.iter().any(|dir| path != *dir && path.starts_with(dir));
        match (&change.before, &change.after) {
            (before, after) if own(before) || own(after) => {}
            _ if inside => {}
            (Some(Node::Left { why: NameOnly::Build, .. }), None) => plan.built.push(path),
            (_, Some(Node::Left { .. })) if meant => {
                plan.partial = true;
                plan.lost.push(path);
            }
            (
                Some(Node::Left { why: NameOnly::Unreadable, .. }),
                Some(Node::File { mode, .. } | Node::Folder { mode, .. }),
            ) if meant => {
                plan.locked.push((path.clone(), *mode));
                plan.partial = true;
                plan.large.push(path);
            }
            (
                Some(Node::Left { why: NameOnly::Large | NameOnly::Special, .. }),
                Some(Node::File { .. } | Node::Link { .. }),
            ) if meant => {
                plan.dropped.push(path.clone());
                plan.changes.insert(path, change);
            }
            (Some(Node::Left { why, .. }), _) if meant => {
                // What programs can build again may stay.
                plan.partial |= *why != NameOnly::Build;
                plan.large.push(path);
            }
            _ if meant => drop(plan.changes.insert(path, change)),
            _ => {
                plan.partial |= ours.contains_key(&path);
                plan.kept.push(path);
            }
        }
    }
    plan.spare_folders();
    plan
}

impl Plan {
    /// A folder stays if something in it does.
    fn spare_folders(&mut self) {
        let stays = self.kept.iter().chain(&self.large).chain(&self.built);
        let stays: Vec<PathBuf> = stays.cloned().collect();
        let folder = |node: &Option<Node>| matches!(node, Some(Node::Folder { .. }));
        self.changes.retain(|path, change| {
            let goes = folder(&change.before) && !folder(&change.after);
            !(goes && stays.iter().any(|k| k.starts_with(path)))
        });
    }

    /// Accounts for what happened since the files were saved: what is already done, and what others
    /// did.
    pub(crate) fn adjust(&mut self, late: Changes, force: bool) {
        for (path, since) in late {
            if let (Some(Node::Folder { mode: was, .. }), Some(Node::Folder { mode: is, .. })) =
                (&since.before, &since.after)
                && *is == was | 0o700
                && !self.changes.contains_key(&path)
            {
                // A folder that we made writable before we were killed.
                self.changes.insert(path, NodeChange { before: since.after, after: since.before });
                continue;
            }
            let closed = matches!(since.after, Some(Node::Left { .. }));
            if closed && !force {
                self.changes.retain(|p, _| !p.starts_with(&path));
                self.partial = true;
                self.kept.push(path);
                continue;
            }
            let Some(change) = self.changes.get(&path) else { continue };
            if are_same(since.after.as_ref(), change.after.as_ref()) {
                self.changes.remove(&path);
            } else if !force && !matches!(since.after, None | Some(Node::Folder { .. })) {
                self.changes.remove(&path);
                self.partial = true;
                self.kept.push(path);
            }
        }
        self.spare_folders();
    }

    /// Tells people what was not done.
    pub(crate) fn notes(&self) -> Vec<String> {
        let list = |paths: &[PathBuf]| {
            let some: Vec<String> =
                paths.iter().take(10).map(|p| p.to_string_lossy().into_owned()).collect();
            let more = paths.len().saturating_sub(10);
            if more > 0 { format!("{} and {more} more", some.join(", ")) } else { some.join(", ") }
        };
        let all = [
            ("not restored, since others changed them", &self.kept),
            (
                "left unchanged, since they are not saved and could not be restored again",
                &self.large,
            ),
            ("cannot be restored, since they were not saved", &self.lost),
            ("replaced by the earlier version without being saved", &self.dropped),
        ];
        all.iter()
            .filter(|(_, paths)| !paths.is_empty())
            .map(|(what, paths)| format!("{what}: {}", list(paths)))
            .collect()
    }
}

/// Restores the modes of what was readable then but is not now. Returns whether there was any.
pub(crate) fn unlock(root: &Path, plan: &Plan) -> bool {
    let Ok(root) = open_root(root) else { return false };
    let mut done = false;
    for (path, mode) in &plan.locked {
        let mut at = root.as_fd().try_clone_to_owned().ok();
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        let flags = flags | OFlags::PATH;
        for part in path.components() {
            at = at.and_then(|at| {
                rustix::fs::openat(&at, part.as_os_str(), flags, Mode::empty()).ok()
            });
        }
        done |= at.is_some_and(|file| set_mode(&file, *mode).is_ok());
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_save_between_the_look_and_the_rename_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let (root, store) = (dir.path().join("w"), dir.path().join("s"));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&store).unwrap();
        let mut pack = Pack::open(&store, &Pack::lock(&store).unwrap()).unwrap();
        let hash = pack.put(b"old").unwrap();
        let file =
            |size| Some(Node::File { mode: 0o644, size, hash, attributes: None, linked: false });
        std::fs::write(root.join("a"), "seen").unwrap();
        let seen = Stamp::of(&rustix::fs::stat(root.join("a")).unwrap());
        let changes =
            Changes::from([(PathBuf::from("a"), NodeChange { before: file(4), after: file(3) })]);
        std::fs::write(root.join("a"), "saved just now").unwrap();
        let failed = restore(&mut pack, &root, &changes, |_| Some(seen), true).unwrap();
        assert_eq!(
            failed.failed,
            [(PathBuf::from("a"), "another program changed it just now".to_owned())]
        );
        assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "saved just now");
        let now = Stamp::of(&rustix::fs::stat(root.join("a")).unwrap());
        assert_eq!(restore(&mut pack, &root, &changes, |_| Some(now), true).unwrap().failed, []);
        assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "old");
    }
}
