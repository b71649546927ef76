//! Facts in words, and what they add up to.

use crate::{preview, say};
use dunnock_core::State;
use dunnock_core::patch::Patch;
use dunnock_proto::{
    About, CallId, CallPart, Decoded, Event, FinalArgs, Finished, Outcome, Part, Proof, Record, Scope, Tree, Usage,
    VerifyArgs, Why,
};

/// A fact in words; nothing for those that only matter to the machine.
pub(crate) fn told(record: &Record) -> Option<String> {
    let event = match record.decode() {
        Decoded::Known(event) => event,
        Decoded::Unknown(why) => return Some(say::visible(&format!("? {} ({why})", record.envelope.kind))),
    };
    let text = match event {
        Event::Created(e) => {
            format!("session in {}, {}, with {}", e.workspace, say::time(record.envelope.at), model(&e.config.model))
        }
        Event::Forked(e) => format!("branched off {} at fact {}", e.from, e.at),
        Event::Prompted(e) => format!("\n> {}", e.text),
        Event::Continued(_) => "\n> (go on)".into(),
        Event::Answered(e) => {
            let mut index = 0;
            let parts = e.parts.iter().filter_map(|part| match part {
                Part::Text { text } => Some(text.to_string()),
                Part::Call(call) => {
                    let id = CallId { turn: e.turn, index };
                    index += 1;
                    Some(format!("  {id} {}  {}", call.tool, gist(call)))
                }
                Part::Reasoning { .. } => None,
            });
            let parts: Vec<String> = parts.collect();
            if parts.is_empty() {
                return None;
            }
            parts.join("\n")
        }
        Event::TurnFailed(e) => format!("  the model did not answer: {}", e.error),
        Event::Asked(e) => format!("  {} waits: {}", e.question, e.text.replace('\n', "\n    ")),
        Event::Replied(e) => {
            let note = e.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
            format!("  {} answered: {}{note}", e.question, answer(&e.answer))
        }
        Event::Finished(e) if e.outcome == Outcome::Done && e.shown.as_ref() == "noted" => return None,
        Event::Finished(e) => {
            let body = e.shown.trim_end().replace('\n', "\n    ");
            format!(
                "  {} {}{}",
                e.call,
                outcome(&e.outcome),
                if body.is_empty() { String::new() } else { format!(":\n    {body}") }
            )
        }
        Event::Called(e) => format!(
            "  {} check  {}",
            e.call,
            VerifyArgs::parse(&e.args).map_or_else(|_| e.args.to_string(), |a| a.command)
        ),
        Event::Configured(e) => format!("  settings: {}", serde_json::to_string(&e.set).unwrap_or_default()),
        Event::InterruptAsked(_) => "  interrupted".into(),
        Event::Checkpointed(e) => format!("  files: {}", e.note?),
        Event::RewindAsked(e) => format!("\n> (go back: {})", scope(e.scope)),
        Event::Rewound(e) => format!("  went back{}", e.note.map_or_else(String::new, |note| format!("; {note}"))),
        Event::RewindFailed(e) => format!("  could not go back: {}", e.error),
        Event::Compacted(e) => format!("  compacted: {} bytes, then {}", e.before, e.after),
        Event::Ended(e) => format!("ended: {}", why(&e.why)),
        Event::Titled(e) => format!("titled {}", e.title),
        Event::Noticed(e) => format!("  note: {}", e.text),
        _ => return None,
    };
    Some(say::visible(&text))
}

/// What goes back.
pub(crate) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Files => "files",
        Scope::Talk => "talk",
        Scope::Both => "files and talk",
    }
}

fn model(name: &str) -> &str {
    if name.is_empty() { "no model" } else { name }
}

fn answer(answer: &dunnock_proto::Answer) -> String {
    use dunnock_proto::Answer;
    match answer {
        Answer::Yes => "yes".into(),
        Answer::No => "no".into(),
        Answer::Always { rule } => format!("yes, always for {} {}", rule.tool, rule.words.join(" ")),
        Answer::Edit { args } => format!("yes, as {args}"),
        Answer::Text { text } => text.to_string(),
    }
}

pub(crate) fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Declined { .. } => "declined",
        Outcome::Cut => "cut off",
        Outcome::NotRun => "not run",
        Outcome::Unknown => "outcome unknown",
    }
}

pub(crate) fn why(why: &Why) -> String {
    match why {
        Why::Done => "done".into(),
        Why::Stopped => "stopped".into(),
        Why::Failed { error } => format!("failed: {error}"),
        Why::Limit => "the limit of steps was reached".into(),
        Why::Budget => "the budget was used up".into(),
        Why::Unproven => "verification failed".into(),
    }
}

