//! Splits a command line into the words of its simple commands, as far as its text shows them.
//!
//! This is not a shell. It exists to choose what to ask and what to show; the sandbox contains
//! whatever it gets wrong. If it does not understand a line, it says so ([`CommandLine::obscure`]),
//! and its callers choose the strict side.

/// A word: its text without quotes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// Its text. What the shell would expand stays as written: `$HOME/x`.
    pub text: String,
    /// The shell passes it on unchanged: no variable, no pattern, no tilde.
    pub plain: bool,
    /// Part of it was quoted.
    pub quoted: bool,
    /// It starts with `NAME=`, and that part is not quoted.
    pub sets: bool,
}

/// A command without pipes, lists and substitutions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Simple {
    /// Variables set for it: `CI=1`.
    pub sets: Vec<Word>,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// Files that the shell itself opens for it: the operator, and the name.
    pub files: Vec<(String, Word)>,
    /// It runs in the background.
    pub beside: bool,
}

/// A parsed line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// Its simple commands in order, including those in substitutions.
    pub commands: Vec<Simple>,
    /// Part of it was not understood, or is only known at run time.
    pub obscure: bool,
}

impl Word {
    /// A word that the shell passes on unchanged.
    #[must_use]
    pub fn plain(text: &str) -> Self {
        Self { text: text.into(), plain: true, quoted: true, sets: false }
    }
}

impl Simple {
    /// The texts of the words.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| word.text.as_str())
    }
}

/// Keywords of the shell that come before a command.
const GRAMMAR: &[&str] =
    &["if", "then", "elif", "else", "while", "until", "do", "{", "!", "time", "coproc"];
/// Keywords that stand alone.
const CLOSING: &[&str] = &["fi", "done", "esac", "}"];
/// How deep nested substitutions are parsed.
const DEEP: usize = 8;
/// Longer lines are not parsed.
const LONG: usize = 100_000;

/// Parses a line.
#[must_use]
pub fn split(line: &str) -> CommandLine {
    if line.len() > LONG {
        return CommandLine { commands: Vec::new(), obscure: true };
    }
    let mut reader = Splitter::new(line, 0);
    reader.list(None);
    reader.out
}

/// A command given as an argument vector: nothing is expanded.
#[must_use]
pub fn given(words: &[String]) -> CommandLine {
    let words = words.iter().map(|word| Word::plain(word)).collect();
    CommandLine { commands: vec![Simple { words, ..Simple::default() }], obscure: false }
}

struct Splitter {
    text: Vec<char>,
    at: usize,
    out: CommandLine,
    depth: usize,
    /// The last word was the keyword `time`, or one of its options.
    timed: bool,
    /// Here-documents whose text is still to come.
    documents: Vec<Document>,
}

struct Document {
    /// The line that ends it.
    last: String,
    /// Its text is literal.
    literal: bool,
    /// Tabs at the start of its lines do not count (`<<-`).
    tabs: bool,
}

/// Whether a text is the name of a variable.
fn is_name(text: &str) -> bool {
    text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
        && text.starts_with(|c: char| !c.is_ascii_digit())
}

/// Whether a text followed by `=` sets a variable or an element of an array.
fn is_target(text: &str) -> bool {
    let text = text.strip_suffix('+').unwrap_or(text);
    let array = text.strip_suffix(']').and_then(|text| text.split_once('['));
    is_name(array.map_or(text, |(name, _)| name))
}

