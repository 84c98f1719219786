//! A first configuration and a first eval file, as a conversation that a terminal, a page or a script can drive. Never
//! overwrites.

use std::path::{Path, PathBuf};

use karat_agents::KnownProvider;
use karat_project::create_file;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Error;

const CONFIG_FILE: &str = "karat.json";
/// The tools that a model is offered.
pub const TOOLS_FILE: &str = "tools.json";
/// Where tools are looked for by default.
const DEFAULT_REGISTRY: &str = "tools/tools.exports.ts";

/// A question, in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// The agent: a URL, a model or a program.
    Agent,
    /// The first tool to test.
    Tool,
    /// A message that should make the agent call it.
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

/// What has to happen next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    Ask {
        question: Question,
        default: String,
    },
    /// Everything is answered: [`Command::Write`] writes the files.
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

/// What was written, and what is left to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    pub files: Vec<String>,
    /// The project's folder, where it is not the current one.
    pub folder: Option<String>,
    /// The agent is a model, which is offered the tools of [`TOOLS_FILE`] and answered by stubs.
    pub is_model: bool,
    /// The variables that the model's provider needs.
    pub variables: Vec<String>,
    /// The project has a description of its tools.
    pub has_tools: bool,
}

/// The conversation so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Init {
    folder: PathBuf,
    /// What shown paths are relative to.
    here: PathBuf,
    answers: Vec<String>,
    written: Option<Written>,
}

impl Init {
    /// Begins a project in a folder that has none.
    pub fn begin(folder: Option<&Path>, here: &Path) -> Result<Self, Error> {
        let folder = folder.map_or_else(|| here.to_path_buf(), |folder| here.join(folder));
        let init = Self { folder, here: here.to_path_buf(), answers: Vec::new(), written: None };
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

    /// Goes on; after an error, the step is the same as before.
    pub fn apply(&mut self, command: Command) -> Result<(), Error> {
        match command {
            Command::Answer(answer) => {
                let question = self.question().ok_or_else(|| Error::invalid("everything is answered already"))?;
                self.check_answer(question, &answer)?;
                self.answers.push(answer);
            }
            Command::Write => {
                let [agent, tool, message] = &self.answers[..] else {
                    return Err(Error::invalid("not everything is answered yet"));
                };
                if self.written.is_some() {
                    return Err(Error::invalid("the files are written already"));
                }
                self.written = Some(self.write(agent, tool, message)?);
            }
        }
        Ok(())
    }

    /// The question without an answer.
    fn question(&self) -> Option<Question> {
        Question::ALL.get(self.answers.len()).copied()
    }

    fn check_answer(&self, question: Question, answer: &str) -> Result<(), Error> {
        match question {
            Question::Agent => provider_of(answer).map(|_| ()),
            Question::Tool if answer.is_empty() || answer.contains(['/', '\\']) || answer.starts_with('.') => {
                Err(Error::invalid(format!("'{answer}' cannot be a tool's name")))
            }
            Question::Tool => self.check_missing(&self.eval_path(answer)),
            Question::Message => Ok(()),
        }
    }

    fn check_missing(&self, path: &Path) -> Result<(), Error> {
        if path.exists() {
            return Err(Error::invalid(format!("{} is there already, and is left as it is", self.shown(path))));
        }
        Ok(())
    }

    fn eval_path(&self, tool: &str) -> PathBuf {
        self.folder.join("evals").join(format!("{}.golden.json", stem(tool)))
    }

    fn write(&self, agent: &str, tool: &str, message: &str) -> Result<Written, Error> {
        let provider = provider_of(agent)?;
        let is_model = provider.is_some();
        let config_path = self.folder.join(CONFIG_FILE);
        let eval_path = self.eval_path(tool);
        let tools_path = self.folder.join(TOOLS_FILE);
        let default_registry = self.folder.join(DEFAULT_REGISTRY);
        let mut suite = first_case(tool, message, is_model);
        stamp(&mut suite["metadata"], tool, if is_model { &tools_path } else { &default_registry }, &self.here);
        write_new(&eval_path, &suite)?;
        let mut files = vec![self.shown(&config_path), self.shown(&eval_path)];
        // Tools that exist are better than an example.
        if is_model && !tools_path.exists() {
            write_new(&tools_path, &first_tools(tool))?;
            files.push(self.shown(&tools_path));
        }
        write_new(&config_path, &config(agent, is_model))?;
        let folder = (self.folder != self.here).then(|| self.shown(&self.folder));
        let variables = provider.map(needed_variables).unwrap_or_default();
        Ok(Written { files, folder, is_model, variables, has_tools: is_model || default_registry.exists() })
    }

    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.here).unwrap_or(path).display().to_string()
    }
}

/// Returns the provider of a model; none for an agent that is not a model.
fn provider_of(agent: &str) -> Result<Option<KnownProvider>, Error> {
    let Some((kind, model)) = agent.split_once(':') else {
        return Ok(None);
    };
    match KnownProvider::named(kind) {
        Some(_) if model.is_empty() => Err(Error::invalid(format!("'{agent}' names no model: expected {kind}:MODEL"))),
        provider => Ok(provider),
    }
}

fn needed_variables(provider: KnownProvider) -> Vec<String> {
    let base = provider.base_url.is_none().then_some(provider.base_variable);
    let key = provider.needs_key.then_some(provider.key_variable);
    base.into_iter().chain(key).map(str::to_owned).collect()
}

/// Returns a tool's name as it stands in file names and ids.
fn stem(tool: &str) -> String {
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

/// Returns a tool that takes anything.
fn first_tools(tool: &str) -> Value {
    json!({
        "tools": [{
            "name": tool,
            "description": format!("Reword this: what {tool} does, and when it should be called."),
            "inputSchema": {"type": "object", "properties": {}, "additionalProperties": true},
        }],
    })
}

/// Returns a case; a model has no tools of its own, so stubs answer its calls.
fn first_case(tool: &str, message: &str, is_model: bool) -> Value {
    let mut case = json!({
        "id": format!("gs-{}-001", stem(tool)),
        "description": "trigger phrase",
        "input": {"message": message},
    });
    if is_model {
        case["stubs"] = json!({tool: {"result": "replace this by what the tool answers"}});
    }
    case["expect"] = json!({
        "toolsCalled": [tool],
        "noToolErrors": true,
        "responseNonEmpty": true,
        "responseNotContains": ["I don't know"],
    });
    json!({"metadata": {"toolName": tool, "tier": "golden"}, "cases": [case]})
}

/// Records the version of the tool that the case is written for, where it can be read; an example will change.
fn stamp(metadata: &mut Value, name: &str, registry: &Path, here: &Path) {
    let Ok(registry) = karat_registry::read_path(registry, here) else {
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
    // With gaps there may be more tools than are known.
    if registry.gaps().is_empty() {
        metadata["registrySize"] = json!(registry.tools().len());
    }
}

/// Creates a file; one that appeared in the meantime is not overwritten.
fn write_new(path: &Path, value: &Value) -> Result<(), Error> {
    let text = format!("{value:#}\n");
    create_file(path, text.as_bytes())
        .map_err(|error| Error::invalid(format!("cannot write {}: {error}", path.display())))
}
