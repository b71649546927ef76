//! A world for one session: a shared log, processes that drive it or only answer, and everything
//! that goes wrong.

use crate::inputs::{self, Raw};
use crate::rng::Rng;
use dunnock_core::policy::Policy;
use dunnock_core::{
    DecideContext, Effect, EffectOutcome, Fold, Input, Report, Request, State, Transcript, apply,
    begin, decide, stopping, wanted,
};
use dunnock_proto::*;
use std::collections::{BTreeMap, BTreeSet};

/// The log as the store keeps it: compare-and-append, and one answer for each input id.
#[derive(Default)]
pub struct Store {
    pub log: Vec<Event>,
    pub inputs: BTreeMap<InputId, Seq>,
}

pub enum Append {
    Done,
    Conflict,
    Repeated(Seq),
    /// The writer is not told whether it was written.
    Unsure,
}

impl Store {
    fn append(
        &mut self,
        r: &mut Rng,
        after: Seq,
        events: &[Event],
        id: Option<&InputId>,
    ) -> Append {
        if let Some(seq) = id.and_then(|id| self.inputs.get(id)) {
            return Append::Repeated(*seq);
        }
        if self.log.len() as Seq != after {
            return Append::Conflict;
        }
        let unsure = r.chance(3);
        if !(unsure && r.chance(50)) {
            self.log.extend_from_slice(events);
            if let Some(id) = id {
                self.inputs.insert(id.clone(), self.log.len() as Seq);
            }
        }
        if unsure { Append::Unsure } else { Append::Done }
    }
}

/// A process that has folded the log. A driver also runs what is wanted.
pub struct Process {
    pub me: Owner,
    pub drives: bool,
    pub state: State,
    pub transcript: Transcript,
    /// What is under way; whether it was told to stop.
    pub running: BTreeMap<Effect, bool>,
}

/// What one input came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    Accepted(Seq),
    Refused(Refused),
    /// The process died on the way, or found that it had lost the session.
    Died,
}

pub struct World {
    pub r: Rng,
    pub store: Store,
    pub driver: Option<Process>,
    pub serial: u64,
    /// How often each call's work was really begun, and by whom.
    pub begun: BTreeMap<CallId, Vec<(Recovery, Owner)>>,
    /// Every request as it was sent: step, hash, bytes.
    pub sent: Vec<(Step, Hash, Vec<u8>)>,
    pub tally: Tally,
    /// The lists that processes have, where they differ.
    pub lists: Vec<Policy>,
}

/// What the random run reached.
#[derive(Default, Clone)]
pub struct Tally {
    pub steps: u64,
    pub changed: u64,
    pub crashes: u64,
    pub requests: u64,
    pub undone: u64,
    pub pairs: BTreeMap<(String, bool, &'static str), u64>,
    pub kinds: BTreeMap<&'static str, u64>,
    pub refusals: BTreeMap<String, u64>,
}

pub fn fold(log: &[Event]) -> State {
    let mut s = State::default();
    log.iter().for_each(|e| apply(&mut s, e));
    s
}

pub fn refold(log: &[Event]) -> Transcript {
    Transcript::fold(None, (1..).zip(log))
}

fn kind_of(input: &Input) -> &'static str {
    match input {
        Input::Claim(_) => "take",
        Input::Command(request) => request.command.name(),
        Input::Report(report) => match report.work {
            EffectOutcome::PreambleSet(_) => "preamble_set",
            EffectOutcome::PreambleFailed { .. } => "head_failed",
            EffectOutcome::OutboxWritten(_) => "outbox_written",
            EffectOutcome::Answer(..) => "answer",
            EffectOutcome::Failed(_) => "failed",
            EffectOutcome::Output(_) => "output",
            EffectOutcome::Checkpointed(_) => "checkpointed",
            EffectOutcome::Rewound(_) => "rewound",
            EffectOutcome::RewindFailed(_) => "rewind_failed",
            EffectOutcome::Baselined(_) => "baselined",
            EffectOutcome::Compacted(_) => "compacted",
            EffectOutcome::CompactionFailed(_) => "compaction_failed",
            EffectOutcome::TimerFired(_) => "timer_fired",
            EffectOutcome::Noticed(_) => "noticed",
        },
    }
}

