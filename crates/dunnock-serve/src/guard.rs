//! Decides which requests reach the routes. It reads only the connection and the headers.
//!
//! The rules, in this order: there is one Host header, and it is the address that was connected to
//! (421); an Origin, if sent, is our own (403); there is no CORS (OPTIONS is 405); unauthenticated
//! callers get only the public page and the login (401); a browser sends the token that only our
//! page knows, and an Origin if it changes something (403); a body is JSON (415) and not too large
//! (413).

use crate::answer::{ApiError, LONGEST, SHORT, too_long};
use crate::app::App;
use crate::peer::{Peer, TOKEN};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Paths that need no authentication: one page without user data, and the login.
const OPEN: &[(&str, Method)] =
    &[("/", Method::GET), ("/", Method::HEAD), ("/api/login", Method::POST)];

/// Whether a request needs no authentication. The page's assets need none either: they are in every
/// copy of this program.
fn is_open(path: &str, method: &Method) -> bool {
    let part =
        path.starts_with(crate::assets::FOLDER) && matches!(*method, Method::GET | Method::HEAD);
    part || OPEN.iter().any(|(open, by)| *open == path && by == method)
}

/// How a caller is authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A program with the token.
    Program,
    /// A browser with the cookie.
    Browser,
    /// Not authenticated, on a public path.
    Stranger,
}

/// The value of a header that may occur at most once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

/// Whether a request is allowed, and as which caller.
pub(crate) fn authorize(
    app: &App,
    came: Peer,
    request: &Request<Body>,
) -> Result<Caller, ApiError> {
    let (headers, method, path) = (request.headers(), request.method(), request.uri().path());
    let lost = || {
        ApiError::new(
            StatusCode::MISDIRECTED_REQUEST,
            "the Host header is not this server's address",
        )
    };
    let host = single(headers, &header::HOST)
        .map_err(|()| lost())?
        .filter(|host| came.is_ours(host))
        .ok_or_else(lost)?;
    // An absolute URI in the request line must name the same host.
    if request.uri().authority().is_some_and(|said| said.as_str() != host) {
        return Err(lost());
    }
    let foreign = || {
        ApiError::new(StatusCode::FORBIDDEN, "requests from pages of another origin are refused")
    };
    let origin = single(headers, &header::ORIGIN).map_err(|()| foreign())?;
    if origin.is_some_and(|origin| origin != format!("http://{host}")) {
        return Err(foreign());
    }
    if *method == Method::OPTIONS {
        return Err(ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "OPTIONS is not allowed: there is no CORS here",
        ));
    }
    // Public paths reveal their allowed methods to anyone, others only to authenticated callers.
    let methods = crate::routes_table::allowed(path);
    let by_this = methods.is_none_or(|all| all.contains(&method.as_str()));
    let no_method = || {
        ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed; see GET /api/openapi.json",
        )
    };
    if !by_this && OPEN.iter().any(|(open, _)| *open == path) {
        return Err(no_method());
    }
    let who = who(app, came, headers)?;
    let live = headers.contains_key(header::UPGRADE);
    let writes = !matches!(*method, Method::GET | Method::HEAD);
    let open = is_open(path, method);
    match who {
        Caller::Stranger if !open => return Err(stranger(app, headers)),
        Caller::Browser if (writes || live) && origin.is_none() => {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "a browser must send an Origin header here",
            ));
        }
        // Cookies are not separated by port: any server on this machine may have seen ours. The
        // page's token is in no cookie.
        Caller::Browser if !open && !page_knows(app, headers, live) => {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                format!("the header {TOKEN} is missing or wrong; POST /api/login returns it"),
            ));
        }
        Caller::Program | Caller::Browser | Caller::Stranger => {}
    }
    if !by_this {
        return Err(no_method());
    }
    if writes {
        fits(method, headers, if open { SHORT } else { LONGEST })?;
    }
    Ok(who)
}

