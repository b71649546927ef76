//! JSON plans: the whole answer is `{"thought", "plan": [], "actions": [{"tool", ...}]}`, checked
//! against a schema.
//!
//! An invalid plan is kept as a call that cannot run, so that the model is sent the reason (P4) and
//! it is recorded like any other call. [`Reader`] shows the thought while it is being written.

use super::{Callable, FoundCall, Parsed, checked, json_prefix, schema};
use dunnock_core::patch::Patch;
use dunnock_core::policy;
use dunnock_proto::Part;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

/// The tool name of the call that represents an invalid plan.
pub(crate) const BROKEN: &str = "plan";

/// The planner's names for our tools. A planner sees only these; from other models they are
/// accepted as slips.
pub(crate) const NAMES: &[(&str, &str)] =
    &[("read_file", "view_file"), ("run", "shell"), ("apply_diff", "apply_patch")];

/// The model's name for one of our tools.
fn name_for<'a>(tools: &[Callable], ours: &'a str) -> &'a str {
    let known = |name: &str| tools.iter().any(|t| t.name == name);
    let theirs = NAMES.iter().find(|(theirs, name)| *name == ours && known(theirs) && !known(ours));
    theirs.map_or(ours, |(theirs, _)| theirs)
}

/// The JSON schema of a plan, for servers that can enforce one. Every string and array has a bound,
/// so that a complete plan fits in about `room` tokens. Fields are in the order in which they
/// should be written: the thought before the actions.
pub(crate) fn schema(tools: &[Callable], room: u64) -> String {
    // With little room, a model that loops inside a string must still reach its end, so assume the
    // worst case of one token per character.
    let small = room < 2_000;
    let letters = if small { room } else { room * 4 };
    let (thought, text) = (letters / 4, if small { letters / 4 } else { letters / 2 });
    let (thought, text) = (thought.clamp(100, 2_000), text.clamp(100, schema::STRING));
    let (steps, step, actions) = if small { (3, 60, 2) } else { (12, 200, 8) };
    let action = |tool: &Callable| {
        let theirs =
            tool.schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let theirs = theirs.into_iter().filter(|(key, _)| key != "tool");
        let theirs: String = theirs
            .map(|(key, value)| {
                format!(",{}:{}", json!(key), schema::bounded(&without_words(value), text))
            })
            .collect();
        let mut required = vec![json!("tool")];
        required.extend(
            tool.schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default(),
        );
        format!(
            r#"{{"type":"object","properties":{{"tool":{{"const":{}}}{theirs}}},"required":{},"additionalProperties":false}}"#,
            json!(tool.name),
            json!(required)
        )
    };
    let forms: Vec<String> = tools.iter().map(action).collect();
    format!(
        concat!(
            r#"{{"type":"object","properties":{{"thought":{{"type":"string","maxLength":{thought}}},"#,
            r#""plan":{{"type":"array","maxItems":{steps},"items":{{"type":"string","maxLength":{step}}}}},"#,
            r#""actions":{{"type":"array","maxItems":{actions},"items":{{"anyOf":[{forms}]}}}}}},"#,
            r#""required":["thought","plan","actions"],"additionalProperties":false}}"#
        ),
        thought = thought,
        steps = steps,
        step = step,
        actions = actions,
        forms = forms.join(",")
    )
}

