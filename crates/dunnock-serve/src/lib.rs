//! Sessions over HTTP: the same commands and frames as in every other interface, and the stateless
//! service.
//!
//! Read `guard.rs` first: no request reaches a route without passing it. `routes_table.rs` lists
//! every route; the router and the OpenAPI document are built from it. `net.rs` accepts
//! connections, `keys.rs` authenticates, `sessions.rs` and `live.rs` serve single sessions,
//! `feed.rs` pushes the overview of all sessions, `agent.rs` is the stateless service, `assets.rs`
//! the web app. What only the surrounding program knows (settings, folders, checkpoints) comes
//! through [`Host`].
//!
//! Invariant: a request is judged by its connection and headers alone before any of its body is
//! read.
//! Invariant: only writes and live channels change anything.

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

/// Shared state of all request handlers.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) pool: Arc<SessionPool>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) recent: Arc<recent::Recent>,
    pub(crate) briefs: Arc<feed::OverviewCache>,
    /// Limits open live channels.
    pub(crate) lives: Arc<tokio::sync::Semaphore>,
    /// Limits concurrent calls of the stateless service.
    pub(crate) calls: Arc<tokio::sync::Semaphore>,
    pub(crate) stopped: tokio::sync::watch::Receiver<bool>,
}
