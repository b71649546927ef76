//! Programs that keep running between calls: servers, watchers, interactive programs, slow commands,
//! and what a command left running. They end with their session, unless the person lets them
//! continue.

use crate::child::{Child, Chunk, Exit, Input, Start, Writer};
use crate::context::CallContext;
use crate::output::ToolOutput;
use crate::process::{self, Program, Ran, RunningProgram, Watch, WhenSlow};
use crate::terminal_text;
use dunnock_proto::SessionId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// How long output may pause before it counts as complete.
const QUIET: Duration = Duration::from_secs(2);
/// The same after a line without an end: a program that asks something writes one.
const PROMPT: Duration = Duration::from_millis(150);
/// How long to wait for what a command left running: a server that cannot start says so at once.
const AT_ONCE: Duration = Duration::from_millis(300);
/// Maximum running processes of one session.
const MOST: usize = 8;
/// Maximum bytes of unread output; the oldest are dropped first.
const UNREAD: usize = 256 << 10;

/// All processes that keep running between calls.
#[derive(Default)]
pub(crate) struct Processes(Mutex<BTreeMap<(SessionId, u32), Arc<Process>>>);

/// One such process.
pub(crate) struct Process {
    /// The number that the model uses for it.
    pub(crate) number: u32,
    /// The command.
    label: String,
    /// A command that was slow: a reader waits for its end, not for a pause in its output.
    ends_by_itself: bool,
    /// It continues when the session ends.
    kept: bool,
    /// It can be reached from outside the sandbox.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no sandbox"))]
    public: bool,
    #[cfg(target_os = "linux")]
    lister: dunnock_sandbox::Lister,
    writer: tokio::sync::Mutex<Option<Writer>>,
    /// Guards protected files as long as it runs. Held while an edit tool changes some.
    watch: Arc<tokio::sync::Mutex<Watch>>,
    terminal: bool,
    state: Mutex<State>,
    changed: Notify,
    stop: Notify,
    release: Notify,
}

struct State {
    unread: Vec<u8>,
    dropped: u64,
    /// How much it has written.
    written: u64,
    /// When it last wrote something.
    wrote: Instant,
    /// The screen of its terminal.
    screen: Option<Box<vt100::Parser>>,
    /// How the command ended, if something that it started still runs.
    own_end: Option<String>,
    ended: Option<String>,
    /// Its launcher died, so what it did last is not known.
    lost: bool,
}

