//! litellm's proxy as a provider of models that only pretend.
//!
//! | model | answers |
//! |---|---|
//! | `says-hello` | with a text |
//! | `calls-echo` | with one call of `echo`, whatever it was told before |
//! | `calls-two` | with two calls at once, `get-sum` and `echo` |
//! | `calls-badly` | with a call whose arguments are no JSON |
//! | `obeys` | to `NAME {…}` with that call, then with what the tool said |
//! | `is-limited` | always HTTP 429 |
//! | `is-broken` | always HTTP 500 |
//!
//! The mocked ones name `stop` as the reason of their end, also beside calls; `obeys` names the right one.

use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tools::{BackgroundServer, TestTool};

/// The key that the proxy asks for; it refuses to start without one, and with one that is easy to guess.
pub const KEY: &str = "sk-karat-tests-0123456789abcdef";

/// The proxy, which runs as long as this is there.
#[derive(Debug)]
pub struct Litellm {
    server: BackgroundServer,
    /// Where it reads its configuration, and writes what it likes.
    _home: TempDir,
}

impl Litellm {
    /// Returns the proxy that all tests of this process share, since it takes ten seconds to start. It ends with the
    /// process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Litellm> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Starts a proxy of one's own on a free port.
    pub fn start() -> Self {
        let program = TestTool::Litellm.command().remove(0);
        let home = tempfile::tempdir().expect("a test machine has a temporary folder that can be written");
        let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("can be written");
        // JSON is YAML too.
        write("config.yaml", &configuration().to_string());
        write("models.py", include_str!("litellm_models.py"));
        let command = |port: u16| {
            let mut command = Command::new(&program);
            command.args(["--config", "config.yaml", "--host", "127.0.0.1", "--telemetry", "False"]);
            command.args(["--port", &port.to_string()]).current_dir(home.path()).env("HOME", home.path());
            // It fetches lists from the network at its start unless it is told to use its own.
            for name in ["MODEL_COST_MAP", "BLOG_POSTS", "ANTHROPIC_BETA_HEADERS", "POLICY_TEMPLATES"] {
                command.env(format!("LITELLM_LOCAL_{name}"), "True");
            }
            command.env("LITELLM_TELEMETRY", "False").env("LITELLM_LOG", "ERROR").env("DISABLE_ADMIN_UI", "True");
            command
        };
        let server = BackgroundServer::start(command, "/health/liveliness");
        Self { server, _home: home }
    }

    /// Returns the base that `OPENAI_BASE_URL` takes: with `/v1`.
    pub fn openai_base(&self) -> String {
        self.server.url("/v1")
    }

    /// Returns the base that `ANTHROPIC_BASE_URL` takes: without `/v1`.
    pub fn anthropic_base(&self) -> String {
        self.server.url("")
    }

    /// Returns what the proxy wrote so far.
    pub fn log(&self) -> String {
        self.server.log()
    }
}

fn configuration() -> Value {
    let mock = |name: &str, response: &str, calls: Value| {
        let mut parameters = json!({"model": format!("openai/{name}"), "api_key": "none", "mock_response": response});
        if calls.is_array() {
            parameters["mock_tool_calls"] = calls;
        }
        json!({"model_name": name, "litellm_params": parameters})
    };
    let call = |number: u32, name: &str, arguments: &str| json!({"id": format!("call_{number}"), "type": "function", "function": {"name": name, "arguments": arguments}});
    let sum = call(1, "get-sum", r#"{"a": 2, "b": 3}"#);
    let echo = |number: u32| call(number, "echo", r#"{"message": "hi"}"#);
    json!({
        "model_list": [
            mock("says-hello", "Hello from litellm.", Value::Null),
            mock("calls-echo", "", json!([echo(1)])),
            mock("calls-two", "", json!([sum, echo(2)])),
            mock("calls-badly", "", json!([call(1, "echo", "{\"message\": ")])),
            {"model_name": "obeys", "litellm_params": {"model": "karat/obeys"}},
            mock("is-limited", "litellm.RateLimitError", Value::Null),
            mock("is-broken", "litellm.InternalServerError", Value::Null),
        ],
        "general_settings": {"master_key": KEY},
        // A failure is told at once: whoever asks does the retries.
        "router_settings": {"num_retries": 0, "disable_cooldowns": true},
        "litellm_settings": {
            "num_retries": 0,
            "telemetry": false,
            "custom_provider_map": [{"provider": "karat", "custom_handler": "models.obedient"}],
        },
    })
}
