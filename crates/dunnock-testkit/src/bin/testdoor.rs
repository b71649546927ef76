//! A door that tests start, kill and start again.
//!
//! `dunnock-testdoor drive DIR SCENARIO` makes the scenario's session in DIR if there is none,
//! drives it until it rests, answers its questions, and prints one line for each event it is told:
//! `FACT seq kind chain`. `hold` stops before it answers; `follow` attaches and only prints;
//! `answer` answers one question and goes. Whatever is printed is acknowledged.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

use dunnock_core::{State, fold_record};
use dunnock_engine::{Connection, Ports, create, submit_offline};
use dunnock_proto::*;
use dunnock_store::Sqlite;
use dunnock_testkit::scenario::Scenario;
use dunnock_testkit::{failpoints, worlds};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

fn main() {
    failpoints::arm();
    let threads = std::env::var("DUNNOCK_THREADS").ok().and_then(|n| n.parse().ok()).unwrap_or(2);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .unwrap();
    let code = runtime.block_on(run());
    std::process::exit(code);
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

async fn run() -> i32 {
    let args: Vec<String> = std::env::args().collect();
    let [_, verb, dir, name, ..] = args.as_slice() else {
        panic!("usage: drive|hold|follow|answer DIR SCENARIO")
    };
    let dir = PathBuf::from(dir);
    let scenario = Scenario::named(name);
    let opened = match Sqlite::open(&dir.join("data")).await {
        Ok(opened) => opened,
        Err(error) => {
            say(&format!("ERROR {error}"));
            return 1;
        }
    };
    let ports = worlds::on(Arc::new(opened.store), &dir, scenario.model());
    if verb == "many" {
        let seconds: u64 =
            args.get(4).and_then(|n| n.parse().ok()).expect("many DIR SCENARIO SECONDS");
        return many(ports, &scenario, std::time::Duration::from_secs(seconds)).await;
    }
    let session = match ports.store.list(None, 1).await.expect("the list reads").first() {
        Some(listed) => listed.id.clone(),
        None => match create(&ports, "/w", scenario.config.clone()).await {
            Ok(session) => session,
            Err(error) => {
                say(&format!("ERROR {error}"));
                return 1;
            }
        },
    };
    match verb.as_str() {
        "load" => load_only(ports, session).await,
        "drive" => drive(ports, session, &scenario, true).await,
        "hold" => drive(ports, session, &scenario, false).await,
        "follow" => follow(ports, session).await,
        "answer" => answer_once(ports, session).await,
        other => panic!("no such verb: {other}"),
    }
}

/// Prints a frame that was received; folds it.
fn show(frame: &Frame, s: &mut State) -> Option<Event> {
    match frame {
        Frame::Event(record) => {
            say(&format!(
                "FACT {} {} {}",
                record.envelope.seq,
                record.envelope.kind,
                record.chain()
            ));
            fold_record(s, record)
        }
        Frame::Partial(Partial::Step { text, .. }) => {
            say(&format!("PARTIAL {text}"));
            None
        }
        Frame::Delta(Delta::Text { offset, text, .. }) => {
            say(&format!("PIECE {offset} {text}"));
            None
        }
        Frame::Delta(Delta::Notice { text }) => {
            say(&format!("SAID {text}"));
            None
        }
        _ => None,
    }
}

fn request(id: &str, command: Command) -> CommandRequest {
    CommandRequest { id: id.parse().unwrap(), expect: None, command }
}

/// Ids are fixed, so that a command sent again after a kill is the same command.
async fn drive(ports: Ports, session: SessionId, scenario: &Scenario, answer: bool) -> i32 {
    let mut connection = match Connection::open(ports, session, 0).await {
        Ok(connection) => connection,
        Err(error) => {
            say(&format!("ERROR {error}"));
            return 1;
        }
    };
    let mut s = State::default();
    for (n, text) in scenario.prompts.iter().enumerate() {
        let prompt = Command::Prompt { text: (*text).into(), images: Vec::new() };
        let acked = match connection.submit(request(&format!("prompt-{n}"), prompt)).await {
            Ok(Ok(seq)) => seq,
            Ok(Err(refusal)) => panic!("refused: {refusal}"),
            Err(error) => {
                say(&format!("ERROR {error}"));
                return 1;
            }
        };
        say(&format!("ACK prompt-{n} {acked}"));
        while s.seq < acked || s.busy() {
            let answerable = if s.seq < acked { Vec::new() } else { s.questions.clone() };
            if !answer && answerable.len() == 2 {
                if let Some(handle) = connection.handle() {
                    let _ = handle.summary().wait_for(|s| s.parked).await;
                }
                say("PARKED");
                loop {
                    let _ = connection.next().await.map(|frame| show(&frame, &mut s));
                }
            }
            for q in answerable.iter().filter(|_| answer) {
                let answer = match *q.kind {
                    QuestionKind::Person { .. } => Answer::Text { text: "blue".into() },
                    _ => Answer::Yes,
                };
                let id = format!("reply-{}", q.id);
                let reply = Command::Reply { question: q.id, hash: q.hash, answer, note: None };
                if let Ok(Ok(seq)) = connection.submit(request(&id, reply)).await {
                    say(&format!("ACK {id} {seq}"));
                }
                s.questions.retain(|other| other.id != q.id);
            }
            match connection.next().await {
                Ok(frame) => drop(show(&frame, &mut s)),
                Err(error) => {
                    say(&format!("ERROR {error}"));
                    return 1;
                }
            }
        }
    }
    connection.close().await;
    say("END");
    0
}

/// Loads the newest session and says how long that took and how much memory it holds.
async fn load_only(ports: Ports, session: SessionId) -> i32 {
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let (before, began) = (resident(), std::time::Instant::now());
    let loaded = dunnock_engine::load(ports.store.as_ref(), &session).await.unwrap();
    let took = began.elapsed();
    say(&format!("LOADED {} {} {}", loaded.state.seq, took.as_micros(), resident() - before));
    0
}

/// Makes and drives one session after the other, for a time.
async fn many(ports: Ports, scenario: &Scenario, time: std::time::Duration) -> i32 {
    let began = std::time::Instant::now();
    let mut sessions = 0;
    while began.elapsed() < time {
        let session = match create(&ports, "/w", scenario.config.clone()).await {
            Ok(session) => session,
            Err(error) => {
                say(&format!("ERROR {error}"));
                return 1;
            }
        };
        // Each session begins its script anew.
        let ports = Ports { model: scenario.model(), ..ports.clone() };
        let code = drive(ports, session, scenario, true).await;
        if code != 0 {
            return code;
        }
        sessions += 1;
    }
    say(&format!("SESSIONS {sessions}"));
    0
}

async fn follow(ports: Ports, session: SessionId) -> i32 {
    let mut connection = match Connection::open(ports, session, 0).await {
        Ok(connection) => connection,
        Err(error) => {
            say(&format!("ERROR {error}"));
            return 1;
        }
    };
    say(if connection.handle().is_some() { "OWNS" } else { "ATTACHED" });
    let mut s = State::default();
    loop {
        let was = connection.handle().is_some();
        match connection.next().await {
            Ok(frame) => drop(show(&frame, &mut s)),
            Err(error) => {
                say(&format!("ERROR {error}"));
                return 1;
            }
        }
        if !was && connection.handle().is_some() {
            say("TOOK OVER");
        }
    }
}

/// What `approve` does: leaves an answer and goes.
async fn answer_once(ports: Ports, session: SessionId) -> i32 {
    let s = dunnock_engine::load(ports.store.as_ref(), &session).await.unwrap().state;
    let Some(q) = s.questions.first() else {
        say("NOTHING");
        return 2;
    };
    let answer = match *q.kind {
        QuestionKind::Person { .. } => Answer::Text { text: "blue".into() },
        _ => Answer::Yes,
    };
    let reply = Command::Reply { question: q.id, hash: q.hash, answer, note: None };
    match submit_offline(&ports, &session, request(&format!("reply-{}", q.id), reply)).await {
        Ok(Ok(left)) => say(&format!("LEFT {left:?}")),
        Ok(Err(refusal)) => say(&format!("REFUSED {refusal}")),
        Err(error) => say(&format!("ERROR {error}")),
    }
    0
}
