//! Events as text. Totals over events are in `tally.rs`.

use crate::view::output;
use dunnock_core::State;
use dunnock_core::patch::Patch;
use dunnock_proto::{
    CallId, CallPart, Decoded, EndReason, Event, Form, Outcome, Part, QuestionKind, QuestionView,
    Record, Scope, VerifyArgs,
};

/// Describes an event; `None` for events that do not concern the user.
pub(crate) fn describe_event(record: &Record) -> Option<String> {
    let event = match record.decode() {
        Decoded::Known(event) => event,
        Decoded::Unknown(why) => {
            return Some(output::visible(&format!("? {} ({why})", record.envelope.kind)));
        }
    };
    let text = match event {
        Event::Created(e) => {
            format!(
                "session in {}, {}, with {}",
                e.workspace,
                output::time(record.envelope.at),
                model(&e.config.model)
            )
        }
        Event::Forked(e) => format!("forked from {} at event {}", e.from, e.at),
        Event::Prompted(e) => format!("\n> {}", e.text),
        Event::Continued(_) => "\n> (continue)".into(),
        Event::Answered(e) => {
            let mut index = 0;
            let parts = e.parts.iter().filter_map(|part| match part {
                Part::Text { text } => Some(text.to_string()),
                Part::Call(call) => {
                    let id = CallId { step: e.step, index };
                    index += 1;
                    Some(format!(
                        "  {id} {}  {}",
                        output::one_line(&call.tool),
                        output::one_line(&gist(call))
                    ))
                }
                Part::Reasoning { .. } => None,
            });
            let parts: Vec<String> = parts.collect();
            if parts.is_empty() {
                return None;
            }
            parts.join("\n")
        }
        Event::StepFailed(e) if e.retry_at.is_some() => format!("  {}", e.error),
        Event::StepFailed(e) => format!("  the model request failed: {}", e.error),
        Event::Asked(e) => {
            let view = e.kind.view();
            let call = e.kind.call().map_or_else(String::new, |call| format!(" ({call})"));
            let ours = e.kind.call().is_none();
            let text = view
                .text
                .iter()
                .map(|text| if ours { format!("    {text}") } else { behind_bar(text) });
            let rows = facts(&view).into_iter().map(|row| format!("  {row}"));
            let rest: Vec<String> = text.chain(rows).collect();
            format!("  {} asked: {}{call}\n{}", e.question, view.heading, rest.join("\n"))
        }
        Event::Replied(e) => {
            let note = e.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
            format!("  {} answered: {}{note}", e.question, answer(&e.answer))
        }
        Event::Finished(e) if e.outcome == Outcome::Done && e.shown.as_ref() == "noted" => {
            return None;
        }
        Event::Finished(e) => {
            let body = e.shown.trim_end().replace('\n', "\n    ");
            format!(
                "  {} {}{}",
                e.call,
                outcome(&e.outcome),
                if body.is_empty() { String::new() } else { format!(":\n    {body}") }
            )
        }
        Event::CheckCalled(e) => format!(
            "  {} check  {}",
            e.call,
            VerifyArgs::parse(&e.args).map_or_else(|_| e.args.to_string(), |a| a.command)
        ),
        Event::Configured(e) => {
            format!("  settings: {}", serde_json::to_string(&e.set).unwrap_or_default())
        }
        Event::InterruptRequested(_) => "  interrupted".into(),
        Event::Checkpointed(e) => format!("  files: {}", e.note?),
        Event::RewindRequested(e) => format!("\n> (rewind: {})", scope(e.scope)),
        Event::Rewound(e) => {
            format!("  rewound{}", e.note.map_or_else(String::new, |note| format!("; {note}")))
        }
        Event::RewindFailed(e) => format!("  could not rewind: {}", e.error),
        Event::PreambleSet(e)
            if e.preamble.first_changed.is_some() || e.preamble.reason != "start" =>
        {
            format!(
                "  new instructions: {}{}",
                e.preamble.reason,
                from_byte(e.preamble.first_changed)
            )
        }
        Event::Compacted(e) => format!(
            "  conversation {}, from {} to {} bytes; instructions {}",
            if e.summary.is_some() { "summarised" } else { "shortened" },
            e.before,
            e.after,
            e.preamble
                .first_changed
                .map_or_else(|| "unchanged".into(), |byte| format!("changed from byte {byte} on"))
        ),
        Event::CompactionFailed(e) => {
            format!("  the conversation could not be compacted: {}", e.error)
        }
        Event::Moved(e) => format!("moved to {}", e.workspace),
        Event::Baselined(e) => {
            let checks = e.checks.iter().map(|c| {
                let how = if c.outcome == Outcome::Done { "passed" } else { "failed" };
                format!("  before the work, `{}` {how}", c.command)
            });
            let note = e.note.iter().map(|note| format!("  before the work: {note}"));
            checks.chain(note).collect::<Vec<_>>().join("\n")
        }
        Event::Ended(e) => format!("ended: {}", why(&e.reason)),
        Event::Titled(e) => format!("titled {}", e.title),
        Event::Noticed(e) => format!("  note: {}", e.text),
        _ => return None,
    };
    Some(output::visible(&text))
}

