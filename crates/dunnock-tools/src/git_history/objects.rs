//! Keeps the objects of a repository: hard links to its loose objects and packs, in a folder of
//! ours.
//!
//! `mirror` has what the repository had at the last look, `lost` what has vanished from it since. A
//! hard link costs no space and survives `rm`. It does not survive a program that writes into the
//! object itself; where the file system can share contents (btrfs, XFS), the copy is a separate
//! file and survives that, too.

use super::deadline::Deadline;
use super::files::{self, VersionStamp};
use rustix::fs::{AtFlags, FileType};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `git gc` removes no unreachable object that is younger than this.
const YOUNG: Duration = Duration::from_secs(14 * 86_400);
/// Maximum bytes that are copied, where neither links nor shared contents are possible.
const COPIED: u64 = 64 << 20;
/// Larger indexes of packs are not read.
const LARGE_INDEX: u64 = 256 << 20;
/// How many objects of a vanished pack are looked up.
const SAMPLE: usize = 4096;
/// How many commits are followed back from a ref.
const COMMITS: usize = 1_000;
/// Ends of the names of a pack's files.
const PACK_FILES: &[&str] = &["pack", "idx", "rev", "bitmap", "mtimes", "promisor", "keep"];

/// How objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    /// A separate file with shared contents.
    Clone,
    Link,
    Copy,
}

/// The kept objects of one repository.
#[derive(Debug)]
pub(super) struct Mirror {
    dir: PathBuf,
    means: Means,
    copied: u64,
    /// Folders of objects as they were at the last look, and whether all of it is kept.
    folders: HashMap<OsString, (VersionStamp, bool)>,
    /// Sizes, beginnings and ends of packs.
    packs: BTreeMap<OsString, PackStamp>,
}

/// Shows that a pack was changed in place. Its end is a checksum; git itself changes its time.
#[derive(Debug, PartialEq, Eq)]
struct PackStamp(u64, [u8; 32], [u8; 32]);

impl PackStamp {
    fn read(dir: &OwnedFd, name: &OsStr) -> Option<Self> {
        let (file, stat) = files::open_file(dir, name).ok()?;
        let (size, mut start, mut end) = (VersionStamp::of(&stat).size, [0; 32], [0; 32]);
        let _ = file.read_at(&mut start, 0);
        let _ = file.read_at(&mut end, size.saturating_sub(32));
        Some(Self(size, start, end))
    }
}

/// What a look at the objects found.
#[derive(Debug, Default)]
pub(super) struct Synced {
    /// Objects and packs that vanished although git would not remove them.
    pub(super) vanished: usize,
    /// Packs that were changed in place.
    pub(super) damaged: Vec<String>,
    /// The time was not enough to keep all objects.
    pub(super) too_long: bool,
    /// Why some objects cannot be kept at all.
    pub(super) why: Option<String>,
    /// Something has vanished, for whatever reason.
    pub(super) any_gone: bool,
}

fn is_loose(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    matches!(name.len(), 38 | 62) && name.iter().all(u8::is_ascii_hexdigit)
}

fn is_pack(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let parts = name.strip_prefix("pack-").and_then(|name| name.split_once('.'));
    parts.is_some_and(|(hash, end)| {
        matches!(hash.len(), 40 | 64)
            && hash.bytes().all(|b| b.is_ascii_hexdigit())
            && PACK_FILES.contains(&end)
    })
}

/// The folders that contain objects: packs first, since what vanished may be in one.
fn folders() -> impl Iterator<Item = OsString> {
    std::iter::once("pack".into()).chain((0..=255_u8).map(|n| format!("{n:02x}").into()))
}

/// The names of objects in a folder of ours.
fn kept(dir: &Path) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}

impl Mirror {
    pub(super) fn new(dir: PathBuf) -> Self {
        let means = if cfg!(target_os = "linux") { Means::Clone } else { Means::Link };
        Self { dir, means, copied: 0, folders: HashMap::new(), packs: BTreeMap::new() }
    }

