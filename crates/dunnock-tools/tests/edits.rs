//! Edits as a whole: forth and back, killed in between, on a full disk, and against somebody who
//! writes at the same time.

use crate::{job, launcher, put, toolbox};
use dunnock_core::patch::Patch;
use dunnock_ports::{CancellationToken, Tools as _};
use dunnock_proto::{Finished, Outcome};
use dunnock_tools::edit::{CurrentFile, Text, apply};
use dunnock_tools::root::{Contents, mend};
use dunnock_tools::{Limits, Toolbox};
use serde_json::json;
use similar::TextDiff;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

type Files = BTreeMap<String, Vec<u8>>;

/// The same numbers every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    /// Lines of few kinds, so that many are the same; breaks of both kinds; sometimes no last one.
    fn file(&mut self) -> String {
        let words = [
            "",
            "}",
            "    return x;",
            "x = 1",
            "\tif (a) {",
            "end",
            "  - item",
            "fn f() {",
            "-- old",
            "++ new",
            "@@ x",
        ];
        let (lines, dos) = (self.roll(30), self.roll(4));
        let mut text = String::new();
        for _ in 0..lines {
            text.push_str(words[self.roll(words.len())]);
            text.push_str(if dos == 0 || (dos == 1 && self.roll(3) == 0) { "\r\n" } else { "\n" });
        }
        if self.roll(3) == 0 {
            text.push_str("last");
        }
        text
    }

    fn changed(&mut self, text: &str) -> String {
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        for _ in 0..=self.roll(4) {
            let at = self.roll(lines.len() + 1);
            match self.roll(3) {
                0 if at < lines.len() => drop(lines.remove(at)),
                1 if at < lines.len() => lines[at] = lines[at].replace('x', "y").replace('}', "};"),
                _ => lines.insert(
                    at.min(lines.len().saturating_sub(1)),
                    format!("new {}\n", self.roll(9)),
                ),
            }
        }
        lines.concat()
    }
}

/// A diff as git writes it.
fn diff(before: &Files, after: &Files) -> String {
    let mut out = String::new();
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let text = |files: &Files| {
            String::from_utf8(files.get(name).cloned().unwrap_or_default()).unwrap()
        };
        let (a, b) = (text(before), text(after));
        if before.get(name) == after.get(name) {
            continue;
        }
        out.push_str(&format!("diff --git a/{name} b/{name}\n"));
        let side = |files: &Files, letter: &str| match files.contains_key(name) {
            true => format!("{letter}/{name}"),
            false => "/dev/null".into(),
        };
        if !before.contains_key(name) {
            out.push_str("new file mode 100644\n");
        }
        if !after.contains_key(name) {
            out.push_str("deleted file mode 100644\n");
        }
        let lines = TextDiff::from_lines(&a, &b);
        out.push_str(
            &lines.unified_diff().header(&side(before, "a"), &side(after, "b")).to_string(),
        );
    }
    out
}

fn patched(files: &Files, patch: &str) -> Result<Files, String> {
    let parsed = Patch::parse(patch).map_err(|e| e.to_string())?;
    let mut look = |path: &str| {
        let now = files.get(path).map(|bytes| Contents { bytes: bytes.clone(), mode: None });
        Ok(CurrentFile { name: path.to_owned(), now })
    };
    let mut after = files.clone();
    for (name, file) in apply(&parsed, &mut look)? {
        match file.after {
            Some(contents) => drop(after.insert(name, contents.bytes)),
            None => drop(after.remove(&name)),
        }
    }
    Ok(after)
}

