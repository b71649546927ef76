//! `cargo xtask fuzz`.

#![no_main]

#[path = "../wire.rs"]
mod wire;

libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::run(data));