impl Splitter {
    fn new(text: &str, depth: usize) -> Self {
        Self {
            text: text.chars().collect(),
            at: 0,
            out: CommandLine::default(),
            depth,
            timed: false,
            documents: Vec::new(),
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        Some(c)
    }

    fn starts(&self, with: &str) -> bool {
        with.chars().enumerate().all(|(n, c)| self.peek(n) == Some(c))
    }

    /// Parses commands up to a closing character, or to the end.
    fn list(&mut self, until: Option<char>) {
        let mut command = Simple::default();
        loop {
            match self.peek(0) {
                None => break,
                Some(c) if Some(c) == until => {
                    self.at += 1;
                    break;
                }
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.peek(1) == Some('\n') => self.at += 2,
                Some('\n') => {
                    self.at += 1;
                    self.end(&mut command, false);
                    self.skip_documents();
                }
                Some('#') => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                Some('&') if self.starts("&>") => self.redirect(&mut command),
                Some('&') => {
                    self.at += 1;
                    let both = self.peek(0) == Some('&');
                    self.at += usize::from(both);
                    self.end(&mut command, !both);
                }
                Some(';' | '|') => {
                    self.at += 1;
                    while self.peek(0).is_some_and(|c| matches!(c, ';' | '|' | '&')) {
                        self.at += 1;
                    }
                    self.end(&mut command, false);
                }
                Some('<' | '>') if self.peek(1) == Some('(') => {
                    self.at += 2;
                    self.inner(')');
                    command.words.push(Word { text: "<()".into(), ..Word::default() });
                    self.out.obscure = true;
                }
                Some('<' | '>') => self.redirect(&mut command),
                Some('(') => {
                    self.at += 1;
                    // A function definition or a subshell; two are arithmetic.
                    self.out.obscure |= !command.words.is_empty() || self.peek(0) == Some('(');
                    self.end(&mut command, false);
                }
                Some(')') => {
                    self.at += 1;
                    self.end(&mut command, false);
                }
                Some(_) => {
                    let word = self.word();
                    self.put(&mut command, word);
                }
            }
        }
        self.end(&mut command, false);
    }

    fn put(&mut self, command: &mut Simple, word: Word) {
        if let [first, _] = command.words.as_slice()
            && !first.quoted
            && !word.quoted
            && (first.text == "function"
                || matches!(first.text.as_str(), "for" | "select") && word.text == "do")
        {
            // `function f { rm x; }`, `for f do rm x; done`: the name ends the command.
            self.end(command, false);
        }
        let timed = std::mem::take(&mut self.timed) && word.text.starts_with('-');
        if command.words.is_empty() && !word.quoted {
            // What a later word runs may be defined here.
            self.out.obscure |= matches!(word.text.as_str(), "function" | "coproc");
            self.timed = word.text == "time" || timed && matches!(word.text.as_str(), "-p" | "--");
            if self.timed
                || GRAMMAR.contains(&word.text.as_str())
                || CLOSING.contains(&word.text.as_str())
            {
                return;
            }
        }
        if command.words.is_empty() && word.sets {
            command.sets.push(word);
            return;
        }
        // Another option: where `time` is no keyword, the program `time` knows it.
        if timed {
            command.words.push(Word::plain("time"));
        }
        // A number or a name in braces right before a redirection is a file descriptor.
        let named = word.text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        if (word.text.chars().all(|c| c.is_ascii_digit()) || named.is_some_and(is_name))
            && matches!(self.peek(0), Some('<' | '>'))
            && !word.quoted
        {
            return;
        }
        command.words.push(word);
    }

    fn end(&mut self, command: &mut Simple, beside: bool) {
        let done = std::mem::take(command);
        if !done.words.is_empty() || !done.sets.is_empty() || !done.files.is_empty() {
            self.out.commands.push(Simple { beside, ..done });
        } else if beside && let Some(last) = self.out.commands.last_mut() {
            last.beside = true; // ( ... ) &
        }
    }

    fn redirect(&mut self, command: &mut Simple) {
        let mut sign = String::new();
        while let Some(c) = self.peek(0).filter(|c| matches!(c, '<' | '>' | '&' | '|')) {
            if sign.len() == 3 || (c == '|' && sign != ">") || (c == '&' && sign.ends_with('&')) {
                break;
            }
            sign.push(c);
            self.at += 1;
        }
        let tabs = sign == "<<" && self.peek(0) == Some('-');
        self.at += usize::from(tabs);
        // A line continuation may join two operators into a third.
        self.out.obscure |= self.starts("\\\n");
        while matches!(self.peek(0), Some(' ' | '\t')) || self.starts("\\\n") {
            self.at += if self.peek(0) == Some('\\') { 2 } else { 1 };
        }
        if self.peek(0).is_none_or(|c| matches!(c, '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>'))
        {
            self.out.obscure = true;
            return;
        }
        let word = self.word();
        match sign.as_str() {
            "<<" => self.documents.push(Document { last: word.text, literal: word.quoted, tabs }),
            _ => command.files.push((sign, word)),
        }
    }

    /// The rest of the line, without its end.
    fn rest_of_line(&mut self) -> String {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let line: String = rest.iter().take_while(|c| **c != '\n').collect();
        self.at = (self.at + line.chars().count() + 1).min(self.text.len());
        line
    }

    /// Skips the texts of here-documents, but parses substitutions in them.
    fn skip_documents(&mut self) {
        for Document { last, literal, tabs } in std::mem::take(&mut self.documents) {
            let mut body = String::new();
            while self.at < self.text.len() {
                let mut line = self.rest_of_line();
                // A backslash joins two lines before the shell looks for the end.
                let joined = |line: &str| {
                    let ends = line.len() - line.trim_end_matches('\\').len();
                    !literal && ends % 2 == 1
                };
                while joined(&line) && self.at < self.text.len() {
                    self.out.obscure |= tabs; // shells differ
                    line.pop();
                    line.push_str(&self.rest_of_line());
                }
                if (if tabs { line.trim_start_matches('\t') } else { &line }) == last {
                    break;
                }
                body.push_str(&line);
                body.push('\n');
            }
            if !literal {
                let mut inner = Self::new(&body, self.depth + 1);
                inner.quoted_text(None, &mut Word::default());
                self.out.obscure |= inner.out.obscure;
                self.out.commands.extend(inner.out.commands);
            }
        }
    }

    /// Parses the commands of a substitution, up to its closing character.
    fn inner(&mut self, until: char) {
        if self.depth >= DEEP {
            self.out.obscure = true;
            self.at = self.text.len();
            return;
        }
        self.depth += 1;
        let documents = std::mem::take(&mut self.documents);
        self.list(Some(until));
        self.documents = documents;
        self.depth -= 1;
    }

    fn word(&mut self) -> Word {
        let mut word = Word { plain: true, ..Word::default() };
        let mut unset = true; // no `=` yet
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(c) => {
                            word.text.push(c);
                            word.quoted = true;
                        }
                        None => word.text.push('\\'),
                    }
                }
                '\'' => {
                    self.at += 1;
                    word.quoted = true;
                    loop {
                        match self.next() {
                            Some('\'') => break,
                            Some(c) => word.text.push(c),
                            None => {
                                self.out.obscure = true;
                                break;
                            }
                        }
                    }
                }
                '"' => {
                    self.at += 1;
                    word.quoted = true;
                    self.quoted_text(Some('"'), &mut word);
                }
                '$' if self.peek(1) == Some('\'') => {
                    self.at += 2;
                    self.escaped(&mut word);
                }
                '$' if self.peek(1) == Some('"') => {
                    word.plain = false; // translated
                    self.at += 1;
                }
                '$' | '`' => self.dollar(&mut word),
                '*' | '?' | '[' | '{' => {
                    word.plain = false;
                    word.text.push(c);
                    self.at += 1;
                }
                '~' if word.text.is_empty() || word.sets && word.text.ends_with(['=', ':']) => {
                    word.plain = false;
                    word.text.push(c);
                    self.at += 1;
                }
                c => {
                    if c == '=' && std::mem::take(&mut unset) {
                        word.sets = !word.quoted && is_target(&word.text);
                    }
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
        word
    }

