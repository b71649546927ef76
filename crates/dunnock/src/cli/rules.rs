//! `dunnock rules`: lists, adds and removes the user's approval rules.

use crate::cli::args::RulesCommand as Asked;
use crate::config::paths;
use crate::config::rules::{SavedRule, allow, alone, listed, load, save};
use crate::view::exit::usage;
use crate::view::output;
use dunnock_proto::{Access, HostRule, Rule, TOOL_USE};
use serde_json::json;
use std::process::ExitCode;

/// Builds a rule from the tool and the first words of its command.
fn rule(words: &[String], access: Access) -> anyhow::Result<Rule> {
    match words {
        [tool, words @ ..] => Ok(Rule { tool: tool.clone(), words: words.to_vec(), access }),
        [] => Err(usage(
            "name a tool and the first words of its command: dunnock rules deny shell docker",
        )),
    }
}

/// Runs the command.
pub(crate) fn run(what: Option<Asked>, json: bool) -> anyhow::Result<ExitCode> {
    let rules = load()?;
    match what {
        None => {
            let all = rules
                .allow
                .iter()
                .map(|rule| ("allow", rule))
                .chain(rules.deny.iter().map(|rule| ("deny", rule)));
            for (n, (kind, saved)) in all.clone().enumerate() {
                let rule = &saved.rule;
                output::line(&match json {
                    true => {
                        json!({"n": n + 1, "kind": kind, "tool": rule.tool, "words": rule.words,
                            "access": rule.access, "project": saved.project})
                        .to_string()
                    }
                    false => {
                        let line = format!("{}  {}", listed(rule), saved.place());
                        format!("{:>3}  {kind:<5}  {}", n + 1, output::visible(&line))
                    }
                });
            }
            if all.count() == 0 && !json {
                output::aside(
                    "there are no rules. Answer \"always\" to add one, or use: dunnock rules \
                     allow, dunnock rules deny",
                );
            }
            return Ok(ExitCode::SUCCESS);
        }
        Some(Asked::Revoke { n }) => {
            let _alone = alone()?;
            let mut rules = load()?;
            let (allowed, at) = (rules.allow.len(), n.wrapping_sub(1));
            let gone = match at {
                at if at < allowed => rules.allow.remove(at),
                at if at < allowed + rules.deny.len() => rules.deny.remove(at - allowed),
                _ => {
                    return Err(usage(format!(
                        "there is no rule {n}; \"dunnock rules\" lists them"
                    )));
                }
            };
            save(&rules)?;
            output::aside(&format!(
                "removed: {}. Sessions that started with it keep it until they are resumed",
                gone.rule.shape()
            ));
        }
        Some(Asked::Allow { words, network, host, here }) => {
            let hosts = host
                .iter()
                .map(|host| host.parse::<HostRule>().map_err(|error| usage(error.to_string())));
            let hosts = hosts.collect::<anyhow::Result<_>>()?;
            let access = Access { network, hosts, ..Access::NOTHING };
            let rule = match words.is_empty() {
                true => Rule { tool: "shell".into(), words, access },
                false => rule(&words, access)?,
            };
            let project = here.then(|| paths::workspace(None)).transpose()?;
            allow(&rule, project.as_deref())?;
        }
        Some(Asked::Deny { words }) => {
            if let [tool, name] = words.as_slice()
                && tool == TOOL_USE
                && !name.contains('/')
            {
                return Err(usage(format!(
                    "name a tool or a server: dunnock rules deny tool_use {name}/TOOL, or '{name}/*'"
                )));
            }
            let _alone = alone()?;
            let mut rules = load()?;
            rules.deny.push(SavedRule { rule: rule(&words, Access::NOTHING)?, project: None });
            save(&rules)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
