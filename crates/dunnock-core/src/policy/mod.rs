//! What may run, what asks, what never runs, and why.
//!
//! The kernel is the boundary; this only chooses what to ask. Invariant: a denial wins over everything, and what is not
//! understood falls to the strict side.

mod lists;
mod planner;
mod words;
mod wrap;

pub use lists::{Loses, PROTECTED, Told, is_invisible, is_secret};

use crate::patch::Patch;
use crate::state::{Call, State};
use dunnock_proto::{By, Class, CommandArgs, CommandText, Level, Mode, Open, PathArgs, Rule, Sandbox};
use words::{Line, Simple};
use wrap::base;

/// What policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs, on this word.
    Allow(By),
    /// The person decides; why.
    Ask(String),
    /// It never runs; why.
    Deny(String),
}

/// The command of a call, taken apart; and whether it asks for the network. `None` for a call without one.
fn command(call: &Call) -> Option<(Line, bool)> {
    if call.class != Class::Command {
        return None;
    }
    let CommandArgs { command, network } = CommandArgs::parse(call.args()).ok()?;
    let line = match command {
        CommandText::Line(line) => words::split(&line),
        CommandText::Words(words) => words::given(&words),
    };
    Some((line, network))
}

/// What the text of a call comes to.
#[must_use]
pub fn told(s: &State, call: &Call) -> Told {
    let mut told = Told::default();
    if let Some((line, network)) = command(call) {
        told = lists::of_line(&line, s.level());
        if network {
            told.open.network = true;
            told.asks.insert(0, "it asks for the network".into());
        }
    } else if let Ok(args) = PathArgs::parse(call.args()) {
        for path in paths(&args) {
            if call.class == Class::Edit {
                let of_path = lists::of_edit(&path);
                told.never = told.never.or(of_path.never);
                told.asks.extend(of_path.asks);
            }
            if is_secret(&path) {
                told.asks.push("it names a secret file".into());
            }
        }
        told.asks.dedup();
    }
    told
}

/// Every path that a call names. A patch that cannot be read touches nothing: its tool reads it with the same eyes.
fn paths(args: &PathArgs) -> Vec<String> {
    let patch = args.patch.as_deref().and_then(|text| Patch::parse(text).ok());
    let named = args.path.iter().chain(&args.to).map(String::as_str);
    named.chain(patch.iter().flat_map(Patch::paths)).map(plain_path).collect()
}

/// A path as tools read it: without white space around it, and without names that lead nowhere.
#[must_use]
pub fn plain_path(path: &str) -> String {
    let path = path.trim();
    let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    format!("{}{}", if path.starts_with('/') { "/" } else { "" }, names.join("/"))
}

/// What a person is shown who decides about a call: exactly what would run, why that is asked, what holds it, what it is let
/// have, and the rule that "always" would make.
#[must_use]
pub fn question(s: &State, call: &Call, why: &str) -> String {
    let mut text = format!("{} {}\nwhy: {why}", call.part.tool, call.args());
    if call.class == Class::Command {
        let open = told(s, call).open;
        let box_line = match s.level() {
            Level::D => "none (level D): it can do whatever you can".to_owned(),
            level @ (Level::A | Level::B | Level::C) => {
                format!("level {level:?}{}", if open.bare { ", which this call leaves" } else { "" })
            }
        };
        text.push_str(&format!("\nbox: {box_line}"));
        if s.level() != Level::D && open != Open::default() {
            text.push_str(&format!("\nwith a yes it {}", open.words()));
        }
    }
    if let Some(rule) = offer(s, call) {
        text.push_str(&format!("\nalways: {}", show(&rule)));
    }
    text
}

/// What the command of a call would lose, where its text tells: for whoever shows it.
#[must_use]
pub fn loses(call: &Call) -> Vec<Loses> {
    command(call).map(|(line, _)| lists::loses(&line)).unwrap_or_default()
}

/// What a call that may run is let have beyond the box. Whoever said that it may run was told.
#[must_use]
pub fn opened(s: &State, call: &Call) -> Open {
    let open = told(s, call).open;
    match s.config.mode {
        _ if call.harness => Open::NOTHING,
        // Nobody was asked: a text alone takes nothing out of the box.
        Mode::All => Open { bare: false, ..open },
        Mode::Read | Mode::Ask | Mode::Edits | Mode::Auto => open,
    }
}

