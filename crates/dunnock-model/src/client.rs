//! The model port: one client for all providers, and the rendering of preambles.

mod summary;

use crate::ask::{PromptRequest, RefusedExtras, Resume, Timeouts, Transport, ask, some_of};
use crate::bridge::{self, BridgeSettings, ListFiles};
use crate::capabilities::Capabilities;
use crate::dialects::{Callable, Dialect, plan};
use crate::effort_table::Recipient;
use crate::preamble::{PreambleInputs, Prompts, RecordedPreamble};
use crate::preamble_drift::{self, PROGRAM, PROMPT, TOOLS};
use crate::preset::{BRIDGE_MODEL, Preset};
use crate::profile::{EditFormat, Profiles, Size};
use crate::provider::{Provider, Quirks};
use crate::request_error::RequestError;
use crate::tool_sets::{self, ToolSet};
use crate::window;
use crate::wire::Wire;
use crate::wires;
use dunnock_core::Request;
use dunnock_ports::{
    Blob, BoxFuture, CancellationToken, DeltaSink, HostInfo, Model, ModelRequest, RenderError,
    Summary, SummaryError, ToolSpec,
};
use dunnock_proto::{
    Answered, Config, Effort, Failure, Hash, Noticed, OutboxWritten, Preamble, PreambleEffort,
    Price, Source, StepFailed, Tool, Usage,
};
use serde_json::value::RawValue;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

/// Idle connections to keep per host.
const IDLE: usize = 64;
/// The effort of a session whose settings name none.
const DEFAULT_EFFORT: Effort = Effort::Medium;
const NO_BRIDGE: &str = "this session has no bridge folder; start with dunnock bridge new \"...\"";

/// Collects the inputs of a preamble for a workspace.
pub type MakePreambleInputs =
    Arc<dyn Fn(&Config, &str) -> Result<PreambleInputs, String> + Send + Sync>;

/// Providers that can be used, and those that cannot.
#[derive(Default)]
struct Providers {
    usable: Vec<Arc<Provider>>,
    /// Providers that are configured but unusable, with the reason.
    unusable: Vec<(String, String)>,
}

/// Sends requests to all configured providers.
pub struct ModelClient {
    providers: RwLock<Providers>,
    prompts: Prompts,
    profiles: Profiles,
    pub(crate) brief: MakePreambleInputs,
    pub(crate) patience: Timeouts,
    app: String,
    pub(crate) without: RefusedExtras,
    /// Lists the files of a folder, for chats that cannot see it.
    list: Option<ListFiles>,
    /// For servers on this machine: no proxy and no certificates, which are slow to load.
    near: OnceLock<Result<reqwest::Client, String>>,
    /// For servers on this machine that use TLS.
    near_tls: OnceLock<Result<reqwest::Client, String>>,
    far: OnceLock<Result<reqwest::Client, String>>,
}

impl ModelClient {
    /// Creates a client without connecting to anything.
    #[must_use]
    pub fn new(
        providers: Vec<Provider>,
        prompts: Prompts,
        brief: MakePreambleInputs,
        patience: Timeouts,
        app: &str,
    ) -> Self {
        let (near, near_tls, far) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let usable = providers.into_iter().map(Arc::new).collect();
        let providers = RwLock::new(Providers { usable, unusable: Vec::new() });
        let (app, without, list) = (app.into(), RefusedExtras::default(), None);
        Self {
            providers,
            prompts,
            profiles: Profiles::default(),
            brief,
            patience,
            app,
            without,
            list,
            near,
            near_tls,
            far,
        }
    }

    /// Uses these saved profiles.
    #[must_use]
    pub fn following(self, profiles: Profiles) -> Self {
        Self { profiles, ..self }
    }

    /// Sets the file lister for copy-and-paste sessions.
    #[must_use]
    pub fn listing(self, list: ListFiles) -> Self {
        Self { list: Some(list), ..self }
    }

    /// The saved profiles that this client uses.
    #[must_use]
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// Registers unusable providers, so that an error can say why when one is requested.
    #[must_use]
    pub fn without(self, unusable: Vec<(String, String)>) -> Self {
        self.providers.write().unwrap_or_else(PoisonError::into_inner).unusable = unusable;
        self
    }

    /// Uses these providers from the next request on: a key or an address has changed.
    pub fn replace_providers(&self, providers: Vec<Provider>, unusable: Vec<(String, String)>) {
        let usable = providers.into_iter().map(Arc::new).collect();
        *self.providers.write().unwrap_or_else(PoisonError::into_inner) =
            Providers { usable, unusable };
    }

