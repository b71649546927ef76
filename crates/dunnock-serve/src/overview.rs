//! The overview of all sessions: their rows, what they do now, and what the day has cost.

use crate::answer::ApiError;
use crate::app::App;
use crate::sessions::{AskedCall, OpenQuestion, Row, asks};
use axum::http::StatusCode;
use dunnock_core::{PhaseName, Stage};
use dunnock_ports::Listed;
use dunnock_proto::{
    BRIDGE_MODEL, Decoded, Event, Isolation, Price, Proof, Record, Seq, SessionId, Usage,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many sessions are checked, and how many idle ones are sent. Those that work or wait are
/// always sent.
const LOOKED_AT: u32 = 2000;
const ROWS: usize = 100;
/// How long one result serves all clients.
const SERVES: Duration = Duration::from_millis(200);
/// How many sessions are read again per check: many old ones are read bit by bit.
const READS: usize = 8;
/// Milliseconds in a day.
const DAY: i64 = 86_400_000;

/// The state of all sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Overview {
    /// Most recently updated first.
    sessions: Vec<OverviewRow>,
    today: Today,
}

/// Usage on this day (UTC), over all sessions sent.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub(crate) struct Today {
    /// Input and output tokens.
    tokens: u64,
    /// Millionths of a US dollar, where the price is known.
    micros: u64,
    /// Some usage has an unknown price.
    unknown: bool,
    /// The daily budget in millionths of a US dollar, if one is set.
    budget: Option<u64>,
}

/// A session in the overview.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct OverviewRow {
    #[serde(flatten)]
    row: Row,
    /// Details; absent until the session has been read.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<Activity>,
    /// Whether this server is driving the session right now.
    here: bool,
}

/// What reading a session's events shows.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Activity {
    /// `provider/model` in use.
    model: String,
    /// How commands are confined.
    isolation: Isolation,
    /// Whether files are checkpointed, so that changes can be undone.
    checkpoints: bool,
    /// Steps since the last prompt, and the limit.
    step: u32,
    steps: u32,
    /// A model request is in progress.
    thinking: bool,
    /// The running call, if any.
    running: Option<AskedCall>,
    /// Questions waiting for the user, oldest first.
    questions: Vec<OpenQuestion>,
    /// Whether the work was verified.
    proof: Proof,
    /// Input and output tokens.
    tokens: u64,
    /// Millionths of a US dollar; null if a price is unknown.
    micros: Option<u64>,
}

/// Cached sessions, so that each event is read once.
#[derive(Default)]
pub(crate) struct OverviewCache {
    known: Mutex<HashMap<SessionId, CachedRow>>,
    /// The last overview as sent: tabs that ask at the same time share it.
    last: tokio::sync::Mutex<Option<(Instant, Arc<str>)>>,
}

#[derive(Clone)]
struct CachedRow {
    /// The session as listed. The details may be newer: they are fresh as long as the list is
    /// unchanged.
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
            Event::Created(e) => {
                return (self.model, self.price) = (e.config.model, e.config.price);
            }
            Event::Forked(e) => return (self.model, self.price) = (e.config.model, e.config.price),
            Event::Configured(e) => {
                // A price applies to one model only.
                if let Some(model) = e.set.model.filter(|model| *model != self.model) {
                    (self.model, self.price) = (model, None);
                }
                self.price = e.set.price.unwrap_or(self.price);
                return;
            }
            // If a server reports no usage, the price is unknown, not 0. A copy-and-paste session
            // has no price.
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

    /// The total over all days; `None` if part of it has no price.
    fn micros(&self) -> Option<u64> {
        self.days
            .values()
            .all(|day| !day.unknown)
            .then(|| self.days.values().map(|day| day.micros).sum())
    }
}

impl App {
    async fn known(&self, row: &Listed) -> Result<CachedRow, ApiError> {
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
        self.pool.store().read(&row.id, from, each).await?;
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
        // Blocking: describing a question looks into the session's folder.
        let more = tokio::task::spawn_blocking(more).await;
        let more =
            more.map_err(|e| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
        let known = CachedRow { row: self.row(row.clone(), None).await, more, used };
        self.briefs.put(&row.id, known.clone());
        Ok(known)
    }

    async fn overview(&self) -> Result<Overview, ApiError> {
        let mut rows = self.pool.store().list(None, LOOKED_AT).await?;
        // Most recently updated first, without dropping old sessions that work or wait.
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
                true => self.known(&row).await.ok(), // one that cannot be read is still sent
                false => self.briefs.of(&row.id),
            };
            if let Some(day) = known.as_ref().and_then(|known| known.used.days.get(&today)) {
                sum.tokens += day.tokens;
                sum.micros += day.micros;
                sum.unknown |= day.unknown;
            }
            let here = self.pool.drives(&row.id);
            let (row, more) = match known {
                Some(known) if fresh => (self.shown(known.row).await, Some(known.more)),
                Some(known) => (self.row(row, None).await, Some(known.more)),
                None => (self.row(row, None).await, None),
            };
            sessions.push(OverviewRow { row, more, here });
        }
        if budget.is_some() {
            // The budget covers both what was used and what is reserved.
            sum.micros = self.pool.store().day_total(today).await?.micros.max(0).cast_unsigned();
        }
        Ok(Overview { sessions, today: sum })
    }

    /// The overview as JSON, computed once for all clients that ask within [`SERVES`].
    pub(crate) async fn overview_json(&self) -> Result<Arc<str>, ApiError> {
        let mut last = self.briefs.last.lock().await;
        if let Some((_, text)) = last.as_ref().filter(|(at, _)| at.elapsed() < SERVES) {
            return Ok(text.clone());
        }
        let text: Arc<str> =
            serde_json::to_string(&self.overview().await?).unwrap_or_default().into();
        *last = Some((Instant::now(), text.clone()));
        Ok(text)
    }
}

impl OverviewCache {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, CachedRow>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn of(&self, session: &SessionId) -> Option<CachedRow> {
        self.lock().get(session).cloned()
    }
    fn put(&self, session: &SessionId, known: CachedRow) {
        self.lock().insert(session.clone(), known);
    }
    fn is_fresh(&self, row: &Listed) -> bool {
        self.lock().get(&row.id).is_some_and(|known| known.row.seq == row.seq)
    }
    fn keep_only(&self, rows: &[Listed]) {
        self.lock().retain(|id, _| rows.iter().any(|row| row.id == *id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dunnock_proto::At;

    fn listed(seq: Seq, status: &str) -> Listed {
        let (id, title, workspace) =
            (SessionId::from_random([1; 16]), String::new(), String::new());
        Listed {
            id,
            title,
            workspace,
            status: status.into(),
            created: At(0),
            updated: At(0),
            version: 1,
            seq,
        }
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
        let shown = Row::of(row.clone(), String::new(), None);
        briefs.put(&row.id, CachedRow { row: shown, more, used });
        assert!(briefs.is_fresh(&row));
        assert!(!briefs.is_fresh(&listed(8, "done")), "it would be shown at work for good");
    }
}
