//! `cargo xtask fuzz`.

#![no_main]

#[path = "../path.rs"]
mod path;

libfuzzer_sys::fuzz_target!(|data: &[u8]| path::run(data));
