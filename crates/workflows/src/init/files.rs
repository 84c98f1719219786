//! The contents of the files of a new project.

use karat_cases::regression::slug;
use karat_lints::PLACEHOLDER_RESULT;
use serde_json::{Map, Value, json};

use super::registry_tools::{RegistryTool, first_sentence};

/// Lines of `.gitignore`: the store and the results of runs.
const GITIGNORE_LINES: [&str; 2] = [".karat/", "evals/results/"];

/// The first eval file.
pub(super) struct FirstEval<'f> {
    /// The tool under test, if any.
    pub(super) tool: Option<&'f str>,
    /// The definition of the tool, if the registry has one.
    pub(super) definition: Option<&'f RegistryTool>,
    /// The number of tools, if known.
    pub(super) registry_size: Option<usize>,
    /// Messages to the agent, at least one.
    pub(super) messages: &'f [String],
    pub(super) is_model: bool,
}

impl FirstEval<'_> {
    /// Returns an eval file with one case; with several messages, the case has a row for each.
    pub(super) fn content(&self) -> Value {
        let mut file = Map::new();
        if let Some(tool) = self.tool {
            file.insert("metadata".to_owned(), self.metadata(tool));
        }
        file.insert("cases".to_owned(), json!([self.case()]));
        file.into()
    }

    fn metadata(&self, tool: &str) -> Value {
        let mut metadata = json!({"toolName": tool, "tier": "golden"});
        let Some(definition) = self.definition else {
            return metadata;
        };
        if let Some(version) = &definition.version {
            metadata["toolVersion"] = json!(version);
        }
        if let Some(hash) = &definition.description_hash {
            metadata["descriptionHash"] = json!(hash);
        }
        if let Some(size) = self.registry_size {
            metadata["registrySize"] = json!(size);
        }
        metadata
    }

    fn case(&self) -> Value {
        let id = self.tool.map_or_else(|| "first-001".to_owned(), |tool| format!("gs-{}-001", slug(tool)));
        let rows: Vec<Value> = self.messages.iter().map(|message| json!({"message": message})).collect();
        let (description, message) = match self.messages {
            [message] => (self.description(), message.as_str()),
            _ => ("{{row:message}}".to_owned(), "{{row:message}}"),
        };
        let mut case = json!({"id": id, "description": description, "input": {"message": message}});
        // A model cannot execute tools, so stubs answer its calls.
        if let Some(tool) = self.tool.filter(|_| self.is_model) {
            case["stubs"] = json!({tool: {"result": PLACEHOLDER_RESULT}});
        }
        case["expect"] = self.expect();
        if rows.len() > 1 {
            case["each"] = rows.into();
        }
        case
    }

    fn description(&self) -> String {
        let description = self.definition.and_then(|tool| first_sentence(tool.description.as_deref()?));
        description.unwrap_or(if self.tool.is_some() { "trigger phrase" } else { "the agent answers" }).to_owned()
    }

    fn expect(&self) -> Value {
        let mut expect = json!({});
        if let Some(tool) = self.tool {
            expect["toolsCalled"] = json!([tool]);
            let exists = |name: &str| json!({"tool": tool, "paramName": name, "assertion": "exists"});
            let required = self.definition.map(RegistryTool::required).unwrap_or_default();
            if !required.is_empty() {
                expect["toolParams"] = required.into_iter().map(exists).collect();
            }
            expect["noToolErrors"] = true.into();
        }
        expect["responseNonEmpty"] = true.into();
        // Also finds "I don’t know" and "i don't know".
        expect["textMatch"] = "loose".into();
        expect["responseNotContains"] = json!(["I don't know"]);
        expect
    }
}

/// The source of the tools in `karat.json`.
pub(super) enum RegistryKeys {
    None,
    /// `toolRegistryPath`.
    Path(String),
    /// `mcpServers`.
    Servers(Value),
}

pub(super) fn config(agent: &str, registry: RegistryKeys) -> Value {
    let mut config = json!({"agentEndpoint": agent});
    match registry {
        RegistryKeys::None => {}
        RegistryKeys::Path(path) => config["toolRegistryPath"] = path.into(),
        RegistryKeys::Servers(servers) => config["mcpServers"] = servers,
    }
    config["outputDir"] = "evals/results".into();
    config["concurrency"] = 4.into();
    config["timeoutMs"] = 60000.into();
    config
}

/// Returns a tool list with one tool that accepts any arguments.
pub(super) fn tool_list(tool: &str) -> Value {
    json!({
        "tools": [{
            "name": tool,
            "description": format!("Reword this: what {tool} does, and when it should be called."),
            "inputSchema": {"type": "object", "properties": {}, "additionalProperties": true},
        }],
    })
}

/// Adds the missing lines to a `.gitignore`; `None` if it has all of them.
pub(super) fn with_gitignore_lines(existing: &str) -> Option<String> {
    let has_line =
        |expected: &str| existing.lines().any(|line| line.trim().trim_matches('/') == expected.trim_matches('/'));
    let missing: Vec<&str> = GITIGNORE_LINES.into_iter().filter(|line| !has_line(line)).collect();
    if missing.is_empty() {
        return None;
    }
    let end = if existing.contains("\r\n") { "\r\n" } else { "\n" };
    let mut text = existing.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(end);
    }
    for line in missing {
        text.push_str(line);
        text.push_str(end);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", Some(".karat/\nevals/results/\n"))]
    #[case("target", Some("target\n.karat/\nevals/results/\n"))]
    #[case("a\r\n/.karat\r\n", Some("a\r\n/.karat\r\nevals/results/\r\n"))]
    #[case("/evals/results\n# done\n.karat\n", None)]
    fn adds_missing_lines_to_gitignore(#[case] existing: &str, #[case] expected: Option<&str>) {
        assert_eq!(with_gitignore_lines(existing).as_deref(), expected);
        let again = expected.and_then(with_gitignore_lines);
        assert_eq!(again, None);
    }
}
