//! The settings recorded with a session: limits, approval mode, model, and the tools of a preamble.
//!
//! Invariant: settings are recorded as events, so a new default in a later release never changes an
//! old session.

use crate::{At, Hash, HostRule, HostSet, TOOL_USE, Usage};
use serde::{Deserialize, Deserializer, Serialize};

/// The approval mode: which calls need the person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Read-only: nothing is changed.
    Read,
    /// Every change needs approval.
    Ask,
    /// Edits in the workspace need no approval, commands do.
    Edits,
    /// What the sandbox contains runs without approval; anything beyond it needs approval.
    Auto,
    /// Nothing needs approval; deny rules still apply.
    All,
}

/// How hard the model is asked to think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all, where the model allows it.
    None,
    /// A little.
    Low,
    /// As much as a person who watches will wait for.
    Medium,
    /// Much.
    High,
    /// More than `high`.
    Xhigh,
    /// As much as the model can.
    Max,
}

impl Effort {
    /// All efforts, lowest first.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// Its name, in settings and requests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The effort with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.name() == name)
    }
}

/// The effort that a preamble asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreambleEffort {
    /// The effort that the settings asked for.
    pub wanted: Effort,
    /// The nearest one that the model knows, which is sent.
    pub sent: Effort,
}

/// How well a command is isolated; A is best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Isolation {
    /// All namespaces, Landlock and seccomp.
    A,
    /// No mount namespace.
    B,
    /// Landlock and seccomp only.
    C,
    /// No isolation.
    D,
}

/// How well commands must be isolated before they may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// As well as this machine can.
    Auto,
    /// No isolation.
    Off,
    /// At least this well; otherwise commands do not run.
    Require(Isolation),
}

/// Which files the file tools can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// Those of the workspace.
    Workspace,
    /// Every file that the person can reach, except Dunnock's own and those in `/proc`, `/sys` and
    /// `/dev`; only while the sandbox is off.
    Machine,
}

/// What a call may do to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Only reads: a reader.
    Read,
    /// Changes files of the workspace through our own code: a writer.
    Edit,
    /// Runs a program: a writer.
    Command,
}

/// What happens to a call whose process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// It may be repeated without asking.
    Repeat,
    /// It continues elsewhere (a child session) and is joined again.
    Rejoin,
    /// Its outcome is unknown: this is reported, and it is never repeated without asking.
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
    /// Sets the plan that interfaces show.
    Plan,
    /// Declares the task finished.
    Final,
}

/// What the core must know about a tool. It is recorded with the preamble, so that old calls keep
/// their meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// The name the model calls it by.
    pub name: String,
    /// Whether it reads, edits or runs a command.
    pub class: Class,
    /// What to do with a call after a crash.
    pub recovery: Recovery,
    /// What the tool means to the session, and whether the session itself answers it.
    pub role: Role,
    /// What it starts keeps running after the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_process: bool,
    /// It only waits for such a process: the same result twice does not mean a lack of progress.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polls: bool,
}

impl Tool {
    /// A tool that leaves no process running.
    #[must_use]
    pub fn new(name: &str, class: Class, recovery: Recovery, role: Role) -> Self {
        Self { name: name.into(), class, recovery, role, leaves_process: false, polls: false }
    }
}

/// The rendered system text, tools and instructions: a blob, identified here.
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
    /// Which subset of tools and prompts is used.
    pub profile: String,
    /// The release that rendered it.
    pub version: String,
    /// Every tool that can be called, whether it is offered or not.
    pub tools: Vec<Tool>,
    /// Its length in bytes.
    pub bytes: u64,
    /// The model's context window in tokens, if the server or a table gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The longest answer to request, in tokens, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The reasoning effort, if the model has a setting for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<PreambleEffort>,
    /// Why it was rendered anew.
    pub reason: String,
    /// The first byte that differs from the previous preamble, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_changed: Option<u64>,
    /// What it was made of, so that a change in any of it can be detected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// The user copies requests and answers by hand, so a process waiting for an answer may exit
    /// meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub via_bridge: bool,
    /// How commands are isolated, as it describes that. Sessions of older releases do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Isolation>,
    /// File tools reached files outside the workspace when it was rendered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reaches_machine: bool,
    /// The model was offered to fetch pages of the web.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub web_fetch: bool,
    /// The MCP servers that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// The hosts that commands could reach when it was rendered.
    #[serde(default, skip_serializing_if = "HostSet::is_empty")]
    pub hosts: HostSet,
}

