//! What was typed before: up and down through it, and a search.

use crate::edit::Field;

/// Entries that are kept.
pub const MOST: usize = 1000;

/// Earlier prompts, oldest first.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<String>,
    /// The entry that is shown, and what was being typed before.
    shown: Option<(usize, Field)>,
}

impl History {
    /// With these, oldest first.
    #[must_use]
    pub fn of(mut entries: Vec<String>) -> Self {
        let over = entries.len().saturating_sub(MOST);
        entries.drain(..over);
        Self { entries, shown: None }
    }

    /// All of it, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Something was sent. What was just sent is not kept twice.
    pub fn add(&mut self, text: &str) {
        self.shown = None;
        if self.entries.last().is_none_or(|last| last != text) && !text.trim().is_empty() {
            self.entries.push(text.to_owned());
            let over = self.entries.len().saturating_sub(MOST);
            self.entries.drain(..over);
        }
    }

    /// The one before what is shown; what was being typed is kept for the way back.
    pub fn older(&mut self, now: &Field) -> Option<Field> {
        let at = match &self.shown {
            Some((at, _)) => at.checked_sub(1)?,
            None => self.entries.len().checked_sub(1)?,
        };
        let typed = self.shown.take().map_or_else(|| now.clone(), |(_, typed)| typed);
        self.shown = Some((at, typed));
        self.entries.get(at).map(|text| Field::holding(text))
    }

    /// The one after; at the end, what was being typed.
    pub fn newer(&mut self) -> Option<Field> {
        let (at, typed) = self.shown.take()?;
        match self.entries.get(at + 1) {
            Some(text) => {
                self.shown = Some((at + 1, typed));
                Some(Field::holding(text))
            }
            None => Some(typed),
        }
    }

    /// Something else was typed: up begins at the newest again.
    pub fn leave(&mut self) {
        self.shown = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_and_down_walk_and_come_back_to_what_was_typed() {
        let mut history = History::of(vec!["one".into(), "two".into()]);
        let typed = Field::holding("half");
        assert_eq!(history.older(&typed).unwrap().text(), "two");
        assert_eq!(history.older(&typed).unwrap().text(), "one");
        assert!(history.older(&typed).is_none());
        assert_eq!(history.newer().unwrap().text(), "two");
        assert_eq!(history.newer().unwrap().text(), "half");
        assert!(history.newer().is_none());
    }

    /// Holds T4: at most 1,000 entries (in memory).
    #[test]
    fn at_most_a_thousand_are_kept() {
        let mut history = History::default();
        (0..1500).for_each(|n| history.add(&n.to_string()));
        history.add("1499");
        assert_eq!(history.entries().len(), MOST);
        assert_eq!(history.entries().last().map(String::as_str), Some("1499"));
        assert_eq!(history.entries().first().map(String::as_str), Some("500"));
    }
}
