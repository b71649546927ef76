//! Mistakes that were made once, each named by what went wrong.

use crate::{ask_with, client, ours, prompt, provider};
use dunnock_model::dialects::Callable;
use dunnock_model::{Dialect, Provider, Quirks, Wire as Ours, read_pieces};
use dunnock_ports::CancellationToken;
use dunnock_proto::*;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, ScriptedServer, Served};
use dunnock_testkit::speech::Wire;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

fn tools() -> Arc<[Callable]> {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}, "additionalProperties": false});
    vec![Callable { name: "shell".into(), schema }].into()
}

async fn read(wire: Ours, dialect: Dialect, events: &[&str]) -> Vec<Part> {
    let frame = |event: &&str| match wire {
        Ours::Ollama => format!("{event}\n").into_bytes(),
        Ours::Chat | Ours::Responses | Ours::Anthropic => format!("data: {event}\n\n").into_bytes(),
    };
    read_pieces(wire, dialect, &tools(), events.iter().map(frame).collect()).await.unwrap()
}

fn told(parts: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Text { text } => text.to_string(),
        Part::Reasoning { text, opaque } => {
            format!("({text}{})", opaque.as_deref().unwrap_or_default())
        }
        Part::Call(call) if call.fault.is_some() => format!("<!{}>", call.tool),
        Part::Call(call) => format!("<{} {}>", call.tool, call.args),
    };
    parts.iter().map(part).collect()
}

#[tokio::test]
async fn a_swallowed_thought_gave_a_call_the_arguments_of_another() {
    let events = [
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":""}},{"index":1,"id":"b","function":{"name":"shell","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"hm\n</think>\n"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"command\":\"ls\"}"}}]},"finish_reason":"tool_calls"}]}"#,
    ];
    assert_eq!(
        told(&read(Ours::Chat, Dialect::Native, &events).await),
        r#"<x {}><shell {"command":"ls"}>(hm
)"#
    );
}

#[tokio::test]
async fn a_call_cut_off_before_its_arguments_ran_without_them() {
    let chat = [
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"shell","arguments":""}}]},"finish_reason":"length"}]}"#,
        "[DONE]",
    ];
    assert_eq!(told(&read(Ours::Chat, Dialect::Native, &chat).await), "<!shell>");
    let anthropic = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"shell","input":{}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    assert_eq!(told(&read(Ours::Anthropic, Dialect::Native, &anthropic).await), "<!shell>");
    let whole = chat[0].replace("length", "tool_calls");
    assert_eq!(
        told(&read(Ours::Chat, Dialect::Native, &[&whole]).await),
        "<shell {}>",
        "but a call may have none"
    );
}

