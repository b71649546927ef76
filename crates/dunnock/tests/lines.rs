//! `--json`: valid against its schema, and the log can be rebuilt from it.

use crate::{Home, runs};
use dunnock_testkit::fixture;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, ScriptedServer, Served};
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn the_schema_is_committed() {
    fixture::check("docs/reference/run-json.schema.json", &dunnock::json_schema());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_fits_the_schema_and_the_log_is_rebuilt_from_them() {
    let schema: Value = serde_json::from_str(&dunnock::json_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let ask = Say::calls(&[("ask_person", r#"{"question":"Which?","choices":["a"]}"#)]);
    let slow = Served::wrong(
        Say { reasoning: "hm ".into(), ..Say::text("one two") },
        Fault::Status(503, None),
    )
    .times(1);
    type Run<'a> = (&'a str, Vec<Served>, &'a [&'a str], i32, &'a str);
    let runs: [Run<'_>; 4] = [
        ("work", runs::work(), &["--approve", "all"], 0, "done"),
        ("question", vec![ask.into()], &[], 3, "waiting"),
        ("deltas", vec![slow], &["--verify", "true"], 0, "done"),
        (
            "failure",
            vec![Served::wrong(Say::text("x"), Fault::Says(400, "{}".into()))],
            &[],
            1,
            "failed",
        ),
    ];
    let mut types = std::collections::BTreeSet::new();
    for (what, script, flags, code, why) in runs {
        let server = ScriptedServer::start(script).await;
        let home = Home::with(&server);
        home.put("a.txt", "one\n");
        let args: Vec<&str> =
            ["run", "--json"].iter().chain(flags).copied().chain(["go"]).collect();
        let ran = home.run(&args).await;
        assert_eq!(ran.code, code, "{what}: {}", ran.err);
        let lines = lines(&ran.out);
        for line in &lines {
            assert!(
                validator.is_valid(line),
                "{what}: {line}\n{:?}",
                validator.iter_errors(line).map(|e| e.to_string()).collect::<Vec<_>>()
            );
            types.insert(line["type"].as_str().unwrap().to_owned());
        }
        assert_eq!(lines[0]["type"], "session", "{what}");
        let last = lines.last().unwrap();
        assert_eq!(
            (last["type"].as_str(), last["why"].as_str(), last["exit"].as_i64()),
            (Some("ended"), Some(why), Some(code.into())),
            "{what}"
        );
        // Rebuilt: the text of each record as it stands in its line, against the log as it is
        // stored.
        let rebuilt: Vec<&str> = ran
            .out
            .lines()
            .filter(|l| l.contains(r#""type":"event""#))
            .map(|l| l.split_once(r#""record":"#).unwrap().1.strip_suffix('}').unwrap())
            .collect();
        let id = last["session"].as_str().unwrap();
        let stored = home.run(&["sessions", "show", id, "--json"]).await;
        assert_eq!(rebuilt.join("\n"), stored.out.trim_end(), "{what}");
        assert!(rebuilt.len() > 5);
    }
    let all = ["delta", "ended", "event", "question", "session", "state"];
    assert_eq!(types.into_iter().collect::<Vec<_>>(), all, "every type was seen");
    for bad in [
        r#"{"v":1,"session":"x","type":"event"}"#,
        r#"{"v":1,"session":"x","type":"nonsense"}"#,
        r#"{"type":"state","state":"done"}"#,
    ] {
        assert!(!validator.is_valid(&serde_json::from_str(bad).unwrap()), "{bad} must not fit");
    }
}
