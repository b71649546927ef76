//! Everything the app knows. Only `update.rs` changes it, and `view.rs` draws it.

use crate::edit::Field;
use crate::history::History;
use crate::host::{HostEvent, HostRequest, Own, RuleScope, Welcome};
use crate::login::Login;
use crate::pager::Pager;
use crate::panel::Panel;
use crate::pick::Pick;
use crate::session::Session;
use crate::text::Line;
use crate::theme::Theme;
use dunnock_proto::{Hash, InputId, Mode};
use std::collections::{BTreeMap, VecDeque};

/// An input to the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(crossterm::event::KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The terminal was resized to these columns and rows.
    Resize(u16, u16),
    /// The terminal gained or lost the focus.
    Focus(bool),
    /// Time has passed. Sent only while something is animated.
    Tick,
    /// A report of the host.
    Host(HostEvent),
    /// The text from the editor, or why it could not be edited.
    Edited(Result<String, String>),
    /// A signal to quit, or the terminal is gone.
    Hangup,
}

/// What `update` asks the runtime to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send this request to the host.
    Ask(HostRequest),
    /// Copy to the clipboard, through the terminal.
    Copy(String),
    /// Notify the user; terminals that support it show this text.
    Call(String),
    /// Open this text in the user's editor.
    Editor(String),
    /// Add this to the saved history.
    Remember(String),
    /// Play the tour.
    Demo,
    /// Suspend until the shell resumes us.
    Suspend,
    /// Redraw everything below the scrollback.
    Redraw,
    /// Quit.
    Quit,
}

/// Which part of the screen receives keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// The input field.
    Field,
    /// The question.
    Question,
}

/// A menu below the input field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu {
    /// Byte offset of the word being completed.
    pub from: usize,
    /// The text to insert, and its description.
    pub rows: Vec<(String, String)>,
    /// The selected row.
    pub chosen: usize,
}

/// The user's own shell command while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// The command line.
    pub command: String,
    /// When it started.
    pub began: u64,
    /// Its output so far.
    pub text: String,
}

/// A session whose past is being read.
#[derive(Debug, Clone, Default)]
pub struct CatchUp {
    /// The last event that existed when the session was opened.
    pub upto: u64,
    /// The last lines of the past.
    pub lines: VecDeque<Line>,
    /// Number of lines before those.
    pub dropped: usize,
    /// Number of events that produced no lines.
    pub unseen: u64,
    /// How long ago it last changed, if it is not new.
    pub resumed: Option<String>,
}

/// The state of the app.
pub struct State {
    /// Columns and rows.
    pub size: (u16, u16),
    /// Colours.
    pub theme: Theme,
    /// Whether this is the mode for screen readers, which draws nothing twice.
    pub plain: bool,
    /// What was detected at the start.
    pub welcome: Option<Welcome>,
    /// Whether the welcome screen was printed.
    pub welcomed: bool,
    /// The session.
    pub session: Session,
    /// Its past, while it is being read.
    pub catch_up: Option<CatchUp>,
    /// The input field.
    pub field: Field,
    /// Earlier prompts.
    pub history: History,
    /// The menu below the input field.
    pub menu: Option<Menu>,
    /// The text for which the menu was closed.
    pub menu_closed: Option<String>,
    /// The question on the screen.
    pub panel: Option<Panel>,
    /// Which part of the screen receives keys.
    pub focus: Focus,
    /// A list to choose from.
    pub pick: Option<Pick>,
    /// A model that is being set up.
    pub login: Login,
    /// The whole output of a call.
    pub pager: Option<Pager>,
    /// Finished lines, waiting to be written.
    pub out: Vec<Line>,
    /// A one-line hint, cleared by the next key.
    pub hint: String,
    /// The user's own slash commands.
    pub own: Vec<Own>,
    /// Files of the workspace, once requested.
    pub files: Option<Vec<String>>,
    /// The user's own shell command, while it runs.
    pub shell: Option<Shell>,
    /// The approval mode for the next session.
    pub mode: Option<Mode>,
    /// Whether a session is being created for the first prompt.
    pub beginning: bool,
    /// Whether another session is being opened or this one left. No commands are sent meanwhile.
    pub switching: bool,
    /// Where the rule applies that the next answer also saves.
    pub saves: Option<RuleScope>,
    /// Rules to save once their answer is accepted.
    pub granting: BTreeMap<InputId, (dunnock_proto::Rule, RuleScope)>,
    /// Prompts sent but not yet accepted; refused ones return to the input field.
    pub sent: BTreeMap<InputId, String>,
    /// Prompts typed while a session was being created or opened, with their images.
    pub unsent: Vec<(String, Vec<String>)>,
    /// Whether the terminal has the focus, as far as it reports that.
    pub focused: bool,
    /// Counts ticks, for the spinner.
    pub tick: u64,
    /// When Esc was last pressed.
    pub last_esc: Option<u64>,
    /// When Ctrl-C was last pressed.
    pub last_ctrl_c: Option<u64>,
    /// When the work started after which the user may be notified.
    pub busy_since: Option<u64>,
    /// Whether the tour is playing.
    pub demo: bool,
    seed: [u8; 16],
    minted: u64,
}

impl State {
    /// The initial state; command ids are derived from `seed`.
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
            login: Login::default(),
            pager: None,
            out: Vec::new(),
            hint: String::new(),
            own: Vec::new(),
            files: None,
            shell: None,
            mode: None,
            beginning: false,
            switching: false,
            saves: None,
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

    /// Width of the terminal, at least 20.
    #[must_use]
    pub fn columns(&self) -> usize {
        usize::from(self.size.0.max(20))
    }

    /// Whether the terminal is too small to show what has to be approved.
    #[must_use]
    pub fn cramped(&self) -> bool {
        self.size.0 < 20 || self.size.1 < 10
    }

    /// Whether anything on the screen changes with time.
    #[must_use]
    pub fn moves(&self) -> bool {
        let at_work = self.session.working
            && self.session.questions.is_empty()
            && !self.session.awaiting_reply;
        at_work || self.shell.is_some() || self.session.compacting
    }

    /// Whether ticks are needed: for what moves, and for a key that takes effect later.
    #[must_use]
    pub fn needs_ticks(&self) -> bool {
        self.moves() || self.panel.as_ref().is_some_and(|panel| panel.pressed.is_some())
    }

    /// Whether something covers the question on the screen.
    #[must_use]
    pub fn covered(&self) -> bool {
        self.pick.is_some() || self.pager.is_some() || self.login.is_open()
    }

    /// The open question on the screen.
    #[must_use]
    pub fn question(&self) -> Option<&crate::session::Question> {
        let panel = self.panel.as_ref()?;
        self.session.questions.iter().find(|q| q.id == panel.id)
    }

    /// A new unique id for a command.
    pub(crate) fn mint(&mut self) -> InputId {
        self.minted += 1;
        let hash = Hash::of_parts(&[&self.seed, &self.minted.to_le_bytes()]);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.0[..16]);
        InputId::from_random(bytes)
    }

    /// The approval mode in effect.
    #[must_use]
    pub fn approvals(&self) -> Mode {
        match (&self.session.id, self.mode) {
            (Some(_), _) => self.session.config.mode,
            (None, Some(mode)) => mode,
            (None, None) => self.welcome.as_ref().and_then(|w| w.mode).unwrap_or(Mode::Auto),
        }
    }
}
