//! What lies around a session: files to mention, what it changed, where it can go back to, what it kept.

use crate::App;
use crate::answer::{Ask, No, Read, json};
use crate::host::Point;
use crate::sessions::id;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use dunnock_engine::fork as branch_off;
use dunnock_proto::{Hash, Seq, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Files in one answer.
const FILES: usize = 200;

/// Which files are meant.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FilesQuery {
    /// Letters of the path, in this order; all files without it.
    #[serde(rename = "match", default)]
    letters: String,
}

/// Files of a session's folder.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Files {
    /// Best first, 200 at most.
    files: Vec<String>,
    /// Whether there are more.
    more: bool,
}

/// How well the letters fit: none if one is missing, otherwise the smaller the better.
fn fits(path: &str, letters: &str) -> Option<usize> {
    let lower = path.to_lowercase();
    if let Some(at) = lower.rfind(letters) {
        return Some((lower.len() - at) / 4);
    }
    let mut rest = lower.char_indices();
    let (mut gaps, mut last) = (0, None);
    for letter in letters.chars() {
        let (at, _) = rest.find(|(_, c)| *c == letter)?;
        gaps += last.map_or(0, |last: usize| at - last);
        last = Some(at);
    }
    Some(1000 + gaps + lower.len())
}

/// Files of the folder, for mentions.
pub(crate) async fn files(
    State(app): State<App>,
    Path(session): Path<String>,
    Ask(query): Ask<FilesQuery>,
) -> Result<Response, No> {
    let state = app.state(&id(&session)?).await?;
    let host = app.host.clone();
    let found = tokio::task::spawn_blocking(move || {
        let letters: String = query.letters.to_lowercase().chars().filter(|c| !c.is_whitespace()).take(200).collect();
        let all = host.files(state.workspace.as_deref().unwrap_or_default());
        let mut found: Vec<(usize, String)> = all
            .into_iter()
            .filter_map(|path| Some((if letters.is_empty() { 0 } else { fits(&path, &letters)? }, path)))
            .collect();
        found.sort_by_key(|(score, _)| *score);
        let more = found.len() > FILES;
        Files { files: found.into_iter().take(FILES).map(|(_, path)| path).collect(), more }
    });
    let found = found.await.map_err(|e| No::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
    Ok(json(StatusCode::OK, &found))
}

/// Which steps are compared.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DiffQuery {
    /// `FROM..TO`, each of which may be left out; the whole session without it.
    #[schemars(regex(pattern = r"^[0-9]{0,9}\.\.[0-9]{0,9}$"))]
    steps: Option<String>,
}

/// What a session changed between two steps.
pub(crate) async fn diff(
    State(app): State<App>,
    Path(session): Path<String>,
    Ask(query): Ask<DiffQuery>,
) -> Result<Response, No> {
    let session = id(&session)?;
    app.state(&session).await?;
    Ok(json(StatusCode::OK, &app.host.diff(&session, query.steps.as_deref()).await?))
}

/// Where a session can go back to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checkpoints {
    checkpoints: Vec<Point>,
}

/// The steps that a session can go back to, by the command `rewind`.
pub(crate) async fn checkpoints(State(app): State<App>, Path(session): Path<String>) -> Result<Response, No> {
    let session = id(&session)?;
    app.state(&session).await?;
    let checkpoints = app.host.points(&session).await?;
    Ok(json(StatusCode::OK, &Checkpoints { checkpoints }))
}

/// Something that a fact names by its hash: a whole output, a picture, a diff.
pub(crate) async fn blob(
    State(app): State<App>,
    Path((session, hash)): Path<(String, String)>,
) -> Result<Response, No> {
    let session = id(&session)?;
    let hash: Hash = hash.parse().map_err(|_| No::missing("such blob"))?;
    let bytes = match app.hall.log().uses(&session, hash).await? {
        true => app.hall.log().blob(hash).await?,
        false => None,
    };
    let bytes = bytes.ok_or_else(|| No::missing("such blob in this session"))?;
    let mut answer = bytes.to_vec().into_response();
    // Bytes that a model or a command chose: never shown as anything by a browser.
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    answer.headers_mut().insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    Ok(answer)
}

/// Where to branch off.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fork {
    /// The last fact that the new session has; all of them if not given.
    #[serde(default)]
    #[schemars(range(min = 1))]
    at: Option<Seq>,
}

/// A session that branched off.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Forked {
    id: SessionId,
}

/// A new session that goes on where this one was.
pub(crate) async fn fork(
    State(app): State<App>,
    Path(session): Path<String>,
    Read(fork): Read<Fork>,
) -> Result<Response, No> {
    let session = id(&session)?;
    let state = app.state(&session).await?;
    let at = fork.at.unwrap_or(state.seq);
    if at == 0 || at > state.seq {
        return Err(No::missing(format_args!("fact {at} in session {session}; it has {}", state.seq)));
    }
    let world = app.hall.world(state.workspace.as_deref().unwrap_or_default())?;
    let id = branch_off(&world, &session, at).await?;
    Ok(json(StatusCode::CREATED, &Forked { id }))
}
