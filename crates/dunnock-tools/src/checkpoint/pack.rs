//! Stores contents in one append-only file of records, each named by the hash of its content.
//!
//! A record is a header (hash, length, stored length and form, and a checksum of these) and the
//! bytes, compressed if that makes them smaller. A *root* is a record that names a session's file
//! state; what no root reaches may be collected.
//!
//! Invariant: all writing is done with the store's lock held. Invariant: everything before the mark
//! in `synced` was on disk before the mark was written; everything after it is trusted only once
//! its hash has been verified.

use dunnock_core::failpoint;
use dunnock_proto::{Hash, SessionId};
use flate2::{Compress, Compression, FlushCompress, Status};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const HEADER: usize = 56;
/// Length of the unique name at the start of each file, which keeps data about another file from
/// being taken for data about this one.
const START: u64 = 16;
/// Larger files are compressed piece by piece instead of whole.
const WHOLE: u64 = 4 << 20;
/// The fastest level that still makes text about as small as git does (level 1 of this library does
/// not: 1.5 times as large).
const LEVEL: Compression = Compression::new(2);
/// Bytes to collect before writing.
const BUFFER: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Deflate,
    Root,
}

#[derive(Debug, Clone, Copy)]
struct PackEntry {
    offset: u64,
    raw: u64,
    stored: u64,
    form: Form,
}

impl PackEntry {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.stored)
    }
}

/// A file state that a session refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckpointRoot {
    /// When, in milliseconds since 1970.
    pub(crate) at: i64,
    pub(crate) session: SessionId,
    /// The topmost folder.
    pub(crate) tree: String,
}

/// The result of saving what a reader provides.
pub(crate) enum Put {
    Kept(Hash, u64),
    TooMuch,
    Unreadable,
}

/// Permission to write, as long as it lives.
pub(crate) struct Locked(#[expect(dead_code, reason = "held for its lock")] File);

pub(crate) struct Pack {
    dir: PathBuf,
    file: File,
    /// Inode of the file, to notice when it was replaced.
    inode: u64,
    /// The unique name at the start of the file.
    name: [u8; START as usize],
    places: HashMap<Hash, PackEntry>,
    roots: Vec<CheckpointRoot>,
    /// Where the known records end.
    end: u64,
    /// Records that are not in the file yet.
    buffer: Vec<u8>,
    /// Everything up to here is on disk.
    synced: u64,
    /// Number of known records.
    records: u64,
    /// Headers of records that were not read from the table.
    fresh: Vec<u8>,
    /// A damaged file was found and moved aside; not reported yet.
    pub(crate) put_aside: bool,
}

pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    dunnock_private::options().read(true).write(true).create(true).truncate(false).open(path)
}

impl Pack {
    /// Takes the folder's lock, waiting until it is free.
    pub(crate) fn lock(dir: &Path) -> io::Result<Locked> {
        let file = private_file(&dir.join("lock"))?;
        file.lock()?;
        Ok(Locked(file))
    }

    /// Takes the folder's lock, if it is free.
    pub(crate) fn try_lock(dir: &Path) -> io::Result<Locked> {
        let file = private_file(&dir.join("lock"))?;
        file.try_lock()?;
        Ok(Locked(file))
    }

