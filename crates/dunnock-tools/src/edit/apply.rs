//! Applies a patch in memory and returns the resulting files. Nothing is written here.

use super::find::{EditLine, MatchLevel, Miss, edit_lines, places_of};
use super::text::{Breaks, Text};
use crate::root::Contents;
use dunnock_core::patch::{FileAction, FilePatch, Hunk, Line, Op, Patch};
use std::collections::BTreeMap;
use std::ops::Range;

/// A file as it is now, under its canonical name.
pub struct CurrentFile {
    /// The canonical name, however the path was written.
    pub name: String,
    /// Its content; `None` if it does not exist.
    pub now: Option<Contents>,
}

/// What a patch does to a file.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Its content before the patch; `None` if it did not exist.
    pub before: Option<Contents>,
    /// Its content afterwards; `None` if it no longer exists.
    pub after: Option<Contents>,
    /// The loosest level that was used.
    pub level: Option<MatchLevel>,
    /// New or changed lines, from 0.
    pub lines: Vec<Range<usize>>,
    /// Its old name, if it was moved.
    pub was: Option<String>,
}

/// Applies a whole patch.
///
/// # Errors
/// With a message for the model, when part of it does not match the files.
pub fn apply(
    patch: &Patch,
    look: &mut dyn FnMut(&str) -> Result<CurrentFile, String>,
) -> Result<BTreeMap<String, Outcome>, String> {
    let mut files: BTreeMap<String, Outcome> = BTreeMap::new();
    let mut open = |files: &mut BTreeMap<String, Outcome>, path: &str| -> Result<String, String> {
        let CurrentFile { name, now } = look(path)?;
        files.entry(name.clone()).or_insert_with(|| Outcome {
            before: now.clone(),
            after: now,
            ..Outcome::default()
        });
        Ok(name)
    };
    for part in &patch.files {
        match &part.what {
            FileAction::Add(path) => {
                let name = open(&mut files, path)?;
                let file = files.entry(name.clone()).or_default();
                if file.after.is_some() {
                    return Err(format!("{name} already exists; update it instead"));
                }
                let bytes = added(part).map_err(|why| format!("{name}: {why}"))?;
                let count = Text::decode(&bytes).map_or(0, |text| text.len());
                // A file that is deleted and added again in one patch keeps its permissions.
                let mode =
                    match (file.before.as_ref().and_then(|before| before.mode), part.executable) {
                        (Some(mode), run) => Some(run.map_or(mode, |run| with_run(mode, run))),
                        (None, Some(true)) => Some(0o755),
                        (None, _) => None,
                    };
                file.after = Some(Contents { bytes, mode });
                file.lines = std::iter::once(0..count).collect();
            }
            FileAction::Delete(path) => {
                let name = open(&mut files, path)?;
                let file = files.entry(name.clone()).or_default();
                let Some(now) = file.after.take() else {
                    return Err(format!("{name} does not exist"));
                };
                let stays =
                    !part.hunks.is_empty() && !changed(&name, part, &now)?.0.bytes.is_empty();
                if stays {
                    return Err(format!(
                        "{name} has lines that the patch does not delete; use delete_file to \
                         delete the whole file"
                    ));
                }
                file.lines.clear();
            }
            FileAction::Update(path) => {
                let name = open(&mut files, path)?;
                let file = files.entry(name.clone()).or_default();
                let Some(now) = file.after.take() else {
                    return Err(format!("{name} does not exist"));
                };
                if part.hunks.is_empty() && part.executable.is_none() {
                    return Err(format!("{name}: the patch changes nothing in it"));
                }
                let (after, level, lines) = changed(&name, part, &now)?;
                file.after = Some(after);
                file.level = file.level.max(level);
                file.lines = lines;
            }
            FileAction::Move { from, to } => {
                let (source, target) = (open(&mut files, from)?, open(&mut files, to)?);
                let old = files.entry(source.clone()).or_default();
                let Some(now) = old.after.take() else {
                    return Err(format!("{source} does not exist"));
                };
                old.lines.clear();
                let (after, level, lines) = changed(&source, part, &now)?;
                let new = files.entry(target.clone()).or_default();
                if new.after.is_some() {
                    return Err(format!(
                        "{target} already exists and is not overwritten; choose another path"
                    ));
                }
                *new = Outcome {
                    after: Some(after),
                    level,
                    lines,
                    was: Some(source),
                    before: new.before.take(),
                };
            }
        }
    }
    Ok(files)
}

