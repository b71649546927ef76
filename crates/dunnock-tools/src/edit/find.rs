//! Finds where an edit belongs: at an exact match, or at the first match level that has
//! exactly one match.
//!
//! Levels tolerate what models get wrong when they copy: trailing whitespace, indentation,
//! typographic characters. None tolerates a wrong letter. What the model left unchanged keeps the
//! file's own bytes; only its changes are written.

use super::indentation::{Shift, indent};
use super::text::{Breaks, Text};
use super::typographic::{Habits, folded, transferred};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// How the text was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchLevel {
    /// Exactly as given.
    Exact,
    /// Ignoring trailing whitespace.
    Blanks,
    /// Also ignoring indentation.
    Indentation,
    /// Also ignoring typographic quotes, dashes and spaces.
    Punctuation,
}

impl MatchLevel {
    /// All levels, the strictest first.
    pub const ALL: [Self; 4] = [Self::Exact, Self::Blanks, Self::Indentation, Self::Punctuation];

    /// For readers of a result; `None` for an exact match.
    #[must_use]
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::Blanks => Some("matched except for trailing whitespace"),
            Self::Indentation => Some("matched except for indentation"),
            Self::Punctuation => Some("matched except for typographic characters"),
        }
    }

    /// The part of a line that counts at this level.
    fn key(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => line.into(),
            Self::Blanks => line.trim_end().into(),
            Self::Indentation => line.trim().into(),
            Self::Punctuation => match line.is_ascii() {
                true => line.trim().into(),
                false => folded(line).0.trim().to_owned().into(),
            },
        }
    }
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// Not found.
    Absent,
    /// Found more than once: the first line of each match, from 0.
    Many(MatchLevel, Vec<usize>),
    /// Found with different indentation, which cannot be applied to the new lines.
    Ragged(usize),
    /// The new text is what is already there.
    Same,
    /// Found, but not in the block that this line opens: the first line of each match, from 0.
    Outside(String, Vec<usize>),
    /// A line that should be above it is missing, or occurs too often.
    Anchor(String, usize),
}

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The new text.
    pub text: Text,
    /// How the places were found.
    pub level: MatchLevel,
    /// New or changed lines, from 0, one range per place.
    pub lines: Vec<Range<usize>>,
}

/// A line of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditLine<'a> {
    /// Unchanged.
    Keep(&'a str),
    /// Removed.
    Drop(&'a str),
    /// Added.
    Add(&'a str),
}

/// Replaces a text that occurs once, or every occurrence.
///
/// # Errors
/// When there is no one place for it, or nothing would change.
pub fn replace(text: &Text, old: &str, new: &str, all: bool) -> Result<Edited, Miss> {
    if old == new {
        return Err(Miss::Same);
    }
    // Carriage returns in the old text are meant literally.
    if old.contains('\r') {
        let (raw, old) = (text.raw(), old);
        let places: Vec<usize> = raw.match_indices(old).map(|(at, _)| at).collect();
        if !places.is_empty() {
            let feeds: Vec<usize> = raw.match_indices('\n').map(|(at, _)| at).collect();
            let lines = |at: &usize| feeds.partition_point(|feed| feed < at);
            if places.len() > 1 && !all {
                return Err(Miss::Many(MatchLevel::Exact, places.iter().map(lines).collect()));
            }
            let count = new.matches('\n').count() + 1;
            let grown = new.matches('\n').count() as isize - old.matches('\n').count() as isize;
            let starts = places.iter().map(lines).enumerate();
            let lines = starts
                .map(|(n, line)| line.saturating_add_signed(grown * n as isize))
                .map(|l| l..l + count);
            return Ok(Edited {
                text: text.with_raw(&raw.replace(old, new)),
                level: MatchLevel::Exact,
                lines: lines.collect(),
            });
        }
    }
    let (old, new) = (&*old.replace("\r\n", "\n"), &*new.replace("\r\n", "\n"));
    if old == new {
        return Err(Miss::Same);
    }
    let places: Vec<usize> = text.text().match_indices(old).map(|(at, _)| at).collect();
    match places.as_slice() {
        [] => {}
        [_] => return Ok(put(text, &places, old.len(), new)),
        _ if all => return Ok(put(text, &places, old.len(), new)),
        _ => {
            return Err(Miss::Many(
                MatchLevel::Exact,
                places.iter().map(|at| text.line_of(*at)).collect(),
            ));
        }
    }
    let (olds, news) = (whole(old, old), whole(new, old));
    let steps = steps(&olds, &news);
    for level in [MatchLevel::Blanks, MatchLevel::Indentation] {
        match at(text, &places_of(text, &olds, level), &steps, level) {
            Err(Miss::Absent) => {}
            done => return done,
        }
    }
    // Whole lines first: there each new line is compared with the line that it replaces.
    match at(
        text,
        &places_of(text, &olds, MatchLevel::Punctuation),
        &steps,
        MatchLevel::Punctuation,
    ) {
        Err(Miss::Absent) => within_lines(text, old, new),
        done => done,
    }
}

fn put(text: &Text, places: &[usize], len: usize, new: &str) -> Edited {
    let changed = text.splice_all(places.iter().map(|at| *at..at + len), new, Breaks::AsThere);
    let grown = new.len() as isize - len as isize;
    let starts =
        places.iter().enumerate().map(|(n, at)| at.saturating_add_signed(grown * n as isize));
    let lines = starts
        .map(|at| changed.line_of(at)..changed.line_of(at + new.len().saturating_sub(1)) + 1)
        .collect();
    Edited { text: changed, level: MatchLevel::Exact, lines }
}

/// The lines of a text. If the old text ends with a line feed, a final line feed does not start
/// another line.
fn whole<'a>(text: &'a str, old: &str) -> Vec<&'a str> {
    match old.ends_with('\n') {
        true if text.is_empty() => Vec::new(),
        true => text.strip_suffix('\n').unwrap_or(text).split('\n').collect(),
        false => text.split('\n').collect(),
    }
}

