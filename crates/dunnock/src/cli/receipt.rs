//! `sessions receipt`: what was requested, done, approved, spent and verified in a session, for a
//! pull request.
//!
//! Invariant: a receipt depends only on the log and on whether the files are still those that were
//! checked. Nothing here reads a clock, so a second receipt is identical, byte for byte.

use crate::compose;
use crate::drive::Seen;
use crate::view::exit::Freshness;
use crate::view::lines::Checked;
use crate::view::tally::Verdict;
use crate::view::{describe, output};
use dunnock_core::Window;
use dunnock_engine::past;
use dunnock_ports::{Checkpoints, fold_events};
use dunnock_proto::{Event, SessionId};
use schemars::JsonSchema;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Summary of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Receipt {
    /// The version of this format.
    v: u8,
    /// The session.
    session: String,
    /// Its state: working, waiting, done, failed, stopped, limit.
    state: String,
    /// When it began, RFC 3339 in UTC.
    began: String,
    /// When the last event was recorded.
    ended: String,
    /// The prompts, in order.
    task: Vec<String>,
    /// Every model that answered.
    models: Vec<String>,
    /// The release that last wrote to the session.
    release: String,
    /// The commit of the repository before the work.
    base: Option<String>,
    /// Requests to the model.
    steps: u32,
    /// Tokens sent.
    tokens_in: u64,
    /// Of those, tokens that the server had cached.
    tokens_cached: u64,
    /// Tokens received.
    tokens_out: u64,
    /// US dollars; null while the price is unknown.
    usd: Option<f64>,
    /// Whether the work was verified.
    verdict: Verdict,
    /// Whether the files exist here, so that they can be compared with those that were checked.
    files_here: bool,
    /// The session was imported.
    imported: bool,
    /// Each check of the last try.
    checks: Vec<Checked>,
    /// A note on the checks before the work.
    before: Option<String>,
    /// The files that the session changed; null if unknown.
    changes: Option<Vec<Changed>>,
    /// The questions to the user, with the answers.
    approvals: Vec<Approval>,
    /// Number of events in the log.
    events: u64,
    /// The chain hash up to the last event: logs with the same value are identical.
    chain: String,
}

/// A file that was changed.
#[derive(Debug, Serialize, JsonSchema)]
struct Changed {
    /// Relative to the workspace root.
    path: String,
    /// added, deleted, changed, mode, ...
    how: String,
    /// Lines added, if it is text.
    added: Option<usize>,
    /// Lines removed.
    removed: Option<usize>,
}

/// A question to the user.
#[derive(Debug, Serialize, JsonSchema)]
struct Approval {
    /// The ID of the question.
    question: String,
    /// The question, in one line.
    asked: String,
    /// The answer; null while the question is waiting.
    answer: Option<String>,
    /// The note that the user added to the answer.
    note: Option<String>,
}

/// The JSON schema of a receipt.
#[must_use]
pub fn schema() -> String {
    serde_json::to_string_pretty(&schemars::schema_for!(Receipt)).unwrap_or_default() + "\n"
}

