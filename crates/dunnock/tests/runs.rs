//! Runs: what is done, said and recorded (W4, W5, W6, A1, A5).

use crate::Home;
use dunnock_testkit::fixture;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, Rules, ScriptedServer, Served};

/// A session that reads, edits, runs, plans and ends.
pub fn work() -> Vec<Served> {
    let say = |text: &str, calls: &[(&str, &str)]| {
        Served::from(Say { text: text.into(), ..Say::calls(calls) }.using(1_200, 40))
    };
    vec![
        say(
            "I'll look around first.",
            &[
                ("view_file", r#"{"path":"a.txt"}"#),
                (
                    "update_plan",
                    r#"{"steps":[{"text":"change a.txt","state":"active"},{"text":"check it","state":"pending"}]}"#,
                ),
            ],
        ),
        say(
            "",
            &[
                ("replace_text", r#"{"path":"a.txt","old":"one","new":"two"}"#),
                ("write_file", r#"{"path":"b.txt","content":"b\n"}"#),
            ],
        ),
        say("", &[("shell", r#"{"command":"cat a.txt b.txt; exit 3"}"#)]),
        say("", &[("view_file", r#"{"path":"../../etc/passwd"}"#), ("nonesuch", "{}")]),
        say("", &[("final_output", r#"{"answer":"**a.txt** now says two."}"#)]),
    ]
}

/// Holds A5: the steps are shown by `run` (fixture).
#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_done_and_told() {
    let server = ScriptedServer::start(work()).await;
    let home = Home::with(&server);
    home.put("a.txt", "one\n");
    let ran = home.run(&["run", "--approve", "all", "--output", "answer.md", "change it"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "**a.txt** now says two.\n"), "{}", ran.err);
    assert_eq!((home.read("a.txt").as_str(), home.read("b.txt").as_str()), ("two\n", "b\n"));
    assert_eq!(home.read("answer.md"), "**a.txt** now says two.");
    let shown = home.run(&["sessions", "show", &home.newest().await]).await;
    let text = format!(
        "$ dunnock run --approve all \"change it\"\n{}{}\n$ dunnock sessions show\n{}",
        ran.err, ran.out, shown.out
    );
    fixture::check("fixtures/cli/run.txt", &home.plain(&text));
    let first = server.bodies()[0].len();
    println!("first request: {first} bytes");
    assert!(first <= 16 << 10, "{first} bytes");
}

/// Holds A4: sent from a folder that nobody trusted.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_real_run_extend_each_other() {
    let server = ScriptedServer::start(work()).await;
    let home = Home::with(&server);
    home.put("AGENTS.md", "Use tabs.");
    home.put("a.txt", "one\n");
    home.run(&["run", "--approve", "all", "change it"]).await;
    home.run(&["resume", "--prompt", "more"]).await;
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 6, "five and one after the resume");
    let split = |body: &[u8]| {
        let text = String::from_utf8_lossy(body).into_owned();
        let (before, messages) = text.split_once(r#","messages":["#).unwrap();
        (before.to_owned(), messages.strip_suffix("]}").unwrap().to_owned())
    };
    for pair in bodies.windows(2) {
        let ((preamble, messages), (next_preamble, next)) = (split(&pair[0]), split(&pair[1]));
        assert_eq!(preamble, next_preamble);
        assert!(next.starts_with(&messages) && next.len() > messages.len());
    }
    assert!(split(&bodies[0]).1.contains("Use tabs."), "AGENTS.md is in the preamble");
}

/// Holds W1: without a terminal a bare task is `run`.
#[tokio::test(flavor = "multi_thread")]
async fn a_bare_task_and_one_on_standard_input_are_run() {
    let server = ScriptedServer::start(vec![Say::text("fine").into()]).await;
    let home = Home::with(&server);
    let ran = home.run(&["say that it is fine"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "fine\n"), "{}", ran.err);
    let file = home.dir.path().join("task");
    std::fs::write(&file, "from a pipe\n").unwrap();
    let mut command = home.command(&["run"]);
    command.stdin(std::fs::File::open(&file).unwrap());
    assert_eq!(crate::ran(command).await.code, 0);
    assert_eq!(server.requests()[1]["messages"][1]["content"], "from a pipe");
}

/// Holds W4: a reply without calls, limit and budget as exit 4 where nobody answers.
#[tokio::test(flavor = "multi_thread")]
async fn ends_have_their_exit_codes_and_resume_ends_as_they_did() {
    let steps = || {
        (0..5)
            .map(|n| Say::calls(&[("shell", &format!("{{\"command\":\"echo {n}\"}}"))]).into())
            .collect()
    };
    let server = ScriptedServer::start(steps()).await;
    let home = Home::with(&server);
    let limit = home.run(&["run", "--approve", "all", "--max-steps", "2", "go"]).await;
    assert_eq!(limit.code, 4, "{}", limit.err);
    assert!(limit.err.contains("the limit of 2 steps was reached"), "{}", limit.err);
    let more = home.run(&["resume"]).await;
    assert_eq!(more.code, 4, "it goes on for as many steps again, then: {}", more.err);
    assert_eq!(server.bodies().len(), 4);
    let done = home.run(&["resume", "--max-steps", "9"]).await;
    assert_eq!((done.code, done.out.as_str()), (0, "done\n"), "{}", done.err);
    let again = home.run(&["resume"]).await;
    assert_eq!((again.code, again.out.as_str()), (0, "done\n"), "{}", again.err);
    assert_eq!(server.bodies().len(), 6, "a session that is done is not asked about again");
    let budget = home.run(&["run", "--budget", "1ktok", "go"]).await;
    assert_eq!(budget.code, 4, "{}", budget.err);

    let broken =
        ScriptedServer::start(vec![Served::wrong(Say::text("x"), Fault::Says(400, "{}".into()))])
            .await;
    let home = Home::with(&broken);
    let failed = home.run(&["run", "go"]).await;
    assert_eq!(failed.code, 1, "{}", failed.err);
    assert_eq!(home.run(&["resume"]).await.code, 1);
    assert_eq!(broken.bodies().len(), 1);
    let usage = home.run(&["run", "--approve", "maybe", "go"]).await;
    assert_eq!(usage.code, 2);
    assert_eq!(home.run(&["run", "--no-such-flag"]).await.code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_the_only_one_here_is_used_and_settings_of_the_session_stay() {
    let one = ScriptedServer::with(
        vec![Say::calls(&[("shell", r#"{"command":"true"}"#)]).into()],
        Rules { models: vec!["m1".into(), "m2".into()], ..Rules::default() },
    )
    .await;
    let home = Home::with(&one);
    let ran = home.run(&["run", "--model", "script/m1", "--approve", "ask", "go"]).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    let id = home.newest().await;
    let ran = home.run(&["approve", &id, "--go"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(one.requests().iter().all(|r| r["model"] == "m1"), "the session keeps its model");
    let ran = home.run(&["resume", &id, "--model", "script/m2", "--prompt", "again"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(one.requests().last().unwrap()["model"], "m2", "a flag changes it");
}

/// Holds W9: a template of the user's replaces the embedded one; a broken one is named.
#[tokio::test(flavor = "multi_thread")]
async fn prompts_can_be_replaced_by_the_user() {
    let server = ScriptedServer::start(vec![]).await;
    let home = Home::with(&server);
    let dir = home.dir.path().join(".config/dunnock/prompts");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("system.md"), "You are a wren in {{ environment.root }}.").unwrap();
    assert_eq!(home.run(&["run", "go"]).await.code, 0);
    let system = server.requests()[0]["messages"][0]["content"].as_str().unwrap().to_owned();
    assert_eq!(home.plain(&system), "You are a wren in HOME/project.");
    std::fs::write(dir.join("system.md"), "{{ no_such_thing }}").unwrap();
    let ran = home.run(&["run", "go"]).await;
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("prompts/system.md cannot be rendered"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_written_is_no_success_and_work_goes_on_without_a_reader() {
    let script = || {
        vec![
            Say::calls(&[("shell", r#"{"command":"sleep 0.3; echo one >> log"}"#)]).into(),
            Say::text("done").into(),
        ]
    };
    let server = ScriptedServer::start(script()).await;
    let home = Home::with(&server);
    let program = env!("CARGO_BIN_EXE_dunnock");
    let full = home.command_of(
        "sh".as_ref(),
        &["-c", "exec \"$0\" run --json --approve all go > /dev/full", program],
    );
    let ran = crate::ran(full).await;
    assert_eq!((ran.code, home.read("log").as_str()), (1, "one\n"), "{}", ran.err);
    assert!(ran.err.contains("cannot write to standard output"), "{}", ran.err);
    let script = "{ \"$0\" run --json --approve all go; echo $? > code; } | head -n 1";
    let ran = crate::ran(home.command_of("bash".as_ref(), &["-c", script, program])).await;
    assert!(ran.out.contains("\"type\":\"session\""), "{}", ran.out);
    assert_eq!(
        (home.read("code").as_str(), home.read("log").as_str()),
        ("0\n", "one\none\n"),
        "{}",
        ran.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_its_end_is_not_done() {
    let event = |content: &str, finish: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{content}\"}},\"finish_reason\":\"\
             {finish}\"}}]}}\n\ndata: [DONE]\n\n"
        )
    };
    for (stream, words) in [
        (event("half an ans", "length"), "cut off at the model's output limit"),
        (event("", "content_filter"), "content filter blocked the answer"),
        (event("", "stop"), "returned an empty answer"),
        ("data: [DONE]\n\n".to_owned(), "returned an empty answer"),
    ] {
        let server = ScriptedServer::start(vec![Served::wrong(
            Say::text("x"),
            Fault::Raw(stream.into_bytes()),
        )])
        .await;
        let home = Home::with(&server);
        let ran = home.run(&["run", "go"]).await;
        assert_eq!(ran.code, 1, "{words}: {}", ran.err);
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_cannot_be_used_is_no_obstacle_to_the_others() {
    let server = ScriptedServer::start(vec![]).await;
    let home = Home::with(&server);
    let config = format!(
        "model = \"script/scripted\"\n[providers.script]\nbase_url = \
         \"{}\"\n[providers.x]\nbase_url = \"{{NO_SUCH}}/v1\"\n[providers.y]\nwire = \"chat\"\n",
        server.base_url()
    );
    home.configure(&config);
    assert_eq!(home.run(&["run", "go"]).await.code, 0);
    assert_eq!(home.run(&["sessions", "list"]).await.code, 0);
    let ran = home.run(&["run", "--model", "x/claude", "go"]).await;
    assert!(
        ran.code == 2 && ran.err.contains("the provider x has no address. Set NO_SUCH"),
        "{}",
        ran.err
    );
    let ran = home.run(&["run", "--model", "y/z", "go"]).await;
    assert!(ran.code == 2 && ran.err.contains("has no address"), "{}", ran.err);
}
