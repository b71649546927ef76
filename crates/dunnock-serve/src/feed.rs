//! A WebSocket that pushes the overview of all sessions when it changes.
//!
//! It is one channel, since a browser allows few connections for long polling.

use crate::answer::ApiError;
use crate::app::{App, stop};
use crate::live::{PING, admit, send};
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use std::sync::Arc;
use std::time::Duration;

/// How often to check for changes.
const LOOK: Duration = Duration::from_millis(250);

/// Opens the channel.
pub(crate) async fn feed(
    State(app): State<App>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let (upgrade, place) = admit(&app, upgrade)?;
    Ok(upgrade.on_upgrade(move |mut socket| async move {
        let mut stopped = app.stopped.clone();
        tokio::select! {
            _ = tell(&app, &mut socket) => {}
            () = stop(&mut stopped) => {}
        }
        drop(place);
    }))
}

/// Sends overviews until the client leaves.
async fn tell(app: &App, socket: &mut WebSocket) -> Option<()> {
    let mut last: Arc<str> = "".into();
    let mut look = tokio::time::interval(LOOK);
    let mut ping = tokio::time::interval_at(tokio::time::Instant::now() + PING, PING);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut silent = 0;
    loop {
        tokio::select! {
            _ = look.tick() => match app.overview_json().await {
                Ok(text) if text != last => {
                    send(socket, Message::Text(text.as_ref().into())).await?;
                    last = text;
                }
                Ok(_) => {}
                // The sessions cannot be read right now; try again at the next check.
                Err(ApiError(..)) => tokio::time::sleep(LOOK).await,
            },
            message = socket.recv() => match message?.ok()? {
                Message::Close(_) => return None,
                _ => silent = 0,
            },
            _ = ping.tick() => {
                silent += 1;
                if silent > 2 {
                    return None;
                }
                send(socket, Message::Ping(Vec::new().into())).await?;
            }
        }
    }
}
