//! What only the surrounding program knows: settings, folders, checkpoints, models.

use dunnock_core::State;
use dunnock_engine::Ports;
use dunnock_ports::BoxFuture;
use dunnock_proto::{
    Config, ConfigPatch, Effort, Isolation, Mode, Price, RewindTo, Rule, Scope, Seq, SessionId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a request cannot be fulfilled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It does not exist.
    NotFound(String),
    /// It exists, but conflicts with the current state.
    Conflict(String),
}

/// The surrounding program.
pub trait Host: Send + Sync {
    /// The canonical folder and the settings of a new session.
    fn begin<'a>(
        &'a self,
        workspace: Option<&'a str>,
        set: &'a ConfigPatch,
    ) -> BoxFuture<'a, Result<(String, Config), Refusal>>;
    /// Before a session continues: whether its settings work here, and what has to change first
    /// (rules that the user added since).
    fn settings_to_adapt(&self, state: &State) -> Result<Option<ConfigPatch>, Refusal>;
    /// The canonical path of a folder; by default the one in which the server was started.
    fn folder(&self, given: Option<&str>) -> Result<String, Refusal>;
    /// The files in a session's folder, as git sees them.
    fn files(&self, workspace: &str) -> Vec<String>;
    /// The steps that a session can be rewound to.
    fn points<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Vec<Point>, Refusal>>;
    /// What a session changed between two steps, given as `3..7`; all of it by default.
    fn diff<'a>(
        &'a self,
        session: &'a SessionId,
        steps: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Changes, Refusal>>;
    /// The defaults for a new session in a folder; by default the one in which the server was
    /// started.
    fn start<'a>(&'a self, workspace: Option<&'a str>) -> BoxFuture<'a, Result<Start, Refusal>>;
    /// Models that can be used now.
    fn models(&self) -> BoxFuture<'_, Vec<String>>;
    /// The providers that a model can be set up with.
    fn providers(&self) -> BoxFuture<'_, Result<Vec<ProviderRow>, Refusal>>;
    /// The models of a provider, with this key or the one it has.
    fn provider_models<'a>(
        &'a self,
        provider: &'a str,
        key: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Result<Vec<String>, SetUpError>, Refusal>>;
    /// Sends one short request to a model. If it answers, saves the key and uses the model from now
    /// on. Dropped before the answer, it saves nothing.
    fn use_model<'a>(
        &'a self,
        provider: &'a str,
        key: Option<&'a str>,
        model: &'a str,
    ) -> BoxFuture<'a, Result<Result<(), SetUpError>, Refusal>>;
    /// The price of a model, if known. Fails if a session in this folder cannot use the model.
    fn price(&self, workspace: &str, model: &str) -> Result<Option<Price>, Refusal>;
    /// The daily budget in millionths of a US dollar.
    fn day_budget(&self) -> Option<u64>;
    /// Whether these bytes are an image that models accept.
    fn is_picture(&self, bytes: &[u8]) -> bool;
    /// What undoing the last task would do.
    fn undo<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<UndoPreview, Refusal>>;
    /// The MCP servers of a folder.
    fn servers(&self, workspace: Option<&str>) -> Result<Vec<McpServerRow>, Refusal>;
    /// The saved rules.
    fn rules(&self) -> Result<Vec<RuleRow>, Refusal>;
    /// Saves a rule that allows something, or removes a saved rule of either kind.
    fn rule(&self, set: &SetRule) -> Result<(), Refusal>;
    /// The text with anything that looks like a key removed.
    fn redacted(&self, text: &str) -> String;
    /// Ports, folder and settings for one call of the stateless service; nothing of it is stored.
    fn once(&self) -> BoxFuture<'_, Result<Once, Refusal>>;
}

/// What one call of the stateless service needs.
pub struct Once {
    /// A log in memory, a model that makes one call, tools confined to the folder.
    pub ports: Ports,
    /// The folder, fixed when the server was started.
    pub workspace: String,
    /// The session's settings.
    pub config: Config,
    /// Whatever must stay alive during the call.
    pub holds: Box<dyn std::any::Any + Send + Sync>,
}

