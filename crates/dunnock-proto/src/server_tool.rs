//! Tools of MCP servers: how a call names one, and what was known of it when the call was judged.

use crate::{Class, Hash, Recovery};
use serde::{Deserialize, Serialize};

/// The tool that finds tools of MCP servers.
pub const TOOL_FIND: &str = "tool_find";
/// The tool that calls a tool of an MCP server.
pub const TOOL_USE: &str = "tool_use";

/// The arguments of a call to a tool of a server, as far as policy judges them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerToolArgs {
    /// `server/tool`.
    pub tool: String,
}

/// What was known of a server's tool when a call to it was judged. The call runs only while all of
/// this is still true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerTool {
    /// The place of the call in its answer.
    pub index: u16,
    /// `server/tool`.
    pub name: String,
    /// Hash of its description, its schema and its hints.
    pub definition_hash: Hash,
    /// Hash of the server's settings.
    pub settings_hash: Hash,
    /// The server is one of the project's, not one of the person's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_project: bool,
    /// It only reads, says a server whose hints count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_only: bool,
    /// Whether the call may change files of the workspace: its server may change some at any time.
    pub class: Class,
    /// What to do with an unfinished call after a crash.
    pub recovery: Recovery,
    /// It can destroy something, says its server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_destroy: bool,
    /// The server can reach other machines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reaches_network: bool,
}

impl ServerTool {
    /// The name of the server.
    #[must_use]
    pub fn server_name(&self) -> &str {
        self.name.split_once('/').map_or("", |(server, _)| server)
    }
}

/// The words of a rule for all tools of a server.
#[must_use]
pub fn server_rule(server: &str) -> Vec<String> {
    vec![format!("{server}/*")]
}
