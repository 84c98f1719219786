//! Sets up a project: looks for an agent and its tools, and writes a configuration, a first eval file and lines of
//! `.gitignore`. Asks questions that a terminal, a page or a script can answer. Never overwrites files.

mod discover;
mod files;
mod mcp_file;
mod registry_tools;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use karat_agents::KnownProvider;
use karat_cases::regression::slug;
use karat_core::redact::Redactor;
use karat_json::nearest;
use karat_project::{create_file, replace_file};
use karat_registry::{McpServerConfig, read_path};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::discover::{
    Discovery, FoundAgent, LoopbackProbe, PortProbe, RegistryCandidate, RegistryContent, USUAL_PORTS,
};
use self::files::{FirstEval, RegistryKeys, config, tool_list, with_gitignore_lines};
use self::registry_tools::RegistryTools;
use crate::context::models::check_agent_form;
use crate::error::Error;
use crate::notice::Notices;
use crate::settings::Variables;

const CONFIG_FILE: &str = "karat.json";
/// The tools that a model is offered.
pub const TOOLS_FILE: &str = "tools.json";
const GITIGNORE: &str = ".gitignore";
/// The variable that names the agent.
pub const AGENT_VARIABLE: &str = "KARAT_AGENT_ENDPOINT";

/// The first message to an agent without a tool to test.
const PLAIN_MESSAGE: &str = "What can you do?";
/// Maximum number of messages in the first eval file.
const MAX_MESSAGES: usize = 10;

/// The questions, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// The agent: a URL, a model or a program.
    Agent,
    /// The source of the tools: a path, an MCP configuration or `mcp:…`; empty if there is none.
    Registry,
    /// The first tool to test; empty if there is none.
    Tool,
    /// A message that should make the agent call the tool.
    Message,
    /// Another such message; empty if there is none. Repeated until the answer is empty.
    OtherMessage,
}

/// The next step of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    Ask {
        question: Question,
        /// The proposed answer, if any.
        default: Option<String>,
    },
    /// The source of the tools is a program or a server: [`Init::list_tools`] starts it, [`Command::SkipTools`] does
    /// not.
    ListTools,
    /// All questions are answered: [`Command::Write`] writes the files.
    Write,
    Done(InitOutcome),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Command {
    /// Answers the question of the current step.
    Answer(String),
    /// Continues without the list of tools.
    SkipTools,
    Write,
}

/// The written files and the remaining steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitOutcome {
    pub files: Vec<String>,
    /// Existing files to which lines were added.
    pub updated: Vec<String>,
    /// Files that could not be written, as lower-case fragments.
    pub problems: Vec<String>,
    /// The project's folder, if it is not the current one.
    pub folder: Option<String>,
    /// The agent is a model; stubs answer its calls.
    pub is_model: bool,
    /// Variables that the model's provider or the MCP servers require and that are not set.
    pub variables: Vec<String>,
    /// The project has a tool registry.
    pub has_tools: bool,
    /// The registry is a new [`TOOLS_FILE`], which has to be edited.
    pub has_example_tools: bool,
    /// The tool under test, if any.
    pub tool: Option<String>,
}

pub struct Request<'r> {
    /// The project's folder. Default: the current directory.
    pub folder: Option<&'r Path>,
    pub current_dir: &'r Path,
    /// Ports on which to look for an agent.
    pub ports: &'r [u16],
    /// Look for tools.
    pub find_tools: bool,
}

/// The state of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Init {
    folder: PathBuf,
    /// The current directory: displayed paths are relative to it.
    #[serde(rename = "here")]
    current_dir: PathBuf,
    discovered: Discovery,
    agent: Option<String>,
    /// Empty if there is none.
    registry: Option<String>,
    /// The tools of the registry, once they are listed.
    tools: Option<RegistryTools>,
    /// Empty if there is none.
    tool: Option<String>,
    messages: Vec<String>,
    has_all_messages: bool,
    written: Option<InitOutcome>,
}

impl Init {
    /// Starts a project in a folder without one, and looks for an agent and its tools.
    pub fn begin(request: &Request<'_>, probe: &dyn PortProbe) -> Result<Self, Error> {
        let current_dir = request.current_dir;
        let folder = request.folder.map_or_else(|| current_dir.to_path_buf(), |folder| current_dir.join(folder));
        let mut init = Self {
            folder,
            current_dir: current_dir.to_path_buf(),
            discovered: Discovery::default(),
            agent: None,
            registry: None,
            tools: None,
            tool: None,
            messages: Vec::new(),
            has_all_messages: false,
            written: None,
        };
        init.check_missing(&init.folder.join(CONFIG_FILE))?;
        let agent = Variables::load(&init.folder)?.get(AGENT_VARIABLE);
        init.discovered.agent = agent.filter(|agent| !agent.is_empty());
        if init.discovered.agent.is_none() {
            init.discovered.find_ports(request.ports, probe);
        }
        if request.find_tools {
            init.discovered.find_registries(&init.folder);
        }
        Ok(init)
    }

