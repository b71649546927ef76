//! Many sessions at once, against bare loops in the same run. A share of it here; all of it by
//! `cargo xtask long load`.

use super::Serve;
use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Rules, ScriptedServer, Served};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn number(name: &str, or: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(or)
}

/// Runs the instrument; its figures.
fn load(sessions: usize, steps: usize, sandbox: &str) -> Value {
    let beside = |name: &str| {
        let mut path = std::path::PathBuf::from(env!("CARGO_BIN_EXE_dunnock"));
        path.set_file_name(name);
        path
    };
    let (instrument, floor) = (beside("dunnock-load"), beside("dunnock-floor"));
    assert!(instrument.exists() && floor.exists(), "build the whole workspace first");
    let mut command = Command::new(instrument);
    command.arg(crate::program()).arg(floor).args([
        &sessions.to_string(),
        &steps.to_string(),
        sandbox,
    ]);
    let ran = command.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout).into_owned();
    println!("load: {}", told.trim());
    serde_json::from_str(&told)
        .unwrap_or_else(|_| unreachable!("{told}{}", String::from_utf8_lossy(&ran.stderr)))
}

#[test]
fn load_of_many_sessions_at_once_loses_none() {
    let (sessions, steps) = (number("DUNNOCK_LOAD", 100), number("DUNNOCK_LOAD_STEPS", 4));
    for sandbox in ["off", "auto"] {
        let told = load(sessions, steps, sandbox);
        assert_eq!(told["done"], sessions.min(1000), "all came to their end");
        assert_eq!(told["lines"], sessions * steps, "each command ran once");
        if sessions >= 1000 {
            assert!(told["most_mb"].as_u64().unwrap() <= 150, "{told:#}");
            assert!(sandbox == "auto" || told["ratio"].as_f64().unwrap() >= 0.5, "{told:#}");
        }
    }
}

