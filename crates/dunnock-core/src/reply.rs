//! What a person's answer to a question makes true.

use crate::policy;
use crate::step::Draft;
use dunnock_proto::{About, Answer, By, Hash, Outcome, QuestionId, Refused, Replied, Why};
use std::sync::Arc;

impl Draft<'_> {
    /// One answer is taken, once, and only for what was really shown.
    pub(crate) fn reply(
        &mut self,
        id: QuestionId,
        shown: Hash,
        answer: Answer,
        note: Option<String>,
    ) -> Result<(), Refused> {
        let question = self.s.question(id).cloned().ok_or(Refused::NoQuestion)?;
        if question.hash != shown {
            return Err(Refused::Changed);
        }
        let replied = Replied { question: id, answer: answer.clone(), note: note.clone() };
        match question.about {
            About::Approval { call } => {
                let call = self.s.call(call).cloned().ok_or(Refused::NoQuestion)?;
                match answer {
                    Answer::Yes => {
                        self.record(replied);
                        self.allow(&call, By::Person(id), None);
                    }
                    Answer::Edit { .. } if policy::guarded(&self.s, &call.part.tool) => return Err(Refused::Misfit),
                    Answer::Edit { args } => {
                        self.record(replied);
                        self.allow(&call, By::Person(id), Some(args));
                    }
                    Answer::Always { rule } => {
                        if !policy::covers(&rule, &call) {
                            return Err(Refused::Misfit);
                        }
                        self.record(replied);
                        self.grant(rule);
                        self.allow(&call, By::Person(id), None);
                    }
                    Answer::No => {
                        self.record(replied);
                        let shown = match &note {
                            Some(note) => format!("the person declined this call: {note}"),
                            None => "the person declined this call".into(),
                        };
                        self.finish(call.id, Outcome::Declined { note }, &shown);
                    }
                    Answer::Text { .. } => return Err(Refused::Misfit),
                }
            }
            About::Person { call } => {
                let (outcome, text): (Outcome, Arc<str>) = match answer {
                    Answer::Text { text } => (Outcome::Done, text),
                    Answer::Yes => (Outcome::Done, "yes".into()),
                    Answer::No => (Outcome::Declined { note }, "the person did not want to answer".into()),
                    Answer::Always { .. } | Answer::Edit { .. } => return Err(Refused::Misfit),
                };
                self.record(replied);
                self.finish(call, outcome, &text);
            }
            about @ (About::Unknown { .. } | About::Limit | About::Budget | About::Stalled | About::Trust { .. }) => {
                match answer {
                    Answer::Yes => self.record(replied),
                    Answer::No => {
                        self.record(replied);
                        match about {
                            About::Unknown { .. } => self.stop(),
                            About::Limit => self.end_held(Why::Limit),
                            About::Budget => self.end_held(Why::Budget),
                            About::Stalled => self.end_held(Why::Stopped),
                            About::Trust { .. } | About::Approval { .. } | About::Person { .. } => {}
                        }
                    }
                    Answer::Always { .. } | Answer::Edit { .. } | Answer::Text { .. } => return Err(Refused::Misfit),
                }
            }
        }
        Ok(())
    }
}
