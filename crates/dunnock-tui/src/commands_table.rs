//! Every slash command: its name, its arguments and what it does. The menu, `/help`, the docs and a
//! test read this table.

/// A slash command.
#[derive(Debug, Clone, Copy)]
pub struct Slash {
    /// The name, without the slash.
    pub name: &'static str,
    /// The arguments it takes.
    pub args: &'static str,
    /// What it does.
    pub about: &'static str,
}

const fn slash(name: &'static str, args: &'static str, about: &'static str) -> Slash {
    Slash { name, args, about }
}

/// All slash commands.
pub const COMMANDS: &[Slash] = &[
    slash("help", "", "what can be done here"),
    slash("keys", "", "every key"),
    slash("model", "[P/M]", "show the models, or switch to one"),
    slash("clear", "", "begin a fresh session; this one is kept"),
    slash("new", "", "the same as /clear"),
    slash("resume", "[ID]", "go on with an earlier session"),
    slash("sessions", "[WORDS]", "find a session of any folder by what was said in it"),
    slash("diff", "", "what this session changed"),
    slash("undo", "", "take back what the last task changed, or the last undo"),
    slash("rewind", "", "go back to an earlier step: files, talk, or both"),
    slash("fork", "[STEP]", "branch off: a new session with this one's talk"),
    slash("compact", "", "make the talk shorter"),
    slash("cost", "", "tokens and money"),
    slash("approvals", "[MODE]", "who is asked: read, ask, edits, auto, all"),
    slash("rules", "", "the rules that hold in every session"),
    slash("copy", "", "copy the last answer to the clipboard"),
    slash("export", "", "write this session to a file, keys taken out"),
    slash("theme", "[NAME]", "dark, light, 16, mono"),
    slash("demo", "", "a short tour, without a model"),
    slash("quit", "", "leave; nothing is lost"),
];
