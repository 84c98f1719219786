//! Eval files on disk: the folder below `corpus` says their fate, the snapshot beside each what was read or refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_core::case::{EvalFile, EvalFileSchema, InvalidEvalFile, Origin};
use karat_json::Finding;
use rstest::rstest;
use serde_json::{Map, Value, json};

/// The invalid files that a JSON Schema accepts, each with what it cannot say.
const BEYOND_A_SCHEMA: [(&str, &str); 13] = [
    ("ids-equal", "items are compared whole, not by one member"),
    ("repeated-key-in-case", "the usual parser keeps the last of two equal keys"),
    ("repeated-key-in-expect", "the usual parser keeps the last of two equal keys"),
    ("repeated-key-in-stub", "the usual parser keeps the last of two equal keys"),
    ("repeated-key-by-escape", "the usual parser keeps the last of two equal keys"),
    ("envelope-repeated-key", "the usual parser keeps the last of two equal keys"),
    ("response-matches-no-pattern", "no keyword says that a text is a pattern; 'format' is only a note"),
    ("param-matches-no-pattern", "no keyword says that a text is a pattern; 'format' is only a note"),
    ("response-json-schema-bad-pattern", "no keyword says that a text is a pattern; 'format' is only a note"),
    ("response-json-schema-no-schema", "a schema may be of any draft, so none can be named for it"),
    ("response-json-schema-in-a-file", "nothing is ever fetched, which a schema of schemas does not know"),
    ("response-json-schema-elsewhere", "nothing is ever fetched, which a schema of schemas does not know"),
    ("response-json-schema-dangling", "a reference is followed, not only read"),
];

#[expect(clippy::disallowed_methods, reason = "a test of files reads files")]
fn bytes_of(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file of the corpus")
}

fn stem(path: &Path) -> String {
    path.file_stem().expect("a file has a name").to_string_lossy().into_owned()
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a file has a name")
}

fn read(path: &Path) -> Result<EvalFile, InvalidEvalFile> {
    EvalFile::read(&bytes_of(path), Origin { file_name: name_of(path) })
}

fn read_text(text: &str) -> Result<EvalFile, InvalidEvalFile> {
    EvalFile::read(text.as_bytes(), Origin { file_name: "x.golden.json" })
}

/// Compares with the `.snap` file that stands beside the corpus file.
fn assert_beside(path: &Path, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(path.parent().expect("a file stands in a folder"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(stem(path), text));
}

fn rendered(findings: &[Finding]) -> String {
    findings.iter().map(line_of).collect()
}

fn line_of(finding: &Finding) -> String {
    let Finding { place, pointer, case_id, message, help } = finding;
    let id = case_id.as_ref().map_or_else(String::new, |id| format!(" {id}"));
    let at = pointer.as_ref().map_or_else(String::new, |pointer| format!("    at {pointer:?}\n"));
    let help = help.as_ref().map_or_else(String::new, |help| format!("    help: {help}\n"));
    format!("{}:{}{id}: {message}\n{at}{help}", place.position.line, place.position.column)
}

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(EvalFileSchema)).expect("a schema is JSON")
}

/// The file as any other JSON parser sees it.
fn as_usual(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)).ok()
}

#[rstest]
fn valid_files_are_read(#[files("tests/it/corpus/ok/*.json")] path: PathBuf) {
    let file = read(&path).unwrap_or_else(|invalid| panic!("{}", rendered(&invalid.findings)));
    let lines: Vec<usize> = file.cases.iter().map(|case| case.line).collect();
    let cases = serde_json::to_string_pretty(&file.cases).unwrap();
    let metadata = serde_json::to_string_pretty(&file.metadata).unwrap();
    let header = format!("tier {}, tool '{}', cases on lines {lines:?}", file.tier, file.tool_name);
    assert_beside(&path, &format!("{header}\nmetadata {metadata}\ncases {cases}"));
}

#[rstest]
fn what_is_read_and_written_is_read_the_same(#[files("tests/it/corpus/ok/*.json")] path: PathBuf) {
    let mut first = read(&path).unwrap();
    let written = serde_json::to_string(&json!({ "metadata": first.metadata, "cases": first.cases })).unwrap();
    let mut second = EvalFile::read(written.as_bytes(), Origin { file_name: name_of(&path) }).unwrap();
    let placed = first.cases.iter_mut().chain(&mut second.cases);
    placed.for_each(|case| case.line = 0);
    assert_eq!(first.cases, second.cases);
    assert_eq!(first.metadata.unwrap_or_default(), second.metadata.unwrap_or_default());
}

#[rstest]
fn invalid_files_are_refused(#[files("tests/it/corpus/invalid/*.json")] path: PathBuf) {
    let invalid = read(&path).expect_err("the file is invalid");
    assert_beside(&path, &rendered(&invalid.findings));
}

#[rstest]
fn findings_stand_in_the_order_of_the_text(#[files("tests/it/corpus/invalid/*.json")] path: PathBuf) {
    let findings = read(&path).expect_err("the file is invalid").findings;
    let places: Vec<(usize, usize)> =
        findings.iter().map(|finding| (finding.place.position.line, finding.place.position.column)).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(findings.iter().all(|finding| !finding.message.is_empty()));
}

