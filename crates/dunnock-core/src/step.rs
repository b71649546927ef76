//! The loop: an input comes in, facts come out.
//!
//! [`step`] decides what the input itself means (`decide`), then what follows from where the session now stands
//! (`settle`): another turn, a check, a question, the end. Both work on a copy; the caller applies the facts once they
//! are durable. What must then be under way is not decided here: see [`wanted`](crate::wanted).
//!
//! Invariant: every arm on our own enums is written out, so a new input or phase cannot hide in a wildcard.

use crate::apply::{apply, is_done};
use crate::effect::cut_turn;
use crate::policy::{self, Verdict};
use crate::state::{Call, Phase, Stage, State, question_hash};
use dunnock_proto::{
    About, Allowed, Answered, AskPersonArgs, Asked, At, Baselined, By, CallId, Called, Checkpointed, Class, Command,
    CompactFailed, CompactStarted, Compacted, Configured, Continued, Ended, Event, Failure, Finished, Granted,
    HandedOver, Hash, Head, Headed, InterruptAsked, Level, Mode, Noticed, Order, Outcome, Owner, PlanArgs, Planned,
    Prompted, Proof, QuestionId, Recovery, Refused, Reserved, Revoked, RewindFailed, Rewound, Role, Rule, Strength,
    Taken, Titled, Tree, TurnFailed, TurnStarted, VerifyArgs, Why, Woken,
};
use std::sync::Arc;

/// Calls of one answer that are considered.
const MOST_CALLS: usize = 500;

/// What is true around the session at the moment of an input, and enters with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Now {
    /// What is left of the day's budget over all sessions, if there is one; what is held back for this session's request is not
    /// counted as gone.
    pub day_left: Option<u64>,
    /// The files at the fact that a rewind names, if they were kept.
    pub tree_at: Option<Tree>,
    /// What changed of what the head was made of.
    pub news: Option<Noticed>,
}

/// What reaches a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// From a door.
    Order(Order),
    /// From work under way, inside the process that does it.
    Report(Report),
    /// A process takes over.
    Take(Take),
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The process that did the work.
    pub owner: Owner,
    /// What came of it.
    pub work: Work,
}

/// The outcomes of effects. They carry the fact they may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A head was rendered.
    Headed(Head),
    /// It could not be.
    HeadFailed {
        /// For this model.
        model: String,
        /// Why, and what to do.
        error: String,
    },
    /// A request was written down for a person to carry.
    HandedOver(HandedOver),
    /// The model answered.
    Answer(Answered),
    /// It did not.
    Failed(TurnFailed),
    /// A call ended.
    Output(Finished),
    /// The files were kept, or could not be.
    Checkpointed(Checkpointed),
    /// The files are back.
    Rewound(Rewound),
    /// They are not.
    RewindFailed(RewindFailed),
    /// The checks were run on the files as they had been.
    Baselined(Baselined),
    /// The talk is shorter.
    Compacted(Compacted),
    /// It is not.
    CompactFailed(CompactFailed),
    /// The moment has come.
    Woken(At),
    /// Something the model should know came to light.
    Noticed(Noticed),
}

/// A takeover: the first thing a driver says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// Fresh for each process and takeover.
    pub owner: Owner,
    /// How well it confines commands.
    pub level: Level,
    /// Its system.
    pub platform: String,
    /// Its release.
    pub app: String,
    /// What the folder brings that nobody has trusted yet.
    pub untrusted: Option<Hash>,
}

