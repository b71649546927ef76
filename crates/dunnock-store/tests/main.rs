//! Tests of the store, in one binary.

mod contract;
mod damage;
mod speed;
