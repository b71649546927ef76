//! Stores the logs and blobs of sessions.
//!
//! [`Sqlite`] is the real store: one database for all projects. [`Memory`] serves the stateless
//! service and tests. Both pass the same contract (`dunnock_testkit::store_contract`), which uses only
//! the [`Store`](dunnock_ports::Store) ports, so that it can be run against another store unchanged.
//!
//! Invariant: an append is all or nothing, and durable once it is reported. Invariant: stored
//! events are never rewritten.

mod append;
mod blobs;
mod delete;
mod log;
mod memory;
mod open;
mod salvage;
mod schema;
mod search;
mod sqlite;

pub use memory::Memory;
pub use open::Opened;
pub use salvage::Salvaged;
pub use sqlite::Sqlite;
