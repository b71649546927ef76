//! What a summary must not lose: the task, the person's answers, the plan, changed files, commands
//! that worked. Collected by code, verbatim.

use crate::apply::within;
use crate::state::Question;
use crate::transcript::ends;
use dunnock_proto::{
    Answer, Asked, CallId, CallPart, CommandArgs, CommandText, Event, Finished, Outcome, Part,
    PlanStep, QuestionId, QuestionKind, Seq, Span, Step,
};
use std::fmt::Write as _;
use std::sync::Arc;

/// How many of the person's latest answers are repeated.
const ANSWERS: usize = 60;
/// How many of the latest commands that worked are repeated.
const COMMANDS: usize = 60;
/// The longest command that is repeated, in bytes. A longer one is a script that can be found in a
/// file, or writes one.
const COMMAND: usize = 300;

/// A fold over the events of a log that still count.
#[derive(Debug, Clone, Default)]
pub struct CompactionNotes {
    prompts: Vec<Arc<str>>,
    /// The calls of the last answer.
    calls: (Step, Vec<Arc<CallPart>>),
    asked: Vec<(QuestionId, String)>,
    answers: Vec<(String, String)>,
    plan: Vec<PlanStep>,
    /// Commands that exited with 0 when they last ran, in that order.
    commands: Vec<String>,
}

impl CompactionNotes {
    /// Folds in an event, if it still counts.
    pub fn add(&mut self, visible: &[Span], seq: Seq, event: &Event) {
        if !within(visible, seq) {
            return;
        }
        match event {
            Event::Prompted(e) if e.images.is_empty() => self.prompts.push(e.text.clone()),
            Event::Prompted(e) => {
                self.prompts
                    .push(format!("{}\n[images attached: {}]", e.text, e.images.len()).into());
            }
            Event::Planned(e) => self.plan.clone_from(&e.steps),
            Event::Answered(e) => self.calls = (e.step, Part::calls(&e.parts).cloned().collect()),
            Event::Asked(e) => {
                let text = self.question(e);
                self.asked.push((e.question, text));
            }
            Event::Replied(e) => self.replied(e.question, &e.answer, e.note.as_deref()),
            Event::Allowed(e) => {
                if let Some(args) = &e.args {
                    self.edited(e.call, args);
                }
            }
            Event::Finished(e) => self.finished(e),
            Event::Created(_)
            | Event::Forked(_)
            | Event::Moved(_)
            | Event::Configured(_)
            | Event::PreambleSet(_)
            | Event::Continued(_)
            | Event::StepStarted(_)
            | Event::OutboxWritten(_)
            | Event::StepFailed(_)
            | Event::TimerFired(_)
            | Event::Granted(_)
            | Event::Revoked(_)
            | Event::CheckCalled(_)
            | Event::Started(_)
            | Event::InterruptRequested(_)
            | Event::Ended(_)
            | Event::OwnerChanged(_)
            | Event::Checkpointed(_)
            | Event::Baselined(_)
            | Event::RewindRequested(_)
            | Event::Rewound(_)
            | Event::RewindFailed(_)
            | Event::CompactionStarted(_)
            | Event::Compacted(_)
            | Event::CompactionFailed(_)
            | Event::Titled(_)
            | Event::Noticed(_) => {}
        }
    }

    /// The person changed the arguments of a call.
    fn edited(&mut self, id: CallId, args: &str) {
        let (step, calls) = &mut self.calls;
        if *step == id.step
            && let Some(call) = calls.get_mut(usize::from(id.index))
        {
            *call = Arc::new(CallPart { args: args.into(), ..CallPart::clone(call) });
        }
    }

    /// Remembers a command that worked, and forgets one that no longer does.
    fn finished(&mut self, finished: &Finished) {
        let (step, calls) = &self.calls;
        let call = calls.get(usize::from(finished.call.index));
        let call = call.filter(|_| *step == finished.call.step);
        let Some(command) = call.and_then(|call| command(&call.args)) else { return };
        self.commands.retain(|known| *known != command);
        if finished.outcome == Outcome::Done && finished.exit == Some(0) {
            self.commands.push(command);
        }
        if self.commands.len() > COMMANDS {
            self.commands.remove(0);
        }
    }

    /// A question, worded for a reader who no longer sees the call it was about.
    fn question(&self, asked: &Asked) -> String {
        let view = asked.kind.view();
        let QuestionKind::Approval(approval) = &asked.kind else {
            return view.text.unwrap_or(view.heading);
        };
        let (step, calls) = &self.calls;
        let call =
            calls.get(usize::from(approval.call.index)).filter(|_| *step == approval.call.step);
        let call = call
            .map_or_else(|| view.heading.clone(), |call| format!("{} {}", call.tool, call.args));
        format!("{call} ({})", view.reasons.join("; "))
    }

