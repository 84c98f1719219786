//! Eval files on disk. The folder below `corpus` states the expected outcome, and the snapshot next to a file the
//! details.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_cases::{CaseLocation, EvalFile, EvalFileSchema, InvalidEvalFile, Origin, TableFiles};
use karat_json::Finding;
use rstest::rstest;
use serde_json::{Map, Value, json};

/// Invalid files that the JSON Schema accepts, with the reason.
const NOT_IN_SCHEMA: [(&str, &str); 15] = [
    ("injections-at-the-same-place", "array items are compared as a whole, not by two members"),
    ("duplicate-ids", "array items are compared as a whole, not by one member"),
    ("duplicate-key-in-case", "a lenient parser uses the last of two equal keys"),
    ("duplicate-key-in-expect", "a lenient parser uses the last of two equal keys"),
    ("duplicate-key-in-stub", "a lenient parser uses the last of two equal keys"),
    ("duplicate-key-by-escape", "a lenient parser uses the last of two equal keys"),
    ("envelope-duplicate-key", "a lenient parser uses the last of two equal keys"),
    ("response-matches-invalid-pattern", "no keyword requires a valid pattern; 'format' is only an annotation"),
    ("param-matches-invalid-pattern", "no keyword requires a valid pattern; 'format' is only an annotation"),
    ("response-json-schema-bad-pattern", "no keyword requires a valid pattern; 'format' is only an annotation"),
    ("response-json-schema-invalid", "a schema may use any draft, so no meta-schema applies"),
    ("response-json-schema-in-a-file", "a meta-schema does not know that nothing is fetched"),
    ("response-json-schema-remote", "a meta-schema does not know that nothing is fetched"),
    ("response-json-schema-dangling", "a meta-schema does not resolve references"),
    ("number-out-of-range", "a schema does not know which numbers are too large to read"),
];

#[expect(clippy::disallowed_methods, reason = "the test reads fixture files")]
fn read_bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("corpus file")
}

fn stem(path: &Path) -> String {
    path.file_stem().expect("file name").to_string_lossy().into_owned()
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("file name")
}

fn parse_file(path: &Path) -> Result<EvalFile, InvalidEvalFile> {
    EvalFile::parse(&read_bytes(path), Origin::new(file_name(path)))
}

fn parse_text(text: &str) -> Result<EvalFile, InvalidEvalFile> {
    EvalFile::parse(text.as_bytes(), Origin::new("x.golden.json"))
}

/// Compares with the `.snap` file next to the corpus file.
fn assert_snapshot_of(path: &Path, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(path.parent().expect("parent folder"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(stem(path), text));
}

fn render(findings: &[Finding]) -> String {
    findings.iter().map(render_finding).collect()
}

fn render_finding(finding: &Finding) -> String {
    let Finding { location, pointer, case_id, message, help } = finding;
    let id = case_id.as_ref().map_or_else(String::new, |id| format!(" {id}"));
    let at = pointer.as_ref().map_or_else(String::new, |pointer| format!("    at {pointer:?}\n"));
    let help = help.as_ref().map_or_else(String::new, |help| format!("    help: {help}\n"));
    format!("{}:{}{id}: {message}\n{at}{help}", location.position.line, location.position.column)
}

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(EvalFileSchema)).expect("serializable")
}

/// Parses the file as a lenient JSON parser would.
fn parse_leniently(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)).ok()
}

#[rstest]
fn parses_valid_files(#[files("tests/it/corpus/ok/*.json")] path: PathBuf) {
    let file = parse_file(&path).unwrap_or_else(|invalid| panic!("{}", render(&invalid.findings)));
    let lines: Vec<usize> = file.cases.iter().map(|case| case.location.line).collect();
    let cases = serde_json::to_string_pretty(&file.cases).unwrap();
    let metadata = serde_json::to_string_pretty(&file.metadata).unwrap();
    let header = format!("tier {}, tool '{}', cases on lines {lines:?}", file.tier, file.tool_name);
    assert_snapshot_of(&path, &format!("{header}\nmetadata {metadata}\ncases {cases}"));
}

