//! What happens when something happens: the only place where the app's state changes.

use crate::edit::{Act, Chip, Field};
use crate::fuzzy;
use crate::host::{Ask, Told};
use crate::panel::{self, Outcome, Panel};
use crate::pick::{Pick, Picked, Row, Value};
use crate::session::{News, Session, mode, note};
use crate::slash;
use crate::state::{CatchUp, Effect, Focus, Input, Menu, Shell, State};
use crate::text::{Line, Span, Style, Tone};
use crate::theme::Theme;
use crate::view;
use crate::words::first_line;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use dunnock_proto::{Answer, Command, ConfigPatch, Frame, Mode, Order, Record};

/// A second Esc or Ctrl-C counts as the second within this many milliseconds.
const AGAIN: u64 = 1_000;
/// A paste of more lines or characters than this is folded.
const FOLD: (usize, usize) = (6, 500);
/// Work that took longer than this calls the person when it ends, in milliseconds.
const LONG: u64 = 10_000;
/// Lines of a session's past that are shown when it is opened.
const PAST: usize = 120;
/// Facts that are read for their meaning only, before the last ones: their lines would be dropped.
const FAR: u64 = 600;
/// Rows of a menu.
const ROWS: usize = 8;

/// Takes an input in. `now` is this process's own clock, in milliseconds.
pub fn update(s: &mut State, input: Input, now: u64) -> Vec<Effect> {
    let mut effects = Vec::new();
    let listed = s.pick.is_some();
    match input {
        Input::Key(key) if key.kind == KeyEventKind::Release => {}
        Input::Key(key) => on_key(s, key, now, &mut effects),
        Input::Paste(text) => paste(s, &text, now),
        Input::Resize(columns, rows) => s.size = (columns, rows),
        Input::Focus(focused) => s.focused = focused,
        Input::Tick => s.tick += 1,
        Input::Told(told) => on_told(s, told, now, &mut effects),
        Input::Edited(Ok(text)) => {
            let pictures = s.field.pictures();
            s.field = Field::holding(text.trim_end_matches('\n'));
            pictures.into_iter().for_each(|path| s.field.insert_chip(Chip::Picture(path)));
        }
        Input::Edited(Err(why)) => wrong(s, &why),
        Input::Hangup => effects.push(Effect::Quit),
    }
    refresh_menu(s, &mut effects);
    refresh_panel(s, now);
    // A question that a list had covered was not seen.
    if let (true, None, Some(panel)) = (listed, &s.pick, &mut s.panel) {
        panel.show_again(now);
        refresh_panel(s, now);
    }
    effects
}

/// Something could not be done.
pub(crate) fn wrong(s: &mut State, why: &str) {
    let columns = s.columns();
    s.out.extend(Line::of(why, Tone::Bad).wrap(columns, " ", " "));
}

/// To the session.
pub(crate) fn send(s: &mut State, command: Command, effects: &mut Vec<Effect>) {
    let id = s.mint();
    if let Command::Prompt { text, .. } = &command {
        s.sent.insert(id.clone(), text.to_string());
    }
    effects.push(Effect::Ask(Ask::Order(Order { id, expect: None, command })));
}

fn on_key(s: &mut State, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) {
    s.hint.clear();
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => return ctrl_c(s, now, effects),
        KeyCode::Char('z') if control => return effects.push(Effect::Suspend),
        KeyCode::Char('l') if control => return effects.push(Effect::Redraw),
        KeyCode::Char('d') if control && s.field.is_empty() && s.pick.is_none() => return effects.push(Effect::Quit),
        KeyCode::BackTab => return next_mode(s, effects),
        _ => {}
    }
    if s.pick.is_some() {
        return pick_key(s, key.code, effects);
    }
    if s.panel.is_some() && s.focus == Focus::Question {
        return question_key(s, key, now, effects);
    }
    if menu_key(s, key, effects) {
        return;
    }
    match key.code {
        KeyCode::Esc => escape(s, now, effects),
        KeyCode::Tab if s.panel.is_some() => s.focus = Focus::Question,
        _ => field_key(s, key, effects),
    }
}

