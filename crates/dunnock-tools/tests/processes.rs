//! Programs: streamed, bounded, stopped, and gone.

use crate::{job, run};
use dunnock_core::ports::{Halt, Live, Tools as _};
use dunnock_proto::{Delta, Outcome};
use dunnock_tools::{Hands, Limits};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Whether a process of that id is there and not a zombie.
fn alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|s| !s.contains(") Z "))
}

#[tokio::test]
async fn output_streams_while_it_runs_each_piece_with_its_stream() {
    let dir = tempfile::tempdir().unwrap();
    let seen: Arc<Mutex<Vec<(String, String, Duration)>>> = Arc::default();
    let (log, began) = (seen.clone(), Instant::now());
    let live: Live = Arc::new(move |delta| {
        if let Delta::Output { stream, text, .. } = delta {
            log.lock().unwrap().push((stream.to_string(), text.to_string(), began.elapsed()));
        }
    });
    let args =
        r#"{"command":"echo one; sleep 0.3; echo two >&2; sleep 0.3; printf 'caf\\303'; sleep 0.1; printf '\\251\n'"}"#;
    let (finished, _) = Hands::new(Limits::default()).run(job(dir.path(), "shell", args), live, Halt::default()).await;
    assert_eq!(finished.shown.as_ref(), "one\ntwo\ncafé");
    let seen = seen.lock().unwrap().clone();
    let pieces: Vec<(&str, &str)> = seen.iter().map(|(s, t, _)| (s.as_str(), t.as_str())).collect();
    assert_eq!(pieces, [("out", "one\n"), ("err", "two\n"), ("out", "caf"), ("out", "é\n")]);
    let (first, last) = (seen.first().unwrap().2, seen.last().unwrap().2);
    assert!(last - first > Duration::from_millis(400), "the first piece came while it ran: {first:?} {last:?}");
}

#[tokio::test]
async fn an_interrupt_ends_the_whole_group_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let halt = Halt::default();
    let args = r#"{"command":"trap '' TERM; sleep 61 & echo $! > child; echo $$ > self; wait; sleep 62"}"#;
    let hands = Hands::new(Limits::default());
    let quiet: Live = Arc::new(|_| {});
    let running = hands.run(job(dir.path(), "shell", args), quiet, halt.clone());
    let stopper = async {
        while !dir.path().join("self").exists() || std::fs::read_to_string(dir.path().join("self")).unwrap().is_empty()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let told = Instant::now();
        halt.tell();
        told
    };
    let ((finished, _), told) = tokio::join!(running, stopper);
    let took = told.elapsed();
    assert_eq!(finished.outcome, Outcome::Cut);
    assert!(took < Duration::from_millis(200), "{took:?}");
    for file in ["child", "self"] {
        let pid = std::fs::read_to_string(dir.path().join(file)).unwrap();
        assert!(!alive(&pid), "{file} {pid} is still there");
    }
}

#[tokio::test]
async fn a_background_child_neither_holds_the_answer_up_nor_stays() {
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let finished = run(dir.path(), "shell", r#"{"command":"sleep 60 & echo $! > child; echo hi"}"#).await;
    assert_eq!(finished.shown.as_ref(), "hi");
    assert!(began.elapsed() < Duration::from_secs(2));
    assert!(!alive(&std::fs::read_to_string(dir.path().join("child")).unwrap()));
}

#[tokio::test]
async fn long_output_is_shown_in_part_and_kept_whole() {
    let dir = tempfile::tempdir().unwrap();
    let quiet: Live = Arc::new(|_| {});
    let job = job(dir.path(), "shell", r#"{"command":"seq 1 5000"}"#);
    let (finished, blobs) = Hands::new(Limits::default()).run(job, quiet, Halt::default()).await;
    assert!(finished.shown.starts_with("1\n2\n") && finished.shown.ends_with("4999\n5000"));
    assert!(finished.shown.contains("lines, ") && finished.shown.lines().count() == 201, "{}", finished.shown);
    let all: String = (1..=5000).map(|n| format!("{n}\n")).collect();
    assert_eq!((finished.full, blobs[0].bytes.as_ref()), (Some(blobs[0].hash), all.as_bytes()));
}

#[tokio::test]
async fn a_child_sees_no_key_no_input_and_no_terminal() {
    let dir = tempfile::tempdir().unwrap();
    // Cargo's own variables stand in for a key: they are there, and not on the list.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    let finished = run(dir.path(), "shell", r#"{"command":"env; cat; echo end"}"#).await;
    assert!(finished.shown.contains("PATH=") && finished.shown.ends_with("end"), "{}", finished.shown);
    assert!(!finished.shown.contains("CARGO_MANIFEST_DIR"), "{}", finished.shown);
}

#[tokio::test]
async fn a_check_of_the_harness_is_a_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let passed = run(dir.path(), "verify", r#"{"command":"echo fine && test 1 = 1"}"#).await;
    assert_eq!((passed.outcome, passed.shown.as_ref(), passed.exit), (Outcome::Done, "fine", Some(0)));
    let failed = run(dir.path(), "verify", r#"{"command":"false"}"#).await;
    assert_eq!((failed.outcome, failed.exit), (Outcome::Failed, Some(1)));
}
