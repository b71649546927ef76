//! A clock that tests set, and that may jump.

use dunnock_engine::{Clock, SystemClock};
use dunnock_proto::At;
use std::sync::atomic::{AtomicI64, Ordering};

/// A clock that stands until it is set.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Stands at `at`.
    #[must_use]
    pub fn new(at: i64) -> Self {
        Self(AtomicI64::new(at))
    }
    /// Jumps.
    pub fn set(&self, at: i64) {
        self.0.store(at, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> At {
        At(self.0.load(Ordering::SeqCst))
    }
    fn random(&self) -> [u8; 16] {
        SystemClock.random()
    }
}