    /// Parses text in which only variables and substitutions are special.
    fn quoted_text(&mut self, until: Option<char>, word: &mut Word) {
        loop {
            match self.peek(0) {
                None => {
                    self.out.obscure |= until.is_some();
                    return;
                }
                c if c == until => {
                    self.at += 1;
                    return;
                }
                Some('\\') => {
                    self.at += 1;
                    match self.next() {
                        Some(c @ ('$' | '`' | '"' | '\\')) => word.text.push(c),
                        Some('\n') | None => {}
                        Some(c) => word.text.extend(['\\', c]),
                    }
                }
                Some('$' | '`') => self.dollar(word),
                Some(c) => {
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    /// Parses a variable or a substitution.
    fn dollar(&mut self, word: &mut Word) {
        let c = self.next().unwrap_or('$');
        if c == '`' {
            word.plain = false;
            self.out.obscure = true;
            word.text.push_str("$()");
            // An escaped character inside stands for itself.
            let mut body = String::new();
            while let Some(c) = self.next().filter(|c| *c != '`') {
                body.push(if c == '\\' { self.next().unwrap_or('\\') } else { c });
            }
            let mut inner = Self::new(&body, self.depth + 1);
            if inner.depth < DEEP {
                inner.list(None);
            }
            self.out.commands.extend(inner.out.commands);
            return;
        }
        match self.peek(0) {
            Some('(') => {
                word.plain = false;
                self.at += 1;
                self.out.obscure = true;
                if self.peek(0) == Some('(') {
                    // Arithmetic; it ends with two closing parentheses.
                    let rest: String =
                        self.text.get(self.at..).unwrap_or_default().iter().collect();
                    match rest.find("))") {
                        Some(end) => {
                            self.at += rest.get(..end + 2).map_or(0, |t| t.chars().count())
                        }
                        None => self.at = self.text.len(),
                    }
                    word.text.push_str("$(())");
                } else {
                    word.text.push_str("$()");
                    self.inner(')');
                }
            }
            Some('{') => {
                word.plain = false;
                word.text.push_str("${");
                self.at += 1;
                let mut open = 1;
                let mut name = String::new();
                while let Some(c) = self.next() {
                    open += i32::from(c == '{') - i32::from(c == '}');
                    name.push(c);
                    if open == 0 {
                        break;
                    }
                }
                // Anything more than a name and a simple pattern may contain commands, or end at
                // another brace.
                let simple = |c: char| c.is_ascii_alphanumeric() || "_#%*?.,+-^}".contains(c);
                self.out.obscure |= !name.chars().all(simple);
                if name.contains("$(") || name.contains('`') {
                    let mut inner = Self::new(&name, self.depth + 1);
                    if inner.depth < DEEP {
                        inner.quoted_text(None, &mut Word::default());
                    }
                    self.out.commands.extend(inner.out.commands);
                }
                word.text.push_str(&name);
            }
            Some(c)
                if c == '_'
                    || c.is_ascii_alphanumeric()
                    || matches!(c, '@' | '*' | '#' | '?' | '$' | '!' | '-') =>
            {
                word.plain = false;
                word.text.push('$');
                if c == '_' || c.is_ascii_alphabetic() {
                    while let Some(c) =
                        self.peek(0).filter(|c| *c == '_' || c.is_ascii_alphanumeric())
                    {
                        word.text.push(c);
                        self.at += 1;
                    }
                } else {
                    word.text.push(c);
                    self.at += 1;
                }
            }
            // Arithmetic, or a line continuation: what follows may be any of the above.
            Some('[' | '\\') if self.peek(0) == Some('[') || self.peek(1) == Some('\n') => {
                word.plain = false;
                self.out.obscure = true;
                word.text.push('$');
            }
            _ => word.text.push('$'),
        }
    }

    /// Parses `$'...'` and resolves its escapes.
    fn escaped(&mut self, word: &mut Word) {
        word.quoted = true;
        while let Some(c) = self.next() {
            match c {
                '\'' => return,
                '\\' => match self.next() {
                    Some('n') => word.text.push('\n'),
                    Some('r') => word.text.push('\r'),
                    Some('t') => word.text.push('\t'),
                    Some(c @ ('\\' | '\'' | '"' | '?')) => word.text.push(c),
                    Some('x') => self.code(word, 16, 2),
                    Some('0'..='7') => {
                        self.at -= 1;
                        self.code(word, 8, 3);
                    }
                    // The others are rare, and shells differ.
                    Some(_) | None => self.out.obscure = true,
                },
                c => word.text.push(c),
            }
        }
        self.out.obscure = true;
    }

    /// Parses the digits of a character. A zero ends the text, and above 127 it is part of one.
    fn code(&mut self, word: &mut Word, radix: u32, most: usize) {
        let digits: String =
            (0..most).map_while(|n| self.peek(n).filter(|c| c.is_digit(radix))).collect();
        self.at += digits.len();
        match u8::from_str_radix(&digits, radix) {
            Ok(code @ 1..=127) => word.text.push(char::from(code)),
            Ok(_) | Err(_) => self.out.obscure = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::wrap::unwrapped;

    fn words(line: &str) -> Vec<String> {
        split(line).commands.iter().map(|c| c.texts().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn lines_come_apart_as_a_shell_takes_them() {
        for (line, wanted, obscure) in [
            ("ls -la", vec!["ls -la"], false),
            ("a; b && c || d | e & f", vec!["a", "b", "c", "d", "e", "f"], false),
            ("echo 'a; b' \"c | d\" e\\;f", vec!["echo a; b c | d e;f"], false),
            ("ls\ntouch x", vec!["ls", "touch x"], false),
            ("echo $(touch x)", vec!["touch x", "echo $()"], true),
            ("echo `touch x`", vec!["touch x", "echo $()"], true),
            ("cat <(touch x)", vec!["touch x", "cat <()"], true),
            ("cat <<E\n$(touch x)\nE", vec!["cat", "touch x"], true),
            ("cat <<'E'\n$(touch x)\nE\nls", vec!["cat", "ls"], false),
            ("echo \"${x:=$(touch y)}\"", vec!["touch y", "echo ${x:=$(touch y)}"], true),
            ("$'\\x74ouch' /tmp/x", vec!["touch /tmp/x"], false),
            ("t\\ouch x", vec!["touch x"], false),
            ("for f in *.rs; do echo \"$f\"; done", vec!["for f in *.rs", "echo $f"], false),
            ("if true; then rm x; fi", vec!["true", "rm x"], false),
            ("CI=1 npm test 2>&1 > out.txt", vec!["npm test"], false),
            ("echo ok # \\\ntouch x", vec!["echo ok", "touch x"], false),
            ("(cd a && ls)", vec!["cd a", "ls"], false),
            ("echo 'never closed", vec!["echo never closed"], true),
        ] {
            assert_eq!(words(line), wanted, "{line}");
            assert_eq!(split(line).obscure, obscure, "{line}");
        }
        let line = split("a > out 2>> err < in >| x &> y");
        let files: Vec<(&str, &str)> = line
            .commands
            .iter()
            .flat_map(|c| &c.files)
            .map(|(s, w)| (s.as_str(), w.text.as_str()))
            .collect();
        assert_eq!(files, [(">", "out"), (">>", "err"), ("<", "in"), (">|", "x"), ("&>", "y")]);
        let home = split("rm -rf \"$HOME\"/ ~ ~/x '~'");
        let found: Vec<(&str, bool)> =
            home.commands[0].words.iter().map(|w| (w.text.as_str(), w.plain)).collect();
        assert_eq!(
            found,
            [
                ("rm", true),
                ("-rf", true),
                ("$HOME/", false),
                ("~", false),
                ("~/x", false),
                ("~", true)
            ]
        );
        assert!(split("server & curl x").commands[0].beside);
    }

    #[test]
    fn nothing_that_is_typed_stops_it() {
        // A cheap generator: every line of three pieces from a list of nasty ones.
        let pieces = [
            "$(", ")", "'", "\"", "`", "${", "}", "<<E", "\n", "\\", "&", ";", "|", "<(", ">",
            "((", "#", "a", " ", "$'", "\\x4",
        ];
        let mut seen = 0;
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    for d in ["", "x", "E\n"] {
                        let line = format!("{a}{b}{c}{d}");
                        let _ = unwrapped(&split(&line));
                        seen += 1;
                    }
                }
            }
        }
        println!("{seen} lines taken apart");
        let deep = format!("{}x{}", "$(".repeat(50_000), ")".repeat(50_000));
        let _ = split(deep.get(..99_000).unwrap_or_default());
        let _ = split(&"`".repeat(10_000));
        let _ = split(&format!("{}-{}", "a".repeat(49_000), "=".repeat(49_000)));
        let _ = split(&format!("cat <<E\n{}", "\\\n".repeat(49_000)));
    }
}
