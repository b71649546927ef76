//! The model port for the stateless service: four tools under the service's names, and at most one
//! call.
//!
//! The names are aliases for our tools: a call to `readFile` is recorded, authorised and run as
//! `view_file`.

use crate::client::ModelClient;
use dunnock_core::Request;
use dunnock_ports::{
    Blob, BoxFuture, CancellationToken, DeltaSink, HostInfo, Model, ModelRequest, RenderError,
    Summary, ToolSpec,
};
use dunnock_proto::{
    Answered, CallPart, Class, Config, Part, Preamble, Recovery, Role, StepFailed, Tool,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A tool under the name that callers know, mapped to ours.
struct ServiceTool {
    theirs: &'static str,
    ours: &'static str,
    about: &'static str,
    schema: &'static str,
    turned: fn(&Map<String, Value>) -> Value,
}

const ALIASES: &[ServiceTool] = &[
    ServiceTool {
        theirs: "readFile",
        ours: "view_file",
        about: "Reads a file, or some lines of it.",
        schema: r#"{"type":"object","properties":{"filePath":{"type":"string","maxLength":4096,"description":"Relative to the root."},"startLine":{"type":"integer","minimum":1},"endLine":{"type":"integer","minimum":1}},"required":["filePath"],"additionalProperties":false}"#,
        turned: |args| json!({ "path": args.get("filePath"), "first": args.get("startLine"), "last": args.get("endLine"), "bare": true }),
    },
    ServiceTool {
        theirs: "listFiles",
        ours: "list_files",
        about: "Lists the files of a folder, or those that match a pattern such as src/**/*.rs.",
        schema: r#"{"type":"object","properties":{"path":{"type":"string","maxLength":4096,"description":"A folder or a pattern, relative to the root."}},"required":["path"],"additionalProperties":false}"#,
        turned: |args| match args.get("path").and_then(Value::as_str) {
            // A path that leads out of the root is refused; as a pattern it would just match
            // nothing.
            Some(pattern) if pattern.contains(['*', '?', '{']) && !leads_out(pattern) => {
                json!({ "glob": pattern })
            }
            _ => json!({ "path": args.get("path") }),
        },
    },
    ServiceTool {
        theirs: "searchText",
        ours: "search_text",
        about: "Searches files for text, line by line.",
        schema: r#"{"type":"object","properties":{"pattern":{"type":"string","maxLength":2000},"searchPath":{"type":"string","maxLength":4096,"description":"A file or folder, relative to the root."},"isRegex":{"type":"boolean"},"caseSensitive":{"type":"boolean"}},"required":["pattern","searchPath"],"additionalProperties":false}"#,
        turned: |args| {
            // Case-sensitive by default.
            let ignore = args.get("caseSensitive") == Some(&Value::Bool(false));
            let regex = args.get("isRegex") == Some(&Value::Bool(true));
            json!({ "pattern": args.get("pattern"), "path": args.get("searchPath"), "regex": regex, "ignore_case": ignore })
        },
    },
    ServiceTool {
        theirs: "replaceText",
        ours: "replace_text",
        about: "Replaces text in a file. The old text must occur exactly once.",
        schema: r#"{"type":"object","properties":{"filePath":{"type":"string","maxLength":4096,"description":"Relative to the root."},"oldString":{"type":"string","maxLength":1000000},"newString":{"type":"string","maxLength":1000000}},"required":["filePath","oldString","newString"],"additionalProperties":false}"#,
        turned: |args| json!({ "path": args.get("filePath"), "old": args.get("oldString"), "new": args.get("newString"), "exact": true }),
    },
];

fn leads_out(path: &str) -> bool {
    path.trim().starts_with('/') || path.split('/').any(|name| name == "..")
}

/// The tools of the service, under the names that callers know.
#[must_use]
pub fn service_offers() -> Vec<ToolSpec> {
    let offer = |alias: &ServiceTool| ToolSpec {
        tool: Tool::new(
            alias.theirs,
            if alias.ours == "replace_text" { Class::Edit } else { Class::Read },
            Recovery::Unknown,
            Role::Work,
        ),
        description: alias.about.into(),
        schema: alias.schema.into(),
    };
    ALIASES.iter().map(offer).collect()
}

/// A model client that keeps only the first call of an answer and translates it to our tools.
pub struct Service(pub Arc<ModelClient>);

impl Model for Service {
    fn render_preamble<'a>(
        &'a self,
        config: &'a Config,
        workspace: &'a str,
        host: &'a HostInfo,
    ) -> BoxFuture<'a, Result<(Preamble, Blob), RenderError>> {
        Box::pin(async move {
            let (mut preamble, blob) = self.0.render_preamble(config, workspace, host).await?;
            for tool in &mut preamble.tools {
                if let Some(alias) = ALIASES.iter().find(|alias| alias.theirs == tool.name) {
                    tool.name = alias.ours.into();
                }
            }
            Ok((preamble, blob))
        })
    }

    fn ask(
        &self,
        asking: ModelRequest,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> BoxFuture<'_, Result<(Answered, Vec<Blob>), StepFailed>> {
        Box::pin(async move {
            let (mut answered, blobs) = self.0.ask(asking, live, halt).await?;
            let mut calls = 0;
            answered.parts.retain(|part| {
                calls += usize::from(matches!(part, Part::Call(_)));
                !matches!(part, Part::Call(_)) || calls == 1
            });
            answered.parts.iter_mut().for_each(step);
            Ok((answered, blobs))
        })
    }

    fn summarise(
        &self,
        preamble: Arc<[u8]>,
        request: Request,
        halt: CancellationToken,
    ) -> BoxFuture<'_, Summary> {
        self.0.summarise(preamble, request, halt)
    }
}

/// Translates a call to our tool. A call to a tool that is not offered is renamed, so that it fails
/// as unknown.
fn step(part: &mut Part) {
    let Part::Call(call) = part else { return };
    let Some(alias) = ALIASES.iter().find(|alias| alias.theirs == call.tool) else {
        // Our own tool names must not work here: only offered tools may be called.
        let tool = format!("{} (not offered)", call.tool);
        *call = Arc::new(CallPart { tool, ..call.as_ref().clone() });
        return;
    };
    let mut ours = call.as_ref().clone();
    ours.tool = alias.ours.into();
    match serde_json::from_str(&call.args) {
        Ok(Value::Object(args)) => {
            let schema: Value = serde_json::from_str(alias.schema).unwrap_or_default();
            match args.keys().find(|key| schema["properties"].get(key.as_str()).is_none()) {
                Some(key) => {
                    ours.fault = Some(format!("{} has no argument {key}", alias.theirs).into())
                }
                None => {
                    let mut turned = (alias.turned)(&args);
                    if let Value::Object(map) = &mut turned {
                        map.retain(|_, value| !value.is_null());
                    }
                    ours.args = turned.to_string().into();
                }
            }
        }
        _ => ours.fault = Some("its arguments are not a JSON object".into()),
    }
    *call = Arc::new(ours);
}
