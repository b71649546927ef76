//! Sessions over HTTP: the same commands and frames as in every other interface, and the stateless
//! service.
//!
//! Read `guard.rs` first: no request reaches a route without passing it. `routes_table.rs` lists
//! every route; the router and the OpenAPI document are built from it. `net.rs` accepts
//! connections, `keys.rs` authenticates, `sessions.rs` and `live.rs` serve single sessions,
//! `overview.rs` and `feed.rs` push the overview of all sessions, `agent.rs` is the stateless service, `assets.rs`
//! the web app. What only the surrounding program knows (settings, folders, checkpoints) comes
//! through [`Host`].
//!
//! Invariant: a request is judged by its connection and headers alone before any of its body is
//! read.
//! Invariant: only writes and live channels change anything.

mod agent;
mod answer;
mod app;
mod assets;
mod feed;
mod guard;
mod host;
mod keys;
mod live;
mod login;
mod net;
mod openapi;
mod overview;
mod peer;
mod providers;
mod recent;
mod routes_table;
mod rules;
mod servers;
mod session_files;
mod sessions;
mod start;
mod strict;

pub use agent::{AgentAnswer, AgentRequest, HistoryEntry};
pub use assets::has_web_app;
pub use host::{
    Change, Changes, CustomCommand, Host, McpServerRow, McpServerState, Once, Point, ProviderKey,
    ProviderRow, Refusal, RuleRow, SetRule, SetUpError, Start, UndoPreview,
};
pub use keys::{Keys, Password};
pub use net::{Server, serve};
pub use openapi::document as openapi;
