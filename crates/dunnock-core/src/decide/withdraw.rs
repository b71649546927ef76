//! Calls that the person declines, at once or after a yes.

use super::Draft;
use crate::state::{Call, Stage};
use dunnock_proto::{Answer, CallId, Hash, Outcome, QuestionId, Refused};

impl Draft<'_> {
    pub(super) fn decline(&mut self, call: CallId, note: Option<String>) {
        let text = match &note {
            Some(note) => format!("the person declined this call: {note}"),
            None => "the person declined this call".into(),
        };
        self.finish(call, Outcome::Declined { note }, &text);
    }

    /// A no after a yes: the call is declined, unless it has started.
    pub(super) fn withdraw(
        &mut self,
        answered: (QuestionId, Hash),
        answer: &Answer,
        note: Option<String>,
    ) -> Result<(), Refused> {
        let unbegun =
            |call: &&Call| call.stage == Stage::Allowed && call.answered == Some(answered);
        match self.s.calls.iter().find(unbegun).map(|call| call.id) {
            Some(call) if *answer == Answer::No => self.decline(call, note),
            Some(_) | None => return Err(Refused::NoQuestion),
        }
        Ok(())
    }
}