/// Runs a program until it ends. What it leaves running becomes a process of the session, and so
/// does a program that is slow; one that has a timeout of its own is stopped then.
pub(crate) async fn run_in_session(
    context: &CallContext,
    processes: &Processes,
    program: Program,
    timeout: Option<Duration>,
) -> ToolOutput {
    let most = timeout.unwrap_or(context.limits.command).min(context.limits.command_most);
    let when_slow = if timeout.is_some() { WhenSlow::Stop } else { WhenSlow::Continue };
    match process::run_until(context, program.lasting(), most, when_slow).await {
        Ran::Ended(output) => output,
        Ran::Continues(mut output, running) => {
            let (left, note) = processes.adopt(context, *running).await;
            output.left_process = left;
            output.add(&note);
            output
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Processes {
    /// Starts a process that keeps running after the call.
    pub(crate) fn start(
        &self,
        context: &CallContext,
        program: Program,
        input: Input,
    ) -> Result<Arc<Process>, String> {
        self.room(context)?;
        let (send, chunks) = mpsc::channel(16);
        let program = program.lasting();
        let label = program.label();
        let (name, start, watch): (String, Start, Watch) = program.prepare(context, input)?;
        let (child, writer) = Child::start(context, start, send)
            .map_err(|error| format!("{name} cannot be started: {error}"))?;
        let program = RunningProgram { label, child, chunks, watch, ends_by_itself: false };
        Ok(self.insert(context, program, writer, input == Input::Terminal))
    }

    /// Makes a program that is still running a process of the session. Returns whether it is still
    /// there, and what to tell the model.
    pub(crate) async fn adopt(
        &self,
        context: &CallContext,
        program: RunningProgram,
    ) -> (bool, String) {
        if let Err(why) = self.room(context) {
            let RunningProgram { mut child, mut watch, .. } = program;
            process::stop(&mut child).await;
            let more = watch.over(false, "");
            return (
                false,
                format!("[stopped the processes that this command left running: {why}]\n{more}"),
            );
        }
        let slow = program.ends_by_itself;
        let process = self.insert(context, program, None, false);
        let number = process.number;
        if slow {
            let most = context.limits.command.as_secs();
            return (
                true,
                format!(
                    "[still running after {most} s, now as process {number}: read it with a wait, \
                     which ends when it ends, or stop it]"
                ),
            );
        }
        process.end(AT_ONCE).await;
        let text = process.unread(context.limits.output_lines, context.limits.output_bytes);
        let left = !process.over();
        let note = match left {
            true => format!("[process {number} is still running: {}]", process.about().await),
            false if text.is_empty() => String::new(),
            false => "[what it had left running has ended]".to_owned(),
        };
        if !left {
            lock(&self.0).remove(&(context.session.clone(), number));
        }
        (left, format!("{text}{note}"))
    }

    /// Whether another process may run.
    fn room(&self, context: &CallContext) -> Result<(), String> {
        let all = lock(&self.0);
        let mine = all.iter().filter(|((session, _), _)| *session == context.session);
        let running: Vec<String> =
            mine.filter(|(_, p)| !p.over()).map(|((_, n), _)| n.to_string()).collect();
        if running.len() < MOST {
            return Ok(());
        }
        Err(format!(
            "{MOST} processes are already running ({}); stop one first",
            running.join(", ")
        ))
    }

    fn insert(
        &self,
        context: &CallContext,
        program: RunningProgram,
        writer: Option<Writer>,
        terminal: bool,
    ) -> Arc<Process> {
        let RunningProgram { label, child, chunks, watch, ends_by_itself } = program;
        #[cfg(target_os = "linux")]
        let (mut child, kept) = (child, crate::process::kept(context, &label));
        #[cfg(not(target_os = "linux"))]
        let kept: Option<()> = None;
        let mut all = lock(&self.0);
        let mine = all.keys().filter(|(session, _)| *session == context.session);
        let number = mine.map(|(_, n)| *n).max().unwrap_or(0) + 1;
        let process = Arc::new(Process {
            number,
            label,
            ends_by_itself,
            kept: kept.is_some(),
            public: context.access.network || context.level == dunnock_proto::Isolation::D,
            #[cfg(target_os = "linux")]
            lister: child.lister(),
            writer: tokio::sync::Mutex::new(writer),
            watch: Arc::new(tokio::sync::Mutex::new(watch)),
            terminal,
            state: Mutex::new(State {
                unread: Vec::new(),
                dropped: 0,
                written: 0,
                wrote: Instant::now(),
                screen: terminal.then(|| Box::new(vt100::Parser::new(40, 120, 0))),
                own_end: None,
                ended: None,
                lost: false,
            }),
            changed: Notify::new(),
            stop: Notify::new(),
            release: Notify::new(),
        });
        #[cfg(target_os = "linux")]
        child.background(kept);
        tokio::spawn(follow(process.clone(), child, chunks));
        // Forget ended processes: first those whose output was read to the end, then the oldest.
        all.retain(|(session, _), p| {
            *session != context.session || !p.over() || !lock(&p.state).unread.is_empty()
        });
        let over: Vec<_> = all
            .iter()
            .filter(|((s, _), p)| *s == context.session && p.over())
            .map(|(k, _)| k.clone())
            .collect();
        over.iter().rev().skip(MOST).for_each(|key| drop(all.remove(key)));
        all.insert((context.session.clone(), number), process.clone());
        process
    }

    /// All processes of the session, a line each.
    pub(crate) async fn list(&self, context: &CallContext) -> String {
        let mine: Vec<Arc<Process>> = {
            let all = lock(&self.0);
            let mine = all.iter().filter(|((session, _), _)| *session == context.session);
            mine.map(|(_, process)| process.clone()).collect()
        };
        let mut lines = Vec::new();
        for process in mine {
            let ended = lock(&process.state).ended.clone();
            let state = match ended {
                Some(how) => how,
                None => format!("running: {}", process.about().await),
            };
            let label = process.label.lines().next().unwrap_or_default();
            lines.push(format!("{}: {label} [{state}]", process.number));
        }
        if lines.is_empty() { "no process is running".into() } else { lines.join("\n") }
    }

    pub(crate) fn find(&self, context: &CallContext, number: u32) -> Result<Arc<Process>, String> {
        let all = lock(&self.0);
        all.get(&(context.session.clone(), number)).cloned().ok_or_else(|| {
            let mine = all.keys().filter(|(session, _)| *session == context.session);
            let numbers: Vec<String> = mine.map(|(_, n)| n.to_string()).collect();
            match numbers.is_empty() {
                true => "there is no process; start one with process_start (processes do not \
                         survive a restart of the agent)"
                    .into(),
                false => {
                    format!("there is no process {number}; known processes: {}", numbers.join(", "))
                }
            }
        })
    }

    /// What runs in the background of a session, a line each.
    pub(crate) fn running(&self, session: &SessionId) -> Vec<String> {
        let all = lock(&self.0);
        let mine = all.iter().filter(|((of, _), process)| of == session && !process.over());
        mine.map(|((_, number), process)| {
            let label = process.label.lines().next().unwrap_or_default();
            format!("process {number} ({label})")
        })
        .collect()
    }

    /// Stops the guards of a session's processes until the returned values are dropped.
    pub(crate) async fn hold_guards(
        &self,
        session: &SessionId,
    ) -> Vec<tokio::sync::OwnedMutexGuard<Watch>> {
        let mine: Vec<Arc<Process>> = {
            let all = lock(&self.0);
            let running = all.iter().filter(|((of, _), process)| of == session && !process.over());
            running.map(|(_, process)| process.clone()).collect()
        };
        let mut held = Vec::new();
        for process in mine {
            held.push(process.watch.clone().lock_owned().await);
        }
        held
    }

    /// Ends all processes of a session that are not kept.
    pub(crate) async fn close(&self, session: &SessionId) {
        let mut gone = Vec::new();
        lock(&self.0).retain(|(s, _), process| {
            if s == session {
                if process.kept {
                    process.release.notify_one();
                } else {
                    process.stop();
                }
                gone.push(process.clone());
            }
            s != session
        });
        for process in gone {
            process.end(Duration::from_secs(8)).await;
        }
    }
}

impl Process {
    fn over(&self) -> bool {
        lock(&self.state).ended.is_some()
    }

    /// Whether it ended in a way that leaves its outcome unknown.
    pub(crate) fn lost(&self) -> bool {
        lock(&self.state).lost
    }

    /// Asks it to end, without waiting.
    pub(crate) fn stop(&self) {
        self.stop.notify_one();
    }

    /// Writes to its input.
    pub(crate) async fn write(&self, text: String) -> Result<(), String> {
        let mut writer = self.writer.lock().await;
        let Some(writer) = writer.as_mut() else { return Err("it has no standard input".into()) };
        match tokio::time::timeout(Duration::from_secs(10), writer.write(text)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("its standard input cannot be written to: {error}")),
            Err(_) => Err("it did not read its standard input within 10 seconds".into()),
        }
    }

    /// How many bytes it has written.
    pub(crate) fn written(&self) -> u64 {
        lock(&self.state).written
    }

    /// Waits until it ends, asks for input, or pauses after it has written more than this; at most
    /// this long.
    pub(crate) async fn wait(&self, most: Duration, written: u64) {
        let until = Instant::now() + most;
        loop {
            let changed = self.changed.notified();
            let pause = {
                let state = lock(&self.state);
                let is_over = self.ends_by_itself && state.own_end.is_some();
                if state.ended.is_some() || is_over {
                    return;
                }
                let is_silent = state.unread.is_empty() || state.written <= written;
                let asks = state.unread.last().is_some_and(|last| *last != b'\n');
                let quiet = match (is_silent, asks, self.ends_by_itself) {
                    (true, ..) | (_, false, true) => None,
                    (_, true, true) | (_, false, false) => Some(QUIET),
                    (_, true, false) => Some(PROMPT),
                };
                quiet.map(|quiet| state.wrote + quiet)
            };
            let next = pause.map_or(until, |pause| pause.min(until));
            if tokio::time::timeout_at(next, changed).await.is_err() {
                return;
            }
        }
    }

    /// Waits until it has ended, or until the timeout.
    pub(crate) async fn end(&self, most: Duration) {
        let until = tokio::time::Instant::now() + most;
        while !self.over() {
            let changed = self.changed.notified();
            if self.over() || tokio::time::timeout_at(until, changed).await.is_err() {
                return;
            }
        }
    }

    /// Its output since the last read.
    pub(crate) fn unread(&self, lines: usize, bytes: usize) -> String {
        let mut state = lock(&self.state);
        let unread = std::mem::take(&mut state.unread);
        let dropped = std::mem::take(&mut state.dropped);
        drop(state);
        let text = String::from_utf8_lossy(&unread);
        let text = if self.terminal { terminal_text::plain(&text) } else { text.into_owned() };
        let mut out = String::new();
        if dropped > 0 {
            out.push_str(&format!(
                "[{dropped} bytes of older output were dropped; read more often]\n"
            ));
        }
        out.push_str(&process::shortened(&text, lines, bytes));
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out
    }

    /// Its output since the last read, and its status.
    pub(crate) fn read(&self, lines: usize, bytes: usize) -> String {
        let (ended, own_end) = {
            let state = lock(&self.state);
            (state.ended.clone(), state.own_end.clone())
        };
        let mut out = self.unread(lines, bytes);
        match ended {
            None if own_end.is_some() => out.push_str(&format!(
                "[process {}: the command ended with {}; what it started is still running]",
                self.number,
                own_end.unwrap_or_default()
            )),
            Some(how) => out.push_str(&format!("[process {}: {how}]", self.number)),
            None if out.is_empty() => {
                out.push_str(&format!("[process {} is running; no new output]", self.number));
            }
            None => out.push_str(&format!("[process {} is running]", self.number)),
        }
        out
    }

    /// The screen of its terminal, and its status. The output counts as read.
    pub(crate) fn screen(&self) -> Result<String, String> {
        let mut state = lock(&self.state);
        state.unread.clear();
        state.dropped = 0;
        let Some(screen) = state.screen.as_ref().map(|parser| parser.screen()) else {
            return Err("it has no terminal; start it with terminal: true".into());
        };
        let (row, column) = screen.cursor_position();
        let rows: Vec<String> = screen.rows(0, 120).map(|row| row.trim_end().to_owned()).collect();
        let filled = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
        let text = rows.get(..filled).unwrap_or_default().join("\n");
        let state = state.ended.as_deref().unwrap_or("running");
        Ok(format!(
            "{text}\n[process {}: {state}; cursor at row {}, column {}]",
            self.number,
            row + 1,
            column + 1
        ))
    }

    /// Whether it has a terminal.
    pub(crate) fn has_terminal(&self) -> bool {
        self.terminal
    }

    /// What runs, on which ports, and how long it stays.
    async fn about(&self) -> String {
        #[cfg(target_os = "linux")]
        let programs = crate::process::described(&self.lister.programs().await);
        #[cfg(not(target_os = "linux"))]
        let programs = self.label.lines().next().unwrap_or_default().to_owned();
        let stays = match self.kept {
            false => "it ends with the session",
            #[cfg(target_os = "linux")]
            true if !self.public => {
                "it continues after the session, but then nothing can connect to it, because it has \
                 no network access"
            }
            true => "it continues after the session",
        };
        format!("{programs}; {stays}")
    }
}

/// Collects its output until it and everything it started are gone.
async fn follow(process: Arc<Process>, mut child: Child, mut chunks: mpsc::Receiver<Chunk>) {
    let take = |chunk: Chunk| {
        let mut state = lock(&process.state);
        state.unread.extend_from_slice(&chunk.bytes);
        let over = state.unread.len().saturating_sub(UNREAD);
        state.unread.drain(..over);
        state.dropped += over as u64;
        state.written += chunk.bytes.len() as u64;
        state.wrote = Instant::now();
        if let Some(screen) = &mut state.screen {
            screen.process(&chunk.bytes);
        }
        drop(state);
        process.changed.notify_waiters();
    };
    let mut ticks = tokio::time::interval(process::LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // How its own process ended, if what it left running continues.
    let mut own: Option<Exit> = None;
    let exit: Option<Exit> = loop {
        tokio::select! {
            biased;
            () = process.stop.notified() => break process::stop(&mut child).await,
            () = process.release.notified() => {
                // From here on, nothing guards protected files.
                let _ = process.watch.lock().await.over(false, "");
                #[cfg(target_os = "linux")]
                child.release();
                lock(&process.state).ended = Some("continues without this session".into());
                process.changed.notify_waiters();
                // Its output is read as long as this program runs, so that it does not stop.
                while chunks.recv().await.is_some() {}
                return;
            }
            _ = ticks.tick() => {
                if let Ok(watch) = process.watch.try_lock() {
                    watch.look();
                }
            }
            Some(chunk) = chunks.recv() => take(chunk),
            exit = child.ended() => match exit {
                Exit::Continues(code, signal) => {
                    let how = match code {
                        Some(code) => format!("exit {code}"),
                        None => format!("signal {signal}"),
                    };
                    lock(&process.state).own_end = Some(how);
                    process.changed.notify_waiters();
                    own = Some(exit);
                }
                exit @ (Exit::TooMuch(_) | Exit::Lost) => break Some(exit),
                exit => break Some(own.take().unwrap_or(exit)),
            },
        }
    };
    let last = async {
        while let Some(chunk) = chunks.recv().await {
            take(chunk);
        }
    };
    let _ = tokio::time::timeout(process::LAST_WORDS, last).await;
    let lost = exit == Some(Exit::Lost);
    let how = match exit {
        Some(Exit::Code(code, _)) => format!("exit {code}"),
        Some(Exit::Signal(signal, _)) => format!("ended by signal {signal}"),
        Some(Exit::TooMuch(what)) => format!("ended: it used more {what} than allowed"),
        Some(Exit::NotStarted(why)) => format!("could not be started: {why}"),
        Some(Exit::Continues(Some(code), _)) => format!("exit {code}"),
        Some(Exit::Continues(None, signal)) => format!("ended by signal {signal}"),
        Some(Exit::Lost) => process::LOST.into(),
        None => "ended".into(),
    };
    let unread = String::from_utf8_lossy(&lock(&process.state).unread).into_owned();
    let more = process.watch.lock().await.over(how != "exit 0", &unread);
    if !more.is_empty() {
        take(Chunk { stream: "err", bytes: format!("{more}\n").into_bytes() });
    }
    let mut state = lock(&process.state);
    state.lost = lost;
    state.ended = Some(how);
    drop(state);
    process.changed.notify_waiters();
}
