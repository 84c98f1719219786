//! `karat forge` in a conversation, on a real terminal.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use karat_testkit::project::TempProject;
use rexpect::process::wait::WaitStatus;
use rexpect::session::PtySession;
use serde_json::{Value, json};

use crate::forge::{forge_project, tools};

/// How long the program may think.
const PATIENCE_MS: u64 = 60_000;

const GOLDEN: &str = "evals/get-weather.golden.json";
const LABELED: &str = "evals/get-weather.labeled.json";

/// A person at a terminal.
pub(crate) struct Person {
    session: PtySession,
}

impl Person {
    pub(crate) fn at(project: &TempProject, arguments: &[&str]) -> Self {
        Self::with(project, arguments, &[])
    }

    pub(crate) fn with(project: &TempProject, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::saying(project, &[&["forge"], arguments].concat(), variables)
    }

    /// Lets the program run with all of these words.
    pub(crate) fn saying(project: &TempProject, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_karat"));
        command.args(words).current_dir(project.path());
        command.env("TERM", "xterm").env("NO_COLOR", "1").env("GIT_AUTHOR_NAME", "Ada").env_remove("VISUAL");
        command.env("LC_ALL", "C.UTF-8").envs(variables.iter().copied());
        let session = rexpect::session::spawn_command(command, Some(PATIENCE_MS)).expect("a terminal");
        Self { session }
    }

    /// Waits until the program says this.
    #[track_caller]
    pub(crate) fn reads(&mut self, words: &str) {
        if let Err(error) = self.session.exp_string(words) {
            panic!("it never says '{words}': {error}");
        }
    }

    pub(crate) fn types(&mut self, line: &str) {
        self.session.send_line(line).expect("a terminal takes lines");
    }

    /// Waits for the question behind a batch, and answers it.
    #[track_caller]
    pub(crate) fn decides(&mut self, line: &str) {
        self.reads("What now?");
        self.types(line);
    }

    #[track_caller]
    pub(crate) fn leaves_with(mut self, code: i32) {
        self.session.exp_eof().expect("it ends");
        match self.session.process.wait() {
            Ok(WaitStatus::Exited(_, status)) => assert_eq!(status, code),
            other => panic!("it did not end by itself: {other:?}"),
        }
    }

    /// Kills the program as nobody can prevent.
    pub(crate) fn kills_it(mut self) {
        self.session.process.kill(rexpect::process::signal::Signal::SIGKILL).ok();
    }
}

fn cases(project: &TempProject, path: &str) -> Vec<Value> {
    project.read_json(path)["cases"].as_array().expect("cases").clone()
}

fn has_session(project: &TempProject) -> bool {
    project.path().join(".karat/forge/get-weather.json").exists()
}

#[test]
fn a_golden_batch_is_looked_at_and_decided() {
    let project = forge_project(3);
    let mut ada = Person::at(&project, &["get_weather", "--tier", "golden"]);
    ada.reads("golden: batch 1 of 1, 0 approved so far");
    ada.reads("gs-get-weather-001");
    ada.reads("Show me the weather of Paris");
    ada.decides("");
    ada.reads("type ? for the list of commands");
    ada.decides("?");
    ada.reads("write what is approved so far");
    ada.decides("a 9");
    ada.reads("there is no case 9");
    ada.decides("a 1 2");
    ada.reads("still open: 3");
    ada.decides("d 3");
    ada.reads("still open: 4");
    ada.decides("g 4");
    ada.reads("there is no other draft");
    ada.decides("r make it shorter");
    ada.reads("only a model understands words");
    ada.decides("b");
    ada.reads("this is the first batch");
    ada.reads("What now?");
    assert!(has_session(&project), "it is kept after every word");
    assert!(!project.path().join(GOLDEN).exists(), "nothing is written by itself before all is decided");
    ada.types("w");
    ada.reads("golden: 2 cases in evals/get-weather.golden.json");
    ada.decides("d 1");
    ada.reads("case 1 is written: edit the file itself");
    ada.decides("a");
    ada.reads("wrote evals/get-weather.golden.json");
    ada.reads("left out: 1 draft");
    ada.leaves_with(0);
    let ids: Vec<Value> = cases(&project, GOLDEN).iter().map(|case| case["id"].clone()).collect();
    assert!(ids.contains(&json!("gs-get-weather-001")) && !ids.contains(&json!("gs-get-weather-003")), "{ids:?}");
    let approvals = project.read_json(GOLDEN)["metadata"]["approvals"].clone();
    assert_eq!((&approvals[0]["approvedBy"], approvals.as_array().map(Vec::len)), (&json!("Ada"), Some(2)));
    assert!(!has_session(&project));
}

