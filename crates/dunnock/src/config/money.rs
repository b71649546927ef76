//! Parses budgets and prices.

use dunnock_proto::{Budget, Price};

/// An amount of money, in millionths of a US dollar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Money {
    pub(crate) micros: u64,
}

/// Parses an amount of money, such as `20usd`, and nothing else.
pub(crate) fn money(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not an amount of money; write 20usd");
    match budget(text) {
        Ok(Budget { micros: Some(micros), tokens: None, ms: None }) => Ok(micros),
        Ok(_) | Err(_) => Err(wrong()),
    }
}

/// Parses `provider/model: 1.25 in, 0.125 cached, 10 out`. Without a price, cached and written
/// tokens cost as much as input.
pub(crate) fn price(text: &str) -> Result<(String, Price), String> {
    let wrong = || {
        format!("{text:?} is not a price; write \"provider/model: 1.25 in, 0.125 cached, 10 out\"")
    };
    let (model, rest) = text.rsplit_once(':').ok_or_else(wrong)?;
    let model = model.trim();
    let (mut input, mut cached, mut written, mut output) = (None, None, None, None);
    for part in rest.split(',') {
        let (number, word) = part.trim().split_once(' ').ok_or_else(wrong)?;
        let usd: f64 = number.parse().map_err(|_| wrong())?;
        if !(0.0..1e9).contains(&usd) {
            return Err(wrong());
        }
        let place = match word.trim() {
            "in" => &mut input,
            "cached" => &mut cached,
            "written" => &mut written,
            "out" => &mut output,
            _ => return Err(wrong()),
        };
        *place = Some((usd * 1e6).round() as u64);
    }
    let (Some(input), Some(output), Some(_)) = (input, output, model.split_once('/')) else {
        return Err(wrong());
    };
    let price =
        Price { input, output, cached: cached.unwrap_or(input), written: written.unwrap_or(input) };
    Ok((model.to_owned(), price))
}

/// Parses `2usd`, `200ktok`, `10min`, or several separated by commas.
pub(crate) fn budget(text: &str) -> Result<Budget, String> {
    let mut budget = Budget::default();
    for part in text.split(',').map(str::trim) {
        let at = part.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(part.len());
        let (number, unit) = part.split_at(at);
        let number: f64 = number
            .parse()
            .map_err(|_| format!("{part:?} is not a budget; write 2usd, 200ktok or 10min"))?;
        let scaled = |by: f64| {
            let n = number * by;
            if (1.0..1e18).contains(&n) {
                Ok(n.round() as u64)
            } else {
                Err(format!("the budget {part:?} is too small or too large"))
            }
        };
        match unit {
            "usd" => budget.micros = Some(scaled(1e6)?),
            "tok" => budget.tokens = Some(scaled(1.0)?),
            "ktok" => budget.tokens = Some(scaled(1e3)?),
            "mtok" => budget.tokens = Some(scaled(1e6)?),
            "s" => budget.ms = Some(scaled(1e3)?),
            "min" => budget.ms = Some(scaled(60e3)?),
            "h" => budget.ms = Some(scaled(3600e3)?),
            _ => return Err(format!("{part:?} is not a budget; write 2usd, 200ktok or 10min")),
        }
    }
    Ok(budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_money_tokens_and_time() {
        assert_eq!(budget("2.5usd").unwrap().micros, Some(2_500_000));
        let both = budget("200ktok, 10min").unwrap();
        assert_eq!((both.tokens, both.ms, both.micros), (Some(200_000), Some(600_000), None));
        assert!(budget("0tok").is_err() && budget("10").is_err() && budget("min").is_err());
    }

    #[test]
    fn prices_name_what_they_are_for() {
        let (model, known) = price("openai/gpt-5: 1.25 in, 0.125 cached, 10 out").unwrap();
        assert_eq!(
            (model.as_str(), known.input, known.cached),
            ("openai/gpt-5", 1_250_000, 125_000)
        );
        assert_eq!(
            (known.output, known.written),
            (10_000_000, 1_250_000),
            "what goes into a cache costs as the rest, unless said"
        );
        assert_eq!(
            price("ollama/*: 0 in, 0 out").unwrap().1,
            Price { input: 0, cached: 0, output: 0, written: 0 }
        );
        for wrong in [
            "gpt-5: 1 in, 2 out",
            "a/b: 1 in",
            "a/b: x in, 1 out",
            "a/b: -1 in, 1 out",
            "a/b",
            "a/b: 1 in, 2 up",
            "a/b: 1in, 2out",
        ] {
            assert!(price(wrong).is_err(), "{wrong}");
        }
        assert_eq!(money("20usd"), Ok(20_000_000));
        assert!(money("20ktok").is_err() && money("1usd, 5min").is_err() && money("0usd").is_err());
    }
}
