//! Captures real sources and runs real hooks.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::port::{BoxFuture, Hook, Hooks, StateSources, ToolOutcome, ToolRunner, ToolUnavailable};
use karat_json::{Path, Problems};
use karat_state::{HooksConfig, ProjectHooks, ProjectSources, Source, SourceConfig};
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(20);

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("state.json"), "{\"n\": 1}").unwrap();
    std::fs::write(folder.path().join("log.txt"), "one\ntwo\n").unwrap();
    folder
}

fn sources(folder: &TempDir, config: &Value, limit: Duration, tools: Option<&Arc<dyn ToolRunner>>) -> ProjectSources {
    let mut problems = Problems::default();
    let all = SourceConfig::read_all(&json!({ "db": config }), &Path::Root, &mut problems);
    let all: BTreeMap<String, SourceConfig> = all.unwrap_or_else(|| panic!("{:?}", problems.into_list()));
    let ready = all.iter().map(|(name, config)| (name.clone(), Source::new(config, config.clone(), tools.cloned())));
    ProjectSources::new(ready.collect(), folder.path().to_owned(), limit)
}

/// Runs a future in a test with a scripted server, which has a runtime of its own.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(future)
}

async fn capture(config: Value) -> Result<Value, String> {
    let folder = folder();
    sources(&folder, &config, LIMIT, None).capture("db", "gs-a-001").await.map_err(|error| error.to_string())
}

#[rstest]
#[case::file(json!({"file": "state.json"}), json!({"n": 1}))]
#[case::text_file(json!({"file": "log.txt", "as": "text"}), json!("one\ntwo\n"))]
#[case::command(json!(["cat", "state.json"]), json!({"n": 1}))]
#[case::text(json!({"command": ["cat", "log.txt"], "as": "text"}), json!("one\ntwo"))]
#[case::only_one_line_break_is_removed(json!({"command": ["printf", "a\n\n"], "as": "text"}), json!("a\n"))]
#[case::no_line_break(json!({"command": ["printf", "a"], "as": "text"}), json!("a"))]
#[case::empty_text(json!({"command": ["true"], "as": "text"}), json!(""))]
#[case::case_id(json!({"command": ["sh", "-c", "echo $KARAT_CASE_ID"], "as": "text"}), json!("gs-a-001"))]
#[tokio::test]
async fn captures_files_and_commands(#[case] config: Value, #[case] state: Value) {
    assert_eq!(capture(config).await, Ok(state));
}

#[rstest]
#[case(json!({"file": "nope.json"}), "nope.json: No such file")]
#[case(json!({"file": "log.txt"}), "log.txt is not valid JSON")]
#[case(json!(["true"]), "the output is empty, expected JSON")]
#[case(json!(["no-such-program"]), "cannot start no-such-program: ")]
#[case(json!(["sh", "-c", "echo one >&2; echo two >&2; exit 3"]), "sh ended with exit status 3; its stderr: one\ntwo")]
#[case(json!(["sh", "-c", "kill -9 $$"]), "sh ended with signal 9 (SIGKILL)")]
#[case(json!({"command": ["printf", "\\377"], "as": "text"}), "not valid UTF-8")]
#[tokio::test]
async fn the_error_says_what_failed(#[case] config: Value, #[case] message: &str) {
    let error = capture(config).await.expect_err("an error");
    assert!(error.starts_with("cannot capture the state of 'db': ") && error.contains(message), "{error}");
}

#[test]
fn captures_a_url_with_headers() {
    let server =
        ScriptedServer::start(json!({"GET /state": {"json": {"n": 2}}, "GET /broken": {"status": 500, "raw": "no"}}));
    let url = |path: &str| json!({"url": format!("{}{path}", server.base_url()), "headers": {"x-key": "k"}});
    assert_eq!(block_on(capture(url("/state"))), Ok(json!({"n": 2})));
    let error = block_on(capture(url("/broken"))).expect_err("HTTP 500");
    assert!(error.contains("500"), "{error}");
}

/// A tool that returns its arguments, as a text if they say so.
struct Echo;

impl ToolRunner for Echo {
    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolUnavailable>> {
        Box::pin(async move {
            match tool {
                "gone" => Err(ToolUnavailable("the server ended".to_owned())),
                "fails" => Ok(ToolOutcome { result: Value::Null, error: Some("no such table".to_owned()) }),
                "text" => Ok(ToolOutcome { result: Value::Object(arguments.clone()).to_string().into(), error: None }),
                _ => Ok(ToolOutcome { result: Value::Object(arguments.clone()), error: None }),
            }
        })
    }
}

