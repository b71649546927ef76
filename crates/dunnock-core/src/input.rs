//! What reaches a session: a person's command, the outcome of work, a takeover; and what is true around it at that moment.

use crate::policy::Policy;
use dunnock_proto::{
    Answered, At, Baselined, Checkpointed, CommandRequest, Compacted, CompactionFailed, Finished, Hash, Isolation,
    Loss, Noticed, OutboxWritten, Owner, Preamble, RewindFailed, Rewound, StepFailed, Tree,
};
use std::collections::BTreeMap;

/// What is true around the session at the moment of an input, and enters with it.
#[derive(Debug, Clone, Default)]
pub struct DecideContext {
    /// What is left of the day's budget over all sessions, if there is one; what is held back for this session's request is not
    /// counted as gone.
    pub day_left: Option<u64>,
    /// The files at the event that a rewind names, if they were kept.
    pub tree_at: Option<Tree>,
    /// What changed of what the preamble was made of.
    pub preamble_drift: Option<Noticed>,
    /// The lists that calls are judged by.
    pub policy: Policy,
}

/// What reaches a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// From a door.
    Order(CommandRequest),
    /// From work under way, inside the process that does it.
    Report(Report),
    /// A process takes over.
    Take(Claim),
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The process that did the work.
    pub owner: Owner,
    /// What came of it.
    pub work: EffectOutcome,
}

/// What the calls of an answer would lose, by their place in it, where that could be found out beforehand.
pub type Previews = BTreeMap<u16, Vec<Loss>>;

/// The outcomes of effects. They carry the event they may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectOutcome {
    /// A preamble was rendered.
    PreambleSet(Preamble),
    /// It could not be.
    PreambleFailed {
        /// For this model.
        model: String,
        /// Why, and what to do.
        error: String,
    },
    /// A request was written down for a person to carry.
    OutboxWritten(OutboxWritten),
    /// The model answered; with what was found out about calls that may need approval.
    Answer(Answered, Previews),
    /// It did not.
    Failed(StepFailed),
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
    /// The conversation is shorter.
    Compacted(Compacted),
    /// It is not.
    CompactionFailed(CompactionFailed),
    /// The moment has come.
    TimerFired(At),
    /// Something the model should know came to light.
    Noticed(Noticed),
}

/// A takeover: the first thing a driver says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Fresh for each process and takeover.
    pub owner: Owner,
    /// How well it confines commands.
    pub isolation: Isolation,
    /// Its system.
    pub platform: String,
    /// Its release.
    pub app: String,
    /// What the folder brings that nobody has trusted yet.
    pub untrusted: Option<Hash>,
}
