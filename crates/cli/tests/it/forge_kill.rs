//! `karat forge` killed at any moment: eval files are as they were or complete, and no approval is lost.

use std::time::Duration;

use karat_core::case::{EvalFile, Origin};
use karat_testkit::project::TempProject;

use crate::forge::forge_project;
use crate::forge_terminal::Person;

const GOLDEN: &str = "evals/get-weather.golden.json";
const LABELED: &str = "evals/get-weather.labeled.json";

/// Returns how many cases a file has; it is there whole, or not at all.
fn whole(project: &TempProject, path: &str) -> usize {
    let Ok(bytes) = std::fs::read(project.path().join(path)) else {
        return 0;
    };
    let file = EvalFile::read(&bytes, Origin { file_name: path }).expect("a file is there whole");
    file.cases.len()
}

#[test]
fn a_script_that_is_killed_goes_on_where_it_was() {
    let complete = forge_project(12);
    let started = std::time::Instant::now();
    assert_eq!(complete.run(["forge", "get_weather", "--approve-all"]).code, Some(0));
    let takes = started.elapsed();
    let expected = (whole(&complete, GOLDEN), whole(&complete, LABELED));
    let mut killed = 0;
    for moment in 1..=24_u32 {
        let project = forge_project(12);
        let running = project.command(["forge", "get_weather", "--approve-all"]).start();
        std::thread::sleep(takes * moment / 24 + Duration::from_millis(u64::from(moment % 3)));
        running.signal("KILL");
        let output = running.wait().expect("it is gone");
        killed += usize::from(output.code.is_none());
        for (path, all) in [(GOLDEN, expected.0), (LABELED, expected.1)] {
            let there = whole(&project, path);
            assert!(there == 0 || there == all, "{path} has {there} of {all} cases");
        }
        let is_kept = project.path().join(".karat/forge/get-weather.json").exists();
        let arguments: &[&str] =
            if is_kept { &["--resume", "--approve-all"] } else { &["get_weather", "--approve-all"] };
        let resumed = project.run(std::iter::once("forge").chain(arguments.iter().copied()));
        assert_eq!(resumed.code, Some(0), "{}", resumed.both());
        assert_eq!((whole(&project, GOLDEN), whole(&project, LABELED)), expected);
        let strays = project.files_in("evals", ".tmp");
        assert!(strays.len() <= 1, "{strays:?}");
    }
    assert!(killed > 5, "only {killed} of them were killed while they worked");
}

#[test]
fn a_person_whose_program_is_killed_finds_every_approval() {
    let project = forge_project(3);
    for (approved, number) in (1..=3).enumerate() {
        let mut ada = Person::at(&project, &["get_weather", "--tier", "golden"]);
        ada.reads(&format!("golden: batch 1 of 1, {approved} approved so far"));
        ada.decides(&format!("a {number}"));
        ada.reads("still open");
        ada.kills_it();
        assert!(!project.path().join(GOLDEN).exists());
    }
    let mut ada = Person::at(&project, &["--resume"]);
    ada.reads("golden: batch 1 of 1, 3 approved so far");
    ada.decides("a");
    ada.reads("wrote evals/get-weather.golden.json");
    ada.kills_it();
    let approvals = project.read_json(GOLDEN)["metadata"]["approvals"].as_array().expect("approvals").len();
    assert_eq!(approvals, 4);
}

/// The file is written and the program dies before it can note that.
#[test]
fn what_is_in_the_file_already_is_not_written_twice() {
    let project = forge_project(3);
    let mut ada = Person::at(&project, &["get_weather", "--tier", "golden"]);
    ada.decides("a 1");
    ada.reads("still open");
    ada.kills_it();
    let session = project.path().join(".karat/forge/get-weather.json");
    let before = std::fs::read(&session).unwrap();
    let first = project.run(["forge", "--resume", "--approve-all"]);
    assert_eq!(first.code, Some(0), "{}", first.both());
    let written = whole(&project, GOLDEN);
    std::fs::write(&session, before).unwrap();
    let second = project.run(["forge", "--resume", "--approve-all"]);
    assert_eq!(second.code, Some(0), "{}", second.both());
    assert!(second.stdout.contains("has all of them already"), "{}", second.stdout);
    assert_eq!(whole(&project, GOLDEN), written);
}
