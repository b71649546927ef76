//! Images that tools read: sent as images on every wire, equal on replay, and left out for models
//! that accept none.

use crate::Home;
use crate::replays::replayed;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Fault, Rules, ScriptedServer, Served};
use dunnock_testkit::speech::Wire;
use serde_json::Value;
use std::sync::Arc;

/// A PNG of 640 x 480 pixels, as far as its header says.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0";
/// The same in base64.
const ENCODED: &str = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAIAAAA=";

/// A model that views an image and a text at once, then ends; its server may refuse images.
async fn scripted(wire: Wire, refusal: Option<(u16, &'static str)>) -> (Home, ScriptedServer) {
    let brain = move |wire: Wire, body: &Value| match refusal {
        Some((status, words)) if body.to_string().contains(ENCODED) => {
            Served::wrong(Say::default(), Fault::Says(status, words.into()))
        }
        _ if wire.answers(body) == 0 => Say::calls(&[
            ("view_file", r#"{"path":"shot.png"}"#),
            ("view_file", r#"{"path":"a.txt"}"#),
        ])
        .into(),
        _ => Say::text("seen").into(),
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    let server = ScriptedServer::with(vec![], rules).await;
    let home = Home::empty();
    home.configure(&format!(
        "model = \"script/scripted\"\n[providers.script]\nwire = \"{}\"\nbase_url = \"{}\"\n",
        wire.name(),
        server.base_url()
    ));
    home.put("a.txt", "alpha\n");
    std::fs::write(home.project().join("shot.png"), PNG).unwrap();
    (home, server)
}

/// Where an image is in a request: the parts of its messages, in order, each by what it is.
fn parts(wire: Wire, body: &Value) -> Vec<String> {
    let messages = if wire == Wire::Responses { &body["input"] } else { &body["messages"] };
    let mut parts = Vec::new();
    for message in messages.as_array().unwrap() {
        let kind = message["type"].as_str().or(message["role"].as_str()).unwrap_or("?");
        match message["content"].as_array() {
            Some(all) => {
                parts.extend(all.iter().map(|part| part["type"].as_str().unwrap_or("?").into()))
            }
            None => parts.push(kind.to_owned()),
        }
        let images = message["images"].as_array().map_or(0, Vec::len);
        parts.extend((0..images).map(|_| "image".to_owned()));
    }
    parts
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_a_tool_reads_is_an_image_on_every_wire_and_equal_on_replay() {
    for wire in Wire::ALL {
        let (home, server) = scripted(*wire, None).await;
        let ran = home.run(&["run", "what is there?"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, "seen\n"), "{}", ran.err);
        std::fs::remove_file(home.project().join("shot.png")).unwrap();
        let ran = home.run(&["resume", "--prompt", "sure?"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, "seen\n"), "{}", ran.err);
        let bodies = server.requests();
        assert_eq!(bodies.len(), 3, "{wire:?}");
        for body in &bodies[1..] {
            let text = body.to_string();
            assert_eq!(text.matches(ENCODED).count(), 1, "{wire:?}: {text}");
            assert!(text.contains("shot.png is an image: PNG, 640 x 480 pixels, 1 KB"), "{text}");
            assert!(text.contains("belong to these calls, in order: 1.0"), "{wire:?}: {text}");
        }
        let parts = parts(*wire, &bodies[1]);
        let (results, image): (&[&str], &str) = match wire {
            Wire::Chat => (&["tool", "tool"], "image_url"),
            Wire::Responses => (&["function_call_output", "function_call_output"], "input_image"),
            Wire::Anthropic => (&["tool_result", "tool_result"], "image"),
            Wire::Ollama => (&["tool", "tool"], "image"),
        };
        let at = parts.iter().position(|part| part == image).unwrap();
        let first = parts.iter().position(|part| part == results[0]).unwrap();
        assert_eq!(parts[first..first + 2], *results, "{wire:?}: {parts:?}");
        assert!(at >= first + 2, "nothing comes between two results, {wire:?}: {parts:?}");
        let (ran, json) = replayed(&home, &home.newest().await, &["--log"]).await;
        assert_eq!(ran.code, 0, "{wire:?}: {json}");
    }
}

/// Without this, every later request of the session would fail.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_accepts_no_images_is_told_and_the_work_goes_on() {
    let refusals = [
        (400, r#"{"error":{"message":"unknown variant `image_url`, expected `text`"}}"#),
        (404, r#"{"error":{"message":"No endpoints found that support image input"}}"#),
        (500, r#"{"error":{"message":"image input is not supported - provide the mmproj"}}"#),
    ];
    for (status, words) in refusals {
        let (home, server) = scripted(Wire::Chat, Some((status, words))).await;
        let ran = home.run(&["run", "what is there?"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, "seen\n"), "{status}: {}", ran.err);
        assert!(ran.err.contains("refused the images; continuing without"), "{}", ran.err);
        let bodies = server.requests();
        assert_eq!(bodies.len(), 3, "{status}: one request was refused");
        assert!(
            bodies[2].to_string().contains("refused the images of this conversation"),
            "{}",
            bodies[2]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_no_server_accepts_is_not_sent() {
    let (home, server) = scripted(Wire::Chat, None).await;
    let mut wide = PNG.to_vec();
    wide[16..20].copy_from_slice(&9_000_u32.to_be_bytes());
    std::fs::write(home.project().join("shot.png"), wide).unwrap();
    let ran = home.run(&["run", "what is there?"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = server.requests()[1].to_string();
    assert!(text.contains("too large to be shown: PNG, 9000 x 480 pixels"), "{text}");
    assert!(!text.contains("image_url"), "{text}");
}
