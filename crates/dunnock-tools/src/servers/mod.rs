//! The MCP servers of a session: started when they are first needed, in the sandbox, with exactly
//! the access that their settings grant; known from earlier sessions without being started.
//!
//! Invariant: a call reaches a server only while the server's settings and the tool's description
//! are those that were recorded when the call was judged.
//! Invariant: when a session was closed, no process of its servers is left.

mod find;
mod process;
pub(crate) mod roster;
mod server;
mod use_tool;

pub(crate) use find::find;
pub use roster::{ServerSettings, ServerStatus, SessionServers, session_servers};
pub(crate) use use_tool::use_tool;
