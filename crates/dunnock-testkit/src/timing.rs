//! Times and costs in tests.
//!
//! A busy machine says nothing about the code, so wall time fails no test in CI: it is printed, and
//! held to its bound only by `cargo xtask long figures` (which sets `DUNNOCK_HOLD_FIGURES`) on a
//! quiet machine. What CI holds is CPU time, bytes and counts, as ratios within one run, and hang
//! limits of at least ten times the expected time.

#![expect(clippy::print_stdout, reason = "figures are for whoever reads the log")]

use std::time::Duration;

/// A hang limit is never shorter than this: a loaded machine can stall for seconds.
const SHORTEST_HANG: Duration = Duration::from_secs(10);

/// Whether wall-time figures are held to their bounds in this run.
#[must_use]
pub fn held() -> bool {
    std::env::var_os("DUNNOCK_HOLD_FIGURES").is_some()
}

/// Prints a wall time beside its bound. Fails over the bound only where figures are [`held`], and
/// over ten times the bound everywhere.
///
/// # Panics
/// Where it took too long.
pub fn figure(what: &str, took: Duration, bound: Duration) {
    println!("figure: {what}: {took:.1?} (bound {bound:.1?})");
    assert!(!held() || took <= bound, "{what} took {took:?}, more than {bound:?}");
    no_hang(what, took, bound);
}

/// Prints a ratio of wall times beside its bound. Fails over the bound only where figures are
/// [`held`].
///
/// # Panics
/// Where it is too large.
pub fn wall_ratio(what: &str, ratio: f64, bound: f64) {
    println!("figure: {what}: {ratio:.2} (wall time, bound {bound})");
    assert!(!held() || ratio <= bound, "{what}: {ratio:.2}, more than {bound}");
}

/// Prints a ratio of CPU times, bytes or counts beside its bound, and fails over it everywhere.
///
/// # Panics
/// Where it is too large.
pub fn cost_ratio(what: &str, ratio: f64, bound: f64) {
    println!("figure: {what}: {ratio:.2} (bound {bound})");
    assert!(ratio <= bound, "{what}: {ratio:.2}, more than {bound}");
}

/// Prints a ratio of CPU times beside its bound. Caches and other machines on the same processor
/// change CPU time, too: the bound itself counts where figures are [`held`], and 1.6 times the
/// bound everywhere.
///
/// # Panics
/// Where it is too large.
pub fn cpu_ratio(what: &str, ratio: f64, bound: f64) {
    cost_ratio(what, ratio, if held() { bound } else { bound * 1.6 });
}

/// Fails where something took more than ten times what is expected of it.
///
/// # Panics
/// Where it took too long.
pub fn no_hang(what: &str, took: Duration, expected: Duration) {
    let limit = (expected * 10).max(SHORTEST_HANG);
    assert!(took < limit, "{what} took {took:?}; it hangs (limit {limit:?})");
}

/// How often to repeat a measurement: a few times in CI, where it only has to run, often where
/// figures are [`held`].
#[must_use]
pub fn rounds(ci: usize, long: usize) -> usize {
    if held() { long } else { ci }
}

/// CPU time of this process so far, all threads, without its children.
#[must_use]
pub fn cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panics(run: impl FnOnce() + std::panic::UnwindSafe) -> bool {
        std::panic::catch_unwind(run).is_err()
    }

    #[test]
    fn only_a_hang_fails_on_wall_time() {
        let (second, bound) = (Duration::from_secs(1), Duration::from_millis(100));
        if !held() {
            assert!(!panics(move || figure("ten times its bound", second, bound)));
            assert!(!panics(|| wall_ratio("a ratio", 2.0, 1.0)));
        }
        assert!(panics(move || figure("a hang", second * 11, bound)));
        assert!(panics(|| cost_ratio("a cost", 2.0, 1.0)));
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let before = cpu();
        let mut sum = 0u64;
        while cpu() - before < Duration::from_millis(5) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }
}
