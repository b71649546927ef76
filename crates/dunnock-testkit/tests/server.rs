//! The scripted server, met with plain sockets: what it serves is what later tests rely on.

use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, ScriptedServer, Served};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn post(server: &ScriptedServer, body: &str) -> TcpStream {
    let host = server.base_url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let mut stream = TcpStream::connect(&host).await.unwrap();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nconnection: \
         close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn all(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ =
        tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut bytes)).await.unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

const FIRST: &str = r#"{"model":"scripted","messages":[{"role":"user","content":"hi"}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn it_streams_words_and_calls_in_the_place_of_the_script() {
    let script =
        vec![Say::text("one two").into(), Say::calls(&[("shell", r#"{"command":"ls"}"#)]).into()];
    let server = ScriptedServer::start(script).await;
    let text = all(post(&server, FIRST).await).await;
    assert!(
        text.starts_with("HTTP/1.1 200")
            && text.contains(r#""content":"one ""#)
            && text.contains("[DONE]"),
        "{text}"
    );
    let second =
        r#"{"model":"scripted","messages":[{"role":"user"},{"role":"assistant"},{"role":"tool"}]}"#;
    let text = all(post(&server, second).await).await;
    assert!(text.contains(r#""name":"shell""#) && text.contains("tool_calls"), "{text}");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_breaks_as_it_is_told() {
    let broken = |fault| Served::wrong(Say::text("one two three"), fault);
    for (fault, has, lacks) in [
        (Fault::Status(429, Some(7)), "retry-after: 7", "one"),
        (Fault::CutAfter(2), "two", "three"),
        (Fault::EndAfter(1), "one", "[DONE]"),
        (Fault::OneByteChunks, "[DONE]", "nothing"),
        (Fault::Garbage, "data: {\"choices\": [{\n", "nothing"),
    ] {
        let server = ScriptedServer::start(vec![broken(fault.clone())]).await;
        let text = all(post(&server, FIRST).await).await;
        let plain: String = if fault == Fault::OneByteChunks {
            text.replace("\r\n1\r\n", "").replace("1\r\n", "")
        } else {
            text
        };
        let plain = plain.replace("\r\n", "");
        assert!(plain.contains(has) || plain.contains("[DONE"), "{fault:?}: {plain}");
        assert!(!plain.contains(lacks), "{fault:?}: {plain}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_holds_each_piece() {
    let served = Served::from(Say::text("one two")).gated();
    let server = ScriptedServer::start(vec![served]).await;
    let mut stream = post(&server, FIRST).await;
    server.open_gate(1);
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("one ") {
        let n = stream.read(&mut buffer).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
    let held = tokio::time::timeout(Duration::from_millis(100), stream.read(&mut buffer)).await;
    assert!(held.is_err(), "the second piece came through a closed gate");
    server.open_gate(10);
    let rest = all(stream).await;
    assert!(rest.contains("two") && rest.contains("[DONE]"), "{rest}");
}
