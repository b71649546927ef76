//! Commands from the user.

use super::Draft;
use crate::apply::is_done;
use crate::state::Phase;
use dunnock_proto::{
    Command, CompactionStarted, Configured, Continued, Prompted, Refused, Revoked, Strength, Titled,
};

impl Draft<'_> {
    pub(super) fn command(&mut self, command: Command) -> Result<(), Refused> {
        match command {
            Command::Prompt { text, images } => {
                if text.trim().is_empty() && images.is_empty() {
                    return Err(Refused::Invalid);
                }
                self.record(Prompted { text, images });
            }
            Command::Run => match &self.s.last {
                _ if self.s.phase != Phase::Rest => return Err(Refused::Busy),
                Some(why) if !is_done(why) => self.record(Continued {}),
                Some(_) | None => return Err(Refused::NothingToContinue),
            },
            Command::Reply { question, hash, answer, note } => {
                self.reply(question, hash, answer, note)?
            }
            Command::Interrupt => match self.s.phase {
                Phase::Rest => return Err(Refused::NothingToContinue),
                Phase::Rewinding { .. } => return Err(Refused::Busy),
                _ if self.s.stopping => return Err(Refused::NothingToContinue),
                Phase::Ready | Phase::Thinking | Phase::Acting | Phase::Compacting { .. } => {
                    self.stop();
                }
            },
            Command::Rewind { to, scope, force } => self.rewind(to, scope, force)?,
            Command::Compact => {
                let free =
                    self.s.phase == Phase::Rest || (self.s.due() && self.s.questions.is_empty());
                let reserved = self.s.reserve();
                match self.s.bounds.last() {
                    _ if !free || self.s.stopping => return Err(Refused::Busy),
                    None => return Err(Refused::NothingToContinue),
                    Some(_) if self.breaks_budget(reserved) => return Err(Refused::Budget),
                    Some(&(upto, _)) => {
                        self.record(CompactionStarted {
                            upto,
                            strength: Strength::Summarise,
                            asked: true,
                            reserved,
                        });
                    }
                }
            }
            Command::Configure { set } => {
                let next = self.s.config.with(&set);
                let sane = next.max_steps > 0
                    && next.verify_tries > 0
                    && !next.model.is_empty()
                    && next.compact_keep > 0
                    && next.token_bytes > 0
                    && next.stall_window > 0
                    && next.deadline.is_none_or(|deadline| deadline.from < deadline.until)
                    && (1..=100).contains(&next.compact_at);
                if !sane || next == *self.s.config {
                    return Err(Refused::Invalid);
                }
                let before = self.s.config.unattended;
                self.record(Configured { set });
                self.attendance_changed(before)?;
            }
            Command::Title { title } => {
                if title.trim().is_empty() || title.chars().count() > 200 {
                    return Err(Refused::Invalid);
                }
                self.record(Titled { title });
            }
            Command::Revoke { rule } => {
                if !self.s.grants.contains(&rule) {
                    return Err(Refused::NothingToContinue);
                }
                self.record(Revoked { rule });
            }
        }
        Ok(())
    }
}
