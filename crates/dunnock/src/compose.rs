//! Chooses the adapters (log, model, tools) and builds the configuration of a session.

use crate::config::settings::Settings;
use crate::config::{paths, rules, sandbox_settings};
use crate::files;
use crate::view::exit::usage;
use crate::view::output;
use anyhow::bail;
use dunnock_engine::{FileLocks, Ports, SystemClock};
use dunnock_model::{
    BRIDGE_MODEL, Environment, KNOWN, Known, ModelClient, PreambleInputs, Profiles, Prompts,
    Timeouts,
};
use dunnock_ports::{Store, ToolSpec};
use dunnock_proto::{Config, ConfigPatch, Isolation, Sandbox};
#[cfg(unix)]
use dunnock_tools::Bounds;
use dunnock_tools::{CheckpointStore, Limits, SandboxSupport, Shell, Toolbox, instructions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The ports, and those adapters that commands need by their concrete type.
#[derive(Clone)]
pub(crate) struct Composed {
    pub(crate) ports: Ports,
    pub(crate) client: Arc<ModelClient>,
    pub(crate) checkpoints: Option<Arc<CheckpointStore>>,
    toolbox: Arc<Toolbox>,
    data: PathBuf,
    /// The folder for sockets.
    pub(crate) runtime: PathBuf,
}

pub(crate) fn client(settings: &Settings) -> anyhow::Result<ModelClient> {
    speaker_with(settings, dunnock_tools::offers, |prompts| prompts)
}

/// A model client with these tools and this selection of prompts.
pub(crate) fn speaker_with(
    settings: &Settings,
    offers: fn() -> Vec<ToolSpec>,
    which: fn(Prompts) -> Prompts,
) -> anyhow::Result<ModelClient> {
    let (providers, unusable) = settings.providers(&paths::text_var);
    let prompts = paths::config_dir()
        .map_or_else(|_| Prompts::default(), |dir| Prompts::replaced_in(dir.join("prompts")));
    let shell = shell(settings);
    let brief = move |config: &Config, workspace: &str| {
        let root = Path::new(workspace);
        Ok(PreambleInputs {
            environment: Environment {
                os: format!("{} ({})", std::env::consts::OS, std::env::consts::ARCH),
                shell: shell.program().into(),
                root: workspace.into(),
                git: root.ancestors().any(|dir| dir.join(".git").exists()),
            },
            instructions: instructions::find(root),
            offers: offers(),
            memory: config
                .planner
                .as_ref()
                .map(|planner| planner.memory.clone())
                .unwrap_or_default(),
        })
    };
    let idle = Duration::from_secs(settings.count("idle_timeout").unwrap_or(300));
    let patience = Timeouts { idle, ..Timeouts::default() };
    let profiles = Profiles::kept_in(paths::data_dir(settings)?.join("models"));
    let client = ModelClient::new(providers, which(prompts), Arc::new(brief), patience, crate::APP);
    Ok(client.without(unusable).following(profiles).listing(Arc::new(files::files)))
}

fn shell(settings: &Settings) -> Shell {
    match settings.text("shell") {
        Some("bash") => Shell::Bash,
        Some("pwsh") => Shell::Pwsh,
        Some("powershell") => Shell::Powershell,
        _ => Shell::Auto,
    }
}

/// Opens everything.
pub(crate) async fn open(settings: &Settings, output: Option<&Path>) -> anyhow::Result<Composed> {
    let data = paths::data_dir(settings)?;
    let log = Arc::new(paths::open(&data).await?);
    make(settings, output, data, log)
}

fn make(
    settings: &Settings,
    output: Option<&Path>,
    data: PathBuf,
    log: Arc<dyn Store>,
) -> anyhow::Result<Composed> {
    let client = Arc::new(client(settings)?);
    let count = |key: &str, or: u64| {
        usize::try_from(settings.count(key).unwrap_or(or)).unwrap_or(usize::MAX)
    };
    let limits = Limits {
        shell: shell(settings),
        output_lines: count("output_lines", 200),
        output_bytes: count("output_bytes", 10_240),
        command: Duration::from_secs(settings.count("command_timeout").unwrap_or(120)),
        verify: Duration::from_secs(settings.count("verify_timeout").unwrap_or(600)),
        processes: settings.count("command_processes").unwrap_or(1_000),
        spool: data.join("spool"),
        journals: data.join("edits"),
        checks: checks(settings)?,
        denied: sandbox_settings::denied(settings)?,
        ..Limits::default()
    };
    let limits = match settings.count("command_memory_mb") {
        Some(mb) => Limits { memory: mb << 20, ..limits },
        None => limits,
    };
    let toolbox = Arc::new(toolbox(settings, limits, &data).reading(log.clone()));
    let checkpoints = checkpoints(settings, &data, output);
    let runtime = paths::runtime_dir(&data);
    let ports = Ports {
        log,
        model: client.clone(),
        tools: toolbox.clone(),
        files: checkpoints.clone().map(|checkpoints| checkpoints as Arc<dyn dunnock_ports::Files>),
        checkpoints: checkpoints
            .clone()
            .map(|checkpoints| checkpoints as Arc<dyn dunnock_ports::Checkpoints>),
        clock: Arc::new(SystemClock),
        ownership: Arc::new(FileLocks::new(data.join("locks"), runtime.clone(), crate::APP)),
        locks: data.join("locks"),
        level: Isolation::D, // until `confine` probes it
        app: crate::APP.into(),
        day_budget: settings.budget_day(),
    };
    settings.notes.iter().for_each(|note| output::note(note));
    Ok(Composed { ports, client, checkpoints, toolbox, data, runtime })
}

/// Commands to run after an edit, by file extension.
fn checks(settings: &Settings) -> anyhow::Result<BTreeMap<String, String>> {
    let mut checks = BTreeMap::new();
    for text in settings.list("check") {
        let Some((endings, command)) =
            text.split_once(':').filter(|(_, command)| !command.trim().is_empty())
        else {
            return Err(usage(format!(
                "check: {text:?} is not of the form \"rs: cargo check -q\""
            )));
        };
        for ending in endings.split(',') {
            checks.insert(
                ending.trim().trim_start_matches("*.").to_owned(),
                command.trim().to_owned(),
            );
        }
    }
    Ok(checks)
}

fn toolbox(settings: &Settings, limits: Limits, data: &Path) -> Toolbox {
    // The launcher is this running program, even if its file has been replaced meanwhile.
    let toolbox = Toolbox::new(limits, Path::new("/proc/self/exe"), &[dunnock_sandbox::LAUNCH]);
    #[cfg(target_os = "linux")]
    return toolbox.boxed(sandbox_settings::layout(settings, data));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (settings, data);
        toolbox
    }
}

