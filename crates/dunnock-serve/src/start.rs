//! What a page must know before there is a session: the folder, the models, the person's own commands.

use crate::App;
use crate::answer::{ApiError, Query, json};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use dunnock_proto::{Isolation, Mode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sessions that are looked at for folders.
const LOOKED_AT: u32 = 200;
/// Folders that are named.
const FOLDERS: usize = 20;

/// Where.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StartQuery {
    /// The folder; the one that the server was started in, if not given.
    workspace: Option<String>,
}

/// What a new session would be like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Start {
    /// This release.
    pub version: String,
    /// The folder, whole.
    pub workspace: String,
    /// The same, as people write it.
    pub folder: String,
    /// Its branch, if it is a repository.
    pub branch: Option<String>,
    /// How commands are confined here.
    pub isolation: Isolation,
    /// The model that would be used, if one is known.
    pub model: Option<String>,
    /// Who would be asked.
    pub mode: Mode,
    /// What the person should know of the folder.
    pub notes: Vec<String>,
    /// What to do, where there is no model.
    pub missing: Vec<String>,
    /// The person's own commands.
    pub commands: Vec<CustomCommand>,
}

/// A command of the person's own, from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CustomCommand {
    /// Without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What is sent; `$ARGS` stands for what follows the command.
    pub text: String,
}

/// The same, and where else one could work.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionDefaults {
    #[serde(flatten)]
    start: Start,
    /// Folders of earlier sessions, the newest first.
    folders: Vec<String>,
}

/// Models that can be used.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Models {
    /// Each as `provider/model`.
    models: Vec<String>,
}

/// What a new session would be like.
pub(crate) async fn start(State(app): State<App>, Query(query): Query<StartQuery>) -> Result<Response, ApiError> {
    let start = app.host.start(query.workspace.as_deref()).await?;
    let mut folders: Vec<String> = Vec::new();
    for row in app.hall.log().list(None, LOOKED_AT).await? {
        if folders.len() < FOLDERS && !folders.contains(&row.workspace) {
            folders.push(row.workspace);
        }
    }
    Ok(json(StatusCode::OK, &SessionDefaults { start, folders }))
}

/// Models that can be used now.
pub(crate) async fn models(State(app): State<App>) -> Response {
    json(StatusCode::OK, &Models { models: app.host.models().await })
}
