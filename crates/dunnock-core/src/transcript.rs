//! What the model is sent: the visible messages since the last compaction, each rendered once.
//!
//! Messages are collected until a step starts and are then sealed as one [`Segment`]: the previous
//! answer, its results in the order of its calls, notices, then prompts. Segments form a shared
//! list that only grows, so passing a request to a model costs nothing, however long the
//! conversation is.
//!
//! Invariant: between two compactions and without a rewind, each request starts with the bytes of
//! the previous one.

use crate::apply::within;
use dunnock_proto::{
    Answered, CallId, CheckCalled, Compacted, Event, Finished, Hash, Message, Outcome, Part, Seq,
    Shortened, Span, Step, VerifyArgs,
};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The messages that one step added.
#[derive(Debug)]
pub struct Segment {
    before: Option<Arc<Segment>>,
    /// The last event it includes; 0 for messages that a fork inherited.
    upto: Seq,
    /// The added messages.
    messages: Arc<[Message]>,
    /// The number of images in this segment and those before it.
    pictures: usize,
    /// The hash and length of everything up to here, computed on demand: opening a long session
    /// does not need it.
    sum: OnceLock<(Hash, u64)>,
}

impl Segment {
    fn seal(before: Option<Arc<Self>>, upto: Seq, messages: Arc<[Message]>) -> Arc<Self> {
        let own = messages.iter().map(|message| message.pictures().len()).sum::<usize>();
        let pictures = own + before.as_ref().map_or(0, |before| before.pictures);
        Arc::new(Self { before, upto, messages, pictures, sum: OnceLock::new() })
    }

    /// Sums up from the last segment with a known sum: once per segment, without recursion.
    fn sum(&self) -> (Hash, u64) {
        let mut open = vec![self];
        while let Some(before) = open.last().and_then(|s| s.before.as_deref())
            && before.sum.get().is_none()
            && open.last().is_some_and(|s| s.sum.get().is_none())
        {
            open.push(before);
        }
        while let Some(segment) = open.pop() {
            segment.sum.get_or_init(|| {
                let before = segment.before.as_ref().and_then(|b| b.sum.get());
                let (mut chain, mut bytes) = before.copied().unwrap_or((Hash::ZERO, 0));
                for message in segment.messages.iter() {
                    let rendered = message.bytes();
                    chain = Hash::of_parts(&[&chain.0, &rendered]);
                    bytes += rendered.len() as u64;
                }
                (chain, bytes)
            });
        }
        self.sum.get().copied().unwrap_or((Hash::ZERO, 0))
    }
}

impl Drop for Segment {
    /// Without recursion, since a long conversation is a long list.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(segment) = next {
            next = Arc::into_inner(segment).and_then(|mut s| s.before.take());
        }
    }
}

/// What is sent to the model for one step: a preamble and the whole conversation.
#[derive(Debug, Clone)]
pub struct Request {
    /// The step.
    pub step: Step,
    /// The blob with the system prompt and tools.
    pub preamble: Hash,
    tail: Option<Arc<Segment>>,
    /// Streams that broke since the last answer.
    pub failed_attempts: u32,
    /// The model that answered last.
    pub answered_by: Option<Arc<str>>,
    /// The model whose server refused the reasoning effort.
    pub effort_refused_by: Option<Arc<str>>,
}

impl Request {
    /// Every message, oldest first.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        segments(self.tail.as_ref()).iter().flat_map(|s| s.messages.iter().cloned()).collect()
    }
    /// The images in them.
    #[must_use]
    pub fn pictures(&self) -> Vec<Hash> {
        // Most conversations have none, and searching a whole one takes time.
        if self.tail.as_ref().is_none_or(|tail| tail.pictures == 0) {
            return Vec::new();
        }
        let all = segments(self.tail.as_ref());
        all.iter()
            .flat_map(|s| s.messages.iter())
            .flat_map(|message| message.pictures().iter().copied())
            .collect()
    }
    /// The messages added since the previous request.
    #[must_use]
    pub fn added(&self) -> &[Message] {
        self.tail.as_ref().map_or(&[], |s| &s.messages)
    }
    /// The hash of the preamble and messages: equal hashes mean equal bytes.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of_parts(&[&self.preamble.0, &self.tail.as_ref().map_or(Hash::ZERO, |s| s.sum().0).0])
    }
    /// The messages, rendered one after the other.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.messages().iter().flat_map(Message::bytes).collect()
    }
    /// The length of the rendered messages in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.tail.as_ref().map_or(0, |s| s.sum().1)
    }
    /// Whether there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The result of folding an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Fold {
    /// The event was folded in.
    Done,
    /// The history changed: fold the log again, from the start.
    Again,
}

