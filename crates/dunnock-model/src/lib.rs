//! Speaks to models: providers as data, wires, streams, retries, and the words of a session's head.
//!
//! [`Speaker`] is the [`Model`](dunnock_core::ports::Model) port. A request goes: `head.rs` (what was recorded) and
//! `chat.rs` (bytes of the wire) into `ask.rs` (tries, cancelling, what went wrong), over `stream.rs` (server-sent events
//! with an idle timer and a bound).
//!
//! A new wire is one file beside `chat.rs`; a new provider is a line in `provider.rs`, or some lines of the user's
//! configuration.
//!
//! Invariant: a key is sent in a header to its own provider and appears nowhere else: not in errors, not in `Debug`.
//! Invariant: nothing is tried again once a piece of the answer has been shown.

mod ask;
mod chat;
mod head;
mod provider;
mod speaker;
mod stream;
mod trouble;

pub use ask::Patience;
pub use head::{Briefing, Prompts, Surroundings};
pub use provider::{KNOWN, Known, Provider, Wire};
pub use speaker::{Brief, Speaker};

/// What fuzzers and hostile tests feed: a stream in pieces, read to its end. Returns what was understood, or why not.
#[doc(hidden)]
pub async fn read_pieces(pieces: Vec<Vec<u8>>) -> Result<Vec<dunnock_proto::Part>, String> {
    stream::read_pieces(pieces).await
}
