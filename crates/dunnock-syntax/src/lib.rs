//! Says whether an edit broke the syntax of a file.
//!
//! A file that does not parse is reported only if it parsed before the edit: templates, dialects
//! and languages newer than our grammars are then never reported. A wrong report costs a model more
//! than a missing one.
//!
//! Invariant: the input is not trusted. All parsers are iterative or limit their depth, and a file
//! that is large or takes much work has no verdict. Work is counted, not timed, so that a verdict is
//! the same on every machine and in a replay.

use serde::de::IgnoredAny;
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, ParseState, Parser};

/// The largest file that is parsed.
const MOST_BYTES: usize = 256 << 10;
/// How much work parsing a file may take, in units of the parser: about 10 ms.
const MOST_WORK: u32 = 400;
/// How many levels of indentation a file may have: the scanner of the grammar stores them in a
/// buffer of a fixed size.
const MOST_LEVELS: usize = 100;
/// How long the indentation of a line may be.
const MOST_INDENT: usize = 1_000;
/// How many characters of a line a message shows.
const SHOWN: usize = 60;

/// A language whose syntax is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Go,
    JavaScript,
    Json,
    Python,
    Toml,
}

/// The endings of file names whose syntax is checked.
pub const ENDINGS: &[&str] = &["go", "cjs", "js", "jsx", "mjs", "json", "py", "pyi", "toml"];

impl Language {
    fn of(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let (stem, ending) = name.rsplit_once('.')?;
        Some(match ending {
            _ if stem.is_empty() => return None,
            "go" => Self::Go,
            "cjs" | "js" | "jsx" | "mjs" => Self::JavaScript,
            "json" if has_comments(path, name) => return None,
            "json" => Self::Json,
            "py" | "pyi" => Self::Python,
            "toml" => Self::Toml,
            _ => return None,
        })
    }

    /// Its grammar, if it has no parser of its own.
    fn grammar(self) -> Option<tree_sitter::Language> {
        Some(match self {
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::Json | Self::Toml => return None,
        })
    }
}

/// Whether the programs that read a JSON file accept comments in it.
fn has_comments(path: &str, name: &str) -> bool {
    ["tsconfig", "jsconfig", "devcontainer"].iter().any(|start| name.starts_with(start))
        || name.ends_with("rc.json")
        || path.split('/').any(|folder| folder == ".vscode")
}

/// What a parser says about a file.
enum Verdict {
    Parses,
    /// The line, from 1, and what is wrong there.
    Broken(usize, String),
    /// The parser gave up.
    Unknown,
}

/// One line about an edit that broke the syntax of a file; `None` if the file parses, did not parse
/// before, or is not checked.
#[must_use]
pub fn broken_by_edit(path: &str, before: &str, after: &str) -> Option<String> {
    let language = Language::of(path)?;
    if before == after || before.len().max(after.len()) > MOST_BYTES {
        return None;
    }
    let Verdict::Broken(line, what) = parse(language, after) else { return None };
    let Verdict::Parses = parse(language, before) else { return None };
    Some(format!("{path} no longer parses (it did before this edit): line {line}: {what}"))
}

fn parse(language: Language, text: &str) -> Verdict {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match language {
        Language::Json => json(text),
        Language::Toml => toml(text),
        Language::Python if deepest_indent(text) > MOST_LEVELS => Verdict::Unknown,
        Language::Go | Language::JavaScript | Language::Python => {
            let indented = language == Language::Python;
            language.grammar().map_or(Verdict::Unknown, |grammar| tree(&grammar, text, indented))
        }
    }
}

fn json(text: &str) -> Verdict {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Verdict::Parses,
        Err(error) => {
            let words = error.to_string();
            if words.contains("recursion limit") {
                return Verdict::Unknown;
            }
            let what = words.split(" at line ").next().unwrap_or_default();
            Verdict::Broken(error.line(), what.to_owned())
        }
    }
}

