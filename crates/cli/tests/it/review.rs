//! `karat review` at a terminal.

use std::process::Command;

use karat_testkit::project::TempProject;
use rexpect::process::signal::Signal;
use rexpect::process::wait::WaitStatus;
use rexpect::session::PtySession;
use serde_json::{Value, json};

use crate::feedback::project_with_traces;
use crate::project_store::ProjectStore;
use crate::support::project;

/// How long to wait for output.
const TIMEOUT_MS: u64 = 60_000;

/// A review in a pseudo-terminal.
struct ReviewSession {
    pty: PtySession,
}

impl ReviewSession {
    fn start(project: &TempProject, arguments: &[&str]) -> Self {
        Self::spawn(project, arguments, (80, 24), "")
    }

    /// Starts a review in a terminal of this size; the shell runs `after` when the review has exited.
    fn spawn(project: &TempProject, arguments: &[&str], size: (u16, u16), after: &str) -> Self {
        let (columns, rows) = size;
        let karat = env!("CARGO_BIN_EXE_karat");
        let exec = if after.is_empty() { "exec" } else { "" };
        let script = format!("stty cols {columns} rows {rows}; {exec} '{karat}' review \"$@\"; {after}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).args(arguments).current_dir(project.path());
        command.env("TERM", "xterm").env("NO_COLOR", "1").env("GIT_AUTHOR_NAME", "Ada").env("LC_ALL", "C.UTF-8");
        let pty = rexpect::session::spawn_command(command, Some(TIMEOUT_MS)).expect("pseudo-terminal starts");
        Self { pty }
    }

    /// Waits for a text and returns the output before it.
    #[track_caller]
    fn expect_output(&mut self, text: &str) -> String {
        // rexpect reads each byte as a character.
        let bytes: String = text.bytes().map(char::from).collect();
        match self.pty.exp_string(&bytes) {
            Ok(before) => before,
            Err(error) => {
                let characters: Vec<char> = error.to_string().chars().collect();
                let end: String = characters[characters.len().saturating_sub(2000)..].iter().collect();
                panic!("expected '{text}', found: …{end}");
            }
        }
    }

    fn send_keys(&mut self, keys: &str) {
        self.pty.send(keys).unwrap();
        self.pty.flush().unwrap();
    }

    /// Changes the terminal's size.
    fn resize(&mut self, columns: u16, rows: u16) {
        let terminal = format!("/proc/{}/fd/0", self.pty.process().child_pid);
        let size = ["cols".to_owned(), columns.to_string(), "rows".to_owned(), rows.to_string()];
        assert!(Command::new("stty").args(["-F", &terminal]).args(size).status().unwrap().success());
    }

    /// Waits for the exit and returns the remaining output.
    #[track_caller]
    fn expect_exit(mut self, code: i32) -> String {
        let rest = self.pty.exp_eof().expect("karat exits");
        match self.pty.process().wait() {
            Ok(WaitStatus::Exited(_, status)) => assert_eq!(status, code, "{rest}"),
            other => panic!("karat did not exit normally: {other:?}"),
        }
        rest
    }
}

/// Returns the current ratings as trace, rating and note.
fn ratings(project: &TempProject) -> Vec<(String, String, String)> {
    let list = project.run(["feedback", "list", "--format", "json"]).stdout;
    let list: Value = serde_json::from_str(&list).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = list["feedback"].as_array().unwrap().iter();
    let mut ratings: Vec<_> =
        list.map(|row| (text(&row["trace_id"]), text(&row["rating"]), text(&row["note"]))).collect();
    ratings.sort();
    ratings
}

fn rated(trace: &str, rating: &str, note: &str) -> (String, String, String) {
    (trace.to_owned(), rating.to_owned(), note.to_owned())
}

fn history_len(project: &TempProject) -> usize {
    project.run(["feedback", "list", "--history", "--format", "jsonl"]).stdout.lines().count()
}

/// An earlier rating may have a time in the future, from a clock that was ahead.
#[test]
fn a_new_rating_overrides_one_from_the_future() {
    let project = project_with_traces(&["t1"]);
    let now = jiff::Timestamp::try_from(std::time::SystemTime::now()).unwrap();
    let future = now + jiff::SignedDuration::from_hours(20);
    let rows = format!("trace_id,rating,created_at\nt1,retracted,{future}\n");
    let imported = project.command(["feedback", "import", "-"]).stdin(rows).run();
    assert_eq!(imported.code, Some(0), "{}", imported.both());
    let mut session = ReviewSession::start(&project, &[]);
    session.expect_output("trace t1");
    session.send_keys("g");
    session.expect_output("good, stored: t1");
    assert_eq!(ratings(&project), [rated("t1", "positive", "")]);
    session.send_keys("q");
    session.expect_exit(0);
}

#[test]
fn an_unreadable_document_is_an_error() {
    let project = project_with_traces(&[]);
    ProjectStore::open(&project).add_text("t-broken", "{\"trace_id\": \"t-broken\", \"steps\": [");
    let output = ReviewSession::start(&project, &[]).expect_exit(3);
    assert!(output.contains("cannot read the document of trace 't-broken': not valid JSON: "), "{output}");
    assert!(!output.contains("no steps"), "{output}");
}

#[test]
fn handles_every_key() {
    let project = project_with_traces(&["t1", "t2", "t3", "t4"]);
    let mut session = ReviewSession::start(&project, &[]);
    session.expect_output("trace t1");
    session.expect_output("1 of 4 · 0 rated · Ada");
    session.expect_output("Will it rain?");
    session.expect_output("g good  b bad");
    session.send_keys("u");
    session.expect_output("nothing to undo");
    session.send_keys("x");
    session.expect_output("unknown command 'x'");
    session.send_keys("?");
    session.expect_output("write a note to store with the rating");
    session.send_keys("g");
    session.expect_output("trace t1");
    assert_eq!(history_len(&project), 0, "a key in the help only closes it");
    session.send_keys("g");
    session.expect_output("2 of 4 · 1 rated");
    session.expect_output("good, stored: t1");
    assert_eq!(ratings(&project), [rated("t1", "positive", "")], "stored immediately");
    session.send_keys("t");
    session.expect_output("Enter saves the note");
    session.send_keys("too sloww\u{7f}, g b n\r");
    session.expect_output("note: too slow, g b n");
    session.expect_output("g good  b bad");
    session.send_keys("x");
    session.expect_output("unknown command 'x'");
    // The next key shows the note again.
    session.send_keys("j");
    session.expect_output("note: too slow, g b n");
    session.send_keys("b");
    session.expect_output("3 of 4 · 2 rated");
    session.send_keys("s");
    session.expect_output("4 of 4 · 2 rated");
    session.expect_output("skipped for now");
    session.send_keys("n");
    session.expect_output("left: nothing");
    session.expect_output("u undo  q quit");
    // Rating keys do nothing without a trace.
    session.send_keys("g");
    session.send_keys("q");
    let rest = session.expect_exit(0);
    let end = "rated: 3 (1 good, 1 bad, 1 neutral)\r\nskipped: 1 (shown again next time)\r\nleft: nothing\r\n";
    assert!(rest.ends_with(end), "{rest}");
    let expected =
        [rated("t1", "positive", ""), rated("t2", "negative", "too slow, g b n"), rated("t4", "neutral", "")];
    assert_eq!(ratings(&project), expected);
    // Skipped traces are shown again.
    let mut session = ReviewSession::start(&project, &[]);
    session.expect_output("trace t3");
    session.expect_output("1 of 1");
    session.send_keys("q");
    session.expect_exit(0);
}

#[test]
fn undoes_every_action() {
    let project = project_with_traces(&["t1", "t2", "t3"]);
    let mut session = ReviewSession::start(&project, &[]);
    session.expect_output("trace t1");
    session.send_keys("tfirst\rg");
    session.expect_output("2 of 3 · 1 rated");
    session.send_keys("s");
    session.expect_output("3 of 3 · 1 rated");
    session.send_keys("b");
    session.expect_output("left: nothing");
    session.send_keys("u");
    session.expect_output("trace t3");
    session.expect_output("undone: bad");
    assert_eq!(ratings(&project), [rated("t1", "positive", "first")]);
    session.send_keys("u");
    session.expect_output("trace t2");
    session.expect_output("undone: skip");
    session.send_keys("u");
    session.expect_output("trace t1");
    session.expect_output("undone: good");
    // The note is retracted with its rating.
    assert_eq!(ratings(&project), []);
    session.send_keys("bq");
    session.expect_exit(0);
    assert_eq!(ratings(&project), [rated("t1", "negative", "")]);
    assert_eq!(history_len(&project), 5, "the history_len has two ratings, two retractions and another rating");
}

#[test]
fn a_kill_loses_no_ratings() {
    let project = project_with_traces(&["t1", "t2", "t3"]);
    let mut session = ReviewSession::start(&project, &[]);
    session.expect_output("trace t1");
    session.send_keys("g");
    session.expect_output("2 of 3 · 1 rated");
    session.send_keys("b");
    session.expect_output("3 of 3 · 2 rated");
    session.pty.process_mut().kill(Signal::SIGKILL).ok();
    assert_eq!(ratings(&project), [rated("t1", "positive", ""), rated("t2", "negative", "")]);
    let mut session = ReviewSession::start(&project, &[]);
    session.expect_output("trace t3");
    session.expect_output("1 of 1 · 0 rated");
    session.send_keys("n");
    session.expect_output("left: nothing");
    session.send_keys("q");
    session.expect_exit(0);
    // Another author sees all traces.
    let mut session = ReviewSession::start(&project, &["--author", "Grace"]);
    session.expect_output("1 of 3 · 0 rated · Grace");
    session.send_keys("q");
    session.expect_exit(0);
    let mut done = ReviewSession::start(&project, &[]);
    done.expect_output("Ada has rated every trace");
    done.expect_exit(4);
}

#[test]
fn signals_restore_the_terminal() {
    let project = project_with_traces(&["t1", "t2"]);
    for signal in [None, Some("TERM"), Some("HUP")] {
        let mut session = ReviewSession::spawn(&project, &[], (80, 24), "echo status $?; stty -a");
        session.expect_output("\u{1b}[?1049h");
        session.expect_output("trace t");
        match signal {
            None => session.pty.send_control('c').unwrap(),
            Some(signal) => {
                let shell = session.pty.process().child_pid;
                let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
                let sent = Command::new("kill").args([&format!("-{signal}"), children.trim()]).status();
                assert!(sent.unwrap().success());
            }
        }
        session.expect_output("\u{1b}[?1049l");
        session.expect_output("rated: 0");
        session.expect_output("status 130");
        let state = session.expect_exit(0);
        assert!(state.contains("isig icanon"), "{state}");
    }
}

#[test]
fn scrolls_and_follows_the_terminal_size() {
    let project = project_with_traces(&[]);
    let steps: Vec<Value> = (1..=30)
        .map(|number| json!({"input": {"message": format!("question {number}")}, "output": {"response": format!("answer {number}")}, "tool_calls": [], "error": null}))
        .collect();
    ProjectStore::open(&project).add_document(&json!({"trace_id": "a-long-one", "steps": steps}));
    let mut session = ReviewSession::start(&project, &[]);
    session.expect_output("question 1");
    session.expect_output("lines 1 to 19 of");
    session.send_keys(" ");
    session.expect_output("lines 19 to 37 of");
    session.send_keys("j\u{1b}[B\r");
    session.expect_output("lines 22 to 40 of");
    session.send_keys("k\u{1b}[A");
    session.expect_output("lines 20 to 38 of");
    session.send_keys("\u{1b}[F");
    session.expect_output("answer 30");
    session.send_keys("\u{1b}[H");
    session.expect_output("lines 1 to 19 of");
    session.resize(40, 10);
    session.expect_output("lines 1 to 5 of");
    session.expect_output("g/b/n rate  s skip  u undo  t note  ? q");
    session.resize(40, 6);
    session.expect_output("question 1");
    session.resize(150, 50);
    session.expect_output("lines 1 to 45 of");
    session.send_keys("q");
    session.expect_exit(0);
}

#[test]
fn ignores_pasted_text() {
    let project = project_with_traces(&["t1"]);
    let mut session = ReviewSession::start(&project, &[]);
    session.expect_output("trace t1");
    session.send_keys("\u{1b}[200~gbnq\u{1b}[201~");
    session.expect_output("pasted text is ignored");
    assert_eq!(history_len(&project), 0);
    session.send_keys("t");
    session.expect_output("Enter saves the note");
    session.send_keys("\u{1b}[200~two\nlines\u{1b}[201~");
    session.expect_output("note: two lines");
    session.send_keys("\u{1b}");
    session.expect_output("g good  b bad");
    session.send_keys("g");
    session.expect_output("left: nothing");
    session.send_keys("q");
    session.expect_exit(0);
    assert_eq!(ratings(&project), [rated("t1", "positive", "")], "Esc discards the note");
}

/// Creates a project with traces that differ in their verdicts.
fn project_with_verdicts() -> TempProject {
    let project = project_with_traces(&["passed", "errored", "disputed", "unjudged", "failed"]);
    let store = ProjectStore::open(&project);
    for eval in ["eval_polite", "eval_right"] {
        store.add_version(eval, eval);
    }
    let verdicts = [
        ("eval_polite", "disputed", Some(true)),
        ("eval_right", "disputed", Some(false)),
        ("eval_polite", "errored", None),
        ("eval_polite", "passed", Some(true)),
        ("eval_polite", "failed", Some(false)),
    ];
    for (eval, trace, verdict) in verdicts {
        store.add_verdict(eval, 1, trace, verdict, "because");
    }
    project
}

#[test]
fn orders_traces_by_information_and_hides_verdicts() {
    let project = project_with_verdicts();
    let mut session = ReviewSession::start(&project, &[]);
    let mut output = String::new();
    for trace in ["disputed", "errored", "failed", "passed", "unjudged"] {
        output += &session.expect_output(&format!("trace {trace}"));
        session.send_keys("s");
    }
    output += &session.expect_output("left: nothing");
    session.send_keys("q");
    session.expect_exit(0);
    assert!(!output.contains("because") && !output.contains("eval_"), "{output}");
    let mut session = ReviewSession::start(&project, &["--show-verdicts", "--limit", "1"]);
    session.expect_output("trace disputed");
    session.expect_output("1 of 1");
    session.expect_output("✓ eval_polite");
    session.expect_output("because");
    session.expect_output("✗ eval_right");
    session.send_keys("s");
    session.expect_output("left: 4");
    session.send_keys("q");
    session.expect_exit(0);
    // With --eval, only traces that it judged are shown.
    let mut session = ReviewSession::start(&project, &["--eval", "right"]);
    session.expect_output("trace disputed");
    session.expect_output("1 of 1");
    session.send_keys("q");
    session.expect_exit(0);
    let mut wrong = ReviewSession::start(&project, &["--eval", "rihgt"]);
    wrong.expect_output("did you mean 'eval_right'?");
    wrong.expect_exit(2);
}

#[test]
fn escapes_control_sequences_in_traces() {
    let project = project_with_traces(&[]);
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[?1049l\u{202e}";
    ProjectStore::open(&project).add_document(&json!({
        "trace_id": format!("t{hostile}"),
        "steps": [{"input": {"message": hostile}, "output": {"response": hostile}, "error": hostile,
            "tool_calls": [{"name": hostile, "arguments": {"a": hostile}, "result": hostile}]}],
    }));
    let mut session = ReviewSession::start(&project, &["--author", "Ada\u{1b}[31m"]);
    let mut output = session.expect_output("g good  b bad");
    session.send_keys("g");
    output += &session.expect_output("left: nothing");
    session.send_keys("q");
    output += &session.expect_exit(0);
    for sequence in ["\u{1b}]0;", "\u{1b}[2J", "\u{1b}[31m", "\u{202e}"] {
        assert!(!output.contains(sequence), "{output:?}");
    }
    assert_eq!(output.matches("\u{1b}[?1049l").count(), 1, "only karat leaves the alternate screen");
}

#[test]
fn requires_a_terminal_and_traces() {
    let output = project_with_traces(&["t1"]).run(["review"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(output.stderr, @"
    error: karat review needs a terminal
    hint: run 'karat feedback add TRACE RATING' or 'karat feedback import FILE'
      instead
    ");
    let empty = project();
    ProjectStore::open(&empty);
    let mut session = ReviewSession::start(&empty, &[]);
    session.expect_output("no traces in the store");
    session.expect_exit(4);
    let project = project_with_traces(&["t1"]);
    let mut session = ReviewSession::start(&project, &["--tool", "search"]);
    session.expect_output("no trace matches the filters");
    session.expect_output("no stored trace calls a tool");
    session.expect_exit(4);
}

/// The review exits with and without a SIGHUP, and the rating is stored.
#[test]
fn exits_when_the_terminal_closes() {
    for terminal in ["own", "foreign"] {
        let project = project_with_traces(&["t1", "t2", "t3"]);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures/closed_terminal.py");
        let mut command = Command::new("python3");
        command
            .args([script, terminal, "1 of 3", "g", "2 of 3", "--", env!("CARGO_BIN_EXE_karat"), "review"])
            .current_dir(project.path());
        command.env("TERM", "xterm").env("NO_COLOR", "1").env("GIT_AUTHOR_NAME", "Ada").env("LC_ALL", "C.UTF-8");
        let output = command.output().expect("python3 runs");
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(stdout, "130\n", "{terminal}: {stderr}");
        // A closed store has no journal.
        let store = project.path().join(".karat");
        assert!(store.join("karat.db").exists() && !store.join("karat.db-wal").exists(), "{terminal}");
        assert_eq!(ratings(&project), [rated("t1", "positive", "")], "{terminal}");
    }
}
