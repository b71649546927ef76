//! Many clients on one session: one decision per call, nothing lost, losers get a conflict (R7);
//! and many that only look.

use super::{Serve, prompt};
use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Rules, ScriptedServer, Served};
use dunnock_testkit::web::{Api, Live};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a client did, and when.
#[derive(Debug, Clone)]
struct Op {
    began: Instant,
    ended: Instant,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    /// A command with its id, the version it expected, and what came of it.
    Order { id: String, expect: Option<u64>, came: Came },
    /// A look: events and version then.
    Look { seq: u64, version: u64 },
}

#[derive(Debug, Clone)]
enum Came {
    Taken(u64),
    /// Why, and the version that was told.
    Refused(Value, u64),
}

/// Makes a lie of what was seen, if it can.
type Lie = fn(&mut What) -> bool;

/// A little chance of our own: the same with the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A model that sometimes wants something that must be asked about.
async fn asking() -> ScriptedServer {
    let brain = |_: dunnock_testkit::speech::Wire, request: &Value| -> Served {
        let messages = request["messages"].as_array().unwrap();
        match messages.last().unwrap()["role"] == "tool" {
            true => Say::text("Done.").into(),
            false => Say::calls(&[("shell", r#"{"command":"cat .env >> seen.txt"}"#)]).into(),
        }
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    ScriptedServer::with(Vec::new(), rules).await
}

/// A random command for what a client last saw.
fn choose(dice: &mut Dice, view: &Value, text: &str) -> Value {
    let question = view["questions"].as_array().and_then(|q| q.first());
    match (dice.roll(10), question) {
        (0..=6, Some(question)) => {
            let answer = if dice.roll(2) == 0 { "yes" } else { "no" };
            json!({ "reply": { "question": question["id"], "hash": question["hash"], "answer": answer } })
        }
        (0..=3, None) => json!({ "prompt": { "text": text } }),
        (4..=5, _) => json!("interrupt"),
        (6, _) => json!({ "configure": { "set": { "max_steps": 20 + dice.roll(20) } } }),
        _ => json!({ "title": { "title": text } }),
    }
}

/// One client: looks and commands at random, over HTTP or a live channel.
fn client(n: usize, mut api: Api, session: &str, rounds: usize) -> Vec<Op> {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ ((n as u64 + 1) * 7_919));
    let mut live: Option<Live> =
        n.is_multiple_of(2).then(|| api.live(session, u64::MAX >> 12).ok().unwrap());
    let (mut ops, mut view) = (Vec::new(), Value::Null);
    for round in 0..rounds {
        let began = Instant::now();
        if view.is_null() || dice.roll(3) == 0 {
            view = api.get(&format!("/api/sessions/{session}?from=900000000"));
            let what = What::Look {
                seq: view["seq"].as_u64().unwrap(),
                version: view["version"].as_u64().unwrap(),
            };
            ops.push(Op { began, ended: Instant::now(), what });
            continue;
        }
        let id = format!("c{n}-{round}");
        let expect = (dice.roll(2) == 0).then(|| view["version"].as_u64().unwrap());
        let command = choose(&mut dice, &view, &id);
        let mut request = json!({ "id": id, "command": command });
        if let Some(version) = expect {
            request["expect"] = json!(version);
        }
        let came = match &mut live {
            Some(live) => by_live(live, &request),
            None => by_http(&mut api, session, &request),
        };
        ops.push(Op { began, ended: Instant::now(), what: What::Order { id, expect, came } });
        view = Value::Null;
    }
    ops
}

fn by_http(api: &mut Api, session: &str, request: &Value) -> Came {
    let (status, answer) = api.post(&format!("/api/sessions/{session}/commands"), request);
    match status {
        200 => Came::Taken(answer["seq"].as_u64().unwrap()),
        409 => {
            Came::Refused(answer["reason"].clone(), answer["session"]["version"].as_u64().unwrap())
        }
        _ => unreachable!("{status}: {answer}"),
    }
}

fn by_live(live: &mut Live, request: &Value) -> Came {
    live.say(&json!({ "command": request })).unwrap();
    loop {
        let message = live.next(Duration::from_secs(30)).unwrap();
        if message["accepted"]["id"] == request["id"] {
            return Came::Taken(message["accepted"]["seq"].as_u64().unwrap());
        }
        if message["refused"]["id"] == request["id"] {
            return Came::Refused(
                message["refused"]["reason"].clone(),
                message["refused"]["version"].as_u64().unwrap(),
            );
        }
    }
}

/// Holds what clients saw against the log: the log is the order in which everything happened.
fn check(ops: &[Op], facts: &[Value]) -> Result<BTreeMap<&'static str, usize>, String> {
    // Which events each command made, and the version before and after every event.
    let mut made: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let (mut version_at, mut state) = (vec![0u64], dunnock_core::State::default());
    for fact in facts {
        let record: dunnock_proto::Record = serde_json::from_value(fact.clone()).unwrap();
        let dunnock_proto::Decoded::Known(event) = record.decode() else {
            return Err(format!("unknown: {fact}"));
        };
        dunnock_core::apply(&mut state, &event);
        version_at.push(state.version);
        let (seq, cause) = (fact["seq"].as_u64().unwrap(), fact["cause"].as_str().unwrap());
        if let Some(id) = cause.strip_prefix("input ") {
            let known = made.entry(id).or_insert((seq, seq));
            if seq > known.1 + 1 {
                return Err(format!("{id} made facts twice: up to {} and again {seq}", known.1));
            }
            known.1 = seq;
        }
    }
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    // A point of the log that an operation is bound to: not before `from`, not after `to`.
    let mut points: Vec<(&Op, u64, u64)> = Vec::new();
    for op in ops {
        match &op.what {
            What::Order { id, expect, came: Came::Taken(seq) } => {
                let (first, last) = *made
                    .get(id.as_str())
                    .ok_or(format!("{id} was taken and is not in the log"))?;
                if !(first..=last).contains(seq) {
                    return Err(format!("{id} was told {seq}, and made {first} to {last}"));
                }
                let before = version_at[first as usize - 1];
                if expect.is_some_and(|v| v != before) {
                    return Err(format!(
                        "{id} expected version {expect:?} and was taken at {before}"
                    ));
                }
                taken.insert(id);
                points.push((op, first, last));
                *counts.entry("taken").or_default() += 1;
            }
            What::Order { id, came: Came::Refused(why, version), expect } => {
                if made.contains_key(id.as_str()) {
                    return Err(format!("{id} was refused and is in the log"));
                }
                let stale = why.get("stale").is_some();
                if stale && expect == &Some(*version) {
                    return Err(format!(
                        "{id} was refused as stale at the version that it expected"
                    ));
                }
                // The version that was told stood from its event until the next of a person's.
                let from = version_at
                    .iter()
                    .position(|v| v == version)
                    .ok_or(format!("{id}: no version {version}"))?;
                let to = version_at.iter().rposition(|v| v == version).unwrap_or(from);
                points.push((op, from as u64, to as u64));
                *counts.entry(if stale { "stale" } else { "refused" }).or_default() += 1;
            }
            What::Look { seq, version } => {
                if version_at.get(*seq as usize) != Some(version) {
                    return Err(format!(
                        "a look saw version {version} at fact {seq}, where it was {:?}",
                        version_at.get(*seq as usize)
                    ));
                }
                points.push((op, *seq, *seq));
                *counts.entry("looks").or_default() += 1;
            }
        }
    }
    if let Some(id) = made.keys().find(|id| id.starts_with('c') && !taken.contains(**id)) {
        return Err(format!("{id} is in the log, and nobody was told"));
    }
    // What ended before something else began happened before it: linearizable.
    points.sort_by_key(|(op, ..)| op.ended);
    let mut began: Vec<&(&Op, u64, u64)> = points.iter().collect();
    began.sort_by_key(|(op, ..)| op.began);
    let (mut latest, mut next) = (0, 0);
    for (op, _, to) in began {
        while next < points.len() && points[next].0.ended < op.began {
            latest = latest.max(points[next].1);
            next += 1;
        }
        if latest > *to {
            return Err(format!(
                "{op:?} is bound to fact {to} at most, and {latest} was there before it began"
            ));
        }
    }
    Ok(counts)
}

/// Holds W3: many clients, one order, nothing overwritten.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r7_eight_clients_ten_thousand_operations_one_order() {
    let rounds: usize =
        std::env::var("DUNNOCK_R7").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000) / 8;
    let server = asking().await;
    let home = Home::with(&server);
    home.put(".env", "A=1\n");
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({ "set": { "checkpoints": false } }));
    let ops: Vec<Op> = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let start = |n| {
                let (api, id) = (serve.api(), &id);
                scope.spawn(move || client(n, api, id, rounds))
            };
            let clients: Vec<_> = (0..8).map(start).collect();
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
        })
    });
    api.post(
        &format!("/api/sessions/{id}/commands"),
        &json!({ "id": "last", "command": "interrupt" }),
    );
    let mut facts: Vec<Value> = Vec::new();
    loop {
        let share = api.get(&format!("/api/sessions/{id}?from={}", facts.len()));
        facts.extend(share["events"].as_array().unwrap().iter().cloned());
        if share["more"] == false {
            break;
        }
    }
    let counts = check(&ops, &facts).unwrap();
    // One decision for each question.
    let mut asked = BTreeSet::new();
    for fact in facts.iter().filter(|f| f["kind"] == "replied") {
        assert!(asked.insert(fact["body"]["question"].as_u64().unwrap()), "answered twice: {fact}");
    }
    println!(
        "R7: {} operations of 8 clients, {} facts, {} questions answered: {counts:?}",
        ops.len(),
        facts.len(),
        asked.len()
    );
    assert!(counts["taken"] > 100 && counts["stale"] > 20 && asked.len() > 10, "{counts:?}");
    // The check itself can fail: each of these is a lie about what was seen.
    let lies: [(&str, Lie); 4] = [
        ("a command that was lost", |what| match what {
            What::Order { id, came: Came::Taken(_), .. } => {
                id.push('x');
                true
            }
            _ => false,
        }),
        ("a refusal of what was done", |what| match what {
            What::Order { came: came @ Came::Taken(_), .. } => {
                *came = Came::Refused(json!("busy"), 3);
                true
            }
            _ => false,
        }),
        ("a look into the past", |what| match what {
            What::Look { seq, version } if *seq > 50 => {
                (*seq, *version) = (1, 1);
                true
            }
            _ => false,
        }),
        ("a wrong expectation", |what| match what {
            What::Order { expect: Some(version), came: Came::Taken(_), .. } => {
                *version += 1;
                true
            }
            _ => false,
        }),
    ];
    for (name, lie) in lies {
        let mut told = ops.clone();
        assert!(told.iter_mut().skip(200).any(|op| lie(&mut op.what)), "nothing to lie about");
        let why = check(&told, &facts).expect_err(name);
        println!("a planted lie is noticed, {name}: {why}");
    }
}

