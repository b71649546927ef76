//! `cargo xtask fuzz`.

#![no_main]

#[path = "../inbox.rs"]
mod inbox;

libfuzzer_sys::fuzz_target!(|data: &[u8]| inbox::run(data));
