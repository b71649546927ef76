//! Assembles an answer, independent of wire and dialect.
//!
//! The wire's reader adds text, reasoning and pieces of calls. Text goes through the dialect, which
//! may find calls in it.
//!
//! Invariant: parts keep the order in which they arrived.
//! Invariant: the size of an answer is bounded, whatever the server sends.
//! Invariant: the provider's key leaves this module in no part and in no piece.

use crate::aliases::{self, Reading};
use crate::dialects::{AnswerParser, FoundCall, Parsed, is_misspelled};
use crate::key_filter::KeyFilter;
use dunnock_proto::{CallPart, Part, SentCall, Stop, Usage};
use std::sync::Arc;

/// Maximum bytes of one answer.
pub(crate) const CONTENT: usize = 8 << 20;
/// Maximum calls in one answer.
const MOST_CALLS: usize = 2_000;

/// A piece of the answer that can be shown immediately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Reasoning(String),
}

/// Why an event cannot be part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// It is not valid for this wire.
    Garbage(String),
    /// The server reported an error.
    Server(String),
    /// The answer exceeds its maximum size.
    TooLong,
}

/// A call that is still being received.
#[derive(Debug, Default)]
pub(crate) struct OpenCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) args: String,
    /// The arguments are plain text instead of JSON.
    pub(crate) freeform: bool,
    /// The server said that it is complete.
    pub(crate) complete: bool,
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[derive(Debug)]
enum OpenPart {
    Reasoning {
        text: String,
        opaque: Option<String>,
        closed: bool,
    },
    /// Text, and the item that it belongs to, where the wire has items.
    Text(String, Option<usize>),
    Call(OpenCall),
    Found(FoundCall),
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct FinishedAnswer {
    pub(crate) parts: Vec<Part>,
    /// All of it as the server sent it, if it must go back in the same form.
    pub(crate) items: Vec<Arc<str>>,
    pub(crate) stop: Stop,
}

/// An answer that is still being received.
#[derive(Debug)]
pub(crate) struct Answer {
    parts: Vec<OpenPart>,
    tongue: AnswerParser,
    /// The workspace root, if calls are also read as those of other harnesses.
    aliases_at: Option<String>,
    pub(crate) stop: Option<Stop>,
    pub(crate) usage: Usage,
    /// The server signalled the end.
    pub(crate) closed: bool,
    /// Some of it has arrived and was paid for.
    pub(crate) begun: bool,
    kept: usize,
    shown: Vec<Piece>,
    filter: KeyFilter,
    /// Ends of text and of reasoning that may be the beginning of the key.
    held_text: String,
    held_reasoning: String,
    /// The item that text belongs to.
    item: Option<usize>,
    /// Complete items as the server sent them, in its order.
    items: Vec<String>,
}

impl Answer {
    pub(crate) fn new(tongue: AnswerParser, filter: KeyFilter, aliases_at: Option<String>) -> Self {
        Self {
            parts: Vec::new(),
            tongue,
            aliases_at,
            stop: None,
            usage: Usage::default(),
            closed: false,
            begun: false,
            kept: 0,
            shown: Vec::new(),
            filter,
            held_text: String::new(),
            held_reasoning: String::new(),
            item: None,
            items: Vec::new(),
        }
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Bad> {
        self.kept += bytes;
        if self.kept > CONTENT { Err(Bad::TooLong) } else { Ok(()) }
    }

    /// Adds text to the answer.
    pub(crate) fn text(&mut self, more: &str) -> Result<(), Bad> {
        self.grow(more.len())?;
        // Text that is held back has been paid for, too.
        self.begun |= !more.is_empty();
        let mut heard = Vec::new();
        self.tongue.feed(more, &mut heard);
        self.hear(heard);
        Ok(())
    }

    fn hear(&mut self, heard: Vec<Parsed>) {
        for one in heard {
            if !matches!(one, Parsed::Text(_) | Parsed::Reasoning(_)) {
                self.release_held();
            }
            match one {
                Parsed::Text(text) => self.push_text(&text),
                Parsed::Reasoning(text) => self.push_reasoning(&text),
                Parsed::Call(found) => self.parts.push(OpenPart::Found(found)),
                Parsed::Doubt => {
                    for part in &mut self.parts {
                        if let OpenPart::Found(found) = part {
                            let why = "it may have been part of your reasoning; call it again if \
                                       you meant it";
                            // Whatever else is wrong with it, it must not run.
                            found.fault = Some(why.into());
                        }
                    }
                }
                // What looked like the answer was reasoning, so nothing in it is a call. Parts keep
                // their positions, because wires refer to calls by index.
                Parsed::AllThought => {
                    for part in &mut self.parts {
                        match part {
                            OpenPart::Text(text, _) => {
                                let text = std::mem::take(text);
                                *part = OpenPart::Reasoning { text, opaque: None, closed: true };
                            }
                            OpenPart::Found(_) => *part = OpenPart::Text(String::new(), None),
                            OpenPart::Reasoning { .. } | OpenPart::Call(_) => {}
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
        let held = std::mem::take(&mut self.held_reasoning);
        self.put_reasoning(&held);
        let more = self.filter.feed(&mut self.held_text, more);
        self.put_text(&more);
    }

    fn push_reasoning(&mut self, more: &str) {
        if more.is_empty() {
            return;
        }
        self.begun = true;
        let held = std::mem::take(&mut self.held_text);
        self.put_text(&held);
        let more = self.filter.feed(&mut self.held_reasoning, more);
        self.put_reasoning(&more);
    }

    /// What was held back is not the key: something else follows it.
    fn release_held(&mut self) {
        let (text, reasoning) =
            (std::mem::take(&mut self.held_text), std::mem::take(&mut self.held_reasoning));
        self.put_text(&text);
        self.put_reasoning(&reasoning);
    }

    fn put_text(&mut self, more: &str) {
        if more.is_empty() {
            return;
        }
        self.shown.push(Piece::Text(more.to_owned()));
        match self.parts.last_mut() {
            Some(OpenPart::Text(text, item)) if *item == self.item => text.push_str(more),
            _ => self.parts.push(OpenPart::Text(more.to_owned(), self.item)),
        }
    }

    fn put_reasoning(&mut self, more: &str) {
        if more.is_empty() {
            return;
        }
        self.shown.push(Piece::Reasoning(more.to_owned()));
        match self.parts.last_mut() {
            Some(OpenPart::Reasoning { text, closed: false, .. }) => text.push_str(more),
            _ => self.parts.push(OpenPart::Reasoning {
                text: more.to_owned(),
                opaque: None,
                closed: false,
            }),
        }
    }

    /// Adds reasoning, where the wire separates it from text.
    pub(crate) fn reasoning(&mut self, more: &str) -> Result<(), Bad> {
        self.grow(more.len())?;
        self.push_reasoning(more);
        Ok(())
    }

    /// Closes the current reasoning part and attaches the opaque data that must be sent back with
    /// it. `opaque` receives the readable text.
    pub(crate) fn seal(&mut self, opaque: impl FnOnce(&str) -> Option<String>) -> Result<(), Bad> {
        self.release_held();
        if !matches!(self.parts.last(), Some(OpenPart::Reasoning { closed: false, .. })) {
            self.parts.push(OpenPart::Reasoning {
                text: String::new(),
                opaque: None,
                closed: false,
            });
        }
        let Some(OpenPart::Reasoning { text, opaque: slot, closed }) = self.parts.last_mut() else {
            return Ok(());
        };
        *closed = true;
        *slot = opaque(text);
        self.begun = true;
        let bytes = slot.as_ref().map_or(0, String::len);
        if text.is_empty() && bytes == 0 {
            self.parts.pop();
        }
        self.grow(bytes)
    }

    /// Attaches opaque data that must be sent back for the whole answer to its first reasoning
    /// part. Call it only at the end: it may insert a part and shift indices.
    pub(crate) fn seal_first(&mut self, sealed: String) -> Result<(), Bad> {
        self.grow(sealed.len())?;
        self.release_held();
        let first = self.parts.iter_mut().find_map(|part| match part {
            OpenPart::Reasoning { opaque, .. } => Some(opaque),
            OpenPart::Text(..) | OpenPart::Call(_) | OpenPart::Found(_) => None,
        });
        match first {
            Some(opaque) => *opaque = Some(sealed),
            None => self.parts.insert(
                0,
                OpenPart::Reasoning { text: String::new(), opaque: Some(sealed), closed: true },
            ),
        }
        Ok(())
    }

    /// The text that follows belongs to this item. Text of another item is another part.
    pub(crate) fn begin_item(&mut self, item: usize) {
        if self.item != Some(item) {
            let mut heard = Vec::new();
            self.tongue.end_item(&mut heard);
            self.hear(heard);
            self.release_held();
            self.item = Some(item);
        }
    }

    /// Replaces the text of an item whose pieces do not add up to it.
    pub(crate) fn replace_text(&mut self, item: usize, whole: &str) -> Result<(), Bad> {
        self.grow(whole.len())?;
        if !self.tongue.is_native() {
            return Ok(()); // calls were found in the pieces
        }
        self.begin_item(item);
        let mut heard = Vec::new();
        self.tongue.end_item(&mut heard);
        self.hear(heard);
        self.release_held();
        let mut texts = self.parts.iter_mut().filter_map(|part| match part {
            OpenPart::Text(text, of) if *of == Some(item) => Some(text),
            _ => None,
        });
        match texts.next() {
            Some(first) => {
                whole.clone_into(first);
                texts.for_each(String::clear);
            }
            None => self.parts.push(OpenPart::Text(whole.to_owned(), Some(item))),
        }
        Ok(())
    }

    /// Keeps the items of a complete answer, to be sent back as they are.
    pub(crate) fn keep_items(&mut self, items: Vec<String>) {
        self.items = items;
    }

    /// Begins a call and returns its index.
    pub(crate) fn open_call(&mut self) -> Result<usize, Bad> {
        if self.parts.iter().filter(|p| matches!(p, OpenPart::Call(_))).count() >= MOST_CALLS {
            return Err(Bad::Garbage(format!("more than {MOST_CALLS} calls in one answer")));
        }
        self.begun = true;
        self.release_held();
        self.parts.push(OpenPart::Call(OpenCall::default()));
        Ok(self.parts.len() - 1)
    }

    /// The open call at an index.
    pub(crate) fn call(&mut self, at: usize) -> Option<&mut OpenCall> {
        match self.parts.get_mut(at) {
            Some(OpenPart::Call(call)) => Some(call),
            _ => None,
        }
    }

    /// Appends to a call's arguments.
    pub(crate) fn args(&mut self, at: usize, more: &str) -> Result<(), Bad> {
        self.grow(more.len())?;
        if let Some(call) = self.call(at) {
            call.args.push_str(more);
        }
        Ok(())
    }

    /// Takes the pieces that became showable since the last time.
    pub(crate) fn take_shown(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.shown)
    }

    /// The text so far.
    pub(crate) fn said(&self) -> String {
        let text = |part: &OpenPart| match part {
            OpenPart::Text(text, _) => Some(text.clone()),
            OpenPart::Reasoning { .. } | OpenPart::Call(_) | OpenPart::Found(_) => None,
        };
        self.parts.iter().filter_map(text).collect()
    }

    /// The answer broke off: text that was held back becomes text, never a call.
    pub(crate) fn give_up(&mut self) {
        let mut heard = Vec::new();
        self.tongue.release(&mut heard);
        self.hear(heard);
        self.release_held();
    }

    /// The stream broke. Keeps what came up to the last call that is complete, and says whether
    /// there is one. A call in text does not count: what follows could have changed its meaning.
    pub(crate) fn keep_finished_calls(&mut self) -> bool {
        let finished = |part: &OpenPart| match part {
            OpenPart::Call(call) if call.freeform => !call.name.is_empty() && call.complete,
            OpenPart::Call(call) => !call.name.is_empty() && is_object(&call.args),
            OpenPart::Reasoning { .. } | OpenPart::Text(..) | OpenPart::Found(_) => false,
        };
        let Some(last) = self.parts.iter().rposition(finished) else { return false };
        self.parts.truncate(last + 1);
        self.items.clear();
        self.parts.retain(|part| match part {
            OpenPart::Call(_) => finished(part),
            OpenPart::Found(_) => false,
            OpenPart::Reasoning { .. } | OpenPart::Text(..) => true,
        });
        self.stop = Some(Stop::Other("the connection broke".into()));
        true
    }

    /// Whether the answer is complete: the server signalled the end or gave a stop reason.
    pub(crate) fn whole(&self) -> bool {
        self.closed || self.stop.is_some()
    }

    /// The answer is over: text that was held back is released as text or as a call.
    pub(crate) fn end(&mut self) {
        let cut = self.stop == Some(Stop::Length);
        let mut heard = Vec::new();
        self.tongue.finish(cut, &mut heard);
        self.hear(heard);
        self.release_held();
    }

    /// Removes the key from what is not shown while it arrives.
    fn clean(&mut self) {
        let filter = &self.filter;
        let mut found = false;
        self.items.iter_mut().for_each(|item| found |= filter.arguments(item));
        for part in &mut self.parts {
            match part {
                // Two pieces around a call of the dialect can be one text in the end.
                OpenPart::Text(text, _) => filter.text(text),
                OpenPart::Reasoning { text, opaque, .. } => {
                    filter.text(text);
                    opaque.iter_mut().for_each(|opaque| filter.text(opaque));
                }
                OpenPart::Call(OpenCall { id, name, args, .. }) => {
                    filter.text(id);
                    filter.text(name);
                    found |= filter.arguments(args);
                }
                OpenPart::Found(FoundCall { tool, args, fault, .. }) => {
                    filter.text(tool);
                    filter.arguments(args);
                    fault.iter_mut().for_each(|fault| filter.text(fault));
                }
            }
        }
        if let Some(Stop::Other(why)) = &mut self.stop {
            filter.text(why);
        }
        // With the key in it, an item cannot go back as it came.
        if found {
            self.items.clear();
        }
    }

    /// The parts and items, in order, and the stop reason.
    pub(crate) fn finish(mut self, step: u32) -> FinishedAnswer {
        self.release_held();
        self.clean();
        let unnamed =
            |part: &OpenPart| matches!(part, OpenPart::Call(call) if call.name.is_empty());
        if !self.tongue.is_native() || self.parts.iter().any(unnamed) {
            self.items.clear();
        }
        // The items contain what must be sent back.
        let has_items = !self.items.is_empty();
        // Blank lines around a call in text belong to the call's syntax.
        let found = self.parts.iter().any(|part| matches!(part, OpenPart::Found(_)));
        self.parts.retain_mut(|part| match part {
            OpenPart::Text(text, _) => {
                if found {
                    *text = text.trim().to_owned();
                }
                !text.is_empty()
            }
            OpenPart::Reasoning { .. } | OpenPart::Call(_) | OpenPart::Found(_) => true,
        });
        let cut = matches!(self.stop, Some(Stop::Length | Stop::Filter | Stop::Other(_)));
        let root = self.aliases_at;
        // Only the last call can be incomplete.
        let calls = self.parts.iter().filter(|part| matches!(part, OpenPart::Call(_))).count();
        let mut nth = 0;
        let filter = std::mem::take(&mut self.filter);
        let mut leaked = false;
        // Translating decodes once more, which may uncover the key.
        let mut without_key = |part: CallPart| {
            let mut args = part.args.to_string();
            let mut fault = part.fault.as_deref().map(str::to_owned);
            let found = filter.arguments(&mut args);
            fault.iter_mut().for_each(|fault| filter.text(fault));
            let fault = fault.map(Arc::from);
            leaked |= found;
            match found {
                true => CallPart { args: args.into(), sent: None, fault, ..part },
                false => CallPart { fault, ..part },
            }
        };
        let mut n = 0;
        let mut id = |given: String| {
            n += 1;
            if given.is_empty() { format!("call_{step}_{}", n - 1) } else { given }
        };
        let part = |part: OpenPart| match part {
            OpenPart::Reasoning { text, .. } if has_items && text.is_empty() => None,
            OpenPart::Reasoning { text, opaque, .. } => {
                let opaque = opaque.filter(|_| !has_items).map(Arc::from);
                Some(Part::Reasoning { text: text.into(), opaque })
            }
            OpenPart::Text(text, _) => Some(Part::Text { text: text.into() }),
            OpenPart::Call(call) if call.name.is_empty() => None,
            OpenPart::Call(call) => {
                let empty = call.args.trim().is_empty();
                let fault = (empty && cut)
                    .then(|| "the answer was cut off before the arguments of this call".into());
                let (id, tool) = (id(call.id), call.name);
                let (args, sent) = match call.freeform {
                    true => freeform(&tool, call.args),
                    false if empty => ("{}".into(), None),
                    false => (call.args.into(), None),
                };
                let part = CallPart { id, tool, args, sent, recovered: false, fault };
                nth += 1;
                Some(Part::Call(Arc::new(match &root {
                    Some(root) => without_key(translated(part, root, cut && nth == calls)),
                    None => part,
                })))
            }
            OpenPart::Found(FoundCall { tool, args, recovered, fault }) => {
                let (id, args, fault) = (id(String::new()), args.into(), fault.map(Arc::from));
                let part = CallPart { id, tool, args, sent: None, recovered, fault };
                Some(Part::Call(Arc::new(match &root {
                    Some(root) => without_key(found_call(part, root)),
                    None => part,
                })))
            }
        };
        let parts: Vec<Part> = self.parts.into_iter().filter_map(part).collect();
        let calls = Part::calls(&parts).next().is_some();
        let stop = match self.stop {
            None | Some(Stop::End) if calls => Stop::Calls,
            None => Stop::End,
            Some(stop) => stop,
        };
        if leaked {
            self.items.clear();
        }
        FinishedAnswer { parts, items: self.items.into_iter().map(Arc::from).collect(), stop }
    }
}

/// The arguments of a call whose arguments are plain text, and the call as it came.
fn freeform(tool: &str, text: String) -> (Arc<str>, Option<Arc<SentCall>>) {
    let args = serde_json::json!({ "input": text }).to_string().into();
    let sent = SentCall { tool: tool.to_owned(), args: text.into(), freeform: true };
    (args, Some(Arc::new(sent)))
}

/// The call as it runs, if it is written in a way that other harnesses taught.
fn translated(part: CallPart, root: &str, cut: bool) -> CallPart {
    if part.fault.is_some() {
        return part;
    }
    match aliases::read(&part.tool, &part.args, root, cut) {
        Reading::AsCame => part,
        Reading::Fault(why) => CallPart { fault: Some(why.into()), ..part },
        Reading::Means { tool, args } => {
            let sent = SentCall { tool: part.tool, args: part.args, freeform: false };
            let sent = part.sent.unwrap_or_else(|| Arc::new(sent));
            CallPart { tool: tool.into(), args: args.into(), sent: Some(sent), ..part }
        }
    }
}

/// The same for a call that was found in text. It keeps its own fault if it means nothing else.
fn found_call(part: CallPart, root: &str) -> CallPart {
    if part.broken().is_some() {
        return part;
    }
    let meant = translated(CallPart { fault: None, ..part.clone() }, root, false);
    match &part.fault {
        None => meant,
        Some(fault) if is_misspelled(fault) && meant.sent.is_some() && meant.fault.is_none() => {
            meant
        }
        Some(_) => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::{Callable, Dialect};
    use crate::provider::Provider;
    use crate::wire::Wire;

    const KEY: &str = "sk-proj-5e1f0c77a9b2";

    fn filter() -> KeyFilter {
        let key = Some(KEY.to_owned().into());
        KeyFilter::of(&Provider {
            key,
            ..Provider::plain("p", Wire::Chat, "http://127.0.0.1:1/v1")
        })
    }

    fn calls(answer: Answer) -> Vec<CallPart> {
        let parts = answer.finish(1).parts;
        Part::calls(&parts).map(|call| call.as_ref().clone()).collect()
    }

    /// A call that may have been part of the reasoning does not run under another name either.
    #[test]
    fn a_doubtful_call_is_not_translated() {
        let tools: Arc<[Callable]> = Vec::new().into();
        let mut answer = Answer::new(
            AnswerParser::new(Dialect::Text, &tools),
            KeyFilter::default(),
            Some("/w".into()),
        );
        let found = || FoundCall {
            tool: "bash".into(),
            args: r#"{"command":"rm -r x"}"#.into(),
            recovered: false,
            fault: Some("there is no tool \"bash\"; use one of shell".into()),
        };
        answer.hear(vec![Parsed::Call(found())]);
        answer.hear(vec![Parsed::Doubt]);
        answer.hear(vec![Parsed::Call(found())]);
        let calls = calls(answer);
        assert_eq!((calls[0].tool.as_str(), calls[0].fault.is_some()), ("bash", true));
        assert_eq!((calls[1].tool.as_str(), calls[1].fault.is_some()), ("shell", false));
    }

    /// Arguments that are decoded more than once do not bring the key back.
    #[test]
    fn the_key_stays_out_of_translated_calls() {
        let hidden = KEY.replace('k', "\\u006b");
        let twice = KEY.replace('k', "\\\\u006b");
        for args in [
            format!(r#"{{"command":"echo {hidden}""#),
            format!(r#""{{\"command\":\"echo {twice}\"}}""#),
            format!(r#"{{"arguments":"{{\"command\":\"echo {twice}\"}}"}}"#),
        ] {
            let tools: Arc<[Callable]> = Vec::new().into();
            let parser = AnswerParser::new(Dialect::Native, &tools);
            let mut answer = Answer::new(parser, filter(), Some("/w".into()));
            let at = answer.open_call().unwrap_or_default();
            if let Some(call) = answer.call(at) {
                call.name = "bash".into();
            }
            assert_eq!(answer.args(at, &args), Ok(()));
            let calls = calls(answer);
            assert_eq!(calls[0].args.as_ref(), r#"{"command":"echo [key]"}"#, "{args}");
            assert_eq!(calls[0].sent, None, "{args}");
        }
    }
}
