//! Tools of MCP servers: what is judged is what the answer recorded about them, never what a server
//! says later.

use super::lists::Findings;
use crate::state::{Call, State};
use dunnock_proto::{
    Access, Isolation, Reason, RequestKind, Rule, ServerToolArgs, TOOL_FIND, TOOL_USE, server_rule,
};

/// What is found in a call of a server's tool.
pub(super) fn of_call(s: &State, call: &Call, found: &mut Findings) {
    let Some(tool) = &call.server_tool else {
        let why = "there is no known tool of that name; find tools with tool_find first";
        found.never = Some(why.into());
        return;
    };
    // The person may have edited the arguments; what was recorded is about one tool.
    if !ServerToolArgs::parse(call.args()).is_ok_and(|args| args.tool == tool.name) {
        let why = "the arguments were edited to name another tool; call that tool itself";
        found.never = Some(why.into());
        return;
    }
    // An imported session has none.
    if !s.config.servers.iter().any(|server| server == tool.server_name()) {
        let server = tool.server_name();
        found.never = Some(format!("the MCP server {server} is not one of this session's"));
        return;
    }
    if tool.reads_only {
        return;
    }
    if was_allowed_before(s, call) {
        found.reasons.push(Reason::ServerToolChanged);
    }
    if tool.can_destroy {
        found.reasons.push(Reason::ServerToolDestroys);
    }
    if tool.from_project {
        found.reasons.push(Reason::ServerOfProject);
    }
    if found.reasons.is_empty() {
        found.reasons.push(Reason::MayDoMoreThanRead);
    }
}

/// Whether a rule allows the tool as it was described before.
fn was_allowed_before(s: &State, call: &Call) -> bool {
    let Some(tool) = &call.server_tool else { return false };
    let definition = tool.definition_hash.to_string();
    let of_tool = |rule: &&Rule| rule.tool == TOOL_USE && rule.words.first() == Some(&tool.name);
    let mut rules = s.grants.iter().chain(&s.config.allow).filter(of_tool).peekable();
    rules.peek().is_some() && !rules.any(|rule| rule.words.get(1) == Some(&definition))
}

/// The request for a call of a server's tool.
pub(super) fn request(call: &Call) -> RequestKind {
    match &call.server_tool {
        Some(tool) => RequestKind::ServerTool { server: tool.server_name().to_owned() },
        None => RequestKind::Tool { name: call.part.tool.clone() },
    }
}

/// The rule that "always" would create: this tool, as it is described now.
pub(super) fn offer(s: &State, call: &Call) -> Option<Rule> {
    let tool = call.server_tool.as_ref()?;
    let mut words = vec![tool.name.clone(), tool.definition_hash.to_string()];
    if tool.from_project {
        // In another project, another server may have this name.
        words.push(tool.settings_hash.to_string());
    }
    // A rule made with a sandbox does not apply without one.
    let access = Access { unsandboxed: s.level() == Isolation::D, ..Access::NOTHING };
    Some(Rule { tool: TOOL_USE.into(), words, access })
}

/// Whether a rule names one tool with its definition, or all tools of one server.
pub(super) fn grantable(rule: &Rule) -> bool {
    match rule.words.as_slice() {
        [all] => all.strip_suffix("/*").is_some_and(|server| !server.is_empty()),
        [tool, _] | [tool, _, _] => {
            tool.split_once('/').is_some_and(|(_, name)| !name.is_empty() && name != "*")
        }
        _ => false,
    }
}

/// Whether a rule allows a call. A rule for a whole server covers only servers of the person, and
/// no tool that can destroy something.
pub(super) fn covers(rule: &Rule, call: &Call) -> bool {
    let Some(tool) = &call.server_tool else { return false };
    match rule.words.as_slice() {
        [name, definition, settings @ ..] => {
            let is_server = match settings {
                [] => !tool.from_project,
                [settings, ..] => *settings == tool.settings_hash.to_string(),
            };
            is_server && *name == tool.name && *definition == tool.definition_hash.to_string()
        }
        all => {
            // A project can name its servers as it likes.
            !tool.can_destroy && !tool.from_project && *all == server_rule(tool.server_name())
        }
    }
}

/// Whether a deny rule applies to a call: to its tool, however that is described, or to its server.
pub(super) fn touches(rule: &Rule, call: &Call) -> bool {
    let Ok(ServerToolArgs { tool }) = ServerToolArgs::parse(call.args()) else { return false };
    let server = tool.split_once('/').map_or("", |(server, _)| server);
    match rule.words.first() {
        None => true,
        Some(word) => *word == tool || rule.words == server_rule(server),
    }
}

/// Whether a call may start servers: then it needs the sandbox that commands need.
pub(super) fn may_start(call: &Call) -> bool {
    matches!(call.part.tool.as_str(), TOOL_FIND | TOOL_USE)
}
