//! Compares the splitter with an independent parser, `brush-parser`.
//!
//! Where ours says that it understands a line, both must see the same commands with the same words.
//! Where the other sees what runs commands out of sight, ours must say that it does not understand
//! the line. The lines are those of the security cases and of `fixtures/shell/lines.jsonl`.

use super::words::{CommandLine, Simple, split};
use brush_parser::ast::{
    AndOr, AndOrList, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList,
    IoFileRedirectTarget, IoRedirect, Pipeline, RedirectList, SimpleCommand, Word,
};
use brush_parser::word::{
    self, BraceExpressionOrText, ParameterExpr, WordPiece, WordPieceWithSource,
};
use brush_parser::{
    ParserOptions, SourceInfo, TokenizerOptions, parse_tokens, tokenize_str_with_options,
};

/// A line as the other parser reads it.
#[derive(Debug, Default)]
struct Reading {
    commands: Vec<Parsed>,
    /// It has a substitution, arithmetic or a function: commands that are not in the list.
    hides: bool,
    /// It has a test in double brackets, which ours reads as ordinary words.
    tests: bool,
}

/// A simple command, or the words before the body of a loop.
#[derive(Debug, Default)]
struct Parsed {
    words: Vec<Meaning>,
    sets: usize,
    files: usize,
}

/// What a word means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Meaning {
    /// Exactly this text.
    Text(String),
    /// The other parser does not resolve it: escapes, or a word that it cannot read.
    Unread,
    /// Known only at run time.
    Expanded,
}

fn text(text: &str) -> Meaning {
    Meaning::Text(text.into())
}

