//! Translates the arguments of one call to those of one of our tools.

use super::json_repair::Repair;
use super::our_tools::{ArgumentKind, OUR_TOOLS, OurTool, REMARKS};
use super::rules::Rule;
use super::table::{Alias, Fixed};
use super::values::{choices, coerced, flag, is_empty, list, number, short, short_text, text};
use super::{normal, patch_command};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The longest timeout in seconds.
const LONGEST_TIMEOUT: u64 = 600;
/// The longest wait for output, in seconds.
const LONGEST_WAIT: u64 = 600;
/// Most lines around a match.
const MOST_CONTEXT: u64 = 10;

/// What a call is read with.
pub(super) struct Context<'a> {
    /// The path of the workspace.
    pub(super) root: &'a str,
    /// The answer was cut off within this call.
    pub(super) cut: bool,
    pub(super) repair: Repair,
}

/// Why a call cannot be read as one of the tools. Of several, the greatest is reported.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wrong {
    /// How far the reading got.
    got: u8,
    pub(super) text: String,
}

pub(super) type Args = Map<String, Value>;

/// What a call is read as.
#[derive(Clone, Copy)]
pub(super) enum Candidate {
    Alias(&'static Alias),
    Ours(&'static OurTool),
}

/// A call that is being translated.
struct Translation<'a> {
    context: &'a Context<'a>,
    /// The name and an example in the form in which it was called.
    shown: (&'static str, &'static str),
    tool: &'static OurTool,
    args: Args,
    offset: Option<u64>,
    limit: Option<u64>,
    background: Option<bool>,
    terminal: bool,
    whole: bool,
    recursive: Option<bool>,
    /// Whether the arguments are within an argument.
    nested: bool,
}

fn our_tool(name: &str) -> Option<&'static OurTool> {
    OUR_TOOLS.iter().find(|tool| tool.name == name)
}

impl Candidate {
    fn tool(self) -> Result<&'static OurTool, Wrong> {
        match self {
            Self::Ours(tool) => Ok(tool),
            Self::Alias(alias) => our_tool(alias.tool)
                .ok_or_else(|| Wrong { got: 0, text: format!("there is no tool {}", alias.tool) }),
        }
    }

    /// What an argument of this name becomes.
    fn rule(self, tool: &'static OurTool, name: &str) -> Option<Rule> {
        let find = |rules: &[(&str, Rule)]| {
            rules.iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule)
        };
        let own = match self {
            Self::Alias(alias) => find(alias.arguments),
            Self::Ours(_) => None,
        };
        let only = matches!(self, Self::Alias(alias) if alias.only);
        let remark = || REMARKS.contains(&name).then_some(Rule::Dropped);
        if only {
            return own.or_else(remark);
        }
        let ours = || {
            let argument = tool.arguments.iter().find(|a| normal(a.name) == name)?;
            Some(Rule::As(argument.name))
        };
        own.or_else(|| find(tool.synonyms)).or_else(ours).or_else(remark)
    }

    /// Our tool and its arguments.
    pub(super) fn translate(
        self,
        given: &Args,
        context: &Context<'_>,
    ) -> Result<(&'static str, Args), Wrong> {
        let tool = self.tool()?;
        let mut given = given.clone();
        if let Self::Alias(Alias { when: Some((argument, values)), .. }) = self {
            let key = given.keys().find(|key| normal(key) == *argument).cloned();
            let word = key.and_then(|key| given.remove(&key));
            let word = word.as_ref().and_then(Value::as_str).unwrap_or_default();
            if !values.contains(&word) {
                let text = format!("{argument} is {word:?}, which this tool cannot do");
                return Err(Wrong { got: 0, text });
            }
        }
        if let Self::Alias(Alias { needs: Some(argument), .. }) = self
            && !given.keys().any(|key| normal(key) == *argument)
        {
            return Err(Wrong { got: 0, text: format!("{argument} is missing") });
        }
        let mut draft = Translation {
            context,
            shown: match self {
                Self::Alias(Alias { example: Some(example), .. }) => *example,
                Self::Alias(_) | Self::Ours(_) => (tool.name, tool.example),
            },
            tool,
            args: Args::new(),
            offset: None,
            limit: None,
            background: None,
            terminal: false,
            whole: false,
            recursive: None,
            nested: false,
        };
        for (name, value) in &given {
            draft.take(self, name, value)?;
        }
        draft.lines();
        if let Self::Alias(alias) = self {
            for (name, value) in alias.fixed {
                let listed = *name == "depth" && draft.recursive == Some(true);
                // What is missing at the end is not made up.
                let missing = *value == Fixed::EmptyText && context.repair >= Repair::Closed;
                if !draft.args.contains_key(*name) && !listed && !missing {
                    let value = match value {
                        Fixed::Flag(flag) => Value::Bool(*flag),
                        Fixed::Number(number) => Value::from(*number),
                        Fixed::EmptyText => Value::from(""),
                    };
                    draft.args.insert((*name).into(), value);
                }
            }
        }
        draft.finish()
    }
}

