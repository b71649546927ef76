//! A running task.

use crate::{Agent, BoxError, Error, Event, Outcome, Question, QuestionKind, Reply, Task};
use dunnock_core::{State, Status, fold_record, settled};
use dunnock_engine::{
    Connection, FirstPrompt, Handle, Ports, changed, create_with_prompt, load, read_memory,
};
use dunnock_proto::QuestionKind as Asked;
use dunnock_proto::{
    Answer, Command, Delta, EndReason, Event as Fact, FinalArgs, Frame, Part, Proof, Record,
    SessionId, Usage, VerifyArgs, count,
};
use std::collections::VecDeque;

/// A running task. Dropping it stops the work, which can be [resumed](Agent::resume).
pub struct Run {
    connection: Connection,
    ports: Ports,
    session: SessionId,
    state: State,
    /// The last event caused by one of our commands.
    upto: u64,
    pending: VecDeque<Event>,
    /// The event that recorded how the last run ended.
    ended: u64,
    iterations: u32,
    tokens: u64,
    answer: String,
    _leave: Leave,
}

/// Makes the driver in this process leave when the run is dropped.
struct Leave(Option<Handle>);

impl Drop for Leave {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.leave();
        }
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("session", &self.session.to_string()).finish_non_exhaustive()
    }
}

pub(crate) fn broken(error: impl Into<BoxError>) -> Error {
    Error::Session(error.into())
}

impl Run {
    pub(crate) async fn begin(agent: &Agent, task: Task) -> Result<Self, Error> {
        let usage = |text: String| Error::Usage(text);
        let folder = task.folder.canonicalize().ok().filter(|folder| folder.is_dir());
        let folder = folder.ok_or_else(|| {
            usage(format!("{} does not exist or is not a folder", task.folder.display()))
        })?;
        if task.description.trim().is_empty() {
            return Err(usage("the task is empty".into()));
        }
        let model = task.model.clone().or_else(|| agent.model.clone());
        let model = model.ok_or_else(|| {
            usage("no model was given; set AgentBuilder::model or Task::model".into())
        })?;
        agent.client.knows(&model).map_err(usage)?;
        if model == dunnock_model::BRIDGE_MODEL {
            return Err(usage(
                "the copy-and-paste bridge needs the program: dunnock bridge new".into(),
            ));
        }
        let config = task.config(model, &folder);
        let first = FirstPrompt { text: task.description.trim().into(), images: Vec::new() };
        let folder = folder.to_string_lossy();
        let (session, upto) =
            create_with_prompt(&agent.ports, &folder, config, first).await.map_err(broken)?;
        let run = Self::open(agent, session, 0).await?;
        Ok(Self { upto, ..run })
    }

    pub(crate) async fn resume(agent: &Agent, session: &str) -> Result<Self, Error> {
        let session = &agent.find(session).await?;
        let state = load(agent.ports.store.as_ref(), session).await.map_err(broken)?.state;
        let (status, from) = (state.status(), state.seq);
        let mut run = Self::open(agent, session.clone(), from).await?;
        // Earlier records count towards the totals, but their events are not reported again.
        let mut records = Vec::new();
        let each = &mut |record: Record| {
            if record.envelope.seq <= from {
                records.push(record);
            }
            true
        };
        agent.ports.store.read(session, 0, each).await.map_err(broken)?;
        records.iter().for_each(|record| run.fact(record));
        run.pending.clear();
        for question in run.questions() {
            run.pending.push_back(Event::Asked(question));
        }
        if matches!(status, Status::Stopped | Status::Limit)
            && run.state.last.is_some()
            && !run.taken_back()
        {
            run.send(Command::Run).await?;
        }
        Ok(run)
    }

    async fn open(agent: &Agent, session: SessionId, from: u64) -> Result<Self, Error> {
        let ports = agent.ports.clone();
        let connection =
            Connection::open(ports.clone(), session.clone(), from).await.map_err(broken)?;
        let (state, pending, answer) = (State::default(), VecDeque::new(), String::new());
        let _leave = Leave(connection.handle().cloned());
        Ok(Self {
            connection,
            ports,
            session,
            state,
            upto: 0,
            pending,
            ended: 0,
            iterations: 0,
            tokens: 0,
            answer,
            _leave,
        })
    }

    async fn send(&mut self, command: Command) -> Result<(), Error> {
        match self.connection.send(command).await.map_err(broken)? {
            Ok(seq) => {
                self.upto = self.upto.max(seq);
                Ok(())
            }
            Err(refusal) => Err(Error::Refused(refusal.to_string())),
        }
    }

