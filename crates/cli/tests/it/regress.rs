//! `karat regress`.

use karat_json::canonical::canonical_hash;
use karat_testkit::project::{Output, TempProject};
use serde_json::{Value, json};

use crate::support::{newest_result, ok_case, project, script};

const FILE: &str = "evals/get-weather.regression.json";
const ARCHIVE: &str = "evals/get-weather.regression.archived.json";

fn project_with_tools() -> TempProject {
    let tools = json!([
        {"name": "get_weather", "description": "Fetches the weather.", "version": "1.2.0"},
        {"name": "get_forecast", "description": "Fetches the forecast."},
    ]);
    project().file("karat.json", json!({"toolRegistryPath": "tools.json"})).file("tools.json", tools)
}

/// Masks times and hashes in snapshots.
fn mask_times_and_hashes() -> insta::internals::SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[NOW]");
    settings.add_filter(r#""[0-9a-f]{12}""#, r#""[HASH]""#);
    settings.bind_to_scope()
}

/// Runs a command line with shell quoting.
fn run_line(project: &TempProject, command: &str) -> Output {
    project.run(shell_words::split(command).unwrap())
}

fn add(project: &TempProject, message: &str) -> Output {
    project.run([
        "regress",
        "add",
        "get_weather",
        "--bug-ref",
        "#7",
        "--message",
        message,
        "--tools-called",
        "get_weather",
    ])
}

#[test]
fn a_planned_case_has_no_control_characters() {
    let message = "a\u{202e}\u{9b}31m";
    let output = project_with_tools().run([
        "regress",
        "add",
        "get_weather",
        "--bug-ref",
        "#7",
        "--message",
        message,
        "--tools-called",
        "get_weather",
        "--dry-run",
    ]);
    assert!(!output.stdout.contains(['\u{202e}', '\u{9b}']), "{}", output.both());
    let case: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(case["input"]["message"], message, "the value is unchanged");
}

