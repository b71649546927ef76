//! EFF13: work of millions of tokens. What the program itself repeats after a compaction is in every
//! request that follows, whatever the model's summary leaves out.

use crate::sessions::Scene;
use dunnock_core::{Request, Window};
use dunnock_engine::{Ports, create};
use dunnock_ports::*;
use dunnock_proto::*;
use dunnock_testkit::files::ScriptedFiles;
use dunnock_testkit::model::{ScriptedModel, answered};
use dunnock_testkit::tools::ScriptedTools;
use dunnock_testkit::worlds;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// What is planted, and how many facts of each kind.
const KINDS: [(&str, usize); 5] =
    [("requirement", 60), ("answer", 40), ("plan", 40), ("file", 30), ("command", 30)];
/// Requirements of the first prompt; each of the others has a prompt of its own.
const IN_THE_TASK: usize = 40;
/// Bytes of an answer that says nothing.
const FILLER: usize = 8_000;
/// How often a request is looked at between two compactions. Each begins with the bytes of the one
/// before.
const EVERY: u32 = 10;

fn fact(kind: &str, n: usize) -> String {
    // The number in the middle makes sure that no fact is the beginning of another.
    format!("FACT-{kind}-{n:03}-{:04x}", (n * 7919 + kind.len() * 104_729) & 0xffff)
}

