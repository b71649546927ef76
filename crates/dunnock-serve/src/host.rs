//! What only the program around the server knows: settings, folders, kept files, models.

use crate::start::Start;
use dunnock_core::State;
use dunnock_core::ports::BoxFuture;
use dunnock_engine::Ports;
use dunnock_proto::{Config, ConfigPatch, Price, RewindTo, Rule, Scope, Seq, SessionId};
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
    ) -> BoxFuture<'a, Result<(String, Config), Refusal>>;
    /// Before somebody goes on with a session: whether its settings can be kept here, and what has to change of them first
    /// (rules that the person made since).
    fn fits(&self, state: &State) -> Result<Option<ConfigPatch>, Refusal>;
    /// A folder by its real name; the one that the server was started in, if none is given.
    fn folder(&self, given: Option<&str>) -> Result<String, Refusal>;
    /// The files of a session's folder, as git sees them.
    fn files(&self, workspace: &str) -> Vec<String>;
    /// The steps that a session can go back to.
    fn points<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Vec<Point>, Refusal>>;
    /// What a session changed between two steps, given as `3..7`; all of it if not given.
    fn diff<'a>(&'a self, session: &'a SessionId, steps: Option<&'a str>) -> BoxFuture<'a, Result<Changes, Refusal>>;
    /// What a new session in a folder would be like; in the folder that the server was started in, if none is named.
    fn start<'a>(&'a self, workspace: Option<&'a str>) -> BoxFuture<'a, Result<Start, Refusal>>;
    /// Models that can be used now.
    fn models(&self) -> BoxFuture<'_, Vec<String>>;
    /// What a model costs, if it is one that a session in this folder can use, and if that is known.
    fn price(&self, workspace: &str, model: &str) -> Result<Option<Price>, Refusal>;
    /// The budget of a day, in millionths of a US dollar.
    fn day_budget(&self) -> Option<u64>;
    /// Whether these bytes are a picture that models take.
    fn is_picture(&self, bytes: &[u8]) -> bool;
    /// What taking back the last task would do.
    fn undo<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<UndoPreview, Refusal>>;
    /// The rules that hold in every session, each in words: what is allowed, and what is denied.
    fn rules(&self) -> Result<Vec<(Rule, String, bool)>, Refusal>;
    /// Makes a rule for every session that lets something run, or takes one back of either kind.
    fn rule(&self, rule: &Rule, allows: bool, holds: bool) -> Result<(), Refusal>;
    /// A text without what looks like a key.
    fn redacted(&self, text: &str) -> String;
    /// A world for one call of the stateless service, with the folder it works in: nothing of it is kept.
    fn once(&self) -> BoxFuture<'_, Result<Once, Refusal>>;
}

/// What one call of the stateless service works with.
pub struct Once {
    /// A log in memory, a model that calls once, tools that keep to the folder.
    pub world: Ports,
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
    /// Its last event: what a rewind names.
    pub seq: Seq,
    /// What it did.
    pub title: String,
    /// Files that going back there would change, where that was looked at.
    pub files: Option<usize>,
    /// Files that would be left alone, since others changed them.
    pub skipped: Vec<String>,
}

/// What taking back the last task would do, or the last undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UndoPreview {
    /// Where the command `rewind` would go.
    pub to: RewindTo,
    /// What it would take back.
    pub scope: Scope,
    /// In words, with the files that would change.
    pub summary: Vec<String>,
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
