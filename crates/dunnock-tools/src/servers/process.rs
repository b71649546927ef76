//! The process of a server: a child of the launcher whose standard input and output carry the
//! protocol.

use crate::child::{Child, Chunk, Exit, Input, Writer};
use crate::context::CallContext;
use crate::process::{self, Program, Watch};
use dunnock_mcp::{ServerAccess, ServerConfig, ServerStart};
use dunnock_ports::CancellationToken;
use dunnock_proto::Access;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{
    AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, SimplexStream, WriteHalf, simplex,
};
use tokio::sync::{Notify, mpsc, watch};

/// How much of each direction is held in memory.
const BUFFER: usize = 64 << 10;
/// How many lines of its standard error are kept, and how long each is.
const LINES: usize = 20;
const MOST_LINE: usize = 400;
/// How long a server may take to end after its standard input has ended.
const GRACE: Duration = Duration::from_millis(500);

/// The longest message of a server, in bytes.
const MOST_MESSAGE: usize = 8 << 20;
/// The most objects and lists in a message: each of them takes memory of its own.
const MOST_PARTS: usize = 30_000;
/// The most values in it.
const MOST_VALUES: usize = 200_000;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server that runs.
pub(super) struct ServerProcess {
    /// Guards protected files while it runs.
    pub(super) watch: Arc<tokio::sync::Mutex<Watch>>,
    stop: Arc<Notify>,
    /// How it ended.
    ended: watch::Receiver<Option<String>>,
    stderr: Arc<Mutex<Tail>>,
    /// How many messages were too large.
    oversized: watch::Receiver<u64>,
}

/// Its standard output and its standard input.
pub(super) type Pipes = (ReadHalf<SimplexStream>, WriteHalf<SimplexStream>);

/// The last lines of its standard error.
#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
    part: Vec<u8>,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                let line = String::from_utf8_lossy(&self.part).trim_end().to_owned();
                self.part.clear();
                self.lines.push_back(line);
                if self.lines.len() > LINES {
                    self.lines.pop_front();
                }
            } else if self.part.len() < MOST_LINE {
                self.part.push(*byte);
            }
        }
    }

    fn text(&self) -> String {
        let mut lines: Vec<String> = self.lines.iter().cloned().collect();
        lines.push(String::from_utf8_lossy(&self.part).into_owned());
        lines.retain(|line| !line.trim().is_empty());
        lines.join("\n")
    }
}

impl ServerProcess {
    /// Starts the program of a server in the sandbox, with these variables and exactly the access
    /// of its settings.
    pub(super) fn start(
        context: &CallContext,
        config: &ServerConfig,
        variables: Vec<(String, String)>,
    ) -> Result<(Self, Pipes), String> {
        let ServerStart::Command { words, .. } = &config.start else {
            return Err("it has no command".into());
        };
        let ServerAccess { network, hosts, write, read } = &config.access;
        let context = CallContext {
            access: Access { network: *network, hosts: hosts.clone(), ..Access::NOTHING },
            // The person opened these for commands, not for servers.
            open_hosts: Default::default(),
            halt: CancellationToken::new(),
            live: Arc::new(|_| {}),
            ..context.clone()
        };
        let mut program = Program::words(words.clone());
        // What reaches more than commands do must not run code that a command can write.
        let is_trusted = *network || !hosts.is_empty() || !variables.is_empty();
        if is_trusted {
            check_words(words, context.root.path())?;
            program = program.within("/".into());
        }
        let (name, mut start, mut watch) = program.prepare(&context, Input::Pipe)?;
        if is_trusted {
            // Its name may have been found in a folder of the workspace.
            check_words(start.words.get(..1).unwrap_or_default(), context.root.path())?;
        }
        if !write {
            // It changes nothing, so what changes is somebody else's doing.
            watch = Watch::default();
        }
        start.env.retain(|(name, _)| !variables.iter().any(|(own, _)| own == name));
        start.env.extend(variables);
        if let Some(spec) = &mut start.spec {
            if !write {
                spec.writes = false;
                spec.build.clear();
                spec.repository.clear();
            }
            spec.readable.extend(read.iter().cloned());
        }
        let (send, chunks) = mpsc::channel(16);
        let (child, writer) = Child::start(&context, start, send)
            .map_err(|error| format!("{name} cannot be started: {error}"))?;
        let writer = writer.ok_or("it has no standard input")?;
        let (out, to_out) = simplex(BUFFER);
        let (from_in, into) = simplex(BUFFER);
        let stderr = Arc::new(Mutex::new(Tail::default()));
        let watch = Arc::new(tokio::sync::Mutex::new(watch));
        let stop = Arc::new(Notify::new());
        let (tell, ended) = watch_channel();
        let (count, oversized) = watch::channel(0);
        tokio::spawn(forward_output(chunks, to_out, stderr.clone(), count));
        tokio::spawn(forward_input(from_in, writer));
        tokio::spawn(follow(child, watch.clone(), stop.clone(), tell));
        Ok((Self { watch, stop, ended, stderr, oversized }, (out, into)))
    }

    /// The last lines that it wrote to its standard error.
    pub(super) fn stderr(&self) -> String {
        lock(&self.stderr).text()
    }

    /// How it ended, if it did.
    pub(super) fn ended(&self) -> Option<String> {
        self.ended.borrow().clone()
    }

