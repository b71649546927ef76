//! Draws patches and diffs: a heading for each file, line numbers, and the colours of the file's
//! language.
//!
//! A patch of the model is shown as the tool will read it: both use the core's parser.
//!
//! Invariant: only a heading starts in the first column. Every line of a file has a gutter before
//! it, also where it is folded, so no text in a patch can pass for the heading of another file.
//! Nothing that a patch does is left out.

use crate::code::Highlighter;
use crate::text::{Line, Span, Style, Tone};
use dunnock_core::patch::{FileAction, FilePatch, Hunk, Op, Patch};

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

/// The heading of a file in a diff of ours, whose three lines come first here.
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

/// Where a part begins, and how many lines it has: old, then new.
fn ranges(line: &str) -> Option<[(usize, usize); 2]> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let range = |word: &str| {
        let (first, count) = word.split_once(',').unwrap_or((word, "1"));
        Some((first.parse().ok()?, count.parse().ok()?))
    };
    Some([range(words.next()?)?, range(words.next()?.strip_prefix('+')?)?])
}

/// A line without its sign, if it has one.
fn raw(line: &str) -> DiffRow {
    match line.chars().next().filter(|sign| " +-".contains(*sign)) {
        Some(sign) => {
            let text = line.get(1..).unwrap_or_default().to_owned();
            DiffRow::Line { sign, number: None, text }
        }
        None => DiffRow::Other(line.to_owned()),
    }
}

/// The rows of a diff that we made: its counts are right, so they tell which lines belong to a
/// file.
#[must_use]
pub fn rows(text: &str) -> Vec<DiffRow> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut rows, mut at) = (Vec::new(), 0);
    let mut next = (0, 0);
    let mut left = (0_usize, 0_usize);
    while let Some(line) = lines.get(at) {
        let inside = left != (0, 0);
        let rest = lines.get(at..).unwrap_or_default();
        if let Some(file) = header(rest).filter(|_| !inside) {
            rows.push(file);
            at += 2;
            continue;
        }
        at += 1;
        if let Some([old, new]) = ranges(line).filter(|_| !inside) {
            (next, left) = ((old.0, new.0), (old.1, new.1));
            rows.push(DiffRow::Part((*line).to_owned()));
            continue;
        }
        let mut row = raw(line);
        if let DiffRow::Line { sign, number, .. } = &mut row
            && inside
        {
            *number = Some(if *sign == '-' { next.0 } else { next.1 });
            let (old, new) = (usize::from(*sign != '+'), usize::from(*sign != '-'));
            next = (next.0 + old, next.1 + new);
            left = (left.0.saturating_sub(old), left.1.saturating_sub(new));
        }
        rows.push(row);
    }
    rows
}

/// The rows of a patch of the model's. A text that is no patch has no headings.
#[must_use]
pub fn patch_rows(text: &str) -> Vec<DiffRow> {
    match Patch::parse(text) {
        Ok(patch) => patch.files.iter().flat_map(file_rows).collect(),
        Err(_) => text.lines().map(raw).collect(),
    }
}

fn file_rows(file: &FilePatch) -> Vec<DiffRow> {
    let (verb, path) = match &file.what {
        FileAction::Add(path) => ("add", path.clone()),
        FileAction::Delete(path) => ("delete", path.clone()),
        FileAction::Update(path) => ("edit", path.clone()),
        FileAction::Move { from, to } => ("move", format!("{from} to {to}")),
    };
    let mut rows = vec![DiffRow::File { verb, path }];
    if let Some(executable) = file.executable {
        let not = if executable { "" } else { "not " };
        rows.push(DiffRow::Other(format!("the file is {not}executable afterwards")));
    }
    let is_new = matches!(file.what, FileAction::Add(_));
    let mut shift = 0_isize;
    for hunk in &file.hunks {
        hunk_rows(hunk, is_new, &mut shift, &mut rows);
    }
    rows
}

