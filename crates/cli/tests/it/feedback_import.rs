//! `karat feedback import`: tables and JSON lines, as people and programs write them.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use karat_testkit::project::TempProject;
use rstest::rstest;
use serde_json::json;

use crate::feedback::{ada_with, assert_follows, document};
use crate::stored::ProjectStore;

fn statements(project: &TempProject) -> Vec<String> {
    let listed = project.run(["feedback", "list", "--history", "--format", "csv"]).stdout;
    listed.lines().skip(1).map(str::to_owned).collect()
}

#[rstest]
#[case::mark_and_windows("\u{feff}trace_id,rating\r\nt1,positive\r\nt2,negative\r\n")]
#[case::semicolons("rating;trace_id\npositive;t1\nnegative;t2\n")]
#[case::tabs("trace_id\trating\nt1\tpositive\nt2\tnegative\n")]
#[case::quotes("\"trace_id\",\"rating\"\n\"t1\",\"positive\"\n\"t2\",\"negative\"")]
#[case::json_lines(
    "{\"trace_id\":\"t1\",\"rating\":\"positive\"}\r\n\r\n{\"rating\":\"negative\",\"trace_id\":\"t2\"}\r\n"
)]
fn a_file_is_read_however_it_was_saved(#[case] text: &str) {
    let ada = ada_with(&["t1", "t2"]);
    let output = ada.command(["feedback", "import", "-"]).stdin(text).run();
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "imported 2 statements from stdin\n"),
        "{}",
        output.both()
    );
    let rows = statements(&ada);
    assert!(rows.iter().all(|row| row.contains(",Ada,") && row.ends_with(",import")), "{rows:?}");
    let again = ada.command(["feedback", "import", "-"]).stdin(text).run();
    assert_eq!(again.stdout, "imported 0 statements from stdin; 2 rows known already\n");
    assert_eq!(statements(&ada).len(), 2);
}

/// A row without a time says what is so now, beside rows that say what was.
#[rstest]
#[case::after("t1,negative,2026-01-03\nt1,positive,\n")]
#[case::before("t1,positive,\nt1,negative,2026-01-03\n")]
fn a_row_without_a_time_has_the_last_word(#[case] rows: &str) {
    let ada = ada_with(&["t1"]);
    let old = "trace_id,rating,created_at\nt1,positive,2026-01-02\n";
    assert_eq!(ada.command(["feedback", "import", "-"]).stdin(old).run().code, Some(0));
    let rows = format!("trace_id,rating,created_at\n{rows}");
    let import = || ada.command(["feedback", "import", "-"]).stdin(rows.clone()).run();
    assert_eq!(import().stdout, "imported 2 statements from stdin\n");
    let current = ada.run(["feedback", "list", "--format", "csv"]).stdout;
    assert!(current.lines().count() == 2 && current.contains("positive"), "{current}");
    assert_eq!(import().stdout, "imported 0 statements from stdin; 2 rows known already\n");
}

