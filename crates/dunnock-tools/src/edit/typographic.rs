//! Typographic characters, which models write instead of plain ones, and the other way round.

use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::BTreeMap;

/// The plain character that a typographic one stands for.
fn plain(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' | '\u{ff07}' => "'",
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' | '\u{ff02}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => "-",
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => " ",
        '\u{2026}' => "...",
        _ => return None,
    })
}

/// The text in plain characters, and for each byte of it the offset it came from.
pub(super) fn folded(text: &str) -> (String, Vec<usize>) {
    let (mut out, mut from) =
        (String::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
    for (at, c) in text.char_indices() {
        let mut own = [0; 4];
        let plain = plain(c).unwrap_or_else(|| c.encode_utf8(&mut own));
        out.push_str(plain);
        from.extend(std::iter::repeat_n(at, plain.len()));
    }
    from.push(text.len());
    (out, from)
}

/// For each typographic character in the given text, what the file uses for it; `None` if that
/// varies.
#[derive(Debug, Default)]
pub(super) struct Habits(BTreeMap<char, Option<String>>);

impl Habits {
    pub(super) fn learn(pairs: &[(&str, &str)]) -> Self {
        let mut habits = Self::default();
        for (given, there) in pairs {
            habits.see(given.trim(), there.trim());
        }
        habits
    }

    /// Learns from two texts that are equal when folded.
    pub(super) fn see(&mut self, given: &str, there: &str) {
        let ((_, from_given), (_, from_there)) = (folded(given), folded(there));
        for (n, at) in from_given.iter().enumerate() {
            if n > 0 && from_given.get(n - 1) == Some(at) {
                continue; // still the same character
            }
            let Some(c) = given.get(*at..).and_then(|rest| rest.chars().next()) else { continue };
            if plain(c).is_none() && !matches!(c, '\'' | '"' | '-' | ' ') {
                continue;
            }
            let len = plain(c).map_or(1, str::len);
            let (Some(start), Some(end)) = (from_there.get(n), from_there.get(n + len)) else {
                continue;
            };
            let own = there.get(*start..*end).unwrap_or_default().to_owned();
            let known = self.0.entry(c).or_insert_with(|| Some(own.clone()));
            if known.as_ref() != Some(&own) {
                *known = None;
            }
        }
    }

    /// New text in the file's own characters, where the mapping is unambiguous.
    pub(super) fn apply(&self, text: &str) -> String {
        let own = |c: char| match self.0.get(&c) {
            Some(Some(own)) if plain(c).is_some() => own.clone(),
            // A plain character may be meant literally.
            _ => c.to_string(),
        };
        text.chars().map(own).collect()
    }
}

/// A diff by character; of long texts, only the common beginning and end are matched.
fn characters(old: &[char], new: &[char]) -> Vec<DiffOp> {
    if old.len() + new.len() <= 8_000 {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) =
        (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_len, new_len) = (old_rest.len() - tail, new_rest.len() - tail);
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: head },
        DiffOp::Replace { old_index: head, old_len, new_index: head, new_len },
        DiffOp::Equal { old_index: head + old_len, new_index: head + new_len, len: tail },
    ]
}

/// Applies the change from `given` to `new` to the file's text `there`: what is the same in both
/// keeps the file's characters. `None` if `given` and `there` differ in more than typographic
/// characters.
pub(super) fn transferred(given: &str, there: &str, new: &str, habits: &Habits) -> Option<String> {
    let ((folded_given, from_given), (folded_there, from_there)) = (folded(given), folded(there));
    // Part of a character that folds to three cannot be replaced.
    if folded_given != folded_there {
        return None;
    }
    let given_chars: Vec<(usize, char)> = given.char_indices().collect();
    let olds: Vec<char> = given_chars.iter().map(|(_, c)| *c).collect();
    let news: Vec<char> = new.chars().collect();
    // Maps a character of `given` to its offset in `there`, through their common folded form.
    let back = |n: usize| {
        let at = given_chars.get(n).map_or(given.len(), |(at, _)| *at);
        from_there
            .get(from_given.partition_point(|from| *from < at))
            .copied()
            .unwrap_or(there.len())
    };
    let ops = characters(&olds, &news);
    // A completely different text is written as given.
    let same: usize = ops
        .iter()
        .filter(|op| matches!(op, DiffOp::Equal { .. }))
        .map(|op| op.old_range().len())
        .sum();
    if same * 4 < olds.len().max(news.len()) * 3 {
        return Some(habits.apply(new));
    }
    let mut out = String::new();
    for op in ops {
        match op {
            DiffOp::Equal { old_index, len, .. } => {
                out.push_str(there.get(back(old_index)..back(old_index + len))?);
            }
            DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                let fresh: String = news.get(op.new_range()).unwrap_or_default().iter().collect();
                out.push_str(&habits.apply(&fresh));
            }
            DiffOp::Delete { .. } => {}
        }
    }
    Some(out)
}
