//! Notices when a command destroys the history of a git repository, and restores it.
//!
//! Before a command runs, the small files of each repository are recorded (`record.rs`) and its
//! objects are kept by hard links (`objects.rs`). Afterwards both are compared (`loss.rs`). A loss
//! is reported in the result of the call and entered in a list, from which undo restores it
//! (`restore.rs`). Commits and branches that were only added stay.
//!
//! Invariant: no program is run, no link is followed, and every path in a repository goes by
//! descriptor from the workspace's own folder.
//! Invariant: recording takes at most [`BUDGET`], or as long as the first [`deadline::AT_LEAST`] files need.
//! What it could not do is reported, and the next calls continue.

mod deadline;
mod files;
mod loss;
mod objects;
mod record;
mod restore;

use deadline::Deadline;
use dunnock_core::failpoint;
use dunnock_proto::{Hash, SessionId};
use loss::Loss;
use objects::Mirror;
use record::{Budget, Repo};
pub(crate) use restore::{collect, forget, lost, restore, size, unreported};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long recording may delay a command.
const BUDGET: Duration = Duration::from_millis(100);
/// Repositories inside the git folder of another one, at most.
const MOST_MODULES: usize = 1_000;
/// The folder beside a workspace's checkpoints.
const FOLDER: &str = "git";

/// The folder for what is saved of a workspace.
pub(crate) fn store_folder(base: &Path, root: &Path) -> PathBuf {
    let name = Hash::of(root.as_os_str().as_encoded_bytes()).to_string();
    base.join(name.get(..32).unwrap_or(&name))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The histories that commands of this process may change.
pub(crate) struct Histories {
    /// The folder of all checkpoints; `None` if nothing is saved.
    base: Option<PathBuf>,
    all: Mutex<HashMap<Key, Arc<Mutex<History>>>>,
}

/// A workspace and a session.
type Key = (PathBuf, SessionId);

/// Watches the repositories of a workspace while a command runs.
pub(crate) struct HistoryWatch {
    history: Arc<Mutex<History>>,
    step: u32,
    /// Stash entries that the command applies before it drops them.
    pops: usize,
    over: bool,
}

impl std::fmt::Debug for HistoryWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HistoryWatch").field("step", &self.step).finish_non_exhaustive()
    }
}

impl Histories {
    pub(crate) fn new(base: Option<PathBuf>) -> Self {
        Self { base, all: Mutex::default() }
    }

    /// Records the repositories before a command runs. `found` are their git folders, relative to
    /// the workspace, or absolute.
    pub(crate) fn watch(
        &self,
        workspace: &Path,
        session: &SessionId,
        step: u32,
        found: &[PathBuf],
        pops: usize,
    ) -> Option<HistoryWatch> {
        let history = {
            let mut all = lock(&self.all);
            let key = (workspace.to_path_buf(), session.clone());
            if found.is_empty() && !all.contains_key(&key) {
                return None;
            }
            let new = || {
                let store = self.base.as_ref().map(|base| store_folder(base, workspace));
                History::new(workspace, session, store.map(|store| store.join(FOLDER)))
            };
            all.entry(key).or_insert_with(|| Arc::new(Mutex::new(new()))).clone()
        };
        lock(&history).before(found, step);
        Some(HistoryWatch { history, step, pops, over: false })
    }

    /// What a process that is still running did so far.
    pub(crate) fn report(&self, workspace: &Path, session: &SessionId, step: u32) -> String {
        let key = (workspace.to_path_buf(), session.clone());
        let history = lock(&self.all).get(&key).cloned();
        history.map_or_else(String::new, |history| {
            let mut history = lock(&history);
            if history.running > 0 {
                history.locked(|history| history.check(step, 0));
            }
            history.take_report()
        })
    }

    /// Forgets what is held in memory for a session.
    pub(crate) fn close(&self, session: &SessionId) {
        lock(&self.all).retain(|(_, of), _| of != session);
    }
}