impl Translation<'_> {
    fn wrong(&self, got: u8, why: &str) -> Wrong {
        let (name, example) = self.shown;
        let text = format!("{why}. Call {name} like this: {example}");
        Wrong { got, text }
    }

    /// Takes one argument of the call.
    fn take(&mut self, target: Candidate, name: &str, value: &Value) -> Result<(), Wrong> {
        if value.is_null() {
            return Ok(());
        }
        let key = normal(name);
        let Some(rule) = target.rule(self.tool, &key) else {
            let all: Vec<&str> = self.tool.arguments.iter().map(|a| a.name).collect();
            let why = match all.is_empty() {
                true => format!("{} takes no arguments, not {name:?}", self.tool.name),
                false => {
                    let all = all.join(", ");
                    format!("{} has no argument {name:?}; it takes {all}", self.tool.name)
                }
            };
            return Err(self.wrong(1, &why));
        };
        let cannot = |this: &Self| {
            let why = format!("{} cannot do {name} = {}", this.tool.name, short(value));
            Err(this.wrong(2, &why))
        };
        match rule {
            Rule::Dropped => {}
            Rule::As(ours) => self.put(ours, value, name)?,
            Rule::Not(ours) => match flag(value) {
                Some(flag) => self.put(ours, &Value::Bool(!flag), name)?,
                None => return cannot(self),
            },
            Rule::Milliseconds | Rule::Timeout(_) if number(value) == Some(0) => {}
            Rule::Milliseconds => match number(value) {
                Some(ms) => self.put("timeout", &seconds(ms), name)?,
                None => return cannot(self),
            },
            Rule::Timeout(from) => match number(value) {
                Some(ms) if ms >= from => self.put("timeout", &seconds(ms), name)?,
                Some(s) => self.put("timeout", &s.clamp(1, LONGEST_TIMEOUT).into(), name)?,
                None => return cannot(self),
            },
            Rule::Offset => {
                let offset = self.number(name, value)?;
                if self.offset.is_some_and(|before| before != offset) {
                    return Err(self.wrong(2, "the first line is given twice"));
                }
                self.offset = Some(offset);
            }
            Rule::Limit => {
                let limit = self.number(name, value)?;
                if self.limit.is_some_and(|before| before != limit) {
                    return Err(self.wrong(2, "the number of lines is given twice"));
                }
                self.limit = Some(limit);
            }
            Rule::Range => {
                if !self.range(value, name)? {
                    return cannot(self);
                }
            }
            Rule::Whole => match flag(value) {
                Some(flag) => self.whole = flag,
                None => return cannot(self),
            },
            Rule::WaitMilliseconds => {
                let wait = self.number(name, value)?.div_ceil(1000).min(LONGEST_WAIT);
                self.put("wait", &wait.into(), name)?;
            }
            Rule::WriteMode => match value.as_str() {
                Some("overwrite") => self.put("overwrite", &true.into(), name)?,
                _ => return cannot(self),
            },
            Rule::Choice => {
                let Some(choice) = text(value) else { return cannot(self) };
                let choices = self.args.entry("choices").or_insert_with(|| json!([]));
                if let Value::Array(choices) = choices {
                    choices.push(choice.into());
                }
            }
            Rule::Context => {
                let lines = self.number(name, value)?.min(MOST_CONTEXT);
                let before = self.args.get("context").and_then(Value::as_u64).unwrap_or(0);
                self.args.insert("context".into(), lines.max(before).into());
            }
            Rule::Recursive => match flag(value) {
                Some(true) => self.recursive = Some(true),
                Some(false) => self.put("depth", &1.into(), name)?,
                None => return cannot(self),
            },
            Rule::Choices => {
                let Some(choices) = choices(value) else { return cannot(self) };
                self.put("choices", &choices, name)?;
            }
            Rule::Questions => {
                let Some([Value::Object(one)]) = value.as_array().map(Vec::as_slice) else {
                    let why = "ask one question at a time";
                    return Err(self.wrong(2, why));
                };
                let one: BTreeMap<String, &Value> =
                    one.iter().map(|(key, value)| (normal(key), value)).collect();
                if one.get("multiselect").and_then(|value| flag(value)) == Some(true) {
                    return Err(self.wrong(2, "the person chooses one answer, not several"));
                }
                let Some(question) = one.get("question") else { return cannot(self) };
                self.put("question", question, name)?;
                if let Some(options) = one.get("options").or_else(|| one.get("choices")) {
                    let Some(choices) = choices(options) else { return cannot(self) };
                    self.put("choices", &choices, name)?;
                }
            }
            Rule::Background | Rule::Blocking => {
                let Some(flag) = flag(value) else { return cannot(self) };
                let background = flag == (rule == Rule::Background);
                if self.background.is_some_and(|before| before != background) {
                    return Err(self.wrong(2, "whether it runs in the background is given twice"));
                }
                self.background = Some(background);
            }
            Rule::OnlyShell => match value.as_str().and_then(|shell| shell.rsplit('/').next()) {
                Some("sh" | "bash" | "zsh") => {}
                _ => return cannot(self),
            },
            Rule::Terminal => match flag(value) {
                Some(flag) => self.terminal = flag,
                None => return cannot(self),
            },
            Rule::Files => match list(value).as_deref() {
                Some([Value::Object(one)]) => {
                    for (name, value) in one {
                        match (normal(name).as_str(), value) {
                            ("path", _) => self.put("path", value, name)?,
                            ("lineranges", Value::Array(ranges)) => match ranges.as_slice() {
                                [] => {}
                                [range] if self.range(range, name)? => {}
                                _ => return cannot(self),
                            },
                            _ => return cannot(self),
                        }
                    }
                }
                Some([path @ Value::String(_)]) => self.put("path", path, name)?,
                _ => return Err(self.wrong(2, "read one file at a time")),
            },
            Rule::Edits => match list(value).unwrap_or_else(|| vec![value.clone()]).as_slice() {
                [Value::Object(one)] if !self.nested => {
                    self.nested = true;
                    for (name, value) in one {
                        self.take(target, name, value)?;
                    }
                }
                _ => return Err(self.wrong(2, "make one replacement at a time")),
            },
            Rule::PatchCommand => match patch_command::patch_of(value, |_| false) {
                Some(patch) => self.put("patch", &patch.into(), name)?,
                None => return cannot(self),
            },
            Rule::Block => match value.as_str().and_then(patch_command::block) {
                Some((old, new)) => {
                    self.put("old", &old.into(), name)?;
                    self.put("new", &new.into(), name)?;
                }
                None => return cannot(self),
            },
            Rule::Glob => match value.as_str() {
                Some(text) if text.contains(['*', '?', '[']) => self.put("glob", value, name)?,
                _ => {
                    let why = format!("{name} must be a pattern such as **/*{}", short_text(value));
                    return Err(self.wrong(2, &why));
                }
            },
            Rule::Nested => match value {
                Value::Object(inner) if !self.nested => {
                    self.nested = true;
                    for (name, value) in inner {
                        self.take(target, name, value)?;
                    }
                }
                _ => return cannot(self),
            },
            Rule::Staged => match text(value).as_deref() {
                Some("staged") => self.put("staged", &true.into(), name)?,
                Some("unstaged") => {}
                _ => return cannot(self),
            },
            Rule::OnlyRoot
                if value.as_str().is_some_and(|path| is_root(path, self.context.root)) => {}
            Rule::OnlyFalse if flag(value) == Some(false) => {}
            Rule::OnlyOne if number(value) == Some(1) => {}
            Rule::OnlyStart if number(value).is_some_and(|at| at <= 1) => {}
            Rule::OnlyEmpty if is_empty(value) => {}
            Rule::OnlyWord(word) if value.as_str() == Some(word) => {}
            Rule::OnlyFalse
            | Rule::OnlyOne
            | Rule::OnlyStart
            | Rule::OnlyEmpty
            | Rule::OnlyRoot
            | Rule::OnlyWord(_) => return cannot(self),
        }
        Ok(())
    }

    /// Takes a first and a last line. Says whether there were such.
    fn range(&mut self, value: &Value, name: &str) -> Result<bool, Wrong> {
        match list(value).as_deref() {
            Some([first, last]) => {
                self.put("first", first, name)?;
                if last.as_i64() != Some(-1) {
                    self.put("last", last, name)?;
                }
            }
            Some([]) => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn number(&self, name: &str, value: &Value) -> Result<u64, Wrong> {
        number(value).ok_or_else(|| {
            self.wrong(2, &format!("{name} must be a whole number, not {}", short(value)))
        })
    }

    /// Sets one of our arguments, in the form that our tool takes.
    fn put(&mut self, ours: &'static str, value: &Value, name: &str) -> Result<(), Wrong> {
        let Some(argument) = self.tool.arguments.iter().find(|a| a.name == ours) else {
            return Err(self.wrong(1, &format!("{} has no argument {name:?}", self.tool.name)));
        };
        let text = matches!(argument.kind, ArgumentKind::Text | ArgumentKind::Texts);
        let optional = text && !argument.required;
        // What is empty is left out, where it may be.
        if optional && is_empty(value) {
            return Ok(());
        }
        let Some(value) = coerced(argument.kind, value) else {
            let what = match argument.kind {
                ArgumentKind::Text => "text",
                ArgumentKind::Number => "a whole number",
                ArgumentKind::Flag => "true or false",
                ArgumentKind::Texts => "a list of texts",
                ArgumentKind::Command => "a command line or a list of arguments",
                ArgumentKind::Object => "an object",
                ArgumentKind::Steps => "a list of steps, each with text and state",
            };
            return Err(self.wrong(2, &format!("{name} must be {what}, not {}", short(value))));
        };
        if optional && is_empty(&value) {
            return Ok(());
        }
        match self.args.get(ours) {
            Some(before) if *before != value => {
                let why = format!("{ours} is given twice, with different values");
                Err(self.wrong(2, &why))
            }
            _ => {
                self.args.insert(ours.into(), value);
                Ok(())
            }
        }
    }

    /// The first and last line from an offset and a number of lines.
    fn lines(&mut self) {
        if self.whole {
            self.args.retain(|name, _| name != "first" && name != "last");
            return;
        }
        if let Some(offset) = self.offset {
            self.args.entry("first").or_insert_with(|| offset.max(1).into());
        }
        if let Some(limit) = self.limit {
            let first = self.args.get("first").and_then(Value::as_u64).unwrap_or(1).max(1);
            let before = self.offset.unwrap_or(first - 1);
            let last = before.saturating_add(limit).max(1);
            self.args.entry("last").or_insert_with(|| last.into());
        }
    }

    fn finish(mut self) -> Result<(&'static str, Args), Wrong> {
        if (self.background == Some(true) || self.terminal) && self.tool.name == "shell" {
            self.become_tool("process_start");
            self.args.remove("timeout");
            if self.terminal {
                self.args.insert("terminal".into(), true.into());
            }
        }
        let text =
            |args: &Args, name: &str| args.get(name).and_then(Value::as_str).map(str::to_owned);
        if self.tool.name == "replace_text" && text(&self.args, "old").as_deref() == Some("") {
            // With nothing to replace, other harnesses create the file.
            let new = self.args.remove("new").unwrap_or_default();
            self.args.retain(|name, _| name == "path");
            self.args.insert("content".into(), new);
            self.become_tool("write_file");
        }
        let root = self.context.root;
        let at_root = |folder: &Value| folder.as_str().is_some_and(|path| is_root(path, root));
        let patch = |command: &Value| patch_command::patch_of(command, |path| is_root(path, root));
        if self.tool.name == "shell"
            && let Some(patch) = self.args.get("command").and_then(patch)
        {
            if self.args.get("folder").is_some_and(|folder| !at_root(folder)) {
                let why = "apply_patch is a tool of its own, with paths from the workspace root";
                return Err(Wrong { got: 3, text: why.into() });
            }
            self.args = Args::from_iter([("patch".to_owned(), Value::from(patch))]);
            self.become_tool("apply_patch");
        }
        if self.tool.name == "shell"
            && let Some(command) = self.args.get("command")
            && patch_command::applies_patch(command)
        {
            let why = "apply_patch is a tool of its own: call it, and nothing else in that call";
            return Err(Wrong { got: 3, text: why.into() });
        }
        if self.tool.name == "apply_patch"
            && !self.context.cut
            && let Some(patch) = text(&self.args, "patch")
            && let Some(whole) = closed(&patch)
        {
            self.args.insert("patch".into(), whole.into());
        }
        let missing =
            self.tool.arguments.iter().find(|a| a.required && !self.args.contains_key(a.name));
        match missing {
            Some(argument) => {
                let why = format!("{} needs {:?}", self.tool.name, argument.name);
                Err(self.wrong(3, &why))
            }
            None => Ok((self.tool.name, self.args)),
        }
    }

    fn become_tool(&mut self, name: &str) {
        if let Some(tool) = our_tool(name) {
            self.tool = tool;
        }
    }
}

/// Whether a path is that of the workspace.
fn is_root(path: &str, root: &str) -> bool {
    matches!(path, "" | "." | "./")
        || !root.is_empty() && Path::new(path).components().eq(Path::new(root).components())
}

/// A patch with its last line, if only that is missing.
fn closed(patch: &str) -> Option<String> {
    let trimmed = patch.trim();
    let begins = trimmed.starts_with("*** Begin Patch");
    (begins && !trimmed.ends_with("*** End Patch"))
        .then(|| format!("{}\n*** End Patch", patch.trim_end_matches('\n')))
}

fn seconds(ms: u64) -> Value {
    ms.div_ceil(1000).clamp(1, LONGEST_TIMEOUT).into()
}
