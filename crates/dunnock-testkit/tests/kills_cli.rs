//! R1 with the real program: killed at every named place while it works against real HTTP, resumed
//! by `dunnock resume`.

use crate::kills::{Came, begun, look, unknown};
use dunnock_proto::{Event, Outcome};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_dunnock-killable");

pub fn script() -> Vec<Served> {
    let big =
        r#"{"command":"echo a >> log; touch ~/escaped; head -c 1500000 /dev/zero | tr '\\0' x"}"#;
    vec![
        Say::calls(&[("shell", big)]).into(),
        Say::calls(&[
            ("write_file", r#"{"path":"new.txt","content":"new\n"}"#),
            ("view_file", r#"{"path":"log"}"#),
        ])
        .into(),
        // An edit that was killed is taken back: whoever is told that its outcome is unknown makes
        // it again.
        Say::calls(&[(
            "shell",
            r#"{"command":"echo b >> log; test -f new.txt || echo new > new.txt"}"#,
        )])
        .into(),
        Say::calls(&[("final_output", r#"{"answer":"that was it"}"#)]).into(),
    ]
}

pub fn program(dir: &Path, url: &str, args: &[&str]) -> Command {
    std::fs::create_dir_all(dir.join("project")).unwrap();
    let config = format!("model = \"script/scripted\"\n[providers.script]\nbase_url = \"{url}\"\n");
    std::fs::write(dir.join("config.toml"), config).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("--data-dir").arg(dir.join("data")).args(args).current_dir(dir.join("project"));
    command
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", dir)
        .stdin(Stdio::null());
    command.env("DUNNOCK_CONFIG", dir.join("config.toml"));
    command
}

pub async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

const START: &[&str] =
    &["run", "--json", "--approve", "all", "--verify", "test -f new.txt", "do it"];

/// Events that the program printed before it died, as `sessions show --json` would print them.
fn told(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let events = text.lines().filter(|l| l.contains(r#""type":"event""#) && l.ends_with('}'));
    events
        .filter_map(|l| Some(l.split_once(r#""record":"#)?.1.strip_suffix('}')?.to_owned()))
        .collect()
}

/// Goes on as a person would, until the session is done. A session always has its task: RED-L2 lost
/// it when the program was killed between the creation and the prompt.
async fn go_on(what: &str, dir: &Path, url: &str) {
    let mut tries = Vec::new();
    for _ in 0..4 {
        let resumed = run(program(dir, url, &["resume", "--json"])).await;
        let error = String::from_utf8_lossy(&resumed.stderr).into_owned();
        match resumed.status.code() {
            Some(0) => return,
            Some(1) if error.contains("there is no session") => {
                assert_eq!(run(program(dir, url, START)).await.status.code(), Some(0), "{what}");
                return;
            }
            _ => tries.push(error),
        }
    }
    unreachable!("{what}: {tries:?}");
}

async fn check(what: &str, dir: &Path, before: &Output, base: &Came) -> bool {
    let begun = begun(dir).await;
    let url = std::fs::read_to_string(dir.join("url")).unwrap();
    go_on(what, dir, &url).await;
    let after = look(dir).await;
    let stored =
        run(program(dir, &url, &["sessions", "show", "--json", &session(dir, &url).await])).await;
    let stored = String::from_utf8_lossy(&stored.stdout).into_owned();
    for line in told(before) {
        assert!(stored.lines().any(|l| l == line), "{what}: told and then lost: {line}");
    }
    let lost = unknown(&after);
    assert_eq!(lost, begun, "{what}: unknown is what had begun and not ended, and nothing else");
    let log = std::fs::read_to_string(dir.join("project/log")).unwrap_or_default();
    for (line, step) in [("a", 1), ("b", 3)] {
        let times = log.lines().filter(|l| *l == line).count();
        let unsure = lost.iter().any(|call| call.step.0 == step);
        assert!(times == 1 || (unsure && times == 0), "{what}: {line:?} ran {times} times\n{log}");
    }
    if lost.is_empty() {
        assert_eq!(
            String::from_utf8_lossy(&after.messages),
            String::from_utf8_lossy(&base.messages),
            "{what}"
        );
    }
    let finished = after
        .facts
        .iter()
        .filter(|(_, e)| matches!(e, Event::Finished(f) if f.outcome == Outcome::Done))
        .count();
    assert!(finished >= 4, "{what}: {finished}");
    !lost.is_empty()
}

async fn session(dir: &Path, url: &str) -> String {
    let listed = run(program(dir, url, &["sessions", "list", "--json"])).await;
    let row: serde_json::Value =
        serde_json::from_slice(listed.stdout.split(|b| *b == b'\n').next().unwrap()).unwrap();
    row["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_cli_is_killed_everywhere_and_resumed() {
    let server = ScriptedServer::start(script()).await;
    let url = server.base_url();
    let whole = tempfile::tempdir().unwrap();
    let list = whole.path().join("places");
    let mut first = program(whole.path(), &url, START);
    first.env("DUNNOCK_FAIL_LIST", &list);
    let output = run(first).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let base = look(whole.path()).await;
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    std::fs::read_to_string(&list)
        .unwrap()
        .lines()
        .for_each(|l| *times.entry(l.to_owned()).or_default() += 1);
    let mut places: Vec<String> = Vec::new();
    for (place, n) in &times {
        places.push(format!("{place}#1"));
        if *n > 1 {
            places.push(format!("{place}#{n}"));
        }
    }
    let (mut killed, mut unknowns) = (0, 0);
    for place in &places {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("url"), &url).unwrap();
        let mut dying = program(dir.path(), &url, START);
        dying.env("DUNNOCK_FAIL_AT", place);
        let before = run(dying).await;
        killed += usize::from(before.status.code().is_none());
        unknowns += usize::from(check(place, dir.path(), &before, &base).await);
    }
    println!(
        "R1 with the program: {} places, {} kills, {killed} struck, {unknowns} with an unknown \
         outcome",
        times.len(),
        places.len()
    );
    println!("{}", times.keys().cloned().collect::<Vec<_>>().join(" "));
    assert!(
        times.len() >= 30 && killed >= 60 && unknowns > 0,
        "{} places, {killed} kills",
        times.len()
    );
}
