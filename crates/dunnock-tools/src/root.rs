//! The workspace's folder, and the only way into it.
//!
//! Invariant: a [`RepoPath`] is relative, without `..`; files are opened beneath the root by the kernel's own rule where it
//! has one (`openat2`, Linux), and after a check of the resolved path elsewhere.
//! Invariant: nothing is written through a symbolic link, and a changed file is a new one, renamed into place.

use dunnock_core::policy::is_secret;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Folders of the workspace that no tool edits.
const OURS: &[&str] = &[".git", ".dunnock"];
/// The largest file that is read whole.
const MOST: u64 = 32 << 20;

/// Why a path cannot be used, for the model.
#[derive(Debug)]
pub enum PathError {
    /// It leads out of the workspace.
    Outside(String),
    /// It is no path.
    Malformed(String),
    /// There is nothing.
    Missing(String),
    /// There is something already.
    Exists(String),
    /// A folder, a socket, a device.
    NotAFile(String),
    /// It is not a folder.
    NotAFolder(String),
    /// A symbolic link, where something is to be written.
    Link(String),
    /// A folder that tools leave alone.
    Protected(String),
    /// It leads to a file that holds keys by custom, under another name.
    Secret(String),
    /// The person said that no tool goes there.
    Denied(String),
    /// Longer than is read whole.
    TooLong(String, u64),
    /// Something else.
    Io(String, io::Error),
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside(p) => write!(f, "{p} is outside the workspace; give a path inside it, relative to its root"),
            Self::Malformed(p) => write!(f, "{p:?} is not a path"),
            Self::Missing(p) => write!(f, "there is no {p}"),
            Self::Exists(p) => write!(f, "{p} exists already; change it with replace_text, or set overwrite"),
            Self::NotAFile(p) => write!(f, "{p} is not a plain file"),
            Self::NotAFolder(p) => write!(f, "{p} is not a folder"),
            Self::Link(p) => {
                write!(f, "{p} leads through a symbolic link; nothing is written through those. Name the real path")
            }
            Self::Protected(p) => write!(f, "{p} is not changed by tools"),
            Self::Secret(p) => write!(f, "{p} leads to a secret file; name that file itself, and the person is asked"),
            Self::Denied(p) => write!(f, "{p} is one of the files that the person keeps from all tools"),
            Self::TooLong(p, size) => write!(f, "{p} has {size} bytes, too many to read whole"),
            Self::Io(p, error) => write!(f, "{p}: {error}"),
        }
    }
}
impl std::error::Error for PathError {}

/// A path inside the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoPath(PathBuf);

impl RepoPath {
    /// Reads a path as a model writes it. An absolute path is accepted if it lies in the root.
    ///
    /// # Errors
    /// When it is no path or leads outside.
    pub fn parse(root: &Root, text: &str) -> Result<Self, PathError> {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.contains('\0') || trimmed.len() > 4096 {
            return Err(PathError::Malformed(text.into()));
        }
        // Another machine's folder, where such names mean one.
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

    /// As it is shown.
    #[must_use]
    pub fn shown(&self) -> String {
        if self.0.as_os_str().is_empty() { ".".into() } else { self.0.to_string_lossy().into_owned() }
    }

    #[cfg(target_os = "linux")]
    fn name(&self) -> &Path {
        if self.0.as_os_str().is_empty() { Path::new(".") } else { &self.0 }
    }

    /// Whether it lies in a folder that tools leave alone, of this repository or one inside it.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.0.components().any(|c| OURS.contains(&c.as_os_str().to_string_lossy().to_lowercase().as_str()))
    }

    fn editable(&self) -> Result<(), PathError> {
        match self.0.file_name() {
            None => Err(PathError::NotAFile(self.shown())),
            Some(_) if self.is_ours() => Err(PathError::Protected(self.shown())),
            Some(_) => Ok(()),
        }
    }
}

/// The folder of a session.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    /// Where no tool goes, by resolved paths.
    denied: globset::GlobSet,
    #[cfg(target_os = "linux")]
    dir: File,
}

/// A file as it was read.
#[derive(Debug)]
pub struct Contents {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its mode, where there are modes.
    pub mode: Option<u32>,
}

