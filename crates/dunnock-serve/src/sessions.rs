//! Sessions: list, search, make, read, command.

use crate::App;
use crate::answer::{ApiError, Json, Query, json};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use dunnock_core::State as Session;
use dunnock_core::ports::Listed;
use dunnock_engine::{Connection, create, submit_offline};
use dunnock_proto::{
    At, Command, CommandRequest, ConfigPatch, Hash, InputId, QuestionId, QuestionKind, QuestionView, Record, Refused,
    Seq, SessionId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Rows of a list that nobody said a number for.
const ROWS: u32 = 100;
/// Events in one answer, at most, and about how many bytes of them.
const FACTS: usize = 5_000;
const BYTES: usize = 4 << 20;
/// How often a reader that waits looks.
const LOOK: Duration = Duration::from_millis(50);

/// Which sessions are wanted.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ListQuery {
    /// Only those of this folder.
    pub(crate) workspace: Option<String>,
    /// Only those that hold all these words, best first.
    pub(crate) search: Option<String>,
    /// How many at most; 100 if not said.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) limit: Option<u32>,
}

/// A session in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Row {
    id: SessionId,
    /// Given, or the first line of the first prompt.
    title: String,
    workspace: String,
    /// `working`, `waiting`, `done`, `failed`, `stopped` or `limit`.
    state: String,
    /// RFC 3339, UTC.
    created: String,
    /// RFC 3339, UTC.
    updated: String,
    /// The last event that a person caused: what a command may expect.
    version: Seq,
    /// Events so far.
    pub(crate) seq: Seq,
    /// Where the words of a search were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<String>,
}

impl Row {
    pub(crate) fn of(row: Listed, title: String, excerpt: Option<String>) -> Self {
        Self {
            title,
            id: row.id,
            workspace: row.workspace,
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

/// A new session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// The folder to work in; the one that the server was started in, if not given.
    #[serde(default)]
    workspace: Option<String>,
    /// What to begin with.
    #[serde(default)]
    prompt: Option<String>,
    /// Settings that are not as configured.
    #[serde(default)]
    set: ConfigPatch,
}

/// A session that was made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CreatedSession {
    id: SessionId,
    workspace: String,
    /// Events so far.
    seq: Seq,
}

/// What of a session is wanted.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadQuery {
    /// The last event that the reader has.
    #[serde(default)]
    pub(crate) from: Seq,
    /// How many events at most; 5000 if not said.
    #[schemars(range(min = 0, max = 5000))]
    pub(crate) limit: Option<usize>,
    /// Seconds to wait for an event, if there is none yet.
    #[schemars(range(min = 0, max = 30))]
    pub(crate) wait: Option<u64>,
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct View {
    #[serde(flatten)]
    row: Row,
    /// `provider/model` in use.
    model: String,
    /// What waits for a person, oldest first.
    questions: Vec<OpenQuestion>,
    /// The events after the one that was named, in order.
    events: Vec<Record>,
    /// Whether there are more of them.
    more: bool,
}

/// A question, with all that a person should see before answering it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct OpenQuestion {
    id: QuestionId,
    /// What an answer names.
    hash: Hash,
    /// What it is about, as data.
    kind: QuestionKind,
    /// The same in words, for people.
    #[serde(flatten)]
    view: QuestionView,
    /// The call that it is about, with its arguments as they would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<AskedCall>,
}

/// A call that waits for a word.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AskedCall {
    id: String,
    tool: String,
    arguments: String,
    /// A check of the finished work, made by the harness.
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

/// A command that was taken; it is durable.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Accepted {
    id: InputId,
    /// The last event that it made.
    seq: Seq,
}

/// A command that was not taken, with how things stand.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Conflict {
    error: String,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Refused>,
    /// The session now, without its events.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<View>,
}

fn time(at: At) -> String {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or_default().to_string()
}

/// The id in a path.
pub(crate) fn id(text: &str) -> Result<SessionId, ApiError> {
    text.parse().map_err(|_| ApiError::missing(format_args!("session {}", text.chars().take(40).collect::<String>())))
}

