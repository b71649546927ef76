//! Removes secrets from a log. Events are sealed again and dependent hashes are computed again, so
//! that the result is a log like any other: it can be verified, replayed and continued.

use crate::catch_up::Loaded;
use crate::compact::KEEP;
use dunnock_core::Transcript;
use dunnock_ports::StoreError;
use dunnock_proto::{Body, Decoded, Event, QuestionKind, Record, Seq};
use std::collections::BTreeMap;

/// How to redact a text.
pub struct Clean<'a> {
    /// Removes secrets from it.
    pub text: &'a dyn Fn(&str) -> String,
    /// New names of blobs and file states that were renamed.
    pub names: &'a BTreeMap<String, String>,
}

/// Returns the redacted log, and the events from which something was removed.
///
/// # Errors
/// If the log cannot be folded.
pub fn redact(
    records: Vec<Record>,
    clean: &Clean<'_>,
) -> Result<(Vec<Record>, Vec<Seq>), StoreError> {
    let mut loaded = Loaded::empty();
    let (mut out, mut touched) = (Vec::with_capacity(records.len()), Vec::new());
    let mut events: Vec<(Seq, Event)> = Vec::new();
    let mut changed = false;
    for mut record in records {
        let seq = record.envelope.seq;
        if let Body::Text(text) = &record.body {
            let mut value: serde_json::Value = serde_json::from_str(text)
                .map_err(|e| StoreError::Damaged(format!("event {seq}: {e}")))?;
            let (taken, renamed) = walk(&mut value, clean);
            if taken {
                touched.push(seq);
            }
            // An event without changes stays the same, byte for byte.
            changed |= taken || renamed;
            if (taken || renamed)
                && let Ok(text) = serde_json::to_string(&value)
            {
                record.body = Body::Text(text.into());
            }
        }
        record.envelope.prev = loaded.chain;
        if let Decoded::Known(event) = record.decode()
            && changed
        {
            let fixed = fixed(&loaded, event.clone());
            if fixed != event {
                record.body = Body::Text(fixed.body().into());
            }
        }
        let taken = loaded.fold_record(&record)?;
        events.extend(taken.event.map(|event| (seq, event)));
        if taken.again {
            loaded.transcript =
                Transcript::fold(None, events.iter().map(|(seq, event)| (*seq, event)));
        }
        out.push(record);
    }
    Ok((out, touched))
}

/// Returns whether secrets were removed, and whether a name was changed.
fn walk(value: &mut serde_json::Value, clean: &Clean<'_>) -> (bool, bool) {
    match value {
        serde_json::Value::String(text) => {
            if let Some(name) = clean.names.get(text) {
                text.clone_from(name);
                return (false, true);
            }
            let mut new = (clean.text)(text);
            // Arguments and items are JSON inside a string: they must still be JSON after
            // redaction, and a secret in them may be written with escapes.
            let object = |text: &str| {
                serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text)
                    .ok()
                    .map(serde_json::Value::Object)
            };
            if let Some(mut inner) = object(&new).or_else(|| object(text))
                && (walk(&mut inner, clean).0 || object(&new).is_none())
            {
                new = inner.to_string();
            }
            let taken = new != *text;
            *text = new;
            (taken, false)
        }
        serde_json::Value::Array(all) => all
            .iter_mut()
            .map(|value| walk(value, clean))
            .fold((false, false), |a, b| (a.0 | b.0, a.1 | b.1)),
        serde_json::Value::Object(all) if all.contains_key("sent") && all.contains_key("args") => {
            let args = all.get_mut("args").map_or((false, false), |args| walk(args, clean));
            // The call as it came may hold the same secret in a form that is not searched.
            if args.0 {
                all.remove("sent");
            }
            let rest = all.iter_mut().filter(|(name, _)| *name != "args");
            rest.map(|(_, value)| walk(value, clean)).fold(args, |a, b| (a.0 | b.0, a.1 | b.1))
        }
        serde_json::Value::Object(all) => all
            .values_mut()
            .map(|value| walk(value, clean))
            .fold((false, false), |a, b| (a.0 | b.0, a.1 | b.1)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {
            (false, false)
        }
    }
}

/// The event with its hashes recomputed from the events before it.
fn fixed(loaded: &Loaded, event: Event) -> Event {
    match event {
        Event::Answered(mut e) => {
            e.request = loaded.transcript.request().map_or(e.request, |request| request.hash());
            Event::Answered(e)
        }
        Event::Allowed(mut e) => {
            if let Some(call) = loaded.state.call(e.call) {
                e.hash = call.hash_with(e.args.as_ref());
            }
            Event::Allowed(e)
        }
        // The reservation depends on the length of the conversation.
        Event::StepStarted(mut e) => {
            e.reserved = loaded.state.reserve();
            Event::StepStarted(e)
        }
        Event::CompactionStarted(mut e) if !e.reserved.is_nothing() => {
            e.reserved = loaded.state.reserve();
            Event::CompactionStarted(e)
        }
        Event::OwnerChanged(mut e) if !e.lost.is_nothing() => {
            e.lost = loaded.state.reserved;
            Event::OwnerChanged(e)
        }
        Event::StepFailed(mut e) if e.incomplete => {
            e.lost = loaded.state.unknown_beyond(&e.usage);
            Event::StepFailed(e)
        }
        Event::CompactionFailed(mut e) if e.incomplete => {
            e.lost = loaded.state.unknown_beyond(&e.usage);
            Event::CompactionFailed(e)
        }
        Event::Compacted(mut e) if !e.shortened.is_empty() => {
            e.shortened = loaded.transcript.shorten(e.upto, KEEP);
            Event::Compacted(e)
        }
        Event::Asked(mut e) => {
            if let QuestionKind::Approval(approval) = &mut e.kind
                && let Some(call) = loaded.state.call(approval.call)
            {
                approval.call_hash = call.hash();
            }
            e.hash = e.kind.hash(e.question);
            Event::Asked(e)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_with_escapes_in_an_item_is_found() {
        let secret = "-----BEGIN KEY-----\nabc\n-----END KEY-----";
        let text = |text: &str| text.replace(secret, "[secret]");
        let clean = Clean { text: &text, names: &BTreeMap::new() };
        let arguments = json!({"command": secret}).to_string();
        let item = json!({"type": "function_call", "arguments": arguments}).to_string();
        let mut event = json!({"items": [item, "{ \"kept\":  1 }"], "text": secret});
        assert_eq!(walk(&mut event, &clean), (true, false));
        assert!(!event.to_string().contains("BEGIN"), "{event}");
        let item: serde_json::Value =
            serde_json::from_str(event["items"][0].as_str().unwrap()).unwrap();
        assert_eq!(item["arguments"], r#"{"command":"[secret]"}"#);
        assert_eq!(event["items"][1], "{ \"kept\":  1 }");
    }

    /// The call as it came is not kept if the call as it ran had a secret in it.
    #[test]
    fn a_secret_in_a_translated_call_is_found() {
        let secret = "-----BEGIN KEY-----\nabc\n-----END KEY-----";
        let text = |text: &str| text.replace(secret, "[secret]");
        let clean = Clean { text: &text, names: &BTreeMap::new() };
        let arguments = json!({"command": secret}).to_string();
        // Without its last bracket it is no JSON.
        let sent = json!({"tool": "Bash", "args": arguments.trim_end_matches('}')});
        let mut call = json!({"tool": "shell", "args": arguments, "sent": sent});
        assert_eq!(walk(&mut call, &clean), (true, false));
        assert!(!call.to_string().contains("BEGIN") && call.get("sent").is_none(), "{call}");
    }
}
