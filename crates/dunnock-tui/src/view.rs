//! Draws the part of the screen that changes: everything below the scrollback.

use crate::calls;
use crate::lines::mode;
use crate::panel::{self, Stage};
use crate::session::Question;
use crate::state::{Focus, State};
use crate::text::{Line, Span, Style, Tone};
use crate::words::{about, first_line, short, so_far};
use dunnock_proto::{Isolation, count};

/// The live area: its lines and its cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Lines from top to bottom.
    pub lines: Vec<Line>,
    /// Row and column of the cursor; `None` hides it.
    pub cursor: Option<(usize, usize)>,
}

/// Rows of the menu below the input field.
const MENU: usize = 8;
/// The most waiting calls that are listed.
const QUEUED: usize = 4;
/// Frames of the spinner.
const SPIN: [&str; 4] = ["◐", "◓", "◑", "◒"];
/// The most questions listed above the one shown.
const LISTED: usize = 5;

fn rows(s: &State) -> usize {
    usize::from(s.size.1.max(2)) - 1
}

/// Columns and rows for the text of the pager, between its heading and its keys.
pub(crate) fn pager_size(s: &State) -> (usize, usize) {
    (s.columns(), rows(s).saturating_sub(2).max(1))
}

/// Draws the live area.
#[must_use]
pub fn view(s: &State, now: u64) -> View {
    let columns = s.columns();
    if let Some(pager) = &s.pager {
        return View { lines: pager.lines(), cursor: None };
    }
    let mut below = View::default();
    if let Some(pick) = &s.pick {
        below.lines.push(rule(columns));
        below.lines.extend(pick.lines(columns, rows(s).saturating_sub(2).min(16)));
    } else if s.login.is_open() {
        below.lines.push(rule(columns));
        let (lines, cursor) = s.login.view(columns, rows(s).saturating_sub(2).min(20));
        below.cursor = cursor.map(|(row, column)| (row + below.lines.len(), column));
        below.lines.extend(lines);
    } else {
        if s.question().is_some() {
            question(s, columns, &mut below);
        }
        if s.question().is_none() || s.focus == Focus::Field || !s.field.is_empty() {
            field(s, columns, &mut below);
        }
        menu(s, columns, &mut below);
    }
    below.lines.push(status(s, columns, now));
    let room = rows(s).saturating_sub(below.lines.len());
    let mut above = above(s, columns, now, room);
    let hidden = above.len().saturating_sub(room);
    above.drain(..hidden);
    let cursor = below.cursor.map(|(row, column)| (row + above.len(), column));
    above.extend(below.lines);
    above.truncate(rows(s));
    View { lines: above, cursor }
}

/// Work in progress: the answer, running commands, the plan, queued prompts.
fn above(s: &State, columns: usize, now: u64, room: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    // While the past is being read, nothing is in progress.
    if s.catch_up.is_some() {
        return lines;
    }
    if !s.welcomed {
        lines.extend(welcome(s));
    }
    lines.extend(s.session.under_way(columns));
    let sandbox = !matches!(s.session.confined(), Some(Isolation::D) | None);
    let running: Vec<_> = s.session.running().collect();
    let tail = if running.len() > 3 { 0 } else { 3.min(room / 3) };
    for call in running {
        let ms = now.saturating_sub(call.began.unwrap_or(now));
        let spot = if sandbox && !call.unsandboxed { "sandboxed" } else { "unsandboxed" };
        lines.extend(calls::running(&call.part, call.harness, &call.tail, ms, spot, columns, tail));
    }
    // Calls that change something run one after another.
    let queued: Vec<_> = s.session.queued().collect();
    for call in queued.iter().take(QUEUED) {
        let title = first_line(&calls::title(&call.part, call.harness));
        let left = Line::of(" ○ ", Tone::Quiet).and(&title, Tone::Quiet);
        lines.push(left.beside(Line::of("waiting", Tone::Quiet), columns));
    }
    if queued.len() > QUEUED {
        let more = format!("   … {} waiting", count(queued.len() - QUEUED, "more call"));
        lines.push(Line::of(&more, Tone::Quiet));
    }
    if let Some(shell) = &s.shell {
        let time = so_far(if shell.began == 0 { 0 } else { now.saturating_sub(shell.began) });
        let left = Line::of(" ! ", Style::of(Tone::User).bold())
            .and(&first_line(&shell.command), Tone::User);
        lines.push(left.beside(Line::of(&time, Tone::Quiet), columns));
        lines.extend(calls::output(&shell.text, 6, columns, ""));
    }
    if !s.session.plan.is_empty() {
        lines.push(Line::empty());
    }
    for step in &s.session.plan {
        let (mark, tone) = match step.state.as_str() {
            "done" => ("☑", Tone::Quiet),
            "active" => ("▸", Tone::Accent),
            _ => ("☐", Tone::Text),
        };
        lines.push(
            Line::of(&format!(" {mark} "), tone).and(&first_line(&step.text), tone).cut(columns),
        );
    }
    for (_, text) in &s.session.waiting {
        lines.push(
            Line::of(" > ", Tone::User)
                .and(&first_line(text), Tone::User)
                .beside(Line::of("(queued for the next step)", Tone::Quiet), columns),
        );
    }
    for (text, _) in &s.unsent {
        lines.push(Line::of(&format!(" > {}", first_line(text)), Tone::User).cut(columns));
    }
    lines
}

