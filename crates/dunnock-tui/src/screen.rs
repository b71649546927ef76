//! The terminal's own modes: how we want them while we draw, and how they were.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Pastes come as one piece, and the focus is told.
const ENTER: &str = "\x1b[?2004h\x1b[?1004h";
/// All of it back, and the cursor seen.
const LEAVE: &str = "\x1b[?7h\x1b[?2026l\x1b[?1004l\x1b[?2004l\x1b[?25h";

/// The modes are ours.
static OURS: AtomicBool = AtomicBool::new(false);

/// Keys come one by one from here on.
///
/// # Errors
/// When there is no terminal.
pub fn enter() -> std::io::Result<()> {
    crossterm::terminal::enable_raw_mode()?;
    OURS.store(true, Ordering::Release);
    write(ENTER)
}

/// As it was before. Harmless when it is already.
pub fn leave() {
    if OURS.swap(false, Ordering::AcqRel) {
        let _ = write(LEAVE);
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

/// What other threads panicked about while the screen was drawn on; their work says itself that it failed.
static ELSEWHERE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A panic in the thread that draws gives the terminal back first, so that its message can be read. One elsewhere must not write
/// over the picture: it is kept for the app to show.
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

/// What other threads panicked about since the last time.
pub fn panics_elsewhere() -> Vec<String> {
    std::mem::take(&mut ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// To the terminal, now.
///
/// # Errors
/// When it is gone.
pub fn write(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
