//! `karat eval refine` with a scripted model server, also at a terminal.

use karat_core::rating::Rating;
use karat_forge::refine::is_held_out;
use karat_testkit::project::{Output, TempProject};
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::eval_stored::{store_location, with_store};
use crate::project_store::ProjectStore;
use crate::support::project_with_python;

const CURRENT: &str = "def eval_tone(trace):\n    return True, 'always'\n";
const GOOD: &str = "def eval_tone(trace):\n    said = trace['steps'][0]['input']['message']\n    return 'polite' in said, f'said {said!r}'\n";
const RAISES: &str = "def eval_tone(trace):\n    return trace['nothing'], 'x'\n";
const INVALID: &str = "import os\n\n\ndef eval_tone(trace):\n    return True, os.name\n";

fn trace_id(number: usize) -> String {
    format!("t-{number:02}")
}

/// Returns a text that occurs only in this trace.
fn marker(number: usize) -> String {
    format!("mark-{number:02}-end")
}

/// Creates a project with an eval that passes every trace; every second trace is rated negative.
fn project_with_ratings(count: usize) -> TempProject {
    let project = project_with_python();
    let store = ProjectStore::open(&project);
    store.add_version("eval_tone", CURRENT);
    for number in 0..count {
        let (word, rating) = if number % 2 == 0 { ("polite", Rating::Positive) } else { ("rude", Rating::Negative) };
        store.add_trace(&trace_id(number), &format!("{word} {}", marker(number)), "2026-11-10");
        store.add_feedback("ada", &trace_id(number), rating, Some(&format!("noted {}", marker(number))));
    }
    project
}

fn candidates(codes: &[&str]) -> Value {
    let all: Vec<Value> = codes.iter().map(|code| json!({"code": code, "why": "goes by the tone"})).collect();
    json!({"structured": {"candidates": all}, "usage": [900, 400]})
}

fn with_model(project: TempProject, server: &ScriptedServer) -> TempProject {
    project.env("OPENAI_BASE_URL", format!("{}/v1", server.base_url())).env("OPENAI_API_KEY", "sk-test-0123456789")
}

fn run_refine(project: &TempProject, more: &[&str]) -> Output {
    let arguments = ["eval", "refine", "tone", "--model", "openai:test-model"];
    project.run(arguments.into_iter().chain(more.iter().copied()))
}

/// Returns the code and note of each version of the eval.
fn versions(project: &TempProject) -> Vec<(String, Option<String>)> {
    use karat_evals::port::EvalStore as _;
    let all = with_store(&store_location(project), async |store| store.versions("eval_tone").await.unwrap());
    all.into_iter().map(|version| (version.code, version.note)).collect()
}

/// Asserts that a request contains traces of the training set, and none of the held-out set.
#[track_caller]
fn assert_held_out(request: &str, count: usize) {
    let (mut sent, mut held_out) = (0, 0);
    for number in 0..count {
        let is_sent = request.contains(&marker(number)) || request.contains(&format!("\\\"{}\\\"", trace_id(number)));
        if is_held_out("eval_tone", &trace_id(number), 0.4) {
            assert!(!is_sent, "held-out trace {number} was sent");
            held_out += 1;
        } else {
            sent += usize::from(is_sent);
        }
    }
    assert!(sent >= 12 && held_out >= 10, "{sent} sent, {held_out} held out");
}