/// The rows of one hunk. `shift` is by how many lines the hunks before it make the file longer.
fn hunk_rows(hunk: &Hunk, is_new: bool, shift: &mut isize, rows: &mut Vec<DiffRow>) {
    let count = |op: Op| hunk.lines.iter().filter(|line| line.op == op).count();
    let (kept, dropped, added) = (count(Op::Keep), count(Op::Drop), count(Op::Add));
    let old = if is_new { Some(1) } else { hunk.line };
    let new = old.and_then(|old| old.checked_add_signed(if is_new { 0 } else { *shift }));
    *shift += isize::try_from(added).unwrap_or(0) - isize::try_from(dropped).unwrap_or(0);
    if let (Some(old), Some(new), false) = (old, new, is_new) {
        let range = |first: usize, lines: usize| match lines {
            1 => first.to_string(),
            lines => format!("{first},{lines}"),
        };
        let (before, after) = (range(old, kept + dropped), range(new, kept + added));
        rows.push(DiffRow::Part(format!("@@ -{before} +{after} @@")));
    }
    rows.extend(hunk.anchors.iter().map(|anchor| DiffRow::Part(format!("@@ {anchor}"))));
    if hunk.line.is_none() && hunk.anchors.is_empty() && !is_new {
        rows.push(DiffRow::Part("@@".into()));
    }
    let (mut old, mut new) = (old, new);
    for line in &hunk.lines {
        let (sign, number) = match line.op {
            Op::Keep => (' ', new),
            Op::Drop => ('-', old),
            Op::Add => ('+', new),
        };
        old = old.map(|n| n + usize::from(line.op != Op::Add));
        new = new.map(|n| n + usize::from(line.op != Op::Drop));
        rows.push(DiffRow::Line { sign, number, text: line.text.clone() });
    }
    if hunk.at_end {
        rows.push(DiffRow::Other("end of file".into()));
    }
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

    fn shown(rows: &[DiffRow]) -> Vec<String> {
        folded(rows, "", 60).iter().map(|l| l.plain().trim_end().to_owned()).collect()
    }

    #[test]
    fn each_file_has_a_heading_and_each_line_its_number() {
        let diff = "--- a/stats.py\n+++ b/stats.py\n@@ -9,3 +9,4 @@\n def mean(values):\n-    return 1\n+    return \
                    2\n+    # done\n \n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n";
        let expected = [
            "edit stats.py",
            "      @@ -9,3 +9,4 @@",
            "    9  def mean(values):",
            "   10 -    return 1",
            "   10 +    return 2",
            "   11 +    # done",
            "   12",
            "add new.py",
            "      @@ -0,0 +1 @@",
            "    1 +x = 1",
        ];
        assert_eq!(shown(&rows(diff)), expected);
        let parsed: Vec<String> = shown(&patch_rows(diff));
        let without: Vec<&str> =
            expected.into_iter().filter(|row| !row.contains("@@ -0,0")).collect();
        assert_eq!(parsed, without);
        let patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ def f():\n-x\n+y\n*** Add \
                     File: c.py\n+z\n*** Delete File: d.py\n*** End Patch";
        assert_eq!(
            shown(&patch_rows(patch)),
            [
                "move a.py to b.py",
                "      @@ def f():",
                "      -x",
                "      +y",
                "add c.py",
                "    1 +z",
                "delete d.py"
            ]
        );
    }

    /// A hostile patch could show the heading of another file, and hide a file that it changes.
    #[test]
    fn the_headings_are_the_files_that_the_tool_will_change() {
        let wide = format!("+{}edit /etc/passwd", "x".repeat(53));
        let in_patch = |lines: &str| format!("*** Begin Patch\n{lines}\n*** End Patch");
        let hostile = [
            (in_patch("*** Update File: a.py\n@@\n+*** Update File: /etc/passwd\n+--- a/x\n++++ b/x"), "edit a.py"),
            (in_patch("*** Update File: ci.yml\n@@ steps:\n--- a/docs/n.md\n+++ b/docs/n.md\n@@ jobs:\n-run: a\n+run: b"), "edit ci.yml"),
            (
                "--- a/.bashrc\n+++ b/.bashrc\n@@ -1,1 +1,1 @@\n--- a/README.md\n+++ b/README.md\n@@ -9,1 +9,1 \
                 @@\n-a\n+b"
                    .into(),
                "edit .bashrc",
            ),
            (
                "*** Update File: README.md\n--- a/.bashrc\n+++ b/.bashrc\n@@ -1 +1 @@\n-a\n+b".into(),
                "edit .bashrc",
            ),
            (
                "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-a\n+b\n--- a/gone.txt\n+++ /dev/null\n".into(),
                "edit README.md,delete gone.txt",
            ),
            (
                "diff --git a/x.sh b/x.sh\nold mode 100644\nnew mode 100755\n".into(),
                "edit x.sh",
            ),
            (
                "--- x.py\t2024-01-01\n+++ x.py\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n".into(),
                "edit x.py",
            ),
            (in_patch(&format!("*** Update File: a.py\n@@\n{wide}")), "edit a.py"),
            ("edit /etc/passwd\n+a\nno patch at all".into(), ""),
        ];
        for (patch, expected) in hostile {
            let rows = shown(&patch_rows(&patch));
            let headings: Vec<&str> =
                rows.iter().map(String::as_str).filter(|row| !row.starts_with(' ')).collect();
            assert_eq!(headings.join(","), expected, "{rows:?}");
        }
        // A file can contain what looks like a header, between two parts of our own diff.
        let diff = "--- a/a.sql\n+++ b/a.sql\n@@ -1 +1 @@\n--- a/x\n+++ b/x\n@@ -9 +9 @@\n-a\n+b\n";
        let rows = shown(&rows(diff));
        let headings: Vec<&String> = rows.iter().filter(|row| !row.starts_with(' ')).collect();
        assert_eq!(headings, ["edit a.sql"], "{rows:?}");
    }
}