/// Decides what `input` makes true. Changes nothing.
///
/// # Errors
/// A refusal is an answer for the sender, not a failure: nothing became true.
pub fn step(s: &State, now: &Now, input: Input) -> Result<Vec<Event>, Refused> {
    if s.workspace.is_none() {
        return Err(Refused::NoSession);
    }
    if s.read_only.is_some() {
        return Err(Refused::ReadOnly);
    }
    let mut draft = Draft { s: s.clone(), now, events: Vec::new(), spent: s.spent.micros };
    match input {
        Input::Order(order) => {
            if order.expect.is_some_and(|seen| seen != s.version) {
                return Err(Refused::Stale { version: s.version });
            }
            draft.command(order.command)?;
        }
        Input::Report(report) => {
            if s.seat.is_none_or(|seat| seat.owner != report.owner) {
                return Err(Refused::NotOwner);
            }
            draft.report(report.owner, report.work)?;
        }
        Input::Take(take) => draft.take(take)?,
    }
    if let Some(news) = &now.news
        && draft.s.head_fits()
        && news.sources != *draft.s.sources
    {
        draft.record(news.clone());
    }
    draft.settle();
    Ok(draft.events)
}

/// A decision in the making: the state as it would be, and the facts that make it so.
pub(crate) struct Draft<'a> {
    pub(crate) s: State,
    pub(crate) now: &'a Now,
    events: Vec<Event>,
    /// What had been spent before this decision.
    pub(crate) spent: u64,
}