    pub(crate) fn provider(&self, model: &str) -> Result<Arc<Provider>, String> {
        let Some((name, rest)) = model.split_once('/') else {
            return Err(format!(
                "{model:?} is not a model; use provider/model. \"dunnock models list\" shows the \
                 available models"
            ));
        };
        if rest.is_empty() {
            return Err(format!(
                "{model:?} names no model; use {name}/MODEL. \"dunnock models list\" shows the \
                 available models"
            ));
        }
        let all = self.providers.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, why)) = all.unusable.iter().find(|(known, _)| known == name) {
            return Err(why.clone());
        }
        all.usable.iter().find(|p| p.name == name).cloned().ok_or_else(|| {
            let known: Vec<&str> = all.usable.iter().map(|p| p.name.as_str()).collect();
            format!(
                "there is no provider {name:?}; use one of {}, or add [providers.{name}] to the \
                 configuration",
                known.join(", ")
            )
        })
    }

    /// Checks that a model's provider exists. Whether the model exists, only the server knows.
    ///
    /// # Errors
    /// What is wrong with the name, and what to do.
    pub fn knows(&self, model: &str) -> Result<(), String> {
        if model == BRIDGE_MODEL {
            return Ok(());
        }
        self.provider(model).map(drop)
    }

    pub(crate) fn client(&self, provider: &Provider) -> Result<&reqwest::Client, String> {
        let near = provider.is_local();
        let tls = provider.base_url.starts_with("https:");
        let slot = match (near, tls) {
            (true, false) => &self.near,
            (true, true) => &self.near_tls,
            (false, _) => &self.far,
        };
        let made = slot.get_or_init(|| {
            let _ = rustls::crypto::ring::default_provider().install_default();
            let mut builder = reqwest::Client::builder()
                .user_agent(format!("dunnock/{}", self.app))
                .connect_timeout(self.patience.connect)
                .redirect(reqwest::redirect::Policy::none())
                .tcp_nodelay(true)
                .pool_idle_timeout(Duration::from_secs(90))
                .pool_max_idle_per_host(IDLE);
            if near {
                builder = builder.no_proxy();
                if !tls {
                    builder = builder.tls_certs_only([]);
                }
            }
            builder.build().map_err(|e| format!("the HTTP client cannot be set up: {e}"))
        });
        made.as_ref().map_err(Clone::clone)
    }

    /// The models that a provider lists, sorted.
    ///
    /// # Errors
    /// When the list cannot be fetched.
    pub async fn models(
        &self,
        provider: &Provider,
        within: Duration,
    ) -> Result<Vec<String>, String> {
        self.list_models(provider, within).await.map_err(|error| error.words)
    }

    pub(crate) async fn list_models(
        &self,
        provider: &Provider,
        within: Duration,
    ) -> Result<Vec<String>, RequestError> {
        let path = Some(provider.wire.models_path());
        let request = wires::request(
            self.client(provider).map_err(RequestError::rejected)?,
            provider,
            provider.wire,
            reqwest::Method::GET,
            path,
        );
        let request = request.timeout(within);
        let response = request.send().await.map_err(|e| RequestError::unreachable(provider, &e))?;
        let status = response.status().as_u16();
        let body = some_of(response, within).await;
        if status != 200 {
            return Err(RequestError::status(
                provider,
                "",
                status,
                None,
                &body,
                &serde_json::Map::new(),
            ));
        }
        let json: serde_json::Value = serde_json::from_slice(&body)
            .map_err(|e| format!("the server did not return a list of models: {e}"))
            .map_err(RequestError::rejected)?;
        let list = json["data"].as_array().or_else(|| json["models"].as_array());
        let name = |m: &serde_json::Value| {
            m["id"].as_str().or_else(|| m["name"].as_str()).map(str::to_owned)
        };
        let mut models: Vec<String> = list.into_iter().flatten().filter_map(name).collect();
        models.sort();
        models.dedup();
        Ok(models)
    }

    /// The price of a model, if the table lists it and the provider is at its own address.
    #[must_use]
    pub fn price(&self, model: &str) -> Option<Price> {
        let provider = self.provider(model).ok().filter(|provider| provider.is_known())?;
        crate::prices_table::listed(&provider.name, model.split_once('/')?.1)
    }

    /// The effort that would be sent to a model; `None` if it has no setting for it.
    ///
    /// # Errors
    /// What is wrong with the model's name, and what to do.
    pub fn effort(&self, model: &str, wanted: Effort) -> Result<Option<Effort>, String> {
        if model == BRIDGE_MODEL {
            return Ok(None);
        }
        self.with_recipient(model, |recipient| recipient.nearest(wanted))
    }

    /// Whether a model has efforts only on the Responses wire, and is reached on another one.
    #[must_use]
    pub fn effort_needs_responses(&self, model: &str) -> bool {
        self.with_recipient(model, |recipient| recipient.needs_responses()).unwrap_or(false)
    }

    fn with_recipient<T>(
        &self,
        model: &str,
        look: impl FnOnce(&Recipient<'_>) -> T,
    ) -> Result<T, String> {
        let (capabilities, provider) = (self.known(model)?, self.provider(model)?);
        let (name, wire) = (model.split_once('/').map_or("", |(_, name)| name), capabilities.wire);
        let (direct, provider) = (provider.is_known(), &provider.name);
        Ok(look(&Recipient { provider, wire, model: name, direct }))
    }

    /// The usable providers.
    #[must_use]
    pub fn providers(&self) -> Vec<Arc<Provider>> {
        self.providers.read().unwrap_or_else(PoisonError::into_inner).usable.clone()
    }

    /// The unusable providers, each with the reason.
    #[must_use]
    pub fn unusable(&self) -> Vec<(String, String)> {
        self.providers.read().unwrap_or_else(PoisonError::into_inner).unusable.clone()
    }

    /// The capabilities of a session's model.
    fn capabilities(&self, config: &Config) -> Result<Capabilities, String> {
        let preset = Preset::of(config);
        let known = match preset {
            Preset::Plain => self.known(&config.model)?,
            // A plan has its own format, whatever else the model supports.
            Preset::Planner => Capabilities {
                dialect: Dialect::Plan,
                edit: EditFormat::Any,
                ..self.known(&config.model)?
            },
            Preset::Bridge => Capabilities::of(&Provider::plain("bridge", Wire::Chat, "")),
        };
        let aliases = preset == Preset::Plain && !self.prompts.is_for_service();
        let tool_set = match config.tool_set.as_str() {
            "" if known.dialect != Dialect::Native => ToolSet::Plain,
            // The model was measured with our own tools.
            "" if known.edit != EditFormat::Any => ToolSet::Plain,
            "" => ToolSet::of(&config.model),
            name => name.parse()?,
        };
        let edit = match tool_set {
            // They have one format of their own.
            ToolSet::OpenAi | ToolSet::Claude if preset == Preset::Plain => EditFormat::Any,
            ToolSet::OpenAi | ToolSet::Claude | ToolSet::Plain | ToolSet::All => known.edit,
        };
        Ok(Capabilities {
            preset,
            aliases,
            tool_set,
            edit,
            family: tool_sets::family_note(&config.model),
            unattended: config.unattended,
            web_fetch: config.web_fetch,
            servers: !config.servers.is_empty(),
            timeout: config.bridge.as_ref().map_or(0, |bridge| bridge.timeout),
            ..known
        })
    }

    /// The capabilities of a model: from its profile if there is one, else from the configuration.
    fn known(&self, model: &str) -> Result<Capabilities, String> {
        let provider = self.provider(model)?;
        let kept = self
            .profiles
            .get(model)?
            .filter(|kept| kept.asked == (provider.wire, provider.address()));
        let mut capabilities = Capabilities::of(&provider);
        if let Some(kept) = kept {
            capabilities = Capabilities {
                wire: kept.wire,
                dialect: kept.dialect,
                constrained: kept.constrained,
                edit: kept.edit,
                size: kept.profile,
                window: provider.window.or(kept.window),
                parallel: kept.parallel,
                quirks: Quirks { merge: kept.merge || provider.quirks.merge, ..provider.quirks },
                ..capabilities
            };
        }
        // Other servers may not know tools without JSON.
        let freeform = capabilities.wire == Wire::Responses
            && matches!(provider.name.as_str(), "azure" | "openai")
            && provider.is_known();
        Ok(Capabilities {
            dialect: provider.dialect.unwrap_or(capabilities.dialect),
            freeform,
            ..capabilities
        })
    }

    async fn render(
        &self,
        config: &Config,
        workspace: &str,
        host: &HostInfo,
    ) -> Result<(Preamble, Blob), String> {
        let mut capabilities = self.capabilities(config)?;
        if !config.profile.is_empty() {
            capabilities.size = config.profile.parse()?;
        }
        if capabilities.preset == Preset::Bridge {
            return self.render_carried(config, workspace, &capabilities);
        }
        let provider = &self.provider(&config.model)?;
        if let Some(window) = config.window {
            capabilities.window = Some(window);
        } else if capabilities.window.is_none() {
            capabilities.window = self.window(&config.model, provider, capabilities.wire).await?;
        }
        let mut briefing = (self.brief)(config, workspace)?;
        briefing.environment.sandbox.clone_from(&host.sandbox);
        let all = briefing.offers.clone();
        briefing.offers = capabilities.offers(briefing.offers);
        let mut recorded = self.recorded(&config.model, provider, &capabilities, &briefing)?;
        recorded.host = host.clone();
        // With a price or a token budget the answer needs a limit, so that its cost can be reserved
        // before the request is sent.
        if recorded.max_output.is_none()
            && (config.price.is_some() || config.budget.tokens.is_some())
        {
            recorded.max_output = Some(window::longest(&config.model));
        }
        // A small window has no room for a long answer.
        if let (Some(most), Some(window)) = (&mut recorded.max_output, capabilities.window) {
            *most = (*most).min((window / 4).max(1));
        }
        let wanted = config.effort.unwrap_or(DEFAULT_EFFORT);
        let sent = recorded.set_effort(wanted, provider.is_known());
        let effort = sent.map(|sent| PreambleEffort { wanted, sent });
        let sources = self.sources(&briefing, &capabilities)?;
        fits(&recorded, capabilities.size)?;
        let blob = recorded.blob()?;
        let preamble = Preamble {
            hash: blob.hash,
            model: config.model.clone(),
            wire: capabilities.wire.to_string(),
            dialect: capabilities.dialect.to_string(),
            profile: capabilities.size.to_string(),
            version: self.app.clone(),
            // What is not offered can be called all the same.
            tools: if capabilities.aliases { all } else { briefing.offers }
                .into_iter()
                .map(|o| Tool { name: capabilities.ours(&o.tool.name), ..o.tool })
                .collect(),
            bytes: blob.bytes.len() as u64,
            window: capabilities.window,
            max_output: recorded.max_output,
            effort,
            reason: "start".into(),
            first_changed: None,
            sources,
            via_bridge: false,
            level: None,
            reaches_machine: config.reaches_machine(),
            hosts: config.hosts.clone(),
            web_fetch: config.web_fetch,
            servers: config.servers.clone(),
        };
        Ok((preamble, blob))
    }

    /// A preamble for a copy-and-paste session: instructions that work in any chat.
    fn render_carried(
        &self,
        config: &Config,
        workspace: &str,
        capabilities: &Capabilities,
    ) -> Result<(Preamble, Blob), String> {
        let bridge = config.bridge.clone().ok_or(NO_BRIDGE)?;
        let mut briefing = (self.brief)(config, workspace)?;
        briefing.offers = capabilities.offers(briefing.offers);
        let sources = self.sources(&briefing, capabilities)?;
        let provider = Provider::plain("bridge", Wire::Chat, "");
        let mut recorded = self.recorded(
            BRIDGE_MODEL,
            &provider,
            capabilities,
            &PreambleInputs { offers: Vec::new(), ..briefing.clone() },
        )?;
        recorded.bridge_settings = Some(BridgeSettings { bridge, root: workspace.into() });
        let blob = recorded.blob()?;
        let preamble = Preamble {
            hash: blob.hash,
            model: BRIDGE_MODEL.into(),
            wire: bridge::WIRE.into(),
            dialect: bridge::DIALECT.into(),
            profile: capabilities.size.to_string(),
            version: self.app.clone(),
            tools: briefing.offers.into_iter().map(|o| o.tool).collect(),
            bytes: blob.bytes.len() as u64,
            window: None,
            max_output: None,
            effort: None,
            reason: "start".into(),
            first_changed: None,
            sources,
            via_bridge: true,
            level: None,
            reaches_machine: config.reaches_machine(),
            hosts: config.hosts.clone(),
            web_fetch: config.web_fetch,
            servers: config.servers.clone(),
        };
        Ok((preamble, blob))
    }

    /// The sources of a preamble that may change during a session.
    fn sources(
        &self,
        briefing: &PreambleInputs,
        capabilities: &Capabilities,
    ) -> Result<Vec<Source>, String> {
        let source = |name: &str, text: &str| Source {
            name: name.to_owned(),
            hash: Hash::of(text.as_bytes()),
        };
        let mut all: Vec<Source> =
            briefing.instructions.iter().map(|(name, text)| source(name, text)).collect();
        for name in self.prompts.used(capabilities.size, capabilities.dialect, capabilities.preset)
        {
            all.push(source(&format!("{PROMPT}{name}"), &self.prompts.source(name)?.1));
        }
        let tools: Vec<String> = briefing
            .offers
            .iter()
            .map(|o| format!("{}\n{}\n{}", o.tool.name, o.description, o.schema))
            .collect();
        all.push(source(TOOLS, &tools.join("\n")));
        all.push(source(PROGRAM, &self.app));
        Ok(all)
    }

    /// The sources that a preamble of the same kind would have if it were rendered now.
    fn sources_now(
        &self,
        config: &Config,
        workspace: &str,
        preamble: &Preamble,
    ) -> Result<(PreambleInputs, Vec<Source>), String> {
        let mut capabilities = self.capabilities(config)?;
        capabilities.size = preamble.profile.parse()?;
        if !preamble.via_bridge {
            capabilities.dialect = preamble.dialect.parse()?;
        }
        let mut briefing = (self.brief)(config, workspace)?;
        briefing.offers = capabilities.offers(briefing.offers);
        let sources = self.sources(&briefing, &capabilities)?;
        Ok((briefing, sources))
    }

    /// The context window of a model, as reported by its server or listed in the table.
    pub(crate) async fn window(
        &self,
        model: &str,
        provider: &Provider,
        wire: Wire,
    ) -> Result<Option<u64>, String> {
        let name = model.split_once('/').map_or("", |(_, name)| name);
        let asking = window::of(self.client(provider)?, provider, wire, name);
        Ok(tokio::time::timeout(Duration::from_secs(2), asking).await.unwrap_or(None))
    }

    pub(crate) fn recorded(
        &self,
        model: &str,
        provider: &Provider,
        capabilities: &Capabilities,
        briefing: &PreambleInputs,
    ) -> Result<RecordedPreamble, String> {
        let none: &[ToolSpec] = &[];
        let offers = if capabilities.dialect == Dialect::Native { &briefing.offers } else { none };
        let callable = match capabilities.dialect {
            Dialect::Native => Vec::new(),
            Dialect::Text | Dialect::Plan => callable(&briefing.offers)?,
        };
        let room = capabilities
            .window
            .map_or(u64::MAX, |w| w / 4)
            .min(provider.max_output.unwrap_or(8_000));
        let schema = match (capabilities.dialect, capabilities.constrained) {
            (Dialect::Plan, true) => Some(
                RawValue::from_string(plan::schema(&callable, room)).map_err(|e| e.to_string())?,
            ),
            _ => None,
        };
        let body = match &provider.body {
            Some(text) => serde_json::from_str(text).map_err(|e| {
                format!("providers.{}.body is not a JSON object: {e}", provider.name)
            })?,
            None => serde_json::Map::new(),
        };
        Ok(RecordedPreamble {
            v: 2,
            model: model.to_owned(),
            wire: capabilities.wire,
            dialect: capabilities.dialect,
            system: self.prompts.system(briefing, capabilities)?,
            tools: capabilities.wire.tools(offers, capabilities.freeform)?,
            callable,
            schema,
            window: capabilities.window,
            max_output: provider.max_output,
            quirks: capabilities.quirks,
            aliases_at: capabilities.aliases.then(|| briefing.environment.root.clone()),
            effort: serde_json::Map::new(),
            cache_key: match capabilities.wire {
                // Other servers may refuse it.
                Wire::Responses => {
                    matches!(provider.name.as_str(), "azure" | "openai") && provider.is_known()
                }
                Wire::Chat => provider.name == "openai" && provider.is_known(),
                Wire::Anthropic | Wire::Ollama => false,
            },
            body,
            bridge_settings: None,
            host: HostInfo::default(),
        })
    }

    pub(crate) async fn send(
        &self,
        question: &PromptRequest<'_>,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> Result<Answered, StepFailed> {
        let refuse = |error| StepFailed::unsent(question.step, Failure::Rejected, error);
        let provider = &self.provider(&question.preamble.model).map_err(refuse)?;
        let client = self.client(provider).map_err(refuse)?;
        let line = Transport { client, provider, patience: self.patience, without: &self.without };
        ask(&line, question, live, halt).await
    }
}

