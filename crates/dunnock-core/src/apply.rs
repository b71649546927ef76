//! Folds one event into a [`State`].
//!
//! Invariant: total. Any sequence of events folds, even in the order of a damaged log; events that
//! do not fit are ignored.
//! Invariant: the result depends on the event alone. No list, constant or default is consulted:
//! decisions belong to [`decide`](crate::decide()).

use crate::state::{
    Call, LastMissing, OwnerState, Phase, Progress, Question, Stage, State, Task, Undo, Unknown,
};
use dunnock_proto::{
    Answer, Answered, CallId, CallPart, Class, Compacted, Config, Decoded, EndReason, Event,
    Failure, Finished, Hash, MissingNetwork, Need, NoticeKind, Outcome, OwnerChanged, Part, Proof,
    QuestionKind, Record, Recovery, Replied, RewindRequested, Role, Seq, Span, Step, StepStarted,
    Strength, Usage,
};
use std::sync::Arc;

/// Folds `event` into the state as the next event.
pub fn apply(s: &mut State, event: &Event) {
    s.seq += 1;
    match event {
        Event::Created(e) => s.open(&e.workspace, &e.app, &e.config, Step(0)),
        Event::Forked(e) => {
            s.open(&e.workspace, &e.app, &e.config, e.step);
            s.read_secret = e.read_secret;
        }
        Event::Configured(e) => {
            s.version = s.seq;
            let model = s.config.model.clone();
            let bounded =
                |config: &Config| config.budget.tokens.is_some() || config.budget.micros.is_some();
            let before = bounded(&s.config);
            s.config = Arc::new(s.config.with(&e.set));
            if e.set.deadline.is_some() {
                (s.task.time_told, s.task.last_told, s.task.last_made) = (None, false, false);
            }
            if s.config.model != model && e.set.price.is_none() {
                Arc::make_mut(&mut s.config).price = None; // the price is the previous model's
            }
            s.renew |= !before
                && bounded(&s.config)
                && s.preamble.as_ref().is_some_and(|preamble| preamble.max_output.is_none());
            if !s.config.checkpoints && !matches!(s.phase, Phase::Rewinding { .. }) {
                s.dirty = None;
            }
        }
        Event::Moved(e) => {
            s.version = s.seq;
            s.workspace = Some(e.workspace.as_str().into());
            if !e.proven {
                s.proof = Proof::None;
            }
        }
        Event::PreambleSet(e) => s.set_preamble(&e.preamble),
        Event::Prompted(e) => {
            s.version = s.seq;
            if s.title.is_none() {
                s.title = Some(first_line(&e.text, s.config.title_chars));
            }
            s.unseen += 1;
            let pictures = s.config.picture_tokens.saturating_mul(e.images.len() as u64);
            s.add_context(s.tokens(&e.text).saturating_add(pictures));
            s.prompted(&e.text);
            s.images = s.images.saturating_add(e.images.len().try_into().unwrap_or(u32::MAX));
            s.fresh = true;
            s.refresh();
            s.questions.retain(|q| !matches!(*q.kind, QuestionKind::Limit { .. }));
        }
        Event::Continued(_) => {
            s.version = s.seq;
            s.fresh = true;
            s.refresh();
        }
        Event::StepStarted(e) => s.step_started(e),
        Event::OutboxWritten(e) => s.outbox = Some(Arc::new(e.clone())),
        Event::Answered(e) => s.answered(e),
        Event::StepFailed(e) => {
            s.use_up(&e.usage, e.attempts.iter().map(|a| a.ms).sum());
            s.lose(e.lost);
            s.phase = Phase::Ready;
            s.wake = e.retry_at;
            s.overflowed = e.failure == Failure::Overflow;
            s.task.no_answers = s.task.no_answers.saturating_add(u8::from(e.no_answer.is_some()));
            if s.overflowed {
                s.overflows = s.overflows.saturating_add(1);
                if s.overflows == 1 {
                    s.compacted = None; // conversation since the last compaction can be compacted too
                }
            }
            if e.retry_at.is_some() || s.overflowed {
                s.task.last_made = false;
            }
            if e.retry_at.is_some() {
                // It will be sent again.
                s.steps_left = s.steps_left.saturating_add(1);
                s.bounds.pop();
            } else {
                s.add_context(s.tokens(&e.partial));
            }
        }
        Event::TimerFired(_) => s.wake = None,
        Event::Asked(e) => {
            s.asked = e.question.0;
            s.questions.push(Question {
                id: e.question,
                kind: Arc::new(e.kind.clone()),
                hash: e.hash,
            });
        }
        Event::Replied(e) => s.replied(e),
        Event::Granted(e) => {
            if !s.grants.contains(&e.rule) {
                Arc::make_mut(&mut s.grants).push(e.rule.clone());
            }
        }
        Event::Revoked(e) => {
            s.version = s.seq;
            Arc::make_mut(&mut s.grants).retain(|r| *r != e.rule);
        }
        Event::Allowed(e) => {
            if let Some(call) = s.calls.iter_mut().find(|c| c.id == e.call) {
                call.stage = Stage::Allowed;
                call.edited.clone_from(&e.args);
                call.allowed = Some(e.hash);
                call.level = e.isolation;
                call.access = e.access.clone();
                s.read_secret |= e.reads_secret || e.access.secrets;
                s.outside |= call.leaves_process && !e.access.is_nothing();
            }
        }
        Event::CheckCalled(e) => {
            if e.tried != s.tried {
                s.calls.iter_mut().for_each(|call| call.moved = false); // changes made by an earlier attempt no longer matter
            }
            s.tried = e.tried;
            let part = CallPart {
                id: String::new(),
                tool: e.tool.clone(),
                args: e.args.clone(),
                sent: None,
                recovered: false,
                fault: None,
            };
            let call = Call::new(e.call, Arc::new(part), e.class, e.recovery, Some(Role::Work));
            s.calls.push(Call { harness: true, ..call });
        }
        Event::Started(e) => {
            if let Some(call) = s.call_mut(e.call) {
                call.stage = Stage::Started(e.owner);
                call.recovery = e.recovery;
                call.answered = None;
            }
        }
        Event::Finished(e) => s.finished(e),
        Event::Planned(e) => s.task.plan = Arc::new(e.steps.clone()),
        Event::InterruptRequested(_) => {
            s.version = s.seq;
            s.stopping = true;
        }
        Event::Ended(e) => {
            s.last = Some(Arc::new(e.reason.clone()));
            s.stopping = false;
            s.wake = None;
            s.overflowed = false;
            s.day_waived = false;
            s.calls.clear();
            s.questions.clear();
            s.rest();
            if e.hold {
                s.phase = Phase::Rest;
            }
        }
        Event::OwnerChanged(e) => s.taken(e),
        Event::Checkpointed(e) => {
            if s.dirty == Some(e.mark) {
                s.dirty = None;
            }
            if e.tree.is_some() {
                s.tree.clone_from(&e.tree);
                s.first = s.first.take().or_else(|| e.tree.clone());
            }
        }
        Event::Baselined(e) => s.baselined = Some(e.of),
        Event::RewindRequested(e) => s.rewind_requested(e),
        Event::Rewound(e) => {
            s.spans = Arc::new(e.spans.clone());
            s.task = Task::default();
            s.since = s.seq + 1;
            s.bounds.retain(|(b, _)| within(&e.spans, *b));
            if e.tree.is_some() {
                s.tree.clone_from(&e.tree);
            }
            if let Some(undo) = &mut s.undo {
                let undo = Arc::make_mut(undo);
                undo.tree.clone_from(&e.undo);
                undo.previous = None;
            }
            s.rest();
        }
        Event::RewindFailed(_) => {
            s.undo = s.undo.take().and_then(|undo| undo.previous.clone());
            s.rest();
        }
        Event::CompactionStarted(e) => {
            if e.asked {
                s.version = s.seq;
            }
            s.phase = Phase::Compacting { upto: e.upto, strength: e.strength, due: s.due() };
            s.reserved = e.reserved;
        }
        Event::Compacted(e) => s.was_compacted(e),
        Event::CompactionFailed(e) => {
            s.use_up(&e.usage, 0);
            s.lose(e.lost);
            if let Phase::Compacting { strength, .. } = s.phase {
                s.compacted = Some(strength);
            }
            s.after_compaction();
        }
        Event::Titled(e) => {
            s.version = s.seq;
            s.title = Some(e.title.as_str().into());
        }
        Event::Noticed(e) => {
            s.add_context(s.tokens(&e.text));
            match e.kind {
                NoticeKind::Info | NoticeKind::NoAnswer => {}
                NoticeKind::Stalled => s.progress.warnings += 1,
                NoticeKind::Unfinished => s.task.nudges = s.task.nudges.saturating_add(1),
                NoticeKind::SecondLook => s.task.looked = true,
                NoticeKind::Time { percent, last } => {
                    s.task.time_told = Some(percent);
                    s.task.last_told = last;
                }
            }
            if !e.sources.is_empty() {
                s.sources = Arc::new(e.sources.clone());
            }
        }
    }
}

