//! From inputs to durable events: decide on a copy, append, and only then apply and publish.
//!
//! An append can end in more than two ways. *Done*: apply the events. *Conflict*: another process
//! wrote first; read its events and decide again. *Unsure*: the events may have been written; apply
//! nothing, reopen the log, read it, and compare with the chain. *Full* or *Busy*: keep everything
//! in memory, start nothing, report it, try again.

use crate::batch_builder::BatchBuilder;
use crate::catch_up::Loaded;
use crate::driver::{Answer, Driver, Mail, Pending, Stopped};
use crate::ports::Ports;
use dunnock_core::policy::Policy;
use dunnock_core::{
    DecideContext, EffectOutcome, FileHistory, Input, Report, State, begin, decide, failpoint,
};
use dunnock_ports::{Appended, Batch, Blob, Charge, DayTotal, EventLog, StoreError, fold_events};
use dunnock_proto::{
    At, Cause, Command, InputId, Noticed, Record, Refused, RewindTo, Seq, SessionId, Tree,
};
use std::time::Duration;
use tokio::sync::oneshot;

/// Milliseconds per day.
const DAY: i64 = 86_400_000;

/// How often a failed write is retried before the driver gives up.
const TRIES: u32 = 6;

/// A decision on several inputs: its events, and the answer for each sender.
struct Decided {
    builder: BatchBuilder,
    inputs: Vec<(InputId, Seq)>,
    /// The answer for each input. A refusal is checked against the log: the command may have been
    /// executed before.
    answers: Vec<Result<Seq, Refused>>,
    charge: Option<Charge>,
}

impl Driver {
    /// Makes the events of the inputs durable, applies them and answers the senders.
    pub(crate) async fn commit(&mut self, mut inputs: Vec<Pending>) -> Result<(), Stopped> {
        let mut blobs: Vec<Blob> =
            inputs.iter_mut().flat_map(|p| std::mem::take(&mut p.blobs)).collect();
        blobs.dedup_by_key(|b| b.hash);
        let mut delay = Duration::from_millis(10);
        let mut tries = 0;
        loop {
            let decided = self.decide_all(&inputs).await?;
            if decided.builder.records.is_empty() {
                return self.answer(inputs, decided).await;
            }
            let batch = Batch {
                inputs: decided.inputs.clone(),
                blobs: blobs.clone(),
                charge: decided.charge,
                ..decided.builder.batch(&self.session)
            };
            let what = decided.builder.records[0].envelope.kind.clone();
            failpoint::hit("append.before", &what);
            let end = self.ports.store.append(batch).await;
            match end {
                Ok(Appended::Done) => {
                    failpoint::hit("append.after", &what);
                    return self.apply_committed(inputs, decided).await;
                }
                Ok(Appended::Conflict) => self.catch_up().await?,
                Ok(Appended::Repeated(id, seq)) => {
                    self.catch_up().await?;
                    answer_repeated(&mut inputs, &id, seq);
                }
                Err(StoreError::Unsure(why)) => {
                    self.say(&format!("the last write may have failed ({why}); checking the log"));
                    if self.resolve_uncertain_append(&decided).await? {
                        return self.apply_committed(inputs, decided).await;
                    }
                    self.pause_before_retry(delay).await?;
                    delay = (delay * 2).min(Duration::from_secs(2));
                }
                Err(error @ (StoreError::Full(_) | StoreError::Busy(_)))
                    if !self.clients_can_connect =>
                {
                    return Err(error.into());
                }
                Err(error @ (StoreError::Full(_) | StoreError::Busy(_))) => {
                    self.say(&error.to_string());
                    self.pause_before_retry(delay).await?;
                    delay = (delay * 2).min(Duration::from_secs(2));
                }
                Err(error @ StoreError::Failed(_)) if tries < TRIES => {
                    tries += 1;
                    self.say(&format!("{error}; trying again"));
                    self.pause_before_retry(delay).await?;
                    delay = (delay * 2).min(Duration::from_secs(2));
                }
                Err(
                    error @ (StoreError::Failed(_)
                    | StoreError::Damaged(_)
                    | StoreError::StoreDamaged(_)
                    | StoreError::Refused(_)
                    | StoreError::NoSession(_)
                    | StoreError::Forked(_)),
                ) => return Err(error.into()),
            }
        }
    }

