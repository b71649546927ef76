//! Against real HTTP, on loopback.

#![expect(clippy::unwrap_used, missing_docs, reason = "a test ends where it goes wrong")]

mod hostile;
mod requests;
mod troubles;

use dunnock_core::ports::{Halt, Live, Model as _, Offer};
use dunnock_core::{Request, Transcript};
use dunnock_model::{Briefing, Patience, Prompts, Provider, Speaker, Surroundings, Wire};
use dunnock_proto::*;
use dunnock_testkit::server::ScriptedServer;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A provider at that address.
pub fn provider(base_url: &str, key: Option<&str>) -> Provider {
    let (name, key_env) = ("script".to_owned(), Some("SCRIPT_KEY".to_owned()));
    Provider { name, wire: Wire::Chat, base_url: base_url.into(), key_env, key: key.map(|k| k.to_owned().into()) }
}

/// Pauses short enough for tests.
pub fn patience() -> Patience {
    let ms = Duration::from_millis;
    Patience { connect: ms(2000), idle: ms(400), pause: ms(20), longest_pause: ms(1500) }
}

pub fn speaker(provider: Provider) -> Speaker {
    let brief = |_: &Config, workspace: &str| {
        let tool = Tool { name: "shell".into(), class: Class::Command, recovery: Recovery::Unknown, role: Role::Work };
        let schema = r#"{"type":"object","properties":{"command":{"type":"string"}}}"#.to_owned();
        Ok(Briefing {
            surroundings: Surroundings { os: "linux".into(), shell: "bash".into(), root: workspace.into(), git: true },
            instructions: vec![("AGENTS.md".into(), "be {{ kind }}".into())],
            offers: vec![Offer { tool, description: "Runs.".into(), schema }],
        })
    };
    Speaker::new(vec![provider], Prompts::default(), Arc::new(brief), patience(), "test")
}

pub fn config() -> Config {
    Config { model: "script/scripted".into(), ..Config::default() }
}

/// The request of the last turn of these facts.
pub fn request(head: Hash, events: &[Event]) -> Request {
    let mut all = events.to_vec();
    let turn = Turn(1 + all.iter().filter(|e| matches!(e, Event::Answered(_))).count() as u32);
    all.push(TurnStarted { turn, upto: all.len() as u64, head, reserved: Reserved::default() }.into());
    Transcript::fold(None, (1..).zip(&all)).request().unwrap()
}

pub fn prompt(text: &str) -> Event {
    Prompted { text: text.into(), images: Vec::new() }.into()
}

/// What came of asking, and what was seen live.
pub struct Asked {
    pub answer: Result<Answered, TurnFailed>,
    pub live: Vec<Delta>,
}

pub async fn ask_with(speaker: &Speaker, events: &[Event], halt: Halt) -> Asked {
    let (head, blob) = speaker.head(&config(), "/w").await.unwrap();
    let seen: Arc<Mutex<Vec<Delta>>> = Arc::default();
    let log = seen.clone();
    let live: Live = Arc::new(move |delta| log.lock().unwrap().push(delta));
    let answer = speaker.ask(blob.bytes, request(head.hash, events), live, halt).await.map(|(answered, _)| answered);
    let live = seen.lock().unwrap().clone();
    Asked { answer, live }
}

pub async fn ask(server: &ScriptedServer) -> Asked {
    ask_with(&speaker(provider(&server.base_url(), None)), &[prompt("hi")], Halt::default()).await
}
