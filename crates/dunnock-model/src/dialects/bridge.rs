//! Commands in words that a person carries: `[READ path]`, `[WRITE path]` ... `[END]` and the like, each at the start of a line.
//!
//! Chats do things to text: fences, lists, bold, quotes, other line breaks, other brackets. What such a thing leaves beyond
//! doubt is taken as it was meant; what is in doubt is refused with words, and nothing behind an open block is believed.
//!
//! Invariant: what is run stood there as a whole, between its marks. A body is never changed, but for a fence around it, the
//! indentation of its command and its line breaks (and, for commands to be run, quotes that a chat made pretty).

use super::marks::*;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in the table of commands above")]
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
    /// What was meant cannot be told, or was not whole: why, and how to say it.
    Refused(String),
}

/// An inbox, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inbox {
    /// The words around the commands.
    pub prose: String,
    /// The commands, in order.
    pub said: Vec<InboxItem>,
}

/// Commands in one answer that are considered.
const MOST: usize = 200;

/// Reads an inbox.
#[must_use]
pub fn read(text: &str) -> Inbox {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    let doubt = |why: &str| Inbox { prose: String::new(), said: vec![InboxItem::Refused(why.to_owned())] };
    let Some(text) = without_thoughts(&text) else {
        return doubt(
            "marks of a thought stand where it is not clear what they end; write the answer again without them",
        );
    };
    if text.lines().any(|line| line.starts_with("DUNNOCK BRIDGE ") || line.trim_end() == "=== RESULTS ===") {
        return doubt("this is an outbox, or repeats one; save what the chat answered, and nothing else");
    }
    let quoted = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('>'));
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
        let why = "no command was found. Write each command at the start of a line, for instance [READ README.md]; when the task is \
                   done, write [DONE]";
        reader.said.push(InboxItem::Refused(why.into()));
    }
    // Who was not understood in all is not done.
    if reader.said.iter().any(|said| matches!(said, InboxItem::Refused(_))) {
        for said in reader.said.iter_mut().filter(|said| **said == InboxItem::Done) {
            *said = InboxItem::Refused("[DONE] does not count beside what was refused; mend that first".into());
        }
    }
    let prose = reader.prose.join("\n").trim().to_owned();
    Inbox { prose, said: reader.said }
}

