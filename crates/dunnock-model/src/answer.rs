//! An answer as it comes together, whatever wire and dialect it comes in.
//!
//! A wire says what came: words, thoughts, pieces of calls. Words go through the dialect, which may find calls in them.
//!
//! Invariant: parts stay in the order in which they came.
//! Invariant: what is kept of an answer is bounded, whatever a server sends.

use crate::dialects::{AnswerParser, FoundCall, Parsed};
use dunnock_proto::{CallPart, Part, Stop, Usage};
use std::sync::Arc;

/// All that one answer may hold.
pub(crate) const CONTENT: usize = 8 << 20;
/// Calls in one answer.
const MOST_CALLS: usize = 2_000;

/// What a piece of a stream brought that can be shown at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Reasoning(String),
}

/// Why an event is no part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// It is not what this wire sends.
    Garbage(String),
    /// The server says that it failed.
    Server(String),
    /// There is more than an answer may hold.
    TooLong,
}

/// A call whose pieces come in.
#[derive(Debug, Default)]
pub(crate) struct OpenCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) args: String,
}

#[derive(Debug)]
enum Open {
    Reasoning { text: String, opaque: Option<String>, closed: bool },
    Text(String),
    Call(OpenCall),
    Found(FoundCall),
}

/// See above.
#[derive(Debug)]
pub(crate) struct Answer {
    parts: Vec<Open>,
    tongue: AnswerParser,
    pub(crate) stop: Option<Stop>,
    pub(crate) usage: Usage,
    /// The server said that this was all.
    pub(crate) closed: bool,
    /// Pieces of it could have been shown.
    pub(crate) begun: bool,
    kept: usize,
    shown: Vec<Piece>,
}

impl Answer {
    pub(crate) fn new(tongue: AnswerParser) -> Self {
        let (parts, shown, usage) = (Vec::new(), Vec::new(), Usage::default());
        Self { parts, tongue, stop: None, usage, closed: false, begun: false, kept: 0, shown }
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Bad> {
        self.kept += bytes;
        if self.kept > CONTENT { Err(Bad::TooLong) } else { Ok(()) }
    }

    /// Words of the answer.
    pub(crate) fn text(&mut self, more: &str) -> Result<(), Bad> {
        self.grow(more.len())?;
        // Words that are held back are paid for, too: nothing is asked for again.
        self.begun |= !more.is_empty();
        let mut heard = Vec::new();
        self.tongue.feed(more, &mut heard);
        self.hear(heard);
        Ok(())
    }

    fn hear(&mut self, heard: Vec<Parsed>) {
        for one in heard {
            match one {
                Parsed::Text(text) => self.push_text(&text),
                Parsed::Reasoning(text) => self.push_reasoning(&text),
                Parsed::Call(found) => self.parts.push(Open::Found(found)),
                Parsed::Doubt => {
                    for part in &mut self.parts {
                        if let Open::Found(found) = part {
                            let why = "it may have been part of a thought; call it again if it was meant";
                            found.fault.get_or_insert_with(|| why.into());
                        }
                    }
                }
                // What looked like the answer was thought: nothing in it is a call. Parts stay where they are, since wires
                // know their calls by their place.
                Parsed::AllThought => {
                    for part in &mut self.parts {
                        match part {
                            Open::Text(text) => {
                                let text = std::mem::take(text);
                                *part = Open::Reasoning { text, opaque: None, closed: true };
                            }
                            Open::Found(_) => *part = Open::Text(String::new()),
                            Open::Reasoning { .. } | Open::Call(_) => {}
                        }
                    }
                }
            }
        }
    }

    fn push_text(&mut self, more: &str) {
        if more.is_empty() {
            return;
        }
        self.begun = true;
        self.shown.push(Piece::Text(more.to_owned()));
        match self.parts.last_mut() {
            Some(Open::Text(text)) => text.push_str(more),
            _ => self.parts.push(Open::Text(more.to_owned())),
        }
    }

    fn push_reasoning(&mut self, more: &str) {
        if more.is_empty() {
            return;
        }
        self.begun = true;
        self.shown.push(Piece::Reasoning(more.to_owned()));
        match self.parts.last_mut() {
            Some(Open::Reasoning { text, closed: false, .. }) => text.push_str(more),
            _ => self.parts.push(Open::Reasoning { text: more.to_owned(), opaque: None, closed: false }),
        }
    }

    /// Thoughts, where the wire tells them apart.
    pub(crate) fn reasoning(&mut self, more: &str) -> Result<(), Bad> {
        self.grow(more.len())?;
        self.push_reasoning(more);
        Ok(())
    }

    /// The thoughts so far are one part, with what must go back for it; `opaque` is given its readable text.
    pub(crate) fn seal(&mut self, opaque: impl FnOnce(&str) -> Option<String>) -> Result<(), Bad> {
        if !matches!(self.parts.last(), Some(Open::Reasoning { closed: false, .. })) {
            self.parts.push(Open::Reasoning { text: String::new(), opaque: None, closed: false });
        }
        let Some(Open::Reasoning { text, opaque: slot, closed }) = self.parts.last_mut() else { return Ok(()) };
        *closed = true;
        *slot = opaque(text);
        self.begun = true;
        let bytes = slot.as_ref().map_or(0, String::len);
        if text.is_empty() && bytes == 0 {
            self.parts.pop();
        }
        self.grow(bytes)
    }

    /// What must go back for the answer as a whole, beside its first thoughts. Only when nothing more comes.
    pub(crate) fn seal_first(&mut self, sealed: String) -> Result<(), Bad> {
        self.grow(sealed.len())?;
        let first = self.parts.iter_mut().find_map(|part| match part {
            Open::Reasoning { opaque, .. } => Some(opaque),
            Open::Text(_) | Open::Call(_) | Open::Found(_) => None,
        });
        match first {
            Some(opaque) => *opaque = Some(sealed),
            None => self.parts.insert(0, Open::Reasoning { text: String::new(), opaque: Some(sealed), closed: true }),
        }
        Ok(())
    }

    /// A call begins: where to find it.
    pub(crate) fn open_call(&mut self) -> Result<usize, Bad> {
        if self.parts.iter().filter(|p| matches!(p, Open::Call(_))).count() >= MOST_CALLS {
            return Err(Bad::Garbage(format!("more than {MOST_CALLS} calls in one answer")));
        }
        self.begun = true;
        self.parts.push(Open::Call(OpenCall::default()));
        Ok(self.parts.len() - 1)
    }

    /// A call that has begun.
    pub(crate) fn call(&mut self, at: usize) -> Option<&mut OpenCall> {
        match self.parts.get_mut(at) {
            Some(Open::Call(call)) => Some(call),
            _ => None,
        }
    }

    /// More of a call's arguments.
    pub(crate) fn args(&mut self, at: usize, more: &str) -> Result<(), Bad> {
        self.grow(more.len())?;
        if let Some(call) = self.call(at) {
            call.args.push_str(more);
        }
        Ok(())
    }

    /// What can be shown since the last time.
    pub(crate) fn take_shown(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.shown)
    }

