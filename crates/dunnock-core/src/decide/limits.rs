//! What prevents the next step: a budget that does not cover it, or a context window that is too
//! full.

use super::Draft;
use dunnock_proto::{Reserved, Seq, Strength};

impl Draft<'_> {
    /// Whether a request with this reservation would exceed the limit of the session or of the day.
    pub(super) fn breaks_budget(&self, reserved: Reserved) -> bool {
        let (s, budget) = (&self.s, &self.s.config.budget);
        let over = |bound: Option<u64>, used: u64| {
            bound.is_some_and(|b| used > b.saturating_mul(1 + s.extended))
        };
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

    /// How strongly and up to which event the conversation must be compacted before the next step,
    /// if at all. The last steps are left alone if they are short, unless the request has already
    /// proved too long.
    pub(super) fn must_shrink(&self) -> Option<(Strength, Seq)> {
        let s = &self.s;
        // If shortening frees little space, a summary follows at once: the window would be full
        // again after a step or two.
        let (strength, bar) = match s.compacted {
            None => (Strength::Shorten, u64::from(s.config.compact_at)),
            Some(Strength::Shorten) => {
                (Strength::Summarise, u64::from(s.config.compact_at) * 4 / 5)
            }
            Some(Strength::Summarise) => return None,
        };
        // If the conversation itself is short, something else fills the window, and compacting
        // would not help.
        let full = s.window().is_some_and(|window| {
            let need = s.reserve().tokens.saturating_mul(100);
            need > window.saturating_mul(bar) && s.context.saturating_mul(8) >= window
        });
        if !(full || s.overflowed) {
            return None;
        }
        let short = |then: u64| {
            s.window().is_none_or(|window| s.context.saturating_sub(then) <= window / 8)
        };
        let first = s.bounds.iter().find(|(_, then)| !s.overflowed && short(*then));
        first.or(s.bounds.last()).map(|(upto, _)| (strength, *upto))
    }

    /// Whether a request that did not fit can be compacted.
    pub(super) fn can_shrink(&self) -> bool {
        self.s.overflowed && self.must_shrink().is_some()
    }
}
