//! Holds a session's door until it rests or waits for somebody who is not here, and shows what happens meanwhile.

use crate::end::{self, End, Fresh, Why};
use crate::lines::Lines;
use crate::plain::{Plain, ways_on};
use crate::told::Tally;
use crate::{reply, say};
use dunnock_core::{Effect, Phase, State, apply, wanted};
use dunnock_engine::{Door, Loaded, World, load};
use dunnock_proto::{Command, Decoded, Frame, Need, Proof, Record, Seq, SessionId};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
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
    pub(crate) fn begin(&mut self, s: &State) {
        match self {
            Self::Plain(plain) => plain.begin(s),
            Self::Lines(lines) => lines.begin(s),
        }
    }
    pub(crate) fn end(&mut self, s: &State, tally: &Tally, end: &End, stale: bool) {
        match self {
            Self::Plain(plain) => plain.end(s, tally, end, stale),
            Self::Lines(lines) => lines.end(s, tally, end, stale),
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

/// A session as a door sees it.
pub(crate) struct Seen {
    pub(crate) state: State,
    pub(crate) tally: Tally,
}

impl Seen {
    /// Everything so far.
    pub(crate) async fn read(world: &World, session: &SessionId) -> anyhow::Result<Self> {
        let Loaded { state, .. } = load(world.log.as_ref(), session).await?;
        let mut tally = Tally::default();
        world
            .log
            .read(session, 0, &mut |record| {
                if let Decoded::Known(event) = record.decode() {
                    tally.add(record.envelope.at.0, &event);
                }
                true
            })
            .await?;
        Ok(Self { state, tally })
    }

    fn add(&mut self, record: &Record, view: &mut View) {
        match record.decode() {
            Decoded::Known(event) => {
                apply(&mut self.state, &event);
                self.tally.add(record.envelope.at.0, &event);
                match view {
                    View::Plain(plain) => plain.fact(&self.state, &event),
                    View::Lines(lines) => lines.fact(&self.state, record),
                }
            }
            Decoded::Unknown(why) => {
                self.state.skip(&record.envelope.kind, &why, record.envelope.need == Need::Must);
                if let View::Lines(lines) = view {
                    lines.fact(&self.state, record);
                }
            }
        }
    }

    /// Nothing is under way but what waits.
    fn settled(&self) -> bool {
        let s = &self.state;
        let Some(seat) = s.seat else { return true };
        !s.stopping && wanted(s, seat.owner).iter().all(Effect::parked)
    }

    /// Nothing is under way, and nothing waits.
    fn rests(&self) -> bool {
        self.settled() && self.state.phase == Phase::Rest && self.state.questions.is_empty()
    }

    /// Whether the files are those that the last checks were about.
    pub(crate) async fn fresh(&self, world: &World) -> Fresh {
        if self.state.proof != Proof::Proven {
            return Fresh::Yes;
        }
        let (Some(files), Some(workspace)) = (&world.files, &self.state.workspace) else { return Fresh::Yes };
        match (files.tree(workspace).await, self.tally.proven_tree()) {
            (Ok(now), Some(then)) if now == *then => Fresh::Yes,
            _ => Fresh::Stale,
        }
    }
}

/// Signals that ask the program to end.
pub(crate) struct Signals {
    #[cfg(unix)]
    all: [tokio::signal::unix::Signal; 3],
}

impl Signals {
    pub(crate) fn new() -> anyhow::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let all =
                [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
            Ok(Self { all })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        {
            let [a, b, c] = &mut self.all;
            tokio::select! {
                _ = a.recv() => {}
                _ = b.recv() => {}
                _ = c.recv() => {}
            }
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// What a drive needs beside the door.
pub(crate) struct Drive {
    pub(crate) world: World,
    pub(crate) session: SessionId,
    pub(crate) seen: Seen,
    pub(crate) view: View,
    pub(crate) signals: Signals,
    pub(crate) ctrl_c: CtrlC,
    pub(crate) output: Option<PathBuf>,
    /// The last fact that a command of ours made: the session does not rest before we have seen it.
    pub(crate) upto: Seq,
}

/// Whether somebody sits here who can answer.
pub(crate) fn attended(json: bool) -> bool {
    !json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl Drive {
    /// Until the session rests, or waits for somebody who is not here.
    pub(crate) async fn go(mut self, mut door: Door) -> anyhow::Result<ExitCode> {
        let json = matches!(self.view, View::Lines(_));
        let person = attended(json);
        let mut stopping = false;
        let mut asked: Option<Person> = None;
        loop {
            let mut summary = door.handle().map(dunnock_engine::Handle::summary);
            // Seen now: only what changes after this wakes us.
            let now = summary.as_mut().map(|s| s.borrow_and_update().clone());
            let seq = self.seen.state.seq;
            let leaves = match &now {
                // What the driver says counts only for the facts that we have seen, and for all we were promised.
                Some(now) => self.seen.settled() && now.parked && now.seq == seq && seq >= self.upto,
                // Another process drives: facts come one by one, and a question may be answered there.
                None => self.seen.rests(),
            };
            if leaves {
                if stopping || self.seen.state.questions.is_empty() || !person {
                    break;
                }
                if let (None, View::Plain(plain), Some(question)) =
                    (&asked, &mut self.view, self.seen.state.questions.first())
                {
                    plain.ask(&self.seen.state, question);
                    asked = Some(Person::ask(question.clone()));
                }
            }
            let changed = async {
                match &mut summary {
                    Some(summary) => drop(summary.changed().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                frame = door.next() => match frame? {
                    Frame::Fact(record) => self.seen.add(&record, &mut self.view),
                    Frame::Delta(delta) => match &mut self.view {
                        View::Plain(plain) => plain.delta(&delta),
                        View::Lines(lines) => lines.delta(&delta),
                    },
                    Frame::Partial(_) | Frame::Accepted { .. } | Frame::Refused { .. } | Frame::Lagged | Frame::Closing => {}
                },
                () = changed => {}
                said = Person::said(&mut asked) => {
                    let question = asked.take();
                    match (said, question) {
                        (Some(line), Some(person)) => match person.command(&line) {
                            Ok(command) => {
                                match door.send(command).await? {
                                    Ok(seq) => self.upto = seq,
                                    Err(refusal) => say::note(&refusal.to_string()),
                                }
                            }
                            Err(why) => say::note(&why),
                        },
                        // Nobody types any more: the question stays.
                        _ => break,
                    }
                }
                () = self.signals.next() => {
                    if self.ctrl_c == CtrlC::Leaves {
                        door.close().await;
                        say::note(&format!("left; it goes on. Watch again: dunnock attach {}", say::id(&self.session)));
                        return Ok(ExitCode::SUCCESS);
                    }
                    if stopping || asked.is_some() {
                        // Told twice, or while a question stands: leave at once. What is recorded stays.
                        for line in ways_on(&self.seen.state, say::id(&self.session)) {
                            say::aside(&line);
                        }
                        std::process::exit(130);
                    }
                    stopping = true;
                    tokio::select! {
                        // Nothing to interrupt is as good: it is at rest already.
                        answer = door.send(Command::Interrupt) => self.upto = answer?.unwrap_or(self.upto),
                        () = self.signals.next() => std::process::exit(130),
                    }
                }
            }
        }
        door.close().await;
        self.finish(stopping).await
    }

    /// Says how it stands.
    async fn finish(mut self, stopping: bool) -> anyhow::Result<ExitCode> {
        let fresh = self.seen.fresh(&self.world).await;
        let mut end = end::end(&self.seen.state, fresh);
        if stopping && matches!(end.why, Why::Waiting | Why::Working) {
            end = End { why: Why::Interrupted, exit: 130, error: None };
        }
        self.view.end(&self.seen.state, &self.seen.tally, &end, fresh == Fresh::Stale);
        if let Some(path) = &self.output
            && end.exit == 0
        {
            std::fs::write(path, &self.seen.tally.answer)
                .map_err(|e| anyhow::anyhow!("the answer cannot be written to {}: {e}", path.display()))?;
        }
        Ok(ExitCode::from(end.exit))
    }

    /// Shows a session that is at rest, as it ended.
    pub(crate) async fn show_end(self) -> anyhow::Result<ExitCode> {
        self.finish(false).await
    }
}

/// A question put to the person at the terminal.
struct Person {
    question: dunnock_core::Question,
    line: tokio::sync::oneshot::Receiver<Option<String>>,
}

impl Person {
    fn ask(question: dunnock_core::Question) -> Self {
        use dunnock_proto::About;
        let keys = match question.about {
            About::Person { .. } => "your answer",
            About::Approval { .. } => "y yes, n no, t and a note: no, because",
            About::Unknown { .. } | About::Limit | About::Budget | About::Trust { .. } => "y yes, n no",
        };
        // What was typed before the question was on the screen is no answer to it.
        #[cfg(unix)]
        let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
        let _ = write!(std::io::stderr(), "  [{keys}] ");
        let _ = std::io::stderr().flush();
        let (send, line) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            let read = std::io::stdin().lock().read_line(&mut text);
            let _ = send.send(read.is_ok_and(|n| n > 0).then_some(text));
        });
        Self { question, line }
    }

    /// The line that was typed; waits for ever if nothing was asked.
    async fn said(asked: &mut Option<Self>) -> Option<String> {
        match asked {
            Some(person) => (&mut person.line).await.ok().flatten(),
            None => std::future::pending().await,
        }
    }

    fn command(self, line: &str) -> Result<Command, String> {
        let line = line.trim();
        let (answer, note) = match (&self.question.about, line.split_once(' ')) {
            (dunnock_proto::About::Approval { .. }, Some(("t", note))) => {
                (dunnock_proto::Answer::No, Some(note.to_owned()))
            }
            _ => (reply::read_answer(&self.question, line)?, None),
        };
        Ok(Command::Reply { question: self.question.id, hash: self.question.hash, answer, note })
    }
}

/// The text of a task: given, or everything on standard input.
pub(crate) async fn task(given: Option<String>) -> anyhow::Result<Arc<str>> {
    let text = match given {
        Some(text) if text != "-" => text,
        Some(_) | None => {
            if std::io::stdin().is_terminal() {
                return Err(end::usage("what is to be done? Give the task: dunnock run \"fix the failing test\""));
            }
            tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await??
        }
    };
    if text.trim().is_empty() {
        return Err(end::usage("the task is empty. Give it in words: dunnock run \"fix the failing test\""));
    }
    Ok(text.trim().into())
}
