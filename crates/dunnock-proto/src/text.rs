//! Numbers in sentences.

/// A number with its noun: "1 file", "2 files", "3 entries", "4 processes".
#[must_use]
pub fn count(n: impl TryInto<u64>, what: &str) -> String {
    let n: u64 = n.try_into().unwrap_or(u64::MAX);
    match what {
        _ if n == 1 => format!("1 {what}"),
        _ if what.ends_with('s') => format!("{n} {what}es"),
        _ => match what.strip_suffix('y') {
            Some(stem) => format!("{n} {stem}ies"),
            None => format!("{n} {what}s"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn nouns_follow_their_number() {
        let said = [(0, "line"), (1, "line"), (2, "more line"), (3, "entry"), (4, "process")];
        assert_eq!(
            said.map(|(n, what)| count(n, what)),
            ["0 lines", "1 line", "2 more lines", "3 entries", "4 processes"]
        );
        assert_eq!(count(1_u64, "entry"), "1 entry");
    }
}
