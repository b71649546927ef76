//! A real language model behind llama.cpp's own server: `cargo xtask real` starts it and runs
//! these.
//!
//! It has 135 million parameters and a window of 2,048 tokens: what it says is not looked at, only
//! how it comes.

use crate::{Home, Ran, ran};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WIRES: &[&str] = &["chat", "responses", "anthropic"];

fn server(variable: &str) -> String {
    std::env::var(variable).unwrap() // set by `cargo xtask real`
}

/// A home that knows the model over each wire and in each dialect.
fn home() -> Home {
    let (real, shim) = (server("DUNNOCK_REAL"), server("DUNNOCK_REAL_SHIM"));
    let mut config = String::from("profile = \"small\"\n");
    for wire in WIRES {
        config += &format!(
            "[providers.{wire}]\nwire = \"{wire}\"\nbase_url = \"{real}/v1\"\ndialect = \
             \"text\"\nbody = '{{\"temperature\":0}}'\n"
        );
        // As if it held far more: what does not fit is then refused by the server, not by us.
        config += &format!(
            "[providers.{wire}-wide]\nwire = \"{wire}\"\nbase_url = \"{real}/v1\"\ndialect = \
             \"text\"\nwindow = 100000\nbody = '{{\"temperature\":0}}'\n"
        );
    }
    config += &format!(
        "[providers.plan]\nbase_url = \"{real}/v1\"\ndialect = \"plan\"\nbody = \
         '{{\"temperature\":0}}'\n"
    );
    // What stands before it takes most of a request away: the window is not what counts there.
    config += &format!("[providers.native]\nbase_url = \"{shim}/v1\"\nwindow = 16000\n");
    let home = Home::empty();
    home.configure(&config);
    home.put("README.md", "# Herons\n");
    home
}

