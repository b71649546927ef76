//! The model client: providers as data, wires, dialects, streams, retries, and session preambles.
//!
//! [`ModelClient`] implements the [`Model`](dunnock_ports::Model) port. The path of a
//! request: the recorded preamble (`preamble.rs`) and the conversation as messages in a dialect
//! (`messages.rs`) become the bytes of a wire (`wires/`), which `ask.rs` sends (retries,
//! cancellation, errors). The response goes through `stream.rs` (framing, idle timer, size limit)
//! to the wire's reader, its text through the dialect (`dialects/`), and both into one answer
//! (`answer.rs`).
//!
//! A session's preset (`preset.rs`) selects its prompts and tools. A copy-and-paste session uses
//! files as its wire (`bridge/`), and its own reader parses the reply as a whole (`inbox.rs` and
//! `marks.rs` there).
//!
//! To add a wire, add a file in `wires/` and its match arms in `wires/mod.rs`; the same goes for a
//! dialect. To add a provider, add a row in `provider.rs` or a section in the user's configuration.
//!
//! Invariant: a key is sent only in a header to its own provider. It never appears elsewhere, such
//! as in errors or `Debug` output.
//! Invariant: a request whose answer has begun is sent again only by the core, which knows the
//! budget.
//! Invariant: opaque reasoning is sent back only to the model that produced it.

pub mod aliases;
mod answer;
mod ask;
pub mod bridge;
mod capabilities;
mod causes;
mod check;
mod client;
pub mod dialects;
mod effort_table;
mod key_filter;
mod messages;
mod preamble;
mod preamble_drift;
mod preset;
mod prices_table;
mod profile;
mod provider;
mod request_error;
mod service;
mod stream;
mod tool_sets;
mod try_model;
mod window;
mod wire;
mod wires;
mod words;

pub use ask::Timeouts;
pub use bridge::{
    InboxState, ListFiles, OWNER as BRIDGE_OWNER, brought, inbox_name, outbox_name,
    put as put_private,
};
pub use check::{Checked, Probe, Verdict};
pub use client::{MakePreambleInputs, ModelClient};
pub use dialects::Dialect;
pub use effort_table::{EFFORT_SOURCES, EFFORTS_OF};
pub use preamble::{Environment, PreambleInputs, Prompts};
pub use preset::BRIDGE_MODEL;
pub use prices_table::{PRICE_SOURCES, PRICES, PRICES_OF};
pub use profile::{EditFormat, Profile, Profiles, Size};
pub use provider::{Auth, KNOWN, KeySource, Known, Provider, Quirks};
pub use service::{Service, service_offers};
pub use tool_sets::ToolSet;
pub use try_model::TryError;
pub use wire::Wire;

/// Entry point for fuzzers and hostile tests: parses a whole stream that arrives in pieces.
#[doc(hidden)]
pub async fn read_pieces(
    wire: Wire,
    dialect: Dialect,
    tools: &std::sync::Arc<[dialects::Callable]>,
    pieces: Vec<Vec<u8>>,
) -> Result<Vec<dunnock_proto::Part>, String> {
    let bytes = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>));
    let parser = dialects::AnswerParser::new(dialect, tools);
    let mut answer = answer::Answer::new(parser, key_filter::KeyFilter::default(), None);
    let mut reader = wire.reader();
    let mut ear = stream::StreamReader {
        framing: wire.framing(),
        reader: reader.as_mut(),
        answer: &mut answer,
    };
    let idle = std::time::Duration::from_secs(5);
    stream::read(bytes, idle, &mut ear, &mut |_| {}).await.map_err(|e| e.to_string())?;
    Ok(answer.finish(1).parts)
}
