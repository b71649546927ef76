//! `cargo xtask fuzz`.

#![no_main]

#[path = "../patch.rs"]
mod patch;

libfuzzer_sys::fuzz_target!(|data: &[u8]| patch::run(data));
