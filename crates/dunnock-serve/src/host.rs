//! What only the program around the server knows: settings, folders, kept files, models.

use dunnock_core::State;
use dunnock_core::ports::Wait;
use dunnock_engine::World;
use dunnock_proto::{Config, ConfigPatch, QuestionId, Rule, Seq, SessionId};
use schemars::JsonSchema;
use serde::Serialize;

/// Why something that was asked for cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such thing.
    NotFound(String),
    /// It is there, and does not fit.
    Conflict(String),
}

/// The program around the server.
pub trait Host: Send + Sync {
    /// Where and how a new session works: its folder by its real name, and its settings.
    fn begin<'a>(
        &'a self,
        workspace: Option<&'a str>,
        set: &'a ConfigPatch,
    ) -> Wait<'a, Result<(String, Config), Refusal>>;
    /// Before somebody goes on with a session: whether its settings can be kept here, and what has to change of them first
    /// (rules that the person made since).
    fn fits(&self, state: &State) -> Result<Option<ConfigPatch>, Refusal>;
    /// The files of a session's folder, as git sees them.
    fn files(&self, workspace: &str) -> Vec<String>;
    /// The steps that a session can go back to.
    fn points<'a>(&'a self, session: &'a SessionId) -> Wait<'a, Result<Vec<Point>, Refusal>>;
    /// What a session changed between two steps, given as `3..7`; all of it if not given.
    fn diff<'a>(&'a self, session: &'a SessionId, steps: Option<&'a str>) -> Wait<'a, Result<Changes, Refusal>>;
    /// What a command that waits would do to the folder, and the rule that "always" would grant, in words.
    fn about(&self, state: &State, question: QuestionId) -> (Option<String>, Option<(Rule, String)>);
    /// A text without what looks like a key.
    fn redacted(&self, text: &str) -> String;
    /// A world for one call of the stateless service, with the folder it works in: nothing of it is kept.
    fn once(&self) -> Wait<'_, Result<Once, Refusal>>;
}

/// What one call of the stateless service works with.
pub struct Once {
    /// A log in memory, a model that calls once, tools that keep to the folder.
    pub world: World,
    /// The folder: fixed when the server was started.
    pub workspace: String,
    /// Settings.
    pub config: Config,
    /// Whatever must live as long.
    pub holds: Box<dyn std::any::Any + Send + Sync>,
}

/// A step that can be gone back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Point {
    /// The step.
    pub step: u32,
    /// Its last fact: what a rewind names.
    pub seq: Seq,
    /// What it did.
    pub title: String,
    /// Files that going back there would change, where that was looked at.
    pub files: Option<usize>,
    /// Files that would be left alone, since others changed them.
    pub kept: Vec<String>,
}

/// What a session changed between two steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changes {
    /// The first of them.
    pub from: u32,
    /// The last.
    pub to: u32,
    /// File by file.
    pub changes: Vec<Change>,
}

/// How a file differs between two steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// In the folder.
    pub path: String,
    /// In a word: `added`, `changed`, `deleted`, `mode` ...
    pub how: String,
    /// As a unified diff, or in a line where it has none.
    pub diff: String,
}