fn toml(text: &str) -> Verdict {
    match toml::from_str::<toml::Table>(text) {
        Ok(_) => Verdict::Parses,
        Err(error) if error.message().contains("recursion limit") => Verdict::Unknown,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
            Verdict::Broken(line, error.message().lines().next().unwrap_or_default().to_owned())
        }
    }
}

fn tree(grammar: &tree_sitter::Language, text: &str, indented: bool) -> Verdict {
    let mut parser = Parser::new();
    if parser.set_language(grammar).is_err() {
        return Verdict::Unknown;
    }
    let mut work = 0;
    let mut count = |_: &ParseState| {
        work += 1;
        if work > MOST_WORK { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut count);
    let mut from = |at: usize, _| text.as_bytes().get(at..).unwrap_or_default();
    let Some(tree) = parser.parse_with_options(&mut from, None, Some(options)) else {
        return Verdict::Unknown;
    };
    match first_error(tree.root_node()) {
        None if indented => uneven_block(tree.root_node(), text),
        None => Verdict::Parses,
        Some(node) => {
            let row = node.start_position().row;
            let line = line(text, row);
            let what = match node.is_missing() {
                true => format!("missing `{}` near: {line}", node.kind()),
                false => format!("syntax error near: {line}"),
            };
            Verdict::Broken(row + 1, what)
        }
    }
}

/// How many levels of indentation are open at most, if each line that is indented more than the one
/// before opens one.
fn deepest_indent(text: &str) -> usize {
    let mut open: Vec<usize> = Vec::new();
    let mut deepest = 0;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        if indent == line.len() {
            continue;
        }
        while open.last().is_some_and(|last| *last > indent) {
            open.pop();
        }
        if open.last().is_none_or(|last| *last < indent) {
            open.push(indent);
        }
        deepest = if indent > MOST_INDENT { usize::MAX } else { deepest.max(open.len()) };
        if deepest > MOST_LEVELS {
            return deepest;
        }
    }
    deepest
}

/// Finds a block whose statements are not indented alike, which the grammar of Python accepts.
fn uneven_block(root: Node<'_>, text: &str) -> Verdict {
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if matches!(node.kind(), "block" | "module")
            && let Some(row) = uneven_row(node, text)
        {
            return Verdict::Broken(
                row + 1,
                format!("unexpected indentation near: {}", line(text, row)),
            );
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Verdict::Parses;
            }
        }
    }
}

/// The first row of a block that starts a statement and is indented unlike those before it.
fn uneven_row(block: Node<'_>, text: &str) -> Option<usize> {
    let mut cursor = block.walk();
    let statements = block.named_children(&mut cursor).filter(|node| node.kind() != "comment");
    let mut last_row = None;
    let mut indents = statements.filter_map(|statement| {
        // Only the first statement of a row is indented.
        let at = statement.start_position();
        if last_row.replace(at.row) == Some(at.row) || at.column > MOST_INDENT {
            return None;
        }
        let before = text.get(statement.start_byte() - at.column..statement.start_byte())?;
        let starts_row = before.chars().all(|c| matches!(c, ' ' | '\t' | '\u{c}'));
        starts_row.then_some((before, at.row))
    });
    let (first, _) = indents.next()?;
    indents.find(|(indent, _)| *indent != first).map(|(_, row)| row)
}

fn line(text: &str, row: usize) -> String {
    text.lines().nth(row).unwrap_or_default().trim().chars().take(SHOWN).collect()
}

/// The first place where the text does not follow the grammar.
fn first_error(root: Node<'_>) -> Option<Node<'_>> {
    if !root.has_error() {
        return None;
    }
    let mut node = root;
    loop {
        let mut cursor = node.walk();
        let wrong = |child: &Node<'_>| child.is_missing() || child.has_error();
        let child = node.children(&mut cursor).find(wrong);
        match child {
            Some(child) if !node.is_error() => node = child,
            Some(_) | None => return Some(node),
        }
    }
}
