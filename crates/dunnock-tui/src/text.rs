//! Lines of styled text and their widths.
//!
//! Invariant: no control character gets into a [`Span`], so the terminal sees only our own.
//! Characters that would move the cursor, colour the screen, write to the clipboard or change the
//! text direction are shown as escapes.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// The role of a piece of text; a theme decides how it looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Plain text.
    #[default]
    Text,
    /// Less important text.
    Quiet,
    /// The user's words.
    User,
    /// The brand colour, a dunnock's brown.
    Accent,
    /// Success.
    Good,
    /// Failure.
    Bad,
    /// Needs the user's attention.
    Warn,
    /// Inline code.
    Code,
    /// A link.
    Link,
    /// An added line.
    Added,
    /// A removed line.
    Removed,
    /// A keyword in code.
    Keyword,
    /// A string in code.
    Quoted,
    /// A comment in code.
    Comment,
    /// A number in code.
    Number,
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Its role.
    pub tone: Tone,
    /// Bold.
    pub bold: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Struck through.
    pub strike: bool,
    /// Foreground and background swapped, for the cursor.
    pub reverse: bool,
}

impl Style {
    /// Only this tone.
    #[must_use]
    pub const fn of(tone: Tone) -> Self {
        Self { tone, bold: false, italic: false, underline: false, strike: false, reverse: false }
    }
    /// The same style in bold.
    #[must_use]
    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }
}

impl From<Tone> for Style {
    fn from(tone: Tone) -> Self {
        Self::of(tone)
    }
}

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    text: String,
    style: Style,
    /// The link target; only schemes that are safe to click.
    link: Option<String>,
}

impl Span {
    /// From any text; control characters are escaped.
    #[must_use]
    pub fn new(text: &str, style: impl Into<Style>) -> Self {
        Self { text: one_line(text), style: style.into(), link: None }
    }
    /// From prose: joiners stay where they join letters or emoji. Never for a text that people
    /// decide on, such as a command or a path.
    #[must_use]
    pub fn prose(text: &str, style: impl Into<Style>) -> Self {
        Self { text: prose_line(text), style: style.into(), link: None }
    }
    /// Adds a link. Only web and mail addresses in printable ASCII are accepted.
    #[must_use]
    pub fn to(mut self, place: &str) -> Self {
        let plain = place.chars().all(|c| c.is_ascii_graphic());
        let known =
            ["https://", "http://", "mailto:"].iter().any(|scheme| place.starts_with(scheme));
        self.link = (plain && known).then(|| place.to_owned());
        self
    }
    /// The same text in another tone.
    #[must_use]
    pub fn toned(self, tone: Tone) -> Self {
        Self { style: Style { tone, ..self.style }, ..self }
    }
    /// The same text in bold.
    #[must_use]
    pub fn bold(self) -> Self {
        Self { style: self.style.bold(), ..self }
    }
    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
    /// Its style.
    #[must_use]
    pub fn style(&self) -> Style {
        self.style
    }
    /// Its link target.
    #[must_use]
    pub fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }
}

/// A line of styled text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line(pub Vec<Span>);

