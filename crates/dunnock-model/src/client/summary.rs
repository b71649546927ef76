//! Summaries of conversations that have become too long.

use super::ModelClient;
use crate::ask::PromptRequest;
use crate::dialects::Dialect;
use crate::preamble::RecordedPreamble;
use dunnock_core::Request;
use dunnock_ports::{CancellationToken, DeltaSink, Summary};
use dunnock_proto::{Effort, Failure, Message, Part};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest summary, in words and in tokens.
const SUMMARY: (u64, u64) = (600, 1_500);
/// The same if the context window is large.
const LONG_SUMMARY: (u64, u64) = (2_000, 3_500);
/// A large context window, in tokens.
const LARGE_WINDOW: u64 = 100_000;
/// The most that a model may think about a summary if it cannot do without, in tokens.
const SUMMARY_REASONING: u64 = 4_000;

impl ModelClient {
    /// Asks the model for a summary of a conversation. `summed` gets what that used.
    pub(super) async fn sum_up(
        &self,
        preamble: &[u8],
        request: &Request,
        halt: CancellationToken,
        summed: &mut Summary,
    ) -> Result<Arc<str>, String> {
        let mut recorded = RecordedPreamble::read(preamble)?;
        if recorded.bridge_settings.is_some() {
            return Err("a copy-and-paste session is not summarised: the chat has the \
                        conversation"
                .into());
        }
        // The conversation is sent as one text, so that the model cannot continue the work instead
        // of summarising it.
        let messages: Vec<String> = request.messages().iter().map(describe).collect();
        let is_large = recorded.window.is_some_and(|window| window >= LARGE_WINDOW);
        let (words, tokens) = if is_large { LONG_SUMMARY } else { SUMMARY };
        recorded.system = self.prompts.summary(words)?;
        recorded.dialect = Dialect::Native;
        recorded.schema = None;
        // Reasoning counts towards the limit.
        let direct = self.provider(&recorded.model)?.is_known();
        let room = match recorded.set_effort(Effort::None, direct) {
            None | Some(Effort::None) => tokens,
            Some(_) => tokens + SUMMARY_REASONING,
        };
        recorded.max_output = Some(recorded.max_output.map_or(room, |most| most.min(room)));
        recorded.tools =
            serde_json::value::to_raw_value::<[u8; 0]>(&[]).map_err(|e| e.to_string())?;
        let mut text = messages.join("\n\n");
        loop {
            let messages = [Message::User { text: text.as_str().into(), images: Vec::new() }];
            let quiet: DeltaSink = Arc::new(|_| {});
            let (preamble, step, hash, pictures) =
                (&recorded, request.step, request.hash(), BTreeMap::new());
            let question = PromptRequest {
                preamble,
                step,
                hash,
                messages: &messages,
                resume: None,
                pictures: &pictures,
                anyway: false,
                session: None,
                with_effort: request.effort_refused_by.as_deref() != Some(&recorded.model),
            };
            let sent = self.send(&question, quiet, halt.clone()).await;
            summed.usage +=
                sent.as_ref().map_or_else(|failed| failed.usage, |answered| answered.usage);
            summed.broke |= sent.as_ref().is_err_and(|failed| failed.incomplete);
            let answered = match sent {
                Ok(answered) => answered,
                // Too long for one request: keep the beginning, which has the task, and the end,
                // which has the current state.
                Err(failed) if failed.failure == Failure::Overflow && text.len() > 4_000 => {
                    let head = text.floor_char_boundary(text.len() / 8);
                    let tail = text.ceil_char_boundary(text.len() - text.len() * 3 / 8);
                    text = format!(
                        "{}\n[left out]\n{}",
                        text.get(..head).unwrap_or_default(),
                        text.get(tail..).unwrap_or_default()
                    );
                    continue;
                }
                // A summary that was cut off at the output limit is good enough.
                Err(failed)
                    if failed.failure == Failure::Rejected && !failed.partial.trim().is_empty() =>
                {
                    return Ok(failed.partial);
                }
                Err(failed) => return Err(failed.error),
            };
            let said = Part::words(&answered.parts);
            return if said.trim().is_empty() {
                Err("the model returned no summary".into())
            } else {
                Ok(said.into())
            };
        }
    }
}

/// A message as plain text, for a summary.
fn describe(message: &Message) -> String {
    match message {
        Message::User { text, .. } => format!("PERSON: {text}"),
        Message::Notice { text } => format!("HARNESS: {text}"),
        Message::Result { tool, text, .. } => format!("RESULT of {tool}: {text}"),
        Message::Assistant { parts, .. } => {
            let part = |part: &Part| match part {
                Part::Text { text } => text.to_string(),
                Part::Call(call) => format!("CALL {} {}", call.tool, call.args),
                Part::Reasoning { .. } => String::new(),
            };
            format!("AGENT: {}", parts.iter().map(part).collect::<Vec<_>>().join("\n"))
        }
    }
}
