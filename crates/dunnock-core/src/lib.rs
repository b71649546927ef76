//! What a session is and what it does next.
//!
//! Read [`decide`](decide()) first: it is the whole loop. [`State`] is what the facts fold into, [`wanted`] says what must be
//! under way, [`Transcript`] is what the model is shown, [`policy`] decides what may run.
//!
//! Invariant: nothing here does I/O, reads a clock, draws a random number or waits. (The crate depends on `proto` alone.)
//! Invariant: folding never fails and never consults a constant or a default; whatever a fact needs is in the fact.

#![deny(clippy::wildcard_enum_match_arm)]

mod apply;
mod carried;
mod decide;
mod effect;
pub mod failpoint;
mod input;
mod past;
pub mod patch;
pub mod policy;
pub mod ports;
mod state;
mod status;
mod transcript;

pub use apply::apply;
pub use carried::Carried;
pub use decide::decide;
pub use effect::{Effect, begin, stopping, wanted};
pub use input::{Input, Now, Previews, Report, Take, Work};
pub use past::{Past, Undoes};
pub use state::{Call, Phase, PhaseName, Question, Seat, Spent, Stage, State, Undo, Unknown};
pub use status::Status;
pub use transcript::{Fold, Request, Segment, Transcript};
