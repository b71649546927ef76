//! Messages between the app and the program that hosts it.
//!
//! The session itself uses the connection: [`Frame`]s arrive and [`CommandRequest`]s leave,
//! whichever process drives it. The rest is what an interface needs and a session does not know:
//! other sessions, files, models, rules.

use crate::pager::CallText;
use dunnock_proto::{CallId, CommandRequest, Frame, Rule, Scope, Seq, SessionId};
use std::fmt;

/// What the app asks of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRequest {
    /// Send this command to the session.
    Command(CommandRequest),
    /// Start a new session with this prompt.
    Begin {
        /// The prompt.
        text: String,
        /// Paths of the images attached to it.
        pictures: Vec<String>,
        /// The approval mode, if it was chosen before the session existed.
        mode: Option<dunnock_proto::Mode>,
    },
    /// Send another prompt, with images.
    Pictures {
        /// The prompt.
        text: String,
        /// Paths of the images.
        pictures: Vec<String>,
    },
    /// Leave this session; the next prompt starts a new one.
    New,
    /// Continue another session.
    Open(SessionId),
    /// Continue the session whose id starts with this.
    Find(String),
    /// Fork the session at this step, or at its current end.
    Fork(Option<u32>),
    /// List the sessions of all folders, or those that contain these words.
    Sessions(String),
    /// List the files of the workspace.
    Files,
    /// List the available models.
    Models,
    /// Switch to this model.
    Model(String),
    /// Ask the model for this effort.
    Effort(dunnock_proto::Effort),
    /// List the steps to which the session can be rewound.
    Points,
    /// Show as a diff what a rewind to this step would change.
    DiffFrom(u32),
    /// Rewind the session.
    Rewind {
        /// To just after this event.
        to: Seq,
        /// Files, conversation or both.
        scope: Scope,
    },
    /// Undo the last task, or the last undo.
    Undo,
    /// Show what the session changed.
    Diff,
    /// Load the whole output, or the diff, of a call that has ended.
    CallText(CallId),
    /// Show what the next request consists of.
    Context,
    /// Show the MCP servers.
    Servers,
    /// Show tokens and cost.
    Cost,
    /// Show the saved rules.
    Rules,
    /// Save a rule.
    Grant(Rule, RuleScope),
    /// Export the session to a file.
    Export,
    /// Read an image from the clipboard.
    Clipboard,
    /// Run the user's own shell command.
    Shell(String),
    /// Stop the user's shell command.
    StopShell,
    /// A step of setting up a model.
    Login(LoginRequest),
}

/// Where a saved rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleScope {
    /// In the folder of the session, and in the folders in it.
    Project,
    /// In all folders.
    AllProjects,
}

/// What was detected when the app started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Welcome {
    /// Version of this release.
    pub version: String,
    /// The folder, in its display form (`~/webshop`).
    pub folder: String,
    /// Its git branch, if it is a repository.
    pub branch: Option<String>,
    /// The sandbox level, such as `A`; none until it has been detected.
    pub level: Option<char>,
    /// The model in use, if there is one.
    pub model: Option<String>,
    /// What was found, one item per line.
    pub found: Vec<String>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// What to do when there is no model.
    pub missing: Vec<String>,
    /// The approval mode.
    pub mode: Option<dunnock_proto::Mode>,
}

/// A slash command that the user defined in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// The name, without the slash.
    pub name: String,
    /// What it does.
    pub about: String,
    /// The prompt it sends; `$ARGS` stands for the text after the command.
    pub text: String,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// The first words of its first prompt.
    pub title: String,
    /// Its folder.
    pub workspace: String,
    /// Its status, in one word.
    pub status: String,
    /// How long ago it changed.
    pub age: String,
    /// The matched words in their context.
    pub excerpt: String,
}

/// A step to which the session can be rewound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindPoint {
    /// Its number.
    pub step: u32,
    /// Its last event.
    pub seq: Seq,
    /// What happened.
    pub title: String,
    /// How many files would change, if known.
    pub files: Option<usize>,
    /// Files that are not restored because they were changed outside the session.
    pub kept: Vec<String>,
}

