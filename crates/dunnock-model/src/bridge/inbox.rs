//! Parses the commands of copy-and-paste sessions: `[READ path]`, `[WRITE path]` ... `[END]` and so
//! on, each at the start of a line.
//!
//! Chats alter text: they add fences, lists, bold and quotes, and change line breaks and brackets.
//! Where the meaning is still clear, the command is accepted; where it is in doubt, it is refused
//! with a reason, and nothing after an unclosed block is trusted.
//!
//! Invariant: a command runs only if it is complete, between its markers. A body is never changed,
//! except for a fence around it, the indentation of its command and its line breaks (and, in
//! commands to run, typographic quotes).

use super::marks::*;

/// A command, or the reason why it was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxItem {
    Read {
        path: String,
        /// Only these lines.
        lines: Option<(u32, u32)>,
    },
    List {
        path: String,
    },
    Search {
        text: String,
        path: String,
    },
    Write {
        path: String,
        body: String,
    },
    Replace {
        path: String,
        old: String,
        new: String,
    },
    Delete {
        path: String,
    },
    Run {
        script: String,
    },
    Done,
    /// The command is ambiguous or incomplete: the reason, and how to write it correctly.
    Refused(String),
}

/// A parsed inbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inbox {
    /// The text around the commands.
    pub prose: String,
    /// The commands, in order.
    pub said: Vec<InboxItem>,
}

/// Maximum commands in one answer.
const MOST: usize = 200;

/// Parses an inbox.
#[must_use]
pub fn read(text: &str) -> Inbox {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    let doubt =
        |why: &str| Inbox { prose: String::new(), said: vec![InboxItem::Refused(why.to_owned())] };
    let Some(text) = without_thoughts(&text) else {
        return doubt(
            "the answer has thinking tags, and it is not clear where the thinking ends; write it \
             again without them",
        );
    };
    if text
        .lines()
        .any(|line| line.starts_with("DUNNOCK BRIDGE ") || line.trim_end() == "=== RESULTS ===")
    {
        return doubt("this is an outbox or contains one; save only what the chat answered");
    }
    let quoted =
        text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('>'));
    let mut reader = InboxReader {
        lines: text.split('\n').collect(),
        at: 0,
        outer: None,
        comment: false,
        whole: false,
        quoted,
        prose: Vec::new(),
        said: Vec::new(),
    };
    reader.run();
    if reader.said.is_empty() {
        let why = "no command was found. Write each command at the start of a line, for instance \
                   [READ README.md]; when the task is done, write [DONE]";
        reader.said.push(InboxItem::Refused(why.into()));
    }
    // [DONE] does not count if any command was refused.
    if reader.said.iter().any(|said| matches!(said, InboxItem::Refused(_))) {
        for said in reader.said.iter_mut().filter(|said| **said == InboxItem::Done) {
            *said = InboxItem::Refused(
                "[DONE] does not count: a command was refused. Correct that first".into(),
            );
        }
    }
    let prose = reader.prose.join("\n").trim().to_owned();
    Inbox { prose, said: reader.said }
}

/// Removes the reasoning before the answer; `None` if it is not clear where the reasoning ends.
fn without_thoughts(text: &str) -> Option<String> {
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        let inside = text.trim_start().strip_prefix(open);
        match (inside, text.matches(close).count()) {
            // Unclosed reasoning is the whole text.
            (Some(_), 0) => return Some(String::new()),
            (Some(inside), 1) => return inside.split_once(close).map(|(_, rest)| rest.to_owned()),
            (None, 0) => {}
            (None, _) if text.contains(open) => {} // text that mentions the tags
            // Some chats drop the opening tag. But a closing tag may also be part of a file's
            // content.
            (None, 1) => {
                let lone = format!("\n{close}\n");
                let Some((before, after)) = text.split_once(&lone) else { continue };
                if before
                    .lines()
                    .any(|line| mark_of(line).is_some_and(|found| opens(&found, false)))
                {
                    return None;
                }
                return Some(after.to_owned());
            }
            (Some(_) | None, _) => return None,
        }
    }
    Some(text.to_owned())
}

