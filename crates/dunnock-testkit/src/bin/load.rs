//! Many sessions at once on one server, and the same work by bare loops, in one run; the figures as
//! one JSON object.
//!
//! `dunnock-load DUNNOCK FLOOR SESSIONS STEPS SANDBOX`. The model is in this process: the place in
//! its script is the number of results in the request, and the first answers wait until every
//! session has asked, so that all are under way at once.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an instrument: it ends where it goes wrong"
)]

use bytes::Bytes;
use dunnock_testkit::web::Api;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::BufRead as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Loops at a time.
const LOOPS: usize = 32;

struct Model {
    steps: usize,
    first: AtomicUsize,
    gate: Semaphore,
    gated: bool,
}

/// How often `what` occurs: cheaper than reading the JSON, and the model is not what is measured.
fn count(text: &[u8], what: &[u8]) -> usize {
    text.windows(what.len()).filter(|w| *w == what).count()
}

async fn answer(
    model: Arc<Model>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let results = count(&body, br#""role":"tool""#);
    if results == 0 && model.gated {
        model.first.fetch_add(1, Ordering::SeqCst);
        drop(model.gate.acquire().await.unwrap());
    }
    let delta = if results < model.steps {
        let args =
            json!({ "command": format!("echo step {results} >> log.txt; tail -n 1 log.txt") })
                .to_string();
        json!({ "tool_calls": [{ "index": 0, "id": format!("call_{results}"), "type": "function",
            "function": { "name": "shell", "arguments": args } }] })
    } else {
        json!({ "content": "All steps are done." })
    };
    let stop = if results < model.steps { "tool_calls" } else { "stop" };
    let event = |delta: &Value, stop: Option<&str>| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": stop }] });
    let text = format!(
        "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
        event(&delta, None),
        event(&json!({}), Some(stop))
    );
    let chunked = Response::builder()
        .header("content-type", "text/event-stream")
        .header("transfer-encoding", "chunked");
    Ok(chunked.body(Full::new(Bytes::from(text))).unwrap())
}

async fn serve(model: Arc<Model>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let model = model.clone();
            let service = hyper::service::service_fn(move |request| answer(model.clone(), request));
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    at
}

fn status_kb(pid: u32, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(key)?.trim().strip_suffix("kB")?.trim().parse().ok());
    line.unwrap_or(0)
}

/// The launcher of the server: its only child.
fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    text.flat_map(|task| {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        list.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<u32>>()
    })
    .collect()
}

/// What a process holds open, by kind.
fn descriptors(pid: u32) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        let to = std::fs::read_link(entry.path()).unwrap_or_default();
        let name = to.to_string_lossy().into_owned();
        let kind = name
            .split([':', '['])
            .next()
            .unwrap_or_default()
            .rsplit(['/', '.'])
            .next()
            .unwrap_or_default()
            .to_owned();
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

fn cpu(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<u64> = text
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .map(|n| n.parse().unwrap_or(0))
        .collect();
    (fields.get(11).unwrap_or(&0) + fields.get(12).unwrap_or(&0)) * 10
}

struct Server {
    child: Child,
    at: SocketAddr,
    token: String,
}

fn start(program: &str, home: &Path, model: SocketAddr, sandbox: &str) -> Server {
    let config = home.join(".config/dunnock");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::create_dir_all(home.join("start")).unwrap();
    let text = format!(
        "model = \"load/m\"\nmax_steps = 1000\nsandbox = \"{sandbox}\"\napprove = \"all\"\n[providers.load]\nwire = \"chat\"\nbase_url = \"http://{model}/v1\"\n"
    );
    std::fs::write(config.join("config.toml"), text).unwrap();
    let mut command = Command::new(program);
    command.args(["serve", "--port", "0", "--json"]).current_dir(home.join("start")).env_clear();
    command
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let at = ready["url"].as_str().unwrap().trim_start_matches("http://").parse().unwrap();
    let token = std::fs::read_to_string(ready["token_file"].as_str().unwrap()).unwrap();
    Server { child, at, token }
}

