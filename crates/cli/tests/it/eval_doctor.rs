//! `karat eval doctor`, with the Python of the build and with things that are none.

use std::path::Path;
use std::time::Duration;

use karat_sandbox::Guest;
use karat_testkit::guest::needs_guest;
use serde_json::Value;

use crate::support::project;

/// A component with nothing in it: it can be compiled and started, and keeps no promise.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

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
    let Some(guest) = needs_guest(Guest::find(None)) else { return };
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("karat-cache");
    let project = project().env("KARAT_CACHE_DIR", &cache);
    // The first time, Python is compiled.
    let output = project.command(["eval", "doctor", "--format", "json"]).within(Duration::from_mins(5)).run();
    let report = report(&output);
    assert_eq!((output.code, &report["isHealthy"]), (Some(0), &Value::from(true)), "{report:#}");
    assert_eq!(report["guest"]["hash"], guest.hash());
    assert!(report["guest"]["pythonVersion"].as_str().expect("known").starts_with("3."), "{report:#}");
    assert!(report["promises"].as_array().expect("promises").len() > 20);
    let path = report["machineCode"]["path"].as_str().expect("a path");
    assert!(Path::new(path).starts_with(cache.join("python")), "{path}");

    let output = project.run(["eval", "doctor", "--quiet"]);
    assert_eq!(output.code, Some(0));
    assert!(
        output.stdout.contains(", loaded in ") && output.stdout.ends_with(" tried, all held\n"),
        "{}",
        output.stdout
    );
    assert!(!output.stdout.contains("time: a loop"), "nothing but what is wrong: {}", output.stdout);
}

#[test]
fn broken_promises_are_shown_and_are_no_verdict() {
    let project = project();
    project.write("guest.wasm", EMPTY);
    let cache = project.path().join("cache");
    let project = project.env("KARAT_GUEST", "guest.wasm").env("KARAT_CACHE_DIR", &cache);
    let output = project.run(["eval", "doctor", "--ascii"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let shown = &output.stdout;
    assert!(shown.contains("Python        of an unknown version\n"), "{shown}");
    assert!(shown.contains(", guest.wasm\n") && shown.contains(", made now in "), "{shown}");
    assert!(shown.contains("  FAIL time: a loop ") && shown.contains("ms  FAILED\n    -> internal: "), "{shown}");
    assert!(shown.ends_with(" broken: do not run what you do not trust\n"), "{shown}");
    assert!(shown.lines().filter(|line| !line.starts_with("machine code")).all(|line| line.len() <= 80), "{shown}");
    let output = project.run(["eval", "doctor", "--format", "json"]);
    let report = report(&output);
    assert_eq!((output.code, &report["isHealthy"], &report["problem"]), (Some(3), &Value::from(false), &Value::Null));
    assert_eq!(report["machineCode"]["wasReady"], true);
}

#[test]
fn what_is_missing_is_said() {
    let project = project();
    project.write("guest.wasm", "text");
    let cache = project.path().join("cache");
    for (guest, said) in
        [("guest.wasm", "guest.wasm is no guest: it is not a"), ("none.wasm", "cannot read none.wasm: ")]
    {
        let command = |arguments: &[&str]| {
            project.command(arguments.iter().copied()).env("KARAT_GUEST", guest).env("KARAT_CACHE_DIR", &cache).run()
        };
        let output = command(&["eval", "doctor"]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(3), ""));
        assert!(output.stderr.contains(said), "{}", output.stderr);
        let output = command(&["eval", "doctor", "--format", "json"]);
        let report = report(&output);
        assert_eq!((output.code, &report["isHealthy"], &report["guest"]), (Some(3), &Value::from(false), &Value::Null));
        assert!(report["problem"].as_str().expect("a problem").contains(said), "{report:#}");
    }
}
