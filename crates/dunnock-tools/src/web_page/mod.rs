//! Turns a page of the web into text for a model: Markdown, without what its markup hides. Style sheets
//! are not read.
//!
//! A page is hostile: it is read in one pass, in time and memory that grow with its length alone. A
//! parser that builds a tree as browsers do needs quadratic time for some pages.

mod elements;
mod writer;

use dunnock_core::policy::is_invisible;
use elements::{Element, Elements};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use html5gum::{DefaultEmitter, HtmlString, StartTag, State, Token, Tokenizer, naive_next_state};
use std::borrow::Cow;
use std::rc::Rc;
use url::Url;
use writer::{Style, Writer};

/// The longest Markdown, in bytes.
const MOST_MARKDOWN: usize = 4 << 20;
/// The longest URL of a link, in bytes.
const MOST_LINK: usize = 2_000;
/// Where a page may name its character set, in bytes.
const HEAD: usize = 1_024;

/// The text of a page in the character set that it has, or else `charset` has.
pub(crate) fn decode<'a>(body: &'a [u8], charset: &str, is_html: bool) -> Cow<'a, str> {
    let named = Encoding::for_label(charset.as_bytes());
    let encoding = named.or_else(|| if is_html { in_head(body) } else { None });
    match encoding {
        Some(encoding) => encoding.decode(body).0,
        // `decode` also honours a byte order mark.
        None if is_utf_8(body) => UTF_8.decode(body).0,
        None => WINDOWS_1252.decode(body).0,
    }
}

/// Whether text is UTF-8, also if it was cut within a character. Other text without a name for its
/// character set is most often Windows-1252.
fn is_utf_8(body: &[u8]) -> bool {
    match std::str::from_utf8(body) {
        Ok(_) => true,
        Err(error) => {
            let whole = body.get(..error.valid_up_to()).unwrap_or_default();
            error.error_len().is_none() && !whole.is_ascii()
        }
    }
}

/// The character set that a page names in its head.
fn in_head(body: &[u8]) -> Option<&'static Encoding> {
    let head = body.get(..HEAD.min(body.len()))?.to_ascii_lowercase();
    let key = b"charset=";
    let at = head.windows(key.len()).position(|part| part == key)? + key.len();
    let value = head.get(at..)?.iter().copied().skip_while(|byte| b"\"' ".contains(byte));
    let label: Vec<u8> = value.take_while(|byte| !b"\"' ;/>".contains(byte)).collect();
    // The name was found in ASCII, so the page cannot be UTF-16.
    let found = Encoding::for_label(&label)?;
    Some(if found.output_encoding() == found { found } else { UTF_8 })
}

/// Text without characters that cannot be seen.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    match text.contains(is_invisible) {
        true => text.chars().filter(|c| !is_invisible(*c)).collect(),
        false => text.into(),
    }
}

