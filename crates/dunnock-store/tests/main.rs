//! Tests of the store, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test ends where it goes wrong"
)]

mod contract;
mod damage;
mod speed;