/// Once it stops or empties, twice it quits.
fn ctrl_c(s: &mut State, now: u64, effects: &mut Vec<Effect>) {
    if s.last_ctrl_c.is_some_and(|then| now.saturating_sub(then) < AGAIN) {
        return effects.push(Effect::Quit);
    }
    s.last_ctrl_c = Some(now);
    if s.pick.take().is_some() {
    } else if s.session.working || s.session.compacting || s.shell.is_some() || s.demo {
        interrupt(s, effects);
    } else if !s.field.is_empty() {
        s.field.cut_all();
        s.history.leave();
    }
    s.hint = "ctrl-c again: quit (nothing is lost)".into();
}

fn interrupt(s: &mut State, effects: &mut Vec<Effect>) {
    if s.demo {
        s.demo = false;
        s.session = Session::default();
        s.panel = None;
    } else if s.shell.is_some() {
        effects.push(Effect::Ask(Ask::StopShell));
    } else if s.session.id.is_some() && (s.session.working || s.session.compacting) {
        send(s, Command::Interrupt, effects);
    }
}

/// Once it stops what runs, twice it shows where one can go back to. It never goes back by itself.
fn escape(s: &mut State, now: u64, effects: &mut Vec<Effect>) {
    if s.last_esc.is_some_and(|then| now.saturating_sub(then) < AGAIN) {
        s.last_esc = None;
        if s.session.id.is_some() {
            effects.push(Effect::Ask(Ask::Points));
        } else {
            s.hint = "nothing was done here yet that could be gone back to".into();
        }
        return;
    }
    s.last_esc = Some(now);
    if s.session.working || s.session.compacting || s.shell.is_some() || s.demo {
        interrupt(s, effects);
    } else {
        s.hint = "esc again: go back to an earlier step".into();
    }
}

fn next_mode(s: &mut State, effects: &mut Vec<Effect>) {
    let next = match s.approvals() {
        Mode::Read => Mode::Ask,
        Mode::Ask => Mode::Edits,
        Mode::Edits => Mode::Auto,
        Mode::Auto | Mode::All => Mode::Read,
    };
    set_mode(s, next, effects);
}

pub(crate) fn set_mode(s: &mut State, next: Mode, effects: &mut Vec<Effect>) {
    s.hint = format!("approvals: {} ({})", mode(next), slash::mode_words(next));
    match s.session.id {
        Some(_) => {
            let set = ConfigPatch { mode: Some(next), ..ConfigPatch::default() };
            send(s, Command::Configure { set }, effects);
        }
        None => s.mode = Some(next),
    }
}

fn question_key(s: &mut State, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) {
    let Some(question) = s.question().cloned() else { return };
    let Some(panel) = &mut s.panel else { return };
    if now < panel.guard {
        // Typed before it could be read: no answer. Nothing is lost of it, and who types on is not asked.
        panel.guard = now + panel::GUARD;
        if let KeyCode::Char(c) = key.code
            && !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
        {
            s.field.insert(c.encode_utf8(&mut [0; 4]));
            s.focus = Focus::Field;
            s.hint = "that was typed before the question: tab answers it".into();
        }
        return;
    }
    match key.code {
        KeyCode::Tab => return s.focus = Focus::Field,
        KeyCode::Esc if matches!(panel.stage, panel::Stage::Choose | panel::Stage::Words(_)) => {
            return escape(s, now, effects);
        }
        KeyCode::Char(_) if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => return,
        _ => {}
    }
    match panel.key(&question, key.code) {
        Outcome::Stays => {}
        Outcome::Hint(text) => s.hint = text.into(),
        Outcome::Answer(answer, note) => {
            panel.stage = panel::Stage::Choose; // what was typed is sent
            reply(s, &question, answer, note, effects);
        }
        Outcome::Everywhere(rule) => {
            effects.push(Effect::Ask(Ask::Grant(rule.clone())));
            reply(s, &question, Answer::Always { rule }, None, effects);
        }
        Outcome::Other(step) => {
            let all = &s.session.questions;
            let at = all.iter().position(|q| q.id == question.id).unwrap_or(0);
            let next = at.saturating_add_signed(step).min(all.len().saturating_sub(1));
            s.panel = all.get(next).map(|q| Panel::new(q, now));
        }
    }
}

