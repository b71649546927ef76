//! The app in a real terminal: reads keys and host events, updates the state, draws. The only file
//! that waits.

use crate::demo;
use crate::edit::Field;
use crate::history::History;
use crate::host::{HostEvent, HostRequest};
use crate::keep::Keep;
use crate::paint::ScreenPainter;
use crate::screen;
use crate::state::{Effect, Input, State};
use crate::text::one_line;
use crate::theme::Theme;
use crate::update::update;
use crate::view::view;
use base64::Engine as _;
use crossterm::event::{Event, EventStream};
use dunnock_proto::SessionId;
use futures_util::StreamExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Shortest time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// Time between two steps of the spinner.
const TICK: Duration = Duration::from_millis(150);
/// Delay before a draft is saved.
const DRAFT: Duration = Duration::from_millis(400);
/// The most messages handled before the next frame.
const BATCH: usize = 1_000;

/// How the user is notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// The terminal's bell.
    Bell,
    /// The bell, and a notification in terminals that support OSC 9.
    Osc9,
    /// Not at all.
    Off,
}

/// What the app needs to run.
pub struct App {
    /// Requests to the host.
    pub asks: mpsc::Sender<HostRequest>,
    /// Events from the host.
    pub events: mpsc::Receiver<HostEvent>,
    /// The app's own files.
    pub keep: Keep,
    /// Colours.
    pub theme: Theme,
    /// How the user is notified.
    pub notify: Notify,
    /// Seed of the command ids.
    pub seed: [u8; 16],
    /// Name of the draft that is saved before there is a session.
    pub folder: String,
    /// File to which drawing statistics are written at exit, for benchmarks.
    pub figures: Option<PathBuf>,
    /// Finds a program of the user's own and prepares its environment.
    pub program: FindProgram,
}

/// Finds a program of the user's own and prepares its environment.
pub type FindProgram =
    std::sync::Arc<dyn Fn(&str) -> std::io::Result<std::process::Command> + Send + Sync>;

/// The state in which the app was left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitState {
    /// The session that was open.
    pub session: Option<SessionId>,
    /// Work was in progress, or a question was open.
    pub open: bool,
}

/// Drawing statistics.
#[derive(Debug, Default)]
struct Figures {
    frames: u64,
    bytes: u64,
    slowest: Duration,
    all: Vec<u32>,
}

struct Running {
    app: App,
    state: State,
    painter: ScreenPainter,
    began: Instant,
    painted: Option<Instant>,
    dirty: bool,
    figures: Figures,
    /// The draft as last saved, and its name.
    kept: (String, Field),
    draft_due: Option<Instant>,
    demo: Option<mpsc::Receiver<HostEvent>>,
    quit: bool,
}

/// Runs until the user quits.
///
/// # Errors
/// When there is no terminal, or it is gone.
pub async fn run(app: App) -> std::io::Result<ExitState> {
    let size = crossterm::terminal::size()?;
    let mut state = State::new(size, app.theme, app.seed);
    state.history = History::of(app.keep.history());
    let folder = app.folder.clone();
    if let Some(draft) = app.keep.draft(&folder)
        && let Ok(kept) = serde_json::from_str(&draft)
    {
        state.field = Field::from_kept(&kept);
    }
    let kept = (folder, state.field.clone());
    screen::restore_after_panic();
    screen::enter()?;
    let mut running = Running {
        app,
        state,
        painter: ScreenPainter::default(),
        began: Instant::now(),
        painted: None,
        dirty: true,
        figures: Figures::default(),
        kept,
        draft_due: None,
        demo: None,
        quit: false,
    };
    let ended = running.go().await;
    running.keep_draft();
    let _ = screen::write(&running.painter.leave());
    screen::leave();
    running.write_figures();
    let session = running.state.session.id.clone();
    let open = running.state.session.working || !running.state.session.questions.is_empty();
    ended.map(|()| ExitState { session, open })
}

