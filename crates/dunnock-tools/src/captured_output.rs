//! A program's output: all of it up to a limit, then its beginning and its end; and the excerpt
//! shown to the model.
//!
//! Invariant: memory use does not grow with the output. Larger output goes to a file, which the log
//! takes over.

use dunnock_ports::{Blob, BlobFile};
use dunnock_proto::{CallId, Hash, count};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum bytes saved of one output: half from its beginning, half from its end.
const KEEP: u64 = 64 << 20;
/// Maximum bytes held in memory.
const MEMORY: usize = 512 << 10;
/// Maximum switches between the streams that are recorded.
const CHANGES: usize = 50_000;

/// Output as it arrives.
#[derive(Debug)]
pub(crate) struct CapturedOutput {
    folder: PathBuf,
    /// All of it, until it is too large for memory.
    memory: Vec<u8>,
    file: Option<Spool>,
    total: u64,
    lines: u64,
    /// Whether the last byte ended a line.
    ends_line: bool,
    /// Which stream wrote how many bytes, in order.
    chunks: Vec<(&'static str, u64)>,
    failed: Option<String>,
}

/// A file that is removed on drop.
#[derive(Debug)]
struct Spool {
    path: PathBuf,
    file: File,
    len: u64,
}

impl Drop for Spool {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl BlobFile for Spool {
    fn path(&self) -> &Path {
        &self.path
    }
    fn len(&self) -> u64 {
        self.len
    }
}

impl Spool {
    fn new(folder: &Path) -> io::Result<Self> {
        static FILES: AtomicU64 = AtomicU64::new(0);
        dunnock_private::create_folder(folder)?;
        sweep(folder);
        let name = format!("{}-{}.out", std::process::id(), FILES.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(name);
        let mut options = dunnock_private::options();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Self { file: options.open(&path)?, path, len: 0 })
    }
}

/// Removes what a killed process left behind.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let old = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        if old.is_some_and(|age| age > Duration::from_secs(86_400)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// What the model is shown, and the full output if that was shortened.
pub(crate) struct Shown {
    pub(crate) text: String,
    pub(crate) full: Option<Blob>,
    pub(crate) streams: Option<Blob>,
}

impl CapturedOutput {
    /// Large output is written to a file in `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        let (memory, chunks) = (Vec::new(), Vec::new());
        Self {
            folder: folder.to_path_buf(),
            memory,
            file: None,
            total: 0,
            lines: 0,
            ends_line: true,
            chunks,
            failed: None,
        }
    }

    pub(crate) fn push(&mut self, stream: &'static str, bytes: &[u8]) {
        let full = self.chunks.len() >= CHANGES;
        match self.chunks.last_mut() {
            Some((last, n)) if *last == stream => *n += bytes.len() as u64,
            Some((last, n)) if full => {
                // Too many switches to be worth recording one by one.
                *last = "mixed";
                *n += bytes.len() as u64;
            }
            _ => self.chunks.push((stream, bytes.len() as u64)),
        }
        self.lines += bytes.iter().filter(|b| **b == b'\n').count() as u64;
        if self.file.is_none() && self.memory.len() + bytes.len() > MEMORY && self.failed.is_none()
        {
            let begun = Spool::new(&self.folder).and_then(|mut spool| {
                spool.file.write_all(&self.memory)?;
                Ok(spool)
            });
            match begun {
                Ok(spool) => self.file = Some(spool),
                Err(error) => self.failed = Some(error.to_string()),
            }
        }
        if let Some(spool) = &mut self.file {
            if let Err(error) = put(&mut spool.file, self.total, bytes) {
                self.failed = Some(error.to_string());
            }
        } else {
            // Without a file, keep the beginning and the end.
            self.memory.extend_from_slice(bytes);
            if self.memory.len() > 2 * MEMORY {
                self.memory.drain(MEMORY / 2..self.memory.len() - MEMORY / 2);
            }
        }
        self.total += bytes.len() as u64;
        self.ends_line = bytes.last().map_or(self.ends_line, |b| *b == b'\n');
    }

