//! Lists, searches, creates and reads sessions, and sends them commands.

use crate::answer::{ApiError, Json, Query, json};
use crate::app::App;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use dunnock_core::State as Session;
use dunnock_engine::{Connection, FirstPrompt, create, create_with_prompt, submit_offline};
use dunnock_ports::Listed;
use dunnock_proto::{
    At, Command, CommandRequest, ConfigPatch, Hash, InputId, QuestionId, QuestionKind,
    QuestionView, Record, Refused, Seq, SessionId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Default number of rows in a list.
const ROWS: u32 = 100;
/// At most this many events per response, and about this many bytes.
const FACTS: usize = 5_000;
const BYTES: usize = 4 << 20;
/// How often a waiting reader checks for events.
const LOOK: Duration = Duration::from_millis(50);

/// Which sessions to list.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ListQuery {
    /// Only sessions in this folder.
    pub(crate) workspace: Option<String>,
    /// Only sessions that contain all these words, best match first.
    pub(crate) search: Option<String>,
    /// At most this many; 100 by default.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) limit: Option<u32>,
}

/// A session in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Row {
    id: SessionId,
    /// A given title, or the first line of the first prompt.
    title: String,
    workspace: String,
    /// `working`, `waiting`, `done`, `failed`, `stopped` or `limit`.
    state: String,
    /// The state to display: like `state`, but `paused` if it has work to do and no process drives it.
    shown_status: String,
    /// RFC 3339, UTC.
    created: String,
    /// RFC 3339, UTC.
    updated: String,
    /// The last event that the user caused: what a command may expect.
    version: Seq,
    /// Number of events so far.
    pub(crate) seq: Seq,
    /// Where the search words were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<String>,
}

impl Row {
    pub(crate) fn of(row: Listed, title: String, excerpt: Option<String>) -> Self {
        Self {
            title,
            id: row.id,
            workspace: row.workspace,
            shown_status: row.status.clone(),
            state: row.status,
            created: time(row.created),
            updated: time(row.updated),
            version: row.version,
            seq: row.seq,
            excerpt,
        }
    }
}

/// Sessions, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rows {
    sessions: Vec<Row>,
}

/// A session to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// The folder to work in; by default the one in which the server was started.
    #[serde(default)]
    workspace: Option<String>,
    /// The first prompt.
    #[serde(default)]
    prompt: Option<String>,
    /// Settings that differ from the configured ones.
    #[serde(default)]
    set: ConfigPatch,
}

/// A session that was created.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CreatedSession {
    id: SessionId,
    workspace: String,
    /// Number of events so far.
    seq: Seq,
}

/// Which part of a session to read.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadQuery {
    /// The last event that the reader has.
    #[serde(default)]
    pub(crate) from: Seq,
    /// At most this many events; 5000 by default.
    #[schemars(range(min = 0, max = 5000))]
    pub(crate) limit: Option<usize>,
    /// Seconds to wait for an event if there is none yet.
    #[schemars(range(min = 0, max = 30))]
    pub(crate) wait: Option<u64>,
}

/// A session and some of its events.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct View {
    #[serde(flatten)]
    row: Row,
    /// `provider/model` in use.
    model: String,
    /// Questions waiting for the user, oldest first.
    questions: Vec<OpenQuestion>,
    /// The events after `from`, in order.
    events: Vec<Record>,
    /// Whether there are more events.
    more: bool,
}

/// A question, with everything the user should see before answering it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct OpenQuestion {
    id: QuestionId,
    /// The hash that an answer must name.
    hash: Hash,
    /// What the question is about, as data.
    kind: QuestionKind,
    /// The same as text for people.
    #[serde(flatten)]
    view: QuestionView,
    /// The call it is about, with the arguments as they would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<AskedCall>,
}

/// A call that the user is asked about, or that is running.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AskedCall {
    id: String,
    tool: String,
    arguments: String,
    /// Whether it is a check of the finished work, made by Dunnock itself.
    harness: bool,
}

impl AskedCall {
    pub(crate) fn of(call: &dunnock_core::Call) -> Self {
        Self {
            id: call.id.to_string(),
            tool: call.part.tool.clone(),
            arguments: call.args().to_string(),
            harness: call.harness,
        }
    }
}

/// An accepted command; it is durable.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Accepted {
    id: InputId,
    /// The last event that it caused.
    seq: Seq,
}

/// A refused command, with the current state.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Conflict {
    error: String,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Refused>,
    /// The session's current state, without its events.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<View>,
}

fn time(at: At) -> String {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or_default().to_string()
}

/// Parses the session id in a path.
pub(crate) fn id(text: &str) -> Result<SessionId, ApiError> {
    text.parse().map_err(|_| {
        ApiError::missing(format_args!("session {}", text.chars().take(40).collect::<String>()))
    })
}

