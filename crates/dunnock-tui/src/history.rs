//! Earlier prompts, for the up and down keys and for search.

use crate::edit::Field;

/// The most entries that are kept.
pub const MOST: usize = 1000;

/// Earlier prompts, oldest first.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<String>,
    /// The entry being shown, and the text that was being typed before.
    shown: Option<(usize, Field)>,
}

impl History {
    /// From these entries, oldest first. Drops the oldest beyond [`MOST`].
    #[must_use]
    pub fn of(mut entries: Vec<String>) -> Self {
        let over = entries.len().saturating_sub(MOST);
        entries.drain(..over);
        Self { entries, shown: None }
    }

    /// All entries, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Adds a sent prompt, unless it repeats the last one.
    pub fn add(&mut self, text: &str) {
        self.shown = None;
        if self.entries.last().is_none_or(|last| last != text) && !text.trim().is_empty() {
            self.entries.push(text.to_owned());
            let over = self.entries.len().saturating_sub(MOST);
            self.entries.drain(..over);
        }
    }

    /// The entry before the one shown. Remembers the text being typed, for [`Self::newer`].
    pub fn older(&mut self, now: &Field) -> Option<Field> {
        let at = match &self.shown {
            Some((at, _)) => at.checked_sub(1)?,
            None => self.entries.len().checked_sub(1)?,
        };
        let typed = self.shown.take().map_or_else(|| now.clone(), |(_, typed)| typed);
        self.shown = Some((at, typed));
        self.entries.get(at).map(|text| Field::holding(text))
    }

    /// The entry after the one shown; after the last one, the text that was being typed.
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

    /// Call this when the text was edited: the next [`Self::older`] starts at the newest entry
    /// again.
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