async fn run(home: &Home, model: &str, more: &[&str], task: &str) -> Ran {
    let model = format!("{model}/smol");
    let mut args = vec!["run", "--json", "--model", &model];
    args.extend(more);
    args.push(task);
    ran(home.command(&args)).await
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The bodies of events of one kind.
fn facts(out: &str, kind: &str) -> Vec<Value> {
    let fact = |line: Value| {
        (line["type"] == "event" && line["record"]["kind"] == kind)
            .then(|| line["record"]["body"].clone())
    };
    lines(out).into_iter().filter_map(fact).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real model: cargo xtask real"]
async fn answers_stream_over_three_wires() {
    let home = home();
    for wire in WIRES {
        let Ran { code, out, err } = run(&home, wire, &["--max-steps", "2"], "Say hello.").await;
        let pieces = lines(&out)
            .iter()
            .filter(|l| l["type"] == "delta" && l["delta"].get("text").is_some())
            .count();
        let answered = facts(&out, "answered");
        let usage = &answered[0]["usage"];
        println!("{wire}: exit {code}, {pieces} pieces, {usage}");
        assert!(pieces > 3, "{wire}: {out}{err}");
        assert_eq!(answered[0]["wire"], *wire);
        assert!(usage["output"].as_u64().unwrap() > 3, "{wire}: {usage}");
        // The small profile is small by the model's own count.
        assert!((300..3_000).contains(&usage["input"].as_u64().unwrap()), "{wire}: {usage}");
        let preamble = &facts(&out, "preamble_set")[0]["preamble"];
        assert_eq!(preamble["window"], 2048, "asked of the server");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real model: cargo xtask real"]
async fn an_interrupt_stops_the_model_over_three_wires() {
    let home = home();
    for wire in WIRES {
        let model = format!("{wire}/smol");
        let task = "Write a very long story about a heron, with many chapters.";
        let mut child = home
            .command(&["run", "--json", "--model", &model, task])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut seen = 0;
        let reader = BufReader::new(child.stdout.take().unwrap());
        let mut rest = reader.lines();
        for line in rest.by_ref() {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            seen += usize::from(line["type"] == "delta" && line["delta"].get("text").is_some());
            if seen == 5 {
                break;
            }
        }
        assert_eq!(seen, 5, "{wire}: it was over too soon");
        let told = Instant::now();
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        rest.for_each(drop);
        let code = child.wait().unwrap().code();
        let took = told.elapsed();
        assert_eq!(code, Some(130), "{wire}");
        dunnock_testkit::timing::figure(
            &format!("{wire}: an interrupt of a real model"),
            took,
            Duration::from_millis(500),
        );
        // It does not write on: the next one is served at once.
        let again = Instant::now();
        let slots = wait_until_idle().await;
        println!("{wire}: over after {took:?}, idle after {:?} ({slots})", again.elapsed());
    }
}

/// Waits until the server works on nothing; how it says so.
async fn wait_until_idle() -> &'static str {
    let url = format!("{}/v1/chat/completions", server("DUNNOCK_REAL"));
    let body = r#"{"model":"smol","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}"#;
    let mut curl = Command::new("curl");
    // Left alone it would write for twenty seconds more.
    curl.args(["-sf", "-m", "3", "-H", "content-type: application/json", "-d", body, &url]);
    let Ran { code, .. } = ran(curl).await;
    assert_eq!(code, 0, "it is still busy after 3 s");
    "one token was served"
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real model: cargo xtask real"]
async fn what_does_not_fit_is_refused_by_the_server_and_by_us() {
    let home = home();
    let long = "The river went on through the reeds. ".repeat(500);
    for wire in WIRES {
        let Ran { code, out, .. } =
            run(&home, &format!("{wire}-wide"), &["--max-steps", "1"], &long).await;
        let failed = facts(&out, "step_failed");
        assert_eq!(failed[0]["failure"], "overflow", "{wire}: {failed:?}");
        assert!(
            failed[0]["error"].as_str().unwrap().contains("2048"),
            "{wire}: {}",
            failed[0]["error"]
        );
        println!("{wire}: exit {code}, {}", failed[0]["error"]);
        let Ran { out, .. } = run(&home, wire, &["--max-steps", "1"], &long).await;
        let failed = facts(&out, "step_failed");
        let error = failed[0]["error"].as_str().unwrap();
        assert!(error.contains("is 2048 tokens, so it was not sent"), "{wire}: {error}");
        assert_eq!(failed[0]["attempts"].as_array().unwrap().len(), 0, "{wire}: nothing was sent");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real model and minutes: cargo xtask long real"]
async fn a_talk_that_overflows_is_shortened_and_goes_on() {
    let home = home();
    let text =
        |times| format!("{}Say hello.", "The river went on through the reeds. ".repeat(times));
    // However it ends, and it may end at the limit of the window: it is conversation that takes up
    // room.
    run(&home, "chat-wide", &["--max-steps", "1"], &text(50)).await;
    let prompt = text(45);
    let Ran { code, out, err } =
        ran(home.command(&["resume", "--json", "--max-steps", "2", "--prompt", &prompt])).await;
    let failed = facts(&out, "step_failed");
    assert_eq!(failed[0]["failure"], "overflow", "the server refuses the second: {out}{err}");
    let kinds: Vec<Value> = lines(&out).iter().map(|line| line["record"]["kind"].clone()).collect();
    let shortened = kinds.iter().rposition(|kind| kind == "compacted").unwrap_or(usize::MAX);
    assert!(shortened < kinds.len(), "talk was shortened: {kinds:?}");
    // What is asked after that fits: the model answers, or writes to the end of its window.
    let after = lines(&out).split_off(shortened);
    let said = |line: &Value| line["type"] == "delta" && line["delta"].get("text").is_some();
    assert!(after.iter().any(said), "and the model went on: {kinds:?}");
    println!("overflow, shortened, went on, exit {code}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real model: cargo xtask real"]
async fn plans_are_valid_when_the_server_is_held_to_a_schema() {
    let home = home();
    let wanted: usize = std::env::var("DUNNOCK_PLANS").map_or(2, |n| n.parse().unwrap());
    let tasks = [
        "List the files.",
        "Read README.md.",
        "Say hello.",
        "Find the word heron.",
        "Make a file.",
        "Run the tests.",
        "What is this?",
        "Are you done?",
    ];
    let mut valid = 0;
    for n in 0..wanted {
        let task = format!("{} ({n})", tasks[n % tasks.len()]);
        let Ran { out, err, .. } =
            run(&home, "plan", &["--max-steps", "1", "--approve", "read"], &task).await;
        let answered = facts(&out, "answered");
        let tokens = answered.first().and_then(|a| a["usage"]["input"].as_u64());
        assert!(tokens.is_some_and(|n| (300..3_000).contains(&n)), "{tokens:?} tokens: {err}");
        let whole = answered.first().is_some_and(|a| !a.to_string().contains("\"fault\""));
        valid += usize::from(whole);
        if !whole {
            println!("not valid: {answered:?} {err}");
        }
    }
    println!("{valid} of {wanted} plans are valid");
    assert_eq!(valid, wanted);
}

/// A planner from its beginning to its end: whatever the model plans, every plan is one. CI runs
/// one, the long run five.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real model: cargo xtask real"]
async fn planner_runs_come_to_their_end_and_every_plan_is_valid() {
    let many = std::env::var("DUNNOCK_PLANS").is_ok_and(|n| n.parse::<u32>().unwrap() > 8);
    let (runs, steps) = if many { (5, "3") } else { (1, "2") };
    let (mut plans, mut actions) = (0, 0);
    for n in 0..runs {
        let home = home();
        home.put("greet.py", "print('helo')\n");
        let task =
            ["Print hello.", "Read README.md.", "Run the tests.", "Make a file.", "Mend greet.py."]
                [n % 5];
        let more = ["--planner", "--max-steps", steps, "--verify", "grep -q hello greet.py"];
        let Ran { code, out, err } = run(&home, "plan", &more, task).await;
        let answered = facts(&out, "answered");
        println!("planner run {}: {} plans, exit {code}", n + 1, answered.len());
        assert!(matches!(code, 0 | 4 | 5), "exit {code}: {err}");
        assert!(
            !answered.is_empty()
                && !answered.iter().any(|a| a.to_string().contains("not a valid plan")),
            "{answered:?}"
        );
        plans += answered.len();
        actions +=
            answered.iter().map(|a| a.to_string().matches("\"call\"").count()).sum::<usize>();
        let memory =
            std::fs::read_dir(home.project().join(".dunnock/agent-memory")).unwrap().count();
        assert!(memory >= 1, "it left its memory");
    }
    println!("{plans} plans of {runs} planner runs are valid, with {actions} actions");
}

/// Runs a task with native calls; whether it was done, and how many steps it took.
async fn native_task(
    home: &Home,
    task: &str,
    done: impl Fn(&Home, &str) -> bool,
) -> Result<usize, String> {
    let all = &["--max-steps", "4", "--approve", "all", "--sandbox", "off"];
    let Ran { out, err, .. } = run(home, "native", all, task).await;
    let answered = facts(&out, "answered");
    let native = answered.first().is_some_and(|answer| {
        let answer = answer.to_string();
        answer.contains("\"call\"") && !answer.contains("recovered")
    });
    match native && done(home, &out) {
        true => Ok(answered.len()),
        false => Err(format!("{answered:#?} {err}")),
    }
}

/// With the small profile, and with each set of tools.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real model: cargo xtask real"]
async fn three_small_tasks_are_done_with_native_calls_and_each_set_of_tools() {
    let reads = |_: &Home, out: &str| {
        let shown = |f: &Value| f["shown"].as_str().is_some_and(|t| t.contains("# Herons"));
        facts(out, "finished").iter().any(shown)
    };
    for set in ["small", "plain", "openai", "claude"] {
        let home = home();
        if set != "small" {
            let config = home.dir.path().join(".config/dunnock/config.toml");
            let text = std::fs::read_to_string(&config).unwrap();
            let chosen = format!("profile = \"default\"\ntool_set = \"{set}\"\n");
            std::fs::write(&config, text.replacen("profile = \"small\"\n", &chosen, 1)).unwrap();
        }
        let began = Instant::now();
        let results = [
            native_task(&home, "Run the command touch made.", |home, _| {
                home.project().join("made").is_file()
            })
            .await,
            native_task(&home, "Run the command mkdir made2.", |home, _| {
                home.project().join("made2").is_dir()
            })
            .await,
            native_task(&home, "Read the file README.md.", reads).await,
        ];
        let steps: usize = results.iter().flatten().sum();
        let done = results.iter().filter(|result| result.is_ok()).count();
        let seconds = began.elapsed().as_secs_f32();
        println!("{set}: {done} of 3 tasks over after {steps} steps, {seconds:.1} s");
        assert_eq!(done, 3, "{set}: {results:#?}");
    }
}
