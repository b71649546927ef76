//! What people are shown of changed files.

/// How a path differs between two states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differs {
    /// Below the root.
    pub path: String,
    /// `added`, `deleted`, `changed`, `mode`, or into what kind it turned.
    pub how: &'static str,
    /// What it held; `None` where it was no file, or one too large to show.
    pub before: Option<Vec<u8>>,
    /// What it holds.
    pub after: Option<Vec<u8>>,
}

/// What going back would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// What would change, from now to then.
    pub changes: Vec<Differs>,
    /// What others changed, and would stay.
    pub kept: Vec<String>,
    /// What would stay, since it is not kept and could not be brought back again.
    pub large: Vec<String>,
    /// What cannot come back.
    pub lost: Vec<String>,
}
