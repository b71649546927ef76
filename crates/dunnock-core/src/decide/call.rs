//! Calls: which ones run, need approval or never run, and how they end without running.

use super::Draft;
use crate::input::Previews;
use crate::policy::{MOST_CALLS, Verdict, reads_secret};
use crate::state::Call;
use dunnock_proto::{
    Access, Allowed, AllowedBy, Approval, AskPersonArgs, Asked, CallId, Class, Finished, Isolation,
    Outcome, PlanArgs, Planned, QuestionId, QuestionKind, Role,
};
use std::sync::Arc;

/// Arguments that the person changed.
type Args = Option<Arc<str>>;

impl Draft<'_> {
    /// Decides for each call of the answer just recorded: it runs, waits for approval, or does not
    /// run.
    pub(super) fn judge_calls(&mut self, mut previews: Previews) {
        for (n, call) in self.s.calls.clone().into_iter().enumerate() {
            if n >= MOST_CALLS {
                let why = format!(
                    "not run: an answer has at most {MOST_CALLS} calls; make the rest in the next \
                     one"
                );
                self.finish(call.id, Outcome::NotRun, &why);
                continue;
            }
            if let Some(fault) = &call.part.fault {
                self.finish(call.id, Outcome::NotRun, &format!("not run: {fault}"));
                continue;
            }
            let Some(role) = call.role else {
                self.finish(
                    call.id,
                    Outcome::NotRun,
                    &format!("there is no tool {}", call.part.tool),
                );
                continue;
            };
            match role {
                Role::Final => self.finish(call.id, Outcome::Done, "noted"),
                Role::Plan => match PlanArgs::parse(call.args()) {
                    Ok(plan) => {
                        self.record(Planned { steps: plan.steps });
                        self.finish(call.id, Outcome::Done, "noted");
                    }
                    Err(error) => self.finish(call.id, Outcome::Failed, &error),
                },
                Role::AskPerson if self.s.config.unattended => self.answer_for_nobody(call.id),
                Role::AskPerson => match AskPersonArgs::parse(call.args()) {
                    Ok(AskPersonArgs { question, choices }) => {
                        self.ask(QuestionKind::Person { call: call.id, text: question, choices });
                    }
                    Err(error) => self.finish(call.id, Outcome::Failed, &error),
                },
                Role::Work if call.part.broken().is_some() => {
                    let why = call.part.broken().unwrap_or_default();
                    self.finish(
                        call.id,
                        Outcome::NotRun,
                        &format!("not run: the arguments are not a JSON object: {why}"),
                    );
                }
                Role::Work => match self.now.policy.judge(&self.s, &call) {
                    Verdict::Allow { by, access } => self.allow(&call, by, None, access, None),
                    Verdict::Ask(approval) if self.s.config.unattended => {
                        self.refuse_for_nobody(&approval);
                    }
                    Verdict::Ask(approval) => {
                        let preview = previews.remove(&call.id.index).unwrap_or_default();
                        self.ask(QuestionKind::Approval(Box::new(Approval {
                            preview,
                            ..approval
                        })));
                    }
                    Verdict::Deny(reason) => {
                        self.finish(call.id, Outcome::NotRun, &format!("not allowed: {reason}"))
                    }
                },
            }
        }
    }

    /// Allows the call with exactly this access, isolated at least as well as was `shown` (or as
    /// now, if nobody was asked).
    pub(super) fn allow(
        &mut self,
        call: &Call,
        by: AllowedBy,
        shown: Option<Isolation>,
        access: Access,
        args: Args,
    ) {
        let hash = call.hash_with(args.as_ref());
        let level = (call.class == Class::Command).then(|| shown.unwrap_or(self.s.level()));
        let reads_secret = reads_secret(&self.s, call, args.as_ref().unwrap_or(call.args()));
        let (call, isolation) = (call.id, level);
        self.record(Allowed { call, by, args, hash, isolation, access, reads_secret });
    }

    pub(super) fn finish(&mut self, call: CallId, outcome: Outcome, shown: &str) {
        self.record(Finished::plain(call, outcome, shown));
    }

    /// Asks the person, if there is a question.
    pub(super) fn ask(&mut self, kind: impl Into<Option<QuestionKind>>) {
        let Some(kind) = kind.into() else { return };
        let question = QuestionId(self.s.asked + 1);
        let hash = kind.hash(question);
        self.record(Asked { question, kind, hash });
    }
}
