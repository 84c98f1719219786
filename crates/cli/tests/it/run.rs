//! `karat run`: summary, results, configuration and reports.

use karat_testkit::server::ScriptedServer;
use serde_json::json;

use crate::support::{case, newest_result, ok_case, only_result, project, script};

#[test]
fn prints_the_summary() {
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json", "outputDir": "results"}))
        .file(
            "agent.json",
            json!({"replies": {
                "a": {"response": "It is ok.", "toolCalls": [{"name": "get_weather", "success": true, "params": {}}]},
                "b": {"response": "{\"fetchedAt\": 1}"},
                "c": {"error": "the agent returned HTTP 500 Internal Server Error: boom"},
                "d": {"response": "fine"},
                "e": {"response": "It is ok, \u{1b}[31mred\u{1b}[0m."},
            }}),
        )
        .file(
            "evals/get-weather.golden.json",
            json!([
                case("gs-get-weather-001", "a", json!({"toolsCalled": ["get_weather"], "responseContains": ["ok"]})),
                case("gs-get-weather-002", "b", json!({"responseNotContains": ["fetchedAt"]})),
                case("gs-get-weather-003", "c", json!({"responseNonEmpty": true})),
                case("gs-get-weather-004", "d", json!({"responseContains": ["{{seed:nothing.here}}"]})),
                {
                    "id": "gs-get-weather-005",
                    "description": "a description that is much too long for the line: 天気予報を教えてください, please",
                    "input": {"message": "e"},
                    "expect": {"responseContains": ["green"], "responseMatches": ["^\\d+$"]},
                },
            ]),
        );
    insta::assert_snapshot!(project.run(["run", "--all-failures"]).filtered(), @r#"
    exit: 3
    ----- stdout -----
    ═══ get-weather — golden evals ═════════════════════════════════════════════════
      ✓ gs-get-weather-001  says a                                              [TIME]
      ✗ gs-get-weather-002  says b                                              [TIME]
        → responseNotContains: expected no 'fetchedAt' in response but found it
          message  b
          answer   {"fetchedAt": 1}
                     ^^^^^^^^^
          calls    none
      ! gs-get-weather-003  says c                                              [TIME]
        → error: the agent returned HTTP 500 Internal Server Error: boom
      ⚠ gs-get-weather-004  says d                                              [TIME]
        → no assertion ran, so this proves nothing
      ✗ gs-get-weather-005  a description that is much too long for the lin…    [TIME]
        → responseContains: expected 'green' in response but not found
        → responseMatches: expected the response to match /^\d+$/ but it does not
          message  e
          answer   It is ok, \u{1b}[31mred\u{1b}[0m.
          calls    none
    ────────────────────────────────────────────────────────────────────────────────
      2/5 passed | 2 failed | 1 errored | 1 vacuous | 1 skipped assertion
      [TIME] total
      ⚠ assertions skipped for 1 token without a value: {{seed:nothing.here}}

    not passed:
      ✗ gs-get-weather-002 (evals/get-weather.golden.json:17): responseNotContains:
        expected no 'fetchedAt' in response but found it
      ✗ gs-get-weather-005 (evals/get-weather.golden.json:51): responseContains:
        expected 'green' in response but not found
      ! gs-get-weather-003 (evals/get-weather.golden.json:29): the agent returned
        HTTP 500 Internal Server Error: boom

    ----- stderr -----
    run [RUN_ID]: 1 result file in results
    to rerun what did not pass:
      karat run --all-failures --id gs-get-weather-002 --id gs-get-weather-003 --id gs-get-weather-005
    "#);
    insta::assert_snapshot!(project.run(["run", "--all-failures", "--ascii", "--quiet"]).filtered(), @r#"
    exit: 3
    ----- stdout -----
    === get-weather - golden evals =================================================
      FAIL gs-get-weather-002  says b                                           [TIME]
        -> responseNotContains: expected no 'fetchedAt' in response but found it
          message  b
          answer   {"fetchedAt": 1}
                     ^^^^^^^^^
          calls    none
      ERR  gs-get-weather-003  says c                                           [TIME]
        -> error: the agent returned HTTP 500 Internal Server Error: boom
      warn gs-get-weather-004  says d                                           [TIME]
        -> no assertion ran, so this proves nothing
      FAIL gs-get-weather-005  a description that is much too long for th...    [TIME]
        -> responseContains: expected 'green' in response but not found
        -> responseMatches: expected the response to match /^\d+$/ but it does not
          message  e
          answer   It is ok, \u{1b}[31mred\u{1b}[0m.
          calls    none
    --------------------------------------------------------------------------------
      2/5 passed | 2 failed | 1 errored | 1 vacuous | 1 skipped assertion
      [TIME] total
      warn assertions skipped for 1 token without a value: {{seed:nothing.here}}

    not passed:
      FAIL gs-get-weather-002 (evals/get-weather.golden.json:17):
           responseNotContains: expected no 'fetchedAt' in response but found it
      FAIL gs-get-weather-005 (evals/get-weather.golden.json:51): responseContains:
           expected 'green' in response but not found
      ERR  gs-get-weather-003 (evals/get-weather.golden.json:29): the agent returned
           HTTP 500 Internal Server Error: boom

    ----- stderr -----
    "#);
}

#[test]
#[expect(clippy::too_many_lines, reason = "most lines are the expected result")]
fn the_result_matches_its_schema() {
    let project = project()
        .file("tools.json", json!([{"name": "get_weather", "description": "d", "version": "1.0.0"}]))
        .file(
            "evals/get-weather.golden.json",
            json!({"metadata": {"descriptionHash": "000000000000"}, "cases": [
                case("gs-get-weather-001", "m", json!({"responseContains": ["ok", "{{snapshot:x}}"]})),
            ]}),
        )
        .file(
            "agent.json",
            json!({"replies": {"m": {
                "response": "ok", "model": "m-1", "usage": {"inputTokens": 3, "outputTokens": 1, "costUsd": 0.5},
                "toolCalls": [{"name": "t", "success": true, "durationMs": 2, "params": {"p": 1}, "result": [1]}],
            }}}),
        );
    let output = project.run([
        "run",
        "--agent-endpoint",
        "scripted:agent.json",
        "--output-dir",
        "results",
        "--tool-registry-path",
        "tools.json",
    ]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let mut result = only_result(&project, "results");
    let schema: serde_json::Value = serde_json::from_str(&project.run(["schema", "result"]).stdout).unwrap();
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&result).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    for (pointer, placeholder) in [
        ("/runId", json!("[RUN_ID]")),
        ("/timestamp", json!("[TIME]")),
        ("/wallClockMs", json!(0)),
        ("/cases/0/durationMs", json!(0)),
        ("/summary/totalDurationMs", json!(0)),
    ] {
        *result.pointer_mut(pointer).expect(pointer) = placeholder;
    }
    insta::assert_snapshot!(format!("{result:#}"), @r#"
    {
      "runId": "[RUN_ID]",
      "timestamp": "[TIME]",
      "tier": "golden",
      "toolName": "get_weather",
      "agentEndpoint": "scripted:agent.json",
      "metadata": {
        "toolVersion": "1.0.0",
        "descriptionHash": "18ac3e7343f0",
        "registrySize": 1,
        "evalFileHash": "847ea77a5e9c",
        "evalFile": "evals/get-weather.golden.json",
        "tokenizer": "o200k_base"
      },
      "stalenessWarnings": [
        "Evals for get_weather generated against description hash 000000000000, current is 18ac3e7343f0. Results may not reflect current routing contract."
      ],
      "stale": true,
      "warnings": [
        "assertions skipped for 1 token without a value: {{snapshot:x}}"
      ],
      "cases": [
        {
          "id": "gs-get-weather-001",
          "description": "says m",
          "message": "m",
          "passed": true,
          "outcome": "passed",
          "durationMs": 0,
          "assertionsRun": 1,
          "assertionsSkipped": 1,
          "vacuous": false,
          "failures": [],
          "details": {
            "toolsCalled": [
              "t"
            ],
            "responseLength": 2,
            "skippedTokens": [
              "{{snapshot:x}}"
            ],
            "response": "ok",
            "toolCalls": [
              {
                "name": "t",
                "success": true,
                "durationMs": 2.0,
                "params": {
                  "p": 1
                },
                "result": [
                  1
                ]
              }
            ],
            "usage": {
              "inputTokens": 3,
              "outputTokens": 1,
              "costUsd": 0.5
            },
            "model": "m-1",
            "stopReason": null,
            "warnings": [],
            "assertions": [
              {
                "assertion": "responseContains",
                "verdict": "passed"
              }
            ]
          }
        }
      ],
      "skipped": [],
      "summary": {
        "totalCases": 1,
        "passed": 1,
        "failed": 0,
        "errored": 0,
        "vacuous": 0,
        "notRun": 0,
        "skipped": 0,
        "skippedAssertions": 1,
        "totalDurationMs": 0,
        "estimatedCostUsd": 0.5
      },
      "wallClockMs": 0,
      "baselineRunId": null,
      "regressions": [],
      "newPasses": []
    }
    "#);
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:a.json", "outputDir": "from-file", "concurrency": 2}))
        .file("a.json", script(&[("m", "ok")]))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let run = |arguments: &[&str], variable: Option<&str>| {
        let mut command = project.command(["run"].iter().chain(arguments).copied());
        if let Some(value) = variable {
            command = command.env("KARAT_OUTPUT_DIR", value);
        }
        assert_eq!(command.run().code, Some(0));
    };
    run(&[], None);
    run(&[], Some("from-variable"));
    run(&["--output-dir", "from-flag"], Some("from-variable"));
    for folder in ["from-file", "from-variable", "from-flag"] {
        assert_eq!(project.files_in(folder, ".json").len(), 1, "{folder}");
    }
}

#[test]
fn shows_the_location_of_an_unknown_config_key() {
    let project = project().file("karat.json", "{\n  \"agentEndpoint\": null,\n  \"timeoutMS\": 5\n}\n");
    insta::assert_snapshot!(project.run(["run"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × unknown key 'timeoutMS'
       ╭─[karat.json:3:3]
     3 │   "timeoutMS": 5
       ·   ───────────
       ╰────
      help: did you mean 'timeoutMs'?
    "#);
}

#[test]
fn reports_missing_input_with_hints() {
    let project = project();
    insta::assert_snapshot!(project.run(["run"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: folder evals does not exist
    hint: pass eval files or a folder, or run 'karat init' to create the first eval
      file
    ");
    project.write("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    insta::assert_snapshot!(project.run(["run"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: no agent is configured
    hint: pass --agent-endpoint http://localhost:[PORT]/chat, or set 'agentEndpoint'
      in karat.json
    hint: scripted:FILE replies from a file, without an agent
    ");
    insta::assert_snapshot!(project.run(["run", "--agent-endpoint", "scripted:none.json"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot read the script [DIR]/none.json: No such
      file or directory (os error 2)
    ");
    insta::assert_snapshot!(project.run(["run", "--agent-endpoint", "openai:gpt"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: OPENAI_API_KEY is not set, but 'openai' requires a key
    hint: set it in the environment, or in a .env file next to karat.json
    hint: openai-compatible:MODEL, ollama:MODEL and vllm:MODEL do not require a key
    ");
    insta::assert_snapshot!(project.run(["run", "--agent-endpoint", "http://127.0.0.1:9", "--tool-registry-path", "t.json"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot read the tool registry t.json: No such file or directory (os error
      2)
    ");
    insta::assert_snapshot!(project.run(["run", "--agent-endpoint", "http://127.0.0.1:9", "--report", "html=x"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: unknown report format 'html'
    hint: expected one of: junit, markdown, github
    ");
}

#[test]
fn maps_requests_and_replies() {
    let server = ScriptedServer::start(
        json!({"*": {"json": {"out": [{"text": "ok"}], "calls": [{"fn": {"n": "t", "a": "{\"p\": 1}"}}]}}}),
    );
    let project = project()
        .file(
            "karat.json",
            json!({
                "agentEndpoint": server.endpoint(),
                "agent": {
                    "method": "POST",
                    "headers": {"x-tenant": "acme"},
                    "request": {"body": {"messages": [{"role": "user", "content": ""}], "stream": false}, "message": "/messages/0/content"},
                    "response": {"response": "/out/0/text", "toolCalls": "/calls", "toolCall": {"name": "/fn/n", "params": "/fn/a"}},
                },
            }),
        )
        .file(
            "evals/x.golden.json",
            json!([case("gs-x-001", "hello", json!({
                "toolsCalled": ["t"], "responseContains": ["ok"],
                "toolParams": [{"tool": "t", "paramName": "p", "assertion": "equals", "value": 1}],
            }))]),
        );
    let output = project.run(["run", "--output-dir", "results"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let request = server.requests().remove(0);
    assert_eq!(request.body, json!({"messages": [{"role": "user", "content": "hello"}], "stream": false}));
    assert_eq!(request.headers.get("x-tenant").map(String::as_str), Some("acme"));
}

#[test]
fn sends_the_message_in_the_query() {
    let server = ScriptedServer::start(json!({"GET /chat?q=hello+%26+you": {"response": "ok"}}));
    let project = project()
        .file(
            "karat.json",
            json!({"agentEndpoint": server.endpoint(), "agent": {"method": "GET", "request": {"query": "q"}}}),
        )
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "hello & you")]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    project.write("karat.json", json!({"agentEndpoint": server.endpoint(), "agent": {"method": "GET"}}));
    assert_eq!(project.run(["run"]).code, Some(2));
}

#[test]
fn reuses_connections() {
    let server = ScriptedServer::start(json!({"*": {"response": "ok"}}));
    let cases: Vec<_> = (1..=20).map(|number| ok_case(&format!("gs-x-{number:03}"), "m")).collect();
    let project = project().file("evals/x.golden.json", json!(cases));
    assert_eq!(project.run(["run", "--agent-endpoint", &server.endpoint()]).code, Some(0));
    assert_eq!(server.request_count(), 20);
    assert_eq!(server.connections(), 1);
}

#[test]
fn writes_reports() {
    let project =
        project().file("a.json", script(&[("m", "no")])).file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project
        .command([
            "run",
            "--agent-endpoint",
            "scripted:a.json",
            "--report",
            "junit=out/junit.xml",
            "--report",
            "markdown=out/run.md",
            "--report",
            "github=out/commands.txt",
        ])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", project.path().join("summary.md"))
        .run();
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(project.read("out/junit.xml").contains("<failure"));
    assert!(project.read("out/run.md").contains("0/1 passed"));
    assert_eq!(project.read("summary.md"), project.read("out/run.md"));
    let annotation = "::error file=evals/x.golden.json,line=2,title=gs-x-001%3A says m::responseContains: expected 'ok' in response but not found";
    assert!(project.read("out/commands.txt").contains(annotation), "{}", project.read("out/commands.txt"));
    assert!(output.stdout.contains(annotation));
    // The annotation has the details.
    let console = output.stdout.replace(annotation, "");
    assert_eq!(console.matches("expected 'ok' in response").count(), 1, "{console}");
    assert!(!console.contains("not passed:") && !console.contains("      answer   no"), "{console}");
    let plain = project.run(["run", "--agent-endpoint", "scripted:a.json"]).stdout;
    assert!(plain.contains("not passed:") && plain.contains("      answer   no"), "{plain}");
}

#[test]
fn prints_json_and_jsonl() {
    let project =
        project().file("a.json", script(&[("m", "no")])).file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run", "--agent-endpoint", "scripted:a.json", "--format", "json"]);
    assert_eq!(output.code, Some(1));
    let document: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(document["totals"]["failed"], 1);
    assert_eq!(document["suites"][0], newest_result(&project, "evals/results"));
    let lines = project.run(["run", "--agent-endpoint", "scripted:a.json", "--format", "jsonl"]).stdout;
    let events: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(events, ["runStarted", "caseFinished", "suiteFinished", "runFinished"]);
}

#[test]
fn reads_snapshots_from_a_file_a_command_or_a_url() {
    let server = ScriptedServer::start(json!({"GET /snapshot": {"price": 7}}));
    let project =
        project().file("a.json", script(&[("m", "costs 7")])).file("snapshot.json", json!({"price": 7})).file(
            "evals/x.golden.json",
            json!([case("gs-x-001", "m", json!({"responseContains": ["costs {{snapshot:price}}"]}))]),
        );
    let sources = [
        json!({"file": "snapshot.json"}),
        json!({"command": ["cat", "snapshot.json"]}),
        json!({"url": format!("{}/snapshot", server.base_url())}),
    ];
    for source in sources {
        project.write(
            "karat.json",
            json!({"agentEndpoint": "scripted:a.json", "snapshotEnabled": true, "snapshot": source}),
        );
        let output = project.run(["run", "--strict"]);
        assert_eq!(output.code, Some(0), "{source}: {}", output.both());
        assert_eq!(newest_result(&project, "evals/results")["cases"][0]["assertionsRun"], 1);
    }
    let disabled = project.run(["run", "--snapshot-enabled=false"]);
    assert!(disabled.stdout.contains("1 vacuous"), "{}", disabled.both());
    project.write(
        "karat.json",
        json!({"agentEndpoint": "scripted:a.json", "snapshotEnabled": true, "snapshot": {"command": ["sh", "-c", "echo broken >&2; exit 3"]}}),
    );
    insta::assert_snapshot!(project.run(["run"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot capture the snapshot with 'sh': exit status: 3: broken
    ");
}

#[test]
fn strict_fails_vacuous_cases() {
    let project = project()
        .file("a.json", script(&[("m", "x")]))
        .file("evals/x.golden.json", json!([case("gs-x-001", "m", json!({}))]));
    let lenient = project.run(["run", "--agent-endpoint", "scripted:a.json"]);
    assert_eq!(lenient.code, Some(0));
    assert!(lenient.stdout.contains("⚠ gs-x-001"), "{}", lenient.stdout);
    let strict = project.run(["run", "--agent-endpoint", "scripted:a.json", "--strict"]);
    assert_eq!(strict.code, Some(1));
    assert!(strict.stdout.contains("strict: no assertion ran"), "{}", strict.stdout);
}

#[test]
fn fail_fast_stops_and_counts_the_remaining_cases() {
    let server = ScriptedServer::start(json!({"bad": {"response": "no"}, "*": {"response": "ok"}}));
    let project = project().file(
        "evals/x.golden.json",
        json!([
            ok_case("gs-x-001", "m"),
            ok_case("gs-x-002", "bad"),
            ok_case("gs-x-003", "m"),
            ok_case("gs-x-004", "m")
        ]),
    );
    let output = project.run(["run", "--agent-endpoint", &server.endpoint(), "--fail-fast"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("1/2 passed | 1 failed | 2 not run"), "{}", output.stdout);
    assert_eq!(server.request_count(), 2);
    let result = only_result(&project, "evals/results");
    assert_eq!((&result["summary"]["notRun"], &result["summary"]["totalCases"]), (&json!(2), &json!(2)));
}

#[test]
fn a_project_folder_uses_its_own_config() {
    let project = project()
        .file("shop/karat.json", json!({"agentEndpoint": "scripted:a.json", "outputDir": "out"}))
        .file("shop/a.json", script(&[("m", "ok")]))
        .file("shop/evals/x.golden.json", json!([ok_case("gs-x-001", "m")]))
        .file("shop/evals/y.json", json!([ok_case("gs-x-001", "m")]))
        .file("shop/out/old.golden.json", "not an eval file");
    insta::assert_snapshot!(project.run(["run", "shop"]).filtered(), @"
    exit: 0
    ----- stdout -----
    ═══ x — golden evals ══════════════════════════════════════════════
      ✓ gs-x-001  says m                                           [TIME]
    ───────────────────────────────────────────────────────────────────
      1/1 passed | 0 failed | 0 skipped assertions | [TIME] total

    ═══ y — golden evals ══════════════════════════════════════════════
      ✓ gs-x-001  says m                                           [TIME]
    ───────────────────────────────────────────────────────────────────
      1/1 passed | 0 failed | 0 skipped assertions | [TIME] total

    2 suites: 2/2 passed | 0 failed | 0 skipped assertions
    ----- stderr -----
    run [RUN_ID]: 2 result files in shop/out
    ");
    // A result for each eval file, with and without a tier in its name, and the old file.
    assert_eq!(project.files_in("shop/out", ".json").len(), 3);
}

#[test]
fn files_of_the_same_tool_and_tier_have_separate_results() {
    let project = project()
        .file("a.json", script(&[("m", "ok")]))
        .file("evals/one/x.golden.json", json!([ok_case("gs-x-001", "m")]))
        .file("evals/two/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    assert_eq!(project.run(["run", "--agent-endpoint", "scripted:a.json"]).code, Some(0));
    assert_eq!(project.files_in("evals/results", ".json").len(), 2);
}

#[test]
fn runs_the_tool_forge_examples() {
    let script = json!({"replies": {}, "otherwise": {"response": "Paris", "toolCalls": [{"name": "get_weather", "success": true, "params": {}}]}});
    let project = project()
        .file("a.json", script)
        .file("evals/get-weather.golden.json", include_str!("fixtures/tool-forge/get-weather.golden.json"))
        .file("evals/get-weather.labeled.json", include_str!("fixtures/tool-forge/get-weather.labeled.json"));
    let output = project.run(["run", "--agent-endpoint", "scripted:a.json"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("unused stubs: the agent runs real tools"), "{}", output.stdout);
    let cases: usize = project
        .files_in("evals/results", ".json")
        .iter()
        .map(|path| serde_json::from_slice::<serde_json::Value>(&std::fs::read(path).unwrap()).unwrap())
        .map(|result| result["cases"].as_array().unwrap().len())
        .sum();
    assert_eq!(cases, 15);
}
