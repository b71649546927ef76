//! Totals over events: steps, tokens, cost, checks; and the verdict on the work.

use crate::view::exit::Freshness;
use crate::view::output;
use dunnock_core::State;
use dunnock_proto::{
    Baseline, CallId, EndReason, Event, FinalArgs, Finished, Outcome, Part, Price, Proof, Tree,
    Usage, VerifyArgs,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Whether the work was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Every check passed, on the current files.
    Proven,
    /// A check failed.
    Failed,
    /// Nothing was checked, or a check did not finish.
    Unverified,
    /// Every check passed, but the files have changed since.
    Stale,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Proven => "proven",
            Self::Failed => "failed",
            Self::Unverified => "unverified",
            Self::Stale => "stale",
        })
    }
}

/// Tokens, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) usage: Usage,
    pub(crate) micros: u64,
    /// The price of part of the usage is unknown.
    pub(crate) unknown: bool,
}

impl Cost {
    pub(crate) fn add(&mut self, usage: &Usage, price: Option<Price>) {
        self.usage += *usage;
        self.micros += price.map_or(0, |price| price.of(usage));
        self.unknown |= price.is_none() && !usage.is_nothing();
    }
    pub(crate) fn and(&mut self, more: &Self) {
        self.usage += more.usage;
        self.micros += more.micros;
        self.unknown |= more.unknown;
    }
    /// US dollars, if the price of all usage is known.
    pub(crate) fn usd(&self) -> Option<f64> {
        (!self.unknown && !self.usage.is_nothing()).then_some(self.micros as f64 / 1e6)
    }
    /// The cost as text: an unknown price is never shown as 0.
    pub(crate) fn money(&self) -> String {
        self.usd().map_or_else(|| "price unknown".into(), |_| output::usd(self.micros))
    }
    /// The tokens as text.
    pub(crate) fn tokens(&self) -> String {
        let used = self.usage;
        if used.input == 0 && used.output == 0 {
            return "tokens unknown".into();
        }
        let some = |n: u64, what: &str| {
            if n > 0 { format!(" ({} {what})", output::number(n)) } else { String::new() }
        };
        let (input, output) = (output::number(used.input), output::number(used.output));
        format!(
            "{input} tokens in{}, {output} out{}",
            some(used.cached, "cached"),
            some(used.reasoning, "reasoning")
        )
    }
}

/// One run of one check.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub(crate) call: CallId,
    pub(crate) tried: u32,
    pub(crate) command: String,
    pub(crate) end: Option<Finished>,
}

impl Check {
    pub(crate) fn passed(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.outcome == Outcome::Done)
    }
    /// The state of the files it checked.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        self.end.as_ref().and_then(|end| end.checked_tree.as_ref().or(end.tree.as_ref()))
    }
}

/// Totals since the last prompt, and of the whole session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u32,
    pub(crate) cost: Cost,
    /// Cost of the whole session.
    pub(crate) total: Cost,
    pub(crate) all_steps: u32,
    pub(crate) began: i64,
    pub(crate) ended: i64,
    /// The answer shown to the user.
    pub(crate) answer: String,
    /// Every check since the prompt, of all tries.
    pub(crate) tries: Vec<Check>,
    /// Results of the checks before the work.
    pub(crate) before: Vec<Baseline>,
    /// A note on those results.
    pub(crate) before_note: Option<String>,
    /// The answer came in a tool call, not as text.
    pub(crate) by_call: bool,
    price: Option<Price>,
    model: String,
    rests: bool,
}

impl Tally {
    pub(crate) fn add(&mut self, at: i64, event: &Event) {
        match event {
            Event::Created(e) => {
                (self.price, self.model) = (e.config.price, e.config.model.clone())
            }
            Event::Forked(e) => (self.price, self.model) = (e.config.price, e.config.model.clone()),
            Event::Configured(e) => self.configured(e.set.model.as_ref(), e.set.price),
            Event::Moved(e) if !e.proven => self.tries.clear(),
            // Restart the count of checks, as the session does.
            Event::Prompted(_) | Event::Continued(_) if !self.rests && self.began != 0 => {
                self.tries.clear()
            }
            Event::Prompted(_) | Event::Continued(_) => {
                *self = Self {
                    began: at,
                    total: self.total,
                    all_steps: self.all_steps,
                    price: self.price,
                    model: std::mem::take(&mut self.model),
                    before: std::mem::take(&mut self.before),
                    before_note: self.before_note.take(),
                    ..Self::default()
                };
            }
            Event::StepStarted(_) => {
                self.steps += 1;
                self.all_steps += 1;
            }
            Event::StepFailed(e) => {
                self.used(&e.usage);
                if e.retry_at.is_some() {
                    // It is sent again, and counts once.
                    self.steps = self.steps.saturating_sub(1);
                    self.all_steps = self.all_steps.saturating_sub(1);
                }
            }
            Event::Compacted(e) => self.used(&e.usage),
            Event::CompactionFailed(e) => self.used(&e.usage),
            Event::Answered(e) => {
                self.used(&e.usage);
                // If the server reports no usage, the cost is unknown.
                self.cost.unknown |= e.usage.is_nothing();
                self.total.unknown |= e.usage.is_nothing();
                self.answered(&e.parts);
            }
            Event::Baselined(e) => {
                self.before.clone_from(&e.checks);
                self.before_note.clone_from(&e.note);
            }
            Event::CheckCalled(e) => {
                let command =
                    VerifyArgs::parse(&e.args).map_or_else(|_| e.args.to_string(), |a| a.command);
                self.tries.push(Check { call: e.call, tried: e.tried, command, end: None });
            }
            Event::Finished(e) => {
                if let Some(check) = self.tries.iter_mut().find(|c| c.call == e.call) {
                    check.end = Some(e.clone());
                }
            }
            Event::Ended(_) => self.rests = true,
            _ => {}
        }
        self.ended = at;
    }

