//! Programs that nobody here wrote, which `scripts/test` sets up below `target/test-tools`.
//!
//! `KARAT_TEST_TOOLS` names another folder. The tests that need a program are marked as ignored; they fail where it is
//! missing.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

/// A program of another project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestTool {
    /// An MCP server that has one of everything.
    ServerEverything,
    /// An MCP server that reads and writes files below the folders it is given.
    ServerFilesystem,
    /// An MCP server that keeps a graph of what it is told.
    ServerMemory,
    /// An MCP server with one tool, which has a long description.
    ServerSequentialThinking,
    /// A Python with the libraries that make tools of functions.
    ToolLibraries,
    /// A Node that runs TypeScript, in the folder of packages with the libraries that make tools, and with zod 4.
    NodeToolLibraries,
    /// The folder of packages with what makes tools of zod 3.
    Zod3Libraries,
    /// A Python with Arrow, as data engines have it.
    Pyarrow,
    /// A Python with OpenTelemetry's SDK and its exporter, as agents have it.
    OpenTelemetry,
    /// Node, and the folder of packages in which OpenTelemetry's SDK for JavaScript is.
    OpenTelemetryJs,
    /// A proxy that speaks the chat protocols of many providers, with models that only pretend.
    Litellm,
}

impl TestTool {
    /// Returns the command that starts the program. Panics where it is missing.
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
        };
        let path = folder().join(path);
        assert!(path.exists(), "{name} is missing at {}: run scripts/test-tools", path.display());
        let path = path.to_string_lossy().into_owned();
        program.into_iter().map(str::to_owned).chain([path]).collect()
    }
}

fn folder() -> PathBuf {
    let target = || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(|root| root.join("target/test-tools"));
    let named = std::env::var_os("KARAT_TEST_TOOLS").filter(|named| !named.is_empty()).map(PathBuf::from);
    named.or_else(target).expect("this crate lies in a workspace")
}

/// Runs a program and ends it with all its children: when this is dropped, or when the test process ends in any way.
const GUARD: &str = r#"("$@" </dev/null; kill -KILL 0) & cat >/dev/null; kill -KILL 0"#;

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_mins(3);

/// A server that runs in the background on a port of its own.
#[derive(Debug)]
pub struct BackgroundServer {
    /// Its input stays open as long as the server shall run.
    guard: Child,
    port: u16,
    log: NamedTempFile,
}

impl BackgroundServer {
    /// Starts what `command` returns for a free port, with nothing in its environment but what the command sets, and
    /// waits until it answers at this path.
    pub fn start(command: impl Fn(u16) -> Command, path: &str) -> Self {
        // Somebody else may take the port in the meantime.
        let mut said = String::new();
        for _ in 0..3 {
            let port = free_port();
            let mut server = Self::spawn(&command(port), port);
            if server.answers(path) {
                return server;
            }
            said = server.log();
        }
        panic!("the server did not start:\n{said}");
    }

    fn spawn(command: &Command, port: u16) -> Self {
        let log = NamedTempFile::new().expect("a test machine has a temporary folder that can be written");
        let output = || Stdio::from(log.as_file().try_clone().expect("an open file can be shared"));
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "sh"]).arg(command.get_program()).args(command.get_args());
        guard.env_clear().stdin(Stdio::piped()).stdout(output()).stderr(output());
        guard.envs(["PATH", "HOME"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        guard.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = command.get_current_dir() {
            guard.current_dir(folder);
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut guard, 0);
        Self { guard: guard.spawn().expect("a shell can be started"), port, log }
    }

    /// Waits until the server answers; false when it ended instead.
    fn answers(&mut self, path: &str) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if self.guard.try_wait().expect("the state of a child can be asked for").is_some() {
                return false;
            }
            // Whatever it answers, it is there.
            if self.ask(path).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no answer at {} within {PATIENCE:?}\n{}", self.url(path), self.log());
    }

    fn ask(&self, path: &str) -> io::Result<()> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(socket, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
        socket.read_exact(&mut [0])
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address of a path that begins with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns what the server wrote so far.
    pub fn log(&self) -> String {
        let mut text = Vec::new();
        let read = File::open(self.log.path()).and_then(|mut file| file.read_to_end(&mut text));
        read.expect("a temporary file can be read");
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Drop for BackgroundServer {
    fn drop(&mut self) {
        // The guard ends the whole group, itself with it.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a test machine has free ports");
    listener.local_addr().expect("a bound socket has an address").port()
}
