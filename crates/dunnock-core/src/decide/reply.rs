//! The effects of a person's answer to a question.

use super::Draft;
use crate::policy;
use crate::state::Call;
use dunnock_proto::{
    AllowedBy, Answer, EndReason, Granted, Hash, Outcome, QuestionId, QuestionKind, Refused,
    Replied,
};
use std::sync::Arc;

impl Draft<'_> {
    /// Accepts an answer once, and only for what was really shown.
    pub(super) fn reply(
        &mut self,
        id: QuestionId,
        shown_hash: Hash,
        answer: Answer,
        note: Option<String>,
    ) -> Result<(), Refused> {
        let Some(question) = self.s.question(id).cloned() else {
            return self.withdraw((id, shown_hash), &answer, note);
        };
        if question.hash != shown_hash {
            return Err(Refused::Changed);
        }
        let replied = Replied { question: id, answer: answer.clone(), note: note.clone() };
        match question.kind.as_ref() {
            QuestionKind::Approval(asked) => {
                let call = self.s.call(asked.call).cloned().ok_or(Refused::NoQuestion)?;
                if call.hash() != asked.call_hash {
                    return Err(Refused::Changed);
                }
                // Whatever the lists say by now, a yes grants what was shown, at the isolation that
                // was shown.
                let (access, isolation) = (asked.access.clone(), asked.isolation);
                match answer {
                    Answer::Wider if asked.wider.is_nothing() => {
                        return Err(Refused::InvalidAnswer);
                    }
                    Answer::Yes | Answer::Wider => {
                        let wider = answer == Answer::Wider;
                        let access = if wider { asked.wider.clone() } else { access };
                        self.record(replied);
                        self.allow(&call, AllowedBy::Person(id), isolation, access, None);
                    }
                    Answer::Edit { .. } if policy::guarded(&self.s, &call.part.tool) => {
                        return Err(Refused::InvalidAnswer);
                    }
                    // Edited arguments get the access they need, but never more than was shown.
                    Answer::Edit { args } => {
                        let edited = Call { edited: Some(args.clone()), ..call.clone() };
                        let found = (self.now.policy.findings)(&self.s, &edited);
                        if found.never.is_some() || !access.covers(&found.access) {
                            return Err(Refused::InvalidAnswer);
                        }
                        self.record(replied);
                        self.allow(
                            &call,
                            AllowedBy::Person(id),
                            isolation,
                            found.access,
                            Some(args),
                        );
                    }
                    Answer::Always { rule } => {
                        if asked.rule.as_ref() != Some(&rule) {
                            return Err(Refused::InvalidAnswer);
                        }
                        self.record(replied);
                        self.record(Granted { rule });
                        self.allow(&call, AllowedBy::Person(id), isolation, access, None);
                    }
                    Answer::No => {
                        self.record(replied);
                        self.decline(call.id, note);
                    }
                    Answer::Text { .. } => return Err(Refused::InvalidAnswer),
                }
            }
            QuestionKind::Person { call, .. } => {
                let (outcome, text): (Outcome, Arc<str>) = match answer {
                    Answer::Text { text } => (Outcome::Done, text),
                    Answer::Yes => (Outcome::Done, "yes".into()),
                    Answer::No => (Outcome::Declined { note }, "declined by the person".into()),
                    Answer::Always { .. } | Answer::Edit { .. } | Answer::Wider => {
                        Err(Refused::InvalidAnswer)?
                    }
                };
                self.record(replied);
                self.finish(*call, outcome, &text);
            }
            kind @ (QuestionKind::Unknown { .. }
            | QuestionKind::Limit { .. }
            | QuestionKind::Budget
            | QuestionKind::Stalled { .. }
            | QuestionKind::Trust { .. }) => match answer {
                Answer::Yes => self.record(replied),
                Answer::No => {
                    self.record(replied);
                    match kind {
                        QuestionKind::Unknown { .. } => self.stop(),
                        QuestionKind::Limit { .. } => self.end_held(EndReason::Limit),
                        QuestionKind::Budget => self.end_held(EndReason::Budget),
                        QuestionKind::Stalled { .. } => self.end_held(EndReason::Stopped),
                        QuestionKind::Trust { .. }
                        | QuestionKind::Approval(_)
                        | QuestionKind::Person { .. } => {}
                    }
                }
                Answer::Wider
                | Answer::Always { .. }
                | Answer::Edit { .. }
                | Answer::Text { .. } => {
                    return Err(Refused::InvalidAnswer);
                }
            },
        }
        Ok(())
    }
}
