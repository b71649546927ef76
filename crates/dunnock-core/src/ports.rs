//! What the engine needs from outside: a log, a model, tools, and a checkpoint store.
//!
//! Adapters implement these traits and never see each other. They return a [`BoxFuture`], so that a
//! port can be chosen at run time.

use crate::transcript::Request;
use crate::{Call, Status};
use dunnock_proto::{
    Answered, At, CallId, Checkpointed, Config, Decoded, Delta, Event, Failure, Finished, Hash,
    InputId, Isolation, Loss, Noticed, OutboxWritten, Preamble, Record, Seq, SessionId, Source,
    StepFailed, Tool, Tree, Usage,
};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A future that a port returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Asks work to stop. Cancelled work still reports.
#[derive(Debug, Clone, Default)]
pub struct CancellationToken(Arc<Mutex<CancellationState>>);

#[derive(Debug, Default)]
struct CancellationState {
    cancelled: bool,
    wakers: Vec<Waker>,
}

impl CancellationToken {
    /// Asks the work to stop.
    pub fn cancel(&self) {
        let wakers = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.cancelled = true;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
    /// Whether the work was asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cancelled
    }
    /// Waits until the work is asked to stop.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        Cancelled(self.clone())
    }
}

struct Cancelled(CancellationToken);

impl Future for Cancelled {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.cancelled {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|w| w.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// Bytes that an event refers to by their hash.
#[derive(Debug, Clone)]
pub struct Blob {
    /// Hash of the bytes.
    pub hash: Hash,
    /// The bytes; empty if they are in a file.
    pub bytes: Arc<[u8]>,
    /// The file that holds them, if they are too large for memory.
    pub file: Option<Arc<dyn BlobFile>>,
}

/// A file with the bytes of a blob. It is deleted when the last reference is dropped; to keep it,
/// give it another name.
pub trait BlobFile: fmt::Debug + Send + Sync {
    /// The path of the file.
    fn path(&self) -> &std::path::Path;
    /// Its size in bytes.
    fn len(&self) -> u64;
    /// Whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Blob {
    /// A blob with the hash of these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self { hash: Hash::of(&bytes), bytes, file: None }
    }
    /// A blob whose bytes are in a file.
    #[must_use]
    pub fn in_file(hash: Hash, file: Arc<dyn BlobFile>) -> Self {
        Self { hash, bytes: Arc::new([]), file: Some(file) }
    }
    /// Its size in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.file.as_ref().map_or(self.bytes.len() as u64, |file| file.len())
    }
    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What lists show about a session, stored with its events in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Its title.
    pub title: String,
    /// Its folder.
    pub workspace: String,
    /// Its status in one word.
    pub status: Status,
    /// The last event that a user caused.
    pub version: Seq,
}

/// A row of a list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The session.
    pub id: SessionId,
    /// Its title.
    pub title: String,
    /// Its folder.
    pub workspace: String,
    /// Its status in one word: the stored text, since another release may have more words.
    pub status: String,
    /// When it was created.
    pub created: At,
    /// When it last changed.
    pub updated: At,
    /// The last event that a user caused.
    pub version: Seq,
    /// The number of events so far.
    pub seq: Seq,
}

/// Events to be written atomically, right after those that the writer has seen.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The session.
    pub session: SessionId,
    /// The number of events the writer has seen; 0 creates a new session.
    pub after: Seq,
    /// The events, sealed.
    pub records: Vec<Record>,
    /// The commands that caused them, each with its last event.
    pub inputs: Vec<(InputId, Seq)>,
    /// Blobs that the events refer to.
    pub blobs: Vec<Blob>,
    /// What lists show from now on.
    pub listing: Listing,
    /// What this charges to the day's budget.
    pub charge: Option<Charge>,
}

/// A change to the day's ledger, valid only for the version that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// Days since 1970 (UTC).
    pub day: i64,
    /// Millionths of a US dollar; negative amounts are refunds.
    pub micros: i64,
    /// The version of the ledger row that the decision was based on.
    pub version: u64,
}

