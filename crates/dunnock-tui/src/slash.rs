//! Runs slash commands.

use crate::commands_table::{COMMANDS, Slash};
use crate::fuzzy;
use crate::host::{HostRequest, Own};
use crate::host_events::end_welcome;
use crate::keys_table::KEYS;
use crate::lines::{mode, note};
use crate::pick::{Pick, Row, Value};
use crate::state::{Effect, State};
use crate::text::{Line, Style, Tone};
use crate::theme::{THEMES, Theme};
use crate::update::{prompt, send, set_mode, switch, wrong};
use dunnock_proto::{Command, Effort, Mode};

/// The task that adds a line to the folder's instructions.
const REMEMBER: &str = "Add the text below to AGENTS.md at the root of the workspace, at the end and \
                        as it stands, and change nothing else. Create the file if there is none.";

const MODES: [Mode; 5] = [Mode::Read, Mode::Ask, Mode::Edits, Mode::Auto, Mode::All];

/// What a mode does.
#[must_use]
pub fn mode_words(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "change nothing",
        Mode::Ask => "ask before any change",
        Mode::Edits => "ask before commands",
        Mode::Auto => "ask before risky calls",
        Mode::All => "never ask",
    }
}

/// Menu entries that match what was typed, built-in commands first.
pub(crate) fn menu(own: &[Own], typed: &str, most: usize) -> Vec<(String, String)> {
    let all: Vec<(String, String)> = COMMANDS
        .iter()
        .map(|c| (format!("/{}", c.name), format!("{} {}", c.args, c.about).trim().to_owned()))
        .chain(own.iter().map(|c| (format!("/{}", c.name), c.about.clone())))
        .collect();
    let best = fuzzy::best(typed, all.iter().map(|(name, _)| name.as_str()), most, false);
    best.iter().filter_map(|at| all.get(*at).cloned()).collect()
}

/// The prompt for one of the user's own commands.
pub(crate) fn own(s: &State, text: &str) -> Option<String> {
    let (name, rest) = split(text)?;
    if COMMANDS.iter().any(|c| c.name == name) {
        return None;
    }
    let own = s.own.iter().find(|c| c.name == name)?;
    let whole = own.text.replace("$ARGS", rest);
    Some(if own.text.contains("$ARGS") || rest.is_empty() {
        whole
    } else {
        format!("{whole}\n\n{rest}")
    })
}

fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('/')?;
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    Some((name, rest.trim()))
}

/// Whether a text is a command, and not a path at the start of a sentence.
pub(crate) fn is_one(text: &str) -> bool {
    split(text).is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    })
}

/// Runs a command.
pub(crate) fn run(s: &mut State, text: &str, effects: &mut Vec<Effect>) {
    let Some((name, rest)) = split(text) else { return };
    let Some(command) = known(name) else {
        let near = menu(&s.own, name, 1);
        let hint = near
            .first()
            .map_or_else(|| "/help lists all".into(), |(near, _)| format!("did you mean {near}?"));
        return wrong(s, &format!("unknown command /{name}; {hint}"));
    };
    let needs = |s: &mut State| match s.session.id.is_some() {
        true => true,
        false => {
            s.hint = format!("/{name} needs a session; send a task first");
            false
        }
    };
    let ask = |ask: HostRequest| Effect::Ask(ask);
    match command.name {
        "help" => help(s),
        "keys" => keys(s),
        "model" if rest.is_empty() => effects.push(ask(HostRequest::Models)),
        "model" => effects.push(ask(HostRequest::Model(rest.into()))),
        "effort" => effort(s, rest, effects),
        "login" if s.plain => wrong(s, "to set up a model, quit and run: dunnock login"),
        "login" => effects.push(ask(HostRequest::Login(s.login.open()))),
        "clear" | "new" => {
            end_welcome(s);
            if let Some(id) = &s.session.id {
                let short = id.as_str().get(..8).unwrap_or_default();
                let title = s.session.title.clone();
                s.out.push(Line::empty());
                s.out.push(note(&format!(
                    "saved as {short} “{title}” · /resume {short} to continue"
                )));
            }
            switch(s, HostRequest::New, effects);
        }
        "resume" | "sessions" if command.name == "resume" && !rest.is_empty() => {
            switch(s, HostRequest::Find(rest.into()), effects)
        }
        "resume" | "sessions" => effects.push(ask(HostRequest::Sessions(rest.into()))),
        "diff" if needs(s) => effects.push(ask(HostRequest::Diff)),
        "undo" if needs(s) => effects.push(ask(HostRequest::Undo)),
        "rewind" if needs(s) => effects.push(ask(HostRequest::Points)),
        "fork" if needs(s) => match rest.parse() {
            Ok(step) => switch(s, HostRequest::Fork(Some(step)), effects),
            Err(_) if rest.is_empty() => switch(s, HostRequest::Fork(None), effects),
            Err(_) => wrong(s, &format!("unknown step \"{rest}\"; use a step number")),
        },
        "compact" if needs(s) => send(s, Command::Compact, effects),
        "context" if needs(s) => effects.push(ask(HostRequest::Context)),
        "mcp" => effects.push(ask(HostRequest::Servers)),
        "remember" if rest.is_empty() => {
            s.hint = "say what to remember: /remember run the tests with make check".into();
        }
        // An ordinary task: the edit asks as every other does, and undo covers it.
        "remember" => prompt(s, format!("{REMEMBER}\n\n{rest}"), Vec::new(), effects),
        "cost" if needs(s) => effects.push(ask(HostRequest::Cost)),
        "approvals" => approvals(s, rest, effects),
        "rules" => effects.push(ask(HostRequest::Rules)),
        "copy" if s.session.answer.is_empty() => s.hint = "no answer to copy yet".into(),
        "copy" => {
            s.hint = format!(
                "copied {}",
                dunnock_proto::count(s.session.answer.chars().count(), "character")
            );
            effects.push(Effect::Copy(s.session.answer.clone()));
        }
        "export" if needs(s) => effects.push(ask(HostRequest::Export)),
        "theme" => theme(s, rest),
        "demo" if s.session.id.is_some() => {
            s.hint = "the tour needs a new session: type /new".into()
        }
        "demo" => {
            end_welcome(s);
            effects.push(Effect::Demo);
        }
        "quit" => effects.push(Effect::Quit),
        _ => {}
    }
}

