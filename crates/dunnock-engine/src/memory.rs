//! The results of a planner's iterations, in a few lines each: for its next run, for people, for
//! programs.
//!
//! Invariant: it depends on the log alone and is written by this program, not by a model. Each
//! entry is one line, whatever it contains.

use dunnock_ports::{EventLog, StoreError, fold_events};
use dunnock_proto::{
    Answered, CallPart, CheckCalled, CommandArgs, CommandText, EndReason, Event, Finished, Outcome,
    Part, PathArgs, Proof, SessionId, VerifyArgs,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The longest line, in characters.
const LINE: usize = 240;
/// The longest iteration, in bytes: about 500 tokens.
const ITERATION: usize = 2_000;
/// The size limit of the whole memory, in bytes.
const MOST: usize = 48_000;
/// How many bytes of earlier runs' memory are kept: the newest.
const BEFORE: usize = 16_000;

/// The iterations of a session, each with its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Each line with its position: reasoning, then calls by their index, then the end.
    iterations: Vec<Vec<(u32, String)>>,
    /// The calls of the current answer, by their index.
    calls: BTreeMap<u16, Arc<CallPart>>,
}

/// Reads the memory from a session's log.
///
/// # Errors
/// If the log cannot be read.
pub async fn read(log: &dyn EventLog, session: &SessionId) -> Result<Memory, StoreError> {
    fold_events(log, session, Memory::default(), |memory, _, event| memory.add(&event)).await
}

impl Memory {
    /// The number of iterations.
    #[must_use]
    pub fn iterations(&self) -> usize {
        self.iterations.len()
    }

    /// The text of the file: what earlier runs wrote, and a block for each iteration of this one.
    #[must_use]
    pub fn text(&self, before: &str) -> String {
        let mut start = before.ceil_char_boundary(before.len().saturating_sub(BEFORE));
        if start > 0 {
            start = before
                .get(start..)
                .and_then(|rest| rest.find("\nIteration "))
                .map_or(before.len(), |at| start + at + 1);
        }
        let mut text = before.get(start..).unwrap_or_default().trim_end().to_owned();
        let number =
            |line: &str| line.strip_prefix("Iteration ")?.strip_suffix(':')?.parse::<usize>().ok();
        let last = text.lines().filter_map(number).max().unwrap_or(0);
        for (n, lines) in self.iterations.iter().enumerate() {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            let _ = write!(text, "Iteration {}:\n{}", last + n + 1, block(lines));
        }
        text.push('\n');
        // The file must stay readable as a whole, so only the newest iterations are kept.
        if text.len() > MOST {
            let from = text.ceil_char_boundary(text.len() - MOST);
            let block = text
                .get(from..)
                .and_then(|rest| rest.find("\nIteration "))
                .map_or(text.len(), |at| from + at + 1);
            text.drain(..block);
        }
        text
    }

    /// A summary of this run.
    #[must_use]
    pub fn summary(&self) -> String {
        self.text("").trim_end().to_owned()
    }

    fn add(&mut self, event: &Event) {
        match event {
            Event::StepStarted(_) => {
                self.iterations.push(Vec::new());
                self.calls.clear();
            }
            Event::Answered(e) => self.answered(e),
            Event::CheckCalled(e) => self.called(e),
            Event::Finished(e) => self.finished(e),
            // It is sent again.
            Event::StepFailed(e) if e.retry_at.is_some() => drop(self.iterations.pop()),
            Event::StepFailed(e) => self.line("no answer:", &e.error),
            Event::Ended(e) => {
                let why = match &e.reason {
                    EndReason::Done if e.proof == Proof::Proven => {
                        "done, and the checks pass".to_owned()
                    }
                    EndReason::Done => "done; the plan had no actions".to_owned(),
                    EndReason::Stopped => "stopped".to_owned(),
                    EndReason::Failed { error } => format!("failed: {error}"),
                    EndReason::Limit => "the iteration limit was reached".to_owned(),
                    EndReason::Budget => "the budget was used up".to_owned(),
                    EndReason::Unproven => "the checks do not pass".to_owned(),
                    EndReason::Deadline => "the deadline has come".to_owned(),
                };
                self.line_at(u32::MAX, "ended:", &why);
            }
            _ => {}
        }
    }

