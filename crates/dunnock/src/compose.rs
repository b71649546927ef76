//! Chooses the adapters (log, model, tools) and builds the configuration of a session.

use crate::config::keys_table::Background;
use crate::config::settings::Settings;
use crate::config::{paths, rules, sandbox_settings};
use crate::files;
use crate::own_programs::OwnPrograms;
use crate::view::exit::usage;
use crate::view::output;
use anyhow::bail;
use dunnock_core::State;
use dunnock_engine::Ports;
use dunnock_model::{
    BRIDGE_MODEL, KNOWN, KeySource, Known, ModelClient, Profiles, Prompts, Provider, Timeouts,
};
use dunnock_ports::{Store, ToolSpec};
use dunnock_proto::{
    Config, ConfigPatch, Effort, FileAccess, HostRule, HostSet, Isolation, Mode, Sandbox,
};
use dunnock_tools::{CheckpointStore, Limits, SandboxSupport, Toolbox};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The ports and adapters, and the folders that commands need.
#[derive(Clone)]
pub(crate) struct Composed {
    pub(crate) ports: Ports,
    pub(crate) client: Arc<ModelClient>,
    pub(crate) checkpoints: Option<Arc<CheckpointStore>>,
    toolbox: Arc<Toolbox>,
    data: PathBuf,
    /// The folder for sockets.
    pub(crate) runtime: PathBuf,
    /// The session database was damaged and has just been rebuilt.
    pub(crate) rebuilt: bool,
    /// Variables that hold keys.
    key_variables: Vec<String>,
    /// How well commands can be sandboxed here, once it was probed.
    support: Option<SandboxSupport>,
}

pub(crate) fn client(settings: &Settings) -> anyhow::Result<ModelClient> {
    client_with(settings, dunnock_tools::offers, |prompts| prompts)
}

/// A model client with these tools and this selection of prompts.
pub(crate) fn client_with(
    settings: &Settings,
    offers: fn() -> Vec<ToolSpec>,
    which: fn(Prompts) -> Prompts,
) -> anyhow::Result<ModelClient> {
    let (providers, unusable) = settings.providers(&paths::text_var);
    Ok(client_of(settings, providers, offers, which)?.without(unusable))
}

/// A model client with these providers, whatever the settings say.
pub(crate) fn client_of(
    settings: &Settings,
    providers: Vec<Provider>,
    offers: fn() -> Vec<ToolSpec>,
    which: fn(Prompts) -> Prompts,
) -> anyhow::Result<ModelClient> {
    let prompts = paths::config_dir()
        .map_or_else(|_| Prompts::default(), |dir| Prompts::replaced_in(dir.join("prompts")));
    let shell = settings.shell.value;
    let brief = move |config: &Config, workspace: &str| {
        Ok(dunnock_compose::preamble_inputs(config, workspace, shell, offers()))
    };
    let patience = Timeouts {
        idle: settings.idle_timeout.value,
        offline: settings.offline_timeout.value,
        ..Timeouts::default()
    };
    let profiles = Profiles::kept_in(paths::data_dir(settings)?.join("models"));
    let client = ModelClient::new(providers, which(prompts), Arc::new(brief), patience, crate::APP);
    Ok(client.following(profiles).listing(Arc::new(files::files)))
}

/// Opens everything.
pub(crate) async fn open(settings: &Settings, output: Option<&Path>) -> anyhow::Result<Composed> {
    let data = paths::data_dir(settings)?;
    let paths::OpenedStore { store, rebuilt } = paths::open(&data).await?;
    Ok(Composed { rebuilt, ..make(settings, output, data, store)? })
}

fn make(
    settings: &Settings,
    output: Option<&Path>,
    data: PathBuf,
    store: Arc<dyn Store>,
) -> anyhow::Result<Composed> {
    sandbox_settings::check_folders(settings)?;
    let client = Arc::new(client(settings)?);
    let limits = Limits {
        shell: settings.shell.value,
        output_lines: settings.output_lines.value,
        output_bytes: settings.output_bytes.value,
        command: settings.command_timeout.value,
        verify: settings.verify_timeout.value,
        processes: settings.command_processes.value,
        checks: checks(settings)?,
        denied: sandbox_settings::denied(settings)?,
        keeps_processes: settings.background.value == Background::Keep,
        kept_folder: Some(paths::kept_processes(&data)),
        withheld_variables: paths::secret_variables(&settings.key_variables()),
        ..Limits::default()
    };
    let limits = match settings.command_memory_mb.value {
        Some(mb) => Limits { memory: mb << 20, ..limits },
        None => limits,
    };
    let runtime = paths::runtime_dir(&data);
    let composed = dunnock_compose::Parts {
        runtime: runtime.clone(),
        app: crate::APP,
        store,
        client,
        toolbox: toolbox(settings, limits, &data),
        checkpoints: checkpoints(settings, &data, output),
        day_budget: settings.budget_day.value.map(|money| money.micros),
        data: data.clone(),
    }
    .compose();
    settings.notes.iter().for_each(|note| output::note(note));
    let dunnock_compose::Composed { ports, client, toolbox, checkpoints } = composed;
    Ok(Composed {
        ports,
        client,
        checkpoints,
        toolbox,
        data,
        runtime,
        rebuilt: false,
        key_variables: settings.key_variables(),
        support: None,
    })
}

