//! Shared test helpers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use karat_registry::{McpServerConfig, NamedServer};
use serde_json::{Map, Value};

/// Long enough for a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) fn stdio(name: &str, command: &[impl ToString]) -> NamedServer {
    let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    let command = command.iter().map(ToString::to_string).collect();
    let config = McpServerConfig::Stdio { command, env, cwd: None };
    NamedServer { name: name.to_owned(), config, base: std::env::temp_dir() }
}

pub(crate) fn http(name: &str, url: &str) -> NamedServer {
    let config = McpServerConfig::Http { url: url.to_owned(), headers: BTreeMap::new() };
    NamedServer { name: name.to_owned(), config, base: std::env::temp_dir() }
}

/// A server written in shell that runs `before` on start.
pub(crate) fn shell(name: &str, before: &str) -> NamedServer {
    stdio(name, &karat_testkit::mcp::shell_server(before))
}

#[expect(clippy::needless_pass_by_value, reason = "callers pass literals")]
pub(crate) fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// Whether a process exists and is not a zombie.
pub(crate) fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with('Z'))
}

pub(crate) async fn eventually(description: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "{description}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
