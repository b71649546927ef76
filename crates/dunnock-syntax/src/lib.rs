//! Says whether an edit broke the syntax of a file.
//!
//! A file that does not parse is reported only if it parsed before the edit: templates, dialects
//! and languages newer than our grammars are then never reported. A wrong report costs a model more
//! than a missing one.
//!
//! Invariant: the input is not trusted. All parsers are iterative or limit their depth, and a file
//! that is large or takes much work has no verdict. Work is counted, not timed, so that a verdict is
//! the same on every machine and in a replay.

#[cfg(target_os = "linux")]
mod tree;

use serde::de::IgnoredAny;

/// The largest file that is parsed.
const MOST_BYTES: usize = 256 << 10;

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
        #[cfg(target_os = "linux")]
        Language::Go | Language::JavaScript | Language::Python => tree::parse(language, text),
        // Their parsers are C, which is not built for other systems yet.
        #[cfg(not(target_os = "linux"))]
        Language::Go | Language::JavaScript | Language::Python => Verdict::Unknown,
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
