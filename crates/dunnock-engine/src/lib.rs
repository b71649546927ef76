//! Drives sessions: append, publish, reconcile; own and attach.
//!
//! An interface holds a [`Connection`]: it drives the session itself if no process does, and
//! otherwise attaches to the process that does. Read `driver.rs` for the loop around the core.
//!
//! Invariant: an event is published only once it is durable, and no work starts before the event
//! that announces it is durable.
//! Invariant: one owner per session, by an operating-system lock; no clock is involved.

#[cfg(unix)]
mod attach;
mod baseline;
mod batch_builder;
mod catch_up;
mod commit;
mod compact;
mod connection;
mod create;
mod driver;
mod effects;
mod error;
mod file_locks;
mod hub;
mod memory;
mod ports;
mod redact;
mod replay;
mod rewind;
mod session_pool;
mod submit;
mod transfer;
mod workspace;

pub use catch_up::{Loaded, check_chain, load};
pub use commit::past;
pub use connection::Connection;
pub use create::{FirstPrompt, create, create_with_prompt, fork};
pub use driver::{Handle, SessionSummary, changed};
pub use error::{ConnectError, Refusal};
pub use file_locks::FileLocks;
pub use hub::Frames;
pub use memory::{Memory, read as read_memory};
pub use ports::{Clock, Ports, SystemClock};
pub use redact::{Clean, redact};
pub use replay::{Difference, ReplayPorts, Replayed, replay};
pub use rewind::{RewindError, go_back};
pub use session_pool::{ChoosePorts, SessionPool};
pub use submit::{Submitted, submit_offline};
pub use transfer::{Arrival, import, remove};
