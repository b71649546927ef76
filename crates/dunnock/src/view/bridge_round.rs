//! The instructions for a round of a copy-and-paste session.

use crate::view::output;
use dunnock_proto::OutboxWritten;

/// Instructions for the user who copies and pastes a round.
pub(crate) fn round(handed: &OutboxWritten) -> String {
    let (step, outbox, inbox) =
        (handed.step, output::one_line(&handed.outbox), output::one_line(&handed.inbox));
    let more = match handed.parts {
        0 | 1 => String::new(),
        2 => " and then its second part".to_owned(),
        parts => format!(" and then its {} other parts, in order,", parts - 1),
    };
    format!(
        "Round {step}: paste {outbox}{more} into your chat\n         and save its answer as \
         {inbox}"
    )
}
