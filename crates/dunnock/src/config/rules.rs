//! The user's approval rules, for one project or for all: `rules.toml` next to their settings, and
//! `dunnock rules`.
//!
//! No folder or model can add rules: only an answer from the user or `dunnock rules` does. A rule
//! for one project is stored here as well, never in the project.

use crate::config::paths;
use crate::view::exit::usage;
use crate::view::output;
use anyhow::Context as _;
use dunnock_core::policy;
use dunnock_proto::{Access, Rule, TOOL_USE};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// All saved rules.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rules {
    pub(crate) allow: Vec<SavedRule>,
    pub(crate) deny: Vec<SavedRule>,
}

/// A rule, and where it applies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RuleEntry")]
pub(crate) struct SavedRule {
    pub(crate) rule: Rule,
    /// The only folder in which it applies, together with the folders in it.
    pub(crate) project: Option<PathBuf>,
}

/// A rule as it is written in the file. A misspelt name would widen the rule, or lose it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    tool: String,
    words: Vec<String>,
    #[serde(default)]
    access: Access,
    #[serde(default)]
    project: Option<PathBuf>,
}

impl TryFrom<RuleEntry> for SavedRule {
    type Error = String;

    fn try_from(entry: RuleEntry) -> Result<Self, String> {
        let RuleEntry { tool, words, access, project } = entry;
        if let Some(project) = project.as_ref().filter(|project| !project.is_absolute()) {
            return Err(format!("project = {project:?} must be an absolute path"));
        }
        let project = project.map(|folder| folder.canonicalize().unwrap_or(folder));
        Ok(Self { rule: Rule { tool, words, access }, project })
    }
}

impl SavedRule {
    /// Whether it applies to a session in this folder. The home folder and those above it hold
    /// other projects, so a rule for one of them applies to that folder alone.
    fn applies_in(&self, folder: &Path) -> bool {
        let Some(project) = &self.project else { return true };
        let home = paths::text_var("HOME").map(PathBuf::from);
        let home = home.and_then(|home| home.canonicalize().ok());
        let holds_home =
            project.parent().is_none() || home.is_some_and(|home| home.starts_with(project));
        folder == project || (folder.starts_with(project) && !holds_home)
    }

    /// Where it applies, for people.
    pub(crate) fn place(&self) -> String {
        match &self.project {
            Some(project) => format!("in {}", paths::short(project)),
            None => "in all projects".into(),
        }
    }
}

impl Rules {
    /// The rules for sessions in this folder: those that allow, and those that deny.
    pub(crate) fn of_folder(self, folder: &Path) -> (Vec<Rule>, Vec<Rule>) {
        let here = |list: Vec<SavedRule>| {
            let mut rules = Vec::new();
            for saved in list.into_iter().filter(|saved| saved.applies_in(folder)) {
                if !rules.contains(&saved.rule) {
                    rules.push(saved.rule);
                }
            }
            rules
        };
        (here(self.allow), here(self.deny))
    }
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
        "# Your approval rules. \"dunnock rules\" lists them, \"dunnock rules revoke N\" removes \
         one.\n",
    );
    for (kind, list) in [("allow", &rules.allow), ("deny", &rules.deny)] {
        for SavedRule { rule, project } in list {
            let (tool, words) =
                (serde_json::to_string(&rule.tool)?, serde_json::to_string(&rule.words)?);
            text.push_str(&format!("\n[[{kind}]]\ntool = {tool}\nwords = {words}\n"));
            if let Some(project) = project {
                let project = project.to_str().context("the path of the project is not UTF-8")?;
                text.push_str(&format!("project = {}\n", serde_json::to_string(project)?));
            }
            let Access {
                network,
                hosts,
                secrets,
                protected,
                git_config,
                repository,
                login,
                outside,
                unsandboxed,
            } = &rule.access;
            if !rule.access.is_nothing() {
                let hosts = match hosts.is_empty() {
                    true => String::new(),
                    false => format!(", hosts = {}", serde_json::to_string(hosts)?),
                };
                let git_config = if *git_config { ", git_config = true" } else { "" };
                let repository = if *repository { ", repository = true" } else { "" };
                let login = if *login { ", login = true" } else { "" };
                let outside = if *outside { ", outside = true" } else { "" };
                text.push_str(&format!(
                    "access = {{ network = {network}{hosts}, secrets = {secrets}, protected = \
                     {protected}{git_config}{repository}{login}{outside}, unsandboxed = {unsandboxed} }}\n"
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
    let access = rule.access.list();
    if rule.opens_hosts() {
        rule.words()
    } else if access.is_empty() {
        rule.shape()
    } else {
        format!("{}  (grants {})", rule.shape(), access.join("; "))
    }
}

/// Saves an allow rule for a project, or for all, unless it would allow everything.
pub(crate) fn allow(rule: &Rule, project: Option<&Path>) -> anyhow::Result<()> {
    if rule.tool == TOOL_USE && !policy::grantable(rule) {
        return Err(usage(
            "a rule for one MCP tool is made by answering \"always\". To allow all tools of a server of \
             yours: dunnock rules allow tool_use 'NAME/*'",
        ));
    }
    if !policy::grantable(rule) && !rule.opens_hosts() {
        return Err(usage(format!(
            "{} would allow everything, because it runs any command it is given. Name a more \
             specific command",
            rule.shape()
        )));
    }
    let _alone = alone()?;
    let mut rules = load()?;
    let saved = SavedRule { rule: rule.clone(), project: project.map(Path::to_path_buf) };
    if !rules.allow.contains(&saved) {
        rules.allow.push(saved);
        save(&rules)?;
    }
    Ok(())
}

/// Removes an allow rule or a deny rule.
pub(crate) fn revoke(rule: &SavedRule, allows: bool) -> anyhow::Result<()> {
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
pub(crate) fn always(rule: &Rule, project: Option<&Path>) -> anyhow::Result<()> {
    allow(rule, project)?;
    let saved = SavedRule { rule: rule.clone(), project: project.map(Path::to_path_buf) };
    output::note(&format!(
        "always allowed from now on, {}: {}. \"dunnock rules\" lists your rules and removes them",
        saved.place(),
        rule.shape()
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_a_project_applies_there_and_in_its_folders_alone() {
        let rule = Rule { tool: "shell".into(), words: Vec::new(), access: Access::NOTHING };
        let of = |project: &str| SavedRule { rule: rule.clone(), project: Some(project.into()) };
        for (project, folder, applies) in [
            ("/w/shop", "/w/shop", true),
            ("/w/shop", "/w/shop/web", true),
            ("/w/shop", "/w/shop2", false),
            ("/w/shop", "/w", false),
            ("/", "/w", false),
            ("/", "/", true),
        ] {
            assert_eq!(of(project).applies_in(Path::new(folder)), applies, "{project} {folder}");
        }
        assert!(SavedRule { rule, project: None }.applies_in(Path::new("/w")));
        // A rule that a release without projects wrote applies to all of them.
        let old = "[[allow]]\ntool = \"shell\"\nwords = [\"make\"]\n";
        let new = format!("{old}project = \"/w/shop\"\naccess = {{ network = true }}\n");
        assert_eq!(toml::from_str::<Rules>(old).unwrap().allow[0].project, None);
        let saved = toml::from_str::<Rules>(&new).unwrap().allow.remove(0);
        assert!(saved.project == Some("/w/shop".into()) && saved.rule.access.network);
    }
}
