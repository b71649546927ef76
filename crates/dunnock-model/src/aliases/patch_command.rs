//! `apply_patch` written as a command, as models do that learned it that way.

use serde_json::Value;

/// The first line of a patch.
const BEGIN: &str = "*** Begin Patch";

/// The patch of a command that does nothing but apply it at the workspace root.
pub(crate) fn patch_of(command: &Value, is_root: impl Fn(&str) -> bool) -> Option<String> {
    match command {
        Value::String(line) => in_line(line, is_root),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            match words?.as_slice() {
                ["apply_patch" | "applypatch", patch] => {
                    patch.trim_start().starts_with(BEGIN).then(|| (*patch).to_owned())
                }
                ["bash" | "sh" | "/bin/bash" | "/bin/sh", "-lc" | "-c", line] => {
                    in_line(line, is_root)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether a command applies a patch among other things.
pub(crate) fn applies_patch(command: &Value) -> bool {
    let line = match command {
        Value::String(line) => Some(line.as_str()),
        Value::Array(words) => words.get(2).and_then(Value::as_str),
        _ => None,
    };
    let first = line.and_then(|line| line.trim_start().lines().next()).unwrap_or_default();
    let applies = |part: &str| {
        let rest = part.trim().strip_prefix("apply_patch").map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with("<<"))
    };
    first.split("&&").flat_map(|part| part.split(';')).any(applies)
}

/// `apply_patch <<'WORD'`, the patch, `WORD`, and nothing else.
fn in_line(line: &str, is_root: impl Fn(&str) -> bool) -> Option<String> {
    let rest = line.trim();
    let moved = rest.strip_prefix("cd ").and_then(|rest| rest.split_once("&&"));
    let rest = match moved {
        Some((folder, rest)) if is_root(folder.trim()) => rest.trim_start(),
        _ => rest,
    };
    let rest = rest.strip_prefix("apply_patch").or_else(|| rest.strip_prefix("applypatch"))?;
    let (first, body) = rest.trim_start().split_once('\n')?;
    let word = first.trim().strip_prefix("<<")?.trim();
    // Without quotes the shell would expand `$` and backquotes in the text.
    let quoted = ['\'', '"'].iter().find_map(|q| word.strip_prefix(*q)?.strip_suffix(*q));
    let plain = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    let word = match quoted {
        Some(word) => word,
        None if !body.contains(['$', '`', '\\']) => word,
        None => return None,
    };
    if !plain(word) {
        return None;
    }
    let end = body.trim_end().strip_suffix(word)?;
    let patch = end.strip_suffix('\n')?;
    // The word ends the text where it first stands alone on a line.
    let alone = patch.lines().any(|line| line == word);
    (!alone && patch.trim_start().starts_with(BEGIN)).then(|| patch.to_owned())
}

/// The old and new text of a single search-and-replace block.
pub(crate) fn block(text: &str) -> Option<(String, String)> {
    let mut lines = text.trim().lines();
    let first = lines.next()?.trim_end();
    let marks = |line: &str, mark: char, word: &str| {
        let rest = line.trim_start_matches(mark);
        line.len() - rest.len() >= 5 && rest.trim() == word
    };
    if !(marks(first, '<', "SEARCH") || marks(first, '-', "SEARCH")) {
        return None;
    }
    let (mut old, mut new, mut side) = (String::new(), String::new(), 0);
    let mut hint = false;
    for line in lines {
        let flat = line.trim_end();
        match side {
            // Where to look first; the text itself decides.
            0 if old.is_empty() && flat.starts_with(":start_line:") => hint = true,
            0 if old.is_empty() && hint && flat == "-------" => hint = false,
            0 if flat == "=======" => side = 1,
            // It could be either of them.
            1 if flat == "=======" => return None,
            1 if marks(flat, '>', "REPLACE") || marks(flat, '+', "REPLACE") => side = 2,
            0 => add(&mut old, line),
            1 => add(&mut new, line),
            _ => return None,
        }
    }
    (side == 2 && !old.is_empty()).then_some((old, new))
}

fn add(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
