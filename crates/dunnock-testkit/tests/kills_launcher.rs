//! The program, its launcher, or both are killed at any moment: at the start, while the sandbox is
//! checked, during requests and commands. Nothing is lost, nothing runs twice, no command gets a
//! weaker sandbox, nothing hangs, and no process is left.

use crate::kills::{begun, look, unknown};
use crate::kills_cli::{program, script};
use dunnock_ports::{Catalogue as _, EventLog as _};
use dunnock_proto::{Event, Isolation};
use dunnock_store::Sqlite;
use dunnock_testkit::server::ScriptedServer;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Who is killed, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kill {
    Program,
    Launcher,
    Both,
    /// The program, right after it was started.
    AtStart,
    /// The launcher, while it checks the sandbox.
    InProbe,
}

const KILLS: [Kill; 5] = [Kill::Program, Kill::Launcher, Kill::Both, Kill::AtStart, Kill::InProbe];

/// No run of the program takes this long.
const HANGS: Duration = Duration::from_secs(60);

/// How long processes may take to end after the one that started them.
const GONE: Duration = Duration::from_secs(2);

const START: &[&str] = &["run", "--json", "--approve", "all", "do it"];

/// The direct children of a process.
fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    let all = lists.flat_map(|l| l.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    all.filter_map(|pid| pid.parse().ok()).collect()
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

fn kill(pid: u32) {
    let _ = pid_of(pid).map(|pid| kill_process(pid, Signal::KILL));
}

/// Processes that nobody waits for any more: they were handed to this process when the one that
/// started them died. (This process starts programs itself; those are not meant.)
fn orphans() -> Vec<u32> {
    let started_here = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = words.split(|b| *b == 0);
        let (name, first) = (words.next().unwrap_or_default(), words.next());
        !name.starts_with(b"/proc/")
            && first != Some(b"__launch")
            && (name.ends_with(b"dunnock-killable") || name.ends_with(b"dunnock-testdoor"))
    };
    let dead = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ") || stat.contains(") X ")
    };
    children(std::process::id())
        .into_iter()
        .filter(|pid| !started_here(pid) && !dead(pid))
        .collect()
}

/// A program that this test started.
struct Started(Child);

