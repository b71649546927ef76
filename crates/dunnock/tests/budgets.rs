//! Money: shown where it is known, refused where it is not, and never more than was reserved,
//! whoever is killed.

use crate::{Home, Ran};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Rules, ScriptedServer, Served};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What the scripted model costs, in US dollars per million tokens.
const PRICE: &str = "price = [\"script/scripted: 2 in, 0.5 cached, 8 out\"]\n";

/// With these settings, and answers of at most 8,000 tokens: so much is held back for each.
fn configure(home: &Home, more: &str) {
    home.set(more);
    let config = home.dir.path().join(".config/dunnock/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    if !text.contains("max_output") {
        std::fs::write(config, text + "max_output = 8000\n").unwrap();
    }
}

fn calling(n: u64, usage: (u64, u64)) -> Served {
    let args = json!({"command": format!("echo {n}")}).to_string();
    Say::calls(&[("shell", &args)]).using(usage.0, usage.1).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_of_money_is_refused_where_the_price_is_unknown() {
    let server = ScriptedServer::start(vec![Say::text("done").using(100, 10).into()]).await;
    let home = Home::with(&server);
    for (flags, config) in [(&["--budget", "1usd"][..], ""), (&[][..], "budget_day = \"20usd\"\n")]
    {
        configure(&home, config);
        let args: Vec<&str> = ["run"].iter().chain(flags).copied().chain(["go"]).collect();
        let Ran { code, err, .. } = home.run(&args).await;
        assert_eq!(code, 2, "{err}");
        assert!(
            err.contains("the price of script/scripted is unknown") && err.contains("price = ["),
            "{err}"
        );
    }
    assert_eq!(server.bodies().len(), 0, "nothing was sent");
    configure(&home, PRICE);
    let ran = home.run(&["run", "--budget", "1usd", "go"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("100 tokens in, 10 out · $0.0003"), "{}", ran.err);
    let other = ScriptedServer::start(vec![Say::text("done").using(100, 10).into()]).await;
    let plain = Home::with(&other);
    let ran = plain.run(&["run", "go"]).await;
    assert!(
        ran.code == 0 && ran.err.contains("100 tokens in, 10 out · price unknown"),
        "{}",
        ran.err
    );
    let ran = plain.run(&["resume", "--json", "--prompt", "more"]).await;
    let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["usd"], &last["session_usd"]), (&Value::Null, &Value::Null), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_breach_is_exit_4_where_nobody_answers_and_goes_on_with_more() {
    let server = ScriptedServer::start((0..20).map(|n| calling(n, (1_000, 100))).collect()).await;
    let home = Home::with(&server);
    configure(&home, PRICE);
    // A request reserves its conversation and 8,000 tokens of output: about 0.071 dollars.
    let ran = home.run(&["run", "--approve", "all", "--budget", "0.08usd", "go"]).await;
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(ran.err.contains("the budget does not cover the next request"), "{}", ran.err);
    let before = server.bodies().len();
    assert!((1..=6).contains(&before), "{before}");
    let ran = home.run(&["resume", "--budget", "10usd"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
}

/// Sessions beside each other on one budget of the day, killed at random. What the server answered
/// is what was spent: it must never be more than the budget and one reply, whose cost was reserved.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn eight_sessions_on_one_budget_of_the_day_never_spend_more_whoever_is_killed() {
    const BUDGET: u64 = 3_000_000; // millionths
    const REPLY: (u64, u64) = (4_000, 500); // 0.012 dollars
    let spent = Arc::new(AtomicU64::new(0));
    let requests = Arc::new(AtomicU64::new(0));
    let (count, sum) = (requests.clone(), spent.clone());
    let brain = move |_, _: &Value| {
        let n = count.fetch_add(1, Ordering::SeqCst);
        sum.fetch_add(REPLY.0 * 2 + REPLY.1 * 8, Ordering::SeqCst);
        calling(n, REPLY)
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    let server = ScriptedServer::with(Vec::new(), rules).await;
    let home = Arc::new(Home::with(&server));
    configure(
        &home,
        &format!("{PRICE}budget_day = \"3usd\"\nmax_steps = 100000\nbaseline = \"off\"\n"),
    );
    let mut workers = Vec::new();
    for n in 0..8u64 {
        let home = home.clone();
        let folder = home.dir.path().join(format!("project{n}"));
        std::fs::create_dir_all(&folder).unwrap();
        workers.push(tokio::spawn(async move {
            let mut kills = 0;
            let mut args = vec![
                "run".to_owned(),
                "--approve".into(),
                "all".into(),
                "--sandbox".into(),
                "off".into(),
                "go".into(),
            ];
            for round in 0..80u64 {
                let words: Vec<&str> = args.iter().map(String::as_str).collect();
                let mut command = home.command(&words);
                let piped = || std::process::Stdio::piped();
                let mut child =
                    command.current_dir(&folder).stdout(piped()).stderr(piped()).spawn().unwrap();
                // Killed after a while that is other each time; the last rounds run to their end.
                let ms = 60 + (round * 97 + n * 53) % 340;
                let until = std::time::Instant::now() + Duration::from_millis(ms);
                let code = loop {
                    match child.try_wait().unwrap() {
                        Some(status) => break status.code(),
                        None if round < 40 && std::time::Instant::now() > until => {
                            child.kill().unwrap();
                            child.wait().unwrap();
                            kills += 1;
                            break None;
                        }
                        None => tokio::time::sleep(Duration::from_millis(5)).await,
                    }
                };
                if code == Some(4) {
                    return (kills, round);
                }
                let listed = crate::ran({
                    let mut list = home.command(&["sessions", "list", "--json", "--here"]);
                    list.current_dir(&folder);
                    list
                })
                .await;
                if !listed.out.trim().is_empty() {
                    args = vec!["resume".into()];
                    if code == Some(2) {
                        // It was killed before it was given its task.
                        args.extend(["--prompt".into(), "go".into()]);
                    }
                }
            }
            panic!("session {n} never met the budget");
        }));
    }
    let mut kills = 0;
    for worker in workers {
        kills += worker.await.unwrap().0;
    }
    let spent = spent.load(Ordering::SeqCst);
    let used = home.run(&["cost", "--json"]).await;
    println!(
        "8 sessions, {kills} kills, {} requests: {spent} millionths of {BUDGET} were spent",
        requests.load(Ordering::SeqCst)
    );
    assert!(kills >= 24, "too few kills: {kills}");
    assert!(spent <= BUDGET, "{spent} of {BUDGET}: {}", used.out);
    assert!(spent * 10 >= BUDGET, "hardly anything was spent: {spent}");
}
