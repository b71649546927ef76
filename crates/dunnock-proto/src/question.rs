//! Questions to the person, as data, and the only place where that data becomes text.
//!
//! Invariant: an interface shows a question from [`QuestionKind::view`] and the call's own
//! arguments; it never parses a text.
//! Invariant: no value in a [`Reason`] was written by a model. The programs and file names in it
//! come from our own lists, the rules from the person, and hosts are only names and addresses, so no
//! argument can change a heading, a reason or what a yes grants.

use crate::{Access, CallId, Hash, HostSet, Isolation, QuestionId, Rule};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a question is about, with everything that an interface shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// May this call run?
    Approval(Box<Approval>),
    /// The model asks a question; the answer is the call's result.
    Person {
        /// The call.
        call: CallId,
        /// What the model asks, in its own words.
        text: Arc<str>,
        /// Answers to choose from, if any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        choices: Vec<String>,
    },
    /// These calls had started when their process died: continue?
    Unknown {
        /// The calls.
        calls: Vec<CallId>,
    },
    /// The step limit is reached: continue for as many steps again?
    Limit {
        /// The limit.
        steps: u32,
    },
    /// The budget does not cover the next request: add the same amount again?
    Budget,
    /// The same calls on the same files kept giving the same results: continue?
    Stalled {
        /// How many times.
        times: u32,
    },
    /// The folder has settings, commands or scripts of its own: trust it?
    Trust {
        /// Hash of that content.
        content: Hash,
    },
}

/// A call waiting for the person's approval, and what a yes means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approval {
    /// The call.
    pub call: CallId,
    /// Hash of the tool and arguments that a yes approves.
    pub call_hash: Hash,
    /// What kind of request it is.
    pub request: RequestKind,
    /// Why approval is needed, most important reason first.
    pub reasons: Vec<Reason>,
    /// How the call is isolated, if it runs a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Exactly what a yes grants beyond the sandbox.
    #[serde(default, skip_serializing_if = "Access::is_nothing")]
    pub access: Access,
    /// What the person may grant instead: the network, where `access` has only named hosts of it.
    #[serde(default, skip_serializing_if = "Access::is_nothing")]
    pub wider: Access,
    /// The rule that "always" would create, unless that rule would match everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// The command may run code of the project, which then has this access too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub project_code: bool,
    /// What would happen, where that could be determined in advance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preview: Vec<CallPreview>,
}

/// The kinds of requests. Each has its own heading and its own label for a yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// A command that would run outside the sandbox.
    Unsandboxed,
    /// A command that needs the network.
    Network,
    /// A command that needs named hosts of the network.
    Hosts,
    /// A command that reads secret files.
    Secrets,
    /// A command that changes files which other programs run or follow.
    Protected,
    /// A git command that changes a repository of which the workspace is only a folder.
    Repository,
    /// A command that uses the person's own login.
    Login,
    /// A command that needs more than one of these.
    ExtraAccess,
    /// A command that destroys work.
    Destructive,
    /// Any other command.
    Command,
    /// An edit of files.
    Edit,
    /// An edit that also deletes files.
    EditAndDelete,
    /// The deletion of a file.
    Deletion,
    /// A move of a file.
    Move,
    /// Input for a running process.
    ProcessInput,
    /// A page of the web.
    Page,
    /// A tool of an MCP server.
    ServerTool {
        /// The server, by its name in the settings.
        server: String,
    },
    /// A call to another tool.
    Tool {
        /// Its name, from the list of tools that the session offers.
        name: String,
    },
}

