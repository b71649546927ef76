//! `dunnock cost`: tokens and cost of each step, of a session, and of the day.

use crate::cli::find;
use crate::compose;
use crate::config::{load, paths};
use crate::drive::Seen;
use crate::view::output;
use crate::view::tally::{Cost, Tally};
use dunnock_ports::{Store, fold_events};
use dunnock_proto::{Event, SessionId, Usage};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Milliseconds in a day.
const DAY: i64 = 86_400_000;

pub(crate) async fn run(
    data: Option<PathBuf>,
    id: Option<String>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let settings = load::settings(
        paths::workspace(None).ok().as_deref(),
        false,
        load::given(data, Vec::new()),
    )?;
    let open = compose::open(&settings, None).await?;
    let session = find::session(&open, id.as_deref(), None).await?;
    show(&open, &session, json).await?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the usage of a session, and of all sessions today.
pub(crate) async fn show(
    open: &compose::Composed,
    session: &SessionId,
    json: bool,
) -> anyhow::Result<()> {
    let log = open.ports.store.as_ref();
    let rows = steps(log, session).await?;
    let seen = Seen::read(&open.ports, session).await?;
    let today = open.ports.clock.now().0.div_euclid(DAY);
    let all = day(log, today).await?;
    let held = log.day_total(today).await?.micros.max(0).cast_unsigned();
    let date = output::time(open.ports.clock.now()).get(..10).unwrap_or_default().to_owned();
    if json {
        for (name, cost) in &rows {
            output::line(&row(json!({"step": name}), cost).to_string());
        }
        output::line(&row(json!({"session": session.as_str()}), &seen.tally.total).to_string());
        let budget = open.ports.day_budget.map(|micros| micros as f64 / 1e6);
        let whole = json!({"day": date, "budget_usd": budget, "used_or_held_usd": budget.map(|_| held as f64 / 1e6)});
        output::line(&row(whole, &all).to_string());
        return Ok(());
    }
    output::line(&format!(
        "{:>8}  {:>10} {:>10} {:>9} {:>10}  cost",
        "step", "sent", "cached", "received", "reasoning"
    ));
    for (name, cost) in &rows {
        output::line(&words(name, cost));
    }
    output::line(&words("session", &seen.tally.total));
    output::line(&words("today", &all));
    output::aside(&format!(
        "session {} · {} · today is {date} (UTC), all sessions",
        output::id(session),
        seen.state.config.model
    ));
    if let Some(budget) = open.ports.day_budget {
        output::aside(&format!(
            "daily budget: {} of {} used or reserved",
            output::usd(held),
            output::usd(budget)
        ));
    }
    Ok(())
}

fn row(mut about: Value, cost: &Cost) -> Value {
    let Usage { input, cached, output, reasoning, written } = cost.usage;
    let more = json!({
        "tokens_in": input, "tokens_cached": cached, "tokens_written": written, "tokens_out": output,
        "tokens_reasoning": reasoning, "usd": cost.usd(),
    });
    if let (Some(about), Value::Object(more)) = (about.as_object_mut(), more) {
        about.extend(more);
    }
    about
}

fn words(name: &str, cost: &Cost) -> String {
    let n = |n: u64| output::number(n);
    let used = cost.usage;
    format!(
        "{name:>8}  {:>10} {:>10} {:>9} {:>10}  {}",
        n(used.input),
        n(used.cached),
        n(used.output),
        n(used.reasoning),
        // Without a request, there is no price that could be unknown.
        if used.is_nothing() && !cost.unknown { "-".to_owned() } else { cost.money() }
    )
}

/// The usage of each step and each summary.
async fn steps(log: &dyn Store, session: &SessionId) -> anyhow::Result<Vec<(String, Cost)>> {
    let start = (Vec::<(String, Cost)>::new(), Tally::default());
    let (rows, _) = fold_events(log, session, start, |(rows, tally), envelope, event| {
        tally.add(envelope.at.0, &event);
        if let Some((name, usage)) = used(&event) {
            let cost = tally.cost_of(usage);
            match rows.last_mut().filter(|(last, _)| *last == name) {
                Some((_, sum)) => sum.and(&cost),
                None => rows.push((name, cost)),
            }
        }
    })
    .await?;
    Ok(rows)
}

/// The usage recorded in an event, and its row.
fn used(event: &Event) -> Option<(String, &Usage)> {
    match event {
        Event::Answered(e) => Some((e.step.0.to_string(), &e.usage)),
        Event::StepFailed(e) => Some((e.step.0.to_string(), &e.usage)),
        Event::Compacted(e) if !e.usage.is_nothing() => Some(("summary".into(), &e.usage)),
        Event::CompactionFailed(e) if !e.usage.is_nothing() => Some(("summary".into(), &e.usage)),
        _ => None,
    }
}

/// The usage of all sessions on a day.
async fn day(log: &dyn Store, day: i64) -> anyhow::Result<Cost> {
    let mut sum = Cost::default();
    for row in log.list(None, u32::MAX).await? {
        if row.updated.0.div_euclid(DAY) < day {
            continue;
        }
        (sum, _) =
            fold_events(log, &row.id, (sum, Tally::default()), |(sum, tally), envelope, event| {
                tally.add(envelope.at.0, &event);
                if let Some((_, usage)) = used(&event)
                    && envelope.at.0.div_euclid(DAY) == day
                {
                    sum.and(&tally.cost_of(usage));
                }
            })
            .await?;
    }
    Ok(sum)
}