impl Line {
    /// A line with one span.
    #[must_use]
    pub fn of(text: &str, style: impl Into<Style>) -> Self {
        Self(vec![Span::new(text, style)])
    }
    /// A line of prose; see [`Span::prose`].
    #[must_use]
    pub fn prose(text: &str, style: impl Into<Style>) -> Self {
        Self(vec![Span::prose(text, style)])
    }
    /// A line without spans.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }
    /// Appends a span.
    #[must_use]
    pub fn and(mut self, text: &str, style: impl Into<Style>) -> Self {
        self.0.push(Span::new(text, style));
        self
    }
    /// Width in columns.
    #[must_use]
    pub fn width(&self) -> usize {
        self.0.iter().map(|span| width(&span.text)).sum()
    }
    /// The text without its style.
    #[must_use]
    pub fn plain(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }
    /// Cuts the line to `most` columns, with an ellipsis for the rest.
    #[must_use]
    pub fn cut(mut self, most: usize) -> Self {
        if self.width() <= most {
            return self;
        }
        let mut left = most.saturating_sub(1);
        for span in &mut self.0 {
            let fits = fitting(&span.text, left);
            span.text.truncate(fits);
            left -= width(&span.text);
        }
        self.0.retain(|span| !span.text.is_empty());
        if most > 0 {
            self.0.push(Span::new("…", Tone::Quiet));
        }
        self
    }
    /// Puts `right` at the right edge; this line is cut if both do not fit.
    #[must_use]
    pub fn beside(self, right: Self, columns: usize) -> Self {
        let room = columns.saturating_sub(right.width() + 1);
        let mut line = self.cut(room);
        let gap = columns.saturating_sub(line.width() + right.width());
        line.0.push(Span::new(&" ".repeat(gap), Tone::Text));
        line.0.extend(right.0);
        line
    }
    /// Marks the cell at a column as the cursor.
    #[must_use]
    pub fn with_cursor(self, column: usize) -> Self {
        let mut out = Vec::new();
        let (mut used, mut marked) = (0, false);
        for span in self.0 {
            for grapheme in span.text.graphemes(true) {
                let here = !marked && used + width(grapheme) > column;
                marked |= here;
                used += width(grapheme);
                let style = Style { reverse: span.style.reverse ^ here, ..span.style };
                match out.last_mut() {
                    Some(Span { text, style: last, link })
                        if *last == style && *link == span.link =>
                    {
                        text.push_str(grapheme)
                    }
                    _ => {
                        out.push(Span { text: grapheme.to_owned(), style, link: span.link.clone() })
                    }
                }
            }
        }
        if !marked {
            out.push(Span::new(&" ".repeat(column.saturating_sub(used)), Tone::Text));
            out.push(Span::new(" ", Style { reverse: true, ..Style::default() }));
        }
        Self(out)
    }
    /// Puts a span before the line.
    #[must_use]
    pub fn after(self, first: &Span) -> Self {
        let mut spans = vec![first.clone()];
        spans.extend(self.0);
        Self(spans)
    }
    /// Breaks the line between words. The first row starts with `first`, the others with `next`.
    #[must_use]
    pub fn wrap(&self, columns: usize, first: &str, next: &str) -> Vec<Self> {
        Wrapping::new(columns, first, next, true).all(self)
    }
    /// Breaks the line exactly at the edge: nothing is dropped or moved.
    #[must_use]
    pub fn fold(&self, columns: usize, first: &str, next: &str) -> Vec<Self> {
        Wrapping::new(columns, first, next, false).all(self)
    }
}

struct Wrapping<'a> {
    columns: usize,
    next: &'a str,
    words: bool,
    lines: Vec<Line>,
    line: Line,
    used: usize,
    /// Whether the row has text after its prefix.
    begun: bool,
}

impl<'a> Wrapping<'a> {
    fn new(columns: usize, first: &str, next: &'a str, words: bool) -> Self {
        let line = if first.is_empty() { Line::empty() } else { Line::of(first, Tone::Text) };
        let used = line.width();
        Self {
            columns: columns.max(used + 2),
            next,
            words,
            lines: Vec::new(),
            line,
            used,
            begun: false,
        }
    }

    fn all(mut self, line: &Line) -> Vec<Line> {
        for span in &line.0 {
            if self.words {
                words(&span.text).for_each(|word| self.word(word, span));
            } else {
                self.break_up(&span.text, span);
            }
        }
        self.lines.push(self.line);
        self.lines
    }

    fn new_line(&mut self) {
        let next =
            if self.next.is_empty() { Line::empty() } else { Line::of(self.next, Tone::Text) };
        self.used = next.width();
        self.lines.push(std::mem::replace(&mut self.line, next));
        self.begun = false;
    }

    fn word(&mut self, word: &str, span: &Span) {
        let wide = width(word);
        if self.used + wide <= self.columns {
            let blank_at_start = word.trim().is_empty() && !self.begun && !self.lines.is_empty();
            if !blank_at_start {
                self.put(word, span);
            }
        } else if word.trim().is_empty() {
            self.new_line(); // the break replaces the blank
        } else {
            if self.begun {
                self.new_line();
            }
            if self.used + wide <= self.columns {
                self.put(word, span)
            } else {
                self.break_up(word, span)
            }
        }
    }

