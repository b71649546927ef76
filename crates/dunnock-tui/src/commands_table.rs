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
    slash("help", "", "list the commands"),
    slash("keys", "", "all keys"),
    slash("model", "[P/M]", "show the models, or switch to one"),
    slash("effort", "[EFFORT]", "how hard the model thinks, from none to max"),
    slash("login", "", "set up a model: provider, key, model"),
    slash("clear", "", "start a new session; this one is saved"),
    slash("new", "", "same as /clear"),
    slash("resume", "[ID]", "continue an earlier session"),
    slash("sessions", "[WORDS]", "list the sessions of all folders, or search them"),
    slash("diff", "", "show what this session changed"),
    slash("undo", "", "undo the last task, or the last undo"),
    slash("rewind", "", "go back to a step: files, conversation, or both"),
    slash("fork", "[STEP]", "fork: a new session with this conversation"),
    slash("compact", "", "compact the conversation"),
    slash("context", "", "what the next request consists of, in tokens"),
    slash("mcp", "", "MCP servers, their access and state"),
    slash("remember", "TEXT", "ask the model to add a line to AGENTS.md"),
    slash("cost", "", "tokens and cost"),
    slash("approvals", "[MODE]", "approval mode: read, ask, edits, auto, all"),
    slash("rules", "", "your saved approval rules"),
    slash("copy", "", "copy the last answer to the clipboard"),
    slash("export", "", "write this session to a file, known secrets removed"),
    slash("theme", "[NAME]", "dark, light, 16, mono"),
    slash("demo", "", "a short tour, without a model"),
    slash("quit", "", "exit; nothing is lost"),
];
