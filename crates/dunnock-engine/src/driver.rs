//! The loop around the core: drain the mailbox, decide, append once, publish, reconcile.
//!
//! Everything that must not be lost goes through `commit.rs`; all work is started in `effects.rs`.
//! This file only defines the order.

use crate::catch_up::{Loaded, refold};
use crate::hub::{Frames, Hub};
use crate::ports::Ports;
use dunnock_core::{
    Claim, Effect, EffectOutcome, Input, PhaseName, Report, State, Status, failpoint, settled,
    stopping, wanted,
};
use dunnock_ports::{Blob, CancellationToken, Owned, StoreError};
use dunnock_proto::{
    CommandRequest, Delta, Event, Failure, Owner, QuestionId, Record, Refused, Seq, SessionId,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{mpsc, oneshot, watch};

/// The maximum number of inputs per append.
const DRAIN: usize = 64;

/// A message to a driver.
pub(crate) enum Mail {
    /// A client's command, and where to send the answer.
    Command(CommandRequest, oneshot::Sender<Answer>),
    /// Work that ended, with the blobs that its events refer to.
    Report(Effect, EffectOutcome, Vec<Blob>),
    /// A request to stop driving.
    Close,
}

/// The answer to a client: the last event that its command caused, or why it was refused.
pub(crate) type Answer = Result<Seq, (Refused, Seq, Vec<QuestionId>)>;

/// The state of a session, for those waiting for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The number of events so far.
    pub seq: Seq,
    /// Its status in one word.
    pub status: Status,
    /// Nothing runs and nothing needs to: the driver may leave.
    pub parked: bool,
    /// A retry is due at a certain time, and only this driver will start it.
    pub due: bool,
    /// Why the driver stopped, if it did.
    pub gone: Option<String>,
}

impl SessionSummary {
    /// Whether nothing runs and nothing is due.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.parked && !self.due
    }
}

/// Waits until a driver in this process reports a change. A driver elsewhere, or one that is gone,
/// is noticed through the connection, so that wait never ends.
pub async fn changed(summary: Option<&mut watch::Receiver<SessionSummary>>) {
    let changed = match summary {
        Some(summary) => summary.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending().await
    }
}

/// A handle to a driver in this process.
#[derive(Clone)]
pub struct Handle {
    pub(crate) mail: mpsc::Sender<Mail>,
    pub(crate) hub: Hub,
    pub(crate) ports: Ports,
    pub(crate) session: SessionId,
    pub(crate) me: Owner,
    summary: watch::Receiver<SessionSummary>,
    /// The session as it was read, before the takeover.
    read: Arc<State>,
}

impl Handle {
    /// The session as it was read when it was opened, so that the caller need not read it again.
    #[must_use]
    pub fn as_read(&self) -> &State {
        &self.read
    }

    /// The owner: this process at this takeover.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.me
    }

    /// Sends a command and waits until it is durable or refused.
    pub(crate) async fn submit(&self, request: CommandRequest) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        self.mail.send(Mail::Command(request, reply)).await.ok()?;
        answer.await.ok()
    }

    /// Everything after the event `from`.
    #[must_use]
    pub fn frames(&self, from: Seq) -> Frames {
        self.hub.listen(self.ports.store.clone(), self.session.clone(), from)
    }

    /// The current state of the session; updated as it changes.
    #[must_use]
    pub fn summary(&self) -> watch::Receiver<SessionSummary> {
        self.summary.clone()
    }

    /// Asks the driver to leave without waiting, for use in `Drop`.
    pub fn leave(&self) {
        let _ = self.mail.try_send(Mail::Close);
    }

    /// Asks the driver to leave, and waits until it has.
    pub async fn close(mut self) {
        let _ = self.mail.send(Mail::Close).await;
        let _ = self.summary.wait_for(|s| s.gone.is_some()).await;
    }
}

/// Work in progress.
pub(crate) struct Running {
    pub(crate) halt: CancellationToken,
}

/// The owner of a session in this process.
pub(crate) struct Driver {
    pub(crate) ports: Ports,
    pub(crate) session: SessionId,
    pub(crate) me: Owner,
    pub(crate) loaded: Loaded,
    pub(crate) running: BTreeMap<Effect, Running>,
    pub(crate) hub: Hub,
    pub(crate) mail: mpsc::Sender<Mail>,
    pub(crate) mailbox: mpsc::Receiver<Mail>,
    /// Mail that arrived while the log could not be written.
    pub(crate) kept: VecDeque<Mail>,
    summary: watch::Sender<SessionSummary>,
    indexing: Arc<AtomicBool>,
    /// The current preamble, once it was rendered or read.
    pub(crate) preamble: Option<Blob>,
    /// The driver is leaving: running work is asked to stop and reports; nothing starts.
    pub(crate) closing: bool,
    /// Whether anybody can receive a notice that the disk is full; until then it is an error.
    pub(crate) clients_can_connect: bool,
    /// The planner's progress when its memory was last written, or when it was opened.
    remembered: Stand,
    /// Held until nothing that the driver started is running.
    owned: Option<Box<dyn Owned>>,
    /// The same lock, held by the processes that run calls: if this process dies, nobody takes
    /// over before they are dead.
    held: Option<Box<dyn Send + Sync>>,
    /// The last writer's hold on the folder, until its changes are saved in a checkpoint.
    pub(crate) writing: Arc<tokio::sync::Mutex<Option<crate::workspace::Writing>>>,
}