/// What the host reports to the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostEvent {
    /// A frame of the session.
    Frame(Frame),
    /// What was detected at the start. Sent again when more is known.
    Welcome(Welcome),
    /// The user's own slash commands.
    Own(Vec<Own>),
    /// A session was opened. Its events follow; those up to `upto` already exist.
    Opened {
        /// Which session.
        id: SessionId,
        /// The number of events so far.
        upto: Seq,
        /// How long ago it last changed, if it is not new.
        resumed: Option<String>,
        /// The unsent text that was saved for it.
        draft: Option<String>,
    },
    /// No session is open.
    Closed,
    /// Sessions found for this search.
    Sessions(String, Vec<SessionRow>),
    /// The files of the workspace.
    Files(Vec<String>),
    /// The available models.
    Models(Vec<String>),
    /// The steps to which the session can be rewound.
    Points(Vec<RewindPoint>),
    /// Lines to show.
    Text(Vec<String>),
    /// A unified diff to show.
    Diff(String),
    /// The diff of a call whose end follows.
    CallDiff(CallId, String),
    /// The text of a call for the pager, or why it cannot be shown.
    CallText(CallId, Result<CallText, String>),
    /// The git branch has changed.
    Branch(Option<String>),
    /// A request failed, for this reason.
    Wrong(String),
    /// A first prompt could not be sent; its text returns to the input field.
    NotSent(String),
    /// The path of an image from the clipboard.
    Picture(String),
    /// Output of the user's shell command.
    Shell(String),
    /// The user's shell command ended, with this status.
    ShellEnded(String),
    /// The connection to the session is lost, for this reason.
    Lost(String),
    /// A step of setting up a model.
    Login(LoginEvent),
}

/// A key that was typed. It cannot be printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TypedKey(String);

impl TypedKey {
    /// The key itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for TypedKey {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for TypedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// Whether a provider needs a key from the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginKey {
    /// It has none yet.
    Missing,
    /// One is saved.
    Saved,
    /// It is in this environment variable.
    Variable(String),
    /// It needs none.
    NotNeeded,
}

/// A provider to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginProvider {
    /// As in `provider/model`.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Where its key is sent.
    pub address: String,
    /// Whether it needs a key.
    pub key: LoginKey,
    /// What to know before the key is typed.
    pub warning: Option<String>,
}

/// Why a key or a model cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginFault {
    /// What happened.
    pub words: String,
    /// Another key may help.
    pub needs_key: bool,
}

/// What the app asks of its host to set up a model. Nothing is saved before `Save`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginRequest {
    /// List the providers.
    Providers {
        /// The number of the attempt, which the answer repeats.
        attempt: u64,
    },
    /// List the models of a provider, with this key or the one it has.
    Models {
        /// The number of the attempt.
        attempt: u64,
        /// The provider.
        provider: String,
        /// The key, if one was typed.
        key: Option<TypedKey>,
    },
    /// Send one short request to a model.
    Try {
        /// The number of the attempt.
        attempt: u64,
        /// The provider.
        provider: String,
        /// The key, if one was typed.
        key: Option<TypedKey>,
        /// The model, without the provider.
        model: String,
    },
    /// Save the key, if one was typed, and use the model from now on.
    Save {
        /// The number of the attempt.
        attempt: u64,
        /// The provider.
        provider: String,
        /// The key, if one was typed.
        key: Option<TypedKey>,
        /// The model, without the provider.
        model: String,
    },
    /// Stop what was asked for before.
    Stop,
}

/// What the host reports while a model is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginEvent {
    /// There is no model: begin.
    Needed,
    /// The providers to choose from.
    Providers {
        /// The number of the attempt.
        attempt: u64,
        /// The providers, or why there are none.
        providers: Result<Vec<LoginProvider>, String>,
    },
    /// The models of the provider.
    Models {
        /// The number of the attempt.
        attempt: u64,
        /// The models, without the provider, with the one to suggest first.
        models: Result<Vec<String>, LoginFault>,
    },
    /// Whether the model answers.
    Tried {
        /// The number of the attempt.
        attempt: u64,
        /// Nothing, or why it does not.
        result: Result<(), LoginFault>,
    },
    /// Whether it was saved.
    Saved {
        /// The number of the attempt.
        attempt: u64,
        /// Nothing, or why it was not.
        result: Result<(), String>,
    },
}
