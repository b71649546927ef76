//! A text field: its text, its cursor, and what keys do to them.
//!
//! Long pastes and images are *chips*: one private-use character each, drawn as a label. So a paste
//! of any size is one cursor step and one press of backspace.

use crate::text::{one_line, width};
use unicode_segmentation::UnicodeSegmentation as _;

/// The first character that stands for a chip.
const CHIP: u32 = 0xF_0000;
/// Texts longer than this many bytes were not typed but pasted.
const LONG: usize = 8 << 10;
/// The most chips in one field.
const MOST_CHIPS: usize = 1000;

/// What a chip stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chip {
    /// Pasted text.
    Text(String),
    /// An image, by the path of its file.
    Picture(String),
}

impl Chip {
    fn label(&self, n: usize) -> String {
        match self {
            Self::Text(text) => {
                let lines = text.lines().count();
                format!("[paste {}: {}]", n + 1, dunnock_proto::count(lines, "line"))
            }
            Self::Picture(path) => {
                let name = path.rsplit('/').next().unwrap_or(path);
                format!("[picture {}: {}]", n + 1, one_line(name))
            }
        }
    }
}

/// A text field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    text: String,
    /// The cursor, as a byte offset, always on a grapheme boundary.
    at: usize,
    chips: Vec<Chip>,
    /// What was cut last, for `Yank`.
    cut: String,
}

/// A field broken into rows, with the cursor's position in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    pub rows: Vec<String>,
    /// Row and column.
    pub cursor: (usize, usize),
}

