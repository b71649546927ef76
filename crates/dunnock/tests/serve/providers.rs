//! Setting up a model over HTTP: what is listed, tried and saved, and what is not.

use super::Serve;
use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Rules, ScriptedServer, Served};
use serde_json::{Value, json};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

const SAVED: &str = "canary-7d1c55e2b0aa";

async fn server(script: Vec<Served>) -> (ScriptedServer, Home) {
    let rules = Rules { key: Some(SAVED.into()), ..Rules::default() };
    let server = ScriptedServer::with(script, rules).await;
    let home = Home::empty();
    home.configure(&format!(
        "[providers.script]\nbase_url = \"{}\"\napi_key_env = \"LOGIN_KEY\"\n",
        server.base_url()
    ));
    (server, home)
}

fn keys(home: &Home) -> std::path::PathBuf {
    home.dir.path().join(".config/dunnock/keys/keys.toml")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_set_up_and_used_at_once() {
    let (_server, home) = server(vec![]).await;
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let post = |api: &mut dunnock_testkit::web::Api, path: &str, body: &Value| {
        let heard = api.ask("POST", path, Some(body)).unwrap();
        assert!(!heard.body.contains(SAVED), "{}", heard.body);
        (heard.status, heard.json())
    };
    let start = api.get("/api/defaults");
    assert_eq!(start["model"], Value::Null);
    assert!(start["missing"][0].as_str().unwrap().contains("dunnock login"), "{start}");
    let listed = api.get("/api/providers");
    assert_eq!(listed["accepts_keys"], true);
    let script = listed["providers"].as_array().unwrap().iter().find(|p| p["name"] == "script");
    assert_eq!(script.unwrap()["key"], "missing");

    let models = "/api/providers/models";
    for (key, why) in [("wrong-key-1", "refused the key (401)"), ("two words", "blanks")] {
        let (status, said) = post(&mut api, models, &json!({"provider": "script", "key": key}));
        assert_eq!((status, &said["error"]["needs_key"]), (200, &json!(true)), "{said}");
        assert!(said["error"]["error"].as_str().unwrap().contains(why), "{said}");
    }
    let (status, said) = post(&mut api, models, &json!({"provider": "nobody", "key": SAVED}));
    assert_eq!((status, &said["error"]["needs_key"]), (200, &json!(false)), "{said}");
    let (_, said) = post(&mut api, models, &json!({"provider": "script", "key": SAVED}));
    assert_eq!(said, json!({"models": ["scripted"], "error": null}));
    assert!(!keys(&home).exists(), "a check saves nothing");

    let wrong = json!({"provider": "script", "key": SAVED, "model": "none"});
    let (_, said) = post(&mut api, "/api/providers/use", &wrong);
    assert!(said["model"].is_null() && said["error"]["needs_key"] == false, "{said}");
    assert!(!keys(&home).exists(), "a model that does not answer saves nothing");

    let right = json!({"provider": "script", "key": SAVED, "model": "scripted"});
    let (_, said) = post(&mut api, "/api/providers/use", &right);
    assert_eq!(said, json!({"model": "script/scripted", "error": null}));
    assert_eq!(keys(&home).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(api.get("/api/defaults")["model"], "script/scripted");
    let (status, made) = post(&mut api, "/api/sessions", &json!({"prompt": "hello"}));
    assert_eq!(status, 201, "{made}");
    let id = made["id"].as_str().unwrap().to_owned();
    let mut from = 0;
    loop {
        let view = api.get(&format!("/api/sessions/{id}?from={from}&wait=20"));
        let events = view["events"].as_array().unwrap();
        from = events.last().map_or(from, |event| event["seq"].as_u64().unwrap() + 1);
        if events.iter().any(|event| event["kind"] == "ended") {
            assert_eq!(view["state"], "done", "{view}");
            break;
        }
    }
}

/// Whether a connection to this port of loopback is open.
fn is_connected_to(port: u16) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let to = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[2].ends_with(&to) && fields[3] == "01"
    })
}

/// The page was closed, or somebody pressed Cancel, while the model was tried.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_up_that_was_left_saves_nothing() {
    let (server, home) = server(vec![Served::from(Say::text("ready")).gated()]).await;
    let serve = Serve::start(&home);
    let body = json!({"provider": "script", "key": SAVED, "model": "scripted"}).to_string();
    let mut line = std::net::TcpStream::connect(serve.at).unwrap();
    let request = format!(
        "POST /api/providers/use HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer \
         {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        serve.at,
        serve.token,
        body.len()
    );
    line.write_all(request.as_bytes()).unwrap();
    server.wait_for(1).await;
    drop(line);
    // The server gives its request to the model up.
    let port: u16 = server.root().rsplit(':').next().unwrap().parse().unwrap();
    let began = std::time::Instant::now();
    while is_connected_to(port) {
        assert!(
            began.elapsed() < std::time::Duration::from_secs(60),
            "it still tries the model for nobody"
        );
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    server.open_gate(1_000);
    assert_eq!(serve.api().get("/api/defaults")["model"], Value::Null);
    assert_eq!(serve.end(), 0);
    assert!(!keys(&home).exists(), "the key of a set-up that was left was saved");
}
