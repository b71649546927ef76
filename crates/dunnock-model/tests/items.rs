//! Answers of the Responses API go back as they came: the streams in `fixtures/wire/responses`,
//! each with its source.

use crate::{Asked, ask_with, client, ours, prompt, provider};
use dunnock_model::{ModelClient, Provider};
use dunnock_ports::{CancellationToken, Model as _, ModelRequest};
use dunnock_proto::*;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Fault, Rules, ScriptedServer, Served};
use dunnock_testkit::speech::Wire;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

fn streams() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire/responses");
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    let read = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    all.iter().map(read).collect()
}

#[derive(serde::Deserialize)]
struct Event<'a> {
    r#type: &'a str,
    output_index: Option<u64>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
}

#[derive(serde::Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    output: Vec<&'a RawValue>,
}

/// The items of a stream, in the server's order, cut out of its bytes.
fn items(stream: &str) -> Vec<&str> {
    let events: Vec<Event<'_>> = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let mut done: Vec<(u64, &str)> = events
        .iter()
        .filter(|event| event.r#type == "response.output_item.done")
        .map(|event| (event.output_index.unwrap_or(0), event.item.unwrap().get()))
        .collect();
    done.sort_by_key(|(index, _)| *index);
    if done.is_empty() {
        let last = events.last().unwrap().response.as_ref().unwrap();
        return last.output.iter().map(|item| item.get()).collect();
    }
    done.into_iter().map(|(_, item)| item).collect()
}

fn responses(server: &ScriptedServer) -> ModelClient {
    let mut one = Provider { wire: ours(Wire::Responses), ..provider(&server.base_url(), None) };
    one.quirks.sealed = true;
    client(one)
}

fn served(stream: &str) -> Served {
    Served::wrong(Say::default(), Fault::Raw(stream.as_bytes().to_vec()))
}

/// The conversation after an answer whose calls gave "ok".
fn after(mut events: Vec<dunnock_proto::Event>, answer: Answered) -> Vec<dunnock_proto::Event> {
    let calls = Part::calls(&answer.parts).count() as u16;
    let (step, upto) = (answer.step, events.len() as u64);
    let reserved = Reserved::default();
    events.push(StepStarted { step, upto, preamble: Hash::ZERO, reserved }.into());
    events.push(answer.into());
    let finished = |index| Finished::plain(CallId { step, index }, Outcome::Done, "ok").into();
    events.extend((0..calls).map(finished));
    events.push(prompt("go on"));
    events
}

/// The items of a request.
fn input(body: &[u8]) -> &str {
    let body = std::str::from_utf8(body).unwrap();
    body.split_once(r#","input":["#).unwrap().1.strip_suffix("]}").unwrap()
}

fn user(text: &str) -> String {
    let content = format!(r#"[{{"type":"input_text","text":"{text}"}}]"#);
    format!(r#"{{"type":"message","role":"user","content":{content}}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_goes_back_byte_for_byte() {
    let streams = streams();
    for (name, stream) in &streams {
        assert!(stream.starts_with(": "), "{name} names no source");
        assert!(stream.contains("\n: source: ") && stream.contains("\n: read: 2026-"), "{name}");
        let server = ScriptedServer::start(vec![served(stream), Say::text("bye").into()]).await;
        let client = responses(&server);
        let events = vec![prompt("hi")];
        let Asked { answer, .. } = ask_with(&client, &events, CancellationToken::default()).await;
        let answer = answer.unwrap_or_else(|failed| panic!("{name}: {failed:?}"));
        let items = items(stream);
        let parsed: Vec<Value> =
            items.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
        let words: String = parsed
            .iter()
            .filter(|item| item["type"] == "message")
            .flat_map(|item| item["content"].as_array().unwrap())
            .filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()))
            .collect();
        assert_eq!(Part::words(&answer.parts), words, "{name}: all of the text");
        // A reference to something that the server did not store would be an error.
        let goes_back = |item: &Value| {
            item["type"] != "reasoning"
                || item["encrypted_content"].is_string()
                || item["content"].is_array()
        };
        let mut expected = vec![user("hi")];
        if parsed.iter().all(goes_back) {
            expected.extend(items.iter().map(|raw| (*raw).to_owned()));
        } else {
            // The ids of the others would refer to it.
            let text = format!(r#"[{{"type":"output_text","text":"{words}"}}]"#);
            let message = r#"{"type":"message","role":"assistant","content":"#;
            expected.push(format!("{message}{text}}}"));
        }
        expected.extend(parsed.iter().filter_map(|item| {
            let calls = ["function_call", "custom_tool_call"];
            let kind = item["type"].as_str().filter(|kind| calls.contains(kind))?;
            let id = &item["call_id"];
            Some(format!(r#"{{"type":"{kind}_output","call_id":{id},"output":"ok"}}"#))
        }));
        expected.push(user("go on"));
        let events = after(events, answer);
        ask_with(&client, &events, CancellationToken::default()).await.answer.unwrap();
        let bodies = server.bodies();
        assert_eq!(input(&bodies[1]), expected.join(","), "{name}");
    }
    println!("{} streams went back as they came", streams.len());
    assert!(streams.len() >= 20);
}

/// The parts of an answer in the log show what was said; what goes back is stored beside them once.
#[tokio::test(flavor = "multi_thread")]
async fn items_are_stored_with_the_answer_and_only_for_their_maker() {
    let (_, stream) = streams().into_iter().find(|(name, _)| name.starts_with("08")).unwrap();
    let server = ScriptedServer::start(vec![served(&stream)]).await;
    let asked = ask_with(&responses(&server), &[prompt("hi")], CancellationToken::default()).await;
    let answer = asked.answer.unwrap();
    assert_eq!(answer.items.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), items(&stream));
    assert!(
        answer.parts.iter().all(|part| !matches!(part, Part::Reasoning { opaque: Some(_), .. })),
        "encrypted reasoning is stored twice"
    );
    // Another model gets what was said, and nothing that is the first one's own.
    let events = after(vec![prompt("hi")], Answered { model: "other/model".into(), ..answer });
    let server = ScriptedServer::start(vec![]).await;
    ask_with(&responses(&server), &events, CancellationToken::default()).await.answer.unwrap();
    let body = String::from_utf8(server.bodies()[0].to_vec()).unwrap();
    for own in ["gAAA", "rs_08", "msg_08", "fc_08", "commentary"] {
        assert!(!body.contains(own), "{own} in {body}");
    }
    assert!(body.contains("Now this."), "{body}");
}

/// A patch that came as plain text runs as our tool, and another model gets it as JSON.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_without_json_is_a_call_of_ours() {
    let server = ScriptedServer::start(vec![served(&stream("23"))]).await;
    let asked = ask_with(&responses(&server), &[prompt("hi")], CancellationToken::default()).await;
    let answer = asked.answer.unwrap();
    let call = Part::calls(&answer.parts).next().unwrap();
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch";
    assert_eq!(call.tool, "apply_patch");
    assert_eq!(serde_json::from_str::<Value>(&call.args).unwrap()["patch"], patch);
    let sent = call.sent.as_ref().unwrap();
    assert_eq!((sent.args.as_ref(), sent.freeform), (patch, true));
    let events = after(vec![prompt("hi")], Answered { model: "other/model".into(), ..answer });
    let server = ScriptedServer::start(vec![]).await;
    ask_with(&responses(&server), &events, CancellationToken::default()).await.answer.unwrap();
    let body = String::from_utf8(server.bodies()[0].to_vec()).unwrap();
    assert!(body.contains(r#""type":"function_call","call_id""#), "{body}");
    assert!(
        body.contains(r#""type":"function_call_output""#) && !body.contains("custom"),
        "{body}"
    );
}

/// A call under another harness's name goes back under that name, and its result belongs to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_translated_call_goes_back_as_it_came() {
    for &wire in Wire::ALL {
        let args = r#"{"command":"ls","timeout":120000,"description":"Look"}"#;
        let say = Say::calls(&[("Bash", args)]);
        let server = ScriptedServer::start(vec![say.into(), Say::text("bye").into()]).await;
        let one = Provider { wire: ours(wire), ..provider(&server.base_url(), None) };
        let client = client(one);
        let events = vec![prompt("hi")];
        let answer = ask_with(&client, &events, CancellationToken::default()).await.answer.unwrap();
        let call = Part::calls(&answer.parts).next().unwrap();
        assert_eq!((call.tool.as_str(), call.sent_form().0), ("shell", "Bash"), "{wire:?}");
        let ran: Value = serde_json::from_str(&call.args).unwrap();
        assert_eq!(ran, serde_json::json!({ "command": "ls", "timeout": 120 }), "{wire:?}");
        let events = after(events, answer);
        ask_with(&client, &events, CancellationToken::default()).await.answer.unwrap();
        let body = String::from_utf8(server.bodies()[1].to_vec()).unwrap();
        assert!(body.contains("Bash") && body.contains("120000"), "{wire:?} {body}");
    }
}

fn stream(number: &str) -> String {
    streams().into_iter().find(|(name, _)| name.starts_with(number)).unwrap().1
}

fn refusal(status: u16, message: &str) -> Served {
    let error = serde_json::json!({"error": {"message": message}}).to_string();
    Served::wrong(Say::default(), Fault::Says(status, error))
}

/// A server that gives these answers in turn, and then "bye".
async fn in_turn(answers: Vec<Served>) -> ScriptedServer {
    let left = Mutex::new(VecDeque::from(answers));
    let next = move |_: Wire, _: &Value| {
        left.lock().unwrap().pop_front().unwrap_or_else(|| Say::text("bye").into())
    };
    let rules = Rules { brain: Some(Brain(Arc::new(next))), ..Rules::default() };
    ScriptedServer::with(vec![], rules).await
}

/// A message that keeps its id without its reasoning is refused.
#[tokio::test(flavor = "multi_thread")]
async fn without_its_reasoning_an_answer_has_no_ids() {
    let no = || refusal(400, "Encrypted content is not supported with this model.");
    let server = in_turn(vec![served(&stream("04")), no(), no()]).await;
    let client = responses(&server);
    let events = vec![prompt("hi")];
    let asked = ask_with(&client, &events, CancellationToken::default()).await;
    let events = after(events, asked.answer.unwrap());
    ask_with(&client, &events, CancellationToken::default()).await.answer.unwrap();
    let bodies = server.bodies();
    let (before, last) = (input(&bodies[2]), input(&bodies[3]));
    assert!(before.contains(r#""id":"fc_04"#) && before.contains("gAAA"), "{before}");
    assert!(!last.contains(r#""id":"#) && !last.contains("gAAA"), "{last}");
    assert!(last.contains(r#"{"type":"function_call","call_id":"call_04"#), "{last}");
}

/// Otherwise each later request would be refused in the same way.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_after_a_refused_item() {
    for (status, words) in [
        (400, "Unknown parameter: 'input[3].status'."),
        (400, "Item with id 'msg_03' not found."),
        (404, "Item with id 'msg_03' not found. Items are not persisted for this model."),
        (
            400,
            "Item 'msg_03' of type 'message' was provided without its required 'reasoning' item: \
             'rs_03'.",
        ),
    ] {
        let server = in_turn(vec![served(&stream("03")), refusal(status, words)]).await;
        let client = responses(&server);
        let mut events = vec![prompt("hi")];
        for (step, attempts) in [(1, 1), (2, 2), (3, 1)] {
            let asked = ask_with(&client, &events, CancellationToken::default()).await;
            let answer = asked.answer.unwrap_or_else(|failed| panic!("{words}: {failed:?}"));
            assert_eq!(answer.attempts.len(), attempts, "{words}, step {step}");
            let said = asked.live.iter().any(|delta| {
                matches!(delta, Delta::Notice { text } if text.contains("refused an earlier answer"))
            });
            assert_eq!(said, step == 2, "{words}, step {step}");
            events = after(events, Answered { step: Step(step), ..answer });
        }
        let bodies = server.bodies();
        assert_eq!(bodies.len(), 4, "{words}");
        assert!(input(&bodies[1]).contains(r#""id":"msg_03"#));
        assert!(!input(&bodies[2]).contains(r#""id":"#), "{words}");
        assert!(input(&bodies[3]).starts_with(input(&bodies[2])), "{words}");
    }
}

/// The words are about something else, if they are the same without the items.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_items_is_refused_once() {
    let no = || refusal(400, "Invalid value: 'input[0].content'.");
    let server = in_turn(vec![no(), served(&stream("03")), no(), no()]).await;
    let client = responses(&server);
    let events = vec![prompt("hi")];
    let asked = ask_with(&client, &events, CancellationToken::default()).await;
    assert_eq!(asked.answer.unwrap_err().attempts.len(), 1);
    let asked = ask_with(&client, &events, CancellationToken::default()).await;
    let events = after(events, asked.answer.unwrap());
    let asked = ask_with(&client, &events, CancellationToken::default()).await;
    assert_eq!(asked.answer.unwrap_err().attempts.len(), 2);
    ask_with(&client, &events, CancellationToken::default()).await.answer.unwrap();
    assert!(input(&server.bodies()[4]).contains(r#""id":"msg_03"#), "nothing is remembered");
}

/// Ids that came before, and calls that are none, would make every later request fail.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_go_back_as_it_came_is_written_anew() {
    let (_, stream) = streams().into_iter().find(|(name, _)| name.starts_with("03")).unwrap();
    let broken = stream.replace(r#"{\"command\":\"ls\"}"#, r#"{\"command\":"#);
    let script = vec![served(&stream), served(&stream), served(&broken), Say::text("bye").into()];
    let server = ScriptedServer::start(script).await;
    let client = responses(&server);
    let mut events = vec![prompt("hi")];
    for step in 1..=3 {
        let asked = ask_with(&client, &events, CancellationToken::default()).await;
        events = after(events, Answered { step: Step(step), ..asked.answer.unwrap() });
    }
    ask_with(&client, &events, CancellationToken::default()).await.answer.unwrap();
    let body: Value = serde_json::from_slice(&server.bodies()[3]).unwrap();
    let of = |kind: &str| -> Vec<Value> {
        let input = body["input"].as_array().unwrap();
        input.iter().filter(|item| item["type"] == kind).cloned().collect()
    };
    let (calls, results) = (of("function_call"), of("function_call_output"));
    let ids = |all: &[Value]| -> Vec<String> {
        all.iter().map(|item| item["call_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&calls), ids(&results));
    assert_eq!(ids(&calls), ["call_03a", "c00000002", "c00000003"]);
    assert_eq!(calls[0]["status"], "completed");
    assert_eq!(calls[2]["arguments"], "{}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_the_key_of_its_cache() {
    let server = ScriptedServer::start(vec![]).await;
    let openai = |address: &str| {
        let (name, wire, window) = ("openai".into(), ours(Wire::Responses), Some(9_000));
        client(Provider { name, wire, window, ..provider(address, None) })
    };
    let config = Config { model: "openai/scripted".into(), ..Config::default() };
    let known = openai("https://api.openai.com/v1")
        .render_preamble(&config, "/w", &dunnock_ports::HostInfo::default())
        .await
        .unwrap()
        .1;
    let new = String::from_utf8(known.bytes.to_vec()).unwrap();
    // A preamble of an earlier release is asked as it was.
    let old = new.replace(r#","cache_key":true"#, "");
    assert!(old.len() < new.len());
    let session = SessionId::from_random([0; 16]);
    for preamble in [new, old] {
        let asking = ModelRequest {
            session: session.clone(),
            preamble: preamble.into_bytes().into(),
            request: crate::request(Hash::ZERO, &[prompt("hi")]),
            pictures: std::collections::BTreeMap::new(),
            patient: false,
            time_left: None,
        };
        let client = openai(&server.base_url());
        client.ask(asking, Arc::new(|_| {}), CancellationToken::default()).await.unwrap();
    }
    assert_eq!(server.requests()[0]["prompt_cache_key"], session.as_str());
    assert!(server.requests()[1].get("prompt_cache_key").is_none());
    // Only OpenAI and Azure document it; Azure does so for Responses.
    for (name, address, wire, expected) in [
        ("openai", "https://api.openai.com/v1", Wire::Responses, true),
        ("openai", "https://api.openai.com/v1", Wire::Chat, true),
        ("azure", "https://mine.openai.azure.com/openai/v1", Wire::Responses, true),
        ("azure", "https://mine.openai.azure.com/openai/v1", Wire::Chat, false),
        ("openai", "https://gateway.example.com/v1", Wire::Responses, false),
        ("openai", "https://gateway.example.com/v1", Wire::Chat, false),
        ("llamacpp", "http://127.0.0.1:8080/v1", Wire::Responses, false),
        ("gateway", "https://gateway.example.com/v1", Wire::Responses, false),
        ("mistral", "https://api.mistral.ai/v1", Wire::Chat, false),
    ] {
        let (window, wire) = (Some(9_000), ours(wire));
        let one = Provider { name: name.into(), window, wire, ..provider(address, None) };
        let config = Config { model: format!("{name}/m"), ..Config::default() };
        let (_, blob) = crate::client(one)
            .render_preamble(&config, "/w", &dunnock_ports::HostInfo::default())
            .await
            .unwrap();
        let recorded: Value = serde_json::from_slice(&blob.bytes).unwrap();
        assert_eq!(recorded["cache_key"] == true, expected, "{address}, {wire}");
    }
    let server = ScriptedServer::start(vec![]).await;
    let client = crate::client(provider(&server.base_url(), None));
    ask_with(&client, &[prompt("hi")], CancellationToken::default()).await.answer.unwrap();
    assert!(server.requests()[0].get("prompt_cache_key").is_none());
}