impl Field {
    /// A field with this text and the cursor at its end.
    #[must_use]
    pub fn holding(text: &str) -> Self {
        let mut field = Self::default();
        // Text too long to have been typed was pasted, so it becomes a chip again.
        match text.len() > LONG {
            true => field.insert_chip(Chip::Text(text.to_owned())),
            false => field.insert(text),
        }
        field
    }
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
    /// The text as typed, with each chip as one character.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
    /// The cursor, as a byte offset into [`Self::text`].
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }
    /// Empties the field, but keeps what was cut.
    pub fn clear(&mut self) {
        let cut = std::mem::take(&mut self.cut);
        // The cut text may contain chips that `Yank` needs.
        let keeps = cut.chars().any(|c| self.chip(c).is_some());
        let chips = if keeps { std::mem::take(&mut self.chips) } else { Vec::new() };
        *self = Self { cut, chips, ..Self::default() };
    }
    /// Empties the field; `Yank` restores its text.
    pub fn cut_all(&mut self) {
        self.at = self.text.len();
        self.cut.clone_from(&self.text);
        self.text.clear();
        self.at = 0;
    }

    fn chip(&self, c: char) -> Option<(usize, &Chip)> {
        let n = usize::try_from(u32::from(c).checked_sub(CHIP)?).ok()?;
        self.chips.get(n).map(|chip| (n, chip))
    }

    /// The whole text, with pastes in full and without images.
    #[must_use]
    pub fn whole(&self) -> String {
        let mut out = String::with_capacity(self.text.len());
        for c in self.text.chars() {
            match self.chip(c) {
                Some((_, Chip::Text(text))) => out.push_str(text),
                Some((_, Chip::Picture(_))) => {}
                None => out.push(c),
            }
        }
        out
    }

    /// The text with a label for each paste, and without images.
    #[must_use]
    pub fn labelled(&self) -> String {
        let mut out = String::with_capacity(self.text.len());
        for c in self.text.chars() {
            match self.chip(c) {
                Some((n, chip @ Chip::Text(_))) => out.push_str(&chip.label(n)),
                Some((_, Chip::Picture(_))) => {}
                None => out.push(c),
            }
        }
        out
    }

    /// The images that are still in the field.
    #[must_use]
    pub fn pictures(&self) -> Vec<String> {
        let picture = |c| match self.chip(c) {
            Some((_, Chip::Picture(path))) => Some(path.clone()),
            _ => None,
        };
        self.text.chars().filter_map(picture).collect()
    }

    /// Inserts text at the cursor. Drops characters that cannot be typed.
    pub fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let clean: String = text
            .chars()
            .filter(|c| matches!(c, '\n' | '\t') || (!c.is_control() && u32::from(*c) < CHIP))
            .collect();
        self.text.insert_str(self.at, &clean);
        self.at += clean.len();
    }

    /// Inserts a chip at the cursor.
    pub fn insert_chip(&mut self, chip: Chip) {
        let n = u32::try_from(self.chips.len()).unwrap_or(u32::MAX);
        let Some(c) =
            char::from_u32(CHIP.saturating_add(n)).filter(|_| self.chips.len() < MOST_CHIPS)
        else {
            return;
        };
        self.chips.push(chip);
        self.text.insert(self.at, c);
        self.at += c.len_utf8();
    }

    fn before(&self) -> usize {
        self.text[..self.at].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }
    fn after(&self) -> usize {
        self.text[self.at..].graphemes(true).next().map_or(self.at, |g| self.at + g.len())
    }
    fn word_before(&self) -> usize {
        let trimmed = self.text[..self.at].trim_end().len();
        let word = |c: char| !c.is_alphanumeric() && c != '_';
        let start = self.text[..trimmed]
            .rfind(word)
            .map_or(0, |at| at + self.text[at..].chars().next().map_or(1, char::len_utf8));
        if start == trimmed { self.before().min(trimmed) } else { start }
    }
    fn word_after(&self) -> usize {
        let rest = &self.text[self.at..];
        let skip = rest.len() - rest.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
        let end = rest[skip..]
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len() - skip);
        self.at + skip + end
    }
    fn line_start(&self) -> usize {
        self.text[..self.at].rfind('\n').map_or(0, |at| at + 1)
    }
    fn line_end(&self) -> usize {
        self.text[self.at..].find('\n').map_or(self.text.len(), |at| self.at + at)
    }

    fn remove(&mut self, from: usize, to: usize, keep: bool) {
        let gone: String = self.text.drain(from..to).collect();
        if keep {
            self.cut = gone;
        }
        self.at = from;
    }

    /// Moves or deletes. Returns whether anything changed.
    pub fn act(&mut self, act: Act) -> bool {
        let before = (self.text.len(), self.at);
        match act {
            Act::Left => self.at = self.before(),
            Act::Right => self.at = self.after(),
            Act::WordLeft => self.at = self.word_before(),
            Act::WordRight => self.at = self.word_after(),
            Act::Home => self.at = self.line_start(),
            Act::End => self.at = self.line_end(),
            Act::Backspace => self.remove(self.before(), self.at, false),
            Act::Delete => self.remove(self.at, self.after(), false),
            Act::CutWord => self.remove(self.word_before(), self.at, true),
            Act::CutToStart => self.remove(self.line_start(), self.at, true),
            Act::CutToEnd => self.remove(self.at, self.line_end(), true),
            Act::Yank => {
                let cut = self.cut.clone();
                self.text.insert_str(self.at, &cut);
                self.at += cut.len();
            }
            Act::Up => self.up_or_down(true),
            Act::Down => self.up_or_down(false),
        }
        before != (self.text.len(), self.at)
    }

    /// Moves to the same column of the line above or below, if there is one.
    fn up_or_down(&mut self, up: bool) {
        let start = self.line_start();
        let column = width(&self.text[start..self.at]);
        let (from, to) = if up {
            let Some(end) = start.checked_sub(1) else { return };
            (self.text[..end].rfind('\n').map_or(0, |at| at + 1), end)
        } else {
            let end = self.line_end();
            if end == self.text.len() {
                return;
            }
            (end + 1, self.text[end + 1..].find('\n').map_or(self.text.len(), |at| end + 1 + at))
        };
        self.at = from + crate::text::fitting(&self.text[from..to], column);
    }

    /// Replaces the text from a byte offset up to the cursor, as a completion menu does.
    pub fn complete(&mut self, from: usize, with: &str) {
        self.remove(from, self.at, false);
        self.insert(with);
    }

    /// The rows of the field at this width.
    #[must_use]
    pub fn rows(&self, columns: usize) -> Rows {
        let columns = columns.max(4);
        let (mut rows, mut row, mut used) = (Vec::new(), String::new(), 0);
        let mut cursor = None;
        for (at, grapheme) in self.text.grapheme_indices(true) {
            let shown = match grapheme.chars().next().and_then(|c| self.chip(c)) {
                Some((n, chip)) => chip.label(n),
                None if grapheme == "\t" => "    ".into(),
                None => one_line(grapheme),
            };
            let wide = if grapheme == "\n" { 0 } else { width(&shown) };
            if used + wide > columns && used > 0 {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            if at == self.at {
                cursor = Some((rows.len(), used));
            }
            if grapheme == "\n" {
                rows.push(std::mem::take(&mut row));
                used = 0;
            } else {
                row.push_str(&shown);
                used += wide;
            }
        }
        if used >= columns && cursor.is_none() {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        let cursor = cursor.unwrap_or((rows.len(), used));
        rows.push(row);
        Rows { rows, cursor }
    }

    /// The form saved to disk: the text, the cursor, and the contents of each chip.
    #[must_use]
    pub fn kept(&self) -> serde_json::Value {
        let chips: Vec<serde_json::Value> = self
            .chips
            .iter()
            .map(|chip| match chip {
                Chip::Text(text) => serde_json::json!({ "text": text }),
                Chip::Picture(path) => serde_json::json!({ "picture": path }),
            })
            .collect();
        serde_json::json!({ "text": self.text, "at": self.at, "chips": chips })
    }

    /// Reads the saved form. Missing or unreadable parts count as empty.
    #[must_use]
    pub fn from_kept(kept: &serde_json::Value) -> Self {
        let text = kept["text"].as_str().unwrap_or_default().to_owned();
        let chip = |c: &serde_json::Value| match (c["text"].as_str(), c["picture"].as_str()) {
            (Some(text), _) => Chip::Text(text.to_owned()),
            (None, picture) => Chip::Picture(picture.unwrap_or_default().to_owned()),
        };
        let chips =
            kept["chips"].as_array().map(|all| all.iter().map(chip).collect()).unwrap_or_default();
        let at = kept["at"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(text.len());
        let at = text.floor_char_boundary(at);
        Self { text, at, chips, cut: String::new() }
    }
}

/// An editing action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    Home,
    End,
    Backspace,
    Delete,
    CutWord,
    CutToStart,
    CutToEnd,
    Yank,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_steps_over_whole_characters() {
        let mut field = Field::holding("aé漢👍🏽");
        for want in [6, 3, 1, 0, 0] {
            field.act(Act::Left);
            assert_eq!(field.at(), want);
        }
        field.act(Act::Right);
        field.act(Act::Right);
        field.act(Act::Backspace);
        assert_eq!(field.text(), "a漢👍🏽");
    }

    #[test]
    fn words_are_cut_and_put_back() {
        let mut field = Field::holding("one two_three four");
        field.act(Act::CutWord);
        field.act(Act::CutWord);
        assert_eq!(field.text(), "one ");
        field.act(Act::Yank);
        assert_eq!(field.text(), "one two_three ");
        field.act(Act::Home);
        field.act(Act::WordRight);
        assert_eq!(field.at(), 3);
    }

    #[test]
    fn up_and_down_keep_the_column() {
        let mut field = Field::holding("long line\nab\nlong line");
        field.act(Act::Up);
        assert_eq!(field.at(), 12);
        field.act(Act::Up);
        assert_eq!(field.at(), 2);
        assert!(!field.act(Act::Up), "there is nothing above");
    }

    #[test]
    fn a_paste_is_one_character_and_all_of_it() {
        let mut field = Field::holding("look: ");
        field.insert_chip(Chip::Text("line\n".repeat(40)));
        field.insert(" ok");
        assert_eq!(field.rows(60).rows, ["look: [paste 1: 40 lines] ok"]);
        assert_eq!(field.whole(), format!("look: {} ok", "line\n".repeat(40)));
        let back = Field::from_kept(&field.kept());
        assert_eq!((back.whole(), back.at()), (field.whole(), field.at()));
        for _ in 0..4 {
            field.act(Act::Backspace);
        }
        assert_eq!(field.whole(), "look: ");
    }

    #[test]
    fn rows_show_where_the_cursor_is() {
        let mut field = Field::holding("abcdef\nx");
        assert_eq!(
            field.rows(4),
            Rows { rows: vec!["abcd".into(), "ef".into(), "x".into()], cursor: (2, 1) }
        );
        field.act(Act::Up);
        assert_eq!(field.rows(4).cursor, (0, 1));
        assert_eq!(Field::holding("abcd").rows(4).cursor, (1, 0));
        assert_eq!(Field::default().rows(4), Rows { rows: vec![String::new()], cursor: (0, 0) });
    }
}
