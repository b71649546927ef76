//! Connections of programs that may reach named hosts only.
//!
//! A program in the sandbox has no network of its own: it speaks to a proxy here, which connects for
//! it. Pages of the web are fetched by the same rules.
//!
//! Invariant: a name is resolved once, every address is judged, and the connection goes to one of the
//! addresses that were judged. No name leads to this machine or a private network; only an address
//! and port that the person saw and allowed does.

mod fetch;
mod hello;
mod proxy;

pub use fetch::WebPages;
pub use proxy::{NetworkUse, Proxy};