    fn mirror(&self, folder: &OsStr) -> PathBuf {
        self.dir.join("mirror").join(folder)
    }

    fn lost(&self, folder: &OsStr) -> PathBuf {
        self.dir.join("lost").join(folder)
    }

    /// Looks for what is new and what has vanished. New objects are kept until the deadline;
    /// without one, they are left for the next look. With `ours`, a command of ours may have
    /// removed what has vanished: it is kept in `lost`, unless it is in a pack now.
    pub(super) fn sync(
        &mut self,
        git: Option<&OwnedFd>,
        ours: bool,
        mut deadline: Option<&mut Deadline>,
    ) -> Synced {
        let mut done = Synced::default();
        let objects = git.and_then(|git| files::enter(git, Path::new("objects")).ok());
        let known = kept(&self.dir.join("mirror"));
        let now = files::now().saturating_mul(1_000_000);
        let mut packs = None;
        let mut new_pack = false;
        // Most repositories have only some of the possible folders.
        let listed = objects.as_ref().and_then(|objects| files::names(objects).ok());
        let listed: BTreeSet<OsString> =
            listed.unwrap_or_default().into_iter().map(|(name, _)| name).collect();
        for folder in folders() {
            let stat = objects
                .as_ref()
                .filter(|_| listed.contains(&folder))
                .and_then(|objects| files::stat(objects, &folder));
            let stat =
                stat.filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
            let stamp = stat.as_ref().map(VersionStamp::of);
            if stamp.is_none() && !known.contains(&folder) {
                continue;
            }
            let open = || {
                let objects = objects.as_ref().filter(|_| stamp.is_some());
                objects.and_then(|objects| files::enter(objects, Path::new(&folder)).ok())
            };
            if folder == "pack" && ours && !self.packs.is_empty() {
                self.check_packs(open().as_ref(), &mut done);
            }
            let seen = self.folders.get(&folder).filter(|(seen, _)| Some(seen) == stamp.as_ref());
            let nothing_kept = folder != "pack" && !known.contains(&folder);
            match (seen, deadline.as_deref_mut()) {
                (Some((_, true)), _) | (Some(_), None) => continue,
                (None, None) if nothing_kept => continue,
                (_, Some(deadline)) => {
                    if !ours && deadline.is_over() {
                        done.too_long = true;
                        continue;
                    }
                }
                (None, None) => {}
            }
            let source = open();
            let wanted = if folder == "pack" { is_pack } else { is_loose };
            let names = source.as_ref().and_then(|dir| files::names(dir).ok()).unwrap_or_default();
            let there: BTreeSet<OsString> = names
                .into_iter()
                .filter(|(name, kind)| *kind == FileType::RegularFile && wanted(name))
                .map(|(name, _)| name)
                .collect();
            let mirrored = kept(&self.mirror(&folder));
            let fresh: Vec<&OsString> = there.difference(&mirrored).collect();
            new_pack |= folder == "pack" && !fresh.is_empty();
            let gone: Vec<&OsString> = mirrored.difference(&there).collect();
            if !gone.is_empty() {
                done.any_gone = true;
                let packs = packs.get_or_insert_with(|| Packs::read(objects.as_ref()));
                let whole = there.is_empty() && packs.0.is_empty();
                if !ours {
                    gone.iter().for_each(|name| self.drop_kept(&folder, name));
                } else if whole && folder != "pack" && self.lose_folder(&folder) {
                    done.vanished += gone.len();
                } else if folder == "pack" {
                    let stem = |name: &OsString| Path::new(name).with_extension("");
                    // Sorted by name: the files of one pack follow each other.
                    for files in gone.chunk_by(|a, b| stem(a) == stem(b)) {
                        done.vanished += self.lose_pack(objects.as_ref(), files, packs, new_pack);
                    }
                } else {
                    let lost = gone.iter().map(|name| self.lose(&folder, name, packs));
                    done.vanished += lost.sum::<usize>();
                }
            }
            let complete = match (&source, deadline.as_deref_mut()) {
                (Some(source), Some(deadline)) => {
                    self.keep(source, &folder, &fresh, deadline, &mut done)
                }
                (Some(_), None) => fresh.is_empty(),
                (None, _) => true,
            };
            match stamp.and_then(|stamp| stamp.settled(now)) {
                Some(stamp) => self.folders.insert(folder, (stamp, complete)),
                None => self.folders.remove(&folder),
            };
        }
        done
    }