fn rule(columns: usize) -> Line {
    Line::of(&"─".repeat(columns), Tone::Quiet)
}

fn field(s: &State, columns: usize, below: &mut View) {
    below.lines.push(rule(columns));
    let focused = s.focus == Focus::Field;
    let shown = s.field.rows(columns.saturating_sub(4));
    let most = field_rows(s);
    let from = (shown.cursor.0 + 1).saturating_sub(most);
    let mark = if s.field.text().starts_with('!') { " ! " } else { " > " };
    let first = below.lines.len();
    for (n, row) in shown.rows.iter().enumerate().skip(from).take(most) {
        let mark = if n == 0 { mark } else { "   " };
        let mut line =
            Line::of(mark, Style::of(if focused { Tone::Accent } else { Tone::Quiet }).bold())
                .and(row, Tone::Text);
        if s.field.is_empty() {
            line = line.and(placeholder(s), Tone::Quiet).cut(columns);
        }
        below.lines.push(line);
    }
    if focused {
        below.cursor = Some((first + shown.cursor.0 - from, 3 + shown.cursor.1));
    }
}

/// The most rows of the input field.
fn field_rows(s: &State) -> usize {
    (rows(s) / 3).max(3)
}

fn placeholder(s: &State) -> &'static str {
    match s.session.working {
        true if s.session.questions.is_empty() => "type to steer it; esc to stop",
        true => "type here, or press tab to answer",
        false if s.session.id.is_some() => "what next?",
        false => "what would you like to do?",
    }
}

fn menu(s: &State, columns: usize, below: &mut View) {
    let Some(menu) = &s.menu else { return };
    let from = (menu.chosen + 1).saturating_sub(MENU);
    let wide = menu
        .rows
        .iter()
        .map(|(name, _)| crate::text::width(name))
        .max()
        .unwrap_or(0)
        .min(columns / 2);
    for (n, (name, what)) in menu.rows.iter().enumerate().skip(from).take(MENU) {
        let chosen = n == menu.chosen;
        let mark = if chosen { " › " } else { "   " };
        let style = if chosen { Style::of(Tone::Accent).bold() } else { Style::default() };
        let gap = " ".repeat(wide.saturating_sub(crate::text::width(name)) + 2);
        let line = Line::of(mark, Tone::Accent)
            .and(name, style)
            .and(&gap, Tone::Text)
            .and(what, Tone::Quiet);
        below.lines.push(line.cut(columns));
    }
    let more = menu.rows.len().saturating_sub(from + MENU);
    if more > 0 {
        below.lines.push(Line::of(&format!("   … {more} more"), Tone::Quiet));
    }
}

