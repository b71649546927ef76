//! `approve`, `decline`, `answer`: the user's replies to a session; `why`: the recorded reasons for
//! a call.

use crate::cli::args::Flags;
use crate::cli::{find, run};
use crate::config::{load, paths, rules};
use crate::drive::Seen;
use crate::view::describe::{self, gist};
use crate::view::exit::usage;
use crate::view::output;
use crate::view::plain::{MOST_SHOWN, ways_on};
use crate::{ask_terminal, compose};
use dunnock_core::policy::covers;
use dunnock_core::{Question, Stage};
use dunnock_engine::{Submitted, submit_offline};
use dunnock_proto::{
    AllowedBy, Answer, CallId, Command, CommandRequest, Decoded, Event, InputId, Isolation,
    Outcome, Part, QuestionId,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Which of the waiting calls.
pub(crate) enum Which {
    Only,
    Call(CallId),
    All,
}

impl Which {
    pub(crate) fn of(call: Option<String>, all: bool) -> anyhow::Result<Self> {
        match (call, all) {
            (None, false) => Ok(Self::Only),
            (None, true) => Ok(Self::All),
            (Some(call), _) => Ok(Self::Call(find::call_id(&call)?)),
        }
    }
}

/// The reply to an approval request.
#[derive(Clone)]
pub(crate) enum Say {
    Yes,
    /// Yes, with the whole network instead of named hosts.
    Wider,
    /// Yes, and from now on without asking.
    Always {
        /// In all projects, not only in that of the session.
        all_projects: bool,
    },
    No(Option<String>),
}

/// Everything a reply needs.
struct At {
    settings: crate::config::settings::Settings,
    open: compose::Composed,
    session: dunnock_proto::SessionId,
    seen: Seen,
}

async fn at(data: Option<PathBuf>, id: &str) -> anyhow::Result<At> {
    let settings = load::settings(
        paths::workspace(None).ok().as_deref(),
        false,
        load::given(data, Vec::new()),
    )?;
    let open = compose::open(&settings, None).await?;
    let session = find::by_prefix(open.ports.store.as_ref(), id).await?;
    let seen = Seen::read(&open.ports, &session).await?;
    Ok(At { settings, open, session, seen })
}

async fn nothing(at: &At, id: &str) -> anyhow::Error {
    let s = &at.seen.state;
    let others = ways_on(s, id);
    let status = at.open.ports.shown_status(&at.session, &s.status().to_string()).await;
    let next = match status.as_str() {
        "paused" => format!(". To continue: dunnock resume {id}"),
        _ => String::new(),
    };
    match others.is_empty() {
        true => usage(format!(
            "nothing is waiting for approval in session {id}; its state is {status}{next}"
        )),
        false => usage(format!(
            "nothing is waiting for approval in session {id}, but other questions are waiting:\n{}",
            others.join("\n")
        )),
    }
}

/// Calls that the person approved and that no process has started: they can still be declined.
async fn approved(at: &At) -> anyhow::Result<Vec<(CallId, Question)>> {
    let unbegun = |call: &dunnock_core::Call| {
        let (question, _) = call.answered.filter(|_| call.stage == Stage::Allowed)?;
        Some((question, call.id))
    };
    let mut open: BTreeMap<QuestionId, CallId> =
        at.seen.state.calls.iter().filter_map(unbegun).collect();
    let mut found = Vec::new();
    if open.is_empty() {
        return Ok(found);
    }
    at.open
        .ports
        .store
        .read(&at.session, 0, &mut |record| {
            if let Decoded::Known(Event::Asked(e)) = record.decode()
                && let Some(call) = open.remove(&e.question)
            {
                let kind = std::sync::Arc::new(e.kind);
                found.push((call, Question { id: e.question, kind, hash: e.hash }));
            }
            true
        })
        .await?;
    Ok(found)
}

pub(crate) async fn approve(
    data: Option<PathBuf>,
    id: &str,
    which: Which,
    say: Say,
    go: bool,
) -> anyhow::Result<ExitCode> {
    let at = at(data, id).await?;
    let s = &at.seen.state;
    let mut waiting: Vec<(CallId, Question)> =
        s.questions.iter().filter_map(|q| Some((q.kind.approval()?.call, q.clone()))).collect();
    let short = output::id(&at.session).to_owned();
    // An approval is withdrawn only if the call is named, or if nothing else is open.
    let named = matches!(which, Which::Call(_));
    if matches!(say, Say::No(_)) && (named || waiting.is_empty()) {
        waiting.extend(approved(&at).await?);
    }
    let verb = if matches!(say, Say::No(_)) { "decline" } else { "approve" };
    let find_session: Vec<Question> = match (which, waiting.as_slice()) {
        (_, []) => return Err(nothing(&at, &short).await),
        (Which::Only, [(_, one)]) => vec![one.clone()],
        (Which::Only, several) => {
            let list: Vec<String> = several
                .iter()
                .map(|(call, q)| {
                    format!(
                        "  {call}  {}",
                        output::one_line(&s.call(*call).map_or_else(
                            || q.kind.view().heading,
                            |c| format!("{} {}", c.part.tool, gist(&c.part))
                        ))
                    )
                })
                .collect();
            return Err(usage(format!(
                "several calls are waiting in session {short}:\n{}\nName one (dunnock {verb} \
                 {short} {}), or use --all",
                list.join("\n"),
                several.first().map_or_else(String::new, |(call, _)| call.to_string())
            )));
        }
        (Which::All, several) => several.iter().map(|(_, q)| q.clone()).collect(),
        (Which::Call(call), several) => match several.iter().find(|(id, _)| *id == call) {
            Some((_, one)) => vec![one.clone()],
            None => {
                let ids: Vec<String> = several.iter().map(|(id, _)| id.to_string()).collect();
                return Err(usage(format!(
                    "call {call} is not waiting in session {short}; waiting: {}",
                    ids.join(", ")
                )));
            }
        },
    };
    let count = find_session.len();
    for (n, question) in find_session.into_iter().enumerate() {
        let (answer, note, word) = match &say {
            Say::Yes => (Answer::Yes, None, "approved"),
            Say::Wider => {
                let asked = question.kind.approval();
                if asked.is_none_or(|asked| asked.wider.is_nothing()) {
                    return Err(usage("this call does not offer the whole network"));
                }
                (Answer::Wider, None, "approved with the whole network")
            }
            Say::Always { all_projects } => {
                let rule = ask_terminal::rule(&question).map_err(usage)?;
                let workspace = s.workspace.as_deref().map(Path::new);
                let project = match (all_projects, workspace) {
                    (true, _) => None,
                    (false, Some(workspace)) => Some(workspace),
                    (false, None) => {
                        return Err(usage("the session has no folder; use --all-projects"));
                    }
                };
                rules::always(&rule, project)?;
                (Answer::Always { rule }, None, "approved")
            }
            Say::No(note) => (Answer::No, note.clone(), "declined"),
        };
        match n {
            n if n < MOST_SHOWN => {
                output::aside(&format!("{word}: {}", describe::question(s, &question)))
            }
            n if n == MOST_SHOWN => output::aside(&format!("{word}: {} more", count - MOST_SHOWN)),
            _ => {}
        }
        leave(&at, &question, answer, note).await?;
        let call = question.kind.approval().and_then(|asked| s.call(asked.call));
        let ruled = call.is_some_and(|call| s.grants.iter().any(|rule| covers(rule, call)));
        if ruled && matches!(say, Say::No(_)) {
            output::note(
                "the rule that allows this command stays; \"dunnock rules\" lists your rules and \
                 removes them",
            );
        }
    }
    on(at, go).await
}

pub(crate) async fn answer(
    data: Option<PathBuf>,
    id: &str,
    words: Vec<String>,
    go: bool,
) -> anyhow::Result<ExitCode> {
    let at = at(data, id).await?;
    let s = &at.seen.state;
    let short = output::id(&at.session).to_owned();
    let (name, text) = match words.as_slice() {
        [name, text] => (Some(name.as_str()), text.as_str()),
        [text] => (None, text.as_str()),
        _ => {
            return Err(usage(
                "give the answer as one argument, in quotes: dunnock answer ID \"...\"",
            ));
        }
    };
    let question = match (name, s.questions.as_slice()) {
        (_, []) => {
            let status = at.open.ports.shown_status(&at.session, &s.status().to_string()).await;
            return Err(usage(format!(
                "no question is waiting in session {short}; its state is {status}"
            )));
        }
        (None, [one]) => one.clone(),
        (None, several) => {
            let list: Vec<String> = several
                .iter()
                .map(|q| format!("  {}  {}", q.id, output::one_line(&brief(q))))
                .collect();
            return Err(usage(format!(
                "several questions are waiting in session {short}:\n{}\nName one: dunnock answer \
                 {short} q1 \"...\"",
                list.join("\n")
            )));
        }
        (Some(name), several) => match several.iter().find(|q| q.id.to_string() == name) {
            Some(one) => one.clone(),
            None => {
                let ids: Vec<String> = several.iter().map(|q| q.id.to_string()).collect();
                return Err(usage(format!(
                    "question {name} is not waiting in session {short}; waiting: {}",
                    ids.join(", ")
                )));
            }
        },
    };
    let answer = ask_terminal::read_answer(&question, text).map_err(usage)?;
    output::aside(&format!("answered: {}", describe::question(s, &question)));
    leave(&at, &question, answer, None).await?;
    on(at, go).await
}

/// A question in one line.
fn brief(question: &Question) -> String {
    let view = question.kind.view();
    view.text.unwrap_or(view.heading)
}

async fn leave(
    at: &At,
    question: &Question,
    answer: Answer,
    note: Option<String>,
) -> anyhow::Result<()> {
    let id = InputId::from_random(at.open.ports.clock.random());
    let command = Command::Reply { question: question.id, hash: question.hash, answer, note };
    match submit_offline(&at.open.ports, &at.session, CommandRequest { id, expect: None, command })
        .await?
    {
        Ok(Submitted::ToOwner(_) | Submitted::Stored(_)) => Ok(()),
        Err(refusal) => Err(anyhow::anyhow!("{refusal}")),
    }
}

async fn on(at: At, go: bool) -> anyhow::Result<ExitCode> {
    let short = output::id(&at.session).to_owned();
    if go {
        return run::go_on(
            at.open,
            &at.settings,
            at.session,
            None,
            Flags::default(),
            crate::drive::Carrying::Leaves,
        )
        .await;
    }
    let now = Seen::read(&at.open.ports, &at.session).await?.state;
    match now.questions.is_empty() {
        true => output::aside(&format!("saved. To continue: dunnock resume {short}")),
        false => {
            output::aside("saved. Still waiting:");
            ways_on(&now, &short).iter().for_each(|line| output::aside(line));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn why(data: Option<PathBuf>, id: &str, call: &str) -> anyhow::Result<ExitCode> {
    let call = find::call_id(call)?;
    let at = at(data, id).await?;
    let mut lines: Vec<String> = Vec::new();
    let (mut question, mut diff) = (None, None);
    at.open
        .ports
        .store
        .read(&at.session, 0, &mut |record| {
            let Decoded::Known(event) = record.decode() else { return true };
            let when = output::time(record.envelope.at);
            match event {
                Event::Answered(e) if e.step == call.step => {
                    if let Some(part) = Part::calls(&e.parts).nth(usize::from(call.index)) {
                        lines.push(format!("{call}  {} {}", part.tool, part.args));
                        lines.push(format!("requested by {}, {when}", e.model));
                        if part.recovered {
                            lines.push(
                                "found in the text of the answer, not sent as a tool call".into(),
                            );
                        }
                        lines.extend(
                            part.fault.as_ref().map(|fault| format!("it cannot run: {fault}")),
                        );
                    }
                }
                Event::CheckCalled(e) if e.call == call => {
                    lines.push(format!("{call}  verification check: {}", e.args))
                }
                Event::Asked(e)
                    if e.kind.approval().is_some_and(|approval| approval.call == call) =>
                {
                    question = Some(e.question);
                    let view = e.kind.view();
                    lines.push(format!(
                        "approval was requested ({}): {}",
                        e.question,
                        view.reasons.join("; ")
                    ));
                    lines.extend(view.isolation.map(|isolation| format!("sandbox: {isolation}")));
                    lines.extend(
                        view.access.iter().map(|access| format!("approval grants: {access}")),
                    );
                    lines.extend(view.preview.iter().map(|loss| format!("effect: {loss}")));
                    lines.extend(view.rule.map(|rule| format!("\"always\" would allow {rule}")));
                }
                Event::Replied(e) if Some(e.question) == question => {
                    let word = if e.answer == Answer::No { "declined" } else { "allowed" };
                    let note = e.note.map_or(String::new(), |n| format!(": {n}"));
                    lines.push(format!("you {word} it{note}, {when}"));
                }
                Event::Allowed(e) if e.call == call => lines.push(match e.by {
                    AllowedBy::Policy(reason) => format!("it ran without asking: {reason}"),
                    AllowedBy::Grant(rule) => {
                        format!(
                            "it ran without asking; you always allow: {} {}",
                            rule.tool,
                            rule.words.join(" ")
                        )
                    }
                    AllowedBy::Person(question) => {
                        format!("it ran because you approved it ({question})")
                    }
                    AllowedBy::Harness => "it ran because you asked for this check".into(),
                }),
                Event::Finished(e) if e.call == call => {
                    let level = match e.isolation {
                        None => String::new(),
                        Some(Isolation::D) => ", unsandboxed".into(),
                        Some(level) => format!(", sandbox level {level:?}"),
                    };
                    let text = match &e.outcome {
                        Outcome::NotRun => format!("it did not run: {}", e.shown),
                        other => format!("{}{level}, {when}", describe::outcome(other)),
                    };
                    lines.push(text);
                    diff = e.diff;
                }
                _ => {}
            }
            true
        })
        .await?;
    if lines.is_empty() {
        return Err(usage(format!(
            "there is no call {call} in session {0}. \"dunnock sessions show {0}\" lists its calls",
            output::id(&at.session)
        )));
    }
    lines.iter().for_each(|line| output::line(&output::visible(line)));
    if let Some(hash) = diff
        && let Some(text) = at.open.ports.store.blob(hash).await?
    {
        output::line(&output::visible(String::from_utf8_lossy(&text).trim_end()));
    }
    Ok(ExitCode::SUCCESS)
}
