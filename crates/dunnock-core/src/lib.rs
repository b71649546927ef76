//! What a session is and what it does next.
//!
//! Read [`step`](step()) first: it is the whole loop. [`State`] is what the facts fold into, [`wanted`] says what must be
//! under way, [`Transcript`] is what the model is shown, [`policy`] decides what may run.
//!
//! Invariant: nothing here does I/O, reads a clock, draws a random number or waits. (The crate depends on `proto` alone.)
//! Invariant: folding never fails and never consults a constant or a default; whatever a fact needs is in the fact.

#![deny(clippy::wildcard_enum_match_arm)]

mod apply;
mod bounds;
mod carried;
mod effect;
pub mod failpoint;
mod past;
pub mod patch;
mod planner;
pub mod policy;
pub mod ports;
mod reply;
mod rewind;
mod state;
mod status;
mod step;
mod transcript;

pub use apply::{PICTURE, apply};
pub use carried::Carried;
pub use effect::{Effect, begin, stopping, wanted};
pub use past::{Past, Undoes};
pub use state::{Call, Phase, PhaseName, Question, Seat, Spent, Stage, State, Undo, Unknown, question_hash};
pub use status::Status;
pub use step::{Input, Now, Report, Take, Work, step};
pub use transcript::{Fold, Request, Segment, Transcript};
