//! Models through the program: every wire and dialect, checks and the profiles they write,
//! switches, pictures, keys.

use crate::{Home, KEY, Ran, ran};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Fault, Rules, ScriptedServer, Served};
use dunnock_testkit::speech::{Speech, Wire, sealed};
use serde_json::{Value, json};
use std::sync::Arc;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n one dot";

/// A home in which the server is spoken to over this wire, and its model in this dialect.
fn home(server: &ScriptedServer, wire: Wire, more: &str) -> Home {
    let home = Home::empty();
    home.configure(&format!(
        "model = \"script/scripted\"\n[providers.script]\nwire = \"{}\"\nbase_url = \
         \"{}\"\napi_key_env = \"SCRIPT_KEY\"\n{more}",
        wire.name(),
        server.base_url()
    ));
    home
}

async fn facts(home: &Home) -> Vec<Value> {
    let shown = home.run(&["sessions", "show", "--json"]).await;
    shown.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An event without times, names of bytes, and what is a wire's or a dialect's own.
fn plain(fact: &Value) -> Value {
    const OWN: &[&str] = &[
        "at",
        "ms",
        "prev",
        "cause",
        "hash",
        "preamble",
        "request",
        "id",
        "wire",
        "dialect",
        "opaque",
        "items",
        "recovered",
        "reserved",
        "workspace",
        "owner",
        "tree",
        "before",
        "started",
        "seen_files",
        "diff",
        "full",
        "seq",
        "upto",
    ];
    match fact {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !OWN.contains(&key.as_str()));
            let args = |key: &str, value: &Value| match value.as_str() {
                // The same arguments, whatever the blanks and the order of their keys.
                Some(text) if key == "args" => {
                    serde_json::from_str(text).unwrap_or_else(|_| value.clone())
                }
                _ => plain(value),
            };
            Value::Object(kept.map(|(key, value)| (key.clone(), args(key, value))).collect())
        }
        Value::Array(all) => Value::Array(all.iter().map(plain).collect()),
        other => other.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_conversation_is_the_same_facts_over_every_wire_and_in_every_dialect() {
    let calls = Say::calls(&[
        ("view_file", r#"{"path":"a.txt"}"#),
        ("shell", r#"{"command":"echo two > b.txt"}"#),
    ]);
    let script = || {
        vec![
            Say { reasoning: "let me see ".into(), text: "I look.".into(), ..calls.clone() }
                .using(100, 20),
            Say::calls(&[("final_output", r#"{"answer":"There is one, now two."}"#)])
                .using(200, 10),
        ]
    };
    let mut first: Option<(String, Vec<Value>)> = None;
    for wire in Wire::ALL {
        for speech in Speech::ALL {
            let rules = Rules { speech: *speech, ..Rules::default() };
            let server =
                ScriptedServer::with(script().into_iter().map(Into::into).collect(), rules).await;
            let home =
                home(&server, *wire, &format!("dialect = \"{}\"\nwindow = 32768\n", speech.name()));
            home.put("a.txt", "one\n");
            std::fs::write(home.project().join("dot.png"), PNG).unwrap();
            let Ran { code, out, err } = home
                .run(&[
                    "run",
                    "--approve",
                    "all",
                    "--sandbox",
                    "off",
                    "--image",
                    "dot.png",
                    "what is here?",
                ])
                .await;
            let name = format!("{} {}", wire.name(), speech.name());
            assert_eq!((code, out.as_str()), (0, "There is one, now two.\n"), "{name}: {err}");
            assert_eq!(home.read("b.txt"), "two\n", "{name}");
            // Files are kept beside the first request: whichever is ready first.
            let facts = facts(&home).await;
            let marked =
                facts.iter().filter(|f| f.to_string().contains("\"recovered\":true")).count();
            assert_eq!(
                marked > 0,
                *speech == Speech::Text,
                "{name}: calls found in words are marked as that"
            );
            let log: Vec<Value> =
                facts.iter().filter(|f| f["kind"] != "checkpointed").map(plain).collect();
            let (known, facts) = first.get_or_insert_with(|| (name.clone(), log.clone()));
            assert_eq!(log.len(), facts.len(), "{name} and {known}");
            for (one, other) in log.iter().zip(facts.iter()) {
                assert_eq!(one, other, "{name} and {known}");
            }
        }
    }
    println!(
        "{} pairs of wire and dialect, {} facts each, all the same",
        12,
        first.unwrap().1.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_switched_in_mid_session_and_sealed_thoughts_go_back_only_to_their_maker() {
    let script = ["one", "two", "three", "four"]
        .map(|text| Say { reasoning: format!("thought-{text} "), ..Say::text(text) });
    let server = ScriptedServer::start(script.map(Into::into).to_vec()).await;
    let home = Home::empty();
    let base = server.base_url();
    home.configure(&format!(
        "model = \"a/scripted\"\n[providers.a]\nwire = \"responses\"\nbase_url = \
         \"{base}\"\n[providers.b]\nwire = \"anthropic\"\nbase_url = \"{base}\"\n"
    ));
    assert_eq!(home.run(&["run", "begin"]).await.out, "one\n");
    for (model, text) in [("b/scripted", "two"), ("a/scripted", "three"), ("b/scripted", "four")] {
        let ran = home.run(&["resume", "--model", model, "--prompt", "go on"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, format!("{text}\n").as_str()), "{}", ran.err);
    }
    let bodies: Vec<String> =
        server.bodies().iter().map(|b| String::from_utf8(b.to_vec()).unwrap()).collect();
    let signed = |text: &str| {
        format!(r#"{{"signature":"EqQBsig==","thinking":"thought-{text} ","type":"thinking"}}"#)
    };
    assert!(
        !bodies[1].contains("thought-one") && !bodies[1].contains("gAAA"),
        "not to the other: {}",
        bodies[1]
    );
    assert!(
        bodies[2].contains(&sealed("thought-one ")),
        "back to its maker, byte for byte: {}",
        bodies[2]
    );
    assert!(!bodies[2].contains("thought-two"), "{}", bodies[2]);
    assert!(bodies[3].contains(&signed("two")), "{}", bodies[3]);
    assert!(!bodies[3].contains("gAAA") && !bodies[3].contains("thought-three"), "{}", bodies[3]);
    assert!(bodies.iter().skip(1).all(|b| b.contains("\"one\"")), "what was said stays");
    let wires: Vec<String> = server.asked().iter().map(|got| got.path.clone()).collect();
    assert_eq!(wires, ["/v1/responses", "/v1/messages", "/v1/responses", "/v1/messages"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_goes_with_the_prompt_over_every_wire() {
    for wire in Wire::ALL {
        let server =
            ScriptedServer::start(vec![Say::text("a dot").into(), Say::text("still a dot").into()])
                .await;
        let home = home(&server, *wire, "");
        std::fs::write(home.project().join("dot.png"), PNG).unwrap();
        let ran = home.run(&["run", "--image", "dot.png", "what is this?"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, "a dot\n"), "{}", ran.err);
        std::fs::remove_file(home.project().join("dot.png")).unwrap();
        let ran = home.run(&["resume", "--prompt", "sure?"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, "still a dot\n"), "{}", ran.err);
        for body in server.bodies() {
            let text = String::from_utf8(body.to_vec()).unwrap();
            assert!(
                text.contains("iVBORw0KGgogb25lIGRvdA=="),
                "{wire:?}: kept with the session: {text}"
            );
        }
    }
    let home = Home::empty();
    home.put("not.png", "words");
    let ran = home.run(&["run", "--image", "not.png", "x"]).await;
    assert!(
        ran.code == 2 && ran.err.contains("it is not a PNG, JPEG, GIF or WebP image"),
        "{}",
        ran.err
    );
}

/// Holds W8: Azure from its three variables, and before OpenAI where both are set.
#[tokio::test(flavor = "multi_thread")]
async fn azure_works_from_its_three_variables_over_both_of_its_wires() {
    for (wire, path) in [("", "/openai/v1/responses"), ("chat", "/openai/v1/chat/completions")] {
        let rules =
            Rules { key: Some(KEY.into()), models: vec!["my-gpt".into()], ..Rules::default() };
        let server = ScriptedServer::with(vec![Say::text("from the cloud").into()], rules).await;
        let home = Home::empty();
        let mut command = home.command(&["run", "hi"]);
        command.env("AZURE_OPENAI_ENDPOINT", server.root() + "/").env("AZURE_OPENAI_KEY", KEY);
        command.env("AZURE_OPENAI_DEPLOYMENT", "my-gpt").env("OPENAI_API_KEY", "another");
        if !wire.is_empty() {
            command.env("DUNNOCK_PROVIDERS__AZURE__WIRE", wire);
        }
        let Ran { code, out, err } = ran(command).await;
        assert_eq!((code, out.as_str()), (0, "from the cloud\n"), "{err}");
        let got = &server.asked()[0];
        assert_eq!((got.path.as_str(), got.header("api-key")), (path, Some(KEY)));
        assert_eq!(got.header("authorization"), None);
        let body: Value = serde_json::from_slice(&got.body).unwrap();
        assert_eq!(body["model"], "my-gpt");
    }
}

/// Holds W8: with several keys the order is fixed and shown, and `model` decides over it.
#[tokio::test(flavor = "multi_thread")]
async fn of_several_keys_the_order_of_the_table_decides_and_model_over_it() {
    const NAMES: [(&str, &str, &str); 3] = [
        ("AZURE_OPENAI_KEY", "api-key", "key-of-azure"),
        ("OPENAI_API_KEY", "authorization", "Bearer key-of-openai"),
        ("ANTHROPIC_API_KEY", "x-api-key", "key-of-anthropic"),
    ];
    // Which of them are set, what `model` says, and who is asked.
    for (set, model, asked) in [
        (&[0, 1, 2][..], None, 0),
        (&[2, 1], None, 1),
        (&[2], None, 2),
        (&[0, 1, 2], Some("openai/gpt-x"), 1),
        (&[0, 1, 2], Some("anthropic/claude-x"), 2),
    ] {
        let models = ["gpt-d", "gpt-5.6-terra", "gpt-x", "claude-sonnet-5-5", "claude-x"]
            .map(String::from)
            .to_vec();
        let rules = Rules { models, ..Rules::default() };
        let server = ScriptedServer::with(vec![Say::text("here").into()], rules).await;
        let home = Home::empty();
        let with_keys = |args: &[&str]| {
            let mut command = home.command(args);
            command
                .env("AZURE_OPENAI_ENDPOINT", server.root())
                .env("AZURE_OPENAI_DEPLOYMENT", "gpt-d");
            for name in ["OPENAI", "ANTHROPIC"] {
                command.env(format!("DUNNOCK_PROVIDERS__{name}__BASE_URL"), server.root() + "/v1");
            }
            for (variable, _, key) in set.iter().map(|n| NAMES[*n]) {
                command.env(variable, key.trim_start_matches("Bearer "));
            }
            command
        };
        let mut command = with_keys(&["run", "hi"]);
        if let Some(model) = model {
            command.args(["--model", model]);
        }
        let Ran { code, out, err } = ran(command).await;
        assert_eq!((code, out.as_str()), (0, "here\n"), "{set:?} {model:?}: {err}");
        let got = &server.asked()[0];
        for (n, (_, header, key)) in NAMES.iter().enumerate() {
            assert_eq!(
                got.header(header),
                (n == asked).then_some(*key),
                "{set:?} {model:?}: {header}"
            );
        }
        let shown = ran(with_keys(&["config"])).await.out;
        let order = shown
            .lines()
            .find(|line| line.contains("the first of these keys that is set decides"))
            .unwrap();
        let at = NAMES.map(|(variable, ..)| order.find(variable));
        assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{order}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_is_anywhere_on_any_wire() {
    for wire in Wire::ALL {
        let refuses = format!(r#"{{"error":{{"message":"bad key {KEY}"}}}}"#);
        let script = vec![
            Say::calls(&[("shell", r#"{"command":"env; cat /proc/self/environ"}"#)]).into(),
            Served::wrong(Say::text("x"), Fault::Says(400, refuses)),
        ];
        let server =
            ScriptedServer::with(script, Rules { key: Some(KEY.into()), ..Rules::default() }).await;
        let home = home(&server, *wire, "");
        let ran = home.run(&["run", "--json", "--approve", "all", "--sandbox", "off", "go"]).await;
        assert_eq!(ran.code, 1, "{}", ran.err);
        assert!(ran.out.contains("bad key [key]"), "{wire:?}: {}", ran.out);
        let shown = home.run(&["sessions", "show"]).await;
        for (what, text) in
            [("frames", &ran.out), ("errors", &ran.err), ("sessions show", &shown.out)]
        {
            assert!(!text.contains(KEY), "{wire:?}: the key is in {what}");
        }
        let mut files = 0;
        let mut folders = vec![home.data(), home.project()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(bytes) = std::fs::read(&path) {
                    files += 1;
                    let held = bytes.windows(KEY.len()).any(|w| w == KEY.as_bytes());
                    assert!(!held, "{wire:?}: the key is in {}", path.display());
                }
            }
        }
        assert!(files > 1);
        for got in server.asked() {
            assert!(
                !String::from_utf8_lossy(&got.body).contains(KEY),
                "{wire:?}: the key is in a body"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_request_is_small_and_smaller_still_with_the_small_profile() {
    // About 1,100 tokens with the small profile. A plan's schema constrains the answer; the model
    // does not read it.
    for (profile, most, with_schema) in [("default", 12_100, 12_100), ("small", 4_400, 6_000)] {
        for wire in Wire::ALL {
            for dialect in Speech::ALL {
                let rules = Rules { speech: *dialect, ..Rules::default() };
                let server = ScriptedServer::with(vec![Say::text("ok").into()], rules).await;
                let home = home(&server, *wire, &format!("dialect = \"{}\"\n", dialect.name()));
                let ran = home.run(&["run", "--profile", profile, "hi"]).await;
                assert_eq!(ran.code, 0, "{}", ran.err);
                let bytes = server.bodies()[0].len();
                println!("{profile}, {}, {}: {bytes} bytes", wire.name(), dialect.name());
                let most = if *dialect == Speech::Plan { with_schema } else { most };
                assert!(bytes <= most, "{profile} over {}: {bytes} bytes", wire.name());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_of_the_persons_own_needs_no_code() {
    let server = ScriptedServer::start(vec![Say::text("ok").into()]).await;
    let home = Home::empty();
    home.configure(&format!(
        "model = \"mine/scripted\"\n[providers.mine]\nwire = \"responses\"\nbase_url = \
         \"{}\"\napi_key_env = \"SCRIPT_KEY\"\nauth = \"x-api-key\"\nmax_output = 77\nbody = \
         '{{\"reasoning\": {{\"effort\": \"high\"}}}}'\n",
        server.base_url()
    ));
    assert_eq!(home.run(&["run", "hi"]).await.out, "ok\n");
    let (got, body) = (&server.asked()[0], &server.requests()[0]);
    assert_eq!(got.header("x-api-key"), Some(KEY));
    assert_eq!(
        (&body["max_output_tokens"], &body["reasoning"]["effort"]),
        (&json!(77), &json!("high"))
    );
    home.configure(
        "model = \"mine/x\"\n[providers.mine]\nbase_url = \"http://127.0.0.1:1/v1\"\nbody = \
         \"nonsense\"\n",
    );
    let ran = home.run(&["run", "hi"]).await;
    assert!(ran.err.contains("providers.mine.body is not a JSON object"), "{}", ran.err);
}

/// What the last message of the person's side says.
fn last_words(body: &Value) -> String {
    let all = body["messages"].as_array().unwrap();
    let text = |m: &Value| match &m["content"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    all.iter().rev().find(|m| m["role"] != "assistant").map(text).unwrap_or_default()
}

/// What a capable model would do about a probe or a task, before it is put into a dialect.
fn sense(body: &Value) -> Say {
    let words = last_words(body);
    let has = |text: &str| words.contains(text);
    let file = "def greet():\n    print(\"Goodbye\")\n    return 1\n";
    if has("a.txt and b.txt") {
        return Say::calls(&[
            ("view_file", r#"{"path":"a.txt"}"#),
            ("view_file", r#"{"path":"b.txt"}"#),
        ]);
    }
    if has("notes.txt") && !has("The heron flies") && !has("What is in") {
        return Say::calls(&[("view_file", r#"{"path":"notes.txt"}"#)]);
    }
    if has("one call to apply_patch") {
        let patch = "--- a/greet.py\n+++ b/greet.py\n@@ -1,3 +1,3 @@\n def greet():\n-    \
                     print(\"Hello\")\n+    print(\"Goodbye\")\n     return 1\n";
        return Say::calls(&[("apply_patch", &json!({ "patch": patch }).to_string())]);
    }
    if has("one call to replace_text") {
        return Say::calls(&[(
            "replace_text",
            r#"{"path":"greet.py","old":"Hello","new":"Goodbye"}"#,
        )]);
    }
    if has("one call to write_file") {
        return Say::calls(&[(
            "write_file",
            &json!({"path": "greet.py", "content": file}).to_string(),
        )]);
    }
    if has("make it so") {
        return Say::calls(&[("write_file", r#"{"path":"made.txt","content":"made\n"}"#)]);
    }
    if has("secret word") {
        return Say::text("heron");
    }
    if has("Count from one") {
        return Say::text(&"one two three ".repeat(30));
    }
    Say::text("ready")
}

/// A prompt that cannot fit is refused, as servers do.
fn too_long(body: &Value, window: usize) -> Option<Served> {
    let error = r#"{"error":{"message":"the request exceeds the available context size"}}"#;
    (body.to_string().len() / 4 > window)
        .then(|| Served::wrong(Say::default(), Fault::Says(400, error.into())))
}

fn brain(answer: impl Fn(&Value) -> Served + Send + Sync + 'static) -> Option<Brain> {
    Some(Brain(Arc::new(move |_, body| answer(body))))
}

/// Four servers: what their models can do, and what must be found.
fn servers() -> Vec<(&'static str, Rules, Value)> {
    let native = brain(|body| {
        let speech =
            if body.get("response_format").is_some() { Speech::Plan } else { Speech::Native };
        too_long(body, 32_000).unwrap_or_else(|| speech.put(&sense(body)).into())
    });
    // Tools in the request are passed over; calls come as text, and patches are beyond it.
    let text = brain(|body| {
        let say = sense(body);
        let asked = body["messages"][0]["content"]
            .as_str()
            .unwrap_or_default()
            .contains("How to call a tool");
        let patch = say.calls.iter().any(|(tool, _)| tool == "apply_patch");
        if !asked && !say.calls.is_empty() || patch {
            return Say::text("I would do that for you.").into();
        }
        too_long(body, 32_000).unwrap_or_else(|| Speech::Text.put(&say).into())
    });
    // Without a schema it only talks.
    let plans = brain(|body| {
        let say = sense(body);
        if body.get("response_format").is_none() {
            let words = if say.calls.is_empty() { say.text.clone() } else { "Certainly!".into() };
            return Say::text(&words).into();
        }
        too_long(body, 32_000).unwrap_or_else(|| Speech::Plan.put(&say).into())
    });
    // A template that wants turns, no tools, no schema; a small window; only whole files.
    let broken = brain(|body| {
        let refuse = |why: &str| {
            Served::wrong(
                Say::default(),
                Fault::Says(400, json!({"error": {"message": why}}).to_string()),
            )
        };
        let roles: Vec<&str> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|m| m["role"].as_str())
            .collect();
        if body.get("tools").is_some() || roles.contains(&"tool") {
            return refuse("this template knows no tools");
        }
        if body.get("response_format").is_some() {
            return refuse("grammars are off");
        }
        if roles.windows(2).any(|pair| pair[0] == pair[1]) {
            return refuse("roles must alternate user/assistant");
        }
        let say = sense(body);
        let asked = body["messages"][0]["content"]
            .as_str()
            .unwrap_or_default()
            .contains("How to call a tool");
        let hard = say.calls.len() > 1
            || say.calls.iter().any(|(tool, _)| tool == "apply_patch" || tool == "replace_text");
        if hard || (!asked && !say.calls.is_empty()) {
            return Say::text("Hmm.").into();
        }
        // It forgets the end of what it began, and cuts long prompts in silence.
        let put = Speech::Text.put(&say);
        Say::text(put.text.trim_end().trim_end_matches("</tool_call>")).into()
    });
    let rules = |brain, window| Rules { brain, window: Some(window), ..Rules::default() };
    vec![
        (
            "native",
            rules(native, 32_000),
            json!({"dialect": "native", "edit": "any", "parallel": true, "profile": "default", "merge": false, "constrained": true, "window": 32_000}),
        ),
        (
            "text only",
            rules(text, 32_000),
            json!({"dialect": "text", "edit": "replace", "parallel": true, "profile": "default", "merge": false, "constrained": false, "window": 32_000}),
        ),
        (
            "JSON only",
            rules(plans, 32_000),
            json!({"dialect": "plan", "edit": "any", "parallel": true, "profile": "default", "merge": false, "constrained": true, "window": 32_000}),
        ),
        (
            "broken",
            rules(broken, 8_000),
            json!({"dialect": "text", "edit": "whole", "parallel": false, "profile": "small", "merge": true, "constrained": false, "window": 8_000}),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn four_servers_have_four_profiles_and_sessions_follow_them() {
    let mut profiles = Vec::new();
    for (name, rules, expect) in servers() {
        let server = ScriptedServer::with(vec![], rules).await;
        let home = home(&server, Wire::Chat, "");
        let checked = home.run(&["models", "check", "--json"]).await;
        assert_eq!(checked.code, 0, "{name}: {}", checked.err);
        let told: Value = serde_json::from_str(&checked.out).unwrap();
        let profile = &told["profile"];
        for (key, value) in expect.as_object().unwrap() {
            assert_eq!(&profile[key], value, "{name}: {key} in {told:#}");
        }
        let table = home.run(&["models", "check", "script/scripted"]).await;
        println!("== {name}\n{}", table.out);
        let asked = server.bodies().len();
        // The session follows: it does the task in the dialect that works, with the tools that it
        // can use.
        let ran = home.run(&["run", "--approve", "all", "--sandbox", "off", "make it so"]).await;
        assert_eq!(home.read("made.txt"), "made\n", "{name}: {}{}", ran.out, ran.err);
        let first: Value = serde_json::from_slice(&server.bodies()[asked]).unwrap();
        let headed = facts(&home).await.into_iter().find(|f| f["kind"] == "preamble_set").unwrap();
        let preamble = &headed["body"]["preamble"];
        assert!(preamble["tools"].as_array().unwrap().len() > 15, "all can be called: {preamble}");
        let sent = first.to_string();
        for key in ["dialect", "profile", "wire", "window"] {
            assert_eq!(preamble[key], profile[key], "{name}: {key}");
        }
        assert_eq!(first.get("tools").is_some(), profile["dialect"] == "native", "{name}");
        assert_eq!(first.get("response_format").is_some(), profile["dialect"] == "plan", "{name}");
        // One edit format each.
        assert_eq!(sent.contains("apply_patch"), profile["edit"] == "patch", "{name}: {sent}");
        assert_eq!(sent.contains("replace_text"), profile["edit"] != "whole", "{name}: {sent}");
        assert_eq!(sent.contains("ask_person"), profile["profile"] != "small", "{name}: {sent}");
        // And the person can overrule it.
        let other = if profile["profile"] == "small" { "default" } else { "small" };
        let ran = home.run(&["run", "--profile", other, "hello"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, "ready\n"), "{name}: {}", ran.err);
        profiles.push(profile.clone());
    }
    for (n, one) in profiles.iter().enumerate() {
        assert!(!profiles[n + 1..].contains(one), "four different ones");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_cannot_be_asked_cannot_be_checked() {
    let home = Home::empty();
    home.configure("model = \"gone/x\"\n[providers.gone]\nbase_url = \"http://127.0.0.1:1/v1\"\n");
    let ran = home.run(&["models", "check"]).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("gone/x cannot be checked") && ran.err.contains("cannot be reached"),
        "{}",
        ran.err
    );
    assert!(!home.data().join("models").exists(), "nothing is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_only_talks_is_said_to_be_of_no_use() {
    let server = ScriptedServer::with(
        vec![],
        Rules { brain: brain(|_| Say::text("I am well.").into()), ..Rules::default() },
    )
    .await;
    let home = home(&server, Wire::Chat, "");
    let ran = home.run(&["models", "check"]).await;
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("so it cannot do tasks"), "{}", ran.out);
}

/// A server with a certificate that nobody else knows, and where that certificate is.
struct Tls {
    child: std::process::Child,
    url: String,
    certificate: std::path::PathBuf,
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tls(folder: &std::path::Path) -> Tls {
    use std::io::BufRead as _;
    let (key, certificate) = (folder.join("key.pem"), folder.join("cert.pem"));
    let made = std::process::Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args([
            "-subj",
            "/CN=test",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-keyout",
        ])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let script = r#"
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200); self.send_header("content-type", "text/event-stream"); self.end_headers()
        self.wfile.write(b'data: {"choices":[{"delta":{"content":"sealed"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    def do_GET(self):
        self.send_response(404); self.end_headers()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[1])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;
    let mut child = std::process::Command::new("python3")
        .args(["-c", script])
        .args([&key, &certificate])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut port = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    Tls { child, url: format!("https://127.0.0.1:{}/v1", port.trim()), certificate }
}

/// Holds W8: SSL_CERT_FILE works.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_counts_if_ssl_cert_file_names_it() {
    let home = Home::empty();
    let tls = tls(home.dir.path());
    // A plain local server beside it: the two do not share what they trust.
    home.configure(&format!(
        "model = \"far/x\"\n[providers.plain]\nbase_url = \"http://127.0.0.1:1/v1\"\n[providers.far]\nbase_url = \"{}\"\n",
        tls.url
    ));
    let refused = home.run(&["run", "hi"]).await;
    assert_eq!(refused.code, 1, "{}", refused.out);
    assert!(refused.err.contains("set SSL_CERT_FILE to its certificate"), "{}", refused.err);
    assert!(!refused.err.contains("trying again"), "that does not pass: {}", refused.err);
    let mut command = home.command(&["run", "hi"]);
    command.env("SSL_CERT_FILE", &tls.certificate);
    let Ran { code, out, err } = ran(command).await;
    assert_eq!((code, out.as_str()), (0, "sealed\n"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_stands_before_servers_elsewhere_and_not_before_those_here() {
    let server = ScriptedServer::start(vec![Say::text("through").into()]).await;
    let home = Home::empty();
    home.configure(
        "model = \"far/scripted\"\n[providers.far]\nbase_url = \"http://models.invalid/v1\"\n",
    );
    let mut command = home.command(&["run", "hi"]);
    command.env("HTTP_PROXY", server.root()).env("http_proxy", server.root());
    let Ran { code, out, err } = ran(command).await;
    assert_eq!((code, out.as_str()), (0, "through\n"), "{err}");
    assert_eq!(server.asked()[0].header("host"), Some("models.invalid"));
    let near = ScriptedServer::start(vec![Say::text("direct").into()]).await;
    let home = Home::with(&near);
    let mut command = home.command(&["run", "hi"]);
    command.env("HTTP_PROXY", "http://127.0.0.1:1").env("http_proxy", "http://127.0.0.1:1");
    assert_eq!(ran(command).await.out, "direct\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_and_a_window_can_be_changed_when_a_session_goes_on() {
    let server = ScriptedServer::start(vec![
        Say::text("one").into(),
        Say::text("two").into(),
        Say::text("three").into(),
    ])
    .await;
    let home = home(&server, Wire::Chat, "");
    assert_eq!(home.run(&["run", "go"]).await.out, "one\n");
    assert_eq!(home.run(&["resume", "--profile", "small", "--prompt", "go on"]).await.out, "two\n");
    let tools = |n: usize| server.requests()[n]["tools"].as_array().unwrap().len();
    assert!(tools(0) == 10 && tools(1) < 8, "{} then {}", tools(0), tools(1));
    home.configure(&format!(
        "model = \"script/scripted\"\nwindow = 50000\n[providers.script]\nbase_url = \"{}\"\n",
        server.base_url()
    ));
    assert_eq!(home.run(&["resume", "--prompt", "go on"]).await.out, "three\n");
    let created = facts(&home).await;
    assert_eq!(
        created.iter().filter(|f| f["kind"] == "preamble_set").count(),
        2,
        "a preamble for each profile"
    );
    let set = created.iter().rfind(|f| f["kind"] == "configured").unwrap();
    assert_eq!(set["body"]["set"]["window"], 50_000, "{set}");
}