impl Started {
    fn new(mut command: Command) -> Self {
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Its exit code, output and errors. A program that hangs fails the test.
    fn ended(mut self, what: &str) -> (Option<i32>, String, String) {
        let (mut out, mut err) = (self.0.stdout.take().unwrap(), self.0.stderr.take().unwrap());
        let read = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = out.read_to_end(&mut text);
            text
        });
        let read_err = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = err.read_to_end(&mut text);
            text
        });
        let began = Instant::now();
        let status = loop {
            match self.0.try_wait().unwrap() {
                Some(status) => break status,
                None if began.elapsed() > HANGS => {
                    let _ = self.0.kill();
                    let _ = self.0.wait();
                    unreachable!("{what}: it hangs");
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (status.code(), text(read.join().unwrap()), text(read_err.join().unwrap()))
    }
}

/// Runs it and kills what is to be killed, `after` so long. What it said, and whether the kill hit.
fn killed(what: &str, command: Command, kind: Kill, after: Duration) -> (String, bool) {
    let started = Started::new(command);
    let pid = started.0.id();
    if kind == Kill::InProbe {
        let began = Instant::now();
        while children(pid).is_empty() && began.elapsed() < Duration::from_secs(5) {}
    }
    std::thread::sleep(after);
    let launchers = children(pid);
    let alive = Path::new(&format!("/proc/{pid}/exe")).exists();
    if matches!(kind, Kill::Launcher | Kill::Both | Kill::InProbe) {
        launchers.iter().for_each(|pid| kill(*pid));
    }
    if matches!(kind, Kill::Program | Kill::Both | Kill::AtStart) {
        kill(pid);
    }
    let hit = match kind {
        Kill::Program | Kill::AtStart => alive,
        Kill::Launcher | Kill::Both | Kill::InProbe => !launchers.is_empty(),
    };
    let (_, out, _) = started.ended(what);
    let seen = orphans();
    let began = Instant::now();
    loop {
        let now = orphans();
        let left: Vec<&u32> = seen.iter().filter(|pid| now.contains(pid)).collect();
        if left.is_empty() {
            // They were ours to wait for.
            for pid in seen.into_iter().filter_map(pid_of) {
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
            break;
        }
        let named = |pid: &&u32| {
            std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .unwrap_or_default()
                .replace('\0', " ")
        };
        let names: Vec<String> = left.iter().map(named).collect();
        assert!(began.elapsed() < GONE, "{what}: processes are left: {left:?} {names:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    (out, hit)
}

/// Goes on as a person would, until the session is done. What each try said.
fn go_on(what: &str, dir: &Path, url: &str) -> Vec<String> {
    let mut said = Vec::new();
    let mut args: &[&str] = &["resume", "--json"];
    for _ in 0..6 {
        let (code, out, err) = Started::new(program(dir, url, args)).ended(what);
        said.push(out);
        args = match code {
            Some(0) => return said,
            _ if err.contains("there is no session") => START,
            _ if err.contains("has no task yet") => &["resume", "--json", "--prompt", "do it"],
            _ => &["resume", "--json"],
        };
        said.push(err);
    }
    unreachable!("{what}: it does not come to its end: {said:?}");
}

/// One kill, and everything that must be true of it.
async fn one(what: &str, url: &str, kind: Kill, after: Duration, level: Isolation) -> (bool, bool) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (said, hit) = killed(what, program(dir, url, START), kind, after);
    let began = begun(dir).await;
    let later = go_on(what, dir, url);
    let after = look(dir).await;
    // Lost: everything that was shown is in the log, byte for byte.
    let store = Sqlite::open(&dir.join("data")).await.unwrap().store;
    let session = store.list(None, 1).await.unwrap()[0].id.clone();
    let mut stored = Vec::new();
    let mut read = |record| {
        stored.push(serde_json::to_value(&record).unwrap());
        true
    };
    store.read(&session, 0, &mut read).await.unwrap();
    store.close().await;
    for text in std::iter::once(&said).chain(&later) {
        for line in text.lines().filter(|l| l.contains(r#""type":"event""#) && l.ends_with('}')) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(stored.contains(&line["record"]), "{what}: shown and then lost: {line}");
        }
        // A lower level is never taken for what the machine can do.
        for line in text.lines().filter(|l| l.contains(r#""type":"session""#)) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["isolation"], format!("{level:?}"), "{what}: {line}");
        }
    }
    for (_, event) in &after.facts {
        if let Event::OwnerChanged(e) = event {
            assert_eq!(e.isolation, level, "{what}");
        }
        if let Event::Finished(e) = event {
            assert!(e.isolation.is_none_or(|at| at == level), "{what}: {e:?}");
        }
    }
    assert!(!dir.join("escaped").exists(), "{what}: a command ran without a sandbox");
    // Doubled: each command ran once, or its outcome is unknown.
    let lost = unknown(&after);
    assert_eq!(lost, began, "{what}: unknown is what had begun and not ended, and nothing else");
    let log = std::fs::read_to_string(dir.join("project/log")).unwrap_or_default();
    for (line, step) in [("a", 1), ("b", 3)] {
        let times = log.lines().filter(|l| *l == line).count();
        let unsure = lost.iter().any(|call| call.step.0 == step);
        assert!(times == 1 || (unsure && times == 0), "{what}: {line:?} ran {times} times\n{log}");
    }
    (hit, !lost.is_empty())
}

/// RED-H7, RED-M1, RED-M2, RED-L1.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn killed_programs_and_launchers_lose_double_lower_hang_and_leave_nothing() {
    rustix::process::set_child_subreaper(pid_of(std::process::id())).unwrap();
    let kills: u32 = std::env::var("DUNNOCK_KILLS").map_or(150, |n| n.parse().unwrap());
    let server = ScriptedServer::start(script()).await;
    let url = server.base_url();
    // An undisturbed run: how long it takes, and which level this machine has.
    let whole = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let (code, _, err) = Started::new(program(whole.path(), &url, START)).ended("undisturbed");
    let takes = began.elapsed();
    assert_eq!(code, Some(0), "{err}");
    let level = look(whole.path()).await.facts.iter().find_map(|(_, e)| match e {
        Event::OwnerChanged(e) => Some(e.isolation),
        _ => None,
    });
    let level = level.unwrap();
    assert!(level < Isolation::D, "this test needs a sandbox");
    let one = async |n: u32| {
        let kind = KILLS[n as usize % KILLS.len()];
        // Spread over the run, and over the first moments of it.
        let part = f64::from(n.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24);
        let after = match kind {
            Kill::Program | Kill::Launcher | Kill::Both => takes.mul_f64(part),
            Kill::AtStart => Duration::from_millis(30).mul_f64(part),
            Kill::InProbe => Duration::from_millis(15).mul_f64(part),
        };
        let what = format!("kill {n}: {kind:?} after {after:?}");
        (kind, one(&what, &url, kind, after, level).await)
    };
    let mut table: BTreeMap<Kill, (u32, u32, u32)> = BTreeMap::new();
    for n in 0..kills {
        let (kind, (hit, unknown)) = one(n).await;
        let row = table.entry(kind).or_default();
        row.0 += 1;
        row.1 += u32::from(hit);
        row.2 += u32::from(unknown);
    }
    for (kind, (all, hit, unknown)) in &table {
        println!("{kind:?}: {all} kills, {hit} hit, {unknown} with an unknown outcome");
        assert!(hit * 2 >= *all, "{kind:?}: too few kills hit");
    }
    println!("{kills} kills in {} s", began.elapsed().as_secs());
}
