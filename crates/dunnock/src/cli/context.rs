//! `/context`: what the next request consists of, in tokens.

use crate::compose::Composed;
use dunnock_engine::load;
use dunnock_proto::{Message, SessionId};
use dunnock_tui::words::number;

/// The parts of the next request, one per line, and what is left of the context window.
pub(crate) async fn lines(open: &Composed, session: &SessionId) -> anyhow::Result<Vec<String>> {
    let store = open.ports.store.as_ref();
    let loaded = load(store, session).await?;
    let (state, transcript) = (&loaded.state, &loaded.transcript);
    let token_bytes = state.config.token_bytes.max(1);
    let tokens = |bytes: usize| (bytes as u64).div_ceil(token_bytes);
    let mut rows: Vec<(String, u64)> = Vec::new();
    if let Some(preamble) = &state.preamble
        && let Some(bytes) = store.blob(preamble.hash).await?
        && let Ok(rendered) = serde_json::from_slice::<serde_json::Value>(&bytes)
    {
        let system = rendered["system"].as_str().unwrap_or_default();
        rows.push(("system prompt".into(), tokens(system.len())));
        let tools = rendered["tools"].to_string();
        rows.push((format!("tools ({})", preamble.tools.len()), tokens(tools.len())));
    }
    let (mut prompts, mut answers, mut results, mut notes) = (0, 0, 0, 0);
    for message in transcript.request().map(|request| request.messages()).unwrap_or_default() {
        match &message {
            Message::User { text, .. } => prompts += text.len(),
            Message::Assistant { .. } => answers += message.bytes().len(),
            Message::Result { text, .. } => results += text.len(),
            Message::Notice { text } => notes += text.len(),
        }
    }
    let conversation = [
        ("your messages", prompts),
        ("answers and calls", answers),
        ("results of calls", results),
        ("notes to the model", notes),
    ];
    let conversation = conversation.into_iter().filter(|(_, bytes)| *bytes > 0);
    rows.extend(conversation.map(|(name, bytes)| (name.to_owned(), tokens(bytes))));
    let all: u64 = rows.iter().map(|(_, tokens)| tokens).sum();
    let window = state.config.window.or(state.preamble.as_ref().and_then(|p| p.window));
    let row = |name: &str, tokens: u64| format!("  {name:<20} {:>9}", number(tokens));
    let mut lines = vec![match window {
        Some(window) => format!(
            "Context: about {} of {} tokens ({} %)",
            number(all),
            number(window),
            all * 100 / window.max(1)
        ),
        None => format!("Context: about {} tokens; the size of the window is unknown", number(all)),
    }];
    lines.extend(rows.iter().map(|(name, tokens)| row(name, *tokens)));
    lines.extend(window.map(|window| row("free", window.saturating_sub(all))));
    lines.push(format!(
        "Estimated: {token_bytes} bytes count as one token. /compact shortens the conversation."
    ));
    Ok(lines)
}
