//! What a server offers, and where that is kept between sessions.

use crate::config::ServerConfig;
use crate::connection::Era;
use dunnock_proto::{Class, Hash, Recovery, ServerTool};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::path::PathBuf;

/// The most tools of a server.
const MOST_TOOLS: usize = 1_000;
/// The longest name of a tool.
const MOST_NAME: usize = 128;
/// The longest description, in bytes; the rest is cut off.
const MOST_DESCRIPTION: usize = 4 << 10;
/// The largest schema, in bytes; a tool with a larger one is left out.
const MOST_SCHEMA: usize = 32 << 10;
/// The most bytes of all tools of a server.
const MOST_BYTES: usize = 4 << 20;

/// A tool, as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: Value,
    /// The server says that it only reads.
    pub reads_only: bool,
    /// The server says that it can destroy something.
    pub destroys: bool,
    /// The server says that repeating it changes nothing more.
    pub repeatable: bool,
}

/// One thing in which two descriptions of a tool differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptionChange {
    /// What differs.
    pub part: &'static str,
    /// As it was.
    pub before: String,
    /// As it is now.
    pub after: String,
}

impl ToolDefinition {
    /// Hash of all of it: what an approval of the tool covers.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of(&serde_json::to_vec(self).unwrap_or_default()) // plain struct with text keys
    }

    /// What is recorded with a call of the tool. Hints that loosen count only if the person trusts
    /// the server; one that tightens always counts.
    #[must_use]
    pub fn record(&self, server: &ServerConfig) -> ServerTool {
        let counts = server.hints_count();
        let reads = counts && self.reads_only && !self.destroys;
        ServerTool {
            index: 0,
            name: format!("{}/{}", server.name, self.name),
            definition_hash: self.hash(),
            settings_hash: server.hash(),
            from_project: server.is_of_project(),
            reads_only: reads,
            class: if reads && !server.access.write { Class::Read } else { Class::Command },
            recovery: match reads || counts && self.repeatable {
                true => Recovery::Repeat,
                false => Recovery::Unknown,
            },
            can_destroy: self.destroys,
            reaches_network: server.reaches_network(),
        }
    }

    /// In what it differs from an earlier description, each part cut to a length that people read.
    #[must_use]
    pub fn differences(&self, before: &Self) -> Vec<DescriptionChange> {
        let short = |text: &str| {
            let end = text.floor_char_boundary(300.min(text.len()));
            let cut = if end < text.len() { " ..." } else { "" };
            format!("{}{cut}", text.get(..end).unwrap_or_default())
        };
        let hints = |tool: &Self| {
            let named = [
                (tool.reads_only, "only reads"),
                (tool.destroys, "can destroy"),
                (tool.repeatable, "can be repeated"),
            ];
            let named: Vec<&str> =
                named.iter().filter_map(|(on, name)| on.then_some(*name)).collect();
            if named.is_empty() { "none".to_owned() } else { named.join(", ") }
        };
        let parts = [
            ("description", before.description.clone(), self.description.clone()),
            ("schema", before.schema.to_string(), self.schema.to_string()),
            ("hints", hints(before), hints(self)),
        ];
        let differs = parts.into_iter().filter(|(_, before, now)| before != now);
        differs
            .map(|(part, before, now)| {
                // Show the place where they part.
                let same = before.bytes().zip(now.bytes()).take_while(|(a, b)| a == b).count();
                let from = before.floor_char_boundary(same.saturating_sub(60));
                let of = |text: &str| {
                    let from = text.floor_char_boundary(from.min(text.len()));
                    let start = if from > 0 { "... " } else { "" };
                    format!("{start}{}", short(text.get(from..).unwrap_or_default()))
                };
                DescriptionChange { part, before: of(&before), after: of(&now) }
            })
            .collect()
    }
}

/// The tools of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    /// Which form of the protocol the server speaks.
    pub era: Era,
    /// Its tools, sorted by name.
    pub tools: Vec<ToolDefinition>,
    /// How many tools were left out, because of their names, sizes or number.
    pub left_out: usize,
    bytes: usize,
}

impl Catalogue {
    pub(crate) fn new(era: Era) -> Self {
        Self { era, tools: Vec::new(), left_out: 0, bytes: 0 }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.tools.len() >= MOST_TOOLS || self.bytes >= MOST_BYTES
    }

