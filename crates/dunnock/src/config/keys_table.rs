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
        "which tools and prompts the model gets; if unset, what \"models check\" found best",
    ),
    key(
        "approve",
        Kind::Choice(MODES),
        Some("auto"),
        Untrusted::Earlier,
        "when you are asked for approval",
    ),
    key(
        "sandbox",
        Kind::Sandbox,
        Some("auto"),
        Untrusted::No,
        "whether commands must be sandboxed, and at which level",
    ),
    key(
        "sandbox_level",
        Kind::Choice(&["A", "B", "C"]),
        Some("A"),
        Untrusted::No,
        "the highest sandbox level to use; set it to use a lower one on purpose",
    ),
    key(
        "sandbox_read",
        Kind::List,
        None,
        Untrusted::No,
        "folders outside the workspace that every command may read",
    ),
    key(
        "sandbox_write",
        Kind::List,
        None,
        Untrusted::No,
        "folders outside the workspace that every command may write to",
    ),
    key(
        "edits",
        Kind::Choice(&["tools-only", "any"]),
        Some("any"),
        Untrusted::Earlier,
        "whether commands may change files in the workspace, or only edit tools may (except in \
         build folders)",
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
        "colours of the terminal app; NO_COLOR overrides it",
    ),
    key(
        "notify",
        Kind::Choice(&["bell", "osc9", "off"]),
        Some("bell"),
        Untrusted::No,
        "how the terminal app alerts you when it needs you",
    ),
    key(
        "screen_reader",
        Kind::Choice(&["on", "off"]),
        Some("off"),
        Untrusted::No,
        "print plain lines in the terminal app and never redraw them",
    ),
    key(
        "deny_paths",
        Kind::List,
        None,
        Untrusted::No,
        "files in the workspace that tools may not access, nor commands at level A: secrets/**",
    ),
    key(
        "check",
        Kind::List,
        None,
        Untrusted::No,
        "commands to run after an edit, by file extension; the model sees their output: \"rs: \
         cargo check -q\", \"py: ruff check {path}\"",
    ),
    key(
        "max_steps",
        Kind::Count(1, 1_000_000),
        Some("200"),
        Untrusted::Lower,
        "maximum model requests per prompt (20 in the terminal app, which then asks whether to \
         continue)",
    ),
    key(
        "verify",
        Kind::List,
        None,
        Untrusted::No,
        "commands that must pass before a task counts as done",
    ),
    key(
        "verify_tries",
        Kind::Count(1, 100),
        Some("3"),
        Untrusted::Lower,
        "how many times to try verification",
    ),
    key(
        "verify_timeout",
        Kind::Count(1, 86_400),
        Some("600"),
        Untrusted::Lower,
        "seconds that one verify command may take",
    ),
    key(
        "baseline",
        Kind::Choice(&["on", "off"]),
        Some("on"),
        Untrusted::No,
        "whether to run the verify commands before the work too, on a copy of the files, to \
         report what failed already",
    ),
    key(
        "budget",
        Kind::Budget,
        None,
        Untrusted::No,
        "the most that a session may use: 2usd, 200ktok, 10min",
    ),
    key(
        "budget_day",
        Kind::Money,
        None,
        Untrusted::No,
        "the most that all sessions of a day (UTC) may use together: 20usd",
    ),
    key(
        "price",
        Kind::Prices,
        None,
        Untrusted::No,
        "what models cost, in US dollars per million tokens: \"openai/gpt-5: 1.25 in, 0.125 \
         cached, 10 out\"; openai/* matches all its models",
    ),
    key(
        "window",
        Kind::Count(1_000, 100_000_000),
        None,
        Untrusted::No,
        "context window of the model, in tokens; the conversation is shortened before it is full",
    ),
    key(
        "shell",
        Kind::Choice(&["auto", "bash", "pwsh", "powershell"]),
        Some("auto"),
        Untrusted::No,
        "the shell that runs commands",
    ),
    key(
        "command_timeout",
        Kind::Count(1, 600),
        Some("120"),
        Untrusted::No,
        "seconds that a command may take, unless the call asks for more",
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
        "memory that a command may use, in MB; if unset, three quarters of the machine's",
    ),
    key(
        "output_lines",
        Kind::Count(10, 100_000),
        Some("200"),
        Untrusted::No,
        "lines of a command's output that the model sees",
    ),
    key(
        "output_bytes",
        Kind::Count(1_000, 10_000_000),
        Some("10240"),
        Untrusted::No,
        "bytes of a command's output that the model sees",
    ),
    key(
        "idle_timeout",
        Kind::Count(1, 86_400),
        Some("300"),
        Untrusted::No,
        "seconds without data after which a model request times out",
    ),
    key(
        "checkpoints",
        Kind::Choice(&["on", "off"]),
        Some("on"),
        Untrusted::No,
        "whether to save the folder's files before and after each change, for undo and rewind",
    ),
    key(
        "checkpoint_mb",
        Kind::Count(1, 1_000_000),
        Some("2048"),
        Untrusted::No,
        "MB of checkpoints to keep, for all folders together; the oldest are deleted first",
    ),
    key(
        "checkpoint_days",
        Kind::Count(1, 36_500),
        Some("30"),
        Untrusted::No,
        "days to keep checkpoints",
    ),
    key(
        "planner",
        SWITCH,
        Some("off"),
        Untrusted::No,
        "whether \"run\" uses the planner: the model only plans, and Dunnock executes the plans \
         until \
         the checks pass",
    ),
    key(
        "planner_allow",
        Kind::List,
        None,
        Untrusted::Never,
        "programs that a planner may use although they are denied by default: curl, rm, ...",
    ),
    key(
        "bridge_dir",
        Kind::Text,
        Some(".dunnock/bridge"),
        Untrusted::No,
        "folder for the bridge's outboxes and inboxes (--dir): below .dunnock, or outside the \
         workspace",
    ),
    key(
        "bridge_timeout",
        Kind::Count(1, 600),
        Some("30"),
        Untrusted::No,
        "seconds that a command may take in the bridge",
    ),
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
        "characters that a chat accepts at once; a longer outbox is split into several files",
    ),
    key("data_dir", Kind::Text, None, Untrusted::No, "where sessions are stored"),
];