/// A day's ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Millionths of a US dollar used and reserved.
    pub micros: i64,
    /// The number of changes so far.
    pub version: u64,
}

/// How an append ended. A fourth outcome, uncertainty, is [`LogError::Unsure`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// The events are durable.
    Done,
    /// Another process wrote first, or the ledger changed: nothing was written.
    Conflict,
    /// A command of the batch was executed before, with this last event: nothing was written.
    Repeated(InputId, Seq),
}

/// Why a log operation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogError {
    /// The events may or may not be durable: reopen the log and read it to find out.
    Unsure(String),
    /// The disk is full: nothing was written.
    Full(String),
    /// Nothing was written, or nothing could be read.
    Failed(String),
    /// The stored data is not what was written.
    Damaged(String),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsure(why) => {
                write!(f, "it is unknown whether the last events were written: {why}")
            }
            Self::Full(why) => write!(
                f,
                "the disk is full; free some space and work continues automatically: {why}"
            ),
            Self::Failed(why) => write!(f, "session log error: {why}"),
            Self::Damaged(why) => write!(f, "the log is damaged: {why}"),
        }
    }
}
impl std::error::Error for LogError {}

/// Stores events.
pub trait Log: Send + Sync {
    /// Writes a batch atomically.
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, LogError>>;
    /// Passes the events after `after` to `each`, in order, until it returns false.
    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: Seq,
        each: &'a mut (dyn FnMut(Record) -> bool + Send),
    ) -> BoxFuture<'a, Result<(), LogError>>;
    /// The last event of a command that was executed before.
    fn answered<'a>(
        &'a self,
        session: &'a SessionId,
        input: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<Seq>, LogError>>;
    /// Stores a blob that a command to this session is about to refer to.
    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        blob: &'a Blob,
    ) -> BoxFuture<'a, Result<(), LogError>>;
    /// A blob.
    fn blob(&self, hash: Hash) -> BoxFuture<'_, Result<Option<Arc<[u8]>>, LogError>>;
    /// How a call ended, if it did.
    fn finished<'a>(
        &'a self,
        session: &'a SessionId,
        call: CallId,
    ) -> BoxFuture<'a, Result<Option<Finished>, LogError>> {
        Box::pin(async move {
            let mut found = None;
            let each = &mut |record: Record| {
                if let Decoded::Known(Event::Finished(finished)) = record.decode()
                    && finished.call == call
                {
                    found = Some(finished);
                }
                true
            };
            self.read(session, 0, each).await?;
            Ok(found)
        })
    }
    /// Sessions, newest first, of one folder or of all.
    fn list<'a>(
        &'a self,
        workspace: Option<&'a str>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Listed>, LogError>>;
    /// A session as lists show it.
    fn listed<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Listed>, LogError>> {
        Box::pin(async move {
            Ok(self.list(None, u32::MAX).await?.into_iter().find(|row| row.id == *session))
        })
    }
    /// Whether a session's events refer to a blob.
    fn uses<'a>(
        &'a self,
        session: &'a SessionId,
        blob: Hash,
    ) -> BoxFuture<'a, Result<bool, LogError>>;
    /// The sessions whose id starts with `prefix`, at most two.
    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<SessionId>, LogError>>;
    /// The number of events in a session and the chain up to the last one, as stored with them.
    fn tip<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<(Seq, Hash)>, LogError>>;
    /// Updates the full-text index from the log of one session, or of all.
    fn index<'a>(&'a self, session: Option<&'a SessionId>) -> BoxFuture<'a, Result<u64, LogError>>;
    /// Sessions and events that contain these words, best match first.
    fn search<'a>(
        &'a self,
        words: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, LogError>>;
    /// Deletes a session: its events, its search index, and the blobs that no other session refers
    /// to. Fails if another session was forked from it. Returns whether the session existed.
    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, LogError>>;
    /// The ledger of a day.
    fn ledger(&self, day: i64) -> BoxFuture<'_, Result<Ledger, LogError>>;
    /// Frees what is only needed for speed, when no session is running: a file that grew next to
    /// the log.
    fn tidy(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    /// Starts over after [`LogError::Unsure`]: the next read returns what is stored.
    fn reopen(&self) -> BoxFuture<'_, Result<(), LogError>>;
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The session.
    pub session: SessionId,
    /// The event.
    pub seq: Seq,
    /// The text around the match.
    pub excerpt: String,
}