/// Why approval is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The call itself requests network access.
    RequestsNetwork,
    /// It fetches a page of the web.
    FetchesPage,
    /// A secret may have been read in this session, which could now be sent.
    AfterSecret,
    /// The same programs were refused these hosts the last time; its text does not name them.
    WasRefused {
        /// The hosts.
        hosts: HostSet,
    },
    /// The program uses the network.
    UsesNetwork {
        /// The program.
        program: String,
    },
    /// A git command contacts another repository.
    ContactsRemote {
        /// The git command.
        command: String,
    },
    /// A git command discards work.
    DiscardsWork {
        /// The git command.
        command: String,
    },
    /// It changes this repository's git configuration.
    ChangesGitConfig,
    /// A git command changes the repository, of which the workspace is only a folder.
    ChangesRepository {
        /// The git command.
        command: String,
    },
    /// git's own files cannot be protected at this isolation level.
    GitUnprotected,
    /// It deletes the whole folder or its git history.
    DeletesFolder,
    /// It names a file that usually holds secrets.
    NamesSecret,
    /// It reads files outside the workspace.
    ReadsOutside,
    /// It changes a file outside the workspace.
    ChangesOutside,
    /// The program acts on the machine, not only on this folder.
    ActsOnMachine {
        /// The program.
        program: String,
    },
    /// It edits a file that other programs run or follow.
    EditsProtected {
        /// The file's name, as in our list.
        file: String,
    },
    /// It names such a file, and this isolation level cannot protect it.
    NamesProtected,
    /// One of the person's deny rules may apply, but the command is too complex to check.
    MayBeDenied {
        /// The rule.
        rule: String,
    },
    /// A running process has more access than the sandbox, and may run this input as a command.
    FeedsProcess,
    /// The approval mode requires approval for every change.
    ModeAsk,
    /// The approval mode requires approval for every command.
    ModeEdits,
    /// The tool of an MCP server may do more than read.
    MayDoMoreThanRead,
    /// The server says that the tool can destroy something.
    ServerToolDestroys,
    /// The person allowed the tool as it was described before.
    ServerToolChanged,
    /// The server is one of the project's.
    ServerOfProject,
    /// There is no sandbox on this machine.
    NoSandbox,
    /// The sandbox is weaker than it was for this session.
    WeakerSandbox {
        /// The strongest level it had.
        had: Isolation,
    },
}

/// Something that a call would do: mostly, what it would destroy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallPreview {
    /// It runs this program.
    Runs {
        /// Its full path.
        program: String,
    },
    /// It can use this login of the person's: a file, a variable or a program.
    UsesLogin {
        /// What it is.
        what: String,
    },
    /// No login for it was found on this machine.
    FindsNoLogin,
    /// Files that it deletes.
    Deletes {
        /// How many.
        files: u64,
        /// Of those, files that git does not track.
        untracked: u64,
        /// There are more: the command uses patterns, or there were too many files to count.
        more: bool,
    },
    /// Files that git does not track; the number is an upper bound.
    DeletesUntracked {
        /// How many.
        files: u64,
    },
    /// Uncommitted changes.
    DiscardsChanges {
        /// Staged files; other changes are not counted.
        staged: u64,
    },
    /// Stashed changes.
    DiscardsStash,
    /// The MCP server that would run or be asked, and what it can reach.
    UsesServer {
        /// Its command or its address.
        target: String,
        /// What it is granted.
        access: String,
    },
    /// What changed in the description of a server's tool. The server wrote these texts.
    DescriptionChanged {
        /// What changed: the description, the schema or a hint.
        part: String,
        /// As it was when the tool was last used.
        before: String,
        /// As it is now.
        after: String,
    },
}

/// A question as text, the same for every interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuestionView {
    /// The heading, by kind of request.
    pub heading: String,
    /// The question itself, unless it is about a call: our own words, or the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why approval is needed.
    pub reasons: Vec<String>,
    /// How the call is isolated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// What a yes grants beyond the sandbox.
    pub access: Vec<String>,
    /// What the person may grant instead, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wider: Option<String>,
    /// The rule that "always" would create.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// When that rule would apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_note: Option<&'static str>,
    /// What would happen: programs that run, files that are lost.
    pub preview: Vec<String>,
    /// The label for yes.
    pub yes: &'static str,
    /// The label for no.
    pub no: &'static str,
}

