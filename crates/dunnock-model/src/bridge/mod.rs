//! Copy-and-paste sessions: a request is a file that the user pastes into any chat; the answer is a
//! file that the user saves.
//!
//! `NNN-outbox.md` (and `NNN-outbox-2.md` ..., when it is long) is written atomically.
//! `NNN-inbox.md` is read once it has been unchanged for a second and no process has it open for
//! writing. `NNN` is the step, so that an answer belongs to exactly one request, and an answered
//! request is never read again.
//!
//! Invariant: symbolic links are never followed, neither in the folder nor to it.

pub mod inbox;
mod marks;
mod outbox;

use dunnock_core::failpoint;
use dunnock_ports::{Blob, CancellationToken, DeltaSink, ModelRequest};
use dunnock_proto::{
    Answered, At, Attempt, Bridge, CallPart, Delta, Failure, OutboxWritten, Part, SessionId, Step,
    StepFailed, Stop, Usage,
};
use inbox::{Inbox, InboxItem, read};
use outbox::{Round, outbox};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The name of the wire in events.
pub(crate) const WIRE: &str = "files";
/// The name of the dialect in events.
pub(crate) const DIALECT: &str = "bridge";
/// How long an inbox must have been unchanged.
#[cfg(target_os = "linux")]
const STILL: Duration = Duration::from_secs(1);
/// The same, on systems that cannot tell whether the file is still open for writing.
#[cfg(not(target_os = "linux"))]
const STILL: Duration = Duration::from_secs(10);
/// Polling interval.
const LOOK: Duration = Duration::from_millis(200);
/// Maximum size of an inbox, in bytes.
const LONGEST: u64 = 2 << 20;
/// The file that names the session that uses a folder.
pub const OWNER: &str = "dunnock-session";

/// Lists the files of a folder.
pub type ListFiles = Arc<dyn Fn(&Path) -> Vec<String> + Send + Sync>;

/// The settings of a copy-and-paste session, recorded in its preamble.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BridgeSettings {
    /// Its folder and limits.
    pub(crate) bridge: Bridge,
    /// The path of the workspace.
    pub(crate) root: String,
}

/// The name of an outbox file; `part` counts from 0.
#[must_use]
pub fn outbox_name(step: Step, part: usize) -> String {
    match part {
        0 => format!("{:03}-outbox.md", step.0),
        part => format!("{:03}-outbox-{}.md", step.0, part + 1),
    }
}

/// The name of an inbox file.
#[must_use]
pub fn inbox_name(step: Step) -> String {
    format!("{:03}-inbox.md", step.0)
}

/// Writes a file atomically, readable only by its owner.
///
/// # Errors
/// When the folder's path contains a symbolic link, the folder belongs to another user or is
/// writable by others, or writing fails.
pub fn put(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    same_folder(folder)?;
    dunnock_private::replace(&folder.join(name), text.as_bytes())
}

/// Refuses a folder that now resolves to another place, belongs to another user, or is writable by
/// others.
fn same_folder(folder: &Path) -> io::Result<()> {
    match folder.canonicalize() {
        Ok(real) if real == folder => {}
        Ok(real) => {
            return Err(io::Error::other(format!(
                "{} now resolves to {}",
                folder.display(),
                real.display()
            )));
        }
        Err(error) => return Err(error),
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let meta = folder.metadata()?;
        if meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o022 != 0 {
            let why = format!(
                "other users own or can write to {}, so an answer there could be anyone's; use a \
                 folder of your own, or run chmod go-w on it",
                folder.display()
            );
            return Err(io::Error::other(why));
        }
    }
    Ok(())
}

/// Opens a file without following a symbolic link, and without blocking if it is a pipe.
fn open_plain(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    options.open(path)
}

