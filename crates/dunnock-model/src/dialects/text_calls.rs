//! Calls written as text: marked as the prompt asks, or in other forms that models use instead.
//!
//! A marker counts only at the start of a line, outside fences, with nothing after the call on its
//! last line: a model that only shows a call quotes it, indents it or puts it in a sentence. A bare
//! or fenced JSON object counts only if it is the whole answer.
//!
//! Invariant: the calls found do not depend on how the text was split into pieces.
//! Invariant: a call that is cut off or invalid never runs, nor does any call after it.

use super::forms::{FENCES, ParsedForm, name_in, parse, whole};
use super::{Callable, FoundCall, Parsed};
use dunnock_proto::Part;
use std::sync::Arc;

/// Opening and closing markers of the forms.
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

/// Maximum bytes of a line that are searched for the start of a quotation.
const LINE: usize = 16 << 10;

/// Maximum attempts to parse one form; after that it is parsed only at the end of the answer.
const TRIES: usize = 64;

/// Opening and closing tags of quoted blocks, in which calls do not count.
const SHOWN: &[(&str, &str)] = &[
    ("<pre", "</pre>"),
    ("<code", "</code>"),
    ("<example", "</example>"),
    ("<!--", "-->"),
    ("<details", "</details>"),
];

/// The same for tool results, which models invent or repeat.
const RESULTS: &[(&str, &str)] = &[
    ("<tool_result", "</tool_result>"),
    ("<tool_response", "</tool_response>"),
    ("<function_result", "</function_result"),
];

/// Maximum length of a blank line that is held back: no marker counts after more blanks.
const BLANKS: usize = 200;

/// Finds calls in the text of an answer.
#[derive(Debug)]
pub struct TextCallReader {
    tools: Arc<[Callable]>,
    /// Text that was not released yet, from `pos` on.
    held: String,
    pos: usize,
    at: At,
    quote: Option<Quote>,
    /// The released text of the current line, checked at its end for the start of a quotation.
    line: String,
    /// Only whitespace was released so far.
    first: bool,
    /// A call was found.
    called: bool,
    /// The rest is plain text, because something before it was malformed or made up.
    over: bool,
}

/// An open quotation, in which calls do not count.
#[derive(Debug)]
enum Quote {
    /// A fence: its character, its length, and the maximum indentation of its end.
    Fence { mark: char, many: usize, indent: usize },
    /// A block that ends with this tag.
    Block(&'static str),
}

impl Quote {
    /// Whether this line ends it.
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
    /// Inside a form: its end marker, parse attempts so far, and how far the end was searched.
    Form { end: &'static str, tries: usize, looked: usize },
    /// The whole answer may be one call.
    Whole,
}

impl TextCallReader {
    /// Creates a reader for calls to these tools.
    #[must_use]
    pub fn new(tools: Arc<[Callable]>) -> Self {
        let (held, at) = (String::new(), At::Line);
        Self {
            tools,
            held,
            pos: 0,
            at,
            quote: None,
            line: String::new(),
            first: true,
            called: false,
            over: false,
        }
    }

    /// Processes more text.
    pub fn feed(&mut self, more: &str, out: &mut Vec<Parsed>) {
        self.held.push_str(more);
        while self.step(false, out) {}
        self.held.drain(..self.pos);
        self.pos = 0;
    }

    /// Resets the reader and returns the text that was held back.
    pub(crate) fn forget(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        *self = Self::new(self.tools.clone());
        held
    }

    fn rest(&self) -> &str {
        self.held.get(self.pos..).unwrap_or_default()
    }

    /// Ends the answer; `cut` means that it reached the output limit.
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
            let why = if cut {
                "the answer was cut off inside this call"
            } else {
                "this call is not closed"
            };
            let tool = name_in(&rest).unwrap_or_else(|| "unknown".into());
            out.push(Parsed::Call(FoundCall {
                tool,
                args: rest,
                recovered: true,
                fault: Some(why.into()),
            }));
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

    /// Processes one unit of text. Returns whether there may be more to process.
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

