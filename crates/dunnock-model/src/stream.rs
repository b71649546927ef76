//! Reads server-sent events and lines from bytes, with an idle timer and a size limit.
//!
//! The idle timer watches bytes, because keep-alive comments are not events. The limit is needed
//! because a server that never ends an event would otherwise fill the memory.

use crate::answer::{Answer, Bad, CONTENT, Piece};
use crate::causes::innermost;
use crate::wires::{Framing, WireReader};
use eventsource_stream::Eventsource as _;
use futures_util::{Stream, StreamExt as _};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Maximum bytes of one event.
const EVENT: usize = 4 << 20;
/// Maximum bytes of a whole stream; `Answer` has its own limit on what it keeps.
const WHOLE: usize = 512 << 20;

/// Why a stream ended before its answer did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    /// No byte arrived for this long.
    Idle(Duration),
    /// One event, the stream or the answer exceeded this many bytes.
    TooLong(usize),
    /// The connection failed.
    Lost(String),
    /// It ended without an end marker.
    Unfinished,
    /// It is not valid for this wire.
    Garbage(String),
    /// The server reported an error.
    Server(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle(after) => write!(
                f,
                "the server sent nothing for {} s. If it is only slow, set idle_timeout higher",
                after.as_secs_f32()
            ),
            Self::TooLong(most) => {
                write!(f, "the answer is longer than {} MB and was discarded", most >> 20)
            }
            Self::Lost(why) => write!(f, "the connection was lost: {why}"),
            Self::Unfinished => f.write_str("the answer ended before it was complete"),
            Self::Garbage(why) => write!(f, "the server sent an invalid answer: {why}"),
            Self::Server(why) => write!(f, "the server reported an error: {why}"),
        }
    }
}
impl std::error::Error for Broken {}

impl From<Bad> for Broken {
    fn from(bad: Bad) -> Self {
        match bad {
            Bad::Garbage(why) => Self::Garbage(why),
            Bad::Server(why) => Self::Server(why),
            Bad::TooLong => Self::TooLong(CONTENT),
        }
    }
}

/// Feeds a stream through a wire's reader into an answer.
pub(crate) struct StreamReader<'a> {
    pub(crate) framing: Framing,
    pub(crate) reader: &'a mut dyn WireReader,
    pub(crate) answer: &'a mut Answer,
}

impl StreamReader<'_> {
    /// Processes one event. Returns whether it was the last.
    fn take(&mut self, data: &str, each: &mut (dyn FnMut(Piece) + Send)) -> Result<bool, Broken> {
        let taken = self.reader.take(data, self.answer);
        self.answer.take_shown().into_iter().for_each(&mut *each);
        taken?;
        Ok(self.answer.closed)
    }

    /// Ends the answer, because it is complete or the stream is over.
    pub(crate) fn end(&mut self, each: &mut (dyn FnMut(Piece) + Send)) -> Result<(), Broken> {
        if !self.answer.whole() {
            return Err(Broken::Unfinished);
        }
        self.reader.end(self.answer)?;
        self.answer.end();
        self.answer.take_shown().into_iter().for_each(each);
        Ok(())
    }

    /// Processes an answer that was not streamed.
    pub(crate) fn whole(
        &mut self,
        body: &str,
        each: &mut (dyn FnMut(Piece) + Send),
    ) -> Result<(), Broken> {
        match self.framing {
            Framing::Events => drop(self.take(body, each)?),
            Framing::Lines => {
                for line in body.lines() {
                    if self.take(line, each)? {
                        break;
                    }
                }
            }
        }
        self.end(each)
    }
}

