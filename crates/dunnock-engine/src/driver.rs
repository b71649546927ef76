//! The loop around the core: drain the mailbox, decide, append once, publish, reconcile.
//!
//! Everything that must not be lost goes through `commit.rs`; everything that runs is started in `effects.rs`. This file
//! only says in which order.

use crate::catch_up::{Loaded, refold};
use crate::hub::{Frames, Hub};
use crate::own::Ownership;
use crate::ports::Ports;
use dunnock_core::ports::{Blob, CancellationToken, LogError};
use dunnock_core::{
    Claim, Effect, EffectOutcome, Input, PhaseName, Report, State, Status, failpoint, stopping, wanted,
};
use dunnock_proto::{CommandRequest, Delta, Event, Failure, Owner, QuestionId, Record, Refused, Seq, SessionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{mpsc, oneshot, watch};

/// Inputs that one append may answer.
const DRAIN: usize = 64;

/// What reaches a driver.
pub(crate) enum Mail {
    /// A door's command, and where its answer goes.
    Order(CommandRequest, oneshot::Sender<Answer>),
    /// Work that ended, with the blobs that its events name.
    Report(Effect, EffectOutcome, Vec<Blob>),
    /// Leave.
    Close,
}

/// What a door is answered: the last event that its command made, or why not.
pub(crate) type Answer = Result<Seq, (Refused, Seq, Vec<QuestionId>)>;

/// Where a session stands, for whoever waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// Events so far.
    pub seq: Seq,
    /// In one word.
    pub status: Status,
    /// Nothing runs and nothing must: a driver may leave.
    pub parked: bool,
    /// Something is due at a time, and nobody else would think of it.
    pub due: bool,
    /// Why the driver stopped, if it did.
    pub gone: Option<String>,
}

/// Waits until a driver of this process says more. Whoever drives elsewhere, or is gone, is heard through the door: that wait has no
/// end of its own.
pub async fn changed(summary: Option<&mut watch::Receiver<SessionSummary>>) {
    let told = match summary {
        Some(summary) => summary.changed().await.is_ok(),
        None => false,
    };
    if !told {
        std::future::pending().await
    }
}

/// A way to talk to a driver in this process.
#[derive(Clone)]
pub struct Handle {
    pub(crate) mail: mpsc::Sender<Mail>,
    pub(crate) hub: Hub,
    pub(crate) world: Ports,
    pub(crate) session: SessionId,
    pub(crate) me: Owner,
    summary: watch::Receiver<SessionSummary>,
    /// The session as it was read, before it was taken over.
    read: Arc<State>,
}

impl Handle {
    /// The session as it was read when it was opened, so that whoever opened it need not read it again.
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
    pub(crate) async fn order(&self, order: CommandRequest) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        self.mail.send(Mail::Order(order, reply)).await.ok()?;
        answer.await.ok()
    }

    /// Everything after the event `from`.
    #[must_use]
    pub fn frames(&self, from: Seq) -> Frames {
        self.hub.listen(self.world.log.clone(), self.session.clone(), from)
    }

    /// Where the session stands; changes as it does.
    #[must_use]
    pub fn summary(&self) -> watch::Receiver<SessionSummary> {
        self.summary.clone()
    }

    /// Asks the driver to leave, and does not wait: for whoever is dropped.
    pub fn leave(&self) {
        let _ = self.mail.try_send(Mail::Close);
    }

    /// Asks the driver to leave, and waits until it has.
    pub async fn close(mut self) {
        let _ = self.mail.send(Mail::Close).await;
        let _ = self.summary.wait_for(|s| s.gone.is_some()).await;
    }
}

/// Work under way.
pub(crate) struct Running {
    pub(crate) halt: CancellationToken,
}

