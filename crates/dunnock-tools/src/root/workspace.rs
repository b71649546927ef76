//! A workspace: paths inside it, and opening them without leaving it.

#[cfg(target_os = "linux")]
use super::place::patient;
use super::place::{Kind, Place, Rights};
use dunnock_core::policy::{is_of_system, is_secret};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

/// Folders of the workspace that no tool edits.
const OURS: &[&str] = &[".git", ".dunnock"];
/// The largest file that is read whole.
const MOST: u64 = 32 << 20;

/// Why a path cannot be used, for the model.
#[derive(Debug)]
pub enum PathError {
    /// It leads out of the workspace.
    Outside(String),
    /// It is in the workspace, or closed to tools, in a call about files outside.
    NotOutside(String),
    /// It leads to what is closed to tools.
    Closed(String),
    /// A link from a system folder to somewhere else, with its target.
    Leads(String, String),
    /// Files that have no folder in common.
    Apart,
    /// It is not a path.
    Malformed(String),
    /// It does not exist.
    Missing(String),
    /// It already exists.
    Exists(String),
    /// Not a regular file: a folder, a socket, a device.
    NotAFile(String),
    /// It is not a folder.
    NotAFolder(String),
    /// A symbolic link on a path that is to be written.
    Link(String),
    /// In a folder that tools may not change.
    Protected(String),
    /// Another name for a file that by convention holds keys.
    Secret(String),
    /// The user denied tools access to it.
    Denied(String),
    /// Another program changed it in the meantime, or has it open for writing.
    Changed(String),
    /// An edit could not be undone; the old content is beside it, under this name.
    Stuck(String, String),
    /// Too large to read whole.
    TooLong(String, u64),
    /// Any other error.
    Io(String, io::Error),
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside(p) => write!(
                f,
                "{p} is outside the workspace; give a path inside it, relative to its root"
            ),
            Self::NotOutside(p) => write!(
                f,
                "{p} cannot be used here: this call names files outside the workspace, so all its \
                 paths must be absolute, outside the workspace and without \"..\". Use a separate \
                 call for files in the workspace"
            ),
            Self::Closed(p) => write!(
                f,
                "{p} is closed to tools: it leads to Dunnock's own files, to /proc, /sys or /dev, or \
                 to the workspace (name its files relative to the workspace root, in a separate call)"
            ),
            Self::Apart => write!(
                f,
                "these files have no folder in common except /; change them in separate calls \
                 (instead of moving a file, write it to its new place, then delete the old one)"
            ),
            Self::Leads(p, real) => {
                write!(f, "{p} is a link to {real}; use that path, and the person will be asked")
            }
            Self::Malformed(p) => write!(f, "{p:?} is not a valid path"),
            Self::Missing(p) => write!(f, "{p} does not exist"),
            Self::Exists(p) => {
                write!(f, "{p} already exists; change it with replace_text, or set overwrite")
            }
            Self::NotAFile(p) => write!(f, "{p} is not a regular file"),
            Self::NotAFolder(p) => write!(f, "{p} is not a folder"),
            Self::Link(p) => {
                write!(
                    f,
                    "{p} leads through a symbolic link, and tools do not write through links; use \
                     the real path"
                )
            }
            Self::Protected(p) => {
                write!(f, "{p} is protected: tools may not change anything in .git or .dunnock")
            }
            Self::Secret(p) => {
                write!(
                    f,
                    "{p} leads to a secret file; use that file's own path, and the person will be \
                     asked"
                )
            }
            Self::Denied(p) => write!(f, "the person has denied tools access to {p}"),
            Self::Changed(p) => {
                write!(
                    f,
                    "{p} was changed by another program just now; nothing was written. View it \
                     again, then edit"
                )
            }
            Self::Stuck(p, part) => {
                write!(
                    f,
                    "an edit of {p} failed and could not be undone; its old content is beside it \
                     in {part}. Tell the person"
                )
            }
            Self::TooLong(p, size) => write!(f, "{p} is too large to read whole ({size} bytes)"),
            Self::Io(p, error) => write!(f, "{p}: {error}"),
        }
    }
}
impl std::error::Error for PathError {}

