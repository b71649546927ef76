//! The stateless service, word for word (S1 to S6).

use super::Serve;
use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Fault, Rules, ScriptedServer, Served};
use dunnock_testkit::web::{Api, raw};
use serde_json::{Value, json};
use std::sync::Arc;

/// A model that calls what the prompt says: `TOOL {arguments}`; or says it.
async fn obedient() -> ScriptedServer {
    let brain = |_: dunnock_testkit::speech::Wire, request: &Value| -> Served {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap()["content"].as_str().unwrap_or_default();
        let said = last.rsplit("Current request:\n").next().unwrap();
        match said.split_once(' ').filter(|(_, args)| args.starts_with('{')) {
            Some((tool, args)) => {
                let calls: Vec<(&str, &str)> = args.split("&&").map(|args| (tool, args)).collect();
                Say::calls(&calls).into()
            }
            None if said == "break" => Served::wrong(Say::text(""), Fault::Status(400, None)),
            None => Say::text(&format!("I say: {said}")).into(),
        }
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    ScriptedServer::with(Vec::new(), rules).await
}

fn ask(api: &mut Api, prompt: &str) -> Value {
    let (status, answer) = api.post("/api/agent", &json!({ "prompt": prompt }));
    assert_eq!(status, 200, "{answer}");
    let keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["data", "error", "message", "success"], "exactly these");
    answer
}

/// A success: what the tool said.
fn done(api: &mut Api, tool: &str, args: &Value) -> String {
    let answer = ask(api, &format!("{tool} {args}"));
    assert_eq!(
        (&answer["success"], &answer["message"], &answer["error"]),
        (&json!(true), &json!("Tool execution result"), &Value::Null),
        "{answer}"
    );
    answer["data"].as_str().unwrap().to_owned()
}

/// A failure of the tool's own: what it said.
fn failed(api: &mut Api, tool: &str, args: &Value) -> String {
    let answer = ask(api, &format!("{tool} {args}"));
    assert_eq!(
        (&answer["success"], &answer["message"], &answer["data"]),
        (&json!(false), &json!("Tool execution result"), &Value::Null),
        "{answer}"
    );
    let error = answer["error"].as_str().unwrap();
    assert!(error.starts_with("Error: "), "{error}");
    error.to_owned()
}

/// Holds S1: form, toolType ignored, one call, bounded history, nothing kept.
/// Holds S2: the form of a success.
/// Holds S3: exactly these four are offered.
#[tokio::test(flavor = "multi_thread")]
async fn s1_one_prompt_one_call_one_answer_and_nothing_kept() {
    let server = obedient().await;
    let home = Home::with(&server);
    home.put("a.txt", "one\ntwo\n");
    let serve = Serve::start(&home);
    let mut api = serve.api();
    // No call: the model's text. A tool type of any kind is accepted.
    for kind in [json!(null), json!("x"), json!({ "a": 1 })] {
        let (status, answer) = api.post(
            "/api/agent",
            &json!({ "prompt": "hello", "toolType": kind, "contextHistory": [] }),
        );
        assert_eq!(
            (status, answer),
            (
                200,
                json!({ "success": true, "message": "Tool execution result", "data": "I say: hello", "error": null })
            )
        );
    }
    // At most one call, whatever the model wants.
    let two = r#"replaceText {"filePath":"a.txt","oldString":"one","newString":"1"}&&{"filePath":"a.txt","oldString":"two","newString":"2"}"#;
    assert_eq!(ask(&mut api, two)["success"], true);
    assert_eq!(home.read("a.txt"), "1\ntwo\n");
    assert_eq!(server.requests().len(), 4, "one request each");
    // The history reaches the model as a bounded summary.
    let history: Vec<Value> = (0..300)
        .map(|n| json!({ "timestamp": format!("2026-01-01T00:00:{n}"), "prompt": format!("ask {n} {}", "x".repeat(3000)), "result": "y".repeat(3000) }))
        .collect();
    let (status, answer) =
        api.post("/api/agent", &json!({ "prompt": "now", "contextHistory": history }));
    assert_eq!((status, &answer["data"]), (200, &json!("I say: now")));
    let last = server.requests().pop().unwrap();
    let told = last["messages"].as_array().unwrap().last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        told.contains("ask 299") && !told.contains("ask 1 ") && told.len() < 5_000,
        "{} bytes",
        told.len()
    );
    let names: Vec<&str> = last["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["readFile", "listFiles", "searchText", "replaceText"]);
    // Nothing is kept: no session, no file beside the token.
    assert_eq!(api.get("/api/sessions")["sessions"], json!([]));
    let left: Vec<_> = std::fs::read_dir(serve.token_file.parent().unwrap())
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let kept = home.run(&["sessions", "list", "--json"]).await;
    assert_eq!(kept.out, "");
}

