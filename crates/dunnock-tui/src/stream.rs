//! Markdown that is still streaming: complete blocks are finished, the last one is redrawn with
//! every word.
//!
//! Invariant: finished lines never change, so they can go to the scrollback at once.

use crate::code;
use crate::markdown::{code_rows, options, render};
use crate::text::Line;
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

/// A code block that is still open.
struct Fence {
    painter: code::Highlighter,
    mark: String,
}

/// Streamed text.
#[derive(Default)]
pub struct Stream {
    /// What is not finished yet.
    text: String,
    fence: Option<Fence>,
    /// Something is finished already, so a blank line precedes the next block.
    begun: bool,
    /// A line was completed since the last call of `done`. Nothing else can end a block.
    lines: bool,
}

impl Stream {
    /// Adds text.
    pub fn push(&mut self, text: &str) {
        self.lines |= text.contains('\n');
        self.text.push_str(text);
    }

    /// Whether no text is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// The lines finished since the last call.
    pub fn done(&mut self, columns: usize) -> Vec<Line> {
        let mut out = Vec::new();
        if !std::mem::take(&mut self.lines) {
            return out;
        }
        loop {
            let before = (self.text.len(), self.fence.is_some());
            match self.fence.take() {
                Some(fence) => self.fenced(fence, columns, &mut out),
                None => self.blocks(columns, &mut out),
            }
            if (self.text.len(), self.fence.is_some()) == before {
                return out;
            }
        }
    }

    /// The rest, finished or not.
    pub fn finish(&mut self, columns: usize) -> Vec<Line> {
        let mut out = self.done(columns);
        let rest = std::mem::take(&mut self.text);
        match self.fence.take() {
            // The closing fence at the end of the text, without a newline.
            Some(fence)
                if rest.trim().starts_with(&fence.mark)
                    && rest.trim().trim_start_matches(['`', '~']).is_empty() => {}
            Some(mut fence) if !rest.is_empty() => {
                out.extend(code_rows(fence.painter.line(&rest), "", columns))
            }
            Some(_) => {}
            None => self.put(render(&rest, columns), &mut out),
        }
        self.begun = false;
        out
    }

    /// The unfinished part, as it looks now.
    #[must_use]
    pub fn live(&self, columns: usize) -> Vec<Line> {
        match &self.fence {
            Some(_) => code_rows(code::Highlighter::new("").line(&self.text), "", columns),
            None => {
                let mut out = Vec::new();
                if !self.is_empty() {
                    out.extend(self.begun.then(Line::empty));
                    out.extend(render(&self.text, columns));
                }
                out
            }
        }
    }

    fn put(&mut self, lines: Vec<Line>, out: &mut Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        if self.begun {
            out.push(Line::empty());
        }
        out.extend(lines);
        self.begun = true;
    }

    /// Emits complete lines of code until the closing fence.
    fn fenced(&mut self, mut fence: Fence, columns: usize, out: &mut Vec<Line>) {
        while let Some(at) = self.text.find('\n') {
            let line: String = self.text.drain(..=at).collect();
            let line = line.trim_end_matches(['\n', '\r']);
            let bare = line.trim();
            if bare.starts_with(&fence.mark) && bare.trim_start_matches(['`', '~']).is_empty() {
                return;
            }
            out.extend(code_rows(fence.painter.line(line), "", columns));
        }
        self.fence = Some(fence);
    }

    /// Emits all complete blocks but the last, which may continue.
    fn blocks(&mut self, columns: usize, out: &mut Vec<Line>) {
        // An incomplete line may still turn into anything.
        let whole = self.text.rfind('\n').map_or(0, |at| at + 1);
        let mut depth = 0usize;
        let mut tops: Vec<(usize, Option<String>)> = Vec::new();
        for (event, range) in Parser::new_ext(&self.text[..whole], options()).into_offset_iter() {
            match event {
                Event::Start(tag) => {
                    if depth == 0 {
                        let fence = match &tag {
                            Tag::CodeBlock(CodeBlockKind::Fenced(name)) => Some(name.to_string()),
                            _ => None,
                        };
                        tops.push((range.start, fence));
                    }
                    depth += 1;
                }
                Event::End(_) => depth = depth.saturating_sub(1),
                Event::Rule | Event::Html(_) if depth == 0 => tops.push((range.start, None)),
                _ => {}
            }
        }
        let Some((last, fence)) = tops.pop() else { return };
        if last > 0 {
            let done: String = self.text.drain(..last).collect();
            self.put(render(&done, columns), out);
        }
        // A code block can be long, so its lines are emitted as they arrive, once its first line is
        // complete.
        if let Some(name) = fence
            && let Some(at) = self.text.find('\n')
        {
            let first: String = self.text.drain(..=at).collect();
            let mark: String =
                first.trim_start().chars().take_while(|c| *c == '`' || *c == '~').collect();
            if self.begun {
                out.push(Line::empty());
            }
            self.begun = true;
            self.fence = Some(Fence { painter: code::Highlighter::new(&name), mark });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Title\n\nSome *words* that\ngo on.\n\n```rust\nfn main() {\n    let x = \
                        1;\n}\n```\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end, \
                        `x`.\n";

    fn plain(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.plain().trim_end().to_owned()).collect()
    }

    #[test]
    fn text_that_came_in_any_pieces_is_the_same_in_the_end() {
        let whole = plain(&render(TEXT, 60));
        for size in [1, 2, 3, 7, 50, 1000] {
            let mut stream = Stream::default();
            let mut out = Vec::new();
            let letters: Vec<char> = TEXT.chars().collect();
            for piece in letters.chunks(size) {
                stream.push(&piece.iter().collect::<String>());
                out.extend(stream.done(60));
                let _ = stream.live(60);
            }
            out.extend(stream.finish(60));
            assert_eq!(plain(&out), whole, "in pieces of {size}");
        }
    }

    #[test]
    fn a_fence_at_the_very_end_is_no_code() {
        let mut stream = Stream::default();
        stream.push("```py\nx = 1\n```");
        let mut all = stream.done(40);
        all.extend(stream.finish(40));
        assert_eq!(plain(&all), ["  x = 1"]);
    }

    #[test]
    fn lines_of_code_are_done_before_their_block_is() {
        let mut stream = Stream::default();
        stream.push("```py\nx = 1\ny = ");
        assert_eq!(plain(&stream.done(40)), ["  x = 1"]);
        assert_eq!(plain(&stream.live(40)), ["  y ="]);
    }
}
