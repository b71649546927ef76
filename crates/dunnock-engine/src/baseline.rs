//! Runs the checks on a copy of the files as they were before the work: a check that failed then says less when it passes.

use crate::world::World;
use dunnock_core::ports::{Blob, Halt, Job, Live};
use dunnock_core::{Call, Stage, Work};
use dunnock_proto::{
    Baseline, Baselined, CallId, CallPart, Class, Hash, Level, Recovery, Role, SessionId, Tree, Turn, VerifyArgs,
};
use std::sync::Arc;

/// What is to be run, and on what.
pub(crate) struct Baselining {
    pub(crate) session: SessionId,
    pub(crate) workspace: Arc<str>,
    pub(crate) tree: Tree,
    pub(crate) of: Hash,
    pub(crate) commands: Vec<String>,
    pub(crate) turn: Turn,
    pub(crate) level: Level,
}

/// Nothing is known of how it was before.
pub(crate) fn none(tree: Tree, of: Hash, why: String) -> Baselined {
    Baselined { tree, of, checks: Vec::new(), note: Some(why) }
}

impl Baselining {
    pub(crate) async fn run(self, world: World, halt: Halt) -> (Work, Vec<Blob>) {
        let copy = match &world.checkpoints {
            Some(keeper) => keeper.copy(&self.workspace, &self.tree).await,
            None => Err("files are not kept here".into()),
        };
        let copy = match copy {
            Ok(copy) => copy,
            Err(why) => {
                return (
                    Work::Baselined(none(self.tree, self.of, format!("no copy could be made: {why}"))),
                    Vec::new(),
                );
            }
        };
        let mut checks = Vec::new();
        for (command, index) in self.commands.iter().zip(0..) {
            if halt.told() {
                return (Work::Baselined(none(self.tree, self.of, "interrupted".into())), Vec::new());
            }
            let quiet: Live = Arc::new(|_| {});
            let (finished, _) = world.tools.run(self.job(command, index, copy.path()), quiet, halt.clone()).await;
            let (outcome, exit, ms) = (finished.outcome, finished.exit, finished.ms);
            let shown = finished.shown.replace(copy.path(), &self.workspace).into();
            checks.push(Baseline { command: command.clone(), outcome, exit, ms, shown });
        }
        let note = copy.lacks();
        (Work::Baselined(Baselined { tree: self.tree, of: self.of, checks, note }), Vec::new())
    }

    fn job(&self, command: &str, index: u16, folder: &str) -> Job {
        let args: Arc<str> = VerifyArgs { command: command.into() }.text().into();
        let part = CallPart { id: String::new(), tool: "verify".into(), args, recovered: false, fault: None };
        let id = CallId { turn: self.turn, index };
        let call = Call {
            stage: Stage::Allowed,
            level: Some(self.level),
            harness: true,
            ..Call::new(id, Arc::new(part), Class::Command, Recovery::Repeat, Some(Role::Work))
        };
        let (session, level) = (self.session.clone(), self.level);
        Job { session, workspace: folder.into(), call, level, seen: Arc::default(), closed: None }
    }
}
