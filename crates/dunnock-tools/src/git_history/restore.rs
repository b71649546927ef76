//! Restores what a session's calls lost, and removes what is no longer needed.

use super::files;
use super::loss::{Loss, merged, named, repository};
use super::record::{self, Budget, Repo, STASH, STASH_LOG, new_object};
use super::{Entry, FOLDER, History, put};
#[cfg(target_os = "linux")]
use crate::guard::is_tame;
use dunnock_core::failpoint;
use dunnock_proto::SessionId;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(not(target_os = "linux"))]
fn is_tame(_: &str, _: bool) -> bool {
    false
}

/// Bytes of vanished objects that are kept although no loss was found.
const SPARE: u64 = 256 << 20;

/// A loss is kept at least this long, however large it is.
const DAY: Duration = Duration::from_secs(86_400);

/// What an undo did to git's history.
#[derive(Debug, Default)]
pub(crate) struct RestoredHistory {
    pub(crate) restored: Vec<String>,
    pub(crate) failed: Vec<String>,
}

pub(super) fn entries(folder: &Path) -> PathBuf {
    folder.join("entries")
}

/// Takes the lock of a folder, waiting until it is free.
pub(super) fn lock(folder: &Path) -> io::Result<File> {
    dunnock_private::create_folder(folder)?;
    let file = dunnock_private::open_append(&folder.join("lock"))?;
    file.lock()?;
    Ok(file)
}

/// Whether a command may be running, of whichever session.
pub(super) fn is_running(folder: &Path) -> bool {
    let records = std::fs::read_dir(folder.join("records")).into_iter().flatten().flatten();
    records.into_iter().any(|file| file.path().extension().is_some_and(|end| end == "running"))
}

/// The losses of all sessions, the oldest first.
fn all(folder: &Path) -> Vec<(PathBuf, Entry)> {
    let files = std::fs::read_dir(entries(folder)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let entry = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        Some((path, entry))
    };
    paths.into_iter().filter_map(read).collect()
}

/// The losses of a session after a step.
fn after(folder: &Path, session: &SessionId, step: u32) -> Vec<(PathBuf, Entry)> {
    let mut all = all(folder);
    all.retain(|(_, entry)| entry.session == session.as_str() && entry.step > step);
    all
}

fn delete(path: &Path) {
    let _ = std::fs::remove_file(path);
    let _ = std::fs::remove_file(path.with_extension("record"));
}

/// Enters what a command lost whose process died.
fn recover(folder: &Path, workspace: &Path, session: &SessionId) {
    let mut history = History::new(workspace, session, Some(folder.to_path_buf()));
    if history.unchecked {
        let step = history.marker().and_then(|path| std::fs::read_to_string(path).ok());
        let step = step.and_then(|step| step.trim().parse().ok()).unwrap_or(u32::MAX);
        history.check(step, 0);
        if let Some(file) = history.record_file() {
            let _ = history.write_record(&file);
        }
    }
}

/// Names what undo would restore: what this session lost after a step.
pub(crate) fn lost(store: &Path, workspace: &Path, session: &SessionId, step: u32) -> Vec<String> {
    let folder = store.join(FOLDER);
    if !folder.exists() {
        return Vec::new();
    }
    let Ok(_locked) = lock(&folder) else { return Vec::new() };
    recover(&folder, workspace, session);
    let losses = after(&folder, session, step).into_iter().flat_map(|(_, entry)| entry.losses);
    let mut words: Vec<String> = losses.flat_map(|loss| loss.restorable()).collect();
    words.dedup();
    words
}

/// What was lost and not reported to the person yet.
pub(crate) fn unreported(store: &Path, session: &SessionId) -> Option<String> {
    let folder = store.join(FOLDER);
    if !entries(&folder).exists() {
        return None;
    }
    let _locked = lock(&folder).ok()?;
    let mut words = Vec::new();
    for (path, mut entry) in after(&folder, session, 0) {
        if !entry.reported {
            entry.reported = true;
            words.append(&mut entry.words.clone());
            let _ = serde_json::to_vec(&entry).map(|bytes| put(&path, &bytes));
        }
    }
    (!words.is_empty()).then(|| format!("git history: {}", words.join("; ")))
}

/// Restores what this session lost after a step.
pub(crate) fn restore(
    store: &Path,
    workspace: &Path,
    session: &SessionId,
    step: u32,
) -> RestoredHistory {
    let (folder, mut done) = (store.join(FOLDER), RestoredHistory::default());
    if !folder.exists() {
        return done;
    }
    let _locked = match lock(&folder) {
        Ok(locked) => locked,
        Err(error) => {
            done.failed.push(error.to_string());
            return done;
        }
    };
    recover(&folder, workspace, session);
    let history = History::new(workspace, session, Some(folder.clone()));
    for (path, entry) in after(&folder, session, step) {
        let record = std::fs::read(path.with_extension("record")).ok();
        let record = record.and_then(|bytes| record::decode(&bytes)).unwrap_or_default();
        let mut failed = Vec::new();
        for loss in &entry.losses {
            match record.get(&loss.dir) {
                Some(before) => {
                    let mut why = history.restore(loss, before, &mut done.restored);
                    if why.is_empty() {
                        done.restored.extend(loss.restorable());
                    }
                    failed.append(&mut why);
                }
                None => failed.push(format!("{}: its record is damaged", repository(&loss.dir))),
            }
        }
        failpoint::hit("history.restored", "");
        if failed.is_empty() {
            delete(&path);
        }
        done.failed.append(&mut failed);
    }
    done.restored.dedup();
    done
}

