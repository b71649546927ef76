//! Calls written as text: marked ones, as the prompt asks for, and the forms that models fall into instead.
//!
//! A mark counts only at the beginning of a line, outside of fences, with nothing behind it on its last line: whoever shows
//! a call to somebody quotes it, indents it or puts it into a sentence. A bare JSON object, or one in a fence, counts only if
//! it is all there is.
//!
//! Invariant: the same calls come out whatever the pieces in which the text came in.
//! Invariant: nothing that was cut off or does not fit comes out as a call that can run.

use super::{Callable, Found, Heard, checked, json_prefix};
use dunnock_proto::Part;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a form begins with, and what ends it.
const MARKS: &[(&str, &str)] = &[
    ("<tool_call>", "</tool_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<function_calls>", "</function_calls>"),
    ("<function=", "</function>"),
    ("<invoke ", "</invoke>"),
    ("[TOOL_CALLS]", "\n"),
    ("<|python_tag|>", "\n"),
    ("```tool_call\n", "```"),
];

/// Languages of a fence that may hold a call, if the fence is all there is.
const FENCES: &[&str] = &["json", "tool_call", "tool_code", "tool", "xml", ""];

/// How often the end of one form is looked for; after that only at the end of the answer.
const TRIES: usize = 64;

/// Reads the words of an answer.
#[derive(Debug)]
pub struct Reader {
    tools: Arc<[Callable]>,
    /// What was not let go yet.
    held: String,
    at: At,
    /// The fence that is open: its character and how many.
    fence: Option<(char, usize)>,
    /// Nothing was let go so far.
    first: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum At {
    /// The beginning of a line.
    Line,
    /// Inside a line.
    Words,
    /// Inside a form, which ends with this; tries so far, and up to where the end was looked for.
    Form { end: &'static str, tries: usize, looked: usize },
    /// All of the answer may be one call.
    Whole,
}

impl Reader {
    /// A reader that knows these tools.
    #[must_use]
    pub fn new(tools: Arc<[Callable]>) -> Self {
        Self { tools, held: String::new(), at: At::Line, fence: None, first: true }
    }

    /// Takes more words.
    pub fn feed(&mut self, more: &str, out: &mut Vec<Heard>) {
        self.held.push_str(more);
        while self.step(false, out) {}
    }

    /// What is held back.
    pub(crate) fn forget(&mut self) -> String {
        self.at = At::Line;
        std::mem::take(&mut self.held)
    }

    /// Nothing more comes.
    pub fn finish(&mut self, cut: bool, out: &mut Vec<Heard>) {
        if self.at == At::Line && self.first && whole_may_be_a_call(&self.held) != Some(false) {
            self.at = At::Whole;
        }
        if self.at == At::Whole {
            let text = std::mem::take(&mut self.held);
            match whole(&self.tools, &text) {
                Some(calls) => return out.extend(calls.into_iter().map(Heard::Call)),
                None => {
                    self.held = text;
                    self.at = At::Line;
                    self.first = false;
                }
            }
        }
        while self.step(true, out) {}
        let rest = std::mem::take(&mut self.held);
        if rest.is_empty() {
            return;
        }
        if let At::Form { .. } = self.at {
            let why = if cut { "the answer was cut off inside this call" } else { "this call has no end" };
            let tool = name_in(&rest).unwrap_or_else(|| "unknown".into());
            out.push(Heard::Call(Found { tool, args: rest, recovered: true, fault: Some(why.into()) }));
        } else {
            out.push(Heard::Text(rest));
        }
    }

    fn let_go(&mut self, len: usize, out: &mut Vec<Heard>) {
        let text: String = self.held.drain(..len).collect();
        self.first &= text.trim().is_empty();
        if !text.is_empty() {
            out.push(Heard::Text(text));
        }
    }

    /// Does what can be done; whether there may be more to do.
    fn step(&mut self, last: bool, out: &mut Vec<Heard>) -> bool {
        if self.held.is_empty() {
            return false;
        }
        match self.at {
            At::Whole => false,
            At::Words => {
                let end = self.held.find('\n').map_or(self.held.len(), |at| at + 1);
                if self.held.get(..end).is_some_and(|line| line.ends_with('\n')) {
                    self.at = At::Line;
                }
                self.let_go(end, out);
                true
            }
            At::Line => self.line(last, out),
            At::Form { end, tries, looked } => self.form(end, tries, looked, last, out),
        }
    }

    /// At the beginning of a line: what kind of line it is, once that can be told.
    fn line(&mut self, last: bool, out: &mut Vec<Heard>) -> bool {
        if self.first && self.fence.is_none() {
            match whole_may_be_a_call(&self.held) {
                Some(true) => {
                    self.at = At::Whole;
                    return false;
                }
                None if !last => return false,
                Some(false) | None => {}
            }
        }
        let line = self.held.split_inclusive('\n').next().unwrap_or_default();
        let complete = last || line.ends_with('\n');
        let text = line.trim_start_matches(' ');
        let indented = line.len() - text.len() > 3;
        if let Some((mark, many)) = self.fence {
            if !complete && text.trim_end().chars().all(|c| c == mark) {
                return false; // it may be the end of the fence
            }
            let ends = text.trim_end();
            if !indented && ends.chars().all(|c| c == mark) && ends.chars().count() >= many {
                self.fence = None;
            }
            self.at = At::Words;
            return true;
        }
        if !indented {
            let from = line.len() - text.len();
            let rest = self.held.get(from..).unwrap_or_default();
            if let Some((_, end)) = MARKS.iter().find(|(mark, _)| rest.starts_with(mark)) {
                self.let_go(from, out);
                self.at = At::Form { end, tries: 0, looked: 0 };
                return true;
            }
            let may_be = |mark: &str| mark.starts_with(rest) || mark.starts_with(rest.trim_end());
            if !last && !line.ends_with('\n') && (rest.is_empty() || MARKS.iter().any(|(mark, _)| may_be(mark))) {
                return false;
            }
            for mark in ['`', '~'] {
                let many = text.chars().take_while(|c| *c == mark).count();
                let short = many == text.trim_end().len();
                if !complete && many > 0 && short {
                    return false; // more of them may come
                }
                let info = text.get(many..).unwrap_or_default();
                if many >= 3 && (mark == '~' || complete || !info.is_empty()) && !info.contains('`') {
                    self.fence = Some((mark, many));
                }
            }
        } else if !complete && text.is_empty() {
            return false;
        }
        self.at = At::Words;
        true
    }

    fn form(&mut self, end: &'static str, tries: usize, looked: usize, last: bool, out: &mut Vec<Heard>) -> bool {
        if !last {
            let from = self.held.floor_char_boundary(looked.saturating_sub(end.len()));
            let found = self.held.get(from..).is_some_and(|new| new.contains(end));
            self.at = At::Form { end, tries, looked: self.held.len() };
            if !found || tries >= TRIES {
                return false;
            }
            self.at = At::Form { end, tries: tries + 1, looked: self.held.len() };
        }
        match parse(&self.tools, &self.held, last) {
            Parsed::More => false,
            Parsed::Calls(calls, len) => {
                // Nothing may stand behind it on its line.
                let rest = self.held.get(len..).unwrap_or_default();
                let behind = rest.split('\n').next().unwrap_or_default();
                let another = MARKS.iter().any(|(mark, _)| behind.trim_start().starts_with(mark));
                let may_be = MARKS.iter().any(|(mark, _)| mark.starts_with(behind.trim_start()));
                if !last && !rest.contains('\n') && !another && may_be {
                    return false; // not to be told yet
                }
                if !behind.trim().is_empty() && !another {
                    self.at = At::Words;
                    return true; // it was shown, not made
                }
                let skip = len + (behind.len() - behind.trim_start().len());
                let skip = if behind.trim().is_empty() { (len + behind.len() + 1).min(self.held.len()) } else { skip };
                self.held.drain(..skip);
                self.first = false;
                out.extend(calls.into_iter().map(Heard::Call));
                self.at = At::Line;
                true
            }
            Parsed::Not => {
                self.at = At::Words;
                true
            }
        }
    }
}

/// Whether an answer that begins so may be one call and nothing else; `None` when that cannot be told yet.
fn whole_may_be_a_call(text: &str) -> Option<bool> {
    let text = text.trim_start();
    if text.is_empty() {
        return None;
    }
    if text.starts_with('{') {
        return Some(true);
    }
    if text.starts_with('[') {
        let mark = "[TOOL_CALLS]";
        return if text.starts_with(mark) {
            Some(false)
        } else if mark.starts_with(text) {
            None
        } else {
            Some(true)
        };
    }
    if let Some(rest) = text.strip_prefix("```") {
        return match rest.split_once('\n') {
            Some((info, _)) => Some(FENCES.contains(&info.trim())),
            None if FENCES.iter().any(|f| f.starts_with(rest.trim())) => None,
            None => Some(false),
        };
    }
    if "```".starts_with(text) { None } else { Some(false) }
}

/// An answer that is nothing but calls: bare, or in one fence.
fn whole(tools: &[Callable], text: &str) -> Option<Vec<Found>> {
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
            let Parsed::Calls(found, len) = parse(tools, text, true) else { return None };
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
            // It must look like a call of ours: any other JSON is an answer.
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

/// What came of reading a form.
enum Parsed {
    More,
    Calls(Vec<Found>, usize),
    /// It is text.
    Not,
}

/// A form at the beginning of a text.
fn parse(tools: &[Callable], text: &str, last: bool) -> Parsed {
    let rest = |mark: &str| text.strip_prefix(mark);
    if let Some(inside) = rest("<tool_call>") {
        return tool_call(tools, text, inside, last);
    }
    for (open, close) in [("<tool_calls>", "</tool_calls>"), ("<function_calls>", "</function_calls>")] {
        if let Some(inside) = rest(open) {
            return group(tools, text, inside, close, last);
        }
    }
    if text.starts_with("<function=") || text.starts_with("<invoke ") {
        return match tagged(tools, text) {
            Ok(Some((call, len))) => Parsed::Calls(vec![call], len),
            Ok(None) => Parsed::More,
            // Whoever names a tool of ours means it; any other tag is text.
            Err(()) if named(text).is_some_and(|name| tools.iter().any(|t| t.name == name)) => {
                let close = if text.starts_with("<function=") { "</function>" } else { "</invoke>" };
                broken(text, close, "its parameters cannot be read")
            }
            Err(()) => Parsed::Not,
        };
    }
    if let Some(inside) = rest("```tool_call\n") {
        let Some(end) = inside.find("\n```") else { return if last { Parsed::Not } else { Parsed::More } };
        let body = inside.get(..end).unwrap_or_default();
        return match whole(tools, body) {
            Some(calls) => Parsed::Calls(calls, text.len() - inside.len() + end + "\n```".len()),
            None => Parsed::Not,
        };
    }
    for mark in ["[TOOL_CALLS]", "<|python_tag|>"] {
        if let Some(inside) = rest(mark) {
            return match json_prefix(inside) {
                Ok(Some((value, len))) => match json_calls(tools, value) {
                    Some(calls) => Parsed::Calls(calls, mark.len() + len),
                    None => Parsed::Not,
                },
                Ok(None) => {
                    if last {
                        Parsed::Not
                    } else {
                        Parsed::More
                    }
                }
                Err(_) => Parsed::Not,
            };
        }
    }
    Parsed::Not
}

/// `<tool_call>` around JSON, around a `<function=`, or around keys and values.
fn tool_call(tools: &[Callable], text: &str, inside: &str, last: bool) -> Parsed {
    const CLOSE: &str = "</tool_call>";
    let body = inside.trim_start();
    let start = text.len() - body.len();
    if body.starts_with("<function=") || body.starts_with("<invoke ") {
        return match tagged(tools, body) {
            Ok(Some((call, len))) => {
                let rest = body.get(len..).unwrap_or_default();
                let after = rest.trim_start();
                match after.strip_prefix(CLOSE) {
                    Some(behind) => Parsed::Calls(vec![call], text.len() - behind.len()),
                    None if last || !CLOSE.starts_with(after) => Parsed::Calls(vec![call], start + len),
                    None => Parsed::More,
                }
            }
            Ok(None) => Parsed::More,
            Err(()) => broken(text, CLOSE, "it cannot be read"),
        };
    }
    if !body.starts_with(['{', '[']) {
        // A name, then keys and values.
        let Some(end) = body.find(CLOSE) else { return Parsed::More };
        let whole = body.get(..end).unwrap_or_default();
        let name = whole.split(['\n', '<']).next().unwrap_or_default().trim();
        return match keyed(tools, name, whole) {
            Some(call) => Parsed::Calls(vec![call], start + end + CLOSE.len()),
            None => broken(text, CLOSE, "it is neither JSON nor keys and values"),
        };
    }
    match json_prefix(body) {
        Ok(None) => Parsed::More,
        Err(why) => broken(text, CLOSE, &why),
        Ok(Some((value, len))) => {
            let rest = body.get(len..).unwrap_or_default();
            let after = rest.trim_start();
            let len = match after.strip_prefix(CLOSE) {
                Some(behind) => text.len() - behind.len(),
                // Models forget the end of what they began.
                None if last => start + len,
                None if CLOSE.starts_with(after) => return Parsed::More,
                None => start + len,
            };
            match json_calls(tools, value) {
                Some(calls) => Parsed::Calls(calls, len),
                None => broken(text, CLOSE, "it names no tool"),
            }
        }
    }
}

/// A marked call that cannot be read: the model is told, up to its end or the end of everything.
fn broken(text: &str, close: &str, why: &str) -> Parsed {
    let len = text.find(close).map_or(text.len(), |at| at + close.len());
    let args = text.get(..len).unwrap_or_default().to_owned();
    let tool = name_in(&args).unwrap_or_else(|| "unknown".into());
    Parsed::Calls(vec![Found { tool, args, recovered: true, fault: Some(format!("this call is broken: {why}")) }], len)
}

/// The name that something broken seems to call.
fn name_in(text: &str) -> Option<String> {
    if let Some(name) = named(text) {
        return Some(name);
    }
    let (_, rest) = text.split_once("\"name\"").or_else(|| text.split_once("<function="))?;
    let rest = rest.trim_start_matches([' ', ':', '"', '\n']);
    let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect();
    name.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(name)
}

/// The name in a tag at the beginning.
fn named(text: &str) -> Option<String> {
    let rest = text.strip_prefix("<function=").or_else(|| text.strip_prefix("<invoke name="))?;
    let name = rest.split('>').next()?.trim().trim_matches(['"', '\'']);
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then(|| name.to_owned()).filter(|n| !n.is_empty())
}

/// Several forms between two marks.
fn group(tools: &[Callable], text: &str, inside: &str, close: &str, last: bool) -> Parsed {
    let mut calls = Vec::new();
    let mut rest = inside.trim_start();
    loop {
        if let Some(behind) = rest.strip_prefix(close) {
            return if calls.is_empty() { Parsed::Not } else { Parsed::Calls(calls, text.len() - behind.len()) };
        }
        if rest.is_empty() || close.starts_with(rest) {
            return if last && !calls.is_empty() { Parsed::Calls(calls, text.len()) } else { Parsed::More };
        }
        if rest.starts_with(['{', '[']) {
            match json_prefix(rest) {
                Ok(Some((value, len))) => match json_calls(tools, value) {
                    Some(found) => {
                        calls.extend(found);
                        rest = rest.get(len..).unwrap_or_default().trim_start();
                        continue;
                    }
                    None => return Parsed::Not,
                },
                Ok(None) => return Parsed::More,
                Err(_) => return Parsed::Not,
            }
        }
        match parse(tools, rest, last) {
            Parsed::Calls(found, len) if len > 0 => {
                calls.extend(found);
                rest = rest.get(len..).unwrap_or_default().trim_start();
            }
            Parsed::More => return Parsed::More,
            Parsed::Calls(..) | Parsed::Not => return Parsed::Not,
        }
    }
}

/// `<function=NAME>` or `<invoke name="NAME">` with parameters or JSON inside: the call and its length; `None`: more must
/// come.
fn tagged(tools: &[Callable], text: &str) -> Result<Option<(Found, usize)>, ()> {
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
            Some(behind) => Ok(Some((checked(tools, name, value.get().to_owned(), true), text.len() - behind.len()))),
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
        // Some add `string="true"` and the like behind the name.
        let key = key.split(['"', ' ']).next().unwrap_or_default();
        let Some((value, behind)) = value.split_once(end) else { return Ok(None) };
        // What is behind must be the next parameter or the end: else the value held the mark itself.
        rest = behind.trim_start();
        let property = known.and_then(|t| t.schema.get("properties")?.get(key));
        args.insert(key.to_owned(), typed(property, value));
    }
}

/// `NAME` and `<arg_key>K</arg_key><arg_value>V</arg_value>`.
fn keyed(tools: &[Callable], name: &str, whole: &str) -> Option<Found> {
    let mut rest = whole.get(whole.find(name)? + name.len()..)?.trim_start();
    let known = tools.iter().find(|t| t.name == name)?;
    let mut args = Map::new();
    while !rest.is_empty() {
        let (key, after) = rest.strip_prefix("<arg_key>")?.split_once("</arg_key>")?;
        let (value, after) = after.trim_start().strip_prefix("<arg_value>")?.split_once("</arg_value>")?;
        let property = known.schema.get("properties").and_then(|p| p.get(key.trim()));
        args.insert(key.trim().to_owned(), typed(property, value));
        rest = after.trim_start();
    }
    Some(checked(tools, name, Value::Object(args).to_string(), true))
}

/// A value that was written as plain text, by what the schema wants.
fn typed(property: Option<&Value>, text: &str) -> Value {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let plain = Value::String(text.to_owned());
    let Some(property) = property else { return plain };
    // A text that the schema takes as a text is one, unless it is a list where that fits, too.
    let parsed = serde_json::from_str::<Value>(text.trim()).ok();
    match parsed {
        Some(value) if super::schema::check(property, &value).is_ok() => {
            let text_fits = super::schema::check(property, &plain).is_ok();
            if text_fits && !value.is_array() { plain } else { value }
        }
        Some(_) | None => plain,
    }
}

/// One call or a list of them, as JSON; `None` if it is neither.
fn json_calls(tools: &[Callable], value: &RawValue) -> Option<Vec<Found>> {
    if value.get().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
        let calls: Option<Vec<Found>> = items.iter().map(|item| json_call(tools, item)).collect();
        return calls.filter(|calls| !calls.is_empty());
    }
    json_call(tools, value).map(|call| vec![call])
}

/// A call as JSON, in the words of whoever trained the model.
fn json_call(tools: &[Callable], value: &RawValue) -> Option<Found> {
    let fields: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
    if let Some(inner) = fields.get("function").filter(|f| f.get().starts_with('{')) {
        return json_call(tools, inner);
    }
    let name = ["name", "tool", "tool_name", "function"].iter().find_map(|key| fields.get_key_value(*key))?;
    let tool: String = serde_json::from_str(name.1.get()).ok()?;
    let args = ["arguments", "args", "parameters", "params", "input"].iter().find_map(|key| fields.get(*key));
    let args = match args {
        // Written as a text that holds JSON.
        Some(text) if text.get().starts_with('"') => serde_json::from_str::<String>(text.get()).ok()?,
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

/// An answer of the model's, as it would have written it.
pub(crate) fn answer(parts: &[Part], cut: bool) -> String {
    let mut text = Part::words(parts);
    for call in Part::calls(parts) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        match (&call.fault, call.broken()) {
            // As it was written, so that the model sees what it did.
            (Some(_), _) | (None, Some(_)) if call.args.starts_with('<') => text.push_str(&call.args),
            (_, broken) => {
                let args = if broken.is_some() { "{}" } else { &call.args };
                text.push_str(&format!(
                    "<tool_call>\n{{\"name\": {:?}, \"arguments\": {args}}}\n</tool_call>",
                    call.tool
                ));
            }
        }
    }
    if cut {
        text.push_str("\n[cut off here]");
    }
    text
}

/// What came of a call, for the model. Output cannot end its own mark.
pub(crate) fn result(tool: &str, text: &str, ok: bool) -> String {
    let text = text.replace("</tool_result", "<\\/tool_result");
    let state = if ok { "" } else { " failed=\"true\"" };
    format!("<tool_result name=\"{tool}\"{state}>\n{text}\n</tool_result>")
}
