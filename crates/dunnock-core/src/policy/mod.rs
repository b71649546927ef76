//! Decides what may run, what needs approval and what never runs, and why.
//!
//! The kernel is the boundary; this only chooses what to ask.
//! Invariant: a denial overrides everything else, and what is not understood is treated strictly.
//! Invariant: policy is consulted when something is decided, never when a log is folded: past
//! decisions are in the events.

mod hosts;
mod lists;
mod login;
#[cfg(test)]
mod oracle;
mod planner;
mod project_code;
mod repository;
mod servers;
mod words;
mod wrap;

pub use lists::{
    Findings, Loses, PROTECTED, ProtectedName, is_invisible, is_of_system, is_protected, is_secret,
};
pub use login::Login;

use crate::apply::new_call;
use crate::patch::Patch;
use crate::state::{Call, State};
use dunnock_proto::{
    Access, AllowedBy, Answered, Approval, Class, CommandArgs, CommandText, Isolation, Mode, Part,
    PathArgs, Reason, RequestKind, Rule, Sandbox, TOOL_USE, WEB_FETCH,
};
use words::{CommandLine, Simple};
use wrap::base;

/// The policy's verdict on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow {
        /// Who allowed it.
        by: AllowedBy,
        /// What it is granted beyond the sandbox.
        access: Access,
    },
    /// The person decides.
    Ask(Approval),
    /// It never runs, for this reason.
    Deny(String),
}

/// The lists that policy consults. Each release has its own; logs outlive them.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// What the lists find in a call.
    pub findings: fn(&State, &Call) -> Findings,
}

impl Default for Policy {
    fn default() -> Self {
        Self { findings }
    }
}

/// The parsed command of a call, and whether it requests the network. `None` for a call without a
/// command.
fn command(call: &Call) -> Option<(CommandLine, bool)> {
    if call.class != Class::Command { None } else { command_of(call.args()) }
}

/// The same, for the arguments of a call that runs a command.
fn command_of(args: &str) -> Option<(CommandLine, bool)> {
    let CommandArgs { command, network, .. } = CommandArgs::parse(args).ok()?;
    Some((parsed(&command), network))
}

fn parsed(command: &CommandText) -> CommandLine {
    match command {
        CommandText::Line(line) => words::split(line),
        CommandText::Words(words) => words::given(words),
    }
}

/// What this release's lists find in a call.
#[must_use]
pub fn findings(s: &State, call: &Call) -> Findings {
    let mut found = Findings::default();
    if call.part.tool == TOOL_USE {
        servers::of_call(s, call, &mut found);
    } else if let Some((line, network)) = command(call) {
        found = lists::of_line(&line, s.level(), s.left_process);
        if s.in_repository && s.level() != Isolation::D {
            repository::note(&line, &mut found);
        }
        if network {
            found.access.network = true;
            found.reasons.insert(0, Reason::RequestsNetwork);
        }
        // A login without the network is of no use, and without a sandbox it is there anyway.
        let sandboxed = s.level() != Isolation::D && !found.access.unsandboxed;
        found.access.login = call.part.tool == "shell"
            && found.access.network
            && sandboxed
            && !is_in_folder(call)
            && login::of_line(&line).is_some();
        hosts::narrow(s, call, &line, &mut found);
    } else if call.part.tool == WEB_FETCH {
        hosts::of_page(s, call, &mut found);
    } else if let Ok(args) = PathArgs::parse(call.args()) {
        for path in paths(&args) {
            if call.class == Class::Edit {
                let of_path = lists::of_edit(&path);
                found.never = found.never.or(of_path.never);
                found.reasons.extend(of_path.reasons);
            }
            if is_secret(&path) {
                found.reasons.push(Reason::NamesSecret);
            }
            if s.config.reaches_machine() && is_outside(s, &path) {
                found.access.outside = true;
                if call.class == Class::Edit {
                    found.reasons.push(Reason::ChangesOutside);
                } else if !lists::is_of_system(&path) {
                    found.reasons.push(Reason::ReadsOutside);
                }
            }
        }
        // Each reason once, however many files there are.
        let mut seen: Vec<Reason> = Vec::new();
        found.reasons.retain(|reason| {
            !seen.contains(reason) && {
                seen.push(reason.clone());
                true
            }
        });
    }
    // Access that was opened before a secret was read was not meant for the secret.
    if sends(s, call, &found.access) && after_secret(s, call) {
        found.reasons.insert(0, Reason::AfterSecret);
    }
    found
}

