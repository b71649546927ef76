//! Calls written as text: marked ones, as the prompt asks for, and the forms that models fall into instead.
//!
//! A mark counts only at the beginning of a line, outside of fences, with nothing behind it on its last line: whoever shows
//! a call to somebody quotes it, indents it or puts it into a sentence. A bare JSON object, or one in a fence, counts only if
//! it is all there is.
//!
//! Invariant: the same calls come out whatever the pieces in which the text came in.
//! Invariant: nothing that was cut off or does not fit comes out as a call that can run, nor does anything behind it.

use super::{Callable, Found, Heard, checked, json_prefix};
use dunnock_proto::Part;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
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

/// Marks that a value of a parameter cannot hold: it may show a call, and where it ends cannot be told then.
const OPENINGS: &[&str] = &["<function=", "<parameter", "<invoke ", "<tool_call>", "<arg_key>", "<arg_value>"];

/// What begins something that is shown, and what ends it.
const SHOWN: &[(&str, &str)] = &[
    ("<pre", "</pre>"),
    ("<code", "</code>"),
    ("<example", "</example>"),
    ("<!--", "-->"),
    ("<details", "</details>"),
];

/// Reads the words of an answer.
#[derive(Debug)]
pub struct Reader {
    tools: Arc<[Callable]>,
    /// What was not let go yet, from `pos` on.
    held: String,
    pos: usize,
    at: At,
    quote: Option<Quote>,
    /// Nothing but white space was let go so far.
    first: bool,
    /// A call was found.
    called: bool,
    /// Whatever comes now is words: something was broken, or made up.
    over: bool,
}

/// Words that are shown, not meant.
#[derive(Debug)]
enum Quote {
    /// A fence: its character, how many, and how far in its end may stand.
    Fence { mark: char, many: usize, indent: usize },
    /// A block that ends with this.
    Block(&'static str),
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
        let (held, at) = (String::new(), At::Line);
        Self { tools, held, pos: 0, at, quote: None, first: true, called: false, over: false }
    }

    /// Takes more words.
    pub fn feed(&mut self, more: &str, out: &mut Vec<Heard>) {
        self.held.push_str(more);
        while self.step(false, out) {}
        self.held.drain(..self.pos);
        self.pos = 0;
    }

    /// What is held back; the answer begins anew.
    pub(crate) fn forget(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        *self = Self::new(self.tools.clone());
        held
    }

    fn rest(&self) -> &str {
        self.held.get(self.pos..).unwrap_or_default()
    }

    /// Nothing more comes.
    pub fn finish(&mut self, cut: bool, out: &mut Vec<Heard>) {
        if self.at == At::Line && self.first && whole_may_be_a_call(self.rest()) != Some(false) {
            self.at = At::Whole;
        }
        if self.at == At::Whole {
            if let Some(calls) = whole(&self.tools, self.rest()) {
                self.held.clear();
                return out.extend(calls.into_iter().map(Heard::Call));
            }
            self.at = At::Line;
            self.first = false;
        }
        while self.step(true, out) {}
        let rest = self.rest().to_owned();
        self.held.clear();
        self.pos = 0;
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
        let text = self.rest().get(..len).unwrap_or_default().to_owned();
        self.pos += len;
        self.first &= text.trim().is_empty();
        match out.last_mut() {
            _ if text.is_empty() => {}
            Some(Heard::Text(before)) => before.push_str(&text),
            _ => out.push(Heard::Text(text)),
        }
    }

    /// Does what can be done; whether there may be more to do.
    fn step(&mut self, last: bool, out: &mut Vec<Heard>) -> bool {
        if self.rest().is_empty() {
            return false;
        }
        match self.at {
            At::Whole => false,
            At::Words => {
                let end = self.rest().find('\n').map(|at| at + 1);
                self.let_go(end.unwrap_or_else(|| self.rest().len()), out);
                if end.is_some() {
                    self.at = At::Line;
                }
                true
            }
            At::Line => self.line(last, out),
            At::Form { end, tries, looked } => self.form(end, tries, looked, last, out),
        }
    }

