//! The tools that calls run.

use crate::{Blob, BoxFuture, CancellationToken, DeltaSink, FilesError};
use dunnock_core::Call;
use dunnock_proto::{
    Access, CallPreview, Finished, Hash, HostSet, Isolation, ServerTool, SessionId, Tool,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A tool as described to the model, and what the core must know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name and properties.
    pub tool: Tool,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its arguments, as text.
    pub schema: String,
}

/// What a call needs to run.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The session.
    pub session: SessionId,
    /// The folder.
    pub workspace: Arc<str>,
    /// The call, with the arguments and the access that were allowed.
    pub call: Call,
    /// How it must be isolated.
    pub isolation: Isolation,
    /// Hosts that every command in the sandbox may reach.
    pub open_hosts: HostSet,
    /// A secret may have been read: processes that started earlier lose their hosts.
    pub closes_hosts: bool,
    /// Files as the model last saw them.
    pub seen: Arc<BTreeMap<String, Hash>>,
    /// A folder that is hidden from commands, like those of the program itself: it holds the
    /// pasted answers of the chat.
    pub hidden_folder: Option<String>,
    /// How long it may take at most, because the session has a deadline.
    pub time_left: Option<Duration>,
}

/// What a model learns about the machine on which its calls run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostInfo {
    /// What the sandbox lets commands do, a line each; empty without a sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox: Vec<String>,
    /// What is there: the system, programs, names of files. Empty if it is not wanted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub snapshot: String,
}

impl HostInfo {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Runs calls.
pub trait Tools: Send + Sync {
    /// Runs a call until it ends. When cancelled, it stops the call and its whole process tree.
    /// Reports either way. What it leaves running belongs to the session.
    fn run(
        &self,
        job: ToolCall,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> BoxFuture<'_, (Finished, Vec<Blob>)>;
    /// Repairs what a dead process left half done. Called by a new owner before anything reads the
    /// files.
    fn mend(&self) {}
    /// Keeps a session's lock held while anything that its calls started may run, even after this
    /// process has died, until the returned value is dropped.
    fn hold(&self, lock: &std::fs::File) -> Option<Box<dyn Send + Sync>> {
        let _ = lock;
        None
    }
    /// Whether a workspace is only a folder of a git repository: commands can read the repository,
    /// and need access to change it.
    fn is_in_repository(&self, workspace: &str) -> bool {
        let _ = workspace;
        false
    }
    /// What a model should know about this machine, for commands that are isolated like this and may
    /// reach these hosts.
    fn host_info<'a>(
        &'a self,
        workspace: &'a str,
        isolation: Isolation,
        open_hosts: &'a HostSet,
        with_snapshot: bool,
    ) -> BoxFuture<'a, HostInfo> {
        let _ = (workspace, isolation, open_hosts, with_snapshot);
        Box::pin(async { HostInfo::default() })
    }
    /// What a call with this access, isolated like this, would run, use and destroy, as far as that
    /// can be determined without changing anything.
    fn preview<'a>(
        &'a self,
        workspace: &'a str,
        call: &'a Call,
        access: Access,
        isolation: Isolation,
    ) -> BoxFuture<'a, Vec<CallPreview>> {
        let _ = (workspace, call, access, isolation);
        Box::pin(async { Vec::new() })
    }
    /// What is known of a tool of an MCP server, by `server/tool`, without starting the server.
    fn server_tool(&self, session: &SessionId, name: &str) -> Option<ServerTool> {
        let _ = (session, name);
        None
    }
    /// What runs in the background of a session, and what earlier sessions in the folder left
    /// running, a line each. It may change files at any time.
    fn running<'a>(
        &'a self,
        session: &'a SessionId,
        workspace: &'a str,
    ) -> BoxFuture<'a, Vec<String>> {
        let _ = (session, workspace);
        Box::pin(async { Vec::new() })
    }
    /// Ends the processes that a session's calls left running, and waits until they are gone. Those
    /// that the person keeps continue.
    /// Called when no process drives the session any more.
    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        let _ = session;
        Box::pin(async {})
    }
    /// Saves the results of a planner's iterations in a file of that name, where no call can write.
    fn remember<'a>(
        &'a self,
        workspace: &'a str,
        name: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<(), FilesError>> {
        let _ = (workspace, name, text);
        Box::pin(async { Ok(()) })
    }
    /// Kills everything that is running: this process is about to exit.
    fn stop_all(&self) {}
}