/// Whether a call of a file tool with these arguments reads a secret. A command does if it is granted
/// access to secrets.
#[must_use]
pub(crate) fn reads_secret(s: &State, call: &Call, args: &str) -> bool {
    // A file that is written or deleted shows nothing.
    if call.class == Class::Command || matches!(&*call.part.tool, "write_file" | "delete_file") {
        return false;
    }
    let reads = |path: &String| {
        is_secret(path)
            || s.config.reaches_machine() && is_outside(s, path) && !lists::is_of_system(path)
    };
    PathArgs::parse(args).is_ok_and(|args| paths(&args).iter().any(reads))
}

/// Whether a secret may have been read in this session, or would be by a call that waits for approval:
/// the calls of an answer are judged together.
fn after_secret(s: &State, call: &Call) -> bool {
    let waits = s.questions.iter().filter_map(|question| question.kind.approval());
    s.read_secret
        || waits.filter(|approval| approval.call != call.id).any(|approval| {
            let named = |reason| matches!(reason, &Reason::NamesSecret | &Reason::ReadsOutside);
            let reads = |other: &Call| reads_secret(s, other, other.args());
            approval.access.secrets
                || approval.reasons.iter().any(named) && s.call(approval.call).is_some_and(reads)
        })
}

/// Whether a call with this access can send something elsewhere: itself, or through a process that
/// has more access. Without a sandbox, every command can.
fn sends(s: &State, call: &Call, access: &Access) -> bool {
    let acts = || !command(call).is_some_and(|(line, _)| lists::only_looks(&line));
    access.network
        || access.unsandboxed
        || !access.hosts.is_empty()
        || (s.outside && call.part.tool == "process_write")
        || call
            .server_tool
            .as_ref()
            .is_some_and(|tool| tool.reaches_network || s.level() == Isolation::D)
        || (s.level() == Isolation::D && call.class == Class::Command && acts())
}

/// Every path that a call names. A patch that cannot be parsed touches nothing: its tool uses the
/// same parser.
fn paths(args: &PathArgs) -> Vec<String> {
    let patch = args.patch.as_deref().and_then(|text| Patch::parse(text).ok());
    let named = args.path.iter().chain(&args.to).map(String::as_str);
    named.chain(patch.iter().flat_map(Patch::paths)).map(plain_path).collect()
}

/// A path as tools read it: without surrounding white space and redundant components.
#[must_use]
pub fn plain_path(path: &str) -> String {
    let path = path.trim();
    let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    format!("{}{}", if path.starts_with('/') { "/" } else { "" }, names.join("/"))
}

/// Whether a path, as tools read it, leads out of the workspace.
fn is_outside(s: &State, path: &str) -> bool {
    let workspace = s.workspace.as_deref().unwrap_or_default();
    let inside = path
        .strip_prefix(workspace)
        .is_some_and(|rest| !workspace.is_empty() && (rest.is_empty() || rest.starts_with('/')));
    path.starts_with('/') && !inside
}

/// The maximum number of calls in one answer.
pub(crate) const MOST_CALLS: usize = 500;

/// What the command of a call would destroy, as far as its text shows: for previews.
#[must_use]
pub fn loses(call: &Call) -> Vec<Loses> {
    command(call).map(|(line, _)| lists::loses(&line)).unwrap_or_default()
}

/// Whether a command is a single git command that replaces files of the work tree by other versions
/// of them.
#[must_use]
pub fn replaces_files(command: &CommandText) -> bool {
    let line = parsed(command);
    match line.commands.as_slice() {
        [one] if !line.obscure && one.sets.is_empty() => lists::checks_out(one),
        _ => false,
    }
}

/// Whether a command is a single git command that fetches commits and runs nothing of the project.
#[must_use]
pub fn fetches(command: &CommandText) -> bool {
    let line = parsed(command);
    match line.commands.as_slice() {
        [one] if !line.obscure && one.sets.is_empty() => {
            let words: Vec<&str> = one.texts().collect();
            matches!(words.as_slice(), ["git", "fetch" | "pull", ..])
        }
        _ => false,
    }
}