/// Holds S2: each failure's form and status: 200, 400, 401, 403.
#[tokio::test(flavor = "multi_thread")]
async fn s2_every_failure_has_its_form() {
    let server = obedient().await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let mut api = serve.api();
    assert!(failed(&mut api, "readFile", &json!({ "filePath": "none.txt" })).contains("none.txt"));
    // A tool that is not offered, ours by its own name among them; and one that is called with
    // nonsense.
    assert!(failed(&mut api, "shell", &json!({ "command": "touch x" })).contains("shell"));
    assert!(failed(&mut api, "view_file", &json!({ "path": "a" })).contains("view_file"));
    assert!(failed(&mut api, "readFile", &json!({ "path": "a" })).contains("path"));
    assert!(!home.project().join("x").exists());
    // Malformed requests: 400, in the same form.
    let bad = |answer: &Value| {
        assert_eq!(
            (&answer["success"], &answer["message"], &answer["data"]),
            (&json!(false), &json!("AgentService error"), &Value::Null),
            "{answer}"
        );
        assert!(!answer["error"].as_str().unwrap().is_empty());
    };
    for body in [
        json!({}),
        json!({ "prompt": 1 }),
        json!({ "prompt": "  " }),
        json!([]),
        json!({ "prompt": "x", "contextHistory": 3 }),
    ] {
        let (status, answer) = api.post("/api/agent", &body);
        assert_eq!(status, 400, "{body}");
        bad(&answer);
    }
    // Authorisation: 401 and 403, in the same form, too.
    let host = serve.at;
    let body = r#"{"prompt":"hello"}"#;
    let post = |more: &str| {
        raw(
            host,
            format!(
                "POST /api/agent HTTP/1.1\r\nhost: {host}\r\ncontent-type: \
                 application/json\r\ncontent-length: {}\r\n{more}\r\n{body}",
                body.len()
            )
            .as_bytes(),
        )
    };
    let heard = post("");
    assert_eq!(heard.status, 401);
    bad(&heard.json());
    let heard =
        post(&format!("authorization: Bearer {}\r\norigin: https://evil.test\r\n", serve.token));
    assert_eq!(heard.status, 403);
    bad(&heard.json());
    // A failure inside the service is no malformed request: 200.
    bad(&ask(&mut api, "break"));
}

/// Holds S3: readFile, listFiles, searchText with their arguments.
/// Holds S4: the exact words and defaults; the limit itself is no truncation.
#[tokio::test(flavor = "multi_thread")]
async fn s3_s4_the_exact_words_of_reading_listing_and_searching() {
    let server = obedient().await;
    let home = Home::with(&server);
    home.put("a.txt", "one\ntwo\n\nfour\n");
    home.put("empty.txt", "");
    home.put("sub/b.md", "Two here\n");
    let lines: String = (1..=2_345).map(|n| format!("line {n}\n")).collect();
    home.put("long.txt", &lines);
    let serve = Serve::start(&home);
    let mut api = serve.api();
    assert_eq!(
        done(&mut api, "readFile", &json!({ "filePath": "a.txt" })),
        "Read a.txt (lines 1-4 of 4 total)\n\none\ntwo\n\nfour"
    );
    assert_eq!(
        done(&mut api, "readFile", &json!({ "filePath": "a.txt", "startLine": 2, "endLine": 3 })),
        "Read a.txt (lines 2-3 of 4 total)\n\ntwo\n"
    );
    assert_eq!(
        done(&mut api, "readFile", &json!({ "filePath": "empty.txt" })),
        "empty file: 0 lines"
    );
    let long = done(&mut api, "readFile", &json!({ "filePath": "long.txt" }));
    let begins = "[TRUNCATED: showing first 2000 lines, 345 more available]\nRead long.txt (lines \
                  1-2000 of 2345 total)\n\nline 1\nline 2\n";
    assert!(long.starts_with(begins) && long.ends_with("line 2000"), "{}", &long[..200]);
    // Exactly the limit is not truncation.
    home.put("full.txt", &lines.lines().take(2_000).collect::<Vec<_>>().join("\n"));
    assert!(
        done(&mut api, "readFile", &json!({ "filePath": "full.txt" }))
            .starts_with("Read full.txt (lines 1-2000 of 2000 total)\n")
    );

    assert_eq!(done(&mut api, "listFiles", &json!({ "path": "sub" })), "sub/b.md");
    assert_eq!(done(&mut api, "listFiles", &json!({ "path": "**/*.md" })), "sub/b.md");
    for n in 0..1_000 {
        home.put(&format!("many/{n:04}.x"), "");
    }
    let all = done(&mut api, "listFiles", &json!({ "path": "many" }));
    assert!(
        all.starts_with("many/0000.x\n") && all.lines().count() == 1_000,
        "the limit itself is no truncation"
    );
    home.put("many/last.x", "");
    let all = done(&mut api, "listFiles", &json!({ "path": "many" }));
    assert!(
        all.starts_with("[TRUNCATED: first 1000 items]\nmany/0000.x\n")
            && all.lines().count() == 1_001
    );

    assert_eq!(
        done(&mut api, "searchText", &json!({ "pattern": "two", "searchPath": "." })),
        "a.txt:2: two"
    );
    assert_eq!(
        done(
            &mut api,
            "searchText",
            &json!({ "pattern": "TWO", "searchPath": ".", "caseSensitive": false })
        ),
        "a.txt:2: two\nsub/b.md:1: Two here"
    );
    assert_eq!(
        done(
            &mut api,
            "searchText",
            &json!({ "pattern": "^t.o$", "searchPath": "a.txt", "isRegex": true })
        ),
        "a.txt:2: two"
    );
    assert_eq!(
        done(&mut api, "searchText", &json!({ "pattern": "t.o", "searchPath": "." })),
        "no match"
    );
    home.put("hits/a.txt", &"needle\n".repeat(200));
    let hits = done(&mut api, "searchText", &json!({ "pattern": "needle", "searchPath": "hits" }));
    assert!(
        hits.starts_with("hits/a.txt:1: needle\n") && hits.lines().count() == 200,
        "the limit at the end of the search is no truncation"
    );
    home.put("hits/b.txt", "needle\n");
    let hits = done(&mut api, "searchText", &json!({ "pattern": "needle", "searchPath": "hits" }));
    assert!(
        hits.starts_with("[TRUNCATED: reached limit 200 before completing search]\n")
            && hits.lines().count() == 201,
        "{}",
        hits.lines().count()
    );
}

