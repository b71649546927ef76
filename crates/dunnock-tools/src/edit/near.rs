//! What the model is sent when its text is not in the file: the closest lines, and how they differ.

use super::text::Text;
use dunnock_proto::count;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

/// Maximum lines shown.
const SHOWN: usize = 30;
/// A file of at most this many lines is shown whole, so that it need not be viewed again.
const SMALL: usize = 12;
/// Maximum differences listed.
const NAMED: usize = 3;
/// Maximum bytes shown of a line.
const WIDTH: usize = 200;

/// Numbered lines, as `view_file` shows them; if there are many, the middle is left out.
#[must_use]
pub fn numbered(text: &Text, lines: Range<usize>) -> String {
    let lines = lines.start..lines.end.min(text.len());
    let width = lines.end.to_string().len();
    let mut out = String::new();
    let cut = lines.len() > SHOWN;
    for n in lines.clone() {
        if cut && n == lines.start + SHOWN / 2 {
            let _ = write!(out, "\n[{}]", count(lines.len() - SHOWN, "more line"));
        }
        if cut && n >= lines.start + SHOWN / 2 && n < lines.end - SHOWN / 2 {
            continue;
        }
        let _ = write!(out, "\n{:>width$}  {}", n + 1, short(text.line(n)));
    }
    out
}

fn short(line: &str) -> String {
    let end = line.floor_char_boundary(WIDTH);
    let rest = line.len() - end;
    let line = line.get(..end).unwrap_or_default();
    if rest > 0 {
        format!("{line} [{} in this line]", count(rest, "more byte"))
    } else {
        line.to_owned()
    }
}

/// A line as its sorted byte pairs, for comparison.
struct Pairs(Vec<u16>);

impl Pairs {
    fn of(line: &str) -> Self {
        let line = line.trim();
        let bytes = line.as_bytes().get(..line.len().min(400)).unwrap_or_default();
        let mut pairs: Vec<u16> =
            bytes.array_windows().map(|pair| u16::from_be_bytes(*pair)).collect();
        pairs.sort_unstable();
        Self(pairs)
    }

    /// Similarity of two lines from 0 to 1: the share of pairs that they have in common.
    fn alike(&self, other: &Self) -> f64 {
        if self.0 == other.0 {
            return if self.0.is_empty() { 0.5 } else { 1.0 };
        }
        let (mut a, mut b, mut shared) =
            (self.0.iter().peekable(), other.0.iter().peekable(), 0_usize);
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            match x.cmp(y) {
                std::cmp::Ordering::Less => drop(a.next()),
                std::cmp::Ordering::Greater => drop(b.next()),
                std::cmp::Ordering::Equal => {
                    shared += 1;
                    a.next();
                    b.next();
                }
            }
        }
        2.0 * shared as f64 / (self.0.len() + other.0.len()) as f64
    }
}

/// The lines most similar to these, if any are similar enough.
fn closest(text: &Text, old: &[&str]) -> Option<Range<usize>> {
    let lines: Vec<&str> = text.lines().collect();
    let count = old.len().min(lines.len());
    if count == 0 {
        return None;
    }
    // In very long files or texts, score only the places with the most identical lines.
    let known: HashSet<&str> =
        old.iter().map(|line| line.trim()).filter(|line| line.len() > 2).collect();
    let same: Vec<usize> =
        lines.iter().map(|line| usize::from(known.contains(line.trim()))).collect();
    let mut sum: usize = same.iter().take(count).sum();
    let mut starts: Vec<(usize, usize)> = vec![(sum, 0)];
    for (at, (goes, comes)) in same.iter().zip(same.iter().skip(count)).enumerate() {
        sum = sum + comes - goes;
        starts.push((sum, at + 1));
    }
    if starts.len() * count > 40_000 {
        starts.sort_by_key(|(same, at)| (std::cmp::Reverse(*same), *at));
        starts.truncate((40_000 / count).max(1));
    }
    let wanted: Vec<Pairs> = old.iter().map(|line| Pairs::of(line)).collect();
    let mut known: HashMap<usize, Pairs> = HashMap::new();
    let mut score = |at: usize| -> f64 {
        let each = (at..at + count).zip(&wanted).map(|(n, wanted)| {
            let pairs = known
                .entry(n)
                .or_insert_with(|| Pairs::of(lines.get(n).copied().unwrap_or_default()));
            pairs.alike(wanted)
        });
        each.sum::<f64>() / old.len() as f64
    };
    let best = starts
        .into_iter()
        .map(|(_, at)| (score(at), at))
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
    (best.0 >= 0.4).then_some(best.1..best.1 + count)
}

/// Shows the closest lines and how they differ, or says that there are none.
#[must_use]
pub fn describe(text: &Text, old: &[&str]) -> String {
    let Some(lines) = closest(text, old) else {
        return match text.len() {
            0 => "the file is empty".into(),
            all @ 1..=SMALL => {
                format!("nothing in it is similar. Its content:{}", numbered(text, 0..all))
            }
            _ => "nothing in it is similar; view the file".into(),
        };
    };
    let mut message =
        format!("the closest match is {}:{}", range(&lines), numbered(text, lines.clone()));
    let mut named = 0;
    let mut differing = 0;
    for (n, given) in lines.clone().zip(old) {
        let there = text.line(n);
        if there == *given {
            continue;
        }
        differing += 1;
        if named == NAMED {
            continue;
        }
        named += 1;
        let how = match () {
            () if there.trim_end() == given.trim_end() => {
                "differs in trailing whitespace".to_owned()
            }
            () if there.trim() == given.trim() => {
                let indent = |line: &str| line.len() - line.trim_start().len();
                let of = |line: &str| line.get(..indent(line)).unwrap_or_default().to_owned();
                format!("is indented by {:?}, you wrote {:?}", of(there), of(given))
            }
            () => format!("is {:?}, you wrote {:?}", short(there.trim()), short(given.trim())),
        };
        let _ = write!(message, "\nline {} {how}", n + 1);
    }
    if differing > named {
        let _ =
            write!(message, "\nand {} not shown", count(differing - named, "more differing line"));
    }
    message
}

/// `line 3` or `lines 3-7`, for a range counted from 0.
#[must_use]
pub fn range(lines: &Range<usize>) -> String {
    match lines.len() {
        0 | 1 => format!("line {}", lines.start + 1),
        _ => format!("lines {}-{}", lines.start + 1, lines.end),
    }
}