    pub(crate) fn add(
        &mut self,
        tools: Vec<rmcp::model::Tool>,
        wants: &(dyn Fn(&str) -> bool + Sync),
    ) {
        for tool in tools.into_iter().filter(|tool| wants(&tool.name)) {
            let schema = Value::Object(tool.input_schema.as_ref().clone());
            let size = schema.to_string().len();
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            let is_named = !tool.name.is_empty()
                && tool.name.len() <= MOST_NAME
                && tool.name.chars().all(plain)
                && !self.tools.iter().any(|known| known.name == tool.name);
            if self.is_full() || !is_named || size > MOST_SCHEMA {
                self.left_out += 1;
                continue;
            }
            let hints = tool.annotations.unwrap_or_default();
            let description = visible(tool.description.as_deref().unwrap_or_default());
            self.bytes += size + description.len();
            self.tools.push(ToolDefinition {
                name: tool.name.into_owned(),
                description,
                schema,
                reads_only: hints.read_only_hint == Some(true),
                // By default a tool may destroy, so only what is said counts.
                destroys: hints.destructive_hint == Some(true),
                repeatable: hints.idempotent_hint == Some(true),
            });
        }
        self.tools.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// The tool of this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// A text without control characters, and not too long.
fn visible(text: &str) -> String {
    let end = text.floor_char_boundary(MOST_DESCRIPTION.min(text.len()));
    let text = text.get(..end).unwrap_or_default().trim();
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Catalogues on disk, by the hashes of their servers' settings; and each tool as it was when it
/// was last used.
#[derive(Debug, Clone)]
pub struct CatalogueCache {
    folder: PathBuf,
}

impl CatalogueCache {
    /// A cache in this folder.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The catalogue of a server, if it was started with exactly these settings before.
    #[must_use]
    pub fn load(&self, server: &ServerConfig) -> Option<Catalogue> {
        self.read(&format!("{}.json", server.hash()))
    }

    /// Keeps the catalogue of a server.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, server: &ServerConfig, catalogue: &Catalogue) -> io::Result<()> {
        self.write(&format!("{}.json", server.hash()), catalogue)
    }

    /// A tool as it was when it was last used.
    #[must_use]
    pub fn used(&self, server: &ServerConfig, tool: &str) -> Option<ToolDefinition> {
        self.read(&used_name(server, tool))
    }

    /// Remembers a tool that was used.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remember_used(&self, server: &ServerConfig, tool: &ToolDefinition) -> io::Result<()> {
        match self.used(server, &tool.name).as_ref() == Some(tool) {
            true => Ok(()),
            false => self.write(&used_name(server, &tool.name), tool),
        }
    }

    fn read<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Option<T> {
        let text = std::fs::read(self.folder.join(name)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn write(&self, name: &str, what: &impl Serialize) -> io::Result<()> {
        dunnock_private::create_folder(&self.folder)?;
        dunnock_private::replace(&self.folder.join(name), &serde_json::to_vec(what)?)
    }
}

/// Names of servers and tools are plain, so this is one too.
fn used_name(server: &ServerConfig, tool: &str) -> String {
    let of = if server.is_of_project() { "project" } else { "own" };
    format!("used-{of}-{}-{tool}.json", server.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerOrigin;
    use serde_json::json;

    fn tool(value: Value) -> rmcp::model::Tool {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_too_large_or_has_no_plain_name_is_left_out() {
        let mut catalogue = Catalogue::new(Era::Legacy);
        let schema = json!({"type": "object"});
        let named = |name: &str| tool(json!({"name": name, "inputSchema": schema}));
        let long = "x".repeat(MOST_DESCRIPTION + 10);
        let large = json!({"type": "object", "description": "y".repeat(MOST_SCHEMA)});
        let odd = ["", "a b", "a/b", "\u{202e}a", "a\n", "ä"];
        catalogue.add(odd.map(named).to_vec(), &|_| true);
        assert_eq!((catalogue.tools.len(), catalogue.left_out), (0, odd.len()));
        let described =
            json!({"name": "b", "description": format!("\u{1b}[2J{long}"), "inputSchema": schema});
        catalogue.add(
            vec![
                named("a"),
                named("a"),
                tool(described),
                tool(json!({"name": "c", "inputSchema": large})),
            ],
            &|_| true,
        );
        let names: Vec<&str> = catalogue.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!((names, catalogue.left_out), (vec!["a", "b"], odd.len() + 2));
        assert!(catalogue.tools[1].description.len() <= MOST_DESCRIPTION);
        assert!(catalogue.tools[1].description.starts_with("[2Jx"), "no escape character");
        catalogue.add((0..2_000).map(|n| named(&format!("n{n}"))).collect(), &|_| true);
        assert_eq!(catalogue.tools.len(), MOST_TOOLS);
        let mut few = Catalogue::new(Era::Legacy);
        few.add(vec![named("a"), named("b")], &|name| name == "b");
        assert_eq!((few.tools.len(), few.left_out), (1, 0), "what nobody wants is not missing");
    }

    #[test]
    fn every_change_of_a_tool_changes_its_hash_and_is_shown() {
        let plain = ToolDefinition {
            name: "a".into(),
            description: format!("{}. The end.", "Long ".repeat(100)),
            schema: json!({"type": "object"}),
            reads_only: false,
            destroys: false,
            repeatable: false,
        };
        let changed = [
            (
                "description",
                ToolDefinition {
                    description: format!("{} Or not.", plain.description),
                    ..plain.clone()
                },
            ),
            (
                "schema",
                ToolDefinition {
                    schema: json!({"type": "object", "required": ["x"]}),
                    ..plain.clone()
                },
            ),
            ("hints", ToolDefinition { reads_only: true, ..plain.clone() }),
            ("hints", ToolDefinition { destroys: true, ..plain.clone() }),
            ("hints", ToolDefinition { repeatable: true, ..plain.clone() }),
        ];
        for (part, now) in changed {
            assert_ne!(now.hash(), plain.hash(), "{part}");
            let shown = now.differences(&plain);
            assert_eq!((shown.len(), shown[0].part), (1, part));
            assert_ne!(
                shown[0].before, shown[0].after,
                "the place where they differ is shown: {shown:?}"
            );
            assert!(shown[0].after.len() < 330, "{}", shown[0].after.len());
        }
        assert!(plain.differences(&plain).is_empty());
    }

    #[test]
    fn what_a_server_says_counts_only_where_it_may() {
        let server =
            |origin: ServerOrigin, entry: Value| ServerConfig::parse("s", origin, entry).unwrap();
        let says = |reads_only: bool, destroys: bool, repeatable: bool| ToolDefinition {
            name: "t".into(),
            description: String::new(),
            schema: json!({}),
            reads_only,
            destroys,
            repeatable,
        };
        let own = server(ServerOrigin::Person, json!({"command": "a"}));
        let doubted = server(ServerOrigin::Person, json!({"command": "a", "hints": false}));
        let theirs =
            server(ServerOrigin::Project("f".into()), json!({"command": "a", "hints": true}));
        let far = server(ServerOrigin::Person, json!({"url": "http://x/"}));
        for (server, tool, class, recovery) in [
            (&own, says(true, false, false), Class::Read, Recovery::Repeat),
            (&own, says(false, false, true), Class::Command, Recovery::Repeat),
            (&own, says(false, false, false), Class::Command, Recovery::Unknown),
            // Who says both is not believed.
            (&own, says(true, true, false), Class::Command, Recovery::Unknown),
            (&doubted, says(true, false, true), Class::Command, Recovery::Unknown),
            (&theirs, says(true, false, true), Class::Command, Recovery::Unknown),
            (&far, says(true, false, false), Class::Read, Recovery::Repeat),
        ] {
            let record = tool.record(server);
            assert_eq!((record.class, record.recovery), (class, recovery), "{record:?}");
            assert_eq!(
                (record.can_destroy, record.reaches_network),
                (tool.destroys, server == &far),
                "{record:?}"
            );
        }
    }

    #[test]
    fn a_catalogue_is_kept_by_its_settings() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CatalogueCache::new(folder.path().join("mcp"));
        let one = ServerConfig::parse("s", ServerOrigin::Person, json!({"command": "a"})).unwrap();
        let other =
            ServerConfig::parse("s", ServerOrigin::Person, json!({"command": "b"})).unwrap();
        let catalogue = Catalogue::new(Era::Modern);
        cache.save(&one, &catalogue).unwrap();
        assert_eq!((cache.load(&one), cache.load(&other)), (Some(catalogue), None));
        std::fs::write(folder.path().join("mcp").join(format!("{}.json", other.hash())), "{")
            .unwrap();
        assert_eq!(cache.load(&other), None, "damage is as if it were not there");
    }
}
