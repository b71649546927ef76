//! Edges between processes and rounds: doors that close, answers that come while somebody opens,
//! commands sent twice.

use crate::sessions::Scene;
use dunnock_engine::{Connection, Submitted, create, load, submit_offline};
use dunnock_ports::{BoxFuture, Checkpoints, FilesError, RestorePlan, Restored, SaveControl};
use dunnock_proto::*;
use dunnock_testkit::model::{Say, ScriptedModel};
use dunnock_testkit::worlds;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn prompt(id: &str, text: &str) -> CommandRequest {
    CommandRequest {
        id: id.parse().unwrap(),
        expect: None,
        command: Command::Prompt { text: text.into(), images: vec![] },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_door_that_closes_lets_a_call_report_before_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let model =
        ScriptedModel::new(vec![Say::calls(&[("append", r#"{"ms":60000}"#)]), Say::text("done")]);
    let ports = worlds::in_folder(dir.path(), model).await;
    let session = create(&ports, "/w", worlds::config()).await.unwrap();
    let mut s = Scene::open(&ports, &session).await;
    s.prompt("go").await;
    s.until("started").await;
    s.connection.close().await;
    let facts = worlds::facts(ports.store.as_ref(), &session).await;
    let ended = facts
        .iter()
        .find_map(|(_, e)| if let Event::Finished(f) = e { Some(f.outcome.clone()) } else { None });
    assert_eq!(ended, Some(Outcome::Interrupted), "its end was known and is recorded");
    assert!(
        !facts.iter().any(|(_, e)| matches!(e, Event::Ended(_))),
        "closing a door is not an interrupt"
    );
    let mut again = Scene::open(&ports, &session).await;
    again.catch_up().await;
    again.rest(Answer::Yes).await;
    assert_eq!(again.s.last.as_deref(), Some(&EndReason::Done), "whoever opens next goes on");
    again.connection.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_door_that_closes_while_the_model_thinks_leaves_the_turn_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new(vec![Say::text("slow words come here").after(40)]);
    let ports = worlds::in_folder(dir.path(), model).await;
    let session = create(&ports, "/w", worlds::config()).await.unwrap();
    let mut s = Scene::open(&ports, &session).await;
    s.prompt("go").await;
    s.until("step_started").await;
    s.connection.close().await;
    let state = load(ports.store.as_ref(), &session).await.unwrap().state;
    assert_eq!(state.phase, dunnock_core::Phase::Thinking);
    let mut again = Scene::open(&ports, &session).await;
    again.catch_up().await;
    again.rest(Answer::Yes).await;
    assert_eq!(
        (again.s.last.as_deref(), again.s.step),
        (Some(&EndReason::Done), Step(1)),
        "the same step was asked again"
    );
    again.connection.close().await;
}

/// Somebody answers at the very moment somebody else opens: nobody is told that the session was
/// taken from them, and no answer is left unheard.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_come_while_a_session_is_opened_are_heard() {
    for n in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let config = Config { mode: Mode::Ask, attended: true, ..worlds::config() };
        let script = vec![Say::calls(&[("append", r#"{"say":"x"}"#)]), Say::text("done")];
        let ports = worlds::in_folder(dir.path(), ScriptedModel::new(script)).await;
        let session = create(&ports, "/w", config).await.unwrap();
        let mut s = Scene::open(&ports, &session).await;
        s.prompt("go").await;
        s.question().await;
        s.connection.close().await;
        let q = load(ports.store.as_ref(), &session).await.unwrap().state.questions[0].clone();
        let reply =
            Command::Reply { question: q.id, hash: q.hash, answer: Answer::Yes, note: None };
        let request = CommandRequest { id: "yes".parse().unwrap(), expect: None, command: reply };
        let other = worlds::in_folder(dir.path(), ScriptedModel::new(Vec::new())).await;
        let (left, opened) = tokio::join!(
            async {
                tokio::time::sleep(Duration::from_micros(n * 150)).await;
                submit_offline(&other, &session, request).await.unwrap().unwrap()
            },
            Connection::open(ports.clone(), session.clone(), 0)
        );
        let mut s = Scene::on(opened.expect("opening is not refused because somebody answered"));
        let rest = tokio::time::timeout(Duration::from_secs(5), async {
            s.catch_up().await;
            s.listen().await;
        });
        rest.await.unwrap_or_else(|_| panic!("round {n}: the answer ({left:?}) was never heard"));
        assert_eq!(s.s.last.as_deref(), Some(&EndReason::Done));
        s.connection.close().await;
    }
}

/// One command twice at once: one answer, one event, and the answer is true.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_sent_twice_in_one_round_is_carried_out_once() {
    for memory in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let model = ScriptedModel::new(Vec::new());
        let ports = if memory {
            worlds::in_memory(dir.path(), model)
        } else {
            worlds::in_folder(dir.path(), model).await
        };
        let session = create(&ports, "/w", worlds::config()).await.unwrap();
        let first = Connection::open(ports.clone(), session.clone(), 0).await.unwrap();
        let mut connections = Vec::new();
        for _ in 0..6 {
            connections.push(Connection::open(ports.clone(), session.clone(), 0).await.unwrap());
        }
        let mut tasks = tokio::task::JoinSet::new();
        for mut connection in connections {
            tasks.spawn(
                async move { connection.submit(prompt("same", "hi")).await.unwrap().unwrap() },
            );
        }
        let answers = tasks.join_all().await;
        assert!(answers.windows(2).all(|w| w[0] == w[1]), "{answers:?}");
        first.close().await;
        let facts = worlds::facts(ports.store.as_ref(), &session).await;
        assert_eq!(facts.iter().filter(|(_, e)| matches!(e, Event::Prompted(_))).count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_that_was_answered_before_stops_nothing_new() {
    let dir = tempfile::tempdir().unwrap();
    let hang = Say::calls(&[("append", r#"{"ms":60000}"#)]);
    let script = vec![hang, Say::text("now something slow and new").after(30)];
    let ports = worlds::in_folder(dir.path(), ScriptedModel::new(script)).await;
    let session = create(&ports, "/w", worlds::config()).await.unwrap();
    let mut s = Scene::open(&ports, &session).await;
    s.prompt("go").await;
    s.until("started").await;
    let stop =
        CommandRequest { id: "stop".parse().unwrap(), expect: None, command: Command::Interrupt };
    let first = s.connection.submit(stop.clone()).await.unwrap().unwrap();
    s.until("ended").await;
    s.prompt("another").await;
    assert_eq!(s.s.phase, dunnock_core::Phase::Thinking);
    assert_eq!(s.connection.submit(stop).await.unwrap().unwrap(), first, "the first answer again");
    s.rest(Answer::Yes).await;
    assert_eq!(s.s.last.as_deref(), Some(&EndReason::Done), "what began since went on");
    s.connection.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_left_for_a_living_owner_reaches_it() {
    let dir = tempfile::tempdir().unwrap();
    let ports = worlds::in_folder(dir.path(), ScriptedModel::new(Vec::new())).await;
    let session = create(&ports, "/w", worlds::config()).await.unwrap();
    let mut s = Scene::open(&ports, &session).await;
    let other = worlds::in_folder(dir.path(), ScriptedModel::new(Vec::new())).await;
    let left =
        submit_offline(&other, &session, prompt("left", "from outside")).await.unwrap().unwrap();
    assert!(matches!(left, Submitted::ToOwner(_)), "{left:?}");
    s.until("ended").await;
    s.connection.close().await;
    let left =
        submit_offline(&other, &session, prompt("later", "for later")).await.unwrap().unwrap();
    assert!(matches!(left, Submitted::Stored(_)), "{left:?}");
}

/// An interface that also listens to keys asks for frames again and again. If it is interrupted
/// while it takes over, the takeover continues: a second one would be a third owner.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_interrupted_while_it_takes_over_takes_over_once() {
    for n in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let ports = worlds::in_folder(dir.path(), ScriptedModel::new(Vec::new())).await;
        let session = create(&ports, "/w", worlds::config()).await.unwrap();
        let mut first = Connection::open(ports.clone(), session.clone(), 0).await.unwrap();
        first.submit(prompt("one", "hi")).await.unwrap().unwrap();
        let mut second = Connection::open(ports.clone(), session.clone(), 0).await.unwrap();
        assert!(second.handle().is_none());
        first.close().await;
        let mut slice = Duration::from_micros(100 * (1 + n % 10));
        // What it does now, for the message.
        let (mut asked, mut last, mut step) = (0, String::new(), "asks");
        let taken = tokio::time::timeout(Duration::from_secs(30), async {
            while second.handle().is_none() {
                slice += Duration::from_micros(10); // so that a busy machine gets there, too
                (asked, step) = (asked + 1, "asks");
                if let Ok(answer) = tokio::time::timeout(slice, second.next()).await {
                    last = format!("{answer:?}");
                }
                // Nothing that the takeover holds may wait for the client to ask again.
                step = "lists";
                ports.store.list(None, 10).await.unwrap();
                step = "creates";
                create(&ports, "/w", worlds::config()).await.unwrap();
            }
        });
        if taken.await.is_err() {
            panic!("round {n}: nobody took over; asked {asked} times, now {step}, last: {last}");
        }
        second.submit(prompt("two", "more")).await.unwrap().unwrap();
        second.close().await;
        let facts = worlds::facts(ports.store.as_ref(), &session).await;
        let owners = facts.iter().filter(|(_, e)| matches!(e, Event::OwnerChanged(_))).count();
        assert_eq!(owners, 2, "round {n}");
    }
}

/// Saves files only the second time; the first time takes until it is stopped.
#[derive(Default)]
struct SlowCopy(AtomicUsize);

impl Checkpoints for SlowCopy {
    fn keep<'a>(
        &'a self,
        _: &'a SessionId,
        _: &'a str,
        mark: Seq,
        saving: SaveControl,
    ) -> BoxFuture<'a, Checkpointed> {
        Box::pin(async move {
            let first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
            if first {
                saving.halt.cancelled().await;
            }
            let tree = (!first).then(|| Tree("saved".into()));
            Checkpointed { tree, mark, note: first.then(|| "stopped".into()) }
        })
    }
    fn restore<'a>(&'a self, _: RestorePlan<'a>) -> BoxFuture<'a, Result<Restored, FilesError>> {
        Box::pin(async { Err(FilesError::Unavailable) })
    }
    fn forget<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<(), FilesError>> {
        Box::pin(async { Ok(()) })
    }
}

/// UX-A3: Esc did not end the first copy of a large folder.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_and_a_close_end_the_first_copy_and_the_next_prompt_repeats_it() {
    for closes in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let script = vec![
            Say::calls(&[("append", r#"{"say":"x"}"#)]),
            Say::calls(&[("append", r#"{"say":"y"}"#)]),
            Say::text("done"),
        ];
        let mut ports = worlds::in_folder(dir.path(), ScriptedModel::new(script)).await;
        let copies = Arc::new(SlowCopy::default());
        ports.checkpoints = Some(copies.clone());
        let config = Config { checkpoints: true, ..worlds::config() };
        let session = create(&ports, "/w", config).await.unwrap();
        let mut s = Scene::open(&ports, &session).await;
        s.prompt("go").await;
        s.until("answered").await;
        if closes {
            s.connection.close().await;
            s = Scene::open(&ports, &session).await;
            s.catch_up().await;
        } else {
            s.send(Command::Interrupt).await;
            s.rest(Answer::Yes).await;
            assert_eq!(s.s.last.as_deref(), Some(&EndReason::Stopped));
            assert_eq!(s.s.tree, None);
            s.prompt("go on").await;
        }
        s.rest(Answer::Yes).await;
        assert_eq!(s.s.last.as_deref(), Some(&EndReason::Done));
        assert_eq!(s.s.first, Some(Tree("saved".into())), "the files before any change");
        let unsaved = worlds::facts(ports.store.as_ref(), &session).await;
        let unsaved = unsaved
            .iter()
            .filter(|(_, e)| matches!(e, Event::Checkpointed(e) if e.tree.is_none()))
            .count();
        assert_eq!(unsaved, usize::from(!closes), "a driver that leaves records no failure");
        s.connection.close().await;
    }
}