#[derive(Debug, Clone)]
struct OpenCall {
    id: CallId,
    provider: Arc<str>,
    tool: Arc<str>,
    edited: Option<Arc<str>>,
    result: Option<CallResult>,
}

#[derive(Debug, Clone)]
struct CallResult {
    text: Arc<str>,
    ok: bool,
    images: Vec<Hash>,
}

/// The fold of a log that requests are built from.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    base: Option<Box<Transcript>>,
    tail: Option<Arc<Segment>>,
    answer: Option<Message>,
    calls: Vec<OpenCall>,
    checks: Vec<(CallId, Arc<str>)>,
    notices: Vec<Message>,
    prompts: Vec<Message>,
    step: Option<(Step, Hash)>,
    failed_attempts: u32,
    answered_by: Option<Arc<str>>,
    effort_refused_by: Option<Arc<str>>,
}

impl Transcript {
    /// A transcript that continues another session's: the start of a fork.
    #[must_use]
    pub fn on(mut base: Self) -> Self {
        let mut tail = None;
        for segment in segments(base.tail.as_ref()) {
            tail = Some(Segment::seal(tail, 0, segment.messages.clone()));
        }
        base.tail = tail;
        base.base = None;
        base.failed_attempts = 0;
        Self { base: Some(Box::new(base.clone())), ..base }
    }

    /// Folds a whole log. Events that a rewind removed are ignored.
    pub fn fold<'a>(
        base: Option<Self>,
        log: impl Iterator<Item = (Seq, &'a Event)> + Clone,
    ) -> Self {
        let mut spans: Option<(Seq, &[Span])> = None;
        for (seq, event) in log.clone() {
            if let Event::Rewound(e) = event {
                spans = Some((seq, &e.spans));
            }
        }
        let mut transcript = base.map_or_else(Self::default, Self::on);
        for (seq, event) in log {
            let visible = spans.is_none_or(|(at, spans)| seq > at || within(spans, seq));
            if visible && !matches!(event, Event::Rewound(_)) {
                let _ = transcript.apply(seq, event);
            }
        }
        transcript
    }

    /// The history that a fork inherited.
    #[must_use]
    pub fn base(&self) -> Option<Self> {
        self.base.as_deref().cloned()
    }

    /// Folds in one event.
    pub fn apply(&mut self, seq: Seq, event: &Event) -> Fold {
        match event {
            Event::Prompted(e) => {
                self.failed_attempts = 0;
                self.prompts.push(Message::User { text: e.text.clone(), images: e.images.clone() })
            }
            Event::Continued(_) => {
                self.failed_attempts = 0;
                self.prompts.push(notice("Continue."));
            }
            Event::Noticed(e) => self.notices.push(Message::Notice { text: e.text.clone() }),
            Event::Answered(e) => {
                self.failed_attempts = 0;
                self.answered_by = Some(e.model.as_str().into());
                if e.effort_refused {
                    self.effort_refused_by.clone_from(&self.answered_by);
                }
                self.answered(seq, e);
            }
            // The request is sent again: what had arrived is discarded.
            Event::StepFailed(e) if e.retry_at.is_some() => {
                self.failed_attempts = self.failed_attempts.saturating_add(1);
            }
            Event::StepFailed(e) if !e.partial.is_empty() => {
                self.seal_answer(seq);
                let parts = Arc::new([Part::Text { text: e.partial.clone() }]);
                self.answer = Some(Message::Assistant {
                    model: "".into(),
                    wire: "".into(),
                    parts,
                    items: Arc::default(),
                    cut: true,
                });
            }
            Event::Allowed(e) => {
                if let Some(call) = self.calls.iter_mut().find(|c| c.id == e.call) {
                    call.edited.clone_from(&e.args);
                }
            }
            Event::CheckCalled(e) => self.called(e),
            Event::Finished(e) => self.finished(e),
            Event::Ended(_) | Event::PreambleSet(_) => self.failed_attempts = 0,
            Event::StepStarted(e) => {
                self.flush(e.upto);
                self.step = Some((e.step, e.preamble));
            }
            Event::Compacted(e) => self.compact(e),
            Event::Rewound(_) => return Fold::Again,
            Event::Created(_)
            | Event::Forked(_)
            | Event::Configured(_)
            | Event::Moved(_)
            | Event::Baselined(_)
            | Event::OutboxWritten(_)
            | Event::StepFailed(_)
            | Event::TimerFired(_)
            | Event::Asked(_)
            | Event::Replied(_)
            | Event::Granted(_)
            | Event::Revoked(_)
            | Event::Started(_)
            | Event::Planned(_)
            | Event::InterruptRequested(_)
            | Event::OwnerChanged(_)
            | Event::Checkpointed(_)
            | Event::RewindRequested(_)
            | Event::RewindFailed(_)
            | Event::CompactionStarted(_)
            | Event::CompactionFailed(_)
            | Event::Titled(_) => {}
        }
        Fold::Done
    }

