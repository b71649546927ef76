//! Sessions over HTTP: list, search, make, read, command, look around (W3, W6, W7).

use super::{Serve, kinds, prompt, reply, shell};
use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};
use serde_json::{Value, json};
use std::io::BufRead as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Holds W3: id, title, creation time, workspace, history, version.
/// Holds W7: list and open over plain HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn w3_a_session_is_made_read_listed_and_searched() {
    let server = ScriptedServer::start(vec![
        shell("echo purple > colour.txt"),
        Say::text("It is painted.").into(),
    ])
    .await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({ "prompt": "paint the barn" }));
    let view = api.until(&id, &["done"]);
    assert_eq!(view["title"], "paint the barn");
    assert_eq!(view["workspace"], home.project().canonicalize().unwrap().to_str().unwrap());
    assert_eq!(view["model"], "script/scripted");
    assert_eq!(view["more"], false);
    let created = view["created"].as_str().unwrap();
    assert!(
        regex::Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$").unwrap().is_match(created),
        "{created}"
    );
    assert_eq!(home.read("colour.txt"), "purple\n");
    let all = kinds(&view);
    assert!(
        all.starts_with(&["created".into(), "prompted".into(), "owner_changed".into()]),
        "{all:?}"
    );
    assert!(all.ends_with(&["ended".into()]), "{all:?}");
    // From a sequence number on, and in shares, without a gap.
    let seq = view["seq"].as_u64().unwrap();
    let mut from = 0;
    while from < seq {
        let share = api.get(&format!("/api/sessions/{id}?from={from}&limit=3"));
        let facts = share["events"].as_array().unwrap();
        assert!(facts.len() <= 3 && facts[0]["seq"] == from + 1, "{share}");
        from = facts.last().unwrap()["seq"].as_u64().unwrap();
        assert_eq!(share["more"], from < seq);
    }
    // Listed, and found by a word of it; not by another, and not in another folder.
    let row = &api.get("/api/sessions")["sessions"][0];
    assert_eq!(
        (&row["id"], &row["state"], &row["version"]),
        (&json!(id), &json!("done"), &view["version"])
    );
    let found = api.get("/api/sessions?search=barn");
    assert_eq!(found["sessions"][0]["id"], json!(id), "{found}");
    assert!(found["sessions"][0]["excerpt"].as_str().unwrap().contains("barn"), "{found}");
    assert_eq!(api.get("/api/sessions?search=zebra")["sessions"], json!([]));
    assert_eq!(api.get("/api/sessions?workspace=/elsewhere")["sessions"], json!([]));
    // What lies around it.
    let files = api.get(&format!("/api/sessions/{id}/files?match=clr"));
    assert_eq!(files["files"], json!(["colour.txt"]));
    let diff = api.get(&format!("/api/sessions/{id}/diff"));
    assert_eq!(diff["changes"][0]["path"], "colour.txt", "{diff}");
    assert!(diff["changes"][0]["diff"].as_str().unwrap().contains("+purple"), "{diff}");
    let points = api.get(&format!("/api/sessions/{id}/checkpoints"));
    let points = points["checkpoints"].as_array().unwrap();
    assert!(points.len() >= 2 && points[0]["step"] == 0, "{points:?}");
    // Back to before the first step: files, too.
    let to = points[0]["seq"].clone();
    let request = json!({ "id": "back", "command": { "rewind": { "to": { "event": to }, "scope": "both" } } });
    assert_eq!(api.post(&format!("/api/sessions/{id}/commands"), &request).0, 200);
    let end = Instant::now() + Duration::from_secs(60);
    while home.project().join("colour.txt").exists() {
        assert!(Instant::now() < end, "it was not taken back");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(serve.end(), 0);
}

