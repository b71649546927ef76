//! Tries a key and a model before they are saved: one list of models, one short request.

use crate::answer::{Answer, FinishedAnswer};
use crate::ask::{RefusedExtras, Transport, Tried, no_answer, try_once};
use crate::capabilities::Capabilities;
use crate::client::ModelClient;
use crate::dialects::{AnswerParser, Dialect};
use crate::key_filter::KeyFilter;
use crate::messages::{Target, sides};
use crate::preamble::PreambleInputs;
use crate::profile::Size;
use crate::provider::Provider;
use crate::request_error::{RequestError, Retry};
use crate::wires::Outgoing;
use dunnock_proto::{Config, Message};
use std::collections::BTreeMap;
use std::time::Duration;

/// Why a key or a model cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TryError {
    /// What happened, and what to do.
    pub words: String,
    /// Another key may help: the server refused this one, or requires one.
    pub needs_key: bool,
}

impl From<String> for TryError {
    fn from(words: String) -> Self {
        Self { words, needs_key: false }
    }
}

impl From<RequestError> for TryError {
    fn from(error: RequestError) -> Self {
        Self { needs_key: error.again == Retry::OtherKey, words: error.words }
    }
}

impl ModelClient {
    /// The models that a provider lists, sorted.
    ///
    /// # Errors
    /// When the list cannot be fetched, with whether that is due to the key.
    pub async fn try_key(
        &self,
        provider: &Provider,
        within: Duration,
    ) -> Result<Vec<String>, TryError> {
        Ok(self.list_models(provider, within).await?)
    }

    /// Sends one short request without tools, and waits for the answer.
    ///
    /// # Errors
    /// When there is no answer, with whether that is due to the key.
    pub async fn try_model(&self, model: &str, within: Duration) -> Result<(), TryError> {
        let trying = tokio::time::timeout(within, self.one_answer(model));
        trying.await.unwrap_or_else(|_| {
            let seconds = within.as_secs();
            Err(format!("{model} did not answer within {seconds} s. Try again later").into())
        })
    }

    async fn one_answer(&self, model: &str) -> Result<(), TryError> {
        let provider = &self.provider(model)?;
        let inputs = (self.brief)(&Config { model: model.into(), ..Config::default() }, ".")?;
        let inputs = PreambleInputs { instructions: Vec::new(), offers: Vec::new(), ..inputs };
        let capabilities = Capabilities {
            size: Size::Small,
            dialect: Dialect::Native,
            ..Capabilities::of(provider)
        };
        let mut preamble = self.recorded(model, provider, &capabilities, &inputs)?;
        preamble.system = "This is a test of the connection.".into();
        let preamble = &preamble;
        let text = "Answer with one word: ready".into();
        let messages = [Message::User { text, images: Vec::new() }];
        let wire = preamble.wire.to_string();
        let to = Target {
            model,
            wire: &wire,
            dialect: preamble.dialect,
            callable: &[],
            as_came: &|_| false,
            sees_pictures: true,
        };
        let sides = sides(&messages, &BTreeMap::new(), &to)?;
        let line = self.transport(provider)?;
        let mut bare = 0;
        loop {
            let parser = AnswerParser::new(preamble.dialect, &Vec::new().into());
            let mut answer = Answer::new(parser, KeyFilter::of(provider), None);
            let body = preamble.wire.body(&Outgoing {
                preamble,
                sides: &sides,
                bare,
                anew: false,
                with_effort: false,
                session: None,
            });
            match try_once(&line, preamble, body, &mut answer, &mut |_| {}).await {
                Tried::Trouble(trouble) if trouble.bare && bare < RefusedExtras::ALL => bare += 1,
                Tried::Trouble(trouble) => return Err(trouble.into()),
                Tried::Done => {
                    let FinishedAnswer { parts, stop, .. } = answer.finish(1);
                    return match no_answer(&parts, &stop) {
                        Some(why) => Err(format!("{model}: {why}").into()),
                        None => Ok(()),
                    };
                }
            }
        }
    }

    fn transport<'a>(&'a self, provider: &'a Provider) -> Result<Transport<'a>, String> {
        let client = self.client(provider)?;
        Ok(Transport { client, provider, patience: self.patience, without: &self.without })
    }
}
