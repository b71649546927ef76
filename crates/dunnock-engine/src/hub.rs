//! The subscribers of a session, and the state of work in progress for those that join late.
//!
//! Invariant: a subscriber never slows down the driver. One whose queue is full is cut off and
//! reads the log again.

use dunnock_ports::{EventLog, StoreError};
use dunnock_proto::{Delta, Event, Frame, Partial, Record, Seq, SessionId, Step};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// How many frames may wait for a subscriber before it counts as too slow.
const QUEUE: usize = 1024;
/// How many bytes of a call's output are kept for subscribers that join late.
const TAIL: usize = 16 << 10;

/// Connects one session's driver, its work and its subscribers.
#[derive(Clone, Default)]
pub(crate) struct Hub(Arc<Mutex<HubInner>>);

#[derive(Default)]
struct HubInner {
    seq: Seq,
    listeners: Vec<Subscriber>,
    partials: Vec<Partial>,
}

struct Subscriber {
    queue: mpsc::Sender<Frame>,
    lagged: Arc<AtomicBool>,
}

impl Hub {
    fn inner(&self) -> MutexGuard<'_, HubInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events up to `seq` are in the log: new subscribers read them there.
    pub(crate) fn start_at(&self, seq: Seq) {
        self.inner().seq = seq;
    }

    /// Publishes a durable event.
    pub(crate) fn fact(&self, record: Record, event: Option<&Event>) {
        let mut inner = self.inner();
        inner.seq = record.envelope.seq;
        match event {
            Some(Event::Answered(e)) => inner.forget_step(e.step),
            Some(Event::StepFailed(e)) => inner.forget_step(e.step),
            Some(Event::Finished(e)) => {
                inner
                    .partials
                    .retain(|p| !matches!(p, Partial::Call { call, .. } if *call == e.call));
            }
            _ => {}
        }
        inner.send(&Frame::Event(Arc::new(record)));
    }

    /// Publishes a live update.
    pub(crate) fn delta(&self, delta: Delta) {
        let mut inner = self.inner();
        inner.remember(&delta);
        inner.send(&Frame::Delta(delta));
    }

    /// Tells the subscribers that the owner is leaving.
    pub(crate) fn close(&self) {
        let mut inner = self.inner();
        inner.send(&Frame::Closing);
        inner.listeners.clear();
    }

    /// Everything from `from` on, without gaps and without repetition.
    pub(crate) fn listen(&self, log: Arc<dyn EventLog>, session: SessionId, from: Seq) -> Frames {
        let (queue, rest) = mpsc::channel(QUEUE);
        let lagged = Arc::new(AtomicBool::new(false));
        let mut inner = self.inner();
        inner.listeners.push(Subscriber { queue, lagged: lagged.clone() });
        let partials = inner.partials.iter().cloned().map(Frame::Partial).collect();
        Frames {
            log,
            session,
            from,
            upto: inner.seq,
            ready: VecDeque::new(),
            partials,
            rest,
            lagged,
            done: false,
        }
    }
}

impl HubInner {
    fn send(&mut self, frame: &Frame) {
        self.listeners.retain(|l| match l.queue.try_send(frame.clone()) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                l.lagged.store(true, Ordering::Release);
                false
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        });
    }

    fn forget_step(&mut self, done: Step) {
        self.partials.retain(|p| !matches!(p, Partial::Step { step, .. } if *step == done));
    }

    fn step(&mut self, wanted: Step, try_no: u32) -> Option<(&mut String, &mut String)> {
        let known = self
            .partials
            .iter()
            .any(|p| matches!(p, Partial::Step { step, attempt, .. } if *step == wanted && *attempt == try_no));
        if !known {
            self.forget_step(wanted);
            let (text, reasoning) = (String::new(), String::new());
            self.partials.push(Partial::Step { step: wanted, attempt: try_no, text, reasoning });
        }
        self.partials.iter_mut().find_map(|p| match p {
            Partial::Step { step, text, reasoning, .. } if *step == wanted => {
                Some((text, reasoning))
            }
            Partial::Step { .. } | Partial::Call { .. } => None,
        })
    }

    fn remember(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { step, attempt, text: more, .. } => {
                if let Some((text, _)) = self.step(*step, *attempt) {
                    text.push_str(more);
                }
            }
            Delta::Reasoning { step, attempt, text: more, .. } => {
                if let Some((_, reasoning)) = self.step(*step, *attempt) {
                    reasoning.push_str(more);
                }
            }
            Delta::Output { call: wanted, text, .. } => {
                let known = self.partials.iter_mut().find_map(|p| match p {
                    Partial::Call { call, offset, tail } if call == wanted => Some((offset, tail)),
                    Partial::Call { .. } | Partial::Step { .. } => None,
                });
                if let Some((offset, tail)) = known {
                    *offset += text.len() as u64;
                    tail.push_str(text);
                    if tail.len() > 2 * TAIL {
                        let cut = tail.ceil_char_boundary(tail.len() - TAIL);
                        tail.drain(..cut);
                    }
                } else {
                    let (offset, tail) = (text.len() as u64, text.to_string());
                    self.partials.push(Partial::Call { call: *wanted, offset, tail });
                }
            }
            Delta::Notice { .. } => {}
        }
    }
}

/// The frames of one subscriber: the log from its position, then partials, then everything as it
/// happens.
pub struct Frames {
    log: Arc<dyn EventLog>,
    session: SessionId,
    from: Seq,
    upto: Seq,
    ready: VecDeque<Frame>,
    partials: VecDeque<Frame>,
    rest: mpsc::Receiver<Frame>,
    lagged: Arc<AtomicBool>,
    done: bool,
}

impl Frames {
    /// The next frame. `None` after [`Frame::Lagged`] or [`Frame::Closing`], or when the driver is
    /// gone.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn next(&mut self) -> Result<Option<Frame>, StoreError> {
        if self.from < self.upto && self.ready.is_empty() {
            self.read_some().await?;
        }
        if let Some(frame) = self.ready.pop_front().or_else(|| self.partials.pop_front()) {
            return Ok(Some(frame));
        }
        if self.done {
            return Ok(None);
        }
        match self.rest.recv().await {
            Some(frame) => {
                self.done = frame == Frame::Closing;
                Ok(Some(frame))
            }
            None => {
                self.done = true;
                Ok(self.lagged.load(Ordering::Acquire).then_some(Frame::Lagged))
            }
        }
    }

    /// Reads a part of the log, so that a long one is not held in memory.
    async fn read_some(&mut self) -> Result<(), StoreError> {
        let (log, session) = (self.log.clone(), self.session.clone());
        let (upto, ready, from) = (self.upto, &mut self.ready, &mut self.from);
        let start = *from;
        log.read(&session, start, &mut |record| {
            if record.envelope.seq > upto {
                return false;
            }
            *from = record.envelope.seq;
            ready.push_back(Frame::Event(Arc::new(record)));
            ready.len() < 256
        })
        .await?;
        if self.from == start {
            self.from = self.upto; // the events no longer exist: continue with live frames
        }
        Ok(())
    }
}
