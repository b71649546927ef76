//! The commands, one file each or for each group, and their arguments.

pub(crate) mod about;
pub(crate) mod args;
pub(crate) mod bridge;
pub(crate) mod context;
pub(crate) mod cost;
pub(crate) mod deadline;
pub(crate) mod doctor;
pub(crate) mod find;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod pictures;
pub(crate) mod planner;
pub(crate) mod processes;
pub(crate) mod receipt;
pub(crate) mod replay;
pub(crate) mod reply;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod terminal;
pub(crate) mod transfer;
pub(crate) mod trust;
pub(crate) mod undo;
