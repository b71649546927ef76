//! The structure of our crates: which modules import which, in how many layers, and in which cycles.
//!
//! Imports are read from the tokens of the source. A path through a re-export counts as an import
//! of the module that defines the name. Tests do not count.

use crate::tidy::{files_below, root};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module by its path in the crate; the crate root is empty.
type Module = Vec<String>;

/// Modules of a crate, and for each the modules that it imports.
#[derive(Debug, Default)]
pub(crate) struct Imports(BTreeMap<Module, BTreeSet<Module>>);

/// The paths that one file uses, and what it re-exports.
#[derive(Debug, Default)]
struct Uses {
    paths: Vec<Module>,
    /// The name that is visible here, and the path behind it. `*` stands for all names.
    exports: Vec<(String, Module)>,
}

/// Prints layers and cycles of every crate.
pub(crate) fn print() -> Result<(), String> {
    let mut rows = vec![format!("{:<18} {:>7} {:>6}  cycles", "crate", "modules", "layers")];
    for (name, imports) in all()? {
        let cycles: Vec<String> = imports
            .cycles()
            .iter()
            .map(|cycle| {
                let names: Vec<String> = cycle.iter().map(|module| module.join("::")).collect();
                format!("{} ({})", cycle.len(), names.join(", "))
            })
            .collect();
        let cycles = if cycles.is_empty() { "none".to_owned() } else { cycles.join("; ") };
        rows.push(format!("{name:<18} {:>7} {:>6}  {cycles}", imports.0.len(), imports.layers()));
    }
    crate::say(&rows.join("\n"));
    Ok(())
}

/// Prints the imports inside the cycles of one crate.
pub(crate) fn print_cycles(name: &str) -> Result<(), String> {
    let crates = all()?;
    let imports = crates.get(name).ok_or_else(|| format!("there is no crate {name}"))?;
    for cycle in imports.cycles() {
        for module in &cycle {
            let targets = imports.0[module].iter().filter(|target| cycle.contains(target));
            let targets: Vec<String> = targets.map(|target| target.join("::")).collect();
            crate::say(&format!("{} imports {}", module.join("::"), targets.join(", ")));
        }
        crate::say("");
    }
    Ok(())
}

/// The imports of every crate, by its name.
pub(crate) fn all() -> Result<BTreeMap<String, Imports>, String> {
    let mut crates = BTreeMap::new();
    let folders = std::fs::read_dir(root().join("crates")).map_err(|e| e.to_string())?;
    for folder in folders.flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        let mut sources = BTreeMap::new();
        for path in files_below(&[&format!("crates/{name}/src")], &["rs"]) {
            let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
            let below = root().join(format!("crates/{name}/src"));
            let Ok(inner) = path.strip_prefix(&below) else { continue };
            if !inner.starts_with("bin") {
                sources.insert(module(inner), text);
            }
        }
        crates.insert(name, Imports::of(&sources)?);
    }
    Ok(crates)
}

/// The module that a file holds.
fn module(file: &Path) -> Module {
    let mut names: Module =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        names.pop();
    }
    names
}

impl Imports {
    /// The imports of these sources.
    fn of(sources: &BTreeMap<Module, String>) -> Result<Self, String> {
        let mut uses = BTreeMap::new();
        for (module, text) in sources {
            let tokens: TokenStream =
                text.parse().map_err(|e| format!("{}: {e}", module.join("::")))?;
            let mut found = Uses::default();
            found.read(&tokens.into_iter().collect::<Vec<_>>(), module);
            uses.insert(module.clone(), found);
        }
        let mut imports = Self::default();
        for (module, found) in &uses {
            let targets = found.paths.iter().filter_map(|path| target(&uses, path, 0));
            let targets = targets.filter(|target| target != module).collect();
            imports.0.insert(module.clone(), targets);
        }
        Ok(imports)
    }

