//! `karat eval check`.

use serde_json::{Value, json};

use crate::support::project;

const VALID: &str = "import re\nP = re.compile('x')\ndef eval_fine(trace):\n    return True, ''\n";

#[test]
fn shows_findings_in_their_source() {
    let source =
        "import json, os\n\ndef eval_tone(trace, limit):\n    x = trace.__class__\n    return eval('True'), ''\n";
    let project = project().file("tone.py", source).file("fine.py", VALID);
    let output = project.run(["eval", "check", "fine.py", "tone.py"]);
    assert_eq!(output.code, Some(2));
    let expected = [
        "fine.py: eval_fine",
        "import of 'os' is not allowed (import)",
        "[tone.py:1:14]",
        "1 │ import json, os",
        "'eval_tone' must have the parameters (trace) or (trace, context)",
        "the double-underscore attribute '__class__' is not allowed (dunder)",
        "[tone.py:4:15]",
        "the name 'eval' is blocked (name)",
        "[tone.py:5:12]",
        "2 files: 1 invalid, 4 findings",
    ];
    let mut rest = output.stdout.as_str();
    for part in expected {
        let (_, remaining) = rest.split_once(part).unwrap_or_else(|| panic!("no {part:?} in {}", output.stdout));
        rest = remaining;
    }
}

#[test]
fn locates_syntax_errors() {
    let project = project()
        .file("line.py", "def eval_x(trace)\r\n    return True, ''\r\n")
        .file("end.py", "def eval_x(trace):\n    return len(\n\n\n")
        .file("word.py", "def");
    let output = project.run(["eval", "check", "line.py", "end.py", "word.py"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 2
    ----- stdout -----
      × expected `:`, found newline (syntax)
       ╭─[line.py:1:18]
     1 │ def eval_x(trace)
       ·                  ─
       ╰────

      × unexpected EOF while parsing (syntax)
       ╭─[end.py:2:16]
     2 │     return len(
       ·                ─
       ╰────

      × expected an identifier (syntax)
       ╭─[word.py:1:4]
     1 │ def
       ·    ─
       ╰────

    3 files: 3 invalid, 3 findings
    ----- stderr -----
    ");
    let report = project.run(["eval", "check", "end.py", "--format", "json"]);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let finding = &report["files"][0]["findings"][0];
    let location = ["line", "column", "endLine", "endColumn"].map(|key| finding[key].as_u64().unwrap());
    assert_eq!((location, &finding["sourceLine"]), ([2, 16, 2, 16], &json!("    return len(")));
}

#[test]
fn reports_only_the_first_syntax_error_of_a_line() {
    let project = project().file("e.py", "x = = = 3 +\ny = 1\nz = 'a\n");
    insta::assert_snapshot!(project.run(["eval", "check", "e.py"]).filtered(), @"
    exit: 2
    ----- stdout -----
      × expected an expression (syntax)
       ╭─[e.py:1:5]
     1 │ x = = = 3 +
       ·     ─
       ╰────

      × missing closing quote in string literal (syntax)
       ╭─[e.py:3:5]
     3 │ z = 'a
       ·     ──
       ╰────

    1 file: 1 invalid, 2 findings
    ----- stderr -----
    ");
}

#[test]
fn rejects_files_with_several_functions() {
    let project = project().file("e.py", "def eval_a(t): pass\ndef eval_b(t): pass\n");
    let output = project.run(["eval", "check", "e.py"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stdout.contains("more than one eval function: 'eval_a', 'eval_b'"), "{}", output.stdout);
}

#[test]
fn reports_a_missing_file_and_checks_the_others() {
    let project = project().file("fine.py", VALID);
    let output = project.run(["eval", "check", "gone.py", "fine.py"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("error: cannot read gone.py: "), "{}", output.stderr);
    assert!(output.stdout.contains("fine.py: eval_fine\n2 files: 1 invalid, 0 findings"), "{}", output.stdout);
}

#[test]
fn checks_the_python_files_of_a_folder() {
    let project = project()
        .file("evals/functions/b.py", VALID)
        .file("evals/functions/a.py", VALID)
        .file("evals/functions/a.cases.jsonl", "no python")
        .file("evals/functions/_helper.py", "no python")
        .file("evals/functions/.hidden.py", "no python")
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
    assert!(nothing.stderr.contains("no Python files in evals"), "{}", nothing.stderr);
}

#[test]
fn json_report_contains_all_findings() {
    let project = project()
        .file("fine.py", VALID)
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
fn rejects_hostile_sources_and_strips_control_characters() {
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
    assert!(output.stdout.contains("the source is not valid UTF-8 (syntax)"), "{}", output.stdout);
    assert!(output.stdout.contains("[bytes.py:2:6]"), "{}", output.stdout);
}

#[test]
fn resolves_functions_by_name_file_or_folder() {
    let project = project()
        .file("evals/functions/tone.py", "def eval_tone(trace):\n    return True, ''\n")
        .file("evals/functions/fine.py", VALID)
        .file("evals/functions/_helper.py", "no python")
        .file("tone/other.py", "def eval_other(trace):\n    return True, ''\n")
        .file("evals/functions/tone.cases.jsonl", "");
    let checked = |arguments: &[&str]| {
        let output = project.run([&["eval", "check", "--ascii"], arguments].concat());
        assert_eq!(output.code, Some(0), "{}", output.both());
        let lines = output.stdout.lines().filter_map(|line| line.strip_prefix("ok   "));
        lines.map(|line| line.split_once(": ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(checked(&[]), ["eval_fine", "eval_tone"]);
    assert_eq!(checked(&["eval_fine", "tone"]), ["eval_fine", "eval_tone"]);
    // A function name takes precedence over a folder of the same name.
    assert_eq!(checked(&["tone"]), ["eval_tone"]);
    assert_eq!(checked(&["./tone"]), ["eval_other"]);
    assert_eq!(checked(&["tone/"]), ["eval_other"]);
    let wrong = project.run(["eval", "check", "evals/functions/tone.cases.jsonl", "evals/functions/tonne.py"]);
    insta::assert_snapshot!(wrong.filtered(), @"
    exit: 2
    ----- stdout -----
    2 files: 2 invalid, 0 findings
    ----- stderr -----
    error: evals/functions/tone.cases.jsonl is not a Python file
    hint: run 'karat eval test evals/functions/tone.py' to judge these cases
    error: cannot read evals/functions/tonne.py: No such file or directory (os error
      2)
    hint: did you mean 'evals/functions/tone.py'?
    ");
    insta::assert_snapshot!(project.run(["eval", "check", "ton"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: eval function 'eval_ton' not found in evals/functions
    hint: did you mean 'eval_tone'?
    ");
}

#[test]
fn rejects_duplicate_function_names() {
    let project = project().file("evals/functions/a.py", VALID).file("evals/functions/b.py", VALID);
    let output = project.run(["eval", "check"]);
    assert_eq!(output.code, Some(2));
    let expected = "'eval_fine' is also defined in evals/functions/b.py (function)";
    assert!(output.stdout.contains(expected), "{}", output.stdout);
}

#[test]
fn rejects_a_project_without_functions() {
    insta::assert_snapshot!(project().run(["eval", "check"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no eval functions in evals/functions
    hint: run 'karat eval new NAME' to create one
    ");
}