/// Where new instructions start to differ from the previous ones, if they do.
pub(crate) fn from_byte(first: Option<u64>) -> String {
    first.map_or_else(String::new, |byte| format!(", changed from byte {byte} on"))
}

/// The scope of a rewind.
pub(crate) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Files => "files",
        Scope::Conversation => "conversation",
        Scope::Both => "files and conversation",
    }
}

fn model(name: &str) -> &str {
    if name.is_empty() { "no model" } else { name }
}

/// The answer as text.
pub(crate) fn answer(answer: &dunnock_proto::Answer) -> String {
    use dunnock_proto::Answer;
    match answer {
        Answer::Yes => "yes".into(),
        Answer::No => "no".into(),
        Answer::Wider => "yes, with the whole network".into(),
        Answer::Always { rule } => {
            format!("yes, always for {}", rule.words())
        }
        Answer::Edit { args } => format!("yes, edited to {args}"),
        Answer::Text { text } => text.to_string(),
    }
}

pub(crate) fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Declined { .. } => "declined",
        Outcome::Interrupted => "interrupted",
        Outcome::NotRun => "not run",
        Outcome::Unknown => "outcome unknown",
    }
}

pub(crate) fn why(why: &EndReason) -> String {
    match why {
        EndReason::Done => "done".into(),
        EndReason::Stopped => "stopped".into(),
        EndReason::Failed { error } => format!("failed: {error}"),
        EndReason::Limit => "the step limit was reached".into(),
        EndReason::Budget => "the budget was used up".into(),
        EndReason::Unproven => "verification failed".into(),
        EndReason::Deadline => "the deadline has come".into(),
    }
}

/// The most informative argument of a call; for a patch its files, as parsed by the policy and the
/// tool.
pub(crate) fn gist(call: &CallPart) -> String {
    let patch = || {
        let args = dunnock_proto::PathArgs::parse(&call.args).ok()?;
        let patch = Patch::parse(args.patch.as_deref()?).ok()?;
        Some(patch.paths().collect::<Vec<_>>().join(", "))
    };
    let of_patch = dunnock_tui::words::view(&call.tool)
        .is_some_and(|view| view.summary.iter().any(|piece| piece.form == Form::PatchedFiles));
    match of_patch {
        true => patch().unwrap_or_else(|| call.args.to_string()),
        false => dunnock_tui::words::gist(call),
    }
}

