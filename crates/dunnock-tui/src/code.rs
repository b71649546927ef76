//! Highlights code one line at a time, so that streamed code is coloured at once and never
//! recoloured.
//!
//! It is a scanner driven by a small table, not a grammar: it knows comments, quotes, numbers and
//! keywords. A grammar library needs more memory than the rest of this program, and tens of
//! milliseconds before its first line (`docs/internals/libraries.md` has the figures).

use crate::languages_table::{LANGUAGES, Language};
use crate::text::{Line, Span, Style, Tone};

/// The state at the end of the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Code,
    /// In a comment or string that ends with this.
    Until(&'static str, Tone),
}

/// Highlights the lines of one language, in order.
pub struct Highlighter {
    language: Option<&'static Language>,
    diff: bool,
    inside: Inside,
}

impl Highlighter {
    /// By the name of a language or a file extension; unknown ones stay uncoloured.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let name = name.split([',', ' ', '{']).next().unwrap_or_default().to_lowercase();
        let language = LANGUAGES.iter().find(|l| l.names.contains(&name.as_str()));
        Self { language, diff: matches!(name.as_str(), "diff" | "patch"), inside: Inside::Code }
    }

    /// Highlights the next line.
    pub fn line(&mut self, text: &str) -> Line {
        if self.diff {
            return Line::of(text, diff_tone(text));
        }
        let Some(language) = self.language else { return Line::of(text, Tone::Text) };
        let mut out = Vec::new();
        let mut plain = 0; // start of the text that has no colour yet
        let mut at = 0;
        while at < text.len() {
            let (end, tone) = self.token(language, text, at);
            if tone != Tone::Text {
                push(&mut out, &text[plain..at], Tone::Text);
                push(&mut out, &text[at..end], tone);
                plain = end;
            }
            at = end;
        }
        push(&mut out, &text[plain..], Tone::Text);
        Line(out)
    }

    /// The end and the tone of the token that starts at `at`.
    fn token(&mut self, language: &'static Language, text: &str, at: usize) -> (usize, Tone) {
        let rest = &text[at..];
        if let Inside::Until(end, tone) = self.inside {
            return match rest.find(end) {
                Some(found) => {
                    self.inside = Inside::Code;
                    (at + found + end.len(), tone)
                }
                None => (text.len(), tone),
            };
        }
        if let Some((begin, end)) = language.block
            && rest.starts_with(begin)
        {
            self.inside = Inside::Until(end, Tone::Comment);
            return (at + begin.len(), Tone::Comment);
        }
        if let Some(long) = language.long.iter().find(|long| rest.starts_with(**long)) {
            self.inside = Inside::Until(long, Tone::Quoted);
            return (at + long.len(), Tone::Quoted);
        }
        let before = text[..at].chars().next_back();
        let free = before.is_none_or(|c| c.is_whitespace() || "(){}[];,".contains(c));
        // `${#x}` is no comment.
        let begins = |mark: &&str| match *mark {
            "//" => true,
            "#" => free && before != Some('{'),
            _ => free,
        };
        if language.line.iter().any(|mark| rest.starts_with(mark) && begins(mark)) {
            return (text.len(), Tone::Comment);
        }
        let Some(first) = rest.chars().next() else { return (text.len(), Tone::Text) };
        if language.quotes.contains(first) {
            return (at + quoted(rest, first), Tone::Quoted);
        }
        if first == '\''
            && let Some(end) = character(rest)
        {
            return (at + end, Tone::Quoted);
        }
        let joined = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        if (first.is_alphabetic() || first == '_') && !joined {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let known = language.words.split(' ').any(|word| word == &rest[..end]);
            return (at + end, if known { Tone::Keyword } else { Tone::Text });
        }
        if first.is_ascii_digit() && !joined {
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_')
                .unwrap_or(rest.len());
            // `0..n` is a range.
            let end = rest[..end].find("..").unwrap_or(end);
            return (at + end, Tone::Number);
        }
        (at + first.len_utf8(), Tone::Text)
    }
}

fn push(out: &mut Vec<Span>, text: &str, tone: Tone) {
    if !text.is_empty() {
        out.push(Span::new(text, tone));
    }
}

/// The length of a quoted string, up to its closing quote or the end of the line.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// The length of a character literal such as `'"'`, where a single quote may also be something else
/// (a lifetime).
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    let (end, _) = match first {
        '\\' => chars.skip(1).find(|(_, c)| *c == '\'')?,
        _ => chars.next().filter(|(_, c)| *c == '\'')?,
    };
    Some(end + 1)
}

/// The style of a line of a unified diff.
#[must_use]
pub fn diff_tone(line: &str) -> Style {
    match line.as_bytes().first() {
        _ if line.starts_with("+++") || line.starts_with("---") => Style::of(Tone::Quiet).bold(),
        Some(b'+') => Tone::Added.into(),
        Some(b'-') => Tone::Removed.into(),
        Some(b'@') => Tone::Link.into(),
        _ => Tone::Text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tones(language: &str, lines: &[&str]) -> Vec<Vec<(String, Tone)>> {
        let mut painter = Highlighter::new(language);
        let painted =
            |line: Line| line.0.iter().map(|s| (s.text().to_owned(), s.style().tone)).collect();
        lines.iter().map(|line| painted(painter.line(line))).collect()
    }

    #[test]
    fn keywords_quotes_numbers_and_comments_are_told_apart() {
        let got = tones("rust", &["let x = \"a//b\"; // 7"]);
        let want = [
            ("let", Tone::Keyword),
            (" x = ", Tone::Text),
            ("\"a//b\"", Tone::Quoted),
            ("; ", Tone::Text),
            ("// 7", Tone::Comment),
        ];
        assert_eq!(got[0], want.map(|(t, tone)| (t.to_owned(), tone)));
        assert_eq!(tones("py", &["x = 0x1f + letter"])[0][1], ("0x1f".into(), Tone::Number));
    }

    #[test]
    fn what_only_looks_like_a_string_a_number_or_a_comment_is_told_apart() {
        let got = tones("rust", &[r#"f('"', '\'', '\u{41}', &'a str, 0..n)"#]);
        let quoted: Vec<&str> =
            got[0].iter().filter(|(_, t)| *t == Tone::Quoted).map(|(text, _)| &**text).collect();
        assert_eq!(quoted, ["'\"'", "'\\''", "'\\u{41}'"]);
        assert!(got[0].contains(&("0".into(), Tone::Number)), "{got:?}");
        let got = tones("sh", &["if [ ${#x} -gt 0 ]; then # c"]);
        let comments: Vec<_> = got[0].iter().filter(|(_, t)| *t == Tone::Comment).collect();
        assert_eq!(comments, [&("# c".to_owned(), Tone::Comment)]);
    }

    #[test]
    fn what_spans_lines_is_remembered() {
        let got = tones("python", &["s = '''one", "for two", "''' + x"]);
        assert!(got[1].iter().all(|(_, tone)| *tone == Tone::Quoted), "{got:?}");
        assert_eq!(got[2].last().unwrap().1, Tone::Text);
    }

    #[test]
    fn no_text_is_lost_whatever_the_line() {
        for language in ["rust", "python", "js", "sql", "html", "nonsense", "diff"] {
            let mut painter = Highlighter::new(language);
            for line in [
                "é 'x\\' \"",
                "/* a */ b",
                "'a lifetime",
                "-- x",
                "漢字 #c",
                "1.5e3..x",
                "\"",
                "\\",
            ] {
                assert_eq!(painter.line(line).plain(), line, "{language}");
            }
        }
    }
}