impl HistoryWatch {
    /// The command has ended: describes what was lost.
    pub(crate) fn over(&mut self) -> String {
        self.over = true;
        lock(&self.history).after(self.step, self.pops)
    }
}

impl Drop for HistoryWatch {
    fn drop(&mut self) {
        if !self.over {
            // Nobody waited for the command: the next one reports what it did.
            let mut history = lock(&self.history);
            history.running = history.running.saturating_sub(1);
            history.unchecked = true;
        }
    }
}

/// A repository as it was last seen.
struct Watched {
    repo: Repo,
    /// Its objects, if they are kept.
    mirror: Option<Mirror>,
}

/// The repositories of a workspace, for one session.
struct History {
    workspace: PathBuf,
    session: SessionId,
    /// Where records are stored.
    folder: Option<PathBuf>,
    repos: BTreeMap<PathBuf, Watched>,
    /// Commands in progress.
    running: usize,
    /// A command ended, and what it did was not compared yet.
    unchecked: bool,
    /// Reports that no result contains yet.
    reports: Vec<String>,
    /// What was reported as not protected.
    unprotected: Option<String>,
    /// Checksum of the record on disk.
    recorded: Option<blake3::Hash>,
}

/// A loss, as it is stored.
#[derive(Serialize, Deserialize)]
struct Entry {
    session: String,
    step: u32,
    words: Vec<String>,
    /// The person has seen it.
    reported: bool,
    losses: Vec<Loss>,
}

impl History {
    fn new(workspace: &Path, session: &SessionId, folder: Option<PathBuf>) -> Self {
        let mut history = Self {
            workspace: workspace.to_path_buf(),
            session: session.clone(),
            folder,
            repos: BTreeMap::new(),
            running: 0,
            unchecked: false,
            reports: Vec::new(),
            unprotected: None,
            recorded: None,
        };
        history.load();
        history
    }

