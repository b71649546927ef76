//! `bridge`: a conversation that a person carries (B1 to B7, R18).

use crate::{Home, Ran};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn bridge(home: &Home) -> PathBuf {
    home.project().join(".dunnock/bridge")
}

fn outbox(home: &Home, n: u32) -> String {
    std::fs::read_to_string(bridge(home).join(format!("{n:03}-outbox.md"))).unwrap_or_default()
}

/// The person saves an answer, as a careful editor does.
fn bring(home: &Home, n: u32, text: &str) {
    let (part, whole) =
        (bridge(home).join("saving.tmp"), bridge(home).join(format!("{n:03}-inbox.md")));
    std::fs::write(&part, text).unwrap();
    std::fs::rename(part, whole).unwrap();
}

async fn once(home: &Home) -> Ran {
    home.run(&["bridge", "resume", "--once"]).await
}

fn wait_for(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a program that waits; ended when dropped.
struct Waiting(Child);

impl Waiting {
    fn start(home: &Home, args: &[&str]) -> Self {
        Self(home.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
    fn ended(&mut self) -> i32 {
        let mut code = None;
        wait_for("the end", || {
            code = self.0.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Holds B7: plain lines, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn b1_b2_b4_a_task_is_copied_to_a_chat_and_back_until_it_is_verified() {
    let home = Home::empty();
    home.put("greet.txt", "helo\n");
    home.put("AGENTS.md", "Be brief.\n");
    let ran = home
        .run(&[
            "bridge",
            "new",
            "--once",
            "--verify",
            "grep -q hello greet.txt",
            "Mend the greeting",
        ])
        .await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(
        ran.out.starts_with("New session: ") && ran.out.contains("\nTask: Mend the greeting\n"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("001-outbox.md") && ran.out.contains("001-inbox.md"), "{}", ran.out);
    assert_eq!(ran.out.lines().count(), 4, "{}", ran.out);
    let first = outbox(&home, 1);
    for part in [
        "DUNNOCK BRIDGE 1 · round 1",
        "=== INSTRUCTIONS ===",
        "[REPLACE path]",
        "Be brief.",
        "=== TASK ===\nMend the greeting",
        "=== WORKSPACE ===\nAGENTS.md\ngreet.txt",
        "=== END ===",
    ] {
        assert!(first.contains(part), "{part} is missing in:\n{first}");
    }
    // Nothing is there yet: it leaves again, and nothing changes.
    assert_eq!(once(&home).await.code, 3);
    assert_eq!(outbox(&home, 1), first);
    assert!(outbox(&home, 2).is_empty());
    bring(&home, 1, "I look first.\n\n```\n[READ greet.txt]\n[READ missing.txt]\n```\n");
    assert_eq!(once(&home).await.code, 3);
    let second = outbox(&home, 2);
    assert!(second.contains("1. [READ greet.txt]: ok\n") && second.contains("helo"), "{second}");
    assert!(
        second.contains("2. [READ missing.txt]: FAILED")
            && second.contains("missing.txt does not exist"),
        "{second}"
    );
    assert!(second.contains("=== CHANGED SINCE THE LAST ROUND ===\nnothing"), "{second}");
    // A claim is not believed: the check is told.
    bring(&home, 2, "All is well, I am sure.\n\n[DONE]\n");
    assert_eq!(once(&home).await.code, 3);
    let third = outbox(&home, 3);
    assert!(third.contains("The check `grep -q hello greet.txt` did not pass"), "{third}");
    bring(
        &home,
        3,
        "[REPLACE greet.txt]\r\nhelo\r\n[WITH]\r\nhello\r\n[END]\r\n[RUN]\r\necho done > \
         made.txt\r\n[END]\r\n",
    );
    assert_eq!(once(&home).await.code, 3);
    let fourth = outbox(&home, 4);
    assert!(fourth.contains("changed: greet.txt") && fourth.contains("new: made.txt"), "{fourth}");
    bring(&home, 4, "The greeting is mended.\n\n**[DONE]**\n");
    let ran = once(&home).await;
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    assert!(
        ran.out.contains("The greeting is mended.") && ran.err.contains("proven by"),
        "{}{}",
        ran.out,
        ran.err
    );
    assert_eq!(home.read("greet.txt"), "hello\n");
    // It is a session like any other: listed, shown, checked, taken back.
    let id = home.newest().await;
    assert_eq!(home.run(&["sessions", "verify", &id]).await.code, 0);
    assert!(home.run(&["sessions", "show", &id]).await.out.contains("Mend the greeting"));
    assert_eq!(home.run(&["undo", &id]).await.code, 0);
    assert_eq!(home.read("greet.txt"), "helo\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn b1_it_waits_by_default_and_ctrl_c_leaves_it_waiting() {
    let home = Home::empty();
    home.put("a.txt", "one\n");
    let mut waiting = Waiting::start(&home, &["bridge", "new", "Look"]);
    wait_for("the outbox", || !outbox(&home, 1).is_empty());
    bring(&home, 1, "[READ a.txt]\n");
    wait_for("the next outbox", || outbox(&home, 2).contains("one"));
    // The file is there before the event that says so.
    while crate::window::count(&crate::window::facts(&home).await, "outbox_written") < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let pid = rustix::process::Pid::from_child(&waiting.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(waiting.ended(), 130);
    bring(&home, 2, "Seen.\n[DONE]\n");
    let ran = once(&home).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(outbox(&home, 3).is_empty(), "the round that waited is the one that was answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn r18_only_whole_files_are_taken_and_each_once() {
    let home = Home::empty();
    let mut waiting = Waiting::start(&home, &["bridge", "new", "Try"]);
    wait_for("the outbox", || !outbox(&home, 1).is_empty());
    let folder = bridge(&home);
    let quiet = || {
        std::thread::sleep(Duration::from_millis(1_700));
        assert!(outbox(&home, 2).is_empty(), "something half-written was taken for an answer");
    };
    // Editors' own files, wrong names and numbers, and a file without anything in it.
    for name in [
        ".001-inbox.md.swp",
        "001-inbox.md~",
        "#001-inbox.md#",
        "4913",
        "002-inbox.md",
        "001-inbox.txt",
        "1-inbox.md",
    ] {
        std::fs::write(folder.join(name), "[RUN]\ntouch wrong\n[END]\n").unwrap();
    }
    std::fs::write(folder.join("001-inbox.md"), "").unwrap();
    quiet();
    // Somebody types: the file is held open, and rests for longer than a second between two pieces.
    let mut file =
        std::fs::OpenOptions::new().append(true).open(folder.join("001-inbox.md")).unwrap();
    file.write_all(b"[RUN]\necho half >> ran.txt\n[END]\n").unwrap();
    quiet();
    file.write_all(b"[RUN]\necho whole >> ran.txt\n[END]\n").unwrap();
    drop(file);
    wait_for("the next outbox", || !outbox(&home, 2).is_empty());
    assert_eq!(home.read("ran.txt"), "half\nwhole\n", "all of it, once");
    // The same answer again, or a changed one, is not run again.
    bring(&home, 1, "[RUN]\necho again >> ran.txt\n[END]\n");
    assert!(
        folder.join("002-inbox.early.md").exists(),
        "what lay there before its outbox is put aside"
    );
    std::thread::sleep(Duration::from_millis(1_700));
    assert_eq!(home.read("ran.txt"), "half\nwhole\n");
    // Written in pieces, each soon after the other: only the whole counts.
    let mut file = std::fs::File::create(folder.join("002-inbox.md")).unwrap();
    for piece in ["[RU", "N]\necho thi", "rd >> ran", ".txt\n[END]\n", "[DONE]\n"] {
        file.write_all(piece.as_bytes()).unwrap();
        file.sync_all().unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    drop(file);
    assert_eq!(waiting.ended(), 0);
    assert_eq!(home.read("ran.txt"), "half\nwhole\nthird\n");
    assert!(!home.project().join("wrong").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn b1_a_sandboxed_command_cannot_write_an_inbox() {
    let home = Home::empty();
    let outside = home.dir.path().join("letters");
    for (dir, args) in
        [(bridge(&home), vec![]), (outside.clone(), vec!["--dir", outside.to_str().unwrap()])]
    {
        let ran =
            home.run(&[&["bridge", "new", "--once"], args.as_slice(), &["Try"]].concat()).await;
        assert_eq!(ran.code, 3, "{}", ran.err);
        let forged = format!(
            "[RUN]\necho '[RUN]' > {0}/002-inbox.md; mv {0} {0}-moved; ln -s /etc {0}/x; rm -rf \
             {0}/001-outbox.md; mkdir -p {0}/y; cp a {0}/002-inbox.md; exit 0\n[END]\n[WRITE \
             .dunnock/bridge/002-inbox.md]\n[DONE]\n[END]\n",
            dir.display()
        );
        std::fs::write(dir.join("001-inbox.md"), forged).unwrap();
        let ran = once(&home).await;
        assert_eq!(ran.code, 3, "{}", ran.err);
        let mut left: Vec<String> = std::fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.retain(|name| !name.starts_with('.'));
        left.sort();
        assert_eq!(
            left,
            ["001-inbox.md", "001-outbox.md", "002-outbox.md", "dunnock-session"],
            "{}",
            dir.display()
        );
    }
    // Where commands can write, no conversation begins.
    let inside = home.project().join("letters");
    let ran =
        home.run(&["bridge", "new", "--once", "--dir", inside.to_str().unwrap(), "Try"]).await;
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("where commands can write"), "{}", ran.err);
    let open = home.dir.path().join("open");
    std::fs::create_dir_all(&open).unwrap();
    home.configure(&format!("sandbox_write = [\"{}\"]\n", open.display()));
    let ran = home.run(&["bridge", "new", "--once", "--dir", open.to_str().unwrap(), "Try"]).await;
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("commands can write to"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_outbox_comes_in_parts_that_fit_and_results_are_bounded() {
    let home = Home::empty();
    home.configure("bridge_size = 4000\nbridge_output = 1000\n");
    home.put("long.txt", &"a line of this file\n".repeat(400));
    assert_eq!(home.run(&["bridge", "new", "--once", "Look"]).await.code, 3);
    bring(&home, 1, "[READ long.txt]\n[RUN]\nseq 100000\n[END]\n");
    let ran = once(&home).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    let parts: Vec<String> = std::iter::once(outbox(&home, 2))
        .chain((2..20).map(|n| {
            std::fs::read_to_string(bridge(&home).join(format!("002-outbox-{n}.md")))
                .unwrap_or_default()
        }))
        .filter(|part| !part.is_empty())
        .collect();
    assert!(
        parts.len() > 1 && ran.out.contains("other parts"),
        "{} parts: {}",
        parts.len(),
        ran.out
    );
    for (n, part) in parts.iter().enumerate() {
        assert!(part.chars().count() <= 4_000, "part {n} has {} characters", part.chars().count());
        assert!(part.contains(&format!("part {} of {}", n + 1, parts.len())), "{part}");
        assert_eq!(part.contains("More follows"), n + 1 < parts.len());
    }
    let whole = parts.concat();
    let run = &whole[whole.find("2. [RUN] seq").unwrap()..];
    assert!(run.len() < 3_000 && run.contains("omitted; [READ call:"), "{} characters", run.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn b5_b6_a_command_of_a_chat_has_thirty_seconds_or_as_many_as_are_set() {
    let home = Home::empty();
    home.configure("bridge_timeout = 1\n");
    assert_eq!(home.run(&["bridge", "new", "--once", "Try"]).await.code, 3);
    bring(&home, 1, "[RUN]\necho begun; sleep 60; echo ended\n[END]\n");
    assert_eq!(once(&home).await.code, 3);
    assert!(
        outbox(&home, 2).contains("[stopped: it took longer than 1 s]"),
        "{}",
        outbox(&home, 2)
    );
    // B6: the environment comes before the file, a flag before both.
    let mut command =
        home.command(&["bridge", "new", "--once", "--dir", ".dunnock/elsewhere", "Try"]);
    command.env("DUNNOCK_BRIDGE_TIMEOUT", "7").env("DUNNOCK_BRIDGE_DIR", ".dunnock/other");
    assert_eq!(crate::ran(command).await.code, 3);
    let text = home.read(".dunnock/elsewhere/001-outbox.md");
    assert!(text.contains("for at most 7 seconds"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_conversation_leaves_the_files_of_the_one_before_and_each_can_go_on() {
    let home = Home::empty();
    home.put("a.txt", "one\n");
    assert_eq!(home.run(&["bridge", "new", "--once", "First"]).await.code, 3);
    let first = home.newest().await;
    assert_eq!(home.run(&["bridge", "new", "--once", "Second"]).await.code, 3);
    assert!(outbox(&home, 1).contains("Second"));
    // An answer that lies here now is the second's, whoever asks.
    bring(&home, 1, "[WRITE made.txt]\nby the second\n[END]\n");
    let ran = home.run(&["resume", &first]).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(!home.project().join("made.txt").exists(), "the first took an answer to the second");
    let ran = home.run(&["bridge", "resume", "--once", &first]).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(outbox(&home, 1).contains("First") && !home.project().join("made.txt").exists());
    bring(&home, 1, "Seen.\n[DONE]\n");
    assert_eq!(home.run(&["bridge", "resume", "--once", &first]).await.code, 0);
    let rows = home.run(&["sessions", "list", "--json"]).await.out;
    let row = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let second = rows.lines().map(row).find(|row| row["title"] == "Second").unwrap();
    let ran = home.run(&["bridge", "resume", "--once", &second["id"].as_str().unwrap()[..8]]).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert_eq!(home.read("made.txt"), "by the second\n", "what was put aside came back");
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_ask_as_always_and_nothing_behind_is_lost() {
    let home = Home::empty();
    assert_eq!(home.run(&["bridge", "new", "--once", "--approve", "ask", "Try"]).await.code, 3);
    bring(&home, 1, "[WRITE a.txt]\none\n[END]\n[RUN]\necho two > b.txt\n[END]\n");
    let ran = once(&home).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(outbox(&home, 2).is_empty() && !home.project().join("a.txt").exists());
    let id = home.newest().await;
    let ran = home.run(&["approve", &id, "1.0"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = home.run(&["decline", &id, "1.1", "--note", "not now", "--go"]).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert_eq!(home.read("a.txt"), "one\n");
    assert!(!home.project().join("b.txt").exists());
    assert!(
        outbox(&home, 2).contains("the person declined this call: not now"),
        "{}",
        outbox(&home, 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_answered_kindly() {
    let home = Home::empty();
    for (args, word) in [
        (&["bridge", "resume"][..], "no copy-and-paste session in"),
        (&["bridge", "copy"], "no copy-and-paste session in"),
        (&["bridge", "new", "--model", "a/b", "x"], "you choose the chat"),
        (&["bridge", "new", "--planner", "x"], "--planner does not work with"),
        (&["run", "--model", "bridge/chat", "x"], "dunnock bridge new"),
    ] {
        let ran = home.run(args).await;
        assert!(ran.code != 0 && ran.err.contains(word), "{args:?}: {} {}", ran.code, ran.err);
    }
    // A folder that a repository made a link of.
    std::fs::create_dir_all(home.project().join(".dunnock")).unwrap();
    let elsewhere = home.dir.path().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, bridge(&home)).unwrap();
    let ran = home.run(&["bridge", "new", "--once", "x"]).await;
    assert!(ran.code == 1 && ran.err.contains("through a symbolic link"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_is_said_and_one_round_never_waits_for_it() {
    let home = Home::empty();
    home.put("a.txt", "one\n");
    assert_eq!(home.run(&["bridge", "new", "--once", "Try"]).await.code, 3);
    let inbox = bridge(&home).join("001-inbox.md");
    // (what lies there, what is said of it)
    let cases: [(&[u8], &str); 3] = [
        (b"\n", ""),
        (b"caf\xe9 [DELETE a.txt]\n[DELETE a.txt]\n", "save it as UTF-8"),
        (&[b'x'; 3 << 20], "more than"),
    ];
    for (bytes, said) in cases {
        std::fs::write(&inbox, bytes).unwrap();
        let began = Instant::now();
        let ran = once(&home).await;
        assert_eq!(ran.code, 3, "{said}: {}", ran.err);
        dunnock_testkit::timing::figure(
            "an inbox that is no answer",
            began.elapsed(),
            Duration::from_secs(10),
        );
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
        assert!(home.project().join("a.txt").exists() && outbox(&home, 2).is_empty());
        std::fs::remove_file(&inbox).unwrap();
    }
    // Somebody tidied the outbox away: it is written again, and can be answered.
    let first = outbox(&home, 1);
    std::fs::remove_file(bridge(&home).join("001-outbox.md")).unwrap();
    let mut waiting = Waiting::start(&home, &["bridge", "resume"]);
    wait_for("the outbox again", || outbox(&home, 1) == first);
    bring(&home, 1, "Seen.\n[DONE]\n");
    assert_eq!(waiting.ended(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_from_before_from_others_or_from_a_command_does_not_count() {
    let home = Home::empty();
    home.put("a.txt", "one\n");
    let letters = home.dir.path().join("letters");
    let dir = letters.to_str().unwrap();
    assert_eq!(home.run(&["bridge", "new", "--once", "--dir", dir, "Try"]).await.code, 3);
    // A later setting lets commands write there: nothing goes on.
    let forge = format!(
        "[RUN]\necho '[DELETE a.txt]' > {dir}/002-inbox.md; touch -d 2036-01-01 \
         {dir}/002-inbox.md\n[END]\n"
    );
    std::fs::write(letters.join("001-inbox.md"), &forge).unwrap();
    home.configure(&format!("sandbox_write = [\"{dir}\"]\n"));
    let ran = once(&home).await;
    assert!(home.project().join("a.txt").exists(), "{}", ran.err);
    home.configure("");
    assert_eq!(once(&home).await.code, 3);
    assert!(!letters.join("002-inbox.md").exists(), "a command wrote an inbox");
    // One that lies there before its outbox, with a time of its own choosing.
    std::fs::write(letters.join("003-inbox.md"), "[DELETE a.txt]\n").unwrap();
    std::fs::write(letters.join("002-inbox.md"), "[READ a.txt]\n").unwrap();
    let future = std::time::SystemTime::now() + Duration::from_secs(1_000_000);
    std::fs::File::options()
        .write(true)
        .open(letters.join("003-inbox.md"))
        .unwrap()
        .set_modified(future)
        .unwrap();
    assert_eq!(once(&home).await.code, 3);
    assert!(home.project().join("a.txt").exists() && letters.join("003-inbox.early.md").exists());
    // A folder in which others can write.
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&letters, std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::write(letters.join("003-inbox.md"), "[DELETE a.txt]\n").unwrap();
    let ran = once(&home).await;
    assert!(home.project().join("a.txt").exists() && ran.code != 0, "{}", ran.err);
    assert!(ran.err.contains("other users own or can write to"), "{}", ran.err);
}

/// A conversation that a program waits for is opened in a terminal meanwhile, which goes on alone
/// when that program is killed.
#[tokio::test(flavor = "multi_thread")]
async fn b1_a_conversation_is_opened_in_the_terminal_and_continues_there() {
    let home = Home::empty();
    home.put("a.txt", "one\n");
    let mut waiting = Waiting::start(&home, &["bridge", "new", "Look"]);
    wait_for("the outbox", || !outbox(&home, 1).is_empty());
    let id = home.newest().await;
    let window = crate::window::Window::shell(&home, 100, 30);
    window.type_in(&format!("{} attach {id}", env!("CARGO_BIN_EXE_dunnock")));
    window.key("Enter");
    window.wait_for("001-outbox.md");
    window.wait_for("waiting for the answer from your chat");
    bring(&home, 1, "I look.\n[READ a.txt]\n");
    window.wait_for("002-outbox.md");
    // The program is killed: the terminal takes over, and takes the answer in.
    waiting.0.kill().unwrap();
    waiting.0.wait().unwrap();
    bring(&home, 2, "It says one.\n[WRITE b.txt]\ntwo\n[END]\n");
    window.wait_for("003-outbox.md");
    assert_eq!(home.read("b.txt"), "two\n");
    bring(&home, 3, "All is done here.\n[DONE]\n");
    window.wait_for("All is done here.");
    let facts = crate::window::facts(&home).await;
    assert_eq!(crate::window::count(&facts, "answered"), 3);
    assert!(facts.iter().any(|(kind, _)| kind == "ended"));
}

#[tokio::test(flavor = "multi_thread")]
async fn done_beside_what_failed_is_not_done_and_next_is_no_answer() {
    let home = Home::empty();
    assert_eq!(home.run(&["bridge", "new", "--once", "Try"]).await.code, 3);
    bring(&home, 1, "\"next\"\n");
    let ran = once(&home).await;
    assert!(ran.code == 3 && ran.err.contains("asks for the next part"), "{}", ran.err);
    assert!(outbox(&home, 2).is_empty());
    bring(&home, 1, "[RUN]\nexit 1\n[END]\nAll good, verified.\n[DONE]\n");
    assert_eq!(once(&home).await.code, 3);
    assert!(outbox(&home, 2).contains("[DONE]: not accepted yet"), "{}", outbox(&home, 2));
    bring(&home, 2, "Now it is.\n[DONE]\n");
    assert_eq!(once(&home).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_program_looks_in_and_leaves_without_stopping_the_first() {
    let home = Home::empty();
    let mut waiting = Waiting::start(&home, &["bridge", "new", "Look"]);
    wait_for("the outbox", || !outbox(&home, 1).is_empty());
    let began = Instant::now();
    let ran = once(&home).await;
    dunnock_testkit::timing::no_hang(
        &format!("leaving ({})", ran.err),
        began.elapsed(),
        Duration::from_secs(15),
    );
    assert!(waiting.0.try_wait().unwrap().is_none(), "the first was stopped");
    bring(&home, 1, "Seen.\n[DONE]\n");
    assert_eq!(waiting.ended(), 0);
}
