//! Interrupts: what has not started ends, what runs will still report.

use super::Draft;
use crate::state::{Phase, Stage};
use dunnock_proto::{EndReason, InterruptRequested, Outcome};

impl Draft<'_> {
    /// Stops all work in progress. What has not started ends now; what is running will still
    /// report.
    pub(super) fn stop(&mut self) {
        let waited = self.s.phase == Phase::Ready;
        self.record(InterruptRequested {});
        self.drop_unbegun();
        if waited {
            self.end_held(EndReason::Stopped);
        }
    }

    /// Calls that no process has started will never run.
    pub(super) fn drop_unbegun(&mut self) {
        for call in self.s.calls.clone() {
            if matches!(call.stage, Stage::Asked | Stage::Allowed) {
                self.finish(call.id, Outcome::NotRun, "not run: the person interrupted");
            }
        }
    }
}
