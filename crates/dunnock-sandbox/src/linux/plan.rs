//! Turns a sandbox specification into everything a child needs, before the child exists.

use super::landlock::{ALL, Attr, DEVICE, LIST, READ, Rule, ruleset};
use super::{Isolation, SandboxSpec, filter};
use libc::sock_filter;
use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// System folders that a command may read and execute.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/snap",
    "/gnu",
    "/proc",
    "/sys/devices",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
    "/sys/class",
    "/sys/bus",
    "/sys/module",
    "/var/lib/dpkg",
];
/// Harmless devices.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];
/// Top-level folders visible in every sandbox. All others belong to other users, programs and
/// disks, and appear empty.
const SEEN: &[&str] = &[
    "usr",
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "etc",
    "opt",
    "nix",
    "snap",
    "gnu",
    "proc",
    "sys",
    "dev",
    "lost+found",
];
/// System files that only root can read; a command does not need them even when run as root.
const SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
];
/// Writable folders that each sandbox has for itself.
const FRESH: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// One file in memory is allowed for this many bytes of its file system.
const PER_FILE: u64 = 8 << 10;

/// One setup step of a sandbox's first process, done before the command starts.
#[derive(Debug)]
pub(crate) enum MountStep {
    /// Makes all mounts private, so that changes are not visible outside.
    Private,
    /// Clones the mount of a file or folder as it is now, to attach it later.
    Take { path: CString, slot: usize },
    /// Makes all mounts read-only and ignores set-user-id bits.
    ReadOnly,
    /// Makes a cloned mount read-only.
    Close { slot: usize },
    /// Mounts the file system, in memory, of all private folders, and sends its descriptor to the
    /// launcher, which counts its use.
    Memory { path: CString, data: CString },
    /// Creates a folder of that file system.
    Part { path: CString, mode: u32 },
    /// Mounts an empty folder.
    Empty { path: CString, data: CString },
    /// Mounts an empty folder that is read-only.
    Void { path: CString },
    /// Creates a folder unless it exists.
    Folder { path: CString },
    /// Creates a file unless it exists.
    File { path: CString },
    /// Removes a file.
    Remove { path: CString },
    /// Attaches a cloned mount.
    Put { slot: usize, path: CString },
    /// Mounts an overlay.
    Layer { path: CString, data: CString },
    /// Mounts `/proc` for the processes of this sandbox.
    Proc,
    /// Mounts `/dev/pts` for the terminals of this sandbox.
    Terminals,
}

/// Everything a child needs.
pub(crate) struct Plan {
    pub(crate) isolation: Isolation,
    /// The same specification leads to the same plan later.
    pub(crate) lasts: bool,
    pub(crate) network: bool,
    pub(crate) steps: Vec<MountStep>,
    pub(crate) slots: usize,
    pub(crate) attr: Attr,
    pub(crate) rules: Vec<Rule>,
    /// The Landlock ruleset, made in advance where it does not depend on mounts.
    pub(crate) ruleset: Option<OwnedFd>,
    pub(crate) filter: Vec<sock_filter>,
    pub(crate) uid_map: Vec<u8>,
    pub(crate) gid_map: Vec<u8>,
}

