//! The preamble of a session: system prompt and tools, rendered once and recorded.
//!
//! Invariant: nothing in a preamble changes from step to step: no clock, no git state, no counts.
//! Later requests send the recorded bytes, never what the current release would render.

use crate::bridge::BridgeSettings;
use crate::capabilities::Capabilities;
use crate::dialects::{Callable, Dialect, schema};
use crate::effort_table::Recipient;
use crate::preset::Preset;
use crate::profile::Size;
use crate::provider::Quirks;
use crate::wire::Wire;
use crate::wires::anthropic_limit;
use dunnock_ports::{Blob, HostInfo, ToolSpec};
use dunnock_proto::Effort;
use minijinja::{UndefinedBehavior, Value, context};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use serde_json::value::RawValue;
use std::path::PathBuf;

/// The environment that is described to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The operating system and architecture.
    pub os: String,
    /// The shell that runs commands.
    pub shell: String,
    /// The path of the workspace.
    pub root: String,
    /// Whether it is a git repository.
    pub git: bool,
    /// What the sandbox lets commands do, a line each.
    pub sandbox: Vec<String>,
    /// Whether file tools reach the whole machine.
    pub machine: bool,
    /// The MCP servers whose tools can be found and used.
    pub servers: Vec<String>,
}

/// The inputs from which a preamble is rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreambleInputs {
    /// The environment in which the model works.
    pub environment: Environment,
    /// Source and text of each instruction file, more specific ones later.
    pub instructions: Vec<(String, String)>,
    /// The available tools.
    pub offers: Vec<ToolSpec>,
    /// The results of earlier runs of a planner's task.
    pub memory: String,
}

/// Prompt templates, embedded in the binary. The user can replace each with a file.
#[derive(Debug, Clone, Default)]
pub struct Prompts {
    folder: Option<PathBuf>,
    /// Whether they are for the stateless service.
    service: bool,
}

impl Prompts {
    /// The name and embedded text of every prompt.
    pub const ALL: &'static [(&'static str, &'static str)] = &[
        ("system.md", include_str!("../../../prompts/system.md")),
        ("small.md", include_str!("../../../prompts/small.md")),
        ("text-calls.md", include_str!("../../../prompts/text-calls.md")),
        ("plan.md", include_str!("../../../prompts/plan.md")),
        ("summary.md", include_str!("../../../prompts/summary.md")),
        ("service.md", include_str!("../../../prompts/service.md")),
        ("planner.md", include_str!("../../../prompts/planner.md")),
        ("bridge.md", include_str!("../../../prompts/bridge.md")),
    ];

    /// Prompts that files of the same name in `folder` replace.
    #[must_use]
    pub fn replaced_in(folder: PathBuf) -> Self {
        Self { folder: Some(folder), service: false }
    }

    /// The same, for the stateless service.
    #[must_use]
    pub fn for_service(self) -> Self {
        Self { service: true, ..self }
    }

    pub(crate) fn is_for_service(&self) -> bool {
        self.service
    }

    pub(crate) fn source(&self, name: &str) -> Result<(String, String), String> {
        let replaced = self.folder.as_ref().map(|folder| folder.join(name));
        if let Some(path) = replaced {
            match std::fs::read_to_string(&path) {
                Ok(text) => return Ok((path.display().to_string(), text)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(format!("the prompt {} cannot be read: {error}", path.display()));
                }
            }
        }
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .ok_or_else(|| format!("no prompt {name}"))
    }

    fn render(&self, name: &str, values: Value) -> Result<String, String> {
        let (place, source) = self.source(name)?;
        let mut env = minijinja::Environment::new();
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        let failed = |e: minijinja::Error| format!("the prompt {place} cannot be rendered: {e:#}");
        let text = env.render_str(&source, values).map_err(failed)?;
        Ok(text.trim().to_owned())
    }

    /// The names of the prompts that make up a system prompt.
    pub(crate) fn used(
        &self,
        size: Size,
        dialect: Dialect,
        preset: Preset,
    ) -> impl Iterator<Item = &'static str> {
        let name = match (preset, size) {
            (Preset::Planner, _) => "planner.md",
            (Preset::Bridge, _) => "bridge.md",
            (Preset::Plain, _) if self.service => "service.md",
            (Preset::Plain, Size::Default) => "system.md",
            (Preset::Plain, Size::Small) => "small.md",
        };
        let calls = match dialect {
            _ if preset != Preset::Plain => None,
            Dialect::Native => None,
            Dialect::Text => Some("text-calls.md"),
            Dialect::Plan => Some("plan.md"),
        };
        std::iter::once(name).chain(calls)
    }

    /// Renders the system prompt.
    ///
    /// # Errors
    /// When a replaced prompt cannot be read or rendered; the message says which.
    pub(crate) fn system(
        &self,
        briefing: &PreambleInputs,
        capabilities: &Capabilities,
    ) -> Result<String, String> {
        let Capabilities { size, dialect, parallel, preset, .. } = *capabilities;
        let at = &briefing.environment;
        let instructions = briefing.instructions.iter();
        let instructions: Vec<Value> = instructions
            .map(|(source, text)| context! { source => source.as_str(), text => text.as_str() })
            .collect();
        let environment = context! {
            os => at.os.as_str(), shell => at.shell.as_str(), root => at.root.as_str(), git => at.git,
            sandbox => at.sandbox.clone(), machine => at.machine,
        };
        let tool = |offer: &ToolSpec| {
            let schema = serde_json::from_str(&offer.schema).unwrap_or_default();
            let (name, about) = (offer.tool.name.as_str(), offer.description.as_str());
            context! { name => name, about => about, arguments => schema::describe(&schema) }
        };
        let tools: Vec<Value> = match dialect {
            Dialect::Native => Vec::new(),
            Dialect::Text | Dialect::Plan => briefing.offers.iter().map(tool).collect(),
        };
        let values = context! {
            environment => environment, instructions => instructions, parallel => parallel, tools => tools,
            memory => briefing.memory.as_str(), timeout => capabilities.timeout,
            guidance => capabilities.tool_set.guidance(capabilities.edit), family => capabilities.family,
            unattended => capabilities.unattended, servers => at.servers.join(", "),
        };
        let texts = self.used(size, dialect, preset).map(|name| self.render(name, values.clone()));
        Ok(texts.collect::<Result<Vec<String>, String>>()?.join("\n\n"))
    }

    /// The system prompt for summarising a conversation in at most this many words.
    ///
    /// # Errors
    /// When a replaced prompt cannot be read or rendered; the message says which.
    pub fn summary(&self, words: u64) -> Result<String, String> {
        self.render("summary.md", context! { words => words })
    }
}