#[rstest]
fn the_schema_accepts_valid_files(#[files("tests/it/corpus/ok/*.json")] path: PathBuf) {
    let value = as_usual(&bytes_of(&path)).expect("JSON");
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[rstest]
fn the_schema_refuses_invalid_files(#[files("tests/it/corpus/invalid/*.json")] path: PathBuf) {
    let beyond = BEYOND_A_SCHEMA.iter().find(|(name, _)| *name == stem(&path));
    let Some(value) = as_usual(&bytes_of(&path)) else {
        assert_eq!(beyond, None, "what is no JSON needs no excuse");
        return;
    };
    let accepts = jsonschema::validator_for(&schema()).unwrap().is_valid(&value);
    assert_eq!(accepts, beyond.is_some(), "beyond a schema: {beyond:?}");
}

#[test]
fn every_snapshot_and_every_excuse_has_its_file() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus");
    for folder in ["ok", "invalid"] {
        let names_of = |extension: &str| -> BTreeSet<String> {
            let entries = std::fs::read_dir(corpus.join(folder)).unwrap().map(|entry| entry.unwrap().path());
            entries
                .filter(|path| path.extension().is_some_and(|found| found == extension))
                .map(|path| stem(&path))
                .collect()
        };
        assert_eq!(names_of("json"), names_of("snap"), "{folder}");
        if folder == "invalid" {
            let excused: Vec<&str> = BEYOND_A_SCHEMA.iter().map(|(name, _)| *name).collect();
            assert!(excused.iter().all(|name| names_of("json").contains(*name)), "{excused:?}");
        }
    }
}

/// A case with nothing but what must be there, and the given members of `expect`.
fn case_with(expect: &Value) -> Value {
    json!({ "id": "a", "input": { "message": "m" }, "expect": expect })
}

const STRANGER: &str = "zzzzzzzzzzzzzzzzzzzz";

/// The keys that the reader knows where an unknown one stands, as it lists them itself.
fn keys_read(value: &Value) -> BTreeSet<String> {
    let invalid = read_text(&value.to_string()).expect_err("a key that nobody knows");
    let is_stranger = |finding: &&Finding| finding.message == format!("unknown key '{STRANGER}'");
    let finding = invalid.findings.iter().find(is_stranger).expect("found");
    let help = finding.help.as_deref().expect("help");
    help.strip_prefix("known keys here: ").expect("the keys").split(", ").map(str::to_owned).collect()
}

#[rstest]
#[case::envelope("Envelope", json!({ "cases": [], STRANGER: 1 }))]
#[case::metadata("Metadata", json!({ "cases": [], "metadata": { STRANGER: 1 } }))]
#[case::case("Case", json!([{ "id": "a", "input": { "message": "m" }, "expect": {}, STRANGER: 1 }]))]
#[case::input("Input", json!([{ "id": "a", "input": { "message": "m", STRANGER: 1 }, "expect": {} }]))]
#[case::expect("Expectation", json!([case_with(&json!({ STRANGER: 1 }))]))]
#[case::param("ParamAssertion", json!([case_with(&json!({ "toolParams": [{ STRANGER: 1 }] }))]))]
fn schema_and_reader_know_the_same_keys(#[case] name: &str, #[case] file: Value) {
    let schema = schema();
    let properties = schema["$defs"][name]["properties"].as_object().expect("an object of the schema");
    let in_schema: BTreeSet<String> = properties.keys().cloned().collect();
    assert_eq!(keys_read(&file), in_schema);
}

#[test]
fn one_file_sets_every_key_of_the_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/ok/every-key.labeled.json");
    let file = as_usual(&bytes_of(&path)).unwrap();
    let schema = schema();
    let places = [
        ("Envelope", ""),
        ("Metadata", "/metadata"),
        ("Case", "/cases/0"),
        ("Input", "/cases/0/input"),
        ("Expectation", "/cases/0/expect"),
        ("ParamAssertion", "/cases/0/expect/toolParams/0"),
    ];
    for (name, pointer) in places {
        let keys = |object: &Map<String, Value>| object.keys().cloned().collect::<BTreeSet<String>>();
        let set = keys(file.pointer(pointer).and_then(Value::as_object).unwrap());
        assert_eq!(set, keys(schema["$defs"][name]["properties"].as_object().unwrap()), "{name}");
    }
}

/// Lists the places of a document whose values karat reads; what stands in a stub or a schema is the author's.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    if ["/stubs", "/responseJsonSchema", "/value"].iter().any(|key| at.ends_with(key)) {
        return;
    }
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| places(value, &format!("{at}/{key}"), out)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| places(value, &format!("{at}/{index}"), out));
        }
        _ => {}
    }
}

#[test]
fn schema_and_reader_agree_on_any_value_anywhere() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/ok/every-key.labeled.json");
    let whole = as_usual(&bytes_of(&path)).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let mut all = Vec::new();
    places(&whole, "", &mut all);
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
            let (reader, schema) = (read_text(&changed.to_string()), validator.is_valid(&changed));
            assert_eq!(reader.is_ok(), schema, "{pointer} = {value}: the reader says {reader:?}");
            seen[usize::from(schema)] += 1;
        }
    }
    assert!(all.len() >= 60 && seen.iter().all(|count| *count > 200), "{} places, {seen:?}", all.len());
}

