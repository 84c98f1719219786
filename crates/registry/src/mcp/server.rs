//! A connection to one MCP server.

use std::collections::BTreeSet;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use karat_core::port::ToolOutcome;
use karat_core::registry::{Tool, ToolPlace};
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
use super::http::{causes, transport};
use super::outcome::{failure, outcome};

/// How long a server that closed its pipes may take to end.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// More pages than this are no list.
const MOST_PAGES: usize = 1000;

/// What is wrong with a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server '{server}' {problem}")]
pub struct McpError {
    pub server: String,
    pub problem: McpProblem,
}

/// Why a server is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpProblem {
    #[error("cannot be started: there is no program '{0}'")]
    NoProgram(String),
    #[error("cannot be started in {0}: there is no such folder")]
    NoFolder(String),
    #[error("cannot be started: {0}")]
    NotStarted(String),
    #[error("ended at once ({status}){}", and_said(.stderr))]
    Ended { status: String, stderr: String },
    #[error("did not answer within {limit_ms} ms{}", and_said(.said))]
    Silent { limit_ms: u128, said: String },
    /// The rest of a sentence that begins with the server.
    #[error("{0}")]
    Other(String),
}

fn and_said(text: &str) -> String {
    match text {
        "" => String::new(),
        line if !line.contains('\n') => format!("; it said: {line}"),
        lines => format!("; it said:\n{lines}"),
    }
}

/// A server that is connected, and is started once more when it ended.
pub struct McpServer {
    target: NamedServer,
    limit: Duration,
    state: Mutex<State>,
}

enum State {
    Connected(Arc<Connection>),
    /// It ended and could not be started again; that is not tried for every call.
    Lost(McpError),
}

struct Connection {
    service: RunningService<RoleClient, ClientConfig>,
    /// Of a server that talks over stdio; dropped after the wire to it.
    process: Option<Process>,
}

impl McpServer {
    /// Starts or calls the server and shakes hands, within a time limit.
    pub async fn connect(target: NamedServer, limit: Duration) -> Result<Self, McpError> {
        let connection = Connection::open(&target, limit).await?;
        Ok(Self { target, limit, state: Mutex::new(State::Connected(Arc::new(connection))) })
    }

    pub fn name(&self) -> &str {
        &self.target.name
    }

    /// Lists the server's tools, in its order, over all pages.
    pub async fn tools(&self) -> Result<Vec<Tool>, McpError> {
        let connection = self.connection().await?;
        let listing = tokio::time::timeout(self.limit, connection.list());
        let listed = match listing.await {
            Ok(Ok(tools)) => {
                Ok(tools.into_iter().map(|tool| Tool { place: Some(self.target.place()), ..tool }).collect())
            }
            Ok(Err(problem)) => Err(problem),
            Err(_) => Err(McpProblem::Silent { limit_ms: self.limit.as_millis(), said: connection.stderr() }),
        };
        listed.map_err(|problem| self.target.fails(problem))
    }

    /// Calls a tool; whatever goes wrong is an outcome.
    pub async fn call(&self, tool: &str, arguments: &Map<String, Value>) -> ToolOutcome {
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(error) => return failure(error.to_string()),
        };
        match connection.call(tool, arguments).await {
            Ok(result) => outcome(&result),
            Err(ServiceError::McpError(error)) => failure(format!("{} (MCP error {})", error.message, error.code.0)),
            Err(error) => failure(self.lost(&connection, &error).await),
        }
    }

    /// Says what became of a server that did not answer a call.
    async fn lost(&self, connection: &Connection, error: &ServiceError) -> String {
        let name = &self.target.name;
        if !connection.is_closed() {
            return format!("the MCP server '{name}' could not be asked: {}", causes(error));
        }
        match connection.ended().await {
            Some(status) => {
                format!("the MCP server '{name}' ended during the call ({status}){}", and_said(&connection.stderr()))
            }
            None => format!("the MCP server '{name}' closed the connection during the call"),
        }
    }

    /// Returns the connection, made anew when it was closed.
    async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        // Callers that come while the server is being started wait here for the same start.
        let mut state = self.state.lock().await;
        match &*state {
            State::Connected(connection) if !connection.is_closed() => return Ok(Arc::clone(connection)),
            State::Connected(_) => {}
            State::Lost(error) => return Err(error.clone()),
        }
        match Connection::open(&self.target, self.limit).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *state = State::Connected(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                *state = State::Lost(error.clone());
                Err(error)
            }
        }
    }
}

/// Returns where the tools of a server are said to be read.
pub fn mcp_place(server: &str) -> ToolPlace {
    // A server without a name is called as the settings name it, which begins like this.
    let source = if server.starts_with("mcp:") { server.to_owned() } else { format!("mcp:{server}") };
    ToolPlace { source, position: None }
}

impl NamedServer {
    fn fails(&self, problem: McpProblem) -> McpError {
        McpError { server: self.name.clone(), problem }
    }

    /// Returns where the server's tools are said to be read.
    pub(super) fn place(&self) -> ToolPlace {
        mcp_place(&self.name)
    }
}

