//! Draws patches and diffs: a heading for each file, line numbers, and the colours of the file's
//! language.
//!
//! Invariant: only a heading starts in the first column. Every line of a file has a gutter before
//! it, also where it is folded, so no text in a patch can pass for the heading of another file.
//! Nothing is left out.

use crate::code::Highlighter;
use crate::text::{Line, Span, Style, Tone};

/// Columns of the gutter, which holds the line number.
const GUTTER: usize = 6;

/// A row of a patch or of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffRow {
    /// A file begins, with what happens to it.
    File { verb: &'static str, path: String },
    /// A part of the file begins, as the patch says where.
    Part(String),
    /// A line of the file: its sign, its number if it is known, and its text.
    Line { sign: char, number: Option<usize>, text: String },
    /// Anything else.
    Other(String),
}

/// The heading of a file in a patch of the form `*** Begin Patch`.
fn heading(line: &str) -> Option<DiffRow> {
    let heads = [
        ("*** Add File: ", "add"),
        ("*** Update File: ", "edit"),
        ("*** Delete File: ", "delete"),
        ("*** Move to: ", "move to"),
    ];
    let (verb, path) =
        heads.iter().find_map(|(head, verb)| Some((*verb, line.strip_prefix(head)?)))?;
    Some(DiffRow::File { verb, path: path.trim().to_owned() })
}

/// The heading of a file in a unified diff, whose three lines come first here. No line of a file
/// can be the third one: those have a sign.
fn header(lines: &[&str]) -> Option<DiffRow> {
    let [old, new, part, ..] = lines else { return None };
    let (old, new) = (old.strip_prefix("--- ")?, new.strip_prefix("+++ ")?);
    part.strip_prefix("@@ ")?;
    let name =
        |text: &str, side: &str| text.strip_prefix(side).unwrap_or(text).trim_end().to_owned();
    Some(match (old, new) {
        ("/dev/null", new) => DiffRow::File { verb: "add", path: name(new, "b/") },
        (old, "/dev/null") => DiffRow::File { verb: "delete", path: name(old, "a/") },
        (old, new) if name(old, "a/") == name(new, "b/") => {
            DiffRow::File { verb: "edit", path: name(new, "b/") }
        }
        (old, new) => DiffRow::File {
            verb: "move",
            path: format!("{} to {}", name(old, "a/"), name(new, "b/")),
        },
    })
}

/// The first old and the first new line number of a part.
fn numbers(line: &str) -> Option<(usize, usize)> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let first = |word: &str| word.split(',').next()?.parse().ok();
    Some((first(words.next()?)?, first(words.next()?.strip_prefix('+')?)?))
}

/// The rows of a patch of either form, or of a diff.
#[must_use]
pub fn rows(text: &str) -> Vec<DiffRow> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut rows, mut at) = (Vec::new(), 0);
    let mut count: Option<(usize, usize)> = None;
    while let Some(line) = lines.get(at) {
        let rest = lines.get(at..).unwrap_or_default();
        if let Some(file) = header(rest) {
            rows.push(file);
            count = None;
            at += 2;
            continue;
        }
        at += 1;
        if let Some(file) = heading(line) {
            // A new file has all its lines.
            let new = matches!(file, DiffRow::File { verb: "add", .. });
            count = new.then_some((1, 1));
            rows.push(file);
        } else if line.starts_with("@@") {
            count = numbers(line);
            rows.push(DiffRow::Part((*line).to_owned()));
        } else if let Some(sign) = line.chars().next().filter(|sign| " +-".contains(*sign)) {
            let number = count.as_mut().map(|(old, new)| {
                let number = if sign == '-' { *old } else { *new };
                *old += usize::from(sign != '+');
                *new += usize::from(sign != '-');
                number
            });
            let text = line.get(1..).unwrap_or_default().to_owned();
            rows.push(DiffRow::Line { sign, number, text });
        } else if !matches!(*line, "*** Begin Patch" | "*** End Patch") {
            rows.push(DiffRow::Other((*line).to_owned()));
        }
    }
    rows
}

/// How many lines are added and removed.
#[must_use]
pub fn size(rows: &[DiffRow]) -> (usize, usize) {
    let with = |wanted: char| {
        rows.iter()
            .filter(|row| matches!(row, DiffRow::Line { sign, .. } if *sign == wanted))
            .count()
    };
    (with('+'), with('-'))
}