    /// Opens the store in a folder. A damaged one is moved aside.
    pub(crate) fn open(dir: &Path, locked: &Locked) -> io::Result<Self> {
        match Self::open_as_it_is(dir, locked) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                std::fs::rename(dir.join("objects"), dir.join("objects.damaged"))?;
                for name in ["synced", "table", "index"] {
                    let _ = std::fs::remove_file(dir.join(name));
                }
                Ok(Self { put_aside: true, ..Self::open_as_it_is(dir, locked)? })
            }
            opened => opened,
        }
    }

    /// A pack whose records have not been read yet.
    fn of(dir: &Path, file: File) -> io::Result<Self> {
        Ok(Self {
            dir: dir.to_path_buf(),
            inode: file.metadata()?.ino(),
            name: named(&file, dir)?,
            file,
            places: HashMap::new(),
            roots: Vec::new(),
            end: START,
            buffer: Vec::new(),
            synced: START,
            records: 0,
            fresh: Vec::new(),
            put_aside: false,
        })
    }

    fn open_as_it_is(dir: &Path, _: &Locked) -> io::Result<Self> {
        let file = private_file(&dir.join("objects"))?;
        let mut pack = Self::of(dir, file)?;
        pack.load()?;
        Ok(pack)
    }

    /// Reads what other processes wrote since, and returns whether the file was replaced. Records
    /// that a crash left unfinished are cut off.
    pub(crate) fn refresh(&mut self, locked: &Locked) -> io::Result<bool> {
        let now = std::fs::metadata(self.dir.join("objects")).map(|m| m.ino());
        // Records that could not be written stay in memory only until here.
        let replaced = now.ok() != Some(self.inode)
            || self.end != self.synced
            || self.file.metadata()?.len() < self.end;
        if replaced {
            *self = Self::open(&self.dir, locked)?;
        } else {
            self.load()?;
        }
        Ok(replaced)
    }

    fn load(&mut self) -> io::Result<()> {
        self.buffer.clear();
        let len = self.file.metadata()?.len();
        self.synced = read_mark(&self.dir).unwrap_or(0).clamp(START, len.max(START));
        if self.end == START {
            self.load_table()?;
        }
        while self.end < len {
            let mut bytes = [0; HEADER];
            if self.end + HEADER as u64 > len {
                break;
            }
            self.file.read_exact_at(&mut bytes, self.end)?;
            let Some((hash, place)) =
                parse(&bytes, self.end).filter(|(_, place)| place.end() <= len)
            else {
                break;
            };
            // Only what is certainly on disk is trusted without being read.
            let doubtful = place.end() > self.synced;
            if place.form == Form::Root {
                let bytes = self.read(place)?;
                match serde_json::from_slice(&bytes) {
                    Ok(root) if Hash::of(&bytes) == hash => self.roots.push(root),
                    _ => break,
                }
            } else {
                if doubtful && self.read(place).map_or(true, |bytes| Hash::of(&bytes) != hash) {
                    break;
                }
                self.places.insert(hash, place);
            }
            self.end = place.end();
            self.records += 1;
            self.fresh.extend_from_slice(&bytes);
        }
        if self.end < self.synced {
            return Err(damaged()); // within what was certainly written: do not cut anything off for that
        }
        if self.end < len {
            self.file.set_len(self.end)?;
        }
        if self.end > self.synced {
            // Its writer may have reported it and lost only the mark: sync it now, so that it is
            // never discarded.
            self.file.sync_data()?;
            self.synced = self.end;
            write_mark(&self.dir, self.synced);
        }
        Ok(())
    }

    pub(crate) fn has(&self, hash: &Hash) -> bool {
        self.places.contains_key(hash)
    }

    pub(crate) fn roots(&self) -> &[CheckpointRoot] {
        &self.roots
    }

    /// Bytes that one content takes up.
    pub(crate) fn size_of(&self, hash: &Hash) -> u64 {
        self.places.get(hash).map_or(0, |place| place.stored + HEADER as u64)
    }

    /// Bytes in use.
    pub(crate) fn size(&self) -> u64 {
        self.end
    }

    /// The content with this hash.
    pub(crate) fn get(&mut self, hash: &Hash) -> io::Result<Vec<u8>> {
        let place = *self.places.get(hash).ok_or_else(missing)?;
        if place.offset + place.stored > self.end - self.buffer.len() as u64 {
            self.flush()?;
        }
        let bytes = self.read(place)?;
        if Hash::of(&bytes) == *hash { Ok(bytes) } else { Err(damaged()) }
    }

    /// Copies the content with this hash, piece by piece.
    pub(crate) fn copy(&mut self, hash: &Hash, to: &mut impl io::Write) -> io::Result<()> {
        let place = *self.places.get(hash).ok_or_else(missing)?;
        if place.raw <= WHOLE {
            return to.write_all(&self.get(hash)?);
        }
        self.flush()?;
        let stored = At { file: &self.file, at: place.offset, left: place.stored };
        let mut hasher = Hashing { to, hasher: blake3::Hasher::new() };
        match place.form {
            Form::Plain | Form::Root => io::copy(&mut { stored }, &mut hasher)?,
            Form::Deflate => io::copy(&mut flate2::read::DeflateDecoder::new(stored), &mut hasher)?,
        };
        if hasher.hasher.finalize().as_bytes() != &hash.0 {
            return Err(damaged());
        }
        Ok(())
    }

    fn read(&self, place: PackEntry) -> io::Result<Vec<u8>> {
        let mut stored = vec![0; usize::try_from(place.stored).map_err(|_| missing())?];
        self.file.read_exact_at(&mut stored, place.offset)?;
        match place.form {
            Form::Plain | Form::Root => Ok(stored),
            Form::Deflate => {
                let mut raw =
                    Vec::with_capacity(usize::try_from(place.raw.min(WHOLE)).unwrap_or(0));
                flate2::read::DeflateDecoder::new(stored.as_slice())
                    .take(place.raw + 1)
                    .read_to_end(&mut raw)?;
                Ok(raw)
            }
        }
    }

    /// Saves some bytes; what is already stored is not written again.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<Hash> {
        let hash = Hash::of(bytes);
        if !self.has(&hash) {
            let packed = deflate(bytes);
            match packed {
                Some(packed) => self.append(hash, bytes.len() as u64, Form::Deflate, &packed)?,
                None => self.append(hash, bytes.len() as u64, Form::Plain, bytes)?,
            }
        }
        Ok(hash)
    }

    /// Saves what a reader provides, at most `most` bytes. An error is the store's own: a reader
    /// that fails is `Put::Unreadable`.
    pub(crate) fn put_from(
        &mut self,
        from: &mut impl Read,
        size: u64,
        most: u64,
    ) -> io::Result<Put> {
        if size <= WHOLE {
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
            if from.take(WHOLE * 2).read_to_end(&mut bytes).is_err() {
                return Ok(Put::Unreadable);
            }
            if bytes.len() as u64 == WHOLE * 2 {
                return Ok(Put::TooMuch); // it grows faster than it can be read
            }
            return Ok(Put::Kept(self.put(&bytes)?, bytes.len() as u64));
        }
        // The header is written last: until then nothing after the end counts as a record.
        self.flush()?;
        let (start, mut at) = (self.end, self.end + HEADER as u64);
        let mut from =
            Counting { from: from.take(most + 1), hasher: blake3::Hasher::new(), read: 0 };
        let mut encoder = flate2::read::DeflateEncoder::new(&mut from, LEVEL);
        let mut piece = vec![0; 256 << 10];
        loop {
            let Ok(n) = encoder.read(&mut piece) else {
                self.file.set_len(start)?;
                return Ok(Put::Unreadable);
            };
            if n == 0 {
                break;
            }
            self.file.write_all_at(piece.get(..n).unwrap_or_default(), at)?;
            at += n as u64;
        }
        let (hash, raw) = (Hash(*from.hasher.finalize().as_bytes()), from.read);
        if raw > most || self.has(&hash) {
            self.file.set_len(start)?;
            return Ok(if raw <= most { Put::Kept(hash, raw) } else { Put::TooMuch });
        }
        let place = PackEntry {
            offset: start + HEADER as u64,
            raw,
            stored: at - start - HEADER as u64,
            form: Form::Deflate,
        };
        let head = header(hash, place);
        self.file.write_all_at(&head, start)?;
        self.fresh.extend_from_slice(&head);
        self.records += 1;
        self.places.insert(hash, place);
        self.end = at;
        Ok(Put::Kept(hash, raw))
    }

    /// Records that a session refers to a state, at most once a day.
    pub(crate) fn root(&mut self, root: CheckpointRoot) -> io::Result<()> {
        const DAY: i64 = 86_400_000;
        let known = |r: &CheckpointRoot| {
            r.session == root.session && r.tree == root.tree && root.at - r.at < DAY
        };
        if self.roots.iter().rev().any(known) {
            return Ok(());
        }
        let body = serde_json::to_vec(&root)?;
        let hash = Hash::of(&body);
        self.append(hash, body.len() as u64, Form::Root, &body)?;
        self.roots.push(root);
        Ok(())
    }

    fn append(&mut self, hash: Hash, raw: u64, form: Form, stored: &[u8]) -> io::Result<()> {
        let place =
            PackEntry { offset: self.end + HEADER as u64, raw, stored: stored.len() as u64, form };
        let head = header(hash, place);
        self.buffer.extend_from_slice(&head);
        self.fresh.extend_from_slice(&head);
        self.records += 1;
        self.buffer.extend_from_slice(stored);
        self.end = place.offset + place.stored;
        if form != Form::Root {
            self.places.insert(hash, place);
        }
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.end - self.buffer.len() as u64)?;
        self.buffer.clear();
        Ok(())
    }

    /// Until this returns, a power failure may lose what was saved.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if self.end == self.synced {
            return Ok(());
        }
        failpoint::hit("keep.flush", "");
        self.flush()?;
        failpoint::hit("keep.sync", "");
        self.file.sync_data()?;
        self.synced = self.end;
        write_mark(&self.dir, self.synced);
        self.save_table();
        Ok(())
    }

    /// The table holds all headers, so that opening reads one small file instead of the whole pack.
    /// It may be missing or out of date: records that it does not list are read from the pack.
    fn load_table(&mut self) -> io::Result<()> {
        let Ok(table) = std::fs::read(self.dir.join("table")) else { return Ok(()) };
        let Some((name, headers)) = table.split_at_checked(self.name.len()) else { return Ok(()) };
        if name != self.name {
            return Ok(()); // belongs to a file that was replaced
        }
        let mut at = START;
        let (mut places, mut roots) = (HashMap::with_capacity(headers.len() / HEADER), Vec::new());
        let mut records = 0;
        for bytes in headers.chunks_exact(HEADER) {
            let Some((hash, place)) =
                parse(bytes, at).filter(|(_, place)| place.end() <= self.synced)
            else {
                break;
            };
            if place.form == Form::Root {
                let Ok(root) = serde_json::from_slice(&self.read(place)?) else { return Ok(()) };
                roots.push(root);
            } else {
                places.insert(hash, place);
            }
            at = place.end();
            records += 1;
        }
        (self.places, self.roots, self.records) = (places, roots, records);
        self.end = at;
        Ok(())
    }

    fn save_table(&mut self) {
        let path = self.dir.join("table");
        let fresh = std::mem::take(&mut self.fresh);
        // Other processes may have written some of it.
        let before = self.records - (fresh.len() / HEADER) as u64;
        let saved = (|| {
            let file = private_file(&path)?;
            let mut name = self.name;
            let ours = file.read_exact_at(&mut name, 0).is_ok() && name == self.name;
            if !ours {
                // Missing, or for another file: write a complete one and rename it into place.
                if before > 0 {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let part = self.dir.join("table.part");
                let file = private_file(&part)?;
                file.set_len(0)?;
                file.write_all_at(&self.name, 0)?;
                file.write_all_at(&fresh, START)?;
                return std::fs::rename(part, &path);
            }
            let there = (file.metadata()?.len() - START) / HEADER as u64;
            let known = there.checked_sub(before).ok_or(io::ErrorKind::InvalidData)?;
            let known = usize::try_from(known).unwrap_or(usize::MAX).saturating_mul(HEADER);
            file.write_all_at(fresh.get(known..).unwrap_or_default(), START + there * HEADER as u64)
        })();
        if saved.is_err() {
            let _ = std::fs::remove_file(path); // it is rebuilt from the pack
        }
    }

    /// Discards what could not be written and returns to the last synced state.
    pub(crate) fn give_up(&mut self) -> io::Result<()> {
        self.file.set_len(self.synced)?;
        self.places.clear();
        self.roots.clear();
        self.fresh.clear();
        (self.end, self.records) = (START, 0);
        self.load()
    }

    /// Replaces the pack with a copy that holds only these contents and roots. If killed midway,
    /// one of the two is intact.
    pub(crate) fn replace(
        &mut self,
        live: &[Hash],
        roots: Vec<CheckpointRoot>,
        locked: &Locked,
    ) -> io::Result<()> {
        self.flush()?;
        let part = self.dir.join("objects.part");
        let _ = std::fs::remove_file(&part);
        let file = private_file(&part)?;
        let mut copy = Self::of(&self.dir, file)?;
        let mut order: Vec<(Hash, PackEntry)> =
            live.iter().filter_map(|hash| Some((*hash, *self.places.get(hash)?))).collect();
        order.sort_by_key(|(_, place)| place.offset);
        for (hash, place) in order {
            let at = copy.end;
            let head = header(hash, place);
            copy.buffer.extend_from_slice(&head);
            copy.fresh.extend_from_slice(&head);
            copy.records += 1;
            let mut left = At { file: &self.file, at: place.offset, left: place.stored };
            copy.end = at + HEADER as u64 + place.stored;
            if place.stored <= BUFFER as u64 {
                left.read_to_end(&mut copy.buffer)?;
                if copy.buffer.len() >= BUFFER {
                    copy.flush()?;
                }
            } else {
                let mut body = at + HEADER as u64;
                copy.end = body;
                copy.flush()?;
                let mut piece = vec![0; BUFFER];
                loop {
                    let n = left.read(&mut piece)?;
                    if n == 0 {
                        break;
                    }
                    copy.file.write_all_at(piece.get(..n).unwrap_or_default(), body)?;
                    body += n as u64;
                }
                copy.end = body;
            }
            copy.places.insert(hash, PackEntry { offset: at + HEADER as u64, ..place });
            failpoint::hit("collect.copied", "");
        }
        for root in roots {
            copy.root(root)?;
        }
        copy.flush()?;
        copy.file.sync_all()?;
        failpoint::hit("collect.synced", "");
        // The old mark is for the old file; without a mark, everything is verified.
        let _ = std::fs::remove_file(self.dir.join("synced"));
        let _ = std::fs::remove_file(self.dir.join("table"));
        failpoint::hit("collect.unmarked", "");
        std::fs::rename(&part, self.dir.join("objects"))?;
        failpoint::hit("collect.renamed", "");
        File::open(&self.dir)?.sync_all()?;
        copy.synced = copy.end;
        write_mark(&self.dir, copy.synced);
        copy.save_table();
        failpoint::hit("collect.done", "");
        let _ = locked;
        *self = copy;
        Ok(())
    }
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "it is no longer stored")
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the saved copy is damaged")
}

