//! What a session is told once and keeps: limits, approval mode, model, the tools of a preamble.
//!
//! Invariant: these are recorded as events, so a new default of a later release never changes an old session.

use crate::{Hash, Usage};
use serde::{Deserialize, Deserializer, Serialize};

/// Who is asked, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Look, change nothing.
    Read,
    /// Whatever changes something asks.
    Ask,
    /// Edits in the workspace do not ask, commands do.
    Edits,
    /// What the box contains runs; what would leave it asks.
    Auto,
    /// Nothing asks; what is denied stays denied.
    All,
}

/// How well a command is confined, A best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Isolation {
    /// All namespaces, Landlock and seccomp.
    A,
    /// No mount namespace.
    B,
    /// Landlock and seccomp only.
    C,
    /// Not at all.
    D,
}

/// How well commands must be confined before they run at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// As well as this machine can.
    Auto,
    /// Not at all.
    Off,
    /// At least this well, or not at all.
    Require(Isolation),
}

/// What a call may do to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Only looks: a reader.
    Read,
    /// Changes files of the workspace through our own code: a writer.
    Edit,
    /// Runs a program: a writer.
    Command,
}

/// What becomes of a call that was started by a process that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// It may run again by itself.
    Repeat,
    /// It goes on elsewhere (a child session) and is joined again.
    Rejoin,
    /// Nobody knows whether it happened: told, never run again unasked.
    Unknown,
}

/// What a tool means to the session itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Work in the workspace, run by the driver.
    Work,
    /// Asks the person; the answer is the result.
    AskPerson,
    /// Sets the list of steps that doors show.
    Plan,
    /// Says that the task is finished.
    Final,
}

/// What the core must know of a tool; recorded with the preamble, so that old calls keep their meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// As the model calls it.
    pub name: String,
    /// Reader or writer, edit or command.
    pub class: Class,
    /// After a crash.
    pub recovery: Recovery,
    /// Whether the session itself answers it.
    pub role: Role,
    /// What it starts keeps running after the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_process: bool,
    /// It only waits for such a process: the same result twice is no lack of progress.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polls: bool,
}

impl Tool {
    /// A tool that leaves nothing running.
    #[must_use]
    pub fn new(name: &str, class: Class, recovery: Recovery, role: Role) -> Self {
        Self { name: name.into(), class, recovery, role, leaves_process: false, polls: false }
    }
}

/// System text, tools and instructions as rendered: a blob, named here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Preamble {
    /// The blob with the exact bytes.
    pub hash: Hash,
    /// `provider/model`.
    pub model: String,
    /// How the model is reached.
    pub wire: String,
    /// How calls are written.
    pub dialect: String,
    /// Which subset of tools and prompts.
    pub profile: String,
    /// The release that rendered it.
    pub version: String,
    /// Every tool it offers.
    pub tools: Vec<Tool>,
    /// Its length in bytes.
    pub bytes: u64,
    /// Tokens that the model holds, where the server or a table says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The longest answer that is asked for, in tokens, where one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// Why there is a new one.
    pub reason: String,
    /// The first byte that differs from the preamble before, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_changed: Option<u64>,
    /// What it was made of, so that a change of any of it can be noticed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// A person carries requests and answers: whoever waits for one may leave meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub via_bridge: bool,
}

/// A session that plans, acts on the plan and looks at what came of it, until the checks pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Planner {
    /// The file of its memory, below `.dunnock/agent-memory`.
    pub file: String,
    /// What earlier runs of the same task left there, as this one found it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub memory: String,
    /// Programs that the person lets a planner use although it is denied them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
}

/// The model of a conversation that a person carries.
pub const BRIDGE_MODEL: &str = "bridge/chat";

/// Where a carried conversation lies, and how much of it is shown at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bridge {
    /// The folder of outboxes and inboxes, absolute.
    pub folder: String,
    /// Seconds that a command may take.
    pub timeout: u64,
    /// Characters of a command's output that are shown.
    pub output: u64,
    /// Characters of one part of an outbox.
    pub size: u64,
}