#[test]
fn a_patch_and_its_reverse_give_the_same_bytes() {
    let mut dice = Dice(20_261_115);
    let (mut empty, mut hunks) = (0, 0);
    for case in 0..3_000 {
        let mut before = Files::new();
        for name in ["a.txt", "src/b.c", "with blank.md"] {
            if dice.roll(4) > 0 {
                before.insert(name.into(), dice.file().into_bytes());
            }
        }
        let mut after = before.clone();
        for name in ["a.txt", "src/b.c", "with blank.md", "new.txt"] {
            match (dice.roll(5), before.get(name)) {
                (0, _) => drop(after.remove(name)),
                (1.., Some(bytes)) => {
                    let text = dice.changed(std::str::from_utf8(bytes).unwrap());
                    after.insert(name.into(), text.into_bytes());
                }
                (1 | 2, None) => drop(after.insert(name.into(), dice.file().into_bytes())),
                (_, None) => {}
            }
        }
        let (forth, back) = (diff(&before, &after), diff(&after, &before));
        if forth.is_empty() {
            empty += 1;
            continue;
        }
        hunks += forth.matches("\n@@ ").count();
        let there = patched(&before, &forth)
            .unwrap_or_else(|e| panic!("case {case}: {e}\n{forth}\n{before:?}"));
        assert_eq!(there, after, "case {case}: forth\n{forth}");
        let again = patched(&there, &back)
            .unwrap_or_else(|e| panic!("case {case}: {e}\n{back}\n{there:?}"));
        assert_eq!(again, before, "case {case}: back\n{back}");
    }
    println!("{} patches forth and back, {hunks} hunks", 3_000 - empty);
    assert!(empty < 300 && hunks > 3_000);
}

#[test]
fn every_file_gives_its_bytes_again() {
    let mut dice = Dice(7);
    let mut kinds = BTreeMap::new();
    for case in 0..4_000 {
        let text = dice.file() + ["", "gr\u{fc}\u{df}e\n", "\u{1f600}\r\n"][case % 3];
        let bytes: Vec<u8> = match case % 7 {
            0 => text.clone().into_bytes(),
            1 => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            2 => [0xff, 0xfe]
                .into_iter()
                .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
                .collect(),
            3 => [0xfe, 0xff]
                .into_iter()
                .chain(text.encode_utf16().flat_map(u16::to_be_bytes))
                .collect(),
            4 => text.chars().map(|c| c as u32 as u8).filter(|b| *b != 0).collect(),
            5 => [text.as_bytes(), &[0xff, b'\n', 0xe4, 0xc3]].concat(),
            _ => (0..dice.roll(60)).map(|_| dice.roll(256) as u8).collect(),
        };
        match Text::decode(&bytes) {
            Ok(decoded) => {
                *kinds.entry(case % 7).or_insert(0) += 1;
                assert_eq!(decoded.encode().unwrap(), bytes, "case {case}");
                assert_eq!(
                    decoded.with_raw(&decoded.raw()).encode().unwrap(),
                    bytes,
                    "case {case}"
                );
            }
            Err(_) => assert!(bytes.contains(&0), "case {case}: {bytes:?}"),
        }
    }
    println!("bytes kept by kind of file: {kinds:?}");
    assert_eq!(kinds.len(), 7);
}

// Killed

/// A patch of four files: one new in a new folder, two changed, one gone.
const FOUR: &str = "*** Begin Patch\n*** Update File: a.txt\n-one\n+1\n*** Add File: \
                    new/deep/b.txt\n+b\n*** Delete File: c.txt\n*** Update File: \
                    d/d.txt\n-four\n+4\n*** End Patch";

fn four(root: &Path) {
    put(root, &[("a.txt", "one\n"), ("c.txt", "three\n"), ("d/d.txt", "four\n")]);
}

/// Everything in a folder, hidden files and empty folders too.
fn all(root: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let name = entry.path().strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let is_dir = entry.file_type().unwrap().is_dir();
            found.insert(name, (!is_dir).then(|| std::fs::read(entry.path()).unwrap()));
            if is_dir {
                open.push(entry.path());
            }
        }
    }
    found
}

/// The process that is killed. Without being told where, it does nothing.
#[tokio::test]
async fn edit_child() {
    let Some(dir) = std::env::var_os("EDIT_CHILD") else { return };
    dunnock_testkit::failpoints::arm();
    println!("begun");
    let finished = patch_there(Path::new(&dir)).await;
    println!("ended {:?}: {}", finished.outcome, finished.shown);
}