pub(crate) async fn write(
    open: &compose::Composed,
    session: &SessionId,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let receipt = Receipt::of(open, session).await?;
    match json {
        true => output::line(&serde_json::to_string_pretty(&receipt)?),
        false => output::piece(&receipt.markdown()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Data gathered from the events because the state does not contain it.
#[derive(Default)]
struct Gathered {
    times: Option<(dunnock_proto::At, dunnock_proto::At)>,
    task: Vec<String>,
    models: Vec<String>,
    base: Option<String>,
    imported: bool,
    approvals: Vec<Approval>,
    /// What each call would do.
    calls: BTreeMap<dunnock_proto::CallId, String>,
}

impl Gathered {
    fn add(&mut self, at: dunnock_proto::At, event: &Event) {
        self.times = Some((self.times.map_or(at, |(first, _)| first), at));
        match event {
            Event::Created(e) => {
                self.base =
                    e.base.clone().filter(|base| base.bytes().all(|b| b.is_ascii_hexdigit()))
            }
            Event::Moved(_) => self.imported = true,
            Event::Prompted(e) => self.task.push(dunnock_tools::redacted(&e.text)),
            Event::Answered(e) => {
                if !self.models.contains(&e.model) {
                    self.models.push(e.model.clone());
                }
                for (index, call) in (0..).zip(dunnock_proto::Part::calls(&e.parts)) {
                    let id = dunnock_proto::CallId { step: e.step, index };
                    self.calls.insert(id, format!("{} {}", call.tool, describe::gist(call)));
                }
            }
            Event::Asked(e) => {
                let view = e.kind.view();
                let call = e.kind.approval().and_then(|approval| self.calls.get(&approval.call));
                let asked = call.cloned().unwrap_or_else(|| view.text.unwrap_or(view.heading));
                let asked = output::short(&output::one_line(&dunnock_tools::redacted(&asked)), 300);
                self.approvals.push(Approval {
                    question: e.question.to_string(),
                    asked,
                    answer: None,
                    note: None,
                });
            }
            Event::Replied(e) => {
                let name = e.question.to_string();
                if let Some(approval) = self.approvals.iter_mut().find(|a| a.question == name) {
                    approval.answer = Some(output::one_line(&dunnock_tools::redacted(
                        &describe::answer(&e.answer),
                    )));
                    approval.note = e
                        .note
                        .as_deref()
                        .map(|note| output::one_line(&dunnock_tools::redacted(note)));
                }
            }
            _ => {}
        }
    }
}

impl Receipt {
    async fn of(open: &compose::Composed, session: &SessionId) -> anyhow::Result<Self> {
        let (events, chain) =
            dunnock_engine::check_chain(open.ports.store.as_ref(), session).await?;
        let log = open.ports.store.as_ref();
        let start = Gathered::default();
        let gathered = fold_events(log, session, start, |gathered, envelope, event| {
            gathered.add(envelope.at, &event)
        })
        .await?;
        let seen = Seen::read(&open.ports, session).await?;
        // A missing folder does not count as changed: what was proven stays proven.
        let there = seen
            .state
            .workspace
            .as_deref()
            .is_some_and(|folder| std::path::Path::new(folder).is_dir());
        let fresh = if there { seen.fresh(&open.ports).await } else { Freshness::Yes };
        let (began, ended) = gathered.times.unwrap_or_default();
        let (tally, used) = (&seen.tally, seen.tally.total.usage);
        Ok(Self {
            v: 1,
            session: session.to_string(),
            state: seen.state.status().to_string(),
            began: output::time(began),
            ended: output::time(ended),
            task: gathered.task,
            models: gathered.models,
            release: seen.state.app.to_string(),
            base: gathered.base,
            steps: tally.all_steps,
            tokens_in: used.input,
            tokens_cached: used.cached,
            tokens_out: used.output,
            usd: tally.total.usd(),
            verdict: tally.verdict(&seen.state, fresh),
            files_here: there,
            imported: gathered.imported,
            checks: tally.checks().map(|check| Checked::of(tally, check)).collect(),
            before: tally.before_note.as_deref().map(dunnock_tools::redacted),
            changes: changes(open, session, &seen).await,
            approvals: gathered.approvals,
            events,
            chain: chain.to_string(),
        })
    }

    /// The receipt as Markdown. Text from a model or a program is formatted as code, so that it
    /// cannot pass for our own.
    fn markdown(&self) -> String {
        let mut text = String::new();
        let money = self
            .usd
            .map_or_else(|| "price unknown".into(), |usd| output::usd((usd * 1e6).round() as u64));
        let headline = match (self.verdict, self.files_here) {
            (Verdict::Proven, true) => "Proven: every check passed on exactly these files.",
            (Verdict::Proven, false) => {
                "Proven: every check passed. The files are not here for comparison."
            }
            (Verdict::Failed, _) => "Not proven: a check failed.",
            (Verdict::Stale, _) => "Proof stale: the files are not the ones that were checked.",
            (Verdict::Unverified, _) => {
                "Unverified: nothing was checked, or a check did not finish."
            }
        };
        let _ = writeln!(
            text,
            "# Dunnock session {}\n\n**{headline}**\n",
            self.session.get(..8).unwrap_or_default()
        );
        for (n, task) in self.task.iter().enumerate() {
            let quoted =
                output::visible(task).lines().map(|line| format!("> {line}\n")).collect::<String>();
            let _ = write!(text, "{}{quoted}", if n > 0 { "\n" } else { "" });
        }
        let models = self.models.iter().map(|model| code(model)).collect::<Vec<_>>().join(", ");
        let base =
            self.base.as_deref().map_or_else(String::new, |base| format!(", on commit `{base}`"));
        let _ = writeln!(
            text,
            "\n{} with {models}{base}; {} tokens sent ({} cached), {} received, {money}; \
             state: {}.\n",
            dunnock_proto::count(self.steps, "step"),
            output::number(self.tokens_in),
            output::number(self.tokens_cached),
            output::number(self.tokens_out),
            self.state
        );
        text.push_str("## Checks\n\n");
        if self.checks.is_empty() {
            text.push_str("No checks were run.\n");
        }
        for check in &self.checks {
            let how = if check.passed { "passed" } else { "**failed**" };
            let exit = check.exit.map_or_else(String::new, |exit| format!(", exit {exit}"));
            let tries =
                if check.tries > 1 { format!(", try {}", check.tries) } else { String::new() };
            let flaky = if check.flaky {
                "; **flaky**: it both passed and failed on the same files"
            } else {
                ""
            };
            let before = match check.passed_before {
                Some(true) => "; it passed before the work",
                Some(false) => "; it **failed before** the work",
                None => "; its result before the work is unknown",
            };
            let tree = check
                .tree
                .as_deref()
                .map_or_else(String::new, |tree| format!("\n  files: `{tree}`"));
            let _ = writeln!(
                text,
                "- {} {how}{exit}{tries}, {}{before}{flaky}{tree}",
                code(&check.command),
                output::took(check.ms)
            );
            if !check.output.trim().is_empty() {
                let _ = writeln!(text, "\n{}\n", fenced(&check.output));
            }
        }
        if let Some(note) = &self.before {
            let _ = writeln!(text, "\nBefore the work: {}.", code(note));
        }
        text.push_str("\n## Changes\n\n");
        match &self.changes {
            None => text.push_str("Unknown: no checkpoints are available.\n"),
            Some(changes) if changes.is_empty() => text.push_str("No files changed.\n"),
            Some(changes) => {
                for change in changes {
                    let lines = match (change.added, change.removed) {
                        (Some(added), Some(removed)) => format!(" (+{added} -{removed})"),
                        _ => String::new(),
                    };
                    let _ = writeln!(text, "- {} {}{lines}", code(&change.path), change.how);
                }
            }
        }
        text.push_str("\n## Approvals\n\n");
        if self.approvals.is_empty() {
            text.push_str("No questions were asked.\n");
        }
        for approval in &self.approvals {
            let answer = approval.answer.as_deref().map_or_else(|| "waiting".into(), code);
            let note = approval
                .note
                .as_deref()
                .map_or_else(String::new, |note| format!(" ({})", code(note)));
            let _ = writeln!(
                text,
                "- {}: {} → {answer}{note}",
                approval.question,
                code(&approval.asked)
            );
        }
        let _ = writeln!(
            text,
            "\n---\n{}, from {} to {}, chain `{}` · dunnock {}{}",
            dunnock_proto::count(self.events, "event"),
            self.began,
            self.ended,
            self.chain,
            code(&self.release),
            if self.imported { " · imported" } else { "" }
        );
        text
    }
}

/// Formats any text as inline code.
fn code(text: &str) -> String {
    let text = output::one_line(text);
    let text = if text.is_empty() { "(nothing)".to_owned() } else { text };
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Formats any text as a code block.
fn fenced(text: &str) -> String {
    let text = output::visible(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    let lines: String = text.trim_end().lines().map(|line| format!("  {line}\n")).collect();
    format!("  {fence}text\n{lines}  {fence}")
}

/// The files that the session changed, with the lines added and removed.
async fn changes(
    open: &compose::Composed,
    session: &SessionId,
    seen: &Seen,
) -> Option<Vec<Changed>> {
    let (checkpoints, s) = (open.checkpoints.as_ref()?, &seen.state);
    let (first, last, folder) = (s.first.clone()?, s.tree.clone()?, s.workspace.as_deref()?);
    let (ours, _) = past(open.ports.store.as_ref(), session).await.ok()?.since_first();
    let between: Window = (first.clone(), last.clone());
    let mine = Checkpoints::changed(checkpoints.as_ref(), folder, &between, &ours).await.ok()?;
    let all = checkpoints.compare(folder, first, last).await.ok()?;
    let ours = all
        .into_iter()
        .filter(|change| mine.contains(&format!("{} ({})", change.path, change.how)));
    let row = |change: dunnock_tools::DiffView| {
        let text = |bytes: &Option<Vec<u8>>| match bytes {
            Some(bytes) => std::str::from_utf8(bytes).map(str::to_owned).ok(),
            None => Some(String::new()),
        };
        let known = change.before.is_some() || change.after.is_some();
        let lines = text(&change.before).zip(text(&change.after)).filter(|_| known).map(
            |(before, after)| {
                let diff = TextDiff::from_lines(&before, &after);
                let count = |tag| diff.iter_all_changes().filter(|line| line.tag() == tag).count();
                (count(ChangeTag::Insert), count(ChangeTag::Delete))
            },
        );
        let (added, removed) = (lines.map(|(added, _)| added), lines.map(|(_, removed)| removed));
        Changed {
            path: dunnock_tools::redacted(&change.path),
            how: change.how.into(),
            added,
            removed,
        }
    };
    Some(ours.map(row).collect())
}
