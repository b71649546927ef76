//! Parses patches as models write them into files and lines. No file is opened here.
//!
//! Two forms are supported: unified diffs, and `*** Begin Patch`. The parser is in the core because
//! policy judges a patch by the very paths that its tool will touch: both use the same parser.

use std::fmt;

/// A parsed patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The files, in the patch's order.
    pub files: Vec<FilePatch>,
}

/// The change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// Which file, and what happens to it.
    pub what: FileAction,
    /// The line changes.
    pub hunks: Vec<Hunk>,
    /// Whether the file is executable afterwards, if the patch says so.
    pub executable: Option<bool>,
}

/// What happens to a file as a whole. Paths are as the patch names them, without the `a/` and `b/`
/// of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAction {
    /// The file is created.
    Add(String),
    /// The file is deleted.
    Delete(String),
    /// The file's lines change.
    Update(String),
    /// The file is renamed, and its lines may change.
    Move {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
    },
}

/// A contiguous block of line changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The number of its first old line, from 1, if the patch gives it.
    pub line: Option<usize>,
    /// Lines somewhere above it, outermost first.
    pub anchors: Vec<String>,
    /// Its lines.
    pub lines: Vec<Line>,
    /// Whether it reaches the end of the file.
    pub at_end: bool,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What happens to the line.
    pub op: Op,
    /// Its text, without the line feed; a carriage return belongs to the text.
    pub text: String,
    /// No line feed follows: it is the last line of its file.
    pub open: bool,
}

/// What happens to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// It is unchanged.
    Keep,
    /// It is removed.
    Drop,
    /// It is added.
    Add,
}

/// Why a text is not a valid patch, for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchError {
    /// The line of the patch, from 1.
    pub line: usize,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the patch: {}", self.line, self.why)
    }
}
impl std::error::Error for PatchError {}

impl FileAction {
    /// The files that are touched.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let (one, two) = match self {
            Self::Add(path) | Self::Delete(path) | Self::Update(path) => (path, None),
            Self::Move { from, to } => (from, Some(to)),
        };
        std::iter::once(one).chain(two).map(String::as_str)
    }
}

impl Patch {
    /// Whether it deletes a file.
    #[must_use]
    pub fn removes_files(&self) -> bool {
        self.files.iter().any(|file| matches!(file.what, FileAction::Delete(_)))
    }
    /// Every path that the patch touches.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(|file| file.what.paths())
    }

    /// Parses a patch of either form. Text before the first header is ignored, and so are code
    /// fences around the patch.
    ///
    /// # Errors
    /// If the text is not a patch, or is incomplete.
    pub fn parse(text: &str) -> Result<Self, PatchError> {
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last() == Some(&"") {
            lines.pop();
        }
        let begins = |line: &&str| line.trim_end() == "*** Begin Patch";
        let mut reader = Reader { lines: &lines, at: 0 };
        let files = match lines.iter().position(begins) {
            Some(at) => {
                if let Some(stray) = lines
                    .iter()
                    .take(at)
                    .position(|line| line.starts_with("@@ -") || line.starts_with("*** "))
                {
                    reader.at = stray;
                    return reader.wrong(
                        "there is a change before *** Begin Patch; put everything into one patch",
                    );
                }
                reader.at = at + 1;
                reader.envelope()?
            }
            None => reader.unified()?,
        };
        match files.is_empty() {
            true => Err(PatchError {
                line: 1,
                why: "found neither *** Begin Patch nor the header of a unified diff".into(),
            }),
            false => Ok(Self { files }),
        }
    }
}

