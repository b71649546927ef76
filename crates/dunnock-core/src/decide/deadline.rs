//! A session with a deadline: the model learns how much time is left, and the work ends in time.
//!
//! Invariant: the time enters with each input (`DecideContext::at`), as the time that its events are
//! stored with, so a replay decides the same.

use super::Draft;
use crate::state::Phase;
use dunnock_proto::{Deadline, NoticeKind, Noticed};

/// At which percentages of the time the model gets a notice.
const TOLD: [u8; 4] = [0, 50, 80, LAST];
/// From here on there is one more request, to leave the best state that was checked.
const LAST: u8 = 95;
/// After a call of at least this many milliseconds, it gets one, too.
const LONG_CALL: u64 = 60_000;

impl Draft<'_> {
    /// Tells the model the time, if there is a deadline and a new part of it has begun.
    pub(super) fn tell_time(&mut self) {
        let (Some(deadline), false) = (self.s.config.deadline, self.is_idle()) else { return };
        if self.now.at >= deadline.until {
            return; // nothing more is sent
        }
        let percent = deadline.percent(self.now.at);
        let due = TOLD.iter().rev().find(|told| **told <= percent).copied().unwrap_or(0);
        if self.s.task.time_told.is_none_or(|told| told < due) {
            let left = left(deadline, self);
            let text = match due {
                LAST => format!(
                    "{left} This is your last answer: make no new attempts. Leave the best state \
                     that you have checked, and say what is done and what is not."
                ),
                80 => format!("{left} Finish what works and check it; begin nothing new."),
                _ => left,
            };
            let kind = NoticeKind::Time { percent: due, last: due == LAST };
            self.record(Noticed::of(kind, text));
        }
    }

    /// Tells the model the time after a call that took long.
    pub(super) fn tell_time_after(&mut self, ms: u64) {
        if let Some(deadline) = self.s.config.deadline
            && ms >= LONG_CALL
        {
            let text = format!("The call took {} s. {}", ms / 1_000, left(deadline, self));
            self.record(Noticed::plain(text));
        }
    }

    /// Whether no further request may start: the time is up, or the last request was made.
    pub(super) fn time_is_up(&self) -> bool {
        self.s.config.deadline.is_some_and(|deadline| self.now.at >= deadline.until)
            || self.s.task.last_made
    }

    fn is_idle(&self) -> bool {
        matches!(self.s.phase, Phase::Rest | Phase::Rewinding { .. })
    }
}

fn left(deadline: Deadline, draft: &Draft<'_>) -> String {
    let seconds = |ms: i64| format!("{} s", ms.max(0) / 1_000);
    let left = deadline.until.0.saturating_sub(draft.now.at.0);
    let all = deadline.until.0.saturating_sub(deadline.from.0);
    format!("Time left: {} of {}.", seconds(left), seconds(all))
}
