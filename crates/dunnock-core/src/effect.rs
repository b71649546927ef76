//! The work that must be running, derived from the state alone.
//!
//! Invariant: level-triggered. The driver starts `wanted - running` and stops `running - wanted`,
//! so cancelling needs no effect of its own, a crash needs no replay, and calling it twice is
//! harmless.

use crate::input::EffectOutcome;
use crate::state::{Phase, Stage, State};
use dunnock_proto::{
    At, CallId, CompactionFailed, Event, Failure, Finished, Hash, Outcome, Owner, QuestionId,
    QuestionKind, Recovery, Seq, Started, Step, StepFailed, Strength, Tree,
};
use std::sync::Arc;

/// Work that must be running. It is identified by its value, so that sets can be compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Render a preamble for this model.
    RenderPreamble {
        /// The model.
        model: Arc<str>,
    },
    /// Ask the model.
    AskModel {
        /// For this step.
        step: Step,
    },
    /// Write the request to files for the user to copy.
    WriteOutbox {
        /// For this step.
        step: Step,
    },
    /// Wait for the answer that the user pastes. Parked.
    AwaitInbox {
        /// For this step.
        step: Step,
    },
    /// Run a call.
    Run {
        /// Which call.
        call: CallId,
    },
    /// Wait for a child session that does the work of a call. Parked.
    Join {
        /// Which call.
        call: CallId,
    },
    /// Save a checkpoint of the files.
    Checkpoint {
        /// The event after which the checkpoint is due.
        mark: Seq,
    },
    /// Restore the files.
    Restore {
        /// The event that asked for it.
        asked: Seq,
        /// The state to restore.
        tree: Tree,
    },
    /// Compact the conversation.
    Compact {
        /// Up to this event.
        upto: Seq,
        /// How strongly.
        strength: Strength,
    },
    /// Run the checks on a copy of these files, in parallel with everything else.
    Baseline {
        /// The files before the work.
        tree: Tree,
        /// Hash of the commands.
        of: Hash,
    },
    /// Wait for the person. Parked.
    AskPerson {
        /// The question.
        question: QuestionId,
    },
    /// Wait until a certain time. Parked.
    Wake {
        /// The time.
        at: At,
    },
}

impl Effect {
    /// Whether a driver may exit while only this remains.
    #[must_use]
    pub fn parked(&self) -> bool {
        match self {
            Self::AskPerson { .. }
            | Self::Wake { .. }
            | Self::Join { .. }
            | Self::AwaitInbox { .. } => true,
            Self::RenderPreamble { .. }
            | Self::AskModel { .. }
            | Self::WriteOutbox { .. }
            | Self::Run { .. }
            | Self::Checkpoint { .. }
            | Self::Restore { .. }
            | Self::Baseline { .. }
            | Self::Compact { .. } => false,
        }
    }

    /// The report for work that was interrupted before it started.
    #[must_use]
    pub fn cut(&self) -> Option<EffectOutcome> {
        match self {
            Self::AskModel { step } | Self::WriteOutbox { step } | Self::AwaitInbox { step } => {
                Some(EffectOutcome::Failed(cut_step(*step)))
            }
            Self::Run { call } | Self::Join { call } => Some(EffectOutcome::Output(
                Finished::plain(*call, Outcome::NotRun, "not run: the person interrupted"),
            )),
            Self::Compact { .. } => {
                Some(EffectOutcome::CompactionFailed(CompactionFailed::interrupted()))
            }
            Self::RenderPreamble { .. }
            | Self::Checkpoint { .. }
            | Self::Restore { .. }
            | Self::Baseline { .. }
            | Self::AskPerson { .. }
            | Self::Wake { .. } => None,
        }
    }
}

/// A request that was never sent, or whose end was not seen.
pub(crate) fn cut_step(step: Step) -> StepFailed {
    StepFailed::unsent(step, Failure::Interrupted, "interrupted".into())
}

/// All work that the process `me` must be running now; none if it does not own the session.
#[must_use]
pub fn wanted(s: &State, me: Owner) -> Vec<Effect> {
    if s.owner.is_none_or(|current| current.owner != me) || s.read_only.is_some() {
        return Vec::new();
    }
    work(s, me)
}

/// Whether nothing is left to do but to wait: for a person, a pasted answer, a time, or a call that
/// runs elsewhere.
#[must_use]
pub fn settled(s: &State) -> bool {
    !s.stopping && s.owner.is_none_or(|current| wanted(s, current.owner).iter().all(Effect::parked))
}

