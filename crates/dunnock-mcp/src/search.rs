//! Finds tools by what they do: BM25 over names, descriptions and arguments.

use crate::catalogue::ToolDefinition;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How much a repeated word counts.
const K1: f64 = 1.2;
/// How much the length of a text counts.
const B: f64 = 0.6;
/// How often a word counts in a name, in a description and in an argument.
const WEIGHTS: [f64; 3] = [4.0, 1.0, 0.6];
/// Words that say nothing about a tool.
const NOISE: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in",
    "is", "it", "me", "my", "of", "on", "or", "please", "that", "the", "there", "this", "to",
    "tool", "use", "want", "what", "which", "with", "you",
];

/// Words that people use for each other when they look for a tool.
const SYNONYMS: &[&[&str]] = &[
    &["folder", "directory", "dir"],
    &["picture", "image", "photo", "screenshot", "media"],
    &["make", "create", "new", "add"],
    &["remove", "delete", "forget", "clear"],
    &["large", "big", "size"],
    &["change", "edit", "modify", "update", "replace"],
    &["show", "get", "read", "view", "list", "open"],
    &["find", "search", "look"],
    &["connect", "link", "relation"],
    &["run", "execute", "call"],
    &["page", "browser", "web", "site"],
    &["history", "log", "past"],
    &["send", "post", "write"],
    &["inside", "in", "content"],
];
/// How much a synonym counts.
const SYNONYM: f64 = 0.4;

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit<'a> {
    /// Its server.
    pub server: &'a str,
    /// The tool.
    pub tool: &'a ToolDefinition,
}

/// The tools that fit a query, best first. An exact name comes first.
#[must_use]
pub fn search<'a>(
    query: &str,
    tools: impl Iterator<Item = (&'a str, &'a ToolDefinition)>,
) -> Vec<SearchHit<'a>> {
    let texts: Vec<(&str, &ToolDefinition, BTreeMap<String, f64>)> =
        tools.map(|(server, tool)| (server, tool, words_of(server, tool))).collect();
    let wanted: BTreeSet<String> = words(query).collect();
    let count = texts.len() as f64;
    let total: f64 = texts.iter().flat_map(|(.., words)| words.values()).sum();
    let average = if count > 0.0 { (total / count).max(1.0) } else { 1.0 };
    let rarity = |word: &str| {
        let has = texts.iter().filter(|(.., words)| words.contains_key(word)).count() as f64;
        ((count - has + 0.5) / (has + 0.5) + 1.0).ln()
    };
    let rarities: Vec<(&str, f64)> = wanted
        .iter()
        .map(|word| (word.as_str(), 1.0))
        .chain(synonyms(&wanted).into_iter().map(|word| (word, SYNONYM)))
        .map(|(word, weight)| (word, weight * rarity(word)))
        .collect();
    let exact = query.trim().to_lowercase();
    let mut found: Vec<(f64, SearchHit<'_>)> = Vec::new();
    for (server, tool, words) in &texts {
        let length: f64 = words.values().sum();
        let score: f64 = rarities
            .iter()
            .filter_map(|(word, rarity)| {
                let times = words.get(*word)?;
                Some(rarity * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length / average)))
            })
            .sum();
        let name = tool.name.to_lowercase();
        let is_exact = exact == name || exact == format!("{}/{name}", server.to_lowercase());
        // Somebody who names a tool in a sentence means it.
        let is_named = name.len() > 3
            && exact.split(|c: char| c.is_whitespace() || "\"'`,".contains(c)).any(|w| w == name);
        let bonus = if is_exact {
            2_000.0
        } else if is_named {
            1_000.0
        } else {
            0.0
        };
        if score + bonus > 0.0 {
            found.push((score + bonus, SearchHit { server, tool }));
        }
    }
    found.sort_by(|(a, x), (b, y)| {
        b.total_cmp(a).then_with(|| (x.server, &x.tool.name).cmp(&(y.server, &y.tool.name)))
    });
    found.into_iter().map(|(_, found)| found).collect()
}

/// Other words for those of a query.
fn synonyms(wanted: &BTreeSet<String>) -> BTreeSet<&'static str> {
    let is_meant = |group: &&&[&str]| group.iter().any(|word| wanted.contains(stem(word)));
    let all = SYNONYMS.iter().filter(is_meant).flat_map(|group| group.iter());
    all.map(|word| stem(word)).filter(|word| !wanted.contains(*word)).collect()
}

/// The words of a tool, each with how much it counts there.
fn words_of(server: &str, tool: &ToolDefinition) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |text: &str, weight: f64| {
        for word in words(text) {
            *all.entry(word).or_default() += weight;
        }
    };
    let [name, description, argument] = WEIGHTS;
    add(&tool.name, name);
    add(server, name / 2.0);
    // What stands first says what a tool does; the rest is examples and rules.
    let first = tool.description.split_inclusive(['.', '\n']).next().unwrap_or_default();
    add(first, description * 2.0);
    add(tool.description.get(first.len()..).unwrap_or_default(), description);
    let arguments = tool.schema.get("properties").and_then(Value::as_object);
    for (key, value) in arguments.into_iter().flatten() {
        add(key, argument);
        add(value.get("description").and_then(Value::as_str).unwrap_or_default(), argument / 2.0);
    }
    all
}

/// The words of a text, in a form in which `list_issues`, `listIssues` and "lists issues" are
/// equal.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut all = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in text.chars().chain([' ']) {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            if !word.is_empty() {
                all.push(std::mem::take(&mut word));
            }
            was_lower = false;
        }
        if c.is_alphanumeric() {
            was_lower = c.is_lowercase() || c.is_numeric();
            word.extend(c.to_lowercase());
        }
    }
    all.into_iter()
        .filter(|word| !NOISE.contains(&word.as_str()))
        .map(|word| stem(&word).to_owned())
}

/// A word without its most usual endings.
fn stem(word: &str) -> &str {
    for ending in ["ations", "ation", "ings", "ing", "ies", "ed", "es", "s", "e", "y"] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() >= 3
        {
            return stem;
        }
    }
    word
}
