//! `insert_text`.

use crate::root::RepoPath;
use crate::tool::{Example, Hand, Said, Tool, blocking};
use dunnock_proto::{Class, Recovery};
use schemars::JsonSchema;
use serde::Deserialize;

/// Inserts whole lines into a file, after a line.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InsertText {
    /// Path relative to the workspace root.
    #[schemars(length(max = 4096))]
    path: String,
    /// The line after which to insert, from 1; 0 inserts at the beginning.
    line: u32,
    /// The lines to insert.
    #[schemars(length(max = 1_000_000))]
    text: String,
}

impl Tool for InsertText {
    const NAME: &'static str = "insert_text";
    const CLASS: Class = Class::Edit;
    const RECOVERY: Recovery = Recovery::Unknown;
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "After a line",
            files: &[("a.txt", "one\nthree\n")],
            args: r#"{"path":"a.txt","line":1,"text":"two"}"#,
            gives: "inserted 1 lines into a.txt after line 1",
            leaves: &[("a.txt", "one\ntwo\nthree\n")],
            ..Example::PLAIN
        },
        Example {
            about: "At the end of a file without a last line break",
            files: &[("a.txt", "one")],
            args: r#"{"path":"a.txt","line":1,"text":"two"}"#,
            gives: "inserted 1 lines into a.txt after line 1",
            leaves: &[("a.txt", "one\ntwo")],
            ..Example::PLAIN
        },
        Example {
            about: "Line breaks stay as the file has them",
            files: &[("a.txt", "one\r\nthree\r\n")],
            args: r#"{"path":"a.txt","line":1,"text":"two\n"}"#,
            gives: "inserted 1 lines into a.txt after line 1",
            leaves: &[("a.txt", "one\r\ntwo\r\nthree\r\n")],
            ..Example::PLAIN
        },
        Example {
            about: "A line that is not there",
            files: &[("a.txt", "one\n")],
            args: r#"{"path":"a.txt","line":7,"text":"x"}"#,
            gives: "a.txt has 1 lines; there is no line 7 to insert after",
            fails: true,
            leaves: &[("a.txt", "one\n")],
        },
    ];

    async fn run(self, hand: Hand) -> Said {
        blocking(move || insert(&self, &hand)).await
    }
}

fn insert(args: &InsertText, hand: &Hand) -> Result<String, String> {
    let path = RepoPath::parse(&hand.root, &args.path).map_err(|e| e.to_string())?;
    let old = hand.root.read(&path).map_err(|e| e.to_string())?;
    hand.seen.current(&hand.session, &path, &old.bytes)?;
    let ends: Vec<usize> = old.bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(n, _)| n + 1).collect();
    let open_end = !old.bytes.is_empty() && !old.bytes.ends_with(b"\n");
    let total = ends.len() + usize::from(open_end);
    let after = args.line as usize;
    if after > total {
        return Err(format!("{} has {total} lines; there is no line {after} to insert after", path.shown()));
    }
    let at = match after.checked_sub(1) {
        None => 0,
        Some(n) => ends.get(n).copied().unwrap_or(old.bytes.len()),
    };
    let crlf = old.bytes.windows(2).any(|w| w == b"\r\n");
    let line_break: &str = if crlf { "\r\n" } else { "\n" };
    let lines: Vec<&str> = args.text.lines().collect();
    let mut new = lines.join(line_break);
    let (before, rest) = old.bytes.split_at(at);
    if open_end && rest.is_empty() {
        new.insert_str(0, line_break); // the last line had no break, and the new last one has none either
    } else {
        new.push_str(line_break);
    }
    let bytes = [before, new.as_bytes(), rest].concat();
    hand.root.replace(&path, &bytes, old.mode).map_err(|e| e.to_string())?;
    hand.seen.saw(&hand.session, &path, &bytes);
    Ok(format!("inserted {} lines into {} after line {after}", lines.len(), path.shown()))
}
