//! Names and words, as tests: a type name means one thing in its crate, and no text that a person
//! or a model reads uses a retired word.

use crate::tidy::files_below;
use crate::tidy_code::read;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeMap;

/// Names of the types that a source declares, in modules, functions and tests too.
fn types(stream: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for (n, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => types(group.stream(), found),
            TokenTree::Ident(word)
                if ["struct", "enum", "trait", "union"].iter().any(|w| word == w) =>
            {
                if let Some(TokenTree::Ident(name)) = tokens.get(n + 1) {
                    found.push(name.to_string());
                }
            }
            _ => {}
        }
    }
}

/// One implementation for each system, under one name.
const BY_SYSTEM: &[&str] = &["CheckpointStore", "Child", "Place", "Writer"];

#[test]
fn a_type_name_means_one_thing_in_its_crate() {
    let mut planted = Vec::new();
    types("struct A; mod b { enum A {} fn c() { struct D; } }".parse().unwrap(), &mut planted);
    assert_eq!(planted, ["A", "A", "D"]);
    let mut all: BTreeMap<(String, String), usize> = BTreeMap::new();
    for path in files_below(&["crates", "xtask/src"], &["rs"]) {
        let path_text = path.display().to_string();
        let Some((package, _)) = path_text.split_once("/src/") else { continue };
        let mut names = Vec::new();
        types(
            read(&path).parse().expect("a source that compiles can be split into tokens"),
            &mut names,
        );
        for name in names {
            *all.entry((package.to_owned(), name)).or_default() += 1;
        }
    }
    let twice: Vec<_> = all
        .iter()
        .filter(|((_, name), n)| **n > 1 && !BY_SYSTEM.contains(&name.as_str()))
        .collect();
    println!("figure: {} type names, {} of them declared twice in a crate", all.len(), twice.len());
    assert!(all.len() > 500 && twice.is_empty(), "{twice:#?}");
}

/// Words of the first version that have a conventional word now: ARCHITECTURE.md has the glossary.
const RETIRED_WORDS: &[&str] = &[
    "take back",
    "takes back",
    "taken back",
    "took back",
    "taking back",
    "go on",
    "goes on",
    "going on",
    "went on",
    "the talk",
    "the box",
    "a box",
    "boxed",
    "unboxed",
    "box level",
    "the door",
    "the hall",
    "the cage",
    "caged",
    "the tongue",
    "carried",
    "who is asked",
    "who are you",
    "at work",
    "among it",
    "among them",
    "is told",
    "was told",
    "are told",
    "were told",
    "is let",
    "are let",
    "whoever",
    "it is said",
    "what nobody",
    "nobody knows",
    "mended",
    "to its end",
    "so said",
    "brings",
];

/// The retired words of a text, each as a whole word.
fn retired_words(text: &str) -> Vec<&'static str> {
    let words: String = text
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() || c == '_' || c == '-' { c } else { ' ' })
        .collect();
    let words = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
    RETIRED_WORDS.iter().copied().filter(|word| words.contains(&format!(" {word} "))).collect()
}

/// The string literals of a source, as the program prints them; those of its tests are left out.
fn literals(stream: TokenStream, found: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut test = false;
    for token in &tokens {
        match token {
            TokenTree::Group(group) => {
                let text = group.stream().to_string();
                if test && group.delimiter() == Delimiter::Brace {
                    test = false;
                } else if text == "cfg (test)" || text == "test" {
                    test = true;
                } else {
                    literals(group.stream(), found);
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => test = false,
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.contains('"') {
                    let text = text
                        .split("\\\n")
                        .map(str::trim_start)
                        .collect::<String>()
                        .replace("\\n", " ");
                    found.push((literal.span().start().line, text));
                }
            }
            _ => {}
        }
    }
}

/// A line of TypeScript or Markdown without its comment and the code it quotes.
fn visible(line: &str) -> String {
    let line = line.trim();
    if line.starts_with("//") || line.starts_with('*') || line.starts_with("/*") {
        return String::new();
    }
    line.split('`').step_by(2).collect::<Vec<_>>().join(" x ")
}

#[test]
fn no_text_that_people_or_models_read_has_a_retired_word() {
    let source =
        "#[cfg(test)] mod t { const A: &str = \"boxed\"; } fn b() { print(\"taken \\\n  back\"); }";
    let mut planted = Vec::new();
    literals(source.parse().unwrap(), &mut planted);
    assert_eq!(
        planted.iter().flat_map(|(_, text)| retired_words(text)).collect::<Vec<_>>(),
        ["taken back"]
    );
    for word in RETIRED_WORDS {
        assert!(retired_words(&format!("It {word}.")).contains(word), "{word}");
    }
    assert!(retired_words("a check box, the boxes and an ongoing talk").is_empty());

    let mut found = Vec::new();
    let mut texts = 0;
    for path in files_below(&["crates"], &["rs"]) {
        let name = path.display().to_string();
        // The test kit is not shipped, and the keywords of other languages are no sentences.
        if !name.contains("/src/")
            || name.contains("dunnock-testkit")
            || name.ends_with("languages_table.rs")
        {
            continue;
        }
        let mut all = Vec::new();
        literals(
            read(&path).parse().expect("a source that compiles can be split into tokens"),
            &mut all,
        );
        texts += all.len();
        for (line, text) in all {
            found.extend(
                retired_words(&text)
                    .iter()
                    .map(|word| format!("{}:{line}: {word}: {text}", path.display())),
            );
        }
    }
    for path in files_below(&["web/src", "docs", "prompts"], &["ts", "tsx", "md", "txt", "json"]) {
        if path.display().to_string().contains(".test.") {
            continue;
        }
        for (n, line) in read(&path).lines().enumerate() {
            texts += 1;
            let text = visible(line);
            found.extend(
                retired_words(&text)
                    .iter()
                    .map(|word| format!("{}:{}: {word}: {text}", path.display(), n + 1)),
            );
        }
    }
    println!("figure: {} retired words, {texts} texts, {} found", RETIRED_WORDS.len(), found.len());
    assert!(texts > 5_000 && found.is_empty(), "{}", found.join("\n"));
}
