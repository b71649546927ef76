//! The commands that interfaces send: the only input of a session that can be deserialised.
//!
//! Invariant: outcomes of work are not commands. Only the process that did the work creates them,
//! so no interface can forge one.

use crate::{Answer, ConfigPatch, Hash, InputId, QuestionId, Rule, Seq};
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// A command with an id chosen by its sender. Sending it twice returns the first result again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandRequest {
    /// Chosen by the sender.
    pub id: InputId,
    /// The version that the sender saw. The command is refused if the session has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Seq>,
    /// What to do.
    pub command: Command,
}

/// What a user can do to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Send a prompt.
    Prompt {
        /// The text of the prompt.
        text: Arc<str>,
        /// Images, as blobs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Hash>,
    },
    /// Continue after the work ended.
    Run,
    /// Answer a question.
    Reply {
        /// Which question.
        question: QuestionId,
        /// Hash of the question as it was shown.
        hash: Hash,
        /// The answer.
        answer: Answer,
        /// A note about the answer for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Stop the work in progress.
    Interrupt,
    /// Rewind to an earlier point.
    Rewind {
        /// Where to rewind to.
        to: RewindTo,
        /// What to rewind.
        scope: Scope,
        /// Also overwrite changes that others made since.
        #[serde(default)]
        force: bool,
    },
    /// Compact the conversation.
    Compact,
    /// Change settings, including the model.
    Configure {
        /// Only the settings that change.
        set: ConfigPatch,
    },
    /// Name the session.
    Title {
        /// The title.
        title: String,
    },
    /// Remove a granted rule.
    Revoke {
        /// The rule.
        rule: Rule,
    },
}

impl Command {
    /// Its name, as on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Prompt { .. } => "prompt",
            Self::Run => "run",
            Self::Reply { .. } => "reply",
            Self::Interrupt => "interrupt",
            Self::Rewind { .. } => "rewind",
            Self::Compact => "compact",
            Self::Configure { .. } => "configure",
            Self::Title { .. } => "title",
            Self::Revoke { .. } => "revoke",
        }
    }
}

/// Where a rewind leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RewindTo {
    /// Just after this event.
    Event(Seq),
    /// Before the last rewind.
    Undo,
}

/// What a rewind restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The files only.
    Files,
    /// The conversation only.
    Conversation,
    /// Both.
    Both,
}

/// Why an input was refused. A value, not a failure: the interface shows it with the current state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// The log is empty, so there is no session.
    NoSession,
    /// A newer release wrote an event here that a reader must understand.
    ReadOnly,
    /// The sender had seen an older version.
    Stale {
        /// The current version.
        version: Seq,
    },
    /// The question does not exist, or has been answered.
    NoQuestion,
    /// The question has changed since it was shown.
    Changed,
    /// The question does not accept that answer.
    InvalidAnswer,
    /// Not possible while the session is working.
    Busy,
    /// There is nothing to continue.
    NothingToContinue,
    /// There is no such point to rewind to.
    NoSuchPoint,
    /// The budget does not cover it.
    Budget,
    /// The value is invalid.
    Invalid,
    /// The work is not running, or no longer running.
    NotRunning,
    /// This process does not own the session.
    NotOwner,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSession => f.write_str("there is no such session"),
            Self::ReadOnly => f.write_str(
                "a later release wrote to this session; use that release to continue it",
            ),
            Self::Stale { version } => {
                write!(
                    f,
                    "the session has changed (now version {version}); reload it and try again"
                )
            }
            Self::NoQuestion => {
                f.write_str("that question is no longer open; check which questions are open now")
            }
            Self::Changed => {
                f.write_str("the question has changed since it was shown; read it again")
            }
            Self::InvalidAnswer => f.write_str("the question does not accept that answer"),
            Self::Busy => f.write_str("the session is busy; wait for it or interrupt it first"),
            Self::NothingToContinue => {
                f.write_str("there is nothing to continue, stop or compact; send a prompt")
            }
            Self::NoSuchPoint => {
                f.write_str("there is no such point to rewind to, or its files were not saved")
            }
            Self::Budget => f.write_str("the budget does not cover it; raise it with --budget"),
            Self::Invalid => f.write_str("the value is invalid or changes nothing"),
            Self::NotRunning => f.write_str("that work is no longer running"),
            Self::NotOwner => f.write_str("another process owns this session"),
        }
    }
}