/// Folds a stored event as the next one. Returns it, unless this release does not know it.
pub fn fold_record(s: &mut State, record: &Record) -> Option<Event> {
    match record.decode() {
        Decoded::Known(event) => {
            apply(s, &event);
            Some(event)
        }
        Decoded::Unknown(why) => {
            s.skip(&record.envelope.kind, &why, record.envelope.need == Need::Must);
            None
        }
    }
}

impl State {
    /// Counts an event that this release cannot read. If it must be understood, the session becomes
    /// read-only.
    pub fn skip(&mut self, kind: &str, why: &str, must: bool) {
        self.seq += 1;
        if must && self.read_only.is_none() {
            let (kind, why) = (kind.to_owned(), why.to_owned());
            self.read_only =
                Some(Arc::new(Unknown { seq: self.seq, kind, why, app: self.app.clone() }));
        }
    }

    fn open(&mut self, workspace: &str, app: &str, config: &Config, step: Step) {
        self.version = self.seq;
        self.workspace = Some(workspace.into());
        self.app = app.into();
        self.config = Arc::new(config.clone());
        self.step = step;
        self.since = 1;
    }

    fn call_mut(&mut self, id: CallId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|c| c.id == id)
    }

    /// A prompt or "continue": limits are reset, and an idle session has work again.
    fn refresh(&mut self) {
        self.steps_left = self.config.max_steps;
        (self.tried, self.proof) = (0, Proof::None);
        (self.compacted, self.overflows) = (None, 0);
        self.progress = Progress::default();
        self.task = Task {
            prompts: self.task.prompts.clone(),
            plan: self.task.plan.clone(),
            ..Task::default()
        };
        match &mut self.phase {
            Phase::Rest => self.phase = Phase::Ready,
            Phase::Compacting { due, .. } => *due = true,
            Phase::Ready | Phase::Thinking | Phase::Acting | Phase::Rewinding { .. } => {}
        }
    }

    /// A prompt of an idle session is a new task; another one adds to it.
    fn prompted(&mut self, text: &Arc<str>) {
        if matches!(self.phase, Phase::Rest | Phase::Compacting { due: false, .. }) {
            self.task = Task::default();
        }
        Arc::make_mut(&mut self.task.prompts).push(text.clone());
    }

    /// An end never swallows a prompt that arrived meanwhile.
    fn rest(&mut self) {
        self.phase = if self.unseen > 0 { Phase::Ready } else { Phase::Rest };
    }

    fn step_started(&mut self, e: &StepStarted) {
        self.phase = Phase::Thinking;
        self.step = e.step;
        self.steps_left = self.steps_left.saturating_sub(1);
        self.reserved = e.reserved;
        if self.proof == Proof::Proven {
            self.proof = Proof::None; // more was asked for meanwhile, so the proven state is not final
        }
        self.unseen = 0;
        self.task.last_made = self.task.last_told;
        self.wake = None;
        self.calls.clear();
        self.bounds.push((e.upto, self.context));
        if self.bounds.len() > usize::from(self.config.compact_keep) {
            self.bounds.remove(0);
        }
        if self.fresh && self.config.checkpoints {
            self.dirty = Some(self.seq);
        }
        self.fresh = false;
    }

    fn use_up(&mut self, usage: &Usage, ms: u64) {
        self.reserved = dunnock_proto::Reserved::default();
        let spent = &mut self.spent;
        spent.tokens = spent.tokens.saturating_add(usage.input).saturating_add(usage.output);
        spent.ms = spent.ms.saturating_add(ms);
        spent.micros =
            spent.micros.saturating_add(self.config.price.map_or(0, |price| price.of(usage)));
    }

    /// The next request is longer by this much.
    fn add_context(&mut self, tokens: u64) {
        self.context = self.context.saturating_add(tokens);
    }

    /// Counts usage that may have occurred but is not known.
    fn lose(&mut self, lost: dunnock_proto::Reserved) {
        self.spent.tokens = self.spent.tokens.saturating_add(lost.tokens);
        self.spent.micros = self.spent.micros.saturating_add(lost.micros);
    }

    fn answered(&mut self, e: &Answered) {
        // A stream that broke after some calls: its usage is not known.
        let broke = e.attempts.last().is_some_and(|attempt| attempt.error.is_some());
        let lost = if broke { self.unknown_beyond(&e.usage) } else { Default::default() };
        self.use_up(&e.usage, e.attempts.iter().map(|a| a.ms).sum());
        self.lose(lost);
        if e.usage.input > 0 {
            let preamble = self.preamble.as_ref().map_or(0, |h| h.bytes / self.token_bytes());
            self.context = e.usage.input.saturating_add(e.usage.output).saturating_sub(preamble);
        }
        self.phase = Phase::Acting;
        self.task.no_answers = 0;
        self.compacted = None;
        self.overflowed = false;
        self.overflows = 0;
        if e.effort_refused {
            self.effort_refused_by = Some(e.model.as_str().into());
            self.forget_refused_effort();
        }
        let preamble = self.preamble.clone();
        let parts = e.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            Part::Reasoning { .. } | Part::Text { .. } => None,
        });
        self.calls = parts
            .zip(0..)
            .map(|(part, index)| new_call(preamble.as_deref(), e, index, part))
            .collect();
    }

    fn finished(&mut self, e: &Finished) {
        let pictures = self.config.picture_tokens.saturating_mul(e.images.len() as u64);
        self.add_context(self.tokens(&e.shown).saturating_add(pictures));
        self.images = self.images.saturating_add(e.images.len().try_into().unwrap_or(u32::MAX));
        self.spent.ms = self.spent.ms.saturating_add(e.ms);
        let seq = self.seq;
        let keep = self.config.checkpoints;
        let ok = e.outcome == Outcome::Done;
        let waiting = self.config.waiting_ms;
        if !e.seen_files.is_empty() {
            let seen = Arc::make_mut(&mut self.seen);
            seen.extend(
                e.seen_files.iter().map(|seen_files| (seen_files.path.clone(), seen_files.hash)),
            );
        }
        let Some(call) = self.call_mut(e.call) else { return };
        let began = matches!(call.stage, Stage::Started(_));
        let (args, had) = (call.args().clone(), call.access.hosts.clone());
        let left_process = e.left_process || ok && call.leaves_process;
        let left_with_access = e.left_process && !call.access.is_nothing();
        let (wrote, harness) = (began && call.writes(), call.harness);
        let edits = wrote && call.class == Class::Edit;
        call.stage = Stage::Finished { ok };
        call.moved = e.checked_tree.is_some();
        call.waited = ok && e.ms >= waiting;
        call.result =
            Some(Hash::of_parts(&[outcome_name(&e.outcome).as_bytes(), e.shown.as_bytes()]));
        if wrote && keep {
            self.dirty = Some(seq);
        }
        self.task.acted |= wrote && !harness;
        self.outside |= left_with_access;
        match e.missing_network.clone() {
            Some(missing) => {
                // The next call needs what this one had, too.
                let missing = match missing {
                    MissingNetwork::Hosts(refused) => MissingNetwork::Hosts(refused.and(&had)),
                    MissingNetwork::Whole => MissingNetwork::Whole,
                };
                self.missing_network = Some(LastMissing { args, missing });
            }
            None if ok && self.missing_network.as_ref().is_some_and(|last| last.args == args) => {
                self.missing_network = None;
            }
            None => {}
        }
        self.left_process |= left_process;
        if edits && !e.seen_files.is_empty() {
            let names = e.seen_files.iter().map(|file| file.path.clone());
            Arc::make_mut(&mut self.task.edited).extend(names);
        }
        if harness {
            let mut checks = self.calls.iter().filter(|c| c.harness);
            let passed = checks.all(|c| c.stage == Stage::Finished { ok: true });
            self.proof = if passed { Proof::Proven } else { Proof::Failed };
        }
        if !self.calls_open() && !self.calls.iter().any(|c| c.harness) {
            self.compare_with_before();
        }
        self.questions.retain(|q| q.kind.call() != Some(e.call));
    }

    /// Checks whether the answer whose last call has just ended repeated a recent one: the same
    /// calls on the same files, with the same results. If the state of the files is unknown,
    /// nothing is concluded; an answer from the person counts as progress.
    fn compare_with_before(&mut self) {
        let Some(tree) = &self.tree else { return };
        let asks = |c: &Call| c.role == Some(Role::AskPerson);
        if !self.config.unattended && self.calls.iter().any(asks) {
            self.progress.same = 0;
            return;
        }
        // Waiting is not a loop.
        if self.calls.iter().any(|c| c.waited) || self.calls.iter().all(|c| c.polls) {
            self.progress.same = 0;
            return;
        }
        let mut key = Hash::of(tree.0.as_bytes());
        for call in &self.calls {
            let result = call.result.unwrap_or(Hash::ZERO);
            key = Hash::of_parts(&[
                &key.0,
                call.part.tool.as_bytes(),
                call.args().as_bytes(),
                &result.0,
            ]);
        }
        let progress = &mut self.progress;
        progress.same = if progress.recent.contains(&key) { progress.same + 1 } else { 0 };
        let recent = Arc::make_mut(&mut progress.recent);
        recent.retain(|k| *k != key);
        recent.push(key);
        if recent.len() > usize::from(self.config.stall_window) {
            recent.remove(0);
        }
    }

    fn replied(&mut self, e: &Replied) {
        self.version = self.seq;
        let Some(at) = self.questions.iter().position(|q| q.id == e.question) else { return };
        let question = self.questions.remove(at);
        if let Some(asked) = question.kind.approval()
            && let Some(call) = self.calls.iter_mut().find(|call| call.id == asked.call)
        {
            call.answered = Some((question.id, question.hash));
        }
        match (question.kind.as_ref(), &e.answer) {
            (QuestionKind::Limit { .. }, Answer::Yes) => self.steps_left = self.config.max_steps,
            (QuestionKind::Budget, Answer::Yes) => {
                self.extended += 1;
                self.day_waived = true;
            }
            (QuestionKind::Stalled { .. }, Answer::Yes) => self.progress = Progress::default(),
            (QuestionKind::Trust { content }, answer) => {
                self.trust = Some((*content, *answer == Answer::Yes))
            }
            (
                QuestionKind::Limit { .. }
                | QuestionKind::Budget
                | QuestionKind::Stalled { .. }
                | QuestionKind::Approval(_)
                | QuestionKind::Person { .. }
                | QuestionKind::Unknown { .. },
                _,
            ) => {}
        }
    }

    fn taken(&mut self, e: &OwnerChanged) {
        self.owner = Some(OwnerState { owner: e.owner, level: e.isolation });
        self.best_level = Some(self.best_level.map_or(e.isolation, |best| best.min(e.isolation)));
        self.in_repository = e.in_repository;
        self.left_process = false;
        self.app = e.app.as_str().into();
        self.lose(e.lost);
        for call in &mut self.calls {
            let foreign = matches!(call.stage, Stage::Started(owner) if owner != e.owner);
            if foreign && matches!(call.recovery, Recovery::Repeat | Recovery::Rejoin) {
                call.stage = Stage::Allowed;
            }
        }
    }

    fn rewind_requested(&mut self, e: &RewindRequested) {
        self.version = self.seq;
        let before = Span { from: self.since, to: self.seq - 1 };
        let mut spans = self.spans.as_ref().clone();
        spans.extend((before.from <= before.to).then_some(before));
        let previous = self.undo.take();
        self.undo = Some(Arc::new(Undo { spans, tree: None, scope: e.scope, previous }));
        self.unseen = 0; // a waiting prompt is undone, or sent with the next one; it starts no step
        if let Some(tree) = &e.tree {
            let (tree, spans) = (tree.clone(), Arc::new(e.spans.clone()));
            self.phase = Phase::Rewinding { asked: self.seq, tree, spans, force: e.force };
            self.dirty = Some(self.seq);
        }
    }

    fn set_preamble(&mut self, preamble: &dunnock_proto::Preamble) {
        self.renew = false;
        self.sources = Arc::new(preamble.sources.clone());
        self.preamble = Some(Arc::new(preamble.clone()));
        self.forget_refused_effort();
    }

    /// The preamble names no effort that its requests leave out.
    fn forget_refused_effort(&mut self) {
        let refused_by = self.effort_refused_by.as_deref();
        if let Some(preamble) = &mut self.preamble
            && preamble.effort.is_some()
            && refused_by == Some(&preamble.model)
        {
            Arc::make_mut(preamble).effort = None;
        }
    }

    fn was_compacted(&mut self, e: &Compacted) {
        self.images = 0;
        self.use_up(&e.usage, 0);
        // That length lacks what no step has sent yet, so it is added.
        let before = self.bounds.last().map_or(self.context, |(_, then)| *then);
        let context =
            (e.after / self.token_bytes()).saturating_add(self.context.saturating_sub(before));
        let gone = self.context.saturating_sub(context);
        self.bounds.iter_mut().for_each(|(_, then)| *then = then.saturating_sub(gone));
        self.context = context;
        self.set_preamble(&e.preamble);
        self.overflowed = false;
        self.compacted = Some(match e.summary {
            Some(_) => Strength::Summarise,
            None => Strength::Shorten,
        });
        if e.summary.is_some() {
            self.bounds.retain(|(b, _)| *b > e.upto);
        }
        self.after_compaction();
    }

    fn after_compaction(&mut self) {
        let Phase::Compacting { due, .. } = self.phase else { return };
        self.phase = if due { Phase::Ready } else { Phase::Rest };
        if !due {
            self.stopping = false;
        }
    }
}