/// An input, where to send its answer, and the blobs that come with it.
pub(crate) struct Pending {
    pub(crate) input: Input,
    pub(crate) reply: Option<oneshot::Sender<Answer>>,
    pub(crate) blobs: Vec<Blob>,
}

/// Why a driver stops.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stopped {
    #[error("closed")]
    Closed,
    #[error("another process took over the session")]
    Lost,
    #[error("{0}")]
    Log(#[from] StoreError),
}

impl Driver {
    /// Takes over the session and drives it in a task of its own.
    pub(crate) async fn start(
        ports: Ports,
        session: SessionId,
        owned: Box<dyn Owned>,
    ) -> Result<Handle, StoreError> {
        let loaded = crate::catch_up::load(ports.store.as_ref(), &session).await?;
        let me = ports.fresh_owner();
        let (mail, mailbox) = mpsc::channel(256);
        let hub = Hub::default();
        hub.start_at(loaded.state.seq);
        let (tell, summary) = watch::channel(summarise(&loaded.state, false));
        let handle = Handle {
            mail: mail.clone(),
            hub: hub.clone(),
            ports: ports.clone(),
            session: session.clone(),
            me,
            summary,
            read: Arc::new(loaded.state.clone()),
        };
        ports.tools.mend();
        let held = owned.lock().and_then(|lock| ports.tools.hold(lock));
        // A driver that only looks or undoes must not overwrite the memory of a later run.
        let remembered = stand(&loaded.state);
        let mut driver = Self {
            ports,
            session,
            me,
            loaded,
            running: BTreeMap::new(),
            hub,
            mail,
            mailbox,
            kept: VecDeque::new(),
            summary: tell,
            indexing: Arc::default(),
            preamble: None,
            closing: false,
            clients_can_connect: false,
            remembered,
            owned: Some(owned),
            held,
            writing: Arc::default(),
        };
        if driver.loaded.state.read_only.is_none() {
            driver.take_over().await.map_err(|stopped| match stopped {
                Stopped::Log(error) => error,
                Stopped::Closed | Stopped::Lost => StoreError::Refused(stopped.to_string()),
            })?;
        }
        driver.clients_can_connect = true;
        #[cfg(unix)]
        if let Some(socket) = driver.owned.as_ref().map(|owned| owned.socket()) {
            crate::attach::listen(&handle, socket).map_err(|e| {
                let place = socket.display();
                StoreError::Refused(format!(
                    "cannot listen for other clients at {place}: {e}. Use a shorter runtime folder"
                ))
            })?;
        }
        tokio::spawn(driver.run());
        Ok(handle)
    }

    async fn take_over(&mut self) -> Result<(), Stopped> {
        let claim = Claim {
            owner: self.me,
            isolation: self.ports.level,
            platform: std::env::consts::OS.into(),
            app: self.ports.app.clone(),
            untrusted: None,
            in_repository: self
                .loaded
                .state
                .workspace
                .as_deref()
                .is_some_and(|workspace| self.ports.tools.is_in_repository(workspace)),
        };
        failpoint::hit("take.before", "");
        self.commit(vec![Pending { input: Input::Claim(claim), reply: None, blobs: Vec::new() }])
            .await?;
        failpoint::hit("take.after", "");
        self.reconcile();
        Ok(())
    }

    async fn run(mut self) {
        let why = loop {
            let mail = self.drain().await;
            if let Err(stopped) = self.round(mail).await {
                break stopped;
            }
            self.remember().await;
            self.index_at_rest();
        };
        self.stop_everything().await;
        self.ports.tools.close(&self.session).await;
        if let (Some(checkpoints), Some(folder)) =
            (&self.ports.checkpoints, &self.loaded.state.workspace)
        {
            checkpoints.rest(folder).await;
        }
        drop(self.held.take());
        self.ports.store.tidy().await;
        drop(self.owned.take()); // anyone waiting for the end finds nothing left behind
        // In this order: a subscriber that sees the closing frame must find the driver gone.
        self.summary.send_modify(|s| s.gone = Some(why.to_string()));
        self.hub.close();
    }

