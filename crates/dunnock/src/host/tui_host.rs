//! Answers the requests of the terminal app: sessions, files, models, rules.
//!
//! One task holds the connection and folds its events. Slow work runs in separate tasks.

use crate::cli::undo::{self, SessionHistory};
use crate::cli::{context, cost, find, mcp, pictures, transfer};
use crate::compose::{self, Composed};
use crate::config::settings::Settings;
use crate::config::{load, paths, rules};
use crate::files;
use crate::host::{environment, login_host};
use crate::view::output;
use dunnock_core::{State, fold_record};
use dunnock_engine::{Connection, FirstPrompt, create_with_prompt, fork, load};
use dunnock_proto::{
    Command, CommandRequest, ConfigPatch, Decoded, Effort, Event, Finished, Frame, Isolation, Mode,
    RewindTo, Seq, SessionId,
};
use dunnock_tui::{HostEvent, HostRequest, LoginEvent, LoginRequest, RuleScope, Welcome};
use std::path::PathBuf;
use tokio::sync::mpsc;

/// What the app opens first.
pub(crate) enum StartWith {
    /// The folder's unfinished session, or none.
    Folder,
    /// A new session with this task.
    Task(String),
    /// This session, or the newest in the folder.
    Resume(Option<String>),
    /// The same, but only if another process is running it.
    Attach(Option<String>),
}

/// Steps per prompt if a user is present, who can then choose to continue.
pub(crate) const STEPS: u32 = 20;
/// Events before the end of a session whose diffs are loaded when it is opened.
const RECENT: Seq = 600;
/// The most sessions in a list.
const ROWS: u32 = 200;

/// The open session.
struct Current {
    session: SessionId,
    connection: Connection,
    state: State,
}

/// The host of the terminal app.
pub(crate) struct TuiHost {
    settings: Settings,
    workspace: PathBuf,
    trusted: bool,
    tell: mpsc::Sender<HostEvent>,
    welcome: Welcome,
    model: Option<String>,
    /// The effort, if it was chosen before there was a session.
    effort: Option<Effort>,
    current: Option<Current>,
    shell: Option<tokio::task::JoinHandle<()>>,
    /// The current step of setting up a model.
    login: Option<tokio::task::JoinHandle<()>>,
    /// The last event when the session was opened; up to it, events are already folded into the
    /// state.
    upto: Seq,
}

impl TuiHost {
    pub(crate) fn new(
        settings: Settings,
        workspace: PathBuf,
        trusted: bool,
        tell: mpsc::Sender<HostEvent>,
    ) -> Self {
        let welcome = Welcome {
            version: crate::APP.into(),
            folder: environment::folder(&workspace),
            branch: environment::branch(&workspace),
            mode: Some(settings.approve.value),
            ..Welcome::default()
        };
        Self {
            settings,
            workspace,
            trusted,
            tell,
            welcome,
            model: None,
            effort: None,
            current: None,
            shell: None,
            login: None,
            upto: 0,
        }
    }

    async fn tell(&self, report: HostEvent) {
        let _ = self.tell.send(report).await; // the app may already be closed
    }

