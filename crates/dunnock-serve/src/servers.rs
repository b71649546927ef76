//! The MCP servers of a folder, and their state in the running sessions.

use crate::answer::{ApiError, Query, json};
use crate::app::App;
use crate::host::McpServerRow;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose servers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServersQuery {
    /// The full path of a folder; if omitted, the folder of the server.
    workspace: Option<String>,
}

/// The MCP servers of a folder.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct McpServers {
    servers: Vec<McpServerRow>,
}

/// Lists the servers of a folder.
pub(crate) async fn servers(
    State(app): State<App>,
    Query(query): Query<ServersQuery>,
) -> Result<Response, ApiError> {
    let servers = app.host.servers(query.workspace.as_deref())?;
    Ok(json(StatusCode::OK, &McpServers { servers }))
}
