//! What an interface holds: a session that this process drives or is attached to, without having to
//! know which.
//!
//! When the owner's process ends, an attached client takes over and continues from the last event
//! it has seen.

#[cfg(unix)]
use crate::attach::{Attached, NotAttached};
use crate::driver::{Driver, Handle};
use crate::error::{ConnectError, Refusal};
use crate::hub::Frames;
use crate::ports::Ports;
use crate::session_pool::{SessionPool, SessionRef};
use dunnock_proto::{Command, CommandRequest, Frame, InputId, Seq, SessionId};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How long a client keeps trying when the owner neither responds nor is gone.
const TRY_FOR: Duration = Duration::from_secs(2);

/// The same when the owner is stopped.
const STOPPED_FOR: Duration = Duration::from_millis(500);

enum Inner {
    Own {
        handle: Handle,
        frames: Frames,
        /// Keeps a driver that is shared with other clients alive.
        _guest: Option<SessionRef>,
    },
    #[cfg(unix)]
    Far(Attached),
}

/// A connection to a session.
pub struct Connection {
    ports: Ports,
    /// The pool of this process, if the driver is shared.
    pool: Option<Arc<SessionPool>>,
    session: SessionId,
    seen: Seq,
    inner: Inner,
    /// A takeover in progress. A caller that stops waiting for it must not start a second one. It
    /// is a task of its own: a future that nobody polls would keep the locks that it holds.
    reaching: Option<Reaching>,
}

/// A task that ends with the connection.
struct Reaching(JoinHandle<Result<Inner, ConnectError>>);

impl Drop for Reaching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    /// Opens a session: drives it if no process does, attaches to it otherwise. Frames start after
    /// the event `from`.
    ///
    /// # Errors
    /// If the log or the folders cannot be used, or the owner cannot be reached.
    pub async fn open(ports: Ports, session: SessionId, from: Seq) -> Result<Self, ConnectError> {
        Self::new(None, ports, session, from).await
    }

    /// Opens one of many connections of this process.
    pub(crate) async fn through(
        pool: Arc<SessionPool>,
        ports: Ports,
        session: SessionId,
        from: Seq,
    ) -> Result<Self, ConnectError> {
        Self::new(Some(pool), ports, session, from).await
    }

    async fn new(
        pool: Option<Arc<SessionPool>>,
        ports: Ports,
        session: SessionId,
        seen: Seq,
    ) -> Result<Self, ConnectError> {
        let inner = reach(ports.clone(), pool.clone(), session.clone(), seen).await?;
        Ok(Self { ports, pool, session, seen, inner, reaching: None })
    }

    /// Attaches to a session that another process drives; `None` if no process does. Never drives
    /// it, even if its owner leaves at this moment.
    ///
    /// # Errors
    /// If the owner cannot be reached.
    pub async fn join(
        ports: Ports,
        session: SessionId,
        from: Seq,
    ) -> Result<Option<Self>, ConnectError> {
        let began = Instant::now();
        loop {
            if let Some(inner) = attach(&ports, &session, from).await? {
                let (pool, seen, reaching) = (None, from, None);
                return Ok(Some(Self { ports, pool, session, seen, inner, reaching }));
            }
            if !ports.ownership.is_driven(&session).await? {
                return Ok(None);
            }
            pause(&ports, &session, began).await?;
        }
    }

    /// The driver, if it is in this process.
    #[must_use]
    pub fn handle(&self) -> Option<&Handle> {
        match &self.inner {
            Inner::Own { handle, .. } => Some(handle),
            #[cfg(unix)]
            Inner::Far(_) => None,
        }
    }

    /// The next frame. Events arrive in order and without gaps, whichever process drives; a change
    /// of owner is not visible.
    ///
    /// # Errors
    /// If the session can no longer be reached.
    pub async fn next(&mut self) -> Result<Frame, ConnectError> {
        loop {
            let frame = match &mut self.inner {
                Inner::Own { frames, .. } => frames.next().await?,
                #[cfg(unix)]
                Inner::Far(far) => far.next().await,
            };
            match frame {
                Some(Frame::Event(record)) if record.envelope.seq <= self.seen => {}
                Some(Frame::Event(record)) => {
                    self.seen = record.envelope.seq;
                    return Ok(Frame::Event(record));
                }
                Some(Frame::Closing | Frame::Lagged) | None => self.reach_again().await?,
                Some(
                    frame @ (Frame::Partial(_)
                    | Frame::Delta(_)
                    | Frame::Accepted { .. }
                    | Frame::Refused { .. }),
                ) => {
                    return Ok(frame);
                }
            }
        }
    }

    async fn reach_again(&mut self) -> Result<(), ConnectError> {
        if let Inner::Own { handle, frames, .. } = &mut self.inner
            && handle.summary().borrow().gone.is_none()
        {
            *frames = handle.frames(self.seen); // only this subscriber was cut off
            return Ok(());
        }
        self.reach().await
    }

    /// Finds the owner again, or becomes it.
    async fn reach(&mut self) -> Result<(), ConnectError> {
        let reaching = self.reaching.get_or_insert_with(|| {
            let (ports, pool) = (self.ports.clone(), self.pool.clone());
            Reaching(tokio::spawn(reach(ports, pool, self.session.clone(), self.seen)))
        });
        let inner = (&mut reaching.0).await;
        self.reaching = None;
        self.inner = inner.map_err(|_| ConnectError::ShuttingDown)??;
        Ok(())
    }

    /// Sends a command with a new id; see [`Connection::submit`].
    ///
    /// # Errors
    /// As there.
    pub async fn send(&mut self, command: Command) -> Result<Result<Seq, Refusal>, ConnectError> {
        self.expecting(None, command).await
    }

    /// The same, but refused unless the session is at this version.
    ///
    /// # Errors
    /// As there.
    pub async fn expecting(
        &mut self,
        expect: Option<Seq>,
        command: Command,
    ) -> Result<Result<Seq, Refusal>, ConnectError> {
        let id = InputId::from_random(self.ports.clock.random());
        self.submit(CommandRequest { id, expect, command }).await
    }

    /// Sends a command and waits until it is durable or refused. If the owner dies meanwhile, it is
    /// sent again with the same id to the next owner, so it is executed only once.
    ///
    /// # Errors
    /// If the session can no longer be reached.
    pub async fn submit(
        &mut self,
        request: CommandRequest,
    ) -> Result<Result<Seq, Refusal>, ConnectError> {
        loop {
            let answer = match &mut self.inner {
                Inner::Own { handle, .. } => handle.submit(request.clone()).await.map(|answer| {
                    answer.map_err(|(why, version, questions)| Refusal {
                        reason: why,
                        version,
                        questions,
                    })
                }),
                #[cfg(unix)]
                Inner::Far(far) => far.submit(&request).await,
            };
            match answer {
                Some(answer) => return Ok(answer),
                None => {
                    tokio::time::sleep(Duration::from_millis(2)).await; // a driver takes a moment to leave
                    self.reach().await?;
                }
            }
        }
    }

    /// Closes the connection. A driver of our own stops, and an attached client takes over; a
    /// shared one continues as long as it is needed.
    pub async fn close(self) {
        match self.inner {
            Inner::Own { .. } if self.pool.is_some() => {}
            Inner::Own { handle, .. } => handle.close().await,
            #[cfg(unix)]
            Inner::Far(_) => {}
        }
    }
}

