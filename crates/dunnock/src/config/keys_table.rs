//! All settings: name, type, allowed values, default and meaning.
//!
//! One row is one setting: it declares the field that the program reads as `settings.NAME.value`.

use crate::config::money::Money;
use crate::config::saved_keys::SavedKeys;
use crate::config::setting::{
    FromText, Key, Kind, Names, Origin, Setting, Untrusted, Value, names, settings,
};
use anyhow::Context as _;
use dunnock_mcp::ServerConfig;
use dunnock_model::{Auth, Dialect, Size, ToolSet, Wire};
use dunnock_proto::{Budget, Effort, FileAccess, Isolation, Mode, Price, Sandbox};
use dunnock_tools::Shell;
use dunnock_tui::Notify;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What may change files in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edits {
    ToolsOnly,
    Any,
}

/// What happens to processes in the background when their session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Background {
    End,
    Keep,
}

/// What `dunnock` alone opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    Terminal,
    Web,
}

// Strictest first where an untrusted project may set a stricter value: `Untrusted::Earlier`.
names!(Mode {
    "read" = Self::Read,
    "ask" = Self::Ask,
    "edits" = Self::Edits,
    "auto" = Self::Auto,
    "all" = Self::All,
});
names!(Effort {
    "none" = Self::None,
    "low" = Self::Low,
    "medium" = Self::Medium,
    "high" = Self::High,
    "xhigh" = Self::Xhigh,
    "max" = Self::Max,
});
names!(Edits { "tools-only" = Self::ToolsOnly, "any" = Self::Any });
names!(FileAccess { "workspace" = Self::Workspace, "machine" = Self::Machine });
names!(Isolation { "A" = Self::A, "B" = Self::B, "C" = Self::C });
names!(Background { "end" = Self::End, "keep" = Self::Keep });
names!(Interface { "terminal" = Self::Terminal, "web" = Self::Web });
names!(Notify { "bell" = Self::Bell, "osc9" = Self::Osc9, "off" = Self::Off });
names!(Shell {
    "auto" = Self::Auto,
    "bash" = Self::Bash,
    "pwsh" = Self::Pwsh,
    "powershell" = Self::Powershell,
});
names!(bool { "on" = true, "off" = false });
const THEMES: &[&str] = &["auto", "dark", "light", "16", "mono"];