/// Holds W7: every frame in order for all who look.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_clients_receive_every_frame_in_order() {
    let words: String = (0..400).map(|n| format!("word{n} ")).collect();
    let script = vec![
        Say::calls(&[("shell", r#"{"command":"seq 1 300"}"#)]).into(),
        Served::from(Say::text(&words)).gated(),
        Say::text("x").into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({}));
    let mut clients: Vec<Live> = (0..200)
        .map(|n| api.live(&id, 0).unwrap_or_else(|no| unreachable!("client {n}: {no:?}")))
        .collect();
    assert_eq!(api.post(&format!("/api/sessions/{id}/commands"), &prompt("p", "count")).0, 200);
    server.open_gate(100_000);
    let heard: Vec<(Vec<u64>, String)> = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let one = |live: &mut Live| {
                let all = live.until(|m| m["event"]["kind"] == "ended");
                let seqs = all.iter().filter_map(|m| m["event"]["seq"].as_u64()).collect();
                let said: Vec<(u64, &str)> = all
                    .iter()
                    .filter_map(|m| {
                        Some((
                            m["delta"]["text"]["offset"].as_u64()?,
                            m["delta"]["text"]["text"].as_str()?,
                        ))
                    })
                    .collect();
                let mut at = 0;
                for (offset, text) in &said {
                    assert_eq!(*offset, at, "a piece is missing or came twice");
                    at += text.len() as u64;
                }
                (seqs, said.into_iter().map(|(_, text)| text).collect())
            };
            let all: Vec<_> =
                clients.iter_mut().map(|live| scope.spawn(move || one(live))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        })
    });
    let (first, _) = &heard[0];
    assert_eq!(*first, (1..=first.len() as u64).collect::<Vec<_>>());
    assert!(
        heard.iter().all(|(seqs, text)| seqs == first && text.trim() == words.trim()),
        "not all heard the same"
    );
    println!(
        "200 clients: {} facts and {} bytes of words each, in order",
        first.len(),
        words.len()
    );
}