    /// Decides every input on a copy of the state, then starts the calls that may start.
    async fn decide_all(&self, inputs: &[Pending]) -> Result<Decided, Stopped> {
        let at = self.ports.clock.now();
        let (ledger, today) = ledger(&self.ports, at).await?;
        let before = &self.loaded.state;
        let mut builder = BatchBuilder::after(before.clone(), self.loaded.chain, at);
        let mut input_seqs = Vec::new();
        let mut answers = Vec::new();
        let mut known: Vec<(&InputId, Result<Seq, Refused>)> = Vec::new();
        for pending in inputs {
            // A command sent twice in one round gets one answer. An interrupt that was executed
            // before must not stop work started since, so it is looked up before it is considered.
            if let Input::Command(request) = &pending.input {
                if let Some((_, first)) = known.iter().find(|(id, _)| *id == &request.id) {
                    answers.push(first.clone());
                    continue;
                }
                if request.command == Command::Interrupt
                    && let Some(seq) = self.ports.store.answered(&self.session, &request.id).await?
                {
                    answers.push(Ok(seq));
                    continue;
                }
            }
            let tree_at = self.tree_at(&pending.input).await?;
            let day_left = day_left(&self.ports, (ledger, today), &self.loaded, &builder.state);
            let preamble_drift = preamble_drift(&self.ports, &builder.state, &pending.input);
            let events = match decide(
                &builder.state,
                &DecideContext { day_left, tree_at, preamble_drift, at, policy: Policy::default() },
                pending.input.clone(),
            ) {
                Ok(events) => events,
                Err(refused) => {
                    if let Input::Command(request) = &pending.input {
                        known.push((&request.id, Err(refused.clone())));
                    }
                    answers.push(Err(refused));
                    continue;
                }
            };
            self.stop_early(&events);
            let cause = match &pending.input {
                Input::Command(request) => Cause::Input(request.id.clone()),
                Input::Report(_) => Cause::Report,
                Input::Claim(_) => Cause::Driver,
            };
            events.iter().for_each(|event| builder.add(event, cause.clone()));
            let seq = builder.state.seq;
            if let Input::Command(request) = &pending.input {
                input_seqs.push((request.id.clone(), seq));
                known.push((&request.id, Ok(seq)));
            }
            answers.push(Ok(seq));
        }
        let begun = if self.closing { Vec::new() } else { begin(&builder.state, self.me) };
        begun.iter().for_each(|event| builder.add(event, Cause::Driver));
        let charge = charge(&self.ports, (ledger, today), &self.loaded, &builder.state);
        Ok(Decided { builder, inputs: input_seqs, answers, charge })
    }

    /// The files at the event that a rewind names.
    async fn tree_at(&self, input: &Input) -> Result<Option<Tree>, Stopped> {
        let Input::Command(request) = input else { return Ok(None) };
        let Command::Rewind { to: RewindTo::Event(at), force, .. } = request.command else {
            return Ok(None);
        };
        let past = past(self.ports.store.as_ref(), &self.session).await?;
        Ok(past.tree_at(at, force).cloned())
    }

    /// Folds and publishes what is now durable, then answers the senders.
    async fn apply_committed(
        &mut self,
        inputs: Vec<Pending>,
        mut decided: Decided,
    ) -> Result<(), Stopped> {
        let what = decided.builder.records[0].envelope.kind.clone();
        failpoint::hit("publish.before", &what);
        for record in std::mem::take(&mut decided.builder.records) {
            self.fold_record(record).await?;
        }
        debug_assert_eq!(
            self.loaded.state, decided.builder.state,
            "what was decided is what was folded"
        );
        failpoint::hit("publish.after", &what);
        self.answer(inputs, decided).await
    }

    /// Answers each sender. A refused command may have been executed before: then it gets the same
    /// answer again.
    async fn answer(&mut self, inputs: Vec<Pending>, decided: Decided) -> Result<(), Stopped> {
        for (pending, answer) in inputs.into_iter().zip(decided.answers) {
            let (Some(reply), Input::Command(request)) = (pending.reply, pending.input) else {
                continue;
            };
            let answer: Answer = match answer {
                Ok(seq) => Ok(seq),
                Err(refused) => {
                    match self.ports.store.answered(&self.session, &request.id).await? {
                        Some(seq) => Ok(seq),
                        None => {
                            let s = &self.loaded.state;
                            Err((refused, s.version, s.questions.iter().map(|q| q.id).collect()))
                        }
                    }
                }
            };
            failpoint::hit("answer.before", request.command.name());
            let _ = reply.send(answer);
        }
        Ok(())
    }

    /// After an uncertain append: reopens the log until it can be read, and returns whether the
    /// events were written. Nothing else happens meanwhile.
    async fn resolve_uncertain_append(&mut self, decided: &Decided) -> Result<bool, Stopped> {
        let mut delay = Duration::from_millis(20);
        loop {
            let log = self.ports.store.clone();
            let mut records: Vec<Record> = Vec::new();
            let read = async {
                log.reopen().await?;
                log.read(&self.session, self.loaded.state.seq, &mut |record| {
                    records.push(record);
                    true
                })
                .await
            };
            match read.await {
                Ok(()) => {
                    let mine = decided.builder.records.iter().zip(&records).all(|(a, b)| a == b);
                    return Ok(mine && records.len() >= decided.builder.records.len());
                }
                Err(
                    error @ (StoreError::Damaged(_)
                    | StoreError::StoreDamaged(_)
                    | StoreError::Refused(_)
                    | StoreError::NoSession(_)
                    | StoreError::Forked(_)),
                ) => return Err(error.into()),
                Err(
                    error @ (StoreError::Unsure(_)
                    | StoreError::Full(_)
                    | StoreError::Busy(_)
                    | StoreError::Failed(_)),
                ) => {
                    self.say(&format!("still checking the log: {error}"));
                    self.pause_before_retry(delay).await?;
                    delay = (delay * 2).min(Duration::from_secs(2));
                }
            }
        }
    }

