//! All settings: name, allowed values, default and meaning.

use dunnock_model::{Auth, Dialect, Size, Wire};

/// The type of a setting.
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
    /// Strings; a single string is a list of one.
    List,
    /// `2usd`, `200ktok`, `10min`, several with commas.
    Budget,
    /// `20usd`.
    Money,
    /// Strings like `provider/model: 1 in, 0.1 cached, 4 out`.
    Prices,
    /// `auto`, `off`, `require`, `require=A`.
    Sandbox,
    /// The name of an environment variable.
    Variable,
}

/// When an untrusted folder may set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Untrusted {
    /// Only after it is trusted.
    No,
    /// Never, even if trusted: only the user's own settings may.
    Never,
    /// If the number becomes smaller.
    Lower,
    /// If the word comes earlier in its list, which is ordered strictest first.
    Earlier,
}

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

/// Approval modes, strictest first.
pub(crate) const MODES: &[&str] = &["read", "ask", "edits", "auto", "all"];

/// All settings, in the order in which `dunnock config` shows them.
pub(crate) const KEYS: &[Key] = &[
    key("model", Kind::Model, None, Untrusted::No, "the model, as provider/model"),
    key(
        "profile",
        Kind::Choice(Size::NAMES),
        None,
        Untrusted::No,
        "how much the model is told at once; as \"models check\" found best if left out",
    ),
    key("approve", Kind::Choice(MODES), Some("auto"), Untrusted::Earlier, "who is asked, and for what"),
    key("sandbox", Kind::Sandbox, Some("auto"), Untrusted::No, "how well commands must be confined"),
    key(
        "sandbox_level",
        Kind::Choice(&["A", "B", "C"]),
        Some("A"),
        Untrusted::No,
        "the best level of the box to use, where a lower one is wanted on purpose",
    ),
    key(
        "sandbox_read",
        Kind::List,
        None,
        Untrusted::No,
        "folders outside of the workspace that every command may read",
    ),
    key(
        "sandbox_write",
        Kind::List,
        None,
        Untrusted::No,
        "folders outside of the workspace that every command may write",
    ),
    key(
        "edits",
        Kind::Choice(&["tools-only", "any"]),
        Some("any"),
        Untrusted::Earlier,
        "whether commands may change the folder's files, or edit tools only (build folders excepted)",
    ),
    key(
        "interface",
        Kind::Choice(&["terminal", "web"]),
        Some("terminal"),
        Untrusted::No,
        "what \"dunnock\" alone opens: the terminal app, or the web app in your browser",
    ),
    key(
        "theme",
        Kind::Choice(&["auto", "dark", "light", "16", "mono"]),
        Some("auto"),
        Untrusted::No,
        "colours of the terminal app; NO_COLOR comes first",
    ),
    key(
        "notify",
        Kind::Choice(&["bell", "osc9", "off"]),
        Some("bell"),
        Untrusted::No,
        "how the terminal app calls you when it needs you",
    ),
    key(
        "screen_reader",
        Kind::Choice(&["on", "off"]),
        Some("off"),
        Untrusted::No,
        "the terminal app as lines only, nothing drawn twice",
    ),
    key("deny_paths", Kind::List, None, Untrusted::No, "files of a folder to which no tool goes: secrets/**"),
    key(
        "check",
        Kind::List,
        None,
        Untrusted::No,
        "commands run after an edit, by kind of file, for the model to see: \"rs: cargo check -q\", \"py: ruff check {path}\"",
    ),
    key(
        "max_steps",
        Kind::Count(1, 1_000_000),
        Some("200"),
        Untrusted::Lower,
        "model requests for one prompt (20 in the terminal app, where it asks whether to go on)",
    ),
    key("verify", Kind::List, None, Untrusted::No, "commands that must pass before work counts as done"),
    key("verify_tries", Kind::Count(1, 100), Some("3"), Untrusted::Lower, "how often they may fail"),
    key("verify_timeout", Kind::Count(1, 86_400), Some("600"), Untrusted::Lower, "seconds that one of them may take"),
    key(
        "baseline",
        Kind::Choice(&["on", "off"]),
        Some("on"),
        Untrusted::No,
        "whether they are run before the work, too, on a copy of the files: what failed before is said",
    ),
    key("budget", Kind::Budget, None, Untrusted::No, "what a session may use: 2usd, 200ktok, 10min"),
    key("budget_day", Kind::Money, None, Untrusted::No, "what all sessions of a day (UTC) may use together: 20usd"),
    key(
        "price",
        Kind::Prices,
        None,
        Untrusted::No,
        "what models cost, in US dollars per million tokens: \"openai/gpt-5: 1.25 in, 0.125 cached, 10 out\"; openai/* for all of them",
    ),
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
        "command_processes",
        Kind::Count(10, 1_000_000),
        Some("1000"),
        Untrusted::No,
        "processes that a command may have at once",
    ),
    key(
        "command_memory_mb",
        Kind::Count(64, 100_000_000),
        None,
        Untrusted::No,
        "memory that a command may hold; three quarters of the machine's if left out",
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
    key(
        "checkpoints",
        Kind::Choice(&["on", "off"]),
        Some("on"),
        Untrusted::No,
        "whether the folder's files are kept around each change, for undo and rewind",
    ),
    key(
        "checkpoint_mb",
        Kind::Count(1, 1_000_000),
        Some("2048"),
        Untrusted::No,
        "how much may be kept of all folders together; the oldest goes first",
    ),
    key("checkpoint_days", Kind::Count(1, 36_500), Some("30"), Untrusted::No, "for how long"),
    key(
        "planner",
        SWITCH,
        Some("off"),
        Untrusted::No,
        "whether \"run\" is a planner: the program acts on plans until the checks pass",
    ),
    key(
        "planner_allow",
        Kind::List,
        None,
        Untrusted::Never,
        "programs that a planner may use although it is denied them: curl, rm, ...",
    ),
    key(
        "bridge_dir",
        Kind::Text,
        Some(".dunnock/bridge"),
        Untrusted::No,
        "where outboxes and inboxes of carried conversations lie (--dir): below .dunnock, or outside of the workspace",
    ),
    key("bridge_timeout", Kind::Count(1, 600), Some("30"), Untrusted::No, "seconds that a command of one may take"),
    key(
        "bridge_output",
        Kind::Count(200, 1_000_000),
        Some("4000"),
        Untrusted::No,
        "characters of a command's output that go into an outbox",
    ),
    key(
        "bridge_size",
        Kind::Count(2_000, 10_000_000),
        Some("16000"),
        Untrusted::No,
        "characters that a chat takes at once; a longer outbox is several files",
    ),
    key("data_dir", Kind::Text, None, Untrusted::No, "where sessions are kept"),
];

