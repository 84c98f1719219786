//! Creates a configuration and an eval file, as a conversation that a terminal, a page or a script can drive. Never
//! overwrites files.

use std::path::{Path, PathBuf};

use karat_agents::KnownProvider;
use karat_project::create_file;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Error;

const CONFIG_FILE: &str = "karat.json";
/// The tools that a model is offered.
pub const TOOLS_FILE: &str = "tools.json";
/// The default tool registry.
const DEFAULT_REGISTRY: &str = "tools/tools.exports.ts";

/// The questions, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// The agent: a URL, a model or a program.
    Agent,
    /// The first tool to test.
    Tool,
    /// A message that should make the agent call the tool.
    Message,
}

impl Question {
    const ALL: [Self; 3] = [Self::Agent, Self::Tool, Self::Message];

    fn default_answer(self) -> &'static str {
        match self {
            Self::Agent => "http://localhost:3000/chat",
            Self::Tool => "get_weather",
            Self::Message => "What's the weather in Paris?",
        }
    }
}

/// The next step of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    Ask {
        question: Question,
        default: String,
    },
    /// All questions are answered: [`Command::Write`] writes the files.
    Write,
    Done(Written),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Command {
    /// Answers the question of the current step.
    Answer(String),
    Write,
}

/// The written files, and what is left to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    pub files: Vec<String>,
    /// The project's folder, if it is not the current one.
    pub folder: Option<String>,
    /// The agent is a model, which is offered the tools of [`TOOLS_FILE`]; stubs answer its calls.
    pub is_model: bool,
    /// Environment variables that the model's provider requires.
    pub variables: Vec<String>,
    /// The project has a tool registry.
    pub has_tools: bool,
}

/// The state of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Init {
    folder: PathBuf,
    /// The current directory: displayed paths are relative to it.
    #[serde(rename = "here")]
    current_dir: PathBuf,
    answers: Vec<String>,
    written: Option<Written>,
}

impl Init {
    /// Starts a project in a folder without one.
    pub fn begin(folder: Option<&Path>, current_dir: &Path) -> Result<Self, Error> {
        let folder = folder.map_or_else(|| current_dir.to_path_buf(), |folder| current_dir.join(folder));
        let init = Self { folder, current_dir: current_dir.to_path_buf(), answers: Vec::new(), written: None };
        init.check_missing(&init.folder.join(CONFIG_FILE))?;
        Ok(init)
    }

    pub fn next(&self) -> Step {
        match (&self.written, self.question()) {
            (Some(written), _) => Step::Done(written.clone()),
            (None, Some(question)) => Step::Ask { question, default: question.default_answer().to_owned() },
            (None, None) => Step::Write,
        }
    }

    /// Applies a command. After an error, the step is unchanged.
    pub fn apply(&mut self, command: Command) -> Result<(), Error> {
        match command {
            Command::Answer(answer) => {
                let question = self.question().ok_or_else(|| Error::invalid("all questions are already answered"))?;
                self.check_answer(question, &answer)?;
                self.answers.push(answer);
            }
            Command::Write => {
                let [agent, tool, message] = &self.answers[..] else {
                    return Err(Error::invalid("not all questions are answered yet"));
                };
                if self.written.is_some() {
                    return Err(Error::invalid("the files are already written"));
                }
                self.written = Some(self.write(agent, tool, message)?);
            }
        }
        Ok(())
    }

    /// Returns the next unanswered question.
    fn question(&self) -> Option<Question> {
        Question::ALL.get(self.answers.len()).copied()
    }

    fn check_answer(&self, question: Question, answer: &str) -> Result<(), Error> {
        match question {
            Question::Agent => provider_of(answer).map(|_| ()),
            Question::Tool if answer.is_empty() || answer.contains(['/', '\\']) || answer.starts_with('.') => {
                Err(Error::invalid(format!("invalid tool name '{answer}'")))
            }
            Question::Tool => self.check_missing(&self.eval_path(answer)),
            Question::Message => Ok(()),
        }
    }

    fn check_missing(&self, path: &Path) -> Result<(), Error> {
        if path.exists() {
            return Err(Error::invalid(format!("{} already exists", self.display_path(path)))
                .hint("remove it first, or pass another folder"));
        }
        Ok(())
    }

    fn eval_path(&self, tool: &str) -> PathBuf {
        self.folder.join("evals").join(format!("{}.golden.json", file_stem(tool)))
    }

