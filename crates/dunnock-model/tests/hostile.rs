//! Streams that break, lie or never end (R9), on every wire: the table is the test. No panic,
//! bounded memory, partial text kept, no call from half of one.

use crate::{ask_with, client, config, ours, prompt, provider};
use dunnock_model::Provider;
use dunnock_ports::{CancellationToken, Model as _, ModelRequest};
use dunnock_proto::{Failure, Part};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, ScriptedServer, Served};
use dunnock_testkit::speech::{Wire, pieces};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// What must come of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Comes {
    /// An answer with these words; `<tool args>` is a call, `<!tool>` one that cannot run.
    Says(String),
    /// A failure that kept these words, after one try or several.
    Fails { kept: String, again: bool, with: &'static str },
    /// An answer that is none: what it said, and why it is none.
    None { kept: &'static str, with: &'static str },
}

fn says(words: &str) -> Comes {
    Comes::Says(words.into())
}

/// Nothing was shown: it was tried again.
fn again(with: &'static str) -> Comes {
    Comes::Fails { kept: String::new(), again: true, with }
}

/// Something was shown: it is kept, and not tried again.
fn kept(kept: &str, with: &'static str) -> Comes {
    Comes::Fails { kept: kept.into(), again: false, with }
}

/// One event of a wire, from JSON.
fn event(wire: Wire, json: &str) -> String {
    if wire == Wire::Ollama { format!("{json}\n") } else { format!("data: {json}\n\n") }
}

/// One word of an answer.
fn word(wire: Wire, text: &str) -> String {
    let text = serde_json::Value::from(text);
    event(
        wire,
        &match wire {
            Wire::Chat => format!(r#"{{"choices":[{{"delta":{{"content":{text}}}}}]}}"#),
            Wire::Responses => format!(
                r#"{{"type":"response.output_text.delta","output_index":0,"delta":{text}}}"#
            ),
            Wire::Anthropic => {
                format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{text}}}}}"#
                )
            }
            Wire::Ollama => format!(r#"{{"message":{{"content":{text}}},"done":false}}"#),
        },
    )
}

/// The end of an answer, for a reason of the wire's own.
fn end(wire: Wire, length: bool) -> String {
    match (wire, length) {
        (Wire::Chat, false) => {
            event(wire, r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#) + "data: [DONE]\n\n"
        }
        (Wire::Chat, true) => {
            event(wire, r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#)
                + "data: [DONE]\n\n"
        }
        (Wire::Responses, false) => {
            event(wire, r#"{"type":"response.completed","response":{"status":"completed"}}"#)
        }
        (Wire::Responses, true) => event(
            wire,
            r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#,
        ),
        (Wire::Anthropic, length) => {
            let reason = if length { "max_tokens" } else { "end_turn" };
            event(
                wire,
                &format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#),
            ) + &event(wire, r#"{"type":"message_stop"}"#)
        }
        (Wire::Ollama, length) => {
            let reason = if length { "length" } else { "stop" };
            event(
                wire,
                &format!(r#"{{"message":{{"content":""}},"done":true,"done_reason":"{reason}"}}"#),
            )
        }
    }
}

/// A server that says that it failed.
fn error(wire: Wire) -> String {
    event(
        wire,
        match wire {
            Wire::Chat => r#"{"error":{"message":"boom"}}"#,
            Wire::Responses => r#"{"type":"error","message":"boom"}"#,
            Wire::Anthropic => {
                r#"{"type":"error","error":{"type":"overloaded_error","message":"boom"}}"#
            }
            Wire::Ollama => r#"{"error":"boom"}"#,
        },
    )
}

/// A call whose arguments break off.
fn half_a_call(wire: Wire) -> String {
    match wire {
        Wire::Chat => event(
            wire,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"shell","arguments":"{\"command\":\"rm"}}]}}]}"#,
        ),
        Wire::Responses => {
            event(
                wire,
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"shell"}}"#,
            ) + &event(
                wire,
                r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"command\":\"rm"}"#,
            )
        }
        Wire::Anthropic => {
            event(
                wire,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"shell","input":{}}}"#,
            ) + &event(
                wire,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"rm"}}"#,
            )
        }
        Wire::Ollama => event(
            wire,
            r#"{"message":{"content":"","tool_calls":[{"function":{"name":"shell","arguments":"{\"command\":\"rm"}}]},"done":false}"#,
        ),
    }
}