fn known(name: &str) -> Option<&'static Slash> {
    let exact = COMMANDS.iter().find(|c| c.name == name);
    exact.or(match name {
        "exit" | "q" => COMMANDS.iter().find(|c| c.name == "quit"),
        "?" => COMMANDS.iter().find(|c| c.name == "help"),
        _ => None,
    })
}

fn approvals(s: &mut State, rest: &str, effects: &mut Vec<Effect>) {
    if rest.is_empty() {
        let now = s.approvals();
        let row = |m: Mode| Row {
            label: format!("{:<6} {}", mode(m), mode_words(m)),
            detail: if m == now { "current".into() } else { String::new() },
            below: Vec::new(),
            value: Value::Mode(m),
        };
        s.pick = Some(Pick::new("Approvals", MODES.into_iter().map(row).collect()));
        return;
    }
    match MODES.into_iter().find(|m| mode(*m) == rest) {
        Some(found) => set_mode(s, found, effects),
        None => wrong(s, &format!("unknown mode \"{rest}\"; use read, ask, edits, auto or all")),
    }
}

fn effort(s: &mut State, rest: &str, effects: &mut Vec<Effect>) {
    if rest.is_empty() {
        let now = s.session.effort.get().or(s.session.config.effort);
        let row = |effort: Effort| Row {
            label: format!("{:<6} {}", effort.name(), crate::effort::words(effort)),
            detail: if Some(effort) == now { "current".into() } else { String::new() },
            below: Vec::new(),
            value: Value::Effort(effort),
        };
        s.pick = Some(Pick::new("Effort", Effort::ALL.into_iter().map(row).collect()));
        return;
    }
    match Effort::named(rest) {
        Some(effort) => effects.push(Effect::Ask(HostRequest::Effort(effort))),
        None => {
            let all = "use none, low, medium, high, xhigh or max";
            wrong(s, &format!("unknown effort \"{rest}\"; {all}"));
        }
    }
}

fn theme(s: &mut State, rest: &str) {
    if rest.is_empty() {
        let now = s.theme.name();
        let row = |(name, _, about): &(&'static str, Theme, &str)| Row {
            label: format!("{name:<6} {about}"),
            detail: if *name == now { "current".into() } else { String::new() },
            below: Vec::new(),
            value: Value::Theme(name),
        };
        s.pick = Some(Pick::new("Colours", THEMES.iter().map(row).collect()));
        return;
    }
    match Theme::named(rest) {
        Some(theme) => {
            s.theme = theme;
            s.hint = format!("theme {rest}; to keep it, set theme = \"{rest}\" in config.toml");
        }
        None => wrong(s, &format!("unknown theme \"{rest}\"; use dark, light, 16 or mono")),
    }
}

fn two_columns(s: &mut State, rows: impl Iterator<Item = (String, String)>) {
    let columns = s.columns();
    for (left, right) in rows {
        let line =
            Line::of(&format!(" {left:<26} "), Style::of(Tone::Accent)).and(&right, Tone::Text);
        s.out.extend(line.wrap(columns, "", "    "));
    }
}

fn heading(s: &mut State, text: &str) {
    s.out.push(Line::empty());
    s.out.push(Line::of(&format!(" {text}"), Style::default().bold()));
}

fn help(s: &mut State) {
    end_welcome(s);
    heading(s, "Type a task and press enter. While it works, add messages for the next step.");
    let own: Vec<(String, String)> =
        s.own.iter().map(|c| (format!("/{}", c.name), c.about.clone())).collect();
    let ours = COMMANDS.iter().map(|c| (format!("/{} {}", c.name, c.args), c.about.to_owned()));
    two_columns(s, ours.chain(own));
    let more = [
        ("@", "name a file: @src/main.rs"),
        ("!", "run your own command: !git status"),
        ("/keys", "all keys"),
    ];
    two_columns(s, more.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())));
}

fn keys(s: &mut State) {
    end_welcome(s);
    let mut place = None;
    for key in KEYS {
        if place != Some(key.place) {
            place = Some(key.place);
            heading(s, key.place.name());
        }
        two_columns(s, std::iter::once((key.key.to_owned(), key.about.to_owned())));
    }
}
