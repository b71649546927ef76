//! Planner and carried conversation, as far as the core decides them.

use crate::stage::{Scene, auto, scene};
use dunnock_core::{Effect, EffectOutcome, Status, wanted};
use dunnock_proto::*;

fn call(step: u32, index: u16) -> CallId {
    CallId { step: Step(step), index }
}

fn kinds(scene: &Scene, kind: &str) -> usize {
    scene.log.iter().filter(|event| event.kind() == kind).count()
}

fn ends(scene: &mut Scene, id: CallId, outcome: Outcome) {
    scene.work(EffectOutcome::Output(Finished::plain(id, outcome, "so")));
}

fn handed(step: u32) -> EffectOutcome {
    EffectOutcome::OutboxWritten(OutboxWritten {
        step: Step(step),
        outbox: "o".into(),
        inbox: "i".into(),
        parts: 1,
    })
}

/// A session that a person carries, with its first request written down or not.
fn carried() -> Scene {
    let mut scene = scene(auto());
    scene.command(Command::Configure {
        set: ConfigPatch { model: Some("m/hand".into()), ..ConfigPatch::default() },
    });
    scene.line("> go");
    scene
}

fn wants(scene: &Scene) -> Vec<Effect> {
    wanted(&scene.s, Owner(scene.owner))
        .into_iter()
        .filter(|e| !matches!(e, Effect::Checkpoint { .. }))
        .collect()
}

#[test]
fn a_request_is_handed_over_once_and_then_waits_without_anybody() {
    let mut scene = carried();
    assert_eq!(wants(&scene), [Effect::WriteOutbox { step: Step(1) }]);
    assert!(!wants(&scene)[0].parked());
    assert_eq!(scene.s.status(), Status::Working);
    scene.work(handed(2));
    assert_eq!(kinds(&scene, "outbox_written"), 0, "of another step");
    scene.work(handed(1));
    assert_eq!(wants(&scene), [Effect::AwaitInbox { step: Step(1) }]);
    assert!(wants(&scene)[0].parked());
    assert_eq!((scene.s.status(), scene.s.awaiting_reply().is_some()), (Status::Waiting, true));
    scene.work(handed(1));
    assert_eq!(kinds(&scene, "outbox_written"), 1, "once");
    // Whoever takes it over waits for the same answer, and nothing is written off.
    scene.take();
    assert_eq!(wants(&scene), [Effect::AwaitInbox { step: Step(1) }]);
    assert_eq!(scene.s.spent.tokens, 0);
    scene.line("< looking | view: a.rs");
    assert!(scene.s.awaiting_reply().is_none());
    ends(&mut scene, call(1, 0), Outcome::Done);
    assert_eq!(
        wants(&scene),
        [Effect::WriteOutbox { step: Step(2) }],
        "the second is another request"
    );
    // Stopped before it was written down: a late report changes nothing.
    scene.line("stop");
    scene.work(handed(2));
    assert_eq!(kinds(&scene, "outbox_written"), 1);
}

#[test]
fn a_request_that_is_carried_can_be_stopped() {
    let mut scene = carried();
    scene.work(handed(1));
    scene.line("stop");
    let cut = Effect::AwaitInbox { step: Step(1) }.cut().expect("it can be cut");
    scene.work(cut);
    assert_eq!(scene.s.status(), Status::Stopped, "{}", scene.out);
}

#[test]
fn done_beside_what_failed_is_seen_first_by_who_carries() {
    for (via_bridge, outcome, done) in [
        (true, Outcome::Failed, false),
        (true, Outcome::Done, true),
        (false, Outcome::Failed, true),
    ] {
        let mut scene = if via_bridge { carried() } else { scene(auto()) };
        if via_bridge {
            scene.work(handed(1));
        } else {
            scene.line("> go");
        }
        scene.line("< shell: make all | final_output: {\"answer\":\"done\"}");
        ends(&mut scene, call(1, 0), outcome.clone());
        assert_eq!(
            kinds(&scene, "ended") == 1,
            done,
            "by hand {via_bridge}, {outcome:?}: {}",
            scene.out
        );
        assert_eq!(kinds(&scene, "step_started"), if done { 1 } else { 2 });
    }
}

