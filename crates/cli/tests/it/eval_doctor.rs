//! `karat eval doctor`, with the Python of the build and with things that are none.

use karat_sandbox::Guest;
use serde_json::Value;

use crate::support::project;

fn report(output: &karat_testkit::project::Output) -> Value {
    let report: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let schema: Value = serde_json::from_str(&project().run(["schema", "eval-doctor"]).stdout).expect("JSON");
    let problems: Vec<String> = jsonschema::validator_for(&schema)
        .expect("a schema")
        .iter_errors(&report)
        .map(|error| error.to_string())
        .collect();
    assert!(problems.is_empty(), "{problems:?}");
    report
}

#[test]
fn all_is_well_with_the_python_of_the_build() {
    let guest = Guest::find(None).expect("a build with Python");
    let project = project();
    let output = project.run(["eval", "doctor", "--format", "json"]);
    let report = report(&output);
    assert_eq!((output.code, &report["isHealthy"]), (Some(0), &Value::from(true)), "{report:#}");
    assert_eq!(report["guest"]["hash"], guest.hash());
    assert!(report["guest"]["pythonVersion"].as_str().expect("known").starts_with("3."), "{report:#}");
    assert!(report["promises"].as_array().expect("promises").len() > 20);
    assert!(report["loadMs"].is_u64(), "{report:#}");

    let output = project.run(["eval", "doctor", "--quiet"]);
    assert_eq!(output.code, Some(0));
    assert!(
        output.stdout.contains(" loaded in ") && output.stdout.ends_with(" tried, all held\n"),
        "{}",
        output.stdout
    );
    assert!(!output.stdout.contains("time: a loop"), "nothing but what is wrong: {}", output.stdout);
}

#[test]
fn says_what_is_wrong_with_a_named_guest() {
    let project = project();
    project.write("text.cwasm", "text");
    project.write("guest.wasm", &b"\0asm\x0d\0\x01\0"[..]);
    project.write("program.cwasm", &b"\x7fELF\x02\x01\x01"[..]);
    for (guest, said) in [
        ("text.cwasm", "text.cwasm is not a guest: it is not machine code"),
        ("guest.wasm", "guest.wasm is not a guest: it is WebAssembly, not machine code"),
        ("program.cwasm", "program.cwasm is not a guest: "),
        ("none.cwasm", "cannot read none.cwasm: "),
    ] {
        let command = |arguments: &[&str]| project.command(arguments.iter().copied()).env("KARAT_GUEST", guest).run();
        let output = command(&["eval", "doctor", "--quiet"]);
        assert_eq!(output.code, Some(3), "{}", output.both());
        assert!(output.stderr.contains(said), "{}", output.stderr);
        let output = command(&["eval", "doctor", "--format", "json"]);
        let report = report(&output);
        assert_eq!(
            (output.code, &report["isHealthy"], &report["loadMs"]),
            (Some(3), &Value::from(false), &Value::Null)
        );
        assert!(report["problem"].as_str().expect("a problem").contains(said), "{report:#}");
    }
}
