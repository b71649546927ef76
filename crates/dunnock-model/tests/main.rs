//! Against real HTTP, on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where it goes wrong"
)]

mod aliases;
mod bridge;
mod conversations;
mod corpus;
mod efforts;
mod fuzz_corpus;
mod hostile;
mod items;
mod providers;
mod requests;
mod slips;
mod troubles;

use dunnock_core::{Request, Transcript};
use dunnock_model::{Environment, ModelClient, PreambleInputs, Prompts, Provider, Timeouts, Wire};
use dunnock_ports::{CancellationToken, DeltaSink, Model as _, ModelRequest, ToolSpec};
use dunnock_proto::*;
use dunnock_testkit::server::ScriptedServer;
use dunnock_testkit::speech;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A provider at that address.
pub fn provider(base_url: &str, key: Option<&str>) -> Provider {
    let key = key.map(|k| k.to_owned().into());
    Provider {
        key_env: Some("SCRIPT_KEY".into()),
        key,
        ..Provider::plain("script", Wire::Chat, base_url)
    }
}

/// Pauses short enough for tests.
pub fn patience() -> Timeouts {
    let ms = Duration::from_millis;
    Timeouts {
        connect: ms(2000),
        idle: ms(400),
        pause: ms(20),
        longest_pause: ms(1500),
        offline: ms(30_000),
        unattended: ms(60_000),
    }
}

pub fn client(provider: Provider) -> ModelClient {
    client_with(provider, vec!["shell".into()])
}

/// A client for models that are offered all that there is.
pub fn client_with_tools(provider: Provider) -> ModelClient {
    let names: BTreeSet<String> = dunnock_model::aliases::our_arguments()
        .iter()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    client_with(provider, names.into_iter().collect())
}

fn client_with(provider: Provider, tools: Vec<String>) -> ModelClient {
    let brief = move |_: &Config, workspace: &str| {
        let spec = |name: &String| ToolSpec {
            tool: Tool::new(name, Class::Command, Recovery::Unknown, Role::Work),
            description: "Runs.".into(),
            schema: r#"{"type":"object"}"#.into(),
        };
        Ok(PreambleInputs {
            environment: Environment {
                os: "linux".into(),
                shell: "bash".into(),
                root: workspace.into(),
                git: true,
                sandbox: Vec::new(),
                machine: false,
                servers: Vec::new(),
            },
            instructions: vec![("AGENTS.md".into(), "be {{ kind }}".into())],
            offers: tools.iter().map(spec).collect(),
            memory: String::new(),
        })
    };
    ModelClient::new(vec![provider], Prompts::default(), Arc::new(brief), patience(), "test")
}

pub fn config() -> Config {
    Config { model: "script/scripted".into(), ..Config::default() }
}

/// The request of the last step of these events.
pub fn request(preamble: Hash, events: &[Event]) -> Request {
    let mut all = events.to_vec();
    let step = Step(1 + all.iter().filter(|e| matches!(e, Event::Answered(_))).count() as u32);
    all.push(
        StepStarted { step, upto: all.len() as u64, preamble, reserved: Reserved::default() }
            .into(),
    );
    Transcript::fold(None, (1..).zip(&all)).request().unwrap()
}

pub fn prompt(text: &str) -> Event {
    Prompted { text: text.into(), images: Vec::new() }.into()
}

/// A picture of one dot.
pub const DOT: &[u8] = b"\x89PNG\r\n\x1a\n one dot";

/// The pictures of a conversation: there is only one.
fn pictures(events: &[Event]) -> BTreeMap<Hash, Arc<[u8]>> {
    let named = events.iter().any(|e| matches!(e, Event::Prompted(p) if !p.images.is_empty()));
    named.then(|| (Hash::of(DOT), Arc::from(DOT))).into_iter().collect()
}

/// The wire of a scripted server, and ours.
pub fn ours(wire: speech::Wire) -> Wire {
    wire.name().parse().unwrap()
}

/// What came of asking, and what was seen live.
pub struct Asked {
    pub answer: Result<Answered, StepFailed>,
    pub live: Vec<Delta>,
}

pub async fn ask_with(client: &ModelClient, events: &[Event], halt: CancellationToken) -> Asked {
    ask_as(client, &config(), events, halt, Seen::default()).await
}

/// The same while nobody watches.
pub async fn ask_patiently(server: &ScriptedServer) -> Asked {
    let client = client(provider(&server.base_url(), None));
    let config = Config { unattended: true, ..config() };
    let (events, halt) = (&[prompt("hi")], CancellationToken::default());
    ask_as(&client, &config, events, halt, Seen::default()).await
}

/// The deltas that were shown so far.
pub type Seen = Arc<Mutex<Vec<Delta>>>;

pub async fn ask_as(
    client: &ModelClient,
    config: &Config,
    events: &[Event],
    halt: CancellationToken,
    seen: Seen,
) -> Asked {
    let (preamble, blob) =
        client.render_preamble(config, "/w", &dunnock_ports::HostInfo::default()).await.unwrap();
    let log = seen.clone();
    let live: DeltaSink = Arc::new(move |delta| log.lock().unwrap().push(delta));
    let asking = ModelRequest {
        session: SessionId::from_random([0; 16]),
        preamble: blob.bytes,
        request: request(preamble.hash, events),
        pictures: pictures(events),
        patient: config.unattended,
        time_left: None,
    };
    let answer = client.ask(asking, live, halt).await.map(|(answered, _)| answered);
    let live = seen.lock().unwrap().clone();
    Asked { answer, live }
}

pub async fn ask(server: &ScriptedServer) -> Asked {
    ask_with(
        &client(provider(&server.base_url(), None)),
        &[prompt("hi")],
        CancellationToken::default(),
    )
    .await
}