fn planner(verify: &[&str]) -> Config {
    let planner = Planner {
        file: "t.txt".into(),
        memory: String::new(),
        allow: Vec::new(),
        steps: StepRules::PLANNER,
    };
    let verify = verify.iter().map(|v| (*v).to_owned()).collect();
    Config { planner: Some(planner), verify, max_steps: 5, ..auto() }
}

#[test]
fn a_plan_is_carried_out_in_order_and_ends_at_the_first_failure() {
    let mut scene = scene(planner(&[]));
    scene.line("> go");
    scene.line("< view: a | view: b | shell: make all | view: c");
    assert_eq!(kinds(&scene, "started"), 1, "one after the other, readers too: {}", scene.out);
    ends(&mut scene, call(1, 0), Outcome::Done);
    assert_eq!(kinds(&scene, "started"), 2);
    ends(&mut scene, call(1, 1), Outcome::Failed);
    assert_eq!(kinds(&scene, "started"), 2, "nothing behind a failure runs");
    assert_eq!(kinds(&scene, "step_started"), 2, "and it plans again: {}", scene.out);
    // Elsewhere readers run beside each other, and a failure holds nothing up.
    let mut plain = crate::stage::scene(auto());
    plain.line("> go");
    plain.line("< view: a | view: b");
    assert_eq!(kinds(&plain, "started"), 2);
}

#[test]
fn a_planner_ends_when_its_checks_pass_or_a_plan_has_no_actions() {
    let mut scene = scene(planner(&["make test"]));
    scene.line("> go");
    scene.line("< shell: make all");
    ends(&mut scene, call(1, 0), Outcome::Done);
    assert_eq!(kinds(&scene, "check_called"), 1, "checked after each plan: {}", scene.out);
    ends(&mut scene, call(1, 1), Outcome::Failed);
    assert_eq!(kinds(&scene, "step_started"), 2);
    scene.line("< shell: make all");
    ends(&mut scene, call(2, 0), Outcome::Done);
    // A prompt that comes meanwhile is told before it is over.
    scene.line("> and this");
    ends(&mut scene, call(2, 1), Outcome::Done);
    assert_eq!((kinds(&scene, "ended"), kinds(&scene, "step_started")), (0, 3), "{}", scene.out);
    scene.line("< shell: make all");
    ends(&mut scene, call(3, 0), Outcome::Done);
    ends(&mut scene, call(3, 1), Outcome::Done);
    assert_eq!(scene.s.status(), Status::Done, "{}", scene.out);
    let mut idle = crate::stage::scene(planner(&["make test"]));
    idle.line("> go");
    idle.line("< nothing to do");
    ends(&mut idle, call(1, 0), Outcome::Failed);
    assert_eq!(
        (idle.s.status(), kinds(&idle, "step_started")),
        (Status::Failed, 1),
        "{}",
        idle.out
    );
}

#[test]
fn a_planners_checks_that_change_files_run_again_but_not_for_ever() {
    let mut scene = scene(planner(&["make test"]));
    scene.line("> go");
    scene.line("< shell: make all");
    ends(&mut scene, call(1, 0), Outcome::Done);
    let mut checks = 0;
    while scene.s.status() == Status::Working && checks < 20 {
        checks += 1;
        let passed = Finished::plain(call(1, checks), Outcome::Done, "so");
        let changed = Finished { checked_tree: Some(Tree(format!("t{checks}"))), ..passed };
        scene.work(EffectOutcome::Output(changed));
    }
    // The limit on steps is 5: the check after the plan, and one for each that is left.
    assert_eq!((checks, scene.s.status()), (6, Status::Failed), "{}", scene.out);
    assert_eq!(kinds(&scene, "check_called"), 6);
}
