//! `karat check` of tools and of the overlap map.

use karat_testkit::project::TempProject;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{case, project};

const WEATHER: &str = "Fetches the current weather of a city. Use when the user asks how it is outside right now. For \
                       coming days use get_forecast.";
const FORECAST: &str = "Fetches the forecast of a city for up to seven days. Use when the user asks about coming days. \
                        For right now use get_weather.";

/// Creates a project with two tools whose overlap is declared.
fn weather_project(weather: &str, forecast: &str) -> TempProject {
    project()
        .file("karat.json", json!({"toolRegistryPath": "tools.json"}))
        .file(
            "tools.json",
            json!([
                {"name": "get_weather", "description": weather},
                {"name": "get_forecast", "description": forecast},
            ]),
        )
        .file(
            "evals/overlap-map.json",
            json!({"get_weather": {"overlaps": ["get_forecast"]}, "get_forecast": {"overlaps": ["get_weather"]}}),
        )
        .file("evals/get-weather.labeled.json", covering_cases())
}

fn labeled(difficulty: &str, tools: &[&str]) -> Value {
    let sets: Vec<[&str; 1]> = tools.iter().map(|tool| [*tool]).collect();
    json!({"id": "ls-get-weather-001", "difficulty": difficulty, "input": {"message": "m"},
           "expect": {"toolsAcceptable": sets, "toolsNotCalled": ["get_weather"]}})
}

fn report(project: &TempProject, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = ["check", "--format", "json"].iter().chain(arguments).copied().collect();
    let output = project.run(arguments);
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.both()));
    let schema: Value = serde_json::from_str(&project.run(["schema", "check"]).stdout).expect("valid schema");
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&report).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    report
}

/// Returns a case that covers the overlap and has no findings.
fn covering_cases() -> Value {
    json!([{"id": "ls-get-weather-001", "difficulty": "ambiguous", "input": {"message": "m"},
            "expect": {"toolsAcceptable": [["get_weather"], ["get_forecast"]]}}])
}

/// Returns the tool and the rule of each issue.
fn tools_and_rules(report: &Value) -> Vec<(&str, &str)> {
    let issues = report["issues"].as_array().expect("a list").iter();
    issues.map(|issue| (issue["tool"].as_str().unwrap_or_default(), issue["rule"].as_str().unwrap())).collect()
}

