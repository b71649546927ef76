//! `search_text`.

use crate::list_files::glob;
use crate::root::RepoPath;
use crate::tool::{Example, Hand, Said, Tool, blocking};
use crate::walk;
use dunnock_core::policy::is_secret;
use dunnock_proto::{Class, Recovery};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// Matches of one answer.
const MATCHES: usize = 200;
/// Bytes of one answer, lines around matches included.
const BYTES: usize = 128 << 10;
/// Bytes of one line.
const WIDTH: usize = 400;

/// Searches the files of the workspace for text, line by line. What ignore files name and binary files are left out.
/// Each match is a line "path:number: text".
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchText {
    /// What to look for: literal text, unless regex is true.
    #[schemars(length(max = 2000))]
    pattern: String,
    /// File or folder to search, relative to the workspace root; the root if left out.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    path: Option<String>,
    /// Only files that match, for instance "*.rs" or "src/**/*.ts".
    #[serde(default)]
    #[schemars(length(max = 500))]
    glob: Option<String>,
    /// The pattern is a regular expression.
    #[serde(default)]
    regex: bool,
    /// Upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
    /// Lines to show around each match, at most 10.
    #[serde(default)]
    context: Option<u8>,
}

impl Tool for SearchText {
    const NAME: &'static str = "search_text";
    const CLASS: Class = Class::Read;
    const RECOVERY: Recovery = Recovery::Repeat;
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "Literal text",
            files: &[("b.rs", "let a = f(1);\n"), ("a.rs", "fn f(x) {}\nf(2)\n")],
            args: r#"{"pattern":"f("}"#,
            gives: "a.rs:1: fn f(x) {}\na.rs:2: f(2)\nb.rs:1: let a = f(1);",
            ..Example::PLAIN
        },
        Example {
            about: "A regular expression in some files, with a line around",
            files: &[("a.rs", "one\ntwo\nthree\nfour\n"), ("a.md", "two\n")],
            args: r#"{"pattern":"^T[a-z]o$","regex":true,"ignore_case":true,"glob":"*.rs","context":1}"#,
            gives: "a.rs-1- one\na.rs:2: two\na.rs-3- three",
            ..Example::PLAIN
        },
        Example {
            about: "Nothing found",
            files: &[("a.rs", "one\n")],
            args: r#"{"pattern":"six"}"#,
            gives: "no match",
            ..Example::PLAIN
        },
        Example {
            about: "A broken expression",
            args: r#"{"pattern":"(","regex":true}"#,
            gives: "the pattern cannot be used: regex parse error:\n    (?:()\n    ^\nerror: unclosed group",
            fails: true,
            ..Example::PLAIN
        },
    ];

    async fn run(self, hand: Hand) -> Said {
        blocking(move || search(&self, &hand)).await
    }
}

fn search(args: &SearchText, hand: &Hand) -> Result<String, String> {
    if args.pattern.is_empty() {
        return Err("the pattern is empty".into());
    }
    let matcher = RegexMatcherBuilder::new()
        .fixed_strings(!args.regex)
        .case_insensitive(args.ignore_case)
        .line_terminator(Some(b'\n'))
        .size_limit(8 << 20)
        .dfa_size_limit(32 << 20)
        .build(&args.pattern)
        .map_err(|e| format!("the pattern cannot be used: {e}"))?;
    let around = usize::from(args.context.unwrap_or(0).min(10));
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .before_context(around)
        .after_context(around)
        .heap_limit(Some(32 << 20))
        .build();
    let path = RepoPath::parse(&hand.root, args.path.as_deref().unwrap_or(".")).map_err(|e| e.to_string())?;
    if path.is_ours() {
        return Err(format!("{} is not searched", path.shown()));
    }
    let mut found = Found { lines: Vec::new(), bytes: 0, matches: 0, more: false, file: String::new() };
    if hand.root.is_folder(&path) {
        let folder = hand.root.folder(&path).map_err(|e| e.to_string())?;
        let only = args.glob.as_deref().map(glob).transpose()?;
        let wanted = |relative: &std::path::Path| {
            only.as_ref().is_none_or(|g| g.is_match(relative) || relative.file_name().is_some_and(|n| g.is_match(n)))
        };
        let plain = |e: &ignore::DirEntry| e.file_type().is_some_and(|t| t.is_file());
        let files = walk::entries(&folder, None).filter(plain).map(ignore::DirEntry::into_path);
        for file in files {
            if hand.halt.told() {
                return Err("interrupted".into());
            }
            if !wanted(file.strip_prefix(&folder).unwrap_or(&file)) {
                continue;
            }
            // Nobody asked for what is in there.
            let inner = file.strip_prefix(hand.root.path()).unwrap_or(&file);
            if is_secret(&inner.to_string_lossy()) || hand.root.is_denied(inner) {
                continue;
            }
            search_file(&mut searcher, &matcher, &file, walk::shown(hand.root.path(), &file), &mut found);
            if found.more {
                break;
            }
        }
    } else {
        let contents = hand.root.read(&path).map_err(|e| e.to_string())?;
        found.file = path.shown();
        searcher.search_slice(&matcher, &contents.bytes, &mut found).map_err(|e| e.to_string())?;
    }
    if found.matches == 0 {
        return Ok("no match".into());
    }
    let first = match found.more {
        true => format!("[TRUNCATED: reached limit {} before completing search]\n", found.matches),
        false => String::new(),
    };
    Ok(format!("{first}{}", found.lines.join("\n")))
}

/// A file that cannot be read is passed over: it may be gone by now, or another's.
fn search_file(searcher: &mut Searcher, matcher: &RegexMatcher, file: &PathBuf, shown: String, found: &mut Found) {
    found.file = shown;
    let before = found.lines.len();
    if searcher.search_path(matcher, file, &mut *found).is_err() {
        found.lines.truncate(before);
    }
}

struct Found {
    lines: Vec<String>,
    bytes: usize,
    matches: usize,
    /// There is a match beyond the limit.
    more: bool,
    file: String,
}

impl Found {
    fn line(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let cut = text.floor_char_boundary(WIDTH);
        let more = if cut < text.len() { "..." } else { "" };
        let text = text.get(..cut).unwrap_or_default();
        let line = format!("{}{mark}{}{mark} {text}{more}", self.file, number.unwrap_or(0));
        self.bytes += line.len();
        self.lines.push(line);
    }
}

impl Sink for Found {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        if self.matches == MATCHES || self.bytes > BYTES {
            self.more = true;
            return Ok(false);
        }
        self.matches += 1;
        self.line(':', found.line_number(), found.bytes());
        Ok(true)
    }
    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, Self::Error> {
        self.line('-', context.line_number(), context.bytes());
        Ok(true)
    }
    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.lines.push("--".into());
        Ok(true)
    }
}
