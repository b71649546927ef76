//! A model that is stuck: it repeats itself, and nothing changes.

use super::Draft;
use dunnock_proto::{NoticeKind, Noticed, QuestionKind};

/// After how many equal answers in a row the model is warned, and warned again with a list of its
/// calls.
const WARN_FIRST: u32 = 3;
const WARN_AGAIN: u32 = 6;
/// How many characters of the arguments that list shows.
const SHOWN_ARGS: usize = 200;

impl Draft<'_> {
    /// Handles an answer that repeated the same calls on the same files with the same results: the
    /// model is warned twice, then the person is asked. Returns whether that blocks the next step.
    pub(super) fn stalled(&mut self) -> bool {
        let (times, limit) = (self.s.progress.same + 1, self.s.config.stall_limit);
        // Where the checks decide and nobody watches, only the limit on steps ends the work.
        let config = &self.s.config;
        let asks = !config.unattended && (config.attended || !config.steps().check_each_step);
        match self.s.progress.warnings {
            _ if times == 1 => {}
            _ if asks && limit > 0 && times >= limit => {
                self.ask(QuestionKind::Stalled { times });
                return true;
            }
            0 if times >= WARN_FIRST => self.warn_of_stall(String::new()),
            1 if times >= WARN_AGAIN => {
                let calls = self.s.calls.iter().map(|call| {
                    let args: String = call.args().chars().take(SHOWN_ARGS).collect();
                    format!("\n- {} {args}", call.part.tool)
                });
                let calls: String = calls.collect();
                self.warn_of_stall(format!(
                    " You have now made these calls {times} times in a row:{calls}"
                ));
            }
            _ => {}
        }
        false
    }

    fn warn_of_stall(&mut self, calls: String) {
        let text = format!(
            "You are making no progress: the same calls gave the same results as before, and no \
             file changed. Try something else, or say what is blocking you.{calls}"
        );
        self.record(Noticed::of(NoticeKind::Stalled, text));
    }
}
