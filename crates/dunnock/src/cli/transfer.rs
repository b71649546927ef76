//! Export, import and deletion of sessions. The export format is one JSON object per line.
//!
//! The first line names the session and describes what follows: its events as stored, the blobs
//! they refer to, and the objects that make up the snapshots of its files.

use crate::compose;
use crate::view::exit::{self, usage};
use crate::view::output;
use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dunnock_engine::{Arrival, Clean, Ports, redact};
use dunnock_ports::{Blob, FilesError};
use dunnock_proto::{Decoded, Event, Hash, Record, SessionId, Tree, count};
use dunnock_tools::{Cleaner, ExportFilter, PackedTrees, is_secret_file, secret_values};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

/// The format version that is written; older versions can be read.
const FORM: u32 = 2;
/// Replaces the content of a secret file.
const LEFT_OUT: &[u8] = b"[a secret file, left out of the export]\n";

/// The first line.
#[derive(Serialize, Deserialize)]
struct ExportHeader {
    /// Format version.
    dunnock_export: u32,
    session: SessionId,
    events: u64,
    /// Chain hash up to the last event.
    tip: Hash,
    /// The chain hash before secrets were removed, if any were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original_tip: Option<Hash>,
    /// The commit the folder's repository was at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    /// How many blobs follow the events.
    #[serde(default)]
    blobs: u64,
    /// The file snapshots whose objects follow the blobs, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    trees: Vec<Tree>,
    /// Where secrets were removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redacted: Vec<String>,
}

/// Bytes that an event or a snapshot refers to: as text if they are valid UTF-8, otherwise as
/// base64.
#[derive(Serialize, Deserialize)]
struct ExportedSession {
    #[serde(alias = "object")]
    blob: Hash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl ExportedSession {
    fn line(bytes: &[u8]) -> anyhow::Result<String> {
        let text = std::str::from_utf8(bytes).ok().map(str::to_owned);
        let base64 = text.is_none().then(|| STANDARD.encode(bytes));
        Ok(serde_json::to_string(&Self { blob: Hash::of(bytes), text, base64 })?)
    }

    fn bytes(self) -> Result<Vec<u8>, String> {
        let bytes = match (self.text, self.base64) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(text)) => STANDARD.decode(text).map_err(|e| e.to_string())?,
            (None, None) => return Err("it has no content".into()),
        };
        if Hash::of(&bytes) == self.blob {
            Ok(bytes)
        } else {
            Err("its content does not match its hash".into())
        }
    }
}

/// What is included in an export.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExportOptions {
    pub(crate) files: bool,
    pub(crate) secrets: bool,
}

