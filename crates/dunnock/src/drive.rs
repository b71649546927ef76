//! Follows a session through its connection until it rests, or waits for someone who is not here,
//! and shows what happens meanwhile.

use crate::ask_terminal::{self, AskTerminal};
use crate::clipboard;
use crate::own_programs::OwnPrograms;
use crate::signals::Signals;
use crate::view::exit::{self, Exit, ExitReason, Freshness};
use crate::view::lines::Lines;
use crate::view::output;
use crate::view::plain::Plain;
use crate::view::tally::Tally;
use dunnock_core::{Phase, State, fold_record, settled};
use dunnock_engine::{
    Connection, Handle, Loaded, Ports, SessionSummary, changed, load, read_memory,
};
use dunnock_model::{InboxState, brought};
use dunnock_ports::fold_events;
use dunnock_proto::{Command, Envelope, Frame, Isolation, Proof, Record, Sandbox, Seq, SessionId};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// How a session is shown.
pub(crate) enum View {
    Plain(Plain),
    Lines(Lines),
}

impl View {
    pub(crate) fn new(session: &SessionId, json: bool) -> Self {
        if json {
            Self::Lines(Lines::new(session.clone()))
        } else {
            Self::Plain(Plain::new(session.clone(), attended(false)))
        }
    }
    /// Shows the first line, with the sandbox level.
    pub(crate) fn begin(&mut self, s: &State, level: Isolation) {
        let level = if s.config.sandbox == Sandbox::Off { Isolation::D } else { level };
        if let Some(asks) = crate::compose::all_asks(&s.config, level) {
            output::note(asks);
        }
        match self {
            Self::Plain(plain) => plain.begin(s, level),
            Self::Lines(lines) => lines.begin(s, level),
        }
    }
    pub(crate) fn end(&mut self, s: &State, tally: &Tally, end: &Exit, fresh: Freshness) {
        match self {
            Self::Plain(plain) => plain.end(s, tally, end, fresh),
            Self::Lines(lines) => lines.end(s, tally, end, fresh),
        }
    }
}

/// What Ctrl-C means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CtrlC {
    /// Stop the work; it can be resumed.
    Stops,
    /// Only stop watching.
    Leaves,
}

/// What a command does while a copy-and-paste request waits for its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrying {
    /// It exits; the user runs `bridge resume` once the reply is saved.
    Leaves,
    /// It waits for the reply.
    Waits {
        /// Also copies each request to the clipboard.
        copy: bool,
    },
    /// It reads a reply that has already been saved, and exits after the next request.
    Once {
        /// Also copies each request to the clipboard.
        copy: bool,
    },
}

/// A session as seen through a connection.
pub(crate) struct Seen {
    pub(crate) state: State,
    pub(crate) tally: Tally,
}

impl Seen {
    /// Reads the log of the session so far.
    pub(crate) async fn read(ports: &Ports, session: &SessionId) -> anyhow::Result<Self> {
        let Loaded { state, .. } = load(ports.store.as_ref(), session).await?;
        let add = |tally: &mut Tally, envelope: &Envelope, event| tally.add(envelope.at.0, &event);
        let tally = fold_events(ports.store.as_ref(), session, Tally::default(), add).await?;
        Ok(Self { state, tally })
    }

    fn add(&mut self, record: &Record, view: &mut View) {
        let event = fold_record(&mut self.state, record);
        if let Some(event) = &event {
            self.tally.add(record.envelope.at.0, event);
        }
        match (view, event) {
            (View::Plain(plain), Some(event)) => plain.fact(&self.state, &event),
            (View::Plain(_), None) => {}
            (View::Lines(lines), _) => lines.fact(&self.state, record),
        }
    }

    /// Nothing is running, and nothing waits.
    fn rests(&self) -> bool {
        settled(&self.state) && self.state.phase == Phase::Rest && self.state.questions.is_empty()
    }

    /// Whether the files are still those that the last checks verified.
    pub(crate) async fn fresh(&self, ports: &Ports) -> Freshness {
        if self.state.proof != Proof::Proven {
            return Freshness::Yes;
        }
        let (Some(files), Some(workspace)) = (&ports.files, &self.state.workspace) else {
            return Freshness::Yes;
        };
        let Some(trees) = self.tally.proven_trees() else { return Freshness::Stale };
        for then in trees {
            if !files.holds(workspace, then).await {
                return Freshness::Stale;
            }
        }
        Freshness::Yes
    }
}

/// What is needed to follow a session, apart from the connection.
pub(crate) struct Drive {
    pub(crate) ports: Ports,
    pub(crate) programs: OwnPrograms,
    pub(crate) session: SessionId,
    pub(crate) seen: Seen,
    pub(crate) view: View,
    pub(crate) signals: Signals,
    pub(crate) ctrl_c: CtrlC,
    pub(crate) carrying: Carrying,
    pub(crate) output: Option<PathBuf>,
    /// The last event caused by our commands: the session does not count as resting before we have
    /// seen it.
    pub(crate) upto: Seq,
}

