//! `cargo xtask`: tasks for the workspace itself.
//!
//! The checks are tests (`cargo test -p xtask`), so that a plain `cargo test` does what CI does.

mod asked;
mod dist;
mod fuzz;
mod generate;
mod long;
mod modules;
mod pictures;
mod real;
mod tidy;
#[cfg(test)]
mod tidy_code;
#[cfg(test)]
mod tidy_words;
mod typescript;

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["generate"] => generate::write(),
        // Builds the web app, which the next build embeds.
        ["web"] => dist::web(),
        ["dist"] => dist::make("release"),
        // Quicker to build and larger: for checks that need a static binary.
        ["dist", "--quick"] => dist::make("quick"),
        ["packages"] => {
            tidy::count_packages().map(|n| say(&format!("packages in the shipped binary: {n}")))
        }
        // The structure of our crates: layers and cycles of modules.
        ["modules"] => modules::print(),
        ["modules", name] => modules::print_cycles(name),
        ["fuzz"] => fuzz::run(&fuzz::ALL, 20).map(drop),
        ["fuzz", seconds] => seconds
            .parse()
            .map_err(|_| "usage: cargo xtask fuzz [SECONDS]".to_owned())
            .and_then(|s| fuzz::run(&fuzz::ALL, s).map(drop)),
        // Pictures of the terminal app, from the binary that `dist` built or from another one.
        ["pictures"] => pictures::make("dist/dunnock".as_ref()).map_err(|error| error.to_string()),
        ["pictures", program] => {
            pictures::make(program.as_ref()).map_err(|error| error.to_string())
        }
        ["real"] => real::run(real::Share::Ci),
        ["long"] => long::all(),
        ["long", name] => long::one(name),
        _ => {
            Err("usage: cargo xtask generate | web | dist [--quick] | packages | modules [CRATE] \
                  | fuzz [SECONDS] | pictures [PROGRAM] | real | long [NAME]"
                .into())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error);
            ExitCode::FAILURE
        }
    }
}

/// A command that is cargo or runs it, without the variables that `cargo run` sets for us. A build
/// script that reads them (ring's does) would run again, and half of the workspace would be
/// rebuilt.
fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    for (key, _) in std::env::vars_os() {
        if key
            .to_str()
            .is_some_and(|key| key.starts_with("CARGO_PKG_") || key.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(key);
        }
    }
    command
}

#[expect(clippy::print_stdout, reason = "a program for people at a terminal")]
fn say(text: &str) {
    println!("{text}");
}