/// The one argument of a call that says most: the command, the path, the pattern; all of them where none does.
pub(crate) fn gist(call: &CallPart) -> String {
    let Ok(args) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&call.args) else {
        return call.args.to_string();
    };
    let text = |key: &str| match args.get(key)? {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Array(words) => Some(
            words.iter().map(|w| w.as_str().map_or_else(|| w.to_string(), str::to_owned)).collect::<Vec<_>>().join(" "),
        ),
        _ => None,
    };
    match call.tool.as_str() {
        "shell" | "process_start" => text("command"),
        "process_read" | "process_stop" => args.get("process").map(ToString::to_string),
        "process_write" => {
            text("text").map(|said| format!("{} {said:?}", args.get("process").unwrap_or(&serde_json::Value::Null)))
        }
        "search_text" => {
            text("pattern").map(|p| format!("{p:?}{}", text("path").map_or(String::new(), |p| format!(" in {p}"))))
        }
        "list_files" => Some(text("glob").or_else(|| text("path")).unwrap_or_else(|| ".".into())),
        "move_file" => text("path").zip(text("to")).map(|(from, to)| format!("{from} to {to}")),
        // Its files, as policy and the tool read them.
        "apply_patch" => text("patch")
            .and_then(|patch| Patch::parse(&patch).ok())
            .map(|patch| patch.paths().collect::<Vec<_>>().join(", ")),
        "git_status" => Some(String::new()),
        "git_diff" => Some([text("commit"), text("path")].into_iter().flatten().collect::<Vec<_>>().join(" ")),
        "ask_person" => text("question"),
        "final_output" => text("answer"),
        "update_plan" => {
            let steps = args.get("steps").and_then(|s| s.as_array()).map_or(0, Vec::len);
            Some(format!("{steps} steps"))
        }
        _ => text("path"),
    }
    .unwrap_or_else(|| call.args.to_string())
}

/// One check of the last try at verification.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub(crate) call: CallId,
    pub(crate) command: String,
    pub(crate) end: Option<(Outcome, Option<Tree>)>,
}

/// What the facts since the last prompt add up to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u32,
    pub(crate) usage: Usage,
    pub(crate) began: i64,
    pub(crate) ended: i64,
    /// What the person reads.
    pub(crate) answer: String,
    pub(crate) checks: Vec<Check>,
    /// The answer came by a call, not in words.
    pub(crate) by_call: bool,
    rests: bool,
}

impl Tally {
    /// Takes a fact in.
    pub(crate) fn add(&mut self, at: i64, event: &Event) {
        match event {
            Event::Prompted(_) | Event::Continued(_) if self.rests || self.began == 0 => {
                *self = Self { began: at, ..Self::default() };
            }
            Event::TurnStarted(_) => self.steps += 1,
            Event::TurnFailed(e) => self.usage += e.usage,
            Event::Answered(e) => {
                self.usage += e.usage;
                self.answered(&e.parts);
            }
            Event::Called(e) => {
                // All calls of one try are made before the first of them ends.
                if self.checks.iter().all(|c| c.end.is_some()) {
                    self.checks.clear();
                }
                let command = VerifyArgs::parse(&e.args).map_or_else(|_| e.args.to_string(), |a| a.command);
                self.checks.push(Check { call: e.call, command, end: None });
            }
            Event::Finished(Finished { call, outcome, tree, .. }) => {
                if let Some(check) = self.checks.iter_mut().find(|c| c.call == *call) {
                    check.end = Some((outcome.clone(), tree.clone()));
                }
            }
            Event::Ended(_) => self.rests = true,
            _ => {}
        }
        self.ended = at;
    }

    fn answered(&mut self, parts: &[Part]) {
        let (said, calls) = (Part::words(parts), Part::calls(parts).next().is_some());
        let mut last = Part::calls(parts).filter(|call| call.tool == "final_output");
        let last = last.next().and_then(|call| FinalArgs::parse(&call.args).ok());
        self.by_call = last.as_ref().is_some_and(|last| !last.answer.is_empty());
        match last {
            Some(last) if !last.answer.is_empty() => self.answer = last.answer.to_string(),
            Some(_) => self.answer = said,
            None if !calls => self.answer = said,
            None => {}
        }
    }