/// A number as the document bounds it.
fn within<T: PartialOrd + std::fmt::Debug>(
    n: T,
    range: std::ops::RangeInclusive<T>,
    name: &str,
) -> Result<T, ApiError> {
    match range.contains(&n) {
        true => Ok(n),
        false => Err(ApiError::new(StatusCode::BAD_REQUEST, format!("{name} is within {range:?}"))),
    }
}

impl App {
    pub(crate) fn row(&self, row: Listed, excerpt: Option<String>) -> Row {
        let title = self.host.redacted(&row.title);
        Row::of(row, title, excerpt)
    }

    /// How many events a session has.
    pub(crate) async fn seq(&self, id: &SessionId) -> Result<Seq, ApiError> {
        let head = self.hall.log().tip(id).await?;
        head.map(|(seq, _)| seq).ok_or_else(|| ApiError::missing(format_args!("session {id}")))
    }

    /// The session as it stands.
    pub(crate) async fn state(&self, id: &SessionId) -> Result<Session, ApiError> {
        self.seq(id).await?;
        Ok(self.recent.state(self.hall.log().as_ref(), id).await?)
    }

    /// Another model has another price and another window: the server knows them where the client said nothing.
    pub(crate) async fn model_change(&self, id: &SessionId, set: &mut ConfigPatch) -> Result<(), ApiError> {
        let Some(model) = set.model.clone() else { return Ok(()) };
        let state = self.state(id).await?;
        if set.price.is_none() && model != state.config.model {
            set.price = Some(self.host.price(state.workspace.as_deref().unwrap_or_default(), &model)?);
            set.window = set.window.or(Some(None));
        }
        Ok(())
    }

    async fn view(&self, id: &SessionId, from: Seq, limit: usize) -> Result<View, ApiError> {
        let state = self.state(id).await?;
        let (mut facts, mut bytes, mut more) = (Vec::new(), 0, false);
        let each = &mut |record: Record| {
            // A session goes on while it is read: no more than what the rest of this answer is about.
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
        self.hall.log().read(id, from, each).await?;
        let listed =
            self.hall.log().listed(id).await?.ok_or_else(|| ApiError::missing(format_args!("session {id}")))?;
        let mut row = self.row(listed, None);
        (row.seq, row.version, row.state) = (state.seq, state.version, state.status().to_string());
        let model = state.config.model.clone();
        let questions = state.questions.iter().map(|q| asks(&state, q)).collect();
        Ok(View { row, model, questions, events: facts, more })
    }
}

impl App {
    /// Before somebody who only looks makes a session go on that nobody drives: the same, since what was cut off goes on by itself.
    pub(crate) async fn before_driving(&self, session: &SessionId) -> Result<(), ApiError> {
        if self.hall.drives(session) {
            return Ok(());
        }
        let state = self.state(session).await?;
        if state.status().to_string() != "working" {
            return Ok(());
        }
        if let Some(set) = self.host.fits(&state)? {
            let world = self.hall.world(state.workspace.as_deref().unwrap_or_default())?;
            let id = InputId::from_random(world.clock.random());
            let order = CommandRequest { id, expect: None, command: Command::Configure { set } };
            // Laid down while nobody drives, so that it counts before anything runs.
            let _ = submit_offline(&world, session, order).await?;
        }
        Ok(())
    }