    fn write(&self, agent: &str, tool: &str, message: &str) -> Result<Written, Error> {
        let provider = provider_of(agent)?;
        let is_model = provider.is_some();
        let config_path = self.folder.join(CONFIG_FILE);
        let eval_path = self.eval_path(tool);
        let tools_path = self.folder.join(TOOLS_FILE);
        let default_registry = self.folder.join(DEFAULT_REGISTRY);
        let mut suite = first_case(tool, message, is_model);
        let registry = if is_model { &tools_path } else { &default_registry };
        record_tool_version(&mut suite["metadata"], tool, registry, &self.current_dir);
        write_new(&eval_path, &suite)?;
        let mut files = vec![self.display_path(&config_path), self.display_path(&eval_path)];
        // Do not replace existing tools with an example.
        if is_model && !tools_path.exists() {
            write_new(&tools_path, &first_tools(tool))?;
            files.push(self.display_path(&tools_path));
        }
        write_new(&config_path, &config(agent, is_model))?;
        let folder = (self.folder != self.current_dir).then(|| self.display_path(&self.folder));
        let variables = provider.map(needed_variables).unwrap_or_default();
        Ok(Written { files, folder, is_model, variables, has_tools: is_model || default_registry.exists() })
    }

    fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.current_dir).unwrap_or(path).display().to_string()
    }
}

/// Returns the provider of a model; `None` if the agent is not a model.
fn provider_of(agent: &str) -> Result<Option<KnownProvider>, Error> {
    let Some((kind, model)) = agent.split_once(':') else {
        return Ok(None);
    };
    match KnownProvider::by_name(kind) {
        Some(_) if model.is_empty() => {
            Err(Error::invalid(format!("missing model in '{agent}': expected {kind}:MODEL")))
        }
        provider => Ok(provider),
    }
}

fn needed_variables(provider: KnownProvider) -> Vec<String> {
    let base = provider.base_url.is_none().then_some(provider.base_url_variable);
    let key = provider.needs_key.then_some(provider.key_variable);
    base.into_iter().chain(key).map(str::to_owned).collect()
}

/// Returns a tool's name for file names and ids.
fn file_stem(tool: &str) -> String {
    tool.replace('_', "-")
}

fn config(agent: &str, is_model: bool) -> Value {
    let mut config = json!({"agentEndpoint": agent});
    if is_model {
        config["toolRegistryPath"] = TOOLS_FILE.into();
    }
    config["outputDir"] = "evals/results".into();
    config["concurrency"] = 4.into();
    config["timeoutMs"] = 60000.into();
    config
}

/// Returns a tool list with one tool that accepts any arguments.
fn first_tools(tool: &str) -> Value {
    json!({
        "tools": [{
            "name": tool,
            "description": format!("Reword this: what {tool} does, and when it should be called."),
            "inputSchema": {"type": "object", "properties": {}, "additionalProperties": true},
        }],
    })
}

/// Returns an eval file with one case. A model cannot execute tools, so stubs answer its calls.
fn first_case(tool: &str, message: &str, is_model: bool) -> Value {
    let mut case = json!({
        "id": format!("gs-{}-001", file_stem(tool)),
        "description": "trigger phrase",
        "input": {"message": message},
    });
    if is_model {
        case["stubs"] = json!({tool: {"result": "replace this with the tool's result"}});
    }
    case["expect"] = json!({
        "toolsCalled": [tool],
        "noToolErrors": true,
        "responseNonEmpty": true,
        // "I don’t know" and "i don't know" too.
        "textMatch": "loose",
        "responseNotContains": ["I don't know"],
    });
    json!({"metadata": {"toolName": tool, "tier": "golden"}, "cases": [case]})
}

/// Records the current version of the tool in the eval file, if the registry can be read.
fn record_tool_version(metadata: &mut Value, name: &str, registry: &Path, current_dir: &Path) {
    let Ok(registry) = karat_registry::read_path(registry, current_dir) else {
        return;
    };
    let Some(tool) = registry.find(name) else {
        return;
    };
    if let Some(version) = tool.version.get() {
        metadata["toolVersion"] = json!(version);
    }
    if let Some(hash) = tool.description_hash() {
        metadata["descriptionHash"] = json!(hash);
    }
    // With gaps, the number of tools is unknown.
    if registry.gaps().is_empty() {
        metadata["registrySize"] = json!(registry.tools().len());
    }
}

/// Creates a file; fails if it exists.
fn write_new(path: &Path, value: &Value) -> Result<(), Error> {
    let text = format!("{value:#}\n");
    create_file(path, text.as_bytes())
        .map_err(|error| Error::invalid(format!("cannot write {}: {error}", path.display())))
}
