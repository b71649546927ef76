//! Starts work. Each piece runs in its own task, is cancelled by its [`CancellationToken`], and
//! reports exactly once.

use crate::baseline::{Baselining, none};
use crate::compact::{self, CompactionInput, first_changed};
use crate::driver::{Driver, Mail, Running};
use crate::ports::Ports;
use crate::workspace::{self, Writing};
use dunnock_core::{
    Call, Effect, EffectOutcome, Phase, Previews, Request, State, failpoint, policy,
};
use dunnock_ports::{
    Blob, CancellationToken, DeltaSink, FilesError, HostInfo, ModelRequest, RenderError,
    RestorePlan, Restored, SaveControl, ToolCall,
};
use dunnock_proto::{
    Answered, At, Checkpointed, Config, Delta, Failure, Finished, Hash, Outcome, Part,
    RewindFailed, Rewound, ServerTool, ServerToolArgs, SessionId, StepFailed, TOOL_USE, Tree,
};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The result of a piece of work: an outcome and the blobs it refers to.
type Done = (EffectOutcome, Vec<Blob>);
type Doing = Pin<Box<dyn Future<Output = Done> + Send>>;

impl Driver {
    pub(crate) fn spawn(&mut self, effect: Effect) {
        let halt = CancellationToken::default();
        let Some(doing) = self.prepare(&effect, &halt) else { return };
        self.running.insert(effect.clone(), Running { halt });
        let mail = self.mail.clone();
        tokio::spawn(async move {
            let name = crate::driver::effect_name(&effect);
            // A panic in a tool is a failed call, not the end of the session.
            let (work, blobs) = match tokio::spawn(doing).await {
                Ok(done) => done,
                Err(error) => match broken(&effect, &error.to_string()) {
                    Some(work) => (work, Vec::new()),
                    None => return,
                },
            };
            failpoint::hit("report.before", name);
            let _ = mail.send(Mail::Report(effect, work, blobs)).await;
            failpoint::hit("report.after", name);
        });
    }