/// The owner of a session in this process.
pub(crate) struct Driver {
    pub(crate) world: Ports,
    pub(crate) session: SessionId,
    pub(crate) me: Owner,
    pub(crate) loaded: Loaded,
    pub(crate) running: BTreeMap<Effect, Running>,
    pub(crate) hub: Hub,
    pub(crate) mail: mpsc::Sender<Mail>,
    pub(crate) inbox: mpsc::Receiver<Mail>,
    /// Mail that came while the log could not be written.
    pub(crate) kept: VecDeque<Mail>,
    summary: watch::Sender<SessionSummary>,
    indexing: Arc<AtomicBool>,
    /// The preamble in use, once it was made or read.
    pub(crate) preamble: Option<Blob>,
    /// Leaving: what runs is told to stop and reports; nothing begins.
    pub(crate) closing: bool,
    /// Whether somebody can hear that the disk is full; before that it is an error.
    pub(crate) heard: bool,
    /// Where a planner stood when its memory was last written, or when it was opened.
    remembered: Stand,
    /// Held until nothing of the driver's runs any more.
    ownership: Option<Ownership>,
    /// The same lock, kept by whoever runs calls: should this process die, nobody takes over before they are dead.
    held: Option<Box<dyn Send + Sync>>,
    /// The hold on the folder that the last writer had, until the files are kept as it left them.
    pub(crate) writing: Arc<tokio::sync::Mutex<Option<crate::workspace::Writing>>>,
}

/// An input with where its answer goes and the blobs it brings.
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
    #[error("another process took the session over")]
    Lost,
    #[error("{0}")]
    Log(#[from] LogError),
}

impl Driver {
    /// Takes the session and drives it in a task of its own.
    pub(crate) async fn start(world: Ports, session: SessionId, ownership: Ownership) -> Result<Handle, LogError> {
        let loaded = crate::catch_up::load(world.log.as_ref(), &session).await?;
        let me = world.fresh_owner();
        let (mail, inbox) = mpsc::channel(256);
        let hub = Hub::default();
        hub.start_at(loaded.state.seq);
        let (tell, summary) = watch::channel(summarise(&loaded.state, me, false));
        let handle = Handle {
            mail: mail.clone(),
            hub: hub.clone(),
            world: world.clone(),
            session: session.clone(),
            me,
            summary,
            read: Arc::new(loaded.state.clone()),
        };
        let held = world.tools.hold(ownership.lock());
        // Whoever only looks, or takes something back, writes no memory over that of a later run.
        let remembered = stand(&loaded.state);
        let mut driver = Self {
            world,
            session,
            me,
            loaded,
            running: BTreeMap::new(),
            hub,
            mail,
            inbox,
            kept: VecDeque::new(),
            summary: tell,
            indexing: Arc::default(),
            preamble: None,
            closing: false,
            heard: false,
            remembered,
            ownership: Some(ownership),
            held,
            writing: Arc::default(),
        };
        if driver.loaded.state.read_only.is_none() {
            driver.take_over().await.map_err(|stopped| match stopped {
                Stopped::Log(error) => error,
                Stopped::Closed | Stopped::Lost => LogError::Failed(stopped.to_string()),
            })?;
        }
        driver.heard = true;
        #[cfg(unix)]
        if let Some(socket) = driver.ownership.as_ref().map(Ownership::socket) {
            crate::attach::listen(&handle, socket).map_err(|e| {
                let place = socket.display();
                LogError::Failed(format!(
                    "other doors could not be let in at {place}: {e}. Use a shorter runtime folder"
                ))
            })?;
        }
        tokio::spawn(driver.run());
        Ok(handle)
    }

    async fn take_over(&mut self) -> Result<(), Stopped> {
        let take = Claim {
            owner: self.me,
            isolation: self.world.level,
            platform: std::env::consts::OS.into(),
            app: self.world.app.clone(),
            untrusted: None,
        };
        failpoint::hit("take.before", "");
        self.commit(vec![Pending { input: Input::Take(take), reply: None, blobs: Vec::new() }]).await?;
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
        self.world.tools.close(&self.session).await;
        if let (Some(keeper), Some(folder)) = (&self.world.checkpoints, &self.loaded.state.workspace) {
            keeper.rest(folder).await;
        }
        drop(self.held.take());
        self.world.log.tidy().await;
        drop(self.ownership.take()); // whoever waits for the end finds nothing left behind
        // In this order: a listener that hears of the closing must find the driver gone.
        self.summary.send_modify(|s| s.gone = Some(why.to_string()));
        self.hub.close();
    }

