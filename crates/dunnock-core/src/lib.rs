//! The state of a session, and what it does next.
//!
//! Read [`decide`](decide()) first: it is the whole loop. [`State`] is the fold of all events,
//! [`wanted`] lists the work that must be running, [`Transcript`] is what the model is sent, and
//! [`policy`] decides what may run.
//!
//! Invariant: this crate does no I/O, reads no clock, draws no random numbers and never waits. (It
//! depends on `proto` alone.)
//! Invariant: folding never fails and never consults a constant or a default; each event contains
//! everything it needs.

#![warn(missing_docs)]
#![deny(clippy::wildcard_enum_match_arm)]

mod apply;
mod compaction_notes;
mod decide;
mod effect;
pub mod failpoint;
mod file_history;
mod input;
pub mod patch;
pub mod policy;
mod state;
mod status;
mod transcript;

pub use apply::{apply, fold_record};
pub use compaction_notes::CompactionNotes;
pub use decide::decide;
pub use effect::{Effect, begin, due, settled, stopping, wanted};
pub use file_history::{FileHistory, UndoTarget, Window};
pub use input::{Claim, DecideContext, EffectOutcome, Input, Previews, Report};
pub use state::{
    Call, LastMissing, OwnerState, Phase, PhaseName, Question, Spent, Stage, State, Undo, Unknown,
};
pub use status::Status;
pub use transcript::{Fold, Request, Segment, Transcript};
