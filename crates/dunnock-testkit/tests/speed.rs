//! Constant work: the ten-thousandth step costs what the tenth did, and long logs open quickly.

use dunnock_core::{Status, apply};
use dunnock_engine::{Connection, create, load};
use dunnock_ports::{Batch, Catalogue as _, EventLog as _, Listing};
use dunnock_proto::*;
use dunnock_store::Sqlite;
use dunnock_testkit::model::{Say, ScriptedModel};
use dunnock_testkit::{timing, worlds};
use std::time::{Duration, Instant};

fn tmp() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Bytes that this process has written so far.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|l| l.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

fn best(times: &[Duration]) -> Duration {
    times.iter().min().copied().unwrap()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Steps that one prompt makes.
const ROUND: u32 = 100;

/// A session that makes [`ROUND`] steps for each prompt.
struct Runner {
    connection: Connection,
    s: dunnock_core::State,
}

impl Runner {
    async fn new(ports: &dunnock_engine::Ports) -> Self {
        let config = Config { max_steps: u32::MAX, ..worlds::config() };
        let session = create(ports, "/w", config).await.unwrap();
        Self {
            connection: Connection::open(ports.clone(), session, 0).await.unwrap(),
            s: dunnock_core::State::default(),
        }
    }
    /// One prompt: the times between its steps, the CPU time and the bytes written for each.
    async fn round(&mut self, rest: u64) -> (Vec<Duration>, Duration, u64) {
        // Search is brought up to date while the session rests; let it finish, it is nobody's step.
        tokio::time::sleep(Duration::from_millis(rest)).await;
        let (before, cpu) = (written(), timing::cpu());
        self.connection
            .send(Command::Prompt { text: "go".into(), images: vec![] })
            .await
            .unwrap()
            .unwrap();
        let (mut times, mut last) = (Vec::new(), Instant::now());
        let goal = self.s.step.0 + ROUND;
        while self.s.step.0 < goal || self.s.busy() {
            if let Frame::Event(record) = self.connection.next().await.unwrap()
                && let Decoded::Known(event) = record.decode()
            {
                apply(&mut self.s, &event);
                if matches!(event, Event::StepStarted(_)) {
                    times.push(last.elapsed());
                    last = Instant::now();
                }
            }
        }
        (
            times.split_off(10),
            (timing::cpu() - cpu) / ROUND,
            (written() - before) / u64::from(ROUND),
        )
    }
}

/// The steps of a long session and of a short one take turns, so that whatever else the machine
/// does strikes both.
#[tokio::test(flavor = "multi_thread")]
async fn the_ten_thousandth_step_costs_what_the_tenth_did() {
    let dir = tmp();
    let call =
        Say::calls(&[("append", r#"{"say":"a line of output, as long as such lines are"}"#)])
            .using(100, 20);
    let mut script = vec![call; ROUND as usize];
    script[ROUND as usize - 1] = Say::text("that was it");
    let ports = worlds::in_folder(dir.path(), ScriptedModel::cycle(script)).await;
    let mut long = Runner::new(&ports).await;
    for _ in 0..100 {
        long.round(0).await;
    }
    assert!(long.s.step.0 >= 10_000);
    let (mut wall, mut cpu, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..15 {
        let mut short = Runner::new(&ports).await; // a new session in the same database
        let early = short.round(150).await;
        short.connection.close().await;
        let late = long.round(150).await;
        // Each long round is held against the short one right before it: a machine that slows down
        // strikes both.
        let ratio = |late: Duration, early: Duration| late.as_secs_f64() / early.as_secs_f64();
        wall.push(ratio(median(&mut late.0.clone()), median(&mut early.0.clone())));
        cpu.push(ratio(late.1, early.1));
        bytes.push(late.2 as f64 / early.2 as f64);
    }
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    timing::cost_ratio("step 10,000 to step 10, bytes written", middle(bytes), 1.2);
    timing::cpu_ratio("step 10,000 to step 10, CPU time", middle(cpu), 1.2);
    timing::wall_ratio("step 10,000 to step 10", middle(wall), 1.2);
    long.connection.close().await;
}

/// A session of `n` events whose bodies are about 500 bytes, written directly.
async fn long_session(store: &Sqlite, id: &str, n: u64) -> SessionId {
    let session: SessionId = id.parse().unwrap();
    let config = Config { max_steps: u32::MAX, ..worlds::config() };
    let mut events: Vec<Event> = vec![
        Created { workspace: "/w".into(), app: "t".into(), config, base: None }.into(),
        OwnerChanged {
            owner: Owner(1),
            isolation: Isolation::A,
            platform: "t".into(),
            app: "t".into(),
            lost: Reserved::default(),
            in_repository: false,
        }
        .into(),
    ];
    let text = "some words of about the right length ".repeat(12);
    let (words, args) = (&text[..300], &text[..150]);
    let mut step = 0;
    while (events.len() as u64) < n {
        step += 1;
        let call = CallId { step: Step(step), index: 0 };
        let upto = events.len() as Seq;
        events.push(
            StepStarted {
                step: Step(step),
                upto,
                preamble: Hash::ZERO,
                reserved: Reserved::default(),
            }
            .into(),
        );
        let part = CallPart {
            id: "c".into(),
            tool: "view".into(),
            args: args.into(),
            sent: None,
            recovered: false,
            fault: None,
        };
        events.push(
            Answered {
                step: Step(step),
                attempts: vec![],
                model: "m".into(),
                wire: "w".into(),
                parts: vec![
                    Part::Text { text: words.into() },
                    Part::Call(std::sync::Arc::new(part)),
                ],
                stop: Stop::Calls,
                usage: Usage::default(),
                request: Hash::ZERO,
                items: Vec::new(),
                effort_refused: false,
                raw: None,
                server_tools: Vec::new(),
            }
            .into(),
        );
        events.push(Noticed::plain(text.as_str()).into());
        events.push(Finished { ms: 1, ..Finished::plain(call, Outcome::Done, &text) }.into());
    }
    events.truncate(n as usize);
    let (mut seq, mut chain) = (0, Hash::ZERO);
    let mut sizes: Vec<usize> = events.iter().map(|e| e.body().len()).collect();
    sizes.sort_unstable();
    assert!((450..600).contains(&sizes[sizes.len() / 2]), "median body {}", sizes[sizes.len() / 2]);
    for share in events.chunks(2000) {
        let after = seq;
        let mut records = Vec::new();
        for event in share {
            let record = seal(seq, chain, At(1), Cause::Driver, event);
            (seq, chain) = (record.envelope.seq, record.chain());
            records.push(record);
        }
        let listing = Listing {
            title: "long".into(),
            workspace: "/w".into(),
            status: Status::Done,
            version: 1,
        };
        let batch = Batch {
            session: session.clone(),
            after,
            records,
            inputs: vec![],
            blobs: vec![],
            listing,
            charge: None,
        };
        store.append(batch).await.unwrap();
    }
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn long_sessions_are_ready_quickly() {
    let dir = tmp();
    let data = dir.path().join("up/data");
    let store = Sqlite::open(&data).await.unwrap().store;
    let ten = long_session(&store, "tenthousand", 10_000).await;
    let hundred = long_session(&store, "hundredthousand", 100_000).await;
    store.close().await;
    let store = Sqlite::open(&data).await.unwrap().store;
    // In turns, and the best of each: whatever else the machine does strikes both.
    let (mut few, mut many) = (Vec::new(), Vec::new());
    let mut wall = Vec::new();
    for _ in 0..timing::rounds(3, 8) {
        for (id, facts, costs) in [(&ten, 10_000, &mut few), (&hundred, 100_000, &mut many)] {
            let (began, cpu) = (Instant::now(), timing::cpu());
            assert_eq!(load(&store, id).await.unwrap().state.seq, facts);
            costs.push(timing::cpu() - cpu);
            wall.extend((facts == 10_000).then(|| began.elapsed()));
        }
    }
    let (small, large) = (best(&few), best(&many));
    store.close().await;
    // Memory is measured in a process that has done nothing else.
    let output =
        crate::kills::connection("load", &dir.path().join("up"), "plain").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let memory: u64 = said.split_whitespace().last().and_then(|n| n.parse().ok()).expect(&said);
    assert!(said.starts_with("LOADED 100000 "), "{said}");
    timing::cpu_ratio(
        "100,000 facts to 10,000, CPU time",
        large.as_secs_f64() / small.as_secs_f64(),
        12.0,
    );
    timing::figure("10,000 facts ready", best(&wall), Duration::from_millis(75));
    println!("figure: 100,000 facts take {} MB (bound 60)", memory >> 10);
    assert!(memory <= 60 << 10, "{} MB", memory >> 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_sessions_are_listed_quickly() {
    let dir = tmp();
    let store = Sqlite::open(dir.path()).await.unwrap().store;
    // Written by SQL: ten thousand durable appends would be another test.
    let options = sqlx_free_insert(dir.path());
    assert!(options.status.success(), "{}", String::from_utf8_lossy(&options.stderr));
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let rows = store.list(None, 20_000).await.unwrap();
        times.push(began.elapsed());
        assert_eq!(rows.len(), 10_000);
        assert!(rows[0].created > rows[9_999].created, "newest first");
    }
    timing::figure("10,000 sessions listed", median(&mut times), Duration::from_millis(75));
}

fn sqlx_free_insert(dir: &std::path::Path) -> std::process::Output {
    let script = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
rows = [(f'session{n:06}', f'title {n}', '/w', 'done', n, n, 1, 1, bytes(32)) for n in \
                  range(10000)]
db.executemany('INSERT INTO sessions (id, title, workspace, status, created, updated, version, \
                  seq, chain) VALUES (?,?,?,?,?,?,?,?,?)', rows)
db.commit()
";
    std::process::Command::new("python3")
        .args(["-c", script])
        .arg(dir.join("dunnock.db"))
        .output()
        .unwrap()
}
