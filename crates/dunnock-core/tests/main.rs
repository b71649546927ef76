//! Tests of the core, in one binary: random worlds with their properties, and scenes written out.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test ends where it goes wrong"
)]

mod edits;
mod folds;
mod inputs;
mod limits;
mod lines;
mod past;
mod presets;
mod props;
mod random;
mod rng;
mod scenes;
mod stage;
mod stalls;
mod unattended;
mod world;
