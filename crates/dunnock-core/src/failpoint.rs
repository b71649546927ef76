//! Named places where a test may kill the process, as if the power had failed there.
//!
//! The core itself kills nothing: a test installs a hook. Without the feature `failpoints` a place
//! costs nothing.

/// The hook that a test installs. It receives the place and a detail, and need not return.
#[cfg(feature = "failpoints")]
pub static HOOK: std::sync::OnceLock<fn(&str, &str)> = std::sync::OnceLock::new();

/// A place where the process may be killed.
#[inline]
pub fn hit(place: &str, detail: &str) {
    #[cfg(feature = "failpoints")]
    if let Some(hook) = HOOK.get() {
        hook(place, detail);
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = (place, detail);
}