/// Checks a number against the range in the OpenAPI document.
fn within<T: PartialOrd + std::fmt::Debug>(
    n: T,
    range: std::ops::RangeInclusive<T>,
    name: &str,
) -> Result<T, ApiError> {
    match range.contains(&n) {
        true => Ok(n),
        false => {
            let (least, most) = (range.start(), range.end());
            Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                format!("{name} must be from {least:?} to {most:?}"),
            ))
        }
    }
}

impl App {
    pub(crate) async fn row(&self, row: Listed, excerpt: Option<String>) -> Row {
        let title = self.host.redacted(&row.title);
        self.shown(Row::of(row, title, excerpt)).await
    }

    /// The row with its status as it is now: whether a process drives a session is not stored.
    pub(crate) async fn shown(&self, row: Row) -> Row {
        let status = match self.pool.ports(&row.workspace) {
            Ok(ports) => ports.shown_status(&row.id, &row.state).await,
            Err(_) => row.state.clone(),
        };
        Row { shown_status: status, ..row }
    }

    /// How many events a session has.
    pub(crate) async fn seq(&self, id: &SessionId) -> Result<Seq, ApiError> {
        let head = self.pool.store().tip(id).await?;
        head.map(|(seq, _)| seq).ok_or_else(|| ApiError::missing(format_args!("session {id}")))
    }

    /// The session's current state.
    pub(crate) async fn state(&self, id: &SessionId) -> Result<Session, ApiError> {
        self.seq(id).await?;
        Ok(self.recent.state(self.pool.store().as_ref(), id).await?)
    }

    /// A different model has a different price and context window: fill them in if the client did
    /// not.
    pub(crate) async fn model_change(
        &self,
        id: &SessionId,
        set: &mut ConfigPatch,
    ) -> Result<(), ApiError> {
        let Some(model) = set.model.clone() else { return Ok(()) };
        let state = self.state(id).await?;
        if set.price.is_none() && model != state.config.model {
            set.price =
                Some(self.host.price(state.workspace.as_deref().unwrap_or_default(), &model)?);
            set.window = set.window.or(Some(None));
        }
        Ok(())
    }

    async fn view(&self, id: &SessionId, from: Seq, limit: usize) -> Result<View, ApiError> {
        let state = self.state(id).await?;
        let (mut facts, mut bytes, mut more) = (Vec::new(), 0, false);
        let each = &mut |record: Record| {
            // The session may continue while it is read: leave out events after the state in this
            // response.
            if record.envelope.seq > state.seq {
                return false;
            }
            more = facts.len() >= limit || (bytes > BYTES && !facts.is_empty());
            if !more {
                bytes += serde_json::to_string(&record.body).map_or(0, |text| text.len());
                facts.push(record);
            }
            !more
        };
        self.pool.store().read(id, from, each).await?;
        let listed = self
            .pool
            .store()
            .listed(id)
            .await?
            .ok_or_else(|| ApiError::missing(format_args!("session {id}")))?;
        let mut row = self.row(listed, None).await;
        (row.seq, row.version, row.state) = (state.seq, state.version, state.status().to_string());
        let row = self.shown(row).await;
        let model = state.config.model.clone();
        let questions = state.questions.iter().map(|q| asks(&state, q)).collect();
        Ok(View { row, model, questions, events: facts, more })
    }
}

impl App {
    /// Like [`App::prepare`], before a client that only watches makes this server drive a session:
    /// interrupted work resumes by itself.
    pub(crate) async fn before_driving(&self, session: &SessionId) -> Result<(), ApiError> {
        if self.pool.drives(session) {
            return Ok(());
        }
        let state = self.state(session).await?;
        if state.status().to_string() != "working" {
            return Ok(());
        }
        if let Some(set) = self.host.settings_to_adapt(&state)? {
            let ports = self.pool.ports(state.workspace.as_deref().unwrap_or_default())?;
            let id = InputId::from_random(ports.clock.random());
            let request = CommandRequest { id, expect: None, command: Command::Configure { set } };
            // Submitted while the session is not running, so that it applies before anything runs.
            let _ = submit_offline(&ports, session, request).await?;
        }
        Ok(())
    }

    /// Before a command makes a session on this server work: checks that its settings work here,
    /// and adds the rules that the user saved since. A session driven by another process is left to
    /// that process.
    pub(crate) async fn prepare(
        &self,
        connection: &mut Connection,
        session: &SessionId,
        request: &mut CommandRequest,
    ) -> Result<(), ApiError> {
        if !starts_work(&request.command) || connection.handle().is_none() {
            return Ok(());
        }
        // A command that was already answered gets the same answer, whatever the current state.
        if self.pool.store().answered(session, &request.id).await?.is_some() {
            return Ok(());
        }
        let state = self.state(session).await?;
        let Some(set) = self.host.settings_to_adapt(&state)? else { return Ok(()) };
        // Expects the same version as the command, which then follows it.
        if let Ok(seq) = connection.expecting(request.expect, Command::Configure { set }).await?
            && request.expect.is_some()
        {
            request.expect = Some(seq);
        }
        Ok(())
    }
}

