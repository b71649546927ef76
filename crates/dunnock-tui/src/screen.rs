//! Terminal modes: sets those we need for drawing and restores the previous ones.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Turns on bracketed paste and focus reports.
const ENTER: &str = "\x1b[?2004h\x1b[?1004h";
/// Undoes all modes that we set, and shows the cursor.
const LEAVE: &str = "\x1b[?7h\x1b[?2026l\x1b[?1004l\x1b[?2004l\x1b[?25h";

/// Whether our modes are set.
static OURS: AtomicBool = AtomicBool::new(false);

/// Turns on raw mode: keys arrive one by one.
///
/// # Errors
/// When there is no terminal.
pub fn enter() -> std::io::Result<()> {
    crossterm::terminal::enable_raw_mode()?;
    OURS.store(true, Ordering::Release);
    write(ENTER)
}

/// Restores the terminal. Does nothing if that was already done.
pub fn leave() {
    if OURS.swap(false, Ordering::AcqRel) {
        let _ = write(LEAVE);
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

/// Panics of other threads while the app was drawing. The failed work is reported separately.
static ELSEWHERE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A panic in the drawing thread restores the terminal first, so that its message can be read. A
/// panic in another thread must not write over the screen: it is stored for the app to show.
pub fn restore_after_panic() {
    let before = std::panic::take_hook();
    let drawing = std::thread::current().id();
    std::panic::set_hook(Box::new(move |panic| {
        if OURS.load(Ordering::Acquire) && std::thread::current().id() != drawing {
            ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
            return;
        }
        if OURS.load(Ordering::Acquire) {
            let _ = write("\r\n\x1b[J");
            leave();
        }
        before(panic);
    }));
}

/// Panics of other threads since the last call.
pub fn panics_elsewhere() -> Vec<String> {
    std::mem::take(&mut ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Writes to the terminal and flushes.
///
/// # Errors
/// When it is gone.
pub fn write(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