    /// Finds packs that were changed in place.
    fn check_packs(&mut self, source: Option<&OwnedFd>, done: &mut Synced) {
        for (name, known) in &mut self.packs {
            let now = source.and_then(|dir| PackStamp::read(dir, name));
            if let Some(now) = now.filter(|now| *now != *known) {
                done.damaged.push(name.to_string_lossy().into_owned());
                *known = now; // reported once
            }
        }
    }

    /// Keeps new objects; `false` if the time was not enough.
    fn keep(
        &mut self,
        source: &OwnedFd,
        folder: &OsStr,
        fresh: &[&OsString],
        deadline: &mut Deadline,
        done: &mut Synced,
    ) -> bool {
        if folder == "pack" {
            let names = files::names(source).unwrap_or_default();
            for (name, _) in names.iter().filter(|(name, _)| is_pack(name)) {
                if let Some(stamp) = PackStamp::read(source, name) {
                    self.packs.insert(name.clone(), stamp);
                }
            }
            self.packs.retain(|name, _| names.iter().any(|(there, _)| there == name));
        }
        if fresh.is_empty() {
            return true;
        }
        let to = self.mirror(folder);
        if let Err(error) = dunnock_private::create_folder(&to) {
            done.why = Some(error.to_string());
            return false;
        }
        for name in fresh {
            if deadline.is_over() {
                done.too_long = true;
                return false;
            }
            match self.save(source, name, &to.join(name)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => done.why = Some(error.to_string()),
            }
        }
        true
    }