    fn break_up(&mut self, text: &str, span: &Span) {
        for grapheme in text.graphemes(true) {
            if self.used + width(grapheme) > self.columns && self.begun {
                self.new_line();
            }
            self.put(grapheme, span);
        }
    }

    fn put(&mut self, text: &str, span: &Span) {
        self.used += width(text);
        self.begun = true;
        match self.line.0.last_mut() {
            Some(last) if last.style == span.style && last.link == span.link => {
                last.text.push_str(text)
            }
            _ => self.line.0.push(Span {
                text: text.to_owned(),
                style: span.style,
                link: span.link.clone(),
            }),
        }
    }
}

/// Pieces between which a line may break: blanks, words, and each wide character, since scripts of
/// wide characters have no blanks.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.graphemes(true).next()?;
        let kind = |g: &str| (g.trim().is_empty(), width(g) > 1);
        let (blank, wide) = kind(first);
        let end = match wide {
            true => first.len(),
            false => rest
                .grapheme_indices(true)
                .find(|(_, g)| kind(g) != (blank, wide))
                .map_or(rest.len(), |(at, _)| at),
        };
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// Width of a text in columns.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// Length in bytes of the longest prefix that fits into `columns`.
#[must_use]
pub fn fitting(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += width(grapheme);
        if used > columns {
            return at;
        }
    }
    text.len()
}

/// Makes text from a model or a file safe to print: escapes control characters, keeps newlines and
/// tabs.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_invisible(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Like [`visible`], on one line, so that a title cannot pass for another row.
#[must_use]
pub fn one_line(text: &str) -> String {
    if text.bytes().all(|b| (b' '..0x7f).contains(&b)) {
        return text.to_owned();
    }
    visible(text).replace('\n', " ").replace('\t', "    ")
}

