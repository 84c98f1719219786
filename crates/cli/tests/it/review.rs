//! `karat review` on a real terminal.

use std::process::Command;

use karat_testkit::project::TempProject;
use rexpect::process::signal::Signal;
use rexpect::process::wait::WaitStatus;
use rexpect::session::PtySession;
use serde_json::{Value, json};

use crate::feedback::project_with_traces;
use crate::stored::ProjectStore;
use crate::support::project;

/// How long the program may think.
const PATIENCE_MS: u64 = 60_000;

/// A person at a terminal.
struct Reviewer {
    session: PtySession,
}

impl Reviewer {
    fn at(project: &TempProject, arguments: &[&str]) -> Self {
        Self::before(project, arguments, (80, 24), "")
    }

    /// Sits down at a terminal of this size; `after` is what the shell does when the review has ended.
    fn before(project: &TempProject, arguments: &[&str], size: (u16, u16), after: &str) -> Self {
        let (columns, rows) = size;
        let karat = env!("CARGO_BIN_EXE_karat");
        let exec = if after.is_empty() { "exec" } else { "" };
        let script = format!("stty cols {columns} rows {rows}; {exec} '{karat}' review \"$@\"; {after}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).args(arguments).current_dir(project.path());
        command.env("TERM", "xterm").env("NO_COLOR", "1").env("GIT_AUTHOR_NAME", "Ada").env("LC_ALL", "C.UTF-8");
        let session = rexpect::session::spawn_command(command, Some(PATIENCE_MS)).expect("a terminal");
        Self { session }
    }

    /// Waits until the program shows this, and returns what came before it.
    #[track_caller]
    fn reads(&mut self, words: &str) -> String {
        // A terminal's output comes byte by byte, each taken for a letter.
        let bytes: String = words.bytes().map(char::from).collect();
        match self.session.exp_string(&bytes) {
            Ok(before) => before,
            Err(error) => {
                let shown: Vec<char> = error.to_string().chars().collect();
                let end: String = shown[shown.len().saturating_sub(2000)..].iter().collect();
                panic!("it never shows '{words}': …{end}");
            }
        }
    }

    fn presses(&mut self, keys: &str) {
        self.session.send(keys).unwrap();
        self.session.flush().unwrap();
    }

    /// Changes the terminal's size.
    fn resizes(&mut self, columns: u16, rows: u16) {
        let terminal = format!("/proc/{}/fd/0", self.session.process().child_pid);
        let size = ["cols".to_owned(), columns.to_string(), "rows".to_owned(), rows.to_string()];
        assert!(Command::new("stty").args(["-F", &terminal]).args(size).status().unwrap().success());
    }

    /// Returns all that is shown until the end.
    #[track_caller]
    fn leaves_with(mut self, code: i32) -> String {
        let rest = self.session.exp_eof().expect("it ends");
        match self.session.process().wait() {
            Ok(WaitStatus::Exited(_, status)) => assert_eq!(status, code, "{rest}"),
            other => panic!("it did not end by itself: {other:?}"),
        }
        rest
    }
}

/// Returns what counts, as trace, rating and note.
fn ratings(project: &TempProject) -> Vec<(String, String, String)> {
    let listed = project.run(["feedback", "list", "--format", "json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = listed["feedback"].as_array().unwrap().iter();
    let mut ratings: Vec<_> =
        list.map(|one| (text(&one["trace_id"]), text(&one["rating"]), text(&one["note"]))).collect();
    ratings.sort();
    ratings
}

fn rated(trace: &str, rating: &str, note: &str) -> (String, String, String) {
    (trace.to_owned(), rating.to_owned(), note.to_owned())
}

fn history(project: &TempProject) -> usize {
    project.run(["feedback", "list", "--history", "--format", "jsonl"]).stdout.lines().count()
}

/// A clock that was ahead must not take the last word from whoever rates now.
#[test]
fn what_is_stored_counts() {
    let ada = project_with_traces(&["t1"]);
    let now = jiff::Timestamp::try_from(std::time::SystemTime::now()).unwrap();
    let ahead = now + jiff::SignedDuration::from_hours(20);
    let rows = format!("trace_id,rating,created_at\nt1,retracted,{ahead}\n");
    let imported = ada.command(["feedback", "import", "-"]).stdin(rows).run();
    assert_eq!(imported.code, Some(0), "{}", imported.both());
    let mut person = Reviewer::at(&ada, &[]);
    person.reads("trace t1");
    person.presses("g");
    person.reads("positive, stored: t1");
    assert_eq!(ratings(&ada), [rated("t1", "positive", "")]);
    person.presses("q");
    person.leaves_with(0);
}

#[test]
fn an_unreadable_document_is_an_error() {
    let ada = project_with_traces(&[]);
    ProjectStore::open(&ada).text("t-broken", "{\"trace_id\": \"t-broken\", \"steps\": [");
    let shown = Reviewer::at(&ada, &[]).leaves_with(3);
    assert!(shown.contains("cannot read the document of trace 't-broken': not JSON: "), "{shown}");
    assert!(!shown.contains("no steps"), "{shown}");
}

#[test]
fn every_key_does_what_it_says() {
    let ada = project_with_traces(&["t1", "t2", "t3", "t4"]);
    let mut person = Reviewer::at(&ada, &[]);
    person.reads("trace t1");
    person.reads("1 of 4 · 0 rated · Ada");
    person.reads("Will it rain?");
    person.reads("g good  b bad");
    person.presses("u");
    person.reads("nothing to undo");
    person.presses("x");
    person.reads("'x' is not a command");
    person.presses("?");
    person.reads("write a note to store with the rating");
    person.presses("g");
    person.reads("trace t1");
    assert_eq!(history(&ada), 0, "in the help a key only leaves it");
    person.presses("g");
    person.reads("2 of 4 · 1 rated");
    person.reads("positive, stored: t1");
    assert_eq!(ratings(&ada), [rated("t1", "positive", "")], "stored at once");
    person.presses("t");
    person.reads("Enter saves the note");
    person.presses("too sloww\u{7f}, g b n\r");
    person.reads("note: too slow, g b n");
    person.reads("g good  b bad");
    person.presses("x");
    person.reads("'x' is not a command");
    // With the next key the note is there again.
    person.presses("j");
    person.reads("note: too slow, g b n");
    person.presses("b");
    person.reads("3 of 4 · 2 rated");
    person.presses("s");
    person.reads("4 of 4 · 2 rated");
    person.reads("skipped for now");
    person.presses("n");
    person.reads("left: nothing");
    person.reads("u undo  q quit");
    // A letter for a trace does nothing where there is none.
    person.presses("g");
    person.presses("q");
    let rest = person.leaves_with(0);
    let end = "rated: 3 (1 good, 1 bad, 1 neutral)\r\nskipped: 1 (shown again next time)\r\nleft: nothing\r\n";
    assert!(rest.ends_with(end), "{rest}");
    let expected =
        [rated("t1", "positive", ""), rated("t2", "negative", "too slow, g b n"), rated("t4", "neutral", "")];
    assert_eq!(ratings(&ada), expected);
    // What was skipped comes again.
    let mut person = Reviewer::at(&ada, &[]);
    person.reads("trace t3");
    person.reads("1 of 1");
    person.presses("q");
    person.leaves_with(0);
}

#[test]
fn what_was_done_can_be_undone_to_the_first() {
    let ada = project_with_traces(&["t1", "t2", "t3"]);
    let mut person = Reviewer::at(&ada, &[]);
    person.reads("trace t1");
    person.presses("tfirst\rg");
    person.reads("2 of 3 · 1 rated");
    person.presses("s");
    person.reads("3 of 3 · 1 rated");
    person.presses("b");
    person.reads("left: nothing");
    person.presses("u");
    person.reads("trace t3");
    person.reads("undone: negative");
    assert_eq!(ratings(&ada), [rated("t1", "positive", "first")]);
    person.presses("u");
    person.reads("trace t2");
    person.reads("undone: skip");
    person.presses("u");
    person.reads("trace t1");
    person.reads("undone: positive");
    // The note is still there.
    person.presses("j");
    person.reads("note: first");
    assert_eq!(ratings(&ada), []);
    person.presses("bq");
    person.leaves_with(0);
    assert_eq!(ratings(&ada), [rated("t1", "negative", "first")]);
    assert_eq!(history(&ada), 5, "nothing is forgotten: two ratings, two taken back, one more");
}

#[test]
fn a_kill_loses_nothing() {
    let ada = project_with_traces(&["t1", "t2", "t3"]);
    let mut person = Reviewer::at(&ada, &[]);
    person.reads("trace t1");
    person.presses("g");
    person.reads("2 of 3 · 1 rated");
    person.presses("b");
    person.reads("3 of 3 · 2 rated");
    person.session.process_mut().kill(Signal::SIGKILL).ok();
    assert_eq!(ratings(&ada), [rated("t1", "positive", ""), rated("t2", "negative", "")]);
    let mut person = Reviewer::at(&ada, &[]);
    person.reads("trace t3");
    person.reads("1 of 1 · 0 rated");
    person.presses("n");
    person.reads("left: nothing");
    person.presses("q");
    person.leaves_with(0);
    // Another person sees all of them.
    let mut person = Reviewer::at(&ada, &["--author", "Grace"]);
    person.reads("1 of 3 · 0 rated · Grace");
    person.presses("q");
    person.leaves_with(0);
    let mut done = Reviewer::at(&ada, &[]);
    done.reads("Ada has rated every trace");
    done.leaves_with(4);
}

#[test]
fn who_is_interrupted_gets_the_terminal_back() {
    let ada = project_with_traces(&["t1", "t2"]);
    for signal in [None, Some("TERM"), Some("HUP")] {
        let mut person = Reviewer::before(&ada, &[], (80, 24), "echo status $?; stty -a");
        person.reads("\u{1b}[?1049h");
        person.reads("trace t");
        match signal {
            None => person.session.send_control('c').unwrap(),
            Some(signal) => {
                let shell = person.session.process().child_pid;
                let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
                let sent = Command::new("kill").args([&format!("-{signal}"), children.trim()]).status();
                assert!(sent.unwrap().success());
            }
        }
        person.reads("\u{1b}[?1049l");
        person.reads("rated: 0");
        person.reads("status 130");
        let state = person.leaves_with(0);
        assert!(state.contains("isig icanon"), "{state}");
    }
}

#[test]
fn the_screen_follows_the_terminal() {
    let ada = project_with_traces(&[]);
    let steps: Vec<Value> = (1..=30)
        .map(|number| json!({"input": {"message": format!("question {number}")}, "output": {"response": format!("answer {number}")}, "tool_calls": [], "error": null}))
        .collect();
    ProjectStore::open(&ada).document(&json!({"trace_id": "a-long-one", "steps": steps}));
    let mut person = Reviewer::at(&ada, &[]);
    person.reads("question 1");
    person.reads("lines 1 to 19 of");
    person.presses(" ");
    person.reads("lines 19 to 37 of");
    person.presses("j\u{1b}[B\r");
    person.reads("lines 22 to 40 of");
    person.presses("k\u{1b}[A");
    person.reads("lines 20 to 38 of");
    person.presses("\u{1b}[F");
    person.reads("answer 30");
    person.presses("\u{1b}[H");
    person.reads("lines 1 to 19 of");
    person.resizes(40, 10);
    person.reads("lines 1 to 5 of");
    person.reads("g/b/n rate  s skip  u undo  t note  ? q");
    person.resizes(40, 6);
    person.reads("question 1");
    person.resizes(150, 50);
    person.reads("lines 1 to 45 of");
    person.presses("q");
    person.leaves_with(0);
}

#[test]
fn pasted_text_rates_nothing() {
    let ada = project_with_traces(&["t1"]);
    let mut person = Reviewer::at(&ada, &[]);
    person.reads("trace t1");
    person.presses("\u{1b}[200~gbnq\u{1b}[201~");
    person.reads("pasted text is ignored");
    assert_eq!(history(&ada), 0);
    person.presses("t");
    person.reads("Enter saves the note");
    person.presses("\u{1b}[200~two\nlines\u{1b}[201~");
    person.reads("note: two lines");
    person.presses("\u{1b}");
    person.reads("g good  b bad");
    person.presses("g");
    person.reads("left: nothing");
    person.presses("q");
    person.leaves_with(0);
    assert_eq!(ratings(&ada), [rated("t1", "positive", "")], "what Esc drops is not kept");
}

/// Traces on which evals say different things.
fn judged() -> TempProject {
    let ada = project_with_traces(&["passed", "errored", "disputed", "unjudged", "failed"]);
    let store = ProjectStore::open(&ada);
    for eval in ["eval_polite", "eval_right"] {
        store.version(eval, eval);
    }
    let verdicts = [
        ("eval_polite", "disputed", Some(true)),
        ("eval_right", "disputed", Some(false)),
        ("eval_polite", "errored", None),
        ("eval_polite", "passed", Some(true)),
        ("eval_polite", "failed", Some(false)),
    ];
    for (eval, trace, verdict) in verdicts {
        store.verdict(eval, 1, trace, verdict, "because");
    }
    ada
}

#[test]
fn the_most_informative_come_first_and_verdicts_are_hidden() {
    let ada = judged();
    let mut person = Reviewer::at(&ada, &[]);
    let mut shown = String::new();
    for trace in ["disputed", "errored", "failed", "passed", "unjudged"] {
        shown += &person.reads(&format!("trace {trace}"));
        person.presses("s");
    }
    shown += &person.reads("left: nothing");
    person.presses("q");
    person.leaves_with(0);
    assert!(!shown.contains("because") && !shown.contains("eval_"), "{shown}");
    let mut person = Reviewer::at(&ada, &["--show-verdicts", "--limit", "1"]);
    person.reads("trace disputed");
    person.reads("1 of 1");
    person.reads("✓ eval_polite");
    person.reads("because");
    person.reads("✗ eval_right");
    person.presses("s");
    person.reads("left: 4");
    person.presses("q");
    person.leaves_with(0);
    // The eval's own verdicts decide where one is named.
    let mut person = Reviewer::at(&ada, &["--eval", "right"]);
    person.reads("trace disputed");
    person.reads("1 of 1");
    person.presses("q");
    person.leaves_with(0);
    let mut wrong = Reviewer::at(&ada, &["--eval", "rihgt"]);
    wrong.reads("did you mean 'eval_right'?");
    wrong.leaves_with(2);
}

#[test]
fn a_trace_does_not_steer_the_terminal() {
    let ada = project_with_traces(&[]);
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[?1049l\u{202e}";
    ProjectStore::open(&ada).document(&json!({
        "trace_id": format!("t{hostile}"),
        "steps": [{"input": {"message": hostile}, "output": {"response": hostile}, "error": hostile,
            "tool_calls": [{"name": hostile, "arguments": {"a": hostile}, "result": hostile}]}],
    }));
    let mut person = Reviewer::at(&ada, &["--author", "Ada\u{1b}[31m"]);
    let mut shown = person.reads("g good  b bad");
    person.presses("g");
    shown += &person.reads("left: nothing");
    person.presses("q");
    shown += &person.leaves_with(0);
    for steering in ["\u{1b}]0;", "\u{1b}[2J", "\u{1b}[31m", "\u{202e}"] {
        assert!(!shown.contains(steering), "{shown:?}");
    }
    assert_eq!(shown.matches("\u{1b}[?1049l").count(), 1, "only the program leaves the screen");
}

#[test]
fn a_review_needs_a_terminal_and_traces() {
    let output = project_with_traces(&["t1"]).run(["review"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(output.stderr, @"
    error: a review needs a terminal
    hint: 'karat feedback add TRACE RATING' rates one trace,
      'karat feedback import FILE' many
    ");
    let nothing = project();
    ProjectStore::open(&nothing);
    let mut person = Reviewer::at(&nothing, &[]);
    person.reads("there are no traces in the store");
    person.leaves_with(4);
    let ada = project_with_traces(&["t1"]);
    let mut person = Reviewer::at(&ada, &["--tool", "search"]);
    person.reads("no trace matches the filters");
    person.reads("no stored trace calls a tool");
    person.leaves_with(4);
}

/// Without its terminal a review ends, whether the system tells it or not, and what was rated is kept.
#[test]
fn a_terminal_that_is_gone_ends_it() {
    for terminal in ["own", "another's"] {
        let ada = project_with_traces(&["t1", "t2", "t3"]);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures/closed_terminal.py");
        let mut command = Command::new("python3");
        command.args([script, terminal, env!("CARGO_BIN_EXE_karat"), "review"]).current_dir(ada.path());
        command.env("TERM", "xterm").env("NO_COLOR", "1").env("GIT_AUTHOR_NAME", "Ada").env("LC_ALL", "C.UTF-8");
        let output = command.output().expect("Python");
        let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(said, "130\n", "{terminal}: {complaints}");
        // Who closes a store takes its journal away.
        let store = ada.path().join(".karat");
        assert!(store.join("karat.db").exists() && !store.join("karat.db-wal").exists(), "{terminal}");
        assert_eq!(ratings(&ada), [rated("t1", "positive", "")], "{terminal}");
    }
}