/// A question, with everything the user should see before answering it.
pub(crate) fn asks(state: &Session, question: &dunnock_core::Question) -> OpenQuestion {
    let call = question.kind.approval().and_then(|approval| state.call(approval.call));
    OpenQuestion {
        id: question.id,
        hash: question.hash,
        kind: question.kind.as_ref().clone(),
        view: question.kind.view(),
        call: call.map(AskedCall::of),
    }
}

/// Lists sessions, newest first; with `search`, those that contain the words.
pub(crate) async fn list(
    State(app): State<App>,
    Query(query): Query<ListQuery>,
) -> Result<Response, ApiError> {
    let log = app.pool.store();
    let limit = within(query.limit.unwrap_or(ROWS), 1..=1000, "limit")?;
    let words = query.search.as_deref().map(str::trim).filter(|words| !words.is_empty());
    let sessions = match words {
        None => {
            let rows = log.list(query.workspace.as_deref(), limit).await?;
            let mut shown = Vec::new();
            for row in rows {
                shown.push(app.row(row, None).await);
            }
            shown
        }
        Some(words) => {
            log.index(None).await?;
            let mut rows: Vec<Row> = Vec::new();
            for found in log.search(words, 1000).await? {
                if rows.len() >= limit as usize || rows.iter().any(|row| row.id == found.session) {
                    continue;
                }
                let listed = log.listed(&found.session).await?;
                let listed = listed.filter(|row| {
                    query.workspace.as_ref().is_none_or(|only| *only == row.workspace)
                });
                if let Some(row) = listed {
                    rows.push(app.row(row, Some(app.host.redacted(&found.excerpt))).await);
                }
            }
            rows
        }
    };
    Ok(json(StatusCode::OK, &Rows { sessions }))
}

/// Creates a session and sends its first prompt, if one is given.
pub(crate) async fn make(
    State(app): State<App>,
    Json(new): Json<NewSession>,
) -> Result<Response, ApiError> {
    let prompt = new.prompt.filter(|text| !text.trim().is_empty());
    let (workspace, config) = app.host.begin(new.workspace.as_deref(), &new.set).await?;
    let ports = app.pool.ports(&workspace)?;
    let (id, seq) = match prompt {
        None => (create(&ports, &workspace, config).await?, 1),
        Some(text) => {
            let first = FirstPrompt { text: text.into(), images: Vec::new() };
            let (id, seq) = create_with_prompt(&ports, &workspace, config, first).await?;
            // Starts the work.
            drop(app.pool.connection(id.clone(), seq).await?);
            (id, seq)
        }
    };
    Ok(json(StatusCode::CREATED, &CreatedSession { id, workspace, seq }))
}

/// Reads a session and its events after `from`.
pub(crate) async fn read(
    State(app): State<App>,
    Path(session): Path<String>,
    Query(query): Query<ReadQuery>,
) -> Result<Response, ApiError> {
    let session = id(&session)?;
    let until =
        Instant::now() + Duration::from_secs(within(query.wait.unwrap_or(0), 0..=30, "wait")?);
    let limit = within(query.limit.unwrap_or(FACTS), 0..=FACTS, "limit")?;
    let mut stopped = app.stopped.clone();
    // Polling is cheap and changes nothing: a reader does not claim the session.
    loop {
        if app.seq(&session).await? > query.from || Instant::now() >= until {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = crate::app::stop(&mut stopped) => break,
        }
    }
    Ok(json(StatusCode::OK, &app.view(&session, query.from, limit).await?))
}

/// Sends a command, which runs once: the same id gets the same response.
pub(crate) async fn command(
    State(app): State<App>,
    Path(session): Path<String>,
    Json(mut request): Json<CommandRequest>,
) -> Result<Response, ApiError> {
    let session = id(&session)?;
    let seq = app.seq(&session).await?;
    let request_id = request.id.clone();
    let mut connection = app.pool.connection(session.clone(), seq).await?;
    if let Command::Configure { set } = &mut request.command {
        app.model_change(&session, set).await?;
    }
    if let Err(no) = app.prepare(&mut connection, &session, &mut request).await {
        let session = Some(app.view(&session, Seq::MAX, 0).await?);
        return Ok(json(no.0, &Conflict { error: no.1, reason: None, session }));
    }
    match connection.submit(request).await? {
        Ok(seq) => Ok(json(StatusCode::OK, &Accepted { id: request_id, seq })),
        Err(refusal) => {
            let session = Some(app.view(&session, Seq::MAX, 0).await?);
            let (error, why) = (refusal.to_string(), Some(refusal.reason));
            Ok(json(StatusCode::CONFLICT, &Conflict { error, reason: why, session }))
        }
    }
}

/// Whether a command makes a session work.
fn starts_work(command: &Command) -> bool {
    match command {
        Command::Prompt { .. } | Command::Run | Command::Reply { .. } | Command::Compact => true,
        Command::Interrupt
        | Command::Rewind { .. }
        | Command::Configure { .. }
        | Command::Title { .. }
        | Command::Revoke { .. } => false,
    }
}
