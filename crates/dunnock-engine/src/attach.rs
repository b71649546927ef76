//! Clients in other processes: the owner listens on a Unix socket, one JSON object per line.
//!
//! Invariant: only the same user may connect, and both sides must speak the same version.

use crate::driver::Handle;
use crate::error::Refusal;
use dunnock_proto::{CommandRequest, Frame, Greeting, Hello, LINK_VERSION, Seq, SessionId, Up};
use serde::Serialize;
use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;

/// How long a greeting may take before the owner counts as not responding.
const PATIENCE: Duration = Duration::from_millis(500);
/// The longest command accepted, in bytes.
const LONGEST: u64 = 64 << 20;
/// The longest greeting accepted, in bytes.
const SHORT: u64 = 4 << 10;

/// Accepts other clients until the driver is gone.
pub(crate) fn listen(handle: &Handle, socket: &Path) -> std::io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let owner = std::fs::metadata(socket)?.uid();
    let handle = handle.clone();
    tokio::spawn(async move {
        let mut summary = handle.summary();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) if stream.peer_cred().is_ok_and(|peer| peer.uid() == owner) => drop(tokio::spawn(serve(handle.clone(), stream))),
                    Ok(_) => {}
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                },
                () = gone(&mut summary) => return,
            }
        }
    });
    Ok(())
}

async fn gone(summary: &mut tokio::sync::watch::Receiver<crate::driver::SessionSummary>) {
    let _ = summary.wait_for(|s| s.gone.is_some()).await;
}

async fn serve(handle: Handle, stream: UnixStream) -> Option<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read);
    let first =
        tokio::time::timeout(Duration::from_secs(5), next_line(&mut lines, SHORT)).await.ok()??;
    let hello: Hello = serde_json::from_str(&first).ok()?;
    let (link, app) = (LINK_VERSION, handle.ports.app.clone());
    if hello.link != link {
        return send(&mut write, &Greeting::Mismatch { link, app }).await;
    }
    if hello.session != handle.session {
        return send(&mut write, &Greeting::WrongSession).await;
    }
    let seq = handle.summary().borrow().seq;
    send(&mut write, &Greeting::Welcome { link, app, owner: handle.me, seq }).await?;
    let (answers, mut answered) = mpsc::channel::<Frame>(64);
    let reader = tokio::spawn(take_orders(handle.clone(), lines, answers));
    let mut frames = handle.frames(hello.from);
    loop {
        let frame = tokio::select! {
            answer = answered.recv() => match answer {
                Some(answer) => answer,
                None => break,
            },
            frame = frames.next() => match frame {
                Ok(Some(frame)) => frame,
                Ok(None) | Err(_) => break,
            },
        };
        if send(&mut write, &frame).await.is_none() {
            break;
        }
    }
    reader.abort();
    Some(())
}

async fn take_orders(
    handle: Handle,
    mut lines: BufReader<OwnedReadHalf>,
    answers: mpsc::Sender<Frame>,
) {
    while let Some(line) = next_line(&mut lines, LONGEST).await {
        let Ok(Up::Command(request)) = serde_json::from_str::<Up>(&line) else { return };
        let id = request.id.clone();
        let frame = match handle.submit(request).await {
            Some(Ok(seq)) => Frame::Accepted { id, seq },
            Some(Err((why, version, questions))) => {
                Frame::Refused { id, reason: why, version, questions }
            }
            None => return,
        };
        if answers.send(frame).await.is_err() {
            return;
        }
    }
}

/// Reads a line of at most `longest` bytes; never buffers more than that.
async fn next_line(lines: &mut BufReader<OwnedReadHalf>, longest: u64) -> Option<String> {
    let mut line = Vec::new();
    lines.take(longest).read_until(b'\n', &mut line).await.ok()?;
    if line.pop() != Some(b'\n') {
        return None;
    }
    String::from_utf8(line).ok()
}

async fn send<T: Serialize>(write: &mut OwnedWriteHalf, value: &T) -> Option<()> {
    let mut line = serde_json::to_vec(value).ok()?;
    line.push(b'\n');
    write.write_all(&line).await.ok()
}

/// A connection to a session that another process drives.
pub(crate) struct Attached {
    lines: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
    early: VecDeque<Frame>,
}

/// Why attaching failed.
pub(crate) enum NotAttached {
    /// Nobody is listening: the owner may just have died.
    Nobody,
    /// The owner exists but does not respond: it is suspended or stuck.
    Silent,
    /// The owner speaks another version.
    Mismatch(String),
}

impl Attached {
    pub(crate) async fn connect(
        socket: &Path,
        app: &str,
        session: &SessionId,
        from: Seq,
    ) -> Result<Self, NotAttached> {
        let stream = match tokio::time::timeout(PATIENCE, UnixStream::connect(socket)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(_)) => return Err(NotAttached::Nobody),
            Err(_) => return Err(NotAttached::Silent),
        };
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        let hello = Hello { link: LINK_VERSION, app: app.into(), session: session.clone(), from };
        if send(&mut write, &hello).await.is_none() {
            return Err(NotAttached::Nobody);
        }
        let line = match tokio::time::timeout(PATIENCE, lines.next_line()).await {
            Ok(Ok(Some(line))) => line,
            Ok(_) => return Err(NotAttached::Nobody),
            Err(_) => return Err(NotAttached::Silent),
        };
        match serde_json::from_str(&line) {
            Ok(Greeting::Welcome { .. }) => Ok(Self { lines, write, early: VecDeque::new() }),
            Ok(Greeting::Mismatch { link, app }) => {
                Err(NotAttached::Mismatch(format!("dunnock {app}, protocol {link}")))
            }
            Ok(Greeting::WrongSession) => Err(NotAttached::Nobody),
            Err(_) => Err(NotAttached::Mismatch("an unknown version of dunnock".into())),
        }
    }

    /// The next frame, or `None` when the owner is gone.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        match self.early.pop_front() {
            Some(frame) => Some(frame),
            None => self.read().await,
        }
    }

    async fn read(&mut self) -> Option<Frame> {
        let line = self.lines.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// Sends a command and waits for its answer; frames that arrive earlier are queued. `None` when
    /// the owner is gone.
    pub(crate) async fn submit(
        &mut self,
        request: &CommandRequest,
    ) -> Option<Result<Seq, Refusal>> {
        send(&mut self.write, &Up::Command(request.clone())).await?;
        loop {
            match self.read().await? {
                Frame::Accepted { id, seq } if id == request.id => return Some(Ok(seq)),
                Frame::Refused { id, reason: why, version, questions } if id == request.id => {
                    return Some(Err(Refusal { reason: why, version, questions }));
                }
                frame => self.early.push_back(frame),
            }
        }
    }
}
