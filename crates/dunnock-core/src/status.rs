//! What lists show of a session.

use crate::state::{Phase, State};
use dunnock_proto::EndReason;
use std::fmt;

/// The state of a session in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Something is, or must get, under way.
    Working,
    /// A question stands, or a person carries a request.
    Waiting,
    /// Finished, and nothing speaks against it.
    Done,
    /// The model could not be asked, or verification failed.
    Failed,
    /// The person stopped it, or nothing was asked yet.
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
    /// In one word.
    #[must_use]
    pub fn status(&self) -> Status {
        if !self.questions.is_empty() || self.carried().is_some() {
            return Status::Waiting;
        }
        if self.phase != Phase::Rest {
            return Status::Working;
        }
        match self.last.as_deref() {
            Some(EndReason::Done) => Status::Done,
            Some(EndReason::Failed { .. } | EndReason::Unproven) => Status::Failed,
            Some(EndReason::Limit | EndReason::Budget) => Status::Limit,
            Some(EndReason::Stopped) | None => Status::Stopped,
        }
    }
}
