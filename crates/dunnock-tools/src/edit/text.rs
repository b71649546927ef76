//! A file as text that can be edited and written back: parts that an edit does not touch keep every
//! byte.
//!
//! Invariant: `Text::decode(b)?.encode()? == b` for every file that decodes.

use std::fmt;
use std::ops::Range;

/// The character encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16 {
        big: bool,
    },
    /// Neither, and without valid multi-byte characters: each byte is one character.
    Latin1,
    /// UTF-8 with stray bytes, each mapped to a character that the file does not contain.
    Mixed,
}

/// Where stray bytes are mapped while a file is edited: the end of a private use plane.
const STRAY: u32 = 0x10_FF00;

/// A file as lines, with what the model does not see stored separately: encoding, byte order mark,
/// line endings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    encoding: Encoding,
    mark: bool,
    text: String,
    /// For each line feed, whether a carriage return precedes it.
    returns: Vec<bool>,
    /// Offsets at which lines start.
    starts: Vec<usize>,
}

/// The file is binary and cannot be edited as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binary;

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is a binary file")
    }
}

/// A character that the encoding of a file cannot represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSuchCharacter(char);

impl fmt::Display for NoSuchCharacter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "is written in Latin-1, which has no {:?}; nothing was changed", self.0)
    }
}

/// Which line endings new lines get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaks {
    /// Those of the lines that they replace.
    AsThere,
    /// Those that they were given with.
    Given,
}

impl Text {
    /// Decodes a file.
    ///
    /// # Errors
    /// When it is not text.
    pub fn decode(bytes: &[u8]) -> Result<Self, Binary> {
        let (encoding, mark, text) = match bytes {
            [0xff, 0xfe, rest @ ..] => {
                (Encoding::Utf16 { big: false }, true, utf16(rest, u16::from_le_bytes)?)
            }
            [0xfe, 0xff, rest @ ..] => {
                (Encoding::Utf16 { big: true }, true, utf16(rest, u16::from_be_bytes)?)
            }
            _ if bytes.contains(&0) => return Err(Binary),
            // A byte order mark, if valid UTF-8 follows.
            [0xef, 0xbb, 0xbf, rest @ ..] if std::str::from_utf8(rest).is_ok() => {
                let (encoding, text) = eight(rest);
                (encoding, true, text)
            }
            _ => {
                let (encoding, text) = eight(bytes);
                (encoding, false, text)
            }
        };
        Ok(Self::from_parts(encoding, mark, &text, Vec::new()))
    }