    fn configured(&mut self, model: Option<&String>, price: Option<Option<Price>>) {
        match (model, price) {
            (_, Some(price)) => self.price = price,
            (Some(model), None) if *model != self.model => self.price = None,
            (_, None) => {}
        }
        if let Some(model) = model {
            self.model.clone_from(model);
        }
    }

    fn used(&mut self, usage: &Usage) {
        self.cost.add(usage, self.price);
        self.total.add(usage, self.price);
    }

    /// The cost of one request at the current price.
    pub(crate) fn cost_of(&self, usage: &Usage) -> Cost {
        let mut cost = Cost::default();
        cost.add(usage, self.price);
        cost
    }

    fn answered(&mut self, parts: &[Part]) {
        let (said, calls) = (Part::words(parts), Part::calls(parts).next().is_some());
        let mut last = Part::calls(parts).filter(|call| call.tool == "final_output");
        let last = last.next().and_then(|call| FinalArgs::parse(&call.args).ok());
        self.by_call = last.as_ref().is_some_and(|last| !last.answer.is_empty());
        match last {
            Some(last) if !last.answer.is_empty() => self.answer = last.answer.to_string(),
            Some(_) => self.answer = said,
            None if !calls => self.answer = said,
            None => {}
        }
    }

    /// The checks of the last try.
    pub(crate) fn checks(&self) -> impl Iterator<Item = &Check> {
        let last = self.tries.last().map_or(0, |check| check.tried);
        self.tries.iter().filter(move |check| check.tried == last)
    }

    /// Whether a check both passed and failed on the same files.
    pub(crate) fn flaky(&self, command: &str) -> bool {
        let runs =
            || self.tries.iter().filter(|check| check.command == command && check.tree().is_some());
        runs().any(|a| runs().any(|b| a.tree() == b.tree() && a.passed() != b.passed()))
    }

    /// The result of a check before the work.
    pub(crate) fn before(&self, command: &str) -> Option<&Baseline> {
        self.before.iter().find(|check| check.command == command)
    }

    /// The states of the files that the last checks verified; `None` if one of them is not
    /// recorded.
    pub(crate) fn proven_trees(&self) -> Option<Vec<&Tree>> {
        let mut trees = self.checks().map(Check::tree).collect::<Option<Vec<&Tree>>>()?;
        trees.dedup();
        Some(trees)
    }

    pub(crate) fn verdict(&self, s: &State, fresh: Freshness) -> Verdict {
        let cut = self
            .checks()
            .any(|check| check.end.as_ref().is_none_or(|end| end.outcome == Outcome::Interrupted));
        match s.proof {
            _ if fresh == Freshness::Stale => Verdict::Stale,
            // Every check passed, but changed files on every run.
            Proof::Proven if s.last.as_deref() == Some(&EndReason::Unproven) => Verdict::Stale,
            Proof::Proven | Proof::Failed if cut || self.tries.is_empty() => Verdict::Unverified,
            Proof::Proven => Verdict::Proven,
            Proof::Failed => Verdict::Failed,
            Proof::None => Verdict::Unverified,
        }
    }

    /// The last line of a run: proof, steps, time, tokens, cost.
    pub(crate) fn closing(&self, s: &State, word: &str, fresh: Freshness) -> String {
        let name = |check: &Check| {
            let failed =
                self.before(&check.command).is_some_and(|before| before.outcome != Outcome::Done);
            let notes = [(failed, "it failed before"), (self.flaky(&check.command), "flaky")];
            let notes: Vec<&str> =
                notes.iter().filter(|(is, _)| *is).map(|(_, note)| *note).collect();
            let notes =
                if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
            format!("`{}`{notes}", output::one_line(&check.command))
        };
        let commands: Vec<String> = self.checks().map(name).collect();
        let commands = commands.join(", ");
        let proof = match self.verdict(s, fresh) {
            Verdict::Stale if s.last.as_deref() == Some(&EndReason::Unproven) => {
                format!("proof stale: {commands} changes files each time")
            }
            Verdict::Stale => format!("proof stale: files changed after {commands}"),
            Verdict::Proven => format!("proven by {commands}"),
            Verdict::Failed => {
                let failed: Vec<String> =
                    self.checks().filter(|check| !check.passed()).map(name).collect();
                format!("not proven: {} failed", failed.join(", "))
            }
            Verdict::Unverified if s.config.verify.is_empty() => "not checked (no --verify)".into(),
            Verdict::Unverified => "not checked".into(),
        };
        let ms = u64::try_from(self.ended - self.began).unwrap_or(0);
        let steps = dunnock_proto::count(self.steps, "step");
        let (tokens, money) = (self.cost.tokens(), self.cost.money());
        format!("{word} · {proof} · {steps} · {} · {tokens} · {money}", output::took(ms))
    }
}

/// The end of an output: the last lines of a check say the most.
pub(crate) fn tail(text: &str, most: usize) -> String {
    let text = text.trim_end();
    let from = text.ceil_char_boundary(text.len().saturating_sub(most));
    match from {
        0 => text.to_owned(),
        _ => format!("[...]{}", text.get(from..).unwrap_or_default()),
    }
}