/// The Markdown of a page that was found at this URL, and whether its end is missing.
pub(crate) fn markdown(html: &str, base: &str) -> (String, bool) {
    let base = Url::parse(base).ok();
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut page = Converter { base, elements: Elements::default(), out: Writer::default() };
    let mut tokens = Tokenizer::new_with_emitter(html, emitter);
    while let Some(Ok(token)) = tokens.next() {
        match token {
            Token::StartTag(tag) => {
                page.start(&tag);
                // In a drawing, <style> is an element like others.
                if page.elements.are_foreign() && naive_next_state(&tag.name).is_some() {
                    tokens.set_state(State::Data);
                }
            }
            Token::EndTag(tag) => page.end(&text(&tag.name)),
            Token::String(string) => page.text(&text(&string.value)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
        if page.out.len() > MOST_MARKDOWN {
            break;
        }
    }
    let is_cut = page.out.len() > MOST_MARKDOWN;
    page.elements = Elements::default();
    page.end_code();
    (page.out.finish(), is_cut)
}

fn text(value: &HtmlString) -> Cow<'_, str> {
    String::from_utf8_lossy(value)
}

struct Converter {
    base: Option<Url>,
    elements: Elements,
    out: Writer,
}

impl Converter {
    fn start(&mut self, tag: &StartTag<()>) {
        let name = text(&tag.name);
        let attribute =
            |key: &str| tag.attributes.get(key.as_bytes()).map(|value| text(&value.value));
        self.elements.close_implied(&name);
        self.end_code();
        if !self.elements.are_hidden() {
            self.space_around(&name);
        }
        let is_hidden = elements::is_skipped(&name)
            || tag.attributes.iter().any(|(key, value)| hides(&text(key), &text(&value.value)));
        if elements::is_void(&name) {
            if !is_hidden && !self.elements.are_hidden() {
                self.void(&name, attribute);
            }
            return;
        }
        let mut element = Element::new(&name, is_hidden);
        match &*name {
            "a" => {
                element.link = attribute("href").and_then(|href| self.resolved(&href)).map(Rc::from)
            }
            "td" | "th" if !self.elements.are_hidden() => {
                self.out.begin_cell(self.elements.is_first_cell());
            }
            "tr" => element.count = Some(0),
            "ol" => {
                let first = attribute("start").and_then(|start| start.parse().ok());
                element.count = Some(first.unwrap_or(1));
            }
            "li" => element.marker = Some(self.elements.next_marker()),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name.bytes().last().map_or(1, |digit| usize::from(digit - b'0'));
                element.marker = Some(format!("{} ", "#".repeat(level)));
            }
            _ => {}
        }
        self.elements.push(element, tag.self_closing);
        if &*name == "pre" && !self.elements.are_hidden() {
            self.out.begin_code();
        }
    }

    /// Ends the code block if its element was closed.
    fn end_code(&mut self) {
        if self.out.is_code() && !self.elements.contain("pre") {
            self.out.end_code(&mut self.elements);
        }
    }

    /// An element that has no contents.
    fn void<'a>(&mut self, name: &str, attribute: impl Fn(&str) -> Option<Cow<'a, str>>) {
        match name {
            "br" => self.out.line_break(),
            "hr" => {
                self.out.text("---", &Style::default(), &mut self.elements);
                self.out.block(2);
            }
            "img" => {
                let shown = attribute("alt").filter(|alt| !alt.trim().is_empty());
                let from = attribute("src").and_then(|src| self.resolved(&src));
                if let Some((alt, from)) = shown.zip(from) {
                    self.text(&format!("![{}]({from})", alt.trim()));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        self.elements.close(name);
        self.end_code();
        if !self.elements.are_hidden() {
            self.space_around(name);
        }
    }

    fn text(&mut self, text: &str) {
        if !self.elements.are_hidden() {
            let style = self.elements.style();
            self.out.text(&visible(text), &style, &mut self.elements);
        }
    }

    /// Block elements stand in lines of their own.
    fn space_around(&mut self, name: &str) {
        match name {
            "tr" => self.out.begin_row(),
            "dd" | "div" | "dt" | "figcaption" | "li" | "summary" | "tbody" | "tfoot" | "thead" => {
                self.out.block(1);
            }
            "td" | "th" => {}
            "ul" | "ol" if self.elements.contain("li") => self.out.block(1),
            _ if elements::is_block(name) => self.out.block(2),
            _ => {}
        }
    }

    /// The whole URL of a link, if it leads to another page.
    fn resolved(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > MOST_LINK {
            return None;
        }
        let url = match &self.base {
            Some(base) => base.join(href),
            None => Url::parse(href),
        };
        let url = url.ok().filter(|url| matches!(url.scheme(), "http" | "https" | "mailto"))?;
        Some(String::from(url).replace('(', "%28").replace(')', "%29"))
    }
}

/// Styles that make an element invisible, without blanks.
const INVISIBLE: &[&str] = &[
    "display:none",
    "visibility:hidden",
    "visibility:collapse",
    "opacity:0",
    "color:transparent",
    "font-size:0",
    "content-visibility:hidden",
    "clip:rect(0",
    "clip-path:inset(50%",
    "clip-path:inset(100%",
];

/// Whether an attribute makes its element invisible.
fn hides(name: &str, value: &str) -> bool {
    match name {
        "hidden" => !value.eq_ignore_ascii_case("until-found"),
        "style" => {
            let style: String = value.chars().filter(|c| !c.is_whitespace()).collect();
            let style = without_comments(&style.to_ascii_lowercase()).replace(":.", ":0.");
            let hides_by = |rule: &str| {
                INVISIBLE.iter().any(|known| {
                    rule.strip_prefix(known).is_some_and(|rest| {
                        // opacity:0.5 is visible.
                        let rest = rest.trim_start_matches(['.', '0']);
                        !rest.starts_with(|c: char| c.is_ascii_digit())
                    })
                })
            };
            style.split(';').any(hides_by)
        }
        _ => false,
    }
}

/// A style without its comments.
fn without_comments(style: &str) -> String {
    let mut parts = style.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once("*/").map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests;
