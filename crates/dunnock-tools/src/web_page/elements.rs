//! The elements of a page that are open.
//!
//! It follows browsers where that decides what is visible: some end tags may be left out, some close
//! nothing, and `<b>` continues after the block in which it began.

use super::writer::Style;
use std::collections::HashMap;
use std::rc::Rc;

/// How many nested elements are tracked.
const MOST_DEPTH: usize = 64;
/// How many quotations and lists show in the margin.
const MOST_MARGIN: usize = 8;

/// Elements whose contents are not part of the text.
const SKIPPED: &[&str] = &[
    "audio", "canvas", "datalist", "dialog", "embed", "iframe", "math", "nav", "noembed",
    "noframes", "noscript", "object", "script", "select", "style", "svg", "template", "textarea",
    "video",
];
/// Elements without contents.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link", "meta",
    "param", "source", "track", "wbr",
];
/// Elements that are blocks.
const BLOCK: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "li",
    "main",
    "ol",
    "p",
    "pre",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "ul",
];
/// Elements of a table: only they close what was open around a cell.
const TABLE: &[&str] = &["caption", "table", "tbody", "td", "tfoot", "th", "thead", "tr"];
/// Elements that end a drawing or a formula.
const BREAKS_OUT: &[&str] = &[
    "b",
    "big",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "i",
    "img",
    "li",
    "listing",
    "menu",
    "meta",
    "nobr",
    "ol",
    "p",
    "pre",
    "ruby",
    "s",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "sup",
    "table",
    "tt",
    "u",
    "ul",
    "var",
];
/// Elements of a drawing or a formula whose contents are HTML again.
const HTML_INSIDE: &[&str] = &["annotation-xml", "desc", "foreignobject", "title"];
/// How many formatting elements with the same name may be open at once, as in browsers.
const MOST_SAME: usize = 3;
/// Formatting elements: browsers continue them after the block in which they began.
const FORMATTING: &[&str] = &[
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];

pub(super) fn is_skipped(name: &str) -> bool {
    SKIPPED.contains(&name)
}

pub(super) fn is_void(name: &str) -> bool {
    VOID.contains(&name)
}

pub(super) fn is_block(name: &str) -> bool {
    BLOCK.contains(&name)
}

/// What an element means for its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Nothing,
    Bold,
    Italic,
    Code,
    Heading,
}

/// An open element.
#[derive(Debug)]
pub(super) struct Element {
    name: Box<str>,
    meaning: Meaning,
    is_block: bool,
    is_formatting: bool,
    is_skipped: bool,
    is_hidden: bool,
    /// Where a link leads.
    pub(super) link: Option<Rc<str>>,
    /// What stands before its first text.
    pub(super) marker: Option<String>,
    /// The number of the next item of a numbered list, or how many cells a row has.
    pub(super) count: Option<u32>,
}

impl Element {
    pub(super) fn new(name: &str, is_hidden: bool) -> Self {
        let meaning = match name {
            "b" | "strong" => Meaning::Bold,
            "em" | "i" => Meaning::Italic,
            "code" | "kbd" | "samp" | "tt" => Meaning::Code,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "th" => Meaning::Heading,
            _ => Meaning::Nothing,
        };
        Self {
            name: name.into(),
            meaning,
            is_block: is_block(name),
            is_formatting: FORMATTING.contains(&name),
            is_skipped: is_skipped(name),
            is_hidden,
            link: None,
            marker: None,
            count: None,
        }
    }
}

/// The elements that are open.
#[derive(Debug, Default)]
pub(super) struct Elements {
    open: Vec<Element>,
    /// How many of them are hidden.
    hidden: usize,
    /// Hidden elements that are nested too deep, and those in them, by name.
    deeper: HashMap<Box<str>, usize>,
}

impl Elements {
    /// Whether what comes now is not seen.
    pub(super) fn are_hidden(&self) -> bool {
        self.hidden > 0 || !self.deeper.is_empty()
    }

    /// Whether an element with this name is open.
    pub(super) fn contain(&self, name: &str) -> bool {
        self.open.iter().any(|element| *element.name == *name)
    }

    /// Opens an element.
    pub(super) fn push(&mut self, element: Element, self_closing: bool) {
        // Only drawings and their parts close themselves.
        if self_closing && (self.are_foreign() || matches!(&*element.name, "svg" | "math")) {
            return;
        }
        let same = |open: &&Element| open.name == element.name && open.meaning == element.meaning;
        let is_repeated = element.is_formatting
            && element.link.is_none()
            && self.open.iter().filter(same).count() >= MOST_SAME;
        if is_repeated && !element.is_hidden && !self.are_hidden() {
            return;
        }
        // Other elements do not change the text, so they are not tracked.
        let matters = element.is_hidden
            || self.are_hidden()
            || element.link.is_some()
            || element.meaning != Meaning::Nothing
            || element.is_block;
        if matters && self.open.len() >= MOST_DEPTH {
            // Beyond the limit, only hidden elements and those in them are counted.
            if element.is_hidden || self.are_hidden() {
                *self.deeper.entry(element.name).or_default() += 1;
            }
        } else if matters {
            self.hidden += usize::from(element.is_hidden);
            self.open.push(element);
        }
    }

