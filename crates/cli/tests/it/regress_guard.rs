//! Protection of regression cases against loss, edits and vacuous assertions.

use std::collections::BTreeSet;

use karat_json::canonical::canonical_hash;
use karat_testkit::project::{Output, TempProject};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::project;

const FILE: &str = "evals/get-weather.regression.json";
const ARCHIVE: &str = "evals/get-weather.regression.archived.json";

const ADD: [&str; 9] =
    ["regress", "add", "get_weather", "--bug-ref", "#7", "--message", "Rain?", "--tools-called", "get_weather"];

fn add(project: &TempProject) -> Output {
    project.run(ADD)
}

fn case(id: &str) -> Value {
    json!({"id": id, "difficulty": "regression", "bugRef": "#1", "input": {"message": id}, "expect": {"responseNonEmpty": true}})
}

#[test]
fn concurrent_edits_are_not_lost() {
    let project = project();
    let all: Vec<_> = (0..8).map(|_| project.command(ADD).start()).collect();
    let reported: BTreeSet<String> = all
        .into_iter()
        .map(|running| {
            let output = running.wait().expect("karat exits");
            assert_eq!(output.code, Some(0), "{}", output.both());
            output.stdout.split(' ').nth(1).unwrap_or_default().to_owned()
        })
        .collect();
    let cases = project.read_json(FILE)["cases"].as_array().cloned().unwrap_or_default();
    let written: BTreeSet<String> = cases.iter().map(|case| case["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((reported.len(), &written, cases.len()), (8, &reported, 8));

    let archiving: Vec<_> = written.iter().map(|id| project.command(["regress", "archive", id]).start()).collect();
    for running in archiving {
        assert_eq!(running.wait().expect("karat exits").code, Some(0));
    }
    assert_eq!(project.read_json(ARCHIVE)["archived"].as_array().unwrap().len(), 8);
    assert_eq!(project.read_json(FILE)["cases"], json!([]));

    let adding: Vec<_> =
        (1..10).map(|number| project.command(["overlap", "add", "t0", &format!("t{number}")]).start()).collect();
    for running in adding {
        assert_eq!(running.wait().expect("karat exits").code, Some(0));
    }
    assert_eq!(project.read_json("evals/overlap-map.json")["t0"]["overlaps"].as_array().unwrap().len(), 9);
    // No lock files are left.
    assert!(project.files_in("", "lock").is_empty());
}

#[test]
fn continues_ids_across_files() {
    let archived = json!({"archived": [{"archivedAt": "", "hash": "x", "case": {"id": "rg-get-weather-006"}}]});
    let project = project()
        .file("evals/all.labeled.json", json!({"cases": [case("rg-get-weather-004")]}))
        .file("evals/old/gone.regression.archived.json", archived)
        .file("evals/broken.regression.json", r#"{"cases": [{"id": "rg-get-weather-011",, }]}"#)
        .file("evals/big.labeled.json", json!({"cases": [case("rg-get-weather-18446744073709551615")]}));
    let output = add(&project);
    assert!(output.stdout.starts_with("added rg-get-weather-012 "), "{}", output.both());
}

#[rstest]
#[case(r#"{"noToolErrors": false}"#)]
#[case(r#"{"responseContainsAny": []}"#)]
#[case(r#"{"responseContains": [""]}"#)]
#[case("{}")]
fn rejects_vacuous_cases(#[case] expect: &str) {
    let project = project();
    let output =
        project.run(["regress", "add", "get_weather", "--bug-ref", "#7", "--message", "Rain?", "--expect", expect]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("would always pass"), "{}", output.stderr);
    assert!(!project.path().join(FILE).exists());
}

#[rstest]
#[case(&["--bug-ref", " ", "--message", "m"], "error: --bug-ref is empty")]
#[case(&["--bug-ref", "#1", "--message", ""], "error: --message is empty")]
#[case(&["--bug-ref", "#1", "--from-run", "latest", "--case", "x"], "hint: run 'karat run' first")]
fn rejects_empty_arguments(#[case] flags: &[&str], #[case] expected: &str) {
    let project = project();
    let output = project.run(["regress", "add", "t", "--response-non-empty"].iter().chain(flags).copied());
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains(expected) && !output.stderr.contains("--baseline"), "{}", output.stderr);
}

#[test]
fn seal_fails_on_invalid_files() {
    let project = project();
    let output = project.run(["regress", "seal"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{}", output.both());
    project.write("evals/a.regression.json", r#"{"cases": [{"id": "rg-a-001"}]}"#);
    project.write("evals/b.regression.json", json!({"cases": [case("rg-b-001")]}));
    let output = project.run(["regress", "seal"]);
    assert_eq!(output.code, Some(2));
    assert_eq!(output.stdout, "sealed rg-b-001 in evals/b.regression.json\n");
    assert!(output.stderr.contains("evals/a.regression.json:1:"), "{}", output.stderr);
    let output = project.run(["regress", "seal"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{}", output.both());
}

#[test]
fn detects_an_edit_of_a_large_number() {
    let file = |id: &str| {
        format!(
            r#"{{"cases": [{{"id": "rg-b-001", "bugRef": "1", "input": {{"message": "m"}}, "expect": {{"toolParams":
                [{{"tool": "t", "paramName": "p", "assertion": "equals", "value": {id}}}]}}}}]}}"#
        )
    };
    let project = project().file("evals/b.regression.json", file("12345678901234567890"));
    assert_eq!(project.run(["regress", "seal"]).code, Some(0));
    let sealed = project.read("evals/b.regression.json");
    assert!(sealed.contains("12345678901234567890"), "{sealed}");
    project.write("evals/b.regression.json", sealed.replace("12345678901234567890", "12345678901234567999"));
    let output = project.run(["check"]);
    assert!(output.stdout.contains("edited-regression"), "{}", output.both());
}

