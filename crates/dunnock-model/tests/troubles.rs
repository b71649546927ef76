//! What goes wrong with servers: told in words that say what to do, tried again where that may
//! help, stopped at once (R8).

use crate::{
    Asked, Seen, ask, ask_as, ask_patiently, ask_with, client, config, patience, prompt, provider,
};
use dunnock_ports::CancellationToken;
use dunnock_proto::*;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, Rules, ScriptedServer, Served};
use dunnock_testkit::{fixture, timing};
use std::time::{Duration, Instant};

fn text(answer: &Answered) -> String {
    let said = answer.parts.iter().map(|p| match p {
        Part::Text { text } => text.to_string(),
        Part::Call(_) | Part::Reasoning { .. } => String::new(),
    });
    said.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_tried_again_and_every_try_is_recorded() {
    let faults = [
        Fault::Status(429, None),
        Fault::Status(500, None),
        Fault::Status(503, None),
        Fault::Status(529, None),
        Fault::Garbage,
        Fault::EndAfter(0),
        Fault::CutAfter(0),
    ];
    for fault in faults {
        let server =
            ScriptedServer::start(vec![Served::wrong(Say::text("fine"), fault.clone()).times(2)])
                .await;
        let Asked { answer, live } = ask(&server).await;
        let answer = answer.unwrap_or_else(|e| panic!("{fault:?}: {e:?}"));
        assert_eq!((text(&answer).as_str(), answer.attempts.len()), ("fine", 3), "{fault:?}");
        assert_eq!(answer.attempts.iter().filter(|a| a.error.is_some()).count(), 2, "{fault:?}");
        let told = live
            .iter()
            .filter(|d| matches!(d, Delta::Notice { text } if text.contains(" in 0.")))
            .count();
        assert_eq!(told, 2, "{fault:?}: the person is told");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_are_bounded_and_wait_as_the_server_asks() {
    let server =
        ScriptedServer::start(vec![Served::wrong(Say::text("x"), Fault::Status(503, None))]).await;
    let failed = ask(&server).await.answer.unwrap_err();
    assert_eq!(
        (failed.attempts.len(), server.bodies().len(), failed.failure),
        (5, 5, Failure::Transport)
    );
    let began = Instant::now();
    let server = ScriptedServer::start(vec![
        Served::wrong(Say::text("x"), Fault::Status(429, Some(1))).times(1),
    ])
    .await;
    assert_eq!(ask(&server).await.answer.unwrap().attempts.len(), 2);
    assert!(began.elapsed() >= Duration::from_secs(1), "Retry-After was not honoured");
    let began = Instant::now();
    let server = ScriptedServer::start(vec![
        Served::wrong(Say::text("x"), Fault::Status(429, Some(9_999))).times(1),
    ])
    .await;
    assert_eq!(ask(&server).await.answer.unwrap().attempts.len(), 2);
    // A server does not decide how long we wait.
    timing::figure(
        "a Retry-After of hours",
        began.elapsed(),
        patience().longest_pause + Duration::from_secs(1),
    );
}

/// Nine seconds of rate limiting ended a run that nobody watched.
#[tokio::test(flavor = "multi_thread")]
async fn while_nobody_watches_a_busy_server_is_waited_for() {
    for status in [429, 503, 529] {
        let busy = || vec![Served::wrong(Say::text("x"), Fault::Status(status, None)).times(8)];
        let server = ScriptedServer::start(busy()).await;
        assert_eq!(ask_patiently(&server).await.answer.unwrap().attempts.len(), 9, "{status}");
        let server = ScriptedServer::start(busy()).await;
        let failed = ask(&server).await.answer.unwrap_err();
        assert_eq!(failed.attempts.len(), 5, "{status}: somebody who watches is told sooner");
    }
    // A quota does not come back by waiting.
    let quota = Fault::Says(429, r#"{"error":{"message":"your quota is used up"}}"#.into());
    let server = ScriptedServer::start(vec![Served::wrong(Say::text("x"), quota)]).await;
    let failed = ask_patiently(&server).await.answer.unwrap_err();
    assert_eq!(failed.attempts.len(), 1, "{failed:?}");
}

/// A stream that broke and is followed by another attempt.
fn broken_before() -> Event {
    let failed = StepFailed::unsent(Step(1), Failure::Transport, "x".into());
    StepFailed { retry_at: Some(At(2)), partial: "one".into(), ..failed }.into()
}

/// UX-B1: a stream that broke was never tried again.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_is_asked_for_again() {
    for fault in [Fault::CutAfter(2), Fault::EndAfter(2)] {
        let server =
            ScriptedServer::start(vec![Served::wrong(Say::text("one two three"), fault.clone())])
                .await;
        let failed = ask(&server).await.answer.unwrap_err();
        assert_eq!((failed.partial.as_ref(), failed.attempts.len()), ("one two ", 1), "{fault:?}");
        assert_eq!((failed.failure, server.bodies().len()), (Failure::Transport, 1), "{fault:?}");
        assert!(failed.incomplete && failed.retry_at.is_some(), "{failed:?}");
        assert!(failed.error.contains("reconnecting 2/5 in "), "{failed:?}");
        // The attempts of earlier steps count, and the request is the same.
        let client = client(provider(&server.base_url(), None));
        for (before, again) in [(3, true), (4, false)] {
            let mut events = vec![broken_before(); before];
            events.insert(0, prompt("hi"));
            let asked = ask_with(&client, &events, CancellationToken::default()).await;
            let failed = asked.answer.unwrap_err();
            assert_eq!(failed.retry_at.is_some(), again, "{before} before: {failed:?}");
        }
        let bodies = server.bodies();
        assert!(bodies.windows(2).all(|two| two[0] == two[1]), "{bodies:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_off_call_is_no_call() {
    // The first piece of a call has come, the second has not.
    let served =
        Served::wrong(Say::calls(&[("shell", r#"{"command":"rm -rf x"}"#)]), Fault::EndAfter(1));
    let server = ScriptedServer::start(vec![served]).await;
    let failed = ask(&server).await.answer.unwrap_err();
    assert_eq!((failed.failure, failed.partial.as_ref()), (Failure::Transport, ""));
}

/// Wherever a stream breaks: calls that are complete run, and nothing else of it counts.
#[tokio::test(flavor = "multi_thread")]
async fn complete_calls_of_a_broken_stream_are_kept() {
    let wanted = [("shell", r#"{"command":"one"}"#), ("shell", r#"{"command":"two"}"#)];
    for wire in dunnock_testkit::speech::Wire::ALL {
        let mut kept = std::collections::BTreeSet::new();
        for pieces in 0..24 {
            let served = Served::wrong(Say::calls(&wanted), Fault::CutAfter(pieces)).times(1);
            let server = ScriptedServer::start(vec![served]).await;
            let provider = dunnock_model::Provider {
                wire: crate::ours(*wire),
                ..provider(&server.base_url(), None)
            };
            let asked =
                ask_with(&client(provider), &[prompt("hi")], CancellationToken::default()).await;
            let Ok(answer) = asked.answer else {
                continue;
            };
            let calls: Vec<(String, String)> = Part::calls(&answer.parts)
                .map(|call| (call.tool.clone(), call.args.to_string()))
                .collect();
            let broke = answer.attempts.last().unwrap().error.is_some();
            for (call, (tool, args)) in calls.iter().zip(wanted) {
                let same = |a: &str, b: &str| {
                    serde_json::from_str::<serde_json::Value>(a).unwrap()
                        == serde_json::from_str::<serde_json::Value>(b).unwrap()
                };
                assert!(call.0 == tool && same(&call.1, args), "{wire:?} {pieces}: {calls:?}");
            }
            assert!(broke || calls.len() == 2, "{wire:?} {pieces}: {calls:?}");
            if broke {
                assert!(answer.parts.iter().all(|p| !matches!(p, Part::Text { .. })));
                kept.insert(calls.len());
            }
        }
        println!("{wire:?}: answers that broke with so many complete calls: {kept:?}");
        assert!(kept.contains(&1), "{wire:?}");
    }
}

/// UX-A8: a server that answered before is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_went_away_is_waited_for() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let answered = Answered {
        step: Step(1),
        attempts: Vec::new(),
        model: "script/scripted".into(),
        wire: "chat".into(),
        parts: vec![Part::Text { text: "hello".into() }],
        stop: Stop::End,
        usage: Usage::default(),
        request: Hash::ZERO,
        items: Vec::new(),
        effort_refused: false,
        raw: None,
        server_tools: Vec::new(),
    };
    let events = [prompt("hi"), answered.into(), prompt("and now?")];
    let client = client(provider(&format!("http://{address}/v1"), None));
    let asking =
        tokio::spawn(async move { ask_with(&client, &events, CancellationToken::default()).await });
    tokio::time::sleep(Duration::from_millis(700)).await;
    // While it starts, it is busy: that does not count the attempts to connect.
    let loading = Served::wrong(Say::text("back"), Fault::Status(503, None)).times(3);
    let script = vec![Say::text("x").into(), loading];
    let _server = ScriptedServer::at(address, script).await;
    let Asked { answer, live } = asking.await.unwrap();
    let answer = answer.unwrap();
    assert_eq!(text(&answer), "back");
    assert!(answer.attempts.len() > 3, "{} attempts", answer.attempts.len());
    let told = |d: &Delta| {
        matches!(d, Delta::Notice { text }
            if text.contains("min for a connection, next attempt in ")
                && text.contains("waiting up to 1 min"))
    };
    assert!(live.iter().any(told), "{live:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_has_an_end() {
    for fault in [Fault::Silence, Fault::Deaf] {
        let server =
            ScriptedServer::start(vec![Served::wrong(Say::text("x"), fault.clone())]).await;
        let began = Instant::now();
        let failed = ask(&server).await.answer.unwrap_err();
        assert!(
            failed.error.contains("the server sent nothing for 0.4 s"),
            "{fault:?}: {}",
            failed.error
        );
        timing::figure(&format!("the end of {fault:?}"), began.elapsed(), Duration::from_secs(3));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_is_heard_wherever_it_comes() {
    let wait = |fault| Served::wrong(Say::text("one two three"), fault);
    let served = [
        ("before the headers", wait(Fault::Deaf)),
        ("before the first word", wait(Fault::Silence)),
        ("between words", Served::from(Say::text("one two three")).gated()),
        ("in a pause", wait(Fault::Status(503, Some(60)))),
    ];
    for (what, served) in served {
        let server = ScriptedServer::start(vec![served]).await;
        server.open_gate(1);
        let halt = CancellationToken::default();
        let client = client(provider(&server.base_url(), None));
        let events = [prompt("hi")];
        let (config, seen) = (config(), Seen::default());
        let asking = ask_as(&client, &config, &events, halt.clone(), seen.clone());
        let stop = async {
            server.wait_for(1).await;
            tokio::time::sleep(Duration::from_millis(60)).await;
            while what == "between words" && seen.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            halt.cancel();
            Instant::now()
        };
        let (asked, told) = tokio::join!(asking, stop);
        let took = told.elapsed();
        let failed = asked.answer.unwrap_err();
        assert_eq!(failed.failure, Failure::Interrupted, "{what}");
        timing::figure(&format!("an interrupt {what}"), took, Duration::from_millis(100));
        if what == "between words" {
            assert_eq!(failed.partial.as_ref(), "one ", "what was shown is kept");
        }
    }
    // While connecting: a listener whose queue is full takes no more.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(50))
    {
        held.push(stream);
    }
    let halt = CancellationToken::default();
    // It says what it holds, or it would be asked while the preamble is made.
    let one = dunnock_model::Provider {
        window: Some(100_000),
        ..provider(&format!("http://{address}/v1"), None)
    };
    let (client, events) = (client(one), [prompt("hi")]);
    let asking = ask_with(&client, &events, halt.clone());
    let stop = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        halt.cancel();
        Instant::now()
    };
    let (asked, told) = tokio::join!(asking, stop);
    let (took, failed) = (told.elapsed(), asked.answer.unwrap_err());
    assert_eq!(
        (failed.failure, failed.attempts.len()),
        (Failure::Interrupted, 1),
        "it was still at its first try"
    );
    timing::figure("an interrupt while connecting", took, Duration::from_millis(100));
}

/// Holds A2: refusals of a model's server, word for word.
#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_says_what_to_do() {
    let key = "sk-canary-1234567890";
    let mut told = Vec::new();
    let mut note = |what: &str, base: &str, asked: Asked| {
        let failed = asked.answer.unwrap_err();
        let error = failed.error.replace(base, "http://SERVER/v1");
        assert!(!error.contains("canary"), "{what}: the key is in the error: {error}");
        told.push(format!(
            "{what} ({:?}, {} tries)\n  {error}\n",
            failed.failure,
            failed.attempts.len()
        ));
    };
    let served = |fault| vec![Served::wrong(Say::text("x"), fault)];
    let says = |status, text: &str| served(Fault::Says(status, text.to_owned()));
    let cases = [
        ("forbidden", says(403, r#"{"error":{"message":"not for you"}}"#)),
        ("no such address", served(Fault::Says(404, "page not found".into()))),
        ("sent elsewhere", served(Fault::Redirect("http://127.0.0.1:1/".into()))),
        (
            "too long",
            says(
                400,
                r#"{"error":{"message":"This model's maximum context length is 4096 tokens"}}"#,
            ),
        ),
        (
            "too long, llama.cpp",
            says(
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size"}}"#,
            ),
        ),
        ("bad request", says(400, r#"{"error":{"message":"temperature must be a number"}}"#)),
        ("quota", says(429, r#"{"error":{"message":"You exceeded your current quota"}}"#)),
        ("a page", says(418, "<html>\n<b>teapot</b>\u{1b}[31m</html>")),
        ("a detail", says(422, r#"{"detail":"field required"}"#)),
    ];
    for (what, script) in cases {
        let server = ScriptedServer::start(script).await;
        let client = client(provider(&server.base_url(), Some(key)));
        note(
            what,
            &server.base_url(),
            ask_with(&client, &[prompt("hi")], CancellationToken::default()).await,
        );
    }
    let strict =
        ScriptedServer::with(vec![], Rules { key: Some("right".into()), ..Rules::default() }).await;
    for (what, given) in [("wrong key", Some(key)), ("no key", None)] {
        let client = client(provider(&strict.base_url(), given));
        note(
            what,
            &strict.base_url(),
            ask_with(&client, &[prompt("hi")], CancellationToken::default()).await,
        );
    }
    let other =
        ScriptedServer::with(vec![], Rules { models: vec!["other".into()], ..Rules::default() })
            .await;
    note("unknown model", &other.base_url(), ask(&other).await);
    let refused = client(provider("http://127.0.0.1:1/v1", Some(key)));
    note(
        "nobody there",
        "http://127.0.0.1:1/v1",
        ask_with(&refused, &[prompt("hi")], CancellationToken::default()).await,
    );
    let nonsense = client(provider("not an address", Some(key)));
    note(
        "no address",
        "http://x",
        ask_with(&nonsense, &[prompt("hi")], CancellationToken::default()).await,
    );
    fixture::check("fixtures/wire/refusals.txt", &told.join("\n"));
}
