//! The configuration of state sources and hooks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Not;

use karat_core::port::Hook;
use karat_json::{
    ObjectReader, Path, Problems, Subject, read_bool, read_enum, read_object_map, read_string, read_string_map,
    read_strings, type_name,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};

const INVALID_SOURCE: &str = "a state source must have one of 'command' (a list), 'url' (with optional 'headers'), \
     'file' and 'mcpTool', or be a command";

const INVALID_HOOK: &str = "a hook must have 'command' (a list) or 'url' (with optional 'headers'), or be a command";

/// Where the state of a system comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceConfig {
    #[serde(flatten)]
    pub origin: SourceOrigin,
    #[serde(rename = "as", skip_serializing_if = "SourceForm::is_json")]
    pub form: SourceForm,
    /// Whether other cases cannot change the source during a case, so that they may run in parallel.
    #[serde(skip_serializing_if = "Not::not")]
    pub isolated: bool,
}

/// The program, URL, file or tool that returns a state.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SourceOrigin {
    Command {
        command: Vec<String>,
    },
    Url {
        url: String,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    File {
        file: String,
    },
    McpTool {
        #[serde(rename = "mcpTool")]
        mcp_tool: McpToolCall,
    },
}

/// A call of a tool of an MCP server in `mcpServers`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpToolCall {
    /// The name of the server in `mcpServers`.
    pub server: String,
    pub tool: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
}

/// How the state is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceForm {
    #[default]
    Json,
    /// The whole output is one text.
    Text,
}

/// A program or URL that is called at a point of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum HookConfig {
    Command {
        command: Vec<String>,
    },
    Url {
        url: String,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
}

/// What to call before and after cases and runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HooksConfig {
    /// Before the first message of each case and trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_case: Option<HookConfig>,
    /// After each case and trial, however it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_case: Option<HookConfig>,
    /// Before the first case. If it fails, nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_run: Option<HookConfig>,
    /// After the last case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_run: Option<HookConfig>,
}

impl SourceForm {
    const NAMES: [&'static str; 2] = ["json", "text"];

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "text" => Some(Self::Text),
            _ => None,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "signature required by serde")]
    fn is_json(&self) -> bool {
        *self == Self::Json
    }
}

impl SourceConfig {
    /// Reads the key `stateSources`.
    pub fn read_all(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<BTreeMap<String, Self>> {
        let map = read_object_map(value, path, problems)?;
        let read = |(name, value): (&String, &Value)| {
            if name.is_empty() {
                problems.push(&path.key(name), Subject::Key, "the name of a state source is empty".to_owned(), None);
            }
            Some((name.clone(), Self::read(value, &path.key(name), problems)?))
        };
        // Read all sources to collect the problems of each.
        let sources: Vec<Option<(String, Self)>> = map.iter().map(read).collect();
        sources.into_iter().collect()
    }

    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        if value.is_array() {
            let origin = SourceOrigin::Command { command: read_command(value, path, problems)? };
            return Some(Self { origin, form: SourceForm::default(), isolated: false });
        }
        let mut object = ObjectReader::open(value, path, problems)?;
        let command = object.optional("command", path, problems, read_command);
        let url = object.optional("url", path, problems, read_url);
        let headers = object.optional("headers", path, problems, read_string_map);
        let file = object.optional("file", path, problems, read_file);
        let mcp_tool = object.optional("mcpTool", path, problems, McpToolCall::read);
        let form = object.optional("as", path, problems, |value, path, problems| {
            read_enum(value, path, problems, &SourceForm::NAMES, SourceForm::from_name)
        });
        let isolated = object.optional("isolated", path, problems, read_bool);
        object.close(path, problems);
        let has = |key: &str| value.get(key).is_some();
        if count(["command", "url", "file", "mcpTool"].map(has)) != 1 || has("headers") && !has("url") {
            problems.at(path, INVALID_SOURCE);
            return None;
        }
        let origin = match (command, url, file, mcp_tool) {
            (Some(command), ..) => SourceOrigin::Command { command },
            (_, Some(url), ..) => SourceOrigin::Url { url, headers: headers.unwrap_or_default() },
            (_, _, Some(file), _) => SourceOrigin::File { file },
            (.., Some(mcp_tool)) => SourceOrigin::McpTool { mcp_tool },
            _ => return None,
        };
        Some(Self { origin, form: form.unwrap_or_default(), isolated: isolated.unwrap_or_default() })
    }

