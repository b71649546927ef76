//! Sessions over HTTP: the same commands and frames as through every other door, and the stateless service.
//!
//! Read `guard.rs` first: nothing reaches a route that it has not let through. `routes_table.rs` is the list of everything that can
//! be asked, from which both the router and the OpenAPI document are made. `net.rs` accepts connections, `keys.rs` knows
//! who may come in, `sessions.rs` and `live.rs` are the door itself, `feed.rs` tells of
//! all sessions at once, `agent.rs` is the stateless service, `assets.rs` the web app. What only the program
//! around knows (settings, folders, kept files) comes through [`Host`].
//!
//! Invariant: a request is judged by its connection and headers alone before any of its body is read.
//! Invariant: no request but a write (or a live channel) changes anything.

mod agent;
mod answer;
mod assets;
mod feed;
mod guard;
mod host;
mod keys;
mod live;
mod login;
mod net;
mod openapi;
mod peer;
mod recent;
mod routes_table;
mod rules;
mod session_files;
mod sessions;
mod start;
mod strict;

pub use agent::{AgentAnswer, AgentRequest, HistoryEntry};
pub use assets::has_web_app;
pub use host::{Change, Changes, Host, Once, Point, Refusal, UndoPreview};
pub use keys::{Keys, Password};
pub use net::{Server, serve};
pub use openapi::document as openapi;
pub use start::{CustomCommand, Start};

use dunnock_engine::SessionPool;
use std::sync::Arc;

/// What every request is answered from.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) hall: Arc<SessionPool>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) recent: Arc<recent::Recent>,
    pub(crate) briefs: Arc<feed::OverviewCache>,
    /// Live channels at once.
    pub(crate) lives: Arc<tokio::sync::Semaphore>,
    /// Calls of the stateless service at once.
    pub(crate) calls: Arc<tokio::sync::Semaphore>,
    pub(crate) stopped: tokio::sync::watch::Receiver<bool>,
}
