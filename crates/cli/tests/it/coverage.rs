//! `karat coverage`.

use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::support::{case, project};

/// Creates a project with three tools, two of which are easily confused.
fn travel_project() -> TempProject {
    let tools = json!([
        {"name": "get_weather", "description": "Tells the weather now.", "version": "2.0.0"},
        {"name": "get_forecast", "description": "Tells the weather to come."},
        {"name": "book_flight", "description": "Books a flight."},
    ]);
    let map = json!({
        "get_weather": {"overlaps": ["get_forecast"]},
        "book_flight": {"overlaps": ["get_weather"], "clusters": [["get_weather", "get_forecast", "book_flight"]]},
    });
    project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json", "toolRegistryPath": "tools.json"}))
        .file("tools.json", tools)
        .file("evals/overlap-map.json", map)
}

fn labeled(id: &str, difficulty: &str, message: &str, expect: Value) -> Value {
    let mut case = case(id, message, expect);
    case["difficulty"] = json!(difficulty);
    case
}

fn with_cases(project: TempProject) -> TempProject {
    let golden = json!({"metadata": {"toolName": "get_weather", "toolVersion": "1.0.0"}, "cases": [
        case("gs-get-weather-001", "now", json!({"toolsCalled": ["get_weather"]})),
        case("gs-get-weather-002", "today", json!({"toolsCalled": ["get_weather"]})),
    ]});
    let labeled = json!([
        labeled(
            "ls-get-weather-001",
            "ambiguous",
            "umbrella",
            json!({"toolsAcceptable": [["get_weather"], ["get_forecast"]]})
        ),
        labeled("ls-get-weather-002", "edge", "joke", json!({"toolsCalled": [], "toolsNotCalled": ["get_wether"]})),
    ]);
    project.file("evals/get-weather.golden.json", golden).file("evals/get-weather.labeled.json", labeled)
}

fn calls(tools: &[&str]) -> Value {
    let calls: Vec<Value> = tools.iter().map(|tool| json!({"name": tool, "params": {}})).collect();
    json!({"response": "ok", "toolCalls": calls})
}

fn coverage_json(project: &TempProject, arguments: &[&str]) -> Value {
    let output = project.run(["coverage", "--format", "json"].iter().chain(arguments));
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.both()))
}