/// Writes a request to the outbox.
pub(crate) fn write_outbox(
    asking: &ModelRequest,
    settings: &BridgeSettings,
    instructions: &str,
    list: Option<&ListFiles>,
) -> Result<OutboxWritten, StepFailed> {
    let step = asking.request.step;
    let folder = PathBuf::from(&settings.bridge.folder);
    let fail = |error: String| StepFailed::unsent(step, Failure::Rejected, error);
    let failed = |error: io::Error| {
        fail(format!("the outbox cannot be written in {}: {error}", folder.display()))
    };
    let session = asking.session.to_string();
    match std::fs::read_to_string(folder.join(OWNER)) {
        Ok(owner) if owner.trim() == session => {}
        Ok(owner) => {
            return Err(fail(format!(
                "{} is now used by session {}. Continue that session, or use another folder: \
                 dunnock bridge new --dir DIR",
                folder.display(),
                owner
                    .trim()
                    .chars()
                    .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
                    .take(40)
                    .collect::<String>()
            )));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            put(&folder, OWNER, &session).map_err(failed)?
        }
        Err(error) => return Err(failed(error)),
    }
    let root = Path::new(&settings.root);
    let files = list.map(|list| list(root)).unwrap_or_default();
    let stamps = stamps(root, &files);
    let before = (1..step.0)
        .rev()
        .find_map(|n| std::fs::read_to_string(folder.join(format!(".{n:03}-files"))).ok());
    let messages = asking.request.messages();
    let round = Round {
        step,
        instructions,
        messages: &messages,
        files: &files,
        changed: before.as_deref().map(|before| changed(before, &stamps)),
    };
    let parts = outbox(&round, &settings.bridge);
    put(&folder, &format!(".{:03}-files", step.0), &stamps).map_err(failed)?;
    // An inbox that exists before its outbox cannot be the answer.
    let early = folder.join(inbox_name(step));
    if !folder.join(outbox_name(step, 0)).exists() && early.symlink_metadata().is_ok() {
        std::fs::rename(&early, folder.join(format!("{:03}-inbox.early.md", step.0)))
            .map_err(failed)?;
    }
    // The first part is the one that is announced, so it is written last, when the rest exists.
    failpoint::hit("carry.outbox", "before");
    for (n, text) in parts.iter().enumerate().rev() {
        let name = outbox_name(step, n);
        // Do not rewrite an identical file from before a crash: it may have been answered since,
        // and the answer must be newer than the outbox.
        if std::fs::read_to_string(folder.join(&name)).ok().as_ref() != Some(text) {
            put(&folder, &name, text).map_err(failed)?;
        }
    }
    failpoint::hit("carry.outbox", "after");
    let shown = |name: String| folder.join(name).to_string_lossy().into_owned();
    Ok(OutboxWritten {
        step,
        outbox: shown(outbox_name(step, 0)),
        inbox: shown(inbox_name(step)),
        parts: u32::try_from(parts.len()).unwrap_or(u32::MAX),
    })
}

/// Size, modification time and path of each file, one per line.
fn stamps(root: &Path, files: &[String]) -> String {
    let stamp = |path: &String| {
        let meta = root.join(path).symlink_metadata().ok()?;
        let time = meta.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
        Some(format!("{} {time} {path}\n", meta.len()))
    };
    files.iter().filter(|path| !path.contains('\n')).filter_map(stamp).collect()
}

/// The files that are new, changed or deleted.
fn changed(before: &str, now: &str) -> Vec<String> {
    let by_name = |text: &str| -> std::collections::BTreeMap<String, String> {
        let row = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let stamp = format!("{} {}", words.next()?, words.next()?);
            Some((words.next()?.to_owned(), stamp))
        };
        text.lines().filter_map(row).collect()
    };
    let (before, now) = (by_name(before), by_name(now));
    let mut all: Vec<String> = Vec::new();
    for (path, stamp) in &now {
        match before.get(path) {
            None => all.push(format!("new: {path}")),
            Some(then) if then != stamp => all.push(format!("changed: {path}")),
            Some(_) => {}
        }
    }
    all.extend(
        before.keys().filter(|path| !now.contains_key(*path)).map(|path| format!("gone: {path}")),
    );
    all
}

/// Identifies one version of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: SystemTime,
    #[cfg(unix)]
    file: (u64, u64),
    #[cfg(unix)]
    moved: (i64, i64),
}

