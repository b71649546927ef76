//! `replace_text`.

use crate::edit::{self, Breaks, Edited, Text};
use crate::edit_common::{PlannedEdit, Refusal, change, open_at};
use crate::root::{Contents, FileChange};
use crate::tool::{Example, Tool, ToolContext, ToolOutput};
use dunnock_proto::{Change, Class, Recovery, ToolView};
use regex::{Captures, Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::Range;

/// Replaces text in a file. The old text must match exactly, including whitespace, and occur once;
/// if it occurs more often, include more lines around it, or set all.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplaceText {
    /// Path relative to the workspace root.
    #[schemars(length(max = 4096))]
    path: String,
    /// The text to replace, exactly as it is in the file, without line numbers.
    #[schemars(length(max = 1_000_000))]
    old: String,
    /// The replacement.
    #[schemars(length(max = 1_000_000))]
    new: String,
    /// The old text is a regular expression; $1 in the new text is its first group.
    #[serde(default)]
    regex: bool,
    /// Replace every occurrence.
    #[serde(default)]
    all: bool,
    /// For the stateless service: the exact text, exactly once, and no approximate matches.
    #[serde(default)]
    #[schemars(skip)]
    exact: bool,
}

impl Tool for ReplaceText {
    const NAME: &'static str = "replace_text";
    const CLASS: Class = Class::Edit;
    const RECOVERY: Recovery = Recovery::Unknown;
    const VIEW: ToolView = ToolView {
        change: &[Change::removed("old"), Change::added("new")],
        ..ToolView::of_path("edit")
    };
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "Once",
            files: &[("a.txt", "one\ntwo\n")],
            args: r#"{"path":"a.txt","old":"two","new":"2 ($1)"}"#,
            gives: "replaced 1 place in a.txt\n1  one\n2  2 ($1)",
            leaves: &[("a.txt", "one\n2 ($1)\n")],
            ..Example::PLAIN
        },
        Example {
            about: "An edit that breaks the file",
            files: &[("a.json", "{\n  \"n\": 1\n}\n")],
            args: r#"{"path":"a.json","old":"1","new":"1,"}"#,
            gives: "replaced 1 place in a.json\n1  {\n2    \"n\": 1,\n3  }\nwarning: a.json no longer parses \
                    (it did before this edit): line 3: key must be a string",
            leaves: &[("a.json", "{\n  \"n\": 1,\n}\n")],
            ..Example::PLAIN
        },
        Example {
            about: "More than once",
            files: &[("a.txt", "x\ny\nx\n")],
            args: r#"{"path":"a.txt","old":"x","new":"z"}"#,
            gives: "the text occurs 2 times in a.txt\n1  x\n3  x\ninclude more of the text around \
                    it so that it occurs once, or set all",
            fails: true,
            leaves: &[("a.txt", "x\ny\nx\n")],
        },
        Example {
            about: "Every match of a regular expression",
            files: &[("a.txt", "a1 a2\n")],
            args: r#"{"path":"a.txt","old":"a([0-9])","new":"b$1","regex":true,"all":true}"#,
            gives: "replaced 2 places in a.txt\n1  b1 b2",
            leaves: &[("a.txt", "b1 b2\n")],
            ..Example::PLAIN
        },
        Example {
            about: "A group that does not exist",
            files: &[("a.txt", "a1\n")],
            args: r#"{"path":"a.txt","old":"a1","new":"costs $5","regex":true}"#,
            gives: "the expression has no group \"5\"; write $$ for a dollar sign",
            fails: true,
            leaves: &[("a.txt", "a1\n")],
        },
        Example {
            about: "Not found: the closest match and how it differs",
            files: &[("a.rs", "fn one() {\n    run(1);\n}\n")],
            args: r#"{"path":"a.rs","old":"fn one() {\n    walk(1);\n}","new":"fn two() {}"}"#,
            gives: "the text does not occur in a.rs; the closest match is lines 1-3:\n1  fn one() \
                    {\n2      run(1);\n3  }\nline 2 is \"run(1);\", you wrote \"walk(1);\"",
            fails: true,
            leaves: &[("a.rs", "fn one() {\n    run(1);\n}\n")],
        },
        Example {
            about: "Different indentation, which the new lines adopt",
            files: &[("a.py", "class A:\n\tdef f(self):\n\t\treturn 1\n")],
            args: r#"{"path":"a.py","old":"def f(self):\n    return 1\n","new":"def f(self):\n    x = 2\n    return x\n"}"#,
            gives: "replaced 1 place in a.py (matched except for indentation)\n1  class A:\n2  \
                    \tdef f(self):\n3  \t\tx = 2\n4  \t\treturn x",
            leaves: &[("a.py", "class A:\n\tdef f(self):\n\t\tx = 2\n\t\treturn x\n")],
            ..Example::PLAIN
        },
        Example {
            about: "Typographic quotes where the file has plain ones",
            files: &[("a.js", "say('it', \"on\");\n")],
            args: r#"{"path":"a.js","old":"say(‘it’, “on”)","new":"say(‘it’, “off”)"}"#,
            gives: "replaced 1 place in a.js (matched except for typographic characters)\n1  \
                    say('it', \"off\");",
            leaves: &[("a.js", "say('it', \"off\");\n")],
            ..Example::PLAIN
        },
        Example {
            about: "The file keeps its line endings",
            files: &[("a.txt", "one\r\ntwo\r\n")],
            args: r#"{"path":"a.txt","old":"one\ntwo","new":"1\n2"}"#,
            gives: "replaced 1 place in a.txt\n1  1\n2  2",
            leaves: &[("a.txt", "1\r\n2\r\n")],
            ..Example::PLAIN
        },
    ];

    async fn run(self, context: ToolContext) -> ToolOutput {
        change(context, move |context| replace(&self, context)).await
    }
}

