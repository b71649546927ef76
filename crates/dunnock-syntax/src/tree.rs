//! Languages whose grammar is a table of tree-sitter. Its parsers are C, so they are only there where
//! the program is built.

use crate::{Language, Verdict};
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, ParseState, Parser};

/// How much work parsing a file may take, in units of the parser: about 6 ms.
const MOST_WORK: u32 = 230;
/// How many levels of indentation a file may have: the scanner of the grammar stores them in a
/// buffer of a fixed size.
const MOST_LEVELS: usize = 100;
/// How long the indentation of a line may be.
const MOST_INDENT: usize = 1_000;
/// How many characters of a line a message shows.
const SHOWN: usize = 60;

pub(crate) fn parse(language: Language, text: &str) -> Verdict {
    let indented = language == Language::Python;
    if indented && deepest_indent(text) > MOST_LEVELS {
        return Verdict::Unknown;
    }
    match language {
        Language::Go => tree(&tree_sitter_go::LANGUAGE.into(), text, indented),
        Language::JavaScript => tree(&tree_sitter_javascript::LANGUAGE.into(), text, indented),
        Language::Python => tree(&tree_sitter_python::LANGUAGE.into(), text, indented),
        Language::Json | Language::Toml => Verdict::Unknown,
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
