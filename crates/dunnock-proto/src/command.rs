//! What doors send, and the only input of a session that can be deserialised.
//!
//! Invariant: outcomes of work are not here. They are made inside the process that did the work, so no door can forge
//! one.

use crate::{Answer, ConfigPatch, Hash, InputId, QuestionId, Rule, Seq};
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// A command with the id that its sender minted; sending it twice gives the first answer again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandRequest {
    /// Minted by the sender.
    pub id: InputId,
    /// The version that the sender saw; if it has moved on, the command is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Seq>,
    /// What to do.
    pub command: Command,
}

/// What a person can do to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Say something.
    Prompt {
        /// The words.
        text: Arc<str>,
        /// Pictures, as blobs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Hash>,
    },
    /// Go on after an end.
    Run,
    /// Answer a question.
    Reply {
        /// Which.
        question: QuestionId,
        /// Of what was shown.
        hash: Hash,
        /// The answer.
        answer: Answer,
        /// What the model should know of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Stop what is under way.
    Interrupt,
    /// Go back.
    Rewind {
        /// Where to.
        to: RewindTo,
        /// Of what.
        scope: Scope,
        /// Also what others changed since.
        #[serde(default)]
        force: bool,
    },
    /// Make the conversation shorter.
    Compact,
    /// Change settings; a new model is one of them.
    Configure {
        /// Only what changes.
        set: ConfigPatch,
    },
    /// Name the session.
    Title {
        /// The title.
        title: String,
    },
    /// Take a granted rule back.
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

/// Where a rewind goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RewindTo {
    /// To just after this event.
    Event(Seq),
    /// To before the last rewind.
    Undo,
}

/// What a rewind takes back.
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

/// Why an input was not taken. A value, not a failure: the door shows it, with the current state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// The log is empty: there is no session.
    NoSession,
    /// A later release wrote something here that must be understood.
    ReadOnly,
    /// The sender had seen an older version.
    Stale {
        /// The version now.
        version: Seq,
    },
    /// There is no such question, or it was answered.
    NoQuestion,
    /// What was shown to the person is not what stands.
    Changed,
    /// The question cannot be answered that way.
    InvalidAnswer,
    /// Not while work is under way.
    Busy,
    /// There is nothing to go on with.
    NothingToContinue,
    /// There is no such point to go back to.
    NoSuchPoint,
    /// The budget does not cover it.
    Budget,
    /// The value makes no sense.
    Invalid,
    /// The work is not, or no longer, under way.
    NotRunning,
    /// The process is not the owner.
    NotOwner,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSession => f.write_str("there is no such session"),
            Self::ReadOnly => f.write_str("a later release wrote this session; use that release to go on with it"),
            Self::Stale { version } => write!(f, "the session has changed meanwhile (version {version}); look again"),
            Self::NoQuestion => f.write_str("there is no such question any more; look at what waits now"),
            Self::Changed => f.write_str("the question is not the one that was shown; look again"),
            Self::InvalidAnswer => f.write_str("the question cannot be answered that way"),
            Self::Busy => f.write_str("work is under way; wait for it or interrupt it first"),
            Self::NothingToContinue => f.write_str("there is nothing to go on with; give a prompt"),
            Self::NoSuchPoint => f.write_str("there is no such point to go back to"),
            Self::Budget => f.write_str("the budget does not cover it; give more with --budget"),
            Self::Invalid => f.write_str("that value makes no sense"),
            Self::NotRunning => f.write_str("that work is no longer under way"),
            Self::NotOwner => f.write_str("another process owns this session"),
        }
    }
}
