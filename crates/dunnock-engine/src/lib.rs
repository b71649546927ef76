//! Drives sessions: append, publish, reconcile; own and attach.
//!
//! A [`Door`] is what a front end holds: it drives the session itself if nobody does, and otherwise attaches to the
//! process that does. Read `driver.rs` for the loop around the core.
//!
//! Invariant: a fact is published only once it is durable, and nothing starts before the fact that says so is.
//! Invariant: one owner per session, by an operating-system lock; no clock decides it.

#[cfg(unix)]
mod attach;
mod back;
mod baseline;
mod catch_up;
mod commit;
mod compact;
mod deposit;
mod door;
mod driver;
mod effects;
mod hall;
mod hub;
mod memory;
mod own;
mod redact;
mod replay;
mod transfer;
mod workspace;
mod world;

pub use back::{NoWay, go_back};
pub use catch_up::{Loaded, check_chain, load};
pub use commit::past;
pub use deposit::{Left, deposit};
pub use door::{Door, DoorError, Refusal};
pub use driver::{Handle, Summary, changed};
pub use hall::{Hall, Pick};
pub use hub::Frames;
pub use memory::{Memory, read as read_memory};
pub use own::{OwnerNote, Ownership};
pub use redact::{Clean, redact};
pub use replay::{Difference, Replayed, RunAgain, replay};
pub use transfer::{Arrival, import, remove};
pub use world::{Clock, SystemClock, World, create, fork};