/// Reads a stream to the end of the answer. `each` receives the pieces to show.
pub(crate) async fn read<S, B, E>(
    bytes: S,
    idle: Duration,
    ear: &mut StreamReader<'_>,
    each: &mut (dyn FnMut(Piece) + Send),
) -> Result<(), Broken>
where
    S: Stream<Item = Result<B, E>> + Unpin + Send,
    B: AsRef<[u8]>,
    E: std::error::Error,
{
    // Bytes since the last event: counted as they arrive, reset when an event is complete.
    let since = Arc::new(AtomicUsize::new(0));
    let counter = since.clone();
    let timed = futures_util::stream::unfold(
        (bytes, 0_usize, false),
        move |(mut bytes, mut whole, over)| {
            let counter = counter.clone();
            async move {
                if over {
                    return None;
                }
                let next = match tokio::time::timeout(idle, bytes.next()).await {
                    Err(_) => Err(Broken::Idle(idle)),
                    Ok(None) => return None,
                    Ok(Some(Err(error))) => Err(Broken::Lost(innermost(&error))),
                    Ok(Some(Ok(chunk))) => {
                        let len = chunk.as_ref().len();
                        whole += len;
                        if counter.fetch_add(len, Ordering::Relaxed) + len > EVENT {
                            Err(Broken::TooLong(EVENT))
                        } else if whole > WHOLE {
                            Err(Broken::TooLong(WHOLE))
                        } else {
                            Ok(chunk)
                        }
                    }
                };
                let over = next.is_err();
                Some((next, (bytes, whole, over)))
            }
        },
    );
    let mut bytes = Box::pin(whole_lines(timed));
    match ear.framing {
        Framing::Events => {
            let mut events = bytes.eventsource();
            while let Some(event) = events.next().await {
                since.store(0, Ordering::Relaxed);
                let event = event.map_err(|error| match error {
                    eventsource_stream::EventStreamError::Transport(broken) => broken,
                    other => Broken::Garbage(other.to_string()),
                })?;
                if ear.take(&event.data, each)? {
                    return ear.end(each);
                }
            }
        }
        Framing::Lines => {
            let mut line: Vec<u8> = Vec::new();
            while let Some(piece) = bytes.next().await {
                for part in piece?.split_inclusive(|byte| *byte == b'\n') {
                    line.extend_from_slice(part);
                    if part.ends_with(b"\n") {
                        since.store(0, Ordering::Relaxed);
                        if one_line(&std::mem::take(&mut line), ear, each)? {
                            return ear.end(each);
                        }
                    }
                }
            }
            if !line.is_empty() {
                one_line(&line, ear, each)?;
            }
        }
    }
    ear.end(each)
}

fn one_line(
    line: &[u8],
    ear: &mut StreamReader<'_>,
    each: &mut (dyn FnMut(Piece) + Send),
) -> Result<bool, Broken> {
    let line = std::str::from_utf8(line).map_err(|e| Broken::Garbage(e.to_string()))?;
    ear.take(line, each)
}

/// Regroups the bytes into whole lines, without a byte order mark at the start.
///
/// The parser panics on a byte order mark, and it parses an unfinished line again from its start
/// with every piece: a long line in small pieces would take quadratic time.
fn whole_lines<B: AsRef<[u8]>>(
    bytes: impl Stream<Item = Result<B, Broken>>,
) -> impl Stream<Item = Result<Vec<u8>, Broken>> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let pieces = bytes.map(Some).chain(futures_util::stream::iter([None]));
    pieces.scan((true, Vec::new()), |(first, held), piece| {
        let lines = match piece {
            Some(Err(broken)) => Err(broken),
            Some(Ok(piece)) => {
                let piece = piece.as_ref();
                let ended = piece
                    .iter()
                    .rposition(|byte| matches!(byte, b'\n' | b'\r'))
                    .map_or(0, |last| last + 1);
                let (ended, rest) = piece.split_at(ended);
                let lines = if ended.is_empty() {
                    Vec::new()
                } else {
                    [&std::mem::take(held), ended].concat()
                };
                held.extend_from_slice(rest);
                Ok(lines)
            }
            None => Ok(std::mem::take(held)),
        };
        let lines = lines.map(|lines| match lines.strip_prefix(MARK) {
            Some(rest) if *first => rest.to_vec(),
            _ => lines,
        });
        *first &= lines.as_ref().is_ok_and(Vec::is_empty);
        std::future::ready(Some(lines))
    })
}