struct Reader<'a> {
    lines: &'a [&'a str],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn wrong<T>(&self, why: impl Into<String>) -> Result<T, PatchError> {
        Err(PatchError { line: self.at + 1, why: why.into() })
    }

    /// The rest of this line after `word`, if it starts with it.
    fn after(&self, word: &str) -> Option<&'a str> {
        self.peek()?.strip_prefix(word)
    }

    fn name(&self, text: &str) -> Result<String, PatchError> {
        let name = text.trim_end_matches('\r').trim();
        if name.is_empty() { self.wrong("the file name is missing") } else { Ok(name.to_owned()) }
    }

    // *** Begin Patch

    fn envelope(&mut self) -> Result<Vec<FilePatch>, PatchError> {
        let mut files = Vec::new();
        loop {
            let Some(line) = self.peek() else {
                return self.wrong("*** End Patch is missing; the patch may be incomplete");
            };
            if line.trim_end() == "*** End Patch" {
                self.at += 1;
                return self.nothing_more().map(|()| files);
            }
            if let Some(name) = self.after("*** Add File: ") {
                let path = self.name(name)?;
                self.at += 1;
                files.push(self.added(path)?);
            } else if let Some(name) = self.after("*** Delete File: ") {
                let what = FileAction::Delete(self.name(name)?);
                self.at += 1;
                files.push(FilePatch { what, hunks: Vec::new(), executable: None });
            } else if let Some(name) = self.after("*** Update File: ") {
                let path = self.name(name)?;
                self.at += 1;
                files.push(self.updated(path)?);
            } else if line.trim().is_empty() {
                self.at += 1;
            } else {
                return self.wrong(format!(
                    "unexpected line {line:?}; expected *** Add File: PATH, *** Update File: \
                     PATH, *** Delete File: PATH or *** End Patch"
                ));
            }
        }
    }

    /// Text after the end of a patch is an error: it may be part of what was meant.
    fn nothing_more(&mut self) -> Result<(), PatchError> {
        while let Some(line) = self.peek() {
            // The end of a code fence or of a here-document.
            if !(line.trim().is_empty() || line.starts_with("```") || line.trim() == "EOF") {
                return self
                    .wrong("there is text after *** End Patch; put everything into one patch");
            }
            self.at += 1;
        }
        Ok(())
    }

    fn added(&mut self, path: String) -> Result<FilePatch, PatchError> {
        let mut hunk = Hunk::default();
        while let Some(line) = self.peek() {
            if line.starts_with("*** ") {
                break;
            }
            match line.strip_prefix('+') {
                Some(text) => hunk.lines.push(Line { op: Op::Add, text: text.into(), open: false }),
                // A + is missing on an empty line, unless the line is at the end.
                None if line.trim().is_empty() => {
                    hunk.lines.push(Line { op: Op::Add, text: String::new(), open: false });
                }
                None => return self.wrong("every line of a new file must start with +"),
            }
            self.at += 1;
        }
        let unmarked = self.lines.get(..self.at).unwrap_or_default().iter().rev();
        trim(&mut hunk, unmarked.take_while(|line| line.trim().is_empty()).count());
        Ok(FilePatch { what: FileAction::Add(path), hunks: vec![hunk], executable: None })
    }

    fn updated(&mut self, path: String) -> Result<FilePatch, PatchError> {
        let mut what = FileAction::Update(path.clone());
        if let Some(name) = self.after("*** Move to: ") {
            what = FileAction::Move { from: path, to: self.name(name)? };
            self.at += 1;
        }
        let mut hunks: Vec<Hunk> = Vec::new();
        let mut hunk = Hunk::default();
        while let Some(line) = self.peek() {
            if line.trim_end() == "*** End of File" {
                trim(&mut hunk, self.empty_before());
                hunk.at_end = true;
            } else if line.starts_with("*** ") {
                break;
            } else if let Some(rest) = line.strip_prefix("@@") {
                if !hunk.lines.is_empty() {
                    trim(&mut hunk, self.empty_before());
                    hunks.push(std::mem::take(&mut hunk));
                }
                match ranges(line) {
                    Some((old, _)) => hunk.line = Some(old.0),
                    None if rest.trim().is_empty() => {}
                    None => {
                        hunk.anchors.push(rest.trim().trim_end_matches("@@").trim_end().to_owned())
                    }
                }
            } else {
                hunk.lines.push(self.line(line)?);
            }
            self.at += 1;
        }
        if !hunk.lines.is_empty() {
            trim(&mut hunk, self.empty_before());
            hunks.push(hunk);
        }
        Ok(FilePatch { what, hunks, executable: None })
    }

    /// A line of a hunk. An empty line counts as an unchanged one: models drop trailing spaces.
    fn line(&self, line: &str) -> Result<Line, PatchError> {
        let (op, text) = match line.as_bytes().first() {
            Some(b' ') => (Op::Keep, line.get(1..)),
            Some(b'-') => (Op::Drop, line.get(1..)),
            Some(b'+') => (Op::Add, line.get(1..)),
            None | Some(b'\r') => (Op::Keep, Some(line)),
            Some(_) => {
                let cut = line.floor_char_boundary(80);
                let line = line.get(..cut).unwrap_or_default();
                return self.wrong(format!(
                    "a line of a hunk must start with a space, + or -; this one does not: {line:?}"
                ));
            }
        };
        Ok(Line { op, text: text.unwrap_or_default().into(), open: false })
    }

    // Unified diffs

    fn unified(&mut self) -> Result<Vec<FilePatch>, PatchError> {
        let mut files = Vec::new();
        while self.at < self.lines.len() {
            if self.after("diff --git ").is_some() {
                files.push(self.git()?);
            } else if self.header().is_some() {
                files.push(self.file(Extended::default())?);
            } else if self.after("@@ -").is_some()
                || (!files.is_empty() && self.peek().is_some_and(of_a_hunk))
            {
                return self.wrong(
                    "there are hunk lines outside a hunk; check the line counts in its @@ header",
                );
            } else {
                self.at += 1;
            }
        }
        Ok(files)
    }

    /// The names in the `---` and `+++` lines, if those come next.
    fn header(&self) -> Option<(&'a str, &'a str)> {
        let old = self.after("--- ")?;
        let new = self.lines.get(self.at + 1)?.strip_prefix("+++ ")?;
        Some((old, new))
    }

    /// The header lines that git writes before a file's hunks.
    fn git(&mut self) -> Result<FilePatch, PatchError> {
        let mut said = Extended {
            named: self.after("diff --git ").and_then(git_names),
            ..Extended::default()
        };
        self.at += 1;
        while let Some(line) = self.peek() {
            if let Some(name) = line.strip_prefix("rename from ") {
                said.from = Some(unquoted(&self.name(name)?));
            } else if let Some(name) = line.strip_prefix("rename to ") {
                said.to = Some(unquoted(&self.name(name)?));
            } else if line.starts_with("copy from ") || line.starts_with("copy to ") {
                return self.wrong("a patch cannot copy files; add the new file instead");
            } else if let Some(mode) = line.strip_prefix("new file mode ") {
                said.new = true;
                said.executable = self.mode(mode)?;
            } else if let Some(mode) = line.strip_prefix("new mode ") {
                said.executable = self.mode(mode)?;
            } else if let Some(mode) = line.strip_prefix("deleted file mode ") {
                said.gone = true;
                self.mode(mode)?;
            } else if let Some(mode) = line.strip_prefix("old mode ") {
                self.mode(mode)?;
            } else if line.starts_with("Binary files ") || line.starts_with("GIT binary patch") {
                return self.wrong("binary files cannot be patched");
            } else if !["index ", "similarity index ", "dissimilarity index "]
                .iter()
                .any(|w| line.starts_with(w))
            {
                break;
            }
            self.at += 1;
        }
        self.file(said)
    }

    fn mode(&self, text: &str) -> Result<Option<bool>, PatchError> {
        match text.trim() {
            "100644" => Ok(Some(false)),
            "100755" => Ok(Some(true)),
            "120000" => self.wrong("a patch cannot create or change symbolic links"),
            "160000" => self.wrong("a patch cannot create or change submodules"),
            other => {
                self.wrong(format!("{other:?} is not a supported file mode; use 100644 or 100755"))
            }
        }
    }

    fn file(&mut self, said: Extended) -> Result<FilePatch, PatchError> {
        let began = self.at;
        let (mut old, mut new) = said.named.clone().unzip();
        if let Some(header) = self.header() {
            let names = bare(&header_name(header.0), &header_name(header.1));
            // If only one side has a name, git's own name for that side is used.
            (old, new) = match (names, said.named.clone()) {
                ((Some(_), None), Some((old, _))) => (Some(old), None),
                ((None, Some(_)), Some((_, new))) => (None, Some(new)),
                (names, _) => names,
            };
            self.at += 2;
        }
        if said.new {
            old = None;
        }
        if said.gone {
            new = None;
        }
        if let (Some(from), Some(to)) = (&said.from, &said.to) {
            (old, new) = (Some(from.clone()), Some(to.clone()));
        }
        let mut hunks = Vec::new();
        while let Some(line) = self.peek() {
            if !line.starts_with("@@") {
                break;
            }
            hunks.push(self.hunk(line)?);
        }
        let what = match (old, new) {
            (None, Some(path)) => FileAction::Add(path),
            (Some(path), None) => FileAction::Delete(path),
            (Some(old), Some(new)) if old == new => FileAction::Update(new),
            (Some(from), Some(to)) if said.from.is_some() => FileAction::Move { from, to },
            (Some(old), Some(new)) => {
                self.at = began;
                return self.wrong(format!(
                    "the headers name two files, {old} and {new}; to rename a file, add rename \
                     from and rename to lines"
                ));
            }
            (None, None) => {
                self.at = began;
                return self.wrong("the headers name no file");
            }
        };
        Ok(FilePatch { what, hunks, executable: said.executable })
    }

    fn hunk(&mut self, header: &str) -> Result<Hunk, PatchError> {
        let Some((old, new)) = ranges(header) else {
            return self
                .wrong("a hunk of a unified diff must start with @@ -LINE,COUNT +LINE,COUNT @@");
        };
        self.at += 1;
        let mut hunk = Hunk { line: Some(old.0), ..Hunk::default() };
        // The counts say where a hunk ends if its lines look like headers; if the counts are wrong,
        // the lines decide.
        let (mut olds, mut news) = (old.1, new.1);
        while let Some(line) = self.peek() {
            let counted = olds > 0 || news > 0;
            if line.starts_with("\\ ") {
                if let Some(last) = hunk.lines.last_mut() {
                    last.open = true;
                }
                self.at += 1;
                continue;
            }
            let ends = line.starts_with("@@ -")
                || line.starts_with("diff --git ")
                || line.starts_with("```");
            if ends
                || (!counted
                    && (line.trim().is_empty() || self.header().is_some() || line == "-- "))
            {
                break;
            }
            let read = self.line(line)?;
            olds = olds.saturating_sub(usize::from(read.op != Op::Add));
            news = news.saturating_sub(usize::from(read.op != Op::Drop));
            hunk.lines.push(read);
            self.at += 1;
        }
        trim(&mut hunk, self.empty_before());
        // Empty lines after a complete hunk are not part of the patch.
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
        Ok(hunk)
    }

    /// The number of lines right before this one that are completely empty, without even a mark.
    fn empty_before(&self) -> usize {
        let before = self.lines.get(..self.at).unwrap_or_default();
        before.iter().rev().take_while(|line| line.trim_end_matches('\r').is_empty()).count()
    }
}

