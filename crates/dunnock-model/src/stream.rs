//! Server-sent events from bytes: an idle timer on the bytes themselves and a bound on what one event may hold.
//!
//! The idle timer is on bytes because keep-alive comments are not events; the bound is because a server that never ends
//! an event would otherwise fill the memory.

use crate::chat::{Answer, Bad, Piece};
use eventsource_stream::Eventsource as _;
use futures_util::{Stream, StreamExt as _};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// One event.
const EVENT: usize = 4 << 20;
/// One answer.
const WHOLE: usize = 64 << 20;

/// Why a stream ended before its answer did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    /// No byte came for so long.
    Idle(Duration),
    /// One event, or all of them, is too long.
    TooLong(usize),
    /// The connection failed.
    Lost(String),
    /// It ended without saying so.
    Unfinished,
    /// It does not hold what this wire sends.
    Garbage(String),
    /// The server says that it failed.
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
            Self::TooLong(most) => write!(f, "the answer is longer than {} MB and was given up", most >> 20),
            Self::Lost(why) => write!(f, "the connection broke: {why}"),
            Self::Unfinished => f.write_str("the answer broke off before its end"),
            Self::Garbage(why) => write!(f, "the server sent something that is not an answer: {why}"),
            Self::Server(why) => write!(f, "the server failed: {why}"),
        }
    }
}
impl std::error::Error for Broken {}

/// Reads a stream to the answer's end. `each` is given what can be shown.
pub(crate) async fn read<S, B, E>(
    bytes: S,
    idle: Duration,
    answer: &mut Answer,
    each: &mut (dyn FnMut(Piece) + Send),
) -> Result<(), Broken>
where
    S: Stream<Item = Result<B, E>> + Unpin + Send,
    B: AsRef<[u8]>,
    E: fmt::Display,
{
    // Bytes since the last event, and of all: counted where they come in, reset where an event goes out.
    let since = Arc::new(AtomicUsize::new(0));
    let counter = since.clone();
    let timed = futures_util::stream::unfold((bytes, 0_usize, false), move |(mut bytes, mut whole, over)| {
        let counter = counter.clone();
        async move {
            if over {
                return None;
            }
            let next = match tokio::time::timeout(idle, bytes.next()).await {
                Err(_) => Err(Broken::Idle(idle)),
                Ok(None) => return None,
                Ok(Some(Err(error))) => Err(Broken::Lost(error.to_string())),
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
    });
    let mut events = Box::pin(without_mark(timed)).eventsource();
    while let Some(event) = events.next().await {
        since.store(0, Ordering::Relaxed);
        let event = event.map_err(|error| match error {
            eventsource_stream::EventStreamError::Transport(broken) => broken,
            other => Broken::Garbage(other.to_string()),
        })?;
        let piece = answer.take(&event.data).map_err(|bad| match bad {
            Bad::Garbage(why) => Broken::Garbage(why),
            Bad::Server(why) => Broken::Server(why),
        })?;
        each(piece);
        if answer.closed {
            return Ok(());
        }
    }
    if answer.whole() { Ok(()) } else { Err(Broken::Unfinished) }
}

/// The bytes without a byte order mark at their start, in whatever pieces that comes: the parser panics at one.
fn without_mark<B: AsRef<[u8]>>(
    bytes: impl Stream<Item = Result<B, Broken>>,
) -> impl Stream<Item = Result<Vec<u8>, Broken>> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    bytes.scan(Some(Vec::new()), |start: &mut Option<Vec<u8>>, piece| {
        let piece = piece.map(|piece| match start.take() {
            None => piece.as_ref().to_vec(),
            Some(mut held) => {
                held.extend_from_slice(piece.as_ref());
                if held.len() < MARK.len() && MARK.starts_with(&held) {
                    *start = Some(held);
                    return Vec::new();
                }
                held.strip_prefix(MARK).map_or_else(|| held.clone(), <[u8]>::to_vec)
            }
        });
        std::future::ready(Some(piece))
    })
}

/// Reads pieces that are at hand; see [`crate::read_pieces`].
pub(crate) async fn read_pieces(pieces: Vec<Vec<u8>>) -> Result<Vec<dunnock_proto::Part>, String> {
    let bytes = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, Broken>));
    let mut answer = Answer::default();
    read(bytes, Duration::from_secs(5), &mut answer, &mut |_| {}).await.map_err(|e| e.to_string())?;
    Ok(answer.finish(1).0)
}
