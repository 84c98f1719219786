//! `--record` and `--replay`.

use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use serde_json::{Value, json};

use crate::support::{case, newest_result, normalised_result, project};

const SECRET: &str = "s3cr3t-value-of-a-token";

fn answers() -> Value {
    json!({
        "a": {
            "response": "It is ok.\nReally.", "model": "m-1",
            "usage": {"inputTokens": 3, "outputTokens": 1, "costUsd": 0.1},
            "toolCalls": [{
                "name": "t", "success": true, "durationMs": 0.125, "result": null,
                "params": {"z": 9_007_199_254_740_993_u64, "a": 1.0, "tiny": 5e-324, "text": "\u{1b}[31m\r\n"},
            }],
        },
        "b": {"response": format!("your token is {SECRET}")},
        "c": {"status": 500, "raw": "boom\nboom"},
        "d": {"sequence": [{"response": "first ok"}, {"response": "second ok"}]},
    })
}

fn evals() -> Value {
    json!([
        case("gs-x-001", "a", json!({"responseContains": ["ok"], "toolsCalled": ["t"]})),
        case("gs-x-002", "b", json!({"responseContains": ["token is"], "maxLength": 17})),
        case("gs-x-003", "c", json!({"responseNonEmpty": true})),
        case("gs-x-004", "d", json!({"responseContains": ["first"]})),
        case("gs-x-005", "d", json!({"responseContains": ["second"]})),
    ])
}

fn recording_project(server: &ScriptedServer) -> TempProject {
    project()
        .file(
            "karat.json",
            json!({
                "agentEndpoint": server.endpoint(), "outputDir": "results", "concurrency": 1,
                "agent": {"headers": {"Authorization": "Bearer ${AGENT_TOKEN}"}},
            }),
        )
        .file("evals/x.golden.json", evals())
}

