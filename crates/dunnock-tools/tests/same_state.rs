//! A scan that reads only what changed finds the same state as one that reads everything, in random
//! worlds: with writers that restore times, keep files mapped, replace and move.

use dunnock_ports::Files as _;
use dunnock_tools::{Bounds, CheckpointStore};
use rustix::fs::{AtFlags, CWD, Timestamps};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Keeps files mapped and stores single bytes in them.
const MAPPER: &str = "
import mmap, sys
maps = {}
for line in sys.stdin:
    what, path, at, byte = line.rstrip('\\n').split('\\t')
    try:
        if what == 'drop':
            maps.pop(path).close()
        else:
            if path not in maps:
                with open(path, 'r+b') as file:
                    maps[path] = mmap.mmap(file.fileno(), 0)
            maps[path][int(at) % len(maps[path])] = int(byte)
    except (OSError, ValueError, KeyError, BufferError):
        pass
    print('done', flush=True)
";

struct Mapper {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Mapper {
    fn start() -> Self {
        let mut child = Command::new("python3")
            .args(["-c", MAPPER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, to, from: BufReader::new(from) }
    }

    fn tell(&mut self, what: &str, path: &Path, at: u64, byte: u8) {
        let told = writeln!(self.to, "{what}\t{}\t{at}\t{byte}", path.display());
        let heard = told.and_then(|()| self.from.read_line(&mut String::new()));
        if heard.unwrap_or(0) == 0 {
            // A store in a file that was cut short meanwhile ends the program.
            *self = Self::start();
        }
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn bytes(&mut self, length: u64) -> Vec<u8> {
        (0..length).map(|_| u8::try_from(self.below(256)).unwrap()).collect()
    }

    fn path(&mut self, root: &Path) -> PathBuf {
        let mut path = root.to_path_buf();
        for _ in 0..self.below(3) {
            path.push(format!("d{}", self.below(3)));
        }
        path.join(format!("f{}", self.below(4)))
    }
}

/// Restores the times of a file after a change.
fn with_old_times(path: &Path, change: impl FnOnce()) {
    let Ok(about) = path.symlink_metadata() else { return };
    change();
    let time = |seconds, nanos| rustix::fs::Timespec { tv_sec: seconds, tv_nsec: nanos };
    let times = Timestamps {
        last_access: time(about.atime(), about.atime_nsec()),
        last_modification: time(about.mtime(), about.mtime_nsec()),
    };
    let _ = rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

/// Changes one thing. What is impossible does nothing.
fn change(root: &Path, rng: &mut Rng, mapper: Option<&mut Mapper>) -> &'static str {
    let (path, other) = (rng.path(root), rng.path(root));
    let _ = path.parent().map(std::fs::create_dir_all);
    let length = rng.below(40);
    let bytes = rng.bytes(length);
    let overwrite = |bytes: &[u8]| {
        if let Ok(file) = std::fs::OpenOptions::new().write(true).open(&path) {
            let _ = file.write_all_at(bytes, 0);
        }
    };
    if let Some(mapper) = mapper
        && rng.below(16) < 3
    {
        if rng.below(3) == 0 {
            mapper.tell("drop", &path, 0, 0);
            return "unmap";
        }
        // Often the same file, so that a store finds it mapped.
        let path = if rng.below(2) == 0 { path } else { root.join("f0") };
        mapper.tell("store", &path, rng.next() >> 1, bytes.first().copied().unwrap_or(1));
        return "store in a mapped file";
    }
    match rng.below(13) {
        0 | 1 => {
            let _ = std::fs::write(&path, &bytes);
            "write"
        }
        2 | 3 => {
            // The same size, in place.
            let size = path.metadata().map_or(0, |about| about.len());
            overwrite(&rng.bytes(size));
            "overwrite"
        }
        4 => {
            let size = path.metadata().map_or(0, |about| about.len());
            let bytes = rng.bytes(size);
            with_old_times(&path, || overwrite(&bytes));
            "overwrite and restore the times"
        }
        5 => {
            let part = path.with_extension("part");
            let _ = std::fs::write(&part, &bytes).and_then(|()| std::fs::rename(&part, &path));
            "replace"
        }
        6 => {
            let _ = std::fs::remove_file(&path);
            "delete"
        }
        7 => {
            let _ = std::fs::rename(&path, &other);
            "move"
        }
        8 => {
            let folder = root.join(format!("d{}", rng.below(3)));
            let _ = std::fs::rename(folder, root.join(format!("d{}", rng.below(3))));
            "move a folder"
        }
        9 => {
            let mode = [0o600, 0o644, 0o755][usize::try_from(rng.below(3)).unwrap()];
            let _ = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode));
            "mode"
        }
        10 => {
            let _ = std::os::unix::fs::symlink(format!("t{}", rng.below(9)), &path);
            "link"
        }
        11 => {
            let _ = std::fs::hard_link(&path, &other);
            "hard link"
        }
        _ => {
            let _ = std::fs::remove_dir_all(root.join(format!("d{}", rng.below(3))));
            "delete a folder"
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_worlds_give_the_same_state_with_and_without_the_index() {
    let worlds: u64 =
        std::env::var("DUNNOCK_WORLDS").ok().and_then(|n| n.parse().ok()).unwrap_or(700);
    let mut all = std::collections::BTreeMap::<&str, usize>::new();
    let (mut mapper, mut states) = (Mapper::start(), std::collections::BTreeSet::new());
    let mut world = 0;
    while world < worlds {
        // Files that changed a short time ago are read again, which finds what a program stores in
        // a file that it keeps mapped. In every other folder only the times say what to read.
        let maps = world % 100 == 0;
        let settle = if maps { Bounds::default().settle } else { Duration::ZERO };
        let bounds = Bounds { settle, ..Bounds::default() };
        // A new folder from time to time; within it, each world continues the one before.
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("w");
        std::fs::create_dir(&root).unwrap();
        let name = root.to_string_lossy().into_owned();
        let store = |base: &str| CheckpointStore::new(dir.path().join(base), Vec::new(), bounds);
        let mut kept = store("kept");
        for _ in 0..50 {
            let mut rng = Rng(world);
            let mut done = Vec::new();
            for _ in 0..1 + rng.below(8) {
                done.push(change(&root, &mut rng, maps.then_some(&mut mapper)));
            }
            if rng.below(10) == 0 {
                kept = store("kept"); // as a new process, with the index from its file
            }
            let with = kept.tree(&name).await.unwrap();
            let without = store("fresh").tree(&name).await.unwrap();
            assert_eq!(with, without, "world {world}: {done:?}");
            std::fs::remove_dir_all(dir.path().join("fresh")).unwrap();
            for what in done {
                *all.entry(what).or_default() += 1;
            }
            states.insert(with.0);
            world += 1;
        }
    }
    println!("{world} worlds, {} states: {all:?}", states.len());
    assert!(all.len() == 13 && states.len() as u64 > worlds / 2, "{all:?}");
}