#[test]
fn seals_many_cases() {
    let cases: Vec<Value> = (0..3000).map(|number| case(&format!("rg-a-{number:04}"))).collect();
    let hashes = json!({"rg-a-0000": canonical_hash(&cases[0])});
    let project =
        project().file("evals/a.regression.json", json!({"metadata": {"caseHashes": hashes}, "cases": cases}));
    let output = project.run(["regress", "seal"]);
    assert_eq!((output.code, output.stdout.lines().count()), (Some(0), 2999), "{}", output.stderr);
    assert_eq!(project.run(["check"]).code, Some(0));
}

#[test]
fn check_reports_removed_hashes() {
    let project = project();
    add(&project);
    let mut file = project.read_json(FILE);
    file["metadata"].as_object_mut().unwrap().remove("caseHashes");
    project.write(FILE, &file);
    let output = project.run(["check"]);
    assert!(output.stdout.contains("(unsealed-regression)"), "{}", output.stdout);
    assert_eq!(project.run(["check", "--strict"]).code, Some(1));
}

#[test]
fn check_validates_archives() {
    let project = project();
    add(&project);
    let before = project.read(FILE);
    assert_eq!(project.run(["regress", "archive", "rg-get-weather-001"]).code, Some(0));
    assert_eq!(project.run(["check", "--strict"]).code, Some(0));
    // As expanded from evals/*.json.
    let output = project.run(["check", "--strict", ARCHIVE, FILE]);
    assert_eq!((output.code, output.stdout.starts_with("1 file, 0 cases")), (Some(0), true), "{}", output.both());

    let archive = project.read(ARCHIVE);
    project.write(ARCHIVE, archive.replace("Rain?", "Snow?"));
    let output = project.run(["check"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("edited after it was archived"), "{}", output.stdout);
    assert!(output.stdout.contains(&format!("{ARCHIVE}:6:7")), "{}", output.stdout);

    project.write(ARCHIVE, "garbage");
    project.write("evals/none.labeled.json", json!([]));
    for paths in [&[][..], &[FILE], &["evals"], &["evals/none.labeled.json", ARCHIVE]] {
        let output = project.run(["check"].iter().chain(paths).copied());
        assert_eq!(output.code, Some(2), "{paths:?} {}", output.both());
    }
    let output = add(&project);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains(&format!("[{ARCHIVE}:1:1]")), "{}", output.stderr);
    // The cases of an unreadable archive are unknown, so none is reported as removed.
    let mut file: Value = serde_json::from_str(&before).unwrap();
    file["cases"] = json!([]);
    project.write(FILE, &file);
    assert!(!project.run(["check"]).stdout.contains("removed-regression"));
    // An archive without its eval file is checked too.
    std::fs::remove_file(project.path().join(FILE)).unwrap();
    assert_eq!(project.run(["check"]).code, Some(2));

    project.write(FILE, before);
    project.write(ARCHIVE, archive);
    let output = project.run(["check"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("(archived-regression)"), "{}", output.stdout);
    assert_eq!(project.run(["regress", "archive", "rg-get-weather-001"]).code, Some(0));
    assert_eq!(project.run(["check", "--strict"]).code, Some(0));
}

#[test]
fn archives_an_edited_case_with_both_hashes() {
    let project = project();
    add(&project);
    let sealed_hash = project.read_json(FILE)["metadata"]["caseHashes"]["rg-get-weather-001"].clone();
    project.write(FILE, project.read(FILE).replace("Rain?", "Snow?"));
    let output = project.run(["regress", "archive", "rg-get-weather-001"]);
    assert_eq!(output.code, Some(0));
    assert!(output.stderr.contains("was edited after it was sealed"), "{}", output.stderr);
    let archived = project.read_json(ARCHIVE)["archived"][0].clone();
    assert_eq!((&archived["hash"], &archived["sealedHash"]), (&json!(canonical_hash(&archived["case"])), &sealed_hash));
    assert_eq!(project.run(["check", "--strict"]).code, Some(0));
}

#[test]
fn does_not_write_a_read_only_file() {
    let project = project();
    add(&project);
    let path = project.path().join(FILE);
    let before = project.read(FILE);
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    let output = add(&project);
    assert_eq!((output.code, project.read(FILE)), (Some(3), before), "{}", output.both());
    assert!(output.stderr.contains("the file is read-only"), "{}", output.stderr);
}

#[test]
fn a_changed_description_does_not_make_regression_cases_stale() {
    let tools = |description: &str| json!([{"name": "get_weather", "description": description, "version": "1.0.0"}]);
    let project = project()
        .file("karat.json", json!({"toolRegistryPath": "tools.json"}))
        .file("tools.json", tools("Fetches the current weather of a city by its name."));
    add(&project);
    project.write("tools.json", tools("Returns the current weather of one city by its name."));
    assert!(!project.run(["check"]).stdout.contains("(stale)"));
}
