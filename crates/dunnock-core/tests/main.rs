//! Tests of the core, in one binary: random worlds with their properties, and scenes written out.

mod inputs;
mod props;
mod random;
mod rng;
mod scenes;
mod world;
