//! `karat eval check`.

use serde_json::{Value, json};

use crate::support::project;

const FINE: &str = "import re\nP = re.compile('x')\ndef eval_fine(trace):\n    return True, ''\n";

#[test]
fn findings_stand_in_their_source() {
    let source =
        "import json, os\n\ndef eval_tone(trace, limit):\n    x = trace.__class__\n    return eval('True'), ''\n";
    let project = project().file("tone.py", source).file("fine.py", FINE);
    let output = project.run(["eval", "check", "fine.py", "tone.py"]);
    assert_eq!(output.code, Some(2));
    let expected = [
        "fine.py: eval_fine",
        "import of 'os' is not allowed (import)",
        "[tone.py:1:14]",
        "1 │ import json, os",
        "'eval_tone' must have exactly one parameter, the trace (function)",
        "the double-underscore attribute '__class__' is not allowed (dunder)",
        "[tone.py:4:15]",
        "the name 'eval' is blocked (name)",
        "[tone.py:5:12]",
        "2 files: 1 invalid, 4 findings",
    ];
    let mut rest = output.stdout.as_str();
    for part in expected {
        let (_, behind) = rest.split_once(part).unwrap_or_else(|| panic!("no {part:?} in {}", output.stdout));
        rest = behind;
    }
}

#[test]
fn a_syntax_error_has_its_place() {
    let project = project().file("e.py", "def eval_x(trace)\n    return True, ''\n");
    let output = project.run(["eval", "check", "e.py"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stdout.contains("(syntax)") && output.stdout.contains("[e.py:1:18]"), "{}", output.stdout);
}

#[test]
fn all_functions_are_named_where_there_are_several() {
    let project = project().file("e.py", "def eval_a(t): pass\ndef eval_b(t): pass\n");
    let output = project.run(["eval", "check", "e.py"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stdout.contains("more than one eval function: 'eval_a', 'eval_b'"), "{}", output.stdout);
}

#[test]
fn a_missing_file_is_named_and_the_others_are_checked() {
    let project = project().file("fine.py", FINE);
    let output = project.run(["eval", "check", "gone.py", "fine.py"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("error: cannot read gone.py: "), "{}", output.stderr);
    assert!(output.stdout.contains("fine.py: eval_fine\n2 files: 1 invalid, 0 findings"), "{}", output.stdout);
}

#[test]
fn the_python_files_of_a_folder_are_meant() {
    let project = project()
        .file("evals/functions/b.py", FINE)
        .file("evals/functions/a.py", FINE)
        .file("evals/functions/a.cases.jsonl", "no python")
        .file("evals/functions/deeper/c.py", "no python");
    let output = project.run(["eval", "check", "evals/functions", "evals/functions/b.py", "--ascii"]);
    let lines: Vec<&str> = output.stdout.lines().collect();
    let expected = [
        "ok   evals/functions/a.py: eval_fine",
        "ok   evals/functions/b.py: eval_fine",
        "2 files: 0 invalid, 0 findings",
    ];
    assert_eq!((output.code, lines), (Some(0), expected.to_vec()));
    let quiet = project.run(["eval", "check", "evals/functions", "--quiet"]);
    assert_eq!((quiet.code, quiet.stdout.as_str()), (Some(0), "2 files: 0 invalid, 0 findings\n"));
    let nothing = project.run(["eval", "check", "evals"]);
    assert_eq!(nothing.code, Some(4));
    assert!(nothing.stderr.contains("there are no Python files in evals"), "{}", nothing.stderr);
}

#[test]
fn programs_are_told_the_same() {
    let project = project()
        .file("fine.py", FINE)
        .file("e.py", "import re\r\ndef eval_é(trace):\r\n    return 'é', open, '''\r\n'''\r\n");
    let output = project.run(["eval", "check", "fine.py", "e.py", "gone.py", "--format", "json"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(2), ""));
    let mut report: Value = serde_json::from_str(&output.stdout).unwrap();
    let schema: Value = serde_json::from_str(&project.run(["schema", "eval-check"]).stdout).unwrap();
    assert!(jsonschema::is_valid(&schema, &report));
    let error = report["files"][2]["error"].take();
    assert!(error.as_str().unwrap().starts_with("cannot read gone.py: "), "{error}");
    let finding = json!({
        "rule": "name", "message": "the name 'open' is blocked", "help": null, "line": 3, "column": 17, "endLine": 3, "endColumn": 21,
        "sourceLine": "    return 'é', open, '''",
    });
    assert_eq!(
        report,
        json!({"files": [
            {"path": "fine.py", "function": "eval_fine", "codeHash": report["files"][0]["codeHash"], "error": null, "findings": []},
            {"path": "e.py", "function": null, "codeHash": null, "error": null, "findings": [finding]},
            {"path": "gone.py", "function": null, "codeHash": null, "error": null, "findings": []},
        ]})
    );
    assert_eq!(report["files"][0]["codeHash"].as_str().map(str::len), Some(12));
}

#[test]
fn hostile_sources_are_refused_and_steer_no_terminal() {
    let project = project()
        .file("deep.py", "(".repeat(60_000))
        .file("long.py", "#".repeat(70_000))
        .file("steering.py", "x = '\u{1b}[31m'; import \u{1b}[2J\n");
    std::fs::write(project.path().join("bytes.py"), b"x = 1\ny = '\xff\xfe'\n").unwrap();
    let output = project.run(["eval", "check", "deep.py", "long.py", "bytes.py", "steering.py"]);
    assert_eq!(output.code, Some(2));
    assert!(!output.stdout.contains('\u{1b}'), "{}", output.stdout);
    assert!(output.stdout.contains("nested too deeply"), "{}", output.stdout);
    assert!(output.stdout.contains("the source is longer than 64 KB"), "{}", output.stdout);
    assert!(output.stdout.contains("this is not UTF-8 (syntax)"), "{}", output.stdout);
    assert!(output.stdout.contains("[bytes.py:2:6]"), "{}", output.stdout);
}
