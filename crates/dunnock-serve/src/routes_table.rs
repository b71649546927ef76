//! Every route, listed once: the router and the OpenAPI document are both built from this table.

use crate::agent::{self, AgentAnswer, AgentRequest};
use crate::answer::ErrorBody;
use crate::app::App;
use crate::{
    assets, feed, live, login, openapi, overview, providers, rules, servers, session_files,
    sessions, start,
};
use axum::Router;
use axum::routing::{MethodRouter, get, post};
use dunnock_proto::CommandRequest;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Generates the schema of a type.
pub(crate) type Make = fn(&mut SchemaGenerator) -> Schema;

/// One route.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// One line for the document.
    pub(crate) about: &'static str,
    pub(crate) query: Option<Make>,
    pub(crate) body: Option<Make>,
    /// The success status and type; no type for raw bytes. For a channel: what the server sends on
    /// it.
    pub(crate) good: (u16, Option<Make>),
    /// Other statuses, each with its type.
    pub(crate) bad: &'static [(u16, Make)],
    /// Needs no authentication.
    pub(crate) open: bool,
    pub(crate) handler: fn() -> MethodRouter<App>,
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const PLAIN: Route = Route {
    method: "GET",
    path: "",
    about: "",
    query: None,
    body: None,
    good: (200, None),
    bad: &[],
    open: false,
    handler: || get(openapi::show),
};

const GONE: (u16, Make) = (404, of::<ErrorBody>);
const CLASH: (u16, Make) = (409, of::<ErrorBody>);
const MALFORMED: (u16, Make) = (400, of::<ErrorBody>);
const LATER: (u16, Make) = (503, of::<ErrorBody>);

