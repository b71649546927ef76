//! What the app and the program around it say to each other.
//!
//! The session itself speaks through the link: [`Frame`]s come, [`Order`]s go, whoever drives it. The rest is what a door
//! needs and a session does not know: other sessions, files, models, rules.

use dunnock_proto::{CommandRequest, Frame, Rule, Scope, Seq, SessionId};

/// What the app asks of the program around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRequest {
    /// To the session.
    Order(CommandRequest),
    /// A new session with these first words.
    Begin {
        /// The words.
        text: String,
        /// Files of pictures that go with them.
        pictures: Vec<String>,
        /// Who is asked, if that was chosen before there was a session.
        mode: Option<dunnock_proto::Mode>,
    },
    /// More words, with pictures.
    Pictures {
        /// The words.
        text: String,
        /// Files.
        pictures: Vec<String>,
    },
    /// Leave this session; the next words begin a fresh one.
    New,
    /// Go on with another.
    Open(SessionId),
    /// Go on with the one whose id begins so.
    Find(String),
    /// Branch off, at a step or now.
    Fork(Option<u32>),
    /// Sessions of all folders; those that hold these words, if there are any.
    Sessions(String),
    /// Files of the workspace.
    Files,
    /// Models that can be used.
    Models,
    /// Switch to this one.
    Model(String),
    /// The steps that can be gone back to.
    Points,
    /// What going back there would change, as a diff.
    DiffFrom(u32),
    /// Go back.
    Rewind {
        /// To just after this event.
        to: Seq,
        /// What.
        scope: Scope,
    },
    /// Take back the last task, or the last undo.
    Undo,
    /// What the session changed.
    Diff,
    /// Tokens and money.
    Cost,
    /// The rules that hold everywhere.
    Rules,
    /// Make a rule for every session.
    Grant(Rule),
    /// Write the session to a file.
    Export,
    /// A picture from the clipboard.
    Clipboard,
    /// A command of the person's own.
    Shell(String),
    /// Stop it.
    StopShell,
}

/// What was found when the app started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Welcome {
    /// This release.
    pub version: String,
    /// The folder, as people write it.
    pub folder: String,
    /// Its branch, if it is a repository.
    pub branch: Option<String>,
    /// How commands are confined here: `A`, or nothing while that is being found out.
    pub level: Option<char>,
    /// The model that is used, if one is.
    pub model: Option<String>,
    /// What was found, one thing each.
    pub found: Vec<String>,
    /// What the person should know.
    pub notes: Vec<String>,
    /// What to do, where there is no model.
    pub missing: Vec<String>,
    /// Who is asked.
    pub mode: Option<dunnock_proto::Mode>,
}

/// A command of the person's own, from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// Without the slash.
    pub name: String,
    /// What it does.
    pub about: String,
    /// What is sent; `$ARGS` stands for what follows the command.
    pub text: String,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Its first words.
    pub title: String,
    /// Its folder.
    pub workspace: String,
    /// In one word.
    pub status: String,
    /// How long ago it changed.
    pub age: String,
    /// The words that were searched for, with those around them.
    pub excerpt: String,
}

/// A step that can be gone back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindPoint {
    /// Its number.
    pub step: u32,
    /// Its last event.
    pub seq: Seq,
    /// What happened.
    pub title: String,
    /// Files that would change; nothing where that is not known.
    pub files: Option<usize>,
    /// Files that others changed since, and that stay.
    pub kept: Vec<String>,
}

/// What the program around the app tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostEvent {
    /// Through the link.
    Frame(Frame),
    /// What was found at the start; comes again when more is known.
    Welcome(Welcome),
    /// The person's own commands.
    Own(Vec<Own>),
    /// A session is open: its events follow, up to this one at once.
    Opened {
        /// Which.
        id: SessionId,
        /// Events so far.
        upto: Seq,
        /// How long ago it last changed, if it is not new.
        resumed: Option<String>,
        /// What was being typed in it.
        draft: Option<String>,
    },
    /// No session is open.
    Closed,
    /// Sessions, for these words.
    Sessions(String, Vec<SessionRow>),
    /// Files.
    Files(Vec<String>),
    /// Models.
    Models(Vec<String>),
    /// Steps.
    Points(Vec<RewindPoint>),
    /// Lines to show.
    Text(Vec<String>),
    /// A unified diff to show.
    Diff(String),
    /// Something could not be done.
    Wrong(String),
    /// A first prompt could not be sent: it goes back into the field.
    NotSent(String),
    /// A picture.
    Picture(String),
    /// Output of the person's own command.
    Shell(String),
    /// It ended so.
    ShellEnded(String),
    /// The session can no longer be reached.
    Lost(String),
}
