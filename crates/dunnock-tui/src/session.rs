//! A session as this interface sees it: a fold over the events and deltas of the connection.
//!
//! Events become finished lines for the scrollback; work in progress is kept for the live area.

use crate::calls;
use crate::effort::SentEffort;
use crate::lines::{indented, note, notes, said_by_person, thoughts};
use crate::markdown::render;
use crate::pager::PastCall;
use crate::stream::Stream;
use crate::text::{Line, Style, Tone};
use crate::words::{about, cents, first_line, so_far, usd};
use dunnock_proto::{
    Answer, At, CallId, CallPart, Config, Decoded, Delta, EndReason, Event, Failure, FinalArgs,
    Finished, Hash, Isolation, NoticeKind, Outcome, Part, Partial, PlanStep, Proof, QuestionId,
    QuestionKind, Record, Rule, Sandbox, Seq, SessionId, Step, Usage, VerifyArgs, count,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bytes of a running command's output that are kept, to show its last lines.
const TAIL: usize = 4 << 10;
/// The most ended calls that the pager offers.
const PAST_CALLS: usize = 200;
/// The most lines of reasoning that go to the scrollback.
const THOUGHTS: usize = 40;

/// Width of a past that is not shown: its events update the state but produce no lines.
pub const UNSEEN: usize = 0;

/// A call by the model or by the harness.
#[derive(Debug, Clone)]
pub struct Call {
    /// The call as the model wrote it.
    pub part: Arc<CallPart>,
    /// A check that Dunnock runs, not the model.
    pub harness: bool,
    /// It may run.
    pub allowed: bool,
    /// When it started, by this process's clock.
    pub began: Option<u64>,
    /// It was approved to run outside the sandbox.
    pub unsandboxed: bool,
    /// The end of its output.
    pub tail: String,
    offset: u64,
}

/// An open question.
#[derive(Debug, Clone)]
pub struct Question {
    pub id: QuestionId,
    /// What it is about, with everything shown to the user.
    pub kind: QuestionKind,
    /// The hash that an answer must quote.
    pub hash: Hash,
}

impl Question {
    /// The rule that "always" would create.
    #[must_use]
    pub fn rule(&self) -> Option<&Rule> {
        self.kind.approval()?.rule.as_ref()
    }
}

/// An answer that is still streaming.
#[derive(Default)]
struct Live {
    step: Step,
    attempt: u32,
    text: Stream,
    bytes: u64,
    said: String,
    reasoning: String,
    thought: u64,
}

/// A change that the rest of the app must know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    /// A question was asked.
    Asked(QuestionId),
    /// The task ended.
    Ended,
}

/// Totals since the last prompt.
#[derive(Debug, Clone, Default)]
struct Run {
    began: i64,
    steps: u32,
    usage: Usage,
    micros: u64,
    unknown: bool,
    checks: Vec<(CallId, String, Option<bool>)>,
    files: std::collections::BTreeSet<String>,
}

/// A session.
#[derive(Default)]
pub struct Session {
    /// Its id, once there is one.
    pub id: Option<SessionId>,
    /// Number of the last event.
    pub seq: Seq,
    /// The first words of its first prompt.
    pub title: String,
    /// Its folder.
    pub workspace: String,
    /// Its settings.
    pub config: Config,
    /// The sandbox level, once a process drives the session.
    pub level: Option<Isolation>,
    /// Size of the model's context window, in tokens.
    pub window: Option<u64>,
    /// The reasoning effort that is sent.
    pub effort: SentEffort,
    /// Tokens of the last request and its answer.
    pub context: u64,
    /// Open questions.
    pub questions: Vec<Question>,
    /// The model's plan.
    pub plan: Vec<PlanStep>,
    /// The last answer, for the clipboard.
    pub answer: String,
    /// Prompts that no request has included yet.
    pub waiting: Vec<(Seq, Arc<str>)>,
    /// Whether a task is in progress.
    pub working: bool,
    /// Whether a request to the model is in progress.
    pub asking: bool,
    /// Whether that request waits for the user to copy and paste the chat's reply.
    pub awaiting_reply: bool,
    /// Whether the conversation is being compacted.
    pub compacting: bool,
    /// Whether an interrupt was requested.
    pub stopping: bool,
    /// The latest notice about why the model is silent.
    pub said: String,
    /// How prompts with long pasted texts were shown when they were typed.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// First line of the last prompt.
    last_asked: String,
    all_steps: usize,
    calls: BTreeMap<CallId, Call>,
    /// The last calls that ended, oldest first.
    ended_calls: VecDeque<PastCall>,
    /// Diffs of calls whose end has not arrived yet.
    diffs: BTreeMap<CallId, String>,
    live: Option<Live>,
    run: Run,
    total: Usage,
    micros: u64,
    unknown: bool,
}