/// Commands to run after an edit, by file extension.
fn checks(settings: &Settings) -> anyhow::Result<BTreeMap<String, String>> {
    let mut checks = BTreeMap::new();
    for text in &settings.check.value {
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
    let toolbox = dunnock_compose::toolbox(
        data,
        limits,
        settings.checkpoints.value,
        // The launcher is this running program, even if its file has been replaced meanwhile.
        Path::new("/proc/self/exe"),
        #[cfg(target_os = "linux")]
        sandbox_settings::layout(settings, data),
    );
    #[cfg(target_os = "linux")]
    let toolbox = toolbox.with_mcp_servers(dunnock_tools::ServerSettings {
        servers: sandbox_settings::servers(settings),
        variables: settings.mcp_variables.value.clone(),
        cache: data.join("mcp"),
    });
    toolbox
}

/// Probes which sandbox level is available here.
pub(crate) fn confined(settings: &Settings, data: &Path) -> SandboxSupport {
    probed(&toolbox(settings, Limits::default(), data), settings, data)
}

fn probed(toolbox: &Toolbox, settings: &Settings, data: &Path) -> SandboxSupport {
    dunnock_compose::probe(toolbox, data, settings.sandbox_level.value)
}

impl Composed {
    /// Uses the keys that are saved now, for sessions that are open, too.
    pub(crate) fn reload_keys(&self, settings: &mut Settings) {
        settings.use_saved_keys(&paths::text_var);
        let (providers, unusable) = settings.providers(&paths::text_var);
        self.client.replace_providers(providers, unusable);
    }

    /// The person's own programs, for somebody who works in this folder.
    pub(crate) fn programs(&self, workspace: &Path) -> OwnPrograms {
        OwnPrograms::with(&self.key_variables, workspace)
    }

    /// The tools.
    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// The top folder of the git repository, if the workspace is only a folder of it.
    pub(crate) fn repository_around(&self, workspace: &Path) -> Option<PathBuf> {
        self.toolbox.repository_around(workspace)
    }

    /// The same store and sandbox level, with the settings of another folder.
    pub(crate) fn beside(&self, settings: &Settings) -> anyhow::Result<Self> {
        let mut work = make(settings, None, self.data.clone(), self.ports.store.clone())?;
        work.ports.level = self.ports.level;
        work.support.clone_from(&self.support);
        Ok(work)
    }

    /// Probes the sandbox level, once for this process. Call it before a session runs commands.
    pub(crate) fn confine(&mut self, settings: &Settings, sandbox: Sandbox) -> anyhow::Result<()> {
        if sandbox != Sandbox::Off && self.support.is_none() {
            let found = probed(&self.toolbox, settings, &self.data);
            if let Some(why) = &found.failed {
                bail!(
                    "the sandbox could not be checked: {why}. Try again; to work without a \
                     sandbox, use --sandbox off"
                );
            }
            self.ports.level = found.level;
            self.support = Some(found);
        }
        Ok(())
    }

    /// What a person should know if commands would be isolated less well than the session had it
    /// before, and how to accept that. `None` if they are not, or if that was accepted.
    pub(crate) fn lowered(&self, s: &State) -> Option<String> {
        let level = self.ports.level;
        let had = s.lowered_at(level)?;
        let why: Vec<String> = self
            .support
            .iter()
            .flat_map(|support| &support.why)
            .map(|(level, why)| format!("{level:?}: {why}"))
            .collect();
        let why = match why.as_slice() {
            [] => String::new(),
            why => format!(" ({})", why.join("; ")),
        };
        let accept = match level {
            Isolation::D => "off".to_owned(),
            level => format!("require={level:?}"),
        };
        Some(format!(
            "this session had sandbox level {had:?}, but only level {level:?} is available \
             now{why}. \"dunnock sandbox\" shows how to reach a better level; --sandbox {accept} \
             accepts this one"
        ))
    }
}

/// What a person should know if the mode `all` must still ask, because there is no sandbox.
pub(crate) fn all_asks(config: &Config, level: Isolation) -> Option<&'static str> {
    let asks = config.mode == Mode::All && level == Isolation::D && config.sandbox != Sandbox::Off;
    asks.then_some(
        "there is no sandbox here (level D), so commands need approval in mode all, too; --sandbox \
         off runs them without",
    )
}

