//! Names that make a folder a repository of git, and those in it that git acts on.

/// Names in the folder of a repository that make git run a program, contact another machine, or
/// read its configuration elsewhere.
pub const GIT_ACTS_ON: &[&str] = &[
    "config",
    "config.worktree",
    "hooks",
    "commondir",
    "gitdir",
    "info/attributes",
    "remotes",
    "branches",
];
/// Names of which a folder needs some to be a repository.
pub const REPOSITORY: &[&str] = &["HEAD", "objects", "refs", "commondir"];

/// Whether git takes a folder with these names for a repository.
#[must_use]
pub fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}
