//! A session as text: the answer on standard output, progress on standard error.

use crate::view::describe::{self, gist};
use crate::view::exit::{Exit, ExitReason, Freshness};
use crate::view::tally::Tally;
use crate::view::{bridge_round, output};
use dunnock_core::{Question, State};
use dunnock_model::{InboxState, brought};
use dunnock_proto::{
    Delta, Event, Finished, Isolation, Mode, NoticeKind, Outcome, Part, Partial, QuestionId,
    Sandbox, SessionId, Step, count,
};
use std::io::IsTerminal as _;

/// Questions that are shown in full when many are waiting.
pub(crate) const MOST_SHOWN: usize = 5;

/// Lines of a command's output that are shown.
const OUTPUT: usize = 5;

/// How much of a step's text is on the screen.
#[derive(Debug, Clone, Copy)]
struct Shown {
    step: Step,
    attempt: u32,
    bytes: u64,
    /// Shown from the first word on, without a gap.
    whole: bool,
}

/// The text view, and what it has already shown.
pub(crate) struct Plain {
    session: SessionId,
    /// Text is streamed to standard output.
    streams: bool,
    /// The step whose text was last shown.
    shown: Option<Shown>,
    /// The output is at the start of a line.
    at_start: bool,
    dim: (&'static str, &'static str),
    /// Questions that have been shown.
    asked: Vec<QuestionId>,
    /// A user is present, who sees each question when it is asked.
    attended: bool,
}

impl Plain {
    pub(crate) fn new(session: SessionId, attended: bool) -> Self {
        let colour = std::io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Self {
            session,
            streams: std::io::stdout().is_terminal(),
            shown: None,
            at_start: true,
            dim: if colour { ("\x1b[2m", "\x1b[0m") } else { ("", "") },
            asked: Vec::new(),
            attended,
        }
    }

    fn quiet(&mut self, text: &str) {
        self.end_line();
        output::aside(&format!("{}{text}{}", self.dim.0, self.dim.1));
    }

    fn end_line(&mut self) {
        if !self.at_start {
            output::piece("\n");
            self.at_start = true;
        }
    }

    /// The first line.
    pub(crate) fn begin(&mut self, s: &State, level: Isolation) {
        let confined = match (s.config.mode, level) {
            (Mode::All, Isolation::D) if s.config.sandbox == Sandbox::Off => {
                "no sandbox (level D): commands run without approval".to_owned()
            }
            (Mode::Read, _) => "read-only".to_owned(),
            (Mode::Ask | Mode::Edits | Mode::Auto | Mode::All, Isolation::D) => {
                "no sandbox (level D): commands need approval".to_owned()
            }
            (Mode::Auto | Mode::All, level) if s.lowered_at(level).is_some() => {
                format!("sandbox level {level:?}, weaker than before: commands need approval")
            }
            (Mode::All, level) => format!("sandbox level {level:?}, never asks"),
            (Mode::Ask | Mode::Edits, level) => {
                format!("sandbox level {level:?}, commands need approval")
            }
            (Mode::Auto, level) => format!("sandbox level {level:?}"),
        };
        let files =
            if s.config.reaches_machine() { "; file tools reach the whole machine" } else { "" };
        let (app, id, model) =
            (crate::APP, output::id(&self.session), output::one_line(&s.config.model));
        self.quiet(&format!("dunnock {app} · {model} · session {id} · {confined}{files}"));
    }

