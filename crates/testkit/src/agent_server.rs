//! Agents of many products, with a scripted model in place of a real one: `examples/agents`. Those of products that are
//! too big to install, or need a key, are stand-ins.
//!
//! All of them answer the same messages:
//!
//! | message | behaviour |
//! |---|---|
//! | contains `hello` | answers `Hello! How can I help?`; `Slow hello N` is answered by itself after 50 ms |
//! | `Where is order N?` | calls `get_order` |
//! | `Cancel order N and check the weather in Paris.` | calls `cancel_order` and `get_weather` in parallel |
//! | `Order N and the weather in Oslo?` | calls `get_order`, then `get_weather`, which fails |
//! | `Remember the number N.`, `Which number?` | the second is answered from the conversation |
//! | `Delete account N.` | asks for approval, if the product can |
//! | `Fail now` | the model fails |

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

use crate::tools::{BackgroundServer, TestTool};

/// A product whose server can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentProduct {
    A2a,
    A2aAdk,
    Adk,
    AgUi,
    AiSdk,
    Chat,
    Dify,
    Flowise,
    Langgraph,
    Langserve,
    Mastra,
    Messages,
    N8n,
    OtelAgent,
    OwnApi,
    Rasa,
    Responses,
    SessionPoll,
    TanstackAi,
}

/// How to start a server.
struct Launch {
    program: Vec<OsString>,
    /// The folder in `examples/agents` in which it runs.
    example: &'static str,
    /// The path that responds when the server is ready.
    ready: &'static str,
    variables: &'static [(&'static str, &'static str)],
}

/// A running server. It stops when this is dropped.
#[derive(Debug)]
pub struct AgentServer {
    server: BackgroundServer,
    /// Copies of the examples, in which the server may write.
    _folder: TempDir,
}

type SharedServers = Mutex<BTreeMap<AgentProduct, Arc<Mutex<Weak<AgentServer>>>>>;

impl AgentServer {
    /// Returns the server that tests share while one of them uses it, because most take seconds to start.
    pub fn shared(product: AgentProduct) -> Arc<Self> {
        static SHARED: LazyLock<SharedServers> = LazyLock::new(SharedServers::default);
        let shared = Arc::clone(SHARED.lock().unwrap_or_else(PoisonError::into_inner).entry(product).or_default());
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start(product));
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// Starts a server on a free port.
    pub fn start(product: AgentProduct) -> Self {
        Self::start_with(product, &[])
    }