    /// Waits before the next attempt. Mail is queued; an interrupt reaches running work at once.
    async fn pause_before_retry(&mut self, delay: Duration) -> Result<(), Stopped> {
        let pause = tokio::time::sleep(delay);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => return Ok(()),
                mail = self.mailbox.recv() => match mail {
                    None | Some(Mail::Close) => return Err(Stopped::Closed),
                    Some(mail) => {
                        if matches!(&mail, Mail::Command(request, _) if request.command == Command::Interrupt) {
                            self.running.values().for_each(|r| r.halt.cancel());
                        }
                        self.kept.push_back(mail);
                    }
                },
            }
        }
    }
}

/// The file history of a session.
///
/// # Errors
/// If the log cannot be read.
pub async fn past(log: &dyn EventLog, session: &SessionId) -> Result<FileHistory, StoreError> {
    let start = FileHistory::default();
    fold_events(log, session, start, |past, at, event| past.add(at.seq, &event)).await
}

/// What changed in the sources of the preamble; checked when a step may start and when a call may
/// have written files.
pub(crate) fn preamble_drift(ports: &Ports, s: &State, input: &Input) -> Option<Noticed> {
    let looks = match input {
        Input::Claim(_) => true,
        Input::Command(request) => {
            matches!(request.command, Command::Prompt { .. } | Command::Run | Command::Reply { .. })
        }
        Input::Report(Report { work: EffectOutcome::Output(finished), .. }) => {
            s.call(finished.call).is_some_and(dunnock_core::Call::writes)
        }
        Input::Report(_) => false,
    };
    let preamble =
        s.preamble.as_ref().filter(|_| looks && !s.sources.is_empty() && s.preamble_fits())?;
    ports.model.preamble_drift(
        &s.config,
        s.workspace.as_deref().unwrap_or_default(),
        preamble,
        &s.sources,
    )
}

/// The day's ledger, if there is a daily budget, and the day.
pub(crate) async fn ledger(ports: &Ports, at: At) -> Result<(DayTotal, i64), StoreError> {
    let today = at.0.div_euclid(DAY);
    match ports.day_budget {
        Some(_) => Ok((ports.store.day_total(today).await?, today)),
        None => Ok((DayTotal::default(), today)),
    }
}

/// What is left of the day's budget. The reservation for this session's request counts as
/// available: the next decision refunds or uses it. What was decided in the same round is not in
/// the ledger yet, so it is subtracted.
pub(crate) fn day_left(
    ports: &Ports,
    (ledger, day): (DayTotal, i64),
    loaded: &Loaded,
    next: &State,
) -> Option<u64> {
    let before = &loaded.state;
    let own = if loaded.reserved_at.0.div_euclid(DAY) == day { before.reserved.micros } else { 0 };
    let since = next.spent.micros.saturating_sub(before.spent.micros);
    let gone = ledger.micros.max(0).cast_unsigned().saturating_sub(own).saturating_add(since);
    ports.day_budget.map(|budget| budget.saturating_sub(gone))
}

/// What a decision charges to the day's budget, or refunds.
pub(crate) fn charge(
    ports: &Ports,
    (ledger, day): (DayTotal, i64),
    loaded: &Loaded,
    next: &State,
) -> Option<Charge> {
    let before = &loaded.state;
    let held = |s: &State| (s.spent.micros + s.reserved.micros).cast_signed();
    let spent = (next.spent.micros - before.spent.micros).cast_signed();
    let micros = match loaded.reserved_at.0.div_euclid(DAY) == day || before.reserved.is_nothing() {
        true => held(next) - held(before),
        false if spent == 0 && next.reserved == before.reserved => 0,
        // A reservation made on another day is not refunded to this one.
        false => {
            next.reserved.micros.cast_signed()
                + (spent - before.reserved.micros.cast_signed()).max(0)
        }
    };
    (ports.day_budget.is_some() && micros != 0).then_some(Charge {
        day,
        micros,
        version: ledger.version,
    })
}

/// The command was executed before: it gets the same answer again, and the others are decided
/// without it.
fn answer_repeated(inputs: &mut Vec<Pending>, id: &InputId, seq: Seq) {
    let Some(at) = inputs
        .iter()
        .position(|p| matches!(&p.input, Input::Command(request) if request.id == *id))
    else {
        return;
    };
    let reply: Option<oneshot::Sender<Answer>> = inputs.remove(at).reply;
    if let Some(reply) = reply {
        let _ = reply.send(Ok(seq));
    }
}