    /// Finishes the capture. The model uses `call` to ask for what it is not shown.
    pub(crate) fn shown(mut self, lines: usize, bytes: usize, call: CallId) -> Shown {
        let streams = self.streams();
        if let Some(spool) = self.file.take() {
            match self.spooled(spool, lines, bytes, call) {
                Ok((text, full)) => return Shown { text, full: Some(full), streams },
                Err(error) => self.failed = Some(error.to_string()),
            }
        }
        let lost = self
            .failed
            .as_ref()
            .map(|why| format!("[some of the output could not be saved: {why}]\n"));
        let full = String::from_utf8_lossy(&self.memory).into_owned();
        let short = trimmed(&full, lines, bytes, call);
        let blob = short.is_some().then(|| Blob::new(std::mem::take(&mut self.memory)));
        let text = short.unwrap_or(full) + &lost.unwrap_or_default();
        Shown { text, full: blob, streams }
    }

    /// Total lines, including an unfinished last one.
    fn count(&self) -> u64 {
        self.lines + u64::from(!self.ends_line)
    }

    /// Which stream wrote which of the saved bytes; `gap` is the line that replaces dropped bytes.
    fn streams(&self) -> Option<Blob> {
        let first = self.chunks.first()?.0;
        if self.chunks.iter().all(|(stream, _)| *stream == first) {
            return None;
        }
        let dropped = self.total.saturating_sub(KEEP);
        let gone = KEEP / 2..KEEP / 2 + dropped;
        let mut kept: Vec<(&str, u64)> = Vec::new();
        let mut at = 0;
        for (stream, n) in &self.chunks {
            let end = at + n;
            let before = end.min(gone.start).saturating_sub(at.min(gone.start));
            let after = end.max(gone.end) - at.max(gone.end);
            let (before, after) = if dropped == 0 { (*n, 0) } else { (before, after) };
            kept.extend((before > 0).then_some((*stream, before)));
            if dropped > 0 && at < gone.end && end >= gone.end {
                kept.push(("gap", missing(dropped).len() as u64));
            }
            kept.extend((after > 0).then_some((*stream, after)));
            at = end;
        }
        Some(Blob::new(serde_json::json!(kept).to_string().into_bytes()))
    }

    fn spooled(
        &mut self,
        mut spool: Spool,
        lines: usize,
        bytes: usize,
        call: CallId,
    ) -> io::Result<(String, Blob)> {
        if let Some(why) = &self.failed {
            return Err(io::Error::other(why.clone()));
        }
        if self.total > KEEP {
            spool = unrolled(spool, self.total, &self.folder)?;
        }
        spool.len = spool.file.seek(SeekFrom::End(0))?;
        // Read a little more than is shown, so that a split character does not matter.
        let part = bytes as u64 + 8;
        let (start, end) = (
            text_at(&mut spool.file, 0, part)?,
            text_at(&mut spool.file, spool.len.saturating_sub(part), part)?,
        );
        let head = take(start.split_inclusive('\n'), lines / 3, bytes / 3);
        let head_len: usize = head.iter().map(|l| l.len()).sum();
        let tail = take(end.split_inclusive('\n').rev(), lines - head.len(), bytes - head_len);
        let tail_len: usize = tail.iter().map(|l| l.len()).sum();
        let left = self.total.saturating_sub((head_len + tail_len) as u64);
        let mut text: String = head.concat();
        if head.is_empty() && tail.is_empty() {
            // The lines are longer than the whole limit.
            let (a, b) = (
                start.floor_char_boundary(bytes / 2),
                end.ceil_char_boundary(end.len().saturating_sub(bytes / 2)),
            );
            let (first, last) =
                (start.get(..a).unwrap_or_default(), end.get(b..).unwrap_or_default());
            let left = self.total.saturating_sub((first.len() + last.len()) as u64);
            text = format!("{first}\n[{left} bytes left out]\n{last}");
        } else {
            let gone = self.count().saturating_sub((head.len() + tail.len()) as u64);
            text.push_str(&gap(gone, left, head.len() as u64 + 1, call));
            tail.iter().rev().for_each(|line| text.push_str(line));
        }
        if self.total > KEEP {
            text = format!(
                "[of {} bytes, only the first and the last {} were saved]\n{text}",
                self.total,
                KEEP / 2
            );
        }
        spool.file.rewind()?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 256 << 10];
        loop {
            let n = spool.file.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            hasher.update(buffer.get(..n).unwrap_or_default());
        }
        let hash = Hash(*hasher.finalize().as_bytes());
        Ok((text, Blob::in_file(hash, Arc::new(spool))))
    }
}