#[test]
fn adds_a_case_to_a_new_file() {
    let _settings = mask_times_and_hashes();
    let project = project_with_tools();
    let command = "regress add get-weather --bug-ref '#7' --message 'Weather in Oslo?' --description 'asked twice' \
                   --tools-acceptable get_weather --tools-acceptable get_weather,get_forecast --response-contains rain \
                   --response-not-contains undefined --no-tool-errors --expect '{\"maxToolCalls\": 2}'";
    insta::assert_snapshot!(run_line(&project, &format!("{command} --tools-not-called send_mail")).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: the registry has no tool 'send_mail' (unknown-tool)
    hint: nothing was written: a regression case cannot be edited later
    ");
    insta::assert_snapshot!(run_line(&project, command).filtered(), @"
    exit: 0
    ----- stdout -----
    added rg-get-weather-001 to evals/get-weather.regression.json (new file)
    ----- stderr -----
    ");
    insta::assert_snapshot!(project.read(FILE), @r##"
    {
      "metadata": {
        "toolName": "get_weather",
        "generatedAt": "[NOW]",
        "generatedBy": "karat regress",
        "tier": "regression",
        "caseHashes": {
          "rg-get-weather-001": "[HASH]"
        }
      },
      "cases": [
        {
          "id": "rg-get-weather-001",
          "description": "regression — asked twice",
          "difficulty": "regression",
          "createdAt": "[NOW]",
          "bugRef": "#7",
          "input": {
            "message": "Weather in Oslo?"
          },
          "expect": {
            "toolsAcceptable": [["get_weather"], ["get_weather", "get_forecast"]],
            "responseContains": ["rain"],
            "responseNotContains": ["undefined"],
            "noToolErrors": true,
            "maxToolCalls": 2
          }
        }
      ]
    }
    "##);
    assert_eq!(project.run(["check"]).code, Some(0));
    insta::assert_snapshot!(run_line(&project, command).filtered(), @"
    exit: 0
    ----- stdout -----
    added rg-get-weather-002 to evals/get-weather.regression.json
    ----- stderr -----
    warning: the message is the same as that of 'rg-get-weather-001' (same-prompt)
    ");
}

#[test]
fn continues_ids_and_stores_hashes() {
    let _settings = mask_times_and_hashes();
    let project = project_with_tools();
    assert_eq!(add(&project, "one").code, Some(0));
    let first = project.read(FILE);
    insta::assert_snapshot!(add(&project, "two").filtered(), @"
    exit: 0
    ----- stdout -----
    added rg-get-weather-002 to evals/get-weather.regression.json
    ----- stderr -----
    ");
    let file = project.read_json(FILE);
    for case in file["cases"].as_array().unwrap() {
        assert_eq!(file["metadata"]["caseHashes"][case["id"].as_str().unwrap()], canonical_hash(case));
    }
    // Existing lines change only by a comma.
    let second = project.read(FILE);
    let mut lines = second.lines();
    assert!(
        first.lines().all(|line| lines.any(|other| other == line || other.strip_suffix(',') == Some(line))),
        "{second}"
    );
    assert_eq!(project.run(["check"]).code, Some(0));
}

#[test]
fn check_fails_on_an_edited_case() {
    let _settings = mask_times_and_hashes();
    let project = project_with_tools();
    add(&project, "one");
    assert_eq!(project.run(["check"]).code, Some(0));
    project.write(FILE, project.read(FILE).replace("\"one\"", "\"won\""));
    let output = project.run(["check"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("was edited after it was created"), "{}", output.stdout);
}

#[test]
fn check_fails_on_a_removed_but_not_on_an_archived_case() {
    let _settings = mask_times_and_hashes();
    let project = project_with_tools();
    add(&project, "one");
    add(&project, "two");
    let before = project.read(FILE);
    let mut file = project.read_json(FILE);
    file["cases"].as_array_mut().unwrap().remove(0);
    project.write(FILE, &file);
    let output = project.run(["check"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("(removed-regression)"), "{}", output.stdout);
    project.write(FILE, before);
    insta::assert_snapshot!(project.run(["regress", "archive", "rg-get-weather-001", "--reason", "the tool was split"]).filtered(), @"
    exit: 0
    ----- stdout -----
    archived rg-get-weather-001 in evals/get-weather.regression.archived.json
    ----- stderr -----
    ");
    insta::assert_snapshot!(project.read(ARCHIVE), @r##"
    {
      "archived": [
        {
          "archivedAt": "[NOW]",
          "reason": "the tool was split",
          "hash": "[HASH]",
          "case": {
            "id": "rg-get-weather-001",
            "description": "regression — #7",
            "difficulty": "regression",
            "createdAt": "[NOW]",
            "bugRef": "#7",
            "input": {
              "message": "one"
            },
            "expect": {
              "toolsCalled": ["get_weather"]
            }
          }
        }
      ]
    }
    "##);
    assert_eq!(project.read_json(FILE)["metadata"]["caseHashes"].as_object().unwrap().len(), 1);
    let output = project.run(["check"]);
    assert_eq!((output.code, output.stdout.contains("1 file, 1 case")), (Some(0), true), "{}", output.stdout);
    // Ids are not reused.
    project.run(["regress", "archive", "rg-get-weather-002"]);
    assert_eq!(project.read_json(FILE)["cases"], json!([]));
    let run = project.run(["run", "--agent-endpoint", "scripted:none.json"]);
    assert!(!run.stderr.contains("has no cases"), "{}", run.both());
    assert!(add(&project, "three").stdout.contains("rg-get-weather-003"));
    insta::assert_snapshot!(project.run(["regress", "archive", "rg-get-weather-001"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'rg-get-weather-001' of evals/get-weather.regression.json is already
      archived
    ");
    insta::assert_snapshot!(project.run(["regress", "archive", "rg-get-weather-03"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: no eval file has a regression case 'rg-get-weather-03'
    hint: did you mean 'rg-get-weather-003'?
    ");
}

#[test]
fn interrupted_archiving_can_be_repeated() {
    let _settings = mask_times_and_hashes();
    let project = project_with_tools();
    add(&project, "one");
    let before = project.read(FILE);
    // The archive cannot be written: nothing changes.
    std::fs::create_dir(project.path().join(ARCHIVE)).unwrap();
    let output = project.run(["regress", "archive", "rg-get-weather-001"]);
    assert_eq!((output.code, project.read(FILE)), (Some(2), before.clone()), "{}", output.stderr);
    std::fs::remove_dir(project.path().join(ARCHIVE)).unwrap();
    assert_eq!(project.run(["regress", "archive", "rg-get-weather-001"]).code, Some(0));
    // As after a kill between the two writes.
    project.write(FILE, before);
    assert_eq!(project.run(["regress", "archive", "rg-get-weather-001"]).code, Some(0));
    assert_eq!(project.read_json(ARCHIVE)["archived"].as_array().unwrap().len(), 1);
    assert_eq!(project.read_json(FILE)["cases"], json!([]));
}

#[test]
fn seals_cases_without_changing_existing_hashes() {
    let _settings = mask_times_and_hashes();
    let case = |id: &str| json!({"id": id, "difficulty": "regression", "input": {"message": id}, "expect": {"responseNonEmpty": true}});
    let cases = json!([case("rg-x-001"), case("rg-x-002")]);
    let project = project()
        .file(
            "evals/x.regression.json",
            json!({"metadata": {"caseHashes": {"rg-x-001": "000000000000"}}, "cases": cases}),
        )
        .file("evals/y.regression.json", json!({"cases": [case("rg-y-001")]}));
    assert!(project.run(["check"]).stdout.contains("(unsealed-regression)"));
    insta::assert_snapshot!(project.run(["regress", "seal"]).filtered(), @"
    exit: 0
    ----- stdout -----
    sealed rg-x-002 in evals/x.regression.json
    sealed rg-y-001 in evals/y.regression.json
    ----- stderr -----
    ");
    insta::assert_snapshot!(project.run(["regress", "seal"]).filtered(), @"
    exit: 0
    ----- stdout -----
    nothing to seal: no regression case lacks a hash
    ----- stderr -----
    ");
    let hashes = project.read_json("evals/x.regression.json")["metadata"]["caseHashes"].clone();
    assert_eq!(hashes, json!({"rg-x-001": "000000000000", "rg-x-002": canonical_hash(&case("rg-x-002"))}));
    assert!(project.read("evals/y.regression.json").starts_with("{\n \"metadata\": {"));
    project.write("evals/z.regression.json", json!([case("rg-z-001")]));
    insta::assert_snapshot!(project.run(["regress", "seal"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: evals/z.regression.json: the file is a bare list of cases, which cannot
      store their hashes
    hint: wrap the list in an object: {"metadata": {}, "cases": [...]}
    "#);
}

fn project_with_failed_run() -> TempProject {
    let golden = json!([
        {"id": "gs-get-weather-001", "description": "says rain", "input": {"message": "rain?"}, "stubs": {"get_weather": {"rain": true}},
         "expect": {"toolsCalled": [], "responseContains": ["rain"], "responseNonEmpty": true}},
        {"id": "gs-get-weather-002", "input": {"message": "sun?"}, "expect": {"responseContains": ["sun"]}},
        {"id": "gs-get-weather-003", "input": {"message": "snow?"}, "expect": {"responseContains": ["{{snapshot:snow}}"], "responseNonEmpty": true}},
    ]);
    let project = project_with_tools()
        .file("snapshot.json", json!({"snow": "white"}))
        .file("agent.json", script(&[("rain?", "dry"), ("sun?", "the sun"), ("snow?", "none")]))
        .file("evals/get-weather.golden.json", golden);
    let run = project.run(["run", "--agent-endpoint", "scripted:agent.json", "--snapshot-file", "snapshot.json"]);
    assert_eq!(run.code, Some(1), "{}", run.both());
    project
}

#[test]
fn adds_a_failed_case_of_a_run() {
    let _settings = mask_times_and_hashes();
    let project = project_with_failed_run();
    let run_id = newest_result(&project, "evals/results")["runId"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(project.run(["regress", "add", "--from-run", &run_id, "--case", "gs-get-weather-001", "--bug-ref", "abc123", "--dry-run"]).filtered(), @r#"
    exit: 0
    ----- stdout -----
    {
      "id": "rg-get-weather-001",
      "description": "regression — responseContains: expected 'rain' in response but not found",
      "difficulty": "regression",
      "createdAt": "[NOW]",
      "bugRef": "abc123",
      "input": {
        "message": "rain?"
      },
      "stubs": {
        "get_weather": {
          "rain": true
        }
      },
      "expect": {
        "toolsCalled": [],
        "responseContains": [
          "rain"
        ],
        "responseNonEmpty": true
      }
    }
    ----- stderr -----
    warning: every 'responseContains' value is already in the message, so an agent
      that only echoes it passes (proof-echoes-prompt)
    rg-get-weather-001 would be added to evals/get-weather.regression.json (new
      file)
    "#);
    assert!(!project.path().join(FILE).exists());
    insta::assert_snapshot!(project.run(["regress", "add", "--from-run", "latest", "--case", "gs-get-weather-001", "--bug-ref", "abc123", "--format", "json"]).filtered(), @r#"
    exit: 0
    ----- stdout -----
    {
      "written": true,
      "cases": [
        {
          "id": "rg-get-weather-001",
          "path": "evals/get-weather.regression.json",
          "hash": "[HASH]",
          "case": {
            "id": "rg-get-weather-001",
            "description": "regression — responseContains: expected 'rain' in response but not found",
            "difficulty": "regression",
            "createdAt": "[NOW]",
            "bugRef": "abc123",
            "input": {
              "message": "rain?"
            },
            "stubs": {
              "get_weather": {
                "rain": true
              }
            },
            "expect": {
              "toolsCalled": [],
              "responseContains": [
                "rain"
              ],
              "responseNonEmpty": true
            }
          }
        }
      ]
    }
    ----- stderr -----
    warning: every 'responseContains' value is already in the message, so an agent
      that only echoes it passes (proof-echoes-prompt)
    "#);
    assert_eq!(project.read_json(FILE)["cases"][0]["input"]["message"], "rain?");
}

#[test]
fn adds_a_failed_case_only_once() {
    let project = project_with_failed_run();
    let add = |flags: &[&str]| {
        let source = ["regress", "add", "--from-run", "latest", "--case", "gs-get-weather-001", "--bug-ref", "#42"];
        project.run(source.into_iter().chain(flags.iter().copied()))
    };
    let first = add(&[]);
    assert!(first.stdout.contains("added rg-get-weather-001"), "{}", first.both());
    let before = project.read(FILE);
    for flags in [&[][..], &["--file", FILE], &["--dry-run"]] {
        let again = add(flags);
        assert_eq!(again.code, Some(0), "{}", again.both());
        let covered = "rg-get-weather-001 in evals/get-weather.regression.json already covers gs-get-weather-001";
        assert!(again.stdout.contains(covered), "{}", again.both());
        assert!(again.stderr.contains("nothing was written"), "{}", again.both());
    }
    assert_eq!(project.read(FILE), before);
    let other = add(&["--response-contains", "drizzle"]);
    assert!(other.stdout.contains("added rg-get-weather-002"), "{}", other.both());
    // Running the new cases fails too, and the case of the regression file covers itself.
    project.run(["run", FILE, "--agent-endpoint", "scripted:agent.json"]);
    let own =
        project.run(["regress", "add", "--from-run", "latest", "--case", "rg-get-weather-001", "--bug-ref", "#42"]);
    assert!(own.stdout.contains("already covers rg-get-weather-001"), "{}", own.both());
}

#[test]
fn rejects_cases_that_do_not_show_a_bug() {
    let _settings = mask_times_and_hashes();
    let project = project_with_failed_run();
    let from = |case: &str, more: &[&str]| {
        let arguments = ["regress", "add", "--from-run", "latest", "--bug-ref", "#1", "--case", case];
        project.run(arguments.iter().chain(more).copied())
    };
    insta::assert_snapshot!(from("gs-get-weather-002", &[]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'gs-get-weather-002' passed in run [RUN_ID],
      so it does not show a bug
    hint: pass --even-if-passed to use it anyway
    ");
    insta::assert_snapshot!(from("gs-get-weather-02", &[]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: run [RUN_ID] has no case 'gs-get-weather-02'
    hint: did you mean 'gs-get-weather-002'?
    ");
    insta::assert_snapshot!(from("gs-get-weather-003", &[]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'responseContains' uses a {{snapshot:...}} token: a regression case must
      have only stable values
    hint: pass the original value, for example --response-contains VALUE
    ");
    insta::assert_snapshot!(from("gs-get-weather-003", &["--response-contains", "white"]).filtered(), @"
    exit: 0
    ----- stdout -----
    added rg-get-weather-001 to evals/get-weather.regression.json (new file)
    ----- stderr -----
    ");
    assert_eq!(from("gs-get-weather-002", &["--even-if-passed"]).code, Some(0));
    insta::assert_snapshot!(project.run(["regress", "add", "--from-run", "nothing", "--case", "x", "--bug-ref", "#1"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'nothing' is neither a run in evals/results nor a result file
    hint: run 'karat runs' to list runs; 'latest', a unique prefix of an id or a
      path works too
    ");
}

#[test]
fn rejects_an_invalid_case_without_writing() {
    let _settings = mask_times_and_hashes();
    let project = project_with_tools();
    let base = ["regress", "add", "get_weather", "--bug-ref", "#1", "--message", "m"];
    let with = |more: &[&'static str]| project.run(base.into_iter().chain(more.iter().copied()));
    insta::assert_snapshot!(with(&["--response-matches", "("]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × rg-get-weather-001: 'responseMatches'[0] is not a valid regular
      │ expression: unterminated capturing group
        ╭─[evals/get-weather.regression.json:22:29]
     22 │         "responseMatches": ["("]
        ·                             ───
        ╰────
    error: nothing was written: the new case is invalid
    "#);
    insta::assert_snapshot!(with(&[]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: the case would always pass: it has no assertion that can fail
    hint: add assertions, for example --tools-called or --response-contains; see
      --help
    ");
    insta::assert_snapshot!(with(&["--response-contains", "{{snapshot:x}}"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'responseContains' uses a {{snapshot:...}} token: a regression case must
      have only stable values
    ");
    insta::assert_snapshot!(with(&["--expect", "[]"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: --expect must be a JSON object
    ");
    assert_eq!(with(&["--tools-called", "a", "--tools-acceptable", "b"]).code, Some(2));
    assert!(!project.path().join("evals").exists());
    insta::assert_snapshot!(project.run(["regress", "add", "get_wether", "--bug-ref", "#1", "--message", "m", "--no-tool-errors"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: unknown tool 'get_wether'
    hint: did you mean 'get_weather'?
    ");
}

#[test]
fn finds_an_existing_regression_file() {
    let _settings = mask_times_and_hashes();
    let project = project_with_tools()
        .file("evals/old/weather.regression.json", json!({"metadata": {"toolName": "get_weather"}, "cases": []}));
    insta::assert_snapshot!(add(&project, "one").filtered(), @"
    exit: 0
    ----- stdout -----
    added rg-get-weather-001 to evals/old/weather.regression.json
    ----- stderr -----
    ");
    project.write("evals/get-weather.regression.json", json!([]));
    insta::assert_snapshot!(add(&project, "two").filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'get_weather' has several regression files:
      evals/get-weather.regression.json, evals/old/weather.regression.json
    hint: pass --file to choose one
    ");
    let bare =
        ["regress", "add", "get_weather", "--bug-ref", "#7", "--message", "m", "--no-tool-errors", "--file", FILE];
    insta::assert_snapshot!(project.run(bare).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: evals/get-weather.regression.json: the file is a bare list of cases,
      which cannot store their hashes
    hint: wrap the list in an object: {"metadata": {}, "cases": [...]}
    "#);
}

#[test]
fn archives_only_regression_cases() {
    let project = project().file("evals/x.golden.json", json!({"cases": [ok_case("gs-x-001", "m")]}));
    insta::assert_snapshot!(project.run(["regress", "archive", "gs-x-001"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: no eval file has a regression case 'gs-x-001'
    ");
    insta::assert_snapshot!(project.run(["regress", "archive", "gs-x-001", "--file", "evals/x.golden.json"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'gs-x-001' of evals/x.golden.json is not a regression case
    hint: other cases can be edited or removed directly
    ");
    insta::assert_snapshot!(project.run(["regress", "archive", "gs-x-002", "--file", "evals/x.golden.json"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: evals/x.golden.json: no case 'gs-x-002'
    ");
}

#[test]
fn preserves_formatting() {
    let text = "{\r\n\t\"metadata\": { \"toolName\": \"get_weather\" },\r\n\t\"cases\": [\r\n\t]\r\n}";
    let project = project_with_tools().file(FILE, text);
    assert_eq!(add(&project, "one").code, Some(0));
    let written = project.read(FILE);
    assert!(
        written.starts_with("{\r\n\t\"metadata\": { \"toolName\": \"get_weather\", \"caseHashes\": {"),
        "{written}"
    );
    assert!(written.contains("\r\n\t\t{\r\n\t\t\t\"id\": \"rg-get-weather-001\",\r\n"), "{written}");
    assert!(written.lines().count() > 10 && !written.replace("\r\n", "").contains('\n') && written.ends_with('}'));
}

#[test]
fn archives_and_reports_match_their_schemas() {
    let _settings = mask_times_and_hashes();
    let project = project_with_tools();
    let assert_matches_schema = |schema: &str, value: &Value| {
        let schema: Value = serde_json::from_str(&project.run(["schema", schema]).stdout).unwrap();
        let errors: Vec<String> =
            jsonschema::validator_for(&schema).unwrap().iter_errors(value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
    };
    add(&project, "one");
    let archived = project.run(["regress", "archive", "rg-get-weather-001", "--format", "json"]);
    assert_matches_schema("regress-report", &serde_json::from_str(&archived.stdout).unwrap());
    assert_matches_schema("regression-archive", &project.read_json(ARCHIVE));
}
