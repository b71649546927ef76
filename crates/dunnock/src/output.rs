//! Words for people: answers on standard output, everything else on standard error.

use dunnock_proto::At;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

pub(crate) use dunnock_tui::words::{number, short, took, usd};
pub(crate) use dunnock_tui::{one_line, visible};

/// Who hears what is said while the terminal is drawn on: words between would spoil the picture.
static WINDOW: Mutex<Option<UnboundedSender<String>>> = Mutex::new(None);

/// From now on what is said goes to the window; `None` ends that.
pub(crate) fn into(window: Option<UnboundedSender<String>>) {
    *WINDOW.lock().unwrap_or_else(PoisonError::into_inner) = window;
}

/// Whether a window heard it.
fn heard(text: &str) -> bool {
    let window = WINDOW.lock().unwrap_or_else(PoisonError::into_inner);
    window.as_ref().is_some_and(|window| window.send(text.to_owned()).is_ok())
}

/// One line of the answer. A closed pipe is the reader's choice, not an error.
pub(crate) fn line(text: &str) {
    piece(&format!("{text}\n"));
}

/// Standard output takes no more: nobody reads it, or it cannot be written.
static CLOSED: AtomicBool = AtomicBool::new(false);
/// Something of the answer could not be written, and somebody may count on it.
static LOST: AtomicBool = AtomicBool::new(false);

/// A piece of the answer, as it is, and no text perhaps.
pub(crate) fn bytes(bytes: &[u8]) {
    write(bytes);
}

/// A piece of the answer, as it is. That nobody reads any more is the reader's choice, and work goes on; that it cannot be
/// written is an error, told once and remembered.
pub(crate) fn piece(text: &str) {
    write(text.as_bytes());
}

fn write(bytes: &[u8]) {
    if CLOSED.load(Ordering::Relaxed) || heard(String::from_utf8_lossy(bytes).trim_end_matches('\n')) {
        return;
    }
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
        CLOSED.store(true, Ordering::Relaxed);
        if error.kind() != std::io::ErrorKind::BrokenPipe {
            LOST.store(true, Ordering::Relaxed);
            note(&format!("standard output cannot be written: {error}"));
        }
    }
}

/// Whether something of the answer was lost.
pub(crate) fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Something beside the answer, under our name.
pub(crate) fn note(text: &str) {
    aside(&format!("dunnock: {}", visible(text)));
}

/// A line of progress.
pub(crate) fn aside(text: &str) {
    if !heard(text) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// What went wrong, with its causes.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("{error:#}"));
}

/// A moment as RFC 3339 in UTC.
pub(crate) fn time(at: At) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| "unknown".into(), |t| format!("{t:.0}"))
}

/// The beginning of an id that is enough to name it.
pub(crate) fn id(session: &dunnock_proto::SessionId) -> &str {
    session.as_str().get(..8).unwrap_or(session.as_str())
}