#[tokio::test]
async fn seals_that_come_in_pieces_went_back_in_pieces() {
    let detail = |fields: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"reasoning_details":[{{"type":"reasoning.text","index":0,{fields}}}]}}}}]}}"#
        )
    };
    let events = [
        detail(r#""text":"a ""#),
        detail(r#""text":"b","signature":null"#),
        detail(r#""signature":"sig""#),
        r#"{"choices":[{"delta":{"content":"x","annotations":[]},"finish_reason":"stop"}]}"#
            .to_owned(),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let parts = read(Ours::Chat, Dialect::Native, &events).await;
    assert_eq!(
        told(&parts),
        r#"({"reasoning_details":[{"index":0,"signature":"sig","text":"a b","type":"reasoning.text"}]})x"#
    );
}

#[tokio::test]
async fn marks_within_marks_ended_the_program_and_blanks_took_hours() {
    let began = Instant::now();
    for text in [
        "<tool_calls>".repeat(100_000),
        format!(
            "<tool_call>{}{{}}{}</tool_call>",
            r#"{"function":"#.repeat(20_000),
            "}".repeat(20_000)
        ),
        format!("{{{}", "\n".repeat(2_000_000)),
        format!("a\n</think>{}x", " ".repeat(1_000_000)),
        "- ".repeat(500_000),
        "<tool_call>x</tool_call>".repeat(50_000),
    ] {
        for size in [1_000, text.len()] {
            let pieces: Vec<String> = text
                .as_bytes()
                .chunks(size)
                .map(|p| json!({"message": {"content": String::from_utf8_lossy(p)}}).to_string())
                .collect();
            let mut events: Vec<&str> = pieces.iter().map(String::as_str).collect();
            events.push(r#"{"done":true}"#);
            let parts = read(Ours::Ollama, Dialect::Text, &events).await;
            assert!(Part::calls(&parts).all(|call| call.fault.is_some()), "nothing runs");
        }
    }
    dunnock_testkit::timing::figure(
        "texts full of marks",
        began.elapsed(),
        std::time::Duration::from_secs(20),
    );
}

#[test]
fn long_lines_in_small_pieces_were_looked_at_again_and_again() {
    use dunnock_model::dialects::text_calls::TextCallReader;
    let began = Instant::now();
    for text in
        [format!("```\n{}", "x".repeat(2_000_000)), format!("a\n{}", "\t".repeat(2_000_000))]
    {
        let (mut reader, mut out) = (TextCallReader::new(tools()), Vec::new());
        text.as_bytes()
            .chunks(8)
            .for_each(|piece| reader.feed(std::str::from_utf8(piece).unwrap(), &mut out));
        reader.finish(false, &mut out);
        assert!(out.iter().all(|heard| matches!(heard, dunnock_model::dialects::Parsed::Text(_))));
    }
    // Before, each piece cost as much as the line so far: minutes.
    dunnock_testkit::timing::figure(
        "long lines in small pieces",
        began.elapsed(),
        std::time::Duration::from_secs(5),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_were_held_back_were_asked_for_again_and_lost() {
    let text = "{\"name\": \"shell\"";
    let bytes = format!("{}\n", json!({"message": {"content": text}})).into_bytes();
    let server =
        ScriptedServer::start(vec![Served::wrong(Say::text("x"), Fault::Raw(bytes))]).await;
    let one = Provider {
        wire: ours(Wire::Ollama),
        dialect: Some(Dialect::Text),
        ..provider(&server.base_url(), None)
    };
    let failed = ask_with(&client(one), &[prompt("hi")], CancellationToken::default())
        .await
        .answer
        .unwrap_err();
    assert_eq!((failed.partial.as_ref(), failed.attempts.len()), (text, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_too_long_was_taken_for_a_passing_trouble() {
    let said = [
        (
            Wire::Responses,
            "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"\
             code\":\"context_length_exceeded\",\"message\":\"Your input is too much\"}}}\n\n",
        ),
        (
            Wire::Anthropic,
            "data: {\"type\":\"error\",\"error\":{\"message\":\"prompt is too long: 9 > 8\"}}\n\n",
        ),
        (Wire::Ollama, "{\"error\":\"the input length exceeds the context length\"}\n"),
        (
            Wire::Chat,
            "data: {\"error\":{\"message\":\"no\",\"code\":\"context_length_exceeded\"}}\n\n",
        ),
    ];
    for (wire, stream) in said {
        let server =
            ScriptedServer::start(vec![Served::wrong(Say::text("x"), Fault::Raw(stream.into()))])
                .await;
        let one = Provider { wire: ours(wire), ..provider(&server.base_url(), None) };
        let failed = ask_with(&client(one), &[prompt("hi")], CancellationToken::default())
            .await
            .answer
            .unwrap_err();
        assert_eq!(
            (failed.failure, failed.attempts.len()),
            (Failure::Overflow, 1),
            "{wire:?}: {}",
            failed.error
        );
    }
    for body in [
        r#"{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens.","code":"context_length_exceeded"}}"#,
        r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"}}"#,
        r#"{"error":{"message":"The input token count (1048580) exceeds the maximum number of tokens allowed (1048576)."}}"#,
    ] {
        let server = ScriptedServer::start(vec![Served::wrong(
            Say::text("x"),
            Fault::Says(400, body.into()),
        )])
        .await;
        let failed = crate::ask(&server).await.answer.unwrap_err();
        assert_eq!(failed.failure, Failure::Overflow, "{}", failed.error);
    }
}

/// A conversation in which another model made a call with a name and an id of its own.
fn strange() -> Vec<Event> {
    let call = CallPart {
        id: "functions.shell:0".into(),
        tool: "shell<|channel|>x".into(),
        args: "{}".into(),
        sent: None,
        recovered: false,
        fault: None,
    };
    let answered = Answered {
        step: Step(1),
        attempts: Vec::new(),
        model: "other/model".into(),
        wire: "chat".into(),
        parts: vec![Part::Call(Arc::new(call))],
        stop: Stop::Calls,
        usage: Usage::default(),
        request: Hash::ZERO,
        items: Vec::new(),
        effort_refused: false,
        raw: None,
        server_tools: Vec::new(),
    };
    vec![
        prompt("hi"),
        StepStarted { step: Step(1), upto: 1, preamble: Hash::ZERO, reserved: Reserved::default() }
            .into(),
        answered.into(),
        Finished::plain(
            CallId { step: Step(1), index: 0 },
            Outcome::NotRun,
            "there is no such tool",
        )
        .into(),
        Noticed::plain("careful").into(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_a_model_made_up_ended_every_later_request() {
    for wire in Wire::ALL {
        let server = ScriptedServer::start(vec![]).await;
        let one = Provider { wire: ours(*wire), ..provider(&server.base_url(), None) };
        ask_with(&client(one), &strange(), CancellationToken::default()).await.answer.unwrap();
        let body = String::from_utf8(server.bodies()[0].to_vec()).unwrap();
        assert!(
            body.contains("\"shell__channel__x\"") && body.contains("c00000001"),
            "{wire:?}: {body}"
        );
        assert!(
            !body.contains("channel|") && !body.contains("functions.shell"),
            "{wire:?}: {body}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_others_were_refused_by_those_who_want_more() {
    let server = ScriptedServer::start(vec![]).await;
    let quirks = Quirks { merge: true, echo: true, signed: true, ..Quirks::default() };
    let one = Provider { quirks, ..provider(&server.base_url(), None) };
    ask_with(&client(one), &strange(), CancellationToken::default()).await.answer.unwrap();
    let messages = server.requests()[0]["messages"].clone();
    assert_eq!(messages[2]["reasoning_content"], "", "DeepSeek wants it with every call");
    let signature = &messages[2]["tool_calls"][0]["extra_content"]["google"]["thought_signature"];
    assert_eq!(signature, "skip_thought_signature_validator", "Gemini wants a signature");
    assert_eq!(messages.as_array().unwrap().len(), 4, "nothing follows a result: {messages}");
    assert!(messages[3]["content"].as_str().unwrap().ends_with("careful"), "{messages}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_in_an_address_was_told() {
    let one = Provider { base_url: "http://me:s3cret@127.0.0.1:1/v1".into(), ..provider("", None) };
    let failed = ask_with(&client(one), &[prompt("hi")], CancellationToken::default())
        .await
        .answer
        .unwrap_err();
    assert!(
        failed.error.contains("http://127.0.0.1:1/v1") && !failed.error.contains("s3cret"),
        "{}",
        failed.error
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_field_was_sent_twice() {
    let server = ScriptedServer::start(vec![]).await;
    let body = Some(r#"{"reasoning":{"effort":"high"},"store":true}"#.to_owned());
    let quirks = Quirks { sealed: true, ..Quirks::default() };
    let one = Provider {
        wire: ours(Wire::Responses),
        quirks,
        body,
        ..provider(&server.base_url(), None)
    };
    ask_with(&client(one), &[prompt("hi")], CancellationToken::default()).await.answer.unwrap();
    let sent = String::from_utf8(server.bodies()[0].to_vec()).unwrap();
    assert_eq!(
        (sent.matches("\"reasoning\"").count(), sent.matches("\"store\"").count()),
        (1, 1),
        "{sent}"
    );
    let request = &server.requests()[0];
    assert_eq!(
        (&request["reasoning"]["effort"], &request["reasoning"]["summary"]),
        (&json!("high"), &json!("auto"))
    );
    assert_eq!(request["store"], true, "the person decides");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_elsewhere_was_left_to_its_own_small_window() {
    use dunnock_ports::Model as _;
    // Nobody answers there; the window is set all the same.
    let one = Provider {
        wire: ours(Wire::Ollama),
        base_url: "http://ollama.invalid:11434".into(),
        ..provider("", None)
    };
    let (preamble, _) = client(one)
        .render_preamble(&crate::config(), "/w", &dunnock_ports::HostInfo::default())
        .await
        .unwrap();
    assert_eq!(preamble.window, Some(8_192));
}
