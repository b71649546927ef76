//! Every setting there is: its name, what it may be, what it is unless somebody says otherwise, and what it means.

/// What a setting may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// `provider/model`.
    Model,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A number between these.
    Count(u64, u64),
    /// Texts; one text is a list of one.
    List,
    /// `2usd`, `200ktok`, `10min`, several with commas.
    Budget,
    /// `auto`, `off`, `require`, `require=A`.
    Sandbox,
}

/// When a folder that nobody trusts may set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Untrusted {
    /// Never.
    No,
    /// When the number becomes smaller.
    Lower,
    /// When the word comes earlier in its list, strictest first.
    Earlier,
}

/// A setting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Option<&'static str>,
    pub(crate) untrusted: Untrusted,
    pub(crate) about: &'static str,
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    untrusted: Untrusted,
    about: &'static str,
) -> Key {
    Key { name, kind, default, untrusted, about }
}

/// Modes of approval, strictest first.
pub(crate) const MODES: &[&str] = &["read", "ask", "edits", "auto", "all"];

/// In the order in which `dunnock config` shows them.
pub(crate) const KEYS: &[Key] = &[
    key("model", Kind::Model, None, Untrusted::No, "the model, as provider/model"),
    key("approve", Kind::Choice(MODES), Some("auto"), Untrusted::Earlier, "who is asked, and for what"),
    key("sandbox", Kind::Sandbox, Some("auto"), Untrusted::No, "how well commands must be confined"),
    key("max_steps", Kind::Count(1, 1_000_000), Some("200"), Untrusted::Lower, "model requests for one prompt"),
    key("verify", Kind::List, None, Untrusted::No, "commands that must pass before work counts as done"),
    key("verify_tries", Kind::Count(1, 100), Some("3"), Untrusted::Lower, "how often they may fail"),
    key("budget", Kind::Budget, None, Untrusted::No, "what a session may use: 200ktok, 10min"),
    key(
        "window",
        Kind::Count(1_000, 100_000_000),
        None,
        Untrusted::No,
        "tokens that the model holds; older talk is shortened before that",
    ),
    key(
        "shell",
        Kind::Choice(&["auto", "bash", "pwsh", "powershell"]),
        Some("auto"),
        Untrusted::No,
        "what runs command lines",
    ),
    key(
        "command_timeout",
        Kind::Count(1, 600),
        Some("120"),
        Untrusted::No,
        "seconds a command may take unless it asks for more",
    ),
    key(
        "output_lines",
        Kind::Count(10, 100_000),
        Some("200"),
        Untrusted::No,
        "lines of a command's output that the model is shown",
    ),
    key("output_bytes", Kind::Count(1_000, 10_000_000), Some("10240"), Untrusted::No, "bytes of it"),
    key(
        "idle_timeout",
        Kind::Count(1, 86_400),
        Some("300"),
        Untrusted::No,
        "seconds without a byte after which a model's answer is given up",
    ),
    key("data_dir", Kind::Text, None, Untrusted::No, "where sessions are kept"),
];

/// What a provider is made of.
pub(crate) const PROVIDER: &[Key] = &[
    key(
        "wire",
        Kind::Choice(&["chat", "responses", "anthropic", "ollama"]),
        Some("chat"),
        Untrusted::No,
        "how it is spoken to",
    ),
    key("base_url", Kind::Text, None, Untrusted::No, "the address before /chat/completions"),
    key("api_key_env", Kind::Text, None, Untrusted::No, "the variable that holds the key; unset: no key is sent"),
];
