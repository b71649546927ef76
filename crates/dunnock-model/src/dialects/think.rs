//! Separates reasoning from text: between tags at the start of a line, or before a closing tag
//! whose opening tag the server removed.
//!
//! Invariant: the result does not depend on how the text was split into pieces.

use super::Parsed;

const TAGS: &[(&str, &str)] =
    &[("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]")];

#[derive(Debug, Default)]
pub(crate) struct Think {
    /// Text that cannot be classified yet.
    held: String,
    /// Whitespace that may have to be dropped.
    gap: String,
    /// Inside tags: the closing tag.
    inside: Option<&'static str>,
    /// Reasoning was found, so a lone closing tag is no longer expected.
    answered: bool,
    /// The answer has begun.
    begun: bool,
    /// Inside a code fence, where tags do not count.
    fenced: bool,
    /// The relevant state of the current line.
    line: LineStart,
}

/// The relevant state of a line.
#[derive(Debug, Default)]
struct LineStart {
    begun: bool,
    ticks: usize,
    /// Its first characters after leading whitespace.
    first: String,
}

impl LineStart {
    fn add(&mut self, c: char) {
        self.ticks += usize::from(c == '`');
        if self.begun || !c.is_whitespace() {
            self.begun = true;
            if self.first.len() < 3 {
                self.first.push(c);
            }
        }
    }
}

impl Think {
    pub(crate) fn feed(&mut self, more: &str, out: &mut Vec<Parsed>) {
        self.held.push_str(more);
        self.go(false, out);
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<Parsed>) {
        self.go(true, out);
    }

    /// What follows begins on a new line, outside a code fence.
    pub(crate) fn end_line(&mut self) {
        self.line = LineStart::default();
        self.fenced = false;
    }

    /// Processes the held text character by character, and stops where a tag may begin.
    fn go(&mut self, last: bool, out: &mut Vec<Parsed>) {
        let held = std::mem::take(&mut self.held);
        let mut words = String::new();
        let mut at = 0;
        while let Some(c) = held.get(at..).and_then(|rest| rest.chars().next()) {
            let rest = held.get(at..).unwrap_or_default();
            match self.tag(rest, last) {
                Tag::None => {
                    self.letter(c, &mut words, out);
                    at += c.len_utf8();
                }
                Tag::Unsure => break,
                Tag::Open(open, close) => {
                    self.let_go(&mut words, out);
                    self.inside = Some(close);
                    self.answered = true;
                    self.gap.clear();
                    self.line = LineStart { begun: true, ..LineStart::default() };
                    at += open.len();
                }
                Tag::Close(len) => {
                    self.let_go(&mut words, out);
                    self.inside = None;
                    self.fenced = false;
                    self.begun = false; // whitespace after it is not part of the answer
                    self.gap.clear();
                    self.line = LineStart::default();
                    at += len;
                }
                Tag::Doubt(len) => {
                    self.let_go(&mut words, out);
                    out.push(Parsed::Doubt);
                    for c in held.get(at..at + len).unwrap_or_default().chars() {
                        self.letter(c, &mut words, out);
                    }
                    at += len;
                }
                Tag::Lone(len) => {
                    self.let_go(&mut words, out);
                    out.push(Parsed::AllThought);
                    self.answered = true;
                    self.begun = false;
                    self.gap.clear();
                    self.line = LineStart::default();
                    at += len;
                }
            }
        }
        self.let_go(&mut words, out);
        self.held = held.get(at..).unwrap_or_default().to_owned();
    }

    fn letter(&mut self, c: char, words: &mut String, out: &mut Vec<Parsed>) {
        if c == '\n' {
            let fence = self.line.first == "```" || self.line.first == "~~~";
            self.fenced ^= fence;
            self.line = LineStart::default();
        } else {
            self.line.add(c);
        }
        if self.inside.is_none() && !self.begun {
            if c.is_whitespace() {
                return self.gap.push(c);
            }
            self.begun = true;
            // Keep whitespace before the very first word, but not after reasoning.
            let gap = std::mem::take(&mut self.gap);
            if !self.answered {
                words.push_str(&gap);
            }
        }
        words.push(c);
        if words.len() > 4096 {
            self.let_go(words, out);
        }
    }

    fn let_go(&mut self, words: &mut String, out: &mut Vec<Parsed>) {
        let words = std::mem::take(words);
        if !words.is_empty() {
            out.push(if self.inside.is_some() {
                Parsed::Reasoning(words)
            } else {
                Parsed::Text(words)
            });
        }
    }

