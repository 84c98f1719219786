//! Shared projects and cases.

use std::time::Duration;

use karat_testkit::project::TempProject;
use serde_json::{Value, json};

/// Creates an empty project that runs the real binary.
pub(crate) fn project() -> TempProject {
    TempProject::new(env!("CARGO_BIN_EXE_karat"))
}

/// Creates an empty project after compiling Python for this machine, so that commands do not report the compilation.
pub(crate) fn project_with_python() -> TempProject {
    static READY: std::sync::Once = std::sync::Once::new();
    READY.call_once(|| {
        let project = project().file("e.py", "def eval_ready(trace):\n    return True, ''\n");
        let command = project.command(["eval", "run", "e.py", "--traces", "-"]).stdin("{\"steps\": []}\n");
        // Slow without optimisation.
        let output = command.timeout(Duration::from_mins(5)).run();
        assert_eq!(output.code, Some(0), "{}", output.both());
    });
    project()
}

/// Returns a case whose response must contain "ok".
pub(crate) fn ok_case(id: &str, message: &str) -> Value {
    case(id, message, json!({"responseContains": ["ok"]}))
}

#[expect(clippy::needless_pass_by_value, reason = "callers pass a `json!` literal")]
pub(crate) fn case(id: &str, message: &str, expect: Value) -> Value {
    json!({"id": id, "description": format!("says {message}"), "input": {"message": message}, "expect": expect})
}

/// Returns an agent script with a response to each message.
pub(crate) fn script(replies: &[(&str, &str)]) -> Value {
    let replies: serde_json::Map<String, Value> =
        replies.iter().map(|(message, response)| ((*message).to_owned(), json!({"response": response}))).collect();
    json!({"replies": replies})
}

/// Returns the only result file of a run.
pub(crate) fn only_result(project: &TempProject, folder: &str) -> Value {
    let files = project.files_in(folder, ".json");
    assert_eq!(files.len(), 1, "{files:?}");
    serde_json::from_slice(&std::fs::read(&files[0]).unwrap()).unwrap()
}

/// Returns the newest result file.
pub(crate) fn newest_result(project: &TempProject, folder: &str) -> Value {
    let files = project.files_in(folder, ".json");
    serde_json::from_slice(&std::fs::read(files.last().expect("a result file")).unwrap()).unwrap()
}

/// Returns the newest result file without the values that differ between runs.
pub(crate) fn normalised_result(project: &TempProject) -> String {
    let file = project.files_in("results", ".json").pop().expect("a result file");
    let text = std::fs::read_to_string(file).unwrap();
    let is_stable =
        |line: &&str| !["\"runId\"", "\"timestamp\"", "\"wallClockMs\""].iter().any(|key| line.contains(key));
    text.lines().filter(is_stable).collect::<Vec<_>>().join("\n")
}