async fn reach(
    ports: Ports,
    pool: Option<Arc<SessionPool>>,
    session: SessionId,
    from: Seq,
) -> Result<Inner, ConnectError> {
    let (ports, session) = (&ports, &session);
    let began = Instant::now();
    loop {
        if let Some(pool) = &pool {
            if let Some((handle, guest)) = pool.enter(ports, session).await? {
                let frames = handle.frames(from);
                return Ok(Inner::Own { handle, frames, _guest: Some(guest) });
            }
        } else if let Some(owned) = ports.ownership.claim(session).await? {
            let handle = Driver::start(ports.clone(), session.clone(), owned).await?;
            let frames = handle.frames(from);
            return Ok(Inner::Own { handle, frames, _guest: None });
        }
        if let Some(inner) = attach(ports, session, from).await? {
            return Ok(inner);
        }
        pause(ports, session, began).await?;
    }
}

/// Attaches to the process that drives a session; `None` if no process listens.
#[cfg(unix)]
async fn attach(
    ports: &Ports,
    session: &SessionId,
    from: Seq,
) -> Result<Option<Inner>, ConnectError> {
    let Some(note) = ports.ownership.owner(session).await else { return Ok(None) };
    match Attached::connect(&note.socket, &ports.app, session, from).await {
        Ok(far) => Ok(Some(Inner::Far(far))),
        Err(NotAttached::Nobody) => Ok(None),
        Err(NotAttached::Silent) => {
            let holder = ports.ownership.holder(session).await;
            Err(ConnectError::Silent { holder })
        }
        Err(NotAttached::Mismatch(version)) => {
            Err(ConnectError::Mismatch { pid: note.pid, version })
        }
    }
}

#[cfg(not(unix))]
#[expect(clippy::unused_async, reason = "there is nothing to wait for here")]
async fn attach(_: &Ports, _: &SessionId, _: Seq) -> Result<Option<Inner>, ConnectError> {
    Ok(None)
}

/// Waits a moment before the next try; fails when the owner was silent for too long.
async fn pause(ports: &Ports, session: &SessionId, began: Instant) -> Result<(), ConnectError> {
    if began.elapsed() > STOPPED_FOR {
        let holder = ports.ownership.holder(session).await;
        if holder.is_stopped() || began.elapsed() > TRY_FOR {
            return Err(ConnectError::Silent { holder });
        }
    }
    tokio::time::sleep(Duration::from_millis(2)).await;
    Ok(())
}