/// The facts that a text names.
fn facts_in(text: &str) -> BTreeSet<String> {
    text.match_indices("FACT-")
        .map(|(at, _)| {
            let rest = &text[at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            rest[..end.unwrap_or(rest.len())].to_owned()
        })
        .collect()
}

#[derive(Default)]
struct Seen {
    /// What every request must name from now on.
    planted: BTreeSet<String>,
    /// Requests that were looked at, and those of them that began with a summary.
    looked: usize,
    after_compaction: usize,
    compactions: usize,
    missing: BTreeMap<String, usize>,
    /// Tokens of the conversation without what is repeated, of all requests, of summaries.
    conversation: u64,
    requests: u64,
    summaries: u64,
    summary_requests: u64,
    just_compacted: bool,
    random: u64,
}

impl Seen {
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// A model that works through a plan of `steps` steps, and forgets a third of everything whenever it
/// summarises.
struct Needles {
    steps: usize,
    /// The window in tokens.
    window: u64,
    seen: Arc<Mutex<Seen>>,
}

impl Needles {
    /// What the model does at a step. Facts are spread evenly.
    fn at(&self, step: usize) -> (String, Vec<(String, String)>) {
        let mut filler = format!("step {step}: ").repeat(FILLER / 8 + 1);
        filler.truncate(FILLER);
        let due = |count: usize, shift: usize| {
            let each = self.steps / (count + 1);
            (step % each == shift && step / each >= 1 && step / each <= count)
                .then(|| step / each - 1)
        };
        let mut seen = self.seen.lock().unwrap();
        if step >= self.steps || due(KINDS[0].1 - IN_THE_TASK, 1).is_some() {
            return (filler, Vec::new()); // the work ends, and the next prompt follows
        }
        let mut calls = Vec::new();
        if let Some(n) = due(KINDS[1].1, 2) {
            calls.push(("ask_person".into(), format!(r#"{{"question":"what about {n}?"}}"#)));
        }
        if let Some(n) = due(KINDS[2].1, 3) {
            let steps: Vec<String> =
                (0..=n).map(|n| format!(r#"{{"text":"{}"}}"#, fact("plan", n))).collect();
            calls.push(("update_plan".into(), format!(r#"{{"steps":[{}]}}"#, steps.join(","))));
            seen.planted.insert(fact("plan", n));
        }
        if let Some(n) = due(KINDS[3].1, 4) {
            let file = fact("file", n);
            calls.push(("edit".into(), format!(r#"{{"say":"src/{file}.rs"}}"#)));
            seen.planted.insert(file);
        }
        if let Some(n) = due(KINDS[4].1, 5) {
            let command = fact("command", n);
            calls.push(("append".into(), format!(r#"{{"command":"make {command}"}}"#)));
            seen.planted.insert(command);
        }
        if calls.is_empty() {
            calls.push(("view".into(), format!(r#"{{"say":"seen {step}"}}"#)));
        }
        (filler, calls)
    }

    fn look_at(&self, request: &Request) {
        let mut seen = self.seen.lock().unwrap();
        seen.requests += request.len() / 4;
        if !seen.just_compacted && !request.step.0.is_multiple_of(EVERY) {
            return;
        }
        let text = String::from_utf8(request.bytes()).unwrap();
        let named = facts_in(&text);
        let missing: Vec<String> = seen.planted.difference(&named).cloned().collect();
        for fact in missing {
            *seen.missing.entry(fact).or_default() += 1;
        }
        seen.looked += 1;
        seen.after_compaction += usize::from(std::mem::take(&mut seen.just_compacted));
    }
}

impl Model for Needles {
    fn render_preamble<'a>(
        &'a self,
        config: &'a Config,
        workspace: &'a str,
        host: &'a HostInfo,
    ) -> BoxFuture<'a, Result<(Preamble, Blob), RenderError>> {
        Box::pin(async move {
            let plain = ScriptedModel::new(Vec::new());
            let (mut preamble, blob) = plain.render_preamble(config, workspace, host).await?;
            preamble.window = Some(self.window);
            Ok((preamble, blob))
        })
    }

    fn ask(
        &self,
        ModelRequest { request, .. }: ModelRequest,
        _: DeltaSink,
        _: CancellationToken,
    ) -> BoxFuture<'_, Result<(Answered, Vec<Blob>), StepFailed>> {
        Box::pin(async move {
            self.look_at(&request);
            let (text, calls) = self.at(request.step.0 as usize);
            let output = text.len() as u64 / 4;
            self.seen.lock().unwrap().conversation += output;
            let mut parts = vec![Part::Text { text: text.into() }];
            parts.extend(calls.into_iter().enumerate().map(|(n, (tool, args))| {
                Part::Call(Arc::new(CallPart {
                    id: format!("call_{n}"),
                    tool,
                    args: args.into(),
                    sent: None,
                    recovered: false,
                    fault: None,
                }))
            }));
            let usage = Usage { input: request.len() / 4, output, ..Usage::default() };
            let answered = answered(&request, parts, usage);
            Ok((answered, Vec::new()))
        })
    }

    fn summarise(
        &self,
        _: Arc<[u8]>,
        request: Request,
        _: CancellationToken,
    ) -> BoxFuture<'_, Summary> {
        Box::pin(async move {
            let mut seen = self.seen.lock().unwrap();
            let text = String::from_utf8(request.bytes()).unwrap();
            let mut said = String::from("# State\n");
            for fact in facts_in(&text) {
                if !seen.next_random().is_multiple_of(3) {
                    said.push_str(&format!("{fact} was there\n"));
                }
            }
            // Of the facts themselves, the summary proves nothing: it is not what is tested.
            let said = said.replace("FACT-", "fact ");
            seen.compactions += 1;
            seen.just_compacted = true;
            seen.summaries += said.len() as u64 / 4;
            seen.summary_requests += (request.len() + said.len() as u64) / 4;
            let usage = Usage {
                input: request.len() / 4,
                output: said.len() as u64 / 4,
                ..Usage::default()
            };
            Summary { text: Ok(said.into()), usage, broke: false }
        })
    }
}

/// Checkpoints that know which files were changed.
struct Changes(Arc<Mutex<Seen>>);

impl Checkpoints for Changes {
    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        workspace: &'a str,
        mark: Seq,
        saving: SaveControl,
    ) -> BoxFuture<'a, Checkpointed> {
        ScriptedFiles.keep(session, workspace, mark, saving)
    }
    fn restore<'a>(&'a self, back: RestorePlan<'a>) -> BoxFuture<'a, Result<Restored, FilesError>> {
        ScriptedFiles.restore(back)
    }
    fn changed<'a>(
        &'a self,
        _: &'a str,
        _: &'a Window,
        _: &'a [Window],
    ) -> BoxFuture<'a, Result<Vec<String>, FilesError>> {
        let planted = self.0.lock().unwrap().planted.clone();
        let files = planted.into_iter().filter(|fact| fact.contains("-file-"));
        let files: Vec<String> = files.map(|fact| format!("src/{fact}.rs")).collect();
        Box::pin(async move { Ok(files) })
    }
    fn forget<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), FilesError>> {
        ScriptedFiles.forget(session)
    }
}

/// Works through `tokens` tokens with a window that is full ten times or more.
async fn work(tokens: usize) -> Seen {
    let dir = tempfile::tempdir().unwrap();
    let seen = Arc::new(Mutex::new(Seen { random: 0x9e37_79b9_7f4a_7c15, ..Seen::default() }));
    let steps = tokens * 4 / FILLER;
    let window = tokens as u64 / 9;
    let ports = Ports {
        model: Arc::new(Needles { steps, window, seen: seen.clone() }),
        tools: Arc::new(ScriptedTools::new(&worlds::traces(dir.path()))),
        checkpoints: Some(Arc::new(Changes(seen.clone()))),
        ..worlds::in_folder(dir.path(), ScriptedModel::new(Vec::new())).await
    };
    let config = Config {
        window: Some(window),
        max_steps: u32::MAX,
        stall_limit: 0,
        checkpoints: true,
        attended: true,
        ..worlds::config()
    };
    let session = create(&ports, "/w", config).await.unwrap();
    let mut scene = Scene::open(&ports, &session).await;
    let mut task = String::from("Build it. It must have:\n");
    for n in 0..IN_THE_TASK {
        task.push_str(&format!("- {}\n", fact("requirement", n)));
        seen.lock().unwrap().planted.insert(fact("requirement", n));
    }
    let mut answered = 0;
    for n in IN_THE_TASK..=KINDS[0].1 {
        scene.prompt(&task).await;
        while scene.s.busy() {
            if scene.s.questions.is_empty() {
                scene.listen_once().await;
            } else {
                let words = fact("answer", answered);
                answered += 1;
                seen.lock().unwrap().planted.insert(words.clone());
                scene.answer(&words).await;
            }
        }
        task = format!("Now also {}", fact("requirement", n));
        if n < KINDS[0].1 {
            seen.lock().unwrap().planted.insert(fact("requirement", n));
        }
    }
    scene.connection.close().await;
    std::mem::take(&mut *seen.lock().unwrap())
}

fn judge(seen: &Seen, tokens: usize) {
    for (kind, count) in KINDS {
        let mark = format!("FACT-{kind}-");
        let of_kind = |fact: &&String| fact.starts_with(&mark);
        let planted = seen.planted.iter().filter(of_kind).count();
        let missed = seen.missing.keys().filter(of_kind).count();
        println!("figure: {kind}: {planted} of {count} planted, {missed} missing from a request");
        assert_eq!((planted, missed), (count, 0), "{kind}: {:?}", seen.missing);
    }
    let share = |part: u64, all: u64| part as f64 * 100.0 / all as f64;
    let of_requests = share(seen.summary_requests, seen.requests + seen.summary_requests);
    println!(
        "figure: {} tokens of conversation, {} compactions, {} requests looked at ({} of them right \
         after a compaction); summaries are {:.2} % of the conversation, and their requests {:.2} % of \
         all tokens",
        seen.conversation,
        seen.compactions,
        seen.looked,
        seen.after_compaction,
        share(seen.summaries, seen.conversation),
        of_requests,
    );
    assert!(seen.conversation >= tokens as u64 * 9 / 10, "{}", seen.conversation);
    assert!(seen.compactions >= 10 && seen.after_compaction >= 10);
    assert!(of_requests <= 5.0 && share(seen.summaries, seen.conversation) <= 5.0);
}

/// The whole measure, with 3 million tokens: 10 to 30 seconds.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_facts_are_in_every_request_after_ten_compactions_of_three_million_tokens() {
    let seen = work(3_000_000).await;
    judge(&seen, 3_000_000);
}
