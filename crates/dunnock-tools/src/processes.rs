//! Programs that keep running between calls: servers, watchers, interactive shells. None outlives
//! its session.

use crate::child::{Child, Chunk, Exit, Input, Start, Writer};
use crate::context::CallContext;
use crate::process::{self, Program, Watch};
use dunnock_proto::SessionId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

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
    writer: tokio::sync::Mutex<Option<Writer>>,
    state: Mutex<State>,
    changed: Notify,
    stop: Notify,
}

#[derive(Default)]
struct State {
    unread: Vec<u8>,
    dropped: u64,
    ended: Option<String>,
    /// Its launcher died, so what it did last is not known.
    lost: bool,
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
        let mut all = lock(&self.0);
        let mine = || all.iter().filter(|((session, _), _)| *session == context.session);
        let running: Vec<String> =
            mine().filter(|(_, p)| !p.over()).map(|((_, n), _)| n.to_string()).collect();
        if running.len() >= MOST {
            return Err(format!(
                "{MOST} processes are already running ({}); stop one first",
                running.join(", ")
            ));
        }
        let number = mine().map(|((_, n), _)| *n).max().unwrap_or(0) + 1;
        let (send, chunks) = mpsc::channel(16);
        let (name, start, watch): (String, Start, Watch) = program.prepare(context, input)?;
        let (child, writer) = Child::start(context, start, send)
            .map_err(|error| format!("{name} cannot be started: {error}"))?;
        let process = Arc::new(Process {
            number,
            writer: tokio::sync::Mutex::new(writer),
            state: Mutex::default(),
            changed: Notify::new(),
            stop: Notify::new(),
        });
        tokio::spawn(follow(process.clone(), child, chunks, watch));
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
        Ok(process)
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

    /// Ends all processes of a session.
    pub(crate) async fn close(&self, session: &SessionId) {
        let mut gone = Vec::new();
        lock(&self.0).retain(|(s, _), process| {
            if s == session {
                process.stop();
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

    /// Waits until it writes output or ends, or until the timeout.
    pub(crate) async fn wait(&self, most: Duration) {
        let until = tokio::time::Instant::now() + most;
        loop {
            let changed = self.changed.notified();
            {
                let state = lock(&self.state);
                if !state.unread.is_empty() || state.ended.is_some() {
                    break;
                }
            }
            if tokio::time::timeout_at(until, changed).await.is_err() {
                return;
            }
        }
        // Output that follows immediately belongs to it.
        tokio::time::sleep(Duration::from_millis(30)).await;
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

    /// Its output since the last read, and its status.
    pub(crate) fn read(&self, lines: usize, bytes: usize) -> String {
        let mut state = lock(&self.state);
        let unread = std::mem::take(&mut state.unread);
        let dropped = std::mem::take(&mut state.dropped);
        let text = String::from_utf8_lossy(&unread);
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
        match &state.ended {
            Some(how) => out.push_str(&format!("[process {}: {how}]", self.number)),
            None if out.is_empty() => {
                out.push_str(&format!("[process {} is running; no new output]", self.number));
            }
            None => out.push_str(&format!("[process {} is running]", self.number)),
        }
        out
    }
}

/// Collects its output until it and everything it started are gone.
async fn follow(
    process: Arc<Process>,
    mut child: Child,
    mut chunks: mpsc::Receiver<Chunk>,
    mut watch: Watch,
) {
    let take = |chunk: Chunk| {
        let mut state = lock(&process.state);
        state.unread.extend_from_slice(&chunk.bytes);
        let over = state.unread.len().saturating_sub(UNREAD);
        state.unread.drain(..over);
        state.dropped += over as u64;
        drop(state);
        process.changed.notify_waiters();
    };
    let mut ticks = tokio::time::interval(process::LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let exit: Option<Exit> = loop {
        tokio::select! {
            biased;
            () = process.stop.notified() => break process::stop(&mut child).await,
            _ = ticks.tick() => watch.look(),
            Some(chunk) = chunks.recv() => take(chunk),
            exit = child.ended() => break Some(exit),
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
        Some(Exit::Lost) => process::LOST.into(),
        None => "ended".into(),
    };
    let unread = String::from_utf8_lossy(&lock(&process.state).unread).into_owned();
    let more = watch.over(how != "exit 0", &unread);
    if !more.is_empty() {
        take(Chunk { stream: "err", bytes: format!("{more}\n").into_bytes() });
    }
    let mut state = lock(&process.state);
    state.lost = lost;
    state.ended = Some(how);
    drop(state);
    process.changed.notify_waiters();
}
