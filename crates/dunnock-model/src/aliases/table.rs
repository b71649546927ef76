//! Names under which other harnesses offer tools like ours, as data.
//!
//! An entry applies if the call has its name and only arguments that it knows. The first that
//! applies counts; a test shows that no two entries of a name take the same arguments.

use super::rules::Rule::{
    As, Background, Block, Context, Dropped, Files, Glob, Nested, OnlyEmpty, OnlyFalse, OnlyShell,
    OnlyStart, OnlyWord, Range, Timeout, WaitMilliseconds,
};
use super::rules::{self, Rule};

/// A value that an entry sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fixed {
    Flag(bool),
    Number(u64),
    EmptyText,
}

/// A tool of another harness.
#[derive(Debug)]
pub(crate) struct Alias {
    /// Its names, in normal form: lower case, only letters and digits.
    pub(crate) names: &'static [&'static str],
    /// An argument that must have one of these values, for tools that do several things.
    pub(crate) when: Option<(&'static str, &'static [&'static str])>,
    /// An argument that must be there.
    pub(crate) needs: Option<&'static str>,
    /// Our tool.
    pub(crate) tool: &'static str,
    /// What its arguments become, before our tool's own synonyms. Names are in normal form.
    pub(crate) arguments: &'static [(&'static str, Rule)],
    /// Whether it has only these arguments, not our tool's own and their synonyms.
    pub(crate) only: bool,
    /// Its name and a correct call, where its own form should be shown.
    pub(crate) example: Option<(&'static str, &'static str)>,
    /// What it does unless an argument says otherwise.
    pub(crate) fixed: &'static [(&'static str, Fixed)],
}

impl Alias {
    const fn of(names: &'static [&'static str], tool: &'static str) -> Self {
        Self {
            names,
            when: None,
            needs: None,
            tool,
            arguments: &[],
            only: false,
            example: None,
            fixed: &[],
        }
    }

    const fn when(self, argument: &'static str, values: &'static [&'static str]) -> Self {
        Self { when: Some((argument, values)), ..self }
    }

    const fn needs(self, argument: &'static str) -> Self {
        Self { needs: Some(argument), ..self }
    }

    const fn with(self, arguments: &'static [(&'static str, Rule)]) -> Self {
        Self { arguments, ..self }
    }

    const fn only(self, arguments: &'static [(&'static str, Rule)]) -> Self {
        Self { arguments, only: true, ..self }
    }

    const fn like(self, name: &'static str, example: &'static str) -> Self {
        Self { example: Some((name, example)), ..self }
    }

    const fn fixed(self, fixed: &'static [(&'static str, Fixed)]) -> Self {
        Self { fixed, ..self }
    }
}

/// The text editor of Anthropic's API and of those who took it over.
const EDITOR: &[&str] =
    &["strreplacebasededittool", "strreplaceeditor", "texteditor", "editor", "fileeditor"];

/// The name under which it is offered.
const EDITOR_NAME: &str = "str_replace_based_edit_tool";

/// One tool for all that concerns a process.
const PROCESS: &[&str] = &["process"];

