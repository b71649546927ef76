//! One model request: attempts, retries, outcome and cancellation.

use crate::answer::{Answer, FinishedAnswer, Piece};
use crate::dialects::{AnswerParser, Callable, Dialect, plan};
use crate::key_filter::KeyFilter;
use crate::messages::{AssistantPart, ChatMessage, ContentPart, Target, begin_with, sides};
use crate::preamble::{BYTES_PER_TOKEN, RecordedPreamble, estimate};
use crate::provider::Provider;
use crate::request_error::{RequestError, Retry, clean};
use crate::stream::{self, Broken, StreamReader};
use crate::wire::Wire;
use crate::wires::{self, Outgoing};
use dunnock_core::failpoint;
use dunnock_ports::{CancellationToken, DeltaSink};
use dunnock_proto::{
    Answered, At, Attempt, Delta, Failure, Hash, Message, NoAnswer, Part, Reserved, Step,
    StepFailed, Stop, Usage,
};
use futures_util::StreamExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Timeouts of a request, and pauses between attempts.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Timeout for connecting.
    pub connect: Duration,
    /// Timeout for the next byte. It is long, because a local model may process a long prompt
    /// before it sends the first byte.
    pub idle: Duration,
    /// Pause before the second attempt; doubled each time, with jitter.
    pub pause: Duration,
    /// Upper limit for a pause, even if the server asks for more.
    pub longest_pause: Duration,
    /// How long to wait for a connection.
    pub offline: Duration,
    /// The same, and for a server that is busy, while nobody watches.
    pub unattended: Duration,
}

/// How often a request is sent if it fails in a way that passes.
const ATTEMPTS: u32 = 5;
/// How often it is sent while nobody watches. Their time is limited, too.
const MOST_ATTEMPTS: u32 = 60;
/// Attempts if there is no server at the address, and none has answered before: a server that is not
/// running rarely starts within seconds.
const ATTEMPTS_TO_CONNECT: u32 = 3;
/// Attempts if the server sends nothing, within one step.
const IDLE_ATTEMPTS: u32 = 2;
/// Upper limit for the pause before the next attempt to connect.
const OFFLINE_PAUSE: Duration = Duration::from_secs(20);

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
            offline: Duration::from_secs(300),
            unattended: Duration::from_secs(20 * 60),
        }
    }
}

/// What a request needs besides its body.
pub(crate) struct Transport<'a> {
    pub(crate) client: &'a reqwest::Client,
    pub(crate) provider: &'a Provider,
    pub(crate) patience: Timeouts,
    pub(crate) without: &'a RefusedExtras,
}

/// Models that reject optional request features, and the level of features to omit: 1 reasoning
/// summaries, cache keys and usage in streams; 2 also encrypted reasoning and the schema.
#[derive(Debug, Default)]
pub(crate) struct RefusedExtras {
    levels: Mutex<BTreeMap<String, u8>>,
    /// Sessions, with the model that refused a part of an answer of its own.
    items: Mutex<BTreeSet<(String, String)>>,
    /// Sessions, with the model whose server refused their images.
    pictures: Mutex<BTreeSet<(String, String)>>,
}

impl RefusedExtras {
    pub(crate) const ALL: u8 = 2;

    fn get(&self, model: &str) -> u8 {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied().unwrap_or(0)
    }
    /// Whether the answers of a session are written anew.
    fn has_refused_items(&self, session: Option<&str>, model: &str) -> bool {
        let all = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        session.is_some_and(|session| all.contains(&(session.to_owned(), model.to_owned())))
    }
    /// Remembers that a request was accepted with its answers written anew.
    fn keep_refused_items(&self, session: Option<&str>, model: &str) {
        if let Some(session) = session {
            let mut all = self.items.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert((session.to_owned(), model.to_owned()));
        }
    }
    /// Whether the images of a session are sent.
    fn accepts_pictures(&self, session: Option<&str>, model: &str) -> bool {
        let all = self.pictures.lock().unwrap_or_else(PoisonError::into_inner);
        !session.is_some_and(|session| all.contains(&(session.to_owned(), model.to_owned())))
    }
    /// Remembers that a request was accepted without its images.
    fn keep_refused_pictures(&self, session: Option<&str>, model: &str) {
        if let Some(session) = session {
            let mut all = self.pictures.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert((session.to_owned(), model.to_owned()));
        }
    }
    /// Remembers the level that worked.
    fn keep(&self, model: &str, level: u8) {
        if level > 0 {
            let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
            levels.insert(model.to_owned(), level);
        }
    }
}