/// Holds W6: waits as pending, continues by itself once approved.
#[tokio::test(flavor = "multi_thread")]
async fn w6_a_call_waits_is_approved_and_the_loop_goes_on_by_itself() {
    let script = vec![shell("cat .env"), Say::text("Seen.").into()];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    home.put(".env", "A=1\n");
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({ "prompt": "look" }));
    let view = api.until(&id, &["waiting"]);
    let question = &view["questions"][0];
    assert_eq!(question["call"]["tool"], "shell", "{view:#}");
    assert_eq!(question["call"]["arguments"], json!({ "command": "cat .env" }).to_string());
    assert_eq!(question["heading"], "Let this command read secret files?");
    assert_eq!(question["kind"]["approval"]["access"]["secrets"], true);
    // An answer to something else is none; neither is one to what was not shown.
    let commands = format!("/api/sessions/{id}/commands");
    let mut wrong = reply("r0", &view, "yes");
    wrong["command"]["reply"]["hash"] = json!("0".repeat(64));
    let (status, no) = api.post(&commands, &wrong);
    assert_eq!((status, &no["reason"]), (409, &json!("changed")), "{no:#}");
    assert_eq!(no["session"]["questions"][0]["id"], question["id"], "the fresh state comes along");
    let (status, taken) = api.post(&commands, &reply("r1", &view, "yes"));
    assert_eq!(status, 200, "{taken}");
    // The same id again gets the same answer; another answer comes too late.
    assert_eq!(api.post(&commands, &reply("r1", &view, "yes")), (200, taken));
    let (status, no) = api.post(&commands, &reply("r2", &view, "no"));
    assert_eq!((status, &no["reason"]), (409, &json!("no_question")));
    let view = api.until(&id, &["done"]);
    assert_eq!(kinds(&view).iter().filter(|k| *k == "replied").count(), 1);
}

/// Holds W3: the loser gets 409 and the fresh state.
#[tokio::test(flavor = "multi_thread")]
async fn w3_the_loser_gets_a_conflict_and_the_fresh_state() {
    let server =
        ScriptedServer::start(vec![Say::text("one").into(), Say::text("two").into()]).await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({ "prompt": "first" }));
    let view = api.until(&id, &["done"]);
    let commands = format!("/api/sessions/{id}/commands");
    let titled = |n: u32| json!({ "id": format!("t{n}"), "expect": view["version"], "command": { "title": { "title": format!("title {n}") } } });
    assert_eq!(api.post(&commands, &titled(1)).0, 200);
    let (status, no) = api.post(&commands, &titled(2));
    assert_eq!(status, 409);
    let version = &no["session"]["version"];
    assert_eq!(no["reason"], json!({ "stale": { "version": version } }), "{no:#}");
    assert_eq!(no["session"]["title"], "title 1");
    assert!(no["error"].as_str().unwrap().contains("reload it and try again"), "{no}");
}

