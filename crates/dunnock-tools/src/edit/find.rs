//! Where an edit belongs: exactly there, or by the first rung of a ladder on which there is one place and no other.
//!
//! Rungs forgive what models get wrong when they copy: blanks at the end of lines, indentation, typographic characters. None
//! forgives a letter. What the model left as it was keeps the file's own bytes; only what it changed is written.

use super::text::{Breaks, Text};
use similar::{Algorithm, DiffOp, capture_diff_slices, capture_diff_slices_deadline};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

/// How the text was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// As it was given.
    Exact,
    /// But for blanks at the end of lines.
    Blanks,
    /// But for those, and how lines are indented.
    Indentation,
    /// But for those, and typographic quotes, dashes and spaces.
    Punctuation,
}

impl Rung {
    /// From the strictest on.
    pub const ALL: [Self; 4] = [Self::Exact, Self::Blanks, Self::Indentation, Self::Punctuation];

    /// For whoever reads a result; nothing for an exact one.
    #[must_use]
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::Blanks => Some("matched but for blanks at line ends"),
            Self::Indentation => Some("matched but for indentation"),
            Self::Punctuation => Some("matched but for typographic characters"),
        }
    }

    /// What of a line counts on this rung.
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

/// A place that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// How.
    pub rung: Rung,
    /// Its first line, from 0.
    pub line: usize,
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// It is not there.
    Absent,
    /// It is there more than once: the first lines, from 0.
    Many(Rung, Vec<usize>),
    /// It is there with another indentation, which cannot be carried over to the new lines.
    Ragged(usize),
    /// What would be put there is there.
    Same,
    /// It is there, but not in the block that this line opens: the first lines, from 0.
    Outside(String, Vec<usize>),
    /// A line that should stand above it is not there, or too often.
    Anchor(String, usize),
}

/// An edit that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The new text.
    pub text: Text,
    /// How the places were found.
    pub rung: Rung,
    /// The lines that are new or other than before, from 0, place by place.
    pub lines: Vec<Range<usize>>,
}

/// A line of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// It stays.
    Keep(&'a str),
    /// It goes.
    Drop(&'a str),
    /// It comes.
    Add(&'a str),
}

/// Replaces a text that occurs once, or everywhere.
///
/// # Errors
/// When there is not exactly one place for it.
pub fn replace(text: &Text, old: &str, new: &str, all: bool) -> Result<Edited, Miss> {
    if old == new {
        return Err(Miss::Same);
    }
    // Whoever writes carriage returns means them.
    if old.contains('\r') {
        let (raw, old) = (text.raw(), old);
        let places: Vec<usize> = raw.match_indices(old).map(|(at, _)| at).collect();
        if !places.is_empty() {
            let feeds: Vec<usize> = raw.match_indices('\n').map(|(at, _)| at).collect();
            let lines = |at: &usize| feeds.partition_point(|feed| feed < at);
            if places.len() > 1 && !all {
                return Err(Miss::Many(Rung::Exact, places.iter().map(lines).collect()));
            }
            let count = new.matches('\n').count() + 1;
            let grown = new.matches('\n').count() as isize - old.matches('\n').count() as isize;
            let starts = places.iter().map(lines).enumerate();
            let lines = starts.map(|(n, line)| line.saturating_add_signed(grown * n as isize)).map(|l| l..l + count);
            return Ok(Edited {
                text: text.with_raw(&raw.replace(old, new)),
                rung: Rung::Exact,
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
        _ => return Err(Miss::Many(Rung::Exact, places.iter().map(|at| text.line_of(*at)).collect())),
    }
    let (olds, news) = (whole(old, old), whole(new, old));
    let steps = steps(&olds, &news);
    for rung in [Rung::Blanks, Rung::Indentation] {
        match at(text, &places_of(text, &olds, rung), &steps, rung) {
            Err(Miss::Absent) => {}
            done => return done,
        }
    }
    // Whole lines first: there each line is compared with the one whose place it takes.
    match at(text, &places_of(text, &olds, Rung::Punctuation), &steps, Rung::Punctuation) {
        Err(Miss::Absent) => within_lines(text, old, new),
        done => done,
    }
}

fn put(text: &Text, places: &[usize], len: usize, new: &str) -> Edited {
    let changed = text.splice_all(places.iter().map(|at| *at..at + len), new, Breaks::AsThere);
    let grown = new.len() as isize - len as isize;
    let starts = places.iter().enumerate().map(|(n, at)| at.saturating_add_signed(grown * n as isize));
    let lines = starts.map(|at| changed.line_of(at)..changed.line_of(at + new.len().saturating_sub(1)) + 1).collect();
    Edited { text: changed, rung: Rung::Exact, lines }
}

/// The lines of a text; a line feed at its end ends the last one if that is so in the old text.
fn whole<'a>(text: &'a str, old: &str) -> Vec<&'a str> {
    match old.ends_with('\n') {
        true if text.is_empty() => Vec::new(),
        true => text.strip_suffix('\n').unwrap_or(text).split('\n').collect(),
        false => text.split('\n').collect(),
    }
}

/// What becomes of each old line, and which are new.
fn steps<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    let olds = |range: Range<usize>| old.get(range).unwrap_or_default().iter().copied();
    let news = |range: Range<usize>| new.get(range).unwrap_or_default().iter().copied();
    let deadline = std::time::Instant::now() + std::time::Duration::from_millis(500);
    for op in capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline)) {
        match op {
            DiffOp::Equal { .. } => steps.extend(olds(op.old_range()).map(Step::Keep)),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                steps.extend(olds(op.old_range()).map(Step::Drop));
                steps.extend(news(op.new_range()).map(Step::Add));
            }
        }
    }
    steps
}

