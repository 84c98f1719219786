//! `karat forge` at a terminal.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use karat_testkit::project::TempProject;
use rexpect::ReadUntil;
use rexpect::process::wait::WaitStatus;
use rexpect::session::PtySession;
use serde_json::{Value, json};

use crate::forge::{forge_project, tools};

/// How long to wait for output.
const TIMEOUT_MS: u64 = 60_000;

const GOLDEN: &str = "evals/get-weather.golden.json";
const LABELED: &str = "evals/get-weather.labeled.json";

/// A karat process in a pseudo-terminal.
pub(crate) struct TerminalSession {
    session: PtySession,
}

impl TerminalSession {
    /// Starts `karat forge`.
    pub(crate) fn forge(project: &TempProject, arguments: &[&str]) -> Self {
        Self::forge_with_env(project, arguments, &[])
    }

    pub(crate) fn forge_with_env(project: &TempProject, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::spawn(project, &[&["forge"], arguments].concat(), variables)
    }

    /// Starts karat with these arguments.
    pub(crate) fn spawn(project: &TempProject, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_karat"));
        command.args(arguments).current_dir(project.path());
        command.env("TERM", "xterm").env("NO_COLOR", "1").env("GIT_AUTHOR_NAME", "Ada").env_remove("VISUAL");
        command.env("LC_ALL", "C.UTF-8").envs(variables.iter().copied());
        let session = rexpect::session::spawn_command(command, Some(TIMEOUT_MS)).expect("pseudo-terminal starts");
        Self { session }
    }

    /// Waits until the output contains this text.
    #[track_caller]
    pub(crate) fn expect_output(&mut self, text: &str) {
        if let Err(error) = self.session.exp_string(text) {
            panic!("'{text}' is missing in the output: {error}");
        }
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        self.session.send_line(line).expect("terminal accepts input");
    }

    /// Waits for the prompt after a batch and answers it.
    #[track_caller]
    pub(crate) fn answer(&mut self, line: &str) {
        self.expect_output("What now?");
        self.send_line(line);
    }

    /// Answers these prompts, in any order and each once, until the output contains `end`.
    #[track_caller]
    pub(crate) fn answer_prompts(&mut self, prompts: &[(&str, &str)], end: &str) {
        let mut open = prompts.to_vec();
        loop {
            let texts = open.iter().map(|(prompt, _)| *prompt).chain([end]);
            let needles = texts.map(|text| ReadUntil::String(text.to_owned())).collect();
            let (_, matched) = self.session.exp_any(needles).unwrap_or_else(|error| panic!("no prompt: {error}"));
            // The end, or a prompt. A prompt is drawn again with each character of its answer.
            let Some(at) = open.iter().position(|(prompt, _)| *prompt == matched) else { return };
            let (_, answer) = open.remove(at);
            self.send_line(answer);
        }
    }

    #[track_caller]
    pub(crate) fn expect_exit(self, code: i32) {
        let (status, output) = self.finish();
        assert_eq!(status, code, "{output}");
    }

    /// Waits for the exit. Returns the exit code and the rest of the output.
    #[track_caller]
    pub(crate) fn finish(mut self) -> (i32, String) {
        let output = self.session.exp_eof().expect("karat exits");
        match self.session.process.wait() {
            Ok(WaitStatus::Exited(_, status)) => (status, output),
            other => panic!("karat did not exit normally: {other:?}"),
        }
    }