fn text(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Whether a path is a folder, without following a link; `None` if it is a link or does not exist.
fn is_folder(path: &Path) -> Option<bool> {
    path.symlink_metadata().ok().filter(|m| !m.is_symlink()).map(|m| m.is_dir())
}

/// The list of steps while it is being built.
struct Steps {
    list: Vec<MountStep>,
    slots: usize,
    /// Folders that will be empty: paths below them have to be created.
    emptied: Vec<PathBuf>,
    /// What was created below them; `put` holds what was mounted.
    made: std::collections::BTreeSet<PathBuf>,
    put: Vec<PathBuf>,
}

impl Steps {
    fn take(&mut self, path: &Path) -> io::Result<usize> {
        self.list.push(MountStep::Take { path: text(path)?, slot: self.slots });
        self.slots += 1;
        Ok(self.slots - 1)
    }

    /// Whether a path is in an emptied folder.
    fn covered(&self, path: &Path) -> bool {
        self.emptied.iter().any(|over| path.starts_with(over))
    }

    /// Whether the path is visible: the nearest emptied or mounted folder above it decides.
    fn visible(&self, path: &Path) -> bool {
        let nearest = |all: &[PathBuf]| {
            all.iter()
                .filter(|over| path.starts_with(over))
                .map(|over| over.components().count())
                .max()
        };
        nearest(&self.emptied)
            .is_none_or(|empty| nearest(&self.put).is_some_and(|put| put >= empty))
    }

    /// Creates the path below an emptied folder.
    fn lead(&mut self, path: &Path, folder: bool) -> io::Result<()> {
        if self.visible(path) {
            return Ok(());
        }
        let mut names: Vec<&Path> =
            path.ancestors().take_while(|p| !self.emptied.iter().any(|over| over == p)).collect();
        names.reverse();
        for name in names {
            if self.made.insert(name.to_path_buf()) {
                let path_of = text(name)?;
                let leaf = name == path && !folder;
                self.list.push(if leaf {
                    MountStep::File { path: path_of }
                } else {
                    MountStep::Folder { path: path_of }
                });
            }
        }
        Ok(())
    }

    fn put(&mut self, slot: usize, path: &Path, folder: bool) -> io::Result<()> {
        self.lead(path, folder)?;
        self.put.push(path.to_path_buf());
        self.list.push(MountStep::Put { slot, path: text(path)? });
        Ok(())
    }

    /// Mounts a path over itself, so that it cannot be moved.
    fn pin(&mut self, path: &Path, close: bool) -> io::Result<()> {
        if let Some(folder) = is_folder(path).filter(|_| self.visible(path)) {
            let slot = self.take(path)?;
            if close {
                self.list.push(MountStep::Close { slot });
            }
            self.put(slot, path, folder)?;
        }
        Ok(())
    }
}

impl Plan {
    #[expect(unsafe_code, reason = "owns the descriptor that was just made")]
    /// `memory` is the memory limit of the command in bytes; 0 for none.
    pub(crate) fn new(spec: &SandboxSpec, abi: i64, memory: u64) -> io::Result<Self> {
        let steps = match spec.isolation {
            Isolation::A => mounts(spec, memory)?,
            Isolation::B | Isolation::C => Steps {
                list: Vec::new(),
                slots: 0,
                emptied: Vec::new(),
                made: Default::default(),
                put: Vec::new(),
            },
        };
        let (user, group) =
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let (attr, rules) = (Attr::of(abi), rules(spec));
        let ruleset = match spec.isolation {
            Isolation::A => None,
            Isolation::B | Isolation::C => {
                let made = ruleset(&attr, &rules).map_err(|_| io::Error::last_os_error())?;
                // SAFETY: the descriptor is new and has no other owner.
                let made = unsafe { OwnedFd::from_raw_fd(made) };
                rustix::io::fcntl_setfd(&made, rustix::io::FdFlags::CLOEXEC)?;
                Some(made)
            }
        };
        Ok(Self {
            // Its rules name the files that are there now.
            lasts: !spec.readable.iter().any(|path| is_around(spec, path)),
            isolation: spec.isolation,
            network: spec.network,
            steps: steps.list,
            slots: steps.slots,
            attr,
            rules,
            ruleset,
            filter: filter::filter(spec.isolation, spec.network, abi),
            uid_map: format!("{user} {user} 1").into_bytes(),
            gid_map: format!("{group} {group} 1").into_bytes(),
        })
    }
}

fn rules(spec: &SandboxSpec) -> Vec<Rule> {
    let mut rules: Vec<Option<Rule>> = Vec::new();
    let mut grant = |path: &Path, access: u64| rules.push(Rule::new(path, access));
    // Without mounts, files that only root can read cannot be hidden: root gets everything else,
    // entry by entry.
    let by_name = spec.isolation != Isolation::A && rustix::process::geteuid().is_root();
    for path in SYSTEM.iter().map(Path::new) {
        if by_name && path == Path::new("/etc") {
            let entries =
                std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
            entries
                .filter(|entry| !SECRETS.iter().any(|s| entry == Path::new(s)))
                .for_each(|entry| grant(&entry, READ));
        } else {
            grant(path, READ);
        }
    }
    DEVICES.iter().for_each(|path| grant(Path::new(path), DEVICE | READ));
    // Without mounts, a file is hidden only if no rule covers it.
    let hides = |path: &Path| {
        let inside = |hidden: &&PathBuf| hidden.starts_with(path) && hidden.exists();
        spec.isolation != Isolation::A && spec.hidden.iter().any(|hidden| inside(&hidden))
    };
    for path in spec.readable.iter().chain(&spec.own) {
        match is_around(spec, path) && hides(path) {
            true => around(path, &spec.workspace, &hides, &mut grant),
            false => grant(path, READ),
        }
    }
    grant(&spec.workspace, if spec.writes { ALL } else { READ });
    spec.writable.iter().chain(&spec.repository).for_each(|path| grant(path, ALL));
    match spec.isolation {
        Isolation::A => {
            FRESH.iter().for_each(|path| grant(Path::new(path), ALL));
            spec.private.iter().for_each(|path| grant(path, ALL));
            spec.layered.iter().for_each(|layer| grant(&layer.below, ALL));
            // For the resolver's file, if the network is allowed.
            grant(Path::new("/run"), READ);
        }
        Isolation::B | Isolation::C => {
            grant(&spec.tmp, ALL);
            spec.layered.iter().for_each(|layer| grant(&layer.below, READ));
        }
    }
    let build = spec.build.iter().filter_map(|path| Some(Rule::new(path, ALL)?.own()));
    rules.into_iter().flatten().chain(build).collect()
}

/// Whether the workspace is below a folder that commands can read.
fn is_around(spec: &SandboxSpec, readable: &Path) -> bool {
    spec.isolation != Isolation::A
        && spec.workspace.starts_with(readable)
        && spec.workspace != readable
}

/// Grants what is below a folder that contains hidden files. Their names can be listed.
fn around(
    folder: &Path,
    workspace: &Path,
    hides: &dyn Fn(&Path) -> bool,
    grant: &mut dyn FnMut(&Path, u64),
) {
    grant(folder, LIST);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let path = entry.path();
        // A rule follows links: what they lead to is granted where it is, or not at all.
        match entry.file_type() {
            // The workspace has a rule of its own.
            _ if path == workspace => {}
            Ok(kind) if kind.is_dir() && hides(&path) => around(&path, workspace, hides, grant),
            Ok(kind) if !kind.is_symlink() && !hides(&path) => grant(&path, READ),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Folders that are empty in the sandbox, none below another.
fn emptied(spec: &SandboxSpec) -> Vec<PathBuf> {
    let top = std::fs::read_dir("/").into_iter().flatten().flatten();
    let elsewhere: Vec<PathBuf> = top
        .filter(|e| !SEEN.iter().any(|seen| e.file_name() == *seen))
        .map(|entry| entry.path())
        .collect();
    let wanted = spec.private.iter().map(PathBuf::as_path);
    let private = |path: &Path| {
        spec.private.iter().any(|p| p == path) || FRESH.iter().any(|fresh| Path::new(fresh) == path)
    };
    let mut all: Vec<PathBuf> = wanted
        .chain(elsewhere.iter().map(PathBuf::as_path))
        .chain(FRESH.iter().map(Path::new))
        .filter(|path| is_folder(path) == Some(true))
        // An empty or unreadable folder needs no cover.
        .filter(|path| {
            private(path)
                || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
        })
        .map(Path::to_path_buf)
        .collect();
    all.sort();
    let mut tops: Vec<PathBuf> = Vec::new();
    for path in all {
        if !tops.iter().any(|top| path.starts_with(top)) {
            tops.push(path);
        }
    }
    tops
}

/// Empties the folders. They are parts of one file system in memory, so that one size limits them
/// together, and the launcher can count them as memory of the command.
fn empty(s: &mut Steps, memory: u64) -> io::Result<()> {
    let places = s.emptied.clone();
    let Some(base) = places.first() else { return Ok(()) };
    let data = match memory {
        0 => "mode=0755,size=4g".to_owned(),
        // Half of the limit: a program that fills its temporary folder sees a full disk, and is
        // not killed. Names need memory as well.
        limit => {
            let size = limit / 2;
            format!("mode=0755,size={size},nr_inodes={}", (size / PER_FILE).max(4_096))
        }
    };
    s.list.push(MountStep::Memory { path: text(base)?, data: CString::new(data)? });
    let mut parts = Vec::new();
    for (n, place) in places.iter().enumerate() {
        let part = base.join(format!(".{n}"));
        let open = FRESH.iter().any(|fresh| Path::new(fresh) == place);
        s.list
            .push(MountStep::Part { path: text(&part)?, mode: if open { 0o1777 } else { 0o755 } });
        parts.push((s.take(&part)?, place));
    }
    for (slot, place) in parts {
        s.list.push(MountStep::Put { slot, path: text(place)? });
    }
    Ok(())
}

/// The mounts of level A. First clone what stays writable; then make everything read-only; then
/// clone what stays readable, empty the folders, and attach the clones.
fn mounts(spec: &SandboxSpec, memory: u64) -> io::Result<Steps> {
    let mut s = Steps {
        list: Vec::new(),
        slots: 0,
        emptied: emptied(spec),
        made: Default::default(),
        put: Vec::new(),
    };
    s.list.push(MountStep::Private);
    let workspace = s.take(&spec.workspace)?;
    let mut back: Vec<(usize, &Path, bool)> = Vec::new();
    let mut caches: Vec<(usize, &Path)> = Vec::new();
    for path in &spec.writable {
        caches.push((s.take(path)?, path));
    }
    // A repository without its git folder in the workspace.
    for path in &spec.repository {
        back.push((s.take(path)?, path, true));
    }
    for path in spec.build.iter().filter(|path| !spec.writes && is_folder(path) == Some(true)) {
        back.push((s.take(path)?, path, true));
    }
    for layer in &spec.layered {
        s.list.push(MountStep::Layer { path: text(&layer.below)?, data: layer_data(layer)? });
        back.push((s.take(&layer.below)?, &layer.below, true));
    }
    s.list.push(MountStep::ReadOnly);
    if !spec.writes {
        s.list.push(MountStep::Close { slot: workspace });
    }
    let readable = |path: &&PathBuf| s.covered(path) && !spec.repository.contains(path);
    for path in spec.readable.iter().filter(readable).collect::<Vec<_>>() {
        if let Some(folder) = is_folder(path) {
            back.push((s.take(path)?, path, folder));
        }
    }
    let mut own: Vec<(usize, &Path)> = Vec::new();
    for path in &spec.own {
        own.push((s.take(path)?, path));
    }
    let resolver = Path::new("/etc/resolv.conf").canonicalize().ok();
    let resolver = resolver.filter(|path| spec.network && s.covered(path));
    if let Some(path) = &resolver {
        back.push((s.take(path)?, path, false));
    }
    empty(&mut s, memory)?;
    for place in spec.private.iter().map(PathBuf::as_path).chain(FRESH.iter().map(Path::new)) {
        s.lead(place, true)?;
    }
    back.push((workspace, &spec.workspace, true));
    // Parents before children: a mount covers what is below it.
    back.sort_by_key(|(_, path, _)| path.components().count());
    for (slot, path, folder) in back {
        s.put(slot, path, folder)?;
    }
    // What is not visible needs no protection.
    for path in &spec.pinned {
        s.pin(path, false)?;
    }
    for path in &spec.closed {
        s.pin(path, true)?;
    }
    let nothing = PathBuf::from("/tmp/.nothing");
    s.lead(&nothing, false)?;
    // Other users cannot read these anyway.
    let secrets: &[&str] = if rustix::process::geteuid().is_root() { SECRETS } else { &[] };
    let mut hidden: Vec<&Path> =
        spec.hidden.iter().map(PathBuf::as_path).chain(secrets.iter().map(Path::new)).collect();
    hidden.sort();
    for path in hidden {
        // Below an emptied folder there is nothing left to hide.
        if !s.visible(path) {
            continue;
        }
        match is_folder(path) {
            Some(true) => {
                s.list.push(match spec.writable.iter().any(|cache| cache.starts_with(path)) {
                    true => MountStep::Empty {
                        path: text(path)?,
                        data: c"mode=0755,size=64k".to_owned(),
                    },
                    false => MountStep::Void { path: text(path)? },
                });
                s.put.retain(|put| !put.starts_with(path));
                s.emptied.push(path.to_path_buf());
            }
            Some(false) => {
                let slot = s.take(&nothing)?;
                s.list.extend([
                    MountStep::Close { slot },
                    MountStep::Put { slot, path: text(path)? },
                ]);
            }
            None => {}
        }
    }
    // Caches and our own files may be in one of Dunnock's own folders, which is hidden.
    for (slot, path) in caches {
        s.put(slot, path, true)?;
    }
    for (slot, path) in own {
        s.put(slot, path, false)?;
    }
    s.list.extend([
        MountStep::Remove { path: text(&nothing)? },
        MountStep::Terminals,
        MountStep::Proc,
    ]);
    Ok(s)
}

fn layer_data(layer: &super::Layer) -> io::Result<CString> {
    // An unescaped comma or colon would end the path.
    let safe = |path: &Path| {
        path.to_string_lossy().replace('\\', "\\\\").replace(':', "\\:").replace(',', "\\,")
    };
    let (above, work) = (safe(&layer.above), safe(&layer.work));
    let lower: Vec<String> =
        layer.between.iter().chain([&layer.below]).map(|path| safe(path)).collect();
    let lower = lower.join(":");
    Ok(CString::new(format!("lowerdir={lower},upperdir={above},workdir={work},userxattr"))?)
}