/// The parts of a question: its text, what is being typed, the keys.
fn parts(s: &State, q: &Question, columns: usize) -> (Vec<Line>, Vec<Line>, Vec<Line>) {
    let Some(panel) = &s.panel else { return Default::default() };
    let inner = columns.saturating_sub(4);
    let mut body = match panel.stage {
        Stage::Explain => panel::explain(&s.session, q, inner),
        _ => panel::body(&s.session, q, inner),
    };
    let facts = match (&panel.stage, q.rule()) {
        (Stage::Explain, _) => Vec::new(),
        (Stage::Always, Some(rule)) => panel::rule_rows(&s.session, rule, inner),
        _ => panel::facts(&s.session, q, inner),
    };
    if panel.stage == Stage::Always {
        // What is granted comes first, whatever follows it.
        body.splice(0..0, facts.into_iter().chain([Line::empty()]));
    } else if !facts.is_empty() {
        body.push(Line::empty());
        body.extend(facts);
    }
    // A heading that does not fit into the frame becomes the first line of the text.
    let heading = panel::heading(q);
    if crate::text::width(&heading) > heading_room(columns) {
        body.splice(0..0, Line::of(&heading, Style::default().bold()).wrap(inner, "", ""));
    }
    let mut own = Vec::new();
    if let Stage::Note(typed) | Stage::Words(typed) = &panel.stage {
        let name = if matches!(panel.stage, Stage::Note(_)) { "note" } else { "answer" };
        for (n, row) in typed.rows(inner.saturating_sub(10)).rows.iter().enumerate() {
            let name = if n == 0 { format!("{name:<8} ") } else { " ".repeat(9) };
            own.push(Line::of(&name, Tone::Warn).and(row, Tone::User).and("▏", Tone::Quiet));
        }
    }
    own.truncate(4);
    (body, own, panel::keys(panel, q, inner))
}

/// Columns available for a heading in the frame.
fn heading_room(columns: usize) -> usize {
    columns.saturating_sub(6)
}

/// Rows of the question's text, how many of them at its end are standard, and how many fit.
pub(crate) fn question_size(s: &State) -> (usize, usize, usize) {
    let Some(q) = s.question() else { return (0, 0, 0) };
    let (body, own, keys) = parts(s, q, s.columns());
    let standard = panel::standard_facts(&s.session, q, s.columns().saturating_sub(4)).len();
    (body.len(), standard, body_room(s, own.len(), keys.len()))
}

/// Rows left for the question's text after everything else.
fn body_room(s: &State, own: usize, keys: usize) -> usize {
    let others = match s.session.questions.len() {
        0 | 1 => 0,
        many => many.min(LISTED),
    };
    let typed = if s.focus == Focus::Field || !s.field.is_empty() {
        let lines = s.field.rows(s.columns().saturating_sub(4)).rows.len().min(field_rows(s));
        1 + lines + s.menu.as_ref().map_or(0, |menu| menu.rows.len().min(MENU + 1))
    } else {
        0
    };
    rows(s).saturating_sub(own + usize::from(own > 0) + keys + others + typed + 5).max(3)
}

fn question(s: &State, columns: usize, below: &mut View) {
    let (Some(q), Some(panel)) = (s.question(), &s.panel) else { return };
    let (body, own, keys) = parts(s, q, columns);
    let room = body_room(s, own.len(), keys.len());
    let tone = if s.focus == Focus::Question { Tone::Warn } else { Tone::Quiet };
    let inner = columns.saturating_sub(4);
    let edge = |line: Line| {
        let gap = inner.saturating_sub(line.width());
        let mut out = Line::of("│ ", tone);
        out.0.extend(line.0);
        out.and(&" ".repeat(gap), Tone::Text).and(" │", tone)
    };
    list_of_many(s, q, columns, below);
    let title =
        Some(panel::heading(q)).filter(|title| crate::text::width(title) <= heading_room(columns));
    let dash = |used: usize| "─".repeat(columns.saturating_sub(used + 5));
    below.lines.push(match title {
        Some(title) => Line::of("╭ ", tone)
            .and(&title, Style::of(tone).bold())
            .and(&format!(" {}─╮", dash(crate::text::width(&title))), tone),
        None => Line::of(&format!("╭──{}─╮", dash(0)), tone),
    });
    let shown = body.len().saturating_sub(panel.offset).min(room);
    below.lines.extend(body.iter().skip(panel.offset).take(room).cloned().map(edge));
    let rest = body.len().saturating_sub(panel.offset + shown);
    if panel.offset > 0 || rest > 0 {
        let text = match (panel.offset, rest) {
            (0, below) => format!("… {} below: pgdn", count(below, "more line")),
            (above, 0) => format!("… {} above: pgup", count(above, "line")),
            (above, below) => {
                format!("… {} above, {below} below: pgup, pgdn", count(above, "line"))
            }
        };
        below.lines.push(edge(Line::of(&text, Style::of(Tone::Warn).bold()).cut(inner)));
    }
    if !own.is_empty() {
        below.lines.push(edge(Line::empty()));
        below.lines.extend(own.into_iter().map(edge));
    }
    below.lines.push(edge(Line::empty()));
    below.lines.extend(keys.into_iter().map(edge));
    below.lines.push(Line::of(&format!("╰{}╯", "─".repeat(columns.saturating_sub(2))), tone));
}

