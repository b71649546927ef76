//! Fuzzy search.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// The indices of the best matches in `all`, best first, at most `most`. Without a pattern, the
/// first ones.
#[must_use]
pub fn best<'a>(
    typed: &str,
    all: impl Iterator<Item = &'a str>,
    most: usize,
    paths: bool,
) -> Vec<usize> {
    if typed.is_empty() {
        return (0..all.take(most).count()).collect();
    }
    let config = if paths { Config::DEFAULT.match_paths() } else { Config::DEFAULT };
    let mut matcher = Matcher::new(config);
    let pattern = Pattern::parse(typed, CaseMatching::Smart, Normalization::Smart);
    let mut letters = Vec::new();
    let mut found: Vec<(u32, usize, usize)> = all
        .enumerate()
        .filter_map(|(at, text)| {
            let score = pattern.score(Utf32Str::new(text, &mut letters), &mut matcher)?;
            Some((score, text.len(), at))
        })
        .collect();
    // By score, then by length, then by position.
    found.sort_by_key(|(score, length, at)| (std::cmp::Reverse(*score), *length, *at));
    found.into_iter().take(most).map(|(.., at)| at).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_few_letters_find_a_file() {
        let files = ["src/main.rs", "docs/models.md", "src/model/mod.rs", "tests/dates.rs"];
        assert_eq!(super::best("dat", files.into_iter(), 9, true), [3]);
        assert_eq!(super::best("srcmod", files.into_iter(), 9, true)[0], 2);
        assert_eq!(super::best("", files.into_iter(), 2, true), [0, 1]);
        assert!(super::best("zzz", files.into_iter(), 2, true).is_empty());
    }
}