    /// The request of the last step that was started.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        let (step, preamble) = self.step?;
        Some(Request {
            step,
            preamble,
            tail: self.tail.clone(),
            failed_attempts: self.failed_attempts,
            answered_by: self.answered_by.clone(),
            effort_refused_by: self.effort_refused_by.clone(),
        })
    }

    /// The length of all sealed messages in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.tail.as_ref().map_or(0, |s| s.sum().1)
    }

    /// Whether no message is sealed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shorter forms of old results that exceed `limit`, up to the step that ended at `upto`.
    #[must_use]
    pub fn shorten(&self, upto: Seq, limit: usize) -> Vec<Shortened> {
        let old = segments(self.tail.as_ref()).into_iter().filter(|s| s.upto <= upto);
        let messages: Vec<Message> = old.flat_map(|s| s.messages.to_vec()).collect();
        let long = messages.into_iter().filter_map(|m| match m {
            Message::Result { call, text, images, .. }
                if text.len() > limit + limit / 2 || !images.is_empty() =>
            {
                Some((call, text, !images.is_empty()))
            }
            Message::Result { .. }
            | Message::User { .. }
            | Message::Assistant { .. }
            | Message::Notice { .. } => None,
        });
        long.map(|(call, text, image)| {
            if image {
                return Shortened { call, shown: format!("{text} [image left out]").into() };
            }
            let how = format!("; to read it: view_file {{\"path\":\"call:{call}\"}}");
            Shortened { call, shown: ends(&text, limit, &how).into() }
        })
        .collect()
    }

    /// The length after `compacted`, in bytes: a compaction must shrink the conversation.
    #[must_use]
    pub fn len_after(&self, compacted: &Compacted) -> u64 {
        let mut trial = self.clone();
        trial.compact(compacted);
        trial.len()
    }

    fn answered(&mut self, seq: Seq, e: &Answered) {
        self.seal_answer(seq);
        let parts: Arc<[Part]> = e.parts.iter().cloned().collect();
        self.answer = Some(Message::Assistant {
            model: e.model.as_str().into(),
            wire: e.wire.as_str().into(),
            parts: parts.clone(),
            items: e.items.iter().cloned().collect(),
            cut: false,
        });
        let calls = parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call.clone()),
            Part::Reasoning { .. } | Part::Text { .. } => None,
        });
        let open = |(call, index): (Arc<dunnock_proto::CallPart>, u16)| OpenCall {
            id: CallId { step: e.step, index },
            provider: call.id.as_str().into(),
            tool: call.tool.as_str().into(),
            edited: None,
            result: None,
        };
        self.calls = calls.zip(0..).map(open).collect();
    }

    fn called(&mut self, e: &CheckCalled) {
        let command = VerifyArgs::parse(&e.args).map_or_else(|_| e.args.to_string(), |a| a.command);
        self.checks.push((e.call, command.into()));
    }

    fn finished(&mut self, e: &Finished) {
        let ok = e.outcome == Outcome::Done;
        if let Some(call) = self.calls.iter_mut().find(|c| c.id == e.call) {
            let text = match &call.edited {
                Some(args) => {
                    format!("(the person changed the arguments to {args})\n{}", e.shown).into()
                }
                None => e.shown.clone(),
            };
            call.result = Some(CallResult { text, ok, images: e.images.clone() });
        } else if let Some(at) = self.checks.iter().position(|(id, _)| *id == e.call) {
            let (_, command) = self.checks.remove(at);
            let verdict = if ok { "passed" } else { "did not pass" };
            self.notices.push(notice(&format!("The check `{command}` {verdict}.\n{}", e.shown)));
        }
    }

    /// The collected answer, and its results in the order of its calls.
    fn answer_and_results(&mut self) -> Vec<Message> {
        let mut messages: Vec<Message> = self.answer.take().into_iter().collect();
        for call in std::mem::take(&mut self.calls) {
            let none = || CallResult { text: NO_RESULT.into(), ok: false, images: Vec::new() };
            let CallResult { text, ok, images } = call.result.unwrap_or_else(none);
            messages.push(Message::Result {
                call: call.id,
                id: call.provider,
                tool: call.tool,
                text,
                ok,
                images,
            });
        }
        messages
    }

    /// Called when a new answer arrives: an older one that no step has sent yet goes before it.
    /// Prompts and notices wait for the step that sends them; one that arrived while the model was
    /// thinking belongs after its answer.
    fn seal_answer(&mut self, upto: Seq) {
        let messages = self.answer_and_results();
        if !messages.is_empty() {
            self.tail = Some(Segment::seal(self.tail.take(), upto, messages.into()));
        }
    }

    /// Seals the collected messages: the answer, its results in order, notices, prompts.
    fn flush(&mut self, upto: Seq) {
        let mut messages = self.answer_and_results();
        messages.append(&mut self.notices);
        messages.append(&mut self.prompts);
        self.checks.clear();
        if !messages.is_empty() {
            self.tail = Some(Segment::seal(self.tail.take(), upto, messages.into()));
        }
    }

    fn compact(&mut self, e: &Compacted) {
        let all = segments(self.tail.as_ref());
        let mut tail = e.summary.as_ref().map(|summary| {
            let messages =
                e.notes.iter().chain([summary]).map(|text| Message::Notice { text: text.clone() });
            Segment::seal(None, e.upto, messages.collect())
        });
        let shorter: BTreeMap<CallId, &Arc<str>> =
            e.shortened.iter().map(|s| (s.call, &s.shown)).collect();
        for segment in all {
            if segment.upto > e.upto {
                tail = Some(Segment::seal(tail, segment.upto, segment.messages.clone()));
            } else if e.summary.is_none() {
                let messages = segment.messages.iter().map(|m| shortened(m, &shorter)).collect();
                tail = Some(Segment::seal(tail, segment.upto, messages));
            }
        }
        self.tail = tail;
    }
}