pub(crate) const ROUTES: &[Route] = &[
    Route {
        path: "/api/sessions",
        about: "Sessions, newest first; with `search`, those that contain the words, best match \
                first.",
        query: Some(of::<sessions::ListQuery>),
        good: (200, Some(of::<sessions::Rows>)),
        bad: &[MALFORMED, LATER],
        handler: || get(sessions::list),
        ..PLAIN
    },
    Route {
        method: "POST",
        path: "/api/sessions",
        about: "Creates a session and sends its first prompt, if one is given.",
        body: Some(of::<sessions::NewSession>),
        good: (201, Some(of::<sessions::CreatedSession>)),
        bad: &[MALFORMED, GONE, CLASH, LATER],
        handler: || post(sessions::make),
        ..PLAIN
    },
    Route {
        path: "/api/sessions/{id}",
        about: "A session and its events after `from`; with `wait`, waits for the next event.",
        query: Some(of::<sessions::ReadQuery>),
        good: (200, Some(of::<sessions::View>)),
        bad: &[MALFORMED, GONE, LATER],
        handler: || get(sessions::read),
        ..PLAIN
    },
    Route {
        method: "POST",
        path: "/api/sessions/{id}/commands",
        about: "Sends a command, which runs once: the same id gets the same response. A command \
                that cannot run now gets a conflict with the current state.",
        body: Some(of::<CommandRequest>),
        good: (200, Some(of::<sessions::Accepted>)),
        bad: &[MALFORMED, GONE, (409, of::<sessions::Conflict>), LATER],
        handler: || post(sessions::command),
        ..PLAIN
    },
    Route {
        path: "/api/sessions/{id}/live",
        about: "The live channel, a WebSocket. The server sends Greeting, then Frame; the client \
                sends Up.",
        query: Some(of::<live::LiveQuery>),
        good: (101, None),
        bad: &[MALFORMED, GONE, (426, of::<ErrorBody>), LATER],
        handler: || get(live::live),
        ..PLAIN
    },
    Route {
        path: "/api/sessions/{id}/files",
        about: "Files in the session's folder, for mentions.",
        query: Some(of::<session_files::FilesQuery>),
        good: (200, Some(of::<session_files::Files>)),
        bad: &[MALFORMED, GONE, LATER],
        handler: || get(session_files::files),
        ..PLAIN
    },
    Route {
        path: "/api/sessions/{id}/diff",
        about: "What the session changed between two steps.",
        query: Some(of::<session_files::DiffQuery>),
        good: (200, Some(of::<crate::Changes>)),
        bad: &[MALFORMED, GONE, CLASH, LATER],
        handler: || get(session_files::diff),
        ..PLAIN
    },
    Route {
        path: "/api/sessions/{id}/checkpoints",
        about: "The steps that the `rewind` command can return to.",
        good: (200, Some(of::<session_files::Checkpoints>)),
        bad: &[GONE, CLASH, LATER],
        handler: || get(session_files::checkpoints),
        ..PLAIN
    },
    Route {
        path: "/api/sessions/{id}/blobs/{hash}",
        about: "A blob that an event names by its hash: a full output, an image, a diff.",
        bad: &[GONE, LATER],
        handler: || get(session_files::blob),
        ..PLAIN
    },
    Route {
        method: "POST",
        path: "/api/sessions/{id}/fork",
        about: "Creates a new session that continues this one from a given event.",
        body: Some(of::<session_files::Fork>),
        good: (201, Some(of::<session_files::ForkedSession>)),
        bad: &[MALFORMED, GONE, LATER],
        handler: || post(session_files::fork),
        ..PLAIN
    },
    Route {
        method: "POST",
        path: "/api/sessions/{id}/images",
        about: "Stores an image with the session, for a prompt to refer to.",
        body: Some(of::<session_files::ImageUpload>),
        good: (201, Some(of::<session_files::StoredImage>)),
        bad: &[MALFORMED, GONE, CLASH, LATER],
        handler: || post(session_files::picture),
        ..PLAIN
    },
    Route {
        path: "/api/sessions/{id}/undo",
        about: "What undoing the last task, or the last undo, would do.",
        good: (200, Some(of::<crate::UndoPreview>)),
        bad: &[GONE, CLASH, LATER],
        handler: || get(session_files::undo),
        ..PLAIN
    },
    Route {
        path: "/api/feed",
        about: "An overview of all sessions, as a WebSocket. The server sends Overview when it \
                changes.",
        good: (101, Some(of::<overview::Overview>)),
        bad: &[(426, of::<ErrorBody>), LATER],
        handler: || get(feed::feed),
        ..PLAIN
    },
    Route {
        path: "/api/defaults",
        about: "The defaults for a new session: folder, model, notes for the user.",
        query: Some(of::<start::StartQuery>),
        good: (200, Some(of::<start::SessionDefaults>)),
        bad: &[MALFORMED, GONE, CLASH, LATER],
        handler: || get(start::start),
        ..PLAIN
    },
    Route {
        path: "/api/files",
        about: "Files in a folder, for mentions before there is a session.",
        query: Some(of::<session_files::FolderQuery>),
        good: (200, Some(of::<session_files::Files>)),
        bad: &[MALFORMED, GONE, LATER],
        handler: || get(session_files::folder_files),
        ..PLAIN
    },
    Route {
        path: "/api/models",
        about: "Models that can be used now.",
        good: (200, Some(of::<start::Models>)),
        handler: || get(start::models),
        ..PLAIN
    },
    Route {
        path: "/api/providers",
        about: "Providers that a model can be set up with.",
        good: (200, Some(of::<providers::Providers>)),
        bad: &[CLASH],
        handler: || get(providers::providers),
        ..PLAIN
    },
    Route {
        method: "POST",
        path: "/api/providers/models",
        about: "The models of a provider, with a key that is not saved. A key is accepted only \
                over a connection on this machine.",
        body: Some(of::<providers::ListProviderModels>),
        good: (200, Some(of::<providers::ProviderModels>)),
        bad: &[MALFORMED, CLASH],
        handler: || post(providers::provider_models),
        ..PLAIN
    },
    Route {
        method: "POST",
        path: "/api/providers/use",
        about: "Tries a model with one short request. If it answers, saves the key and uses the \
                model for new sessions.",
        body: Some(of::<providers::UseModel>),
        good: (200, Some(of::<providers::ModelInUse>)),
        bad: &[MALFORMED, CLASH],
        handler: || post(providers::use_model),
        ..PLAIN
    },
    Route {
        path: "/api/mcp/servers",
        about: "The MCP servers of a folder, and their state in the running sessions.",
        query: Some(of::<servers::ServersQuery>),
        good: (200, Some(of::<servers::McpServers>)),
        bad: &[MALFORMED, GONE, CLASH],
        handler: || get(servers::servers),
        ..PLAIN
    },
    Route {
        path: "/api/rules",
        about: "The saved rules, of all projects.",
        good: (200, Some(of::<rules::Rules>)),
        bad: &[CLASH],
        handler: || get(rules::rules),
        ..PLAIN
    },
    Route {
        method: "POST",
        path: "/api/rules",
        about: "Saves a rule that allows something, or removes a saved rule.",
        body: Some(of::<crate::host::SetRule>),
        good: (200, Some(of::<rules::Rules>)),
        bad: &[MALFORMED, CLASH],
        handler: || post(rules::set_rule),
        ..PLAIN
    },
    Route {
        method: "POST",
        path: "/api/agent",
        about: "The stateless service: one prompt, at most one tool call, one answer.",
        body: Some(of::<AgentRequest>),
        good: (200, Some(of::<AgentAnswer>)),
        bad: &[(400, of::<AgentAnswer>)],
        handler: || post(agent::agent),
        ..PLAIN
    },
    Route {
        method: "POST",
        path: "/api/login",
        about: "Exchanges a one-time code or the password for a cookie and a token.",
        body: Some(of::<login::Login>),
        good: (200, Some(of::<login::Welcome>)),
        bad: &[MALFORMED, (429, of::<ErrorBody>)],
        open: true,
        handler: || post(login::login),
        ..PLAIN
    },
    Route {
        path: "/api/me",
        about: "Confirms authentication and returns the server's version.",
        good: (200, Some(of::<login::Me>)),
        handler: || get(login::who),
        ..PLAIN
    },
    Route {
        method: "POST",
        path: "/api/code",
        about: "Creates a one-time code for another browser.",
        body: Some(of::<login::Nothing>),
        good: (200, Some(of::<login::Code>)),
        bad: &[MALFORMED],
        handler: || post(login::code),
        ..PLAIN
    },
    Route {
        path: "/api/openapi.json",
        about: "This document.",
        good: (200, Some(of::<openapi::Any>)),
        ..PLAIN
    },
];

/// The methods of a path, if it exists.
pub(crate) fn allowed(path: &str) -> Option<Vec<&'static str>> {
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |route: &&Route| {
        let known: Vec<&str> = route.path.split('/').collect();
        known.len() == parts.len()
            && known
                .iter()
                .zip(&parts)
                .all(|(k, p)| k == p || (k.starts_with('{') && !p.is_empty()))
    };
    let all: Vec<&'static str> = ROUTES.iter().filter(fits).map(|route| route.method).collect();
    (!all.is_empty()).then_some(all)
}

/// The table as a router, plus the web page.
pub(crate) fn router() -> Router<App> {
    let router = Router::new()
        .route("/", get(assets::page))
        .route("/assets/{name}", get(assets::part))
        .fallback(openapi::nothing)
        .method_not_allowed_fallback(openapi::no_method);
    ROUTES.iter().fold(router, |router, route| router.route(route.path, (route.handler)()))
}