/// Reads the unique name of a file; an empty file is given one.
fn named(file: &File, path: &Path) -> io::Result<[u8; START as usize]> {
    let mut name = [0; START as usize];
    if file.metadata()?.len() >= START {
        file.read_exact_at(&mut name, 0)?;
        return if name.starts_with(b"DUNNOCK1") { Ok(name) } else { Err(damaged()) };
    }
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    let id = Hash::of_parts(&[
        path.as_os_str().as_encoded_bytes(),
        &now.to_le_bytes(),
        &std::process::id().to_le_bytes(),
    ]);
    let bytes = b"DUNNOCK1".iter().chain(&id.0);
    name.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    file.write_all_at(&name, 0)?;
    Ok(name)
}

/// The record whose header begins at `at`.
fn parse(bytes: &[u8], at: u64) -> Option<(Hash, PackEntry)> {
    let (head, check) = bytes.split_at_checked(HEADER - 8)?;
    if Hash::of(head).0.get(..8) != Some(check) {
        return None;
    }
    let mut reader = super::object::Reader(head);
    let (hash, raw, packed) = (reader.hash().ok()?, reader.u64().ok()?, reader.u64().ok()?);
    let form = match packed >> 56 {
        0 => Form::Plain,
        1 => Form::Deflate,
        2 => Form::Root,
        _ => return None,
    };
    Some((
        hash,
        PackEntry { offset: at + HEADER as u64, raw, stored: packed & ((1 << 56) - 1), form },
    ))
}