/// What the model is sent for a call whose end a rewind removed, or a fork does not include.
const NO_RESULT: &str =
    "no result: the session was rewound or forked to a point before this call ended";

fn notice(text: &str) -> Message {
    Message::Notice { text: text.into() }
}

fn shortened(message: &Message, by: &BTreeMap<CallId, &Arc<str>>) -> Message {
    match message {
        Message::Result { call, id, tool, ok, .. } if by.contains_key(call) => Message::Result {
            call: *call,
            id: id.clone(),
            tool: tool.clone(),
            text: by.get(call).copied().cloned().unwrap_or_default(),
            ok: *ok,
            images: Vec::new(),
        },
        Message::Result { .. }
        | Message::User { .. }
        | Message::Assistant { .. }
        | Message::Notice { .. } => message.clone(),
    }
}

/// The beginning and end of a long text, with a line that says how much was omitted.
pub(crate) fn ends(text: &str, limit: usize, how: &str) -> String {
    let half = limit / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len() - half);
    let gone = tail - head;
    format!("{}\n[{gone} bytes left out{how}]\n{}", &text[..head], &text[tail..])
}

fn segments(tail: Option<&Arc<Segment>>) -> Vec<Arc<Segment>> {
    let mut all = Vec::new();
    let mut next = tail;
    while let Some(segment) = next {
        all.push(segment.clone());
        next = segment.before.as_ref();
    }
    all.reverse();
    all
}
