//! Renders Markdown as terminal lines: headings, lists, quotes, code, tables, links with their
//! destination.

use crate::code;
use crate::text::{Line, Span, Style, Tone, width};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// The supported Markdown extensions.
pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Renders a text as lines of at most `columns` columns.
#[must_use]
pub fn render(text: &str, columns: usize) -> Vec<Line> {
    let mut out = Renderer::new(columns);
    for event in Parser::new_ext(text, options()) {
        out.event(event);
    }
    out.finish()
}

/// The next number of an open list, if it is numbered.
type Counter = Option<u64>;

#[derive(Default)]
struct Table {
    sides: Vec<Alignment>,
    rows: Vec<Vec<Line>>,
    cell: Line,
}

struct Renderer {
    columns: usize,
    lines: Vec<Line>,
    /// The text of the open paragraph.
    open: Line,
    style: Vec<Style>,
    lists: Vec<Counter>,
    quotes: usize,
    /// The marker that starts the next line, once.
    mark: Option<String>,
    link: Vec<(String, usize)>,
    code: Option<(code::Highlighter, String)>,
    table: Option<Table>,
    /// A blank line is due before the next block.
    gap: bool,
}

impl Renderer {
    fn new(columns: usize) -> Self {
        Self {
            columns: columns.max(10),
            lines: Vec::new(),
            open: Line::empty(),
            style: vec![Style::default()],
            lists: Vec::new(),
            quotes: 0,
            mark: None,
            link: Vec::new(),
            code: None,
            table: None,
            gap: false,
        }
    }

    fn style(&self) -> Style {
        self.style.last().copied().unwrap_or_default()
    }

    fn with(&mut self, change: impl FnOnce(Style) -> Style) {
        let style = change(self.style());
        self.style.push(style);
    }

    /// The prefix of every line in this block.
    fn indent(&self) -> String {
        let depth = self.lists.len() * 2;
        format!("{}{}", "│ ".repeat(self.quotes), " ".repeat(depth))
    }

    fn begin_block(&mut self) {
        if self.gap && !self.lines.is_empty() {
            self.lines.push(Line::empty());
        }
        self.gap = false;
    }