/// A new file's bytes.
fn added(part: &FilePatch) -> Result<Vec<u8>, String> {
    let lines: Vec<&Line> = part.hunks.iter().flat_map(|hunk| &hunk.lines).collect();
    if lines.iter().any(|line| line.op != Op::Add) {
        return Err("every line of a new file must begin with +".into());
    }
    Ok(written(&lines).into_bytes())
}

/// The mode with execute permission for everyone who may read, or for nobody.
fn with_run(mode: u32, run: bool) -> u32 {
    if run { mode | (mode & 0o444) >> 2 } else { mode & !0o111 }
}

/// Joins lines with line feeds; only the last may have none.
fn written(lines: &[&Line]) -> String {
    let mut text = String::new();
    for (n, line) in lines.iter().enumerate() {
        text.push_str(&line.text);
        if !line.open || n + 1 < lines.len() {
            text.push('\n');
        }
    }
    text
}

type Changed = (Contents, Option<MatchLevel>, Vec<Range<usize>>);

fn changed(name: &str, part: &FilePatch, now: &Contents) -> Result<Changed, String> {
    let mut after = now.clone();
    if let (Some(run), Some(mode)) = (part.executable, now.mode) {
        after.mode = Some(with_run(mode, run));
    }
    if part.hunks.is_empty() {
        return Ok((after, None, Vec::new()));
    }
    let text = Text::decode(&now.bytes).map_err(|error| format!("{name} {error}"))?;
    let (text, level, lines) = hunks(name, &text, &part.hunks)?;
    after.bytes = text.encode().map_err(|error| format!("{name} {error}"))?;
    Ok((after, Some(level), lines))
}

/// Maximum lines that an anchor may match.
const ANCHORS: usize = 1_000;

/// A hunk with its place.
struct Placed<'a> {
    hunk: &'a Hunk,
    line: usize,
    old: usize,
    fit: Fit,
}

/// How a hunk matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Byte for byte, including line endings: new lines keep their own.
    Whole,
    /// At a level; new lines get the file's line endings.
    By(MatchLevel),
}

/// Finds a place for every hunk in the original file, then applies all of them.
fn hunks(
    name: &str,
    text: &Text,
    hunks: &[Hunk],
) -> Result<(Text, MatchLevel, Vec<Range<usize>>), String> {
    let mut placed: Vec<Placed<'_>> = Vec::new();
    for (n, hunk) in hunks.iter().enumerate() {
        let which =
            if hunks.len() == 1 { name.to_owned() } else { format!("{name}, hunk {}", n + 1) };
        let old = hunk.lines.iter().filter(|line| line.op != Op::Add).count();
        let (line, fit) = place(text, hunk).map_err(|miss| explain(&which, text, hunk, &miss))?;
        placed.push(Placed { hunk, line, old, fit });
    }
    placed.sort_by_key(|one| (one.line, one.old));
    for pair in placed.windows(2) {
        if let [a, b] = pair
            && (a.line + a.old > b.line || (a.line == b.line && a.old == b.old))
        {
            return Err(format!(
                "{name}: two hunks of the patch change the same lines (at line {})",
                b.line + 1
            ));
        }
    }
    let mut changed = text.clone();
    let mut spans: Vec<(Range<usize>, isize)> = Vec::new();
    // From the end, so that earlier places do not shift.
    for one in placed.iter().rev() {
        let before = changed.len();
        let (next, lines) = match one.fit {
            Fit::Whole => whole(&changed, one),
            Fit::By(level) => {
                let steps: Vec<EditLine<'_>> = one.hunk.lines.iter().map(step).collect();
                edit_lines(&changed, one.line, &steps, level)
                    .ok_or_else(|| explain(name, text, one.hunk, &Miss::Ragged(one.line)))?
            }
        };
        changed = next;
        spans.push((lines, changed.len() as isize - before as isize));
    }
    if changed == *text {
        return Err(format!("{name}: the patch changes nothing in it"));
    }
    let mut grown = 0;
    let lines = spans.into_iter().rev().map(|(lines, more)| {
        let moved =
            lines.start.saturating_add_signed(grown)..lines.end.saturating_add_signed(grown);
        grown += more;
        moved
    });
    let lines = lines.collect();
    let level = placed.iter().map(|one| match one.fit {
        Fit::Whole => MatchLevel::Exact,
        Fit::By(level) => level,
    });
    Ok((changed, level.max().unwrap_or(MatchLevel::Exact), lines))
}