    fn save(&mut self, source: &OwnedFd, name: &OsStr, to: &Path) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.means == Means::Clone {
            let (from, stat) = files::open_file(source, name)?;
            let file = dunnock_private::options().write(true).create_new(true).open(to)?;
            match rustix::fs::ioctl_ficlone(&file, &from) {
                Ok(()) => return same_times(&file, &stat),
                Err(_) => {
                    std::fs::remove_file(to)?;
                    self.means = Means::Link;
                }
            }
        }
        if self.means == Means::Link {
            match rustix::fs::linkat(source, name, rustix::fs::CWD, to, AtFlags::empty()) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => return Ok(()),
                Err(rustix::io::Errno::NOENT) => return Err(io::ErrorKind::NotFound.into()),
                Err(_) => self.means = Means::Copy,
            }
        }
        let (from, stat) = files::open_file(source, name)?;
        let size = VersionStamp::of(&stat).size;
        if self.copied + size > COPIED {
            return Err(io::Error::other(
                "the data folder is on another file system, and there is too much to copy",
            ));
        }
        self.copied += size;
        let mut file = dunnock_private::options().write(true).create_new(true).open(to)?;
        io::copy(&mut from.take(size), &mut file)?;
        same_times(&file, &stat)
    }

    fn drop_kept(&self, folder: &OsStr, name: &OsStr) {
        let _ = std::fs::remove_file(self.mirror(folder).join(name));
    }

    /// Moves a whole folder of objects to `lost`.
    fn lose_folder(&self, folder: &OsStr) -> bool {
        let to = self.lost(folder);
        to.parent().is_some_and(|lost| dunnock_private::create_folder(lost).is_ok())
            && std::fs::rename(self.mirror(folder), to).is_ok()
    }

    /// Keeps a vanished object in `lost`, if it is in no pack now. Returns 1 if git itself would not
    /// have removed it.
    fn lose(&self, folder: &OsStr, name: &OsStr, packs: &Packs) -> usize {
        let object = format!("{}{}", folder.to_string_lossy(), name.to_string_lossy());
        if packs.has(&object) {
            self.drop_kept(folder, name);
            return 0;
        }
        let young = self.mirror(folder).join(name).symlink_metadata().is_ok_and(|about| {
            files::now() / 1000 - about.mtime() < i64::try_from(YOUNG.as_secs()).unwrap_or(0)
        });
        usize::from(self.move_to_lost(folder, name) && young)
    }

    /// The same for the files of a pack, of which the objects may be elsewhere now.
    fn lose_pack(
        &self,
        objects: Option<&OwnedFd>,
        files: &[&OsString],
        packs: &Packs,
        new_pack: bool,
    ) -> usize {
        let folder = OsStr::new("pack");
        let end = |name: &OsString| {
            Path::new(name).extension().and_then(OsStr::to_str).map(str::to_owned)
        };
        let needed = files.iter().any(|name| matches!(end(name).as_deref(), Some("pack" | "idx")));
        let index = files.first().map(|name| self.mirror(folder).join(name).with_extension("idx"));
        let elsewhere = index
            .and_then(|index| Index::open(&index))
            .is_some_and(|index| index.sample(SAMPLE).all(|object| has(objects, packs, &object)));
        if elsewhere || !needed {
            files.iter().for_each(|name| self.drop_kept(folder, name));
            return 0;
        }
        let moved = files.iter().filter(|name| self.move_to_lost(folder, name)).count();
        // Git removes a pack only after it has written another one.
        usize::from(moved > 0 && !new_pack)
    }

    fn move_to_lost(&self, folder: &OsStr, name: &OsStr) -> bool {
        let (from, to) = (self.mirror(folder).join(name), self.lost(folder));
        dunnock_private::create_folder(&to).is_ok() && std::fs::rename(from, to.join(name)).is_ok()
    }

    /// Of these objects, those that the repository no longer has but we do.
    pub(super) fn lost_tips(
        &self,
        git: Option<&OwnedFd>,
        tips: impl IntoIterator<Item = String>,
    ) -> Vec<String> {
        let objects = git.and_then(|git| files::enter(git, Path::new("objects")).ok());
        let (there, lost) = (Packs::read(objects.as_ref()), self.lost_packs());
        let kept = |object: &str| {
            let (folder, name) = object.split_at(2);
            self.lost(OsStr::new(folder)).join(name).exists() || lost.has(object)
        };
        let gone = |object: &String| !has(objects.as_ref(), &there, object) && kept(object);
        tips.into_iter().filter(gone).collect()
    }

    fn lost_packs(&self) -> Packs {
        let dir = self.lost(OsStr::new("pack"));
        let indexes =
            kept(&dir).into_iter().filter(|name| name.to_string_lossy().ends_with(".idx"));
        Packs(indexes.filter_map(|name| Index::open(&dir.join(name))).collect())
    }

    /// Puts everything in `lost` back into the repository. Returns how many objects, and what could
    /// not be put back.
    pub(super) fn restore(&self, git: &OwnedFd) -> (usize, Vec<String>) {
        let (mut done, mut failed) = (0, Vec::new());
        for folder in folders() {
            let lost = self.lost(&folder);
            // The index of a pack comes last: git looks for the pack only then.
            let mut names: Vec<OsString> = kept(&lost).into_iter().collect();
            names.sort_by_key(|name| name.to_string_lossy().ends_with(".idx"));
            for name in names {
                let from = lost.join(&name);
                let path = Path::new("objects").join(&folder).join(&name);
                match put_back(git, &from, &path) {
                    Ok(()) => {
                        done += 1;
                        let _ = std::fs::remove_file(from);
                    }
                    Err(error) => failed.push(format!("{}: {error}", path.display())),
                }
            }
            let _ = std::fs::remove_dir(lost);
        }
        (done, failed)
    }
}