    pub(crate) fn fact(&mut self, s: &State, event: &Event) {
        match event {
            Event::Answered(e) => {
                let text = Part::words(&e.parts);
                let more = Part::calls(&e.parts).next().is_some();
                if self.shown.is_some_and(|s| s.step == e.step) {
                    self.end_line();
                } else if more && !text.trim().is_empty() {
                    self.quiet(&output::visible(text.trim()));
                }
            }
            Event::OutboxWritten(e) => {
                self.end_line();
                output::line(&bridge_round::round(e));
            }
            // Announce only commands, which run one at a time; other calls are shown when they
            // finish.
            Event::Started(e) => {
                if let Some(call) = s.call(e.call).filter(|c| is_command(c)) {
                    let what = if call.harness { check(&call.part.args) } else { gist(&call.part) };
                    let tool = if call.harness { "check" } else { call.part.tool.as_str() };
                    self.quiet(&format!(
                        "• {tool}  {}",
                        output::short(&output::one_line(&what), 160)
                    ));
                }
            }
            Event::Finished(e) => self.finished(s, e),
            Event::Planned(e) => {
                let mark = |state: &str| match state {
                    "done" => "x",
                    "active" => ">",
                    _ => " ",
                };
                let steps: Vec<String> = e
                    .steps
                    .iter()
                    .map(|p| format!("  [{}] {}", mark(&p.state), output::one_line(&p.text)))
                    .collect();
                self.quiet(&format!("• plan\n{}", steps.join("\n")));
            }
            Event::Asked(e) if !self.attended => {
                if let Some(asked) = s.question(e.question) {
                    self.ask(s, asked);
                }
            }
            Event::StepFailed(e) if e.retry_at.is_some() => {
                self.quiet(&format!("  {}", output::one_line(&e.error)))
            }
            Event::Compacted(e) => {
                let how = if e.summary.is_some() { "summarised" } else { "shortened" };
                let head = describe::from_byte(e.preamble.first_changed);
                let head = if head.is_empty() { head } else { format!("; instructions{head}") };
                self.quiet(&format!(
                    "  conversation {how}, from {} to {} bytes{head}",
                    e.before, e.after
                ));
            }
            Event::CompactionFailed(e) => self.quiet(&format!(
                "  the conversation could not be compacted: {}",
                output::one_line(&e.error)
            )),
            Event::PreambleSet(e) if e.preamble.reason != "start" => {
                let (why, from) = (
                    output::one_line(&e.preamble.reason),
                    describe::from_byte(e.preamble.first_changed),
                );
                self.quiet(&format!("  new instructions: {why}{from}"));
            }
            Event::Noticed(e) if !e.sources.is_empty() || e.kind != NoticeKind::Info => {
                let first = e.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                self.quiet(&format!(
                    "  note to the model: {}",
                    output::short(&output::one_line(first), 200)
                ));
            }
            Event::Baselined(e) => {
                for check in e.checks.iter().filter(|check| check.outcome != Outcome::Done) {
                    self.quiet(&format!(
                        "  before the work, `{}` fails",
                        output::one_line(&check.command)
                    ));
                }
            }
            Event::InterruptRequested(_) => self.quiet("  stopping"),
            Event::Checkpointed(e) => {
                if let Some(note) = &e.note {
                    self.quiet(&format!("  {}", output::one_line(note)));
                }
            }
            _ => {}
        }
    }

    /// Shows a question.
    pub(crate) fn ask(&mut self, s: &State, question: &Question) {
        self.end_line();
        self.asked.push(question.id);
        // If many are waiting, show only the first ones.
        if self.asked.len() > MOST_SHOWN && !self.attended {
            return;
        }
        output::aside(&format!("? {}  {}", question.id, describe::question(s, question)));
    }