#[test]
fn schema_and_reader_agree_on_what_must_be_there() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/ok/every-key.labeled.json");
    let whole = as_usual(&bytes_of(&path)).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    let mut required = BTreeSet::new();
    for (parent, key) in all.iter().filter_map(|pointer| pointer.rsplit_once('/')) {
        let mut changed = whole.clone();
        if changed.pointer_mut(parent).and_then(Value::as_object_mut).and_then(|map| map.remove(key)).is_none() {
            continue;
        }
        let reader = read_text(&changed.to_string()).is_ok();
        assert_eq!(reader, validator.is_valid(&changed), "without {parent}/{key}");
        if !reader {
            required.insert(key);
        }
    }
    let expected = [
        "approvedAt",
        "approvedBy",
        "assertion",
        "cases",
        "drafter",
        "expect",
        "id",
        "input",
        "message",
        "paramName",
        "tool",
        "toolsCalled",
        "value",
    ];
    assert_eq!(required.into_iter().collect::<Vec<&str>>(), expected);
}

/// Taking any key's value away from the file that sets every key must show in what is read.
#[test]
fn no_key_is_read_and_dropped() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/ok/every-key.labeled.json");
    let whole = as_usual(&bytes_of(&path)).unwrap();
    let read = |value: &Value| {
        let file = read_text(&value.to_string()).unwrap_or_else(|invalid| panic!("{}", rendered(&invalid.findings)));
        json!({ "metadata": file.metadata, "cases": file.cases })
    };
    let full = read(&whole);
    let required = ["cases", "id", "input", "message", "expect", "tool", "paramName", "assertion", "value"];
    // Which schema an editor uses means nothing to karat; how to compare nothing is refused.
    let skipped = ["$schema", "toolsCalled"];
    for pointer in ["", "/metadata", "/cases/0", "/cases/0/expect", "/cases/0/expect/toolParams/0"] {
        let keys: Vec<String> = whole.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
        for key in keys.iter().filter(|key| !required.contains(&key.as_str()) && !skipped.contains(&key.as_str())) {
            let mut without = whole.clone();
            without.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key);
            assert_ne!(read(&without), full, "{pointer}/{key} changes nothing");
        }
    }
}

#[test]
fn problems_are_counted_in_the_error() {
    let one = read_text("[1]").unwrap_err();
    assert_eq!(one.to_string(), "1 problem in the eval file");
    let two = read_text("[1, 2]").unwrap_err();
    assert_eq!(two.to_string(), "2 problems in the eval file");
}

/// Every problem of a long file is found, in a time that a person does not notice.
#[test]
fn a_long_file_full_of_problems_is_answered() {
    let cases: Vec<Value> = (0..10_000)
        .map(|number| {
            json!({ "id": format!("gs-x-{number:05}"), "input": { "message": "m" }, "expect": {}, "tags": ["long"] })
        })
        .collect();
    let text = serde_json::to_string_pretty(&cases).unwrap();
    let findings = read_text(&text).unwrap_err().findings;
    assert_eq!(findings.len(), 10_000);
    let lines_of_a_case = text.lines().count() / 10_000;
    for (index, finding) in findings.iter().enumerate() {
        assert_eq!(&text[finding.place.range.clone()], "\"tags\"");
        assert_eq!(finding.place.position.line, 2 + index * lines_of_a_case + 6);
    }
}

#[test]
fn a_key_as_long_as_a_book_is_answered() {
    let file = json!([{ "id": "a", "input": { "message": "m" }, "expect": { "x".repeat(1_000_000): 1 } }]);
    let findings = read_text(&file.to_string()).unwrap_err().findings;
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
fn names_tell_tier_and_tool(#[case] file_name: &str, #[case] tier: &str, #[case] tool: &str) {
    let file = EvalFile::read(b"[]", Origin { file_name }).unwrap();
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
fn ids_tell_the_tier_when_nothing_else_does(#[case] ids: &[&str], #[case] tier: &str) {
    let cases: Vec<Value> =
        ids.iter().map(|id| json!({ "id": id, "input": { "message": "m" }, "expect": {} })).collect();
    let text = Value::from(cases).to_string();
    let by_ids = EvalFile::read(text.as_bytes(), Origin { file_name: "x.json" }).unwrap();
    assert_eq!(by_ids.tier.name(), tier);
    let by_name = EvalFile::read(text.as_bytes(), Origin { file_name: "x.labeled.json" }).unwrap();
    assert_eq!(by_name.tier.name(), "labeled", "the file's name is stronger");
}

#[test]
fn the_hash_is_that_of_the_bytes() {
    let plain = read_text("[]").unwrap();
    let spaced = read_text("[ ]").unwrap();
    assert_eq!(plain.hash, "4f53cda18c2b");
    assert_ne!(plain.hash, spaced.hash);
}
