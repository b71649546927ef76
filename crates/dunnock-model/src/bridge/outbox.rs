//! The text of an outbox, which the user pastes into a chat. Sections have plain markers, results
//! are fenced, and the text is split into parts that a chat accepts.

use dunnock_proto::{Bridge, CallPart, Message, Part, Step};
use serde_json::Value;
use std::fmt::Write as _;

/// The version of the protocol.
const VERSION: u32 = 1;
/// Maximum length of the file listing and of the list of changes, in bytes.
const LISTED: usize = 4_000;
/// Maximum characters of a file.
const FILE: usize = 20_000;
/// Maximum characters of the conversation before the first copy-and-paste round.
const BEFORE: usize = 6_000;
/// Maximum characters of the task.
const TASK: usize = 12_000;
/// Maximum number of parts.
const PARTS: usize = 8;

/// The content of an outbox.
pub(crate) struct Round<'a> {
    pub(crate) step: Step,
    pub(crate) instructions: &'a str,
    pub(crate) messages: &'a [Message],
    pub(crate) files: &'a [String],
    /// Files that changed since the last round, if there was one.
    pub(crate) changed: Option<Vec<String>>,
}

/// The parts of an outbox, each within the configured size.
pub(crate) fn outbox(round: &Round<'_>, bridge: &Bridge) -> Vec<String> {
    let size = usize::try_from(bridge.size).unwrap_or(usize::MAX).max(2_000);
    let output = usize::try_from(bridge.output).unwrap_or(usize::MAX);
    split(round.step, &whole(round, output), size)
}

fn section(text: &mut String, name: &str, inside: &str) {
    let _ = write!(text, "=== {name} ===\n{}\n\n", inside.trim_end());
}

fn whole(round: &Round<'_>, output: usize) -> String {
    let mut text = String::new();
    section(&mut text, "INSTRUCTIONS", round.instructions);
    section(&mut text, "TASK", &cut(&task(round.messages), TASK, "the task is cut off here"));
    let via_bridge = |message: &Message| matches!(message, Message::Assistant { wire, .. } if wire.as_ref() == super::WIRE);
    let last = round.messages.iter().rposition(|m| matches!(m, Message::Assistant { .. }));
    if let Some(last) = last
        && !round.messages.iter().any(via_bridge)
    {
        let before: Vec<String> = round.messages.iter().take(last + 1).map(describe).collect();
        section(&mut text, "BEFORE", &tail(&before.join("\n"), BEFORE));
    }
    section(&mut text, "WORKSPACE", &lines(round.files, LISTED, "files; [LIST path] shows more"));
    if let Some(changed) = &round.changed {
        let since = if changed.is_empty() {
            "nothing".to_owned()
        } else {
            lines(changed, LISTED, "changes")
        };
        section(&mut text, "CHANGED SINCE THE LAST ROUND", &since);
    }
    if let Some(last) = last {
        section(&mut text, "RESULTS", &results(&round.messages[last..], output));
    }
    text.push_str("=== END ===\nAnswer now with commands, as described in the instructions.\n");
    text
}

/// Everything that the user asked for, in order.
fn task(messages: &[Message]) -> String {
    let asked: Vec<&str> = messages
        .iter()
        .filter_map(|message| match message {
            Message::User { text, .. } => Some(text.as_ref()),
            Message::Assistant { .. } | Message::Result { .. } | Message::Notice { .. } => None,
        })
        .collect();
    asked.join("\n\nand later:\n")
}

/// The results of the last commands, and notices from the program.
fn results(messages: &[Message], output: usize) -> String {
    let calls: Vec<&CallPart> = match messages.first() {
        Some(Message::Assistant { parts, .. }) => Part::calls(parts).map(AsRef::as_ref).collect(),
        _ => Vec::new(),
    };
    let mut calls = calls.into_iter();
    let mut text = String::new();
    let mut n = 0;
    for message in messages {
        match message {
            Message::Result { text: said, ok, call, images, .. } => {
                n += 1;
                let part = calls.next();
                let how = match part {
                    Some(part) if part.tool == "final_output" => {
                        "not accepted yet: see which command failed, or which check did not pass"
                    }
                    _ if *ok => "ok",
                    _ => "FAILED",
                };
                let reads = part.is_some_and(|part| part.tool == "view_file");
                let most = if reads { FILE } else { output };
                let rest = format!(
                    "{} characters are omitted; [READ call:{call}] shows all of it",
                    said.chars().count().saturating_sub(most)
                );
                let mut said = as_commands(&cut(said, most, &rest));
                if !images.is_empty() {
                    said.push_str(" (not shown: this chat gets text only)");
                }
                let fence = fence(&said);
                let _ = write!(
                    text,
                    "{n}. {}: {how}\n{fence}\n{}\n{fence}\n",
                    part.map_or_else(String::new, command),
                    said.trim_end()
                );
            }
            Message::Notice { text: said } => {
                let _ = writeln!(text, "Note: {}", cut(said, output, "cut off here"));
            }
            Message::User { .. } | Message::Assistant { .. } => {}
        }
    }
    if text.is_empty() { "no command was run".into() } else { text }
}

