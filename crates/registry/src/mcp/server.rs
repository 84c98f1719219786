//! A connection to one MCP server.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitStatus;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use karat_cases::registry::{Tool, ToolLocation};
use karat_core::port::{ToolOutcome, ToolUnavailable};
use karat_process::{Command, Process};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities, ClientConfig,
    ClientRequest, Implementation, PaginatedRequestParams, RequestId, ServerResult, ToolAnnotations,
};
use rmcp::service::{ClientInitializeError, Peer, PeerRequestOptions, RunningService, ServiceError, serve_client};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::config::{McpServerConfig, NamedServer};
use super::http::{error_chain, transport};
use super::message_limit::{LimitedMessages, MessageLimit};
use super::outcome::{failure, outcome};

/// How long to wait for the exit status of a server that closed its pipes.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_PAGES: usize = 1000;

/// Maximum length of the arguments of a call in a message. Longer ones are left out, since a part of a secret could not
/// be redacted.
const MAX_SHOWN_ARGUMENTS: usize = 200;

/// A failure of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server '{server}' {problem}")]
pub struct McpError {
    pub server: String,
    pub problem: McpProblem,
}

/// Why a server cannot be used. Each message continues a sentence that begins with the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpProblem {
    #[error("cannot be started: program '{0}' not found")]
    ProgramNotFound(String),
    #[error("cannot be started: folder {0} does not exist")]
    FolderNotFound(String),
    #[error("cannot be started: {0}")]
    StartFailed(String),
    #[error("exited unexpectedly ({status}){}", output_suffix(.stderr))]
    Exited { status: String, stderr: String },
    #[error("did not respond within {limit_ms} ms{}", output_suffix(.output))]
    TimedOut { limit_ms: u128, output: String },
    #[error("sent a message {0}")]
    MessageLimit(MessageLimit),
    #[error("{0}")]
    Other(String),
}

fn output_suffix(text: &str) -> String {
    match text {
        "" => String::new(),
        line if !line.contains('\n') => format!("; output: {line}"),
        lines => format!("; output:\n{lines}"),
    }
}

/// A connected server, which is restarted if it exits.
pub struct McpServer {
    target: NamedServer,
    limit: Duration,
    state: Mutex<State>,
}

enum State {
    Connected(Arc<Connection>),
    /// The restart failed; it is not attempted again for each call.
    Failed(McpError),
}

struct Connection {
    service: RunningService<RoleClient, ClientConfig>,
    /// The process of a stdio server; dropped after the transport.
    process: Option<Process>,
    /// The limit that a message of a stdio server exceeded, which ends the connection.
    exceeded: Arc<OnceLock<MessageLimit>>,
    calls: std::sync::Mutex<OpenCalls>,
}

/// The calls without a response, by number. Those that the end of the connection left without one stay.
#[derive(Default)]
struct OpenCalls {
    next: u64,
    open: BTreeMap<u64, String>,
}

impl McpServer {
    /// Starts or connects to the server and performs the handshake, within a time limit.
    pub async fn connect(target: NamedServer, limit: Duration) -> Result<Self, McpError> {
        let connection = Connection::open(&target, limit).await?;
        Ok(Self { target, limit, state: Mutex::new(State::Connected(Arc::new(connection))) })
    }

    pub fn name(&self) -> &str {
        &self.target.name
    }

    /// Lists the server's tools from all pages, in the server's order.
    pub async fn tools(&self) -> Result<Vec<Tool>, McpError> {
        let connection = self.connection().await?;
        let listing = tokio::time::timeout(self.limit, connection.list());
        let result = match listing.await {
            Ok(Ok(tools)) => {
                Ok(tools.into_iter().map(|tool| Tool { location: Some(self.target.location()), ..tool }).collect())
            }
            Ok(Err(problem)) => Err(problem),
            Err(_) => Err(McpProblem::TimedOut { limit_ms: self.limit.as_millis(), output: connection.stderr() }),
        };
        result.map_err(|problem| self.target.fails(problem))
    }

    /// Calls a tool. An error that the server answers with is an outcome; no answer is an error.
    pub async fn call(&self, tool: &str, arguments: &Map<String, Value>) -> Result<ToolOutcome, ToolUnavailable> {
        let connection = self.connection().await.map_err(|error| ToolUnavailable(error.to_string()))?;
        let call = OpenCall::begin(&connection, tool, arguments);
        match connection.call(tool, arguments).await {
            Ok(result) => Ok(outcome(&result)),
            Err(ServiceError::McpError(error)) => {
                Ok(failure(format!("{} (MCP error {})", error.message, error.code.0)))
            }
            Err(error) => Err(ToolUnavailable(self.call_failure(&connection, call, &error).await)),
        }
    }

