//! The sandbox: what a command may see and touch, enforced by the kernel.
//!
//! The program describes what it wants ([`SandboxSpec`]). The launcher turns that into lists of
//! system calls ([`plan`]) before it forks, and the child only executes them ([`child`]): it
//! allocates nothing, and any failure ends it. Invariant: a command starts only after every call in
//! its list has succeeded.

mod calls;
mod child;
mod filter;
mod landlock;
mod network;
mod plan;
#[cfg(test)]
mod quiet;
mod spec;

pub(crate) use child::{Fate, Ready, Spawned, is_shortage, spawn};
pub(crate) use landlock::abi;
pub(crate) use network::{Net, network};
pub(crate) use plan::Plan;
pub use spec::{Isolation, Layer, SandboxSpec};