fn reply(
    s: &mut State,
    question: &crate::session::Question,
    answer: Answer,
    note: Option<String>,
    effects: &mut Vec<Effect>,
) {
    if s.demo {
        return;
    }
    let (id, hash) = (question.id, question.hash);
    send(s, Command::Reply { question: id, hash, answer, note }, effects);
}

fn pick_key(s: &mut State, code: KeyCode, effects: &mut Vec<Effect>) {
    let Some(pick) = &mut s.pick else { return };
    let scope = pick.scope;
    match pick.key(code) {
        Picked::Stays => {}
        Picked::Left => s.pick = None,
        Picked::Filtered => {
            if pick.title.starts_with("Go on with") {
                effects.push(Effect::Ask(Ask::Sessions(pick.filter.whole())));
            }
        }
        Picked::Difference(Value::Step(step, _)) => effects.push(Effect::Ask(Ask::DiffFrom(step))),
        Picked::Difference(_) => {}
        Picked::Took(value) => {
            s.pick = None;
            match value {
                Value::Session(id) => effects.push(Effect::Ask(Ask::Open(id))),
                Value::Model(name) => effects.push(Effect::Ask(Ask::Model(name))),
                Value::Step(_, to) => {
                    let scope = scope.unwrap_or(dunnock_proto::Scope::Both);
                    effects.push(Effect::Ask(Ask::Rewind { to, scope }));
                }
                Value::Mode(mode) => set_mode(s, mode, effects),
                Value::Theme(name) => s.theme = Theme::named(name).unwrap_or(s.theme),
                Value::Prompt(text) => {
                    s.field = Field::holding(&text);
                    s.focus = Focus::Field;
                }
            }
        }
    }
}

/// Keys of the menu below the field; whether it took the key.
fn menu_key(s: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) -> bool {
    let Some(menu) = &mut s.menu else { return false };
    match key.code {
        KeyCode::Up => menu.chosen = menu.chosen.checked_sub(1).unwrap_or(menu.rows.len().saturating_sub(1)),
        KeyCode::Down => menu.chosen = (menu.chosen + 1) % menu.rows.len().max(1),
        KeyCode::Esc => s.menu_closed = Some(s.field.text().to_owned()),
        KeyCode::Tab | KeyCode::Enter => {
            let Some((word, _)) = menu.rows.get(menu.chosen).cloned() else { return false };
            let from = menu.from;
            let whole = s.field.text()[from..s.field.at()] == word;
            let is_command = word.starts_with('/');
            // A command that is written out is carried out.
            if key.code == KeyCode::Enter && is_command {
                s.field.complete(from, &word);
                submit(s, effects);
            } else if !whole || key.code == KeyCode::Tab {
                s.field.complete(from, &format!("{word} "));
            } else {
                return false;
            }
        }
        _ => return false,
    }
    true
}

fn field_key(s: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    let act = match key.code {
        KeyCode::Enter if alt || shift || control => return s.field.insert("\n"),
        KeyCode::Char('j') if control => return s.field.insert("\n"),
        KeyCode::Enter => return submit(s, effects),
        KeyCode::Up => {
            if !s.field.act(Act::Up)
                && let Some(field) = s.history.older(&s.field)
            {
                s.field = field;
            }
            return;
        }
        KeyCode::Down => {
            if !s.field.act(Act::Down)
                && let Some(field) = s.history.newer()
            {
                s.field = field;
            }
            return;
        }
        KeyCode::Char('r') if control => return search_history(s),
        KeyCode::Char('g') if control => return effects.push(Effect::Editor(s.field.whole())),
        KeyCode::Char('v') if control => return effects.push(Effect::Ask(Ask::Clipboard)),
        KeyCode::Char('a') if control => Act::Home,
        KeyCode::Char('e') if control => Act::End,
        KeyCode::Char('b') if control => Act::Left,
        KeyCode::Char('f') if control => Act::Right,
        KeyCode::Char('d') if control => Act::Delete,
        KeyCode::Char('h') if control => Act::Backspace,
        KeyCode::Char('w') if control => Act::CutWord,
        KeyCode::Char('u') if control => Act::CutToStart,
        KeyCode::Char('k') if control => Act::CutToEnd,
        KeyCode::Char('y') if control => Act::Yank,
        KeyCode::Char('b') if alt => Act::WordLeft,
        KeyCode::Char('f') if alt => Act::WordRight,
        KeyCode::Char('d') if alt => return,
        KeyCode::Backspace if alt || control => Act::CutWord,
        KeyCode::Left if alt || control => Act::WordLeft,
        KeyCode::Right if alt || control => Act::WordRight,
        KeyCode::Char(c) if !control && !alt => {
            s.history.leave();
            return s.field.insert(c.encode_utf8(&mut [0; 4]));
        }
        KeyCode::Left => Act::Left,
        KeyCode::Right => Act::Right,
        KeyCode::Home => Act::Home,
        KeyCode::End => Act::End,
        KeyCode::Backspace => Act::Backspace,
        KeyCode::Delete => Act::Delete,
        _ => return,
    };
    s.field.act(act);
}