#[test]
fn everything_wrong_is_shown_and_nothing_is_written() {
    let ada = ada_with(&["t1", "t2-whole"]).file(
        "labels.csv",
        "trace_id,rating,note,created_at\n\
         t1,positive,fine,2026-01-02\n\
         t1,postive,,\n\
         t2,negative,shortened,\n\
         nowhere,negative,,\n\
         t1,neutral,,soon\n\
         t1,neutral\n",
    );
    let output = ada.run(["feedback", "import", "labels.csv"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(output.stderr, @"
      × 'postive' is no rating
       ╭─[labels.csv:3:4]
     3 │ t1,postive,,
       ·    ───────
       ╰────
      help: did you mean 'positive'?
      × there is no trace 't2' in the store
       ╭─[labels.csv:4:1]
     4 │ t2,negative,shortened,
       · ──
       ╰────
      help: did you mean 't2-whole'? A file has whole ids
      × there is no trace 'nowhere' in the store
       ╭─[labels.csv:5:1]
     5 │ nowhere,negative,,
       · ───────
       ╰────
      help: 'karat trace list' shows the traces
      × created_at is no time: 'soon'
       ╭─[labels.csv:6:13]
     6 │ t1,neutral,,soon
       ·             ────
       ╰────
      help: 2026-11-16T12:00:00Z, or a date: 2026-11-16
      × the row has 2 fields where the header has 4
       ╭─[labels.csv:7:1]
     7 │ t1,neutral
       · ▲
       ╰────
      help: a text with a separator in it stands in quotes
    error: nothing of labels.csv is imported
    hint: --skip-invalid imports the rows that are valid
    ");
    assert_eq!(statements(&ada), [""; 0]);
    let report = ada.run(["feedback", "import", "labels.csv", "--format", "json"]);
    assert_eq!(report.code, Some(2));
    let report = document(&report);
    assert_follows("feedback-import", &report);
    assert_eq!((&report["written"], &report["rows"]), (&json!(false), &json!(6)));
    let lines: Vec<u64> =
        report["invalid"].as_array().unwrap().iter().map(|row| row["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [3, 4, 5, 6, 7]);
    // The others are taken when that is wanted.
    let some = ada.run(["feedback", "import", "labels.csv", "--skip-invalid"]);
    assert_eq!(some.code, Some(1), "{}", some.both());
    assert_eq!(some.stdout, "imported 1 statement from labels.csv; 5 rows left out\n");
    insta::assert_snapshot!(some.stderr, @"
    warning: labels.csv:3:4: 'postive' is no rating
    warning: labels.csv:4:1: there is no trace 't2' in the store
    warning: labels.csv:5:1: there is no trace 'nowhere' in the store
    warning: labels.csv:6:13: created_at is no time: 'soon'
    warning: labels.csv:7:1: the row has 2 fields where the header has 4
    ");
    assert_eq!(statements(&ada), ["t1,positive,fine,Ada,2026-01-02T00:00:00Z,import"]);
}

#[test]
fn a_header_must_be_right() {
    let ada = ada_with(&["t1"]);
    let import = |text: &str, more: &[&str]| {
        ada.write("labels.csv", text);
        ada.run(["feedback", "import", "labels.csv"].iter().chain(more).copied())
    };
    let output = import("trace_id,rating,rating,Notes\nt1,positive,,\n", &["--skip-invalid"]);
    assert_eq!(output.code, Some(2));
    insta::assert_snapshot!(output.stderr, @"
      × the column 'rating' stands twice
       ╭─[labels.csv:1:17]
     1 │ trace_id,rating,rating,Notes
       ·                 ──────
       ╰────
      × unknown column 'Notes'
       ╭─[labels.csv:1:24]
     1 │ trace_id,rating,rating,Notes
       ·                        ─────
       ╰────
      help: did you mean 'note'?
    error: nothing of labels.csv is imported
    ");
    let output = import("t1,positive\n", &[]);
    assert_eq!(output.code, Some(2));
    insta::assert_snapshot!(output.stderr, @"
      × the first line is no header
       ╭─[labels.csv:1:1]
     1 │ t1,positive
       · ──
       ╰────
      help: it names the columns: trace_id,rating,note,author,created_at,source
    error: nothing of labels.csv is imported
    ");
    let output = import("trace_id,rating,reviewer_mood\nt1,positive,good\n", &["--ignore-unknown"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let output = import("trace_id,rating\n\n", &[]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(4), "error: there is no feedback in labels.csv\n"));
    let output = import("", &[]);
    assert_eq!(output.code, Some(4));
    let output = import("{}", &["--from", "csv"]);
    assert_eq!(output.code, Some(2), "a person knows better than the first character: {}", output.both());
}

#[test]
fn a_quote_that_is_not_closed_swallows_nothing() {
    let ada = ada_with(&["t1", "t2"]).file("labels.csv", "trace_id,rating,note\nt1,positive,\"oh\nt2,negative,\n");
    let output = ada.run(["feedback", "import", "labels.csv", "--skip-invalid"]);
    assert_eq!(output.code, Some(2));
    insta::assert_snapshot!(output.stderr, @r#"
      × this quote is not closed
       ╭─[labels.csv:2:13]
     2 │ t1,positive,"oh
       ·             ─
       ╰────
      help: a field that begins with a quote ends with one
    error: nothing of labels.csv is imported
    "#);
    assert_eq!(statements(&ada), [""; 0]);
}

#[test]
fn bytes_that_are_no_text_have_a_place() {
    let ada = ada_with(&["t1"]);
    ada.write("labels.csv", b"trace_id,rating,note\nt1,positive,caf\xe9\n".to_vec());
    let output = ada.run(["feedback", "import", "labels.csv"]);
    assert_eq!(output.code, Some(2));
    insta::assert_snapshot!(output.stderr, @r#"
    error: labels.csv:2:16 is not UTF-8
    hint: a spreadsheet saves it as "CSV UTF-8"
    "#);
    let missing = ada.run(["feedback", "import", "nowhere.csv"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("cannot read nowhere.csv"), "{}", missing.stderr);
}

#[test]
fn what_would_be_done_can_be_seen_before() {
    let ada = ada_with(&["t1"]).file("labels.csv", "trace_id,rating\nt1,positive\n");
    let output = ada.run(["feedback", "import", "labels.csv", "--dry-run"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "would import 1 statement from labels.csv\n"));
    assert_eq!(statements(&ada), [""; 0]);
}

#[test]
fn a_row_without_a_time_says_what_is_so_now() {
    let ada = ada_with(&["t1"]);
    assert_eq!(ada.run(["feedback", "add", "t1", "negative", "--note", "slow"]).code, Some(0));
    let import = |rating: &str| {
        let text = format!("trace_id,rating,author\nt1,{rating},Ada\n");
        ada.command(["feedback", "import", "-"]).stdin(text).run().stdout
    };
    assert_eq!(import("negative"), "imported 0 statements from stdin; 1 row known already\n");
    assert_eq!(import("positive"), "imported 1 statement from stdin\n");
    assert_eq!(import("retracted"), "imported 1 statement from stdin\n");
    assert_eq!(import("retracted"), "imported 0 statements from stdin; 1 row known already\n");
    assert_eq!(ada.run(["feedback", "list", "--format", "jsonl"]).stdout, "");
    assert_eq!(statements(&ada).len(), 3);
}

#[test]
fn a_hundred_thousand_rows_are_soon_in() {
    let ada = ada_with(&[]);
    let store = ProjectStore::open(&ada);
    let ids: Vec<String> = (0..1000).map(|number| format!("trace-{number:04}")).collect();
    for id in &ids {
        store.trace(id, "x", "2026-01-02");
    }
    let mut text = "trace_id,rating,author,created_at\n".to_owned();
    for row in 0..100_000 {
        let rating = ["positive", "negative", "neutral"][row % 3];
        let (id, author) = (&ids[row % 1000], row / 1000);
        writeln!(text, "{id},{rating},author {author},2026-01-02T10:00:00Z").unwrap();
    }
    ada.write("labels.csv", text);
    let begun = Instant::now();
    let import = || ada.command(["feedback", "import", "labels.csv"]).within(Duration::from_mins(3)).run();
    let output = import();
    assert_eq!(output.stdout, "imported 100000 statements from labels.csv\n", "{}", output.both());
    assert_eq!(import().stdout, "imported 0 statements from labels.csv; 100000 rows known already\n");
    assert!(begun.elapsed() < Duration::from_mins(2), "{:?}", begun.elapsed());
}
