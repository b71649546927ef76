//! `search_text`.

use crate::root::RepoPath;
use crate::tool::{Example, Tool, ToolContext, ToolOutput, blocking};
use crate::tools::list_files::glob;
use crate::walk::{Key, Walk};
use dunnock_core::policy::is_secret;
use dunnock_proto::{Class, Form, Piece, Recovery, ToolView};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use ignore::types::{Types, TypesBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};

/// Maximum bytes shown of one line.
const WIDTH: usize = 400;

/// Searches the files in the workspace for text, line by line. Binary and ignored files are left
/// out. Each match is a line "path:number: text".
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
    /// Only files of this type: rust, py, ts, go, java, c, cpp, md, ...
    #[serde(default, rename = "type")]
    #[schemars(length(max = 40))]
    kind: Option<String>,
    /// The pattern is a regular expression.
    #[serde(default)]
    regex: bool,
    /// Ignore case.
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
    const VIEW: ToolView = ToolView {
        counted: "line",
        nothing: "no match",
        ..ToolView::new(
            "search",
            &[
                Piece::text(&["pattern"]).form(Form::Quoted),
                Piece::text(&["path"]).after(" in ").or(""),
            ],
        )
    };
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "Literal text",
            files: &[("b.rs", "let a = f(1);\n"), ("a.rs", "fn f(x) {}\nf(2)\n")],
            args: r#"{"pattern":"f("}"#,
            gives: "a.rs:1: fn f(x) {}\na.rs:2: f(2)\nb.rs:1: let a = f(1);",
            ..Example::PLAIN
        },
        Example {
            about: "A regular expression in some files, with one line of context",
            files: &[("a.rs", "one\ntwo\nthree\nfour\n"), ("a.md", "two\n")],
            args: r#"{"pattern":"^T[a-z]o$","regex":true,"ignore_case":true,"glob":"*.rs","context":1}"#,
            gives: "a.rs-1- one\na.rs:2: two\na.rs-3- three",
            ..Example::PLAIN
        },
        Example {
            about: "Files of a type",
            files: &[("a.rs", "one\n"), ("a.md", "one\n")],
            args: r#"{"pattern":"one","type":"rust"}"#,
            gives: "a.rs:1: one",
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
            about: "An invalid expression",
            args: r#"{"pattern":"(","regex":true}"#,
            gives: "invalid pattern: regex parse error:\n    (?:()\n    ^\nerror: unclosed group",
            fails: true,
            ..Example::PLAIN
        },
    ];

    async fn run(self, tool_context: ToolContext) -> ToolOutput {
        blocking(move || search(&self, &tool_context)).await
    }
}

fn search(args: &SearchText, tool_context: &ToolContext) -> Result<String, String> {
    if args.pattern.is_empty() {
        return Err("the pattern is empty".into());
    }
    let matcher = RegexMatcherBuilder::new()
        .fixed_strings(!args.regex)
        .case_insensitive(args.ignore_case)
        .multi_line(true)
        .crlf(true)
        .size_limit(8 << 20)
        .dfa_size_limit(32 << 20)
        .build(&args.pattern)
        .map_err(|e| format!("invalid pattern: {e}"))?;
    let around = usize::from(args.context.unwrap_or(0).min(10));
    let searcher = || {
        SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::quit(0))
            .before_context(around)
            .after_context(around)
            .heap_limit(Some(32 << 20))
            .build()
    };
    let path = RepoPath::parse(&tool_context.files, args.path.as_deref().unwrap_or("."))
        .map_err(|e| e.to_string())?;
    if path.is_ours() {
        return Err(format!(
            "{} cannot be searched; search_text skips .git and .dunnock",
            path.shown()
        ));
    }
    let all = Results::new(tool_context.limits.matches);
    if tool_context.files.is_folder(&path) {
        let folder = tool_context.files.folder(&path).map_err(|e| e.to_string())?;
        let only = args.glob.as_deref().map(glob).transpose()?;
        let wanted = |relative: &Path| {
            only.as_ref().is_none_or(|g| {
                g.is_match(relative) || relative.file_name().is_some_and(|n| g.is_match(n))
            })
        };
        let mut walk = Walk::new(&tool_context.files, &folder, None);
        if let Some(kind) = &args.kind {
            walk = walk.only(types(kind)?);
        }
        walk.each(|| {
            let (mut searcher, matcher, wanted) = (searcher(), matcher.clone(), &wanted);
            let (folder, all) = (&folder, &all);
            move |key, entry| {
                let plain = entry.file_type().is_some_and(|t| t.is_file());
                if plain
                    && wanted(entry.path().strip_prefix(folder).unwrap_or(entry.path()))
                    && !all.is_beyond(&key)
                {
                    search_file(tool_context, &mut searcher, &matcher, key, entry.path(), all);
                }
                !tool_context.halt.is_cancelled()
            }
        });
        if tool_context.halt.is_cancelled() {
            return Err("interrupted".into());
        }
    } else {
        let contents = tool_context.files.read(&path).map_err(|e| e.to_string())?;
        let mut found = Found::new(path.shown(), all.most);
        searcher()
            .search_slice(&matcher, &contents.bytes, &mut found)
            .map_err(|e| e.to_string())?;
        all.push(Key::default(), found);
    }
    Ok(all.render(tool_context.limits.found_bytes))
}

