//! The settings of a server: how it is started or reached, and what it is granted.

use dunnock_proto::{Hash, HostRule, HostSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The longest name of a server.
const MOST_NAME: usize = 40;
/// How long a server may take to start.
const START: Duration = Duration::from_secs(30);
/// How long a call may be silent.
const SILENCE: Duration = Duration::from_secs(300);

/// A server, as somebody configured it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerConfig {
    /// Its name.
    pub name: String,
    /// Who configured it.
    pub origin: ServerOrigin,
    /// How it is started or reached.
    pub start: ServerStart,
    /// What it is granted.
    pub access: ServerAccess,
    /// Whether its hints about its tools count.
    pub hints: bool,
    /// Only these tools; all, if there are none.
    pub tools: Vec<String>,
    /// How long a call may be silent.
    pub timeout: Duration,
    /// How long it may take to start.
    pub start_timeout: Duration,
}

/// Who configured a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ServerOrigin {
    /// The person, in their own settings.
    Person,
    /// The project, in this file of it.
    Project(String),
}

/// How a server is started or reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ServerStart {
    /// A program that speaks on its standard input and output.
    Command {
        /// The program and its arguments.
        words: Vec<String>,
        /// Variables for it: the name, and the text with `${NAME}` for variables of the person's.
        env: BTreeMap<String, String>,
    },
    /// An address.
    Http {
        /// The address.
        url: String,
        /// Headers of each request, with `${NAME}` for variables of the person's.
        headers: BTreeMap<String, String>,
    },
}

/// What the program of a server is granted, beyond what commands of the model can do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServerAccess {
    /// The machine's network.
    pub network: bool,
    /// Of the network, only these hosts.
    pub hosts: HostSet,
    /// It may change files in the workspace.
    pub write: bool,
    /// Folders outside the workspace that it may read.
    pub read: Vec<PathBuf>,
}

/// Why the settings of a server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidServer(pub String);

impl fmt::Display for InvalidServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidServer {}

/// A server as it is written in a settings file, below `[mcp.NAME]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) command: Option<Words>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) url: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) network: bool,
    pub(crate) hosts: Vec<String>,
    pub(crate) write: bool,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) hints: Option<bool>,
    pub(crate) tools: Vec<String>,
    pub(crate) timeout: Option<u64>,
    pub(crate) start_timeout: Option<u64>,
}

/// A program, alone or with its arguments.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Words {
    One(String),
    All(Vec<String>),
}

/// Whether a server may have this name: it is shown to people and to models, and is a part of the
/// names of its tools.
#[must_use]
pub fn is_valid_server_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty()
        && name.len() <= MOST_NAME
        && name.chars().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