    /// At the beginning of a line: what kind of line it is, once that can be told.
    fn line(&mut self, last: bool, out: &mut Vec<Heard>) -> bool {
        let rest = self.rest();
        let line = rest.split_inclusive('\n').next().unwrap_or_default();
        let complete = last || line.ends_with('\n');
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if self.quote.is_some() {
            return self.quoted(last, out);
        }
        if self.over || indent > 3 {
            self.at = At::Words;
            return true;
        }
        if text.trim().is_empty() {
            // A blank line says nothing; half of one may still become something.
            let blank = line.len();
            if complete {
                self.let_go(blank, out);
            }
            return complete && blank > 0;
        }
        if self.first {
            match whole_may_be_a_call(rest) {
                Some(true) => {
                    self.at = At::Whole;
                    return false;
                }
                None if !last => return false,
                Some(false) | None => {}
            }
        }
        let from_here = rest.get(indent..).unwrap_or_default();
        if let Some((_, end)) = MARKS.iter().find(|(mark, _)| from_here.starts_with(mark)) {
            self.let_go(indent, out);
            self.at = At::Form { end, tries: 0, looked: 0 };
            return true;
        }
        if !complete && MARKS.iter().any(|(mark, _)| mark.starts_with(text)) {
            return false;
        }
        // A result that nobody gave: what follows it is made up, too.
        const RESULTS: &[&str] = &["<tool_result", "<tool_response", "<function_result"];
        if self.called && RESULTS.iter().any(|mark| text.starts_with(mark)) {
            self.over = true;
            return true;
        }
        if !complete && (text.starts_with('<') || listed(text).starts_with(['`', '~']) || half_listed(listed(text))) {
            // Whether it opens a quotation is told by the whole line. A long one is looked at again only at its end.
            return false;
        }
        self.quote = opens(text, indent);
        self.at = At::Words;
        true
    }

    /// A line inside a quotation: whether that ends here.
    fn quoted(&mut self, last: bool, out: &mut Vec<Heard>) -> bool {
        let line = self.rest().split_inclusive('\n').next().unwrap_or_default();
        if !last && !line.ends_with('\n') {
            return false;
        }
        let text = line.trim_start_matches(' ');
        let ends = match &self.quote {
            Some(Quote::Fence { mark, many, indent }) => {
                let marks = text.trim_end();
                let all = !marks.is_empty() && marks.chars().all(|c| c == *mark);
                all && marks.chars().count() >= *many && line.len() - text.len() <= *indent
            }
            Some(Quote::Block(end)) => line.contains(end),
            None => true,
        };
        let len = line.len();
        if ends {
            self.quote = None;
        }
        self.let_go(len, out);
        true
    }