/// What was found at the path of an inbox.
enum Look {
    Nothing,
    /// Another session uses the folder.
    Taken,
    /// Something that is ignored, and why.
    Refused(String),
    There(Stamp),
}

const TAKEN: &str = "another session now uses this folder";

fn look(path: &Path) -> Look {
    let meta = match path.symlink_metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Look::Nothing,
        Err(error) => return Look::Refused(error.to_string()),
    };
    if !meta.is_file() {
        let what = if meta.is_symlink() { "a symbolic link" } else { "not a regular file" };
        return Look::Refused(format!("it is {what}, so it is ignored"));
    }
    if meta.len() > LONGEST {
        return Look::Refused(format!(
            "it has {} bytes, more than {LONGEST}, so it is ignored",
            meta.len()
        ));
    }
    if meta.len() == 0 {
        return Look::Nothing;
    }
    let Ok(modified) = meta.modified() else {
        return Look::Refused("its modification time cannot be read".into());
    };
    #[cfg(unix)]
    use std::os::unix::fs::MetadataExt as _;
    Look::There(Stamp {
        len: meta.len(),
        modified,
        #[cfg(unix)]
        file: (meta.dev(), meta.ino()),
        #[cfg(unix)]
        moved: (meta.ctime(), meta.ctime_nsec()),
    })
}

impl Stamp {
    /// When it was last written or renamed. Uses `ctime`, which a user cannot set.
    fn placed(&self) -> SystemTime {
        #[cfg(unix)]
        {
            let nanos = u32::try_from(self.moved.1).unwrap_or(0);
            SystemTime::UNIX_EPOCH + Duration::new(self.moved.0.max(0).cast_unsigned(), nanos)
        }
        #[cfg(not(unix))]
        self.modified
    }

    /// Whether it is newer than a file: an answer must be newer than its outbox.
    fn is_after(&self, file: &Path) -> bool {
        let made = file.symlink_metadata().and_then(|meta| meta.modified());
        made.is_ok_and(|made| self.placed() >= made)
    }

    /// Whether it had already been unchanged for long enough.
    fn is_old(&self) -> bool {
        SystemTime::now().duration_since(self.placed()).is_ok_and(|age| age >= STILL)
    }
}

/// Whether a process has the file open for writing, as far as `/proc` shows.
#[cfg(target_os = "linux")]
fn is_written(stamp: &Stamp) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes =
        processes.filter(|p| p.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()));
    processes.into_iter().any(|process| {
        std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten().any(|fd| {
            let same = std::fs::metadata(fd.path())
                .is_ok_and(|meta| (meta.dev(), meta.ino()) == stamp.file);
            same && {
                let info = process.path().join("fdinfo").join(fd.file_name());
                let info = std::fs::read_to_string(info).unwrap_or_default();
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
                // The last digit is the access mode: 0 read, 1 write, 2 both.
                flags.is_some_and(|flags| flags.trim().ends_with(['1', '2']))
            }
        })
    })
}

#[cfg(not(target_os = "linux"))]
fn is_written(_: &Stamp) -> bool {
    false
}

/// Reads an inbox. `None` if it changed meanwhile, or belongs to neither this user nor root.
fn take(path: &Path, stamp: Stamp) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_plain(path).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let (owner, me) = (file.metadata().ok()?.uid(), rustix::process::geteuid().as_raw());
        if owner != me && owner != 0 {
            return None;
        }
    }
    file.take(LONGEST + 1).read_to_end(&mut bytes).ok()?;
    let same = matches!(look(path), Look::There(now) if now == stamp);
    (same && bytes.len() as u64 == stamp.len).then_some(bytes)
}

/// Decodes UTF-8, or UTF-16 with a byte order mark; `None` if it is not text.
fn decoded(bytes: &[u8]) -> Option<String> {
    let wide = |from: &[u8], join: fn([u8; 2]) -> u16| {
        let (pairs, rest) = from.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| join(*pair)).collect();
        String::from_utf16(&units).ok().filter(|_| rest.is_empty())
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    }
}

