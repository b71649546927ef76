//! What a model is told when its text is not in the file: the lines that come closest, and what differs in them.

use super::text::Text;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

/// Lines that are shown at most.
const SHOWN: usize = 30;
/// Lines of a file that is shown whole rather than viewed again.
const SMALL: usize = 12;
/// Differences that are named at most.
const NAMED: usize = 3;
/// Bytes of a line that are shown.
const WIDTH: usize = 200;

/// Numbered lines, as `view_file` shows them; the middle is left out of many.
#[must_use]
pub fn numbered(text: &Text, lines: Range<usize>) -> String {
    let lines = lines.start..lines.end.min(text.len());
    let width = lines.end.to_string().len();
    let mut out = String::new();
    let cut = lines.len() > SHOWN;
    for n in lines.clone() {
        if cut && n == lines.start + SHOWN / 2 {
            let _ = write!(out, "\n[{} lines more]", lines.len() - SHOWN);
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
    if rest > 0 { format!("{line} [{rest} more bytes in this line]") } else { line.to_owned() }
}

/// How alike two lines are, from 0 to 1: pairs of characters that they share.
fn alike(a: &str, b: &str) -> f64 {
    let (a, b) = (a.trim(), b.trim());
    if a == b {
        return if a.is_empty() { 0.5 } else { 1.0 };
    }
    let pairs = |text: &str| -> HashMap<(u8, u8), usize> {
        let mut pairs = HashMap::new();
        let bytes = text.as_bytes().get(..text.len().min(400)).unwrap_or_default();
        for pair in bytes.windows(2) {
            if let [x, y] = pair {
                *pairs.entry((*x, *y)).or_default() += 1;
            }
        }
        pairs
    };
    let (a, b) = (pairs(a), pairs(b));
    let total: usize = a.values().sum::<usize>() + b.values().sum::<usize>();
    let shared: usize = a.iter().map(|(pair, n)| b.get(pair).map_or(0, |m| *n.min(m))).sum();
    if total == 0 { 0.0 } else { 2.0 * shared as f64 / total as f64 }
}

/// The lines that are most like these, if any are.
fn closest(text: &Text, old: &[&str]) -> Option<Range<usize>> {
    let lines: Vec<&str> = text.lines().collect();
    let count = old.len().min(lines.len());
    if count == 0 {
        return None;
    }
    // Where most lines are the very same is looked at closely; of very long files or texts, only there.
    let known: HashSet<&str> = old.iter().map(|line| line.trim()).filter(|line| line.len() > 2).collect();
    let same: Vec<usize> = lines.iter().map(|line| usize::from(known.contains(line.trim()))).collect();
    let mut starts: Vec<(usize, usize)> =
        same.windows(count).enumerate().map(|(at, window)| (window.iter().sum(), at)).collect();
    if starts.len() * count > 40_000 {
        starts.sort_by_key(|(same, at)| (std::cmp::Reverse(*same), *at));
        starts.truncate((40_000 / count).max(1));
    }
    let score = |at: usize| -> f64 {
        let there = lines.get(at..at + count).unwrap_or_default();
        there.iter().zip(old).map(|(a, b)| alike(a, b)).sum::<f64>() / old.len() as f64
    };
    let best =
        starts.into_iter().map(|(_, at)| (score(at), at)).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
    (best.0 >= 0.4).then_some(best.1..best.1 + count)
}

/// The closest region with its lines, and what differs in it; or that there is none.
#[must_use]
pub fn describe(text: &Text, old: &[&str]) -> String {
    let Some(lines) = closest(text, old) else {
        return match text.len() {
            0 => "it is empty".into(),
            all @ 1..=SMALL => format!("nothing in it is like that. It holds:{}", numbered(text, 0..all)),
            _ => "nothing in it is like that; view the file".into(),
        };
    };
    let mut told = format!("the closest is {}:{}", range(&lines), numbered(text, lines.clone()));
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
            () if there.trim_end() == given.trim_end() => "differs in blanks at its end".to_owned(),
            () if there.trim() == given.trim() => {
                let indent = |line: &str| line.len() - line.trim_start().len();
                let of = |line: &str| line.get(..indent(line)).unwrap_or_default().to_owned();
                format!("is indented by {:?}, you wrote {:?}", of(there), of(given))
            }
            () => format!("is {:?}, you wrote {:?}", short(there.trim()), short(given.trim())),
        };
        let _ = write!(told, "\nline {} {how}", n + 1);
    }
    if differing > named {
        let _ = write!(told, "\nand {} lines more differ", differing - named);
    }
    told
}

/// `line 3` or `lines 3-7`, from ones that count from 0.
#[must_use]
pub fn range(lines: &Range<usize>) -> String {
    match lines.len() {
        0 | 1 => format!("line {}", lines.start + 1),
        _ => format!("lines {}-{}", lines.start + 1, lines.end),
    }
}