    /// A planner's memory is a projection, too: it is written whenever an iteration ends. If that
    /// fails, the next iteration writes it again.
    async fn remember(&mut self) {
        let s = &self.loaded.state;
        let (Some(planner), Some(workspace)) = (&s.config.planner, &s.workspace) else { return };
        let between = match s.phase.name() {
            PhaseName::Rest | PhaseName::Thinking => true,
            PhaseName::Ready | PhaseName::Acting | PhaseName::Compacting | PhaseName::Rewinding => {
                false
            }
        };
        let now = stand(s);
        let iteration_over = between || !s.questions.is_empty();
        if !iteration_over || s.step.0 == 0 || self.remembered == now {
            return;
        }
        self.remembered = now;
        let Ok(told) = crate::memory::read(self.ports.store.as_ref(), &self.session).await else {
            return;
        };
        let text = told.text(&planner.memory);
        if let Err(error) = self.ports.tools.remember(workspace, &planner.file, &text).await {
            self.say(&format!("the planner's memory could not be written: {error}"));
        }
    }

    /// The search index is a projection with its own cursor: it is filled while the session is
    /// idle, by one task at a time.
    fn index_at_rest(&self) {
        if self.loaded.state.busy() || self.indexing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (log, indexing, session) =
            (self.ports.store.clone(), self.indexing.clone(), self.session.clone());
        tokio::spawn(async move {
            let _ = log.index(Some(&session)).await; // what is missing now is indexed when the session is next idle
            indexing.store(false, Ordering::Release);
        });
    }

    /// Waits for mail, then takes everything that has arrived.
    async fn drain(&mut self) -> Vec<Mail> {
        let mut mail: Vec<Mail> = self.kept.drain(..).collect();
        if mail.is_empty() {
            mail.extend(self.mailbox.recv().await);
        }
        while mail.len() < DRAIN
            && let Ok(more) = self.mailbox.try_recv()
        {
            mail.push(more);
        }
        mail
    }

    /// One round: decide on all inputs, append once, publish, reconcile.
    async fn round(&mut self, mail: Vec<Mail>) -> Result<(), Stopped> {
        let mut inputs = Vec::new();
        self.closing |= mail.is_empty();
        for mail in mail {
            match mail {
                Mail::Command(request, reply) => {
                    failpoint::hit("mail.order", request.command.name());
                    inputs.push(Pending {
                        input: Input::Command(request),
                        reply: Some(reply),
                        blobs: Vec::new(),
                    });
                }
                Mail::Report(effect, work, blobs) => {
                    failpoint::hit("mail.report", effect_name(&effect));
                    let running = self.running.remove(&effect);
                    if let (
                        EffectOutcome::PreambleSet(_) | EffectOutcome::Compacted(_),
                        Some(preamble),
                    ) = (&work, blobs.first())
                    {
                        self.preamble = Some(preamble.clone());
                    }
                    // This driver is leaving, and the next one asks again. A preamble that was
                    // cancelled is not a failure: it is rendered again if still wanted.
                    let stopped = running.is_some_and(|running| running.halt.is_cancelled());
                    if (self.closing && (was_cut(&work) || stopped && is_unsaved(&work)))
                        || (stopped
                            && matches!(
                                work,
                                EffectOutcome::PreambleFailed { .. } | EffectOutcome::Baselined(_)
                            ))
                    {
                        continue;
                    }
                    let report = Report { owner: self.me, work };
                    inputs.push(Pending { input: Input::Report(report), reply: None, blobs });
                }
                Mail::Close => self.closing = true,
            }
        }
        if !inputs.is_empty() {
            self.commit(inputs).await?;
        }
        self.reconcile();
        // A closing driver lets running work end and report: a known outcome is never left unknown.
        if self.closing && !self.working() { Err(Stopped::Closed) } else { Ok(()) }
    }

    /// Reads what others wrote. If another process took over, this driver stops.
    pub(crate) async fn catch_up(&mut self) -> Result<(), Stopped> {
        let mut records: Vec<Record> = Vec::new();
        let log = self.ports.store.clone();
        log.read(&self.session, self.loaded.state.seq, &mut |record| {
            records.push(record);
            true
        })
        .await?;
        if records.is_empty() {
            // A conflict with nothing new: the ledger changed, or this is not the log that was
            // read.
            let stored = log.tip(&self.session).await?;
            if stored != Some((self.loaded.state.seq, self.loaded.chain)) {
                let why =
                    "the log was replaced after the session was opened; open the session again";
                return Err(StoreError::Damaged(why.into()).into());
            }
        }
        let mut lost = false;
        for record in records {
            let taken = self.fold_record(record).await?;
            lost |= matches!(taken, Some(Event::OwnerChanged(taken)) if taken.owner != self.me);
        }
        if lost { Err(Stopped::Lost) } else { Ok(()) }
    }