/// Judges a call against denials, mode, box level and the person's rules, in that order.
#[must_use]
pub fn judge(s: &State, call: &Call) -> Verdict {
    let allow = |why: &str| Verdict::Allow(By::Policy(why.into()));
    let ask = |why: &str| Verdict::Ask(why.into());
    let line = command(call).map(|(line, _)| line);
    let mut obscure = false;
    // A command that is denied is denied by whatever tool runs it.
    let about = |rule: &&Rule| {
        rule.tool == call.part.tool || (line.is_some() && !rule.words.is_empty() && rule.tool == "shell")
    };
    for rule in s.config.deny.iter().filter(about) {
        match touches(rule, line.as_ref()) {
            Some(true) => return Verdict::Deny(format!("a rule forbids {}", show(rule))),
            Some(false) => {}
            None => obscure = true,
        }
    }
    if let (Sandbox::Require(least), Class::Command) = (s.config.sandbox, call.class)
        && s.level() > least
    {
        return Verdict::Deny(format!("level {least:?} of the box is required, and there is level {:?}", s.level()));
    }
    let told = told(s, call);
    if let Some(why) = told.never {
        return Verdict::Deny(why);
    }
    if let (Some(planner), Some(line)) = (&s.config.planner, &line)
        && let Some(why) = planner::denied(line, &planner.allow)
    {
        return Verdict::Deny(why);
    }
    let looks = call.class == Class::Read || line.as_ref().is_some_and(lists::only_looks);
    match s.config.mode {
        Mode::Read if !looks => return Verdict::Deny("the mode is read: nothing may change".into()),
        Mode::All if obscure => return Verdict::Deny("a rule forbids some of these, and this one is obscure".into()),
        _ if obscure => return ask("a rule forbids some of these, and this one is obscure"),
        Mode::All => return allow("the mode is all"),
        Mode::Read | Mode::Ask | Mode::Edits | Mode::Auto => {}
    }
    // A rule for all calls of a tool is not one for those that ask for a reason of their own; none lets a call have more than
    // was said when it was made, and one made in a box is none without.
    let enough = |rule: &Rule| {
        rule.open.covers(told.open) && (s.level() != Level::D || call.class != Class::Command || rule.open.bare)
    };
    let speaks = |rule: &&Rule| covers(rule, call) && enough(rule) && (!rule.words.is_empty() || told.asks.is_empty());
    if s.config.mode != Mode::Read
        && let Some(rule) = s.grants.iter().chain(&s.config.allow).find(speaks)
    {
        return Verdict::Allow(By::Grant(rule.clone()));
    }
    if s.outside && call.part.tool == "process_write" {
        return ask("a process runs that was let have more than the box, and what is written to it may be a command");
    }
    if !told.asks.is_empty() {
        return Verdict::Ask(told.asks.join("; "));
    }
    if looks {
        return allow("it only looks");
    }
    match (s.config.mode, call.class, s.level()) {
        (Mode::Read, ..) => Verdict::Deny("the mode is read".into()),
        (Mode::All, ..) => allow("the mode is all"),
        (Mode::Ask, ..) => ask("the mode is ask: whatever changes something asks"),
        (Mode::Edits, Class::Edit, _) => allow("the mode is edits"),
        (Mode::Edits, Class::Command | Class::Read, _) => ask("the mode is edits: commands ask"),
        (Mode::Auto, Class::Edit, _) => allow("an edit in the workspace"),
        (Mode::Auto, Class::Command | Class::Read, level @ (Level::A | Level::B | Level::C)) => {
            Verdict::Allow(By::Policy(format!("the box holds it (level {level:?})")))
        }
        (Mode::Auto, Class::Command | Class::Read, Level::D) => {
            ask("there is no box here (level D): commands run unconfined")
        }
    }
}

/// Programs that run what they are given: a rule for one would be a rule for everything.
const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "tclsh",
    "awk",
    "gawk",
    "mawk",
    "sed",
    "ed",
    "vi",
    "vim",
    "nvim",
    "emacs",
    "osascript",
    "pwsh",
    "powershell",
    "find",
    "fd",
    "fdfind",
    "npx",
    "bunx",
    "pipx",
    "uvx",
    "eval",
    "source",
    ".",
    "exec",
    "trap",
    "ssh",
    "docker",
    "podman",
    "gdb",
    "lldb",
    "sqlite3",
    "psql",
    "java",
    "Rscript",
    "julia",
    "ghci",
    "script",
    "su",
    "tar",
    "zip",
    "git -c",
];

/// Programs whose network is that of a registry.
const FETCHERS: &[&str] = &[
    "npm", "pnpm", "yarn", "bun", "pip", "pip3", "uv", "poetry", "pipenv", "pdm", "cargo", "go", "gem", "bundle",
    "composer",
];

