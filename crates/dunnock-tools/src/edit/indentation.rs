//! Indents new lines where the model's indentation differs from the file's.

use super::find::EditLine;
use super::text::Text;
use std::collections::BTreeMap;

/// The leading whitespace of a line.
pub(super) fn indent(line: &str) -> &str {
    line.get(..line.len() - line.trim_start().len()).unwrap_or_default()
}

/// Maps each indentation in the given text to the file's.
#[derive(Debug, Default)]
pub(super) struct Shift {
    known: BTreeMap<String, String>,
    /// One indentation step of the file, if known.
    step: Option<String>,
    /// One indentation step of the given text, if known.
    given_step: Option<String>,
}

impl Shift {
    /// `None` if the mapping is ambiguous, or a line is deeper than another in the given text but
    /// not in the file.
    pub(super) fn learn(
        pairs: &[(&str, &str)],
        steps: &[EditLine<'_>],
        text: &Text,
    ) -> Option<Self> {
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        for (given, there) in pairs.iter().filter(|(given, _)| !given.trim().is_empty()) {
            let own =
                known.entry(indent(given).to_owned()).or_insert_with(|| indent(there).to_owned());
            if own != indent(there) {
                return None;
            }
        }
        let all: Vec<(&String, &String)> = known.iter().collect();
        let grows = |(a, x): &(&String, &String), (b, y): &(&String, &String)| {
            !b.starts_with(a.as_str()) || y.len() > x.len() && y.starts_with(x.as_str())
        };
        let ordered =
            all.iter().enumerate().all(|(n, a)| all.iter().skip(n + 1).all(|b| grows(a, b)));
        let given = steps.iter().map(|step| match step {
            EditLine::Keep(line) | EditLine::Drop(line) | EditLine::Add(line) => *line,
        });
        ordered.then(|| Self { step: step_of(text), given_step: only_step(given), known })
    }

    /// A new line with the file's indentation; `None` if that cannot be determined.
    pub(super) fn apply(&self, line: &str) -> Option<String> {
        let given = indent(line);
        if line.trim().is_empty() || self.known.is_empty() {
            return Some(line.to_owned());
        }
        let rest = line.get(given.len()..)?;
        if let Some(there) = self.known.get(given) {
            return Some(format!("{there}{rest}"));
        }
        let unit = self.unit();
        // Deeper or shallower than a known indentation, by whole steps.
        let mut deeper = self.known.iter().rev().filter_map(|(known, there)| {
            let more = given.strip_prefix(known.as_str()).filter(|_| given.len() > known.len())?;
            Some(format!("{there}{}", self.transferred(more, unit.as_ref())?))
        });
        let mut lesser = self.known.iter().filter_map(|(known, there)| {
            let less = known.strip_prefix(given).filter(|_| known.len() > given.len())?;
            there.strip_suffix(self.transferred(less, unit.as_ref())?.as_str()).map(str::to_owned)
        });
        let there = deeper.next().or_else(|| lesser.next())?;
        Some(format!("{there}{rest}"))
    }

    /// Which given indentation corresponds to which of the file: learnt from two known depths, or
    /// from the step that each side uses.
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
        // More than four spaces could be any number of steps.
        let plain = |step: &&String| {
            step.as_str() == "\t" || (step.len() <= 4 && step.chars().all(|c| c == ' '))
        };
        Some((
            self.given_step.as_ref().filter(plain)?.clone(),
            self.step.as_ref().filter(plain)?.clone(),
        ))
    }

    /// Converts indentation beyond a known one to the file's.
    fn transferred(&self, more: &str, unit: Option<&(String, String)>) -> Option<String> {
        let (given, there) = unit?;
        let times = more.len() / given.len();
        (given.repeat(times) == more).then(|| there.repeat(times))
    }
}

/// The difference between successive depths, if it is always the same. A continuation line is
/// indented differently, and then the step is unknown.
fn only_step<'a>(lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let depths: std::collections::BTreeSet<&str> =
        lines.filter(|line| !line.trim().is_empty()).map(indent).collect();
    let pairs = depths.iter().zip(depths.iter().skip(1));
    let steps: Vec<&str> =
        pairs.map(|(less, more)| more.strip_prefix(less)).collect::<Option<_>>()?;
    let first = *steps.first()?;
    steps.iter().all(|step| *step == first).then(|| first.to_owned())
}

/// The same ratio reduced to one tab, if one side uses tabs.
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

/// The most common increase in indentation from one line of this file to the next.
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