struct InboxReader<'a> {
    lines: Vec<&'a str>,
    at: usize,
    /// The open fence around commands.
    outer: Option<(char, usize)>,
    /// Inside an HTML comment, which is invisible in the chat.
    comment: bool,
    /// The last body was the whole content of a fence.
    whole: bool,
    /// The whole answer is quoted, so quotation marks can be ignored.
    quoted: bool,
    prose: Vec<&'a str>,
    said: Vec<InboxItem>,
}

/// Where a body ends.
enum Until {
    End,
    With,
}

/// How a body is fenced.
enum Fenced {
    /// It is the whole content of a fence: the first and last line of the fence, and the line after
    /// the closing marker.
    Whole {
        first: usize,
        last: usize,
        next: usize,
    },
    /// A fence was opened but not closed.
    Open,
    Not,
}

/// Why a body is not closed properly.
enum UnclosedBody {
    /// The text ends first.
    Cut,
    /// Another block begins first.
    Another,
    /// `[WITH]` is missing or occurs twice.
    NoWith,
}

impl<'a> InboxReader<'a> {
    fn run(&mut self) {
        while let Some(line) = self.lines.get(self.at).copied() {
            self.at += 1;
            let was_comment = self.comment;
            self.comment = match (line.rfind("<!--"), line.rfind("-->")) {
                (Some(open), Some(close)) => open > close,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => was_comment,
            };
            let Some(marked) = mark_of(line) else {
                if let Some((word, block)) = half_marked(line) {
                    self.refuse(&format!(
                        "[{word} has no closing bracket on its line, so its meaning is unclear"
                    ));
                    if block {
                        return; // its body could be mistaken for commands
                    }
                    continue;
                }
                match (fence(line), self.outer) {
                    (Some((sign, long, rest)), Some((open, least)))
                        if sign == open && long >= least && rest.is_empty() =>
                    {
                        self.outer = None;
                    }
                    (Some((sign, long, _)), None) => self.outer = Some((sign, long)),
                    _ => self.prose.push(line),
                }
                continue;
            };
            if self.said.len() >= MOST {
                return self.refuse(&format!(
                    "an answer may contain at most {MOST} commands; write the rest in the next one"
                ));
            }
            if self.said.last() == Some(&InboxItem::Done) && is_ours(&marked.word) {
                return self.refuse(
                    "commands after [DONE] are not run. Write [DONE] alone, when nothing is left \
                     to do",
                );
            }
            if is_ours(&marked.word) && (was_comment || (marked.quoted && !self.quoted)) {
                let why = if was_comment { "a comment" } else { "a quotation" };
                self.refuse(&format!(
                    "[{}] is inside {why}, so it may not be meant as a command",
                    marked.word
                ));
                if opens(&marked, false) {
                    return;
                }
                continue;
            }
            if !self.command(&marked, line) {
                return;
            }
        }
    }

    /// Whether the answer repeats placeholders from the instructions.
    fn echoes(&self) -> bool {
        self.said
            .iter()
            .any(|said| matches!(said, InboxItem::Refused(why) if why.contains("placeholder")))
    }

    fn refuse(&mut self, why: &str) {
        self.said.push(InboxItem::Refused(why.to_owned()));
    }