    /// Runs until the app closes.
    pub(crate) async fn run(
        mut self,
        first: StartWith,
        mut asked: mpsc::Receiver<HostRequest>,
        mut notes: mpsc::UnboundedReceiver<String>,
    ) -> anyhow::Result<()> {
        self.tell(HostEvent::Welcome(self.welcome.clone())).await;
        let mut open = compose::open(&self.settings, None).await?;
        self.tell(HostEvent::Own(environment::own_commands(&self.workspace, self.trusted))).await;
        self.find_model(&open).await?;
        let sandbox = self.settings.sandbox.value;
        let settings = self.settings.clone();
        let (confined, level) = tokio::task::spawn_blocking(move || {
            open.confine(&settings, sandbox)?;
            let level = if sandbox == dunnock_proto::Sandbox::Off {
                Isolation::D
            } else {
                open.ports.level
            };
            anyhow::Ok((open, level))
        })
        .await??;
        let open = confined;
        self.welcome.level = format!("{level:?}").chars().next();
        self.tell(HostEvent::Welcome(self.welcome.clone())).await;
        if !self.tell.is_closed() {
            self.begin(&open, first).await?;
            if self.model.is_none() && self.current.is_none() && self.settings.model.value.is_none()
            {
                self.tell(HostEvent::Login(LoginEvent::Needed)).await;
            }
        }
        loop {
            let frame = async {
                match &mut self.current {
                    Some(current) => current.connection.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ask = asked.recv() => match ask {
                    Some(ask) => if let Err(error) = self.answer(&open, ask).await {
                        self.tell(HostEvent::Wrong(format!("{error:#}"))).await;
                    },
                    None => break,
                },
                frame = frame => match frame {
                    Ok(frame) => self.frame(&open, frame).await,
                    Err(error) => {
                        self.current = None;
                        self.tell(HostEvent::Lost(error.to_string())).await;
                    }
                },
                note = notes.recv() => if let Some(first) = note {
                    // Notes that arrive together are shown as one text.
                    let rest = std::iter::from_fn(|| notes.try_recv().ok());
                    let all: Vec<String> = std::iter::once(first).chain(rest).collect();
                    let plain = |note: &String| note.strip_prefix("dunnock: ").unwrap_or(note).to_owned();
                    let lines = all.iter().map(plain).flat_map(|note| note.lines().map(str::to_owned).collect::<Vec<_>>());
                    self.tell(HostEvent::Text(lines.collect())).await;
                },
            }
        }
        self.stop_shell().await;
        if let Some(current) = self.current.take() {
            current.connection.close().await;
        }
        Ok(())
    }

    /// Finds the model: as configured, by a key, or the only one on this machine. Finding none is
    /// not an error: the first screen shows what to do.
    async fn find_model(&mut self, open: &Composed) -> anyhow::Result<()> {
        self.welcome.notes.extend(environment::brought(&self.workspace, self.trusted));
        let around = open.repository_around(&self.workspace);
        self.welcome.notes.extend(around.map(|top| environment::repository_note(&top)));
        if let Some(model) = self.settings.model.value.clone() {
            match open.client.knows(&model) {
                Ok(()) => self.model = Some(model),
                Err(why) => self.welcome.missing.push(why),
            }
        } else {
            self.model = compose::model_by_key(&mut self.settings);
        }
        if let Some(model) = &self.model {
            let origin = &self.settings.model.origin;
            self.welcome.found.push(format!("{model} ({origin})"));
            self.welcome.model = Some(model.clone());
            return Ok(());
        }
        self.tell(HostEvent::Welcome(self.welcome.clone())).await;
        let local = compose::local_models(&open.client).await;
        match local.as_slice() {
            [one] => {
                self.settings.model.found(one, "found on this machine");
                self.welcome.found.push(format!("{one}, the only model on this machine"));
                self.welcome.model = Some(one.clone());
                self.model = Some(one.clone());
            }
            [] if self.welcome.missing.is_empty() => {
                self.welcome.missing.extend(environment::without_model(&open.client))
            }
            [] => {}
            several => {
                let names =
                    several.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
                self.welcome
                    .found
                    .push(format!("{} models on this machine: {names} …", several.len()));
                self.welcome.missing.push("choose one: /login, or /model for now".into());
            }
        }
        Ok(())
    }

    async fn begin(&mut self, open: &Composed, first: StartWith) -> anyhow::Result<()> {
        match first {
            StartWith::Task(text) => {
                let begun = self.start(open, &text, &[], None).await;
                self.give_back(begun, text, Vec::new()).await;
            }
            StartWith::Resume(id) => {
                let session = find::session(open, id.as_deref(), Some(&self.workspace)).await?;
                self.open(open, session).await?;
            }
            StartWith::Attach(id) => {
                let session = find::session(open, id.as_deref(), Some(&self.workspace)).await?;
                if !open.ports.ownership.is_driven(&session).await? {
                    let id = output::id(&session);
                    anyhow::bail!(
                        "no process is running session {id}. Continue it: dunnock open --resume \
                         {id}"
                    );
                }
                self.open(open, session).await?;
            }
            // Reopen an unfinished session first: a waiting question or interrupted work.
            StartWith::Folder => {
                let here =
                    open.ports.store.list(Some(&self.workspace.to_string_lossy()), 1).await?;
                if let Some(row) = here
                    .into_iter()
                    .find(|row| matches!(row.status.as_str(), "waiting" | "working"))
                {
                    if open.ports.ownership.is_driven(&row.id).await? {
                        let id = output::id(&row.id);
                        let note = format!(
                            "session {id} is open elsewhere; to join it: dunnock attach {id}"
                        );
                        self.welcome.notes.push(note);
                        self.tell(HostEvent::Welcome(self.welcome.clone())).await;
                    } else if let Err(error) = self.open(open, row.id).await {
                        self.tell(HostEvent::Wrong(format!("{error:#}"))).await;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns a prompt that could not be sent to the input field.
    async fn give_back(&mut self, sent: anyhow::Result<()>, text: String, pictures: Vec<String>) {
        if let Err(error) = sent {
            self.tell(HostEvent::Wrong(format!("{error:#}"))).await;
            self.tell(HostEvent::NotSent(text)).await;
            for picture in pictures {
                self.tell(HostEvent::Picture(picture)).await;
            }
        }
    }

    /// Creates a session for a first prompt; if one was opened meanwhile, the prompt goes there.
    async fn start(
        &mut self,
        open: &Composed,
        text: &str,
        paths: &[String],
        mode: Option<Mode>,
    ) -> anyhow::Result<()> {
        if self.current.is_some() {
            return self.say(open, text, paths).await;
        }
        let Some(model) = self.model.clone() else {
            anyhow::bail!(
                "no model is selected yet. /login sets one up; /model lists those that \
                           are available"
            );
        };
        if dunnock_tools::holds_a_key(text) {
            output::note(
                "your task contains what looks like a key; it is sent to the model and saved with \
                 the session",
            );
        }
        let pictures = pictures::read(&self.in_folder(paths))?;
        let mut config =
            compose::config(&self.settings, &open.client, &self.workspace, model, true)?;
        if self.settings.max_steps.is_default() {
            config.max_steps = STEPS;
        }
        if self.settings.effort.value.is_none() {
            config.effort = Some(compose::APP_EFFORT);
        }
        config.effort = self.effort.or(config.effort);
        config.mode = mode.unwrap_or(config.mode);
        compose::keepable(&config, open.ports.level, open.ports.day_budget)?;
        if let Some(asks) = compose::all_asks(&config, open.ports.level) {
            output::note(asks);
        }
        let first = FirstPrompt { text: text.into(), images: pictures };
        let folder = self.workspace.to_string_lossy();
        let (session, _) = create_with_prompt(&open.ports, &folder, config, first).await?;
        let connection = Connection::open(open.ports.clone(), session.clone(), 0).await?;
        self.tell(HostEvent::Opened { id: session.clone(), upto: 0, resumed: None, draft: None })
            .await;
        self.upto = 0;
        self.current = Some(Current { session, connection, state: State::default() });
        Ok(())
    }

    /// Sends a prompt with images to the open session.
    async fn say(&mut self, open: &Composed, text: &str, paths: &[String]) -> anyhow::Result<()> {
        let pictures = pictures::read(&self.in_folder(paths))?;
        let session = self.session()?.session.clone();
        let images = pictures::keep(&open.ports, &session, &pictures).await?;
        self.command(Command::Prompt { text: text.into(), images }).await.map(drop)
    }

    /// Closes the open session, if any.
    async fn leave(&mut self) {
        if let Some(current) = self.current.take() {
            current.connection.close().await;
        }
    }

    /// Opens a session in place of the current one; if that fails, the app may be left without a
    /// session.
    async fn open(&mut self, open: &Composed, session: SessionId) -> anyhow::Result<()> {
        let opened = self.open_it(open, session).await;
        if opened.is_err() && self.current.is_none() {
            self.tell(HostEvent::Closed).await;
        }
        opened
    }

    async fn open_it(&mut self, open: &Composed, session: SessionId) -> anyhow::Result<()> {
        let row = environment::row(open, &session).await?;
        let folder = PathBuf::from(&row.workspace);
        if !folder.is_dir() {
            anyhow::bail!(
                "the folder of this session, {}, no longer exists. Restore it to continue",
                row.workspace
            );
        }
        self.leave().await;
        let resumed = Some(environment::age(open.ports.clock.now().0 - row.updated.0));
        let draft = paths::state_dir()
            .ok()
            .and_then(|dir| dunnock_tui::Keep::new(dir).draft(session.as_str()));
        let connection = Connection::open(open.ports.clone(), session.clone(), 0).await?;
        // If we drive the session, its state is already loaded; otherwise load it.
        let state = match connection.handle() {
            Some(handle) => handle.as_read().clone(),
            None => load(open.ports.store.as_ref(), &session).await?.state,
        };
        let upto = state.seq;
        let patch =
            compose::patch(&self.settings, &open.client, &folder, &state.config, Some(true));
        let mut begins = state.clone();
        if let Ok(Some(patch)) = &patch {
            begins.config = state.config.with(patch).into();
        }
        if connection.handle().is_some() {
            if let Some(lower) = open.lowered(&begins) {
                output::note(&format!("{lower}. Until then, every command needs approval"));
            }
            if let Some(asks) = compose::all_asks(&begins.config, open.ports.level) {
                output::note(asks);
            }
        }
        self.welcome.folder = environment::folder(&folder);
        self.welcome.branch = environment::branch(&folder);
        self.tell(HostEvent::Welcome(self.welcome.clone())).await;
        self.tell(HostEvent::Opened { id: session.clone(), upto, resumed, draft }).await;
        let drives = connection.handle().is_some();
        self.upto = upto;
        // Past events are already folded; later ones are folded in `frame`.
        self.current = Some(Current { session: session.clone(), connection, state });
        let (tell, open) = (self.tell.clone(), open.clone());
        tokio::spawn(async move {
            // Wait until the session is on the screen, because this reads the whole log again.
            tokio::time::sleep(std::time::Duration::from_millis(700)).await;
            if let Some(since) = environment::changed_since(&open, &session).await {
                let _ = tell.send(HostEvent::Text(vec![format!("since    {since}")])).await;
            }
        });
        // Change settings only if we drive the session, not if we watch it.
        if let (true, Some(set)) = (drives, patch?) {
            self.command(Command::Configure { set }).await?;
        }
        Ok(())
    }

    async fn frame(&mut self, open: &Composed, frame: Frame) {
        if let (Frame::Event(record), Some(current)) = (&frame, &mut self.current)
            && record.envelope.seq > self.upto
        {
            fold_record(&mut current.state, record);
        }
        if let Frame::Event(record) = &frame
            && record.envelope.kind == "finished"
            && record.envelope.seq + RECENT > self.upto
            && let Decoded::Known(Event::Finished(end)) = record.decode()
        {
            self.call_ended(open, &end).await;
        }
        self.tell(HostEvent::Frame(frame)).await;
    }

    /// Reports what an edit changed, with its line numbers, and the branch if the call changed it.
    async fn call_ended(&mut self, open: &Composed, end: &Finished) {
        if let Some(diff) = end.diff
            && let Ok(Some(text)) = open.ports.store.blob(diff).await
        {
            let text = String::from_utf8_lossy(&text).into_owned();
            self.tell(HostEvent::CallDiff(end.call, text)).await;
        }
        let branch = environment::branch(&self.folder());
        if branch != self.welcome.branch {
            self.welcome.branch.clone_from(&branch);
            self.tell(HostEvent::Branch(branch)).await;
        }
    }

    fn session(&mut self) -> anyhow::Result<&mut Current> {
        self.current.as_mut().ok_or_else(|| anyhow::anyhow!("there is no session yet"))
    }

    async fn submit(&mut self, request: CommandRequest) -> anyhow::Result<()> {
        let id = request.id.clone();
        let frame = match &mut self.current {
            Some(current) => match current.connection.submit(request).await {
                Ok(Ok(seq)) => Frame::Accepted { id, seq },
                Err(error) => {
                    let (why, questions) = (dunnock_proto::Refused::NotOwner, Vec::new());
                    self.tell(HostEvent::Frame(Frame::Refused {
                        id,
                        reason: why,
                        version: 0,
                        questions,
                    }))
                    .await;
                    return Err(error.into());
                }
                Ok(Err(no)) => Frame::Refused {
                    id,
                    reason: no.reason,
                    version: no.version,
                    questions: no.questions,
                },
            },
            None => Frame::Refused {
                id,
                reason: dunnock_proto::Refused::NoSession,
                version: 0,
                questions: Vec::new(),
            },
        };
        self.tell(HostEvent::Frame(frame)).await;
        Ok(())
    }

    /// Sends a command of our own to the session.
    async fn command(&mut self, command: Command) -> anyhow::Result<Seq> {
        let sent = self.session()?.connection.send(command).await?;
        sent.map_err(|refusal| anyhow::anyhow!("{refusal}"))
    }

    async fn answer(&mut self, open: &Composed, ask: HostRequest) -> anyhow::Result<()> {
        match ask {
            HostRequest::Command(request) => self.submit(request).await?,
            HostRequest::Begin { text, pictures, mode } => {
                let begun = self.start(open, &text, &pictures, mode).await;
                self.give_back(begun, text, pictures).await;
            }
            HostRequest::Pictures { text, pictures } => {
                let said = self.say(open, &text, &pictures).await;
                self.give_back(said, text, pictures).await;
            }
            HostRequest::New => {
                self.leave().await;
                self.welcome.folder = environment::folder(&self.workspace);
                self.welcome.branch = environment::branch(&self.workspace);
                self.tell(HostEvent::Welcome(self.welcome.clone())).await;
                self.tell(HostEvent::Closed).await;
            }
            HostRequest::Open(session) => self.open(open, session).await?,
            HostRequest::Find(prefix) => {
                let session = find::by_prefix(open.ports.store.as_ref(), &prefix).await?;
                self.open(open, session).await?;
            }
            HostRequest::Fork(step) => {
                let at = self.at(open).await?;
                let fact = match step {
                    Some(step) => at.step(step)?.max(1),
                    None => at.seen.state.seq,
                };
                let new = fork(&open.ports, &at.session, fact).await?;
                self.open(open, new).await?;
            }
            HostRequest::Sessions(words) => {
                let (tell, open) = (self.tell.clone(), open.clone());
                tokio::spawn(async move {
                    let rows = environment::sessions(&open, &words, ROWS).await;
                    report(&tell, rows.map(|rows| HostEvent::Sessions(words, rows))).await;
                });
            }
            HostRequest::Files => {
                let (tell, folder) = (self.tell.clone(), self.folder());
                tokio::task::spawn_blocking(move || {
                    tell.blocking_send(HostEvent::Files(files::files(&folder)))
                });
            }
            HostRequest::Models => {
                let (tell, client) = (self.tell.clone(), open.client.clone());
                tokio::spawn(async move {
                    tell.send(HostEvent::Models(environment::models(&client).await)).await
                });
            }
            HostRequest::Model(name) => self.switch(open, name).await?,
            HostRequest::Effort(effort) => self.set_effort(open, effort).await?,
            HostRequest::Points => {
                let (tell, at) = (self.tell.clone(), self.at(open).await?);
                tokio::spawn(
                    async move { tell.send(HostEvent::Points(undo::points(&at).await)).await },
                );
            }
            HostRequest::DiffFrom(step) => {
                let (tell, at) = (self.tell.clone(), self.at(open).await?);
                tokio::spawn(async move {
                    let diff = undo::diff_text(&at, Some(&format!("{step}.."))).await;
                    report(&tell, diff.map(HostEvent::Diff)).await;
                });
            }
            HostRequest::Rewind { to, scope } => {
                self.command(Command::Rewind {
                    to: RewindTo::Event(to.max(1)),
                    scope,
                    force: false,
                })
                .await?;
            }
            HostRequest::Undo => {
                let at = self.at(open).await?;
                let (to, scope, report) = undo::undo_way(&at).await?;
                self.tell(HostEvent::Text(report)).await;
                self.command(Command::Rewind { to, scope, force: false }).await?;
            }
            HostRequest::Diff => {
                let (tell, at) = (self.tell.clone(), self.at(open).await?);
                tokio::spawn(async move {
                    report(&tell, undo::diff_text(&at, None).await.map(HostEvent::Diff)).await
                });
            }
            HostRequest::CallText(call) => {
                let (tell, session) = (self.tell.clone(), self.session()?.session.clone());
                let store = open.ports.store.clone();
                tokio::spawn(async move {
                    let text = environment::call_text(store.as_ref(), &session, call).await;
                    let text = text.map_err(|error| format!("{error:#}"));
                    tell.send(HostEvent::CallText(call, text)).await
                });
            }
            HostRequest::Context => {
                let session = self.session()?.session.clone();
                self.tell(HostEvent::Text(context::lines(open, &session).await?)).await;
            }
            HostRequest::Servers => {
                let session = self.session().ok().map(|session| session.session.clone());
                let folder = self.folder();
                let settings = load::settings(Some(&folder), false, Vec::new())?;
                let lines = mcp::lines(&settings, &folder, session.as_ref())?;
                self.tell(HostEvent::Text(lines)).await;
            }
            HostRequest::Cost => cost::show(open, &self.session()?.session.clone(), false).await?,
            HostRequest::Rules => drop(crate::cli::rules::run(None, false)?),
            HostRequest::Grant(rule, RuleScope::Project) => {
                rules::always(&rule, Some(&self.folder()))?;
            }
            HostRequest::Grant(rule, RuleScope::AllProjects) => rules::always(&rule, None)?,
            HostRequest::Export => {
                let session = self.session()?.session.clone();
                let path = environment::export_file(&session)?;
                transfer::export(
                    open,
                    &session,
                    Some(path),
                    transfer::ExportOptions { files: true, secrets: false },
                )
                .await?;
            }
            HostRequest::Clipboard => {
                let (tell, programs) = (self.tell.clone(), open.programs(&self.folder()));
                tokio::spawn(async move {
                    let picture =
                        environment::clipboard_picture(programs).await.map(HostEvent::Picture);
                    report(&tell, picture.map_err(|why| anyhow::anyhow!(why))).await;
                });
            }
            HostRequest::Shell(command) => {
                let (tell, folder) = (self.tell.clone(), self.folder());
                self.shell = Some(tokio::spawn(environment::shell(
                    open.programs(&folder),
                    command,
                    folder,
                    tell,
                )));
            }
            HostRequest::Login(request) => self.log_in(open, request).await?,
            HostRequest::StopShell => {
                self.stop_shell().await;
                self.tell(HostEvent::ShellEnded("stopped".into())).await;
            }
        }
        Ok(())
    }

    /// A step of setting up a model. A new one ends the one before.
    async fn log_in(&mut self, open: &Composed, request: LoginRequest) -> anyhow::Result<()> {
        if let Some(before) = self.login.take() {
            before.abort();
        }
        let LoginRequest::Save { attempt, provider, key, model } = request else {
            let (tell, settings) = (self.tell.clone(), self.settings.clone());
            self.login = Some(tokio::spawn(async move {
                if let Some(event) = login_host::answer(settings, request).await {
                    let _ = tell.send(HostEvent::Login(event)).await;
                }
            }));
            return Ok(());
        };
        let saved = login_host::save(&self.settings, &provider, key.as_ref(), &model);
        let result = saved.map_err(|error| format!("{error:#}"));
        let is_saved = result.is_ok();
        self.tell(HostEvent::Login(LoginEvent::Saved { attempt, result })).await;
        if is_saved {
            open.reload_keys(&mut self.settings);
            self.welcome.missing.clear();
            self.switch(open, format!("{provider}/{model}")).await?;
        }
        Ok(())
    }

    /// Stops the shell command and all processes it started.
    async fn stop_shell(&mut self) {
        if let Some(shell) = self.shell.take() {
            shell.abort();
            let _ = shell.await;
        }
    }

    /// The folder of the open session, or else of the app.
    fn folder(&self) -> PathBuf {
        let of_session =
            self.current.as_ref().and_then(|c| c.state.workspace.as_deref().map(PathBuf::from));
        of_session.unwrap_or_else(|| self.workspace.clone())
    }

    /// These paths; those that are not absolute are in the folder.
    fn in_folder(&self, paths: &[String]) -> Vec<PathBuf> {
        let folder = self.folder();
        paths.iter().map(|path| folder.join(path)).collect()
    }

    /// The open session and its history.
    async fn at(&mut self, open: &Composed) -> anyhow::Result<SessionHistory> {
        let session = self.session()?.session.clone();
        SessionHistory::of(open.clone(), session).await
    }

    async fn set_effort(&mut self, open: &Composed, effort: Effort) -> anyhow::Result<()> {
        let config = self.current.as_ref().map(|current| current.state.config.clone());
        let model = config.as_ref().map(|config| config.model.clone()).or(self.model.clone());
        let current = self.current.as_ref();
        let refused_by = current.and_then(|current| current.state.effort_refused_by.as_deref());
        if let Some(model) = refused_by.filter(|refused_by| model.as_deref() == Some(refused_by)) {
            let line = format!(
                "{model} refused an effort in this session, so none is sent. Use another model, or \
                 start a new session"
            );
            self.tell(HostEvent::Text(vec![line])).await;
            return Ok(());
        }
        let mut lines = Vec::new();
        match config {
            Some(config) if config.effort == Some(effort) => {
                lines.push(format!("The effort is already {}", effort.name()));
            }
            Some(_) => {
                let set = ConfigPatch { effort: Some(Some(effort)), ..ConfigPatch::default() };
                self.command(Command::Configure { set }).await?;
            }
            None => {
                self.effort = Some(effort);
                lines.push(format!("Set effort to {}", effort.name()));
            }
        }
        lines.extend(model.and_then(|model| compose::effort_note(&open.client, &model, effort)));
        if !lines.is_empty() {
            self.tell(HostEvent::Text(lines)).await;
        }
        Ok(())
    }

    async fn switch(&mut self, open: &Composed, name: String) -> anyhow::Result<()> {
        open.client.knows(&name).map_err(|why| anyhow::anyhow!(why))?;
        let price = self.settings.price_of(&name).or_else(|| open.client.price(&name));
        self.model = Some(name.clone());
        self.welcome.model = Some(name.clone());
        self.tell(HostEvent::Welcome(self.welcome.clone())).await;
        if self.current.is_some() {
            let set = ConfigPatch {
                model: Some(name),
                price: Some(price),
                window: Some(None),
                ..ConfigPatch::default()
            };
            self.command(Command::Configure { set }).await?;
        } else {
            self.tell(HostEvent::Text(vec![format!("Set model to {name}")])).await;
        }
        Ok(())
    }
}

/// Sends the result to the app, or the error.
async fn report(tell: &mpsc::Sender<HostEvent>, what: anyhow::Result<HostEvent>) {
    let _ = tell.send(what.unwrap_or_else(|error| HostEvent::Wrong(format!("{error:#}")))).await;
}