fn list_of_many(s: &State, q: &Question, columns: usize, below: &mut View) {
    let all = &s.session.questions;
    if all.len() < 2 {
        return;
    }
    let at = all.iter().position(|other| other.id == q.id).unwrap_or(0);
    let from = at.saturating_sub(LISTED / 2).min(all.len().saturating_sub(LISTED));
    for (n, other) in all.iter().enumerate().skip(from).take(LISTED) {
        let what = match other.kind.approval() {
            Some(approval) => s
                .session
                .call(approval.call)
                .map(|c| calls::title(&c.part, c.harness))
                .unwrap_or_default(),
            None => other.kind.view().text.unwrap_or_default(),
        };
        let (mark, tone) = if n == at { (" ▸ ", Tone::Warn) } else { ("   ", Tone::Quiet) };
        let line = Line::of(mark, tone).and(&format!("{}  {}", other.id, first_line(&what)), tone);
        below.lines.push(line.cut(columns));
    }
}

/// The status line: what is happening, and the most important numbers.
fn status(s: &State, columns: usize, now: u64) -> Line {
    let session = &s.session;
    if !s.hint.is_empty() {
        return Line::of(&format!(" {}", s.hint), Tone::Warn).cut(columns);
    }
    let level = match session.confined() {
        Some(Isolation::D) => "no sandbox".to_owned(),
        Some(level) => format!("sandbox {level:?}"),
        None => match s.welcome.as_ref().and_then(|w| w.level) {
            Some('D') => "no sandbox".into(),
            Some(level) => format!("sandbox {level}"),
            None => "sandbox …".into(),
        },
    };
    // Without a known window size, show the tokens used.
    let full = match session.full() {
        _ if session.via_bridge() => None,
        Some(percent) => Some(format!("context {percent} %")),
        None if session.context > 0 => Some(format!("context {}", about(session.context))),
        None => None,
    };
    let cost = session.cost();
    let wide = columns >= 60;
    let model = match session.config.model.as_str() {
        "" => s.welcome.as_ref().and_then(|w| w.model.clone()).unwrap_or_else(|| "no model".into()),
        name => name.to_owned(),
    };
    let model = short(&crate::text::one_line(&model), columns / 3);
    if !wide {
        let mut parts =
            vec![mode(s.approvals()).to_owned(), level.trim_start_matches("sandbox ").to_owned()];
        parts.extend(full.map(|f| f.trim_start_matches("context ").to_owned()));
        parts.extend(cost.filter(|_| !session.via_bridge()));
        let sign = match () {
            () if s.moves() => format!("{} ", SPIN[usize::try_from(s.tick % 4).unwrap_or(0)]),
            () if session.awaiting_reply => "● your turn · ".to_owned(),
            () => String::new(),
        };
        return Line::of(&format!(" {sign}{}", parts.join(" · ")), Tone::Quiet).cut(columns);
    }
    let mut right: Vec<String> = Vec::new();
    if session.working && session.steps() > 0 {
        right.push(format!("step {}/{}", session.steps(), session.config.max_steps));
    }
    if !session.via_bridge() {
        right.push(full.unwrap_or_else(|| "context 0 %".into()));
        if session.tokens() > 0 {
            right.push(about(session.tokens()));
        }
        // Where there is no model, there is no price.
        let free = session.id.is_none() && s.welcome.as_ref().is_none_or(|w| w.model.is_none());
        right.extend((!free).then(|| cost.unwrap_or_else(|| "price unknown".into())));
    }
    let right = Line::of(&format!("{} ", right.join(" · ")), Tone::Quiet);
    let doing = doing(s, now);
    let left = match doing {
        Some((sign, text, tone)) => Line::of(&format!(" {sign} "), tone).and(&text, tone),
        None => {
            let mut parts = vec![model];
            parts.extend(session.effort.get().map(|effort| format!("effort {}", effort.name())));
            parts.extend([mode(s.approvals()).to_owned(), level]);
            if let Some(w) = &s.welcome {
                let branch = w.branch.as_ref().map_or_else(String::new, |b| format!(" ({b})"));
                parts.push(format!("{}{branch}", w.folder));
            }
            Line::of(&format!(" {}", parts.join(" · ")), Tone::Quiet)
        }
    };
    left.beside(right, columns)
}

