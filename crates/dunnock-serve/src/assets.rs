//! The web app, as it was built into this binary. Without it there is one page that says how to build it.
//!
//! `npm run build` leaves one page and its parts in `web/dist`; the parts have their hash in their name and are compressed
//! already. There is nothing of anybody's in them: they are open to whoever comes.

use crate::answer::ApiError;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

/// What `web/dist` held when this was built (`build.rs`).
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/web.rs"));

fn file(name: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

/// Where the parts of the app are.
pub(crate) const FOLDER: &str = "/assets/";

/// Whether the web app is in this binary.
#[must_use]
pub fn has_web_app() -> bool {
    file("index.html").is_some()
}

/// The one page.
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

/// A part of it. Nothing is kept by the browser: another program that had this address before must not have left anything in its
/// place, and on this machine fetching costs nothing.
pub(crate) async fn part(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    let packed = || file(&format!("assets/{name}.gz")).ok_or_else(|| ApiError::missing("such part of the web app"));
    let (data, is_packed) = match file(&format!("assets/{name}")) {
        Some(plain) => (plain, false),
        None => (packed()?, true),
    };
    let takes = headers.get(header::ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if is_packed && !takes.contains("gzip") {
        return Err(ApiError::new(
            StatusCode::NOT_ACCEPTABLE,
            "this is kept compressed; ask with accept-encoding: gzip",
        ));
    }
    let mut answer = data.into_response();
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(&name)));
    if is_packed {
        answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(answer)
}