async fn patch_there(dir: &Path) -> Finished {
    let limits = Limits { journals: dir.join("journals"), ..Limits::default() };
    let toolbox = Toolbox::new(limits, &launcher(), &[]);
    let args = json!({ "patch": FOUR }).to_string();
    toolbox
        .run(
            job(&dir.join("w"), "apply_patch", &args),
            Arc::new(|_| {}),
            CancellationToken::default(),
        )
        .await
        .0
}

fn child(dir: &Path, env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["edits::edit_child", "--exact", "--nocapture"]).env("EDIT_CHILD", dir);
    command.envs(env.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// A patch that is killed: after what comes next, all of it is done or nothing is.
#[tokio::test]
async fn a_patch_that_is_killed_is_done_or_undone() {
    let whole = tempfile::tempdir().unwrap();
    four(&whole.path().join("w"));
    let old = all(&whole.path().join("w"));
    let list = whole.path().join("places");
    child(whole.path(), &[("DUNNOCK_FAIL_LIST", list.to_str().unwrap())]).output().unwrap();
    let new = all(&whole.path().join("w"));
    assert_eq!(new["a.txt"].as_deref(), Some(b"1\n".as_slice()));
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for place in std::fs::read_to_string(&list).unwrap().lines().filter(|l| l.starts_with("edit."))
    {
        *times.entry(place.to_owned()).or_default() += 1;
    }
    let places: Vec<String> =
        times.iter().flat_map(|(p, n)| (1..=*n).map(move |n| format!("{p}#{n}"))).collect();
    let mut came = [0, 0];
    let mut half = 0;
    let mut judge = |what: &str, dir: &Path| {
        half += usize::from(all(&dir.join("w")) != old && all(&dir.join("w")) != new);
        mend(&dir.join("journals"));
        let now = all(&dir.join("w"));
        assert!(now == old || now == new, "{what}: {now:#?}");
        came[usize::from(now == new)] += 1;
        assert_eq!(std::fs::read_dir(dir.join("journals")).map_or(0, Iterator::count), 0, "{what}");
    };
    for place in &places {
        let dir = tempfile::tempdir().unwrap();
        four(&dir.path().join("w"));
        let output = child(dir.path(), &[("DUNNOCK_FAIL_AT", place)]).output().unwrap();
        assert!(output.status.code().is_none(), "{place} was not reached");
        judge(place, dir.path());
    }
    // And at any other moment.
    for n in 0..40_u64 {
        let dir = tempfile::tempdir().unwrap();
        four(&dir.path().join("w"));
        let mut running = child(dir.path(), &[]).spawn().unwrap();
        let mut line = String::new();
        let mut out = std::io::BufReader::new(running.stdout.take().unwrap());
        while !line.contains("begun") {
            line.clear();
            std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_micros(n * 150));
        let _ = running.kill();
        running.wait().unwrap();
        judge(&format!("after {} us", n * 150), dir.path());
    }
    println!(
        "{} named places ({}), 40 moments: {} undone, {} done; {half} were half done before",
        places.len(),
        places.join(" "),
        came[0],
        came[1]
    );
    assert!(places.len() >= 8 && half >= 4 && came[0] > 0 && came[1] > 0);
}

/// The same on a disk that is full at different places.
#[tokio::test]
async fn full_edit_child() {
    let Some(dir) = std::env::var_os("FULL_EDIT_CHILD") else { return };
    let dir = Path::new(&dir);
    four(&dir.join("w"));
    let old = all(&dir.join("w"));
    let mut ballast = std::fs::File::create(dir.join("ballast")).unwrap();
    while ballast.write_all(&[1; 512]).is_ok() {}
    let (mut refused, mut done) = (0, 0);
    // Page by page there is more room.
    for _ in 0..40 {
        let length = ballast.metadata().unwrap().len();
        let finished = patch_there(dir).await;
        let now = all(&dir.join("w"));
        match finished.outcome {
            Outcome::Done => {
                assert_ne!(now, old);
                done += 1;
                break;
            }
            _ => {
                assert_eq!(now, old, "{}", finished.shown);
                assert!(finished.shown.contains("No space left"), "{}", finished.shown);
                assert_eq!(std::fs::read_dir(dir.join("journals")).map_or(0, Iterator::count), 0);
                refused += 1;
            }
        }
        ballast.set_len(length.saturating_sub(4096)).unwrap();
    }
    println!("FULL refused {refused} done {done}");
}

#[test]
fn a_patch_on_a_full_disk_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let script = "mkdir disk && mount -t tmpfs -o size=256k none disk && exec \"$0\" \
                  edits::full_edit_child --exact --nocapture";
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap());
    let output = command
        .current_dir(dir.path())
        .env("FULL_EDIT_CHILD", dir.path().join("disk"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|l| l.contains("FULL ")).unwrap_or_else(|| panic!("{output:?}"));
    println!("{line}");
    let refused: usize =
        line.split("refused ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(refused >= 3 && line.ends_with("done 1") && output.status.success(), "{output:?}");
}

// R19

/// How somebody else writes to a file.
#[derive(Debug, Clone, Copy)]
enum Writer {
    /// As editors do: a new file, renamed over the old one.
    Renames,
    /// At its end.
    Appends,
    /// Cut to nothing and written anew.
    Rewrites,
}

/// Adds lines to the file until told to stop; how many.
fn write(how: Writer, path: &Path, stop: &AtomicBool, turns: &AtomicUsize) -> usize {
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        // Once for each edit, at some moment of it.
        let turn = turns.load(Ordering::Relaxed);
        for _ in 0..(count * 37 % 400) {
            std::hint::spin_loop();
        }
        let line = format!("theirs {count}\n");
        let done = match how {
            Writer::Appends => std::fs::File::options()
                .append(true)
                .open(path)
                .and_then(|mut f| f.write_all(line.as_bytes())),
            Writer::Rewrites => {
                std::fs::File::options().read(true).write(true).open(path).and_then(|mut f| {
                    let mut text = String::new();
                    std::io::Read::read_to_string(&mut f, &mut text)?;
                    if text.is_empty() {
                        return Err(std::io::ErrorKind::Interrupted.into());
                    }
                    f.set_len(0)?;
                    std::io::Seek::rewind(&mut f)?;
                    f.write_all(format!("{text}{line}").as_bytes())
                })
            }
            Writer::Renames => std::fs::read_to_string(path).and_then(|text| {
                let new = path.with_extension("theirs");
                std::fs::write(&new, format!("{text}{line}"))?;
                std::fs::rename(&new, path)
            }),
        };
        count += usize::from(done.is_ok());
        while turns.load(Ordering::Relaxed) == turn && !stop.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }
    count
}

