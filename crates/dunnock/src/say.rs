//! Words for people: answers on standard output, everything else on standard error.

use dunnock_proto::At;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

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
    if CLOSED.load(Ordering::Relaxed) {
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
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What went wrong, with its causes.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("{error:#}"));
}

/// A moment as RFC 3339 in UTC.
pub(crate) fn time(at: At) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| "unknown".into(), |t| format!("{t:.0}"))
}

/// How long something took.
pub(crate) fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// A number with its thousands set apart.
pub(crate) fn usd(micros: u64) -> String {
    let usd = micros as f64 / 1e6;
    if usd >= 1.0 || micros == 0 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

/// A number that is easy to read.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Text from a model or a file, safe to print: control characters are made visible, line breaks stay.
pub(crate) fn visible(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() || is_invisible(c) => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Characters that show nothing and change how others are shown: the format characters of Unicode.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// The same on one line: a title cannot pretend to be another row.
pub(crate) fn one_line(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

/// At most so many characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most - 3).collect::<String>() + "..." }
}

/// The beginning of an id that is enough to name it.
pub(crate) fn id(session: &dunnock_proto::SessionId) -> &str {
    session.as_str().get(..8).unwrap_or(session.as_str())
}
