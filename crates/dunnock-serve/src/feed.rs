//! All sessions at a glance, as they change: a WebSocket that says how things stand whenever they stand otherwise.
//!
//! One channel, since a browser has few connections to spare for answers that do not come.

use crate::App;
use crate::answer::ApiError;
use crate::live::{PING, send};
use crate::net::stop;
use crate::sessions::{AskedCall, OpenQuestion, Row, asks};
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::Response;
use dunnock_core::ports::Listed;
use dunnock_core::{PhaseName, Stage};
use dunnock_proto::{BRIDGE_MODEL, Decoded, Event, Isolation, Price, Proof, Record, Seq, SessionId, Usage};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often somebody looks.
const LOOK: Duration = Duration::from_millis(250);
/// Sessions that are looked at, and how many of those that rest are told of. Whatever works or waits is told of in any case.
const LOOKED_AT: u32 = 2000;
const ROWS: usize = 100;
/// How long one look serves all who ask.
const SERVES: Duration = Duration::from_millis(200);
/// Sessions that are read anew in one look: many old ones come one after the other.
const READS: usize = 8;
/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// How all sessions stand.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Overview {
    /// The newest first.
    sessions: Vec<OverviewRow>,
    today: Today,
}

/// What was used on this day (UTC), by all sessions that are told of.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub(crate) struct Today {
    /// Tokens in and out.
    tokens: u64,
    /// Millionths of a US dollar, where the price is known.
    micros: u64,
    /// Some of it was used at a price that is not known.
    unknown: bool,
    /// The budget of a day, in millionths of a US dollar, where one is set.
    budget: Option<u64>,
}

/// A session at a glance.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct OverviewRow {
    #[serde(flatten)]
    row: Row,
    /// More of it; not there until it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<Activity>,
    /// This server drives it right now.
    here: bool,
}

/// What reading a session shows.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Activity {
    /// `provider/model` in use.
    model: String,
    /// How commands are confined.
    isolation: Isolation,
    /// Whether files are kept, so that a change can be taken back.
    checkpoints: bool,
    /// Steps since the last prompt, and how many there may be.
    step: u32,
    steps: u32,
    /// The model is being asked.
    thinking: bool,
    /// What runs, if something does.
    running: Option<AskedCall>,
    /// What waits for a person, oldest first.
    questions: Vec<OpenQuestion>,
    /// Whether the work was checked.
    proof: Proof,
    /// Tokens in and out.
    tokens: u64,
    /// Millionths of a US dollar; nothing where the price is not known.
    micros: Option<u64>,
}

/// What is known of sessions, so that each is read once.
#[derive(Default)]
pub(crate) struct OverviewCache {
    known: Mutex<HashMap<SessionId, Known>>,
    /// The last look, as it was told: tabs that ask at the same time share it.
    last: tokio::sync::Mutex<Option<(Instant, Arc<str>)>>,
}

#[derive(Clone)]
struct Known {
    /// As it was listed. What was read for it may be younger: it is fresh as long as the list says the same.
    row: Row,
    more: Activity,
    used: Used,
}

/// What one session used, day by day.
#[derive(Debug, Clone, Default)]
struct Used {
    seq: Seq,
    model: String,
    price: Option<Price>,
    days: BTreeMap<i64, Today>,
}

