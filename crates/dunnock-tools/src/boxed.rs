//! The box around commands, as far as tools know of it: which one a call gets, and what is put back after it.
//!
//! Invariant: a call that must be confined is confined, or does not run.

use crate::hands::Confined;
use crate::tool::Hand;
use dunnock_proto::Level;
use dunnock_sandbox::{Cage, Launcher, Layout, Opened, Rung};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What is kept in memory of files that a call must not change; more is not guarded where only this guards it.
const MOST: u64 = 16 << 20;

fn rung(level: Level) -> Option<Rung> {
    match level {
        Level::A => Some(Rung::A),
        Level::B => Some(Rung::B),
        Level::C => Some(Rung::C),
        Level::D => None,
    }
}

fn level(rung: Rung) -> Level {
    match rung {
        Rung::A => Level::A,
        Rung::B => Level::B,
        Rung::C => Level::C,
    }
}

/// The best box that can be made here.
pub(crate) fn probe(launcher: &Launcher, layout: Option<&Layout>, workspace: &Path, best: Level) -> Confined {
    let (Some(layout), Some(best)) = (layout, rung(best)) else { return Confined { level: Level::D, why: Vec::new() } };
    let made = layout.cage(best, workspace, Opened::default()).and_then(|(cage, _)| launcher.probe(cage));
    match made {
        Ok(probed) => Confined {
            level: probed.best.map_or(Level::D, level),
            why: probed.why.into_iter().map(|(rung, why)| (level(rung), why)).collect(),
        },
        Err(error) => Confined { level: Level::D, why: vec![(level(best), error.to_string())] },
    }
}

/// The box of a call, the variables that belong to it, and what watches over protected names. `None` where there is none.
pub(crate) struct Boxed {
    pub(crate) cage: Cage,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) guard: Guard,
}

impl Boxed {
    pub(crate) fn of(hand: &Hand) -> Result<Option<Self>, String> {
        let Some(rung) = rung(hand.level).filter(|_| !hand.open.bare) else { return Ok(None) };
        let fail = |error: &dyn std::fmt::Display| format!("the box could not be made: {error}");
        let layout = hand.layout.as_ref().ok_or_else(|| fail(&"nobody said where things are"))?;
        let open = hand.open;
        let opened = Opened { network: open.network, secrets: open.secrets, protected: open.protected };
        let (cage, env) = layout.cage(rung, hand.root.path(), opened).map_err(|error| fail(&error))?;
        let guard = if open.protected { Guard::default() } else { Guard::new(&cage, &layout.protected) };
        Ok(Some(Self { cage, env, guard }))
    }
}

/// Names of a workspace that a command must not make or change, as they were before it. Where the kernel holds them, only
/// those that were missing need this.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    workspace: PathBuf,
    /// Where things go that are taken away.
    aside: PathBuf,
    missing: Vec<PathBuf>,
    kept: Vec<(PathBuf, Kept)>,
    /// There was no repository: one may be made, but nothing in it that runs by itself.
    no_git: bool,
}

/// A file or folder as it was.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    File(Vec<u8>, u32),
    Folder(BTreeMap<PathBuf, Kept>),
    /// A link, by where it leads; or something else.
    Other(Option<PathBuf>),
}

impl Guard {
    fn new(cage: &Cage, protected: &[Vec<String>]) -> Self {
        let place = |names: &Vec<String>| names.iter().fold(cage.workspace.clone(), |path, name| path.join(name));
        let plain = protected.iter().filter(|names| !names.iter().any(|name| name == "*"));
        let missing = plain.map(place).filter(|path| path.symlink_metadata().is_err()).collect();
        let mut room = MOST;
        let kept = match cage.rung {
            Rung::A => Vec::new(),
            Rung::B | Rung::C => {
                cage.closed.iter().filter_map(|path| Some((path.clone(), keep(path, &mut room).ok()?))).collect()
            }
        };
        let no_git = cage.workspace.join(".git").symlink_metadata().is_err();
        let aside = cage.tmp.with_file_name("put-back");
        Self { workspace: cage.workspace.clone(), aside, missing, kept, no_git }
    }