fn search_history(s: &mut State) {
    let row = |text: &String| Row {
        label: first_line(text),
        detail: String::new(),
        below: Vec::new(),
        value: Value::Prompt(text.clone()),
    };
    let rows: Vec<Row> = s.history.entries().iter().rev().map(row).collect();
    if rows.is_empty() {
        s.hint = "nothing was sent yet".into();
        return;
    }
    s.pick = Some(Pick::new("Earlier prompts", rows));
}

fn paste(s: &mut State, text: &str, now: u64) {
    if let Some(pick) = &mut s.pick {
        text.chars().filter(|c| !c.is_control()).for_each(|c| drop(pick.key(KeyCode::Char(c))));
        return;
    }
    if let Some(Panel { stage: panel::Stage::Note(field) | panel::Stage::Words(field), .. }) = &mut s.panel
        && s.focus == Focus::Question
    {
        return field.insert(text);
    }
    s.focus = Focus::Field; // a paste is never an answer, nor what follows it
    if let Some(panel) = &mut s.panel {
        panel.guard = panel.guard.max(now + panel::GUARD);
    }
    s.history.leave();
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    if let Some(path) = picture(&text) {
        s.field.insert_chip(Chip::Picture(path));
    } else if text.lines().count() > FOLD.0 || text.chars().count() > FOLD.1 {
        s.field.insert_chip(Chip::Text(text));
    } else {
        s.field.insert(&text);
    }
}