/// When some process must drive the session, no matter which owns it now: at once (time 0), at a
/// time, or not until something that it waits for arrives.
#[must_use]
pub fn due(s: &State) -> Option<At> {
    if s.read_only.is_some() {
        return None;
    }
    let me = s.owner.map_or(Owner(0), |current| current.owner);
    // Also what a former owner started: somebody must find out how it ended.
    let open = s
        .calls
        .iter()
        .any(|call| matches!(call.stage, Stage::Started(_)) && call.recovery != Recovery::Rejoin);
    let now = s.stopping
        || open
        || !startable(s, me).is_empty()
        || work(s, me).iter().any(|effect| !effect.parked());
    if now { Some(At(0)) } else { s.wake }
}

fn work(s: &State, me: Owner) -> Vec<Effect> {
    let mut effects: Vec<Effect> =
        s.questions.iter().map(|q| Effect::AskPerson { question: q.id }).collect();
    effects.extend(s.wake.map(|at| Effect::Wake { at }));
    if s.due() && !s.preamble_fits() && s.questions.is_empty() {
        effects.push(Effect::RenderPreamble { model: s.config.model.as_str().into() });
    }
    effects.extend(s.dirty.map(|mark| Effect::Checkpoint { mark }));
    effects.extend(
        s.baseline_due().map(|tree| Effect::Baseline { tree: tree.clone(), of: s.checks() }),
    );
    if let Phase::Rewinding { asked, tree, .. } = &s.phase
        && s.dirty.is_none()
    {
        effects.push(Effect::Restore { asked: *asked, tree: tree.clone() });
    }
    if !s.stopping {
        effects.extend(interruptible(s, me));
    }
    effects
}

/// The work that an interrupt waits for: each of these must still report. If `me` is not running
/// one of them (it learned of the work and the interrupt at once), the driver itself reports it as
/// [cut](Effect::cut).
#[must_use]
pub fn stopping(s: &State, me: Owner) -> Vec<Effect> {
    let mine = s.owner.is_some_and(|current| current.owner == me) && s.read_only.is_none();
    if mine && s.stopping { interruptible(s, me) } else { Vec::new() }
}

fn interruptible(s: &State, me: Owner) -> Vec<Effect> {
    match &s.phase {
        Phase::Thinking if !s.via_bridge() => vec![Effect::AskModel { step: s.step }],
        Phase::Thinking if s.outbox.as_ref().is_some_and(|handed| handed.step == s.step) => {
            vec![Effect::AwaitInbox { step: s.step }]
        }
        Phase::Thinking => vec![Effect::WriteOutbox { step: s.step }],
        Phase::Compacting { upto, strength, .. } => {
            vec![Effect::Compact { upto: *upto, strength: *strength }]
        }
        Phase::Acting => {
            let mine = s.calls.iter().filter(|c| c.stage == Stage::Started(me));
            let run = mine.map(|c| match c.recovery {
                Recovery::Rejoin => Effect::Join { call: c.id },
                Recovery::Repeat | Recovery::Unknown => Effect::Run { call: c.id },
            });
            run.collect()
        }
        Phase::Rest | Phase::Ready | Phase::Rewinding { .. } => Vec::new(),
    }
}

/// The calls that may start now, as events. Called only by a process that will run them, right
/// before an append.
///
/// Order is a barrier: a reader starts when no earlier writer is open; a writer starts when nothing
/// earlier is open and the files before it are saved.
#[must_use]
pub fn begin(s: &State, me: Owner) -> Vec<Event> {
    if s.owner.is_none_or(|current| current.owner != me) || s.read_only.is_some() {
        return Vec::new();
    }
    startable(s, me)
}

fn startable(s: &State, me: Owner) -> Vec<Event> {
    if s.stopping {
        return Vec::new();
    }
    // While "is it safe to continue?" is open, nothing else starts.
    if s.questions.iter().any(|q| matches!(*q.kind, QuestionKind::Unknown { .. })) {
        return Vec::new();
    }
    let sequential = s.config.steps().sequential;
    let (mut writer_open, mut any_open) = (false, false);
    let mut events = Vec::new();
    for call in s.calls.iter().filter(|c| !c.finished()) {
        let free = match call.writes() {
            true => !any_open && s.dirty.is_none(),
            false => !(writer_open || sequential && any_open),
        };
        if free && call.stage == Stage::Allowed {
            events.push(Started { call: call.id, owner: me, recovery: call.recovery }.into());
        }
        any_open = true;
        writer_open |= call.writes();
    }
    events
}