    /// Builds a text from lines with endings of either kind; `returns` overrides them if it is not
    /// empty.
    fn from_parts(encoding: Encoding, mark: bool, raw: &str, returns: Vec<bool>) -> Self {
        let plain = returns.is_empty();
        let mut this = Self {
            encoding,
            mark,
            text: String::with_capacity(raw.len()),
            returns,
            starts: vec![0],
        };
        let mut rest = raw;
        while let Some(at) = rest.find('\n') {
            let line = rest.get(..at).unwrap_or_default();
            if plain {
                this.returns.push(line.ends_with('\r'));
                this.text.push_str(line.strip_suffix('\r').unwrap_or(line));
            } else {
                this.text.push_str(line);
            }
            this.text.push('\n');
            this.starts.push(this.text.len());
            rest = rest.get(at + 1..).unwrap_or_default();
        }
        this.text.push_str(rest);
        if rest.is_empty() && this.starts.len() > 1 {
            this.starts.pop(); // a line feed ends a line, it does not begin one
        }
        this
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// When the text contains a character that the encoding cannot represent.
    pub fn encode(&self) -> Result<Vec<u8>, NoSuchCharacter> {
        let mut out = Vec::with_capacity(self.text.len() + self.returns.len() + 3);
        let mut put = |c: char| -> Result<(), NoSuchCharacter> {
            match self.encoding {
                Encoding::Utf8 => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                Encoding::Mixed => {
                    match u32::from(c).checked_sub(STRAY).and_then(|byte| u8::try_from(byte).ok()) {
                        Some(byte) => out.push(byte),
                        None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    }
                }
                Encoding::Latin1 => {
                    out.push(u8::try_from(u32::from(c)).map_err(|_| NoSuchCharacter(c))?)
                }
                Encoding::Utf16 { big } => {
                    let units = c.encode_utf16(&mut [0; 2]).to_vec();
                    out.extend(
                        units
                            .iter()
                            .flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }),
                    );
                }
            }
            Ok(())
        };
        if self.mark {
            put('\u{feff}')?;
        }
        let mut returns = self.returns.iter();
        for c in self.text.chars() {
            if c == '\n' && returns.next() == Some(&true) {
                put('\r')?;
            }
            put(c)?;
        }
        Ok(out)
    }

    /// The text as the model sees it: line feeds only.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The actual text, including carriage returns.
    #[must_use]
    pub fn raw(&self) -> String {
        let mut raw = String::with_capacity(self.text.len() + self.returns.len());
        let mut returns = self.returns.iter();
        for part in self.text.split_inclusive('\n') {
            match part.strip_suffix('\n') {
                Some(line) => {
                    raw.push_str(line);
                    raw.push_str(if returns.next() == Some(&true) { "\r\n" } else { "\n" });
                }
                None => raw.push_str(part),
            }
        }
        raw
    }

    /// New contents in the same encoding.
    #[must_use]
    pub fn with_raw(&self, raw: &str) -> Self {
        Self::from_parts(self.encoding, self.mark, raw, Vec::new())
    }

    /// New contents in the same encoding; if all old lines ended with a carriage return and line
    /// feed, the new ones do too.
    #[must_use]
    pub fn with_all(&self, new: &str) -> Self {
        let dos = !self.returns.is_empty() && self.returns.iter().all(|r| *r);
        let raw = match dos && !new.contains('\r') {
            true => std::borrow::Cow::Owned(new.replace('\n', "\r\n")),
            false => std::borrow::Cow::Borrowed(new),
        };
        let new = raw.strip_prefix('\u{feff}').filter(|_| self.mark).unwrap_or(&raw);
        Self::from_parts(self.encoding, self.mark, new, Vec::new())
    }

    /// The number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.text.is_empty() { 0 } else { self.starts.len() }
    }

    /// Whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// A line without its line ending, counted from 0.
    #[must_use]
    pub fn line(&self, n: usize) -> &str {
        let line = self.text.get(self.span(n..n + 1)).unwrap_or_default();
        line.strip_suffix('\n').unwrap_or(line)
    }

    /// Every line without its line ending.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|n| self.line(n))
    }

    /// Whether a line ends with a carriage return and a line feed.
    #[must_use]
    pub fn returns(&self, n: usize) -> bool {
        self.returns.get(n).copied().unwrap_or(false)
    }

    /// Whether the last line has no line feed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.text.is_empty() && !self.text.ends_with('\n')
    }

    /// The byte range of some lines, including their line feeds.
    #[must_use]
    pub fn span(&self, lines: Range<usize>) -> Range<usize> {
        let at = |n: usize| self.starts.get(n).copied().unwrap_or(self.text.len());
        at(lines.start)..at(lines.end).max(at(lines.start))
    }

    /// The line that contains an offset, from 0.
    #[must_use]
    pub fn line_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at).saturating_sub(1)
    }

    /// Replaces a range of [`Text::text`].
    #[must_use]
    pub fn splice(&self, range: Range<usize>, new: &str, breaks: Breaks) -> Self {
        self.splice_all(std::iter::once(range), new, breaks)
    }

    /// Replaces several ranges, in order, with the same text.
    #[must_use]
    pub fn splice_all(
        &self,
        ranges: impl Iterator<Item = Range<usize>>,
        new: &str,
        breaks: Breaks,
    ) -> Self {
        self.splice_each(ranges.map(|range| (range, new)), breaks)
    }

    /// Replaces several ranges, in order, each with its own text.
    #[must_use]
    pub fn splice_each<'a>(
        &self,
        parts: impl Iterator<Item = (Range<usize>, &'a str)>,
        breaks: Breaks,
    ) -> Self {
        let part = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        // If no line ending is replaced: that of this line, or of the one above, or the most common
        // one.
        let most = self.returns.iter().filter(|r| **r).count() * 2 > self.returns.len();
        let (mut text, mut returns) = (String::with_capacity(self.text.len()), Vec::new());
        // How much of the old text has been copied, and how many of its line feeds.
        let (mut at, mut feeds) = (0, 0);
        for (range, new) in parts {
            let kept = part(at..range.start);
            let before = feeds + kept.matches('\n').count();
            text.push_str(kept);
            returns.extend_from_slice(self.returns.get(feeds..before).unwrap_or_default());
            let within = part(range.clone()).matches('\n').count();
            let there = self.returns.get(before..before + within).unwrap_or_default();
            let near = self
                .returns
                .get(before)
                .or(before.checked_sub(1).and_then(|n| self.returns.get(n)));
            let other = there.last().or(near).copied().unwrap_or(most);
            for (n, piece) in new.split_inclusive('\n').enumerate() {
                let Some(line) = piece.strip_suffix('\n') else {
                    text.push_str(piece);
                    continue;
                };
                let plain = line.strip_suffix('\r');
                returns.push(match breaks {
                    Breaks::AsThere => there.get(n).copied().unwrap_or(other),
                    Breaks::Given => plain.is_some(),
                });
                text.push_str(plain.unwrap_or(line));
                text.push('\n');
            }
            (at, feeds) = (range.end, before + within);
        }
        text.push_str(part(at..self.text.len()));
        returns.extend_from_slice(self.returns.get(feeds..).unwrap_or_default());
        Self::from_parts(self.encoding, self.mark, &text, returns)
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Binary> {
    let (units, []) = bytes.as_chunks::<2>() else { return Err(Binary) };
    let text: String = char::decode_utf16(units.iter().map(|u| unit(*u)))
        .collect::<Result<_, _>>()
        .map_err(|_| Binary)?;
    // A byte order mark may precede anything; text contains no NUL.
    if text.contains('\0') { Err(Binary) } else { Ok(text) }
}

/// Decodes bytes as UTF-8, or in a way that gives the same bytes back.
fn eight(bytes: &[u8]) -> (Encoding, String) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (Encoding::Utf8, text.to_owned());
    }
    let mut mixed = String::with_capacity(bytes.len());
    let mut other = false; // a character of more than one byte was found
    for chunk in bytes.utf8_chunks() {
        other |= !chunk.valid().is_ascii();
        mixed.push_str(chunk.valid());
        mixed.extend(
            chunk.invalid().iter().filter_map(|byte| char::from_u32(STRAY + u32::from(*byte))),
        );
    }
    let taken =
        bytes.utf8_chunks().any(|chunk| chunk.valid().chars().any(|c| u32::from(c) >= STRAY));
    match other && !taken {
        true => (Encoding::Mixed, mixed),
        false => (Encoding::Latin1, bytes.iter().map(|byte| char::from(*byte)).collect()),
    }
}