/// The entries. Sources are in `fixtures/calls/README.md`.
pub(crate) const ALIASES: &[Alias] = &[
    // Commands.
    Alias::of(
        &[
            "shellcommand",
            "executebash",
            "executecommand",
            "runinterminal",
            "runterminalcmd",
            "runterminalcommand",
            "runcommand",
            "developershell",
            "terminal",
            "execute",
            "runbash",
            "exec",
            "containerexec",
        ],
        "shell",
    )
    .with(&[("shell", OnlyShell), ("env", OnlyEmpty), ("id", Dropped)]),
    // These count in milliseconds.
    Alias::of(&["bash", "runshellcommand"], "shell").with(&[
        ("shell", OnlyShell),
        ("env", OnlyEmpty),
        ("id", Dropped),
        ("timeout", Timeout(1_000)),
    ]),
    Alias::of(&["execcommand"], "shell").with(&[("shell", OnlyShell)]),
    Alias::of(&["localshell", "localshellcall"], "shell").with(&[
        ("action", Nested),
        ("type", OnlyWord("exec")),
        ("env", OnlyEmpty),
        ("user", OnlyEmpty),
    ]),
    // Reading.
    Alias::of(
        &["read", "readfile", "cat", "viewimage", "openfile", "fileread", "view", "readtextfile"],
        "view_file",
    )
    .with(&[("includelinenumbers", Dropped)]),
    Alias::of(&["readmanyfiles", "readfiles"], "view_file").only(&[
        ("include", As("path")),
        ("paths", As("path")),
        ("files", Files),
    ]),
    Alias::of(EDITOR, "view_file").when("command", &["view"]).like(EDITOR_NAME, r#"{"command":"view","path":"src/main.rs","view_range":[1,80]}"#).only(&[
        ("path", As("path")),
        ("viewrange", Range),
        ("filetext", OnlyEmpty),
        ("oldstr", OnlyEmpty),
        ("newstr", OnlyEmpty),
        ("inserttext", OnlyEmpty),
        ("maxcharacters", Dropped),
    ]),
    // Listing.
    Alias::of(&["listdir"], "list_files")
        .needs("dirpath")
        .only(&[
            ("dirpath", As("path")),
            ("depth", As("depth")),
            ("limit", Dropped),
            ("offset", OnlyStart),
        ])
        .fixed(&[("depth", Fixed::Number(2))]),
    Alias::of(&["ls", "listdir", "listdirectory", "listdirectorycontents"], "list_files")
        .fixed(&[("depth", Fixed::Number(1))]),
    Alias::of(
        &["glob", "list", "findfiles", "globsearch", "findpath", "globfilesearch", "findbyname"],
        "list_files",
    )
    .with(&[("searchdirectory", As("path")), ("maxdepth", As("depth"))]),
    Alias::of(&["findfile"], "list_files").only(&[("filename", As("glob")), ("dir", As("path"))]),
    Alias::of(&["search"], "list_files").only(&[("path", As("path")), ("filepattern", As("glob"))]),
    Alias::of(&["filesearch"], "list_files").with(&[("query", Glob), ("globpattern", As("glob"))]),
    // Searching.
    Alias::of(&["grep", "search"], "search_text")
        .needs("regex")
        .with(&[("regex", As("pattern"))])
        .fixed(&[("regex", Fixed::Flag(true)), ("ignore_case", Fixed::Flag(true))]),
    Alias::of(&["grep", "ripgrep", "grepfiles", "searchcode"], "search_text")
        .with(&[("regex", As("pattern")), ("type", As("type")), ("contextlines", Context)])
        .fixed(&[("regex", Fixed::Flag(true))]),
    Alias::of(&["searchfilecontent", "grepsearch"], "search_text")
        .fixed(&[("regex", Fixed::Flag(true)), ("ignore_case", Fixed::Flag(true))]),
    Alias::of(&["searchfiles"], "search_text")
        .with(&[("regex", As("pattern"))])
        .fixed(&[("regex", Fixed::Flag(true))]),
    Alias::of(&["searchdir", "searchfile"], "search_text").only(&[
        ("searchterm", As("pattern")),
        ("dir", As("path")),
        ("file", As("path")),
    ]),
    Alias::of(&["gitdiffunstaged", "getchangedfiles"], "git_diff"),
    Alias::of(&["gitdiffstaged"], "git_diff").fixed(&[("staged", Fixed::Flag(true))]),
    // Writing.
    Alias::of(&["write"], "write_file")
        .needs("filepath")
        .fixed(&[("overwrite", Fixed::Flag(true))]),
    Alias::of(&["write", "createfile", "newfile"], "write_file"),
    Alias::of(&["writetofile"], "write_file").needs("targetfile"),
    Alias::of(&["writetofile", "filewrite", "writetextfile"], "write_file")
        .fixed(&[("overwrite", Fixed::Flag(true))]),
    Alias::of(&["writefile"], "write_file")
        .only(&[("filepath", As("path")), ("content", As("content"))])
        .fixed(&[("overwrite", Fixed::Flag(true))]),
    Alias::of(EDITOR, "write_file").when("command", &["create"]).like(EDITOR_NAME, r#"{"command":"create","path":"src/new.rs","file_text":"fn one() {}\n"}"#).only(&[
        ("path", As("path")),
        ("filetext", As("content")),
        ("overwrite", As("overwrite")),
        ("viewrange", OnlyEmpty),
        ("oldstr", OnlyEmpty),
        ("newstr", OnlyEmpty),
        ("insertline", OnlyEmpty),
    ]),
    Alias::of(EDITOR, "write_file")
        .when("command", &["write"])
        .only(&[("path", As("path")), ("filetext", As("content"))])
        .fixed(&[("overwrite", Fixed::Flag(true))]),
    // Editing.
    Alias::of(
        &[
            "edit",
            "editfile",
            "replace",
            "strreplace",
            "searchreplace",
            "replacestringinfile",
            "fileedit",
            "replaceinfile",
            "applydiff",
            "multiedit",
            "strreplacefile",
            "replacefilecontent",
        ],
        "replace_text",
    )
    .with(&[("search", As("old")), ("replace", As("new")), ("diff", Block)]),
    Alias::of(EDITOR, "replace_text")
        .when("command", &["str_replace", "edit"]).like(EDITOR_NAME, r#"{"command":"str_replace","path":"src/main.rs","old_str":"let a = 1;","new_str":"let a = 2;"}"#)
        .only(&[
            ("path", As("path")),
            ("oldstr", As("old")),
            ("newstr", As("new")),
            ("filetext", OnlyEmpty),
            ("viewrange", OnlyEmpty),
            ("insertline", OnlyEmpty),
            ("replaceall", As("all")),
        ])
        .fixed(&[("new", Fixed::EmptyText)]),
    Alias::of(EDITOR, "insert_text").when("command", &["insert"]).like(EDITOR_NAME, r#"{"command":"insert","path":"src/main.rs","insert_line":3,"insert_text":"use std::fs;\n"}"#).only(&[
        ("path", As("path")),
        ("insertline", As("line")),
        ("inserttext", As("text")),
        ("newstr", As("text")),
        ("filetext", OnlyEmpty),
        ("viewrange", OnlyEmpty),
        ("oldstr", OnlyEmpty),
    ]),
    Alias::of(&["patch"], "replace_text").when("operation", &["replace"]).only(&[
        ("path", As("path")),
        ("search", As("old")),
        ("content", As("new")),
    ]),
    Alias::of(&["patch"], "replace_text")
        .when("operation", &["replace_all"])
        .only(&[("path", As("path")), ("search", As("old")), ("content", As("new"))])
        .fixed(&[("all", Fixed::Flag(true))]),
    Alias::of(&["patch", "applypatchtool"], "apply_patch"),
    Alias::of(&["removefile", "deletefiles", "remove", "delete", "deletepath"], "delete_file"),
    Alias::of(&["renamefile", "movepath", "rename"], "move_file"),
    // Processes.
    Alias::of(PROCESS, "process_start").when("action", &["start"]).like("process", r#"{"action":"start","command":"python3 -m http.server 8000"}"#).with(&[
        ("process", OnlyEmpty),
        ("text", OnlyEmpty),
        ("keys", OnlyEmpty),
        ("screen", Dropped),
    ]),
    Alias::of(PROCESS, "process_read").when("action", &["read", "wait", "poll", "list"]).like("process", r#"{"action":"read","process":1,"wait":10}"#).with(&[
        ("command", OnlyEmpty),
        ("folder", OnlyEmpty),
        ("text", OnlyEmpty),
        ("keys", OnlyEmpty),
        ("terminal", Dropped),
        ("network", Dropped),
    ]),
    Alias::of(PROCESS, "process_write").when("action", &["write"]).like("process", r#"{"action":"write","process":1,"text":"help\n"}"#).with(&[
        ("command", OnlyEmpty),
        ("folder", OnlyEmpty),
        ("terminal", Dropped),
        ("network", Dropped),
    ]),
    Alias::of(PROCESS, "process_stop").when("action", &["stop", "kill"]).like("process", r#"{"action":"stop","process":1}"#).with(&[
        ("command", OnlyEmpty),
        ("folder", OnlyEmpty),
        ("text", OnlyEmpty),
        ("keys", OnlyEmpty),
        ("wait", Dropped),
        ("screen", Dropped),
        ("terminal", Dropped),
        ("network", Dropped),
    ]),
    Alias::of(
        &[
            "bashoutput",
            "taskoutput",
            "getterminaloutput",
            "commandstatus",
            "readprocess",
            "pollprocess",
            "joboutput",
            "processlogs",
        ],
        "process_read",
    )
    .with(&[
        ("bashid", As("process")),
        ("shellid", As("process")),
        ("taskid", As("process")),
        ("sessionid", As("process")),
        ("commandid", As("process")),
        ("waitdurationseconds", As("wait")),
        ("waitsec", As("wait")),
        ("timeoutseconds", As("wait")),
        ("wait", Dropped),
        ("tail", Dropped),
        ("block", Dropped),
        ("timeout", WaitMilliseconds),
        ("filter", Dropped),
        ("outputpriority", Dropped),
        ("outputcharactercount", Dropped),
    ]),
    Alias::of(
        &[
            "killshell",
            "killbash",
            "taskstop",
            "killterminal",
            "stopprocess",
            "terminateprocess",
            "jobkill",
        ],
        "process_stop",
    )
    .with(&[
        ("bashid", As("process")),
        ("shellid", As("process")),
        ("taskid", As("process")),
        ("sessionid", As("process")),
    ]),
    // Empty input only waits for output.
    Alias::of(&["writestdin"], "process_read").only(&[
        ("sessionid", As("process")),
        ("chars", OnlyEmpty),
        ("yieldtimems", WaitMilliseconds),
        ("maxoutputtokens", Dropped),
    ]),
    Alias::of(&["writestdin"], "process_write").only(&[
        ("sessionid", As("process")),
        ("chars", As("text")),
        ("yieldtimems", WaitMilliseconds),
        ("maxoutputtokens", Dropped),
    ]),
    // The person, the plan, the end.
    Alias::of(
        &[
            "askuserquestion",
            "askfollowupquestion",
            "askuser",
            "requestuserinput",
            "askhuman",
            "question",
            "followup",
        ],
        "ask_person",
    ),
    Alias::of(&["tasktracker"], "update_plan").when("command", &["plan"]),
    Alias::of(
        &[
            "todowrite",
            "writetodos",
            "managetodolist",
            "todo",
            "todos",
            "settodolist",
            "updatetodolist",
        ],
        "update_plan",
    ),
    Alias::of(
        &[
            "attemptcompletion",
            "finish",
            "taskcomplete",
            "completetask",
            "submit",
            "done",
            "finalanswer",
        ],
        "final_output",
    ),
    // Ours, where another tool of the same name does more.
    Alias::of(&["processstart"], "process_start").with(&[
        ("background", Background),
        ("restart", OnlyFalse),
        ("timeout", rules::Rule::Dropped),
    ]),
];