/// A model that wants one command and then says something; or, asked to wait, something that must
/// be asked about.
async fn model() -> ScriptedServer {
    let brain = |_: dunnock_testkit::speech::Wire, request: &Value| -> Served {
        let messages = request["messages"].as_array().unwrap();
        let asked = messages
            .iter()
            .rev()
            .find_map(|m| (m["role"] == "user").then(|| m["content"].to_string()));
        match (
            messages.last().unwrap()["role"] == "tool",
            asked.is_some_and(|text| text.contains("wait")),
        ) {
            (true, _) => Say::text("Done.").into(),
            (false, true) => Say::calls(&[("shell", r#"{"command":"cat .env"}"#)]).into(),
            (false, false) => {
                Say::calls(&[("shell", r#"{"command":"echo one >> log.txt"}"#)]).into()
            }
        }
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    ScriptedServer::with(Vec::new(), rules).await
}

/// What the server holds open: files, pipes and locks; and connections, of which some wait for the
/// next request.
fn descriptors(serve: &Serve) -> (usize, usize) {
    let open = std::fs::read_dir(format!("/proc/{}/fd", serve.pid())).unwrap().flatten();
    let all: Vec<_> = open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    let sockets = all.iter().filter(|to| to.to_string_lossy().starts_with("socket:")).count();
    (all.len() - sockets, sockets)
}

/// Connections to the model that wait for the next request (64 at most), and those of this test.
const CONNECTIONS: usize = 64 + 16;

/// Makes so many sessions, eight at a time, and waits until none works.
/// Makes sessions, a few at a time: how much memory the most that work at once need does not depend
/// on how busy the machine is.
fn make(serve: &Serve, sessions: usize, prompt: &str) {
    let mut left = sessions;
    while left > 0 {
        let some = left.min(16);
        make_at_once(serve, some, prompt);
        left -= some;
    }
}

fn make_at_once(serve: &Serve, sessions: usize, prompt: &str) {
    std::thread::scope(|scope| {
        for n in 0..8 {
            let mut api = serve.api();
            let share = sessions / 8 + usize::from(n < sessions % 8);
            scope.spawn(move || {
                (0..share).for_each(|_| drop(api.make(&json!({ "prompt": prompt }))))
            });
        }
    });
    let mut api = serve.api();
    let end = Instant::now() + Duration::from_secs(600);
    loop {
        let rows = api.get("/api/sessions?limit=1000");
        if rows["sessions"].as_array().unwrap().iter().all(|row| row["state"] != "working") {
            return;
        }
        assert!(Instant::now() < end, "they work for ever");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parked_sessions_cost_no_memory() {
    let parked = number("DUNNOCK_PARKED", 240);
    let server = model().await;
    let home = Home::with(&server);
    home.put(".env", "A=1\n");
    home.set("checkpoints = \"off\"\n");
    let serve = Serve::start(&home);
    tokio::task::block_in_place(|| {
        make(&serve, 64, "wait for me");
        std::thread::sleep(Duration::from_secs(2));
        let (before, open) = (serve.memory_kb(), descriptors(&serve));
        make(&serve, parked, "wait for me");
        std::thread::sleep(Duration::from_secs(2));
        let (after, open_after) = (serve.memory_kb(), descriptors(&serve));
        let each = after.saturating_sub(before) as f64 / parked as f64;
        println!(
            "{parked} parked sessions: {before} kB before, {after} kB after, {each:.2} kB each; \
             {open:?} and {open_after:?} descriptors (files, connections)"
        );
        let waiting = serve.api().get("/api/sessions?limit=1000");
        assert!(
            waiting["sessions"].as_array().unwrap().iter().all(|row| row["state"] == "waiting"),
            "not all wait"
        );
        // The first many make room that the next ones use again: what counts is that it does not
        // grow with their number.
        assert!(after.saturating_sub(before) < 12 << 10, "{before} kB became {after} kB");
        assert!(
            open_after.0 <= open.0 + 6 && open_after.1 <= CONNECTIONS,
            "{open:?} descriptors became {open_after:?}"
        );
    });
}

/// R24: the same again and again, and nothing grows but the database, evenly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r24_memory_and_descriptors_stay_flat() {
    let sessions = number("DUNNOCK_R24", 100);
    let server = model().await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let (rounds, each) = (10, sessions / 10);
    let size = || {
        let sizes = std::fs::read_dir(home.data())
            .unwrap()
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().starts_with("dunnock.db"));
        sizes.map(|e| e.metadata().unwrap().len()).sum::<u64>()
    };
    let mut told: Vec<(u64, (usize, usize), u64)> = Vec::new();
    tokio::task::block_in_place(|| {
        for _ in 0..rounds {
            make(&serve, each, "do it");
            std::thread::sleep(Duration::from_millis(1_500));
            // A slow machine closes the sessions later.
            let (began, mut open) = (Instant::now(), (0, 0));
            while open != descriptors(&serve) && began.elapsed() < Duration::from_secs(60) {
                open = descriptors(&serve);
                std::thread::sleep(Duration::from_millis(500));
            }
            told.push((serve.memory_kb(), descriptors(&serve), size()));
        }
    });
    println!(
        "R24, {rounds} rounds of {each} sessions (kB of memory, descriptors, bytes of the \
         database):"
    );
    told.iter().for_each(|(memory, open, bytes)| println!("  {memory} {open:?} {bytes}"));
    let (early, late) = (&told[rounds / 2 - 1], &told[rounds - 1]);
    assert!(late.0 <= early.0 + early.0 / 8 + 2048, "memory grows: {told:?}");
    // The database is now and then folded back by a connection of its own, for a moment.
    assert!(late.1.0 <= early.1.0 + 6 && late.1.1 <= CONNECTIONS, "descriptors grow: {told:?}");
    // The write-ahead log lies beside and is folded back now and then: what counts is the trend.
    let (first, second) = (
        early.2 as f64 / (rounds / 2) as f64,
        late.2.saturating_sub(early.2) as f64 / (rounds / 2) as f64,
    );
    assert!(second <= first * 1.5 + 100_000.0, "the database grows faster and faster: {told:?}");
}
