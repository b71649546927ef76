//! How requests to a model are written, and what it is offered.

use crate::dialects::Dialect;
use crate::preset::{self, Preset};
use crate::profile::{EditFormat, Size};
use crate::provider::{Provider, Quirks};
use crate::tool_sets::ToolSet;
use crate::wire::Wire;
use dunnock_ports::ToolSpec;
use dunnock_proto::{Role, TOOL_FIND, TOOL_USE, WEB_FETCH};

/// How requests to a model are written, and what it is offered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capabilities {
    pub(crate) wire: Wire,
    pub(crate) dialect: Dialect,
    pub(crate) constrained: bool,
    pub(crate) edit: EditFormat,
    pub(crate) size: Size,
    pub(crate) window: Option<u64>,
    pub(crate) parallel: bool,
    pub(crate) quirks: Quirks,
    pub(crate) preset: Preset,
    /// Its calls are also read as those of other harnesses.
    pub(crate) aliases: bool,
    /// The tools that it is offered in a plain session.
    pub(crate) tool_set: ToolSet,
    /// A sentence of the system prompt for its family.
    pub(crate) family: &'static str,
    /// It writes patches as plain text instead of JSON.
    pub(crate) freeform: bool,
    /// Nobody answers its questions.
    pub(crate) unattended: bool,
    /// The person lets it fetch pages of the web.
    pub(crate) web_fetch: bool,
    /// It may find and use the tools of MCP servers.
    pub(crate) servers: bool,
    /// Time limit in seconds for a command of a copy-and-paste session.
    pub(crate) timeout: u64,
}

impl Capabilities {
    /// The capabilities of a model without a profile, from its provider's configuration.
    pub(crate) fn of(provider: &Provider) -> Self {
        Self {
            wire: provider.wire,
            dialect: Dialect::Native,
            constrained: true,
            edit: EditFormat::Any,
            size: Size::Default,
            window: provider.window,
            parallel: true,
            quirks: provider.quirks,
            preset: Preset::Plain,
            aliases: false,
            tool_set: ToolSet::Plain,
            family: "",
            freeform: false,
            unattended: false,
            web_fetch: false,
            servers: false,
            timeout: 0,
        }
    }

    /// The tools that it is offered.
    pub(crate) fn offers(&self, mut all: Vec<ToolSpec>) -> Vec<ToolSpec> {
        all.retain(|offer| match offer.tool.name.as_str() {
            WEB_FETCH => self.web_fetch,
            TOOL_FIND | TOOL_USE => self.servers,
            _ => true,
        });
        if self.unattended {
            all.retain(|offer| offer.tool.role != Role::AskPerson);
        }
        match self.preset {
            Preset::Plain if !self.aliases => all,
            Preset::Plain => self.tool_set.offers(self.size, self.edit, all),
            Preset::Planner | Preset::Bridge => self.preset.offers(all),
        }
    }

    /// Our name for a tool that it is offered.
    pub(crate) fn ours(&self, name: &str) -> String {
        if self.preset == Preset::Planner { preset::ours(name).into() } else { name.into() }
    }
}