/// A result with tool calls rewritten as bridge commands, which are all that the chat knows.
fn as_commands(text: &str) -> String {
    let text = &text.replace(", or set all", "");
    let sign = "view_file {\"path\":\"";
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(sign) {
        let Some((inside, behind)) = after.split_once('}') else { break };
        let number = |key: &str| {
            let digits = inside.split_once(key)?.1.trim_start_matches(['"', ':']);
            Some(digits.split(|c: char| !c.is_ascii_digit()).next()?.to_owned())
        };
        let path = inside.split('"').next().unwrap_or_default();
        let lines = match (number("first"), number("last")) {
            (Some(first), Some(last)) => format!(" LINES {first}-{last}"),
            _ => String::new(),
        };
        let _ = write!(out, "{before}[READ {path}{lines}]");
        rest = behind;
    }
    out + rest
}

/// A call as the bridge command it came from.
fn command(call: &CallPart) -> String {
    let args: Value = serde_json::from_str(&call.args).unwrap_or_default();
    let of = |key: &str| args[key].as_str().unwrap_or_default().to_owned();
    match call.tool.as_str() {
        "view_file" => match (args["first"].as_u64(), args["last"].as_u64()) {
            (Some(first), Some(last)) => format!("[READ {} LINES {first}-{last}]", of("path")),
            _ => format!("[READ {}]", of("path")),
        },
        "list_files" => format!("[LIST {}]", of("path")),
        "search_text" => match of("path") {
            path if path.is_empty() => format!("[SEARCH {}]", of("pattern")),
            path => format!("[SEARCH {} IN {path}]", of("pattern")),
        },
        "write_file" => format!("[WRITE {}]", of("path")),
        "replace_text" => format!("[REPLACE {}]", of("path")),
        "delete_file" => format!("[DELETE {}]", of("path")),
        "shell" => format!("[RUN] {}", of("command").lines().next().unwrap_or_default()),
        "final_output" => "[DONE]".into(),
        _ => "not understood".into(),
    }
}

fn describe(message: &Message) -> String {
    match message {
        Message::User { text, .. } => format!("person: {text}"),
        Message::Notice { text } => format!("program: {text}"),
        Message::Result { tool, text, .. } => {
            format!("result of {tool}: {}", cut(text, 500, "cut off here"))
        }
        Message::Assistant { parts, .. } => format!("agent: {}", Part::words(parts)),
    }
}

/// A fence that nothing inside closes.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '~').map(str::len).max().unwrap_or(0);
    "~".repeat(longest.max(3) + 1)
}

/// The first `most` characters of a text, followed by a note in place of the rest.
fn cut(text: &str, most: usize, rest: &str) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}\n[{rest}]", text.get(..at).unwrap_or_default()),
    }
}

/// The last `most` characters of a text.
fn tail(text: &str, most: usize) -> String {
    let long = text.chars().count();
    if long <= most {
        return text.to_owned();
    }
    format!(
        "[the earlier conversation is omitted]\n{}",
        text.chars().skip(long - most).collect::<String>()
    )
}

/// As many lines as fit.
fn lines(all: &[String], room: usize, what: &str) -> String {
    let mut text = String::new();
    for (n, line) in all.iter().enumerate() {
        let line: String = line.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        if text.len() + line.len() > room {
            let _ = write!(text, "[{} more {what}]", all.len() - n);
            return text;
        }
        let _ = writeln!(text, "{line}");
    }
    if text.is_empty() { "(empty)".into() } else { text }
}

/// Splits the text into parts, each with a header that numbers it.
fn split(step: Step, text: &str, size: usize) -> Vec<String> {
    // Leave space for the header and footer of a part.
    let room = size.saturating_sub(400);
    let mut parts: Vec<String> = vec![String::new()];
    let mut long = 0;
    for line in text.split_inclusive('\n') {
        let letters: Vec<char> = line.chars().collect();
        for piece in letters.chunks(room) {
            if long + piece.len() > room {
                parts.push(String::new());
                long = 0;
            }
            if let Some(last) = parts.last_mut() {
                last.extend(piece);
            }
            long += piece.len();
        }
    }
    if parts.len() > PARTS {
        parts.truncate(PARTS);
        if let Some(last) = parts.last_mut() {
            last.push_str("\n[the rest is omitted: ask for less at a time]\n");
        }
    }
    let all = parts.len();
    let dress = |(n, part): (usize, String)| {
        let head = format!(
            "DUNNOCK BRIDGE {VERSION} · round {step}{}\n\n",
            if all > 1 { format!(" · part {} of {all}", n + 1) } else { String::new() }
        );
        let foot = match n + 1 {
            last if last == all && all > 1 => {
                "\n(That was the last part. Answer now.)\n".to_owned()
            }
            last if last < all => {
                format!(
                    "\n(Part {last} of {all}. More follows: answer only \"next\" until you have \
                     the last part.)\n"
                )
            }
            _ => String::new(),
        };
        format!("{head}{part}{foot}")
    };
    parts.into_iter().enumerate().map(dress).collect()
}
