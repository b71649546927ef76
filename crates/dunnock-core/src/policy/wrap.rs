//! Finds the commands behind programs that run other programs.

use super::words::{CommandLine, Simple, Word, split};

/// Programs that run another: their options that take a value, and how many arguments of their own
/// precede the program.
const WRAPPERS: &[(&str, &[&str], usize)] = &[
    ("env", &["-u", "--unset", "-C", "--chdir"], 0),
    ("nice", &["-n", "--adjustment"], 0),
    ("ionice", &["-c", "-n", "--class", "--classdata"], 0),
    ("timeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    ("nohup", &[], 0),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("setsid", &[], 0),
    ("flock", &["-w", "-E", "--timeout"], 1),
    ("command", &[], 0),
    ("builtin", &[], 0),
    ("exec", &["-a"], 0),
    ("time", &["-f", "-o"], 0),
    ("busybox", &[], 0),
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-T", "-U"], 0),
    ("doas", &["-u", "-C"], 0),
    (
        "xargs",
        &[
            "-I",
            "-n",
            "-P",
            "-L",
            "-d",
            "-a",
            "-E",
            "-s",
            "--arg-file",
            "--max-args",
            "--max-procs",
            "--delimiter",
        ],
        0,
    ),
    ("strace", &["-e", "-o", "-p", "-s", "-u"], 0),
    ("ltrace", &["-e", "-o"], 0),
    ("unshare", &[], 0),
    ("watch", &["-n", "--interval"], 0),
    ("parallel", &["-j"], 0),
    ("chronic", &[], 0),
];
/// Shells: `-c` is followed by a command line.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "fish", "ash"];
/// How deep nested wrappers are resolved.
const NESTED: usize = 8;

/// Whether a program runs another, so that a rule for it would match everything.
#[must_use]
pub fn wraps(program: &str) -> bool {
    WRAPPERS.iter().any(|(name, ..)| *name == program) || SHELLS.contains(&program)
}

/// The last component of a path.
#[must_use]
pub fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Every command that a line names, including those behind wrappers and shells and those passed to
/// other programs to run. Behind too many wrappers any word might be a command, so each one counts
/// as one.
#[must_use]
pub fn unwrapped(line: &CommandLine) -> CommandLine {
    let mut out = CommandLine { commands: Vec::new(), obscure: line.obscure };
    for command in &line.commands {
        unwrap(command, 0, &mut out);
    }
    out
}

fn unwrap(command: &Simple, depth: usize, out: &mut CommandLine) {
    out.commands.push(command.clone());
    let Some(first) = command.words.first() else { return };
    let name = base(&first.text);
    let rest = command.words.get(1..).unwrap_or_default();
    let with = |words: &[Word]| Simple {
        words: words.to_vec(),
        beside: command.beside,
        ..Simple::default()
    };
    if depth >= NESTED {
        out.obscure = true;
        (0..rest.len()).for_each(|n| out.commands.push(with(rest.get(n..).unwrap_or_default())));
        return;
    }
    let line = |text: &str, out: &mut CommandLine| {
        let inner = split(text);
        out.obscure |= inner.obscure;
        inner.commands.iter().for_each(|command| unwrap(command, depth + 1, out));
    };
    if SHELLS.contains(&name) || name == "script" || name == "su" {
        let at = rest.iter().position(|w| {
            w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains('c')
        });
        let after = at.and_then(|at| rest.get(at + 1..)).unwrap_or_default();
        // Options may stand between `-c` and the line, and some take a value: each word counts.
        let options = after.first().is_some_and(|word| word.text.starts_with(['-', '+']));
        out.obscure |= options || after.is_empty();
        let most = if options { after.len() } else { 1 };
        after.iter().take(most).for_each(|text| line(&text.text, out));
        return;
    }
    if name == "trap" {
        let text = rest.iter().find(|w| !w.text.starts_with('-'));
        return line(text.map_or("", |w| &w.text), out);
    }
    if name == "eval" {
        let text: Vec<&str> = rest.iter().map(|w| w.text.as_str()).collect();
        out.obscure = true;
        return line(&text.join(" "), out);
    }
    if name == "find" || name == "fd" || name == "fdfind" {
        let runs = |w: &Word| {
            matches!(w.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X")
                || w.text.starts_with("--exec")
        };
        for (at, _) in rest.iter().enumerate().filter(|(_, word)| runs(word)) {
            unwrap(&with(rest.get(at + 1..).unwrap_or_default()), depth + 1, out);
        }
        return;
    }
    let splits = |w: &&Word| match w.text.strip_prefix("--") {
        Some(long) => long.starts_with('s'), // any prefix of --split-string
        None => w.text.starts_with('-') && w.text.contains('S'),
    };
    if name == "env"
        && let Some(at) = rest.iter().position(|w| splits(&w))
    {
        let given = rest.get(at).and_then(|w| match w.text.starts_with("--") {
            true => w.text.split_once('='),
            false => w.text.split_once('S').filter(|(_, text)| !text.is_empty()),
        });
        let given = given.map(|(_, text)| text);
        if let Some(text) = given.or_else(|| rest.get(at + 1).map(|w| w.text.as_str())) {
            line(text, out);
        }
    }
    let Some((_, valued, own)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) else {
        return;
    };
    let mut own = *own;
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        let text = word.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if text.starts_with('-') && text.len() > 1 {
            at += 1 + usize::from(valued.contains(&text));
        } else if name == "env" && text.contains('=') {
            at += 1;
        } else if own > 0 {
            own -= 1;
            at += 1;
        } else {
            break;
        }
    }
    let behind = rest.get(at..).unwrap_or_default();
    // Some wrappers take a whole line as one argument.
    if let Some(whole) = behind.first().filter(|word| word.text.contains(char::is_whitespace)) {
        line(&whole.text, out);
    }
    if !behind.is_empty() {
        unwrap(&with(behind), depth + 1, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrapped_is_seen() {
        for (line, inside) in [
            ("env A=1 rm x", "rm x"),
            ("timeout -s KILL 5 rm x", "rm x"),
            ("nice -n 5 rm x", "rm x"),
            ("bash -lc 'rm x'", "rm x"),
            ("bash -c -- 'rm x'", "rm x"),
            ("sh -c -o errexit 'rm x'", "rm x"),
            ("trap -- 'rm x' EXIT", "rm x"),
            ("env -S 'rm x'", "rm x"),
            ("env '-Srm x'", "rm x"),
            ("env -iS 'rm x'", "rm x"),
            ("env --split='rm x'", "rm x"),
            ("env rm x -S y", "rm x -S y"),
            ("script -qec 'rm x' /dev/null", "rm x"),
            ("find . -name y -exec rm x ';'", "rm x ;"),
            ("find . -exec ls ';' -exec rm x ';'", "rm x ;"),
            ("xargs -a f -n 1 rm x", "rm x"),
            ("flock lk rm x", "rm x"),
            ("sudo -u a rm x", "rm x"),
            ("eval 'r''m' x", "rm x"),
            ("env env env env env env env env env env rm x", "rm x"),
        ] {
            let all = unwrapped(&split(line));
            let all: Vec<String> =
                all.commands.iter().map(|c| c.texts().collect::<Vec<_>>().join(" ")).collect();
            assert!(all.iter().any(|c| c == inside), "{line}: {all:?}");
        }
    }
}
