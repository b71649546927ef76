//! How a browser comes in: a one-time code, or a password, for a cookie.

use crate::App;
use crate::answer::{ApiError, Json, SmallJson, json};
use crate::guard::{Peer, TOKEN};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What opens the door for a browser: one of the two.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Login {
    /// From the address that was opened: it counts once, for half a minute.
    Code(String),
    /// Where the server listens for other machines.
    Password(String),
}

/// What a page sends from then on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Welcome {
    /// The name of the header that every request of the page carries.
    header: String,
    /// Its value. It is given here and nowhere else; a page keeps it where only its own origin can read.
    token: String,
}

/// Whoever is let in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Me {
    /// This release.
    version: String,
    /// The version of the link that live channels speak.
    link: u32,
}

/// A code for another browser.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Code {
    /// Opens the door once, within half a minute.
    code: String,
}

/// Nothing has to be said.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// Exchanges a code or the password for a cookie.
pub(crate) async fn login(
    State(app): State<App>,
    Extension(came): Extension<Peer>,
    SmallJson(login): SmallJson<Login>,
) -> Result<Response, ApiError> {
    let right = match &login {
        // Others on this machine can read the arguments of the browser that was started with the address.
        Login::Code(_) if crate::peer::is_another_user(came.from, came.at) => false,
        Login::Code(code) => app.keys.redeem(code),
        Login::Password(_) if !app.keys.has_password() => false,
        Login::Password(word) => app.keys.is_password(came.from.ip(), word).map_err(|left| {
            let seconds = left.as_secs() + 1;
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, format!("too many wrong passwords; wait {seconds} s"))
        })?,
    };
    if !right {
        let many = app.keys.wrong();
        return Err(match (many, login) {
            (true, _) => ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong codes; wait some seconds"),
            (_, Login::Code(_)) => ApiError::new(
                StatusCode::UNAUTHORIZED,
                "that code was used, or is older than half a minute. Ask for another one",
            ),
            (_, Login::Password(_)) => ApiError::new(StatusCode::UNAUTHORIZED, "that is not the password"),
        });
    }
    let welcome = Welcome { header: TOKEN.to_string(), token: app.keys.header().to_owned() };
    let mut answer = json(StatusCode::OK, &welcome);
    let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", came.cookie(), app.keys.cookie());
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(answer)
}

/// That one is let in, and by what.
pub(crate) async fn who() -> Response {
    json(StatusCode::OK, &Me { version: env!("CARGO_PKG_VERSION").into(), link: dunnock_proto::LINK_VERSION })
}

/// A new one-time code, for whoever is in already.
pub(crate) async fn code(State(app): State<App>, Json(Nothing {}): Json<Nothing>) -> Response {
    json(StatusCode::OK, &Code { code: app.keys.code() })
}