impl QuestionKind {
    /// The call that the question is about, if it is about one.
    #[must_use]
    pub fn call(&self) -> Option<CallId> {
        match self {
            Self::Approval(approval) => Some(approval.call),
            Self::Person { call, .. } => Some(*call),
            Self::Unknown { .. }
            | Self::Limit { .. }
            | Self::Budget
            | Self::Stalled { .. }
            | Self::Trust { .. } => None,
        }
    }

    /// The approval, if this is one.
    #[must_use]
    pub fn approval(&self) -> Option<&Approval> {
        match self {
            Self::Approval(approval) => Some(approval),
            _ => None,
        }
    }

    /// Answers to choose from.
    #[must_use]
    pub fn choices(&self) -> &[String] {
        match self {
            Self::Person { choices, .. } => choices,
            _ => &[],
        }
    }

    /// The hash of everything that the question shows; an answer must name it.
    #[must_use]
    pub fn hash(&self, question: QuestionId) -> Hash {
        let data = serde_json::to_vec(self).unwrap_or_default(); // plain structs with text keys cannot fail
        Hash::of_parts(&[question.0.to_string().as_bytes(), &data])
    }

    /// The question as text.
    #[must_use]
    pub fn view(&self) -> QuestionView {
        let plain =
            |heading: &str, text: String, yes: &'static str, no: &'static str| QuestionView {
                heading: heading.to_owned(),
                text: Some(text),
                reasons: Vec::new(),
                isolation: None,
                access: Vec::new(),
                wider: None,
                rule: None,
                rule_note: None,
                preview: Vec::new(),
                yes,
                no,
            };
        match self {
            Self::Approval(approval) => approval.view(),
            Self::Person { text, .. } => {
                plain("The model asks you a question", text.to_string(), "Answer", "Don't answer")
            }
            Self::Unknown { calls } => {
                let names: Vec<String> = calls.iter().map(ToString::to_string).collect();
                let text = format!(
                    "The outcome of these calls is unknown: {}. They may or may not have taken \
                     effect. Continue?",
                    names.join(", ")
                );
                plain("Outcome unknown", text, "Continue", "Stop")
            }
            Self::Limit { steps } => {
                let text =
                    format!("The step limit ({steps}) was reached. Continue for {steps} more?");
                plain("Step limit reached", text, "Continue", "Stop")
            }
            Self::Budget => {
                let text = "The remaining budget does not cover the next request. Add the same \
                            amount again, and ignore today's limit until this task ends?";
                plain("Budget limit reached", text.into(), "Continue", "Stop")
            }
            Self::Stalled { times } => {
                let text = format!(
                    "The model made the same calls {times} times with the same results, and no \
                     file changed. Continue?"
                );
                plain("The model seems stuck", text, "Continue", "Stop")
            }
            Self::Trust { .. } => {
                let text =
                    "It contains its own settings, commands or scripts, which Dunnock would use.";
                plain("Trust this folder?", text.into(), "Trust", "Don't trust")
            }
        }
    }
}

impl Approval {
    fn view(&self) -> QuestionView {
        let (mut heading, mut yes) = self.request.words();
        if self.request == RequestKind::Unsandboxed && self.isolation == Some(Isolation::D) {
            (heading, yes) =
                ("Run this command without a sandbox?".into(), "Run without a sandbox");
        }
        QuestionView {
            heading: heading.into_owned(),
            text: None,
            reasons: self.reasons.iter().map(Reason::words).collect(),
            isolation: self.isolation.map(|level| match level {
                Isolation::D => "none: there is no sandbox here".to_owned(),
                _ if self.access.unsandboxed => "off for this command".to_owned(),
                _ if self.access.is_nothing() => format!("level {level:?}: {}", level.words()),
                _ => format!("level {level:?}: {}, except for the access above", level.words()),
            }),
            access: match self.isolation {
                // Where there is no sandbox, a yes grants everything.
                Some(Isolation::D) => Access { unsandboxed: true, ..Access::NOTHING }.list(),
                _ => self.access.list(),
            },
            wider: (!self.wider.is_nothing()).then(|| self.wider.list().join("; ")),
            rule: self.rule.as_ref().map(Rule::words),
            rule_note: self.rule.as_ref().map(Rule::note),
            preview: {
                let code = "project code (scripts, hooks, build files) may run with this access";
                let code = self.project_code.then(|| code.to_owned());
                self.preview.iter().map(CallPreview::words).chain(code).collect()
            },
            yes,
            no: "Decline",
        }
    }
}

