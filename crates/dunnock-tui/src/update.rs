//! Handles inputs: the only place where the app's state changes.

use crate::edit::{Act, Chip, Field};
use crate::fuzzy;
use crate::host::HostRequest;
use crate::host_events::{give_back, on_host_event};
use crate::lines::mode;
use crate::pager::{Paged, Pager};
use crate::panel::{self, Outcome, Panel, Pressed};
use crate::pick::{Pick, Picked, Row, Value};
use crate::session::Session;
use crate::slash;
use crate::state::{Effect, Focus, Input, Menu, Shell, State};
use crate::text::{Line, Tone};
use crate::theme::Theme;
use crate::view;
use crate::words::first_line;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use dunnock_proto::{Answer, Command, CommandRequest, ConfigPatch, Mode};

/// Longest time between two presses of Esc or Ctrl-C that count as a double press, in milliseconds.
const AGAIN: u64 = 1_000;
/// A paste with more lines or characters than this becomes a chip.
pub(crate) const FOLD: (usize, usize) = (6, 500);
/// The most files in the menu.
const ROWS: usize = 8;

/// Handles an input. `now` is this process's own clock, in milliseconds.
pub fn update(s: &mut State, input: Input, now: u64) -> Vec<Effect> {
    let mut effects = Vec::new();
    let covered = s.covered();
    match input {
        Input::Key(key) if key.kind == KeyEventKind::Release => {}
        Input::Key(key) => on_key(s, key, now, &mut effects),
        Input::Paste(text) => paste(s, &text, now),
        Input::Resize(columns, rows) => {
            s.size = (columns, rows);
            let (columns, rows) = view::pager_size(s);
            if let Some(pager) = &mut s.pager {
                pager.resize(columns, rows);
            }
        }
        Input::Focus(focused) => s.focused = focused,
        Input::Tick => {
            s.tick += 1;
            // Only a tick ends the wait: keys that came before it are handled first, so that a
            // terminal that stalls turns no message into an answer.
            let pressed = s.panel.as_ref().and_then(|panel| panel.pressed);
            if !covered && pressed.is_some_and(|pressed| pressed.at <= now) {
                take_effect(s, now, &mut effects);
            }
        }
        Input::Host(event) => on_host_event(s, event, now, &mut effects),
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
    // A question hidden behind a list or the pager was not seen.
    if let (true, false, Some(panel)) = (covered, s.covered(), &mut s.panel) {
        panel.show_again(now);
        refresh_panel(s, now);
    }
    effects
}

/// Prints an error.
pub(crate) fn wrong(s: &mut State, why: &str) {
    let columns = s.columns();
    s.out.extend(Line::of(why, Tone::Bad).wrap(columns, " ", " "));
}

/// Switches to another session, or to none.
pub(crate) fn switch(s: &mut State, ask: HostRequest, effects: &mut Vec<Effect>) {
    s.switching = true;
    effects.push(Effect::Ask(ask));
}

/// Sends a command to the session.
pub(crate) fn send(s: &mut State, command: Command, effects: &mut Vec<Effect>) {
    if s.switching {
        s.hint = "one moment: another session is being opened".into();
        return;
    }
    let id = s.mint();
    // Remember the text, to restore it if the command is refused.
    let words = match &command {
        Command::Prompt { text, .. } | Command::Reply { answer: Answer::Text { text }, .. } => {
            Some(text.to_string())
        }
        Command::Reply { note: Some(note), .. } => Some(note.clone()),
        _ => None,
    };
    if let Some(words) = words {
        s.sent.insert(id.clone(), words);
    }
    if let (Command::Reply { answer: Answer::Always { rule }, .. }, Some(scope)) =
        (&command, s.saves.take())
    {
        s.granting.insert(id.clone(), (rule.clone(), scope));
    }
    effects.push(Effect::Ask(HostRequest::Command(CommandRequest { id, expect: None, command })));
}

fn on_key(s: &mut State, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) {
    s.hint.clear();
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control || key.code == KeyCode::BackTab {
        let _ = s.panel.as_mut().and_then(|panel| panel.pressed.take());
    }
    match key.code {
        KeyCode::Char('c') if control => return ctrl_c(s, now, effects),
        KeyCode::Char('z') if control => return effects.push(Effect::Suspend),
        KeyCode::Char('l') if control => return effects.push(Effect::Redraw),
        KeyCode::Char('d') if control && s.field.is_empty() && !s.covered() => {
            return effects.push(Effect::Quit);
        }
        _ if s.pager.is_some() => return pager_key(s, key, effects),
        KeyCode::Char('o') if control && s.pick.is_none() => return open_pager(s, effects),
        KeyCode::BackTab => return next_mode(s, effects),
        _ => {}
    }
    if s.pick.is_some() {
        return pick_key(s, key.code, effects);
    }
    if s.login.is_open() {
        let request = s.login.key(key);
        effects.extend(request.map(|request| Effect::Ask(HostRequest::Login(request))));
        if !s.login.is_open() {
            s.hint = "nothing was saved; /login begins again".into();
        }
        return;
    }
    if s.panel.is_some() && s.focus == Focus::Question {
        return question_key(s, key, now, effects);
    }
    if menu_key(s, key, effects) {
        return;
    }
    match key.code {
        KeyCode::Esc => escape(s, now, effects),
        KeyCode::Tab if s.panel.is_some() => {
            s.focus = Focus::Question;
            if let Some(panel) = &mut s.panel {
                panel.guard = now + panel::GUARD; // the user may still be typing
            }
        }
        _ => field_key(s, key, effects),
    }
}

/// Pressed once it stops work or clears the input; pressed twice it quits.
fn ctrl_c(s: &mut State, now: u64, effects: &mut Vec<Effect>) {
    if s.last_ctrl_c.is_some_and(|then| now.saturating_sub(then) < AGAIN) {
        return effects.push(Effect::Quit);
    }
    s.last_ctrl_c = Some(now);
    if s.pager.take().is_some() || s.pick.take().is_some() {
    } else if s.login.is_open() {
        effects.push(Effect::Ask(HostRequest::Login(s.login.leave())));
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
        effects.push(Effect::Ask(HostRequest::StopShell));
    } else if s.session.id.is_some() && (s.session.working || s.session.compacting) {
        send(s, Command::Interrupt, effects);
    }
}

/// Pressed once it stops work; pressed twice it lists the steps to rewind to. It never rewinds by
/// itself.
fn escape(s: &mut State, now: u64, effects: &mut Vec<Effect>) {
    if s.last_esc.is_some_and(|then| now.saturating_sub(then) < AGAIN) {
        s.last_esc = None;
        if s.session.id.is_some() {
            effects.push(Effect::Ask(HostRequest::Points));
        } else {
            s.hint = "no steps to rewind to yet".into();
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
    let held = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    let plain = match key.code {
        KeyCode::Char(c) if !held => Some(c),
        _ => None,
    };
    if now < panel.guard {
        // Typed before the question could be read: not an answer. The text goes to the input field,
        // and further keys go there, too.
        panel.guard = now + panel::GUARD;
        if let Some(c) = plain {
            type_in(s, &[c]);
        }
        return;
    }
    let nothing_typed = match &panel.stage {
        panel::Stage::Note(typed) => typed.is_empty(),
        stage => *stage == panel::Stage::Always,
    };
    let early = nothing_typed && now < panel.opened && !s.plain;
    if early && panel.pressed.is_none() && key.code == KeyCode::Enter {
        return;
    }
    if !panel.takes_text() {
        match (panel.pressed.take(), plain) {
            (Some(pressed), None) if key.code == KeyCode::Enter => {
                panel.pressed = Some(pressed);
                return take_effect(s, now, effects);
            }
            (Some(_), None) if matches!(key.code, KeyCode::Esc | KeyCode::Backspace) => return,
            (Some(pressed), Some(c)) => return type_in(s, &[pressed.key, c]),
            (None, Some(c)) if panel.is_answer(&question, c) => {
                panel.pressed = Some(Pressed { key: c, at: now + panel::WAIT });
                return;
            }
            (None, Some(c)) if c != ' ' => return type_in(s, &[c]),
            _ => {}
        }
    }
    match key.code {
        KeyCode::Tab => return s.focus = Focus::Field,
        KeyCode::Esc if panel.stage == panel::Stage::Choose => return escape(s, now, effects),
        KeyCode::Esc => {
            let words = match &panel.stage {
                panel::Stage::Note(typed) | panel::Stage::Words(typed) => typed.whole(),
                _ => String::new(),
            };
            // A question with only a free-text answer has no earlier stage to return to.
            if matches!(panel.stage, panel::Stage::Words(_)) && question.kind.choices().is_empty() {
                return escape(s, now, effects);
            }
            panel.key(&question, key.code);
            if !words.is_empty() {
                give_back(s, &words);
            }
            return;
        }
        KeyCode::Char(_) if held => return,
        _ => {}
    }
    answer_key(s, &question, key.code, now, effects);
}

/// These keys were not an answer: they go to the input field, and further keys, too.
fn type_in(s: &mut State, keys: &[char]) {
    s.field.insert(&keys.iter().collect::<String>());
    s.focus = Focus::Field;
    s.hint = "not taken as an answer; tab to answer".into();
    if let Some(panel) = &mut s.panel
        && !panel.takes_text()
    {
        panel.stage = panel::Stage::Choose;
    }
}

/// The key that was pressed last takes effect.
fn take_effect(s: &mut State, now: u64, effects: &mut Vec<Effect>) {
    let question = s.question().cloned();
    let pressed = s.panel.as_mut().and_then(|panel| panel.pressed.take());
    if let (Some(question), Some(pressed)) = (question, pressed) {
        answer_key(s, &question, KeyCode::Char(pressed.key), now, effects);
    }
}

fn answer_key(
    s: &mut State,
    question: &crate::session::Question,
    code: KeyCode,
    now: u64,
    effects: &mut Vec<Effect>,
) {
    let Some(panel) = &mut s.panel else { return };
    let stage = std::mem::discriminant(&panel.stage);
    let outcome = panel.key(question, code);
    if std::mem::discriminant(&panel.stage) != stage {
        panel.opened = now + panel::WAIT;
    }
    match outcome {
        Outcome::Stays => {}
        Outcome::Hint(text) => s.hint = text.into(),
        Outcome::Answer(answer, note) => {
            panel.stage = panel::Stage::Choose; // the typed text was sent
            reply(s, question, answer, note, effects);
        }
        Outcome::Saves(rule, scope) => {
            s.saves = Some(scope);
            reply(s, question, Answer::Always { rule }, None, effects);
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

/// Opens the pager on the newest call that has ended.
fn open_pager(s: &mut State, effects: &mut Vec<Effect>) {
    match Pager::open(s.session.past_calls(), view::pager_size(s)) {
        Some((pager, call)) => {
            s.pager = Some(pager);
            effects.push(Effect::Ask(HostRequest::CallText(call)));
        }
        None => s.hint = "no call has ended yet".into(),
    }
}

/// While the pager is open, every key is its own.
fn pager_key(s: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) {
    let held = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    let Some(pager) = &mut s.pager else { return };
    let outcome = match key.code {
        KeyCode::Char('o') if key.modifiers.contains(KeyModifiers::CONTROL) => Paged::Closed,
        _ if held => Paged::Stays,
        code => pager.key(code),
    };
    match outcome {
        Paged::Stays => {}
        Paged::Load(call) => effects.push(Effect::Ask(HostRequest::CallText(call))),
        Paged::Closed => s.pager = None,
    }
}

fn pick_key(s: &mut State, code: KeyCode, effects: &mut Vec<Effect>) {
    let Some(pick) = &mut s.pick else { return };
    let scope = pick.scope;
    match pick.key(code) {
        Picked::Stays => {}
        Picked::Left => s.pick = None,
        Picked::Filtered => {
            if pick.title.starts_with("Continue") {
                effects.push(Effect::Ask(HostRequest::Sessions(pick.filter.whole())));
            }
        }
        Picked::Difference(Value::Step(step, _)) => {
            effects.push(Effect::Ask(HostRequest::DiffFrom(step)))
        }
        Picked::Difference(_) => {}
        Picked::Took(value) => {
            s.pick = None;
            match value {
                Value::Session(id) => switch(s, HostRequest::Open(id), effects),
                Value::Model(name) => effects.push(Effect::Ask(HostRequest::Model(name))),
                Value::Step(_, to) => {
                    let scope = scope.unwrap_or(dunnock_proto::Scope::Both);
                    effects.push(Effect::Ask(HostRequest::Rewind { to, scope }));
                }
                Value::Mode(mode) => set_mode(s, mode, effects),
                Value::Effort(effort) => effects.push(Effect::Ask(HostRequest::Effort(effort))),
                Value::Choice(_) => {}
                Value::Theme(name) => s.theme = Theme::named(name).unwrap_or(s.theme),
                Value::Prompt(text) => {
                    s.field = Field::holding(&text);
                    s.focus = Focus::Field;
                }
            }
        }
    }
}

/// Handles a key in the menu below the input field. Returns whether the menu used it.
fn menu_key(s: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) -> bool {
    let Some(menu) = &mut s.menu else { return false };
    match key.code {
        KeyCode::Up => {
            menu.chosen = menu.chosen.checked_sub(1).unwrap_or(menu.rows.len().saturating_sub(1))
        }
        KeyCode::Down => menu.chosen = (menu.chosen + 1) % menu.rows.len().max(1),
        KeyCode::Esc => s.menu_closed = Some(s.field.text().to_owned()),
        KeyCode::Tab | KeyCode::Enter => {
            let Some((word, _)) = menu.rows.get(menu.chosen).cloned() else { return false };
            let from = menu.from;
            let whole = s.field.text()[from..s.field.at()] == word;
            let is_command = word.starts_with('/');
            // Enter runs the selected command.
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
        KeyCode::Char('v') if control => return effects.push(Effect::Ask(HostRequest::Clipboard)),
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
        s.hint = "no earlier prompts".into();
        return;
    }
    s.pick = Some(Pick::new("Earlier prompts", rows));
}

fn paste(s: &mut State, text: &str, now: u64) {
    if s.pager.is_some() {
        return;
    }
    if let Some(pick) = &mut s.pick {
        text.chars().filter(|c| !c.is_control()).for_each(|c| drop(pick.key(KeyCode::Char(c))));
        return;
    }
    if s.login.is_open() {
        return s.login.paste(text);
    }
    if let Some(Panel { stage: panel::Stage::Note(field) | panel::Stage::Words(field), .. }) =
        &mut s.panel
        && s.focus == Focus::Question
    {
        return field.insert(text);
    }
    // Neither a paste nor what is around it is an answer.
    if let Some(pressed) = s.panel.as_mut().and_then(|panel| panel.pressed.take()) {
        type_in(s, &[pressed.key]);
    }
    s.focus = Focus::Field;
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

/// The path of an image file that was dropped on the terminal, which pastes its path.
fn picture(text: &str) -> Option<String> {
    let path =
        text.trim().trim_matches(['\'', '"']).trim_start_matches("file://").replace("\\ ", " ");
    (is_picture(&path) && path.starts_with('/') && !path.contains('\n')).then_some(path)
}

/// Pictures of the workspace that a prompt names with `@`.
fn mentioned_pictures(s: &State, text: &str) -> Vec<String> {
    let files = s.files.as_deref().unwrap_or_default();
    let named = text.split_whitespace().filter_map(|word| word.strip_prefix('@'));
    let named = named.filter(|name| is_picture(name) && files.iter().any(|file| file == name));
    let mut found: Vec<String> = Vec::new();
    for name in named {
        if !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found
}

fn is_picture(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    matches!(ending.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp")
}

/// Sends the text of the input field, or runs it as a command.
fn submit(s: &mut State, effects: &mut Vec<Effect>) {
    let (text, mut pictures) = (s.field.whole().trim().to_owned(), s.field.pictures());
    if text.is_empty() && pictures.is_empty() {
        return;
    }
    pictures.extend(mentioned_pictures(s, &text));
    let label = s.field.labelled();
    if label != text {
        s.session.labels.insert(text.as_str().into(), label.trim().into());
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
        None if text.starts_with('/') && !text.contains('\n') && slash::is_one(&text) => {
            slash::run(s, &text, effects)
        }
        None => prompt(s, text, pictures, effects),
    }
}

/// Sends a prompt to the session, or starts one.
pub(crate) fn prompt(
    s: &mut State,
    text: String,
    pictures: Vec<String>,
    effects: &mut Vec<Effect>,
) {
    if s.demo {
        s.hint = "the tour is running; esc ends it".into();
        s.field = Field::holding(&text);
        return;
    }
    if s.session.id.is_some() && !s.switching {
        match pictures.is_empty() {
            true => send(s, Command::Prompt { text: text.into(), images: Vec::new() }, effects),
            false => effects.push(Effect::Ask(HostRequest::Pictures { text, pictures })),
        }
    } else if s.beginning || s.switching {
        s.unsent.push((text, pictures));
    } else {
        s.beginning = true;
        effects.push(Effect::Ask(HostRequest::Begin { text, pictures, mode: s.mode }));
    }
}

fn own_command(s: &mut State, command: &str, effects: &mut Vec<Effect>) {
    if s.shell.is_some() {
        return wrong(s, "a command is already running; esc stops it");
    }
    if command.is_empty() {
        s.hint = "type a command after !: !git status".into();
        return;
    }
    s.shell = Some(Shell { command: command.into(), began: 0, text: String::new() });
    effects.push(Effect::Ask(HostRequest::Shell(command.into())));
}

fn refresh_menu(s: &mut State, effects: &mut Vec<Effect>) {
    let text = s.field.text();
    if s.menu_closed.as_deref().is_some_and(|closed| closed != text) {
        s.menu_closed = None;
    }
    let chosen = s.menu.take().map_or(0, |menu| menu.chosen);
    if s.menu_closed.is_some() || s.covered() || s.focus == Focus::Question {
        return;
    }
    let before = &text[..s.field.at()];
    let word = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let typed = before[word..].to_owned();
    let rows = if word == 0 && typed.starts_with('/') && !typed[1..].contains('/') {
        slash::menu(&s.own, &typed[1..], 100)
    } else if let Some(name) = typed.strip_prefix('@') {
        match &s.files {
            Some(files) => {
                let best = fuzzy::best(name, files.iter().map(String::as_str), ROWS, true);
                best.iter()
                    .filter_map(|at| files.get(*at))
                    .map(|f| (format!("@{f}"), String::new()))
                    .collect()
            }
            None => {
                s.files = Some(Vec::new());
                effects.push(Effect::Ask(HostRequest::Files));
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

/// Makes sure that the question on the screen is open, and records how far it was read.
fn refresh_panel(s: &mut State, now: u64) {
    if s.catch_up.is_some() {
        s.panel = None; // questions of the past are not asked again
        return;
    }
    if s.question().is_none() {
        let before = s.panel.take();
        let had = before.is_some();
        // Answered elsewhere: restore what was typed for it.
        if let Some(Panel { stage: panel::Stage::Note(typed) | panel::Stage::Words(typed), .. }) =
            before
            && !typed.is_empty()
        {
            give_back(s, &typed.whole());
        }
        match s.session.questions.first() {
            Some(first) => {
                s.panel = Some(Panel::new(first, now));
                // Do not interrupt someone who is typing.
                if s.field.is_empty() || had {
                    s.focus = if s.field.is_empty() { Focus::Question } else { Focus::Field };
                }
            }
            None => s.focus = Focus::Field,
        }
    }
    let (rows, standard, room) = view::question_size(s);
    let (cramped, covered, plain) = (s.cramped(), s.covered(), s.plain);
    if let Some(panel) = &mut s.panel
        && !covered
    {
        panel.measure(rows, standard, room);
        panel.read = (panel.read || plain) && !cramped; // plain mode prints all lines
    }
}