    pub(crate) fn kill(mut self) {
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
fn decides_a_golden_batch() {
    let project = forge_project(3);
    let mut terminal = TerminalSession::forge(&project, &["get_weather", "--tier", "golden"]);
    terminal.expect_output("golden: batch 1 of 1, 0 approved so far");
    terminal.expect_output("gs-get-weather-001");
    terminal.expect_output("Show me the weather of Paris");
    terminal.answer("");
    terminal.expect_output("type ? for the list of commands");
    terminal.answer("?");
    terminal.expect_output("write the approved cases");
    terminal.answer("a 9");
    terminal.expect_output("no case 9");
    terminal.answer("s 2 9");
    terminal.expect_output("no case 9 in this batch");
    terminal.expect_output("gs-get-weather-002");
    terminal.answer("a 1 2");
    terminal.expect_output("approved: 1, 2");
    terminal.expect_output("still undecided: 3");
    terminal.answer("d 3");
    terminal.expect_output("still undecided: 4");
    terminal.answer("g 4");
    terminal.expect_output("no other draft");
    terminal.answer("r make it shorter");
    terminal.expect_output("only a model can follow instructions");
    terminal.answer("b");
    terminal.expect_output("this is the first batch");
    terminal.expect_output("What now?");
    assert!(has_session(&project), "the session is saved after every command");
    assert!(!project.path().join(GOLDEN).exists(), "nothing is written before all drafts are decided");
    terminal.send_line("w");
    terminal.expect_output("golden: 2 cases in evals/get-weather.golden.json");
    terminal.answer("d 1");
    terminal.expect_output("case 1 is already written: edit the file");
    terminal.answer("a");
    terminal.expect_output("wrote evals/get-weather.golden.json");
    terminal.expect_output("left out: 1 draft");
    terminal.expect_exit(0);
    let ids: Vec<Value> = cases(&project, GOLDEN).iter().map(|case| case["id"].clone()).collect();
    assert!(ids.contains(&json!("gs-get-weather-001")) && !ids.contains(&json!("gs-get-weather-003")), "{ids:?}");
    let approvals = project.read_json(GOLDEN)["metadata"]["approvals"].clone();
    assert_eq!((&approvals[0]["approvedBy"], approvals.as_array().map(Vec::len)), (&json!("Ada"), Some(2)));
    assert!(!has_session(&project));
}

#[test]
fn prompts_have_no_color_with_color_never() {
    let project = forge_project(3);
    let run = |color: &str| {
        let arguments = ["get_weather", "--tier", "golden", "--color", color];
        let mut terminal = TerminalSession::forge_with_env(&project, &arguments, &[("NO_COLOR", "")]);
        terminal.answer("q");
        terminal.finish().1
    };
    let (never, always) = (run("never"), run("always"));
    // The answered prompt is drawn again, with a coloured mark.
    assert!(!never.contains("\u{1b}[38;5;") && always.contains("\u{1b}[38;5;"), "{never:?}\n{always:?}");
}

#[test]
fn wraps_messages_at_words() {
    let mut tools = tools(3);
    tools["tools"][0]["description"] = json!("This tool handles weather stuff.");
    let project = forge_project(3).file("tools.json", tools);
    let terminal = TerminalSession::forge_with_env(&project, &["get_weather"], &[("COLUMNS", "80")]);
    let (status, output) = terminal.finish();
    assert_eq!(status, 2, "{output}");
    let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{output}");
    let words = output.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("is too vague for reliable eval generation. Fix the description first."), "{output}");
}

#[test]
fn resumes_at_the_same_batch() {
    let project = forge_project(3);
    let mut terminal = TerminalSession::forge(&project, &["get_weather"]);
    terminal.answer("a");
    terminal.expect_output("Eval batch plan for get_weather:");
    terminal.expect_output("6 of these 44 cases can be drafted now; 38 need --model");
    terminal.expect_output("You do not need to finish");
    terminal.expect_output("Next: 6 drafts in 2 batches, for you to review. Proceed?");
    terminal.send_line("n");
    terminal.expect_output("to continue: karat forge get_weather --resume");
    terminal.expect_exit(0);
    assert!(project.path().join(GOLDEN).exists(), "golden cases are written after their batch");
    let mut terminal = TerminalSession::forge(&project, &["--resume"]);
    terminal.expect_output("Proceed?");
    terminal.send_line("y");
    terminal.expect_output("edge: batch 1 of");
    terminal.answer("a 1 3");
    terminal.expect_output("still undecided: 2, 4, 5");
    terminal.answer("q");
    terminal.expect_output("Write the 2 approved cases now?");
    terminal.send_line("n");
    terminal.expect_exit(0);
    let mut terminal = TerminalSession::forge(&project, &["get_weather", "--resume"]);
    terminal.expect_output("edge: batch 1 of");
    terminal.expect_output("ls-get-weather-001");
    terminal.expect_output("approved");
    terminal.answer("a");
    terminal.expect_output("edge: batch 2 of");
    terminal.answer("b");
    terminal.expect_output("edge: batch 1 of");
    terminal.answer("d 2");
    terminal.answer("n");
    terminal.expect_output("edge: batch 2 of");
    // Esc quits too.
    terminal.expect_output("What now?");
    terminal.session.send("\u{1b}").unwrap();
    terminal.session.flush().unwrap();
    terminal.expect_output("to continue: karat forge get_weather --resume");
    terminal.expect_exit(0);
    assert!(!project.path().join(LABELED).exists(), "labeled cases are not written yet");
    // A script does not approve again what a person approved.
    let output = project.run(["forge", "--resume", "--approve-all", "--approved-by", "script"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("left out: 1 draft"), "a dropped draft remains dropped: {}", output.stdout);
    let labeled = project.read_json(LABELED);
    let approvals = labeled["metadata"]["approvals"].as_array().expect("approvals").clone();
    let by_ada: Vec<&Value> = approvals.iter().filter(|approval| approval["approvedBy"] == "Ada").collect();
    assert_eq!(by_ada[0]["cases"], json!(["ls-get-weather-001", "ls-get-weather-003"]));
    assert!(cases(&project, LABELED).iter().all(|case| case["id"] != "ls-get-weather-002"));
}

#[test]
fn ctrl_c_keeps_the_session() {
    let project = forge_project(3);
    let mut terminal = TerminalSession::forge(&project, &["get_weather", "--tier", "golden"]);
    terminal.answer("a 1");
    terminal.expect_output("still undecided");
    terminal.expect_output("What now?");
    terminal.session.send_control('c').unwrap();
    terminal.expect_output("1 approved case not written, saved in .karat/forge/get-weather.json");
    terminal.expect_exit(130);
    assert!(has_session(&project));
    // A second process is rejected while the session is in use.
    let mut terminal = TerminalSession::forge(&project, &["get_weather", "--tier", "golden"]);
    terminal.expect_output("continuing the saved session, 1 approved");
    terminal.expect_output("What now?");
    let second = project.run(["forge", "get_weather", "--resume", "--approve-all"]);
    assert_eq!(second.code, Some(2), "{}", second.both());
    assert!(second.stderr.contains("another karat forge process is working on 'get_weather'"), "{}", second.stderr);
    terminal.send_line("a");
    terminal.expect_output("wrote evals/get-weather.golden.json");
    terminal.expect_exit(0);
}

/// The first two edits contain mistakes.
#[test]
fn checks_edited_cases() {
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
            "toolsCalled": [tool], "noToolErrors": true, "responseNonEmpty": true,
            "responseContains": ["38.5", "sandstorm"], "responseNotContains": ["I don't know"],
        }})
    };
    project.write("wrong", case("get_wether").to_string());
    project.write("good", case("get_weather").to_string());
    let path = editor.display().to_string();
    let mut terminal =
        TerminalSession::forge_with_env(&project, &["get_weather", "--tier", "golden"], &[("EDITOR", &path)]);
    terminal.answer("e 99");
    terminal.expect_output("no case 99");
    terminal.answer("e 2");
    terminal.expect_output("Edit again?");
    terminal.send_line("y");
    terminal.expect_output("/expect/toolsCalled/0: the registry has no tool 'get_wether'");
    terminal.expect_output("Edit again?");
    terminal.send_line("y");
    terminal.expect_output("How hot is it in Cairo?");
    terminal.expect_output("edited by you");
    terminal.answer("e 2");
    terminal.expect_output("no changes");
    terminal.answer("a");
    terminal.expect_output("wrote evals/get-weather.golden.json");
    terminal.expect_exit(0);
    assert!(cases(&project, GOLDEN).contains(&case("get_weather")));
    // A missing editor does not end the session.
    let mut terminal = TerminalSession::forge_with_env(
        &project,
        &["get_forecast", "--tier", "golden"],
        &[("EDITOR", "no-such-editor")],
    );
    terminal.answer("e 1");
    terminal.expect_output("cannot start the editor 'no-such-editor'");
    terminal.answer("q");
    terminal.expect_exit(0);
}