fn step(line: &Line) -> EditLine<'_> {
    let text = line.text.strip_suffix('\r').unwrap_or(&line.text);
    match line.op {
        Op::Keep => EditLine::Keep(text),
        Op::Drop => EditLine::Drop(text),
        Op::Add => EditLine::Add(text),
    }
}

/// Replaces lines that match byte for byte.
fn whole(text: &Text, one: &Placed<'_>) -> (Text, Range<usize>) {
    let lines: Vec<&Line> = one.hunk.lines.iter().filter(|line| line.op != Op::Drop).collect();
    let (new, count) = (written(&lines), lines.len());
    let same = |lines: &mut dyn Iterator<Item = &Line>| {
        lines.take_while(|line| line.op == Op::Keep).count()
    };
    let (head, tail) = (same(&mut one.hunk.lines.iter()), same(&mut one.hunk.lines.iter().rev()));
    let changed = one.line + head..one.line + count.saturating_sub(tail).max(head);
    (text.splice(text.span(one.line..one.line + one.old), &new, Breaks::Given), changed)
}

/// Finds the one place of a hunk. If its lines occur more than once, the rest of the patch decides:
/// the block that it names, the end of the file, or the line number.
fn place(text: &Text, hunk: &Hunk) -> Result<(usize, Fit), Miss> {
    let old: Vec<&Line> = hunk.lines.iter().filter(|line| line.op != Op::Add).collect();
    if old.is_empty() {
        return insertion(text, hunk);
    }
    let plain: Vec<&str> =
        old.iter().map(|line| line.text.strip_suffix('\r').unwrap_or(&line.text)).collect();
    let within = blocks(text, &hunk.anchors)?;
    for level in MatchLevel::ALL {
        let mut places: Vec<usize> =
            match plain.iter().all(|line| line.is_empty()) && level == MatchLevel::Exact {
                // Empty lines alone identify no place, unless there is only one like it.
                true => (0..=text.len().saturating_sub(old.len()))
                    .filter(|at| exact(text, *at, &old))
                    .collect(),
                false => places_of(text, &plain, level),
            };
        if hunk.at_end {
            places.retain(|line| line + old.len() == text.len());
        }
        if places.is_empty() {
            continue;
        }
        let all = places.clone();
        if let Some(blocks) = &within {
            places.retain(|line| blocks.iter().any(|block| block.contains(line)));
        }
        let stated = hunk.line.and_then(|line| line.checked_sub(1));
        let one = match places.as_slice() {
            [one] => Some(*one),
            many => stated.filter(|line| many.contains(line)),
        };
        let Some(line) = one else {
            return Err(match (places.is_empty(), hunk.anchors.last()) {
                (true, Some(anchor)) => Miss::Outside(anchor.clone(), all),
                _ => Miss::Many(level, all),
            });
        };
        let fit = match level == MatchLevel::Exact && exact(text, line, &old) {
            true => Fit::Whole,
            false => Fit::By(level),
        };
        return Ok((line, fit));
    }
    Err(Miss::Absent)
}