impl Process {
    fn open(store: &Store, me: Owner, drives: bool) -> Self {
        let (state, transcript) = (fold(&store.log), refold(&store.log));
        Self { me, drives, state, transcript, running: BTreeMap::new() }
    }

    /// Reads what others wrote. False if another process took the session.
    fn catch_up(&mut self, store: &Store) -> bool {
        let new = store.log[self.state.seq as usize..].to_vec();
        let lost = new.iter().any(|e| matches!(e, Event::OwnerChanged(t) if t.owner != self.me));
        self.absorb(store, &new);
        !lost
    }

    fn absorb(&mut self, store: &Store, events: &[Event]) {
        for event in events {
            apply(&mut self.state, event);
            if self.transcript.apply(self.state.seq, event) == Fold::Again {
                self.transcript = refold(&store.log[..self.state.seq as usize]);
            }
        }
    }
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut r = Rng::new(seed);
        let config = inputs::config(&mut r);
        let (workspace, app) = ("/w".to_owned(), "0".to_owned());
        let first: Event = match r.chance(20) {
            true => {
                let from = SessionId::from_random([1; 16]);
                let (step, read_secret) = (Step(7), false);
                Forked { from, at: 9, workspace, app, config, step, read_secret }.into()
            }
            false => Created { workspace, app, config, base: None }.into(),
        };
        let mut tally = Tally::default();
        tally.kinds.insert(first.kind(), 1);
        let store = Store { log: vec![first], inputs: BTreeMap::new() };
        Self {
            r,
            store,
            driver: None,
            serial: 0,
            begun: BTreeMap::new(),
            sent: Vec::new(),
            tally,
            lists: Vec::new(),
        }
    }

    pub fn now(&mut self) -> DecideContext {
        let tree_at = self.r.chance(70).then(|| Tree("t".into()));
        let source = |n: u64| Source { name: "AGENTS.md".into(), hash: Hash::of(&[n as u8]) };
        let news = self
            .r
            .chance(10)
            .then(|| Noticed { sources: vec![source(self.r.below(3))], ..Noticed::plain("news") });
        let policy = match self.lists.as_slice() {
            [] => Policy::default(),
            lists => *self.r.pick(lists).expect("some lists"),
        };
        DecideContext {
            day_left: self.r.chance(10).then(|| self.r.below(400)),
            tree_at,
            preamble_drift: news,
            at: At(0),
            policy,
        }
    }

    fn request(&mut self, command: Command, version: Seq) -> CommandRequest {
        self.serial += 1;
        let id = format!("i{}", self.serial).parse().unwrap();
        let expect = match self.r.below(10) {
            0 => Some(version.saturating_sub(1)),
            1..=3 => Some(version),
            _ => None,
        };
        CommandRequest { id, expect, command }
    }

    /// A process starts and takes the session over.
    pub fn take_over(&mut self) -> Came {
        self.serial += 1;
        let take = inputs::take(&mut self.r, self.serial);
        let mut process = Process::open(&self.store, take.owner, true);
        let came = self.give(&mut process, Input::Claim(take));
        if matches!(came, Came::Accepted(_)) {
            self.driver = Some(process);
        }
        came
    }

    /// Before the first event there is no session; after an event of a later release nothing is
    /// written or wanted.
    pub fn closed_doors(&mut self) {
        let input = Input::Command(self.request(Command::Run, 0));
        let none = decide(&State::default(), &DecideContext::default(), input.clone());
        let mut later = fold(&self.store.log);
        later.skip("dreamt", "no such kind", false);
        assert_eq!(later.read_only, None, "what may be skipped is skipped");
        later.skip("dreamt", "no such kind", true);
        assert_eq!(later.seq, self.store.log.len() as Seq + 2, "what cannot be read still counts");
        let owner = later.owner.map_or(Owner(1), |seat| seat.owner);
        assert!(
            wanted(&later, owner).is_empty()
                && begin(&later, owner).is_empty()
                && stopping(&later, owner).is_empty()
        );
        for (got, want) in [
            (none, Refused::NoSession),
            (decide(&later, &DecideContext::default(), input), Refused::ReadOnly),
        ] {
            assert_eq!(got, Err(want.clone()));
            *self.tally.refusals.entry(format!("{want:?}")).or_default() += 1;
        }
    }

    /// The driver dies. What it had begun stays begun.
    pub fn crash(&mut self) {
        self.driver = None;
        self.tally.crashes += 1;
    }

    /// A process that only answers, such as `approve`: it folds, decides, appends and goes.
    pub fn answer_from_outside(&mut self, command: Command) -> Came {
        let mut process = Process::open(&self.store, Owner(2), false);
        let request = self.request(command, process.state.version);
        let came = self.give(&mut process, Input::Command(request.clone()));
        if let Came::Accepted(seq) = came
            && self.r.chance(20)
        {
            let again = self.give(&mut process, Input::Command(request));
            let fine =
                matches!(again, Came::Accepted(s) if s == seq) || matches!(again, Came::Refused(_));
            assert!(fine, "a repeated command did something new: {again:?}");
        }
        came
    }

    /// The driver receives a raw input.
    pub fn drive(&mut self, raw: Raw) -> Came {
        let Some(mut process) = self.driver.take() else { return Came::Died };
        let input = match raw {
            Raw::Command(command) => Input::Command(self.request(command, process.state.version)),
            Raw::Work(work) => {
                let owner = if self.r.chance(97) { process.me } else { Owner(77) };
                Input::Report(Report { owner, work })
            }
            Raw::Take(take) => Input::Claim(take),
        };
        let came = self.give(&mut process, input);
        if came != Came::Died {
            self.driver = Some(process);
        }
        came
    }

    /// The driver's work reports.
    pub fn report_one(&mut self) -> Option<Came> {
        let mut process = self.driver.take()?;
        let active: Vec<(Effect, bool)> = process
            .running
            .iter()
            .filter(|(e, _)| !matches!(e, Effect::AskPerson { .. }))
            .map(|(e, cut)| (e.clone(), *cut))
            .collect();
        let Some((effect, cut)) = self.r.pick(&active).cloned() else {
            self.driver = Some(process);
            return None;
        };
        let work = inputs::outcome_of(&mut self.r, &process.state, &effect, cut);
        if !self.r.chance(3) {
            process.running.remove(&effect); // now and then a report comes twice
        }
        let report = Report { owner: process.me, work };
        let came = self.give(&mut process, Input::Report(report));
        if came != Came::Died {
            self.driver = Some(process);
        }
        Some(came)
    }

    /// Decide, append, publish, reconcile: what the engine does, with faults.
    fn give(&mut self, p: &mut Process, input: Input) -> Came {
        let now = self.now();
        let id = match &input {
            Input::Command(request) => Some(request.id.clone()),
            Input::Report(_) | Input::Claim(_) => None,
        };
        if let Some(seq) = id.as_ref().and_then(|id| self.store.inputs.get(id)) {
            return Came::Accepted(*seq);
        }
        for _ in 0..20 {
            let pair = (format!("{:?}", p.state.phase.name()), p.state.stopping, kind_of(&input));
            *self.tally.pairs.entry(pair).or_default() += 1;
            self.tally.steps += 1;
            let before = p.state.clone();
            let decided = decide(&p.state, &now, input.clone());
            assert_eq!(before, p.state, "deciding changed the state");
            let mut events = match decided {
                Ok(events) => events,
                Err(refused) => {
                    let name = format!("{refused:?}")
                        .split_whitespace()
                        .next()
                        .unwrap_or_default()
                        .to_owned();
                    *self.tally.refusals.entry(name).or_default() += 1;
                    return if self.tend(p) { Came::Refused(refused) } else { Came::Died };
                }
            };
            self.tally.changed += u64::from(!events.is_empty());
            if p.drives {
                let mut scratch = p.state.clone();
                events.iter().for_each(|e| apply(&mut scratch, e));
                events.extend(begin(&scratch, p.me));
            }
            if p.drives && self.r.chance(2) {
                self.tally.crashes += 1;
                return Came::Died; // before the append
            }
            let after = p.state.seq;
            match self.store.append(&mut self.r, after, &events, id.as_ref()) {
                Append::Done => {}
                Append::Repeated(seq) => {
                    return if self.tend(p) { Came::Accepted(seq) } else { Came::Died };
                }
                Append::Conflict => {
                    if !p.catch_up(&self.store) && p.drives && !matches!(input, Input::Claim(_)) {
                        return Came::Died;
                    }
                    continue;
                }
                Append::Unsure => {
                    let stored = self.store.log.len() as Seq == after + events.len() as Seq
                        && !events.is_empty();
                    if !stored {
                        continue;
                    }
                }
            }
            for event in &events {
                *self.tally.kinds.entry(event.kind()).or_default() += 1;
            }
            if p.drives && self.r.chance(2) {
                self.tally.crashes += 1;
                return Came::Died; // after the append, before anything was begun
            }
            p.absorb(&self.store, &events);
            if p.drives {
                self.reconcile(p);
            }
            return Came::Accepted(p.state.seq);
        }
        panic!("an input was retried twenty times");
    }

    /// A driver that is poked: it reads what others wrote, begins what may begin and reconciles.
    /// False if it lost.
    fn tend(&mut self, p: &mut Process) -> bool {
        if !p.catch_up(&self.store) && p.drives {
            return false;
        }
        if p.drives {
            let events = begin(&p.state, p.me);
            self.store.log.extend_from_slice(&events);
            p.absorb(&self.store, &events);
            self.reconcile(p);
        }
        true
    }

    /// Somebody wrote from outside and pokes the driver.
    pub fn poke(&mut self) {
        if let Some(mut p) = self.driver.take()
            && self.tend(&mut p)
        {
            self.driver = Some(p);
        }
    }

    fn reconcile(&mut self, p: &mut Process) {
        let want: BTreeSet<Effect> = wanted(&p.state, p.me).into_iter().collect();
        for (effect, told) in &mut p.running {
            *told |= !want.contains(effect);
        }
        p.running.retain(|e, told| {
            !*told || !matches!(e, Effect::AskPerson { .. } | Effect::Wake { .. })
        });
        for effect in stopping(&p.state, p.me) {
            p.running.entry(effect).or_insert(true);
        }
        for effect in want {
            if p.running.contains_key(&effect) {
                continue;
            }
            match &effect {
                Effect::Run { call } | Effect::Join { call } => {
                    let recovery = p.state.call(*call).expect("a call in work").recovery;
                    self.begun.entry(*call).or_default().push((recovery, p.me));
                }
                Effect::AskModel { step }
                | Effect::WriteOutbox { step }
                | Effect::AwaitInbox { step } => {
                    let request: Request = p.transcript.request().expect("a step has a request");
                    assert_eq!(request.step, *step);
                    self.tally.requests += 1;
                    self.sent.push((*step, request.hash(), request.bytes()));
                }
                Effect::RenderPreamble { .. }
                | Effect::Checkpoint { .. }
                | Effect::Restore { .. }
                | Effect::Compact { .. }
                | Effect::Baseline { .. }
                | Effect::AskPerson { .. }
                | Effect::Wake { .. } => {}
            }
            p.running.insert(effect, false);
        }
    }
}
