//! What a tool is: its trait, and what it works with.

use crate::context::CallContext;
pub(crate) use crate::output::{ToolOutput, ToolStatus};
use crate::processes::Processes;
use crate::root::Root;
use dunnock_ports::{Pages, Store, ToolSpec};
use dunnock_proto::{Class, Hash, Recovery, Role, ServerTool, Tool as Known, ToolView};
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

/// What a tool works with: its call, and what the session keeps between calls.
#[derive(Clone)]
pub(crate) struct ToolContext {
    pub(crate) call_context: CallContext,
    /// The files that it reads and edits: those of the workspace, or those outside it.
    pub(crate) files: Arc<Root>,
    /// Holds the outputs of earlier calls.
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) processes: Arc<Processes>,
    /// Fetches pages of the web.
    pub(crate) pages: Option<Arc<dyn Pages>>,
    /// The MCP servers.
    #[cfg(target_os = "linux")]
    pub(crate) servers: Option<Arc<crate::servers::roster::Servers>>,
    /// What was recorded about the server's tool that the call uses.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there are no servers"))]
    pub(crate) server_tool: Option<Arc<ServerTool>>,
    /// Hashes of files as the model last saw them.
    pub(crate) seen: Arc<BTreeMap<String, Hash>>,
}

/// Tools use the fields of the call as their own.
impl std::ops::Deref for ToolContext {
    type Target = CallContext;

    fn deref(&self) -> &CallContext {
        &self.call_context
    }
}

/// A tool: an input type that describes itself.
pub(crate) trait Tool: DeserializeOwned + schemars::JsonSchema + Send + 'static {
    /// The name that the model uses.
    const NAME: &'static str;
    /// Whether it reads, edits or runs commands.
    const CLASS: Class;
    /// What to do with an unfinished call after a crash.
    const RECOVERY: Recovery;
    /// Whether the session itself answers it.
    const ROLE: Role = Role::Work;
    /// Whether what it starts keeps running after the call.
    const LEAVES_PROCESS: bool = false;
    /// Whether it only waits for such a process.
    const POLLS: bool = false;
    /// How interfaces show its calls.
    const VIEW: ToolView;
    /// Examples that serve as its tests and its reference page.
    const EXAMPLES: &'static [Example];

    /// Runs the call.
    fn run(self, context: ToolContext) -> impl Future<Output = ToolOutput> + Send;
}

/// A call and its expected result.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// What the example shows.
    pub about: &'static str,
    /// Files that exist before the call.
    pub files: &'static [(&'static str, &'static str)],
    /// The arguments.
    pub args: &'static str,
    /// The text that the model is sent.
    pub gives: &'static str,
    /// Whether the call fails.
    pub fails: bool,
    /// Files that must exist afterwards.
    pub leaves: &'static [(&'static str, &'static str)],
}

impl Example {
    /// Defaults for what an example leaves out.
    pub(crate) const PLAIN: Self =
        Self { about: "", files: &[], args: "{}", gives: "", fails: false, leaves: &[] };
}

/// The tool as it is sent to the model: its doc comment and its schema, without references.
pub(crate) fn offer<T: Tool>() -> ToolSpec {
    let generator = SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = generator.into_generator().into_root_schema_for::<T>().to_value();
    let mut description = String::new();
    if let Value::Object(map) = &mut schema {
        map.remove("title");
        map.remove("$schema");
        if let Some(Value::String(text)) = map.remove("description") {
            description = text;
        }
    }
    plain(&mut schema);
    let tool = Known {
        leaves_process: T::LEAVES_PROCESS,
        polls: T::POLLS,
        ..Known::new(T::NAME, T::CLASS, T::RECOVERY, T::ROLE)
    };
    ToolSpec { tool, description, schema: in_order(&schema, declared::<T>()) }
}

/// Prints a schema with its properties in this order. Models write arguments in the order in which
/// they see them, and a path should come before a text.
fn in_order(schema: &Value, names: &[&str]) -> String {
    let empty = serde_json::Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let place = |name: &str| names.iter().position(|known| *known == name);
    let mut all: Vec<_> = properties.iter().collect();
    all.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
    let property = |(name, value): (&String, &Value)| format!("{}:{value}", Value::from(&**name));
    let properties: Vec<String> = all.into_iter().map(property).collect();
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    required.sort_by_key(|name| place(name.as_str().unwrap_or_default()).unwrap_or(usize::MAX));
    let mut text = format!(r#"{{"type":"object","properties":{{{}}}"#, properties.join(","));
    if !required.is_empty() {
        text.push_str(&format!(r#","required":{}"#, Value::Array(required)));
    }
    text + r#","additionalProperties":false}"#
}

/// The names of a tool's arguments, as declared. Serde hands them to the deserializer.
fn declared<T: DeserializeOwned>() -> &'static [&'static str] {
    T::deserialize(FieldNames).err().map_or(&[], |found| found.0)
}

/// A deserializer that only finds out the names of a struct's fields, which it returns as an error.
struct FieldNames;

#[derive(Debug)]
struct FoundNames(&'static [&'static str]);

impl std::fmt::Display for FoundNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl std::error::Error for FoundNames {}

impl serde::de::Error for FoundNames {
    fn custom<M: std::fmt::Display>(_: M) -> Self {
        Self(&[])
    }
}

impl<'de> serde::Deserializer<'de> for FieldNames {
    type Error = FoundNames;

    fn deserialize_any<V: serde::de::Visitor<'de>>(self, _: V) -> Result<V::Value, FoundNames> {
        Err(FoundNames(&[]))
    }

    fn deserialize_struct<V: serde::de::Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, FoundNames> {
        Err(FoundNames(fields))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Removes what a model has no use for: integer formats, null defaults, `null` beside a type.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.remove("format");
            if map.get("default") == Some(&Value::Null) {
                map.remove("default");
            }
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|t| t != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    map.insert("type".into(), one);
                }
            }
            if let Some(Value::Array(any)) = map.get_mut("anyOf") {
                any.retain(|s| s.get("type") != Some(&Value::String("null".into())));
            }
            map.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Runs blocking work off the driver's thread.
pub(crate) async fn blocking<E: std::fmt::Display + Send + 'static>(
    work: impl FnOnce() -> Result<String, E> + Send + 'static,
) -> ToolOutput {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.into(),
        Err(error) => {
            ToolOutput::plain(ToolStatus::Failed, format!("an error inside the agent: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn arguments_are_in_declared_order() {
        for (tool, first) in [
            ("write_file", r#""properties":{"path":"#),
            ("replace_text", r#""properties":{"path":"#),
            ("shell", r#""properties":{"command":"#),
        ] {
            let offers = crate::offers();
            let offer = offers.iter().find(|offer| offer.tool.name == tool);
            let schema = offer.map(|offer| offer.schema.as_str()).unwrap_or_default();
            assert!(schema.contains(first), "{schema}");
            assert!(serde_json::from_str::<serde_json::Value>(schema).is_ok(), "{schema}");
        }
        let offers = crate::offers();
        let replace = offers.iter().find(|offer| offer.tool.name == "replace_text");
        let schema = replace.map(|offer| offer.schema.clone()).unwrap_or_default();
        let place = |name: &str| schema.find(&format!("\"{name}\":{{"));
        assert!(place("old") < place("new") && place("new") < place("all"), "{schema}");
    }
}
