//! Screens as people see them, held word for word. `DUNNOCK_BLESS=1` writes them anew; then look at
//! each that changed.

use crate::tape::{FRAMES, Tape, approval, approval_of, call, config, id, say};
use crossterm::event::KeyCode;
use dunnock_proto::*;
use dunnock_tui::{HostEvent, RewindPoint, SessionRow, Theme, Welcome};
use serde_json::json;
use std::path::Path;

type Scene = (&'static str, fn() -> String);

const MARKDOWN: &str = "# The cause\n\nThe clamp is *missing* in `add_months`:\n\n1. the **day** is kept\n2. the month is shorter\n   - February\n   - April\n\n\
> quoted from the docs\n\n```rust\n// stay on the last day\nlet day = self.day.min(days_in(year, month));\n```\n\n| case | before | now |\n|---|:---:|---:|\n| 31 Jan + 1 month | panic | 28 Feb |\n| 31 Mar + 1 month | panic | 30 Apr |\n\n\
See [the book](https://example.org/dates) and ~~the old way~~.\n";

fn edit() -> serde_json::Value {
    json!({"path": "src/dates.rs", "old": "    Date::new(year, month, self.day)", "new": "    let day = self.day.min(days_in(year, month));\n    Date::new(year, month, day)"})
}

fn shell(command: &str) -> serde_json::Value {
    json!({ "command": command })
}

/// A conversation that a person carries, with a request handed over.
fn carried(columns: u16) -> Tape {
    let mut t = Tape::new(columns, 24);
    let bridge = Bridge {
        folder: "/home/ada/webshop/.dunnock/bridge".into(),
        timeout: 60,
        output: 4000,
        size: 12000,
    };
    t.begun(Config { model: "bridge/chat".into(), price: None, bridge: Some(bridge), ..config() });
    t.fact(Prompted { text: "Fix the date test".into(), images: Vec::new() }).step(1);
    t.fact(OutboxWritten {
        step: Step(1),
        outbox: ".dunnock/bridge/outbox-1.md".into(),
        inbox: ".dunnock/bridge/inbox-1.md".into(),
        parts: 2,
    });
    t
}

/// A preamble that asks for much thinking.
fn thinking() -> Preamble {
    Preamble {
        hash: Hash::ZERO,
        model: config().model,
        wire: "responses".into(),
        dialect: "native".into(),
        profile: "default".into(),
        version: "0".into(),
        tools: Vec::new(),
        bytes: 0,
        window: Some(32_000),
        max_output: None,
        effort: Some(PreambleEffort { wanted: Effort::Max, sent: Effort::High }),
        reason: "start".into(),
        first_changed: None,
        sources: Vec::new(),
        via_bridge: false,
        level: None,
        reaches_machine: false,
        hosts: Default::default(),
        web_fetch: false,
        servers: Vec::new(),
    }
}

/// An answer of which nobody says what it used.
fn unmeasured(t: &mut Tape) -> &mut Tape {
    let parts = vec![say("It is fixed.")];
    let usage = Usage::default();
    let (attempts, model, wire) = (Vec::new(), "a/b".into(), "chat".into());
    let (step, request) = (Step(1), Hash::ZERO);
    t.fact(Answered {
        step,
        attempts,
        model,
        wire,
        parts,
        stop: Stop::End,
        usage,
        request,
        items: Vec::new(),
        effort_refused: false,
        raw: None,
        server_tools: Vec::new(),
    });
    t.fact(Ended { reason: EndReason::Done, proof: Proof::None, hold: false })
}

fn waiting(columns: u16, rows: u16) -> Tape {
    let mut t = Tape::new(columns, rows);
    let network = Access { network: true, ..Access::NOTHING };
    let rule = Rule {
        tool: "shell".into(),
        words: vec!["cargo".into(), "add".into()],
        access: network.clone(),
    };
    let reason = Reason::UsesNetwork { program: "cargo".into() };
    let approval =
        Approval { access: network, rule: Some(rule), ..approval(RequestKind::Network, reason) };
    t.working().asks("shell", shell("cargo add time@0.3"), approval);
    t.wait(400);
    t
}

fn an_edit() -> Approval {
    Approval { isolation: None, ..approval(RequestKind::Edit, Reason::ModeAsk) }
}

fn person(text: &str, choices: &[&str]) -> QuestionKind {
    let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
    QuestionKind::Person { call: id(1, 0), text: text.into(), choices }
}

fn markdown(columns: u16, theme: Theme) -> Tape {
    let mut t = Tape::new(columns, 24);
    t.state.theme = theme;
    t.working().answered(1, vec![say(MARKDOWN)]);
    t
}

fn done(proof: Proof, why: EndReason) -> Tape {
    let mut t = Tape::new(80, 24);
    t.working().answered(1, vec![call("replace_text", edit())]).started(id(1, 0));
    t.fact(Finished {
        diff: Some(Hash::ZERO),
        ms: 4,
        ..Finished::plain(id(1, 0), Outcome::Done, "replaced 1 place")
    });
    t.step(2).answered(2, vec![say("The month arithmetic now stays on the last day.")]);
    if proof != Proof::None {
        let args = VerifyArgs { command: "cargo test --all".into() }.text().into();
        t.fact(CheckCalled {
            call: id(2, 0),
            tool: "verify".into(),
            args,
            tried: 1,
            class: Class::Command,
            recovery: Recovery::Repeat,
        });
        t.started(id(2, 0));
        let outcome = if proof == Proof::Proven { Outcome::Done } else { Outcome::Failed };
        let exit = if proof == Proof::Proven { 0 } else { 101 };
        t.fact(Finished {
            exit: Some(exit),
            ms: 4_200,
            ..Finished::plain(id(2, 0), outcome, "test result: 214 tests\n")
        });
    }
    t.fact(Ended { reason: why, proof, hold: false });
    t
}

fn running(columns: u16) -> Tape {
    let mut t = Tape::new(columns, 24);
    t.working().answered(1, vec![call("shell", shell("cargo test dates"))]).started(id(1, 0));
    t.delta(Delta::Output {
        call: id(1, 0),
        offset: 0,
        stream: "out".into(),
        text: "   Compiling webshop v0.4.0\n\u{1b}[32m    Finished\u{1b}[0m test\n     Running \
               tests/dates.rs\n"
            .into(),
    });
    t.wait(3_200);
    t
}

fn sessions() -> Vec<SessionRow> {
    let row =
        |n: u8, title: &str, workspace: &str, status: &str, age: &str, excerpt: &str| SessionRow {
            id: SessionId::from_random([n; 16]),
            title: title.into(),
            workspace: workspace.into(),
            status: status.into(),
            age: age.into(),
            excerpt: excerpt.into(),
        };
    vec![
        row(1, "Make the failing date test pass", "~/webshop", "waiting", "9 h ago", ""),
        row(2, "Why is the build slow?", "~/compiler", "done", "2 d ago", "… the linker takes …"),
        row(3, "", "~/notes", "stopped", "30 d ago", ""),
    ]
}

fn points() -> Vec<RewindPoint> {
    let point = |step: u32, title: &str, files: Option<usize>, kept: &[&str]| RewindPoint {
        step,
        seq: u64::from(step) * 10,
        title: title.into(),
        files,
        kept: kept.iter().map(|k| (*k).to_owned()).collect(),
    };
    vec![
        point(0, "before the first step", Some(3), &[]),
        point(2, "after edit src/dates.rs", Some(2), &[]),
        point(4, "after cargo test dates", Some(1), &["src/cart.rs"]),
    ]
}

const SCENES: &[Scene] = &[
    ("welcome", || Tape::new(80, 24).welcome().screen()),
    ("welcome_before_anything_is_known", || Tape::new(80, 24).screen()),
    ("welcome_narrow", || Tape::new(40, 20).welcome().screen()),
    ("first_run_without_a_model", || {
        let missing = vec![
            "choose a provider and a model: /login".into(),
            "or start a local server (Ollama, llama.cpp, LM Studio, vLLM), then: /login".into(),
        ];
        let w = Welcome {
            model: None,
            found: Vec::new(),
            notes: Vec::new(),
            missing,
            ..crate::tape::welcome()
        };
        Tape::new(80, 24).told(HostEvent::Welcome(w)).screen()
    }),
    ("login_providers", crate::login::providers_screen),
    ("login_providers_narrow", crate::login::providers_narrow_screen),
    ("login_key", crate::login::key_screen),
    ("login_key_narrow", crate::login::key_narrow_screen),
    ("login_key_refused", crate::login::key_refused_screen),
    ("login_models", crate::login::models_screen),
    ("login_trying", crate::login::trying_screen),
    ("typing_several_lines", || {
        let mut t = Tape::new(60, 20);
        t.welcome()
            .type_in("first line")
            .control('j')
            .type_in("second 漢字 line that is rather long and goes on over the edge")
            .screen()
    }),
    ("a_paste_is_folded", || {
        let mut t = Tape::new(60, 20);
        t.welcome()
            .type_in("look: ")
            .input(dunnock_tui::Input::Paste("line\n".repeat(400)))
            .type_in(" what is it?")
            .screen()
    }),
    ("a_picture_is_named", || {
        Tape::new(60, 20)
            .welcome()
            .input(dunnock_tui::Input::Paste("/home/ada/shot one.png".into()))
            .screen()
    }),
    ("streaming", || {
        let mut t = Tape::new(80, 24);
        let first =
            "The clamp is missing in `add_months`.\n\nI'll look at the callers first, and then ";
        t.working().text(1, 0, first).wait(1_500).screen()
    }),
    ("streaming_code", || {
        let mut t = Tape::new(80, 24);
        t.working()
            .text(1, 0, "Like this:\n\n```rust\nfn clamp(day: u8) -> u8 {\n    day.min(")
            .screen()
    }),
    ("streaming_is_cut_to_the_screen", || {
        let mut t = Tape::new(60, 12);
        t.working().text(1, 0, &"word ".repeat(400)).screen()
    }),
    ("reasoning", || {
        let mut t = Tape::new(80, 24);
        t.working()
            .thought(
                1,
                "the failing case adds one month to 31 January, so the day has to be clamped",
            )
            .screen()
    }),
    ("reasoning_then_words", || {
        let mut t = Tape::new(80, 24);
        t.working()
            .thought(1, "the day has to be clamped\nto the last of the month")
            .text(1, 0, "The clamp is missing.")
            .screen()
    }),
    ("running", || running(80).screen()),
    ("running_outside_the_sandbox", || {
        let mut t = Tape::new(80, 24);
        t.working()
            .answered(1, vec![call("shell", shell("docker ps")), call("shell", shell("ls"))]);
        for n in 0..2 {
            t.fact(Allowed {
                call: id(1, n),
                hash: Hash::ZERO,
                by: AllowedBy::Person(QuestionId(1)),
                args: None,
                isolation: None,
                access: Access { unsandboxed: n == 0, ..Access::default() },
                reads_secret: false,
            });
            t.started(id(1, n));
        }
        t.wait(3_200).screen()
    }),
    ("running_narrow", || running(40).screen()),
    ("running_several_and_a_plan", || {
        let mut t = Tape::new(80, 24);
        let parts = (0..3).map(|n| call("shell", shell(&format!("make part{n}")))).collect();
        t.working().answered(1, parts);
        for n in 0..3 {
            t.started(id(1, n));
        }
        let step = |text: &str, state: &str| PlanStep { text: text.into(), state: state.into() };
        t.fact(Planned {
            steps: vec![
                step("find the cause", "done"),
                step("fix it", "active"),
                step("run the tests", "pending"),
            ],
        });
        t.wait(65_000).screen()
    }),
    ("queued_while_it_works", || {
        let mut t = running(80);
        t.type_in("also check leap years").key(KeyCode::Enter);
        t.fact(Prompted { text: "also check leap years".into(), images: Vec::new() });
        t.screen()
    }),
    ("queued_and_then_told", || {
        let mut t = running(80);
        t.fact(Prompted { text: "also check leap years".into(), images: Vec::new() });
        t.fact(Finished {
            ms: 3_000,
            exit: Some(0),
            ..Finished::plain(id(1, 0), Outcome::Done, "ok\n")
        });
        t.step(2).screen()
    }),
    ("calls_that_ended", || {
        let mut t = Tape::new(80, 24);
        let parts = vec![
            call("search_text", json!({"pattern": "add_months", "path": "src"})),
            call("view_file", json!({"path": "src/dates.rs"})),
            call("replace_text", edit()),
            call("shell", shell("cargo test dates")),
            call("shell", shell("exit 3")),
            call("shell", shell("sleep 100")),
            call("move_file", json!({"path": "a", "to": "b"})),
        ];
        t.working().answered(1, parts);
        let mut end = |n: u16, outcome: Outcome, shown: &str, ms: u64, exit: Option<i32>| {
            let diff = (n == 2).then_some(Hash::ZERO);
            t.fact(Finished { ms, exit, diff, ..Finished::plain(id(1, n), outcome, shown) });
        };
        end(0, Outcome::Done, "src/dates.rs:1\nsrc/cart.rs:2\n", 3, None);
        end(1, Outcome::Done, "1 fn a\n2 fn b\n", 1, None);
        end(2, Outcome::Done, "replaced 1 place\n", 2, None);
        end(
            3,
            Outcome::Done,
            &(1..20).map(|n| format!("line {n}\n")).collect::<String>(),
            3_100,
            Some(0),
        );
        end(4, Outcome::Failed, "boom\n", 20, Some(3));
        end(5, Outcome::Interrupted, "", 60_000, None);
        end(6, Outcome::Unknown, "", 0, None);
        t.screen()
    }),
    ("asks_for_the_network", || waiting(80, 30).screen()),
    ("asks_narrow", || waiting(40, 30).screen()),
    ("asks_wide", || waiting(140, 30).screen()),
    ("asks_and_a_key_waits", || {
        let mut t = waiting(80, 30);
        t.key(KeyCode::Char('y')).screen()
    }),
    ("asks_and_a_key_waits_narrow", || {
        let mut t = waiting(40, 30);
        t.key(KeyCode::Char('y')).screen()
    }),
    ("asks_explained", || {
        let mut t = waiting(80, 30);
        t.answer('e').screen()
    }),
    ("asks_always_shows_its_rule", || {
        let mut t = waiting(80, 30);
        t.answer('a').screen()
    }),
    ("asks_declined_with_a_note", || {
        let mut t = waiting(80, 30);
        t.answer('t').type_in("use the crate that is there").screen()
    }),
    ("asks_and_was_answered", || {
        let mut t = waiting(80, 30);
        t.fact(Replied {
            question: QuestionId(1),
            answer: Answer::No,
            note: Some("use what is there".into()),
        });
        let outcome = Outcome::Declined { note: Some("use what is there".into()) };
        t.fact(Finished::plain(id(1, 0), outcome, "declined")).screen()
    }),
    ("asks_about_an_edit", || {
        let mut t = Tape::new(80, 30);
        t.working().asks("replace_text", edit(), an_edit()).wait(400).screen()
    }),
    ("asks_about_a_new_file", || {
        let mut t = Tape::new(80, 30);
        let args =
            json!({"path": "src/new.rs", "content": "fn main() {\n    println!(\"hello\");\n}\n"});
        t.working().asks("write_file", args, an_edit()).wait(400).screen()
    }),
    ("asks_about_a_patch", || {
        let mut t = Tape::new(80, 30);
        let patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** Delete File: \
                     b.py\n*** End Patch";
        t.working().asks("apply_patch", json!({ "patch": patch }), an_edit()).wait(400).screen()
    }),
    ("asks_about_deleting", || {
        let mut t = Tape::new(80, 30);
        let reason = Reason::DeletesFolder;
        let preview = vec![CallPreview::Deletes { files: 14, untracked: 3, more: true }];
        let protected = Access { protected: true, ..Access::NOTHING };
        let approval =
            Approval { preview, access: protected, ..approval(RequestKind::Destructive, reason) };
        t.working().asks("shell", shell("rm -rf build ./*"), approval).wait(400).screen()
    }),
    ("asks_about_a_file_to_delete", || {
        let mut t = Tape::new(80, 30);
        let approval = Approval { request: RequestKind::Deletion, ..an_edit() };
        t.working().asks("delete_file", json!({"path": "src/old.rs"}), approval).wait(400).screen()
    }),
    ("asks_about_a_file_to_move", || {
        let mut t = Tape::new(80, 30);
        let approval = Approval { request: RequestKind::Move, ..an_edit() };
        t.working()
            .asks("move_file", json!({"path": "a.rs", "to": "b.rs"}), approval)
            .wait(400)
            .screen()
    }),
    ("asks_about_a_protected_file", || {
        let mut t = Tape::new(80, 30);
        let reasons = vec![Reason::EditsProtected { file: ".github/workflows".into() }];
        let args = json!({"path": ".github/workflows/ci.yml", "content": "on: push\n"});
        t.working().asks("write_file", args, Approval { reasons, ..an_edit() }).wait(400).screen()
    }),
    ("asks_to_leave_the_sandbox", || {
        let mut t = Tape::new(80, 30);
        let reason = Reason::ActsOnMachine { program: "docker".into() };
        let access = Access { unsandboxed: true, ..Access::NOTHING };
        let approval = Approval { access, ..approval(RequestKind::Unsandboxed, reason) };
        t.working().asks("shell", shell("docker compose up -d"), approval).wait(400).screen()
    }),
    ("asks_to_read_secrets", || {
        let mut t = Tape::new(50, 24);
        let access = Access { secrets: true, ..Access::NOTHING };
        let approval = Approval { access, ..approval(RequestKind::Secrets, Reason::NamesSecret) };
        t.working()
            .asks("shell", shell("set -a; . ./.env; make deploy"), approval)
            .wait(400)
            .screen()
    }),
    ("asks_with_more_than_a_command", || {
        let mut t = Tape::new(80, 30);
        let access = Access { network: true, ..Access::NOTHING };
        let reasons = vec![Reason::RequestsNetwork, Reason::UsesNetwork { program: "pip".into() }];
        let request = approval(RequestKind::Network, Reason::RequestsNetwork);
        let args = json!({"command": "pip install \"import-x\"", "network": true, "timeout": 600});
        t.working().asks("shell", args, Approval { access, reasons, ..request }).wait(400).screen()
    }),
    ("asks_about_hosts", || {
        let mut t = Tape::new(80, 30);
        let hosts = ["127.0.0.1:3000", "registry.npmjs.org"].map(|host| host.parse().unwrap());
        let access = Access { hosts: hosts.into_iter().collect(), ..Access::NOTHING };
        let rule = Rule { tool: "shell".into(), words: vec![], access: access.clone() };
        let approval = Approval {
            access,
            wider: Access { network: true, ..Access::NOTHING },
            rule: Some(rule),
            ..approval(RequestKind::Hosts, Reason::UsesNetwork { program: "npm".into() })
        };
        t.working().asks("shell", shell("npm ci"), approval).wait(400).screen()
    }),
    ("asks_about_a_process", || {
        let mut t = Tape::new(80, 30);
        let approval = Approval {
            isolation: None,
            ..approval(RequestKind::ProcessInput, Reason::FeedsProcess)
        };
        t.working()
            .asks("process_write", json!({"process": 2, "text": "drop table users;\n"}), approval)
            .wait(400)
            .screen()
    }),
    ("asks_in_words", || {
        let mut t = Tape::new(80, 24);
        t.working()
            .answered(1, vec![call("ask_person", json!({"question": "What should I call it?"}))]);
        t.question(person("What should I call it?", &[])).wait(400).type_in("month_end").screen()
    }),
    ("asks_with_choices", || {
        let mut t = Tape::new(80, 24);
        t.working().answered(
            1,
            vec![call("ask_person", json!({"question": "Which?", "choices": ["red", "blue"]}))],
        );
        t.question(person("Which colour?", &["red", "blue"])).wait(400).screen()
    }),
    ("asks_whether_to_go_on", || {
        let mut t = Tape::new(80, 24);
        t.working().question(QuestionKind::Limit { steps: 20 }).wait(400).screen()
    }),
    ("asks_about_an_unknown_end", || {
        let mut t = Tape::new(80, 24);
        t.working().question(QuestionKind::Unknown { calls: vec![id(1, 0)] }).wait(400).screen()
    }),
    ("asks_about_the_budget", || {
        let mut t = Tape::new(80, 24);
        t.working().question(QuestionKind::Budget).wait(400).screen()
    }),
    ("asks_many_at_once", || {
        let mut t = Tape::new(80, 30);
        let parts = (0..7).map(|n| call("shell", shell(&format!("make part{n}")))).collect();
        t.working().answered(1, parts);
        for n in 0..7u16 {
            t.question(approval_of(id(1, n)));
        }
        t.wait(400).key(KeyCode::Right).screen()
    }),
    ("asks_about_what_does_not_fit", || {
        let mut t = Tape::new(60, 20);
        let command: String = (1..=300).map(|n| format!("echo {n}\n")).collect();
        t.working().asks_plain(shell(&command)).wait(400).answer('y').screen()
    }),
    ("asks_while_somebody_types", || {
        let mut t = Tape::new(80, 24);
        t.working().type_in("and anoth").asks_plain(shell("make")).wait(400).screen()
    }),
    ("menu_of_commands", || Tape::new(80, 24).welcome().type_in("/").screen()),
    ("menu_by_a_few_letters", || Tape::new(80, 24).welcome().type_in("/apr").screen()),
    ("menu_of_files", || {
        let mut t = Tape::new(80, 24);
        t.welcome()
            .told(HostEvent::Files(vec![
                "src/dates.rs".into(),
                "src/cart.rs".into(),
                "tests/dates.rs".into(),
            ]))
            .type_in("why does @dat")
            .screen()
    }),
    ("help", || Tape::new(80, 24).welcome().type_in("/help").key(KeyCode::Enter).screen()),
    ("keys", || Tape::new(80, 24).welcome().type_in("/keys").key(KeyCode::Enter).screen()),
    ("earlier_prompts", || {
        let mut t = Tape::new(80, 24);
        t.welcome();
        ["fix the tests", "why is it slow?", "write the docs"]
            .iter()
            .for_each(|p| t.state.history.add(p));
        t.control('r').type_in("wh").screen()
    }),
    ("picker_of_sessions", || {
        Tape::new(80, 24).welcome().told(HostEvent::Sessions(String::new(), sessions())).screen()
    }),
    ("picker_of_sessions_narrow", || {
        Tape::new(40, 24)
            .welcome()
            .told(HostEvent::Sessions(String::new(), sessions()))
            .type_in("bui")
            .screen()
    }),
    ("picker_of_models", || {
        Tape::new(80, 24)
            .begun(config())
            .told(HostEvent::Models(vec!["openai/gpt-5.1".into(), "ollama/qwen3:8b".into()]))
            .screen()
    }),
    ("picker_of_modes", || {
        Tape::new(80, 24).welcome().type_in("/approvals").key(KeyCode::Enter).screen()
    }),
    ("files_that_are_not_saved_narrow", || {
        let mut t = Tape::new(60, 20);
        t.begun(config()).fact(Prompted { text: "go".into(), images: Vec::new() }).step(1);
        let note = "saving the files was stopped; the next prompt starts it again".to_owned();
        t.fact(Checkpointed { tree: None, mark: 1, note: Some(note) }).screen()
    }),
    ("picker_of_efforts", || {
        let mut t = Tape::new(80, 24);
        t.begun(config()).fact(PreambleSet { preamble: thinking() });
        t.type_in("/effort").key(KeyCode::Enter).screen()
    }),
    ("an_effort_that_is_refused", || {
        let mut t = Tape::new(80, 24);
        t.begun(config()).fact(PreambleSet { preamble: thinking() });
        t.fact(Prompted { text: "Fix the date test".into(), images: Vec::new() }).step(1);
        let mut answer = t.answer_of(1, vec![say("It is fixed.")]);
        answer.effort_refused = true;
        t.fact(answer).fact(Ended { reason: EndReason::Done, proof: Proof::None, hold: false });
        t.screen()
    }),
    ("picker_of_themes", || {
        Tape::new(80, 24).welcome().type_in("/theme").key(KeyCode::Enter).screen()
    }),
    ("rewind", || Tape::new(80, 24).begun(config()).told(HostEvent::Points(points())).screen()),
    ("rewind_talk_only", || {
        Tape::new(80, 24)
            .begun(config())
            .told(HostEvent::Points(points()))
            .key(KeyCode::Up)
            .key(KeyCode::Left)
            .screen()
    }),
    ("diff", || {
        let diff = "--- a/src/dates.rs\n+++ b/src/dates.rs\n@@ -40,3 +40,3 @@\n fn add() {\n-    \
                    old()\n+    new()\n }\n";
        Tape::new(80, 24).begun(config()).told(HostEvent::Diff(diff.into())).screen()
    }),
    ("proven", || done(Proof::Proven, EndReason::Done).screen()),
    ("not_proven", || done(Proof::Failed, EndReason::Unproven).screen()),
    ("stopped", || done(Proof::None, EndReason::Stopped).screen()),
    ("failed", || {
        done(
            Proof::None,
            EndReason::Failed { error: "the key was refused (401). Set OPENAI_API_KEY".into() },
        )
        .screen()
    }),
    ("an_error_of_the_model", || {
        let mut t = Tape::new(60, 24);
        let error = "reconnecting 2/5 in 1.0 s · mock: the connection was lost; what arrived of the answer is discarded".into();
        t.working()
            .fact(StepFailed {
                retry_at: Some(At(9_000)),
                ..StepFailed::unsent(Step(1), Failure::Transport, error)
            })
            .screen()
    }),
    ("an_answer_that_broke_off", || {
        let mut t = Tape::new(60, 24);
        t.working().text(1, 0, "The first words\n\n");
        t.delta(Delta::Text { step: Step(1), attempt: 1, offset: 0, text: "All of it.".into() })
            .screen()
    }),
    ("a_command_that_is_none", || {
        Tape::new(60, 24).welcome().type_in("/modle").key(KeyCode::Esc).key(KeyCode::Enter).screen()
    }),
    ("your_own_command", || {
        let mut t = Tape::new(60, 24);
        t.welcome()
            .type_in("!git status")
            .key(KeyCode::Enter)
            .told(HostEvent::Shell("On branch main\nnothing to commit\n".into()));
        let live = t.screen();
        live + &t.told(HostEvent::ShellEnded("done".into())).screen()
    }),
    ("resumed", || {
        let mut t = Tape::new(80, 24);
        let resumed = Some("9 h ago".into());
        let id = SessionId::from_random([3; 16]);
        t.welcome().told(HostEvent::Opened {
            id,
            upto: 4,
            resumed,
            draft: Some(r#"{"text":"half a th","at":9,"chips":[]}"#.into()),
        });
        t.fact(Created { workspace: "/w".into(), app: "0".into(), config: config(), base: None });
        t.fact(Prompted { text: "fix the date test".into(), images: Vec::new() });
        t.step(1);
        t.question(QuestionKind::Limit { steps: 20 }).wait(400).screen()
    }),
    ("a_fresh_session_keeps_the_old_one", || {
        let mut t = done(Proof::None, EndReason::Done);
        t.type_in("/clear").key(KeyCode::Enter).told(HostEvent::Closed).screen()
    }),
    ("bridge", || carried(80).screen()),
    ("bridge_narrow", || carried(50).screen()),
    ("bridge_no_more", || {
        let mut t = carried(80);
        unmeasured(&mut t).fact(Configured {
            set: ConfigPatch {
                model: Some("openai/gpt-5.1".into()),
                price: Some(config().price),
                ..ConfigPatch::default()
            },
        });
        t.fact(Prompted { text: "Once more".into(), images: Vec::new() })
            .step(2)
            .answered(2, vec![say("Done.")])
            .screen()
    }),
    ("bridge_and_done", || unmeasured(&mut carried(80)).screen()),
    ("a_server_that_says_nothing_of_tokens", || unmeasured(Tape::new(80, 24).working()).screen()),
    ("ctrl_c_once", || running(80).control('c').screen()),
    ("mode_by_a_key", || Tape::new(80, 24).welcome().key(KeyCode::BackTab).screen()),
    ("markdown", || markdown(80, Theme::Dark).screen()),
    ("markdown_narrow", || markdown(40, Theme::Dark).screen()),
    ("markdown_dark", || markdown(60, Theme::Dark).painted()),
    ("markdown_light", || markdown(60, Theme::Light).painted()),
    ("markdown_sixteen_colours", || markdown(60, Theme::Sixteen).painted()),
    ("markdown_without_colour", || markdown(60, Theme::Mono).painted()),
    ("asks_in_light_colours", || {
        let mut t = waiting(60, 30);
        t.state.theme = Theme::Light;
        t.painted()
    }),
    ("wide_and_right_to_left", || {
        let mut t = Tape::new(40, 24);
        t.working()
            .answered(
                1,
                vec![say("日本語の文章はとても長いので折り返されます。\n\n| 名前 | 数 \
                          |\n|---|---|\n| 林檎 | 12 |\n\nשלום עולם and back\n")],
            )
            .screen()
    }),
];

/// Holds T1: reasoning stands apart and before the words (reasoning_then_words; order of text,
/// calls).
/// Holds T3: the menu, found by a few letters (menu_of_commands, menu_by_a_few_letters, help).
/// Holds T5: all of it with its styles, code blocks too, in four themes (markdown_*).
/// Holds T6: user in blue, system in grey, approval in its frame (markdown_dark,
/// asks_in_light_colours).
/// Holds T10: a sign and words while working (one frame of it).
/// Holds A5: steps and choices in the terminal app (running_several_and_a_plan, asks_with_choices).
/// Holds A7: outside: a question says that nothing outside the folder comes back (asks_*).
#[test]
fn every_screen_is_as_it_was_approved() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens");
    let bless = std::env::var_os("DUNNOCK_BLESS").is_some();
    let (mut wrong, mut frames) = (Vec::new(), String::new());
    for (name, scene) in SCENES {
        FRAMES.take();
        let seen = scene();
        let came = json!({ "scene": name, "frames": FRAMES.take() });
        frames.push_str(&format!("{came}\n"));
        assert!(
            seen.chars().all(|c| c == '\n' || !c.is_control()),
            "{name} holds a control character"
        );
        let path = folder.join(format!("{name}.txt"));
        if bless {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &seen).unwrap();
        }
        let held = std::fs::read_to_string(&path).unwrap_or_default();
        if held != seen {
            wrong.push(format!("== {name}: as approved\n{held}\n== as seen now\n{seen}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The web app's reducer is tested with these (web/test/frames.test.ts).
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/frames.jsonl");
    if bless {
        std::fs::write(&shared, &frames).unwrap();
    }
    let held = std::fs::read_to_string(&shared).unwrap_or_default();
    assert!(held == frames, "fixtures/frames.jsonl is stale: DUNNOCK_BLESS=1");
    let mut names: Vec<&str> = SCENES.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SCENES.len(), "a screen is named twice");
    let kept = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(kept, SCENES.len(), "a screen is kept that nobody draws");
    println!("{} screens: {}", names.len(), names.join(", "));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in [40u16, 41, 57, 80, 137] {
        for t in
            [&mut waiting(columns, 24), &mut running(columns), &mut markdown(columns, Theme::Dark)]
        {
            let screen = t.screen();
            for line in screen.lines().filter(|l| !l.contains("live")) {
                let wide = unicode_width::UnicodeWidthStr::width(line);
                assert!(wide <= usize::from(columns), "{columns}: {wide} {line}");
            }
        }
    }
}