impl Reading {
    fn of(line: &str) -> Result<Self, String> {
        let tokens = TokenizerOptions { enable_extended_globbing: false, ..Default::default() };
        let tokens = tokenize_str_with_options(line, &tokens).map_err(|e| e.to_string())?;
        // An empty line has no commands.
        if tokens.is_empty() {
            return Ok(Self::default());
        }
        let options = ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() };
        let source = SourceInfo { source: String::new() };
        let program = parse_tokens(&tokens, &options, &source).map_err(|e| e.to_string())?;
        let mut reading = Self::default();
        program.complete_commands.iter().for_each(|list| reading.list(list));
        Ok(reading)
    }

    fn list(&mut self, list: &CompoundList) {
        list.0.iter().for_each(|item| self.and_or(&item.0));
    }

    fn and_or(&mut self, list: &AndOrList) {
        self.pipeline(&list.first);
        for AndOr::And(pipeline) | AndOr::Or(pipeline) in &list.additional {
            self.pipeline(pipeline);
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        pipeline.seq.iter().for_each(|command| self.command(command));
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, files) => {
                self.compound(compound);
                self.files_of(files.as_ref());
            }
            Command::Function(_) => self.hides = true,
            Command::ExtendedTest(_) => self.tests = true,
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(_) | CompoundCommand::ArithmeticForClause(_) => {
                self.hides = true;
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.0),
            CompoundCommand::Subshell(shell) => self.list(&shell.0),
            CompoundCommand::ForClause(each) => {
                let mut words = vec![text("for"), text(&each.variable_name)];
                if let Some(values) = &each.values {
                    words.push(text("in"));
                    words.extend(values.iter().map(|value| self.word(value)));
                }
                self.commands.push(Parsed { words, ..Parsed::default() });
                self.list(&each.body.0);
            }
            CompoundCommand::CaseClause(case) => {
                let mut words = vec![text("case"), self.word(&case.value), text("in")];
                for item in &case.cases {
                    for pattern in &item.patterns {
                        words.push(self.word(pattern));
                        self.commands.push(Parsed { words, ..Parsed::default() });
                        words = Vec::new();
                    }
                    item.cmd.iter().for_each(|list| self.list(list));
                }
                if !words.is_empty() {
                    self.commands.push(Parsed { words, ..Parsed::default() });
                }
            }
            CompoundCommand::IfClause(branch) => {
                self.list(&branch.condition);
                self.list(&branch.then);
                for other in branch.elses.iter().flatten() {
                    other.condition.iter().for_each(|list| self.list(list));
                    self.list(&other.body);
                }
            }
            CompoundCommand::WhileClause(repeat) | CompoundCommand::UntilClause(repeat) => {
                self.list(&repeat.0);
                self.list(&repeat.1.0);
            }
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        let mut parsed = Parsed::default();
        let before = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let after = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        before.for_each(|item| self.item(item, &mut parsed));
        if let Some(name) = &simple.word_or_name {
            let name = self.word(name);
            parsed.words.push(name);
        }
        after.for_each(|item| self.item(item, &mut parsed));
        // A here-document alone is no command.
        if !parsed.words.is_empty() || parsed.sets + parsed.files > 0 {
            self.commands.push(parsed);
        }
    }

    fn item(&mut self, item: &Item, parsed: &mut Parsed) {
        match item {
            Item::IoRedirect(redirect) => parsed.files += self.redirect(redirect),
            Item::Word(word) => {
                let word = self.word(word);
                parsed.words.push(word);
            }
            // Only in front of the program it sets a variable for it.
            Item::AssignmentWord(_, word) => {
                let meaning = self.word(word);
                match parsed.words.is_empty() {
                    true => parsed.sets += 1,
                    false => parsed.words.push(meaning),
                }
            }
            Item::ProcessSubstitution(..) => {
                self.hides = true;
                parsed.words.push(Meaning::Expanded);
            }
        }
    }

    fn files_of(&mut self, list: Option<&RedirectList>) {
        let files = list.into_iter().flat_map(|list| &list.0).map(|r| self.redirect(r)).sum();
        if files > 0 {
            self.commands.push(Parsed { files, ..Parsed::default() });
        }
    }

    /// How many files the shell opens.
    fn redirect(&mut self, redirect: &IoRedirect) -> usize {
        match redirect {
            IoRedirect::File(_, _, target) => match target {
                IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                    self.word(word);
                }
                IoFileRedirectTarget::Fd(_) => {}
                IoFileRedirectTarget::ProcessSubstitution(..) => self.hides = true,
            },
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    // In a here-document, quotes mean nothing.
                    let body = document.doc.value.replace('"', "'");
                    self.word(&Word { value: format!("\"{body}\"") });
                }
                return 0;
            }
            IoRedirect::HereString(_, word) | IoRedirect::OutputAndError(word, _) => {
                self.word(word);
            }
        }
        1
    }

    fn word(&mut self, word: &Word) -> Meaning {
        let options = ParserOptions::default();
        let Ok(pieces) = word::parse(&word.value, &options) else { return Meaning::Unread };
        let mut meaning = text("");
        pieces.iter().for_each(|piece| self.piece(piece, Quotes::Outside, &mut meaning));
        let braces = word::parse_brace_expansions(&word.value, &options).ok().flatten();
        let expands = |part: &BraceExpressionOrText| matches!(part, BraceExpressionOrText::Expr(_));
        if braces.is_some_and(|parts| parts.iter().any(expands)) {
            meaning = Meaning::Expanded;
        }
        meaning
    }

    fn piece(&mut self, piece: &WordPieceWithSource, quotes: Quotes, meaning: &mut Meaning) {
        match &piece.piece {
            WordPiece::Text(piece)
                if quotes == Quotes::Outside && piece.contains(['*', '?', '[']) =>
            {
                *meaning = Meaning::Expanded;
            }
            WordPiece::Text(piece) | WordPiece::SingleQuotedText(piece) => meaning.push(piece),
            WordPiece::AnsiCQuotedText(piece) if piece.contains('\\') => {
                if *meaning != Meaning::Expanded {
                    *meaning = Meaning::Unread;
                }
            }
            WordPiece::AnsiCQuotedText(piece) => meaning.push(piece),
            WordPiece::DoubleQuotedSequence(pieces) => {
                pieces.iter().for_each(|piece| self.piece(piece, Quotes::Inside, meaning));
            }
            WordPiece::GettextDoubleQuotedSequence(pieces) => {
                pieces.iter().for_each(|piece| self.piece(piece, Quotes::Inside, meaning));
                *meaning = Meaning::Expanded;
            }
            WordPiece::TildePrefix(_) => *meaning = Meaning::Expanded,
            WordPiece::ParameterExpansion(expansion) => {
                *meaning = Meaning::Expanded;
                let inner = format!("{expansion:?}");
                self.hides |= inner.contains("$(")
                    || inner.contains('`')
                    || matches!(expansion, ParameterExpr::Transform { .. });
            }
            WordPiece::CommandSubstitution(_)
            | WordPiece::BackquotedCommandSubstitution(_)
            | WordPiece::ArithmeticExpression(_) => {
                *meaning = Meaning::Expanded;
                self.hides = true;
            }
            // A line continuation is nothing, another character itself.
            WordPiece::EscapeSequence(piece) => {
                let c = piece.strip_prefix('\\').unwrap_or(piece);
                match quotes {
                    _ if c == "\n" => {}
                    Quotes::Inside if !matches!(c, "$" | "`" | "\"" | "\\") => meaning.push(piece),
                    Quotes::Inside | Quotes::Outside => meaning.push(c),
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Inside,
    Outside,
}

impl Meaning {
    fn push(&mut self, more: &str) {
        if let Self::Text(text) = self {
            text.push_str(more);
        }
    }
}

/// How ours differs from the other, if it does.
fn difference(line: &str, ours: &CommandLine) -> Option<String> {
    let theirs = match Reading::of(line) {
        Ok(theirs) => theirs,
        Err(_) if ours.obscure => return None,
        Err(why) => return Some(format!("ours understands it, the other refuses it: {why}")),
    };
    if ours.obscure {
        return None;
    }
    if theirs.hides {
        return Some("ours does not see that commands are hidden".into());
    }
    let same = |ours: &Simple, theirs: &Parsed| {
        ours.sets.len() == theirs.sets
            && ours.files.len() == theirs.files
            && ours.words.len() == theirs.words.len()
            && ours.words.iter().zip(&theirs.words).all(|(ours, theirs)| match theirs {
                Meaning::Text(text) => *text == ours.text,
                Meaning::Unread => true,
                Meaning::Expanded => !ours.plain,
            })
    };
    let equal = match theirs.tests {
        // Each command of theirs is one of ours, in order.
        true => {
            let mut all = ours.commands.iter();
            theirs.commands.iter().all(|theirs| all.any(|ours| same(ours, theirs)))
        }
        false => {
            ours.commands.len() == theirs.commands.len()
                && ours.commands.iter().zip(&theirs.commands).all(|(a, b)| same(a, b))
        }
    };
    (!equal).then(|| format!("ours {:#?}\ntheirs {:#?}", ours.commands, theirs.commands))
}

const SYNTAX: &str = "a syntax error in bash too: nothing runs";
const UNKNOWN: &str = "bash reads it as ours does; the other parser does not know it";
const MORE: &str = "ours sees words as a command of their own: more than there are, none less";

/// Lines on which both differ, each with the reason why that is harmless. What bash does was tried
/// with bash 5.2.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("cwd='sub-link' (symlink to ~)", SYNTAX),
    ("then rm x", SYNTAX),
    ("echo a;;echo b", SYNTAX),
    ("(rm x", SYNTAX),
    ("&& rm x", SYNTAX),
    ("; rm x", SYNTAX),
    ("| rm x", SYNTAX),
    ("[[ a = #b ]] && rm x\n]] || echo R2", SYNTAX),
    ("echo ${x", SYNTAX),
    ("ls)", SYNTAX),
    ("}", SYNTAX),
    ("ls |", SYNTAX),
    ("ls &&", SYNTAX),
    ("for f in a; { rm x; }", UNKNOWN),
    ("select f in a; do rm x; break; done <<<1", UNKNOWN),
    ("!\nrm x", UNKNOWN),
    ("! ! rm x", UNKNOWN),
    ("! time rm x", UNKNOWN),
    ("time time -p rm x", UNKNOWN),
    ("echo a\\", UNKNOWN),
    ("ls <<E", UNKNOWN),
    ("ls <<E\n", UNKNOWN),
    ("cat <<$'E'\na\nE\nrm x", UNKNOWN),
    ("cat <<E\nfoo\\\nE\n'\nE\nrm x\n#'", UNKNOWN),
    ("ls |\\\n| rm x", UNKNOWN),
    ("{fd}>x rm y", UNKNOWN),
    ("( (rm x) )", UNKNOWN),
    ("a=(rm x)", MORE),
    ("a=(x y) rm x", MORE),
    ("a=( ) rm x", MORE),
    ("A=1 if rm x", MORE),
    ("case x in\nx) rm x\nesac", MORE),
    ("for f\nin a b\ndo\nls\ndone", MORE),
    (
        "set a;for f in; do rm x; done",
        "an empty list of words, which the other parser takes for none",
    ),
    (
        "time \"-p\" rm x",
        "bash runs `-p`, other shells run the program `time` and so `rm x`: ours assumes the latter",
    ),
    ("ls |& cat", "the other parser adds `2>&1`; the pipe is all that the shell opens"),
    (
        "a[\"x\"]=1 ls",
        "ours takes the assignment for a program, and its name is not plain: callers are strict",
    ),
];

fn lines() -> Vec<String> {
    let cases = include_str!("../../../../fixtures/security/cases.jsonl");
    let cases = cases.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let shell = cases.filter(|case| case["tool"] == "shell").map(|case| case["input"].clone());
    let shell = shell.map(|input| input.as_str().unwrap().to_owned());
    let more = include_str!("../../../../fixtures/shell/lines.jsonl").lines();
    shell.chain(more.map(|line| serde_json::from_str(line).unwrap())).collect()
}

#[test]
fn both_read_the_same_commands() {
    let (mut understood, mut wrong) = (0, Vec::new());
    let lines = lines();
    for line in &lines {
        let ours = split(line);
        understood += usize::from(!ours.obscure);
        let excepted = EXCEPTIONS.iter().any(|(known, _)| known == line);
        match (difference(line, &ours), excepted) {
            (Some(how), false) => wrong.push(format!("{line:?}: {how}")),
            (None, true) => wrong.push(format!("{line:?} is no exception any more")),
            (Some(_), true) | (None, false) => {}
        }
    }
    println!("{} lines, {understood} understood, {} exceptions", lines.len(), EXCEPTIONS.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