/// A question as shown to the user. Text from the model is behind a bar, so that it cannot pass for
/// ours.
pub(crate) fn question(s: &State, question: &dunnock_core::Question) -> String {
    let view = question.kind.view();
    let mut lines = vec![output::one_line(&view.heading)];
    match question.kind.as_ref() {
        QuestionKind::Approval(approval) => {
            if let Some(call) = s.call(approval.call) {
                let part = CallPart { args: call.args().clone(), ..call.part.as_ref().clone() };
                lines.push(format!("  {} {}", approval.call, output::one_line(&part.tool)));
                lines.push(behind_bar(&exact(&part)));
            }
            lines.push(format!(
                "  in: {}",
                output::one_line(s.workspace.as_deref().unwrap_or_default())
            ));
            lines.extend(facts(&view));
        }
        QuestionKind::Person { .. } => lines.push(behind_bar(&view.text.unwrap_or_default())),
        QuestionKind::Unknown { .. }
        | QuestionKind::Limit { .. }
        | QuestionKind::Budget
        | QuestionKind::Stalled { .. }
        | QuestionKind::Trust { .. } => {
            lines.push(format!("  {}", output::visible(&view.text.unwrap_or_default())));
        }
    }
    let choices = question.kind.choices().iter().enumerate();
    lines.extend(choices.map(|(n, choice)| format!("  {}. {}", n + 1, output::one_line(choice))));
    lines.join("\n")
}

/// Rows about a waiting call: why it needs approval, what approval grants, its sandbox, what would
/// be lost, and the rule that "always" would save.
fn facts(view: &QuestionView) -> Vec<String> {
    let rows = |name: &'static str, values: &[String]| -> Vec<String> {
        values.iter().map(|value| format!("  {name}: {}", output::one_line(value))).collect()
    };
    [
        rows("why", &view.reasons),
        rows("grants", &view.access),
        rows("or", view.wider.as_slice()),
        rows("sandbox", view.isolation.as_slice()),
        rows("effect", &view.preview),
        rows("always", view.rule.as_slice()),
    ]
    .concat()
}

/// Text from the model. Tabs are escaped like other control characters: they could move a part of
/// the text out of sight.
fn behind_bar(text: &str) -> String {
    let text = output::visible(text).replace('\t', "\\u{9}");
    let lines: Vec<String> = text.lines().map(|line| format!("  │ {line}")).collect();
    lines.join("\n")
}

/// Everything that would run: the command line verbatim, and every other argument with its name.
fn exact(call: &CallPart) -> String {
    let row = |(key, value): (Option<String>, String)| match key {
        Some(key) => format!("{key}: {value}"),
        None => value,
    };
    dunnock_tui::words::shown_arguments(call).into_iter().map(row).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RED-L9: tabs moved the end of a command out of sight.
    #[test]
    fn tabs_in_a_question_are_shown() {
        let text = format!("ls{}; rm x\n\ty\u{1b}[2K", "\t".repeat(3));
        assert_eq!(behind_bar(&text), "  │ ls\\u{9}\\u{9}\\u{9}; rm x\n  │ \\u{9}y\\u{1b}[2K");
    }

    #[test]
    fn a_call_is_told_by_what_it_is_about() {
        let gist_of = |tool: &str, args: serde_json::Value| {
            gist(&CallPart {
                id: "c".into(),
                tool: tool.into(),
                args: args.to_string().into(),
                sent: None,
                recovered: false,
                fault: None,
            })
        };
        let patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Update File: b\n*** Move to: \
                     c\n-x\n+y\n*** End Patch";
        assert_eq!(gist_of("apply_patch", serde_json::json!({ "patch": patch })), "a.txt, b, c");
        assert_eq!(gist_of("move_file", serde_json::json!({"path": "a", "to": "b"})), "a to b");
        assert_eq!(gist_of("git_status", serde_json::json!({})), "");
        assert_eq!(
            gist_of("git_diff", serde_json::json!({"path": "src", "commit": "HEAD~1"})),
            "HEAD~1 src"
        );
        // What cannot be read is shown as it is.
        assert!(gist_of("apply_patch", serde_json::json!({"patch": "x"})).contains("patch"));
    }
}
