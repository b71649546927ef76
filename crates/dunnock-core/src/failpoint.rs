//! Named places where a test may end the process, as if the power had failed there.
//!
//! The core itself ends nothing: a test installs a hook. Without the feature `failpoints` a place costs nothing.

/// What a test installs: it is given the place and a detail, and may not return.
#[cfg(feature = "failpoints")]
pub static HOOK: std::sync::OnceLock<fn(&str, &str)> = std::sync::OnceLock::new();

/// A place where the process may end.
#[inline]
pub fn hit(place: &str, detail: &str) {
    #[cfg(feature = "failpoints")]
    if let Some(hook) = HOOK.get() {
        hook(place, detail);
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = (place, detail);
}