/// Something that a preamble is made of: a file of instructions, a prompt, the tools, the program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// What.
    pub name: String,
    /// Of its text.
    pub hash: Hash,
}

/// A shape of call, by parsed words: granted or denied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rule {
    /// The tool it speaks of.
    pub tool: String,
    /// The first words of every simple command; empty matches any call of the tool.
    pub words: Vec<String>,
    /// What calls of this shape are granted beyond the sandbox.
    #[serde(default, skip_serializing_if = "Access::is_nothing")]
    pub access: Access,
}

/// What a call is granted beyond the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Access {
    /// The network of the machine.
    pub network: bool,
    /// Secret files of the workspace.
    pub secrets: bool,
    /// Files of the workspace that other programs act on.
    pub protected: bool,
    /// All of the machine: no sandbox at all.
    pub unsandboxed: bool,
}

impl Access {
    /// Nothing beyond the sandbox.
    pub const NOTHING: Self = Self { network: false, secrets: false, protected: false, unsandboxed: false };

    /// Whether it grants nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::NOTHING
    }

    /// This and that.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self {
            network: self.network || more.network,
            secrets: self.secrets || more.secrets,
            protected: self.protected || more.protected,
            unsandboxed: self.unsandboxed || more.unsandboxed,
        }
    }

    /// Whether this includes all of the other.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.and(other) == self
    }

    /// What it grants, one phrase each; none for nothing.
    pub fn list(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.unsandboxed, "everything your user account can do"),
            (self.network, "full network access, including services on this machine"),
            (self.secrets, "read access to secret files in this folder (.env)"),
            (self.protected, "write access to protected files in this folder (.git/config, hooks, .vscode, ...)"),
        ];
        all.into_iter().filter(|(on, _)| *on).map(|(_, words)| words)
    }
}

impl Rule {
    /// The rule as people read it: what it covers, and what it grants.
    #[must_use]
    pub fn words(&self) -> String {
        let covers = match self.words.is_empty() {
            true => format!("every call of {}", self.tool),
            false => format!("{}commands that start with \"{}\"", kind(&self.tool), self.words.join(" ")),
        };
        let access: Vec<&str> = self.access.list().collect();
        if access.is_empty() { covers } else { format!("{covers}, with {}", access.join("; ")) }
    }

    /// The shape of the calls that match it.
    #[must_use]
    pub fn shape(&self) -> String {
        if self.words.is_empty() { self.tool.clone() } else { format!("{} {}", self.tool, self.words.join(" ")) }
    }
}

/// The tool of a rule for commands, where it is not the usual one.
fn kind(tool: &str) -> String {
    if tool == "shell" { String::new() } else { format!("{tool} ") }
}

impl Isolation {
    /// What the level means, for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::A => "all protections",
            Self::B => "no private file system",
            Self::C => "file rules and system call filter only",
            Self::D => "none",
        }
    }
}

/// Bounds on what a session may use; each absent one is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Budget {
    /// Tokens in and out.
    pub tokens: Option<u64>,
    /// Millionths of a US dollar.
    pub micros: Option<u64>,
    /// Milliseconds of model and tool time.
    pub ms: Option<u64>,
}

/// What a model costs, in millionths of a US dollar per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Price {
    /// For tokens sent.
    pub input: u64,
    /// For tokens sent that the server had cached.
    pub cached: u64,
    /// For tokens received.
    pub output: u64,
    /// For tokens sent that the server puts into its cache.
    #[serde(default)]
    pub written: u64,
}

impl Price {
    /// What a request cost, rounded up.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> u64 {
        let fresh = usage.input.saturating_sub(usage.cached).saturating_sub(usage.written);
        let cost = [
            (fresh, self.input),
            (usage.cached, self.cached),
            (usage.written, self.written),
            (usage.output, self.output),
        ];
        cost.iter().fold(0u64, |sum, (n, price)| sum.saturating_add(n.saturating_mul(*price))).div_ceil(1_000_000)
    }
}

