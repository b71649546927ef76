//! Text edits: how a file is represented, where an edit belongs, and its result. No file is opened
//! here.
//!
//! `text` represents a file and gives the same bytes back. `find` is the ladder by which a place is
//! found, with `indentation` and `typographic` for what its match levels tolerate. `near` is what the
//! model is sent when there is no match. `apply` applies a patch in memory. Tools read the files
//! and pass the result to `root::Root::commit`.

mod apply;
mod find;
mod indentation;
mod near;
mod text;
mod typographic;

pub use apply::{CurrentFile, Outcome, apply};
pub use find::{EditLine, Edited, MatchLevel, Miss, edit_lines, places_of, replace};
pub use near::{describe, numbered, range};
pub use text::{Binary, Breaks, NoSuchCharacter, Text};

use dunnock_proto::count;
use std::fmt::Write as _;
use std::ops::Range;

/// Maximum places listed.
const PLACES: usize = 20;
/// Context lines shown around a change.
const AROUND: usize = 2;

/// Tells the model why an edit was not made.
#[must_use]
pub fn explain(which: &str, text: &Text, old: &[&str], miss: &Miss, more: &str) -> String {
    match miss {
        Miss::Absent => format!("the text does not occur in {which}; {}", describe(text, old)),
        Miss::Many(level, lines) => {
            let mut message = format!("the text occurs {} times in {which}", lines.len());
            if let Some(words) = level.words() {
                let _ = write!(message, " ({words})");
            }
            for line in lines.iter().take(PLACES) {
                let _ = write!(message, "{}", numbered(text, *line..line + 1));
            }
            if lines.len() > PLACES {
                let _ = write!(message, "\n[{}]", count(lines.len() - PLACES, "more place"));
            }
            format!("{message}\n{more}")
        }
        Miss::Ragged(line) => format!(
            "the text occurs in {which} with different indentation, which cannot be applied to \
             the new lines; {}",
            describe(&lines_of(text, *line, old.len()), old).replacen(
                "the closest match is",
                "it is at",
                1
            )
        ),
        Miss::Outside(anchor, lines) => {
            let lines: Vec<String> =
                lines.iter().take(PLACES).map(|line| (line + 1).to_string()).collect();
            format!(
                "{which}: the text does not occur in the block under {anchor:?}, only elsewhere \
                 (line {})",
                lines.join(", ")
            )
        }
        Miss::Anchor(anchor, 0) => {
            format!("{which}: there is no line {anchor:?} to place the change under")
        }
        Miss::Anchor(anchor, n) => {
            format!("{which}: {anchor:?} occurs {n} times in it; name a more specific line")
        }
        Miss::Same => {
            format!("the old and the new text are the same in {which}; nothing was changed")
        }
    }
}

/// The text with all other lines emptied, so that line numbers stay the same.
fn lines_of(text: &Text, line: usize, count: usize) -> Text {
    let lines =
        (0..text.len()).map(|n| if (line..line + count).contains(&n) { text.line(n) } else { "" });
    text.with_raw(&lines.collect::<Vec<_>>().join("\n"))
}

/// The lines that an edit changed, with context around each.
#[must_use]
pub fn shown(text: &Text, changed: &[Range<usize>]) -> String {
    let mut out = String::new();
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for lines in changed {
        let around = lines.start.saturating_sub(AROUND)..(lines.end + AROUND).min(text.len());
        match blocks.last_mut() {
            Some(last) if around.start <= last.end => last.end = last.end.max(around.end),
            _ => blocks.push(around),
        }
    }
    let more = blocks.len().saturating_sub(5);
    for (n, block) in blocks.into_iter().take(5).enumerate() {
        out.push_str(if n > 0 { "\n--" } else { "" });
        out.push_str(&numbered(text, block));
    }
    if more > 0 {
        let _ = write!(out, "\n[{}]", count(more, "more place"));
    }
    out
}
