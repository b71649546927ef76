//! `dunnock models`: which models are available, and what a model can do.

use crate::compose;
use crate::config::settings::Value;
use crate::config::{load, paths};
use crate::view::output;
use dunnock_model::{Dialect, Probe, Verdict};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) async fn list(data: Option<PathBuf>, json: bool) -> anyhow::Result<ExitCode> {
    let settings = load::settings(
        paths::workspace(None).ok().as_deref(),
        false,
        load::given(data, Vec::new()),
    )?;
    let client = compose::client(&settings)?;
    let chosen = settings.model.value.clone().unwrap_or_default();
    let mut any = false;
    for provider in client.providers() {
        let name = &provider.name;
        let keyless = provider.key_env.is_some() && provider.key.is_none();
        let far = provider.base_url.starts_with("https:");
        // Query a remote server only if its key is set, so that nothing leaves the machine
        // unexpectedly.
        let asked = match (keyless, far) {
            (true, true) => {
                let env = provider.key_env.as_deref().unwrap_or_default();
                Err(format!("no key: dunnock login {name}, or set {env}"))
            }
            _ => client.models(&provider, Duration::from_secs(if far { 10 } else { 2 })).await,
        };
        match asked {
            Ok(models) => {
                any |= !models.is_empty();
                if !json {
                    output::aside(&format!(
                        "{name}  {}  {} models",
                        provider.address(),
                        models.len()
                    ));
                }
                for model in models {
                    let full = format!("{name}/{model}");
                    match json {
                        true => output::line(
                            &json!({"provider": name, "model": full, "chosen": full == chosen})
                                .to_string(),
                        ),
                        false => output::line(&format!(
                            "{} {}",
                            if full == chosen { "*" } else { " " },
                            output::one_line(&full)
                        )),
                    }
                }
            }
            Err(why) => match json {
                true => output::line(&json!({"provider": name, "error": why}).to_string()),
                // Local servers are often not running. The message has the address, so shorten the
                // reason.
                false if why.contains("cannot be reached") => {
                    let why = if provider.is_local() { "not running" } else { "cannot be reached" };
                    output::aside(&format!("{name}  {}  {why}", provider.address()));
                }
                false => output::aside(&format!(
                    "{name}  {}  {}",
                    provider.address(),
                    output::one_line(&why)
                )),
            },
        }
    }
    if !json {
        output::aside(match (chosen.as_str(), any) {
            ("", true) => {
                "choose one: dunnock login, or for one task dunnock run --model PROVIDER/MODEL \
                 \"...\""
            }
            ("", false) => "no model is available. To set one up: dunnock login",
            _ => "* marks the configured model",
        });
    }
    Ok(if any { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Characters shown of the result of a probe; `--json` has all of it.
const MOST_SAID: usize = 90;

/// `dunnock models check`: tests what a model can do, and saves the result for every session.
pub(crate) async fn check(
    data: Option<PathBuf>,
    model: Option<String>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let flags = model.into_iter().map(|model| ("model", Value::Text(model))).collect();
    let mut settings =
        load::settings(paths::workspace(None).ok().as_deref(), false, load::given(data, flags))?;
    let client = compose::client(&settings)?;
    let model = compose::model(&mut settings, &client).await?;
    if !json {
        output::aside(&format!(
            "checking {model}; this takes a minute or two, longer if the model is slow"
        ));
    }
    let mut tell = |probe: &Probe| {
        if !json {
            let mark = match probe.verdict {
                Verdict::Yes => "yes",
                Verdict::No => "no",
                Verdict::Untried => "-",
            };
            let said = output::one_line(&probe.said);
            let said = match said.char_indices().nth(MOST_SAID) {
                Some((at, _)) => format!("{}...", said.get(..at).unwrap_or_default()),
                None => said.to_string(),
            };
            output::line(&format!(
                "  {:<20} {mark:<4} {said} ({:.1} s)",
                probe.name,
                probe.took.as_secs_f32()
            ));
        }
    };
    let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let checked = match client.check(&model, &today, &mut tell).await {
        Ok(checked) => checked,
        Err(why) => anyhow::bail!("{model} cannot be checked: {why}"),
    };
    let path = client.profiles().put(&checked.profile).map_err(|why| anyhow::anyhow!(why))?;
    let path = path.map_or_else(String::new, |path| path.display().to_string());
    let calls = !checked.probes.iter().any(|p| p.name == "calls" && p.verdict == Verdict::No);
    let end = if calls { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if json {
        let probe = |p: &Probe| {
            let works = match p.verdict {
                Verdict::Yes => Some(true),
                Verdict::No => Some(false),
                Verdict::Untried => None,
            };
            json!({"name": p.name, "works": works, "said": p.said, "ms": p.took.as_millis() as u64})
        };
        let probes: Vec<_> = checked.probes.iter().map(probe).collect();
        output::line(
            &json!({"profile": checked.profile, "probes": probes, "file": path}).to_string(),
        );
        return Ok(end);
    }
    let p = &checked.profile;
    let window = p.window.map_or_else(|| "unknown".into(), |w| format!("{w} tokens"));
    output::line(&format!(
        "\nresult for {model}: wire {}, calls {}{}, edits {}, profile {}, window {window}, {} at \
         a time{}",
        p.wire,
        p.dialect,
        if p.dialect == Dialect::Plan && p.constrained { " (constrained by a schema)" } else { "" },
        p.edit,
        p.profile,
        if p.parallel { "several calls" } else { "one call" },
        if p.reasoning { ", shows its reasoning" } else { "" },
    ));
    for fault in &p.faults {
        output::line(&format!("  ! {fault}"));
    }
    if !calls {
        output::line(
            "  the model answers, but made no tool call in any format, so it cannot do tasks",
        );
    }
    output::aside(&format!("saved in {path}; delete the file to discard the result"));
    Ok(end)
}
