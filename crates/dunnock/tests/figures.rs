//! How quick and how quiet the terminal app is: a pty, every byte of it, and what the kernel
//! counts.

use crate::Home;
use dunnock_proto::{
    Answered, At, CallId, CallPart, Cause, Config, Created, EndReason, Ended, Event, Finished,
    Hash, Outcome, Owner, Part, Prompted, Proof, Recovery, Reserved, SessionId, Started, Step,
    StepStarted, Stop, Usage, seal,
};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};
use dunnock_testkit::timing;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs the words in a pty of 80 by 24 and prints what it saw as JSON. Each step is what to wait
/// for and what to type then; between "idle" marks it is left alone for five seconds.
const WATCH: &str = r#"
import fcntl, json, os, pty, re, select, struct, sys, termios, time
argv, steps, idle = json.loads(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    os.execvp(argv[0], argv)
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
began = time.monotonic()
seen, times, said = b"", [], {}
def read(limit):
    global seen
    ready, _, _ = select.select([fd], [], [], limit)
    if not ready: return True
    try: piece = os.read(fd, 65536)
    except OSError: return False
    seen += piece
    return bool(piece)
def switches():
    n = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try: text = open(f"/proc/{pid}/task/{task}/status").read()
        except OSError: continue
        n += sum(int(x) for x in re.findall(r"ctxt_switches:\s+(\d+)", text))
    return n
at = 0
for wait, say in steps:
    end = time.monotonic() + 60
    while wait.encode() not in seen[at:]:
        if time.monotonic() > end: print(json.dumps({"never": wait, "seen": seen[-3000:].decode(errors="replace")})); sys.exit(0)
        if not read(0.02): break
    times.append((time.monotonic() - began) * 1000)
    at = len(seen)
    if say == "IDLE":
        end = time.monotonic() + 1.5
        while time.monotonic() < end: read(0.1)
        status = open(f"/proc/{pid}/status").read()
        said["rss_kb"] = int(re.search(r"VmRSS:\s+(\d+)", status).group(1))
        before, bytes_before = switches(), len(seen)
        time.sleep(idle)
        said["switches"] = switches() - before
        read(0)
        said["idle_bytes"] = len(seen) - bytes_before
        at = len(seen)
    elif say:
        os.write(fd, say.encode())
        began = time.monotonic() if say.endswith("\r") else began
while read(1): pass
os.waitpid(pid, 0)
said.update(times=times, bytes=len(seen), clears=seen.count(b"\x1b[2J") + seen.count(b"\x1b[3J") + seen.count(b"\x1bc"))
print(json.dumps(said))
"#;

async fn watch(home: &Home, args: &[&str], steps: &[(&str, &str)], idle: f64) -> Value {
    let program = crate::program();
    let argv: Vec<&str> = [program.to_str().unwrap()].iter().chain(args).copied().collect();
    let given = serde_json::json!([argv, steps, idle]).to_string();
    let mut command = home.command_of("python3".as_ref(), &["-c", WATCH, &given]);
    command
        .env("TERM", "xterm-256color")
        .env("DUNNOCK_FIGURES", home.dir.path().join("figures.json"));
    let ran = crate::ran(command).await;
    let told: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic_with(&ran));
    assert!(told.get("never").is_none(), "{told:#}");
    told
}