fn replace(args: &ReplaceText, context: &ToolContext) -> Result<PlannedEdit, Refusal> {
    if args.old.is_empty() {
        return Err("the old text is empty; use insert_text or write_file".into());
    }
    let old: Vec<&str> = args.old.lines().collect();
    let (path, before, text) = open_at(context, &args.path, &old)?;
    let name = path.shown();
    let (edited, count) = match args.regex {
        true => by_expression(args, &text, &name)?,
        false if args.exact => once(args, &text, &name)?,
        false => {
            let more = "include more of the text around it so that it occurs once, or set all";
            let edited = edit::replace(&text, &args.old, &args.new, args.all)
                .map_err(|miss| edit::explain(&name, &text, &old, &miss, more))?;
            let count = edited.lines.len();
            (edited, count)
        }
    };
    let bytes = edited.text.encode().map_err(|error| format!("{name} {error}"))?;
    let places = dunnock_proto::count(count, "place");
    let how = edited.level.words().map(|words| format!(" ({words})")).unwrap_or_default();
    let message =
        format!("replaced {places} in {name}{how}{}", edit::shown(&edited.text, &edited.lines));
    let after = Contents { bytes, mode: before.mode };
    Ok(PlannedEdit {
        message,
        changes: vec![FileChange { path, before: Some(before), after: Some(after) }],
    })
}

/// Replaces the exact text, which must occur once.
fn once(args: &ReplaceText, text: &Text, name: &str) -> Result<(Edited, usize), String> {
    let found: Vec<usize> =
        text.text().match_indices(args.old.as_str()).map(|(at, _)| at).collect();
    match found.as_slice() {
        [] => Err(format!("the text does not occur in {name}")),
        [at] => {
            let line = text.text().get(..*at).unwrap_or_default().matches('\n').count();
            let lines = std::iter::once(line..line + args.new.matches('\n').count() + 1).collect();
            let put = (*at..at + args.old.len(), args.new.as_str());
            let text = text.splice_each(std::iter::once(put), Breaks::AsThere);
            Ok((Edited { text, level: edit::MatchLevel::Exact, lines }, 1))
        }
        many => Err(format!("the text occurs {} times in {name}; it must occur once", many.len())),
    }
}

