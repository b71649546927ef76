//! `dunnock models list`: who can be asked, and for what.

use crate::{place, run, say, work};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) async fn list(data: Option<PathBuf>, json: bool) -> anyhow::Result<ExitCode> {
    let settings = place::settings(place::workspace(None).ok().as_deref(), false, run::given(data, Vec::new()))?;
    let speaker = work::speaker(&settings)?;
    let chosen = settings.text("model").unwrap_or_default().to_owned();
    let mut any = false;
    for provider in speaker.providers() {
        let name = &provider.name;
        let keyless = provider.key_env.is_some() && provider.key.is_none();
        let far = provider.base_url.starts_with("https:");
        // A server elsewhere is asked only with its key: nothing leaves the machine unasked.
        let asked = match (keyless, far) {
            (true, true) => Err(format!("no key: set {}", provider.key_env.as_deref().unwrap_or_default())),
            _ => speaker.models(provider, Duration::from_secs(if far { 10 } else { 2 })).await,
        };
        match asked {
            Ok(models) => {
                any |= !models.is_empty();
                if !json {
                    say::aside(&format!("{name}  {}  {} models", provider.base_url, models.len()));
                }
                for model in models {
                    let full = format!("{name}/{model}");
                    match json {
                        true => {
                            say::line(&json!({"provider": name, "model": full, "chosen": full == chosen}).to_string())
                        }
                        false => {
                            say::line(&format!("{} {}", if full == chosen { "*" } else { " " }, say::one_line(&full)))
                        }
                    }
                }
            }
            Err(why) => match json {
                true => say::line(&json!({"provider": name, "error": why}).to_string()),
                false => say::aside(&format!("{name}  {}  {}", provider.base_url, say::one_line(&why))),
            },
        }
    }
    if !json {
        say::aside(match (chosen.as_str(), any) {
            ("", true) => {
                "choose one: dunnock run --model PROVIDER/MODEL \"...\", or model = \"PROVIDER/MODEL\" in the configuration"
            }
            ("", false) => "none can be used. Set OPENAI_API_KEY, or start a local server",
            _ => "* is the one that is configured",
        });
    }
    Ok(if any { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