/// Writes bytes at offset `at` of the whole output. The second half of the file is a ring buffer.
fn put(file: &mut File, mut at: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let (place, room) = if at < KEEP / 2 {
            (at, KEEP / 2 - at)
        } else {
            let round = (at - KEEP / 2) % (KEEP / 2);
            (KEEP / 2 + round, KEEP / 2 - round)
        };
        let n = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        let (now, rest) = bytes.split_at(n);
        file.seek(SeekFrom::Start(place))?;
        file.write_all(now)?;
        at += n as u64;
        bytes = rest;
    }
    Ok(())
}

/// A copy with the ring buffer in order, and a line in place of dropped bytes.
fn unrolled(mut spool: Spool, total: u64, folder: &Path) -> io::Result<Spool> {
    let mut whole = Spool::new(folder)?;
    let start = (total - KEEP / 2) % (KEEP / 2);
    let mut part = |from: u64, len: u64, to: &mut File| -> io::Result<()> {
        spool.file.seek(SeekFrom::Start(from))?;
        io::copy(&mut (&spool.file).take(len), to).map(drop)
    };
    part(0, KEEP / 2, &mut whole.file)?;
    whole.file.write_all(missing(total - KEEP).as_bytes())?;
    part(KEEP / 2 + start, KEEP / 2 - start, &mut whole.file)?;
    part(KEEP / 2, start, &mut whole.file)?;
    Ok(whole)
}

/// The line in the file that replaces dropped bytes.
fn missing(bytes: u64) -> String {
    format!("\n[{bytes} bytes were not saved]\n")
}