    /// The work of an effect. `None` for one that only waits for the person.
    fn prepare(&self, effect: &Effect, halt: &CancellationToken) -> Option<Doing> {
        let s = &self.loaded.state;
        let ports = self.ports.clone();
        let workspace: Arc<str> = s.workspace.clone().unwrap_or_default();
        let halt = halt.clone();
        let hub = self.hub.clone();
        let live: DeltaSink = Arc::new(move |delta| hub.delta(delta));
        match effect {
            Effect::RenderPreamble { .. } => {
                let (state, config) = (s.clone(), s.config.clone());
                Some(Box::pin(async move {
                    let host = host_info(&ports, &state).await;
                    let made = tokio::select! {
                        biased;
                        () = halt.cancelled() => Err(RenderError("interrupted".into())),
                        made = ports.model.render_preamble(&config, &workspace, &host) => made,
                    };
                    match made {
                        Ok((mut preamble, blob)) => {
                            preamble.level = Some(state.level());
                            if let Some(old) = &state.preamble {
                                preamble.reason = compact::why(old, &preamble);
                                preamble.first_changed =
                                    first_changed(ports.store.as_ref(), &state, &blob).await;
                            }
                            (EffectOutcome::PreambleSet(preamble), vec![blob])
                        }
                        Err(RenderError(error)) => (
                            EffectOutcome::PreambleFailed { model: config.model.clone(), error },
                            Vec::new(),
                        ),
                    }
                }))
            }
            Effect::AskModel { .. } | Effect::WriteOutbox { .. } | Effect::AwaitInbox { .. } => {
                let request = self.loaded.transcript.request()?;
                let via_bridge = matches!(effect, Effect::WriteOutbox { .. });
                let (session, state) = (self.session.clone(), s.clone());
                let session_id = session.clone();
                let known = self
                    .preamble
                    .as_ref()
                    .filter(|blob| blob.hash == request.preamble)
                    .map(|blob| blob.bytes.clone());
                Some(Box::pin(async move {
                    let preamble = match known {
                        Some(preamble) => preamble,
                        None => match ports.store.blob(request.preamble).await {
                            Ok(Some(preamble)) => preamble,
                            Ok(None) => {
                                return (
                                    preamble_missing(&request, "they are not in the log"),
                                    Vec::new(),
                                );
                            }
                            Err(error) => {
                                return (
                                    preamble_missing(&request, &error.to_string()),
                                    Vec::new(),
                                );
                            }
                        },
                    };
                    let pictures = match pictures(&ports, &request).await {
                        Ok(pictures) => pictures,
                        Err(why) => return (why, Vec::new()),
                    };
                    let patient = state.config.unattended;
                    let time_left = time_left(&ports, &state.config);
                    let asking =
                        ModelRequest { session, preamble, request, pictures, patient, time_left };
                    if via_bridge {
                        let work = match ports.model.write_outbox(asking).await {
                            Ok(handed) => EffectOutcome::OutboxWritten(handed),
                            Err(failed) => EffectOutcome::Failed(failed),
                        };
                        return (work, Vec::new());
                    }
                    match ports.model.ask(asking, live, halt.clone()).await {
                        Ok((mut answered, blobs)) => {
                            answered.server_tools = server_tools(&ports, &session_id, &answered);
                            // The answer has arrived: previews delay it only briefly, and not at
                            // all once it is cancelled.
                            let previews = tokio::select! {
                                biased;
                                () = halt.cancelled() => Previews::new(),
                                found = tokio::time::timeout(PREVIEW, previews(&ports, &state, &answered)) => {
                                    found.unwrap_or_default()
                                }
                            };
                            (EffectOutcome::Answer(answered, previews), blobs)
                        }
                        Err(failed) => (EffectOutcome::Failed(failed), Vec::new()),
                    }
                }))
            }
            Effect::Run { call } | Effect::Join { call } => {
                let call = s.call(*call)?.clone();
                if s.weaker(&call) {
                    let level = s.level();
                    let why = format!(
                        "not run: it was allowed with stronger isolation than is available now \
                         (level {level:?}); call it again"
                    );
                    return Some(Box::pin(async move {
                        (ended(&call, Outcome::NotRun, &why), Vec::new())
                    }));
                }
                let level = s.level();
                let hidden_folder = s.config.bridge.as_ref().map(|bridge| bridge.folder.clone());
                let seen = s.seen.clone();
                let job = ToolCall {
                    session: self.session.clone(),
                    workspace,
                    call,
                    isolation: level,
                    open_hosts: s.open_hosts(),
                    closes_hosts: s.closes_hosts(),
                    seen,
                    hidden_folder,
                    time_left: time_left(&ports, &s.config),
                };
                let keeps = s.config.checkpoints && ports.checkpoints.is_some();
                let folder = Folder { keeps, tree: s.tree.clone(), writing: self.writing.clone() };
                Some(Box::pin(run_call(ports, job, folder, live, halt)))
            }
            Effect::Checkpoint { mark } => {
                let (session, mark, writing) = (self.session.clone(), *mark, self.writing.clone());
                // Only the first copy can be stopped: nothing was done yet that it could miss.
                let halt = if s.tree.is_none() { halt } else { CancellationToken::new() };
                let saving = SaveControl { say: live, halt };
                Some(Box::pin(async move {
                    // The writer held the folder until now, so the checkpoint is exactly what that
                    // call left.
                    let writing = writing.lock().await.take();
                    let kept = checkpoint(&ports, &session, &workspace, mark, saving).await;
                    drop(writing);
                    (kept, Vec::new())
                }))
            }
            Effect::Restore { tree, .. } => {
                let Phase::Rewinding { spans, force, .. } = &s.phase else { return None };
                let (spans, force, tree, undo) =
                    (spans.clone(), *force, tree.clone(), s.tree.clone());
                let (session, writing) = (self.session.clone(), self.writing.clone());
                Some(Box::pin(async move {
                    drop(writing.lock().await.take());
                    let waiting = move |text: String| live(Delta::Notice { text: text.into() });
                    let work = match workspace::lock(&ports.locks, &workspace, &halt, waiting).await
                    {
                        Ok(Some(_writing)) => {
                            match restore(&ports, &session, &workspace, &tree, undo.as_ref(), force)
                                .await
                            {
                                Ok(Restored { tree, note, partial }) => {
                                    let running = ports.tools.running(&session, &workspace).await;
                                    let note = with_running(note, &running);
                                    EffectOutcome::Rewound(Rewound {
                                        spans: spans.to_vec(),
                                        tree: Some(tree),
                                        undo,
                                        note,
                                        partial,
                                    })
                                }
                                Err(error) => EffectOutcome::RewindFailed(RewindFailed {
                                    error: error.to_string(),
                                }),
                            }
                        }
                        // The driver is leaving, and nothing has been changed yet.
                        Ok(None) => EffectOutcome::RewindFailed(RewindFailed {
                            error: "interrupted".into(),
                        }),
                        Err(error) => {
                            let error = format!("the folder cannot be locked: {error}");
                            EffectOutcome::RewindFailed(RewindFailed { error })
                        }
                    };
                    (work, Vec::new())
                }))
            }
            Effect::Compact { upto, strength } => {
                let input = CompactionInput::of(&self.session, &self.loaded, *upto, *strength);
                Some(Box::pin(compact::compact(ports, input, halt)))
            }
            Effect::Baseline { tree, of } => {
                let baseline = Baselining {
                    session: self.session.clone(),
                    workspace,
                    tree: tree.clone(),
                    of: *of,
                    commands: s.config.verify.clone(),
                    step: s.step,
                    level: s.level(),
                    open_hosts: s.open_hosts(),
                };
                Some(Box::pin(baseline.run(ports, halt)))
            }
            Effect::Wake { at } => Some(Box::pin(wake(ports, *at, halt))),
            Effect::AskPerson { .. } => None,
        }
    }
}