/// A path inside the workspace, or of the machine outside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoPath {
    /// Relative to the root.
    pub(super) path: PathBuf,
    /// The root is that of the machine.
    outside: bool,
}

impl RepoPath {
    /// Parses a path as a model writes it. An absolute path is accepted if it is inside the root.
    ///
    /// # Errors
    /// When it is not a path or leads outside.
    pub fn parse(root: &Root, text: &str) -> Result<Self, PathError> {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.contains('\0') || trimmed.len() > 4096 {
            return Err(PathError::Malformed(text.into()));
        }
        // A network path, on systems where such names mean one.
        if root.is_machine() && trimmed.starts_with("//") {
            return Err(PathError::NotOutside(text.into()));
        }
        if trimmed.starts_with("\\\\") || trimmed.starts_with("//") {
            return Err(PathError::Outside(text.into()));
        }
        let given = Path::new(trimmed);
        // Of the machine, only what is not in the workspace: other rules hold there.
        if root.is_machine() {
            let up = given.components().any(|part| part == Component::ParentDir);
            if !given.is_absolute() || up || given.starts_with(&root.workspace) {
                return Err(PathError::NotOutside(text.into()));
            }
            if root.closes(given) {
                return Err(PathError::Closed(text.into()));
            }
        }
        let given = match given.is_absolute() {
            true => given.strip_prefix(&root.path).map_err(|_| PathError::Outside(text.into()))?,
            false => given,
        };
        let mut path = PathBuf::new();
        for component in given.components() {
            match component {
                Component::Normal(name) => path.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(PathError::Outside(text.into()));
                }
            }
        }
        Ok(Self { path, outside: root.is_machine() })
    }

    /// The path as it is shown to models and people.
    #[must_use]
    pub fn shown(&self) -> String {
        match (self.outside, self.path.as_os_str().is_empty()) {
            (true, _) => format!("/{}", self.path.to_string_lossy()),
            (false, true) => ".".into(),
            (false, false) => self.path.to_string_lossy().into_owned(),
        }
    }

    pub(super) fn parent(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    #[cfg(target_os = "linux")]
    pub(super) fn name(&self) -> &Path {
        if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path }
    }

    /// Whether it is in a folder that tools may not change, of this repository or a nested one.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.path
            .components()
            .any(|c| OURS.contains(&c.as_os_str().to_string_lossy().to_lowercase().as_str()))
    }

    pub(super) fn editable(&self) -> Result<(), PathError> {
        match self.path.file_name() {
            None => Err(PathError::NotAFile(self.shown())),
            Some(_) if self.is_ours() => Err(PathError::Protected(self.shown())),
            Some(_) => Ok(()),
        }
    }
}

/// The workspace folder of a session.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    /// What no tool may access, by resolved path.
    denied: globset::GlobSet,
    /// Folders that are closed to tools, if this is the root of the machine, and their devices and
    /// inodes: they may be mounted elsewhere, too.
    closed: Vec<(PathBuf, Option<(u64, u64)>)>,
    /// The workspace, if this is the root of the machine.
    workspace: PathBuf,
    #[cfg(target_os = "linux")]
    dir: File,
}

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its mode, on systems that have modes.
    pub mode: Option<u32>,
}

impl Root {
    /// Opens a workspace.
    ///
    /// # Errors
    /// When it is not a folder that can be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{Mode, OFlags};
            let dir = rustix::fs::open(
                &path,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            Ok(Self {
                path,
                denied: globset::GlobSet::empty(),
                closed: Vec::new(),
                workspace: PathBuf::new(),
                dir: dir.into(),
            })
        }
        #[cfg(not(target_os = "linux"))]
        {
            if path.is_dir() {
                Ok(Self {
                    path,
                    denied: globset::GlobSet::empty(),
                    closed: Vec::new(),
                    workspace: PathBuf::new(),
                })
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }
    }

