//! Reads MCP servers from the configuration of an editor or assistant.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use karat_agents::AllowedTools;
use karat_cases::registry::Registry;
use karat_core::redact::{Redactor, is_secret_name, is_secret_shape};
use karat_json::{Problems, parse, without_bom};
use karat_registry::McpServerConfig;
use serde_json::{Map, Value};

use crate::context::tools::list_servers;
use crate::error::Error;
use crate::settings::{LiveTools, ToolExecutor, Variables, WithBase, redact_arguments};

/// Configurations in a project, most specific first.
pub(super) const FILES: [&str; 5] =
    [".mcp.json", "mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", "claude_desktop_config.json"];

/// The keys of a server that karat supports.
const KEYS: [&str; 6] = ["command", "args", "env", "cwd", "url", "headers"];

/// Time limit for listing tools. Some servers are downloaded before they start.
const LIST_TIMEOUT: Duration = Duration::from_mins(1);

pub(super) struct McpFile {
    pub(super) servers: BTreeMap<String, McpServerConfig>,
    /// Names of servers that karat cannot use.
    pub(super) skipped: Vec<String>,
}

/// Reads the servers of a file with the key `mcpServers` (Claude) or `servers` (VS Code). Returns `None` if it has
/// neither key.
pub(super) fn read(path: &Path) -> Result<Option<McpFile>, Error> {
    let invalid = |reason: String| Error::invalid(format!("cannot read {}: {reason}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| invalid(error.to_string()))?;
    let text = std::str::from_utf8(without_bom(&bytes)).map_err(|error| invalid(error.to_string()))?;
    let value = parse(text).map_err(|error| invalid(error.message))?;
    let Some(entries) = ["mcpServers", "servers"].iter().find_map(|key| value.get(*key)?.as_object()) else {
        return Ok(None);
    };
    let mut file = McpFile { servers: BTreeMap::new(), skipped: Vec::new() };
    for (name, server) in entries.iter().filter(|(_, server)| server.get("disabled") != Some(&Value::Bool(true))) {
        match read_server(server) {
            Some(server) => {
                file.servers.insert(name.clone(), server);
            }
            None => file.skipped.push(name.clone()),
        }
    }
    Ok(Some(file))
}

fn read_server(server: &Value) -> Option<McpServerConfig> {
    if server.get("type").and_then(Value::as_str) == Some("sse") {
        return None;
    }
    let known = KEYS.iter().filter_map(|key| Some(((*key).to_owned(), translate(server.get(*key)?))));
    let known = Value::Object(known.collect::<Map<_, _>>());
    let config = McpServerConfig::read(&known, &karat_json::Path::Root, &mut Problems::default())?;
    // karat.json is committed, and variables are not expanded in arguments.
    let has_secret = match &config {
        McpServerConfig::Stdio { command, .. } => command.iter().flat_map(|word| word.split('=')).any(is_secret_shape),
        McpServerConfig::Http { .. } => false,
    };
    (!has_secret).then_some(config)
}

/// Converts the variable references of editors to those of karat.
fn translate(value: &Value) -> Value {
    match value {
        Value::String(text) => translate_string(&text.replace("${workspaceFolder}", ".")).into(),
        Value::Array(items) => items.iter().map(translate).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), translate(value))).collect(),
        other => other.clone(),
    }
}