/// The state of the answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxState {
    /// There is no answer yet.
    Nothing,
    /// There is a file that is ignored, and why.
    Refused(String),
    /// The answer has arrived, or is being written.
    Comes,
}

/// Checks for the answer to a request without waiting for it.
#[must_use]
pub fn brought(session: &SessionId, handed: &OutboxWritten) -> InboxState {
    let folder = Path::new(&handed.inbox).parent().unwrap_or(Path::new(""));
    match judged(folder, &session.to_string(), handed.step) {
        Look::Nothing => InboxState::Nothing,
        Look::Taken => InboxState::Refused(TAKEN.into()),
        Look::Refused(why) => InboxState::Refused(why),
        Look::There(stamp) => match take(Path::new(&handed.inbox), stamp) {
            Some(bytes) if decoded(&bytes).is_none() => InboxState::Refused(NOT_TEXT.into()),
            Some(bytes) if decoded(&bytes).is_some_and(|text| text.trim().is_empty()) => {
                InboxState::Nothing
            }
            Some(bytes) if decoded(&bytes).is_some_and(|text| asks_for_more(&text)) => {
                InboxState::Refused(NEXT.into())
            }
            Some(_) | None => InboxState::Comes,
        },
    }
}

/// The error of a round that was stopped.
const STOPPED: &str = "interrupted: this round is cancelled, and an answer to it is ignored; the \
                       next round asks again";
/// The notice when the chat is still asking for the next part.
const NEXT: &str =
    "the chat asks for the next part: paste it, and save only the answer to the last part";
const NOT_TEXT: &str = "it is not UTF-8 text, so it is ignored; save it as UTF-8";

/// Whether the chat only asks for the next part.
fn asks_for_more(text: &str) -> bool {
    text.trim().trim_matches(['"', '“', '”', '.', '!', '*', '`', '\'']).eq_ignore_ascii_case("next")
}

/// Looks at the inbox and checks that it can be the answer.
fn judged(folder: &Path, session: &str, step: Step) -> Look {
    // If another session has taken over the folder, the answers in it belong to that session.
    if !std::fs::read_to_string(folder.join(OWNER)).is_ok_and(|owner| owner.trim() == session) {
        return Look::Taken;
    }
    if let Err(error) = same_folder(folder) {
        return Look::Refused(error.to_string());
    }
    match look(&folder.join(inbox_name(step))) {
        Look::There(stamp) if !stamp.is_after(&folder.join(outbox_name(step, 0))) => Look::Refused(
            "it is older than its outbox, so it cannot be the answer; save the answer again".into(),
        ),
        look => look,
    }
}

