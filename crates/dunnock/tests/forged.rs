//! Nothing in an argument changes what is said of a call that needs approval: not its heading, not
//! its reason, not what a yes grants, not the rule of an "always". The same calls in the terminal,
//! in plain output, as JSON lines and over HTTP; in the browser they are `web/e2e/forged.test.ts`.
//! The table is `fixtures/approvals/forged.json`.

use crate::Home;
use crate::serve::Serve;
use crate::window::Window;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// A call with one value put in, and what must be shown of it.
struct Case {
    tool: String,
    args: String,
    value: String,
    expected: Value,
}

/// What an interface shows of a question, apart from the call itself.
#[derive(Clone)]
struct Shown {
    heading: Vec<String>,
    reasons: Vec<String>,
    access: Vec<String>,
    rule: Vec<String>,
}

impl Shown {
    fn fields(&mut self) -> [(&'static str, &mut Vec<String>); 4] {
        [
            ("heading", &mut self.heading),
            ("reasons", &mut self.reasons),
            ("access", &mut self.access),
            ("rule", &mut self.rule),
        ]
    }

    fn from_json(question: &Value) -> Self {
        Self {
            heading: strings(&question["heading"]),
            reasons: strings(&question["reasons"]),
            access: strings(&question["access"]),
            rule: strings(&question["rule"]),
        }
    }

    /// The fields that are not as the table says.
    fn differences(&self, case: &Case) -> Vec<&'static str> {
        let mut expected = Self::from_json(&case.expected);
        let mut shown = self.clone();
        let pairs = shown.fields().into_iter().zip(expected.fields());
        pairs
            .filter(|((_, shown), (_, expected))| shown != expected)
            .map(|((name, _), _)| name)
            .collect()
    }
}

/// Everything is shown as the table says; and the check can fail: a line of the argument that is
/// planted in any field is found.
fn check(shown: &Shown, case: &Case, what: &str) -> usize {
    assert_eq!(shown.differences(case), [""; 0], "{what}: {} {}", case.tool, case.args);
    let planted = case.value.lines().last().unwrap_or_default().to_owned();
    for n in 0..4 {
        let mut shown = shown.clone();
        let (name, rows) = shown.fields().into_iter().nth(n).unwrap();
        rows.push(planted.clone());
        assert_eq!(
            shown.differences(case),
            [name],
            "{what}: a planted row was not found: {}",
            case.args
        );
    }
    4
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/approvals/forged.json");
    let table: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut cases = Vec::new();
    for value in table["values"].as_array().unwrap() {
        // As it stands inside a JSON string.
        let quoted = value.to_string();
        let inner = &quoted[1..quoted.len() - 1];
        for call in table["calls"].as_array().unwrap() {
            let args = call["args"].to_string().replace('@', inner);
            let (tool, value) =
                (call["tool"].as_str().unwrap().into(), value.as_str().unwrap().into());
            cases.push(Case { tool, args, value, expected: call.clone() });
        }
    }
    cases
}

/// All cases in one answer.
async fn asked(cases: &[Case]) -> (ScriptedServer, Home) {
    let calls: Vec<(&str, &str)> =
        cases.iter().map(|case| (case.tool.as_str(), case.args.as_str())).collect();
    let server = ScriptedServer::start(vec![Say::calls(&calls).into()]).await;
    let home = Home::with(&server);
    (server, home)
}