    fn replied(&mut self, question: QuestionId, answer: &Answer, note: Option<&str>) {
        let Some(at) = self.asked.iter().position(|(asked, _)| *asked == question) else { return };
        let (_, asked) = self.asked.remove(at);
        let said = match answer {
            Answer::Yes | Answer::Wider | Answer::Always { .. } => "yes".to_owned(),
            Answer::No => "no".to_owned(),
            Answer::Edit { args } => format!("yes, with {args}"),
            Answer::Text { text } => text.to_string(),
        };
        let note = note.map_or_else(String::new, |note| format!(" ({note})"));
        self.answers.push((asked, said + &note));
        if self.answers.len() > ANSWERS {
            self.answers.remove(0);
        }
    }

    /// All notes as one text of about `room` bytes. The user's first and last prompts take
    /// precedence.
    #[must_use]
    pub fn text(&self, open: &[Question], changed: &[String], room: usize) -> String {
        let mut text = String::from(
            "The conversation up to here was replaced to free space in the context window. The \
             program, not a model, copied these notes word for word.\n",
        );
        text.push_str("\n# What the person asked, in order\n");
        for (n, prompt) in self.prompts(room / 2) {
            let _ = match prompt {
                Some(prompt) => writeln!(text, "{n}. {prompt}"),
                None => writeln!(text, "[{n} more, left out]"),
            };
        }
        if !self.answers.is_empty() {
            text.push_str("\n# What the person answered\n");
            let row = |(question, answer): &(String, String)| {
                format!("- {}\n  answer: {}", short(question, room / 40), short(answer, room / 40))
            };
            push_latest(&mut text, self.answers.iter().map(row), room / 8);
        }
        if !open.is_empty() {
            text.push_str("\n# Questions waiting for the person\n");
            for question in open {
                let known = self.asked.iter().find(|(id, _)| *id == question.id);
                let words =
                    known.map_or_else(|| question.kind.view().heading, |(_, words)| words.clone());
                let _ = writeln!(text, "- {} {}", question.id, short(&words, room / 40));
            }
        }
        if !self.plan.is_empty() {
            text.push_str("\n# The plan\n");
            let row = |step: &PlanStep| {
                let state = if step.state.is_empty() { "pending" } else { &step.state };
                format!("- [{state}] {}", short(&step.text, room / 40))
            };
            let kept = fitting(self.plan.iter().map(row).collect(), room / 8);
            kept.iter().for_each(|row| text.push_str(&format!("{row}\n")));
        }
        if !changed.is_empty() {
            text.push_str("\n# Files changed in this session\n");
            let kept = fitting(changed.iter().map(|path| format!("- {path}")).collect(), room / 8);
            kept.iter().for_each(|row| text.push_str(&format!("{row}\n")));
        }
        if !self.commands.is_empty() {
            text.push_str("\n# Commands that worked when they last ran\n");
            push_latest(&mut text, self.commands.iter().map(|line| format!("- {line}")), room / 8);
        }
        text
    }

    /// The prompts that fit, each with its number; `None` stands for omitted ones.
    fn prompts(&self, room: usize) -> Vec<(usize, Option<String>)> {
        let all = self.prompts.len();
        let mut left = room;
        let mut kept = vec![None; all];
        // The first prompt, then from the last to the second: the first and last say most about the
        // task.
        let order = (0..all.min(1)).chain((1..all).rev());
        for n in order {
            let prompt = &self.prompts[n];
            // A prompt that is too long loses its middle, and says so.
            let most = if n == 0 || n + 1 == all { room / 2 } else { left.min(room / 4) };
            let text = short(prompt, most);
            if text.len() > left && n != 0 && n + 1 != all {
                break;
            }
            left = left.saturating_sub(text.len());
            kept[n] = Some(text);
        }
        let mut rows = Vec::new();
        let gone = kept.iter().filter(|text| text.is_none()).count();
        for (n, text) in kept.into_iter().enumerate() {
            match text {
                Some(text) => rows.push((n + 1, Some(text))),
                None if rows
                    .last()
                    .is_some_and(|(_, text): &(usize, Option<String>)| text.is_some()) =>
                {
                    rows.push((gone, None));
                }
                None => {}
            }
        }
        rows
    }
}

/// The command of a call that runs one, if it is short and on one line.
fn command(args: &str) -> Option<String> {
    let CommandArgs { command, folder, .. } = CommandArgs::parse(args).ok()?;
    let line = match command {
        CommandText::Line(text) => text.trim().to_owned(),
        CommandText::Words(words) => words.join(" "),
    };
    let line = match folder {
        Some(folder) => format!("{line} (in {folder})"),
        None => line,
    };
    (line.len() <= COMMAND && !line.is_empty() && !line.contains('\n')).then_some(line)
}