#[test]
fn tools_that_follow_the_contract_have_no_findings() {
    let project = weather_project(WEATHER, FORECAST);
    insta::assert_snapshot!(project.run(["check"]).filtered(), @"
    exit: 0
    ----- stdout -----
    2 tools, 1 file, 1 case: 0 invalid, 0 errors, 0 warnings
    ----- stderr -----
    ");
}

#[test]
fn checks_descriptions() {
    let project = weather_project("This tool handles weather stuff.", "");
    let report = report(&project, &[]);
    assert_eq!(
        tools_and_rules(&report)[..5],
        [
            ("get_weather", "description-action"),
            ("get_weather", "description-trigger"),
            ("get_weather", "description-disambiguation"),
            ("get_weather", "description-vague"),
            ("get_forecast", "description-missing"),
        ]
    );
    let first = &report["issues"][0];
    assert_eq!((&first["severity"], &first["file"]), (&json!("warning"), &json!("tools.json")));
    assert_eq!(first["message"], "the first sentence starts with 'This tool' instead of the action");
    assert_eq!(report["issues"][2]["help"], "add: For …, use get_forecast instead.");
    assert_eq!((&report["tools"], &report["silenced"]), (&json!(2), &json!(0)));
}

#[test]
fn counts_silenced_findings() {
    let project = weather_project("This tool handles weather stuff.", FORECAST);
    let silence = r#"{"get_weather": ["description-action", "description-vague"], "*": ["description-trigger"]}"#;
    let report = report(&project, &["--silence", silence]);
    assert_eq!(tools_and_rules(&report), [("get_weather", "description-disambiguation")]);
    assert_eq!(report["silenced"], 3);
    project.write(
        "karat.json",
        json!({"toolRegistryPath": "tools.json", "silence": {
            "get_weather": "*", "get_forecast": ["description-vague"], "get_wether": ["description-length"],
        }}),
    );
    insta::assert_snapshot!(project.run(["check"]).filtered(), @r#"
    exit: 0
    ----- stdout -----
      ⚠ unused entry: 'description-vague' reports nothing about 'get_forecast'
      │ (silences-nothing)
       ╭─[karat.json:6:4]
     6 │    "description-vague"
       ·    ───────────────────
       ╰────
      help: remove it, so that it does not hide new findings

      ⚠ unused entry: 'silence' names 'get_wether', which is not in the registry
      │ (silences-nothing)
       ╭─[karat.json:8:3]
     8 │   "get_wether": [
       ·   ────────────
       ╰────
      help: did you mean 'get_weather'?

    2 tools, 1 file, 1 case: 0 invalid, 0 errors, 2 warnings, 4 silenced
    ----- stderr -----
    "#);
    let from_variable = project.command(["check"]).env("KARAT_SILENCE", r#"{"*": "*"}"#).run();
    assert!(from_variable.stdout.contains("0 warnings, 4 silenced"), "{}", from_variable.both());
}

#[test]
fn rejects_unknown_rules() {
    let project = weather_project(WEATHER, FORECAST);
    project.write("karat.json", json!({"silence": {"get_weather": ["description-vauge"]}}));
    insta::assert_snapshot!(project.run(["check"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × unknown or non-silenceable rule 'description-vauge'
       ╭─[karat.json:4:4]
     4 │    "description-vauge"
       ·    ───────────────────
       ╰────
      help: did you mean 'description-vague'?
    "#);
    project.write("karat.json", json!({}));
    insta::assert_snapshot!(project.run(["check", "--silence", r#"{"get_weather": "all"}"#]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: --silence: 'get_weather' must be an array of rules or "*", found a string
    hint: for example ["description-trigger"], or "*" for all rules
    "#);
}

#[test]
fn an_overlap_needs_an_ambiguous_case() {
    let project = weather_project(WEATHER, FORECAST);
    project.write("evals/get-weather.labeled.json", json!([labeled("edge", &["get_weather", "get_forecast"])]));
    insta::assert_snapshot!(project.run(["check", "--silence", "{}"]).filtered(), @r#"
    exit: 1
    ----- stdout -----
      × no ambiguous case covers the overlap of 'get_forecast' and 'get_weather'
      │ (untested-overlap)
       ╭─[evals/overlap-map.json:4:4]
     4 │    "get_forecast"
       ·    ──────────────
       ╰────
      help: add a case with "difficulty": "ambiguous" and both tools in
            'toolsAcceptable', e.g. [["get_forecast"], ["get_weather"]]

      ⚠ ls-get-weather-001: this set can never match, since it contains a tool
      │ that 'toolsNotCalled' forbids (unused-assertion)
        ╭─[evals/get-weather.labeled.json:10:5]
     10 │     [
        ·     ─
        ╰────

    2 tools, 1 file, 1 case: 0 invalid, 1 error, 1 warning
    ----- stderr -----
    "#);
}

#[rstest]
#[case::the_folder(&["evals"], true)]
#[case::the_project(&["."], true)]
#[case::a_file(&["evals/get-weather.labeled.json"], false)]
fn checks_overlaps_only_against_all_files(#[case] paths: &[&str], #[case] is_checked: bool) {
    let project = weather_project(WEATHER, FORECAST);
    project.write("evals/get-weather.labeled.json", json!([labeled("edge", &["get_weather"])]));
    let report = report(&project, paths);
    assert_eq!(tools_and_rules(&report).contains(&("", "untested-overlap")), is_checked);
    let expected = if is_checked { json!([]) } else { json!(["untested-overlap"]) };
    assert_eq!(report["notJudged"], expected);
}

#[test]
fn skips_overlaps_when_a_file_is_invalid() {
    let project = weather_project(WEATHER, FORECAST);
    project.write("evals/get-weather.labeled.json", json!([{"id": "ls-get-weather-001"}]));
    let output = project.run(["check"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("untested-overlap was not checked: an eval file is invalid"), "{}", output.both());
}

#[test]
fn reports_cases_written_for_another_overlap_map() {
    let project = weather_project(WEATHER, FORECAST);
    project.write(
        "evals/get-weather.labeled.json",
        json!({"metadata": {"overlapMapVersion": "000000000000"}, "cases": covering_cases()}),
    );
    let report = report(&project, &[]);
    let stale = report["issues"].as_array().unwrap().iter().find(|issue| issue["rule"] == "stale").expect("stale");
    assert_eq!(stale["pointer"], "/metadata/overlapMapVersion");
}

#[test]
fn checks_tools_without_cases() {
    let project = project().file("tools.json", json!([{"name": "get_weather", "description": WEATHER}]));
    insta::assert_snapshot!(project.run(["check", "--tool-registry-path", "tools.json"]).filtered(), @"
    exit: 0
    ----- stdout -----
    1 tool, 0 files, 0 cases: 0 invalid, 0 errors, 0 warnings
    ----- stderr -----
    warning: checking only the tools: folder evals does not exist
    ");
    assert_eq!(project.run(["check"]).code, Some(2), "without tools there is nothing to check");
}

#[test]
fn truncates_many_findings_of_a_rule() {
    let number = |number: usize| {
        let word = char::from(b'a' + u8::try_from(number).unwrap()).to_string().repeat(4);
        json!({"name": format!("tool_{number}"), "description": format!("Returns {word} of {word}{word}. Use when asked for {word}.")})
    };
    let project = project().file("tools.json", Value::from((0..20).map(number).collect::<Vec<_>>()));
    let output = project.run(["check", "--tool-registry-path", "tools.json"]);
    assert_eq!(output.stdout.matches("(description-returns)").count(), 10, "{}", output.stdout);
    let rest = "… and 10 more of description-returns: tool_10, tool_11, tool_12, …\n\
                pass --format json to list all\n\n\
                20 tools, 0 files, 0 cases: 0 invalid, 0 errors, 20 warnings\n";
    assert!(output.stdout.ends_with(rest), "{}", output.stdout);
}

#[test]
fn groups_identical_findings_of_several_tools() {
    let tool = |name: &str| json!({"name": name, "description": format!("Fetches {name} {name} from the shop.")});
    let tools: Vec<String> = ["orders", "coupons", "refunds"].map(|name| tool(name).to_string()).to_vec();
    let project = project().file("tools.json", format!("[\n{}\n]\n", tools.join(",\n")));
    insta::assert_snapshot!(project.run(["check", "--tool-registry-path", "tools.json"]).stdout, @r#"
      ⚠ orders: the description does not say when to use the tool: missing 'Use
      │ when …' (description-trigger)
       ╭─[tools.json:2:32]
     2 │ … s","description":"Fetches orders orders from the shop."},
       ·                    ───────────────────────────────
       ╰────
      help: add a sentence that says when to call it: Use when the user asks ….
      also: coupons (tools.json:3), refunds (tools.json:4)

    3 tools, 0 files, 0 cases: 0 invalid, 0 errors, 3 warnings
    "#);
}

#[test]
fn annotates_findings_on_github() {
    let tool = json!({"name": "orders", "description": "Fetches the orders of a customer."});
    let project = project().file("tools.json", format!("[\n{tool}\n]")).file(
        "evals/orders.golden.json",
        json!([case("gs-orders-001", "m", json!({"toolsCalled": ["nope"]}))]).to_string(),
    );
    let arguments = ["check", "--tool-registry-path", "tools.json"];
    let output = project.command(arguments).env("GITHUB_ACTIONS", "true").run();
    let commands: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("::")).collect();
    let error = "::error file=evals/orders.golden.json,line=1,title=gs-orders-001%3A unknown-tool::the registry has";
    assert!(commands[0].starts_with(error), "{commands:?}");
    let warning = "::warning file=tools.json,line=2,title=orders%3A description-trigger::the description does not say";
    assert!(commands.iter().any(|command| command.starts_with(warning)), "{commands:?}");
    assert!(!project.run(arguments).stdout.contains("::warning"));
    project.run(arguments.into_iter().chain(["--report", "github=annotations.txt"]));
    assert_eq!(project.read("annotations.txt").lines().collect::<Vec<_>>(), commands);
    assert_eq!(project.run(["check", "--report", "junit=x"]).code, Some(2));
}

#[test]
fn strips_control_characters_from_source_lines() {
    let id = "ls-x-001\u{202e}\u{9b}31m";
    let project = project().file("evals/x.labeled.json", json!([{"id": id, "input": {"message": "m"}, "expect": {}}]));
    let output = project.run(["check"]);
    assert!(output.stdout.contains("(id-form)"), "{}", output.both());
    assert!(!output.stdout.contains(['\u{202e}', '\u{9b}']), "{:?}", output.stdout);
}

#[test]
fn strips_control_characters_from_descriptions() {
    let project =
        weather_project("\u{1b}[31mThis tool\u{202e} [link](x) \u{0} is red and very, very dangerous.", FORECAST);
    let output = project.run(["check"]);
    assert!(!output.stdout.contains(['\u{1b}', '\u{202e}', '\u{0}']), "{:?}", output.stdout);
}

#[test]
fn truncates_long_lines_at_word_boundaries() {
    let known = "and its description goes on and on with words that nobody needs to see in an excerpt ".repeat(2);
    let source = format!(
        "export const a = {{ name: 'a', status: '{known}', description: `Fetches ${{process.env.WHAT}} of {known}`, version: '1.0.0' }};\n"
    );
    let project = project().file("tools/tools.exports.ts", source.as_str());
    insta::assert_snapshot!(project.run(["check"]).filtered(), @"
    exit: 0
    ----- stdout -----
      ⚠ a: cannot read the description: 'process.env.WHAT' is known only at run
      │ time (registry-unknown)
       ╭─[tools/tools.exports.ts:1:237]
     1 │ … `Fetches ${process.env.WHAT} of and its description goes on and on wit…
       ·              ────────────────
       ╰────
      help: rules about it are skipped; write it as a literal, or set
            'toolRegistry' to a command that prints the tools

    1 tool, 0 files, 0 cases: 0 invalid, 0 errors, 1 warning
    ----- stderr -----
    warning: checking only the tools: folder evals does not exist
    ");
    // Indentation is cut too.
    let indented = format!("[\n  {{\n    \"name\": \"a\",\n    \"description\": \"Fetches {known}\"\n  }}\n]\n");
    project.write("tools.json", indented);
    let output = project.run(["check", "--tool-registry-path", "tools.json"]);
    assert!(output.stdout.contains(" 4 │ … \"description\": \"Fetches and its"), "{}", output.stdout);
    let output = project.run(["check", "--ascii"]);
    assert!(output.stdout.is_ascii() && output.stdout.contains("... "), "{}", output.stdout);
}

#[test]
fn the_list_of_omitted_findings_fits_the_terminal() {
    let tools: Vec<Value> = (0..20)
        .map(|n| json!({"name": format!("a_tool_of_some_length_{n}"), "description": format!("Fetches page {n} of book {n}.")}))
        .collect();
    let output = project().file("tools.json", json!(tools)).run(["check", "--tool-registry-path", "tools.json"]);
    assert!(output.stdout.contains("also: a_tool_of_some_length_1 (tools.json:8), a_"), "{}", output.both());
    assert!(output.stdout.contains("and 9 more\n"), "{}", output.both());
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 80), "{}", output.both());
}

#[test]
fn a_tool_of_an_unreadable_source_is_reported_once() {
    let calls = |id: &str| case(id, id, json!({"toolsCalled": ["search"], "responseContains": ["a", "b"]}));
    let project = project()
        .file("karat.json", json!({"mcpServers": {"shell": {"command": ["false"]}}}))
        .file("evals/search.golden.json", json!([calls("gs-search-001"), calls("gs-search-002")]));
    let stdout = project.run(["check"]).stdout;
    assert_eq!(stdout.matches("(tool-not-known)").count(), 1, "{stdout}");
    assert!(stdout.contains("also: gs-search-002 (evals/search.golden.json:"), "{stdout}");
}