    /// Waits until it sends a message that is too large.
    pub(super) async fn oversized(&self) {
        let mut count = self.oversized.clone();
        let before = *count.borrow_and_update();
        if count.wait_for(|now| *now > before).await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits until it has ended.
    pub(super) async fn end(&self) {
        let mut ended = self.ended.clone();
        let _ = ended.wait_for(Option::is_some).await;
    }

    /// Waits a moment until it ends by itself, then ends it.
    pub(super) async fn close(&self) {
        if tokio::time::timeout(GRACE, self.end()).await.is_err() {
            self.stop.notify_one();
            self.end().await;
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

/// Refuses words that name files in the workspace, which the model can change.
fn check_words(words: &[String], workspace: &Path) -> Result<(), String> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let is_inside = |word: &&String| {
        let path = Path::new(word.as_str());
        let is_relative = word.starts_with("./") || word.starts_with("../");
        is_relative
            || path.is_absolute()
                && path.is_file()
                && (path.starts_with(workspace) || real(path).starts_with(real(workspace)))
    };
    match words.iter().find(is_inside) {
        None => Ok(()),
        Some(word) => Err(format!(
            "{word} is a file of the workspace, which the model can change, so it does not run with \
             network access or variables of yours; move it elsewhere, or remove network, hosts and \
             env from its settings"
        )),
    }
}

fn watch_channel() -> (watch::Sender<Option<String>>, watch::Receiver<Option<String>>) {
    watch::channel(None)
}

/// Cuts off messages that are too large, before anything reads them.
#[derive(Default)]
struct MessageLimiter {
    bytes: usize,
    parts: usize,
    values: usize,
    in_text: bool,
    after_backslash: bool,
    /// The rest of the message is dropped.
    is_over: bool,
}

impl MessageLimiter {
    /// What may be passed on. The second value says how many messages were cut off.
    fn pass(&mut self, bytes: Vec<u8>) -> (Vec<u8>, u64) {
        if self.is_over && !bytes.contains(&b'\n') {
            return (Vec::new(), 0);
        }
        let mut passed = Vec::with_capacity(bytes.len());
        let mut cut = 0;
        for byte in bytes {
            if byte == b'\n' {
                *self = Self::default();
                passed.push(byte);
                continue;
            }
            if self.is_over {
                continue;
            }
            self.bytes += 1;
            match byte {
                _ if self.after_backslash => self.after_backslash = false,
                b'\\' if self.in_text => self.after_backslash = true,
                b'"' => self.in_text = !self.in_text,
                b'{' | b'[' if !self.in_text => self.parts += 1,
                b',' if !self.in_text => self.values += 1,
                _ => {}
            }
            let is_large = self.parts > MOST_PARTS || self.values > MOST_VALUES;
            if self.bytes > MOST_MESSAGE || is_large {
                // What was passed on is no JSON, and is ignored.
                self.is_over = true;
                cut += 1;
                continue;
            }
            passed.push(byte);
        }
        (passed, cut)
    }
}

/// Passes its standard output on, and keeps the end of its standard error.
async fn forward_output(
    mut chunks: mpsc::Receiver<Chunk>,
    mut to: WriteHalf<SimplexStream>,
    stderr: Arc<Mutex<Tail>>,
    oversized: watch::Sender<u64>,
) {
    let mut measure = MessageLimiter::default();
    while let Some(mut chunk) = chunks.recv().await {
        if chunk.stream != "err" {
            let (passed, cut) = measure.pass(chunk.bytes);
            chunk.bytes = passed;
            if cut > 0 {
                oversized.send_modify(|count| *count += cut);
            }
        }
        if chunk.stream == "err" {
            lock(&stderr).push(&chunk.bytes);
        } else if to.write_all(&chunk.bytes).await.is_err() {
            // Nobody reads any more; it must not stop because of a full pipe.
            while chunks.recv().await.is_some() {}
            return;
        }
    }
    let _ = to.shutdown().await;
}

/// Passes messages to its standard input, which ends with them.
async fn forward_input(mut from: ReadHalf<SimplexStream>, mut writer: Writer) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        let bytes = buffer.get(..n).unwrap_or_default();
        if writer.write_bytes(bytes).await.is_err() {
            return;
        }
    }
}

/// Watches over a server until it has ended.
async fn follow(
    mut child: Child,
    watch: Arc<tokio::sync::Mutex<Watch>>,
    stop: Arc<Notify>,
    tell: watch::Sender<Option<String>>,
) {
    let mut ticks = tokio::time::interval(process::LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let exit = loop {
        tokio::select! {
            biased;
            () = stop.notified() => break process::stop(&mut child).await,
            _ = ticks.tick() => {
                if let Ok(watch) = watch.try_lock() {
                    watch.look();
                }
            }
            exit = child.ended() => match exit {
                Exit::Continues(..) => {}
                exit => break Some(exit),
            },
        }
    };
    let mut how = match exit {
        Some(Exit::Code(code, _)) => format!("exit {code}"),
        Some(Exit::Signal(signal, _)) => format!("signal {signal}"),
        Some(Exit::TooMuch(what)) => format!("it used more {what} than allowed"),
        Some(Exit::NotStarted(why)) => format!("it could not be started: {why}"),
        Some(Exit::Lost) => "the process that starts commands died".into(),
        Some(Exit::Continues(..)) | None => "stopped".into(),
    };
    let reverted = watch.lock().await.over(false, "");
    if !reverted.is_empty() {
        how = format!("{how}; {reverted}");
    }
    let _ = tell.send(Some(how));
}