    /// Returns the source with `${NAME}` expanded in its URL and headers.
    pub fn expanded<E>(&self, expand: &mut dyn FnMut(&str) -> Result<String, E>) -> Result<Self, E> {
        let origin = match &self.origin {
            SourceOrigin::Url { url, headers } => {
                SourceOrigin::Url { url: expand(url)?, headers: expand_headers(headers, expand)? }
            }
            other => other.clone(),
        };
        Ok(Self { origin, ..self.clone() })
    }
}

impl McpToolCall {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let server = object.required("server", path, problems, read_string);
        let tool = object.required("tool", path, problems, read_string);
        let arguments = object.optional("arguments", path, problems, read_object_map);
        object.close(path, problems);
        Some(Self { server: server?, tool: tool?, arguments: arguments.unwrap_or_default() })
    }
}

impl HookConfig {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        if value.is_array() {
            return Some(Self::Command { command: read_command(value, path, problems)? });
        }
        let mut object = ObjectReader::open(value, path, problems)?;
        let command = object.optional("command", path, problems, read_command);
        let url = object.optional("url", path, problems, read_url);
        let headers = object.optional("headers", path, problems, read_string_map);
        object.close(path, problems);
        let has = |key: &str| value.get(key).is_some();
        if has("command") == has("url") || has("headers") && !has("url") {
            problems.at(path, INVALID_HOOK);
            return None;
        }
        match (command, url) {
            (Some(command), _) => Some(Self::Command { command }),
            (None, Some(url)) => Some(Self::Url { url, headers: headers.unwrap_or_default() }),
            (None, None) => None,
        }
    }

    fn expanded<E>(&self, expand: &mut dyn FnMut(&str) -> Result<String, E>) -> Result<Self, E> {
        Ok(match self {
            Self::Url { url, headers } => Self::Url { url: expand(url)?, headers: expand_headers(headers, expand)? },
            Self::Command { .. } => self.clone(),
        })
    }
}

impl HooksConfig {
    /// Reads the key `hooks`.
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let hooks = Self {
            before_case: object.nullable("beforeCase", path, problems, HookConfig::read),
            after_case: object.nullable("afterCase", path, problems, HookConfig::read),
            before_run: object.nullable("beforeRun", path, problems, HookConfig::read),
            after_run: object.nullable("afterRun", path, problems, HookConfig::read),
        };
        object.close(path, problems);
        Some(hooks)
    }

    pub fn get(&self, hook: Hook) -> Option<&HookConfig> {
        match hook {
            Hook::BeforeCase => self.before_case.as_ref(),
            Hook::AfterCase => self.after_case.as_ref(),
            Hook::BeforeRun => self.before_run.as_ref(),
            Hook::AfterRun => self.after_run.as_ref(),
        }
    }

    /// Returns the hooks with `${NAME}` expanded in their URLs and headers.
    pub fn expanded<E>(&self, expand: &mut dyn FnMut(&str) -> Result<String, E>) -> Result<Self, E> {
        let mut one = |hook: &Option<HookConfig>| hook.as_ref().map(|hook| hook.expanded(expand)).transpose();
        Ok(Self {
            before_case: one(&self.before_case)?,
            after_case: one(&self.after_case)?,
            before_run: one(&self.before_run)?,
            after_run: one(&self.after_run)?,
        })
    }

    /// Whether a hook is configured.
    pub fn has_any(&self) -> bool {
        Hook::ALL.into_iter().any(|hook| self.get(hook).is_some())
    }

    /// Returns the programs with their arguments.
    pub fn commands(&self) -> impl Iterator<Item = &[String]> {
        Hook::ALL.into_iter().filter_map(move |hook| match self.get(hook)? {
            HookConfig::Command { command } => Some(command.as_slice()),
            HookConfig::Url { .. } => None,
        })
    }
}

fn expand_headers<E>(
    headers: &BTreeMap<String, String>,
    expand: &mut dyn FnMut(&str) -> Result<String, E>,
) -> Result<BTreeMap<String, String>, E> {
    headers.iter().map(|(name, value)| Ok((name.clone(), expand(value)?))).collect()
}

fn count<const N: usize>(flags: [bool; N]) -> usize {
    flags.into_iter().filter(|flag| *flag).count()
}