settings! {
    /// All settings.
    Settings {
        /// By the name of the provider. Contains all built-in providers.
        provider_settings: BTreeMap<String, ProviderSettings>,
        /// The MCP servers of the person and, if the folder is trusted, of the project.
        servers: Vec<ServerConfig>,
        /// What was ignored, and why.
        notes: Vec<String>,
        /// Keys that `dunnock login` saved.
        saved_keys: SavedKeys,
    }
    model: Option<String> = Kind::Model, None, Untrusted::No, "the model, as provider/model";
    effort: Option<Effort> = Kind::Choice(Effort::NAMES), None, Untrusted::No,
        "how hard the model thinks, if it has a setting for it; an effort that it does not know \
         becomes the nearest one; if unset, high for \"run\" and medium in the apps";
    profile: Option<Size> = Kind::Choice(Size::NAMES), None, Untrusted::No,
        "which tools and prompts the model gets; if unset, what \"models check\" found best";
    tool_set: Option<ToolSet> = Kind::Choice(ToolSet::NAMES), None, Untrusted::No,
        "which tools the model is offered; if unset, those that its family was trained on. \
         \"all\" offers every tool";
    approve: Mode = Kind::Choice(Mode::NAMES), Some("auto"), Untrusted::Earlier,
        "when you are asked for approval";
    unattended: bool = Kind::Choice(bool::NAMES), Some("off"), Untrusted::No,
        "whether \"run\" never waits for you: calls that need approval are refused, questions are \
         answered with \"decide yourself\", and work that stops too early continues";
    second_look: bool = Kind::Choice(bool::NAMES), Some("on"), Untrusted::No,
        "whether an unattended model checks its work once more before it ends, if there are no \
         verify commands";
    snapshot: bool = Kind::Choice(bool::NAMES), Some("on"), Untrusted::No,
        "whether an unattended model first learns which system, programs and files are there";
    background: Background = Kind::Choice(Background::NAMES), Some("end"), Untrusted::No,
        "whether processes that the model leaves running end with their session, or are kept; see \
         \"dunnock processes\"";
    sandbox: Sandbox = Kind::Sandbox, Some("auto"), Untrusted::No,
        "whether commands must be sandboxed, and at which level";
    sandbox_level: Isolation = Kind::Choice(Isolation::NAMES), Some("A"), Untrusted::No,
        "the highest sandbox level to use; set it to use a lower one on purpose";
    sandbox_read: Vec<PathBuf> = Kind::List, None, Untrusted::No,
        "folders outside the workspace that every command may read";
    sandbox_write: Vec<PathBuf> = Kind::List, None, Untrusted::No,
        "folders outside the workspace that every command may write to";
    file_access: FileAccess = Kind::Choice(FileAccess::NAMES), Some("workspace"), Untrusted::No,
        "which files the file tools can reach: those of the workspace, or those of the whole \
         machine, which needs sandbox = \"off\"";
    hosts: Vec<String> = Kind::List, None, Untrusted::No,
        "hosts that every command in the sandbox may reach, and web_fetch: pypi.org, \
         *.example.org, 127.0.0.1:3000";
    web_fetch: bool = Kind::Choice(bool::NAMES), Some("off"), Untrusted::No,
        "whether the model may fetch pages of the web; you allow each host";
    mcp_variables: Vec<String> = Kind::List, None, Untrusted::Never,
        "environment variables that MCP servers of a trusted project may get: GITHUB_TOKEN";
    edits: Edits = Kind::Choice(Edits::NAMES), Some("any"), Untrusted::Earlier,
        "whether commands may change files in the workspace, or only edit tools may (except in \
         build folders)";
    interface: Interface = Kind::Choice(Interface::NAMES), Some("terminal"), Untrusted::No,
        "what \"dunnock\" alone opens: the terminal app, or the web app in your browser";
    theme: String = Kind::Choice(THEMES), Some("auto"), Untrusted::No,
        "colours of the terminal app; NO_COLOR overrides it";
    notify: Notify = Kind::Choice(Notify::NAMES), Some("bell"), Untrusted::No,
        "how the terminal app alerts you when it needs you";
    screen_reader: bool = Kind::Choice(bool::NAMES), Some("off"), Untrusted::No,
        "print plain lines in the terminal app and never redraw them";
    deny_paths: Vec<String> = Kind::List, None, Untrusted::No,
        "files in the workspace that tools may not access, nor commands at level A: secrets/**";
    check: Vec<String> = Kind::List, None, Untrusted::No,
        "commands to run after an edit, by file extension; the model sees their output: \"rs: \
         cargo check -q\", \"py: ruff check {path}\"";
    max_steps: u32 = Kind::Count(1, 1_000_000), Some("200"), Untrusted::Lower,
        "maximum model requests per prompt (20 in the terminal app, which then asks whether to \
         continue)";
    verify: Vec<String> = Kind::List, None, Untrusted::No,
        "commands that must pass before a task counts as done";
    verify_tries: u32 = Kind::Count(1, 100), Some("3"), Untrusted::Lower,
        "how many times to try verification";
    verify_timeout: Duration = Kind::Count(1, 86_400), Some("600"), Untrusted::Lower,
        "seconds that one verify command may take";
    baseline: bool = Kind::Choice(bool::NAMES), Some("on"), Untrusted::No,
        "whether to run the verify commands before the work too, on a copy of the files, to report \
         what failed already";
    budget: Option<Budget> = Kind::Budget, None, Untrusted::No,
        "the most that a session may use: 2usd, 200ktok, 10min";
    budget_day: Option<Money> = Kind::Money, None, Untrusted::No,
        "the most that all sessions of a day (UTC) may use together: 20usd";
    price: Vec<(String, Price)> = Kind::Prices, None, Untrusted::No,
        "what models cost, in US dollars per million tokens: \"openai/gpt-5: 1.25 in, 0.125 \
         cached, 10 out\"; openai/* matches all its models";
    window: Option<u64> = Kind::Count(1_000, 100_000_000), None, Untrusted::No,
        "context window of the model, in tokens; the conversation is shortened before it is full";
    shell: Shell = Kind::Choice(Shell::NAMES), Some("auto"), Untrusted::No,
        "the shell that runs commands";
    command_timeout: Duration = Kind::Count(1, 600), Some("120"), Untrusted::No,
        "seconds that a call waits for a command; then the command continues as a process of the \
         session. A command with a timeout of its own is stopped then";
    command_processes: u64 = Kind::Count(10, 1_000_000), Some("1000"), Untrusted::No,
        "processes that a command may have at once";
    command_memory_mb: Option<u64> = Kind::Count(64, 100_000_000), None, Untrusted::No,
        "memory that a command may use, in MB; if unset, three quarters of the machine's";
    output_lines: usize = Kind::Count(10, 100_000), Some("400"), Untrusted::No,
        "lines of a command's output that the model sees";
    output_bytes: usize = Kind::Count(1_000, 10_000_000), Some("16384"), Untrusted::No,
        "bytes of a command's output that the model sees";
    idle_timeout: Duration = Kind::Count(1, 86_400), Some("300"), Untrusted::No,
        "seconds without data after which a model request times out";
    offline_timeout: Duration = Kind::Count(0, 86_400), Some("300"), Untrusted::No,
        "seconds to wait for a connection to the model before the task fails";
    stall_limit: u32 = Kind::Count(0, 1_000_000), Some("10"), Untrusted::No,
        "how many times in a row the model may repeat the same calls with the same results before \
         you are asked; 0 for no limit";
    checkpoints: bool = Kind::Choice(bool::NAMES), Some("on"), Untrusted::No,
        "whether to save the folder's files before and after each change, for undo and rewind";
    checkpoint_mb: u64 = Kind::Count(1, 1_000_000), Some("2048"), Untrusted::No,
        "MB of checkpoints to keep, for all folders together; the oldest are deleted first";
    checkpoint_copy_mb: u64 = Kind::Count(1, 1_000_000), Some("200"), Untrusted::No,
        "MB of new files that a checkpoint copies at once; if there are more, the largest are left out";
    checkpoint_days: u64 = Kind::Count(1, 36_500), Some("30"), Untrusted::No,
        "days to keep checkpoints";
    planner: bool = Kind::Choice(bool::NAMES), Some("off"), Untrusted::No,
        "whether \"run\" uses the planner: the model only plans, and Dunnock executes the plans \
         until the checks pass";
    planner_allow: Vec<String> = Kind::List, None, Untrusted::Never,
        "programs that a planner may use although they are denied by default: curl, rm, ...";
    bridge_dir: PathBuf = Kind::Text, Some(".dunnock/bridge"), Untrusted::No,
        "folder for the bridge's outboxes and inboxes (--dir): below .dunnock, or outside the \
         workspace";
    bridge_timeout: Duration = Kind::Count(1, 600), Some("30"), Untrusted::No,
        "seconds that a command may take in the bridge";
    bridge_output: u64 = Kind::Count(200, 1_000_000), Some("4000"), Untrusted::No,
        "characters of a command's output that go into an outbox";
    bridge_size: u64 = Kind::Count(2_000, 10_000_000), Some("16000"), Untrusted::No,
        "characters that a chat accepts at once; a longer outbox is split into several files";
    data_dir: Option<PathBuf> = Kind::Text, None, Untrusted::No, "where sessions are stored";
}