/// Whether a browser sends the token from its login: in a header or, where a page cannot set one,
/// as a subprotocol of a WebSocket.
fn page_knows(app: &App, headers: &HeaderMap, live: bool) -> bool {
    let by_header = single(headers, &TOKEN).ok().flatten();
    let offered = single(headers, &header::SEC_WEBSOCKET_PROTOCOL)
        .ok()
        .flatten()
        .filter(|_| live)
        .unwrap_or_default();
    let by_protocol = offered.split(',').filter_map(|word| word.trim().strip_prefix("token."));
    by_header.into_iter().chain(by_protocol).any(|word| app.keys.is_header(word))
}

/// A body must be JSON, so that a browser would need a CORS preflight, and not too large.
fn fits(method: &Method, headers: &HeaderMap, longest: usize) -> Result<(), ApiError> {
    let length = single(headers, &header::CONTENT_LENGTH)
        .ok()
        .flatten()
        .and_then(|n| n.parse::<usize>().ok());
    if length.is_some_and(|n| n > longest) {
        return Err(too_long(longest));
    }
    let empty = *method == Method::DELETE
        && length.unwrap_or(0) == 0
        && !headers.contains_key(header::TRANSFER_ENCODING);
    let kind = single(headers, &header::CONTENT_TYPE).ok().flatten().unwrap_or_default();
    let (kind, more) = kind.split_once(';').unwrap_or((kind, "charset=utf-8"));
    let json = kind.trim().eq_ignore_ascii_case("application/json")
        && more.trim().eq_ignore_ascii_case("charset=utf-8");
    match json || empty {
        true => Ok(()),
        false => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send JSON, with content-type: application/json",
        )),
    }
}

/// Identifies the caller by token or cookie. A wrong token is refused even with a valid cookie.
fn who(app: &App, came: Peer, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let refused = || stranger(app, headers);
    if headers.contains_key(header::AUTHORIZATION) {
        let said =
            single(headers, &header::AUTHORIZATION).map_err(|()| refused())?.unwrap_or_default();
        let bearer =
            said.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        return match bearer.is_some_and(|(_, token)| app.keys.is_token(token.trim())) {
            true => Ok(Caller::Program),
            false => Err(refused()),
        };
    }
    let name = came.cookie();
    let mut ours = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value);
    match (ours.next(), ours.next()) {
        (Some(value), None) if app.keys.is_cookie(value) => Ok(Caller::Browser),
        _ => Ok(Caller::Stranger),
    }
}

/// Counts a wrong token or cookie; too many are refused for a while.
fn stranger(app: &App, headers: &HeaderMap) -> ApiError {
    let tried = headers.contains_key(header::AUTHORIZATION) || headers.contains_key(header::COOKIE);
    match tried && app.keys.wrong() {
        true => ApiError::new(StatusCode::FORBIDDEN, "too many wrong tokens; wait a few seconds"),
        false => ApiError::new(
            StatusCode::UNAUTHORIZED,
            "authentication required: send \"authorization: Bearer TOKEN\" with the token in the \
             file that \"dunnock serve\" names; a browser logs in at /api/login",
        ),
    }
}

/// Security headers of every response.
static HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src \
         'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Adds the security headers to a response.
pub(crate) fn sealed(path: &str, answer: impl IntoResponse) -> Response {
    let mut answer = answer.into_response();
    for (name, value) in &HEADERS {
        // Blobs have their own, stricter policy.
        if !(*name == header::CONTENT_SECURITY_POLICY && answer.headers().contains_key(name)) {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
    }
    match answer.status() {
        StatusCode::UNAUTHORIZED => {
            answer
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        StatusCode::TOO_MANY_REQUESTS => {
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("10"));
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            let all = crate::routes_table::allowed(path)
                .map_or_else(|| "GET".to_owned(), |all| all.join(", "));
            answer
                .headers_mut()
                .extend(HeaderValue::from_str(&all).map(|all| (header::ALLOW, all)));
        }
        _ => {}
    }
    answer
}
