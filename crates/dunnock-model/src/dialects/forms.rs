//! The forms in which models write calls: marked JSON, tags with parameters, keys and values, bare
//! and fenced JSON.
//!
//! Each parser starts at the beginning of a text; the form may be complete, incomplete or absent.

use super::{Callable, FoundCall, checked, json_prefix, schema};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Languages of a fence that may contain a call, if the fence is the whole answer.
pub(super) const FENCES: &[&str] = &["json", "tool_call", "tool_code", "tool", "xml", ""];

/// Markers that a parameter value must not contain: it may quote a call, and then its end is
/// ambiguous.
const OPENINGS: &[&str] =
    &["<function=", "<parameter", "<invoke ", "<tool_call>", "<arg_key>", "<arg_value>"];

/// The calls of an answer that consists only of calls, bare or in one fence.
pub(super) fn whole(tools: &[Callable], text: &str) -> Option<Vec<FoundCall>> {
    let mut text = text.trim();
    if let Some(rest) = text.strip_prefix("```") {
        let (info, inside) = rest.split_once('\n')?;
        let inside = inside.trim_end().strip_suffix("```")?;
        if !FENCES.contains(&info.trim()) || inside.contains("\n```") {
            return None;
        }
        text = inside.trim();
    }
    let mut calls = Vec::new();
    while !text.is_empty() {
        if text.starts_with('<') {
            let (found, len) = match parse(tools, text, true) {
                ParsedForm::Calls(found, len) => (found, len),
                ParsedForm::Broken(call, _) => (vec![call], text.len()),
                ParsedForm::More | ParsedForm::Not => return None,
            };
            calls.extend(found);
            text = text.get(len..)?.trim_start();
            continue;
        }
        let (value, len) = json_prefix(text).ok()??;
        let value: Value = serde_json::from_str(value.get()).ok()?;
        let items = match value {
            Value::Array(items) => items,
            other => vec![other],
        };
        for item in items {
            // It must name one of our tools: any other JSON is an ordinary answer.
            let found = json_call(tools, &serde_json::value::to_raw_value(&item).ok()?)?;
            if !tools.iter().any(|t| t.name == found.tool) {
                return None;
            }
            calls.push(found);
        }
        text = text.get(len..)?.trim_start().trim_start_matches([',', ';']).trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}

/// The result of parsing a form.
pub(super) enum ParsedForm {
    More,
    Calls(Vec<FoundCall>, usize),
    /// It was meant as a call but is malformed: no call after it counts.
    Broken(FoundCall, usize),
    /// It is ordinary text.
    Not,
}

/// Parses the form at the beginning of a text.
pub(super) fn parse(tools: &[Callable], text: &str, last: bool) -> ParsedForm {
    for (open, close) in
        [("<tool_calls>", "</tool_calls>"), ("<function_calls>", "</function_calls>")]
    {
        if let Some(inside) = text.strip_prefix(open) {
            return group(tools, text, inside, close, last);
        }
    }
    one(tools, text, last)
}

/// Parses a single form, not a group.
fn one(tools: &[Callable], text: &str, last: bool) -> ParsedForm {
    let rest = |mark: &str| text.strip_prefix(mark);
    if let Some(inside) = rest("<tool_call>") {
        return tool_call(tools, text, inside, last);
    }
    if text.starts_with("<function=") || text.starts_with("<invoke ") {
        return match tagged(tools, text) {
            Ok(Some((call, len))) => ParsedForm::Calls(vec![call], len),
            Ok(None) => ParsedForm::More,
            // A tag that names one of our tools is meant as a call; any other tag is text.
            Err(()) if named(text).is_some_and(|name| tools.iter().any(|t| t.name == name)) => {
                let close =
                    if text.starts_with("<function=") { "</function>" } else { "</invoke>" };
                broken(text, close, last, "its parameters cannot be read")
            }
            Err(()) => ParsedForm::Not,
        };
    }
    if let Some(inside) = rest("```tool_call\n") {
        let Some(end) = inside.find("\n```") else {
            return if last { ParsedForm::Not } else { ParsedForm::More };
        };
        let body = inside.get(..end).unwrap_or_default();
        return match whole(tools, body) {
            Some(calls) => {
                ParsedForm::Calls(calls, text.len() - inside.len() + end + "\n```".len())
            }
            None => ParsedForm::Not,
        };
    }
    for mark in ["[TOOL_CALLS]", "<|python_tag|>"] {
        if let Some(inside) = rest(mark) {
            return match json_prefix(inside) {
                Ok(Some((value, len))) => match json_calls(tools, value) {
                    Some(calls) => ParsedForm::Calls(calls, mark.len() + len),
                    None => ParsedForm::Not,
                },
                Ok(None) => {
                    if last {
                        ParsedForm::Not
                    } else {
                        ParsedForm::More
                    }
                }
                Err(_) => ParsedForm::Not,
            };
        }
    }
    ParsedForm::Not
}

/// Parses `<tool_call>` around JSON, around `<function=`, or around keys and values.
fn tool_call(tools: &[Callable], text: &str, inside: &str, last: bool) -> ParsedForm {
    const CLOSE: &str = "</tool_call>";
    let body = inside.trim_start();
    let start = text.len() - body.len();
    if body.starts_with("<function=") || body.starts_with("<invoke ") {
        return match tagged(tools, body) {
            Ok(Some((call, len))) => {
                let rest = body.get(len..).unwrap_or_default();
                let after = rest.trim_start();
                match after.strip_prefix(CLOSE) {
                    Some(behind) => ParsedForm::Calls(vec![call], text.len() - behind.len()),
                    None if last || !CLOSE.starts_with(after) => {
                        ParsedForm::Calls(vec![call], start + len)
                    }
                    None => ParsedForm::More,
                }
            }
            Ok(None) => ParsedForm::More,
            Err(()) => broken(text, CLOSE, last, "it cannot be read"),
        };
    }
    if !body.starts_with(['{', '[']) {
        // A name, then keys and values.
        let Some(end) = body.find(CLOSE) else { return ParsedForm::More };
        let whole = body.get(..end).unwrap_or_default();
        let name = whole.split(['\n', '<']).next().unwrap_or_default().trim();
        return match keyed(tools, name, whole) {
            Some(call) => ParsedForm::Calls(vec![call], start + end + CLOSE.len()),
            None => broken(text, CLOSE, last, "it is neither JSON nor keys and values"),
        };
    }
    match json_prefix(body) {
        Ok(None) => ParsedForm::More,
        Err(why) => broken(text, CLOSE, last, &why),
        Ok(Some((value, len))) => {
            let rest = body.get(len..).unwrap_or_default();
            let after = rest.trim_start();
            let len = match after.strip_prefix(CLOSE) {
                Some(behind) => text.len() - behind.len(),
                // Models forget the closing tag.
                None if last => start + len,
                None if CLOSE.starts_with(after) => return ParsedForm::More,
                None => start + len,
            };
            match json_calls(tools, value) {
                Some(calls) => ParsedForm::Calls(calls, len),
                None => broken(text, CLOSE, last, "it names no tool"),
            }
        }
    }
}

/// A malformed marked call, up to its closing tag or the end of the text. The model is sent the
/// reason.
fn broken(text: &str, close: &str, last: bool, why: &str) -> ParsedForm {
    let len = match text.find(close) {
        Some(at) => at + close.len(),
        None if last => text.len(),
        None => return ParsedForm::More,
    };
    let args = text.get(..len).unwrap_or_default().to_owned();
    let tool = name_in(&args).unwrap_or_else(|| "unknown".into());
    ParsedForm::Broken(
        FoundCall {
            tool,
            args,
            recovered: true,
            fault: Some(format!("this call is malformed: {why}")),
        },
        len,
    )
}

/// The tool that a malformed call seems to name.
pub(super) fn name_in(text: &str) -> Option<String> {
    if let Some(name) = named(text) {
        return Some(name);
    }
    let (_, rest) = text.split_once("\"name\"").or_else(|| text.split_once("<function="))?;
    let rest = rest.trim_start_matches([' ', ':', '"', '\n']);
    let name: String =
        rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect();
    name.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(name)
}

/// The tool name in a tag at the beginning of a text.
fn named(text: &str) -> Option<String> {
    let rest = text.strip_prefix("<function=").or_else(|| text.strip_prefix("<invoke name="))?;
    let name = rest.split('>').next()?.trim().trim_matches(['"', '\'']);
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_')
        .then(|| name.to_owned())
        .filter(|n| !n.is_empty())
}

/// Parses several forms between two markers.
fn group(tools: &[Callable], text: &str, inside: &str, close: &str, last: bool) -> ParsedForm {
    let mut calls = Vec::new();
    let mut rest = inside.trim_start();
    loop {
        if let Some(behind) = rest.strip_prefix(close) {
            return if calls.is_empty() {
                ParsedForm::Not
            } else {
                ParsedForm::Calls(calls, text.len() - behind.len())
            };
        }
        if rest.is_empty() || close.starts_with(rest) {
            return if last && !calls.is_empty() {
                ParsedForm::Calls(calls, text.len())
            } else {
                ParsedForm::More
            };
        }
        if rest.starts_with(['{', '[']) {
            match json_prefix(rest) {
                Ok(Some((value, len))) => match json_calls(tools, value) {
                    Some(found) => {
                        calls.extend(found);
                        rest = rest.get(len..).unwrap_or_default().trim_start();
                        continue;
                    }
                    None => return broken(text, close, last, "a call in it names no tool"),
                },
                Ok(None) => return ParsedForm::More,
                Err(why) => return broken(text, close, last, &why),
            }
        }
        match one(tools, rest, last) {
            ParsedForm::Calls(found, len) if len > 0 => {
                calls.extend(found);
                rest = rest.get(len..).unwrap_or_default().trim_start();
            }
            ParsedForm::More => return ParsedForm::More,
            ParsedForm::Broken(..) => {
                return broken(text, close, last, "a call in it cannot be read");
            }
            ParsedForm::Calls(..) | ParsedForm::Not => return ParsedForm::Not,
        }
    }
}

/// Parses `<function=NAME>` or `<invoke name="NAME">` with parameters or JSON inside. Returns the
/// call and its length; `None` if it is incomplete.
fn tagged(tools: &[Callable], text: &str) -> Result<Option<(FoundCall, usize)>, ()> {
    let (open, close, param, end) = if text.starts_with("<function=") {
        ("<function=", "</function>", "<parameter=", "</parameter>")
    } else {
        ("<invoke name=", "</invoke>", "<parameter name=", "</parameter>")
    };
    let Some(rest) = text.strip_prefix(open) else {
        return if open.starts_with(text) { Ok(None) } else { Err(()) };
    };
    let Some((name, mut rest)) = rest.split_once('>') else { return Ok(None) };
    let name = name.trim().trim_matches(['"', '\'']);
    if name.is_empty() || name.len() > 100 || name.contains(['<', '\n']) {
        return Err(());
    }
    let known = tools.iter().find(|t| t.name == name);
    let mut args = Map::new();
    rest = rest.trim_start();
    if rest.starts_with('{') {
        let Some((value, len)) = json_prefix(rest).map_err(|_| ())? else { return Ok(None) };
        let rest = rest.get(len..).unwrap_or_default().trim_start();
        return match rest.strip_prefix(close) {
            Some(behind) => Ok(Some((
                checked(tools, name, value.get().to_owned(), true),
                text.len() - behind.len(),
            ))),
            None if close.starts_with(rest) => Ok(None),
            None => Err(()),
        };
    }
    loop {
        if let Some(behind) = rest.strip_prefix(close) {
            let args = Value::Object(args).to_string();
            return Ok(Some((checked(tools, name, args, true), text.len() - behind.len())));
        }
        let Some(more) = rest.strip_prefix(param) else {
            return if rest.is_empty() || close.starts_with(rest) || param.starts_with(rest) {
                Ok(None)
            } else {
                Err(())
            };
        };
        let Some((key, value)) = more.split_once('>') else { return Ok(None) };
        let key = key.trim().trim_matches(['"', '\'']);
        // Some add attributes such as `string="true"` after the name.
        let key = key.split(['"', ' ']).next().unwrap_or_default();
        let Some((value, behind)) = value.split_once(end) else { return Ok(None) };
        if OPENINGS.iter().any(|mark| value.contains(mark)) {
            return Err(());
        }
        // Next must be a parameter or the end; otherwise the value contained the closing tag.
        rest = behind.trim_start();
        let property = known.and_then(|t| t.schema.get("properties")?.get(key));
        args.insert(key.to_owned(), typed(property, value));
    }
}

/// Parses `NAME` followed by `<arg_key>K</arg_key><arg_value>V</arg_value>` pairs.
fn keyed(tools: &[Callable], name: &str, whole: &str) -> Option<FoundCall> {
    let mut rest = whole.get(whole.find(name)? + name.len()..)?.trim_start();
    let known = tools.iter().find(|t| t.name == name)?;
    let mut args = Map::new();
    while !rest.is_empty() {
        let (key, after) = rest.strip_prefix("<arg_key>")?.split_once("</arg_key>")?;
        let (value, after) =
            after.trim_start().strip_prefix("<arg_value>")?.split_once("</arg_value>")?;
        if OPENINGS.iter().any(|mark| value.contains(mark)) {
            return None;
        }
        let property = known.schema.get("properties").and_then(|p| p.get(key.trim()));
        args.insert(key.trim().to_owned(), typed(property, value));
        rest = after.trim_start();
    }
    Some(checked(tools, name, Value::Object(args).to_string(), true))
}

/// Converts a value that was written as plain text to the type that the schema expects.
fn typed(property: Option<&Value>, text: &str) -> Value {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let plain = Value::String(text.to_owned());
    let Some(property) = property else { return plain };
    // Text that is valid as a string stays a string, unless it is also a valid list.
    let parsed = serde_json::from_str::<Value>(text.trim()).ok();
    match parsed {
        Some(value) if schema::check(property, &value).is_ok() => {
            let text_fits = schema::check(property, &plain).is_ok();
            if text_fits && !value.is_array() { plain } else { value }
        }
        Some(_) | None => plain,
    }
}

/// Parses a JSON call or a list of them; `None` if it is neither.
fn json_calls(tools: &[Callable], value: &RawValue) -> Option<Vec<FoundCall>> {
    if value.get().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
        let calls: Option<Vec<FoundCall>> =
            items.iter().map(|item| json_call(tools, item)).collect();
        return calls.filter(|calls| !calls.is_empty());
    }
    json_call(tools, value).map(|call| vec![call])
}

