//! Results of work: the model's answer, the end of a call, and all other reports.

use super::Draft;
use crate::input::EffectOutcome as Outcome;
use crate::state::{Phase, Stage};
use dunnock_proto::{
    CompactionFailed, EndReason, Failure, Outcome as Ended, Owner, PreambleSet, Refused, Reserved,
    RewindFailed, Rewound, TimerFired,
};

impl Draft<'_> {
    pub(super) fn report(&mut self, owner: Owner, work: Outcome) -> Result<(), Refused> {
        let thinking = self.s.phase == Phase::Thinking;
        match work {
            Outcome::PreambleSet(preamble)
                if !self.s.preamble_fits() && preamble.model == self.s.config.model =>
            {
                self.record(PreambleSet { preamble });
            }
            Outcome::PreambleFailed { model, error }
                if self.s.due()
                    && !self.s.preamble_fits()
                    && self.s.questions.is_empty()
                    && model == self.s.config.model =>
            {
                self.end_held(EndReason::Failed { error });
            }
            Outcome::OutboxWritten(handed)
                if thinking
                    && handed.step == self.s.step
                    && self.s.awaiting_reply().is_none()
                    && !self.s.stopping =>
            {
                self.record(handed);
            }
            Outcome::Answer(answer, previews) if thinking && answer.step == self.s.step => {
                self.record(answer);
                if self.s.stopping { self.drop_unbegun() } else { self.judge_calls(previews) }
            }
            Outcome::Failed(mut failed) if thinking && failed.step == self.s.step => {
                // An answer that was cut off was paid for, but the server could not report its
                // usage.
                if failed.incomplete {
                    failed.lost = self.s.unknown_beyond(&failed.usage);
                }
                let error = failed.error.clone();
                let (again, interrupted) =
                    (failed.retry_at.is_some(), failed.failure == Failure::Interrupted);
                let no_answer = failed.no_answer;
                self.record(failed);
                let ends = !again && !self.s.stopping && !self.can_shrink();
                if ends && !self.continues_without_answer(no_answer) {
                    let why =
                        if interrupted { EndReason::Stopped } else { EndReason::Failed { error } };
                    self.end(why);
                }
            }
            Outcome::Output(mut finished)
                if self.s.call(finished.call).map(|c| c.stage) == Some(Stage::Started(owner)) =>
            {
                self.limit_images(&mut finished);
                let ms = finished.ms;
                let unknown = (finished.outcome == Ended::Unknown).then_some(finished.call);
                self.record(finished);
                self.tell_time_after(ms);
                self.ask(self.s.asks_to_continue(unknown));
            }
            Outcome::Checkpointed(kept) if self.s.dirty == Some(kept.mark) => {
                let lost = kept.tree.is_none() && matches!(self.s.phase, Phase::Rewinding { .. });
                let note = kept.note.clone().unwrap_or_default();
                self.record(kept);
                if lost {
                    // Without a checkpoint of the current files, the rewind could not be undone.
                    let error = format!(
                        "a checkpoint of the current files could not be saved first: {note}"
                    );
                    self.record(RewindFailed { error });
                }
            }
            Outcome::Rewound(rewound) if self.restoring() => {
                let spans = self.rewound_spans();
                self.record(Rewound { spans, ..rewound });
                self.tell_of_rewind();
            }
            Outcome::RewindFailed(failed) if self.restoring() => self.record(failed),
            Outcome::Baselined(done)
                if self.s.baseline_due() == Some(&done.tree) && done.of == self.s.checks() =>
            {
                self.record(done);
            }
            Outcome::Compacted(done) if self.compacting(done.upto) => {
                let stopped = self.s.stopping;
                if done.after < done.before {
                    self.record(done);
                } else {
                    let error = format!(
                        "it would not be shorter: {} bytes before, {} after",
                        done.before, done.after
                    );
                    self.record(CompactionFailed {
                        usage: done.usage,
                        ..CompactionFailed::because(error)
                    });
                }
                self.after_shrinking(stopped);
            }
            Outcome::CompactionFailed(failed)
                if matches!(self.s.phase, Phase::Compacting { .. }) =>
            {
                let stopped = self.s.stopping;
                let lost = if failed.incomplete {
                    self.s.unknown_beyond(&failed.usage)
                } else {
                    Reserved::default()
                };
                self.record(CompactionFailed { lost, ..failed });
                self.after_shrinking(stopped);
            }
            Outcome::TimerFired(at) if self.s.wake == Some(at) => self.record(TimerFired { at }),
            Outcome::Noticed(noticed) => self.record(noticed),
            // Late and repeated reports are normal after an interrupt or a takeover.
            Outcome::PreambleSet(_)
            | Outcome::PreambleFailed { .. }
            | Outcome::OutboxWritten(_)
            | Outcome::Answer(..)
            | Outcome::Failed(_)
            | Outcome::Output(_)
            | Outcome::Checkpointed(_)
            | Outcome::Rewound(_)
            | Outcome::RewindFailed(_)
            | Outcome::Baselined(_)
            | Outcome::Compacted(_)
            | Outcome::CompactionFailed(_)
            | Outcome::TimerFired(_) => return Err(Refused::NotRunning),
        }
        Ok(())
    }

    /// An interrupt also stops the step that was due after a compaction.
    pub(super) fn after_shrinking(&mut self, stopped: bool) {
        if stopped && self.s.phase == Phase::Ready {
            self.end_held(EndReason::Stopped);
        }
    }

    pub(super) fn restoring(&self) -> bool {
        matches!(self.s.phase, Phase::Rewinding { .. }) && self.s.dirty.is_none()
    }

    pub(super) fn compacting(&self, upto: u64) -> bool {
        matches!(self.s.phase, Phase::Compacting { upto: at, .. } if at == upto)
    }
}
