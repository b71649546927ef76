//! Speaks the Model Context Protocol (MCP) with servers that others start: settings of servers, the
//! connection, catalogues of tools, the search in them, checks of arguments, and results.
//!
//! Both eras of the protocol are in use: servers that know `server/discover` (2026-07-28), and
//! those that want to be initialised. The crate starts no process; `dunnock-tools` gives it the
//! pipes of one that runs in the sandbox.
//!
//! Invariant: a catalogue is data of a stranger. Its size is limited, and nothing in it decides
//! what may run, except for hints of servers that the person trusts.

mod catalogue;
mod config;
mod connection;
mod foreign;
mod probe;
mod result;
mod search;

pub use catalogue::{Catalogue, CatalogueCache, DescriptionChange, ToolDefinition};
pub use config::{
    InvalidServer, ServerAccess, ServerConfig, ServerOrigin, ServerStart, is_valid_server_name,
};
pub use connection::{CallError, ConnectError, Connection, Era, Http};
pub use foreign::{ForeignServers, OWN_FILES, PROJECT_FILES, ServerFileFormat, read_foreign};
pub use result::{CallResult, Picture};
pub use search::{SearchHit, search};