fn millis(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

fn panic_with(ran: &crate::Ran) -> Value {
    assert!(ran.out.is_empty() && ran.err.is_empty(), "{ran:?}");
    Value::Null
}

/// As built for tests, numbers are larger than those of a release, which stand in
/// docs/internals/benchmarks.md; what must not happen is the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_picture_comes_at_once_and_nothing_moves_without_a_reason() {
    let server = ScriptedServer::start(Vec::new()).await;
    let home = Home::with(&server);
    let told = watch(&home, &[], &[("hat would you like to do", "IDLE"), ("", "\u{4}")], 5.0).await;
    let first = told["times"][0].as_f64().unwrap();
    let (rss, switches) =
        (told["rss_kb"].as_u64().unwrap() / 1024, told["switches"].as_u64().unwrap());
    println!(
        "first picture {first:.0} ms, idle memory {rss} MB, {switches} context switches in 5 idle \
         seconds, {} bytes",
        told["idle_bytes"]
    );
    // The bars are a release's: CI's figures step runs this with what people download.
    let release = std::env::var_os("DUNNOCK_BIN").is_some();
    timing::figure(
        "the first picture",
        millis(first),
        millis(if release { 100.0 } else { 1_000.0 }),
    );
    assert!(switches <= 25, "{switches} context switches while nothing happens");
    assert_eq!(
        (told["idle_bytes"].as_u64(), told["clears"].as_u64()),
        (Some(0), Some(0)),
        "{told}"
    );
    assert!(rss < if release { 30 } else { 60 }, "{rss} MB");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_tokens_a_second_are_drawn_in_time() {
    let words: Vec<String> = (0..4_000).map(|n| format!("word{n}")).collect();
    let text: String = words.chunks(25).map(|chunk| chunk.join(" ") + ".\n\n").collect();
    let server = ScriptedServer::start(vec![Served::from(Say::text(&text)).gated()]).await;
    let home = Home::with(&server);
    let steps = [("hat would you like to do", "go\r"), ("undo: /undo", "\u{4}")];
    let watching = watch(&home, &[], &steps, 0.0);
    let opening = async {
        server.wait_for(1).await;
        let began = Instant::now();
        for n in 1..=200u32 {
            server.open_gate(20);
            tokio::time::sleep_until((began + Duration::from_millis(10) * n).into()).await;
        }
        server.open_gate(100_000);
        began.elapsed()
    };
    let (told, took) = tokio::join!(watching, opening);
    let figures: Value = serde_json::from_str(
        &std::fs::read_to_string(home.dir.path().join("figures.json")).unwrap(),
    )
    .unwrap();
    let per_token = told["bytes"].as_f64().unwrap() / 4_000.0;
    println!(
        "4,000 tokens in {:.1} s: {} pictures, median {} us, 99 of 100 within {} us, slowest {} \
         us, {per_token:.1} bytes a token, {} full clears",
        took.as_secs_f64(),
        figures["frames"],
        figures["median_us"],
        figures["p99_us"],
        figures["slowest_us"],
        told["clears"]
    );
    let p99 = Duration::from_micros(figures["p99_us"].as_u64().unwrap());
    timing::figure("99 of 100 pictures", p99, Duration::from_millis(16));
    assert_eq!(told["clears"], 0);
    assert!(per_token < 200.0, "{per_token}");
}

/// A log of ten thousand events, carried in.
fn long_session(facts: u64, workspace: &str) -> String {
    let id = SessionId::from_random([9; 16]);
    let (mut seq, mut prev, mut lines) = (0, Hash::ZERO, Vec::new());
    let mut add = |event: Event| {
        let record = seal(seq, prev, At(1_700_000_000_000), Cause::Driver, &event);
        seq += 1;
        prev = record.chain();
        lines.push(serde_json::to_string(&record).unwrap());
    };
    add(Created {
        workspace: workspace.into(),
        app: "0.1.0".into(),
        config: Config { model: "script/scripted".into(), ..Config::default() },
        base: None,
    }
    .into());
    add(Prompted { text: "a long one".into(), images: Vec::new() }.into());
    let steps = u32::try_from((facts - 3) / 4).unwrap();
    for n in 1..=steps {
        let call = CallId { step: Step(n), index: 0 };
        let args: Arc<str> = format!(r#"{{"path":"file{n}.txt"}}"#).into();
        let part = Part::Call(Arc::new(CallPart {
            id: "c".into(),
            tool: "view_file".into(),
            args,
            sent: None,
            recovered: false,
            fault: None,
        }));
        add(StepStarted {
            step: Step(n),
            upto: 2,
            preamble: Hash::ZERO,
            reserved: Reserved::default(),
        }
        .into());
        let usage = Usage { input: 100, output: 10, ..Usage::default() };
        let (model, wire, stop) = ("script/scripted".to_owned(), "chat".to_owned(), Stop::Calls);
        add(Answered {
            step: Step(n),
            attempts: Vec::new(),
            model,
            wire,
            parts: vec![part],
            stop,
            usage,
            request: Hash::ZERO,
            items: Vec::new(),
            effort_refused: false,
            raw: None,
            server_tools: Vec::new(),
        }
        .into());
        add(Started { call, owner: Owner(1), recovery: Recovery::Repeat }.into());
        add(Finished::plain(call, Outcome::Done, &format!("line of file {n}\n").repeat(5)).into());
    }
    add(Ended { reason: EndReason::Done, proof: Proof::None, hold: false }.into());
    let first = serde_json::json!({"dunnock_export": 2, "session": id, "events": seq, "tip": prev});
    format!("{first}\n{}\n", lines.join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_ten_thousand_facts_opens_at_once() {
    let server = ScriptedServer::start(Vec::new()).await;
    let home = Home::with(&server);
    let file = home.dir.path().join("long.jsonl");
    std::fs::write(&file, long_session(10_000, home.project().to_str().unwrap())).unwrap();
    let imported = home.run(&["sessions", "import", file.to_str().unwrap(), "--trust"]).await;
    assert_eq!(imported.code, 0, "{}", imported.err);
    let id = home.newest().await;
    let told = watch(&home, &["open", "--resume", &id], &[("Resumed", "\u{4}")], 0.0).await;
    let (opened, bytes) = (told["times"][0].as_f64().unwrap(), told["bytes"].as_u64().unwrap());
    timing::figure("10,000 facts open", millis(opened), millis(2_000.0));
    assert!(bytes < 60_000, "only its end is written: {bytes}");
}