/// Colours the rows of a diff in order.
pub struct DiffPainter {
    old: Highlighter,
    new: Highlighter,
}

impl DiffPainter {
    /// Before the first row; `path` is the file, if the diff is about one that it does not name.
    #[must_use]
    pub fn new(path: &str) -> Self {
        let ending = path.rsplit('.').next().unwrap_or_default();
        Self { old: Highlighter::new(ending), new: Highlighter::new(ending) }
    }

    /// A row as a line. Its text is not cut.
    pub fn line(&mut self, row: &DiffRow) -> Line {
        match row {
            DiffRow::File { verb, path } => {
                *self = Self::new(path);
                let style = Style::of(Tone::Accent).bold();
                Line::of(&format!("{verb} {path}"), style)
            }
            DiffRow::Part(text) => gutter(None).and(text, Tone::Quiet),
            DiffRow::Other(text) => gutter(None).and(text, Tone::Quiet),
            DiffRow::Line { sign, number, text } => {
                let (tone, painted) = match sign {
                    '+' => (Tone::Added, self.new.line(text)),
                    '-' => (Tone::Removed, self.old.line(text)),
                    _ => {
                        self.old.line(text);
                        (Tone::Text, self.new.line(text))
                    }
                };
                let mut line = gutter(*number).and(&sign.to_string(), tone);
                let plain = |span: Span| match span.style().tone {
                    Tone::Text => span.toned(tone),
                    _ => span,
                };
                line.0.extend(painted.0.into_iter().map(plain));
                line
            }
        }
    }
}

fn gutter(number: Option<usize>) -> Line {
    let number = number.map(|n| n.to_string()).unwrap_or_default();
    Line::of(&format!("{number:>width$} ", width = GUTTER - 1), Tone::Quiet)
}

/// All rows as lines of at most `columns`: long lines continue below, behind the gutter.
#[must_use]
pub fn folded(rows: &[DiffRow], path: &str, columns: usize) -> Vec<Line> {
    let mut painter = DiffPainter::new(path);
    let next = " ".repeat(GUTTER + 1);
    rows.iter().flat_map(|row| painter.line(row).fold(columns, "", &next)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Vec<String> {
        folded(&rows(text), "", 60).iter().map(|l| l.plain().trim_end().to_owned()).collect()
    }

    #[test]
    fn each_file_has_a_heading_and_each_line_its_number() {
        let diff = "--- a/stats.py\n+++ b/stats.py\n@@ -9,3 +9,4 @@\n def mean(values):\n-    return 1\n+    return \
                    2\n+    # done\n \n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n";
        assert_eq!(
            plain(diff),
            [
                "edit stats.py",
                "      @@ -9,3 +9,4 @@",
                "    9  def mean(values):",
                "   10 -    return 1",
                "   10 +    return 2",
                "   11 +    # done",
                "   12",
                "add new.py",
                "      @@ -0,0 +1 @@",
                "    1 +x = 1"
            ]
        );
        let patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ def f():\n-x\n+y\n*** Add \
                     File: c.py\n+z\n*** End Patch";
        assert_eq!(
            plain(patch),
            [
                "edit a.py",
                "move to b.py",
                "      @@ def f():",
                "      -x",
                "      +y",
                "add c.py",
                "    1 +z"
            ]
        );
    }

    /// A hostile patch must not be able to forge the heading of another file.
    #[test]
    fn no_line_of_a_file_looks_like_a_heading() {
        let wide = format!("+{}edit /etc/passwd", "x".repeat(53));
        let hostile = [
            "*** Update File: a.py\n@@\n+*** Update File: /etc/passwd\n+--- a/x\n++++ b/x",
            "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n--- a/etc/passwd\n+++ b/etc/passwd\n+edit /etc/passwd",
            "*** Update File: a.py\n@@ edit /etc/passwd\n edit /etc/passwd\nedit /etc/passwd",
            "*** Update File: a.py\n@@\n+x\redit /etc/passwd\n+\u{2028}edit /etc/passwd",
            &format!("*** Update File: a.py\n@@\n{wide}"),
        ];
        for patch in hostile {
            let rows = plain(patch);
            let headings: Vec<&String> = rows.iter().filter(|row| !row.starts_with(' ')).collect();
            assert_eq!(headings, ["edit a.py"], "{rows:?}");
        }
    }
}
