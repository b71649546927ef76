//! Every key. `/keys`, the docs and a test read this table.

/// A key and what it does.
#[derive(Debug, Clone, Copy)]
pub struct KeyHelp {
    /// The key's name.
    pub key: &'static str,
    /// Where it works.
    pub place: Place,
    /// What it does.
    pub about: &'static str,
}

/// Where a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Everywhere.
    Anywhere,
    /// While typing.
    Typing,
    /// While a question is shown.
    Question,
    /// In a list.
    List,
}

impl Place {
    /// The heading for this place.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anywhere => "anywhere",
            Self::Typing => "while typing",
            Self::Question => "at a question",
            Self::List => "in a list",
        }
    }
}

const fn key(place: Place, key: &'static str, about: &'static str) -> KeyHelp {
    KeyHelp { key, place, about }
}

/// All keys.
pub const KEYS: &[KeyHelp] = &[
    key(Place::Anywhere, "esc", "stop the task; close a list"),
    key(Place::Anywhere, "esc esc", "open the list of steps to go back to"),
    key(Place::Anywhere, "ctrl-c", "stop the task, or clear the input; twice: quit"),
    key(Place::Anywhere, "ctrl-d", "quit if the input is empty"),
    key(Place::Anywhere, "shift-tab", "approval mode: read, ask, edits, auto"),
    key(Place::Anywhere, "ctrl-o", "the whole output or diff of a call; left, right: other calls"),
    key(Place::Anywhere, "ctrl-z", "suspend; fg resumes"),
    key(Place::Anywhere, "ctrl-l", "redraw"),
    key(Place::Anywhere, "tab", "switch between question and input"),
    key(Place::Typing, "enter", "send; while it works: send with the next step"),
    key(Place::Typing, "alt-enter, ctrl-j", "new line"),
    key(Place::Typing, "up, down", "move by line, then to earlier prompts"),
    key(Place::Typing, "ctrl-r", "search earlier prompts"),
    key(Place::Typing, "ctrl-g", "open your editor ($VISUAL, $EDITOR)"),
    key(Place::Typing, "ctrl-v", "paste a picture from the clipboard"),
    key(Place::Typing, "/", "commands"),
    key(Place::Typing, "@", "files"),
    key(Place::Typing, "!", "run your own command; the model does not see it"),
    key(Place::Typing, "ctrl-a, ctrl-e", "start of line, end of line"),
    key(Place::Typing, "alt-b, alt-f", "word left, word right"),
    key(Place::Typing, "ctrl-w, ctrl-u, ctrl-k", "cut a word, to line start, to line end"),
    key(Place::Typing, "ctrl-y", "paste what was cut"),
    key(Place::Question, "y", "yes, once"),
    key(Place::Question, "n", "no"),
    key(Place::Question, "t", "no, with a note to the model"),
    key(Place::Question, "a", "always: shows the rule first"),
    key(Place::Question, "a enter", "always in this project"),
    key(Place::Question, "a g", "always in all projects"),
    key(Place::Question, "a s", "always in this session"),
    key(Place::Question, "w", "yes, with the whole network instead of named hosts"),
    key(Place::Question, "e", "explain"),
    key(Place::Question, "enter", "the key takes effect at once, not after half a second"),
    key(Place::Question, "other letters", "begin a message"),
    key(Place::Question, "up, down, pgup, pgdn", "scroll the question"),
    key(Place::Question, "left, right", "previous question, next question"),
    key(Place::List, "up, down", "move"),
    key(Place::List, "enter", "pick"),
    key(Place::List, "esc", "close"),
];
