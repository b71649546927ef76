//! Output of a program: all of it up to a bound, then its beginning and its end; and the share that a model is shown.

use std::collections::VecDeque;

/// What is kept of one output: half from its beginning, half from its end.
const KEEP: usize = 8 << 20;

/// Output as it comes in.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Kept {
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        let room = (KEEP / 2).saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        bytes = rest;
        if bytes.len() > KEEP / 2 {
            let gone = bytes.len() - KEEP / 2;
            self.dropped += gone as u64;
            bytes = bytes.get(gone..).unwrap_or_default();
        }
        let over = (self.tail.len() + bytes.len()).saturating_sub(KEEP / 2);
        self.tail.drain(..over);
        self.dropped += over as u64;
        self.tail.extend(bytes);
    }

    /// Everything that is kept, with a line for what is not.
    pub(crate) fn text(mut self) -> String {
        let mut bytes = self.head;
        if self.dropped > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes were not kept]\n", self.dropped).as_bytes());
        }
        bytes.extend_from_slice(self.tail.make_contiguous());
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The beginning and the end of a text, in whole lines, within both bounds. `None` if all of it fits.
pub(crate) fn trimmed(text: &str, lines: usize, bytes: usize) -> Option<String> {
    let count = text.lines().count();
    if count <= lines && text.len() <= bytes {
        return None;
    }
    // The end tells more than the beginning: errors and totals are there.
    let (head_lines, head_bytes) = (lines / 3, bytes / 3);
    let head = take(text.split_inclusive('\n'), head_lines, head_bytes);
    let head_len: usize = head.iter().map(|l| l.len()).sum();
    let rest = text.get(head_len..).unwrap_or_default();
    let tail = take(rest.split_inclusive('\n').rev(), lines - head.len(), bytes - head_len);
    let tail_len: usize = tail.iter().map(|l| l.len()).sum();
    let middle = rest.get(..rest.len() - tail_len).unwrap_or_default();
    let gone = middle.lines().count();
    let mut out: String = head.concat();
    if head.is_empty() && tail.is_empty() {
        // One line that is longer than everything allowed.
        let (a, b) = (text.floor_char_boundary(bytes / 2), text.ceil_char_boundary(text.len() - bytes / 2));
        let (first, last) = (text.get(..a).unwrap_or_default(), text.get(b..).unwrap_or_default());
        return Some(format!("{first}\n[{} bytes left out]\n{last}", b.saturating_sub(a)));
    }
    out.push_str(&format!("[{gone} lines, {} bytes left out]\n", middle.len()));
    tail.iter().rev().for_each(|line| out.push_str(line));
    Some(out)
}

fn take<'a>(from: impl Iterator<Item = &'a str>, lines: usize, bytes: usize) -> Vec<&'a str> {
    let mut left = bytes;
    let fits = |line: &&str| match left.checked_sub(line.len()) {
        Some(less) => {
            left = less;
            true
        }
        None => false,
    };
    from.take(lines).take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(trimmed("a\nb\n", 2, 10), None);
    }

    #[test]
    fn the_middle_goes_and_is_counted() {
        let text: String = (1..=10).map(|n| format!("line {n}\n")).collect();
        let short = trimmed(&text, 6, 1000).unwrap();
        assert_eq!(short, "line 1\nline 2\n[4 lines, 28 bytes left out]\nline 7\nline 8\nline 9\nline 10\n");
        let one = trimmed(&"é".repeat(100), 10, 20).unwrap();
        assert_eq!(one, "ééééé\n[180 bytes left out]\nééééé");
    }

    #[test]
    fn beyond_the_bound_both_ends_are_kept_and_the_rest_is_counted() {
        let mut kept = Kept::default();
        kept.push(b"first");
        for _ in 0..(KEEP / 1024) {
            kept.push(&[b'x'; 1024]);
        }
        kept.push(b"last");
        let text = kept.text();
        assert!(text.starts_with("first") && text.ends_with("last"));
        assert!(text.contains("\n[9 bytes were not kept]\n"));
        assert!(text.len() < KEEP + 100);
    }
}