#[rstest]
fn valid_files_round_trip(#[files("tests/it/corpus/ok/*.json")] path: PathBuf) {
    let mut first = parse_file(&path).unwrap();
    let written = serde_json::to_string(&json!({ "metadata": first.metadata, "cases": first.cases })).unwrap();
    let mut second = EvalFile::parse(written.as_bytes(), Origin::new(file_name(&path))).unwrap();
    let cases = first.cases.iter_mut().chain(&mut second.cases);
    cases.for_each(|case| case.location = CaseLocation::default());
    assert_eq!(first.cases, second.cases);
    assert_eq!(first.metadata.unwrap_or_default(), second.metadata.unwrap_or_default());
}

#[rstest]
fn rejects_invalid_files(#[files("tests/it/corpus/invalid/*.json")] path: PathBuf) {
    let invalid = parse_file(&path).expect_err("invalid file");
    assert_snapshot_of(&path, &render(&invalid.findings));
}

#[rstest]
fn findings_are_in_text_order(#[files("tests/it/corpus/invalid/*.json")] path: PathBuf) {
    let findings = parse_file(&path).expect_err("invalid file").findings;
    let locations: Vec<(usize, usize)> =
        findings.iter().map(|finding| (finding.location.position.line, finding.location.position.column)).collect();
    assert!(locations.is_sorted(), "{locations:?}");
    assert!(findings.iter().all(|finding| !finding.message.is_empty()));
}

#[rstest]
fn the_schema_accepts_valid_files(#[files("tests/it/corpus/ok/*.json")] path: PathBuf) {
    let value = parse_leniently(&read_bytes(&path)).expect("valid JSON");
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[rstest]
fn the_schema_rejects_invalid_files(#[files("tests/it/corpus/invalid/*.json")] path: PathBuf) {
    let exception = NOT_IN_SCHEMA.iter().find(|(name, _)| *name == stem(&path));
    let Some(value) = parse_leniently(&read_bytes(&path)) else {
        assert_eq!(exception, None, "invalid JSON needs no exception");
        return;
    };
    let accepts = jsonschema::validator_for(&schema()).unwrap().is_valid(&value);
    assert_eq!(accepts, exception.is_some(), "exception: {exception:?}");
}

#[test]
fn every_snapshot_and_exception_has_a_file() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus");
    for folder in ["ok", "invalid"] {
        let names_of = |extension: &str| -> BTreeSet<String> {
            let entries = std::fs::read_dir(corpus.join(folder)).unwrap().map(|entry| entry.unwrap().path());
            entries
                .filter(|path| path.extension().is_some_and(|actual| actual == extension))
                .map(|path| stem(&path))
                .collect()
        };
        assert_eq!(names_of("json"), names_of("snap"), "{folder}");
        if folder == "invalid" {
            let exceptions: Vec<&str> = NOT_IN_SCHEMA.iter().map(|(name, _)| *name).collect();
            assert!(exceptions.iter().all(|name| names_of("json").contains(*name)), "{exceptions:?}");
        }
    }
}

/// A minimal case with the given members of `expect`.
fn case_with(expect: &Value) -> Value {
    json!({ "id": "a", "input": { "message": "m" }, "expect": expect })
}

const UNKNOWN_KEY: &str = "zzzzzzzzzzzzzzzzzzzz";

/// The keys that the parser suggests in place of an unknown one.
fn known_keys(value: &Value) -> BTreeSet<String> {
    let invalid = parse_text(&value.to_string()).expect_err("unknown key");
    let is_unknown_key = |finding: &&Finding| finding.message == format!("unknown key '{UNKNOWN_KEY}'");
    let finding = invalid.findings.iter().find(is_unknown_key).expect("finding");
    let help = finding.help.as_deref().expect("help");
    help.strip_prefix("known keys here: ").expect("list of keys").split(", ").map(str::to_owned).collect()
}