    fn finished(&mut self, s: &State, e: &Finished) {
        let Some(call) = s.call(e.call) else { return };
        let (tool, role) = (call.part.tool.as_str(), call.role);
        if !call.harness && !matches!(role, Some(dunnock_proto::Role::Work) | None) {
            return;
        }
        let time = if e.ms >= 100 { format!(" ({})", output::took(e.ms)) } else { String::new() };
        let ok = e.outcome == Outcome::Done;
        if is_command(call)
            && matches!(e.outcome, Outcome::Done | Outcome::Failed | Outcome::Interrupted)
        {
            let shown = output::visible(e.shown.trim_end());
            let lines: Vec<&str> = shown.lines().filter(|l| *l != "(no output)").collect();
            let hidden = lines.len().saturating_sub(OUTPUT);
            if hidden > 0 {
                self.quiet(&format!("  │ ... {}", count(hidden, "more line")));
            }
            for line in lines.iter().skip(hidden) {
                self.quiet(&format!("  │ {}", output::short(line, 200)));
            }
            let word = if call.harness && ok { "passed" } else { describe::outcome(&e.outcome) };
            return self.quiet(&format!("  └ {word}{time}"));
        }
        let what = output::short(&output::one_line(&gist(&call.part)), 100);
        let mut text = format!("• {tool}  {what}\n");
        if ok && e.diff.is_some() {
            // The changed lines of an edit, in their order.
            let lines: Vec<&str> = e.shown.lines().collect();
            let shown = if lines.len() > OUTPUT + 1 { OUTPUT } else { lines.len() };
            let row = |line: &str| output::short(&output::visible(line), 200);
            let mut rows: Vec<String> = lines.iter().take(shown).map(|line| row(line)).collect();
            let more = lines.len() - shown;
            rows.extend((more > 0).then(|| format!("... {}", count(more, "more line"))));
            let last = rows.pop().unwrap_or_default();
            rows.iter().for_each(|row| text.push_str(&format!("  │ {row}\n")));
            text.push_str(&format!("  └ {last}{time}"));
        } else if ok {
            // Only the first line, and the number of the others.
            let first = e.shown.lines().next().unwrap_or_default();
            let more = e.shown.lines().count().saturating_sub(1);
            let more =
                if more > 0 { format!(" (+{})", count(more, "line")) } else { String::new() };
            text.push_str(&format!(
                "  └ {}{more}{time}",
                output::short(&output::one_line(first), 120)
            ));
        } else {
            let why = output::one_line(&e.shown);
            let why = output::short(why.strip_prefix("not run: ").unwrap_or(&why), 200);
            text.push_str(&format!("  └ {}: {why}", describe::outcome(&e.outcome)));
        }
        self.quiet(&text);
    }

