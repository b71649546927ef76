//! The exact bytes that go out, and that each request begins with the one before.

use crate::{Asked, ask, ask_with, client, config, prompt, provider};
use dunnock_ports::{CancellationToken, Model as _};
use dunnock_proto::*;
use dunnock_testkit::fixture;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, ScriptedServer, Served};
use std::sync::Arc;

fn finished(call: CallId, shown: &str) -> Event {
    Finished::plain(call, Outcome::Done, shown).into()
}

/// The text between `"messages":[` and its closing bracket.
fn messages(body: &[u8]) -> (&str, &str) {
    let text = std::str::from_utf8(body).unwrap();
    let (before, messages) = text.split_once(r#","messages":["#).unwrap();
    (before, messages.strip_suffix("]}").unwrap())
}

/// Holds W9: the embedded template as it is sent (fixture).
/// Holds W11: system, shell, root and git stand in the preamble (fixture).
/// Holds A6: the prompt tells the model so (fixture); nothing more can be checked without a model.
#[tokio::test(flavor = "multi_thread")]
async fn each_request_begins_with_the_bytes_of_the_one_before() {
    let say = Say {
        reasoning: "hm ".into(),
        text: "I look \"there\"".into(),
        ..Say::calls(&[("shell", r#"{"command": "ls"}"#), ("shell", "{broken")])
    };
    let script = vec![say.into(), Say::text("done").into(), Say::text("again").into()];
    let server = ScriptedServer::start(script).await;
    let client = client(provider(&server.base_url(), None));
    let mut events = vec![prompt("hi\n\u{1F426}")];
    for step in 1..=3 {
        let Asked { answer, .. } = ask_with(&client, &events, CancellationToken::default()).await;
        let answer = answer.unwrap();
        let calls = answer.parts.iter().filter(|p| matches!(p, Part::Call(_))).count() as u16;
        let (now, upto) = (Step(step), events.len() as u64);
        events.push(
            StepStarted { step: now, upto, preamble: Hash::ZERO, reserved: Reserved::default() }
                .into(),
        );
        events.push(answer.into());
        events.extend(
            (0..calls).map(|index| finished(CallId { step: Step(step), index }, "a.txt\n")),
        );
        events.push(Noticed::plain("something changed").into());
        events.push(prompt("go on"));
    }
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 3);
    for pair in bodies.windows(2) {
        let (first, second) = (messages(&pair[0]), messages(&pair[1]));
        assert_eq!(first.0, second.0, "model, options and tools are the same bytes");
        assert!(
            second.1.starts_with(first.1),
            "{}\nis not the beginning of\n{}",
            first.1,
            second.1
        );
        assert!(second.1.len() > first.1.len());
    }
    let text = bodies
        .iter()
        .map(|b| String::from_utf8_lossy(b).into_owned())
        .collect::<Vec<_>>()
        .join("\n\n");
    fixture::check("fixtures/wire/chat-requests.txt", &(text + "\n"));
}

/// Holds T1: reasoning and text are separate as they stream, in order.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_read_whole_with_its_usage_and_shown_as_it_comes() {
    let say = Say { reasoning: "think a bit ".into(), ..Say::text("one two three") }.using(12, 3);
    let server = ScriptedServer::start(vec![say.into()]).await;
    let Asked { answer, live } = ask(&server).await;
    let answer = answer.unwrap();
    let reasoning = Part::Reasoning { text: "think a bit ".into(), opaque: None };
    assert_eq!(answer.parts, [reasoning, Part::Text { text: "one two three".into() }]);
    assert_eq!((answer.stop, answer.usage.input, answer.usage.output), (Stop::End, 12, 3));
    assert_eq!(
        (answer.model.as_str(), answer.wire.as_str(), answer.attempts.len()),
        ("script/scripted", "chat", 1)
    );
    let said: String = live
        .iter()
        .filter_map(|d| match d {
            Delta::Text { text, offset, .. } => Some((*offset, text.clone())),
            _ => None,
        })
        .fold(String::new(), |sum, (offset, text)| {
            assert_eq!(offset as usize, sum.len());
            sum + &text
        });
    assert_eq!(said, "one two three");
    assert!(live.iter().any(|d| matches!(d, Delta::Reasoning { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_keep_their_exact_arguments() {
    let say = Say::calls(&[("shell", "{ \"command\" : \"a\\u00e9\" }"), ("view", "{}")]);
    for fault in [Fault::None, Fault::OneByteChunks, Fault::Plain] {
        let server = ScriptedServer::start(vec![Served::wrong(say.clone(), fault.clone())]).await;
        let answer = ask(&server).await.answer.unwrap();
        let calls: Vec<(&str, &str)> = answer
            .parts
            .iter()
            .filter_map(|p| match p {
                Part::Call(call) => Some((call.tool.as_str(), call.args.as_ref())),
                Part::Text { .. } | Part::Reasoning { .. } => None,
            })
            .collect();
        assert_eq!(
            calls,
            [("shell", "{ \"command\" : \"a\\u00e9\" }"), ("view", "{}")],
            "{fault:?}"
        );
        assert_eq!(answer.stop, Stop::Calls);
    }
}

/// Holds W11: the preamble does not change.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_is_the_same_bytes_every_time_and_takes_instructions_as_text() {
    let client = client(provider("http://127.0.0.1:1/v1", None));
    let (first, blob) =
        client.render_preamble(&config(), "/w", &dunnock_ports::HostInfo::default()).await.unwrap();
    let (second, _) =
        client.render_preamble(&config(), "/w", &dunnock_ports::HostInfo::default()).await.unwrap();
    assert_eq!(first, second);
    let text = String::from_utf8_lossy(&blob.bytes);
    assert!(text.contains("be {{ kind }}"), "a folder's text is not a template of ours");
    assert!(text.contains("/w (a git repository)"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_there_is_named_before_anything_is_sent() {
    let client = client(provider("http://127.0.0.1:1/v1", None));
    let refuse = async |model: &str| {
        let config = Config { model: model.into(), ..Config::default() };
        client
            .render_preamble(&config, "/w", &dunnock_ports::HostInfo::default())
            .await
            .unwrap_err()
    };
    assert!(
        refuse("other/x").await.0.contains("there is no provider \"other\"; use one of script")
    );
    assert!(refuse("plain").await.0.contains("use provider/model"));
    assert!(refuse("script/").await.0.contains("names no model"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_is_asked_of_the_same_model_without_tools() {
    let server = ScriptedServer::start(vec![Say::text("it went well").into()]).await;
    let client = client(provider(&server.base_url(), None));
    let (preamble, blob) =
        client.render_preamble(&config(), "/w", &dunnock_ports::HostInfo::default()).await.unwrap();
    let request = crate::request(preamble.hash, &[prompt("hi")]);
    let summary =
        client.summarise(blob.bytes, request, CancellationToken::default()).await.text.unwrap();
    assert_eq!(summary, Arc::from("it went well"));
    let body = &server.requests()[0];
    assert!(body.get("tools").is_none());
    assert_eq!(body["messages"][1]["content"], "PERSON: hi");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_of_the_first_release_is_asked_as_it_was() {
    use dunnock_ports::ModelRequest;
    let server = ScriptedServer::start(vec![]).await;
    let client = client(provider(&server.base_url(), None));
    let preamble = r#"{"v":1,"model":"script/scripted","system":"Be good.","tools":[{"type":"function","function":{"name":"shell","description":"Runs.","parameters":{"type":"object"}}}]}"#;
    let request = crate::request(Hash::of(preamble.as_bytes()), &[prompt("hi")]);
    let asking = ModelRequest {
        session: SessionId::from_random([0; 16]),
        preamble: preamble.as_bytes().into(),
        request,
        pictures: std::collections::BTreeMap::new(),
        patient: false,
        time_left: None,
    };
    client.ask(asking, Arc::new(|_| {}), CancellationToken::default()).await.unwrap();
    let sent = String::from_utf8(server.bodies()[0].to_vec()).unwrap();
    assert_eq!(
        sent,
        r#"{"model":"scripted","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"shell","description":"Runs.","parameters":{"type":"object"}}}],"messages":[{"role":"system","content":"Be good."},{"role":"user","content":"hi"}]}"#
    );
    let later = ModelRequest {
        session: SessionId::from_random([0; 16]),
        preamble: br#"{"v":3,"model":"script/x","system":"","tools":[]}"#[..].into(),
        request: crate::request(Hash::ZERO, &[prompt("hi")]),
        pictures: std::collections::BTreeMap::new(),
        patient: false,
        time_left: None,
    };
    let failed =
        client.ask(later, Arc::new(|_| {}), CancellationToken::default()).await.unwrap_err();
    assert!(failed.error.contains("a later release wrote it"), "{}", failed.error);
}
