//! A scripted model behind real HTTP: answers stream, stop at gates and break on purpose.
//!
//! It serves every wire by the end of its address, and lists of models. The place in the script is
//! the number of answers in the request, so that a request sent again gets the same answer; or a
//! brain looks at the request and answers. It listens on loopback only and ends when dropped.

use crate::model::Say;
use crate::speech::{self, Speech, Wire, pieces};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

/// What goes wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// An HTTP status instead of an answer, with seconds for `Retry-After`.
    Status(u16, Option<u32>),
    /// The connection is cut after so many pieces.
    CutAfter(usize),
    /// The stream ends after so many pieces without saying so.
    EndAfter(usize),
    /// Every byte comes alone.
    OneByteChunks,
    /// A piece that is not JSON comes first.
    Garbage,
    /// Nothing comes after the headers, and the connection stays.
    Silence,
    /// Not even headers come, and the connection stays.
    Deaf,
    /// An HTTP status with this body.
    Says(u16, String),
    /// The client is sent elsewhere.
    Redirect(String),
    /// The answer comes whole, as one JSON object.
    Plain,
    /// These bytes instead of an answer's events.
    Raw(Vec<u8>),
    /// The same, compressed.
    Gzip(Vec<u8>),
    /// These bytes, and then nothing, for ever.
    Hang(Vec<u8>),
    /// These bytes, then those so many times, then these.
    Repeat(Vec<u8>, Vec<u8>, usize, Vec<u8>),
    /// These bytes, and then the connection is cut.
    Reset(Vec<u8>),
    /// These bytes, each piece after so many milliseconds.
    Drip(Vec<u8>, usize, u64),
    /// So many megabytes of one event that never ends.
    Endless(usize),
}

/// One answer of a served script.
#[derive(Debug, Clone, Default)]
pub struct Served {
    /// What it says.
    pub say: Say,
    /// What goes wrong.
    pub fault: Fault,
    /// Each piece waits for [`ScriptedServer::open_gate`].
    pub gated: bool,
    /// The fault happens only so many times, if that is not 0.
    pub times: usize,
}

impl Served {
    /// An answer with which something goes wrong.
    #[must_use]
    pub fn wrong(say: Say, fault: Fault) -> Self {
        Self { say, fault, ..Self::default() }
    }
    /// It goes wrong so many times, and then no more.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }
    /// Its pieces wait at the gate.
    #[must_use]
    pub fn gated(self) -> Self {
        Self { gated: true, ..self }
    }
}

/// Whom the server answers.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The key that it wants, if any.
    pub key: Option<String>,
    /// The models that it has.
    pub models: Vec<String>,
    /// How its model writes calls.
    pub speech: Speech,
    /// Tokens that its model holds, if it says so.
    pub window: Option<u64>,
    /// Looks at a request and answers, instead of a script.
    pub brain: Option<Brain>,
}

type Answering = dyn Fn(Wire, &Value) -> Served + Send + Sync;

/// What answers a request by looking at it.
#[derive(Clone)]
pub struct Brain(pub Arc<Answering>);