    fn record_file(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("records").join(self.session.as_str()))
    }

    fn marker(&self) -> Option<PathBuf> {
        Some(self.record_file()?.with_extension("running"))
    }

    fn mirror(&self, dir: &Path) -> Option<Mirror> {
        let name = blake3::hash(dir.as_os_str().as_encoded_bytes()).to_hex();
        Some(Mirror::new(self.folder.as_ref()?.join("repos").join(name.get(..32)?)))
    }

    /// If a process died while a command ran, its record shows what that command lost.
    fn load(&mut self) {
        let (Some(file), Some(marker)) = (self.record_file(), self.marker()) else { return };
        if !marker.exists() {
            return;
        }
        let repos = std::fs::read(file).ok().and_then(|bytes| record::decode(&bytes));
        for (dir, repo) in repos.unwrap_or_default() {
            let mirror = self.mirror(&dir);
            self.repos.insert(dir, Watched { repo, mirror });
            self.unchecked = true;
        }
    }

    /// Runs `work` while no other process changes the folder.
    fn locked(&mut self, work: impl FnOnce(&mut Self)) {
        let lock = self.folder.as_ref().map(|folder| restore::lock(folder));
        if let Some(Err(error)) = &lock {
            self.warn(format!("it cannot be recorded: {error}"));
            self.folder = None;
        }
        work(self);
    }

    fn before(&mut self, found: &[PathBuf], step: u32) {
        self.locked(|history| {
            if history.running > 0 || history.unchecked {
                history.check(step, 0);
            }
            history.unchecked = false;
            history.record(found, Deadline::new(BUDGET));
            history.save(step);
        });
        self.running += 1;
        failpoint::hit("history.recorded", "");
    }

    fn after(&mut self, step: u32, pops: usize) -> String {
        self.locked(|history| history.check(step, pops));
        self.running = self.running.saturating_sub(1);
        if let Some(marker) = self.marker().filter(|_| self.running == 0) {
            let _ = std::fs::remove_file(marker);
        }
        self.take_report()
    }

    fn take_report(&mut self) -> String {
        let reports = std::mem::take(&mut self.reports);
        let reports = reports.iter().map(|report| format!("[git history: {report}]"));
        reports.collect::<Vec<_>>().join("\n")
    }

    fn warn(&mut self, words: String) {
        if self.unprotected.as_ref() != Some(&words) {
            self.reports.push(words.clone());
            self.unprotected = Some(words);
        }
    }

    /// Records what is there now.
    fn record(&mut self, found: &[PathBuf], deadline: Deadline) {
        let mut budget = Budget::short(deadline);
        let mut before = std::mem::take(&mut self.repos);
        let (mut too_long, mut why) = (false, None);
        // What vanished since the last call was removed by others, unless their command still runs.
        let others = self.folder.as_deref().is_some_and(restore::is_running);
        for dir in self.with_modules(found) {
            let Ok(git) = files::open_git(&self.workspace, &dir) else { continue };
            let known = before.remove(&dir);
            let repo = Repo::read(&git, known.as_ref().map(|known| &known.repo), &mut budget);
            let mut mirror = known.and_then(|known| known.mirror).or_else(|| self.mirror(&dir));
            if let Some(mirror) = &mut mirror {
                let ours = others || self.running > 0;
                let synced = mirror.sync(Some(&git), ours, Some(&mut budget.deadline));
                too_long |= synced.too_long;
                why = why.or(synced.why);
            }
            self.repos.insert(dir, Watched { repo, mirror });
        }
        if let Some(why) = why {
            self.warn(format!("some objects cannot be restored if they are deleted: {why}"));
        } else if too_long {
            self.warn(
                "not all objects are recorded yet, since that takes too long; one that is deleted \
                 now cannot be restored (the next calls continue)"
                    .into(),
            );
        } else if budget.exceeded {
            self.warn("there are too many refs and reflogs to record all of them".into());
        }
    }

    /// The repositories, and those inside their git folders.
    fn with_modules(&self, found: &[PathBuf]) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = found.to_vec();
        let mut waiting: Vec<(PathBuf, usize)> =
            found.iter().map(|dir| (dir.join("modules"), 0)).collect();
        let mut looked = 0;
        while let Some((path, depth)) = waiting.pop() {
            looked += 1;
            if looked > MOST_MODULES || depth > 8 {
                continue;
            }
            let Ok(dir) = files::open_git(&self.workspace, &path) else { continue };
            let is_repository = files::kind(&dir, OsStr::new("HEAD"))
                == Some(FileType::RegularFile)
                && files::kind(&dir, OsStr::new("objects")) == Some(FileType::Directory);
            if is_repository {
                waiting.push((path.join("modules"), depth + 1));
                all.push(path);
                continue;
            }
            for (name, kind) in files::names(&dir).unwrap_or_default() {
                if kind == FileType::Directory {
                    waiting.push((path.join(name), depth + 1));
                }
            }
        }
        all
    }

    /// Writes the record, and notes that a command runs.
    fn save(&mut self, step: u32) {
        let (Some(file), Some(marker)) = (self.record_file(), self.marker()) else { return };
        if self.repos.is_empty() {
            return;
        }
        let saved =
            self.write_record(&file).and_then(|()| put(&marker, step.to_string().as_bytes()));
        if let Err(error) = saved {
            self.warn(format!("it cannot be recorded: {error}"));
        }
    }

    fn write_record(&mut self, file: &Path) -> io::Result<()> {
        let bytes = self.encoded();
        let sum = blake3::hash(&bytes);
        if self.recorded != Some(sum) {
            put(file, &bytes)?;
            self.recorded = Some(sum);
        }
        Ok(())
    }

    fn encoded(&self) -> Vec<u8> {
        let repos = self.repos.iter().map(|(dir, watched)| (dir, &watched.repo));
        record::encode(repos)
    }

    /// Compares with the last record, and enters what was lost since.
    fn check(&mut self, step: u32, pops: usize) {
        let (mut losses, mut seen, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for (dir, watched) in &mut self.repos {
            let git = files::open_git(&self.workspace, dir).ok();
            let now =
                git.as_ref().map(|git| Repo::read(git, Some(&watched.repo), &mut Budget::long()));
            let now = now.unwrap_or_default();
            let mut loss = Loss::between(dir, &watched.repo, &now, git.as_ref());
            if let Some(mirror) = &mut watched.mirror {
                let synced = mirror.sync(git.as_ref(), true, None);
                let tips = if synced.any_gone { watched.repo.tips() } else { Default::default() };
                let tips = mirror.lost_tips(git.as_ref(), tips).len();
                loss.objects = synced.vanished.max(tips);
                loss.damaged = synced.damaged;
            }
            words.extend(loss.words());
            if loss.is_any() {
                losses.push(loss);
            }
            seen.push((dir.clone(), now));
        }
        let quiet =
            words.is_empty() || losses.iter().all(|loss| loss.is_pop(pops)) && !losses.is_empty();
        let mut end = String::new();
        if !losses.is_empty() {
            let restorable = losses.iter().any(|loss| !loss.restorable().is_empty());
            end = match self.enter(step, &words, losses, quiet) {
                Ok(true) if restorable => "; dunnock undo restores it".to_owned(),
                Ok(true) => String::new(),
                Ok(false) => "; it cannot be restored, since checkpoints are off".to_owned(),
                Err(error) => format!("; it cannot be restored: {error}"),
            };
        }
        if !quiet {
            self.reports.push(format!("{}{end}", words.join("; ")));
        }
        for (dir, now) in seen {
            if now.files.is_empty() {
                self.repos.remove(&dir);
            } else if let Some(watched) = self.repos.get_mut(&dir) {
                watched.repo = now;
            }
        }
    }

    /// Enters a loss in the list; `false` if nothing is saved.
    fn enter(
        &self,
        step: u32,
        words: &[String],
        losses: Vec<Loss>,
        quiet: bool,
    ) -> io::Result<bool> {
        let Some(folder) = &self.folder else { return Ok(false) };
        let (session, words) = (self.session.to_string(), words.to_vec());
        let entry = Entry { session, step, words, reported: quiet, losses };
        let name =
            restore::entries(folder).join(format!("{:020}-{}", files::now(), std::process::id()));
        put(&name.with_extension("record"), &self.encoded())?;
        put(&name.with_extension("json"), &serde_json::to_vec(&entry)?)?;
        Ok(true)
    }
}

