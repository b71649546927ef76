//! What may run, what asks, what never runs, and why.
//!
//! The kernel is the boundary; this only chooses what to ask. Invariant: a denial wins over everything, and what is not
//! understood falls to the strict side.

use crate::state::{Call, State};
use dunnock_proto::{By, Class, Level, Mode, PathArgs, Rule};

/// Files and folders that other programs act on by themselves, the names one after the other in a path: an edit there can
/// become a command that nobody was asked about.
const ACTED_ON: &[&[&str]] = &[
    &[".git"],
    &[".dunnock"],
    &[".vscode"],
    &[".idea"],
    &[".mcp.json"],
    &[".cursor"],
    &[".claude"],
    &[".codex"],
    &[".envrc"],
    &[".npmrc"],
    &[".husky"],
    &[".cargo", "config.toml"],
    &[".cargo", "config"],
    &[".github", "workflows"],
];

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

/// Judges a call against denials, mode, box level and the person's rules, in that order.
#[must_use]
pub fn judge(s: &State, call: &Call) -> Verdict {
    let allow = |why: &str| Verdict::Allow(By::Policy(why.into()));
    let ask = |why: &str| Verdict::Ask(why.into());
    let mut obscure = false;
    for rule in s.config.deny.iter().filter(|rule| rule.tool == call.part.tool) {
        match touches(rule, call) {
            Some(true) => return Verdict::Deny(format!("a rule forbids {}", show(rule))),
            Some(false) => {}
            None => obscure = true,
        }
    }
    match s.config.mode {
        Mode::Read if call.class != Class::Read => return Verdict::Deny("the mode is read: nothing may change".into()),
        Mode::All if obscure => return Verdict::Deny("a rule forbids some of these, and this one is obscure".into()),
        _ if obscure => return ask("a rule forbids some of these, and this one is obscure"),
        Mode::Read | Mode::Ask | Mode::Edits | Mode::Auto | Mode::All => {}
    }
    if call.class == Class::Read {
        return allow("it only looks");
    }
    let granted = s.grants.iter().find(|rule| covers(rule, call));
    let acted_on = call.class == Class::Edit && acted_on(call);
    match (s.config.mode, granted) {
        (Mode::Edits | Mode::Auto, None) if acted_on => ask("other programs act on that file by themselves"),
        (Mode::Read, _) => Verdict::Deny("the mode is read".into()),
        (Mode::All, _) => allow("the mode is all"),
        (Mode::Ask | Mode::Edits | Mode::Auto, Some(rule)) => Verdict::Allow(By::Grant(rule.clone())),
        (Mode::Ask, None) => ask("the mode is ask: whatever changes something asks"),
        (Mode::Edits, None) => match call.class {
            Class::Edit => allow("the mode is edits"),
            Class::Command | Class::Read => ask("the mode is edits: commands ask"),
        },
        (Mode::Auto, None) => match (call.class, s.seat.map_or(Level::D, |seat| seat.level)) {
            (Class::Edit, _) => allow("an edit in the workspace"),
            (Class::Command, level @ (Level::A | Level::B | Level::C)) => {
                Verdict::Allow(By::Policy(format!("the box holds it (level {level:?})")))
            }
            (Class::Command | Class::Read, Level::D) => ask("there is no box here (level D): commands run unconfined"),
            (Class::Read, Level::A | Level::B | Level::C) => allow("it only looks"),
        },
    }
}

/// Whether an edit is of a file that other programs act on.
fn acted_on(call: &Call) -> bool {
    let Ok(args) = PathArgs::parse(call.args()) else { return false };
    let path = args.path.to_lowercase();
    let names: Vec<&str> = path.split(['/', '\\']).filter(|name| !name.is_empty() && *name != ".").collect();
    ACTED_ON.iter().any(|known| names.windows(known.len()).any(|part| part == *known))
}

/// Whether a grant speaks of this call: every simple command begins with the rule's words, and all was understood.
#[must_use]
pub fn covers(rule: &Rule, call: &Call) -> bool {
    if rule.tool != call.part.tool {
        return false;
    }
    match &call.part.shape {
        _ if rule.words.is_empty() => true,
        Some(shape) => {
            !shape.opaque && !shape.commands.is_empty() && shape.commands.iter().all(|c| c.starts_with(&rule.words))
        }
        None => false,
    }
}

/// Whether a denial of its tool speaks of this call: some simple command begins with the rule's words. `None` if that
/// cannot be told.
fn touches(rule: &Rule, call: &Call) -> Option<bool> {
    match &call.part.shape {
        _ if rule.words.is_empty() => Some(true),
        Some(shape) if shape.commands.iter().any(|c| c.starts_with(&rule.words)) => Some(true),
        Some(shape) => (!shape.opaque).then_some(false),
        None => None,
    }
}

/// Whether some denial speaks of the tool: then arguments that were not parsed are not let through.
#[must_use]
pub fn guarded(s: &State, tool: &str) -> bool {
    s.config.deny.iter().any(|rule| rule.tool == tool)
}

fn show(rule: &Rule) -> String {
    if rule.words.is_empty() { rule.tool.clone() } else { format!("{} {}", rule.tool, rule.words.join(" ")) }
}
