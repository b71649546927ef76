//! The tools as the model's side knows them are the tools that there are.

use serde_json::Value;

/// What the aliases translate to fits the tools' own schemas.
#[test]
fn the_table_of_arguments_is_that_of_the_tools() {
    let mut lines = Vec::new();
    for offer in dunnock_tools::offers() {
        let schema: Value = serde_json::from_str(&offer.schema).unwrap();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let kind = match (property["type"].as_str(), property["items"]["type"].as_str()) {
                (Some("string"), _) => "text",
                (Some("integer"), _) => "number",
                (Some("boolean"), _) => "flag",
                (Some("array"), Some("string")) => "texts",
                (Some("array"), Some("object")) => "steps",
                (Some("object"), _) => "object",
                (None, _) => "command",
                other => panic!("{name}: {other:?}"),
            };
            let need =
                if required.contains(&name.as_str().into()) { "required" } else { "optional" };
            lines.push(format!("{} {name} {kind} {need}", offer.tool.name));
        }
    }
    let mut known = dunnock_model::aliases::our_arguments();
    // The session reads an answer that is missing as empty.
    for line in &mut known {
        if line.starts_with("final_output") {
            *line = line.replace("optional", "required");
        }
    }
    lines.sort();
    known.sort();
    assert_eq!(known, lines);
}