    /// Whether the next element belongs to a drawing or a formula, where the rules of HTML do not hold.
    pub(super) fn are_foreign(&self) -> bool {
        self.hidden > 0 && self.foreign().is_some()
    }

    /// The position of the drawing or formula to which the next element belongs.
    fn foreign(&self) -> Option<usize> {
        let decides = |element: &Element| {
            matches!(&*element.name, "svg" | "math") || HTML_INSIDE.contains(&&*element.name)
        };
        let at = self.open.iter().rposition(decides)?;
        self.open.get(at).filter(|element| matches!(&*element.name, "svg" | "math")).map(|_| at)
    }

    /// Closes what a start tag closes without an end tag.
    pub(super) fn close_implied(&mut self, name: &str) {
        if self.hidden > 0 && BREAKS_OUT.contains(&name) {
            while let Some(at) = self.foreign() {
                self.close_from(at);
            }
        }
        if matches!(name, "a" | "button") {
            self.close(name);
        }
        let (closes, within): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol", "table", "td", "th"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl", "table", "td", "th"]),
            "td" | "th" => (&["td", "th"], &["tr", "table"]),
            "tr" => (&["tr"], &["table"]),
            "thead" | "tbody" | "tfoot" => (&["thead", "tbody", "tfoot"], &["table"]),
            _ => (&[], &[]),
        };
        self.close_nearest(closes, within);
        if is_block(name) && !TABLE.contains(&name) || name == "table" {
            self.close_nearest(&["p"], &["table", "td", "th", "caption", "object", "template"]);
        }
    }

    fn close_nearest(&mut self, names: &[&str], within: &[&str]) {
        let stops = |element: &Element| {
            let name = &&*element.name;
            element.is_skipped || names.contains(name) || within.contains(name)
        };
        if let Some(at) = self.open.iter().rposition(stops)
            && self.open.get(at).is_some_and(|element| names.contains(&&*element.name))
        {
            self.close_from(at);
        }
    }

    /// Closes an element by its end tag.
    pub(super) fn close(&mut self, name: &str) {
        if let Some(count) = self.deeper.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                self.deeper.remove(name);
            }
            return;
        }
        let is_own = |element: &Element| *element.name == *name;
        let of_table = TABLE.contains(&name);
        let is_formatting = FORMATTING.contains(&name);
        let (is_block, is_skipped) = (is_block(name), is_skipped(name));
        let stops = |element: &Element| match &*element.name {
            _ if is_skipped => false,
            // The end of a table closes its cells; a cell does not end the table.
            "table" => true,
            "td" | "th" | "caption" => !of_table,
            _ => !is_block && !is_formatting && !of_table && element.is_block,
        };
        let found = self.open.iter().rposition(|element| is_own(element) || stops(element));
        let Some(at) = found.filter(|at| self.open.get(*at).is_some_and(is_own)) else {
            return;
        };
        if is_formatting {
            let removed = self.open.remove(at);
            self.hidden -= usize::from(removed.is_hidden);
        } else {
            self.close_from(at);
        }
    }

    /// Closes an element and those in it, except formatting: browsers open that again.
    fn close_from(&mut self, at: usize) {
        self.deeper = HashMap::new();
        let closed = self.open.split_off(at);
        let mut in_cell = false;
        for element in closed {
            in_cell |= matches!(&*element.name, "td" | "th" | "caption");
            if element.is_formatting && !in_cell {
                self.open.push(element);
            } else {
                self.hidden -= usize::from(element.is_hidden);
            }
        }
    }

    /// The marker of the next item of the innermost list.
    pub(super) fn next_marker(&mut self) -> String {
        let is_list = |element: &&mut Element| matches!(&*element.name, "ul" | "ol");
        let number = self.open.iter_mut().rev().find(is_list).and_then(|list| {
            let number = list.count?;
            list.count = Some(number.saturating_add(1));
            Some(number)
        });
        number.map_or_else(|| "- ".to_owned(), |number| format!("{number}. "))
    }

    /// Whether the cell that begins is the first of its row.
    pub(super) fn is_first_cell(&mut self) -> bool {
        let row = self.open.iter_mut().rfind(|element| *element.name == *"tr");
        row.and_then(|row| row.count.as_mut()).is_none_or(|count| {
            *count += 1;
            *count == 1
        })
    }

    /// How text looks here.
    pub(super) fn style(&self) -> Style {
        let any = |meaning| self.open.iter().any(|open| open.meaning == meaning);
        Style {
            link: self.open.iter().rev().find_map(|open| open.link.clone()),
            bold: any(Meaning::Bold) && !any(Meaning::Heading),
            italic: any(Meaning::Italic),
            code: any(Meaning::Code),
        }
    }

    /// What stands at the beginning of a line: quotations, the indentation of lists, and markers that
    /// were not written yet.
    pub(super) fn margin(&mut self) -> String {
        let mut margin = String::new();
        let shown = |element: &&mut Element| {
            matches!(&*element.name, "blockquote" | "li") || element.marker.is_some()
        };
        for element in self.open.iter_mut().filter(shown).take(MOST_MARGIN) {
            match (element.marker.take(), &*element.name) {
                (Some(marker), _) => margin.push_str(&marker),
                (None, "blockquote") => margin.push_str("> "),
                (None, _) => margin.push_str("  "),
            }
        }
        margin
    }
}