/// A file of a picture that was dropped on the terminal, which pastes its path.
fn picture(text: &str) -> Option<String> {
    let path = text.trim().trim_matches(['\'', '"']).trim_start_matches("file://").replace("\\ ", " ");
    let ending = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    let known = matches!(ending.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp");
    (known && path.starts_with('/') && !path.contains('\n')).then_some(path)
}

/// Sends what is in the field, or carries it out.
fn submit(s: &mut State, effects: &mut Vec<Effect>) {
    let (text, pictures) = (s.field.whole().trim().to_owned(), s.field.pictures());
    if text.is_empty() && pictures.is_empty() {
        return;
    }
    s.field.clear();
    s.menu = None;
    s.history.add(&text);
    effects.push(Effect::Remember(text.clone()));
    if let Some(command) = text.strip_prefix('!') {
        return own_command(s, command.trim(), effects);
    }
    match slash::own(s, &text) {
        Some(words) => prompt(s, words, pictures, effects),
        None if text.starts_with('/') && !text.contains('\n') && slash::is_one(&text) => slash::run(s, &text, effects),
        None => prompt(s, text, pictures, effects),
    }
}

/// Gives the session something to do.
pub(crate) fn prompt(s: &mut State, text: String, pictures: Vec<String>, effects: &mut Vec<Effect>) {
    if s.demo {
        s.hint = "the tour plays; esc ends it".into();
        s.field = Field::holding(&text);
        return;
    }
    if s.session.id.is_some() {
        match pictures.is_empty() {
            true => send(s, Command::Prompt { text: text.into(), images: Vec::new() }, effects),
            false => effects.push(Effect::Ask(Ask::Pictures { text, pictures })),
        }
    } else if s.beginning {
        s.unsent.push((text, pictures));
    } else {
        s.beginning = true;
        effects.push(Effect::Ask(Ask::Begin { text, pictures, mode: s.mode }));
    }
}

fn own_command(s: &mut State, command: &str, effects: &mut Vec<Effect>) {
    if s.shell.is_some() {
        return wrong(s, "a command of yours runs already; esc stops it");
    }
    if command.is_empty() {
        s.hint = "after ! comes a command: !git status".into();
        return;
    }
    s.shell = Some(Shell { command: command.into(), began: 0, text: String::new() });
    effects.push(Effect::Ask(Ask::Shell(command.into())));
}

fn refresh_menu(s: &mut State, effects: &mut Vec<Effect>) {
    let text = s.field.text();
    if s.menu_closed.as_deref().is_some_and(|closed| closed != text) {
        s.menu_closed = None;
    }
    let chosen = s.menu.take().map_or(0, |menu| menu.chosen);
    if s.menu_closed.is_some() || s.pick.is_some() || s.focus == Focus::Question {
        return;
    }
    let before = &text[..s.field.at()];
    let word =
        before.rfind(char::is_whitespace).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let typed = before[word..].to_owned();
    let rows = if word == 0 && typed.starts_with('/') && !typed[1..].contains('/') {
        slash::menu(&s.own, &typed[1..], 100)
    } else if let Some(name) = typed.strip_prefix('@') {
        match &s.files {
            Some(files) => {
                let best = fuzzy::best(name, files.iter().map(String::as_str), ROWS, true);
                best.iter().filter_map(|at| files.get(*at)).map(|f| (format!("@{f}"), String::new())).collect()
            }
            None => {
                s.files = Some(Vec::new());
                effects.push(Effect::Ask(Ask::Files));
                Vec::new()
            }
        }
    } else {
        Vec::new()
    };
    if !rows.is_empty() && rows.first().is_none_or(|(first, _)| *first != typed || rows.len() > 1) {
        let chosen = chosen.min(rows.len() - 1);
        s.menu = Some(Menu { from: word, rows, chosen });
    }
}

/// The question that is on the screen is one that stands; how far it was read is known.
fn refresh_panel(s: &mut State, now: u64) {
    if s.question().is_none() {
        let before = s.panel.take();
        let had = before.is_some();
        // Answered elsewhere: what was typed for it is not lost.
        if let Some(Panel { stage: panel::Stage::Note(typed) | panel::Stage::Words(typed), .. }) = before
            && !typed.is_empty()
        {
            give_back(s, &typed.whole());
        }
        match s.session.questions.first() {
            Some(first) => {
                s.panel = Some(Panel::new(first, now));
                // Who is typing goes on typing.
                if s.field.is_empty() || had {
                    s.focus = if s.field.is_empty() { Focus::Question } else { Focus::Field };
                }
            }
            None => s.focus = Focus::Field,
        }
    }
    let (rows, room) = view::question_size(s);
    let (cramped, covered) = (s.cramped(), s.pick.is_some());
    if let Some(panel) = &mut s.panel
        && !covered
    {
        panel.measure(rows, room);
        panel.read &= !cramped;
    }
}

fn on_told(s: &mut State, told: Told, now: u64, effects: &mut Vec<Effect>) {
    let columns = s.columns();
    match told {
        Told::Frame(frame) => on_frame(s, frame, now, effects),
        Told::Welcome(welcome) => {
            s.welcome = Some(welcome);
        }
        Told::Own(own) => s.own = own,
        Told::Opened { id, upto, resumed, draft } => {
            end_welcome(s);
            s.session = Session::of(id);
            s.panel = None;
            s.demo = false;
            s.beginning = false;
            let old = upto > 1 || resumed.is_some();
            s.catch_up = old.then(|| CatchUp { upto, resumed, ..CatchUp::default() });
            if let Some(draft) = draft {
                let kept: Field = serde_json::from_str(&draft)
                    .map_or_else(|_| Field::holding(&draft), |kept| Field::from_kept(&kept));
                if s.field.is_empty() {
                    s.field = kept;
                } else if kept.whole() != s.field.whole() {
                    give_back(s, &kept.whole());
                }
            }
            for (text, pictures) in std::mem::take(&mut s.unsent) {
                prompt(s, text, pictures, effects);
            }
        }
        Told::Closed => {
            s.session = Session::default();
            s.catch_up = None;
            s.panel = None;
            s.beginning = false;
            s.demo = false;
        }
        Told::Sessions(words, rows) => match &mut s.pick {
            Some(pick) if pick.title.starts_with("Go on with") => {
                if pick.filter.whole() == words {
                    pick.replace(Pick::sessions(&rows));
                }
            }
            _ if rows.is_empty() => s.hint = "there are no sessions yet".into(),
            _ => s.pick = Some(Pick::sessions(&rows)),
        },
        Told::Files(files) => s.files = Some(files),
        Told::Models(models) if models.is_empty() => {
            wrong(s, "no model was found; dunnock models list says where was looked")
        }
        Told::Models(models) => {
            let now = s.session.config.model.clone();
            let row = |name: &String| Row {
                label: name.clone(),
                detail: if *name == now { "in use".into() } else { String::new() },
                below: Vec::new(),
                value: Value::Model(name.clone()),
            };
            s.pick = Some(Pick::new("Switch to …", models.iter().map(row).collect()));
        }
        Told::Points(points) if points.is_empty() => s.hint = "nothing was done yet that could be gone back to".into(),
        Told::Points(points) => s.pick = Some(Pick::points(&points)),
        Told::About { question, hash, preview, rule } => {
            if let Some(known) = s.session.questions.iter_mut().find(|q| q.id == question && q.hash == hash) {
                known.preview = preview;
                known.rule = rule;
            }
        }
        Told::Text(lines) => {
            end_welcome(s);
            s.out.push(Line::empty());
            let shown = lines.iter().flat_map(|line| Line::of(line, Tone::Text).wrap(columns, " ", "   "));
            s.out.extend(shown);
        }
        Told::Diff(diff) => {
            end_welcome(s);
            s.out.push(Line::empty());
            let mut painter = crate::code::Painter::new("diff");
            s.out.extend(diff.lines().map(|line| painter.line(line).after(&Span::new(" ", Tone::Text)).cut(columns)));
        }
        Told::Wrong(why) => wrong(s, &why),
        Told::NotSent(text) => {
            s.beginning = false;
            give_back(s, &text);
            for (text, pictures) in std::mem::take(&mut s.unsent) {
                give_back(s, &text);
                pictures.into_iter().for_each(|path| s.field.insert_chip(Chip::Picture(path)));
            }
        }
        Told::Picture(path) => s.field.insert_chip(Chip::Picture(path)),
        Told::Shell(text) => {
            if let Some(shell) = &mut s.shell {
                if shell.began == 0 {
                    shell.began = now;
                }
                shell.text.push_str(&text);
                let over = shell.text.len().saturating_sub(64 << 10);
                shell.text.drain(..shell.text.ceil_char_boundary(over));
            }
        }
        Told::ShellEnded(how) => {
            if let Some(shell) = s.shell.take() {
                end_welcome(s);
                s.out.push(Line::empty());
                let left = Line::of(" ! ", Style::of(Tone::User).bold()).and(&first_line(&shell.command), Tone::User);
                s.out.push(left.beside(Line::of(&how, Tone::Quiet), columns));
                s.out.extend(crate::calls::output(&shell.text, 200, columns));
            }
        }
        Told::Lost(why) => {
            wrong(s, &why);
            let id = s.session.id.take().map(|id| id.to_string()).unwrap_or_default();
            s.out.push(note(&format!("to open it again: /resume {}", id.get(..8).unwrap_or_default())));
            s.session = Session::default();
            for text in std::mem::take(&mut s.sent).into_values() {
                give_back(s, &text);
            }
        }
    }
}

/// What was typed is never lost.
fn give_back(s: &mut State, text: &str) {
    if s.field.is_empty() {
        s.field = Field::holding(text);
    } else {
        s.field.act(Act::End);
        s.field.insert("\n");
        if text.len() > FOLD.1 { s.field.insert_chip(Chip::Text(text.to_owned())) } else { s.field.insert(text) }
    }
}

/// The first screen is done: it goes up like everything else.
pub(crate) fn end_welcome(s: &mut State) {
    if !s.welcomed {
        s.welcomed = true;
        let mut lines = view::welcome(s);
        lines.pop(); // what follows begins with a blank line of its own
        s.out.extend(lines);
    }
}

fn on_frame(s: &mut State, frame: Frame, now: u64, effects: &mut Vec<Effect>) {
    let columns = s.columns();
    match frame {
        Frame::Fact(record) => on_fact(s, &record, now, effects),
        Frame::Delta(delta) => s.session.delta(&delta, columns, &mut s.out),
        Frame::Partial(partial) => s.session.partial(&partial, columns, &mut s.out),
        Frame::Accepted { id, .. } => drop(s.sent.remove(&id)),
        Frame::Refused { id, why, .. } => {
            if let Some(text) = s.sent.remove(&id) {
                give_back(s, &text);
            }
            s.hint = why.to_string();
        }
        Frame::Lagged | Frame::Closing => {}
    }
}

fn on_fact(s: &mut State, record: &Record, now: u64, effects: &mut Vec<Effect>) {
    let columns = s.columns();
    let Some(past) = &mut s.catch_up else {
        let news = s.session.fact(record, columns, now, &mut s.out);
        on_news(s, news, now, effects);
        return;
    };
    // Of a long past only the end is shown; the meaning of the rest counts.
    let near = record.envelope.seq + FAR > past.upto;
    let mut lines = Vec::new();
    let width = if near { columns } else { crate::session::UNSEEN };
    s.session.fact(record, width, now, &mut lines);
    past.dropped += if near { 0 } else { lines.len() };
    past.unseen += u64::from(!near);
    if near {
        past.lines.extend(lines);
        let over = past.lines.len().saturating_sub(PAST);
        past.lines.drain(..over);
        past.dropped += over;
    }
    if record.envelope.seq >= past.upto {
        caught_up(s, now, effects);
    }
}

/// The past is read: its last lines, then where it stood.
fn caught_up(s: &mut State, now: u64, effects: &mut Vec<Effect>) {
    let Some(past) = s.catch_up.take() else { return };
    let columns = s.columns();
    if past.dropped > 0 || past.unseen > 0 {
        let id = s.session.id.as_ref().map_or("", |id| id.as_str().get(..8).unwrap_or_default());
        s.out.push(note(&format!("… what was before: dunnock sessions show {id}")));
    }
    s.out.extend(past.lines);
    if let Some(age) = past.resumed {
        s.out.push(Line::empty());
        let title = if s.session.title.is_empty() { "a branch" } else { &s.session.title };
        let head =
            Line::of(" Resumed ", Style::of(Tone::Accent).bold()).and(&format!("“{title}”"), Style::default().bold());
        s.out.push(head.and(&format!("  ({age})"), Tone::Quiet).cut(columns));
        for (name, text) in s.session.where_it_stands() {
            let mut line = Line::of(&format!(" {name:<7} "), Tone::Quiet);
            line.0.push(Span::new(&text, Tone::Text));
            s.out.push(line.cut(columns));
        }
        s.out.push(Line::empty());
    }
    if let Some(first) = s.session.questions.first() {
        let news = News::Asked(first.id);
        on_news(s, Some(news), now, effects);
    }
}

fn on_news(s: &mut State, news: Option<News>, now: u64, effects: &mut Vec<Effect>) {
    if s.session.working && s.busy_since.is_none() {
        s.busy_since = Some(now);
    }
    match news {
        Some(News::Asked(id)) => {
            let asked = s.session.questions.iter().find(|q| q.id == id).map(|q| panel::title(&s.session, q));
            effects.push(Effect::Call(format!("dunnock: {}", asked.unwrap_or_default())));
        }
        Some(News::Ended) => {
            let long = s.busy_since.take().is_some_and(|since| now.saturating_sub(since) > LONG);
            if long || !s.focused {
                effects.push(Effect::Call(format!("dunnock: finished “{}”", s.session.title)));
            }
        }
        None => {}
    }
}
