//! Words for people: answers on standard output, everything else on standard error.

use dunnock_proto::At;
use std::io::Write as _;

/// One line of the answer. A closed pipe is the reader's choice, not an error.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).is_err() {
        std::process::exit(0);
    }
}

/// Something beside the answer.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "dunnock: {text}");
}

/// What went wrong, with its causes.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("{error:#}"));
}

/// A moment as RFC 3339 in UTC.
pub(crate) fn time(at: At) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| "unknown".into(), |t| format!("{t:.0}"))
}

/// Text from a model or a file, safe to print: control characters are made visible, line breaks stay.
pub(crate) fn visible(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}') =>
        {
            c.escape_unicode().to_string()
        }
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// The same on one line: a title cannot pretend to be another row.
pub(crate) fn one_line(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}