static PARTS: AtomicU64 = AtomicU64::new(0);

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
            let dir = rustix::fs::open(&path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
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

    /// With files to which no tool goes.
    #[must_use]
    pub fn keeping_out(self, denied: globset::GlobSet) -> Self {
        Self { denied, ..self }
    }

    /// Whether no tool goes to this path, which leads through no link.
    #[must_use]
    pub fn is_denied(&self, path: &Path) -> bool {
        self.denied.is_match(path)
    }

    /// Judges a file by what it really is, whatever name led there.
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

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder at `path`, as a path for programs and walks; it was beneath the root a moment ago.
    ///
    /// # Errors
    /// When there is none, or it leads outside.
    pub fn folder(&self, path: &RepoPath) -> Result<PathBuf, PathError> {
        drop(self.beneath(path, Want::Folder)?);
        Ok(self.path.join(&path.0))
    }

    /// Whether a folder is there, rather than a file.
    #[must_use]
    pub fn is_folder(&self, path: &RepoPath) -> bool {
        self.beneath(path, Want::Folder).is_ok()
    }

    /// Reads a plain file.
    ///
    /// # Errors
    /// When there is none, it leads outside, or it is too long.
    pub fn read(&self, path: &RepoPath) -> Result<Contents, PathError> {
        self.read_some(path, MOST)
    }

    /// Reads the beginning of a plain file, however long it is.
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

    /// Makes a new file, and the folders above it.
    ///
    /// # Errors
    /// When there is something already, or the path leads outside or through a link.
    pub fn create(&self, path: &RepoPath, bytes: &[u8]) -> Result<(), PathError> {
        self.put(path, bytes, None, Over::Nothing)
    }

    /// Puts a file in the place of one that may be there.
    ///
    /// # Errors
    /// When the path leads outside or through a link, or names something that is not a plain file.
    pub fn replace(&self, path: &RepoPath, bytes: &[u8], mode: Option<u32>) -> Result<(), PathError> {
        self.put(path, bytes, mode, Over::File)
    }

    /// Puts a file back as it was, wherever it lies in the workspace: what tools must not change, a command may have.
    #[cfg(target_os = "linux")]
    pub(crate) fn put_back(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), PathError> {
        self.place(&RepoPath(path.to_path_buf()), bytes, Some(mode), Over::File)
    }

    /// The folder itself.
    #[cfg(target_os = "linux")]
    pub(crate) fn dir(&self) -> &File {
        &self.dir
    }

    fn put(&self, path: &RepoPath, bytes: &[u8], mode: Option<u32>, over: Over) -> Result<(), PathError> {
        path.editable()?;
        if self.is_denied(&path.0) {
            return Err(PathError::Denied(path.shown()));
        }
        self.place(path, bytes, mode, over)
    }

    fn place(&self, path: &RepoPath, bytes: &[u8], mode: Option<u32>, over: Over) -> Result<(), PathError> {
        let shown = path.shown();
        let fail = |e: io::Error| match e.kind() {
            io::ErrorKind::AlreadyExists => PathError::Exists(shown.clone()),
            io::ErrorKind::InvalidInput => PathError::Link(shown.clone()),
            io::ErrorKind::NotADirectory => PathError::NotAFolder(shown.clone()),
            _ => PathError::Io(shown.clone(), e),
        };
        let Some(name) = path.0.file_name() else { return Err(PathError::NotAFile(shown)) };
        let parent = path.0.parent().unwrap_or(Path::new(""));
        let place = place::Place::make(self, parent).map_err(fail)?;
        match place.kind(name).map_err(fail)? {
            place::Kind::Nothing => {}
            place::Kind::File if over == Over::File => {}
            place::Kind::File => return Err(PathError::Exists(shown)),
            place::Kind::Link => return Err(PathError::Link(shown)),
            place::Kind::Other => return Err(PathError::NotAFile(shown)),
        }
        let part = format!(".dunnock-{}-{}.part", std::process::id(), PARTS.fetch_add(1, Ordering::Relaxed));
        let done = (|| {
            // What replaces a private file is private from its first byte.
            let mut file = place.new_file(&part, if mode.is_some() { 0o600 } else { 0o666 })?;
            file.write_all(bytes)?;
            #[cfg(unix)]
            if let Some(mode) = mode {
                file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
            }
            #[cfg(not(unix))]
            let _ = mode;
            file.sync_all()?;
            place.rename(&part, name, over == Over::File)
        })();
        if done.is_err() {
            place.remove(&part);
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
        match rustix::fs::openat2(&self.dir, path.name(), flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
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

    /// Without the kernel's rule: resolve, compare by components, open what was resolved.
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

/// What a new file may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Nothing,
    File,
}

/// A folder in which a file is put, held by its descriptor.
#[cfg(target_os = "linux")]
mod place {
    use super::{File, Path, Root, io};
    use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
    use std::ffi::OsStr;

    pub(super) struct Place(File);

    pub(super) enum Kind {
        Nothing,
        File,
        Link,
        Other,
    }

    fn enter(dir: &File, name: &Path) -> rustix::io::Result<File> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat2(dir, name, flags, Mode::empty(), resolve).map(File::from)
    }

    impl Place {
        /// The folder, made if it is missing.
        pub(super) fn make(root: &Root, path: &Path) -> io::Result<Self> {
            let mut dir = enter(&root.dir, Path::new("."))?;
            for component in path.components() {
                let name = Path::new(component.as_os_str());
                dir = match enter(&dir, name) {
                    Ok(inner) => inner,
                    Err(rustix::io::Errno::NOENT) => {
                        match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                            Err(error) => return Err(error.into()),
                        }
                        enter(&dir, name)?
                    }
                    Err(rustix::io::Errno::LOOP) => return Err(io::ErrorKind::InvalidInput.into()),
                    Err(error) => return Err(error.into()),
                };
            }
            Ok(Self(dir))
        }
        pub(super) fn kind(&self, name: &OsStr) -> io::Result<Kind> {
            match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(rustix::io::Errno::NOENT) => Ok(Kind::Nothing),
                Err(error) => Err(error.into()),
                Ok(stat) => Ok(match FileType::from_raw_mode(stat.st_mode) {
                    FileType::RegularFile => Kind::File,
                    FileType::Symlink => Kind::Link,
                    _ => Kind::Other,
                }),
            }
        }
        pub(super) fn new_file(&self, name: &str, mode: u32) -> io::Result<File> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(mode))?.into())
        }
        pub(super) fn rename(&self, from: &str, to: &OsStr, over: bool) -> io::Result<()> {
            if over {
                return Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?);
            }
            match rustix::fs::renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE) {
                // Some file systems cannot; a link can be made only where nothing is.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                    rustix::fs::linkat(&self.0, from, &self.0, to, AtFlags::empty())?;
                    self.remove(from);
                    Ok(())
                }
                done => Ok(done?),
            }
        }
        pub(super) fn remove(&self, name: &str) {
            let _ = rustix::fs::unlinkat(&self.0, name, AtFlags::empty());
        }
    }
}