    /// Describes why a call got no response. Names all calls that the end of the server left without one, since any of
    /// them may have caused it. They are not repeated: a tool may act twice.
    async fn call_failure(&self, connection: &Connection, call: OpenCall<'_>, error: &ServiceError) -> String {
        let name = &self.target.name;
        if !connection.is_closed() {
            return format!("the call to the MCP server '{name}' failed: {}", error_chain(error));
        }
        let (call, others) = call.lose();
        if let Some(limit) = connection.exceeded.get() {
            return format!("the MCP server '{name}' sent a message {limit} during the call {call}{others}");
        }
        match connection.exit_status().await {
            Some(status) => {
                let output = output_suffix(&connection.stderr());
                format!("the MCP server '{name}' exited during the call {call} ({status}){others}{output}")
            }
            None => format!("the MCP server '{name}' closed the connection during the call {call}{others}"),
        }
    }

    /// Returns the connection, after a reconnect if it was closed.
    async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        // Concurrent callers wait here for the same start.
        let mut state = self.state.lock().await;
        match &*state {
            State::Connected(connection) if !connection.is_closed() => return Ok(Arc::clone(connection)),
            State::Connected(_) => {}
            State::Failed(error) => return Err(error.clone()),
        }
        match Connection::open(&self.target, self.limit).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *state = State::Connected(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                *state = State::Failed(error.clone());
                Err(error)
            }
        }
    }
}

/// Returns the location of a server's tools.
pub fn mcp_location(server: &str) -> ToolLocation {
    // A server without a name is called by its short form, which has the prefix already.
    let source = if server.starts_with("mcp:") { server.to_owned() } else { format!("mcp:{server}") };
    ToolLocation { source, position: None }
}

impl NamedServer {
    fn fails(&self, problem: McpProblem) -> McpError {
        McpError { server: self.name.clone(), problem }
    }

    pub(super) fn location(&self) -> ToolLocation {
        mcp_location(&self.name)
    }
}

impl Connection {
    async fn open(target: &NamedServer, limit: Duration) -> Result<Self, McpError> {
        let opened = match &target.config {
            McpServerConfig::Stdio { command, env, cwd } => {
                let folder = cwd.as_ref().map_or_else(|| target.base.clone(), |cwd| target.base.join(cwd));
                if !folder.is_dir() {
                    return Err(target.fails(McpProblem::FolderNotFound(folder.display().to_string())));
                }
                let (program, arguments) = command.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
                let command = Command { environment: Some(env.clone()), ..Command::new(program, arguments, folder) };
                let (process, stdin, stdout) =
                    command.start().map_err(|error| target.fails(start_failure(program, &error)))?;
                let exceeded = Arc::default();
                let messages = LimitedMessages::new(stdout, Arc::clone(&exceeded));
                let handshake = tokio::time::timeout(limit, serve_client(client_config(), (messages, stdin)));
                match handshake.await {
                    Ok(Ok(service)) => {
                        Ok(Self { service, process: Some(process), exceeded, calls: std::sync::Mutex::default() })
                    }
                    Ok(Err(error)) => Err(match exceeded.get() {
                        Some(limit) => McpProblem::MessageLimit(*limit),
                        None => handshake_failure(&process, &error).await,
                    }),
                    Err(_) => {
                        Err(McpProblem::TimedOut { limit_ms: limit.as_millis(), output: process_output(&process) })
                    }
                }
            }
            McpServerConfig::Http { url, headers } => {
                let transport = transport(url, headers).map_err(|reason| target.fails(McpProblem::Other(reason)))?;
                match tokio::time::timeout(limit, serve_client(client_config(), transport)).await {
                    Ok(Ok(service)) => Ok(Self {
                        service,
                        process: None,
                        exceeded: Arc::default(),
                        calls: std::sync::Mutex::default(),
                    }),
                    Ok(Err(error)) => Err(McpProblem::Other(format!("cannot be reached: {}", handshake_error(&error)))),
                    Err(_) => Err(McpProblem::TimedOut { limit_ms: limit.as_millis(), output: String::new() }),
                }
            }
        };
        opened.map_err(|problem| target.fails(problem))
    }