    /// The words so far.
    pub(crate) fn said(&self) -> String {
        let text = |part: &Open| match part {
            Open::Text(text) => Some(text.clone()),
            Open::Reasoning { .. } | Open::Call(_) | Open::Found(_) => None,
        };
        self.parts.iter().filter_map(text).collect()
    }

    /// The answer broke off: words that were held back are words, never calls.
    pub(crate) fn give_up(&mut self) {
        let mut heard = Vec::new();
        self.tongue.release(&mut heard);
        self.hear(heard);
    }

    /// Whether the answer may be believed although the stream is over: it said why it stopped.
    pub(crate) fn whole(&self) -> bool {
        self.closed || self.stop.is_some()
    }

    /// Nothing more comes: words that were held back are let go, or were a call.
    pub(crate) fn end(&mut self) {
        let cut = self.stop == Some(Stop::Length);
        let mut heard = Vec::new();
        self.tongue.finish(cut, &mut heard);
        self.hear(heard);
    }

    /// The parts, in order, and why it stopped.
    pub(crate) fn finish(mut self, step: u32) -> (Vec<Part>, Stop) {
        // Blank lines around a call that was written as text are a part of its form.
        let found = self.parts.iter().any(|part| matches!(part, Open::Found(_)));
        self.parts.retain_mut(|part| match part {
            Open::Text(text) => {
                if found {
                    *text = text.trim().to_owned();
                }
                !text.is_empty()
            }
            Open::Reasoning { .. } | Open::Call(_) | Open::Found(_) => true,
        });
        let cut = matches!(self.stop, Some(Stop::Length | Stop::Filter | Stop::Other(_)));
        let mut n = 0;
        let mut id = |given: String| {
            n += 1;
            if given.is_empty() { format!("call_{step}_{}", n - 1) } else { given }
        };
        let part = |part: Open| match part {
            Open::Reasoning { text, opaque, .. } => {
                Some(Part::Reasoning { text: text.into(), opaque: opaque.map(Arc::from) })
            }
            Open::Text(text) => Some(Part::Text { text: text.into() }),
            Open::Call(call) if call.name.is_empty() => None,
            Open::Call(call) => {
                let empty = call.args.trim().is_empty();
                let fault = (empty && cut).then(|| "the answer was cut off before its arguments".into());
                let args = if empty { "{}".into() } else { call.args.into() };
                let (id, tool) = (id(call.id), call.name);
                Some(Part::Call(Arc::new(CallPart { id, tool, args, recovered: false, fault })))
            }
            Open::Found(FoundCall { tool, args, recovered, fault }) => {
                let (id, args, fault) = (id(String::new()), args.into(), fault.map(Arc::from));
                Some(Part::Call(Arc::new(CallPart { id, tool, args, recovered, fault })))
            }
        };
        let parts: Vec<Part> = self.parts.into_iter().filter_map(part).collect();
        let calls = Part::calls(&parts).next().is_some();
        let stop = match self.stop {
            None | Some(Stop::End) if calls => Stop::Calls,
            None => Stop::End,
            Some(stop) => stop,
        };
        (parts, stop)
    }
}