impl RequestKind {
    /// The heading, and the label for yes.
    fn words(&self) -> (std::borrow::Cow<'static, str>, &'static str) {
        match self {
            Self::Unsandboxed => {
                ("Run this command outside the sandbox?".into(), "Run outside the sandbox")
            }
            Self::Network => {
                ("Allow network access for this command?".into(), "Allow network access once")
            }
            Self::Hosts => ("Let this command reach these hosts?".into(), "Allow these hosts once"),
            Self::Secrets => ("Let this command read secret files?".into(), "Allow once"),
            Self::Protected => ("Let this command change protected files?".into(), "Allow once"),
            Self::Repository => {
                ("Let this command change the whole repository?".into(), "Allow once")
            }
            Self::Login => {
                ("Let this command use your login?".into(), "Allow once with your login")
            }
            Self::ExtraAccess => ("Allow extra access for this command?".into(), "Allow once"),
            Self::Destructive => ("Run this destructive command?".into(), "Run anyway"),
            Self::Command => ("Run this command?".into(), "Run once"),
            Self::Edit => ("Make this change?".into(), "Apply change"),
            Self::EditAndDelete => ("Make this change and delete files?".into(), "Apply change"),
            Self::Deletion => ("Delete this file?".into(), "Delete"),
            Self::Move => ("Move this file?".into(), "Move"),
            Self::ProcessInput => ("Send this input to a running process?".into(), "Send"),
            Self::Page => ("Fetch this page?".into(), "Fetch once"),
            Self::ServerTool { server } => {
                (format!("Use this tool of the MCP server {server}?").into(), "Use once")
            }
            Self::Tool { name } => (format!("Use the tool {name}?").into(), "Allow once"),
        }
    }
}

impl Reason {
    /// The reason as a clause that can follow "because".
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::RequestsNetwork => "the call asks for network access".into(),
            Self::FetchesPage => "it fetches a page from a host that is not allowed yet".into(),
            Self::AfterSecret => {
                "a secret may have been read in this session, and this could send it elsewhere"
                    .into()
            }
            Self::WasRefused { hosts } => {
                format!("the last run tried to reach {hosts}, which the command does not name")
            }
            Self::UsesNetwork { program } => format!("{program} uses the network"),
            Self::ContactsRemote { command } => format!("{command} contacts a remote repository"),
            Self::DiscardsWork { command } => {
                format!("{command} can discard changes, commits or branches")
            }
            Self::ChangesGitConfig => "it changes this repository's git configuration".into(),
            Self::ChangesRepository { command } => {
                format!("{command} changes the repository, which is larger than this folder")
            }
            Self::GitUnprotected => {
                "git's own files cannot be protected at this sandbox level".into()
            }
            Self::DeletesFolder => "it deletes the whole folder or its git history".into(),
            Self::NamesSecret => "it names a file that usually holds secrets".into(),
            Self::ReadsOutside => "it reads files outside this folder".into(),
            Self::ChangesOutside => {
                "it changes a file outside this folder; an undo will not restore it".into()
            }
            Self::ActsOnMachine { program } => {
                format!("{program} acts on this machine, not only on this folder")
            }
            Self::EditsProtected { file } => {
                format!("{file} is protected: other programs run or load it automatically")
            }
            Self::NamesProtected => {
                "it names a protected file, which cannot be protected at this sandbox level".into()
            }
            Self::MayBeDenied { rule } => {
                format!(
                    "your deny rule \"{rule}\" may apply, but the command is too complex to check"
                )
            }
            Self::FeedsProcess => "a process started earlier has more access than the sandbox, \
                                   and may run this input as a command"
                .into(),
            Self::ModeAsk => "edits and commands need approval in mode \"ask\"".into(),
            Self::ModeEdits => "commands need approval in mode \"edits\"".into(),
            Self::MayDoMoreThanRead => {
                "this tool may do more than read, and an undo does not restore what it changes outside this \
                 folder"
                    .into()
            }
            Self::ServerToolDestroys => {
                "the server says that this tool can destroy something".into()
            }
            Self::ServerToolChanged => {
                "the server has changed the description of this tool since you allowed it".into()
            }
            Self::ServerOfProject => "the server is one of this project's, not one of yours".into(),
            Self::NoSandbox => {
                "there is no sandbox here: the command can do whatever you can".into()
            }
            Self::WeakerSandbox { had } => {
                format!("the sandbox is weaker than before: this session had level {had:?}")
            }
        }
    }
}

