//! The core loop: inputs come in, events go out.
//!
//! [`decide`] determines what the input itself means, then what follows from the resulting state
//! (`settle`): another step, a check, a question, the end. Both work on a copy; the caller applies
//! the events once they are durable. Which work must then be running is not decided here: see
//! [`wanted`](crate::wanted).
//!
//! One file per concern: commands from the user (`prompt`), replies to questions (`reply`), declined
//! calls (`withdraw`), interrupts (`interrupt`), answers of the model and other reports (`answer`),
//! calls (`call`), takeovers (`claim`), ends and the next step (`end`), what prevents a step
//! (`limits`), images (`images`), what happens instead where nobody watches (`unattended`), the time
//! until a deadline (`deadline`).
//!
//! Invariant: every match on our own enums is exhaustive, so a new input or phase cannot hide in a
//! wildcard.

mod answer;
mod call;
mod claim;
mod deadline;
mod end;
mod images;
mod interrupt;
mod limits;
mod planner;
mod prompt;
mod reply;
mod rewind;
mod stall;
mod unattended;
mod withdraw;

use crate::apply::apply;
use crate::input::{DecideContext, Input};
use crate::state::State;
use dunnock_proto::{Event, Refused};

/// Decides which events `input` causes. Changes nothing.
///
/// # Errors
/// A refusal is an answer to the sender, not a failure: no event was caused.
pub fn decide(s: &State, now: &DecideContext, input: Input) -> Result<Vec<Event>, Refused> {
    if s.workspace.is_none() {
        return Err(Refused::NoSession);
    }
    if s.read_only.is_some() {
        return Err(Refused::ReadOnly);
    }
    let mut draft = Draft { s: s.clone(), now, events: Vec::new(), spent: s.spent.micros };
    match input {
        Input::Command(request) => {
            if request.expect.is_some_and(|seen| seen != s.version) {
                return Err(Refused::Stale { version: s.version });
            }
            draft.command(request.command)?;
        }
        Input::Report(report) => {
            if s.owner.is_none_or(|current| current.owner != report.owner) {
                return Err(Refused::NotOwner);
            }
            draft.report(report.owner, report.work)?;
        }
        Input::Claim(claim) => draft.claim(claim)?,
    }
    if let Some(news) = &now.preamble_drift
        && draft.s.preamble_fits()
        && news.sources != *draft.s.sources
    {
        draft.record(news.clone());
    }
    draft.tell_time();
    draft.settle();
    Ok(draft.events)
}

/// A decision in progress: the resulting state, and the events that lead to it.
pub(crate) struct Draft<'a> {
    pub(crate) s: State,
    pub(crate) now: &'a DecideContext,
    events: Vec<Event>,
    /// The amount spent before this decision.
    pub(crate) spent: u64,
}

impl Draft<'_> {
    fn record(&mut self, fact: impl Into<Event>) {
        let event = fact.into();
        apply(&mut self.s, &event);
        self.events.push(event);
    }
}
