//! Speaks to models: providers as data, wires, dialects, streams, retries, and the words of a session's preamble.
//!
//! [`ModelClient`] is the [`Model`](dunnock_core::ports::Model) port. A request goes: what was recorded (`preamble.rs`) and the conversation as
//! messages in a dialect (`messages.rs`) become bytes of a wire (`wires/`), which `ask.rs` sends (tries, cancelling, what went
//! wrong). What comes back goes through `stream.rs` (framing, an idle timer, a bound) to the wire's reader, and its words
//! through the dialect (`dialects/`), into one `answer.rs`.
//!
//! What a session is told and may call beside that is its preset (`preset.rs`). A conversation that a person carries has files for
//! a wire (`bridge.rs`, `outbox.rs`) and a dialect that is read whole (`dialects/bridge.rs`, `marks.rs`).
//!
//! A new wire is one file in `wires/` and its arms in `wires/mod.rs`; a new dialect likewise; a new provider is a line in
//! `provider.rs`, or some lines of the user's configuration.
//!
//! Invariant: a key is sent in a header to its own provider and appears nowhere else: not in errors, not in `Debug`.
//! Invariant: nothing is tried again once a piece of the answer has been shown.
//! Invariant: what only its maker can read goes back to its maker alone.

mod answer;
mod ask;
mod bridge;
mod check;
mod client;
pub mod dialects;
mod messages;
mod outbox;
mod preamble;
mod preamble_drift;
mod preset;
mod prices_table;
mod profile;
mod provider;
mod request_error;
mod service;
mod stream;
mod window;
mod wires;
mod words;

pub use ask::Timeouts;
pub use bridge::{InboxState, ListFiles, OWNER as BRIDGE_OWNER, brought, inbox_name, outbox_name, put as put_private};
pub use check::{Checked, Probe, Verdict};
pub use client::{MakePreambleInputs, ModelClient};
pub use dialects::Dialect;
pub use messages::picture_kind;
pub use preamble::{Environment, PreambleInputs, Prompts};
pub use preset::BRIDGE_MODEL;
pub use prices_table::{PRICE_SOURCES, PRICES, PRICES_OF};
pub use profile::{EditFormat, Profile, Profiles, Size};
pub use provider::{Auth, KNOWN, Known, Provider, Quirks};
pub use service::{Service, service_offers};
pub use wires::Wire;

/// What fuzzers and hostile tests feed: a stream in pieces, read to its end. Returns what was understood, or why not.
#[doc(hidden)]
pub async fn read_pieces(
    wire: Wire,
    dialect: Dialect,
    tools: &std::sync::Arc<[dialects::Callable]>,
    pieces: Vec<Vec<u8>>,
) -> Result<Vec<dunnock_proto::Part>, String> {
    let bytes = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, String>));
    let mut answer = answer::Answer::new(dialects::AnswerParser::new(dialect, tools));
    let mut reader = wire.reader();
    let mut ear = stream::StreamReader { framing: wire.framing(), reader: reader.as_mut(), answer: &mut answer };
    let idle = std::time::Duration::from_secs(5);
    stream::read(bytes, idle, &mut ear, &mut |_| {}).await.map_err(|e| e.to_string())?;
    Ok(answer.finish(1).0)
}
