//! The conversation as alternating user and assistant messages in a dialect, from which every wire
//! renders its request.
//!
//! Invariant: a message depends only on what came before it, so that each request begins with the
//! bytes of the previous one (for prompt caching).
//! Invariant: opaque reasoning is sent back only to the model that produced it.

use crate::dialects::{Callable, Dialect, plan, text_calls};
use base64::Engine as _;
use dunnock_proto::{CallId, CallPart, Hash, Message, Part, picture_kind};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// An image, encoded for the wires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) media: &'static str,
    pub(crate) base64: String,
}

/// A part of a user message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContentPart<'a> {
    Text(Cow<'a, str>),
    Picture(Picture),
    Result {
        id: String,
        tool: Cow<'a, str>,
        text: &'a str,
        ok: bool,
        /// It answers an item with plain text instead of JSON.
        freeform: bool,
    },
}

/// A part of an assistant message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AssistantPart<'a> {
    /// Sent only to the model that produced it.
    Reasoning {
        text: &'a str,
        opaque: Option<&'a str>,
    },
    /// An item as the server sent it. Sent only to the model that produced it, instead of all
    /// other parts.
    Item(&'a str),
    Text(Cow<'a, str>),
    Call {
        id: String,
        tool: Cow<'a, str>,
        args: &'a str,
    },
}

/// All consecutive content from one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChatMessage<'a> {
    Person(Vec<ContentPart<'a>>),
    Model(Vec<AssistantPart<'a>>),
}

/// The model that receives the messages, and its dialect.
pub(crate) struct Target<'a> {
    pub(crate) model: &'a str,
    pub(crate) wire: &'a str,
    pub(crate) dialect: Dialect,
    /// The tools that can be called in text, under the names that the model knows.
    pub(crate) callable: &'a [Callable],
    /// Whether the items of an answer are sent back as they came; otherwise it is written anew.
    pub(crate) as_came: &'a (dyn Fn(&[Arc<str>]) -> bool + Sync),
    /// Whether it accepts images; otherwise a sentence stands in place of each.
    pub(crate) sees_pictures: bool,
}

/// Puts what is on the machine before everything else that the user's side says.
pub(crate) fn begin_with(sides: &mut Vec<ChatMessage<'_>>, snapshot: &str) {
    if snapshot.is_empty() {
        return;
    }
    let text = from_harness(snapshot);
    let Some(ChatMessage::Person(parts)) = sides.first_mut() else {
        return sides.insert(0, ChatMessage::Person(vec![ContentPart::Text(text.into())]));
    };
    let first = parts.iter_mut().find_map(|part| match part {
        ContentPart::Text(said) => Some(said),
        ContentPart::Picture(_) | ContentPart::Result { .. } => None,
    });
    match first {
        Some(said) => *said = format!("{text}\n\n{said}").into(),
        None => parts.insert(0, ContentPart::Text(text.into())),
    }
}

fn from_harness(text: &str) -> String {
    format!("[from the harness, not the person]\n{text}")
}

/// Groups a conversation by side. Fails when an image is missing.
pub(crate) fn sides<'a>(
    messages: &'a [Message],
    pictures: &BTreeMap<Hash, Arc<[u8]>>,
    to: &Target<'_>,
) -> Result<Vec<ChatMessage<'a>>, String> {
    let mut sides: Vec<ChatMessage<'a>> = Vec::new();
    let mut names = Names::default();
    let mut open: VecDeque<OpenResult<'a>> = VecDeque::new();
    // Wires allow nothing between two results, so the images of results follow the last one.
    let mut shown: Vec<(CallId, &Hash)> = Vec::new();
    for message in messages {
        if !matches!(message, Message::Result { .. }) {
            show(&mut sides, std::mem::take(&mut shown), pictures, to)?;
        }
        match message {
            Message::User { text, images } => {
                for hash in images {
                    push(&mut sides, picture(hash, pictures, to)?);
                }
                push(&mut sides, ContentPart::Text(Cow::Borrowed(text)));
            }
            Message::Notice { text } => {
                push(&mut sides, ContentPart::Text(Cow::Owned(from_harness(text))));
            }
            Message::Result { call, tool, text, ok, images, .. } => {
                shown.extend(images.iter().map(|hash| (*call, hash)));
                let id = names.answered();
                let OpenResult { fault, tool: sent, freeform } =
                    open.pop_front().unwrap_or(OpenResult { fault: None, tool, freeform: false });
                let bit = match to.dialect {
                    Dialect::Native => {
                        let tool = plain_name(sent);
                        ContentPart::Result { id, tool, text, ok: *ok, freeform }
                    }
                    Dialect::Text => {
                        ContentPart::Text(Cow::Owned(text_calls::result(sent, text, *ok)))
                    }
                    Dialect::Plan => ContentPart::Text(Cow::Owned(plan::result(
                        to.callable,
                        tool,
                        text,
                        *ok,
                        fault,
                    ))),
                };
                push(&mut sides, bit);
            }
            Message::Assistant { model, wire, parts, items, cut } => {
                let own = model.as_ref() == to.model && wire.as_ref() == to.wire;
                let calls: Vec<&'a CallPart> = Part::calls(parts).map(AsRef::as_ref).collect();
                let as_came = own
                    && !cut
                    && !items.is_empty()
                    && (to.as_came)(items)
                    && to.dialect == Dialect::Native
                    && names.keep(&calls);
                let result = |call: &&'a CallPart| OpenResult {
                    fault: call.fault.as_deref(),
                    tool: call.sent_form().0,
                    freeform: as_came && call.is_freeform(),
                };
                open = calls.iter().map(result).collect();
                let said = match to.dialect {
                    Dialect::Native if as_came => {
                        items.iter().map(|item| AssistantPart::Item(item)).collect()
                    }
                    Dialect::Native => native(parts, *cut, own, &mut names),
                    Dialect::Text => {
                        names.skip(calls.len());
                        written(parts, own, text_calls::answer(parts, *cut))
                    }
                    Dialect::Plan => {
                        names.skip(calls.len());
                        written(parts, own, plan::answer(to.callable, parts, *cut))
                    }
                };
                match sides.last_mut() {
                    Some(ChatMessage::Model(before)) => before.extend(said),
                    Some(ChatMessage::Person(_)) | None => sides.push(ChatMessage::Model(said)),
                }
            }
        }
    }
    show(&mut sides, shown, pictures, to)?;
    Ok(sides)
}