fn translate_string(text: &str) -> String {
    let mut translated = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${")
        && let Some((name, tail)) = after.split_once('}')
    {
        let name = match name.split_once(':') {
            Some(("env", name)) => name.to_owned(),
            Some(("input", name)) => variable_name(name),
            _ => name.to_owned(),
        };
        translated.extend([before, "${", name.as_str(), "}"]);
        rest = tail;
    }
    translated + rest
}

/// Returns the name of an environment variable for a header or an input.
fn variable_name(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' }).collect()
}

/// Returns the servers for `karat.json`, with variables in place of secrets, and the names of all their variables.
pub(super) fn replace_secrets(
    servers: &BTreeMap<String, McpServerConfig>,
) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut servers = servers.clone();
    let mut variables = Vec::new();
    for server in servers.values_mut() {
        let (McpServerConfig::Stdio { env: values, .. } | McpServerConfig::Http { headers: values, .. }) = server;
        for (name, value) in values {
            let is_secret = is_secret_name(name) || value.split_whitespace().any(is_secret_shape);
            if is_secret && !value.contains("${") {
                *value = format!("${{{}}}", variable_name(name));
            }
            variables.extend(referenced_variables(value));
        }
    }
    variables.sort();
    variables.dedup();
    Ok((serde_json::to_value(servers)?, variables))
}

fn referenced_variables(text: &str) -> Vec<String> {
    let names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    names.map(|(name, _)| name.to_owned()).collect()
}

/// Starts the servers, lists their tools and stops them. A server that fails is a gap.
pub(super) async fn list(
    servers: Vec<(String, McpServerConfig)>,
    folder: &Path,
    redactor: &Redactor,
) -> Result<Registry, Error> {
    for (_, server) in &servers {
        if let McpServerConfig::Stdio { command, .. } = server {
            redact_arguments(command, redactor);
        }
    }
    let with_base = |(name, value): (String, McpServerConfig)| (name, WithBase { value, base: folder.to_path_buf() });
    let live = LiveTools {
        servers: servers.into_iter().map(with_base).collect(),
        is_registry: true,
        executor: ToolExecutor::default(),
        allowed: AllowedTools::Named(Vec::new()),
        has_allow_list: false,
    };
    let variables = Variables::load(folder)?;
    variables.register_secrets(redactor);
    Ok(list_servers(&live, &variables, redactor, LIST_TIMEOUT, &|_| ()).await)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_value(value: &Value) -> Option<McpFile> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(".mcp.json");
        std::fs::write(&path, value.to_string()).expect("a file");
        read(&path).expect("valid JSON")
    }

    #[test]
    fn reads_the_servers_of_editors() {
        let file = read_value(&json!({
            "inputs": [{"id": "api-key"}],
            "servers": {
                "files": {"type": "stdio", "command": "npx", "args": ["server", "${workspaceFolder}/data"],
                    "env": {"KEY": "${input:api-key}", "HOME_DIR": "${env:HOME}"}},
                "old": {"type": "sse", "url": "http://localhost/sse"},
                "off": {"command": "x", "disabled": true},
                "broken": {"args": []},
                "leaky": {"command": "x", "args": ["--key=sk-0123456789abcdef"]},
            },
        }));
        let file = file.expect("servers");
        assert_eq!(file.skipped, ["old", "broken", "leaky"]);
        let expected = json!({"files": {"command": ["npx", "server", "./data"],
            "env": {"HOME_DIR": "${HOME}", "KEY": "${API_KEY}"}}});
        assert_eq!(serde_json::to_value(&file.servers).expect("JSON"), expected);
        assert!(read_value(&json!({"tools": []})).is_none());
    }

    #[test]
    fn secrets_become_variables() {
        let file = read_value(&json!({"mcpServers": {
            "a": {"command": "x", "env": {"LOG": "debug", "GITHUB_TOKEN": "ghp_0123456789abcdef"}},
            "b": {"url": "https://host/mcp", "headers": {"X-Api-Key": "abc", "Authorization": "Bearer ${TOKEN}"}},
        }}));
        let (servers, variables) = replace_secrets(&file.expect("servers").servers).expect("JSON");
        let expected = json!({
            "a": {"command": ["x"], "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "LOG": "debug"}},
            "b": {"url": "https://host/mcp",
                "headers": {"Authorization": "Bearer ${TOKEN}", "X-Api-Key": "${X_API_KEY}"}},
        });
        assert_eq!(servers, expected);
        assert_eq!(variables, ["GITHUB_TOKEN", "TOKEN", "X_API_KEY"]);
    }
}
