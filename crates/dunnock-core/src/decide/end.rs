//! What happens when nothing is open: the next step, a check of the work, or the end.

use super::Draft;
use crate::state::{Call, Phase, Stage};
use dunnock_proto::{
    Access, AllowedBy, CallId, CheckCalled, Class, CompactionStarted, EndReason, Ended, Proof,
    QuestionKind, Recovery, Reserved, Role, StepStarted, Strength, VerifyArgs,
};
use std::sync::Arc;

impl Draft<'_> {
    /// Records what follows from the current state, until nothing more follows.
    pub(super) fn settle(&mut self) {
        if self.s.config.steps().drop_after_failure {
            self.drop_behind_a_failure();
        }
        match self.s.phase {
            Phase::Acting if !self.s.calls_open() => self.after_calls(),
            Phase::Ready => self.next_step(),
            Phase::Rest
            | Phase::Thinking
            | Phase::Acting
            | Phase::Compacting { .. }
            | Phase::Rewinding { .. } => {}
        }
    }

    /// Every call of the answer has ended.
    pub(super) fn after_calls(&mut self) {
        if self.s.stopping {
            return self.end(EndReason::Stopped);
        }
        if !self.s.questions.is_empty() {
            return;
        }
        if self.s.config.steps().check_each_step && self.s.unseen == 0 {
            return self.after_plan();
        }
        let checked = self.s.calls.iter().any(|c| c.harness);
        let said_done =
            self.s.calls.iter().all(|c| c.harness)
                || self.s.calls.iter().any(|c| {
                    c.role == Some(Role::Final) && c.stage == Stage::Finished { ok: true }
                });
        // In a copy-and-paste session the chat sees no result before the next round, so failures
        // next to a "done" must be sent first.
        let failed = |c: &Call| !c.harness && c.stage == Stage::Finished { ok: false };
        let unsaid = self.s.via_bridge() && self.s.calls.iter().any(failed);
        let proof = self.s.proof;
        match proof {
            _ if self.s.unseen > 0 || !said_done || unsaid => {
                if !self.stalled() {
                    self.next_step();
                }
            }
            Proof::Failed | Proof::None if !checked && self.work_continues() => self.next_step(),
            // A check that changed files has not verified the changed ones: run it again on these.
            Proof::Proven if self.s.calls.iter().any(|c| c.moved) => {
                if self.s.tried >= self.s.config.verify_tries {
                    self.end(EndReason::Unproven)
                } else {
                    self.verify()
                }
            }
            Proof::Proven => self.end(EndReason::Done),
            Proof::Failed | Proof::None if checked => {
                if self.s.tried >= self.s.config.verify_tries {
                    self.end(EndReason::Unproven)
                } else {
                    self.next_step()
                }
            }
            Proof::Failed | Proof::None if self.s.config.verify.is_empty() => {
                self.end(EndReason::Done)
            }
            Proof::Failed | Proof::None if self.s.baseline_due().is_some() => {}
            Proof::Failed | Proof::None => self.verify(),
        }
    }

    /// The model says it is done: the harness makes calls of its own to verify that.
    pub(super) fn verify(&mut self) {
        let tried = self.s.tried + 1;
        let first = self.s.calls.len();
        for (n, command) in self.s.config.clone().verify.iter().enumerate() {
            let id =
                CallId { step: self.s.step, index: u16::try_from(first + n).unwrap_or(u16::MAX) };
            let args: Arc<str> = VerifyArgs { command: command.clone() }.text().into();
            let (class, recovery) = (Class::Command, Recovery::Repeat);
            self.record(CheckCalled {
                call: id,
                tool: "verify".into(),
                args,
                tried,
                class,
                recovery,
            });
            if let Some(call) = self.s.call(id).cloned() {
                self.allow(&call, AllowedBy::Harness, None, Access::NOTHING, None);
            }
        }
    }

    /// A step is due: it starts, or the reason why it cannot is recorded.
    pub(super) fn next_step(&mut self) {
        if self.s.stopping {
            return self.end(EndReason::Stopped);
        }
        if !self.s.questions.is_empty() || self.s.wake.is_some() || !self.s.preamble_fits() {
            return;
        }
        if self.time_is_up() {
            return self.end_held(EndReason::Deadline);
        }
        if self.s.steps_left == 0 {
            return self.ask_or_end(
                QuestionKind::Limit { steps: self.s.config.max_steps },
                EndReason::Limit,
            );
        }
        let reserved = self.s.reserve();
        if self.breaks_budget(reserved) {
            return self.ask_or_end(QuestionKind::Budget, EndReason::Budget);
        }
        if let Some((strength, upto)) = self.must_shrink() {
            let reserved = match strength {
                Strength::Shorten => Reserved::default(),
                Strength::Summarise => reserved,
            };
            return self.record(CompactionStarted { upto, strength, asked: false, reserved });
        }
        if let Some(preamble) = self.s.preamble.clone() {
            let step = dunnock_proto::Step(self.s.step.0 + 1);
            self.record(StepStarted { step, upto: self.s.seq, preamble: preamble.hash, reserved });
        }
    }

    pub(super) fn ask_or_end(&mut self, kind: QuestionKind, why: EndReason) {
        if self.s.is_attended() { self.ask(kind) } else { self.end_held(why) }
    }

    /// The step that was due does not start; its prompts wait for the next one.
    pub(super) fn end_held(&mut self, why: EndReason) {
        let proof = self.s.proof;
        self.record(Ended { reason: why, proof, hold: true });
    }

    /// Work ends; a prompt that arrived meanwhile makes the next step due at once.
    pub(super) fn end(&mut self, why: EndReason) {
        let proof = self.s.proof;
        self.record(Ended { reason: why, proof, hold: false });
        if self.s.phase == Phase::Ready {
            self.next_step();
        }
    }
}