/// Receives live updates.
pub type DeltaSink = Arc<dyn Fn(Delta) + Send + Sync>;

/// A request to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The session it belongs to.
    pub session: SessionId,
    /// The preamble as it was recorded, never as this release would render it.
    pub preamble: Arc<[u8]>,
    /// The step and the whole conversation.
    pub request: Request,
    /// The images that it refers to.
    pub pictures: BTreeMap<Hash, Arc<[u8]>>,
}

/// A model.
pub trait Model: Send + Sync {
    /// Renders the preamble for `config.model`: the bytes, and what the core must know about them.
    fn render_preamble<'a>(
        &'a self,
        config: &'a Config,
        workspace: &'a str,
    ) -> BoxFuture<'a, Result<(Preamble, Blob), String>>;
    /// Asks for an answer. When cancelled, it stops and still reports.
    fn ask(
        &self,
        asking: ModelRequest,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> BoxFuture<'_, Result<(Answered, Vec<Blob>), StepFailed>>;
    /// Writes a request to files for the user to copy; [`ask`](Self::ask) then waits for the
    /// answer.
    fn write_outbox(
        &self,
        asking: ModelRequest,
    ) -> BoxFuture<'_, Result<OutboxWritten, StepFailed>> {
        let error = "this model does not support the copy-and-paste bridge".to_owned();
        Box::pin(
            async move { Err(StepFailed::unsent(asking.request.step, Failure::Rejected, error)) },
        )
    }
    /// Summarises old conversation, using the model that the preamble names.
    fn summarise(
        &self,
        preamble: Arc<[u8]>,
        request: Request,
        halt: CancellationToken,
    ) -> BoxFuture<'_, Summary>;
    /// A notice for the model if the sources of the preamble have changed since it last knew them.
    fn preamble_drift<'a>(
        &'a self,
        config: &'a Config,
        workspace: &'a str,
        known: &'a Preamble,
        sources: &'a [Source],
    ) -> Option<Noticed> {
        let _ = (config, workspace, known, sources);
        None
    }
}

/// A summary, and what it used.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The summary, or why there is none.
    pub text: Result<Arc<str>, String>,
    /// What it used, in either case.
    pub usage: Usage,
    /// The summary started but was not completed, so `usage` is not all.
    pub broke: bool,
}

/// A tool as described to the model, and what the core must know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name and properties.
    pub tool: Tool,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its arguments, as text.
    pub schema: String,
}

/// What a call needs to run.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The session.
    pub session: SessionId,
    /// The folder.
    pub workspace: Arc<str>,
    /// The call, with the arguments and the access that were allowed.
    pub call: Call,
    /// How it must be isolated.
    pub isolation: Isolation,
    /// Files as the model last saw them.
    pub seen: Arc<BTreeMap<String, Hash>>,
    /// A folder that is hidden from commands, like those of the program itself: it holds the
    /// pasted answers of the chat.
    pub hidden_folder: Option<String>,
}