/// The expression sees the file as the model does, with line feeds only, unless it mentions
/// carriage returns.
fn by_expression(args: &ReplaceText, text: &Text, name: &str) -> Result<(Edited, usize), String> {
    let built = RegexBuilder::new(&args.old).multi_line(true).size_limit(32 << 20).build();
    let regex: Regex = built.map_err(|e| format!("invalid expression: {e}"))?;
    let template = Template::parse(&args.new, &regex)?;
    let raw = (args.old.contains("\\r")).then(|| text.raw());
    let seen = raw.as_deref().unwrap_or(text.text());
    let feeds: Vec<usize> = seen.match_indices('\n').map(|(at, _)| at).collect();
    let line = |at: usize| feeds.partition_point(|feed| *feed < at);
    // There is no line after the last line feed.
    let real = |range: &Range<usize>| {
        !(range.is_empty() && range.start == seen.len() && seen.ends_with('\n'))
    };
    let found: Vec<Range<usize>> =
        regex.find_iter(seen).map(|found| found.range()).filter(real).collect();
    match found.len() {
        0 => return Err(format!("the expression matches nothing in {name}")),
        1 => {}
        _ if args.all => {}
        _ => {
            let lines = found.iter().map(|range| line(range.start)).collect();
            let more = "make it match once, or set all";
            let miss = edit::Miss::Many(edit::MatchLevel::Exact, lines);
            return Err(edit::explain(name, text, &[], &miss, more));
        }
    }
    let (mut changed, mut last, mut lines, mut now) =
        (String::with_capacity(seen.len()), 0, Vec::new(), 0);
    let mut puts = Vec::new();
    for captures in regex.captures_iter(seen) {
        let Some(whole) = captures.get(0).filter(|whole| real(&whole.range())) else { continue };
        let put = template.filled(&captures);
        let kept = seen.get(last..whole.start()).unwrap_or_default();
        now += kept.matches('\n').count();
        let more = put.matches('\n').count();
        lines.push(now..now + more + 1);
        now += more;
        changed.push_str(kept);
        changed.push_str(&put);
        last = whole.end();
        puts.push((whole.range(), put));
    }
    changed.push_str(seen.get(last..).unwrap_or_default());
    if changed == seen {
        return Err(format!("the expression changes nothing in {name}"));
    }
    let text = match raw {
        Some(_) => text.with_raw(&changed),
        None => text.splice_each(
            puts.iter().map(|(range, put)| (range.clone(), put.as_str())),
            Breaks::AsThere,
        ),
    };
    Ok((Edited { text, level: edit::MatchLevel::Exact, lines }, found.len()))
}

/// Replacement text that refers to groups of an expression: `$1`, `${1}`, `${name}`, and `$$` for a
/// dollar sign.
struct Template<'a>(Vec<Piece<'a>>);

enum Piece<'a> {
    Text(&'a str),
    Group(usize),
}

impl<'a> Template<'a> {
    /// A group number ends with its last digit, whatever follows. An unknown group is an error, not
    /// an empty text.
    fn parse(text: &'a str, regex: &Regex) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            pieces.push(Piece::Text(rest.get(..at).unwrap_or_default()));
            let after = rest.get(at + 1..).unwrap_or_default();
            let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let (name, next) = match braced {
                _ if after.starts_with('$') => {
                    pieces.push(Piece::Text("$"));
                    rest = after.get(1..).unwrap_or_default();
                    continue;
                }
                Some((name, next)) => (name, next),
                None if digits > 0 => after.split_at(digits),
                None => {
                    pieces.push(Piece::Text("$"));
                    rest = after;
                    continue;
                }
            };
            let number = match name.parse::<usize>() {
                Ok(number) => Some(number).filter(|n| *n < regex.captures_len()),
                Err(_) => regex.capture_names().position(|known| known == Some(name)),
            };
            let Some(number) = number else {
                return Err(format!(
                    "the expression has no group {name:?}; write $$ for a dollar sign"
                ));
            };
            pieces.push(Piece::Group(number));
            rest = next;
        }
        pieces.push(Piece::Text(rest));
        Ok(Self(pieces))
    }

    fn filled(&self, captures: &Captures<'_>) -> String {
        let piece = |piece: &Piece<'_>| match piece {
            Piece::Text(text) => (*text).to_owned(),
            Piece::Group(number) => {
                captures.get(*number).map_or(String::new(), |found| found.as_str().to_owned())
            }
        };
        self.0.iter().map(piece).collect()
    }
}
