//! The scenarios that are killed at every place, and what they must come to.

use crate::model::{Say, ScriptedModel};
use dunnock_proto::{Config, Mode};
use std::sync::Arc;

/// Their names.
pub const NAMES: [&str; 3] = ["plain", "parallel", "question"];

/// What to make and what to say in a scenario.
pub struct Scenario {
    /// The settings of its session.
    pub config: Config,
    /// Its prompts, in order.
    pub prompts: Vec<&'static str>,
    /// Its script.
    pub script: Vec<Say>,
}

impl Scenario {
    /// The scenario of that name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let base =
            Config { checkpoints: true, verify: vec!["true".into()], ..crate::worlds::config() };
        let big = r#"{"say":"a large one","kb":1100}"#;
        match name {
            "plain" => Self {
                config: base,
                prompts: vec!["do the plain thing", "and then one more"],
                script: vec![
                    Say::calls(&[("append", r#"{"say":"one"}"#)]),
                    Say::calls(&[("view", big)]),
                    Say::text("the first is done"),
                    Say::calls(&[("edit", r#"{"say":"two"}"#)]),
                    Say::text("all is done"),
                ],
            },
            "parallel" => Self {
                config: base,
                prompts: vec!["do three things at once"],
                script: vec![
                    Say::calls(&[
                        ("fetch", r#"{"say":"a"}"#),
                        ("fetch", r#"{"say":"b","ms":60}"#),
                        ("fetch", r#"{"say":"c","kb":1}"#),
                        ("append", r#"{"say":"d"}"#),
                    ]),
                    Say::calls(&[("view", big), ("update_plan", r#"{"steps":[{"text":"rest"}]}"#)]),
                    Say::text("all three are done"),
                ],
            },
            "question" => Self {
                config: Config { mode: Mode::Ask, attended: true, ..base },
                prompts: vec!["ask me first"],
                script: vec![
                    Say::calls(&[
                        ("append", r#"{"say":"asked"}"#),
                        ("ask_person", r#"{"question":"blue?"}"#),
                    ]),
                    Say::calls(&[("view", big)]),
                    Say::text("you were asked"),
                ],
            },
            "slow" => Self {
                config: crate::worlds::config(),
                prompts: vec!["do three things at once"],
                script: vec![
                    Say::calls(&[
                        ("fetch", r#"{"say":"a"}"#),
                        ("fetch", r#"{"say":"b","ms":5000}"#),
                        ("fetch", r#"{"say":"c"}"#),
                        ("append", r#"{"say":"d"}"#),
                    ]),
                    Say::text("done"),
                ],
            },
            "talk" => Self {
                config: crate::worlds::config(),
                prompts: vec!["talk to me"],
                script: vec![Say::text(&"word ".repeat(60)).after(20)],
            },
            // `blobs-N`: N calls with more than a megabyte of output each.
            other if other.starts_with("blobs-") => {
                let calls: usize = other["blobs-".len()..].parse().unwrap();
                let args: Vec<String> =
                    (0..calls).map(|n| format!(r#"{{"say":"{n}","kb":{}}}"#, 1100 + n)).collect();
                let script = args.iter().map(|a| Say::calls(&[("view", a.as_str())])).collect();
                Self { config: crate::worlds::config(), prompts: vec!["go"], script }
            }
            // `steps-N`: N calls, one after the other, and nothing beside them.
            other => {
                let steps: usize = other
                    .strip_prefix("steps-")
                    .and_then(|n| n.parse().ok())
                    .unwrap_or_else(|| panic!("there is no scenario {other}"));
                let mut script = vec![Say::calls(&[("append", r#"{"say":"one more"}"#)]); steps];
                script.push(Say::text("that was it"));
                let config = Config { max_steps: u32::MAX, ..crate::worlds::config() };
                Self { config, prompts: vec!["go"], script }
            }
        }
    }

    /// Its model.
    #[must_use]
    pub fn model(&self) -> Arc<ScriptedModel> {
        ScriptedModel::new(self.script.clone())
    }
}