    /// The files that each of the last checks proved something of; `None` where one does not say.
    pub(crate) fn proven_trees(&self) -> Option<Vec<&Tree>> {
        let trees = self.checks.iter().map(|c| c.end.as_ref().and_then(|(_, tree)| tree.as_ref()));
        let mut trees = trees.collect::<Option<Vec<&Tree>>>()?;
        trees.dedup();
        Some(trees)
    }

    /// The last line of a run: proof, steps, time, tokens, cost.
    pub(crate) fn closing(&self, s: &State, word: &str, stale: bool) -> String {
        let commands: Vec<String> = self.checks.iter().map(|c| format!("`{}`", say::one_line(&c.command))).collect();
        let proof = match s.proof {
            _ if stale => format!("proof stale: files changed after {}", commands.join(", ")),
            Proof::Proven => format!("proven by {}", commands.join(", ")),
            Proof::Failed => format!("not proven: {} failed", commands.join(", ")),
            Proof::None if s.config.verify.is_empty() => "not checked (no --verify)".into(),
            Proof::None => "not checked".into(),
        };
        let ms = u64::try_from(self.ended - self.began).unwrap_or(0);
        let steps = if self.steps == 1 { "1 step".into() } else { format!("{} steps", self.steps) };
        let tokens = match self.usage {
            Usage { input: 0, output: 0, .. } => "tokens unknown".into(),
            used => format!("{} tokens in, {} out", say::number(used.input), say::number(used.output)),
        };
        format!("{word} · {proof} · {steps} · {} · {tokens} · price unknown", say::took(ms))
    }
}

/// A question as a person is shown it. What a model wrote stands behind a bar, so that it cannot pass for our own words.
pub(crate) fn question(s: &State, question: &dunnock_core::Question) -> String {
    let mut text = match &question.about {
        About::Approval { call } => match s.call(*call) {
            Some(known) => {
                let folder = s.workspace.as_deref().unwrap_or_default();
                let mut lines = vec![
                    format!("may call {call} run?\n  {}", say::one_line(&known.part.tool)),
                    behind_bar(&exact(&known.part.tool, known.args())),
                    format!("  in: {}", say::one_line(folder)),
                ];
                // Ours from the last "why" on: a model can write that word, but nothing after ours.
                let ours = question.text.rsplit_once("\nwhy: ").map_or("", |(_, why)| why);
                let mut ours = ours.lines();
                lines.push(format!("  why it asks: {}", say::one_line(ours.next().unwrap_or_default())));
                lines.extend(preview::of(s, known).map(|told| format!("  what it does: {told}")));
                lines.extend(ours.map(|line| format!("  {}", say::one_line(line))));
                lines.join("\n")
            }
            None => behind_bar(&question.text),
        },
        About::Person { .. } => format!("the model asks:\n{}", behind_bar(&question.text)),
        About::Unknown { .. } | About::Limit | About::Budget | About::Stalled | About::Trust { .. } => {
            say::visible(&question.text)
        }
    };
    for (n, choice) in question.choices.iter().enumerate() {
        text.push_str(&format!("\n  {}. {}", n + 1, say::one_line(choice)));
    }
    text
}

fn behind_bar(text: &str) -> String {
    let lines: Vec<String> = say::visible(text).lines().map(|line| format!("  │ {line}")).collect();
    lines.join("\n")
}

/// What would run, all of it: the command line as it is where that is everything, otherwise every argument as JSON.
fn exact(tool: &str, args: &str) -> String {
    let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(args).ok();
    match object {
        Some(object) if tool == "shell" && object.len() == 1 => match object.get("command") {
            Some(serde_json::Value::String(line)) => line.clone(),
            _ => args.to_owned(),
        },
        Some(_) | None => args.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_by_what_it_is_about() {
        let told = |tool: &str, args: serde_json::Value| {
            gist(&CallPart {
                id: "c".into(),
                tool: tool.into(),
                args: args.to_string().into(),
                recovered: false,
                fault: None,
            })
        };
        let patch =
            "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Update File: b\n*** Move to: c\n-x\n+y\n*** End Patch";
        assert_eq!(told("apply_patch", serde_json::json!({ "patch": patch })), "a.txt, b, c");
        assert_eq!(told("move_file", serde_json::json!({"path": "a", "to": "b"})), "a to b");
        assert_eq!(told("git_status", serde_json::json!({})), "");
        assert_eq!(told("git_diff", serde_json::json!({"path": "src", "commit": "HEAD~1"})), "HEAD~1 src");
        // What cannot be read is shown as it is.
        assert!(told("apply_patch", serde_json::json!({"patch": "x"})).contains("patch"));
    }
}
