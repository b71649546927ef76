//! Browser login: exchanges a one-time code or a password for a cookie.

use crate::answer::{ApiError, Json, SmallJson, json};
use crate::app::App;
use crate::peer::{Peer, TOKEN};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Login with a code or a password.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Login {
    /// The one-time code from the opened URL; valid once, for 30 seconds.
    Code(String),
    /// The password, if the server listens for other machines.
    Password(String),
}

/// What the page sends from then on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Welcome {
    /// The name of the header that every request of the page must have.
    header: String,
    /// Its value. It is returned only here; the page keeps it where only its own origin can read
    /// it.
    token: String,
}

/// Returned to an authenticated caller.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Me {
    /// The server's version.
    version: String,
    /// The version of the link protocol on live channels.
    link: u32,
}

/// A code for another browser.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Code {
    /// Logs in one browser, once, within 30 seconds.
    code: String,
}

/// An empty object.
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
        // Other users on this machine can see the code in the browser's command line.
        Login::Code(_) if crate::peer::is_another_user(came.from, came.at) => false,
        Login::Code(code) => app.keys.redeem(code),
        Login::Password(_) if !app.keys.has_password() => false,
        Login::Password(word) => app.keys.is_password(came.from.ip(), word).map_err(|left| {
            let seconds = left.as_secs() + 1;
            ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!("too many wrong passwords; wait {seconds} s"),
            )
        })?,
    };
    if !right {
        let many = app.keys.wrong();
        return Err(match (many, login) {
            (true, _) => ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many failed logins; wait a few seconds",
            ),
            (_, Login::Code(_)) => ApiError::new(
                StatusCode::UNAUTHORIZED,
                "the code is wrong, was used already, or is older than 30 seconds; get a new one",
            ),
            (_, Login::Password(_)) => ApiError::new(StatusCode::UNAUTHORIZED, "wrong password"),
        });
    }
    let welcome = Welcome { header: TOKEN.to_string(), token: app.keys.header().to_owned() };
    let mut answer = json(StatusCode::OK, &welcome);
    let cookie =
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/", came.cookie(), app.keys.cookie());
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(answer)
}

/// Confirms authentication and returns the server's version.
pub(crate) async fn who() -> Response {
    json(
        StatusCode::OK,
        &Me { version: env!("CARGO_PKG_VERSION").into(), link: dunnock_proto::LINK_VERSION },
    )
}

/// Creates a one-time code, for an authenticated caller.
pub(crate) async fn code(State(app): State<App>, Json(Nothing {}): Json<Nothing>) -> Response {
    json(StatusCode::OK, &Code { code: app.keys.code() })
}
