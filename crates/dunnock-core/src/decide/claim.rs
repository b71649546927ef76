//! Another process takes over the session.

use super::Draft;
use crate::effect::cut_step;
use crate::input::Claim;
use crate::state::{Phase, Stage};
use dunnock_proto::{
    CallId, CompactionFailed, Failure, Outcome, OwnerChanged, QuestionKind, Refused, Reserved,
    StepFailed,
};

impl Draft<'_> {
    /// Another process becomes the owner. Calls that the previous owner started and that cannot be
    /// repeated end with an unknown outcome.
    pub(super) fn claim(&mut self, claim: Claim) -> Result<(), Refused> {
        let Claim { owner, isolation: level, platform, app, untrusted, in_repository } = claim;
        if self.s.owner.is_some_and(|current| current.owner == owner) {
            return Err(Refused::Invalid);
        }
        let begun = self.s.started();
        let lost = if self.s.asks_model() { self.s.reserved } else { Reserved::default() };
        self.record(OwnerChanged { owner, isolation: level, platform, app, lost, in_repository });
        let (again, unknown): (Vec<CallId>, Vec<CallId>) = begun
            .into_iter()
            .partition(|id| self.s.call(*id).is_some_and(|c| c.stage == Stage::Allowed));
        for call in &unknown {
            self.finish(
                *call,
                Outcome::Unknown,
                "outcome unknown: the agent was restarted while this ran",
            );
        }
        if self.s.stopping {
            for call in again {
                self.finish(call, Outcome::Interrupted, "interrupted by the person");
            }
            self.drop_unbegun();
            if self.s.phase == Phase::Thinking {
                self.record(cut_step(self.s.step));
            }
            if matches!(self.s.phase, Phase::Compacting { .. }) {
                self.record(CompactionFailed::interrupted());
                self.after_shrinking(true);
            }
        } else if self.s.asks_model() && self.breaks_budget(self.s.reserved) {
            // The request may have been answered and paid for; sending it again would exceed the
            // budget.
            let error = "the request was not sent again after a restart: the budget does not \
                         cover it"
                .to_owned();
            if self.s.phase == Phase::Thinking {
                self.record(StepFailed::unsent(self.s.step, Failure::Transport, error));
            } else {
                self.record(CompactionFailed::because(error));
            }
        } else {
            self.ask(self.s.asks_to_continue(unknown));
        }
        if let Some(content) = untrusted {
            let asked = self.s.questions.iter().any(|q| *q.kind == QuestionKind::Trust { content });
            let known = self.s.trust.is_some_and(|(hash, _)| hash == content);
            if self.s.is_attended() && !asked && !known {
                self.ask(QuestionKind::Trust { content });
            }
        }
        Ok(())
    }
}
