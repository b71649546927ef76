//! What a session is and what it does next.
//!
//! Read [`decide`](decide()) first: it is the whole loop. [`State`] is what the events fold into, [`wanted`] says what must be
//! under way, [`Transcript`] is what the model is shown, [`policy`] decides what may run.
//!
//! Invariant: nothing here does I/O, reads a clock, draws a random number or waits. (The crate depends on `proto` alone.)
//! Invariant: folding never fails and never consults a constant or a default; whatever an event needs is in the event.

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
pub mod ports;
mod state;
mod status;
mod transcript;

pub use apply::apply;
pub use compaction_notes::CompactionNotes;
pub use decide::decide;
pub use effect::{Effect, begin, stopping, wanted};
pub use file_history::{FileHistory, UndoTarget};
pub use input::{Claim, DecideContext, EffectOutcome, Input, Previews, Report};
pub use state::{Call, OwnerState, Phase, PhaseName, Question, Spent, Stage, State, Undo, Unknown};
pub use status::Status;
pub use transcript::{Fold, Request, Segment, Transcript};
