//! State sources and hooks: reports, recordings, MCP tools, interruptions, secrets.

use std::time::{Duration, Instant};

use karat_testkit::mcp::shell_server;
use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{case, newest_result, normalised_result, project};

/// An agent that closes the order, and a second one if the message says so; both are in a file.
const AGENT: &str = r#"request=$(cat)
case "$request" in
  *others*) second=closed ;;
  *) second=open ;;
esac
printf '{"orders": {"1": "closed", "2": "%s"}}' "$second" > db.json
echo turn >> log
printf '{"response": "ok"}'
"#;

const RESET: &str = r#"printf '{"orders": {"1": "open", "2": "open"}}' > db.json"#;

fn closing(message: &str) -> Value {
    let expect = json!({
        "responseContains": ["ok"],
        "state": [{"source": "db", "path": "/orders/1", "assertion": "equals", "value": "closed"}],
        "stateUnchanged": [{"source": "db", "except": ["/orders/1"]}],
    });
    case("ls-shop-001", message, expect)
}

fn shop(cases: &Value, more: &Value) -> TempProject {
    let mut config = json!({
        "agentEndpoint": "command:sh agent.sh", "outputDir": "results",
        "stateSources": {"db": ["sh", "-c", "echo capture >> log; cat db.json"]},
        "hooks": {"beforeCase": ["sh", "-c", RESET]},
    });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    project().file("karat.json", config).file("agent.sh", AGENT).file("evals/shop.labeled.json", cases)
}