/// One text, a list of them, or none.
fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The words of a question that came as JSON are those of the table.
fn check_json(question: &Value, case: &Case, what: &str) -> usize {
    assert_eq!(question["yes"], case.expected["yes"], "{what}: {} {}", case.tool, case.args);
    check(&Shown::from_json(question), case, what)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_argument_changes_what_json_lines_and_http_say() {
    let cases = cases();
    assert!(cases.len() >= 40, "{}", cases.len());
    let (_server, home) = asked(&cases).await;
    let ran = home.run(&["run", "--json", "--approve", "ask", "go"]).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    let lines = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let questions: Vec<Value> = lines.filter(|line| line["type"] == "question").collect();
    assert_eq!(questions.len(), cases.len());
    let mut planted: usize = questions
        .iter()
        .zip(&cases)
        .map(|(question, case)| check_json(question, case, "--json"))
        .sum();
    let serve = Serve::start(&home);
    let id = questions[0]["session"].as_str().unwrap();
    let view = serve.api().get(&format!("/api/sessions/{id}"));
    let questions = view["questions"].as_array().unwrap();
    assert_eq!(questions.len(), cases.len());
    planted += questions
        .iter()
        .zip(&cases)
        .map(|(question, case)| check_json(question, case, "HTTP"))
        .sum::<usize>();
    println!(
        "{} arguments, as JSON lines and over HTTP; {planted} planted rows found",
        cases.len()
    );
}

/// The rows that begin with one of our labels, with what follows it.
fn rows(text: &str, label: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix(label))
        .map(|rest| rest.trim_end().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_argument_changes_what_plain_output_says() {
    // One at a time, since many at once are not all shown.
    for case in cases() {
        let (_server, home) = asked(std::slice::from_ref(&case)).await;
        let ran = home.run(&["run", "--approve", "ask", "go"]).await;
        assert_eq!(ran.code, 3, "{}", ran.err);
        let what = format!("{} {}\n{}", case.tool, case.args, ran.err);
        let shown = Shown {
            heading: rows(&ran.err, "? q1  "),
            reasons: rows(&ran.err, "  why: "),
            access: rows(&ran.err, "  grants: "),
            rule: rows(&ran.err, "  always: "),
        };
        check(&shown, &case, &what);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_argument_changes_what_the_terminal_says() {
    let cases = cases();
    let (_server, home) = asked(&cases).await;
    assert_eq!(home.run(&["run", "--approve", "ask", "go"]).await.code, 3);
    let window = Window::shell(&home, 160, 130);
    window.start("open --resume");
    let mut planted = 0;
    for (n, case) in cases.iter().enumerate() {
        let mark = format!("▸ q{}  ", n + 1);
        let began = Instant::now();
        let mut before = String::new();
        // Seen twice: a screen may be captured while it is drawn.
        let screen = loop {
            let screen = window.screen();
            if screen.contains(&mark) && screen.contains('╰') && screen == before {
                break screen;
            }
            before.clone_from(&screen);
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "question {} never came:\n{screen}",
                n + 1
            );
            std::thread::sleep(Duration::from_millis(20));
        };
        let inside: Vec<&str> = screen.lines().skip_while(|line| !line.starts_with("╭ ")).collect();
        let what = format!("{} {}\n{screen}", case.tool, case.args);
        let heading =
            inside[0].trim_start_matches("╭ ").split(" ─").next().unwrap_or_default().to_owned();
        let inside: String = inside
            .iter()
            .filter_map(|l| l.strip_prefix("│ "))
            .map(|l| format!("{}\n", l.trim_end_matches([' ', '│'])))
            .collect();
        let mut shown = Shown {
            heading: vec![heading],
            reasons: rows(&inside, "why      "),
            access: rows(&inside, "grants   "),
            rule: Vec::new(),
        };
        let yes = match case.tool.as_str() {
            "ask_person" => "to 2: choose".to_owned(),
            _ => format!("y {}", case.expected["yes"].as_str().unwrap().to_lowercase()),
        };
        assert!(inside.contains(&yes), "{what}");
        assert_eq!(inside.contains("a always"), case.expected["rule"].is_string(), "{what}");
        if let Some(rule) = case.expected["rule"].as_str() {
            std::thread::sleep(Duration::from_millis(400));
            window.key("a");
            let screen = window.wait_for("Always allow, without asking:");
            let after = screen
                .lines()
                .skip_while(|line| !line.contains("Always allow, without asking:"))
                .nth(1);
            let shows = after.and_then(|row| row.strip_prefix("│ "));
            shown.rule =
                shows.map(|row| row.trim_matches([' ', '│']).to_owned()).into_iter().collect();
            assert_eq!(shown.rule, [rule], "{screen}");
            window.key("Escape");
            // Before the next key, or the terminal takes both for one sequence.
            while window.screen().contains("Always allow, without asking:") {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        planted += check(&shown, case, &what);
        // A key counts a moment after the question was drawn.
        std::thread::sleep(Duration::from_millis(400));
        window.key("Right");
    }
    println!("{} arguments in a real terminal; {planted} planted rows found", cases.len());
}