/// Files of a type, by ripgrep's names.
fn types(kind: &str) -> Result<Types, String> {
    let mut types = TypesBuilder::new();
    types.add_defaults().select(kind);
    types.build().map_err(|_| format!("{kind:?} is not a known file type; use glob instead"))
}

/// Skips a file that cannot be read: it may be gone by now, or belong to someone else.
fn search_file(
    tool_context: &ToolContext,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    key: Key,
    path: &Path,
    all: &Results,
) {
    // A search never looks into secret or denied files.
    let inner = path.strip_prefix(tool_context.files.path()).unwrap_or(path);
    if is_secret(&inner.to_string_lossy()) || tool_context.files.is_denied(inner) {
        return;
    }
    let Ok(file) = tool_context.files.open_walked(inner) else { return };
    let mut found = Found::new(key.shown(), all.most);
    // If a line is too long, what was found before it still counts.
    let _ = searcher.search_file(matcher, &file, &mut found);
    if !found.starts.is_empty() {
        all.push(key, found);
    }
}

/// The matches in one file.
struct Found {
    file: String,
    text: String,
    /// Where in `text` each match starts, including the context before it.
    starts: Vec<usize>,
    most: usize,
    /// Whether there is a match beyond the limit.
    more: bool,
    /// Where the context before the next match starts.
    before: Option<usize>,
}

impl Found {
    fn new(file: String, most: usize) -> Self {
        Self { file, text: String::new(), starts: Vec::new(), most, more: false, before: None }
    }

    fn line(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let (bytes, more) = match bytes.get(..WIDTH + 4) {
            Some(start) => (start, bytes.len() > WIDTH),
            None => (bytes, bytes.len() > WIDTH),
        };
        let text = String::from_utf8_lossy(bytes);
        let text = text.get(..text.floor_char_boundary(WIDTH)).unwrap_or_default();
        let dots = if more { "..." } else { "" };
        let _ =
            writeln!(self.text, "{}{mark}{}{mark} {text}{dots}", self.file, number.unwrap_or(0));
    }
}

impl Sink for Found {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        if self.starts.len() == self.most {
            self.more = true;
            // Drop the context before a match that is not reported.
            self.text.truncate(self.before.take().unwrap_or(self.text.len()));
            return Ok(false);
        }
        self.starts.push(self.before.take().unwrap_or(self.text.len()));
        self.line(':', found.line_number(), found.bytes());
        Ok(true)
    }
    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, Self::Error> {
        match context.kind() {
            SinkContextKind::Before => drop(self.before.get_or_insert(self.text.len())),
            SinkContextKind::After | SinkContextKind::Other => {}
        }
        self.line('-', context.line_number(), context.bytes());
        Ok(true)
    }
    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.before.get_or_insert(self.text.len());
        self.text.push_str("--\n");
        Ok(true)
    }
}

/// The matches of all threads. Beyond a multiple of the limit, only the first files are kept.
struct Results {
    most: usize,
    found: Mutex<(Vec<(Key, Found)>, usize)>,
    /// Files after this one are not reported.
    last: RwLock<Option<Key>>,
}

impl Results {
    fn new(most: usize) -> Self {
        Self { most, found: Mutex::default(), last: RwLock::default() }
    }

    fn is_beyond(&self, key: &Key) -> bool {
        self.last
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .is_some_and(|last| key > last)
    }

    fn push(&self, key: Key, found: Found) {
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        all.1 += found.starts.len();
        all.0.push((key, found));
        if all.1 <= self.most.saturating_mul(20) {
            return;
        }
        all.0.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        // Keep one match more than will be reported, to know that there are more.
        let mut matches = 0;
        let keep = all.0.iter().take_while(|(_, found)| {
            let wanted = matches <= self.most;
            matches += found.starts.len();
            wanted
        });
        let keep = keep.count();
        all.0.truncate(keep);
        all.1 = all.0.iter().map(|(_, found)| found.starts.len()).sum();
        *self.last.write().unwrap_or_else(PoisonError::into_inner) =
            all.0.last().map(|(key, _)| key.clone());
    }

    /// The matches in order, up to the limits.
    fn render(self, bytes: usize) -> String {
        let (mut all, _) = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let (mut out, mut matches, mut more) = (String::new(), 0, false);
        for (_, found) in &all {
            if found.starts.is_empty() {
                continue;
            }
            // Only whole matches, as many as fit.
            let room = self.most - matches;
            let fits = found
                .starts
                .iter()
                .take(room)
                .take_while(|start| out.len() + **start <= bytes)
                .count();
            let end = found.starts.get(fits).copied().unwrap_or(found.text.len());
            out.push_str(found.text.get(..end).unwrap_or_default());
            matches += fits;
            more = found.more || fits < found.starts.len();
            if more {
                break;
            }
        }
        if matches == 0 && !more {
            return "no match".into();
        }
        out.truncate(out.trim_end_matches('\n').len());
        match more {
            true => format!("[TRUNCATED: reached limit {matches} before completing search]\n{out}"),
            false => out,
        }
    }
}