/// A preamble as recorded: everything besides the conversation that determines the bytes of a
/// request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordedPreamble {
    /// Format version.
    pub(crate) v: u16,
    /// `provider/model`.
    pub(crate) model: String,
    /// The API of the server.
    #[serde(default)]
    pub(crate) wire: Wire,
    /// How calls are written.
    #[serde(default)]
    pub(crate) dialect: Dialect,
    /// The system prompt.
    pub(crate) system: String,
    /// The tools in the wire's format, byte for byte.
    pub(crate) tools: Box<RawValue>,
    /// The tools that can be called in text, when the dialect is not native.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) callable: Vec<Callable>,
    /// The schema to which the server constrains the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<Box<RawValue>>,
    /// Context window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<u64>,
    /// The output limit to request, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_output: Option<u64>,
    /// Quirks of the server.
    #[serde(default)]
    pub(crate) quirks: Quirks,
    /// The workspace root, if calls are also read as those of other harnesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) aliases_at: Option<String>,
    /// Fields that ask for a reasoning effort.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) effort: Map<String, serde_json::Value>,
    /// Requests name the session, by which the server finds its cache again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cache_key: bool,
    /// Additional fields for each request.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) body: Map<String, serde_json::Value>,
    /// Settings of a copy-and-paste session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bridge_settings: Option<BridgeSettings>,
    /// The machine as it was described. Its snapshot opens the conversation.
    #[serde(default, skip_serializing_if = "HostInfo::is_empty")]
    pub(crate) host: HostInfo,
}

impl RecordedPreamble {
    pub(crate) fn blob(&self) -> Result<Blob, String> {
        serde_json::to_vec(self).map(Blob::new).map_err(|e| e.to_string())
    }
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let preamble: Self = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        if (1..=2).contains(&preamble.v) {
            Ok(preamble)
        } else {
            Err(format!("a later release wrote it (format {})", preamble.v))
        }
    }
    /// The names of the provider and of the model.
    pub(crate) fn names(&self) -> (&str, &str) {
        self.model.split_once('/').unwrap_or((&self.model, ""))
    }
    /// Sets the fields for an effort, and returns the effort that they ask for; `None` if the model
    /// has no setting for it. `direct`: the provider is at its own address.
    pub(crate) fn set_effort(&mut self, wanted: Effort, direct: bool) -> Option<Effort> {
        let (provider, model) = self.names();
        let recipient = Recipient { provider, wire: self.wire, model, direct };
        let (sent, fields) = recipient.fields(wanted, anthropic_limit(self)).unzip();
        self.effort = fields.unwrap_or_default();
        sent
    }
    /// An estimate of the tokens that the preamble takes in every request.
    pub(crate) fn tokens(&self) -> u64 {
        estimate(self.system.as_bytes()) + estimate(self.tools.get().as_bytes())
    }
}

/// Average bytes per token for text in the Latin alphabet.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

/// Estimates the tokens of a text. The estimate is about right for prose and low for code, so that
/// a text judged too long really is. Every non-ASCII character counts as one token.
pub(crate) fn estimate(text: &[u8]) -> u64 {
    let plain = text.iter().filter(|byte| byte.is_ascii()).count() as u64;
    // Lead bytes of multi-byte characters.
    let others = text.iter().filter(|byte| **byte >= 0xc0).count() as u64;
    plain / BYTES_PER_TOKEN + others
}
