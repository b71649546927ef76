//! Text for people: answers on standard output, everything else on standard error.

use dunnock_proto::At;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

pub(crate) use dunnock_tui::words::{number, short, took, usd};
pub(crate) use dunnock_tui::{one_line, visible};

/// Receives all output while the terminal app draws on the screen, so that it does not corrupt the
/// display.
static WINDOW: Mutex<Option<UnboundedSender<String>>> = Mutex::new(None);

/// Redirects output to the terminal app; `None` ends the redirection.
pub(crate) fn into(window: Option<UnboundedSender<String>>) {
    *WINDOW.lock().unwrap_or_else(PoisonError::into_inner) = window;
}

/// Sends text to the terminal app; false if none is open.
fn heard(text: &str) -> bool {
    let window = WINDOW.lock().unwrap_or_else(PoisonError::into_inner);
    window.as_ref().is_some_and(|window| window.send(text.to_owned()).is_ok())
}

/// Writes one line to standard output.
pub(crate) fn line(text: &str) {
    piece(&format!("{text}\n"));
}

/// Standard output is closed, or a write to it failed.
static CLOSED: AtomicBool = AtomicBool::new(false);
/// Part of the output could not be written although its reader may rely on it.
static LOST: AtomicBool = AtomicBool::new(false);

/// Writes bytes to standard output unchanged; they need not be text.
pub(crate) fn bytes(bytes: &[u8]) {
    write(bytes);
}

/// Writes text to standard output unchanged. A closed pipe is the reader's choice, and work
/// continues; any other write error is reported once and remembered.
pub(crate) fn piece(text: &str) {
    write(text.as_bytes());
}

fn write(bytes: &[u8]) {
    if CLOSED.load(Ordering::Relaxed)
        || heard(String::from_utf8_lossy(bytes).trim_end_matches('\n'))
    {
        return;
    }
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
        CLOSED.store(true, Ordering::Relaxed);
        if error.kind() != std::io::ErrorKind::BrokenPipe {
            LOST.store(true, Ordering::Relaxed);
            note(&format!("cannot write to standard output: {error}"));
        }
    }
}

/// Whether part of the output could not be written.
pub(crate) fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Writes a message to standard error, prefixed with the name of the program.
pub(crate) fn note(text: &str) {
    aside(&format!("dunnock: {}", visible(text)));
}

/// Writes a line of progress to standard error.
pub(crate) fn aside(text: &str) {
    if !heard(text) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Reports an error with its causes.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("{error:#}"));
}

/// Formats a time as RFC 3339 in UTC.
pub(crate) fn time(at: At) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| "unknown".into(), |t| format!("{t:.0}"))
}

/// The first 8 characters of an ID, enough to identify the session.
pub(crate) fn id(session: &dunnock_proto::SessionId) -> &str {
    session.as_str().get(..8).unwrap_or(session.as_str())
}
