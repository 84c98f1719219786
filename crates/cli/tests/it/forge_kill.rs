//! Kills `karat forge` at different moments: eval files are unchanged or complete, and no approval is lost.

use std::time::Duration;

use karat_cases::{EvalFile, Origin};
use karat_testkit::project::TempProject;

use crate::forge::forge_project;
use crate::forge_terminal::TerminalSession;

const GOLDEN: &str = "evals/get-weather.golden.json";
const LABELED: &str = "evals/get-weather.labeled.json";

/// Returns the number of cases of a file, 0 if it does not exist; panics if it is incomplete.
fn case_count(project: &TempProject, path: &str) -> usize {
    let Ok(bytes) = std::fs::read(project.path().join(path)) else {
        return 0;
    };
    let file = EvalFile::parse(&bytes, Origin::new(path)).expect("complete eval file");
    file.cases.len()
}

#[test]
fn a_killed_script_can_be_resumed() {
    let complete = forge_project(12);
    let started = std::time::Instant::now();
    assert_eq!(complete.run(["forge", "get_weather", "--approve-all"]).code, Some(0));
    let duration = started.elapsed();
    let expected = (case_count(&complete, GOLDEN), case_count(&complete, LABELED));
    let mut killed = 0;
    for moment in 1..=24_u32 {
        let project = forge_project(12);
        let running = project.command(["forge", "get_weather", "--approve-all"]).start();
        std::thread::sleep(duration * moment / 24 + Duration::from_millis(u64::from(moment % 3)));
        running.signal("KILL");
        let output = running.wait().expect("the process exited");
        killed += usize::from(output.code.is_none());
        for (path, all) in [(GOLDEN, expected.0), (LABELED, expected.1)] {
            let count = case_count(&project, path);
            assert!(count == 0 || count == all, "{path} has {count} of {all} cases");
        }
        let has_session = project.path().join(".karat/forge/get-weather.json").exists();
        let arguments: &[&str] =
            if has_session { &["--resume", "--approve-all"] } else { &["get_weather", "--approve-all"] };
        let resumed = project.run(std::iter::once("forge").chain(arguments.iter().copied()));
        assert_eq!(resumed.code, Some(0), "{}", resumed.both());
        assert_eq!((case_count(&project, GOLDEN), case_count(&project, LABELED)), expected);
        let temporary = project.files_in("evals", ".tmp");
        assert!(temporary.len() <= 1, "{temporary:?}");
    }
    assert!(killed > 5, "only {killed} processes were killed while running");
}

#[test]
fn approvals_survive_a_kill() {
    let project = forge_project(3);
    for (approved, number) in (1..=3).enumerate() {
        let mut terminal = TerminalSession::forge(&project, &["get_weather", "--tier", "golden"]);
        terminal.expect_output(&format!("golden: batch 1 of 1, {approved} approved so far"));
        terminal.answer(&format!("a {number}"));
        terminal.expect_output("still undecided");
        terminal.kill();
        assert!(!project.path().join(GOLDEN).exists());
    }
    let mut terminal = TerminalSession::forge(&project, &["--resume"]);
    terminal.expect_output("golden: batch 1 of 1, 3 approved so far");
    terminal.answer("a");
    terminal.expect_output("wrote evals/get-weather.golden.json");
    terminal.kill();
    let approvals = project.read_json(GOLDEN)["metadata"]["approvals"].as_array().expect("approvals").len();
    assert_eq!(approvals, 4);
}

/// Simulates a kill after the file was written and before the session was updated.
#[test]
fn does_not_write_cases_twice() {
    let project = forge_project(3);
    let mut terminal = TerminalSession::forge(&project, &["get_weather", "--tier", "golden"]);
    terminal.answer("a 1");
    terminal.expect_output("still undecided");
    terminal.kill();
    let session = project.path().join(".karat/forge/get-weather.json");
    let before = std::fs::read(&session).unwrap();
    let first = project.run(["forge", "--resume", "--approve-all"]);
    assert_eq!(first.code, Some(0), "{}", first.both());
    let written = case_count(&project, GOLDEN);
    std::fs::write(&session, before).unwrap();
    let second = project.run(["forge", "--resume", "--approve-all"]);
    assert_eq!(second.code, Some(0), "{}", second.both());
    assert!(second.stdout.contains("already has all cases"), "{}", second.stdout);
    assert_eq!(case_count(&project, GOLDEN), written);
}
