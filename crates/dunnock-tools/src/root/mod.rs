//! The workspace's folder, and the only way into it.
//!
//! Invariant: a [`RepoPath`] is relative, without `..`; where the kernel can, it keeps opened files
//! beneath the root (`openat2` on Linux); elsewhere the resolved path is checked first.
//! Invariant: nothing is written through a symbolic link, and a changed file is a new one, renamed
//! into place.

mod commit;
mod journal;
mod place;
mod workspace;

pub use commit::FileChange;
pub use journal::mend;
#[cfg(unix)]
pub(crate) use place::patient;
pub use workspace::{Contents, PathError, RepoPath, Root};
