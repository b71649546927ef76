//! What follows when nothing is open: the next turn, a check of the work, or the end.

use super::Draft;
use crate::state::{Call, Phase, Stage};
use dunnock_proto::{
    Access, By, CallId, Called, Class, CompactStarted, Ended, InterruptAsked, Proof, QuestionKind, Recovery, Reserved,
    Role, Strength, TurnStarted, VerifyArgs, Why,
};
use std::sync::Arc;

impl Draft<'_> {
    /// What follows from where the session stands: facts until nothing more follows.
    pub(super) fn settle(&mut self) {
        if self.s.config.planner.is_some() {
            self.drop_behind_a_failure();
        }
        match self.s.phase {
            Phase::Acting if !self.s.calls_open() => self.after_calls(),
            Phase::Ready => self.next_turn(),
            Phase::Rest | Phase::Thinking | Phase::Acting | Phase::Compacting { .. } | Phase::Rewinding { .. } => {}
        }
    }

    /// Every call of the answer has ended.
    pub(super) fn after_calls(&mut self) {
        if self.s.stopping {
            return self.end(Why::Stopped);
        }
        if !self.s.questions.is_empty() {
            return;
        }
        if self.s.config.planner.is_some() && self.s.unseen == 0 {
            return self.after_plan();
        }
        let checked = self.s.calls.iter().any(|c| c.harness);
        let said_done = self.s.calls.iter().all(|c| c.harness)
            || self.s.calls.iter().any(|c| c.role == Some(Role::Final) && c.stage == Stage::Finished { ok: true });
        // Who carries words sees no result before the next round: what failed beside a "done" must be seen first.
        let failed = |c: &Call| !c.harness && c.stage == Stage::Finished { ok: false };
        let unsaid = self.s.by_hand() && self.s.calls.iter().any(failed);
        match self.s.proof {
            _ if self.s.unseen > 0 || !said_done || unsaid => {
                if !self.stalled() {
                    self.next_turn();
                }
            }
            // A check that changed the files has said nothing of those it left: once more, on these.
            Proof::Proven if self.s.calls.iter().any(|c| c.moved) => {
                if self.s.tried >= self.s.config.verify_tries {
                    self.end(Why::Unproven)
                } else {
                    self.verify()
                }
            }
            Proof::Proven if checked => self.end(Why::Done),
            Proof::Failed | Proof::None if checked => {
                if self.s.tried >= self.s.config.verify_tries {
                    self.end(Why::Unproven)
                } else {
                    self.next_turn()
                }
            }
            Proof::Proven | Proof::Failed | Proof::None if self.s.config.verify.is_empty() => self.end(Why::Done),
            Proof::Proven | Proof::Failed | Proof::None if self.s.baseline_due().is_some() => {}
            Proof::Proven | Proof::Failed | Proof::None => self.verify(),
        }
    }

    /// The model says that it is done: the harness makes calls of its own to find out.
    pub(super) fn verify(&mut self) {
        let tried = self.s.tried + 1;
        let first = self.s.calls.len();
        for (n, command) in self.s.config.clone().verify.iter().enumerate() {
            let id = CallId { turn: self.s.turn, index: u16::try_from(first + n).unwrap_or(u16::MAX) };
            let args: Arc<str> = VerifyArgs { command: command.clone() }.text().into();
            let (class, recovery) = (Class::Command, Recovery::Repeat);
            self.record(Called { call: id, tool: "verify".into(), args, tried, class, recovery });
            if let Some(call) = self.s.call(id).cloned() {
                self.allow(&call, By::Harness, None, Access::NOTHING, None);
            }
        }
    }

    /// A turn is due: it begins, or what holds it is recorded.
    pub(super) fn next_turn(&mut self) {
        if self.s.stopping {
            return self.end(Why::Stopped);
        }
        if !self.s.questions.is_empty() || self.s.wake.is_some() || !self.s.head_fits() {
            return;
        }
        if self.s.steps_left == 0 {
            return self.ask_or_end(QuestionKind::Limit { steps: self.s.config.max_steps }, Why::Limit);
        }
        let reserved = self.s.reserve();
        if self.breaks_budget(reserved) {
            return self.ask_or_end(QuestionKind::Budget, Why::Budget);
        }
        if let Some((strength, upto)) = self.must_shrink() {
            let reserved = match strength {
                Strength::Shorten => Reserved::default(),
                Strength::Summarise => reserved,
            };
            return self.record(CompactStarted { upto, strength, asked: false, reserved });
        }
        if let Some(head) = self.s.head.clone() {
            let turn = dunnock_proto::Turn(self.s.turn.0 + 1);
            self.record(TurnStarted { turn, upto: self.s.seq, head: head.hash, reserved });
        }
    }

    pub(super) fn ask_or_end(&mut self, kind: QuestionKind, why: Why) {
        if self.s.config.attended { self.ask(kind) } else { self.end_held(why) }
    }

    /// The turn that was due does not begin; its prompts wait for the next.
    pub(super) fn end_held(&mut self, why: Why) {
        let proof = self.s.proof;
        self.record(Ended { why, proof, hold: true });
    }

    /// Work ends; a prompt that came meanwhile makes the next turn due at once.
    pub(super) fn end(&mut self, why: Why) {
        let proof = self.s.proof;
        self.record(Ended { why, proof, hold: false });
        if self.s.phase == Phase::Ready {
            self.next_turn();
        }
    }

    /// Everything under way stops; what has stopped is settled, what has not will report.
    pub(super) fn stop(&mut self) {
        let waited = self.s.phase == Phase::Ready;
        self.record(InterruptAsked {});
        self.drop_unbegun();
        if waited {
            self.end_held(Why::Stopped);
        }
    }
}
