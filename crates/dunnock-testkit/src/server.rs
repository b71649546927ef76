//! A scripted model behind real HTTP: answers stream, stop at gates and break on purpose.
//!
//! It serves `POST /v1/chat/completions` as server-sent events and `GET /v1/models`. The place in the script is the number of answers in the
//! request, so that a request sent again gets the same answer. It listens on loopback only and ends when dropped.

use crate::model::Say;
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
}

impl Default for Rules {
    fn default() -> Self {
        Self { key: None, models: vec!["scripted".into()] }
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
    requests: Mutex<Vec<Bytes>>,
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
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be bound");
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
                let answer = hyper::service::service_fn(move |request| answer(shared.clone(), request));
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
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
        self.bodies().iter().map(|body| serde_json::from_slice(body).expect("only JSON is kept")).collect()
    }

    /// The same, byte for byte.
    #[must_use]
    pub fn bodies(&self) -> Vec<Bytes> {
        self.shared.requests.lock().unwrap().clone()
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

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let given = request.headers().get("authorization").and_then(|v| v.to_str().ok()).map(str::to_owned);
    let bytes = request.into_body().collect().await.map(|b| b.to_bytes()).unwrap_or_default();
    if let Some(key) = &shared.rules.key
        && given.as_deref() != Some(&format!("Bearer {key}"))
    {
        // Some servers repeat the key that they refuse.
        let given = given.unwrap_or_default().replace("Bearer ", "");
        return Ok(says(
            401,
            &json!({"error": {"message": format!("Incorrect API key provided: {given}")}}).to_string(),
        ));
    }
    match (method.as_str(), path.as_str()) {
        ("GET", "/v1/models") => {
            let models: Vec<Value> = shared.rules.models.iter().map(|m| json!({"id": m, "object": "model"})).collect();
            return Ok(says(200, &json!({"object": "list", "data": models}).to_string()));
        }
        ("POST", "/v1/chat/completions") => {}
        _ => return Ok(plain(404, None, "no such address")),
    }
    let Ok(body) = serde_json::from_slice::<Value>(&bytes) else { return Ok(plain(400, None, "not JSON")) };
    let model = body["model"].as_str().unwrap_or_default();
    if !shared.rules.models.iter().any(|m| m == model) {
        let text = format!("The model `{model}` does not exist");
        return Ok(says(404, &json!({"error": {"message": text}}).to_string()));
    }
    let answers = |m: &&Value| m["role"] == "assistant";
    let at = body["messages"].as_array().map_or(0, |all| all.iter().filter(answers).count());
    shared.requests.lock().unwrap().push(bytes);
    let mut served = shared.script.get(at).cloned().unwrap_or_else(|| Say::text("done").into());
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
        Fault::Plain => {
            let calls: Vec<Value> = served.say.calls.iter().map(|(tool, args)| {
                json!({"id": "c", "type": "function", "function": {"name": tool, "arguments": args}})
            }).collect();
            let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
            let message = json!({"role": "assistant", "content": served.say.text, "tool_calls": calls});
            return Ok(says(200, &json!({"choices": [{"message": message, "finish_reason": finish}]}).to_string()));
        }
        _ => {}
    }
    let (send, receive) = mpsc::channel::<Result<Frame<Bytes>, std::io::Error>>(1);
    tokio::spawn(stream(shared, served, send));
    let body = StreamBody::new(Receiving(receive));
    let response = Response::builder().header("content-type", "text/event-stream").body(BodyExt::boxed(body));
    Ok(response.expect("a plain response can be built"))
}

fn whole(text: &str) -> Body {
    BodyExt::boxed(Full::new(Bytes::copy_from_slice(text.as_bytes())).map_err(|never| match never {}))
}

fn says(status: u16, text: &str) -> Response<Body> {
    let builder = Response::builder().status(StatusCode::from_u16(status).expect("a status"));
    builder.header("content-type", "application/json").body(whole(text)).expect("a plain response can be built")
}

fn plain(status: u16, after: Option<u32>, text: &'static str) -> Response<Body> {
    let mut builder = Response::builder().status(StatusCode::from_u16(status).expect("a status"));
    if let Some(seconds) = after {
        builder = builder.header("retry-after", seconds.to_string());
    }
    builder.body(whole(text)).expect("a plain response can be built")
}

/// The pieces of an answer, as a server would send them.
fn pieces(say: &Say) -> Vec<String> {
    let event = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": "script", "object": "chat.completion.chunk", "choices": [choice]}))
    };
    let mut pieces = Vec::new();
    for word in say.reasoning.split_inclusive(' ').filter(|w| !w.is_empty()) {
        pieces.push(event(json!({"reasoning_content": word}), Value::Null));
    }
    for word in say.text.split_inclusive(' ').filter(|w| !w.is_empty()) {
        pieces.push(event(json!({"content": word}), Value::Null));
    }
    for (index, (tool, args)) in say.calls.iter().enumerate() {
        let (head, tail) = args.split_at(args.floor_char_boundary(args.len() / 2));
        let first = json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": {"name": tool, "arguments": head}});
        pieces.push(event(json!({"tool_calls": [first]}), Value::Null));
        let second = json!({"index": index, "function": {"arguments": tail}});
        pieces.push(event(json!({"tool_calls": [second]}), Value::Null));
    }
    let finish = if say.calls.is_empty() { "stop" } else { "tool_calls" };
    pieces.push(event(json!({}), json!(finish)));
    let usage = json!({"prompt_tokens": say.usage.input, "completion_tokens": say.usage.output});
    pieces.push(format!("data: {}\n\n", json!({"choices": [], "usage": usage})));
    pieces.push("data: [DONE]\n\n".into());
    pieces
}

async fn stream(shared: Arc<Shared>, served: Served, send: mpsc::Sender<Result<Frame<Bytes>, std::io::Error>>) {
    let mut pieces = pieces(&served.say);
    match served.fault {
        Fault::Silence => return tokio::time::sleep(Duration::from_secs(3600)).await,
        Fault::Garbage => pieces.insert(0, "data: {\"choices\": [{\n\n".into()),
        Fault::OneByteChunks => {
            let bytes: Vec<u8> = pieces.concat().into_bytes();
            for byte in bytes {
                if send.send(Ok(Frame::data(Bytes::copy_from_slice(&[byte])))).await.is_err() {
                    return;
                }
            }
            return;
        }
        Fault::Raw(bytes) => {
            for piece in bytes.chunks(1000) {
                if send.send(Ok(Frame::data(Bytes::copy_from_slice(piece)))).await.is_err() {
                    return;
                }
            }
            return;
        }
        Fault::Endless(megabytes) => {
            let piece = Bytes::from(vec![b'x'; 1 << 20]);
            let _ = send.send(Ok(Frame::data(Bytes::from_static(b"data: ")))).await;
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
                // What was said before goes out first: a connection that is cut takes along what still waits in it.
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