    /// Modules that import each other, directly or through others; the largest groups first.
    pub(crate) fn cycles(&self) -> Vec<Vec<Module>> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.0.keys().map(|module| (module, self.reaches(module))).collect();
        let mut cycles: Vec<Vec<Module>> = Vec::new();
        for module in self.0.keys().filter(|module| reached[module].contains(module)) {
            if cycles.iter().all(|cycle| !cycle.contains(module)) {
                let same = |other: &&Module| {
                    reached[module].contains(*other) && reached[*other].contains(module)
                };
                cycles.push(self.0.keys().filter(same).cloned().collect());
            }
        }
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
        cycles
    }

    /// The number of layers: the longest chain of imports, where a cycle is one layer.
    pub(crate) fn layers(&self) -> usize {
        let cycles = self.cycles();
        let group = |module: &Module| {
            let cycle = cycles.iter().find(|cycle| cycle.contains(module));
            cycle.map_or(module, |cycle| &cycle[0]).clone()
        };
        let mut heights: BTreeMap<Module, usize> = BTreeMap::new();
        // Each round adds at least one layer; there are at most as many as modules.
        for _ in 0..=self.0.len() {
            for (module, targets) in &self.0 {
                let below = targets.iter().filter(|target| group(target) != group(module));
                let height = 1 + below.filter_map(|t| heights.get(&group(t))).max().unwrap_or(&0);
                let known = heights.entry(group(module)).or_insert(0);
                *known = height.max(*known);
            }
        }
        heights.values().copied().max().unwrap_or(0)
    }

    fn reaches<'a>(&'a self, from: &'a Module) -> BTreeSet<&'a Module> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(module) = open.pop() {
            let new = self.0.get(module).into_iter().flatten();
            open.extend(new.filter(|target| seen.insert(*target)));
        }
        seen
    }
}

/// The module that defines what a path names, followed through re-exports.
fn target(uses: &BTreeMap<Module, Uses>, path: &[String], depth: usize) -> Option<Module> {
    let length = (0..=path.len()).rev().find(|n| uses.contains_key(&path[..*n]))?;
    let (module, rest) = path.split_at(length);
    let exports = uses.get(module).map(|found| found.exports.as_slice()).unwrap_or_default();
    if let (Some(name), true) = (rest.first(), depth < 8) {
        let named = exports.iter().find(|(export, _)| export == name);
        if let Some((_, behind)) = named {
            return target(uses, behind, depth + 1);
        }
        // A glob: whichever module it stands for cannot be told apart by name alone.
        if let [(_, behind)] =
            exports.iter().filter(|(export, _)| export == "*").collect::<Vec<_>>().as_slice()
        {
            return target(uses, behind, depth + 1);
        }
    }
    Some(module.to_vec())
}

impl Uses {
    fn read(&mut self, tokens: &[TokenTree], here: &Module) {
        let mut at = 0;
        while at < tokens.len() {
            if is_test(&tokens[at..]) {
                at = item_end(tokens, at);
                continue;
            }
            match &tokens[at] {
                TokenTree::Ident(word) if word == "use" => {
                    let public = is_public(&tokens[..at]);
                    let (mut path, mut next) = (Vec::new(), at + 1);
                    while matches!(&tokens.get(next), Some(TokenTree::Punct(p)) if p.as_char() == ':')
                    {
                        next += 1;
                    }
                    let end = next
                        + tokens[next..]
                            .iter()
                            .position(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ';'))
                            .unwrap_or(0);
                    self.tree(&tokens[next..end], &mut path, here, public);
                    at = end;
                }
                // A module in the same file: `super` is this one.
                TokenTree::Ident(word) if word == "mod" => {
                    if let Some([TokenTree::Ident(name), TokenTree::Group(body)]) =
                        tokens.get(at + 1..at + 3)
                    {
                        let inner: Module =
                            here.iter().cloned().chain([name.to_string()]).collect();
                        self.read(&body.stream().into_iter().collect::<Vec<_>>(), &inner);
                        at += 2;
                    }
                }
                TokenTree::Ident(word) if word == "crate" || word == "super" => {
                    let (path, next) = plain_path(&tokens[at..], here);
                    self.paths.extend(path);
                    at += next.max(1) - 1;
                }
                // `pub(in super::super)` says who may use an item; it uses nothing.
                TokenTree::Group(group) if is_scope(group) => {}
                TokenTree::Group(group) => {
                    self.read(&group.stream().into_iter().collect::<Vec<_>>(), here);
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Reads a tree of imports: `a::{b, c::D as E}`.
    fn tree(&mut self, tokens: &[TokenTree], path: &mut Module, here: &Module, public: bool) {
        let depth = path.len();
        let mut name = None;
        for token in tokens {
            match token {
                TokenTree::Ident(word) if word == "as" => name = Some(String::new()),
                TokenTree::Ident(word) => match &mut name {
                    Some(name) => *name = word.to_string(),
                    None => path.push(word.to_string()),
                },
                TokenTree::Punct(p) if p.as_char() == '*' => name = Some("*".into()),
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    let comma =
                        |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ',');
                    for part in inner.split(comma).filter(|part| !part.is_empty()) {
                        self.tree(part, path, here, public);
                    }
                    path.truncate(depth);
                    return;
                }
                _ => {}
            }
        }
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        if let Some(whole) = absolute(path, here) {
            if public {
                let name = name.or_else(|| whole.last().cloned()).unwrap_or_default();
                self.exports.push((name, whole.clone()));
            }
            self.paths.push(whole);
        }
        path.truncate(depth);
    }
}

/// A path in an expression or a type, and how many tokens it takes.
fn plain_path(tokens: &[TokenTree], here: &Module) -> (Option<Module>, usize) {
    let (mut path, mut at) = (Vec::new(), 0);
    while let Some(TokenTree::Ident(word)) = tokens.get(at) {
        path.push(word.to_string());
        at += 1;
        let colon =
            |n: usize| matches!(&tokens.get(n), Some(TokenTree::Punct(p)) if p.as_char() == ':');
        if !(colon(at) && colon(at + 1)) {
            break;
        }
        at += 2;
    }
    if path.len() < 2 {
        return (None, at);
    }
    (absolute(&path, here), at)
}

/// A path from the crate's root, if it stays in the crate. A relative one may name a child module.
fn absolute(path: &[String], here: &Module) -> Option<Module> {
    let mut whole = here.clone();
    let mut rest = path;
    match rest.first().map(String::as_str)? {
        "crate" => (whole, rest) = (Vec::new(), &rest[1..]),
        "super" => {
            while rest.first().is_some_and(|word| word == "super") {
                whole.pop();
                rest = &rest[1..];
            }
        }
        "self" => rest = &rest[1..],
        _ => {}
    }
    whole.extend(rest.iter().cloned());
    Some(whole)
}

/// Whether these parentheses limit the visibility of an item: `(in super::super)`.
fn is_scope(group: &proc_macro2::Group) -> bool {
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(word)) if word == "in")
}