/// The calls of an answer that need approval and would destroy something or get more access, each
/// with that access: a preview is made for these.
#[must_use]
pub fn calls_to_preview(s: &State, answered: &Answered) -> Vec<(Call, Access)> {
    let calls = (0..)
        .zip(Part::calls(&answered.parts).take(MOST_CALLS))
        .map(|(n, part)| new_call(s.preamble.as_deref(), answered, n, part));
    let shows = |call: &Call, access: &Access| {
        !access.is_nothing() || call.server_tool.is_some() || !loses(call).is_empty()
    };
    let asks = |call: Call| match Policy::default().judge(s, &call) {
        Verdict::Ask(approval) if shows(&call, &approval.access) => Some((call, approval.access)),
        Verdict::Ask(_) | Verdict::Allow { .. } | Verdict::Deny(_) => None,
    };
    calls.filter_map(asks).collect()
}

/// Whether a call names a folder to run in.
fn is_in_folder(call: &Call) -> bool {
    let folder = CommandArgs::parse(call.args()).ok().and_then(|args| args.folder);
    folder.is_some_and(|folder| !plain_path(&folder).is_empty())
}

/// Whether the command of a call may run code of the project. In another folder, that folder's
/// repository decides what git runs.
fn runs_project_code(call: &Call) -> bool {
    command(call).is_some_and(|(line, _)| is_in_folder(call) || project_code::may_run(&line))
}

/// The names of the programs that a call runs, as far as its text shows: for previews.
#[must_use]
pub fn programs(call: &Call) -> Vec<String> {
    command(call).map(|(line, _)| program_names(&line)).unwrap_or_default()
}

fn program_names(line: &CommandLine) -> Vec<String> {
    let all = wrap::unwrapped(line);
    let first = |command: &Simple| command.words.first().filter(|word| word.plain).cloned();
    let mut names: Vec<String> =
        all.commands.iter().filter_map(first).map(|word| word.text).collect();
    names.retain(|name| !name.is_empty() && !name.contains('/'));
    names.sort();
    names.dedup();
    names
}

/// The remote that a call pushes to, if it is one plain `git push` and nothing else; empty if it
/// names none.
#[must_use]
pub fn pushes_to(command: &CommandText) -> Option<String> {
    project_code::pushes_to(&parsed(command))
}

/// The login of the person's that a command uses, if it is a single command.
#[must_use]
pub fn login(command: &CommandText) -> Option<Login> {
    login::of_line(&parsed(command))
}

/// How many entries of the stash a command applies before it drops them; 0 if it may drop others.
#[must_use]
pub fn pops_stash(command: &CommandText) -> usize {
    let line = parsed(command);
    let stashes = line.commands.iter().filter_map(lists::git).filter(|(name, _)| *name == "stash");
    let verbs: Vec<&str> = stashes.filter_map(|(_, words)| words.first().copied()).collect();
    let drops = line.obscure || verbs.iter().any(|verb| matches!(*verb, "drop" | "clear"));
    if drops { 0 } else { verbs.iter().filter(|verb| **verb == "pop").count() }
}

/// The approval request for a call: all reasons, and what a yes means.
fn approval(s: &State, call: &Call, reasons: Vec<Reason>, found: &Findings) -> Approval {
    let access = found.access.clone();
    let wider = if access.hosts.is_empty() { Access::NOTHING } else { found.wider.clone() };
    let runs = command(call).is_some();
    let isolation = runs.then(|| s.level());
    let rule = offer(s, call, &reasons, access.clone());
    let unsandboxed = access.unsandboxed || isolation == Some(Isolation::D);
    let request = match (call.class, call.part.tool.as_str()) {
        (Class::Command, _) if reasons.iter().any(destroys) => RequestKind::Destructive,
        (Class::Command, _) if unsandboxed => RequestKind::Unsandboxed,
        (Class::Command, _) if access.login => RequestKind::Login,
        (Class::Command, _) if access.list().len() > 1 => RequestKind::ExtraAccess,
        (Class::Command, _) if access.network => RequestKind::Network,
        (Class::Command, _) if !access.hosts.is_empty() => RequestKind::Hosts,
        (Class::Command, _) if access.secrets => RequestKind::Secrets,
        (Class::Command, _) if access.protected || access.git_config => RequestKind::Protected,
        (Class::Command, _) if access.repository => RequestKind::Repository,
        (Class::Command, _) if runs => RequestKind::Command,
        (Class::Command, "process_write") => RequestKind::ProcessInput,
        (Class::Edit, "delete_file") => RequestKind::Deletion,
        (Class::Edit, "move_file") => RequestKind::Move,
        (Class::Edit, _) if patch_deletes(call) => RequestKind::EditAndDelete,
        (Class::Edit, _) => RequestKind::Edit,
        (Class::Read, WEB_FETCH) => RequestKind::Page,
        (_, TOOL_USE) => servers::request(call),
        (Class::Command | Class::Read, tool) => RequestKind::Tool { name: tool.to_owned() },
    };
    let project_code = !access.is_nothing() && runs_project_code(call);
    let (call, call_hash) = (call.id, call.hash());
    let preview = Vec::new();
    Approval {
        call,
        call_hash,
        request,
        reasons,
        isolation,
        access,
        wider,
        rule,
        project_code,
        preview,
    }
}