/// The rule that "always" would grant for a call, if there is one that is not a rule for everything.
#[must_use]
pub fn offer(s: &State, call: &Call) -> Option<Rule> {
    let tool = call.part.tool.clone();
    let Some((line, _)) = command(call) else {
        let plain = call.class == Class::Edit && told(s, call).asks.is_empty();
        return plain.then_some(Rule { tool, words: Vec::new(), open: Open::NOTHING });
    };
    let mut open = told(s, call).open;
    let [one] = line.commands.as_slice() else { return None };
    let mut words = vec![one.words.first()?.text.clone()];
    // What goes out of the box, and what talks to whomever it is told to, is asked about each time.
    let fetches = FETCHERS.contains(&base(words.first()?));
    if open.bare || (open.network && !fetches && base(words.first()?) != "git") {
        return None;
    }
    if s.level() == Level::D {
        open.bare = true;
    }
    if open.network && !fetches {
        // Where to is part of it.
        words = one.texts().map(str::to_owned).collect();
        let rule = Rule { tool, words, open };
        return (grantable(&rule) && covers(&rule, call)).then_some(rule);
    }
    // Of a program with many commands, one of them.
    let named =
        |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == ':') && !text.starts_with('-');
    words.extend(one.words.get(1).map(|word| word.text.clone()).filter(|text| named(text)));
    let rule = Rule { tool, words, open };
    (grantable(&rule) && covers(&rule, call)).then_some(rule)
}

/// Whether a rule is about something, and not about everything.
#[must_use]
pub fn grantable(rule: &Rule) -> bool {
    match rule.words.first() {
        None => !matches!(rule.tool.as_str(), "shell" | "process_start"),
        Some(program) => {
            let name = base(program);
            let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            !wrap::wraps(name)
                && !INTERPRETERS.iter().any(|known| *known == name || *known == versioned)
                && !program.starts_with('.')
                && rule.words.get(1).is_none_or(|word| !word.starts_with('-'))
        }
    }
}

/// Whether a grant speaks of this call: every simple command begins with the rule's words, goes on without options, and all
/// was understood.
#[must_use]
pub fn covers(rule: &Rule, call: &Call) -> bool {
    if rule.tool != call.part.tool || !grantable(rule) {
        return false;
    }
    if rule.words.is_empty() {
        return true;
    }
    let plain = |c: &Simple| c.sets.is_empty() && c.files.is_empty() && c.words.iter().all(|word| word.plain);
    let begins = |c: &Simple| {
        let texts: Vec<&str> = c.texts().collect();
        let rest = texts.get(rule.words.len()..);
        // The very same options as the rule's own are part of its words; others may mean anything.
        let exact = rule.open.network && !FETCHERS.contains(&base(texts.first().copied().unwrap_or_default()));
        let harmless = |rest: &[&str]| {
            rest.iter().all(|word| !word.starts_with('-') && !is_secret(word)) && (!exact || rest.is_empty())
        };
        texts.iter().zip(&rule.words).all(|(a, b)| a == b) && rest.is_some_and(harmless)
    };
    command(call).is_some_and(|(line, _)| {
        !line.obscure && !line.commands.is_empty() && line.commands.iter().all(|c| plain(c) && begins(c))
    })
}

/// Whether a denial of its tool speaks of this call: some simple command begins with the rule's words. `None` if that
/// cannot be told.
fn touches(rule: &Rule, line: Option<&Line>) -> Option<bool> {
    if rule.words.is_empty() {
        return Some(true);
    }
    let all = wrap::unwrapped(line?);
    let starts = |words: &[&str]| {
        words.len() >= rule.words.len() && words.iter().zip(&rule.words).all(|(a, b)| a == b || base(a) == b)
    };
    // Options before a subcommand do not hide it.
    let begins = |c: &Simple| {
        let plain: Vec<&str> = c.texts().collect();
        starts(&plain) || lists::git(c).is_some_and(|(sub, rest)| starts(&[&["git", sub], rest.as_slice()].concat()))
    };
    let unsure = |c: &Simple| c.words.first().is_some_and(|word| !word.plain);
    match all.commands.iter().any(begins) {
        true => Some(true),
        false => (!all.obscure && !all.commands.iter().any(unsure)).then_some(false),
    }
}

/// Whether some denial speaks of the tool: then arguments that were not parsed are not let through.
#[must_use]
pub fn guarded(s: &State, tool: &str) -> bool {
    s.config.deny.iter().any(|rule| rule.tool == tool)
}

/// A rule as it is shown.
#[must_use]
pub fn show(rule: &Rule) -> String {
    if rule.words.is_empty() { rule.tool.clone() } else { format!("{} {}", rule.tool, rule.words.join(" ")) }
}
