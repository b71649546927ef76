//! The model port: providers, one client, and the head.

use crate::ask::{Line, Patience, ask, some_of};
use crate::chat;
use crate::head::{Briefing, Prompts, Recorded};
use crate::provider::{Provider, Wire};
use crate::trouble::Trouble;
use dunnock_core::Request;
use dunnock_core::ports::{Blob, Halt, Live, Model, Wait};
use dunnock_proto::{Answered, Config, Failure, Head, Message, Part, TurnFailed};
use secrecy::ExposeSecret as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Makes what a head is made of, for a workspace.
pub type Brief = Arc<dyn Fn(&Config, &str) -> Result<Briefing, String> + Send + Sync>;

/// Speaks to every provider that is configured.
pub struct Speaker {
    providers: Vec<Provider>,
    /// Those that are configured and cannot be used, and why.
    unusable: Vec<(String, String)>,
    prompts: Prompts,
    brief: Brief,
    patience: Patience,
    app: String,
    /// For servers on this machine: no proxy, and no certificates, whose reading takes longer than everything else.
    near: OnceLock<Result<reqwest::Client, String>>,
    far: OnceLock<Result<reqwest::Client, String>>,
}

impl Speaker {
    /// A speaker; nothing is connected to yet.
    #[must_use]
    pub fn new(providers: Vec<Provider>, prompts: Prompts, brief: Brief, patience: Patience, app: &str) -> Self {
        let (near, far) = (OnceLock::new(), OnceLock::new());
        Self { providers, unusable: Vec::new(), prompts, brief, patience, app: app.into(), near, far }
    }

    /// Knows of providers that cannot be used, to say why when one is asked for.
    #[must_use]
    pub fn without(self, unusable: Vec<(String, String)>) -> Self {
        Self { unusable, ..self }
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
        if let Some((_, why)) = self.unusable.iter().find(|(known, _)| known == name) {
            return Err(why.clone());
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

    fn client(&self, provider: &Provider) -> Result<&reqwest::Client, String> {
        let near = provider.is_local();
        let slot = if near { &self.near } else { &self.far };
        let made = slot.get_or_init(|| {
            let _ = rustls::crypto::ring::default_provider().install_default();
            let mut builder = reqwest::Client::builder()
                .user_agent(format!("dunnock/{}", self.app))
                .connect_timeout(self.patience.connect)
                .redirect(reqwest::redirect::Policy::none())
                .tcp_nodelay(true)
                .pool_idle_timeout(Duration::from_secs(90));
            if near {
                builder = builder.no_proxy();
                if !provider.base_url.starts_with("https:") {
                    builder = builder.tls_certs_only([]);
                }
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
        let mut request = self.client(provider)?.get(url).timeout(within);
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
        let refuse = |error| TurnFailed::unsent(request.turn, Failure::Rejected, error);
        let provider = self.provider(&head.model).map_err(refuse)?;
        let client = self.client(provider).map_err(refuse)?;
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
            let recorded = Recorded::read(&head).map_err(|why| {
                let error = format!("the instructions of this session cannot be read: {why}");
                TurnFailed::unsent(request.turn, Failure::Rejected, error)
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
            let mut text = talk.join("\n\n");
            loop {
                let messages = [Message::User { text: text.as_str().into(), images: Vec::new() }];
                let quiet: Live = Arc::new(|_| {});
                let answered = match self.send(&recorded, &request, &messages, quiet, halt.clone()).await {
                    Ok(answered) => answered,
                    // Too long for one request: the task stands at the beginning, what matters now at the end.
                    Err(failed) if failed.failure == Failure::Overflow && text.len() > 4_000 => {
                        let head = text.floor_char_boundary(text.len() / 8);
                        let tail = text.ceil_char_boundary(text.len() - text.len() * 3 / 8);
                        text = format!(
                            "{}\n[left out]\n{}",
                            text.get(..head).unwrap_or_default(),
                            text.get(tail..).unwrap_or_default()
                        );
                        continue;
                    }
                    Err(failed) => return Err(failed.error),
                };
                let said = Part::words(&answered.parts);
                return if said.trim().is_empty() { Err("the model gave no summary".into()) } else { Ok(said.into()) };
            }
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