fn read_command(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    if !value.is_array() {
        let found = type_name(value);
        problems.at(path, format!("a command must be a list of a program and its arguments, found {found}"));
        return None;
    }
    let command = read_strings(value, path, problems)?;
    if command.first().is_none_or(String::is_empty) {
        problems.at(path, "a command must name a program");
        return None;
    }
    Some(command)
}

fn read_url(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<String> {
    let url = read_string(value, path, problems)?;
    if !["http://", "https://", "${"].iter().any(|start| url.starts_with(start)) {
        problems.at(path, "'url' must begin with http:// or https://");
        return None;
    }
    Some(url)
}

fn read_file(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<String> {
    let file = read_string(value, path, problems)?;
    if file.is_empty() {
        problems.at(path, "'file' is empty");
        return None;
    }
    Some(file)
}

/// Where the state of a system comes from: a program, a URL, a file or a tool of an MCP server.
#[derive(JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
#[expect(dead_code, reason = "describes the configuration for the schema only")]
enum SourceSchema {
    /// The program that prints the state, and its arguments.
    List(#[schemars(length(min = 1))] Vec<String>),
    Command {
        /// The program that prints the state, and its arguments; `KARAT_CASE_ID` is the id of the case.
        #[schemars(length(min = 1))]
        command: Vec<String>,
        /// How the output is read (default: `json`).
        #[serde(rename = "as")]
        form: Option<SourceForm>,
        /// Whether other cases cannot change the source during a case, so that they may run in parallel.
        isolated: Option<bool>,
    },
    Url {
        /// A URL that returns the state; may contain `${NAME}`, an environment variable.
        #[schemars(regex(pattern = r"^(https?://|\$\{)"))]
        url: String,
        /// Values may contain `${NAME}`, an environment variable, which is redacted in all output.
        headers: Option<BTreeMap<String, String>>,
        /// How the reply is read (default: `json`).
        #[serde(rename = "as")]
        form: Option<SourceForm>,
        /// Whether other cases cannot change the source during a case, so that they may run in parallel.
        isolated: Option<bool>,
    },
    File {
        /// A file that contains the state.
        #[schemars(length(min = 1))]
        file: String,
        /// How the file is read (default: `json`).
        #[serde(rename = "as")]
        form: Option<SourceForm>,
        /// Whether other cases cannot change the source during a case, so that they may run in parallel.
        isolated: Option<bool>,
    },
    McpTool {
        /// A tool that returns the state.
        #[serde(rename = "mcpTool")]
        mcp_tool: McpToolCall,
        /// How the result is read (default: `json`).
        #[serde(rename = "as")]
        form: Option<SourceForm>,
        /// Whether other cases cannot change the source during a case, so that they may run in parallel.
        isolated: Option<bool>,
    },
}

impl JsonSchema for SourceConfig {
    fn schema_name() -> Cow<'static, str> {
        "StateSource".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SourceSchema::json_schema(generator)
    }
}

/// A program or URL that is called at a point of a run.
#[derive(JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
#[expect(dead_code, reason = "describes the configuration for the schema only")]
enum HookSchema {
    /// The program and its arguments.
    List(#[schemars(length(min = 1))] Vec<String>),
    Command {
        /// The program and its arguments; `KARAT_CASE_ID` is the id of the case.
        #[schemars(length(min = 1))]
        command: Vec<String>,
    },
    Url {
        /// A URL that receives a POST with `{"hook", "caseId"}`; may contain `${NAME}`, an environment variable.
        #[schemars(regex(pattern = r"^(https?://|\$\{)"))]
        url: String,
        /// Values may contain `${NAME}`, an environment variable, which is redacted in all output.
        headers: Option<BTreeMap<String, String>>,
    },
}

impl JsonSchema for HookConfig {
    fn schema_name() -> Cow<'static, str> {
        "Hook".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        HookSchema::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn sources(value: &Value) -> Result<BTreeMap<String, SourceConfig>, Vec<String>> {
        let mut problems = Problems::default();
        let read = SourceConfig::read_all(value, &Path::Root, &mut problems);
        let list: Vec<String> =
            problems.into_list().into_iter().map(|each| format!("{} {}", each.pointer, each.message)).collect();
        if list.is_empty() { Ok(read.expect("a value without problems")) } else { Err(list) }
    }

    fn hooks(value: &Value) -> Result<HooksConfig, Vec<String>> {
        let mut problems = Problems::default();
        let read = HooksConfig::read(value, &Path::Root, &mut problems);
        let list: Vec<String> =
            problems.into_list().into_iter().map(|each| format!("{} {}", each.pointer, each.message)).collect();
        if list.is_empty() { Ok(read.expect("a value without problems")) } else { Err(list) }
    }

    #[test]
    fn reads_every_kind_of_source() {
        let value = json!({
            "a": {"command": ["sqlite3", "shop.db"], "as": "text", "isolated": true},
            "b": {"url": "http://host/state", "headers": {"X-Key": "${KEY}"}},
            "c": {"file": "state.json"},
            "d": {"mcpTool": {"server": "shop", "tool": "dump", "arguments": {"all": true}}},
        });
        assert_eq!(serde_json::to_value(sources(&value).expect("valid")).expect("JSON"), value);
    }

    #[test]
    fn a_list_is_a_command() {
        let read = sources(&json!({"a": ["cat", "x"]})).expect("valid");
        assert_eq!(read, sources(&json!({"a": {"command": ["cat", "x"]}})).expect("valid"));
        let read = hooks(&json!({"beforeCase": ["reset"]})).expect("valid");
        assert_eq!(read, hooks(&json!({"beforeCase": {"command": ["reset"]}})).expect("valid"));
    }

    #[rstest]
    #[case(json!({"a": {}}), &format!("/a {INVALID_SOURCE}"))]
    #[case(json!({"a": {"command": ["x"], "file": "y"}}), &format!("/a {INVALID_SOURCE}"))]
    #[case(json!({"a": {"file": "y", "headers": {}}}), &format!("/a {INVALID_SOURCE}"))]
    #[case(json!({"a": []}), "/a a command must name a program")]
    #[case(json!({"a": {"command": "cat x"}}), "/a/command a command must be a list of a program and its arguments, found a string")]
    #[case(json!({"a": {"url": "host/state"}}), "/a/url 'url' must begin with http:// or https://")]
    #[case(json!({"a": {"file": ""}}), "/a/file 'file' is empty")]
    #[case(json!({"": ["x"]}), "/ the name of a state source is empty")]
    #[case(json!({"a": {"mcpTool": {"server": "s"}}}), "/a/mcpTool 'tool' is missing")]
    #[case(json!({"a": {"file": "y", "isolate": true}}), "/a/isolate unknown key 'isolate'")]
    fn rejects_invalid_sources(#[case] value: Value, #[case] problem: &str) {
        let problems = sources(&value).expect_err("invalid");
        assert!(problems.iter().any(|each| each == problem), "{problems:?}");
    }

    #[rstest]
    #[case(json!({"beforeCase": {}}), &format!("/beforeCase {INVALID_HOOK}"))]
    #[case(json!({"beforeCase": {"command": ["x"], "url": "http://h"}}), &format!("/beforeCase {INVALID_HOOK}"))]
    #[case(json!({"beforeCase": {"command": ["x"], "headers": {}}}), &format!("/beforeCase {INVALID_HOOK}"))]
    #[case(json!({"afterRun": [""]}), "/afterRun a command must name a program")]
    #[case(json!({"beforeTurn": ["x"]}), "/beforeTurn unknown key 'beforeTurn'")]
    fn rejects_invalid_hooks(#[case] value: Value, #[case] problem: &str) {
        let problems = hooks(&value).expect_err("invalid");
        assert!(problems.iter().any(|each| each == problem), "{problems:?}");
    }

    #[test]
    fn expands_variables_in_urls_and_headers_only() {
        let value = json!({"a": {"url": "${BASE}/x", "headers": {"K": "${BASE}"}}, "b": ["echo", "${BASE}"]});
        let mut expand = |text: &str| Ok::<_, ()>(text.replace("${BASE}", "http://h"));
        let read = sources(&value).expect("valid");
        let expanded: BTreeMap<&String, SourceConfig> =
            read.iter().map(|(name, source)| (name, source.expanded(&mut expand).expect("expanded"))).collect();
        let expected =
            json!({"a": {"url": "http://h/x", "headers": {"K": "http://h"}}, "b": {"command": ["echo", "${BASE}"]}});
        assert_eq!(serde_json::to_value(expanded).expect("JSON"), expected);
    }
}