/// Runs calls.
pub trait Tools: Send + Sync {
    /// Runs a call until it ends. When cancelled, it stops the call and its whole process tree.
    /// Reports either way.
    fn run(
        &self,
        job: ToolCall,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> BoxFuture<'_, (Finished, Vec<Blob>)>;
    /// Keeps a session's lock held while anything that its calls started may run, even after this
    /// process has died, until the returned value is dropped.
    fn hold(&self, lock: &std::fs::File) -> Option<Box<dyn Send + Sync>> {
        let _ = lock;
        None
    }
    /// What a call would destroy, as far as that can be determined without changing anything.
    fn preview<'a>(&'a self, workspace: &'a str, call: &'a Call) -> BoxFuture<'a, Vec<Loss>> {
        let _ = (workspace, call);
        Box::pin(async { Vec::new() })
    }
    /// Ends the processes that a session's calls left running, and waits until they are gone.
    /// Called when no process drives the session any more.
    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        let _ = session;
        Box::pin(async {})
    }
    /// Saves the results of a planner's iterations in a file of that name, where no call can write.
    fn remember<'a>(
        &'a self,
        workspace: &'a str,
        name: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<(), String>> {
        let _ = (workspace, name, text);
        Box::pin(async { Ok(()) })
    }
    /// Kills everything that is running: this process is about to exit.
    fn stop_all(&self) {}
}

/// Reads the state of a workspace's files.
pub trait Files: Send + Sync {
    /// An id for the current files: equal ids mean equal files. The result of a check applies to
    /// one such state.
    fn tree<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, Result<Tree, String>>;
    /// The commit that the folder's repository is at, if the folder is a repository.
    fn commit(&self, workspace: &str) -> Option<String> {
        let _ = workspace;
        None
    }
    /// Whether the files still have this state.
    fn holds<'a>(&'a self, workspace: &'a str, tree: &'a Tree) -> BoxFuture<'a, bool>;
}

/// Two states of the files, before something and after it.
pub type Window = (Tree, Tree);

/// How to restore the files of a workspace.
#[derive(Debug, Clone, Copy)]
pub struct RestorePlan<'a> {
    /// The session that is rewound.
    pub session: &'a SessionId,
    /// The folder.
    pub workspace: &'a str,
    /// The state to restore.
    pub to: &'a Tree,
    /// The state saved right before.
    pub from: &'a Tree,
    /// Changes by this session's calls since then.
    pub ours: &'a [Window],
    /// Changes by others since then.
    pub theirs: &'a [Window],
    /// Also overwrite changes by others.
    pub force: bool,
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The files after the restore.
    pub tree: Tree,
    /// What was left alone or could not be restored, as text.
    pub note: Option<String>,
}

/// A copy of a workspace's files.
pub trait WorkspaceCopy: Send + Sync {
    /// The path of the copy.
    fn path(&self) -> &str;
    /// What it lacks, as text.
    fn lacks(&self) -> Option<String>;
}

/// Saves and restores the files of a workspace.
pub trait Checkpoints: Send + Sync {
    /// Saves the current files. Mark 0 means an intermediate state that is not reported.
    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        workspace: &'a str,
        mark: Seq,
    ) -> BoxFuture<'a, Checkpointed>;
    /// Restores what this session changed; doing it twice is harmless.
    fn restore<'a>(&'a self, back: RestorePlan<'a>) -> BoxFuture<'a, Result<Restored, String>>;
    /// The files that differ between two states and were changed in one of these windows.
    fn changed<'a>(
        &'a self,
        workspace: &'a str,
        between: &'a Window,
        ours: &'a [Window],
    ) -> BoxFuture<'a, Result<Vec<String>, String>> {
        let _ = (workspace, between, ours);
        Box::pin(async { Ok(Vec::new()) })
    }
    /// Copies the files of a state to a separate folder, which is deleted when the returned value
    /// is dropped.
    fn copy<'a>(
        &'a self,
        workspace: &'a str,
        tree: &'a Tree,
    ) -> BoxFuture<'a, Result<Box<dyn WorkspaceCopy>, String>> {
        let _ = (workspace, tree);
        Box::pin(async { Err("checkpoints are not available here".into()) })
    }
    /// Frees what is only needed for speed: no session works in this folder for now.
    fn rest<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, ()> {
        let _ = workspace;
        Box::pin(async {})
    }
    /// Deletes what was saved for a session.
    fn forget<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), String>>;
}