/// The note of a rewind, with the processes that may change the files again.
fn with_running(note: Option<String>, running: &[String]) -> Option<String> {
    if running.is_empty() {
        return note;
    }
    let still = format!("still running, and may change files again: {}", running.join("; "));
    Some(note.map_or_else(|| still.clone(), |note| format!("{note}\n{still}")))
}

/// What is known of the servers' tools that the calls of an answer use. It is recorded with the
/// answer, so that what is judged does not change later.
fn server_tools(ports: &Ports, session: &SessionId, answered: &Answered) -> Vec<ServerTool> {
    let calls = (0..).zip(Part::calls(&answered.parts)).filter(|(_, part)| part.tool == TOOL_USE);
    let known = calls.filter_map(|(index, part): (u16, _)| {
        let ServerToolArgs { tool } = ServerToolArgs::parse(&part.args).ok()?;
        let known = ports.tools.server_tool(session, &tool)?;
        Some(ServerTool { index, ..known })
    });
    known.collect()
}

/// How long an answer waits for previews of what its calls would destroy.
const PREVIEW: Duration = Duration::from_secs(1);

/// What the calls that need approval would run and destroy, so that the question can say so.
async fn previews(ports: &Ports, s: &State, answered: &Answered) -> Previews {
    let mut previews = Previews::new();
    let Some(workspace) = &s.workspace else { return previews };
    for (call, access) in policy::calls_to_preview(s, answered) {
        let preview = ports.tools.preview(workspace, &call, access, s.level()).await;
        if !preview.is_empty() {
            previews.insert(call.id.index, preview);
        }
    }
    previews
}