impl CallPreview {
    fn words(&self) -> String {
        let count = |n: u64| crate::count(n, "file");
        match self {
            Self::Runs { program } => format!("runs {program}"),
            Self::UsesLogin { what } => format!("can use {what}"),
            Self::FindsNoLogin => "no login for it was found on this machine".into(),
            Self::Deletes { files, untracked, more } => {
                let at_least = if *more { "at least " } else { "" };
                let untracked = match untracked {
                    0 => String::new(),
                    n => format!(", {n} of them not tracked by git"),
                };
                format!("deletes {at_least}{}{untracked}", count(*files))
            }
            Self::DiscardsStash => "discards stashed changes".into(),
            Self::UsesServer { target, access } => format!("MCP server: {target} ({access})"),
            // As Debug prints them: on one line, and nobody takes them for our own words.
            Self::DescriptionChanged { part, before, after } => {
                format!("its {part} was {before:?} and is now {after:?}")
            }
            Self::DeletesUntracked { files } => {
                format!("deletes up to {} that git does not track", count(*files))
            }
            Self::DiscardsChanges { staged } => {
                format!(
                    "discards uncommitted changes (staged: {}; others are not counted)",
                    count(*staged)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;

    #[test]
    fn the_hash_of_a_question_changes_with_each_of_its_fields() {
        let approval = Approval {
            call: CallId { step: Step(1), index: 0 },
            call_hash: Hash::of(b"ls"),
            request: RequestKind::Command,
            reasons: vec![Reason::ModeAsk],
            isolation: Some(Isolation::A),
            access: Access::NOTHING,
            wider: Access::NOTHING,
            rule: None,
            project_code: false,
            preview: Vec::new(),
        };
        let rule =
            Rule { tool: "shell".into(), words: vec!["make".into()], access: Access::NOTHING };
        let changed = [
            Approval { call: CallId { step: Step(1), index: 1 }, ..approval.clone() },
            Approval { call_hash: Hash::of(b"rm"), ..approval.clone() },
            Approval { request: RequestKind::Network, ..approval.clone() },
            Approval { reasons: vec![Reason::ModeEdits], ..approval.clone() },
            Approval { isolation: Some(Isolation::B), ..approval.clone() },
            Approval { access: Access { network: true, ..Access::NOTHING }, ..approval.clone() },
            Approval { wider: Access { network: true, ..Access::NOTHING }, ..approval.clone() },
            Approval { rule: Some(rule), ..approval.clone() },
            Approval {
                preview: vec![CallPreview::DiscardsChanges { staged: 1 }],
                ..approval.clone()
            },
        ];
        let hash =
            |approval: Approval| QuestionKind::Approval(Box::new(approval)).hash(QuestionId(1));
        let mut hashes: Vec<Hash> = changed.into_iter().map(hash).collect();
        hashes.push(hash(approval.clone()));
        hashes.push(QuestionKind::Approval(Box::new(approval)).hash(QuestionId(2)));
        let all = hashes.len();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), all);
    }
}