/// Without what a model thought before it answered; nothing, where it is not clear what was thought.
fn without_thoughts(text: &str) -> Option<String> {
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        let inside = text.trim_start().strip_prefix(open);
        match (inside, text.matches(close).count()) {
            // A thought that does not end is all there is.
            (Some(_), 0) => return Some(String::new()),
            (Some(inside), 1) => return inside.split_once(close).map(|(_, rest)| rest.to_owned()),
            (None, 0) => {}
            (None, _) if text.contains(open) => {} // a text about thoughts
            // Some chats swallow the mark at the beginning. A text that is written to a file may hold one, too.
            (None, 1) => {
                let lone = format!("\n{close}\n");
                let Some((before, after)) = text.split_once(&lone) else { continue };
                if before.lines().any(|line| mark_of(line).is_some_and(|found| opens(&found, false))) {
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
    /// The fence around commands that is open.
    outer: Option<(char, usize)>,
    /// In a comment, which nobody who reads the chat sees.
    comment: bool,
    /// The last body was all that a fence held.
    whole: bool,
    /// All of the answer is quoted, so that a quotation means nothing.
    quoted: bool,
    prose: Vec<&'a str>,
    said: Vec<InboxItem>,
}

/// Where a body ends.
enum Until {
    End,
    With,
}

/// How a body stands to fences.
enum Fenced {
    /// It is all that is inside of one: the lines of the fence, and where what follows its mark begins.
    Whole {
        first: usize,
        last: usize,
        next: usize,
    },
    /// One was opened and not closed.
    Open,
    Not,
}

/// Why a body has no end.
enum Open {
    /// The text ends before it.
    Cut,
    /// Another block begins before it.
    Another,
    /// It ends without its second half, or has two of them.
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
                    self.refuse(&format!("[{word} has no closing bracket on its line, so what is meant is not clear"));
                    if block {
                        return; // its body would be taken for commands
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
                return self.refuse(&format!("an answer may have {MOST} commands; ask for the rest in the next one"));
            }
            if self.said.last() == Some(&InboxItem::Done) && is_ours(&marked.word) {
                return self
                    .refuse("what stands behind [DONE] is not run. Write [DONE] alone, when nothing is left to do");
            }
            if is_ours(&marked.word) && (was_comment || (marked.quoted && !self.quoted)) {
                let why = if was_comment { "a comment" } else { "a quotation" };
                self.refuse(&format!("[{}] stands in {why}, so that it may not be meant", marked.word));
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

    /// Whether the answer repeats the instructions.
    fn echoes(&self) -> bool {
        self.said.iter().any(|said| matches!(said, InboxItem::Refused(why) if why.contains("placeholder")))
    }

    fn refuse(&mut self, why: &str) {
        self.said.push(InboxItem::Refused(why.to_owned()));
    }

    /// Takes a marked line in. Whether what follows can still be believed.
    fn command(&mut self, marked: &Marked<'a>, line: &'a str) -> bool {
        let word = marked.word.as_str();
        if !is_ours(word) {
            let unknown = marked.capital && word.len() > 1 && !PROSE.contains(&word) && !marked.behind.starts_with('(');
            if unknown {
                self.refuse(&format!(
                    "[{word}] is an unknown command; there are READ, LIST, SEARCH, WRITE, REPLACE, DELETE, RUN and DONE"
                ));
            } else {
                self.prose.push(line);
            }
            return true;
        }
        // What follows on the line decides whether it is a command or a part of a sentence, a link, a list of what was done.
        let opener = matches!(word, "WRITE" | "REPLACE" | "RUN");
        let alone = only_marks(marked.behind) || (opener && ends_here(marked.behind).is_some());
        let looks = matches!(word, "READ" | "LIST" | "SEARCH");
        let behind = marked
            .behind
            .strip_prefix(':')
            .filter(|rest| looks && !rest.starts_with('/'))
            .map(|rest| format!(" - {rest}"));
        let mild = (looks || word == "DONE") && is_remark(behind.as_deref().unwrap_or(marked.behind));
        if !alone && !mild {
            let link = marked.behind.starts_with(['(', '[']);
            if (!marked.capital && (link || !opener)) || (word == "DONE" && !link) {
                self.prose.push(line);
                return true;
            }
            self.refuse(&format!(
                "[{word}] is followed by something on its line, so that it may be part of a sentence; write it on a line of its own"
            ));
            return !opener;
        }
        match word {
            "DONE" => {
                if self.echoes() {
                    self.refuse(
                        "[DONE] stands beside placeholders of the instructions, so that it may be a part of them",
                    );
                } else if marked.rest.is_empty() {
                    self.said.push(InboxItem::Done);
                } else {
                    self.refuse("[DONE] takes nothing; write it alone when the task is done");
                }
            }
            "READ" | "DELETE" | "LIST" => match (word, path(&marked.rest)) {
                ("LIST", _) if marked.rest.is_empty() => self.said.push(InboxItem::List { path: ".".into() }),
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

    /// A mark that closes nothing: if a block was closed before it, where that ended is not clear any more.
    fn stray(&mut self, word: &str) -> bool {
        let block = |said: &InboxItem| {
            matches!(said, InboxItem::Write { .. } | InboxItem::Replace { .. } | InboxItem::Run { .. })
        };
        match self.said.iter().rposition(block) {
            Some(at) => {
                self.said.truncate(at);
                self.refuse(&format!(
                    "[{word}] stands alone behind a block that was closed before, so that it is not clear where that ended; neither it nor \
                     anything behind it was run. Put the body into a code fence"
                ));
                false
            }
            None => {
                let why = match word {
                    "WITH" => "[WITH] stands alone: it belongs between [REPLACE path] and [END]".to_owned(),
                    _ => format!("[{word}] stands alone: nothing was opened before it"),
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
            _ if text.trim().is_empty() => self.refuse("[SEARCH] needs the text to look for: [SEARCH text IN path]"),
            Err(why) => self.refuse(&format!("[SEARCH] {why}")),
            Ok(None) if PLACEHOLDERS.contains(&text.as_str()) => {
                self.refuse("[SEARCH] names the placeholder of the instructions; write what is really to be found");
            }
            Ok(place) => self.said.push(InboxItem::Search { text, path: place.unwrap_or_default() }),
        }
    }

    /// A command with a body. Whether its end was found.
    fn block(&mut self, marked: &Marked<'a>) -> bool {
        let word = marked.word.as_str();
        let name = match word {
            "RUN" if marked.rest.is_empty() => Ok(String::new()),
            "RUN" => Err("takes nothing: write the command on the lines between [RUN] and [END]".to_owned()),
            _ => path(&marked.rest),
        };
        // All on one line.
        if let Some(inside) = ends_here(marked.behind) {
            match (word, name) {
                ("RUN", Ok(_)) => self.ready_to_run(inside.to_owned()),
                (_, Err(why)) => self.refuse(&format!("[{word}] {why}")),
                _ => self.refuse(&format!("[{word}] needs its text on lines of its own, and [END] on the last")),
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
            let again =
                |line: &String| mark_of(line).is_some_and(|m| m.word == "WITH" && m.capital && m.rest.is_empty());
            match name {
                _ if new.iter().any(again) => drop(self.unclosed(word, &Open::NoWith)),
                Ok(_) if old.iter().all(|line| line.trim().is_empty()) => {
                    self.refuse("[REPLACE] needs the lines to be replaced between [REPLACE path] and [WITH]");
                }
                Ok(path) => {
                    let new = self.without_outer(new, opened);
                    self.said.push(InboxItem::Replace { path, old: old.join("\n"), new: new.join("\n") });
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

    fn unclosed(&mut self, word: &str, open: &Open) -> bool {
        let why = match open {
            Open::Cut => format!("[{word}] was not closed: its [END] is missing, so the answer may have been cut off"),
            Open::Another => format!(
                "[{word}] was not closed: another block begins before its [END]. Put the body into a code fence"
            ),
            // Its end was found: what follows it is clear.
            Open::NoWith => {
                self.refuse(
                    "[REPLACE] needs one [WITH]: write the old lines, [WITH], the new lines, [END]. It was not carried out",
                );
                return true;
            }
        };
        self.refuse(&format!("{why}. Neither it nor anything behind it was run"));
        self.at = self.lines.len();
        false
    }

    /// The lines up to a mark, which is passed.
    fn body(&mut self, marked: &Marked<'a>, until: &Until) -> Result<Vec<String>, Open> {
        let from = self.at;
        self.whole = false;
        match self.fenced(marked, from, until) {
            Fenced::Whole { first, last, next } => {
                let inside = &self.lines[first + 1..last];
                // Marks of ours in a fence are content. An end that nothing inside opens, with another block behind it, is one
                // that was meant for us.
                let mut open = 0_i32;
                for found in inside.iter().filter_map(|line| mark_of(line)) {
                    if opens(&found, marked.capital) && open < 0 {
                        return Err(Open::Another);
                    }
                    open += i32::from(opens(&found, marked.capital)) - i32::from(is_end(&found, marked.capital));
                }
                self.at = next;
                self.whole = true;
                return Ok(shifted(inside, marked));
            }
            Fenced::Open => return Err(Open::Cut),
            Fenced::Not => {}
        }
        for at in from..self.lines.len() {
            let Some(found) = mark_of(self.lines[at]) else { continue };
            let with = found.word == "WITH" && found.rest.is_empty() && only_marks(found.behind);
            match until {
                Until::End if is_end(&found, marked.capital) => return Ok(self.taken(from, at, marked)),
                Until::With if with => return Ok(self.taken(from, at, marked)),
                Until::With if is_end(&found, marked.capital) => {
                    self.at = at + 1;
                    return Err(Open::NoWith);
                }
                Until::End | Until::With => {}
            }
            if opens(&found, marked.capital) {
                return Err(Open::Another);
            }
        }
        Err(Open::Cut)
    }

    fn taken(&mut self, from: usize, to: usize, marked: &Marked<'a>) -> Vec<String> {
        self.at = to + 1;
        let lines = shifted(&self.lines[from..to], marked);
        without_buttons(lines)
    }

    /// Whether a body is wholly in one fence, and where that and the mark behind it end.
    fn fenced(&self, marked: &Marked<'a>, from: usize, until: &Until) -> Fenced {
        let filled = |from: usize| (from..self.lines.len()).find(|at| !self.lines[*at].trim().is_empty());
        let Some(mut first) = filled(from) else { return Fenced::Not };
        // What a button of a chat leaves stands before the fence, too.
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
        // Of a text that has fences of its own the last one closes.
        let is_text = matches!(label, "markdown" | "md");
        let mut depth = 1;
        for at in first + 1..self.lines.len() {
            // Inside of the fence, right before its end: a slip that leaves no doubt.
            if depth == 1
                && is_mark(at)
                && let Some(next) = filled(at + 1)
                && fence(self.lines[next]).is_some_and(|(s, l, rest)| s == sign && l >= long && rest.is_empty())
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
        // Fences that are a part of the text come in pairs before its mark; one that stays open is an answer that was cut off.
        let mut fences = 0;
        for at in first..self.lines.len() {
            if is_mark(at) {
                return if fences % 2 == 0 || matches!(until, Until::With) { Fenced::Not } else { Fenced::Open };
            }
            fences += usize::from(fence(self.lines[at]).is_some_and(|(s, l, _)| s == sign && l >= long));
        }
        Fenced::Not
    }

    /// A fence that was opened before the command and closed before its mark is no part of the body.
    fn without_outer(&mut self, mut body: Vec<String>, opened: Option<(char, usize)>) -> Vec<String> {
        let Some((sign, long)) = opened else { return body };
        let fences = body.iter().filter(|line| fence(line).is_some_and(|(s, l, _)| s == sign && l >= long)).count();
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