    /// The machine outside a workspace. Dunnock's own folders are closed, and those in which the
    /// kernel shows processes with their memory and their environment.
    ///
    /// # Errors
    /// When it cannot be opened.
    #[cfg(target_os = "linux")]
    pub(crate) fn machine(&self, own: &[PathBuf]) -> io::Result<Self> {
        let kernel = ["/proc", "/sys", "/dev"].map(PathBuf::from);
        let own = own.iter().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
        let closed = own.chain(kernel).chain([self.path.clone()]);
        let closed = closed.map(|folder| (folder.clone(), identity(&folder))).collect();
        Ok(Self { closed, workspace: self.path.clone(), ..Self::open(Path::new("/"))? })
    }

    /// Whether this is the root of the machine instead of a workspace.
    pub(crate) fn is_machine(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Whether an absolute path is in a folder that is closed.
    fn closes(&self, path: &Path) -> bool {
        self.is_machine() && path.ancestors().any(|folder| self.is_closed(folder))
    }

    /// Whether this is a folder that is closed.
    pub(crate) fn is_closed(&self, folder: &Path) -> bool {
        self.is_machine() && {
            let is = identity(folder);
            let same = |known: &Option<(u64, u64)>| known.is_some() && *known == is;
            self.closed.iter().any(|(name, known)| name == folder || same(known))
        }
    }

    /// What the names of its files are shown relative to.
    pub(crate) fn shown_from(&self) -> &Path {
        if self.is_machine() { Path::new("") } else { &self.path }
    }

    /// Denies tools access to these files.
    #[must_use]
    pub fn keeping_out(self, denied: globset::GlobSet) -> Self {
        Self { denied, ..self }
    }

    /// Whether tools may not access this path, which must not lead through a link.
    #[must_use]
    pub fn is_denied(&self, path: &Path) -> bool {
        self.denied.is_match(path) || self.closes(&self.path.join(path))
    }

    /// Checks a file by its real path, whatever name led there.
    fn judge(&self, path: &RepoPath, file: &File) -> Result<(), PathError> {
        #[cfg(target_os = "linux")]
        let real = {
            use std::os::fd::AsRawFd as _;
            std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
        };
        #[cfg(not(target_os = "linux"))]
        let real = {
            let _ = file;
            self.path.join(&path.path).canonicalize().ok()
        };
        let real = real.and_then(|real| real.strip_prefix(&self.path).map(Path::to_path_buf).ok());
        let real = real.as_deref().unwrap_or(&path.path);
        #[cfg(target_os = "linux")]
        if self.is_machine() {
            if shows_processes(file) {
                return Err(PathError::Closed(path.shown()));
            }
            self.judge_outside(path, &self.path.join(real))?;
        }
        if self.is_denied(real) || self.is_denied(&path.path) {
            return Err(PathError::Denied(path.shown()));
        }
        let secret = |path: &Path| is_secret(&path.to_string_lossy());
        if secret(real) && !secret(&path.path) {
            return Err(PathError::Secret(path.shown()));
        }
        Ok(())
    }

    /// Checks what a path outside the workspace leads to.
    fn judge_outside(&self, path: &RepoPath, real: &Path) -> Result<(), PathError> {
        let (shown, target) = (path.shown(), real.to_string_lossy());
        match self.closes(real) {
            true => Err(PathError::Closed(shown)),
            // Policy has judged the path as it was written.
            false if is_of_system(&shown) && !is_of_system(&target) => {
                Err(PathError::Leads(shown, target.into_owned()))
            }
            false => Ok(()),
        }
    }

    /// The resolved path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder at `path`, as a path for programs and walks. It was beneath the root when this
    /// checked it.
    ///
    /// # Errors
    /// When there is none, or it leads outside.
    pub fn folder(&self, path: &RepoPath) -> Result<PathBuf, PathError> {
        drop(self.beneath(path, Want::Folder)?);
        // By its real path, in case a link leads there.
        let real =
            self.path.join(&path.path).canonicalize().map_err(|error| place_error(path, error))?;
        match real.starts_with(&self.path) {
            true if self.is_machine() => self.judge_outside(path, &real).map(|()| real),
            true => Ok(real),
            false => Err(PathError::Outside(path.shown())),
        }
    }

    /// Whether the path is an existing folder.
    #[must_use]
    pub fn is_folder(&self, path: &RepoPath) -> bool {
        self.beneath(path, Want::Folder).is_ok()
    }

    /// Opens a regular file that a walk found, if it still is one and no link leads there by now.
    pub(crate) fn open_walked(&self, path: &Path) -> io::Result<File> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{Mode, OFlags, ResolveFlags};
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match patient(|| rustix::fs::openat2(&self.dir, path, flags, Mode::empty(), resolve)) {
                Err(rustix::io::Errno::NOSYS) => {}
                opened => {
                    let file = File::from(opened?);
                    let closed = self.is_machine() && shows_processes(&file);
                    return if closed { Err(io::ErrorKind::NotFound.into()) } else { Ok(file) };
                }
            }
        }
        match self.path.join(path).symlink_metadata()?.is_file() {
            true => File::open(self.path.join(path)),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Reads a regular file.
    ///
    /// # Errors
    /// When it does not exist, leads outside, or is too large.
    pub fn read(&self, path: &RepoPath) -> Result<Contents, PathError> {
        self.read_some(path, MOST)
    }

    /// Reads the beginning of a regular file, however large it is.
    ///
    /// # Errors
    /// When there is none, or it leads outside.
    pub fn read_start(&self, path: &RepoPath, most: u64) -> Result<Contents, PathError> {
        self.read_some(path, most)
    }

    fn read_some(&self, path: &RepoPath, most: u64) -> Result<Contents, PathError> {
        let fail = |e| PathError::Io(path.shown(), e);
        let file = self.beneath(path, Want::File)?;
        let metadata = file.metadata().map_err(fail)?;
        if !metadata.is_file() {
            return Err(PathError::NotAFile(path.shown()));
        }
        self.judge(path, &file)?;
        if metadata.len() > most && most == MOST {
            return Err(PathError::TooLong(path.shown(), metadata.len()));
        }
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(fail)?;
        #[cfg(unix)]
        let mode = Some(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777);
        #[cfg(not(unix))]
        let mode = None;
        Ok(Contents { bytes, mode })
    }

    /// The folder itself.
    #[cfg(target_os = "linux")]
    pub(crate) fn dir(&self) -> &File {
        &self.dir
    }

    /// Restores a file anywhere in the workspace, even where tools may not write: a command may
    /// have changed it.
    #[cfg(target_os = "linux")]
    pub(crate) fn put_back(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), PathError> {
        self.put(path, bytes, Rights::Mode(mode))
    }

    /// Writes one of Dunnock's own files, readable only by its owner, where no tool may write.
    pub(crate) fn put_own(&self, path: &Path, bytes: &[u8]) -> Result<(), PathError> {
        #[cfg(target_os = "linux")]
        let rights = Rights::Mode(0o600);
        #[cfg(not(target_os = "linux"))]
        let rights = Rights::New { runs: false };
        self.put(path, bytes, rights)
    }

    /// Writes a file atomically, and never through a link.
    fn put(&self, path: &Path, bytes: &[u8], rights: Rights<'_>) -> Result<(), PathError> {
        let path = RepoPath { path: path.to_path_buf(), outside: false };
        let fail = |e: io::Error| place_error(&path, e);
        let Some(name) = path.path.file_name() else {
            return Err(PathError::NotAFile(path.shown()));
        };
        let place = Place::make(self, path.parent(), &mut Vec::new()).map_err(fail)?;
        match place.kind(name).map_err(fail)? {
            Kind::Nothing | Kind::File => {}
            Kind::Link => return Err(PathError::Link(path.shown())),
            Kind::Other => return Err(PathError::NotAFile(path.shown())),
        }
        let part = part_name();
        let done = place
            .new_file(&part, bytes, rights)
            .and_then(|_| place.rename(part.as_ref(), name, true));
        if done.is_err() {
            place.remove(part.as_ref());
        }
        done.map_err(fail)
    }

    #[cfg(target_os = "linux")]
    fn beneath(&self, path: &RepoPath, want: Want) -> Result<File, PathError> {
        use rustix::fs::{Mode, OFlags, ResolveFlags};
        use rustix::io::Errno;
        let flags = match want {
            Want::File => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
            Want::Folder => OFlags::PATH | OFlags::DIRECTORY,
        };
        // From the root of the machine, no link leads out.
        let bounds = match self.is_machine() {
            true => ResolveFlags::IN_ROOT,
            false => ResolveFlags::BENEATH,
        };
        let resolve = bounds | ResolveFlags::NO_MAGICLINKS;
        let open = || {
            rustix::fs::openat2(
                &self.dir,
                path.name(),
                flags | OFlags::CLOEXEC,
                Mode::empty(),
                resolve,
            )
        };
        match patient(open) {
            Ok(fd) => Ok(fd.into()),
            Err(Errno::XDEV) => Err(PathError::Outside(path.shown())),
            Err(Errno::NOENT) => Err(PathError::Missing(path.shown())),
            Err(Errno::NOTDIR) if want == Want::Folder => Err(PathError::NotAFolder(path.shown())),
            Err(Errno::NOTDIR) => Err(PathError::Missing(path.shown())),
            Err(Errno::NOSYS) => self.beneath_by_name(path, want),
            Err(error) => Err(PathError::Io(path.shown(), error.into())),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn beneath(&self, path: &RepoPath, want: Want) -> Result<File, PathError> {
        self.beneath_by_name(path, want)
    }

    /// Without help from the kernel: resolve, compare by components, open what was resolved.
    fn beneath_by_name(&self, path: &RepoPath, want: Want) -> Result<File, PathError> {
        let fail = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => PathError::Missing(path.shown()),
            _ => PathError::Io(path.shown(), e),
        };
        let real = self.path.join(&path.path).canonicalize().map_err(fail)?;
        if !real.starts_with(&self.path) {
            return Err(PathError::Outside(path.shown()));
        }
        match want {
            Want::Folder if !real.is_dir() => return Err(PathError::NotAFolder(path.shown())),
            Want::File if !real.is_file() => return Err(PathError::NotAFile(path.shown())),
            Want::Folder | Want::File => {}
        }
        File::open(real).map_err(fail)
    }
}

/// The device and inode of a folder.
fn identity(folder: &Path) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let about = folder.metadata().ok().filter(std::fs::Metadata::is_dir)?;
        Some((about.dev(), about.ino()))
    }
    #[cfg(not(unix))]
    return folder.metadata().ok().and(None);
}

/// Whether a file is one in which the kernel shows a process, wherever that is mounted.
#[cfg(target_os = "linux")]
fn shows_processes(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|about| about.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    File,
    Folder,
}

/// Turns an I/O error into an error for the model.
pub(super) fn place_error(path: &RepoPath, error: io::Error) -> PathError {
    match error.kind() {
        io::ErrorKind::AlreadyExists => PathError::Exists(path.shown()),
        io::ErrorKind::InvalidInput => PathError::Link(path.shown()),
        io::ErrorKind::NotADirectory => PathError::NotAFolder(path.shown()),
        io::ErrorKind::NotFound => PathError::Missing(path.shown()),
        _ => PathError::Io(path.shown(), error),
    }
}

/// A unique name for a temporary file.
pub(super) fn part_name() -> String {
    format!(".dunnock-{}.part", unheard_of())
}

/// A random word that nothing else uses.
pub(super) fn unheard_of() -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    let random = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}