/// Writes a private file, whole or not at all. A power failure may lose it.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let open = || dunnock_private::options().write(true).create(true).truncate(true).open(&part);
    let opened = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            dunnock_private::create_folder(parent)?;
            open()
        }
        opened => opened,
    };
    let written = opened.and_then(|mut file: File| io::Write::write_all(&mut file, bytes));
    let done = written.and_then(|()| std::fs::rename(&part, path));
    if done.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadline::AT_LEAST;
    use std::time::Instant;

    /// What recording reports if its time is over before the first file.
    fn recorded_late(at_least: usize) -> String {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        for folder in ["objects/ab", "refs/heads"] {
            std::fs::create_dir_all(work.join(".git").join(folder)).unwrap();
        }
        std::fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(work.join(".git/objects/ab").join("c".repeat(38)), "object").unwrap();
        let session = SessionId::from_random([7; 16]);
        let mut history = History::new(&work, &session, Some(dir.path().join("data")));
        history.record(&[".git".into()], Deadline { until: Instant::now(), at_least });
        history.take_report()
    }

    #[test]
    fn a_busy_machine_leaves_no_small_repository_unprotected() {
        assert_eq!(recorded_late(AT_LEAST), "");
        assert!(recorded_late(0).contains("not all objects are recorded"));
    }
}
