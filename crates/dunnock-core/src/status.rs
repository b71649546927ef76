//! What lists show about a session.

use crate::state::{Phase, State};
use dunnock_proto::EndReason;
use std::fmt;

/// The state of a session in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Work is running, or is about to start.
    Working,
    /// A question is open, or a request waits for the chat's reply.
    Waiting,
    /// Finished, and no check contradicts it.
    Done,
    /// The model could not be reached, or verification failed.
    Failed,
    /// The user stopped it, or there was no prompt yet.
    Stopped,
    /// Out of steps or budget.
    Limit,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Working => "working",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Limit => "limit",
        })
    }
}

impl State {
    /// Its status in one word.
    #[must_use]
    pub fn status(&self) -> Status {
        if !self.questions.is_empty() || self.awaiting_reply().is_some() {
            return Status::Waiting;
        }
        if self.phase != Phase::Rest {
            return Status::Working;
        }
        match self.last.as_deref() {
            Some(EndReason::Done) => Status::Done,
            Some(EndReason::Failed { .. } | EndReason::Unproven) => Status::Failed,
            Some(EndReason::Limit | EndReason::Budget | EndReason::Deadline) => Status::Limit,
            Some(EndReason::Stopped) | None => Status::Stopped,
        }
    }
}