impl Session {
    /// A session whose events have not been read yet.
    #[must_use]
    pub fn of(id: SessionId) -> Self {
        Self { id: Some(id), ..Self::default() }
    }
    /// Running calls, oldest first.
    pub fn running(&self) -> impl Iterator<Item = &Call> {
        self.calls.values().filter(|call| call.began.is_some())
    }
    /// The last calls that ended, newest first.
    #[must_use]
    pub fn past_calls(&self) -> Vec<PastCall> {
        self.ended_calls.iter().rev().cloned().collect()
    }
    /// What an edit changed; its end follows.
    pub fn add_diff(&mut self, call: CallId, diff: String) {
        self.diffs.insert(call, diff);
    }
    /// Calls that are to run and have not started, oldest first.
    pub fn queued(&self) -> impl Iterator<Item = &Call> {
        let asked = |id: &CallId| self.questions.iter().any(|q| q.kind.call() == Some(*id));
        let waits =
            move |(id, call): &(&CallId, &Call)| call.allowed && call.began.is_none() && !asked(id);
        self.calls.iter().filter(waits).map(|(_, call)| call)
    }
    /// A call that has not finished.
    #[must_use]
    pub fn call(&self, id: CallId) -> Option<&Call> {
        self.calls.get(&id)
    }
    /// Steps since the last prompt.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.run.steps
    }
    /// Tokens of the whole session.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.total.input + self.total.output
    }
    /// The cost of the whole session, if known.
    #[must_use]
    pub fn cost(&self) -> Option<String> {
        (!self.unknown).then(|| cents(self.micros))
    }
    /// Whether this is a copy-and-paste session. Its tokens and cost are unknown.
    #[must_use]
    pub fn via_bridge(&self) -> bool {
        self.config.model == dunnock_proto::BRIDGE_MODEL
    }
    /// The sandbox level in effect.
    #[must_use]
    pub fn confined(&self) -> Option<Isolation> {
        if self.config.sandbox == Sandbox::Off { Some(Isolation::D) } else { self.level }
    }
    /// How much of the context window is used, in percent.
    #[must_use]
    pub fn full(&self) -> Option<u64> {
        let window = self.config.window.or(self.window)?;
        Some((self.context * 100 / window.max(1)).min(100))
    }

    /// What was asked, what was done, what is pending.
    #[must_use]
    pub fn where_it_stands(&self) -> [(&'static str, String); 3] {
        let asked =
            if self.last_asked.is_empty() { "nothing yet".into() } else { self.last_asked.clone() };
        let done = match self.answer.trim() {
            "" => format!("{}, no answer yet", count(self.all_steps, "step")),
            answer => first_line(answer),
        };
        let waits = match self.questions.len() {
            0 if self.awaiting_reply => "the answer from your chat".into(),
            0 if self.working => "nothing; the interrupted work continues".into(),
            0 => "nothing".into(),
            n => format!("{}, below", count(n, "question")),
        };
        [("asked", asked), ("done", done), ("pending", waits)]
    }

    /// The answer and the reasoning in progress, as they look now.
    #[must_use]
    pub fn under_way(&self, columns: usize) -> Vec<Line> {
        let Some(live) = &self.live else { return Vec::new() };
        let mut lines = Vec::new();
        if !live.reasoning.trim().is_empty() {
            let from =
                live.reasoning.ceil_char_boundary(live.reasoning.len().saturating_sub(4_000));
            lines.extend(thoughts(&live.reasoning[from..], columns));
        }
        let text = live.text.live(columns.saturating_sub(1));
        lines.extend(text.into_iter().map(indented));
        lines
    }

    /// Folds an event into the session; its lines go to `out`.
    pub fn fact(
        &mut self,
        record: &Record,
        columns: usize,
        now: u64,
        out: &mut Vec<Line>,
    ) -> Option<SessionChange> {
        self.seq = record.envelope.seq;
        // In a past that is not shown, calls and their results no longer matter: the end of the
        // task clears them.
        let of_calls = matches!(
            record.envelope.kind.as_str(),
            "allowed" | "started" | "finished" | "checkpointed"
        );
        if columns == UNSEEN && of_calls {
            return None;
        }
        let at = record.envelope.at;
        match record.decode() {
            Decoded::Known(event) => self.event(event, at, columns, now, out),
            Decoded::Unknown(why) => {
                out.push(note(&format!("? {} ({why})", record.envelope.kind)));
                None
            }
        }
    }

    fn event(
        &mut self,
        event: Event,
        at: At,
        columns: usize,
        now: u64,
        out: &mut Vec<Line>,
    ) -> Option<SessionChange> {
        match event {
            Event::Created(e) => {
                self.workspace = e.workspace;
                self.config = e.config;
            }
            Event::Forked(e) => {
                self.workspace = e.workspace;
                self.config = e.config;
                out.push(note(&format!("forked from {} at event {}", e.from, e.at)));
            }
            Event::Moved(e) => self.workspace = e.workspace,
            Event::Configured(e) => {
                let mut next = self.config.with(&e.set);
                // A price belongs to one model only.
                if next.model != self.config.model && e.set.price.is_none() {
                    next.price = None;
                }
                if next.model != self.config.model {
                    out.push(note(&format!("Set model to {}", next.model)));
                    self.window = None;
                    self.effort.forget();
                } else if let Some(effort) = next.effort.filter(|e| Some(*e) != self.config.effort)
                {
                    out.push(note(&format!("Set effort to {}", effort.name())));
                }
                self.config = next;
            }
            Event::PreambleSet(e) => {
                self.window = e.preamble.window;
                self.effort.rendered(&e.preamble);
            }
            Event::OwnerChanged(e) => {
                self.level = Some(e.isolation);
                self.calls.values_mut().for_each(|call| call.began = None);
                self.live = None;
            }
            Event::Titled(e) => self.title = e.title,
            Event::Prompted(e) => self.prompted(&e.text, e.images.len(), at, columns, out),
            Event::Continued(_) => {
                self.begin(at);
                out.push(Line::empty());
                out.push(note("continuing"));
            }
            Event::StepStarted(e) => {
                self.all_steps += 1;
                self.run.steps += 1;
                self.asking = true;
                self.awaiting_reply = false;
                self.working = true;
                self.said.clear();
                self.tell_waiting(e.upto, columns, out);
                self.live = Some(Live { step: e.step, ..Live::default() });
            }
            Event::OutboxWritten(e) => {
                self.awaiting_reply = true;
                let parts =
                    if e.parts > 1 { format!(" ({} parts)", e.parts) } else { String::new() };
                out.push(Line::empty());
                out.extend(
                    note(&format!("paste {}{parts} into your chat", e.outbox))
                        .wrap(columns, "", "   "),
                );
                out.extend(
                    note(&format!("and save its answer as {}", e.inbox)).wrap(columns, "", "   "),
                );
            }
            Event::Answered(e) => {
                if e.effort_refused {
                    out.push(note(&self.effort.refuse(&e.model)));
                }
                self.used(&e.usage);
                let untold = e.usage.is_nothing() && !self.via_bridge();
                self.run.unknown |= untold;
                self.unknown |= untold;
                self.context = e.usage.input + e.usage.output;
                (self.asking, self.awaiting_reply) = (false, false);
                self.answered(e.step, &e.parts, columns, out);
            }
            Event::StepFailed(e) => {
                self.used(&e.usage);
                (self.asking, self.awaiting_reply) = (false, false);
                self.end_stream(columns, out);
                self.live = None;
                if e.retry_at.is_some() {
                    // It is sent again, and counts once.
                    self.all_steps = self.all_steps.saturating_sub(1);
                    self.run.steps = self.run.steps.saturating_sub(1);
                }
                // The end of the task says why it failed.
                if e.retry_at.is_some() || e.failure == Failure::Overflow {
                    out.extend(Line::of(&e.error, Tone::Quiet).wrap(columns, " ", " "));
                    self.said = e.error;
                }
            }
            Event::CheckCalled(e) => {
                let part = CallPart {
                    id: String::new(),
                    tool: e.tool,
                    args: e.args,
                    sent: None,
                    recovered: false,
                    fault: None,
                };
                let command = VerifyArgs::parse(&part.args)
                    .map_or_else(|_| part.args.to_string(), |a| a.command);
                self.run.checks.push((e.call, command, None));
                self.add_call(e.call, Arc::new(part), true);
            }
            Event::Allowed(e) => {
                if let Some(call) = self.calls.get_mut(&e.call) {
                    call.allowed = true;
                    call.unsandboxed = e.access.unsandboxed;
                }
            }
            Event::Started(e) => {
                if let Some(call) = self.calls.get_mut(&e.call) {
                    call.began = Some(now);
                }
            }
            Event::Finished(e) => self.finished(&e, columns, out),
            Event::Planned(e) => self.plan = e.steps,
            Event::Asked(e) => {
                self.questions.push(Question { id: e.question, kind: e.kind, hash: e.hash });
                return Some(SessionChange::Asked(e.question));
            }
            Event::Replied(e) => {
                self.replied(e.question, &e.answer, e.note.as_deref(), columns, out)
            }
            Event::Granted(e) => {
                out.push(note(&format!("allowed in this session: {}", e.rule.shape())));
            }
            Event::Revoked(e) => {
                out.push(note(&format!("no longer allowed: {}", e.rule.shape())));
            }
            Event::InterruptRequested(_) => {
                self.stopping = true;
                out.push(note("stopping"));
            }
            Event::Ended(e) => {
                self.ended(&e.reason, e.proof, at, columns, out);
                return Some(SessionChange::Ended);
            }
            Event::Checkpointed(e) => out.extend(notes(e.note.as_deref(), " ", columns)),
            Event::Rewound(e) => {
                out.push(note("rewound"));
                out.extend(notes(e.note.as_deref(), "   ", columns));
            }
            Event::RewindFailed(e) => {
                out.push(Line::of(&format!(" could not rewind: {}", e.error), Tone::Bad))
            }
            Event::CompactionStarted(e) => {
                self.compacting = e.asked || e.strength == dunnock_proto::Strength::Summarise
            }
            Event::Compacted(e) => {
                self.effort.rendered(&e.preamble);
                self.compacting = false;
                self.used(&e.usage);
                let how = if e.summary.is_some() { "summarised" } else { "shortened" };
                out.push(note(&format!(
                    "conversation {how}: {} to {} bytes",
                    about(e.before),
                    about(e.after)
                )));
            }
            Event::CompactionFailed(e) => {
                self.compacting = false;
                self.used(&e.usage);
                out.push(note(&format!("the conversation could not be compacted: {}", e.error)));
            }
            Event::Baselined(e) => {
                for check in e.checks.iter().filter(|check| check.outcome != Outcome::Done) {
                    out.push(note(&format!("`{}` failed before the task began", check.command)));
                }
            }
            Event::Noticed(e) if !e.sources.is_empty() || e.kind != NoticeKind::Info => {
                out.push(note(&format!("note to the model: {}", first_line(&e.text))));
            }
            // Not shown: notes for the model, requests whose result follows, timers.
            _ => {}
        }
        None
    }

    fn begin(&mut self, at: At) {
        self.run = Run { began: at.0, ..Run::default() };
        self.working = true;
        self.stopping = false;
    }

    fn prompted(
        &mut self,
        text: &Arc<str>,
        images: usize,
        at: At,
        columns: usize,
        out: &mut Vec<Line>,
    ) {
        if self.title.is_empty() {
            self.title = first_line(text);
        }
        self.last_asked = first_line(text);
        self.answer.clear();
        self.questions.retain(|q| !matches!(q.kind, QuestionKind::Limit { .. }));
        let text = self.labels.get(text).unwrap_or(text);
        let text: Arc<str> = match images {
            0 => text.clone(),
            n => format!("{text}\n[{}]", count(n, "picture")).into(),
        };
        // While work is in progress, the prompt is shown as queued until the next step sends it.
        if self.working
            && (self.asking || self.running().next().is_some() || !self.questions.is_empty())
        {
            self.waiting.push((self.seq, text));
        } else {
            self.begin(at);
            out.extend(said_by_person(&text, columns));
        }
    }

    fn tell_waiting(&mut self, upto: Seq, columns: usize, out: &mut Vec<Line>) {
        let count = self.waiting.iter().take_while(|(seq, _)| *seq <= upto).count();
        for (_, text) in self.waiting.drain(..count) {
            out.extend(said_by_person(&text, columns));
        }
    }

    fn add_call(&mut self, id: CallId, part: Arc<CallPart>, harness: bool) {
        let (began, unsandboxed, tail, offset) = (None, false, String::new(), 0);
        let call = Call { part, harness, allowed: false, began, unsandboxed, tail, offset };
        self.calls.insert(id, call);
    }

    fn used(&mut self, usage: &Usage) {
        let price = self.config.price;
        let micros = price.map_or(0, |price| price.of(usage));
        let unknown = price.is_none() && !usage.is_nothing();
        self.total += *usage;
        self.run.usage += *usage;
        self.micros += micros;
        self.run.micros += micros;
        self.unknown |= unknown;
        self.run.unknown |= unknown;
    }

    /// Ends the streamed answer: everything left is finished.
    fn end_stream(&mut self, columns: usize, out: &mut Vec<Line>) {
        let Some(live) = &mut self.live else { return };
        end_thoughts(live, columns, out);
        let lines = live.text.finish(columns.saturating_sub(1));
        out.extend(lines.into_iter().map(indented));
    }

    fn answered(&mut self, step: Step, parts: &[Part], columns: usize, out: &mut Vec<Line>) {
        let live = self.live.take().filter(|live| live.step == step);
        let words = Part::words(parts);
        let streamed = live.as_ref().map_or("", |live| live.said.as_str()).to_owned();
        if columns == UNSEEN {
            self.calls.clear(); // their results are not read
        }
        match (live, words.strip_prefix(&streamed)) {
            _ if columns == UNSEEN => {}
            // The streamed text is a prefix of the recorded answer: append the rest.
            (Some(mut live), Some(rest)) if live.bytes > 0 => {
                live.text.push(rest);
                self.live = Some(live);
                self.end_stream(columns, out);
            }
            (live, _) => {
                let thought: String = parts.iter().filter_map(thought).collect();
                let mut live = live.unwrap_or_default();
                if live.thought == 0 {
                    live.reasoning.push_str(&thought);
                }
                end_thoughts(&mut live, columns, out);
                if !words.trim().is_empty() {
                    begin_answer(out);
                    out.extend(render(&words, columns.saturating_sub(1)).into_iter().map(indented));
                }
            }
        }
        self.live = None;
        let calls: Vec<&Arc<CallPart>> = Part::calls(parts).collect();
        if calls.is_empty() {
            self.answer = words;
        }
        for (index, part) in calls.into_iter().enumerate() {
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            if part.tool == "final_output"
                && let Ok(last) = FinalArgs::parse(&part.args)
                && !last.answer.is_empty()
            {
                self.answer = last.answer.to_string();
                if columns != UNSEEN {
                    begin_answer(out);
                    out.extend(
                        render(&last.answer, columns.saturating_sub(1)).into_iter().map(indented),
                    );
                }
            }
            self.add_call(CallId { step, index }, part.clone(), false);
        }
    }

    fn finished(&mut self, e: &Finished, columns: usize, out: &mut Vec<Line>) {
        self.questions.retain(|q| q.kind.call() != Some(e.call));
        let diff = self.diffs.remove(&e.call);
        let Some(call) = self.calls.remove(&e.call) else { return };
        if let Some(check) = self.run.checks.iter_mut().find(|(id, ..)| *id == e.call) {
            check.2 = Some(e.outcome == Outcome::Done);
        }
        let hidden =
            crate::words::view(&call.part.tool).is_some_and(|view| view.hidden) && !call.harness;
        if hidden && e.outcome == Outcome::Done {
            return;
        }
        if e.diff.is_some() {
            self.run.files.extend(crate::words::changed_files(&call.part));
        }
        let title = first_line(&calls::title(&call.part, call.harness));
        self.ended_calls.push_back(PastCall { id: e.call, title });
        if self.ended_calls.len() > PAST_CALLS {
            self.ended_calls.pop_front();
        }
        out.extend(calls::ended(&call.part, call.harness, e, diff.as_deref(), columns));
    }

    fn replied(
        &mut self,
        id: QuestionId,
        answer: &Answer,
        note: Option<&str>,
        columns: usize,
        out: &mut Vec<Line>,
    ) {
        let Some(at) = self.questions.iter().position(|q| q.id == id) else { return };
        let question = self.questions.remove(at);
        let said = match answer {
            Answer::Yes => "yes".to_owned(),
            Answer::Wider => "yes, with the whole network".to_owned(),
            Answer::No => "no".to_owned(),
            Answer::Always { .. } => "yes, always".to_owned(),
            Answer::Edit { .. } => "yes, edited".to_owned(),
            Answer::Text { text } => text.to_string(),
        };
        let about = match question.kind.approval() {
            Some(approval) => {
                let call = self.calls.get(&approval.call);
                let what = call.map(|c| calls::title(&c.part, c.harness)).unwrap_or_default();
                format!("allow {}?", first_line(&what))
            }
            None => first_line(&question.kind.view().text.unwrap_or_default()),
        };
        let mut line = Line::of(" ? ", Tone::Warn).and(&about, Tone::Quiet).and("  ", Tone::Text);
        line = line.and(&said, Style::of(Tone::User).bold());
        if let Some(note) = note {
            line = line.and(&format!(" ({note})"), Tone::User);
        }
        out.extend(line.wrap(columns, "", "   "));
    }

    fn ended(
        &mut self,
        why: &EndReason,
        proof: Proof,
        at: At,
        columns: usize,
        out: &mut Vec<Line>,
    ) {
        self.end_stream(columns, out);
        self.tell_waiting(Seq::MAX, columns, out);
        self.live = None;
        self.calls.clear();
        self.questions.clear();
        self.plan.clear();
        (self.working, self.asking, self.stopping, self.compacting) = (false, false, false, false);
        self.awaiting_reply = false;
        let (word, tone) = match why {
            EndReason::Done if proof == Proof::Proven => ("proven", Tone::Good),
            EndReason::Done => ("done", Tone::Good),
            EndReason::Stopped => ("stopped", Tone::Warn),
            EndReason::Failed { .. } => ("failed", Tone::Bad),
            EndReason::Limit => ("step limit reached", Tone::Warn),
            EndReason::Budget => ("budget used up", Tone::Warn),
            EndReason::Unproven => ("not proven", Tone::Bad),
            EndReason::Deadline => ("deadline reached", Tone::Warn),
        };
        let mut line = Line::of(&format!(" {word}"), Style::of(tone).bold());
        for (_, command, passed) in self.last_checks() {
            let how = match passed {
                Some(true) => "passed",
                Some(false) => "failed",
                None => "not run",
            };
            line = line
                .and(&format!("   {command}"), Tone::Text)
                .and(&format!("  {how}"), Tone::Quiet);
        }
        out.push(Line::empty());
        if let EndReason::Failed { error } = why {
            out.extend(Line::of(error, Tone::Bad).wrap(columns, " ", " "));
        }
        out.extend(line.wrap(columns, "", "   "));
        out.push(self.closing(at).cut(columns));
        out.push(Line::empty());
    }

    fn last_checks(&self) -> impl Iterator<Item = &(CallId, String, Option<bool>)> {
        let last = self.run.checks.last().map(|(id, ..)| id.step);
        self.run.checks.iter().filter(move |(id, ..)| Some(id.step) == last)
    }

    /// The summary line: steps, time, tokens, cost, files.
    fn closing(&self, at: At) -> Line {
        let run = &self.run;
        let ms = u64::try_from(at.0 - run.began).unwrap_or(0);
        let mut parts = vec![count(usize::try_from(run.steps).unwrap_or(0), "step"), so_far(ms)];
        let tokens = run.usage.input + run.usage.output;
        if self.via_bridge() {
            parts.push("copy and paste".into());
        } else if tokens > 0 {
            let cached = if run.usage.cached > 0 {
                format!(" ({} cached)", about(run.usage.cached))
            } else {
                String::new()
            };
            parts.push(format!("{} tokens{cached}", about(tokens)));
            parts.push(if run.unknown { "price unknown".into() } else { usd(run.micros) });
        } else {
            parts.push("tokens unknown".into());
        }
        if !run.files.is_empty() {
            parts.push(count(run.files.len(), "file"));
        }
        Line::of(&format!(" {}     undo: /undo", parts.join(" · ")), Tone::Quiet)
    }

    /// Adds a live delta.
    pub fn delta(&mut self, delta: &Delta, columns: usize, out: &mut Vec<Line>) {
        match delta {
            Delta::Text { step, attempt, offset, text } => {
                self.said.clear();
                self.words(*step, *attempt, *offset, text, columns, out);
            }
            Delta::Reasoning { step, attempt, offset, text } => {
                self.said.clear();
                let live = self.live(*step, *attempt, out);
                let new = fresh(live.thought, *offset, text);
                live.thought += new.len() as u64;
                live.reasoning.push_str(new);
            }
            Delta::Output { call, offset, text, .. } => self.output(*call, *offset, text),
            Delta::Notice { text } => self.said = text.to_string(),
        }
    }

    /// Catches up with an answer or an output that is already streaming.
    pub fn partial(&mut self, partial: &Partial, columns: usize, out: &mut Vec<Line>) {
        match partial {
            Partial::Step { step, attempt, text, reasoning } => {
                let live = self.live(*step, *attempt, out);
                let new = fresh(live.thought, 0, reasoning);
                live.thought += new.len() as u64;
                live.reasoning.push_str(new);
                self.words(*step, *attempt, 0, text, columns, out);
            }
            Partial::Call { call, offset, tail } => {
                self.output(*call, offset.saturating_sub(tail.len() as u64), tail);
            }
        }
    }

    fn live(&mut self, step: Step, attempt: u32, out: &mut Vec<Line>) -> &mut Live {
        let same =
            self.live.as_ref().is_some_and(|live| live.step == step && live.attempt == attempt);
        if !same {
            // What a failed attempt printed cannot be removed from the scrollback, so say that it
            // was cut off.
            if self.live.as_ref().is_some_and(|live| live.bytes > 0) {
                out.push(note("the answer was cut off; retrying"));
            }
            self.live = Some(Live { step, attempt, ..Live::default() });
        }
        self.live.get_or_insert_with(Live::default)
    }

    fn words(
        &mut self,
        step: Step,
        attempt: u32,
        offset: u64,
        text: &str,
        columns: usize,
        out: &mut Vec<Line>,
    ) {
        let live = self.live(step, attempt, out);
        let new = fresh(live.bytes, offset, text);
        if new.is_empty() {
            return;
        }
        end_thoughts(live, columns, out);
        if live.bytes == 0 {
            begin_answer(out);
        }
        live.bytes += new.len() as u64;
        live.said.push_str(new);
        live.text.push(new);
        let done = live.text.done(columns.saturating_sub(1));
        out.extend(done.into_iter().map(indented));
    }

    fn output(&mut self, call: CallId, offset: u64, text: &str) {
        let Some(call) = self.calls.get_mut(&call) else { return };
        let new = fresh(call.offset, offset, text);
        call.offset = call.offset.max(offset + text.len() as u64);
        call.tail.push_str(new);
        if call.tail.len() > 2 * TAIL {
            let from = call.tail.ceil_char_boundary(call.tail.len() - TAIL);
            call.tail.drain(..from);
        }
    }
}

/// The part of a delta starting at `offset` that is new when `have` bytes are known.
fn fresh(have: u64, offset: u64, text: &str) -> &str {
    let skip = usize::try_from(have.saturating_sub(offset)).unwrap_or(usize::MAX);
    text.get(skip.min(text.len())..).unwrap_or_default()
}

fn thought(part: &Part) -> Option<&str> {
    match part {
        Part::Reasoning { text, .. } => Some(text),
        Part::Text { .. } | Part::Call(_) => None,
    }
}

/// Puts a blank line before the model's answer.
fn begin_answer(out: &mut Vec<Line>) {
    out.push(Line::empty());
}

fn end_thoughts(live: &mut Live, columns: usize, out: &mut Vec<Line>) {
    let reasoning = std::mem::take(&mut live.reasoning);
    if reasoning.trim().is_empty() {
        return;
    }
    let lines = thoughts(&reasoning, columns);
    let more = lines.len().saturating_sub(THOUGHTS);
    out.push(Line::empty());
    out.extend(lines.into_iter().take(THOUGHTS));
    if more > 0 {
        out.push(Line::of(&format!("   … {} of reasoning", count(more, "more line")), Tone::Quiet));
    }
}