/// Settings of a provider.
pub(crate) const PROVIDER: &[Key] = &[
    key("wire", Kind::Choice(Wire::NAMES), Some("chat"), Untrusted::No, "the API protocol"),
    key(
        "base_url",
        Kind::Text,
        None,
        Untrusted::No,
        "the address to which the wire adds its path (/chat/completions, /responses, /messages, \
         /api/chat); {NAME} stands for an environment variable",
    ),
    key(
        "api_key_env",
        Kind::Variable,
        None,
        Untrusted::No,
        "the environment variable with the API key; if unset, no key is sent",
    ),
    key(
        "auth",
        Kind::Choice(Auth::NAMES),
        None,
        Untrusted::No,
        "how the key is sent; if unset, as usual for the wire",
    ),
    key(
        "dialect",
        Kind::Choice(Dialect::NAMES),
        None,
        Untrusted::No,
        "how the model writes calls; if unset, what \"models check\" found best",
    ),
    key(
        "window",
        Kind::Count(256, 100_000_000),
        None,
        Untrusted::No,
        "context window of its models, in tokens; if unset, the server is asked or a known value \
         is used",
    ),
    key(
        "max_output",
        Kind::Count(1, 100_000_000),
        None,
        Untrusted::No,
        "the longest answer to ask for, in tokens",
    ),
    key(
        "body",
        Kind::Text,
        None,
        Untrusted::No,
        "extra fields for each request, as a JSON object: {\"reasoning_effort\": \"high\"}",
    ),
    key(
        "merge",
        SWITCH,
        None,
        Untrusted::No,
        "merge consecutive messages of the same role into one",
    ),
    key("echo", SWITCH, None, Untrusted::No, "send the model's readable reasoning back to it"),
    key(
        "sealed",
        SWITCH,
        None,
        Untrusted::No,
        "ask for encrypted reasoning, and send it back to the model",
    ),
    key("usage", SWITCH, None, Untrusted::No, "ask for token usage in streams"),
    key(
        "signed",
        SWITCH,
        None,
        Untrusted::No,
        "mark calls made by other models as unsigned, as Gemini requires",
    ),
    key(
        "new_limit",
        SWITCH,
        None,
        Untrusted::No,
        "send max_output as max_completion_tokens in Chat Completions",
    ),
];

