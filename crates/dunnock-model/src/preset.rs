//! Presets: the prompts and tools of a session, chosen when it starts.

use crate::dialects::plan::NAMES;
use dunnock_ports::ToolSpec;
use dunnock_proto::{Config, Tool};

pub use dunnock_proto::BRIDGE_MODEL;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Preset {
    #[default]
    Plain,
    /// The model writes plans; the program runs them until the checks pass.
    Planner,
    /// The user copies and pastes between the program and a chat.
    Bridge,
}

impl Preset {
    pub(crate) fn of(config: &Config) -> Self {
        match (&config.planner, config.model.as_str()) {
            (_, BRIDGE_MODEL) => Self::Bridge,
            (Some(_), _) => Self::Planner,
            (None, _) => Self::Plain,
        }
    }

    /// The subset of tools that this preset offers.
    pub(crate) fn offers(self, all: Vec<ToolSpec>) -> Vec<ToolSpec> {
        match self {
            Self::Plain => all,
            Self::Planner => PLANNER.iter().filter_map(|known| known.offer(&all)).collect(),
            Self::Bridge => all
                .into_iter()
                .filter(|offer| COMMANDS.contains(&offer.tool.name.as_str()))
                .collect(),
        }
    }
}

/// The tools behind the commands of a copy-and-paste session.
const COMMANDS: &[&str] = &[
    "shell",
    "view_file",
    "list_files",
    "search_text",
    "write_file",
    "replace_text",
    "delete_file",
    "final_output",
];

/// A tool under the name and schema that planners use.
struct KnownTool {
    name: &'static str,
    about: &'static str,
    schema: &'static str,
}

const PLANNER: &[KnownTool] = &[
    KnownTool {
        name: "read_file",
        about: "Shows a file.",
        schema: r#"{"type":"object","properties":{"path":{"type":"string","maxLength":4096}},"required":["path"],"additionalProperties":false}"#,
    },
    KnownTool {
        name: "apply_diff",
        about: "Changes a file with a unified diff, or creates one with a diff from /dev/null. \
                Context lines must match the file exactly.",
        schema: r#"{"type":"object","properties":{"path":{"type":"string","maxLength":4096},"diff":{"type":"string","maxLength":100000}},"required":["path","diff"],"additionalProperties":false}"#,
    },
    KnownTool {
        name: "run",
        about: "Runs a shell command; returns standard output and standard error separately.",
        schema: r#"{"type":"object","properties":{"command":{"type":"string","maxLength":100000}},"required":["command"],"additionalProperties":false}"#,
    },
    KnownTool {
        name: "git_status",
        about: "Shows which files changed.",
        schema: r#"{"type":"object","properties":{},"additionalProperties":false}"#,
    },
    KnownTool {
        name: "git_diff",
        about: "Shows the changes as a diff.",
        schema: r#"{"type":"object","properties":{"path":{"type":"string","maxLength":4096}},"additionalProperties":false}"#,
    },
];

impl KnownTool {
    /// Our tool behind it, offered under the planner's name.
    fn offer(&self, all: &[ToolSpec]) -> Option<ToolSpec> {
        let ours = ours(self.name);
        let offer = all.iter().find(|offer| offer.tool.name == ours)?;
        let tool = Tool { name: self.name.into(), ..offer.tool.clone() };
        Some(ToolSpec { tool, description: self.about.into(), schema: self.schema.into() })
    }
}

/// Our name for a planner's tool.
pub(crate) fn ours(name: &str) -> &str {
    NAMES.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours)
}