    /// A planner's memory is a projection, too: written whenever an iteration is over. What cannot be written is said once more
    /// at the next.
    async fn remember(&mut self) {
        let s = &self.loaded.state;
        let (Some(planner), Some(workspace)) = (&s.config.planner, &s.workspace) else { return };
        let between = match s.phase.name() {
            PhaseName::Rest | PhaseName::Thinking => true,
            PhaseName::Ready | PhaseName::Acting | PhaseName::Compacting | PhaseName::Rewinding => false,
        };
        let now = stand(s);
        let iteration_over = between || !s.questions.is_empty();
        if !iteration_over || s.step.0 == 0 || self.remembered == now {
            return;
        }
        self.remembered = now;
        let Ok(told) = crate::memory::read(self.world.log.as_ref(), &self.session).await else { return };
        let text = told.text(&planner.memory);
        if let Err(error) = self.world.tools.remember(workspace, &planner.file, &text).await {
            self.say(&format!("the planner's memory could not be written: {error}"));
        }
    }

    /// Search is a projection with a cursor of its own: filled when there is nothing better to do, by one task at a time.
    fn index_at_rest(&self) {
        if self.loaded.state.busy() || self.indexing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (log, indexing, session) = (self.world.log.clone(), self.indexing.clone(), self.session.clone());
        tokio::spawn(async move {
            let _ = log.index(Some(&session)).await; // what is missing now is found at the next rest
            indexing.store(false, Ordering::Release);
        });
    }

    /// Waits for mail, then takes all that has come.
    async fn drain(&mut self) -> Vec<Mail> {
        let mut mail: Vec<Mail> = self.kept.drain(..).collect();
        if mail.is_empty() {
            mail.extend(self.inbox.recv().await);
        }
        while mail.len() < DRAIN
            && let Ok(more) = self.inbox.try_recv()
        {
            mail.push(more);
        }
        mail
    }

