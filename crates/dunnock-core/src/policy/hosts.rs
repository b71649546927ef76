//! Which hosts a command needs, as far as its text and the session show: a person then allows these
//! hosts and not the whole network.
//!
//! A host that is missing here is refused when the command runs, and the next call asks for it.

use super::lists::{self, Findings};
use super::words::{CommandLine, Simple};
use super::wrap::{base, unwrapped};
use crate::state::{Call, State};
use dunnock_proto::{HostRule, HostSet, Isolation, MissingNetwork, Mode, PageArgs, Reason, Rule};

/// Hosts of package registries, by the programs that fetch from them.
const REGISTRIES: &[(&[&str], &[&str])] = &[
    (&["npm", "pnpm", "bun"], &["registry.npmjs.org"]),
    (&["yarn"], &["registry.npmjs.org", "registry.yarnpkg.com", "repo.yarnpkg.com"]),
    (&["pip", "pip3", "uv", "poetry", "pipenv", "pdm"], &["files.pythonhosted.org", "pypi.org"]),
    (&["cargo"], &["crates.io", "index.crates.io", "static.crates.io"]),
    (&["go"], &["proxy.golang.org", "sum.golang.org"]),
    (&["gem", "bundle"], &["index.rubygems.org", "rubygems.org"]),
    (
        &["composer"],
        &["api.github.com", "codeload.github.com", "packagist.org", "repo.packagist.org"],
    ),
    (&["rustup"], &["static.rust-lang.org"]),
];

/// Subcommands that fetch what they need and run nothing that may need more.
const BUILDS: &[(&str, &[&str])] = &[
    ("cargo", &["build", "check", "clippy", "doc", "vendor", "metadata", "tree"]),
    ("go", &["build", "vet", "mod", "list"]),
    ("pip", &["install", "download", "wheel"]),
    ("pip3", &["install", "download", "wheel"]),
    ("rustup", &["toolchain", "component", "target", "update", "install"]),
];

/// The hosts that a call needs.
enum Needed {
    Hosts(HostSet),
    /// They are not known.
    Unknown,
    /// It needs the whole network.
    Whole,
}

/// Replaces the network by the hosts that a call needs, if they are known and the sandbox can open
/// them one by one. Hosts that are open already need no approval.
pub(super) fn narrow(s: &State, call: &Call, line: &CommandLine, found: &mut Findings) {
    let can_open = matches!(s.level(), Isolation::A | Isolation::B);
    if !can_open || found.access.login || found.access.unsandboxed {
        return;
    }
    let rules = || s.grants.iter().chain(&s.config.allow);
    // Hosts that a rule grants to this very command.
    let own = of_rules(rules().filter(|rule| super::covers(rule, call)));
    let opened = of_rules(rules().filter(|rule| rule.opens_hosts()));
    let asks = found.access.network;
    let text = of_line(line);
    let needed = match needed(s, call, line, text.clone()) {
        _ if !asks => own.clone(),
        Needed::Hosts(hosts) => hosts.and(&own),
        Needed::Unknown => own.clone(),
        Needed::Whole => return,
    };
    if needed.is_empty() {
        return;
    }
    if asks {
        found.wider = found.access.clone();
    }
    found.access.network = false;
    // After a secret was read, no host is open without a question.
    let (always, opened) = match super::after_secret(s, call) {
        true => (HostSet::NONE, HostSet::NONE),
        false => (s.config.hosts.clone(), opened),
    };
    found.access.hosts = needed.without(&always);
    let closed = found.access.hosts.without(&opened);
    let carried = closed.without(&text.unwrap_or_default()).without(&own);
    if !carried.is_empty() {
        found.reasons.push(Reason::WasRefused { hosts: carried });
    }
    if closed.is_empty() {
        found.reasons.retain(|reason| !is_about_network(reason));
        let mut all = rules().filter(|rule| rule.opens_hosts());
        let opens =
            |rule: &&Rule| found.access.hosts.without(&rule.access.hosts) != found.access.hosts;
        found.opened_by = all.find(opens).cloned();
    }
}

fn of_rules<'a>(rules: impl Iterator<Item = &'a Rule>) -> HostSet {
    rules.fold(HostSet::NONE, |all, rule| all.and(&rule.access.hosts))
}

