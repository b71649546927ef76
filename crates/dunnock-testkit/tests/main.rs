//! Tests that need a whole engine, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test ends where it goes wrong"
)]

mod connections;
mod doubt;
mod edges;
mod file_store;
mod golden;
mod kills;
mod kills_back;
mod kills_bridge;
mod kills_cli;
mod kills_launcher;
mod kills_serve;
mod needles;
mod server;
mod sessions;
mod speed;
mod syscalls;