    /// Before a command that makes a session of ours work: its settings must fit, and rules that the person made since come first.
    /// What another process drives is that process's matter.
    pub(crate) async fn prepare(
        &self,
        door: &mut Connection,
        session: &SessionId,
        order: &mut CommandRequest,
    ) -> Result<(), ApiError> {
        if !goes_on(&order.command) || door.handle().is_none() {
            return Ok(());
        }
        // What was answered before gets the same answer, however things stand now.
        if self.hall.log().answered(session, &order.id).await?.is_some() {
            return Ok(());
        }
        let state = self.state(session).await?;
        let Some(set) = self.host.fits(&state)? else { return Ok(()) };
        // Of the same version as the command, which then follows it.
        if let Ok(seq) = door.expecting(order.expect, Command::Configure { set }).await?
            && order.expect.is_some()
        {
            order.expect = Some(seq);
        }
        Ok(())
    }
}

/// A question, and all that a person should see before answering it.
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

/// Sessions, newest first; with words, those that hold them.
pub(crate) async fn list(State(app): State<App>, Query(query): Query<ListQuery>) -> Result<Response, ApiError> {
    let log = app.hall.log();
    let limit = within(query.limit.unwrap_or(ROWS), 1..=1000, "limit")?;
    let words = query.search.as_deref().map(str::trim).filter(|words| !words.is_empty());
    let sessions = match words {
        None => {
            let rows = log.list(query.workspace.as_deref(), limit).await?;
            rows.into_iter().map(|row| app.row(row, None)).collect()
        }
        Some(words) => {
            log.index(None).await?;
            let mut rows: Vec<Row> = Vec::new();
            for found in log.search(words, 1000).await? {
                if rows.len() >= limit as usize || rows.iter().any(|row| row.id == found.session) {
                    continue;
                }
                let listed = log.listed(&found.session).await?;
                let listed = listed.filter(|row| query.workspace.as_ref().is_none_or(|only| *only == row.workspace));
                rows.extend(listed.map(|row| app.row(row, Some(app.host.redacted(&found.excerpt)))));
            }
            rows
        }
    };
    Ok(json(StatusCode::OK, &Rows { sessions }))
}

/// Makes a session, and gives it its first prompt.
pub(crate) async fn make(State(app): State<App>, Json(new): Json<NewSession>) -> Result<Response, ApiError> {
    let prompt = new.prompt.filter(|text| !text.trim().is_empty());
    let (workspace, config) = app.host.begin(new.workspace.as_deref(), &new.set).await?;
    let world = app.hall.world(&workspace)?;
    let id = create(&world, &workspace, config).await?;
    let mut seq = 1;
    if let Some(text) = prompt {
        let mut door = app.hall.door(id.clone(), 1).await?;
        let sent = door.send(Command::Prompt { text: text.into(), images: Vec::new() }).await?;
        seq = sent.map_err(|refusal| ApiError::new(StatusCode::CONFLICT, refusal.to_string()))?;
    }
    Ok(json(StatusCode::CREATED, &CreatedSession { id, workspace, seq }))
}

/// A session, from an event on.
pub(crate) async fn read(
    State(app): State<App>,
    Path(session): Path<String>,
    Query(query): Query<ReadQuery>,
) -> Result<Response, ApiError> {
    let session = id(&session)?;
    let until = Instant::now() + Duration::from_secs(within(query.wait.unwrap_or(0), 0..=30, "wait")?);
    let limit = within(query.limit.unwrap_or(FACTS), 0..=FACTS, "limit")?;
    let mut stopped = app.stopped.clone();
    // Looking is cheap and changes nothing: a reader takes no session over.
    loop {
        if app.seq(&session).await? > query.from || Instant::now() >= until {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = crate::net::stop(&mut stopped) => break,
        }
    }
    Ok(json(StatusCode::OK, &app.view(&session, query.from, limit).await?))
}

/// A command, once: the same id gets the same answer.
pub(crate) async fn command(
    State(app): State<App>,
    Path(session): Path<String>,
    Json(mut order): Json<CommandRequest>,
) -> Result<Response, ApiError> {
    let session = id(&session)?;
    let seq = app.seq(&session).await?;
    let order_id = order.id.clone();
    let mut door = app.hall.door(session.clone(), seq).await?;
    if let Command::Configure { set } = &mut order.command {
        app.model_change(&session, set).await?;
    }
    if let Err(no) = app.prepare(&mut door, &session, &mut order).await {
        let session = Some(app.view(&session, Seq::MAX, 0).await?);
        return Ok(json(no.0, &Conflict { error: no.1, reason: None, session }));
    }
    match door.order(order).await? {
        Ok(seq) => Ok(json(StatusCode::OK, &Accepted { id: order_id, seq })),
        Err(refusal) => {
            let session = Some(app.view(&session, Seq::MAX, 0).await?);
            let (error, why) = (refusal.to_string(), Some(refusal.reason));
            Ok(json(StatusCode::CONFLICT, &Conflict { error, reason: why, session }))
        }
    }
}

/// Whether a command makes a session work.
fn goes_on(command: &Command) -> bool {
    match command {
        Command::Prompt { .. } | Command::Run | Command::Reply { .. } | Command::Compact => true,
        Command::Interrupt
        | Command::Rewind { .. }
        | Command::Configure { .. }
        | Command::Title { .. }
        | Command::Revoke { .. } => false,
    }
}
