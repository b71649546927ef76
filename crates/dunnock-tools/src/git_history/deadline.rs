//! How long recording may take.

use std::time::{Duration, Instant};

/// How many files are recorded however long it takes: a busy machine must not leave a small
/// repository unprotected.
pub(super) const AT_LEAST: usize = 2_000;

/// When recording stops.
pub(super) struct Deadline {
    pub(super) until: Instant,
    /// Files that are recorded even after that.
    pub(super) at_least: usize,
}

impl Deadline {
    pub(super) fn new(budget: Duration) -> Self {
        Self { until: Instant::now() + budget, at_least: AT_LEAST }
    }

    /// Asked before each file.
    pub(super) fn is_over(&mut self) -> bool {
        if self.at_least > 0 {
            self.at_least -= 1;
            return false;
        }
        Instant::now() > self.until
    }
}
