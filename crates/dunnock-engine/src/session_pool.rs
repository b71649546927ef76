//! The sessions that one process holds open for many clients: each is driven once, however many
//! clients use it.
//!
//! A session is driven here from its first client until no client is left and nothing is running.
//! Parked sessions are closed: they cost nothing, and the next client opens them again. A session
//! that another process owns is attached to, as by any client.
//!
//! Invariant: a slot's driver is started and stopped with its lock held, so there is never a second
//! one in this process.

use crate::connection::Connection;
use crate::driver::{Driver, Handle};
use crate::error::ConnectError;
use crate::ports::Ports;
use dunnock_ports::{Store, StoreError, first_event};
use dunnock_proto::{Event, Seq, SessionId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long a session stays open after its last client left: one that sends a series of commands
/// finds it still open.
const LINGER: Duration = Duration::from_millis(500);

/// Chooses the ports for a workspace.
pub type ChoosePorts = Box<dyn Fn(&str) -> Result<Ports, String> + Send + Sync>;

/// The sessions that a process holds open.
pub struct SessionPool {
    store: Arc<dyn Store>,
    pick: ChoosePorts,
    closed: AtomicBool,
    slots: Mutex<HashMap<SessionId, Arc<Slot>>>,
}

/// One session: its driver, if it is driven here, and its number of clients.
struct Slot {
    driver: tokio::sync::Mutex<Option<Handle>>,
    refs: watch::Sender<usize>,
}

/// A client of a session that is driven here.
pub(crate) struct SessionRef {
    pool: Arc<SessionPool>,
    session: SessionId,
    slot: Arc<Slot>,
}

impl Drop for SessionRef {
    fn drop(&mut self) {
        self.slot.refs.send_modify(|n| *n -= 1);
        let empty = |driver: &Option<Handle>| driver.as_ref().is_none_or(is_gone);
        if self.slot.driver.try_lock().is_ok_and(|driver| empty(&driver)) {
            self.pool.tidy(&self.session, &self.slot);
        }
    }
}

fn is_gone(handle: &Handle) -> bool {
    handle.summary().borrow().gone.is_some()
}

impl SessionPool {
    /// An empty pool.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, pick: ChoosePorts) -> Arc<Self> {
        Arc::new(Self { store, pick, closed: AtomicBool::new(false), slots: Mutex::default() })
    }

    /// The store of all its sessions.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Whether this process drives a session right now.
    #[must_use]
    pub fn drives(&self, session: &SessionId) -> bool {
        let slot = self.slots().get(session).cloned();
        // The lock is taken while a driver starts or stops: it will run soon, or ran a moment ago.
        slot.is_some_and(|slot| {
            slot.driver
                .try_lock()
                .map_or(true, |driver| driver.as_ref().is_some_and(|h| !is_gone(h)))
        })
    }

    /// The ports for a workspace.
    ///
    /// # Errors
    /// If its settings cannot be used.
    pub fn ports(&self, workspace: &str) -> Result<Ports, ConnectError> {
        (self.pick)(workspace).map_err(ConnectError::Ports)
    }

    /// Connects to a session; frames start after the event `from`.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub async fn connection(
        self: &Arc<Self>,
        session: SessionId,
        from: Seq,
    ) -> Result<Connection, ConnectError> {
        let ports = self.ports(&self.workspace(&session).await?)?;
        Connection::through(self.clone(), ports, session, from).await
    }

    /// Closes all sessions: running work is cancelled and reports.
    pub async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let slots: Vec<Arc<Slot>> = self.slots().values().cloned().collect();
        let closing = slots.into_iter().map(|slot| {
            tokio::spawn(async move {
                if let Some(handle) = slot.driver.lock().await.take() {
                    handle.close().await;
                }
            })
        });
        for task in closing.collect::<Vec<_>>() {
            let _ = task.await;
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder of a session, from its first event.
    async fn workspace(&self, session: &SessionId) -> Result<String, StoreError> {
        match first_event(self.store.as_ref(), session).await? {
            Some(Event::Created(e)) => Ok(e.workspace.to_string()),
            Some(Event::Forked(e)) => Ok(e.workspace.to_string()),
            _ => Err(StoreError::NoSession(session.clone())),
        }
    }

    /// The driver of a session in this process, started if no process drives it; `None` if another
    /// process does.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        ports: &Ports,
        session: &SessionId,
    ) -> Result<Option<(Handle, SessionRef)>, ConnectError> {
        let fresh = || {
            Arc::new(Slot { driver: tokio::sync::Mutex::default(), refs: watch::Sender::new(0) })
        };
        let slot = {
            let mut slots = self.slots();
            let slot = slots.entry(session.clone()).or_insert_with(fresh).clone();
            // Counted from now on, so that neither the driver nor the slot disappears before we use
            // it.
            slot.refs.send_modify(|n| *n += 1);
            slot
        };
        let session_ref =
            SessionRef { pool: self.clone(), session: session.clone(), slot: slot.clone() };
        let mut driver = slot.driver.lock().await;
        if let Some(handle) = driver.as_ref().filter(|handle| !is_gone(handle)) {
            return Ok(Some((handle.clone(), session_ref)));
        }
        *driver = None;
        if self.closed.load(Ordering::Acquire) {
            return Err(ConnectError::ShuttingDown);
        }
        let Some(owned) = ports.ownership.claim(session).await? else { return Ok(None) };
        // The caller may be dropped meanwhile: a driver that is starting finishes starting
        // regardless.
        let begun = tokio::spawn(Driver::start(ports.clone(), session.clone(), owned));
        let handle = begun.await.map_err(|e| StoreError::Refused(e.to_string()))??;
        *driver = Some(handle.clone());
        tokio::spawn(self.clone().keep(session.clone(), slot.clone(), handle.clone()));
        Ok(Some((handle, session_ref)))
    }

    /// Waits until the driver is gone, or closes it when it is no longer needed.
    async fn keep(self: Arc<Self>, session: SessionId, slot: Arc<Slot>, handle: Handle) {
        let (mut summary, mut refs) = (handle.summary(), slot.refs.subscribe());
        while summary.wait_for(|s| s.gone.is_some() || s.idle()).await.is_ok() && !is_gone(&handle)
        {
            tokio::select! {
                left = refs.wait_for(|n| *n == 0) => drop(left),
                _ = summary.changed() => continue,
            }
            tokio::time::sleep(LINGER).await;
            // No client can enter while the lock is held.
            let _alone = slot.driver.lock().await;
            if summary.borrow_and_update().idle() && *refs.borrow_and_update() == 0 {
                handle.clone().close().await;
                break;
            }
        }
        let mut driver = slot.driver.lock().await;
        if driver.as_ref().is_some_and(|other| other.owner() == handle.owner()) {
            *driver = None;
        }
        if driver.is_none() {
            self.tidy(&session, &slot);
        }
    }

    /// Removes a slot whose driver is gone, unless a client uses it or is about to: those are
    /// counted under the same lock.
    fn tidy(&self, session: &SessionId, slot: &Arc<Slot>) {
        let mut slots = self.slots();
        let ours = slots.get(session).is_some_and(|known| Arc::ptr_eq(known, slot));
        if ours && *slot.refs.borrow() == 0 {
            slots.remove(session);
        }
    }
}
