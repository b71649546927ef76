//! Responses: JSON, and errors that say what to do next.

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

/// The largest body that is accepted.
pub(crate) const LONGEST: usize = 8 << 20;
/// The same for callers that are not authenticated yet, and the time limit for reading it.
pub(crate) const SHORT: usize = 4 << 10;
const SHORT_TIME: Duration = Duration::from_secs(5);
/// Time limit for reading a body.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);

/// The body of an error response.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    /// What went wrong, and what to do next.
    pub(crate) error: String,
}

/// A status and a reason.
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
            ConnectError::Silent { .. }
            | ConnectError::InUse { .. }
            | ConnectError::Mismatch { .. } => StatusCode::CONFLICT,
            ConnectError::Store(_)
            | ConnectError::Ownership(_)
            | ConnectError::Ports(_)
            | ConnectError::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self(status, error.to_string())
    }
}

impl From<dunnock_ports::StoreError> for ApiError {
    fn from(error: dunnock_ports::StoreError) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

/// A JSON response.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_vec(value).unwrap_or_default(); // plain structs with string keys cannot fail
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// A JSON body, read within the limits.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        parsed(&whole(request.into_body(), LONGEST, BODY_TIME).await?).map(Self)
    }
}

/// The same for callers that are not authenticated yet.
pub(crate) struct SmallJson<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for SmallJson<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        parsed(&whole(request.into_body(), SHORT, SHORT_TIME).await?).map(Self)
    }
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let bad = |e: serde_json::Error| {
        ApiError::new(StatusCode::BAD_REQUEST, format!("invalid request body: {e}"))
    };
    crate::strict::read(bytes).map_err(bad)
}

/// The query string.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        let bad = |why: axum::extract::rejection::QueryRejection| {
            ApiError::new(StatusCode::BAD_REQUEST, why.body_text())
        };
        read.map(|axum::extract::Query(value)| Self(value)).map_err(bad)
    }
}

/// Reads a whole body, within the size and time limits.
pub(crate) async fn whole(
    body: Body,
    longest: usize,
    time: Duration,
) -> Result<axum::body::Bytes, ApiError> {
    match tokio::time::timeout(time, to_bytes(body, longest)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => {
            let long = std::error::Error::source(&error)
                .is_some_and(|e| e.to_string().contains("length limit"));
            Err(match long {
                true => too_long(longest),
                false => ApiError::new(
                    StatusCode::BAD_REQUEST,
                    "the request body could not be read to the end",
                ),
            })
        }
        Err(_) => Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "the request body took too long to arrive",
        )),
    }
}

pub(crate) fn too_long(longest: usize) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the request body is too large; the limit is {longest} bytes"),
    )
}
