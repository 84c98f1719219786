//! Configuration of MCP servers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use karat_json::{ObjectReader, Path, Problems, Subject, read_object_map, read_string, read_string_map, read_strings};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;

const SHORT_FORM_PREFIX: &str = "mcp:";

const INVALID_KEYS: &str =
    "an MCP server must have either 'command' (with 'args', 'env' and 'cwd') or 'url' (with 'headers')";

/// An MCP server, started as a program or reached over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum McpServerConfig {
    /// A program that communicates over stdin and stdout.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// Values may contain `${NAME}`.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        /// The working folder of the program.
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    /// A server that is reached over streamable HTTP.
    Http {
        url: String,
        /// Values may contain `${NAME}`.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
}

/// An MCP server, started as a program or reached over HTTP.
#[derive(JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
#[expect(dead_code, reason = "describes the configuration for the schema only")]
enum ConfigSchema {
    /// A program that communicates over stdin and stdout.
    List {
        /// The program and its arguments.
        #[schemars(length(min = 1))]
        command: Vec<String>,
        /// Values may contain `${NAME}`, an environment variable, which is redacted in all output.
        env: Option<BTreeMap<String, String>>,
        /// The working folder of the program.
        cwd: Option<String>,
    },
    /// A program that communicates over stdin and stdout, with its arguments in `args`.
    Program {
        /// The program without its arguments.
        #[schemars(length(min = 1))]
        command: String,
        args: Option<Vec<String>>,
        /// Values may contain `${NAME}`, an environment variable, which is redacted in all output.
        env: Option<BTreeMap<String, String>>,
        /// The working folder of the program.
        cwd: Option<String>,
    },
    /// A server that is reached over streamable HTTP.
    Http {
        url: String,
        /// Values may contain `${NAME}`, an environment variable, which is redacted in all output.
        headers: Option<BTreeMap<String, String>>,
    },
}

impl JsonSchema for McpServerConfig {
    fn schema_name() -> Cow<'static, str> {
        "McpServerConfig".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        ConfigSchema::json_schema(generator)
    }
}

/// A server that is ready to be connected: named, and with its variables resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedServer {
    pub name: String,
    /// For a program, `env` is its whole environment.
    pub config: McpServerConfig,
    /// The folder that `cwd` is relative to; the working folder of a program without `cwd`.
    pub base: PathBuf,
}

impl McpServerConfig {
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let command = object.optional("command", path, problems, read_command);
        let args = object.nullable("args", path, problems, read_strings);
        let env = object.nullable("env", path, problems, read_string_map);
        let cwd = object.nullable("cwd", path, problems, read_string);
        let url = object.optional("url", path, problems, read_url);
        let headers = object.nullable("headers", path, problems, read_string_map);
        let has = |key: &str| value.get(key).is_some();
        // By its letters, this key is nearer to 'cwd'.
        if has("cmd") && !has("command") {
            let help = Some("did you mean 'command'?".to_owned());
            problems.push(&path.key("cmd"), Subject::Key, "unknown key 'cmd'".to_owned(), help);
            return None;
        }
        let is_valid = !(has("command") && has("url"))
            && (has("command") || has("url"))
            && !(has("command") && has("headers"))
            && !(has("url") && ["args", "env", "cwd"].into_iter().any(has));
        object.close(path, problems);
        if !is_valid {
            problems.at(path, INVALID_KEYS);
            return None;
        }
        let command = match (command, &args) {
            (Some(Command::List(_)), Some(_)) => {
                let message = "'args' cannot be combined with a list as 'command': move the arguments into the list";
                problems.at(&path.key("args"), message);
                return None;
            }
            (Some(Command::Program(program)), None) if program.contains(char::is_whitespace) && !has("args") => {
                problems.at(&path.key("command"), "'command' must be only the program: move its arguments to 'args'");
                return None;
            }
            (Some(Command::List(words)), None) => Some(words),
            (Some(Command::Program(program)), _) => {
                Some(std::iter::once(program).chain(args.unwrap_or_default()).collect())
            }
            (None, _) => None,
        };
        match (command, url) {
            (Some(command), None) => Some(Self::Stdio { command, env: env.unwrap_or_default(), cwd }),
            (None, Some(url)) => Some(Self::Http { url, headers: headers.unwrap_or_default() }),
            _ => None,
        }
    }

    /// Parses `mcp:stdio:COMMAND ARGS`, split into words as in a shell, or `mcp:URL`. Returns `None` for other text.
    pub fn parse_short_form(text: &str) -> Option<Result<Self, ShortFormError>> {
        let target = text.strip_prefix(SHORT_FORM_PREFIX)?;
        let Some(line) = target.strip_prefix("stdio:") else {
            let url = is_url(target).then(|| Self::Http { url: target.to_owned(), headers: BTreeMap::new() });
            return Some(url.ok_or(ShortFormError::NotAUrl));
        };
        Some(match shell_words::split(line) {
            Ok(command) if command.first().is_some_and(|program| !program.is_empty()) => {
                Ok(Self::Stdio { command, env: BTreeMap::new(), cwd: None })
            }
            Ok(_) => Err(ShortFormError::NoCommand),
            Err(_) => Err(ShortFormError::OpenQuote),
        })
    }
}

