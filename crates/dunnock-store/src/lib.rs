//! Keeps the logs and blobs of sessions.
//!
//! [`Sqlite`] is what people use: one database for all projects. [`Memory`] serves the stateless door and tests. Both pass
//! the same contract (`tests/contract.rs`), which is written against the [`Log`](dunnock_core::ports::Log) port alone so
//! that another store can be run through it unchanged.
//!
//! Invariant: an append is all or nothing, and durable when it says so. Invariant: stored events are never rewritten.

mod append;
mod blobs;
mod delete;
mod memory;
mod open;
mod read;
mod salvage;
mod schema;
mod search;

pub use memory::Memory;
pub use open::{Opened, Sqlite};
pub use salvage::Salvaged;