#[test]
fn a_run_shows_what_changed() {
    let project = shop(&json!([closing("close 1 and others")]), &json!({}));
    let output = project.run(["run", "--report", "junit=junit.xml", "--report", "markdown=report.md"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    let message = r#"stateUnchanged: db changed at /orders/2 (before "open", after "closed")"#;
    let joined = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains(message), "{}", output.stdout);
    let result = newest_result(&project, "results");
    let failed = &result["cases"][0];
    assert_eq!((&failed["error"], &failed["assertionsRun"]), (&json!(message), &json!(3)));
    assert_eq!(failed["failures"][0]["pointer"], "/expect/stateUnchanged/0");
    let changes = json!([{"source": "db", "total": 1,
        "changes": [{"pointer": "/orders/2", "before": "\"open\"", "after": "\"closed\""}]}]);
    assert_eq!(failed["details"]["stateChanges"], changes);
    let (junit, markdown) = (project.read("junit.xml"), project.read("report.md"));
    assert!(junit.contains("db changed at /orders/2"), "{junit}");
    assert!(markdown.contains("db changed at /orders/2"), "{markdown}");
    let shown = project.run(["show", "ls-shop-001"]);
    let shown = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(message), "{shown}");
    // The hook resets the state, so the right message passes after the wrong one.
    project.write("evals/shop.labeled.json", json!([closing("close 1")]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
}

#[test]
fn check_reports_unknown_sources() {
    let mut cases = json!([closing("close 1")]);
    cases[0]["expect"]["state"][0]["source"] = json!("bd");
    let project = shop(&cases, &json!({}));
    let output = project.run(["check"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.both().contains("no state source 'bd'") && output.both().contains("did you mean 'db'?"));
    // A broken file is found before anything is called.
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(project.files_in(".", "log").is_empty(), "nothing was captured or sent");
}

#[test]
fn a_strict_replay_uses_the_recorded_states() {
    let project = shop(&json!([closing("close 1"), close_both()]), &json!({}));
    let recorded = project.run(["run", "--record", "recordings"]);
    assert_eq!(recorded.code, Some(1), "{}", recorded.both());
    let before = normalised_result(&project);
    std::fs::remove_file(project.path().join("db.json")).unwrap();
    std::fs::remove_file(project.path().join("log")).unwrap();
    let replayed = project.run(["run", "--record", "recordings", "--replay", "strict"]);
    assert_eq!(replayed.code, Some(1), "{}", replayed.both());
    assert_eq!(normalised_result(&project), before);
    for file in ["db.json", "log"] {
        assert!(!project.path().join(file).exists(), "{file}: a replay runs no hook, source or agent");
    }
    // In auto mode, what is recorded is replayed too.
    let auto = project.run(["run", "--record", "recordings", "--replay", "auto"]);
    assert_eq!(auto.code, Some(1), "{}", auto.both());
    assert!(!project.path().join("log").exists(), "{}", auto.both());
}

fn close_both() -> Value {
    let mut case = closing("close 1 and others");
    case["id"] = json!("ls-shop-002");
    case
}

#[test]
fn a_state_that_is_not_recorded_is_an_error_in_a_strict_replay_and_captured_in_auto_mode() {
    let mut plain = closing("close 1");
    plain["expect"] = json!({"responseContains": ["ok"]});
    let project = shop(&json!([plain]), &json!({}));
    assert_eq!(project.run(["run", "--record", "recordings"]).code, Some(0));
    project.write("evals/shop.labeled.json", json!([closing("close 1")]));
    let strict = project.run(["run", "--record", "recordings", "--replay", "strict"]);
    assert_eq!(strict.code, Some(3), "{}", strict.both());
    assert!(
        strict.unwrapped_stderr().contains("missing") || strict.both().contains("no recording"),
        "{}",
        strict.both()
    );
    std::fs::remove_file(project.path().join("log")).unwrap();
    let auto = project.run(["run", "--record", "recordings", "--replay", "auto"]);
    assert_eq!(auto.code, Some(0), "{}", auto.both());
    assert_eq!(project.read("log"), "capture\nturn\ncapture\n", "the agent is asked again, since it changes the state");
    let strict = project.run(["run", "--record", "recordings", "--replay", "strict"]);
    assert_eq!(strict.code, Some(0), "{}", strict.both());
}

#[test]
fn captures_a_tool_of_an_mcp_server() {
    let config = json!({
        "mcpServers": {"shell": {"command": shell_server("")}}, "toolRegistryPath": "tools.json",
        "stateSources": {"db": {"mcpTool": {"server": "shell", "tool": "hello"}, "as": "text"}}, "hooks": {},
    });
    let expect = json!({"stateUnchanged": [{"source": "db"}]});
    let project = shop(&json!([case("ls-shop-001", "x", expect)]), &config).file("tools.json", json!([]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let mut config = config;
    config["stateSources"]["db"]["mcpTool"]["tool"] = json!("nope");
    let expect = json!({"stateUnchanged": [{"source": "db"}]});
    let project = shop(&json!([case("ls-shop-001", "x", expect)]), &config).file("tools.json", json!([]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.both().contains("cannot capture the state of 'db'"), "{}", output.both());
}

#[test]
fn secrets_are_expanded_and_redacted() {
    let server = ScriptedServer::start(json!({"GET /state": {"json": {"key": "s3cr3t-token", "n": 1}}}));
    let config = json!({
        "stateSources": {"db": {"url": "${SHOP_URL}/state", "headers": {"authorization": "Bearer ${SHOP_TOKEN}"}}},
        "hooks": {"afterCase": ["sh", "-c", "echo $SHOP_TOKEN >&2; exit 1"]},
    });
    let expect = json!({"state": [{"source": "db", "path": "/key", "assertion": "equals", "value": "x"}]});
    let project = shop(&json!([case("ls-shop-001", "x", expect)]), &config);
    let command = project.command(["run"]).env("SHOP_URL", server.base_url()).env("SHOP_TOKEN", "s3cr3t-token");
    let output = command.run();
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert_eq!(server.gets()[0].headers["authorization"], "Bearer s3cr3t-token");
    let result = newest_result(&project, "results").to_string();
    for text in [output.both(), result] {
        assert!(!text.contains("s3cr3t-token"), "{text}");
    }
}

#[cfg(unix)]
#[test]
fn hooks_run_after_an_interrupt() {
    let server = ScriptedServer::start(json!({"x": {"response": "ok", "delayMs": 30_000}}));
    let config = json!({
        "agentEndpoint": server.endpoint(), "stateSources": {},
        "hooks": {
            "afterCase": ["sh", "-c", "echo afterCase >> log"], "afterRun": ["sh", "-c", "echo afterRun >> log"],
        },
    });
    let project = shop(&json!([case("ls-shop-001", "x", json!({"responseNonEmpty": true}))]), &config);
    let started = Instant::now();
    let running = project.command(["run"]).start();
    while server.request_count() == 0 {
        assert!(started.elapsed() < Duration::from_secs(20), "the case did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    running.interrupt();
    let output = running.wait().expect("karat exits");
    assert_eq!(output.code, Some(130), "{}", output.both());
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(project.read("log"), "afterCase\nafterRun\n");
}

/// Cases with and without a state source, concurrency, trials and several agents: the agent fails if another message is
/// in flight while a state case runs.
#[rstest]
#[case::cases(&[])]
#[case::trials(&["--trials", "3"])]
#[case::matrix(&["--matrix", "command:sh agent.sh,command:sh ./agent.sh"])]
fn a_state_case_is_alone_in_the_whole_run(#[case] flags: &[&str]) {
    const WATCHING_AGENT: &str = r#"request=$(cat)
mkdir -p running
touch "running/$$"
case "$request" in
  *state*)
    sleep 0.05
    count=$(ls running | wc -l)
    test "$count" -eq 1 || echo "not alone" >> log
    ;;
  *) sleep 0.05; test "$(ls running | wc -l)" -gt 1 && echo together >> log ;;
esac
rm "running/$$"
printf '{"response": "ok"}'
"#;
    let unchanged = json!({"stateUnchanged": [{"source": "db"}]});
    let plain = json!({"responseContains": ["ok"]});
    let cases: Vec<Value> = (0..20)
        .map(|number| {
            let (kind, expect) = if number % 5 == 0 { ("state", &unchanged) } else { ("plain", &plain) };
            case(&format!("ls-shop-{number:03}"), &format!("{kind} {number}"), expect.clone())
        })
        .collect();
    let sources = json!({"stateSources": {"db": {"file": "db.json"}}, "hooks": {}, "concurrency": 8});
    let project = shop(&json!(cases), &sources).file("db.json", json!({})).file("log", "");
    project.write("agent.sh", WATCHING_AGENT);
    let output = project.run([&["run"][..], flags].concat());
    assert_eq!(output.code, Some(0), "{}", output.both());
    let log = project.read("log");
    assert!(!log.contains("not alone"), "{log}");
    assert!(log.contains("together"), "the other cases run in parallel");
}