#[test]
fn replay_reproduces_the_recorded_run() {
    let server = ScriptedServer::start(answers());
    let project = recording_project(&server);
    let recorded = project.command(["run", "--record", "evals/recordings"]).env("AGENT_TOKEN", SECRET).run();
    assert_eq!(recorded.code, Some(3), "{}", recorded.both());
    assert!(recorded.stderr.contains("recorded 5 answers in evals/recordings"), "{}", recorded.stderr);
    assert_eq!(server.request_count(), 5);
    let before = normalised_result(&project);
    let files = project.files_in("evals/recordings", ".json");
    assert_eq!(files.len(), 5);
    for file in &files {
        assert!(!std::fs::read_to_string(file).unwrap().contains(SECRET), "{}", file.display());
    }

    // No key is set, and the default folder is used.
    let replayed = project.run(["run", "--replay", "strict"]);
    assert_eq!(replayed.code, Some(3), "{}", replayed.both());
    assert!(replayed.stderr.contains("replayed 5 answers from evals/recordings"), "{}", replayed.stderr);
    assert_eq!(normalised_result(&project), before);
    assert_eq!(server.request_count(), 5);
    assert_eq!(replayed.filtered_stdout(), recorded.filtered_stdout());

    // Changed assertions judge the same answers.
    project.write("evals/x.golden.json", json!([case("gs-y-009", "a", json!({"responseContains": ["green"]}))]));
    let judged = project.command(["run"]).env("KARAT_REPLAY", "strict").run();
    assert_eq!(judged.code, Some(1), "{}", judged.both());
    assert_eq!(server.request_count(), 5);

    // A changed message has no recording.
    project.write("evals/x.golden.json", json!([case("gs-x-001", "a!", json!({"responseContains": ["ok"]}))]));
    let output = project.run(["run", "--replay=strict", "--quiet"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 3
    ----- stdout -----
    ═══ x — golden evals ══════════════════════════════════════════════
      ! gs-x-001  says a!                                          [TIME]
        → error: no recording for this request: the message was 'a' and is now 'a!'
    ───────────────────────────────────────────────────────────────────
      0/1 passed | 0 failed | 1 errored | 0 skipped assertions | [TIME] total

    not passed:
      ! gs-x-001 (evals/x.golden.json:2): no recording for this request: the message
        was 'a' and is now 'a!'

    ----- stderr -----
    ");
    assert_eq!(server.request_count(), 5);
}

#[test]
fn auto_requests_missing_and_errored_answers() {
    let server = ScriptedServer::start(answers());
    let project = recording_project(&server).env("AGENT_TOKEN", SECRET);
    let first = project.run(["run", "--replay"]);
    assert!(
        first.stderr.contains("replayed 0 answers, requested 5 (recorded in evals/recordings)"),
        "{}",
        first.stderr
    );
    server.reset(json!({"*": {"response": "new ok"}}));
    let second = project.run(["run", "--replay"]);
    assert!(
        second.stderr.contains("replayed 4 answers, requested 1 (recorded in evals/recordings)"),
        "{}",
        second.stderr
    );
    assert_eq!((second.code, server.request_count()), (Some(0), 1), "{}", second.both());
    let third = project.run(["run", "--replay=auto"]);
    assert!(third.stderr.contains("replayed 5 answers from evals/recordings"), "{}", third.stderr);
    // `off` overrides the variable and disables replay.
    let fourth = project.command(["run", "--replay", "off"]).env("KARAT_REPLAY", "strict").run();
    assert_eq!((fourth.code, server.request_count()), (Some(1), 6), "{}", fourth.both());
    assert!(!fourth.stderr.contains("record"), "{}", fourth.stderr);
}

#[test]
fn replay_is_strict_in_ci() {
    let server = ScriptedServer::start(answers());
    let project = recording_project(&server).in_ci();
    insta::assert_snapshot!(project.run(["run", "--replay"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: no recordings: evals/recordings is not a folder
    hint: record answers first: karat run --record evals/recordings
    ");
    project.command(["run", "--record", "evals/recordings"]).env("AGENT_TOKEN", SECRET).run();
    let requests = server.request_count();
    let replayed = project.run(["run", "--replay"]);
    assert!(replayed.stderr.contains("replayed 5 answers"), "{}", replayed.stderr);
    assert_eq!(server.request_count(), requests);
    // Without replay, the key is required.
    assert_eq!(project.run(["run"]).code, Some(2));
}

#[test]
fn reads_record_and_replay_from_the_config() {
    let server = ScriptedServer::start(json!({"*": {"response": "ok"}}));
    let config = |replay: &str| json!({"agentEndpoint": server.endpoint(), "record": "taped", "replay": replay});
    let eval = json!([case("gs-x-001", "hi", json!({"responseContains": ["ok"]}))]);
    let project = project().file("karat.json", config("auto")).file("evals/x.golden.json", eval);
    for _ in 0..2 {
        assert_eq!(project.run(["run"]).code, Some(0));
    }
    assert_eq!((server.request_count(), project.files_in("taped", ".json").len()), (1, 1));
    project.write("karat.json", config("stric"));
    let wrong = project.run(["run"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("did you mean 'strict'?"), "{}", wrong.stderr);
}

#[test]
fn recordings_are_not_eval_files() {
    let server = ScriptedServer::start(json!({"*": {"response": "ok"}}));
    let eval = json!([case("gs-x-001", "hi", json!({"responseContains": ["ok"]}))]);
    let project = project()
        .file("karat.json", json!({"agentEndpoint": server.endpoint()}))
        .file("evals/x.golden.json", &eval)
        .file("evals/recordings/stray.golden.json", &eval)
        .file("evals/taped/stray.golden.json", &eval);
    let run = project.run(["run", "--record", "evals/taped"]);
    // With another folder, the default one is searched for eval files.
    assert_eq!((run.code, server.request_count()), (Some(0), 2), "{}", run.both());
    let check = project.run(["check"]);
    assert!(check.stdout.contains("2 files"), "{}", check.stdout);
}

#[test]
fn fails_when_an_answer_cannot_be_recorded() {
    let server = ScriptedServer::start(json!({"*": {"response": "ok"}}));
    let eval = json!([case("gs-x-001", "hi", json!({"responseContains": ["ok"]}))]);
    let project = project()
        .file("karat.json", json!({"agentEndpoint": server.endpoint(), "outputDir": "results"}))
        .file("evals/x.golden.json", eval);
    assert_eq!(project.run(["run", "--record", "taped"]).code, Some(0));
    let file = project.files_in("taped", ".json").remove(0);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir_all(file.join("in the way")).unwrap();
    let lost = project.run(["run", "--record", "taped"]);
    assert_eq!(lost.code, Some(3), "{}", lost.both());
    assert!(lost.stdout.contains("1/1 passed"), "{}", lost.stdout);
    assert!(lost.stderr.contains("error: cannot write the recording taped/hi-"), "{}", lost.stderr);
    assert_eq!(project.files_in("results", ".json").len(), 2);

    project.write("file", "not a folder");
    let refused = project.run(["run", "--record", "file"]);
    assert_eq!((refused.code, server.request_count()), (Some(2), 2), "{}", refused.both());
    assert!(refused.stderr.contains("error: cannot write recordings to file: "), "{}", refused.stderr);
}

#[test]
fn two_processes_record_concurrently() {
    let server = ScriptedServer::start(json!({"*": {"response": "ok", "delayMs": 1}}));
    let cases: Vec<Value> = (0..60)
        .map(|number| case(&format!("gs-x-{number:03}"), &format!("m {number}"), json!({"responseContains": ["ok"]})))
        .collect();
    let project = project()
        .file("karat.json", json!({"agentEndpoint": server.endpoint(), "outputDir": "results", "concurrency": 8}))
        .file("evals/x.golden.json", json!(cases));
    let both = [0, 1].map(|_| project.command(["run", "--record", "evals/recordings"]).start());
    for running in both {
        let output = running.wait().expect("karat exits");
        assert_eq!(output.code, Some(0), "{}", output.both());
    }
    let replayed = project.run(["run", "--replay", "strict"]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.both());
    let files = std::fs::read_dir(project.path().join("evals/recordings")).unwrap().count();
    assert_eq!((files, server.request_count()), (60, 120));
}

#[test]
fn replays_a_model_without_its_key() {
    let server = ScriptedServer::start(json!({"weather?": {"turns": [
        {"calls": [{"name": "get_weather", "args": {"city": "Paris"}}], "usage": [10, 2]},
        {"text": "18 degrees", "usage": [20, 4]},
    ]}}));
    let stubbed = json!([{
        "id": "gs-get-weather-001", "input": {"message": "weather?"}, "stubs": {"get_weather": {"t": 18}},
        "expect": {"toolsCalled": ["get_weather"], "responseContains": ["18"]},
    }]);
    let tools = |description: &str| json!([{"name": "get_weather", "description": description, "inputSchema": {"type": "object"}}]);
    let config = json!({"agentEndpoint": "openai:m-1", "outputDir": "results", "toolRegistryPath": "tools.json"});
    let project = project()
        .file("karat.json", config)
        .file("tools.json", tools("tells the weather"))
        .file("evals/x.golden.json", stubbed);
    let base = format!("{}/v1", server.base_url());
    let recorded = project
        .command(["run", "--record", "evals/recordings"])
        .env("OPENAI_BASE_URL", &base)
        .env("OPENAI_API_KEY", SECRET)
        .run();
    assert_eq!((recorded.code, server.request_count()), (Some(0), 2), "{}", recorded.both());
    let before = normalised_result(&project);
    let replayed = project.command(["run", "--replay", "strict"]).env("OPENAI_BASE_URL", &base).run();
    assert_eq!((replayed.code, server.request_count()), (Some(0), 2), "{}", replayed.both());
    assert_eq!(normalised_result(&project), before);

    project.write("tools.json", tools("tells the weather, always"));
    let output =
        project.command(["run", "--replay=strict", "--temperature", "0.7"]).env("OPENAI_BASE_URL", &base).run();
    assert_eq!(output.code, Some(3), "{}", output.both());
    let result = newest_result(&project, "results");
    insta::assert_snapshot!(result["cases"][0]["error"].as_str().unwrap(), @"no recording for this request: temperature was not set and is now 0.7, 1 tool changed (get_weather)");
}

#[test]
fn records_every_trial() {
    let steps: Vec<Value> = ["ok", "no", "ok", "no"].iter().map(|text| json!({"response": text})).collect();
    let server = ScriptedServer::start(json!({"hi": {"sequence": steps}}));
    let ok = |id| case(id, "hi", json!({"responseContains": ["ok"]}));
    let project = project()
        .file("karat.json", json!({"agentEndpoint": server.endpoint(), "outputDir": "results"}))
        .file("evals/x.golden.json", json!([ok("gs-x-001"), ok("gs-x-002")]));
    let recorded = project.run(["run", "--trials", "2", "--record", "evals/recordings"]);
    assert_eq!((recorded.code, server.request_count()), (Some(1), 4), "{}", recorded.both());
    let before = normalised_result(&project);
    // The order of requests does not matter.
    let replayed = project.run(["run", "--trials", "2", "--replay", "strict", "--jobs", "4"]);
    assert_eq!((replayed.code, server.request_count()), (Some(1), 4), "{}", replayed.both());
    assert_eq!(normalised_result(&project), before);
    let more = project.run(["run", "--trials", "3", "--replay", "strict"]);
    assert!(more.stderr.contains("replayed 4 answers, 2 missing"), "{}", more.both());
}

#[test]
fn recordings_of_a_run_do_not_overwrite_each_other() {
    let steps: Vec<Value> = ["ok", "no", "no", "ok", "no", "ok"].iter().map(|text| json!({"response": text})).collect();
    let server = ScriptedServer::start(json!({"hi": {"sequence": steps}}));
    let ok = |id, more: Value| {
        let mut case = case(id, "hi", json!({"responseContains": ["ok"]}));
        case.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        case
    };
    // Values that are not sent to the endpoint do not distinguish requests.
    let cases = json!([
        ok("gs-x-001", json!({})),
        ok("gs-x-002", json!({"maxTurns": 2})),
        ok("gs-x-003", json!({"stubs": {"t": 1}})),
    ]);
    // Neither do secrets, which are masked.
    let matrix = ["first", "second"].map(|which| format!("{}?api_key={which}-{SECRET}", server.endpoint())).join(",");
    let project = project()
        .file("karat.json", json!({"outputDir": "results", "concurrency": 1}))
        .file("evals/x.golden.json", cases);
    let recorded = project.run(["run", "--matrix", &matrix, "--record", "evals/recordings"]);
    assert_eq!((recorded.code, server.request_count()), (Some(1), 6), "{}", recorded.both());
    assert_eq!(project.files_in("evals/recordings", ".json").len(), 6);
    let before = normalised_result(&project);
    let replayed = project.run(["run", "--matrix", &matrix, "--replay", "strict"]);
    assert_eq!((replayed.code, server.request_count()), (Some(1), 6), "{}", replayed.both());
    assert_eq!(normalised_result(&project), before);
}

#[test]
fn replays_a_timeout_as_a_failure() {
    let steps = json!([{"response": "ok"}, {"response": "ok", "delayMs": 5000}]);
    let server = ScriptedServer::start(json!({"hi": {"sequence": steps}}));
    let project = project()
        .file("karat.json", json!({"agentEndpoint": server.endpoint(), "outputDir": "results"}))
        .file("evals/x.golden.json", json!([case("gs-x-001", "hi", json!({"responseContains": ["ok"]}))]));
    let good = project.run(["run", "--record", "evals/recordings"]);
    assert_eq!(good.code, Some(0), "{}", good.both());
    let late = project.run(["run", "--record", "evals/recordings", "--timeout-ms", "300"]);
    assert_eq!(late.code, Some(1), "{}", late.both());
    assert!(late.stderr.contains("recorded 1 answer in"), "{}", late.stderr);
    let before = normalised_result(&project);
    assert!(before.contains("\"error\": \"timeout\""), "{before}");
    let replayed = project.run(["run", "--replay", "strict"]);
    assert_eq!((replayed.code, server.request_count()), (Some(1), 2), "{}", replayed.both());
    assert_eq!(normalised_result(&project), before);
}
