//! The model port: providers, one client, and the head.

use crate::ask::{Line, Patience, ask, some_of};
use crate::chat;
use crate::head::{Briefing, Prompts, Recorded};
use crate::provider::{Provider, Wire};
use crate::trouble::Trouble;
use dunnock_core::Request;
use dunnock_core::ports::{Blob, Halt, Live, Model, Wait};
use dunnock_proto::{Answered, Config, Failure, Head, Message, Part, TurnFailed, Usage};
use secrecy::ExposeSecret as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Makes what a head is made of, for a workspace.
pub type Brief = Arc<dyn Fn(&Config, &str) -> Result<Briefing, String> + Send + Sync>;

/// Speaks to every provider that is configured.
pub struct Speaker {
    providers: Vec<Provider>,
    prompts: Prompts,
    brief: Brief,
    patience: Patience,
    app: String,
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl Speaker {
    /// A speaker; nothing is connected to yet.
    #[must_use]
    pub fn new(providers: Vec<Provider>, prompts: Prompts, brief: Brief, patience: Patience, app: &str) -> Self {
        Self { providers, prompts, brief, patience, app: app.into(), client: OnceLock::new() }
    }

    fn provider(&self, model: &str) -> Result<&Provider, String> {
        let Some((name, rest)) = model.split_once('/') else {
            return Err(format!(
                "{model:?} is not a model: write provider/model. \"dunnock models list\" shows those there are"
            ));
        };
        if rest.is_empty() {
            return Err(format!(
                "{model:?} names no model: write {name}/MODEL. \"dunnock models list\" shows those there are"
            ));
        }
        self.providers.iter().find(|p| p.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.providers.iter().map(|p| p.name.as_str()).collect();
            format!(
                "there is no provider {name:?}; there are {}. Add one as [providers.{name}] in the configuration",
                known.join(", ")
            )
        })
    }

    /// Whether a model's provider is there; the model itself only its server knows.
    ///
    /// # Errors
    /// What is wrong with the name, and what to do.
    pub fn knows(&self, model: &str) -> Result<(), String> {
        self.provider(model).map(drop)
    }

    fn client(&self) -> Result<&reqwest::Client, String> {
        let made = self.client.get_or_init(|| {
            let _ = rustls::crypto::ring::default_provider().install_default();
            let secure = self.providers.iter().any(|p| p.base_url.starts_with("https:"));
            let mut builder = reqwest::Client::builder()
                .user_agent(format!("dunnock/{}", self.app))
                .connect_timeout(self.patience.connect)
                .redirect(reqwest::redirect::Policy::none())
                .tcp_nodelay(true)
                .pool_idle_timeout(Duration::from_secs(90));
            if !secure {
                // Reading the system's certificates takes longer than everything else at the start.
                builder = builder.tls_certs_only([]);
            }
            builder.build().map_err(|e| format!("no connection can be made: {e}"))
        });
        made.as_ref().map_err(Clone::clone)
    }

    /// The models that a provider says it has, sorted.
    ///
    /// # Errors
    /// Why it could not be asked.
    pub async fn models(&self, provider: &Provider, within: Duration) -> Result<Vec<String>, String> {
        let url = format!("{}/models", provider.base_url.trim_end_matches('/'));
        let mut request = self.client()?.get(url).timeout(within);
        if let Some(key) = &provider.key {
            request = request.bearer_auth(key.expose_secret());
        }
        let response = request.send().await.map_err(|e| Trouble::unreachable(provider, &e).words)?;
        let status = response.status().as_u16();
        let body = some_of(response, within).await;
        if status != 200 {
            return Err(Trouble::status(provider, "", status, None, &body).words);
        }
        let json: serde_json::Value =
            serde_json::from_slice(&body).map_err(|e| format!("not a list of models: {e}"))?;
        let list = json["data"].as_array().or_else(|| json["models"].as_array());
        let name = |m: &serde_json::Value| m["id"].as_str().or_else(|| m["name"].as_str()).map(str::to_owned);
        let mut models: Vec<String> = list.into_iter().flatten().filter_map(name).collect();
        models.sort();
        models.dedup();
        Ok(models)
    }