/// Probes which sandbox level is available here.
pub(crate) fn confined(settings: &Settings, data: &Path) -> SandboxSupport {
    probed(&toolbox(settings, Limits::default(), data), settings, data)
}

fn probed(toolbox: &Toolbox, settings: &Settings, data: &Path) -> SandboxSupport {
    // An ordinary folder, created for the probe.
    let folder = data.join("boxes/probe");
    let made = paths::make_private(&folder).and_then(|()| folder.canonicalize());
    match made {
        Ok(folder) => toolbox.probe(&folder, sandbox_settings::best(settings)),
        Err(error) => {
            SandboxSupport { level: Isolation::D, why: vec![(Isolation::A, error.to_string())] }
        }
    }
}

impl Composed {
    /// The same log and sandbox level, with the settings of another folder.
    pub(crate) fn beside(&self, settings: &Settings) -> anyhow::Result<Self> {
        let mut work = make(settings, None, self.data.clone(), self.ports.log.clone())?;
        work.ports.level = self.ports.level;
        Ok(work)
    }

    /// Probes the sandbox level. Call it before a session runs commands.
    pub(crate) fn confine(&mut self, settings: &Settings, sandbox: Sandbox) -> &mut Self {
        if sandbox != Sandbox::Off {
            self.ports.level = probed(&self.toolbox, settings, &self.data).level;
        }
        self
    }
}

/// The checkpoint store, on systems that support it.
#[cfg(unix)]
pub(crate) fn checkpoints(
    settings: &Settings,
    data: &Path,
    output: Option<&Path>,
) -> Option<Arc<CheckpointStore>> {
    let bytes = settings.count("checkpoint_mb").unwrap_or(2048) << 20;
    let age = Duration::from_secs(settings.count("checkpoint_days").unwrap_or(30) * 86_400);
    // Files that we write ourselves do not count as changes to the user's files.
    let own = paths::own_files(data, output);
    Some(Arc::new(CheckpointStore::new(data.join("checkpoints"), own, Bounds { bytes, age })))
}

#[cfg(not(unix))]
pub(crate) fn checkpoints(
    _: &Settings,
    _: &Path,
    _: Option<&Path>,
) -> Option<Arc<CheckpointStore>> {
    None
}

/// The configuration of a new session.
pub(crate) fn config(
    settings: &Settings,
    client: &ModelClient,
    model: String,
    attended: bool,
) -> anyhow::Result<Config> {
    let rules = rules::load()?;
    let default = Config::default();
    let number =
        |key: &str, or: u32| settings.count(key).and_then(|n| u32::try_from(n).ok()).unwrap_or(or);
    Ok(Config {
        price: settings.price(&model).or_else(|| client.price(&model)),
        baseline: settings.text("baseline") != Some("off"),
        model,
        profile: settings.text("profile").unwrap_or_default().to_owned(),
        mode: settings.mode(),
        sandbox: settings.sandbox(),
        attended,
        max_steps: number("max_steps", default.max_steps),
        verify: settings.list("verify"),
        verify_tries: number("verify_tries", default.verify_tries),
        budget: settings.budget(),
        window: settings.count("window"),
        checkpoints: settings.text("checkpoints") != Some("off"),
        allow: rules.allow,
        deny: rules.deny,
        ..default
    })
}

