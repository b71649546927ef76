//! Sets up a model from the page: the providers, the models of one, and what is saved.
//!
//! Invariant: a key is accepted only over a connection on this machine. Other connections are not
//! encrypted.

use crate::answer::{ApiError, Json, json};
use crate::app::App;
use crate::host::{ProviderRow, SetUpError};
use crate::peer::{ClientGone, Peer};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The providers to choose from.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Providers {
    providers: Vec<ProviderRow>,
    /// Whether a key may be sent over this connection.
    accepts_keys: bool,
}

/// A provider whose models to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListProviderModels {
    /// The provider's name.
    provider: String,
    /// Its key, if it has none yet.
    key: Option<String>,
}

/// The models of a provider.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProviderModels {
    /// Without the provider, with the one to suggest first; empty if they cannot be listed.
    models: Vec<String>,
    /// Why they cannot be listed.
    error: Option<SetUpError>,
}

/// The model to use from now on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UseModel {
    /// The provider's name.
    provider: String,
    /// Its key, if it has none yet. It is saved if the model answers.
    key: Option<String>,
    /// The model, without the provider.
    model: String,
}

/// Whether the model is used from now on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelInUse {
    /// As `provider/model`; absent if it did not answer, and nothing was saved.
    model: Option<String>,
    /// Why it is not used.
    error: Option<SetUpError>,
}

fn is_local(came: Peer) -> bool {
    came.at.ip().is_loopback() && came.from.ip().is_loopback()
}

fn accept(came: Peer, key: Option<&str>) -> Result<(), ApiError> {
    match key.is_none() || is_local(came) {
        true => Ok(()),
        false => Err(ApiError::new(
            StatusCode::CONFLICT,
            "a key is not accepted over this connection, because it is not encrypted. Run on the \
             server's machine: dunnock login",
        )),
    }
}

/// Lists the providers.
pub(crate) async fn providers(
    State(app): State<App>,
    Extension(came): Extension<Peer>,
) -> Result<Response, ApiError> {
    let providers = app.host.providers().await?;
    Ok(json(StatusCode::OK, &Providers { providers, accepts_keys: is_local(came) }))
}

/// Lists the models of a provider, and so checks its key.
pub(crate) async fn provider_models(
    State(app): State<App>,
    Extension(came): Extension<Peer>,
    Json(asked): Json<ListProviderModels>,
) -> Result<Response, ApiError> {
    accept(came, asked.key.as_deref())?;
    let listed = app.host.provider_models(&asked.provider, asked.key.as_deref()).await?;
    let (models, error) = match listed {
        Ok(models) => (models, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    Ok(json(StatusCode::OK, &ProviderModels { models, error }))
}

/// Tries a model; if it answers, saves it and the key. A caller that disconnects before has saved
/// nothing.
pub(crate) async fn use_model(
    State(app): State<App>,
    Extension(came): Extension<Peer>,
    Extension(ClientGone(gone)): Extension<ClientGone>,
    Json(asked): Json<UseModel>,
) -> Result<Response, ApiError> {
    accept(came, asked.key.as_deref())?;
    let UseModel { provider, key, model } = asked;
    let used = tokio::select! {
        biased;
        () = gone.cancelled() => {
            return Err(ApiError::new(StatusCode::CONFLICT, "the client left; nothing was saved"));
        }
        used = app.host.use_model(&provider, key.as_deref(), &model) => used?,
    };
    let (model, error) = match used {
        Ok(()) => (Some(format!("{provider}/{model}")), None),
        Err(error) => (None, Some(error)),
    };
    Ok(json(StatusCode::OK, &ModelInUse { model, error }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_accepted_only_on_this_machine() {
        let peer = |at: &str, from: &str| Peer {
            at: format!("{at}:5000").parse().unwrap(),
            from: format!("{from}:40000").parse().unwrap(),
        };
        for (at, from, accepts) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("[::1]", "[::1]", true),
            ("192.168.1.5", "192.168.1.9", false),
            ("192.168.1.5", "192.168.1.5", false),
            ("[fe80::1]", "[fe80::2]", false),
        ] {
            let came = peer(at, from);
            assert_eq!(is_local(came), accepts, "{at} {from}");
            assert_eq!(accept(came, Some("k")).is_ok(), accepts, "{at} {from}");
            assert!(accept(came, None).is_ok());
        }
    }
}
