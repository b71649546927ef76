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
    key(Place::Anywhere, "esc", "stop what runs; leave a list"),
    key(Place::Anywhere, "esc esc", "open the list of steps to go back to"),
    key(Place::Anywhere, "ctrl-c", "stop what runs, or empty the field; twice: quit"),
    key(Place::Anywhere, "ctrl-d", "quit, if nothing is typed"),
    key(Place::Anywhere, "shift-tab", "who is asked: read, ask, edits, auto"),
    key(Place::Anywhere, "ctrl-z", "suspend; fg comes back"),
    key(Place::Anywhere, "ctrl-l", "draw again"),
    key(Place::Anywhere, "tab", "from the question to the field and back"),
    key(Place::Typing, "enter", "send; while it works: steer it at its next step"),
    key(Place::Typing, "alt-enter, ctrl-j", "a new line"),
    key(Place::Typing, "up, down", "lines, then earlier prompts"),
    key(Place::Typing, "ctrl-r", "search earlier prompts"),
    key(Place::Typing, "ctrl-g", "write in your editor ($VISUAL, $EDITOR)"),
    key(Place::Typing, "ctrl-v", "paste a picture from the clipboard"),
    key(Place::Typing, "/", "commands"),
    key(Place::Typing, "@", "files"),
    key(Place::Typing, "!", "run a command of your own; the model is not told"),
    key(Place::Typing, "ctrl-a, ctrl-e", "to the beginning, to the end of the line"),
    key(Place::Typing, "alt-b, alt-f", "a word back, a word on"),
    key(Place::Typing, "ctrl-w, ctrl-u, ctrl-k", "cut a word, to the beginning, to the end"),
    key(Place::Typing, "ctrl-y", "put back what was cut"),
    key(Place::Question, "y", "yes, once"),
    key(Place::Question, "n", "no"),
    key(Place::Question, "t", "no, with a note that the model is told"),
    key(Place::Question, "a", "always: shows the rule first"),
    key(Place::Question, "e", "explain"),
    key(Place::Question, "up, down, pgup, pgdn", "read what does not fit"),
    key(Place::Question, "left, right", "the question before, the next one"),
    key(Place::List, "up, down", "choose"),
    key(Place::List, "enter", "take it"),
    key(Place::List, "esc", "leave"),
];