/// Races an edit with a writer; edits made, edits refused, lines of the writer, and those of them
/// that are gone.
async fn race(how: Writer, rounds: usize, edit: impl AsyncFn(&Path, usize) -> bool) -> [usize; 4] {
    let dir =
        tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" })
            .unwrap();
    let path = dir.path().join("log.txt");
    let (stop, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (mut made, mut refused, mut written, mut lost) = (0, 0, 0, 0);
    // A new file now and then, or there would be more to compare than to race for.
    for part in 0..rounds / 100 {
        std::fs::write(&path, "ours 0\n").unwrap();
        stop.store(false, Ordering::Relaxed);
        let writer = {
            let (path, stop, turns) = (path.clone(), stop.clone(), turns.clone());
            std::thread::spawn(move || write(how, &path, &stop, &turns))
        };
        for n in 0..100 {
            turns.fetch_add(1, Ordering::Relaxed);
            match edit(dir.path(), part * 100 + n).await {
                true => made += 1,
                false => refused += 1,
            }
        }
        stop.store(true, Ordering::Relaxed);
        let count = writer.join().unwrap();
        written += count;
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: std::collections::BTreeSet<&str> = text.lines().collect();
        lost += (0..count).filter(|n| !lines.contains(format!("theirs {n}").as_str())).count();
        let left =
            std::fs::read_dir(dir.path()).unwrap().flatten().filter(|e| e.file_name() != "log.txt");
        let left: Vec<_> = left
            .map(|e| e.file_name())
            .filter(|n| !n.to_string_lossy().ends_with(".theirs"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
    [made, refused, written, lost]
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_ten_thousand_races_lose_no_update() {
    let journals = tempfile::tempdir().unwrap();
    let toolbox = Toolbox::new(
        Limits { journals: journals.path().into(), ..Limits::default() },
        &launcher(),
        &[],
    );
    let ours = async |root: &Path, n: usize| {
        let args = json!({"path": "log.txt", "old": "^ours [0-9]+$", "new": format!("ours {n}"), "regex": true});
        let job = job(root, "replace_text", &args.to_string());
        let finished = toolbox.run(job, Arc::new(|_| {}), CancellationToken::default()).await.0;
        if finished.outcome != Outcome::Done {
            let known = [
                "was changed by another program",
                "matches nothing",
                "changes nothing",
                "does not exist",
            ];
            assert!(known.iter().any(|words| finished.shown.contains(words)), "{}", finished.shown);
        }
        finished.outcome == Outcome::Done
    };
    // As many editors do: read, write beside it, rename.
    let careless = async |root: &Path, n: usize| {
        let Ok(text) = std::fs::read_to_string(root.join("log.txt")) else { return false };
        let Some((first, rest)) = text.split_once('\n') else { return false };
        let (_, new) = (first, format!("ours {n}\n{rest}"));
        std::fs::write(root.join("log.txt.theirs"), new).unwrap();
        std::fs::rename(root.join("log.txt.theirs"), root.join("log.txt")).is_ok()
    };
    let mut races = 0;
    let mut careless_lost = 0;
    let times: usize = std::env::var("DUNNOCK_R19").map_or(1, |text| text.parse().unwrap());
    for (how, rounds) in
        [(Writer::Renames, 4_000), (Writer::Appends, 4_000), (Writer::Rewrites, 2_000)]
    {
        let rounds = rounds * times;
        let [made, refused, written, lost] = race(how, rounds, ours).await;
        // The control: it must lose something, on a busy machine after some more tries.
        let mut plain = 0;
        for _ in 0..50 {
            plain += race(how, rounds / 10, careless).await[3];
            if plain > 0 {
                break;
            }
        }
        println!(
            "R19 {how:?}: {made} edits made, {refused} refused, {written} updates by others, \
             {lost} lost (a careless editor lost {plain})"
        );
        assert_eq!(lost, 0, "{how:?}");
        assert!(made > 0 && written > rounds / 10, "{how:?}");
        races += made + refused;
        careless_lost += plain;
    }
    assert!(races >= 10_000 && careless_lost > 0, "{races} races");
}

#[tokio::test]
async fn a_stale_edit_shows_the_place_as_it_is_and_the_next_one_fits() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("a.rs", "fn one() {}\nfn two() {}\nfn three() {}\n")]);
    let toolbox = toolbox();
    let call = async |args: &serde_json::Value, seen: &[dunnock_proto::SeenFile]| {
        let seen = seen
            .iter()
            .map(|seen_files| (seen_files.path.clone(), seen_files.hash))
            .collect::<BTreeMap<_, _>>();
        let job = dunnock_ports::ToolCall {
            seen: Arc::new(seen),
            ..job(dir.path(), "replace_text", &args.to_string())
        };
        toolbox.run(job, Arc::new(|_| {}), CancellationToken::default()).await.0
    };
    let seen = crate::run(dir.path(), "view_file", r#"{"path":"a.rs"}"#).await.seen_files;
    assert_eq!(seen.len(), 1);
    put(dir.path(), &[("a.rs", "fn one() {}\nfn two(x: u8) {}\nfn three() {}\n")]);
    let args = json!({"path": "a.rs", "old": "fn two() {}\nfn three() {}", "new": "fn two() {}"});
    let refused = call(&args, &seen).await;
    assert!(
        refused.shown.contains("has changed since you last read it")
            && refused.shown.contains("2  fn two(x: u8) {}"),
        "{}",
        refused.shown
    );
    let args = json!({"path": "a.rs", "old": "fn two(x: u8) {}\nfn three() {}", "new": "fn two(x: u8) {}"});
    let done = call(&args, &refused.seen_files).await;
    assert_eq!(done.outcome, Outcome::Done, "{}", done.shown);
    assert_eq!(done.seen_files.len(), 1);
}

/// An edit that is undone because another program has changed the file loses nothing of a third
/// one, which waits to write to the file that the edit had put there.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_waiting_during_an_undone_edit_loses_nothing() {
    use std::os::unix::fs::MetadataExt as _;
    static PLACE: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("log.txt", "ours\n")]);
    let path = dir.path().join("log.txt");
    let append = |path: &Path| std::fs::File::options().append(true).open(path).unwrap();
    PLACE.set(dir.path().join("undo")).unwrap();
    let hook = |place: &str, _: &str| {
        while place == "edit.turned" && !PLACE.get().unwrap().exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    dunnock_core::failpoint::HOOK.set(hook).unwrap();
    let mut first = append(&path);
    let old = path.metadata().unwrap().ino();
    let args = json!({"path": "log.txt", "old": "ours", "new": "edited"}).to_string();
    let root = dir.path().to_path_buf();
    let edit = tokio::spawn(async move { crate::run(&root, "replace_text", &args).await });
    while path.metadata().unwrap().ino() == old {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    first.write_all(b"first\n").unwrap();
    drop(first);
    let second = std::thread::spawn(move || append(&path).write_all(b"second\n").unwrap());
    // It waits for the edit, which nothing shows from outside.
    tokio::time::sleep(Duration::from_millis(300)).await;
    put(dir.path(), &[("undo", "")]);
    let edited = edit.await.unwrap();
    assert!(edited.shown.contains("was changed by another program"), "{}", edited.shown);
    second.join().unwrap();
    let text = std::fs::read_to_string(dir.path().join("log.txt")).unwrap();
    assert_eq!(text, "ours\nfirst\nsecond\n");
}

#[tokio::test]
async fn a_check_of_the_person_is_run_after_an_edit_and_told() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("a.json", "{}\n"), ("b.txt", "x\n")]);
    let checks = BTreeMap::from([("json".to_owned(), "python3 -m json.tool {path}".to_owned())]);
    let toolbox = Toolbox::new(Limits { checks, ..Limits::default() }, &launcher(), &[]);
    let call = async |tool: &str, args: serde_json::Value| {
        toolbox
            .run(
                job(dir.path(), tool, &args.to_string()),
                Arc::new(|_| {}),
                CancellationToken::default(),
            )
            .await
            .0
    };
    let bad = call("replace_text", json!({"path": "a.json", "old": "{}", "new": "{,}"})).await;
    assert_eq!(bad.outcome, Outcome::Done, "the edit was made");
    assert!(
        bad.shown.contains("check \"python3 -m json.tool 'a.json'\" failed:")
            && bad.shown.contains("[exit 1]"),
        "{}",
        bad.shown
    );
    let good =
        call("replace_text", json!({"path": "a.json", "old": "{,}", "new": "{\"a\": 1}"})).await;
    assert!(good.shown.contains("passed:\n"), "{}", good.shown);
    let other = call("replace_text", json!({"path": "b.txt", "old": "x", "new": "y"})).await;
    assert!(!other.shown.contains("check"), "{}", other.shown);
    assert!(other.diff.is_some());
}