fn text_at(file: &mut File, at: u64, len: u64) -> io::Result<String> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The line that replaces what is left out and says how to read it.
pub(crate) fn gap(lines: u64, bytes: u64, first: u64, call: CallId) -> String {
    let last = first + lines.saturating_sub(1).min(199);
    let how = format!(r#"view_file {{"path":"call:{call}","first":{first},"last":{last}}}"#);
    let (lines, bytes) = (count(lines, "line"), count(bytes, "byte"));
    format!("[{lines}, {bytes} left out; to read them: {how}]\n")
}

/// The beginning and the end of a text, in whole lines, within both limits. `None` if all of it
/// fits.
pub(crate) fn trimmed(text: &str, lines: usize, bytes: usize, call: CallId) -> Option<String> {
    let count = text.lines().count();
    if count <= lines && text.len() <= bytes {
        return None;
    }
    // The end is more useful than the beginning: it has the errors and totals.
    let (head_lines, head_bytes) = (lines / 3, bytes / 3);
    let head = take(text.split_inclusive('\n'), head_lines, head_bytes);
    let head_len: usize = head.iter().map(|l| l.len()).sum();
    let rest = text.get(head_len..).unwrap_or_default();
    let tail = take(rest.split_inclusive('\n').rev(), lines - head.len(), bytes - head_len);
    let tail_len: usize = tail.iter().map(|l| l.len()).sum();
    let middle = rest.get(..rest.len() - tail_len).unwrap_or_default();
    let gone = middle.lines().count();
    let mut out: String = head.concat();
    if head.is_empty() && tail.is_empty() {
        // A single line is longer than the whole limit.
        let (a, b) =
            (text.floor_char_boundary(bytes / 2), text.ceil_char_boundary(text.len() - bytes / 2));
        let (first, last) = (text.get(..a).unwrap_or_default(), text.get(b..).unwrap_or_default());
        return Some(format!("{first}\n[{} bytes left out]\n{last}", b.saturating_sub(a)));
    }
    out.push_str(&gap(gone as u64, middle.len() as u64, head.len() as u64 + 1, call));
    tail.iter().rev().for_each(|line| out.push_str(line));
    Some(out)
}

/// The lines that come first and fit into both limits.
pub(crate) fn take<'a>(
    from: impl Iterator<Item = &'a str>,
    lines: usize,
    bytes: usize,
) -> Vec<&'a str> {
    let mut left = bytes;
    let fits = |line: &&str| match left.checked_sub(line.len()) {
        Some(less) => {
            left = less;
            true
        }
        None => false,
    };
    from.take(lines).take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: CallId = CallId { step: dunnock_proto::Step(3), index: 1 };

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(trimmed("a\nb\n", 2, 10, CALL), None);
    }

    /// Holds T7: the bounds in lines and bytes, the cut part is named.
    #[test]
    fn the_middle_goes_and_is_counted() {
        let text: String = (1..=10).map(|n| format!("line {n}\n")).collect();
        let short = trimmed(&text, 6, 1000, CALL).unwrap();
        assert_eq!(
            short,
            "line 1\nline 2\n[4 lines, 28 bytes left out; to read them: view_file \
             {\"path\":\"call:3.1\",\"first\":3,\"last\":6}]\nline 7\nline 8\nline 9\nline 10\n"
        );
        let one = trimmed(&"é".repeat(100), 10, 20, CALL).unwrap();
        assert_eq!(one, "ééééé\n[180 bytes left out]\nééééé");
    }

    #[test]
    fn beyond_the_bound_both_ends_are_kept_and_the_rest_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        for extra in [0, 1, 1_000_000, 40 << 20] {
            let mut kept = CapturedOutput::new(dir.path());
            let all: Vec<u8> =
                (0..(KEEP + extra) / 8).flat_map(|n| format!("{n:07}\n").into_bytes()).collect();
            all.chunks(100_003).for_each(|piece| kept.push("out", piece));
            let shown = kept.shown(200, 10 << 10, CALL);
            let blob = shown.full.unwrap();
            let bytes = std::fs::read(blob.file.as_ref().unwrap().path()).unwrap();
            assert_eq!(Hash::of(&bytes), blob.hash);
            let half = (KEEP / 2) as usize;
            if extra / 8 * 8 == 0 {
                assert!(bytes == all, "all of it is kept");
            } else {
                let line = format!("\n[{} bytes were not saved]\n", all.len() - 2 * half);
                let expected = [&all[..half], line.as_bytes(), &all[all.len() - half..]].concat();
                assert!(bytes == expected, "both ends: {extra}");
                assert!(
                    shown.text.contains("the first and the last 33554432 were saved"),
                    "{}",
                    shown.text
                );
            }
            let first = shown.text.lines().find(|l| !l.starts_with('['));
            assert!(first == Some("0000000") && shown.text.len() < 11 << 10, "{}", shown.text);
            assert!(shown.text.as_bytes().ends_with(&all[all.len() - 8..]));
        }
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            0,
            "files nobody took over are gone"
        );
    }

    #[test]
    fn which_stream_spoke_is_kept_in_order() {
        let mut kept = CapturedOutput::new(Path::new("."));
        for (stream, text) in [("out", "a"), ("out", "b"), ("err", "c"), ("out", "d")] {
            kept.push(stream, text.as_bytes());
        }
        let shown = kept.shown(200, 10 << 10, CALL);
        assert_eq!((shown.text.as_str(), shown.full.is_none()), ("abcd", true));
        assert_eq!(shown.streams.unwrap().bytes.as_ref(), br#"[["out",2],["err",1],["out",1]]"#);
    }
}