/// Which old lines are kept or removed, and which lines are added.
fn steps<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<EditLine<'a>> {
    let mut steps = Vec::new();
    let olds = |range: Range<usize>| old.get(range).unwrap_or_default().iter().copied();
    let news = |range: Range<usize>| new.get(range).unwrap_or_default().iter().copied();
    let deadline = std::time::Instant::now() + std::time::Duration::from_millis(500);
    for op in capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline)) {
        match op {
            DiffOp::Equal { .. } => steps.extend(olds(op.old_range()).map(EditLine::Keep)),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                steps.extend(olds(op.old_range()).map(EditLine::Drop));
                steps.extend(news(op.new_range()).map(EditLine::Add));
            }
        }
    }
    steps
}

/// The first line, from 0, of every match of these lines at a level.
#[must_use]
pub fn places_of(text: &Text, old: &[&str], level: MatchLevel) -> Vec<usize> {
    let old: Vec<Cow<'_, str>> = old.iter().map(|line| level.key(line)).collect();
    // Empty lines alone do not identify a place.
    if old.iter().all(|line| line.trim().is_empty()) {
        return Vec::new();
    }
    // Map lines to numbers: one for each distinct old line, and one for all others.
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let wanted: Vec<u32> = old
        .iter()
        .map(|line| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX - 1);
            *numbers.entry(line).or_insert(next)
        })
        .collect();
    let number = |line: &str| numbers.get(level.key(line).as_ref()).copied().unwrap_or(u32::MAX);
    let lines: Vec<u32> = text.lines().map(number).collect();
    let windows = lines.windows(wanted.len()).enumerate();
    windows.filter(|(_, window)| *window == wanted.as_slice()).map(|(line, _)| line).collect()
}