/// Whether a call is a patch that deletes a file.
fn patch_deletes(call: &Call) -> bool {
    let patch = PathArgs::parse(call.args())
        .ok()
        .and_then(|args| Patch::parse(args.patch.as_deref()?).ok());
    patch.is_some_and(|patch| patch.removes_files())
}

fn destroys(reason: &Reason) -> bool {
    matches!(reason, Reason::DiscardsWork { .. } | Reason::DeletesFolder)
}

impl Policy {
    /// Judges a call against denials, mode, isolation and the person's rules, in that order.
    #[must_use]
    pub fn judge(&self, s: &State, call: &Call) -> Verdict {
        let found = (self.findings)(s, call);
        let allow = |why: &str| Verdict::Allow {
            by: match found.opened_by.clone() {
                Some(rule) => AllowedBy::Grant(rule),
                None => AllowedBy::Policy(why.into()),
            },
            access: found.access.clone(),
        };
        let ask = |reason: Reason| {
            let reasons = std::iter::once(reason).chain(found.reasons.iter().cloned()).collect();
            Verdict::Ask(approval(s, call, reasons, &found))
        };
        let line = command(call).map(|(line, _)| line);
        let mut unclear = None;
        // A denied command is denied for every tool that could run it.
        let about = |rule: &&Rule| {
            rule.tool == call.part.tool
                || (line.is_some() && !rule.words.is_empty() && rule.tool == "shell")
        };
        for rule in s.config.deny.iter().filter(about) {
            let touched = match call.part.tool == TOOL_USE {
                true => Some(servers::touches(rule, call)),
                false => touches(rule, line.as_ref()),
            };
            match touched {
                Some(true) => return Verdict::Deny(format!("a rule forbids {}", rule.shape())),
                Some(false) => {}
                None => unclear = Some(rule),
            }
        }
        let runs = call.class == Class::Command || servers::may_start(call);
        if let Sandbox::Require(least) = s.config.sandbox
            && runs
            && s.level() > least
        {
            return Verdict::Deny(format!(
                "sandbox level {least:?} is required, but only level {:?} is available",
                s.level()
            ));
        }
        if let Some(why) = &found.never {
            return Verdict::Deny(why.clone());
        }
        if let (Some(planner), Some(line)) = (&s.config.planner, &line)
            && let Some(why) = planner::denied(line, &planner.allow)
        {
            return Verdict::Deny(why);
        }
        // A server that starts is a program that runs: without the sandbox that it should have, it is
        // asked about like one.
        let bare = servers::may_start(call) && (s.lowered().is_some() || s.lacks_sandbox());
        let looks =
            !bare && (call.class == Class::Read || line.as_ref().is_some_and(lists::only_looks));
        // The person allowed everything for a sandbox that is not there, or not as strong as it was.
        let acts = runs && !looks;
        let lowered = s.lowered().filter(|_| acts);
        let less = lowered.is_some() || acts && s.lacks_sandbox();
        let mode = if less && s.config.mode == Mode::All { Mode::Auto } else { s.config.mode };
        match (mode, unclear) {
            (Mode::Read, _) if !looks => {
                return Verdict::Deny("the approval mode is read: nothing may be changed".into());
            }
            (Mode::All, Some(_)) => {
                let why = "a deny rule may apply, but the command is too complex to check; use a \
                           simpler one";
                return Verdict::Deny(why.into());
            }
            (_, Some(rule)) => return ask(Reason::MayBeDenied { rule: rule.shape() }),
            // Nobody is asked, and text alone never takes a command out of the sandbox.
            (Mode::All, None) => {
                let whole = if found.wider.is_nothing() { found.access } else { found.wider };
                let access = Access { unsandboxed: false, login: false, ..whole };
                return Verdict::Allow {
                    by: AllowedBy::Policy("the approval mode is all".into()),
                    access,
                };
            }
            (Mode::Read | Mode::Ask | Mode::Edits | Mode::Auto, None) => {}
        }
        if let Some(had) = lowered {
            return ask(Reason::WeakerSandbox { had });
        }
        // A rule without words does not cover calls that need approval for a reason of their own. A
        // rule grants only the access recorded in it, and a rule made with a sandbox does not apply
        // without one.
        let enough = |rule: &Rule| {
            rule.access.covers(&found.access)
                && (s.level() != Isolation::D
                    || call.class != Class::Command
                    || rule.access.unsandboxed)
        };
        let speaks = |rule: &&Rule| {
            covers(rule, call)
                && enough(rule)
                && (!rule.words.is_empty() || found.reasons.is_empty())
        };
        if mode != Mode::Read
            && !found.reasons.contains(&Reason::AfterSecret)
            && let Some(rule) = s.grants.iter().chain(&s.config.allow).find(speaks)
        {
            // A rule that grants the network grants all of it.
            let whole = !found.wider.is_nothing() && rule.access.covers(&found.wider);
            let access = if whole { found.wider } else { found.access };
            return Verdict::Allow { by: AllowedBy::Grant(rule.clone()), access };
        }
        if s.outside && call.part.tool == "process_write" {
            return ask(Reason::FeedsProcess);
        }
        if !found.reasons.is_empty() {
            return Verdict::Ask(approval(s, call, found.reasons.clone(), &found));
        }
        if looks {
            return allow("it is read-only");
        }
        match (mode, call.class, s.level()) {
            (Mode::Read, ..) => Verdict::Deny("the approval mode is read".into()),
            (Mode::All, ..) => allow("the approval mode is all"),
            (Mode::Ask, ..) => ask(Reason::ModeAsk),
            (Mode::Edits, Class::Edit, _) => allow("the approval mode is edits"),
            (Mode::Edits, Class::Command | Class::Read, _) => ask(Reason::ModeEdits),
            (Mode::Auto, Class::Edit, _) => allow("it edits files in the workspace"),
            (
                Mode::Auto,
                Class::Command | Class::Read,
                level @ (Isolation::A | Isolation::B | Isolation::C),
            ) => allow(&format!("the sandbox contains it (level {level:?})")),
            (Mode::Auto, Class::Command | Class::Read, Isolation::D) => ask(Reason::NoSandbox),
        }
    }
}