impl ServerConfig {
    /// The server that an entry of a settings file describes.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(
        name: &str,
        origin: ServerOrigin,
        entry: serde_json::Value,
    ) -> Result<Self, InvalidServer> {
        let entry: Entry = serde_json::from_value(entry)
            .map_err(|error| InvalidServer(format!("mcp.{name}: {error}")))?;
        Self::of_entry(name, origin, entry)
    }

    pub(crate) fn of_entry(
        name: &str,
        origin: ServerOrigin,
        entry: Entry,
    ) -> Result<Self, InvalidServer> {
        let wrong = |why: String| Err(InvalidServer(format!("mcp.{name}: {why}")));
        if !is_valid_server_name(name) {
            return wrong(format!(
                "a name starts with a letter or digit, and has at most {MOST_NAME} letters, digits, and \
                 the signs - _ ."
            ));
        }
        let start = match (entry.command, entry.url) {
            (Some(_), Some(_)) => return wrong("give either command or url".into()),
            (None, None) => return wrong("give its command, or its url".into()),
            (Some(command), None) => {
                let mut words = match command {
                    Words::One(program) => vec![program],
                    Words::All(words) => words,
                };
                words.extend(entry.args);
                if words.first().is_none_or(String::is_empty) {
                    return wrong("command is empty".into());
                }
                if !entry.headers.is_empty() {
                    return wrong("headers belong to a url".into());
                }
                ServerStart::Command { words, env: entry.env }
            }
            (None, Some(url)) => {
                let is_http = url::Url::parse(&url)
                    .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
                if !is_http {
                    return wrong(format!("{url:?} is not an http:// or https:// address"));
                }
                ServerStart::Http { url, headers: entry.headers }
            }
        };
        let hosts: Result<HostSet, _> =
            entry.hosts.iter().map(|host| host.parse::<HostRule>()).collect();
        let hosts = match hosts {
            Ok(hosts) => hosts,
            Err(error) => return wrong(format!("hosts: {error}")),
        };
        if entry.network && !hosts.is_empty() {
            return wrong("give either network or hosts".into());
        }
        if matches!(start, ServerStart::Http { .. })
            && (entry.network || !hosts.is_empty() || entry.write || !entry.read.is_empty())
        {
            return wrong("network, hosts, write and read are for a command".into());
        }
        let seconds = |given: Option<u64>, usual: Duration| match given {
            Some(0) => Err(InvalidServer(format!("mcp.{name}: a timeout is at least 1 second"))),
            Some(given) => Ok(Duration::from_secs(given)),
            None => Ok(usual),
        };
        Ok(Self {
            name: name.to_owned(),
            hints: entry.hints.unwrap_or(origin == ServerOrigin::Person),
            origin,
            start,
            access: ServerAccess {
                network: entry.network,
                hosts,
                write: entry.write,
                read: entry.read,
            },
            tools: entry.tools,
            timeout: seconds(entry.timeout, SILENCE)?,
            start_timeout: seconds(entry.start_timeout, START)?,
        })
    }

    /// Hash of everything that was configured. Values of variables are not in it.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of(&serde_json::to_vec(self).unwrap_or_default()) // plain structs with text keys
    }

    /// Whether it is one of the project's.
    #[must_use]
    pub fn is_of_project(&self) -> bool {
        matches!(self.origin, ServerOrigin::Project(_))
    }

    /// Whether the hints about its tools count: never those of a project's server.
    #[must_use]
    pub fn hints_count(&self) -> bool {
        self.hints && !self.is_of_project()
    }

    /// Whether it can reach other machines, if commands are sandboxed.
    #[must_use]
    pub fn reaches_network(&self) -> bool {
        let over_http = matches!(self.start, ServerStart::Http { .. });
        over_http || self.access.network || !self.access.hosts.is_empty()
    }

    /// Whether a tool of this name is wanted.
    #[must_use]
    pub fn wants(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|wanted| wanted == tool)
    }

    /// Its command or its address, for people.
    #[must_use]
    pub fn what(&self) -> String {
        match &self.start {
            ServerStart::Command { words, .. } => words.join(" "),
            ServerStart::Http { url, .. } => url.clone(),
        }
    }

    /// What it is granted, for people.
    #[must_use]
    pub fn granted(&self) -> String {
        if let ServerStart::Http { .. } = self.start {
            return "over HTTP, not sandboxed".into();
        }
        let ServerAccess { network, hosts, write, read } = &self.access;
        let network = match (network, hosts.is_empty()) {
            (true, _) => "full network access".to_owned(),
            (false, true) => "no network".to_owned(),
            (false, false) => format!("connections to {hosts}"),
        };
        let files = if *write { "may change files in this folder" } else { "changes no files" };
        let read: Vec<String> =
            read.iter().map(|folder| format!("reads {}", folder.display())).collect();
        let all = [network, files.to_owned()].into_iter().chain(read);
        all.collect::<Vec<_>>().join(", ")
    }

    /// The names of the person's variables that it gets.
    #[must_use]
    pub fn variables(&self) -> Vec<String> {
        let texts = match &self.start {
            ServerStart::Command { env: texts, .. } | ServerStart::Http { headers: texts, .. } => {
                texts
            }
        };
        let mut names: Vec<String> = texts.values().flat_map(|text| named(text)).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Whether a variable can have this name. Editors have other texts in the same form.
fn is_variable(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
}

/// The variables that a text names as `${NAME}`.
fn named(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let _ = filled(text, &mut |name| {
        names.extend(is_variable(name).then(|| name.to_owned()));
        Some(String::new())
    });
    names
}

/// A text with the values of the variables that it names.
///
/// # Errors
/// The name of a variable that has no value.
pub(crate) fn filled(
    text: &str,
    value: &mut dyn FnMut(&str) -> Option<String>,
) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        // As in other agents, what follows `:-` is used where the variable is not set.
        let (name, usual) = match name.split_once(":-") {
            Some((name, usual)) => (name, Some(usual.to_owned())),
            None => (name, None),
        };
        // Editors write the place of the variable in front of it.
        let name = name.strip_prefix("env:").unwrap_or(name);
        out.push_str(&value(name).or(usual).ok_or_else(|| name.to_owned())?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

impl ServerConfig {
    /// Its variables, or its headers, with the values of the person's variables.
    ///
    /// # Errors
    /// Which variable is not set, or must not be used by a project's server.
    pub fn values(
        &self,
        value: &dyn Fn(&str) -> Option<String>,
        allowed: &[String],
    ) -> Result<Vec<(String, String)>, String> {
        let texts = match &self.start {
            ServerStart::Command { env: texts, .. } | ServerStart::Http { headers: texts, .. } => {
                texts
            }
        };
        let mut all = Vec::new();
        for (key, text) in texts {
            let is_allowed =
                |name: &str| !self.is_of_project() || allowed.iter().any(|known| known == name);
            let filled = filled(text, &mut |name| value(name).filter(|_| is_allowed(name)));
            match filled {
                Ok(text) => all.push((key.clone(), text)),
                Err(name) if !is_variable(&name) => {
                    return Err(format!(
                        "it uses ${{{name}}}, which is not supported; write a value, or ${{VARIABLE}}"
                    ));
                }
                Err(name) if is_allowed(&name) => {
                    return Err(format!("it needs the variable {name}, which is not set"));
                }
                Err(name) => {
                    return Err(format!(
                        "the project's server wants your variable {name}; to allow it, add it to \
                         mcp_variables in your settings"
                    ));
                }
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(entry: serde_json::Value) -> Result<ServerConfig, String> {
        ServerConfig::parse("x", ServerOrigin::Person, entry).map_err(|error| error.0)
    }

    #[test]
    fn a_wrong_entry_says_what_is_wrong() {
        for (entry, why) in [
            (json!({}), "give its command, or its url"),
            (json!({"command": "a", "url": "http://x"}), "give either command or url"),
            (json!({"command": ""}), "command is empty"),
            (json!({"command": []}), "command is empty"),
            (json!({"command": "a", "comand": 1}), "unknown field `comand`"),
            (json!({"command": "a", "headers": {"A": "b"}}), "headers belong to a url"),
            (json!({"url": "ftp://x"}), "is not an http:// or https:// address"),
            (json!({"url": "http://x", "write": true}), "are for a command"),
            (json!({"command": "a", "hosts": ["http://x/"]}), "hosts:"),
            (json!({"command": "a", "timeout": 0}), "at least 1 second"),
            (
                json!({"command": "a", "network": true, "hosts": ["x.org"]}),
                "either network or hosts",
            ),
        ] {
            let error = parse(entry.clone()).unwrap_err();
            assert!(error.contains(why), "{entry}: {error}");
        }
        for name in ["", "-a", "a/b", "a b", "ä", &"a".repeat(41)] {
            assert!(
                ServerConfig::parse(name, ServerOrigin::Person, json!({"command": "a"})).is_err()
            );
        }
    }

    /// G211: what is approved is the content, so any change of a line changes its hash.
    #[test]
    fn every_change_of_a_line_changes_its_hash() {
        let plain = json!({"command": "a", "args": ["b"]});
        let lines = [
            json!({"command": "a", "args": ["c"]}),
            json!({"command": "d", "args": ["b"]}),
            json!({"command": "a", "args": ["b"], "env": {"A": "${A}"}}),
            json!({"command": "a", "args": ["b"], "network": true}),
            json!({"command": "a", "args": ["b"], "hosts": ["x.org"]}),
            json!({"command": "a", "args": ["b"], "write": true}),
            json!({"command": "a", "args": ["b"], "read": ["/x"]}),
            json!({"command": "a", "args": ["b"], "hints": false}),
            json!({"command": "a", "args": ["b"], "tools": ["t"]}),
            json!({"url": "http://x/"}),
            json!({"url": "http://y/"}),
        ];
        let mut hashes: Vec<Hash> =
            lines.into_iter().map(|line| parse(line).unwrap().hash()).collect();
        hashes.push(parse(plain.clone()).unwrap().hash());
        let of_project = ServerOrigin::Project(".mcp.json".into());
        hashes.push(ServerConfig::parse("x", of_project, plain).unwrap().hash());
        let all = hashes.len();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), all);
    }

    /// MCP11: a project's server gets only variables that the person allowed.
    #[test]
    fn variables_of_the_person_are_given_out_by_name() {
        let entry =
            json!({"command": "a", "env": {"T": "Bearer ${TOKEN}", "U": "${U:-none}", "V": "$5"}});
        let value = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
        let own = ServerConfig::parse("x", ServerOrigin::Person, entry.clone()).unwrap();
        assert_eq!(own.variables(), ["TOKEN", "U"]);
        let all = own.values(&value, &[]).unwrap();
        let texts: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["Bearer secret", "none", "$5"]);
        assert!(own.values(&|_| None, &[]).unwrap_err().contains("TOKEN, which is not set"));
        let origin = ServerOrigin::Project(".mcp.json".into());
        let theirs = ServerConfig::parse("x", origin, entry).unwrap();
        assert!(theirs.values(&value, &[]).unwrap_err().contains("mcp_variables"));
        assert!(theirs.values(&value, &["TOKEN".into()]).is_ok());
        assert!(!theirs.hints_count() && own.hints_count());
    }
}
