//! Data around a session: files to mention, changes, rewind points, blobs.

use crate::answer::{ApiError, Json, Query, json};
use crate::app::App;
use crate::host::Point;
use crate::sessions::id;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use dunnock_engine::fork as branch_off;
use dunnock_proto::{Hash, Seq, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Files per response.
const FILES: usize = 200;

/// Which files to list.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FilesQuery {
    /// Letters that must occur in the path in this order; all files by default.
    #[serde(rename = "match", default)]
    letters: String,
}

/// Files in a session's folder.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Files {
    /// Best match first, at most 200.
    files: Vec<String>,
    /// Whether there are more.
    more: bool,
}

/// Scores how well the letters match; lower is better. `None` if a letter is missing.
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

/// The matching files in a folder.
async fn found(app: &App, workspace: String, letters: &str) -> Result<Response, ApiError> {
    let (host, letters) = (app.host.clone(), letters.to_lowercase());
    let found = tokio::task::spawn_blocking(move || {
        let letters: String = letters.chars().filter(|c| !c.is_whitespace()).take(200).collect();
        let all = host.files(&workspace);
        let mut found: Vec<(usize, String)> = all
            .into_iter()
            .filter_map(|path| {
                Some((if letters.is_empty() { 0 } else { fits(&path, &letters)? }, path))
            })
            .collect();
        found.sort_by_key(|(score, _)| *score);
        let more = found.len() > FILES;
        Files { files: found.into_iter().take(FILES).map(|(_, path)| path).collect(), more }
    });
    let found =
        found.await.map_err(|e| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
    Ok(json(StatusCode::OK, &found))
}

/// Lists files in the session's folder, for mentions.
pub(crate) async fn files(
    State(app): State<App>,
    Path(session): Path<String>,
    Query(query): Query<FilesQuery>,
) -> Result<Response, ApiError> {
    let state = app.state(&id(&session)?).await?;
    found(&app, state.workspace.as_deref().unwrap_or_default().to_owned(), &query.letters).await
}

/// Which files to list, and in which folder.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FolderQuery {
    /// The folder; by default the one in which the server was started.
    workspace: Option<String>,
    /// Letters that must occur in the path in this order; all files by default.
    #[serde(rename = "match", default)]
    letters: String,
}

/// Lists files in a folder, before there is a session.
pub(crate) async fn folder_files(
    State(app): State<App>,
    Query(query): Query<FolderQuery>,
) -> Result<Response, ApiError> {
    let folder = app.host.folder(query.workspace.as_deref())?;
    found(&app, folder, &query.letters).await
}

/// Which steps to compare.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DiffQuery {
    /// `FROM..TO`, each optional; the whole session by default.
    #[schemars(regex(pattern = r"^[0-9]{0,9}\.\.[0-9]{0,9}$"))]
    steps: Option<String>,
}

/// What a session changed between two steps.
pub(crate) async fn diff(
    State(app): State<App>,
    Path(session): Path<String>,
    Query(query): Query<DiffQuery>,
) -> Result<Response, ApiError> {
    let session = id(&session)?;
    app.state(&session).await?;
    Ok(json(StatusCode::OK, &app.host.diff(&session, query.steps.as_deref()).await?))
}

/// The steps that a session can be rewound to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checkpoints {
    checkpoints: Vec<Point>,
}

/// Lists the steps that the `rewind` command can return to.
pub(crate) async fn checkpoints(
    State(app): State<App>,
    Path(session): Path<String>,
) -> Result<Response, ApiError> {
    let session = id(&session)?;
    app.state(&session).await?;
    let checkpoints = app.host.points(&session).await?;
    Ok(json(StatusCode::OK, &Checkpoints { checkpoints }))
}

/// A blob that an event refers to by its hash: a full output, an image or a diff.
pub(crate) async fn blob(
    State(app): State<App>,
    Path((session, hash)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let session = id(&session)?;
    let hash: Hash = hash.parse().map_err(|_| ApiError::missing("such blob"))?;
    let bytes = match app.pool.store().uses(&session, hash).await? {
        true => app.pool.store().blob(hash).await?,
        false => None,
    };
    let bytes = bytes.ok_or_else(|| ApiError::missing("such blob in this session"))?;
    let mut answer = bytes.to_vec().into_response();
    // A model or a command chose these bytes, so a browser must never render them.
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    answer
        .headers_mut()
        .insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    // If one did, this policy would let the content do nothing.
    let nothing = HeaderValue::from_static("default-src 'none'; sandbox; frame-ancestors 'none'");
    answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, nothing);
    Ok(answer)
}

/// An image for a prompt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImageUpload {
    /// A PNG, JPEG, GIF or WebP image, in base64.
    data: String,
}

/// A stored image.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoredImage {
    /// The hash by which a prompt refers to it.
    hash: Hash,
}

/// The size limit of most model servers.
const PICTURE: usize = dunnock_proto::MOST_PICTURE_BYTES as usize;

/// Stores an image with a session, for a prompt to refer to.
pub(crate) async fn picture(
    State(app): State<App>,
    Path(session): Path<String>,
    Json(picture): Json<ImageUpload>,
) -> Result<Response, ApiError> {
    use base64::Engine as _;
    let session = id(&session)?;
    app.seq(&session).await?;
    let bad = |why: &str| ApiError::new(StatusCode::CONFLICT, why.to_owned());
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(picture.data.as_bytes())
        .map_err(|_| bad("the image is not valid base64"))?;
    if bytes.len() > PICTURE {
        return Err(bad(&format!(
            "the image has {} MB; the limit is {} MB",
            bytes.len() >> 20,
            PICTURE >> 20
        )));
    }
    if !app.host.is_picture(&bytes) {
        return Err(bad("the image is not a PNG, JPEG, GIF or WebP file"));
    }
    let blob = dunnock_ports::Blob::new(bytes);
    app.pool.store().keep(&session, &blob).await?;
    Ok(json(StatusCode::CREATED, &StoredImage { hash: blob.hash }))
}

/// What undoing the last task would do.
pub(crate) async fn undo(
    State(app): State<App>,
    Path(session): Path<String>,
) -> Result<Response, ApiError> {
    let session = id(&session)?;
    app.state(&session).await?;
    Ok(json(StatusCode::OK, &app.host.undo(&session).await?))
}

/// Where to fork.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fork {
    /// The last event that the new session has; all of them by default.
    #[serde(default)]
    #[schemars(range(min = 1))]
    at: Option<Seq>,
}

/// A forked session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ForkedSession {
    id: SessionId,
}

/// Forks a session; the new one continues from the given event.
pub(crate) async fn fork(
    State(app): State<App>,
    Path(session): Path<String>,
    Json(fork): Json<Fork>,
) -> Result<Response, ApiError> {
    let session = id(&session)?;
    let state = app.state(&session).await?;
    let at = fork.at.unwrap_or(state.seq);
    if at == 0 || at > state.seq {
        return Err(ApiError::missing(format_args!(
            "event {at} in session {session}; its last is {}",
            state.seq
        )));
    }
    let ports = app.pool.ports(state.workspace.as_deref().unwrap_or_default())?;
    let id = branch_off(&ports, &session, at).await?;
    Ok(json(StatusCode::CREATED, &ForkedSession { id }))
}
