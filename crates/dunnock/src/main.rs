//! The `dunnock` program: a table of contents.
//!
//! Arguments are in `args.rs`, folders in `place.rs`, each command in a file of its own. What people read goes through
//! `say.rs`.

mod args;
mod place;
mod say;
mod sessions;

use args::{Args, Command};
use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(args)));
    match done {
        Ok(code) => code,
        Err(error) => {
            say::error(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Sessions(which) => sessions::run(&place::open(args.data_dir).await?, which).await,
    }
}