/// Changes to an existing session: from flags, and from the user's rules since it last ran.
pub(crate) fn patch(
    settings: &Settings,
    client: &ModelClient,
    now: &Config,
    attended: Option<bool>,
) -> anyhow::Result<Option<ConfigPatch>> {
    let model = if settings.flagged("model") {
        settings.text("model").unwrap_or_default()
    } else {
        &now.model
    };
    let whole = config(settings, client, model.to_owned(), false)?;
    let patch = ConfigPatch {
        // A configured price applies at once; a built-in price stays as it was when the model was
        // chosen.
        price: (settings.flagged("model")
            || settings.price(model).is_some()
            || now.price.is_none())
        .then_some(whole.price),
        model: settings.flagged("model").then_some(whole.model),
        profile: settings.flagged("profile").then_some(whole.profile),
        // The user may set it because a request did not fit, so it applies from now on.
        window: (whole.window.is_some() && whole.window != now.window).then_some(whole.window),
        mode: settings.flagged("approve").then_some(whole.mode),
        sandbox: settings.flagged("sandbox").then_some(whole.sandbox),
        max_steps: settings.flagged("max_steps").then_some(whole.max_steps),
        verify: settings.flagged("verify").then_some(whole.verify),
        budget: settings.flagged("budget").then_some(whole.budget),
        allow: (now.allow != whole.allow).then_some(whole.allow),
        deny: (now.deny != whole.deny).then_some(whole.deny),
        attended,
        ..ConfigPatch::default()
    };
    Ok((now.with(&patch) != *now).then_some(patch))
}

/// Refuses a required sandbox level or budget that cannot be enforced, before anything starts.
pub(crate) fn keepable(
    config: &Config,
    have: Isolation,
    day_budget: Option<u64>,
) -> anyhow::Result<()> {
    if let Sandbox::Require(level) = config.sandbox
        && have > level
    {
        bail!(
            "sandbox level {level:?} is required, but only level {have:?} is available here. \
             \"dunnock sandbox\" shows why, and how to reach a better level; --sandbox auto uses \
             the best available"
        );
    }
    if (config.budget.micros.is_some() || day_budget.is_some()) && config.price.is_none() {
        let model = &config.model;
        return Err(usage(format!(
            "the price of {model} is unknown, so a money budget cannot be enforced. Use a budget \
             of tokens or time (--budget 200ktok), or set the price in the configuration: price = \
             [\"{model}: 1.25 in, 0.125 cached, 10 out\"], in US dollars per million tokens"
        )));
    }
    Ok(())
}

/// The configured model, or the only one that can be found.
pub(crate) async fn model(settings: &mut Settings, client: &ModelClient) -> anyhow::Result<String> {
    if let Some(model) = settings.text("model") {
        if model == BRIDGE_MODEL {
            return Err(usage(
                "to work with any chat by copy and paste, use: dunnock bridge new \"...\"",
            ));
        }
        client.knows(model).map_err(usage)?;
        return Ok(model.to_owned());
    }
    if let Some(model) = model_by_key(settings) {
        return Ok(model);
    }
    let found = local_models(client).await;
    match found.as_slice() {
        [one] => {
            output::note(&format!("using {one}, the only model found on this machine"));
            settings.found("model", one, "found on this machine");
            Ok(one.clone())
        }
        [] => Err(usage(
            "no model is configured. Set OPENAI_API_KEY or ANTHROPIC_API_KEY, or start a local \
             server (Ollama, llama.cpp, LM Studio, vLLM), or set model = \"provider/model\" in \
             the configuration; \"dunnock models list\" shows the choices",
        )),
        several => {
            let shown: Vec<&str> = several.iter().take(10).map(String::as_str).collect();
            Err(usage(format!(
                "no model is configured, and there are several on this machine: {}. Choose one: \
                 dunnock run --model {} \"...\"",
                shown.join(", "),
                shown.first().copied().unwrap_or_default()
            )))
        }
    }
}

/// The default model of the first provider whose key is set.
pub(crate) fn model_by_key(settings: &mut Settings) -> Option<String> {
    let keyed = |env: &str| paths::text_var(env).is_some_and(|key| !key.is_empty());
    let (known, env, default) = KNOWN
        .iter()
        .filter_map(|known| {
            let model = Known::filled(known.default_model?, &paths::text_var)?;
            Known::filled(known.base_url, &paths::text_var)?;
            Some((known, known.key_env?, model))
        })
        .find(|(_, env, _)| keyed(env))?;
    let model = format!("{}/{default}", known.name);
    settings.found("model", &model, &format!("because {env} is set"));
    Some(model)
}

/// Models of servers on this machine, queried over loopback.
pub(crate) async fn local_models(client: &ModelClient) -> Vec<String> {
    let mut found = Vec::new();
    for provider in client.providers().iter().filter(|p| p.is_local()) {
        if let Ok(models) = client.models(provider, Duration::from_millis(400)).await {
            found.extend(models.iter().map(|m| format!("{}/{m}", provider.name)));
        }
    }
    found
}
