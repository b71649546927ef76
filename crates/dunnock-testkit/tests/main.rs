//! Tests that need a whole engine, in one binary.

mod kills;
