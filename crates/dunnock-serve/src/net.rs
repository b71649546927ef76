//! Accepts connections, with limits on number and time, and puts the guard before the routes.

use crate::answer::ApiError;
use crate::app::{App, stop};
use crate::guard::{Caller, authorize, sealed};
use crate::host::Host;
use crate::keys::Keys;
use crate::peer::{ClientGone, Peer};
use crate::routes_table;
use axum::body::Body;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use dunnock_engine::SessionPool;
use dunnock_ports::CancellationToken;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tower::ServiceExt as _;

/// Time limit for the request line and headers.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// Concurrent connections, not counting live channels.
const CONNECTIONS: usize = 1024;
/// Concurrent connections that have not sent a request with a valid token yet. If there are more,
/// the oldest is closed, so that half requests cannot use up the connections.
const STRANGERS: usize = 256;
/// Concurrent live channels.
const LIVES: usize = 1024;
/// Concurrent calls of the stateless service.
const CALLS: usize = 16;
/// Size limit for the request line and headers.
const HEADERS: usize = 32 << 10;

/// A running server.
pub struct Server {
    stop: watch::Sender<bool>,
    pool: Arc<SessionPool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Server {
    /// Stops accepting connections and releases the sessions that this server drives.
    pub async fn close(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            let _ = task.await;
        }
        self.pool.close().await;
    }
}

/// Serves on these sockets until the server is closed.
#[must_use]
pub fn serve(
    listeners: Vec<TcpListener>,
    pool: Arc<SessionPool>,
    host: Arc<dyn Host>,
    keys: Arc<Keys>,
) -> Server {
    let (stop, stopped) = watch::channel(false);
    let (lives, calls) = (Arc::new(Semaphore::new(LIVES)), Arc::new(Semaphore::new(CALLS)));
    let (recent, briefs) = (Arc::default(), Arc::default());
    let app = App {
        pool: pool.clone(),
        host,
        keys,
        recent,
        briefs,
        lives,
        calls,
        stopped: stopped.clone(),
    };
    let router = routes_table::router().with_state(app.clone());
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let strangers = Arc::default();
    let task = |listener: TcpListener| {
        let limits = (room.clone(), Arc::clone(&strangers));
        tokio::spawn(accept(listener, app.clone(), router.clone(), limits, stopped.clone()))
    };
    Server { stop, pool, tasks: listeners.into_iter().map(task).collect() }
}

/// Connections without a valid token so far, oldest first.
#[derive(Default)]
struct Strangers {
    next: u64,
    /// A connection ends when it receives from this channel.
    waiting: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A connection's place among the strangers, until it has shown a valid token.
struct Stranger {
    id: u64,
    all: Arc<Mutex<Strangers>>,
}

impl Stranger {
    /// Enters a new connection; closes the oldest if there are too many.
    fn enter(all: &Arc<Mutex<Strangers>>) -> (Arc<Self>, oneshot::Receiver<()>) {
        let (close, closed) = oneshot::channel();
        let mut strangers = all.lock().unwrap_or_else(PoisonError::into_inner);
        let id = strangers.next;
        strangers.next += 1;
        strangers.waiting.push_back((id, close));
        if strangers.waiting.len() > STRANGERS
            && let Some((_, oldest)) = strangers.waiting.pop_front()
        {
            let _ = oldest.send(());
        }
        (Arc::new(Self { id, all: all.clone() }), closed)
    }

    /// The connection is no longer a stranger's.
    fn leave(&self) {
        let mut strangers = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        strangers.waiting.retain(|(id, _)| *id != self.id);
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.leave();
    }
}

async fn accept(
    listener: TcpListener,
    app: App,
    router: axum::Router,
    (room, strangers): (Arc<Semaphore>, Arc<Mutex<Strangers>>),
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(20)).await; // out of descriptors: some will be free soon
                    continue;
                }
            },
            () = stop(&mut stopped) => return,
        };
        let (app, router, mut stopped) = (app.clone(), router.clone(), stopped.clone());
        let (stranger, closed) = Stranger::enter(&strangers);
        tokio::spawn(async move {
            tokio::select! {
                () = connection(stream, app, router, stranger) => {}
                Ok(()) = closed => {}
                () = stop(&mut stopped) => {}
            }
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, app: App, router: axum::Router, stranger: Arc<Stranger>) {
    let _ = stream.set_nodelay(true);
    let Ok(at) = stream.local_addr() else { return };
    // An IPv4 client on a dual-stack socket has a mapped address: use the plain IPv4 form.
    let Ok(from) = stream.peer_addr() else { return };
    let came = Peer {
        at: SocketAddr::new(at.ip().to_canonical(), at.port()),
        from: SocketAddr::new(from.ip().to_canonical(), from.port()),
    };
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (app, router, stranger) = (app.clone(), router.clone(), stranger.clone());
        async move {
            let request = request.map(Body::new);
            Ok::<Response, Infallible>(answer(&app, router, came, &stranger, request).await)
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).max_buf_size(HEADERS);
    // An error ends only this connection.
    let _ = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

/// An internal error.
fn broke() -> ApiError {
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal server error; reload the session to see what was saved",
    )
}

/// Closes the connection after the response to a refused or unauthenticated request.
fn part(answer: &mut Response) {
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
}

async fn answer(
    app: &App,
    router: axum::Router,
    came: Peer,
    stranger: &Stranger,
    mut request: Request<Body>,
) -> Response {
    let path = request.uri().path().to_owned();
    match authorize(app, came, &request) {
        // The stateless service has one form for all responses.
        Err(no) => {
            let mut answer = match path == "/api/agent" {
                true => sealed(&path, crate::agent::refused(&no)),
                false => sealed(&path, no),
            };
            part(&mut answer);
            answer
        }
        Ok(who) => {
            if who != Caller::Stranger {
                stranger.leave();
            }
            request.extensions_mut().insert(came);
            request.extensions_mut().insert(who);
            // This future is dropped when the client disconnects.
            let gone = CancellationToken::new();
            request.extensions_mut().insert(ClientGone(gone.clone()));
            let gone = gone.drop_guard();
            // In its own task, so that a client that disconnects does not interrupt the work half
            // way.
            let answer = tokio::spawn(router.oneshot(request)).await;
            drop(gone);
            let answer = answer.map_or_else(|_| broke().into_response(), |Ok(answer)| answer);
            let mut answer = sealed(&path, answer);
            if who == Caller::Stranger {
                part(&mut answer);
            }
            answer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RED-L7: connections without a token used up the places of all others.
    #[test]
    fn the_oldest_stranger_gives_way_and_nobody_else() {
        let all = Arc::default();
        let enter = || Stranger::enter(&all);
        let mut entered: Vec<_> = (0..STRANGERS).map(|_| enter()).collect();
        let (known, mut known_closed) = entered.remove(0);
        known.leave(); // it has shown a token
        entered.push(enter());
        assert!(entered.iter_mut().all(|(_, closed)| closed.try_recv().is_err()));
        entered.push(enter());
        let closed: Vec<bool> =
            entered.iter_mut().map(|(_, closed)| closed.try_recv().is_ok()).collect();
        assert_eq!(closed.iter().filter(|closed| **closed).count(), 1);
        assert!(closed[0], "the oldest");
        assert!(known_closed.try_recv().is_err());
        drop(entered);
        assert!(all.lock().unwrap().waiting.is_empty(), "whoever is gone counts no longer");
    }
}
