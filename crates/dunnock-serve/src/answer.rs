//! What goes back: JSON, and errors that say what to do next.

use crate::host::Refusal;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use dunnock_engine::ConnectError;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The longest body that is read.
pub(crate) const LONGEST: usize = 8 << 20;
/// The same, of somebody who is not known yet; and how long that may take.
pub(crate) const SHORT: usize = 4 << 10;
const SHORT_TIME: Duration = Duration::from_secs(5);
/// How long a body may take.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);

/// What is said when something was not done.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    /// What, and what to do next.
    pub(crate) error: String,
}

/// A status and why.
#[derive(Debug)]
pub(crate) struct ApiError(pub(crate) StatusCode, pub(crate) String);

impl ApiError {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self(status, why.into())
    }
    pub(crate) fn missing(what: impl std::fmt::Display) -> Self {
        Self(StatusCode::NOT_FOUND, format!("there is no {what}"))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        json(self.0, &ErrorBody { error: self.1 })
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound(why) => Self(StatusCode::NOT_FOUND, why),
            Refusal::Conflict(why) => Self(StatusCode::CONFLICT, why),
        }
    }
}

impl From<ConnectError> for ApiError {
    fn from(error: ConnectError) -> Self {
        let status = match &error {
            ConnectError::Silent { .. } | ConnectError::InUse { .. } | ConnectError::Mismatch { .. } => {
                StatusCode::CONFLICT
            }
            ConnectError::Log(_) | ConnectError::Folder(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self(status, error.to_string())
    }
}

impl From<dunnock_core::ports::LogError> for ApiError {
    fn from(error: dunnock_core::ports::LogError) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

/// A value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_vec(value).unwrap_or_default(); // plain structs with text keys: there is nothing to fail
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// A body of JSON, read within bounds.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        parsed(&whole(request.into_body(), LONGEST, BODY_TIME).await?).map(Self)
    }
}

/// The same, of somebody who is not known yet.
pub(crate) struct SmallJson<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for SmallJson<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        parsed(&whole(request.into_body(), SHORT, SHORT_TIME).await?).map(Self)
    }
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let bad =
        |e: serde_json::Error| ApiError::new(StatusCode::BAD_REQUEST, format!("the body is not what is expected: {e}"));
    crate::strict::read(bytes).map_err(bad)
}

/// What follows the question mark.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        let bad =
            |why: axum::extract::rejection::QueryRejection| ApiError::new(StatusCode::BAD_REQUEST, why.body_text());
        read.map(|axum::extract::Query(value)| Self(value)).map_err(bad)
    }
}

/// All of a body, if it is not too long and does not take for ever.
pub(crate) async fn whole(body: Body, longest: usize, time: Duration) -> Result<axum::body::Bytes, ApiError> {
    match tokio::time::timeout(time, to_bytes(body, longest)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => {
            let long = std::error::Error::source(&error).is_some_and(|e| e.to_string().contains("length limit"));
            Err(match long {
                true => too_long(longest),
                false => ApiError::new(StatusCode::BAD_REQUEST, "the body broke off"),
            })
        }
        Err(_) => Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    }
}

pub(crate) fn too_long(longest: usize) -> ApiError {
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a body has at most {longest} bytes here"))
}