/// What a writer must know about its folder.
struct Folder {
    /// Whether a checkpoint follows each writer, which leaves its hold on the folder in `writing`
    /// until then.
    keeps: bool,
    /// The files of the last checkpoint.
    tree: Option<Tree>,
    writing: Arc<Mutex<Option<Writing>>>,
}

/// Runs a call, with the workspace locked if it writes.
async fn run_call(
    ports: Ports,
    job: ToolCall,
    folder: Folder,
    live: DeltaSink,
    halt: CancellationToken,
) -> Done {
    let call = job.call.clone();
    if call.allowed != Some(call.hash()) {
        return (
            ended(
                &call,
                Outcome::NotRun,
                "not run: the arguments differ from those that were allowed",
            ),
            Vec::new(),
        );
    }
    let writing = if call.writes() {
        drop(folder.writing.lock().await.take()); // in case no checkpoint took it
        let say = live.clone();
        let waiting = move |text: String| say(Delta::Notice { text: text.into() });
        match workspace::lock(&ports.locks, &job.workspace, &halt, waiting).await {
            Ok(Some(writing)) => Some(writing),
            Ok(None) => {
                return (
                    ended(&call, Outcome::NotRun, "not run: the person interrupted"),
                    Vec::new(),
                );
            }
            Err(error) => {
                return (
                    ended(&call, Outcome::NotRun, &format!("the folder cannot be locked: {error}")),
                    Vec::new(),
                );
            }
        }
    } else {
        None
    };
    let workspace = job.workspace.clone();
    // Changes since the last checkpoint were made by others, not by this call.
    let mut before = None;
    if let (true, Some(_), Some(checkpoints)) = (folder.keeps, &writing, &ports.checkpoints) {
        let saving = SaveControl { say: live.clone(), halt: CancellationToken::new() };
        let now = checkpoints.keep(&job.session, &workspace, 0, saving).await.tree;
        before = now.filter(|now| folder.tree.as_ref() != Some(now));
    }
    let found = match (call.harness, &ports.files) {
        (true, Some(files)) => files.tree(&workspace).await.ok(),
        (true, None) | (false, _) => None,
    };
    let (mut finished, blobs) = ports.tools.run(job, live, halt.clone()).await;
    finished.before = before;
    if call.harness
        && finished.outcome != Outcome::Interrupted
        && let Some(files) = &ports.files
    {
        // A check proves something about the files as it found them. If it left different ones,
        // that is recorded.
        tokio::select! {
            tree = files.tree(&workspace) => finished.tree = tree.ok(),
            () = halt.cancelled() => {}
        }
        if let (Some(found), Some(left)) = (&found, &finished.tree)
            && found != left
            && !files.holds(&workspace, found).await
        {
            finished.checked_tree = Some(found.clone());
        }
    }
    if folder.keeps && writing.is_some() {
        *folder.writing.lock().await = writing;
    }
    (EffectOutcome::Output(finished), blobs)
}

async fn restore(
    ports: &Ports,
    session: &SessionId,
    workspace: &str,
    to: &Tree,
    from: Option<&Tree>,
    force: bool,
) -> Result<Restored, FilesError> {
    let Some((checkpoints, from)) = ports.checkpoints.as_ref().zip(from) else {
        let why = "checkpoints are not available here, so files cannot be restored";
        return Err(FilesError::Failed(why.into()));
    };
    let past =
        crate::commit::past(ports.store.as_ref(), session).await.map_err(FilesError::failed)?;
    let (ours, theirs) = past.since(to);
    let undone_after = past.undone_after();
    let (ours, theirs) = (ours.as_slice(), theirs.as_slice());
    checkpoints
        .restore(RestorePlan { session, workspace, to, from, ours, theirs, force, undone_after })
        .await
}

async fn checkpoint(
    ports: &Ports,
    session: &SessionId,
    workspace: &str,
    mark: u64,
    saving: SaveControl,
) -> EffectOutcome {
    EffectOutcome::Checkpointed(match &ports.checkpoints {
        Some(checkpoints) => checkpoints.keep(session, workspace, mark, saving).await,
        None => Checkpointed {
            tree: None,
            mark,
            note: Some("checkpoints are not available here".into()),
        },
    })
}