/// A whole call.
fn call(wire: Wire, n: usize) -> String {
    match wire {
        Wire::Chat => event(
            wire,
            &format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{n},"id":"c{n}","function":{{"name":"shell","arguments":"{{}}"}}}}]}}}}]}}"#
            ),
        ),
        Wire::Responses => event(
            wire,
            &format!(
                r#"{{"type":"response.output_item.done","output_index":{n},"item":{{"type":"function_call","call_id":"c{n}","name":"shell","arguments":"{{}}"}}}}"#
            ),
        ),
        Wire::Anthropic => event(
            wire,
            &format!(
                r#"{{"type":"content_block_start","index":{n},"content_block":{{"type":"tool_use","id":"c{n}","name":"shell","input":{{}}}}}}"#
            ),
        ),
        Wire::Ollama => event(
            wire,
            r#"{"message":{"tool_calls":[{"function":{"name":"shell","arguments":{}}}]},"done":false}"#,
        ),
    }
}

/// So many calls, and the end.
fn calls(wire: Wire, many: usize) -> String {
    (0..many).map(|n| call(wire, n)).collect::<String>() + &end(wire, false)
}

fn gzip(bytes: &mut dyn Iterator<Item = &[u8]>) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    bytes.for_each(|piece| encoder.write_all(piece).unwrap());
    encoder.finish().unwrap()
}

