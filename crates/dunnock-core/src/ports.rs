//! What the engine needs from the world: a log, a model, hands, and a keeper of files.
//!
//! Adapters implement these and never see each other. Futures are boxed so that a port can be chosen at run time.

use crate::transcript::Request;
use crate::{Call, Status};
use dunnock_proto::{
    Answered, At, CallId, Checkpointed, Config, Decoded, Delta, Event, Failure, Finished, Hash, InputId, Isolation,
    Loss, Noticed, OutboxWritten, Preamble, Record, Seq, SessionId, Source, StepFailed, Tool, Tree, Usage,
};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A future that a port returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Tells work to stop. Work that is stopped still reports.
#[derive(Debug, Clone, Default)]
pub struct CancellationToken(Arc<Mutex<CancellationState>>);

#[derive(Debug, Default)]
struct CancellationState {
    told: bool,
    wakers: Vec<Waker>,
}

impl CancellationToken {
    /// Tells the work to stop.
    pub fn cancel(&self) {
        let wakers = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.told = true;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
    /// Whether it was told.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).told
    }
    /// Waits until it is told.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        Cancelled(self.clone())
    }
}

struct Cancelled(CancellationToken);

impl Future for Cancelled {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.told {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|w| w.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// Bytes that an event names by their hash.
#[derive(Debug, Clone)]
pub struct Blob {
    /// Of the bytes.
    pub hash: Hash,
    /// They; none if they lie in a file.
    pub bytes: Arc<[u8]>,
    /// Where they lie, if they are too many to be held in memory.
    pub file: Option<Arc<dyn BlobFile>>,
}

/// A file with the bytes of a blob. It is gone when nobody holds it any more: whoever keeps it gives it another name.
pub trait BlobFile: fmt::Debug + Send + Sync {
    /// Where it is.
    fn path(&self) -> &std::path::Path;
    /// How many bytes it has.
    fn len(&self) -> u64;
    /// Whether it has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Blob {
    /// Some bytes with their hash.
    #[must_use]
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self { hash: Hash::of(&bytes), bytes, file: None }
    }
    /// The bytes of a file, with their hash.
    #[must_use]
    pub fn in_file(hash: Hash, file: Arc<dyn BlobFile>) -> Self {
        Self { hash, bytes: Arc::new([]), file: Some(file) }
    }
    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.file.as_ref().map_or(self.bytes.len() as u64, |file| file.len())
    }
    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What lists show of a session, kept beside its events in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Its title.
    pub title: String,
    /// Its folder.
    pub workspace: String,
    /// In one word.
    pub status: Status,
    /// The last event that a person caused.
    pub version: Seq,
}

/// A row of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The session.
    pub id: SessionId,
    /// What is shown of it; the status as the text stored, since another release may have more words.
    pub title: String,
    /// Its folder.
    pub workspace: String,
    /// In one word.
    pub status: String,
    /// When it was made.
    pub created: At,
    /// When it last changed.
    pub updated: At,
    /// The last event that a person caused.
    pub version: Seq,
    /// Events so far.
    pub seq: Seq,
}

/// Events to be written as one, after exactly those the writer has seen.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The session.
    pub session: SessionId,
    /// Events the writer has seen; 0 makes a new session.
    pub after: Seq,
    /// The events, sealed.
    pub records: Vec<Record>,
    /// The commands they answer, each with its last event.
    pub inputs: Vec<(InputId, Seq)>,
    /// Blobs that the events name.
    pub blobs: Vec<Blob>,
    /// What lists show from now on.
    pub listing: Listing,
    /// What this takes from a day's budget.
    pub charge: Option<Charge>,
}

/// A change of the day's ledger, bound to the version that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// Days since 1970 (UTC).
    pub day: i64,
    /// Millionths of a US dollar, given back if negative.
    pub micros: i64,
    /// The version of the ledger's row that the decision was made on.
    pub version: u64,
}

/// A day's ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Millionths of a US dollar used and held back.
    pub micros: i64,
    /// Changes so far.
    pub version: u64,
}

/// How an append ended. A fourth end, not knowing, is [`LogError::Unsure`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// The events are durable.
    Done,
    /// Somebody else wrote first, or the ledger moved: nothing was written.
    Conflict,
    /// A command of the batch was answered before, with this last event: nothing was written.
    Repeated(InputId, Seq),
}