/// An image for the wire, or a text in its place.
fn picture<'a>(
    hash: &Hash,
    pictures: &BTreeMap<Hash, Arc<[u8]>>,
    to: &Target<'_>,
) -> Result<ContentPart<'a>, String> {
    if !to.sees_pictures {
        let text = "[from the harness, not the person]\nthere is an image here that you cannot see: \
                    the model's server refused the images of this conversation";
        return Ok(ContentPart::Text(text.into()));
    }
    let bytes = pictures.get(hash).ok_or("an image of this conversation is missing")?;
    let media = picture_kind(bytes).unwrap_or("application/octet-stream");
    let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
    Ok(ContentPart::Picture(Picture { media, base64 }))
}

/// Adds the images of results, and which calls they belong to.
fn show(
    sides: &mut Vec<ChatMessage<'_>>,
    images: Vec<(CallId, &Hash)>,
    pictures: &BTreeMap<Hash, Arc<[u8]>>,
    to: &Target<'_>,
) -> Result<(), String> {
    if images.is_empty() {
        return Ok(());
    }
    let calls: Vec<String> = images.iter().map(|(call, _)| call.to_string()).collect();
    for (_, hash) in images {
        push(sides, picture(hash, pictures, to)?);
    }
    let text = format!(
        "[from the harness, not the person]\nthe images above belong to these calls, in order: {}",
        calls.join(", ")
    );
    push(sides, ContentPart::Text(text.into()));
    Ok(())
}

/// Adds a part to the current user message, or starts one.
fn push<'a>(sides: &mut Vec<ChatMessage<'a>>, bit: ContentPart<'a>) {
    match sides.last_mut() {
        Some(ChatMessage::Person(bits)) => bits.push(bit),
        Some(ChatMessage::Model(_)) | None => sides.push(ChatMessage::Person(vec![bit])),
    }
}

fn reasoning(parts: &[Part], own: bool) -> impl Iterator<Item = AssistantPart<'_>> {
    parts.iter().filter_map(move |part| match part {
        Part::Reasoning { text, opaque } if own => {
            Some(AssistantPart::Reasoning { text, opaque: opaque.as_deref() })
        }
        Part::Reasoning { .. } | Part::Text { .. } | Part::Call(_) => None,
    })
}

fn written<'a>(parts: &'a [Part], own: bool, text: String) -> Vec<AssistantPart<'a>> {
    reasoning(parts, own).chain([AssistantPart::Text(Cow::Owned(text))]).collect()
}