#[rstest]
#[case::envelope("Envelope", json!({ "cases": [], UNKNOWN_KEY: 1 }))]
#[case::metadata("Metadata", json!({ "cases": [], "metadata": { UNKNOWN_KEY: 1 } }))]
#[case::case("Case", json!([{ "id": "a", "input": { "message": "m" }, "expect": {}, UNKNOWN_KEY: 1 }]))]
#[case::input("Input", json!([{ "id": "a", "input": { "message": "m", UNKNOWN_KEY: 1 }, "expect": {} }]))]
#[case::expect("Expectation", json!([case_with(&json!({ UNKNOWN_KEY: 1 }))]))]
#[case::param("ParamAssertion", json!([case_with(&json!({ "toolParams": [{ UNKNOWN_KEY: 1 }] }))]))]
#[case::calls("ExpectedCalls", json!([case_with(&json!({ "calls": { UNKNOWN_KEY: 1 } }))]))]
#[case::call("ExpectedCall", json!([case_with(&json!({ "calls": { "list": [{ UNKNOWN_KEY: 1 }] } }))]))]
#[case::predicate("JsonPredicate", json!([case_with(&json!({ "responseJson": [{ UNKNOWN_KEY: 1 }] }))]))]
#[case::injection("Injection", json!([{ "id": "a", "input": { "message": "m" }, "expect": {}, "injections": [{ UNKNOWN_KEY: 1 }] }]))]
#[case::user("SimulatedUser", json!([{ "id": "a", "user": { UNKNOWN_KEY: 1 }, "expect": {} }]))]
#[case::similar("SimilarResponse", json!([case_with(&json!({ "responseSimilar": [{ UNKNOWN_KEY: 1 }] }))]))]
#[case::state("StatePredicate", json!([case_with(&json!({ "state": [{ UNKNOWN_KEY: 1 }] }))]))]
#[case::unchanged("UnchangedState", json!([case_with(&json!({ "stateUnchanged": [{ UNKNOWN_KEY: 1 }] }))]))]
fn schema_and_parser_know_the_same_keys(#[case] name: &str, #[case] file: Value) {
    let schema = schema();
    let properties = schema["$defs"][name]["properties"].as_object().expect("object schema");
    let in_schema: BTreeSet<String> = properties.keys().cloned().collect();
    assert_eq!(known_keys(&file), in_schema);
}

#[test]
fn the_fixture_sets_every_key_of_the_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/ok/every-key.labeled.json");
    let file = parse_leniently(&read_bytes(&path)).unwrap();
    let schema = schema();
    let locations = [
        ("Envelope", ""),
        ("Metadata", "/metadata"),
        ("Turn", "/cases/1/turns/0"),
        ("Input", "/cases/0/input"),
        ("Injection", "/cases/0/injections/0"),
        ("SimulatedUser", "/cases/2/user"),
        ("Expectation", "/cases/0/expect"),
        ("ParamAssertion", "/cases/0/expect/toolParams/0"),
        ("ExpectedCall", "/cases/0/expect/calls/list/0"),
        ("JsonPredicate", "/cases/0/expect/calls/list/0/where/0"),
        ("SimilarResponse", "/cases/0/expect/responseSimilar/0"),
        ("StatePredicate", "/cases/0/expect/state/0"),
        ("UnchangedState", "/cases/0/expect/stateUnchanged/0"),
    ];
    for (name, pointer) in locations {
        let keys = |object: &Map<String, Value>| object.keys().cloned().collect::<BTreeSet<String>>();
        let set = keys(file.pointer(pointer).and_then(Value::as_object).unwrap());
        assert_eq!(set, keys(schema["$defs"][name]["properties"].as_object().unwrap()), "{name}");
    }
    // A case has a message, turns or a simulated user.
    let cases = file["cases"].as_array().unwrap().iter().flat_map(|case| case.as_object().unwrap().keys().cloned());
    let in_schema = schema["$defs"]["Case"]["properties"].as_object().unwrap().keys().cloned();
    assert_eq!(cases.collect::<BTreeSet<String>>(), in_schema.collect::<BTreeSet<String>>());
}

