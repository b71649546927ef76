//! The live channel: a WebSocket that speaks the link protocol.
//!
//! The server sends a [`Greeting`], then [`Frame`]s: the events after `from`, what is in progress,
//! and everything as it happens. The client sends [`Up`]. One message is one JSON object. A client
//! that reconnects with the last event it has misses nothing.

use crate::answer::{ApiError, Query};
use crate::app::{App, stop};
use crate::sessions::id;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use dunnock_engine::Connection;
use dunnock_proto::{
    Command, Delta, Frame, Greeting, LINK_VERSION, Owner, Refused, Seq, SessionId, Up,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// The longest message from a client.
const LONGEST: usize = 8 << 20;
/// How often a silent client is pinged.
pub(crate) const PING: Duration = Duration::from_secs(20);
/// How long a client may take to accept a message.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where to start.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct LiveQuery {
    /// The last event that the client has.
    #[serde(default)]
    from: Seq,
    /// The client's version of the link protocol; the server's own by default.
    link: Option<u32>,
}

/// Opens the channel. This server drives the session from here on, unless another process does.
pub(crate) async fn live(
    State(app): State<App>,
    Path(session): Path<String>,
    Query(query): Query<LiveQuery>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let session = id(&session)?;
    let seq = app.seq(&session).await?;
    let (upgrade, place) = admit(&app, upgrade)?;
    let from = query.from.min(seq);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let link = query.link.unwrap_or(LINK_VERSION);
        let mut stopped = app.stopped.clone();
        tokio::select! {
            () = speak(&app, socket, session, (from, seq), link) => {}
            () = stop(&mut stopped) => {}
        }
        drop(place);
    }))
}

/// Accepts the upgrade if the limit on live channels allows it.
pub(crate) fn admit(
    app: &App,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<(WebSocketUpgrade, tokio::sync::OwnedSemaphorePermit), ApiError> {
    let upgrade = upgrade.map_err(|why| {
        ApiError::new(StatusCode::UPGRADE_REQUIRED, format!("this needs a WebSocket: {why}"))
    })?;
    let busy = || {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many live channels are open; close some",
        )
    };
    let place = app.lives.clone().try_acquire_owned().map_err(|_| busy())?;
    Ok((upgrade.max_message_size(LONGEST).max_frame_size(LONGEST).protocols(["dunnock"]), place))
}

async fn speak(app: &App, mut socket: WebSocket, session: SessionId, from: (Seq, Seq), link: u32) {
    let end = match link == LINK_VERSION {
        false => {
            let app = env!("CARGO_PKG_VERSION").into();
            let _ = say(&mut socket, &Greeting::Mismatch { link: LINK_VERSION, app }).await;
            Some(close(1008, "different version of the link protocol"))
        }
        true => serve_socket(app, &mut socket, session, from).await,
    };
    if let Some(frame) = end {
        let _ = send(&mut socket, Message::Close(Some(frame))).await;
    }
}

fn close(code: u16, why: &str) -> CloseFrame {
    // The protocol limits a reason to 123 bytes.
    let why = &why[..why.floor_char_boundary(120)];
    CloseFrame { code, reason: why.into() }
}

/// Sends a message; `None` if the client does not accept it.
pub(crate) async fn send(socket: &mut WebSocket, message: Message) -> Option<()> {
    tokio::time::timeout(PATIENCE, socket.send(message)).await.ok()?.ok()
}

async fn say(socket: &mut WebSocket, what: &impl serde::Serialize) -> Option<()> {
    send(socket, Message::Text(serde_json::to_string(what).ok()?.into())).await
}

/// Runs until one side leaves; returns the close frame for the client.
async fn serve_socket(
    app: &App,
    socket: &mut WebSocket,
    session: SessionId,
    (from, seq): (Seq, Seq),
) -> Option<CloseFrame> {
    if let Err(no) = app.before_driving(&session).await {
        return Some(close(1011, &no.1));
    }
    let mut connection = match app.pool.connection(session.clone(), from).await {
        Ok(connection) => connection,
        Err(error) => return Some(close(1011, &error.to_string())),
    };
    let (owner, seq, app_version) = match connection.handle() {
        Some(handle) => {
            (handle.owner(), handle.summary().borrow().seq, env!("CARGO_PKG_VERSION").to_owned())
        }
        None => (Owner(0), seq, env!("CARGO_PKG_VERSION").to_owned()),
    };
    say(socket, &Greeting::Welcome { link: LINK_VERSION, app: app_version, owner, seq }).await?;
    let mut ping = tokio::time::interval_at(tokio::time::Instant::now() + PING, PING);
    ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut silent = 0;
    loop {
        tokio::select! {
            frame = connection.next() => match frame {
                Ok(frame) => say(socket, &frame).await?,
                Err(error) => return Some(close(1011, &error.to_string())),
            },
            message = socket.recv() => {
                silent = 0;
                match message? {
                    Ok(Message::Text(text)) => match submit(app, &mut connection, &session, &text).await {
                        Ok(frames) => {
                            for frame in frames {
                                say(socket, &frame).await?;
                            }
                            silent = 0;
                        }
                        Err(end) => return Some(end),
                    },
                    Ok(Message::Binary(_)) => return Some(close(1003, "send text: one JSON object per message")),
                    Ok(Message::Close(_)) => return None,
                    Ok(Message::Ping(_) | Message::Pong(_)) => {}
                    Err(error) => return Some(broken(&error)),
                }
            },
            _ = ping.tick() => {
                silent += 1;
                if silent > 2 {
                    return Some(close(1001, "the client did not respond"));
                }
                send(socket, Message::Ping(Vec::new().into())).await?;
            }
        }
    }
}

/// The close frame for a message that cannot be accepted.
fn broken(error: &axum::Error) -> CloseFrame {
    let long = error.to_string().contains("too long") || error.to_string().contains("too large");
    if long {
        close(1009, "the message is too long")
    } else {
        close(1002, "WebSocket protocol error")
    }
}

/// Executes a client's command.
async fn submit(
    app: &App,
    connection: &mut Connection,
    session: &SessionId,
    text: &str,
) -> Result<Vec<Frame>, CloseFrame> {
    let read = crate::strict::read(text.as_bytes());
    let Up::Command(mut request) =
        read.map_err(|e| close(1007, &format!("invalid command: {e}")))?;
    let id = request.id.clone();
    let mut ready = match &mut request.command {
        Command::Configure { set } => app.model_change(session, set).await,
        _ => Ok(()),
    };
    if ready.is_ok() {
        ready = app.prepare(connection, session, &mut request).await;
    }
    if let Err(no) = ready {
        // Settings that do not work here are refused like any invalid command; the channel stays
        // open.
        let state = app.state(session).await.map_err(|no| close(1011, &no.1))?;
        let questions = state.questions.iter().map(|q| q.id).collect();
        let refused =
            Frame::Refused { id, reason: Refused::Invalid, version: state.version, questions };
        return Ok(vec![Frame::Delta(Delta::Notice { text: no.1.into() }), refused]);
    }
    match connection.submit(request).await {
        Ok(Ok(seq)) => Ok(vec![Frame::Accepted { id, seq }]),
        Ok(Err(no)) => Ok(vec![Frame::Refused {
            id,
            reason: no.reason,
            version: no.version,
            questions: no.questions,
        }]),
        Err(error) => Err(close(1011, &error.to_string())),
    }
}
