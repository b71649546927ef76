//! Against real HTTP.