/// Whether a user at this terminal can answer questions.
pub(crate) fn attended(json: bool) -> bool {
    !json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Why following a session ended.
enum Over {
    /// The session rests or waits; `stopped` if we stopped it.
    Settled { stopped: bool },
    /// We stopped watching, and the session continues.
    Left,
}

impl Drive {
    /// The folder of the session.
    fn folder(&self) -> PathBuf {
        self.seen.state.workspace.as_deref().map(PathBuf::from).unwrap_or_default()
    }

    /// Follows the session until it rests, or waits for someone who is not here.
    pub(crate) async fn go(mut self, mut connection: Connection) -> anyhow::Result<ExitCode> {
        match self.watch(&mut connection).await {
            Ok(over) => {
                connection.close().await;
                match over {
                    Over::Settled { stopped } => self.finish(stopped).await,
                    Over::Left => {
                        output::note(&format!(
                            "stopped watching; the session continues. Watch again: dunnock attach \
                             {}",
                            output::id(&self.session)
                        ));
                        let end = Exit { why: ExitReason::Working, exit: 0, error: None };
                        self.last_line(&end);
                        Ok(ExitCode::SUCCESS)
                    }
                }
            }
            Err(error) => {
                let end =
                    Exit { why: ExitReason::Failed, exit: 1, error: Some(format!("{error:#}")) };
                self.last_line(&end);
                Err(error)
            }
        }
    }

    /// Whether the session is at a point where we may exit or ask the user.
    fn settled(&self, summary: Option<&SessionSummary>) -> bool {
        let seq = self.seen.state.seq;
        let promised = seq >= self.upto && settled(&self.seen.state);
        match summary {
            // The driver's summary is valid only once we have seen the same events.
            Some(now) => promised && now.idle() && now.seq == seq,
            // Another process drives the session. Between two of its events it may look as if
            // nothing were running.
            None => {
                let waits = !self.seen.state.questions.is_empty()
                    || self.seen.state.awaiting_reply().is_some();
                promised && (self.seen.rests() || waits)
            }
        }
    }

    /// Whether to stay although nothing is running, because a copy-and-paste request waits for its
    /// reply.
    fn stays(&self, drives: bool) -> bool {
        let s = &self.seen.state;
        let awaiting_inbox = s.awaiting_reply().is_some() && s.questions.is_empty();
        awaiting_inbox
            && match self.carrying {
                Carrying::Leaves => !drives,
                Carrying::Waits { .. } => true,
                Carrying::Once { .. } => s
                    .awaiting_reply()
                    .is_some_and(|handed| brought(&self.session, handed) == InboxState::Comes),
            }
    }

    async fn watch(&mut self, connection: &mut Connection) -> anyhow::Result<Over> {
        let attended = attended(matches!(self.view, View::Lines(_)));
        let mut person = AskTerminal::new();
        let mut stopped = false;
        loop {
            let mut summary = connection.handle().map(Handle::summary);
            let drives = summary.is_some();
            // Mark the summary as seen: only later changes wake us.
            let now = summary.as_mut().map(|s| s.borrow_and_update().clone());
            if person.asked.as_ref().is_some_and(|q| self.seen.state.question(q.id).is_none()) {
                person.done(); // answered elsewhere
            }
            let settled = self.settled(now.as_ref());
            let waits = !self.seen.state.questions.is_empty();
            // If another process drives the session, its question may be answered there, so only
            // its end is an end for us.
            if settled
                && (stopped || !waits || (drives && !attended))
                && (stopped || !self.stays(drives))
            {
                return Ok(Over::Settled { stopped });
            }
            if attended
                && !stopped
                && self.seen.state.seq >= self.upto
                && let (None, View::Plain(plain), Some(question)) =
                    (&person.asked, &mut self.view, self.seen.state.questions.first())
            {
                plain.ask(&self.seen.state, question);
                person.ask(question.clone(), &self.folder());
            }
            tokio::select! {
                frame = connection.next() => self.frame(frame?),
                () = changed(summary.as_mut()) => {}
                said = person.said() => match (said, person.asked.take()) {
                    (Some(line), Some(question)) => match ask_terminal::command(&question, &self.folder(), &line) {
                        Ok(command) => match connection.send(command).await? {
                            Ok(seq) => self.upto = seq,
                            Err(refusal) => output::note(&refusal.to_string()),
                        },
                        Err(why) => output::note(&why),
                    },
                    // Standard input ended; the question stays open.
                    _ => return Ok(Over::Settled { stopped }),
                },
                () = self.signals.next() => {
                    let follows = self.ctrl_c == CtrlC::Leaves || self.carrying != Carrying::Leaves;
                    if follows && !drives {
                        return Ok(Over::Left);
                    }
                    if (person.asked.is_some() || self.seen.state.awaiting_reply().is_some()) && settled {
                        // Nothing runs; the question stays open and can be answered later.
                        return Ok(Over::Settled { stopped: true });
                    }
                    if stopped {
                        self.leave_now();
                    }
                    stopped = true;
                    tokio::select! {
                        // A refusal is fine: the session is already at rest.
                        answer = connection.send(Command::Interrupt) => self.upto = answer?.unwrap_or(self.upto),
                        () = self.signals.next() => self.leave_now(),
                    }
                }
            }
        }
    }

    /// For programs: the last JSON line reports the end, whatever its reason.
    fn last_line(&mut self, end: &Exit) {
        if let View::Lines(lines) = &mut self.view {
            lines.end(&self.seen.state, &self.seen.tally, end, Freshness::Yes);
        }
    }

    /// After the second signal: kills what runs; recorded events stay.
    fn leave_now(&mut self) -> ! {
        let end = Exit { why: ExitReason::Interrupted, exit: 130, error: None };
        self.last_line(&end);
        self.ports.tools.stop_all();
        std::process::exit(130)
    }

    fn frame(&mut self, frame: Frame) {
        match (frame, &mut self.view) {
            (Frame::Event(record), view) => {
                let before = self.seen.state.awaiting_reply().map(|handed| handed.step);
                self.seen.add(&record, view);
                if let (
                    Carrying::Waits { copy: true } | Carrying::Once { copy: true },
                    Some(handed),
                ) = (self.carrying, self.seen.state.awaiting_reply())
                    && before != Some(handed.step)
                {
                    clipboard::copy_round(&self.programs, handed);
                }
            }
            (Frame::Delta(delta), View::Plain(plain)) => plain.delta(&delta),
            (Frame::Delta(delta), View::Lines(lines)) => lines.delta(&delta),
            (Frame::Partial(partial), View::Plain(plain)) => plain.partial(&partial),
            (Frame::Partial(_), View::Lines(_)) => {}
            (
                Frame::Accepted { .. } | Frame::Refused { .. } | Frame::Lagged | Frame::Closing,
                _,
            ) => {}
        }
    }

    /// Reports the result.
    async fn finish(mut self, stopped: bool) -> anyhow::Result<ExitCode> {
        let fresh = tokio::select! {
            fresh = self.seen.fresh(&self.ports) => fresh,
            () = self.signals.next() => self.leave_now(),
        };
        let mut end = exit::end(&self.seen.state, fresh);
        // A planner's last plan has actions but no answer, so the summary of its iterations is the
        // result.
        if self.seen.state.config.planner.is_some()
            && self.seen.tally.answer.trim().is_empty()
            && let Ok(memory) = read_memory(self.ports.store.as_ref(), &self.session).await
        {
            self.seen.tally.answer = memory.summary();
        }
        if stopped && matches!(end.why, ExitReason::Waiting | ExitReason::Working) {
            end = Exit { why: ExitReason::Interrupted, exit: 130, error: None };
        }
        if let Some(path) = &self.output
            && end.exit == 0
            && let Err(error) = std::fs::write(path, &self.seen.tally.answer)
        {
            let error =
                Some(format!("the answer cannot be written to {}: {error}", path.display()));
            end = Exit { why: ExitReason::Failed, exit: 1, error };
        }
        self.tell_iterations(&end).await;
        self.view.end(&self.seen.state, &self.seen.tally, &end, fresh);
        Ok(ExitCode::from(end.exit))
    }

    /// Prints the summary of the iterations of a planner that did not finish.
    async fn tell_iterations(&self, end: &Exit) {
        let Some(planner) = &self.seen.state.config.planner else { return };
        if matches!(self.view, View::Lines(_))
            || matches!(end.why, ExitReason::Done | ExitReason::Waiting)
        {
            return;
        }
        if let Ok(memory) = read_memory(self.ports.store.as_ref(), &self.session).await {
            output::aside(&output::visible(&memory.summary()));
            output::aside(&format!(
                "(saved in {}/{})",
                dunnock_tools::MEMORY,
                output::one_line(&planner.file)
            ));
        }
    }

    /// Shows the result of a session that has already ended.
    pub(crate) async fn show_end(self) -> anyhow::Result<ExitCode> {
        self.finish(false).await
    }
}

/// The text of a task: given, or everything on standard input.
pub(crate) async fn task(given: Option<String>) -> anyhow::Result<Arc<str>> {
    let text = match given {
        Some(text) if text != "-" => text,
        Some(_) | None => {
            if std::io::stdin().is_terminal() {
                return Err(exit::usage(
                    "no task was given. Give one: dunnock run \"fix the failing test\"",
                ));
            }
            tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await??
        }
    };
    if text.trim().is_empty() {
        return Err(exit::usage(
            "the task is empty. Describe it: dunnock run \"fix the failing test\"",
        ));
    }
    Ok(text.trim().into())
}
