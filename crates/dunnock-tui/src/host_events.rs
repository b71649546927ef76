//! Handles what the session and the host report to the app.

use crate::edit::{Act, Chip, Field};
use crate::host::{HostEvent, HostRequest, LoginEvent};
use crate::lines::note;
use crate::login::LoginOutcome;
use crate::panel;
use crate::pick::{Pick, Row, Value};
use crate::session::{Session, SessionChange};
use crate::state::{CatchUp, Effect, State};
use crate::text::{Line, Span, Style, Tone};
use crate::update::{FOLD, prompt, wrong};
use crate::view;
use crate::words::first_line;
use dunnock_proto::{Frame, Record};

/// Work that took longer than this many milliseconds notifies the user when it ends.
const LONG: u64 = 10_000;
/// Lines of a session's past shown when it is opened.
const PAST: usize = 120;
/// Events further back than this are folded into the state only: their lines would be dropped.
const FAR: u64 = 600;

/// Handles a report of the host.
pub(crate) fn on_host_event(s: &mut State, event: HostEvent, now: u64, effects: &mut Vec<Effect>) {
    let columns = s.columns();
    match event {
        HostEvent::Frame(frame) => on_frame(s, frame, now, effects),
        HostEvent::Welcome(welcome) => {
            s.welcome = Some(welcome);
        }
        HostEvent::Own(own) => s.own = own,
        HostEvent::Branch(branch) => {
            if let Some(welcome) = &mut s.welcome {
                welcome.branch = branch;
            }
        }
        HostEvent::CallDiff(call, diff) => s.session.add_diff(call, diff),
        HostEvent::CallText(call, text) => {
            if let Some(pager) = &mut s.pager {
                pager.loaded(call, text);
            }
        }
        HostEvent::Opened { id, upto, resumed, draft } => {
            end_welcome(s);
            // A draft belongs to the session in which it was typed.
            if s.session.id.is_some() {
                s.field.clear();
            }
            (s.switching, s.files, s.pager) = (false, None, None);
            let labels = std::mem::take(&mut s.session.labels);
            s.session = Session::of(id);
            s.session.labels = labels;
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
        HostEvent::Closed => {
            s.session = Session::default();
            s.catch_up = None;
            s.panel = None;
            s.beginning = false;
            s.demo = false;
            (s.switching, s.files, s.pager) = (false, None, None);
            for (text, pictures) in std::mem::take(&mut s.unsent) {
                prompt(s, text, pictures, effects);
            }
        }
        HostEvent::Sessions(words, rows) => match &mut s.pick {
            Some(pick) if pick.title.starts_with("Continue") => {
                if pick.filter.whole() == words {
                    pick.replace(Pick::sessions(&rows));
                }
            }
            _ if rows.is_empty() => s.hint = "no sessions yet".into(),
            _ => s.pick = Some(Pick::sessions(&rows)),
        },
        HostEvent::Files(files) => s.files = Some(files),
        HostEvent::Models(models) if models.is_empty() => {
            wrong(s, "no model found; dunnock models list shows where Dunnock looked")
        }
        HostEvent::Models(models) => {
            let now = s.session.config.model.clone();
            let row = |name: &String| Row {
                label: name.clone(),
                detail: if *name == now { "current".into() } else { String::new() },
                below: Vec::new(),
                value: Value::Model(name.clone()),
            };
            s.pick = Some(Pick::new("Switch to …", models.iter().map(row).collect()));
        }
        HostEvent::Points(points) if points.is_empty() => {
            s.hint = "no steps to rewind to yet".into()
        }
        HostEvent::Points(points) => s.pick = Some(Pick::points(&points)),
        HostEvent::Text(lines) => {
            end_welcome(s);
            s.out.push(Line::empty());
            let shown =
                lines.iter().flat_map(|line| Line::of(line, Tone::Text).wrap(columns, " ", "   "));
            s.out.extend(shown);
        }
        HostEvent::Diff(diff) => {
            end_welcome(s);
            s.out.push(Line::empty());
            let mut painter = crate::diff::DiffPainter::new("");
            let rows = crate::diff::rows(&diff);
            s.out.extend(
                rows.iter()
                    .map(|row| painter.line(row).after(&Span::new(" ", Tone::Text)).cut(columns)),
            );
        }
        HostEvent::Wrong(why) => {
            s.switching = false;
            wrong(s, &why);
        }
        HostEvent::NotSent(text) => {
            s.beginning = false;
            give_back(s, &text);
            for (text, pictures) in std::mem::take(&mut s.unsent) {
                give_back(s, &text);
                pictures.into_iter().for_each(|path| s.field.insert_chip(Chip::Picture(path)));
            }
        }
        HostEvent::Picture(path) => s.field.insert_chip(Chip::Picture(path)),
        HostEvent::Shell(text) => {
            if let Some(shell) = &mut s.shell {
                if shell.began == 0 {
                    shell.began = now;
                }
                shell.text.push_str(&text);
                let over = shell.text.len().saturating_sub(64 << 10);
                shell.text.drain(..shell.text.ceil_char_boundary(over));
            }
        }
        HostEvent::ShellEnded(how) => {
            if let Some(shell) = s.shell.take() {
                end_welcome(s);
                s.out.push(Line::empty());
                let left = Line::of(" ! ", Style::of(Tone::User).bold())
                    .and(&first_line(&shell.command), Tone::User);
                s.out.push(left.beside(Line::of(&how, Tone::Quiet), columns));
                s.out.extend(crate::calls::output(&shell.text, 200, columns, ""));
            }
        }
        // Do not interrupt someone who is typing.
        HostEvent::Login(LoginEvent::Needed)
            if s.plain || s.pick.is_some() || !s.field.is_empty() => {}
        HostEvent::Login(event) => match s.login.on_event(event) {
            LoginOutcome::Nothing => {}
            LoginOutcome::Ask(request) => effects.push(Effect::Ask(HostRequest::Login(request))),
            LoginOutcome::Wrong(why) => wrong(s, &why),
        },
        HostEvent::Lost(why) => {
            wrong(s, &why);
            let id = s.session.id.take().map(|id| id.to_string()).unwrap_or_default();
            s.out.push(note(&format!(
                "to open it again: /resume {}",
                id.get(..8).unwrap_or_default()
            )));
            s.session = Session::default();
            for text in std::mem::take(&mut s.sent).into_values() {
                give_back(s, &text);
            }
        }
    }
}

/// Puts text back into the input field, so that nothing typed is lost.
pub(crate) fn give_back(s: &mut State, text: &str) {
    if s.field.is_empty() {
        s.field = Field::holding(text);
    } else {
        s.field.act(Act::End);
        s.field.insert("\n");
        if text.len() > FOLD.1 {
            s.field.insert_chip(Chip::Text(text.to_owned()))
        } else {
            s.field.insert(text)
        }
    }
}

/// Moves the welcome screen into the scrollback.
pub(crate) fn end_welcome(s: &mut State) {
    if !s.welcomed {
        s.welcomed = true;
        let mut lines = view::welcome(s);
        lines.pop(); // what follows starts with its own blank line
        s.out.extend(lines);
    }
}

fn on_frame(s: &mut State, frame: Frame, now: u64, effects: &mut Vec<Effect>) {
    let columns = s.columns();
    match frame {
        Frame::Event(record) => on_fact(s, &record, now, effects),
        Frame::Delta(delta) => s.session.delta(&delta, columns, &mut s.out),
        Frame::Partial(partial) => s.session.partial(&partial, columns, &mut s.out),
        Frame::Accepted { id, .. } => {
            s.sent.remove(&id);
            if let Some((rule, scope)) = s.granting.remove(&id) {
                effects.push(Effect::Ask(HostRequest::Grant(rule, scope)));
            }
        }
        Frame::Refused { id, reason: why, .. } => {
            s.granting.remove(&id);
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
    // Of a long past only the end is shown; the rest only updates the state.
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

/// The past has been read: shows its last lines, then where the session stands.
fn caught_up(s: &mut State, now: u64, effects: &mut Vec<Effect>) {
    let Some(past) = s.catch_up.take() else { return };
    let columns = s.columns();
    if past.dropped > 0 || past.unseen > 0 {
        let id = s.session.id.as_ref().map_or("", |id| id.as_str().get(..8).unwrap_or_default());
        s.out.push(note(&format!("… earlier output: dunnock sessions show {id}")));
    }
    s.out.extend(past.lines);
    if let Some(age) = past.resumed {
        s.out.push(Line::empty());
        let title = if s.session.title.is_empty() { "a fork" } else { &s.session.title };
        let head = Line::of(" Resumed ", Style::of(Tone::Accent).bold())
            .and(&format!("“{title}”"), Style::default().bold());
        s.out.push(head.and(&format!("  ({age})"), Tone::Quiet).cut(columns));
        for (name, text) in s.session.where_it_stands() {
            let mut line = Line::of(&format!(" {name:<7} "), Tone::Quiet);
            line.0.push(Span::new(&text, Tone::Text));
            s.out.push(line.cut(columns));
        }
        s.out.push(Line::empty());
    }
    if let Some(first) = s.session.questions.first() {
        let news = SessionChange::Asked(first.id);
        on_news(s, Some(news), now, effects);
    }
}

fn on_news(s: &mut State, news: Option<SessionChange>, now: u64, effects: &mut Vec<Effect>) {
    if s.session.working && s.busy_since.is_none() {
        s.busy_since = Some(now);
    }
    match news {
        Some(SessionChange::Asked(id)) => {
            let asked = s.session.questions.iter().find(|q| q.id == id).map(panel::heading);
            effects.push(Effect::Call(format!("dunnock: {}", asked.unwrap_or_default())));
        }
        Some(SessionChange::Ended) => {
            s.files = None; // the task may have added or removed files
            let long = s.busy_since.take().is_some_and(|since| now.saturating_sub(since) > LONG);
            if long || !s.focused {
                effects.push(Effect::Call(format!("dunnock: finished “{}”", s.session.title)));
            }
        }
        None => {}
    }
}