/// A key that is there counts, also when its value is `null`: otherwise "set to nothing" would read back as "not set".
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
    T::deserialize(d).map(Some)
}

macro_rules! config {
    ($($(#[doc = $doc:literal])* $field:ident: $type:ty = $default:expr;)*) => {
        /// The settings of a session, whole. Its defaults serve tests and doors; a log holds the values. Only a setting
        /// that is younger than a log is missing there, and its default is what its absence meant.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(default)]
        pub struct Config { $($(#[doc = $doc])* pub $field: $type,)* }

        /// Some settings to change.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct ConfigPatch {
            $($(#[doc = $doc])*
            #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
            pub $field: Option<$type>,)*
        }

        impl Default for Config {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
        impl Config {
            /// These settings with `patch` laid over them.
            #[must_use]
            pub fn with(&self, patch: &ConfigPatch) -> Self {
                Self { $($field: patch.$field.clone().unwrap_or_else(|| self.$field.clone()),)* }
            }
        }
    };
}

/// Every setting of the whole, each of which may be missing; what may be nothing there may be set to nothing here.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for ConfigPatch {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ConfigPatch".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = Config::json_schema(generator);
        let fields = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut);
        for field in fields.into_iter().flat_map(|fields| fields.values_mut()).filter_map(|f| f.as_object_mut()) {
            field.remove("default");
        }
        schema.insert("description".into(), "Some settings to change.".into());
        schema
    }
}

config! {
    /// `provider/model` in use.
    model: String = String::new();
    /// Which subset of tools and prompts; empty: as the model's check found best.
    profile: String = String::new();
    /// Who is asked, and for what.
    mode: Mode = Mode::Auto;
    /// Somebody can answer: limits and budgets become questions instead of ends.
    attended: bool = false;
    /// Model requests for one prompt.
    max_steps: u32 = 200;
    /// Commands that must pass before the work counts as done.
    verify: Vec<String> = Vec::new();
    /// How often verification may fail.
    verify_tries: u32 = 3;
    /// Bounds on use.
    budget: Budget = Budget::default();
    /// What the model costs, if known.
    price: Option<Price> = None;
    /// Tokens that the model holds, if known.
    window: Option<u64> = None;
    /// Tokens to reserve for an answer.
    max_output: u64 = 8_000;
    /// Percent of the window at which the conversation is compacted.
    compact_at: u8 = 80;
    /// How many of the last steps compaction leaves alone.
    compact_keep: u8 = 4;
    /// Bytes that count as one token where the provider does not say: a setting, so that a better guess changes no old log.
    token_bytes: u64 = 4;
    /// Tokens that count for one picture.
    picture_tokens: u64 = 1_500;
    /// How many of the last answers a new one is compared with, to notice a model that is stuck.
    stall_window: u8 = 6;
    /// Characters of the first prompt that become the title.
    title_chars: u16 = 80;
    /// Whether the checks are run before the work, too, on a copy of the files.
    baseline: bool = false;
    /// Whether the workspace's state is kept after each change.
    checkpoints: bool = false;
    /// How well commands must be confined.
    sandbox: Sandbox = Sandbox::Auto;
    /// Never, whatever else allows it.
    deny: Vec<Rule> = Vec::new();
    /// Always, by rules that the person made before.
    allow: Vec<Rule> = Vec::new();
    /// Whether it is a planner's.
    planner: Option<Planner> = None;
    /// Where its conversation lies, if it may be carried.
    bridge: Option<Bridge> = None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_set_to_nothing_is_not_a_setting_left_alone() {
        let patch = ConfigPatch { price: Some(None), mode: Some(Mode::Ask), ..ConfigPatch::default() };
        let text = serde_json::to_string(&patch).unwrap();
        assert_eq!(text, r#"{"mode":"ask","price":null}"#);
        assert_eq!(serde_json::from_str::<ConfigPatch>(&text).unwrap(), patch);
    }
}
