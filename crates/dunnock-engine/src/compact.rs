//! Compacts the conversation, in two strengths, each with a new preamble.

use crate::catch_up::Loaded;
use crate::effects;
use crate::ports::Ports;
use dunnock_core::{CompactionNotes, EffectOutcome, Question, State, Transcript};
use dunnock_ports::{
    Blob, Blobs, CancellationToken, EventLog, RenderError, StoreError, SummaryError, first_event,
    fold_events,
};
use dunnock_proto::{
    Compacted, CompactionFailed, Envelope, Event, Preamble, Seq, SessionId, Span, Strength, Usage,
};

/// How many bytes of an old result are left.
pub(crate) const KEEP: usize = 400;
/// Bytes of verbatim notes, if the context window is unknown.
const ROOM: u64 = 64 << 10;
/// Precedes a summary: it is data, not an instruction.
const WRITTEN: &str = "Summary of the work up to here, written by a model:\n";

/// What to compact.
pub(crate) struct CompactionInput {
    pub(crate) session: SessionId,
    pub(crate) state: State,
    pub(crate) transcript: Transcript,
    pub(crate) upto: Seq,
    pub(crate) strength: Strength,
}

impl CompactionInput {
    pub(crate) fn of(session: &SessionId, loaded: &Loaded, upto: Seq, strength: Strength) -> Self {
        let (state, transcript) = (loaded.state.clone(), loaded.transcript.clone());
        Self { session: session.clone(), state, transcript, upto, strength }
    }
}

pub(crate) async fn compact(
    ports: Ports,
    input: CompactionInput,
    halt: CancellationToken,
) -> (EffectOutcome, Vec<Blob>) {
    let (mut usage, mut broke) = (Usage::default(), false);
    match shorter(&ports, &input, halt, (&mut usage, &mut broke)).await {
        Ok((compacted, blob)) => (EffectOutcome::Compacted(compacted), vec![blob]),
        Err(error) => (
            EffectOutcome::CompactionFailed(CompactionFailed {
                usage,
                incomplete: broke,
                ..CompactionFailed::because(error)
            }),
            Vec::new(),
        ),
    }
}

async fn shorter(
    ports: &Ports,
    input: &CompactionInput,
    halt: CancellationToken,
    (usage, broke): (&mut Usage, &mut bool),
) -> Result<(Compacted, Blob), String> {
    let CompactionInput { state, transcript, upto, strength, .. } = input;
    let workspace = state.workspace.as_deref().unwrap_or_default();
    let host = effects::host_info(ports, state).await;
    let rendered = ports.model.render_preamble(&state.config, workspace, &host).await;
    let (mut preamble, blob) = rendered.map_err(|RenderError(why)| why)?;
    let (shortened, summary, kept) = match strength {
        Strength::Shorten => (transcript.shorten(*upto, KEEP), None, None),
        Strength::Summarise => {
            let request = transcript.request().ok_or("the conversation is empty")?;
            let summed = ports.model.summarise(blob.bytes.clone(), request, halt).await;
            (*usage, *broke) = (summed.usage, summed.broke);
            let summary = format!("{WRITTEN}{}", summed.text.map_err(|SummaryError(why)| why)?);
            let kept = kept(ports, input).await.map_err(|error| error.to_string())?;
            (Vec::new(), Some(summary.into()), Some(kept.into()))
        }
    };
    preamble.reason = "compaction".into();
    preamble.level = Some(state.level());
    preamble.first_changed = first_changed(ports.store.as_ref(), state, &blob).await;
    let before = transcript.len();
    let mut compacted = Compacted {
        upto: *upto,
        shortened,
        summary,
        notes: kept,
        usage: *usage,
        preamble,
        before,
        after: 0,
    };
    compacted.after = transcript.len_after(&compacted);
    Ok((compacted, blob))
}

/// The first byte in which a new preamble differs from the current one.
pub(crate) async fn first_changed(log: &dyn Blobs, state: &State, new: &Blob) -> Option<u64> {
    let old = log.blob(state.preamble.as_ref()?.hash).await.ok()??;
    let same = old.iter().zip(new.bytes.iter()).take_while(|(a, b)| a == b).count();
    (same < old.len().max(new.bytes.len())).then_some(same as u64)
}

/// What a summary must not lose, from the log.
async fn kept(ports: &Ports, input: &CompactionInput) -> Result<String, StoreError> {
    let CompactionInput { session, state, transcript, .. } = input;
    let mut notes = CompactionNotes::default();
    for (session, spans) in
        pasts(ports.store.as_ref(), session, state.visible()).await?.iter().rev()
    {
        let add =
            |notes: &mut CompactionNotes, at: &Envelope, event| notes.add(spans, at.seq, &event);
        notes = fold_events(ports.store.as_ref(), session, notes, add).await?;
    }
    let open: Vec<Question> = state.questions.clone();
    let changed = changed(ports, session, state).await?;
    let room = state
        .window()
        .map_or(ROOM, |window| (window.saturating_mul(state.config.token_bytes) / 8).min(ROOM));
    // If a request did not fit, the window is smaller than assumed.
    let room = if state.overflowed { room.min(transcript.len() / 4) } else { room };
    Ok(notes.text(&open, &changed, usize::try_from(room).unwrap_or(usize::MAX)))
}

/// A session and those it was forked from, each with the events that count, newest first.
async fn pasts(
    log: &dyn EventLog,
    session: &SessionId,
    visible: Vec<Span>,
) -> Result<Vec<(SessionId, Vec<Span>)>, StoreError> {
    let mut all = vec![(session.clone(), visible)];
    loop {
        let Some((last, _)) = all.last().cloned() else { return Ok(all) };
        let Some(Event::Forked(forked)) = first_event(log, &last).await? else { return Ok(all) };
        let state = crate::catch_up::load_upto(log, &forked.from, forked.at).await?.state;
        all.push((forked.from, state.visible()));
    }
}

/// The files that this session changed and that differ from their state before it.
async fn changed(
    ports: &Ports,
    session: &SessionId,
    state: &State,
) -> Result<Vec<String>, StoreError> {
    let (Some(checkpoints), Some(first), Some(last)) =
        (&ports.checkpoints, &state.first, &state.tree)
    else {
        return Ok(Vec::new());
    };
    let past = crate::commit::past(ports.store.as_ref(), session).await?;
    let (ours, _) = past.since_first();
    let workspace = state.workspace.as_deref().unwrap_or_default();
    Ok(checkpoints
        .changed(workspace, &(first.clone(), last.clone()), &ours)
        .await
        .unwrap_or_default())
}

/// Why a new preamble replaces the old one.
pub(crate) fn why(old: &Preamble, new: &Preamble) -> String {
    let changes = [
        (old.model != new.model, format!("the model is now {}", new.model)),
        (old.profile != new.profile, format!("the profile is now {}", new.profile)),
        (
            old.model == new.model && old.effort != new.effort,
            new.effort.map_or_else(
                || "the effort is no longer sent".to_owned(),
                |effort| format!("the effort is now {}", effort.sent.name()),
            ),
        ),
        (old.window != new.window, "the context window changed".to_owned()),
    ];
    let said: Vec<String> =
        changes.into_iter().filter(|(is, _)| *is).map(|(_, words)| words).collect();
    if said.is_empty() { "settings changed".into() } else { said.join(", ") }
}