    /// Puts back what was made or changed; the names of it.
    pub(crate) fn restore(&self) -> Vec<String> {
        let mut back = Vec::new();
        let mut say = |path: &Path| back.push(path.strip_prefix(&self.workspace).unwrap_or(path).display().to_string());
        for path in &self.missing {
            if path.symlink_metadata().is_err() {
                continue;
            }
            let of_git = path.strip_prefix(&self.workspace).is_ok_and(|name| name.starts_with(".git"));
            if of_git && self.no_git && tame(path) {
                continue;
            }
            self.aside(path);
            say(path);
        }
        for (path, kept) in &self.kept {
            if keep(path, &mut MOST.clone()).ok().as_ref() != Some(kept) {
                self.aside(path);
                let _ = bring(path, kept);
                say(path);
            }
        }
        back
    }
}

impl Guard {
    /// Moves a thing out of the workspace, to a place where it is found again: perhaps the person made it.
    fn aside(&self, path: &Path) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let to = self.aside.join(format!("{}-{name}", now.as_nanos()));
        let moved = std::fs::create_dir_all(&self.aside).and_then(|()| std::fs::rename(path, &to));
        if moved.is_err() {
            // On another disk.
            let copied = keep(path, &mut MOST.clone()).map(|kept| match kept {
                Kept::Folder(entries) => entries
                    .iter()
                    .filter_map(|(from, kept)| Some((from.strip_prefix(path).ok()?, kept)))
                    .for_each(|(name, kept)| drop(bring(&to.join(name), kept))),
                kept @ (Kept::File(..) | Kept::Other(_)) => drop(bring(&to, &kept)),
            });
            let _ = copied;
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
    }
}

fn keep(path: &Path, room: &mut u64) -> io::Result<Kept> {
    let about = path.symlink_metadata()?;
    if about.is_file() {
        *room = room.checked_sub(about.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        return Ok(Kept::File(std::fs::read(path)?, about.permissions().mode()));
    }
    if about.is_dir() {
        let entries = std::fs::read_dir(path)?.flatten();
        return entries.map(|e| Ok((e.path(), keep(&e.path(), room)?))).collect::<io::Result<_>>().map(Kept::Folder);
    }
    Ok(Kept::Other(std::fs::read_link(path).ok()))
}

fn bring(path: &Path, kept: &Kept) -> io::Result<()> {
    // A name that leads there may be gone, too.
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match kept {
        Kept::File(bytes, mode) => {
            std::fs::write(path, bytes)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))
        }
        Kept::Folder(entries) => {
            std::fs::create_dir_all(path)?;
            entries.iter().try_for_each(|(path, kept)| bring(path, kept))
        }
        Kept::Other(Some(to)) => std::os::unix::fs::symlink(to, path),
        Kept::Other(None) => Ok(()),
    }
}

/// Settings that `git init` and `git clone` write, and that run nothing.
const TAME: &[&str] = &[
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "ignorecase",
    "precomposeunicode",
    "symlinks",
    "name",
    "email",
    "url",
    "fetch",
    "remote",
    "merge",
    "objectformat",
    "refstorage",
];

/// Whether a part of a new repository runs nothing by itself. Hooks that are not examples go one by one.
fn tame(path: &Path) -> bool {
    if path.ends_with(".git/hooks") && path.symlink_metadata().is_ok_and(|m| m.is_dir()) {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let real: Vec<PathBuf> =
            entries.map(|e| e.path()).filter(|p| p.extension().is_none_or(|e| e != "sample")).collect();
        return real.is_empty();
    }
    if !path.ends_with(".git/config") || !path.symlink_metadata().is_ok_and(|m| m.is_file() && m.len() < 10_000) {
        return false;
    }
    let text = std::fs::read_to_string(path).unwrap_or_else(|_| "unreadable = 1".into());
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])).all(|line| {
        let section = ["[core]", "[user]", "[remote \"", "[branch \"", "[extensions]", "[init]"];
        match line.split_once('=') {
            None => section.iter().any(|known| line.starts_with(known)) && line.ends_with(']'),
            Some((key, value)) => TAME.contains(&key.trim()) && !value.contains("ext::") && !line.contains(']'),
        }
    })
}