/// Holds S3: replaceText.
/// Holds S5: exactly one; 0, 2 and an empty text fail; overlapping ones are one.
#[tokio::test(flavor = "multi_thread")]
async fn s5_a_replacement_needs_exactly_one_place() {
    let server = obedient().await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let replace =
        |old: &str, new: &str| json!({ "filePath": "a.txt", "oldString": old, "newString": new });
    home.put("a.txt", "x $1 y\n  indented\n");
    assert!(done(&mut api, "replaceText", &replace("$1", "$2 (.*)")).contains("a.txt"));
    assert_eq!(home.read("a.txt"), "x $2 (.*) y\n  indented\n", "letters stay letters");
    // None, also where it merely looks alike; two; none at all.
    assert!(failed(&mut api, "replaceText", &replace("nowhere", "z")).contains("does not occur"));
    assert!(
        failed(&mut api, "replaceText", &replace("    indented", "z")).contains("does not occur")
    );
    home.put("a.txt", "ab ab\n");
    assert!(failed(&mut api, "replaceText", &replace("ab", "z")).contains("2 times"));
    failed(&mut api, "replaceText", &replace("", "z"));
    assert_eq!(home.read("a.txt"), "ab ab\n");
    // Places that overlap are one.
    home.put("a.txt", "aaa\n");
    done(&mut api, "replaceText", &replace("aa", "b"));
    assert_eq!(home.read("a.txt"), "ba\n");
    home.put("a.txt", "one\r\ntwo\r\n");
    done(&mut api, "replaceText", &replace("one\ntwo", "1\n2"));
    assert_eq!(home.read("a.txt"), "1\r\n2\r\n", "line breaks stay as the file has them");
}

/// Holds S6: no absolute path, no .., no link out, for all four tools.
#[tokio::test(flavor = "multi_thread")]
async fn s6_only_paths_inside_the_root() {
    let server = obedient().await;
    let home = Home::with(&server);
    let secret = home.dir.path().join("outside.txt");
    std::fs::write(&secret, "TOPSECRET").unwrap();
    home.put("in.txt", "fine\n");
    home.put(".env", "KEY=TOPSECRET\n");
    std::os::unix::fs::symlink(&secret, home.project().join("link.txt")).unwrap();
    std::os::unix::fs::symlink(home.dir.path(), home.project().join("dir")).unwrap();
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let outside = secret.to_str().unwrap();
    let paths = [
        "../outside.txt",
        "sub/../../outside.txt",
        outside,
        "link.txt",
        "dir/outside.txt",
        "/etc/passwd",
        "/usr/include/stdio.h",
        "call:1.0",
    ];
    for path in paths {
        let told = failed(&mut api, "readFile", &json!({ "filePath": path }));
        assert!(!told.contains("TOPSECRET") && !told.contains("root:"), "{path}: {told}");
        let told = failed(
            &mut api,
            "replaceText",
            &json!({ "filePath": path, "oldString": "TOPSECRET", "newString": "x" }),
        );
        assert!(!told.contains("TOPSECRET"), "{path}: {told}");
    }
    for path in ["..", "/", "dir", "../*", "/etc/*"] {
        let answer = ask(&mut api, &format!("listFiles {}", json!({ "path": path })));
        assert!(
            !answer.to_string().contains("outside.txt") && !answer.to_string().contains("passwd"),
            "{path}: {answer}"
        );
        let answer = ask(
            &mut api,
            &format!("searchText {}", json!({ "pattern": "TOPSECRET", "searchPath": path })),
        );
        assert!(
            !answer["data"].as_str().unwrap_or_default().contains("TOPSECRET"),
            "{path}: {answer}"
        );
    }
    // What asks elsewhere has nobody to ask here.
    let told = failed(&mut api, "readFile", &json!({ "filePath": ".env" }));
    assert!(told.contains("needs a person's answer") && !told.contains("TOPSECRET"), "{told}");
    failed(
        &mut api,
        "replaceText",
        &json!({ "filePath": ".git/config", "oldString": "a", "newString": "b" }),
    );
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "TOPSECRET");
}