    /// Processes a marked line. Returns whether the text after it can still be trusted.
    fn command(&mut self, marked: &Marked<'a>, line: &'a str) -> bool {
        let word = marked.word.as_str();
        if !is_ours(word) {
            let unknown = marked.capital
                && word.len() > 1
                && !PROSE.contains(&word)
                && !marked.behind.starts_with('(');
            if unknown {
                self.refuse(&format!(
                    "[{word}] is an unknown command; use READ, LIST, SEARCH, WRITE, REPLACE, \
                     DELETE, RUN or DONE"
                ));
            } else {
                self.prose.push(line);
            }
            return true;
        }
        // The rest of the line shows whether it is a command, or part of a sentence, a link or a
        // list of finished work.
        let opener = matches!(word, "WRITE" | "REPLACE" | "RUN");
        let alone = only_marks(marked.behind) || (opener && ends_here(marked.behind).is_some());
        let looks = matches!(word, "READ" | "LIST" | "SEARCH");
        let behind = marked
            .behind
            .strip_prefix(':')
            .filter(|rest| looks && !rest.starts_with('/'))
            .map(|rest| format!(" - {rest}"));
        let mild =
            (looks || word == "DONE") && is_remark(behind.as_deref().unwrap_or(marked.behind));
        if !alone && !mild {
            let link = marked.behind.starts_with(['(', '[']);
            if (!marked.capital && (link || !opener)) || (word == "DONE" && !link) {
                self.prose.push(line);
                return true;
            }
            self.refuse(&format!(
                "[{word}] is followed by other text on its line, so it may be part of a sentence; \
                 write it on a line of its own"
            ));
            return !opener;
        }
        match word {
            "DONE" => {
                if self.echoes() {
                    self.refuse(
                        "[DONE] appears next to placeholders from the instructions, so it may be \
                         copied from them",
                    );
                } else if marked.rest.is_empty() {
                    self.said.push(InboxItem::Done);
                } else {
                    self.refuse("[DONE] takes no argument; write it alone when the task is done");
                }
            }
            "READ" | "DELETE" | "LIST" => match (word, path(&marked.rest)) {
                ("LIST", _) if marked.rest.is_empty() => {
                    self.said.push(InboxItem::List { path: ".".into() })
                }
                ("LIST", Ok(path)) => self.said.push(InboxItem::List { path }),
                ("READ", Ok(path)) => {
                    let (path, lines) = with_lines(path);
                    self.said.push(InboxItem::Read { path, lines });
                }
                (_, Ok(path)) => self.said.push(InboxItem::Delete { path }),
                (_, Err(why)) => self.refuse(&format!("[{word}] {why}")),
            },
            "SEARCH" => self.search(&marked.rest, marked.capital),
            "WRITE" | "REPLACE" | "RUN" => return self.block(marked),
            _ => return self.stray(word),
        }
        true
    }

    /// Handles a marker that closes nothing. If a block was closed before it, it is no longer clear
    /// where that block ended.
    fn stray(&mut self, word: &str) -> bool {
        let block = |said: &InboxItem| {
            matches!(
                said,
                InboxItem::Write { .. } | InboxItem::Replace { .. } | InboxItem::Run { .. }
            )
        };
        match self.said.iter().rposition(block) {
            Some(at) => {
                self.said.truncate(at);
                self.refuse(&format!(
                    "[{word}] comes after a block that was already closed, so it is not clear \
                     where that block ended; neither the block nor anything after it was run. Put \
                     the body into a code fence"
                ));
                false
            }
            None => {
                let why = match word {
                    "WITH" => "[WITH] is misplaced: it belongs between [REPLACE path] and [END]"
                        .to_owned(),
                    _ => format!("[{word}] closes nothing: no block was opened before it"),
                };
                self.refuse(&why);
                true
            }
        }
    }

    fn search(&mut self, rest: &str, capital: bool) {
        let sign = if capital { " IN " } else { " in " };
        let (text, place) = match rest.rsplit_once(sign).or_else(|| rest.rsplit_once(" IN ")) {
            Some((text, place)) => (unquoted(text), Some(place)),
            None => (unquoted(rest), None),
        };
        let place = place.map(path).transpose();
        match place {
            _ if text.trim().is_empty() => {
                self.refuse("[SEARCH] needs the text to look for: [SEARCH text IN path]")
            }
            Err(why) => self.refuse(&format!("[SEARCH] {why}")),
            Ok(None) if PLACEHOLDERS.contains(&text.as_str()) => {
                self.refuse(
                    "[SEARCH] repeats a placeholder from the instructions; write the text to look \
                     for",
                );
            }
            Ok(place) => {
                self.said.push(InboxItem::Search { text, path: place.unwrap_or_default() })
            }
        }
    }

