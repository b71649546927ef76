//! Replays a recorded session without the model, and finds the first difference.
//!
//! The log records the inputs: a user's command or the report of work is the first event of each
//! decision. So this release makes every decision again on the events recorded before it and must
//! arrive at the recorded events; every request is built again and must have the recorded hash.
//! With [`ReplayPorts`] the calls are run again, too, in a copy of the files.
//!
//! Invariant: one difference does not cause the next. After each comparison the replay continues
//! from what was recorded.

use crate::catch_up::load_upto;
use crate::compact::KEEP;
use dunnock_core::policy::Policy;
use dunnock_core::{
    Call, Claim, DecideContext, EffectOutcome, Fold, Input, Previews, Report, Stage, State,
    Transcript, apply, begin, decide,
};
use dunnock_ports::{
    Blob, CancellationToken, DeltaSink, Model, Store, StoreError, ToolCall, Tools,
};
use dunnock_proto::{
    Cause, Command, CommandRequest, Config, Decoded, EndReason, Event, Finished, Hash, HostSet,
    Isolation, Outcome, Owner, Preamble, QuestionKind, Record, Seq, SessionId, TOOL_FIND, TOOL_USE,
    verify_chain,
};
use std::sync::Arc;

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// The number of events that were decided again.
    pub facts: u64,
    /// The number of requests that were built again.
    pub requests: u64,
    /// The number of calls that were run again.
    pub calls: u64,
    /// The number of calls that were not, because they had more access than the sandbox or never
    /// ended.
    pub passed_over: u64,
    /// All differences, in order.
    pub differences: Vec<Difference>,
}

/// A difference between the recording and the replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The event at which it occurred.
    pub seq: Seq,
    /// What differs.
    pub what: String,
    /// The recorded value.
    pub recorded: String,
    /// The value now.
    pub now: String,
}

/// Runs calls again, in a separate folder.
pub struct ReplayPorts<'a> {
    /// Runs the calls.
    pub tools: &'a dyn Tools,
    /// Renders preambles again. It is used for nothing else.
    pub model: &'a dyn Model,
    /// A copy of the files from before the first call.
    pub folder: &'a str,
    /// How well commands are isolated here.
    pub level: Isolation,
}

/// How many bytes of a difference are shown.
const SHOWN: usize = 300;

/// Replays a session.
///
/// # Errors
/// If it cannot be read, or is not what was written.
pub async fn replay(
    log: &dyn Store,
    session: &SessionId,
    hands: Option<ReplayPorts<'_>>,
) -> Result<Replayed, StoreError> {
    let mut records: Vec<Record> = Vec::new();
    let each = &mut |record: Record| {
        records.push(record);
        true
    };
    log.read(session, 0, each).await?;
    let (mut seq, mut chain) = (0, Hash::ZERO);
    for record in &records {
        chain = verify_chain(seq, chain, record).map_err(|at| {
            StoreError::Damaged(format!("event {at} does not match the hash chain"))
        })?;
        seq += 1;
    }
    let events: Vec<Option<Event>> = records
        .iter()
        .map(|record| match record.decode() {
            Decoded::Known(event) => Some(event),
            Decoded::Unknown(_) => None,
        })
        .collect();
    let base = match events.first() {
        Some(Some(Event::Forked(forked))) => {
            Some(load_upto(log, &forked.from, forked.at).await?.transcript)
        }
        _ => None,
    };
    let mut again = Replay {
        log,
        session,
        records: &records,
        events: &events,
        hands,
        s: State::default(),
        transcript: base.clone().map_or_else(Transcript::default, Transcript::on),
        base,
        out: Replayed::default(),
    };
    again.all().await?;
    Ok(again.out)
}

struct Replay<'a> {
    log: &'a dyn Store,
    session: &'a SessionId,
    records: &'a [Record],
    events: &'a [Option<Event>],
    hands: Option<ReplayPorts<'a>>,
    s: State,
    transcript: Transcript,
    base: Option<Transcript>,
    out: Replayed,
}

