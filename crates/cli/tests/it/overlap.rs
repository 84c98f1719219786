//! `karat overlap`.

use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::support::{case, project};

fn tools() -> Value {
    json!([
        {"name": "get_weather", "description": "Fetches the current weather of a city. Use when the user asks for the weather now."},
        {"name": "get_forecast", "description": "Fetches the weather of a city for the next days. For the weather now, use get_weather instead."},
        {"name": "get_climate", "description": "Fetches the usual weather of a city by month."},
        {"name": "send_mail", "description": "Sends a message to a person."},
    ])
}

fn project_with_tools() -> TempProject {
    project().file("karat.json", json!({"toolRegistryPath": "tools.json"})).file("tools.json", tools())
}

fn reply_with_call(tool: &str) -> Value {
    json!({"response": "ok", "toolCalls": [{"name": tool, "params": {}}]})
}

#[test]
fn suggests_confused_tools_first() {
    let expects = |id: &str, message: &str| case(id, message, json!({"toolsCalled": ["get_climate"]}));
    let project = project_with_tools()
        .file(
            "agent.json",
            json!({"replies": {"a": reply_with_call("send_mail"), "b": reply_with_call("send_mail"), "c": reply_with_call("get_climate")}}),
        )
        .file(
            "evals/get-climate.golden.json",
            json!([
                expects("gs-get-climate-001", "a"),
                expects("gs-get-climate-002", "b"),
                expects("gs-get-climate-003", "c")
            ]),
        );
    project.run(["run", "--agent-endpoint", "scripted:agent.json"]);
    let text = project.run(["overlap", "suggest"]).filtered_stdout();
    let (first, _) = text.split_once("\n\n").expect("several suggestions");
    insta::assert_snapshot!(first, @"
    get_climate — send_mail  similarity 0.00
      confused  send_mail was called 2 times where get_climate was expected
      karat overlap add get_climate send_mail
    ");
    let document: Value =
        serde_json::from_str(&project.run(["overlap", "suggest", "--format", "json"]).stdout).unwrap();
    assert_eq!(
        document["suggestions"][0]["confused"],
        json!([{"expected": "get_climate", "called": "send_mail", "count": 2}])
    );
}

#[test]
fn names_the_rule_that_a_declared_overlap_must_meet() {
    let project = project_with_tools();
    let add = || project.run(["overlap", "add", "get_weather", "get_forecast"]).unwrapped_stderr();
    let note = "(untested-overlap); to draft it: karat forge get_weather --tier labeled\n";
    assert!(project.run(["overlap", "suggest"]).stderr.contains("(untested-overlap)"));
    let stderr = add();
    assert!(stderr.ends_with(note), "{stderr}");
    assert!(!add().contains("untested-overlap"), "nothing was added");
}

/// A shell glob also matches karat's other files.
#[test]
fn skips_files_that_are_not_eval_files() {
    let project = project_with_tools()
        .file("evals/a.golden.json", json!([case("gs-a-001", "a", json!({"toolsCalled": ["get_climate"]}))]))
        .file("evals/a.regression.archived.json", json!({"archived": []}));
    project.run(["overlap", "add", "get_weather", "get_climate"]);
    project.run(["tools", "lock"]);
    let other_files = ["evals/overlap-map.json", "evals/tools.lock.json", "evals/a.regression.archived.json"];
    let output = project.run(["check", "evals/a.golden.json"].iter().chain(&other_files));
    assert_eq!(output.code, Some(0), "{}", output.both());
    let errors =
        other_files.map(|file| project.run(["check", file]).stderr.lines().next().unwrap_or_default().to_owned());
    insta::assert_snapshot!(errors.join("\n"), @"
    error: evals/overlap-map.json is the overlap map, not an eval file
    error: evals/tools.lock.json is the tool lock, not an eval file
    error: evals/a.regression.archived.json is an archive of regression cases, not
    ");
}

/// The tool may be in a part of the registry that cannot be read.
#[test]
fn does_not_check_overlaps_with_unread_tools() {
    let project = project()
        .file("karat.json", json!({"toolRegistryPath": "tools.ts"}))
        .file("tools.ts", "export const a = { name: 'a', description: 'Tells a.' };\nexport const b = make();\n")
        .file(MAP, json!({"a": {"overlaps": ["b"]}, "b": {"overlaps": ["a"]}}))
        .file("evals/a.golden.json", json!([case("gs-a-001", "a", json!({"toolsCalled": ["a"]}))]));
    let report: Value = serde_json::from_str(&project.run(["check", "--format", "json"]).stdout).unwrap();
    assert_eq!(report["notJudged"], json!(["untested-overlap"]));
}

#[test]
fn reads_tools_from_a_command() {
    let project = project_with_tools();
    let command = json!({"command": ["cat", "tools.json"]}).to_string();
    std::fs::remove_file(project.path().join("karat.json")).unwrap();
    let output = project.run(["overlap", "suggest", "--tool-registry", &command]);
    assert!(output.stdout.contains("get_forecast"), "{}", output.both());
}

/// Names are truncated in text, but not in JSON.
#[test]
fn truncates_long_names_in_text() {
    let long = "x".repeat(10_000);
    let project = project_with_tools().file(MAP, json!({"get_weather": {"overlaps": [&long]}}));
    let text = project.run(["overlap"]).stdout;
    assert!(text.len() < 1000, "{text}");
    assert!(project.run(["overlap", "--format", "json"]).stdout.contains(&long));
}

const MAP: &str = "evals/overlap-map.json";

#[test]
fn adds_and_removes_both_directions() {
    let project = project_with_tools();
    insta::assert_snapshot!(project.run(["overlap", "add", "get_weather", "get_forecast", "get_climate", "--reason", "all about weather"]).filtered(), @"
    exit: 0
    ----- stdout -----
    evals/overlap-map.json
      + get_weather overlaps get_forecast
      + get_forecast overlaps get_weather
      + get_weather overlaps get_climate
      + get_climate overlaps get_weather
      + reason of get_weather: all about weather
      + reason of get_forecast: all about weather
      + reason of get_climate: all about weather
    ----- stderr -----
    'karat check' now requires an ambiguous case that names both
      tools in 'toolsAcceptable' (untested-overlap); to draft it:
      karat forge get_weather --tier labeled
    ");
    insta::assert_snapshot!(project.read(MAP), @r#"
    {
      "get_weather": {
        "overlaps": ["get_forecast", "get_climate"],
        "reason": "all about weather"
      },
      "get_forecast": {
        "overlaps": ["get_weather"],
        "reason": "all about weather"
      },
      "get_climate": {
        "overlaps": ["get_weather"],
        "reason": "all about weather"
      }
    }
    "#);
    insta::assert_snapshot!(project.run(["overlap", "add", "get_forecast", "get_weather"]).filtered(), @"
    exit: 0
    ----- stdout -----
    evals/overlap-map.json is unchanged: already declared
    ----- stderr -----
    ");
    insta::assert_snapshot!(project.run(["overlap", "remove", "get_climate", "get_weather"]).filtered(), @"
    exit: 0
    ----- stdout -----
    evals/overlap-map.json
      - get_climate overlaps get_weather
      - get_weather overlaps get_climate
    ----- stderr -----
    ");
    insta::assert_snapshot!(project.run(["overlap", "remove", "get_climate", "get_weather"]).filtered(), @"
    exit: 0
    ----- stdout -----
    evals/overlap-map.json is unchanged: no such overlap is declared
    ----- stderr -----
    ");
    insta::assert_snapshot!(project.read(MAP), @r#"
    {
      "get_weather": {
        "overlaps": ["get_forecast"],
        "reason": "all about weather"
      },
      "get_forecast": {
        "overlaps": ["get_weather"],
        "reason": "all about weather"
      },
      "get_climate": {
        "reason": "all about weather"
      }
    }
    "#);
}

#[test]
fn rejects_removal_of_a_misspelt_tool() {
    let project = project_with_tools().file(MAP, json!({"gone": {"overlaps": ["get_weather"]}}));
    insta::assert_snapshot!(project.run(["overlap", "remove", "get_wether", "get_forecast"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: unknown tool 'get_wether'
    hint: did you mean 'get_weather'?
    ");
    assert_eq!(project.run(["overlap", "remove", "gone", "get_weather"]).code, Some(0), "no longer in the registry");
}

#[test]
fn removes_empty_entries() {
    let project = project_with_tools();
    project.run(["overlap", "add", "get_weather", "get_forecast"]);
    insta::assert_snapshot!(project.run(["overlap", "remove", "get_weather", "get_forecast"]).filtered(), @"
    exit: 0
    ----- stdout -----
    evals/overlap-map.json
      - get_weather overlaps get_forecast
      - empty entry of get_weather
      - get_forecast overlaps get_weather
      - empty entry of get_forecast
    ----- stderr -----
    ");
    assert_eq!(project.read(MAP), "{}\n");
}

#[test]
fn a_cluster_needs_three_tools() {
    let project = project_with_tools();
    insta::assert_snapshot!(project.run(["overlap", "add", "--cluster", "get_weather", "get_forecast"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: a cluster needs at least 3 tools, found 2
    hint: to declare an overlap of two tools, remove --cluster
    ");
    insta::assert_snapshot!(project.run(["overlap", "add", "--cluster", "get_weather", "get_forecast", "get_climate"]).filtered(), @"
    exit: 0
    ----- stdout -----
    evals/overlap-map.json
      + get_weather in the cluster get_weather + get_forecast + get_climate
      + get_forecast in the cluster get_weather + get_forecast + get_climate
      + get_climate in the cluster get_weather + get_forecast + get_climate
    ----- stderr -----
    ");
    insta::assert_snapshot!(project.read(MAP), @r#"
    {
      "get_weather": {
        "clusters": [["get_weather", "get_forecast", "get_climate"]]
      },
      "get_forecast": {
        "clusters": [["get_weather", "get_forecast", "get_climate"]]
      },
      "get_climate": {
        "clusters": [["get_weather", "get_forecast", "get_climate"]]
      }
    }
    "#);
    insta::assert_snapshot!(project.run(["overlap", "remove", "--cluster", "get_climate", "get_forecast", "get_weather"]).filtered(), @"
    exit: 0
    ----- stdout -----
    evals/overlap-map.json
      - get_weather in the cluster get_climate + get_forecast + get_weather
      - empty entry of get_weather
      - get_forecast in the cluster get_climate + get_forecast + get_weather
      - empty entry of get_forecast
      - get_climate in the cluster get_climate + get_forecast + get_weather
      - empty entry of get_climate
    ----- stderr -----
    ");
}

#[test]
fn rejects_unknown_and_duplicate_tools() {
    let project = project_with_tools();
    insta::assert_snapshot!(project.run(["overlap", "add", "get_weather", "get_forcast"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: unknown tool 'get_forcast'
    hint: did you mean 'get_forecast'?
    ");
    insta::assert_snapshot!(project.run(["overlap", "add", "get_weather", "get_weather"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: duplicate tool 'get_weather'
    ");
    assert!(!project.path().join(MAP).exists());
    let unchecked = TempProject::new(env!("CARGO_BIN_EXE_karat"));
    insta::assert_snapshot!(unchecked.run(["overlap", "add", "a", "b"]).filtered(), @"
    exit: 0
    ----- stdout -----
    evals/overlap-map.json
      + a overlaps b
      + b overlaps a
    ----- stderr -----
    tool names were not checked: no tool registry is configured
    'karat check' now requires an ambiguous case that names both
      tools in 'toolsAcceptable' (untested-overlap); to draft it:
      karat forge a --tier labeled
    ");
}

#[test]
fn preserves_formatting() {
    let text = "\u{feff}{\r\n\t\"send_mail\" : {\"overlaps\": [],   \"reason\": \"x\"},\r\n\t\"get_weather\" : {\"overlaps\": [\"send_mail\"]}\r\n}\r\n";
    let project = project_with_tools().file(MAP, text);
    assert_eq!(project.run(["overlap", "add", "get_weather", "get_forecast"]).code, Some(0));
    let expected = "\u{feff}{\r\n\t\"send_mail\" : {\"overlaps\": [],   \"reason\": \"x\"},\r\n\t\"get_weather\" : {\"overlaps\": [\"send_mail\", \"get_forecast\"]},\r\n\t\"get_forecast\" : {\"overlaps\" : [\"get_weather\"]}\r\n}\r\n";
    assert_eq!(project.read(MAP), expected);
}

#[test]
fn converts_the_list_form_on_request() {
    let list = json!({"tools": [{
        "tool": "get_weather", "reason": "weather",
        "overlaps": [{"tool": "get_forecast", "reason": "both fetch", "weight": 0.75}],
        "clusters": [{"name": "sky", "tools": ["get_weather", "get_forecast", "get_climate"]}],
    }]});
    let project = project_with_tools().file(MAP, list.clone());
    insta::assert_snapshot!(project.run(["overlap", "add", "get_weather", "get_climate"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: evals/overlap-map.json: cannot edit an overlap map in the list form (a
      list under 'tools')
    hint: pass --convert to rewrite it in the format that karat edits
    ");
    assert_eq!(project.read_json(MAP), list);
    insta::assert_snapshot!(project.run(["overlap", "add", "get_weather", "get_climate", "--convert"]).filtered(), @"
    exit: 0
    ----- stdout -----
    evals/overlap-map.json, converted to the format that karat edits
      + get_weather overlaps get_climate
      + get_climate overlaps get_weather
    ----- stderr -----
    warning: dropped the weight 0.75 of the overlap of 'get_weather' with
      'get_forecast': it cannot be converted
    warning: dropped the name 'sky' of a cluster of 'get_weather': it cannot be
      converted
    'karat check' now requires an ambiguous case that names both
      tools in 'toolsAcceptable' (untested-overlap); to draft it:
      karat forge get_weather --tier labeled
    ");
    insta::assert_snapshot!(project.read(MAP), @r#"
    {
      "get_weather": {
        "overlaps": ["get_forecast", "get_climate"],
        "clusters": [["get_weather", "get_forecast", "get_climate"]],
        "reason": "weather; both fetch"
      },
      "get_climate": {
        "overlaps": ["get_weather"]
      }
    }
    "#);
}

#[test]
fn reports_an_invalid_map_without_changing_it() {
    let project = project_with_tools().file(MAP, "{\"get_weather\": {\"overlap\": []}}");
    insta::assert_snapshot!(project.run(["overlap", "add", "get_weather", "get_climate"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × unknown key 'overlap'
       ╭─[evals/overlap-map.json:1:18]
     1 │ {"get_weather": {"overlap": []}}
       ·                  ─────────
       ╰────
      help: did you mean 'overlaps'?
    "#);
    assert_eq!(project.read(MAP), "{\"get_weather\": {\"overlap\": []}}");
}

#[test]
fn lists_both_directions() {
    let map = json!({
        "get_weather": {"overlaps": ["get_forecast"], "clusters": [["get_weather", "get_forecast", "get_climate"]], "reason": "all of them are about the weather of one city, which is what people ask for most"},
    });
    let project = project_with_tools().file(MAP, map);
    insta::assert_snapshot!(project.run(["overlap"]).filtered(), @"
    exit: 0
    ----- stdout -----
    get_climate
      cluster   get_climate + get_forecast + get_weather
    get_forecast
      overlaps  get_weather
      cluster   get_climate + get_forecast + get_weather
    get_weather
      overlaps  get_forecast
      cluster   get_climate + get_forecast + get_weather
      reason    all of them are about the weather of one city, which is what people
                ask for most
    3 tools, 1 overlap, 1 cluster
    ----- stderr -----
    1 finding in the map; run 'karat check' for details
    ");
    insta::assert_snapshot!(project.run(["overlap", "list", "--format", "json"]).filtered(), @r#"
    exit: 0
    ----- stdout -----
    {
      "path": "evals/overlap-map.json",
      "version": "3adf659a655f",
      "overlaps": 1,
      "clusters": 1,
      "tools": [
        {
          "tool": "get_climate",
          "overlaps": [],
          "clusters": [
            [
              "get_climate",
              "get_forecast",
              "get_weather"
            ]
          ],
          "reason": null
        },
        {
          "tool": "get_forecast",
          "overlaps": [
            "get_weather"
          ],
          "clusters": [
            [
              "get_climate",
              "get_forecast",
              "get_weather"
            ]
          ],
          "reason": null
        },
        {
          "tool": "get_weather",
          "overlaps": [
            "get_forecast"
          ],
          "clusters": [
            [
              "get_climate",
              "get_forecast",
              "get_weather"
            ]
          ],
          "reason": "all of them are about the weather of one city, which is what people ask for most"
        }
      ]
    }
    ----- stderr -----
    1 finding in the map; run 'karat check' for details
    "#);
}

#[test]
fn lists_nothing_without_a_map() {
    insta::assert_snapshot!(project_with_tools().run(["overlap"]).filtered(), @"
    exit: 0
    ----- stdout -----
    0 tools, 0 overlaps, 0 clusters
    ----- stderr -----
    evals/overlap-map.json does not exist; run 'karat overlap suggest' for
      suggestions
    ");
}

#[test]
fn suggests_overlaps_from_descriptions() {
    let project = project_with_tools();
    insta::assert_snapshot!(project.run(["overlap", "suggest"]).filtered(), @"
    exit: 0
    ----- stdout -----
    get_weather — get_forecast  similarity 0.46
      named     the description of get_forecast names get_weather
      words     now, city, fetch, get, weather
      karat overlap add get_weather get_forecast

    get_weather — get_climate  similarity 0.34
      words     city, fetch, get, weather
      karat overlap add get_weather get_climate

    2 suggestions
    ----- stderr -----
    for each overlap that you declare, 'karat check' requires an ambiguous case that
      names both tools (untested-overlap); 'karat forge TOOL --tier labeled' drafts
      it
    ");
    project.run(["overlap", "add", "get_weather", "get_forecast"]);
    insta::assert_snapshot!(project.run(["overlap", "suggest", "--limit", "1", "--ascii"]).filtered(), @"
    exit: 0
    ----- stdout -----
    get_weather - get_climate  similarity 0.34
      words     city, fetch, get, weather
      karat overlap add get_weather get_climate

    1 suggestion; 1 pair already declared
    ----- stderr -----
    for each overlap that you declare, 'karat check' requires an ambiguous case that
      names both tools (untested-overlap); 'karat forge TOOL --tier labeled' drafts
      it
    ");
    insta::assert_snapshot!(project.run(["overlap", "suggest", "--at-least", "0.5", "--format", "json"]).filtered(), @r#"
    exit: 0
    ----- stdout -----
    {
      "atLeast": 0.5,
      "measured": false,
      "total": 0,
      "declared": 1,
      "withoutDescription": [],
      "suggestions": []
    }
    ----- stderr -----
    "#);
    insta::assert_snapshot!(project.run(["overlap", "suggest", "--at-least", "0"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: --at-least must be greater than 0 and at most 1
    ");
}

#[test]
fn suggest_requires_a_registry() {
    insta::assert_snapshot!(project().run(["overlap", "suggest"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: no tool registry is configured
    hint: pass --tool-registry-path, or set 'toolRegistryPath' in karat.json
    ");
}

#[test]
fn escapes_control_characters_in_names() {
    let tools = json!([
        {"name": "a\u{1b}[31m; rm -rf", "description": "Reads the blue table."},
        {"name": "b", "description": "Reads the blue table."},
    ]);
    let project = project().file("tools.json", tools);
    let output = project.run(["overlap", "suggest", "--tool-registry-path", "tools.json"]);
    assert!(!output.stdout.contains('\u{1b}'), "{}", output.stdout);
    assert!(output.stdout.contains("add 'a"), "{}", output.stdout);
}

#[test]
fn maps_match_their_schema() {
    let schema: Value = serde_json::from_str(&project().run(["schema", "overlap-map"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let list =
        json!({"tools": [{"tool": "a", "overlaps": [{"tool": "b", "weight": 1}], "clusters": [{"tools": ["a"]}]}]});
    for valid in [json!({}), json!({"$schema": "x", "a": {"overlaps": ["b"], "reason": null}}), list] {
        assert!(validator.is_valid(&valid), "{valid}");
    }
    for invalid in [json!([]), json!({"a": {"overlap": []}}), json!({"a": {"overlaps": [1]}}), json!({"tools": [{}]})] {
        assert!(!validator.is_valid(&invalid), "{invalid}");
    }
}
