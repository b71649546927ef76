//! `tool_use`: calls a tool of a server.

use super::roster::Servers;
use super::server::{RunningServer, Server};
use crate::captured_output::trimmed;
use crate::tool::{ToolContext, ToolOutput, ToolStatus};
use dunnock_mcp::{CallError, CallResult, ServerConfig, ToolDefinition};
use dunnock_ports::Blob;
use dunnock_proto::{
    MOST_PICTURE_BYTES, MOST_PICTURE_SIDE, Recovery, ServerTool, check_schema, picture_size,
};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for a process that ends while its answer may still be on its way.
const LAST_ANSWER: Duration = Duration::from_millis(200);
/// The longest schema that an error repeats, in bytes.
const MOST_SCHEMA: usize = 3_000;

/// Calls a tool with these arguments.
pub(crate) async fn use_tool(
    servers: &Arc<Servers>,
    context: &ToolContext,
    name: &str,
    arguments: Map<String, Value>,
) -> ToolOutput {
    let Some(record) = context.server_tool.clone().filter(|record| record.name == name) else {
        return failed(format!(
            "not called: there is no known tool {name}; find tools with tool_find first"
        ));
    };
    let found =
        name.split_once('/').and_then(|(server, tool)| Some((servers.config(server)?, tool)));
    let Some((config, tool)) = found.filter(|(config, _)| config.hash() == record.settings_hash)
    else {
        return failed(format!(
            "not called: the settings of the MCP server of {name} have changed; call it again"
        ));
    };
    let known = servers.catalogue(&config).and_then(|catalogue| catalogue.tool(tool).cloned());
    let Some(known) = known.filter(|known| is_as_judged(known, &config, &record)) else {
        return changed(name);
    };
    if let Err(why) = check_schema(&known.schema, &Value::Object(arguments.clone())) {
        return failed(wrong_arguments(name, &why, &known));
    }
    let server = servers.of_session(&context.session, &config);
    let called = Call { servers, context, server: &server, config: &config, record: &record, tool };
    let mut output = called.run(arguments).await;
    if output.end == ToolStatus::Done {
        // Without it, a later difference is not shown, but it is still asked about.
        let _ = servers.cache.remember_used(&config, &known);
    }
    for note in server.take_notes() {
        output.add(&note);
    }
    output
}

fn failed(why: String) -> ToolOutput {
    Err::<String, _>(why).into()
}

fn changed(name: &str) -> ToolOutput {
    failed(format!(
        "not called: {name} has changed or was removed since this call was approved. Look it up with \
         tool_find, then call it again"
    ))
}

/// Whether everything that was recorded with the call is still true of the tool.
fn is_as_judged(tool: &ToolDefinition, config: &ServerConfig, record: &ServerTool) -> bool {
    ServerTool { index: record.index, ..tool.record(config) } == *record
}

fn wrong_arguments(name: &str, why: &str, tool: &ToolDefinition) -> String {
    let schema = tool.schema.to_string();
    let end = schema.floor_char_boundary(MOST_SCHEMA.min(schema.len()));
    let schema = schema.get(..end).unwrap_or_default();
    format!("not called: wrong arguments for {name}: {why}. Its arguments: {schema}")
}

/// A call on its way.
struct Call<'a> {
    servers: &'a Arc<Servers>,
    context: &'a ToolContext,
    server: &'a Arc<Server>,
    config: &'a ServerConfig,
    record: &'a ServerTool,
    tool: &'a str,
}

impl Call<'_> {
    async fn run(&self, arguments: Map<String, Value>) -> ToolOutput {
        let name = &self.record.name;
        let mut is_again = false;
        loop {
            let starting = self.server.live(self.servers, &self.context.call_context);
            let live = tokio::select! {
                () = self.context.halt.cancelled() => return cut(),
                live = starting => live,
            };
            let live = match live {
                Ok(live) => live,
                Err(why) => {
                    let why = self.server.with_stderr(&why);
                    return failed(format!(
                        "MCP server {} cannot be used: {why}",
                        self.config.name
                    ));
                }
            };
            tokio::select! {
                () = self.context.halt.cancelled() => return cut(),
                () = self.server.refresh(self.servers, &live) => {}
            }
            let now = live.catalogue();
            let same = |tool: &&ToolDefinition| is_as_judged(tool, self.config, self.record);
            if now.tool(self.tool).filter(same).is_none() {
                return changed(name);
            }
            match self.once(&live, arguments.clone()).await {
                Ok(result) => return self.output(result),
                Err(CallError::Cancelled) => return cut(),
                // It did nothing, or doing it twice is the same as doing it once.
                Err(CallError::NotSent(_)) if !is_again => is_again = true,
                Err(CallError::Lost) if !is_again && self.record.recovery == Recovery::Repeat => {
                    is_again = true;
                }
                Err(error @ (CallError::Lost | CallError::Silent(_) | CallError::TooLarge)) => {
                    let text = self.server.cleaned(&format!("{name}: {error}"));
                    return ToolOutput::plain(ToolStatus::Unknown, text);
                }
                Err(error) => return failed(self.server.cleaned(&format!("{name}: {error}"))),
            }
        }
    }

    /// Sends the call once. The end of the server's process ends it.
    async fn once(
        &self,
        live: &RunningServer,
        arguments: Map<String, Value>,
    ) -> Result<CallResult, CallError> {
        // However often a server reports progress, a call ends when a command would.
        let most = self.context.limits.command_most;
        let silence = self.config.timeout.min(most);
        let halt = self.context.halt.clone();
        let calling = live
            .connection
            .call(self.tool, arguments, silence, async move { halt.cancelled().await });
        tokio::pin!(calling);
        tokio::select! {
            biased;
            answered = &mut calling => answered,
            () = live.oversized() => Err(CallError::TooLarge),
            () = tokio::time::sleep(most) => Err(CallError::Silent(most)),
            () = live.end() => {
                let last = tokio::time::timeout(LAST_ANSWER, calling).await;
                last.unwrap_or(Err(CallError::Lost))
            }
        }
    }

    fn output(&self, result: CallResult) -> ToolOutput {
        let CallResult { text, picture, failed } = result;
        let end = if failed { ToolStatus::Failed } else { ToolStatus::Done };
        let limits = &self.context.limits;
        let text = crate::web_page::visible(&text).into_owned();
        let short = trimmed(&text, limits.output_lines, limits.output_bytes, self.context.call);
        let mut output = match short {
            None => ToolOutput::plain(end, text),
            Some(short) => ToolOutput {
                full: Some(Blob::new(text.into_bytes())),
                ..ToolOutput::plain(end, short)
            },
        };
        if let Some(picture) = picture {
            let side =
                picture_size(&picture.0).map_or(u32::MAX, |(width, height)| width.max(height));
            match picture.0.len() as u64 <= MOST_PICTURE_BYTES && side <= MOST_PICTURE_SIDE {
                true => output.image = Some(Blob::new(picture.0)),
                false => output.add("[the image is too large to be shown]"),
            }
        }
        output
    }
}

fn cut() -> ToolOutput {
    ToolOutput::plain(ToolStatus::Cut, "[stopped: the person interrupted]".into())
}
