//! What people and programs read of a session: text, JSON, exit codes. Nothing here drives one.

pub(crate) mod bridge_round;
pub(crate) mod describe;
pub(crate) mod exit;
pub(crate) mod lines;
pub(crate) mod output;
pub(crate) mod plain;
pub(crate) mod tally;
