//! When a planner's work is finished: the loop decides, not the model.

use super::Draft;
use crate::state::Stage;
use dunnock_proto::{CallId, EndReason, Outcome, Proof};

impl Draft<'_> {
    /// An action that fails ends its plan: the actions after it are not run, those before it are.
    pub(super) fn drop_behind_a_failure(&mut self) {
        let actions = self.s.calls.iter().filter(|c| !c.harness);
        let behind = actions.skip_while(|c| c.stage != Stage::Finished { ok: false });
        let left: Vec<CallId> = behind
            .filter(|c| matches!(c.stage, Stage::Asked | Stage::Allowed))
            .map(|c| c.id)
            .collect();
        for call in left {
            self.finish(
                call,
                Outcome::NotRun,
                "not run: an earlier action of this plan did not succeed",
            );
        }
    }

    /// Every action of a plan has ended, and so has every check after it.
    pub(super) fn after_plan(&mut self) {
        let actions = self.s.calls.iter().filter(|c| !c.harness);
        let acts = actions.clone().next().is_some();
        // If no action of the plan was allowed to run, nothing changed that could be checked.
        let ran = actions.clone().any(|c| c.allowed.is_some());
        let checked = self.s.calls.iter().any(|c| c.harness);
        let moved = self.s.calls.iter().any(|c| c.moved);
        if acts && !ran {
            return self.plan_again();
        }
        match self.s.proof {
            _ if self.s.config.verify.is_empty() => {
                if acts {
                    self.plan_again()
                } else {
                    self.end(EndReason::Done)
                }
            }
            _ if !checked => {
                if self.s.baseline_due().is_none() {
                    self.verify()
                }
            }
            Proof::Proven if !moved => self.end(EndReason::Done),
            // The checks changed the files, so they prove nothing about the new ones: run them
            // again.
            Proof::Proven if self.s.tried <= self.s.config.max_steps => self.verify(),
            Proof::Proven => self.end(EndReason::Unproven),
            Proof::Failed | Proof::None => {
                if acts {
                    self.plan_again()
                } else {
                    self.end(EndReason::Unproven)
                }
            }
        }
    }

    fn plan_again(&mut self) {
        if !self.stalled() {
            self.next_step();
        }
    }
}