/// A session that plans, acts on the plan and checks the results, until the checks pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Planner {
    /// Its memory file, below `.dunnock/agent-memory`.
    pub file: String,
    /// What earlier runs of the same task wrote there, as this run found it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub memory: String,
    /// Programs that the user allows the planner to use although they are denied by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// How it works through an answer; omitted if it equals the rules of a planner.
    #[serde(default = "StepRules::planner", skip_serializing_if = "StepRules::is_planner")]
    pub steps: StepRules,
}

/// How a session works through the calls of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepRules {
    /// Calls run one after the other. Otherwise calls that only read run side by side.
    pub sequential: bool,
    /// After a call that failed, the calls behind it are not run.
    pub drop_after_failure: bool,
    /// The checks run after every answer, and they decide when the work is finished, not the
    /// model.
    pub check_each_step: bool,
}

impl StepRules {
    /// The rules of a planner.
    pub const PLANNER: Self =
        Self { sequential: true, drop_after_failure: true, check_each_step: true };

    fn planner() -> Self {
        Self::PLANNER
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_planner(&self) -> bool {
        *self == Self::PLANNER
    }
}

impl Config {
    /// How the session works through the calls of an answer.
    #[must_use]
    pub fn steps(&self) -> StepRules {
        self.planner.as_ref().map_or_else(StepRules::default, |planner| planner.steps)
    }
}

/// The model name of a copy-and-paste session.
pub const BRIDGE_MODEL: &str = "bridge/chat";

/// Where a copy-and-paste session keeps its files, and how much of them is shown at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bridge {
    /// The absolute path of the folder with outboxes and inboxes.
    pub folder: String,
    /// Seconds that a command may take.
    pub timeout: u64,
    /// Characters of a command's output to show.
    pub output: u64,
    /// Characters per part of an outbox.
    pub size: u64,
}

/// Something that a preamble is made of: an instruction file, a prompt, the tools, the program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Hash of its text.
    pub hash: Hash,
}

/// A pattern of calls, by parsed words, that is granted or denied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rule {
    /// The tool it applies to.
    pub tool: String,
    /// The first words of every simple command; empty matches any call of the tool.
    pub words: Vec<String>,
    /// What matching calls are granted beyond the sandbox.
    #[serde(default, skip_serializing_if = "Access::is_nothing")]
    pub access: Access,
}

/// What a call is granted beyond the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Access {
    /// The machine's network.
    pub network: bool,
    /// Of the network, only these hosts.
    #[serde(skip_serializing_if = "HostSet::is_empty")]
    pub hosts: HostSet,
    /// Secret files in the workspace.
    pub secrets: bool,
    /// Files in the workspace that other programs run or follow.
    pub protected: bool,
    /// Of these, only the configuration of git repositories.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub git_config: bool,
    /// The whole repository, if the workspace is only a folder of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repository: bool,
    /// The person's own login for the program that runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub login: bool,
    /// Files outside the workspace, for a tool that runs no command.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// The whole machine: no sandbox at all.
    pub unsandboxed: bool,
}

impl Access {
    /// Nothing beyond the sandbox.
    pub const NOTHING: Self = Self {
        network: false,
        hosts: HostSet::NONE,
        secrets: false,
        protected: false,
        git_config: false,
        repository: false,
        login: false,
        outside: false,
        unsandboxed: false,
    };

    /// Whether it grants nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::NOTHING
    }

    /// Both grants combined.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        let network = self.network || more.network;
        Self {
            network,
            hosts: if network { HostSet::NONE } else { self.hosts.and(&more.hosts) },
            secrets: self.secrets || more.secrets,
            protected: self.protected || more.protected,
            git_config: self.git_config || more.git_config,
            repository: self.repository || more.repository,
            login: self.login || more.login,
            outside: self.outside || more.outside,
            unsandboxed: self.unsandboxed || more.unsandboxed,
        }
    }

    /// Whether this includes everything the other grants.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let whole = |wide: bool, part: bool| wide || !part;
        whole(self.network, other.network)
            && (self.network || self.hosts.includes(&other.hosts))
            && whole(self.secrets, other.secrets)
            && whole(self.protected, other.protected)
            && whole(self.git_config || self.protected, other.git_config)
            && whole(self.repository, other.repository)
            && whole(self.login, other.login)
            && whole(self.outside, other.outside)
            && whole(self.unsandboxed, other.unsandboxed)
    }

    /// Its hosts, for people.
    fn host_names(&self) -> String {
        let name = |rule: &HostRule| match rule.is_private() {
            true => format!("{rule} (not public)"),
            false => rule.to_string(),
        };
        self.hosts.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// What it grants, one phrase each; empty if nothing.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        let hosts =
            (!self.hosts.is_empty()).then(|| format!("connections to {}", self.host_names()));
        let all = [
            (self.unsandboxed, "everything your user account can do"),
            (self.network, "full network access, including services on this machine"),
        ];
        let more = [
            (self.secrets, "read access to secret files in this folder (.env)"),
            (
                self.protected,
                "write access to protected files in this folder (.git/config, hooks, .vscode, ...)",
            ),
            (self.git_config && !self.protected, "write access to .git/config, not to hooks"),
            (self.repository, "write access to the whole repository, not only to this folder"),
            (self.login, "your own login for this program (details under \"effect\")"),
            (self.outside, "access to files outside this folder"),
        ];
        let words = |(on, words): (bool, &str)| on.then(|| words.to_owned());
        all.into_iter()
            .filter_map(words)
            .chain(hosts)
            .chain(more.into_iter().filter_map(words))
            .collect()
    }
}