/// Why a log could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogError {
    /// The events may or may not be durable: reopen, read, find out.
    Unsure(String),
    /// The disk is full: nothing was written.
    Full(String),
    /// Nothing was written, or nothing could be read.
    Failed(String),
    /// What is stored is not what was written.
    Damaged(String),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsure(why) => write!(f, "it is not known whether the last facts were written: {why}"),
            Self::Full(why) => write!(f, "the disk is full; make room and work goes on by itself: {why}"),
            Self::Failed(why) => write!(f, "the log cannot be used: {why}"),
            Self::Damaged(why) => write!(f, "the log is damaged: {why}"),
        }
    }
}
impl std::error::Error for LogError {}

/// Keeps events.
pub trait Log: Send + Sync {
    /// Writes a batch, all of it or nothing.
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, LogError>>;
    /// Hands over the events after `after`, in order; `each` returns whether it wants more.
    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: Seq,
        each: &'a mut (dyn FnMut(Record) -> bool + Send),
    ) -> BoxFuture<'a, Result<(), LogError>>;
    /// The last event of a command that was answered before.
    fn answered<'a>(
        &'a self,
        session: &'a SessionId,
        input: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<Seq>, LogError>>;
    /// Keeps a blob that a command to this session is about to name.
    fn keep<'a>(&'a self, session: &'a SessionId, blob: &'a Blob) -> BoxFuture<'a, Result<(), LogError>>;
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
    fn list<'a>(&'a self, workspace: Option<&'a str>, limit: u32) -> BoxFuture<'a, Result<Vec<Listed>, LogError>>;
    /// A session as lists show it.
    fn listed<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Listed>, LogError>> {
        Box::pin(async move { Ok(self.list(None, u32::MAX).await?.into_iter().find(|row| row.id == *session)) })
    }
    /// Whether a session's events name a blob.
    fn uses<'a>(&'a self, session: &'a SessionId, blob: Hash) -> BoxFuture<'a, Result<bool, LogError>>;
    /// The sessions whose id begins with `prefix`, at most two.
    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<SessionId>, LogError>>;
    /// How many events a session has and the chain up to the last, as stored beside them.
    fn tip<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<(Seq, Hash)>, LogError>>;
    /// Brings the full-text index up to date with the log of one session, or of all.
    fn index<'a>(&'a self, session: Option<&'a SessionId>) -> BoxFuture<'a, Result<u64, LogError>>;
    /// Sessions and events that hold these words, best first.
    fn search<'a>(&'a self, words: &'a str, limit: u32) -> BoxFuture<'a, Result<Vec<SearchHit>, LogError>>;
    /// Forgets a session: its events, its words, and the blobs that no other session names. A session that another branched
    /// off stays. Whether there was one.
    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, LogError>>;
    /// The ledger of a day.
    fn ledger(&self, day: i64) -> BoxFuture<'_, Result<Ledger, LogError>>;
    /// Gives back what only speed needed, where nobody is at work: a file that grew beside the log.
    fn tidy(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    /// Starts over after [`LogError::Unsure`]: what is read next is what is stored.
    fn reopen(&self) -> BoxFuture<'_, Result<(), LogError>>;
}

/// A place where words were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The session.
    pub session: SessionId,
    /// The event.
    pub seq: Seq,
    /// The words around.
    pub excerpt: String,
}

/// Where live pieces go.
pub type DeltaSink = Arc<dyn Fn(Delta) + Send + Sync>;

/// What a model is asked.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Whose.
    pub session: SessionId,
    /// The preamble as it was recorded, never as this release would render it.
    pub preamble: Arc<[u8]>,
    /// The step and everything said.
    pub request: Request,
    /// The pictures that it names.
    pub pictures: BTreeMap<Hash, Arc<[u8]>>,
}

/// A model.
pub trait Model: Send + Sync {
    /// Renders the preamble for `config.model`: the bytes and what the core must know of them.
    fn render_preamble<'a>(
        &'a self,
        config: &'a Config,
        workspace: &'a str,
    ) -> BoxFuture<'a, Result<(Preamble, Blob), String>>;
    /// Asks for an answer. Stops, and still reports, when told to.
    fn ask(
        &self,
        asking: ModelRequest,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> BoxFuture<'_, Result<(Answered, Vec<Blob>), StepFailed>>;
    /// Writes a request down for a person to carry; the answer is then [asked](Self::ask) for.
    fn hand_over(&self, asking: ModelRequest) -> BoxFuture<'_, Result<OutboxWritten, StepFailed>> {
        let error = "nobody carries requests here".to_owned();
        Box::pin(async move { Err(StepFailed::unsent(asking.request.step, Failure::Rejected, error)) })
    }
    /// Replaces old conversation by a summary, asked of the model that the preamble names.
    fn summarise(&self, preamble: Arc<[u8]>, request: Request, halt: CancellationToken) -> BoxFuture<'_, Summary>;
    /// What changed of what preambles are made of, compared with what the model knows; a notice for it.
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

