//! `replace_text`.

use crate::root::RepoPath;
use crate::tool::{Example, Hand, Said, Tool, blocking};
use dunnock_proto::{Class, Recovery};
use regex::bytes::{NoExpand, Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

/// Replaces text in a file. The old text must occur exactly once, white space included; take in more lines around it if
/// it occurs more often, or set all.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplaceText {
    /// Path relative to the workspace root.
    #[schemars(length(max = 4096))]
    path: String,
    /// The text to replace, exactly as it stands in the file.
    #[schemars(length(max = 1_000_000))]
    old: String,
    /// What to put there.
    #[schemars(length(max = 1_000_000))]
    new: String,
    /// The old text is a regular expression; $1 in the new text is its first group.
    #[serde(default)]
    regex: bool,
    /// Replace every occurrence.
    #[serde(default)]
    all: bool,
}

impl Tool for ReplaceText {
    const NAME: &'static str = "replace_text";
    const CLASS: Class = Class::Edit;
    const RECOVERY: Recovery = Recovery::Unknown;
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "Once",
            files: &[("a.txt", "one\ntwo\n")],
            args: r#"{"path":"a.txt","old":"two","new":"2 ($1)"}"#,
            gives: "replaced 1 place in a.txt (line 2)",
            leaves: &[("a.txt", "one\n2 ($1)\n")],
            ..Example::PLAIN
        },
        Example {
            about: "More than once",
            files: &[("a.txt", "x\ny\nx\n")],
            args: r#"{"path":"a.txt","old":"x","new":"z"}"#,
            gives: "the text occurs 2 times in a.txt (lines 1, 3); take in more around it so that it occurs once, or set all",
            fails: true,
            leaves: &[("a.txt", "x\ny\nx\n")],
        },
        Example {
            about: "Every place, by an expression",
            files: &[("a.txt", "a1 a2\n")],
            args: r#"{"path":"a.txt","old":"a([0-9])","new":"b$1","regex":true,"all":true}"#,
            gives: "replaced 2 places in a.txt (lines 1, 1)",
            leaves: &[("a.txt", "b1 b2\n")],
            ..Example::PLAIN
        },
        Example {
            about: "Not there",
            files: &[("a.txt", "one\n")],
            args: r#"{"path":"a.txt","old":"two","new":"x"}"#,
            gives: "the text does not occur in a.txt; view the file and copy the text exactly",
            fails: true,
            ..Example::PLAIN
        },
        Example {
            about: "Line breaks stay as the file has them",
            files: &[("a.txt", "one\r\ntwo\r\n")],
            args: r#"{"path":"a.txt","old":"one\ntwo","new":"1\n2"}"#,
            gives: "replaced 1 place in a.txt (line 1)",
            leaves: &[("a.txt", "1\r\n2\r\n")],
            ..Example::PLAIN
        },
    ];

    async fn run(self, hand: Hand) -> Said {
        blocking(move || replace(&self, &hand)).await
    }
}

fn pattern(args: &ReplaceText, old: &str) -> Result<Regex, String> {
    let text = if args.regex { old.to_owned() } else { regex::escape(old) };
    let built = RegexBuilder::new(&text).multi_line(true).unicode(args.regex).size_limit(32 << 20).build();
    built.map_err(|e| format!("the expression cannot be used: {e}"))
}

fn replace(args: &ReplaceText, hand: &Hand) -> Result<String, String> {
    if args.old.is_empty() {
        return Err("the old text is empty; use insert_text or write_file".into());
    }
    let path = RepoPath::parse(&hand.root, &args.path).map_err(|e| e.to_string())?;
    let file = hand.root.read(&path).map_err(|e| e.to_string())?;
    hand.seen.current(&hand.session, &path, &file.bytes)?;
    let (mut regex, mut new) = (pattern(args, &args.old)?, args.new.clone());
    let crlf = file.bytes.windows(2).any(|w| w == b"\r\n");
    if !args.regex && crlf && !args.old.contains('\r') && !regex.is_match(&file.bytes) {
        // Models write line breaks without a carriage return; the file keeps its own.
        regex = pattern(args, &args.old.replace('\n', "\r\n"))?;
        new = new.replace('\n', "\r\n");
    }
    let places = regex.find_iter(&file.bytes).count();
    let (mut line, mut at, mut shown) = (1, 0, Vec::new());
    for found in regex.find_iter(&file.bytes).take(20) {
        line += file.bytes.get(at..found.start()).unwrap_or_default().iter().filter(|b| **b == b'\n').count();
        at = found.start();
        shown.push(line.to_string());
    }
    let more = if places > shown.len() { ", ..." } else { "" };
    let lines = format!("line{} {}{more}", if places == 1 { "" } else { "s" }, shown.join(", "));
    match places {
        0 => {
            return Err(format!(
                "the text does not occur in {}; view the file and copy the text exactly",
                path.shown()
            ));
        }
        1 => {}
        n if !args.all => {
            return Err(format!(
                "the text occurs {n} times in {} ({lines}); take in more around it so that it occurs once, or set all",
                path.shown()
            ));
        }
        _ => {}
    }
    let bytes = match args.regex {
        true => regex.replace_all(&file.bytes, new.as_bytes()),
        false => regex.replace_all(&file.bytes, NoExpand(new.as_bytes())),
    };
    if bytes == file.bytes {
        return Err("old and new text are the same; nothing was changed".into());
    }
    hand.root.replace(&path, &bytes, file.mode).map_err(|e| e.to_string())?;
    hand.seen.saw(&hand.session, &path, &bytes);
    let word = if places == 1 { "place" } else { "places" };
    Ok(format!("replaced {places} {word} in {} ({lines})", path.shown()))
}