pub(crate) async fn export(
    open: &compose::Composed,
    session: &SessionId,
    output: Option<PathBuf>,
    what: ExportOptions,
) -> anyhow::Result<ExitCode> {
    let log = open.ports.store.as_ref();
    let (facts, original) = dunnock_engine::check_chain(log, session).await?;
    let mut records: Vec<Record> = Vec::new();
    let each = &mut |record: Record| {
        let known = record.envelope.seq <= facts; // the session may be running
        if known {
            records.push(record);
        }
        known
    };
    log.read(session, 0, each).await?;
    let events: Vec<Event> = records
        .iter()
        .filter_map(|record| match record.decode() {
            Decoded::Known(event) => Some(event),
            Decoded::Unknown(_) => None,
        })
        .collect();
    let mut report: Vec<String> = Vec::new();
    let mut names = BTreeMap::new();
    let cleaner = if what.secrets { None } else { Some(Cleaner::new(words(open, &events).await)) };
    let clean_bytes = |bytes: &[u8]| {
        cleaner.as_ref().map_or_else(|| bytes.to_vec(), |cleaner| cleaner.bytes(bytes))
    };
    let clean = |text: &str| String::from_utf8_lossy(&clean_bytes(text.as_bytes())).into_owned();
    let mut seen = BTreeSet::new();
    let mut blobs: Vec<Vec<u8>> = Vec::new();
    for hash in events.iter().flat_map(Event::blobs).filter(|hash| seen.insert(hash.0)) {
        let bytes = log.blob(hash).await?.with_context(|| format!("the blob {hash} is missing"))?;
        let new = clean_bytes(&bytes);
        if Hash::of(&new) != hash {
            report.push(format!(
                "an output or instructions ({})",
                hash.to_string().get(..12).unwrap_or_default()
            ));
            names.insert(hash.to_string(), Hash::of(&new).to_string());
        }
        blobs.push(new);
    }
    let packed = match what.files {
        true => files(open, &events, cleaner.clone(), &mut report).await,
        false => PackedTrees::default(),
    };
    names.extend(packed.changed.iter().map(|(old, new)| (old.to_string(), new.to_string())));
    for (old, new) in packed.trees.iter().filter(|(old, new)| old != new) {
        names.insert(old.0.clone(), new.0.clone());
    }
    let (records, touched) = redact(records, &Clean { text: &clean, names: &names })?;
    report.extend(touched.iter().map(|seq| format!("event {seq}")));
    let tip = records.last().map_or(original, Record::chain);
    let base = events.iter().find_map(|event| match event {
        Event::Created(created) => created.base.clone(),
        _ => None,
    });
    let first = ExportHeader {
        dunnock_export: FORM,
        session: session.clone(),
        events: facts,
        tip,
        original_tip: (tip != original).then_some(original),
        base,
        blobs: blobs.len() as u64,
        trees: packed.trees.into_iter().map(|(_, new)| new).collect(),
        redacted: report.clone(),
    };
    let mut lines = vec![serde_json::to_string(&first)?];
    for record in &records {
        lines.push(serde_json::to_string(record)?);
    }
    for bytes in blobs.iter().chain(packed.objects.values()) {
        lines.push(ExportedSession::line(bytes)?);
    }
    let states = first.trees.len();
    match output {
        None => lines.iter().for_each(|line| output::line(line)),
        Some(path) => {
            let mut file = dunnock_private::options()
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)
                .with_context(|| format!("{} cannot be written", path.display()))?;
            file.write_all((lines.join("\n") + "\n").as_bytes())?;
            file.sync_all()?;
            let path = path.display();
            output::note(&format!(
                "wrote {path} with {} of session {session} and {} of its files",
                count(facts, "event"),
                count(states, "snapshot")
            ));
        }
    }
    if !report.is_empty() {
        output::note(&format!("secrets were removed in {}:", count(report.len(), "place")));
        report.iter().for_each(|place| output::aside(&format!("  {}", output::one_line(place))));
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of a session and the snapshots of its files, the latest last.
fn states(events: &[Event]) -> (Option<String>, Vec<Tree>) {
    let mut trees: Vec<Tree> = Vec::new();
    let mut workspace = None;
    for event in events {
        let named = match event {
            Event::Checkpointed(e) => vec![e.tree.clone()],
            Event::Finished(e) => vec![e.before.clone(), e.tree.clone(), e.checked_tree.clone()],
            Event::Rewound(e) => vec![e.undo.clone(), e.tree.clone()],
            other => {
                workspace = place(other).or(workspace);
                continue;
            }
        };
        for tree in named.into_iter().flatten() {
            trees.retain(|known| *known != tree);
            trees.push(tree);
        }
    }
    (workspace, trees)
}

/// Secrets that no pattern recognises: provider keys, and values from the folder's secret files.
async fn words(open: &compose::Composed, events: &[Event]) -> Vec<String> {
    let providers = open.client.providers();
    let keys = providers.iter().filter_map(|provider| provider.key.as_ref());
    let mut words: BTreeSet<String> = keys.map(|key| key.expose_secret().to_owned()).collect();
    if let (Some(checkpoints), (Some(workspace), trees)) = (&open.checkpoints, states(events)) {
        let found: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let list = found.clone();
        let look: ExportFilter = Arc::new(move |path: &Path, bytes: Vec<u8>| {
            if is_secret_file(&path.to_string_lossy()) {
                let values = secret_values(&String::from_utf8_lossy(&bytes));
                list.lock().unwrap_or_else(PoisonError::into_inner).extend(values);
            }
            Vec::new()
        });
        let _ = checkpoints.pack_up(&workspace, trees, look).await; // what cannot be read cannot be exported either
        words.extend(found.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
    }
    words.into_iter().filter(|word| word.len() >= 6).collect()
}

/// The file snapshots that the events name, as far as they still exist, with secrets and secret
/// files removed.
async fn files(
    open: &compose::Composed,
    events: &[Event],
    cleaner: Option<Cleaner>,
    report: &mut Vec<String>,
) -> PackedTrees {
    let (Some(checkpoints), (Some(workspace), trees)) = (&open.checkpoints, states(events)) else {
        return PackedTrees::default();
    };
    let found: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let list = found.clone();
    let change: ExportFilter = Arc::new(move |path: &Path, bytes: Vec<u8>| {
        let Some(cleaner) = &cleaner else { return bytes };
        let shown = path.to_string_lossy();
        let new = if is_secret_file(&shown) { LEFT_OUT.to_vec() } else { cleaner.bytes(&bytes) };
        if new != bytes {
            list.lock().unwrap_or_else(PoisonError::into_inner).insert(format!("the file {shown}"));
        }
        new
    });
    let packed = checkpoints.pack_up(&workspace, trees, change).await.unwrap_or_else(|why| {
        output::note(&format!("its files could not be exported: {why}"));
        PackedTrees::default()
    });
    report.extend(found.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
    packed
}

/// How a session is imported.
#[derive(Debug, Clone)]
pub(crate) struct ImportOptions {
    /// A new folder for its files.
    pub(crate) into: Option<PathBuf>,
    /// It is the user's own session.
    pub(crate) trust: bool,
    /// The largest total size of a state of its files.
    pub(crate) most_bytes: u64,
}

pub(crate) async fn import(
    open: &compose::Composed,
    file: Option<PathBuf>,
    ImportOptions { into, trust, most_bytes }: ImportOptions,
) -> anyhow::Result<ExitCode> {
    let from: Box<dyn BufRead> = match &file {
        Some(path) => Box::new(BufReader::new(
            std::fs::File::open(path)
                .with_context(|| format!("{} cannot be read", path.display()))?,
        )),
        None => Box::new(BufReader::new(std::io::stdin())),
    };
    let mut lines = Bounded(from).enumerate().map(|(n, line)| (n + 1, line));
    let wrong = |n: usize, why: &dyn std::fmt::Display| {
        anyhow::anyhow!("line {n} is not part of an exported session: {why}")
    };
    let Some((_, first)) = lines.next() else { bail!("there is nothing to import") };
    let first: ExportHeader = serde_json::from_str(&first?).map_err(|e| wrong(1, &e))?;
    if !(1..=FORM).contains(&first.dunnock_export) {
        bail!("a later release exported this (format {}); use that release", first.dunnock_export);
    }
    let (mut records, mut blobs, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    for (n, line) in lines {
        let line = line?;
        if (records.len() as u64) < first.events {
            records.push(serde_json::from_str::<Record>(&line).map_err(|e| wrong(n, &e))?);
            continue;
        }
        let exported: ExportedSession = serde_json::from_str(&line).map_err(|e| wrong(n, &e))?;
        let bytes = exported.bytes().map_err(|e| wrong(n, &e))?;
        match first.dunnock_export == 1 || (blobs.len() as u64) < first.blobs {
            true => blobs.push(Blob::new(bytes)),
            false => objects.push(bytes),
        }
    }
    let last = records.last().map(|r| (r.envelope.seq, r.chain()));
    if last != Some((first.events, first.tip)) {
        bail!("the events are not the ones that were exported; the file was changed or truncated");
    }
    if open.ports.store.tip(&first.session).await?.is_some() {
        bail!("session {} already exists here; delete it first to import this one", first.session);
    }
    let said = |why: FilesError| anyhow::anyhow!("its files could not be imported: {why}");
    if let Some(checkpoints) = &open.checkpoints {
        checkpoints.check_import(&objects, &first.trees, most_bytes).map_err(said)?;
    }
    let folder = match &into {
        Some(into) => Some(new_folder(into)?),
        None => None,
    };
    let session = first.session.clone();
    let place =
        folder.clone().or_else(|| workspace(&records).filter(|folder| Path::new(folder).is_dir()));
    // An existing folder is touched only for one of the user's own sessions.
    if let (Some(checkpoints), Some(place)) =
        (&open.checkpoints, place.as_ref().filter(|_| folder.is_some() || trust))
    {
        checkpoints
            .unpack(place, session.clone(), objects, first.trees.clone())
            .await
            .map_err(said)?;
    }
    let proven = trust && first.original_tip.is_none();
    let arrival = Arrival { folder: folder.clone(), trusted: trust, proven };
    let facts = match dunnock_engine::import(&open.ports, &session, records, blobs, arrival).await {
        Ok(facts) => facts,
        Err(error) => {
            let gone = open.ports.store.tip(&session).await.is_ok_and(|tip| tip.is_none());
            if let Some(checkpoints) = open.ports.checkpoints.as_ref().filter(|_| gone) {
                let _ = checkpoints.forget(&session).await;
            }
            return Err(error.into());
        }
    };
    let mut missing = Vec::new();
    if place.is_none() {
        missing.push(
            "its folder does not exist here; to continue the session, delete it and import it \
             again with --into DIR"
                .to_owned(),
        );
    }
    if let (Some(folder), Some(checkpoints)) = (folder, &open.checkpoints) {
        let state = dunnock_engine::load(open.ports.store.as_ref(), &session).await?.state;
        let last = state
            .tree
            .filter(|tree| first.trees.contains(tree))
            .or_else(|| first.trees.last().cloned());
        if let Some(last) = last {
            let lacks = checkpoints
                .unfold(&folder, last, PathBuf::from(&folder), !trust)
                .await
                .map_err(said)?;
            let some: Vec<String> = lacks.into_iter().take(5).collect();
            if !some.is_empty() {
                missing
                    .push(format!("not in the export, so not in the folder: {}", some.join(", ")));
            }
        }
    }
    output::line(&format!("{session}  {}", count(facts, "event")));
    missing.iter().for_each(|note| output::note(note));
    if let Some(base) = first.base {
        output::note(&format!("it started at commit {base}"));
    }
    if !first.redacted.is_empty() {
        output::note(&format!(
            "secrets were removed in {} when it was exported",
            count(first.redacted.len(), "place")
        ));
    }
    if !trust {
        output::note(
            "an imported session asks before it changes anything: its mode is ask, and its checks \
             and rules were removed. Flags of \"dunnock resume\" change that; for a session of \
             your own, \"dunnock sessions import --trust\" keeps them",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Creates an empty folder for a session's files.
fn new_folder(into: &Path) -> anyhow::Result<String> {
    if std::fs::read_dir(into).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(usage(format!("{} is not empty; give a new or empty folder", into.display())));
    }
    std::fs::create_dir_all(into)
        .with_context(|| format!("{} cannot be created", into.display()))?;
    Ok(into.canonicalize()?.to_string_lossy().into_owned())
}

/// The last workspace named in the log.
fn workspace(records: &[Record]) -> Option<String> {
    records.iter().rev().find_map(|record| match record.decode() {
        Decoded::Known(event) => place(&event),
        Decoded::Unknown(_) => None,
    })
}

/// The workspace that an event sets, if any.
fn place(event: &Event) -> Option<String> {
    match event {
        Event::Moved(e) => Some(e.workspace.clone()),
        Event::Created(e) => Some(e.workspace.clone()),
        Event::Forked(e) => Some(e.workspace.clone()),
        _ => None,
    }
}

/// The longest line of an export: an output of 64 MB, written as text.
const MOST_LINE: u64 = 256 << 20;

/// Lines of limited length.
struct Bounded(Box<dyn BufRead>);

impl Iterator for Bounded {
    type Item = std::io::Result<String>;
    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        match std::io::Read::take(&mut self.0, MOST_LINE).read_line(&mut line) {
            Ok(0) => None,
            Ok(_) if line.len() as u64 >= MOST_LINE => {
                Some(Err(std::io::Error::other("a line is too long")))
            }
            Ok(_) => Some(Ok(line.trim_end_matches(['\n', '\r']).to_owned())),
            Err(error) => Some(Err(error)),
        }
    }
}

pub(crate) async fn delete(ports: &Ports, session: &SessionId) -> anyhow::Result<ExitCode> {
    match dunnock_engine::remove(ports, session).await? {
        true => output::note(&format!("deleted {session}")),
        false => return Err(exit::usage(format!("there is no session {session}"))),
    }
    Ok(ExitCode::SUCCESS)
}