/// The outcome of an attempt.
pub(crate) enum Tried {
    Done,
    Trouble(RequestError),
}

fn now() -> At {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    At(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A step of a session, which the core starts again if its stream breaks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resume {
    /// Streams that broke since the last answer.
    pub(crate) failed_attempts: u32,
    /// This model has answered before in the session.
    pub(crate) answered: bool,
    /// Nobody watches: wait long for a server that is busy or cannot be reached.
    pub(crate) patient: bool,
    /// How long to wait for it at most.
    pub(crate) time_left: Option<Duration>,
}

/// A request to a model.
pub(crate) struct PromptRequest<'a> {
    pub(crate) preamble: &'a RecordedPreamble,
    pub(crate) step: Step,
    /// The hash of the request.
    pub(crate) hash: Hash,
    pub(crate) messages: &'a [Message],
    /// How it is sent again; `None` for requests that are not part of a session's steps.
    pub(crate) resume: Option<Resume>,
    pub(crate) pictures: &'a BTreeMap<Hash, Arc<[u8]>>,
    /// Send it even if it does not fit, to test how the server reacts.
    pub(crate) anyway: bool,
    /// The session that it belongs to, if it is one of its steps.
    pub(crate) session: Option<&'a str>,
    /// Whether the server accepts the reasoning effort, as far as the session knows.
    pub(crate) with_effort: bool,
}

/// Estimated tokens of an image.
const PICTURE: u64 = 1_500;

/// Estimates the tokens of a request. Images count at a fixed rate each, not by size.
fn tokens(preamble: &RecordedPreamble, body: &[u8], sides: &[ChatMessage<'_>]) -> u64 {
    let bits = sides.iter().flat_map(|side| match side {
        ChatMessage::Person(bits) => bits.as_slice(),
        ChatMessage::Model(_) => &[],
    });
    let pictures = bits.filter_map(|bit| match bit {
        ContentPart::Picture(picture) => Some(picture.base64.len() as u64),
        ContentPart::Text(_) | ContentPart::Result { .. } => None,
    });
    let (count, bytes) = pictures.fold((0, 0), |(count, bytes), len| (count + 1, bytes + len));
    // The schema constrains the answer; the model does not read it.
    let unread = bytes + preamble.schema.as_ref().map_or(0, |schema| schema.get().len() as u64);
    estimate(body).saturating_sub(unread / BYTES_PER_TOKEN) + count * PICTURE
}

fn has_pictures(sides: &[ChatMessage<'_>]) -> bool {
    let picture = |part: &ContentPart<'_>| matches!(part, ContentPart::Picture(_));
    sides.iter().any(|side| matches!(side, ChatMessage::Person(said) if said.iter().any(picture)))
}

/// Whether a request has something that only its server can read.
fn has_own_parts(sides: &[ChatMessage<'_>]) -> bool {
    let own = |part: &AssistantPart<'_>| {
        matches!(part, AssistantPart::Item(_) | AssistantPart::Reasoning { opaque: Some(_), .. })
    };
    sides.iter().any(|side| matches!(side, ChatMessage::Model(said) if said.iter().any(own)))
}

/// Sends a request and retries until there is an answer, a retry is pointless, or it is cancelled.
pub(crate) async fn ask(
    line: &Transport<'_>,
    question: &PromptRequest<'_>,
    live: DeltaSink,
    halt: CancellationToken,
) -> Result<Answered, StepFailed> {
    let PromptRequest { preamble, step, hash, messages, resume, pictures, anyway, session, .. } =
        *question;
    let wire = preamble.wire.to_string();
    let unsent = |failure, error| StepFailed::unsent(step, failure, error);
    let arrange = |bare, anew: bool, sees_pictures| {
        let to = Target {
            model: &preamble.model,
            wire: &wire,
            dialect: preamble.dialect,
            callable: &preamble.callable,
            as_came: &|items| !anew && Outgoing::as_came(items, bare),
            sees_pictures,
        };
        let mut sides =
            sides(messages, pictures, &to).map_err(|why| unsent(Failure::Rejected, why))?;
        begin_with(&mut sides, &preamble.host.snapshot);
        Ok::<_, StepFailed>(sides)
    };
    let callable: Arc<[Callable]> = preamble.callable.clone().into();
    let mut bare = line.without.get(&preamble.model);
    let mut with_effort = question.with_effort && !preamble.effort.is_empty();
    let mut effort_refused = false;
    let mut anew = line.without.has_refused_items(session, &preamble.model);
    let render = |sides: &[ChatMessage<'_>], bare, with_effort, anew| {
        preamble.wire.body(&Outgoing { preamble, sides, bare, anew, with_effort, session })
    };
    let mut sees_pictures = line.without.accepts_pictures(session, &preamble.model);
    let mut sides = arrange(bare, anew, sees_pictures)?;
    let mut body = render(&sides, bare, with_effort, anew);
    if let Some(window) = preamble.window
        && !anyway
    {
        let (need, name) = (tokens(preamble, &body, &sides), &preamble.model);
        let room = preamble.max_output.unwrap_or(u64::MAX).min(window / 8);
        if need + room > window {
            let error = format!(
                "the request needs about {need} tokens and its answer {room}, but the context \
                 window of {name} is {window} tokens, so it was not sent. Give the model a larger \
                 window, or set \"window\" if it already has one"
            );
            return Err(unsent(Failure::Overflow, error));
        }
    }
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut usage = Usage::default();
    let mut patience = line.patience;
    let time_left = resume.and_then(|resume| resume.time_left).map(|left| Instant::now() + left);
    if let Some(left) = resume.and_then(|resume| resume.time_left) {
        patience.unattended = patience.unattended.min(left);
        patience.offline = patience.offline.min(left);
    }
    let mut retries = Retries {
        patience,
        failed: resume.map_or(0, |resume| resume.failed_attempts),
        idle: 0,
        connects: 0,
        answered: resume.map(|resume| resume.answered),
        offline_since: None,
        busy_since: None,
        patient: resume.is_some_and(|resume| resume.patient),
    };
    loop {
        let (at, began) = (now(), Instant::now());
        let attempt = u32::try_from(attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
        let mut answer = Answer::new(
            AnswerParser::new(preamble.dialect, &callable),
            KeyFilter::of(line.provider),
            preamble.aliases_at.clone(),
        );
        let tried = {
            let (mut said, mut thought) = (0_u64, 0_u64);
            let live = live.clone();
            let mut show = move |piece: Piece| match piece {
                Piece::Reasoning(text) => {
                    let offset = thought;
                    thought += text.len() as u64;
                    live(Delta::Reasoning { step, attempt, offset, text: text.into() });
                }
                Piece::Text(text) => {
                    let offset = said;
                    said += text.len() as u64;
                    live(Delta::Text { step, attempt, offset, text: text.into() });
                }
            };
            tokio::select! {
                biased;
                () = halt.cancelled() => None,
                end = until(time_left) => {
                    attempts.push(Attempt {
                        at, ms: 0, error: Some("the deadline came".into()), usage: Usage::default(),
                    });
                    return Err(out_of_time(step, attempts, answer.said(), end));
                }
                tried = try_once(line, preamble, body.clone(), &mut answer, &mut show) => Some(tried),
            }
        };
        failpoint::hit("model.tried", "");
        if !matches!(tried, Some(Tried::Done)) {
            answer.give_up();
        }
        usage += answer.usage;
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let record = |error: Option<String>| Attempt { at, ms, error, usage: answer.usage };
        let fail = |attempts, failure, error, partial: &str| StepFailed {
            step,
            attempts,
            failure,
            error,
            partial: partial.into(),
            no_answer: None,
            usage,
            retry_at: None,
            incomplete: false,
            lost: Reserved::default(),
        };
        let trouble = match tried {
            Some(Tried::Done) => {
                attempts.push(record(None));
                line.without.keep(&preamble.model, bare);
                if !sees_pictures {
                    line.without.keep_refused_pictures(session, &preamble.model);
                }
                if anew {
                    line.without.keep_refused_items(session, &preamble.model);
                }
                let partial = answer.said();
                let FinishedAnswer { parts, items, stop } = answer.finish(step.0);
                let why = no_answer(&parts, &stop)
                    .map(str::to_owned)
                    .or_else(|| twice(preamble, messages, &parts));
                if let Some(why) = why {
                    let error = format!("{}: {why}", line.provider.name);
                    let failed = fail(attempts, Failure::Rejected, error, &partial);
                    return Err(StepFailed { no_answer: how_it_ended(&parts, &stop), ..failed });
                }
                let model = preamble.model.clone();
                return Ok(Answered {
                    step,
                    attempts,
                    model,
                    wire,
                    parts,
                    items,
                    effort_refused,
                    stop,
                    usage,
                    request: hash,
                    raw: None,
                    server_tools: Vec::new(),
                });
            }
            Some(Tried::Trouble(trouble)) => trouble,
            None => {
                attempts.push(record(Some("interrupted".into())));
                // The server may still be working on it, so its usage is unknown.
                let cut =
                    fail(attempts, Failure::Interrupted, "interrupted".into(), &answer.said());
                return Err(StepFailed { incomplete: true, ..cut });
            }
        };
        attempts.push(record(Some(trouble.words.clone())));
        if trouble.intact && answer.keep_finished_calls() {
            // What is complete is not asked for again.
            let FinishedAnswer { parts, items, stop } = answer.finish(step.0);
            let first = first_sentence(&trouble.words);
            live(Delta::Notice { text: format!("{first}; finished calls are kept").into() });
            return Ok(Answered {
                step,
                attempts,
                model: preamble.model.clone(),
                wire,
                parts,
                items,
                effort_refused,
                stop,
                usage,
                request: hash,
                raw: None,
                server_tools: Vec::new(),
            });
        }
        if trouble.effort && with_effort {
            // The table is wrong about this model, or about the server in between.
            (with_effort, effort_refused) = (false, true);
            body = render(&sides, bare, with_effort, anew);
            let mut text =
                format!("{} does not accept an effort; continuing without", preamble.model);
            if preamble.wire == Wire::Chat && trouble.words.contains("/responses") {
                let name = &line.provider.name;
                text.push_str(&format!(". Set providers.{name}.wire = \"responses\" to use one"));
            }
            live(Delta::Notice { text: text.into() });
            continue;
        }
        if trouble.pictures && sees_pictures && has_pictures(&sides) {
            sees_pictures = false;
            sides = arrange(bare, anew, sees_pictures)?;
            body = render(&sides, bare, with_effort, anew);
            let name = &line.provider.name;
            let text = format!("{name} refused the images; continuing without");
            live(Delta::Notice { text: text.into() });
            continue;
        }
        if trouble.items && !anew && preamble.wire == Wire::Responses && has_own_parts(&sides) {
            // Otherwise every later request of the session would fail.
            anew = true;
            sides = arrange(bare, anew, sees_pictures)?;
            body = render(&sides, bare, with_effort, anew);
            let name = &line.provider.name;
            let text = format!("{name} refused an earlier answer; continuing with its text only");
            live(Delta::Notice { text: text.into() });
            continue;
        }
        if trouble.bare && bare < RefusedExtras::ALL {
            // The model rejects an optional feature: try again without it.
            bare += 1;
            sides = arrange(bare, anew, sees_pictures)?;
            body = render(&sides, bare, with_effort, anew);
            continue;
        }
        if let Some(end) = time_left
            && trouble.failure == Failure::Transport
            && Instant::now() + Duration::from_secs(1) > end
        {
            return Err(out_of_time(step, attempts, answer.said(), end));
        }
        let next = retries.next(&trouble.again, answer.begun);
        let Some((pause, plan)) = next.filter(|_| !answer.begun || resume.is_some()) else {
            let failed = fail(attempts, trouble.failure, trouble.words, &answer.said());
            return Err(StepFailed { incomplete: answer.begun, ..failed });
        };
        let first = first_sentence(&trouble.words);
        if answer.begun {
            // It was paid for in part. The core decides whether the budget covers another one.
            let error = format!("{plan} · {first}; what arrived of the answer is discarded");
            let failed = fail(attempts, trouble.failure, error, &answer.said());
            let ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
            let retry_at = Some(At(now().0.saturating_add(ms)));
            return Err(StepFailed { incomplete: true, retry_at, ..failed });
        }
        live(Delta::Notice { text: format!("{plan} · {first}").into() });
        tokio::select! {
            biased;
            () = halt.cancelled() => return Err(fail(attempts, Failure::Interrupted, "interrupted".into(), "")),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Waits for a deadline, if there is one.
async fn until(end: Option<Instant>) -> Instant {
    match end {
        Some(end) => {
            tokio::time::sleep_until(end.into()).await;
            end
        }
        None => std::future::pending().await,
    }
}

/// A request that the deadline ended: the core finds that the time is up.
fn out_of_time(step: Step, attempts: Vec<Attempt>, partial: String, end: Instant) -> StepFailed {
    let left = end.saturating_duration_since(Instant::now()).as_millis();
    let end = now().0.saturating_add(i64::try_from(left).unwrap_or(i64::MAX));
    let error = "the deadline came before the answer".to_owned();
    StepFailed {
        attempts,
        partial: partial.into(),
        retry_at: Some(At(end)),
        incomplete: true,
        ..StepFailed::unsent(step, Failure::Transport, error)
    }
}

fn first_sentence(words: &str) -> &str {
    words.split(". ").next().unwrap_or_default()
}

/// The one retry policy: how often, and after which pauses.
struct Retries {
    patience: Timeouts,
    /// Attempts that failed since the last answer, without those that did not connect.
    failed: u32,
    /// Those in which nothing arrived for too long.
    idle: u32,
    /// Those that did not connect.
    connects: u32,
    /// Whether this model has answered before in the session; `None` if this is no step of one.
    answered: Option<bool>,
    offline_since: Option<Instant>,
    busy_since: Option<Instant>,
    /// Nobody watches.
    patient: bool,
}

impl Retries {
    /// The pause before the next attempt and what to say about it; `None` if there is none.
    fn next(&mut self, again: &Retry, begun: bool) -> Option<(Duration, String)> {
        let seconds = |pause: Duration| format!("{:.1} s", pause.as_secs_f32());
        if let Retry::Connect { offline } = *again {
            self.connects += 1;
            let pause = pause(self.patience, self.connects, None);
            if !self.patient && !self.answered.is_some_and(|answered| answered || offline) {
                let (next, most) = (self.connects + 1, ATTEMPTS_TO_CONNECT);
                let plan = format!("retrying {next}/{most} in {}", seconds(pause));
                return (self.connects < most).then_some((pause, plan));
            }
            let since = *self.offline_since.get_or_insert_with(Instant::now);
            let most = if self.patient { self.patience.unattended } else { self.patience.offline };
            let left = most.checked_sub(since.elapsed())?;
            let (pause, minutes) = (pause.min(OFFLINE_PAUSE), left.as_secs().div_ceil(60));
            let next = seconds(pause);
            let plan =
                format!("waiting up to {minutes} min for a connection, next attempt in {next}");
            return Some((pause, plan));
        }
        self.offline_since = None;
        self.failed = self.failed.saturating_add(1);
        let (word, most, wait) = match *again {
            Retry::Never | Retry::OtherKey | Retry::Connect { .. } => return None,
            Retry::Idle => {
                self.idle += 1;
                // Each of these attempts takes minutes.
                if self.idle == IDLE_ATTEMPTS {
                    return None;
                }
                ("reconnecting", ATTEMPTS, None)
            }
            Retry::Reconnect => ("reconnecting", ATTEMPTS, None),
            Retry::Busy { wait } => ("retrying", ATTEMPTS, wait),
        };
        let pause = pause(self.patience, self.failed, wait);
        // An answer that had begun was paid for.
        if self.patient && !begun && wait_is_worth(again) {
            let since = *self.busy_since.get_or_insert_with(Instant::now);
            let left = self.patience.unattended.checked_sub(since.elapsed() + pause)?;
            let minutes = left.as_secs().div_ceil(60);
            let next = seconds(pause);
            let plan = format!("{word}, for up to {minutes} min more, next attempt in {next}");
            return (self.failed < MOST_ATTEMPTS).then_some((pause, plan));
        }
        let plan = format!("{word} {}/{most} in {}", self.failed + 1, seconds(pause));
        (self.failed < most).then_some((pause, plan))
    }
}

/// Whether a server that failed like this may answer later.
fn wait_is_worth(again: &Retry) -> bool {
    match again {
        Retry::Busy { .. } | Retry::Reconnect => true,
        Retry::Idle | Retry::Never | Retry::OtherKey | Retry::Connect { .. } => false,
    }
}

/// Why a complete response is not a usable answer: it is empty, or its end is missing. It must not
/// count as the end of the work.
pub(crate) fn no_answer(parts: &[Part], stop: &Stop) -> Option<&'static str> {
    let calls = Part::calls(parts).next().is_some();
    let said = !Part::words(parts).trim().is_empty();
    match stop {
        _ if calls => None,
        Stop::Length => Some(
            "the answer was cut off at the model's output limit. Ask for less at a time, or use a \
             model with a higher limit",
        ),
        Stop::Filter => {
            Some("the provider's content filter blocked the answer. Rephrase, or try another model")
        }
        Stop::End | Stop::Calls | Stop::Other(_) if !said => {
            Some("the model returned an empty answer. Rephrase, or try another model")
        }
        Stop::End | Stop::Calls | Stop::Other(_) => None,
    }
}

/// How such an answer ended, if the model can do better once it knows.
fn how_it_ended(parts: &[Part], stop: &Stop) -> Option<NoAnswer> {
    no_answer(parts, stop)?;
    match stop {
        Stop::Length => Some(NoAnswer::CutOff),
        Stop::End | Stop::Calls | Stop::Other(_) => Some(NoAnswer::Empty),
        Stop::Filter => None,
    }
}

/// Reports the second invalid plan in a row, which ends the run (P4). The first one is only
/// reported to the model.
fn twice(preamble: &RecordedPreamble, messages: &[Message], parts: &[Part]) -> Option<String> {
    let broken = |parts: &[Part]| {
        let fault = |call: &Arc<dunnock_proto::CallPart>| {
            call.fault.as_ref().filter(|_| call.tool == plan::BROKEN).map(ToString::to_string)
        };
        Part::calls(parts).find_map(fault)
    };
    let last = messages.iter().rev().find_map(|message| match message {
        Message::Assistant { parts, .. } => Some(parts),
        Message::User { .. } | Message::Result { .. } | Message::Notice { .. } => None,
    });
    let now = broken(parts).filter(|_| preamble.dialect == Dialect::Plan)?;
    broken(last?)?;
    Some(format!("the model returned an invalid plan twice in a row: {now}"))
}

/// The pause that the server asked for, or twice the last one; with jitter, so that many clients do
/// not retry at once.
fn pause(patience: Timeouts, attempt: u32, wait: Option<Duration>) -> Duration {
    let doubled = patience.pause.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    let mut byte = [0_u8; 1];
    let jitter = if getrandom::fill(&mut byte).is_ok() { f64::from(byte[0]) / 255.0 } else { 0.5 };
    let least = wait.unwrap_or(doubled.mul_f64(0.75));
    least.max(doubled.mul_f64(0.75 + jitter / 2.0)).min(patience.longest_pause)
}

pub(crate) async fn try_once(
    line: &Transport<'_>,
    preamble: &RecordedPreamble,
    body: Vec<u8>,
    answer: &mut Answer,
    show: &mut (dyn FnMut(Piece) + Send),
) -> Tried {
    let provider = line.provider;
    let request = wires::request(line.client, provider, preamble.wire, reqwest::Method::POST, None);
    let request = request
        .header("content-type", "application/json")
        .header("accept", "text/event-stream")
        .body(body);
    failpoint::hit("model.send", "");
    let response = match tokio::time::timeout(line.patience.idle, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Tried::Trouble(RequestError::unreachable(provider, &error)),
        Err(_) => {
            return Tried::Trouble(broken(
                provider,
                preamble.names().1,
                &Broken::Idle(line.patience.idle),
            ));
        }
    };
    let status = response.status().as_u16();
    let header =
        |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
    if status != 200 {
        let wait = header("retry-after")
            .and_then(|s| Duration::try_from_secs_f64(s.trim().parse().ok()?).ok());
        let body = some_of(response, line.patience.idle).await;
        return Tried::Trouble(RequestError::status(
            provider,
            preamble.names().1,
            status,
            wait,
            &body,
            &preamble.effort,
        ));
    }
    let plain = header("content-type").is_some_and(|t| t.starts_with("application/json"));
    let mut reader = preamble.wire.reader();
    let mut ear =
        StreamReader { framing: preamble.wire.framing(), reader: reader.as_mut(), answer };
    let done = if plain {
        let body = all_of(response, line.patience.idle).await;
        ear.whole(&String::from_utf8_lossy(&body), show)
    } else {
        stream::read(response.bytes_stream(), line.patience.idle, &mut ear, show).await
    };
    match done {
        Ok(()) => Tried::Done,
        Err(why) => {
            // Calls that are complete may be kept, with what must be sent back for them.
            let _ = ear.reader.end(ear.answer);
            Tried::Trouble(broken(provider, preamble.names().1, &why))
        }
    }
}

fn broken(provider: &Provider, model: &str, why: &Broken) -> RequestError {
    if let Broken::Server(said) = why
        && let Some(overflow) = RequestError::overflow(provider, model, said)
    {
        return overflow;
    }
    let words = format!("{}: {}", provider.name, clean(provider, &why.to_string()));
    let again = match why {
        Broken::TooLong(_) => Retry::Never,
        Broken::Idle(_) => Retry::Idle,
        Broken::Lost(_) | Broken::Unfinished | Broken::Garbage(_) | Broken::Server(_) => {
            Retry::Reconnect
        }
    };
    let intact = match why {
        Broken::TooLong(_) | Broken::Garbage(_) => false,
        Broken::Idle(_) | Broken::Lost(_) | Broken::Unfinished | Broken::Server(_) => true,
    };
    RequestError { failure: Failure::Transport, again, intact, ..RequestError::rejected(words) }
}

/// Reads a body with an idle timeout of at most 30 s, for error messages and small responses.
pub(crate) async fn some_of(response: reqwest::Response, idle: Duration) -> Vec<u8> {
    all_of(response, idle.min(Duration::from_secs(30))).await
}

/// Reads a body, up to about 4 MB.
async fn all_of(response: reqwest::Response, idle: Duration) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut stream = response.bytes_stream();
    while let Ok(Some(Ok(chunk))) = tokio::time::timeout(idle, stream.next()).await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > 4 << 20 {
            break;
        }
    }
    bytes
}
