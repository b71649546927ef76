//! The clients of the documentation, run as they stand there.

use super::Serve;
use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};
use serde_json::json;
use std::path::{Path, PathBuf};

fn docs(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clients")).join(name)
}

async fn world() -> (ScriptedServer, Home, Serve) {
    let script: Vec<Served> = vec![
        Say::calls(&[("shell", &json!({ "command": "cat .env" }).to_string())]).into(),
        Say::text("There is one setting.").into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    home.put(".env", "A=1\n");
    let serve = Serve::start(&home);
    (server, home, serve)
}

async fn run(home: &Home, serve: &Serve, program: &str, args: &[&str]) -> crate::Ran {
    let mut command = home.command_of(program.as_ref(), args);
    command
        .env("DUNNOCK_URL", format!("http://{}", serve.at))
        .env("DUNNOCK_TOKEN_FILE", &serve.token_file);
    crate::ran(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_of_the_docs_follows_and_answers_a_session() {
    let (_server, home, serve) = world().await;
    let ran = run(
        &home,
        &serve,
        "python3",
        &[docs("dunnock_client.py").to_str().unwrap(), "what is set?"],
    )
    .await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("There is one setting."), "{}", ran.out);
    assert!(ran.err.contains("cat .env") && ran.err.contains("done"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_curl_client_of_the_docs_follows_and_answers_a_session() {
    let (_server, home, serve) = world().await;
    let ran =
        run(&home, &serve, "bash", &[docs("session.sh").to_str().unwrap(), "what is set?"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("There is one setting."), "{}", ran.out);
    assert!(ran.err.contains("cat .env"), "{}", ran.err);
}