impl Rule {
    /// Whether it opens hosts for every command in the sandbox, and nothing else.
    #[must_use]
    pub fn opens_hosts(&self) -> bool {
        let only = Access { hosts: self.access.hosts.clone(), ..Access::NOTHING };
        self.tool == "shell" && self.words.is_empty() && !only.is_nothing() && self.access == only
    }

    /// When the rule applies, for people who are about to create it.
    #[must_use]
    pub fn note(&self) -> &'static str {
        match self.opens_hosts() {
            true => {
                "It applies to every command in the sandbox and every page whose hosts are known and \
                 are all among these."
            }
            false if self.tool == TOOL_USE => {
                "It applies whatever the arguments are, until the server changes the description of the \
                 tool."
            }
            false => {
                "A rule for commands applies only if every command in the line starts with these \
                 words and adds no options, variables or redirections."
            }
        }
    }

    /// The rule as text for people: what it covers, and what it grants.
    #[must_use]
    pub fn words(&self) -> String {
        if self.opens_hosts() {
            return format!(
                "commands in the sandbox and pages that need only {}",
                self.access.host_names()
            );
        }
        let covers = match self.words.as_slice() {
            [] => format!("every call to {}", self.tool),
            [tool, ..] if self.tool == TOOL_USE => match tool.strip_suffix("/*") {
                Some(server) => format!("the tools of the MCP server {server}"),
                None => format!("the MCP tool {tool}, as long as its description does not change"),
            },
            _ => {
                format!("{}commands that start with \"{}\"", kind(&self.tool), self.words.join(" "))
            }
        };
        let access = self.access.list();
        if access.is_empty() { covers } else { format!("{covers}, with {}", access.join("; ")) }
    }

    /// The pattern of the calls that match it.
    #[must_use]
    pub fn shape(&self) -> String {
        if self.opens_hosts() {
            format!("hosts {}", self.access.hosts)
        } else if self.words.is_empty() {
            self.tool.clone()
        } else if let (TOOL_USE, Some(tool)) = (self.tool.as_str(), self.words.first()) {
            // The hash of the tool's definition says nothing to people.
            format!("{TOOL_USE} {tool}")
        } else {
            format!("{} {}", self.tool, self.words.join(" "))
        }
    }
}

/// The tool of a command rule, unless it is the usual one.
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

/// Limits on what a session may use; an absent field means no limit.
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

/// When work has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Deadline {
    /// When it was set.
    pub from: At,
    /// The end.
    pub until: At,
}

impl Deadline {
    /// How much of the time has passed, from 0 to 100.
    #[must_use]
    pub fn percent(self, at: At) -> u8 {
        let all = self.until.0.saturating_sub(self.from.0).max(1);
        let passed = at.0.saturating_sub(self.from.0).clamp(0, all);
        u8::try_from(passed.saturating_mul(100) / all).unwrap_or(100)
    }
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
    /// For tokens sent that the server writes to its cache.
    #[serde(default)]
    pub written: u64,
}

impl Config {
    /// Whether file tools reach files outside the workspace.
    #[must_use]
    pub fn reaches_machine(&self) -> bool {
        self.file_access == FileAccess::Machine && self.sandbox == Sandbox::Off
    }
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
        cost.iter()
            .fold(0u64, |sum, (n, price)| sum.saturating_add(n.saturating_mul(*price)))
            .div_ceil(1_000_000)
    }
}

/// Treats a key with the value `null` as present: otherwise "set to nothing" would read back as
/// "not set".
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
    T::deserialize(d).map(Some)
}