fn sessions_done(api: &mut Api, wanted: usize) -> (usize, usize) {
    let rows = api.get(&format!("/api/sessions?limit={}", wanted.min(1000)));
    let rows = rows["sessions"].as_array().unwrap();
    let is = |word: &str| rows.iter().filter(|row| row["state"] == word).count();
    (is("done"), is("working"))
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, program, floor, sessions, steps, sandbox] = words.as_slice() else { return };
    let (sessions, steps): (usize, usize) = (sessions.parse().unwrap(), steps.parse().unwrap());
    let home = tempfile::tempdir_in("/tmp").unwrap();
    let gate = |gated| {
        Arc::new(Model { steps, first: AtomicUsize::new(0), gate: Semaphore::new(0), gated })
    };
    let model = gate(true);
    let at = serve(model.clone()).await;
    let server = start(program, home.path(), at, sandbox);
    let pid = server.child.id();
    let idle_kb = status_kb(pid, "VmRSS:");

    let folder = |kind: &str, n: usize| {
        let path = home.path().join(format!("{kind}/{n}"));
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let folders: Vec<_> = (0..sessions).map(|n| folder("work", n)).collect();
    let (api_at, token) = (server.at, server.token.clone());
    let made = Instant::now();
    let makers = folders.chunks(sessions.div_ceil(8)).map(|share| {
        let (share, mut api) = (share.to_vec(), Api::new(api_at, &token));
        std::thread::spawn(move || {
            for path in share {
                api.make(&json!({ "workspace": path, "prompt": "do the steps" }));
            }
        })
    });
    makers.collect::<Vec<_>>().into_iter().for_each(|maker| maker.join().unwrap());
    while model.first.load(Ordering::SeqCst) < sessions {
        assert!(
            made.elapsed() < Duration::from_secs(300),
            "only {} asked",
            model.first.load(Ordering::SeqCst)
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (made, live_kb, busy) = (made.elapsed(), status_kb(pid, "VmRSS:"), cpu(pid));
    let began = Instant::now();
    model.gate.add_permits(sessions);
    let mut api = Api::new(server.at, &server.token);
    let mut most_launcher = 0;
    let done = loop {
        tokio::time::sleep(Duration::from_millis(if sessions > 200 { 1_000 } else { 100 })).await; // a list of a thousand is work, too
        most_launcher = children(pid)
            .into_iter()
            .map(|c| status_kb(c, "VmRSS:"))
            .max()
            .unwrap_or(0)
            .max(most_launcher);
        let (done, working) = tokio::task::block_in_place(|| sessions_done(&mut api, sessions));
        if working == 0 || began.elapsed() > Duration::from_secs(1200) {
            break done;
        }
    };
    // From the first request on, as the loops are measured: making the sessions is part of the
    // work.
    let took = began.elapsed() + made;
    let most_kb = status_kb(pid, "VmHWM:");
    let cpu_ms = cpu(pid) - busy;
    let lines = folders
        .iter()
        .map(|f| std::fs::read_to_string(f.join("log.txt")).unwrap_or_default().lines().count())
        .sum::<usize>();
    // What is parked is let go.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (after_kb, open) = (status_kb(pid, "VmRSS:"), descriptors(pid));
    let mut child = server.child;
    let _ = Command::new("kill").arg(pid.to_string()).status();
    let _ = child.wait();

    // The same by bare loops.
    let plain = serve(gate(false)).await;
    let began = Instant::now();
    let room = Arc::new(Semaphore::new(LOOPS));
    let mut loops = Vec::new();
    for n in 0..sessions {
        let place = room.clone().acquire_owned().await.unwrap();
        let mut command = tokio::process::Command::new(floor);
        command
            .args([plain.to_string().as_str(), "do the steps"])
            .current_dir(folder("floor", n))
            .stdout(Stdio::null());
        loops.push(tokio::spawn(async move {
            assert!(command.status().await.unwrap().success());
            drop(place);
        }));
    }
    for one in loops {
        one.await.unwrap();
    }
    let floor_took = began.elapsed();
    let rate = |took: Duration| (sessions * steps) as f64 / took.as_secs_f64();
    println!(
        "{}",
        json!({
            "sessions": sessions, "steps": steps, "sandbox": sandbox, "done": done, "lines": lines, "made_s": made.as_secs_f64(),
            "took_s": took.as_secs_f64(), "steps_per_s": rate(took), "floor_steps_per_s": rate(floor_took),
            "ratio": rate(took) / rate(floor_took), "idle_mb": idle_kb / 1024, "live_mb": live_kb / 1024, "most_mb": (most_kb + most_launcher) / 1024,
            "launcher_mb": most_launcher / 1024, "after_mb": after_kb / 1024, "descriptors_after": open, "server_cpu_ms": cpu_ms,
        })
    );
}