impl History {
    /// Restores what one repository lost; returns what failed. `saved` are settings that got
    /// another name.
    fn restore(&self, loss: &Loss, before: &Repo, saved: &mut Vec<String>) -> Vec<String> {
        let mut failed: Vec<String> = Vec::new();
        let git = match self.open_or_create(loss) {
            Ok(git) => git,
            Err(error) => return vec![format!("{}: {error}", repository(&loss.dir))],
        };
        let mut note = |what: String, done: io::Result<()>| {
            if let Err(error) = done {
                failed.push(format!("{what}: {error}"));
            }
        };
        if let Some(mirror) = self.mirror(&loss.dir) {
            let (_, not) = mirror.restore(&git);
            if let Some(first) = not.first() {
                let more = not.len() - 1;
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                note("objects".into(), Err(io::Error::other(format!("{first}{more}"))));
            }
        }
        if loss.destroyed {
            for (path, done) in put_back_files(&git, before) {
                if done.is_ok() && path.extension().is_some_and(|end| end == "saved") {
                    saved.push(format!("{} (it can run programs)", path.display()));
                }
                note(path.display().to_string(), done);
            }
        }
        let now = Repo::read(&git, None, &mut Budget::long());
        let refs = now.refs();
        for lost in &loss.refs {
            let current = refs.get(&lost.name);
            let done = match (current, &lost.now) {
                (None, _) => put_ref(&git, &lost.name, &lost.was),
                (Some(current), Some(moved)) if current == moved => {
                    trace(&git, &now, &lost.name, current, &lost.was)
                        .and_then(|()| put_ref(&git, &lost.name, &lost.was))
                }
                // It has another value by now: that one stays.
                (Some(_), _) => Ok(()),
            };
            note(named(&lost.name), done);
        }
        for path in &loss.logs {
            let lines = merged(&before.log(path), &now.log(path), false);
            let mode = before.files.get(path).map_or(0o644, |file| file.mode);
            if now.bytes(path) != Some(&lines) {
                note(path.display().to_string(), files::write(&git, path, &lines, mode));
            }
        }
        if loss.stashes > 0 {
            note("the stash".into(), put_stash(&git, before, &now));
        }
        failed
    }

    fn open_or_create(&self, loss: &Loss) -> io::Result<OwnedFd> {
        match files::open_git(&self.workspace, &loss.dir) {
            Err(error) if loss.destroyed && error.kind() == io::ErrorKind::NotFound => {
                let base = if loss.dir.is_absolute() { Path::new("/") } else { &self.workspace };
                let dir = loss.dir.strip_prefix("/").unwrap_or(&loss.dir);
                let base = files::open_root(base)?;
                Ok(files::enter_or_create(&base, &dir.join("HEAD"))?.0)
            }
            opened => opened,
        }
    }
}

/// Puts back the small files of a destroyed repository, as far as they are missing. HEAD comes
/// last: it makes the folder a repository.
fn put_back_files(git: &OwnedFd, before: &Repo) -> Vec<(PathBuf, io::Result<()>)> {
    let mut done = Vec::new();
    for folder in ["objects/info/x", "objects/pack/x", "refs/heads/x", "refs/tags/x"] {
        let made = files::enter_or_create(git, Path::new(folder)).map(drop);
        done.push((PathBuf::from(folder).with_file_name(""), made));
    }
    let now = Repo::read(git, None, &mut Budget::long());
    let head = Path::new("HEAD");
    let others = before.files.iter().filter(|(path, _)| path.as_path() != head);
    for (path, file) in others.chain(before.files.get_key_value(head)) {
        let missing = match path.as_path() == head {
            true => !now.whole,
            false => now.bytes(path).is_none(),
        };
        let to = if missing { Some(harmless(path, &file.bytes)) } else { None };
        if let Some(to) = to.filter(|to| now.bytes(to).is_none() || to == head) {
            done.push((to.clone(), files::write(git, &to, &file.bytes, file.mode)));
        }
    }
    done
}

