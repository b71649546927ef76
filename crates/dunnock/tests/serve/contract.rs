//! The OpenAPI document: fresh, and true of the server as a tool that knows nothing else finds out.

use super::Serve;
use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Rules, ScriptedServer, Served};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;

#[test]
fn the_openapi_document_is_fresh() {
    dunnock_testkit::fixture::check("docs/reference/openapi.json", &dunnock::openapi());
    let document: Value = serde_json::from_str(&dunnock::openapi()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    for path in [
        "/api/sessions",
        "/api/sessions/{id}",
        "/api/sessions/{id}/commands",
        "/api/sessions/{id}/live",
        "/api/agent",
        "/api/openapi.json",
    ] {
        assert!(paths.contains_key(path), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_finds_no_server_error_and_no_breach_of_contract() {
    let brain =
        |_: dunnock_testkit::speech::Wire, _: &Value| -> Served { Say::text("Done.").into() };
    let server = ScriptedServer::with(
        Vec::new(),
        Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() },
    )
    .await;
    let home = Home::with(&server);
    home.put("a.txt", "x\n");
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({ "prompt": "go" }));
    api.until(&id, &["done"]);
    let program = std::env::var("SCHEMATHESIS").unwrap_or_else(|_| "schemathesis".into());
    let most = std::env::var("DUNNOCK_EXAMPLES").unwrap_or_else(|_| "12".into());
    let url = format!("http://{}", serve.at);
    // Who it is, a session that is there, and no waiting for events that never come.
    let config = format!(
        "[auth.openapi]\nbearer = {{ bearer = \"{}\" }}\n[parameters]\nid = \"{id}\"\nwait = 0\n",
        serve.token
    );
    let file = home.dir.path().join("schemathesis.toml");
    std::fs::write(&file, config).unwrap();
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");
    let mut command = Command::new(&program);
    command.args(["--config-file", file.to_str().unwrap(), "run", document, "--url", &url]);
    command.args([
        "--seed",
        "1",
        "--max-examples",
        &most,
        "--checks",
        "all",
        "--phases",
        "examples,coverage,fuzzing",
    ]);
    // A channel is no request.
    command.args(["--exclude-path", "/api/sessions/{id}/live", "--exclude-path", "/api/feed"]);
    command.args(["--suppress-health-check", "all", "--no-color"]);
    command.args(["--continue-on-failure", "--request-timeout", "20"]).current_dir(home.dir.path());
    let ran = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
    let ran = ran.unwrap_or_else(|e| {
        unreachable!("{program}: {e}; pip install schemathesis, or name it in SCHEMATHESIS")
    });
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let tail: Vec<&str> = said.lines().rev().take(40).collect();
    tail.into_iter().rev().for_each(|line| println!("{line}"));
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    // It is still there, and well.
    assert_eq!(api.get(&format!("/api/sessions/{id}"))["id"], json!(id));
}