    /// Processes a command with a body. Returns whether the text after it can still be trusted.
    fn block(&mut self, marked: &Marked<'a>) -> bool {
        let word = marked.word.as_str();
        let name = match word {
            "RUN" if marked.rest.is_empty() => Ok(String::new()),
            "RUN" => Err("takes no argument: write the command on the lines between [RUN] and \
                          [END]"
                .to_owned()),
            _ => path(&marked.rest),
        };
        // All on one line.
        if let Some(inside) = ends_here(marked.behind) {
            match (word, name) {
                ("RUN", Ok(_)) => self.ready_to_run(inside.to_owned()),
                (_, Err(why)) => self.refuse(&format!("[{word}] {why}")),
                _ => self.refuse(&format!(
                    "[{word}] needs its text on separate lines, and [END] on the last line"
                )),
            }
            return true;
        }
        let first = if word == "REPLACE" { Until::With } else { Until::End };
        let opened = self.outer;
        let body = match self.body(marked, &first) {
            Ok(body) => body,
            Err(open) => return self.unclosed(word, &open),
        };
        if word == "REPLACE" {
            let new = match self.body(marked, &Until::End) {
                Ok(new) => new,
                Err(open) => return self.unclosed(word, &open),
            };
            let (old, new) = both_unfenced(body, new);
            let again = |line: &String| {
                mark_of(line).is_some_and(|m| m.word == "WITH" && m.capital && m.rest.is_empty())
            };
            match name {
                _ if new.iter().any(again) => drop(self.unclosed(word, &UnclosedBody::NoWith)),
                Ok(_) if old.iter().all(|line| line.trim().is_empty()) => {
                    self.refuse(
                        "[REPLACE] needs the lines to be replaced between [REPLACE path] and \
                         [WITH]",
                    );
                }
                Ok(path) => {
                    let new = self.without_outer(new, opened);
                    self.said.push(InboxItem::Replace {
                        path,
                        old: old.join("\n"),
                        new: new.join("\n"),
                    });
                }
                Err(why) => self.refuse(&format!("[REPLACE] {why}")),
            }
            return true;
        }
        let body = self.without_outer(body, opened).join("\n");
        match name {
            Err(why) => self.refuse(&format!("[{word}] {why}")),
            Ok(_) if word == "RUN" => self.ready_to_run(body),
            Ok(path) => self.said.push(InboxItem::Write { path, body }),
        }
        true
    }

    fn unclosed(&mut self, word: &str, open: &UnclosedBody) -> bool {
        let why = match open {
            UnclosedBody::Cut => {
                format!(
                    "[{word}] was not closed: its [END] is missing, so the answer may have been \
                     cut off"
                )
            }
            UnclosedBody::Another => format!(
                "[{word}] was not closed: another block begins before its [END]. Put the body \
                 into a code fence"
            ),
            // Its end was found, so the text after it can be trusted.
            UnclosedBody::NoWith => {
                self.refuse(
                    "[REPLACE] needs one [WITH]: write the old lines, [WITH], the new lines, \
                     [END]. It was not run",
                );
                return true;
            }
        };
        self.refuse(&format!("{why}. Neither it nor anything after it was run"));
        self.at = self.lines.len();
        false
    }

    /// Takes the lines up to a marker, and moves past it.
    fn body(&mut self, marked: &Marked<'a>, until: &Until) -> Result<Vec<String>, UnclosedBody> {
        let from = self.at;
        self.whole = false;
        match self.fenced(marked, from, until) {
            Fenced::Whole { first, last, next } => {
                let inside = &self.lines[first + 1..last];
                // Our markers inside a fence are content. But an [END] that closes nothing inside,
                // followed by another block, was meant as a real marker.
                let mut open = 0_i32;
                for found in inside.iter().filter_map(|line| mark_of(line)) {
                    if opens(&found, marked.capital) && open < 0 {
                        return Err(UnclosedBody::Another);
                    }
                    open += i32::from(opens(&found, marked.capital))
                        - i32::from(is_end(&found, marked.capital));
                }
                self.at = next;
                self.whole = true;
                return Ok(shifted(inside, marked));
            }
            Fenced::Open => return Err(UnclosedBody::Cut),
            Fenced::Not => {}
        }
        for at in from..self.lines.len() {
            let Some(found) = mark_of(self.lines[at]) else { continue };
            let with = found.word == "WITH" && found.rest.is_empty() && only_marks(found.behind);
            match until {
                Until::End if is_end(&found, marked.capital) => {
                    return Ok(self.taken(from, at, marked));
                }
                Until::With if with => return Ok(self.taken(from, at, marked)),
                Until::With if is_end(&found, marked.capital) => {
                    self.at = at + 1;
                    return Err(UnclosedBody::NoWith);
                }
                Until::End | Until::With => {}
            }
            if opens(&found, marked.capital) {
                return Err(UnclosedBody::Another);
            }
        }
        Err(UnclosedBody::Cut)
    }

