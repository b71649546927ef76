//! Landlock, in its plain system calls: the child makes its rules after its mounts, where nothing may be allocated.

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
/// What can be granted for a file alone.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
/// To look and to run.
pub(crate) const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
/// To use a device.
pub(crate) const DEVICE: u64 = READ_FILE | WRITE_FILE | IOCTL_DEV;
/// Everything, but for making devices.
pub(crate) const ALL: u64 = !(MAKE_CHAR | MAKE_BLOCK);

/// Of the kernel.
#[repr(C)]
pub(crate) struct Attr {
    pub(crate) fs: u64,
    pub(crate) net: u64,
    pub(crate) scoped: u64,
}

/// A folder or file, and what may be done below it.
pub(crate) struct Rule {
    pub(crate) path: CString,
    pub(crate) access: u64,
    /// How it is opened: one that somebody else could have made a link is not followed.
    pub(crate) flags: libc::c_int,
}

/// Which version the kernel has; 0 for none.
#[expect(unsafe_code, reason = "a system call without a safe wrapper")]
pub(crate) fn abi() -> i64 {
    // SAFETY: asks for a number; no memory is passed.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<Attr>(), 0usize, 1u32) }.max(0)
}

impl Attr {
    /// Everything that this version of the kernel can hold. The network is held by other means.
    pub(crate) fn of(abi: i64) -> Self {
        let bits = match abi {
            ..=0 => 0,
            1 => 13,
            2 => 14,
            3 | 4 => 15,
            _ => 16,
        };
        // Abstract sockets and signals of others.
        Self { fs: (1 << bits) - 1, net: 0, scoped: if abi >= 6 { 3 } else { 0 } }
    }

    /// As much of an access as the kernel knows of, and as a file can have.
    pub(crate) fn fits(&self, access: u64, is_file: bool) -> u64 {
        access & self.fs & if is_file { OF_FILES } else { u64::MAX }
    }
}

/// What of a set of rules could not be made; the error is the thread's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    Ruleset,
    Rule,
}

/// Makes a set of rules; its descriptor. Allocates nothing: a child may call this.
#[expect(unsafe_code, reason = "plain system calls")]
pub(crate) fn ruleset(attr: &Attr, rules: &[Rule]) -> Result<std::os::fd::RawFd, Failed> {
    #[repr(C, packed)]
    struct Beneath {
        access: u64,
        parent: i32,
    }
    // An older kernel knows a shorter form.
    let size = if attr.scoped != 0 { size_of::<Attr>() } else { 8 };
    // SAFETY: the attributes are given with their size; paths end with a zero; each descriptor is closed once.
    unsafe {
        let set = libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::from_ref(attr), size, 0u32);
        if set < 0 {
            return Err(Failed::Ruleset);
        }
        for rule in rules {
            let parent = libc::open(rule.path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC | rule.flags);
            if parent < 0 {
                continue; // what is not there needs no right
            }
            let mut about: libc::stat = std::mem::zeroed();
            let mut done = libc::fstat(parent, &raw mut about) as libc::c_long;
            if done == 0 {
                let is_file = about.st_mode & libc::S_IFMT != libc::S_IFDIR;
                let beneath = Beneath { access: attr.fits(rule.access, is_file), parent };
                done = libc::syscall(libc::SYS_landlock_add_rule, set, 1 /* path */, &raw const beneath, 0u32);
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
    /// Not through a link.
    pub(crate) fn own(self) -> Self {
        Self { flags: libc::O_NOFOLLOW | libc::O_DIRECTORY, ..self }
    }

    pub(crate) fn new(path: &Path, access: u64) -> Option<Self> {
        use std::os::unix::ffi::OsStrExt as _;
        Some(Self { path: CString::new(path.as_os_str().as_bytes()).ok()?, access, flags: 0 })
    }
}