async fn wake(ports: Ports, at: At, halt: CancellationToken) -> Done {
    loop {
        let left = at.0 - ports.clock.now().0;
        if left <= 0 {
            break;
        }
        // Checked from time to time: the clock may have been set, or the machine may have slept.
        let nap = Duration::from_millis(left.cast_unsigned().min(1000));
        tokio::select! {
            () = tokio::time::sleep(nap) => {}
            () = halt.cancelled() => break,
        }
    }
    (EffectOutcome::TimerFired(at), Vec::new())
}

fn ended(call: &Call, outcome: Outcome, shown: &str) -> EffectOutcome {
    EffectOutcome::Output(Finished::plain(call.id, outcome, shown))
}

/// How much time is left until the deadline, if there is one.
fn time_left(ports: &Ports, config: &Config) -> Option<Duration> {
    let left = config.deadline?.until.0.saturating_sub(ports.clock.now().0).max(0);
    Some(Duration::from_millis(left.unsigned_abs()))
}

/// The images that a request refers to.
async fn pictures(
    ports: &Ports,
    request: &Request,
) -> Result<BTreeMap<Hash, Arc<[u8]>>, EffectOutcome> {
    let mut all = BTreeMap::new();
    for hash in request.pictures() {
        let why = match ports.store.blob(hash).await {
            Ok(Some(bytes)) => {
                all.insert(hash, bytes);
                continue;
            }
            Ok(None) => "it is not in the log".to_owned(),
            Err(error) => error.to_string(),
        };
        let error = format!("an image in this session cannot be read: {why}");
        return Err(EffectOutcome::Failed(StepFailed::unsent(
            request.step,
            Failure::Rejected,
            error,
        )));
    }
    Ok(all)
}

/// What a preamble says about this machine.
pub(crate) async fn host_info(ports: &Ports, s: &State) -> HostInfo {
    let workspace = s.workspace.as_deref().unwrap_or_default();
    let with_snapshot = s.config.snapshot && s.config.unattended;
    ports.tools.host_info(workspace, s.level(), &s.config.hosts, with_snapshot).await
}

/// A step whose recorded preamble cannot be read: it is not sent with another one.
fn preamble_missing(request: &Request, why: &str) -> EffectOutcome {
    let error = format!("the instructions of this session cannot be read: {why}");
    EffectOutcome::Failed(StepFailed::unsent(request.step, Failure::Rejected, error))
}

/// The report for work that panicked.
fn broken(effect: &Effect, why: &str) -> Option<EffectOutcome> {
    let why = format!("an error inside the agent: {why}");
    match (effect, effect.cut()) {
        (_, Some(EffectOutcome::Output(finished))) => Some(EffectOutcome::Output(Finished {
            outcome: Outcome::Failed,
            shown: why.into(),
            ..finished
        })),
        (_, Some(EffectOutcome::Failed(failed))) => Some(EffectOutcome::Failed(StepFailed {
            failure: Failure::Transport,
            error: why,
            ..failed
        })),
        (Effect::RenderPreamble { model }, _) => {
            Some(EffectOutcome::PreambleFailed { model: model.to_string(), error: why })
        }
        (Effect::Checkpoint { mark }, _) => Some(EffectOutcome::Checkpointed(Checkpointed {
            tree: None,
            mark: *mark,
            note: Some(why),
        })),
        (Effect::Restore { .. }, _) => {
            Some(EffectOutcome::RewindFailed(RewindFailed { error: why }))
        }
        (Effect::Baseline { tree, of }, _) => {
            Some(EffectOutcome::Baselined(none(tree.clone(), *of, why)))
        }
        (Effect::Wake { at }, _) => Some(EffectOutcome::TimerFired(*at)),
        (_, other) => other,
    }
}