fn header(hash: Hash, place: PackEntry) -> [u8; HEADER] {
    let form: u64 = match place.form {
        Form::Plain => 0,
        Form::Deflate => 1,
        Form::Root => 2,
    };
    let mut out = [0; HEADER];
    let fields = hash
        .0
        .iter()
        .copied()
        .chain(place.raw.to_le_bytes())
        .chain((place.stored | form << 56).to_le_bytes());
    out.iter_mut().zip(fields).for_each(|(o, b)| *o = b);
    let (head, check) = out.split_at_mut(HEADER - 8);
    check.iter_mut().zip(Hash::of(head).0).for_each(|(o, b)| *o = b);
    out
}

/// Idle compressors: each takes a quarter of a megabyte, so all stores share them.
static IDLE: Mutex<Vec<Compress>> = Mutex::new(Vec::new());
/// Maximum idle compressors.
const IDLE_MOST: usize = 2;

/// The compressed bytes; `None` if they do not become fewer.
fn deflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let waiting = idle().pop();
    let mut compress = waiting.unwrap_or_else(|| Compress::new(LEVEL, false));
    let packed = deflate_with(&mut compress, bytes);
    let mut idle = idle();
    if idle.len() < IDLE_MOST {
        idle.push(compress);
    }
    packed
}