fn native<'a>(
    parts: &'a [Part],
    cut: bool,
    own: bool,
    names: &mut Names,
) -> Vec<AssistantPart<'a>> {
    let mut said: Vec<AssistantPart<'a>> = Vec::new();
    for part in parts {
        match part {
            Part::Reasoning { text, opaque } if own => {
                said.push(AssistantPart::Reasoning { text, opaque: opaque.as_deref() })
            }
            Part::Reasoning { .. } => {}
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => said.push(AssistantPart::Text(Cow::Borrowed(text))),
            // Servers parse the arguments again, and some fail the request if they are not JSON.
            // The log keeps what the model wrote.
            Part::Call(call) => {
                let (tool, args) = call.sent_form();
                let args = if CallPart::is_object(args) { args } else { "{}" };
                let (id, tool) = (names.call(&call.id, own), plain_name(tool));
                said.push(AssistantPart::Call { id, tool, args });
            }
        }
    }
    if cut {
        said.push(AssistantPart::Text("\n[cut off here]".into()));
    }
    // A message must have content.
    if said.iter().all(|s| matches!(s, AssistantPart::Reasoning { .. })) {
        said.push(AssistantPart::Text("".into()));
    }
    said
}

/// What is known about the result of a call before it comes.
struct OpenResult<'a> {
    fault: Option<&'a str>,
    /// The tool, under the name that the model used.
    tool: &'a str,
    freeform: bool,
}

/// A tool name that every wire accepts: models invent names that would make every later request
/// fail.
fn plain_name(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.chars().all(plain) && (1..=64).contains(&name.len()) {
        return Cow::Borrowed(name);
    }
    let name: String = name.chars().take(64).map(|c| if plain(c) { c } else { '_' }).collect();
    Cow::Owned(if name.is_empty() { "unknown".into() } else { name })
}

/// Call ids as wires accept them. The model that made a call gets its own id back if it is plain
/// and unique; otherwise the id is nine alphanumeric characters, which every server accepts.
#[derive(Debug, Default)]
struct Names {
    used: BTreeSet<String>,
    open: VecDeque<String>,
    count: usize,
}

impl Names {
    fn call(&mut self, given: &str, own: bool) -> String {
        self.count += 1;
        let plain = own
            && !given.is_empty()
            && given.len() <= 40
            && given.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let ours = |n: usize| format!("c{n:08}");
        let mut id = if plain { given.to_owned() } else { ours(self.count) };
        let mut n = self.count;
        while !self.used.insert(id.clone()) {
            id = ours(n);
            n += 10_000_000;
        }
        self.open.push_back(id.clone());
        id
    }
    /// Keeps the ids of calls that go back as they came. Says whether that is possible: each id is
    /// unique, and each call is one that servers accept.
    fn keep(&mut self, calls: &[&CallPart]) -> bool {
        let mut ids: BTreeSet<&str> = BTreeSet::new();
        let fits = calls
            .iter()
            .all(|call| call.came_whole() && !self.used.contains(&call.id) && ids.insert(&call.id));
        if fits {
            self.count += calls.len();
            self.used.extend(calls.iter().map(|call| call.id.clone()));
            self.open.extend(calls.iter().map(|call| call.id.clone()));
        }
        fits
    }
    fn skip(&mut self, calls: usize) {
        self.count += calls;
        self.open.extend(std::iter::repeat_n(String::new(), calls));
    }
    /// The id for the next result. Results come in the order of the calls.
    fn answered(&mut self) -> String {
        self.open.pop_front().unwrap_or_default()
    }
}

/// A result in a merged message.
pub(crate) struct MergedResult<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) text: Cow<'a, str>,
    pub(crate) freeform: bool,
}

/// A user message in merged form: results, images, text.
pub(crate) struct Merged<'a> {
    pub(crate) results: Vec<MergedResult<'a>>,
    pub(crate) pictures: Vec<&'a Picture>,
    pub(crate) words: String,
}

/// Merges a user message for servers that accept one message per turn: results, then images with
/// all text. Text after results is appended to the last result, since those servers allow nothing
/// else after a result.
pub(crate) fn merged<'a>(bits: &'a [ContentPart<'a>]) -> Merged<'a> {
    let (mut results, mut pictures, mut words) = (Vec::new(), Vec::new(), Vec::new());
    for bit in bits {
        match bit {
            ContentPart::Result { id, tool, text, freeform, .. } => results.push(MergedResult {
                id: id.as_str(),
                tool: tool.as_ref(),
                text: Cow::Borrowed(*text),
                freeform: *freeform,
            }),
            ContentPart::Picture(picture) => pictures.push(picture),
            ContentPart::Text(text) => words.push(text.as_ref()),
        }
    }
    let mut words = words.join("\n\n");
    if let Some(MergedResult { text: last, .. }) = results.last_mut()
        && pictures.is_empty()
        && !words.is_empty()
    {
        *last = Cow::Owned(format!("{last}\n\n{words}"));
        words.clear();
    }
    Merged { results, pictures, words }
}
