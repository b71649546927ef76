//! A workspace: paths inside it, and opening them without leaving it.

#[cfg(target_os = "linux")]
use super::place::patient;
use super::place::{Kind, Place, Rights};
use dunnock_core::policy::is_secret;
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

/// A path inside the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoPath(pub(super) PathBuf);

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
        if trimmed.starts_with("\\\\") || trimmed.starts_with("//") {
            return Err(PathError::Outside(text.into()));
        }
        let given = Path::new(trimmed);
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
        Ok(Self(path))
    }

    /// The path as it is shown to models and people.
    #[must_use]
    pub fn shown(&self) -> String {
        if self.0.as_os_str().is_empty() {
            ".".into()
        } else {
            self.0.to_string_lossy().into_owned()
        }
    }

    pub(super) fn parent(&self) -> &Path {
        self.0.parent().unwrap_or(Path::new(""))
    }

    #[cfg(target_os = "linux")]
    pub(super) fn name(&self) -> &Path {
        if self.0.as_os_str().is_empty() { Path::new(".") } else { &self.0 }
    }

    /// Whether it is in a folder that tools may not change, of this repository or a nested one.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.0
            .components()
            .any(|c| OURS.contains(&c.as_os_str().to_string_lossy().to_lowercase().as_str()))
    }

    pub(super) fn editable(&self) -> Result<(), PathError> {
        match self.0.file_name() {
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
            Ok(Self { path, denied: globset::GlobSet::empty(), dir: dir.into() })
        }
        #[cfg(not(target_os = "linux"))]
        {
            if path.is_dir() {
                Ok(Self { path, denied: globset::GlobSet::empty() })
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }
    }

    /// Denies tools access to these files.
    #[must_use]
    pub fn keeping_out(self, denied: globset::GlobSet) -> Self {
        Self { denied, ..self }
    }

    /// Whether tools may not access this path, which must not lead through a link.
    #[must_use]
    pub fn is_denied(&self, path: &Path) -> bool {
        self.denied.is_match(path)
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
            self.path.join(&path.0).canonicalize().ok()
        };
        let real = real.and_then(|real| real.strip_prefix(&self.path).map(Path::to_path_buf).ok());
        let real = real.as_deref().unwrap_or(&path.0);
        if self.is_denied(real) || self.is_denied(&path.0) {
            return Err(PathError::Denied(path.shown()));
        }
        let secret = |path: &Path| is_secret(&path.to_string_lossy());
        if secret(real) && !secret(&path.0) {
            return Err(PathError::Secret(path.shown()));
        }
        Ok(())
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
            self.path.join(&path.0).canonicalize().map_err(|error| place_error(path, error))?;
        if real.starts_with(&self.path) { Ok(real) } else { Err(PathError::Outside(path.shown())) }
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
                opened => return Ok(opened?.into()),
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
        let path = RepoPath(path.to_path_buf());
        let fail = |e: io::Error| place_error(&path, e);
        let Some(name) = path.0.file_name() else { return Err(PathError::NotAFile(path.shown())) };
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
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
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
        let real = self.path.join(&path.0).canonicalize().map_err(fail)?;
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
