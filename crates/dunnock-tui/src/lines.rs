//! Lines with the same form everywhere: prompts, reasoning, notes.

use crate::text::{Line, Span, Style, Tone};
use dunnock_proto::count;

/// The model's reasoning, dimmed.
pub(crate) fn thoughts(text: &str, columns: usize) -> Vec<Line> {
    let style = Style { italic: true, ..Style::of(Tone::Quiet) };
    let lines = text.trim().lines().filter(|line| !line.trim().is_empty());
    lines.flat_map(|line| Line::prose(line.trim_end(), style).wrap(columns, "   ", "   ")).collect()
}

pub(crate) fn indented(line: Line) -> Line {
    line.after(&Span::new(" ", Tone::Text))
}

/// A prompt: blue, behind a mark.
#[must_use]
pub fn said_by_person(text: &str, columns: usize) -> Vec<Line> {
    const MOST: usize = 60;
    let mut out = vec![Line::empty()];
    let style = Style::of(Tone::User);
    let mut lines: Vec<Line> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let first = if n == 0 { " > " } else { "   " };
        lines.extend(Line::prose(line, style).wrap(columns, first, "   "));
        if lines.len() > MOST {
            break;
        }
    }
    let all = text.lines().count();
    out.extend(lines.into_iter().take(MOST));
    if all > MOST {
        out.push(Line::of(&format!("   … {} more", count(all - MOST, "line")), Tone::Quiet));
    }
    out
}

/// A line about the session itself.
#[must_use]
pub fn note(text: &str) -> Line {
    Line::of(&format!(" {text}"), Tone::Quiet)
}

/// A text about the session itself, in as many lines as it needs.
#[must_use]
pub fn notes(text: Option<&str>, indent: &str, columns: usize) -> Vec<Line> {
    text.map_or_else(Vec::new, |text| Line::of(text, Tone::Quiet).wrap(columns, indent, indent))
}

/// The name of a mode.
#[must_use]
pub fn mode(mode: dunnock_proto::Mode) -> &'static str {
    use dunnock_proto::Mode;
    match mode {
        Mode::Read => "read",
        Mode::Ask => "ask",
        Mode::Edits => "edits",
        Mode::Auto => "auto",
        Mode::All => "all",
    }
}