    fn form(&mut self, end: &'static str, tries: usize, looked: usize, last: bool, out: &mut Vec<Heard>) -> bool {
        let held = self.rest().len();
        if !last {
            let from = self.rest().floor_char_boundary(looked.saturating_sub(end.len()));
            let found = self.rest().get(from..).is_some_and(|new| new.contains(end));
            // What stands behind a form that is whole is waited for without another look at the form.
            let waits = tries > 0 && self.rest().get(looked..).is_some_and(|new| new.contains('\n'));
            if !(found || waits) || tries >= TRIES {
                self.at = At::Form { end, tries, looked: held };
                return false;
            }
            self.at = At::Form { end, tries: tries + 1, looked: held };
        }
        match parse(&self.tools, self.rest(), last) {
            Parsed::More => false,
            Parsed::Broken(call, len) => {
                self.pos += len;
                (self.over, self.first) = (true, false);
                out.push(Heard::Call(call));
                self.at = At::Words;
                true
            }
            Parsed::Calls(calls, len) => {
                // Nothing may stand behind it on its line.
                let rest = self.rest().get(len..).unwrap_or_default();
                let behind = rest.split('\n').next().unwrap_or_default();
                let next = behind.trim_start();
                let another = MARKS.iter().any(|(mark, _)| next.starts_with(mark));
                let may_be = MARKS.iter().any(|(mark, _)| mark.starts_with(next));
                if !last && !rest.contains('\n') && !another && may_be {
                    return false; // not to be told yet
                }
                if !next.trim().is_empty() && !another {
                    self.at = At::Words;
                    return true; // it was shown, not made
                }
                let skip = if another { behind.len() - next.len() } else { (behind.len() + 1).min(rest.len()) };
                self.pos += len + skip;
                (self.first, self.called) = (false, true);
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

/// A line without the marks of a list.
fn listed(text: &str) -> &str {
    let mut text = text;
    for _ in 0..8 {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let after = text.get(digits..).unwrap_or_default();
        let rest = match digits {
            0 => text.strip_prefix(['-', '*', '+']),
            1..=9 => after.strip_prefix(['.', ')']),
            _ => None,
        };
        let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with([' ', '\n'])) else { return text };
        text = rest.trim_start_matches(' ');
    }
    text
}

/// Whether this may become the mark of a list, or is one with nothing behind it.
fn half_listed(text: &str) -> bool {
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - after.len();
    match digits {
        0 => ["", "-", "*", "+"].contains(&after),
        1..=9 => ["", ".", ")"].contains(&after),
        _ => false,
    }
}

/// The quotation that a line opens.
fn opens(text: &str, indent: usize) -> Option<Quote> {
    let lower = text.to_ascii_lowercase();
    if let Some((open, end)) = SHOWN.iter().find(|(open, _)| lower.starts_with(open)) {
        return (!lower.get(open.len()..)?.contains(end)).then_some(Quote::Block(end));
    }
    let inner = listed(text);
    let indent = indent + text.len() - inner.len() + 3;
    ['`', '~'].into_iter().find_map(|mark| {
        let many = inner.chars().take_while(|c| *c == mark).count();
        let info = inner.get(many..).unwrap_or_default();
        (many >= 3 && !(mark == '`' && info.contains('`'))).then_some(Quote::Fence { mark, many, indent })
    })
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
            let (found, len) = match parse(tools, text, true) {
                Parsed::Calls(found, len) => (found, len),
                Parsed::Broken(call, _) => (vec![call], text.len()),
                Parsed::More | Parsed::Not => return None,
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
    /// It was meant as a call and cannot be read: nothing behind it counts.
    Broken(Found, usize),
    /// It is text.
    Not,
}

/// A form at the beginning of a text.
fn parse(tools: &[Callable], text: &str, last: bool) -> Parsed {
    for (open, close) in [("<tool_calls>", "</tool_calls>"), ("<function_calls>", "</function_calls>")] {
        if let Some(inside) = text.strip_prefix(open) {
            return group(tools, text, inside, close, last);
        }
    }
    one(tools, text, last)
}

/// A form that is no group of others.
fn one(tools: &[Callable], text: &str, last: bool) -> Parsed {
    let rest = |mark: &str| text.strip_prefix(mark);
    if let Some(inside) = rest("<tool_call>") {
        return tool_call(tools, text, inside, last);
    }
    if text.starts_with("<function=") || text.starts_with("<invoke ") {
        return match tagged(tools, text) {
            Ok(Some((call, len))) => Parsed::Calls(vec![call], len),
            Ok(None) => Parsed::More,
            // Whoever names a tool of ours means it; any other tag is text.
            Err(()) if named(text).is_some_and(|name| tools.iter().any(|t| t.name == name)) => {
                let close = if text.starts_with("<function=") { "</function>" } else { "</invoke>" };
                broken(text, close, last, "its parameters cannot be read")
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
            Err(()) => broken(text, CLOSE, last, "it cannot be read"),
        };
    }
    if !body.starts_with(['{', '[']) {
        // A name, then keys and values.
        let Some(end) = body.find(CLOSE) else { return Parsed::More };
        let whole = body.get(..end).unwrap_or_default();
        let name = whole.split(['\n', '<']).next().unwrap_or_default().trim();
        return match keyed(tools, name, whole) {
            Some(call) => Parsed::Calls(vec![call], start + end + CLOSE.len()),
            None => broken(text, CLOSE, last, "it is neither JSON nor keys and values"),
        };
    }
    match json_prefix(body) {
        Ok(None) => Parsed::More,
        Err(why) => broken(text, CLOSE, last, &why),
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
                None => broken(text, CLOSE, last, "it names no tool"),
            }
        }
    }
}

/// A marked call that cannot be read: the model is told, up to its end or the end of everything.
fn broken(text: &str, close: &str, last: bool, why: &str) -> Parsed {
    let len = match text.find(close) {
        Some(at) => at + close.len(),
        None if last => text.len(),
        None => return Parsed::More,
    };
    let args = text.get(..len).unwrap_or_default().to_owned();
    let tool = name_in(&args).unwrap_or_else(|| "unknown".into());
    Parsed::Broken(Found { tool, args, recovered: true, fault: Some(format!("this call is broken: {why}")) }, len)
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
        match one(tools, rest, last) {
            Parsed::Calls(found, len) if len > 0 => {
                calls.extend(found);
                rest = rest.get(len..).unwrap_or_default().trim_start();
            }
            Parsed::More => return Parsed::More,
            Parsed::Broken(..) => return broken(text, close, last, "a call in it cannot be read"),
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
        if OPENINGS.iter().any(|mark| value.contains(mark)) {
            return Err(());
        }
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
        if OPENINGS.iter().any(|mark| value.contains(mark)) {
            return None;
        }
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
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
    // Some put it one level deeper.
    if let Some(inner) = fields.get("function").filter(|f| f.get().starts_with('{')) {
        fields = serde_json::from_str(inner.get()).ok()?;
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