#[rstest]
#[case("json", None, Ok(json!({"a": 1})))]
#[case("text", None, Ok(json!({"a": 1})))]
#[case("text", Some("text"), Ok(json!("{\"a\":1}")))]
#[case("json", Some("text"), Ok(json!("{\"a\":1}")))]
#[case("fails", None, Err("the tool 'fails' of 'shop' failed: no such table"))]
#[case("gone", None, Err("the server ended"))]
#[tokio::test]
async fn captures_a_tool(#[case] tool: &str, #[case] form: Option<&str>, #[case] expected: Result<Value, &str>) {
    let folder = folder();
    let mut config = json!({"mcpTool": {"server": "shop", "tool": tool, "arguments": {"a": 1}}});
    if let Some(form) = form {
        config["as"] = json!(form);
    }
    let sources = sources(&folder, &config, LIMIT, Some(&(Arc::new(Echo) as Arc<dyn ToolRunner>)));
    let captured = sources.capture("db", "a").await.map_err(|error| error.to_string());
    let expected = expected.map_err(|message| format!("cannot capture the state of 'db': {message}"));
    assert_eq!(captured, expected);
}

#[tokio::test]
async fn a_definition_has_no_secrets_and_does_not_depend_on_isolation() {
    let folder = folder();
    let definition = |config: Value| sources(&folder, &config, LIMIT, None).definition("db");
    let config = json!({"url": "http://host/", "headers": {"x-key": "${KEY}"}});
    assert_eq!(definition(config.clone()), config);
    assert_eq!(definition(json!({"file": "a", "isolated": true})), json!({"file": "a"}));
}

fn hooks(folder: &TempDir, config: &Value, limit: Duration) -> ProjectHooks {
    let mut problems = Problems::default();
    let config = HooksConfig::read(config, &Path::Root, &mut problems);
    let config = config.unwrap_or_else(|| panic!("{:?}", problems.into_list()));
    ProjectHooks::new(config, folder.path().to_owned(), limit)
}

#[tokio::test]
async fn runs_the_configured_hook_in_the_folder() {
    let folder = folder();
    let config = json!({"beforeCase": ["sh", "-c", "echo \"$KARAT_CASE_ID\" > ran"]});
    let hooks = hooks(&folder, &config, LIMIT);
    hooks.run(Hook::BeforeCase, Some("gs-a-001")).await.unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("ran")).unwrap(), "gs-a-001\n");
    hooks.run(Hook::AfterCase, Some("gs-a-001")).await.expect("a hook that is not configured does nothing");
}

#[test]
fn posts_the_hook_and_the_case_to_a_url() {
    let server = ScriptedServer::start(json!({"": {"json": {}}}));
    let url = format!("{}/hook", server.base_url());
    let hooks = hooks(&folder(), &json!({"afterCase": {"url": url}, "afterRun": {"url": url}}), LIMIT);
    block_on(hooks.run(Hook::AfterCase, Some("gs-a-001"))).unwrap();
    block_on(hooks.run(Hook::AfterRun, None)).unwrap();
    assert_eq!(server.bodies(), [json!({"hook": "afterCase", "caseId": "gs-a-001"}), json!({"hook": "afterRun"})]);
}

/// The children of a hanging hook are killed with it, also in a session of their own.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_hanging_hook_is_killed_with_its_children() {
    let folder = folder();
    let script = "echo waiting >&2; (sleep 2; touch late) & setsid sh -c 'sleep 2; touch later' & wait";
    let hooks = hooks(&folder, &json!({"beforeCase": ["sh", "-c", script]}), Duration::from_millis(300));
    let start = Instant::now();
    let error = hooks.run(Hook::BeforeCase, Some("a")).await.expect_err("a timeout").to_string();
    assert!(start.elapsed() < Duration::from_millis(1900), "{:?}", start.elapsed());
    let expected = "the hook beforeCase failed: sh timed out after 300 ms ('hookTimeoutMs'); its stderr: waiting";
    assert_eq!(error, expected);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert!(!folder.path().join("late").exists() && !folder.path().join("later").exists());
}

#[test]
fn a_url_that_hangs_times_out() {
    let server = ScriptedServer::start(json!({"": {"json": {}, "delayMs": 5000}}));
    let url = json!({"url": format!("{}/hook", server.base_url())});
    let hooks = hooks(&folder(), &json!({"beforeRun": url}), Duration::from_millis(200));
    let error = block_on(hooks.run(Hook::BeforeRun, None)).expect_err("a timeout").to_string();
    assert_eq!(error, "the hook beforeRun failed: the URL timed out after 200 ms ('hookTimeoutMs')");
}