/// Edits the place, if there is exactly one.
fn at(
    text: &Text,
    places: &[usize],
    steps: &[EditLine<'_>],
    level: MatchLevel,
) -> Result<Edited, Miss> {
    match places {
        [] => Err(Miss::Absent),
        [one] => {
            let (changed, lines) =
                edit_lines(text, *one, steps, level).ok_or(Miss::Ragged(*one))?;
            if changed == *text {
                return Err(Miss::Same);
            }
            Ok(Edited { text: changed, level, lines: vec![lines] })
        }
        many => Err(Miss::Many(level, many.to_vec())),
    }
}

/// Applies the steps at a line. `None` if the indentation of new lines cannot be determined.
#[must_use]
pub fn edit_lines(
    text: &Text,
    line: usize,
    steps: &[EditLine<'_>],
    level: MatchLevel,
) -> Option<(Text, Range<usize>)> {
    let count = steps.iter().filter(|step| !matches!(step, EditLine::Add(_))).count();
    let there: Vec<&str> = (line..line + count).map(|n| text.line(n)).collect();
    let given = steps.iter().filter_map(|step| match step {
        EditLine::Keep(line) | EditLine::Drop(line) => Some(*line),
        EditLine::Add(_) => None,
    });
    let pairs: Vec<(&str, &str)> = given.zip(there.iter().copied()).collect();
    let adds = steps.iter().any(|step| matches!(step, EditLine::Add(_)));
    let shift = match level {
        MatchLevel::Indentation | MatchLevel::Punctuation if adds => {
            Shift::learn(&pairs, steps, text)?
        }
        MatchLevel::Exact
        | MatchLevel::Blanks
        | MatchLevel::Indentation
        | MatchLevel::Punctuation => Shift::default(),
    };
    let habits =
        if level == MatchLevel::Punctuation { Habits::learn(&pairs) } else { Habits::default() };
    let mut lines: Vec<String> = Vec::new();
    let mut next = there.iter();
    // Lines removed since the last kept one: each new line replaces the first of those left.
    let mut went: VecDeque<(&str, &str)> = VecDeque::new();
    for step in steps {
        match step {
            EditLine::Keep(_) => {
                went.clear();
                lines.extend(next.next().map(|line| (*line).to_owned()));
            }
            EditLine::Drop(given) => went.extend(next.next().map(|line| (*given, *line))),
            EditLine::Add(new) => {
                let transferred = match went.pop_front() {
                    Some((given, there)) if level == MatchLevel::Punctuation => {
                        transferred(given.trim(), there.trim(), new.trim(), &habits)
                    }
                    _ => None,
                };
                let shifted = shift.apply(new)?;
                lines.push(match transferred {
                    Some(body) => format!("{}{body}", indent(&shifted)),
                    None => habits.apply(&shifted),
                });
            }
        }
    }
    let span = text.span(line..line + count);
    let mut new = lines.join("\n");
    // If the last line of the file has no line feed, the new last line has none either.
    if !lines.is_empty() && text.text().get(span.clone()).is_some_and(|old| old.ends_with('\n')) {
        new.push('\n');
    }
    let before = lines.iter().zip(&there).take_while(|(new, old)| new == *old).count();
    let after =
        lines.iter().rev().zip(there.iter().rev()).take_while(|(new, old)| new == *old).count();
    let changed = line + before..line + lines.len().saturating_sub(after).max(before);
    Some((text.splice(span, &new, Breaks::AsThere), changed))
}

/// Replaces a text, whole lines or not, that matches except for typographic characters.
fn within_lines(text: &Text, old: &str, new: &str) -> Result<Edited, Miss> {
    // Without such characters, the text was already searched for as it is.
    if text.text().is_ascii() && old.is_ascii() {
        return Err(Miss::Absent);
    }
    let ((folded_text, from), (folded_old, _)) = (folded(text.text()), folded(old));
    if folded_old.trim().is_empty() {
        return Err(Miss::Absent);
    }
    let places: Vec<usize> = folded_text.match_indices(&folded_old).map(|(at, _)| at).collect();
    let origin = |at: usize| from.get(at).copied().unwrap_or(text.text().len());
    let [place] = places.as_slice() else {
        return Err(match places.is_empty() {
            true => Miss::Absent,
            false => Miss::Many(
                MatchLevel::Punctuation,
                places.iter().map(|at| text.line_of(origin(*at))).collect(),
            ),
        });
    };
    let range = origin(*place)..origin(place + folded_old.len());
    let there = text.text().get(range.clone()).unwrap_or_default();
    let mut habits = Habits::default();
    habits.see(old, there);
    let Some(out) = transferred(old, there, new, &habits) else { return Err(Miss::Absent) };
    let start = range.start;
    let changed = text.splice(range, &out, Breaks::AsThere);
    if changed == *text {
        return Err(Miss::Same);
    }
    let lines = changed.line_of(start)..changed.line_of(start + out.len().saturating_sub(1)) + 1;
    Ok(Edited { text: changed, level: MatchLevel::Punctuation, lines: vec![lines] })
}