/// Programs that run whatever they are given: a rule for one would match everything.
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

/// Programs that use the network only to reach a package registry.
const FETCHERS: &[&str] = &[
    "npm", "pnpm", "yarn", "bun", "pip", "pip3", "uv", "poetry", "pipenv", "pdm", "cargo", "go",
    "gem", "bundle", "composer",
];

/// The longest rule to offer, in characters: nobody reads more.
const RULE_CHARS: usize = 200;

/// The rule that "always" would create for a call, if it is readable and would not match
/// everything.
fn offer(s: &State, call: &Call, reasons: &[Reason], mut access: Access) -> Option<Rule> {
    // If a deny rule may apply, or the sandbox is weaker than it was, no rule can allow the call.
    let asks_always = |reason: &Reason| {
        matches!(
            reason,
            Reason::MayBeDenied { .. } | Reason::WeakerSandbox { .. } | Reason::AfterSecret
        )
    };
    if reasons.iter().any(asks_always) {
        return None;
    }
    // The same hosts, for whatever command: nothing else can be reached then, either.
    let to_hosts = Rule { tool: "shell".into(), words: Vec::new(), access: access.clone() };
    if to_hosts.opens_hosts() && reasons.iter().all(hosts::is_about_network) {
        return Some(to_hosts);
    }
    let tool = call.part.tool.clone();
    if tool == TOOL_USE {
        return servers::offer(s, call);
    }
    let Some((line, _)) = command(call) else {
        let own = |reason: &Reason| !matches!(reason, Reason::ModeAsk);
        let plain = call.class == Class::Edit && !reasons.iter().any(own);
        return plain.then_some(Rule { tool, words: Vec::new(), access: Access::NOTHING });
    };
    let [one] = line.commands.as_slice() else { return None };
    let mut words = vec![one.words.first()?.text.clone()];
    // Commands that leave the sandbox or can contact any host never get a rule.
    let fetches = FETCHERS.contains(&base(words.first()?));
    let other = !fetches && base(words.first()?) != "git";
    if access.unsandboxed || (access.network && other) {
        return None;
    }
    // Code of the project would have the login, whatever it is by then.
    if access.login && runs_project_code(call) {
        return None;
    }
    if s.level() == Isolation::D {
        access.unsandboxed = true;
    }
    if access.network && (!fetches || access.login) {
        // The destination is part of the rule.
        words = one.texts().map(str::to_owned).collect();
    } else {
        // For a program with subcommands, only this subcommand.
        let named = |text: &str| {
            text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == ':')
                && !text.starts_with('-')
        };
        words.extend(one.words.get(1).map(|word| word.text.clone()).filter(|text| named(text)));
    }
    // No quotes, commas or spaces: the rule is shown inside a sentence of ours.
    let readable =
        |word: &String| word.chars().all(|c| c.is_ascii_alphanumeric() || "_@%+=:./~-".contains(c));
    if !words.iter().all(readable) || words.iter().map(String::len).sum::<usize>() > RULE_CHARS {
        return None;
    }
    let rule = Rule { tool, words, access };
    (grantable(&rule) && covers(&rule, call)).then_some(rule)
}