/// Waits for the answer to a request in the outbox.
pub(crate) async fn wait(
    asking: &ModelRequest,
    settings: &BridgeSettings,
    again: &(dyn Fn() -> Result<OutboxWritten, StepFailed> + Send + Sync),
    live: DeltaSink,
    halt: CancellationToken,
) -> Result<(Answered, Vec<Blob>), StepFailed> {
    let step = asking.request.step;
    let name = inbox_name(step);
    let folder = Path::new(&settings.bridge.folder);
    let path = folder.join(&name);
    let session = asking.session.to_string();
    let mut seen: Option<(Stamp, Instant)> = None;
    let (mut shown, mut looks) = (String::new(), 0);
    loop {
        // The user may have deleted the outbox: write it again.
        let mut look = judged(folder, &session, step);
        if !matches!(look, Look::Taken) && !folder.join(outbox_name(step, 0)).exists() {
            look = match again() {
                Ok(_) => judged(folder, &session, step),
                Err(failed) => Look::Refused(failed.error),
            };
        }
        match look {
            Look::Nothing => seen = None,
            Look::Taken | Look::Refused(_) => {
                let why = if let Look::Refused(why) = look { why } else { TAKEN.to_owned() };
                seen = None;
                // Not at the first look: subscribers may not be listening yet.
                looks += 1;
                if looks > 3 && shown != why {
                    live(Delta::Notice { text: format!("{name}: {why}").into() });
                    shown = why;
                }
            }
            Look::There(stamp) => {
                let since = match seen {
                    Some((before, since)) if before == stamp => since,
                    _ => Instant::now(),
                };
                seen = Some((stamp, since));
                if (since.elapsed() >= STILL || stamp.is_old())
                    && !is_written(&stamp)
                    && let Some(bytes) = take(&path, stamp)
                {
                    let mut tell = |why: &str| {
                        if shown != why {
                            live(Delta::Notice { text: format!("{name}: {why}").into() });
                            shown = why.into();
                        }
                    };
                    match decoded(&bytes) {
                        Some(text) if text.trim().is_empty() => {}
                        Some(text) if asks_for_more(&text) => tell(NEXT),
                        Some(text) => {
                            failpoint::hit("carry.inbox", "");
                            return Ok(answered(asking, settings, &text, bytes));
                        }
                        None => tell(NOT_TEXT),
                    }
                }
            }
        }
        tokio::select! {
            biased;
            () = halt.cancelled() => return Err(StepFailed::unsent(step, Failure::Interrupted, STOPPED.into())),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

fn answered(
    asking: &ModelRequest,
    settings: &BridgeSettings,
    text: &str,
    bytes: Vec<u8>,
) -> (Answered, Vec<Blob>) {
    let step = asking.request.step;
    let raw = Blob::new(bytes);
    let inbox = read(text);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let at = At(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
    let answered = Answered {
        step,
        attempts: vec![Attempt { at, ms: 0, error: None, usage: Usage::default() }],
        model: crate::preset::BRIDGE_MODEL.into(),
        wire: WIRE.into(),
        parts: parts(&inbox, &settings.bridge),
        items: Vec::new(),
        effort_refused: false,
        stop: Stop::Calls,
        usage: Usage::default(),
        request: asking.request.hash(),
        raw: Some(raw.hash),
        server_tools: Vec::new(),
    };
    (answered, vec![raw])
}

/// The commands of an answer, as calls to our tools.
fn parts(inbox: &Inbox, bridge: &Bridge) -> Vec<Part> {
    let mut parts = Vec::new();
    if !inbox.prose.is_empty() {
        parts.push(Part::Text { text: inbox.prose.as_str().into() });
    }
    for said in &inbox.said {
        let (tool, args, fault) = match said {
            // For `call:` paths the tool itself finds the output of the earlier call.
            InboxItem::Read { path, lines } => {
                let (first, last) =
                    lines.map_or((None, None), |(first, last)| (Some(first), Some(last)));
                let mut args = json!({ "path": path, "first": first, "last": last, "bare": !path.starts_with("call:") });
                if let Some(args) = args.as_object_mut() {
                    args.retain(|_, value| !value.is_null() && *value != json!(false));
                }
                ("view_file", args, None)
            }
            InboxItem::List { path } => ("list_files", json!({ "path": path }), None),
            InboxItem::Search { text, path } if path.is_empty() => {
                ("search_text", json!({ "pattern": text }), None)
            }
            InboxItem::Search { text, path } => {
                ("search_text", json!({ "pattern": text, "path": path }), None)
            }
            InboxItem::Write { path, body } => {
                let body = if body.is_empty() { String::new() } else { format!("{body}\n") };
                ("write_file", json!({ "path": path, "content": body, "overwrite": true }), None)
            }
            InboxItem::Replace { path, old, new } => {
                ("replace_text", json!({ "path": path, "old": old, "new": new }), None)
            }
            InboxItem::Delete { path } => ("delete_file", json!({ "path": path }), None),
            InboxItem::Run { script } => {
                ("shell", json!({ "command": script, "timeout": bridge.timeout }), None)
            }
            InboxItem::Done => {
                let answer = if inbox.prose.is_empty() { "done" } else { &inbox.prose };
                ("final_output", json!({ "answer": answer }), None)
            }
            InboxItem::Refused(why) => ("command", json!({}), Some(why.as_str().into())),
        };
        let (tool, args) = (tool.to_owned(), args.to_string().into());
        parts.push(Part::Call(Arc::new(CallPart {
            id: String::new(),
            tool,
            args,
            sent: None,
            recovered: false,
            fault,
        })));
    }
    parts
}
