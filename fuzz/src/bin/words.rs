//! `cargo xtask fuzz`.

#![no_main]

#[path = "../words.rs"]
mod words;

libfuzzer_sys::fuzz_target!(|data: &[u8]| words::run(data));
