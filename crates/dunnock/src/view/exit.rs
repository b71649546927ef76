//! The state of a session when a command leaves it: the exit code and its name.

use dunnock_core::{State, Status};
use dunnock_proto::{EndReason as Ended, Proof};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// A usage error on the command line: exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Usage {}

pub(crate) fn usage(text: impl Into<String>) -> anyhow::Error {
    Usage(text.into()).into()
}

/// Why a run ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExitReason {
    Done,
    Failed,
    Waiting,
    Working,
    Limit,
    Unproven,
    Stale,
    Interrupted,
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done | Self::Stale => "done",
            Self::Failed => "failed",
            Self::Waiting => "waiting for you",
            Self::Working => "still running",
            Self::Limit => "a limit was reached",
            Self::Unproven => "verification failed",
            Self::Interrupted => "interrupted",
        })
    }
}

/// The result of a command that worked on a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    /// The reason, as named in `--json`.
    pub(crate) why: ExitReason,
    pub(crate) exit: u8,
    /// What went wrong, if anything.
    pub(crate) error: Option<String>,
}

/// Whether the files are still the ones that were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    Yes,
    /// They have changed since.
    Stale,
}

/// Derives the exit from the state of the session.
pub(crate) fn end(s: &State, fresh: Freshness) -> Exit {
    let plain = |why, exit| Exit { why, exit, error: None };
    match (s.status(), s.last.as_deref()) {
        (Status::Waiting, _) => plain(ExitReason::Waiting, 3),
        (Status::Working, _) => plain(ExitReason::Working, 3),
        (Status::Done, _) if s.proof == Proof::Proven && fresh == Freshness::Stale => Exit {
            why: ExitReason::Stale,
            exit: 5,
            error: Some(
                "files changed after they were checked, so the proof is stale. Check again: \
                 dunnock resume --prompt \"check again\""
                    .into(),
            ),
        },
        (Status::Done, _) => plain(ExitReason::Done, 0),
        (_, Some(Ended::Failed { error })) => {
            Exit { why: ExitReason::Failed, exit: 1, error: Some(error.clone()) }
        }
        (_, Some(Ended::Unproven)) => Exit {
            why: ExitReason::Unproven,
            exit: 5,
            error: Some(match s.proof {
                Proof::Proven => "the checks pass, but they change files each time, so the final \
                                  files are not verified"
                    .into(),
                Proof::Failed | Proof::None if s.config.steps().check_each_step => {
                    "the plan has no actions left, but the checks fail".into()
                }
                Proof::Failed | Proof::None => {
                    let times = dunnock_proto::count(s.config.verify_tries, "time");
                    format!("verification failed {times} (the limit)")
                }
            }),
        },
        (_, Some(Ended::Limit)) if s.proof == Proof::Failed => Exit {
            why: ExitReason::Unproven,
            exit: 5,
            error: Some("the step limit was reached before verification passed".into()),
        },
        (_, Some(Ended::Limit)) => Exit {
            why: ExitReason::Limit,
            exit: 4,
            error: Some(format!(
                "the limit of {} was reached",
                dunnock_proto::count(s.config.max_steps, "step")
            )),
        },
        (_, Some(Ended::Budget)) => Exit {
            why: ExitReason::Limit,
            exit: 4,
            error: Some("the budget does not cover the next request".into()),
        },
        (_, Some(Ended::Deadline)) => {
            Exit { why: ExitReason::Limit, exit: 4, error: Some("the deadline has come".into()) }
        }
        (_, Some(Ended::Stopped | Ended::Done) | None) => plain(ExitReason::Interrupted, 130),
    }
}