/// Whether these lines are there with exactly these line endings.
fn exact(text: &Text, at: usize, old: &[&Line]) -> bool {
    at + old.len() <= text.len()
        && old.iter().enumerate().all(|(n, line)| {
            let last = at + n + 1 == text.len() && text.is_open();
            let (given, cut) = match line.text.strip_suffix('\r') {
                Some(text) if !line.open => (text, true),
                _ => (line.text.as_str(), false),
            };
            text.line(at + n) == given && (last || text.returns(at + n) == cut) && last == line.open
        })
}

/// Where to insert the lines of a hunk that contains no existing lines.
fn insertion(text: &Text, hunk: &Hunk) -> Result<(usize, Fit), Miss> {
    if text.is_empty() {
        return Ok((0, Fit::Whole));
    }
    if hunk.at_end && !text.is_open() {
        return Ok((text.len(), Fit::By(MatchLevel::Exact)));
    }
    let starts: Vec<usize> =
        blocks(text, &hunk.anchors)?.unwrap_or_default().iter().map(|block| block.start).collect();
    match starts.as_slice() {
        [one] if one + 1 < text.len() || !text.is_open() => {
            Ok((one + 1, Fit::By(MatchLevel::Exact)))
        }
        [] | [_] => Err(Miss::Absent),
        many => Err(Miss::Many(MatchLevel::Exact, many.to_vec())),
    }
}

fn lines_like(text: &Text, anchor: &str) -> Vec<usize> {
    let is = |line: &str| line.trim() == anchor.trim();
    // The beginning of a line is enough, if no word is cut.
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let starts = |line: &str| {
        let rest = line.trim().strip_prefix(anchor.trim());
        rest.is_some_and(|rest| !rest.starts_with(word) || !anchor.trim().ends_with(word))
    };
    let same: Vec<usize> = (0..text.len()).filter(|n| is(text.line(*n))).collect();
    if same.is_empty() { (0..text.len()).filter(|n| starts(text.line(*n))).collect() } else { same }
}

/// The nested blocks that the anchors open; `None` if there are no anchors.
fn blocks(text: &Text, anchors: &[String]) -> Result<Option<Vec<Range<usize>>>, Miss> {
    let mut within: Option<Vec<Range<usize>>> = None;
    for anchor in anchors.iter().filter(|anchor| !anchor.trim().is_empty()) {
        let mut starts = lines_like(text, anchor);
        if let Some(outer) = &within {
            starts.retain(|line| outer.iter().any(|block| block.contains(line)));
        }
        if starts.is_empty() || starts.len() > ANCHORS {
            return Err(Miss::Anchor(anchor.clone(), starts.len()));
        }
        within = Some(starts.into_iter().map(|line| line..block_end(text, line)).collect());
    }
    Ok(within)
}

/// Where the block that a line opens ends: before the next line that is not deeper and starts
/// something new.
fn block_end(text: &Text, opens: usize) -> usize {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let own = depth(text.line(opens));
    let mut lines = opens + 1..text.len();
    let next = lines.find(|n| {
        let line = text.line(*n);
        // A label, or a word like `else:`, continues the block.
        let word = line
            .trim()
            .strip_suffix(':')
            .is_some_and(|word| word.chars().all(|c| c.is_alphanumeric() || c == '_'));
        !word
            && depth(line) <= own
            && line
                .trim_start()
                .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '@' | '<'))
    });
    next.unwrap_or(text.len())
}

/// Tells the model why a hunk was not placed, and what it needs to rewrite it.
fn explain(which: &str, text: &Text, hunk: &Hunk, miss: &Miss) -> String {
    let old: Vec<&str> = hunk
        .lines
        .iter()
        .filter(|line| line.op != Op::Add)
        .map(|line| line.text.trim_end_matches('\r'))
        .collect();
    if old.is_empty() && matches!(miss, Miss::Absent) {
        return format!(
            "{which}: the hunk only adds lines and does not say where; include existing lines \
             next to them"
        );
    }
    super::explain(
        which,
        text,
        &old,
        miss,
        "name the block with @@, or include more lines around it",
    )
}
