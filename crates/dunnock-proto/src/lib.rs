//! The data types that Dunnock writes to disk and sends over links: ids, events, commands and
//! frames.
//!
//! Everything here is data. A session is a sequence of [`Record`]s, each the stored form of one
//! [`Event`]; interfaces send [`CommandRequest`]s and receive [`Frame`]s.
//!
//! Invariant: no I/O, no clock, no randomness. Invariant: every serialised form is a promise to
//! later releases. Fields and variants are added, never renamed, and a new optional field documents
//! what its absence meant.

#![warn(missing_docs)]

mod address;
mod command;
#[macro_use]
mod event;
mod events_table;
mod host;
mod ids;
mod json_schema;
mod link;
mod message;
mod picture;
mod question;
mod record;
mod server_tool;
mod settings;
mod text;
mod tool_view;
mod usage;

pub use address::is_public;
pub use command::{Command, CommandRequest, Refused, RewindTo, Scope};
pub use events_table::*;
pub use host::{Host, HostRule, HostSet, InvalidHost};
pub use ids::{At, CallId, Hash, InputId, Owner, QuestionId, Seq, SessionId, Step, Tree};
pub use json_schema::check as check_schema;
pub use link::{Delta, Frame, Greeting, Hello, LINK_VERSION, Partial, Up};
pub use message::{
    AskPersonArgs, CommandArgs, CommandText, FinalArgs, Message, PageArgs, PathArgs, PlanArgs,
    VerifyArgs, WEB_FETCH,
};
pub use picture::{MOST_PICTURE_BYTES, MOST_PICTURE_SIDE, picture_kind, picture_size};
pub use question::{Approval, CallPreview, QuestionKind, QuestionView, Reason, RequestKind};
pub use record::{Body, Cause, Decoded, Envelope, Need, Record, seal, verify_chain};
pub use server_tool::{ServerTool, ServerToolArgs, TOOL_FIND, TOOL_USE, server_rule};
pub use settings::{
    Access, BRIDGE_MODEL, Bridge, Budget, Class, Config, ConfigPatch, Deadline, Effort, FileAccess,
    Isolation, Mode, Planner, Preamble, PreambleEffort, Price, Recovery, Role, Rule, Sandbox,
    Source, StepRules, Tool,
};
pub use text::count;
pub use tool_view::{Change, Form, Piece, ToolView};
pub use usage::Usage;