    pub(crate) fn delta(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { step, attempt, offset, text } if self.streams => {
                self.words(*step, *attempt, *offset, text)
            }
            Delta::Notice { text } => self.quiet(&format!("  {}", output::one_line(text))),
            Delta::Text { .. } | Delta::Reasoning { .. } | Delta::Output { .. } => {}
        }
    }

    /// What was in progress when we connected, or after we lagged behind.
    pub(crate) fn partial(&mut self, partial: &Partial) {
        match partial {
            Partial::Step { step, attempt, text, .. } if self.streams => {
                self.words(*step, *attempt, 0, text)
            }
            Partial::Step { .. } | Partial::Call { .. } => {}
        }
    }

    /// Shows the text of a step from `offset` on, except what is already on the screen.
    fn words(&mut self, step: Step, attempt: u32, offset: u64, text: &str) {
        let known = self.shown.filter(|s| s.step == step && s.attempt == attempt);
        let mut shown = known.unwrap_or(Shown { step, attempt, bytes: 0, whole: true });
        shown.whole &= offset <= shown.bytes;
        let skip = usize::try_from(shown.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let new = text.get(skip.min(text.len())..).unwrap_or_default();
        shown.bytes = shown.bytes.max(offset + text.len() as u64);
        self.shown = Some(shown);
        if !new.is_empty() {
            output::piece(&output::visible(new));
            self.at_start = new.ends_with('\n');
        }
    }

    /// The answer, the closing line, and what to do next.
    pub(crate) fn end(&mut self, s: &State, tally: &Tally, end: &Exit, fresh: Freshness) {
        self.end_line();
        let id = output::id(&self.session).to_owned();
        let rests = matches!(end.why, ExitReason::Done | ExitReason::Stale | ExitReason::Unproven);
        // Streamed text is already on the screen; an answer in a tool call is not.
        let on_screen =
            !tally.by_call && self.shown.is_some_and(|shown| shown.step == s.step && shown.whole);
        if rests && !on_screen && !tally.answer.trim().is_empty() {
            output::line(output::visible(&tally.answer).trim_end());
        }
        if let Some(error) = &end.error {
            output::note(error);
        }
        let word = end.why.to_string();
        match end.why {
            ExitReason::Waiting => {
                for question in s
                    .questions
                    .iter()
                    .filter(|q| !self.asked.contains(&q.id))
                    .cloned()
                    .collect::<Vec<_>>()
                {
                    self.ask(s, &question);
                }
                self.quiet(&tally.closing(s, &word, Freshness::Yes));
                for line in ways_on(s, &id) {
                    output::aside(&line);
                }
                if let Some(handed) = s.awaiting_reply() {
                    if let InboxState::Refused(why) = brought(&self.session, handed) {
                        output::note(&format!("{}: {why}", output::one_line(&handed.inbox)));
                    }
                    output::aside(&format!(
                        "  once {} exists:  dunnock bridge resume {id}",
                        output::one_line(&handed.inbox)
                    ));
                }
            }
            ExitReason::Working => self.quiet(&format!("{word} · continue: dunnock resume {id}")),
            ExitReason::Done
            | ExitReason::Failed
            | ExitReason::Limit
            | ExitReason::Unproven
            | ExitReason::Stale
            | ExitReason::Interrupted => {
                self.quiet(&tally.closing(s, &word, fresh));
                let next = match end.why {
                    ExitReason::Interrupted | ExitReason::Limit if s.via_bridge() => {
                        format!("continue: dunnock bridge resume {id}")
                    }
                    ExitReason::Interrupted | ExitReason::Limit => {
                        format!("continue: dunnock resume {id}")
                    }
                    ExitReason::Failed => {
                        format!("try again: dunnock resume {id} --prompt \"continue\"")
                    }
                    _ => format!("continue: dunnock resume {id} --prompt \"...\""),
                };
                let undo = match s.tree {
                    Some(_) => format!("dunnock undo {id}"),
                    None => "not possible, no checkpoint was saved".into(),
                };
                self.quiet(&format!("{next} · details: dunnock sessions show {id} · undo: {undo}"));
            }
        }
    }
}

fn is_command(call: &dunnock_core::Call) -> bool {
    call.class == dunnock_proto::Class::Command
}

fn check(args: &str) -> String {
    dunnock_proto::VerifyArgs::parse(args).map_or_else(|_| args.to_owned(), |a| a.command)
}

/// The commands that answer the waiting questions.
pub(crate) fn ways_on(s: &State, id: &str) -> Vec<String> {
    let (approvals, others): (Vec<&Question>, Vec<&Question>) =
        s.questions.iter().partition(|q| q.kind.approval().is_some());
    let mut lines = Vec::new();
    match approvals.as_slice() {
        [] => {}
        [_] => {
            lines.push(format!("  yes:  dunnock approve {id} --go"));
            lines.push(format!("  no:   dunnock decline {id} --note \"why\" --go"));
        }
        several => {
            lines.push(format!("  yes to all:  dunnock approve {id} --all --go"));
            lines.push(format!("  no to all:   dunnock decline {id} --all --go"));
            for question in several.iter().take(MOST_SHOWN) {
                if let Some(call) = question.kind.call() {
                    lines.push(format!(
                        "  one:         dunnock approve {id} {call}    or    dunnock decline {id} \
                         {call}"
                    ));
                }
            }
            if several.len() > MOST_SHOWN {
                let (all, more) = (several.len(), several.len() - MOST_SHOWN);
                lines.push(format!(
                    "  {all} are waiting, {more} not shown; list all: dunnock sessions show {id}"
                ));
            }
        }
    }
    for question in others {
        let words = if question.kind.call().is_some() { "\"your answer\"" } else { "yes|no" };
        lines.push(format!("  answer:  dunnock answer {id} {} {words} --go", question.id));
    }
    lines
}