impl Draft<'_> {
    pub(crate) fn record(&mut self, fact: impl Into<Event>) {
        let event = fact.into();
        apply(&mut self.s, &event);
        self.events.push(event);
    }

    fn command(&mut self, command: Command) -> Result<(), Refused> {
        match command {
            Command::Prompt { text, images } => {
                if text.trim().is_empty() && images.is_empty() {
                    return Err(Refused::Invalid);
                }
                self.record(Prompted { text, images });
            }
            Command::Run => match &self.s.last {
                _ if self.s.phase != Phase::Rest => return Err(Refused::Busy),
                Some(why) if !is_done(why) => self.record(Continued {}),
                Some(_) | None => return Err(Refused::Nothing),
            },
            Command::Reply { question, hash, answer, note } => self.reply(question, hash, answer, note)?,
            Command::Interrupt => match self.s.phase {
                Phase::Rest => return Err(Refused::Nothing),
                Phase::Rewinding { .. } => return Err(Refused::Busy),
                _ if self.s.stopping => return Err(Refused::Nothing),
                Phase::Ready | Phase::Thinking | Phase::Acting | Phase::Compacting { .. } => {
                    self.stop();
                }
            },
            Command::Rewind { to, scope, force } => self.rewind(to, scope, force)?,
            Command::Compact => {
                let free = self.s.phase == Phase::Rest || (self.s.due() && self.s.questions.is_empty());
                let reserved = self.s.reserve();
                match self.s.bounds.last() {
                    _ if !free || self.s.stopping => return Err(Refused::Busy),
                    None => return Err(Refused::Nothing),
                    Some(_) if self.breaks_budget(reserved) => return Err(Refused::Budget),
                    Some(&(upto, _)) => {
                        self.record(CompactStarted { upto, strength: Strength::Summarise, asked: true, reserved });
                    }
                }
            }
            Command::Configure { set } => {
                let next = self.s.config.with(&set);
                let sane = next.max_steps > 0
                    && next.verify_tries > 0
                    && !next.model.is_empty()
                    && next.compact_keep > 0
                    && next.token_bytes > 0
                    && (1..=100).contains(&next.compact_at);
                if !sane || next == *self.s.config {
                    return Err(Refused::Invalid);
                }
                self.record(Configured { set });
            }
            Command::Title { title } => {
                if title.trim().is_empty() || title.chars().count() > 200 {
                    return Err(Refused::Invalid);
                }
                self.record(Titled { title });
            }
            Command::Revoke { rule } => {
                if !self.s.grants.contains(&rule) {
                    return Err(Refused::Nothing);
                }
                self.record(Revoked { rule });
            }
        }
        Ok(())
    }

    fn report(&mut self, owner: Owner, work: Work) -> Result<(), Refused> {
        let thinking = self.s.phase == Phase::Thinking;
        match work {
            Work::Headed(head) if !self.s.head_fits() && head.model == self.s.config.model => {
                self.record(Headed { head });
            }
            Work::HeadFailed { model, error }
                if self.s.due()
                    && !self.s.head_fits()
                    && self.s.questions.is_empty()
                    && model == self.s.config.model =>
            {
                self.end_held(Why::Failed { error });
            }
            Work::HandedOver(handed)
                if thinking && handed.turn == self.s.turn && self.s.carried().is_none() && !self.s.stopping =>
            {
                self.record(handed);
            }
            Work::Answer(answer) if thinking && answer.turn == self.s.turn => {
                self.record(answer);
                if self.s.stopping { self.drop_unbegun() } else { self.judge_calls() }
            }
            Work::Failed(mut failed) if thinking && failed.turn == self.s.turn => {
                // An answer that broke off was paid for, and the server had no chance to say how much.
                if failed.broke {
                    failed.lost = self.s.unknown_beyond(&failed.usage);
                }
                let error = failed.error.clone();
                let (again, cut) = (failed.retry_at.is_some(), failed.failure == Failure::Cut);
                self.record(failed);
                if !again && !self.s.stopping && !self.can_shrink() {
                    let why = if cut { Why::Stopped } else { Why::Failed { error } };
                    self.end(why);
                }
            }
            Work::Output(finished) if self.s.call(finished.call).map(|c| c.stage) == Some(Stage::Started(owner)) => {
                self.record(finished);
            }
            Work::Checkpointed(kept) if self.s.dirty == Some(kept.mark) => {
                let lost = kept.tree.is_none() && matches!(self.s.phase, Phase::Rewinding { .. });
                let note = kept.note.clone().unwrap_or_default();
                self.record(kept);
                if lost {
                    // Without the files of now there would be no way back from the rewind.
                    let error = format!("the files as they are could not be kept first: {note}");
                    self.record(RewindFailed { error });
                }
            }
            Work::Rewound(rewound) if self.restoring() => {
                let spans = self.rewound_spans();
                self.record(Rewound { spans, ..rewound });
                self.tell_of_rewind();
            }
            Work::RewindFailed(failed) if self.restoring() => self.record(failed),
            Work::Baselined(done) if self.s.baseline_due() == Some(&done.tree) && done.of == self.s.checks() => {
                self.record(done);
            }
            Work::Compacted(done) if self.compacting(done.upto) => {
                let stopped = self.s.stopping;
                if done.after < done.before {
                    self.record(done);
                } else {
                    let error = format!("it would not have become shorter: {} bytes, then {}", done.before, done.after);
                    self.record(CompactFailed { usage: done.usage, ..CompactFailed::because(error) });
                }
                self.after_shrinking(stopped);
            }
            Work::CompactFailed(failed) if matches!(self.s.phase, Phase::Compacting { .. }) => {
                let stopped = self.s.stopping;
                let lost = if failed.broke { self.s.unknown_beyond(&failed.usage) } else { Reserved::default() };
                self.record(CompactFailed { lost, ..failed });
                self.after_shrinking(stopped);
            }
            Work::Woken(at) if self.s.wake == Some(at) => self.record(Woken { at }),
            Work::Noticed(noticed) => self.record(noticed),
            // Late and repeated reports are normal after an interrupt or a takeover.
            Work::Headed(_)
            | Work::HeadFailed { .. }
            | Work::HandedOver(_)
            | Work::Answer(_)
            | Work::Failed(_)
            | Work::Output(_)
            | Work::Checkpointed(_)
            | Work::Rewound(_)
            | Work::RewindFailed(_)
            | Work::Baselined(_)
            | Work::Compacted(_)
            | Work::CompactFailed(_)
            | Work::Woken(_) => return Err(Refused::Late),
        }
        Ok(())
    }

    /// An interrupt stops the turn that was due behind a compaction, too.
    fn after_shrinking(&mut self, stopped: bool) {
        if stopped && self.s.phase == Phase::Ready {
            self.end_held(Why::Stopped);
        }
    }

    fn restoring(&self) -> bool {
        matches!(self.s.phase, Phase::Rewinding { .. }) && self.s.dirty.is_none()
    }

    fn compacting(&self, upto: u64) -> bool {
        matches!(self.s.phase, Phase::Compacting { upto: at, .. } if at == upto)
    }

    /// Another process drives now. What the one before had begun and cannot be repeated is unknown, and said to be.
    fn take(&mut self, take: Take) -> Result<(), Refused> {
        let Take { owner, level, platform, app, untrusted } = take;
        if self.s.seat.is_some_and(|seat| seat.owner == owner) {
            return Err(Refused::Invalid);
        }
        let begun: Vec<CallId> =
            self.s.calls.iter().filter(|c| matches!(c.stage, Stage::Started(_))).map(|c| c.id).collect();
        let lost = if self.s.asks_model() { self.s.reserved } else { Reserved::default() };
        self.record(Taken { owner, level, platform, app, lost });
        let (again, unknown): (Vec<CallId>, Vec<CallId>) =
            begun.into_iter().partition(|id| self.s.call(*id).is_some_and(|c| c.stage == Stage::Allowed));
        for call in &unknown {
            self.finish(*call, Outcome::Unknown, "outcome unknown: the agent was restarted while this ran");
        }
        if self.s.stopping {
            for call in again {
                self.finish(call, Outcome::Cut, "cut off: the person interrupted");
            }
            self.drop_unbegun();
            if self.s.phase == Phase::Thinking {
                self.record(cut_turn(self.s.turn));
            }
            if matches!(self.s.phase, Phase::Compacting { .. }) {
                self.record(CompactFailed::interrupted());
                self.after_shrinking(true);
            }
        } else if self.s.asks_model() && self.breaks_budget(self.s.reserved) {
            // What was asked for may have been answered and paid for; asking again would be more than is left.
            let error = "it was not asked again after a restart: the budget does not cover that".to_owned();
            if self.s.phase == Phase::Thinking {
                self.record(TurnFailed::unsent(self.s.turn, Failure::Transport, error));
            } else {
                self.record(CompactFailed::because(error));
            }
        } else if !unknown.is_empty() && !matches!(self.s.config.mode, Mode::Auto | Mode::All) {
            let names: Vec<String> = unknown.iter().map(ToString::to_string).collect();
            let text = format!("it is not known whether these calls took effect: {}. Go on?", names.join(", "));
            self.ask(About::Unknown { calls: unknown }, text.into(), Vec::new());
        }
        if let Some(content) = untrusted {
            let asked = self.s.questions.iter().any(|q| q.about == About::Trust { content });
            let known = self.s.trust.is_some_and(|(hash, _)| hash == content);
            if self.s.config.attended && !asked && !known {
                let text = "this folder brings settings, commands or scripts of its own. Trust it?";
                self.ask(About::Trust { content }, text.into(), Vec::new());
            }
        }
        Ok(())
    }

    /// Says of each call of the answer just recorded whether it runs, waits for the person, or does not run.
    fn judge_calls(&mut self) {
        for (n, call) in self.s.calls.clone().into_iter().enumerate() {
            if n >= MOST_CALLS {
                let why = format!("not run: an answer may have {MOST_CALLS} calls; ask for the rest in the next one");
                self.finish(call.id, Outcome::NotRun, &why);
                continue;
            }
            if let Some(fault) = &call.part.fault {
                self.finish(call.id, Outcome::NotRun, &format!("not run: {fault}"));
                continue;
            }
            let Some(role) = call.role else {
                self.finish(call.id, Outcome::NotRun, &format!("there is no tool {}", call.part.tool));
                continue;
            };
            match role {
                Role::Final => self.finish(call.id, Outcome::Done, "noted"),
                Role::Plan => match PlanArgs::parse(call.args()) {
                    Ok(plan) => {
                        self.record(Planned { steps: plan.steps });
                        self.finish(call.id, Outcome::Done, "noted");
                    }
                    Err(error) => self.finish(call.id, Outcome::Failed, &error),
                },
                Role::AskPerson => match AskPersonArgs::parse(call.args()) {
                    Ok(args) => self.ask(About::Person { call: call.id }, args.question, args.choices),
                    Err(error) => self.finish(call.id, Outcome::Failed, &error),
                },
                Role::Work if call.part.broken().is_some() => {
                    let why = call.part.broken().unwrap_or_default();
                    self.finish(
                        call.id,
                        Outcome::NotRun,
                        &format!("not run: the arguments are not a JSON object: {why}"),
                    );
                }
                Role::Work => match policy::judge(&self.s, &call) {
                    Verdict::Allow(by) => self.allow(&call, by, None),
                    Verdict::Ask(reason) => {
                        let text = policy::question(&self.s, &call, &reason);
                        self.ask(About::Approval { call: call.id }, text.into(), Vec::new());
                    }
                    Verdict::Deny(reason) => self.finish(call.id, Outcome::NotRun, &format!("not allowed: {reason}")),
                },
            }
        }
    }

    /// What follows from where the session stands: facts until nothing more follows.
    fn settle(&mut self) {
        if self.s.config.planner.is_some() {
            self.drop_behind_a_failure();
        }
        match self.s.phase {
            Phase::Acting if !self.s.calls_open() => self.after_calls(),
            Phase::Ready => self.next_turn(),
            Phase::Rest | Phase::Thinking | Phase::Acting | Phase::Compacting { .. } | Phase::Rewinding { .. } => {}
        }
    }

    /// Every call of the answer has ended.
    fn after_calls(&mut self) {
        if self.s.stopping {
            return self.end(Why::Stopped);
        }
        if !self.s.questions.is_empty() {
            return;
        }
        if self.s.config.planner.is_some() && self.s.unseen == 0 {
            return self.after_plan();
        }
        let checked = self.s.calls.iter().any(|c| c.harness);
        let said_done = self.s.calls.iter().all(|c| c.harness)
            || self.s.calls.iter().any(|c| c.role == Some(Role::Final) && c.stage == Stage::Finished { ok: true });
        // Who carries words sees no result before the next round: what failed beside a "done" must be seen first.
        let failed = |c: &Call| !c.harness && c.stage == Stage::Finished { ok: false };
        let unsaid = self.s.by_hand() && self.s.calls.iter().any(failed);
        match self.s.proof {
            _ if self.s.unseen > 0 || !said_done || unsaid => {
                if !self.stalled() {
                    self.next_turn();
                }
            }
            // A check that changed the files has said nothing of those it left: once more, on these.
            Proof::Proven if self.s.calls.iter().any(|c| c.moved) => {
                if self.s.tried >= self.s.config.verify_tries {
                    self.end(Why::Unproven)
                } else {
                    self.verify()
                }
            }
            Proof::Proven if checked => self.end(Why::Done),
            Proof::Failed | Proof::None if checked => {
                if self.s.tried >= self.s.config.verify_tries {
                    self.end(Why::Unproven)
                } else {
                    self.next_turn()
                }
            }
            Proof::Proven | Proof::Failed | Proof::None if self.s.config.verify.is_empty() => self.end(Why::Done),
            Proof::Proven | Proof::Failed | Proof::None if self.s.baseline_due().is_some() => {}
            Proof::Proven | Proof::Failed | Proof::None => self.verify(),
        }
    }

    /// The model says that it is done: the harness makes calls of its own to find out.
    pub(crate) fn verify(&mut self) {
        let tried = self.s.tried + 1;
        let first = self.s.calls.len();
        for (n, command) in self.s.config.clone().verify.iter().enumerate() {
            let id = CallId { turn: self.s.turn, index: u16::try_from(first + n).unwrap_or(u16::MAX) };
            let args: Arc<str> = VerifyArgs { command: command.clone() }.text().into();
            let (class, recovery) = (Class::Command, Recovery::Repeat);
            self.record(Called { call: id, tool: "verify".into(), args, tried, class, recovery });
            if let Some(call) = self.s.call(id).cloned() {
                self.allow(&call, By::Harness, None);
            }
        }
    }

    /// A turn is due: it begins, or what holds it is recorded.
    pub(crate) fn next_turn(&mut self) {
        if self.s.stopping {
            return self.end(Why::Stopped);
        }
        if !self.s.questions.is_empty() || self.s.wake.is_some() || !self.s.head_fits() {
            return;
        }
        let more = self.s.config.max_steps;
        if self.s.steps_left == 0 {
            let text = format!("the limit of {more} steps is reached. Go on for {more} more?");
            return self.ask_or_end(About::Limit, text, Why::Limit);
        }
        let reserved = self.s.reserve();
        if self.breaks_budget(reserved) {
            let text = "the budget does not cover the next request. Go on for as much again?";
            return self.ask_or_end(About::Budget, text.into(), Why::Budget);
        }
        if let Some((strength, upto)) = self.must_shrink() {
            let reserved = match strength {
                Strength::Shorten => Reserved::default(),
                Strength::Summarise => reserved,
            };
            return self.record(CompactStarted { upto, strength, asked: false, reserved });
        }
        if let Some(head) = self.s.head.clone() {
            let turn = dunnock_proto::Turn(self.s.turn.0 + 1);
            self.record(TurnStarted { turn, upto: self.s.seq, head: head.hash, reserved });
        }
    }

    fn ask_or_end(&mut self, about: About, text: String, why: Why) {
        if self.s.config.attended { self.ask(about, text.into(), Vec::new()) } else { self.end_held(why) }
    }

    /// The turn that was due does not begin; its prompts wait for the next.
    pub(crate) fn end_held(&mut self, why: Why) {
        let proof = self.s.proof;
        self.record(Ended { why, proof, hold: true });
    }

    /// Work ends; a prompt that came meanwhile makes the next turn due at once.
    pub(crate) fn end(&mut self, why: Why) {
        let proof = self.s.proof;
        self.record(Ended { why, proof, hold: false });
        if self.s.phase == Phase::Ready {
            self.next_turn();
        }
    }

    pub(crate) fn allow(&mut self, call: &Call, by: By, args: Option<Arc<str>>) {
        let hash = call.hash_with(args.as_ref());
        let level = (call.class == Class::Command).then(|| self.s.level());
        self.record(Allowed { call: call.id, by, args, hash, level });
    }

    pub(crate) fn finish(&mut self, call: CallId, outcome: Outcome, shown: &str) {
        self.record(Finished::plain(call, outcome, shown));
    }

    pub(crate) fn grant(&mut self, rule: Rule) {
        self.record(Granted { rule });
    }

    /// Everything under way stops; what has stopped is settled, what has not will report.
    pub(crate) fn stop(&mut self) {
        let waited = self.s.phase == Phase::Ready;
        self.record(InterruptAsked {});
        self.drop_unbegun();
        if waited {
            self.end_held(Why::Stopped);
        }
    }

    /// Calls that no process has begun never will.
    fn drop_unbegun(&mut self) {
        for call in self.s.calls.clone() {
            if matches!(call.stage, Stage::Asked | Stage::Allowed) {
                self.finish(call.id, Outcome::NotRun, "not run: the person interrupted");
            }
        }
    }

    pub(crate) fn ask(&mut self, about: About, text: Arc<str>, choices: Vec<String>) {
        let question = QuestionId(self.s.asked + 1);
        let hash = question_hash(question, &text, &choices);
        self.record(Asked { question, about, text, choices, hash });
    }
}