    /// Starts a server on a free port, with more environment variables.
    pub fn start_with(product: AgentProduct, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let launch = product.launch();
        copy_examples(&repository().join("examples/agents"), folder.path());
        let current_dir = folder.path().join(launch.example);
        if product.needs_packages() {
            let packages = TestTool::AgentPackages.command().remove(0);
            std::os::unix::fs::symlink(packages, current_dir.join("node_modules")).expect("link the packages");
        }
        let command = |port: u16| {
            let port = port.to_string();
            let mut command = Command::new(&launch.program[0]);
            for argument in &launch.program[1..] {
                command.arg(if argument == "PORT" { OsStr::new(&port) } else { argument.as_os_str() });
            }
            command.current_dir(&current_dir).env("HOME", folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
            command.envs(launch.variables.iter().chain(variables).copied());
            command
        };
        let server = BackgroundServer::start(command, launch.ready);
        Self { server, _folder: folder }
    }

    /// Returns the URL of a path that starts with `/`.
    pub fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// Returns `karat.json` of an example, with the URL of this server.
    pub fn config(&self, example: &str) -> Value {
        let text = read_example(&format!("{example}/karat.json"));
        let base = Regex::new(r"http://127\.0\.0\.1:\d+").expect("valid regular expression");
        serde_json::from_str(&base.replace_all(&text, self.url(""))).expect("valid JSON")
    }

    /// Returns the output of the server so far.
    pub fn log(&self) -> String {
        self.server.log()
    }
}

impl AgentProduct {
    fn launch(self) -> Launch {
        match self {
            Self::A2a => Launch::python(TestTool::GoogleAgents, "agent.py", "a2a", "/.well-known/agent-card.json"),
            Self::A2aAdk => {
                Launch::python(TestTool::GoogleAgents, "server.py", "a2a-adk", "/.well-known/agent-card.json")
            }
            Self::Adk => Launch {
                program: program(TestTool::Adk, &["api_server", "--no_use_local_storage", "--port", "PORT", "."]),
                example: "adk",
                ready: "/health",
                variables: &[],
            },
            Self::AgUi => Launch::node("ag-ui", "/"),
            Self::AiSdk => Launch::node("ai-sdk", "/"),
            Self::Chat => Launch::plain_python("chat", "/v1/models"),
            Self::Dify => Launch::plain_python("dify", "/v1/info"),
            Self::Flowise => Launch::plain_python("flowise", "/api/v1/ping"),
            Self::Langgraph => Launch {
                program: program(
                    TestTool::Langgraph,
                    &["dev", "--no-browser", "--no-reload", "--n-jobs-per-worker", "10", "--port", "PORT"],
                ),
                example: "langgraph",
                ready: "/ok",
                variables: &[
                    ("LANGGRAPH_CLI_NO_ANALYTICS", "1"),
                    ("LANGSMITH_TRACING", "false"),
                    ("LANGGRAPH_DISABLE_FILE_PERSISTENCE", "true"),
                ],
            },
            Self::Langserve => Launch {
                variables: &[("LANGSMITH_TRACING", "false")],
                ..Launch::python(TestTool::Langserve, "server.py", "langserve", "/docs")
            },
            Self::Mastra => Launch::node("mastra", "/api/agents"),
            Self::Messages => Launch::plain_python("messages", "/v1/models"),
            Self::N8n => Launch::plain_python("n8n", "/healthz"),
            Self::OtelAgent => Launch::python(TestTool::OpenTelemetry, "agent.py", "otel-agent", "/health"),
            Self::OwnApi => Launch::plain_python("own-api", "/health"),
            Self::Rasa => Launch::plain_python("rasa", "/"),
            Self::Responses => Launch::plain_python("responses", "/v1/models"),
            Self::SessionPoll => Launch::plain_python("session-poll", "/health"),
            Self::TanstackAi => Launch::node("tanstack-ai", "/"),
        }
    }

    fn needs_packages(self) -> bool {
        matches!(self, Self::AgUi | Self::AiSdk | Self::Mastra | Self::TanstackAi)
    }
}

impl Launch {
    fn python(tool: TestTool, script: &str, example: &'static str, ready: &'static str) -> Self {
        Self { program: program(tool, &[script, "PORT"]), example, ready, variables: &[] }
    }

    /// An agent without packages.
    fn plain_python(example: &'static str, ready: &'static str) -> Self {
        let program = ["python3", "server.py", "PORT"].map(OsString::from).to_vec();
        Self { program, example, ready, variables: &[] }
    }

    fn node(example: &'static str, ready: &'static str) -> Self {
        let program = program(TestTool::NodeToolLibraries, &["agent.mjs", "PORT"]);
        Self { program, example, ready, variables: &[] }
    }
}

/// Returns a file of `examples/agents`.
pub fn read_example(path: &str) -> String {
    let path = repository().join("examples/agents").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn program(tool: TestTool, arguments: &[&str]) -> Vec<OsString> {
    tool.command().into_iter().map(OsString::from).chain(arguments.iter().map(OsString::from)).collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is in a workspace").to_path_buf()
}

/// Copies files and folders, but not what a user has installed in them.
fn copy_examples(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("create a folder");
    for entry in fs::read_dir(from).expect("read a folder") {
        let path = entry.expect("read a folder").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        if name.starts_with('.') || name == "node_modules" {
            continue;
        }
        if path.is_dir() {
            copy_examples(&path, &to.join(&*name));
        } else {
            fs::copy(&path, to.join(&*name)).expect("copy a file");
        }
    }
}