/// The same by name, where there is nothing better.
#[cfg(not(target_os = "linux"))]
mod place {
    use super::{File, Path, PathBuf, Root, io};
    use std::ffi::OsStr;

    pub(super) struct Place(PathBuf);

    pub(super) enum Kind {
        Nothing,
        File,
        Link,
        Other,
    }

    impl Place {
        pub(super) fn make(root: &Root, path: &Path) -> io::Result<Self> {
            let mut dir = root.path.clone();
            for component in path.components() {
                dir.push(component);
                match std::fs::symlink_metadata(&dir) {
                    Ok(found) if found.is_symlink() => return Err(io::ErrorKind::InvalidInput.into()),
                    Ok(found) if found.is_dir() => {}
                    Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::create_dir(&dir)?,
                    Err(error) => return Err(error),
                }
            }
            Ok(Self(dir))
        }
        pub(super) fn kind(&self, name: &OsStr) -> io::Result<Kind> {
            match std::fs::symlink_metadata(self.0.join(name)) {
                Ok(found) if found.is_symlink() => Ok(Kind::Link),
                Ok(found) if found.is_file() => Ok(Kind::File),
                Ok(_) => Ok(Kind::Other),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kind::Nothing),
                Err(error) => Err(error),
            }
        }
        pub(super) fn new_file(&self, name: &str, _: u32) -> io::Result<File> {
            File::options().write(true).create_new(true).open(self.0.join(name))
        }
        pub(super) fn rename(&self, from: &str, to: &OsStr, over: bool) -> io::Result<()> {
            if !over && self.0.join(to).exists() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            std::fs::rename(self.0.join(from), self.0.join(to))
        }
        pub(super) fn remove(&self, name: &str) {
            let _ = std::fs::remove_file(self.0.join(name));
        }
    }
}