impl Connection {
    async fn open(target: &NamedServer, limit: Duration) -> Result<Self, McpError> {
        let opened = match &target.config {
            McpServerConfig::Stdio { command, env, cwd } => {
                let folder = cwd.as_ref().map_or_else(|| target.base.clone(), |cwd| target.base.join(cwd));
                if !folder.is_dir() {
                    return Err(target.fails(McpProblem::NoFolder(folder.display().to_string())));
                }
                let (program, arguments) = command.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
                let command = Command { environment: Some(env.clone()), ..Command::new(program, arguments, folder) };
                let (process, stdin, stdout) =
                    command.start().map_err(|error| target.fails(not_started(program, &error)))?;
                let shaking = tokio::time::timeout(limit, serve_client(introduction(), (stdout, stdin)));
                match shaking.await {
                    Ok(Ok(service)) => Ok(Self { service, process: Some(process) }),
                    Ok(Err(error)) => Err(refused(&process, &error).await),
                    Err(_) => Err(McpProblem::Silent { limit_ms: limit.as_millis(), said: said(&process) }),
                }
            }
            McpServerConfig::Http { url, headers } => {
                let wire = transport(url, headers).map_err(|reason| target.fails(McpProblem::Other(reason)))?;
                match tokio::time::timeout(limit, serve_client(introduction(), wire)).await {
                    Ok(Ok(service)) => Ok(Self { service, process: None }),
                    Ok(Err(error)) => Err(McpProblem::Other(format!("cannot be reached: {}", handshake(&error)))),
                    Err(_) => Err(McpProblem::Silent { limit_ms: limit.as_millis(), said: String::new() }),
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
        for _ in 0..MOST_PAGES {
            let page = cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let listed = self.service.list_tools(page).await;
            let page = match listed {
                Ok(page) => page,
                Err(error) => return Err(self.not_listed(&error).await),
            };
            for tool in page.tools {
                if !names.insert(tool.name.to_string()) {
                    return Err(McpProblem::Other(format!("has two tools of the name '{}'", tool.name)));
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
        Err(McpProblem::Other(format!("lists its tools on more than {MOST_PAGES} pages")))
    }

    async fn not_listed(&self, error: &ServiceError) -> McpProblem {
        if let (Some(status), true) = (self.ended().await, self.is_closed()) {
            return McpProblem::Ended { status: status.to_string(), stderr: self.stderr() };
        }
        McpProblem::Other(format!("does not list its tools: {}", causes(error)))
    }

    /// Calls a tool and returns its result as it came; dropped before that, the server is told.
    async fn call(&self, tool: &str, arguments: &Map<String, Value>) -> Result<Value, ServiceError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = self.service.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let mut abandoned = Abandoned { peer: self.service.peer().clone(), id: Some(handle.id.clone()) };
        let answered = handle.await_response().await;
        abandoned.id = None;
        match answered? {
            ServerResult::CustomResult(result) => Ok(result.0),
            result => serde_json::to_value(result).map_err(|_| ServiceError::UnexpectedResponse),
        }
    }

    fn is_closed(&self) -> bool {
        self.service.is_transport_closed()
    }

    async fn ended(&self) -> Option<ExitStatus> {
        self.process.as_ref()?.exited_within(END_PATIENCE).await.map(|exit| exit.status)
    }

    fn stderr(&self) -> String {
        self.process.as_ref().map(|process| tidy(&process.stderr())).unwrap_or_default()
    }
}

/// Tells the server, when it is dropped, that nobody waits for an answer any more.
struct Abandoned {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("nobody waits for the answer any more".to_owned());
            peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await.ok();
        });
    }
}

/// Returns what kind of tool it is, as far as its server says so.
fn category(annotations: &ToolAnnotations) -> Option<&'static str> {
    match (annotations.read_only_hint, annotations.destructive_hint) {
        (Some(true), _) => Some("read"),
        (_, Some(true)) => Some("destructive"),
        (Some(false), _) => Some("write"),
        _ => None,
    }
}

fn introduction() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("karat", env!("CARGO_PKG_VERSION")))
}

fn not_started(program: &str, error: &std::io::Error) -> McpProblem {
    if error.kind() == std::io::ErrorKind::NotFound {
        return McpProblem::NoProgram(program.to_owned());
    }
    McpProblem::NotStarted(format!("'{program}': {error}"))
}

/// Says why there was no handshake: mostly that the server is not there any more.
async fn refused(process: &Process, error: &ClientInitializeError) -> McpProblem {
    if matches!(error, ClientInitializeError::JsonRpcError(_)) {
        return McpProblem::Other(format!("refuses the connection: {}", handshake(error)));
    }
    match process.exited_within(END_PATIENCE).await {
        Some(exit) => McpProblem::Ended { status: exit.status.to_string(), stderr: said(process) },
        None => McpProblem::Other(format!("does not speak MCP: {}{}", handshake(error), and_said(&said(process)))),
    }
}

/// Returns what a server that shook no hands said.
fn said(process: &Process) -> String {
    let (stderr, stdout) = (tidy(&process.stderr()), tidy(&process.stdout_head()));
    if stderr.is_empty() { stdout } else { stderr }
}

/// Drops what surrounds the lines of a server's output, as carriage returns.
fn tidy(output: &str) -> String {
    output.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn handshake(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => format!("{} (MCP error {})", error.message, error.code.0),
        ClientInitializeError::TransportError { error, .. } => causes(error.error.as_ref()),
        other => causes(other),
    }
}
