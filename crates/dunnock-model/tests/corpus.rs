//! Calls written as text: a corpus of shapes, good, broken, quoted, nested and in other languages.
//! Nothing runs that should not, whatever the pieces in which the words come.

use dunnock_model::dialects::{Callable, Parsed, schema, text_calls};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

fn tools() -> Arc<[Callable]> {
    let text = json!({"type": "string", "maxLength": 10000});
    let tool = |name: &str, properties: Value, required: &[&str]| Callable {
        name: name.into(),
        schema: json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
    };
    let command = json!({"anyOf": [text, {"type": "array", "items": text, "maxItems": 100}]});
    vec![
        tool(
            "shell",
            json!({"command": command, "timeout": {"type": "integer", "minimum": 1}}),
            &["command"],
        ),
        tool(
            "view_file",
            json!({"path": text, "from": {"type": "integer", "minimum": 0}}),
            &["path"],
        ),
        tool(
            "write_file",
            json!({"path": text, "content": text, "overwrite": {"type": "boolean"}}),
            &["path", "content"],
        ),
        tool("git_status", json!({}), &[]),
    ]
    .into()
}

struct Shape {
    kind: String,
    name: String,
    text: String,
    calls: Vec<String>,
}

fn shapes() -> Vec<Shape> {
    let file = include_str!("../../../fixtures/text-calls/corpus.txt");
    let shape = |block: &str| {
        let (title, rest) = block.split_once('\n').unwrap();
        let (kind, name) = title.split_once(": ").unwrap();
        let (text, calls) = rest.rsplit_once("\n--- calls\n").unwrap();
        let calls = calls.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect();
        Shape { kind: kind.into(), name: name.into(), text: text.into(), calls }
    };
    file.split("=== ").skip(1).map(shape).collect()
}

/// The calls of an answer that comes in pieces of so many characters, through everything that reads
/// words.
async fn heard(text: &str, size: usize) -> Vec<String> {
    use dunnock_model::{Dialect, Wire, read_pieces};
    use dunnock_proto::Part;
    let chars: Vec<char> = text.chars().collect();
    let piece = |piece: &[char]| {
        let text: String = piece.iter().collect();
        format!("{}\n", json!({"message": {"content": text}, "done": false})).into_bytes()
    };
    let mut pieces: Vec<Vec<u8>> = chars.chunks(size).map(piece).collect();
    pieces.push(b"{\"done\":true}\n".to_vec());
    let parts = read_pieces(Wire::Ollama, Dialect::Text, &tools(), pieces).await.unwrap();
    let call = |call: &Arc<dunnock_proto::CallPart>| match &call.fault {
        Some(_) => format!("!{}", call.tool),
        None => {
            assert!(call.recovered, "found in words");
            let args: Value = serde_json::from_str(&call.args).unwrap();
            format!("{} {args}", call.tool)
        }
    };
    Part::calls(&parts).map(call).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shape_of_a_call_in_words_comes_to_what_was_meant() {
    let shapes = shapes();
    assert!(shapes.len() >= 60, "{} shapes", shapes.len());
    let (mut table, mut wrong, mut ran_wrongly) = (String::new(), 0, 0);
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for shape in &shapes {
        for size in [1, 5, 100_000] {
            let got = heard(&shape.text, size).await;
            let runs = |calls: &[String]| {
                calls.iter().filter(|c| !c.starts_with('!')).cloned().collect::<Vec<_>>()
            };
            ran_wrongly += runs(&got).iter().filter(|call| !shape.calls.contains(call)).count();
            if got != shape.calls {
                wrong += 1;
                writeln!(
                    table,
                    "WRONG {}: {} (pieces of {size}): {got:?}, wanted {:?}",
                    shape.kind, shape.name, shape.calls
                )
                .unwrap();
            }
        }
        let kind = kinds.entry(&shape.kind).or_default();
        kind.0 += 1;
        kind.1 += usize::from(shape.calls.iter().any(|c| !c.starts_with('!')));
    }
    let meant: usize = kinds.values().map(|(_, run)| run).sum();
    println!(
        "{table}{} shapes, {meant} of them calls that run; {ran_wrongly} ran that should not; \
         {wrong} wrong",
        shapes.len()
    );
    for (kind, (all, run)) in kinds {
        println!("  {kind}: {all} shapes, {run} recovered as calls that run");
    }
    assert_eq!((wrong, ran_wrongly), (0, 0));
}

/// Words that are let go and calls that are found are all that was heard: nothing is lost on the
/// way.
#[test]
fn what_is_no_call_comes_out_as_it_went_in() {
    for shape in shapes().iter().filter(|s| s.calls.is_empty()) {
        for size in [1, 7, 100_000] {
            let (mut reader, mut out) = (text_calls::TextCallReader::new(tools()), Vec::new());
            let chars: Vec<char> = shape.text.chars().collect();
            chars
                .chunks(size)
                .for_each(|piece| reader.feed(&piece.iter().collect::<String>(), &mut out));
            reader.finish(false, &mut out);
            let said: String = out
                .iter()
                .map(|h| match h {
                    Parsed::Text(text) => text.as_str(),
                    _ => "",
                })
                .collect();
            let found = out.iter().any(|h| matches!(h, Parsed::Call(_)));
            // Thoughts are taken out before words come here.
            if !found && !shape.text.contains("think>") {
                assert_eq!(said, shape.text, "{} in pieces of {size}", shape.name);
            }
        }
    }
}

/// Our reading of schemas beside a complete one, for the schemas that tools really have and
/// arguments of all kinds.
#[test]
fn schemas_are_read_as_others_read_them() {
    let values = [
        json!("x"),
        json!(""),
        json!(7),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(true),
        json!(null),
        json!([]),
        json!(["a"]),
        json!([1]),
        json!({}),
        json!({"a": 1}),
        json!("x".repeat(10_001)),
    ];
    let (mut checked, mut fit) = (0, 0);
    for tool in tools().iter() {
        for schema in [tool.schema.clone(), schema::bounded(&tool.schema, 20_000)] {
            let theirs = jsonschema::validator_for(&schema).unwrap();
            let keys = ["path", "from", "command", "timeout", "content", "overwrite", "other"];
            for (n, first) in keys.iter().enumerate() {
                for second in &keys[n..] {
                    for a in &values {
                        for b in &values {
                            let value = json!({*first: a, *second: b});
                            let ours = schema::check(&schema, &value).is_ok();
                            assert_eq!(ours, theirs.is_valid(&value), "{} {value}", tool.name);
                            checked += 1;
                            fit += usize::from(ours);
                        }
                    }
                }
            }
            for value in &values {
                assert_eq!(
                    schema::check(&schema, value).is_ok(),
                    theirs.is_valid(value),
                    "{} {value}",
                    tool.name
                );
            }
        }
    }
    println!("{checked} arguments, {fit} of them fit");
    assert!(fit > 100);
}
