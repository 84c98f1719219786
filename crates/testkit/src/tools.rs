//! Third-party programs, which `scripts/test` installs in `target/test-tools`.
//!
//! `KARAT_TEST_TOOLS` sets another folder. Tests that need a program are marked as ignored and fail if it is missing.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

/// A third-party program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestTool {
    /// An MCP server with all protocol features.
    ServerEverything,
    /// An MCP server that reads and writes files in given folders.
    ServerFilesystem,
    /// An MCP server that stores a knowledge graph.
    ServerMemory,
    /// An MCP server with one tool that has a long description.
    ServerSequentialThinking,
    /// Python with the libraries that turn functions into tools.
    ToolLibraries,
    /// Node with TypeScript support, in a package folder with the tool libraries and zod 4.
    NodeToolLibraries,
    /// A package folder with the tool libraries and zod 3.
    Zod3Libraries,
    /// Python with Arrow.
    Pyarrow,
    /// Python with the OpenTelemetry SDK and exporter.
    OpenTelemetry,
    /// Node and a package folder with the OpenTelemetry SDK for JavaScript.
    OpenTelemetryJs,
    /// A proxy that implements the chat protocols of many providers, with mock models.
    Litellm,
    /// The development server of `LangGraph`.
    Langgraph,
    /// Python with `LangServe`.
    Langserve,
    /// Python with the A2A SDK and Google's Agent Development Kit.
    GoogleAgents,
    /// The command of Google's Agent Development Kit.
    Adk,
    /// A package folder with the JavaScript libraries of `examples/agents`.
    AgentPackages,
}

impl TestTool {
    /// Returns the command that starts the program. Panics if it is missing.
    pub fn command(self) -> Vec<String> {
        let (name, program, path) = match self {
            Self::ServerEverything => (
                "@modelcontextprotocol/server-everything",
                Some("node"),
                "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js",
            ),
            Self::ServerFilesystem => (
                "@modelcontextprotocol/server-filesystem",
                Some("node"),
                "npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js",
            ),
            Self::ServerMemory => (
                "@modelcontextprotocol/server-memory",
                Some("node"),
                "npm/node_modules/@modelcontextprotocol/server-memory/dist/index.js",
            ),
            Self::ServerSequentialThinking => (
                "@modelcontextprotocol/server-sequential-thinking",
                Some("node"),
                "npm/node_modules/@modelcontextprotocol/server-sequential-thinking/dist/index.js",
            ),
            Self::ToolLibraries => ("the Python tool libraries", None, "tool-libraries/bin/python"),
            Self::NodeToolLibraries => {
                ("the Node tool libraries", None, "tool-libraries-js/node_modules/node/bin/node")
            }
            Self::Zod3Libraries => ("the tool libraries with zod 3", None, "tool-libraries-zod3/node_modules"),
            Self::Pyarrow => ("pyarrow", None, "arrow/bin/python"),
            Self::OpenTelemetry => ("opentelemetry-sdk", None, "opentelemetry/bin/python"),
            Self::OpenTelemetryJs => ("@opentelemetry/sdk-trace", Some("node"), "opentelemetry-js/node_modules"),
            Self::Litellm => ("litellm[proxy]", None, "python/bin/litellm"),
            Self::Langgraph => ("langgraph", None, "agents-langgraph/bin/langgraph"),
            Self::Langserve => ("langserve", None, "agents-langserve/bin/python"),
            Self::GoogleAgents => ("google-adk", None, "agents-google/bin/python"),
            Self::Adk => ("google-adk", None, "agents-google/bin/adk"),
            Self::AgentPackages => ("the JavaScript libraries of agents", None, "agents-js/node_modules"),
        };
        let path = folder().join(path);
        assert!(path.exists(), "{name} is missing at {}: run scripts/test-tools", path.display());
        let path = path.to_string_lossy().into_owned();
        program.into_iter().map(str::to_owned).chain([path]).collect()
    }
}

fn folder() -> PathBuf {
    let target = || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(|root| root.join("target/test-tools"));
    let configured = std::env::var_os("KARAT_TEST_TOOLS").filter(|path| !path.is_empty()).map(PathBuf::from);
    configured.or_else(target).expect("the crate is in a workspace")
}

/// Runs a program and kills it with all its children when standard input closes, so also when the test process dies.
const GUARD_SCRIPT: &str = r#"("$@" </dev/null; kill -KILL 0) & cat >/dev/null; kill -KILL 0"#;

const STARTUP_TIMEOUT: Duration = Duration::from_mins(3);

/// A server that runs in the background on a free port.
#[derive(Debug)]
pub struct BackgroundServer {
    /// Closing its standard input stops the server.
    guard: Child,
    port: u16,
    log: NamedTempFile,
}

impl BackgroundServer {
    /// Starts the command for a free port, with only the environment that the command sets, and waits until it responds
    /// at this path.
    pub fn start(command: impl Fn(u16) -> Command, path: &str) -> Self {
        // Another process may take the port in the meantime.
        let mut log = String::new();
        for _ in 0..3 {
            let port = free_port();
            let mut server = Self::spawn(&command(port), port);
            if server.wait_until_ready(path) {
                return server;
            }
            log = server.log();
        }
        panic!("the server did not start:\n{log}");
    }

    fn spawn(command: &Command, port: u16) -> Self {
        let log = NamedTempFile::new().expect("create a temporary file");
        let output = || Stdio::from(log.as_file().try_clone().expect("clone a file handle"));
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD_SCRIPT, "sh"]).arg(command.get_program()).args(command.get_args());
        guard.env_clear().stdin(Stdio::piped()).stdout(output()).stderr(output());
        guard.envs(["PATH", "HOME"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        guard.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = command.get_current_dir() {
            guard.current_dir(folder);
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut guard, 0);
        Self { guard: guard.spawn().expect("start a shell"), port, log }
    }

    /// Waits until the server responds. Returns false if it exited.
    fn wait_until_ready(&mut self, path: &str) -> bool {
        let deadline = Instant::now() + STARTUP_TIMEOUT;
        while Instant::now() < deadline {
            if self.guard.try_wait().expect("query a child process").is_some() {
                return false;
            }
            // Any response will do.
            if self.request(path).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no response from {} within {STARTUP_TIMEOUT:?}\n{}", self.url(path), self.log());
    }

    fn request(&self, path: &str) -> io::Result<()> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(socket, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
        socket.read_exact(&mut [0])
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of a path that starts with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the output of the server so far.
    pub fn log(&self) -> String {
        let mut text = Vec::new();
        let read = File::open(self.log.path()).and_then(|mut file| file.read_to_end(&mut text));
        read.expect("read a temporary file");
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Drop for BackgroundServer {
    fn drop(&mut self) {
        // The guard kills the whole process group, including itself.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Returns a port that is free at the moment.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind a free port");
    listener.local_addr().expect("local address").port()
}
