//! Names, as tests: a type name means one thing in its crate.

use crate::tidy::files_below;
use crate::tidy_code::read;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;

/// Names of the types that a source declares, in modules, functions and tests too.
fn types(stream: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for (n, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => types(group.stream(), found),
            TokenTree::Ident(word) if ["struct", "enum", "trait", "union"].iter().any(|w| word == w) => {
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
        types(read(&path).parse().expect("a source that compiles can be split into tokens"), &mut names);
        for name in names {
            *all.entry((package.to_owned(), name)).or_default() += 1;
        }
    }
    let twice: Vec<_> = all.iter().filter(|((_, name), n)| **n > 1 && !BY_SYSTEM.contains(&name.as_str())).collect();
    println!("figure: {} type names, {} of them declared twice in a crate", all.len(), twice.len());
    assert!(all.len() > 500 && twice.is_empty(), "{twice:#?}");
}