/// A call of an answer, with its tool's properties from the current preamble.
pub(crate) fn new_call(
    preamble: Option<&dunnock_proto::Preamble>,
    answered: &Answered,
    index: u16,
    part: &Arc<CallPart>,
) -> Call {
    let tool = preamble.and_then(|h| h.tools.iter().find(|t| t.name == part.tool));
    let server_tool = answered.server_tools.iter().find(|known| known.index == index);
    let server_tool = server_tool.cloned().map(Arc::new);
    let (class, recovery) = match &server_tool {
        Some(known) => (known.class, known.recovery),
        None => (
            tool.map_or(Class::Command, |t| t.class),
            tool.map_or(Recovery::Unknown, |t| t.recovery),
        ),
    };
    let id = CallId { step: answered.step, index };
    Call {
        server_tool,
        leaves_process: tool.is_some_and(|t| t.leaves_process),
        polls: tool.is_some_and(|t| t.polls),
        ..Call::new(id, part.clone(), class, recovery, tool.map(|t| t.role))
    }
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Declined { .. } => "declined",
        Outcome::Interrupted => "interrupted",
        Outcome::NotRun => "not run",
        Outcome::Unknown => "unknown",
    }
}

/// The title that lists show, taken from the first prompt.
fn first_line(text: &str, chars: u16) -> Arc<str> {
    let line = text.trim_start().lines().next().unwrap_or_default();
    line.chars().take(usize::from(chars)).collect::<String>().into()
}

/// Whether this end means finished work, with nothing to continue.
pub(crate) fn is_done(why: &EndReason) -> bool {
    match why {
        EndReason::Done => true,
        EndReason::Stopped
        | EndReason::Failed { .. }
        | EndReason::Limit
        | EndReason::Budget
        | EndReason::Unproven
        | EndReason::Deadline => false,
    }
}

/// Whether `seq` lies in one of `spans`.
pub(crate) fn within(spans: &[Span], seq: Seq) -> bool {
    spans.iter().any(|span| span.from <= seq && seq <= span.to)
}
