//! Accepts connections, with limits on number and time, and puts the guard before the routes.

use crate::answer::ApiError;
use crate::app::{App, stop};
use crate::guard::{Caller, authorize, sealed};
use crate::host::Host;
use crate::keys::Keys;
use crate::peer::Peer;
use crate::routes_table;
use axum::body::Body;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use dunnock_engine::SessionPool;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt as _;

/// Time limit for the request line and headers.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// Concurrent connections, not counting live channels.
const CONNECTIONS: usize = 1024;
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
    let task = |listener: TcpListener| {
        tokio::spawn(accept(listener, app.clone(), router.clone(), room.clone(), stopped.clone()))
    };
    Server { stop, pool, tasks: listeners.into_iter().map(task).collect() }
}

async fn accept(
    listener: TcpListener,
    app: App,
    router: axum::Router,
    room: Arc<Semaphore>,
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
        tokio::spawn(async move {
            tokio::select! {
                () = connection(stream, app, router) => {}
                () = stop(&mut stopped) => {}
            }
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, app: App, router: axum::Router) {
    let _ = stream.set_nodelay(true);
    let Ok(at) = stream.local_addr() else { return };
    // An IPv4 client on a dual-stack socket has a mapped address: use the plain IPv4 form.
    let Ok(from) = stream.peer_addr() else { return };
    let came = Peer {
        at: SocketAddr::new(at.ip().to_canonical(), at.port()),
        from: SocketAddr::new(from.ip().to_canonical(), from.port()),
    };
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (app, router) = (app.clone(), router.clone());
        async move {
            Ok::<Response, Infallible>(answer(&app, router, came, request.map(Body::new)).await)
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
            request.extensions_mut().insert(came);
            request.extensions_mut().insert(who);
            // In its own task, so that a client that disconnects does not interrupt the work half
            // way.
            let answer = tokio::spawn(router.oneshot(request)).await;
            let answer = answer.map_or_else(|_| broke().into_response(), |Ok(answer)| answer);
            let mut answer = sealed(&path, answer);
            if who == Caller::Stranger {
                part(&mut answer);
            }
            answer
        }
    }
}