    /// Folds in and publishes a durable event.
    pub(crate) async fn fold_record(&mut self, record: Record) -> Result<Option<Event>, Stopped> {
        let taken = self.loaded.fold_record(&record)?;
        if taken.again {
            let base = self.loaded.transcript.base();
            self.loaded.transcript =
                refold(self.ports.store.as_ref(), &self.session, base, self.loaded.state.seq)
                    .await?;
        }
        self.hub.fact(record, taken.event.as_ref());
        Ok(taken.event)
    }

    /// Starts work that is wanted and not running; cancels work that is running and not wanted.
    fn reconcile(&mut self) {
        let want: BTreeSet<Effect> = wanted(&self.loaded.state, self.me).into_iter().collect();
        for (effect, running) in &self.running {
            // A checkpoint that is no longer wanted is nearly the one that is wanted instead.
            let unwanted = !want.contains(effect) && !is_checkpoint(effect);
            if self.closing || unwanted {
                running.halt.cancel();
            }
        }
        for effect in stopping(&self.loaded.state, self.me) {
            if !self.running.contains_key(&effect)
                && let Some(cut) = effect.cut()
            {
                self.kept.push_back(Mail::Report(effect, cut, Vec::new()));
            }
        }
        for effect in &want {
            if !self.closing && !self.running.contains_key(effect) {
                failpoint::hit("spawn.before", effect_name(effect));
                self.spawn(effect.clone());
                failpoint::hit("spawn.after", effect_name(effect));
            }
        }
        let _ = self.summary.send_replace(summarise(&self.loaded.state, self.working()));
    }

    /// Whether anything is running that does not merely wait.
    fn working(&self) -> bool {
        self.running.keys().any(|e| !e.parked())
    }

    /// Cancels running work as soon as an interrupt is accepted, before it is even durable.
    pub(crate) fn stop_early(&self, events: &[Event]) {
        if events.iter().any(|e| matches!(e, Event::InterruptRequested(_))) {
            let interruptible = |e: &Effect| e.cut().is_some() || is_checkpoint(e);
            self.running
                .iter()
                .filter(|(e, _)| interruptible(e))
                .for_each(|(_, r)| r.halt.cancel());
        }
    }

    /// No work may outlive its driver, and the session's lock is held until all of it has ended.
    async fn stop_everything(&mut self) {
        self.running.values().for_each(|r| r.halt.cancel());
        // What was set aside while the log could not be written has ended, too.
        for mail in std::mem::take(&mut self.kept) {
            if let Mail::Report(effect, ..) = mail {
                drop(self.running.remove(&effect));
            }
        }
        while self.working() {
            match self.mailbox.recv().await {
                Some(Mail::Report(effect, ..)) => drop(self.running.remove(&effect)),
                Some(Mail::Command(..) | Mail::Close) => {}
                None => return,
            }
        }
    }

    pub(crate) fn say(&self, text: &str) {
        self.hub.delta(Delta::Notice { text: text.into() });
    }
}

fn is_checkpoint(effect: &Effect) -> bool {
    matches!(effect, Effect::Checkpoint { .. })
}

/// Whether files could not be saved.
fn is_unsaved(work: &EffectOutcome) -> bool {
    matches!(work, EffectOutcome::Checkpointed(kept) if kept.tree.is_none())
}

/// Whether a request failed because it was cancelled.
fn was_cut(work: &EffectOutcome) -> bool {
    match work {
        EffectOutcome::Failed(failed) => failed.failure == Failure::Interrupted,
        EffectOutcome::CompactionFailed(_) => true,
        _ => false,
    }
}

/// A planner's progress: the step, whether it is idle, whether it waits for an answer.
type Stand = (u32, bool, bool);

fn stand(s: &State) -> Stand {
    (s.step.0, s.phase.name() == PhaseName::Rest, !s.questions.is_empty())
}

fn summarise(s: &State, running: bool) -> SessionSummary {
    let parked = !running && settled(s);
    SessionSummary { seq: s.seq, status: s.status(), parked, due: s.wake.is_some(), gone: None }
}

pub(crate) fn effect_name(effect: &Effect) -> &'static str {
    match effect {
        Effect::RenderPreamble { .. } => "render_preamble",
        Effect::AskModel { .. } => "ask_model",
        Effect::WriteOutbox { .. } => "write_outbox",
        Effect::AwaitInbox { .. } => "await_inbox",
        Effect::Run { .. } => "run",
        Effect::Join { .. } => "join",
        Effect::Checkpoint { .. } => "checkpoint",
        Effect::Restore { .. } => "restore",
        Effect::Compact { .. } => "compact",
        Effect::Baseline { .. } => "baseline",
        Effect::AskPerson { .. } => "ask_person",
        Effect::Wake { .. } => "wake",
    }
}
