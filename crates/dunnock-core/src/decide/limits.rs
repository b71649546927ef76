//! What holds the next step back: a budget that does not cover it, a window that is too full for it, a model that goes in circles.

use super::Draft;
use dunnock_proto::{Noticed, QuestionKind, Reserved, Seq, Strength};

impl Draft<'_> {
    /// Whether a request that holds this back would go beyond what the session, or the day, may use.
    pub(super) fn breaks_budget(&self, reserved: Reserved) -> bool {
        let (s, budget) = (&self.s, &self.s.config.budget);
        let over = |bound: Option<u64>, used: u64| bound.is_some_and(|b| used > b.saturating_mul(1 + s.extended));
        over(budget.tokens, s.spent.tokens.saturating_add(reserved.tokens))
            || over(budget.micros, s.spent.micros.saturating_add(reserved.micros))
            || over(budget.ms, s.spent.ms)
            || (budget.micros.is_some() && s.config.price.is_none())
            || (!s.day_waived
                && self.now.day_left.is_some_and(|left| {
                    let left = left.saturating_sub(s.spent.micros.saturating_sub(self.spent));
                    reserved.micros > left || s.config.price.is_none()
                }))
    }

    /// How hard and up to where conversation must be compacted before the next step, if it must. The last steps are left alone as
    /// far as they are short, unless the request has already proved too long.
    pub(super) fn must_shrink(&self) -> Option<(Strength, Seq)> {
        let s = &self.s;
        // Shortening that leaves little room is followed by a summary at once: it would be full again after a step or two.
        let (strength, bar) = match s.compacted {
            None => (Strength::Shorten, u64::from(s.config.compact_at)),
            Some(Strength::Shorten) => (Strength::Summarise, u64::from(s.config.compact_at) * 4 / 5),
            Some(Strength::Summarise) => return None,
        };
        // Where the conversation itself is short, the rest is in the way, and shrinking would not help.
        let full = s.window().is_some_and(|window| {
            let need = s.reserve().tokens.saturating_mul(100);
            need > window.saturating_mul(bar) && s.context.saturating_mul(8) >= window
        });
        if !(full || s.overflowed) {
            return None;
        }
        let short = |then: u64| s.window().is_none_or(|window| s.context.saturating_sub(then) <= window / 8);
        let first = s.bounds.iter().find(|(_, then)| !s.overflowed && short(*then));
        first.or(s.bounds.last()).map(|(upto, _)| (strength, *upto))
    }

    /// Whether a request that did not fit can be made shorter.
    pub(super) fn can_shrink(&self) -> bool {
        self.s.overflowed && self.must_shrink().is_some()
    }

    /// The same calls on the same files gave the same results again: the model is told once, then the person is asked.
    /// Whether that holds the next step.
    pub(super) fn stalled(&mut self) -> bool {
        match (self.s.progress.same, self.s.progress.warned) {
            (0, _) | (1, true) => false,
            // A planner that nobody attends to ends at its limit, and nowhere else.
            (_, true) if self.s.config.planner.is_some() && !self.s.config.attended => false,
            (_, false) => {
                let text = "Nothing changed: the files are as they were, and the same calls gave the same results as before. Do \
                            something else, or say what keeps you from going on.";
                self.record(Noticed { stalled: true, ..Noticed::plain(text) });
                false
            }
            (same, true) => {
                self.ask(QuestionKind::Stalled { times: same + 1 });
                true
            }
        }
    }
}