impl Used {
    fn add(&mut self, record: &Record) {
        self.seq = record.envelope.seq;
        let Decoded::Known(event) = record.decode() else { return };
        let usage: Usage = match event {
            Event::Created(e) => return (self.model, self.price) = (e.config.model, e.config.price),
            Event::Forked(e) => return (self.model, self.price) = (e.config.model, e.config.price),
            Event::Configured(e) => {
                // What a model costs is known of that model only.
                if let Some(model) = e.set.model.filter(|model| *model != self.model) {
                    (self.model, self.price) = (model, None);
                }
                self.price = e.set.price.unwrap_or(self.price);
                return;
            }
            // A server that says nothing of what was used leaves the price unknown: it is not 0. What a person carries has none.
            Event::Answered(e) if e.usage.is_nothing() && self.model != BRIDGE_MODEL => {
                self.days.entry(record.envelope.at.0.div_euclid(DAY)).or_default().unknown = true;
                return;
            }
            Event::Answered(e) => e.usage,
            Event::StepFailed(e) => e.usage,
            Event::Compacted(e) => e.usage,
            Event::CompactionFailed(e) => e.usage,
            _ => return,
        };
        if usage.is_nothing() {
            return;
        }
        let day = self.days.entry(record.envelope.at.0.div_euclid(DAY)).or_default();
        day.tokens += usage.input + usage.output;
        day.micros += self.price.map_or(0, |price| price.of(&usage));
        day.unknown |= self.price.is_none();
    }

    /// Of all days; nothing where some of it has no price.
    fn micros(&self) -> Option<u64> {
        self.days.values().all(|day| !day.unknown).then(|| self.days.values().map(|day| day.micros).sum())
    }
}

