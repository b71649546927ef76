//! Recognises the markers of bridge commands after chats have altered them: brackets, lists, bold,
//! fences, quotes.

use dunnock_core::policy::is_invisible;

/// Words in brackets that are common in prose and logs.
pub(super) const PROSE: &[&str] = &[
    "NOTE",
    "INFO",
    "WARNING",
    "WARN",
    "TODO",
    "OK",
    "ERROR",
    "ERR",
    "DEBUG",
    "TRACE",
    "TIP",
    "IMPORTANT",
    "CAUTION",
    "FIXME",
    "PASS",
    "PASSED",
    "FAIL",
    "FAILED",
    "SKIP",
    "SKIPPED",
    "HINT",
    "FATAL",
    "NOTICE",
    "CRITICAL",
    "SUCCESS",
    "X",
    "NB",
    "PS",
    "FYI",
    "N/A",
    "TBD",
    "WIP",
    "STEP",
    "RESULT",
    "RESULTS",
    "OUTPUT",
    "SUMMARY",
    "UPDATE",
    "QUESTION",
    "ANSWER",
];

/// Placeholders from the instructions: a command that repeats one is not meant to run.
pub(super) const PLACEHOLDERS: &[&str] =
    &["path", "<path>", "{path}", "path/to/file", "text", "<file>", "filename", "..."];

/// A line that begins with something in brackets.
pub(super) struct Marked<'a> {
    /// The word, in upper case.
    pub(super) word: String,
    /// Whether it was written in upper case.
    pub(super) capital: bool,
    /// What follows it inside the brackets.
    pub(super) rest: String,
    /// What follows the closing bracket.
    pub(super) behind: &'a str,
    /// The byte offset of the bracket, after indentation and list markers.
    pub(super) column: usize,
    /// It was preceded by `>`.
    pub(super) quoted: bool,
}

/// Whether a line opens a block.
pub(super) fn opens(found: &Marked<'_>, capital: bool) -> bool {
    let whole = match found.word.as_str() {
        "WRITE" | "REPLACE" => !found.rest.is_empty(),
        "RUN" => found.rest.is_empty(),
        _ => false,
    };
    whole && (found.capital || !capital)
}

/// A command whose bracket is not closed on its line, and whether a body would follow.
pub(super) fn half_marked(line: &str) -> Option<(&'static str, bool)> {
    let text = line.get(lead(line).0..)?.strip_prefix('[')?;
    if text.contains(']') {
        return None;
    }
    let all = ["READ", "LIST", "SEARCH", "DELETE", "WRITE", "REPLACE", "RUN"];
    let word = all
        .into_iter()
        .find(|word| text.strip_prefix(word).is_some_and(|rest| rest.starts_with([' ', ':'])))?;
    Some((word, matches!(word, "WRITE" | "REPLACE" | "RUN")))
}

pub(super) fn is_ours(word: &str) -> bool {
    matches!(
        word,
        "READ"
            | "LIST"
            | "SEARCH"
            | "WRITE"
            | "REPLACE"
            | "DELETE"
            | "RUN"
            | "DONE"
            | "WITH"
            | "END"
    ) || word.starts_with('/')
}

/// Whether a line is the marker that closes a block.
pub(super) fn is_end(found: &Marked<'_>, capital: bool) -> bool {
    let rest = found.rest.to_ascii_uppercase();
    let of_block = matches!(rest.as_str(), "" | "WRITE" | "RUN" | "REPLACE");
    let closes = (found.word == "END" && of_block)
        || matches!(found.word.as_str(), "/WRITE" | "/RUN" | "/REPLACE" | "/END");
    // In lower case it closes only a block opened in lower case: files have sections named [end].
    closes && only_marks(found.behind) && (found.capital || !capital)
}

/// Whether the text is only formatting that a chat puts around words.
pub(super) fn only_marks(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_invisible(c) || "*_`.,!\\".contains(c))
}