/// Lists the pointers of all values that karat reads; the contents of stubs and schemas are free.
fn pointers(value: &Value, pointer: &str, out: &mut Vec<String>) {
    out.push(pointer.to_owned());
    if ["/stubs", "/responseJsonSchema", "/value"].iter().any(|key| pointer.ends_with(key)) {
        return;
    }
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| pointers(value, &format!("{pointer}/{key}"), out)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| pointers(value, &format!("{pointer}/{index}"), out));
        }
        _ => {}
    }
}

#[test]
fn schema_and_parser_agree_on_any_value_anywhere() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/ok/every-key.labeled.json");
    let whole = parse_leniently(&read_bytes(&path)).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let mut all = Vec::new();
    pointers(&whole, "", &mut all);
    let values = json!([
        null, true, false, 0, 1, -1, 1.5, 2.0, 1e3, "", " ", "text", "__none__", "golden", "edge", "exact", "exists", "equals",
        "matches", "last", "{{seed:a}}", [], [1], ["a"], ["__none__"], ["a", "b"], ["a", "__none__"], [[]], [["a"]],
        [["__none__"]], [["a", "__none__"]], [["a", "b"]], [{}], {}, { "a": 1 }, { "a": "b" }, { "message": "m" }
    ]);
    let mut seen = [0, 0];
    for pointer in &all {
        for value in values.as_array().unwrap() {
            let mut changed = whole.clone();
            *changed.pointer_mut(pointer).unwrap() = value.clone();
            let (parsed, schema) = (parse_text(&changed.to_string()), validator.is_valid(&changed));
            assert_eq!(parsed.is_ok(), schema, "{pointer} = {value}: {parsed:?}");
            seen[usize::from(schema)] += 1;
        }
    }
    assert!(all.len() >= 60 && seen.iter().all(|count| *count > 200), "{} pointers, {seen:?}", all.len());
}

#[test]
fn schema_and_parser_agree_on_required_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/ok/every-key.labeled.json");
    let whole = parse_leniently(&read_bytes(&path)).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let mut all = Vec::new();
    pointers(&whole, "", &mut all);
    let mut required = BTreeSet::new();
    for (parent, key) in all.iter().filter_map(|pointer| pointer.rsplit_once('/')) {
        let mut changed = whole.clone();
        if changed.pointer_mut(parent).and_then(Value::as_object_mut).and_then(|map| map.remove(key)).is_none() {
            continue;
        }
        let is_valid = parse_text(&changed.to_string()).is_ok();
        assert_eq!(is_valid, validator.is_valid(&changed), "without {parent}/{key}");
        if !is_valid {
            required.insert(key);
        }
    }
    let expected = [
        "approvedAt",
        "approvedBy",
        "assertion",
        "atLeast",
        "attack",
        "cases",
        "drafter",
        "expect",
        "goal",
        "id",
        "input",
        "into",
        "list",
        "message",
        "method",
        "paramName",
        "source",
        "text",
        "to",
        "tolerance",
        "tool",
        "toolsCalled",
        "turns",
        "user",
        "value",
    ];
    assert_eq!(required.into_iter().collect::<Vec<&str>>(), expected);
}

/// Removes each key from the file that sets every key; the parsed file must change.
#[test]
fn no_key_is_ignored() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/ok/every-key.labeled.json");
    let whole = parse_leniently(&read_bytes(&path)).unwrap();
    let parse = |value: &Value| {
        let file = parse_text(&value.to_string()).unwrap_or_else(|invalid| panic!("{}", render(&invalid.findings)));
        json!({ "metadata": file.metadata, "cases": file.cases })
    };
    let full = parse(&whole);
    let required =
        ["cases", "id", "input", "message", "expect", "tool", "paramName", "assertion", "value", "tolerance"];
    // karat ignores `$schema`, and `toolsCalledMatch` without `toolsCalled` is invalid.
    let skipped = ["$schema", "toolsCalled"];
    for pointer in ["", "/metadata", "/cases/0", "/cases/0/expect", "/cases/0/expect/toolParams/0"] {
        let keys: Vec<String> = whole.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
        for key in keys.iter().filter(|key| !required.contains(&key.as_str()) && !skipped.contains(&key.as_str())) {
            let mut without = whole.clone();
            without.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key);
            assert_ne!(parse(&without), full, "{pointer}/{key} changes nothing");
        }
    }
}