/// Every hostile stream: its name, its bytes on a wire, and what must come of it there.
type Case = (&'static str, fn(Wire) -> Fault, fn(Wire) -> Comes);

const CASES: &[Case] = &[
    ("each byte alone", |_| Fault::OneByteChunks, |_| says("one \u{1F426} three")),
    (
        "it drips",
        |w| Fault::Drip((word(w, "a") + &end(w, false)).into_bytes(), 16, 10),
        |_| says("a"),
    ),
    (
        "line ends of another system",
        |w| Fault::Raw((word(w, "a") + &end(w, false)).replace('\n', "\r\n").into()),
        |_| says("a"),
    ),
    (
        "a mark at the start",
        |w| Fault::Raw(format!("\u{feff}{}{}", word(w, "a"), end(w, false)).into()),
        |_| says("a"),
    ),
    (
        "comments, blank lines and events nobody knows",
        |w| {
            let noise = match w {
                Wire::Ollama => "\n\n{\"new\":{\"thing\":[1]}}\n".to_owned(),
                Wire::Chat => ": keep-alive\n\nevent: ping\ndata: {}\n\n".to_owned(),
                Wire::Responses | Wire::Anthropic => ": keep-alive\n\nevent: new\ndata: \
                                                      {\"type\":\"new.thing\",\"x\":[1]}\n\n"
                    .to_owned(),
            };
            Fault::Raw((noise + &word(w, "a") + &end(w, false)).into())
        },
        |_| says("a"),
    ),
    (
        "nulls everywhere",
        |w| {
            let nulls = match w {
                Wire::Chat => {
                    r#"{"choices":[{"delta":{"content":null,"reasoning":null,"tool_calls":null},"finish_reason":null}],"usage":null,"error":null}"#
                }
                Wire::Responses => {
                    r#"{"type":"response.output_item.added","output_index":null,"item":null,"error":null,"sequence_number":null}"#
                }
                Wire::Anthropic => {
                    r#"{"type":"content_block_delta","index":null,"delta":null,"usage":null,"error":null}"#
                }
                Wire::Ollama => {
                    r#"{"message":{"content":null,"thinking":null,"tool_calls":null},"done_reason":null,"error":null}"#
                }
            };
            Fault::Raw((event(w, nulls) + &word(w, "a") + &end(w, false)).into())
        },
        |_| says("a"),
    ),
    (
        "words after the end",
        |w| Fault::Raw((word(w, "a") + &end(w, false) + &word(w, "b")).into()),
        |_| says("a"),
    ),
    (
        "two ends",
        |w| Fault::Raw((word(w, "a") + &end(w, false) + &end(w, false)).into()),
        |_| says("a"),
    ),
    (
        "every event twice",
        |w| {
            Fault::Raw(
                pieces(w, &Say::text("one two"))
                    .iter()
                    .flat_map(|p| [p.clone(), p.clone()])
                    .collect::<String>()
                    .into(),
            )
        },
        // Only Responses numbers its events.
        |w| if w == Wire::Responses { says("one two") } else { says("one one twotwo") },
    ),
    (
        "compressed",
        |w| Fault::Gzip(gzip(&mut [(word(w, "a") + &end(w, false)).as_bytes()].into_iter())),
        |_| says("a"),
    ),
    ("a whole object instead of a stream", |_| Fault::Plain, |_| says("one \u{1F426} three")),
    ("nothing at all", |_| Fault::Raw(Vec::new()), |_| again("ended before it was complete")),
    (
        "only the end",
        |w| Fault::Raw(end(w, false).into()),
        |_| Comes::None { kept: "", with: "the model returned an empty answer" },
    ),
    (
        "half an event",
        |w| Fault::Raw(word(w, "abc").as_bytes()[..20].to_vec()),
        |w| {
            again(if w == Wire::Ollama {
                "sent an invalid answer"
            } else {
                "ended before it was complete"
            })
        },
    ),
    (
        "words, then half an event",
        |w| Fault::Raw([word(w, "a").as_bytes(), &word(w, "b").as_bytes()[..20]].concat()),
        |w| {
            kept(
                "a",
                if w == Wire::Ollama {
                    "sent an invalid answer"
                } else {
                    "ended before it was complete"
                },
            )
        },
    ),
    (
        "words without an end",
        |w| Fault::Raw((word(w, "a ") + &word(w, "b")).into()),
        |_| kept("a b", "ended before it was complete"),
    ),
    (
        "words, then the connection is cut",
        |w| Fault::Reset(word(w, "a").into()),
        |_| kept("a", "the connection was lost"),
    ),
    (
        "cut before the first word",
        |_| Fault::Reset(Vec::new()),
        |_| again("the connection was lost"),
    ),
    (
        "words, then silence",
        |w| Fault::Hang(word(w, "a").into()),
        |_| kept("a", "sent nothing for 0.4 s"),
    ),
    ("silence", |_| Fault::Hang(Vec::new()), |_| again("sent nothing for 0.4 s")),
    ("garbage first", |_| Fault::Garbage, |_| again("sent an invalid answer")),
    (
        "words, then garbage",
        |w| Fault::Raw((word(w, "a") + &event(w, "{\"choices\":[{")).into()),
        |_| kept("a", "sent an invalid answer"),
    ),
    (
        "words, then a number",
        |w| Fault::Raw((word(w, "a") + &event(w, "7")).into()),
        |_| kept("a", "sent an invalid answer"),
    ),
    (
        "words, then bytes that are no text",
        |w| {
            Fault::Raw(
                [
                    word(w, "a").as_bytes(),
                    event(w, "\u{1}").replace('\u{1}', "").as_bytes(),
                    b"data: \xff\xfe\n\n",
                ]
                .concat(),
            )
        },
        |_| kept("a", "sent an invalid answer"),
    ),
    (
        "ten thousand brackets",
        |w| Fault::Raw((word(w, "a") + &event(w, &"[".repeat(10_000))).into()),
        |_| kept("a", "sent an invalid answer"),
    ),
    (
        "a web page",
        |_| Fault::Raw(b"<html>\n<body>Welcome</body>\n\n".to_vec()),
        |w| {
            again(if w == Wire::Ollama {
                "sent an invalid answer"
            } else {
                "ended before it was complete"
            })
        },
    ),
    (
        "an error first",
        |w| Fault::Raw(error(w).into()),
        |_| again("the server reported an error: boom"),
    ),
    (
        "words, then an error",
        |w| Fault::Raw((word(w, "a") + &error(w)).into()),
        |_| kept("a", "the server reported an error: boom"),
    ),
    (
        "half a call, and no end",
        |w| Fault::Raw(half_a_call(w).into()),
        |_| kept("", "ended before it was complete"),
    ),
    (
        "half a call, and an end for length",
        |w| Fault::Raw((half_a_call(w) + &end(w, true)).into()),
        |_| says("<!shell>"),
    ),
    (
        "half a call, and an end",
        |w| Fault::Raw((half_a_call(w) + &end(w, false)).into()),
        |_| says("<!shell>"),
    ),
    (
        "words cut at the limit",
        |w| Fault::Raw((word(w, "a") + &end(w, true)).into()),
        |_| Comes::None { kept: "a", with: "cut off at the model's output limit" },
    ),
    (
        "three thousand calls",
        |w| Fault::Raw(calls(w, 3_000).into()),
        |_| kept("", "more than 2000 calls in one answer"),
    ),
    ("one token of a hundred megabytes", |_| Fault::Endless(100), |_| kept("", "longer than 4 MB")),
    (
        "very many tiny events",
        |w| Fault::Repeat(Vec::new(), word(w, "x").into(), many(), end(w, false).into()),
        |_| Comes::Says("x".repeat(many())),
    ),
    (
        "ten megabytes of words",
        |w| {
            Fault::Repeat(
                Vec::new(),
                word(w, &"x".repeat(1_000)).into(),
                10_000,
                end(w, false).into(),
            )
        },
        |_| Comes::Fails {
            kept: "x".repeat((8 << 20) / 1_000 * 1_000),
            again: false,
            with: "longer than 8 MB",
        },
    ),
    (
        "a small file that unpacks to a large one",
        |_| {
            static BOMB: OnceLock<Vec<u8>> = OnceLock::new();
            let make = || gzip(&mut std::iter::repeat_n(&[b'x'; 1 << 20][..], 100));
            Fault::Gzip(BOMB.get_or_init(make).clone())
        },
        |_| kept("", "longer than 4 MB"),
    ),
];

/// A million in the long run.
fn many() -> usize {
    std::env::var("DUNNOCK_EVENTS").map_or(200_000, |n| n.parse().unwrap())
}

async fn comes(wire: Wire, fault: Fault) -> Comes {
    let server =
        ScriptedServer::start(vec![Served::wrong(Say::text("one \u{1F426} three"), fault)]).await;
    let client = client(Provider { wire: ours(wire), ..provider(&server.base_url(), None) });
    // What is shown is not kept here: it is the answer's own memory that is looked at.
    let (preamble, blob) =
        client.render_preamble(&config(), "/w", &dunnock_ports::HostInfo::default()).await.unwrap();
    let request = crate::request(preamble.hash, &[prompt("hi")]);
    let asking = ModelRequest {
        session: dunnock_proto::SessionId::from_random([0; 16]),
        preamble: blob.bytes,
        request,
        pictures: BTreeMap::new(),
        patient: false,
        time_left: None,
    };
    match client
        .ask(asking, Arc::new(|_| {}), CancellationToken::default())
        .await
        .map(|(answer, _)| answer)
    {
        Ok(answer) => Comes::Says(
            answer
                .parts
                .iter()
                .map(|p| match p {
                    Part::Text { text } => text.to_string(),
                    Part::Call(call) if call.broken().is_some() => format!("<!{}>", call.tool),
                    Part::Call(call) => format!("<{} {}>", call.tool, call.args),
                    Part::Reasoning { text, .. } => format!("({text})"),
                })
                .collect(),
        ),
        Err(failed) if failed.failure == Failure::Rejected => {
            let all = [
                ("", "the model returned an empty answer"),
                ("a", "cut off at the model's output limit"),
            ];
            let one = all.iter().find(|(kept, with)| {
                *kept == failed.partial.as_ref() && failed.error.contains(with)
            });
            let (kept, with) = one.unwrap_or_else(|| panic!("no case expects: {failed:?}"));
            Comes::None { kept, with }
        }
        Err(failed) => {
            assert_eq!(failed.failure, Failure::Transport);
            let known = CASES.iter().filter_map(|(_, _, expect)| match expect(wire) {
                Comes::Fails { with, .. } if failed.error.contains(with) => Some(with),
                _ => None,
            });
            // Of several that fit, the one that says most.
            let with = known.max_by_key(|with| with.len());
            let with = with.unwrap_or_else(|| panic!("no case expects: {}", failed.error));
            Comes::Fails {
                kept: failed.partial.to_string(),
                again: failed.attempts.len() > 1,
                with,
            }
        }
    }
}

fn short(comes: &Comes) -> String {
    let cut = |text: &str| match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}... ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    };
    match comes {
        Comes::Says(text) => format!("says {:?}", cut(text)),
        Comes::Fails { kept, again, with } => {
            format!(
                "{}, keeps {:?}: {with}",
                if *again { "tried again" } else { "fails" },
                cut(kept)
            )
        }
        Comes::None { kept, with } => format!("no answer, keeps {kept:?}: {with}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_every_hostile_stream_on_every_wire_comes_to_what_the_table_says() {
    assert!(CASES.len() >= 20);
    for wire in Wire::ALL {
        comes(*wire, Fault::None).await;
    }
    let before = peak();
    let (mut table, mut wrong, mut worst) = (String::new(), 0, (0, ""));
    for (name, fault, expect) in CASES {
        for wire in Wire::ALL {
            let (high, began) = (peak(), Instant::now());
            let came = comes(*wire, fault(*wire)).await;
            let grew = peak().saturating_sub(high);
            if grew > worst.0 {
                worst = (grew, *name);
            }
            let right = came == expect(*wire);
            wrong += usize::from(!right);
            let mark = if right { "    " } else { "WRONG " };
            let took = began.elapsed().as_secs_f32();
            writeln!(table, "{mark}{name} | {} | {} ({took:.1} s)", wire.name(), short(&came))
                .unwrap();
            if !right {
                writeln!(table, "      wanted {}", short(&expect(*wire))).unwrap();
            }
        }
    }
    let grew = peak().saturating_sub(before);
    println!(
        "{table}{} streams on {} wires, {wrong} wrong; {grew} KB more at most ({} of it: {})",
        CASES.len(),
        Wire::ALL.len(),
        worst.0,
        worst.1
    );
    assert_eq!(wrong, 0);
    assert!(grew < 64 << 10, "{grew} KB more");
}

/// The most memory this process ever held, in KB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_what_passes_is_tried_again_on_every_wire() {
    for wire in Wire::ALL {
        let faults = [
            Fault::Status(429, None),
            Fault::Status(500, None),
            Fault::Status(503, None),
            Fault::Status(529, None),
        ];
        for fault in faults {
            let served = Served::wrong(Say::text("fine"), fault.clone()).times(2);
            let server = ScriptedServer::start(vec![served]).await;
            let client =
                client(Provider { wire: ours(*wire), ..provider(&server.base_url(), None) });
            let answer = ask_with(&client, &[prompt("hi")], CancellationToken::default())
                .await
                .answer
                .unwrap();
            assert_eq!(
                (Part::words(&answer.parts).as_str(), answer.attempts.len()),
                ("fine", 3),
                "{wire:?} {fault:?}"
            );
        }
    }
}