/// What is happening now: a spinner or symbol, text and tone.
fn doing(s: &State, now: u64) -> Option<(&'static str, String, Tone)> {
    let session = &s.session;
    let spin = SPIN[usize::try_from(s.tick % 4).unwrap_or(0)];
    if !session.questions.is_empty() {
        let waits = session.questions.len();
        let at = s
            .panel
            .as_ref()
            .and_then(|p| session.questions.iter().position(|q| q.id == p.id))
            .unwrap_or(0);
        return Some((
            "?",
            format!("waiting for you · {}/{waits} · {}", at + 1, mode(s.approvals())),
            Tone::Warn,
        ));
    }
    let since = s.shell.as_ref().map(|shell| shell.began).filter(|at| *at > 0).or(s.busy_since);
    let time = since.map(|since| so_far(now.saturating_sub(since))).unwrap_or_default();
    let what = if s.shell.is_some() {
        "your command"
    } else if s.beginning {
        "starting"
    } else if !session.working && !session.compacting {
        return None;
    } else if session.stopping {
        "stopping"
    } else if session.compacting {
        "compacting conversation"
    } else if session.running().any(|c| c.harness) {
        "running the checks"
    } else if session.running().next().is_some() {
        "running a tool"
    } else if !session.said.is_empty() {
        let said = format!("{} · esc to stop", first_line(&session.said));
        return Some((spin, said, Tone::Accent));
    } else if session.awaiting_reply {
        return Some((
            "●",
            "waiting for the answer from your chat · esc cancels it".to_owned(),
            Tone::Warn,
        ));
    } else {
        "thinking"
    };
    let time = if time.is_empty() { time } else { format!(" · {time}") };
    Some((spin, format!("{what}{time} · esc to stop"), Tone::Accent))
}

/// The welcome screen.
#[must_use]
pub fn welcome(s: &State) -> Vec<Line> {
    let columns = s.columns();
    let Some(w) = &s.welcome else {
        return vec![Line::of(" dunnock", Style::of(Tone::Accent).bold()), Line::empty()];
    };
    let branch = w.branch.as_ref().map_or_else(String::new, |b| format!(" ({b})"));
    let level = match w.level {
        Some('D') => "no sandbox".to_owned(),
        Some(level) => format!("sandbox {level}"),
        None => String::new(),
    };
    let head = Line::of(&format!(" dunnock {}", w.version), Style::of(Tone::Accent).bold())
        .and(&format!("   {}{branch}   {level}", w.folder), Tone::Quiet);
    let mut lines = vec![head.cut(columns), Line::empty()];
    let mut row = |name: &str, texts: &[String], tone: Tone| {
        for (n, text) in texts.iter().enumerate() {
            let name = if n == 0 { name } else { "" };
            let mut line = Line::of(&format!(" {name:<6} "), Tone::Quiet);
            line.0.push(Span::new(text, tone));
            lines.extend(line.wrap(columns, "", "        "));
        }
    };
    row("Found", &w.found, Tone::Text);
    row("Note", &w.notes, Tone::Quiet);
    row("To do", &w.missing, Tone::Warn);
    let tries = match w.missing.is_empty() {
        true => "“why does the build fail?”    /help    /model    @ for files",
        false => "/login    /demo    /help",
    };
    row("Try", &[tries.to_owned()], Tone::Text);
    lines.push(Line::empty());
    lines
}
