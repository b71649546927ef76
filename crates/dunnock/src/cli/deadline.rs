//! `--deadline TIME`: when a run has to end.

use crate::view::exit::usage;
use dunnock_proto::{At, Deadline};

/// Parses a time from now on, or a point in time.
pub(crate) fn parse(text: &str, now: At) -> anyhow::Result<Deadline> {
    let until = match text.strip_prefix('+') {
        Some(span) => after(span).and_then(|ms| now.0.checked_add(ms)),
        None => text.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond()),
    };
    match until {
        Some(until) if until > now.0 => Ok(Deadline { from: now, until: At(until) }),
        Some(_) => Err(usage(format!("--deadline {text}: that time has passed"))),
        None => Err(usage(format!(
            "--deadline {text}: use +900s, +15m, +2h or a time such as 2026-11-18T23:00:00Z"
        ))),
    }
}

/// Milliseconds of a span such as "15m".
fn after(span: &str) -> Option<i64> {
    let (number, unit) = span.split_at_checked(span.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return None,
    };
    number.parse::<u32>().ok().map(|number| i64::from(number) * seconds * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_times_are_read_and_others_refused() {
        let now = At(1_795_000_000_000);
        let until = |text: &str| parse(text, now).map(|deadline| deadline.until.0 - now.0).ok();
        for (text, ms) in [("+900s", 900_000), ("+15m", 900_000), ("+2h", 7_200_000)] {
            assert_eq!(until(text), Some(ms), "{text}");
        }
        assert_eq!(until("2036-11-18T23:00:00Z").map(|ms| ms > 0), Some(true));
        for text in
            ["", "+", "900s", "+s", "+0s", "+-1s", "+1d", "+1\u{e9}", "2020-01-01T00:00:00Z"]
        {
            assert!(parse(text, now).is_err(), "{text}");
        }
    }
}
