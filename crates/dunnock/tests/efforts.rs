//! Reasoning effort through the program: settings, flags, what is shown and what is recorded.

use crate::Home;
use crate::window::Window;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Fault, Rules, ScriptedServer, Served};
use dunnock_testkit::speech::Wire;
use serde_json::Value;
use std::sync::Arc;

/// A gateway that has a model of each kind: one with efforts, and one that Dunnock does not know.
async fn gateway(refuses: bool) -> (Home, ScriptedServer) {
    let brain = move |_: Wire, body: &Value| {
        if refuses && body.get("reasoning_effort").is_some() {
            let error = r#"{"error":{"message":"Unrecognized argument: reasoning_effort"}}"#;
            return Served::wrong(Say::default(), Fault::Says(400, error.into()));
        }
        Say::text("done").into()
    };
    let models = ["gpt-5.1", "scripted"].map(String::from).to_vec();
    let rules = Rules { models, brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    let server = ScriptedServer::with(vec![], rules).await;
    let home = Home::empty();
    home.configure(&format!(
        "model = \"gateway/gpt-5.1\"\n[providers.gateway]\nbase_url = \"{}\"\n",
        server.base_url()
    ));
    (home, server)
}

/// The effort of each request.
fn sent(server: &ScriptedServer) -> Vec<String> {
    let effort = |body: &Value| body["reasoning_effort"].as_str().unwrap_or("-").to_owned();
    server.requests().iter().map(effort).collect()
}

async fn events(home: &Home, kind: &str) -> Vec<Value> {
    let shown = home.run(&["sessions", "show", "--json"]).await;
    let all = shown.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|event| event["kind"] == kind).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effort_is_chosen_by_default_setting_or_flag_and_changed_like_a_model() {
    let (home, server) = gateway(false).await;
    let ran = home.run(&["run", "--json", "go"]).await;
    let first: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["type"], &first["effort"]), (&"session".into(), &"high".into()), "{first}");
    let preamble = &events(&home, "preamble_set").await[0]["body"]["preamble"];
    assert_eq!(preamble["effort"]["sent"], "high", "{preamble}");
    // It stays until somebody changes it.
    home.run(&["resume", "--prompt", "go on"]).await;
    let changed = home.run(&["resume", "--effort", "low", "--prompt", "go on"]).await;
    assert_eq!(changed.out, "done\n");
    assert!(changed.err.contains("new instructions: the effort is now low"), "{}", changed.err);
    let set = &events(&home, "configured").await[0]["body"]["set"];
    assert_eq!(set["effort"], "low", "{set}");
    let preambles = events(&home, "preamble_set").await;
    let last = &preambles.last().unwrap()["body"]["preamble"];
    assert_eq!((preambles.len(), &last["reason"]), (2, &"the effort is now low".into()));
    home.set("effort = \"medium\"\n");
    home.run(&["resume", "--prompt", "a session keeps its own"]).await;
    home.run(&["run", "a new one"]).await;
    assert_eq!(sent(&server), ["high", "high", "low", "low", "medium"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effort_that_a_model_does_not_know_becomes_the_nearest_and_is_said() {
    let (home, server) = gateway(false).await;
    let ran = home.run(&["run", "--effort", "max", "go"]).await;
    assert!(
        ran.err.contains("gateway/gpt-5.1 has no effort max; high is used instead"),
        "{}",
        ran.err
    );
    let ran = home.run(&["run", "--model", "gateway/scripted", "--effort", "max", "go"]).await;
    assert!(ran.err.contains("Dunnock knows no efforts of gateway/scripted"), "{}", ran.err);
    let ran = home.run(&["run", "--effort", "much", "go"]).await;
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("none, low, medium, high, xhigh, max"), "{}", ran.err);
    // Without a choice there is nothing to say.
    let ran = home.run(&["run", "--model", "gateway/scripted", "go"]).await;
    assert!(!ran.err.contains("effort"), "{}", ran.err);
    assert_eq!(sent(&server), ["high", "-", "-"]);
}

/// The attack: a repository makes its reader pay more, or makes the model think less.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_does_not_choose_the_effort() {
    let (home, server) = gateway(false).await;
    home.put(".dunnock/config.toml", "effort = \"none\"\n");
    let ran = home.run(&["run", "go"]).await;
    assert!(ran.err.contains("effort"), "{}", ran.err);
    home.run(&["run", "--trust", "go"]).await;
    assert_eq!(sent(&server), ["high", "none"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_effort_is_said_once_and_left_out_from_then_on() {
    let (home, server) = gateway(true).await;
    let ran = home.run(&["run", "go"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"));
    assert!(ran.err.contains("does not accept an effort; continuing without"), "{}", ran.err);
    let ran = home.run(&["resume", "--prompt", "go on"]).await;
    assert!(!ran.err.contains("effort"), "{}", ran.err);
    assert_eq!(sent(&server), ["high", "-", "-"]);
    let refused: Vec<bool> = events(&home, "answered")
        .await
        .iter()
        .map(|event| event["body"]["effort_refused"] == true)
        .collect();
    assert_eq!(refused, [true, false]);
    let replayed = home.run(&["sessions", "replay"]).await;
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
}

/// It said "Set effort to low", and sent nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_effort_is_not_set_for_a_model_that_refused_it() {
    let (home, server) = gateway(true).await;
    let window = Window::open(&home, "");
    window.type_in("go");
    window.key("Enter");
    window.wait_for("done");
    server.wait_for(2).await;
    window.type_in("/effort low");
    window.key("Enter");
    window.wait_for("refused an effort in this session");
    assert!(events(&home, "configured").await.is_empty());
}