#[test]
fn who_leaves_comes_back_to_the_same_batch() {
    let project = forge_project(3);
    let mut ada = Person::at(&project, &["get_weather"]);
    ada.decides("a");
    ada.reads("Eval batch plan for get_weather:");
    ada.reads("Proceed?");
    ada.types("n");
    ada.reads("--resume goes on here");
    ada.leaves_with(0);
    assert!(project.path().join(GOLDEN).exists(), "golden is written after its batch");
    let mut ada = Person::at(&project, &["--resume"]);
    ada.reads("Proceed?");
    ada.types("y");
    ada.reads("edge: batch 1 of");
    ada.decides("a 1 3");
    ada.reads("still open: 2, 4, 5");
    ada.decides("q");
    ada.reads("Write the 2 approved cases now?");
    ada.types("n");
    ada.leaves_with(0);
    let mut ada = Person::at(&project, &["get_weather", "--resume"]);
    ada.reads("edge: batch 1 of");
    ada.reads("ls-get-weather-001");
    ada.reads("approved");
    ada.decides("a");
    ada.reads("edge: batch 2 of");
    ada.decides("b");
    ada.reads("edge: batch 1 of");
    ada.decides("d 2");
    ada.decides("n");
    ada.reads("edge: batch 2 of");
    // Esc is a way to leave too.
    ada.reads("What now?");
    ada.session.send("\u{1b}").unwrap();
    ada.session.flush().unwrap();
    ada.reads("--resume goes on here");
    ada.leaves_with(0);
    assert!(!project.path().join(LABELED).exists(), "nobody wanted them written yet");
    // What a person approved is not approved again by a script.
    let output = project.run(["forge", "--resume", "--approve-all", "--approved-by", "script"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("left out: 1 draft"), "a person wanted it so: {}", output.stdout);
    let labeled = project.read_json(LABELED);
    let approvals = labeled["metadata"]["approvals"].as_array().expect("approvals").clone();
    let of_ada: Vec<&Value> = approvals.iter().filter(|approval| approval["approvedBy"] == "Ada").collect();
    assert_eq!(of_ada[0]["cases"], json!(["ls-get-weather-001", "ls-get-weather-003"]));
    assert!(cases(&project, LABELED).iter().all(|case| case["id"] != "ls-get-weather-002"));
}

#[test]
fn ctrl_c_keeps_the_session() {
    let project = forge_project(3);
    let mut ada = Person::at(&project, &["get_weather", "--tier", "golden"]);
    ada.decides("a 1");
    ada.reads("still open");
    ada.reads("What now?");
    ada.session.send_control('c').unwrap();
    ada.reads("1 approved case not written, kept in .karat/forge/get-weather.json");
    ada.leaves_with(130);
    assert!(has_session(&project));
    // A second one is refused as long as somebody is at it.
    let mut ada = Person::at(&project, &["get_weather", "--tier", "golden"]);
    ada.reads("going on with the session that was left, 1 approved");
    ada.reads("What now?");
    let second = project.run(["forge", "get_weather", "--resume", "--approve-all"]);
    assert_eq!(second.code, Some(2), "{}", second.both());
    assert!(second.stderr.contains("another karat forge is at work on 'get_weather'"), "{}", second.stderr);
    ada.types("a");
    ada.reads("wrote evals/get-weather.golden.json");
    ada.leaves_with(0);
}

/// An editor that makes mistakes first.
#[test]
fn an_edited_case_is_examined_before_it_counts() {
    let project = forge_project(3);
    let editor = project.path().join("editor.sh");
    std::fs::write(
        &editor,
        "#!/bin/sh\ncount=$(cat count 2>/dev/null || echo 0)\necho $((count + 1)) > count\ncase $count in\n\
         0) sed -i 's/}/,/' \"$1\" ;;\n\
         1) cat wrong > \"$1\" ;;\n\
         2) cat good > \"$1\" ;;\n\
         *) true ;;\nesac\n",
    )
    .unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let case = |tool: &str| {
        json!({"id": "gs-get-weather-002", "input": {"message": "How hot is it in Cairo?"}, "expect": {
            "toolsCalled": [tool], "responseContains": ["38.5", "sandstorm"], "responseNotContains": ["I don't know"],
        }})
    };
    project.write("wrong", case("get_wether").to_string());
    project.write("good", case("get_weather").to_string());
    let path = editor.display().to_string();
    let mut ada = Person::with(&project, &["get_weather", "--tier", "golden"], &[("EDITOR", &path)]);
    ada.decides("e 99");
    ada.reads("there is no case 99");
    ada.decides("e 2");
    ada.reads("Edit it again?");
    ada.types("y");
    ada.reads("get_wether");
    ada.reads("Edit it again?");
    ada.types("y");
    ada.reads("How hot is it in Cairo?");
    ada.reads("edited by you");
    ada.decides("e 2");
    ada.reads("nothing was changed");
    ada.decides("a");
    ada.reads("wrote evals/get-weather.golden.json");
    ada.leaves_with(0);
    assert!(cases(&project, GOLDEN).contains(&case("get_weather")));
    // Without an editor nothing is lost either.
    let mut ada = Person::with(&project, &["get_forecast", "--tier", "golden"], &[("EDITOR", "no-such-editor")]);
    ada.decides("e 1");
    ada.reads("cannot start the editor 'no-such-editor'");
    ada.decides("q");
    ada.leaves_with(0);
}

#[test]
fn what_nothing_says_is_asked_for() {
    let mut tools = tools(2);
    for tool in tools["tools"].as_array_mut().expect("tools") {
        tool.as_object_mut().expect("a tool").remove("triggerPhrases");
    }
    let project = forge_project(2).file("tools.json", tools);
    std::fs::remove_file(project.path().join("evals/overlap-map.json")).unwrap();
    let mut ada = Person::at(&project, &["get_weather"]);
    ada.reads("The overlap map says nothing of get_weather. It may be taken for:");
    ada.reads("Declare that get_weather and get_forecast overlap?");
    ada.types("y");
    ada.reads("What does a person say who means get_weather?");
    for (question, phrase) in
        [(1, "Is it warm?"), (2, "is it WARM?"), (2, "Is it cold?"), (3, ""), (3, "Is it wet?"), (4, "")]
    {
        ada.reads(&format!("Phrase {question}:"));
        ada.types(phrase);
    }
    ada.decides("a");
    ada.reads("Overlaps: 1");
    ada.reads("Proceed?");
    ada.types("n");
    ada.reads("--resume goes on here");
    ada.leaves_with(0);
    assert_eq!(cases(&project, GOLDEN)[0]["input"]["message"], "Is it warm?");
    let map = project.read_json("evals/overlap-map.json");
    let both = (&map["get_weather"]["overlaps"], &map["get_forecast"]["overlaps"]);
    assert_eq!(both, (&json!(["get_forecast"]), &json!(["get_weather"])));
    // What was declared is no change of what the drafts were made for.
    let output = project.run(["forge", "--resume", "--approve-all"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.unbroken_stderr().contains("no ambiguous case names both"), "{}", output.stderr);
    let versions = [GOLDEN, LABELED].map(|path| project.read_json(path)["metadata"]["overlapMapVersion"].clone());
    assert!(versions[0].is_string() && versions[0] == versions[1], "{versions:?}");
}

#[test]
fn a_tool_that_changed_meanwhile_is_told_of() {
    let project = forge_project(3);
    let mut ada = Person::at(&project, &["get_weather", "--tier", "golden"]);
    ada.decides("a 1");
    ada.reads("still open");
    ada.decides("q");
    ada.reads("Write the 1 approved case now?");
    ada.types("n");
    ada.leaves_with(0);
    project.write("tools.json", tools(4));
    let script = project.run(["forge", "get_weather", "--resume", "--approve-all"]);
    assert_eq!(script.code, Some(2), "{}", script.both());
    assert!(script.stderr.contains("new tools: get_mail"), "{}", script.stderr);
    let mut ada = Person::at(&project, &["get_weather"]);
    ada.reads("new tools: get_mail");
    ada.reads("Go on with these drafts all the same?");
    ada.types("n");
    ada.leaves_with(0);
    assert!(has_session(&project));
    let mut ada = Person::at(&project, &["get_weather"]);
    ada.reads("Go on with these drafts all the same?");
    ada.types("y");
    ada.reads("golden: batch 1 of 1, 1 approved so far");
    ada.decides("a");
    ada.reads("wrote evals/get-weather.golden.json");
    ada.leaves_with(0);
}

#[test]
fn a_model_revises_as_it_is_told() {
    let case = |message: &str, number: usize| {
        json!({"id": format!("gs-get-weather-{number:03}"), "input": {"message": message}, "expect": {
            "toolsCalled": ["get_weather"], "responseContains": [format!("{number}1.25"), format!("north-{number}")],
            "responseNotContains": ["I don't know"],
        }})
    };
    let first: Vec<Value> = (1..=8)
        .map(|number| case(&format!("Question {number} of the {number}th kind, is it windy?"), number))
        .collect();
    let revised = case("Tell me of the gales at the coast of Brittany", 2);
    let script = json!({"replies": [
        {"contains": ["speak of gales"], "value": {"cases": [revised]}},
        {"contains": ["out of order"], "error": "the model is out of order"},
    ], "otherwise": {"value": {"cases": first}}});
    let project = forge_project(3).file("model.json", script);
    let mut ada = Person::at(&project, &["get_weather", "--tier", "golden", "--model", "scripted:model.json"]);
    ada.reads("cases are drafted by scripted:model.json");
    ada.reads("golden: batch 1 of 1");
    ada.decides("r 2 speak of gales");
    ada.reads("Tell me of the gales at the coast of Brittany");
    ada.decides("r 2 out of order");
    ada.reads("the model is out of order");
    // The draft is still there.
    ada.decides("s");
    ada.reads("Tell me of the gales at the coast of Brittany");
    ada.decides("q");
    ada.leaves_with(0);
}