/// Like [`one_line`], but joiners stay where they join: Persian, Hindi and other scripts cannot be
/// read without them, and many emoji consist of several.
fn prose_line(text: &str) -> String {
    if !text.contains(['\u{200c}', '\u{200d}', '\u{fe0f}']) {
        return one_line(text);
    }
    let all: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    for (n, c) in all.iter().enumerate() {
        let before = n.checked_sub(1).and_then(|n| all.get(n)).copied().unwrap_or(' ');
        let after = all.get(n + 1).copied().unwrap_or(' ');
        let emoji =
            |c: char| is_pictograph(c) || matches!(c, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}');
        let joins = match c {
            '\u{200c}' => is_joining(before) && is_joining(after),
            '\u{200d}' => {
                (is_joining(before) && is_joining(after)) || (emoji(before) && is_pictograph(after))
            }
            '\u{fe0f}' => is_pictograph(before),
            _ => false,
        };
        match joins {
            true => out.push(*c),
            false => out.push_str(&one_line(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

/// Letters and marks of scripts in which joiners change how words are written.
fn is_joining(c: char) -> bool {
    let script = matches!(c,
        '\u{620}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}' | '\u{1820}'..='\u{18aa}' | '\u{a840}'..='\u{a877}'
        | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}');
    script && !is_invisible(c)
}

/// Pictures that form sequences.
fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2194}'..='\u{21aa}' | '\u{231a}'..='\u{23ff}' | '\u{25aa}'..='\u{27bf}'
        | '\u{2934}'..='\u{2935}' | '\u{2b05}'..='\u{2b55}' | '\u{1f000}'..='\u{1faff}')
}

/// Unicode format characters: invisible, but they change how others are shown.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}'
        | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Removes terminal sequences (colours, titles, links, clipboard) from a program's output.
#[must_use]
pub fn without_sequences(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        out.push_str(&rest[..at]);
        rest = after_sequence(&rest[at + 1..]);
    }
    out.push_str(rest);
    // Of a line overwritten with carriage returns, the last version is shown.
    let drawn =
        |line: &str| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().to_owned();
    if out.contains('\r') { out.split('\n').map(drawn).collect::<Vec<_>>().join("\n") } else { out }
}

/// The text after a sequence; `text` starts after the escape character.
fn after_sequence(text: &str) -> &str {
    let Some(kind) = text.chars().next() else { return "" };
    let body = &text[kind.len_utf8()..];
    match kind {
        '[' => {
            let end = body.find(|c: char| ('@'..='~').contains(&c) || c.is_control());
            match end {
                Some(at) if body[at..].starts_with(char::is_control) => &body[at..],
                Some(at) => &body[at + 1..],
                None => "",
            }
        }
        // Strings end with BEL or ESC \; an unterminated one ends with its line.
        ']' | 'P' | 'X' | '^' | '_' => match body.find(['\u{7}', '\u{1b}', '\n', '\u{9c}']) {
            Some(at) if body[at..].starts_with("\u{1b}\\") => &body[at + 2..],
            Some(at) if body[at..].starts_with('\n') || body[at..].starts_with('\u{1b}') => {
                &body[at..]
            }
            Some(at) => &body[at + body[at..].chars().next().map_or(1, char::len_utf8)..],
            None => "",
        },
        '(' | ')' | '*' | '+' | '#' | '%' | ' ' => {
            &body[body.chars().next().map_or(0, char::len_utf8)..]
        }
        _ => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_where_they_fit() {
        let line = Line::of("the quick brown fox", Tone::Text);
        let rows: Vec<String> = line.wrap(10, "", "  ").iter().map(Line::plain).collect();
        assert_eq!(rows, ["the quick ", "  brown ", "  fox"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let line = Line::of("漢字漢字", Tone::Text);
        let rows: Vec<String> = line.fold(5, "", "").iter().map(Line::plain).collect();
        assert_eq!(rows, ["漢字", "漢字"]);
        assert_eq!(line.cut(5).plain(), "漢字…");
    }

    #[test]
    fn no_control_character_gets_into_a_span() {
        for c in (0..0x20u32).chain(0x7f..0xa0).chain([0x202e, 0x200b, 0xfeff]) {
            let c = char::from_u32(c).unwrap();
            let text = Span::new(&format!("a{c}b"), Tone::Text).text;
            assert!(text.chars().all(|c| !c.is_control() && !is_invisible(c)), "{text:?}");
        }
    }

    /// UX-A11: Persian, Hindi and emoji could not be read.
    #[test]
    fn joiners_stay_in_prose_where_they_join_and_nowhere_else() {
        let kept = [
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{62f}",
            "\u{915}\u{94d}\u{200d}\u{937}",
            "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
            "\u{1f469}\u{1f3fd}\u{200d}\u{1f4bb}",
        ];
        for text in kept {
            assert_eq!(Span::prose(text, Tone::Text).text, text);
            assert!(Span::new(text, Tone::Text).text.contains("\\u{"), "escaped elsewhere");
        }
        for text in ["r\u{200d}m", "r\u{200c}m", "a\u{fe0f}b", "\u{200d}x", "\u{645}\u{200c} x"] {
            assert!(Span::prose(text, Tone::Text).text.contains("\\u{"), "{text:?}");
        }
        for c in ['\u{202e}', '\u{200b}', '\u{1b}', '\n'] {
            let text = Span::prose(&format!("\u{2764}\u{fe0f}{c}b"), Tone::Text).text;
            assert!(!text.contains(c), "{text:?}");
        }
    }

    #[test]
    fn sequences_are_taken_out_of_output() {
        let cases = [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]52;c;aGk=\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]8;;http://x", ""),
            ("open \u{1b}]8;;http://x\nnext line", "open \nnext line"),
            ("\u{1b}P$q\"p\u{1b}\\x", "x"),
            ("50%\r100%\r\ndone", "100%\ndone"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("é\u{1b}]0;t\u{9c}ü", "éü"),
        ];
        for (text, want) in cases {
            assert_eq!(without_sequences(text), want, "{text:?}");
        }
    }

    #[test]
    fn a_link_goes_only_where_a_click_may() {
        let to = |place: &str| Span::new("x", Tone::Link).to(place).link().map(str::to_owned);
        assert_eq!(to("https://example.org/a?b=c").as_deref(), Some("https://example.org/a?b=c"));
        for bad in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://x\u{1b}\\",
            "https://\u{430}pple.com",
            "",
        ] {
            assert_eq!(to(bad), None, "{bad}");
        }
    }
}