/// Why a short form (`mcp:…`) is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShortFormError {
    #[error("expected mcp:stdio:COMMAND or mcp:URL (http://…, https://…)")]
    NotAUrl,
    #[error("missing command after mcp:stdio:")]
    NoCommand,
    #[error("the command has an unclosed quote")]
    OpenQuote,
}

/// Reads the servers of a configuration by name.
pub fn read_mcp_servers(
    value: &Value,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Option<BTreeMap<String, McpServerConfig>> {
    let map = read_object_map(value, path, problems)?;
    let read = |(name, value): (&String, &Value)| {
        Some((name.clone(), McpServerConfig::read(value, &path.key(name), problems)?))
    };
    // Read all servers to collect the problems of each.
    let servers: Vec<Option<(String, McpServerConfig)>> = map.iter().map(read).collect();
    servers.into_iter().collect()
}

enum Command {
    List(Vec<String>),
    Program(String),
}

fn read_command(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Command> {
    let command = match value {
        Value::String(program) => Command::Program(program.clone()),
        Value::Array(_) => Command::List(read_strings(value, path, problems)?),
        _ => {
            problems.at(path, "'command' must be a program (with 'args') or a list of the program and its arguments");
            return None;
        }
    };
    let program = match &command {
        Command::List(words) => words.first(),
        Command::Program(program) => Some(program),
    };
    if program.is_none_or(String::is_empty) {
        problems.at(path, "'command' must name a program");
        return None;
    }
    Some(command)
}

fn read_url(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<String> {
    let url = read_string(value, path, problems)?;
    if !is_url(&url) {
        problems.at(path, "'url' must begin with http:// or https://");
        return None;
    }
    Some(url)
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn stdio(words: &[&str]) -> McpServerConfig {
        let command = words.iter().map(|word| (*word).to_owned()).collect();
        McpServerConfig::Stdio { command, env: BTreeMap::new(), cwd: None }
    }

    fn problems_of(value: &Value) -> Vec<String> {
        let mut problems = Problems::default();
        let read = read_mcp_servers(value, &Path::Root, &mut problems);
        let list = problems.into_list();
        assert_eq!(read.is_none(), !list.is_empty(), "invalid servers are reported: {value}");
        list.into_iter().map(|problem| format!("{} {}", problem.pointer, problem.message)).collect()
    }

    #[test]
    fn reads_stdio_and_http_servers() {
        let value = json!({
            "files": {"command": ["npx", "-y", "server"], "env": {"ROOT": "${HOME}/x"}, "cwd": "data"},
            "web": {"url": "https://host/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        });
        let mut problems = Problems::default();
        let servers = read_mcp_servers(&value, &Path::Root, &mut problems).expect("valid");
        assert_eq!(serde_json::to_value(&servers).expect("JSON"), value);
    }

    #[rstest]
    #[case(json!({"a": {"command": "npx server"}}), "/a/command 'command' must be only the program: move its arguments to 'args'")]
    #[case(json!({"a": {"command": ""}}), "/a/command 'command' must name a program")]
    #[case(json!({"a": {"cmd": ["x"]}}), "/a/cmd unknown key 'cmd'")]
    #[case(json!({"a": {"command": 5}}), "/a/command 'command' must be a program (with 'args') or a list of the program and its arguments")]
    #[case(json!({"a": {"command": ["x"], "args": ["y"]}}), "/a/args 'args' cannot be combined with a list as 'command': move the arguments into the list")]
    #[case(json!({"a": {"args": ["y"]}}), "/a an MCP server must have either 'command' (with 'args', 'env' and 'cwd') or 'url' (with 'headers')")]
    #[case(json!({"a": {"url": "http://x", "args": []}}), "/a an MCP server must have either 'command' (with 'args', 'env' and 'cwd') or 'url' (with 'headers')")]
    #[case(json!({"a": {"command": []}}), "/a/command 'command' must name a program")]
    #[case(json!({"a": {"command": [""]}}), "/a/command 'command' must name a program")]
    #[case(json!({"a": {"url": "ftp://x"}}), "/a/url 'url' must begin with http:// or https://")]
    #[case(json!({"a": {}}), "/a an MCP server must have either 'command' (with 'args', 'env' and 'cwd') or 'url' (with 'headers')")]
    #[case(json!({"a": {"command": ["x"], "url": "http://x"}}), "/a an MCP server must have either 'command' (with 'args', 'env' and 'cwd') or 'url' (with 'headers')")]
    #[case(json!({"a": {"url": "http://x", "env": {}}}), "/a an MCP server must have either 'command' (with 'args', 'env' and 'cwd') or 'url' (with 'headers')")]
    fn rejects_invalid_servers(#[case] value: Value, #[case] message: &str) {
        assert_eq!(problems_of(&value), [message]);
    }

    #[rstest]
    #[case(json!({"command": "npx", "args": ["-y", "my server"]}), &["npx", "-y", "my server"])]
    #[case(json!({"command": "my program", "args": []}), &["my program"])]
    #[case(json!({"command": "npx", "args": null}), &["npx"])]
    #[case(json!({"command": "npx"}), &["npx"])]
    fn reads_arguments_from_args(#[case] value: Value, #[case] words: &[&str]) {
        let mut problems = Problems::default();
        assert_eq!(McpServerConfig::read(&value, &Path::Root, &mut problems), Some(stdio(words)));
        assert!(problems.into_list().is_empty());
    }

    #[test]
    fn reports_the_problems_of_all_servers() {
        let value =
            json!({"a": {"command": ["x"], "args": ["y"]}, "b": {"url": 5}, "c": {"command": ["x"], "env": {"A": 1}}});
        assert_eq!(problems_of(&value).len(), 3, "{:?}", problems_of(&value));
    }

    #[rstest]
    #[case("mcp:stdio:npx -y server 'a b' \"c\"", stdio(&["npx", "-y", "server", "a b", "c"]))]
    #[case("mcp:stdio:echo $HOME `id` ; rm *", stdio(&["echo", "$HOME", "`id`", ";", "rm", "*"]))]
    #[case("mcp:https://host/mcp", McpServerConfig::Http { url: "https://host/mcp".to_owned(), headers: BTreeMap::new() })]
    fn parses_short_forms(#[case] text: &str, #[case] config: McpServerConfig) {
        assert_eq!(McpServerConfig::parse_short_form(text), Some(Ok(config)));
    }

    #[rstest]
    #[case("mcp:stdio:", "missing command")]
    #[case("mcp:stdio:''", "missing command")]
    #[case("mcp:stdio:a 'b", "unclosed quote")]
    #[case("mcp:npx server", "expected mcp:stdio:COMMAND")]
    #[case("mcp:http://", "expected mcp:stdio:COMMAND")]
    fn rejects_invalid_short_forms(#[case] text: &str, #[case] message: &str) {
        let error = McpServerConfig::parse_short_form(text).expect("a short form").expect_err("invalid");
        assert!(error.to_string().contains(message), "{error}");
    }

    #[test]
    fn paths_are_not_short_forms() {
        assert_eq!(McpServerConfig::parse_short_form("tools/mcp.json"), None);
    }
}