/// A step that a session can be rewound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Point {
    /// The step's number.
    pub step: u32,
    /// Its last event, which `rewind` refers to.
    pub seq: Seq,
    /// What it did.
    pub title: String,
    /// Number of files that rewinding would change, if that was determined.
    pub files: Option<usize>,
    /// Files that would be left alone, because others changed them.
    pub skipped: Vec<String>,
}

/// What undoing the last task, or the last undo, would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UndoPreview {
    /// The target for the `rewind` command.
    pub to: RewindTo,
    /// What it would undo.
    pub scope: Scope,
    /// A description, with the files that would change.
    pub summary: Vec<String>,
}

/// What a session changed between two steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changes {
    /// The first step.
    pub from: u32,
    /// The last step.
    pub to: u32,
    /// One entry per file.
    pub changes: Vec<Change>,
}

/// How a file differs between two steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// Path in the folder.
    pub path: String,
    /// One of `added`, `changed`, `deleted`, `mode` ...
    pub how: String,
    /// A unified diff, or one line if there is none.
    pub diff: String,
}

/// A provider that a model can be set up with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProviderRow {
    /// As in `provider/model`.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Where its key is sent.
    pub address: String,
    /// The state of its key.
    pub key: ProviderKey,
    /// What to know before a key is typed.
    pub warning: Option<String>,
}

/// The state of a provider's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKey {
    /// There is none yet.
    Missing,
    /// One is saved.
    Saved,
    /// It is in an environment variable, which is used instead of a saved key.
    Variable,
    /// It needs none.
    NotNeeded,
}

/// Why a key or a model cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SetUpError {
    /// What happened.
    pub error: String,
    /// Whether another key may help.
    pub needs_key: bool,
}

/// The defaults for a new session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Start {
    /// The server's version.
    pub version: String,
    /// The folder's full path.
    pub workspace: String,
    /// The folder, shortened for display.
    pub folder: String,
    /// Its git branch, if it is a repository.
    pub branch: Option<String>,
    /// How commands are confined here.
    pub isolation: Isolation,
    /// The model that would be used, if any.
    pub model: Option<String>,
    /// The approval mode.
    pub mode: Mode,
    /// How hard the model is asked to think.
    pub effort: Effort,
    /// Notes for the user about the folder.
    pub notes: Vec<String>,
    /// What to do if there is no model.
    pub missing: Vec<String>,
    /// The user's own commands.
    pub commands: Vec<CustomCommand>,
}

/// A user-defined command, from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CustomCommand {
    /// The name without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The prompt that is sent; `$ARGS` stands for the text after the command.
    pub text: String,
}

/// An MCP server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct McpServerRow {
    /// Its name.
    pub name: String,
    /// The file of the project that describes it; absent if it is the person's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_file: Option<String>,
    /// Its command or its address.
    pub target: String,
    /// What it is granted.
    pub access: String,
    /// How many tools it has; absent if that is not known yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<u64>,
    /// Its state in each session that is driven now.
    pub sessions: Vec<McpServerState>,
}

/// How an MCP server is in a session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct McpServerState {
    /// The session.
    pub session: String,
    /// Its state, with the last error.
    pub state: String,
}

/// A saved rule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuleRow {
    /// The rule itself.
    pub rule: Rule,
    /// A description.
    pub words: String,
    /// Where it applies, for people: "in all projects", "in ~/webshop".
    pub place: String,
    /// The only folder in which it applies, with the folders in it; absent if it applies in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Whether it allows or denies.
    pub allow: bool,
}

/// A rule to add or remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetRule {
    /// The rule itself.
    pub rule: Rule,
    /// Whether the rule allows or denies. Only rules that allow can be added here.
    pub allow: bool,
    /// True adds the rule, false removes it.
    pub active: bool,
    /// The only folder in which it applies, with the folders in it; if left out, it applies in all.
    #[serde(default)]
    pub project: Option<String>,
}