/// Settings of a provider.
pub(crate) const PROVIDER: &[Key] = &[
    key("wire", Kind::Choice(Wire::NAMES), Some("chat"), Untrusted::No, "how it is spoken to"),
    key(
        "base_url",
        Kind::Text,
        None,
        Untrusted::No,
        "the address to which the wire adds its path (/chat/completions, /responses, /messages, /api/chat); {NAME} stands for a variable",
    ),
    key("api_key_env", Kind::Variable, None, Untrusted::No, "the variable that holds the key; unset: no key is sent"),
    key("auth", Kind::Choice(Auth::NAMES), None, Untrusted::No, "how the key is shown; by the wire if left out"),
    key(
        "dialect",
        Kind::Choice(Dialect::NAMES),
        None,
        Untrusted::No,
        "how calls are written; as \"models check\" found best if left out",
    ),
    key(
        "window",
        Kind::Count(256, 100_000_000),
        None,
        Untrusted::No,
        "tokens that its models hold; asked of the server, or known, if left out",
    ),
    key("max_output", Kind::Count(1, 100_000_000), None, Untrusted::No, "the longest answer to ask for, in tokens"),
    key(
        "body",
        Kind::Text,
        None,
        Untrusted::No,
        "more fields for each request, as a JSON object: {\"reasoning_effort\": \"high\"}",
    ),
    key("merge", SWITCH, None, Untrusted::No, "send what follows each other from one side as one message"),
    key("echo", SWITCH, None, Untrusted::No, "send its readable reasoning back to it"),
    key("sealed", SWITCH, None, Untrusted::No, "ask for sealed reasoning, and send that back to it"),
    key("usage", SWITCH, None, Untrusted::No, "ask for usage in streams"),
    key("signed", SWITCH, None, Untrusted::No, "mark calls that others made as unsigned, as Gemini wants it"),
    key("new_limit", SWITCH, None, Untrusted::No, "write max_output as max_completion_tokens on Chat Completions"),
];