#[test]
fn compares_candidates_with_the_current_version_without_adopting() {
    let script = json!({"*": {"queue": [candidates(&[INVALID, RAISES]), candidates(&[GOOD])]}});
    let server = ScriptedServer::start(script);
    let project = with_model(project_with_ratings(60), &server).file(".karat/refine/eval_tone/candidate_3.py", "old");
    let output = run_refine(&project, &["--candidates", "2"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    eval_tone version 1, rewritten by openai:test-model
      41 rated traces to train on, 20 good and 21 bad
      19 rated traces held out, 10 good and 9 bad

      code   part     accuracy                 kappa                    wrong errors
      base   training  0.488  [0.343, 0.635]    0.000  [-0.284, 0.288]     21      0
             held out  0.526  [0.317, 0.727]    0.000  [-0.442, 0.423]      9      0
      1      training  1.000  [0.914, 1.000]    1.000  [0.829, 1.000]       0      0
             held out  1.000  [0.832, 1.000]    1.000  [0.663, 1.000]       0      0
      2      training  0.000  [0.000, 0.086]        —                       0     41
             held out  0.000  [0.000, 0.168]        —                       0     19

     1  goes by the tone
        held out: 9 better, 0 worse than base (p = 0.004): better
          better  t-01  passed → failed, bad
          better  t-05  passed → failed, bad
          better  t-09  passed → failed, bad
          better  t-25  passed → failed, bad
          better  t-33  passed → failed, bad
          and 4 more (pass --format json to list all)
        .karat/refine/eval_tone/candidate_1.py

     2  goes by the tone
        held out: 0 better, 10 worse than base (p = 0.002): worse
        19 lost to errors
          lost    t-01  passed → errored, bad
          lost    t-05  passed → errored, bad
          lost    t-08  passed → errored, good
          lost    t-09  passed → errored, bad
          lost    t-25  passed → errored, bad
          and 14 more (pass --format json to list all)
        .karat/refine/eval_tone/candidate_2.py
    ----- stderr -----
    warning: unknown price of openai:test-model: its cost is not counted (set
      'prices')
    sending the code and 20 traces with ratings to openai:test-model
    tokens used: 1800 input, 800 output
    nothing was adopted; run 'karat eval add .karat/refine/eval_tone/candidate_1.py'
      to add it as a version
    ");
    assert_eq!(project.read(".karat/refine/eval_tone/candidate_1.py"), GOOD);
    assert!(
        !project.path().join(".karat/refine/eval_tone/candidate_3.py").exists(),
        "an old candidate was not removed"
    );
    assert_eq!(versions(&project), [(CURRENT.to_owned(), None)]);
    let bodies = server.bodies();
    assert_eq!((bodies.len(), server.refusals()), (2, Vec::new()));
    for body in &bodies {
        assert_held_out(&body.to_string(), 60);
    }
    assert!(bodies[1].to_string().contains("import of 'os' is not allowed"), "{}", bodies[1]);
    // A written candidate can be added.
    let added = project.run(["eval", "add", ".karat/refine/eval_tone/candidate_1.py"]);
    assert_eq!((added.code, versions(&project).len()), (Some(0), 2), "{}", added.both());
}

fn not_json() -> Value {
    json!({"rawStructured": "With pleasure! Here is your function."})
}

fn truncated_json() -> Value {
    json!({"rawStructured": "{\"candidates\": [{\"code\": \"def ev"})
}

fn refusal() -> Value {
    json!({"refusal": "I cannot help with that."})
}

fn rate_limited() -> Value {
    json!({"status": 429, "text": "slow down", "headers": {"retry-after": "0"}})
}

fn wrong_shape() -> Value {
    json!({"structured": {"functions": []}})
}

fn invalid_code() -> Value {
    candidates(&[INVALID])
}

fn unchanged() -> Value {
    candidates(&[CURRENT])
}

fn wrong_name() -> Value {
    candidates(&["def eval_mood(trace):\n    return True, ''\n"])
}

#[rstest]
#[case::not_json(not_json, "With pleasure!")]
#[case::truncated_json(truncated_json, "candidates")]
#[case::refusal(refusal, "I cannot help with that.")]
#[case::rate_limited(rate_limited, "")]
#[case::wrong_shape(wrong_shape, "'candidates' is missing")]
#[case::invalid_code(invalid_code, "import of 'os' is not allowed")]
#[case::unchanged(unchanged, "same as the current code")]
#[case::wrong_name(wrong_name, "must be called eval_tone")]
fn unusable_answers_are_retried_once(#[case] first: fn() -> Value, #[case] reason: &str) {
    let server = ScriptedServer::start(json!({"*": {"queue": [first(), candidates(&[GOOD])]}}));
    let project = with_model(project_with_ratings(60), &server);
    let output = run_refine(&project, &["--candidates", "1", "--format", "json", "--out", "ideas"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let report: Value = serde_json::from_str(&output.stdout).expect("valid JSON");
    let candidate = &report["candidates"][0];
    assert_eq!((candidate["code"].as_str(), candidate["file"].as_str()), (Some(GOOD), Some("ideas/candidate_1.py")));
    assert_eq!(candidate["agreement"]["held_out"]["accuracy"]["value"], 1.0);
    assert_eq!(candidate["held_out_changes"]["direction"], "better");
    assert_eq!(server.request_count(), 2);
    assert!(server.bodies()[1].to_string().contains(reason), "{}", server.bodies()[1]);
    assert_eq!(versions(&project).len(), 1);
}

#[rstest]
#[case::refusal(refusal, "I cannot help with that.")]
#[case::invalid_code(invalid_code, "import of 'os' is not allowed")]
#[case::rate_limited(rate_limited, "429")]
fn fails_without_a_valid_candidate(#[case] answer: fn() -> Value, #[case] reason: &str) {
    let server = ScriptedServer::start(json!({"*": answer()}));
    let project = with_model(project_with_ratings(60), &server);
    let output = run_refine(&project, &["--candidates", "1"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.both().contains(reason), "{}", output.both());
    assert!(!project.path().join(".karat/karat.db-wal").exists(), "the store was not closed");
    assert_eq!(versions(&project).len(), 1);
    assert!(!project.path().join(".karat/refine").exists());
}

#[test]
fn later_rounds_include_earlier_candidates() {
    let server = ScriptedServer::start(json!({"*": {"queue": [candidates(&[RAISES]), candidates(&[GOOD])]}}));
    let project = with_model(project_with_ratings(60), &server);
    let output = run_refine(&project, &["--candidates", "1", "--rounds", "2", "--format", "json"]);
    let report: Value = serde_json::from_str(&output.stdout).expect("valid JSON");
    let codes: Vec<&str> =
        report["candidates"].as_array().unwrap().iter().filter_map(|candidate| candidate["code"].as_str()).collect();
    assert_eq!(codes, [GOOD, RAISES]);
    let second = server.bodies()[1].to_string();
    assert!(second.contains("tried") && second.contains("trace['nothing']"), "{second}");
    assert_held_out(&second, 60);
}

#[test]
fn reports_too_few_ratings() {
    let output = run_refine(&project_with_ratings(12), &[]);
    assert_eq!(output.code, Some(4), "{}", output.both());
    assert!(output.stderr.contains("the training set has"), "{}", output.stderr);
    assert!(output.stderr.contains("the held-out set has"), "{}", output.stderr);
    assert!(output.stderr.contains("'karat review'"), "{}", output.stderr);
}

#[test]
fn rejects_invalid_arguments() {
    let project = project_with_ratings(60);
    let cases: [(&[&str], i32, &str); 6] = [
        (&["eval", "refine", "tone", "--model", "openai:m", "--approved-by", " "], 2, "--author is empty"),
        (&["eval", "refine", "tone"], 2, "set 'refine' in karat.json"),
        (&["eval", "refine", "tune", "--model", "openai:m"], 2, "did you mean 'eval_tone'?"),
        (&["eval", "refine", "tone", "--model", "unknown:m"], 2, "'unknown:m' is not a valid rewriter"),
        (&["eval", "refine", "tone", "--hold-out", "1"], 2, "--hold-out must be between 0 and 1"),
        (&["eval", "refine", "tone", "--candidates", "0"], 2, "--candidates must be between 1 and 20"),
    ];
    for (arguments, code, message) in cases {
        let output = project.run(arguments.iter().copied());
        assert_eq!(output.code, Some(code), "{}", output.both());
        assert!(output.both().contains(message), "{}", output.both());
    }
}

#[test]
fn a_dry_run_prints_the_request() {
    let project = project_with_ratings(60);
    let output = project.run(["eval", "refine", "tone", "--dry-run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let request: Value = serde_json::from_str(&output.stdout).expect("valid JSON");
    assert_eq!(request["document"]["eval"]["code"], CURRENT);
    assert_held_out(&output.stdout, 60);
}

#[test]
fn trials_of_a_task_are_in_the_same_set() {
    let project = project_with_python();
    let store = ProjectStore::open(&project);
    store.add_version("eval_tone", CURRENT);
    for number in 0..120 {
        let (word, rating) = if number % 2 == 0 { ("polite", Rating::Positive) } else { ("rude", Rating::Negative) };
        // Three traces per task.
        let task = number / 3;
        store.add_document(&json!({
            "trace_id": trace_id(number),
            "metadata": {"task_id": task, "expected_actions": ["the-right-answer"]},
            "steps": [{"input": {"message": format!("{word} task-{task:02}-end")}, "output": {"response": "Done."}}],
        }));
        store.add_feedback("ada", &trace_id(number), rating, None);
    }
    let output = project.run(["eval", "refine", "tone", "--dry-run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(!output.stdout.contains("the-right-answer"), "{}", output.stdout);
    let mut sent = 0;
    for task in 0..40 {
        let is_sent = output.stdout.contains(&format!("task-{task:02}-end"));
        assert!(!(is_sent && is_held_out("eval_tone", &format!("task: {task}"), 0.4)), "held-out task {task} was sent");
        sent += usize::from(is_sent);
    }
    assert!(sent > 3, "{sent} tasks were sent");
}

#[test]
fn leaves_out_resolved_contradictions() {
    let project = project_with_python();
    let store = ProjectStore::open(&project);
    let version = store.add_version("eval_tone", CURRENT);
    for number in 0..60 {
        let (word, rating) = if number % 2 == 0 { ("polite", Rating::Positive) } else { ("rude", Rating::Negative) };
        store.add_trace(&trace_id(number), &format!("{word} {}", marker(number)), "2026-11-10");
        store.add_verdict("eval_tone", version, &trace_id(number), Some(true), "always");
        store.add_feedback("ada", &trace_id(number), rating, None);
    }
    let wrong: Vec<usize> = (0..60)
        .filter(|number| number % 2 == 1 && !is_held_out("eval_tone", &trace_id(*number), 0.4))
        .take(2)
        .collect();
    for (number, kind) in wrong.iter().zip(["label-wrong", "dismissed"]) {
        let trace = trace_id(*number);
        let resolved = project.run(["contradictions", "resolve", "tone", &trace, kind, "--author", "bob"]);
        assert_eq!(resolved.code, Some(0), "{}", resolved.both());
    }
    let assert_left_out = || {
        let output = project.run(["eval", "refine", "tone", "--dry-run"]);
        assert_eq!(output.code, Some(0), "{}", output.both());
        assert!(output.stderr.contains("2 rated traces left out: the contradiction is resolved"), "{}", output.stderr);
        for number in &wrong {
            assert!(!output.stdout.contains(&marker(*number)), "trace {number} was sent");
        }
    };
    assert_left_out();
    // A new version without executions does not change that.
    store.add_version("eval_tone", "def eval_tone(trace):\n    return True, 'still'\n");
    assert_left_out();
}

#[cfg(unix)]
mod terminal {
    use super::*;
    use crate::forge_terminal::TerminalSession;

    fn start_refine(project: &TempProject, server: &ScriptedServer) -> TerminalSession {
        let base = format!("{}/v1", server.base_url());
        let variables = [("OPENAI_BASE_URL", base.as_str()), ("OPENAI_API_KEY", "sk-test-0123456789")];
        let arguments = ["eval", "refine", "tone", "--model", "openai:test-model", "--candidates", "1"];
        TerminalSession::spawn(project, &arguments, &variables)
    }

    #[test]
    fn adopts_a_candidate() {
        let server = ScriptedServer::start(json!({"*": candidates(&[GOOD])}));
        let project = project_with_ratings(60);
        let mut terminal = start_refine(&project, &server);
        terminal.expect_output("ratings to openai:test-model");
        terminal.expect_output("goes by the tone");
        terminal.expect_output("Adopt which candidate?");
        terminal.send_line("");
        terminal.expect_output("a number (1)");
        terminal.expect_output("Adopt which candidate?");
        terminal.send_line("d");
        terminal.expect_output("-     return True, 'always'");
        terminal.expect_output("+     said =");
        terminal.expect_output("Adopt which candidate?");
        terminal.send_line("1");
        terminal.expect_output("adopted 1 as version 2 of eval_tone");
        terminal.expect_exit(0);
        // A larger share holds out traces that the model has seen.
        let stderr_with =
            |share: &str| project.run(["eval", "refine", "tone", "--dry-run", "--hold-out", share]).unwrapped_stderr();
        assert!(
            stderr_with("0.5").contains("its model has seen traces that are now held out"),
            "{}",
            stderr_with("0.5")
        );
        assert!(!stderr_with("0.4").contains("its model has seen"), "{}", stderr_with("0.4"));
        let note = "refined by openai:test-model, approved by Ada: goes by the tone";
        assert_eq!(versions(&project), [(CURRENT.to_owned(), None), (GOOD.to_owned(), Some(note.to_owned()))]);
    }

    /// Adding an outdated file would undo the adoption.
    #[test]
    fn offers_to_update_the_eval_file() {
        let server = ScriptedServer::start(json!({"*": candidates(&[GOOD])}));
        let project = project_with_ratings(60).file("evals/functions/tone.py", CURRENT);
        for (answer, code) in [("n", CURRENT), ("y", GOOD)] {
            let mut terminal = start_refine(&project, &server);
            terminal.expect_output("Adopt which candidate?");
            terminal.send_line("1");
            terminal.expect_output("adopted 1 as version");
            terminal.expect_output("Also write it to evals/functions/tone.py?");
            terminal.send_line(answer);
            terminal.expect_exit(0);
            assert_eq!(project.read("evals/functions/tone.py"), code);
            let added = project.run(["eval", "add", "tone"]);
            assert_eq!(added.code, Some(0), "{}", added.both());
            let warning = "the code of version 1 replaces that of version 2 (refined by";
            let is_undone = added.unwrapped_stderr().contains(warning);
            assert_eq!(is_undone, answer == "n", "{}", added.both());
        }
        assert_eq!(versions(&project).last().map(|(code, _)| code.as_str()), Some(GOOD));
    }

    #[test]
    fn does_not_replace_a_newer_version() {
        let server = ScriptedServer::start(json!({"*": candidates(&[GOOD])}));
        let project = project_with_ratings(60);
        let mut terminal = start_refine(&project, &server);
        terminal.expect_output("Adopt which candidate?");
        ProjectStore::open(&project).add_version("eval_tone", RAISES);
        // If the store is elsewhere, nothing else has written this file.
        std::fs::remove_file(project.path().join(".karat/.gitignore")).expect("the store writes a .gitignore");
        terminal.send_line("1");
        terminal.expect_output("version 2 of eval_tone was added in the meantime");
        terminal.expect_exit(3);
        assert_eq!(versions(&project).last().map(|(code, _)| code.as_str()), Some(RAISES));
        assert_eq!(project.read(".karat/refine/eval_tone/candidate_1.py"), GOOD);
        assert_eq!(project.read(".karat/.gitignore"), "*\n");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_signal_restores_the_terminal() {
        let server = ScriptedServer::start(json!({"*": candidates(&[GOOD])}));
        let project = project_with_ratings(60);
        let refine = "eval refine tone --model openai:test-model --candidates 1";
        let script = format!("'{}' {refine}; echo status $?; stty -a", env!("CARGO_BIN_EXE_karat"));
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).current_dir(project.path());
        command.env("TERM", "xterm").env("NO_COLOR", "1").env("GIT_AUTHOR_NAME", "Ada").env("LC_ALL", "C.UTF-8");
        command.env("OPENAI_BASE_URL", format!("{}/v1", server.base_url())).env("OPENAI_API_KEY", "sk-test-0123456789");
        let mut session = rexpect::session::spawn_command(command, Some(60_000)).expect("pseudo-terminal starts");
        session.exp_string("Adopt which candidate?").expect("a prompt");
        let shell = session.process().child_pid;
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        let sent = std::process::Command::new("kill").args(["-TERM", children.trim()]).status();
        assert!(sent.unwrap().success());
        session.exp_string("\u{1b}[?2004l").expect("bracketed paste is disabled");
        session.exp_string("status 130").expect("an exit status");
        let state = session.exp_eof().expect("terminal settings");
        assert!(state.contains("isig icanon"), "{state}");
        assert_eq!(versions(&project).len(), 1);
    }

    #[test]
    fn quitting_adopts_nothing() {
        let server = ScriptedServer::start(json!({"*": candidates(&[GOOD])}));
        let project = project_with_ratings(60);
        let mut terminal = start_refine(&project, &server);
        terminal.expect_output("Adopt which candidate?");
        terminal.send_line("q");
        terminal.expect_output("nothing was adopted");
        terminal.expect_exit(0);
        assert_eq!(versions(&project).len(), 1);
        assert!(!project.path().join(".karat/refine").exists());
    }
}

#[test]
fn uses_rated_traces_of_test_runs_only_on_request() {
    let project = project_with_ratings(60);
    let store = ProjectStore::open(&project);
    store.add_run_trace("run-1", "polite mark-of-a-run");
    store.add_feedback("ada", "run-1", Rating::Positive, None);
    let prompt = |source: &[&str]| run_refine(&project, &[&["--dry-run"], source].concat());
    let output = prompt(&[]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(!output.stdout.contains("mark-of-a-run"), "{}", output.stdout);
    let left_out = "1 rated trace of test runs left out; pass --source all to include them";
    assert!(output.unwrapped_stderr().contains(left_out), "{}", output.stderr);
    let output = prompt(&["--source", "all"]);
    assert!(output.code == Some(0) && !output.unwrapped_stderr().contains(left_out), "{}", output.both());
    let output = prompt(&["--source", "runs"]);
    assert_eq!(output.code, Some(4), "{}", output.both());
    assert!(output.stderr.contains("too few rated traces to refine eval_tone"), "{}", output.stderr);
}
