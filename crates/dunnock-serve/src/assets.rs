//! The web app, embedded in this binary. Without it there is one page that says how to build it.
//!
//! `npm run build` writes one page and its assets to `web/dist`; assets have a hash in their name
//! and are already compressed. They contain no user data, so they need no authentication.

use crate::answer::ApiError;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

/// The contents of `web/dist` at build time (`build.rs`).
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/web.rs"));

fn file(name: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

/// URL prefix of the assets.
pub(crate) const FOLDER: &str = "/assets/";

/// Whether the web app is in this binary.
#[must_use]
pub fn has_web_app() -> bool {
    file("index.html").is_some()
}

/// The single page.
pub(crate) async fn page() -> Response {
    match file("index.html") {
        Some(page) => Html(page).into_response(),
        None => Html(include_str!("page.html")).into_response(),
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// An asset. Browsers do not cache it: another program may have used this address before and must
/// not leave anything in its place. Fetching from this machine costs nothing.
pub(crate) async fn part(
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let packed = || {
        file(&format!("assets/{name}.gz"))
            .ok_or_else(|| ApiError::missing("such file in the web app"))
    };
    let (data, is_packed) = match file(&format!("assets/{name}")) {
        Some(plain) => (plain, false),
        None => (packed()?, true),
    };
    let takes =
        headers.get(header::ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if is_packed && !takes.contains("gzip") {
        return Err(ApiError::new(
            StatusCode::NOT_ACCEPTABLE,
            "this file is stored compressed; send accept-encoding: gzip",
        ));
    }
    let mut answer = data.into_response();
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(&name)));
    if is_packed {
        answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(answer)
}