/// Removes descriptions and defaults: this schema becomes a grammar, which the model does not read.
fn without_words(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(map) => {
            map.remove("description");
            map.remove("default");
            map.values_mut().for_each(|v| *v = without_words(v.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|v| *v = without_words(v.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    schema
}

/// Parses a plan.
#[derive(Debug)]
pub(crate) struct PlanReader {
    tools: Arc<[Callable]>,
    raw: String,
    /// How much of the thought was shown, in bytes of the decoded text.
    shown: usize,
}

impl PlanReader {
    pub(crate) fn new(tools: Arc<[Callable]>) -> Self {
        Self { tools, raw: String::new(), shown: 0 }
    }

    pub(crate) fn feed(&mut self, more: &str, out: &mut Vec<Parsed>) {
        self.raw.push_str(more);
        // Parse again only while the text is short; a longer thought is shown at the end.
        if self.raw.len() <= 8_192
            && let Some(thought) = thought_so_far(&self.raw)
            && let Some(new) = thought.get(self.shown..).filter(|new| !new.is_empty())
        {
            out.push(Parsed::Text(new.to_owned()));
            self.shown = thought.len();
        }
    }

    pub(crate) fn forget(&mut self) {
        self.raw.clear();
        self.shown = 0;
    }

    pub(crate) fn finish(&mut self, cut: bool, out: &mut Vec<Parsed>) {
        let raw = std::mem::take(&mut self.raw);
        if raw.trim().is_empty() {
            return;
        }
        let (said, calls) = match read(&self.tools, &raw) {
            Ok(read) => read,
            Err(why) => {
                let cut = if cut { " (it was cut off at the output limit)" } else { "" };
                let fault = Some(format!("the answer is not a valid plan{cut}: {why}"));
                out.push(Parsed::Call(FoundCall {
                    tool: BROKEN.into(),
                    args: raw,
                    recovered: false,
                    fault,
                }));
                return;
            }
        };
        // The shown text is a prefix of the whole text, unless the thought was not the first field.
        match said.get(self.shown..) {
            Some(rest) => out.push(Parsed::Text(rest.to_owned())),
            None => out.push(Parsed::Text(said)),
        }
        out.extend(calls.into_iter().map(Parsed::Call));
    }
}

/// The thought so far, of a plan that is still being written.
fn thought_so_far(raw: &str) -> Option<String> {
    let rest =
        unfenced(raw).trim_start().strip_prefix('{')?.trim_start().strip_prefix("\"thought\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let mut end = rest.len();
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    // Drop an incomplete escape at the end: at most a pair of `\uXXXX`.
    let body = rest.get(..end)?;
    (0..=12).find_map(|less| {
        let body = body.get(..body.len().checked_sub(less)?)?;
        serde_json::from_str::<String>(&format!("\"{body}\"")).ok()
    })
}

/// Removes a fence around the whole text.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(rest) = text.strip_prefix("```") else { return text };
    let inside = rest.split_once('\n').map_or("", |(_, inside)| inside);
    inside.trim_end().strip_suffix("```").unwrap_or(inside)
}

fn read(tools: &[Callable], raw: &str) -> Result<(String, Vec<FoundCall>), String> {
    let text = unfenced(raw);
    let (value, len) = json_prefix(text)?.ok_or("it is incomplete")?;
    if !text.get(len..).unwrap_or_default().trim().is_empty() {
        return Err("there is text after the JSON object".into());
    }
    let value: Value = serde_json::from_str(value.get()).map_err(|e| e.to_string())?;
    let shape = json!({
        "type": "object",
        "properties": {
            "thought": {"type": "string"},
            "plan": {"type": "array", "items": {"type": "string"}},
            "actions": {"type": "array", "items": {
                "type": "object", "properties": {"tool": {"type": "string"}}, "required": ["tool"],
            }},
        },
        "required": ["thought", "actions"],
        "additionalProperties": false,
    });
    schema::check(&shape, &value)?;
    let mut said = value["thought"].as_str().unwrap_or_default().to_owned();
    for (n, step) in
        value["plan"].as_array().into_iter().flatten().filter_map(Value::as_str).enumerate()
    {
        let _ = write!(said, "\n{}. {step}", n + 1);
    }
    let actions = value["actions"].as_array().into_iter().flatten().filter_map(Value::as_object);
    let calls = actions.map(|action| call(tools, action.clone())).collect();
    Ok((said, calls))
}

fn call(tools: &[Callable], mut action: Map<String, Value>) -> FoundCall {
    let tool =
        action.remove("tool").and_then(|t| t.as_str().map(str::to_owned)).unwrap_or_default();
    let known = |name: &str| tools.iter().any(|t| t.name == name);
    let Some((theirs, ours)) =
        NAMES.iter().find(|(theirs, ours)| *theirs == tool && (known(theirs) || known(ours)))
    else {
        return checked(tools, &tool, Value::Object(action).to_string(), false);
    };
    let as_written = known(theirs)
        .then(|| checked(tools, theirs, Value::Object(action.clone()).to_string(), false));
    if let Some(wrong) = as_written.as_ref().filter(|found| found.fault.is_some()) {
        return wrong.clone();
    }
    if let Some(diff) = action.remove("diff") {
        let path = action.remove("path");
        match patch(path.as_ref().and_then(Value::as_str), diff.as_str().unwrap_or_default()) {
            Ok(patch) => drop(action.insert("patch".into(), patch.into())),
            Err(fault) => {
                return FoundCall {
                    tool: (*ours).into(),
                    args: "{}".into(),
                    recovered: false,
                    fault: Some(fault),
                };
            }
        }
    }
    if *theirs == "run" && as_written.is_some() {
        action.insert("apart".into(), true.into());
    }
    let args = Value::Object(action).to_string();
    match as_written {
        Some(_) => FoundCall { tool: (*ours).into(), args, recovered: false, fault: None },
        None => checked(tools, ours, args, false),
    }
}

/// Turns a diff of one file into a patch that names the file: models omit the two header lines.
fn patch(path: Option<&str>, diff: &str) -> Result<String, String> {
    let Some(path) = path else { return Ok(diff.to_owned()) };
    let named = |text: &str| {
        let patch = Patch::parse(text).ok()?;
        let paths: Vec<String> = patch.paths().map(policy::plain_path).collect();
        (!paths.is_empty()).then_some(paths)
    };
    match named(diff) {
        Some(paths) if paths.iter().all(|named| *named == policy::plain_path(path)) => {
            Ok(diff.to_owned())
        }
        Some(paths) => Err(format!("the diff changes {}, but path is {path}", paths.join(", "))),
        None => {
            let whole = format!("--- a/{path}\n+++ b/{path}\n{diff}");
            Ok(if named(&whole).is_some() { whole } else { diff.to_owned() })
        }
    }
}

/// Renders an answer of the model in this dialect.
pub(crate) fn answer(tools: &[Callable], parts: &[Part], cut: bool) -> String {
    let calls: Vec<_> = Part::calls(parts).collect();
    if let Some(broken) = calls.iter().find(|c| c.tool == BROKEN && c.fault.is_some()) {
        return broken.args.to_string();
    }
    let mut thought = Part::words(parts);
    if cut {
        thought.push_str("\n[cut off here]");
    }
    let action = |call: &&Arc<dunnock_proto::CallPart>| {
        let mut args = serde_json::from_str::<Map<String, Value>>(&call.args).unwrap_or_default();
        let tool = name_for(tools, &call.tool);
        if tool == "run" {
            args.remove("apart");
        }
        if tool == "apply_diff"
            && let Some(patch) = args.remove("patch")
        {
            let parsed = patch.as_str().and_then(|text| Patch::parse(text).ok());
            let path = parsed
                .as_ref()
                .and_then(|patch| patch.paths().next())
                .unwrap_or_default()
                .to_owned();
            args.insert("path".into(), path.into());
            args.insert("diff".into(), patch);
        }
        let args: String =
            args.iter().map(|(key, value)| format!(",{}:{value}", json!(key))).collect();
        format!(r#"{{"tool":{}{args}}}"#, json!(tool))
    };
    let actions: Vec<String> = calls.iter().map(action).collect();
    format!(r#"{{"thought":{},"plan":[],"actions":[{}]}}"#, json!(thought), actions.join(","))
}

/// Renders the result of an action for the model.
pub(crate) fn result(
    tools: &[Callable],
    tool: &str,
    text: &str,
    ok: bool,
    fault: Option<&str>,
) -> String {
    let tool = name_for(tools, tool);
    match fault {
        Some(why) if tool == BROKEN => {
            format!("{why}. Answer with one JSON object and nothing else.")
        }
        _ => format!("Result of {tool}{}:\n{text}", if ok { "" } else { " (it failed)" }),
    }
}