    /// The tag that begins here, if any.
    fn tag(&self, rest: &str, last: bool) -> Tag {
        if !rest.starts_with(['<', '[']) {
            return Tag::None;
        }
        let fresh = !self.line.begun;
        if let Some(close) = self.inside {
            // At the start of a line it always ends the reasoning, even in a fence: models leave
            // fences open in reasoning.
            if rest.starts_with(close) {
                return if fresh || self.line.ticks.is_multiple_of(2) {
                    Tag::Close(close.len())
                } else {
                    Tag::None
                };
            }
            return if !last && close.starts_with(rest) { Tag::Unsure } else { Tag::None };
        }
        if self.fenced || !fresh {
            // An unexpected closing tag: text stays text, but earlier calls may have been
            // reasoning.
            if self.answered || !self.line.ticks.is_multiple_of(2) {
                return Tag::None;
            }
            if let Some((_, close)) = TAGS.iter().find(|(_, close)| rest.starts_with(close)) {
                return Tag::Doubt(close.len());
            }
            let unsure = !last && TAGS.iter().any(|(_, close)| close.starts_with(rest));
            return if unsure { Tag::Unsure } else { Tag::None };
        }
        for (open, close) in TAGS {
            if rest.starts_with(open) {
                return Tag::Open(open, close);
            }
            if let Some(behind) = rest.strip_prefix(close).filter(|_| !self.answered) {
                // Only a tag alone on its line counts; otherwise the text may just mention it.
                let line = behind.split('\n').next().unwrap_or_default();
                return match line.trim().is_empty() {
                    true if last || behind.contains('\n') || line.len() > 200 => {
                        Tag::Lone(close.len())
                    }
                    true => Tag::Unsure,
                    false => Tag::Doubt(close.len()),
                };
            }
            if !last && (open.starts_with(rest) || (!self.answered && close.starts_with(rest))) {
                return Tag::Unsure;
            }
        }
        Tag::None
    }
}

enum Tag {
    None,
    Unsure,
    Open(&'static str, &'static str),
    Close(usize),
    /// A closing tag without an opening one.
    Lone(usize),
    /// A closing tag that may be real or just mentioned.
    Doubt(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same in any pieces: `[thought]answer`, with `!` where all before was thought.
    fn heard(text: &str) -> String {
        let mut all = Vec::new();
        for size in [1, 3, 1000] {
            let (mut think, mut out) = (Think::default(), Vec::new());
            let chars: Vec<char> = text.chars().collect();
            chars
                .chunks(size)
                .for_each(|piece| think.feed(&piece.iter().collect::<String>(), &mut out));
            think.finish(&mut out);
            let mut trace = String::new();
            let mut thinking = false;
            for one in out {
                let now = matches!(one, Parsed::Reasoning(_));
                if now != thinking {
                    trace.push(if now { '[' } else { ']' });
                    thinking = now;
                }
                match one {
                    Parsed::Text(t) | Parsed::Reasoning(t) => trace.push_str(&t),
                    Parsed::AllThought => trace.push('!'),
                    Parsed::Call(_) | Parsed::Doubt => {}
                }
            }
            all.push(trace);
        }
        assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        all[0].clone()
    }

    #[test]
    fn thoughts_are_told_from_words() {
        assert_eq!(heard("<think>a b</think>\n\nc"), "[a b]c");
        assert_eq!(heard("\n<thinking>a</thinking>b </think> c"), "[a]b </think> c");
        assert_eq!(heard("[THINK]a[/THINK]b"), "[a]b");
        assert_eq!(heard("a b\n</think>\nc"), "a b\n!c", "a lone closing tag closes");
        assert_eq!(heard("a b\n</think>"), "a b\n!");
        assert_eq!(heard("  code"), "  code");
        assert_eq!(heard("<think>never ended"), "[never ended");
    }

    #[test]
    fn a_second_thought_is_one_too() {
        assert_eq!(heard("<think>a</think>\n<think>b</think>\nc"), "[ab]c");
        assert_eq!(heard("Sure.\n<think>b"), "Sure.\n[b");
    }

    #[test]
    fn tags_that_are_talked_about_are_words() {
        assert_eq!(heard("write `</think>` here"), "write `</think>` here");
        assert_eq!(heard("```\n</think>\n```\nx"), "```\n</think>\n```\nx");
        assert_eq!(
            heard("The template ends with </think>, then."),
            "The template ends with </think>, then."
        );
        assert_eq!(heard("</think> is a tag"), "</think> is a tag");
        assert_eq!(heard("the <think> tag"), "the <think> tag");
        assert_eq!(heard("a < b </thin"), "a < b </thin");
        assert_eq!(heard("<think>say `</think>` now</think>x"), "[say `</think>` now]x");
        assert_eq!(
            heard("<think>```\nopen\n</think>\nx"),
            "[```\nopen\n]x",
            "thoughts leave fences open"
        );
    }
}