fn deflate_with(compress: &mut Compress, bytes: &[u8]) -> Option<Vec<u8>> {
    compress.reset();
    let mut out = Vec::with_capacity(bytes.len());
    match compress.compress_vec(bytes, &mut out, FlushCompress::Finish) {
        Ok(Status::StreamEnd) if out.len() < bytes.len() => Some(out),
        _ => None,
    }
}

/// The mark: how far the file is certainly on disk.
fn read_mark(dir: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(dir.join("synced")).ok()?;
    let (mark, check) = text.split_once(' ')?;
    (Hash::of(mark.as_bytes()).to_string() == check).then(|| mark.parse().ok())?
}

fn write_mark(dir: &Path, mark: u64) {
    let mark = mark.to_string();
    let text = format!("{mark} {}", Hash::of(mark.as_bytes()));
    // If this fails, more is verified next time.
    let _ = private_file(&dir.join("synced")).and_then(|file| {
        file.write_all_at(text.as_bytes(), 0)?;
        file.set_len(text.len() as u64)
    });
}

/// Reads a part of a file.
struct At<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let n = self.file.read_at(buffer.get_mut(..most).unwrap_or_default(), self.at)?;
        self.at += n as u64;
        self.left -= n as u64;
        Ok(n)
    }
}

struct Counting<R> {
    from: R,
    hasher: blake3::Hasher,
    read: u64,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buffer)?;
        self.hasher.update(buffer.get(..n).unwrap_or_default());
        self.read += n as u64;
        Ok(n)
    }
}

struct Hashing<'a, W> {
    to: &'a mut W,
    hasher: blake3::Hasher,
}

impl<W: io::Write> io::Write for Hashing<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.to.write(bytes)?;
        self.hasher.update(bytes.get(..n).unwrap_or_default());
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