/// Holds W7: prompt, cancel, text, events over the live channel, without a gap.
#[tokio::test(flavor = "multi_thread")]
async fn w7_the_live_channel_streams_and_resumes_without_a_gap() {
    let script =
        vec![shell("echo hi"), Served::from(Say::text("These words come slowly.")).gated()];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({}));
    let mut live = api.live(&id, 0).ok().unwrap();
    let welcome = live.next(Duration::from_secs(5)).unwrap();
    assert_eq!(welcome["welcome"]["link"], 1, "{welcome}");
    live.submit("p1", &json!({ "prompt": { "text": "say hi" } })).unwrap();
    let first = live.until(|m| m["event"]["kind"] == "finished");
    assert!(first.iter().any(|m| m["accepted"]["id"] == "p1"), "{first:?}");
    let seen: Vec<u64> = first.iter().filter_map(|m| m["event"]["seq"].as_u64()).collect();
    // Somebody else comes in the middle of an answer and is told what was said so far.
    server.open_gate(2);
    let said = live.until(|m| m["delta"]["text"]["text"].is_string());
    assert!(
        said.last().unwrap()["delta"]["text"]["text"].as_str().is_some_and(|t| !t.is_empty()),
        "{said:?}"
    );
    let last = *seen.last().unwrap();
    drop(live);
    let mut again = api.live(&id, last).ok().unwrap();
    let late = again.until(|m| m["partial"]["step"]["text"].is_string());
    assert!(
        !late.last().unwrap()["partial"]["step"]["text"].as_str().unwrap().is_empty(),
        "{late:?}"
    );
    server.open_gate(1000);
    let rest = again.until(|m| m["event"]["kind"] == "ended");
    let rest: Vec<u64> =
        late.iter().chain(&rest).filter_map(|m| m["event"]["seq"].as_u64()).collect();
    let all: Vec<u64> = seen.iter().chain(&rest).copied().collect();
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>(), "each fact once, in order");
    // Cancelling is a command like any other.
    again.submit("p2", &json!({ "prompt": { "text": "again" } })).unwrap();
    again.submit("i1", &json!("interrupt")).unwrap();
    let stopped = again.until(|m| m["event"]["kind"] == "ended");
    assert!(
        stopped.iter().any(|m| m["accepted"]["id"] == "i1" || m["refused"]["id"] == "i1"),
        "{stopped:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_says_so_and_changes_nothing() {
    let server = ScriptedServer::start(vec![Say::text("x").into()]).await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let (status, no) = api.post("/api/sessions", &json!({ "workspace": "/no/such/folder" }));
    assert!(status == 404 && no["error"].as_str().unwrap().contains("does not exist"), "{no}");
    let (status, no) = api.post("/api/sessions", &json!({ "workspace": "relative" }));
    assert!(status == 404 && no["error"].as_str().unwrap().contains("absolute path"), "{no}");
    let (status, no) = api.post("/api/sessions", &json!({ "workspace": home.dir.path() }));
    assert!(
        status == 409 && no["error"].as_str().unwrap().contains("your Dunnock settings"),
        "{no}"
    );
    let (status, no) = api.post("/api/sessions", &json!({ "set": { "model": "nobody/none" } }));
    assert!(status == 409 && no["error"].as_str().unwrap().contains("nobody"), "{no}");
    let (status, no) = api.post("/api/sessions", &json!({ "nonsense": 1 }));
    assert!(status == 400 && no["error"].as_str().unwrap().contains("nonsense"), "{no}");
    assert_eq!(api.get("/api/sessions")["sessions"], json!([]));
    let (status, no) = api.post("/api/sessions/abcdefgh12/commands", &prompt("a", "b"));
    assert!(
        status == 404 && no["error"].as_str().unwrap().contains("no session abcdefgh12"),
        "{no}"
    );
    assert_eq!(api.ask("GET", "/api/nothing", None).unwrap().status, 404);
    assert_eq!(api.ask("PATCH", "/api/sessions", Some(&json!({}))).unwrap().status, 405);
    // A blob of another session is not given out by asking for it here.
    let id = api.make(&json!({}));
    let heard =
        api.ask("GET", &format!("/api/sessions/{id}/blobs/{}", "0".repeat(64)), None).unwrap();
    assert_eq!(heard.status, 404, "{}", heard.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_waits_for_the_next_fact_and_takes_nothing_over() {
    let server = ScriptedServer::start(vec![Served::from(Say::text("Slowly.")).gated()]).await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({}));
    let before = api.get(&format!("/api/sessions/{id}"));
    let began = Instant::now();
    let after = api.get(&format!("/api/sessions/{id}?from={}&wait=1", before["seq"]));
    assert!(
        began.elapsed() > Duration::from_millis(900) && after["events"] == json!([]),
        "{after}"
    );
    assert_eq!(after["seq"], before["seq"], "looking makes no fact");
    let mut other = serve.api();
    let (path, from) = (format!("/api/sessions/{id}"), before["seq"].clone());
    let waits = std::thread::spawn(move || {
        let began = Instant::now();
        (other.get(&format!("{path}?from={from}&wait=30")), began.elapsed())
    });
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(api.post(&format!("/api/sessions/{id}/commands"), &prompt("p", "go")).0, 200);
    let (view, took): (Value, Duration) = waits.join().unwrap();
    assert!(!view["events"].as_array().unwrap().is_empty());
    dunnock_testkit::timing::figure("a reader that waits is woken", took, Duration::from_secs(5));
    server.open_gate(100);
    api.until(&id, &["done"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_goes_on_by_itself_and_a_whole_output_can_be_had() {
    let long = "seq 1 5000";
    let server = ScriptedServer::start(vec![
        shell(long),
        Say::text("Counted.").into(),
        Say::text("Forked.").into(),
    ])
    .await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({ "prompt": "count" }));
    let view = api.until(&id, &["done"]);
    let full = view["events"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|f| f["body"]["full"].as_str())
        .unwrap()
        .to_owned();
    let heard = api.ask("GET", &format!("/api/sessions/{id}/blobs/{full}"), None).unwrap();
    assert_eq!(heard.status, 200);
    assert!(heard.body.starts_with("1\n2\n") && heard.body.ends_with("5000\n"));
    assert_eq!(heard.header("content-type"), Some("application/octet-stream"));
    let (status, forked) = api.post(&format!("/api/sessions/{id}/fork"), &json!({}));
    assert_eq!(status, 201, "{forked}");
    let other = forked["id"].as_str().unwrap();
    assert_eq!(
        api.post(&format!("/api/sessions/{other}/commands"), &prompt("p", "and now?")).0,
        200
    );
    api.until(other, &["done"]);
    assert_eq!(
        api.get(&format!("/api/sessions/{id}"))["seq"],
        view["seq"],
        "the first one stays as it was"
    );
}

/// Holds W1: the port is 5000, or the next that is free.
#[tokio::test(flavor = "multi_thread")]
async fn w1_a_port_that_is_taken_is_passed_over_and_one_that_was_named_is_not() {
    let _ours_or_somebodys = std::net::TcpListener::bind("127.0.0.1:5000");
    let homes = [Home::empty(), Home::empty()];
    let servers =
        homes.each_ref().map(|home| Serve::with(home.command(&["serve", "--json"]))).map(|serve| {
            assert!((5001..=5020).contains(&serve.at.port()), "{}", serve.at);
            serve
        });
    assert_ne!(servers[0].at, servers[1].at);
    let port = servers[1].at.port().to_string();
    let mut named =
        homes[0].command(&["serve", "--port", &port]).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while named.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = named.kill(); // one that serves all the same
    let named = named.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&named.stderr).into_owned();
    assert!(
        named.status.code() == Some(2) && told.contains("Choose another with --port"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn other_machines_come_in_by_the_password_and_are_told_what_it_means() {
    let server = ScriptedServer::start(vec![Say::text("x").into()]).await;
    let home = Home::with(&server);
    // Another address of this very machine stands for another machine's way in.
    let mut command = home.command(&["serve", "--port", "0", "--listen", "127.0.0.2"]);
    let mut child = command
        .env("DUNNOCK_PASSWORD", "a long enough password")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let at: std::net::SocketAddr = line.trim().rsplit("http://").next().unwrap().parse().unwrap();
    assert_eq!(at.ip().to_string(), "127.0.0.2");
    let login = |word: &str| {
        let body = json!({ "password": word }).to_string();
        let head = format!(
            "POST /api/login HTTP/1.1\r\nhost: {at}\r\ncontent-type: \
             application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        dunnock_testkit::web::raw(at, format!("{head}{body}").as_bytes())
    };
    assert_eq!(login("wrong").status, 401);
    let heard = login("a long enough password");
    assert_eq!(heard.status, 200, "{}", heard.body);
    let (cookie, token) = (
        heard.header("set-cookie").unwrap().split(';').next().unwrap().to_owned(),
        heard.json()["token"].as_str().unwrap().to_owned(),
    );
    let get = |host: &str| {
        let words = format!(
            "GET /api/sessions HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\nx-dunnock-token: \
             {token}\r\n\r\n"
        );
        dunnock_testkit::web::raw(at, words.as_bytes()).status
    };
    assert_eq!(get(&at.to_string()), 200);
    assert_eq!(
        get(&format!("other.test:{}", at.port())),
        421,
        "a name is not the address that was connected to"
    );
    for _ in 0..4 {
        login("wrong");
    }
    assert_eq!(login("wrong").status, 401);
    assert_eq!(login("a long enough password").status, 429, "one has to wait");
    assert_eq!(get(&at.to_string()), 200, "who is in stays in");
    let _ = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    let told = crate::told(child.wait_with_output().unwrap());
    assert!(
        told.err.contains("can run commands as you") && told.err.contains("ssh -L"),
        "{}",
        told.err
    );
}