impl Replay<'_> {
    async fn all(&mut self) -> Result<(), StoreError> {
        while let Some(at) = usize::try_from(self.s.seq).ok().filter(|at| *at < self.records.len())
        {
            let Some(event) = &self.events[at] else {
                self.take_in(at);
                continue;
            };
            self.look(event).await?;
            let made = self.decide(event, at);
            let mut n = 0;
            // Compares what was decided with what was recorded.
            for (made, at) in made.iter().flatten().zip(at..) {
                let recorded = self.events.get(at).and_then(Option::as_ref);
                if recorded != Some(made) {
                    break;
                }
                n += 1;
            }
            match made {
                // Not the result of a decision: the start, a move, an older format.
                None => n = 1,
                Some(made) if n == made.len() && n > 0 => {}
                Some(made) => {
                    self.differs(at + n, made.get(n));
                    n = n.max(1); // continue from what was recorded
                }
            }
            for at in at..at + n {
                self.take_in(at);
                self.out.facts += 1;
            }
        }
        Ok(())
    }

    fn take_in(&mut self, at: usize) {
        let record = &self.records[at];
        let Some(event) = &self.events[at] else {
            self.s.skip(&record.envelope.kind, "", false);
            return;
        };
        if let Event::Finished(e) = event
            && matches!(e.outcome, Outcome::Interrupted | Outcome::Unknown)
            && self.s.call(e.call).is_some_and(|call| matches!(call.stage, Stage::Started(_)))
        {
            self.out.passed_over += u64::from(self.hands.is_some());
        }
        apply(&mut self.s, event);
        if self.transcript.apply(self.s.seq, event) == Fold::Again {
            let known = self.events[..=at].iter().enumerate();
            let known: Vec<(Seq, &Event)> =
                known.filter_map(|(n, e)| Some((n as Seq + 1, e.as_ref()?))).collect();
            self.transcript = Transcript::fold(self.base.clone(), known.into_iter());
        }
    }

    fn differs(&mut self, at: usize, made: Option<&Event>) {
        let seq = at as Seq + 1;
        let describe = |event: &Event| format!("{} {}", event.kind(), event.body());
        let recorded = self
            .events
            .get(at)
            .and_then(Option::as_ref)
            .map_or_else(|| "nothing".into(), &describe);
        let now = made.map_or_else(|| "nothing".into(), describe);
        self.note(seq, "the decision".into(), &recorded, &now);
    }

    fn note(&mut self, seq: Seq, what: String, recorded: &str, now: &str) {
        // Starts shortly before the first difference.
        let same = recorded.bytes().zip(now.bytes()).take_while(|(a, b)| a == b).count();
        let from = |text: &str| {
            let start = text.floor_char_boundary(same.saturating_sub(40).min(text.len()));
            let end = text.floor_char_boundary((start + SHOWN).min(text.len()));
            let (before, after) =
                (if start > 0 { "..." } else { "" }, if end < text.len() { "..." } else { "" });
            format!("{before}{}{after}", &text[start..end])
        };
        let (recorded, now) = (from(recorded), from(now));
        self.out.differences.push(Difference { seq, what, recorded, now });
    }

    /// Compares what an event records beyond decisions: the request that was answered, the output
    /// of a call.
    async fn look(&mut self, event: &Event) -> Result<(), StoreError> {
        let seq = self.s.seq + 1;
        match event {
            Event::Answered(e) => {
                let request = self.transcript.request().map(|request| request.hash());
                self.out.requests += 1;
                if request != Some(e.request) {
                    let now = request.map_or_else(|| "none".to_owned(), |hash| hash.to_string());
                    self.note(
                        seq,
                        format!("the request of step {}", e.step),
                        &e.request.to_string(),
                        &now,
                    );
                }
            }
            Event::PreambleSet(e) => self.preamble(seq, &e.preamble).await?,
            Event::Compacted(e) => {
                let now = self.transcript.shorten(e.upto, KEEP);
                if e.summary.is_none() && now != e.shortened {
                    let describe = |all: &[dunnock_proto::Shortened]| format!("{all:?}");
                    self.note(
                        seq,
                        "the shortened results".into(),
                        &describe(&e.shortened),
                        &describe(&now),
                    );
                }
                self.preamble(seq, &e.preamble).await?;
            }
            Event::Finished(e) => {
                let begun = self
                    .s
                    .call(e.call)
                    .filter(|call| matches!(call.stage, Stage::Started(_)))
                    .cloned();
                if let Some(call) = begun {
                    self.run(seq, call, e).await?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that the preamble an event refers to exists, and that rendering it again in the copy
    /// gives the same.
    async fn preamble(&mut self, seq: Seq, preamble: &Preamble) -> Result<(), StoreError> {
        let Some(bytes) =
            self.log.blob(preamble.hash).await?.filter(|bytes| Hash::of(bytes) == preamble.hash)
        else {
            self.note(
                seq,
                "the instructions".into(),
                &preamble.hash.to_string(),
                "missing or different",
            );
            return Ok(());
        };
        let Some(hands) = &self.hands else { return Ok(()) };
        // Uses what was known about the model and the machine then, so that no server is asked.
        let host = hands.model.host_info(&bytes);
        let config = Config { window: preamble.window, ..self.s.config.as_ref().clone() };
        let Ok((_, blob)) = hands.model.render_preamble(&config, hands.folder, &host).await else {
            return Ok(());
        };
        let workspace = self.s.workspace.clone().unwrap_or_default();
        let (then, now) = (String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&blob.bytes));
        let now = now.replace(hands.folder, &workspace);
        if then != now {
            let same = then.bytes().zip(now.bytes()).take_while(|(a, b)| a == b).count();
            self.note(seq, format!("the instructions, from byte {same} on"), &then, &now);
        }
        Ok(())
    }

    /// Runs a call again and compares the result.
    async fn run(&mut self, seq: Seq, call: Call, recorded: &Finished) -> Result<(), StoreError> {
        let Some(hands) = &self.hands else { return Ok(()) };
        if !matches!(recorded.outcome, Outcome::Done | Outcome::Failed) {
            return Ok(());
        }
        // In the copy no call is granted extra access, and no server is asked: the results are in the log.
        let asks_server = matches!(call.part.tool.as_str(), TOOL_FIND | TOOL_USE);
        if !call.access.is_nothing() || asks_server {
            self.out.passed_over += 1;
            return Ok(());
        }
        let quiet: DeltaSink = Arc::new(|_| {});
        let id = call.id;
        let job = ToolCall {
            session: self.session.clone(),
            workspace: hands.folder.into(),
            isolation: hands.level,
            open_hosts: HostSet::NONE,
            closes_hosts: false,
            seen: self.s.seen.clone(),
            hidden_folder: None,
            time_left: None,
            call,
        };
        let (mut now, blobs) = hands.tools.run(job, quiet, CancellationToken::default()).await;
        let workspace = self.s.workspace.clone().unwrap_or_default();
        now.shown = now.shown.replace(hands.folder, &workspace).into();
        self.out.calls += 1;
        let ends = |f: &Finished| {
            format!(
                "{:?}{}",
                f.outcome,
                f.exit.map_or_else(String::new, |exit| format!(", exit {exit}"))
            )
        };
        if ends(recorded) != ends(&now) {
            let (then, now) = (
                format!("{}: {}", ends(recorded), recorded.shown),
                format!("{}: {}", ends(&now), now.shown),
            );
            self.note(seq, format!("the outcome of call {id}"), &then, &now);
        } else if recorded.shown != now.shown {
            let (then, now) = (recorded.shown.clone(), now.shown.clone());
            self.note(seq, format!("the output of call {id}"), &then, &now);
        } else if recorded.diff != now.diff
            || recorded.seen_files != now.seen_files
            || recorded.images != now.images
        {
            let describe = |f: &Finished| format!("{:?} {:?} {:?}", f.diff, f.seen_files, f.images);
            let (then, now) = (describe(recorded), describe(&now));
            self.note(seq, format!("the file changes of call {id}"), &then, &now);
        } else if recorded.full != now.full && !mentions(&blobs, hands.folder) {
            let describe =
                |hash: Option<Hash>| hash.map_or_else(|| "none".into(), |hash| hash.to_string());
            let (then, now) = (describe(recorded.full), describe(now.full));
            self.note(seq, format!("the full output of call {id}"), &then, &now);
        }
        Ok(())
    }

    /// The events that follow from the input that this event records; `None` if it is not the
    /// result of a decision.
    fn decide(&self, event: &Event, at: usize) -> Option<Vec<Event>> {
        let cause = &self.records[at].envelope.cause;
        let me = self.s.owner.map_or(Owner(0), |current| current.owner);
        let input = match (cause, event) {
            (_, Event::Created(_) | Event::Forked(_) | Event::Moved(_))
            | (Cause::Driver, Event::Noticed(_))
            | (Cause::Other(_), _) => return None,
            (Cause::Driver, Event::Started(started)) => return Some(begin(&self.s, started.owner)),
            (Cause::Driver, Event::OwnerChanged(e)) => Input::Claim(Claim {
                owner: e.owner,
                isolation: e.isolation,
                platform: e.platform.clone(),
                app: e.app.clone(),
                untrusted: self.untrusted(at),
                in_repository: e.in_repository,
            }),
            (Cause::Driver, _) => return Some(Vec::new()),
            // An older format does not record the target.
            (Cause::Input(_), Event::RewindRequested(e)) if e.to.is_none() => return None,
            // An event that no input causes was decided then, but is not decided now.
            (Cause::Input(id), event) => match self.command(event) {
                Some(command) => {
                    Input::Command(CommandRequest { id: id.clone(), expect: None, command })
                }
                None => return Some(Vec::new()),
            },
            (Cause::Report, event) => match work(&self.s, event, self.previews(at)) {
                Some(work) => Input::Report(Report { owner: me, work }),
                None => return Some(Vec::new()),
            },
        };
        let tree_at = match event {
            Event::RewindRequested(e) => e.tree.clone(),
            _ => None,
        };
        // The context is not recorded, but can be inferred from the events that followed.
        let mut now = DecideContext {
            day_left: None,
            tree_at,
            preamble_drift: None,
            at: self.records[at].envelope.at,
            policy: Policy::default(),
        };
        let mut made = decide(&self.s, &now, input.clone()).unwrap_or_default();
        for _ in 0..2 {
            let same = made
                .iter()
                .zip(at..)
                .take_while(|(made, at)| self.recorded(*at) == Some(made))
                .count();
            match self.recorded(at + same) {
                _ if same == made.len() && !self.goes_on(at + same, cause) => break,
                Some(Event::Noticed(e)) if !e.sources.is_empty() => {
                    now.preamble_drift = Some(e.clone())
                }
                Some(Event::Asked(e)) if e.kind == QuestionKind::Budget => now.day_left = Some(0),
                Some(Event::Ended(e)) if e.reason == EndReason::Budget => now.day_left = Some(0),
                Some(_) | None => break,
            }
            made = decide(&self.s, &now, input.clone()).unwrap_or_default();
        }
        Some(made)
    }

    fn recorded(&self, at: usize) -> Option<&Event> {
        self.events.get(at).and_then(Option::as_ref)
    }

    /// Whether the event at this position has the same cause, so that it may belong to the same
    /// decision.
    fn goes_on(&self, at: usize, cause: &Cause) -> bool {
        self.records.get(at).is_some_and(|record| record.envelope.cause == *cause)
    }

    /// The folder content that was asked about at a takeover.
    fn untrusted(&self, at: usize) -> Option<Hash> {
        let same =
            self.records[at..].iter().take_while(|r| r.envelope.cause == Cause::Driver).count();
        self.events[at..at + same].iter().flatten().find_map(|event| match event {
            Event::Asked(asked) => match asked.kind {
                QuestionKind::Trust { content } => Some(content),
                _ => None,
            },
            _ => None,
        })
    }

    /// The previews for the calls of an answer, taken from the questions that followed.
    fn previews(&self, at: usize) -> Previews {
        let same =
            self.records[at..].iter().take_while(|r| r.envelope.cause == Cause::Report).count();
        let asked = self.events[at..at + same].iter().flatten().filter_map(|event| match event {
            Event::Asked(asked) => asked.kind.approval(),
            _ => None,
        });
        asked.map(|approval| (approval.call.index, approval.preview.clone())).collect()
    }

    /// The command whose first event this is.
    fn command(&self, event: &Event) -> Option<Command> {
        Some(match event {
            Event::Prompted(e) => {
                Command::Prompt { text: e.text.clone(), images: e.images.clone() }
            }
            Event::Continued(_) => Command::Run,
            Event::Replied(e) => {
                let hash = self.s.question(e.question).map_or(Hash::ZERO, |question| question.hash);
                Command::Reply {
                    question: e.question,
                    hash,
                    answer: e.answer.clone(),
                    note: e.note.clone(),
                }
            }
            Event::InterruptRequested(_) => Command::Interrupt,
            Event::RewindRequested(e) => {
                Command::Rewind { to: e.to?, scope: e.scope, force: e.force }
            }
            Event::CompactionStarted(_) => Command::Compact,
            Event::Configured(e) => Command::Configure { set: e.set.clone() },
            Event::Titled(e) => Command::Title { title: e.title.clone() },
            Event::Revoked(e) => Command::Revoke { rule: e.rule.clone() },
            _ => return None,
        })
    }
}

/// The report whose first event this is.
fn work(s: &State, event: &Event, previews: Previews) -> Option<EffectOutcome> {
    Some(match event.clone() {
        Event::PreambleSet(e) => EffectOutcome::PreambleSet(e.preamble),
        Event::Ended(e) => match e.reason {
            EndReason::Failed { error } => {
                EffectOutcome::PreambleFailed { model: s.config.model.clone(), error }
            }
            EndReason::Done
            | EndReason::Stopped
            | EndReason::Limit
            | EndReason::Budget
            | EndReason::Unproven
            | EndReason::Deadline => {
                return None;
            }
        },
        Event::OutboxWritten(e) => EffectOutcome::OutboxWritten(e),
        Event::Answered(e) => EffectOutcome::Answer(e, previews),
        Event::StepFailed(e) => EffectOutcome::Failed(e),
        Event::Finished(e) => EffectOutcome::Output(e),
        Event::Checkpointed(e) => EffectOutcome::Checkpointed(e),
        Event::Rewound(e) => EffectOutcome::Rewound(e),
        Event::RewindFailed(e) => EffectOutcome::RewindFailed(e),
        Event::Baselined(e) => EffectOutcome::Baselined(e),
        Event::Compacted(e) => EffectOutcome::Compacted(e),
        Event::CompactionFailed(e) => EffectOutcome::CompactionFailed(e),
        Event::TimerFired(e) => EffectOutcome::TimerFired(e.at),
        Event::Noticed(e) => EffectOutcome::Noticed(e),
        _ => return None,
    })
}

/// Whether an output mentions the folder it was made in: then it cannot be the same.
fn mentions(blobs: &[Blob], folder: &str) -> bool {
    blobs
        .iter()
        .any(|blob| blob.bytes.windows(folder.len()).any(|bytes| bytes == folder.as_bytes()))
}