/// What is found in a call that fetches a page.
pub(super) fn of_page(s: &State, call: &Call, found: &mut Findings) {
    if !s.config.web_fetch {
        found.never = Some("web_fetch is off; only the person can turn it on".into());
        return;
    }
    // Without a URL nothing is fetched: the tool parses it in the same way.
    let url = PageArgs::parse(call.args()).ok().and_then(|args| HostRule::of_url(&args.url));
    let Some(host) = url else { return };
    let is_private = host.is_private();
    found.access.hosts = HostSet::from_iter([host]);
    let mut rules = s.grants.iter().chain(&s.config.allow).filter(|rule| rule.opens_hosts());
    let opens = |hosts: &HostSet| hosts.includes(&found.access.hosts);
    if opens(&s.config.hosts) {
        return;
    }
    found.opened_by = rules.find(|rule| opens(&rule.access.hosts)).cloned();
    if found.opened_by.is_none() {
        found.reasons.push(Reason::FetchesPage);
        // Nobody would be asked about this address.
        if is_private && s.config.mode == Mode::All {
            let host = &found.access.hosts;
            found.never = Some(format!("{host} is not a public address, and was not opened"));
        }
    }
}

/// Whether a reason is that a call uses the network.
pub(super) fn is_about_network(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::RequestsNetwork
            | Reason::UsesNetwork { .. }
            | Reason::ContactsRemote { .. }
            | Reason::FetchesPage
    )
}

/// The hosts that a call needs: those of its text, and those that it was refused the last time.
fn needed(s: &State, call: &Call, line: &CommandLine, text: Option<HostSet>) -> Needed {
    let Some(text) = text else { return Needed::Whole };
    // Where nobody can allow more, what is open already is better than nothing.
    let known = s.missing_network.as_ref().filter(|_| !s.config.unattended);
    let refused = known.filter(|last| {
        last.args == *call.args()
            || super::command_of(&last.args).is_some_and(|(other, _)| {
                let others = network_programs(&other);
                network_programs(line).iter().any(|name| others.contains(name))
            })
    });
    let hosts = match refused.map(|last| &last.missing) {
        None => text,
        Some(MissingNetwork::Hosts(refused)) => text.and(refused),
        Some(MissingNetwork::Whole) => return Needed::Whole,
    };
    if hosts.is_empty() { Needed::Unknown } else { Needed::Hosts(hosts) }
}

/// The programs of a line that use the network.
fn network_programs(line: &CommandLine) -> Vec<String> {
    let all = unwrapped(line).commands;
    let uses = |command: &&Simple| of_command(command).is_some() || lists::uses_network(command);
    all.iter().filter(uses).filter_map(|c| Some(base(c.texts().next()?).to_owned())).collect()
}

/// The hosts that the text of a line names; empty if it names none. `None` if something in it uses
/// the network, and its hosts are not known.
fn of_line(line: &CommandLine) -> Option<HostSet> {
    let mut all = HostSet::NONE;
    for command in &unwrapped(line).commands {
        match of_command(command) {
            Some(hosts) => all = all.and(&hosts),
            // What does not use the network itself may be beside something that does.
            None if !lists::uses_network(command) && !names_url(command) => {}
            None => return None,
        }
    }
    Some(all)
}

fn names_url(command: &Simple) -> bool {
    command.texts().any(|word| word.contains("://"))
}