/// What was read for a row of the list may be younger than the row. Kept as fresh, it showed a
/// session at work for good that had ended meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn the_feed_says_of_every_session_that_it_ended() {
    const SESSIONS: usize = 90;
    let server =
        ScriptedServer::start((0..SESSIONS).map(|_| Say::text("Done.").into()).collect()).await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let key = format!("authorization: Bearer {}\r\n", serve.token);
    let mut feed = Live::open(serve.at, "/api/feed", &key).ok().unwrap();
    let mut api = serve.api();
    let states = |overview: &Value| -> BTreeMap<String, usize> {
        let mut states = BTreeMap::new();
        for session in overview["sessions"].as_array().into_iter().flatten() {
            *states.entry(session["state"].to_string()).or_default() += 1;
        }
        states
    };
    let told = tokio::task::block_in_place(|| {
        for _ in 0..SESSIONS {
            api.make(&json!({ "prompt": "Say it" }));
            std::thread::sleep(Duration::from_millis(30)); // some are at work in every look
        }
        feed.until(|overview| states(overview).get("\"done\"") == Some(&SESSIONS))
    });
    let last = told.last().map(states).unwrap_or_default();
    assert_eq!(last, BTreeMap::from([("\"done\"".to_owned(), SESSIONS)]));
    println!("{SESSIONS} sessions, told {} times, all of them as done in the end", told.len());
}