/// Whether a rule is specific enough that it does not match everything.
#[must_use]
pub fn grantable(rule: &Rule) -> bool {
    match rule.words.first() {
        None => !matches!(rule.tool.as_str(), "shell" | "process_start" | TOOL_USE),
        Some(_) if rule.tool == TOOL_USE => servers::grantable(rule),
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

/// Whether a grant covers this call: every simple command starts with the rule's words, has no
/// further options, and was understood completely.
#[must_use]
pub fn covers(rule: &Rule, call: &Call) -> bool {
    if rule.tool != call.part.tool || !grantable(rule) {
        return false;
    }
    if rule.words.is_empty() {
        return true;
    }
    if rule.tool == TOOL_USE {
        return servers::covers(rule, call);
    }
    let plain = |c: &Simple| {
        c.sets.is_empty() && c.files.is_empty() && c.words.iter().all(|word| word.plain)
    };
    let begins = |c: &Simple| {
        let texts: Vec<&str> = c.texts().collect();
        let rest = texts.get(rule.words.len()..);
        // Only the options in the rule's own words are covered; others may mean anything.
        let fetches = FETCHERS.contains(&base(texts.first().copied().unwrap_or_default()));
        let exact = rule.access.network && !fetches || rule.access.login;
        let harmless = |rest: &[&str]| {
            rest.iter().all(|word| !word.starts_with('-') && !is_secret(word))
                // In another folder, another repository names the destination.
                && (!exact || rest.is_empty() && !is_in_folder(call))
        };
        texts.iter().zip(&rule.words).all(|(a, b)| a == b) && rest.is_some_and(harmless)
    };
    command(call).is_some_and(|(line, _)| {
        !line.obscure
            && !line.commands.is_empty()
            && line.commands.iter().all(|c| plain(c) && begins(c))
    })
}

/// Whether a deny rule for its tool applies to this call: some simple command starts with the
/// rule's words. `None` if that cannot be determined.
fn touches(rule: &Rule, line: Option<&CommandLine>) -> Option<bool> {
    if rule.words.is_empty() {
        return Some(true);
    }
    let all = wrap::unwrapped(line?);
    let starts = |words: &[&str]| {
        words.len() >= rule.words.len()
            && words.iter().zip(&rule.words).all(|(a, b)| a == b || base(a) == b)
    };
    // Options before a subcommand do not hide it.
    let begins = |c: &Simple| {
        let plain: Vec<&str> = c.texts().collect();
        starts(&plain)
            || lists::git(c)
                .is_some_and(|(sub, rest)| starts(&[&["git", sub], rest.as_slice()].concat()))
    };
    let unsure = |c: &Simple| c.words.first().is_some_and(|word| !word.plain);
    match all.commands.iter().any(begins) {
        true => Some(true),
        false => (!all.obscure && !all.commands.iter().any(unsure)).then_some(false),
    }
}

/// Whether a deny rule exists for the tool: then arguments that were not parsed are not allowed.
#[must_use]
pub fn guarded(s: &State, tool: &str) -> bool {
    s.config.deny.iter().any(|rule| rule.tool == tool)
}
