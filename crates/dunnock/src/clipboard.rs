//! Copies text to the clipboard, with a program that this machine has.

use crate::own_programs::OwnPrograms;
use crate::view::output;
use dunnock_proto::OutboxWritten;
use std::io::Write as _;
use std::process::Stdio;

/// Copies a round's first part to the clipboard.
pub(crate) fn copy_round(programs: &OwnPrograms, handed: &OutboxWritten) {
    let copied = std::fs::read_to_string(&handed.outbox)
        .map_err(|e| e.to_string())
        .and_then(|text| to_clipboard(programs, &text));
    match (copied, handed.parts) {
        (Ok(()), 0 | 1) => output::note("copied the outbox to the clipboard"),
        (Ok(()), parts) => output::note(&format!(
            "copied part 1 of {parts} to the clipboard; for the next: dunnock bridge copy 2"
        )),
        (Err(why), _) => {
            output::note(&format!("could not copy the outbox to the clipboard: {why}"))
        }
    }
}

/// Programs that write text to the clipboard, with their arguments.
const CLIPBOARDS: &[&[&str]] = &[
    &["wl-copy"],
    &["xclip", "-selection", "clipboard"],
    &["xsel", "--clipboard", "--input"],
    &["pbcopy"],
    &["clip.exe"],
];

/// Writes text to the clipboard with the first program that works.
pub(crate) fn to_clipboard(programs: &OwnPrograms, text: &str) -> Result<(), String> {
    for words in CLIPBOARDS {
        let Some((program, rest)) = words.split_first() else { continue };
        let Ok(mut command) = programs.command(program) else { continue };
        let child = command
            .args(rest)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = child else { continue };
        let written =
            child.stdin.take().is_some_and(|mut input| input.write_all(text.as_bytes()).is_ok());
        if written && child.wait().is_ok_and(|status| status.success()) {
            return Ok(());
        }
    }
    Err("no clipboard program works (wl-copy, xclip, xsel, pbcopy, clip.exe)".into())
}