/// Whether the text after a read-only command is just a remark: after a dash, in parentheses, or
/// without any words.
pub(super) fn is_remark(behind: &str) -> bool {
    let text = behind.trim();
    let dash = text
        .strip_prefix(['-', '–', '—'])
        .is_some_and(|rest| rest.starts_with(char::is_whitespace));
    let bracket =
        behind.starts_with(char::is_whitespace) && text.starts_with('(') && text.ends_with(')');
    dash || bracket
        || !text
            .chars()
            .any(|c| c.is_alphanumeric() || matches!(c, '?' | ':' | '[' | '(' | '~' | '='))
}

/// The text before the marker that closes a block on the same line.
pub(super) fn ends_here(behind: &str) -> Option<&str> {
    let text = behind.trim_end_matches(|c: char| c.is_whitespace() || "*_`.".contains(c));
    let inside = text.strip_suffix("[END]").or_else(|| text.strip_suffix("[/RUN]"))?;
    let inside = inside.trim();
    (!inside.is_empty()).then_some(inside)
}

/// Parses a line that begins with something in brackets, ignoring what chats put before it.
pub(super) fn mark_of(line: &str) -> Option<Marked<'_>> {
    let (column, quoted) = lead(line);
    let text = line.get(column..)?;
    let (escaped, text) = match text.strip_prefix('\\') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let open = text.chars().next().filter(|c| matches!(c, '[' | '【' | '［'))?;
    let inside = text.get(open.len_utf8()..)?;
    let mut depth = 1;
    let mut end = None;
    for (at, c) in inside.char_indices() {
        match c {
            '[' | '【' | '［' => depth += 1,
            ']' | '】' | '］' => {
                depth -= 1;
                if depth == 0 {
                    end = Some((at, at + c.len_utf8()));
                    break;
                }
            }
            _ => {}
        }
    }
    let (end, after) = end?;
    let content: String = inside.get(..end)?.chars().filter(|c| !is_invisible(*c)).collect();
    let content = content.replace(['\u{a0}', '\u{202f}', '\t'], " ");
    let content = if escaped { unescaped(content.trim_end_matches('\\')) } else { content };
    let content = content.replace('：', ":");
    let content = content.trim();
    let content = if content.starts_with(['*', '`']) {
        content.trim_matches(['*', '`']).trim()
    } else {
        content
    };
    let long = content
        .find(|c: char| !(c.is_ascii_alphabetic() || c == '/' || c == '_'))
        .unwrap_or(content.len());
    // A closing marker may begin with a slash; a path is not a word.
    let (word, rest) = content.split_at(long);
    let word_is_path = word.get(1..).is_some_and(|w| w.contains('/'));
    let follows = rest.chars().next();
    if word.is_empty()
        || word_is_path
        || follows.is_some_and(|c| !(c.is_whitespace() || c == ':' || "\"'`“‘«".contains(c)))
    {
        return None;
    }
    let rest = rest.trim_start().trim_start_matches(':').trim().to_owned();
    let capital = word.chars().all(|c| !c.is_ascii_lowercase());
    let behind = inside.get(after..)?.trim_start_matches(['*', '`', '_']);
    Some(Marked { word: word.to_ascii_uppercase(), capital, rest, behind, column, quoted })
}

pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('_' | '*' | '.' | '-' | '[' | ']' | '#' | '`')) => {}
            _ => out.push(c),
        }
    }
    out
}

/// The length of the indentation, quotation, list and bold markers at the start of a line; and
/// whether the line is quoted.
pub(super) fn lead(line: &str) -> (usize, bool) {
    let mut at = 0;
    let mut quoted = false;
    let mut listed = false;
    loop {
        let rest = line.get(at..).unwrap_or_default();
        let Some(c) = rest.chars().next() else { return (at, quoted) };
        let next = rest.get(c.len_utf8()..).and_then(|rest| rest.chars().next());
        if c.is_whitespace() || is_invisible(c) {
            at += c.len_utf8();
        } else if c == '>' {
            quoted = true;
            at += 1;
        } else if matches!(c, '*' | '_' | '`') && next.is_some_and(|n| !n.is_whitespace()) {
            at += 1;
        } else if matches!(c, '-' | '*' | '+' | '•' | '–' | '·' | '→' | '▪')
            && next.is_some_and(char::is_whitespace)
            && !listed
        {
            listed = true;
            at += c.len_utf8();
        } else if let Some(long) = number(rest).filter(|_| !listed) {
            listed = true;
            at += long;
        } else {
            return (at, quoted);
        }
    }
}

