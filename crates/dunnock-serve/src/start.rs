//! What a page needs before there is a session: the folder, the models, the user's own commands.

use crate::answer::{ApiError, Query, json};
use crate::app::App;
use crate::host::Start;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many sessions are searched for folders.
const LOOKED_AT: u32 = 200;
/// At most this many folders are returned.
const FOLDERS: usize = 20;

/// Which folder to use.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StartQuery {
    /// The folder; by default the one in which the server was started.
    workspace: Option<String>,
}

/// The defaults for a new session, and other folders to choose from.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionDefaults {
    #[serde(flatten)]
    start: Start,
    /// Folders of earlier sessions, newest first.
    folders: Vec<String>,
}

/// Models that can be used.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Models {
    /// Each as `provider/model`.
    models: Vec<String>,
}

/// Returns the defaults for a new session.
pub(crate) async fn start(
    State(app): State<App>,
    Query(query): Query<StartQuery>,
) -> Result<Response, ApiError> {
    let start = app.host.start(query.workspace.as_deref()).await?;
    let mut folders: Vec<String> = Vec::new();
    for row in app.pool.store().list(None, LOOKED_AT).await? {
        if folders.len() < FOLDERS && !folders.contains(&row.workspace) {
            folders.push(row.workspace);
        }
    }
    Ok(json(StatusCode::OK, &SessionDefaults { start, folders }))
}

/// Lists the models that can be used now.
pub(crate) async fn models(State(app): State<App>) -> Response {
    json(StatusCode::OK, &Models { models: app.host.models().await })
}