    /// Ends the open line.
    fn flush(&mut self) {
        let open = std::mem::take(&mut self.open);
        if open.0.is_empty() && self.mark.is_none() {
            return;
        }
        self.begin_block();
        let rest = self.indent();
        let first = match self.mark.take() {
            Some(mark) => {
                let outer = " ".repeat(self.lists.len().saturating_sub(1) * 2);
                format!("{}{outer}{mark}", "│ ".repeat(self.quotes))
            }
            None => rest.clone(),
        };
        let rest = if width(&first) > width(&rest) { " ".repeat(width(&first)) } else { rest };
        self.lines.extend(open.wrap(self.columns, &first, &rest));
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => {
                let style = Style { tone: Tone::Code, ..self.style() };
                self.push(&text, style);
            }
            Event::SoftBreak => self.push(" ", self.style()),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.flush();
                self.begin_block();
                self.lines.push(Line::of(&"─".repeat(self.columns.min(40)), Tone::Quiet));
                self.gap = true;
            }
            // HTML and maths are shown as plain text.
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => {
                text.lines().for_each(|line| {
                    self.push(line, Style::of(Tone::Quiet));
                    if text.ends_with('\n') {
                        self.flush();
                    }
                });
            }
            Event::FootnoteReference(name) => self.push(&format!("[{name}]"), self.style()),
            Event::TaskListMarker(done) => self.push(if done { "☑ " } else { "☐ " }, self.style()),
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        let mut span = match style.tone {
            Tone::Code => Span::new(text, style), // it may be a command
            _ => Span::prose(text, style),
        };
        if let Some((place, _)) = self.link.last() {
            span = span.to(place);
        }
        match &mut self.table {
            Some(table) => table.cell.0.push(span),
            None => self.open.0.push(span),
        }
    }

    fn text(&mut self, text: &str) {
        let Some((_, held)) = &mut self.code else { return self.push(text, self.style()) };
        held.push_str(text);
        let whole = held.rfind('\n').map_or(0, |at| at + 1);
        let lines: String = held.drain(..whole).collect();
        lines.lines().for_each(|line| self.code_line(line));
    }

    fn code_line(&mut self, text: &str) {
        let Some((painter, _)) = &mut self.code else { return };
        let line = painter.line(text);
        let lines = code_rows(line, &self.indent(), self.columns);
        self.lines.extend(lines);
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.flush(),
            Tag::Heading { level, .. } => {
                self.flush();
                let strong =
                    Style { bold: true, underline: level == HeadingLevel::H1, ..Style::default() };
                self.with(|_| Style { tone: Tone::Accent, ..strong });
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.begin_block();
                self.quotes += 1;
                self.with(|s| Style { tone: Tone::Quiet, ..s });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.begin_block();
                let name = match kind {
                    CodeBlockKind::Fenced(name) => name.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((code::Highlighter::new(&name), String::new()));
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.begin_block();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                self.gap = false;
                let mark = match self.lists.last_mut() {
                    Some(Some(n)) => {
                        *n += 1;
                        format!("{}. ", *n - 1)
                    }
                    _ => "• ".into(),
                };
                self.mark = Some(mark);
            }
            Tag::Emphasis => self.with(|s| Style { italic: true, ..s }),
            Tag::Strong => self.with(Style::bold),
            Tag::Strikethrough => self.with(|s| Style { strike: true, ..s }),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                let from =
                    self.table.as_ref().map_or(self.open.0.len(), |table| table.cell.0.len());
                self.link.push((dest_url.to_string(), from));
                self.with(|s| Style { tone: Tone::Link, underline: true, ..s });
            }
            Tag::Table(sides) => {
                self.flush();
                self.begin_block();
                self.table = Some(Table { sides, ..Table::default() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.style.pop();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
                self.style.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                if let Some(rest) =
                    self.code.as_ref().map(|(_, held)| held.clone()).filter(|held| !held.is_empty())
                {
                    self.code_line(&rest);
                }
                self.code = None;
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => self.flush(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.style.pop()),
            TagEnd::Link | TagEnd::Image => {
                self.style.pop();
                if let Some((place, from)) = self.link.pop() {
                    let spans = self.table.as_ref().map_or(&self.open.0, |table| &table.cell.0);
                    let shown: String = spans.iter().skip(from).map(Span::text).collect();
                    // The destination is always shown, so that a link cannot mislead.
                    if shown != place {
                        self.push(&format!(" ({place})"), Style::of(Tone::Quiet));
                    }
                }
            }
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    let cell = std::mem::take(&mut table.cell);
                    if let Some(row) = table.rows.last_mut() {
                        row.push(cell);
                    }
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let rows =
                        table_rows(&table, self.columns.saturating_sub(width(&self.indent())));
                    let indent = Span::new(&self.indent(), Tone::Text);
                    self.lines.extend(rows.into_iter().map(|row| row.after(&indent)));
                }
                self.gap = true;
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Vec<Line> {
        self.flush();
        self.lines
    }
}

/// A line of code, on as many rows as it needs.
pub(crate) fn code_rows(line: Line, indent: &str, columns: usize) -> Vec<Line> {
    line.fold(columns, &format!("{indent}  "), &format!("{indent}  "))
}

/// A table fitted to the width. If it cannot fit, each row becomes a list of its cells.
fn table_rows(table: &Table, columns: usize) -> Vec<Line> {
    let count = table.rows.iter().map(Vec::len).max().unwrap_or(0);
    let wanted = |n: usize| {
        table.rows.iter().filter_map(|row| row.get(n)).map(Line::width).max().unwrap_or(0).max(1)
    };
    let mut widths: Vec<usize> = (0..count).map(wanted).collect();
    let gaps = count.saturating_sub(1) * 3;
    let room = columns.saturating_sub(gaps);
    if count == 0 || room < count * 4 {
        return as_list(table, columns);
    }
    while widths.iter().sum::<usize>() > room {
        if let Some(widest) = widths.iter_mut().max() {
            *widest -= 1;
        }
    }
    let mut out = Vec::new();
    for (n, row) in table.rows.iter().enumerate() {
        let cells: Vec<Vec<Line>> = widths
            .iter()
            .enumerate()
            .map(|(at, wide)| {
                row.get(at).map_or_else(|| vec![Line::empty()], |cell| cell.wrap(*wide, "", ""))
            })
            .collect();
        let tall = cells.iter().map(Vec::len).max().unwrap_or(0);
        for y in 0..tall {
            let mut line = Line::empty();
            for (at, wide) in widths.iter().enumerate() {
                if at > 0 {
                    line = line.and(" │ ", Tone::Quiet);
                }
                let mut cell =
                    cells.get(at).and_then(|lines| lines.get(y)).cloned().unwrap_or_default();
                if n == 0 {
                    cell = Line(cell.0.into_iter().map(|s| s.bold()).collect());
                }
                let free = wide.saturating_sub(cell.width());
                let (left, right) = match table.sides.get(at) {
                    Some(Alignment::Right) => (free, 0),
                    Some(Alignment::Center) => (free / 2, free - free / 2),
                    _ => (0, free),
                };
                line = line.and(&" ".repeat(left), Tone::Text);
                line.0.extend(cell.0);
                if at + 1 < widths.len() {
                    line = line.and(&" ".repeat(right), Tone::Text);
                }
            }
            out.push(line);
        }
        if n == 0 {
            let rule: Vec<String> = widths.iter().map(|wide| "─".repeat(*wide)).collect();
            out.push(Line::of(&rule.join("─┼─"), Tone::Quiet));
        }
    }
    out
}

fn as_list(table: &Table, columns: usize) -> Vec<Line> {
    let mut rows = table.rows.iter();
    let Some(head) = rows.next() else { return Vec::new() };
    let mut out = Vec::new();
    for row in rows {
        for (name, cell) in head.iter().zip(row) {
            let mut line = Line::prose(&format!("{}: ", name.plain()), Style::default().bold());
            line.0.extend(cell.0.clone());
            out.extend(line.wrap(columns, "", "  "));
        }
        out.push(Line::empty());
    }
    out.pop();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, columns: usize) -> String {
        render(text, columns)
            .iter()
            .map(|line| line.plain().trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Holds T5: headings, lists, quotes, inline styles.
    #[test]
    fn blocks_are_told_apart() {
        let text = "# Title\nWords **bold** and `code`.\n\n- one\n- two\n  - deep\n\n1. first\n2. \
                    second\n\n> quoted\n";
        assert_eq!(
            shown(text, 40),
            "Title\n\nWords bold and code.\n\n• one\n• two\n  • deep\n\n1. first\n2. second\n\n│ \
             quoted"
        );
    }

    /// Holds T5: tables.
    #[test]
    fn a_table_fits_its_columns() {
        let text =
            "| name | count |\n|---|---:|\n| apples | 12 |\n| a very long name indeed | 3 |\n";
        assert_eq!(
            shown(text, 24),
            "name             │ count\n─────────────────┼──────\napples           │    12\na very \
             long name │     3\nindeed           │"
        );
        assert_eq!(shown("| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |", 12), "a: 1\nb: 2\nc: 3");
    }

    /// Holds T5: links.
    #[test]
    fn a_link_says_where_it_leads() {
        assert_eq!(shown("[docs](https://example.org/x)", 60), "docs (https://example.org/x)");
        assert_eq!(
            shown("[https://good.org](https://evil.org)", 60),
            "https://good.org (https://evil.org)"
        );
        assert_eq!(shown("<https://example.org>", 60), "https://example.org");
        assert!(
            shown("| a |\n|---|\n| [https://good.org](https://evil.org) |", 60)
                .contains("(https://evil.org)")
        );
        let lines = render("[docs](https://example.org/x)", 60);
        assert_eq!(lines[0].0[0].link(), Some("https://example.org/x"));
    }

    #[test]
    fn code_is_not_wrapped_between_words() {
        assert_eq!(shown("```rust\nfn a() {\n\n}\n```\nafter", 40), "  fn a() {\n\n  }\n\nafter");
    }

    #[test]
    fn a_picture_is_a_link_and_html_is_text() {
        assert_eq!(shown("![x](http://evil/?d=1)", 40), "x (http://evil/?d=1)");
        assert_eq!(shown("<b>hi</b>", 40), "<b>hi</b>");
    }
}
