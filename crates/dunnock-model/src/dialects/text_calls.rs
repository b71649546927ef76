//! Calls written as text: marked ones, as the prompt asks for, and the forms that models fall into instead.
//!
//! A mark counts only at the beginning of a line, outside of fences, with nothing behind it on its last line: whoever shows
//! a call to somebody quotes it, indents it or puts it into a sentence. A bare JSON object, or one in a fence, counts only if
//! it is all there is.
//!
//! Invariant: the same calls come out whatever the pieces in which the text came in.
//! Invariant: nothing that was cut off or does not fit comes out as a call that can run, nor does anything behind it.

use super::forms::{FENCES, ParsedForm, name_in, parse, whole};
use super::{Callable, FoundCall, Parsed};
use dunnock_proto::Part;
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

/// So much of a line is looked at for what it opens.
const LINE: usize = 16 << 10;

/// How often the end of one form is looked for; after that only at the end of the answer.
const TRIES: usize = 64;

/// What begins something that is shown, and what ends it.
const SHOWN: &[(&str, &str)] = &[
    ("<pre", "</pre>"),
    ("<code", "</code>"),
    ("<example", "</example>"),
    ("<!--", "-->"),
    ("<details", "</details>"),
];

/// The same for results, which models make up or repeat.
const RESULTS: &[(&str, &str)] = &[
    ("<tool_result", "</tool_result>"),
    ("<tool_response", "</tool_response>"),
    ("<function_result", "</function_result"),
];

/// A line of nothing but blanks is looked at as one up to here: what follows more of them is no mark.
const BLANKS: usize = 200;

/// Reads the words of an answer.
#[derive(Debug)]
pub struct Reader {
    tools: Arc<[Callable]>,
    /// What was not let go yet, from `pos` on.
    held: String,
    pos: usize,
    at: At,
    quote: Option<Quote>,
    /// The line so far, as it was let go: what it opens is told at its end.
    line: String,
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

impl Quote {
    /// Whether it ends with this line.
    fn ends(&self, line: &str) -> bool {
        let text = line.trim_start_matches(' ');
        match self {
            Self::Fence { mark, many, indent } => {
                let marks = text.trim_end();
                let all = !marks.is_empty() && marks.chars().all(|c| c == *mark);
                all && marks.chars().count() >= *many && line.len() - text.len() <= *indent
            }
            Self::Block(end) => line.to_ascii_lowercase().contains(end),
        }
    }
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
        Self { tools, held, pos: 0, at, quote: None, line: String::new(), first: true, called: false, over: false }
    }