/// Every place where these lines stand, on a rung.
#[must_use]
pub fn places_of(text: &Text, old: &[&str], rung: Rung) -> Vec<Place> {
    let old: Vec<Cow<'_, str>> = old.iter().map(|line| rung.key(line)).collect();
    // Nothing but empty lines is nowhere in particular.
    if old.iter().all(|line| line.trim().is_empty()) {
        return Vec::new();
    }
    // Lines as numbers: those of the old text, and one for all others.
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let wanted: Vec<u32> = old
        .iter()
        .map(|line| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX - 1);
            *numbers.entry(line).or_insert(next)
        })
        .collect();
    let number = |line: &str| numbers.get(rung.key(line).as_ref()).copied().unwrap_or(u32::MAX);
    let lines: Vec<u32> = text.lines().map(number).collect();
    let windows = lines.windows(wanted.len()).enumerate();
    windows.filter(|(_, window)| *window == wanted.as_slice()).map(|(line, _)| Place { rung, line }).collect()
}

/// Edits the one place among these.
fn at(text: &Text, places: &[Place], steps: &[Step<'_>], rung: Rung) -> Result<Edited, Miss> {
    match places {
        [] => Err(Miss::Absent),
        [one] => {
            let (changed, lines) = edit_lines(text, one.line, steps, rung).ok_or(Miss::Ragged(one.line))?;
            if changed == *text {
                return Err(Miss::Same);
            }
            Ok(Edited { text: changed, rung, lines: vec![lines] })
        }
        many => Err(Miss::Many(rung, many.iter().map(|place| place.line).collect())),
    }
}

/// Carries the steps out at a line. `None` if the indentation of new lines cannot be told.
#[must_use]
pub fn edit_lines(text: &Text, line: usize, steps: &[Step<'_>], rung: Rung) -> Option<(Text, Range<usize>)> {
    let count = steps.iter().filter(|step| !matches!(step, Step::Add(_))).count();
    let there: Vec<&str> = (line..line + count).map(|n| text.line(n)).collect();
    let given = steps.iter().filter_map(|step| match step {
        Step::Keep(line) | Step::Drop(line) => Some(*line),
        Step::Add(_) => None,
    });
    let pairs: Vec<(&str, &str)> = given.zip(there.iter().copied()).collect();
    let adds = steps.iter().any(|step| matches!(step, Step::Add(_)));
    let shift = match rung {
        Rung::Indentation | Rung::Punctuation if adds => Shift::learn(&pairs, steps, text)?,
        Rung::Exact | Rung::Blanks | Rung::Indentation | Rung::Punctuation => Shift::default(),
    };
    let habits = if rung == Rung::Punctuation { Habits::learn(&pairs) } else { Habits::default() };
    let mut lines: Vec<String> = Vec::new();
    let mut next = there.iter();
    // Lines that went since the last one that stayed: a new line takes the place of the first that is left.
    let mut went: VecDeque<(&str, &str)> = VecDeque::new();
    for step in steps {
        match step {
            Step::Keep(_) => {
                went.clear();
                lines.extend(next.next().map(|line| (*line).to_owned()));
            }
            Step::Drop(given) => went.extend(next.next().map(|line| (*given, *line))),
            Step::Add(new) => {
                let carried = match went.pop_front() {
                    Some((given, there)) if rung == Rung::Punctuation => {
                        carried(given.trim(), there.trim(), new.trim(), &habits)
                    }
                    _ => None,
                };
                let shifted = shift.apply(new)?;
                lines.push(match carried {
                    Some(body) => format!("{}{body}", indent(&shifted)),
                    None => habits.apply(&shifted),
                });
            }
        }
    }
    let span = text.span(line..line + count);
    let mut new = lines.join("\n");
    // The last line of a file may have no end; then the new last one has none either.
    if !lines.is_empty() && text.text().get(span.clone()).is_some_and(|old| old.ends_with('\n')) {
        new.push('\n');
    }
    let before = lines.iter().zip(&there).take_while(|(new, old)| new == *old).count();
    let after = lines.iter().rev().zip(there.iter().rev()).take_while(|(new, old)| new == *old).count();
    let changed = line + before..line + lines.len().saturating_sub(after).max(before);
    Some((text.splice(span, &new, Breaks::AsThere), changed))
}

fn indent(line: &str) -> &str {
    line.get(..line.len() - line.trim_start().len()).unwrap_or_default()
}

/// How the indentation that was given becomes that of the file: one of the file's for each that was given.
#[derive(Debug, Default)]
struct Shift {
    known: BTreeMap<String, String>,
    /// One step of the file, where that can be told.
    step: Option<String>,
    /// One step of what was given.
    given_step: Option<String>,
}

impl Shift {
    /// `None` if the file has no one answer, or a line that is deeper than another in what was given is not in the file.
    fn learn(pairs: &[(&str, &str)], steps: &[Step<'_>], text: &Text) -> Option<Self> {
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        for (given, there) in pairs.iter().filter(|(given, _)| !given.trim().is_empty()) {
            let own = known.entry(indent(given).to_owned()).or_insert_with(|| indent(there).to_owned());
            if own != indent(there) {
                return None;
            }
        }
        let all: Vec<(&String, &String)> = known.iter().collect();
        let grows = |(a, x): &(&String, &String), (b, y): &(&String, &String)| {
            !b.starts_with(a.as_str()) || y.len() > x.len() && y.starts_with(x.as_str())
        };
        let ordered = all.iter().enumerate().all(|(n, a)| all.iter().skip(n + 1).all(|b| grows(a, b)));
        let given = steps.iter().map(|step| match step {
            Step::Keep(line) | Step::Drop(line) | Step::Add(line) => *line,
        });
        ordered.then(|| Self { step: step_of(text), given_step: only_step(given), known })
    }

    /// A new line with the file's indentation; `None` where that cannot be told.
    fn apply(&self, line: &str) -> Option<String> {
        let given = indent(line);
        if line.trim().is_empty() || self.known.is_empty() {
            return Some(line.to_owned());
        }
        let rest = line.get(given.len()..)?;
        if let Some(there) = self.known.get(given) {
            return Some(format!("{there}{rest}"));
        }
        let unit = self.unit();
        // Deeper than one that is known, or less deep: by whole steps.
        let mut deeper = self.known.iter().rev().filter_map(|(known, there)| {
            let more = given.strip_prefix(known.as_str()).filter(|_| given.len() > known.len())?;
            Some(format!("{there}{}", self.carried(more, unit.as_ref())?))
        });
        let mut lesser = self.known.iter().filter_map(|(known, there)| {
            let less = known.strip_prefix(given).filter(|_| known.len() > given.len())?;
            there.strip_suffix(self.carried(less, unit.as_ref())?.as_str()).map(str::to_owned)
        });
        let there = deeper.next().or_else(|| lesser.next())?;
        Some(format!("{there}{rest}"))
    }

    /// How much of what was given makes one step of the file: learnt from two depths that are known, or from the steps that both
    /// are written with.
    fn unit(&self) -> Option<(String, String)> {
        let mut last: Option<(&String, &String)> = None;
        for next in &self.known {
            if let Some(last) = last
                && let (Some(given), Some(there)) =
                    (next.0.strip_prefix(last.0.as_str()), next.1.strip_prefix(last.1.as_str()))
                && !given.is_empty()
            {
                return Some(reduced(given, there));
            }
            last = Some(next);
        }
        // Of more than four blanks nobody can tell how many steps they are.
        let plain = |step: &&String| step.as_str() == "\t" || (step.len() <= 4 && step.chars().all(|c| c == ' '));
        Some((self.given_step.as_ref().filter(plain)?.clone(), self.step.as_ref().filter(plain)?.clone()))
    }

    /// Indentation beyond a known one, as the file has it.
    fn carried(&self, more: &str, unit: Option<&(String, String)>) -> Option<String> {
        let (given, there) = unit?;
        let times = more.len() / given.len();
        (given.repeat(times) == more).then(|| there.repeat(times))
    }
}

/// By how much each depth is deeper than the next one, if that is always the same: a line that goes on from the one above is
/// indented by something else, and then nothing can be told.
fn only_step<'a>(lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let depths: std::collections::BTreeSet<&str> = lines.filter(|line| !line.trim().is_empty()).map(indent).collect();
    let pairs = depths.iter().zip(depths.iter().skip(1));
    let steps: Vec<&str> = pairs.map(|(less, more)| more.strip_prefix(less)).collect::<Option<_>>()?;
    let first = *steps.first()?;
    steps.iter().all(|step| *step == first).then(|| first.to_owned())
}

/// The same ratio for one tab, where one side is written with tabs.
fn reduced(given: &str, there: &str) -> (String, String) {
    let tabs = |text: &str| text.chars().all(|c| c == '\t');
    let times = match (tabs(given), tabs(there)) {
        (true, false) => given.len(),
        (false, true) => there.len(),
        _ => 1,
    };
    let part = |text: &str| text.get(..text.len() / times.max(1)).unwrap_or(text).to_owned();
    match given.len().is_multiple_of(times) && there.len().is_multiple_of(times) {
        true => (part(given), part(there)),
        false => (given.to_owned(), there.to_owned()),
    }
}

/// By how much a line of this file is deeper than the one before, most often.
fn step_of(text: &Text) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut last = "";
    for line in text.lines().filter(|line| !line.trim().is_empty()).take(5_000) {
        let now = indent(line);
        if let Some(more) = now.strip_prefix(last).filter(|more| !more.is_empty()) {
            *counts.entry(more).or_default() += 1;
        }
        last = now;
    }
    counts
        .into_iter()
        .max_by_key(|(step, count)| (*count, std::cmp::Reverse(step.len())))
        .map(|(step, _)| step.to_owned())
}

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

/// With plain characters, and for each byte of that where it came from.
fn folded(text: &str) -> (String, Vec<usize>) {
    let (mut out, mut from) = (String::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
    for (at, c) in text.char_indices() {
        let mut own = [0; 4];
        let plain = plain(c).unwrap_or_else(|| c.encode_utf8(&mut own));
        out.push_str(plain);
        from.extend(std::iter::repeat_n(at, plain.len()));
    }
    from.push(text.len());
    (out, from)
}

/// A typographic character that was given, and what stands for it in the file wherever it was given.
#[derive(Debug, Default)]
struct Habits(BTreeMap<char, Option<String>>);

impl Habits {
    fn learn(pairs: &[(&str, &str)]) -> Self {
        let mut habits = Self::default();
        for (given, there) in pairs {
            habits.see(given.trim(), there.trim());
        }
        habits
    }

    /// Two texts that are the same when folded.
    fn see(&mut self, given: &str, there: &str) {
        let ((_, from_given), (_, from_there)) = (folded(given), folded(there));
        for (n, at) in from_given.iter().enumerate() {
            if n > 0 && from_given.get(n - 1) == Some(at) {
                continue; // the same character goes on
            }
            let Some(c) = given.get(*at..).and_then(|rest| rest.chars().next()) else { continue };
            if plain(c).is_none() && !matches!(c, '\'' | '"' | '-' | ' ') {
                continue;
            }
            let len = plain(c).map_or(1, str::len);
            let (Some(start), Some(end)) = (from_there.get(n), from_there.get(n + len)) else { continue };
            let own = there.get(*start..*end).unwrap_or_default().to_owned();
            let known = self.0.entry(c).or_insert_with(|| Some(own.clone()));
            if known.as_ref() != Some(&own) {
                *known = None;
            }
        }
    }

    /// New text in the file's own characters, where those given for others have one meaning.
    fn apply(&self, text: &str) -> String {
        let own = |c: char| match self.0.get(&c) {
            Some(Some(own)) if plain(c).is_some() => own.clone(),
            // A plain character may be meant as it is.
            _ => c.to_string(),
        };
        text.chars().map(own).collect()
    }
}

/// What differs, character by character; of long texts only where they begin and end in the same way.
fn characters(old: &[char], new: &[char]) -> Vec<DiffOp> {
    if old.len() + new.len() <= 8_000 {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_len, new_len) = (old_rest.len() - tail, new_rest.len() - tail);
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: head },
        DiffOp::Replace { old_index: head, old_len, new_index: head, new_len },
        DiffOp::Equal { old_index: head + old_len, new_index: head + new_len, len: tail },
    ]
}

