//! One conversation with a picture, reasoning, parallel calls and results: the exact bytes of its
//! requests on each wire and in each dialect, each beginning with the one before; and what goes
//! back to whom.

use crate::{Asked, DOT, ask_with, client, ours, prompt, provider};
use dunnock_model::{Dialect, ModelClient, Provider};
use dunnock_ports::CancellationToken;
use dunnock_proto::*;
use dunnock_testkit::fixture;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Rules, ScriptedServer};
use dunnock_testkit::speech::{Speech, Wire, sealed};

fn script() -> Vec<Say> {
    let calls =
        Say::calls(&[("shell", r#"{"command":"ls"}"#), ("shell", r#"{"command":"cat a \"b\""}"#)]);
    vec![
        Say { reasoning: "hm so ".into(), text: "I look there.".into(), ..calls },
        Say { reasoning: "aha ".into(), ..Say::text("There are two.") },
        Say::text("Bye."),
    ]
}

fn dialect(speech: Speech) -> Dialect {
    speech.name().parse().unwrap()
}

fn speaker_on(server: &ScriptedServer, wire: Wire, speech: Speech) -> ModelClient {
    let base = provider(&server.base_url(), None);
    client(Provider { wire: ours(wire), dialect: Some(dialect(speech)), ..base })
}

/// The events of the conversation, and the bytes of its requests.
async fn talk(wire: Wire, speech: Speech) -> (Vec<Event>, Vec<String>) {
    let rules = Rules { speech, ..Rules::default() };
    let server = ScriptedServer::with(script().into_iter().map(Into::into).collect(), rules).await;
    let client = speaker_on(&server, wire, speech);
    let mut events = vec![
        Prompted { text: "what is \"here\"?\n\u{1F426}".into(), images: vec![Hash::of(DOT)] }
            .into(),
    ];
    for step in 1..=3 {
        let Asked { answer, .. } = ask_with(&client, &events, CancellationToken::default()).await;
        let answer = answer.unwrap_or_else(|e| panic!("{wire:?} {speech:?}: {e:?}"));
        let calls = Part::calls(&answer.parts).count() as u16;
        let (now, upto) = (Step(step), events.len() as u64);
        events.push(
            StepStarted { step: now, upto, preamble: Hash::ZERO, reserved: Reserved::default() }
                .into(),
        );
        events.push(answer.into());
        for index in 0..calls {
            let outcome = if index == 0 { Outcome::Done } else { Outcome::Failed };
            events.push(
                Finished::plain(CallId { step: Step(step), index }, outcome, "a.txt\n").into(),
            );
        }
        if step == 1 {
            events.push(Noticed::plain("something changed").into());
        } else {
            events.push(prompt("go on"));
        }
    }
    let bodies = server.bodies().iter().map(|b| String::from_utf8(b.to_vec()).unwrap()).collect();
    (events, bodies)
}

/// What an answer came to, without what is a wire's or a dialect's own: ids, seals, and whether it
/// was found in words.
fn plain(events: &[Event]) -> String {
    let part = |part: &Part| match part {
        Part::Reasoning { text, .. } => format!("({text})"),
        Part::Text { text } => text.to_string(),
        Part::Call(call) => {
            assert_eq!(call.fault, None);
            let args: serde_json::Value = serde_json::from_str(&call.args).unwrap();
            format!("<{} {args}>", call.tool)
        }
    };
    let answers = events.iter().filter_map(|e| match e {
        Event::Answered(a) => {
            Some(format!("{:?} {:?}", a.stop, a.parts.iter().map(part).collect::<Vec<_>>()))
        }
        _ => None,
    });
    answers.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_each_wire_are_these_bytes_and_each_begins_with_the_one_before() {
    let mut all = Vec::new();
    for wire in Wire::ALL {
        for speech in Speech::ALL {
            let (events, bodies) = talk(*wire, *speech).await;
            all.push((format!("{}, {}", wire.name(), speech.name()), plain(&events)));
            assert_eq!(bodies.len(), 3);
            for pair in bodies.windows(2) {
                // A mark for the server's cache moves on; everything else only grows.
                let unmarked =
                    |body: &str| body.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
                let first = unmarked(&pair[0]);
                let first = first.strip_suffix("]}").unwrap();
                assert!(
                    unmarked(&pair[1]).starts_with(first),
                    "{wire:?} {speech:?}:\n{first}\n{}",
                    pair[1]
                );
            }
            if *speech == Speech::Native || *wire == Wire::Chat {
                let name = format!("fixtures/wire/{}-{}.txt", wire.name(), speech.name());
                fixture::check(&name, &(bodies.join("\n\n") + "\n"));
            }
        }
    }
    let (first, answers) = all[0].clone();
    for (name, one) in &all {
        assert_eq!(*one, answers, "{name} is not {first}");
    }
    println!("{} pairs of wire and dialect, the same answers:\n{answers}", all.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sealed_goes_back_byte_for_byte_and_only_to_its_maker() {
    let (events, bodies) = talk(Wire::Responses, Speech::Native).await;
    assert!(bodies[1].contains(&sealed("hm so ")), "{}", bodies[1]);
    assert!(bodies[2].contains(&sealed("hm so ")) && bodies[2].contains(&sealed("aha ")));
    let (others, bodies) = talk(Wire::Anthropic, Speech::Native).await;
    let thinking = r#"{"signature":"EqQBsig==","thinking":"hm so ","type":"thinking"}"#;
    assert!(bodies[1].contains(thinking), "{}", bodies[1]);
    // The same conversation goes on over another wire, and with another model of the same.
    for (talk, secrets) in [(&events, ["gAAA", "rs_1"]), (&others, ["EqQB", "hm so"])] {
        for wire in Wire::ALL {
            let server = ScriptedServer::start(vec![]).await;
            let mut client = speaker_on(&server, *wire, Speech::Native);
            let own = matches!(&talk[2], Event::Answered(a) if a.wire == wire.name());
            if own {
                // The wire is the same, the maker is not: the name of its provider differs.
                let base = Provider {
                    name: "other".into(),
                    wire: ours(*wire),
                    ..provider(&server.base_url(), None)
                };
                client = crate::client(base);
            }
            let config = Config {
                model: if own { "other/scripted".into() } else { "script/scripted".into() },
                ..crate::config()
            };
            let asked = crate::ask_as(
                &client,
                &config,
                talk,
                CancellationToken::default(),
                crate::Seen::default(),
            )
            .await;
            asked.answer.unwrap();
            let body = String::from_utf8(server.bodies()[0].to_vec()).unwrap();
            for secret in secrets {
                assert!(!body.contains(secret), "{wire:?} was given {secret}:\n{body}");
            }
            assert!(
                body.contains("I look there.") && body.contains("There are two."),
                "but what was said is there"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_does_not_fit_is_not_sent_and_the_numbers_are_told() {
    for wire in Wire::ALL {
        let server =
            ScriptedServer::with(vec![], Rules { window: Some(2_000), ..Rules::default() }).await;
        let client = speaker_on(&server, *wire, Speech::Native);
        let failed =
            ask_with(&client, &[prompt(&"word ".repeat(3_000))], CancellationToken::default())
                .await
                .answer
                .unwrap_err();
        assert_eq!(failed.failure, Failure::Overflow, "{wire:?}");
        assert!(
            failed.error.contains("window of script/scripted is 2000 tokens"),
            "{}",
            failed.error
        );
        assert_eq!((server.bodies().len(), failed.attempts.len()), (0, 0));
        let asked = ask_with(&client, &[prompt("word")], CancellationToken::default()).await;
        asked.answer.unwrap();
        if *wire == Wire::Ollama {
            assert_eq!(
                server.requests()[0]["options"]["num_ctx"],
                2_000,
                "the window is set where the wire allows it"
            );
        }
    }
    let server =
        ScriptedServer::with(vec![], Rules { window: Some(300), ..Rules::default() }).await;
    let client = speaker_on(&server, Wire::Chat, Speech::Native);
    let refused = dunnock_ports::Model::render_preamble(
        &client,
        &crate::config(),
        "/w",
        &dunnock_ports::HostInfo::default(),
    )
    .await
    .unwrap_err();
    assert!(
        refused.0.contains("the 300-token window of script/scripted. Use --profile small"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_refuses_what_is_nice_to_have_is_asked_without_it() {
    use dunnock_testkit::server::{Brain, Served};
    use std::sync::Arc;
    let brain = |_: Wire, body: &serde_json::Value| {
        if body.get("include").is_some() {
            let error =
                r#"{"error":{"message":"Encrypted content is not supported with this model."}}"#;
            return Served::wrong(
                Say::default(),
                dunnock_testkit::server::Fault::Says(400, error.into()),
            );
        }
        Say::text("fine").into()
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    let server = ScriptedServer::with(vec![], rules).await;
    let mut one = Provider { wire: ours(Wire::Responses), ..provider(&server.base_url(), None) };
    one.quirks.sealed = true;
    let client = client(one);
    // First without a summary, then without seals; and from then on at once.
    for tries in [3, 1] {
        let answer =
            ask_with(&client, &[prompt("hi")], CancellationToken::default()).await.answer.unwrap();
        assert_eq!((Part::words(&answer.parts).as_str(), answer.attempts.len()), ("fine", tries));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_none_is_told_once_and_is_then_the_end() {
    let bad = |text: &str| Say::text(text);
    // Sent as they are: the server does not put them into words of a plan.
    let server =
        ScriptedServer::start(vec![bad("I think I will").into(), bad(r#"{"thought":"x"}"#).into()])
            .await;
    let client = speaker_on(&server, Wire::Chat, Speech::Plan);
    let mut events = vec![prompt("hi")];
    let answer = ask_with(&client, &events, CancellationToken::default()).await.answer.unwrap();
    let call = Part::calls(&answer.parts).next().unwrap().clone();
    assert!(call.fault.as_ref().unwrap().contains("not a valid plan"), "{call:?}");
    events.push(
        StepStarted { step: Step(1), upto: 1, preamble: Hash::ZERO, reserved: Reserved::default() }
            .into(),
    );
    events.push(answer.into());
    events.push(
        Finished::plain(CallId { step: Step(1), index: 0 }, Outcome::NotRun, "not run").into(),
    );
    let failed = ask_with(&client, &events, CancellationToken::default()).await.answer.unwrap_err();
    assert!(failed.error.contains("returned an invalid plan twice in a row"), "{}", failed.error);
    let body = &server.requests()[1]["messages"];
    assert_eq!(body[2]["content"], "I think I will");
    assert!(
        body[3]["content"].as_str().unwrap().contains("Answer with one JSON object"),
        "{}",
        body[3]
    );
}

/// What fuzzing begins with on each wire and in each dialect. `DUNNOCK_BLESS=1` writes it anew.
#[test]
fn the_corpus_of_streams_is_what_servers_send() {
    let say = &script()[0];
    for (w, wire) in Wire::ALL.iter().enumerate() {
        for (s, speech) in Speech::ALL.iter().enumerate() {
            let mut stream = vec![(w + 4 * s) as u8, 6];
            stream.extend(
                dunnock_testkit::speech::pieces(*wire, &speech.put(say)).concat().into_bytes(),
            );
            let name = format!("fuzz/corpus/wire/{}-{}", wire.name(), speech.name());
            fixture::check(&name, &String::from_utf8(stream).unwrap());
        }
    }
}