#[test]
fn asks_for_missing_overlaps_and_trigger_phrases() {
    let mut tools = tools(2);
    for tool in tools["tools"].as_array_mut().expect("tools") {
        tool.as_object_mut().expect("a tool").remove("triggerPhrases");
    }
    let project = forge_project(2).file("tools.json", tools);
    std::fs::remove_file(project.path().join("evals/overlap-map.json")).unwrap();
    let mut terminal = TerminalSession::forge(&project, &["get_weather"]);
    terminal.expect_output("The overlap map has no entry for get_weather. It may overlap with:");
    terminal.expect_output("Declare that get_weather and get_forecast overlap?");
    terminal.send_line("y");
    terminal.expect_output("Which phrases should trigger get_weather?");
    for (question, phrase) in
        [(1, "Is it warm?"), (2, "is it WARM?"), (2, "Is it cold?"), (3, ""), (3, "Is it wet?"), (4, "")]
    {
        terminal.expect_output(&format!("Phrase {question}:"));
        terminal.send_line(phrase);
    }
    terminal.answer("a");
    terminal.expect_output("wrote evals/overlap-map.json: get_weather overlaps get_forecast");
    terminal.expect_output("Overlaps: 1");
    terminal.expect_output("Proceed?");
    terminal.send_line("n");
    terminal.expect_output("to continue: karat forge get_weather --resume");
    terminal.expect_exit(0);
    assert_eq!(cases(&project, GOLDEN)[0]["input"]["message"], "Is it warm?");
    let map = project.read_json("evals/overlap-map.json");
    let both = (&map["get_weather"]["overlaps"], &map["get_forecast"]["overlaps"]);
    assert_eq!(both, (&json!(["get_forecast"]), &json!(["get_weather"])));
    // The declared overlap does not make the drafts stale.
    let output = project.run(["forge", "--resume", "--approve-all"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.unwrapped_stderr().contains("no ambiguous case covers the declared overlap"), "{}", output.stderr);
    let versions = [GOLDEN, LABELED].map(|path| project.read_json(path)["metadata"]["overlapMapVersion"].clone());
    assert!(versions[0].is_string() && versions[0] == versions[1], "{versions:?}");
}

#[test]
fn reports_tools_that_changed_since_the_session_started() {
    let project = forge_project(3);
    let mut terminal = TerminalSession::forge(&project, &["get_weather", "--tier", "golden"]);
    terminal.answer("a 1");
    terminal.expect_output("still undecided");
    terminal.answer("q");
    terminal.expect_output("Write the 1 approved case now?");
    terminal.send_line("n");
    terminal.expect_exit(0);
    project.write("tools.json", tools(4));
    let script = project.run(["forge", "get_weather", "--resume", "--approve-all"]);
    assert_eq!(script.code, Some(2), "{}", script.both());
    assert!(script.stderr.contains("new tools: get_mail"), "{}", script.stderr);
    let mut terminal = TerminalSession::forge(&project, &["get_weather"]);
    terminal.expect_output("new tools: get_mail");
    terminal.expect_output("Continue with these drafts anyway?");
    terminal.send_line("n");
    terminal.expect_exit(0);
    assert!(has_session(&project));
    let mut terminal = TerminalSession::forge(&project, &["get_weather"]);
    terminal.expect_output("Continue with these drafts anyway?");
    terminal.send_line("y");
    terminal.expect_output("golden: batch 1 of 1, 1 approved so far");
    terminal.answer("a");
    terminal.expect_output("wrote evals/get-weather.golden.json");
    terminal.expect_exit(0);
}

#[test]
fn a_model_revises_drafts_as_instructed() {
    let case = |message: &str, number: usize| {
        json!({"id": format!("gs-get-weather-{number:03}"), "input": {"message": message}, "expect": {
            "toolsCalled": ["get_weather"], "noToolErrors": true, "responseNonEmpty": true,
            "responseContains": [format!("{number}1.25"), format!("north-{number}")],
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
    let mut terminal =
        TerminalSession::forge(&project, &["get_weather", "--tier", "golden", "--model", "scripted:model.json"]);
    terminal.expect_output("cases are drafted by scripted:model.json");
    terminal.expect_output("golden: batch 1 of 1");
    terminal.answer("r 2 speak of gales");
    terminal.expect_output("Tell me of the gales at the coast of Brittany");
    terminal.answer("r 2 out of order");
    terminal.expect_output("the model is out of order");
    // The draft is still there.
    terminal.answer("s");
    terminal.expect_output("Tell me of the gales at the coast of Brittany");
    terminal.answer("q");
    terminal.expect_exit(0);
}
