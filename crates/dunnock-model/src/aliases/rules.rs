//! What an argument of another harness becomes.

/// What an argument becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Our argument of this name.
    As(&'static str),
    /// The opposite of our flag.
    Not(&'static str),
    /// `timeout`, given in milliseconds.
    Milliseconds,
    /// `timeout`: seconds, or milliseconds from this number on.
    Timeout(u64),
    /// The first line to read. Harnesses count from 0 or from 1, so one more line is shown.
    Offset,
    /// How many lines to read.
    Limit,
    /// Whether to read the whole file, whatever lines are given.
    Whole,
    /// How long to wait for output, in milliseconds.
    WaitMilliseconds,
    /// Whether an existing file is replaced: `overwrite`.
    WriteMode,
    /// One of the answers to choose from.
    Choice,
    /// The first and the last line, -1 for the end of the file.
    Range,
    /// Lines around a match: the largest of several.
    Context,
    /// Whether to list all levels.
    Recursive,
    /// A list of answers: texts, or objects with a text.
    Choices,
    /// A list with one question and its answers.
    Questions,
    /// Whether the command keeps running after the call.
    Background,
    /// The opposite of that.
    Blocking,
    /// Whether it runs in a terminal; such a program keeps running.
    Terminal,
    /// A list with one file to read.
    Files,
    /// A list with one replacement.
    Edits,
    /// A command that is a patch.
    PatchCommand,
    /// A search-and-replace block.
    Block,
    /// A pattern of file names, not a word to look for.
    Glob,
    /// An object with the arguments.
    Nested,
    /// It changes only what is shown, or nothing.
    Dropped,
    /// Only a shell that reads the same language can be followed.
    OnlyShell,
    /// Only `false` can be followed.
    OnlyFalse,
    /// Only 1 can be followed.
    OnlyOne,
    /// Only 0 or 1, the first entry, can be followed.
    OnlyStart,
    /// Only an empty value can be followed.
    OnlyEmpty,
    /// Only the workspace root can be followed.
    OnlyRoot,
    /// Whether staged changes are meant: `staged` or `unstaged`.
    Staged,
    /// Only this word can be followed.
    OnlyWord(&'static str),
}