const SWITCH: Kind = Kind::Choice(&["on", "off"]);

/// The reference page of all settings.
pub(crate) fn page() -> String {
    let mut page = String::from(
        "# Settings\n\nGenerated by `cargo xtask generate` from \
         `crates/dunnock/src/config/keys_table.rs`.\n\nOrder (later ones win): defaults, \
         `~/.config/dunnock/config.toml` (`$XDG_CONFIG_HOME`), `.dunnock/config.toml` of the \
         project, `DUNNOCK_*`, flags. A key is named like its flag, with `_` for `-`; \
         `DUNNOCK_MAX_STEPS` sets \
         `max_steps`, `DUNNOCK_PROVIDERS__NAME__BASE_URL` sets `providers.NAME.base_url`. \
         `dunnock config` shows each value and where it comes from; an unknown key is an error \
         that names its line.\n\n",
    );
    let row = |key: &Key, prefix: &str| {
        let kind = match key.kind {
            Kind::Text => "text".into(),
            Kind::Model => "provider/model".into(),
            Kind::Choice(words) => words.join(", "),
            Kind::Count(least, most) => format!("{least} to {most}"),
            Kind::List => "list of strings".into(),
            Kind::Budget => "2usd, 200ktok, 10min".into(),
            Kind::Money => "20usd".into(),
            Kind::Prices => "list of prices".into(),
            Kind::Variable => "name of an environment variable".into(),
            Kind::Sandbox => "auto, off, require, require=A, =B, =C".into(),
        };
        let untrusted = match key.untrusted {
            Untrusted::No => "no",
            Untrusted::Never => "never, not even if trusted",
            Untrusted::Lower => "if lower",
            Untrusted::Earlier => "if stricter",
        };
        let (name, default, about) = (key.name, key.default.unwrap_or("-"), key.about);
        format!("| `{prefix}{name}` | {kind} | {default} | {untrusted} | {about} |\n")
    };
    let head =
        "| key | values | default | from an untrusted project | meaning |\n|---|---|---|---|---|\n";
    page.push_str(head);
    KEYS.iter().for_each(|key| page.push_str(&row(key, "")));
    page.push_str("\n## Providers\n\n");
    page.push_str(head);
    PROVIDER.iter().for_each(|key| page.push_str(&row(key, "providers.NAME.")));
    page.push_str(
        "\nProviders that need no configuration, in the order in which they are tried if no model \
         is set:\n\n",
    );
    page.push_str(
        "| name | what | wire | address | key from | model if none is set \
         |\n|---|---|---|---|---|---|\n",
    );
    for known in dunnock_model::KNOWN {
        let (name, about, wire, url) = (known.name, known.about, known.wire, known.base_url);
        let (key, model) = (known.key_env.unwrap_or("-"), known.default_model.unwrap_or("-"));
        page.push_str(&format!("| `{name}` | {about} | {wire} | {url} | {key} | {model} |\n"));
    }
    page.push_str(&format!(
        "\n## Prices\n\nUS dollars per million tokens, as of {}. Other models have no price until \
         you set `price`: their cost is shown as unknown, and a money budget is refused.\n\n| \
         model | input | cached input | cache writes | output |\n|---|---|---|---|---|\n",
        dunnock_model::PRICES_OF
    ));
    let usd = |micros: u64| format!("{}", micros as f64 / 1e6);
    for (provider, model, price) in dunnock_model::PRICES {
        let row = [price.input, price.cached, price.written, price.output].map(usd).join(" | ");
        page.push_str(&format!("| `{provider}/{model}` | {row} |\n"));
    }
    page.push('\n');
    for (provider, source) in dunnock_model::PRICE_SOURCES {
        page.push_str(&format!("Prices for {provider}: {source}.\n"));
    }
    let prompts: Vec<String> =
        dunnock_model::Prompts::ALL.iter().map(|(name, _)| format!("`{name}`")).collect();
    page.push_str(&format!(
        "\nPrompts are template files ({}). A file of the same name in \
         `~/.config/dunnock/prompts/` overrides it.\n",
        prompts.join(", ")
    ));
    page
}
