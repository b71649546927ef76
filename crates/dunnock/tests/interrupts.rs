//! Ctrl-C: exit 130 (within 200 ms on a quiet machine), resumable, no child left.

use crate::{Home, told};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, ScriptedServer, Served};
use dunnock_testkit::timing;
use std::process::Child;
use std::time::{Duration, Instant};

fn signal(child: &Child, name: &str) {
    let status =
        std::process::Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

async fn interrupted(child: Child, what: &str) -> crate::Ran {
    let began = Instant::now();
    signal(&child, "-INT");
    let output =
        tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    let took = began.elapsed();
    let ran = told(output);
    assert_eq!(ran.code, 130, "{what}: {}", ran.err);
    timing::figure(&format!("Ctrl-C while {what}"), took, Duration::from_millis(200));
    ran
}

async fn goes_on(home: &Home, what: &str) {
    let done = home.run(&["resume"]).await;
    assert_eq!(done.code, 0, "{what}: {}", done.err);
    assert_eq!(home.run(&["sessions", "verify"]).await.code, 0);
}

/// Whether a process waits for a connection to this port of 127.0.0.1: its state is SYN_SENT.
fn connects_to(port: u16) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().any(|line| line.contains(&format!(" 0100007F:{port:04X} 02 ")))
}

#[tokio::test(flavor = "multi_thread")]
async fn while_connecting() {
    // A listener whose queue is full takes no more connections: the program waits for its own to be
    // made.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    while held.len() < 5000 {
        match std::net::TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
            Ok(stream) => held.push(stream),
            Err(_) => break,
        }
    }
    let home = Home::empty();
    let config = |url: &str| {
        format!("model = \"script/scripted\"\n[providers.script]\nbase_url = \"{url}\"\n")
    };
    home.configure(&config(&format!("http://{address}/v1")));
    let child = home.start(&["run", "go"]);
    while !connects_to(address.port()) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    interrupted(child, "connecting").await;
    let server = ScriptedServer::start(vec![]).await;
    home.configure(&config(&server.base_url()));
    goes_on(&home, "connecting").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_waiting_for_the_first_word() {
    let server =
        ScriptedServer::start(vec![Served::wrong(Say::text("x"), Fault::Deaf).times(1)]).await;
    let home = Home::with(&server);
    let child = home.start(&["run", "go"]);
    server.wait_for(1).await;
    interrupted(child, "waiting").await;
    goes_on(&home, "waiting").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_streaming() {
    let server =
        ScriptedServer::start(vec![Served::from(Say::text("one two three")).gated()]).await;
    let home = Home::with(&server);
    let child = home.start(&["run", "go"]);
    server.wait_for(1).await;
    server.open_gate(1);
    tokio::time::sleep(Duration::from_millis(100)).await;
    interrupted(child, "streaming").await;
    server.open_gate(100);
    goes_on(&home, "streaming").await;
    let told = server.requests().last().unwrap()["messages"].to_string();
    assert!(told.contains("one \\n[cut off here]"), "what was said is kept: {told}");
}

/// Holds W4: cancellation ends it (exit 130), nothing is left.
#[tokio::test(flavor = "multi_thread")]
async fn inside_a_tool() {
    let command =
        r#"{"command":"sleep 77 & echo $! > child; echo $$ > self; trap '' TERM; wait; sleep 78"}"#;
    let server = ScriptedServer::start(vec![Say::calls(&[("shell", command)]).into()]).await;
    let home = Home::with(&server);
    let child = home.start(&["run", "--sandbox", "off", "--approve", "all", "go"]);
    while home.read("self").is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    interrupted(child, "tool").await;
    for file in ["child", "self"] {
        let pid = home.read(file);
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{file} is still there: {stat}");
    }
    goes_on(&home, "tool").await;
    let told = server.requests().last().unwrap()["messages"].to_string();
    assert!(told.contains("[stopped: the person interrupted]"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_end_is_heard_like_ctrl_c() {
    let server = ScriptedServer::start(vec![Served::wrong(Say::text("x"), Fault::Silence)]).await;
    let home = Home::with(&server);
    for name in ["-TERM", "-HUP"] {
        let child = home.start(&["run", "go"]);
        server.wait_for(server.bodies().len() + 1).await;
        signal(&child, name);
        let output =
            tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
        assert_eq!(output.status.code(), Some(130), "{name}: {output:?}");
    }
    // Who was told not to hear a hang-up works on.
    let program = env!("CARGO_BIN_EXE_dunnock");
    let mut deaf =
        home.command_of("sh".as_ref(), &["-c", "trap '' HUP; exec \"$0\" run go", program]);
    let child = deaf
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    server.wait_for(server.bodies().len() + 1).await;
    signal(&child, "-HUP");
    tokio::time::sleep(Duration::from_millis(200)).await;
    interrupted(child, "after a hang-up that is not heard").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn told_twice_it_leaves_at_once_and_takes_its_children_along() {
    let command = r#"{"command":"trap '' TERM; echo $$ > self; sleep 79"}"#;
    let server = ScriptedServer::start(vec![Say::calls(&[("shell", command)]).into()]).await;
    let home = Home::with(&server);
    let child = home.start(&["run", "--sandbox", "off", "--json", "--approve", "all", "go"]);
    while home.read("self").is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    signal(&child, "-INT");
    let ran = interrupted(child, "told twice").await;
    assert!(ran.out.lines().last().unwrap().contains(r#""type":"ended""#), "{}", ran.out);
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", home.read("self").trim()))
        .unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "still there: {stat}");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_task_is_still_being_typed() {
    let home = Home::empty();
    let mut command = home.command(&["run"]);
    let child = command
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let began = Instant::now();
    signal(&child, "-INT");
    let mut child = child;
    let status = child.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(2),
        "a shell calls that 130"
    );
    timing::figure("Ctrl-C while the task is typed", began.elapsed(), Duration::from_millis(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn r26_tools_of_a_killed_owner_are_dead_before_the_next_start() {
    let escape = r#"{"command":"(setsid sh -c 'echo $$ > daemon; sleep 62.26' >/dev/null 2>&1 &); echo $$ > self; sleep 62.26"}"#;
    let look = r#"{"command":"for f in self daemon; do kill -0 $(cat $f) 2>/dev/null && echo alive; done; echo looked"}"#;
    let script =
        vec![Say::calls(&[("shell", escape)]).into(), Say::calls(&[("shell", look)]).into()];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let mut owner = home.start(&["run", "--sandbox", "off", "--approve", "all", "go"]);
    while home.read("daemon").trim().is_empty() || home.read("self").trim().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    owner.kill().unwrap();
    let resumed = home.run(&["resume"]).await;
    owner.wait().unwrap();
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    let told = server.requests().last().unwrap()["messages"].clone();
    assert!(told.to_string().contains("outcome unknown"), "{told}");
    assert_eq!(
        told.as_array().unwrap().last().unwrap()["content"],
        "looked",
        "something is still alive"
    );
}

/// What holds for root holds for everybody.
#[test]
fn r26_and_undo_as_an_ordinary_user() {
    if dunnock_testkit::ordinary::is_root() {
        for tests in ["interrupts::r26_tools", "back::w", "back::two"] {
            let said = dunnock_testkit::ordinary::run(
                tests,
                &[("DUNNOCK_BIN", env!("CARGO_BIN_EXE_dunnock"))],
            );
            said.lines()
                .filter(|line| line.starts_with("test "))
                .for_each(|line| println!("{line}"));
        }
    }
}
