//! Settings, rules and trust, and the files and folders they come from.

pub(crate) mod keys_table;
pub(crate) mod load;
pub(crate) mod money;
pub(crate) mod paths;
pub(crate) mod providers;
pub(crate) mod rules;
pub(crate) mod sandbox_settings;
pub(crate) mod saved_keys;
pub(crate) mod servers;
pub(crate) mod setting;
pub(crate) mod settings;
pub(crate) mod trust;
pub(crate) mod user_file;
