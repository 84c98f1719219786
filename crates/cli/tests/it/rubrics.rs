//! Rubric files: selection, judging and results.

use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{ok_case, project, script};

fn rubric_case(id: &str, message: &str, dimensions: &[&str]) -> Value {
    let rubric: Vec<Value> = dimensions
        .iter()
        .map(|name| json!({ "dimension": name, "maxScore": 2, "criteria": "2: all there, 0: nothing" }))
        .collect();
    json!({
        "id": id,
        "description": format!("asks {message}"),
        "input": { "message": message },
        "referenceData": { "paris": 18 },
        "rubric": rubric
    })
}

/// Creates a project with a golden and a rubric file for one tool, and a scripted judge.
fn project_with_rubric() -> TempProject {
    let judge = json!({
        "replies": [
            { "contains": ["\"dimension\": \"accuracy\""], "value": { "score": 2, "reason": "18 is right" } },
            { "contains": ["\"dimension\": \"tone\""], "value": { "score": 1, "reason": "a little short" } },
            { "contains": ["\"dimension\": \"wild\""], "value": { "score": 3, "reason": "more than all" } }
        ]
    });
    project()
        .file("karat.json", json!({"agentEndpoint": "scripted:a.json", "outputDir": "results"}))
        .file("a.json", script(&[("m", "ok"), ("bad", "no"), ("How warm?", "ok: 18")]))
        .file("judge.json", judge)
        .file("evals/get-weather.golden.json", json!([ok_case("gs-get-weather-001", "m")]))
        .file("evals/get_weather.rubric.json", json!([rubric_case("rb-001", "How warm?", &["accuracy", "tone"])]))
}

fn rubric_results(project: &TempProject) -> Vec<Value> {
    let files = project.files_in("results", ".json");
    let rubrics = files.iter().filter(|path| path.to_string_lossy().contains("-rubric-"));
    rubrics.map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
}

#[test]
fn shows_and_writes_scores_separately() {
    let project = project_with_rubric();
    let output = project.run(["run", "--judge", "scripted:judge.json"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    ═══ get-weather — golden evals ════════════════════════════════════
      ✓ gs-get-weather-001  says m                                 [TIME]
    ───────────────────────────────────────────────────────────────────
      1/1 passed | 0 failed | 0 skipped assertions | [TIME] total

    ═══ get_weather — rubric ══════════════════════════════════════════
      3/4   rb-001  asks How warm?                                 [TIME]
        accuracy 2/2, tone 1/2
        → tone 1/2: a little short
    ───────────────────────────────────────────────────────────────────
      1 judged | 3/4 points (75%)
        judged by scripted:judge.json

    ----- stderr -----
    run [RUN_ID]: 2 result files in results
    ");
    let results = rubric_results(&project);
    let [result] = &results[..] else { panic!("{results:?}") };
    assert_eq!(result["judge"]["identity"], "scripted:judge.json");
    assert!(result["judge"]["parameters"]["script"].is_string(), "the judge's script has a hash");
    assert_eq!(result["summary"]["scoreShare"], 0.75);
    assert_eq!(result["cases"][0]["dimensions"][1]["reason"], "a little short");
    assert_eq!(result["cases"][0]["details"]["response"], "ok: 18");
    let schema: Value = serde_json::from_str(&project.run(["schema", "rubric-result"]).stdout).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(result));
}

#[test]
fn skips_rubrics_without_a_judge() {
    let project = project_with_rubric();
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("skipped: no judge is configured"), "{}", output.stdout);
    assert_eq!(project.files_in("results", ".json").len(), 1, "a skipped suite has no result file");
    let alone = project.run(["run", "--tier", "rubric"]);
    assert_eq!(alone.code, Some(3), "no suite ran: {}", alone.both());
}

#[test]
fn does_not_score_a_tool_with_failed_cases() {
    let project =
        project_with_rubric().file("evals/get-weather.labeled.json", json!([ok_case("ls-get-weather-001", "bad")]));
    let output = project.run(["run", "--judge", "scripted:judge.json"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("skipped: not all cases of evals/get-weather.labeled.json"), "{}", output.stdout);
    assert!(rubric_results(&project).is_empty());
}

#[test]
fn json_output_separates_rubrics() {
    let project = project_with_rubric();
    let run = |format: &str| project.run(["run", "--judge", "scripted:judge.json", "--format", format]).stdout;
    let document: Value = serde_json::from_str(&run("json")).unwrap();
    assert_eq!((&document["totals"]["cases"], &document["totals"]["rubric"]["judged"]), (&json!(1), &json!(1)));
    assert_eq!(document["suites"].as_array().unwrap().len(), 1);
    assert_eq!(document["rubrics"][0]["result"]["cases"][0]["score"], 3);
    let lines = run("jsonl");
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["runStarted", "caseFinished", "suiteFinished", "rubricFinished", "runFinished"]);
    let skipped: Value = serde_json::from_str(&project.run(["run", "--format", "json"]).stdout).unwrap();
    assert!(skipped["rubrics"][0]["skipped"].as_str().unwrap().starts_with("no judge"), "{skipped}");
}