/// A summary, and what it took.
#[derive(Debug, Clone)]
pub struct Summary {
    /// It, or why there is none.
    pub text: Result<Arc<str>, String>,
    /// What was used for it, in either case.
    pub usage: Usage,
    /// It had begun and did not come to its end, so that this is not all.
    pub broke: bool,
}

/// A tool as a model is told of it, and what the core must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name, and what it may do.
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
    /// How it must be confined.
    pub isolation: Isolation,
    /// Files as the model last saw them.
    pub seen: Arc<BTreeMap<String, Hash>>,
    /// A folder that no command sees, beside those of the program: where answers come from that a person carries.
    pub closed: Option<String>,
}

/// Runs calls.
pub trait Tools: Send + Sync {
    /// Runs a call to its end, or stops it and its whole process tree when told to; reports either way.
    fn run(&self, job: ToolCall, live: DeltaSink, halt: CancellationToken) -> BoxFuture<'_, (Finished, Vec<Blob>)>;
    /// Keeps a session's lock held for as long as anything that its calls started may run, even beyond this process's own
    /// death; until what is returned is dropped.
    fn hold(&self, lock: &std::fs::File) -> Option<Box<dyn Send + Sync>> {
        let _ = lock;
        None
    }
    /// What a call would lose, where that can be found out by looking. Nothing is changed.
    fn preview<'a>(&'a self, workspace: &'a str, call: &'a Call) -> BoxFuture<'a, Vec<Loss>> {
        let _ = (workspace, call);
        Box::pin(async { Vec::new() })
    }
    /// Ends what a session's calls started and left running, and waits until it is gone: nobody drives it any more.
    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        let _ = session;
        Box::pin(async {})
    }
    /// Keeps what a planner's iterations came to, in a file of that name where no call can write.
    fn remember<'a>(&'a self, workspace: &'a str, name: &'a str, text: &'a str) -> BoxFuture<'a, Result<(), String>> {
        let _ = (workspace, name, text);
        Box::pin(async { Ok(()) })
    }
    /// Kills whatever runs: this process is about to end.
    fn stop_all(&self) {}
}

/// Knows the files of a workspace.
pub trait Files: Send + Sync {
    /// A name for the files as they are: equal names mean equal files. What a check proved, it proved of one of these.
    fn tree<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, Result<Tree, String>>;
    /// The commit that the folder's repository stands at, if it is one.
    fn commit(&self, workspace: &str) -> Option<String> {
        let _ = workspace;
        None
    }
    /// Whether the files are still those of a name that was given before.
    fn holds<'a>(&'a self, workspace: &'a str, tree: &'a Tree) -> BoxFuture<'a, bool>;
}

/// Two states of the files, before something and after it.
pub type Window = (Tree, Tree);

/// A way back for the files of a workspace.
#[derive(Debug, Clone, Copy)]
pub struct RestorePlan<'a> {
    /// The session that goes back.
    pub session: &'a SessionId,
    /// The folder.
    pub workspace: &'a str,
    /// The state to return to.
    pub to: &'a Tree,
    /// The state as it was kept right before.
    pub from: &'a Tree,
    /// What this session's calls did since.
    pub ours: &'a [Window],
    /// What happened beside them.
    pub theirs: &'a [Window],
    /// Also what others changed.
    pub force: bool,
}

/// What came of going back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The files as they are now.
    pub tree: Tree,
    /// What was left alone or could not be brought back, in words.
    pub note: Option<String>,
}

/// A copy of files.
pub trait WorkspaceCopy: Send + Sync {
    /// Where it is.
    fn path(&self) -> &str;
    /// What it lacks, in words.
    fn lacks(&self) -> Option<String>;
}

/// Keeps the files of a workspace.
pub trait Checkpoints: Send + Sync {
    /// Keeps them as they are. With mark 0 that is only a look between two others, of which nothing is said.
    fn keep<'a>(&'a self, session: &'a SessionId, workspace: &'a str, mark: Seq) -> BoxFuture<'a, Checkpointed>;
    /// Brings back what this session changed; doing it twice does no harm.
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
    /// A folder of its own with the files as they were; it is gone when what is returned is dropped.
    fn copy<'a>(&'a self, workspace: &'a str, tree: &'a Tree) -> BoxFuture<'a, Result<Box<dyn WorkspaceCopy>, String>> {
        let _ = (workspace, tree);
        Box::pin(async { Err("files are not kept here".into()) })
    }
    /// Gives back what only speed needed: nobody works in this folder for now.
    fn rest<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, ()> {
        let _ = workspace;
        Box::pin(async {})
    }
    /// Forgets what was kept for a session.
    fn forget<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), String>>;
}