    async fn list(&self) -> Result<Vec<Tool>, McpProblem> {
        let version =
            self.service.peer_info().and_then(|info| info.server_info.as_ref().map(|info| info.version.clone()));
        let version = version.filter(|version| !version.is_empty());
        let mut tools: Vec<Tool> = Vec::new();
        let mut names = BTreeSet::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let page = match self.service.list_tools(page).await {
                Ok(page) => page,
                Err(error) => return Err(self.listing_failure(&error).await),
            };
            for tool in page.tools {
                if !names.insert(tool.name.to_string()) {
                    return Err(McpProblem::Other(format!("has two tools named '{}'", tool.name)));
                }
                let category = tool.annotations.as_ref().and_then(category);
                tools.push(Tool {
                    category: category.map(str::to_owned).into(),
                    name: tool.name.into_owned(),
                    description: tool.description.map(std::borrow::Cow::into_owned).into(),
                    version: version.clone().into(),
                    input_schema: Some(Value::Object((*tool.input_schema).clone())).into(),
                    ..Tool::default()
                });
            }
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(tools),
            }
        }
        Err(McpProblem::Other(format!("lists its tools on more than {MAX_PAGES} pages")))
    }

    async fn listing_failure(&self, error: &ServiceError) -> McpProblem {
        if let Some(limit) = self.exceeded.get() {
            return McpProblem::MessageLimit(*limit);
        }
        if let (Some(status), true) = (self.exit_status().await, self.is_closed()) {
            return McpProblem::Exited { status: status.to_string(), stderr: self.stderr() };
        }
        McpProblem::Other(format!("cannot list its tools: {}", error_chain(error)))
    }

    /// Calls a tool and returns its raw result. Notifies the server if the future is dropped before that.
    async fn call(&self, tool: &str, arguments: &Map<String, Value>) -> Result<Value, ServiceError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = self.service.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let mut cancel_guard = CancelGuard { peer: self.service.peer().clone(), id: Some(handle.id.clone()) };
        let response = handle.await_response().await;
        cancel_guard.id = None;
        match response? {
            ServerResult::CustomResult(result) => Ok(result.0),
            result => serde_json::to_value(result).map_err(|_| ServiceError::UnexpectedResponse),
        }
    }

    fn is_closed(&self) -> bool {
        self.service.is_transport_closed()
    }

    fn open_calls(&self) -> std::sync::MutexGuard<'_, OpenCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn exit_status(&self) -> Option<ExitStatus> {
        self.process.as_ref()?.exited_within(EXIT_TIMEOUT).await.map(|exit| exit.status)
    }

    fn stderr(&self) -> String {
        self.process.as_ref().map(|process| trim_lines(&process.stderr())).unwrap_or_default()
    }
}

/// A call without a response, which is removed from its connection on drop.
struct OpenCall<'c> {
    connection: &'c Connection,
    number: u64,
}

impl<'c> OpenCall<'c> {
    fn begin(connection: &'c Connection, tool: &str, arguments: &Map<String, Value>) -> Self {
        let mut calls = connection.open_calls();
        let number = calls.next;
        calls.next += 1;
        let text = serde_json::to_string(arguments).unwrap_or_default();
        let text = if text.len() > MAX_SHOWN_ARGUMENTS { "{…}" } else { &text };
        calls.open.insert(number, format!("{tool} {text}"));
        drop(calls);
        Self { connection, number }
    }

    /// Returns the call, and a text with the other calls that the end of the connection left without a response.
    fn lose(self) -> (String, String) {
        let number = self.number;
        let connection = self.connection;
        // The other calls must find this one.
        std::mem::forget(self);
        let calls = connection.open_calls();
        let others: Vec<&str> =
            calls.open.iter().filter(|(other, _)| **other != number).map(|(_, call)| call.as_str()).collect();
        let others = match &others[..] {
            [] => String::new(),
            others => format!("; also without a response: {}", others.join(", ")),
        };
        (calls.open.get(&number).cloned().unwrap_or_default(), others)
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.connection.open_calls().open.remove(&self.number);
    }
}

/// Notifies the server on drop that a request was cancelled.
struct CancelGuard {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("the client cancelled the request".to_owned());
            peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await.ok();
        });
    }
}

/// Returns the category of a tool according to its annotations.
fn category(annotations: &ToolAnnotations) -> Option<&'static str> {
    match (annotations.read_only_hint, annotations.destructive_hint) {
        (Some(true), _) => Some("read"),
        (_, Some(true)) => Some("destructive"),
        (Some(false), _) => Some("write"),
        _ => None,
    }
}

fn client_config() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("karat", env!("CARGO_PKG_VERSION")))
}

fn start_failure(program: &str, error: &std::io::Error) -> McpProblem {
    if error.kind() == std::io::ErrorKind::NotFound {
        return McpProblem::ProgramNotFound(program.to_owned());
    }
    McpProblem::StartFailed(format!("'{program}': {error}"))
}

/// Describes why the handshake failed.
async fn handshake_failure(process: &Process, error: &ClientInitializeError) -> McpProblem {
    if matches!(error, ClientInitializeError::JsonRpcError(_)) {
        return McpProblem::Other(format!("refuses the connection: {}", handshake_error(error)));
    }
    if let Some(exit) = process.exited_within(EXIT_TIMEOUT).await {
        return McpProblem::Exited { status: exit.status.to_string(), stderr: process_output(process) };
    }
    let output = output_suffix(&process_output(process));
    McpProblem::Other(format!("does not speak MCP: {}{output}", handshake_error(error)))
}

/// Returns what a server printed before the handshake.
fn process_output(process: &Process) -> String {
    let (stderr, stdout) = (trim_lines(&process.stderr()), trim_lines(&process.stdout_head()));
    if stderr.is_empty() { stdout } else { stderr }
}

/// Trims the lines of a server's output, including carriage returns.
fn trim_lines(output: &str) -> String {
    output.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn handshake_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => format!("{} (MCP error {})", error.message, error.code.0),
        ClientInitializeError::TransportError { error, .. } => error_chain(error.error.as_ref()),
        other => error_chain(other),
    }
}
