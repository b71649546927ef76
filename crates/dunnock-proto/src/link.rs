//! What goes between a door and the owner of a session, over a channel, a socket or a WebSocket alike.
//!
//! A client says [`Hello`], is answered by a [`Greeting`], then receives the events after the one it named, the partials
//! of what is under way, and from then on everything as it happens.

use crate::{CallId, CommandRequest, InputId, Owner, QuestionId, Record, Refused, Seq, SessionId, Step};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The version of this protocol; both sides must speak the same.
pub const LINK_VERSION: u32 = 1;

/// The first words of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hello {
    /// The protocol it speaks.
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
    /// Come in.
    Welcome {
        /// The protocol spoken.
        link: u32,
        /// The owner's release.
        app: String,
        /// The owner.
        owner: Owner,
        /// Events so far.
        seq: Seq,
    },
    /// The owner cannot speak with this client.
    Mismatch {
        /// What the owner speaks.
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
    /// Do this.
    Command(CommandRequest),
}

/// Something live that is not an event: it is never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// The model says more.
    Text {
        /// The step.
        step: Step,
        /// Which try at it.
        attempt: u32,
        /// Where this piece begins.
        offset: u64,
        /// The piece.
        text: Arc<str>,
    },
    /// The model thinks more.
    Reasoning {
        /// The step.
        step: Step,
        /// Which try at it.
        attempt: u32,
        /// Where this piece begins.
        offset: u64,
        /// The piece.
        text: Arc<str>,
    },
    /// A call puts more out.
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
    /// Something worth a line for the person: waiting for the workspace, disk full, trying again.
    Notice {
        /// The line.
        text: Arc<str>,
    },
}

/// All that came live so far of one piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Partial {
    /// An answer on its way.
    Step {
        /// The step.
        step: Step,
        /// Which try at it.
        attempt: u32,
        /// What was said.
        text: String,
        /// What was thought.
        reasoning: String,
    },
    /// A call's output; its beginning is dropped when it grows long.
    Call {
        /// The call.
        call: CallId,
        /// Bytes so far, dropped ones included.
        offset: u64,
        /// The last of it.
        tail: String,
    },
}

/// What a door receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Frame {
    /// An event, once it is durable. Events come in order, without gaps.
    Event(Arc<Record>),
    /// Where something stands that was under way when the door came.
    Partial(Partial),
    /// Something live.
    Delta(Delta),
    /// The command was taken; it is durable.
    Accepted {
        /// Which.
        id: InputId,
        /// The last event that it made.
        seq: Seq,
    },
    /// The command was not taken.
    Refused {
        /// Which.
        id: InputId,
        /// Why not.
        reason: Refused,
        /// The version now.
        version: Seq,
        /// The questions that stand now.
        questions: Vec<QuestionId>,
    },
    /// This client was too slow and is cut off: it should come back with the last event it has.
    Lagged,
    /// The owner leaves; somebody else may take over.
    Closing,
}