/// Removes unmarked empty lines at the end of a hunk: they only separate hunks.
fn trim(hunk: &mut Hunk, empty: usize) {
    hunk.lines.truncate(hunk.lines.len().saturating_sub(empty));
}

/// Whether a line looks like part of a hunk.
fn of_a_hunk(line: &str) -> bool {
    line != "-- "
        && !line.trim().is_empty()
        && (line.starts_with([' ', '+', '-']) || line.starts_with("@@ -"))
}

/// What git's header lines say about a file.
#[derive(Default)]
struct Extended {
    named: Option<(String, String)>,
    from: Option<String>,
    to: Option<String>,
    new: bool,
    gone: bool,
    executable: Option<bool>,
}

/// First line and count of `-a,b` and `+c,d`.
type Ranges = ((usize, usize), (usize, usize));

fn ranges(header: &str) -> Option<Ranges> {
    let inner = header.strip_prefix("@@ -")?;
    let (old, rest) = inner.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let pair = |text: &str| {
        let (line, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((line.parse().ok()?, count.parse().ok()?))
    };
    Some((pair(old)?, pair(new)?))
}

/// The name in a header, without a tab-separated timestamp and without quotes.
fn header_name(text: &str) -> String {
    let text = text.trim_end_matches('\r');
    let text = text.split('\t').next().unwrap_or(text);
    unquoted(text.trim_end())
}

/// Both names of a header as paths; `None` for a file that does not exist. The prefixes `a/` and
/// `b/` are removed.
fn bare(old: &str, new: &str) -> (Option<String>, Option<String>) {
    let real = |name: &str| (name != "/dev/null").then(|| name.to_owned());
    let side = |name: &str, letter: &str| name.strip_prefix(letter).map(str::to_owned);
    match (real(old), real(new)) {
        (Some(o), Some(n)) => match (side(&o, "a/"), side(&n, "b/")) {
            (Some(o), Some(n)) => (Some(o), Some(n)),
            _ => (Some(o), Some(n)),
        },
        (Some(o), None) => (Some(side(&o, "a/").unwrap_or(o)), None),
        (None, Some(n)) => (None, Some(side(&n, "b/").unwrap_or(n))),
        (None, None) => (None, None),
    }
}

/// The names in `diff --git a/x b/x`, if they can be told apart.
fn git_names(text: &str) -> Option<(String, String)> {
    let text = text.trim_end();
    if text.starts_with('"') {
        let end = text.get(1..)?.find("\" ")? + 2;
        let (old, new) = (text.get(..end)?, text.get(end + 1..)?);
        let (old, new) = bare(&unquoted(old), &unquoted(new));
        return old.zip(new);
    }
    // Both names are the same except for the prefix, so the space between them is in the middle.
    let (old, new) = (text.get(..text.len() / 2)?, text.get(text.len() / 2 + 1..)?);
    let (old, new) = bare(old, new);
    old.zip(new).filter(|(old, new)| old == new)
}

/// Decodes a quoted name, as git writes those with special characters.
fn unquoted(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return text.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(first @ b'0'..=b'3') => {
                let mut value = first - b'0';
                for digit in rest.by_ref().take(2) {
                    value = value.wrapping_mul(8).wrapping_add(digit.wrapping_sub(b'0') & 7);
                }
                bytes.push(value);
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