/// Adds as many of the latest rows as fit, in their original order.
fn push_latest(text: &mut String, rows: impl DoubleEndedIterator<Item = String>, room: usize) {
    let mut kept = fitting(rows.rev().collect(), room);
    kept.reverse();
    kept.iter().for_each(|row| text.push_str(&format!("{row}\n")));
}

/// The rows that fit, and the number of those that do not.
fn fitting(rows: Vec<String>, room: usize) -> Vec<String> {
    let all = rows.len();
    let mut left = room.max(400);
    let mut kept: Vec<String> = Vec::new();
    for row in rows {
        let Some(less) = left.checked_sub(row.len() + 1) else { break };
        left = less;
        kept.push(row);
    }
    if kept.len() < all {
        kept.push(format!("- and {} more", all - kept.len()));
    }
    kept
}

fn short(text: &str, most: usize) -> String {
    if text.len() <= most.max(200) { text.to_owned() } else { ends(text, most.max(200), "") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dunnock_proto::{Answered, Hash, Planned, Prompted, QuestionKind, Replied, Stop, Usage};

    fn notes(facts: &[Event], room: usize) -> String {
        let mut collected = CompactionNotes::default();
        let visible = [Span { from: 1, to: 1000 }];
        for (seq, event) in (1..).zip(facts) {
            collected.add(&visible, seq, event);
        }
        collected.text(&[], &["src/a.rs".into()], room)
    }

    fn prompt(text: &str) -> Event {
        Prompted { text: text.into(), images: Vec::new() }.into()
    }

    #[test]
    fn task_answers_plan_and_files_are_told_word_for_word() {
        let asked = Asked {
            question: QuestionId(1),
            kind: QuestionKind::Person {
                call: CallId { step: Step(1), index: 0 },
                text: "tabs or blanks?".into(),
                choices: Vec::new(),
            },
            hash: Hash::ZERO,
        };
        let text = notes(
            &[
                prompt("rewrite the “parser”\nin Rust"),
                asked.into(),
                Replied {
                    question: QuestionId(1),
                    answer: Answer::Text { text: "tabs".into() },
                    note: None,
                }
                .into(),
                Planned { steps: vec![PlanStep { text: "read it".into(), state: "done".into() }] }
                    .into(),
                prompt("and the docs"),
            ],
            8_000,
        );
        for part in [
            "1. rewrite the “parser”\nin Rust\n",
            "2. and the docs",
            "tabs or blanks?\n  answer: tabs",
            "[done] read it",
            "- src/a.rs",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn commands_that_work_are_repeated_and_those_that_fail_later_are_not() {
        let run = |step: u32, args: &str, exit: i32| -> [Event; 2] {
            let outcome = if exit == 0 { Outcome::Done } else { Outcome::Failed };
            let call = CallPart {
                id: "c".into(),
                tool: "shell".into(),
                args: args.into(),
                sent: None,
                recovered: false,
                fault: None,
            };
            let id = CallId { step: Step(step), index: 0 };
            [
                Answered {
                    step: Step(step),
                    attempts: Vec::new(),
                    model: String::new(),
                    wire: String::new(),
                    parts: vec![Part::Call(Arc::new(call))],
                    stop: Stop::End,
                    usage: Usage::default(),
                    request: Hash::ZERO,
                    items: Vec::new(),
                    effort_refused: false,
                    raw: None,
                    server_tools: Vec::new(),
                }
                .into(),
                Finished { exit: Some(exit), ..Finished::plain(id, outcome, "") }.into(),
            ]
        };
        let runs = [
            run(1, r#"{"command":"make test"}"#, 0),
            run(2, r#"{"command":"make lint"}"#, 0),
            run(3, r#"{"command":["cargo","build"],"folder":"api"}"#, 0),
            run(4, r#"{"command":"make lint"}"#, 2),
            run(5, r#"{"command":"make test"}"#, 0),
            run(6, r#"{"command":"cat <<E\nx\nE"}"#, 0),
            run(7, r#"{"path":"src/a.rs"}"#, 0),
        ];
        let text = notes(&runs.concat(), 8_000);
        let (_, list) = text.split_once("# Commands that worked when they last ran\n").unwrap();
        assert_eq!(list, "- cargo build (in api)\n- make test\n");
    }

    #[test]
    fn the_first_and_the_last_prompt_stay_and_the_text_stays_short() {
        let many: Vec<Event> =
            (0..100).map(|n| prompt(&format!("wish {n} {}", "x".repeat(300)))).collect();
        let text = notes(&many, 4_000);
        assert!(
            text.contains("1. wish 0 ")
                && text.contains("100. wish 99 ")
                && text.contains("more, left out]"),
            "{text}"
        );
        assert!(text.len() < 5_000, "{}", text.len());
        let huge = notes(&[prompt(&format!("begin {} end", "y".repeat(1 << 20)))], 4_000);
        assert!(
            huge.contains("begin ") && huge.contains(" end") && huge.len() < 5_000,
            "{}",
            huge.len()
        );
    }
}