/// Links a kept object into the repository, or copies it. One that was damaged meanwhile is not
/// put back.
fn put_back(git: &OwnedFd, from: &Path, path: &Path) -> io::Result<()> {
    let about = from.symlink_metadata()?;
    if !about.is_file() || !is_sound(from) {
        return Err(io::Error::other("it was damaged"));
    }
    let (dir, name) = files::enter_or_create(git, path)?;
    match rustix::fs::linkat(rustix::fs::CWD, from, &dir, name, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => return Ok(()),
        Err(_) => {}
    }
    files::write(&dir, Path::new(name), &std::fs::read(from)?, 0o444)
}

/// Whether a file begins as its kind of object does. Git itself checks the whole content when it
/// reads it.
fn is_sound(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let mut start = [0; 8];
    match path.extension().and_then(OsStr::to_str) {
        Some("pack") => (&file).read_exact(&mut start).is_ok() && start.starts_with(b"PACK"),
        Some("idx") => (&file).read_exact(&mut start).is_ok(),
        Some(_) => true,
        None => {
            let mut kind = [0; 4];
            let mut reader = flate2::read::ZlibDecoder::new(file);
            reader.read_exact(&mut kind).is_ok()
                && [b"blob", b"tree", b"comm", b"tag "].contains(&&kind)
        }
    }
}

fn same_times(file: &File, stat: &rustix::fs::Stat) -> io::Result<()> {
    let modified = VersionStamp::of(stat).modified;
    let since = Duration::from_nanos(u64::try_from(modified).unwrap_or(0));
    file.set_modified(std::time::UNIX_EPOCH + since)
}

/// Whether a repository has an object.
fn has(objects: Option<&OwnedFd>, packs: &Packs, object: &str) -> bool {
    let loose = |objects: &OwnedFd| {
        let (folder, name) = object.split_at_checked(2)?;
        let dir = files::enter(objects, Path::new(folder)).ok()?;
        let stat = files::stat(&dir, OsStr::new(name))?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_size > 0)
            .then_some(())
    };
    objects.and_then(loose).is_some() || packs.has(object)
}

