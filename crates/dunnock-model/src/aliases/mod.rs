//! Tool calls as models were trained to write them, translated to our tools at the model's boundary.
//!
//! Models know the tools of other harnesses: `bash`, `Read`, `old_string`, a timeout in
//! milliseconds. A call under such a name is translated if there is one way to read it; otherwise it
//! gets a fault that says what is wrong. The log records both forms, and everything behind this
//! module sees only ours.
//!
//! Invariant: translating twice gives what translating once gives.
//! Invariant: a call that reads is never translated to one that writes or runs something.
//! Invariant: every text in a translated call was in the call as it came, but for the last line of a
//! patch and the states of a plan.

mod json_repair;
mod our_tools;
mod patch_command;
mod rules;
mod table;
mod translation;
mod values;

use json_repair::Repair;
use our_tools::{OUR_TOOLS, OurTool};
use serde_json::{Map, Value};
use table::{ALIASES, Alias};
use translation::{Args, Candidate, Context, Wrong};

/// How a call is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// It is one of ours as it came, or none that we know.
    AsCame,
    /// It means this call.
    Means {
        /// Our tool.
        tool: &'static str,
        /// Its arguments, a JSON object.
        args: String,
    },
    /// It cannot run; the text says why, for the model.
    Fault(String),
}

/// Reads a call. `root` is the path of the workspace; `cut`: the answer reached its output limit, so
/// that the end may be missing.
#[must_use]
pub fn read(tool: &str, args: &str, root: &str, cut: bool) -> Reading {
    let local = local_name(tool.trim());
    if !local.chars().all(|c| c.is_ascii_alphanumeric() || "_-. ".contains(c)) {
        return Reading::AsCame;
    }
    let name = normal(local);
    let ours = OUR_TOOLS.iter().find(|known| normal(known.name) == name);
    let aliases: Vec<&Alias> =
        ALIASES.iter().filter(|alias| alias.names.contains(&name.as_str())).collect();
    if ours.is_none() && aliases.is_empty() {
        return Reading::AsCame;
    }
    let text = match args.trim() {
        "" | "null" | "None" => "{}",
        _ => args,
    };
    let patch = || {
        let text = json_repair::fenced(text.trim_start());
        let patch = Map::from_iter([("patch".to_owned(), Value::from(text))]);
        (name == "applypatch" && text.starts_with("*** ")).then_some((patch, Repair::Spelled))
    };
    let (given, repair) = match json_repair::read(text).map(unwrapped).or_else(patch) {
        Some((given, repair)) if repair == Repair::None || !cut => (given, repair),
        _ if cut => {
            return Reading::Fault(
                "the answer was cut off within this call; call it again, and write less at once, \
                 for instance a long file in several parts"
                    .into(),
            );
        }
        _ => {
            let why = serde_json::from_str::<Map<String, Value>>(text)
                .map_or_else(|error| error.to_string(), |_| String::new());
            return Reading::Fault(format!("the arguments are not a JSON object: {why}"));
        }
    };
    if json_repair::has_twice(text) {
        return Reading::Fault("an argument is given twice".into());
    }
    let mut fault = None;
    let context = Context { root, cut, repair };
    let known = aliases.into_iter().map(Candidate::Alias).chain(ours.map(Candidate::Ours));
    for target in known {
        match target.translate(&given, &context) {
            Ok((tool_name, ours)) => {
                // Words may be missing at the end.
                let whole = HARMLESS.contains(&tool_name) || is_shell_line(ours.get("command"));
                if repair == Repair::ClosedList && !whole {
                    return Reading::Fault("the end of the arguments is missing".into());
                }
                let spelled = text == args || args.trim().is_empty();
                let same = tool == tool_name && given == ours && repair == Repair::None && spelled;
                return match same {
                    true => Reading::AsCame,
                    false => {
                        Reading::Means { tool: tool_name, args: Value::Object(ours).to_string() }
                    }
                };
            }
            // What our own tool says is clearest; otherwise the first.
            Err(why) => fault = Some(fault.map_or(why.clone(), |first| first).max(why)),
        }
    }
    match fault {
        Some(Wrong { text, .. }) => Reading::Fault(text),
        None => Reading::AsCame,
    }
}

/// Arguments without an object that some models put around them.
fn unwrapped((given, repair): (Args, Repair)) -> (Args, Repair) {
    let inner = match (given.len(), given.iter().next()) {
        (1, Some((key, inner))) => {
            ["arguments", "args", "parameters", "params"].contains(&key.as_str()).then_some(inner)
        }
        _ => None,
    };
    match inner {
        Some(Value::Object(inner)) => (inner.clone(), repair.max(Repair::Spelled)),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Object(inner)) => (inner, repair.max(Repair::Spelled)),
            _ => (given, repair),
        },
        _ => (given, repair),
    }
}

/// A name without the prefix under which some servers group tools.
fn local_name(tool: &str) -> &str {
    ["functions.", "functions:", "default_api.", "default_api:", "tools.", "developer__"]
        .iter()
        .find_map(|prefix| tool.strip_prefix(prefix))
        .unwrap_or(tool)
}

/// Lower case, only letters and digits: `run_shell_command` and `RunShellCommand` are one name.
fn normal(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Tools that change nothing, whatever is missing in a call.
const HARMLESS: &[&str] =
    &["update_plan", "ask_person", "list_files", "search_text", "view_file", "tool_find"];

/// Whether a command is a line for a shell, to which further words would add nothing.
fn is_shell_line(command: Option<&Value>) -> bool {
    let words: Option<Vec<&str>> =
        command.and_then(Value::as_array).and_then(|all| all.iter().map(Value::as_str).collect());
    matches!(words.as_deref(), Some(["bash" | "sh", "-lc" | "-c", _]))
}

/// Every name that is accepted, in normal form, with our tool behind it.
#[must_use]
pub fn names() -> Vec<(String, &'static str)> {
    let ours = OUR_TOOLS.iter().map(|tool| (normal(tool.name), tool.name));
    let theirs = ALIASES.iter();
    let theirs =
        theirs.flat_map(|alias| alias.names.iter().map(|name| ((*name).to_owned(), alias.tool)));
    ours.chain(theirs).collect()
}

/// Every name of an argument that means something to one of the tools, in normal form.
#[must_use]
pub fn argument_names() -> Vec<&'static str> {
    let synonyms = OUR_TOOLS.iter().flat_map(|tool| tool.synonyms.iter().map(|(name, _)| *name));
    let ours = OUR_TOOLS.iter().flat_map(|tool| tool.arguments.iter().map(|a| a.name));
    let theirs = ALIASES.iter().flat_map(|alias| alias.arguments.iter().map(|(name, _)| *name));
    ours.chain(synonyms).chain(theirs).chain(["command", "action"]).collect()
}

/// Our tools as this module knows them: a line for each argument with its tool, kind and whether it
/// is required.
#[must_use]
pub fn our_arguments() -> Vec<String> {
    let line = |tool: &OurTool, a: &our_tools::OurArgument| {
        let need = if a.required { "required" } else { "optional" };
        format!("{} {} {:?} {need}", tool.name, a.name, a.kind).to_lowercase()
    };
    let tools = OUR_TOOLS.iter();
    tools.flat_map(|tool| tool.arguments.iter().map(move |a| line(tool, a))).collect()
}
