//! `karat trace list` and `karat trace show`.

use karat_testkit::project::TempProject;
use rstest::rstest;
use serde_json::{Value, json};

use crate::eval_stored::{store_location, with_store};
use crate::project_store::ProjectStore;
use crate::support::project;
use crate::trace_import::{fixture, weather};

fn project_with_traces() -> TempProject {
    let quiet = json!({
        "trace_id": "0123456789abcdef-quiet", "name": "a greeting", "started_at": "2026-11-15T08:30:00Z", "model": "m-2",
        "steps": [{"input": "hello", "output": "hi", "tool_calls": [], "error": null}]
    });
    let project = project().file("t.jsonl", format!("{}{}{quiet}\n", weather("w-1", "Oslo"), weather("w-10", "Rome")));
    let output = project.run(["trace", "import", "t.jsonl"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    project
}

fn ids(project: &TempProject, flags: &[&str]) -> Vec<String> {
    let all = ["trace", "list", "--format", "jsonl"].iter().chain(flags).copied();
    let output = project.run(all);
    assert_eq!(output.code, Some(if output.stdout.is_empty() { 4 } else { 0 }), "{}", output.both());
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["trace_id"].as_str().unwrap().to_owned();
    output.stdout.lines().map(id).collect()
}

#[test]
fn lists_traces_newest_first() {
    let project = project_with_traces();
    insta::assert_snapshot!(project.run(["trace", "list"]).filtered(), @"
    exit: 0
    ----- stdout -----
    trace     started           steps  calls  errors  message
    w-1       2026-11-16 12:00      2      2       1  Will it rain in Oslo?
    w-10      2026-11-16 12:00      2      2       1  Will it rain in Rome?
    01234567  2026-11-15 08:30      1                 hello
    ----- stderr -----
    ");
    insta::assert_snapshot!(project.run(["trace", "list", "--limit", "1", "--ascii"]).filtered(), @"
    exit: 0
    ----- stdout -----
    trace  started           steps  calls  errors  message
    w-1    2026-11-16 12:00      2      2       1  Will it rain in Oslo?
    ----- stderr -----
    showing the newest 1 of 3 traces; pass --limit N for more
    ");
    let json = project.run(["trace", "list", "--format", "json", "--limit", "2"]);
    let list: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((list["total"].as_u64(), list["traces"].as_array().unwrap().len()), (Some(3), 2));
}

#[test]
fn json_output_lists_all_traces() {
    let traces: String = (0..25).map(|number| weather(&format!("w-{number:02}"), "Oslo")).collect();
    let project = project().file("t.jsonl", traces);
    assert_eq!(project.run(["trace", "import", "t.jsonl"]).code, Some(0));
    assert_eq!(ids(&project, &[]).len(), 25);
    assert_eq!(ids(&project, &["--limit", "3"]).len(), 3);
    let text = project.run(["trace", "list"]);
    assert_eq!(text.stdout.lines().count(), 21, "{}", text.both());
    assert!(text.stderr.contains("the newest 20 of 25 traces"), "{}", text.stderr);
}

#[rstest]
#[case(&["--tool", "get_wind"], &["w-1", "w-10"])]
#[case(&["--tool", "get_wind", "--tool", "other"], &[])]
#[case(&["--model", "m-2"], &["0123456789abcdef-quiet"])]
#[case(&["--session", "s-1", "--search", "ROME"], &["w-10"])]
#[case(&["--no-errors"], &["0123456789abcdef-quiet"])]
#[case(&["--errors", "--limit", "1"], &["w-1"])]
#[case(&["--since", "2026-11-16"], &["w-1", "w-10"])]
#[case(&["--until", "2026-11-16"], &["0123456789abcdef-quiet"])]
#[case(&["--source", "otlp"], &[])]
#[case(&["--source", "otlp", "--source", "karat", "--unrated", "--search", "greeting"], &["0123456789abcdef-quiet"])]
#[case(&["--rated"], &[])]
#[case(&["--rating", "negative"], &[])]
fn filters_are_combined(#[case] flags: &[&str], #[case] expected: &[&str]) {
    assert_eq!(ids(&project_with_traces(), flags), expected);
}

#[test]
fn reports_an_empty_list() {
    let empty = project();
    with_store(&store_location(&empty), async |_| ());
    insta::assert_snapshot!(empty.run(["trace", "list"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no traces in the store
    hint: run 'karat trace import FILE' or 'karat trace receive' to add traces
    ");
    insta::assert_snapshot!(project_with_traces().run(["trace", "list", "--rated"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no trace matches the filters
    ");
    let typo = project_with_traces().run(["trace", "list", "--tool", "get_wnd"]);
    assert!(typo.stderr.contains("did you mean 'get_wind'?"), "{}", typo.stderr);
    insta::assert_snapshot!(project().run(["trace", "list", "--since", "yesterday"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: invalid time 'yesterday' for --since
    hint: expected a date (2026-11-16), a time (2026-11-16T12:00Z) or an age (30m,
      12h, 7d, 2w)
    ");
}

#[rstest]
#[case(&["trace", "list"])]
#[case(&["trace", "show", "x"])]
#[case(&["feedback", "list"])]
#[case(&["feedback", "add", "x", "positive", "--author", "ada"])]
#[case(&["contradictions"])]
#[case(&["contradictions", "resolve", "x", "y", "dismissed", "--author", "ada"])]
#[case(&["eval", "list"])]
#[case(&["eval", "show", "x"])]
#[case(&["eval", "history", "x"])]
#[case(&["eval", "agreement", "x"])]
#[case(&["eval", "compare", "x"])]
#[case(&["eval", "run", "--stored"])]
fn a_mistyped_path_creates_no_store(#[case] verb: &[&str]) {
    let project = project();
    let output = project.run(verb.iter().chain(&["--store", "data/karta.db"]).copied());
    assert_eq!(output.code, Some(4), "{}", output.both());
    assert!(output.stderr.starts_with("error: the store data/karta.db does not exist\n"), "{}", output.stderr);
    assert!(!project.path().join("data").exists());
}

#[test]
fn wraps_hints_only_at_a_terminal() {
    let lines = |columns: &str| project().command(["trace", "list"]).env("COLUMNS", columns).run().stderr;
    let (wrapped, unwrapped) = (lines("80"), lines(""));
    assert!(wrapped.lines().count() > 2 && wrapped.lines().all(|line| line.len() <= 80), "{wrapped}");
    assert_eq!(unwrapped.lines().count(), 2, "{unwrapped}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&wrapped), words(&unwrapped));
}

#[test]
fn closes_the_store_on_exit() {
    let project = project_with_traces();
    let count_leftovers = |verb: &[&str], code: i32| {
        let output = project.run(verb.iter().copied());
        assert_eq!(output.code, Some(code), "{}", output.both());
        let names = std::fs::read_dir(project.path().join(".karat")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("karat.db-")).count()
    };
    assert_eq!(count_leftovers(&["trace", "list"], 0), 0);
    assert_eq!(count_leftovers(&["feedback", "add", "w-1", "positive", "--author", "ada"], 0), 0);
    assert_eq!(count_leftovers(&["trace", "show", "nowhere"], 2), 0, "after a failure");
}

#[test]
fn shows_small_costs() {
    let trace = json!({"trace_id": "cheap", "usage": {"input_tokens": 3, "cost_usd": 0.000_012}, "steps": []});
    let project = project().file("t.jsonl", format!("{trace}\n"));
    assert_eq!(project.run(["trace", "import", "t.jsonl"]).code, Some(0));
    let output = project.run(["trace", "show", "cheap"]);
    assert!(output.stdout.contains("3 tokens in, $0.0000120"), "{}", output.both());
}

#[test]
fn renders_a_conversation() {
    let project = project_with_traces();
    let output = project.run(["trace", "show", "w-1"]).filtered();
    let imported = output.lines().find(|line| line.contains("imported ")).unwrap().to_owned();
    insta::assert_snapshot!(output.replace(&imported, "  source   karat, imported [TIME]"), @r#"
    exit: 0
    ----- stdout -----
    trace w-1
      source   karat, imported [TIME]
      started  2026-11-16 12:00, took [TIME]
      model    m-1
      session  s-1
      content  2 steps, 2 tool calls, 1 error

    ── step 1 of 2 ─────────────────────────────────────────────────────────────────
    user
      Will it rain in Oslo?
    assistant
      → get_weather({"city": "Oslo"})
        = {"sky": "rain"}
      → get_wind({"city": "Oslo"})
        ✗ error: no such station

    ── step 2 of 2 ─────────────────────────────────────────────────────────────────
    assistant
      It rains in Oslo.
    ----- stderr -----
    "#);
}

#[test]
fn marks_verdicts_on_earlier_versions_of_a_trace() {
    let project = project_with_traces();
    let store = ProjectStore::open(&project);
    let version = store.add_version("eval_rain", "code");
    store.add_verdict("eval_rain", version, "w-1", Some(true), "it says so");
    let evals = |project: &TempProject| {
        let text = project.run(["trace", "show", "w-1", "--ascii"]).stdout;
        text.lines().find(|line| line.contains("eval_rain")).unwrap_or_default().to_owned()
    };
    assert!(evals(&project).ends_with("eval_rain version 1: passed"), "{}", evals(&project));
    project.write("again.jsonl", weather("w-1", "Bergen"));
    assert_eq!(project.run(["trace", "import", "again.jsonl"]).code, Some(0));
    let marked = evals(&project);
    assert!(marked.ends_with("eval_rain version 1: passed, for an earlier version of the trace"), "{marked}");
}

#[test]
fn marks_earlier_ratings() {
    let project = project_with_traces();
    for (rating, author) in [("negative", "ada"), ("neutral", "bob"), ("positive", "ada")] {
        let output = project.run(["feedback", "add", "w-1", rating, "--author", author]);
        assert_eq!(output.code, Some(0), "{}", output.both());
    }
    let text = project.run(["trace", "show", "w-1"]).stdout;
    let is_marked =
        |start: &str| text.lines().find(|line| line.starts_with(start)).map(|line| line.ends_with("(earlier)"));
    assert_eq!(is_marked("bad  ada"), Some(true), "{text}");
    assert_eq!((is_marked("neutral  bob"), is_marked("good  ada")), (Some(false), Some(false)), "{text}");
}

#[test]
fn accepts_unambiguous_id_prefixes() {
    let project = project_with_traces();
    assert_eq!(project.run(["trace", "show", "01234"]).code, Some(0));
    // An exact id is not ambiguous.
    let exact = project.run(["trace", "show", "w-1", "--format", "json"]);
    let details: Value = serde_json::from_str(&exact.stdout).unwrap();
    assert_eq!((&details["trace_id"], &details["document"]["trace_id"]), (&json!("w-1"), &json!("w-1")));
    insta::assert_snapshot!(project.run(["trace", "show", "w-"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: ambiguous trace id: several ids begin with 'w-'
    hint: use a longer prefix: w-1, w-10
    ");
    insta::assert_snapshot!(project.run(["trace", "show", "x"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: trace 'x' not found in the store
    hint: run 'karat trace list' to list traces; a unique prefix of an id is enough
    ");
}

#[test]
fn prints_the_raw_payload() {
    let project = project_with_traces();
    let output = project.run(["trace", "show", "w-1", "--raw"]);
    assert_eq!(output.stdout.trim_end(), weather("w-1", "Oslo").trim_end());
}

#[test]
fn escapes_control_characters() {
    let hostile = "\u{1b}[2J\u{202e}\u{7}\r\n\u{9b}31m";
    let call = json!({"name": hostile, "arguments": {hostile: hostile}, "result": hostile, "error": hostile});
    let trace = json!({
        "trace_id": "h\u{202e}1", "name": hostile, "model": hostile, "session_id": hostile, "user_id": hostile,
        "tags": [hostile], "error": hostile,
        "steps": [{"input": {"message": hostile}, "output": {"response": hostile}, "tool_calls": [call], "error": hostile}]
    });
    let project = project().file("t.jsonl", format!("{trace}\n"));
    for arguments in [&["trace", "import", "t.jsonl"][..], &["trace", "list"], &["trace", "show", "h"]] {
        let output = project.run(arguments.iter().copied());
        assert_eq!(output.code, Some(0), "{}", output.both());
        let is_control = |character: char| character.is_control() && character != '\n' || character == '\u{202e}';
        assert!(!output.both().chars().any(is_control), "{:?}", output.both());
    }
}

#[test]
fn json_lines_have_no_control_characters() {
    let hostile = "\u{202e}\u{9b}31m ##[stop-commands]x";
    let trace = json!({"trace_id": "h-1", "name": hostile, "steps": []});
    let project = project().file("t.jsonl", format!("{trace}\n"));
    assert_eq!(project.run(["trace", "import", "t.jsonl"]).code, Some(0));
    let output = project.run(["trace", "list", "--format", "jsonl"]);
    assert!(!output.stdout.contains(['\u{202e}', '\u{9b}']) && !output.stdout.contains("##["), "{}", output.stdout);
    let list: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(list["name"], hostile, "the value is unchanged");
}

#[test]
fn renders_a_real_trace_within_80_columns() {
    let project = project();
    let file = fixture("langfuse/vercel-aisdk-2025-11-17.trace.json");
    assert_eq!(project.run(["trace", "import", file.to_str().unwrap()]).code, Some(0));
    let list = project.run(["trace", "list"]);
    let details = project.run(["trace", "show", list.stdout.lines().nth(1).unwrap().split(' ').next().unwrap()]);
    assert_eq!(details.code, Some(0), "{}", details.both());
    for line in list.stdout.lines().chain(details.stdout.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