macro_rules! config {
    ($($(#[doc = $doc:literal])* $field:ident: $type:ty = $default:expr;)*) => {
        /// All settings of a session. The defaults are for tests and interfaces; a log records the
        /// values. Only a setting that is newer than a log is missing there, and its default is
        /// what its absence meant.
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
            /// These settings with `patch` applied.
            #[must_use]
            pub fn with(&self, patch: &ConfigPatch) -> Self {
                Self { $($field: patch.$field.clone().unwrap_or_else(|| self.$field.clone()),)* }
            }
        }
    };
}

/// Every setting of [`Config`], all optional; a setting that may be `null` there may be set to
/// `null` here.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for ConfigPatch {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ConfigPatch".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = Config::json_schema(generator);
        let fields = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut);
        for field in fields
            .into_iter()
            .flat_map(|fields| fields.values_mut())
            .filter_map(|f| f.as_object_mut())
        {
            field.remove("default");
        }
        schema.insert("description".into(), "Some settings to change.".into());
        schema
    }
}

config! {
    /// `provider/model` in use.
    model: String = String::new();
    /// How hard the model is asked to think; if `null`, the default of this release.
    effort: Option<Effort> = None;
    /// Which subset of tools and prompts; empty means whichever the model's check found best.
    profile: String = String::new();
    /// Which tools the model is offered; empty means those that it was trained on.
    tool_set: String = String::new();
    /// The approval mode: which calls need the person's approval.
    mode: Mode = Mode::Auto;
    /// Whether somebody can answer: limits and budgets then become questions instead of ending the
    /// work.
    attended: bool = false;
    /// Whether nothing waits for a person: what would need approval is refused, questions are
    /// answered by the harness, and an answer that ends the work too early is sent back.
    unattended: bool = false;
    /// When the work has to end.
    deadline: Option<Deadline> = None;
    /// Whether an unattended model checks its work once more when it first says that it is done.
    second_look: bool = false;
    /// Whether an unattended model first learns what is on the machine and in the folder.
    snapshot: bool = false;
    /// The maximum number of model requests for one prompt.
    max_steps: u32 = 200;
    /// Commands that must pass before the work counts as done.
    verify: Vec<String> = Vec::new();
    /// How often verification may fail.
    verify_tries: u32 = 3;
    /// Limits on usage.
    budget: Budget = Budget::default();
    /// What the model costs, if known.
    price: Option<Price> = None;
    /// The model's context window in tokens, if known.
    window: Option<u64> = None;
    /// Tokens to reserve for an answer.
    max_output: u64 = 8_000;
    /// Percent of the window at which the conversation is compacted.
    compact_at: u8 = 80;
    /// How many of the last steps compaction leaves alone.
    compact_keep: u8 = 4;
    /// Bytes that count as one token if the provider does not say: a setting, so that a better
    /// estimate changes no old log.
    token_bytes: u64 = 4;
    /// Tokens that count for one image.
    picture_tokens: u64 = 1_500;
    /// How many previous answers a new one is compared with, to detect a model that is stuck.
    stall_window: u8 = 6;
    /// How many answers in a row may repeat each other before the person is asked; 0 for no limit.
    stall_limit: u32 = 10;
    /// A call that succeeds after this many milliseconds may be waiting for something; repeating it
    /// is not a stall.
    waiting_ms: u64 = 1_000;
    /// Characters of the first prompt that become the title.
    title_chars: u16 = 80;
    /// Whether the checks are also run before the work, on a copy of the files.
    baseline: bool = false;
    /// Whether the workspace's state is saved after each change.
    checkpoints: bool = false;
    /// How well commands must be isolated.
    sandbox: Sandbox = Sandbox::Auto;
    /// Which files the file tools can reach.
    file_access: FileAccess = FileAccess::Workspace;
    /// Hosts that every command in the sandbox may reach, and from which pages may be fetched.
    hosts: HostSet = HostSet::NONE;
    /// Whether the model may fetch pages of the web; the person allows each host.
    web_fetch: bool = false;
    /// The names of the MCP servers whose tools the model may find and use.
    servers: Vec<String> = Vec::new();
    /// Rules for calls that are always denied, whatever else allows them.
    deny: Vec<Rule> = Vec::new();
    /// Rules for calls that are always allowed, saved by the person earlier.
    allow: Vec<Rule> = Vec::new();
    /// The planner's settings, if this is a planner session.
    planner: Option<Planner> = None;
    /// Where its copy-and-paste files are, if it may use a chat that way.
    bridge: Option<Bridge> = None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_set_to_nothing_is_not_a_setting_left_alone() {
        let patch =
            ConfigPatch { price: Some(None), mode: Some(Mode::Ask), ..ConfigPatch::default() };
        let text = serde_json::to_string(&patch).unwrap();
        assert_eq!(text, r#"{"mode":"ask","price":null}"#);
        assert_eq!(serde_json::from_str::<ConfigPatch>(&text).unwrap(), patch);
    }
}