    /// Those it knows.
    #[must_use]
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    fn render(&self, config: &Config, workspace: &str) -> Result<(Head, Blob), String> {
        let provider = self.provider(&config.model)?;
        let briefing = (self.brief)(config, workspace)?;
        let tools = match provider.wire {
            Wire::Chat => chat::tools(&briefing.offers)?,
        };
        let system = self.prompts.system(&briefing)?;
        let blob = Recorded { v: 1, model: config.model.clone(), system, tools }.blob()?;
        let head = Head {
            hash: blob.hash,
            model: config.model.clone(),
            wire: provider.wire.to_string(),
            dialect: "native".into(),
            profile: "default".into(),
            version: self.app.clone(),
            tools: briefing.offers.into_iter().map(|o| o.tool).collect(),
            bytes: blob.bytes.len() as u64,
            why: "start".into(),
            first_changed: None,
        };
        Ok((head, blob))
    }

    async fn send(
        &self,
        head: &Recorded,
        request: &Request,
        messages: &[Message],
        live: Live,
        halt: Halt,
    ) -> Result<Answered, TurnFailed> {
        let refuse = |error: String| TurnFailed {
            turn: request.turn,
            attempts: Vec::new(),
            failure: Failure::Rejected,
            error,
            partial: "".into(),
            usage: Usage::default(),
            retry_at: None,
        };
        let provider = self.provider(&head.model).map_err(refuse)?;
        let client = self.client().map_err(refuse)?;
        let line = Line { client, provider, patience: self.patience };
        ask(&line, head, request, messages, live, halt).await
    }
}

impl Model for Speaker {
    fn head<'a>(&'a self, config: &'a Config, workspace: &'a str) -> Wait<'a, Result<(Head, Blob), String>> {
        Box::pin(async move { self.render(config, workspace) })
    }

    fn ask(
        &self,
        head: Arc<[u8]>,
        request: Request,
        live: Live,
        halt: Halt,
    ) -> Wait<'_, Result<(Answered, Vec<Blob>), TurnFailed>> {
        Box::pin(async move {
            let recorded = Recorded::read(&head).map_err(|error| TurnFailed {
                turn: request.turn,
                attempts: Vec::new(),
                failure: Failure::Rejected,
                error: format!("the instructions of this session cannot be read: {error}"),
                partial: "".into(),
                usage: Usage::default(),
                retry_at: None,
            })?;
            let messages = request.messages();
            self.send(&recorded, &request, &messages, live, halt).await.map(|answered| (answered, Vec::new()))
        })
    }

    fn summarise(&self, head: Arc<[u8]>, request: Request, halt: Halt) -> Wait<'_, Result<Arc<str>, String>> {
        Box::pin(async move {
            let mut recorded = Recorded::read(&head)?;
            // The talk as one text: a model that is to sum up must not be able to go on with the work instead.
            let talk: Vec<String> = request.messages().iter().map(told).collect();
            recorded.system = self.prompts.summary()?;
            recorded.tools = serde_json::value::to_raw_value::<[u8; 0]>(&[]).map_err(|e| e.to_string())?;
            let messages = [Message::User { text: talk.join("\n\n").into(), images: Vec::new() }];
            let quiet: Live = Arc::new(|_| {});
            let answered =
                self.send(&recorded, &request, &messages, quiet, halt).await.map_err(|failed| failed.error)?;
            let text: String = answered
                .parts
                .iter()
                .filter_map(|part| match part {
                    Part::Text { text } => Some(text.as_ref()),
                    Part::Reasoning { .. } | Part::Call(_) => None,
                })
                .collect();
            if text.trim().is_empty() { Err("the model gave no summary".into()) } else { Ok(text.into()) }
        })
    }
}

/// A message as plain text, for a summary.
fn told(message: &Message) -> String {
    match message {
        Message::User { text, .. } => format!("PERSON: {text}"),
        Message::Notice { text } => format!("HARNESS: {text}"),
        Message::Result { tool, text, .. } => format!("RESULT of {tool}: {text}"),
        Message::Assistant { parts, .. } => {
            let part = |part: &Part| match part {
                Part::Text { text } => text.to_string(),
                Part::Call(call) => format!("CALL {} {}", call.tool, call.args),
                Part::Reasoning { .. } => String::new(),
            };
            format!("AGENT: {}", parts.iter().map(part).collect::<Vec<_>>().join("\n"))
        }
    }
}