    /// The id of the session.
    #[must_use]
    pub fn session(&self) -> &str {
        self.session.as_str()
    }

    /// The next event; `None` once the work has ended or waits for an answer to a question that was
    /// reported.
    ///
    /// # Errors
    /// When the session can no longer be saved.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(Some(event));
            }
            let mut summary = self.connection.handle().map(Handle::summary);
            let parked = summary.as_mut().map(|summary| {
                let now = summary.borrow_and_update();
                now.idle() && now.seq == self.state.seq
            });
            if self.settled(parked) {
                return Ok(None);
            }
            tokio::select! {
                frame = self.connection.next() => self.take(frame.map_err(broken)?),
                () = changed(summary.as_mut()) => {}
            }
        }
    }

    /// Whether nothing is running. `parked` must describe the events that we have already seen.
    fn settled(&self, parked: Option<bool>) -> bool {
        let s = &self.state;
        let seen = s.seq >= self.upto && s.seq > 0;
        seen && settled(s) && parked.unwrap_or(!s.busy() || !s.questions.is_empty())
    }

    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Event(record) => self.fact(&record),
            Frame::Delta(Delta::Text { text, .. }) => {
                self.pending.push_back(Event::TextDelta(text.to_string()))
            }
            Frame::Delta(Delta::Reasoning { text, .. }) => {
                self.pending.push_back(Event::ReasoningDelta(text.to_string()))
            }
            Frame::Delta(Delta::Notice { text }) => {
                self.pending.push_back(Event::Note(text.to_string()))
            }
            Frame::Delta(Delta::Output { .. })
            | Frame::Partial(_)
            | Frame::Accepted { .. }
            | Frame::Refused { .. }
            | Frame::Lagged
            | Frame::Closing => {}
        }
    }

    fn fact(&mut self, record: &Record) {
        let Some(event) = fold_record(&mut self.state, record) else { return };
        match event {
            Fact::Prompted(_) => (self.iterations, self.answer) = (0, String::new()),
            Fact::StepStarted(_) => {
                self.iterations += 1;
                self.pending.push_back(Event::StepStarted { step: self.iterations });
            }
            Fact::Answered(e) => {
                self.used(&e.usage);
                let words = Part::words(&e.parts);
                let last = Part::calls(&e.parts).find(|call| call.tool == "final_output");
                let last = last
                    .and_then(|call| FinalArgs::parse(&call.args).ok())
                    .map(|args| args.answer.to_string());
                self.answer = last.unwrap_or_else(|| words.clone());
                self.pending.push_back(Event::Answered(words));
            }
            Fact::Started(e) => {
                if let Some(call) = self.state.call(e.call) {
                    let (tool, arguments) = (call.part.tool.clone(), call.args().to_string());
                    self.pending.push_back(Event::CallStarted {
                        call: e.call.to_string(),
                        tool,
                        arguments,
                    });
                }
            }
            Fact::Finished(e) => {
                let ok = e.outcome == dunnock_proto::Outcome::Done;
                if let Some(call) = self.state.call(e.call) {
                    let tool = call.part.tool.clone();
                    self.pending.push_back(match call.harness {
                        true => {
                            let command = VerifyArgs::parse(call.args())
                                .map(|args| args.command)
                                .unwrap_or_default();
                            Event::Checked { call: e.call.to_string(), command, passed: ok }
                        }
                        false => Event::CallFinished {
                            call: e.call.to_string(),
                            tool,
                            ok,
                            result: e.shown.to_string(),
                        },
                    });
                }
            }
            Fact::Asked(e) => {
                let asked = self.questions().into_iter().find(|question| question.id == e.question);
                self.pending.extend(asked.map(Event::Asked));
            }
            Fact::Ended(_) => self.ended = record.envelope.seq,
            Fact::StepFailed(e) => {
                self.used(&e.usage);
                if e.retry_at.is_some() {
                    // It is sent again, and counts once.
                    self.iterations = self.iterations.saturating_sub(1);
                    self.pending.push_back(Event::Note(e.error));
                }
            }
            Fact::Compacted(e) => self.used(&e.usage),
            Fact::CompactionFailed(e) => self.used(&e.usage),
            _ => {}
        }
    }

    fn used(&mut self, usage: &Usage) {
        self.tokens += usage.input + usage.output;
    }

    /// Whether the last run has been undone.
    fn taken_back(&self) -> bool {
        let ended = self.ended;
        ended > 0 && !self.state.visible().iter().any(|span| (span.from..=span.to).contains(&ended))
    }

    fn questions(&self) -> Vec<Question> {
        let s = &self.state;
        let question = |q: &dunnock_core::Question| {
            let view = q.kind.view();
            let kind = match q.kind.as_ref() {
                Asked::Approval(approval) => {
                    let call = s.call(approval.call);
                    QuestionKind::Approval {
                        call: approval.call.to_string(),
                        tool: call.map(|call| call.part.tool.clone()).unwrap_or_default(),
                        arguments: call.map(|call| call.args().to_string()).unwrap_or_default(),
                        reasons: view.reasons,
                        access: view.access,
                    }
                }
                Asked::Person { choices, .. } => QuestionKind::Person { choices: choices.clone() },
                Asked::Unknown { .. }
                | Asked::Limit { .. }
                | Asked::Budget
                | Asked::Stalled { .. }
                | Asked::Trust { .. } => QuestionKind::Continue,
            };
            Question { text: view.text.unwrap_or(view.heading), kind, id: q.id, hash: q.hash }
        };
        s.questions.iter().map(question).collect()
    }

    /// Answers a question. The answer applies only to the question as it was shown: it is refused
    /// if the question has changed meanwhile or was answered elsewhere.
    ///
    /// # Errors
    /// When the answer is refused, or the session cannot be saved.
    pub async fn answer(&mut self, question: &Question, reply: Reply) -> Result<(), Error> {
        let (answer, note) = match reply {
            Reply::Yes => (Answer::Yes, None),
            Reply::No(note) => (Answer::No, note),
            Reply::Text(text) => (Answer::Text { text: text.into() }, None),
        };
        self.send(Command::Reply { question: question.id, hash: question.hash, answer, note }).await
    }

    /// Sends a message: the next task if the work has ended, or further instructions while it runs.
    /// [`Run::next`] then continues; if a question is open, once it is answered.
    ///
    /// # Errors
    /// When the text is empty, the message is refused, or the session cannot be saved.
    pub async fn prompt(&mut self, text: &str) -> Result<(), Error> {
        match text.trim() {
            "" => Err(Error::Usage("the prompt is empty".into())),
            text => self.send(Command::Prompt { text: text.into(), images: Vec::new() }).await,
        }
    }

    /// Stops the work. Running calls are ended and recorded; the session can be
    /// [resumed](Agent::resume).
    ///
    /// # Errors
    /// When the session cannot be saved.
    pub async fn stop(&mut self) -> Result<(), Error> {
        // Refused if the work has already ended.
        if let Ok(seq) = self.connection.send(Command::Interrupt).await.map_err(broken)? {
            self.upto = self.upto.max(seq);
        }
        Ok(())
    }

    /// Follows the run until it ends or waits for an answer, and returns its outcome.
    ///
    /// # Errors
    /// When the session can no longer be saved.
    pub async fn finish(mut self) -> Result<Outcome, Error> {
        while self.next().await?.is_some() {}
        let (waiting, taken_back) = (self.questions(), self.taken_back());
        self.connection.close().await;
        let s = &self.state;
        let done = s.status() == Status::Done && !taken_back;
        let proven = done && s.proof == Proof::Proven;
        let error = match (s.status(), s.last.as_deref()) {
            (Status::Waiting, _) => Some("it is waiting for an answer".to_owned()),
            _ if taken_back => Some("it was undone".to_owned()),
            (Status::Done, _) => None,
            (_, Some(EndReason::Failed { error })) => Some(error.clone()),
            (_, Some(EndReason::Deadline)) => Some("the deadline has come".to_owned()),
            (_, Some(EndReason::Unproven)) => Some("the checks do not pass".to_owned()),
            (_, Some(EndReason::Limit)) if s.proof == Proof::Failed => {
                Some(format!("the checks do not pass after {}", count(self.iterations, "step")))
            }
            (_, Some(EndReason::Limit)) => {
                Some(format!("the limit of {} was reached", count(s.config.max_steps, "step")))
            }
            (_, Some(EndReason::Budget)) => {
                Some("the budget does not cover the next request".to_owned())
            }
            (_, Some(EndReason::Stopped | EndReason::Done) | None) => {
                Some("it was stopped".to_owned())
            }
        };
        let summary = match &s.config.planner {
            Some(_) => read_memory(self.ports.store.as_ref(), &self.session)
                .await
                .map_err(broken)?
                .summary(),
            None if taken_back => String::new(),
            None => self.answer.clone(),
        };
        let (iterations, session) = (self.iterations, self.session.to_string());
        Ok(Outcome {
            success: done,
            iterations,
            summary,
            error,
            proven,
            waiting,
            session,
            tokens: self.tokens,
        })
    }
}
