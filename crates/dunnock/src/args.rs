//! What can be typed: one source for parsing and help.

use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// A coding agent you can kill, undo and check.
#[derive(Debug, Parser)]
#[command(name = "dunnock", version, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    /// Keep sessions in this folder instead of the user's data folder
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Look at sessions: list them, show one, check that none was changed
    #[command(subcommand)]
    Sessions(Sessions),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, newest first
    List {
        /// Only those of this folder
        #[arg(long)]
        here: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 1000)]
        most: u32,
    },
    /// Show what was said and done in a session
    Show {
        /// The session's id, or its beginning
        id: String,
        /// One JSON object a line: the facts as they are stored
        #[arg(long)]
        json: bool,
    },
    /// Check that the facts of sessions are those that were written
    Verify {
        /// The session's id, or its beginning; all sessions if left out
        id: Option<String>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
}
