//! The user's approval rules for all sessions: `rules.toml` next to their settings, and `dunnock
//! rules`.
//!
//! No folder or model can add rules: only an answer from the user or `dunnock rules` does.

use crate::config::paths;
use crate::view::exit::usage;
use crate::view::output;
use anyhow::Context as _;
use dunnock_core::policy;
use dunnock_proto::{Access, Rule};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// All saved rules.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rules {
    pub(crate) allow: Vec<Rule>,
    pub(crate) deny: Vec<Rule>,
}

fn file() -> anyhow::Result<PathBuf> {
    Ok(paths::config_dir()?.join("rules.toml"))
}

/// Reads the rules. An unreadable file is an error, because a deny rule in it must not be lost.
pub(crate) fn load() -> anyhow::Result<Rules> {
    let Ok(path) = file() else { return Ok(Rules::default()) };
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            toml::from_str(&text).with_context(|| format!("{} cannot be parsed", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Rules::default()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

pub(crate) fn save(rules: &Rules) -> anyhow::Result<()> {
    let path = file()?;
    let mut text = String::from(
        "# Rules for all sessions. \"dunnock rules\" lists them, \"dunnock rules revoke N\" \
         removes one.\n",
    );
    for (kind, list) in [("allow", &rules.allow), ("deny", &rules.deny)] {
        for rule in list {
            let (tool, words) =
                (serde_json::to_string(&rule.tool)?, serde_json::to_string(&rule.words)?);
            text.push_str(&format!("\n[[{kind}]]\ntool = {tool}\nwords = {words}\n"));
            let Access { network, secrets, protected, git_config, repository, login, unsandboxed } =
                rule.access;
            if !rule.access.is_nothing() {
                let git_config = if git_config { ", git_config = true" } else { "" };
                let repository = if repository { ", repository = true" } else { "" };
                let login = if login { ", login = true" } else { "" };
                text.push_str(&format!(
                    "access = {{ network = {network}, secrets = {secrets}, protected = \
                     {protected}{git_config}{repository}{login}, unsandboxed = {unsandboxed} }}\n"
                ));
            }
        }
    }
    write(&path, &text).with_context(|| format!("{} cannot be written", path.display()))
}

/// Writes one of the user's files, readable only by them.
pub(crate) fn write(path: &Path, text: &str) -> std::io::Result<()> {
    dunnock_private::create_folder(path.parent().unwrap_or(Path::new(".")))?;
    dunnock_private::replace(path, text.as_bytes())
}

/// A rule as typed, and what it grants.
pub(crate) fn listed(rule: &Rule) -> String {
    let access: Vec<&str> = rule.access.list().collect();
    if access.is_empty() {
        rule.shape()
    } else {
        format!("{}  (grants {})", rule.shape(), access.join("; "))
    }
}

/// Saves an allow rule for all sessions, unless it would allow everything.
pub(crate) fn allow(rule: &Rule) -> anyhow::Result<()> {
    if !policy::grantable(rule) {
        return Err(usage(format!(
            "{} would allow everything, because it runs any command it is given. Name a more \
             specific command",
            rule.shape()
        )));
    }
    let _alone = alone()?;
    let mut rules = load()?;
    if !rules.allow.contains(rule) {
        rules.allow.push(rule.clone());
        save(&rules)?;
    }
    Ok(())
}

/// Removes an allow rule or a deny rule.
pub(crate) fn revoke(rule: &Rule, allows: bool) -> anyhow::Result<()> {
    let _alone = alone()?;
    let mut rules = load()?;
    let list = if allows { &mut rules.allow } else { &mut rules.deny };
    let before = list.len();
    list.retain(|known| known != rule);
    match list.len() < before {
        true => save(&rules),
        false => Err(usage("there is no such rule")),
    }
}

/// Locks the rules against changes by this or another process, so that a removed rule is not
/// written back.
pub(crate) fn alone() -> anyhow::Result<std::fs::File> {
    let path = file()?.with_extension("lock");
    dunnock_private::create_folder(path.parent().unwrap_or(Path::new(".")))?;
    let lock = dunnock_private::open_append(&path)
        .with_context(|| format!("{} cannot be opened", path.display()))?;
    lock.lock()?;
    Ok(lock)
}

/// Saves an allow rule and prints it.
pub(crate) fn always(rule: &Rule) -> anyhow::Result<()> {
    allow(rule)?;
    output::note(&format!(
        "always allowed from now on, in all sessions: {}. To remove the rule: dunnock rules \
         revoke N",
        rule.shape()
    ));
    Ok(())
}
