//! Answers the requests of the terminal app and of the server.

pub(crate) mod environment;
pub(crate) mod login_host;
pub(crate) mod serve_host;
pub(crate) mod tui_host;