/// The checkpoint store, on systems that support it.
pub(crate) fn checkpoints(
    settings: &Settings,
    data: &Path,
    output: Option<&Path>,
) -> Option<Arc<CheckpointStore>> {
    let limits = dunnock_compose::CheckpointLimits {
        bytes: settings.checkpoint_mb.value << 20,
        age: Duration::from_secs(settings.checkpoint_days.value * 86_400),
        copy: settings.checkpoint_copy_mb.value << 20,
    };
    // Files that we write ourselves do not count as changes to the user's files.
    dunnock_compose::checkpoints(data, paths::own_files(data, output), Some(limits))
}

/// The effort of a run, if none is set.
const RUN_EFFORT: Effort = Effort::High;
/// The effort in the apps, where somebody waits for each answer.
pub(crate) const APP_EFFORT: Effort = Effort::Medium;

/// What a person who chose an effort should know if the model does not have it.
pub(crate) fn effort_note(client: &ModelClient, model: &str, wanted: Effort) -> Option<String> {
    let wanted_name = wanted.name();
    match client.effort(model, wanted).ok()? {
        Some(sent) if sent == wanted => None,
        Some(sent) => {
            Some(format!("{model} has no effort {wanted_name}; {} is used instead", sent.name()))
        }
        None if client.effort_needs_responses(model) => Some(format!(
            "OpenAI refuses an effort for {model} on Chat Completions, so Dunnock sends none. Set \
             providers.openai.wire = \"responses\""
        )),
        None => Some(format!(
            "Dunnock knows no efforts of {model}, so it sends none. If the model has a setting for \
             it, set providers.NAME.body"
        )),
    }
}

/// The configuration of a new session in a folder.
pub(crate) fn config(
    settings: &Settings,
    client: &ModelClient,
    folder: &Path,
    model: String,
    attended: bool,
) -> anyhow::Result<Config> {
    let (allow, deny) = rules::load()?.of_folder(folder);
    Ok(Config {
        price: settings.price_of(&model).or_else(|| client.price(&model)),
        baseline: settings.baseline.value,
        model,
        effort: Some(settings.effort.value.unwrap_or(RUN_EFFORT)),
        profile: settings.profile.value.map(|size| size.to_string()).unwrap_or_default(),
        tool_set: settings.tool_set.value.map(|set| set.to_string()).unwrap_or_default(),
        mode: settings.approve.value,
        sandbox: settings.sandbox.value,
        file_access: settings.file_access.value,
        hosts: hosts(settings)?,
        web_fetch: settings.web_fetch.value,
        servers: server_names(settings),
        attended,
        unattended: settings.unattended.value && !attended,
        second_look: settings.second_look.value,
        snapshot: settings.snapshot.value,
        max_steps: settings.max_steps.value,
        stall_limit: settings.stall_limit.value,
        verify: settings.verify.value.clone(),
        verify_tries: settings.verify_tries.value,
        budget: settings.budget.value.unwrap_or_default(),
        window: settings.window.value,
        checkpoints: settings.checkpoints.value,
        allow,
        deny,
        ..Config::default()
    })
}

/// The names of the MCP servers. They are not supported on other systems yet.
fn server_names(settings: &Settings) -> Vec<String> {
    let all = settings.servers.iter().filter(|_| cfg!(target_os = "linux"));
    let mut names: Vec<String> = all.map(|server| server.name.clone()).collect();
    names.sort();
    names
}

/// The hosts that the settings open.
fn hosts(settings: &Settings) -> anyhow::Result<HostSet> {
    let rules = settings
        .hosts
        .value
        .iter()
        .map(|text| text.parse::<HostRule>().map_err(|error| usage(format!("hosts: {error}"))));
    rules.collect()
}

