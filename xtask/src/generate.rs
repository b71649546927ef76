//! Files generated from the code: committed, and tested to be up to date.

use crate::tidy::root;
use dunnock_proto::Event;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Each file and its expected contents.
pub(crate) fn files() -> Vec<(PathBuf, String)> {
    vec![
        (root().join("docs/reference/events.md"), facts()),
        (root().join("docs/internals/requirements.md"), crate::asked::page()),
        (root().join("web/src/proto.gen.ts"), crate::typescript::file()),
        (root().join("web/src/api.gen.ts"), crate::typescript::api()),
    ]
}

fn facts() -> String {
    let mut text = String::from(
        "# Kinds of events\n\nMade by `cargo xtask generate` from \
         `crates/dunnock-proto/src/events_table.rs`, which documents the fields.\n\nA reader that meets a kind or version it does not know skips it if the log \
         says `may`, and opens the session read-only if it says `must`.\n\n| kind | version | \
         need |\n|---|---|---|\n",
    );
    for (kind, v, need) in Event::TABLE {
        let _ = writeln!(text, "| `{kind}` | {v} | {need} |");
    }
    text
}

/// Writes all generated files.
pub(crate) fn write() -> Result<(), String> {
    for (path, text) in files() {
        path.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .map_err(|e| format!("{}: {e}", path.display()))?;
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    // Pages that the program generates are written by the tests that check them.
    let filter = "test(pages::) | test(lines::the_schema) | test(the_openapi_document)";
    let mut command = crate::program("cargo");
    command
        .args(["nextest", "run", "--workspace", "-E", filter])
        .env("DUNNOCK_BLESS", "1")
        .current_dir(root());
    let status = command.status().map_err(|e| format!("cargo nextest: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("the program's own pages could not be generated".into())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_files_are_fresh() {
        for (path, text) in super::files() {
            let stored = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(stored, text, "{} is stale: run `cargo xtask generate`", path.display());
        }
    }
}