    fn taken(&mut self, from: usize, to: usize, marked: &Marked<'a>) -> Vec<String> {
        self.at = to + 1;
        let lines = shifted(&self.lines[from..to], marked);
        without_buttons(lines)
    }

    /// Whether one fence encloses the whole body, and where the fence and the marker after it end.
    fn fenced(&self, marked: &Marked<'a>, from: usize, until: &Until) -> Fenced {
        let filled =
            |from: usize| (from..self.lines.len()).find(|at| !self.lines[*at].trim().is_empty());
        let Some(mut first) = filled(from) else { return Fenced::Not };
        // The label of a chat's copy button may come before the fence.
        while is_button(self.lines[first]) {
            let Some(next) = filled(first + 1) else { return Fenced::Not };
            first = next;
        }
        let Some((sign, long, label)) = fence(self.lines[first]) else { return Fenced::Not };
        let is_mark = |at: usize| {
            mark_of(self.lines[at]).is_some_and(|found| match until {
                Until::End => is_end(&found, marked.capital),
                Until::With => found.word == "WITH" && found.rest.is_empty(),
            })
        };
        let whole = |last: usize, mark: usize| Fenced::Whole { first, last, next: mark + 1 };
        // Markdown has fences of its own, so the last one closes.
        let is_text = matches!(label, "markdown" | "md");
        let mut depth = 1;
        for at in first + 1..self.lines.len() {
            // The marker is inside the fence, right before its end: a slip, but unambiguous.
            if depth == 1
                && is_mark(at)
                && let Some(next) = filled(at + 1)
                && fence(self.lines[next])
                    .is_some_and(|(s, l, rest)| s == sign && l >= long && rest.is_empty())
                && !filled(next + 1).is_some_and(is_mark)
            {
                return Fenced::Whole { first, last: at, next: next + 1 };
            }
            let Some((s, l, rest)) = fence(self.lines[at]) else { continue };
            if s != sign || l < long {
                continue;
            }
            depth = if rest.is_empty() { depth - 1 } else { depth + 1 };
            let mark = filled(at + 1).filter(|next| is_mark(*next));
            match mark {
                Some(mark) if rest.is_empty() && (depth == 0 || is_text) => return whole(at, mark),
                _ if depth == 0 && !is_text => break,
                _ => {}
            }
        }
        // Fences that belong to the text come in pairs before its marker; an unpaired one means
        // that the answer was cut off.
        let mut fences = 0;
        for at in first..self.lines.len() {
            if is_mark(at) {
                return if fences % 2 == 0 || matches!(until, Until::With) {
                    Fenced::Not
                } else {
                    Fenced::Open
                };
            }
            fences +=
                usize::from(fence(self.lines[at]).is_some_and(|(s, l, _)| s == sign && l >= long));
        }
        Fenced::Not
    }

    /// Removes the end of a fence that was opened before the command and closed before its marker.
    fn without_outer(
        &mut self,
        mut body: Vec<String>,
        opened: Option<(char, usize)>,
    ) -> Vec<String> {
        let Some((sign, long)) = opened else { return body };
        let fences = body
            .iter()
            .filter(|line| fence(line).is_some_and(|(s, l, _)| s == sign && l >= long))
            .count();
        let last = body.iter().rposition(|line| !line.trim().is_empty());
        if let Some(last) = last
            && fences % 2 == 1
            && body
                .get(last)
                .and_then(|line| fence(line))
                .is_some_and(|(s, l, rest)| s == sign && l >= long && rest.is_empty())
        {
            body.truncate(last);
            self.outer = None;
        }
        body
    }

    fn ready_to_run(&mut self, script: String) {
        match runnable(&script, self.whole) {
            Ok(script) => self.said.push(InboxItem::Run { script }),
            Err(why) => self.refuse(&format!("[RUN] {why}")),
        }
    }
}
