//! Every provider of the table, against a server that looks at its address, headers and body.

use crate::{Asked, ask_as, client, prompt};
use dunnock_model::{Auth, KNOWN, Known, Provider};
use dunnock_ports::CancellationToken;
use dunnock_proto::Config;
use dunnock_testkit::server::ScriptedServer;
use serde_json::Value;

/// Where each of them is, and how it wants the key: (name, address, header of the key).
const EXPECT: &[(&str, &str, &str)] = &[
    ("azure", "https://me.openai.azure.com/openai/v1/responses", "api-key"),
    ("openai", "https://api.openai.com/v1/responses", "authorization"),
    ("anthropic", "https://api.anthropic.com/v1/messages", "x-api-key"),
    (
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
        "authorization",
    ),
    ("deepseek", "https://api.deepseek.com/v1/chat/completions", "authorization"),
    ("mistral", "https://api.mistral.ai/v1/chat/completions", "authorization"),
    ("openrouter", "https://openrouter.ai/api/v1/chat/completions", "authorization"),
    ("ollama", "http://127.0.0.1:11434/api/chat", ""),
    ("llamacpp", "http://127.0.0.1:8080/v1/chat/completions", ""),
    ("lmstudio", "http://127.0.0.1:1234/v1/chat/completions", ""),
    ("vllm", "http://127.0.0.1:8000/v1/chat/completions", ""),
];

const KEY: &str = "canary-0123456789";

fn env(name: &str) -> Option<String> {
    (name == "AZURE_OPENAI_ENDPOINT").then(|| "https://me.openai.azure.com/".to_owned())
}

fn provider(known: &Known) -> Provider {
    let base_url = Known::filled(known.base_url, &env).unwrap();
    Provider {
        key_env: known.key_env.map(str::to_owned),
        key: known.key_env.map(|_| KEY.to_owned().into()),
        auth: known.auth,
        max_output: known.max_output,
        quirks: known.quirks,
        ..Provider::plain(known.name, known.wire, &base_url)
    }
}

/// What each must have in its body, and must not.
fn body_of(name: &str, body: &Value) {
    let wants: &[(&str, &str)] = match name {
        "azure" | "openai" => &[
            ("/store", "false"),
            ("/include/0", "\"reasoning.encrypted_content\""),
            ("/stream", "true"),
        ],
        "anthropic" => &[
            ("/max_tokens", "32000"),
            ("/system/0/cache_control/type", "\"ephemeral\""),
            ("/stream", "true"),
        ],
        "mistral" => &[("/stream", "true"), ("/stream_options", "null")],
        "ollama" => &[("/options/num_ctx", "32768"), ("/truncate", "false")],
        _ => &[
            ("/stream", "true"),
            ("/stream_options/include_usage", "true"),
            ("/messages/0/role", "\"system\""),
        ],
    };
    for (pointer, value) in wants {
        let found = body.pointer(pointer).map_or_else(|| "null".to_owned(), ToString::to_string);
        assert_eq!(found, *value, "{name}: {pointer} in {body}");
    }
}

/// Holds W8: OpenAI, Anthropic, Ollama, llama.cpp, LM Studio, vLLM: address, header of the key,
/// body.
#[tokio::test(flavor = "multi_thread")]
async fn every_provider_is_asked_at_its_address_with_its_headers() {
    assert_eq!(EXPECT.len(), KNOWN.len(), "each provider has a line here");
    for known in KNOWN {
        let (_, address, header) = EXPECT.iter().find(|(name, ..)| *name == known.name).unwrap();
        for wire in [known.wire, dunnock_model::Wire::Chat] {
            // Azure has two wires; of the others only their own counts.
            if wire != known.wire && known.name != "azure" {
                continue;
            }
            let server = ScriptedServer::start(vec![]).await;
            let mut one = Provider { wire, ..provider(known) };
            // Everything is as in the table, but the machine.
            let (scheme, rest) = one.base_url.split_once("://").unwrap();
            let host = rest.split('/').next().unwrap();
            let machine = format!("{scheme}://{host}");
            one.base_url = one.base_url.replacen(&machine, &server.root(), 1);
            let config = Config { model: format!("{}/scripted", known.name), ..Config::default() };
            let Asked { answer, .. } = ask_as(
                &client(one),
                &config,
                &[prompt("hi")],
                CancellationToken::default(),
                crate::Seen::default(),
            )
            .await;
            answer.unwrap_or_else(|e| panic!("{}: {e:?}", known.name));
            let asked = server.asked();
            let got = asked.last().unwrap();
            let expect = if wire == known.wire {
                (*address).to_owned()
            } else {
                address.replace("/responses", "/chat/completions")
            };
            assert_eq!(format!("{machine}{}", got.path), expect, "{}", known.name);
            let shown: Vec<&str> = got
                .headers
                .iter()
                .filter(|(_, v)| v.contains(KEY))
                .map(|(k, _)| k.as_str())
                .collect();
            let wanted: Vec<&str> = if header.is_empty() { Vec::new() } else { vec![header] };
            assert_eq!(shown, wanted, "{}: the key is in one header", known.name);
            if known.auth == Auth::Bearer && !header.is_empty() {
                assert_eq!(got.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
            }
            assert_eq!(got.header("anthropic-version").is_some(), known.name == "anthropic");
            assert_eq!(got.header("content-type"), Some("application/json"));
            let body: Value = serde_json::from_slice(&got.body).unwrap();
            assert!(!body.to_string().contains(KEY), "{}: the key is in the body", known.name);
            assert_eq!(body["model"], "scripted");
            if wire == known.wire {
                body_of(known.name, &body);
            }
            println!(
                "{}: POST {expect}{}",
                known.name,
                if header.is_empty() { String::new() } else { format!(", key in {header}") }
            );
        }
    }
}

#[test]
fn a_variable_that_is_not_set_gives_no_address() {
    assert_eq!(Known::filled("{NO_SUCH}/openai/v1", &env), None);
    assert_eq!(
        Known::filled("{AZURE_OPENAI_ENDPOINT}/x", &env).unwrap(),
        "https://me.openai.azure.com/x"
    );
    assert_eq!(Known::filled("http://plain", &env).unwrap(), "http://plain");
}
