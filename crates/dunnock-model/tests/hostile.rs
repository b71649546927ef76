//! Streams that break, lie or never end (R9): no panic, bounded memory, no call from half of one.

use crate::ask;
use dunnock_proto::{Failure, Part};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, ScriptedServer, Served};

fn event(content: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{content}}}}}]}}\n\n")
}

async fn raw(bytes: impl Into<Vec<u8>>) -> Result<String, (Failure, String, usize)> {
    let server = ScriptedServer::start(vec![Served::wrong(Say::text("x"), Fault::Raw(bytes.into()))]).await;
    match ask(&server).await.answer {
        Ok(answer) => Ok(answer
            .parts
            .iter()
            .map(|p| match p {
                Part::Text { text } => text.to_string(),
                Part::Call(call) => format!("<{} {}>", call.tool, call.args),
                Part::Reasoning { text, .. } => format!("({text})"),
            })
            .collect()),
        Err(failed) => Err((failed.failure, failed.partial.to_string(), failed.attempts.len())),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_as_servers_really_send_them() {
    let done = "data: [DONE]\n\n";
    let fine: [(&str, String, &str); 9] = [
        (
            "comments and other events",
            format!(": keep-alive\n\nevent: ping\ndata: {{}}\n\n{}{done}", event("\"a\"")),
            "a",
        ),
        ("carriage returns", format!("{}{done}", event("\"a\"")).replace('\n', "\r\n"), "a"),
        ("a mark at the start", format!("\u{feff}{}{done}", event("\"a\"")), "a"),
        (
            "no closing word, but a reason",
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n".into(),
            "a",
        ),
        (
            "nulls everywhere",
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":null,\"tool_calls\":null}},\"finish_reason\":null}}],\"usage\":null,\"error\":null}}\n\n{}{done}",
                event("\"a\"")
            ),
            "a",
        ),
        ("a repeated end", format!("{}{done}{done}", event("\"a\"")), "a"),
        ("words after the end", format!("{}{done}{}", event("\"a\""), event("\"b\"")), "a"),
        ("no space after the colon", format!("{}{done}", event("\"a\"")).replace("data: ", "data:"), "a"),
        (
            "a call without a name",
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{{}}\"}}}}]}}}}]}}\n\n{}{done}",
                event("\"a\"")
            ),
            "a",
        ),
    ];
    for (what, stream, expect) in fine {
        assert_eq!(raw(stream).await, Ok(expect.to_owned()), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_streams_are_failures_that_keep_what_was_shown() {
    let shown = event("\"a\"");
    let broken: [(&str, Vec<u8>, &str); 7] = [
        ("nothing at all", Vec::new(), ""),
        ("half an event", shown.as_bytes()[..30].to_vec(), ""),
        ("words, then half an event", [shown.as_bytes(), &shown.as_bytes()[..30]].concat(), "a"),
        ("words, then garbage", format!("{shown}data: {{\"choices\":[{{\n\n").into_bytes(), "a"),
        ("words, then an error", format!("{shown}data: {{\"error\":{{\"message\":\"boom\"}}}}\n\n").into_bytes(), "a"),
        ("bad UTF-8", [shown.as_bytes(), b"data: \xff\xfe\n\n"].concat(), "a"),
        ("a number instead of an object", format!("{shown}data: 7\n\n").into_bytes(), "a"),
    ];
    for (what, stream, partial) in broken {
        let (failure, kept, tries) = raw(stream).await.unwrap_err();
        assert_eq!((failure, kept.as_str()), (Failure::Transport, partial), "{what}");
        assert_eq!(tries == 1, !partial.is_empty(), "{what}: {tries} tries");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_without_an_end_is_given_up() {
    let before = peak();
    let server = ScriptedServer::start(vec![Served::wrong(Say::text("x"), Fault::Endless(100))]).await;
    let failed = ask(&server).await.answer.unwrap_err();
    assert!(failed.error.contains("longer than 4 MB"), "{}", failed.error);
    assert_eq!(failed.attempts.len(), 1, "and not asked for again");
    let grew = peak().saturating_sub(before);
    assert!(grew < 64 << 10, "{grew} KB more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_tiny_events_are_only_a_long_answer() {
    let mut stream = event("\"x\"").repeat(100_000);
    stream.push_str("data: [DONE]\n\n");
    let began = std::time::Instant::now();
    assert_eq!(raw(stream).await.unwrap().len(), 100_000);
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

/// The most memory this process ever held, in KB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Every corpus file that fuzzing found, and some by hand, in pieces of several sizes: no panic, and the same whatever the
/// pieces.
#[tokio::test(flavor = "multi_thread")]
async fn the_corpus_reads_the_same_in_any_pieces() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/fuzz/stream");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        files += 1;
        let mut first = None;
        for size in [1, 7, 4096] {
            let pieces = bytes.chunks(size).map(<[u8]>::to_vec).collect();
            let read = dunnock_model::read_pieces(pieces).await.ok();
            let first = first.get_or_insert_with(|| read.clone());
            assert_eq!(*first, read, "pieces of {size}");
        }
    }
    assert!(files >= 5, "{files} files");
}

/// The corpus with bytes flipped, dropped, doubled and moved: no panic, no hang, no call whose arguments are not what came.
#[tokio::test(flavor = "multi_thread")]
async fn mutated_streams_never_panic() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/fuzz/stream");
    let corpus: Vec<Vec<u8>> =
        std::fs::read_dir(folder).unwrap().map(|e| std::fs::read(e.unwrap().path()).unwrap()).collect();
    let wanted: u64 = std::env::var("DUNNOCK_FUZZ").map_or(30_000, |n| n.parse().unwrap());
    let mut seed: u64 = std::env::var("DUNNOCK_SEED").map_or(0x9e37_79b9_7f4a_7c15, |n| n.parse().unwrap());
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below.max(1) as u64) as usize
    };
    let mut whole = 0;
    for _ in 0..wanted {
        let mut bytes = corpus[random(corpus.len())].clone();
        for _ in 0..=random(6) {
            let at = random(bytes.len());
            match random(6) {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << random(8),
                1 if !bytes.is_empty() => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"\n\r:{}[]\"\\\xef\xbb\xbf\0"[random(13)]),
                3 => {
                    let other = &corpus[random(corpus.len())];
                    let from = random(other.len());
                    let to = from + random(other.len() - from);
                    bytes.splice(at..at, other[from..to].iter().copied());
                }
                4 => bytes.truncate(at),
                _ if !bytes.is_empty() => bytes.rotate_left(at),
                _ => {}
            }
        }
        let size = 1 + random(64);
        let pieces = bytes.chunks(size).map(<[u8]>::to_vec).collect();
        whole += u64::from(dunnock_model::read_pieces(pieces).await.is_ok());
    }
    println!("{wanted} streams, {whole} of them whole answers");
    assert!(whole > wanted / 100, "mutated beyond recognition: {whole} of {wanted}");
}
