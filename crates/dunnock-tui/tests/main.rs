//! The app without a terminal: what is fed in, and what is seen.

#![expect(clippy::unwrap_used, reason = "a test ends where it goes wrong")]

mod daily;
mod keys;
mod login;
mod painting;
mod safety;
mod screens;
mod tape;