/// The length of a list number: `1.`, `2)`, `(3)`, `a)`.
pub(super) fn number(text: &str) -> Option<usize> {
    let (open, rest) = match text.strip_prefix('(') {
        Some(rest) => (1, rest),
        None => (0, text),
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let long = if digits == 0 {
        usize::from(rest.starts_with(|c: char| c.is_ascii_lowercase()))
    } else {
        digits
    };
    let sign = rest.get(long..)?.chars().next()?;
    let fits =
        (1..=3).contains(&long) && matches!(sign, '.' | ')' | ':') && (digits > 0 || sign == ')');
    let behind = rest.get(long + 1..)?.chars().next();
    (fits
        && behind
            .is_none_or(|c| c.is_whitespace() || matches!(c, '[' | '\\' | '*' | '`' | '【' | '［')))
    .then_some(open + long + 1)
}

/// The character of a fence, its length, and the text after it.
pub(super) fn fence(line: &str) -> Option<(char, usize, &str)> {
    let text =
        line.trim_start_matches(|c: char| c == ' ' || c == '\t' || c == '>' || is_invisible(c));
    let sign = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let long = text.chars().take_while(|c| *c == sign).count();
    let rest = text.get(long..)?.trim();
    // Code between triple backticks on one line is not a fence.
    (long >= 3 && !(sign == '`' && rest.contains('`'))).then_some((sign, long, rest))
}

/// Removes the indentation or quotation of the command from its lines, if all of them have it.
pub(super) fn shifted(lines: &[&str], marked: &Marked<'_>) -> Vec<String> {
    if marked.quoted
        && lines.iter().all(|line| line.trim().is_empty() || line.trim_start().starts_with('>'))
    {
        let bare = |line: &&str| {
            let rest = line.trim_start();
            let rest = rest.strip_prefix('>').unwrap_or(rest);
            rest.strip_prefix(' ').unwrap_or(rest).to_owned()
        };
        return lines.iter().map(bare).collect();
    }
    let indent = |line: &&&str| line.chars().take_while(|c| *c == ' ').count();
    let least = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(|line| indent(&line))
        .min()
        .unwrap_or(0);
    let off = if marked.quoted { 0 } else { least.min(marked.column) };
    lines.iter().map(|line| line.get(off..).unwrap_or_default().to_owned()).collect()
}

/// Whether a line is the label of a copy button that was copied along with the code.
pub(super) fn is_button(line: &str) -> bool {
    matches!(
        line.trim(),
        "Copy code"
            | "Copy"
            | "Code kopieren"
            | "Copier le code"
            | "复制代码"
            | "コードをコピーする"
    )
}

const LABELS: &[&str] = &[
    "python",
    "bash",
    "sh",
    "shell",
    "rust",
    "javascript",
    "typescript",
    "json",
    "yaml",
    "toml",
    "text",
    "plaintext",
    "markdown",
    "html",
    "css",
    "go",
    "java",
    "c",
    "cpp",
    "c++",
    "diff",
    "makefile",
    "ruby",
    "php",
    "sql",
    "xml",
    "zsh",
    "console",
    "kotlin",
];

pub(super) fn without_buttons(mut lines: Vec<String>) -> Vec<String> {
    let label = lines
        .first()
        .is_some_and(|line| LABELS.contains(&line.trim().to_ascii_lowercase().as_str()));
    if label && lines.get(1).is_some_and(|line| is_button(line)) {
        lines.drain(..2);
    } else if lines.first().is_some_and(|line| is_button(line)) {
        lines.remove(0);
    }
    lines
}

/// Removes a fence that encloses both halves of a replacement.
pub(super) fn both_unfenced(
    mut old: Vec<String>,
    mut new: Vec<String>,
) -> (Vec<String>, Vec<String>) {
    let opens = old.first().and_then(|line| fence(line)).map(|(sign, long, _)| (sign, long));
    let closed = |lines: &[String], sign: char| {
        lines.iter().filter(|l| fence(l).is_some_and(|(s, ..)| s == sign)).count()
    };
    if let Some((sign, long)) = opens
        && closed(&old, sign) % 2 == 1
        && new
            .last()
            .and_then(|line| fence(line))
            .is_some_and(|(s, l, rest)| s == sign && l >= long && rest.is_empty())
    {
        old.remove(0);
        new.pop();
    }
    (old, new)
}

/// The path that was meant, or why it is not usable.
pub(super) fn path(text: &str) -> Result<String, String> {
    let path = unquoted(text);
    if path.is_empty() {
        return Err("needs a path, for example [READ src/main.rs]".into());
    }
    if PLACEHOLDERS.contains(&path.as_str()) {
        return Err(format!(
            "repeats the placeholder {path:?} from the instructions; write a real path"
        ));
    }
    if path.contains("](") || path.contains('\n') || path.chars().any(char::is_control) {
        return Err(format!("has the unclear path {path:?}; write the plain path"));
    }
    Ok(path)
}

/// Splits a path from its line range: `src/a.rs LINES 10-20`.
pub(super) fn with_lines(text: String) -> (String, Option<(u32, u32)>) {
    let found = text.rsplit_once(" LINES ").and_then(|(path, lines)| {
        let (first, last) = lines.split_once('-')?;
        Some((path.trim().to_owned(), (first.trim().parse().ok()?, last.trim().parse().ok()?)))
    });
    match found {
        Some((path, lines)) => (unquoted(&path), Some(lines)),
        None => (text, None),
    }
}

/// Removes quotes around a text, plain or typographic.
pub(super) fn unquoted(text: &str) -> String {
    let mut text = text.trim();
    for (open, close) in [
        ("\"", "\""),
        ("'", "'"),
        ("`", "`"),
        ("“", "”"),
        ("‘", "’"),
        ("«", "»"),
        ("„", "“"),
        ("”", "”"),
        ("**", "**"),
    ] {
        if let Some(inside) = text.strip_prefix(open).and_then(|t| t.strip_suffix(close)) {
            text = inside.trim();
        }
    }
    text.to_owned()
}

/// The script in runnable form, or why it cannot run.
pub(super) fn runnable(script: &str, whole: bool) -> Result<String, String> {
    let script = script.replace(['\u{a0}', '\u{202f}'], " ");
    let script: String = script.chars().filter(|c| !is_invisible(*c)).collect();
    let mut script = script.trim_matches('\n').to_owned();
    if script.trim().is_empty() {
        return Err("has no command before its [END]".into());
    }
    // A shell would treat a fence as command substitution and run its output.
    if script.lines().any(|line| fence(line).is_some()) {
        return Err("has a code fence and other text; write only the command between [RUN] and \
                    [END]"
            .into());
    }
    if !whole
        && script
            .lines()
            .any(|line| mark_of(line).is_some_and(|found| found.capital && is_ours(&found.word)))
    {
        return Err("has a line that looks like another command; if it is meant, put the body \
                    into a code fence"
            .into());
    }
    if !script.contains('"') {
        script = script.replace(['“', '”', '„'], "\"");
    }
    if !script.contains('\'') {
        script = script.replace(['‘', '’'], "'");
    }
    let dashed = |word: &str| word.starts_with(['–', '—', '−']);
    if script.split_whitespace().any(dashed) {
        return Err("has a long dash where an option begins; write it with plain hyphens".into());
    }
    let lines: Vec<&str> = script.lines().collect();
    let typed = |line: &&&str| line.starts_with("$ ");
    let said =
        |line: &&&str| !line.trim().is_empty() && !line.starts_with("$ ") && !line.starts_with('#');
    if lines.iter().any(|line| typed(&line)) && lines.iter().any(|line| said(&line)) {
        return Err(
            "looks like commands with their output; write only the commands, without $".into()
        );
    }
    if lines.iter().any(|line| typed(&line)) {
        let bare: Vec<&str> =
            lines.iter().map(|line| line.strip_prefix("$ ").unwrap_or(line)).collect();
        script = bare.join("\n");
    }
    Ok(script)
}