#[test]
fn reports_missing_cases_with_suggestions() {
    insta::assert_snapshot!(with_cases(travel_project()).run(["coverage"]).filtered(), @"
    exit: 0
    ----- stdout -----
    Coverage of 3 tools by 2 eval files, 4 cases

      ⚠ tested    2/3  tools that a case targets or expects
      ⚠ golden    0/3  tools with 5 golden cases or more
      ⚠ labeled   0/3  tools with enough labeled cases of each difficulty
      ⚠ overlaps  1/2  declared overlaps with an ambiguous case
      ⚠ clusters  0/1  declared clusters with a case that needs all tools
      ⚠ fresh     0/2  eval files that match their current tool
      ⚠ known     1/2  eval files whose tools are all in the registry

                              straight-  ambi-        over-  clus-
        tool          golden    forward  guous  edge   laps   ters  stale
      ✗ book_flight   never tested
      ⚠ get_forecast     0/5       0/13   0/28   0/6    1/1    0/1
      ⚠ get_weather      2/5       0/13   1/30   1/6    1/2    0/1      1

      ⚠ 1 overlap has no ambiguous case
        write one whose toolsAcceptable names both tools
          book_flight / get_weather

      ⚠ 1 cluster has no case with all tools
        write a labeled case with all its tools in one set
          book_flight, get_forecast, get_weather

      ⚠ 1 eval file is stale
        review the cases, then update the file's metadata
          evals/get-weather.golden.json: written for version 1.0.0 of get_weather,
            which is now 2.0.0

      ⚠ 1 eval file may be stale
        add descriptionHash to the metadata ('karat tools -v' shows it), or run
        'karat tools lock' to create a lock
          evals/get-weather.labeled.json: no descriptionHash and no lock

      ⚠ 1 mention of tools that are not in the registry
        fix the name, or add the tool
          evals/get-weather.labeled.json: ls-get-weather-002 names 'get_wether'
            (did you mean 'get_weather'?)

      No stored results to measure confusion.
    ----- stderr -----
    ");
}

#[test]
fn lists_the_worst_confusion_first() {
    let replies = json!({"replies": {
        "now": calls(&["get_forecast"]), "today": calls(&["get_forecast"]),
        "umbrella": calls(&["book_flight"]), "joke": calls(&[]),
    }});
    let project = with_cases(travel_project()).file("agent.json", replies);
    project.run(["run"]);
    let text = project.run(["coverage"]).filtered_stdout();
    let (_, confusion) = text.split_once("\nConfusion").expect("a confusion section");
    insta::assert_snapshot!(confusion, @"
    in 4 answers from 2 results
     expected      called instead  times  rate
     get_weather → get_forecast        2   67%
     get_weather → book_flight         1   33%

     expected (rows), called (columns)
                        1    2    3
     1 get_weather      .    2    1
     2 get_forecast     .    .    .
     3 book_flight      .    .    .
    ");
    let matrix = &coverage_json(&project, &[])["confusion"];
    assert_eq!(
        matrix["worst"][0],
        json!({"expected": "get_weather", "called": "get_forecast", "count": 2, "rate": 2.0 / 3.0, "declared": true})
    );

    // The newest answer to each case counts, even if the newest run selected only some cases.
    project.write("agent.json", json!({"replies": {"now": calls(&["get_weather"])}}));
    project.run(["run", "--id", "gs-get-weather-001"]);
    let count = |arguments: &[&str]| coverage_json(&project, arguments)["confusion"]["worst"][0]["count"].clone();
    assert_eq!((count(&[]), count(&["--all-runs"])), (json!(1), json!(2)));
    let matrix = &coverage_json(&project, &[])["confusion"];
    assert_eq!((&matrix["answers"], matrix["runIds"].as_array().map(Vec::len)), (&json!(4), Some(2)));
    assert_eq!(coverage_json(&project, &["--all-runs"])["confusion"]["answers"], json!(5));
    let newest = matrix["runIds"][1].as_str().unwrap();
    assert_eq!(coverage_json(&project, &["--run", newest])["confusion"]["answers"], json!(1));
    assert_eq!(coverage_json(&project, &["--run", "latest"])["confusion"]["answers"], json!(1));

    // Results of another version of the file are left out: its expectations are unknown.
    project
        .write("evals/get-weather.golden.json", json!([case("gs-get-weather-001", "now", json!({"toolsCalled": []}))]));
    let matrix = &coverage_json(&project, &[])["confusion"];
    assert_eq!((&matrix["answers"], &matrix["leftOut"]["changedResults"]), (&json!(2), &json!(2)));
    insta::assert_snapshot!(project.run(["coverage", "--run", "nothing"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'nothing' is neither a run in evals/results nor a result file
    hint: run 'karat runs' to list runs; 'latest', a unique prefix of an id or a
      path works too
    ");
}

#[test]
fn counts_every_trial_with_an_answer() {
    let server = karat_testkit::server::ScriptedServer::start(json!({
        "now": {"sequence": [calls(&["get_weather"]), calls(&["get_forecast"]), {"status": 500, "raw": "boom"}]},
    }));
    let project = travel_project().file(
        "evals/get-weather.golden.json",
        json!([case("gs-get-weather-001", "now", json!({"toolsCalled": ["get_weather"]}))]),
    );
    project.run(["run", "--trials", "3", "--agent-endpoint", &server.endpoint()]);
    let matrix = &coverage_json(&project, &[])["confusion"];
    assert_eq!((&matrix["answers"], &matrix["worst"][0]["count"]), (&json!(2), &json!(1)));
    assert_eq!(matrix["leftOut"]["withoutAnswer"], json!(1));
}

/// Results of other runners have fewer fields in another order, and the folder can contain other files.
#[test]
fn counts_results_that_are_left_out() {
    let suite = json!([case("gs-get-weather-001", "now", json!({"toolsCalled": ["get_weather"]}))]);
    let project = travel_project().file("evals/get-weather.golden.json", &suite);
    let bytes = std::fs::read(project.path().join("evals/get-weather.golden.json")).unwrap();
    let hash = karat_json::hash::short_hash(&bytes);
    let foreign = |metadata: Value, details: Value| {
        json!({
            "cases": [
                {"id": "gs-get-weather-001", "passed": true, "details": details},
                {"id": "gs-get-weather-999", "passed": true, "details": {"toolsCalled": ["x"]}},
            ],
            "metadata": metadata, "tier": "golden", "toolName": "get_weather", "runId": "r-1",
        })
    };
    let called = json!({"toolsCalled": ["book_flight"]});
    let project = project
        .file("evals/results/same.json", foreign(json!({"evalFileHash": hash}), called.clone()))
        .file("evals/results/silent.json", foreign(json!({"evalFileHash": hash}), json!("none")))
        .file("evals/results/other.json", foreign(json!({"evalFileHash": "0123456789ab"}), called.clone()))
        .file("evals/results/unhashed.json", foreign(json!({}), called))
        .file("evals/results/rubric.json", json!({"runId": "r-2", "tier": "rubric", "cases": []}))
        .file("evals/results/deep.json", "[".repeat(100_000))
        .file("evals/results/empty.json", "");
    let matrix = &coverage_json(&project, &["--all-runs"])["confusion"];
    assert_eq!((&matrix["answers"], &matrix["results"]), (&json!(1), &json!(2)));
    assert_eq!((&matrix["worst"][0]["called"], &matrix["worst"][0]["declared"]), (&json!("book_flight"), &json!(true)));
    let left_out = json!({
        "changedResults": 0, "unhashedResults": 1, "otherResults": 1, "unreadableResults": 2,
        "withoutAnswer": 1, "withoutExpectation": 0,
    });
    assert_eq!(matrix["leftOut"], left_out);
}

#[test]
fn warns_when_the_results_folder_is_unreadable() {
    let project = with_cases(travel_project()).file("evals/results", "no folder");
    let output = project.run(["coverage"]);
    assert!(output.stderr.contains("warning: cannot read the results in evals/results"), "{}", output.both());
}

#[test]
fn requirements_decide_the_exit_code() {
    let project = with_cases(travel_project());
    let code = |arguments: &[&str]| project.run(["coverage", "-q"].iter().chain(arguments)).code;
    assert_eq!(code(&[]), Some(0));
    assert_eq!(code(&["--require"]), Some(1));
    assert_eq!(code(&["--require=tested"]), Some(1));
    insta::assert_snapshot!(project.run(["coverage", "-q", "--require=overlaps,fresh"]).filtered(), @"
    exit: 1
    ----- stdout -----
    Coverage of 3 tools by 2 eval files, 4 cases

      ⚠ tested    2/3  tools that a case targets or expects
      ⚠ golden    0/3  tools with 5 golden cases or more
      ⚠ labeled   0/3  tools with enough labeled cases of each difficulty
      ✗ overlaps  1/2  declared overlaps with an ambiguous case
      ⚠ clusters  0/1  declared clusters with a case that needs all tools
      ✗ fresh     0/2  eval files that match their current tool
      ⚠ known     1/2  eval files whose tools are all in the registry

      ✗ 1 overlap has no ambiguous case
        write one whose toolsAcceptable names both tools
          book_flight / get_weather

      ✗ 1 eval file is stale
        review the cases, then update the file's metadata
          evals/get-weather.golden.json: written for version 1.0.0 of get_weather,
            which is now 2.0.0

      ✗ 1 eval file may be stale
        add descriptionHash to the metadata ('karat tools -v' shows it), or run
        'karat tools lock' to create a lock
          evals/get-weather.labeled.json: no descriptionHash and no lock
    ----- stderr -----
    ");
    insta::assert_snapshot!(project.run(["coverage", "--require=tests"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: invalid value 'tests' for '--require[=<NAME,NAME>]'
      [possible values: all, tested, golden, labeled, overlaps, clusters, fresh,
        known]

      tip: a similar value exists: 'tested'

    For more information, try '--help'.
    ");
    project.write(
        "evals/get-weather.golden.json",
        json!([case("gs-get-weather-001", "now", json!({"toolsCalled": ["get_weather", "book_flight"]}))]),
    );
    assert_eq!(code(&["--require=tested"]), Some(0));
    // Without a tool version in the file, only the lock proves that it is fresh.
    assert_eq!(code(&["--require=fresh"]), Some(1));
    project.run(["tools", "lock"]);
    assert_eq!(code(&["--require=tested,fresh"]), Some(0));
    let tools = project.read("tools.json").replace("Tells the weather now.", "Tells the weather.");
    project.write("tools.json", tools.as_str());
    assert_eq!(code(&["--require=fresh"]), Some(1));
    assert_eq!(code(&["--require=fresh", "--lock-file", "nowhere.json"]), Some(2));
    let requirements = coverage_json(&project, &["--require=tested,golden"])["requirements"].clone();
    assert_eq!(requirements[0], json!({"requirement": "tested", "held": true, "missing": []}));
    assert_eq!(requirements[1]["missing"][0], json!("get_weather has 1/5 golden"));
    std::fs::remove_file(project.path().join("evals/overlap-map.json")).unwrap();
    assert_eq!(code(&["--require=tested"]), Some(0));
    insta::assert_snapshot!(project.run(["coverage", "--require=overlaps"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: requirement 'overlaps' needs an overlap map: evals/overlap-map.json does
      not exist
    hint: pass --overlap-map-path, or run 'karat overlap add' to create one
    ");
}

/// Requirements are trivially met by an empty registry and undecided for one with gaps.
#[test]
fn an_empty_or_incomplete_registry_meets_no_requirement() {
    for empty in [json!([]), json!({"tools": []})] {
        let project = with_cases(travel_project()).file("tools.json", empty);
        insta::allow_duplicates! {
            insta::assert_snapshot!(project.run(["coverage", "--require=tested"]).filtered(), @"
            exit: 2
            ----- stdout -----
            ----- stderr -----
            error: the tool registry has no tools
            hint: without tools, all requirements are trivially met
            ");
        }
        for verb in [&["coverage"][..], &["check"], &["tools"]] {
            let output = project.run(verb);
            assert!(output.stderr.contains("warning: the tool registry has no tools"), "{}", output.both());
        }
    }
    let source = "export const getWeather = {\n  name: 'get_weather',\n  description: 'Tells the weather.',\n};\n\
                  export const more = makeTools();\n";
    let project = project().file("karat.json", json!({"toolRegistryPath": "tools.ts"})).file("tools.ts", source).file(
        "evals/get-weather.golden.json",
        json!([case("gs-get-weather-001", "now", json!({"toolsCalled": ["get_weather"]}))]),
    );
    let code = |requirement: &str| project.run(["coverage", "-q", requirement]).code;
    assert_eq!((code("--require=tested"), code("--require=golden")), (Some(3), Some(1)));
}

#[test]
fn reports_untested_tools_without_eval_files() {
    let project = travel_project();
    insta::assert_snapshot!(project.run(["coverage"]).filtered(), @"
    exit: 0
    ----- stdout -----
    Coverage of 3 tools by 0 eval files, 0 cases

      ⚠ tested    0/3  tools that a case targets or expects
      ⚠ golden    0/3  tools with 5 golden cases or more
      ⚠ labeled   0/3  tools with enough labeled cases of each difficulty
      ⚠ overlaps  0/2  declared overlaps with an ambiguous case
      ⚠ clusters  0/1  declared clusters with a case that needs all tools
      — fresh          no eval files that can be stale
      — known          no eval files

      ✗ get_weather   never tested
      ✗ get_forecast  never tested
      ✗ book_flight   never tested

      ⚠ 2 overlaps have no ambiguous case
        write one whose toolsAcceptable names both tools
          book_flight / get_weather
          get_forecast / get_weather

      ⚠ 1 cluster has no case with all tools
        write a labeled case with all its tools in one set
          book_flight, get_forecast, get_weather

      No stored results to measure confusion.
    ----- stderr -----
    warning: no eval files found: nothing is tested
    ");
    assert_eq!(project.run(["coverage", "--require=tested"]).code, Some(1));
    std::fs::remove_dir_all(project.path().join("evals")).unwrap();
    assert_eq!(project.run(["coverage"]).code, Some(0));
    assert_eq!(project.run(["coverage", "nothing.json"]).code, Some(2));
}

#[test]
fn fails_without_a_registry_or_with_invalid_files() {
    insta::assert_snapshot!(project().run(["coverage"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: no tool registry is configured
    hint: the default tools/tools.exports.ts does not exist
    hint: pass --tool-registry-path, or set 'toolRegistryPath' in karat.json
    ");
    let project = travel_project().file("evals/x.golden.json", json!([{"id": "gs-x-001"}]));
    let output = project.run(["coverage"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    assert!(output.stderr.contains("evals/x.golden.json"), "{}", output.stderr);
}

#[test]
fn json_output_follows_its_schema() {
    let project =
        with_cases(travel_project()).file("agent.json", json!({"replies": {}, "otherwise": calls(&["get_forecast"])}));
    project.run(["run"]);
    let schema: Value = serde_json::from_str(&project.run(["schema", "coverage"]).stdout).unwrap();
    let document = coverage_json(&project, &["--require"]);
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&document).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(document["confusion"]["answers"], json!(4));
}

#[test]
fn lines_fit_80_columns_with_long_names() {
    let long = format!("tool_{}", "x".repeat(500));
    let wide = "天気を調べる道具".repeat(6);
    let tools: Vec<Value> =
        [long.as_str(), &wide, "a\u{202e}b\u{1b}[31m"].iter().map(|name| json!({"name": name})).collect();
    let replies = json!({"replies": {"m": calls(&[&wide]), "n": calls(&[&long])}});
    let cases = json!([
        case("gs-x-001", "m", json!({"toolsCalled": [long]})),
        case("gs-x-002", "n", json!({"toolsCalled": [wide]}))
    ]);
    let project = travel_project()
        .file("tools.json", json!(tools))
        .file("agent.json", replies)
        .file("evals/overlap-map.json", json!({long.as_str(): {"overlaps": [wide]}}))
        .file("evals/x.golden.json", cases);
    project.run(["run"]);
    let output = project.run(["coverage"]);
    let widest = output.stdout.lines().max_by_key(|line| karat_json::text::display_width(line)).unwrap();
    assert!(karat_json::text::display_width(widest) <= 80, "{widest}");
    assert!(!output.stdout.contains(['\u{1b}', '\u{202e}']));
    let ascii = project.run(["coverage", "--ascii"]);
    assert!(ascii.stdout.is_ascii(), "{}", ascii.stdout);
}

#[test]
fn html_report_escapes_hostile_names() {
    let hostile = "<script>alert(1)</script>\"' onmouseover=x \u{202e}";
    let tools = json!([{"name": hostile}, {"name": "x".repeat(10_000)}]);
    let cases = json!([case("gs-x-001", "m", json!({"toolsCalled": [hostile, "&amp;<b>"]}))]);
    let project = travel_project()
        .file("tools.json", tools)
        .file("agent.json", json!({"replies": {"m": calls(&["x".repeat(10_000).as_str()])}}))
        .file("evals/<i>.golden.json", cases);
    project.run(["run"]);
    let output = project.run(["coverage", "--report", "html=out/page.html"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let page = project.read("out/page.html");
    assert!(page.contains("&#60;script&#62;alert(1)"), "{page}");
    for mark in ["<script", "<b>", "<i>", "onmouseover=x \u{202e}", "\u{202e}", "http://", "https://", "url("] {
        assert!(!page.contains(mark), "{mark}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.len() < 60_000, "{}", page.len());
    // The report is deterministic and can be written to standard output.
    let again = project.run(["coverage", "--report", "html=-"]);
    assert!(again.stdout == page);
    assert_eq!(project.run(["coverage", "--report", "html=-", "--format", "json"]).code, Some(2));
    assert_eq!(project.run(["coverage", "--report", "pdf=x"]).code, Some(2));
}

#[test]
fn suggests_the_equals_sign_for_a_requirement_parsed_as_a_path() {
    insta::assert_snapshot!(travel_project().run(["coverage", "--require", "tested,golden"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: path tested,golden does not exist
    hint: did you mean --require=tested,golden?
    ");
}