    fn answered(&mut self, e: &Answered) {
        self.calls =
            Part::calls(&e.parts).cloned().zip(0..).map(|(part, index)| (index, part)).collect();
        let words = Part::words(&e.parts);
        if !words.trim().is_empty() {
            self.line("thought:", words.trim());
        }
    }

    fn called(&mut self, e: &CheckCalled) {
        let part = CallPart {
            id: String::new(),
            tool: e.tool.clone(),
            args: e.args.clone(),
            sent: None,
            recovered: false,
            fault: None,
        };
        self.calls.insert(e.call.index, Arc::new(part));
    }

    fn finished(&mut self, e: &Finished) {
        let Some(call) = self.calls.get(&e.call.index).cloned() else { return };
        let how = match &e.outcome {
            Outcome::Done => "ok".to_owned(),
            Outcome::Failed => {
                e.exit.map_or_else(|| "failed".to_owned(), |exit| format!("failed, exit {exit}"))
            }
            Outcome::Declined { .. } => "declined".to_owned(),
            Outcome::Interrupted => "interrupted".to_owned(),
            Outcome::NotRun => "not run".to_owned(),
            Outcome::Unknown => "outcome unknown".to_owned(),
        };
        // For success the outcome is enough; for a failure the reason is added.
        let said = match e.outcome {
            Outcome::Done => None,
            // For a program its last line of output, for one of our tools the first.
            _ if !matches!(call.tool.as_str(), "shell" | "verify") => {
                e.shown.lines().map(str::trim).find(|line| !line.is_empty())
            }
            _ => e
                .shown
                .lines()
                .rev()
                .map(str::trim)
                .find(|line| !line.is_empty() && !line.starts_with("[exit ")),
        };
        let said = said.map(|said| said.strip_prefix("not run: ").unwrap_or(said));
        let said = said.map_or_else(String::new, |said| format!(": {said}"));
        let (verb, what) = verb_and_object(&call);
        self.line_at(
            1 + u32::from(e.call.index),
            verb,
            &format!("{}: {how}{said}", short(&what, LINE / 2)),
        );
    }

    fn line(&mut self, what: &str, text: &str) {
        self.line_at(0, what, text);
    }

    fn line_at(&mut self, place: u32, what: &str, text: &str) {
        if let Some(lines) = self.iterations.last_mut() {
            lines.push((place, short(&format!("{what} {text}"), LINE)));
            lines.sort_by_key(|(place, _)| *place);
        }
    }
}

/// A verb for a call, and what it is about.
fn verb_and_object(call: &CallPart) -> (&'static str, String) {
    if call.tool == "verify" {
        return (
            "checked",
            VerifyArgs::parse(&call.args).map(|args| args.command).unwrap_or_default(),
        );
    }
    let command = || {
        CommandArgs::parse(&call.args).ok().map(|args| match args.command {
            CommandText::Line(line) => line,
            CommandText::Words(words) => words.join(" "),
        })
    };
    let paths = || {
        let args = PathArgs::parse(&call.args).ok()?;
        let patch =
            args.patch.as_deref().and_then(|text| dunnock_core::patch::Patch::parse(text).ok());
        let named = patch.iter().flat_map(|patch| patch.paths().map(str::to_owned));
        Some(args.path.into_iter().chain(named).collect::<Vec<_>>().join(", "))
    };
    match call.tool.as_str() {
        "shell" => ("ran", command().unwrap_or_default()),
        "view_file" => ("read", paths().unwrap_or_default()),
        "apply_patch" => ("edited", paths().unwrap_or_default()),
        other => ("called", format!("{other} {}", paths().unwrap_or_default())),
    }
}

/// The text as one line of at most `most` characters.
fn short(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most.saturating_sub(3)).chain("...".chars()).collect()
}

/// The lines of an iteration: as many of the first and last ones as fit.
fn block(lines: &[(u32, String)]) -> String {
    let mut kept: Vec<String> = lines.iter().map(|(_, line)| format!("- {line}")).collect();
    let long = |kept: &[String]| kept.iter().map(|line| line.len() + 1).sum::<usize>() > ITERATION;
    let mut out = 0;
    while long(&kept) && kept.len() > 2 {
        kept.remove(kept.len() / 2);
        out += 1;
    }
    if out > 0 {
        kept.insert(kept.len() / 2, format!("- [{out} more]"));
    }
    kept.join("\n")
}