    /// Recognises the agents that listen on the ports that were found.
    pub async fn recognise_agents(&mut self) {
        self.discovered.recognise_agents().await;
    }

    pub fn discovered(&self) -> &Discovery {
        &self.discovered
    }

    /// Returns the names of the tools to choose from, if known.
    pub fn tool_names(&self) -> Vec<&str> {
        self.tools.as_ref().map(RegistryTools::names).unwrap_or_default()
    }

    /// Returns the messages so far.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    pub fn next(&self) -> Step {
        if let Some(written) = &self.written {
            return Step::Done(written.clone());
        }
        if self.agent.is_none() {
            let Discovery { agent, agents, ports, .. } = &self.discovered;
            let recognised = || agents.first().map(|agent| agent.endpoint.clone());
            let default = agent.clone().or_else(recognised).or_else(|| ports.first().map(|port| agent_url(*port)));
            return Step::Ask { question: Question::Agent, default };
        }
        if self.registry.is_none() {
            let default =
                self.discovered.registries.first().map(|candidate| candidate.path.clone()).unwrap_or_default();
            return Step::Ask { question: Question::Registry, default: Some(default) };
        }
        let Some(tools) = &self.tools else {
            return Step::ListTools;
        };
        let Some(tool) = &self.tool else {
            let preferred = tools.preferred(|name| self.eval_path(name).exists());
            let default = preferred.map(|tool| tool.name.clone()).unwrap_or_default();
            return Step::Ask { question: Question::Tool, default: Some(default) };
        };
        let mut suggested = match tools.find(tool) {
            Some(definition) => definition.trigger_phrases.clone(),
            None if tool.is_empty() => vec![PLAIN_MESSAGE.to_owned()],
            None => Vec::new(),
        };
        if self.messages.is_empty() {
            let default = suggested.into_iter().next();
            return Step::Ask { question: Question::Message, default };
        }
        if !self.has_all_messages {
            // The first message that was not suggested ends the suggestions.
            let is_suggested = self.messages.iter().all(|message| suggested.contains(message));
            suggested.retain(|message| is_suggested && !self.messages.contains(message));
            let default = Some(suggested.into_iter().next().unwrap_or_default());
            return Step::Ask { question: Question::OtherMessage, default };
        }
        Step::Write
    }

    /// Applies a command. After an error, the step is unchanged.
    pub fn apply(&mut self, command: Command) -> Result<(), Error> {
        match (command, self.next()) {
            (Command::Answer(answer), Step::Ask { question, .. }) => self.answer(question, answer.trim()),
            (Command::Answer(_), _) => Err(Error::invalid("there is no question to answer")),
            (Command::SkipTools, Step::ListTools) => {
                self.tools = Some(RegistryTools::default());
                Ok(())
            }
            (Command::SkipTools, _) => Err(Error::invalid("there are no tools to list")),
            (Command::Write, Step::Write) => {
                self.written = Some(self.write()?);
                Ok(())
            }
            (Command::Write, Step::Done(_)) => Err(Error::invalid("the files are already written")),
            (Command::Write, _) => Err(Error::invalid("not all questions are answered yet")),
        }
    }

    /// Starts the chosen MCP servers to list their tools. Reports a server that fails as a gap.
    pub async fn list_tools(&mut self, redactor: &Redactor, notices: &dyn Notices) -> Result<(), Error> {
        let servers = match self.source()? {
            Source::Servers(servers) => servers,
            Source::None | Source::Path => Vec::new(),
        };
        let registry = mcp_file::list(servers, &self.folder, redactor).await?;
        registry.gaps().iter().for_each(|gap| notices.gap(gap));
        self.tools = Some(RegistryTools::from(&registry));
        Ok(())
    }

    /// Returns a path relative to the project, as in `karat.json`, for a path relative to the current directory.
    pub fn project_path(&self, path: &str) -> String {
        if path.is_empty() || path.starts_with("mcp:") {
            return path.to_owned();
        }
        let absolute = self.current_dir.join(path);
        if let Ok(inner) = absolute.strip_prefix(&self.folder) {
            return if inner.as_os_str().is_empty() { ".".to_owned() } else { inner.display().to_string() };
        }
        match self.folder.strip_prefix(&self.current_dir) {
            Ok(below) if below.components().all(|part| matches!(part, Component::Normal(_))) => {
                let up: PathBuf = below.components().map(|_| Component::ParentDir).collect();
                up.join(path).display().to_string()
            }
            _ => absolute.display().to_string(),
        }
    }

    fn answer(&mut self, question: Question, answer: &str) -> Result<(), Error> {
        match question {
            Question::Agent => {
                if answer.is_empty() {
                    return Err(Error::invalid("no agent: expected a URL, PROVIDER:MODEL or command:PROGRAM"));
                }
                provider_of(answer)?;
                check_agent_form(answer, &BTreeMap::new())?;
                self.agent = Some(answer.to_owned());
            }
            Question::Registry => {
                self.tools = self.read_registry(answer)?;
                self.registry = Some(answer.to_owned());
            }
            Question::Tool => {
                self.check_tool(answer)?;
                self.tool = Some(answer.to_owned());
            }
            Question::Message if answer.is_empty() => return Err(Error::invalid("the message is empty")),
            Question::OtherMessage if answer.is_empty() => self.has_all_messages = true,
            Question::Message | Question::OtherMessage => {
                if self.messages.iter().any(|message| message == answer) {
                    return Err(Error::invalid("duplicate message"));
                }
                self.messages.push(answer.to_owned());
                self.has_all_messages = self.messages.len() == MAX_MESSAGES;
            }
        }
        Ok(())
    }

    /// Reads the tools of a registry; `None` if a server has to be started.
    fn read_registry(&self, registry: &str) -> Result<Option<RegistryTools>, Error> {
        match self.source_of(registry)? {
            Source::None => Ok(Some(RegistryTools::default())),
            Source::Servers(_) => Ok(None),
            Source::Path => {
                let tools = read_path(&self.folder.join(registry), &self.current_dir)
                    .map_err(|error| Error::invalid(format!("cannot read tools from {registry}: {error}")))?;
                Ok(Some(RegistryTools::from(&tools)))
            }
        }
    }

    fn source(&self) -> Result<Source, Error> {
        self.source_of(self.registry.as_deref().unwrap_or_default())
    }

    fn source_of(&self, registry: &str) -> Result<Source, Error> {
        if registry.is_empty() {
            return Ok(Source::None);
        }
        if let Some(server) = McpServerConfig::parse_short_form(registry) {
            let server = server.map_err(|error| Error::invalid(format!("invalid MCP server: {error}")))?;
            return Ok(Source::Servers(vec![(registry.to_owned(), server)]));
        }
        let path = self.folder.join(registry);
        let is_json = path.extension().is_some_and(|extension| extension == "json") && path.is_file();
        match if is_json { mcp_file::read(&path)? } else { None } {
            Some(file) if file.servers.is_empty() => {
                Err(Error::invalid(format!("{registry} has no MCP server that karat can use")))
            }
            Some(file) => Ok(Source::Servers(file.servers.into_iter().collect())),
            None => Ok(Source::Path),
        }
    }

    fn check_tool(&self, tool: &str) -> Result<(), Error> {
        let known = self.tools.as_ref().filter(|tools| tools.is_complete && !tools.tools.is_empty());
        if let Some(known) = known.filter(|known| known.find(tool).is_none()) {
            let error = Error::invalid(format!("no tool named '{tool}' in the registry"));
            return Err(match nearest(tool, &known.names()) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error.hint(format!("its tools: {}", known.names().join(", "))),
            });
        }
        if known.is_none() && (tool.contains(['/', '\\']) || tool.starts_with('.')) {
            return Err(Error::invalid(format!("invalid tool name '{tool}'")));
        }
        self.check_missing(&self.eval_path(tool))
    }

    fn check_missing(&self, path: &Path) -> Result<(), Error> {
        if path.exists() {
            return Err(Error::invalid(format!("{} already exists", self.display_path(path)))
                .hint("remove it first, or pass another folder"));
        }
        Ok(())
    }

    fn eval_path(&self, tool: &str) -> PathBuf {
        let name = if tool.is_empty() { "first.json".to_owned() } else { format!("{}.golden.json", slug(tool)) };
        self.folder.join("evals").join(name)
    }

    fn write(&self) -> Result<InitOutcome, Error> {
        let agent = self.agent.as_deref().unwrap_or_default();
        let tool = self.tool.as_deref().filter(|tool| !tool.is_empty());
        let provider = provider_of(agent)?;
        let is_model = provider.is_some();
        let mut variables = provider.map(required_variables).unwrap_or_default();
        let (mut registry, server_variables) = self.registry_keys()?;
        variables.extend(server_variables);
        let known = Variables::load(&self.folder)?;
        variables.retain(|name| known.get(name).is_none());
        let mut files: Vec<(PathBuf, Value)> = Vec::new();
        // A model needs definitions of the tools that it may call.
        let example = tool.filter(|_| is_model && matches!(registry, RegistryKeys::None));
        if let Some(tool) = example {
            files.push((self.folder.join(TOOLS_FILE), tool_list(tool)));
            registry = RegistryKeys::Path(TOOLS_FILE.to_owned());
        }
        let has_tools = !matches!(registry, RegistryKeys::None);
        let eval_path = self.eval_path(tool.unwrap_or_default());
        files.insert(0, (eval_path, self.first_eval(tool, is_model).content()));
        // Written last: only a complete project has a configuration.
        files.push((self.folder.join(CONFIG_FILE), config(agent, registry)));
        files.iter().try_for_each(|(path, _)| self.check_missing(path))?;
        files.iter().try_for_each(|(path, value)| write_new(path, value))?;
        files.rotate_right(1);
        let mut written = InitOutcome {
            files: files.iter().map(|(path, _)| self.display_path(path)).collect(),
            updated: Vec::new(),
            problems: Vec::new(),
            folder: (self.folder != self.current_dir).then(|| self.display_path(&self.folder)),
            is_model,
            variables,
            has_tools,
            has_example_tools: example.is_some(),
            tool: tool.map(str::to_owned),
        };
        self.update_gitignore(&mut written);
        Ok(written)
    }

    fn first_eval<'f>(&'f self, tool: Option<&'f str>, is_model: bool) -> FirstEval<'f> {
        let definition = tool.and_then(|tool| self.tools.as_ref()?.find(tool));
        let complete = self.tools.as_ref().filter(|tools| tools.is_complete);
        let registry_size = complete.map(|tools| tools.tools.len());
        FirstEval { tool, definition, registry_size, messages: &self.messages, is_model }
    }

    /// Returns the registry for the configuration, and the variables that its servers require.
    fn registry_keys(&self) -> Result<(RegistryKeys, Vec<String>), Error> {
        let registry = self.registry.as_deref().unwrap_or_default();
        match self.source()? {
            Source::None => Ok((RegistryKeys::None, Vec::new())),
            Source::Servers(servers) if !registry.starts_with("mcp:") => {
                let (servers, variables) = mcp_file::replace_secrets(&servers.into_iter().collect())
                    .map_err(|error| Error::invalid(format!("cannot write the MCP servers of {registry}: {error}")))?;
                Ok((RegistryKeys::Servers(servers), variables))
            }
            Source::Servers(_) | Source::Path => Ok((RegistryKeys::Path(registry.to_owned()), Vec::new())),
        }
    }

    /// Adds the store and the results to `.gitignore`. The project works without it, so an error is only recorded.
    fn update_gitignore(&self, written: &mut InitOutcome) {
        let path = self.folder.join(GITIGNORE);
        let display_path = self.display_path(&path);
        let existing = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                written.problems.push(format!("cannot read {display_path}: {error}"));
                return;
            }
        };
        let Some(text) = with_gitignore_lines(existing.as_deref().unwrap_or_default()) else {
            return;
        };
        match replace_file(&path, &text) {
            Ok(()) if existing.is_some() => written.updated.push(display_path),
            Ok(()) => written.files.push(display_path),
            Err(error) => written.problems.push(format!("cannot write {display_path}: {error}")),
        }
    }

    fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.current_dir).unwrap_or(path).display().to_string()
    }
}

/// The source of the tools.
enum Source {
    None,
    /// A file or folder.
    Path,
    Servers(Vec<(String, McpServerConfig)>),
}

/// Returns the likely URL of an agent on a port of this machine; the path is a guess.
fn agent_url(port: u16) -> String {
    format!("http://localhost:{port}/chat")
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

fn required_variables(provider: KnownProvider) -> Vec<String> {
    let base = provider.base_url.is_none().then_some(provider.base_url_variable);
    let key = provider.needs_key.then_some(provider.key_variable);
    base.into_iter().chain(key).map(str::to_owned).collect()
}

/// Creates a file; fails if it exists.
fn write_new(path: &Path, value: &Value) -> Result<(), Error> {
    let text = format!("{value:#}\n");
    create_file(path, text.as_bytes()).map_err(|error| Error::cannot_write(&path.display().to_string(), &error))
}