/// Whether an item that is only compiled for tests begins here.
fn is_test(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(p), TokenTree::Group(group), ..]
        if p.as_char() == '#' && group.stream().to_string().replace(' ', "").starts_with("cfg(test"))
}

/// Where the item at `at` ends: after its body or its semicolon.
fn item_end(tokens: &[TokenTree], at: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(p) => p.as_char() == ';',
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    };
    tokens[at..].iter().position(ends).map_or(tokens.len(), |n| at + n + 1)
}

/// Whether the tokens before an import make it visible outside of its module.
fn is_public(before: &[TokenTree]) -> bool {
    match before {
        [.., TokenTree::Ident(word)] => word == "pub",
        [.., TokenTree::Ident(word), TokenTree::Group(_)] => word == "pub",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Imports {
        let sources = files
            .iter()
            .map(|(path, text)| (module(Path::new(path)), (*text).to_owned()))
            .collect();
        Imports::of(&sources).unwrap()
    }

    /// A longer cycle is a knot: no part of it can be understood, moved or tested alone.
    #[test]
    fn no_more_than_three_modules_import_each_other() {
        for (name, imports) in all().unwrap() {
            for cycle in imports.cycles() {
                assert!(cycle.len() <= 3, "{name}: {cycle:?}");
            }
        }
    }

    #[test]
    fn cycles_and_layers_are_found() {
        let found = imports(&[
            ("lib.rs", "mod a; mod b; mod c; mod d; pub use a::A; pub use c::deep::Deep as D;"),
            ("a.rs", "use crate::b::{B, self}; pub struct A;"),
            ("b.rs", "fn f() -> crate::c::C {}"),
            (
                "c/mod.rs",
                "mod deep; #[cfg(test)] mod tests { use crate::d::X; } fn g(_: crate::A) {}",
            ),
            ("c/deep.rs", "use super::C; pub(in crate::d) fn h() {}"),
            ("d.rs", "use crate::D; mod inner { use super::D; }"),
        ]);
        let names = |cycle: &Vec<Module>| cycle.iter().map(|m| m.join("::")).collect::<Vec<_>>();
        assert_eq!(found.cycles().iter().map(names).collect::<Vec<_>>(), [["a", "b", "c"]]);
        // deep imports the cycle, d imports deep, and the root re-exports both.
        assert_eq!(found.layers(), 4 - 1);
        let split =
            imports(&[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "")]);
        assert_eq!((split.cycles().len(), split.layers()), (0, 2));
    }
}
