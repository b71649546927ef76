//! What tests are made of: scripted models and tools, worlds that vanish, places to fail at, and a
//! door to kill.
//!
//! Invariant: nothing here talks to anything but loopback and temporary folders.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code ends where it goes wrong"
)]

pub mod failpoints;
pub mod files;
pub mod fixture;
pub mod model;
#[cfg(unix)]
pub mod ordinary;
pub mod scenario;
pub mod server;
pub mod speech;
pub mod store_contract;
pub mod timing;
pub mod tools;
pub mod web;
pub mod worlds;