settings! {
    /// The settings of a provider.
    ProviderSettings {}
    wire: Wire = Kind::Choice(Wire::NAMES), Some("chat"), Untrusted::No, "the API protocol";
    base_url: Option<String> = Kind::Text, None, Untrusted::No,
        "the address to which the wire adds its path (/chat/completions, /responses, /messages, \
         /api/chat); {NAME} stands for an environment variable";
    api_key_env: Option<String> = Kind::Variable, None, Untrusted::No,
        "the environment variable with the API key; without one, a key that \"dunnock login\" saved \
         for this address";
    auth: Option<Auth> = Kind::Choice(Auth::NAMES), None, Untrusted::No,
        "how the key is sent; if unset, as usual for the wire";
    dialect: Option<Dialect> = Kind::Choice(Dialect::NAMES), None, Untrusted::No,
        "how the model writes calls; if unset, what \"models check\" found best";
    window: Option<u64> = Kind::Count(256, 100_000_000), None, Untrusted::No,
        "context window of its models, in tokens; if unset, the server is asked or a known value \
         is used";
    max_output: Option<u64> = Kind::Count(1, 100_000_000), None, Untrusted::No,
        "the longest answer to ask for, in tokens";
    body: Option<String> = Kind::Text, None, Untrusted::No,
        "extra fields for each request, as a JSON object: {\"reasoning_effort\": \"high\"}";
    merge: Option<bool> = Kind::Choice(bool::NAMES), None, Untrusted::No,
        "merge consecutive messages of the same role into one";
    echo: Option<bool> = Kind::Choice(bool::NAMES), None, Untrusted::No,
        "send the model's readable reasoning back to it";
    sealed: Option<bool> = Kind::Choice(bool::NAMES), None, Untrusted::No,
        "ask for encrypted reasoning, and send it back to the model";
    usage: Option<bool> = Kind::Choice(bool::NAMES), None, Untrusted::No,
        "ask for token usage in streams";
    signed: Option<bool> = Kind::Choice(bool::NAMES), None, Untrusted::No,
        "mark calls made by other models as unsigned, as Gemini requires";
    new_limit: Option<bool> = Kind::Choice(bool::NAMES), None, Untrusted::No,
        "send max_output as max_completion_tokens in Chat Completions";
}

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
    Settings::KEYS.iter().for_each(|key| page.push_str(&row(key, "")));
    page.push_str(
        "\nMCP servers have tables of their own, `[mcp.NAME]`: see [the \
         guide](../guides/mcp.md).\n\n## Providers\n\n",
    );
    page.push_str(head);
    ProviderSettings::KEYS.iter().for_each(|key| page.push_str(&row(key, "providers.NAME.")));
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
    page.push_str(&format!(
        "\nReasoning efforts and the fields that set them, by model family, as of {}:\n\n",
        dunnock_model::EFFORTS_OF
    ));
    for (family, source) in dunnock_model::EFFORT_SOURCES {
        page.push_str(&format!("- {family}: {source}.\n"));
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