/// Where a file is put back: a setting that can make git run a program gets a name that git does
/// not read. A command may have planted it before it was recorded.
fn harmless(path: &Path, bytes: &[u8]) -> PathBuf {
    let in_work_tree = path.starts_with("worktrees");
    // A stopped rebase can run commands when it continues.
    let sequence = ["rebase-merge", "rebase-apply", "sequencer"];
    let in_sequence =
        path.components().any(|part| sequence.iter().any(|name| part.as_os_str() == *name));
    let runs_nothing = match path.file_name().and_then(std::ffi::OsStr::to_str) {
        _ if in_sequence => false,
        Some("config") => is_tame(&String::from_utf8_lossy(bytes), path.starts_with("modules")),
        Some("commondir") => in_work_tree && bytes.trim_ascii() == b"../..",
        Some("config.worktree") => false,
        Some("attributes") => !path.starts_with("info"),
        _ => true,
    };
    let is_ref = path.starts_with("refs") || path.starts_with("logs");
    if runs_nothing || is_ref {
        return path.to_path_buf();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".saved");
    name.into()
}

fn put_ref(git: &OwnedFd, name: &Path, object: &str) -> io::Result<()> {
    files::write(git, name, format!("{object}\n").as_bytes(), 0o644)
}

/// Notes in the reflog where a ref was, so that it can be found again.
fn trace(git: &OwnedFd, repo: &Repo, name: &Path, from: &str, to: &str) -> io::Result<()> {
    let path = Path::new("logs").join(name);
    let mut log = repo.bytes(&path).unwrap_or_default().to_vec();
    let seconds = files::now() / 1000;
    log.extend(format!("{from} {to} dunnock <> {seconds} +0000\tdunnock undo\n").as_bytes());
    files::write(git, &path, &log, 0o644)
}

/// Puts dropped entries back into the stash.
fn put_stash(git: &OwnedFd, before: &Repo, now: &Repo) -> io::Result<()> {
    let lines = merged(&before.log(STASH_LOG), &now.log(STASH_LOG), true);
    let newest = lines.split(|b| *b == b'\n').rfind(|line| !line.is_empty()).and_then(new_object);
    let refs = before.refs();
    let newest = newest.or_else(|| refs.get(Path::new(STASH)).map(String::as_str));
    let Some(newest) = newest else { return Err(io::Error::other("its record is damaged")) };
    if !lines.is_empty() {
        files::write(git, Path::new(STASH_LOG), &lines, 0o644)?;
    }
    put_ref(git, Path::new(STASH), newest)
}

/// Removes what was recorded for a session.
pub(crate) fn forget(store: &Path, session: &SessionId) -> io::Result<()> {
    let folder = store.join(FOLDER);
    if !folder.exists() {
        return Ok(());
    }
    let _locked = lock(&folder)?;
    after(&folder, session, 0).iter().for_each(|(path, _)| delete(path));
    let record = folder.join("records").join(session.as_str());
    let _ = std::fs::remove_file(record.with_extension("running"));
    let _ = std::fs::remove_file(record);
    clean(&folder, 0)
}

/// Removes vanished objects that no loss needs, beyond `spare` bytes, and everything if there is
/// no record left.
fn clean(folder: &Path, spare: u64) -> io::Result<()> {
    let records = std::fs::read_dir(folder.join("records")).into_iter().flatten().count();
    let losses = all(folder).len();
    if records + losses == 0 {
        return std::fs::remove_dir_all(folder);
    }
    if losses == 0 && lost_bytes(folder).values().sum::<u64>() > spare {
        lost_bytes(folder).keys().try_for_each(std::fs::remove_dir_all)?;
    }
    Ok(())
}

/// The folders of vanished objects with their sizes.
fn lost_bytes(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let below = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let repos = below(&folder.join("repos")).map(|repo| repo.path().join("lost"));
    let size = |lost: &Path| {
        let files = below(lost).flat_map(|dir| below(&dir.path()).collect::<Vec<_>>());
        files.filter_map(|file| file.metadata().ok()).map(|about| about.blocks() * 512).sum()
    };
    repos.filter(|lost| lost.exists()).map(|lost| (lost.clone(), size(&lost))).collect()
}

/// Bytes that only the records of this store occupy.
pub(crate) fn size(store: &Path) -> u64 {
    lost_bytes(&store.join(FOLDER)).values().sum()
}

/// Enforces the limits: removes records and losses that are too old. If the objects are too large,
/// a loss is too old after a day.
pub(crate) fn collect(store: &Path, bytes: u64, age: Duration) {
    let folder = store.join(FOLDER);
    if !folder.exists() {
        return;
    }
    let Ok(_locked) = lock(&folder) else { return };
    let is_older = |path: &Path, age: Duration| {
        let modified = path.metadata().and_then(|about| about.modified()).ok();
        modified.is_some_and(|at| at.elapsed().unwrap_or_default() > age)
    };
    let is_old = |path: &Path| is_older(path, age);
    let too_large = lost_bytes(&folder).values().sum::<u64>() > bytes;
    for (path, _) in all(&folder) {
        if is_old(&path) || (too_large && is_older(&path, DAY)) {
            delete(&path);
        }
    }
    let records = std::fs::read_dir(folder.join("records")).into_iter().flatten().flatten();
    for record in records.map(|record| record.path()).filter(|record| is_old(record)) {
        let _ = std::fs::remove_file(record);
    }
    let _ = clean(&folder, SPARE);
}