impl App {
    async fn known(&self, row: &Listed) -> Result<Known, ApiError> {
        let old = self.briefs.of(&row.id);
        if let Some(known) = old.as_ref().filter(|known| known.row.seq == row.seq) {
            return Ok(known.clone());
        }
        let mut used = old.map(|known| known.used).unwrap_or_default();
        let from = used.seq;
        let each = &mut |record: Record| {
            used.add(&record);
            true
        };
        self.hall.log().read(&row.id, from, each).await?;
        let state = self.state(&row.id).await?;
        let micros = used.micros();
        let more = move || {
            let running = state.calls.iter().find(|call| matches!(call.stage, Stage::Started(_)));
            Activity {
                model: state.config.model.clone(),
                isolation: state.level(),
                checkpoints: state.config.checkpoints,
                step: state.config.max_steps.saturating_sub(state.steps_left),
                steps: state.config.max_steps,
                thinking: state.phase.name() == PhaseName::Thinking,
                running: running.map(AskedCall::of),
                questions: state.questions.iter().map(|q| asks(&state, q)).collect(),
                proof: state.proof,
                tokens: state.spent.tokens,
                micros,
            }
        };
        // What a command would do is looked at in its folder.
        let more = tokio::task::spawn_blocking(more).await;
        let more = more.map_err(|e| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
        let known = Known { row: self.row(row.clone(), None), more, used };
        self.briefs.put(&row.id, known.clone());
        Ok(known)
    }

    async fn overview(&self) -> Result<Overview, ApiError> {
        let mut rows = self.hall.log().list(None, LOOKED_AT).await?;
        // What was touched last comes first; what is old and works or waits is not passed over.
        rows.sort_by_key(|row| std::cmp::Reverse(row.updated.0));
        let mut resting = 0;
        rows.retain(|row| {
            let active = matches!(row.status.as_str(), "working" | "waiting");
            resting += usize::from(!active);
            active || resting <= ROWS
        });
        self.briefs.keep_only(&rows);
        let today = jiff::Timestamp::now().as_millisecond().div_euclid(DAY);
        let budget = self.host.day_budget();
        let mut sum = Today { budget, ..Today::default() };
        let (mut sessions, mut reads) = (Vec::new(), 0);
        for row in rows {
            let fresh = self.briefs.is_fresh(&row);
            reads += usize::from(!fresh);
            let known = match fresh || reads <= READS {
                true => self.known(&row).await.ok(), // one that cannot be read is told of all the same
                false => self.briefs.of(&row.id),
            };
            if let Some(day) = known.as_ref().and_then(|known| known.used.days.get(&today)) {
                sum.tokens += day.tokens;
                sum.micros += day.micros;
                sum.unknown |= day.unknown;
            }
            let here = self.hall.drives(&row.id);
            let (row, more) = match known {
                Some(known) if fresh => (known.row, Some(known.more)),
                Some(known) => (self.row(row, None), Some(known.more)),
                None => (self.row(row, None), None),
            };
            sessions.push(OverviewRow { row, more, here });
        }
        if budget.is_some() {
            // What counts against a budget is what was used and what is held back.
            sum.micros = self.hall.log().ledger(today).await?.micros.max(0).cast_unsigned();
        }
        Ok(Overview { sessions, today: sum })
    }

    /// How things stand, as it is told: looked at once for all who ask within a moment.
    async fn told(&self) -> Result<Arc<str>, ApiError> {
        let mut last = self.briefs.last.lock().await;
        if let Some((_, text)) = last.as_ref().filter(|(at, _)| at.elapsed() < SERVES) {
            return Ok(text.clone());
        }
        let text: Arc<str> = serde_json::to_string(&self.overview().await?).unwrap_or_default().into();
        *last = Some((Instant::now(), text.clone()));
        Ok(text)
    }
}

impl OverviewCache {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn of(&self, session: &SessionId) -> Option<Known> {
        self.lock().get(session).cloned()
    }
    fn put(&self, session: &SessionId, known: Known) {
        self.lock().insert(session.clone(), known);
    }
    fn is_fresh(&self, row: &Listed) -> bool {
        self.lock().get(&row.id).is_some_and(|known| known.row.seq == row.seq)
    }
    fn keep_only(&self, rows: &[Listed]) {
        self.lock().retain(|id, _| rows.iter().any(|row| row.id == *id));
    }
}

/// Opens the channel.
pub(crate) async fn feed(
    State(app): State<App>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let (upgrade, place) = crate::live::room(&app, upgrade)?;
    Ok(upgrade.on_upgrade(move |mut socket| async move {
        let mut stopped = app.stopped.clone();
        tokio::select! {
            _ = tell(&app, &mut socket) => {}
            () = stop(&mut stopped) => {}
        }
        drop(place);
    }))
}

/// Until the client leaves.
async fn tell(app: &App, socket: &mut WebSocket) -> Option<()> {
    let mut last: Arc<str> = "".into();
    let mut look = tokio::time::interval(LOOK);
    let mut ping = tokio::time::interval_at(tokio::time::Instant::now() + PING, PING);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut silent = 0;
    loop {
        tokio::select! {
            _ = look.tick() => match app.told().await {
                Ok(text) if text != last => {
                    send(socket, Message::Text(text.as_ref().into())).await?;
                    last = text;
                }
                Ok(_) => {}
                // The sessions cannot be read right now: the next look may find them.
                Err(ApiError(..)) => tokio::time::sleep(LOOK).await,
            },
            message = socket.recv() => match message?.ok()? {
                Message::Close(_) => return None,
                _ => silent = 0,
            },
            _ = ping.tick() => {
                silent += 1;
                if silent > 2 {
                    return None;
                }
                send(socket, Message::Ping(Vec::new().into())).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dunnock_proto::At;

    fn listed(seq: Seq, status: &str) -> Listed {
        let (id, title, workspace) = (SessionId::from_random([1; 16]), String::new(), String::new());
        Listed { id, title, workspace, status: status.into(), created: At(0), updated: At(0), version: 1, seq }
    }

    #[test]
    fn what_is_known_is_as_old_as_the_row_it_was_read_for() {
        let briefs = OverviewCache::default();
        let row = listed(5, "working");
        assert!(!briefs.is_fresh(&row));
        let more = Activity {
            model: String::new(),
            isolation: Isolation::A,
            checkpoints: true,
            step: 1,
            steps: 1,
            thinking: false,
            running: None,
            questions: Vec::new(),
            proof: Proof::Proven, // read when it had ended already
            tokens: 0,
            micros: None,
        };
        let used = Used { seq: 8, ..Used::default() };
        let told = Row::of(row.clone(), String::new(), None);
        briefs.put(&row.id, Known { row: told, more, used });
        assert!(briefs.is_fresh(&row));
        assert!(!briefs.is_fresh(&listed(8, "done")), "it would be shown at work for good");
    }
}