#[test]
fn rejects_an_invalid_score() {
    let project = project_with_rubric()
        .file("evals/get_weather.rubric.json", json!([rubric_case("rb-001", "How warm?", &["wild"])]));
    let output = project.run(["run", "--judge", "scripted:judge.json"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.stdout.contains("is not valid: the score 3 is out of"), "{}", output.stdout);
    assert!(output.stderr.contains("2 result files"), "{}", output.stderr);
}

#[test]
fn selects_rubric_cases() {
    let more = json!([rubric_case("rb-001", "How warm?", &["accuracy"]), rubric_case("rb-002", "m", &["accuracy"])]);
    let project = project_with_rubric().file("evals/get_weather.rubric.json", more);
    let judged = |arguments: &[&str]| -> Vec<String> {
        let start = ["run", "--judge", "scripted:judge.json", "--format", "json"];
        let output = project.run(start.iter().chain(arguments).copied());
        let document: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.both()));
        let suites = document["rubrics"].as_array().unwrap().iter();
        let cases = suites.flat_map(|suite| suite["result"]["cases"].as_array().unwrap());
        cases.map(|case| case["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(judged(&["--id", "rb-002"]), ["rb-002"]);
    assert_eq!(judged(&["--grep", "warm"]), ["rb-001"]);
    assert_eq!(judged(&["--tier", "rubric"]), ["rb-001", "rb-002"]);
    assert!(judged(&["--tier", "golden"]).is_empty());
    let unknown = project.run(["run", "--id", "rb-003"]);
    assert_eq!(unknown.code, Some(4), "{}", unknown.both());
    let warned = project.run(["run", "--judge", "scripted:judge.json", "--tier", "rubric"]);
    assert!(warned.stdout.contains("scored without a golden"), "{}", warned.stdout);
}

#[test]
fn only_failed_and_baselines_ignore_scores() {
    let project = project_with_rubric();
    assert_eq!(project.run(["run", "--judge", "scripted:judge.json"]).code, Some(0));
    let file =
        project.files_in("results", ".json").into_iter().find(|path| path.to_string_lossy().contains("-golden-"));
    let result: Value = serde_json::from_slice(&std::fs::read(file.unwrap()).unwrap()).unwrap();
    let run_id = result["runId"].as_str().unwrap();
    let compared = project.run(["run", "--baseline-run-id", run_id, "--judge", "scripted:judge.json"]);
    assert_eq!(compared.code, Some(0), "{}", compared.both());
    let compared = project.run(["run", "--baseline", "results"]);
    assert_eq!(compared.code, Some(0), "{}", compared.both());
    assert_eq!(project.run(["diff", run_id, run_id]).code, Some(0));
    let failed = project.run(["run", "--only-failed"]);
    assert_eq!(failed.code, Some(4), "{}", failed.both());
    assert!(failed.stderr.contains("--only-failed skips rubric files"), "{}", failed.stderr);
}

#[test]
fn reads_the_judge_from_variable_flag_and_file() {
    let project = project_with_rubric();
    let judged = |output: &karat_testkit::project::Output| output.stdout.contains("judged by scripted:judge.json");
    let variable = project.command(["run"]).env("KARAT_JUDGE", "scripted:judge.json").run();
    assert!(judged(&variable), "{}", variable.both());
    let json = project.run(["run", "--judge", "{\"model\": \"scripted:judge.json\"}"]);
    assert!(judged(&json), "{}", json.both());
    let config =
        json!({"agentEndpoint": "scripted:a.json", "outputDir": "results", "judge": {"model": "scripted:judge.json"}});
    let project = project.file("karat.json", config);
    assert!(judged(&project.run(["run"])));
}

#[test]
fn an_invalid_judge_stops_the_run() {
    let project = project_with_rubric().file("odd.json", json!({ "replies": [], "otherwize": {} }));
    for (judge, message) in [
        ("oracle:x", "'oracle:x' is not a valid judge"),
        ("scripted:none.json", "cannot read the judge's script"),
        ("scripted:odd.json", "unknown key 'otherwize'"),
        ("{\"model\": \"scripted:judge.json\", \"temperature\": 0}", "a scripted judge does not support 'temperature'"),
        ("{\"model\": \"x:y\", \"temperature\": -1}", "'temperature' must be a number of at least 0"),
        ("{\"modell\": \"x:y\"}", "'model' is missing"),
    ] {
        let output = project.run(["run", "--judge", judge]);
        assert_eq!(output.code, Some(2), "{}", output.both());
        assert!(output.stderr.contains(message), "{judge}: {}", output.stderr);
    }
    assert!(project.files_in("results", ".json").is_empty(), "a result was written");
}

#[test]
fn check_validates_rubric_files() {
    let mut wrong = rubric_case("rb-001", "m", &["accuracy", "accuracy"]);
    wrong["rubric"][0]["maxScore"] = json!(0);
    let same = json!([rubric_case("rb-001", "m", &["a"]), rubric_case("rb-002", " M ", &["a"])]);
    let project = project_with_rubric().file("evals/x.rubric.json", json!([wrong])).file("evals/y.rubric.json", same);
    insta::assert_snapshot!(project.run(["check", "evals/x.rubric.json", "evals/y.rubric.json"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
      × rb-001: 'maxScore' must be an integer of at least 1, found 0 (invalid)
        ╭─[evals/x.rubric.json:14:17]
     14 │     "maxScore": 0,
        ·                 ─
        ╰────

      × rb-001: duplicate dimension 'accuracy' (invalid)
        ╭─[evals/x.rubric.json:18:18]
     18 │     "dimension": "accuracy",
        ·                  ──────────
        ╰────

      ⚠ rb-002: the message is the same as that of 'rb-001' (same-prompt)
        ╭─[evals/y.rubric.json:23:4]
     23 │    "message": " M "
        ·    ─────────
        ╰────

    2 files, 2 cases: 2 invalid, 0 errors, 1 warning
    ----- stderr -----
    "#);
}

#[rstest]
#[case("openai:judge-model")]
#[case("anthropic:judge-model")]
fn a_model_judges_with_structured_output(#[case] judge: &str) {
    let server =
        ScriptedServer::start(json!({"*": {"structured": {"score": 1, "reason": "fair"}, "usage": [100, 10]}}));
    let prices = json!({judge: {"inputUsdPerMillion": 10, "outputUsdPerMillion": 100}});
    let project = project_with_rubric()
        .env("OPENAI_API_KEY", "sk-judge-key")
        .env("OPENAI_BASE_URL", format!("{}/v1", server.base_url()))
        .env("ANTHROPIC_API_KEY", "sk-judge-key")
        .env("ANTHROPIC_BASE_URL", server.base_url());
    let config = json!({
        "agentEndpoint": "scripted:a.json", "outputDir": "results", "prices": prices,
        "judge": {"model": judge, "temperature": 0, "maxOutputTokens": 300},
    });
    project.write("karat.json", config);
    let free = |response: &str| json!({"response": response, "usage": {"costUsd": 0}});
    project.write("a.json", json!({"replies": {"m": free("ok"), "How warm?": free("ok: 18")}}));
    let output = project.run(["run", "--record", "recordings"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(server.refusals(), Vec::<String>::new());
    assert_eq!(server.request_count(), 2, "one call per dimension");
    let request = server.bodies()[0].to_string();
    assert!(request.contains("paris") && request.contains("ok: 18") && request.contains("accuracy"), "{request}");
    let results = rubric_results(&project);
    let [result] = &results[..] else { panic!("{results:?}") };
    assert_eq!((&result["summary"]["score"], &result["summary"]["maxScore"]), (&json!(2), &json!(4)));
    assert_eq!(result["judge"]["parameters"]["temperature"], 0.0);
    assert_eq!(result["summary"]["judgeUsage"]["inputTokens"], 200);

    let replayed = project.command(["run", "--record", "recordings", "--replay=strict", "--output-dir", "again"]);
    let replayed = replayed.env("OPENAI_API_KEY", "").env("ANTHROPIC_API_KEY", "").run();
    assert_eq!(replayed.code, Some(0), "{}", replayed.both());
    assert_eq!(server.request_count(), 2, "a replay sends no requests");

    let limited = project.run(["run", "--max-cost-usd", "0.0025"]);
    assert_eq!(limited.code, Some(3), "{}", limited.both());
    assert!(limited.both().contains("the budget of $0.0025"), "{}", limited.both());
    assert_eq!(server.request_count(), 3, "a second call would bring the total to 0.004");
}