    /// Ends a line, which may close or open a quotation.
    fn end_line(&mut self) {
        // The model invented a result, so what follows is invented, too.
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

    /// At the start of a line: decides what kind of line it is, once enough of it is known.
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
            // An incomplete blank line may still become something else.
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

    fn form(
        &mut self,
        end: &'static str,
        tries: usize,
        looked: usize,
        last: bool,
        out: &mut Vec<Parsed>,
    ) -> bool {
        let held = self.rest().len();
        if !last {
            let from = self.rest().floor_char_boundary(looked.saturating_sub(end.len()));
            let found = self.rest().get(from..).is_some_and(|new| new.contains(end));
            // Wait for the rest of the line after a complete form without parsing the form again.
            let waits =
                tries > 0 && self.rest().get(looked..).is_some_and(|new| new.contains('\n'));
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
                // Nothing may follow it on its line.
                let rest = self.rest().get(len..).unwrap_or_default();
                let behind = rest.split('\n').next().unwrap_or_default();
                let next = behind.trim_start();
                let another = MARKS.iter().any(|(mark, _)| next.starts_with(mark));
                let may_be = MARKS.iter().any(|(mark, _)| mark.starts_with(next));
                if !last && !rest.contains('\n') && !another && may_be {
                    return false; // not decidable yet
                }
                if !next.trim().is_empty() && !another {
                    // The whole form was shown, not meant as a call.
                    self.let_go(len, out);
                    self.at = At::Words;
                    return true;
                }
                let skip = if another {
                    behind.len() - next.len()
                } else {
                    (behind.len() + 1).min(rest.len())
                };
                self.pos += len + skip;
                self.line.clear();
                (self.first, self.called) = (false, true);
                out.extend(calls.into_iter().map(Parsed::Call));
                self.at = At::Line;
                true
            }
            ParsedForm::Not => {
                // A fence is then an ordinary fence; after any other marker no call counts any
                // more.
                self.over |= !self.rest().starts_with('`');
                self.at = At::Words;
                true
            }
        }
    }
}

/// A line without its list markers.
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
        let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with([' ', '\n']))
        else {
            return text;
        };
        text = rest.trim_start_matches(' ');
    }
    text
}

/// The quotation that a line leaves open: a fence at its start or end, or a block anywhere in it.
fn opens(line: &str) -> Option<Quote> {
    let lower = line.to_ascii_lowercase();
    let open = SHOWN.iter().chain(RESULTS).find(|(open, end)| {
        lower
            .rfind(open)
            .is_some_and(|at| !lower.get(at..).is_some_and(|after| after.contains(end)))
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
        (many >= 3 && !(mark == '`' && info.contains('`'))).then_some(Quote::Fence {
            mark,
            many,
            indent,
        })
    });
    // "So: ```" is not a fence in Markdown, but models mean it as one.
    let late = line.trim_end().ends_with("```") && !line.matches("```").count().is_multiple_of(2);
    fence.or_else(|| late.then_some(Quote::Fence { mark: '`', many: 3, indent: usize::MAX }))
}

/// Whether an answer with this beginning may be just a call; `None` if it is too early to say.
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

/// Renders an answer of the model in this dialect.
pub(crate) fn answer(parts: &[Part], cut: bool) -> String {
    let mut text = Part::words(parts);
    for call in Part::calls(parts) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        match (&call.fault, call.broken()) {
            // As the model wrote it, so that it sees its mistake.
            (Some(_), _) | (None, Some(_)) if call.args.starts_with('<') => {
                text.push_str(&call.args)
            }
            (_, broken) => {
                let (tool, args) = call.sent_form();
                let args = if broken.is_some() { "{}" } else { args };
                text.push_str(&format!(
                    "<tool_call>\n{{\"name\": {tool:?}, \"arguments\": {args}}}\n</tool_call>"
                ));
            }
        }
    }
    if cut {
        text.push_str("\n[cut off here]");
    }
    text
}

/// Renders the result of a call. The output cannot close its own tag.
pub(crate) fn result(tool: &str, text: &str, ok: bool) -> String {
    let text = text.replace("</tool_result", "<\\/tool_result");
    let state = if ok { "" } else { " failed=\"true\"" };
    format!("<tool_result name=\"{tool}\"{state}>\n{text}\n</tool_result>")
}