fn of_command(command: &Simple) -> Option<HostSet> {
    let words: Vec<&str> = command.texts().collect();
    let (program, rest) = words.split_first()?;
    let (program, rest) = match (base(program), rest) {
        (python, ["-m", module, rest @ ..]) if python.starts_with("python") => (*module, rest),
        (name, rest) => (name, rest),
    };
    let builds = BUILDS
        .iter()
        .any(|(name, subs)| *name == program && rest.first().is_some_and(|sub| subs.contains(sub)));
    let fetches = builds || lists::uses_network(command);
    let registry = REGISTRIES.iter().find(|(names, _)| fetches && names.contains(&program));
    let known = registry.into_iter().flat_map(|(_, hosts)| hosts.iter());
    let mut all: HostSet = known.filter_map(|host| host.parse().ok()).collect();
    // What git contacts besides a repository that is named is in its configuration.
    let by_url = match lists::git(command) {
        Some((sub, _)) => matches!(sub, "clone" | "ls-remote"),
        None => true,
    };
    for url in rest.iter().filter(|word| word.contains("://")) {
        // What is part of a longer word, as in --index-url=https://.., is read to its end.
        let url = url.find("http").and_then(|at| url.get(at..)).unwrap_or(url);
        let rule = HostRule::of_url(url).filter(|rule| by_url && !rule.is_local_name())?;
        all = all.and(&HostSet::from_iter([rule]));
    }
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::words::split;
    use crate::policy::{Policy, Verdict};
    use crate::state::{LastMissing, OwnerState, Question};
    use dunnock_proto::{
        CallId, CallPart, Class, Config, Owner, QuestionId, QuestionKind, Recovery, Role, Step,
    };

    /// What a refused host adds to the next question, and that it asks for nothing where nobody can
    /// answer.
    #[test]
    fn a_refused_host_is_asked_for_where_somebody_can_answer() {
        let npm = call(0, "shell", Class::Command, r#"{"command":"npm ci"}"#);
        let hosts = |text: &str| [text.parse().unwrap()].into_iter().collect::<HostSet>();
        let found = |unattended, missing: MissingNetwork| {
            let s = State {
                owner: Some(OwnerState { owner: Owner(1), level: Isolation::A }),
                config: Config {
                    unattended,
                    hosts: hosts("registry.npmjs.org"),
                    ..Config::default()
                }
                .into(),
                missing_network: Some(LastMissing { args: npm.part.args.clone(), missing }),
                ..State::default()
            };
            crate::policy::findings(&s, &npm)
        };
        let refused = || MissingNetwork::Hosts(hosts("github.com"));
        let asked = found(false, refused());
        assert_eq!(asked.access.hosts, hosts("github.com"));
        assert_eq!(asked.reasons.last(), Some(&Reason::WasRefused { hosts: hosts("github.com") }));
        assert!(found(false, MissingNetwork::Whole).access.network);
        for missing in [refused(), MissingNetwork::Whole] {
            let open = found(true, missing);
            assert!(open.reasons.is_empty() && open.access.is_nothing(), "{open:?}");
        }
    }

    fn call(index: u16, tool: &str, class: Class, args: &str) -> Call {
        let part = CallPart {
            id: String::new(),
            tool: tool.into(),
            args: args.into(),
            sent: None,
            recovered: false,
            fault: None,
        };
        let id = CallId { step: Step(1), index };
        Call::new(id, part.into(), class, Recovery::Unknown, Some(Role::Work))
    }

    fn state(level: Isolation, mode: Mode) -> State {
        State {
            owner: Some(OwnerState { owner: Owner(1), level }),
            config: Config {
                mode,
                web_fetch: true,
                hosts: ["open.example".parse().unwrap()].into_iter().collect(),
                ..Config::default()
            }
            .into(),
            ..State::default()
        }
    }

    #[test]
    fn what_sends_asks_again_once_a_secret_may_have_been_read() {
        let page = call(1, "web_fetch", Class::Read, r#"{"url":"https://open.example/"}"#);
        let input = call(1, "process_write", Class::Command, r#"{"process":1,"text":"x"}"#);
        let make = call(1, "shell", Class::Command, r#"{"command":"make test"}"#);
        let looks = call(1, "shell", Class::Command, r#"{"command":"ls"}"#);
        let asks = |s: &State, call: &Call| {
            crate::policy::findings(s, call).reasons.contains(&Reason::AfterSecret)
        };
        let fresh = state(Isolation::A, Mode::Auto);
        let read = State { read_secret: true, ..fresh.clone() };
        assert!(!asks(&fresh, &page) && asks(&read, &page));
        assert!(!asks(&read, &make), "the sandbox holds it");
        assert!(!asks(&read, &input));
        assert!(asks(&State { outside: true, ..read.clone() }, &input), "it feeds a process");
        let bare = State { read_secret: true, ..state(Isolation::D, Mode::Auto) };
        assert!(asks(&bare, &make) && !asks(&bare, &looks));
        // A call of the same answer waits for approval to read it.
        let waits = |first: &Call| {
            let Verdict::Ask(approval) = Policy::default().judge(&fresh, first) else {
                unreachable!("{first:?} asks")
            };
            let kind = QuestionKind::Approval(Box::new(approval));
            let hash = kind.hash(QuestionId(1));
            let questions = vec![Question { id: QuestionId(1), kind: kind.into(), hash }];
            State { calls: vec![first.clone()], questions, ..fresh.clone() }
        };
        let reads = [
            call(0, "shell", Class::Command, r#"{"command":"cat .env > x"}"#),
            call(0, "shell", Class::Command, r#"{"command":"git show HEAD:.env"}"#),
            call(0, "view_file", Class::Read, r#"{"path":".env"}"#),
            call(0, "move_file", Class::Edit, r#"{"path":".env","to":"x"}"#),
        ];
        for first in reads {
            assert!(asks(&waits(&first), &page), "{first:?}");
        }
        let writes = call(0, "write_file", Class::Edit, r#"{"path":".env","content":"A=1"}"#);
        assert!(!asks(&waits(&writes), &page));
    }

    #[test]
    fn in_mode_all_only_public_hosts_are_open() {
        let s = state(Isolation::A, Mode::All);
        let never = |url: &str| {
            let args = format!("{{\"url\":\"{url}\"}}");
            crate::policy::findings(&s, &call(0, "web_fetch", Class::Read, &args)).never.is_some()
        };
        for url in ["http://127.0.0.1:80/", "http://169.254.169.254/", "http://168.63.129.16/"] {
            assert!(never(url), "{url}");
        }
        for url in ["https://open.example/", "https://other.example/", "http://8.8.8.8/"] {
            assert!(!never(url), "{url}");
        }
    }

    #[test]
    fn the_hosts_of_a_line_are_those_that_it_names() {
        for (line, hosts) in [
            ("npm ci", Some("registry.npmjs.org")),
            ("cd web && npm install left-pad 2>&1 | tail -5", Some("registry.npmjs.org")),
            ("pip install -r requirements.txt", Some("files.pythonhosted.org, pypi.org")),
            ("python3 -m pip install x", Some("files.pythonhosted.org, pypi.org")),
            ("sudo -n pip3 install x", Some("files.pythonhosted.org, pypi.org")),
            (
                "pip install --index-url=https://py.example/simple x",
                Some("files.pythonhosted.org, py.example, pypi.org"),
            ),
            ("cargo add serde", Some("crates.io, index.crates.io, static.crates.io")),
            ("curl -fsSL https://Example.com/install.sh", Some("example.com")),
            (
                "curl -o x https://a.example:8443/x http://b.example/y",
                Some("a.example:8443, b.example"),
            ),
            ("wget http://127.0.0.1:3000/", Some("127.0.0.1:3000")),
            ("git clone https://github.com/a/b", Some("github.com")),
            ("npm i git+https://github.com/a/b.git", Some("github.com, registry.npmjs.org")),
            ("./fetch.py https://data.example/set.csv", Some("data.example")),
            ("make deps; npm ci", Some("registry.npmjs.org")),
            // Something in it may reach other hosts, or its hosts are not known.
            ("npm ci && ssh host true", None),
            ("npm ci && git push", None),
            ("git push https://github.com/a/b", None),
            ("git pull", None),
            ("git clone git@github.com:a/b", None),
            ("git clone ssh://git@github.com/a/b", None),
            ("npm i git+ssh://git@github.com/a/b.git", None),
            ("curl example.com", None),
            ("curl https://$HOST/", None),
            ("curl https://user@example.com/", None),
            ("curl https://a.example/ ftp://b.example/", None),
            ("curl http://localhost:3000/", None),
            ("curl http://a.localhost/", None),
            ("curl http://2130706433/", None),
            ("make test", Some("")),
            ("npm run dev", Some("")),
            ("cargo run", Some("")),
            ("npx playwright test", Some("")),
            ("cargo build --release", Some("crates.io, index.crates.io, static.crates.io")),
        ] {
            let found = of_line(&split(line)).map(|hosts| hosts.to_string());
            assert_eq!(found.as_deref(), hosts, "{line}");
        }
    }
}
