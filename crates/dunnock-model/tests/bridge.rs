//! What chats really write, and what is understood of it (B3, B4).

use dunnock_model::bridge::inbox::{InboxItem, read};
use serde_json::{Value, json};

fn told(said: &InboxItem) -> Value {
    match said {
        InboxItem::Read { path, lines: None } => json!({ "read": path }),
        InboxItem::Read { path, lines: Some((first, last)) } => {
            json!({ "read": path, "lines": [first, last] })
        }
        InboxItem::List { path } => json!({ "list": path }),
        InboxItem::Search { text, path } => json!({ "search": text, "in": path }),
        InboxItem::Write { path, body } => json!({ "write": path, "body": body }),
        InboxItem::Replace { path, old, new } => json!({ "replace": path, "old": old, "new": new }),
        InboxItem::Delete { path } => json!({ "delete": path }),
        InboxItem::Run { script } => json!({ "run": script }),
        InboxItem::Done => json!({ "done": true }),
        InboxItem::Refused(why) => json!({ "refused": why }),
    }
}

/// Whether what was understood is what a person would expect: refusals need only say why.
fn fits(expected: &Value, got: &Value) -> bool {
    match (expected.get("refused"), got.get("refused")) {
        (Some(word), Some(why)) => {
            let why = why.as_str().unwrap().to_lowercase();
            why.len() > 20 && why.contains(word.as_str().unwrap())
        }
        _ => expected == got,
    }
}

fn cases() -> Vec<(String, String, Vec<Value>)> {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/bridge/corpus.jsonl"
    ))
    .unwrap();
    let case = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        let word = |key: &str| case[key].as_str().unwrap().to_owned();
        (word("name"), word("text"), case["expect"].as_array().unwrap().clone())
    };
    text.lines().map(case).collect()
}

#[test]
fn b3_every_inbox_of_the_corpus_is_read_as_a_person_would_or_refused() {
    let cases = cases();
    let (mut wrong, mut refused, mut ran) = (Vec::new(), 0, 0);
    for (name, text, expected) in &cases {
        let got: Vec<Value> = read(text).said.iter().map(told).collect();
        refused += got.iter().filter(|one| one.get("refused").is_some()).count();
        // The worst: something would be done that the person does not expect.
        let acts = |all: &[Value]| {
            all.iter().filter(|one| one.get("refused").is_none()).cloned().collect::<Vec<_>>()
        };
        let (meant, would) = (acts(expected), acts(&got));
        ran += usize::from(would.iter().any(|one| !meant.contains(one)));
        let same =
            expected.len() == got.len() && expected.iter().zip(&got).all(|(a, b)| fits(a, b));
        println!("{} {name}", if same { "ok   " } else { "WRONG" });
        if !same {
            let (expected, got) = (json!(expected), json!(got));
            wrong.push(format!("{name}\n--- {text:?}\n expected {expected}\n got      {got}"));
        }
    }
    println!(
        "figure: {} inboxes, {refused} refusals, {} read otherwise than a person would, {ran} \
         wrong executions",
        cases.len(),
        wrong.len()
    );
    assert!(cases.len() >= 80);
    assert!(wrong.is_empty() && ran == 0, "{}", wrong.join("\n\n"));
}
