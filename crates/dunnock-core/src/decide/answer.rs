//! What came of work: the model's answer, the end of a call, and every other report.

use super::Draft;
use crate::input::Work;
use crate::state::{Phase, Stage};
use dunnock_proto::{CompactFailed, Failure, Headed, Owner, Refused, Reserved, RewindFailed, Rewound, Why, Woken};

impl Draft<'_> {
    pub(super) fn report(&mut self, owner: Owner, work: Work) -> Result<(), Refused> {
        let thinking = self.s.phase == Phase::Thinking;
        match work {
            Work::Headed(head) if !self.s.head_fits() && head.model == self.s.config.model => {
                self.record(Headed { head });
            }
            Work::HeadFailed { model, error }
                if self.s.due()
                    && !self.s.head_fits()
                    && self.s.questions.is_empty()
                    && model == self.s.config.model =>
            {
                self.end_held(Why::Failed { error });
            }
            Work::HandedOver(handed)
                if thinking && handed.turn == self.s.turn && self.s.carried().is_none() && !self.s.stopping =>
            {
                self.record(handed);
            }
            Work::Answer(answer, previews) if thinking && answer.turn == self.s.turn => {
                self.record(answer);
                if self.s.stopping { self.drop_unbegun() } else { self.judge_calls(previews) }
            }
            Work::Failed(mut failed) if thinking && failed.turn == self.s.turn => {
                // An answer that broke off was paid for, and the server had no chance to say how much.
                if failed.broke {
                    failed.lost = self.s.unknown_beyond(&failed.usage);
                }
                let error = failed.error.clone();
                let (again, cut) = (failed.retry_at.is_some(), failed.failure == Failure::Cut);
                self.record(failed);
                if !again && !self.s.stopping && !self.can_shrink() {
                    let why = if cut { Why::Stopped } else { Why::Failed { error } };
                    self.end(why);
                }
            }
            Work::Output(finished) if self.s.call(finished.call).map(|c| c.stage) == Some(Stage::Started(owner)) => {
                self.record(finished);
            }
            Work::Checkpointed(kept) if self.s.dirty == Some(kept.mark) => {
                let lost = kept.tree.is_none() && matches!(self.s.phase, Phase::Rewinding { .. });
                let note = kept.note.clone().unwrap_or_default();
                self.record(kept);
                if lost {
                    // Without the files of now there would be no way back from the rewind.
                    let error = format!("the files as they are could not be kept first: {note}");
                    self.record(RewindFailed { error });
                }
            }
            Work::Rewound(rewound) if self.restoring() => {
                let spans = self.rewound_spans();
                self.record(Rewound { spans, ..rewound });
                self.tell_of_rewind();
            }
            Work::RewindFailed(failed) if self.restoring() => self.record(failed),
            Work::Baselined(done) if self.s.baseline_due() == Some(&done.tree) && done.of == self.s.checks() => {
                self.record(done);
            }
            Work::Compacted(done) if self.compacting(done.upto) => {
                let stopped = self.s.stopping;
                if done.after < done.before {
                    self.record(done);
                } else {
                    let error = format!("it would not have become shorter: {} bytes, then {}", done.before, done.after);
                    self.record(CompactFailed { usage: done.usage, ..CompactFailed::because(error) });
                }
                self.after_shrinking(stopped);
            }
            Work::CompactFailed(failed) if matches!(self.s.phase, Phase::Compacting { .. }) => {
                let stopped = self.s.stopping;
                let lost = if failed.broke { self.s.unknown_beyond(&failed.usage) } else { Reserved::default() };
                self.record(CompactFailed { lost, ..failed });
                self.after_shrinking(stopped);
            }
            Work::Woken(at) if self.s.wake == Some(at) => self.record(Woken { at }),
            Work::Noticed(noticed) => self.record(noticed),
            // Late and repeated reports are normal after an interrupt or a takeover.
            Work::Headed(_)
            | Work::HeadFailed { .. }
            | Work::HandedOver(_)
            | Work::Answer(..)
            | Work::Failed(_)
            | Work::Output(_)
            | Work::Checkpointed(_)
            | Work::Rewound(_)
            | Work::RewindFailed(_)
            | Work::Baselined(_)
            | Work::Compacted(_)
            | Work::CompactFailed(_)
            | Work::Woken(_) => return Err(Refused::Late),
        }
        Ok(())
    }

    /// An interrupt stops the turn that was due behind a compaction, too.
    pub(super) fn after_shrinking(&mut self, stopped: bool) {
        if stopped && self.s.phase == Phase::Ready {
            self.end_held(Why::Stopped);
        }
    }

    pub(super) fn restoring(&self) -> bool {
        matches!(self.s.phase, Phase::Rewinding { .. }) && self.s.dirty.is_none()
    }

    pub(super) fn compacting(&self, upto: u64) -> bool {
        matches!(self.s.phase, Phase::Compacting { upto: at, .. } if at == upto)
    }
}