impl Running {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX) + 1
    }

    async fn go(&mut self) -> std::io::Result<()> {
        let mut events = EventStream::new();
        let mut signals = Signals::new()?;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.paint()?;
        while !self.quit {
            let frame_due =
                self.dirty.then(|| self.painted.map_or_else(Instant::now, |at| at + FRAME));
            let wake = [frame_due, self.draft_due].into_iter().flatten().min();
            let sleep = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            let ticks = self.state.needs_ticks();
            let demo = async {
                match &mut self.demo {
                    Some(demo) => demo.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Keys come first: see `Input::Tick` in `update`. Events of the session come last,
                // because there can be many.
                biased;
                event = events.next() => match event {
                    Some(Ok(event)) => self.event(event, &mut events).await?,
                    Some(Err(error)) => return Err(error),
                    None => return Ok(()),
                },
                _ = tick.tick(), if ticks => self.input(Input::Tick, &mut events).await?,
                signal = signals.next() => match signal {
                    Signal::End => self.input(Input::Hangup, &mut events).await?,
                    Signal::Continued => self.come_back()?,
                },
                () = sleep => {}
                event = self.app.events.recv() => match event {
                    Some(event) => {
                        self.input(Input::Host(event), &mut events).await?;
                        for _ in 0..BATCH {
                            let Ok(more) = self.app.events.try_recv() else { break };
                            self.input(Input::Host(more), &mut events).await?;
                        }
                    }
                    None => return Ok(()),
                },
                event = demo => match event {
                    Some(event) if self.state.demo => self.input(Input::Host(event), &mut events).await?,
                    _ => self.demo = None,
                },
            }
            if self.draft_due.is_some_and(|at| at <= Instant::now()) {
                self.keep_draft();
            }
            if self.dirty && self.painted.is_none_or(|at| at.elapsed() >= FRAME) {
                self.paint()?;
            }
        }
        Ok(())
    }

    async fn event(&mut self, event: Event, events: &mut EventStream) -> std::io::Result<()> {
        let input = match event {
            Event::Key(key) => Input::Key(key),
            Event::Paste(text) => Input::Paste(text),
            // Use the current size: the one in the event may be outdated.
            Event::Resize(columns, rows) => {
                let (columns, rows) = crossterm::terminal::size().unwrap_or((columns, rows));
                Input::Resize(columns, rows)
            }
            Event::FocusGained => Input::Focus(true),
            Event::FocusLost => Input::Focus(false),
            Event::Mouse(_) => return Ok(()),
        };
        self.input(input, events).await
    }

    async fn input(&mut self, input: Input, events: &mut EventStream) -> std::io::Result<()> {
        if matches!(input, Input::Host(HostEvent::Opened { .. })) {
            self.keep_draft();
        }
        let typed = matches!(input, Input::Key(_) | Input::Paste(_) | Input::Edited(_));
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let now = self.now();
            for effect in update(&mut self.state, input, now) {
                if let Some(input) = self.effect(effect, events).await? {
                    next = Some(input);
                }
            }
        }
        self.dirty = true;
        self.watch_draft();
        if typed {
            self.paint()?; // show typed text at once
        }
        Ok(())
    }

    async fn effect(
        &mut self,
        effect: Effect,
        events: &mut EventStream,
    ) -> std::io::Result<Option<Input>> {
        match effect {
            Effect::Ask(ask) => {
                let _ = self.app.asks.send(ask).await;
            }
            Effect::Copy(text) => {
                let coded = base64::engine::general_purpose::STANDARD.encode(text);
                screen::write(&format!("\x1b]52;c;{coded}\x07"))?;
            }
            Effect::Call(text) => match self.app.notify {
                Notify::Off => {}
                Notify::Bell => screen::write("\x07")?,
                Notify::Osc9 => screen::write(&format!("\x07\x1b]9;{}\x07", one_line(&text)))?,
            },
            Effect::Remember(text) => {
                if self.app.keep.remember(&text).is_err() {
                    self.state.hint = "the history cannot be saved; is the disk full?".into();
                }
            }
            Effect::Editor(text) => {
                screen::write(&self.painter.leave())?;
                screen::leave();
                *events = EventStream::new(); // drops the old stream, so that it reads no keys
                let edited = edit(&self.app.program, &text).await;
                screen::enter()?;
                *events = EventStream::new();
                return Ok(Some(Input::Edited(edited)));
            }
            Effect::Demo => {
                self.state.demo = true;
                self.demo = Some(demo::play());
            }
            Effect::Suspend => self.suspend()?,
            Effect::Redraw => {
                screen::write(&self.painter.leave())?;
                self.dirty = true;
            }
            Effect::Quit => self.quit = true,
        }
        Ok(None)
    }

    /// Hands the terminal to the shell until the shell resumes us.
    fn suspend(&mut self) -> std::io::Result<()> {
        self.keep_draft();
        screen::write(&self.painter.leave())?;
        screen::leave();
        #[cfg(unix)]
        {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::TSTP,
            );
        }
        self.come_back()
    }

    /// Takes the terminal back; its contents are unknown.
    fn come_back(&mut self) -> std::io::Result<()> {
        screen::leave();
        screen::enter()?;
        self.state.size = crossterm::terminal::size()?;
        self.painter.forget();
        self.dirty = true;
        Ok(())
    }

    fn paint(&mut self) -> std::io::Result<()> {
        for panic in screen::panics_elsewhere() {
            crate::update::wrong(&mut self.state, &format!("internal error: {panic}"));
        }
        let began = Instant::now();
        let picture = view(&self.state, self.now());
        let done = std::mem::take(&mut self.state.out);
        let bytes = self.painter.paint(&done, &picture, self.state.columns(), self.state.theme);
        let took = began.elapsed();
        if !bytes.is_empty() {
            screen::write(&bytes)?;
            self.figures.frames += 1;
            self.figures.bytes += bytes.len() as u64;
            self.figures.slowest = self.figures.slowest.max(took);
            if self.app.figures.is_some() {
                self.figures.all.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
            }
        }
        self.dirty = false;
        self.painted = Some(Instant::now());
        Ok(())
    }

    fn draft_name(&self) -> String {
        self.state.session.id.as_ref().map_or_else(|| self.app.folder.clone(), ToString::to_string)
    }

    fn watch_draft(&mut self) {
        let same = self.kept.1 == self.state.field && self.kept.0 == self.draft_name();
        match (same, self.draft_due) {
            (true, _) => self.draft_due = None,
            (false, None) => self.draft_due = Some(Instant::now() + DRAFT),
            (false, Some(_)) => {}
        }
    }

    /// Saves the draft. A draft typed before the session existed moves to the session.
    fn keep_draft(&mut self) {
        self.draft_due = None;
        let name = self.draft_name();
        let field = &self.state.field;
        let text = (!field.is_empty()).then(|| field.kept().to_string());
        let mut kept = self.app.keep.set_draft(&name, text.as_deref());
        // Deletes the folder's draft once a session has it; drafts of other sessions stay.
        if self.kept.0 != name && self.kept.0 == self.app.folder && kept.is_ok() {
            kept = self.app.keep.set_draft(&self.kept.0, None);
        }
        if kept.is_err() {
            self.state.hint = "your draft cannot be saved; is the disk full?".into();
        }
        self.kept = (name, field.clone());
    }

    fn write_figures(&mut self) {
        let Some(path) = &self.app.figures else { return };
        let all = &mut self.figures.all;
        all.sort_unstable();
        let part = |percent: usize| {
            all.get((all.len() * percent / 100).min(all.len().saturating_sub(1))).copied()
        };
        let figures = serde_json::json!({
            "frames": self.figures.frames,
            "bytes": self.figures.bytes,
            "slowest_us": u64::try_from(self.figures.slowest.as_micros()).unwrap_or(u64::MAX),
            "median_us": part(50),
            "p99_us": part(99),
        });
        let _ = std::fs::write(path, figures.to_string());
    }
}

