//! Landlock through raw system calls: the child makes its rules after its mounts, where it must not
//! allocate.

use std::ffi::CString;
use std::path::Path;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
/// Rights that apply to a single file.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
/// Read, list and execute.
pub(crate) const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
/// List folders.
pub(crate) const LIST: u64 = READ_DIR;
/// Use a device.
pub(crate) const DEVICE: u64 = READ_FILE | WRITE_FILE | IOCTL_DEV;
/// Everything except creating device nodes.
pub(crate) const ALL: u64 = !(MAKE_CHAR | MAKE_BLOCK);

/// `struct landlock_ruleset_attr` of the kernel.
#[repr(C)]
pub(crate) struct Attr {
    pub(crate) fs: u64,
    pub(crate) net: u64,
    pub(crate) scoped: u64,
}

/// A file or folder and the rights granted on it and below.
pub(crate) struct Rule {
    pub(crate) path: CString,
    pub(crate) access: u64,
    /// Flags for opening it: a path that someone could have replaced by a symlink is not followed.
    pub(crate) flags: libc::c_int,
}

/// The kernel's Landlock ABI version; 0 if it has none.
#[expect(unsafe_code, reason = "a system call without a safe wrapper")]
pub(crate) fn abi() -> i64 {
    // SAFETY: only queries a version number; no memory is passed.
    unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<Attr>(), 0usize, 1u32)
    }
    .max(0)
}

impl Attr {
    /// Every file system right that this ABI version can restrict. The network is restricted by
    /// other means.
    pub(crate) fn of(abi: i64) -> Self {
        let bits = match abi {
            ..=0 => 0,
            1 => 13,
            2 => 14,
            3 | 4 => 15,
            _ => 16,
        };
        // Scope abstract sockets and signals.
        Self { fs: (1 << bits) - 1, net: 0, scoped: if abi >= 6 { 3 } else { 0 } }
    }

    /// The part of `access` that the kernel knows and, for a file, that applies to files.
    pub(crate) fn fits(&self, access: u64, is_file: bool) -> u64 {
        access & self.fs & if is_file { OF_FILES } else { u64::MAX }
    }
}

/// Which step of making a ruleset failed; the error is in `errno`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    Ruleset,
    Rule,
}

/// Makes a ruleset and returns its descriptor. Allocates nothing, so a child may call it.
#[expect(unsafe_code, reason = "plain system calls")]
pub(crate) fn ruleset(attr: &Attr, rules: &[Rule]) -> Result<std::os::fd::RawFd, Failed> {
    #[repr(C, packed)]
    struct Beneath {
        access: u64,
        parent: i32,
    }
    // Older kernels know a shorter struct.
    let size = if attr.scoped != 0 { size_of::<Attr>() } else { 8 };
    // SAFETY: the attributes are passed with their size; paths are NUL-terminated; each descriptor
    // is closed once.
    unsafe {
        let set =
            libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::from_ref(attr), size, 0u32);
        if set < 0 {
            return Err(Failed::Ruleset);
        }
        for rule in rules {
            let parent =
                libc::open(rule.path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC | rule.flags);
            if parent < 0 {
                continue; // a path that does not exist needs no rule
            }
            let mut about: libc::stat = std::mem::zeroed();
            let mut done = libc::fstat(parent, &raw mut about) as libc::c_long;
            if done == 0 {
                let is_file = about.st_mode & libc::S_IFMT != libc::S_IFDIR;
                let beneath = Beneath { access: attr.fits(rule.access, is_file), parent };
                done = libc::syscall(
                    libc::SYS_landlock_add_rule,
                    set,
                    1, /* path */
                    &raw const beneath,
                    0u32,
                );
            }
            libc::close(parent);
            if done < 0 {
                return Err(Failed::Rule);
            }
        }
        Ok(set as std::os::fd::RawFd)
    }
}

impl Rule {
    /// Does not follow a symlink at this path.
    pub(crate) fn own(self) -> Self {
        Self { flags: libc::O_NOFOLLOW | libc::O_DIRECTORY, ..self }
    }

    pub(crate) fn new(path: &Path, access: u64) -> Option<Self> {
        use std::os::unix::ffi::OsStrExt as _;
        Some(Self { path: CString::new(path.as_os_str().as_bytes()).ok()?, access, flags: 0 })
    }
}
