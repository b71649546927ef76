//! All tools, in the order in which models see them.

use crate::apply_patch::ApplyPatch;
use crate::ask_person::AskPerson;
use crate::delete_file::DeleteFile;
use crate::final_output::FinalOutput;
use crate::git_tools::{GitDiff, GitStatus};
use crate::insert_text::InsertText;
use crate::list_files::ListFiles;
use crate::move_file::MoveFile;
use crate::process_tools::{ProcessRead, ProcessStart, ProcessStop, ProcessWrite};
use crate::replace_text::ReplaceText;
use crate::search_text::SearchText;
use crate::shell::ShellCommand;
use crate::tool::{Example, Tool, ToolContext, ToolOutput, offer};
use crate::update_plan::UpdatePlan;
use crate::view_file::ViewFile;
use crate::write_file::WriteFile;
use dunnock_core::ports::ToolSpec;
use dunnock_proto::{Class, Recovery, Role};
use std::fmt::Write as _;

macro_rules! tools {
    ($($name:ident)*) => {
        /// Every tool as it is sent to the model.
        #[must_use]
        pub fn offers() -> Vec<ToolSpec> {
            static ALL: std::sync::OnceLock<Vec<ToolSpec>> = std::sync::OnceLock::new();
            ALL.get_or_init(|| vec![$(offer::<$name>(),)*]).clone()
        }

        /// Every tool's name with its examples.
        #[must_use]
        pub fn pages() -> Vec<(&'static str, &'static [Example])> {
            vec![$(($name::NAME, $name::EXAMPLES),)*]
        }

        /// Runs the tool of that name; `None` if there is none.
        pub(crate) async fn run(name: &str, args: &str, hand: ToolContext) -> Option<ToolOutput> {
            Some(match name {
                $($name::NAME => match serde_json::from_str::<$name>(args) {
                    Ok(tool) => tool.run(hand).await,
                    Err(error) => Err::<String, _>(format!("invalid arguments: {error}")).into(),
                },)*
                _ => return None,
            })
        }
    };
}

tools! {
    ShellCommand ViewFile ListFiles SearchText GitStatus GitDiff
    WriteFile InsertText ReplaceText DeleteFile MoveFile ApplyPatch
    ProcessStart ProcessRead ProcessWrite ProcessStop AskPerson UpdatePlan FinalOutput
}

/// The reference page of all tools, generated from their own descriptions.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Tools\n\nMade by `cargo xtask generate` from the tools themselves \
         (`crates/dunnock-tools/src`). The quoted text is what the model reads; the examples run \
         as tests.\n",
    );
    for (offer, (name, examples)) in offers().into_iter().zip(pages()) {
        let class = match (offer.tool.role, offer.tool.class) {
            (Role::Work, Class::Read) => "read-only",
            (Role::Work, Class::Edit) => "edits the workspace",
            (Role::Work, Class::Command) => "runs a program",
            (Role::AskPerson | Role::Plan | Role::Final, _) => "answered by the session itself",
        };
        let after = match offer.tool.recovery {
            Recovery::Repeat => "runs again after a crash",
            Recovery::Rejoin => "is rejoined after a crash",
            Recovery::Unknown => "outcome unknown after a crash",
        };
        let _ = write!(page, "\n## `{name}`\n\n{class}; {after}.\n");
        for line in offer.description.lines() {
            let _ = write!(page, "\n> {line}");
        }
        let _ = write!(page, "\n\n```json\n{}\n```\n", offer.schema);
        for example in examples {
            let _ = write!(page, "\n**{}**\n\n```text\n", example.about);
            for (file, text) in example.files {
                let _ = writeln!(page, "{file}: {text:?}");
            }
            let _ = writeln!(
                page,
                "{name} {}\n{}: {}",
                example.args,
                if example.fails { "fails" } else { "gives" },
                example.gives
            );
            for (file, text) in example.leaves {
                let _ = writeln!(page, "leaves {file}: {text:?}");
            }
            page.push_str("```\n");
        }
    }
    page
}