#[test]
fn the_error_counts_the_problems() {
    let one_problem = parse_text("[1]").unwrap_err();
    assert_eq!(one_problem.to_string(), "1 problem in the eval file");
    let two_problems = parse_text("[1, 2]").unwrap_err();
    assert_eq!(two_problems.to_string(), "2 problems in the eval file");
}

/// All problems of a long file are found without noticeable delay.
#[test]
fn reports_every_problem_of_a_long_file() {
    let cases: Vec<Value> = (0..10_000)
        .map(|number| {
            json!({ "id": format!("gs-x-{number:05}"), "input": { "message": "m" }, "expect": {}, "labels": ["long"] })
        })
        .collect();
    let text = serde_json::to_string_pretty(&cases).unwrap();
    let findings = parse_text(&text).unwrap_err().findings;
    assert_eq!(findings.len(), 10_000);
    let lines_per_case = text.lines().count() / 10_000;
    for (index, finding) in findings.iter().enumerate() {
        assert_eq!(&text[finding.location.range.clone()], "\"labels\"");
        assert_eq!(finding.location.position.line, 2 + index * lines_per_case + 6);
    }
}

/// A long file is read on several threads, unless it has a problem.
#[test]
fn a_long_file_reads_like_a_short_one() {
    let case = |number: usize| {
        let message = format!("m{number}");
        json!({"id": format!("c-{number}"), "description": "d", "input": {"message": message}, "expect": {"maxTokens": 5}})
    };
    let cases: Vec<Value> = (0..3001).map(case).collect();
    let text = |cases: &[Value]| {
        let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
        format!("[\n{}\n]", lines.join(",\n"))
    };
    let file = parse_text(&text(&cases)).expect("valid");
    assert_eq!(file.cases.len(), cases.len());
    for (number, case) in file.cases.iter().enumerate() {
        assert_eq!((case.location.index, case.location.line), (number, number + 2));
        let mut alone = parse_text(&text(&cases[number..=number])).expect("valid").cases.remove(0);
        alone.location.clone_from(&case.location);
        assert_eq!(*case, alone);
    }
    let mut with_problems = cases;
    with_problems[2999]["id"] = json!("c-7");
    with_problems[1200]["input"] = json!({"massage": "m"});
    with_problems[5]["each"] = json!([]);
    let invalid = parse_text(&text(&with_problems)).expect_err("problems");
    let lines: Vec<usize> = invalid.findings.iter().map(|finding| finding.location.position.line).collect();
    assert!(lines.is_sorted() && [7, 1202, 3001].iter().all(|line| lines.contains(line)), "{lines:?}");
}

#[test]
fn reports_an_extremely_long_key() {
    let file = json!([{ "id": "a", "input": { "message": "m" }, "expect": { "x".repeat(1_000_000): 1 } }]);
    let findings = parse_text(&file.to_string()).unwrap_err().findings;
    assert!(findings[0].help.as_ref().unwrap().starts_with("known keys here: toolsCalled, "));
}

