//! What reaches a session: a person's command, the outcome of work, a takeover; and what is true around it at that moment.

use crate::policy::Policy;
use dunnock_proto::{
    Answered, At, Baselined, Checkpointed, CompactFailed, Compacted, Finished, HandedOver, Hash, Head, Level, Loss,
    Noticed, Order, Owner, RewindFailed, Rewound, Tree, TurnFailed,
};
use std::collections::BTreeMap;

/// What is true around the session at the moment of an input, and enters with it.
#[derive(Debug, Clone, Default)]
pub struct Now {
    /// What is left of the day's budget over all sessions, if there is one; what is held back for this session's request is not
    /// counted as gone.
    pub day_left: Option<u64>,
    /// The files at the fact that a rewind names, if they were kept.
    pub tree_at: Option<Tree>,
    /// What changed of what the head was made of.
    pub news: Option<Noticed>,
    /// The lists that calls are judged by.
    pub policy: Policy,
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

/// What the calls of an answer would lose, by their place in it, where that could be found out beforehand.
pub type Previews = BTreeMap<u16, Vec<Loss>>;

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
    /// The model answered; with what was found out about calls that may need approval.
    Answer(Answered, Previews),
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