/// Changes to an existing session of a folder: from flags, and from the user's rules since it last
/// ran.
pub(crate) fn patch(
    settings: &Settings,
    client: &ModelClient,
    folder: &Path,
    now: &Config,
    attended: Option<bool>,
) -> anyhow::Result<Option<ConfigPatch>> {
    let model = match &settings.model.value {
        Some(model) if settings.model.is_flag() => model,
        Some(_) | None => &now.model,
    };
    let whole = config(settings, client, folder, model.to_owned(), false)?;
    let patch = ConfigPatch {
        // A configured price applies at once; a built-in price stays as it was when the model was
        // chosen.
        price: (settings.model.is_flag()
            || settings.price_of(model).is_some()
            || now.price.is_none())
        .then_some(whole.price),
        model: settings.model.is_flag().then_some(whole.model),
        effort: settings.effort.is_flag().then_some(whole.effort),
        profile: settings.profile.is_flag().then_some(whole.profile),
        // The user may set it because a request did not fit, so it applies from now on.
        window: (whole.window.is_some() && whole.window != now.window).then_some(whole.window),
        mode: settings.approve.is_flag().then_some(whole.mode),
        sandbox: settings.sandbox.is_flag().then_some(whole.sandbox),
        file_access: settings.file_access.is_flag().then_some(whole.file_access),
        hosts: settings.hosts.is_flag().then_some(whole.hosts),
        web_fetch: settings.web_fetch.is_flag().then_some(whole.web_fetch),
        // An imported session keeps none.
        servers: (now.servers != whole.servers && !now.servers.is_empty()).then_some(whole.servers),
        max_steps: match attended {
            _ if settings.max_steps.is_flag() => Some(whole.max_steps),
            Some(true) => steps_without_deadline(now),
            Some(false) | None => None,
        },
        unattended: match attended {
            _ if settings.unattended.is_flag() => Some(whole.unattended),
            Some(true) => Some(false), // somebody is here now
            Some(false) => settings.unattended.value.then_some(true),
            None => None,
        },
        deadline: (attended == Some(true) && now.deadline.is_some()).then_some(None),
        verify: settings.verify.is_flag().then_some(whole.verify),
        budget: settings.budget.is_flag().then_some(whole.budget),
        allow: (now.allow != whole.allow).then_some(whole.allow),
        deny: (now.deny != whole.deny).then_some(whole.deny),
        attended,
        ..ConfigPatch::default()
    };
    Ok((now.with(&patch) != *now).then_some(patch))
}

/// The limit on steps of a session whose deadline is taken away, if the deadline was its limit.
pub(crate) fn steps_without_deadline(now: &Config) -> Option<u32> {
    (now.deadline.is_some() && now.max_steps == u32::MAX).then(|| Config::default().max_steps)
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
    if config.file_access == FileAccess::Machine && !config.reaches_machine() {
        return Err(usage(
            "file_access = \"machine\" works only without a sandbox: add --sandbox off, or keep the \
             sandbox with --file-access workspace",
        ));
    }
    if config.reaches_machine() && !cfg!(target_os = "linux") {
        return Err(usage("file_access = \"machine\" works only on Linux"));
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
    if let Some(model) = &settings.model.value {
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
            settings.model.found(one, "found on this machine");
            Ok(one.clone())
        }
        [] => Err(usage(without_model(client))),
        several => {
            let shown: Vec<&str> = several.iter().take(10).map(String::as_str).collect();
            Err(usage(format!(
                "no model is configured, and there are several on this machine: {}. Choose one \
                 with \"dunnock login\", or for one task: dunnock run --model {} \"...\"",
                shown.join(", "),
                shown.first().copied().unwrap_or_default()
            )))
        }
    }
}

/// What to do if no model is configured and none was found.
pub(crate) fn without_model(client: &ModelClient) -> String {
    let providers = client.providers();
    let keyed: Vec<&Arc<Provider>> = providers.iter().filter(|p| p.key.is_some()).collect();
    let Some(first) = keyed.first() else {
        let variables: Vec<&str> = KNOWN.iter().filter_map(|known| known.key_env).collect();
        return format!(
            "no model is configured. Run \"dunnock login\" to choose one; or start a local server \
             (Ollama, llama.cpp, LM Studio, vLLM), or set the key of a provider ({}); \"dunnock \
             models list\" shows the choices",
            variables.join(", ")
        );
    };
    let source = |provider: &&Arc<Provider>| match (&provider.key_env, provider.key_source) {
        (Some(env), KeySource::Variable) => format!("{env} is set"),
        _ => format!("a key for {} is saved", provider.name),
    };
    let sources: Vec<String> = keyed.iter().map(source).collect();
    let name = &first.name;
    format!(
        "no model is configured. {}: choose a model with \"dunnock login {name}\", or for one task \
         with --model {name}/MODEL; \"dunnock models list\" shows the choices",
        sources.join(", ")
    )
}

/// The default model of the first provider whose key is set or saved.
pub(crate) fn model_by_key(settings: &mut Settings) -> Option<String> {
    let set = |env: &str| paths::text_var(env).is_some_and(|key| !key.is_empty());
    let (saved, _) = settings.providers(&paths::text_var);
    let is_saved =
        |name: &str| saved.iter().any(|p| p.name == name && p.key_source == KeySource::Saved);
    let (known, env, default) = KNOWN
        .iter()
        .filter_map(|known| {
            let model = Known::filled(known.default_model?, &paths::text_var)?;
            Known::filled(known.base_url, &paths::text_var)?;
            Some((known, known.key_env?, model))
        })
        .find(|(known, env, _)| set(env) || is_saved(known.name))?;
    let model = format!("{}/{default}", known.name);
    let why = match set(env) {
        true => format!("because {env} is set"),
        false => format!("because a key for {} is saved", known.name),
    };
    settings.model.found(&model, &why);
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