    /// One round: decide on everything that came, append once, publish, reconcile.
    async fn round(&mut self, mail: Vec<Mail>) -> Result<(), Stopped> {
        let mut inputs = Vec::new();
        self.closing |= mail.is_empty();
        for mail in mail {
            match mail {
                Mail::Order(order, reply) => {
                    failpoint::hit("mail.order", order.command.name());
                    inputs.push(Pending { input: Input::Order(order), reply: Some(reply), blobs: Vec::new() });
                }
                Mail::Report(effect, work, blobs) => {
                    failpoint::hit("mail.report", effect_name(&effect));
                    let running = self.running.remove(&effect);
                    if let (EffectOutcome::PreambleSet(_) | EffectOutcome::Compacted(_), Some(preamble)) =
                        (&work, blobs.first())
                    {
                        self.preamble = Some(preamble.clone());
                    }
                    // We leave; whoever drives next asks again. A preamble that was told to stop is nobody's failure: it is made
                    // again if it is still wanted.
                    let stopped = running.is_some_and(|running| running.halt.is_cancelled());
                    if (self.closing && was_cut(&work))
                        || (stopped
                            && matches!(work, EffectOutcome::PreambleFailed { .. } | EffectOutcome::Baselined(_)))
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
        // Whoever closes lets what runs come to its end and report it: a known outcome is never left unknown.
        if self.closing && !self.working() { Err(Stopped::Closed) } else { Ok(()) }
    }

    /// Reads what others wrote. Their takeover is our end.
    pub(crate) async fn catch_up(&mut self) -> Result<(), Stopped> {
        let mut records: Vec<Record> = Vec::new();
        let log = self.world.log.clone();
        log.read(&self.session, self.loaded.state.seq, &mut |record| {
            records.push(record);
            true
        })
        .await?;
        if records.is_empty() {
            // A conflict with nothing new: the ledger moved, or the log is not the one that was read.
            let stored = log.tip(&self.session).await?;
            if stored != Some((self.loaded.state.seq, self.loaded.chain)) {
                return Err(
                    LogError::Damaged("the log is not the one that was opened; open the session again".into()).into()
                );
            }
        }
        let mut lost = false;
        for record in records {
            let taken = self.take_in(record).await?;
            lost |= matches!(taken, Some(Event::OwnerChanged(taken)) if taken.owner != self.me);
        }
        if lost { Err(Stopped::Lost) } else { Ok(()) }
    }

    /// Folds and publishes an event that is durable.
    pub(crate) async fn take_in(&mut self, record: Record) -> Result<Option<Event>, Stopped> {
        let taken = self.loaded.fold_record(&record)?;
        if taken.again {
            let base = self.loaded.transcript.base();
            self.loaded.transcript =
                refold(self.world.log.as_ref(), &self.session, base, self.loaded.state.seq).await?;
        }
        self.hub.fact(record, taken.event.as_ref());
        Ok(taken.event)
    }

    /// Starts what is wanted and not running; tells what runs and is not wanted to stop.
    fn reconcile(&mut self) {
        let want: BTreeSet<Effect> = wanted(&self.loaded.state, self.me).into_iter().collect();
        for (effect, running) in &self.running {
            if self.closing || !want.contains(effect) {
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
        let _ = self.summary.send_replace(summarise(&self.loaded.state, self.me, self.working()));
    }

    /// Whether something runs that does not merely wait.
    fn working(&self) -> bool {
        self.running.keys().any(|e| !e.parked())
    }

    /// Work under way is told to stop as soon as an interrupt is accepted, before it is even durable.
    pub(crate) fn stop_early(&self, events: &[Event]) {
        if events.iter().any(|e| matches!(e, Event::InterruptRequested(_))) {
            let interruptible = |e: &Effect| e.cut().is_some();
            self.running.iter().filter(|(e, _)| interruptible(e)).for_each(|(_, r)| r.halt.cancel());
        }
    }

    /// Nothing may outlive its driver, and the session's lock is held until nothing does.
    async fn stop_everything(&mut self) {
        self.running.values().for_each(|r| r.halt.cancel());
        while self.working() {
            match self.inbox.recv().await {
                Some(Mail::Report(effect, ..)) => drop(self.running.remove(&effect)),
                Some(Mail::Order(..) | Mail::Close) => {}
                None => return,
            }
        }
    }

    pub(crate) fn say(&self, text: &str) {
        self.hub.delta(Delta::Notice { text: text.into() });
    }
}

/// A request that came to nothing because it was told to stop.
fn was_cut(work: &EffectOutcome) -> bool {
    match work {
        EffectOutcome::Failed(failed) => failed.failure == Failure::Interrupted,
        EffectOutcome::CompactionFailed(_) => true,
        _ => false,
    }
}

/// Where a planner stands: the step, whether it rests, whether it waits.
type Stand = (u32, bool, bool);

fn stand(s: &State) -> Stand {
    (s.step.0, s.phase.name() == PhaseName::Rest, !s.questions.is_empty())
}

fn summarise(s: &State, me: Owner, running: bool) -> SessionSummary {
    let parked = !running && wanted(s, me).iter().all(Effect::parked) && !s.stopping;
    SessionSummary { seq: s.seq, status: s.status(), parked, due: s.wake.is_some(), gone: None }
}

pub(crate) fn effect_name(effect: &Effect) -> &'static str {
    match effect {
        Effect::RenderPreamble { .. } => "make_head",
        Effect::AskModel { .. } => "ask_model",
        Effect::WriteOutbox { .. } => "hand_over",
        Effect::AwaitInbox { .. } => "carry",
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
