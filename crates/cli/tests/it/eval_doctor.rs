//! `karat eval doctor`, with the built-in Python and with invalid guests.

use karat_sandbox::Guest;
use serde_json::Value;

use crate::support::project;

fn report(output: &karat_testkit::project::Output) -> Value {
    let report: Value = serde_json::from_str(&output.stdout).expect("valid JSON");
    let schema: Value = serde_json::from_str(&project().run(["schema", "eval-doctor"]).stdout).expect("valid JSON");
    let problems: Vec<String> = jsonschema::validator_for(&schema)
        .expect("valid schema")
        .iter_errors(&report)
        .map(|error| error.to_string())
        .collect();
    assert!(problems.is_empty(), "{problems:?}");
    report
}

#[test]
fn the_built_in_guest_passes_all_checks() {
    let guest = Guest::find(None).expect("a build with a guest");
    let project = project();
    let output = project.run(["eval", "doctor", "--format", "json"]);
    let report = report(&output);
    assert_eq!((output.code, &report["isHealthy"]), (Some(0), &Value::from(true)), "{report:#}");
    assert_eq!(report["guest"]["hash"], guest.hash());
    assert!(report["guest"]["pythonVersion"].as_str().expect("a Python version").starts_with("3."), "{report:#}");
    assert!(report["promises"].as_array().expect("promises").len() > 20);
    assert!(report["loadMs"].is_u64(), "{report:#}");

    let output = project.run(["eval", "doctor", "--quiet"]);
    assert_eq!(output.code, Some(0));
    assert!(output.stdout.contains(" loaded in ") && output.stdout.ends_with(" checks passed\n"), "{}", output.stdout);
    assert!(!output.stdout.contains("time: a loop"), "--quiet shows only problems: {}", output.stdout);
}

#[test]
fn reports_invalid_guests() {
    let project = project();
    project.write("text.cwasm", "text");
    project.write("guest.wasm", &b"\0asm\x0d\0\x01\0"[..]);
    project.write("program.cwasm", &b"\x7fELF\x02\x01\x01"[..]);
    for (guest, message) in [
        ("text.cwasm", "text.cwasm is not a valid guest: it is not machine code"),
        ("guest.wasm", "guest.wasm is not a valid guest: it is WebAssembly, not machine code"),
        ("program.cwasm", "program.cwasm is not a valid guest: "),
        ("none.cwasm", "cannot read none.cwasm: "),
    ] {
        let command = |arguments: &[&str]| project.command(arguments.iter().copied()).env("KARAT_GUEST", guest).run();
        let output = command(&["eval", "doctor", "--quiet"]);
        assert_eq!(output.code, Some(3), "{}", output.both());
        assert!(output.unwrapped_stderr().contains(message), "{}", output.stderr);
        let output = command(&["eval", "doctor", "--format", "json"]);
        let report = report(&output);
        assert_eq!(
            (output.code, &report["isHealthy"], &report["loadMs"]),
            (Some(3), &Value::from(false), &Value::Null)
        );
        assert!(report["problem"].as_str().expect("a problem").contains(message), "{report:#}");
    }
}