/// What becomes of a text of the file when what was given for it becomes something else: what is the same in both keeps the
/// file's characters. `None` if the file's text is not what was given, typographic characters aside.
fn carried(given: &str, there: &str, new: &str, habits: &Habits) -> Option<String> {
    let ((folded_given, from_given), (folded_there, from_there)) = (folded(given), folded(there));
    // Half of a character of three cannot be replaced.
    if folded_given != folded_there {
        return None;
    }
    let given_chars: Vec<(usize, char)> = given.char_indices().collect();
    let olds: Vec<char> = given_chars.iter().map(|(_, c)| *c).collect();
    let news: Vec<char> = new.chars().collect();
    // Where in the file a character of what was given is, by way of what both become.
    let back = |n: usize| {
        let at = given_chars.get(n).map_or(given.len(), |(at, _)| *at);
        from_there.get(from_given.partition_point(|from| *from < at)).copied().unwrap_or(there.len())
    };
    let ops = characters(&olds, &news);
    // Something else altogether is written as it was given.
    let same: usize = ops.iter().filter(|op| matches!(op, DiffOp::Equal { .. })).map(|op| op.old_range().len()).sum();
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

/// Replaces a text, of whole lines or not, that is there but for typographic characters.
fn within_lines(text: &Text, old: &str, new: &str) -> Result<Edited, Miss> {
    // What has no such character was looked for as it is.
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
            false => Miss::Many(Rung::Punctuation, places.iter().map(|at| text.line_of(origin(*at))).collect()),
        });
    };
    let range = origin(*place)..origin(place + folded_old.len());
    let there = text.text().get(range.clone()).unwrap_or_default();
    let mut habits = Habits::default();
    habits.see(old, there);
    let Some(out) = carried(old, there, new, &habits) else { return Err(Miss::Absent) };
    let start = range.start;
    let changed = text.splice(range, &out, Breaks::AsThere);
    if changed == *text {
        return Err(Miss::Same);
    }
    let lines = changed.line_of(start)..changed.line_of(start + out.len().saturating_sub(1)) + 1;
    Ok(Edited { text: changed, rung: Rung::Punctuation, lines: vec![lines] })
}
