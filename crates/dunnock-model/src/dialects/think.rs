//! Thoughts inside the words: `<think>` at the beginning of an answer, and a `</think>` whose opening the server swallowed.

use super::Heard;

const OPEN: &[&str] = &["<think>", "<thinking>"];
const CLOSE: &[&str] = &["</think>", "</thinking>"];

#[derive(Debug, Default, PartialEq, Eq)]
enum At {
    /// Nothing but white space came.
    #[default]
    Start,
    Inside,
    /// After the beginning; a lone closing tag may still come.
    Words,
    /// A closing tag came; white space behind it is none of the answer.
    Gap,
    /// Whatever comes now is the answer.
    Answer,
}

#[derive(Debug, Default)]
pub(crate) struct Think {
    at: At,
    held: String,
    /// Inside a fence, and backticks in this line so far: a tag that is quoted is none.
    fenced: bool,
    line: String,
}

impl Think {
    pub(crate) fn feed(&mut self, more: &str, out: &mut Vec<Heard>) {
        if self.at == At::Answer {
            return out.push(Heard::Text(more.to_owned()));
        }
        self.held.push_str(more);
        while self.step(out) {}
    }

    /// Does what can be done; whether there may be more to do.
    fn step(&mut self, out: &mut Vec<Heard>) -> bool {
        match self.at {
            At::Gap => {
                let rest = self.held.trim_start().to_owned();
                self.held.clear();
                if !rest.is_empty() {
                    out.push(Heard::Text(rest));
                    self.at = At::Answer;
                }
                false
            }
            At::Start => {
                let trimmed = self.held.trim_start();
                if let Some(tag) = OPEN.iter().find(|tag| trimmed.starts_with(**tag)) {
                    self.held = trimmed.get(tag.len()..).unwrap_or_default().to_owned();
                    self.at = At::Inside;
                    return true;
                }
                if OPEN.iter().any(|tag| tag.starts_with(trimmed)) {
                    return false; // white space, or the beginning of a tag
                }
                self.at = At::Words;
                true
            }
            At::Inside => {
                if let Some((from, tag)) = find(&self.held, CLOSE) {
                    let (thought, rest) = self.held.split_at(from);
                    out.push(Heard::Reasoning(thought.to_owned()));
                    self.held = rest.get(tag.len()..).unwrap_or_default().to_owned();
                    self.at = At::Gap;
                    return true;
                }
                let keep = partial(&self.held, CLOSE);
                let thought: String = self.held.drain(..keep).collect();
                out.push(Heard::Reasoning(thought));
                false
            }
            At::Words => {
                if let Some((from, tag)) = find(&self.held, CLOSE) {
                    let before: String = self.held.drain(..from).collect();
                    self.pass(before, out);
                    let rest: String = self.held.drain(..).collect();
                    if self.quoted() {
                        let (tag, rest) = rest.split_at(tag.len());
                        self.pass(tag.to_owned(), out);
                        self.held = rest.to_owned();
                        return true;
                    }
                    out.push(Heard::AllThought);
                    self.at = At::Gap;
                    self.held = rest.get(tag.len()..).unwrap_or_default().to_owned();
                    return true;
                }
                let keep = partial(&self.held, CLOSE);
                let words: String = self.held.drain(..keep).collect();
                self.pass(words, out);
                false
            }
            At::Answer => false,
        }
    }

    fn pass(&mut self, words: String, out: &mut Vec<Heard>) {
        for piece in words.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') {
                let start = self.line.trim_start();
                self.fenced ^= start.starts_with("```") || start.starts_with("~~~");
                self.line.clear();
            } else if self.line.len() > 4096 {
                // Only how many backticks there are matters.
                let odd = self.line.matches('`').count() % 2 == 1;
                self.line = if odd { "x`".into() } else { "x".into() };
            }
        }
        if !words.is_empty() {
            out.push(Heard::Text(words));
        }
    }

    fn quoted(&self) -> bool {
        self.fenced || self.line.matches('`').count() % 2 == 1
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<Heard>) {
        let rest = std::mem::take(&mut self.held);
        match self.at {
            At::Inside => out.push(Heard::Reasoning(rest)),
            At::Start | At::Words | At::Gap | At::Answer if !rest.is_empty() => out.push(Heard::Text(rest)),
            At::Start | At::Words | At::Gap | At::Answer => {}
        }
    }
}

fn find(text: &str, tags: &[&'static str]) -> Option<(usize, &'static str)> {
    tags.iter().filter_map(|tag| Some((text.find(tag)?, *tag))).min()
}

/// Where the text must be held back, because one of the tags may begin there.
fn partial(text: &str, tags: &[&str]) -> usize {
    let longest = tags.iter().map(|t| t.len()).max().unwrap_or(0);
    let from = text.ceil_char_boundary(text.len().saturating_sub(longest));
    let ends = text.get(from..).unwrap_or_default();
    let begin = ends.char_indices().find(|(at, _)| {
        let end = ends.get(*at..).unwrap_or_default();
        tags.iter().any(|tag| tag.starts_with(end))
    });
    begin.map_or(text.len(), |(at, _)| from + at)
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
            chars.chunks(size).for_each(|piece| think.feed(&piece.iter().collect::<String>(), &mut out));
            think.finish(&mut out);
            let mut told = String::new();
            let mut thinking = false;
            for one in out {
                let now = matches!(one, Heard::Reasoning(_));
                if now != thinking {
                    told.push(if now { '[' } else { ']' });
                    thinking = now;
                }
                match one {
                    Heard::Text(t) | Heard::Reasoning(t) => told.push_str(&t),
                    Heard::AllThought => told.push('!'),
                    Heard::Call(_) => {}
                }
            }
            all.push(told);
        }
        assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        all[0].clone()
    }

    #[test]
    fn thoughts_are_told_from_words() {
        assert_eq!(heard("<think>a b</think>\n\nc"), "[a b]c");
        assert_eq!(heard("\n<thinking>a</thinking>b </think> c"), "[a]b </think> c");
        assert_eq!(heard("a b\n</think>\nc"), "a b\n!c", "a lone closing tag closes");
        assert_eq!(heard("write `</think>` here"), "write `</think>` here");
        assert_eq!(heard("```\n</think>\n```\nx"), "```\n</think>\n```\nx");
        assert_eq!(heard("a < b </thin"), "a < b </thin");
        assert_eq!(heard("<think>never ended"), "[never ended");
        assert_eq!(heard("the <think> tag"), "the <think> tag");
    }
}