/// Whether a commit is among the ancestors of another one, as far as both are loose.
pub(super) fn is_ancestor(git: &OwnedFd, old: &str, new: &str) -> bool {
    let mut waiting = vec![new.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(commit) = waiting.pop() {
        if commit == old {
            return true;
        }
        if seen.len() < COMMITS && seen.insert(commit.clone()) {
            waiting.extend(parents(git, &commit).unwrap_or_default());
        }
    }
    false
}

fn parents(git: &OwnedFd, commit: &str) -> Option<Vec<String>> {
    let (folder, name) = commit.split_at_checked(2)?;
    let dir = files::enter(git, &Path::new("objects").join(folder)).ok()?;
    let (file, _) = files::open_file(&dir, OsStr::new(name)).ok()?;
    let mut bytes = Vec::new();
    flate2::read::ZlibDecoder::new(file).take(64 << 10).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let body = text.strip_prefix("commit ")?.split_once('\0')?.1;
    let lines = body.lines().take_while(|line| !line.is_empty());
    Some(lines.filter_map(|line| line.strip_prefix("parent ")).map(str::to_owned).collect())
}

/// The indexes of a repository's packs. One that cannot be read counts as empty: a command could
/// have planted it to hide what it deleted.
#[derive(Default)]
struct Packs(Vec<Index>);

impl Packs {
    fn read(objects: Option<&OwnedFd>) -> Self {
        let mut packs = Self::default();
        let dir = objects.and_then(|objects| files::enter(objects, Path::new("pack")).ok());
        let Some(dir) = dir else { return packs };
        let mut left = LARGE_INDEX * 2;
        for (name, _) in files::names(&dir).unwrap_or_default() {
            if !is_pack(&name) || !name.to_string_lossy().ends_with(".idx") {
                continue;
            }
            let pack = Path::new(&name).with_extension("pack");
            if files::kind(&dir, pack.as_os_str()) != Some(FileType::RegularFile) {
                continue;
            }
            let Ok((bytes, _)) = files::read(&dir, &name, LARGE_INDEX.min(left)) else { continue };
            left = left.saturating_sub(bytes.len() as u64);
            let belongs = |index: &Index| {
                PackStamp::read(&dir, pack.as_os_str()).is_some_and(|pack| index.is_of(&pack))
            };
            packs.0.extend(Index::new(bytes).filter(belongs));
        }
        packs
    }

    fn has(&self, object: &str) -> bool {
        raw(object).is_some_and(|object| self.0.iter().any(|index| index.has(&object)))
    }
}

/// The index of a pack, version 2.
struct Index {
    bytes: Vec<u8>,
    count: usize,
    /// Bytes of an object's name.
    width: usize,
}

impl Index {
    const NAMES: usize = 8 + 256 * 4;

    fn open(path: &Path) -> Option<Self> {
        let about = path.symlink_metadata().ok()?;
        let fits = about.is_file() && about.size() <= LARGE_INDEX;
        Self::new(fits.then(|| std::fs::read(path).ok()).flatten()?)
    }

    fn new(bytes: Vec<u8>) -> Option<Self> {
        if !bytes.starts_with(b"\xfftOc\0\0\0\x02") {
            return None;
        }
        let count = bytes.get(Self::NAMES - 4..Self::NAMES)?.try_into().ok()?;
        let count = usize::try_from(u32::from_be_bytes(count)).ok()?;
        // Names, checksums and offsets, some large offsets, and two checksums at the end.
        let fits = |width: usize| {
            let least = Self::NAMES + count * (width + 8) + 2 * width;
            let most = least.saturating_add(count * 8);
            (least..=most).contains(&bytes.len())
        };
        // The sizes of both kinds can overlap: then the first names decide.
        let sorted = |width: usize| {
            let names = bytes.get(Self::NAMES..).unwrap_or_default().chunks(width).take(count);
            names.clone().zip(names.skip(1)).take(64).all(|(a, b)| a < b)
        };
        let width = [20, 32].into_iter().find(|width| fits(*width) && sorted(*width))?;
        Some(Self { bytes, count, width })
    }

    /// Whether it belongs to a pack: by the number of objects and the checksum at the end.
    fn is_of(&self, PackStamp(size, start, end): &PackStamp) -> bool {
        let sums = self.bytes.len().checked_sub(2 * self.width);
        let sum = sums.and_then(|at| self.bytes.get(at..at + self.width));
        let objects =
            start.get(8..12).and_then(|four| four.try_into().ok()).map(u32::from_be_bytes);
        // A pack holds at least a few bytes for each object.
        let least = u64::try_from(self.count).unwrap_or(u64::MAX).saturating_mul(3);
        start.starts_with(b"PACK")
            && objects.map(u64::from) == u64::try_from(self.count).ok()
            && *size > least
            && sum == end.get(32 - self.width..)
    }

    fn name(&self, n: usize) -> Option<&[u8]> {
        self.bytes.get(Self::NAMES + n * self.width..)?.get(..self.width)
    }

    fn has(&self, object: &[u8]) -> bool {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(name) = self.name(middle) else { return false };
            match name.cmp(object) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return true,
            }
        }
        false
    }

    /// The names of some objects, evenly spread.
    fn sample(&self, most: usize) -> impl Iterator<Item = String> {
        let step = self.count.div_ceil(most).max(1);
        (0..self.count).step_by(step).filter_map(|n| self.name(n).map(hex))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn raw(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect()
}