pub(crate) fn callable(offers: &[ToolSpec]) -> Result<Vec<Callable>, String> {
    let one = |offer: &ToolSpec| {
        let schema = serde_json::from_str(&offer.schema).map_err(|e| e.to_string())?;
        Ok(Callable { name: offer.tool.name.clone(), schema })
    };
    offers.iter().map(one).collect()
}

/// Checks that instructions and tools leave enough of the context window to work in.
fn fits(preamble: &RecordedPreamble, size: Size) -> Result<(), String> {
    let Some(window) = preamble.window else { return Ok(()) };
    let need = preamble.tokens();
    if need <= window * 3 / 4 {
        return Ok(());
    }
    let way = match size {
        Size::Default => "Use --profile small, or give it a larger window",
        Size::Small => "Give it a larger window",
    };
    let name = &preamble.model;
    Err(format!(
        "instructions and tools need about {need} tokens, too much of the {window}-token window \
         of {name}. {way}"
    ))
}

impl Model for ModelClient {
    fn render_preamble<'a>(
        &'a self,
        config: &'a Config,
        workspace: &'a str,
        host: &'a HostInfo,
    ) -> BoxFuture<'a, Result<(Preamble, Blob), RenderError>> {
        Box::pin(async move { self.render(config, workspace, host).await.map_err(RenderError) })
    }

    fn host_info(&self, preamble: &[u8]) -> HostInfo {
        RecordedPreamble::read(preamble).map(|recorded| recorded.host).unwrap_or_default()
    }

    fn ask(
        &self,
        asking: ModelRequest,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> BoxFuture<'_, Result<(Answered, Vec<Blob>), StepFailed>> {
        Box::pin(async move {
            let recorded = recorded(&asking)?;
            if let Some(bridge_settings) = &recorded.bridge_settings {
                let again = || {
                    bridge::write_outbox(
                        &asking,
                        bridge_settings,
                        &recorded.system,
                        self.list.as_ref(),
                    )
                };
                return bridge::wait(&asking, bridge_settings, &again, live, halt).await;
            }
            let ModelRequest { request, pictures, session, patient, time_left, .. } = asking;
            let messages = request.messages();
            let (preamble, step, hash) = (&recorded, request.step, request.hash());
            let answered = request.answered_by.as_deref() == Some(&preamble.model);
            let with_effort = request.effort_refused_by.as_deref() != Some(&preamble.model);
            let question = PromptRequest {
                preamble,
                step,
                hash,
                messages: &messages,
                resume: Some(Resume {
                    failed_attempts: request.failed_attempts,
                    answered,
                    patient,
                    time_left,
                }),
                pictures: &pictures,
                anyway: false,
                session: Some(session.as_str()),
                with_effort,
            };
            self.send(&question, live, halt).await.map(|answered| (answered, Vec::new()))
        })
    }

    fn write_outbox(
        &self,
        asking: ModelRequest,
    ) -> BoxFuture<'_, Result<OutboxWritten, StepFailed>> {
        Box::pin(async move {
            let recorded = recorded(&asking)?;
            let step = asking.request.step;
            let fail = |error: String| StepFailed::unsent(step, Failure::Rejected, error);
            let bridge_settings = recorded
                .bridge_settings
                .ok_or_else(|| fail("this model does not use the bridge".into()))?;
            let list = self.list.clone();
            let work = move || {
                bridge::write_outbox(&asking, &bridge_settings, &recorded.system, list.as_ref())
            };
            tokio::task::spawn_blocking(work).await.map_err(|error| fail(error.to_string()))?
        })
    }

    fn preamble_drift<'a>(
        &'a self,
        config: &'a Config,
        workspace: &'a str,
        preamble: &'a Preamble,
        known: &'a [Source],
    ) -> Option<Noticed> {
        let (briefing, now) = self.sources_now(config, workspace, preamble).ok()?;
        preamble_drift::notice(&briefing, known, now)
    }

    fn summarise(
        &self,
        preamble: Arc<[u8]>,
        request: Request,
        halt: CancellationToken,
    ) -> BoxFuture<'_, Summary> {
        Box::pin(async move {
            let none = Err(SummaryError(String::new()));
            let mut summed = Summary { text: none, usage: Usage::default(), broke: false };
            let text = self.sum_up(&preamble, &request, halt, &mut summed).await;
            Summary { text: text.map_err(SummaryError), ..summed }
        })
    }
}

/// The recorded preamble of a request.
fn recorded(asking: &ModelRequest) -> Result<RecordedPreamble, StepFailed> {
    RecordedPreamble::read(&asking.preamble).map_err(|why| {
        let error = format!("the instructions of this session cannot be read: {why}");
        StepFailed::unsent(asking.request.step, Failure::Rejected, error)
    })
}