impl std::fmt::Debug for Brain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Brain")
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Got {
    /// The address, with what follows a question mark.
    pub path: String,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl Got {
    /// A header, if it came.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Default for Rules {
    fn default() -> Self {
        let (models, speech) = (vec!["scripted".into()], Speech::Native);
        Self { key: None, models, speech, window: None, brain: None }
    }
}

impl From<Say> for Served {
    fn from(say: Say) -> Self {
        Self { say, ..Self::default() }
    }
}

struct Shared {
    script: Vec<Served>,
    rules: Rules,
    requests: Mutex<Vec<Got>>,
    failed: Mutex<Vec<usize>>,
    gate: Semaphore,
}

/// A server that runs beside the test.
pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

type Body = BoxBody<Bytes, std::io::Error>;

impl ScriptedServer {
    /// Starts on a free port of loopback.
    pub async fn start(script: Vec<Served>) -> Self {
        Self::with(script, Rules::default()).await
    }

    /// Starts with rules of its own.
    pub async fn with(script: Vec<Served>, rules: Rules) -> Self {
        Self::bound(([127, 0, 0, 1], 0).into(), script, rules).await
    }

    /// Starts at an address of loopback.
    pub async fn at(address: SocketAddr, script: Vec<Served>) -> Self {
        Self::bound(address, script, Rules::default()).await
    }

    /// Starts at an address of loopback, with rules of its own.
    pub async fn at_with(address: SocketAddr, script: Vec<Served>, rules: Rules) -> Self {
        Self::bound(address, script, rules).await
    }

    async fn bound(address: SocketAddr, script: Vec<Served>, rules: Rules) -> Self {
        let listener = TcpListener::bind(address).await.expect("loopback can be bound");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            script,
            rules,
            requests: Mutex::default(),
            failed: Mutex::default(),
            gate: Semaphore::new(0),
        });
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = serving.clone();
                let answer =
                    hyper::service::service_fn(move |request| answer(shared.clone(), request));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), answer),
                );
            }
        });
        Self { address, shared, task }
    }

    /// What a provider's `base_url` would be.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every request body so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.bodies()
            .iter()
            .map(|body| serde_json::from_slice(body).expect("only JSON is kept"))
            .collect()
    }

    /// The same, byte for byte.
    #[must_use]
    pub fn bodies(&self) -> Vec<Bytes> {
        self.asked().into_iter().map(|got| got.body).collect()
    }

    /// The same, with addresses and headers.
    #[must_use]
    pub fn asked(&self) -> Vec<Got> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The address without a path.
    #[must_use]
    pub fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until so many requests came.
    pub async fn wait_for(&self, requests: usize) {
        while self.shared.requests.lock().unwrap().len() < requests {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Lets so many pieces through.
    pub fn open_gate(&self, pieces: usize) {
        self.shared.gate.add_permits(pieces);
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The key that came, whichever way it is shown.
fn given(got: &Got) -> Option<&str> {
    let bearer = got.header("authorization").and_then(|v| v.strip_prefix("Bearer "));
    bearer.or_else(|| got.header("api-key")).or_else(|| got.header("x-api-key"))
}

/// What is told about the models.
fn about(shared: &Shared, method: &str, path: &str) -> Option<Response<Body>> {
    let rules = &shared.rules;
    let models = rules.models.iter();
    let json = match (method, path) {
        ("GET", path) if path.ends_with("/models") => {
            let one = |id: &String| match rules.window {
                Some(window) => json!({"id": id, "object": "model", "max_model_len": window}),
                None => json!({"id": id, "object": "model"}),
            };
            json!({"object": "list", "data": models.map(one).collect::<Vec<_>>()})
        }
        ("GET", "/api/tags") => {
            json!({"models": models.map(|name| json!({"name": name})).collect::<Vec<_>>()})
        }
        ("POST", "/api/show") => {
            json!({"model_info": {"script.context_length": rules.window.unwrap_or(131_072)}})
        }
        _ => return None,
    };
    Some(says(200, &json.to_string()))
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap_or_default().to_owned())
    };
    let headers = request.headers().iter().map(header).collect();
    let body = request.into_body().collect().await.map(|b| b.to_bytes()).unwrap_or_default();
    let got = Got {
        path: uri.path_and_query().map_or_else(String::new, ToString::to_string),
        headers,
        body,
    };
    if let Some(key) = &shared.rules.key
        && given(&got) != Some(key)
    {
        // Some servers repeat the key that they refuse.
        let given = given(&got).unwrap_or_default();
        return Ok(says(
            401,
            &json!({"error": {"message": format!("Incorrect API key provided: {given}")}})
                .to_string(),
        ));
    }
    if let Some(reply) = about(&shared, method.as_str(), uri.path()) {
        return Ok(reply);
    }
    let Some(wire) = Wire::of(uri.path()).filter(|_| method == "POST") else {
        return Ok(plain(404, None, "no such address"));
    };
    let Ok(body) = serde_json::from_slice::<Value>(&got.body) else {
        return Ok(plain(400, None, "not JSON"));
    };
    let model = body["model"].as_str().unwrap_or_default();
    if !shared.rules.models.iter().any(|m| m == model) {
        let text = format!("The model `{model}` does not exist");
        return Ok(says(404, &json!({"error": {"message": text}}).to_string()));
    }
    let at = wire.answers(&body);
    shared.requests.lock().unwrap().push(got);
    let mut served = match &shared.rules.brain {
        Some(Brain(brain)) => brain(wire, &body),
        None => shared.script.get(at).cloned().unwrap_or_else(|| Say::text("done").into()),
    };
    served.say = shared.rules.speech.put(&served.say);
    if served.times > 0 {
        let mut failed = shared.failed.lock().unwrap();
        if failed.iter().filter(|n| **n == at).count() >= served.times {
            served.fault = Fault::None;
        }
        failed.push(at);
    }
    match &served.fault {
        Fault::Status(status, after) => {
            return Ok(plain(*status, *after, r#"{"error":{"message":"the script says so"}}"#));
        }
        Fault::Says(status, text) => return Ok(says(*status, text)),
        Fault::Redirect(to) => {
            let response = Response::builder().status(307).header("location", to).body(whole(""));
            return Ok(response.expect("a plain response can be built"));
        }
        Fault::Deaf => tokio::time::sleep(Duration::from_secs(3600)).await,
        Fault::Plain => return Ok(says(200, &speech::whole(wire, &served.say))),
        _ => {}
    }
    let gzip = matches!(served.fault, Fault::Gzip(_));
    let (send, receive) = mpsc::channel::<Result<Frame<Bytes>, std::io::Error>>(1);
    tokio::spawn(stream(shared, wire, served, send));
    let body = StreamBody::new(Receiving(receive));
    let mut response = Response::builder().header("content-type", wire.content_type());
    if gzip {
        response = response.header("content-encoding", "gzip");
    }
    Ok(response.body(BodyExt::boxed(body)).expect("a plain response can be built"))
}

fn whole(text: &str) -> Body {
    BodyExt::boxed(
        Full::new(Bytes::copy_from_slice(text.as_bytes())).map_err(|never| match never {}),
    )
}

fn says(status: u16, text: &str) -> Response<Body> {
    let builder = Response::builder().status(StatusCode::from_u16(status).expect("a status"));
    builder
        .header("content-type", "application/json")
        .body(whole(text))
        .expect("a plain response can be built")
}

fn plain(status: u16, after: Option<u32>, text: &'static str) -> Response<Body> {
    let mut builder = Response::builder().status(StatusCode::from_u16(status).expect("a status"));
    if let Some(seconds) = after {
        builder = builder.header("retry-after", seconds.to_string());
    }
    builder.body(whole(text)).expect("a plain response can be built")
}

async fn stream(
    shared: Arc<Shared>,
    wire: Wire,
    served: Served,
    send: mpsc::Sender<Result<Frame<Bytes>, std::io::Error>>,
) {
    let mut pieces = pieces(wire, &served.say);
    match served.fault {
        Fault::Silence => return tokio::time::sleep(Duration::from_secs(3600)).await,
        Fault::Garbage => {
            let event = if wire == Wire::Ollama {
                "{\"message\": [{\n"
            } else {
                "data: {\"choices\": [{\n\n"
            };
            pieces.insert(0, event.into());
        }
        Fault::OneByteChunks => {
            let bytes: Vec<u8> = pieces.concat().into_bytes();
            for byte in bytes {
                if send.send(Ok(Frame::data(Bytes::copy_from_slice(&[byte])))).await.is_err() {
                    return;
                }
            }
            return;
        }
        Fault::Drip(bytes, size, ms) => {
            for piece in bytes.chunks(size) {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                if send.send(Ok(Frame::data(Bytes::copy_from_slice(piece)))).await.is_err() {
                    return;
                }
            }
            return;
        }
        Fault::Repeat(before, bytes, times, after) => {
            let _ = send.send(Ok(Frame::data(Bytes::from(before)))).await;
            let most = 1_000;
            let many = Bytes::from(bytes.repeat(most));
            for _ in 0..times / most {
                if send.send(Ok(Frame::data(many.clone()))).await.is_err() {
                    return;
                }
            }
            let _ = send.send(Ok(Frame::data(Bytes::from(after)))).await;
            return;
        }
        Fault::Hang(bytes) => {
            let _ = send.send(Ok(Frame::data(Bytes::from(bytes)))).await;
            return send.closed().await;
        }
        Fault::Reset(bytes) => {
            let _ = send.send(Ok(Frame::data(Bytes::from(bytes)))).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            let _ = send.send(Err(std::io::Error::other("cut"))).await;
            return;
        }
        Fault::Raw(bytes) | Fault::Gzip(bytes) => {
            for piece in bytes.chunks(1000) {
                if send.send(Ok(Frame::data(Bytes::copy_from_slice(piece)))).await.is_err() {
                    return;
                }
            }
            return;
        }
        Fault::Endless(megabytes) => {
            let piece = Bytes::from(vec![b'x'; 1 << 20]);
            let first: &[u8] = if wire == Wire::Ollama { b"{\"message\":\"" } else { b"data: " };
            let _ = send.send(Ok(Frame::data(Bytes::copy_from_slice(first)))).await;
            for _ in 0..megabytes {
                if send.send(Ok(Frame::data(piece.clone()))).await.is_err() {
                    return;
                }
            }
            return;
        }
        Fault::None
        | Fault::Status(..)
        | Fault::CutAfter(_)
        | Fault::EndAfter(_)
        | Fault::Deaf
        | Fault::Says(..)
        | Fault::Redirect(_)
        | Fault::Plain => {}
    }
    for (n, piece) in pieces.into_iter().enumerate() {
        match served.fault {
            Fault::CutAfter(after) if n == after => {
                // What was said before goes out first: a connection that is cut takes along what
                // still waits in it.
                tokio::time::sleep(Duration::from_millis(100)).await;
                let _ = send.send(Err(std::io::Error::other("cut"))).await;
                return;
            }
            Fault::EndAfter(after) if n == after => return,
            _ => {}
        }
        if served.gated {
            match shared.gate.acquire().await {
                Ok(permit) => permit.forget(),
                Err(_) => return,
            }
        }
        if served.say.ms > 0 {
            tokio::time::sleep(Duration::from_millis(served.say.ms)).await;
        }
        if send.send(Ok(Frame::data(Bytes::from(piece)))).await.is_err() {
            return;
        }
    }
}

/// The receiving end of a channel as a stream.
struct Receiving(mpsc::Receiver<Result<Frame<Bytes>, std::io::Error>>);

impl futures_core::Stream for Receiving {
    type Item = Result<Frame<Bytes>, std::io::Error>;
    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}