/// Runs the user's editor on a file in a private folder with a random name.
async fn edit(find: &FindProgram, text: &str) -> Result<String, String> {
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|v| !v.trim().is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".into());
    let wrong = |error: std::io::Error| format!("could not use the editor: {error}");
    let mut maker = tempfile::Builder::new();
    let folder = maker.prefix("dunnock-").tempdir().map_err(wrong)?;
    let file = folder.path().join("prompt.md");
    std::fs::write(&file, text).map_err(wrong)?;
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let failed = |error| format!("could not start {program} ({error}); set VISUAL or EDITOR");
    let mut command = tokio::process::Command::from(find(program).map_err(failed)?);
    let status = command.args(words).arg(&file).status().await.map_err(failed)?;
    if !status.success() {
        return Err(format!("{program} ended with {status}; your text is unchanged"));
    }
    std::fs::read_to_string(&file).map_err(wrong)
}

enum Signal {
    End,
    Continued,
}

/// The signals that the app handles.
struct Signals {
    #[cfg(unix)]
    ends: [tokio::signal::unix::Signal; 3],
    #[cfg(unix)]
    continued: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let ends = [SignalKind::hangup(), SignalKind::terminate(), SignalKind::interrupt()];
            let [a, b, c] = ends.map(signal);
            Ok(Self {
                ends: [a?, b?, c?],
                continued: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    async fn next(&mut self) -> Signal {
        #[cfg(unix)]
        {
            let [hangup, terminate, interrupt] = &mut self.ends;
            tokio::select! {
                _ = hangup.recv() => Signal::End,
                _ = terminate.recv() => Signal::End,
                _ = interrupt.recv() => Signal::End,
                _ = self.continued.recv() => Signal::Continued,
            }
        }
        #[cfg(not(unix))]
        {
            let _ = tokio::signal::ctrl_c().await;
            Signal::End
        }
    }
}