#[rstest]
#[case("get-weather.golden.json", "golden", "get-weather")]
#[case("get_weather.labeled.json", "labeled", "get_weather")]
#[case("a.b.regression.json", "regression", "a.b")]
#[case("x.rubric.json", "rubric", "x")]
#[case("golden.json", "unknown", "golden")]
#[case("x.gold.json", "unknown", "x.gold")]
#[case("x.golden", "unknown", "x.golden")]
#[case("x.golden.jsonl", "unknown", "x.golden.jsonl")]
#[case(".json", "unknown", "")]
#[case("", "unknown", "")]
fn derives_tier_and_tool_from_the_file_name(#[case] file_name: &str, #[case] tier: &str, #[case] tool: &str) {
    let file = EvalFile::parse(b"[]", Origin::new(file_name)).unwrap();
    assert_eq!((file.tier.name(), file.tool_name.as_str()), (tier, tool));
}

#[rstest]
#[case(&["gs-a-001", "gs-b-002"], "golden")]
#[case(&["ls-a-001"], "labeled")]
#[case(&["rg-a-001"], "regression")]
#[case(&["gs-a-001", "ls-a-001"], "unknown")]
#[case(&["gs-a-001", "a"], "unknown")]
#[case(&["GS-a-001"], "unknown")]
#[case(&[], "unknown")]
fn derives_the_tier_from_ids_as_a_last_resort(#[case] ids: &[&str], #[case] tier: &str) {
    let cases: Vec<Value> =
        ids.iter().map(|id| json!({ "id": id, "input": { "message": "m" }, "expect": {} })).collect();
    let text = Value::from(cases).to_string();
    let by_ids = EvalFile::parse(text.as_bytes(), Origin::new("x.json")).unwrap();
    assert_eq!(by_ids.tier.name(), tier);
    let by_name = EvalFile::parse(text.as_bytes(), Origin::new("x.labeled.json")).unwrap();
    assert_eq!(by_name.tier.name(), "labeled", "the file name takes precedence");
}

#[test]
fn hashes_the_bytes() {
    let plain = parse_text("[]").unwrap();
    let spaced = parse_text("[ ]").unwrap();
    assert_eq!(plain.hash, "4f53cda18c2b");
    assert_ne!(plain.hash, spaced.hash);
}

/// Tables by name.
#[derive(Debug)]
struct MemoryTables(&'static [(&'static str, &'static str)]);

impl TableFiles for MemoryTables {
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
        let table = self.0.iter().find(|(name, _)| *name == path);
        table.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }
}

#[test]
fn the_hash_covers_tables() {
    let text = json!([{
        "id": "gs-x-001", "input": {"message": "{{row:m}}"}, "expect": {}, "each": {"file": "rows.csv"}
    }])
    .to_string();
    let parse = |tables: &MemoryTables| {
        EvalFile::parse(text.as_bytes(), Origin { file_name: "x.golden.json", tables: Some(tables) }).unwrap()
    };
    let (first, second) =
        (parse(&MemoryTables(&[("rows.csv", "m\na\nb\n")])), parse(&MemoryTables(&[("rows.csv", "m\na\n")])));
    assert_eq!((first.cases.len(), second.cases.len()), (2, 1));
    assert_ne!(first.hash, second.hash);
    let ids: Vec<(&str, &str)> = first.cases.iter().map(|case| (case.id.as_str(), case.written_id())).collect();
    assert_eq!(ids, [("gs-x-001#1", "gs-x-001"), ("gs-x-001#2", "gs-x-001")]);
}

#[test]
fn an_unavailable_table_stays_a_single_case() {
    let text = json!([{
        "id": "gs-x-001", "input": {"message": "{{row:m}}"}, "expect": {}, "each": {"file": "rows.csv"}
    }])
    .to_string();
    let file = parse_text(&text).unwrap();
    assert_eq!(file.cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), ["gs-x-001"]);
}

#[test]
fn a_problem_is_reported_for_the_first_row_only() {
    let text = r#"[{"id": "gs-x-001", "input": {"message": "m"}, "expect": {"maxToolCalls": "{{row:n}}"},
        "each": [{"n": 1}, {"n": "x"}, {"n": "y"}]}]"#;
    let findings = parse_text(text).unwrap_err().findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].case_id.as_deref(), Some("gs-x-001#2"));
}
