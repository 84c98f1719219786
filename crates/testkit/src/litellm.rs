//! The litellm proxy as a provider of mock models.
//!
//! | model | reply |
//! |---|---|
//! | `says-hello` | a text reply |
//! | `calls-echo` | one call of `echo`, regardless of the conversation |
//! | `calls-two` | two parallel calls, `get-sum` and `echo` |
//! | `calls-badly` | a call whose arguments are not valid JSON |
//! | `obeys` | for `NAME {…}` that call, then the result of the tool |
//! | `is-limited` | always HTTP 429 |
//! | `is-broken` | always HTTP 500 |
//!
//! The finish reason is always `stop`, even with calls, except for `obeys`, which returns the right one.

use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tools::{BackgroundServer, TestTool};

/// The key of the proxy, which refuses to start without one or with a weak one.
pub const KEY: &str = "sk-karat-tests-0123456789abcdef";

/// The running proxy. It stops when this is dropped.
#[derive(Debug)]
pub struct Litellm {
    server: BackgroundServer,
    /// Holds the configuration of the proxy and the files that it writes.
    _home: TempDir,
}

impl Litellm {
    /// Returns the proxy that all tests of this process share, because it takes ten seconds to start.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Litellm> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Starts a separate proxy on a free port.
    pub fn start() -> Self {
        let program = TestTool::Litellm.command().remove(0);
        let home = tempfile::tempdir().expect("create a temporary folder");
        let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("write a file");
        // JSON is YAML too.
        write("config.yaml", &configuration().to_string());
        write("models.py", include_str!("litellm_models.py"));
        let command = |port: u16| {
            let mut command = Command::new(&program);
            command.args(["--config", "config.yaml", "--host", "127.0.0.1", "--telemetry", "False"]);
            command.args(["--port", &port.to_string()]).current_dir(home.path()).env("HOME", home.path());
            // Without these, it fetches lists from the network at startup.
            for name in ["MODEL_COST_MAP", "BLOG_POSTS", "ANTHROPIC_BETA_HEADERS", "POLICY_TEMPLATES"] {
                command.env(format!("LITELLM_LOCAL_{name}"), "True");
            }
            command.env("LITELLM_TELEMETRY", "False").env("LITELLM_LOG", "ERROR").env("DISABLE_ADMIN_UI", "True");
            command
        };
        let server = BackgroundServer::start(command, "/health/liveliness");
        Self { server, _home: home }
    }

    /// Returns the value of `OPENAI_BASE_URL`, with `/v1`.
    pub fn openai_base(&self) -> String {
        self.server.url("/v1")
    }

    /// Returns the value of `ANTHROPIC_BASE_URL`, without `/v1`.
    pub fn anthropic_base(&self) -> String {
        self.server.url("")
    }

    /// Returns the output of the proxy so far.
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
        // Report failures immediately: retries are up to the client.
        "router_settings": {"num_retries": 0, "disable_cooldowns": true},
        "litellm_settings": {
            "num_retries": 0,
            "telemetry": false,
            "custom_provider_map": [{"provider": "karat", "custom_handler": "models.obedient"}],
        },
    })
}
