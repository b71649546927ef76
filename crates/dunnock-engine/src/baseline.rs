//! Runs the checks on a copy of the files from before the work, so that a check that already failed
//! then can be reported.

use crate::ports::Ports;
use dunnock_core::{Call, EffectOutcome, Stage};
use dunnock_ports::{Blob, CancellationToken, DeltaSink, FilesError, ToolCall};
use dunnock_proto::{
    Baseline, Baselined, CallId, CallPart, Class, Hash, HostSet, Isolation, Recovery, Role,
    SessionId, Step, Tree, VerifyArgs,
};
use std::sync::Arc;

/// What to run, and on which files.
pub(crate) struct Baselining {
    pub(crate) session: SessionId,
    pub(crate) workspace: Arc<str>,
    pub(crate) tree: Tree,
    pub(crate) of: Hash,
    pub(crate) commands: Vec<String>,
    pub(crate) step: Step,
    pub(crate) level: Isolation,
    pub(crate) open_hosts: HostSet,
}

/// A baseline without results.
pub(crate) fn none(tree: Tree, of: Hash, why: String) -> Baselined {
    Baselined { tree, of, checks: Vec::new(), note: Some(why) }
}

impl Baselining {
    pub(crate) async fn run(
        self,
        ports: Ports,
        halt: CancellationToken,
    ) -> (EffectOutcome, Vec<Blob>) {
        let copy = match &ports.checkpoints {
            Some(checkpoints) => checkpoints.copy(&self.workspace, &self.tree).await,
            None => Err(FilesError::Unavailable),
        };
        let copy = match copy {
            Ok(copy) => copy,
            Err(why) => {
                return (
                    EffectOutcome::Baselined(none(
                        self.tree,
                        self.of,
                        format!("the files could not be copied: {why}"),
                    )),
                    Vec::new(),
                );
            }
        };
        let mut checks = Vec::new();
        for (command, index) in self.commands.iter().zip(0..) {
            if halt.is_cancelled() {
                return (
                    EffectOutcome::Baselined(none(self.tree, self.of, "interrupted".into())),
                    Vec::new(),
                );
            }
            let quiet: DeltaSink = Arc::new(|_| {});
            let (finished, _) =
                ports.tools.run(self.job(command, index, copy.path()), quiet, halt.clone()).await;
            let (outcome, exit, ms) = (finished.outcome, finished.exit, finished.ms);
            let shown = finished.shown.replace(copy.path(), &self.workspace).into();
            checks.push(Baseline { command: command.clone(), outcome, exit, ms, shown });
        }
        let note = copy.lacks();
        (
            EffectOutcome::Baselined(Baselined { tree: self.tree, of: self.of, checks, note }),
            Vec::new(),
        )
    }

    fn job(&self, command: &str, index: u16, folder: &str) -> ToolCall {
        let args: Arc<str> = VerifyArgs { command: command.into() }.text().into();
        let part = CallPart {
            id: String::new(),
            tool: "verify".into(),
            args,
            sent: None,
            recovered: false,
            fault: None,
        };
        let id = CallId { step: self.step, index };
        let call = Call {
            stage: Stage::Allowed,
            level: Some(self.level),
            harness: true,
            ..Call::new(id, Arc::new(part), Class::Command, Recovery::Repeat, Some(Role::Work))
        };
        let (session, level) = (self.session.clone(), self.level);
        ToolCall {
            session,
            workspace: folder.into(),
            call,
            isolation: level,
            open_hosts: self.open_hosts.clone(),
            closes_hosts: false,
            seen: Arc::default(),
            hidden_folder: None,
            time_left: None,
        }
    }
}
