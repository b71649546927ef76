//! Formats numbers, times and calls, the same way in every interface.

use crate::text::one_line;
use crate::tools_gen::VIEWS;
use dunnock_core::patch::{FilePatch, Patch};
use dunnock_proto::{CallPart, Form, ToolView};
use serde_json::{Map, Value};

/// A duration: how long something took.
#[must_use]
pub fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// Elapsed time of something still running, in whole seconds.
#[must_use]
pub fn so_far(ms: u64) -> String {
    match ms / 1000 {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} m {:02} s", s / 60, s % 60),
        s => format!("{} h {:02} m", s / 3600, s / 60 % 60),
    }
}

/// US dollars, from millionths of a dollar.
#[must_use]
pub fn usd(micros: u64) -> String {
    let usd = micros as f64 / 1e6;
    if usd >= 1.0 || micros == 0 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

/// US dollars with two decimals, for the status line.
#[must_use]
pub fn cents(micros: u64) -> String {
    format!("${:.2}", micros as f64 / 1e6)
}

/// A number with thousands separators.
#[must_use]
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A short form of a number: `4k`, `1.2M`.
#[must_use]
pub fn about(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{}k", n / 1_000),
        _ => format!("{}.{}M", n / 1_000_000, n / 100_000 % 10),
    }
}

/// At most `most` characters, with an ellipsis if cut.
#[must_use]
pub fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(3)).collect::<String>() + "...",
    }
}

/// The first line that is not blank.
#[must_use]
pub fn first_line(text: &str) -> String {
    one_line(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default())
}

/// The arguments of a call, if they are an object.
#[must_use]
pub fn arguments(call: &CallPart) -> Option<Map<String, Value>> {
    serde_json::from_str(&call.args).ok()
}

fn words_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let word = |w: &Value| w.as_str().map_or_else(|| w.to_string(), str::to_owned);
            Some(words.iter().map(word).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

/// The files that a patch touches, as the tool reads it.
fn patched(patch: &str) -> String {
    let patch = Patch::parse(patch).ok();
    patch.iter().flat_map(Patch::paths).collect::<Vec<_>>().join(", ")
}

/// The files that a call changes, by the names they have afterwards.
#[must_use]
pub fn changed_files(call: &CallPart) -> Vec<String> {
    let Some(args) = arguments(call) else { return vec![gist(call)] };
    let text = |key: &str| args.get(key).and_then(Value::as_str);
    let mut files: Vec<String> = Vec::new();
    match text("patch") {
        Some(patch) => {
            let patch = Patch::parse(patch).ok();
            let last = |file: &FilePatch| file.what.paths().last().map(str::to_owned);
            files.extend(patch.iter().flat_map(|patch| &patch.files).filter_map(last));
        }
        None => files.extend(text("to").or(text("path")).map(str::to_owned)),
    }
    if files.is_empty() {
        files.push(gist(call));
    }
    let plain = |path: String| path.strip_prefix("./").unwrap_or(&path).to_owned();
    files.into_iter().map(plain).collect()
}

/// Quotes a word for a shell, if needed.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// All arguments of a call, for people: the command line first and without a name, the others with
/// theirs. Arguments that are not an object are shown as they are.
#[must_use]
pub fn shown_arguments(call: &CallPart) -> Vec<(Option<String>, String)> {
    let Some(mut args) = arguments(call) else { return vec![(None, call.args.to_string())] };
    let mut rows = Vec::new();
    let line = match args.get("command") {
        Some(Value::String(line)) => Some(line.clone()),
        Some(Value::Array(words)) if words.iter().all(Value::is_string) => {
            Some(words.iter().filter_map(Value::as_str).map(quoted).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    };
    if let Some(line) = line {
        args.remove("command");
        // As at a shell prompt: continuation lines are marked, so that none can pass for another
        // argument.
        rows.push((None, line.replace('\n', "\n> ")));
    }
    let text = |value: &Value| match value.as_str() {
        // Multi-line text goes below the name; text with other control characters is escaped as
        // JSON.
        Some(text) if text.trim_end_matches('\n').contains('\n') => {
            format!("\n  {}", text.replace('\n', "\n  "))
        }
        Some(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => value.to_string(),
    };
    rows.extend(args.iter().map(|(key, value)| (Some(key.clone()), text(value))));
    rows
}

/// How calls of a tool are shown; `None` for a tool that this release does not have.
#[must_use]
pub fn view(tool: &str) -> Option<&'static ToolView> {
    VIEWS.iter().find(|(name, _)| *name == tool).map(|(_, view)| view)
}

/// What tells this call from others of its tool: the command, the path, the pattern; all arguments
/// if there is none.
#[must_use]
pub fn gist(call: &CallPart) -> String {
    const OTHER: ToolView = ToolView::of_path("");
    let summary = || {
        let args = arguments(call)?;
        let mut out = String::new();
        for piece in view(&call.tool).unwrap_or(&OTHER).summary {
            let text = |key: &&str| written(args.get(*key)?, piece.form);
            match piece.arguments.iter().filter_map(text).find(|text| !text.is_empty()) {
                Some(text) if out.is_empty() => out.push_str(&text),
                Some(text) => out.extend([piece.before, &text]),
                None => out.push_str(piece.default?),
            }
        }
        Some(out)
    };
    summary().unwrap_or_else(|| call.args.to_string())
}

/// An argument in this form.
fn written(value: &Value, form: Form) -> Option<String> {
    match form {
        Form::Text => words_of(value),
        Form::Quoted => words_of(value).map(|text| format!("{text:?}")),
        Form::Json => Some(value.to_string()),
        Form::PatchedFiles => words_of(value).map(|patch| patched(&patch)),
        Form::StepCount => value.as_array().map(|steps| dunnock_proto::count(steps.len(), "step")),
    }
}
