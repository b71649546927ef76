//! The protocol between a client and the owner of a session, over a channel, a socket or a
//! WebSocket.
//!
//! A client sends [`Hello`] and receives a [`Greeting`], then the events after the one it named,
//! then the partials of work in progress, and from then on everything as it happens.

use crate::{
    CallId, CommandRequest, InputId, Owner, QuestionId, Record, Refused, Seq, SessionId, Step,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The version of this protocol; both sides must use the same one.
pub const LINK_VERSION: u32 = 1;

/// The first message of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hello {
    /// The protocol version it speaks.
    pub link: u32,
    /// Its release.
    pub app: String,
    /// The session it wants.
    pub session: SessionId,
    /// The last event it has.
    pub from: Seq,
}

/// The answer to a [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Greeting {
    /// The connection is accepted.
    Welcome {
        /// The protocol version in use.
        link: u32,
        /// The owner's release.
        app: String,
        /// The owner.
        owner: Owner,
        /// The number of events so far.
        seq: Seq,
    },
    /// The owner does not speak this client's protocol version.
    Mismatch {
        /// The protocol version that the owner speaks.
        link: u32,
        /// The owner's release.
        app: String,
    },
    /// The owner drives another session.
    WrongSession,
}

/// What a client sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Up {
    /// Execute a command.
    Command(CommandRequest),
}

/// A live update that is not an event: it is never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// More text of the answer.
    Text {
        /// The step.
        step: Step,
        /// The number of the attempt.
        attempt: u32,
        /// Where this piece begins.
        offset: u64,
        /// The piece.
        text: Arc<str>,
    },
    /// More reasoning.
    Reasoning {
        /// The step.
        step: Step,
        /// The number of the attempt.
        attempt: u32,
        /// Where this piece begins.
        offset: u64,
        /// The piece.
        text: Arc<str>,
    },
    /// More output of a call.
    Output {
        /// The call.
        call: CallId,
        /// Where this piece begins.
        offset: u64,
        /// `out` or `err`.
        stream: Arc<str>,
        /// The piece.
        text: Arc<str>,
    },
    /// A status line for the user: waiting for the workspace, disk full, trying again.
    Notice {
        /// The line.
        text: Arc<str>,
    },
}

/// All live output so far of one piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Partial {
    /// An answer in progress.
    Step {
        /// The step.
        step: Step,
        /// The number of the attempt.
        attempt: u32,
        /// The text so far.
        text: String,
        /// The reasoning so far.
        reasoning: String,
    },
    /// A call's output; the beginning is dropped when it grows long.
    Call {
        /// The call.
        call: CallId,
        /// Bytes so far, including dropped ones.
        offset: u64,
        /// The last part of the output.
        tail: String,
    },
}

/// What a client receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Frame {
    /// An event, once it is durable. Events arrive in order, without gaps.
    Event(Arc<Record>),
    /// The state of work that was in progress when the client connected.
    Partial(Partial),
    /// A live update.
    Delta(Delta),
    /// The command was accepted and is durable.
    Accepted {
        /// Which command.
        id: InputId,
        /// The last event that it caused.
        seq: Seq,
    },
    /// The command was refused.
    Refused {
        /// Which command.
        id: InputId,
        /// Why it was refused.
        reason: Refused,
        /// The current version.
        version: Seq,
        /// The questions that are open now.
        questions: Vec<QuestionId>,
    },
    /// This client was too slow and was disconnected; it should reconnect from the last event it
    /// has.
    Lagged,
    /// The owner is leaving; another process may take over.
    Closing,
}
