//! The inputs of a session (a user's command, the outcome of work, a takeover), and their context.

use crate::policy::Policy;
use dunnock_proto::{
    Answered, At, Baselined, CallPreview, Checkpointed, CommandRequest, Compacted,
    CompactionFailed, Finished, Hash, Isolation, Noticed, OutboxWritten, Owner, Preamble,
    RewindFailed, Rewound, StepFailed, Tree,
};
use std::collections::BTreeMap;

/// The context of an input: the circumstances outside the session at that moment.
#[derive(Debug, Clone, Default)]
pub struct DecideContext {
    /// What is left of the day's budget over all sessions, if there is one. The amount reserved
    /// for this session's request does not count as spent.
    pub day_left: Option<u64>,
    /// The files at the event that a rewind names, if they were saved.
    pub tree_at: Option<Tree>,
    /// What changed in the sources of the preamble.
    pub preamble_drift: Option<Noticed>,
    /// The time that the events are stored with.
    pub at: At,
    /// The lists that calls are judged by.
    pub policy: Policy,
}

/// An input of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A command from an interface.
    Command(CommandRequest),
    /// The outcome of work, from inside the process that did it.
    Report(Report),
    /// A process takes over.
    Claim(Claim),
}

/// The outcome of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The process that did the work.
    pub owner: Owner,
    /// The outcome.
    pub work: EffectOutcome,
}

/// What the calls of an answer would destroy, by their position in it, where that could be
/// determined in advance.
pub type Previews = BTreeMap<u16, Vec<CallPreview>>;

/// The outcomes of effects. Each carries the event it may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectOutcome {
    /// A preamble was rendered.
    PreambleSet(Preamble),
    /// The preamble could not be rendered.
    PreambleFailed {
        /// The model it was meant for.
        model: String,
        /// Why, and what to do.
        error: String,
    },
    /// A request was written to files for the user to copy.
    OutboxWritten(OutboxWritten),
    /// The model answered; with previews for calls that may need approval.
    Answer(Answered, Previews),
    /// The model did not answer.
    Failed(StepFailed),
    /// A call ended.
    Output(Finished),
    /// A checkpoint was saved, or could not be.
    Checkpointed(Checkpointed),
    /// The files were restored.
    Rewound(Rewound),
    /// The files could not be restored.
    RewindFailed(RewindFailed),
    /// The checks were run on the files from before the work.
    Baselined(Baselined),
    /// The conversation was compacted.
    Compacted(Compacted),
    /// The conversation could not be compacted.
    CompactionFailed(CompactionFailed),
    /// The awaited time has come.
    TimerFired(At),
    /// Something the model should know has changed.
    Noticed(Noticed),
}

/// A takeover: the first input from a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// A fresh value for each process and takeover.
    pub owner: Owner,
    /// How well it isolates commands.
    pub isolation: Isolation,
    /// Its platform.
    pub platform: String,
    /// Its release.
    pub app: String,
    /// Hash of the folder's own settings, commands and scripts, if not yet trusted.
    pub untrusted: Option<Hash>,
    /// Whether the workspace is only a folder of a git repository.
    pub in_repository: bool,
}