    /// Takes more words.
    pub fn feed(&mut self, more: &str, out: &mut Vec<Parsed>) {
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
    pub fn finish(&mut self, cut: bool, out: &mut Vec<Parsed>) {
        if self.at == At::Line && self.first && whole_may_be_a_call(self.rest()) != Some(false) {
            self.at = At::Whole;
        }
        if self.at == At::Whole {
            if let Some(calls) = whole(&self.tools, self.rest()) {
                self.held.clear();
                return out.extend(calls.into_iter().map(Parsed::Call));
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
            out.push(Parsed::Call(FoundCall { tool, args: rest, recovered: true, fault: Some(why.into()) }));
        } else {
            out.push(Parsed::Text(rest));
        }
    }

    fn let_go(&mut self, len: usize, out: &mut Vec<Parsed>) {
        let text = self.rest().get(..len).unwrap_or_default().to_owned();
        self.pos += len;
        self.first &= text.trim().is_empty();
        if self.line.len() < LINE {
            self.line.push_str(&text);
        }
        match out.last_mut() {
            _ if text.is_empty() => {}
            Some(Parsed::Text(before)) => before.push_str(&text),
            _ => out.push(Parsed::Text(text)),
        }
    }

    /// Does what can be done; whether there may be more to do.
    fn step(&mut self, last: bool, out: &mut Vec<Parsed>) -> bool {
        if self.rest().is_empty() {
            return false;
        }
        match self.at {
            At::Whole => false,
            At::Words => {
                let end = self.rest().find('\n').map(|at| at + 1);
                self.let_go(end.unwrap_or_else(|| self.rest().len()), out);
                if end.is_some() {
                    self.end_line();
                }
                true
            }
            At::Line => self.line(last, out),
            At::Form { end, tries, looked } => self.form(end, tries, looked, last, out),
        }
    }

    /// A line is over: whether it ends a quotation, or opens one.
    fn end_line(&mut self) {
        // A result that nobody gave: what follows it is made up, too.
        let start = self.line.trim_start();
        self.over |= self.called && RESULTS.iter().any(|(mark, _)| start.starts_with(mark));
        self.quote = match self.quote.take() {
            Some(quote) if !quote.ends(&self.line) => Some(quote),
            Some(_) => None,
            None => opens(&self.line),
        };
        self.line.clear();
        self.at = At::Line;
    }

    /// At the beginning of a line: what kind of line it is, once that can be told.
    fn line(&mut self, last: bool, out: &mut Vec<Parsed>) -> bool {
        let rest = self.rest();
        let line = rest.split_inclusive('\n').next().unwrap_or_default();
        let complete = last || line.ends_with('\n');
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let blank = text.trim().is_empty();
        if self.quote.is_some() || self.over || indent > 3 || (blank && line.len() > BLANKS) {
            self.at = At::Words;
            return true;
        }
        if blank {
            // It says nothing; half of one may still become something.
            let len = line.len();
            if complete {
                self.let_go(len, out);
                self.line.clear();
            }
            return complete && len > 0;
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
        self.at = At::Words;
        true
    }

    fn form(&mut self, end: &'static str, tries: usize, looked: usize, last: bool, out: &mut Vec<Parsed>) -> bool {
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
            ParsedForm::More => false,
            ParsedForm::Broken(call, len) => {
                self.pos += len;
                (self.over, self.first) = (true, false);
                out.push(Parsed::Call(call));
                self.at = At::Words;
                true
            }
            ParsedForm::Calls(calls, len) => {
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
                    // It was shown, not made, all of it.
                    self.let_go(len, out);
                    self.at = At::Words;
                    return true;
                }
                let skip = if another { behind.len() - next.len() } else { (behind.len() + 1).min(rest.len()) };
                self.pos += len + skip;
                self.line.clear();
                (self.first, self.called) = (false, true);
                out.extend(calls.into_iter().map(Parsed::Call));
                self.at = At::Line;
                true
            }
            ParsedForm::Not => {
                // A fence is one like any other then; behind another mark nothing counts any more.
                self.over |= !self.rest().starts_with('`');
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

/// The quotation that a line leaves open: a fence at its beginning or its end, or a block anywhere in it.
fn opens(line: &str) -> Option<Quote> {
    let lower = line.to_ascii_lowercase();
    let open = SHOWN.iter().chain(RESULTS).find(|(open, end)| {
        lower.rfind(open).is_some_and(|at| !lower.get(at..).is_some_and(|after| after.contains(end)))
    });
    if let Some((_, end)) = open {
        return Some(Quote::Block(end));
    }
    let text = line.trim_start_matches(' ');
    let inner = listed(text);
    let indent = line.len() - inner.len() + 3;
    let fence = ['`', '~'].into_iter().find_map(|mark| {
        let many = inner.chars().take_while(|c| *c == mark).count();
        let info = inner.get(many..).unwrap_or_default();
        (many >= 3 && !(mark == '`' && info.contains('`'))).then_some(Quote::Fence { mark, many, indent })
    });
    // "So: ```" is no fence by the book, and is meant as one.
    let late = line.trim_end().ends_with("```") && !line.matches("```").count().is_multiple_of(2);
    fence.or_else(|| late.then_some(Quote::Fence { mark: '`', many: 3, indent: usize::MAX }))
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
