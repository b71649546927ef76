//! The examples of the reference page, run; and what tools say of themselves.

use crate::{put, run};
use dunnock_proto::{
    AskPersonArgs, FinalArgs, Outcome, PlanArgs, Role, TOOL_FIND, TOOL_USE, WEB_FETCH,
};

/// Holds W5: every tool: range, fails if it exists, at a line, exactly once, regex, string and
/// array commands.
/// Holds T8: creates, updates, deletes; both forms; not outside; all or nothing.
#[tokio::test]
async fn every_example_does_what_its_page_says() {
    let mut shown = Vec::new();
    for (tool, examples) in dunnock_tools::pages() {
        for example in examples {
            let dir = tempfile::tempdir().unwrap();
            put(dir.path(), example.files);
            let finished = run(dir.path(), tool, example.args).await;
            let what = format!("{tool}: {}", example.about);
            assert_eq!(finished.shown.as_ref(), example.gives, "{what}");
            let outcome = if example.fails { Outcome::Failed } else { Outcome::Done };
            assert_eq!(finished.outcome, outcome, "{what}");
            for (file, text) in example.leaves {
                assert_eq!(
                    std::fs::read_to_string(dir.path().join(file)).unwrap(),
                    *text,
                    "{what}"
                );
            }
            shown.push(what);
        }
    }
    println!("{}", shown.join("\n"));
    assert!(shown.len() >= 30, "{} examples", shown.len());
}

#[test]
fn schemas_are_whole_bounded_and_small() {
    let mut bytes = 0;
    for offer in dunnock_tools::offers() {
        let name = &offer.tool.name;
        let schema: serde_json::Value = serde_json::from_str(&offer.schema).unwrap();
        assert!(!offer.schema.contains("$ref"), "{name} refers elsewhere");
        assert_eq!(schema["type"], "object", "{name}");
        assert!(offer.description.len() > 30, "{name} says too little of itself");
        bounded(name, &schema);
        if [WEB_FETCH, TOOL_FIND, TOOL_USE].contains(&name.as_str()) {
            continue; // only where the person set something up
        }
        bytes += offer.description.len() + offer.schema.len();
    }
    println!("all tools: {bytes} bytes");
    assert!(bytes < 10_600, "{bytes} bytes of all tools");
}

/// Every string and list has a most: small models loop inside those that do not.
fn bounded(name: &str, schema: &serde_json::Value) {
    match schema["type"].as_str() {
        Some("string") => {
            assert!(schema["maxLength"].is_u64() || schema["enum"].is_array(), "{name}: {schema}")
        }
        Some("array") => assert!(schema["maxItems"].is_u64(), "{name}: {schema}"),
        _ => {}
    }
    if let Some(properties) = schema["properties"].as_object() {
        for (key, inner) in properties {
            assert!(inner["description"].is_string(), "{name}.{key} says nothing of itself");
            bounded(&format!("{name}.{key}"), inner);
        }
    }
    for inner in schema["anyOf"].as_array().into_iter().flatten().chain(schema.get("items")) {
        bounded(name, inner);
    }
}

#[test]
fn the_session_reads_what_its_tools_promise() {
    let roles: Vec<Role> = dunnock_tools::offers().into_iter().map(|o| o.tool.role).collect();
    assert_eq!(roles.iter().filter(|r| **r == Role::Work).count(), 19);
    AskPersonArgs::parse(r#"{"question":"q","choices":["a"]}"#).unwrap();
    PlanArgs::parse(r#"{"steps":[{"text":"a","state":"active"}]}"#).unwrap();
    assert_eq!(FinalArgs::parse(r#"{"answer":"a"}"#).unwrap().answer.as_ref(), "a");
}
