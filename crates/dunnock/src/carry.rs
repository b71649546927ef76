//! Sessions carried elsewhere and taken in: one JSON object a line. And sessions deleted.
//!
//! The first line names the session, then come its facts as they are stored, then the blobs that they name.

use crate::{end, say};
use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dunnock_core::ports::{Blob, Log};
use dunnock_engine::World;
use dunnock_proto::{Decoded, Hash, Record, SessionId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The first line.
#[derive(Serialize, Deserialize)]
struct First {
    /// The version of this form.
    dunnock_export: u32,
    session: SessionId,
    facts: u64,
    /// The chain up to the last fact.
    head: Hash,
}

/// Bytes that a fact names: as text where they are text.
#[derive(Serialize, Deserialize)]
struct Carried {
    blob: Hash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

pub(crate) async fn export(log: &dyn Log, session: &SessionId, output: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let (facts, head) = dunnock_engine::check_chain(log, session).await?;
    let mut lines = vec![serde_json::to_string(&First { dunnock_export: 1, session: session.clone(), facts, head })?];
    let mut named = Vec::new();
    let mut seen = BTreeSet::new();
    log.read(session, 0, &mut |record| {
        if record.envelope.seq > facts {
            return false; // somebody is working on it
        }
        if let Decoded::Known(event) = record.decode() {
            named.extend(event.blobs().into_iter().filter(|hash| seen.insert(hash.0)));
        }
        lines.extend(serde_json::to_string(&record));
        true
    })
    .await?;
    for hash in named {
        let bytes = log.blob(hash).await?.with_context(|| format!("the blob {hash} is missing"))?;
        let text = std::str::from_utf8(&bytes).ok().map(str::to_owned);
        let base64 = text.is_none().then(|| STANDARD.encode(&bytes));
        lines.push(serde_json::to_string(&Carried { blob: hash, text, base64 })?);
    }
    match output {
        None => lines.iter().for_each(|line| say::line(line)),
        Some(path) => {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&path).with_context(|| format!("{} cannot be written", path.display()))?;
            file.write_all((lines.join("\n") + "\n").as_bytes())?;
            file.sync_all()?;
            say::note(&format!("wrote {} with {facts} facts of session {session}", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn import(world: &World, file: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let from: Box<dyn BufRead> = match &file {
        Some(path) => Box::new(BufReader::new(
            std::fs::File::open(path).with_context(|| format!("{} cannot be read", path.display()))?,
        )),
        None => Box::new(BufReader::new(std::io::stdin())),
    };
    let mut lines = from.lines().enumerate().map(|(n, line)| (n + 1, line));
    let wrong =
        |n: usize, why: &dyn std::fmt::Display| anyhow::anyhow!("line {n} is not of an exported session: {why}");
    let Some((_, first)) = lines.next() else { bail!("there is nothing to import") };
    let first: First = serde_json::from_str(&first?).map_err(|e| wrong(1, &e))?;
    if first.dunnock_export != 1 {
        bail!("a later release exported this (form {}); use that release", first.dunnock_export);
    }
    let (mut records, mut blobs) = (Vec::new(), Vec::new());
    for (n, line) in lines {
        let line = line?;
        if (records.len() as u64) < first.facts {
            records.push(serde_json::from_str::<Record>(&line).map_err(|e| wrong(n, &e))?);
            continue;
        }
        let carried: Carried = serde_json::from_str(&line).map_err(|e| wrong(n, &e))?;
        let bytes = match (carried.text, carried.base64) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(text)) => STANDARD.decode(text).map_err(|e| wrong(n, &e))?,
            (None, None) => return Err(wrong(n, &"a blob without bytes")),
        };
        let blob = Blob::new(bytes);
        if blob.hash != carried.blob {
            return Err(wrong(n, &"the blob is not what was exported"));
        }
        blobs.push(blob);
    }
    let last = records.last().map(|r| (r.envelope.seq, r.chain()));
    if last != Some((first.facts, first.head)) {
        bail!("the facts are not those that were exported; the file was changed or cut");
    }
    let facts = dunnock_engine::import(world, &first.session, records, blobs).await?;
    say::line(&format!("{}  {facts} facts", first.session));
    say::note(
        "what comes from elsewhere asks before it changes anything: its mode is ask, its checks and rules are gone. Flags of \"dunnock resume\" change that",
    );
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn delete(world: &World, session: &SessionId) -> anyhow::Result<ExitCode> {
    match dunnock_engine::remove(world, session).await? {
        true => say::note(&format!("deleted {session}")),
        false => return Err(end::usage(format!("there is no session {session}"))),
    }
    Ok(ExitCode::SUCCESS)
}
