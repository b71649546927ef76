//! The terminal app: an interface to a session, drawn in the terminal's own scrollback.
//!
//! Of Dunnock it knows only `proto`: events and deltas arrive over a connection and commands go
//! back. It cannot tell whether this process or another drives the session. For everything else an
//! interface needs, it asks the program that hosts it (`host.rs`).
//!
//! Read `state.rs`, then `update.rs` (what happens) and `view.rs` (what is shown): both are pure.
//! `session.rs` folds events into finished lines and work in progress; `panel.rs` is a question;
//! `paint.rs` turns views into bytes; `run.rs` is the only file that waits.

mod calls;
mod code;
mod commands_table;
mod demo;
mod diff;
mod edit;
mod effort;
mod fuzzy;
mod history;
mod host;
mod host_events;
mod keep;
mod keys_table;
mod languages_table;
mod lines;
mod login;
mod markdown;
mod pager;
mod paint;
mod panel;
mod pick;
mod plain;
mod run;
mod screen;
mod session;
mod slash;
mod state;
mod stream;
mod text;
mod theme;
mod tools_gen;
mod update;
mod view;
pub mod words;

/// The reference page of keys and slash commands.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Keys and commands of the terminal app\n\nGenerated from the tables in the program \
         (`keys_table.rs`, `commands_table.rs`).\n",
    );
    let mut place = None;
    for key in KEYS {
        if place != Some(key.place) {
            place = Some(key.place);
            page.push_str(&format!("\n## Keys: {}\n\n| key | |\n|---|---|\n", key.place.name()));
        }
        page.push_str(&format!("| {} | {} |\n", key.key, key.about));
    }
    page.push_str("\n## Commands\n\n| command | |\n|---|---|\n");
    for command in COMMANDS {
        let name = format!("/{} {}", command.name, command.args);
        page.push_str(&format!("| `{}` | {} |\n", name.trim(), command.about));
    }
    page
}

pub use commands_table::{COMMANDS, Slash};
pub use host::{
    HostEvent, HostRequest, LoginEvent, LoginFault, LoginKey, LoginProvider, LoginRequest, Own,
    RewindPoint, RuleScope, SessionRow, TypedKey, Welcome,
};
pub use keep::Keep;
pub use keys_table::{KEYS, KeyHelp, Place};
pub use login::Login;
pub use pager::CallText;
pub use paint::ScreenPainter;
pub use panel::GUARD;
pub use plain::run as run_plain;
pub use run::{App, ExitState, FindProgram, Notify, run};
pub use session::Session;
pub use state::{Effect, Focus, Input, State};
pub use text::{Line, Span, Style, Tone, one_line, visible};
pub use theme::{Environment, THEMES, Theme};
pub use update::update;
pub use view::{View, view};