/// Parses a JSON call, with the field names of various model vendors.
fn json_call(tools: &[Callable], value: &RawValue) -> Option<FoundCall> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
    // Some nest it one level deeper.
    if let Some(inner) = fields.get("function").filter(|f| f.get().starts_with('{')) {
        fields = serde_json::from_str(inner.get()).ok()?;
    }
    let name = ["name", "tool", "tool_name", "function"]
        .iter()
        .find_map(|key| fields.get_key_value(*key))?;
    let tool: String = serde_json::from_str(name.1.get()).ok()?;
    let args = ["arguments", "args", "parameters", "params", "input"]
        .iter()
        .find_map(|key| fields.get(*key));
    let args = match args {
        // Arguments as a string that contains JSON.
        Some(text) if text.get().starts_with('"') => {
            serde_json::from_str::<String>(text.get()).ok()?
        }
        Some(null) if null.get() == "null" => "{}".into(),
        Some(args) => args.get().to_owned(),
        None => {
            let beside: Map<String, Value> = fields
                .iter()
                .filter(|(key, _)| *key != name.0 && !["id", "type"].contains(&key.as_str()))
                .filter_map(|(key, raw)| Some((key.clone(), serde_json::from_str(raw.get()).ok()?)))
                .collect();
            Value::Object(beside).to_string()
        }
    };
    Some(checked(tools, &tool, args, true))
}
