//! Everything the app knows. It changes in `update.rs` only, and `view.rs` draws it.

use crate::edit::Field;
use crate::history::History;
use crate::host::{HostEvent, HostRequest, Own, Welcome};
use crate::panel::Panel;
use crate::pick::Pick;
use crate::session::Session;
use crate::text::Line;
use crate::theme::Theme;
use dunnock_proto::{Hash, InputId, Mode};
use std::collections::{BTreeMap, VecDeque};

/// What happens to the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A key.
    Key(crossterm::event::KeyEvent),
    /// Something was pasted.
    Paste(String),
    /// The terminal has so many columns and rows.
    Resize(u16, u16),
    /// Whether the terminal has the focus.
    Focus(bool),
    /// Time has passed; comes only while something moves.
    Tick,
    /// From the program around.
    Told(HostEvent),
    /// What was written in the editor.
    Edited(Result<String, String>),
    /// A signal to end: terminal gone, or asked to.
    Hangup,
}

/// What the app wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Of the program around.
    Ask(HostRequest),
    /// To the clipboard, through the terminal.
    Copy(String),
    /// The person is needed: these words, where a terminal shows them.
    Call(String),
    /// Write this in the person's editor.
    Editor(String),
    /// Add this to the history that is kept.
    Remember(String),
    /// Play the tour.
    Demo,
    /// Stop until the shell lets us go on.
    Suspend,
    /// Draw everything below the scrollback again.
    Redraw,
    /// Leave.
    Quit,
}

/// Where keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// To the field.
    Field,
    /// To the question.
    Question,
}

/// A menu below the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu {
    /// Where the word begins that is completed.
    pub from: usize,
    /// What to put, and what is said about it.
    pub rows: Vec<(String, String)>,
    /// The one that is marked.
    pub chosen: usize,
}

/// A command of the person's own that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// What.
    pub command: String,
    /// Since when.
    pub began: u64,
    /// Its output so far.
    pub text: String,
}

/// A session that is being read from its beginning.
#[derive(Debug, Clone, Default)]
pub struct CatchUp {
    /// The last event that was there when it was opened.
    pub upto: u64,
    /// The last lines of it.
    pub lines: VecDeque<Line>,
    /// Lines before those.
    pub dropped: usize,
    /// Events of which no lines were made.
    pub unseen: u64,
    /// How long ago it last changed, if it is not new.
    pub resumed: Option<String>,
}

/// All of it.
pub struct State {
    /// Columns and rows.
    pub size: (u16, u16),
    /// Colours.
    pub theme: Theme,
    /// For screen readers: nothing is drawn twice.
    pub plain: bool,
    /// What was found at the start.
    pub welcome: Option<Welcome>,
    /// It was shown.
    pub welcomed: bool,
    /// The session.
    pub session: Session,
    /// Its past, while that is being read.
    pub catch_up: Option<CatchUp>,
    /// The field that the person types in.
    pub field: Field,
    /// What was typed before.
    pub history: History,
    /// The menu below the field.
    pub menu: Option<Menu>,
    /// The menu was closed for this text.
    pub menu_closed: Option<String>,
    /// The question that is on the screen.
    pub panel: Option<Panel>,
    /// Where keys go.
    pub focus: Focus,
    /// A list to choose from.
    pub pick: Option<Pick>,
    /// Lines that are done and wait to be written.
    pub out: Vec<Line>,
    /// One line of help that goes with the next key.
    pub hint: String,
    /// The person's own commands.
    pub own: Vec<Own>,
    /// Files of the workspace, once asked for.
    pub files: Option<Vec<String>>,
    /// The person's own command that runs.
    pub shell: Option<Shell>,
    /// Who is asked in the session that comes.
    pub mode: Option<Mode>,
    /// A session is being made for the first prompt.
    pub beginning: bool,
    /// Another session is being opened, or this one left: what is on the screen takes no orders.
    pub switching: bool,
    /// The answer that goes out next is for every session.
    pub everywhere: bool,
    /// Rules that are made for every session once their answer was taken.
    pub granting: BTreeMap<InputId, dunnock_proto::Rule>,
    /// Prompts that were sent and not yet taken, to be given back if they are refused.
    pub sent: BTreeMap<InputId, String>,
    /// What was typed while a session was being made.
    pub unsent: Vec<(String, Vec<String>)>,
    /// The terminal has the focus, as far as it says.
    pub focused: bool,
    /// Turns as time passes.
    pub tick: u64,
    /// When Esc and Ctrl-C were last pressed.
    pub last_esc: Option<u64>,
    /// As above.
    pub last_ctrl_c: Option<u64>,
    /// When work began that may call the person back.
    pub busy_since: Option<u64>,
    /// The tour plays.
    pub demo: bool,
    seed: [u8; 16],
    minted: u64,
}

impl State {
    /// At the beginning; `seed` makes the ids of orders.
    #[must_use]
    pub fn new(size: (u16, u16), theme: Theme, seed: [u8; 16]) -> Self {
        Self {
            size,
            theme,
            plain: false,
            welcome: None,
            welcomed: false,
            session: Session::default(),
            catch_up: None,
            field: Field::default(),
            history: History::default(),
            menu: None,
            menu_closed: None,
            panel: None,
            focus: Focus::Field,
            pick: None,
            out: Vec::new(),
            hint: String::new(),
            own: Vec::new(),
            files: None,
            shell: None,
            mode: None,
            beginning: false,
            switching: false,
            everywhere: false,
            granting: BTreeMap::new(),
            sent: BTreeMap::new(),
            unsent: Vec::new(),
            focused: true,
            tick: 0,
            last_esc: None,
            last_ctrl_c: None,
            busy_since: None,
            demo: false,
            seed,
            minted: 0,
        }
    }

    /// Columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        usize::from(self.size.0.max(20))
    }

    /// Too small to show what is decided on.
    #[must_use]
    pub fn cramped(&self) -> bool {
        self.size.0 < 20 || self.size.1 < 10
    }

    /// Something moves: time matters.
    #[must_use]
    pub fn moves(&self) -> bool {
        let at_work = self.session.working && self.session.questions.is_empty() && !self.session.carried;
        at_work || self.shell.is_some() || self.session.compacting
    }

    /// The question that keys answer.
    #[must_use]
    pub fn question(&self) -> Option<&crate::session::Question> {
        let panel = self.panel.as_ref()?;
        self.session.questions.iter().find(|q| q.id == panel.id)
    }

    /// A name for an order that no other has.
    pub(crate) fn mint(&mut self) -> InputId {
        self.minted += 1;
        let hash = Hash::of_parts(&[&self.seed, &self.minted.to_le_bytes()]);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.0[..16]);
        InputId::from_random(bytes)
    }

    /// Who is asked now.
    #[must_use]
    pub fn approvals(&self) -> Mode {
        match (&self.session.id, self.mode) {
            (Some(_), _) => self.session.config.mode,
            (None, Some(mode)) => mode,
            (None, None) => self.welcome.as_ref().and_then(|w| w.mode).unwrap_or(Mode::Auto),
        }
    }
}