const SWITCH: Kind = Kind::Choice(&["on", "off"]);

/// The reference page of all settings.
pub(crate) fn page() -> String {
    let mut page = String::from(
        "# Settings\n\nMade by `cargo xtask generate` from `crates/dunnock/src/keys_table.rs`.\n\nOrder, later ones win: defaults, \
         `~/.config/dunnock/config.toml` (`$XDG_CONFIG_HOME`), `.dunnock/config.toml` of the project, `DUNNOCK_*`, flags. A key is \
         its flag with `_`; `DUNNOCK_MAX_STEPS` sets `max_steps`, `DUNNOCK_PROVIDERS__NAME__BASE_URL` sets `providers.NAME.base_url`. \
         `dunnock config` shows each value and where it comes from; a wrong key is an error with its line.\n\n",
    );
    let row = |key: &Key, prefix: &str| {
        let kind = match key.kind {
            Kind::Text => "text".into(),
            Kind::Model => "provider/model".into(),
            Kind::Choice(words) => words.join(", "),
            Kind::Count(least, most) => format!("{least} to {most}"),
            Kind::List => "list of texts".into(),
            Kind::Budget => "2usd, 200ktok, 10min".into(),
            Kind::Money => "20usd".into(),
            Kind::Prices => "list of prices".into(),
            Kind::Variable => "name of a variable".into(),
            Kind::Sandbox => "auto, off, require, require=A, =B, =C".into(),
        };
        let untrusted = match key.untrusted {
            Untrusted::No => "no",
            Untrusted::Never => "never, not even a trusted one",
            Untrusted::Lower => "if lower",
            Untrusted::Earlier => "if stricter",
        };
        let (name, default, about) = (key.name, key.default.unwrap_or("-"), key.about);
        format!("| `{prefix}{name}` | {kind} | {default} | {untrusted} | {about} |\n")
    };
    let head = "| key | may be | default | from an untrusted project | meaning |\n|---|---|---|---|---|\n";
    page.push_str(head);
    KEYS.iter().for_each(|key| page.push_str(&row(key, "")));
    page.push_str("\n## Providers\n\n");
    page.push_str(head);
    PROVIDER.iter().for_each(|key| page.push_str(&row(key, "providers.NAME.")));
    page.push_str("\nThose that need no configuration, in the order in which they are tried when no model is set:\n\n");
    page.push_str("| name | what | wire | address | key from | model if none is set |\n|---|---|---|---|---|---|\n");
    for known in dunnock_model::KNOWN {
        let (name, about, wire, url) = (known.name, known.about, known.wire, known.base_url);
        let (key, model) = (known.key_env.unwrap_or("-"), known.default_model.unwrap_or("-"));
        page.push_str(&format!("| `{name}` | {about} | {wire} | {url} | {key} | {model} |\n"));
    }
    page.push_str(&format!(
        "\n## Prices\n\nUS dollars per million tokens, as of {}. Other models have no price until `price` gives one: it is shown as unknown, and \
         a budget of money is refused.\n\n| model | sent | found in the cache | put into the cache | received |\n|---|---|---|---|---|\n",
        dunnock_model::PRICES_OF
    ));
    let usd = |micros: u64| format!("{}", micros as f64 / 1e6);
    for (provider, model, price) in dunnock_model::PRICES {
        let row = [price.input, price.cached, price.written, price.output].map(usd).join(" | ");
        page.push_str(&format!("| `{provider}/{model}` | {row} |\n"));
    }
    page.push('\n');
    for (provider, source) in dunnock_model::PRICE_SOURCES {
        page.push_str(&format!("Prices of {provider}: {source}.\n"));
    }
    let prompts: Vec<String> = dunnock_model::Prompts::ALL.iter().map(|(name, _)| format!("`{name}`")).collect();
    page.push_str(&format!(
        "\nPrompts are template files ({}); one of the same name in `~/.config/dunnock/prompts/` replaces each.\n",
        prompts.join(", ")
    ));
    page
}
